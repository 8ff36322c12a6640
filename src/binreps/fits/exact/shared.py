"""Several prevalences, one pair of error rates: (p, q) on a product of rules, each θ on its own support.

Given (p, q) the prevalences are independent, so the posterior of all of them is a two-dimensional integral
of a product of one-dimensional ones: the work grows linearly with the number of populations. Seen from one
population, the others are a weight on (p, q).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, logit

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.chart import errors_at
from binreps.fits.exact.conditional import (
    Conditional,
    Inner,
    Lines,
    Population,
    draw_rows,
    snapped,
)
from binreps.fits.exact.density import informative
from binreps.fits.exact.gauss import Interval, Series, jacobi_polynomials, series_tail
from binreps.fits.exact.grid import Grid
from binreps.fits.exact.marginal import Marginal, Panels, find_root
from binreps.fits.exact.posterior import LEAST_ERROR, ExactPosterior, Integrated, integrate
from binreps.fits.exact.rules import TOLERANCE
from binreps.fits.exact.tensor import WHOLE, log_likelihoods, rate_interval, rate_weights, unit_axes
from binreps.fits.posterior import Estimate, Key
from binreps.model import ALIKE, Float, Prior

Square = tuple[Interval, Interval]

_CUT = 36.0  # the box ends where the density of (logit p, logit q) has fallen by e^−36
_LOOKS = 16  # nodes per axis while the box is looked for
_UNRESOLVED, _RESOLVED = 1.7, 4.6  # nodes that a line occupies, as in the rule for one population
_MOST_LOOKS = 300_000  # points at which the box is looked for
_MOST_POINTS = 4_000_000  # of a product of rules, most of which a thin ridge leaves empty
_MOST_WORK = 120_000_000  # points × inner nodes × cells; small grids are always allowed, for any cells
_SMALL_GRID = 100_000  # points × inner nodes
_MOST_NODES = 1_500_000  # points × inner nodes, when a sharp score asks for more than the moments did
_BLOCK = 2048  # points at a time
_THETA, _PANEL = 24, 64  # nodes of an inner line at first, and of a panel of a marginal of θ
_SETTLED = 1e-10  # log ∫ over θ may change by so much with more nodes
_AGREED = 1e-8  # two marginals that differ by less mass are the same
_TAIL = 1e-9  # a series has died out when its last terms are this small
_INTERVAL_TOLERANCE = 1e-6  # of a quantile of a chance
_SLOW = 3.0  # grids of similar size may both be off by more than they differ
_RIDGES, _MANY = 0.3, 5_000  # sds that were seen to be missed three times over, from so many individuals on
_HALVINGS = 7  # of a marginal of θ


class Points:
    """Nodes of a product of two rules over the region's square, and weights with the prior and without."""

    def __init__(self, prior: Prior, box: Square, sizes: tuple[int, int]) -> None:
        self.box, self.sizes, self.region = box, sizes, prior.region
        self.nodes = tuple(box[i].nodes(sizes[i]) for i in (0, 1))
        a, b = (x.ravel() for x in np.meshgrid(*self.nodes, indexing="ij"))
        self.log_step = np.add.outer(*(log_steps(box[i], sizes[i]) for i in (0, 1))).ravel()
        (a_p, b_p), (a_q, b_q) = prior.false_positive, prior.false_negative
        errors = errors_at(*self.region.errors(a, b))
        of_p = (a_p - 1) * errors.log_p[0] + (b_p - 1) * errors.log_p[1]
        of_q = (a_q - 1) * errors.log_q[0] + (b_q - 1) * errors.log_q[1]
        self.log_weight = self.log_step + of_p + of_q + self.region.log_area(a, b)
        self._keep(np.arange(self.log_weight.size))

    def _keep(self, index: NDArray[np.int64]) -> None:
        self.index = np.divmod(index, self.sizes[1])
        self.p, self.q = self.region.errors(self.nodes[0][self.index[0]], self.nodes[1][self.index[1]])
        self.log_weight, self.log_step = self.log_weight[index], self.log_step[index]

    def near(self, seen: Seen) -> Points:
        """The points that matter, by interpolation between points seen before: logarithms are smooth."""
        p, q = (_interpolation(new, old) for new, old in zip(self.nodes, seen.points.nodes, strict=True))
        level = (p @ seen.field.reshape(seen.points.sizes) @ q.T).ravel() + self.log_weight
        some = copy.copy(self)
        some._keep(np.flatnonzero(level > level.max() - _CUT - 3 / seen.power))
        return some

    def blocks(self) -> Iterator[slice]:
        """The points in blocks."""
        return _blocks(self.p.size)

    def line(self, axis: int, mass: Float) -> Float:
        """Masses of the points added up along the other axis."""
        return np.asarray(np.bincount(self.index[axis], mass, minlength=self.sizes[axis]), float)

    def matrix(self, mass: Float) -> Float:
        """Masses of the points as a matrix, 0 where there is no point."""
        result = np.zeros(self.sizes)
        result[self.index] = mass
        return result


