"""A product of three Gauss rules on a box: the usual case, and the fastest."""

from __future__ import annotations

import contextlib

import numpy as np
from scipy.special import expit, logit

from binreps.counts import CountTable
from binreps.fits.exact.density import AXES, END, Density
from binreps.fits.exact.gauss import Interval
from binreps.fits.exact.grid import Grid, Marginal
from binreps.fits.point.climb import climb, scan
from binreps.fits.point.objective import Objective
from binreps.model import Float, Prior

CUT = 30.0
"""A box or an interval ends where the density has fallen by e^−CUT below its peak."""

_COARSE = 15  # nodes per axis while the box is looked for
_UNRESOLVED = 1.7  # a line that occupies fewer nodes than this shows nothing reliable
_RESOLVED = 4.6  # a line that occupies so many nodes is integrated to about 1e-9
_RESOLVED_INSIDE = 3.7  # the same for one that touches no end of the domain and is nearly Gaussian
_MOST_NODES = 150_000

Box = tuple[Interval, Interval, Interval]


class UnresolvedError(ArithmeticError):
    """The posterior does not fit a box: a ridge, or modes far apart."""


class BoxGrid(Grid):
    """A grid that is a product of rules on a box."""

    def __init__(self, density: Density, box: Box, sizes: tuple[int, ...]) -> None:
        self.box, self.sizes = box, sizes
        nodes = [box[i].nodes(sizes[i]).reshape(_along(i)) for i in AXES]
        weights = [
            box[i].log_weights(sizes[i]).reshape(_along(i)) + density.log_prior_rest(i, nodes[i], box[i])
            for i in AXES
        ]
        log_mass = density.log_ratio(*nodes) + (weights[0] + weights[1] + weights[2])
        super().__init__(density, (nodes[0], nodes[1], nodes[2]), log_mass)

    def line(self, axis: int) -> Float:
        """Marginal mass at the nodes of one axis."""
        return np.asarray(self.mass.sum(axis=tuple(i for i in AXES if i != axis)))

    def log_marginal(self, axis: int) -> Float:
        """Logarithm of the marginal density of a rate's logit at the nodes of its axis, up to a constant.

        The density of the rate itself may rise without bound at an end: it says nothing about the mass there.
        """
        inside, x = self.box[axis], self.nodes[axis].ravel()
        with np.errstate(divide="ignore"):
            ends = inside.a * np.log(x - inside.lower) + inside.b * np.log(inside.upper - x)
            ends += np.log(x) + np.log1p(-x)
            return np.asarray(np.log(self.line(axis)) - inside.log_weights(self.sizes[axis]) + ends)

    def occupied(self, axis: int) -> float:
        """How many nodes a typical line along the axis occupies: 1 / mean of Σ g² / (Σ g)².

        g is the mass; beside a singular end it is the mass over the weight, most of which is on one node.
        """
        lines, values, inside = self.mass.sum(axis=axis), self.mass, self.box[axis]
        if min(inside.a, inside.b) < 0:
            weights = np.exp(inside.log_weights(self.sizes[axis]))
            values = values / (weights / weights.max()).reshape(_along(axis))
        others = "abc".replace("abc"[axis], "")
        squares = np.einsum(f"abc,abc->{others}", values, values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return 1 / float(np.nansum(lines * squares / values.sum(axis=axis) ** 2))

    def resized(self, factor: float) -> BoxGrid:
        """The same box with more or fewer nodes."""
        return BoxGrid(self.density, self.box, tuple(int(np.ceil(size * factor)) for size in self.sizes))

    def marginal(self, axis: int) -> Marginal:
        """The marginal density of one rate, from a grid with twice the nodes on its axis.

        A rule of n nodes integrates like a polynomial of degree 2n but interpolates like one of degree n.
        """
        sizes = tuple(2 * size if i == axis else size for i, size in enumerate(self.sizes))
        fine = BoxGrid(self.density, self.box, sizes)
        return Marginal([(self.box[axis], fine.line(axis))])


def _along(axis: int) -> tuple[int, ...]:
    """The shape of an array along one axis of three."""
    return tuple(-1 if i == axis else 1 for i in AXES)


def find_peak(counts: CountTable, prior: Prior) -> tuple[Density, Float]:
    """The density centred at its highest mode in logits, and the spread of each logit there.

    A spread is made large enough for 8 of them to reach every other mode that matters.
    """
    objective = lifted_objective(counts, prior)
    few = counts.replicates < 2000  # then the box covers every mode, and any point will do as its centre
    starts = [np.array([0.5, 0.2, 0.2])] if few else scan(objective)
    end = climb(objective, starts[0], max_iter=100, tol=0.01)
    curvature = -objective.hessian(end.state)
    spread = 1 / np.sqrt(np.maximum(np.diag(curvature), 0.01))
    with contextlib.suppress(np.linalg.LinAlgError):
        variance = np.diag(np.linalg.inv(curvature))
        spread = np.where(variance > 0, np.sqrt(np.abs(variance)), spread)
    spread = np.minimum(spread, 3.0)
    level = end.state.objective - 0.75 * CUT
    modes = [end.state.rates, *(start for start in starts[1:] if objective.at(start).objective > level)]
    reach = np.abs(logit(modes) - logit(end.state.rates)).max(axis=0)
    return Density(counts, prior, end.state.rates, np.array(modes)), spread + reach / 8


def lifted_objective(counts: CountTable, prior: Prior) -> Objective:
    """The log density of the logits: every exponent of the prior gains 1."""
    return Objective(counts, Prior(*((a + 1, b + 1) for a, b in prior)))


def integrate_box(density: Density, spread: Float, tol: float) -> tuple[BoxGrid, BoxGrid]:
    """Grids of growing size on the right box until two agree: the last two, the finer first."""
    seen = find_box(density, spread)
    wanted = [
        _RESOLVED_INSIDE if inside.lower > 0 and inside.upper < END[i] else _RESOLVED
        for i, inside in enumerate(seen.box)
    ]
    needed = [max(9, np.ceil(seen.sizes[i] * wanted[i] / seen.occupied(i))) for i in AXES]
    if np.prod(needed) > _MOST_NODES:
        raise UnresolvedError
    grid = BoxGrid(density, seen.box, tuple(int(size) for size in needed))
    while True:
        finer = grid.resized(1.15)
        if finer.distance(grid) < tol:
            return finer, grid
        if finer.mass.size > _MOST_NODES:
            raise UnresolvedError
        grid = finer


def find_box(density: Density, spread: Float) -> BoxGrid:
    """A coarse grid on a box that holds the posterior.

    Start at ±8 spreads around the peak, then widen and trim each end by what the grid shows.
    """
    middle = logit(density.centre)
    ends = np.stack([middle - 8 * spread, middle + 8 * spread], axis=1)
    sizes = np.full(3, _COARSE)
    grid = BoxGrid(density, _box(density, ends), tuple(sizes.tolist()))
    for _ in range(60):
        ends = np.array([_ends(grid, i, ends[i]) for i in AXES])
        box = _box(density, ends)
        if box == grid.box:
            rough = np.array([grid.occupied(i) for i in AXES]) < _UNRESOLVED
            if not rough.any():
                return _holding_every_mode(grid)
            sizes = np.where(rough, np.ceil(sizes * 1.4), sizes).astype(int)
        if np.prod(sizes) > _MOST_NODES:
            raise UnresolvedError
        grid = BoxGrid(density, box, tuple(sizes.tolist()))
    raise UnresolvedError


def _holding_every_mode(grid: BoxGrid) -> BoxGrid:
    """The grid, unless a mode fell between its nodes while the box was trimmed."""
    for axis, inside in enumerate(grid.box):
        x = grid.density.modes[:, axis]
        if np.any((x < inside.lower) | (x > inside.upper)):
            raise UnresolvedError
    return grid


def _box(density: Density, ends: Float) -> Box:
    """Intervals from logits; an end that is relatively close to the end of the domain is put there."""
    low, high = snapped(expit(ends[:, 0]), expit(ends[:, 1]), np.array(END))
    box = [density.interval(i, float(low[i]), float(high[i])) for i in AXES]
    return box[0], box[1], box[2]


def snapped(low: Float, high: Float, end: Float) -> tuple[Float, Float]:
    """Ends that lie close to 0 or to the end of the domain, compared with the rest, moved there."""
    high = np.minimum(high, end)
    low = np.where(low < 0.05 * high, 0.0, low)
    room = np.where(end == 1, 1 - low, high - low)
    return low, np.where(end - high < 0.05 * room, end, high)


def _ends(grid: BoxGrid, axis: int, ends: Float) -> Float:
    """The logits of the ends, moved to where the marginal density has fallen by e^−CUT."""
    level = grid.log_marginal(axis)
    above = np.flatnonzero(level > level.max() - CUT)
    first, last = above[0], above[-1]
    x = logit(grid.nodes[axis].ravel())
    lower, upper = ends
    step = 0.4 * (min(upper, 40.0) - max(lower, -40.0))
    if first == 0:
        lower -= step
    elif first > 3:
        lower = x[first - 2]
    if last == x.size - 1:
        upper += step
    elif last < x.size - 4:
        upper = x[last + 2]
    return np.array([lower, upper])
