"""The model with a difficulty of each item (`benchmarks.difficulty`) against sums that do not sample it."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.difficulty import sampled
from scipy.special import expit

import binreps as br

SAID = [[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]] * 3


def by_importance(said, size, seed):
    """Posterior means of θ, σ, m_s, m_l, and scores: prior draws weighted by their exact likelihoods."""
    rng = np.random.default_rng(seed)
    theta, sigma = rng.beta(0.5, 0.5, size), 0.5 * np.abs(rng.standard_normal(size))
    mean_skill = 1 + rng.standard_normal(4 * size)
    mean_skill = mean_skill[mean_skill > 0][:size]
    mean_lean = 0.5 * rng.standard_normal(size)
    spread_skill, spread_lean = np.abs(rng.standard_normal((2, size))) * np.array([[1.0], [0.5]])
    sources = len(said[0])
    skill = mean_skill + spread_skill * rng.standard_normal((sources, size))
    lean = mean_lean + spread_lean * rng.standard_normal((sources, size))
    at, weight = np.polynomial.hermite_e.hermegauss(15)
    weight = weight / weight.sum()
    yes = (  # P(yes | status, difficulty): status × nodes × sources × draws
        expit((lean - skill) + (sigma * at[:, None])[:, None]),
        expit((lean + skill) - (sigma * at[:, None])[:, None]),
    )
    scores, total = [], np.zeros(size)
    for row in np.array(said):
        told = row[:, None] > 0
        parts = [weight @ np.prod(np.where(told, chance, 1 - chance), axis=1) for chance in yes]
        positive = theta * parts[1]
        both = positive + (1 - theta) * parts[0]
        scores.append(positive / both)
        total += np.log(both)
    posterior = np.exp(total - total.max())
    posterior /= posterior.sum()
    watched = np.stack([theta, sigma, mean_skill, mean_lean, spread_skill, spread_lean])
    return watched @ posterior, np.array(scores) @ posterior, 1 / (posterior**2).sum()


@pytest.mark.slow
def test_the_sampler_agrees_with_weighted_draws_of_the_prior():
    """24 items, three sources: the posterior is wide, and weighted draws of the prior are worth thousands."""
    watched, scores, worth = by_importance(SAID, 100_000, 1)
    assert worth > 5_000
    found = sampled(br.Readings.wide(SAID, ["a", "b", "c"]), 2, sweeps=5_000, chains=16)
    assert found.rhat < 1.02
    sd = found.draws.std(axis=(1, 2))
    assert np.abs(found.draws.mean(axis=(1, 2)) - watched) / sd == pytest.approx(np.zeros(6), abs=0.06)
    assert found.score == pytest.approx(scores, abs=0.02)
