"""Up the log posterior of (θ, p, q): one climb from each start, and the scan that finds the starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from binreps.counts import UNKNOWN
from binreps.fits.point.bounds import per_rate
from binreps.fits.point.objective import Objective, State
from binreps.model import Float

_ACROSS = np.array(
    [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
)  # onto the normal of p + q = 1, in logits
_ALONG = np.eye(3) - _ACROSS
_UNSEEN = 1e-6  # log-posterior units that nobody would see
_CLEARLY = 1e-6  # of a curvature, what is left of it after elimination: far above rounding
_PREVALENCES = (0.15, 0.85)
_ERRORS = (0.02, 0.08, 0.18, 0.3, 0.42, 0.495)  # and two smaller ones, from about one error in all the data
_EM_STEPS, _NEWTON_STEPS = 5, 3  # of a scan
_FEW_STARTS, _MOST_STARTS = 8, 24  # near the highest maxima; to find all of them
_NEARER = 0.95  # of the distance to a known maximum, at most, after a step that leads there
_IN_CACHE = 2**15  # numbers of an array that a processor keeps at hand
_ON_THE_WAY = np.array([0, 0.02, 0.1, 0.25, 0.45, 0.65, 0.85])  # shares of a straight way


class Climb(NamedTuple):
    """Where climbs ended."""

    state: State
    converged: NDArray[np.bool_]
    n_iter: NDArray[np.int64]
    given_up: NDArray[np.bool_]  # on the way to a maximum that was known

    def of(self, which: Any) -> Climb:
        """Some of the climbs."""
        return Climb(self.state.of(which), *(x[which] for x in self[1:]))

    def joined(self, other: Climb) -> Climb:
        """These climbs and others."""
        state = State(*(np.concatenate(x, axis=-1) for x in zip(self.state, other.state, strict=True)))
        return Climb(state, *(np.concatenate(x) for x in zip(self[1:], other[1:], strict=True)))


# One climb from each start -------------------------------------------------------------------------------


def climb(
    objective: Objective, start: Float, *, max_iter: int, tol: float, known: Float | None = None
) -> Climb:
    """Climb from each start, by Newton steps that keep their promise and others where they do not.

    So it never descends. It has converged once Newton's model promises less than `tol` log-posterior units,
    or less than the rounding of the log posterior. It is given up where it leads to a maximum that is known.
    """
    ends, size = start.copy(), start.shape[1]
    n_iter, converged, given_up = np.zeros(size, int), np.zeros(size, bool), np.zeros(size, bool)
    left, some, state = np.arange(size), objective, objective.at(start)
    for _ in range(max_iter if size else 0):
        n_iter[left] += 1
        step, promise = newton_step(some, state)
        rounding = np.spacing(np.abs(state.objective))
        arrived = promise < np.maximum(tol, rounding)
        following = better_step(some, state, step, promise)
        stuck = ~arrived & (following.objective <= state.objective)  # nothing gains more than rounding
        ends[:, left] = np.where(stuck, state.rates, following.rates)
        converged[left] = arrived | (stuck & (promise < np.maximum(_UNSEEN, 100 * rounding)))
        going = ~(arrived | stuck)
        if known is not None:
            given_up[left] = leads = _leads(some, state.rates, following.rates, known[:, left])
            going &= ~leads
        if not going.any():
            break
        state = following
        if not going.all():
            left, state, some = left[going], state.of(going), some.of(going)
    return Climb(_snapped(objective, objective.at(ends)), converged, n_iter, given_up)


def _leads(objective: Objective, before: Float, after: Float, end: Float) -> Any:
    """Whether a step nears a known maximum, and the rest of the way there is uphill.

    Uphill alone is not enough: from a slope between two hills both may be reached.
    """
    there = _clipped_logit(end)
    far, near = (np.abs(_clipped_logit(x) - there).max(axis=0) for x in (before, after))
    leads = near <= _NEARER * far
    if leads.any():
        leads[leads] = _uphill(objective.of(leads), after[:, leads], end[:, leads])
    return leads


def _clipped_logit(rates: Float) -> Float:
    """Logits, of which those of less than 10⁻⁵ are alike."""
    return np.clip(logit(rates), -12, 12)


def better_step(objective: Objective, state: State, step: Float, promise: Float) -> State:
    """The Newton step, if it gains half of what it promised; else the best of several.

    These are the EM step, the Newton step and a part of it, and where EM steps lead from these: back onto a
    curved ridge that they left.
    """
    best = objective.at(objective.bounds.moved(state.rates, step))
    short = best.objective - state.objective < promise / 2
    if short.any():
        tried = objective.of(short), state.of(short), best.of(short), step[:, short]
        best.put(short, _best_of_several(*tried))
    return best


def _best_of_several(objective: Objective, state: State, newton: State, step: Float) -> State:
    """As `better_step` says."""
    part = objective.at(objective.bounds.moved(state.rates, 0.2 * step))
    led = np.stack([objective.maximisation(x.exponents, x.rates) for x in (newton, part, state)], axis=-1)
    rounding = 1e-14 * np.abs(state.objective)  # a longer step that is no worse, but for this, will do
    after = objective.spread().at(led)
    far = np.stack([newton.objective + 2 * rounding, part.objective + rounding], axis=-1)
    best = np.concatenate([far, after.objective], axis=-1).argmax(axis=-1)
    for i, other in enumerate([part, *(after.of(k) for k in range(led.shape[-1]))], start=1):
        _improve(newton, other, best == i)
    return newton


def newton_step(objective: Objective, state: State) -> tuple[Float, Float]:
    """An ascent direction in logits, at most 3 long, and the gain that Newton's model promises.

    Rates at a bound that the gradient presses against, or at 0 or 1, do not move, nor does the way across a
    border that it presses against.
    """
    gradient = objective.gradient(state)
    held = objective.bounds.held(state.rates, gradient) | (state.rates <= 0) | (state.rates >= 1)
    matrix = -objective.hessian(state)
    if held.any():
        gradient[held] = 0.0
        matrix = np.where(held[:, None] | held, per_rate(np.eye(3), gradient), matrix)
    slope = objective.bounds.slope(state.rates, gradient)
    if np.any(pressed := slope > 0):
        along = np.einsum("ij,jk...,kl->il...", _ALONG, matrix, _ALONG) + per_rate(_ACROSS, gradient)
        matrix = np.where(pressed, along, matrix)
        gradient[1:] -= slope  # what presses moves nothing
    step = _against_curvature(matrix, gradient)
    promise = 0.5 * (gradient * step).sum(axis=0)
    return step * np.minimum(1.0, 3.0 / np.maximum(np.abs(step).max(axis=0), 1e-300)), promise


def _against_curvature(matrix: Float, gradient: Float) -> Float:
    """matrix⁻¹ gradient by elimination; curvature that is not clearly of the right sign is turned over."""
    (a, b, c), (_, d, e), (_, _, f) = matrix
    with np.errstate(all="ignore"):
        l_b, l_c = b / a, c / a
        d_2, e_2 = d - l_b * b, e - l_b * c
        l_e = e_2 / d_2
        f_2 = f - l_c * c - l_e * e_2
        plain = (a > 0) & (d_2 > _CLEARLY * d) & (d > 0) & (f_2 > _CLEARLY * f) & (f > 0)
        x, y, z = gradient
        y = y - l_b * x
        z = (z - l_c * x - l_e * y) / f_2
        y = y / d_2 - l_e * z
        step = np.stack([x / a - l_b * y - l_c * z, y, z])
    if not plain.all():
        step[:, ~plain] = _turned_over(matrix[..., ~plain].T, gradient[:, ~plain].T).T
    return step


def _turned_over(matrix: Float, gradient: Float) -> Float:
    """matrix⁻¹ gradient with the absolute value of every curvature; points first."""
    size, axes = np.linalg.eigh(matrix)
    size = np.abs(size)
    size = np.maximum(size, 1e-15 * size.max(axis=-1, keepdims=True) + 1e-300)
    along = np.einsum("...ij,...i->...j", axes, gradient) / size
    return np.asarray(np.einsum("...ij,...j->...i", axes, along))


def _snapped(objective: Objective, state: State) -> State:
    """A rate that runs to 0 or 1 never gets there in logits: take the edge where it is at least as good."""
    for edge in (0.0, 1.0):
        gap = np.abs(state.rates - edge)
        near = (gap > 0) & (gap < 1e-7)
        for i in np.flatnonzero(near.any(axis=1)):
            rates = state.rates.copy()
            rates[i, near[i]] = edge
            edged = objective.at(objective.bounds.cut(rates, np.where(near[i], i, 0)))
            _improve(state, edged, edged.objective >= state.objective)
    polished = objective.at(objective.maximisation(state.exponents, state.rates))
    _improve(state, polished, polished.objective > state.objective)
    return state


def _improve(state: State, other: State, where: Any) -> None:
    """Put other points in place of those that they improve."""
    if where.any():
        state.put(where, other.of(where))


# Where to start ------------------------------------------------------------------------------------------


class Starts(NamedTuple):
    """Points from which to climb, and of which table each is; those of a table together, the best first."""

    rates: Float
    table: NDArray[np.intp]

    def of(self, which: Any) -> Starts:
        """Some of the starts."""
        return Starts(self.rates[:, which], self.table[which])


def scan(objective: Objective) -> list[Float]:
    """The best starts of one table, the highest first."""
    return list(starts(objective).rates.T[:_FEW_STARTS])


def starts(objective: Objective) -> Starts:
    """Where a grid over (θ, p, q) gets in a few EM steps and, the points that differ, Newton steps.

    The EM steps carry each point onto the ridge of its basin, which may be far narrower than the grid; the
    Newton steps carry it on, because EM crawls along a flat ridge and the higher basin may look lower.
    """
    found = _swept(objective)
    own = objective.of(found.table)
    state = own.at(found.rates)
    for _ in range(_NEWTON_STEPS):
        state = better_step(own, state, *newton_step(own, state))
    found = _distinct(Starts(state.rates, found.table), state.objective)
    rank = np.arange(found.table.size) - np.searchsorted(found.table, found.table)
    return found.of(rank < _MOST_STARTS)


def _swept(objective: Objective) -> Starts:
    """The points that differ after EM steps from a grid, a few tables at a time."""
    rates = np.concatenate([_grid(objective), _one_class(objective)], axis=-1)
    table, value = np.repeat(np.arange(objective.tables), rates.shape[2]), np.empty(rates.shape[1:])
    size = max(1, _IN_CACHE // max(1, len(objective.cells.s) * rates.shape[2]))
    for start in range(0, objective.tables, size):
        some = slice(start, start + size)
        few, here = objective.of(some).spread(), rates[:, some]
        for _ in range(_EM_STEPS):
            here = few.em_step(here)
        rates[:, some], value[some] = here, few.value(here)
    return _distinct(Starts(rates.reshape(3, -1), table), value.ravel())


def _distinct(found: Starts, value: Float) -> Starts:
    """Points without those that share a cell of ½ in logits with a better one of the same table."""
    theta, p, q = np.rint(2 * _clipped_logit(found.rates)).astype(np.int64) + 24  # 0 to 48
    cell = ((found.table * 49 + theta) * 49 + p) * 49 + q
    order = np.lexsort((-value, cell))
    first = order[np.diff(cell[order], prepend=-1) != 0]
    return found.of(first[np.lexsort((-value[first], found.table[first]))])


def _grid(objective: Objective) -> Float:
    """Points of each table, along a last axis."""
    least = _smallest_error(objective)
    errors = [least, np.sqrt(_ERRORS[0] * least), *(np.full_like(least, error) for error in _ERRORS)]
    p, q = np.moveaxis(objective.bounds.scanned(np.stack(errors)), 1, -1)
    each = [np.stack([np.full_like(p, theta), p, q]) for theta in _PREVALENCES]
    return np.concatenate(each, axis=-1)


def _smallest_error(objective: Objective) -> Float:
    """About one error in all the data of each table."""
    replicates = objective.cells.sums[1:].sum(axis=(0, 1))
    return np.asarray(np.minimum(1e-3, 0.5 / (replicates + 1)))


def _one_class(objective: Objective) -> Float:
    """Points at which all unknown statuses are equal, positive or negative: basins that a grid may miss.

    θ = 0 or 1 is a maximum if leaving it does not pay; otherwise the point is a step inside.
    """
    status, least, objective = np.array([0.0, 1.0]), _smallest_error(objective)[:, None], objective.spread()
    y = np.where(objective.cells.known == UNKNOWN, status, objective.cells.known)
    exponents = objective.completed_counts(np.stack([y, 1 - y]))
    rates = objective.maximisation(exponents, np.full((3, 1, 1), 0.25))
    rates[1:] = np.maximum(rates[1:], least)
    rates = objective.bounds.cut(rates, np.where(rates[1] > rates[2], 1, 2))
    with np.errstate(divide="ignore", over="ignore"):
        gain = objective.cells.weight * np.expm1((1 - 2 * status) * objective.evidence(rates))
    inside = gain.sum(axis=0) >= 0  # at 0 a saddle, perhaps: p = q = ½ with θ = 1
    rates[0] = np.where(inside, np.clip(rates[0], 1e-3, 1 - 1e-3), rates[0])
    return rates


# The whole search ----------------------------------------------------------------------------------------


def search(objective: Objective, *, max_iter: int, tol: float) -> tuple[Climb, NDArray[np.intp]]:
    """Where climbs end, and of which table each is: from the best start, and from those on other hills."""
    start = starts(objective)
    first = np.diff(start.table, prepend=-1) > 0
    best, rest = start.of(first), start.of(~first)
    ends = climb(objective.of(best.table), best.rates, max_iter=max_iter, tol=tol)
    known = ends.state.rates[:, rest.table]
    others = climb(objective.of(rest.table), rest.rates, max_iter=max_iter, tol=tol, known=known)
    kept = ~others.given_up
    return ends.joined(others.of(kept)), np.concatenate([best.table, rest.table[kept]])


def _uphill(objective: Objective, start: Float, end: Float) -> Any:
    """Whether a way to an end leads up all along: the straight one, or θ first and then straight.

    The objective is concave in θ: if it is no lower at the other end, it is nowhere lower in between.
    """
    turn = np.stack([end[0], *start[1:]])
    ways = np.concatenate([_straight(start, end), _straight(turn, end)], axis=-1)
    straight, turned = np.split(objective.spread().value(ways), 2, axis=-1)
    free = turned[:, 0] >= straight[:, 0] - 1e-12 * np.abs(straight[:, 0])
    up, up_after = ((np.diff(way) > 0).all(axis=-1) for way in (straight, turned))
    return up | (free & up_after)


def _straight(start: Float, end: Float) -> Float:
    """Points on the straight way between others, along a last axis."""
    return np.asarray(start[..., None] * (1 - _ON_THE_WAY) + end[..., None] * _ON_THE_WAY)
