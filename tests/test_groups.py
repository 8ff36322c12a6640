"""Counts of every group: each equals the count table of its own rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from binreps import BinrepsWarning, DataError, OptionError, count_table, count_tables, fit_populations

RNG = np.random.default_rng(1)
ROWS = {
    "site": RNG.choice(["north", "south", "east"], 400).tolist(),
    "patient": RNG.integers(0, 60, 400).tolist(),
    "test": RNG.choice(["pos", "neg", ""], 400).tolist(),
}
COLUMNS = {"individual": "patient", "result": "test"}
ENGINES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_each_group_has_the_counts_of_its_own_rows(engine: str) -> None:
    found = count_tables(ENGINES[engine](ROWS), by="site", **COLUMNS)
    frame = pl.DataFrame(ROWS)
    assert list(found) == ["east", "north", "south"]
    for site, counts in found.items():
        assert counts == count_table(frame.filter(pl.col("site") == site), **COLUMNS)


def test_several_columns_make_a_tuple() -> None:
    frame = pl.DataFrame({**ROWS, "year": RNG.choice([2025, 2026], 400)})
    found = count_tables(frame, by=["site", "year"], **COLUMNS)
    assert len(found) == 6
    assert found["north", 2026] == count_table(
        frame.filter((pl.col("site") == "north") & (pl.col("year") == 2026)), **COLUMNS
    )


def test_the_groups_are_what_a_fit_of_populations_takes() -> None:
    assert fit_populations(count_tables(pl.DataFrame(ROWS), by="site", **COLUMNS)).names == (
        "east",
        "north",
        "south",
    )


def test_a_group_that_cannot_be_read_is_named() -> None:
    frame = pl.DataFrame({"site": ["a", "b"], "n": [3, 2], "s": [1, 5]})
    with pytest.raises(DataError, match=r"0 ≤ s ≤ n.* got n = 2, s = 5 \(where site = 'b'\)"):
        count_tables(frame, by="site", n="n", s="s")


def test_rows_without_a_group_are_dropped_aloud() -> None:
    frame = pl.DataFrame({"site": ["a", None, "a"], "n": [3, 2, 1], "s": [1, 1, 0]})
    with pytest.warns(BinrepsWarning, match="1 row without a group in column 'site' dropped"):
        found = count_tables(frame, by="site", n="n", s="s")
    assert found["a"].individuals == 2


@pytest.mark.parametrize(
    ("by", "error", "sentence"),
    [
        ([], OptionError, "by must be a column's name"),
        ("n", OptionError, "'n' is named for two"),
        ("area", DataError, "there is no column 'area'"),
    ],
)
def test_groups_that_cannot_be(by: object, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        count_tables(pl.DataFrame({"site": ["a"], "n": [3], "s": [1]}), by=by, n="n", s="s")
