"""Lines of a lattice of moments, along which logit θ runs: for what varies along a ridge.

At fixed μ and v every rate, and the log odds of any record, is a smooth function of the place on a line. The
mass where it is below a value is that of the parts of lines between crossings of the value; between lattice
points sinc functions are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from binreps.fits.exact.chart import Chart, Place, Stretch
from binreps.fits.exact.density import Density
from binreps.fits.exact.lattice import flood
from binreps.fits.exact.marginal import Marginal, Scale, step
from binreps.fits.exact.rules import Lattices, log_mass
from binreps.fits.posterior import weighted_quantiles
from binreps.model import Float

Number = Callable[[Place], Float]
"""What is asked about: a function of a place, the logit of a number."""

_FINER = 0.3  # spacing along lines over that across: values between points need more than their sum does
_MOST = 150_000  # points
_NEAR = 8  # points of a line from which values between them are interpolated
_NO_LINE = 1e-13  # of all mass


class Bundle(NamedTuple):
    """The lines of one chart: where they begin, what a step along them is, and the mass of each step."""

    chart: Chart
    start: Float  # (3, lines)
    step: Float  # (3,)
    mass: Float  # (lines, steps)

    def at(self, line: Any, position: Float) -> Place:
        """The places at positions, in steps, on lines."""
        return self.chart.place(self.start[:, line] + self.step[:, None] * position)

    def places(self) -> Place:
        """All points, line by line."""
        lines, steps = self.mass.shape
        return self.at(np.repeat(np.arange(lines), steps), np.tile(np.arange(steps), lines))


def bundles(density: Density, rule: Lattices, spacing: float) -> list[Bundle]:
    """The posterior as lines."""
    found, logs = [], []
    for chart, frame in zip(rule.charts, rule.frames, strict=True):
        basis = frame.basis.copy()
        basis[:, -1] *= _FINER
        function = log_mass(density, chart)
        x, value = flood(function, frame.origin, basis, frame.seeds, spacing, most=_MOST)
        index = np.round(np.linalg.solve(spacing * basis, x - frame.origin[:, None])).astype(np.int64)
        pairs, line = np.unique(index[:2], axis=1, return_inverse=True)
        first = index[2].min()
        log_values = np.full((pairs.shape[1], index[2].max() - first + 1), -np.inf)
        log_values[line.ravel(), index[2] - first] = value
        whole = np.concatenate([pairs, np.full((1, pairs.shape[1]), first)])
        start = frame.origin[:, None] + spacing * basis @ whole
        found.append((chart, start, spacing * basis[:, -1]))
        logs.append(log_values + np.log(np.abs(np.linalg.det(basis))))
    top = max(float(one.max()) for one in logs)
    masses = [np.exp(one - top) for one in logs]
    total = sum(float(mass.sum()) for mass in masses)
    result = []
    for (chart, start, along), mass in zip(found, masses, strict=True):
        matters = mass.sum(axis=1) > _NO_LINE * total
        if matters.any():
            result.append(Bundle(chart, start[:, matters], along, mass[matters] / total))
    return result


class Crossings(Marginal):
    """The distribution of a number over lines, reweighted if a weight is given at their points."""

    def __init__(
        self,
        lines: list[Bundle],
        number: Number,
        end: float | None,
        weight: Callable[[Place], Float] | None = None,
    ) -> None:
        self.scale, self._number = Scale(end, Stretch(0.0, 1.0, straight=True)), number
        self.ends = self.scale.ends
        self._lines: list[Bundle] = []
        self._values: list[Any] = []
        for one in lines:
            places = one.places()
            mass = one.mass
            if weight is not None:
                mass = mass * weight(places).reshape(mass.shape)
            self._lines.append(one._replace(mass=mass))
            self._values.append(number(places).reshape(mass.shape))
        total = sum(float(one.mass.sum()) for one in self._lines)
        self._lines = [one._replace(mass=one.mass / total) for one in self._lines]
        # the mass below each point of a line: sinc functions are exact, and close points interpolate it
        self._below = [one.mass @ step(apart(one.mass.shape[1])).T for one in self._lines]

    def _at(self, w: float) -> tuple[float, float]:
        """Probability below a coordinate, and the density there."""
        below, density = 0.0, 0.0
        for one, values, reached in zip(self._lines, self._values, self._below, strict=True):
            under = values <= w
            below += float(one.mass[under[:, -1]].sum())
            crossed: Any = np.nonzero(under[:, :-1] != under[:, 1:])
            line, k = crossed
            if not line.size:
                continue
            position = self._crossing(one, line, k, values[line, k] - w, values[line, k + 1] - w, w)
            first = np.clip(k - _NEAR // 2 + 1, 0, max(values.shape[1] - _NEAR, 0))
            columns = first[:, None] + np.arange(min(_NEAR, values.shape[1]))
            weights = lagrange(position - first, columns.shape[1])
            up = np.where(under[line, k], 1.0, -1.0)
            below += float(up @ np.einsum("ij,ij->i", weights, reached[line[:, None], columns]))
            height = np.einsum("ij,ij->i", weights, one.mass[line[:, None], columns])
            tiny = 1e-4
            slope = self._number(one.at(line, position + tiny)) - self._number(one.at(line, position - tiny))
            density += float(np.sum(height / np.maximum(np.abs(slope) / (2 * tiny), 1e-300)))
        return min(max(below, 0.0), 1.0), max(density, 0.0)

    def _crossing(self, one: Bundle, line: Any, k: Any, left: Float, right: Float, w: float) -> Float:
        """Where lines cross a value between two neighbouring points, by the Illinois rule."""
        low, high = np.zeros(line.size), np.ones(line.size)
        for _ in range(6):
            middle = low + (high - low) * left / (left - right)
            value = self._number(one.at(line, k + middle)) - w
            same = (value > 0) == (left > 0)
            right = np.where(same, right / 2, value)
            left = np.where(same, value, left / 2)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
            if np.max(np.abs(value)) < 1e-13:
                break
        return np.asarray(k + middle)

    def quantile_at(self, probability: Any) -> Any:
        """The coordinate below which the probability lies, by Newton steps inside a shrinking bracket."""
        wanted = np.asarray(probability, dtype=float)
        result = np.array(self._roughly(wanted))
        for i, p in enumerate(wanted.flat):
            w, low, high = float(result.flat[i]), -np.inf, np.inf
            for _ in range(40):
                below, density = self._at(w)
                low, high = (w, high) if below < p else (low, w)
                move = (p - below) / density if density > 0 else np.nan
                following = w + move
                if not low < following < high:
                    following = (low + high) / 2 if np.isfinite(high - low) else w + np.sign(p - below) * 0.1
                done = abs(following - w) < 1e-11 * (1 + abs(w))
                w = following
                if done:
                    break
            result.flat[i] = w
        return result

    def _roughly(self, probability: Float) -> Float:
        """Quantiles of the points and their masses, in coordinates."""
        values = np.concatenate([one.ravel() for one in self._values])
        mass = np.concatenate([one.mass.ravel() for one in self._lines])
        return weighted_quantiles(values, mass, probability)

    def _about(self, probability: Float) -> Float:
        return np.asarray(self.scale.value(self._roughly(probability)))

    def quantile(self, probability: Any) -> Any:
        """The value below which the number lies with the given probability."""
        return self.scale.value(self.quantile_at(probability))[()]

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        return self._each(x, 0)

    def _height(self, x: Any) -> Any:
        slope = np.exp(self.scale.log_slope(self.scale.coordinate(np.asarray(x, dtype=float))))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self._each(x, 1) / slope)[()]

    def _each(self, x: Any, which: int) -> Any:
        w = np.asarray(self.scale.coordinate(np.asarray(x, dtype=float)))
        return np.array([self._at(float(one))[which] for one in w.ravel()]).reshape(w.shape)[()]


def apart(size: int) -> Float:
    """Differences of positions on a line."""
    position = np.arange(size, dtype=float)
    return np.asarray(position[:, None] - position)


def lagrange(t: Float, size: int) -> Float:
    """Weights of the values at 0, 1, … for the polynomial through them at t, one row for each t."""
    k = np.arange(size)
    away = t[:, None] - k
    away = np.where(away == 0, 1e-300, away)
    terms = np.array([(-1.0) ** i * math.comb(size - 1, i) for i in range(size)]) / away
    return np.asarray(terms / terms.sum(axis=1, keepdims=True))
