"""Whether intervals of a fit by source hold as often as they say, and probabilities are calibrated.

`python -m benchmarks.coverage --studies 60`. Studies are drawn from the model itself, prior and all: rates
of a
population of sources, statuses, readings. An interval of 90 % must hold in 90 % of the cases, and of those
with a score near y a share y must be positive. Standard errors are over studies, as the rates of one study
are
not independent.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

import binreps as br
from benchmarks.report import markdown_table
from benchmarks.timing import say

LEVEL = 0.9


@dataclass(frozen=True)
class Design:
    """Who reads what."""

    name: str
    people: int
    sources: int
    each: int


DESIGNS = (Design("a panel of 4", 150, 4, 4), Design("a crowd of 25", 120, 25, 5))


def drawn(design: Design, rng: np.random.Generator) -> tuple[br.Readings, dict[str, Any], np.ndarray]:
    """Readings, the rates they were made with, and the statuses: all from the prior of the model."""
    while True:
        means, spreads = rng.beta(2, 2, 2), rng.random(2)
        kappa = 1 / spreads - 1
        p, q = (rng.beta(m * k, (1 - m) * k, design.sources) for m, k in zip(means, kappa, strict=True))
        theta = rng.beta(0.5, 0.5)
        made = br.simulate(br.Rates(theta, p, q), design.people, design.each, rng)
        each = made.readings.totals.sum(axis=1)
        if means.sum() < 1 and each @ (p + q - 1) < 0:
            rates = {"prevalence": theta, "false_positive": p, "false_negative": q}
            return made.readings, rates, made.truth


def trial(design: Design, seed: int, sweeps: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Which intervals hold, by kind of rate; and everyone's score and status."""
    rng = np.random.default_rng([seed, design.sources])
    readings, rates, truth = drawn(design, rng)
    fit = br.fit_sources(readings, rng=rng, sweeps=sweeps, chains=16)
    lower, upper = fit.interval(LEVEL)
    held = {
        name: np.atleast_1d((getattr(lower, name) <= value) & (value <= getattr(upper, name)))
        for name, value in rates.items()
    }
    return held, fit.score(readings), truth


def coverage(design: Design, studies: int, sweeps: int) -> list[dict[str, Any]]:
    """One row per kind of rate, and one on calibration."""
    found = []
    for seed in range(studies):
        found.append(trial(design, seed, sweeps))
        if seed % 20 == 19:
            say(f"{design.name}: {seed + 1} studies")
    rows = []
    for name in found[0][0]:
        by_study = np.array([held[name].mean() for held, _, _ in found])
        error = by_study.std(ddof=1) / np.sqrt(studies)
        intervals = sum(held[name].size for held, _, _ in found)
        rows.append(_row(design, name, intervals, by_study.mean(), LEVEL, error))
    gaps = np.array([score.mean() - truth.mean() for _, score, truth in found])
    people = sum(truth.size for *_, truth in found)
    rows.append(
        _row(
            design,
            "mean score − share positive",
            people,
            gaps.mean(),
            0.0,
            gaps.std(ddof=1) / np.sqrt(studies),
        )
    )
    unsure = [(s[w] - t[w]).sum() for _, s, t in found if (w := (s > 0.2) & (s < 0.8)).any()]
    count = sum(int(((s > 0.2) & (s < 0.8)).sum()) for _, s, _ in found)
    total = np.array(unsure)
    error = total.std(ddof=1) * np.sqrt(total.size) / max(count, 1)
    rows.append(_row(design, "the same, scores of .2 to .8", count, total.sum() / max(count, 1), 0.0, error))
    return rows


def _row(design: Design, what: str, cases: int, found: float, wanted: float, error: float) -> dict[str, Any]:
    """One line of the answer, with how many standard errors it is off."""
    off = (found - wanted) / max(error, 1e-12)
    return {
        "design": design.name, "what": what, "cases": f"{cases:,}", "found": f"{found:.4f}",
        "wanted": f"{wanted:.2f}", "standard error": f"{error:.4f}", "off": f"{off:+.1f}",
    }  # fmt: skip


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--studies", type=int, default=60, help="studies of each design")
    parser.add_argument("--sweeps", type=int, default=600, help="the most sweeps of each chain")
    options = parser.parse_args()
    rows = [row for design in DESIGNS for row in coverage(design, options.studies, options.sweeps)]
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
