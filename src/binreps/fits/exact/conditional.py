"""One population's prevalence given p and q: its conditional support, and θ integrated out there."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.chart import Place
from binreps.fits.exact.density import Density
from binreps.fits.exact.tensor import rate_interval
from binreps.fits.gauss import Interval, Series, jacobi_rule
from binreps.model import Float, Prior

_FALL = (25.0, 27.0, 31.0)  # a line of θ ends where the density has fallen by so much: least, aim, most
_EDGE = 600.0  # logits that are as good as infinite
_LOG_ROOT_2PI = 0.9189385332046727


def snapped(low: Float, high: Float, end: float = 1.0) -> tuple[Float, Float]:
    """Ends that lie close to 0 or to the end of the domain, compared with the rest, moved there."""
    high = np.minimum(high, end)
    low = np.where(low < 0.05 * high, 0.0, low)
    return low, np.where(end - high < 0.05 * (end - low), end, high)


class Lines(NamedTuple):
    """Intervals of θ, one per line; beside 1 the distance to it is known better than θ is."""

    lower: Float
    length: Float
    above: Float  # from the upper end to 1

    def some(self, which: Any) -> Lines:
        """Some of the lines."""
        return Lines(*(x[which] for x in self))

    def kinds(self, prior: Prior) -> list[tuple[NDArray[np.bool_], Interval]]:
        """The lines sorted by the ends of the domain that they reach, each sort with its intervals."""
        zero, one, found = self.lower == 0, self.above == 0, []
        for at_zero in (False, True):
            for at_one in (False, True):
                same = (zero == at_zero) & (one == at_one)
                if same.any():
                    like = rate_interval(prior.prevalence, 0.0 if at_zero else 0.1, 1.0 if at_one else 0.4)
                    found.append((same, Interval(self.lower[same], 1 - self.above[same], like.a, like.b)))
        return found

    def rule(self, prior: Prior, size: int) -> tuple[Float, Float, Float]:
        """Nodes, 1 − nodes, and log weights with the prior's other factors, all of shape (lines, size)."""
        theta, rest, weights = np.empty((3, self.lower.size, size))
        a, b = prior.prevalence
        for same, kind in self.kinds(prior):
            rule, (lower, length, above) = jacobi_rule(size, kind.a, kind.b), self.some(same)
            theta[same] = lower[:, None] + length[:, None] * rule.nodes
            rest[same] = above[:, None] + length[:, None] * (1 - rule.nodes)
            weights[same] = np.log(rule.weights) + (kind.a + kind.b + 1) * np.log(length)[:, None]
            weights[same] += (a - 1 - kind.a) * np.log(theta[same]) + (b - 1 - kind.b) * np.log(rest[same])
        return theta, rest, weights

    def draw(self, prior: Prior, masses: Float, u: Float) -> Float:
        """One value on each line, by the inverse distribution function of its masses at u."""
        result = np.empty(u.size)
        for same, kind in self.kinds(prior):
            result[same] = draw_rows(kind, masses[same], u[same])
        return result


def draw_rows(interval: Interval, masses: Float, u: Float) -> Float:
    """One value from each row's density, by its inverse distribution function at u."""
    masses = masses / masses.sum(axis=-1, keepdims=True)
    return np.asarray(Series(interval, masses).quantile(u))


