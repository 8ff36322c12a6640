"""One fit per group of a table: thousands of assays in, one tidy table out, in the engine the table lives in.

The engine counts individuals per group and (n, s); only these cells leave it. The fits know no dataframe.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Unpack

import narwhals.stable.v2 as nw
import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import DataError, OptionError
from binreps.fits.batch import COLUMNS, Method, Progress, fit_many
from binreps.model import Prior
from binreps.read.files import quoted
from binreps.read.tally import (
    _BAD,
    _CLASH,
    _KNOWN,
    _LOST,
    _NEGATIVES,
    _WEIGHT,
    Columns,
    Frame,
    N,
    Roles,
    S,
    _explain,
    _known_code,
    _listed,
    _marks,
    _warn_of_lost_rows,
    collected,
    individuals,
    open_frame,
    prepare,
    row_counts,
    warn,
    without_individual,
)

_ROWS = "__binreps_rows"
_EXPLAINED = 50  # groups whose first wrong values are looked up

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("individuals", "replicates", "cells"), nw.Int64),
    "identifiable": nw.Boolean,
    "reason": nw.String,
}  # the others are Float64


def fit_by(
    frame: Any,
    *,
    by: str | Sequence[str],
    method: Method = "bayes",
    prior: Prior | None = None,
    level: float = 0.9,
    prefix: str = "",
    workers: int | None = None,
    progress: Progress | None = None,
    **columns: Unpack[Columns],
) -> Any:
    """Fit every group of a table on its own, and give one row per group back, in the same kind of table.

    Groups with equal counts are fitted once; all cores are used. A group that cannot be read or fitted is a
    row with its reason. Rows are sorted by the group. The same individual in two groups is two individuals.

    Parameters
    ----------
    frame : dataframe
        Any that `count_table` reads; of a lazy one only the cells of each group are collected.
    by : str or list of str
        Column, or columns together, that say to which group a row belongs. Rows where one is missing are
        dropped, with a warning that says how many.
    method, prior, level, workers, progress
        As in `fit_many`.
    prefix : str
        Put before the names of the result's columns, for groups whose columns have such names.
    **columns
        Which column plays which part, as in `count_table`: `individual` and `result`, or `replicates`, or
        `n` and `s`; `weight`, `known`, `positive`, `negative`.

    Returns
    -------
    dataframe
        Of the type of `frame`: the columns of `by`; individuals, replicates and cells; identifiable, whether
        the data alone can tell the rates apart; prevalence, false_positive, false_negative, each with _lower
        and _upper; log_evidence; error, the numerical error; and reason, null where all is well.

    Examples
    --------
    >>> import pyarrow
    >>> wells = pyarrow.table(
    ...     {"assay": ["a", "a", "a", "b", "b"], "tests": [3, 3, 3, 3, 0], "hits": [0, 3, 1, 0, 0]}
    ... )
    >>> answers = fit_by(wells, by="assay", n="tests", s="hits", method="median")
    >>> answers.select(["assay", "individuals", "prevalence", "false_negative", "reason"]).to_pylist()[0]
    {'assay': 'a', 'individuals': 3, 'prevalence': 0.3333333333333333, 'false_negative': 0.0, 'reason': None}
    """
    roles = Roles.of(**columns)
    names = _by_names(by, roles)
    original = open_frame(frame)
    _check_by(original, names, prefix)
    if roles.rater is not None:
        warn(f"the model gives every rater the same error rates, so column {roles.rater!r} is not used")
    table, roles = prepare(frame, roles)
    groups = grouped_counts(table, roles, names)
    readable = [i for i, reason in enumerate(groups.reasons) if reason is None]
    if groups.reasons and not readable:
        raise DataError(f"no group can be read; the first one: {groups.reasons[0]}")
    tables = [groups.tables[i] for i in readable]
    fits = fit_many(tables, method=method, prior=prior, level=level, workers=workers, progress=progress)
    columns_of = _results(groups, dict(zip(readable, fits.table(), strict=True)))
    engine = groups.keys.implementation
    series = [
        nw.new_series(prefix + name, values, _TYPES.get(name, nw.Float64), backend=engine)
        for name, values in columns_of.items()
    ]
    return _like(original, groups.keys.with_columns(*series), len(names))


def _by_names(by: str | Sequence[str], roles: Roles) -> list[str]:
    """The columns of the groups."""
    names = [by] if isinstance(by, str) else list(by)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"by must be a column's name or several, got {by!r}")
    twice = [name for name in names if names.count(name) > 1 or name in roles.used]
    if twice:
        raise OptionError(f"column {twice[0]!r} is named for two different parts")
    return names


def _check_by(original: Frame, names: list[str], prefix: str) -> None:
    """Refuse groups that are not there, or that have the name of a result."""
    have = original.collect_schema().names()
    for name in names:
        if name not in have:
            raise DataError(f"there is no column {name!r}; the columns are {_listed(have)}")
    taken = [
        name for name in names if name.casefold() in {(prefix + column).casefold() for column in COLUMNS}
    ]
    if taken:
        advice = "give a prefix for the results, such as prefix='fit_'"
        raise DataError(f"column {taken[0]!r} has the name of a result; {advice}")


def _without_group(table: Frame, by: list[str]) -> nw.Expr:
    """Whether a row does not say to which group it belongs."""
    schema = table.collect_schema()
    tests = [nw.col(name).is_null() for name in by]
    tests += [nw.col(name).is_nan() for name in by if schema[name].is_float()]
    return nw.any_horizontal(*tests, ignore_nulls=True)


@dataclass(frozen=True)
class Groups:
    """The groups of a table: their columns, one row each, their counts, and why some have none."""

    keys: Any  # an eager nw.DataFrame
    tables: list[CountTable]  # of a group that cannot be read: all that could
    reasons: list[str | None]


def grouped_counts(frame: Frame, roles: Roles, by: list[str]) -> Groups:
    """The count table of every group, in one pass over a prepared frame."""
    cells = _with_group(frame, collected(_grouped_cells(frame, roles, by)), by)
    lists = {
        name: [int(value) for value in cells[name].to_list()] for name in cells.columns if name not in by
    }
    if any(lists.get(_LOST, ())):
        _warn_of_lost_rows(frame, roles)
    places: dict[tuple[Any, ...], list[int]] = {}
    for i, key in enumerate(zip(*(cells[name].to_list() for name in by), strict=True)):
        places.setdefault(key, []).append(i)
    with suppress(TypeError):  # values of several types have no order
        places = dict(sorted(places.items()))
    tables, reasons, explained = [], [], 0
    for key, rows in places.items():
        own = {name: [values[i] for i in rows] for name, values in lists.items()}
        reason = _unreadable(own, roles)
        if reason is not None and any(own[_BAD]) and explained < _EXPLAINED:
            group = (nw.col(name) == value for name, value in zip(by, key, strict=True))
            reason, explained = str(_explain(frame.filter(*group), roles)), explained + 1
        tables.append(_count_table(own))
        reasons.append(reason)
    keys = cells.select(*by)[[rows[0] for rows in places.values()]]
    return Groups(nw.maybe_reset_index(keys), tables, reasons)


def _with_group(frame: Frame, cells: Any, by: list[str]) -> Any:
    """The cells that belong to a group; a warning says how many rows do not."""
    without = _without_group(cells, by)
    if not len(cells.filter(without)):
        return cells
    rows = collected(frame.filter(_without_group(frame, by)).select(nw.len().alias(_ROWS)))[_ROWS].to_list()[
        0
    ]
    where = " and ".join(repr(name) for name in by)
    warn(f"{rows:,} row{'s' * (rows != 1)} without a group in column {where} dropped")
    return cells.filter(~without)


def _grouped_cells(frame: Frame, roles: Roles, by: list[str]) -> Frame:
    """Individuals per group and (n, s), lazily, with the totals that tell whether something was wrong."""
    if roles.individual:
        people = individuals(frame, replace(roles, individual=(*by, *roles.individual)))
    else:
        people = frame.select(*by, **row_counts(frame, roles))
    mark, total = _marks(people)
    n, s, negatives = (nw.col(name).cast(nw.Int64) for name in (N, S, _NEGATIVES))
    columns, totals = {N: n, S: s, _BAD: n - s - negatives}, [nw.col(_BAD).sum()]
    if roles.known is not None:
        columns[_KNOWN] = _known_code()
    if roles.individual:
        columns[_LOST] = mark(without_individual(roles))
        totals.append(total(_LOST))
    if _WEIGHT in people.collect_schema().names():
        columns[_WEIGHT] = nw.col(_WEIGHT)
        totals.append(nw.col(_WEIGHT).sum())
    else:
        totals.append(nw.len().alias(_WEIGHT))
    kinds = [name for name in (N, S, _KNOWN) if name in columns]
    return people.select(*by, **columns).group_by(*by, *kinds).agg(*totals)


def _count_table(own: dict[str, list[int]]) -> CountTable:
    """The counts of one group; of results that cannot be read, only those that can."""
    n, s, weight, bad = (np.array(own[name], np.int64) for name in (N, S, _WEIGHT, _BAD))
    lost = np.array(own.get(_LOST, [0] * n.size), np.int64)
    known = np.array(own.get(_KNOWN, [UNKNOWN] * n.size), np.int8)
    if bad.any():
        n = np.maximum(n - bad, s)
    return CountTable(n, s, weight - lost, np.where(known > 1, np.int8(UNKNOWN), known))


def _unreadable(own: dict[str, list[int]], roles: Roles) -> str | None:
    """Why the cells of a group cannot be used, if they cannot."""
    if any(own[_BAD]):
        return "there are results or counts that cannot be read"
    worst = max(own.get(_KNOWN, [UNKNOWN]))
    if worst > 1:
        words = "0/1, true/false, positive/negative, yes/no, +/− or missing"
        rule = "give one status per individual" if worst == _CLASH else f"hold {words}"
        return f"column {roles.known!r} must {rule}"
    return None


def _results(groups: Groups, fitted: dict[int, dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns of the answer, groups that could not be read included."""
    rows = []
    for i, (table, reason) in enumerate(zip(groups.tables, groups.reasons, strict=True)):
        unread = {"individuals": table.individuals, "replicates": table.replicates, "cells": len(table)}
        rows.append(fitted.get(i) or {**unread, "identifiable": table.identifiable, "reason": reason})
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def _like(original: Frame, answer: Any, groups: int) -> Any:
    """A small table as the user's kind of table, lazy if theirs is."""
    engine, native = original.implementation, original.to_native()
    if isinstance(original, nw.DataFrame):
        return answer.to_native()
    if engine.is_polars():
        return answer.lazy().to_native()
    if engine.is_duckdb():
        return _duckdb_table(native, answer, groups)
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return _spark_table(native, answer, groups)
    return nw.from_native(answer.to_arrow(), eager_only=True).lazy(backend=engine).to_native()


