"""Lines of a chart of moments, along which logit θ runs: for what varies along a ridge.

At fixed μ and v every rate, and the log odds of any record, is a smooth function of the place on a line, and
the line's density a series that carries the powers of the prior at its ends. The mass where a number is below
a value is that of the parts of lines between their crossings of the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from binreps.fits.exact.chart import Moments, Place, unit
from binreps.fits.exact.density import Density
from binreps.fits.exact.lattice import TURNS, flood
from binreps.fits.exact.panels import Scale, Scaled
from binreps.fits.exact.rules import Lattices
from binreps.fits.exact.tensor import weight_power
from binreps.fits.gauss import Interval, Series
from binreps.model import Float, Prior


class Asked(NamedTuple):
    """A number whose distribution is asked for."""

    logit: Callable[[Place], Float]
    end: float | None  # of which the number is a share; None asks for the logit itself
    weight: Callable[[Place], Float] | None = None  # on top of the posterior


_CUT = 24.0  # lines with less than e^−24 of the heaviest are left out
_MOST = 8_000  # lines
_FEW, _DENSER = 14, 30.0  # points of a line: to see whether it matters; and of all, over the spacing of lines
_STEPS = 4  # of the secant rule, towards a crossing
_MOVED = 1e-8  # of an interval, between two points that tell a slope to as many digits
_ENDLESS = 0.25  # of the logit: a number that changes so fast to the end of a line has none
_EDGE = 1e-15  # of a line: where it is taken to begin and to end


class Bundle(NamedTuple):
    """The lines of one chart: where they are, and the mass along each."""

    chart: Moments
    across: Float  # (2, lines): the coordinates of μ and v
    series: Series

    def at(self, line: Any, z: Float) -> Place:
        """The places a part z of the way along lines, both of one shape."""
        return _along(self.chart, self.across[:, line], z)


def _along(chart: Moments, across: Float, z: Float) -> Place:
    w = chart.stretches[2].coordinate(logit(z))
    return chart.place(np.stack([*across, np.broadcast_to(w, across.shape[1:])]))


def _ends(chart: Moments, prior: Prior) -> Interval:
    """A line with the powers that the prior has where p or q ends at 0."""
    p, q = prior.false_positive, prior.false_negative
    if chart.mirrored:
        p, q = q, p
    return Interval(0.0, 1.0, weight_power(q[0]), 0.0 if chart.low else weight_power(p[0]))


def _log_masses(density: Density, chart: Moments, across: Float, size: int) -> Float:
    """The logarithm of the mass at the points of lines, shape (lines, size)."""
    inside = _ends(chart, density.prior)
    z = inside.nodes(size)
    place = _along(chart, np.repeat(across, size, axis=1), np.tile(z, across.shape[1]))
    slope = unit(chart.stretches[2].coordinate(logit(z)), chart.stretches[2]).log_slope
    weight = inside.log_weights(size) - inside.a * np.log(z) - inside.b * np.log1p(-z) - slope
    value = (density(place) + place.log_volume).reshape(-1, size) + weight
    return np.where(np.isnan(value), -np.inf, value)  # ∞ − ∞ beyond what floats hold


def bundles(density: Density, rule: Lattices, spacing: float) -> list[Bundle]:
    """The posterior as lines, so many standard deviations apart, and points on them accordingly."""
    found, size = [], int(np.ceil(_DENSER / spacing))
    for chart, frame in zip(rule.charts, rule.frames, strict=True):
        assert isinstance(chart, Moments)
        basis = frame.basis[:2, :2] @ TURNS[2][0]

        def weight(x: Float, chart: Moments = chart) -> Float:
            return np.asarray(np.logaddexp.reduce(_log_masses(density, chart, x, _FEW), axis=1))

        origin, seeds = frame.origin[:2], frame.seeds[:2]
        across, _ = flood(weight, origin, basis, seeds[:, :1], spacing, cut=_CUT, most=_MOST)
        area = np.log(abs(np.linalg.det(basis)))
        found.append((chart, across, _log_masses(density, chart, across, size) + area))
    top = max(float(logs.max()) for *_, logs in found)
    total = sum(float(np.exp(logs - top).sum()) for *_, logs in found)
    return [
        Bundle(chart, across, Series(_ends(chart, density.prior), np.exp(logs - top) / total))
        for chart, across, logs in found
        if logs.max() > top - _CUT
    ]


class Crossings(Scaled):
    """The distribution of a number over lines, reweighted if a weight is given at their points."""

    def __init__(self, lines: list[Bundle], asked: Asked) -> None:
        self.scale, self.tol, self._number = Scale(asked.end), 1e-11, asked.logit
        self.ends = self.scale.ends
        self._lines = [_reweighted(one, asked.weight) for one in lines] if asked.weight else lines
        self._total = sum(float(one.series.total.sum()) for one in self._lines)
        self._values = [self._on(one) for one in self._lines]

    def _on(self, one: Bundle) -> tuple[Float, Float]:
        """Logits of places on the lines, their ends included, and the number there."""
        lines, size = one.series.masses.shape
        z = np.concatenate([[_EDGE], one.series.interval.nodes(size), [1 - _EDGE]])
        places = one.at(np.repeat(np.arange(lines), z.size), np.tile(z, lines))
        return logit(z), self._number(places).reshape(lines, z.size)

    def _law(self, w: Float) -> tuple[Float, Float]:
        below, height = np.zeros(w.size), np.zeros(w.size)
        for one, (t, values) in zip(self._lines, self._values, strict=True):
            under = values <= w[:, None, None]
            below += under[:, :, -1] @ one.series.total
            which, line, k = np.nonzero(under[..., :-1] != under[..., 1:])
            if not which.size:
                continue
            left, right = (t[k], values[line, k]), (t[k + 1], values[line, k + 1])
            z, slope = self._crossing(one, line, left, right, w[which])
            some, up = one.series.rows(line), np.where(under[which, line, k], 1.0, -1.0)
            below += np.bincount(which, up * some.cumulative(z), w.size)
            height += np.bincount(which, some.density(z) / np.maximum(np.abs(slope), 1e-300), w.size)
        return np.clip(below / self._total, 0.0, 1.0), np.maximum(height, 0.0) / self._total

    def _crossing(
        self, one: Bundle, line: Any, begin: tuple[Float, Float], end: tuple[Float, Float], w: Float
    ) -> tuple[Float, Float]:
        """Where lines cross a value between two points and values, by the secant rule; and the slope.

        Beside the end of a line most numbers are straight in z, and those that grow without end in its logit.
        """
        (low, left), (high, right) = begin, end
        endless = np.abs(right - left) > _ENDLESS * (high - low)
        low, high = (np.where(endless, x, expit(x)) for x in (low, high))
        slope = (right - left) / (high - low)
        at = np.clip(low + (w - left) / slope, low, high)
        last, value = low, left
        for _ in range(_STEPS):
            z = np.where(endless, expit(at), at)
            before, value = value, self._number(one.at(line, z))
            moved = at - last
            with np.errstate(divide="ignore", invalid="ignore"):
                found = (value - before) / moved
            good = (np.abs(moved) > _MOVED * (high - low)) & (found * slope > 0)
            slope = np.where(good, found, slope)
            last, at = at, np.clip(at + (w - value) / slope, low, high)
        z = np.where(endless, expit(at), at)
        return z, np.where(endless, slope / (z * (1 - z)), slope)

    def _points(self) -> tuple[Float, Float]:
        values = np.concatenate([values[:, 1:-1].ravel() for _, values in self._values])
        return values, np.concatenate([one.series.masses.ravel() for one in self._lines])


def _reweighted(one: Bundle, weight: Callable[[Place], Float]) -> Bundle:
    """Lines whose masses are multiplied by what a function is at their points."""
    lines, size = one.series.masses.shape
    z = one.series.interval.nodes(size)
    factor = weight(one.at(np.repeat(np.arange(lines), size), np.tile(z, lines))).reshape(lines, size)
    return one._replace(series=Series(one.series.interval, one.series.masses * factor))
