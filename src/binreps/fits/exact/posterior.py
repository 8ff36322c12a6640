"""The integrated posterior of one population: moments, densities, answers about records, draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from binreps.counts import CountTable
from binreps.errors import FitError
from binreps.fits.exact.chart import Box, Chart, Place
from binreps.fits.exact.density import Density, informative
from binreps.fits.exact.draws import Piece, draw
from binreps.fits.exact.grid import Grid, NoMassError
from binreps.fits.exact.integrated import (
    LEAST_ERROR,
    SCORE_ENDS,
    SCORE_TOLERANCE,
    SLOW,
    Integrated,
    has_cell,
    heavy_points,
)
from binreps.fits.exact.lattice import TooManyPointsError, frame_of
from binreps.fits.exact.lines import Asked, Bundle, Crossings, bundles
from binreps.fits.exact.rules import (
    OLDER_POWER,
    POWER,
    TOLERANCE,
    Lattices,
    Product,
    Rule,
    log_mass,
    moments,
    trimmed,
    whole,
    within,
)
from binreps.fits.exact.shared import Shared
from binreps.fits.exact.tensor import Tensor, Tensors
from binreps.fits.exact.threads import Threads, heavy
from binreps.fits.marginal import Marginal
from binreps.fits.point.climb import scan
from binreps.fits.point.objective import Objective
from binreps.fits.posterior import Estimate, Key, Memory
from binreps.model import ALIKE, Float, Model, Prior

_SMALL, _SMALL_IF_ROUGH = 700, 3000  # replicates up to which a product over the whole domain is worth a try
_ROUGH = 1e-4  # sds: errors for which few points of it do
_LEAST_IN_BOX, _MOST_IN_BOX, _MOST = 2_000, 80_000, 400_000  # points of a lattice, before another rule
_LEAST_MOST, _MOST_IN_FOUR = 2_000_000, 40_000_000  # points of a product in four dimensions: most are empty
_WORK_IN_FOUR = 300_000_000  # and those times cells
_SMALL_PRODUCT = 100_000  # points of a product that is tried before any lattice
_NO_RIDGE = 5_000  # individuals up to which what cannot be identified is no ridge yet
_HOPELESS, _SLOWLY = 0.5, 0.01  # sds between two products of rules: no third will do, no fifth
_WORTH = 0.05  # sds: a model that is no better integrated than that is refused
_GOOD = 1e-6  # sds: what is not integrated better is tried on cells,
_NO_ROUGHER = 20.0  # or by so many times the error of a fit that is rough itself
_LEAST_IN_FOUR = 1e-7  # where less of the tails is kept
_DENSER = 2  # times the points of θ that a sum needs, for the polynomial through them
_LEAST_THREADS = 24  # points of any other axis: a chance is no polynomial, however few the data
_FIRST_LINES, _CLOSER, _CLOSEST_LINES = (
    1.2,
    0.8,
    0.5,
)  # sds between lines: closer ones cost more than they tell
_BESIDE_ONE = 1e-15  # of which floats have no two digits left
_ON_LINES = 1e-8  # sds, or of a chance: lines that differ by less are close enough
_TAILS = np.array([0.01, 0.05, 0.5, 0.95, 0.99])  # at which two densities are compared
_MORE_THREADS = (1.0, 1.4, 2.0, 2.8)  # times the points of p and q that the fit needed: a score may jump
_FEWER_THREADS, _MOST_THREADS = (0.7, 0.85, 1.0), 10_000  # in four dimensions, and about how many lines
_CORRELATIONS = (1e-10, 1e-5, 0.003, 0.03, 0.15, 0.4, 0.7)  # from which modes are looked for


class Agreed(NamedTuple):
    """Two grids of one rule, the finer last, and the error of the finer."""

    check: Grid
    grid: Grid
    error: float


def agree(rule: Rule, tol: float) -> Agreed:
    """Grids until they agree, or as many as the rule has.

    A lattice is compared with the two before it: of two alone one pair in many agrees by chance.
    """
    before: list[Grid] = []
    found: Agreed | None = None
    for level, grid in enumerate(rule.grids()):
        if before:
            last, *older = (min(_finite(grid.distance(one)), 1e100) for one in reversed(before))
            found = Agreed(before[-1], grid, _error(grid, 2 * last))
            error = rule.pauses * max([last**POWER, *(one**OLDER_POWER for one in older)])
            if error < tol and level >= rule.before:
                return found._replace(error=_error(grid, error))
            if isinstance(rule, Product) and last > (_HOPELESS if level < 3 else _SLOWLY):
                break
        before = [*before[-1:], grid]
    if found is None:
        raise TooManyPointsError
    return found


def _finite(distance: float) -> float:
    return distance if np.isfinite(distance) else 1e100


def _error(grid: Grid, distance: float) -> float:
    """At least what two grids have in common: tails cut off, and the rounding of a rate much above its sd."""
    rounding = float(np.finfo(float).eps * np.max(grid.mean / np.maximum(grid.sd, 1e-300)))
    return max(distance, LEAST_ERROR if len(grid.parameters) < 4 else _LEAST_IN_FOUR, rounding)


def integrate(
    counts: CountTable,
    prior: Prior,
    *,
    model: Model = ALIKE,
    shapes: tuple[float, float] | None = None,
    tol: float = TOLERANCE,
) -> Integrated:
    """The posterior by the first rule that is good enough, or by the best of those that are not."""
    if model is ALIKE and _layered(counts):
        return Shared([counts], prior).of(0)
    found: list[tuple[Rule, Agreed]] = []
    small = _SMALL if tol < _ROUGH else _SMALL_IF_ROUGH
    for make in _rules(informative(counts), prior, model, shapes, small):
        try:
            rule = make()
            found.append((rule, agree(rule, tol)))
        except (TooManyPointsError, NoMassError, np.linalg.LinAlgError):
            continue
        if found[-1][1].error <= tol:
            break
    best = min(found, key=lambda pair: pair[1].error, default=None)
    if model is ALIKE and (best is None or best[1].error > max(tol, _GOOD)):
        other = Shared([counts], prior).of(0)
        if best is None or other.error < best[1].error:
            return other
    if best is None or (model is not ALIKE and best[1].error > _WORTH):
        raise FitError(_too_thin(model, counts))
    return ExactPosterior(counts, *best)


def _layered(counts: CountTable) -> bool:
    """Whether nearly everyone has one replicate: p and q may be anything up to a layer, and no ridge."""
    pairs = int(counts.weight[counts.n == 2].sum())
    return not counts.identifiable and counts.individuals > _NO_RIDGE >= pairs


def _too_thin(model: Model, counts: CountTable) -> str:
    """Why a posterior cannot be integrated."""
    if model is ALIKE:
        return (
            f"the posterior of {counts.individuals:,} individuals is too narrow for floats to integrate; "
            "fewer say as much"
        )
    return (
        "the over-dispersed posterior is too thin a ridge to integrate: these data cannot tell the "
        "correlation from the error rates, which takes someone with n ≥ 4; fit_bayes takes any data"
    )


def _rules(
    counts: CountTable, prior: Prior, model: Model, shapes: tuple[float, float] | None, small: int
) -> Iterator[Callable[[], Rule]]:
    """What to try, in this order."""
    chart = Box(model, prior.region)
    start = (0.5, *prior.region.errors(0.4, 0.4), *[0.1] * (chart.dim - 3))
    plain = Density(counts, prior, chart.place(chart.coordinates(*start)[:, None]), model, shapes)
    if counts.replicates <= small:
        yield partial(whole, plain)
    modes = _modes(counts, prior, plain, chart)
    density = plain.centred(chart.place(chart.coordinates(*modes[:, :1])))
    if model is ALIKE and not counts.identifiable and counts.individuals > _NO_RIDGE:
        yield partial(moments, density, modes, _MOST)
    if model is not ALIKE:
        points = min(_MOST_IN_FOUR, max(_LEAST_MOST, _WORK_IN_FOUR // max(len(counts), 1)))
        yield lambda: trimmed(density, modes, _MOST).up_to(points)
        yield lambda: whole(density).up_to(points)
        return
    with suppress(TooManyPointsError, NoMassError):
        most = max(_LEAST_IN_BOX, min(_MOST, _MOST_IN_BOX * 30 // max(len(counts), 1)))
        product = trimmed(density, modes, most)
        if product.points(1) < _SMALL_PRODUCT * len(product.parts):
            yield lambda: product.up_to(4 * _SMALL_PRODUCT * len(product.parts))


def _modes(counts: CountTable, prior: Prior, density: Density, chart: Chart) -> Float:
    """Points near the modes, as columns, the highest first."""
    theta, p, q = ((a + 1, b + 1) for a, b in prior)
    lifted = Prior(theta, p, q, prior.better_than_chance)
    starts = np.stack(scan(Objective(counts, lifted)), axis=1)
    if chart.dim == 3:
        return starts
    each = [np.concatenate([starts, np.full((1, starts.shape[1]), rho)]) for rho in _CORRELATIONS]
    starts = np.concatenate(each, axis=1)
    value = log_mass(density, chart)(chart.coordinates(*starts))
    return np.asarray(starts[:, np.argsort(-value)])


class ExactPosterior(Integrated):
    """The posterior of one population: grids, and the density where something needs points of its own."""

    def __init__(self, counts: CountTable, rule: Rule, agreed: Agreed) -> None:
        super().__init__(counts, agreed.grid, agreed.error)
        self._check, self.rule, self.density = agreed.check, rule, rule.density
        self.model, self.region = self.density.model, self.density.prior.region
        self._marginals = Memory(len(self.model.names))

    @property
    def check(self) -> Grid:
        """As `Integrated` says."""
        return self._check

    def with_more(self, more: CountTable) -> Integrated:
        """The posterior with more individuals in the data."""
        density = self.density
        return integrate(self.counts + more, density.prior, model=self.model, shapes=density.shapes)

    # Densities of one number -----------------------------------------------------------------------

    def marginal(self, axis: int) -> Marginal:
        """The density of one parameter, made once."""
        found: Marginal = self._marginals.get(axis, lambda: self._marginal(axis))
        found.poles = self._poles(axis)
        return found

    def _poles(self, axis: int) -> tuple[float, ...]:
        """Where the prior of a parameter has a pole: the data take none away."""
        low, high = [*self.density.prior, self.density.shapes or (1.0, 1.0)][axis]
        far = () if axis in (1, 2) else (1.0,)  # below ½, or p + q = 1, an error rate ends before it
        return (*((0.0,) if low < 1 else ()), *(far if high < 1 else ()))

    def _marginal(self, axis: int) -> Marginal:
        """On a product or along a ridge, or from cells where either is too rough."""
        enough = _NO_ROUGHER * self.error
        if isinstance(self.grid, Tensors):
            found = self.grid.marginal(self.density, axis, enough)
        else:
            found = self._along_ridge(axis)
        if self.model is ALIKE and found.error > max(_GOOD, enough):
            found = min(found, self._twin.marginal(axis), key=lambda one: one.error)
        return found

    def _along_ridge(self, axis: int) -> Marginal:
        """The density of one rate along a ridge."""
        sd, end = float(np.sqrt(self.covariance[axis, axis])), self.region.end if axis in (1, 2) else 1.0

        def apart(one: Marginal, other: Marginal) -> float:
            return float(np.max(np.abs(one.quantile(_TAILS) - other.quantile(_TAILS)))) / sd

        return self._on_lines(Asked(partial(_logit_of, axis=axis, end=end), end), apart)

    def roughly(self, axis: int, probabilities: Float) -> Float:
        """As `Integrated` says, from the marginal where that is at hand."""
        if isinstance(self.grid, Tensors):
            return np.asarray(self.marginal(axis).quantile(probabilities))
        return super().roughly(axis, probabilities)

    def _on_lines(self, asked: Asked, apart: Callable[[Marginal, Marginal], float]) -> Marginal:
        """The distribution of a number along a ridge, from closer and closer lines until two agree."""
        spacing, found = self._furthest(asked)
        while found.error > _ON_LINES and spacing > _CLOSEST_LINES:
            spacing, before = _CLOSER * spacing, found
            with suppress(TooManyPointsError):
                found = Crossings(self._bundles(spacing), asked)
                found.error = apart(found, before)
        found.error *= SLOW
        return found

    def _furthest(self, asked: Asked) -> tuple[float, Crossings]:
        """The distribution from lines as close as may be at first, and how close they are."""
        for spacing in (_FIRST_LINES, 2 * _FIRST_LINES, 4 * _FIRST_LINES):
            with suppress(TooManyPointsError):
                found = Crossings(self._bundles(spacing), asked)
                found.error = np.inf
                return spacing, found
        raise FitError(_too_thin(self.model, self.counts))

    def _of_record(self, key: Key, new: bool) -> Asked:
        """The log odds of a record, reweighted by itself if it is new."""
        record = self.model.record(key)
        top = float(np.logaddexp(*self.model.log_shares(record, *self._heavy[0])).max())

        def classes(place: Place) -> tuple[Float, Float]:
            negative, positive = self.model.log_classes(record, place.p, place.q, *place.rest)
            return negative[0] + log_expit(-place.u), positive[0] + log_expit(place.u)

        def odds(place: Place) -> Float:
            negative, positive = classes(place)
            return np.asarray(positive - negative)

        return Asked(odds, None, (lambda place: np.exp(np.logaddexp(*classes(place)) - top)) if new else None)

    def _bundles(self, spacing: float) -> list[Bundle]:
        assert isinstance(self.rule, Lattices)
        found: list[Bundle] = self._lines.get(spacing, partial(bundles, self.density, self.rule, spacing))
        return found

    @cached_property
    def _lines(self) -> Memory:
        return Memory(4)

    # Records ---------------------------------------------------------------------------------------

    @cached_property
    def _twin(self) -> Integrated:
        """The same posterior on cells of (p, q) and lines of θ: dearer, and blind to no pole and no jump."""
        return Shared([self.counts], self.density.prior).of(0)

    def _scored(self, key: Key) -> Estimate:
        """E[P(T = 1 | s)] on the grids, or from closer looks where these may miss a jump."""
        value, other = (self._mean(nodes, key, new=False) for nodes in reversed(list(self.nodes())))
        error = SLOW * abs(value - other) + self.error * (1e-3 if len(self.mean) < 4 else 1.0) + self._rounded
        found = Estimate(value, error)
        unseen = isinstance(self.grid, Tensors) and not has_cell(self.counts, key)
        if unseen or (error > SCORE_TOLERANCE and len(self.mean) < 4):
            better = self._closer(key, found)
            found = better if unseen or better.error < error else found
        return Estimate(min(max(found.value, 0.0), 1.0), max(found.error, 1e-12))

    @cached_property
    def _rounded(self) -> float:
        """The mass of points so near to θ = 1 that floats lose the odds of it."""
        theta = np.broadcast_to(self.grid.parameters[0], self.grid.mass.shape)
        return float(self.grid.mass[theta > 1 - _BESIDE_ONE].sum())

    def _closer(self, key: Key, roughly: Estimate) -> Estimate:
        """A score from lines of θ, or from the twin."""
        if isinstance(self.rule, Lattices):
            return roughly
        if self._singular:
            return self._twin._scored(key)
        found = self._chance_on_threads(key)
        if self.small or found.error < SCORE_TOLERANCE or len(self.mean) > 3:
            return found
        return min(found, self._twin._scored(key), key=lambda one: float(one.error))

    @property
    def small(self) -> bool:
        """Whether the posterior was integrated over the whole domain."""
        return isinstance(self.grid, Tensors) and self.grid.whole

    @property
    def _singular(self) -> bool:
        """Whether an error rate has a pole at 0, beside which the points of a product see no jump."""
        _, (p, _), (q, _) = self.density.prior
        return min(p, q) < 1 and len(self.mean) < 4

    def _threads(self, level: int) -> tuple[list[Threads], Float] | None:
        """Products with more and more points of p and q: a score may jump."""
        assert isinstance(self.grid, Tensors)
        detail = _MORE_THREADS
        if len(self.mean) > 3:
            lines = sum(len(part.mass) for part in self.grid.parts)
            detail = tuple(min(1.0, (_MOST_THREADS / lines) ** (1 / 3)) * part for part in _FEWER_THREADS)
        if level == len(detail):
            return None
        found = []
        for part in self.grid.parts:
            first, *others = (max(size, _LEAST_THREADS) for size in part.sizes)
            sizes = (_DENSER * first, *(round(detail[level] * size) for size in others))
            grid = Tensor(self.density, sizes, part.ends)
            some = heavy(grid.mass)
            errors = [x[some] for x in grid.errors]
            found.append(Threads(self.model, errors, grid.mass[some], grid.axes[0]))
        return found, self.grid.shares

    def _law_ends(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """From lines of θ, from lines of a ridge, or from the twin."""
        if self._singular:
            return self._twin._law_ends(keys, tails, new)
        if not isinstance(self.grid, Tensors):
            return {key: self._ends_on_ridge(key, tails, new) for key in keys}
        found = super()._law_ends(keys, tails, new)
        rough = [key for key, one in found.items() if one.error.max() > SLOW * SCORE_ENDS]
        if rough and not self.small and len(self.mean) < 4:
            better = self._twin._law_ends(rough, tails, new)
            found |= {key: one for key, one in better.items() if one.error.max() < found[key].error.max()}
        return found

    def _ends_on_ridge(self, key: Key, tails: Float, new: bool) -> Estimate:
        def apart(one: Marginal, other: Marginal) -> float:
            return float(np.max(np.abs(expit(one.quantile(tails)) - expit(other.quantile(tails)))))

        law = self._on_lines(self._of_record(key, new), apart)
        return Estimate(expit(law.quantile(tails)), np.full(tails.size, max(law.error, 1e-9)))

    # Draws -----------------------------------------------------------------------------------------

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Independent draws, shape (parameters, size).

        In the moments, in which one or two replicates each leave nothing curved; else around each mode; and
        from cells where the prior's poles leave a lattice too rough.
        """
        mass = self.log_evidence - self.density.log_likelihood - self.density.log_constant
        for pieces in self._lattices():
            with suppress(TooManyPointsError, NoMassError):
                return draw(pieces, mass, size, rng)
        if self.model is ALIKE:
            return self._twin.draws(size, rng)
        raise FitError("this posterior is too rough to draw from; its means and intervals stand")

    def _lattices(self) -> Iterator[list[Piece]]:
        """Densities in charts and frames of lattices that together cover the posterior: what to try."""
        if self.model is ALIKE and not self.counts.identifiable:
            with suppress(TooManyPointsError, NoMassError):
                yield self._in_moments
        if isinstance(self.grid, Tensors):
            yield self._around_modes

    @cached_property
    def _in_moments(self) -> list[Piece]:
        if isinstance(self.rule, Lattices):
            return _on_lattices(self.rule)
        parameters, mass = self._heavy
        return _on_lattices(moments(self.density, parameters[:, [np.argmax(mass)]], _MOST))

    @cached_property
    def _around_modes(self) -> list[Piece]:
        assert isinstance(self.grid, Tensors)
        first, *others = self.grid.parts
        if not others:
            return [self._piece(first)]
        each = [(part, *self._piece(part)) for part in self.grid.parts]
        return [(within(part.ends, chart, function), chart, frame) for part, function, chart, frame in each]

    def _piece(self, part: Tensor) -> Piece:
        """A chart and a frame that follow one mode."""
        chart = Box(self.model, self.region)
        parameters, mass = heavy_points(part)
        fitted, x = chart.fitted(chart.coordinates(*parameters), mass)
        return log_mass(self.density, fitted), fitted, frame_of(x, mass)


def _on_lattices(rule: Lattices) -> list[Piece]:
    """The density in the charts of a rule."""
    pairs = zip(rule.charts, rule.frames, strict=True)
    return [(log_mass(rule.density, chart), chart, frame) for chart, frame in pairs]


def _logit_of(place: Place, axis: int, end: float) -> Float:
    """The logit of one parameter at places, as a share of its end."""
    if axis == 0:
        return place.u
    log_x, log_rest = (place.log_p, place.log_q, *place.log_rest)[axis - 1]
    if end < 1:
        log_x = log_x - np.log(end)
        log_rest = np.log(np.maximum(-np.expm1(log_x), 1e-300))
    return np.asarray(log_x - log_rest)


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

    def of(self, which: int) -> Integrated:
        """The posterior of the population."""
        del which
        return self._posterior

    def joint_draws(self, size: int, rng: np.random.Generator) -> list[Float]:
        """Draws of the parameters of each population."""
        return [self._posterior.draws(size, rng)]


def share(tables: Sequence[CountTable], prior: Prior) -> Shared | Alone:
    """The posterior of several populations, or of one."""
    return Shared(tables, prior) if len(tables) > 1 else Alone(tables[0], prior)
