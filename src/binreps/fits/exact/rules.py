"""Which rule integrates a posterior: a product of Gauss rules, a lattice in the box or in the moments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
from scipy.special import expit

from binreps.fits.exact.chart import Box, Chart, Place, pieces
from binreps.fits.exact.density import Density
from binreps.fits.exact.grid import Grid
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
from binreps.fits.exact.tensor import WHOLE, Ends, Tensor
from binreps.model import Float

TOLERANCE = 1e-8
"""Numerical error, in standard deviations, below which a rule is good enough."""

CUT_IN_FOUR = 24.0
"""In four dimensions points are dear, and 10⁻⁷ of a standard deviation is enough."""

_SPACINGS = tuple(
    1.05 * 0.87**k for k in range(14)
)  # in standard deviations: each error the power 1.15 … 1.3
_MOST_IN_PRODUCT = 1_000_000  # points
_NODES_PER_WIDTH, _FINER = 3.0, 1.17  # points of a product: an error of e^−18 at first, then its power 1.4
_PILOT, _LEAST_NODES = 12, 10  # points of an axis: from which the widths are seen, and the least
_BOX_CUT = 24.0  # e^−24 of the top lies outside of a product's box: 10⁻¹⁰ of a Gaussian
_ROUND = 1e-9  # added to correlations of ±1
_COARSE, _COARSE_CUT, _COARSE_MOST = 1.35, 16.0, 10_000  # of the lattice from which another's frame is taken
_INSIDE = 1.5  # coordinates of 1.5 are 1 % from an end: a start there is well inside a piece


class Rule(ABC):
    """Grids of one kind, better and better."""

    power: float
    """Between two grids, error of the finer = (their distance)^power: less than theory has, for honesty."""

    def __init__(self, density: Density) -> None:
        self.density = density

    @abstractmethod
    def grids(self) -> Iterator[Grid]:
        """Better and better grids, as many as are affordable."""


class Product(Rule):
    """Products of Gauss rules, over the whole domain or a box that holds the posterior.

    `widths` are conditional standard deviations along the axes of the unit cube: how far the density reaches
    in units of them says how many points an axis needs. Of a Gaussian within ±a, n points leave e^−2(n/a)².
    """

    power = 1.1

    def __init__(self, density: Density, ends: Ends, widths: Float, most: int = _MOST_IN_PRODUCT) -> None:
        super().__init__(density)
        self.ends, self.widths, self.most = ends, widths, most

    def up_to(self, most: int) -> Product:
        """The same products, with more points or fewer."""
        return Product(self.density, self.ends, self.widths, most)

    def sizes(self, level: int) -> tuple[int, ...]:
        """How many points each axis has."""
        reach = np.array([high - low for low, high in self.ends]) / (2 * self.widths)
        wanted = np.ceil(np.maximum(_NODES_PER_WIDTH * reach, _LEAST_NODES) * _FINER**level)
        return tuple(int(size) for size in np.minimum(wanted, self.most))

    def grids(self) -> Iterator[Grid]:
        """As `Rule` says."""
        for level in count():
            if math.prod(self.sizes(level)) > self.most:
                return
            yield Tensor(self.density, self.sizes(level), self.ends)


def whole(density: Density) -> Product:
    """The product over the whole domain, its sizes by what a few points see."""
    few = Tensor(density, (_PILOT,) * 3)
    unit = np.stack([x.ravel() for x in np.broadcast_arrays(few.parameters[0], *few.square)])
    return Product(density, WHOLE, _conditional_widths(unit, few.mass.ravel()))


def trimmed(rule: Lattices) -> Product:
    """The product over the box that holds a lattice's points: for a posterior cut off by ½ or p + q = 1.

    A cut is nothing to a Gauss rule, but an exponential tail to a lattice's coordinates.
    """
    (chart,), (frame,) = rule.charts, rule.frames
    function = log_mass(rule.density, chart)
    x, value = flood(function, frame.origin, frame.basis, frame.seeds, _COARSE, cut=_BOX_CUT, most=rule.most)
    one_more = _COARSE / 2 * np.linalg.norm(frame.basis, axis=1)  # half way to points that are left out
    ends = []
    for stretch, w, more in zip(chart.stretches, x, one_more, strict=True):
        low, high = expit(stretch.logit(np.array([w.min() - more, w.max() + more]))).tolist()
        ends.append((0.0 if low < 0.05 * high else low, 1.0 if 1 - high < 0.05 * (1 - low) else high))
    unit = expit(np.stack([stretch.logit(w) for stretch, w in zip(chart.stretches, x, strict=True)]))
    mass = np.exp(value - value.max())
    return Product(rule.density, tuple(ends), _conditional_widths(unit, mass / mass.sum()))


def _conditional_widths(x: Float, mass: Float) -> Float:
    """The standard deviation of each coordinate given the others, of points with masses."""
    away = x - (x @ mass)[:, None]
    covariance = (away * mass) @ away.T
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd) + _ROUND * np.eye(len(x))
    return np.asarray(sd / np.sqrt(np.diag(np.linalg.inv(correlation))))


class Lattices(Rule):
    """Lattices in one chart, or in several that cover the domain piece by piece."""

    power = 1.1

    def __init__(self, density: Density, charts: list[Chart], frames: list[Frame], most: int) -> None:
        super().__init__(density)
        self.charts, self.frames, self.most = charts, frames, most
        self.cut = CUT if charts[0].dim < 4 else CUT_IN_FOUR

    def grids(self) -> Iterator[Grid]:
        """As `Rule` says."""
        for level, spacing in enumerate(_SPACINGS):
            try:
                yield self.grid(spacing, level)
            except TooManyPointsError:
                return

    def up_to(self, most: int) -> Lattices:
        """The same lattices, with more points."""
        return Lattices(self.density, self.charts, self.frames, most)

    def grid(self, spacing: float, turn: int) -> Grid:
        """One grid; those of different turns share neither points nor directions."""
        parameters, logs, left = [], [], self.most
        for chart, frame in zip(self.charts, self.frames, strict=True):
            origin, basis = turned(frame, spacing, turn)
            x, value = flood(
                log_mass(self.density, chart), origin, basis, frame.seeds, spacing, cut=self.cut, most=left
            )
            left -= value.size
            volume = np.log(spacing) * len(x) + np.sum(np.log(np.abs(np.diag(frame.basis))))
            parameters.append(np.stack(chart.place(x).parameters))
            logs.append(value + volume)
        unit = self.density.log_likelihood + self.density.log_constant
        return Grid(tuple(np.concatenate(parameters, axis=1)), np.concatenate(logs), unit)


def log_mass(density: Density, chart: Chart, weight: Callable[[Place], Float] | None = None) -> Function:
    """The logarithm of the posterior density of a chart's coordinates, times e^weight if one is given."""

    def function(x: Float) -> Float:
        place = chart.place(x)
        value = density(place) + place.log_volume
        if weight is not None:
            value = value + weight(place)
        return np.where(np.isnan(value), -np.inf, value)  # ∞ − ∞ beyond what floats hold

    return function


