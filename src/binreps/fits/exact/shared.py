"""Several prevalences, one pair of error rates: (p, q) on cells of their logits, each θ on its own support.

Given (p, q) the prevalences are independent, so the posterior of all of them is a two-dimensional integral
of a product of one-dimensional ones: the work grows linearly with the number of populations. Seen from one
population, the others are a weight on (p, q).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaln, logit

from binreps.counts import CountTable
from binreps.fits.exact.cells import Cells, lines, resolve
from binreps.fits.exact.chart import Place, errors_at
from binreps.fits.exact.conditional import (
    Conditional,
    Inner,
    Lines,
    draw_rows,
    integrated,
    masses,
)
from binreps.fits.exact.density import Density, informative
from binreps.fits.exact.grid import Grid, spread
from binreps.fits.exact.integrated import LEAST_ERROR, SCORE_TOLERANCE, SLOW, Integrated, has_cell
from binreps.fits.exact.panels import Panels, Scale
from binreps.fits.exact.tensor import rate_interval, rate_weights
from binreps.fits.exact.threads import Threads, heavy
from binreps.fits.gauss import Interval, jacobi_polynomials, jacobi_rule, series_matrix, series_tail
from binreps.fits.marginal import Marginal
from binreps.fits.posterior import Estimate, Key, Memory
from binreps.model import ALIKE, Float, Prior

_ROUGH, _FINE = (6, 0.03), (11, 7e-7)  # points of a cell's side, what may be missed: to look, to integrate
_FEW_POINTS = (0.55, 0.75)  # of those of a cell's side, for the first lines of θ
_MORE, _MOST_MORE = 2, 6  # points of a side that a grid has more than the one before it, and than the first
_MOST_OF_SIDE = 72  # of finer grids that somebody asks for
_COMPACT, _WIDEST = 30.0, 24.0  # e^−30 lies outside of one cell, which is no wider, in sds
_PER_WIDTH = 3.5  # points of a side for each conditional sd of half of it
_AS_SEEN = 0.2  # the logarithm of what it and the first look have found may differ by so much
_GOOD = 1e-7  # sds: errors that are no smaller are worth a finer grid
_MOST = 20_000_000  # points × cells of all tables
_MOST_NODES = 3_000_000  # points × inner nodes, when a sharp score asks for more than the moments did
_FAR = 60.0  # e^−60 of a Beta tail lies beyond
_BLOCK = 2048  # points at a time
_THETA, _PANEL = 24, 64  # nodes of an inner line at first, and of a panel of a marginal of θ
_HEAVY = 12.0  # points with e^−12 of the heaviest still count
_SETTLED = 1e-10  # log ∫ over θ may change by so much with more nodes
_ROUNDING = 3e-16  # per result: by so much log likelihoods along a ridge differ for nothing
_AGREED = 1e-8  # two marginals that differ by less mass are the same
_TAIL = 1e-9  # a series has died out when its last terms are this small
_EMPTY = 38.0  # points with less than e^−38 of the heaviest are left out
_HALVINGS = 7  # of a marginal of θ
_THIN, _MOMENTS = (
    0.3,
    48,
)  # sds of θ given (p, q), over those of θ; and how many moments tell its density then


class SharedGrid:
    """Points (p, q) with their posterior mass, and every population's θ integrated out at each of them."""

    def __init__(self, shared: Shared, order: int, theta: int) -> None:
        self.shared, self.order, self.theta = shared, order, theta
        (first, second), area = shared.cells.points(order)
        self.shape = area.shape
        every = errors_at(first.ravel(), second.ravel())
        level = shared.laplace(first.ravel(), second.ravel()) + area.ravel()
        self.seen = float(np.logaddexp.reduce(level)) + shared.log_unit
        where = np.flatnonzero(level > level.max() - _EMPTY)
        self.errors = every.some(where)
        self.inner = [_in_blocks(one, self.errors, theta) for one in shared.populations]
        log_mass = area.ravel()[where] + shared.log_prior(self.errors)
        log_mass += np.sum([one.log_mass for one in self.inner], axis=0)
        self.top = float(log_mass.max())
        self.log_evidence = self.top + float(np.log(np.exp(log_mass - self.top).sum())) + shared.log_unit
        self.log_mass = log_mass - self.top
        self.mass = np.exp(log_mass - self.log_evidence + shared.log_unit)
        self.every = np.zeros(area.shape)
        self.every.flat[where] = self.mass

    @cached_property
    def mean(self) -> Float:
        """Posterior means of p, q and every θ."""
        best = int(np.argmax(self.mass))
        columns = [self.errors.p, self.errors.q, *(inner.mean for inner in self.inner)]
        return np.array([x[best] + self.mass @ (x - x[best]) / self.mass.sum() for x in columns])

    @cached_property
    def sd(self) -> Float:
        """Posterior standard deviations of p, q and every θ."""
        given = [
            (self.errors.p, 0.0),
            (self.errors.q, 0.0),
            *((one.mean, one.variance) for one in self.inner),
        ]
        pairs = zip(given, self.mean, strict=True)
        return np.sqrt([self.mass @ (variance + (x - mean) ** 2) for (x, variance), mean in pairs])

    def distance(self, other: SharedGrid) -> float:
        """The largest difference of two grids: means and sds in units of the sd, evidence relative."""
        sd = np.maximum(self.sd, 1e-300)
        changes = np.concatenate([(self.mean - other.mean) / sd, (self.sd - other.sd) / sd])
        scale = max(1.0, abs(self.log_evidence))
        evidence = abs(self.log_evidence - other.log_evidence) / scale
        return max(float(np.max(np.abs(changes))), evidence)

    def of(self, which: int) -> Grid:
        """The nodes (θ, p, q) of one population, the others' evidence a weight."""
        theta, log_mass = self._rows(which, self.theta)
        unit = self.top + self.shared.log_unit
        return Grid((theta, self.errors.p[:, None], self.errors.q[:, None]), log_mass, unit)

    def _rows(self, which: int, size: int) -> tuple[Float, Float]:
        """One population's lines: nodes of θ, and log masses."""
        one, inner = self.shared.populations[which], self.inner[which]
        theta, log_mass = masses(one, inner.lines, self.errors, size)
        return theta, log_mass + (self.log_mass - inner.log_mass)[:, None]

    def threads(self, which: int) -> tuple[list[Threads], Float]:
        """One population's lines of θ, by the ends that they reach, and the share of each sort."""
        inner = self.inner[which]
        log_mass = self._rows(which, 2 * self.theta)[1]
        mass = np.exp(log_mass - log_mass.max())
        some = heavy(mass)
        errors, mass = [self.errors.p[some], self.errors.q[some]], mass[some] / mass[some].sum()
        kinds = inner.lines.some(some).kinds(self.shared.prior)
        found = [Threads(ALIKE, [x[same] for x in errors], mass[same], kind) for same, kind in kinds]
        return found, np.array([mass[same].sum() for same, _ in kinds])

    def theta_masses(self, which: int, inside: Interval) -> Float:
        """The marginal of one population's θ on an interval, as masses at the nodes of its rule."""
        density, log_mass = self.shared.populations[which], self.inner[which].log_mass
        theta = inside.nodes(_PANEL)
        weights = inside.log_weights(theta.size) + rate_weights(self.shared.prior.prevalence, theta, inside)
        result = np.zeros(theta.size)
        for some in _blocks(self.mass.size):
            ratio = density.log_ratios(self.errors.some(some), theta, 1 - theta)
            result += self.mass[some] @ np.exp(ratio + weights - log_mass[some, None])
        return result


