"""One fit per group of a table: thousands of assays in, one tidy table out, in the engine the table lives in.

The engine counts individuals per group and (n, s); only these cells leave it. The fits know no dataframe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import narwhals.stable.v2 as nw
import numpy as np

from binreps.errors import DataError
from binreps.fits.batch import COLUMNS, Method, Progress, fit_many
from binreps.model import Prior
from binreps.notes import Note, warn_of
from binreps.options import kinds_checked
from binreps.table import Table
from binreps.tables.groups import Groups, group_names, grouped_counts
from binreps.tables.opened import is_path, open_table
from binreps.tables.roles import Columns, Roles
from binreps.tables.sql import beside
from binreps.tables.tally import Frame, open_frame, prepare

CELL_COLUMNS = ("n", "s", "weight", "score")
"""What is added if scores are asked for: a row is then one (n, s) of a group."""

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("individuals", "replicates", "cells", "n", "s", "weight"), nw.Int64),
    "identifiable": nw.Boolean,
    "reason": nw.String,
}  # the others are Float64


@kinds_checked
def fit_by(
    table: Any,
    *,
    by: str | Sequence[str],
    method: Method = "bayes",
    prior: Prior | None = None,
    level: float = 0.9,
    scores: bool = False,
    prefix: str = "",
    workers: int | None = None,
    progress: Progress | None = None,
    memory: str | None = None,
    **columns: Unpack[Columns],
) -> Any:
    """Fit every group of a table on its own, and give one row per group back, in the same kind of table.

    Groups with equal counts are fitted once; all cores are used. A group that cannot be read or fitted is a
    row with its reason. Rows are sorted by the group. The same individual in two groups is two individuals.

    Parameters
    ----------
    table : dataframe, path or list of paths
        Any that `count_table` reads; of a lazy one only the cells of each group are collected.
    by : str or list of str
        Column, or columns together, that say to which group a row belongs. Rows where one is missing are
        dropped, with a warning that says how many.
    method, prior, level, workers, progress
        As in `fit_many`.
    scores : bool
        Whether to give the scores too: then there is a row for each (n, s) of a group, with the number of
        its individuals and their score, and what is said of the group is repeated.
    prefix : str
        Put before the names of the result's columns, for groups whose columns have such names.
    **columns
        Which column plays which part, as in `count_table`: `individual` and `result`, or `replicates`, or
        `n` and `s`; `weight`, `known`, `positive`, `negative`.

    Returns
    -------
    dataframe
        Of the type of `table`: the columns of `by`; individuals, replicates and cells; identifiable, whether
        the data alone can tell the rates apart; prevalence, false_positive, false_negative, each with _lower
        and _upper; log_evidence; error, the numerical error; and reason, null where all is well. With scores
        also n, s, weight and score.

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
    wanted = [*roles.used, *([by] if isinstance(by, str) else by)]
    how: Any = {"method": method, "prior": prior, "level": level, "scores": scores}
    how |= {"workers": workers, "progress": progress}
    with open_table(table, wanted, memory=memory) as opened:
        original = open_frame(opened.frame)
        answer, names, notes = fitted_groups(original, by, roles, prefix, **how)
        warn_of(notes)
        if is_path(table) or isinstance(table, Table):
            return rows_table(answer)
        return _like(original, answer, len(names))


def fitted_groups(
    original: Any, by: str | Sequence[str], roles: Roles, prefix: str = "", **how: Any
) -> tuple[Any, list[str], tuple[Note, ...]]:
    """One row per group, eager, the columns of the groups, and what to know of the reading."""
    original = open_frame(original)
    names = group_names(original, by, roles)
    _check_names(names, prefix, COLUMNS + CELL_COLUMNS if how.get("scores") else COLUMNS)
    table, roles = prepare(original, roles)
    groups = grouped_counts(table, roles, names)
    readable = [i for i, reason in enumerate(groups.reasons) if reason is None]
    if groups.reasons and not readable:
        raise DataError(f"no group can be read; the first one: {groups.reasons[0]}")
    fits = fit_many([groups.tables[i] for i in readable], **how)
    columns_of = _results(groups, dict(zip(readable, fits.table(), strict=True)))
    keys, engine = groups.keys, groups.keys.implementation
    if fits.scored:
        place, columns_of = _by_cell(groups, columns_of, dict(zip(readable, fits.scores, strict=True)))
        keys = nw.maybe_reset_index(keys[place])
    series = [
        nw.new_series(prefix + name, values, _TYPES.get(name, nw.Float64), backend=engine)
        for name, values in columns_of.items()
    ]
    return keys.with_columns(*series), names, groups.notes


def rows_table(answer: Any) -> Table:
    """A small eager frame as a table of ours."""
    return Table({name: answer[name].to_list() for name in answer.columns})


def _by_cell(
    groups: Groups, columns: dict[str, list[Any]], scores: dict[int, Any]
) -> tuple[list[int], dict[str, list[Any]]]:
    """Which group each row is about, and the columns: a row for each cell, one for a group without any."""
    rows: list[tuple[int, Any, Any, Any, Any]] = []
    for i, table in enumerate(groups.tables):
        own = [None if score != score else score for score in scores.get(i, [np.nan] * len(table))]
        cells = zip(table.n.tolist(), table.s.tolist(), table.weight.tolist(), own, strict=True)
        rows += [(i, *cell) for cell in cells] or [(i, None, None, None, None)]
    place, *values = (list(column) for column in zip(*rows, strict=True))
    repeated = {name: [column[i] for i in place] for name, column in columns.items()}
    return place, dict(zip(CELL_COLUMNS, values, strict=True)) | repeated


def _check_names(names: list[str], prefix: str, results: Sequence[str]) -> None:
    """Refuse groups that have the name of a result."""
    taken = [
        name for name in names if name.casefold() in {(prefix + column).casefold() for column in results}
    ]
    if taken:
        advice = "give a prefix for the results, such as prefix='fit_'"
        raise DataError(f"column {taken[0]!r} has the name of a result; {advice}")


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
    """The answer on the user's own connection; groups keep their types."""
    sql = {nw.Int64: "BIGINT", nw.Float64: "DOUBLE", nw.String: "VARCHAR", nw.Boolean: "BOOLEAN"}
    own = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    names = answer.columns
    kinds = {name: own[name] for name in names[:groups]}
    kinds |= {name: sql[type(answer.schema[name])] for name in names[groups:]}
    return beside(relation, {name: answer[name].to_list() for name in names}, kinds)


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
