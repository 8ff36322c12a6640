"""A product of Gauss rules over the whole domain: for small tables the fastest, and no mode can hide from it.

With whole Beta exponents the integrand is a polynomial times a Beta weight, which the rule carries however
singular it is: so the error falls spectrally with the number of points on an axis.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from binreps.fits.exact.chart import Place
from binreps.fits.exact.density import Density
from binreps.fits.exact.grid import Grid, NoMassError
from binreps.fits.exact.integrated import SLOW
from binreps.fits.exact.panels import Panels
from binreps.fits.gauss import Interval, series_tail
from binreps.fits.marginal import Marginal
from binreps.model import Float, Prior

_NO_MASS = 1e-13  # of the largest at one point
_SETTLED = 1e-7  # sds: what a density may be off
_MOST = 10_000_000  # points of a grid that shall tell it better
_STRIDE, _KEPT = 3, 40.0  # pairs are left out where lines between every third have less than e^−40 of the top

Ends = tuple[tuple[float, float], ...]
"""Where each axis of the unit cube begins and ends."""

WHOLE = (0.0, 1.0)


def unit_axes(
    prior: Prior, ends: Ends, q_first: bool = False, shapes: tuple[float, float] | None = None
) -> tuple[Interval, ...]:
    """The axes (θ, a, b, …) of the unit cube, with the powers of the prior at the ends that they reach."""
    _, first, second = prior
    if q_first:
        first, second = second, first
    # better than chance the second rate is (1−a)b: its prior and the area have factors 1 − a
    far = first[1] + second[0] if prior.better_than_chance else 1.0
    powers = [prior.prevalence, (first[0], far), (second[0], 1.0)]
    powers += [shapes] if shapes else []
    return tuple(
        Interval(low, high, weight_power(x) if low == 0 else 0.0, weight_power(y) if high == 1 else 0.0)
        for (low, high), (x, y) in zip(ends, powers, strict=True)
    )


def weight_power(shape: float) -> float:
    """The power of x^(shape−1) that a rule's weight carries; whole powers of a high one stay a polynomial.

    In the weight a high power would gather the points where the weight is, not where the mass is.
    """
    return shape - 1 if shape < 4 else shape % 1


def rate_interval(shapes: tuple[float, float], lower: float, upper: float) -> Interval:
    """An interval of a rate with its prior's powers at the ends that it reaches."""
    a, b = shapes
    return Interval(
        lower, upper, weight_power(a) if lower == 0 else 0.0, weight_power(b) if upper == 1 else 0.0
    )


def rate_weights(shapes: tuple[float, float], x: Float, inside: Interval) -> Float:
    """The logarithm of the prior's factors at x that an interval's weight does not carry."""
    a, b = shapes
    return np.asarray((a - 1 - inside.a) * np.log(x) + (b - 1 - inside.b) * np.log1p(-x))


