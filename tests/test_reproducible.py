"""The same data give the same bits: in another process, from another engine; nearly so with more threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import binreps as br
from binreps.study.datasets import SCREENING_FILE
from engines import ENGINES
from repeated_results import TABLES, results

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "repeated_results.py"


def in_a_fresh_process(threads: int) -> Any:
    """The results by table and name, computed with so many threads of linear algebra."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    done = subprocess.run(
        [sys.executable, SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def one_thread() -> Any:
    """The results with one thread."""
    return in_a_fresh_process(1)


def test_two_processes_give_the_same_bits(one_thread: Any) -> None:
    assert in_a_fresh_process(1) == one_thread
    assert set(one_thread) == set(TABLES)


def test_thread_counts_change_nothing_that_matters(one_thread: Any) -> None:
    two = in_a_fresh_process(2)
    for table, numbers in one_thread.items():
        for name, expected in numbers.items():
            # absolute where numbers are probabilities, relative for the evidence
            np.testing.assert_allclose(
                two[table][name], expected, rtol=1e-12, atol=1e-12, err_msg=f"{table}, {name}"
            )


def _rows() -> pa.Table:
    """The bundled study, one row per replicate, in an order that no engine gives."""
    lines = [line.split(",") for line in SCREENING_FILE.read_text(encoding="utf-8").splitlines()]
    order = np.random.default_rng(2).permutation(len(lines) - 1) + 1
    return pa.table({name: [lines[i][k] for i in order] for k, name in enumerate(lines[0])})


@pytest.mark.parametrize("engine", ["pandas", "polars", "polars-lazy", "duckdb", "pyarrow"])
def test_every_engine_leads_to_the_same_bits(engine: str) -> None:
    guess = br.analyse(SCREENING_FILE, br.Settings(method="average"), truth="truth").source.guess
    assert guess is not None
    counts = br.count_table(ENGINES[engine](_rows()), **guess.columns)
    from_file = br.count_table(SCREENING_FILE, **guess.columns)
    assert counts == from_file
    assert results(counts) == results(from_file)
