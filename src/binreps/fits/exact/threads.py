"""Lines of θ in a small table's posterior, equally spaced in its stretched logit: for scores, which may jump.

Given p and q the log odds of a record grow with θ: their distribution function is a sum over lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from scipy.special import expit, logit

from binreps.fits.exact.chart import Stretch
from binreps.fits.exact.density import Density
from binreps.fits.exact.lines import apart, lagrange
from binreps.fits.exact.marginal import find_root, step
from binreps.fits.exact.tensor import Tensor
from binreps.fits.posterior import Key, weighted_quantiles
from binreps.model import ALIKE, Float

_STRETCH = Stretch()
_SPACING, _RESOLVED = 0.1, 0.15  # of the coordinate, and of its standard deviation
_NEAR = 8  # points from which values between are interpolated


class Threads:
    """The posterior as lines of θ, one for each pair (p, q)."""

    def __init__(self, density: Density, size: int, like: Tensor) -> None:
        # θ lives where its marginal mass does, and e^−30 of a Beta tail lies within `far` of either end
        far = float(_STRETCH.coordinate(30 / min(density.prior.prevalence) + 30))
        at, mass = _STRETCH.coordinate(logit(like.parameters[0].ravel())), like.line(0)
        heavy = np.flatnonzero(mass > 1e-15 * mass.max())
        first = -far if heavy[0] == 0 and like.ends[0][0] == 0 else float(at[max(heavy[0] - 1, 0)])
        last = (
            far
            if heavy[-1] == at.size - 1 and like.ends[0][1] == 1
            else float(at[min(heavy[-1] + 1, at.size - 1)])
        )
        sd = float(np.sqrt(mass @ (at - mass @ at) ** 2))
        self.spacing = min(_SPACING, _RESOLVED * sd, (last - first) / 40)
        w = np.arange(first, last, self.spacing)
        grid = Tensor(density, (w.size, size, size), like.ends, logits=_STRETCH.logit(w))
        mass = (grid.mass * np.exp(_STRETCH.log_slope(w))[:, None, None]).reshape(w.size, -1).T
        lines = mass.sum(axis=1) > 1e-10 * mass.sum()
        self.w, self.mass = w, mass[lines] / mass[lines].sum()
        self.p, self.q = (np.broadcast_to(x, grid.mass.shape)[0].ravel()[lines] for x in grid.parameters[1:])
        self.logits = _STRETCH.logit(w)

    @cached_property
    def _below(self) -> tuple[Float, Float]:
        """The mass below each point of each line, times 1 − θ and times θ."""
        steps = step(apart(self.w.size)).T
        return (self.mass * expit(-self.logits)) @ steps, (self.mass * expit(self.logits)) @ steps

    def chance(self, key: Key) -> float:
        """E[P(T = 1 | s)]."""
        return float(np.sum(self.mass * expit(self.logits + self._evidence(key)[:, None])))

    def quantiles(self, key: Key, tails: Float, new: bool, near: Float | None = None) -> Float:
        """Quantiles of the log odds, reweighted by the record itself if it is new; near those given."""
        evidence, (of_negative, of_positive) = self._evidence(key), self._below
        mass, below = self.mass, of_negative + of_positive
        if new:
            negative, positive = (log[0] for log in ALIKE.log_classes(ALIKE.record(key), self.p, self.q))
            top = max(float(positive.max()), float(negative.max()))
            up, down = (np.exp(log - top)[:, None] for log in (positive, negative))
            mass = mass * (expit(self.logits) * up + expit(-self.logits) * down)
            total = mass.sum()
            mass, below = mass / total, (up * of_positive + down * of_negative) / total
        rows = np.arange(mass.shape[0])[:, None]

        def excess(z: float, tail: float) -> float:
            t = np.clip(
                (_STRETCH.coordinate(z - evidence) - self.w[0]) / self.spacing, 0.0, self.w.size - 1.0
            )
            first = np.clip(np.floor(t).astype(int) - _NEAR // 2 + 1, 0, self.w.size - _NEAR)
            reached = below[rows, first[:, None] + np.arange(_NEAR)]
            return float(np.sum(lagrange(t - first, _NEAR) * reached)) - tail

        width = 0.002
        if near is None:  # from some of the points
            width, some = 0.05, slice(None, None, 4)
            odds = self.logits[some] + evidence[:, None]
            near = weighted_quantiles(odds.ravel(), mass[:, some].ravel(), tails)
        return np.array(
            [_root(partial(excess, tail=tail), guess, width) for tail, guess in zip(tails, near, strict=True)]
        )

    def _evidence(self, key: Key) -> Float:
        negative, positive = ALIKE.log_classes(ALIKE.record(key), self.p, self.q)
        return np.asarray(positive[0] - negative[0])


def _root(function: Callable[[float], float], guess: float, width: float) -> float:
    """The root of an increasing function near a guess."""
    while function(guess - width) > 0 or function(guess + width) < 0:
        width *= 4
    return find_root(function, guess - width, guess + width, 1e-7)
