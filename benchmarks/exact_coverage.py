"""Whether 90 % intervals of `fit_bayes` hold in 90 % of studies drawn from the prior, in both regions.

`python -m benchmarks.exact_coverage --studies 700`. Rates are drawn from the prior itself, statuses and
results from the model; so the intervals of prevalence and error rates hold with their probability, up to
chance: each number is beside its distance from 90 % in binomial standard errors, of which 3 are too many.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import numpy as np

import binreps as br
from benchmarks.report import markdown_table
from binreps.model import NAMES
from binreps.study.simulate import simulate_counts

LEVEL, MOST = 0.9, 3.0


def drawn(prior: br.Prior, rng: np.random.Generator) -> br.Rates:
    """Rates from the prior: pairs of error rates outside of the region are drawn again."""
    while True:
        theta, p, q = (float(rng.beta(*shapes)) for shapes in prior)
        if prior.region.holds(p, q):
            return br.Rates(theta, p, q)


def study(rates: br.Rates, rng: np.random.Generator) -> br.CountTable:
    """Some people with one to six replicates each."""
    n = list(range(1, int(rng.integers(2, 7))))
    return simulate_counts(rates, int(10 ** rng.uniform(0.7, 3.3)), n, rng=rng)


def held(prior: br.Prior, studies: int, seed: int) -> np.ndarray:
    """Whether the interval of each rate held in each study."""
    found = []
    for i in range(studies):
        rng = np.random.default_rng([seed, prior.better_than_chance, i])
        rates = drawn(prior, rng)
        lower, upper = br.fit_bayes(study(rates, rng), prior).interval(LEVEL)
        found.append([low <= rate <= high for low, rate, high in zip(lower, rates, upper, strict=True)])
    return np.array(found)


def rows(prior: br.Prior, studies: int, seed: int) -> list[dict[str, Any]]:
    """Coverage of each rate, and of all."""
    result = held(prior, studies, seed)
    made = []
    for name, column in (*zip(NAMES, result.T, strict=True), ("all three", result.ravel())):
        share, spread = float(column.mean()), math.sqrt(LEVEL * (1 - LEVEL) / column.size)
        made.append(
            {
                "region": "p + q < 1" if prior.better_than_chance else "p, q < ½",
                "rate": name.replace("_", "-"),
                "intervals": column.size,
                "held": f"{share:.4f}",
                "standard errors from 0.9": f"{(share - LEVEL) / spread:+.2f}",
            }
        )
    return made


def main() -> int:
    """Print a table; fail if an interval holds too often or too rarely."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact_coverage", description=__doc__)
    parser.add_argument("--studies", type=int, default=700, help="in each region")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = [
        row
        for better in (False, True)
        for row in rows(br.Prior(better_than_chance=better), options.studies, options.seed)
    ]
    print(markdown_table(found))
    return int(any(abs(float(row["standard errors from 0.9"])) > MOST for row in found))


if __name__ == "__main__":
    sys.exit(main())