def box(density: Density, modes: Float, most: int) -> Lattices:
    """The lattice that follows the highest mode; `modes` are points near each, as columns, the best first."""
    chart = Box(density.model, density.prior.region)
    function = log_mass(density, chart)
    starts = chart.coordinates(*modes)
    peak = climb(function, starts[:, 0], first_width(density))
    others = starts[:, function(starts) > peak.value - CUT]
    better, frame = _fitted(density, chart, peak, others)
    return Lattices(density, [better], [frame], most)


def _fitted(density: Density, chart: Chart, peak: Peak, others: Float) -> tuple[Chart, Frame]:
    """The chart and the frame that follow the density as a coarse lattice around a mode sees it, twice.

    Seeds are that mode and other points.
    """
    function, seeds = log_mass(density, chart), np.concatenate([peak.x[:, None], others], axis=1)
    cut = _COARSE_CUT if chart.dim < 4 else _COARSE_CUT / 2
    spacing, most = _COARSE, 1.8 * (_COARSE / np.sqrt(2 * np.pi)) ** chart.dim  # on one point, of a Gaussian
    while True:
        x, value = flood(
            function,
            peak.x,
            peak.basis,
            peak.x[:, None],
            spacing,
            cut=cut,
            most=_COARSE_MOST * 8 ** (chart.dim - 3),
        )
        mass = np.exp(value - value.max())
        mass /= mass.sum()
        if mass.max() < most:
            break
        spacing *= 0.6  # a flat top made the basis wider than the density is
    logits = np.stack([stretch.logit(w) for stretch, w in zip(chart.stretches, seeds, strict=True)])
    chart, x = chart.fitted(x, mass)
    origin, basis, _ = frame_of(x, mass)
    return chart, Frame(origin, basis, chart.at_logits(logits))


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
    none = np.empty((3, 0))
    fitted = [_fitted(density, chart, peak, none) for chart, peak, size in found if size > top - CUT]
    return Lattices(density, [chart for chart, _ in fitted], [frame for _, frame in fitted], most)


def first_width(density: Density) -> float:
    """About the standard deviation of a coordinate: half of that of a logit."""
    return float(min(0.5, 2 / np.sqrt(density.weight.sum() + 1)))
