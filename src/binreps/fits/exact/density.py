"""The logarithm of the posterior density at places of the domain.

Each cell's mixture θA(q) + (1−θ)B(p) is divided by its value at a centre. In large tables it enters as log1p
of a difference built from expm1: no rounding of the size of eps·N is left, so a table of 10⁹ individuals is
integrated as precisely as one of 50.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, log_expit

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.chart import Place
from binreps.model import ALIKE, FEW, Float, Model, Prior, rising_rest

_MANY = 1_000_000  # individuals from which rounding of the size eps·N would be felt
_AT_ONCE = 40_000  # cells × points at a time, so that they stay in the processor's cache
_SAFE = 600.0  # exponents up to which exp does not overflow
_CERTAIN = 37.0  # log odds beyond which the other class is lost in the rounding of a mixture
_OFTEN = 9  # replicates that together may say as much: e⁴ each, at error rates of 2 %
_FAR = -0.5  # a mixture so far below that at the centre has lost digits as a difference


class Density:
    """Log posterior density of the parameters, relative to its likelihood at a centre.

    Parameters
    ----------
    counts : CountTable
    prior : Prior
    centre : Place
        One point near the mode; results do not depend on it, their rounding does.
    model : Model
    shapes : pair of float, optional
        Of the Beta prior of the model's fourth parameter.
    """

    def __init__(
        self,
        counts: CountTable,
        prior: Prior,
        centre: Place,
        model: Model = ALIKE,
        shapes: tuple[float, float] | None = None,
    ) -> None:
        self.counts, self.prior, self.centre, self.model = informative(counts), prior, centre, model
        self.shapes = shapes
        self.s = self.counts.s.astype(float)[:, None]
        self.misses = (self.counts.n - self.counts.s).astype(float)[:, None]
        self.weight = self.counts.weight.astype(float)
        self._known = self.counts.has_known
        self._exponents, self._unit = np.concatenate([self.s, self.misses, 0 * self.s], axis=1), 0 * self.s
        negative, positive = self.log_classes(centre)
        negative, positive = negative + log_expit(-centre.u), positive + log_expit(centre.u)
        self._unit = np.logaddexp(negative, positive)
        self.log_likelihood = float(self.weight @ self._unit[:, 0])
        self._positive, self._negative = np.exp(positive - self._unit), np.exp(negative - self._unit)
        self._exponents[:, 2:] = -self._unit  # from here on classes are relative to the mixture at the centre
        self.log_constant = prior.log_constant - (float(betaln(*shapes)) if shapes else 0.0)
        self.many = self.counts.individuals > _MANY
        self.often = self.counts.n.max(initial=0) > _OFTEN

    def centred(self, centre: Place) -> Density:
        """The same density, relative to another centre."""
        return Density(self.counts, self.prior, centre, self.model, self.shapes)

    def log_prior(self, place: Place) -> Any:
        """The logarithm of the prior density, without its constant."""
        of_theta = _log_power(self.prior.prevalence, (log_expit(place.u), log_expit(-place.u)))
        return of_theta + self.log_prior_of_errors(place)

    def log_prior_of_errors(self, place: Place) -> Any:
        """The part of p, q and what the model has beyond them."""
        of_p = _log_power(self.prior.false_positive, place.log_p)
        of_q = _log_power(self.prior.false_negative, place.log_q)
        return of_p + of_q + (_log_power(self.shapes, place.log_rest[0]) if self.shapes else 0.0)

    def __call__(self, place: Place) -> Float:
        """log of likelihood × prior density, relative to the likelihood at the centre."""
        return np.asarray(self.log_ratio(place) + self.log_prior(place))

    def log_ratio(self, place: Place) -> Float:
        """log L − log L(centre) at a list of points."""
        return self.log_ratios(place, expit(place.u)[:, None], expit(-place.u)[:, None])[:, 0]

    def log_ratios(self, errors: Place, theta: Float, rest: Float) -> Float:
        """log L − log L(centre) at pairs of error rates (first axis) and θ: of all, or of each its own."""
        pairs, size = errors.p.size, theta.shape[-1]
        if not (pairs and size and self.weight.size):
            return np.zeros((pairs, size))
        mixtures = Changes(self, errors) if self.many else Sums(self, errors, theta, rest)
        weight, found = mixtures.weight, []
        step = max(1, _AT_ONCE // max(1, weight.size * size))
        with np.errstate(divide="ignore", invalid="ignore"):  # −∞ beyond what floats hold
            for some in (slice(start, start + step) for start in range(0, pairs, step)):
                own = (theta, rest) if theta.ndim == 1 else (theta[some], rest[some])
                found.append(_added_up(weight, mixtures.logs(*own, some)))  # lets go of what it has added
        result = np.concatenate(found)
        result += mixtures.certain
        return result

    def log_classes(self, errors: Place) -> tuple[Float, Float]:
        """log P(s | T = 0) and log P(s | T = 1) over the centre's mixture, of each cell at error rates."""
        if not self.model.independent:
            with np.errstate(divide="ignore", invalid="ignore"):
                negative, positive = self.model.log_classes(self.counts, errors.p, errors.q, *errors.rest)
            return negative - self._unit, positive - self._unit
        one = np.ones_like(errors.p)
        negative = self._exponents @ np.stack([*errors.log_p, one])
        positive = self._exponents @ np.stack([*errors.log_q[::-1], one])
        if self._known:
            negative[self.counts.known == 1] = -np.inf
            positive[self.counts.known == 0] = -np.inf
        return negative, positive

    def changes(self, errors: Place) -> tuple[Float, Float]:
        """The mixture over that at the centre, minus 1, is level + slope · (θ − centre): both."""
        up, down = expit(self.centre.u), expit(-self.centre.u)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            negative, positive = (np.expm1(np.minimum(log, _SAFE)) for log in self._class_changes(errors))
            slope = self._positive / up * (1 + positive) - self._negative / down * (1 + negative)
            return self._positive * positive + self._negative * negative, slope

    def _class_changes(self, place: Place) -> tuple[Float, Float]:
        """The change of log P(s | T = 0) and of log P(s | T = 1) from the centre, along a new first axis."""
        centre = self.centre
        to_p, from_p = _log_changes(place.p, place.log_p, centre.p, centre.log_p)
        to_q, from_q = _log_changes(place.q, place.log_q, centre.q, centre.log_q)
        if self.model.independent:
            s, misses = (x.reshape(-1, *(1,) * to_p.ndim) for x in (self.s, self.misses))
            return s * to_p + misses * from_p, s * from_q + misses * to_q
        _, to_rest = _log_changes(place.rest[0], place.log_rest[0], centre.rest[0], centre.log_rest[0])
        change = _Rising(place.rest[0], centre.rest[0])
        counts, rest = self.counts, np.exp(centre.log_rest[0][1])
        s, misses = counts.s, counts.n - counts.s
        all_of_them = change(rest, to_rest, counts.n)
        negative = change(centre.p * rest, to_p + to_rest, s)
        negative = negative + change(np.exp(centre.log_p[1]) * rest, from_p + to_rest, misses) - all_of_them
        positive = change(np.exp(centre.log_q[1]) * rest, from_q + to_rest, s)
        positive = positive + change(centre.q * rest, to_q + to_rest, misses) - all_of_them
        return negative, positive


