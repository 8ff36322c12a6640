"""Tables with sources: who said what, out of the user's engine.

::

    rows ──► (individual, source, yes, no) ──► Readings        a long table; counted in the engine
    rows ──► patterns of yes and no, weighed ──► Readings      a wide table, whose columns are the sources

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from binreps.counts import UNKNOWN
from binreps.errors import DataError
from binreps.notes import Note
from binreps.readings import Readings, encoded
from binreps.tables.design import (
    as_levels,
    as_plain,
    check_constant,
    check_covariates,
    covariate_values,
    with_pattern,
)
from binreps.tables.opened import Reading
from binreps.tables.roles import Roles
from binreps.tables.tally import (
    KNOWN,
    NEGATIVES,
    TEXT,
    WEIGHT,
    Frame,
    N,
    S,
    collected,
    dropped_note,
    individuals,
    known_code,
    row_counts,
    without_individual,
)

SOURCE = "__binreps_source"
MOST = 10_000_000
"""Readings that are held in memory, unless the user says otherwise: a gigabyte while they are fitted."""


@dataclass(frozen=True)
class Whose:
    """The columns that say who was read: a population, or covariates; and how these become a design."""

    columns: tuple[str, ...] = ()
    by_population: bool = False
    from_file: bool = False
    reference: Mapping[str, Any] | None = None
    missing_covariates: str = "refuse"
    formula: Any = None

    def prepared(self, frame: Frame, roles: Roles) -> tuple[Frame, Roles]:
        """The table with these columns plain, and its roles; one value for each individual."""
        if not self.columns:
            return frame, roles
        if self.by_population:
            name = self.columns[0]
            kind = frame.collect_schema()[name]
            if not (kind.is_integer() or kind in TEXT):
                raise DataError(f"column {name!r} must hold text or whole numbers, as it names populations")
            frame = frame.filter(~nw.col(name).is_null()).with_columns(nw.col(name).cast(nw.String))
            return frame, replace(roles, individual=(name, *roles.individual) if roles.individual else ())
        own = replace(roles, covariates=self.columns)
        check_covariates(frame, own)
        frame = as_plain(frame, own)
        if roles.individual:
            check_constant(frame.select(*roles.individual, *self.columns).unique(), own)
        return frame, roles

    def patterned(self, frame: Frame) -> Frame:
        """The table with these columns as one text."""
        return with_pattern(frame, Roles(results=("",), covariates=self.columns))

    def people(self, readings: Readings, found: Any, rows: Any) -> Readings:
        """Readings with who they are of, in the rows of collected columns."""
        if not self.columns:
            return readings
        values = self.values(found)
        own = {name: column[rows] for name, column in values.items()}
        if self.by_population:
            return readings.in_populations(own[self.columns[0]].tolist())
        how: Any = {"missing_covariates": self.missing_covariates, "formula": self.formula}
        return readings.with_covariates(own, reference=as_levels(self.reference, own), **how)

    def values(self, found: Any, numbers: Sequence[str] | None = None) -> dict[str, Any]:
        """The values of collected columns: numbers, or text."""
        if self.by_population:
            return {name: np.array(found[name].to_list(), dtype=object) for name in self.columns}
        return {
            name: covariate_values(found, name, self.from_file if numbers is None else name in numbers)
            for name in self.columns
        }


def whose(reading: Reading, **how: Any) -> Whose:
    """Who was read, by the columns of a table that was read."""
    roles = reading.roles
    columns = roles.covariates if reading.population is None else (reading.population,)
    from_file = reading.table.files is not None
    return Whose(tuple(columns), reading.population is not None, from_file, **how)


def source_readings(
    reading: Reading, most: int = MOST, seed: int = 1, who: Whose | None = None
) -> tuple[Readings, tuple[Note, ...]]:
    """Who said what in a table that was read, and what to know of it; a random part of very many."""
    roles, who = reading.roles, who or whose(reading)
    if not roles.results:
        raise DataError("counts do not say who gave which result: sources need a long or a wide table")
    if not roles.long:
        return _patterns(reading.frame, roles, who), ()
    if roles.source is None:
        raise DataError("a long table needs source, the column that says who gave the result")
    return _pairs(reading, most, seed, who)


def grouped_readings(reading: Reading, column: str) -> Readings:
    """The results of a long table by any of its columns, such as batch or time, as text."""
    frame = reading.frame.with_columns(nw.col(column).cast(nw.String))
    roles = replace(reading.roles, source=column)
    nobody = Whose()
    return _pairs(replace(reading, frame=frame, roles=roles), MOST, 1, nobody)[0]


# Out of the engine -----------------------------------------------------------------------------------


def _pairs(reading: Reading, most: int, seed: int, who: Whose) -> tuple[Readings, tuple[Note, ...]]:
    """Readings of a long table, counted for each individual and source."""
    frame, roles = who.prepared(with_source(reading.frame, reading.roles), reading.roles)
    notes = []
    whole = reading.everyone
    share = most / max(whole.replicates, 1)
    if share < 1:
        frame = _some(frame, roles, share, seed)
    whose = [name for name in who.columns if name not in roles.individual]
    keys = (*roles.individual, *whose, SOURCE)
    pairs = individuals(frame, replace(roles, individual=keys, source=None, covariates=()))
    status = {KNOWN: known_code()} if roles.known is not None else {}
    pairs = pairs.filter(~without_individual(roles))
    found = collected(pairs.select(*keys, S, NEGATIVES, **status))
    source = found[SOURCE]
    lost = int(source.is_null().sum())
    if lost:
        rows = int(found.filter(source.is_null())[S].sum() + found.filter(source.is_null())[NEGATIVES].sum())
        notes.append(dropped_note("source", rows, [str(roles.source)]))
        found = found.filter(~source.is_null())
    if share < 1:
        notes.append(_part_note(most))
    return _encoded_pairs(found, roles, who), tuple(notes)


def _part_note(most: int) -> Note:
    said = f"the error rates were learned from a random part of the individuals, of about {most:,} readings"
    return Note("part-of-the-readings", said)


def _encoded_pairs(found: Any, roles: Roles, who: Whose) -> Readings:
    """Counts of each individual and source as readings; sources are sorted: any order gives the same."""
    of = np.zeros(len(found), np.int64)
    for name in roles.individual:
        names, codes = _codes(found[name])
        of = np.unique(of * len(names) + codes, return_inverse=True)[1].ravel()
    names, by = _codes(found[SOURCE])
    order = np.argsort(np.array([str(name) for name in names], dtype=object), kind="stable")
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    status = np.full(int(of.max(initial=-1)) + 1, UNKNOWN, np.int8)
    if KNOWN in found.columns:
        np.maximum.at(status, of, found[KNOWN].to_numpy().astype(np.int8))
    yes, no = (found[name].to_numpy().astype(np.int64) for name in (S, NEGATIVES))
    readings = Readings.counted([names[i] for i in order], of, place[by], yes, no, status)
    return who.people(readings, found, np.unique(of, return_index=True)[1]).merged()


def _codes(series: Any) -> tuple[Sequence[Any], np.ndarray[Any, Any]]:
    """The different values of a column, and the number of each."""
    import pyarrow

    try:
        arrow = series.to_arrow()
        whole = arrow.combine_chunks() if isinstance(arrow, pyarrow.ChunkedArray) else arrow
        coded = whole.dictionary_encode()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError, AttributeError):
        return encoded(series.name, series.to_list())
    return coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _some(frame: Frame, roles: Roles, share: float, seed: int) -> Frame:
    """The rows of about that share of the individuals, chosen by a hash of who they are."""
    names, bar = list(roles.individual), round(share * 10_000)
    engine, native = frame.implementation, frame.to_native()
    if engine.is_duckdb():
        listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        return nw.from_native(native.filter(f"hash({listed}, {seed}) % 10000 < {bar}"))
    if engine.is_polars():
        import polars

        return nw.from_native(native.filter(polars.struct(names).hash(seed) % 10_000 < bar))
    if engine.is_pyspark() or engine.is_pyspark_connect():
        from pyspark.sql import functions

        key = functions.xxhash64(*names, functions.lit(seed))
        return nw.from_native(native.filter(functions.pmod(key, functions.lit(10_000)) < bar))
    chosen = np.zeros(len(frame), np.int64)
    for name in names:
        values, codes = _codes(frame[name])
        chosen = np.unique(chosen * len(values) + codes, return_inverse=True)[1].ravel()
    lots = np.random.default_rng(seed).random(int(chosen.max(initial=0)) + 1)
    return frame.filter((lots < share)[chosen].tolist())


def _patterns(frame: Frame, roles: Roles, who: Whose) -> Readings:
    """Readings of a wide table, whose columns are the sources."""
    frame, roles = who.prepared(frame, roles)
    keys = [*pattern_keys(roles), *who.columns]
    table = pattern_counts(frame, roles, who.columns)
    have = table.collect_schema().names()
    status = [KNOWN] if KNOWN in have else []
    weight = [nw.col(WEIGHT).sum()] if WEIGHT in have else [nw.len().alias(WEIGHT)]
    found = collected(table.group_by(*keys, *status).agg(*weight))
    known = np.asarray(found[KNOWN].to_list(), np.int8) if status else np.full(len(found), UNKNOWN, np.int8)
    readings = _of_patterns(found, roles, known, np.asarray(found[WEIGHT].to_list(), np.int64))
    return who.people(readings, found, slice(None)).merged()


def pattern_readings(found: Any, roles: Roles) -> Readings:
    """The rows of collected patterns as records, in their order."""
    return _of_patterns(found, roles, np.full(len(found), UNKNOWN, np.int8), None)


def _of_patterns(found: Any, roles: Roles, known: Any, weight: Any) -> Readings:
    rows, size = len(found), len(roles.results)
    said = np.array([found[key].to_list() for key in pattern_keys(roles)], np.int64).reshape(2, -1)
    of, by = np.tile(np.arange(rows), size), np.repeat(np.arange(size), rows)
    return Readings.counted(roles.results, of, by, said[0], said[1], known, weight)


def pattern_keys(roles: Roles) -> list[str]:
    """The columns with yes of each source, then no of each source."""
    return [f"{SOURCE}{i}" for i in range(2 * len(roles.results))]


def pattern_counts(frame: Frame, roles: Roles, more: Sequence[str] = ()) -> Frame:
    """Yes and no of each source for each row, or each individual of several rows, of a wide table."""
    more = [name for name in more if name not in roles.individual]
    columns: dict[str, nw.Expr] = {}
    for i, name in enumerate(roles.results):
        one = row_counts(frame, replace(roles, results=(name,), known=None, weight=None))
        columns[f"{SOURCE}{i}"] = one[S].cast(nw.Int64)
        columns[f"{SOURCE}{i + len(roles.results)}"] = one[NEGATIVES].cast(nw.Int64)
    counts = row_counts(frame, roles)
    kept = {name: one for name, one in counts.items() if name not in (N, S, NEGATIVES)}
    table = frame.select(*roles.individual, *more, **columns, **kept)
    if roles.individual:
        table = table.filter(~without_individual(roles))
        table = table.group_by(*roles.individual, *more).agg(nw.col(*columns, *kept).sum())
    if roles.known is not None:
        table = table.with_columns(known_code().alias(KNOWN))
    return table


def with_source(frame: Frame, roles: Roles) -> Frame:
    """The table with its sources as text, null where there is none."""
    name = str(roles.source)
    kind = frame.collect_schema()[name]
    text = nw.col(name).cast(nw.String)
    if kind.is_float():  # whole numbers beside missing ones, in pandas
        given = ~nw.col(name).is_nan() & ~nw.col(name).is_null()
        text = nw.when(given).then(text.str.replace_all("[.]0$", ""))
    elif not (kind.is_integer() or kind in TEXT or kind == nw.Boolean):
        raise DataError(f"column {name!r} must hold text or whole numbers, as it names sources")
    return frame.with_columns(text.alias(SOURCE))
