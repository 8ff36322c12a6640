"""What follows from two grids that agree, whichever rule made them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np
from scipy.special import expit

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.grid import Grid
from binreps.fits.exact.threads import Threads, quantiles
from binreps.fits.marginal import Marginal
from binreps.fits.posterior import Block, Estimate, Key, Memory, Nodes, Posterior, weighted_quantiles
from binreps.model import Float
from binreps.notes import say_long

LEAST_ERROR = 1e-10
"""Tails cut off and rounding, which two grids have in common."""

SCORE_TOLERANCE = 1e-7
"""Of a score on two grids: beyond, it is looked at more closely."""

SLOW = 5.0
"""Grids of similar size may both be off by more than they differ."""

SCORE_ENDS = 2.5e-5
"""Of the ends of its interval, which with half as many lines again move much less."""

_ODDS = 0.02  # of their log odds: two digits of an end beside 0 or 1, give or take one
_TABLES = 2e-6  # of the ends of intervals: what cubics between the entries of a table are off
_BESIDE_POLES = 1e-6  # of a chance, where θ has poles so steep that far logits have mass: 3·10⁻⁷ were seen
_LINES_LEFT_OUT = 1e-8  # of a chance, by lines of θ that are too light to count
_SCORE_IN_FOUR = 1e-4  # where fitting once more takes seconds, and gains a digit
_ENOUGH = 200_000  # points of a grid, to see where a posterior is
_ENOUGH_LINES = 10_000  # of them, each a sum over θ
_LEVELS = (
    8  # of lines that are kept, more than there are: with one too few, all are made again for each record
)
_MANY = 250  # records whose intervals take up to 5 seconds, 20 milliseconds each where they are slow
_KEPT = 1e-3  # of the posterior that must still count once it is reweighted by a new record


class Integrated(Posterior):
    """Two grids that agree, and what follows from their points.

    Attributes
    ----------
    counts : CountTable
    grid : Grid
        The finer of the two.
    """

    def __init__(self, counts: CountTable, grid: Grid, error: float) -> None:
        super().__init__()
        self.counts, self.grid, self.error = counts, grid, error
        self.mean, self.covariance, self.log_evidence = grid.mean, grid.covariance, grid.log_evidence

    @property
    @abstractmethod
    def check(self) -> Grid:
        """The coarser grid."""

    @abstractmethod
    def marginal(self, axis: int) -> Marginal:
        """The density of one parameter."""

    @abstractmethod
    def with_more(self, more: CountTable) -> Integrated:
        """The posterior with more individuals in the data."""

    @abstractmethod
    def _threads(self, level: int) -> tuple[list[Threads], Float] | None:
        """The posterior as lines of θ, and the share of each list: more of them with every level, if any."""

    @abstractmethod
    def _scored(self, key: Key) -> Estimate:
        """E[P(T = 1 | s)]."""

    def _law_ends(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """Quantiles of P(T = 1 | s; parameters), reweighted by the records themselves if they are new.

        From lines of θ, more and more of them until a record has settled.
        """
        found: dict[Key, Estimate] = {}
        near: Float | None = None
        for level in count():
            if not keys or (lines := self._lines_at(level)) is None:
                break
            near, before = quantiles(*lines, keys, tails, new, near), near
            value, error = expit(near), np.full(len(keys), np.inf)
            if before is not None:
                error = np.max(np.abs(value - expit(before)), axis=1)
            for key, ends, one in zip(keys, value, error, strict=True):
                found[key] = Estimate(ends, np.full(tails.size, max(SLOW * one, _TABLES)))
            rough = error > SCORE_ENDS
            if before is not None:
                rough |= np.max(np.abs(near - before), axis=1) > _ODDS
            keys, near = [key for key, one in zip(keys, rough, strict=True) if one], near[rough]
        return found

    def _chance_on_threads(self, key: Key) -> Estimate:
        """E[P(T = 1 | s)] from lines of θ."""

        def chance(lines: list[Threads], shares: Float) -> float:
            return float(shares @ [one.chance(key) for one in lines])

        value, error = self._on_threads(chance, SCORE_TOLERANCE / 10)
        lines = self._lines_at(0)
        steep = lines is not None and any(one.steep for one in lines[0])
        return Estimate(min(value, 1.0), max(error, _BESIDE_POLES) if steep else error)

    def _on_threads(self, function: Callable[[list[Threads], Float], Any], tol: float) -> Estimate:
        """What follows from lines of θ and their shares, more and more of them until it settles."""
        value, error = None, np.inf
        for level in count():
            if (lines := self._lines_at(level)) is None:
                break
            value, before = function(*lines), value
            if before is not None:
                error = float(np.max(np.abs(value - before)))
                if error < tol:
                    break
        return Estimate(value, max(SLOW * error, _LINES_LEFT_OUT))

    def _lines_at(self, level: int) -> tuple[list[Threads], Float] | None:
        """The lines of a level, made once."""
        found: tuple[list[Threads], Float] | None = self._lines_of_theta.get(
            level, partial(self._threads, level)
        )
        return found

    @cached_property
    def _lines_of_theta(self) -> Memory:
        return Memory(_LEVELS)

    def roughly(self, axis: int, probabilities: Float) -> Float:
        """Quantiles of one parameter to about a percent of a standard deviation, at once."""
        parameters, mass = self._heavy
        return weighted_quantiles(parameters[axis], mass, probabilities)

    def nodes(self) -> Iterator[Nodes]:
        """The coarser grid, then the finer one."""
        for grid in (self.check, self.grid):
            yield [Block(grid.parameters, grid.mass)]

    @cached_property
    def _heavy(self) -> tuple[Float, Float]:
        """What `heavy_points` says of the grid."""
        return heavy_points(self.grid)

    def _chance(self, key: Key, new: bool) -> Estimate:
        if key[0] == 0:  # nothing was read: the prevalence
            return Estimate(float(self.mean[0]), self.error * float(np.sqrt(self.covariance[0, 0])))
        return self._predicted(key) if new else self._scored(key)

    def _predicted(self, key: Key) -> Estimate:
        kept = self._kept(key)
        if kept < _KEPT:
            return self._predicted_by_refitting(key)
        value, other = (self._mean(nodes, key, new=True) for nodes in reversed(list(self.nodes())))
        error = SLOW * abs(value - other) + max(self.error * 1e-3, 1e-13 / kept)
        if error > (SCORE_TOLERANCE if len(self.mean) < 4 else _SCORE_IN_FOUR):
            again = self._predicted_by_refitting(key)
            return again if again.error < error else Estimate(value, error)
        return Estimate(value, error)

    def _kept(self, key: Key) -> float:
        """The share of the posterior that still counts once it is reweighted by a new individual's result."""
        errors, moments = self._of_theta
        negative, positive = (logs[0] for logs in self.model.log_classes(self.model.record(key), *errors))
        top = np.max([negative, positive])
        down, up = np.exp(negative - top), np.exp(positive - top)
        mean, square = moments[:2] * (down, up), moments[2:] * (down * down, 2 * down * up, up * up)
        return float(mean.sum() ** 2 / square.sum())

    @cached_property
    def _of_theta(self) -> tuple[list[Float], Float]:
        """Error rates that matter, or enough of them, and sums over θ: of 1 − θ, θ and their products."""
        (theta, *errors), mass = self.grid.parameters, self.grid.mass
        shape = np.broadcast_shapes(*(x.shape for x in errors))
        others = tuple(axis for axis, size in enumerate(shape) if size == 1)
        products = (1 - theta, theta, (1 - theta) ** 2, (1 - theta) * theta, theta**2)
        moments = np.stack([(mass * x).sum(axis=others).ravel() for x in products])
        total = moments[:2].sum(axis=0)
        matters = np.flatnonzero(total > 1e-10 * total.max())
        matters = matters[:: 1 + matters.size // _ENOUGH_LINES]
        moments /= total[matters].sum()
        return [np.broadcast_to(x, shape).ravel()[matters] for x in errors], moments[:, matters]

    def _predicted_by_refitting(self, key: Key) -> Estimate:
        """Evidence with the new individual known to be positive, over the evidence without that knowledge."""
        n, s = key
        unknown = self.with_more(CountTable([n], [s]))
        positive = self.with_more(CountTable([n], [s], known=[1]))
        value = float(np.exp(min(positive.log_evidence - unknown.log_evidence, 0.0)))
        return Estimate(value, value * (unknown.evidence_error + positive.evidence_error))

    @property
    def evidence_error(self) -> float:
        """The numerical error of the log evidence: what the coarser grid has, and rounding."""
        return abs(self.grid.log_evidence - self.check.log_evidence) + 4e-16 * abs(self.log_evidence)

    def next_positive(self, key: Key, new: bool) -> float:
        """The probability that one more replicate of such an individual is positive."""
        if new and self._kept(key) < _KEPT:
            n, s = key
            before, after = (self.with_more(CountTable([n + k], [s + k])) for k in (0, 1))
            return float(np.exp(after.log_evidence - before.log_evidence))
        nodes = [Block(self.grid.parameters, self.grid.mass)]
        (_, p, q, *_), shape = self.grid.parameters, self.grid.mass.shape
        chances, weight = self._weighed(nodes, key, new)
        p, q = (np.broadcast_to(x, shape).ravel() for x in (p, q))
        return float(weight @ (chances * (1 - q) + (1 - chances) * p))

    def _quantiles(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """From the data with the record in them where little of the posterior would be left."""
        if len(keys) > _MANY:
            say_long(
                f"the intervals of {len(keys):,} results take from seconds to minutes; probabilities alone, "
                "such as those of decision_table(…, level=None), take a fraction of it"
            )
        again = [key for key in keys if new and self._kept(key) < _KEPT]
        found = self._law_ends([key for key in keys if key not in again], tails, new)
        for key in again:
            found |= self.with_more(CountTable([key[0]], [key[1]]))._law_ends([key], tails, False)
        return found


def heavy_points(grid: Grid) -> tuple[Float, Float]:
    """The points that matter of a grid, or as many of them as tell where it is, and their masses."""
    mass, shape = grid.mass.ravel(), grid.mass.shape
    matters = np.flatnonzero(mass > 1e-10 * mass.max())
    if matters.size > _ENOUGH:
        matters = matters[np.linspace(0, matters.size - 1, _ENOUGH).astype(np.int64)]
    index = np.unravel_index(matters, shape)
    parameters = [np.broadcast_to(x, shape)[index] for x in grid.parameters]
    return np.stack(parameters), mass[matters] / mass[matters].sum()


def has_cell(counts: CountTable, key: Key) -> bool:
    """Whether someone of unknown status has these results."""
    n, s = key
    return bool(np.any((counts.n == n) & (counts.s == s) & (counts.known == UNKNOWN)))