class Seen(NamedTuple):
    """What the search for the box saw last."""

    points: Points
    field: Float  # log ∫ over every θ, by Laplace's method
    power: float  # of the density that the points resolve, 1 if all went well
    occupied: tuple[float, float]  # nodes per line


class SharedGrid:
    """Points (p, q) with their posterior mass, and every population's θ integrated out at each of them."""

    def __init__(self, shared: Shared, sizes: tuple[int, int], theta: int) -> None:
        self.shared, self.sizes, self.theta = shared, sizes, theta
        self.points = Points(shared.prior, shared.box, sizes).near(shared.seen)
        self.inner = [self._integrated(one) for one in shared.populations]
        self.log_mass = self.points.log_weight + np.sum([inner.log_mass for inner in self.inner], axis=0)
        top = float(self.log_mass.max())
        mass = np.exp(self.log_mass - top)
        self.log_evidence = top + float(np.log(mass.sum())) + shared.log_unit
        self.mass = mass / mass.sum()

    def _integrated(self, one: Population) -> Inner:
        points = self.points
        blocks = [one.integrate(points.p[b], points.q[b], self.theta) for b in points.blocks()]
        return Inner(*map(np.concatenate, zip(*blocks, strict=True)))

    @cached_property
    def mean(self) -> Float:
        """Posterior means of p, q and every θ."""
        p, q = self.shared.centre
        rates = [p + self.mass @ (self.points.p - p), q + self.mass @ (self.points.q - q)]
        for inner, one in zip(self.inner, self.shared.populations, strict=True):
            theta = float(expit(one.density.centre.u[0]))
            rates.append(theta + self.mass @ (inner.mean - theta))
        return np.array(rates)

    @cached_property
    def sd(self) -> Float:
        """Posterior standard deviations of p, q and every θ."""
        p, q, *prevalences = self.mean
        squares = [self.mass @ (self.points.p - p) ** 2, self.mass @ (self.points.q - q) ** 2]
        for inner, mean in zip(self.inner, prevalences, strict=True):
            squares.append(self.mass @ (inner.variance + (inner.mean - mean) ** 2))
        return np.sqrt(squares)

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
        return Grid((theta, self.points.p[:, None], self.points.q[:, None]), log_mass, self.shared.log_unit)

    def _rows(self, which: int, size: int, lines: Lines | None = None) -> tuple[Float, Float]:
        """One population's lines: nodes of θ, and log masses."""
        one, inner, points = self.shared.populations[which], self.inner[which], self.points
        lines = lines or Lines(inner.lower, inner.upper)
        blocks = [
            one.masses(Lines(lines.lower[b], lines.upper[b]), points.p[b], points.q[b], size)
            for b in points.blocks()
        ]
        theta, log_mass = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return theta, log_mass + (self.log_mass - inner.log_mass)[:, None]

    def score_quantile(self, which: int, key: Key, tails: Float, log_weight: Any) -> Float:
        """Quantiles of the log odds of a record, reweighted by e^log_weight(θ, p, q) if it is given.

        Given p and q they grow with θ: their distribution function is a sum over lines of θ.
        """
        points, inner = self.points, self.inner[which]
        lines = Lines(inner.lower, inner.upper)
        theta, log_mass = self._rows(which, 2 * self.theta, lines)
        if log_weight is not None:
            log_mass = log_mass + log_weight(theta, points.p[:, None], points.q[:, None])
        mass = np.exp(log_mass - log_mass.max())
        negative, positive = ALIKE.log_classes(ALIKE.record(key), points.p, points.q)
        evidence = positive[0] - negative[0]
        parts = [(Series(kind, mass[same]), evidence[same]) for same, kind in lines.kinds(self.shared.prior)]
        total = float(mass.sum())
        odds = logit(theta) + evidence[:, None]
        order = np.argsort(odds, axis=None)
        reached, sorted_odds = np.cumsum(mass.ravel()[order]) / total, odds.ravel()[order]

        def excess(z: float, tail: float) -> float:
            below = sum(float(np.sum(part.cumulative(expit(z - add)))) for part, add in parts)
            return below / total - tail

        found = []
        for tail in tails.tolist():
            guess, step = float(np.interp(tail, reached, sorted_odds)), 0.05
            while excess(guess - step, tail) > 0 or excess(guess + step, tail) < 0:
                step *= 4
            found.append(find_root(partial(excess, tail=tail), guess - step, guess + step))
        return np.array(found)

    def theta_masses(self, which: int, inside: Interval) -> Float:
        """The marginal of one population's θ on an interval, as masses at the nodes of its rule."""
        density, log_mass = self.shared.populations[which].density, self.inner[which].log_mass
        theta = inside.nodes(_PANEL)[None]
        weights = inside.log_weights(theta.size) + rate_weights(self.shared.prior.prevalence, theta, inside)
        result = np.zeros(theta.size)
        for some in (self._heavy[b] for b in _blocks(self._heavy.size)):
            errors = errors_at(self.points.p[some, None], self.points.q[some, None])
            ratio = log_likelihoods(density, theta, errors)
            result += self.mass[some] @ np.exp(ratio + weights - log_mass[some, None])
        return result

    @cached_property
    def _heavy(self) -> NDArray[np.int64]:
        """The points whose mass shows in a marginal."""
        return np.flatnonzero(self.mass > 1e-17 * self.mass.max())


