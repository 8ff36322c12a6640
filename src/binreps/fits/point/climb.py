"""Up the log posterior of (θ, p, q): one climb from each start, and the scan that finds the starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from binreps.counts import UNKNOWN
from binreps.fits.point.bounds import per_rate
from binreps.fits.point.objective import Objective, State
from binreps.model import ALIKE, Float

Mask = NDArray[np.bool_]
_ALL = np.ones(3, bool)
_ACROSS = np.array(
    [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
)  # onto the normal of p + q = 1, in logits
_ALONG = np.eye(3) - _ACROSS
_SCAN_STEPS = 5
_NEWTON_STEPS = 3
_SCAN_STARTS = 8


class Climb(NamedTuple):
    """Where a climb ended, or several side by side."""

    state: State
    converged: Any
    n_iter: Any

    def each(self) -> list[Climb]:
        """The climbs one by one."""
        columns = range(self.n_iter.size)
        return [
            Climb(State(*(x[..., j] for x in self.state)), self.converged[j], self.n_iter[j]) for j in columns
        ]


def climb(objective: Objective, start: Float, *, max_iter: int, tol: float) -> Climb:
    """Climb from a start, or from many side by side (columns), by the better of a Newton and an EM step.

    So it never descends. It has converged once Newton's model promises less than `tol` log-posterior units,
    or less than the rounding of the log posterior.
    """
    state = objective.at(start)
    converged, n_iter = np.zeros(start.shape[1:], bool), np.zeros(start.shape[1:], int)
    for _ in range(max_iter):
        n_iter += ~converged
        step, promise = newton_step(objective, state)
        arrived = promise < np.maximum(tol, np.spacing(np.abs(state.objective)))
        adrift = arrived & (np.abs(step).max(axis=0) > 1e-3)  # a plateau: rounding alone points somewhere
        state = _either(converged | adrift, state, better_step(objective, state, step))
        converged |= arrived
        if converged.all():
            break
    return Climb(_snapped(objective, state), converged, n_iter)


def better_step(objective: Objective, state: State, step: Float, movable: Mask = _ALL) -> State:
    """The Newton step, shortened until it beats the EM step; the EM step if that does not help."""
    em = objective.maximisation(state.alpha, state.beta, state.rates)
    best = objective.at(np.where(per_rate(movable, em), em, state.rates))
    enough = best.objective - 1e-14 * np.abs(state.objective)
    settled = np.zeros(best.objective.shape, bool)
    for shortening in (1.0, 0.2):
        newton = objective.at(objective.bounds.moved(state.rates, shortening * step))
        taken = ~settled & (newton.objective >= enough)
        best, settled = _either(taken, newton, best), settled | taken
        if settled.all():
            break
    return best


def _either(first: Any, one: State, other: State) -> State:
    """The one state where `first` is true, the other state elsewhere."""
    return State(*(np.where(first, a, b) for a, b in zip(one, other, strict=True)))


class Bend(NamedTuple):
    """The curvature of the objective in the rates that are free to move: sizes along orthogonal axes."""

    free: Any  # (…, 3)
    size: Float  # (…, 3), 1 along a rate that is not free
    axes: Float  # (…, 3, 3), in columns


def bend(objective: Objective, state: State, gradient: Float, movable: Mask = _ALL) -> Bend:
    """The curvature at a point or at many.

    Rates at a bound that the gradient presses against, or at 0 or 1, are not free, nor is the way across a
    border that it presses against; curvature of the wrong sign is turned over.
    """
    at_bound = objective.bounds.held(state.rates, gradient)
    free = per_rate(movable, gradient) & ~at_bound & (state.rates > 0) & (state.rates < 1)
    free = np.moveaxis(free, 0, -1)
    matrix = np.where(free[..., None] & free[..., None, :], -objective.hessian(state), np.eye(3))
    if np.any(pressed := objective.bounds.slope(state.rates, gradient) > 0):
        matrix = np.where(pressed[..., None, None], _ALONG @ matrix @ _ALONG + _ACROSS, matrix)
    if movable.sum() == 1:  # then it is diagonal
        size, axes = np.diagonal(matrix, axis1=-2, axis2=-1), np.broadcast_to(np.eye(3), matrix.shape)
    else:
        size, axes = np.linalg.eigh(matrix)
    size = np.abs(size)
    return Bend(free, np.maximum(size, 1e-15 * size.max(axis=-1, keepdims=True) + 1e-300), axes)


def newton_step(objective: Objective, state: State, movable: Mask = _ALL) -> tuple[Float, Float]:
    """An ascent direction in logits, at most 3 long, and the gain that Newton's model promises."""
    gradient = objective.gradient(state)
    free, scale, axes = bend(objective, state, gradient, movable)
    gradient[1:] -= objective.bounds.slope(state.rates, gradient)  # what presses moves nothing
    along = np.einsum("...ij,...i->...j", axes, np.moveaxis(gradient, 0, -1) * free)
    step = np.moveaxis(np.einsum("...ij,...j->...i", axes, along / scale), -1, 0)
    longest = np.maximum(np.abs(step).max(axis=0), 1e-300)
    return step * np.minimum(1.0, 3.0 / longest), 0.5 * np.sum(along**2 / scale, axis=-1)


