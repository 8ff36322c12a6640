"""Expectation–maximisation from random scores: the paper's Algorithm 1, corrected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.point.climb import Climb
from binreps.fits.point.objective import Objective, State
from binreps.model import Float


def climb_em(objective: Objective, scores: Float, *, max_iter: int, tol: float) -> Climb:
    """Follow EM from each column of scores until it gains less than tol, or to the cap."""
    path = em_path(objective, scores)
    end = next(path)
    converged, n_iter = np.zeros(scores.shape[1], bool), np.zeros(scores.shape[1], int)
    for _ in range(max_iter):
        following, left = next(path), ~converged
        n_iter += left
        converged |= following.objective - end.objective < tol
        end.put(left, following.of(left))
        if converged.all():
            break
    return Climb(end, converged, n_iter, np.zeros_like(converged))


def random_scores(counts: CountTable, rng: np.random.Generator, size: int) -> Float:
    """Columns of starting scores Beta(s+½, n−s+½), the known ones clamped."""
    y = rng.beta(counts.s + 0.5, counts.n - counts.s + 0.5, (size, len(counts)))
    return np.where(counts.known == UNKNOWN, y, counts.known).T


def em_path(objective: Objective, scores: Float) -> Iterator[State]:
    """The endless sequence of EM states from given scores; the objective never decreases along it."""
    exponents = objective.completed_counts(np.stack([scores, 1 - scores]))
    rates = np.full(exponents.shape[1:], 0.25)
    while True:
        state = objective.at(objective.maximisation(exponents, rates))
        rates, exponents = state.rates, state.exponents
        yield State(*(x.copy() for x in state))