class Tensor(Grid):
    """The grid of one product of rules, without the points that have no mass.

    Attributes
    ----------
    sizes, ends : tuple
        Points of each axis, and where it begins and ends.
    errors : list of arrays
        p, q, … of the pairs that have points.
    """

    def __init__(self, density: Density, sizes: tuple[int, ...], ends: Ends, q_first: bool = False) -> None:
        self.axes, self.sizes, self.ends = (
            unit_axes(density.prior, ends, q_first, density.shapes),
            sizes,
            ends,
        )
        self.nodes = [axis.nodes(size) for axis, size in zip(self.axes, sizes, strict=True)]
        theta, *square = self.nodes
        errors = _errors([x.ravel() for x in np.meshgrid(*square, indexing="ij")], density, q_first)
        with np.errstate(divide="ignore", invalid="ignore"):  # a narrow box may round to its end
            of_theta, *others = (axis.log_steps(size) for axis, size in zip(self.axes, sizes, strict=True))
            a, b = density.prior.prevalence
            of_theta = of_theta + (a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta)
            of_pairs = errors.log_volume + density.log_prior_of_errors(errors)
            of_pairs = of_pairs + reduce(np.add.outer, others).ravel()
        level = of_theta.max() + of_pairs + self._seen(density, errors)
        self._pairs = np.flatnonzero(level >= level.max() - _KEPT)
        errors = errors.some(self._pairs)
        log_mass = density.log_ratios(errors, theta, 1 - theta)
        log_mass += of_theta
        log_mass += of_pairs[self._pairs, None]
        self.errors = [errors.p, errors.q, *errors.rest]
        unit = density.log_likelihood + density.log_constant
        super().__init__((theta, *(x[:, None] for x in self.errors)), log_mass, unit)

    def _seen(self, density: Density, errors: Place) -> Float:
        """About the largest log likelihood of each pair of error rates, to see which have mass.

        Between every third point of each axis log likelihoods are nearly straight, or a little higher.
        """
        if self.ends == (WHOLE,) * 3 and not density.prior.better_than_chance:  # small tables: nearly all
            return np.full(errors.p.size, np.inf)
        few = [np.append(np.arange(0, size - 1, _STRIDE), size - 1) for size in self.sizes]
        pairs = np.ravel_multi_index(np.meshgrid(*few[1:], indexing="ij"), self.sizes[1:]).ravel()
        theta = self.nodes[0][few[0]]
        seen = density.log_ratios(errors.some(pairs), theta, 1 - theta).max(axis=1)
        seen = seen.reshape([x.size for x in few[1:]])
        for x, i in zip(self.nodes[1:], few[1:], strict=True):
            seen = np.tensordot(seen, _between(x, x[i]), axes=(0, 1))  # the next axis comes first
        return np.asarray(seen.ravel())

    @property
    def unit(self) -> Float:
        """The points in the unit cube, as columns."""
        theta, *square = self.nodes
        places = np.unravel_index(self._pairs, self.sizes[1:])
        columns = [x[i][:, None] for x, i in zip(square, places, strict=True)]
        return np.stack([x.ravel() for x in np.broadcast_arrays(theta, *columns)])

    def line(self, axis: int) -> Float:
        """The mass at the points of one axis."""
        if axis == 0:
            return np.asarray(self.mass.sum(axis=0))
        place = np.unravel_index(self._pairs, self.sizes[1:])[axis - 1]
        return np.asarray(np.bincount(place, self.mass.sum(axis=1), self.sizes[axis]), float)


def _between(new: Float, old: Float) -> Float:
    """The matrix of straight lines from old points to new ones."""
    left = np.clip(np.searchsorted(old, new, side="right") - 1, 0, old.size - 2)
    part, rows = (new - old[left]) / (old[left + 1] - old[left]), np.arange(new.size)
    result = np.zeros((new.size, old.size))
    result[rows, left], result[rows, left + 1] = 1 - part, part
    return result


class Tensors(Grid):
    """Products over boxes that have no point in common, as one grid.

    Attributes
    ----------
    parts : list of Tensor
    shares : array
        Of the posterior, in each.
    """

    def __init__(self, parts: list[Tensor]) -> None:
        self.parts, logs = parts, np.array([part.log_evidence for part in parts])
        self.log_evidence = float(np.logaddexp.reduce(logs))
        self.shares = np.exp(logs - self.log_evidence)
        if not parts:
            raise NoMassError
        self.mass, self.parameters = parts[0].mass, parts[0].parameters
        if len(parts) > 1:
            masses = [share * part.mass.ravel() for share, part in zip(self.shares, parts, strict=True)]
            each = [[np.broadcast_to(x, part.mass.shape).ravel() for x in part.parameters] for part in parts]
            self.mass = np.concatenate(masses)
            self.parameters = tuple(np.concatenate(axis) for axis in zip(*each, strict=True))

    @property
    def whole(self) -> bool:
        """Whether this is the whole domain."""
        return {end for part in self.parts for end in part.ends} == {WHOLE}

    def marginal(self, density: Density, axis: int, enough: float) -> Marginal:
        """The density of one parameter; points are added where it may be off by more than is enough."""
        found = [tensor_marginal(density, part, axis, enough) for part in self.parts]
        panels = [(one.inside, share * one.mass) for one, share in zip(found, self.shares, strict=True)]
        return Panels(panels, max(one.error for one in found))


