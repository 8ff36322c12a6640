"""Which rule integrates a posterior: a product of Gauss rules, or lattices in the moments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import combinations, count
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from binreps.fits.exact.chart import Box, Chart, pieces
from binreps.fits.exact.density import Density
from binreps.fits.exact.grid import Grid, NoMassError, spread
from binreps.fits.exact.lattice import (
    CUT,
    Frame,
    Function,
    Peak,
    TooManyPointsError,
    climb,
    flood,
    frame_of,
    turned,
)
from binreps.fits.exact.tensor import WHOLE, Ends, Tensor, Tensors, to_ends
from binreps.model import Float

TOLERANCE = 1e-8
"""Numerical error, in standard deviations, below which a rule is good enough."""

POWER, OLDER_POWER = 1.05, 1.25
"""Error of a grid = (its distance from the last)^1.05, from the one before that ^1.25: for honesty less than
theory has, which is 1.15 to 1.4 for each step."""

_SPACINGS = tuple(
    1.05 * 0.87**k for k in range(14)
)  # in standard deviations: each error the power 1.15 … 1.3
_MOST_IN_PRODUCT = 2_000_000  # points, those without mass included
_NODES_PER_WIDTH, _FINER = 3.25, 1.14  # points of a product: an error of e^−18 at first, then its power 1.3
_GROWTH = 0.04  # of a box, from level to level: a third of a standard deviation on either side
_PILOT, _LEAST_NODES, _MANY_NODES = 10, 19, 40  # points of an axis: to see widths, at least, at most at first
_BOX_CUT = 28.0  # e^−28 of the top lies outside of a product's first box
_FAR_APART = 9.0  # sums of sds between two modes: nothing of either, skewed or not, lies beyond a cut
_COARSE, _COARSE_CUT, _COARSE_MOST = 1.35, 16.0, 10_000  # of the lattice from which another's frame is taken
_INSIDE = 1.5  # coordinates of 1.5 are 1 % from an end: a start there is well inside a piece


class Rule(ABC):
    """Grids of one kind, better and better."""

    before: int
    """With how many grids before it one must agree."""

    pauses = 1.0
    """By how much more than powers of distances say a grid may be off: some get no better for a step."""

    def __init__(self, density: Density) -> None:
        self.density = density

    @abstractmethod
    def grids(self) -> Iterator[Grid]:
        """Better and better grids, as many as are affordable."""


class Part(NamedTuple):
    """A box of the unit cube, and conditional standard deviations of the density along its axes.

    How far it reaches in units of these says how many points an axis needs: of a Gaussian within ±a, n points
    leave e^−2(n/a)².
    """

    ends: Ends
    widths: Float
    centre: Float
    sd: Float

    def grown(self, level: int) -> Part:
        """The box that a finer product has: a little larger, so that what this one leaves out is seen."""
        moved = [(level * _GROWTH * (high - low) / 2, low, high) for low, high in self.ends]
        return self._replace(
            ends=tuple(to_ends(max(low - x, 0.0), min(high + x, 1.0)) for x, low, high in moved)
        )

    def sizes(self, level: int) -> tuple[int, ...]:
        """How many points each axis has."""
        reach = np.array([high - low for low, high in self.ends]) / (2 * self.widths)
        wanted = np.clip(_NODES_PER_WIDTH * reach, _LEAST_NODES, _MANY_NODES)
        return tuple(int(size) for size in np.ceil(wanted * _FINER**level))

    def holds(self, unit: Float) -> bool:
        """Whether a point lies inside."""
        return all(low <= x <= high for (low, high), x in zip(self.ends, unit, strict=True))

    def meets(self, other: Part) -> bool:
        """Whether two boxes have points in common."""
        pairs = zip(self.ends, other.ends, strict=True)
        return all(low < end and begin < high for (low, high), (begin, end) in pairs)

    def apart(self, other: Part) -> Float:
        """How far the centres of two boxes are apart along each axis, in sums of standard deviations."""
        return np.asarray(np.abs(self.centre - other.centre) / (self.sd + other.sd))

    def joined(self, other: Part) -> Part:
        """One box for two."""
        pairs = zip(self.ends, other.ends, strict=True)
        ends = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
        return self._replace(ends=ends, widths=np.minimum(self.widths, other.widths))

    def cut(self, other: Part, level: int) -> tuple[Part, Part]:
        """Two boxes that meet, cut where their centres are furthest apart; at every level elsewhere.

        What lies beyond a cut without lying in the other box is lost: another cut shows how much.
        """
        axis = int(np.argmax(self.apart(other)))
        low, high = sorted((self, other), key=lambda part: float(part.centre[axis]))
        begin, end = high.ends[axis][0], low.ends[axis][1]
        at = begin + (end - begin) * (0.5 + (0.1, -0.1)[level % 2])
        return low._within(axis, low.ends[axis][0], at), high._within(axis, at, high.ends[axis][1])

    def _within(self, axis: int, low: float, high: float) -> Part:
        return self._replace(ends=(*self.ends[:axis], (low, high), *self.ends[axis + 1 :]))


def _part(ends: Ends, unit: Float, mass: Float) -> Part:
    """A box with what points of the unit cube and their masses say of the density there."""
    centre, sd, widths = spread(unit, mass)
    return Part(ends, widths, centre, sd)


class Product(Rule):
    """Products of Gauss rules, over the whole domain or over a box around each mode."""

    before = 1

    def __init__(self, density: Density, parts: list[Part], most: int = _MOST_IN_PRODUCT) -> None:
        super().__init__(density)
        self.parts, self.most = parts, most

    def up_to(self, most: int) -> Product:
        """The same products, with more points or fewer."""
        return Product(self.density, self.parts, most)

    def at(self, level: int) -> list[Part]:
        """The boxes of a level; those that meet are cut."""
        found = [part.grown(level) for part in self.parts]
        for i, j in combinations(range(len(found)), 2):
            if found[i].meets(found[j]):
                found[i], found[j] = found[i].cut(found[j], level)
        return found

    def points(self, level: int) -> int:
        """How many points there are."""
        return sum(math.prod(part.sizes(level)) for part in self.at(level))

    def grids(self) -> Iterator[Grid]:
        """As `Rule` says."""
        for level in count():
            if self.points(level) > self.most:
                return
            yield Tensors([Tensor(self.density, part.sizes(level), part.ends) for part in self.at(level)])


def whole(density: Density) -> Product:
    """The product over the whole domain, its sizes by what a few points see."""
    ends = (WHOLE,) * len(density.model.names)
    few = Tensor(density, (_PILOT,) * len(ends), ends)
    return Product(density, [_part(ends, few.unit, few.mass.ravel())])


def trimmed(density: Density, modes: Float, most: int) -> Product:
    """The products over boxes that hold the modes: for a posterior cut off by ½ or p + q = 1 too.

    A cut is nothing to a Gauss rule, but an exponential tail to a lattice's coordinates.
    """
    chart = Box(density.model, density.prior.region)
    starts = chart.coordinates(*modes)
    values = log_mass(density, chart)(starts)
    parts: list[Part] = []
    high = values > values.max() - CUT
    for start in starts.T[high]:
        unit = expit([stretch.logit(w) for stretch, w in zip(chart.stretches, start, strict=True)])
        if any(part.holds(unit) for part in parts):
            continue
        new = _around(density, chart, start, most)
        near = [part for part in parts if part.apart(new).max() < _FAR_APART]
        for part in near:
            new = part.joined(new)
        parts = [part for part in parts if not any(part is one for one in near)] + [new]
    return Product(density, parts)


def _around(density: Density, chart: Chart, start: Float, most: int) -> Part:
    """The box that holds what a coarse lattice sees around the mode that a start leads to."""
    function = log_mass(density, chart)
    peak = climb(function, start, first_width(density))
    x, mass, spacing = _seen(function, peak, _BOX_CUT, most)
    one_more = spacing * np.linalg.norm(peak.basis, axis=1)  # the first points that are left out
    axes = list(zip(chart.stretches, x, one_more, strict=True))
    ends = [expit(one.logit(np.array([w.min() - more, w.max() + more]))).tolist() for one, w, more in axes]
    unit = expit(np.stack([one.logit(w) for one, w, _ in axes]))
    return _part(tuple(to_ends(*pair) for pair in ends), unit, mass)


def _seen(function: Function, peak: Peak, cut: float, most: int) -> tuple[Float, Float, float]:
    """A coarse lattice around a mode, the masses of its points, and its spacing."""
    dim, spacing = peak.x.size, _COARSE
    while True:
        x, value = flood(function, peak.x, peak.basis, peak.x[:, None], spacing, cut=cut, most=most)
        if not value.size:
            raise NoMassError
        mass = np.exp(value - value.max())
        mass /= mass.sum()
        if mass.max() < 1.8 * (_COARSE / np.sqrt(2 * np.pi)) ** dim:  # on one point, of a Gaussian
            return x, mass, spacing
        spacing *= 0.6  # a flat top made the basis wider than the density is


class Lattices(Rule):
    """Lattices in one chart, or in several that cover the domain piece by piece."""

    before, pauses = 2, 2.0

    def __init__(self, density: Density, charts: list[Chart], frames: list[Frame], most: int) -> None:
        super().__init__(density)
        self.charts, self.frames, self.most = charts, frames, most

    def grids(self) -> Iterator[Grid]:
        """As `Rule` says."""
        for level, spacing in enumerate(_SPACINGS):
            try:
                yield self.grid(spacing, level)
            except TooManyPointsError:
                return

    def grid(self, spacing: float, turn: int) -> Grid:
        """One grid; those of different turns share neither points nor directions."""
        parameters, logs, left = [], [], self.most
        for chart, frame in zip(self.charts, self.frames, strict=True):
            origin, basis = turned(frame, spacing, turn)
            x, value = flood(log_mass(self.density, chart), origin, basis, frame.seeds, spacing, most=left)
            left -= value.size
            volume = np.log(spacing) * len(x) + np.sum(np.log(np.abs(np.diag(frame.basis))))
            parameters.append(np.stack(chart.place(x).parameters))
            logs.append(value + volume)
        unit = self.density.log_likelihood + self.density.log_constant
        return Grid(tuple(np.concatenate(parameters, axis=1)), np.concatenate(logs), unit)


def log_mass(density: Density, chart: Chart) -> Function:
    """The logarithm of the posterior density of a chart's coordinates."""

    def function(x: Float) -> Float:
        place = chart.place(x)
        with np.errstate(invalid="ignore"):
            value = density(place) + place.log_volume
        return np.where(np.isnan(value), -np.inf, value)  # ∞ − ∞ beyond what floats hold

    return function


