"""Several prevalences, one pair of error rates: (p, q) on a product of rules, each θ on its own support.

Given (p, q) the prevalences are independent, so the posterior of all of them is a two-dimensional integral
of a product of one-dimensional ones: the work grows linearly with the number of populations. Seen from one
population, the others are a weight on (p, q).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from binreps.counts import CountTable
from binreps.fits.exact.chances import TOLERANCE, ExactPosterior
from binreps.fits.exact.conditional import Conditional, Inner, Population
from binreps.fits.exact.density import Density, informative
from binreps.fits.exact.gauss import Interval, Series, jacobi_polynomials, series_tail
from binreps.fits.exact.grid import Grid, Marginal
from binreps.fits.exact.lines import ThetaLines, lines_that_matter, sorts_that_matter
from binreps.fits.exact.posterior import draw_on, draw_rows, has_cell
from binreps.fits.exact.support import Lines
from binreps.fits.exact.tensor import snapped
from binreps.fits.posterior import Key
from binreps.model import Float, Prior

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
_HALVINGS = 7  # of a marginal of θ


class Points:
    """Nodes of a product of two rules as a list, and the weight of each: with the prior, and without."""

    def __init__(self, plain: Density, box: Square, sizes: tuple[int, int]) -> None:
        self.box, self.sizes = box, sizes
        self.nodes = tuple(box[i].nodes(sizes[i]) for i in (0, 1))
        weights = [
            box[i].log_weights(sizes[i]) + plain.log_prior_rest(i + 1, self.nodes[i], box[i]) for i in (0, 1)
        ]
        self.log_weight = np.add.outer(*weights).ravel()
        self.log_step = np.add.outer(*(log_steps(box[i], sizes[i]) for i in (0, 1))).ravel()
        self._keep(np.arange(self.log_weight.size))

    def _keep(self, index: NDArray[np.int64]) -> None:
        self.index = np.divmod(index, self.sizes[1])
        self.p, self.q = self.nodes[0][self.index[0]], self.nodes[1][self.index[1]]
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
        self.points = Points(shared.plain, shared.box, sizes).near(shared.seen)
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
            theta = one.density.centre[0]
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
        density = copy.copy(self.shared.populations[which].density)
        density.log_likelihood, density.log_constant = self.shared.log_unit, 0.0  # of all populations
        return Grid(density, (theta, self.points.p[:, None], self.points.q[:, None]), log_mass)

    def _rows(self, which: int, size: int, lines: Lines | None = None) -> tuple[Float, Float]:
        """One population's lines: nodes of θ, and log masses."""
        one, inner, points = self.shared.populations[which], self.inner[which], self.points
        lines = lines or Lines(0, inner.lower, inner.upper)
        blocks = [
            one.masses(Lines(0, lines.lower[b], lines.upper[b]), points.p[b], points.q[b], size)
            for b in points.blocks()
        ]
        theta, log_mass = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return theta, log_mass + (self.log_mass - inner.log_mass)[:, None]

    def theta_lines(self, which: int) -> list[ThetaLines]:
        """One population's lines with twice the nodes, sorted by their ends."""
        inner, p, q = self.inner[which], self.points.p, self.points.q
        lines = Lines(0, inner.lower, inner.upper).with_few_ends()
        theta, log_mass = self._rows(which, 2 * self.theta, lines)
        masses = np.exp(log_mass - self.log_mass.max())
        return sorts_that_matter(
            [
                lines_that_matter(interval, theta[same], masses[same], p[same], q[same])
                for same, interval in lines.alike(self.shared.plain)
            ]
        )

    def theta_masses(self, which: int, inside: Interval) -> Float:
        """The marginal of one population's θ on an interval, as masses at the nodes of its rule."""
        density, log_mass = self.shared.populations[which].density, self.inner[which].log_mass
        theta = inside.nodes(_PANEL)[None]
        weights = inside.log_weights(theta.size) + density.log_prior_rest(0, theta, inside)
        result = np.zeros(theta.size)
        for some in (self._heavy[b] for b in _blocks(self._heavy.size)):
            ratio = density.log_ratio(theta, self.points.p[some, None], self.points.q[some, None])
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
        self.plain = Density(CountTable([], []), prior, np.array([0.5, 0.25, 0.25]))
        self.cells = sum(len(table) + 2 for table in self.tables)
        self.seen = self._find_box()
        self.box, highest = self.seen.points.box, np.argmax(self.seen.field + self.seen.points.log_weight)
        self.centre = float(self.seen.points.p[highest]), float(self.seen.points.q[highest])
        self.populations = [Population(table, prior, *self.centre) for table in self.tables]
        of_theta = -(len(tables) - 1) * float(betaln(*prior.prevalence))
        likelihood = sum(one.density.log_likelihood for one in self.populations)
        self.log_unit = likelihood + self.plain.log_constant + of_theta
        self._grids: dict[tuple[int, int, int], SharedGrid] = {}
        self.grid, self.check = self._integrate(tol)
        self.error = self.grid.distance(self.check)

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
        box, sizes = (self.plain.interval(1, 0.0, 0.5), self.plain.interval(2, 0.0, 0.5)), (_LOOKS, _LOOKS)
        for _ in range(100):
            points = Points(self.plain, box, sizes)
            field = self.laplace(points)
            power, mass = _tempered(points, field)
            occupied = (_occupied(mass, 0), _occupied(mass, 1))
            # What has fallen by e^−8 while tempered will have fallen by far more at its full power.
            cut = min(_CUT, 8 + _CUT * power)
            ends = [trimmed(box[i], mass.sum(axis=1 - i), 0.5, cut) for i in (0, 1)]
            smaller = (self.plain.interval(1, *ends[0]), self.plain.interval(2, *ends[1]))
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
        """The density of q, likewise."""
        return self._marginal(1)

    def _marginal(self, axis: int) -> Marginal:
        sizes = [size * (2 if i == axis else 1) for i, size in enumerate(self.check.sizes)]
        fine = SharedGrid(self, (sizes[0], sizes[1]), self.check.theta)
        return Marginal([(self.box[axis], fine.points.line(axis, fine.mass))])

    def with_more(self, which: int, more: CountTable) -> Shared:
        """The posterior with more individuals in one population."""
        tables = [table + more if i == which else table for i, table in enumerate(self.tables)]
        return Shared(tables, self.prior)

    @cached_property
    def _wide(self) -> SharedGrid:
        """The grid with twice the nodes on both axes, from which p given q is interpolated."""
        return SharedGrid(self, (2 * self.check.sizes[0], 2 * self.check.sizes[1]), self.check.theta)

    def draw_errors(self, size: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Independent draws of p and q: q from its marginal, p given q from an interpolated density."""
        u, wide, (inside_p, inside_q) = rng.random((2, size)), self._wide, self.box
        q = np.asarray(self.false_negative.quantile(u[1]))
        across = Series(inside_q, wide.points.matrix(wide.mass))  # one series in q for each node of p
        p = np.empty(size)
        for b in _blocks(size):
            polynomials = jacobi_polynomials(wide.sizes[1], inside_q.a, inside_q.b, inside_q.unit(q[b]))
            p[b] = draw_rows(inside_p, np.maximum(polynomials.T @ across.coefficients.T, 0), u[0, b])
        return p, q

    def draw_prevalence(self, which: int, p: Float, q: Float, rng: np.random.Generator) -> Float:
        """A draw of one population's θ given each p and q."""
        one, u, theta = self.populations[which], rng.random(p.size), np.empty(p.size)
        for b in _blocks(p.size):
            lines = one.lines(p[b], q[b])
            log_mass = one.masses(lines, p[b], q[b], 2 * self.grid.theta)[1]
            masses = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            theta[b] = draw_on(lines, self.plain, masses, u[b])
        return theta


def _blocks(size: int) -> Iterator[slice]:
    """Slices of so many points that they stay in the processor's cache."""
    return (slice(start, start + _BLOCK) for start in range(0, size, _BLOCK))


def log_steps(inside: Interval, size: int) -> Float:
    """Logarithms of the weights of a rule for ∫ f(x) dx."""
    x = inside.nodes(size)
    envelope = inside.a * np.log(x - inside.lower) + inside.b * np.log(inside.upper - x)
    return np.asarray(inside.log_weights(size) - envelope)


def trimmed(inside: Interval, masses: Float, end: float, cut: float = _CUT) -> tuple[float, float]:
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
    low, high = snapped(np.array([lower]), np.array([upper]), np.array([end]))
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


class SharedPosterior(ExactPosterior):
    """One population's posterior, the others a weight on (p, q)."""

    rule = "shared"

    def __init__(self, shared: Shared, which: int) -> None:
        super().__init__(shared.error)
        self.shared, self.which = shared, which
        self._lines: dict[float, list[ThetaLines]] = {}

    def with_more(self, more: CountTable) -> SharedPosterior:
        """Integrated again, with more individuals in this population."""
        return SharedPosterior(self.shared.with_more(self.which, more), self.which)

    def is_fitted(self, key: Key) -> bool:
        """Whether this population's table has the cell."""
        return has_cell(self.shared.tables[self.which], key)

    def other_grids(self, fitted: bool) -> list[Grid]:
        """None for a cell that is not in the data: two grids may agree there and both be wrong."""
        return [self.check] if fitted else []

    @property
    def evidence_error(self) -> float:
        """The difference of two grids."""
        return abs(self.shared.grid.log_evidence - self.shared.check.log_evidence)

    @cached_property
    def grid(self) -> Grid:  # type: ignore[override]
        """The finer of the two grids that agree."""
        return self.shared.grid.of(self.which)

    @cached_property
    def check(self) -> Grid:  # type: ignore[override]
        """The coarser."""
        return self.shared.check.of(self.which)

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
        marginal = Marginal(list(zip(panels, masses, strict=True)))
        marginal.error = max(change, float(self._tails(panels, masses).max()))
        return marginal

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
            rough = self._tails(pending, masses) > max(_TAIL, 0.1 * self._distance)
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
        low, high = snapped(np.maximum([mean - 9 * sd], 0.0), np.array([mean + 9 * sd]), np.ones(1))
        ends = float(low[0]), float(high[0])
        for _ in range(40):
            whole = self.shared.plain.interval(0, *ends)
            following = trimmed(whole, self.shared.check.theta_masses(self.which, whole), 1.0)
            if following == ends:
                break
            ends = following
        return whole

    def _halves(self, panel: Interval) -> tuple[Interval, Interval]:
        """A panel cut in the middle."""
        middle, interval = float(panel.lower + panel.upper) / 2, self.shared.plain.interval
        return interval(0, panel.lower, middle), interval(0, middle, panel.upper)

    def theta_lines(self, detail: float = 1.0, _least: int = 0) -> list[ThetaLines]:
        """The posterior as lines of θ; none where they would be too many."""
        if detail not in self._lines:
            grid = self.shared.grid
            finer = self.shared.finer(grid, detail, grid.theta, _MOST_NODES / 2) if detail > 1 else grid
            self._lines[detail] = [] if finer is None else finer.theta_lines(self.which)
        return self._lines[detail]

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """By inverse distribution functions: q, p given q (interpolated), θ given both (evaluated)."""
        p, q = self.shared.draw_errors(size, rng)
        return np.stack([self.shared.draw_prevalence(self.which, p, q, rng), p, q])
