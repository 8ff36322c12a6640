"""Lines of θ, one for each pair (p, q) of a product of rules: for scores, which may jump.

Given p and q the log odds of a record grow with θ: their distribution function is a sum over lines. That of
each line is a series, exact between its points; it is tabulated once, at equally spaced stretched logits, in
which nothing is singular, so that a record costs next to nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from binreps.fits.exact.chart import Stretch
from binreps.fits.exact.density import Density
from binreps.fits.exact.gauss import Law, Series, invert
from binreps.fits.exact.tensor import Tensor
from binreps.fits.posterior import Key, weighted_quantiles
from binreps.model import Float

Index = NDArray[np.int64]

_DENSER = 2  # times the points of θ that a sum needs, for the polynomial through them
_LEAST = 24  # points of any other axis: a chance is no polynomial, however few the data
_STRETCH = Stretch()
_SPACING, _RESOLVED = 0.1, 0.15  # of a table, and in standard deviations: cubics are 10⁻⁶ off at most
_NO_LINE = 1e-9  # of all mass


class Table(NamedTuple):
    """Distribution functions, one per row, and their slopes, at equally spaced places."""

    below: Float
    slope: Float
    spacing: float

    def at(self, k: Index, t: Float) -> tuple[Float, Float]:
        """Each row between its places k and k + 1, a part t of the way, by a cubic; the slope by a line."""
        rows, rest = np.arange(self.below.shape[0]), 1 - t
        left, right = self.slope[rows, k], self.slope[rows, k + 1]
        level = self.below[rows, k] * rest**2 * (1 + 2 * t) + self.below[rows, k + 1] * t**2 * (1 + 2 * rest)
        return level + self.spacing * t * rest * (rest * left - t * right), rest * left + t * right


class Threads:
    """The posterior as lines of θ, `more` times as many a side as in the product that integrates it."""

    def __init__(self, density: Density, like: Tensor, more: float) -> None:
        sizes = [_DENSER * max(like.sizes[0], _LEAST), *(max(size, _LEAST) for size in like.sizes[1:])]
        grid = Tensor(density, (sizes[0], *(round(more * size) for size in sizes[1:])), like.ends)
        mass = grid.mass.reshape(sizes[0], -1).T
        kept = mass.sum(axis=1) > _NO_LINE
        self.mass, self.inside = mass[kept] / mass[kept].sum(), grid.axes[0]
        self.model, shape = density.model, grid.mass.shape
        self.errors = [np.broadcast_to(x, shape)[0].ravel()[kept] for x in grid.parameters[1:]]
        self.theta = grid.parameters[0].ravel()
        self.w, self.spacing = self._places(min(density.prior.prevalence))
        self.of_negative, self.of_positive = (self._table(one) for one in (1 - self.theta, self.theta))

    def _places(self, shape: float) -> tuple[Float, float]:
        """Stretched logits between which all mass is: e^−30 of a Beta tail lies beyond `far`."""
        far = float(_STRETCH.coordinate(30 / shape + 30))
        with np.errstate(divide="ignore"):
            ends = np.clip(_STRETCH.coordinate(logit([self.inside.lower, self.inside.upper])), -far, far)
        at, mass = _STRETCH.coordinate(logit(self.theta)), self.mass.sum(axis=0)
        sd = float(np.sqrt(mass @ (at - mass @ at) ** 2))
        spacing = min(_SPACING, _RESOLVED * sd, float(np.diff(ends)[0]) / 40)
        steps = int(np.ceil(np.diff(ends)[0] / spacing))
        first, last = ends.tolist()
        return np.linspace(first, last, steps + 1), (last - first) / steps

    def _table(self, share: Float) -> Table:
        """The mass below each place of each line, of those who are negative or positive."""
        series, logits = Series(self.inside, self.mass * share), _STRETCH.logit(self.w)
        by_w = np.exp(log_expit(logits) + log_expit(-logits) + _STRETCH.log_slope(self.w))
        x = expit(logits)
        return Table(series.cumulatives(x), series.densities(x, by_w), self.spacing)

    def chance(self, key: Key) -> float:
        """E[P(T = 1 | s)]."""
        slope = self.of_negative.slope + self.of_positive.slope
        chances = expit(_STRETCH.logit(self.w) + self._evidence(key)[:, None])
        return float(np.sum(slope * chances) / np.sum(slope))

    def log_top(self, key: Key) -> float:
        """The largest log likelihood of a record in either class."""
        return float(np.max(self._log_classes(key)))

    def law(self, key: Key, top: float | None) -> tuple[Law, Float, Float]:
        """The distribution of the log odds, up to a factor, and points with masses that resemble it.

        Reweighted by the likelihood of the record itself, over e^top, if that is given.
        """
        evidence, (up, down) = self._evidence(key), (np.ones(len(self.mass)),) * 2
        if top is not None:
            down, up = (np.exp(log - top) for log in self._log_classes(key))

        def law(z: Float) -> tuple[Float, Float]:
            w = _STRETCH.coordinate(z[:, None] - evidence)
            t = np.clip((w - self.w[0]) / self.spacing, 0.0, self.w.size - 1.0)
            k = np.minimum(t.astype(np.int64), self.w.size - 2)
            of_positive, of_negative = (one.at(k, t - k) for one in (self.of_positive, self.of_negative))
            heights = (up * of_positive[1] + down * of_negative[1]) * np.exp(-_STRETCH.log_slope(w))
            return of_positive[0] @ up + of_negative[0] @ down, heights.sum(axis=1)

        mass = self.mass * (np.outer(up, self.theta) + np.outer(down, 1 - self.theta))
        odds = logit(self.theta) + evidence[:, None]
        return law, odds[:, ::4].ravel(), mass[:, ::4].ravel()

    def _evidence(self, key: Key) -> Float:
        negative, positive = self._log_classes(key)
        return np.asarray(positive - negative)

    def _log_classes(self, key: Key) -> tuple[Float, Float]:
        negative, positive = self.model.log_classes(self.model.record(key), *self.errors)
        return negative[0], positive[0]


def quantiles(
    threads: list[Threads], shares: Float, key: Key, tails: Float, new: bool, near: Float | None
) -> Float:
    """Quantiles of the log odds of a record, reweighted by itself if it is new; near those given."""
    top = max(one.log_top(key) for one in threads) if new else None
    laws, odds, mass = zip(*(one.law(key, top) for one in threads), strict=True)
    if near is None:
        masses = [share * one for share, one in zip(shares, mass, strict=True)]
        near = weighted_quantiles(np.concatenate(odds), np.concatenate(masses), tails)

    def law(z: Float) -> tuple[Float, Float]:
        each = [np.stack(one(z)) * share for one, share in zip(laws, shares, strict=True)]
        below, height = np.sum(each, axis=0)
        return below / total, height / total

    total = 1.0
    total = float(law(np.array([np.inf]))[0][0])
    return invert(law, tails, near, tol=1e-9)
