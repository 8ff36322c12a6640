"""The posterior mode by expectation–maximisation, as the paper defines it (its Algorithm 1, corrected)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.point.mode import (
    MAP_PRIOR,
    Climb,
    MapFit,
    Objective,
    State,
    known_climb,
    map_fit,
    map_objective,
)
from binreps.model import Float, Prior
from binreps.options import check_tol, check_whole, generator


def fit_map_em(
    counts: CountTable,
    prior: Prior = MAP_PRIOR,
    *,
    rng: np.random.Generator | int,
    starts: int = 20,
    max_iter: int = 1000,
    tol: float = 1e-10,
) -> MapFit:
    """The posterior mode by EM from several random starts; `fit_map` is certain and faster.

    Each start draws scores y ~ Beta(s+½, n−s+½) per cell; then M-steps with p, q ≤ ½ [E4] and E-steps
    alternate, known statuses clamped, until the objective gains less than `tol`. There is no relabelling:
    the constraint makes it unnecessary [E3].

    Examples
    --------
    >>> counts = CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20])
    >>> fit = fit_map_em(counts, rng=1)
    >>> fit.converged, round(fit.rates.prevalence, 3)
    (True, 0.3)
    """
    check_whole("starts", starts, 1)
    check_whole("max_iter", max_iter, 1)
    check_tol(tol)
    source = generator(rng)
    objective = map_objective(counts, prior)
    if counts.fully_known:
        return map_fit(objective, prior, [known_climb(objective)])
    ends = [
        _climb_em(em_path(objective, random_scores(counts, source)), max_iter, tol) for _ in range(starts)
    ]
    return map_fit(objective, prior, ends)


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


def _climb_em(path: Iterator[State], max_iter: int, tol: float) -> Climb:
    """Follow a path until it gains less than tol, or to the cap."""
    state = next(path)
    for iteration in range(1, max_iter + 1):
        following = next(path)
        if following.objective - state.objective < tol:
            return Climb(following, True, iteration)
        state = following
    return Climb(state, False, max_iter)