class Shared:
    """The posterior of several prevalences and one pair of error rates."""

    def __init__(self, tables: Sequence[CountTable], prior: Prior) -> None:
        self.prior, self.tables = prior, [informative(table) for table in tables]
        self._most = max(300, _MOST // (_FINE[0] ** 2 * sum(len(table) + 20 for table in self.tables)))
        centre = prior.region.errors(0.4, 0.4)
        self._centred(*(float(logit(x)) for x in centre))
        rough = resolve(self.laplace, self._root(), *_ROUGH, self._most)
        y, area = rough.points(_ROUGH[0])
        y, area = y.reshape(2, -1), area.ravel()
        level = self.laplace(*y)
        seen = float(np.logaddexp.reduce(level + area)) + self.log_unit
        self._centred(*y[:, np.argmax(level)])
        self.theta = self._theta_nodes(errors_at(*y), level)
        noise, alone = self._noise(), self._one_cell(y, level, area)
        error = self._agreed(*alone) if alone else np.inf
        self._alone = error <= _GOOD and abs(self.grid.seen - seen) < _AS_SEEN
        if not self._alone:
            error = self._agreed(*self._resolved(rough, noise))
        self.mean, self.sd, self.log_evidence = self.grid.mean, self.grid.sd, self.grid.log_evidence
        rounding = float(np.finfo(float).eps * np.max(self.mean / np.maximum(self.sd, 1e-300)))
        noise = noise if not any(table.identifiable for table in tables) else 0.0
        self.error = max(error, LEAST_ERROR, rounding, noise)

    def _agreed(self, cells: Cells, order: int) -> float:
        """Grids on some cells until two agree, or the last that may be tried; and what they may be off."""
        self.cells, slow, most = cells, SLOW, order + _MOST_MORE
        self.check = SharedGrid(self, order - _MORE, self.theta - _MORE)
        self.grid = SharedGrid(self, order, self.theta)
        while (error := slow * self.grid.distance(self.check)) > _GOOD and self.grid.order < most:
            slow = 2 * SLOW  # cells that asked for more are rough for both grids
            finer = SharedGrid(self, self.grid.order + _MORE, self.grid.theta + _MORE)
            self.check, self.grid = self.grid, finer
        return error

    def _one_cell(self, y: Float, level: Float, area: Float) -> tuple[Cells, int] | None:
        """One cell for a compact posterior, and the points of its side; None if it is not compact.

        They integrate it, but do not tell it between them.
        """
        mass = np.exp(level + area - np.max(level + area))
        _, sd, conditional = spread(y, mass / mass.sum())
        there = y[:, level > level.max() - _COMPACT]
        low, high = there.min(axis=1) - sd / 2, there.max(axis=1) + sd / 2
        order = int(np.ceil(_PER_WIDTH * np.max((high - low) / conditional) / 2))
        if not self.prior.better_than_chance:
            high = np.minimum(high, 0.0)
        elif high.sum() > 0:
            return None
        if np.any(high - low > _WIDEST * sd) or order > _MOST_OF_SIDE / 1.5:
            return None
        return Cells(low[:, None], (high - low)[:, None], np.zeros(1, bool)), order

    def _resolved(self, rough: Cells, noise: float) -> tuple[Cells, int]:
        """Cells on which the posterior is a polynomial, and the points of a side."""
        many = any(one.many for one in self.populations)  # whose sums of logarithms are too rough for Laplace
        function, (order, tol) = self._integral if many else self.laplace, _FINE
        return resolve(function, rough, order, max(tol, noise / 20), self._most), order

    @cached_property
    def told(self) -> SharedGrid:
        """A grid that tells the posterior between its points too: of one cell it has half as many again."""
        return (self.finer(self.grid) if self._alone else None) or self.grid

    def _noise(self) -> float:
        """The rounding of the log likelihood along a ridge: of results that are not like all others."""
        alike = [int(table.weight @ table.s) for table in self.tables]
        unlike = [min(one, table.replicates - one) for one, table in zip(alike, self.tables, strict=True)]
        return _ROUNDING * 2 * sum(unlike)

    def _centred(self, first: float, second: float) -> None:
        """Every population's density, relative to its likelihood at two logits of error rates."""
        errors = errors_at(np.array([first]), np.array([second]))
        middle = [Density(table, self.prior, errors) for table in self.tables]
        peaks = [Conditional(one, errors).peak[0] for one in middle]
        self.populations = [
            one.centred(errors._replace(u=peak)) for one, peak in zip(middle, peaks, strict=True)
        ]
        of_theta = -(len(self.tables) - 1) * float(betaln(*self.prior.prevalence))
        likelihood = sum(one.log_likelihood for one in self.populations)
        self.log_unit = likelihood + self.prior.log_constant + of_theta

    def _root(self) -> Cells:
        """One cell that holds all logits of error rates that matter."""
        _, (a, b), (c, d) = self.prior
        if self.prior.better_than_chance:
            furthest = _FAR / min(a, b, c, d, 1.0) + _FAR
            return Cells(np.full((2, 1), -furthest), np.full((2, 1), 2 * furthest), np.ones(1, bool))
        far = _FAR / np.minimum([[a], [c]], 1.0) + _FAR
        return Cells(-far, far, np.zeros(1, bool))

    def log_prior(self, errors: Place) -> Float:
        """The logarithm of the prior density of the logits of error rates."""
        return np.asarray(errors.log_volume + self.populations[0].log_prior_of_errors(errors))

    def laplace(self, first: Float, second: Float) -> Float:
        """log ∫ over every θ, by Laplace's method."""
        return self._summed(first, second, lambda one, errors: Conditional(one, errors).laplace())

    def _integral(self, first: Float, second: Float) -> Float:
        """log ∫ over every θ."""
        return self._summed(first, second, lambda one, errors: integrated(one, errors, self.theta).log_mass)

    def _summed(self, first: Float, second: Float, function: Any) -> Float:
        errors = errors_at(first, second)
        total = self.log_prior(errors)
        for some in _blocks(total.size):
            total[some] += sum(function(one, errors.some(some)) for one in self.populations)
        return total

    def _theta_nodes(self, errors: Place, level: Float) -> int:
        """The nodes that an inner line needs: those with which nothing changes where the posterior is."""
        heavy = np.flatnonzero(level > level.max() - _HEAVY)
        best, size = errors.some(heavy[:: max(1, heavy.size // 20)]), _THETA
        enough = _SETTLED + self._noise()
        while size < 200:
            changes = [
                integrated(one, best, size - _MORE).log_mass - integrated(one, best, 2 * size).log_mass
                for one in self.populations
            ]
            if np.max(np.abs(changes)) < enough:
                break
            size = int(1.4 * size)
        return size

    def finer(self, grid: SharedGrid, most: float = np.inf) -> SharedGrid | None:
        """A grid with half as many points again on every side and line; None if that is too many."""
        order, theta = int(1.5 * grid.order), int(1.5 * grid.theta)
        if grid.mass.size * 2.25 * theta > most or order > _MOST_OF_SIDE:
            return None
        found: SharedGrid = self._finer.get(order, lambda: SharedGrid(self, order, theta))
        return found

    @cached_property
    def _finer(self) -> Memory:
        return Memory(2)

    @cached_property
    def false_positive(self) -> Marginal:
        """The density of p."""
        return self._marginal(0)

    @cached_property
    def false_negative(self) -> Marginal:
        """The density of q."""
        return self._marginal(1)

    def _marginal(self, axis: int) -> Marginal:
        """A sum over cells of the density of a logit."""
        inside, mass = lines(self.cells, self.told.every, axis)
        error = float(series_tail(inside, mass).sum())
        found = Panels([(inside, mass)], error, Scale(1.0))
        found.ends = np.array([0.0, self.prior.region.end])
        return found

    def with_more(self, which: int, more: CountTable) -> Shared:
        """The posterior with more individuals in one population."""
        tables = [table + more if i == which else table for i, table in enumerate(self.tables)]
        return Shared(tables, self.prior)

    def draw_errors(self, size: int, rng: np.random.Generator) -> Place:
        """Independent draws of error rates: a cell, one logit on it, then the other given the first."""
        every, order, unit = self.told.every, self.told.order, Interval(0.0, 1.0)
        cumulative, u = np.cumsum(every.sum(axis=(1, 2))), rng.random((3, size))
        cell = np.minimum(np.searchsorted(cumulative, u[0] * cumulative[-1]), cumulative.size - 1)
        found = np.empty((2, size))
        for some in _blocks(size):
            here, mass = self.cells.some(cell[some]), every[cell[some]]
            x = draw_rows(unit, mass.sum(axis=2), u[1, some])
            across = jacobi_polynomials(order, 0.0, 0.0, x).T @ series_matrix(order, 0.0, 0.0)
            rows = np.maximum(np.einsum("ki,kij->kj", across, mass), 0)
            reach = np.where(here.triangle, 1 - x, 1.0)
            found[:, some] = here.low + here.side * np.stack([x, reach * draw_rows(unit, rows, u[2, some])])
        return errors_at(*found)

    def draw_prevalence(self, which: int, errors: Place, rng: np.random.Generator) -> Float:
        """A draw of one population's θ given each pair of error rates."""
        one, u, theta = self.populations[which], rng.random(errors.p.size), np.empty(errors.p.size)
        for b in _blocks(u.size):
            some = errors.some(b)
            on = Conditional(one, some).lines()
            log_mass = masses(one, on, some, 2 * self.grid.theta)[1]
            mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            theta[b] = on.draw(self.prior, mass, u[b])
        return theta

    def of(self, which: int) -> SharedPosterior:
        """The posterior of one population."""
        return SharedPosterior(self, which)

    def joint_draws(self, size: int, rng: np.random.Generator) -> list[Float]:
        """Draws of the parameters of each population, with error rates that all share."""
        errors = self.draw_errors(size, rng)
        each = [self.draw_prevalence(i, errors, rng) for i in range(len(self.tables))]
        return [np.stack([theta, errors.p, errors.q]) for theta in each]


def _blocks(size: int) -> Iterator[slice]:
    """Slices of so many points that they stay in the processor's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, size, _BLOCK))


def _in_blocks(density: Density, errors: Place, size: int) -> Inner:
    """θ integrated out at pairs of error rates, a few at a time."""
    blocks = [integrated(density, errors.some(some), size) for some in _blocks(errors.p.size)]
    *columns, lines = zip(*blocks, strict=True)
    log_mass, mean, variance = map(np.concatenate, columns)
    return Inner(log_mass, mean, variance, Lines(*map(np.concatenate, zip(*lines, strict=True))))


def _tail(inside: Interval, mass: Float) -> float:
    """How far the series on a panel is from having died out."""
    return float(series_tail(inside, mass[None])[0])


class SharedPosterior(Integrated):
    """One population's posterior, the others a weight on (p, q)."""

    def __init__(self, shared: Shared, which: int) -> None:
        self.shared, self.which = shared, which
        super().__init__(shared.tables[which], shared.grid.of(which), shared.error)

    @cached_property
    def check(self) -> Grid:
        """As `Integrated` says, made when it is needed."""
        return self.shared.check.of(self.which)

    def with_more(self, more: CountTable) -> SharedPosterior:
        """Integrated again, with more individuals in this population."""
        return SharedPosterior(self.shared.with_more(self.which, more), self.which)

    def marginal(self, axis: int) -> Marginal:
        """The density of one rate."""
        if axis == 0:
            return self._prevalence
        return self.shared.false_positive if axis == 1 else self.shared.false_negative

    @cached_property
    def _prevalence(self) -> Marginal:
        """The marginal of θ, from finer and finer points (p, q) until two agree."""
        inner, mass, sd = self.shared.grid.inner[self.which], self.shared.grid.mass, self.shared.sd
        if float(np.sqrt(mass @ inner.variance)) < _THIN * sd[2 + self.which]:
            return self._by_moments()
        before, grid = self.shared.check, self.shared.grid
        while True:
            other = self._panels(before)
            panels = [(inside, grid.theta_masses(self.which, inside)) for inside, _ in other]
            pairs = zip(panels, other, strict=True)
            change = sum(float(np.abs(mass - one).sum()) for (_, mass), (_, one) in pairs)
            finer = self.shared.finer(grid) if change > _AGREED else None
            if finer is None:
                break
            before, grid = grid, finer
        return Panels(panels, max(change, *(_tail(*panel) for panel in panels)))

    def _by_moments(self) -> Marginal:
        """The marginal of θ where lines are thin: as a sum of lines it is rough, but its moments are not."""
        inside = rate_interval(self.shared.prior.prevalence, 0.0, 1.0)
        kind = (_MOMENTS, inside.a, inside.b)
        found = []
        for grid in (self.check, self.grid):
            theta = np.broadcast_to(grid.parameters[0], grid.mass.shape).ravel()
            moments = sum(
                jacobi_polynomials(*kind, theta[b]) @ grid.mass.ravel()[b] for b in _blocks(theta.size)
            )
            back = series_matrix(*kind) * jacobi_rule(*kind).weights
            found.append(moments @ back)
        error = SLOW * float(np.abs(found[1] - found[0]).sum() + series_tail(inside, found[1][None])[0])
        return Panels([(inside, found[1])], error)

    def _panels(self, grid: SharedGrid) -> list[tuple[Interval, Float]]:
        """Intervals of θ that hold its marginal, halved until it is a short series on each; its masses."""
        on, shapes = grid.inner[self.which].lines, self.shared.prior.prevalence
        ends = [(float(on.lower.min()), 1 - float(on.above.min()))]
        found: list[tuple[Interval, Float]] = []
        for halvings in range(_HALVINGS + 1):
            pending, ends = [rate_interval(shapes, *pair) for pair in ends], []
            for inside in pending:
                mass = grid.theta_masses(self.which, inside)
                if halvings == _HALVINGS or _tail(inside, mass) <= max(_TAIL, 0.1 * self.error):
                    found.append((inside, mass))
                else:
                    middle = (inside.lower + inside.upper) / 2
                    ends += [(inside.lower, middle), (middle, inside.upper)]
        return sorted(found, key=lambda pair: float(pair[0].lower))

    def _threads(self, level: int) -> tuple[list[Threads], Float] | None:
        """From few points of each cell to those of the grid, and of finer ones while these are few enough."""
        if level < len(_FEW_POINTS):
            order = round(_FEW_POINTS[level] * self.shared.grid.order)
            return SharedGrid(self.shared, order, self.shared.theta).threads(self.which)
        grid: SharedGrid | None = self.shared.grid
        for _ in range(level - len(_FEW_POINTS)):
            grid = self.shared.finer(grid, _MOST_NODES) if grid else None
        return grid.threads(self.which) if grid else None

    def _scored(self, key: Key) -> Estimate:
        """On the two grids, or from lines of θ where they differ."""
        value, other = (self._mean(nodes, key, new=False) for nodes in reversed(list(self.nodes())))
        found = Estimate(min(value, 1.0), SLOW * abs(value - other) + self.error * 1e-3)
        if found.error < SCORE_TOLERANCE and has_cell(self.counts, key):
            return found
        return self._chance_on_threads(key)

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """By inverse distribution functions: p and q, then θ given both (evaluated)."""
        errors = self.shared.draw_errors(size, rng)
        return np.stack([self.shared.draw_prevalence(self.which, errors, rng), errors.p, errors.q])
