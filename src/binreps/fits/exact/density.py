"""The logarithm of the posterior density at places of the domain.

Each cell's mixture θA(q) + (1−θ)B(p) is divided by its value at a centre. In large tables it enters as log1p
of a difference built from expm1: no rounding of the size of eps·N is left, so a table of 10⁹ individuals is
integrated as precisely as one of 50.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, log_expit

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.chart import Place
from binreps.model import ALIKE, FEW, Float, Model, Prior, rising_rest

_MANY = 1_000_000  # individuals from which rounding of the size eps·N would be felt
_AT_ONCE = 40_000  # cells × points at a time, so that they stay in the processor's cache
_SAFE = 600.0  # exponents up to which exp neither overflows nor underflows


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
        self._exponents = np.concatenate([self.s, self.misses, np.ones_like(self.s), 0 * self.s], axis=1)
        negative, positive = self._log_shares(centre)
        self._unit = np.logaddexp(negative, positive)
        self.log_likelihood = float(self.weight @ self._unit[:, 0])
        self._positive, self._negative = np.exp(positive - self._unit), np.exp(negative - self._unit)
        self._exponents[:, 3:] = -self._unit  # from here on shares are relative to those at the centre
        self.log_constant = prior.log_constant - (float(betaln(*shapes)) if shapes else 0.0)
        self.many = self.counts.individuals > _MANY

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
        size = max(1, _AT_ONCE // max(len(self.weight), 1))
        if place.u.size <= size:
            return self._ratio(place)
        return np.concatenate([self._ratio(part) for part in _parts(place, size)])

    def _ratio(self, place: Place) -> Float:
        if not self.weight.size:
            return np.zeros(place.u.shape)
        if not self.many:
            return np.asarray(self.weight @ self._log_mixtures(place))
        change = self._changes(place)
        near = change > -0.5  # far below, the difference has lost digits that the sum still has
        logs = np.log1p(np.where(near, change, 0.0))
        return np.asarray(
            self.weight @ (logs if near.all() else np.where(near, logs, self._log_mixtures(place)))
        )

    def _log_mixtures(self, place: Place) -> Float:
        """The logarithm of every cell's mixture over that at the centre."""
        negative, positive = self._log_shares(place)
        if max(positive.max(), negative.max()) < _SAFE and np.maximum(positive, negative).min() > -_SAFE:
            np.exp(positive, out=positive)
            np.exp(negative, out=negative)
            positive += negative
            return np.log(positive, out=positive)
        with np.errstate(invalid="ignore"):  # −∞ beside −∞ beyond what floats hold
            return np.asarray(np.logaddexp(positive, negative))

    def _log_shares(self, place: Place) -> tuple[Float, Float]:
        """log of what either class contributes to each cell's mixture, over the mixture at the centre."""
        up, down = log_expit(place.u), log_expit(-place.u)
        if self.model.independent:  # one product of matrices for each class
            one = np.ones_like(up)
            positive = self._exponents @ np.stack([place.log_q[1], place.log_q[0], up, one])
            negative = self._exponents @ np.stack([place.log_p[0], place.log_p[1], down, one])
            if self._known:
                positive[self.counts.known == 0] = -np.inf
                negative[self.counts.known == 1] = -np.inf
            return negative, positive
        unit = -self._exponents[:, 3:]
        with np.errstate(divide="ignore", invalid="ignore"):
            negative, positive = self.model.log_classes(self.counts, place.p, place.q, *place.rest)
        return negative + (down - unit), positive + (up - unit)

    def log_ratios(self, errors: Place) -> Iterator[tuple[Any, Any, float]]:
        """For each cell log P(s | T = 0) and log P(s | T = 1) over the centre's mixture, and its weight."""
        units, weights = self._unit[:, 0].tolist(), self.weight.tolist()
        if not self.model.independent:
            with np.errstate(divide="ignore", invalid="ignore"):
                classes = self.model.log_classes(self.counts, errors.p, errors.q, *errors.rest)
            for negative, positive, unit, weight in zip(*classes, units, weights, strict=True):
                yield negative - unit, positive - unit, weight
            return
        columns = (self.s, self.misses)
        for s, misses, unit, known, weight in zip(
            *(x[:, 0].tolist() for x in columns), units, self.counts.known.tolist(), weights, strict=True
        ):
            negative = s * errors.log_p[0] + misses * errors.log_p[1] - unit
            positive = s * errors.log_q[1] + misses * errors.log_q[0] - unit
            yield (
                np.full_like(negative, -np.inf) if known == 1 else negative,
                np.full_like(positive, -np.inf) if known == 0 else positive,
                weight,
            )

    def changes(self, theta: Float, errors: Place) -> Iterator[tuple[Float, float]]:
        """For each cell its mixture over that at the centre, minus 1, at every θ and pair; and its weight.

        θ runs along a first axis; each summand is a plane, and only their sum has the size of the product.
        """
        up, down = expit(self.centre.u[0]), expit(-self.centre.u[0])
        away, columns = theta - up, (self._positive[:, 0].tolist(), self._negative[:, 0].tolist())
        classes = zip(*self._class_changes(errors), strict=True)
        for (negative, positive), p, q, weight in zip(classes, *columns, self.weight.tolist(), strict=True):
            with np.errstate(invalid="ignore", over="ignore"):
                of_positive, of_negative = p * np.expm1(positive), q * np.expm1(negative)
                gain = of_positive * (1 + away / up) + p * away / up
            yield gain + (of_negative * (1 - away / down) - q * away / down), weight

    def _changes(self, place: Place) -> Float:
        """The mixture over that at the centre, minus 1; the same rounded parameters serve all cells."""
        up, down = expit(self.centre.u), expit(-self.centre.u)
        away = expit(place.u) - up if up < 0.5 else down - expit(-place.u)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            negative, positive = (np.expm1(log) for log in self._class_changes(place))
            change = self._positive * (positive * (1 + away / up) + away / up)
            change += self._negative * (negative * (1 - away / down) - away / down)
        return np.where(np.isnan(change), -1.0, change)

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


def _parts(place: Place, size: int) -> Iterator[Place]:
    """A place a few points at a time."""

    def cut(x: Any, some: slice) -> Any:
        return tuple(cut(one, some) for one in x) if isinstance(x, tuple) else x[some]

    for start in range(0, place.u.size, size):
        some = slice(start, start + size)
        yield Place(*(cut(x, some) for x in place))


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
    return CountTable(counts.n[kept], counts.s[kept], counts.weight[kept], counts.known[kept])
