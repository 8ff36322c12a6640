"""Where the posterior lives along one axis, given the others: conditional supports, found by a few looks.

A support is an interval per line outside which the density is below e^−CUT of its peak; peaks so narrow
that a rule on the whole line might miss them get pieces of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from binreps.errors import FitError
from binreps.fits.exact.density import END, Density
from binreps.fits.exact.gauss import Interval, jacobi_rule, series_tail
from binreps.fits.exact.profile import profile
from binreps.fits.exact.tensor import CUT, lifted_objective, snapped
from binreps.fits.point.climb import climb, scan
from binreps.fits.point.objective import Objective
from binreps.model import NAMES, Float

_LOOKS = 6  # points on either side of a line's middle while its ends are looked for
_NARROW = 0.2  # of a support: a peak that many nodes might miss
_CLOSE = 0.1  # of a peak's width: too near to an end of the support for a cut
_FEWEST_FLOATS = 2.0**16  # in a support
_TINY, _ALMOST_ONE = 1e-290, 1 - 2.0**-52


class Lines(NamedTuple):
    """Intervals of one axis, one per line."""

    axis: int
    lower: Float
    upper: Float

    def rule(self, density: Density, size: int) -> tuple[Float, Float]:
        """Nodes and log weights with the prior's other factors, both of shape (lines, size)."""
        nodes, weights = np.empty((self.lower.size, size)), np.empty((self.lower.size, size))
        for same, kind in self.kinds(density):
            rule = jacobi_rule(size, kind.a, kind.b)
            length = (self.upper - self.lower)[same, None]
            x = self.lower[same, None] + length * rule.nodes
            nodes[same] = x
            weights[same] = np.log(rule.weights) + (kind.a + kind.b + 1) * np.log(length)
            weights[same] += density.log_prior_rest(self.axis, x, kind)
        return nodes, weights

    def with_few_ends(self) -> Lines:
        """Lines that reach 0 or 1 with their other end moved out a little, so that many have it in common."""
        with np.errstate(divide="ignore"):
            lower, upper = np.floor(8 * logit(self.lower)) / 8, np.ceil(8 * logit(self.upper)) / 8
        return Lines(
            self.axis,
            np.where(self.upper == 1, expit(lower), self.lower),
            np.where(self.lower == 0, expit(upper), self.upper),
        )

    def alike(self, density: Density) -> Iterator[tuple[NDArray[np.bool_], Interval]]:
        """The lines that reach 0 or 1 sorted by their ends, each sort with its interval; then the others."""
        for same, like in self.kinds(density):
            lower, upper = self.lower[same], self.upper[same]
            if lower[0] > 0 and upper[0] < 1:
                yield same, Interval(lower, upper, like.a, like.b)
                continue
            for low, high in np.unique([lower, upper], axis=1).T.tolist():
                here = (self.lower == low) & (self.upper == high)
                yield here, Interval(low, high, like.a, like.b)

    def kinds(self, density: Density) -> list[tuple[NDArray[np.bool_], Interval]]:
        """The lines sorted by the ends of the domain that they reach, each sort with an interval like it."""
        zero, one = self.lower == 0, self.upper == 1
        found = []
        for at_zero in (False, True):
            for at_one in (False, True):
                same = (zero == at_zero) & (one == at_one)
                if same.any():
                    like = density.interval(self.axis, 0.0 if at_zero else 0.1, 1.0 if at_one else 0.4)
                    found.append((same, like))
        return found

    def tails(self, density: Density, masses: Float) -> Float:
        """For each line, how far the series of its density is from having died out."""
        tails = np.empty(self.lower.size)
        for same, like in self.kinds(density):
            tails[same] = series_tail(like, masses[same])
        return tails


