"""The data path: any table to counts and scores, against what each engine takes without us."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import binreps as br
from benchmarks import crowds, engines
from benchmarks.engines import DUCKDB, PANDAS, POLARS, PYARROW, SPARK, Engine
from benchmarks.report import Ratio, Section, Settings, milliseconds, power
from benchmarks.timing import Runs, alternate, say
from binreps.study.simulate import simulate_counts

SAMPLES, WELLS, POPULATIONS = 96, 4, 50


def run(settings: Settings) -> list[Section]:
    """All sections of this family; its files lie in a temporary folder that is removed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            counting(settings, folder),
            memory(settings, folder),
            scoring(settings, folder),
            many_fits(settings),
        ]


# From a long table to counts and scores --------------------------------------------------------------------


def _sizes(settings: Settings) -> Iterator[tuple[int, tuple[Engine, ...]]]:
    """Numbers of rows, and the engines that count them."""
    yield 10**6, (DUCKDB, POLARS, PANDAS, PYARROW, *((SPARK,) if settings.full else ()))
    yield 10**7, (DUCKDB, POLARS, PANDAS, PYARROW, SPARK) if settings.full else (DUCKDB, POLARS)
    if settings.full:
        yield 10**8, (DUCKDB, POLARS)


def counting(settings: Settings, folder: Path) -> Section:
    """Count and score long tables, engine by engine."""
    rows, ratios = [], {}
    for size, here in _sizes(settings):
        file = long_table(folder, size)
        for engine in here:
            say(f"data, {power(size)} rows: {engine.name}")
            row, more = _count(engine, file, size, settings)
            rows.append(row)
            ratios |= more
    crowd_row, crowd_ratios, reason = crowds.majority_vote(long_table(folder, 10**6))
    text = (
        "A long Parquet file, about four results per individual in random order, grouped by individual and "
        "then by (n, s): by hand in the engine's own words, without any check, and by `count_table`; then "
        "with the exact fit and a score and a decision for each individual (`attach`). pandas and PyArrow "
        "start from a table in memory, the others from the file. Milliseconds on the clock, and medians on "
        "the processor (of Spark's Java process nothing is seen); the share of the fit is of counting and "
        f"fitting together. {reason}"
    )
    return Section("Data: long table to counts and scores", text, rows + crowd_row, ratios | crowd_ratios)


def _count(
    engine: Engine, file: Path, size: int, settings: Settings
) -> tuple[dict[str, Any], dict[str, Ratio]]:
    """One engine on one file."""
    frame = engine.open(file)
    runs = alternate(
        {
            "hand": lambda _: engine.by_hand(frame),
            "counts": lambda _: engines.counted(frame),
        },
        2 if size == 10**8 else 5,
        seconds=20 if settings.full else 3,
        warm_up=size < 10**8,
    )
    runs |= alternate(
        {"scores": lambda _: _let_go(engines.scored(frame, engine))}, 2 if size < 10**7 else 1, warm_up=False
    )
    counts = runs["counts"].results[-1]
    start = time.perf_counter()
    br.fit_bayes(counts)
    fit = time.perf_counter() - start
    row = _row(power(size), engine.name, runs, fit / (fit + runs["counts"].wall.median))
    return row, _count_ratios(f"data, {power(size)} rows, {engine.name}", runs)


def _let_go(_: Any) -> None:
    """Keep no table of scores: the runs remember their results."""


def _row(size: str, engine: str, runs: dict[str, Runs], share: float | None) -> dict[str, Any]:
    """A row of the first table."""
    hand, counts = runs["hand"], runs.get("counts")
    return {
        "rows": size,
        "engine": engine,
        "by hand": hand.wall,
        "counts": counts.wall if counts else None,
        "scores": runs["scores"].wall,
        "by hand, processor": milliseconds(hand.busy.median),
        "counts, processor": milliseconds(counts.busy.median) if counts else None,
        "fit's share": f"{100 * share:.1f} %" if share is not None else None,
    }


