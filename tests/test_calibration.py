"""On data drawn from the prior, intervals cover as often as they say and probabilities are frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import pytest

from binreps import CountTable, Prior, Rates
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.model import likelihood_score

pytestmark = pytest.mark.slow

DATA_SETS = 300
INDIVIDUALS = 10
NEW_REPLICATES = 6
BINS = np.array([0, 0.1, 0.3, 0.5, 0.7, 0.9, 1])


@dataclass(frozen=True)
class Trial:
    """Rates drawn from the prior, data drawn with them, and the fit that sees only the data."""

    truth: Rates
    counts: CountTable
    fit: BayesFit


def draw_rates(rng: np.random.Generator) -> Rates:
    """From the default prior: Beta(½, ½), and Beta(2, 2) below ½ by rejection."""
    errors = rng.beta(2, 2, 100)
    return Rates(rng.beta(0.5, 0.5), *errors[errors < 0.5][:2])


def draw_trial(rng: np.random.Generator) -> Trial:
    truth = draw_rates(rng)
    n = rng.integers(1, NEW_REPLICATES + 1, INDIVIDUALS)
    status = rng.random(INDIVIDUALS) < truth.prevalence
    s = rng.binomial(n, np.where(status, truth.sensitivity, truth.false_positive))
    counts = CountTable(n, s)
    return Trial(truth, counts, fit_bayes(counts, Prior()))


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    rng = np.random.default_rng(2026)
    return [draw_trial(rng) for _ in range(DATA_SETS)]


REGIONS = {"half": Prior(), "better than chance": Prior(better_than_chance=True)}
EACH = 700


def from_prior(prior: Prior, rng: np.random.Generator) -> Rates:
    """The three Betas, the error rates again and again until they lie in the region."""
    while True:
        theta, p, q = (rng.beta(*shapes) for shapes in prior)
        if p + q < 1 if prior.better_than_chance else max(p, q) < 0.5:
            return Rates(theta, p, q)


@pytest.mark.parametrize("region", REGIONS)
def test_intervals_cover_in_either_region(region: str) -> None:
    """2,100 intervals, 700 of each rate, of tables of many sizes: three standard errors."""
    prior, rng = REGIONS[region], np.random.default_rng(16)
    covered = np.zeros((EACH, 3), bool)
    for i in range(EACH):
        truth = from_prior(prior, rng)
        n = rng.integers(1, 1 + rng.integers(2, 7), rng.integers(3, 40))
        status = rng.random(n.size) < truth.prevalence
        s = rng.binomial(n, np.where(status, truth.sensitivity, truth.false_positive))
        lower, upper = fit_bayes(CountTable(n, s), prior).interval(0.9)
        covered[i] = [low <= x <= high for low, x, high in zip(lower, truth, upper, strict=True)]
    assert np.abs(covered.mean(axis=0) - 0.9).max() < 3 * np.sqrt(0.9 * 0.1 / EACH)


def surprise(excess: np.ndarray) -> float:
    """How many standard errors a mean over data sets is away from 0."""
    return float(excess.mean() / (excess.std() / np.sqrt(excess.size)))


def excesses(trial: Trial, s: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """For each result s of a new individual: the chance to see it in a positive one, less what was predicted.

    Result and status are both averaged over, given the true rates, which takes out most of the noise.
    """
    theta, p, q = trial.truth
    ways = np.array([comb(NEW_REPLICATES, k) for k in s.tolist()])
    positive = ways * theta * (1 - q) ** s * q ** (NEW_REPLICATES - s)
    negative = ways * (1 - theta) * p**s * (1 - p) ** (NEW_REPLICATES - s)
    return positive - (positive + negative) * predicted


def test_90_percent_intervals_cover_90_percent(trials: list[Trial]) -> None:
    """Equal-tailed and shortest, of all three rates; three standard errors are 5 %."""
    allowed = 3 * np.sqrt(0.9 * 0.1 / DATA_SETS)
    for ends in ("interval", "hdi"):
        bounds = [getattr(trial.fit, ends)(0.9) for trial in trials]
        for rate in ("prevalence", "false_positive", "false_negative"):
            covered = [
                getattr(lower, rate) <= getattr(trial.truth, rate) <= getattr(upper, rate)
                for trial, (lower, upper) in zip(trials, bounds, strict=True)
            ]
            assert abs(np.mean(covered) - 0.9) < allowed, (ends, rate)


def test_true_rates_are_uniform_in_their_posteriors(trials: list[Trial]) -> None:
    """The rank of the truth has mean ½ and variance 1/12, and its square has mean 1/3."""
    for rate in ("prevalence", "false_positive", "false_negative"):
        rank = np.array([trial.fit.marginal(rate).cumulative(getattr(trial.truth, rate)) for trial in trials])
        assert abs(surprise(rank - 1 / 2)) < 3
        assert abs(surprise(rank**2 - 1 / 3)) < 3
        assert abs(surprise((rank - 1 / 2) ** 2 - 1 / 12)) < 3


def test_scores_of_fitted_individuals_are_frequencies(trials: list[Trial]) -> None:
    excess = np.zeros((DATA_SETS, BINS.size - 1))
    for i, trial in enumerate(trials):
        n, s, weight = trial.counts.n, trial.counts.s, trial.counts.weight
        score = trial.fit.score(n, s)
        in_bin = np.clip(np.digitize(score, BINS) - 1, 0, BINS.size - 2)
        np.add.at(excess[i], in_bin, weight * (likelihood_score(n, s, trial.truth) - score))
    assert max(abs(surprise(column)) for column in excess.T) < 3.5


def test_predictions_of_new_individuals_are_frequencies(trials: list[Trial]) -> None:
    """Among those to whom a probability of some size is predicted, and among those with some result."""
    s = np.arange(NEW_REPLICATES + 1)
    by_result, by_probability = np.zeros((DATA_SETS, s.size)), np.zeros((DATA_SETS, BINS.size - 1))
    for i, trial in enumerate(trials):
        predicted = trial.fit.predict(NEW_REPLICATES, s)
        by_result[i] = excesses(trial, s, predicted)
        np.add.at(
            by_probability[i], np.clip(np.digitize(predicted, BINS) - 1, 0, BINS.size - 2), by_result[i]
        )
    assert max(abs(surprise(column)) for column in by_result.T) < 3
    assert max(abs(surprise(column)) for column in by_probability.T) < 3


def test_the_papers_predictions_of_new_individuals_are_not(trials: list[Trial]) -> None:
    """Erratum E10: E[Y_L | data] leaves the new result out of the posterior, and is not sure enough.

    Of those with no positive replicate fewer are positive than it says, of those with six of six more.
    """
    s = np.array([0, NEW_REPLICATES])
    paper = np.array([excesses(trial, s, trial.fit.predict_paper(NEW_REPLICATES, s)) for trial in trials])
    ratio = np.array([excesses(trial, s, trial.fit.predict(NEW_REPLICATES, s)) for trial in trials])
    assert surprise(paper[:, 0]) < -5
    assert surprise(paper[:, 1]) > 5
    assert np.abs([surprise(column) for column in ratio.T]).max() < 3
