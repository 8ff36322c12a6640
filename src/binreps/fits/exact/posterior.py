"""The integrated posterior, whichever rule it took: grids, marginals, lines of θ, and independent draws."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.chances import TOLERANCE, ExactPosterior
from binreps.fits.exact.density import AXES, Density
from binreps.fits.exact.gauss import Interval, Series, jacobi_polynomials, jacobi_rule
from binreps.fits.exact.grid import Grid, Marginal
from binreps.fits.exact.lines import ThetaLines, lines_that_matter, sorts_that_matter
from binreps.fits.exact.nested import NestedGrid, integrate_nested, slices
from binreps.fits.exact.support import Lines, Support
from binreps.fits.exact.tensor import BoxGrid, UnresolvedError, find_peak, integrate_box
from binreps.fits.posterior import Key
from binreps.model import Float, Prior

_LINES_CUT = 24.0  # a line that weighs e^−24 of the heaviest does not matter
_MOST_ON_LINES = 800_000  # nodes on all lines
_MOST_IN_NEST = 2_300_000  # nodes: more would take too long to be worth it
_LARGEST = 250_000  # nodes of a finer grid
_BLOCK = 12_000  # nodes at a time


def integrate(counts: CountTable, prior: Prior, tol: float = TOLERANCE) -> OnePopulation:
    """The posterior on a box if it fits one, otherwise by nested rules."""
    density, spread = find_peak(counts, prior)
    try:
        return BoxPosterior(counts, *integrate_box(density, spread, tol))
    except UnresolvedError:
        return NestedPosterior(counts, density, tol)


class OnePopulation(ExactPosterior):
    """The posterior of one population, which can be integrated again with more individuals."""

    def __init__(self, counts: CountTable, grid: Grid, check: Grid) -> None:
        self.counts, self.grid, self.check = counts, grid, check
        super().__init__(grid.distance(check))

    def with_more(self, more: CountTable) -> OnePopulation:
        """Integrated again."""
        return integrate(self.counts + more, self.grid.density.prior)

    def is_fitted(self, key: Key) -> bool:
        """Whether the table has the cell."""
        return has_cell(self.counts, key)


class BoxPosterior(OnePopulation):
    """On a product of rules."""

    rule = "box"
    grid: BoxGrid
    check: BoxGrid

    def __init__(self, counts: CountTable, grid: BoxGrid, check: BoxGrid) -> None:
        super().__init__(counts, grid, check)
        self._marginals: dict[int, Marginal] = {}
        self._lines: dict[tuple[float, int], list[ThetaLines]] = {}

    def marginal(self, axis: int) -> Marginal:
        """From a grid with more nodes on the axis."""
        if axis not in self._marginals:
            self._marginals[axis] = self.grid.marginal(axis)
        return self._marginals[axis]

    def finer_grids(self) -> Iterator[Grid]:
        """Grids with half as many nodes again on each axis, and again."""
        grid = self.grid
        while 3.4 * grid.mass.size < _LARGEST:
            grid = grid.resized(1.5)
            yield grid

    def other_grids(self, fitted: bool) -> list[Grid]:
        """Beside a pole of the prior two grids may agree and both be wrong: a third has its nodes there."""
        return [self.check] if fitted else [self.check, self.stretched]

    @cached_property
    def _wide(self) -> BoxGrid:
        """A grid with more nodes on p and q, from which p given q is interpolated (to about 1e-6)."""
        sizes = (self.check.sizes[0], int(1.4 * self.grid.sizes[1]), int(1.4 * self.grid.sizes[2]))
        return BoxGrid(self.grid.density, self.grid.box, sizes)

    @cached_property
    def stretched(self) -> Grid:
        """A grid whose nodes crowd at the poles of the prior; where something jumps there, it differs."""
        density, box = self.grid.density, self.grid.box
        (theta, at_theta), (p, at_p), (q, at_q) = (
            _stretched_rule(density, i, box[i], int(1.3 * self.grid.sizes[i])) for i in AXES
        )
        nodes = (theta[:, None, None], p[None, :, None], q[None, None, :])
        log_mass = density.log_ratio(*nodes) + at_theta[:, None, None] + at_p[:, None] + at_q
        return Grid(density, nodes, log_mass)

    def theta_lines(self, detail: float = 1.0, least: int = 0) -> list[ThetaLines]:
        """Lines at those pairs of nodes (p, q) that matter."""
        if (detail, least) not in self._lines:
            theta, *rest = self.grid.sizes
            p, q = (int(np.ceil(detail * max(size, least))) for size in rest)
            self._lines[detail, least] = _lines_on(self.grid, (int(1.5 * theta), p, q))
        return self._lines[detail, least]

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """By inverse distribution functions: q, p given q (interpolated), θ given both (evaluated)."""
        u = rng.random((3, size))
        density, box, wide = self.grid.density, self.grid.box, self._wide
        q = self.marginal(2).quantile(u[2])
        across = Series(box[2], wide.mass.sum(axis=0))  # one series in q for each node of p
        polynomials = jacobi_polynomials(wide.sizes[2], box[2].a, box[2].b, box[2].unit(q))
        p = draw_rows(box[1], np.maximum(polynomials.T @ across.coefficients.T, 0), u[1])
        log_mass = box[0].log_weights(int(1.4 * self.grid.sizes[0]))
        theta = box[0].nodes(log_mass.size)[None]
        log_mass = log_mass + density.log_prior_rest(0, theta, box[0])
        log_mass = log_mass + density.log_ratio(theta, p[:, None], q[:, None])
        return np.stack([draw_rows(box[0], _normalised(log_mass), u[0]), p, q])


def has_cell(counts: CountTable, key: Key) -> bool:
    """Whether someone of unknown status has this record."""
    return bool(np.any((counts.n == key[0]) & (counts.s == key[1]) & (counts.known == UNKNOWN)))


def _lines_on(grid: BoxGrid, sizes: tuple[int, ...]) -> list[ThetaLines]:
    """Lines along θ at those pairs of nodes (p, q) that matter; none if they are too many."""
    density, inside = grid.density, grid.box[0]
    (p, at_p), (q, at_q) = (_stretched_rule(density, axis, grid.box[axis], sizes[axis]) for axis in (1, 2))
    level = _seen_from(grid, p, q) + at_p[:, None] + at_q
    i, j = np.nonzero(level > level.max() - _LINES_CUT)
    if i.size * sizes[0] > _MOST_ON_LINES:
        return []
    theta = inside.nodes(sizes[0])
    log_mass = np.empty((i.size, sizes[0]))
    size = max(1, _BLOCK // sizes[0])
    for some in (slice(start, start + size) for start in range(0, i.size, size)):
        log_mass[some] = density.log_ratio(theta[None], p[i[some], None], q[j[some], None])
    log_mass += inside.log_weights(sizes[0]) + density.log_prior_rest(0, theta, inside)
    log_mass += (at_p[i] + at_q[j])[:, None]
    masses = np.exp(log_mass - log_mass.max())
    masses /= masses.sum()
    return [lines_that_matter(inside, np.broadcast_to(theta, masses.shape), masses, p[i], q[j])]


def _seen_from(grid: BoxGrid, p: Float, q: Float) -> Float:
    """The logarithm of the likelihood with θ integrated out, at other p and q, to see what matters.

    It is interpolated between the nodes of the grid: logarithms are nearly straight from one to the next.
    """
    with np.errstate(divide="ignore"):
        level = np.log(grid.mass.sum(axis=0))
    for axis in (1, 2):
        inside, x = grid.box[axis], grid.nodes[axis]
        weights = inside.log_weights(grid.sizes[axis]) + grid.density.log_prior_rest(axis, x.ravel(), inside)
        level -= weights.reshape(x.shape[1:])
    level = np.maximum(level, level.max() - 300)
    level = np.stack([np.interp(p, grid.nodes[1].ravel(), column) for column in level.T], axis=1)
    return np.stack([np.interp(q, grid.nodes[2].ravel(), row) for row in level])


def _stretched_rule(density: Density, axis: int, inside: Interval, size: int) -> tuple[Float, Float]:
    """Nodes and log weights of a rate, as powers of other nodes where it reaches 0.

    There, and all the more at a pole of the prior, the mass spreads over many scales, and so do the values at
    which a score jumps. If only the end 0 matters, x = u^m; with a pole at 1, x / (1 − x) = (u / (1 − u))^m.
    """
    a, b = inside.a, inside.b
    power = max(int(np.ceil(1 / (min(a, b) + 1))), 2 if inside.lower == 0 else 1)
    scale = np.log(power) + (a + b + 1) * np.log(inside.length)
    if b >= 0:
        rule = jacobi_rule(size, power * (a + 1) - 1, b)
        unit, weights = rule.nodes**power, np.log(rule.weights) + scale
    else:
        rule = jacobi_rule(size, power * (a + 1) - 1, power * (b + 1) - 1)
        low, high = rule.nodes**power, (1 - rule.nodes) ** power
        unit, weights = low / (low + high), np.log(rule.weights) + scale - (a + b + 2) * np.log(low + high)
    x = inside.lower + inside.length * unit
    return x, weights + density.log_prior_rest(axis, x, inside)


class NestedPosterior(OnePopulation):
    """On rules one inside the other."""

    rule = "nested"
    grid: NestedGrid
    check: NestedGrid

    def __init__(self, counts: CountTable, density: Density, tol: float) -> None:
        self.support, self._tol = Support(density), tol
        super().__init__(counts, *integrate_nested(self.support, 2, tol))
        self._marginals = {2: self.grid.marginal()}
        self._lines: dict[float, list[ThetaLines]] = {}

    def marginal(self, axis: int) -> Marginal:
        """From the nest that has the axis outside."""
        if axis not in self._marginals:
            grid, check = integrate_nested(self.support, axis, self._tol)
            self._marginals[axis] = grid.marginal()
            self._marginals[axis].error = grid.distance(check)
        return self._marginals[axis]

    def theta_lines(self, detail: float = 1.0, _least: int = 0) -> list[ThetaLines]:
        """The innermost lines of the nest, or of one with more nodes outside them."""
        if detail not in self._lines:
            self._lines[detail] = _innermost(self.grid) if detail == 1 else self._finer_lines(detail)
        return self._lines[detail]

    def _finer_lines(self, detail: float) -> list[ThetaLines]:
        """The lines of a nest with more nodes on p and q; none where they would be too many."""
        if self.grid.mass.size * detail**2 > _MOST_IN_NEST:
            return []
        outer, second, third = self.grid.sizes
        sizes = (int(detail * outer), int(detail * second), third)
        return _innermost(NestedGrid(self.support, 2, self.grid.panels, sizes))

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """By inverse distribution functions: q, p given q, θ given both, each on its own support."""
        u = rng.random((4, size))
        q = self.marginal(2).quantile(u[2])
        chunks = [slice(start, start + 1000) for start in range(0, size, 1000)]
        p = np.concatenate(
            [np.zeros(0), *(self._second(q[chunk], u[1, chunk], u[3, chunk]) for chunk in chunks)]
        )
        return np.stack([self._third(p, q, u[0]), p, q])

    def _second(self, q: Float, u: Float, choice: Float) -> Float:
        """A draw of p given each q: a piece by its mass, then a value in it."""
        parts = slices(self.support, 2, q, self.grid.sizes)
        masses = np.exp(logsumexp(parts.log_mass, axis=2) - parts.totals(q.size)[parts.owner, None])
        order = np.argsort(parts.owner, kind="stable")
        ladder = np.cumsum(masses.sum(axis=1)[order])  # one rung of length 1 for each q
        chosen = order[np.minimum(np.searchsorted(ladder, np.arange(q.size) + choice), order.size - 1)]
        lines = Lines(1, parts.lower[chosen], parts.upper[chosen])
        return draw_on(lines, self.grid.density, masses[chosen], u)

    def _third(self, p: Float, q: Float, u: Float) -> Float:
        """A draw of θ given each p and q."""
        density = self.grid.density
        lines = self.support.third(np.stack([np.full(p.size, 0.5), p, q]), 0)
        theta, log_mass = lines.rule(density, self.grid.sizes[2])
        log_mass += density.log_ratio(theta, p[:, None], q[:, None])
        return draw_on(lines, density, _normalised(log_mass), u)


def _innermost(grid: NestedGrid) -> list[ThetaLines]:
    """The lines of θ of a nest, sorted by their ends."""
    theta, p, q = (np.broadcast_to(x, grid.mass.shape) for x in grid.nodes)
    rows = [x.reshape(-1, x.shape[-1]) for x in (theta, grid.mass, p, q)]
    lines = Lines(0, *(ends.ravel() for ends in grid.inner_ends))
    result = []
    for same, interval in lines.alike(grid.density):
        values = (rows[0][same], rows[1][same], rows[2][same, 0], rows[3][same, 0])
        result.append(lines_that_matter(interval, *values))
    return sorts_that_matter(result)


def draw_on(lines: Lines, density: Density, masses: Float, u: Float) -> Float:
    """One value on each line, by the inverse distribution function of its masses at u."""
    result = np.empty(u.size)
    for same, like in lines.kinds(density):
        interval = Interval(lines.lower[same], lines.upper[same], like.a, like.b)
        result[same] = draw_rows(interval, masses[same], u[same])
    return result


def draw_rows(interval: Interval, masses: Float, u: Float) -> Float:
    """One value from each row's density, by its inverse distribution function at u."""
    masses = masses / masses.sum(axis=-1, keepdims=True)
    return np.asarray(Series(interval, masses).quantile(u))


def _normalised(log_mass: Float) -> Float:
    """Masses whose rows have the maximum 1."""
    return np.asarray(np.exp(log_mass - log_mass.max(axis=-1, keepdims=True)))
