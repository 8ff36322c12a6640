"""The processor time of a verdict on ten thousand individuals: `python -m benchmarks.verdict_time`.

One process, one thread of linear algebra (`OPENBLAS_NUM_THREADS=1`); the least of some repeats.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import binreps as br
from benchmarks.report import markdown_table
from binreps.run.analysis import Settings
from binreps.run.candidates import compared
from binreps.run.data import Data

SIZE = 10_000


def _results(rng: np.random.Generator, n: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Positives among replicates of a good test."""
    return rng.binomial(n, np.where(positive, 0.85, 0.08))


def five(rng: np.random.Generator) -> Data:
    """Five replicates each."""
    n = np.full(SIZE, 5)
    return Data(br.CountTable(n, _results(rng, n, rng.random(SIZE) < 0.3)))


def up_to_ten(rng: np.random.Generator) -> Data:
    """One to ten replicates: 65 cells."""
    n = rng.integers(1, 11, SIZE)
    return Data(br.CountTable(n, _results(rng, n, rng.random(SIZE) < 0.3)))


def with_covariates(rng: np.random.Generator) -> Data:
    """Five replicates and two numbers."""
    n, positive = np.full(SIZE, 5), rng.random(SIZE) < 0.3
    columns = {"marker": rng.normal(size=SIZE) + 1.2 * positive, "age": rng.normal(50, 12, SIZE)}
    return Data.of(br.CovariateTable(n, _results(rng, n, positive), columns))


def panel(rng: np.random.Generator) -> Data:
    """Five readers who read everyone."""
    positive = rng.random((SIZE, 1)) < 0.3
    said = np.where(rng.random((SIZE, 5)) < np.linspace(0.6, 0.95, 5), positive, ~positive)
    return Data.of(br.Readings.wide(said.astype(int), list("abcde")))


def crowd(rng: np.random.Generator) -> Data:
    """Two hundred workers, five of whom read each item."""
    positive = rng.random(SIZE) < 0.4
    worker = np.argsort(rng.random((SIZE, 200)), axis=1)[:, :5]
    right = rng.beta(12, 3, 200)[worker]
    said = np.where(rng.random((SIZE, 5)) < right, positive[:, None], ~positive[:, None]).astype(int)
    return Data.of(br.Readings(np.repeat(np.arange(SIZE), 5), worker.ravel(), said.ravel()))


STUDIES: dict[str, Callable[[np.random.Generator], Data]] = {
    "five replicates": five,
    "one to ten replicates": up_to_ten,
    "covariates": with_covariates,
    "panel of five": panel,
    "crowd of 200": crowd,
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    repeats = parser.parse_args().repeats
    rows = []
    for name, draw in STUDIES.items():
        data, taken = draw(np.random.default_rng(1)), []
        for _ in range(repeats):
            start = time.process_time()
            comparison = compared(data, Settings())
            verdict = comparison.verdict
            taken.append(time.process_time() - start)
        each = ", ".join(f"{one.model} {one.seconds:.1f}" for one in comparison.tried)
        rows.append({"study": name, "verdict": verdict.reason, "preferred": verdict.model})
        rows[-1] |= {"seconds": f"{min(taken):.1f}", "of which": each}
        print(rows[-1], flush=True)
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
