"""Pairs of sources that agree in their errors: copies, or two that were trained alike.

Given the status, readings of two sources are independent. The alarm compares two models of the individuals
that both have read: their answers are independent given the status, or the four that two can give have a
law of their own in either class (EM, all other sources' rates learned again). Copies may decide the statuses
themselves, and then pass for nearly perfect readers while all others seem to err alike. So the second model
starts from what everyone else says, and the pair that explains most is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from binreps.counts import UNKNOWN
from binreps.fits.sampled.posterior import SourcesPosterior, design
from binreps.model import Float
from binreps.readings import Readings

SHARED = 30
"""Individuals that two sources must both have read to be compared."""

_GAIN, _R = 24.0, 0.3  # alarms: χ² of two freedoms, 1 of 10⁵ pairs by chance, and a correlation that matters
_RIVAL = 6.0  # gains closer than that do not tell which: odds of less than e³ = 20 to 1
_LOOKED = 300  # pairs that are looked at closely: all of 25 readers, of crowds those that seem most alike
_WORK = 4_000_000  # readings that are looked at in all; beyond, every so many of the records that two share
_STEPS, _CLOSE = 60, 0.01  # of EM at most, and the gain of a step that is none


class Pair(NamedTuple):
    """Two sources, by their numbers, and how they agree beyond what their errors explain.

    Attributes
    ----------
    first, second : int
    shared : int
        Individuals that both read, as far as they were looked at.
    correlation : float
        Of their answers given the status.
    gain : float
        Twice the log likelihood that this correlation gains: above 24 chance hardly makes it.
    rivals : tuple of pairs of int
        Other pairs whose agreement would explain the readings about as well.
    """

    first: int
    second: int
    shared: int
    correlation: float
    gain: float
    rivals: tuple[tuple[int, int], ...] = ()

    @property
    def striking(self) -> bool:
        """Whether chance hardly makes it, and it matters."""
        return self.gain > _GAIN and self.correlation > _R

    @property
    def members(self) -> tuple[int, int]:
        """Both."""
        return self.first, self.second


def agreeing_pairs(readings: Readings, posterior: SourcesPosterior) -> list[Pair]:
    """The pairs that agree in their errors, the most striking first.

    A copy counts twice in what everyone else says, which makes others look alike: once a pair is found its
    second member says nothing any more, its members are compared no more, and the others must still agree.
    """
    found: list[Pair] = []
    table = _Table(readings, posterior)
    alarms = [pair for pair in table.pairs() if pair.correlation > _R]
    while any(pair.striking for pair in alarms):
        best = max(alarms, key=lambda pair: pair.gain)
        rivals = [pair.members for pair in alarms if best.gain - _RIVAL < pair.gain and pair is not best]
        found.append(best._replace(rivals=tuple(rivals)))
        table.drop(best.second)
        rest = [pair for pair in alarms if pair.striking and not {*pair.members} & {*best.members}]
        alarms = [table.pair(*pair.members) for pair in rest]
    return found


def all_pairs(readings: Readings, posterior: SourcesPosterior) -> list[Pair]:
    """Every pair that can be compared, of many those that seem most alike."""
    return _Table(readings, posterior).pairs()


class _Table:
    """Who of unknown status got which answers, and how probably each is positive at the mean rates."""

    def __init__(self, readings: Readings, posterior: SourcesPosterior) -> None:
        readings = readings.take(np.flatnonzero(readings.known == UNKNOWN))
        self._odds, negative, positive = posterior.at_the_mean(readings)
        self._matrix = design(readings).astype(float)
        self._weight = readings.weight.astype(float)
        self._logs = np.stack([negative, positive], axis=1)
        means = posterior.mean[-4::2]  # of the population of sources: false positives, false negatives
        self._usual = np.array([[1 - means[0], means[1]], [means[0], 1 - means[1]]])
        self._look_again()

    def _look_again(self) -> None:
        """What everyone says of each record."""
        self._by_column = self._matrix.tocsc()
        said = self._matrix @ (self._logs[:, 1] - self._logs[:, 0])
        self._chance = expit(self._odds + said)

    def drop(self, source: int) -> None:
        """A source that says nothing any more."""
        from scipy.sparse import diags_array

        kept = np.ones(self._matrix.shape[1])
        kept[2 * source : 2 * source + 2] = 0.0
        self._matrix = (self._matrix @ diags_array(kept)).tocsr()
        self._matrix.eliminate_zeros()
        self._look_again()

    def pairs(self) -> list[Pair]:
        """The pairs with enough individuals in common, of many those that seem most alike."""
        candidates = self._candidates()
        each = len(candidates) * self._matrix.nnz / max(self._matrix.shape[0], 1)
        self._most = max(500, int(_WORK / max(each, 1.0)))
        return [self.pair(int(j), int(k)) for j, k in candidates]

    def _candidates(self) -> Any:
        """The pairs whose answers, less what was expected of each, have the largest products, over noise."""
        from scipy.sparse import csr_array, diags_array, triu

        entries = self._matrix.tocoo()
        of, shape = (entries.row, entries.col // 2), (entries.shape[0], entries.shape[1] // 2)
        times = csr_array((entries.data, of), shape=shape)  # entries of one place are added, in one order
        yes = csr_array((entries.data * (entries.col % 2), of), shape=shape)
        row, source = (place := times.tocoo()).row, place.col
        chances = _classes(self._chance)[row] * np.exp(self._logs[1::2])[source]
        away = yes.data / times.data - chances.sum(axis=1)

        def together(values: Float) -> Any:
            own = csr_array((values, (row, source)), shape=shape)
            return triu(own.T @ diags_array(self._weight) @ own, 1).tocoo()

        shared, alike, squares = (together(values) for values in (np.ones(row.size), away, away**2))
        enough = np.flatnonzero(shared.data >= SHARED)
        z = alike.data[enough] / np.sqrt(np.maximum(squares.data[enough], 1e-300))
        best = enough[np.argsort(-z, kind="stable")[:_LOOKED]]
        return np.stack([shared.row[best], shared.col[best]], axis=1)

    def pair(self, j: int, k: int) -> Pair:
        """What two sources gain by a law of their own."""
        rows, cell = self._shared(j, k)
        shared = _Shared(self, rows, cell, (j, k))
        apart = shared.climb(self._chance[rows], _apart)
        aside = shared.climb(self._chance[rows], _silent)
        together = shared.climb(aside.chance, _together)
        gain = 2 * (together.value - apart.value)
        return Pair(j, k, int(shared.weight.sum()), _correlation(together.cells), float(gain))

    def _shared(self, j: int, k: int) -> tuple[Any, Any]:
        """Records that both read and are not divided on, and which of the four answers they gave."""
        lean = [
            (self._by_column[:, [2 * i + 1]] - self._by_column[:, [2 * i]]).toarray()[:, 0] for i in (j, k)
        ]
        rows = np.flatnonzero((lean[0] != 0) & (lean[1] != 0))
        rows = rows[:: -(-rows.size // self._most) or 1]
        return rows, 2 * (lean[0][rows] > 0) + (lean[1][rows] > 0)

    def others(self, rows: Any, pair: tuple[int, int]) -> tuple[Any, Float, Float, Float]:
        """Of some records: who else said what, and of these sources what is known from all other records.

        The matrix, the number of answers of either class by code, the log odds before any, the weights.
        """
        local = self._matrix[rows]
        used = np.unique(local.indices // 2)
        used = used[~np.isin(used, pair)]
        codes = (2 * used[:, None] + [0, 1]).ravel()
        local, weight, chance = local[:, codes], self._weight[rows], self._chance[rows]
        every = self._by_column[:, codes].T @ (self._weight[:, None] * _classes(self._chance))
        elsewhere = np.maximum(every - local.T @ (weight[:, None] * _classes(chance)), 0.0)
        # one more individual of either class, read as the population of sources reads
        return local, elsewhere + np.tile(self._usual, (used.size, 1)), self._odds[rows], weight


class _Climbed(NamedTuple):
    """Where EM ended: log likelihood, how probably each is positive, and the four answers by class."""

    value: float
    chance: Float
    cells: Float


class _Shared:
    """The records that two have read, and EM over all others' rates and the pair's own law."""

    def __init__(self, table: _Table, rows: Any, cell: Any, pair: tuple[int, int]) -> None:
        self._matrix, self._known, self._odds, self.weight = table.others(rows, pair)
        self._cell = cell
        self._start = float(self.weight @ expit(self._odds) / self.weight.sum())

    def climb(self, chance: Float, law: Callable[[Float], Float]) -> _Climbed:
        """EM from some chances, with a law of the pair's four answers."""
        value = -np.inf
        for _ in range(_STEPS):
            counts = self.weight[:, None] * _classes(chance)
            cells = np.stack([np.bincount(self._cell, own, 4) for own in counts.T]).astype(float)
            answers = self._matrix.T @ counts + self._known
            logs = np.log(answers / np.repeat(answers[0::2] + answers[1::2], 2, axis=0))
            pair = np.stack([law(own) for own in cells], axis=1)
            classes = self._prevalence(counts) + self._matrix @ logs + pair[self._cell]
            old, value = value, float(self.weight @ np.logaddexp(*classes.T) + (self._known * logs).sum())
            chance = expit(classes[:, 1] - classes[:, 0])
            if value - old < _CLOSE:
                break
        return _Climbed(value, chance, cells)

    def _prevalence(self, counts: Float) -> Float:
        """log P(status) of each record: the log odds of the fit, all moved so that the average is right."""
        negatives, positives = counts.sum(axis=0) + 0.5
        odds = self._odds + np.log(positives / negatives) - logit(self._start)
        return np.asarray(-np.logaddexp(0.0, np.stack([odds, -odds], axis=1)))


