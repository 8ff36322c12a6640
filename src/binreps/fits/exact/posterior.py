"""The integrated posterior of one population: moments, densities, answers about records, draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import FitError
from binreps.fits.exact.chart import Box, Chart, Place
from binreps.fits.exact.density import Density, informative
from binreps.fits.exact.draws import draw
from binreps.fits.exact.grid import Grid, NoMassError
from binreps.fits.exact.lattice import CUT, Frame, TooManyPointsError, frame_of
from binreps.fits.exact.lines import Bundle, Crossings, bundles, known_variance
from binreps.fits.exact.marginal import Marginal, Scale, Wave
from binreps.fits.exact.rules import (
    OLDER_POWER,
    POWER,
    TOLERANCE,
    Lattices,
    Product,
    Rule,
    box,
    log_mass,
    moments,
    trimmed,
    whole,
)
from binreps.fits.exact.tensor import Tensor, Tensors
from binreps.fits.exact.threads import Threads, quantiles
from binreps.fits.exact.wave import Blur, How, blurred, expected_chance, wave
from binreps.fits.point.climb import scan
from binreps.fits.point.objective import Objective
from binreps.fits.posterior import Block, Estimate, Key, Memory, Nodes, Posterior, weighted_quantiles
from binreps.model import ALIKE, Float, Model, Prior

_SMALL = 700  # replicates up to which a product of rules over the whole domain is worth a try
_FEW_IN_BOX, _MOST_IN_BOX, _MOST = 3_000, 80_000, 400_000  # points of a lattice, before another rule is tried
_SMALL_PRODUCT = 100_000  # points of a product that is tried before any lattice
_NO_RIDGE = 5_000  # individuals up to which what cannot be identified is no ridge yet
_HOPELESS = 0.5  # sds between two products of rules: no third will do
_WORTH = 0.05  # sds: a model that is no better integrated than that is refused
LEAST_ERROR = 1e-10  # tails cut off and rounding, which two grids have in common
_ROUNDING = 3e-16  # per individual, on a ridge: 5·10⁻⁴ sds were seen to be missed at 2·10¹²
_LEAST_IN_FOUR = 1e-7  # where less of the tails is kept
_SLOW = 5.0  # grids of similar size may both be off by more than they differ
_KEPT = 1e-3  # of the posterior that must still count once it is reweighted by a new record
_SCORE_TOLERANCE = 1e-7  # of a score on two grids: beyond, its log odds are followed
_SCORE_IN_FOUR = 1e-4  # where fitting once more takes seconds, and gains a digit
_BESIDE_POLES = 30  # points of an axis
_TABLES = 1e-6  # of the ends of intervals: what cubics between the entries of a table are off
_LINES_LEFT_OUT = 5e-8  # of a chance, by lines of θ that are too light to count
_SCORE_ENDS = 1e-5  # of the ends of its interval
_CLOSEST_LINES = 0.5  # of the spacings of lines: closer ones cost more than they tell
_COARSER, _CLOSER, _CLOSEST = 1.13, 0.75, 0.2  # spacings of waves that are compared, and the least
_TAILS = np.array([0.01, 0.05, 0.5, 0.95, 0.99])  # at which two waves are compared
_MORE_THREADS = (1.0, 1.4, 2.0, 2.8)  # times the points of p and q that the fit needed: a score may jump
_FEWER_THREADS = (0.7, 0.85, 1.0)  # in four dimensions
_CORRELATIONS = (1e-10, 1e-5, 0.003, 0.03, 0.15, 0.4, 0.7)  # from which modes are looked for


_FINE, _ROUGH = How(0.9, CUT, 1e-8), How(1.1, 19.0, 1e-6)
_ON_LINES, _ON_ROUGH_LINES = How(1.0, CUT, 1e-8), How(1.0, CUT, 1e-2)
_BLURS = Blur(0.2), Blur(0.28), Blur(0.2, check=True)
_WIDER = 4.0  # what the wider blur is off, over the other: (28/20)⁸ is 15
_IN_FOUR, _CHANCES_IN_FOUR = How(1.3, 17.0, 0.02), How(1.4, 15.0, 0.01)


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
    for grid in rule.grids():
        if before:
            last, *older = (min(_finite(grid.distance(one)), 1e100) for one in reversed(before[-2:]))
            found = Agreed(before[-1], grid, _error(grid, 2 * last))
            error = max([last**POWER, *(one**OLDER_POWER for one in older)])
            if error < tol and len(before) >= rule.before:
                return found._replace(error=_error(grid, error))
            if isinstance(rule, Product) and last > _HOPELESS:
                break
        before.append(grid)
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
) -> ExactPosterior:
    """The posterior by the first rule that is good enough, or by the best of those that are not."""
    found: list[tuple[Rule, Agreed]] = []
    for make in _rules(informative(counts), prior, model, shapes):
        try:
            rule = make()
            found.append((rule, agree(rule, tol)))
        except (TooManyPointsError, NoMassError, np.linalg.LinAlgError):
            continue
        if found[-1][1].error <= tol:
            break
    best = min(found, key=lambda pair: pair[1].error, default=None)
    if best is None or (model is not ALIKE and best[1].error > _WORTH):
        raise FitError(_too_thin(model, counts))
    rule, agreed = best
    if isinstance(rule, Lattices) and not isinstance(rule.charts[0], Box):
        agreed = agreed._replace(error=max(agreed.error, _ROUNDING * counts.individuals))
    return ExactPosterior(counts, rule, agreed)


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
    counts: CountTable, prior: Prior, model: Model, shapes: tuple[float, float] | None
) -> Iterator[Callable[[], Rule]]:
    """What to try, in this order."""
    chart = Box(model, prior.region)
    start = (0.5, *prior.region.errors(0.4, 0.4), *[0.1] * (chart.dim - 3))
    plain = Density(counts, prior, chart.place(chart.coordinates(*start)[:, None]), model, shapes)
    if counts.replicates <= _SMALL:
        yield partial(whole, plain)
    modes = _modes(counts, prior, plain, chart)
    density = plain.centred(chart.place(chart.coordinates(*modes[:, :1])))
    ridge = model is ALIKE and not counts.identifiable and counts.individuals > _NO_RIDGE
    if ridge:
        yield partial(moments, density, modes, _MOST)
    most = min(_MOST, _MOST_IN_BOX * 30 // max(len(counts), 1)) if model is ALIKE else _MOST
    with suppress(TooManyPointsError, NoMassError):
        product = trimmed(density, modes, most)
        if product.points(1) < _SMALL_PRODUCT * len(product.parts):
            yield lambda: product.up_to(4 * _SMALL_PRODUCT * len(product.parts))
        yield partial(box, density, modes, _FEW_IN_BOX)
        yield lambda: product
    yield partial(box, density, modes, most)
    if model is ALIKE and not ridge:
        yield partial(moments, density, modes, _MOST)


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


class Integrated(Posterior):
    """Two grids that agree, and what follows from their points.

    Attributes
    ----------
    counts : CountTable
    grid, check : Grid
        The finer and the coarser.
    """

    def __init__(self, counts: CountTable, check: Grid, grid: Grid, error: float) -> None:
        super().__init__()
        self.counts, self.check, self.grid, self.error = counts, check, grid, error
        self.mean, self.covariance, self.log_evidence = grid.mean, grid.covariance, grid.log_evidence

    @abstractmethod
    def with_more(self, more: CountTable) -> Integrated:
        """The posterior with more individuals in the data."""

    @abstractmethod
    def _scored(self, key: Key) -> Estimate:
        """E[P(T = 1 | s)]."""

    @abstractmethod
    def _ends(self, key: Key, tails: Float, new: bool) -> Estimate:
        """Quantiles of P(T = 1 | s; parameters)."""

    def nodes(self) -> Iterator[Nodes]:
        """The coarser grid, then the finer one."""
        for grid in (self.check, self.grid):
            yield [Block(grid.parameters, grid.mass)]

    @cached_property
    def _heavy(self) -> tuple[Float, Float]:
        """The points that matter of a grid, and their masses."""
        grid = self._seen
        mass = grid.mass.ravel()
        matters = mass > 1e-10 * mass.max()
        parameters = [np.broadcast_to(x, grid.mass.shape).ravel()[matters] for x in grid.parameters]
        return np.stack(parameters), mass[matters] / mass[matters].sum()

    @property
    def _seen(self) -> Grid:
        """Points from which a closer look starts."""
        return self.grid

    def _chance(self, key: Key, new: bool) -> Estimate:
        if key[0] == 0:  # nothing was read: the prevalence
            return Estimate(float(self.mean[0]), self.error * float(np.sqrt(self.covariance[0, 0])))
        return self._predicted(key) if new else self._scored(key)

    def _predicted(self, key: Key) -> Estimate:
        kept = self._kept(key)
        if kept < _KEPT:
            return self._predicted_by_refitting(key)
        value, other = (self._mean(nodes, key, new=True) for nodes in reversed(list(self.nodes())))
        error = _SLOW * abs(value - other) + max(self.error * 1e-3, 1e-13 / kept)
        if error > (_SCORE_TOLERANCE if len(self.mean) < 4 else _SCORE_IN_FOUR):
            again = self._predicted_by_refitting(key)
            return again if again.error < error else Estimate(value, error)
        return Estimate(value, error)

    def _kept(self, key: Key) -> float:
        """The share of the posterior that still counts once it is reweighted by a new individual's result."""
        parameters, mass = self._heavy
        logs = np.logaddexp(*self.model.log_shares(self.model.record(key), *parameters))[0]
        weight = np.exp(logs - logs.max())
        return float((mass @ weight) ** 2 / (mass @ weight**2))

    def _predicted_by_refitting(self, key: Key) -> Estimate:
        """Evidence with the new individual known to be positive, over the evidence without that knowledge."""
        n, s = key
        unknown = self.with_more(CountTable([n], [s]))
        positive = self.with_more(CountTable([n], [s], known=[1]))
        value = float(np.exp(min(positive.log_evidence - unknown.log_evidence, 0.0)))
        return Estimate(value, value * (unknown.evidence_error + positive.evidence_error))

    @property
    def evidence_error(self) -> float:
        """The numerical error of the log evidence: what the coarser grid has, and rounding."""
        return abs(self.grid.log_evidence - self.check.log_evidence) + 4e-16 * abs(self.log_evidence)

    def next_positive(self, key: Key, new: bool) -> float:
        """The probability that one more replicate of such an individual is positive."""
        if new and self._kept(key) < _KEPT:
            n, s = key
            before, after = (self.with_more(CountTable([n + k], [s + k])) for k in (0, 1))
            return float(np.exp(after.log_evidence - before.log_evidence))
        nodes = [Block(self.grid.parameters, self.grid.mass)]
        (_, p, q, *_), shape = self.grid.parameters, self.grid.mass.shape
        chances, weight = self._weighed(nodes, key, new)
        p, q = (np.broadcast_to(x, shape).ravel() for x in (p, q))
        return float(weight @ (chances * (1 - q) + (1 - chances) * p))

    def _quantiles(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        return {key: self._ends(key, tails, new) for key in keys}


class ExactPosterior(Integrated):
    """The posterior of one population: grids, and the density where something needs points of its own."""

    def __init__(self, counts: CountTable, rule: Rule, agreed: Agreed) -> None:
        super().__init__(counts, *agreed)
        self.rule, self.density = rule, rule.density
        self.model, self.region = self.density.model, self.density.prior.region
        self._marginals = Memory(len(self.model.names))

    @property
    def _seen(self) -> Grid:
        """Points from which a closer look starts: beside a pole, more than the means needed."""
        if not (isinstance(self.grid, Tensors) and self._singular):
            return self.grid
        sizes = [tuple(max(size, _BESIDE_POLES) for size in part.sizes) for part in self.grid.parts]
        parts = zip(self.grid.parts, sizes, strict=True)
        return Tensors([Tensor(self.density, size, part.ends) for part, size in parts])

    def with_more(self, more: CountTable) -> ExactPosterior:
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
        if isinstance(self.grid, Tensors):
            return self.grid.marginal(self.density, axis)
        sd = float(np.sqrt(self.covariance[axis, axis]))

        def apart(one: Marginal, other: Marginal) -> float:
            return float(np.max(np.abs(one.quantile(_TAILS) - other.quantile(_TAILS)))) / sd

        how = self._how(_FINE, _IN_FOUR)
        found, error = self._settled(how, partial(self._of_parameter, axis=axis), apart)
        found.error = error
        return found

    def roughly(self, axis: int, probabilities: Float) -> Float:
        """Quantiles of one parameter to about a percent of a standard deviation, at once."""
        if isinstance(self.grid, Tensors):
            return np.asarray(self.marginal(axis).quantile(probabilities))
        return weighted_quantiles(self.grid.parameters[axis], self.grid.mass, probabilities)

    def _settled(
        self,
        how: How,
        make: Callable[[How | Blur], Marginal],
        apart: Callable[[Marginal, Marginal], float],
    ) -> tuple[Marginal, float]:
        """A density from closer and closer points until it agrees with the one from points further apart.

        In four dimensions, where points are dear, those of the grids are tried first.
        """
        if len(self.mean) > 3:
            found, wider, other = (make(blur) for blur in _BLURS)
            error = max(apart(found, wider) / _WIDER, _SLOW * apart(found, other))
            if error <= how.tolerance:
                return found, error
        before, error = self._first(how, make), np.inf
        while error > how.tolerance and how.across > (_CLOSEST_LINES if self.lines_matter else _CLOSEST):
            try:
                found = make(how)
            except TooManyPointsError:
                break
            how, before, error = how.times(_CLOSER), found, apart(found, before)
        return before, error

    def _first(self, how: How, make: Callable[[How], Marginal]) -> Marginal:
        """The density from the closest points that are not too many."""
        for factor in (_COARSER, 1.5, 2.0, 3.0, 4.0):
            with suppress(TooManyPointsError):
                return make(how.times(factor))
        raise FitError(_too_thin(self.model, self.counts))

    def _of_parameter(self, how: How | Blur, axis: int) -> Marginal:
        end = self.region.end if axis in (1, 2) else 1.0
        if self.lines_matter and isinstance(how, How):
            return Crossings(self._bundles(how.across), partial(_logit_of, axis=axis, end=end), end)
        chart = Box(self.model, self.region, q_first=axis == 2)
        return self._wave(chart, 1 if axis == 2 else axis, end, None, how)

    def _of_record(self, how: How | Blur, key: Key, new: bool) -> Marginal:
        """The distribution of the log odds of a record."""
        chart = Box(self.model, self.region, record=key)
        weight = partial(self._log_mixture, key) if new else None
        if self.lines_matter and isinstance(how, How):
            return Crossings(
                self._bundles(how.across),
                lambda place: np.asarray(place.u + chart.evidence(place.p, place.q, *place.rest)),
                None,
                None if weight is None else lambda place: np.exp(weight(place)),
            )
        return self._wave(chart, 0, None, weight, how)

    def _wave(
        self,
        chart: Chart,
        axis: int,
        end: float | None,
        weight: Callable[[Place], Float] | None,
        how: How | Blur,
    ) -> Wave:
        """The density of one coordinate of a chart, by a lattice that follows the grid's points there."""
        parameters, mass = self._heavy
        if isinstance(how, Blur) and how.check:
            parameters, mass = np.stack(self.check.parameters), self.check.mass / self.check.mass.sum()
        x = chart.coordinates(*parameters)
        if weight is not None:
            mass = mass * np.exp(weight(chart.place(x)))
        chart, x = chart.fitted(x, mass / mass.sum())
        scale = Scale(end, chart.stretches[axis])
        if isinstance(how, Blur):
            return blurred(x[axis], mass / mass.sum(), scale, how.width)
        return wave(log_mass(self.density, chart, weight), x, mass, axis, scale, how)

    @property
    def lines_matter(self) -> bool:
        """Whether the posterior is a ridge, along which everything varies."""
        return isinstance(self.rule, Lattices) and not isinstance(self.rule.charts[0], Box)

    def _how(self, usual: How, in_four: How) -> How:
        """How closely a density is looked at: where points are dear, or it is not smooth, less."""
        if self.lines_matter:
            return _ON_LINES if known_variance(self.density) else _ON_ROUGH_LINES
        return usual if len(self.model.names) < 4 else in_four

    def _bundles(self, spacing: float) -> list[Bundle]:
        assert isinstance(self.rule, Lattices)
        found: list[Bundle] = self._lines.get(spacing, partial(bundles, self.density, self.rule, spacing))
        return found

    @cached_property
    def _lines(self) -> Memory:
        return Memory(4)

    def _log_mixture(self, key: Key, place: Place) -> Float:
        """log P(s) of a new individual at places, up to a constant of the size of its largest value."""
        negative, positive = self.model.log_classes(self.model.record(key), place.p, place.q, *place.rest)
        u = place.u
        mixture = np.logaddexp(negative[0] - np.logaddexp(0, u), positive[0] - np.logaddexp(0, -u))
        return np.asarray(mixture - self._top(key))

    def _top(self, key: Key) -> float:
        """The largest log P(s) at the grid's points."""
        logs = np.logaddexp(*self.model.log_shares(self.model.record(key), *self._heavy[0]))
        return float(logs.max())

    # Records ---------------------------------------------------------------------------------------

    def _scored(self, key: Key) -> Estimate:
        """E[P(T = 1 | s)] on the grids, or from closer looks where these may miss a jump."""
        value, other = (self._mean(nodes, key, new=False) for nodes in reversed(list(self.nodes())))
        error = _SLOW * abs(value - other) + self.error * (1e-3 if len(self.mean) < 4 else 1.0)
        unseen = isinstance(self.grid, Tensors) and not has_cell(self.counts, key)
        if unseen or (error > _SCORE_TOLERANCE and len(self.mean) < 4):
            better = self._closer(key, value)
            if unseen or better.error < error:
                value, error = better
        return Estimate(min(max(value, 0.0), 1.0), max(error, 1e-12))

    def _closer(self, key: Key, roughly: float) -> Estimate:
        """A score from lines of θ, or from the distribution of its log odds, whichever is better."""
        tried = []
        if isinstance(self.grid, Tensors) and not self._singular:

            def chance(lines: list[Threads], shares: Float) -> float:
                return float(shares @ [one.chance(key) for one in lines])

            tried.append(self._on_threads(chance, _SCORE_TOLERANCE / 10))
        if not self.small and (not tried or tried[0].error > _SCORE_TOLERANCE):
            tried.append(self._expected(key, roughly))
        return min(tried, key=lambda one: float(one.error))

    @property
    def small(self) -> bool:
        """Whether the posterior was integrated over the whole domain, and no error rate has a pole at 0."""
        return isinstance(self.grid, Tensors) and self.grid.whole and not self._singular

    @property
    def _singular(self) -> bool:
        """Whether an error rate has a pole at 0, beside which the points of a product see no jump."""
        _, (p, _), (q, _) = self.density.prior
        return min(p, q) < 1

    def _on_threads(self, function: Callable[[list[Threads], Float], Any], tol: float) -> Estimate:
        """What follows from lines of θ and their shares, more and more of them until it settles."""
        grid = self.grid
        assert isinstance(grid, Tensors)
        value, error = None, np.inf
        for more in _MORE_THREADS if len(self.mean) < 4 else _FEWER_THREADS:
            lines = self._threads.get(more, partial(self._lines_of_theta, grid.parts, more))
            value, before = function(lines, grid.shares), value
            if before is not None:
                error = float(np.max(np.abs(value - before)))
                if error < tol:
                    break
        return Estimate(value, max(_SLOW * error, _LINES_LEFT_OUT))

    def _lines_of_theta(self, parts: list[Tensor], more: float) -> list[Threads]:
        return [Threads(self.density, part, more) for part in parts]

    def _ends_on_threads(self, key: Key, tails: Float, new: bool) -> Estimate:
        """Quantiles of a chance from lines of θ."""
        near: Float | None = None

        def ends(lines: list[Threads], shares: Float) -> Float:
            nonlocal near
            near = quantiles(lines, shares, key, tails, new, near)
            return np.asarray(expit(near))

        value, error = self._on_threads(ends, _SCORE_ENDS)
        return Estimate(value, np.full(tails.size, max(error, _TABLES)))

    @cached_property
    def _threads(self) -> Memory:
        return Memory(len(_MORE_THREADS))

    def _expected(self, key: Key, roughly: float) -> Estimate:
        """The mean of the distribution of log odds."""
        if self.lines_matter:
            return Estimate(roughly, np.inf)

        def apart(one: Any, other: Any) -> float:
            return abs(expected_chance(one) - expected_chance(other))

        found, error = self._settled(_FINE, lambda how: self._of_record(how, key, new=False), apart)
        assert isinstance(found, Wave)
        return Estimate(expected_chance(found), error + self.error * 1e-3)

    def _ends(self, key: Key, tails: Float, new: bool) -> Estimate:
        """Quantiles of P(T = 1 | s; parameters): of its log odds, whose distribution a lattice follows."""
        if new and self._kept(key) < _KEPT:
            n, s = key
            return self.with_more(CountTable([n], [s]))._ends(key, tails, False)
        on_threads = None
        if isinstance(self.grid, Tensors) and not self._singular:
            on_threads = self._ends_on_threads(key, tails, new)
            if self.small or len(self.mean) > 3 or on_threads.error.max() < _SLOW * _SCORE_ENDS:
                return on_threads

        def apart(one: Marginal, other: Marginal) -> float:
            return float(np.max(np.abs(expit(one.quantile(tails)) - expit(other.quantile(tails)))))

        how = self._how(_ROUGH, _CHANCES_IN_FOUR)
        found, error = self._settled(how, lambda how: self._of_record(how, key, new), apart)
        if on_threads is not None and on_threads.error.max() < error:
            return on_threads
        return Estimate(expit(found.quantile(tails)), np.full(tails.size, max(error, 1e-9)))

    # Draws -----------------------------------------------------------------------------------------

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Independent draws, shape (parameters, size)."""
        charts, frames = self._charts
        return draw(
            [
                (log_mass(self.density, chart), chart, frame)
                for chart, frame in zip(charts, frames, strict=True)
            ],
            size,
            rng,
        )

    @cached_property
    def _charts(self) -> tuple[list[Chart], list[Frame]]:
        """Charts and frames of lattices that cover the posterior."""
        if isinstance(self.rule, Lattices):
            return self.rule.charts, self.rule.frames
        chart = Box(self.model, self.region)
        parameters, mass = self._heavy
        fitted, x = chart.fitted(chart.coordinates(*parameters), mass)
        return [fitted], [frame_of(x, mass)]


def _logit_of(place: Place, axis: int, end: float) -> Float:
    """The logit of one parameter at places, as a share of its end."""
    if axis == 0:
        return place.u
    log_x, log_rest = place.log_p if axis == 1 else place.log_q
    if end < 1:
        log_x = log_x - np.log(end)
        log_rest = np.log(np.maximum(-np.expm1(log_x), 1e-300))
    return np.asarray(log_x - log_rest)


def has_cell(counts: CountTable, key: Key) -> bool:
    """Whether someone of unknown status has these results."""
    n, s = key
    return bool(np.any((counts.n == n) & (counts.s == s) & (counts.known == UNKNOWN)))
