"""The distribution of one number under the posterior: a rate, or the log odds of a record.

`Panels` has it as series on intervals, `Crossings` as lines of a lattice along which the number varies.
Quantiles, modes and shortest intervals follow from density and distribution function alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, logit

from binreps.fits.exact.chart import Stretch
from binreps.fits.exact.gauss import Interval, Series, invert
from binreps.fits.posterior import weighted_quantiles
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


class Panels(Marginal):
    """Series on intervals, which may overlap, of a number or, with a scale, of its coordinate.

    Parameters
    ----------
    panels : list of Interval and masses
        The ends of an interval may be arrays, with as many rows of masses.
    error : float
    scale : Scale, optional
    """

    def __init__(
        self, panels: list[tuple[Interval, Float]], error: float = 0.0, scale: Scale | None = None
    ) -> None:
        total = sum(float(masses.sum()) for _, masses in panels)
        self.error, self.scale = error, scale
        self._series = [Series(interval, np.atleast_2d(masses) / total) for interval, masses in panels]
        lower = min(panels, key=lambda pair: float(np.min(pair[0].lower)))[0]
        upper = max(panels, key=lambda pair: float(np.max(pair[0].upper)))[0]
        self._low, self._high = float(np.min(lower.lower)), float(np.max(upper.upper))
        self.ends = np.array([self._low, self._high]) if scale is None else scale.ends
        self.poles = (*((self._low,) if lower.a < 0 else ()), *((self._high,) if upper.b < 0 else ()))

    def _coordinate(self, x: Any) -> Float:
        x = np.asarray(x, dtype=float)
        w = x if self.scale is None else self.scale.coordinate(x)
        return np.asarray(np.clip(w, self._low, self._high))

    def _below(self, w: Float) -> Float:
        each = [one.cumulative(w[..., None]).sum(axis=-1) for one in self._series]
        return np.asarray(np.clip(sum(each), 0.0, 1.0))

    def _height_at(self, w: Float) -> Float:
        total = np.zeros(w.shape)
        for one in self._series:
            inside, at = one.interval, w[..., None]
            here = (at >= inside.lower) & ((at < inside.upper) | (at == self._high) & (at == inside.upper))
            with np.errstate(invalid="ignore"):  # ∞ · 0 at a pole with too little mass beside it to be seen
                total += np.where(here, np.nan_to_num(one.density(at), posinf=np.inf), 0.0).sum(axis=-1)
        return total

    def _height(self, x: Any) -> Any:
        w = self._coordinate(x)
        height = self._height_at(w)
        return height[()] if self.scale is None else (height / np.exp(self.scale.log_slope(w)))[()]

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        return self._below(self._coordinate(x))[()]

    def _roughly(self, probability: Float) -> Float:
        """Quantiles of the nodes and their masses, in coordinates."""
        nodes = [one.interval.nodes(one.masses.shape[-1]) for one in self._series]
        masses = [one.masses for one in self._series]
        values = [np.broadcast_to(x, mass.shape).ravel() for x, mass in zip(nodes, masses, strict=True)]
        mass = np.concatenate([mass.ravel() for mass in masses])
        return weighted_quantiles(np.concatenate(values), mass, probability)

    def _about(self, probability: Float) -> Float:
        found = self._roughly(probability)
        return found if self.scale is None else np.asarray(self.scale.value(found))

    def quantile(self, probability: Any) -> Any:
        """The value below which the number lies with the given probability."""
        wanted = np.asarray(probability, dtype=float)
        guess = self._roughly(wanted.ravel())

        def law(w: Float) -> tuple[Float, Float]:
            return self._below(w), self._height_at(w)

        tol = 1e-13 * (self._high - self._low)
        found = invert(law, wanted.ravel(), guess, self._low, self._high, tol=tol).reshape(wanted.shape)
        return (found if self.scale is None else self.scale.value(found))[()]


class Scale:
    """How a number follows from its coordinate: a logit, or what has that logit as a share of its `end`."""

    def __init__(self, end: float | None, stretch: Stretch) -> None:
        self._end, self._stretch = end, stretch

    def value(self, w: Any) -> Any:
        """The number at a coordinate."""
        logit = self._stretch.logit(w)
        return logit if self._end is None else self._end * expit(logit)

    def coordinate(self, x: Any) -> Any:
        """The coordinate of a number."""
        if self._end is None:
            return self._stretch.coordinate(x)
        with np.errstate(divide="ignore"):
            return self._stretch.coordinate(np.clip(logit(np.asarray(x) / self._end), -1400, 1400))

    def log_slope(self, w: Any) -> Any:
        """log of d number / d w."""
        at, slope = self._stretch.logit(w), self._stretch.log_slope(w)
        return slope if self._end is None else slope + np.log(self._end) + log_expit(at) + log_expit(-at)

    @property
    def ends(self) -> Float:
        """Where the number may lie."""
        return np.array([-np.inf, np.inf] if self._end is None else [0.0, self._end])
