"""What the verdict says where the truth is known: false alarms, and power.

`python -m benchmarks.verdicts --families simple,correlated --studies 40`. Each study is simulated, every
model that its columns allow is compared, and the verdict is counted. `odd` has studies of odd shapes that all
come from the simple model: few or many individuals, one to ten replicates, good and poor tests, rare and
common conditions. A verdict is false there if it prefers another model, or says that none fits.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import binreps as br
from benchmarks.report import markdown_table
from benchmarks.timing import say
from binreps.run.analysis import Settings
from binreps.run.candidates import compared
from binreps.run.data import Data

INDIVIDUALS, REPLICATES = 500, 5
THETA, P, Q = 0.3, 0.08, 0.15
MISFIT = ("other-model", "count-table", "over-dispersion", "informative-replication")


def simple(rng: np.random.Generator) -> Data:
    """Every replicate errs alike."""
    return Data(_counts(rng, rng.random(INDIVIDUALS) < THETA, P, Q))


def correlated(rng: np.random.Generator) -> Data:
    """Replicates of one individual have a correlation of 0.2."""
    positive = rng.random(INDIVIDUALS) < THETA
    mean, size = np.where(positive, 1 - Q, P), 1 / 0.2 - 1
    s = rng.binomial(REPLICATES, rng.beta(mean * size, (1 - mean) * size))
    return Data(br.CountTable(np.full(INDIVIDUALS, REPLICATES), s))


def low_sensitivity(rng: np.random.Generator) -> Data:
    """A test that finds 3 of 10."""
    return Data(_counts(rng, rng.random(INDIVIDUALS) < 0.5, 0.02, 0.7))


def sources(rng: np.random.Generator) -> Data:
    """Five readers whose accuracy goes from 0.6 to 0.95."""
    right = np.linspace(0.6, 0.95, 5)
    positive = rng.random((INDIVIDUALS, 1)) < THETA
    said = np.where(rng.random((INDIVIDUALS, 5)) < right, positive, ~positive).astype(int)
    return Data.of(br.Readings.wide(said, list("abcde")))


def equal_sources(rng: np.random.Generator) -> Data:
    """Five readers who are all alike: the simple model, with a column of sources."""
    positive = rng.random((INDIVIDUALS, 1)) < THETA
    said = np.where(positive, rng.random((INDIVIDUALS, 5)) > Q, rng.random((INDIVIDUALS, 5)) < P)
    return Data.of(br.Readings.wide(said.astype(int), list("abcde")))


def covariate(rng: np.random.Generator) -> Data:
    """A covariate whose area under the curve is 0.8."""
    positive = rng.random(INDIVIDUALS) < THETA
    return Data.of(_told(rng, positive, rng.normal(size=INDIVIDUALS) + positive * 1.19))


def idle_covariate(rng: np.random.Generator) -> Data:
    """A covariate that tells nothing: the simple model."""
    return Data.of(_told(rng, rng.random(INDIVIDUALS) < THETA, rng.normal(size=INDIVIDUALS)))


def third_class(rng: np.random.Generator) -> Data:
    """One individual in five is neither: every replicate is a coin."""
    positive = rng.random(INDIVIDUALS) < THETA
    chance = np.where(rng.random(INDIVIDUALS) < 0.2, 0.5, np.where(positive, 1 - Q, P))
    return Data(br.CountTable(np.full(INDIVIDUALS, REPLICATES), rng.binomial(REPLICATES, chance)))


def odd(rng: np.random.Generator) -> Data:
    """A study of an odd shape from the simple model."""
    size = int(np.exp(rng.uniform(np.log(20), np.log(5000))))
    most = int(rng.integers(1, 11))
    n = np.full(size, most) if rng.random() < 0.5 else rng.integers(1, most + 1, size)
    positive = rng.random(size) < rng.beta(0.8, 1.6)
    chance = np.where(positive, 1 - rng.uniform(0.01, 0.45), rng.uniform(0.005, 0.4))
    return Data(br.CountTable(n, rng.binomial(n, chance)))


def _counts(rng: np.random.Generator, positive: Any, p: float, q: float) -> br.CountTable:
    """Replicates that err alike."""
    n = np.full(positive.size, REPLICATES)
    return br.CountTable(n, rng.binomial(n, np.where(positive, 1 - q, p)))


def _told(rng: np.random.Generator, positive: Any, marker: Any) -> br.CovariateTable:
    """The same with a covariate."""
    n = np.full(positive.size, REPLICATES)
    s = rng.binomial(n, np.where(positive, 1 - Q, P))
    return br.CovariateTable(n, s, {"marker": marker})


FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Data], str | None]] = {
    "simple": (simple, "common"),
    "equal_sources": (equal_sources, "common"),
    "idle_covariate": (idle_covariate, "common"),
    "correlated": (correlated, "correlated"),
    "low_sensitivity": (low_sensitivity, "better-than-chance"),
    "sources": (sources, "sources"),
    "covariate": (covariate, "covariates"),
    "third_class": (third_class, None),
    "odd": (odd, "common"),
}
"""How each study is drawn, and the model that is true; no model that is tried has a third class."""


def trial(family: str, studies: int, seed: int) -> dict[str, Any]:
    """How often each model was preferred, each light shown, and a verdict false."""
    draw, truth = FAMILIES[family]
    preferred, used = Counter[str](), Counter[str]()
    lights, reasons, seconds = Counter[str](), Counter[str](), []
    false = 0
    for i in range(studies):
        data = draw(np.random.default_rng([seed, i]))
        start = time.process_time()
        comparison = compared(data, Settings())
        verdict = comparison.verdict
        seconds.append(time.process_time() - start)
        preferred[comparison.preferred] += 1
        used[comparison.chosen] += 1
        lights[verdict.light] += 1
        reasons[verdict.reason] += 1
        false += verdict.reason in MISFIT
        if i % 10 == 9:
            say(f"{family} {i + 1}: {dict(preferred)} {dict(used)} {dict(lights)} {dict(reasons)} {false}")
    return {
        "family": family,
        "studies": studies,
        "true model": truth or "none",
        "preferred": ", ".join(f"{name} {count}" for name, count in preferred.most_common()),
        "used": ", ".join(f"{name} {count}" for name, count in used.most_common()),
        "lights": ", ".join(f"{name} {count}" for name, count in lights.most_common()),
        "says misfit": false,
        "seconds, median": f"{np.median(seconds):.2f}",
        "most": f"{max(seconds):.2f}",
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES), help="which, with commas between")
    parser.add_argument("--studies", type=int, default=40, help="of each family")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rows = [trial(family, chosen.studies, chosen.seed) for family in chosen.families.split(",")]
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
