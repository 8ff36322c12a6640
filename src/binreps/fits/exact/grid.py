"""Nodes with posterior mass: what both integration rules produce and every result is read from."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from binreps.fits.exact.density import AXES, Density
from binreps.fits.exact.gauss import Interval, Series
from binreps.model import Float


class Pairs(NamedTuple):
    """Points (p, q), and the mass of each times θ, 1 − θ, θ², θ(1 − θ) and (1 − θ)²."""

    p: Float
    q: Float
    positive: Float
    negative: Float
    positive_twice: Float
    mixed: Float
    negative_twice: Float


def theta_summed_out(mass: Float, theta: Float, p: Float, q: Float, axes: tuple[int, ...]) -> Pairs:
    """Masses at nodes as masses at points (p, q), which do not change along the given axes."""
    positive, negative = mass * theta, mass * (1 - theta)
    products = positive, negative, positive * theta, positive * (1 - theta), negative * (1 - theta)
    return Pairs(p, q, *(product.sum(axis=axes).ravel() for product in products))


class Grid:
    """Nodes of a three-dimensional rule, and the posterior mass of each.

    Parameters
    ----------
    density : Density
    nodes : three arrays that broadcast against each other
        θ, p, q.
    log_mass : array
        Logarithm of the likelihood relative to the centre, the prior and the rule's weight, at each node.
    """

    def __init__(self, density: Density, nodes: tuple[Float, Float, Float], log_mass: Float) -> None:
        self.density, self.nodes = density, nodes
        self._peak = float(log_mass.max())
        mass = np.exp(log_mass - self._peak)
        self._total = float(mass.sum())
        self.mass = mass / self._total

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior."""
        density = self.density
        return self._peak + math.log(self._total) + density.log_likelihood + density.log_constant

    def expect(self, values: Any) -> float:
        """The posterior mean of values at the nodes."""
        return float(np.sum(self.mass * values))

    @cached_property
    def mean(self) -> Float:
        """Posterior means of θ, p, q."""
        centre = self.density.centre
        return np.array([centre[i] + self.expect(self.nodes[i] - centre[i]) for i in AXES])

    @cached_property
    def covariance(self) -> Float:
        """Posterior covariance of θ, p, q."""
        away = [self.nodes[i] - self.mean[i] for i in AXES]
        result = np.empty((3, 3))
        for i in AXES:
            for j in range(i + 1):
                result[i, j] = result[j, i] = self.expect(away[i] * away[j])
        return result

    @cached_property
    def pairs(self) -> Pairs:
        """The posterior with θ summed out, as far as a new individual's likelihood needs it."""
        theta, p, q = self.nodes
        axes = tuple(i for i in range(self.mass.ndim) if p.shape[i] == q.shape[i] == 1)
        shape = tuple(1 if i in axes else size for i, size in enumerate(self.mass.shape))
        p, q = (np.broadcast_to(x, shape).ravel() for x in (p, q))
        return theta_summed_out(self.mass, theta, p, q, axes)

    @property
    def sd(self) -> Float:
        """Posterior standard deviations of θ, p, q."""
        return np.sqrt(np.diag(self.covariance))

    def distance(self, other: Grid) -> float:
        """The largest difference of two grids: log evidence, means and sds in units of the sd."""
        sd = np.maximum(self.sd, 1e-300)
        changes = np.concatenate([(self.mean - other.mean) / sd, self.sd / sd - other.sd / sd])
        worst = float(np.max(np.abs(changes)))
        scale = max(1.0, abs(self.log_evidence))
        return max(worst, abs(self.log_evidence - other.log_evidence) / scale)


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


class Marginal:
    """The density of one rate: panels side by side, each a series."""

    error = 0.0
    """Numerical error beyond that of the posterior, in standard deviations."""

    def __init__(self, panels: list[tuple[Interval, Float]]) -> None:
        total = sum(float(masses.sum()) for _, masses in panels)
        self.series = [Series(interval, masses / total) for interval, masses in panels]
        self.starts = np.cumsum([0.0, *(float(one.total) for one in self.series)])
        self.ends = np.array([panels[0][0].lower, *(interval.upper for interval, _ in panels)])

    def density(self, x: Any) -> Any:
        """Density at x; 0 outside the support, ∞ at a pole of the prior."""
        x = np.asarray(x, dtype=float)
        inside = (x >= self.ends[0]) & (x <= self.ends[-1])
        return np.where(inside, np.maximum(self._height(x), 0.0), 0.0)[()]

    def _height(self, x: Any) -> Any:
        """The density where rounding may leave it a little below 0, as a search for a root needs it."""
        with np.errstate(invalid="ignore"):  # ∞ · 0 at a pole with too little mass beside it to be seen
            height = self._by_panel(x, lambda one, _, inside: one.density(inside))
        return np.where(np.isfinite(height), height, np.inf)[()]

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        return np.clip(self._by_panel(x, lambda one, start, inside: start + one.cumulative(inside)), 0.0, 1.0)

    def quantile(self, probability: Any) -> Any:
        """The value below which the rate lies with the given probability."""
        probability = np.asarray(probability, dtype=float)
        result = np.empty(probability.shape)
        which = np.clip(np.searchsorted(self.starts, probability, side="right") - 1, 0, len(self.series) - 1)
        for k in np.unique(which):
            result[which == k] = self.series[k].quantile(probability[which == k] - self.starts[k])
        return result[()]

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
        middle = self.quantile(np.linspace(1e-4, 1 - 1e-4, 400))
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

    def _by_panel(self, x: Any, evaluate: Any) -> Any:
        """A function evaluated panel by panel; below the first panel 0, above the last its value there."""
        x = np.asarray(x, dtype=float)
        which = np.clip(np.searchsorted(self.ends, x, side="right") - 1, 0, len(self.series) - 1)
        result = np.empty(x.shape)
        for k in np.unique(which):
            result[which == k] = evaluate(self.series[k], self.starts[k], x[which == k])
        return result[()]
