"""The integrated posterior, whichever rule it took: grids, marginals, lines of θ, and independent draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from binreps.counts import CountTable
from binreps.fits.exact.density import AXES, Density
from binreps.fits.exact.gauss import Interval, Series, jacobi_polynomials, jacobi_rule
from binreps.fits.exact.grid import Grid, Marginal
from binreps.fits.exact.nested import Lines, Support, integrate_nested, slices
from binreps.fits.exact.tensor import Box, BoxGrid, UnresolvedError, find_peak, integrate_box
from binreps.model import Float, Prior

TOLERANCE = 1e-8
_LARGEST_GRID = 250_000  # nodes, when a sharp score asks for more than the moments did
_MOST_ON_LINES = 800_000  # nodes, when a jump of a score asks for more lines of θ


@dataclass(frozen=True, eq=False)
class ThetaLines:
    """Densities of θ along lines of fixed p and q; rows of `masses` are their masses at Gauss nodes."""

    interval: Interval  # ends are arrays, one per line
    theta: Float
    masses: Float
    p: Float
    q: Float

    @cached_property
    def trapezoid(self) -> tuple[Float, Float]:
        """logit θ and masses on a trapezoid rule: for functions of logit θ that jump close to θ = 0 or 1.

        It is equally spaced in z, the logit of the position on a line.
        """
        inside, size = self.interval, self.masses.shape[1]
        step = min(0.5, 6 / size)
        z = np.arange(-30 / (inside.a + 1), 30 / (inside.b + 1), step)
        low, high = log_expit(z), log_expit(-z)
        weight = step * np.exp((inside.a + 1) * low + (inside.b + 1) * high)
        polynomials = weight * jacobi_polynomials(size, inside.a, inside.b, expit(z))
        coefficients = Series(inside, self.masses).coefficients
        matters = np.abs(coefficients.sum(axis=0) @ polynomials) > 1e-13 * self.masses.sum()
        low, high = low[matters], high[matters]
        lower, upper = (np.asarray(end, dtype=float)[..., None] for end in (inside.lower, inside.upper))
        with np.errstate(divide="ignore"):
            log_theta = np.logaddexp(np.log(lower) + high, np.log(upper) + low)
            log_rest = np.logaddexp(np.log1p(-lower) + high, np.log1p(-upper) + low)
        return log_theta - log_rest, coefficients @ polynomials[:, matters]


class Posterior(Protocol):
    """What either rule offers."""

    error: float

    @property
    def rule(self) -> str:
        """How it was integrated: "box" or "nested"."""

    @property
    def grid(self) -> Grid:
        """The finer of the two grids that agree."""

    @property
    def check(self) -> Grid:
        """The coarser."""

    def marginal(self, axis: int) -> Marginal:
        """The density of one rate."""

    def finer(self) -> Grid | None:
        """A finer grid than the last, or None where the limit is reached."""

    def theta_lines(self) -> list[ThetaLines]:
        """The posterior as lines of θ, for what depends on θ sharply."""

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Independent draws of θ, p, q, shape (3, size)."""


def integrate(counts: CountTable, prior: Prior, tol: float = TOLERANCE) -> Posterior:
    """The posterior on a box if it fits one, otherwise by nested rules."""
    density, spread = find_peak(counts, prior)
    try:
        return BoxPosterior(*integrate_box(density, spread, tol))
    except UnresolvedError:
        return NestedPosterior(density, tol)


class BoxPosterior:
    """On a product of rules."""

    rule = "box"

    def __init__(self, grid: BoxGrid, check: BoxGrid) -> None:
        self.grid, self.check = grid, check
        self.error = grid.distance(check)
        self._finest = grid
        self._marginals: dict[int, Marginal] = {}
        self._lines: dict[float, list[ThetaLines]] = {}

    def marginal(self, axis: int) -> Marginal:
        """From a grid with more nodes on the axis."""
        if axis not in self._marginals:
            self._marginals[axis] = self.grid.marginal(axis)
        return self._marginals[axis]

    def finer(self) -> Grid | None:
        """The last grid with 1.5 × the nodes on each axis."""
        if self._finest.mass.size * 3.4 > _LARGEST_GRID:
            return None
        self._finest = self._finest.resized(1.5)
        return self._finest

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

    def theta_lines(self, detail: float = 1.0) -> list[ThetaLines]:
        """One line per pair of nodes (p, q) that matters, with twice the nodes on θ.

        `detail` multiplies the nodes on p and q; no lines are left where they would be too many.
        """
        if detail not in self._lines:
            theta, p, q = self.grid.sizes
            sizes = (2 * theta, int(np.ceil(detail * p)), int(np.ceil(detail * q)))
            small = detail == 1 or np.prod(sizes) <= _MOST_ON_LINES
            self._lines[detail] = _lines_on(self.grid.density, self.grid.box, sizes) if small else []
        return self._lines[detail]

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


