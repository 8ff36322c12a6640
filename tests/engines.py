"""The same table in every engine, and back: what the tests of the data path share."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

Rows = list[dict[str, Any]]

_OPEN: deque[duckdb.DuckDBPyConnection] = deque(maxlen=100)  # a relation may not keep its connection open
atexit.register(_OPEN.clear)


def to_duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    _OPEN.append(duckdb.connect())  # not DuckDB's default connection
    return _OPEN[-1].from_arrow(table)


def to_ibis(table: pa.Table) -> Any:
    import ibis

    return ibis.memtable(table)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)  # floats would merge large ids


def to_pandas_nullable(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def to_pandas_shuffled_index(table: pa.Table) -> pd.DataFrame:
    frame = to_pandas(table)
    return frame.set_axis([f"row {7 * i % 5}" for i in range(len(frame))], axis=0)


EAGER: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": to_pandas,
    "pandas-arrow": to_pandas_nullable,
    "pandas-index": to_pandas_shuffled_index,
    "polars": pl.from_arrow,
    "pyarrow": lambda table: table,
}
LAZY: dict[str, Callable[[pa.Table], Any]] = {
    "polars-lazy": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": to_duckdb,
    "ibis": to_ibis,
}
ENGINES = EAGER | LAZY


def lazy_with_passes() -> tuple[pl.LazyFrame, list[int]]:
    """A small lazy table of results, and a list that grows by one whenever its rows are read."""
    passes: list[int] = []

    def seen(frame: pl.DataFrame) -> pl.DataFrame:
        passes.append(frame.height)
        return frame

    rows = pl.LazyFrame({"who": [1, 1, 2], "test": [0, 1, 1]})
    return rows.map_batches(seen, streamable=False), passes


def rows_of(frame: Any) -> Rows:
    """The rows of any engine's table, with None for every null."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    if isinstance(frame, pd.DataFrame):
        return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in frame.to_dict("records")]
    if hasattr(frame, "to_pyarrow"):
        frame = frame.to_pyarrow()
    elif isinstance(frame, duckdb.DuckDBPyRelation):
        frame = frame.to_arrow_table()
    return frame.to_pylist() if isinstance(frame, pa.Table) else [row.asDict() for row in frame.collect()]


def by_key(rows: Rows) -> Rows:
    """Rows in an order that does not depend on the engine."""
    return sorted(rows, key=repr)
