"""The distribution of one number under the posterior, whichever engine tells it.

Modes and shortest intervals follow from density, distribution function and quantiles alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from binreps.model import Float


def find_root(function: Callable[[float], float], low: float, high: float, tol: float = 1e-10) -> float:
    """The root of an increasing function between two points, or the nearer of them, by the Illinois rule."""
    f_low, f_high = function(low), function(high)
    if f_low >= 0 or f_high <= 0:
        return low if f_low >= 0 else high
    side = 0
    for _ in range(200):
        finite = math.isfinite(f_high - f_low)
        middle = (low * f_high - high * f_low) / (f_high - f_low) if finite else (low + high) / 2
        value = function(middle)
        if value == 0 or high - low < tol:
            return middle
        if value < 0:
            low, f_low, f_high = middle, value, f_high / 2 if side < 0 else f_high
            side = -1
        else:
            high, f_high, f_low = middle, value, f_low / 2 if side > 0 else f_low
            side = 1
        if abs(value) < 1e-15:
            return middle
    return (low + high) / 2


class Marginal(ABC):
    """The density of one number.

    Attributes
    ----------
    error : float
        The numerical error of quantiles, in standard deviations.
    poles : tuple of float
        Where the density is infinite, be there mass beside or none that shows.
    ends : array
        Where the density begins and ends.
    """

    error: float = 0.0
    poles: tuple[float, ...] = ()
    ends: Float

    @abstractmethod
    def _height(self, x: Any) -> Any:
        """The density inside the ends, where rounding may leave it a little below 0."""

    @abstractmethod
    def cumulative(self, x: Any) -> Any:
        """Probability below x."""

    @abstractmethod
    def quantile(self, probability: Any) -> Any:
        """The value below which the number lies with the given probability."""

    def _about(self, probability: Float) -> Float:
        """Quantiles that need not be exact."""
        return np.asarray(self.quantile(probability))

    def density(self, x: Any) -> Any:
        """Density at x; 0 outside the support, ∞ at a pole of the prior."""
        x = np.asarray(x, dtype=float)
        inside = (x >= self.ends[0]) & (x <= self.ends[-1])
        height = self._height(np.clip(x, self.ends[0], self.ends[-1]))
        return np.where(np.isin(x, self.poles), np.inf, np.where(inside, np.maximum(height, 0.0), 0.0))[()]

    def shortest(self, level: float) -> tuple[float, float]:
        """The shortest interval that holds the given probability.

        Its length as a function of the mass below it has the slope 1/f(upper) − 1/f(lower): the root of that,
        next to the best of a scan, or an end of the support.
        """

        def ends(below: Any) -> Any:
            return self.quantile(np.clip(np.stack([below, below + level]), 1e-12, 1 - 1e-12))

        def slope(below: float) -> float:
            at_lower, at_upper = self._height(ends(np.float64(below)))
            return float(1 / at_upper - 1 / at_lower)

        scan = (1 - level) * np.linspace(0, 1, 41)
        seen = ends(scan)
        best = int(np.argmin(seen[1] - seen[0]))
        if 0 < best < scan.size - 1:
            found = self._equally_high(seen[:, best], level)
            if np.all((found > seen[:, best - 1]) & (found < seen[:, best + 1])):
                return float(found[0]), float(found[1])
        low, high = float(scan[max(best - 1, 0)]), float(scan[min(best + 1, scan.size - 1)])
        below = find_root(slope, low, high, tol=1e-9)
        lower, upper = ends(np.float64(below))
        return float(self.ends[0] if below <= 0 else lower), float(
            self.ends[-1] if below >= scan[-1] else upper
        )

    def _equally_high(self, x: Float, level: float) -> Float:
        """Two ends of equal density that hold the given probability, by Newton steps; NaN if they fail."""
        step = 1e-5 * (x[1] - x[0]) * np.array([[-1.0], [0.0], [1.0]])
        for _ in range(12):
            before, density, after = self._height(x + step)
            low, high = density
            low_slope, high_slope = (after - before) / (2 * step[2])
            excess, uneven = np.subtract(*self.cumulative(x)[::-1]) - level, high - low
            scale = high * low_slope - low * high_slope
            if not scale > 0:
                break
            change = (
                np.array([high_slope * excess - high * uneven, low_slope * excess - low * uneven]) / scale
            )
            x = x - change
            if np.max(np.abs(change)) < 1e-8 * (x[1] - x[0]):
                return x
        return np.full(2, np.nan)

    @property
    def mode(self) -> float:
        """The highest local maximum of the density, be it at ½ or another finite end; NaN if there is none.

        An end where the density diverges is no mode.
        """
        middle = np.unique(self._about(np.linspace(1e-4, 1 - 1e-4, 400)))
        x = np.concatenate([self.ends[:1], middle, self.ends[-1:]])
        y = self._height(x)
        padded = np.concatenate([[-np.inf], y, [-np.inf]])
        peaks = np.flatnonzero((y >= padded[:-2]) & (y > padded[2:]) & np.isfinite(y))
        if not peaks.size:
            return float("nan")
        i = peaks[np.argmax(y[peaks])]
        if i in (0, x.size - 1):
            return float(x[i])
        low, high = x[i - 1], x[i + 1]
        while high - low > 1e-9 * (self.ends[-1] - self.ends[0]):
            inner = np.array([high - 0.618 * (high - low), low + 0.618 * (high - low)])
            y = self._height(inner)
            low, high = (low, inner[1]) if y[0] > y[1] else (inner[0], high)
        return float((low + high) / 2)
