"""Lines of θ, one for each pair (p, q) of a product of rules: for scores, which may jump.

Given p and q the log odds of a record grow with θ: their distribution function is a sum over lines. That of
each line is a series, exact between its points; it is tabulated once, so that a record costs next to nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from binreps.fits.exact.density import Density
from binreps.fits.exact.gauss import Series, invert
from binreps.fits.exact.tensor import Tensor
from binreps.fits.posterior import Key, weighted_quantiles
from binreps.model import ALIKE, Float

Index = NDArray[np.int64]

_DENSER = (
    2  # times the points of θ that a sum needs: a polynomial of half the degree has to pass through them
)
_TABLE = 6  # times these, equally spaced in the angle: cubic between, 10⁻⁷ of a line's mass off at most
_NO_LINE = 1e-10  # of all mass


class Table(NamedTuple):
    """Distribution functions, one per row, and their slopes, at equally spaced angles."""

    below: Float
    slope: Float

    def at(self, k: Index, t: Float) -> tuple[Float, Float]:
        """Each row between its angles k and k + 1, a part t of the way, by a cubic; the slope by a line."""
        rows, step, rest = np.arange(self.below.shape[0]), np.pi / (self.below.shape[1] - 1), 1 - t
        left, right = self.slope[rows, k], self.slope[rows, k + 1]
        level = self.below[rows, k] * rest**2 * (1 + 2 * t) + self.below[rows, k + 1] * t**2 * (1 + 2 * rest)
        return level + step * t * rest * (rest * left - t * right), rest * left + t * right


class Threads:
    """The posterior as lines of θ, `more` times as many a side as in the product that integrates it."""

    def __init__(self, density: Density, like: Tensor, more: float) -> None:
        theta, *errors = like.sizes
        grid = Tensor(density, (_DENSER * theta, *(round(more * size) for size in errors)), like.ends)
        mass = grid.mass.reshape(grid.sizes[0], -1).T
        kept = mass.sum(axis=1) > _NO_LINE
        self.mass, self.inside = mass[kept] / mass[kept].sum(), grid.axes[0]
        self.p, self.q = (np.broadcast_to(x, grid.mass.shape)[0].ravel()[kept] for x in grid.parameters[1:])
        self.theta = grid.parameters[0].ravel()
        self.of_negative, self.of_positive = (self._table(one) for one in (1 - self.theta, self.theta))

    def _table(self, share: Float) -> Table:
        """The mass below each angle of each line, of those who are negative or positive."""
        series = Series(self.inside, self.mass * share)
        angle = np.linspace(0, np.pi, _TABLE * self.theta.size + 1)
        x = self.inside.lower + self.inside.length * (1 - np.cos(angle)) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = series.densities(x) * (self.inside.length * np.sin(angle) / 2)
        slope[:, ~np.isfinite(slope).all(axis=0)] = 0.0  # at an end: a pole, times 0
        return Table(series.cumulatives(x), slope)

    def chance(self, key: Key) -> float:
        """E[P(T = 1 | s)]."""
        return float(np.sum(self.mass * expit(logit(self.theta) + self._evidence(key)[:, None])))

    def quantiles(self, key: Key, tails: Float, new: bool, near: Float | None = None) -> Float:
        """Quantiles of the log odds, reweighted by the record itself if it is new; near those given."""
        evidence, (up, down) = self._evidence(key), (np.ones(self.p.size),) * 2
        if new:
            negative, positive = (log[0] for log in ALIKE.log_classes(ALIKE.record(key), self.p, self.q))
            top = max(float(positive.max()), float(negative.max()))
            up, down = np.exp(positive - top), np.exp(negative - top)
        total = up @ self.of_positive.below[:, -1] + down @ self.of_negative.below[:, -1]
        if near is None:
            mass = self.mass * (np.outer(up, self.theta) + np.outer(down, 1 - self.theta))
            odds = logit(self.theta) + evidence[:, None]
            near = weighted_quantiles(odds[:, ::4].ravel(), mass[:, ::4].ravel(), tails)

        def law(z: Float) -> tuple[Float, Float]:
            theta = expit(z[:, None] - evidence)
            u = np.clip((theta - self.inside.lower) / self.inside.length, 1e-300, 1 - 1e-16)
            angle = 2 * np.arcsin(np.sqrt(u)) / np.pi * (self.of_positive.below.shape[1] - 1)
            k = np.minimum(angle.astype(np.int64), self.of_positive.below.shape[1] - 2)
            of_positive, of_negative = (one.at(k, angle - k) for one in (self.of_positive, self.of_negative))
            by_odds = theta * (1 - theta) / (self.inside.length * np.sqrt(u * (1 - u)))
            heights = by_odds * (up * of_positive[1] + down * of_negative[1])
            return (of_positive[0] @ up + of_negative[0] @ down) / total, heights.sum(axis=1) / total

        return invert(law, tails, near, tol=1e-9)

    def _evidence(self, key: Key) -> Float:
        negative, positive = ALIKE.log_classes(ALIKE.record(key), self.p, self.q)
        return np.asarray(positive[0] - negative[0])