def _errors(square: list[Float], density: Density, q_first: bool) -> Place:
    """The error parameters at points of the unit cube, as a place whose logit θ says nothing."""
    with np.errstate(divide="ignore"):
        a, b, *others = [(np.log(x), np.log1p(-x)) for x in square]
    region = density.prior.region
    first, second = region.logs(a, b)
    log_p, log_q = (second, first) if q_first else (first, second)
    area, p, q = region.log_area(*square[:2]), np.exp(log_p[0]), np.exp(log_q[0])
    return Place(np.zeros(1), p, q, log_p, log_q, area, tuple(square[2:]), tuple(others))


def _exchanged(grid: Tensor) -> Ends:
    """The ends of a box for the square in the order (q, p) that holds the points that matter."""
    p, q = grid.errors[:2]
    matter = grid.mass.max(axis=1) > _NO_MASS * grid.mass.max()
    return (grid.ends[0], *(with_margin(x[matter]) for x in (q, p / (1 - q))), *grid.ends[3:])


def with_margin(x: Float) -> tuple[float, float]:
    """Ends that hold some numbers between 0 and 1."""
    low, high = float(x.min()), float(x.max())
    return to_ends(max(low - 0.1 * (high - low), 0.0), min(high + 0.1 * (high - low), 1.0))


def to_ends(low: float, high: float) -> tuple[float, float]:
    """An interval whose ends are moved to 0 and 1 if they are near, compared with the rest."""
    return 0.0 if low < 0.05 * high else low, 1.0 if 1 - high < 0.05 * (1 - low) else high


class OneRate(NamedTuple):
    """The density of one rate: an interval, the masses at its points, and what they may be off."""

    inside: Interval
    mass: Float
    error: float


def tensor_marginal(density: Density, grid: Tensor, axis: int, enough: float) -> OneRate:
    """The density of one rate, from a grid with twice the points on its axis.

    A rule of n points integrates like a polynomial of degree 2n but interpolates like one of degree n; in a
    tail the other axes need some more, where they are not many already. The false-negative rate needs a grid
    of its own where the region's square has it second; there either error rate has the points of the other.
    Where p is known, p / (1−q) is a thin layer that winds, and needs more and more, until the error is
    `enough` sds.
    """
    q_first = axis == 2 and density.prior.better_than_chance
    along = 1 if q_first else axis
    more = 6 if len(grid.sizes) < 4 else 5
    theta, *errors = grid.sizes
    needed = (theta, *([max(errors)] * len(errors) if q_first else errors))
    sizes = [2 * size if i == along else size * more // 5 for i, size in enumerate(needed)]
    ends = _exchanged(grid) if q_first else grid.ends
    found = _one_rate(density, grid, axis, along, Tensor(density, tuple(sizes), ends, q_first))
    before = np.inf
    while q_first and max(_SETTLED, enough) < found.error < before / 4 and 2 * prod(sizes) < _MOST:
        sizes[2], before = 2 * sizes[2], found.error
        found = _one_rate(density, grid, axis, along, Tensor(density, tuple(sizes), ends, q_first))
    return found


def _one_rate(density: Density, grid: Tensor, axis: int, along: int, fine: Tensor) -> OneRate:
    """A line of a fine grid, beside the evidence, mean and sd of the grid that means are taken from."""
    end, inside = (density.prior.region.end if axis in (1, 2) else 1.0), fine.axes[along]
    on_axis = Interval(end * inside.lower, end * inside.upper, inside.a, inside.b)
    mass = fine.line(along)
    tail = float(series_tail(on_axis, mass[None])[0])
    return OneRate(on_axis, mass, max(tail, SLOW * _apart(grid, fine, on_axis.nodes(mass.size), mass, axis)))


def _apart(grid: Tensor, fine: Tensor, x: Float, mass: Float, axis: int) -> float:
    """How far a grid is from a line of a finer one: log evidence, mean and sd, in sds."""
    away = grid.parameters[axis] - (centre := grid.mean[axis])
    sd = np.sqrt(max(grid.expect(away, away), 1e-300))
    mean = mass @ (x - centre)
    change = abs(np.sqrt(max(mass @ (x - centre) ** 2 - mean**2, 0.0)) / sd - 1)
    evidence = abs(fine.log_evidence - grid.log_evidence) / max(1.0, abs(grid.log_evidence))
    return float(max(evidence, abs(mean) / sd, change))
