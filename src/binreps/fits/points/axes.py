"""Coordinates in which a prior is normal: the prior bounds every tail, and Newton's steps are short.

A rate is value = end · expit(x) with some prior density of x; v is the normal score of that prior, Φ(v) =
P(X ≤ x). The function x(v) is tabulated once, with its slopes φ(v) / f(x), and cubics between.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import betainc, betaln, expit, log_expit, ndtri

from binreps.model import Float, Prior
from binreps.region import Shapes, log_betainc, log_cut_density

_PANELS = 4000  # cubics between: x is right to 10⁻⁹ of a prior sd
_REACH = 120.0  # the logarithm of a density falls by this much: v beyond ±13
_X, _W = np.polynomial.legendre.leggauss(6)


class Axis:
    """The normal score v of a number x with a given log density, and back.

    Examples
    --------
    >>> axis = beta_axis((0.5, 0.5))
    >>> expit(axis.x(ndtri(np.array([0.25, 0.5])))).round(6)
    array([0.146447, 0.5     ])
    """

    def __init__(self, log_density: Callable[[Float], Float]) -> None:
        x, log_f = _grid(log_density)
        half = np.diff(x)[:, None] / 2
        inside = log_density((x[:-1, None] + half) + half * _X)
        masses = np.sum(half * _W * np.exp(inside - log_f.max()), axis=1)
        below = np.concatenate([[0.0], np.cumsum(masses)])
        above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
        self.log_constant = float(np.log(below[-1]) + log_f.max())
        """log ∫ of the density as it was given."""
        with np.errstate(divide="ignore"):
            v = np.where(below < above, ndtri(below / below[-1]), -ndtri(above / below[-1]))
        kept = np.abs(v) < 13
        self._v, self._x = v[kept], x[kept]
        log_slope = -(self._v**2) / 2 - np.log(2 * np.pi) / 2 - (log_f[kept] - self.log_constant)
        self._slope = np.exp(log_slope)

    def x(self, v: Any) -> Any:
        """x at a normal score; straight lines beyond ±13."""
        v = np.asarray(v, dtype=float)
        inside = np.clip(v, self._v[0], self._v[-1])
        x, slope = _hermite(inside, self._v, self._x, self._slope)
        return x + slope * (v - inside)

    def v(self, x: Any) -> Any:
        """The normal score of x."""
        x = np.asarray(x, dtype=float)
        inside = np.clip(x, self._x[0], self._x[-1])
        v, slope = _hermite(inside, self._x, self._v, 1 / self._slope)
        return v + slope * (x - inside)

    def slope(self, v: Any) -> Any:
        """dx / dv."""
        inside = np.clip(np.asarray(v, dtype=float), self._v[0], self._v[-1])
        return _hermite(inside, self._v, self._x, self._slope)[1]


def _grid(log_density: Callable[[Float], Float]) -> tuple[Float, Float]:
    """Points closer to each other where the density is high, and its logarithm there."""
    low, high = -(2.0**16), 2.0**16
    for _ in range(200):  # golden sections: these densities have one peak
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        first, second = log_density(np.array([left, right]))
        low, high = (left, high) if first < second else (low, right)
    peak = (low + high) / 2
    top = float(log_density(np.array([peak]))[0])

    def reach(sign: float, drop: float) -> float:
        near, far = 0.0, 2.0**17
        for _ in range(80):
            middle = (near + far) / 2
            fallen = float(log_density(np.array([peak + sign * middle]))[0]) < top - drop
            near, far = (near, middle) if fallen else (middle, far)
        return far

    scale = min(reach(-1.0, 0.5), reach(1.0, 0.5))
    ends = [np.arcsinh(reach(sign, _REACH) / scale) for sign in (-1.0, 1.0)]
    x = peak + scale * np.sinh(np.linspace(-ends[0], ends[1], _PANELS + 1))
    return x, log_density(x)


def _hermite(at: Float, knots: Float, values: Float, slopes: Float) -> tuple[Float, Float]:
    """The cubics through values and slopes, and their derivative."""
    k = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, knots.size - 2)
    h = knots[k + 1] - knots[k]
    t = (at - knots[k]) / h
    rise, left, right = values[k + 1] - values[k], slopes[k] * h, slopes[k + 1] * h
    a, b = 3 * rise - 2 * left - right, left + right - 2 * rise
    return values[k] + t * (left + t * (a + t * b)), (left + t * (2 * a + 3 * t * b)) / h


@lru_cache(maxsize=64)
def beta_axis(shapes: Shapes, end: float = 1.0) -> Axis:
    """The axis of logit(rate / end), the rate of law Beta(a, b) cut at the end."""
    a, b = shapes

    def log_density(x: Float) -> Float:
        if end == 1:
            return np.asarray(a * log_expit(x) + b * log_expit(-x))
        return np.asarray(a * log_expit(x) + log_expit(-x) + (b - 1) * np.log1p(-end * expit(x)))

    return Axis(log_density)


@lru_cache(maxsize=64)
def cut_axis(own: Shapes, other: Shapes) -> Axis:
    """The axis of logit p where p + q < 1, q integrated out."""
    return Axis(lambda x: log_cut_density(own, other, x))


class ErrorRates:
    """The error rates at normal scores, and how far their prior is from normal there.

    Below ½ each has its own axis. Where p + q < 1 the first score is that of p alone, and the second that of
    q / (1 − p) at a typical p: for other p the prior of that share is a little different, by `log_excess`.
    """

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self.cut = prior.better_than_chance
        own, other = prior.false_positive, prior.false_negative
        if self.cut:
            self.axes = (cut_axis(own, other), cut_axis(other, own))  # of either rate alone
            self._share = _share_axis(other, float(expit(self.axes[0].x(0.0))))
        else:
            self.axes = (beta_axis(own, 0.5), beta_axis(other, 0.5))

    @property
    def end(self) -> float:
        """The largest value of either rate."""
        return self._prior.region.end

    def at(self, v_p: Any, v_q: Any) -> tuple[Any, Any]:
        """p and q."""
        if not self.cut:
            return _inside(expit(self.axes[0].x(v_p)) / 2), _inside(expit(self.axes[1].x(v_q)) / 2)
        p = _inside(expit(self.axes[0].x(v_p)))
        return p, _inside((1 - p) * expit(self._share.x(v_q)))

    def log_excess(self, v_p: Any, v_q: Any) -> Any:
        """log of the prior density over that of two independent normal numbers."""
        if not self.cut:
            return np.zeros(np.broadcast_shapes(np.shape(v_p), np.shape(v_q)))
        (c, d), x = self._prior.false_negative, self._share.x(v_q)
        y = self.axes[0].x(v_p)
        rest, share = expit(-y), expit(x)
        whole = _log_share(c, d, y) + betaln(c, d)  # of q below 1 − p
        given = (
            c * (log_expit(-y) + log_expit(x))
            + log_expit(-x)
            + (d - 1) * np.log1p(-_inside(rest * share))
            - whole
        )
        reference = _log_share_density(c, d, self._typical, x) - self._share.log_constant
        return given - reference

    @property
    def _typical(self) -> float:
        """The p at which the axis of q / (1 − p) is that of its prior."""
        return float(expit(self.axes[0].x(0.0)))


def _inside(rate: Any) -> Any:
    """A rate that does not round to 0 or 1, far out in a tail: its logarithms are finite."""
    return np.clip(rate, 1e-300, 1 - 2.0**-53)


def _log_share(c: float, d: float, y: Any) -> Any:
    """log I_{1−p}(c, d) at y = logit p, to full precision where p is small."""
    beyond = betainc(d, c, expit(y))
    small = beyond < 0.5
    return np.where(small, np.log1p(-beyond * small), log_betainc(c, d, np.asarray(expit(-np.asarray(y)))))


def _log_share_density(c: float, d: float, p: float, x: Any) -> Any:
    """log density of x = logit q / (1 − p) at given p, without its constant."""
    return c * log_expit(x) + log_expit(-x) + (d - 1) * np.log1p(-(1 - p) * expit(x))


@lru_cache(maxsize=64)
def _share_axis(shapes: Shapes, p: float) -> Axis:
    """The axis of logit q / (1 − p) at a given p."""
    return Axis(lambda x: np.asarray(_log_share_density(*shapes, p, x)))
