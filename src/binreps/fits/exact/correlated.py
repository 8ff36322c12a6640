"""The posterior when replicates of one individual are correlated: a rule over the correlation ρ.

Given the status, s is beta-binomial with mean p or 1 − q and intra-class correlation ρ::

    P(s | T = 0) ∝ Π_{j<s} (p(1−ρ) + jρ) · Π_{j<n−s} ((1−p)(1−ρ) + jρ) / Π_{j<n} (1−ρ + jρ)

At a fixed ρ this is a density of (θ, p, q) like the one without correlation: it is integrated on a box of
its own, which follows the ridge that ρ makes with the error rates. Over ρ there is one more Gauss rule.
Nothing is singular at ρ = 0, where the binomial model is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import betaln, expit, log_expit, logsumexp

from binreps.counts import CountTable
from binreps.errors import FitError
from binreps.fits.exact.density import AXES, Density
from binreps.fits.exact.gauss import Interval
from binreps.fits.exact.grid import Marginal
from binreps.fits.exact.posterior import BoxPosterior, draw_rows
from binreps.fits.exact.tensor import BoxGrid, UnresolvedError, find_box
from binreps.fits.posterior import Block, Nodes, Posterior
from binreps.model import CORRELATED, Float, Prior

Shapes = tuple[float, float]

_TOLERANCE = 1e-5
_LEAST_ERROR = 1e-9  # that is claimed
_RESOLVED = 4.0  # a line that occupies so many nodes is integrated to about 1e-6
_RESOLVED_ROUGHLY = 2.5  # enough for a slice that has next to no mass
_NEXT_TO_NOTHING = 16.0  # such a slice is e^−16 below the highest
_LEAST = (18, 12, 12)  # nodes on θ, p, q, so that scores are not too coarse where the posterior is flat
_LARGEST_BOX = 150_000  # nodes
_SIZES = (16, 23, 33, 47)  # of the rule over ρ
_LOOKS = 21  # values of ρ at which the posterior is looked at while its interval is sought
_CUT = 26.0  # the interval of ρ ends where the density has fallen by e^−26
_STEP = 1e-3  # of a logit, for differences


# The density -------------------------------------------------------------------------------------------


class CorrelatedDensity(Density):
    """Log posterior density of (θ, p, q) at one ρ, relative to a centre."""

    def __init__(self, counts: CountTable, prior: Prior, rho: float, centre: Float) -> None:
        super().__init__(counts, prior, centre)
        self.rho = rho
        theta, p, q = centre
        negative, positive = CORRELATED.log_classes(self.counts, p, q, rho)
        with np.errstate(divide="ignore"):
            self._mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
        self.log_likelihood = float(self.weight @ self._mixture)

    def log_ratio(self, theta: Any, p: Any, q: Any) -> Float:
        """log L(θ, p, q) − log L(centre), on three arrays that broadcast and have equally many axes."""
        total = np.zeros(np.broadcast_shapes(theta.shape, p.shape, q.shape))
        negative, positive = CORRELATED.log_classes(self.counts, p, q, self.rho)
        with np.errstate(divide="ignore"):
            for a, b, middle, weight in zip(positive, negative, self._mixture, self.weight, strict=True):
                total += weight * _log_mixture(theta, a - middle, b - middle)
        return total


def _log_mixture(theta: Any, log_a: Float, log_b: Float) -> Float:
    """log[θA + (1−θ)B], in logarithms throughout only where they are extreme."""
    extremes = max(log_a.max(), log_b.max()) > 300 or max(log_a.min(), log_b.min()) < -300
    if extremes:
        return np.asarray(np.logaddexp(np.log(theta) + log_a, np.log1p(-theta) + log_b))
    return np.asarray(np.log(theta * np.exp(log_a) + (1 - theta) * np.exp(log_b)))


# Where it lives ----------------------------------------------------------------------------------------


class Conditional:
    """The density of (θ, p, q) at many ρ side by side, in coordinates without bounds.

    t = (logit θ, logit 2p, logit 2q); the density is that of t.
    """

    def __init__(self, counts: CountTable, prior: Prior) -> None:
        kept = (counts.n > 0) | (counts.known >= 0)
        self.counts = CountTable(counts.n[kept], counts.s[kept], counts.weight[kept], counts.known[kept])
        self.prior = prior

    def value(self, t: Float, rho: Float) -> Float:
        """The log density at points t, shape (3, …), without constants."""
        log_theta, log_rest = log_expit(t[0]), log_expit(-t[0])
        p, q = expit(t[1]) / 2, expit(t[2]) / 2
        negative, positive = CORRELATED.log_classes(self.counts, p, q, rho)
        mixture = np.logaddexp(log_rest + negative, log_theta + positive)
        (a, b), *errors = self.prior
        total = (
            np.einsum("k,k...->...", self.counts.weight.astype(float), mixture) + a * log_theta + b * log_rest
        )
        for (a, b), u, rate in zip(errors, t[1:], (p, q), strict=True):
            total = total + a * log_expit(u) + (b - 1) * np.log1p(-rate) + log_expit(-u)
        return np.asarray(total)

    def peaks(self, rho: Float) -> tuple[Float, Float, Float]:
        """For each ρ the highest mode t found, its log density by Laplace's method, and the spread of t."""
        t = self._starts(rho)
        value, gradient, curvature = self._derivatives(t, rho)
        for _ in range(60):
            step, promise = _ascent(gradient, curvature)
            if promise.max() < 1e-6 * max(1.0, 1e-9 * np.abs(value).max()):
                break
            t = self._better(t, rho, value, step)
            value, gradient, curvature = self._derivatives(t, rho)
        size, axes = np.linalg.eigh(-curvature)
        size = np.maximum(np.abs(size), 0.02)
        spread = np.sqrt(np.sum(axes**2 / size[:, None, :], axis=-1)).T
        return t, value - 0.5 * np.log(size).sum(axis=-1), spread

    def _starts(self, rho: Float) -> Float:
        """The best of a coarse grid, for each ρ."""
        theta, error = [-3.0, -1.0, 1.0, 3.0], [-4.0, -2.0, -0.5, 1.0]
        grid = np.stack(np.meshgrid(theta, error, error, indexing="ij")).reshape(3, -1, 1)
        value = self.value(grid, rho[None])
        return np.asarray(grid[:, value.argmax(axis=0), 0])

    def _better(self, t: Float, rho: Float, value: Float, step: Float) -> Float:
        """The largest part of a step that does not lead down, for each ρ."""
        parts = np.array([1.0, 0.5, 0.25, 0.05, 0.01, 0.0])[:, None]
        tried = t[:, None] + step[:, None] * parts
        better = self.value(tried, rho[None]) >= value
        better[-1] = True
        return np.asarray(tried[:, better.argmax(axis=0), np.arange(rho.size)])

    def _derivatives(self, t: Float, rho: Float) -> tuple[Float, Float, Float]:
        """Value, gradient and Hessian by central differences, for each ρ."""
        unit = _STEP * np.eye(3)
        pairs = list(combinations(range(3), 2))
        moves = [
            np.zeros(3),
            *unit,
            *-unit,
            *(sign * (unit[i] + unit[j]) for i, j in pairs for sign in (1, -1)),
        ]
        values = self.value(t[:, None] + np.stack(moves, axis=1)[:, :, None], rho[None])
        middle, up, down, both = values[0], values[1:4], values[4:7], values[7:].reshape(3, 2, -1)
        hessian = np.empty((rho.size, 3, 3))
        bends = up + down - 2 * middle
        for i in range(3):
            hessian[:, i, i] = bends[i] / _STEP**2
        for (i, j), (above, below) in zip(pairs, both, strict=True):
            cross = (above + below - 2 * middle - bends[i] - bends[j]) / (2 * _STEP**2)
            hessian[:, i, j] = hessian[:, j, i] = cross
        return middle, (up - down) / (2 * _STEP), hessian