def _duckdb_table(relation: Any, answer: Any, groups: int) -> Any:
    """A table on the user's own connection, which only a relation made from theirs is sure to use."""
    sql = {nw.Int64: "BIGINT", nw.Float64: "DOUBLE", nw.String: "VARCHAR", nw.Boolean: "BOOLEAN"}
    own = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    parts = []
    for i, (name, dtype) in enumerate(answer.schema.items()):
        kind = own[name] if i < groups else sql[type(dtype)]
        literals = ", ".join(_sql_literal(value) for value in answer[name].to_list())
        parts.append(f"unnest([{literals}]::{kind}[]) AS {quoted(name)}")
    return relation.limit(0).aggregate("count(*) AS one").project(", ".join(parts))


def _spark_table(native: Any, answer: Any, groups: int) -> Any:
    """A table on the user's own session; before Spark 4, made of rows, which workers read with Python."""
    session = native.sparkSession
    if int(session.version.split(".")[0]) >= 4:
        return session.createDataFrame(answer.to_arrow())
    kinds = {nw.Int64: "long", nw.Float64: "double", nw.String: "string", nw.Boolean: "boolean"}
    names = answer.columns
    schema = native.select(*names[:groups]).schema
    for name in names[groups:]:
        schema = schema.add(name, kinds[type(answer.schema[name])])
    return session.createDataFrame(answer.rows(), schema)


def _sql_literal(value: object) -> str:
    """A value in DuckDB's SQL, to be cast."""
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"
