"""Many count tables at once: one row of results for each, whatever happens to the others.

Small tables share the nodes of one rule over the whole domain of (θ, p, q): the log likelihood of each kind
of individual is computed there once, and that of all tables is a product of matrices. Two rules of different
sizes must agree; tables for which they do not are fitted one by one, in several processes.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from binreps.counts import CountTable
from binreps.errors import BinrepsError, OptionError
from binreps.fits.base import Fit, integrable
from binreps.fits.bayes import fit_bayes
from binreps.fits.exact.rules import TOLERANCE
from binreps.fits.exact.tensor import rate_interval, rate_weights
from binreps.fits.gauss import Interval, Series, invert
from binreps.fits.point.mode import MAP_PRIOR, Modes, fit_map, refuse_no_mode
from binreps.fits.point.simple import fit_average, fit_median
from binreps.model import ALIKE, NAMES, Float, Prior, Rates, Records, score_at
from binreps.options import check_level, check_whole, kinds_checked
from binreps.table import Table

Method = Literal["bayes", "map", "average", "median"]
Progress = Callable[[int, int], object]
Done = Callable[[list[int]], None]
Task = tuple[list[int], Callable[[], "list[Row | None]"]]  # tables, and what makes their rows

COLUMNS = (
    *("individuals", "replicates", "cells", "identifiable"),
    *(f"{name}{end}" for name in NAMES for end in ("", "_lower", "_upper")),
    *("log_evidence", "error", "reason"),
)
"""The columns of `BatchResult.table`."""

_LEVELS = tuple(
    (size, size * 9 // 8, size * 9 // 8) for size in (18, 22, 26, 32, 39, 48, 58, 71, 87, 106, 128)
)  # θ, p, q
_STARTS = (60, 130, 230, 420, 560, 800, 1100, 1600, 2400)
"""Replicates up to which the first level, the second, … is tried first: most tables need no third."""
_ENDS_AGREE = 1e-4  # of an sd, between two levels: the finer is then good to 1e-6, at worst (odd priors) 6e-5
_ENDS_TOLERANCE = 1e-12  # of the last Newton step: rates are between 0 and 1
_SCORES_AGREE = 1e-7  # between two levels
_LEAST_LOG = -650.0  # of a likelihood: times any node of θ it is a number still
_CUT_TAILS = 1e-10  # the least error that is claimed, as in `BayesFit.error`
_MOST_KINDS = 80  # kinds of individuals up to which a product of matrices pays
_MOST_VALUES = 60_000  # of a product of matrices, so that it stays in the processor's cache
_ALONE = 2**19  # multiplications that BLAS makes without threads of its own, which get in the way of ours
_TOGETHER = 128  # tables that share the work
_SEARCHED, _MOST_CELLS = 256, 2**14  # tables of one search for modes, and their cells altogether
_CHUNK = 16  # tables that one process is given at a time
_WORTH_PROCESSES = 300  # tables fitted one by one, from which starting Python again pays


class Row(NamedTuple):
    """What is kept of a fit; NaN where the method does not give it."""

    rates: tuple[float, ...] = (np.nan,) * 3
    sd: tuple[float, ...] = (np.nan,) * 3
    lower: tuple[float, ...] = (np.nan,) * 3
    upper: tuple[float, ...] = (np.nan,) * 3
    log_evidence: float = np.nan
    error: float = np.nan
    reason: str | None = None
    scores: tuple[float, ...] | None = None  # of the cells of the table, if asked for


@dataclass(frozen=True, repr=False)
class BatchResult:
    """One row of results per table; made by `fit_many`.

    `.rates`, `.sd`, `.lower`, `.upper` hold arrays, one entry per table; `.fit(i)` makes a full fit again.

    Attributes
    ----------
    tables : tuple of CountTable
    method : str
    prior : Prior or None
    level : float
        The probability that each interval from `.lower` to `.upper` holds.
    rows : tuple of Row
        NaN where a method does not give a number or a table could not be fitted.
    scored : bool
        Whether scores were asked for.
    """

    tables: tuple[CountTable, ...]
    method: Method
    prior: Prior | None
    level: float
    rows: tuple[Row, ...] = field(compare=False)  # they follow from the rest
    scored: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def rates(self) -> Rates:
        """The estimates."""
        return self._rates("rates")

    @cached_property
    def sd(self) -> Rates:
        """Posterior standard deviations."""
        return self._rates("sd")

    @cached_property
    def lower(self) -> Rates:
        """Lower ends of the equal-tailed intervals."""
        return self._rates("lower")

    @cached_property
    def upper(self) -> Rates:
        """Upper ends of the equal-tailed intervals."""
        return self._rates("upper")

    @property
    def log_evidence(self) -> Float:
        """The log evidence of each table."""
        return np.array([row.log_evidence for row in self.rows])

    @property
    def error(self) -> Float:
        """The numerical error of each fit, as in `BayesFit.error`."""
        return np.array([row.error for row in self.rows])

    @property
    def reason(self) -> tuple[str | None, ...]:
        """Why a row lacks a number, or what its reader should know; None where all is well."""
        return tuple(row.reason for row in self.rows)

    @property
    def scores(self) -> tuple[Float, ...]:
        """For each table the scores of its cells, in their order; NaN where it could not be fitted."""
        if not self.scored:
            raise OptionError("scores were not asked for; give fit_many scores=True")
        unknown = ((np.nan,) * len(table) for table in self.tables)
        pairs = zip(self.rows, unknown, strict=True)
        return tuple(np.array(nothing if row.scores is None else row.scores) for row, nothing in pairs)

    def fit(self, i: int) -> Fit:
        """The full fit of one table, made again; its error if it cannot be fitted."""
        return _fit(self.method, self.tables[i], self.prior)

    def table(self) -> Table:
        """All rows as a table, nulls where there is no number."""
        columns: dict[str, list[Any]] = {
            "individuals": [table.individuals for table in self.tables],
            "replicates": [table.replicates for table in self.tables],
            "cells": [len(table) for table in self.tables],
            "identifiable": [table.identifiable for table in self.tables],
        }
        for name in NAMES:
            columns[name] = _nulls(getattr(self.rates, name))
            for end in ("lower", "upper"):
                columns[f"{name}_{end}"] = _nulls(getattr(getattr(self, end), name))
        columns |= {"log_evidence": _nulls(self.log_evidence), "error": _nulls(self.error)}
        columns["reason"] = list(self.reason)
        return Table({name: columns[name] for name in COLUMNS}, title=str(self))

    def __str__(self) -> str:
        failed = sum(reason is not None for reason in self.reason)
        return f"{self.method}: {len(self):,} tables, {failed:,} with a reason to look at"

    __repr__ = __str__

    def _rates(self, what: str) -> Rates:
        values = np.array([getattr(row, what) for row in self.rows]).reshape(len(self), 3).T
        return Rates(*values)


def _nulls(values: Float) -> list[float | None]:
    """Floats with None in place of NaN."""
    return [None if value != value else value for value in values.tolist()]


@kinds_checked
def fit_many(
    tables: Iterable[CountTable],
    *,
    method: Method = "bayes",
    prior: Prior | None = None,
    level: float = 0.9,
    scores: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> BatchResult:
    """Fit many count tables, each on its own, on all cores.

    Equal tables are fitted once. A table that cannot be fitted is a row with its reason. Small tables (up to
    some hundred individuals) take about half a millisecond each.

    Parameters
    ----------
    tables : iterable of CountTable, or mapping to them
    method : {"bayes", "map", "average", "median"}
        `fit_bayes`, `fit_map`, `fit_average` or `fit_median`.
    prior : Prior, optional
        For "bayes" and "map"; the default is that of the single fit.
    level : float
        Probability of the equal-tailed intervals ("bayes" only).
    scores : bool
        Whether to give the scores of every table's cells too, as `.scores`.
    workers : int, optional
        Threads and processes to use; as many as there are cores if not given.
    progress : callable, optional
        Called as `progress(done, total)` while the work goes on, from the thread that called.

    Returns
    -------
    BatchResult

    Examples
    --------
    >>> tables = [CountTable([3, 3, 3], [0, 1, 3], [60, 4, k]) for k in (0, 9, 30)]
    >>> fit_many([*tables, CountTable([], [])], method="map").reason[3]
    'the maximum a posteriori needs at least one individual, got an empty table; fit_bayes takes it'
    >>> fit_many(tables).rates.prevalence.round(3)
    array([0.01 , 0.131, 0.322])
    >>> fit_many(tables, scores=True).scores[1].round(3)
    array([0.   , 0.043, 1.   ])
    """
    if isinstance(tables, CountTable) or not isinstance(tables, Iterable):
        raise OptionError(f"tables must be several CountTables, got {type(tables).__name__}")
    everyone = tuple(tables.values() if isinstance(tables, Mapping) else tables)
    _check(everyone, method, prior)
    check_level(level)
    if workers is not None:
        check_whole("workers", workers, 1)
    if method == "bayes":
        prior = integrable(prior)
    elif method == "map":
        prior = prior or MAP_PRIOR
    places: dict[CountTable, list[int]] = {}
    for i, table in enumerate(everyone):
        places.setdefault(table, []).append(i)
    distinct, groups = list(places), list(places.values())
    job = _Job(distinct, method, prior, level, scores, workers or _cores(), _counter(groups, progress))
    rows = job.run()
    result: list[Row] = [Row()] * len(everyone)
    for row, group in zip(rows, groups, strict=True):
        for i in group:
            result[i] = row
    return BatchResult(everyone, method, prior, level, tuple(result), scores)


def _check(tables: tuple[CountTable, ...], method: str, prior: Prior | None) -> None:
    """Refuse what is wrong for all tables."""
    if method not in get_args(Method):
        raise OptionError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    if prior is not None and method in ("average", "median"):
        raise OptionError(f"the {method} takes no prior")
    for i, table in enumerate(tables):
        if not isinstance(table, CountTable):
            raise OptionError(f"tables must be CountTables, got {type(table).__name__} at position {i}")


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _counter(groups: list[list[int]], progress: Progress | None) -> Done:
    """What is called with the distinct tables that are done: it counts those they stand for."""
    total, done = sum(map(len, groups)), 0

    def count(finished: list[int]) -> None:
        nonlocal done
        done += sum(len(groups[i]) for i in finished)
        if progress is not None and finished:
            progress(done, total)

    return count


# One table ---------------------------------------------------------------------------------------------


def _fit(method: Method, table: CountTable, prior: Prior | None) -> Fit:
    """One full fit."""
    if method == "bayes":
        return fit_bayes(table, prior)
    if method == "map":
        return fit_map(table, prior or MAP_PRIOR)
    return fit_average(table) if method == "average" else fit_median(table)


def fit_row(
    method: Method, table: CountTable, prior: Prior | None, level: float, scores: bool = False
) -> Row:
    """One fit as a row, with the reason if it fails or has something to say."""
    try:
        return _row(_fit(method, table, prior), level, scores)
    except Exception as error:  # one table must not take the others with it
        name = "" if isinstance(error, BinrepsError) else f"{type(error).__name__}: "
        return Row(reason=f"{name}{error}")


def _row(fit: Fit, level: float, scores: bool) -> Row:
    """What is kept of a fit."""
    lower, upper = fit.interval(level)
    error = np.nan if fit.posterior.certain else fit.error
    said = [*(trouble.sentence for trouble in fit.troubles()), *map(str, fit.notes)]
    numbers = (tuple(fit.rates), tuple(fit.sd), tuple(lower), tuple(upper), fit.log_evidence, error)
    each = tuple(np.asarray(fit.score(fit.counts)).tolist()) if scores else None
    return Row(*numbers, reason="; ".join(said) or None, scores=each)


# Many small tables on common nodes -----------------------------------------------------------------------


class Lattice:
    """Rules over the whole domain of (θ, p, q), and the kinds of individuals that some tables are made of."""

    def __init__(self, tables: Sequence[CountTable], prior: Prior, scored: bool = False) -> None:
        self.scored = scored
        sizes = [len(table) for table in tables]
        n, s, weight, known = (
            np.concatenate([getattr(table, name) for table in tables])
            for name in ("n", "s", "weight", "known")
        )
        keys, where = np.unique(np.stack([n, s, known]), axis=1, return_inverse=True)
        kinds = CountTable(keys[0], keys[1], known=keys[2].astype(np.int8))
        assert len(kinds) == keys.shape[1]  # in the same order: both sort by n, s, known
        self.kinds = kinds
        self.weights = np.zeros((len(tables), len(kinds)))
        self.weights[np.repeat(np.arange(len(tables)), sizes), where.ravel()] = weight
        self.cells = np.split(where.ravel(), np.cumsum(sizes)[:-1])  # which kind each cell of a table is
        self.prior = prior
        self.box = tuple(
            rate_interval(shapes, 0.0, end) for shapes, end in zip(prior, (1.0, 0.5, 0.5), strict=True)
        )
        self.log_unit = self._peaks()

    def slabs(self, sizes: tuple[int, int, int]) -> Iterator[tuple[Float, Float]]:
        """For each node of p: log likelihoods at the nodes (θ, q), one row per kind; log weights; ones.

        Beside them, if scores are asked for, the chances of each kind, whatever statuses are known.
        """
        nodes = [inside.nodes(size) for inside, size in zip(self.box, sizes, strict=True)]
        weights = [
            inside.log_weights(size) + rate_weights(shapes, x, inside)
            for inside, size, shapes, x in zip(self.box, sizes, self.prior, nodes, strict=True)
        ]
        theta, p, q = nodes
        classes = ALIKE.log_classes(Records.of(self.kinds), p, q)
        negative, positive = (np.exp(np.maximum(x, _LEAST_LOG)) for x in classes)
        of_positives = theta[:, None] * positive[:, None, :]
        rows = np.ones((len(self.kinds) + 2, sizes[0] * sizes[2]))
        mixture, log_weights = rows[:-2].reshape(of_positives.shape), np.add.outer(weights[0], weights[2])
        chances = np.empty_like(mixture if self.scored else mixture[:0])
        known = {status: np.flatnonzero(self.kinds.known == status) for status in (0, 1)}
        for j in range(sizes[1]):
            of_negatives = ((1 - theta) * negative[:, j, None])[:, :, None]
            np.add(of_positives, of_negatives, out=mixture)
            np.divide(of_positives[: len(chances)], mixture[: len(chances)], out=chances)
            mixture[known[0]], mixture[known[1]] = of_negatives[known[0]], of_positives[known[1]]
            np.log(mixture, out=mixture)
            rows[-2] = log_weights.ravel() + weights[1][j]
            yield rows, chances.reshape(len(chances), rows.shape[1])

    def _peaks(self) -> Float:
        """About the highest log mass of each table: a unit in which no exponential overflows."""
        factors = self._factors(slice(None), 0.0)
        parts = np.array_split(factors, -(-factors.size * 12**2 // _ALONE))
        each = [
            np.concatenate([(part @ rows).max(axis=1) for part in parts])
            for rows, _ in self.slabs((12, 12, 12))
        ]
        return np.asarray(np.max(each, axis=0))

    def _factors(self, some: Any, unit: Any) -> Float:
        """What takes rows of slabs to log masses of some tables, in a unit."""
        weights = self.weights[some]
        return np.concatenate(
            [weights, np.ones((len(weights), 1)), np.full((len(weights), 1), -unit)], axis=1
        )

    def lines(self, some: Any, sizes: tuple[int, int, int], matters: Any) -> list[Float]:
        """Masses of some tables along θ, p and q, each of shape (tables, nodes); last, weighted by chances.

        `matters` says for each table at which nodes of p its density is not negligible.
        """
        factors = self._factors(some, self.log_unit[some, None])
        lines = [np.zeros((len(factors), size)) for size in (*sizes, len(self.kinds) if self.scored else 0)]
        width, ones = sizes[0] * sizes[2], np.ones(sizes[0])
        most = min(_MOST_VALUES, _ALONE // factors.shape[1])
        buffer = np.empty((max(1, most // width), width))
        for j, (rows, chances) in enumerate(self.slabs(sizes)):
            near = np.flatnonzero(matters[:, j])
            for here in (near[i : i + len(buffer)] for i in range(0, near.size, len(buffer))):
                values = np.matmul(factors[here], rows, out=buffer[: here.size])
                np.exp(values, out=values)
                mass = values.reshape(here.size, sizes[0], sizes[2])
                along_q = ones @ mass
                lines[0][here] += mass @ np.ones(sizes[2])
                lines[1][here, j] = along_q.sum(axis=1)
                lines[2][here] += along_q
                lines[3][here] += values @ chances.T
        return lines

    def results(
        self, some: Any, sizes: tuple[int, int, int], level: float, before: Results | None
    ) -> Results:
        """Moments, intervals and evidence of some tables; what was found before says where to look."""
        p = self.box[1].nodes(sizes[1])
        matters = np.ones((len(some), p.size), bool)
        if before is not None:
            matters = (p >= before.first[:, None]) & (p <= before.last[:, None])
        *lines, scores = self.lines(some, sizes, matters)
        total = lines[0].sum(axis=1)
        tails = np.full(total.size, (1 - level) / 2)
        found = []
        for i, (inside, line) in enumerate(zip(self.box, lines, strict=True)):
            near = None if before is None else np.concatenate([before.lower[:, i], before.upper[:, i]])
            found.append(_marginal(inside, line / total[:, None], tails, near))
        log_evidence = np.log(total) + self.log_unit[some] + self.prior.log_constant
        mean, sd, lower, upper = (np.stack(column, axis=1) for column in zip(*found, strict=True))
        scores = np.minimum(scores / total[:, None], 1.0) * (self.weights[some] > 0)[:, : scores.shape[1]]
        return Results(mean, sd, lower, upper, log_evidence, scores, *_range(p, lines[1]))


class Results(NamedTuple):
    """What one rule found; columns θ, p, q."""

    mean: Float
    sd: Float
    lower: Float
    upper: Float
    log_evidence: Float
    scores: Float  # of the kinds of individuals that a table has; without columns if they are not asked for
    first: Float  # the nodes of p between which the mass is
    last: Float

    def distance(self, other: Results) -> Float:
        """The numerical error of each table: the difference in means and sds, and in the evidence."""
        sd = np.maximum(self.sd, 1e-300)
        moments = np.maximum(np.abs(self.mean - other.mean), np.abs(self.sd - other.sd)) / sd
        scale = np.maximum(1.0, np.abs(self.log_evidence))
        evidence = np.abs(self.log_evidence - other.log_evidence) / scale
        return np.asarray(np.maximum(moments.max(axis=1), evidence))

    def agrees(self, other: Results) -> Any:
        """Whether a coarser rule confirms this one, table by table."""
        ends = np.maximum(np.abs(self.lower - other.lower), np.abs(self.upper - other.upper)) / self.sd
        scores = np.abs(self.scores - other.scores).max(axis=1, initial=0.0)
        close = (ends.max(axis=1) < _ENDS_AGREE) & (scores < _SCORES_AGREE)
        return (self.distance(other) < TOLERANCE) & close

    def at(self, some: Any) -> Results:
        """The results of some tables."""
        return Results(*(column[some] for column in self))

    def row(self, k: Any, error: float, cells: Any) -> Row:
        """What is kept of one table, whose cells are of the given kinds."""
        mean, sd, lower, upper = (tuple(column[k].tolist()) for column in self[:4])
        scores = tuple(self.scores[k][cells].tolist()) if self.scores.shape[1] else None
        return Row(mean, sd, lower, upper, float(self.log_evidence[k]), max(error, _CUT_TAILS), scores=scores)


def _range(x: Float, masses: Float) -> tuple[Float, Float]:
    """For each row of masses, the nodes next to those that are not negligible."""
    matters = masses > 1e-15 * masses.max(axis=1, keepdims=True)
    first, last = matters.argmax(axis=1), x.size - 1 - matters[:, ::-1].argmax(axis=1)
    padded = np.concatenate([[0.0, 0.0], x, [1.0, 1.0]])
    return padded[first], padded[last + 4]


def _marginal(inside: Interval, masses: Float, tails: Float, near: Float | None) -> tuple[Float, ...]:
    """Mean, sd and interval of many densities on one interval; both ends may be known to be near others."""
    x = inside.nodes(masses.shape[1])
    mean = masses @ x
    sd = np.sqrt(np.sum(masses * (x - mean[:, None]) ** 2, axis=1))
    both, wanted = Series(inside, masses).rows(np.tile(np.arange(len(masses)), 2)), [*tails, *(1 - tails)]
    if near is None:
        ends = both.quantile(wanted)
    else:
        law = partial(_law, both)
        ends = invert(law, np.array(wanted), near, inside.lower, inside.upper, tol=_ENDS_TOLERANCE)
    return mean, sd, ends[: len(masses)], ends[len(masses) :]


def _law(series: Series, x: Float) -> tuple[Float, Float]:
    """Distribution function and density of each row at a point of its own."""
    return series.cumulative(x), series.density(x)


def lattice_rows(
    tables: Sequence[CountTable], prior: Prior, level: float, start: int = 0, scores: bool = False
) -> list[Row | None]:
    """Rows of small tables from rules of growing size, None where the largest two do not agree."""
    rows: list[Row | None] = [None] * len(tables)
    lattice, left, before = Lattice(tables, prior, scores), np.arange(len(tables)), None
    with np.errstate(all="ignore"):  # what cannot be resolved may overflow: NaN agrees with nothing
        for sizes in _LEVELS[start:]:
            found = lattice.results(left, sizes, level, before)
            if before is not None:
                good, errors = found.agrees(before), found.distance(before)
                for k in np.flatnonzero(good):
                    rows[left[k]] = found.row(k, float(errors[k]), lattice.cells[left[k]])
                left, found = left[~good], found.at(~good)
            if not left.size:
                break
            before = found
    return rows


def _start(table: CountTable, prior: Prior) -> int:
    """The level at which a table is tried first; beyond the last of `_STARTS` it is not small.

    The rules are those of p, q < ½: in another region every table is fitted on its own.
    """
    if prior.better_than_chance:
        return len(_STARTS)
    sharpness = max(table.replicates, table.individuals) + max(map(sum, prior))
    return len(_STARTS) if table.n.max(initial=0) > 60 else bisect_left(_STARTS, sharpness)


# All of them -----------------------------------------------------------------------------------------------


@dataclass
class _Job:
    """The distinct tables of a batch and how to fit them."""

    tables: list[CountTable]
    method: Method
    prior: Prior | None
    level: float
    scores: bool
    workers: int
    done: Done

    def run(self) -> list[Row]:
        """A row for each table."""
        rows: dict[int, Row] = {}
        if self.method == "bayes":
            self._in_threads(self._on_lattices, rows)
        if self.method == "map":
            self._in_threads(self._by_one_search, rows)
        rest = [i for i in range(len(self.tables)) if i not in rows]
        if self.method == "bayes" and self.workers > 1 and len(rest) >= _WORTH_PROCESSES:
            self._in_processes(rest, rows)
        for i in rest:
            if i not in rows:
                rows[i] = fit_row(self.method, self.tables[i], self.prior, self.level, self.scores)
                self.done([i])
        return [rows[i] for i in range(len(self.tables))]

    def _in_threads(self, tasks: Callable[[], Iterator[Task]], rows: dict[int, Row]) -> None:
        """Groups of tables, each at once: NumPy leaves Python's lock while it works, so threads do."""
        with ThreadPoolExecutor(self.workers) as pool:
            futures = {pool.submit(task): group for group, task in tasks()}
            for future in _completed(futures):
                found = dict(zip(futures[future], future.result(), strict=True))
                rows |= {i: row for i, row in found.items() if row is not None}
                self.done([i for i, row in found.items() if row is not None])

    def _on_lattices(self) -> Iterator[Task]:
        """Small tables on common nodes."""
        prior = self.prior or Prior()
        for start, group in self._small_groups(prior):
            tables = [self.tables[i] for i in group]
            yield group, partial(lattice_rows, tables, prior, self.level, start, self.scores)

    def _by_one_search(self) -> Iterator[Task]:
        """Tables of about as many cells by one search for their modes."""
        prior, sizes = self.prior or MAP_PRIOR, [len(table) for table in self.tables]
        left = [i for i, table in enumerate(self.tables) if len(table) and not table.fully_known]
        left.sort(key=sizes.__getitem__)
        while left:
            group = left[: max(1, min(_SEARCHED, _MOST_CELLS // sizes[left[0]]))]
            left = left[len(group) :]
            yield group, partial(self._modes, [self.tables[i] for i in group], prior)

    def _modes(self, tables: list[CountTable], prior: Prior) -> list[Row | None]:
        """Rows of tables; none if anything goes wrong, of which each will tell on its own."""
        try:
            refuse_no_mode(tables[0], prior)
            modes = Modes(tables, prior)
        except Exception:
            return [None] * len(tables)
        rates = modes.best.state.rates.T.tolist()
        rows: list[Row | None] = []
        for i, (table, plain) in enumerate(zip(tables, modes.plain, strict=True)):
            if plain:
                scores = score_at(table.n, table.s, *rates[i]).tolist() if self.scores else None
                rows.append(Row(tuple(rates[i]), scores=scores and tuple(scores)))
            else:
                rows.append(_row(modes.best_fit(i), self.level, self.scores))
        return rows

    def _small_groups(self, prior: Prior) -> Iterator[tuple[int, list[int]]]:
        """Small tables in groups of similar size that are made of the same kinds of individuals."""
        starts = [_start(table, prior) for table in self.tables]
        for start in range(len(_STARTS)):
            small = [i for i, own in enumerate(starts) if own == start]
            small.sort(key=lambda i: (self.tables[i].n.max(initial=0), self.tables[i].n.min(initial=0)))
            yield from ((start, group) for group in _groups(small, self.tables) if len(group) > 2)

    def _in_processes(self, rest: list[int], rows: dict[int, Row]) -> None:
        """Tables one by one, in other processes; those of a process that dies are left over."""
        chunks = [rest[i : i + _CHUNK] for i in range(0, len(rest), _CHUNK)]
        workers = [_Worker() for _ in range(min(self.workers, len(chunks)))]
        idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in workers:
            idle.put(worker)

        def fit(chunk: list[int]) -> list[Row] | None:
            worker = idle.get()
            try:
                tables = [self.tables[i] for i in chunk]
                return worker.fit(self.method, tables, self.prior, self.level, self.scores)
            finally:
                idle.put(worker)

        try:
            with ThreadPoolExecutor(len(workers)) as pool:
                futures = {pool.submit(fit, chunk): chunk for chunk in chunks}
                for future in _completed(futures):
                    found = future.result()
                    if found is not None:
                        rows |= dict(zip(futures[future], found, strict=True))
                        self.done(futures[future])
        finally:
            for worker in workers:
                worker.close()


def _groups(order: list[int], tables: list[CountTable]) -> Iterator[list[int]]:
    """Tables in groups that share the work, none of too many kinds of individuals."""
    group: list[int] = []
    kinds: set[tuple[int, int, int]] = set()
    for i in order:
        columns = (tables[i].n, tables[i].s, tables[i].known)
        own = set(zip(*(column.tolist() for column in columns), strict=True))
        if len(own) > _MOST_KINDS:
            continue
        if len(group) == _TOGETHER or len(kinds | own) > _MOST_KINDS:
            yield group
            group, kinds = [], set()
        group.append(i)
        kinds |= own
    if group:
        yield group


def _completed(futures: dict[Future[Any], Any]) -> Iterator[Future[Any]]:
    """Futures as they complete; the rest are cancelled if the caller stops."""
    try:
        yield from as_completed(futures)
    finally:
        for future in futures:
            future.cancel()


class _Worker:
    """Another Python that fits tables one by one.

    A forked process would share locks with the threads of the user's data frames; a spawned one would run the
    user's script again where it has no `if __name__ == "__main__"`. This one only imports binreps.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def fit(self, *job: Any) -> list[Row] | None:
        """The rows of some tables; None if the process cannot be started or dies over them."""
        try:
            process = self._process = self._process or self._start()
            pickle.dump(job, process.stdin)  # type: ignore[arg-type] # both ends are pipes
            process.stdin.flush()  # type: ignore[union-attr]
            rows: list[Row] = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
            return None
        return rows

    def _start(self) -> subprocess.Popen[bytes]:
        code = f"import sys; sys.path[:] = {sys.path!r}; from binreps.fits.batch import serve; serve()"
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, env=os.environ | one_thread
        )

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):  # what a dead process did not read
                    pipe.close()  # type: ignore[union-attr]
            self._process = None


def serve() -> None:
    """Fit what comes in at standard input and put rows out, until there is no more; what a worker runs."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not get in between
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            method, tables, *how = pickle.load(source)
            pickle.dump([fit_row(method, table, *how) for table in tables], target)
            target.flush()
