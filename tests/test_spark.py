"""The road on a local Spark session. It needs Java, which root on Debian installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from benchmarks.cluster import cluster

import binreps as br
from binreps.counts import CountTable
from binreps.decide.loss import Loss
from binreps.errors import BinrepsWarning, DataError
from binreps.fits.point.simple import fit_average
from binreps.tables.join import attach
from binreps.tables.opened import OpenTable, count_table, read
from binreps.tables.sources import source_readings
from engines import by_key, rows_of
from system_tools import require

pytestmark = pytest.mark.slow

LOSS = Loss(inconclusive=0.2)
TYPES = {
    pa.int64(): "bigint",
    pa.int8(): "tinyint",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.float64(): "double",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if "JAVA_HOME" not in os.environ:
        require("java", "default-jre-headless")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .appName("binreps")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def to_spark(spark: Any) -> Callable[[pa.Table], Any]:
    def convert(table: pa.Table) -> Any:
        schema = ", ".join(f"`{field.name}` {TYPES[field.type]}" for field in table.schema)
        return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)

    return convert


def long_table(ids: pa.DataType, results: list[Any], size: int = 200) -> pa.Table:
    """Unordered rows with repeated individuals, and nulls in both columns."""
    rng = np.random.default_rng(3)
    who = [None if i == 0 else i * (2**58 - 1) for i in rng.integers(0, 30, size).tolist()]
    test = [results[i] for i in rng.integers(0, len(results), size)]
    return pa.table({"patient": pa.array(who).cast(ids), "test": pa.array(test)})


TABLES = {
    "large ids, integers": long_table(pa.int64(), [0, 1, 1, None]),
    "text ids, words": long_table(pa.string(), ["pos", " NEG ", "−", "", "+", None]),
    "text ids, booleans": long_table(pa.string(), [True, False, None]),
    "large ids, floats": long_table(pa.int64(), [0.0, 1.0, float("nan"), None]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_spark_counts_what_arrow_counts(to_spark: Callable[[pa.Table], Any], kind: str) -> None:
    columns: Any = {"individual": "patient", "result": "test"}
    with pytest.warns(BinrepsWarning, match="without an individual") as on_spark:
        counts = count_table(to_spark(TABLES[kind]), **columns)
    with pytest.warns(BinrepsWarning, match="without an individual") as on_arrow:
        assert counts == count_table(TABLES[kind], **columns)
    assert str(on_arrow[0].message) in [str(warning.message) for warning in on_spark]


def test_scores_are_joined_on_the_cluster(to_spark: Callable[[pa.Table], Any]) -> None:
    table = TABLES["text ids, words"].filter(TABLES["text ids, words"]["patient"].is_valid())
    columns: Any = {"individual": "patient", "result": "test"}
    fit, frame = fit_average(count_table(table, **columns)), to_spark(table)
    answers = attach(frame, fit, loss=LOSS, **columns)
    assert type(answers) is type(frame)
    assert by_key(rows_of(answers)) == by_key(rows_of(attach(table, fit, loss=LOSS, **columns)))
    replicates = attach(frame, fit, loss=LOSS, per="replicate", **columns)
    expected = attach(table, fit, loss=LOSS, per="replicate", **columns)
    assert by_key(rows_of(replicates)) == by_key(rows_of(expected))


def test_wide_and_counted_tables(to_spark: Callable[[pa.Table], Any]) -> None:
    wide = pa.table({"who": [1, 1, 2], "x": [True, False, None], "y": [True, None, None]})
    counted = pa.table({"n": ["2", "1", "0"], "s": ["2", "0", "0"], "w": [5, 1, 2]})
    tables: list[tuple[pa.Table, Any]] = [
        (wide, {"replicates": ["x", "y"]}),
        (wide, {"replicates": ["x", "y"], "individual": "who"}),
        (counted, {"n": "n", "s": "s", "weight": "w"}),
    ]
    for table, columns in tables:
        counts = count_table(table, **columns)
        assert count_table(to_spark(table), **columns) == counts
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*undefined", BinrepsWarning)
            fit = fit_average(counts)
        answers = attach(to_spark(table), fit, loss=LOSS, **columns)
        assert by_key(rows_of(answers)) == by_key(rows_of(attach(table, fit, loss=LOSS, **columns)))


def test_scoring_neither_shuffles_rows_nor_needs_python_on_the_workers(spark: Any) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # only what is asked for is broadcast
    frame = spark.sql("SELECT 3 AS n, id % 2 AS s FROM range(4)")
    answers = attach(frame, fit_average(count_table(frame, n="n", s="s")), loss=LOSS, n="n", s="s")
    plan = answers._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in plan
    assert "Exchange hashpartitioning" not in plan
    assert "ExistingRDD" not in plan  # how Spark names rows that came from Python


def test_an_empty_table_stays_empty(to_spark: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"n": pa.array([], pa.int64()), "s": pa.array([], pa.int64())})
    assert rows_of(attach(to_spark(table), fit_average(CountTable([3], [1])), loss=LOSS, n="n", s="s")) == []


def test_bad_results_are_shown(to_spark: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"patient": ["a", "a"], "test": ["pos", "maybe"]})
    with pytest.raises(DataError, match=r"column 'test' must hold .* got 'maybe'"):
        count_table(to_spark(table), individual="patient", result="test")


def documented_job() -> str:
    """The first block of code of the page."""
    page = (Path(__file__).parent.parent / "docs" / "spark.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert block is not None
    return block[1]


def test_the_job_of_the_documentation_runs(to_spark: Callable[[pa.Table], Any], tmp_path: Path) -> None:
    job: dict[str, Any] = {"__name__": "job"}
    exec(compile(documented_job(), "docs/spark.md", "exec"), job)
    table = TABLES["large ids, integers"].filter(TABLES["large ids, integers"]["patient"].is_valid())
    to_spark(table).write.parquet(str(tmp_path / "tests.parquet"))
    job["main"](str(tmp_path / "tests.parquet"), str(tmp_path / "answers.parquet"))
    answers = pa.parquet.read_table(tmp_path / "answers.parquet").to_pylist()
    columns: Any = {"individual": "patient", "result": "test"}
    fit = job["br"].fit_bayes(count_table(table, **columns))
    assert by_key(answers) == by_key(rows_of(attach(table, fit, loss=LOSS, **columns)))


def test_sources_are_read_and_scored_on_the_cluster(to_spark: Callable[[pa.Table], Any]) -> None:
    rng = np.random.default_rng(4)
    rows = [(f"i{i}", f"w{j}", int(rng.random() < 0.3 + 0.4 * (i % 2))) for i in range(30) for j in range(4)]
    item, worker, vote = zip(*rows, strict=True)
    table = pa.table({"item": list(item), "worker": list(worker), "vote": list(vote)})
    columns: Any = {"individual": "item", "result": "vote", "source": "worker"}
    fit, frame = br.fit(to_spark(table), rng=1, tol=0.5, **columns), to_spark(table)
    assert attach(frame, fit, level=None, **columns).columns == ["item", "n", "s", "score"]
    assert fit.readings == br.fit(table, rng=1, tol=0.5, **columns).readings
    answers = attach(frame, fit, loss=LOSS, new=True, **columns)
    assert type(answers) is type(frame)
    found = {row["item"]: row for row in rows_of(answers)}
    for row in rows_of(attach(table, fit, loss=LOSS, new=True, **columns)):
        own = found[row["item"]]
        assert (own["n"], own["s"], own["decision"]) == (row["n"], row["s"], row["decision"])
        for name in ("score", "lower", "upper"):
            assert own[name] == pytest.approx(row[name], abs=1e-6)
    plan = answers._jdf.queryExecution().executedPlan().toString()
    shuffles = [line for line in plan.splitlines() if "Exchange hashpartitioning" in line]
    assert shuffles
    # before the join: rows are moved without the log odds of all draws
    assert all("REPARTITION_BY_COL" in line for line in shuffles)
    some, _ = source_readings(read(OpenTable(frame), columns), 60)
    assert 0 < some.readings < 120


def test_covariates_on_spark(spark: Any) -> None:
    """Individuals with covariates are grouped and scored where they live; one with two values is named."""
    from covariate_studies import screening

    columns, _ = screening(60)
    place = np.repeat(np.arange(60), columns["n"])
    nth = np.arange(place.size) - np.repeat(np.cumsum(columns["n"]) - columns["n"], columns["n"])
    rows = [
        (f"p{i:02d}", int(k < columns["s"][i]), int(columns["age"][i]), str(columns["site"][i]))
        for i, k in zip(place, nth, strict=True)
    ]
    frame = spark.createDataFrame(rows, "patient string, test int, age int, site string")
    named = {"individual": "patient", "result": "test", "covariates": ["age", "site"]}
    fit = br.fit(frame, **named)
    covariates = {name: columns[name] for name in ("age", "site")}
    assert fit.records == br.CovariateTable(columns["n"], columns["s"], covariates)
    answers = {row["patient"]: row for row in rows_of(br.attach(frame, fit, LOSS, **named))}
    assert len(answers) == 60
    scores = fit.score(columns["n"], columns["s"], covariates=covariates)
    np.testing.assert_allclose([answers[f"p{i:02d}"]["score"] for i in range(60)], scores, atol=1e-9)
    twice = frame.union(spark.createDataFrame([("p07", 1, 99, "north")], frame.schema))
    with pytest.raises(DataError, match=r"'age' must have one value per individual, got .* 'p07'"):
        br.fit(twice, **named)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A master and two workers, each a process."""
    if "JAVA_HOME" not in os.environ:
        require("java", "default-jre-headless")
    with cluster(memory="1g") as address:
        yield address