def _ascent(gradient: Float, curvature: Float) -> tuple[Float, Float]:
    """A Newton step, at most 2 long, with curvature of the wrong sign turned over; and the gain promised."""
    size, axes = np.linalg.eigh(-curvature)
    size = np.maximum(np.abs(size), 1e-3)
    along = np.einsum("pij,ip->pj", axes, gradient)
    step = np.einsum("pij,pj->ip", axes, along / size)
    longest = np.maximum(np.abs(step).max(axis=0), 1e-300)
    return step * np.minimum(1.0, 2.0 / longest), 0.5 * np.sum(along**2 / size, axis=-1)


def correlation_interval(conditional: Conditional, shapes: Shapes) -> Interval:
    """Where ρ lives: looked for by Laplace's method at a few values, between ever closer ends."""
    a, b = shapes
    rho = np.concatenate([[0.0], np.geomspace(1e-8, 0.5, _LOOKS - 6), [0.65, 0.8, 0.9, 0.97, 0.999]])
    for _ in range(40):
        level = conditional.peaks(rho)[1] + (b - 1) * np.log1p(-rho)
        level = level + max(a - 1, 0.0) * np.log(np.maximum(rho, 1e-9))
        inside = np.flatnonzero(level > level.max() - _CUT)
        low, high = rho[max(inside[0] - 1, 0)], rho[min(inside[-1] + 1, rho.size - 1)]
        if inside.size >= _LOOKS // 2 and rho[1] > 1e-3 * rho[-1]:  # no longer the first, uneven values
            break
        rho = np.linspace(low, high, _LOOKS)
    low = 0.0 if low < 0.05 * high else float(low)
    high = 1.0 if 1 - high < 0.05 * (1 - low) else float(high)
    return Interval(low, high, _power(a) if low == 0 else 0.0, _power(b) if high == 1 else 0.0)


