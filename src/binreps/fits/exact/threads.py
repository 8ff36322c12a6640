"""Lines of θ, one for each of many pairs (p, q): for scores, which may jump.

Given p and q the log odds of a record grow with θ: their distribution function is a sum over lines. That of
each line is a series, exact between its points; it is tabulated once, at equally spaced stretched logits of
the place on the line, in which nothing is singular, so that a record costs next to nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from binreps.fits.exact.chart import Stretch
from binreps.fits.gauss import Interval, Law, Series, invert
from binreps.fits.posterior import Key, weighted_quantiles
from binreps.model import Float, Model

Index = NDArray[np.int64]

_STRETCH = Stretch()
_SPACING, _RESOLVED = 0.08, 0.2  # of a table, and in standard deviations: cubics are 10⁻⁶ off at most
_LINES, _NODES = 300, 12  # about as many, at most twice, tell roughly where a quantile lies
_AT_ONCE = 100_000  # numbers of one array
_LEFT_OUT = 4e-9  # of all mass, in lines that are too light
_STEEP, _BESIDE_POLES = -0.6, 0.025  # where far logits have mass, which a step of w takes in strides
_FAR = 22.0  # e^−22 of a line lies beyond the ends of its table
_FARTHEST = 700.0  # log odds beyond the ends of any table, whose exponentials are floats


def heavy(mass: Float) -> Index:
    """The lines that count, of masses (lines, nodes): what is left out of all is too little to show."""
    lines = mass.sum(axis=1)
    order = np.argsort(lines)
    return np.sort(order[np.cumsum(lines[order]) > _LEFT_OUT * lines.sum()])


class Table(NamedTuple):
    """Distribution functions, one per row, and their slopes, at equally spaced places: cubics between."""

    below: Float
    slope: Float
    spacing: float

    def at(self, k: Index, t: Float) -> tuple[Float, Float]:
        """Each row a part t of the way from its place k to the next, and the slope there."""
        place = np.arange(self.below.shape[0]) * self.below.shape[1] + k
        low, left = self.below.take(place), self.spacing * self.slope.take(place)
        place += 1
        rise, right = self.below.take(place) - low, self.spacing * self.slope.take(place)
        cube = left + right - 2 * rise
        square = rise - left - cube
        slope = ((3 * cube * t + 2 * square) * t + left) / self.spacing
        return ((cube * t + square) * t + left) * t + low, slope


class Threads:
    """Lines of θ at pairs of error rates.

    Parameters
    ----------
    model : Model
    errors : list of arrays
        p, q, …
    mass : array, shape (pairs, nodes)
    inside : Interval
        Of all lines, or one for each.
    """

    def __init__(self, model: Model, errors: list[Float], mass: Float, inside: Interval) -> None:
        self.model, self.errors, self.inside = model, errors, inside
        self.mass = mass / mass.sum()
        self.theta = np.broadcast_to(inside.nodes(mass.shape[1]), mass.shape)
        far = float(_STRETCH.coordinate(_FAR / (min(inside.a, inside.b, 0.0) + 1)))
        steps = int(np.ceil(2 * far / self._spacing()))
        self.w, self.spacing = np.linspace(-far, far, steps + 1), 2 * far / steps
        self._whole = np.ndim(inside.length) == 0 and (inside.lower, inside.upper) == (0.0, 1.0)
        self._few = slice(None, None, 1 + len(mass) // _LINES), slice(None, None, 1 + mass.shape[1] // _NODES)

    @cached_property
    def _tables(self) -> tuple[Table, Table]:
        """Those who are negative, and those who are positive."""
        return self._table(self.mass * (1 - self.theta)), self._table(self.mass * self.theta)

    @cached_property
    def _everyone(self) -> Table:
        return self._table(self.mass)

    @property
    def steep(self) -> bool:
        """Whether θ has a pole so steep that far logits have mass."""
        return min(self.inside.a, self.inside.b) < _STEEP

    def _spacing(self) -> float:
        """What resolves the typical line."""
        unit = Interval(0.0, 1.0, self.inside.a, self.inside.b)
        at, total = _STRETCH.coordinate(logit(unit.nodes(self.mass.shape[1]))), self.mass.sum(axis=1)
        mean = self.mass @ at / total
        variance = self.mass @ at**2 / total - mean**2
        most = _BESIDE_POLES if self.steep else _SPACING
        return min(most, _RESOLVED * float(np.sqrt(max(total @ variance, 1e-6))))

    def _table(self, mass: Float) -> Table:
        """The mass below each place of each line."""
        unit = Interval(0.0, 1.0, self.inside.a, self.inside.b)
        series, logits = Series(unit, mass), _STRETCH.logit(self.w)
        by_w = np.exp(log_expit(logits) + log_expit(-logits) + _STRETCH.log_slope(self.w))
        u, rest = expit(logits), expit(-logits)
        return Table(series.cumulatives(u, rest), series.densities(u, rest, by_w), self.spacing)

    def chance(self, key: Key) -> float:
        """E[P(T = 1 | s)], from a few lines at a time: arrays of all would not stay in the cache."""
        negative, positive = self.log_classes(key)
        evidence = np.exp(np.clip(negative - positive, -_FARTHEST, _FARTHEST))
        low, length, rest = (
            np.broadcast_to(x, evidence.shape)[:, None]
            for x in (self.inside.lower, self.inside.length, 1 - np.asarray(self.inside.upper))
        )
        (u, v), slope = (expit(sign * _STRETCH.logit(self.w)) for sign in (1, -1)), self._everyone.slope
        found, size = 0.0, max(1, _AT_ONCE // self.w.size)
        for some in (slice(start, start + size) for start in range(0, len(slope), size)):
            with np.errstate(divide="ignore", over="ignore"):  # odds beyond what floats hold are ∞
                against = (rest[some] + length[some] * v) / (low[some] + length[some] * u)
                found += float(np.sum(slope[some] / (1 + against * evidence[some, None])))
        return found / float(np.sum(slope))

    def law(self, classes: Float, reweighted: bool) -> Law:
        """The distributions of the log odds of records with given class likelihoods, (2, records, lines).

        Up to factors; reweighted by the likelihoods of the records themselves, if so asked.
        """
        with np.errstate(invalid="ignore"):  # where a record cannot be, it has no weight either
            evidence = np.nan_to_num(classes[1] - classes[0])  # infinities have no differences
        down, up = np.exp(classes)[:, :, None]

        def law(z: Float) -> tuple[Float, Float]:
            w, by_odds = self._places(z[..., None] - evidence[:, None])
            t = np.clip((w - self.w[0]) / self.spacing, 0.0, self.w.size - 1.0)
            k = np.minimum(t.astype(np.int64), self.w.size - 2)
            t -= k
            if not reweighted:
                below, slope = self._everyone.at(k, t)
            else:
                of_negative, of_positive = (one.at(k, t) for one in self._tables)
                below, slope = (up * x + down * y for x, y in zip(of_positive, of_negative, strict=True))
            return below.sum(axis=-1), np.einsum("...i,...i->...", slope, by_odds)

        return law

    def sample(self, classes: Float, reweighted: bool) -> tuple[Float, Float]:
        """Log odds of records at a few points of a few lines, and their masses: (records, points)."""
        lines, nodes = self._few
        theta, mass = self.theta[lines, nodes], self.mass[lines, nodes]
        down, up = np.exp(classes[:, :, lines, None])
        odds = (classes[1] - classes[0])[:, lines, None] + logit(theta)
        share = up * theta + down * (1 - theta) if reweighted else np.ones_like(odds)
        return odds.reshape(len(odds), -1), (mass * share).reshape(len(odds), -1)

    def _places(self, odds: Float) -> tuple[Float, Float]:
        """The coordinates on the lines of log odds of θ, and how fast they change with these."""
        if self._whole:
            return _stretched(odds)
        above = np.exp(np.clip(odds, -_FARTHEST, _FARTHEST))
        rest = 1 / (1 + above)
        theta = above * rest
        low, high = theta - self.inside.lower, rest - (1 - self.inside.upper)
        outside = (low <= 0) | (high <= 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            w, slope = _stretched(np.log(np.maximum(low, 0.0) / np.maximum(high, 0.0)))
            slope *= theta * rest * self.inside.length / (low * high)
        return w, np.where(outside, 0.0, slope)

    def log_classes(self, key: Key) -> tuple[Float, Float]:
        """The log likelihoods of a record in either class."""
        negative, positive = self.model.log_classes(self.model.record(key), *self.errors)
        return negative[0], positive[0]


def _stretched(logits: Float) -> tuple[Float, Float]:
    """The coordinates of logits, arcsinh of their half, and how fast they change: one root for both."""
    root = np.sqrt(_STRETCH.scale**2 + logits * logits)
    return np.copysign(np.log((np.abs(logits) + root) / _STRETCH.scale), logits), 1 / root


def quantiles(
    threads: list[Threads], shares: Float, keys: list[Key], tails: Float, new: bool, near: Float | None
) -> Float:
    """Quantiles of the log odds of records, (records, tails), reweighted by themselves if they are new.

    `near` are those of fewer lines, from which the search starts.
    """
    size = max(1, _AT_ONCE // (tails.size * max(len(one.mass) for one in threads)))
    parts = [slice(start, start + size) for start in range(0, len(keys), size)]
    found = [
        _quantiles(threads, shares, keys[i], tails, new, None if near is None else near[i]) for i in parts
    ]
    return np.concatenate(found)


def _quantiles(
    threads: list[Threads], shares: Float, keys: list[Key], tails: Float, new: bool, near: Float | None
) -> Float:
    """The same for a few records."""
    classes = [np.stack([one.log_classes(key) for key in keys], axis=1) for one in threads]
    top = np.max([one.max(axis=(0, 2)) for one in classes], axis=0)
    classes = [one - top[:, None] for one in classes]
    pairs = list(zip(threads, classes, strict=True))

    def law(rows: Any) -> Law:
        laws = [one.law(logs[:, rows], new) for one, logs in pairs]

        def law(z: Float) -> tuple[Float, Float]:
            each = [np.stack(one(z)) * share for one, share in zip(laws, shares, strict=True)]
            below, height = np.sum(each, axis=0)
            return below / total[rows], height / total[rows]

        return law

    if near is None:
        seen = [one.sample(logs, new) for one, logs in pairs]
        odds = np.concatenate([one for one, _ in seen], axis=1)
        mass = np.concatenate([share * one for share, (_, one) in zip(shares, seen, strict=True)], axis=1)
        rows = zip(odds, mass, strict=True)
        near = np.stack([weighted_quantiles(x, y, tails) for x, y in rows])
    everyone, total = slice(None), np.ones((len(keys), 1))
    total = law(everyone)(np.full((len(keys), 1), np.inf))[0]
    return invert(law(everyone), np.broadcast_to(tails, near.shape), near, tol=1e-6, some=law)