class Support:
    """Where the posterior lives along an axis, given the coordinates outside it."""

    def __init__(self, density: Density) -> None:
        self.density = density
        self.objective: Objective = lifted_objective(density.counts, density.prior)

    @cached_property
    def modes(self) -> Float:
        """The distinct modes in logits that matter, as columns, the highest first."""
        ends = [climb(self.objective, start, max_iter=100, tol=1e-6).state for start in scan(self.objective)]
        ends.sort(key=lambda state: -state.objective)
        kept: list[Float] = []
        for end in ends:
            near = any(np.allclose(end.rates, other, rtol=0.02, atol=1e-3) for other in kept)
            if end.objective > ends[0].objective - CUT and not near:
                kept.append(end.rates)
        return np.stack(kept[:3], axis=1)

    @cached_property
    def starts(self) -> Float:
        """The modes, and each with θ close to 0 and to 1: the rate of a class that is empty is free."""
        columns = [self.modes]
        for theta in (1e-3, 1 - 1e-3):
            columns.append(self.modes.copy())
            columns[-1][0] = theta
        return np.concatenate(columns, axis=1)

    def outer(self, axis: int) -> list[Interval]:
        """The interval of one rate, cut on either side of each narrow peak."""
        rest = [i for i in range(3) if i != axis]
        spread = profile(self.objective, self.modes, [0, 1, 2]).spread[axis]
        lines = self._search(self.modes[:, :, None], spread[:, None], axis, rest)
        low, high = float(lines.lower[0]), float(lines.upper[0])
        if high - low < _FEWEST_FLOATS * np.spacing(high):
            rule = "must be uncertain by more than the rounding of floats to be integrated"
            raise FitError(f"{NAMES[axis]} {rule}; after so many data it lies between {low} and {high}")
        _, pieces = _cut(lines, self.modes[axis][:, None], spread[:, None])
        pairs = zip(pieces.lower.tolist(), pieces.upper.tolist(), strict=True)
        return [self.density.interval(axis, *pair) for pair in pairs]

    def second(self, axis: int, x: Float, second: int) -> tuple[Float, NDArray[Any], Lines]:
        """At each outer node the best completion; intervals of the second axis, and whose they are."""
        starts = self.modes if axis == 0 else self.starts
        count = starts.shape[1]
        points = np.repeat(starts[:, :, None], x.size, axis=2)
        points[axis] = x
        rest = [i for i in range(3) if i != axis]
        found = profile(self.objective, points.reshape(3, -1), rest)
        value = found.value.reshape(count, x.size)
        rates, spread = found.rates.reshape(3, count, x.size), found.spread[second].reshape(count, x.size)
        spread = np.where(value >= value.max(axis=0) - CUT, spread, np.nan)
        _forget_doubles(logit(np.clip(rates[second], _TINY, _ALMOST_ONE)), spread)
        lines = self._search(rates, spread, second, [i for i in rest if i != second])
        return rates[:, value.argmax(axis=0), np.arange(x.size)], *_cut(lines, rates[second], spread)

    def third(self, points: Float, axis: int) -> Lines:
        """At each point the interval of the last axis."""
        found = profile(self.objective, points, [axis])
        lines = self._search(found.rates[:, None, :], found.spread[axis][None], axis, [])
        return lines.with_few_ends() if axis == 0 else lines

    def _search(self, starts: Float, spread: Float, axis: int, inner: list[int]) -> Lines:
        """Intervals on which the density along an axis is within e^−CUT of its peak.

        `starts` has the shape (3, starts, lines); starts whose spread is NaN do not count. Each line is
        looked at in a few points (inner coordinates integrated by Laplace), widened and trimmed.
        """
        a, b = tuple(self.density.prior)[axis]
        least, most = -(CUT + 10) / a - 10, (CUT + 10) / b + 10 if axis == 0 else 0.0
        middle = logit(np.clip(starts[axis], _TINY, _ALMOST_ONE))
        lower = np.clip(np.nanmin(middle - 8 * spread, axis=0), least, most - 1e-9)
        upper = np.clip(np.nanmax(middle + 8 * spread, axis=0), least + 1e-9, most)
        begin = starts[:, np.argmin(np.isnan(spread), axis=0), np.arange(lower.size)]
        # Several peaks may be too sharp for a few looks to see them all: then nothing is trimmed.
        several = np.sum(~np.isnan(spread), axis=0) > 1
        least_low, least_high = np.where(several, lower, np.inf), np.where(several, upper, -np.inf)
        moving = np.arange(lower.size)
        for _ in range(25):
            low, high = self._look(begin[:, moving], axis, inner, lower[moving], upper[moving])
            low = np.maximum(np.minimum(low, least_low[moving]), least)
            high = np.minimum(np.maximum(high, least_high[moving]), most)
            moved = (low != lower[moving]) | (high != upper[moving])
            lower[moving], upper[moving] = low, high
            moving = moving[moved]
            if not moving.size:
                break
        return Lines(axis, *snapped(expit(lower), expit(upper), np.full(lower.size, END[axis])))

    def _look(
        self, begin: Float, axis: int, inner: list[int], lower: Float, upper: Float
    ) -> tuple[Float, Float]:
        """The ends of some lines after one look at the density on either side of their middles."""
        middle = np.clip(logit(np.clip(begin[axis], _TINY, _ALMOST_ONE)), lower, upper)
        steps = np.linspace(0, 1, _LOOKS)
        left = middle[:, None] - (middle - lower)[:, None] * steps
        right = middle[:, None] + (upper - middle)[:, None] * steps
        t = np.concatenate([left, right], axis=1)
        points = np.repeat(begin[:, :, None], t.shape[1], axis=2)
        points[axis] = np.clip(expit(t), _TINY, min(END[axis], _ALMOST_ONE))
        flat = points.reshape(3, -1)
        value = profile(self.objective, flat, inner).value if inner else self.objective.at(flat).objective
        value = value.reshape(t.shape)
        above = value > value.max(axis=1, keepdims=True) - CUT
        return _end(left, above[:, :_LOOKS], -1), _end(right, above[:, _LOOKS:], 1)