def _lines_on(density: Density, box: Box, sizes: tuple[int, ...]) -> list[ThetaLines]:
    """Lines along θ at pairs of nodes (p, q), without those whose mass is negligible."""
    inside = box[0]
    theta = inside.nodes(sizes[0])
    weights = inside.log_weights(sizes[0]) + density.log_prior_rest(0, theta, inside)
    (p, at_p), (q, at_q) = (_stretched_rule(density, axis, box[axis], sizes[axis]) for axis in (1, 2))
    log_mass = density.log_ratio(theta[None, None], p[:, None, None], q[None, :, None]) + weights
    log_mass += at_p[:, None, None] + at_q[:, None]
    masses = np.exp(log_mass - log_mass.max())
    lines = masses.sum(axis=2)
    i, j = np.nonzero(lines > 1e-13 * lines.sum())
    masses = masses[i, j] / lines.sum()
    return [ThetaLines(inside, np.broadcast_to(theta, masses.shape), masses, p[i], q[j])]


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


class NestedPosterior:
    """On rules one inside the other."""

    rule = "nested"

    def __init__(self, density: Density, tol: float) -> None:
        self.support, self._tol = Support(density), tol
        self.grid, self.check = integrate_nested(self.support, 2, tol)
        self.error = self.grid.distance(self.check)
        self._marginals = {2: self.grid.marginal()}

    def marginal(self, axis: int) -> Marginal:
        """From the nest that has the axis outside."""
        if axis not in self._marginals:
            grid, check = integrate_nested(self.support, axis, self._tol)
            self.error = max(self.error, grid.distance(check))
            self._marginals[axis] = grid.marginal()
        return self._marginals[axis]

    def finer(self) -> Grid | None:
        """Nests are not refined further."""
        return None

    def theta_lines(self) -> list[ThetaLines]:
        """The innermost lines of the nest, sorted by the ends of the domain that they reach."""
        theta, p, q = (np.broadcast_to(x, self.grid.mass.shape) for x in self.grid.nodes)
        rows = [x.reshape(-1, x.shape[-1]) for x in (theta, self.grid.mass, p, q)]
        lines = Lines(0, *(ends.ravel() for ends in self.grid.inner_ends))
        result = []
        for same, like in lines.kinds(self.grid.density):
            interval = Interval(lines.lower[same], lines.upper[same], like.a, like.b)
            result.append(
                ThetaLines(interval, rows[0][same], rows[1][same], rows[2][same, 0], rows[3][same, 0])
            )
        return result

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
        masses = np.exp(logsumexp(parts.log_mass, axis=2) - parts.totals()[parts.owner, None])
        order = np.argsort(parts.owner, kind="stable")
        ladder = np.cumsum(masses.sum(axis=1)[order])  # one rung of length 1 for each q
        chosen = order[np.minimum(np.searchsorted(ladder, np.arange(q.size) + choice), order.size - 1)]
        return self._draw(Lines(1, parts.lines.lower[chosen], parts.lines.upper[chosen]), masses[chosen], u)

    def _third(self, p: Float, q: Float, u: Float) -> Float:
        """A draw of θ given each p and q."""
        density = self.grid.density
        lines = self.support.third(np.stack([np.full(p.size, 0.5), p, q]), 0)
        theta, log_mass = lines.rule(density, self.grid.sizes[2])
        return self._draw(lines, _normalised(log_mass + density.log_ratio(theta, p[:, None], q[:, None])), u)

    def _draw(self, lines: Lines, masses: Float, u: Float) -> Float:
        """A value on each line."""
        result = np.empty(u.size)
        for same, like in lines.kinds(self.grid.density):
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
