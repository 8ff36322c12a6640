"""Pairs of sources that agree in their errors: copies, or two that were trained alike.

Given the status, readings of two sources are independent. Let π be the probability of being positive by
everyone else's readings. Then the product of what two sources said, less what was expected of each, has the
expectation π(1−π)(1−p_j−q_j)(1−p_k−q_k), and what exceeds it, over shared individuals, is a sum of mean 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from binreps.counts import UNKNOWN
from binreps.fits.sampled.posterior import SourcesPosterior, design
from binreps.model import Float
from binreps.readings import Readings

SHARED = 30
"""Individuals that two sources must both have read to be compared."""

_Z, _R = 4.0, 0.3  # alarms: 1 of 10⁵ pairs by chance, and a correlation that matters
_MOST = 20_000  # pairs that are looked at, those with the most individuals in common


class Pair(NamedTuple):
    """Two sources, by their numbers, and how they agree beyond what their errors explain.

    Attributes
    ----------
    first, second : int
    shared : int
        Individuals that both read.
    correlation : float
        Of their answers given everyone else's.
    z : float
        The excess over its standard error.
    """

    first: int
    second: int
    shared: int
    correlation: float
    z: float

    @property
    def striking(self) -> bool:
        """Whether chance hardly makes it, and it matters."""
        return self.z > _Z and self.correlation > _R


def agreeing_pairs(readings: Readings, posterior: SourcesPosterior) -> list[Pair]:
    """The pairs that agree in their errors, the most striking first.

    A copy counts twice in what everyone else says, which makes others look alike: once a pair is found it is
    counted once, its members are compared no more, and the others must still agree.
    """
    found: list[Pair] = []
    table = _Table(readings.take(np.flatnonzero(readings.known == UNKNOWN)), posterior)
    alarms = [pair for pair in table.pairs() if pair.striking]
    while alarms:
        best = max(alarms, key=lambda pair: pair.z)
        found.append(best)
        table.count_once(best)
        rest = [pair for pair in alarms if not {pair.first, pair.second} & {best.first, best.second}]
        alarms = [one for pair in rest if (one := table.pair(pair.first, pair.second)).striking]
    return found


def all_pairs(readings: Readings, posterior: SourcesPosterior) -> list[Pair]:
    """Every pair that can be compared."""
    return _Table(readings.take(np.flatnonzero(readings.known == UNKNOWN)), posterior).pairs()


class _Table:
    """Who said what, by source, and the log odds that each said at the mean rates."""

    def __init__(self, readings: Readings, posterior: SourcesPosterior) -> None:
        odds, negative, positive = posterior.at_the_mean(readings)
        matrix = design(readings).tocsc()
        no, yes = matrix[:, 0::2], matrix[:, 1::2]
        self._matrix, self._weight = matrix, readings.weight.astype(float)
        self._p, self._q = np.exp(negative[1::2]), np.exp(positive[0::2])
        self._odds = odds + matrix @ (positive - negative)
        self._said = (positive - negative).reshape(-1, 2)
        self._columns = [self._column(no, yes, j) for j in range(len(readings.sources))]
        self._read = (matrix[:, 0::2] + matrix[:, 1::2]) > 0

    def _column(self, no: Any, yes: Any, j: int) -> tuple[Any, Float, Float]:
        """Who was read by a source, how often it said no and yes."""
        pair = no[:, [j]].toarray()[:, 0], yes[:, [j]].toarray()[:, 0]
        rows = np.flatnonzero(pair[0] + pair[1])
        return rows, pair[0][rows], pair[1][rows]

    def pairs(self) -> list[Pair]:
        """All pairs with enough individuals in common."""
        return [self.pair(int(j), int(k)) for j, k in self._candidates()]

    def count_once(self, pair: Pair) -> None:
        """Take a pair for one in what everyone says."""
        self._odds = self._odds - _too_much(self._matrix, self._said.ravel(), pair)

    def _candidates(self) -> Any:
        """Pairs with enough individuals in common."""
        from scipy.sparse import diags_array, triu

        read = self._read.astype(float)
        shared = triu(read.T @ diags_array(self._weight) @ read, 1).tocoo()
        enough = np.flatnonzero(shared.data >= SHARED)
        enough = enough[np.argsort(-shared.data[enough], kind="stable")][:_MOST]
        return np.stack([shared.row[enough], shared.col[enough]], axis=1)

    def pair(self, j: int, k: int) -> Pair:
        """How two sources agree, given everyone else."""
        rows, mine, theirs = np.intersect1d(
            self._columns[j][0], self._columns[k][0], assume_unique=True, return_indices=True
        )
        shares, own = [], np.zeros(rows.size)
        for source, places in ((j, mine), (k, theirs)):
            no, yes = (column[places] for column in self._columns[source][1:])
            own += self._said[source, 0] * no + self._said[source, 1] * yes
            shares.append(yes / (no + yes))
        chance, weight = expit(self._odds[rows] - own), self._weight[rows]
        means = [chance * (1 - self._q[i]) + (1 - chance) * self._p[i] for i in (j, k)]
        both = np.prod([1 - self._p[i] - self._q[i] for i in (j, k)])
        excess = (shares[0] - means[0]) * (shares[1] - means[1]) - chance * (1 - chance) * both
        spread = np.sqrt(np.prod([mean * (1 - mean) for mean in means], axis=0))
        total, noise = weight @ excess, np.sqrt(weight @ excess**2)
        correlation = total / max(weight @ spread, 1e-300)
        return Pair(j, k, int(weight.sum()), float(correlation), float(total / max(noise, 1e-300)))


def counted_once(readings: Readings, posterior: SourcesPosterior, pair: Pair) -> dict[str, Float]:
    """Scores at the mean rates: as they are, without either of a pair, and with the two as one.

    As one they say what they agree on, and nothing where they differ; nothing is fitted again.
    """
    odds, negative, positive = posterior.at_the_mean(readings)
    matrix, said = design(readings).tocsc(), positive - negative
    weight = posterior.calibration.discount
    total = odds + weight * (matrix @ said)
    first, second = (_by(matrix, said, j)[0] for j in (pair.first, pair.second))
    return {
        "as it is": expit(total),
        "without the first": expit(total - weight * first),
        "without the second": expit(total - weight * second),
        "counted as one": expit(total - weight * _too_much(matrix, said, pair)),
    }


def _by(matrix: Any, said: Float, j: int) -> tuple[Float, Any, Any]:
    """What a source adds to the log odds of each record, and whether it said no and yes."""
    no, yes = (matrix[:, [2 * j + x]].toarray()[:, 0] for x in (0, 1))
    return no * said[2 * j] + yes * said[2 * j + 1], no > 0, yes > 0


def _too_much(matrix: Any, said: Float, pair: Pair) -> Float:
    """What two that are one add too much to the log odds: half where they agree, all where they differ."""
    (first, *a), (second, *b) = (_by(matrix, said, j) for j in (pair.first, pair.second))
    differ = (a[0] & b[1]) | (a[1] & b[0])
    both = (a[0] | a[1]) & (b[0] | b[1])
    return np.asarray(np.where(differ, 1.0, np.where(both, 0.5, 0.0)) * (first + second))
