"""Where the error rates may lie: both below ½ (the paper's region), or better than chance, p + q < 1.

Either region is the unit square in other coordinates, (p, q) = `errors(a, b)`, so that whatever integrates or
climbs needs no boundary but 0 and 1. The mirror image (θ, p, q) → (1−θ, 1−q, 1−p) of the second region is
p + q > 1: exactly one of the two is kept, and labels cannot switch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, expit, log_expit, logit

Float = NDArray[np.float64]
Shapes = tuple[float, float]
Pair = tuple[Any, Any]


class Region(ABC):
    """A set of pairs (p, q), as the unit square in other coordinates."""

    words: ClassVar[str]
    end: ClassVar[float]  # the largest value of either error rate

    @abstractmethod
    def errors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """(p, q) at a point of the unit square."""

    @abstractmethod
    def square(self, p: Any, q: Any) -> tuple[Any, Any]:
        """The point of the unit square at (p, q)."""

    @abstractmethod
    def log_area(self, a: Any, b: Any) -> Any:
        """log of the area of (p, q) per area of the unit square."""

    @abstractmethod
    def logs(self, a: Pair, b: Pair) -> tuple[Pair, Pair]:
        """(log p, log 1−p) and (log q, log 1−q) from the same of a and b, also where one rounds to 0 or 1."""

    @abstractmethod
    def holds(self, p: Any, q: Any) -> Any:
        """Whether (p, q) lies inside, the border included."""

    @abstractmethod
    def log_mass(self, false_positive: Shapes, false_negative: Shapes) -> float:
        """log ∫ p^(a−1) (1−p)^(b−1) q^(c−1) (1−q)^(d−1) over the region: the constant of the prior."""


class Half(Region):
    """p, q < ½, as in the paper."""

    words: ClassVar = "both error rates are below ½"
    end: ClassVar = 0.5

    def errors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """As `Region` says."""
        return a / 2, b / 2

    def square(self, p: Any, q: Any) -> tuple[Any, Any]:
        """As `Region` says."""
        return 2 * p, 2 * q

    def logs(self, a: Pair, b: Pair) -> tuple[Pair, Pair]:
        """As `Region` says."""
        return _halved(a), _halved(b)

    def log_area(self, a: Any, b: Any) -> Any:
        """As `Region` says."""
        return np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), -np.log(4.0))[()]

    def holds(self, p: Any, q: Any) -> Any:
        """As `Region` says."""
        return (p >= 0) & (q >= 0) & (p <= 0.5) & (q <= 0.5)

    def log_mass(self, false_positive: Shapes, false_negative: Shapes) -> float:
        """As `Region` says."""
        return _log_half(false_positive) + _log_half(false_negative)


class BetterThanChance(Region):
    """p + q < 1: a positive result is likelier in a positive individual."""

    words: ClassVar = "the two error rates add up to less than 1"
    end: ClassVar = 1.0

    def errors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """As `Region` says."""
        return a + 0 * b, (1 - a) * b

    def square(self, p: Any, q: Any) -> tuple[Any, Any]:
        """As `Region` says."""
        return p + 0 * q, q / (1 - p)

    def logs(self, a: Pair, b: Pair) -> tuple[Pair, Pair]:
        """As `Region` says: 1 − q = a + (1−a)(1−b)."""
        return a, (a[1] + b[0], np.logaddexp(a[0], a[1] + b[1]))

    def log_area(self, a: Any, b: Any) -> Any:
        """As `Region` says."""
        return np.log1p(-a) + 0 * b

    def holds(self, p: Any, q: Any) -> Any:
        """As `Region` says."""
        return (p >= 0) & (q >= 0) & (p + q <= 1)

    def log_mass(self, false_positive: Shapes, false_negative: Shapes) -> float:
        """As `Region` says: half of everything where p and 1 − q are alike."""
        (a, b), (c, d) = false_positive, false_negative
        if (a, b) == (d, c):
            return float(2 * betaln(a, b) - np.log(2))
        return float(np.logaddexp.reduce(cut_panels(false_positive, false_negative)[1]))


HALF, BETTER_THAN_CHANCE = Half(), BetterThanChance()


def _halved(a: Pair) -> Pair:
    """log x and log(1−x) of x = a / 2."""
    return a[0] - np.log(2), np.log1p(-np.exp(a[0]) / 2)


@lru_cache(maxsize=256)
def _log_half(shapes: Shapes) -> float:
    """log ∫ x^(a−1) (1−x)^(b−1) up to ½."""
    return float(betaln(*shapes) + log_betainc(*shapes, np.array(0.5)))


def log_betainc(a: float, b: float, x: Float) -> Float:
    """log I_x(a, b), also where the incomplete beta function underflows."""
    share = np.asarray(betainc(a, b, x))
    with np.errstate(divide="ignore"):
        result = np.array(np.log(share))
    if np.any(tiny := share < 1e-290):
        # x^a (1−x)^b / (a B(a, b)) · Σ (a+b)_k / (a+1)_k x^k, which converges fast so far below the mean.
        y, k = np.asarray(x)[tiny], np.arange(2000)
        terms = np.cumprod((a + b + k) / (a + 1 + k) * y[..., None], axis=-1)
        with np.errstate(divide="ignore"):
            start = a * np.log(y) + b * np.log1p(-y) - np.log(a) - betaln(a, b)
        result[tiny] = start + np.log1p(terms.sum(axis=-1))
    return result


def log_cut_density(own: Shapes, other: Shapes, y: Float) -> Float:
    """log p^a (1−p)^b B(c, d) I_{1−p}(c, d) at y = logit p: one error rate where p + q < 1, not normalised.

    It is the density of logit p; by symmetry that of logit q too, with the shapes exchanged.
    """
    (a, b), (c, d) = own, other
    beyond = betainc(d, c, expit(y))  # 1 − I_{1−p}(c, d), to full precision where p is small
    small = beyond < 0.5
    rest = np.where(small, np.log1p(-beyond * small), log_betainc(c, d, expit(-y)))
    return np.asarray(a * log_expit(y) + b * log_expit(-y) + rest + betaln(c, d))


@lru_cache(maxsize=256)
def cut_panels(own: Shapes, other: Shapes) -> tuple[Float, Float]:
    """Ends of panels in logit p, and the log of ∫ exp(`log_cut_density`) over each, by Gauss's rule.

    The integrand has one peak, and it may bend sharply in two places: at the peak and where 1 − p is the
    mean of q. Panels double in length away from both.
    """
    low, high = -1500.0, 1500.0
    for _ in range(120):  # it is concave: golden sections
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        first, second = log_cut_density(own, other, np.array([left, right]))
        low, high = (left, high) if first < second else (low, right)
    c, d = other
    peak, step = (low + high) / 2, -float(logit(c / (c + d)))
    away = np.concatenate([[0.0], np.geomspace(1e-5, 1500.0, 60)])
    ends = np.unique(np.concatenate([peak - away, peak + away, step - away, step + away]))
    return ends, log_cut_masses(own, other, ends[:-1], ends[1:])


def log_cut_masses(own: Shapes, other: Shapes, low: Float, high: Float) -> Float:
    """log ∫ exp(`log_cut_density`) from each low to each high, by Gauss's rule."""
    half = (high - low)[..., None] / 2
    value = log_cut_density(own, other, low[..., None] + half * (1 + _X))
    top = np.maximum(value.max(axis=-1), np.finfo(float).min)
    with np.errstate(divide="ignore"):  # an interval of length 0, or one where 1 − p underflows
        return np.asarray(top + np.log(np.sum(half * _W * np.exp(value - top[..., None]), axis=-1)))


_X, _W = np.polynomial.legendre.leggauss(16)