def _count_ratios(name: str, runs: dict[str, Runs]) -> dict[str, Ratio]:
    """By hand over ours: 0.87 where we may take 1.15 times as long."""
    hand, counts, scores = (runs[kind] for kind in ("hand", "counts", "scores"))
    found = {
        f"{name}: by hand to counts": Ratio(hand.wall.median / counts.wall.median, 1 / 1.15, 0.6),
        f"{name}: by hand to scores": Ratio(hand.wall.median / scores.wall.median, slack=0.6),
    }
    if "Spark" not in name:
        busy = hand.busy.median / counts.busy.median
        found[f"{name}: by hand to counts on the processor"] = Ratio(busy, 1 / 1.15, 0.7)
    return found


def long_table(folder: Path, rows: int) -> Path:
    """A Parquet file of individual, result: about four rows per individual, in no order."""
    import duckdb

    file = folder / f"long-{rows}.parquet"
    if not file.exists():
        say(f"data: writing {power(rows)} rows")
        person = f"CAST(hash(i) % {rows // 4} AS BIGINT)"
        chance = "CASE WHEN hash(individual + 1) % 10 < 3 THEN 85 ELSE 10 END"
        result = f"CAST(hash(i + {rows}) % 100 < {chance} AS INTEGER)"
        source = f"SELECT i, {person} AS individual FROM range({rows}) AS numbers(i)"
        duckdb.sql(f"COPY (SELECT individual, {result} AS result FROM ({source})) TO '{file}'")
    return file


def memory(settings: Settings, folder: Path) -> Section:
    """Peak memory of new processes that count, by hand and by us."""
    rows, ratios = [], {}
    size = 10**8 if settings.full else 10**7
    for engine in (DUCKDB, POLARS):
        say(f"data, memory: {engine.name}")
        file = long_table(folder, size)
        took = {side: engines.peak_memory(engine.name, side, file) for side in ("hand", "us")}
        rows.append(
            {
                "rows": power(size),
                "engine": engine.name,
                "by hand, MB": took["hand"],
                "counts, MB": took["us"],
            }
        )
        name = f"data, {power(size)} rows, {engine.name}: memory by hand to counts"
        ratios[name] = Ratio(took["hand"] / took["us"], 1 / 1.1, 0.8)
    text = "The most memory that a new process held while it counted, libraries included."
    return Section("Data: memory", text, rows, ratios)


# From a file to a file with scores -------------------------------------------------------------------------


def scoring(settings: Settings, folder: Path) -> Section:
    """Score individuals and write Parquet, against writing the same columns with constants."""
    size = 2 * 10**7 if settings.full else 2 * 10**6
    file = counted_file(folder, size)
    fit = br.fit_bayes(br.count_table(file, n="n", s="s"))
    say(f"data: scoring {size:,} individuals")
    runs = alternate(
        {
            "constant": lambda _: write_constants(file, folder / "constant.parquet"),
            "score": lambda _: br.score_file(
                file, fit, folder / "scores.parquet", loss=br.Loss(), n="n", s="s"
            ),
        },
        5,
        seconds=60 if settings.full else 5,
    )
    constant, score = runs["constant"], runs["score"]
    row = {
        "individuals": size,
        "constants": constant.wall,
        "score_file": score.wall,
        "constants, processor": milliseconds(constant.busy.median),
        "score_file, processor": milliseconds(score.busy.median),
    }
    name = f"data, scoring {power(size)} individuals"
    ratios = {
        f"{name}: constants to scores": Ratio(constant.wall.median / score.wall.median, 1 / 1.3),
        f"{name}: on the processor": Ratio(constant.busy.median / score.busy.median, 1 / 1.3, 0.7),
    }
    text = (
        "A Parquet file of individual, n, s to one with score, interval and decision (`score_file`), against "
        "DuckDB writing the same columns with constants in their place. Milliseconds."
    )
    return Section("Data: scoring a file", text, [row], ratios)