def _power(shape: float) -> float:
    """The power of the prior that the rule's weight carries; a high one is left in the integrand."""
    return shape - 1 if shape < 4 else shape % 1


# The posterior -----------------------------------------------------------------------------------------


class CorrelatedPosterior(Posterior):
    """Boxes of (θ, p, q) at the nodes of a rule over ρ, and the mass of each."""

    model = CORRELATED

    def __init__(self, counts: CountTable, prior: Prior, shapes: Shapes) -> None:
        super().__init__()
        self.shapes = shapes
        self._marginals: dict[int, Marginal] = {}
        self.conditional = Conditional(counts, prior)
        self.inside = correlation_interval(self.conditional, shapes)
        before, error = self._slices(_SIZES[0]), np.inf
        for size in _SIZES[1:]:
            slices = self._slices(size)
            error, before = slices.distance(before), slices
            if error < _TOLERANCE:
                break
        self.slices = before
        self.error = max(error, before.box_error, _LEAST_ERROR)
        self.mean, self.covariance, self.log_evidence = before.mean, before.covariance, before.log_evidence

    def nodes(self) -> Iterator[Nodes]:
        """The coarser boxes, then the finer ones; without slices that have no mass."""
        slices = self.slices
        heavy = np.flatnonzero(slices.mass > 1e-13)
        for grids in ([slices.boxes[i].check for i in heavy], [slices.grids[i] for i in heavy]):
            yield [
                Block((*grid.nodes, slices.rho[i]), slices.mass[i] * grid.mass)
                for i, grid in zip(heavy, grids, strict=True)
            ]

    def _slices(self, size: int) -> Slices:
        """The rule with so many nodes."""
        rho, (a, b) = self.inside.nodes(size), self.shapes
        weights = self.inside.log_weights(size) - betaln(a, b)
        weights += (a - 1 - self.inside.a) * np.log(rho) + (b - 1 - self.inside.b) * np.log1p(-rho)
        t, level, spread = self.conditional.peaks(rho)
        level = level + (b - 1) * np.log1p(-rho)
        wanted = np.where(level > level.max() - _NEXT_TO_NOTHING, _RESOLVED, _RESOLVED_ROUGHLY)
        try:
            grids = [self._grid(rho[i], t[:, i], spread[:, i], wanted[i]) for i in range(size)]
        except UnresolvedError:
            raise FitError(
                "the over-dispersed posterior is too thin a ridge to integrate: these data cannot tell the "
                "correlation from the error rates, which takes someone with n ≥ 4; fit_bayes takes any data"
            ) from None
        return Slices(self.inside, rho, weights, grids)

    def _grid(self, rho: float, t: Float, spread: Float, wanted: float) -> BoxGrid:
        """The posterior of (θ, p, q) at one ρ."""
        centre = expit(t) * np.array([1.0, 0.5, 0.5])
        bend = np.array([1.0, *((1 - 2 * centre[1:]) / (1 - centre[1:]))])  # d logit p / d logit 2p
        density = CorrelatedDensity(self.conditional.counts, self.conditional.prior, rho, centre)
        seen = find_box(density, np.clip(spread * bend, 1e-12, 3.0))
        sizes = [max(_LEAST[i], int(np.ceil(seen.sizes[i] * wanted / seen.occupied(i)))) for i in AXES]
        if np.prod(sizes) > _LARGEST_BOX:
            raise UnresolvedError
        return BoxGrid(density, seen.box, (sizes[0], sizes[1], sizes[2]))

    def marginal(self, axis: int) -> Marginal:
        """The density of θ, p, q or ρ, made once."""
        if axis not in self._marginals:
            self._marginals[axis] = self.slices.marginal(axis)
        return self._marginals[axis]

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Independent draws of θ, p, q, ρ, shape (4, size): three from a box, then ρ given them."""
        slices = self.slices
        which = rng.choice(slices.mass.size, size, p=slices.mass / slices.mass.sum())
        rates = np.empty((3, size))
        for i in np.unique(which):
            here = which == i
            rates[:, here] = slices.boxes[i].draws(int(here.sum()), rng)
        rates = np.clip(rates, 1e-300, np.array([[1 - 2.0**-53], [0.5], [0.5]]))
        return np.concatenate([rates, self._draw_correlation(rates, rng)[None]])

    def _draw_correlation(self, rates: Float, rng: np.random.Generator) -> Float:
        """ρ given each triple, by its inverse distribution function."""
        slices, counts = self.slices, self.conditional.counts
        weight, drawn = counts.weight.astype(float), np.empty(rates.shape[1])
        for start in range(0, drawn.size, 500):
            some = slice(start, start + 500)
            theta, p, q = rates[:, some, None]
            negative, positive = CORRELATED.log_classes(counts, p, q, slices.rho[None])
            mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
            log_mass = np.einsum("k,kir->ir", weight, mixture) + slices.weights
            masses = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            drawn[some] = draw_rows(self.inside, masses, rng.random(masses.shape[0]))
        return np.clip(drawn, 0.0, 1.0)


class Slices:
    """Grids of (θ, p, q) at the nodes of one rule over ρ."""

    def __init__(self, inside: Interval, rho: Float, weights: Float, grids: list[BoxGrid]) -> None:
        self.inside, self.rho, self.weights, self.grids = inside, rho, weights, grids
        log_mass = weights + np.array([grid.log_evidence for grid in grids])
        self.log_evidence = float(logsumexp(log_mass))
        self.mass = np.exp(log_mass - self.log_evidence)

    @cached_property
    def boxes(self) -> list[BoxPosterior]:
        """The grids with a coarser one each, from which their errors are known."""
        return [BoxPosterior(grid.density.counts, grid, grid.resized(0.87)) for grid in self.grids]

    @property
    def box_error(self) -> float:
        """The numerical error of the boxes, on average."""
        return float(self.mass @ [box.grid.distance(box.check) for box in self.boxes])

    @cached_property
    def mean(self) -> Float:
        """Posterior means of θ, p, q, ρ."""
        return np.asarray(self.mass @ self._means)

    @cached_property
    def _means(self) -> Float:
        return np.array([[*grid.mean, rho] for grid, rho in zip(self.grids, self.rho, strict=True)])

    @cached_property
    def covariance(self) -> Float:
        """Posterior covariance of θ, p, q, ρ: within the boxes, and between them."""
        away = self._means - self.mean
        result = np.asarray(np.einsum("r,ri,rj->ij", self.mass, away, away))
        result[:3, :3] += sum(m * grid.covariance for m, grid in zip(self.mass, self.grids, strict=True))
        return result

    @property
    def sd(self) -> Float:
        """Posterior standard deviations of θ, p, q, ρ."""
        return np.sqrt(np.diag(self.covariance))

    def distance(self, other: Slices) -> float:
        """The largest difference of two rules: means and sds in units of the sd, evidence relative."""
        changes = [(self.mean - other.mean) / self.sd, 1 - other.sd / self.sd]
        scale = max(1.0, abs(self.log_evidence))
        return max(float(np.abs(changes).max()), abs(self.log_evidence - other.log_evidence) / scale)

    def marginal(self, axis: int) -> Marginal:
        """The density of θ, p, q or ρ."""
        if axis == 3:
            return Marginal([(self.inside, self.mass)])
        return MixedMarginal(self.mass, [box.marginal(axis) for box in self.boxes])


class MixedMarginal(Marginal):
    """A mixture of densities of one rate."""

    def __init__(self, weights: Float, parts: list[Marginal]) -> None:
        matter = weights > 1e-10 * weights.max()
        self._weights = weights[matter] / weights[matter].sum()
        self._parts = [part for part, kept in zip(parts, matter, strict=True) if kept]
        self.ends = np.array([min(p.ends[0] for p in self._parts), max(p.ends[-1] for p in self._parts)])

    def density(self, x: Any) -> Any:
        """Density at x; 0 outside the support."""
        x = np.asarray(x, dtype=float)

        def one(part: Marginal) -> Any:
            inside = (x >= part.ends[0]) & (x <= part.ends[-1])
            return np.where(inside, np.maximum(part.density(x), 0.0), 0.0)  # rounding may go below 0

        return self._added_up(one)[()]

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        return self._added_up(lambda part: part.cumulative(x))

    def _added_up(self, function: Any) -> Any:
        return sum(w * function(part) for w, part in zip(self._weights, self._parts, strict=True))

    def quantile(self, probability: Any) -> Any:
        """The value below which the rate lies with the given probability, by halving."""
        wanted = np.asarray(probability, dtype=float)
        lower, upper = (np.full(wanted.shape, end) for end in self.ends)
        for _ in range(50):
            middle = (lower + upper) / 2
            below = self.cumulative(middle) < wanted
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        return ((lower + upper) / 2)[()]
