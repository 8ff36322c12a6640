"""Expectation–maximisation from random scores: the paper's Algorithm 1, corrected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.point.climb import Climb
from binreps.fits.point.objective import Objective, State
from binreps.model import Float


def climb_em(objective: Objective, rng: np.random.Generator, *, max_iter: int, tol: float) -> Climb:
    """Follow EM from random scores until it gains less than tol, or to the cap."""
    path = em_path(objective, random_scores(objective.counts, rng))
    state = next(path)
    for iteration in range(1, max_iter + 1):
        following = next(path)
        if following.objective - state.objective < tol:
            return Climb(following, True, iteration)
        state = following
    return Climb(state, False, max_iter)


def random_scores(counts: CountTable, rng: np.random.Generator) -> Float:
    """Starting scores Beta(s+½, n−s+½), the known ones clamped."""
    y = rng.beta(counts.s + 0.5, counts.n - counts.s + 0.5)
    return np.where(counts.known == UNKNOWN, y, counts.known)


def em_path(objective: Objective, scores: Float) -> Iterator[State]:
    """The endless sequence of EM states from given scores; the objective never decreases along it."""
    alpha, beta = objective.completed_counts(scores, 1 - scores)
    rates = np.full(3, 0.25)
    while True:
        state = objective.at(objective.maximisation(alpha, beta, rates))
        yield state
        rates, alpha, beta = state.rates, state.alpha, state.beta