def within(ends: Ends, chart: Chart, function: Function) -> Function:
    """A function of a chart's coordinates inside a box of the unit cube, −∞ elsewhere."""

    def inside(x: Float) -> Float:
        unit = expit(np.stack([one.logit(w) for one, w in zip(chart.stretches, x, strict=True)]))
        low, high = np.array(ends).T[:, :, None]
        return np.where(np.all((unit >= low) & (unit <= high), axis=0), function(x), -np.inf)

    return inside


def _fitted(density: Density, chart: Chart, peak: Peak) -> tuple[Chart, Frame]:
    """The chart and the frame that follow the density as a coarse lattice around a mode sees it."""
    x, mass, _ = _seen(log_mass(density, chart), peak, _COARSE_CUT, _COARSE_MOST)
    logits = np.stack([stretch.logit(w) for stretch, w in zip(chart.stretches, peak.x, strict=True)])
    chart, x = chart.fitted(x, mass)
    origin, basis, _ = frame_of(x, mass)
    return chart, Frame(origin, basis, chart.at_logits(logits)[:, None])


def moments(density: Density, modes: Float, most: int) -> Lattices:
    """Lattices in the charts of moments, those of pieces that matter."""
    found: list[tuple[Chart, Peak, float]] = []
    for chart in pieces(density.prior.region):
        start = np.clip(chart.coordinates(*modes[:, 0]), -_INSIDE, _INSIDE)
        peak = climb(log_mass(density, chart), start, first_width(density))
        found.append((chart, peak, peak.value + float(np.sum(np.log(np.diag(peak.basis))))))
    found = [(chart, peak, size) for chart, peak, size in found if np.isfinite(size)]
    if not found:
        raise TooManyPointsError
    top = max(size for *_, size in found)
    fitted = [_fitted(density, chart, peak) for chart, peak, size in found if size > top - CUT]
    return Lattices(density, [chart for chart, _ in fitted], [frame for _, frame in fitted], most)


def first_width(density: Density) -> float:
    """About the standard deviation of a coordinate: half of that of a logit."""
    return float(min(0.5, 2 / np.sqrt(density.weight.sum() + 1)))