def counted_file(folder: Path, individuals: int) -> Path:
    """A Parquet file of individual, n, s, n = 3–5."""
    import duckdb

    file = folder / f"counted-{individuals}.parquet"
    n = "CAST(3 + hash(i) % 3 AS BIGINT)"
    s = "CAST(CASE WHEN hash(i + 7) % 10 < 3 THEN n - hash(i + 9) % 2 ELSE hash(i + 9) % 2 END AS BIGINT)"
    source = f"SELECT i, {n} AS n FROM range({individuals}) AS numbers(i)"
    duckdb.sql(f"COPY (SELECT i AS individual, n, {s} AS s FROM ({source})) TO '{file}'")
    return file


def write_constants(source: Path, target: Path) -> None:
    """The columns of `score_file`, with nothing computed."""
    import duckdb

    added = "0.5::DOUBLE AS score, 0.4::DOUBLE AS lower, 0.6::DOUBLE AS upper, 'inconclusive' AS decision"
    duckdb.sql(f"COPY (SELECT *, {added} FROM '{source}') TO '{target}' (FORMAT parquet)")


# Many data sets --------------------------------------------------------------------------------------------


def many_fits(settings: Settings) -> Section:
    """Thousands of assays through `fit_by`, and several populations with one test."""
    assays = 10_000 if settings.full else 500
    frame = assay_table(assays)
    rows, ratios = [], {}
    for method, goal in (("map", None), ("bayes", 400)):
        say(f"data: fit_by, {assays:,} assays, {method}")
        runs = alternate(
            {method: lambda _, m=method: _fit_by(frame, m)},
            1 if settings.full or method == "map" else 3,
            warm_up=False,
        )[method]
        rate = assays / runs.wall.median
        rows.append(_many_row(f"`fit_by`, {assays:,} assays, {method}", runs, rate, goal))
        if goal:
            ratios["data, fit_by: exact fits per second over the goal of 400"] = Ratio(rate / goal, 1.0, 0.3)
    populations = {
        k: simulate_counts(br.Rates(0.01 + k / 100, 0.1, 0.2), 200, [3, 4], rng=k) for k in range(POPULATIONS)
    }
    say(f"data: {POPULATIONS} populations")
    runs = alternate({"fit": lambda _: br.fit_populations(populations)}, 5)["fit"]
    rows.append(_many_row(f"`fit_populations`, {POPULATIONS} populations", runs, 1 / runs.wall.median, 1))
    ratios[f"data, {POPULATIONS} populations: goal of 1 s over time"] = Ratio(1 / runs.wall.median, 1.0, 0.3)
    text = (
        f"Assays of {SAMPLES} samples with {WELLS} replicates, each assay with rates of its own, from one "
        "long Polars table to a row per assay with intervals, on all cores: identical count tables are "
        "fitted once. Then populations that share the error rates of one test. Milliseconds; the processor "
        "time is of this process only."
    )
    return Section("Data: many data sets", text, rows, ratios)


def _many_row(what: str, runs: Runs, rate: float, goal: float | None) -> dict[str, Any]:
    """One task and its rate."""
    return {
        "task": what,
        "time": runs.wall,
        "processor": milliseconds(runs.busy.median),
        "fits per second": rate,
        "goal": goal,
        "goal met": None if goal is None else "yes" if rate >= goal else "**no**",
    }


def _fit_by(frame: Any, method: Any) -> int:
    """How many assays were fitted; all must be."""
    found = br.fit_by(frame, by="assay", method=method, individual="sample", result="result")
    if found["reason"].null_count() != len(found):
        raise RuntimeError(f"not every assay was fitted: {found['reason'].drop_nulls()[0]}")
    return len(found)


def assay_table(assays: int) -> Any:
    """A long Polars table of assay, sample, result."""
    import polars as pl

    rng = np.random.default_rng(1)
    prevalence, p, q = rng.uniform([0.1, 0.02, 0.05], [0.6, 0.2, 0.3], (assays, 3)).T[:, :, None]
    status = rng.random((assays, SAMPLES)) < prevalence
    chance = np.where(status, 1 - q, p)
    result = rng.random((assays, SAMPLES, WELLS)) < chance[..., None]
    assay, sample, _ = np.indices(result.shape)
    columns = {"assay": assay, "sample": sample, "result": result}
    return pl.DataFrame({name: values.ravel() for name, values in columns.items()})