class Conditional:
    """The density of logit θ in one population, at many pairs of error rates."""

    def __init__(self, density: Density, errors: Place) -> None:
        negative, positive = density.log_classes(errors)
        top = np.maximum(negative, positive)
        self._positive, self._negative = np.exp(positive - top), np.exp(negative - top)
        self._weight = density.weight
        self._base = self._weight @ top
        self._a, self._b = density.prior.prevalence
        self._total = self._a + self._b + float(self._weight.sum())
        self._guess = _corrected_prevalence(density.counts, errors.p, errors.q)

    def value(self, u: Float) -> Float:
        """Logarithm of the density at logits u, without the prior's constant."""
        mixture = expit(u) * self._positive + expit(-u) * self._negative
        prior = self._a * log_expit(u) + self._b * log_expit(-u)
        return np.asarray(self._base + self._weight @ np.log(mixture) + prior)

    def slopes(self, u: Float) -> tuple[Float, Float]:
        """First and second derivative of `value`."""
        theta, rest = expit(u), expit(-u)
        y = theta * self._positive
        y /= y + rest * self._negative
        first = self._a + self._weight @ y - self._total * theta
        return first, self._weight @ (y * (1 - y)) - self._total * theta * rest

    @cached_property
    def peak(self) -> tuple[Float, Float]:
        """The only stationary point, and the spread there, by Newton steps inside a shrinking bracket.

        It lies where it would be if everyone of unknown status were negative, or positive, or between.
        """
        low = np.full(self._base.shape, logit(self._a / self._total))
        high = np.full(self._base.shape, -logit(self._b / self._total))
        u = np.clip(logit(self._guess), low, high)
        for _ in range(80):
            first, second = self.slopes(u)
            low, high = np.where(first > 0, u, low), np.where(first > 0, high, u)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = u - first / second
            good = (second < 0) & (newton >= low) & (newton <= high)
            step = np.where(good, newton, (low + high) / 2) - u
            u = u + step
            if np.all((step**2 * np.abs(second) < 1e-9) | (high - low < 1e-9)):
                break
        return u, 1 / np.sqrt(np.maximum(-second, 1e-3))

    def laplace(self) -> Float:
        """log ∫ over θ, by Laplace's method in logit θ: good enough to see where (p, q) lives."""
        u, spread = self.peak
        return np.asarray(self.value(u) + np.log(spread) + _LOG_ROOT_2PI)

    def lines(self) -> Lines:
        """Intervals of θ that hold its density."""
        low, high = (self._end(side) for side in (-1.0, 1.0))
        lower, upper = snapped(expit(low), expit(high))
        above = np.where(upper == 1, 0.0, expit(-high))
        return Lines(lower, np.where(lower > 0.5, expit(-low) - above, upper - lower), above)

    def _end(self, side: float) -> Float:
        """Where the density has fallen enough on one side of its peak.

        Newton steps on √fall, which is nearly linear, inside a bracket that is open outwards at first.
        """
        peak, spread = self.peak
        least, aim, most = _FALL
        top = self.value(peak)
        inner, outer = np.zeros(peak.shape), np.full(peak.shape, np.inf)
        away = np.sqrt(2 * aim) * spread
        for _ in range(60):
            u = np.clip(peak + side * away, -_EDGE, _EDGE)
            fall = np.maximum(top - self.value(u), 1e-300)
            short, far = (fall < least) & (np.abs(u) < _EDGE), fall > most
            if not np.any(short | far):
                break
            inner, outer = np.where(short, away, inner), np.where(far, away, outer)
            slope = np.maximum(-side * self.slopes(u)[0], 1e-300)
            newton = away + 2 * np.sqrt(fall) * (np.sqrt(aim) - np.sqrt(fall)) / slope
            newton = np.clip(newton, 0.3 * away, 4 * away)
            good = (newton > inner) & (newton < outer)
            middle = np.where(np.isinf(outer), 2 * away, (inner + outer) / 2)
            away = np.where(short | far, np.where(good, newton, middle), away)
        return np.asarray(np.clip(peak + side * away, -_EDGE, _EDGE))


def _corrected_prevalence(counts: CountTable, p: Float, q: Float) -> Float:
    """A first guess of θ given p and q: the share of positive results, corrected (Rogan and Gladen)."""
    unknown = (counts.known == UNKNOWN) & (counts.n > 0)
    weight = counts.weight[unknown]
    if not weight.size:
        return np.full(p.shape, 0.5)
    mean = weight @ (counts.s[unknown] / counts.n[unknown]) / weight.sum()
    return np.asarray(np.clip((mean - p) / np.maximum(1 - p - q, 1e-3), 1e-3, 1 - 1e-3))


class Inner(NamedTuple):
    """One population's θ integrated out at many pairs of error rates."""

    log_mass: Float  # relative to the likelihood at the centre
    mean: Float
    variance: Float
    lines: Lines

    def some(self, which: Any) -> Inner:
        """At some of the pairs."""
        return Inner(self.log_mass[which], self.mean[which], self.variance[which], self.lines.some(which))


def masses(density: Density, lines: Lines, errors: Place, size: int) -> tuple[Float, Float]:
    """Nodes of θ and log masses there, both of shape (pairs, nodes)."""
    theta, rest, weights = lines.rule(density.prior, size)
    return theta, density.log_ratios(errors, theta, rest) + weights


def integrated(density: Density, errors: Place, size: int) -> Inner:
    """θ integrated out."""
    lines = Conditional(density, errors).lines()
    theta, log_mass = masses(density, lines, errors, size)
    top = log_mass.max(axis=1)
    mass = np.exp(log_mass - top[:, None])
    total = mass.sum(axis=1)
    away = theta - lines.lower[:, None]
    shift = np.einsum("ij,ij->i", mass, away) / total
    away -= shift[:, None]
    variance = np.einsum("ij,ij,ij->i", mass, away, away) / total
    return Inner(top + np.log(total), lines.lower + shift, variance, lines)
