"""A small table beside the user's own: in its engine, on its connection or session."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from binreps.tables.sql import beside
from binreps.tables.tally import Frame

_SQL = {nw.Int64: "BIGINT", nw.Float64: "DOUBLE", nw.String: "VARCHAR"}


def table_beside(original: Frame, columns: dict[str, list[Any]], types: dict[str, Any]) -> Frame:
    """Columns as a table that can be joined to the user's."""
    engine, native = original.implementation, original.to_native()
    if isinstance(original, nw.DataFrame):
        return _small_table(columns, types, engine)
    if engine.is_duckdb():
        return nw.from_native(beside(native, columns, {name: _SQL[types[name]] for name in columns}))
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return nw.from_native(_spark_table(native.sparkSession, columns, types))
    if engine.is_polars():
        return _small_table(columns, types, engine).lazy()
    return _small_table(columns, types, "pyarrow").lazy(backend=engine)


def _small_table(columns: dict[str, list[Any]], types: dict[str, Any], backend: Any) -> Frame:
    """An eager table from columns; a series keeps None where `from_dict` makes it text in older pandas."""
    return nw.from_dict(
        {name: nw.new_series(name, values, types[name], backend=backend) for name, values in columns.items()}
    )


def _spark_table(session: Any, columns: dict[str, list[Any]], types: dict[str, Any]) -> Any:
    """A table on the user's own session, sent to every worker instead of shuffling the rows.

    It is written in SQL: from Python rows, Spark would need Python on the workers to read it. The first row
    is null, which joins nothing; it gives the columns their types, also where there is no other row.
    """
    sql = {nw.Int64: "BIGINT", nw.Float64: "DOUBLE", nw.String: "STRING"}
    kinds = [sql[types[name]] for name in columns]
    rows = [(None,) * len(kinds), *zip(*columns.values(), strict=True)]
    values = ", ".join(
        "(" + ", ".join(_spark_literal(v, kind) for v, kind in zip(row, kinds, strict=True)) + ")"
        for row in rows
    )
    names = ", ".join(f"`{name.replace('`', '``')}`" for name in columns)
    return session.sql(f"SELECT * FROM VALUES {values} AS lookup({names})").hint("broadcast")


def _spark_literal(value: object, kind: str) -> str:
    """A value in Spark's SQL."""
    return f"CAST({'NULL' if value is None else repr(str(value))} AS {kind})"
