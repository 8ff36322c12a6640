"""Scale: the calls of docs/spark.md on a standalone Spark cluster, beside DuckDB on the same rows.

`python -m benchmarks.scale ADDRESS FILE FOLDER` prints as JSON what each task took on the cluster at that
address, or with the word DuckDB for an address, on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import binreps as br
from benchmarks.cluster import HOST, cluster
from benchmarks.machine import busy_seconds_of, peak_memory, peak_memory_of
from benchmarks.report import Section, Settings, number, power
from benchmarks.timing import say

EACH, READERS, SITES = 10, 200, 4
SIZES = (10**6, 10**8)
MOST = 10**5  # readings from which the error rates of readers are learned; everyone is scored
WORKERS, MEMORY = 2, 5  # of one core each; GB that the executors have together, and that DuckDB may use
MACHINES, CORES = 100, 8  # of the cluster on paper
LOSS = br.Loss(inconclusive=0.2)
PEOPLE = {"individual": "patient", "result": "test"}
SOURCES = {**PEOPLE, "source": "reader"}
TASKS = {
    "counting": "`count_table`",
    "populations": "`fit` with a population",
    "sources": "`fit` with a source",
    "scoring": "`attach`, written",
    "scoring by source": "`attach` by source, written",
}

Taken = dict[str, float]  # seconds of each task, and the memory in MB


def run(settings: Settings) -> list[Section]:
    """Both engines on the same files, which lie in a temporary folder; Spark in full mode only."""
    found: dict[tuple[int, str], Taken] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in SIZES if settings.full else SIZES[:1]:
            say(f"scale: writing {power(rows)} readings")
            file = write(Path(folder, f"readings-{rows}.parquet"), rows)
            found[rows, "DuckDB"] = _measured("DuckDB", file, Path(folder))
            if settings.full and (shutil.which("java") or "JAVA_HOME" in os.environ):
                with cluster(WORKERS, memory=f"{MEMORY * 1024 // WORKERS}m") as address:
                    found[rows, "Spark"] = _measured(address, file, Path(folder))
    several = all((rows, engine) in found for rows in SIZES for engine in ("DuckDB", "Spark"))
    return [_measured_section(found), *([_which_engine(found)] if several else [])]


def write(file: Path, rows: int) -> Path:
    """A long table in no order: about ten readings of each patient, by readers who err differently."""
    import duckdb

    patient, reader = f"hash(i) % {rows // EACH}", f"hash(i + {rows}) % {READERS}"
    positive = f"hash(patient + 1) % 100 < 10 * (1 + patient % {SITES})"
    chance = f"CASE WHEN {positive} THEN 95 - who * 7 % 25 ELSE 1 + who % 20 END"
    source = f"SELECT i, CAST({patient} AS BIGINT) AS patient, CAST({reader} AS INTEGER) AS who"
    columns = f"patient, 'r' || who AS reader, 'site ' || (patient % {SITES}) AS site"
    test = f"CAST(hash(i + {2 * rows}) % 100 < {chance} AS INTEGER) AS test"
    duckdb.sql(f"COPY (SELECT {columns}, {test} FROM ({source} FROM range({rows}) AS t(i))) TO '{file}'")
    return file


# One engine, in a process of its own -----------------------------------------------------------------------


def _measured(address: str, file: Path, folder: Path) -> Taken:
    """What each task took on one engine."""
    say(f"scale: {address}")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", address, str(file), str(folder)],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


# What is told ----------------------------------------------------------------------------------------------


def _measured_section(found: dict[tuple[int, str], Taken]) -> Section:
    """What each task took on each engine."""
    rows = [
        {
            "readings": power(size),
            "engine": engine,
            **{name: f"{number(took[task])} ({number(took[_busy(task)])})" for task, name in TASKS.items()},
            "of which sampling": number(took["of which sampling"]),
            "start": number(took["start"]),
            "peak GB": number(took["memory"] / 1024),
        }
        for (size, engine), took in found.items()
    ]
    text = (
        f"A long Parquet file in no order: about {EACH} readings of each patient by {READERS} readers, in "
        f"{SITES} sites. *DuckDB* is what `br.fit(path, …)` and `br.score_file` use, on all cores, with "
        f"{MEMORY} GB; *Spark* is a standalone cluster on the same machine, a master and {WORKERS} workers "
        "of one core as processes of their own (`python -m benchmarks.cluster`), with as much memory "
        "together and otherwise as it comes; the file is read anew by every task. Seconds on the clock, one "
        "run each, and in brackets on the processor, those of driver and executors together. Error rates of "
        f"readers are learned from {power(MOST)} readings of a random part of the patients, on the driver; "
        "everyone is counted and scored. Memory is the most that the process held, or the executors."
    )
    if not any(engine == "Spark" for _, engine in found):
        text += " Spark is measured in full mode, where Java is there."
    return Section("Scale: Spark beside DuckDB", text, rows)


def _busy(task: str) -> str:
    """Where the processor time of a task is kept."""
    return f"{task}, processor"


def _which_engine(found: dict[tuple[int, str], Taken]) -> Section:
    """Straight lines through what was measured, to more rows and more machines."""
    rows = []
    for task, name in TASKS.items():
        for size in (*SIZES, 10**10):
            duckdb, spark, many = (
                _line(found, engine, task, size, cores)
                for engine, cores in (("DuckDB", WORKERS), ("Spark", WORKERS), ("Spark", MACHINES * CORES))
            )
            rows.append(
                {
                    "task": name,
                    "readings": power(size),
                    f"DuckDB, {WORKERS} cores": duration(duckdb),
                    f"Spark, {WORKERS} cores": duration(spark),
                    f"Spark, {MACHINES} machines × {CORES} cores": duration(many),
                    "take": "DuckDB" if duckdb <= max(2 * many, 60) else "a cluster",
                }
            )
    text = (
        f"On paper: the straight line a + b × rows through the processor seconds at {power(SIZES[0])} and "
        f"{power(SIZES[1])} readings, carried on to 10¹⁰, and shared by the cores: a by {WORKERS} "
        f"everywhere, b by {WORKERS} or by those of {MACHINES} machines. That leaves out what was not "
        "measured: rows that cross a network (some 30 bytes a reading, so 3 GB for each of the machines), "
        "stragglers, and a disk that DuckDB spills to when its groups do not fit into memory. Take hours "
        "as orders of magnitude. *take*: DuckDB where it needs less than a minute, or at most twice the "
        "time of the large cluster."
    )
    return Section("Scale: which engine when", text, rows)


def _line(found: dict[tuple[int, str], Taken], engine: str, task: str, rows: int, cores: int) -> float:
    """Seconds for so many rows on so many cores, from the two sizes that were measured."""
    small, large = (found[size, engine][_busy(task)] for size in SIZES)
    slope = max(large - small, 0.0) / (SIZES[1] - SIZES[0])
    return max(small - slope * SIZES[0], 0.0) / WORKERS + slope * rows / cores


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.42, 75, 5000, 10**5)]
    ['0.42 s', '75 s', '83 min', '28 h']
    """
    unit, each = next(x for x in (("h", 3600), ("min", 60), ("s", 1)) if seconds >= 2 * x[1] or x[1] == 1)
    return f"{number(seconds / each)} {unit}"