class Shared:
    """The posterior of several prevalences and one pair of error rates."""

    def __init__(self, tables: Sequence[CountTable], prior: Prior, tol: float = TOLERANCE) -> None:
        self.prior, self.tables = prior, [informative(table) for table in tables]
        self.cells = sum(len(table) + 2 for table in self.tables)
        self.seen = self._find_box()
        self.box, highest = self.seen.points.box, np.argmax(self.seen.field + self.seen.points.log_weight)
        self.centre = float(self.seen.points.p[highest]), float(self.seen.points.q[highest])
        self.populations = [Population(table, prior, *self.centre) for table in self.tables]
        of_theta = -(len(tables) - 1) * float(betaln(*prior.prevalence))
        likelihood = sum(one.density.log_likelihood for one in self.populations)
        self.log_unit = likelihood + prior.log_constant + of_theta
        self._grids: dict[tuple[int, int, int], SharedGrid] = {}
        self.grid, self.check = self._integrate(tol)
        self.error = max(self.grid.distance(self.check) * _SLOW, LEAST_ERROR, self._unresolved())
        self.mean, self.sd, self.log_evidence = self.grid.mean, self.grid.sd, self.grid.log_evidence

    def _unresolved(self) -> float:
        """What two grids miss alike where nobody has two replicates and p + q < 1: thin ridges that meet."""
        once = all(int(table.n.max(initial=0)) < 2 for table in self.tables)
        many = sum(table.individuals for table in self.tables) > _MANY
        return _RIDGES if self.prior.better_than_chance and once and many else 0.0

    def laplace(self, points: Points) -> Float:
        """log ∫ over every θ at the points, by Laplace's method."""
        total = np.zeros(points.p.size)
        for block in points.blocks():
            p, q = points.p[block], points.q[block]
            for table in self.tables:
                total[block] += Conditional(table, self.prior, p, q).laplace()
        return total

    def _find_box(self) -> Seen:
        """A box that holds the posterior of (p, q), and what it looks like there.

        From the whole domain inwards: temper the density until the nodes resolve it, cut off where it is
        negligible, repeat. A ridge cannot be cut: it gets more nodes.
        """
        box, sizes = self._square((0.0, 1.0), (0.0, 1.0)), (_LOOKS, _LOOKS)
        for _ in range(100):
            points = Points(self.prior, box, sizes)
            field = self.laplace(points)
            power, mass = _tempered(points, field)
            occupied = (_occupied(mass, 0), _occupied(mass, 1))
            # What has fallen by e^−8 while tempered will have fallen by far more at its full power.
            cut = min(_CUT, 8 + _CUT * power)
            smaller = self._square(*(trimmed(box[i], mass.sum(axis=1 - i), cut) for i in (0, 1)))
            if smaller == box:
                larger = [
                    int(np.ceil(1.5 * size)) if o < 2.5 else size
                    for size, o in zip(sizes, occupied, strict=True)
                ]
                if power == 1 or larger[0] * larger[1] > _MOST_LOOKS:
                    break
                sizes = (larger[0], larger[1])
            box = smaller
        return Seen(points, field, power, occupied)

    def _square(self, a: tuple[float, float], b: tuple[float, float]) -> Square:
        """A part of the region's square, with the prior's powers at the ends that it reaches."""
        _, first, second = unit_axes(self.prior, (WHOLE, a, b))
        return first, second

    def _integrate(self, tol: float) -> tuple[SharedGrid, SharedGrid]:
        """Grids of growing size until two agree or the work allowed is done: the last two, finer first."""
        sizes, occupied = self.seen.points.sizes, self.seen.occupied
        p, q = (max(9, int(np.ceil(s * _RESOLVED / o))) for s, o in zip(sizes, occupied, strict=True))
        before, grid = None, SharedGrid(self, (p, q), self._theta_nodes())
        while before is None or grid.distance(before) > tol:
            finer = self.finer(grid, 1.15, grid.theta + 2)
            if finer is None:
                break
            before, grid = grid, finer
        self._grids.clear()
        return grid, before or SharedGrid(self, (int(0.9 * p), int(0.9 * q)), grid.theta - 2)

    def _theta_nodes(self) -> int:
        """The nodes that an inner line needs: those with which nothing changes where the posterior is."""
        points = self.seen.points
        best = np.argsort(self.seen.field + points.log_weight)[-16:]
        p, q, size = points.p[best], points.q[best], _THETA
        while size < 200:
            changes = [
                one.integrate(p, q, size).log_mass - one.integrate(p, q, 2 * size).log_mass
                for one in self.populations
            ]
            if np.max(np.abs(changes)) < _SETTLED:
                break
            size = int(1.4 * size)
        return size

    def finer(self, grid: SharedGrid, detail: float, theta: int, most: float = np.inf) -> SharedGrid | None:
        """A grid with `detail` × the nodes of p and q and so many of θ, made once.

        None if that is more work than is allowed, or more nodes than `most`.
        """
        p, q = (int(np.ceil(size * detail)) for size in grid.sizes)
        nodes = grid.points.p.size * detail**2 * theta
        too_much = nodes * self.cells > _MOST_WORK and nodes > _SMALL_GRID
        if too_much or nodes > most or p * q > _MOST_POINTS:
            return None
        if (p, q, theta) not in self._grids:
            self._grids[p, q, theta] = SharedGrid(self, (p, q), theta)
        return self._grids[p, q, theta]

    @cached_property
    def false_positive(self) -> Marginal:
        """The density of p, from a grid with twice the nodes on its axis.

        A rule of n nodes integrates like a polynomial of degree 2n but interpolates like one of degree n.
        """
        return self._marginal(0)

    @cached_property
    def false_negative(self) -> Marginal:
        """The density of q, likewise; where the square has it second, that of the mirror image's p."""
        return self._mirrored.false_positive if self.prior.better_than_chance else self._marginal(1)

    @cached_property
    def _mirrored(self) -> Shared:
        """The same posterior with positive and negative exchanged."""
        tables = [
            CountTable(
                t.n,
                t.n - t.s,
                t.weight,
                np.array([None if k == UNKNOWN else 1 - k for k in t.known.tolist()], dtype=object),
            )
            for t in self.tables
        ]
        prior = self.prior
        mirrored = replace(
            prior,
            prevalence=prior.prevalence[::-1],
            false_positive=prior.false_negative,
            false_negative=prior.false_positive,
        )
        return Shared(tables, mirrored)

    def _marginal(self, axis: int) -> Marginal:
        sizes = [size * (2 if i == axis else 1) for i, size in enumerate(self.check.sizes)]
        fine = SharedGrid(self, (sizes[0], sizes[1]), self.check.theta)
        inside, end, masses = self.box[axis], self.prior.region.end, fine.points.line(axis, fine.mass)
        scaled = Interval(end * inside.lower, end * inside.upper, inside.a, inside.b)
        return Panels([(scaled, masses)], float(series_tail(scaled, masses[None])[0]))

    def with_more(self, which: int, more: CountTable) -> Shared:
        """The posterior with more individuals in one population."""
        tables = [table + more if i == which else table for i, table in enumerate(self.tables)]
        return Shared(tables, self.prior)

    @cached_property
    def _wide(self) -> SharedGrid:
        """The grid with twice the nodes on both axes, from which p given q is interpolated."""
        return SharedGrid(self, (2 * self.check.sizes[0], 2 * self.check.sizes[1]), self.check.theta)

    def draw_errors(self, size: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Independent draws of p and q: the square's b, then a given b from an interpolated density."""
        u, wide, (inside_a, inside_b) = rng.random((2, size)), self._wide, self.box
        b = Panels([(inside_b, wide.points.line(1, wide.mass))]).quantile(u[1])
        across = Series(inside_b, wide.points.matrix(wide.mass))  # one series in b for each node of a
        a = np.empty(size)
        for some in _blocks(size):
            polynomials = jacobi_polynomials(wide.sizes[1], inside_b.a, inside_b.b, inside_b.unit(b[some]))
            a[some] = draw_rows(inside_a, np.maximum(polynomials.T @ across.coefficients.T, 0), u[0, some])
        return self.prior.region.errors(a, b)

    def draw_prevalence(self, which: int, p: Float, q: Float, rng: np.random.Generator) -> Float:
        """A draw of one population's θ given each p and q."""
        one, u, theta = self.populations[which], rng.random(p.size), np.empty(p.size)
        for b in _blocks(p.size):
            lines = one.lines(p[b], q[b])
            log_mass = one.masses(lines, p[b], q[b], 2 * self.grid.theta)[1]
            masses = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            theta[b] = lines.draw(self.prior, masses, u[b])
        return theta

    def of(self, which: int) -> SharedPosterior:
        """The posterior of one population."""
        return SharedPosterior(self, which)

    def joint_draws(self, size: int, rng: np.random.Generator) -> list[Float]:
        """Draws of the parameters of each population, with error rates that all share."""
        p, q = self.draw_errors(size, rng)
        return [np.stack([self.draw_prevalence(i, p, q, rng), p, q]) for i in range(len(self.tables))]


def _blocks(size: int) -> Iterator[slice]:
    """Slices of so many points that they stay in the processor's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, size, _BLOCK))


def log_steps(inside: Interval, size: int) -> Float:
    """Logarithms of the weights of a rule for ∫ f(x) dx."""
    x = inside.nodes(size)
    envelope = inside.a * np.log(x - inside.lower) + inside.b * np.log(inside.upper - x)
    return np.asarray(inside.log_weights(size) - envelope)


def trimmed(inside: Interval, masses: Float, cut: float = _CUT) -> tuple[float, float]:
    """The ends of an interval, moved to where the density of the logit has fallen by e^−cut."""
    size = masses.size
    x = inside.nodes(size)
    with np.errstate(divide="ignore"):
        level = np.log(masses) - log_steps(inside, size) + np.log(x) + np.log1p(-x)
    above = np.flatnonzero(level > level.max() - cut)
    first, last = int(above[0]), int(above[-1])
    lower, upper = float(inside.lower), float(inside.upper)
    step = 0.4 * (upper - lower)
    if first == 0:
        lower = max(lower - step, lower / 8)
    elif first > 2:
        lower = float(x[first - 2])
    if last == size - 1:
        upper += step
    elif last < size - 3:
        upper = float(x[last + 2])
    low, high = snapped(np.array([lower]), np.array([upper]))
    if 0.85 * inside.length < high[0] - low[0] <= inside.length:  # not worth another look
        return float(inside.lower), float(inside.upper)
    return float(low[0]), float(high[0])


def _interpolation(new: Float, old: Float) -> Float:
    """The matrix of linear interpolation from old nodes to new ones; constant beyond the ends."""
    return np.stack([np.interp(new, old, unit) for unit in np.eye(old.size)], axis=1)


def _occupied(mass: Float, axis: int) -> float:
    """How many nodes a typical line along the axis occupies: 1 / mean of Σ mass² / (Σ mass)²."""
    lines = mass.sum(axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 / float(np.nansum((mass**2).sum(axis=axis) / lines))


def _tempered(points: Points, field: Float) -> tuple[float, Float]:
    """The highest power ≤ 1 of the density that the nodes resolve, and the masses of that power."""
    log_density = field + points.log_weight - points.log_step

    def masses(power: float) -> Float:
        log_mass = power * log_density + points.log_step
        mass = np.exp(log_mass - log_mass.max())
        return np.asarray((mass / mass.sum()).reshape(points.sizes))

    def resolved(power: float) -> bool:
        mass = masses(power)
        return min(_occupied(mass, 0), _occupied(mass, 1)) > _UNRESOLVED

    low, high = -40.0, 0.0  # log of the power
    if resolved(1.0):
        low = 0.0
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (middle, high) if resolved(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low)), masses(float(np.exp(low)))


class SharedPosterior(Integrated):
    """One population's posterior, the others a weight on (p, q)."""

    def __init__(self, shared: Shared, which: int) -> None:
        self.shared, self.which = shared, which
        super().__init__(shared.tables[which], shared.check.of(which), shared.grid.of(which), shared.error)

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
        before, grid = self.shared.check, self.shared.grid
        while True:
            panels, masses = self._panels(grid)
            change = float(np.sum(np.abs(masses - self._masses(before, panels))))
            finer = self.shared.finer(grid, 1.5, grid.theta + 2) if change > _AGREED else None
            if finer is None:
                break
            before, grid = grid, finer
        error = max(change, float(self._tails(panels, masses).max()))
        return Panels(list(zip(panels, masses, strict=True)), error)

    def _masses(self, grid: SharedGrid, panels: list[Interval]) -> Float:
        return np.stack([grid.theta_masses(self.which, panel) for panel in panels])

    def _tails(self, panels: list[Interval], masses: Float) -> Float:
        """How far the series on each panel is from having died out."""
        each = [series_tail(panel, row[None]) for panel, row in zip(panels, masses, strict=True)]
        return np.concatenate(each)

    def _panels(self, grid: SharedGrid) -> tuple[list[Interval], Float]:
        """Intervals of θ that hold its marginal, halved until it is a short series on each; its masses."""
        pending = [self._whole(grid)]
        done: list[tuple[Interval, Float]] = []
        for generation in range(_HALVINGS + 1):
            masses = self._masses(grid, pending)
            rough = self._tails(pending, masses) > max(_TAIL, 0.1 * self.error)
            rough &= generation < _HALVINGS
            done += [(pending[i], masses[i]) for i in np.flatnonzero(~rough)]
            pending = [half for i in np.flatnonzero(rough) for half in self._halves(pending[i])]
            if not pending:
                break
        done.sort(key=lambda pair: float(pair[0].lower))
        return [panel for panel, _ in done], np.stack([row for _, row in done])

    def _whole(self, grid: SharedGrid) -> Interval:
        """An interval that holds the marginal of θ."""
        mean, sd = grid.mean[2 + self.which], grid.sd[2 + self.which]
        low, high = snapped(np.maximum([mean - 9 * sd], 0.0), np.array([mean + 9 * sd]))
        ends = float(low[0]), float(high[0])
        for _ in range(40):
            whole = rate_interval(self.shared.prior.prevalence, *ends)
            following = trimmed(whole, self.shared.check.theta_masses(self.which, whole))
            if following == ends:
                break
            ends = following
        return whole

    def _halves(self, panel: Interval) -> tuple[Interval, Interval]:
        """A panel cut in the middle."""
        middle, shapes = float(panel.lower + panel.upper) / 2, self.shared.prior.prevalence
        return rate_interval(shapes, panel.lower, middle), rate_interval(shapes, middle, panel.upper)

    def _scored(self, key: Key) -> Estimate:
        """On the two grids; a finer one where they differ."""
        value, other = (self._mean(nodes, key, new=False) for nodes in reversed(list(self.nodes())))
        return Estimate(min(value, 1.0), 5 * abs(value - other) + self.error * 1e-3)

    def _ends(self, key: Key, tails: Float, new: bool) -> Estimate:
        """Quantiles of the log odds on finer and finer grids until two agree."""
        if new and self._kept(key) < 1e-3:
            n, s = key
            return self.with_more(CountTable([n], [s]))._ends(key, tails, False)
        weight = partial(self._log_weight, key) if new else None
        grid: SharedGrid | None = self.shared.grid
        before = expit(self.shared.check.score_quantile(self.which, key, tails, weight))
        while grid is not None:
            value = expit(grid.score_quantile(self.which, key, tails, weight))
            error = 2 * np.abs(value - before)
            if np.all(error < _INTERVAL_TOLERANCE):
                break
            before, grid = value, self.shared.finer(grid, 1.5, grid.theta, _MOST_NODES / 2)
        return Estimate(value, np.maximum(error, 1e-9))

    def _log_weight(self, key: Key, theta: Float, p: Float, q: Float) -> Float:
        """log P(s) of a new individual."""
        return np.asarray(np.logaddexp(*ALIKE.log_shares(ALIKE.record(key), theta, p, q))[0])

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """By inverse distribution functions: p and q, then θ given both (evaluated)."""
        p, q = self.shared.draw_errors(size, rng)
        return np.stack([self.shared.draw_prevalence(self.which, p, q, rng), p, q])


class Alone:
    """One population, which needs no sharing: what `Shared` offers, from its own posterior."""

    def __init__(self, counts: CountTable, prior: Prior) -> None:
        self._posterior = integrate(counts, prior)
        self.error, self.log_evidence = self._posterior.error, self._posterior.log_evidence
        self.mean, self.sd = self._posterior.mean[[1, 2, 0]], self._posterior.sd[[1, 2, 0]]

    @property
    def false_positive(self) -> Marginal:
        """The density of p."""
        return self._posterior.marginal(1)

    @property
    def false_negative(self) -> Marginal:
        """The density of q."""
        return self._posterior.marginal(2)

    def of(self, which: int) -> ExactPosterior:
        """The posterior of the population."""
        del which
        return self._posterior

    def joint_draws(self, size: int, rng: np.random.Generator) -> list[Float]:
        """Draws of the parameters of each population."""
        return [self._posterior.draws(size, rng)]


def share(tables: Sequence[CountTable], prior: Prior) -> Shared | Alone:
    """The posterior of several populations, or of one."""
    return Shared(tables, prior) if len(tables) > 1 else Alone(tables[0], prior)