class Sums:
    """Every cell's mixture at pairs of error rates, as a sum of two classes; where one is certain, it alone.

    Of a hundred replicates most leave no doubt: their logarithms need no point of θ.
    """

    def __init__(self, density: Density, errors: Place, theta: Float, rest: Float) -> None:
        negative, positive = density.log_classes(errors)
        top, self.weight = np.maximum(negative, positive), density.weight
        self.certain = (self.weight @ top)[:, None]
        if density.often:
            up, down = _without_doubt(positive - negative, theta, rest)
            for sure, share in ((up, theta), (down, rest)):
                if sure.any():
                    self.certain = self.certain + self.weight[sure].sum() * np.log(share)
            unsure = ~(up | down)
            self.weight = self.weight[unsure]
            negative, positive, top = negative[unsure], positive[unsure], top[unsure]
        self._mixtures = Linear(_over(positive, top), _over(negative, top))

    def logs(self, theta: Float, rest: Float, some: slice) -> Float:
        """Logarithms of the mixtures that are not certain, at some of the pairs."""
        mixture = self._mixtures.at(theta, rest, some)
        return np.log(mixture, out=mixture)


def _added_up(weight: Float, logs: Float) -> Float:
    points = logs.shape[1:]
    return np.asarray((weight @ logs.reshape(weight.size, prod(points))).reshape(points))


