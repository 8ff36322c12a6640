"""The posterior mode (MAP): its objective, its climb, and the search that finds the global one.

Everything happens in (θ, p, q) with steps taken in logits. There the objective's derivatives come from
the expectation step (Louis' identity) without any singularity::

    y = P(T = 1 | s; θ, p, q) for each cell,   α_p = a_FP − 1 + Σ w s (1−y),   β_p = b_FP − 1 + Σ w (n−s)(1−y)
    gradient:  α − rate · (α + β)              for each rate
    Hessian:   Σ w y(1−y) v vᵀ − diag((α + β) rate (1 − rate)),   v = (1, −(s − np), (n−s) − nq)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlog1py, xlogy

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import FitError, OptionError
from binreps.fits.base import (
    PointFit,
    Trouble,
    checked_prior,
    plug_in_rates,
    refuse_empty,
    rests_on_prior,
)
from binreps.model import ALIKE, NAMES, Float, Prior, Rates, score_at
from binreps.options import check_tol, check_whole

MAP_PRIOR = Prior(prevalence=(1, 1))
"""The default prior of the mode: flat in the prevalence (SPEC 4)."""

Mask = NDArray[np.bool_]
_UPPER = np.array([1.0, 0.5, 0.5])  # θ ≤ 1, p ≤ ½, q ≤ ½
_ALL = np.ones(3, bool)
_MOST_SHAPE = 2.0**53  # as many individuals as a count table takes; far above, squares overflow
_SCAN_STEPS = 5
_NEWTON_STEPS = 3
_SCAN_STARTS = 8


@dataclass(frozen=True, repr=False)
class MapFit(PointFit):
    """The posterior mode. `.rates` is the penalised optimum that scores and predictions use.

    Attributes
    ----------
    objective : float
        Log likelihood plus log prior (without the prior's constant) at the mode.
    converged : bool
        Whether the climb ended at a stationary point; a cap reached is not convergence.
    n_iter : int
        Iterations of the climb that found the mode.
    residual : float
        How far one exact maximisation step moves any rate: 0 where the optimality conditions hold.
    maxima : tuple of (Rates, float)
        The distinct local maxima met, best first, with their objectives.
    """

    kind: ClassVar[str] = "map"
    method: ClassVar[str] = "maximum a posteriori"
    prior: Prior
    objective: float
    converged: bool
    n_iter: int
    residual: float
    maxima: tuple[tuple[Rates, float], ...] = field(default=())

    @property
    def plug_in_rates(self) -> Rates:
        """The rates plugged in from the MAP scores (the stars of the paper's figure), without the prior."""
        scores = score_at(self.counts.n, self.counts.s, *self.rates)
        return plug_in_rates(self.counts, scores, self.method)[0]

    def _words(self, level: float) -> str:
        """Whether the climb converged, and whether the estimates rest on the prior."""
        del level
        stopped = "" if self.converged else f"Not converged after {self.n_iter} iterations."
        return "\n".join(filter(None, [stopped, rests_on_prior(self.counts), *self.notes]))

    def troubles(self) -> Iterator[Trouble]:
        """Whether the climb ended where it should."""
        if not self.converged:
            yield Trouble(
                "not-converged",
                self.n_iter,
                f"The climb to the mode stopped after {self.n_iter} iterations before it had converged.",
                "Raise max_iter, or use the direct algorithm, which climbs faster than EM.",
            )


class State(NamedTuple):
    """One point of a climb, or many side by side (a second axis), with the expectation step done there."""

    rates: Float  # θ, p, q
    objective: Any  # −∞ where these rates cannot have produced the data
    positive: Float  # y per cell
    negative: Float  # 1 − y per cell, kept apart: it may be far below the rounding of y
    alpha: Float  # per rate
    beta: Float


class Objective:
    """Log posterior of (θ, p, q) for one count table and prior."""

    def __init__(self, counts: CountTable, prior: Prior) -> None:
        self.counts = counts
        self.shapes = np.array(list(prior)) - 1  # a − 1, b − 1 per rate
        self.weight = counts.weight.astype(float)
        self.s = counts.s.astype(float)
        self.misses = (counts.n - counts.s).astype(float)
        w, ws, wm, none = self.weight, self.weight * self.s, self.weight * self.misses, 0 * self.weight
        self._sums = np.block([[w, none], [none, ws], [wm, none], [none, w], [none, wm], [ws, none]])

    def at(self, rates: Float) -> State:
        """The objective and the expectation step at (θ, p, q)."""
        theta, p, q = rates
        negative, positive = ALIKE.log_classes(self.counts, p, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            negative, positive = negative + np.log1p(-theta), positive + np.log(theta)
            mixture = np.logaddexp(negative, positive)
            y, z = np.exp(positive - mixture), np.exp(negative - mixture)
        if np.isneginf(mixture).any():
            y, z = np.nan_to_num(y), np.nan_to_num(z)
        alpha, beta = self.completed_counts(y, z)
        return State(rates, _added_up(self.weight, mixture) + self.log_prior(rates), y, z, alpha, beta)

    def log_prior(self, rates: Float) -> Any:
        """(a−1) log r + (b−1) log(1−r), added up over the three rates."""
        a, b = _per_rate(self.shapes.T, rates)
        return np.sum(xlogy(a, rates) + xlog1py(b, -rates), axis=0)

    def completed_counts(self, y: Float, z: Float) -> tuple[Float, Float]:
        """The Beta exponents of each rate once the statuses are filled in: θ^α (1−θ)^β and so on.

        y and z are the chances of either status, per cell (and per point, along a second axis).
        """
        exponents = np.einsum("ik,k...->i...", self._sums, np.concatenate([y, z]))
        a, b = _per_rate(self.shapes.T, exponents)
        return exponents[:3] + a, exponents[3:] + b

    def maximisation(self, alpha: Float, beta: Float, current: Float) -> Float:
        """The exact M-step: the maximiser of α log r + β log(1−r) on r ≤ 1 (θ) or r ≤ ½ (p, q).

        With β ≤ 0 < α or β < 0 the function increases up to the bound [E4]; with α = β = 0 it is flat and
        the rate stays where it is.
        """
        total = alpha + beta
        flat = (alpha == 0) & (beta == 0)
        interior = alpha / np.where(beta > 0, total, 1.0)
        upper = _per_rate(_UPPER, alpha)
        step = np.where(beta > 0, np.minimum(interior, upper), upper)
        return np.where(flat, current, step)

    def residual(self, state: State) -> float:
        """How far the M-step moves any rate."""
        return float(np.max(np.abs(self.maximisation(state.alpha, state.beta, state.rates) - state.rates)))

    def gradient(self, state: State) -> Float:
        """Derivatives in logit θ, logit p, logit q."""
        return state.alpha - state.rates * (state.alpha + state.beta)

    def hessian(self, state: State) -> Float:
        """Second derivatives in logit θ, logit p, logit q (Louis' identity)."""
        _, p, q = state.rates
        s, misses, weight = (_per_rate(x, state.positive) for x in (self.s, self.misses, self.weight))
        n = s + misses
        v = np.stack([np.ones_like(state.positive), n * p - s, misses - n * q])
        missing = np.einsum("ik...,jk...->...ij", v * (weight * state.positive * state.negative), v)
        complete = (state.alpha + state.beta) * state.rates * (1 - state.rates)
        return np.asarray(missing - np.eye(3) * np.moveaxis(complete, 0, -1)[..., None])


def map_objective(counts: CountTable, prior: Prior) -> Objective:
    """The objective of the posterior mode, if there is one."""
    refuse_empty(counts, MapFit.method)
    checked_prior(prior)
    refuse_small_shapes(prior)
    for name, shapes in zip(NAMES, prior, strict=True):
        if max(shapes) > _MOST_SHAPE:
            raise OptionError(f"the prior of {name} must have shapes of at most 2^53, got {shapes}")
    return Objective(counts, prior)


def refuse_small_shapes(prior: Prior) -> None:
    """Below 1, a shape at the open end makes the objective +∞ at the edge, whatever the data."""
    shapes = [("prevalence", prior.prevalence[0]), ("prevalence", prior.prevalence[1])]
    shapes += [("false_positive", prior.false_positive[0]), ("false_negative", prior.false_negative[0])]
    for name, shape in shapes:
        if shape < 1:
            raise FitError(
                f"a posterior mode needs prior shapes ≥ 1 (below, the density is infinite at the edge "
                f"for any data), got {shape} for {name}; fit_bayes takes them from 0.05"
            )


def _added_up(weight: Float, values: Float) -> Any:
    """Σ weight × values over the first axis; einsum, because BLAS starts threads for less than they cost."""
    return np.einsum("k,k...->...", weight, values)


def _per_rate(values: Any, like: Float) -> Any:
    """Values per rate (or cell), shaped to act on `like`, whose first axis is the rates (or cells)."""
    return values.reshape(values.shape + (1,) * (like.ndim - 1))


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
    best = objective.at(np.where(_per_rate(movable, em), em, state.rates))
    enough = best.objective - 1e-14 * np.abs(state.objective)
    settled = np.zeros(best.objective.shape, bool)
    for shortening in (1.0, 0.2):
        newton = objective.at(_moved(state.rates, shortening * step))
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

    Rates at a bound that the gradient presses against, or at 0 or 1, are not free; curvature of the wrong
    sign is turned over.
    """
    at_bound = (state.rates >= _per_rate(_UPPER, gradient)) & (gradient > 0)
    free = _per_rate(movable, gradient) & ~at_bound & (state.rates > 0) & (state.rates < 1)
    free = np.moveaxis(free, 0, -1)
    matrix = np.where(free[..., None] & free[..., None, :], -objective.hessian(state), np.eye(3))
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
    along = np.einsum("...ij,...i->...j", axes, np.moveaxis(gradient, 0, -1) * free)
    step = np.moveaxis(np.einsum("...ij,...j->...i", axes, along / scale), -1, 0)
    longest = np.maximum(np.abs(step).max(axis=0), 1e-300)
    return step * np.minimum(1.0, 3.0 / longest), 0.5 * np.sum(along**2 / scale, axis=-1)


def _moved(rates: Float, step: Float) -> Float:
    """The rates after a step in logits, or after the part of it that leads onto the first bound, p or q = ½.

    Cutting back only the rate that would cross is no ascent where rates depend on each other.
    """
    upper = _per_rate(_UPPER, rates)
    room = np.where(upper < 1, -logit(rates), np.inf)  # logit ½ = 0
    crossing = (step > room) & (room > 0)
    part = np.min(np.where(crossing, room / np.where(crossing, step, 1.0), 1.0), axis=0)
    moved = np.where(crossing & (part * step >= room), upper, expit(logit(rates) + part * step))
    return np.asarray(np.minimum(moved, upper))


def _snapped(objective: Objective, state: State) -> State:
    """A rate that runs to 0 or 1 never gets there in logits: take the edge where it is at least as good."""
    for i in range(3):
        for edge in (0.0, 1.0):
            gap = np.abs(state.rates[i] - edge)
            if np.any((gap > 0) & (gap < 1e-7)):
                rates = state.rates.copy()
                rates[i] = np.where(gap < 1e-7, edge, rates[i])
                candidate = objective.at(rates)
                state = _either(candidate.objective >= state.objective, candidate, state)
    polished = objective.at(objective.maximisation(state.alpha, state.beta, state.rates))
    return _either(polished.objective > state.objective, polished, state)


def scan(objective: Objective) -> list[Float]:
    """Starts: where a grid over (θ, p, q) gets in a few EM steps and, the points that differ, Newton steps.

    The EM steps carry each point onto the ridge of its basin, which may be far narrower than the grid; the
    Newton steps carry it on, because EM crawls along a flat ridge and the higher basin may look lower.
    """
    errors = _error_grid(objective.counts.replicates)
    grid = np.stack(np.meshgrid([0.05, 0.5, 0.95], errors, errors, indexing="ij"))
    state = objective.at(grid.reshape(3, -1))
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


def map_fit(objective: Objective, prior: Prior, climbs: list[Climb]) -> MapFit:
    """The best of several climbs as a result, with the distinct maxima they met."""
    ranked = sorted(climbs, key=lambda end: -end.state.objective)
    best = ranked[0]
    maxima: list[tuple[Rates, float]] = []
    for end in ranked:
        if end.converged and all(_dips(objective, end.state, rates) for rates, _ in maxima):
            maxima.append((Rates(*end.state.rates), float(end.state.objective)))
    return MapFit(
        objective.counts,
        Rates(*best.state.rates),
        prior=prior,
        objective=float(best.state.objective),
        converged=bool(best.converged),
        n_iter=int(best.n_iter),
        residual=objective.residual(best.state),
        maxima=tuple(maxima),
        notes=_flat(best.state),
    )


def _dips(objective: Objective, state: State, better: Rates) -> bool:
    """Whether the straight way from a maximum to a better one leads down first; if not, they are one."""
    share = np.array([1e-3, 1e-2, 0.1, 0.5])
    way = state.rates[:, None] * (1 - share) + np.array(list(better))[:, None] * share
    level = state.objective - 1e-10 * (1 + abs(state.objective))
    return bool(np.any(objective.at(way).objective < level))


def _flat(state: State) -> tuple[str, ...]:
    """Rates on which neither data nor prior have a say are arbitrary: tell."""
    flat = np.flatnonzero((state.alpha == 0) & (state.beta == 0))
    reason = "neither the data nor the flat prior say anything about it"
    return tuple(f"{NAMES[i]} is arbitrary: {reason}" for i in flat)


def fit_map(
    counts: CountTable, prior: Prior = MAP_PRIOR, *, max_iter: int = 500, tol: float = 1e-12
) -> MapFit:
    """The posterior mode: the global maximum of log likelihood plus log prior over θ ≤ 1, p ≤ ½, q ≤ ½.

    A scan over (θ, p, q) finds the basins; a Newton climb that falls back on EM steps finishes each. Known
    statuses are held fixed. For the paper's algorithm see `fit_map_em`.

    Parameters
    ----------
    counts : CountTable
        At least one individual.
    prior : Prior
        Shapes ≥ 1 where the rate can reach 0 or 1; the default is flat in the prevalence.
    max_iter, tol : int, float
        Cap of each climb, and the gain in log posterior below which it has converged.

    Returns
    -------
    MapFit

    Examples
    --------
    >>> fit = fit_map(CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20]))
    >>> fit.converged, len(fit.maxima)
    (True, 1)
    >>> print(fit)
    maximum a posteriori: 100 individuals, 400 replicates, 4 cells
    rate            estimate  sd  lower  upper
    prevalence         0.300   –      –      –
    false-positive     0.076   –      –      –
    false-negative     0.092   –      –      –
    sensitivity        0.908   –      –      –
    specificity        0.924   –      –      –
    """
    check_whole("max_iter", max_iter, 1)
    check_tol(tol)
    objective = map_objective(counts, prior)
    if counts.fully_known:
        return map_fit(objective, prior, [known_climb(objective)])
    starts = np.stack(scan(objective), axis=1)
    return map_fit(objective, prior, climb(objective, starts, max_iter=max_iter, tol=tol).each())


def known_climb(objective: Objective) -> Climb:
    """Every status known: one M-step is the answer. A rate without any information is put at ¼."""
    y = objective.counts.known.astype(float)
    alpha, beta = objective.completed_counts(y, 1 - y)
    return Climb(objective.at(objective.maximisation(alpha, beta, np.full(3, 0.25))), True, 1)
