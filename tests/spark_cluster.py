"""Scores by source on a cluster: `python spark_cluster.py ADDRESS rows.parquet fit.json scores.parquet`."""

from __future__ import annotations

import sys
import warnings

from pyspark.sql import SparkSession

import binreps as br


def main(address: str, rows: str, model: str, target: str) -> None:
    """Fit the rows again on the cluster, score them with a saved fit, and write what each item got."""
    warnings.simplefilter("ignore")
    builder = SparkSession.builder.master(address).appName("binreps")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "512m",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    columns = {"individual": "item", "result": "vote", "source": "worker"}
    frame, fit = session.read.parquet(rows).repartition(4), br.load_fit(model)
    found = br.fit(frame, rng=1, tol=0.9, **columns)
    assert found.readings == fit.readings
    answers = br.attach(frame, fit, br.Loss(), **columns)
    answers.toPandas().to_parquet(target)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