@dataclass(frozen=True)
class Engine:
    """A table, how its answers are written, and who works for it."""

    table: Any
    how: dict[str, Any]
    write: Callable[..., Any]
    workers: tuple[str, ...] = ()  # words in the command of processes that work for it

    def busy(self) -> float:
        """Seconds on the processor until now, by all that work."""
        return busy_seconds_of(*self.workers) if self.workers else time.process_time()


def duckdb_engine(file: Path, folder: Path) -> Engine:
    """The file itself, through the embedded DuckDB."""

    def write(fit: Any, columns: dict[str, str]) -> None:
        br.score_file(file, fit, folder / "duckdb.parquet", loss=LOSS, memory=f"{MEMORY}GB", **columns)

    return Engine(file, {"memory": f"{MEMORY}GB"}, write)


def spark_engine(address: str, file: Path, folder: Path) -> Engine:
    """A session on the cluster, as spark-submit would make it, and a table of the file."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(address).appName("binreps")
    os.environ["SPARK_LOCAL_IP"] = HOST
    for name, value in {
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.executor.memory": f"{MEMORY * 1024 // WORKERS - 384}m",  # the rest is what Java needs beside
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    table = session.read.parquet(str(file))

    def write(fit: Any, columns: dict[str, str]) -> None:
        answers = br.attach(table, fit, loss=LOSS, **columns)
        answers.write.mode("overwrite").parquet(str(folder / "spark.parquet"))

    return Engine(table, {}, write, ("CoarseGrainedExecutorBackend", session.sparkContext.applicationId))


def tasks(engine: Engine) -> Taken:
    """Seconds of each task, one after the other, and the most memory in MB."""
    took: Taken = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start, busy = time.perf_counter(), engine.busy()
        found = work()
        took[name], took[f"{name}, processor"] = time.perf_counter() - start, engine.busy() - busy
        say(f"scale: {name} {number(took[name])} s")
        return found

    counts = timed("counting", lambda: br.count_table(engine.table, **engine.how, **PEOPLE))
    timed("populations", lambda: br.fit(engine.table, population="site", **engine.how, **PEOPLE))
    fit = timed("sources", lambda: br.fit(engine.table, rng=1, most=MOST, **engine.how, **SOURCES))
    timed("of which sampling", lambda: br.fit_sources(fit.readings, rng=1))
    timed("scoring", lambda: engine.write(br.fit_bayes(counts), PEOPLE))
    timed("scoring by source", lambda: engine.write(fit, SOURCES))
    return took | {"memory": peak_memory_of(*engine.workers) if engine.workers else peak_memory()}


def main(address: str, file: str, folder: str) -> None:
    """Print what one engine took, its start included."""
    warnings.simplefilter("ignore")  # that a part of the readings was learned from is what we asked for
    start, places = time.perf_counter(), (Path(file), Path(folder))
    engine = duckdb_engine(*places) if address == "DuckDB" else spark_engine(address, *places)
    if address != "DuckDB":
        engine.table.limit(1).collect()
    print(json.dumps({"start": time.perf_counter() - start, **tasks(engine)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