def _without_doubt(odds: Float, theta: Float, rest: Float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which cells are positive, and which negative, at all pairs of error rates and all θ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        furthest = _CERTAIN + np.max(np.abs(np.log(theta / rest)))
        return odds.min(axis=1) > furthest, odds.max(axis=1) < -furthest


def _over(logs: Float, top: Float) -> Float:
    logs -= top
    return np.exp(logs, out=logs)


class Changes:
    """The same of very many individuals, from what changes along the way from the centre."""

    certain = 0.0

    def __init__(self, density: Density, errors: Place) -> None:
        self._density, self._errors, self.weight = density, errors, density.weight
        level, slope = density.changes(errors)
        self._changes = Linear(slope, level)

    @cached_property
    def _sums(self) -> tuple[Linear, Float]:
        negative, positive = self._density.log_classes(self._errors)
        top = np.maximum(negative, positive)
        return Linear(_over(positive, top), _over(negative, top)), top

    def logs(self, theta: Float, rest: Float, some: slice) -> Float:
        """As for sums, of all cells; far below the centre differences have lost digits that sums have."""
        u = self._density.centre.u[0]
        away = theta - expit(u) if u < 0 else expit(-u) - rest
        change = self._changes.at(away, np.ones_like(away), some)
        if (far := change < _FAR).any():
            mixtures, tops = self._sums
            logs = tops[:, some, None] + np.log(mixtures.at(theta, rest, some))
            return np.where(far, logs, np.log1p(np.maximum(change, _FAR)))
        return np.log1p(change, out=change)


class Linear:
    """a·x + b·y, with a and b for each cell and pair."""

    def __init__(self, a: Float, b: Float) -> None:
        self._a, self._b = a, b

    @cached_property
    def _both(self) -> Float:
        return np.stack([self._a, self._b], axis=-1)

    def at(self, x: Float, y: Float, some: slice) -> Float:
        """At x and y of all of some pairs (a product of matrices), or of each."""
        if x.ndim == 1:
            return np.asarray(self._both[:, some] @ np.stack([x, y]))
        found = self._a[:, some, None] * x
        found += self._b[:, some, None] * y
        return np.asarray(found)


class _Rising(NamedTuple):
    """Changes of Σ_{j<k} log(x + jρ) as ρ moves from a centre."""

    rho: Float
    centre: Float

    def __call__(self, x: Float, to_x: Float, k: NDArray[np.int64]) -> Float:
        """From x at the centre to x·e^to_x, along a new first axis for the entries of k."""
        most, more = int(k.max(initial=0)), (1,) * to_x.ndim
        if most > FEW:
            rests = rising_rest(x * np.exp(to_x), self.rho, k) - rising_rest(x, self.centre, k)
            return np.asarray(k.reshape(-1, *more) * to_x + rests)
        j = np.arange(most).reshape(-1, *more)
        factors = np.log1p((x * np.expm1(to_x) + j * (self.rho - self.centre)) / (x + j * self.centre))
        return np.concatenate([np.zeros((1, *factors.shape[1:])), np.cumsum(factors, axis=0)])[k]


def _log_power(shapes: tuple[float, float], logs: tuple[Any, Any]) -> Any:
    """(a−1) log x + (b−1) log(1−x)."""
    (a, b), (log_x, log_rest) = shapes, logs
    return (a - 1) * log_x + (b - 1) * log_rest


def _log_changes(
    x: Float, logs: tuple[Float, Float], centre: Float, at_centre: tuple[Float, Float]
) -> tuple[Float, Float]:
    """log(x / centre) and log((1−x) / (1−centre)), consistent with each other: from one difference."""
    rest, other = np.exp(logs[1]), np.exp(at_centre[1])
    away = x - centre if centre[0] < 0.5 else other - rest
    return _log1p(away / centre, logs[0] - at_centre[0]), _log1p(-away / other, logs[1] - at_centre[1])


def _log1p(change: Float, far: Float) -> Float:
    """log(1 + change), given also as a difference of logarithms, which is better far below 1."""
    return np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), far)


def informative(counts: CountTable) -> CountTable:
    """The table without the cells that say nothing: no replicates and no known status."""
    kept = (counts.n > 0) | (counts.known != UNKNOWN)
    if kept.all():
        return counts
    return CountTable(counts.n[kept], counts.s[kept], counts.weight[kept], counts.known[kept])
