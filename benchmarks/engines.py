"""The engines that hold a long table, and what each takes to count it: by hand, by us, and with scores.

`python -m benchmarks.engines DuckDB hand FILE` prints the peak memory in MB of one count in a new process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import binreps as br  # not at run time: the memory of a query by hand is measured too

COLUMNS = {"individual": "individual", "result": "result"}


@dataclass(frozen=True)
class Engine:
    """How a user opens a Parquet file, groups it twice without any check, and gets all rows of an answer."""

    name: str
    open: Callable[[Path], Any]
    by_hand: Callable[[Any], Any]
    whole: Callable[[Any], Any] = lambda answer: answer


def counted(frame: Any) -> br.CountTable:
    """Our count of a long table."""
    import binreps as br

    return br.count_table(frame, **COLUMNS)


def scored(frame: Any, engine: Engine, level: float | None = 0.9) -> Any:
    """Our count, exact posterior, and the table of every individual with its score and decision."""
    import binreps as br

    fit = br.fit_bayes(counted(frame))
    return engine.whole(br.attach(frame, fit, loss=br.Loss(), level=level, **COLUMNS))


def peak_memory(engine: str, side: str, file: Path) -> float:
    """MB that a new process holds at most while it counts, by "hand" or by "us"."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engines", engine, side, str(file)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _duckdb_open(file: Path) -> Any:
    import duckdb

    return duckdb.read_parquet(str(file))


def _duckdb_by_hand(table: Any) -> Any:
    people = table.aggregate("individual, count(result) AS n, sum(result) AS s", "individual")
    return people.aggregate("n, s, count(*) AS weight", "n, s").fetchall()


def _polars_open(file: Path) -> Any:
    import polars as pl

    return pl.scan_parquet(file)


def _polars_by_hand(table: Any) -> Any:
    import polars as pl

    people = table.group_by("individual").agg(n=pl.col("result").count(), s=pl.col("result").sum())
    return people.group_by("n", "s").agg(weight=pl.len()).collect()


def _pandas_open(file: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(file)


def _pandas_by_hand(table: Any) -> Any:
    people = table.groupby("individual")["result"].agg(["count", "sum"])
    return people.groupby(["count", "sum"]).size()


def _pyarrow_open(file: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(file)


def _pyarrow_by_hand(table: Any) -> Any:
    people = table.group_by("individual").aggregate([("result", "count"), ("result", "sum")])
    return people.group_by(["result_count", "result_sum"]).aggregate([([], "count_all")])


def _spark_open(file: Path) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("benchmarks")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session.read.parquet(str(file))


def _spark_by_hand(table: Any) -> Any:
    from pyspark.sql import functions as f

    people = table.groupBy("individual").agg(f.count("result").alias("n"), f.sum("result").alias("s"))
    return people.groupBy("n", "s").count().collect()


def _spark_whole(answer: Any) -> None:
    answer.write.format("noop").mode("overwrite").save()


DUCKDB = Engine("DuckDB", _duckdb_open, _duckdb_by_hand, lambda answer: answer.to_arrow_table())
POLARS = Engine("Polars", _polars_open, _polars_by_hand, lambda answer: answer.collect())
PANDAS = Engine("pandas", _pandas_open, _pandas_by_hand)
PYARROW = Engine("PyArrow", _pyarrow_open, _pyarrow_by_hand)
SPARK = Engine("Spark", _spark_open, _spark_by_hand, _spark_whole)


if __name__ == "__main__":
    from benchmarks import machine

    name, side, file = sys.argv[1:]
    engine = next(one for one in (DUCKDB, POLARS, PANDAS, PYARROW) if one.name == name)
    count = engine.by_hand if side == "hand" else counted
    count(engine.open(Path(file)))
    print(machine.peak_memory())
