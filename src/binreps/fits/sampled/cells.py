"""Records as sparse blocks: what each makes of the sources' log odds, and what each source said of positives.

One matrix, records × (2 × sources), of how often each source said no and yes, serves few patterns with large
weights and crowds of single individuals alike. Chains are the last axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from binreps.counts import UNKNOWN
from binreps.model import Float
from binreps.readings import Readings

_BLOCK = 2048  # records at once: their log odds in all chains stay in the processor's cache
_MANY = 20_000  # readings from which single precision pays
_EXACT = 2**24  # whole numbers up to here are exact in single precision


class Block(NamedTuple):
    """Some records: their rows of the matrix, where they are, and weights if they are not all 1."""

    matrix: Any
    rows: slice
    weight: Any


class Cells:
    """The records of unknown status, in blocks, and what those of known status add.

    Attributes
    ----------
    blocks : list of Block
    totals : ndarray
        How often each source said no and yes: shape (2 × sources, 1).
    settled : ndarray
        The same of individuals who are known to be positive.
    """

    def __init__(self, readings: Readings) -> None:
        unknown = readings.known == UNKNOWN
        open_ = readings if unknown.all() else readings.take(np.flatnonzero(unknown))
        positive = readings.take(np.flatnonzero(readings.known == 1))
        self.totals = readings.totals.reshape(-1, 1).astype(float)
        self.settled = positive.totals.reshape(-1, 1).astype(float)
        self.records = len(open_)
        once = bool(np.all(open_.weight == 1))
        single = once and open_.code.size >= _MANY and self.totals.max(initial=0) < _EXACT
        self.kind = np.dtype(np.float32 if single else np.float64)
        self.blocks = list(_blocks(open_, once, self.kind))

    def draw(self, log_odds: Float, prevalence: Any, rng: np.random.Generator) -> Float:
        """Draw how many individuals of each record are positive; what the sources said of positives.

        `prevalence` gives the log odds of some rows, and sees how many of them are positive.
        """
        table = np.ascontiguousarray(log_odds, self.kind)
        said = np.repeat(self.settled, table.shape[1], axis=1)
        for matrix, rows, weight in self.blocks:
            odds = matrix @ table
            odds += prevalence.log_odds(rows).astype(self.kind)
            positive = _drawn(odds, weight, rng)
            prevalence.see(rows, positive)
            said += matrix.T @ positive
        return said


def _blocks(readings: Readings, once: bool, kind: np.dtype[Any]) -> Iterator[Block]:
    """The records in blocks, which share their memory with the readings where they can."""
    from scipy.sparse import csr_matrix

    columns = 2 * len(readings.sources)
    edges = readings.start[[*range(0, len(readings), _BLOCK), len(readings)]]
    ones = np.ones(int(np.diff(edges).max(initial=0)), kind)
    for first in range(0, len(readings), _BLOCK):
        last = min(first + _BLOCK, len(readings))
        some = slice(int(readings.start[first]), int(readings.start[last]))
        size = some.stop - some.start
        often = ones[:size] if readings.times is None else readings.times[some].astype(kind)
        start = (readings.start[first : last + 1] - some.start).astype(np.int32)
        matrix = csr_matrix((last - first, columns), dtype=kind)
        matrix.data, matrix.indices, matrix.indptr = often, readings.code[some], start
        weight = None if once else readings.weight[first:last, None]
        yield Block(matrix, slice(first, last), weight)


def _drawn(odds: Float, weight: Any, rng: np.random.Generator) -> Float:
    """How many of the individuals of each record are positive, by their log odds."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.negative(odds, out=odds)
        np.exp(odds, out=odds)
        odds += 1
        if weight is None:
            chance = rng.random(odds.shape, dtype=odds.dtype)
            return (chance * odds < 1).astype(odds.dtype)
        return rng.binomial(weight, 1 / odds).astype(odds.dtype)