def test_sources_are_read_and_scored_by_executor_processes(tmp_path: Path, address: str) -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"i{i}", f"w{j}", int((i % 3 == 0) ^ (rng.random() < 0.15))) for i in range(40) for j in range(5)
    ]
    names = ("item", "worker", "vote")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    columns = {"individual": "item", "result": "vote", "source": "worker"}
    fit = br.fit(table, rng=1, tol=0.9, **columns)
    paths = [tmp_path / name for name in ("rows.parquet", "fit.json", "scores.parquet")]
    pyarrow.parquet.write_table(table, paths[0])
    br.save_fit(fit, paths[1])
    script = Path(__file__).with_name("spark_cluster.py")
    subprocess.run([sys.executable, str(script), address, *map(str, paths)], check=True, timeout=300)
    wanted = {
        row["item"]: row["score"] for row in rows_of(br.attach(table, br.load_fit(paths[1]), **columns))
    }
    scores = pyarrow.parquet.read_table(paths[2]).to_pylist()
    assert len(scores) == 40
    assert all(abs(row["score"] - wanted[row["item"]]) < 1e-6 for row in scores)


def test_the_job_of_the_documentation_is_submitted_to_a_cluster(tmp_path: Path, address: str) -> None:
    import pyspark

    table = TABLES["large ids, integers"].filter(TABLES["large ids, integers"]["patient"].is_valid())
    names = ("job.py", "tests.parquet", "answers.parquet")
    job, source, target = paths = [tmp_path / name for name in names]
    job.write_text(documented_job(), encoding="utf-8")
    pyarrow.parquet.write_table(table, source)
    submit = [str(Path(pyspark.__file__).with_name("bin") / "spark-submit"), "--master", address]
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    own = ["--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false"]
    subprocess.run([*submit, *own, *map(str, paths)], check=True, timeout=300, env=os.environ | local)
    columns: Any = {"individual": "patient", "result": "test"}
    wanted = attach(table, br.fit_bayes(count_table(table, **columns)), loss=LOSS, **columns)
    found = by_key(pyarrow.parquet.read_table(target).to_pylist())
    for own, row in zip(found, by_key(rows_of(wanted)), strict=True):
        assert own == pytest.approx(row, abs=1e-12)  # another process may add up in another order