def _forget_doubles(middle: Float, spread: Float) -> None:
    """Make the spread of a peak NaN where an earlier one, of those along the first axis, is the same."""
    for k in range(1, len(middle)):
        apart = np.abs(middle[:k] - middle[k]) + np.abs(spread[:k] - spread[k])
        spread[k][np.any(apart < 0.1 * spread[k], axis=0)] = np.nan


def _cut(lines: Lines, peaks: Float, spread: Float) -> tuple[NDArray[Any], Lines]:
    """Lines cut on either side of peaks so narrow that a rule might miss them, and which line is whose piece.

    Peaks, and the standard deviations of their logits, have the shape (peaks, lines). A cut close to an
    end of a line would only put the pole that may be there outside its neighbour's rule.
    """
    middle = logit(np.clip(peaks, _TINY, _ALMOST_ONE))
    low, high = expit(middle - 8 * spread), expit(middle + 8 * spread)
    narrow = high - low < _NARROW * (lines.upper - lines.lower)  # never where the spread is NaN
    room = _CLOSE * (high - low)
    low_cut, high_cut = narrow & (low > lines.lower + room), narrow & (high < lines.upper - room)
    ends = np.sort(
        np.concatenate(
            [
                lines.lower[None],
                np.where(low_cut, low, lines.upper),
                np.where(high_cut, high, lines.upper),
                lines.upper[None],
            ]
        ).clip(lines.lower, lines.upper),
        axis=0,
    )
    kept, owner = np.nonzero(ends[:-1] < ends[1:])
    return owner, Lines(lines.axis, ends[kept, owner], ends[kept + 1, owner])


def _end(t: Float, above: NDArray[np.bool_], outwards: int) -> Float:
    """Where a side of each line ends: at the point after its last above the cut; beyond all if none is."""
    last = np.where(above.any(axis=1), _LOOKS - 1 - above[:, ::-1].argmax(axis=1), 0)
    after = t[np.arange(last.size), np.minimum(last + 1, _LOOKS - 1)]
    beyond = t[:, -1] + 0.6 * (t[:, -1] - t[:, 0]) + outwards * 0.01
    return np.where(last == _LOOKS - 1, beyond, after)
