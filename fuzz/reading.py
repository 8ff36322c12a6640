"""Tables and files: guessed columns, data frames, and damaged CSV, Parquet, Arrow and Excel files."""

from __future__ import annotations

import gzip
import io
import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from binreps.counts import CountTable
from binreps.run.analysis import Settings
from binreps.run.front import analyse
from binreps.run.recipe import recipe_of
from binreps.tables.guess import guess_columns
from binreps.tables.opened import count_table
from fuzz import values
from fuzz.verdict import WrongError, is_probability

PARTS = (
    *("individual", "result", "replicates", "n", "s", "weight", "known", "source", "covariates", "time"),
    *("batch", "positive", "negative", "missing"),
)


def frame(rng: Random, _: Path) -> None:
    """`count_table` on data frames of three engines."""
    table = _table(rng)
    try:
        made = rng.choice((pd.DataFrame, pl.DataFrame, pa.table))(table)
    except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
        return  # what no engine can hold is no input
    _agrees(count_table(made, **_roles(rng, list(table))))


def guess(rng: Random, _: Path) -> None:
    """`guess_columns` on samples of any content."""
    table = _table(rng)
    given = _roles(rng, list(table)) if rng.random() < 0.4 else {}
    found = guess_columns(table, given)
    _ = str(found), found.notes


def file(rng: Random, folder: Path) -> None:
    """`count_table` on damaged files."""
    path, named = damaged_file(rng, folder)
    columns = _roles(rng, values.NAMES) if rng.random() < 0.2 else named
    _agrees(count_table(path, **columns))


def analysed_file(rng: Random, folder: Path) -> None:
    """`analyse` on damaged files, with guessed columns."""
    path, _ = damaged_file(rng, folder)
    extra: Any = {name: rng.choice(values.NAMES) for name in ("truth", "population") if rng.random() < 0.05}
    found = analyse(path, **extra)
    for part in found.parts:
        is_probability("score", part.cells["score"], nulls=[n == 0 for n in part.cells["n"]])


def recipe(rng: Random, folder: Path) -> None:
    """`analyse` by a damaged recipe, or of a damaged file by a recipe in order."""
    kind = rng.choice(tuple(_KINDS))
    path, saved = folder / "data.csv", folder / "recipe.json"
    content = _content(kind, "csv")
    known = _recipe(kind)
    is_damaged = rng.random() < 0.6
    path.write_bytes(content if is_damaged else values.damaged(rng, content))
    text = json.dumps(values.damaged_json(rng, known) if is_damaged else known).encode()
    saved.write_bytes(values.damaged(rng, text) if is_damaged and rng.random() < 0.3 else text)
    found = analyse(path, Settings(method="average"), recipe=saved)
    if found.source.guess is None:
        raise WrongError("a file that was not read")


@cache
def _recipe(kind: str) -> Any:
    """How a file of some kind is read."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "data.csv")
        path.write_bytes(_content(kind, "csv"))
        return recipe_of(analyse(path, Settings(method="average")).source)


def damaged_file(rng: Random, folder: Path) -> tuple[Path, Any]:
    """A file, mostly damaged, and the columns that it had before."""
    kind = rng.choice(tuple(_KINDS))
    ending = rng.choice(("csv", "csv", "csv", "tsv", "txt.gz", "csv.gz", "parquet", "feather", "xlsx"))
    content = _content(kind, ending)
    chance = rng.random()
    if chance < 0.75:
        content = values.damaged(rng, content)
    elif chance < 0.85:
        content = rng.randbytes(rng.choice((0, 1, 10, 1000)))
    if ending.endswith(".gz"):
        content = gzip.compress(content) if rng.random() < 0.8 else content
    path = folder / f"{rng.choice(('data', 'a b', 'x[1]*'))}.{ending}"
    path.write_bytes(content)
    return path, _KINDS[kind][1]


_KINDS: dict[str, tuple[dict[str, list[Any]], Any]] = {
    "long": (
        {"patient": ["a", "a", "b", "b", "c"] * 3, "test": ["pos", "neg", "neg", None, "pos"] * 3},
        {"individual": "patient", "result": "test"},
    ),
    "wide": (
        {"id": list(range(8)), "first": [1, 0] * 4, "second": [1, 0, 0, None] * 2, "third": [0, 0, 1, 1] * 2},
        {"replicates": ["first", "second", "third"]},
    ),
    "cells": (
        {"n": [3, 3, 3, 4], "s": [0, 1, 3, 4], "count": [60, 9, 31, 5]},
        {"n": "n", "s": "s", "weight": "count"},
    ),
}
"""Tables in order, and which column plays which part."""


@cache
def _content(kind: str, ending: str) -> bytes:
    """A file in order."""
    table, out = pa.table(_KINDS[kind][0]), io.BytesIO()
    if ending == "parquet":
        pyarrow.parquet.write_table(table, out)
    elif ending == "feather":
        pyarrow.feather.write_feather(table, out, compression="uncompressed")
    elif ending == "xlsx":
        table.to_pandas().to_excel(out, index=False)
    else:
        separator = "\t" if ending == "tsv" else ","
        out.write(table.to_pandas().to_csv(index=False, sep=separator).encode())
    return out.getvalue()


def _table(rng: Random) -> dict[str, list[Any]]:
    """A few columns of words, numbers and absurdities."""
    rows = rng.randrange(8)
    names = [str(values.mostly(rng, rng.choice(values.NAMES), 0.05)) for _ in range(rng.randrange(1, 5))]
    return {name: _column(rng, rows) for name in names}


def _column(rng: Random, rows: int) -> list[Any]:
    """A column: results, whole numbers, words, or anything."""
    kind = rng.randrange(7)
    if kind == 0:
        return [rng.choice((0, 1)) for _ in range(rows)]
    if kind == 1:
        return [rng.choice(("pos", "neg", None)) for _ in range(rows)]
    if kind == 2:
        return [rng.choice(("ann", "bob", "cy")) for _ in range(rows)]
    if kind == 3:
        return [rng.randrange(6) for _ in range(rows)]
    if kind == 4:
        return [rng.choice((True, False, None)) for _ in range(rows)]
    if kind == 5:
        return [rng.choice((values.number(rng), None, 1.0, 0.0)) for _ in range(rows)]
    return [rng.choice((*values.WORDS, *values.WORDS, None)) for _ in range(rows)]


def _roles(rng: Random, names: Any) -> Any:
    """Columns for some parts, mostly those of one kind of table."""
    kinds = (("individual", "result"), ("replicates",), ("n", "s"), ("n", "s", "weight"))
    parts = [*rng.choice(kinds), *(part for part in PARTS if rng.random() < 0.05)]
    roles: dict[str, Any] = {}
    for part in parts:
        name = rng.choice(names)
        if part in ("positive", "negative", "missing"):
            name = rng.choice((*values.WORDS, 1, 0, 2.5, None))
        several = part == "replicates" or (part == "individual" and rng.random() < 0.1)
        roles[part] = [rng.choice(names) for _ in range(rng.randrange(3))] if several else name
    return roles


def _agrees(counts: CountTable) -> None:
    """Refuse counts that contradict themselves."""
    if not isinstance(counts, CountTable) or counts.positives > counts.replicates:
        raise WrongError(f"the counts are {counts!r}")