def _classes(chance: Float) -> Float:
    """How probably each is negative and positive."""
    return np.stack([1 - chance, chance], axis=1)


def _silent(cells: Float) -> Float:
    """The pair is not listened to."""
    return np.zeros_like(cells)


def _margins(cells: Float) -> Float:
    """The four answers of two that are independent, and say yes as often as these; never 0."""
    first, second = ((cells[list(yes)].sum() + 0.5) / (cells.sum() + 1) for yes in ((2, 3), (1, 3)))
    return np.outer([1 - first, first], [1 - second, second]).ravel()


def _apart(cells: Float) -> Float:
    """Two that are independent."""
    return np.asarray(np.log(_margins(cells)))


def _together(cells: Float) -> Float:
    """Two with a law of their own, and one more individual on whom they were independent."""
    return np.asarray(np.log((cells + _margins(cells)) / (cells.sum() + 1)))


def _correlation(cells: Float) -> float:
    """Of two sources' answers within the classes together."""
    number = cells.sum(axis=1)
    law = np.exp([_together(own) for own in cells])
    first, second = law[:, 2] + law[:, 3], law[:, 1] + law[:, 3]
    spread = np.sqrt(first * (1 - first) * second * (1 - second))
    return float(number @ (law[:, 3] - first * second) / (number @ spread))


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