def _snapped(objective: Objective, state: State) -> State:
    """A rate that runs to 0 or 1 never gets there in logits: take the edge where it is at least as good."""
    for i in range(3):
        for edge in (0.0, 1.0):
            gap = np.abs(state.rates[i] - edge)
            if np.any((gap > 0) & (gap < 1e-7)):
                rates = state.rates.copy()
                rates[i] = np.where(gap < 1e-7, edge, rates[i])
                candidate = objective.at(objective.bounds.cut(rates, i))
                state = _either(candidate.objective >= state.objective, candidate, state)
    polished = objective.at(objective.maximisation(state.alpha, state.beta, state.rates))
    return _either(polished.objective > state.objective, polished, state)


def scan(objective: Objective) -> list[Float]:
    """Starts: where a grid over (θ, p, q) gets in a few EM steps and, the points that differ, Newton steps.

    The EM steps carry each point onto the ridge of its basin, which may be far narrower than the grid; the
    Newton steps carry it on, because EM crawls along a flat ridge and the higher basin may look lower.
    """
    errors = objective.bounds.scanned(_error_grid(objective.counts.replicates))
    theta = np.repeat([0.05, 0.5, 0.95], errors.shape[1])
    state = objective.at(np.concatenate([theta[None], np.tile(errors, 3)]))
    for _ in range(_SCAN_STEPS):
        state = objective.at(objective.maximisation(state.alpha, state.beta, state.rates))
    state = objective.at(state.rates[:, _distinct(state)])
    for _ in range(_NEWTON_STEPS):
        state = better_step(objective, state, newton_step(objective, state)[0])
    edges = np.stack([_one_class(objective, 0.0), _one_class(objective, 1.0)], axis=1)
    state = objective.at(np.concatenate([state.rates, edges], axis=1))
    return list(state.rates[:, _distinct(state)].T[:_SCAN_STARTS])


def _distinct(state: State) -> Any:
    """Indices of the points, best first, without those that share a cell of ½ in logits with a better one."""
    order = np.argsort(-state.objective, kind="stable")
    cells = np.round(2 * np.clip(logit(state.rates[:, order]), -12, 12))
    return order[np.sort(np.unique(cells, axis=1, return_index=True)[1])]


def _one_class(objective: Objective, status: float) -> Float:
    """The start at which all unknown statuses are equal: a basin of its own, which a grid may miss.

    θ = 0 or 1 is a maximum if leaving it does not pay; otherwise the start is a step inside.
    """
    known = objective.counts.known
    y = np.where(known == UNKNOWN, status, known)
    rates = objective.maximisation(*objective.completed_counts(y, 1 - y), np.full(3, 0.25))
    rates[1:] = np.maximum(rates[1:], _smallest_error(objective.counts.replicates))
    rates = objective.bounds.cut(rates, 1 if rates[1] > rates[2] else 2)
    negative, positive = ALIKE.log_classes(objective.counts, rates[1], rates[2])
    with np.errstate(over="ignore"):
        gain = objective.weight @ np.expm1(positive - negative if status == 0 else negative - positive)
    if gain >= 0:  # at 0 the point may be a saddle: p = q = ½ with θ = 1, for one
        rates[0] = np.clip(rates[0], 1e-3, 1 - 1e-3)
    return rates


def _smallest_error(replicates: int) -> float:
    """About one error in all the data."""
    return min(1e-3, 0.5 / (replicates + 1))


def _error_grid(replicates: int) -> Float:
    """Eight error rates from about one error in all the data to just below ½."""
    low = _smallest_error(replicates)
    return np.concatenate([np.geomspace(low, 0.02, 3), [0.08, 0.18, 0.3, 0.42, 0.495]])
