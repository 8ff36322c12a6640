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


class Scale:
    """How a number follows from its coordinate: itself, or as a share of its `end` with that logit."""

    def __init__(self, end: float | None = None) -> None:
        self._end = end

    def value(self, w: Any) -> Any:
        """The number at a coordinate."""
        return w if self._end is None else self._end * expit(w)

    def coordinate(self, x: Any) -> Any:
        """The coordinate of a number."""
        if self._end is None:
            return x
        with np.errstate(divide="ignore"):
            return np.clip(logit(x / self._end), -1400, 1400)

    def slope(self, w: Any) -> Any:
        """d number / d w."""
        return 1.0 if self._end is None else self._end * np.exp(log_expit(w) + log_expit(-w))

    @property
    def ends(self) -> Float:
        """Where the number may lie."""
        return np.array([-np.inf, np.inf] if self._end is None else [0.0, self._end])


class Scaled(Marginal):
    """The density of a number from that of its coordinate, w.

    Attributes
    ----------
    scale : Scale
    tol : float
        To which quantiles are found, in coordinates.
    low, high : float
        Between which coordinates all mass lies.
    """

    scale: Scale
    tol: float
    low, high = -np.inf, np.inf

    @abstractmethod
    def _law(self, w: Float) -> tuple[Float, Float]:
        """Probability below coordinates, a list, and the density there."""

    @abstractmethod
    def _points(self) -> tuple[Float, Float]:
        """Coordinates and masses that tell roughly where the number is."""

    def _roughly(self, probability: Float) -> Float:
        """Quantiles of the coordinate that need not be exact."""
        return weighted_quantiles(*self._points(), probability)

    def _about(self, probability: Float) -> Float:
        return np.asarray(self.scale.value(self._roughly(probability)))

    def _at(self, x: Any) -> Float:
        w = self.scale.coordinate(np.asarray(x, dtype=float))
        return np.asarray(np.clip(w, self.low, self.high))

    def _height(self, x: Any) -> Any:
        w = self._at(x)
        height = self._law(w.ravel())[1].reshape(w.shape)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 at an end
            return np.where(height > 0, height / self.scale.slope(w), 0.0)[()]

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        w = self._at(x)
        return self._law(w.ravel())[0].reshape(w.shape)[()]

    def quantile(self, probability: Any) -> Any:
        """The value below which the number lies with the given probability."""
        wanted = np.asarray(probability, dtype=float)
        flat = wanted.ravel()
        found = invert(self._law, flat, self._roughly(flat), self.low, self.high, tol=self.tol)
        return self.scale.value(found.reshape(wanted.shape))[()]


class Panels(Scaled):
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
        self.error, self.scale = error, scale or Scale()
        self._series = [Series(interval, np.atleast_2d(masses) / total) for interval, masses in panels]
        lower = min(panels, key=lambda pair: float(np.min(pair[0].lower)))[0]
        upper = max(panels, key=lambda pair: float(np.max(pair[0].upper)))[0]
        self.low, self.high = float(np.min(lower.lower)), float(np.max(upper.upper))
        self.tol = 1e-13 * (self.high - self.low)
        self.ends = scale.ends if scale else np.array([self.low, self.high])
        self.poles = (*((self.low,) if lower.a < 0 else ()), *((self.high,) if upper.b < 0 else ()))

    def _law(self, w: Float) -> tuple[Float, Float]:
        below, height, at = np.zeros(w.shape), np.zeros(w.shape), w[..., None]
        for one in self._series:
            inside = one.interval
            here = (at >= inside.lower) & ((at < inside.upper) | (at == self.high) & (at == inside.upper))
            below += one.cumulative(at).sum(axis=-1)
            with np.errstate(invalid="ignore"):  # ∞ · 0 at a pole with too little mass beside it to be seen
                height += np.where(here, np.nan_to_num(one.density(at), posinf=np.inf), 0.0).sum(axis=-1)
        return np.clip(below, 0.0, 1.0), height

    def _points(self) -> tuple[Float, Float]:
        masses = [one.masses for one in self._series]
        nodes = [one.interval.nodes(one.masses.shape[-1]) for one in self._series]
        values = [np.broadcast_to(x, mass.shape).ravel() for x, mass in zip(nodes, masses, strict=True)]
        return np.concatenate(values), np.concatenate([mass.ravel() for mass in masses])
