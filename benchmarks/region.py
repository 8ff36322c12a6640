"""Where the error rates may lie: `Prior(better_than_chance=True)` beside the paper's p, q < ½.

What the wider region gains where a test misses more than it finds, and what it costs where it does not.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import binreps as br
from benchmarks.report import Ratio, Section, Settings, milliseconds
from benchmarks.timing import say
from binreps.study.simulate import simulate_counts

LEVEL, PEOPLE, REPLICATES = 0.9, 500, 5
PREVALENCE, FALSE_POSITIVE = 0.5, 0.02
SENSITIVITIES = (0.3, 0.45, 0.55, 0.7, 0.9)
REGIONS = {"p, q < ½": br.Prior(), "p + q < 1": br.Prior(better_than_chance=True)}


def run(settings: Settings) -> list[Section]:
    """The only section."""
    studies = 200 if settings.full else 12
    rows: list[dict[str, Any]] = []
    ratios: dict[str, Ratio] = {}
    for sensitivity in SENSITIVITIES:
        say(f"region: sensitivity {sensitivity}")
        found = {name: judged(prior, sensitivity, studies) for name, prior in REGIONS.items()}
        rows += [
            {"sensitivity": f"{sensitivity}", "region": name, **_shown(one)} for name, one in found.items()
        ]
        half, wide = found.values()
        ratios[f"region, sensitivity {sensitivity}: error of half to better than chance"] = Ratio(
            half["error"] / wide["error"], slack=0.8
        )
        ratios[f"region, sensitivity {sensitivity}: time of half to better than chance"] = Ratio(
            half["seconds"] / wide["seconds"], 0.5, slack=0.6
        )
    text = (
        f"{studies} simulated studies of {PEOPLE} individuals × {REPLICATES}, prevalence {PREVALENCE}, "
        f"specificity {1 - FALSE_POSITIVE}: the mean estimate of the prevalence, its root mean square "
        f"error, how wide {LEVEL:.0%} intervals are and in how many studies they hold the truth (bold "
        "where half of them do not), and milliseconds of a fit with its interval on the processor. Below "
        "a sensitivity of ½ the paper's region cannot hold the truth, and its answer is confidently "
        "wrong; above, both hold it, and the wider region costs time and, where the two are hard to tell "
        "apart, width."
    )
    return [Section("Region: tests that miss more than they find", text, rows, ratios)]


def judged(prior: br.Prior, sensitivity: float, studies: int) -> dict[str, float]:
    """Means over the same studies for either region."""
    found, seconds = [], 0.0
    for seed in range(studies):
        rates = br.Rates(PREVALENCE, FALSE_POSITIVE, 1 - sensitivity)
        counts = simulate_counts(rates, PEOPLE, REPLICATES, rng=seed)
        start = time.process_time()
        fit = br.fit_bayes(counts, prior)
        lower, upper = fit.interval(LEVEL)
        seconds += time.process_time() - start
        found.append((float(fit.rates.prevalence), float(lower.prevalence), float(upper.prevalence)))
    mean, low, high = np.transpose(found)
    return {
        "estimate": float(mean.mean()),
        "error": float(np.sqrt(np.mean((mean - PREVALENCE) ** 2))),
        "width": float((high - low).mean()),
        "holds": float(((low <= PREVALENCE) & (high >= PREVALENCE)).mean()),
        "seconds": seconds / studies,
    }


def _shown(one: dict[str, float]) -> dict[str, Any]:
    """A row."""
    holds = f"{one['holds']:.2f}"
    return {
        "estimate": f"{one['estimate']:.3f}",
        "error": f"{one['error']:.3f}",
        "width": f"{one['width']:.3f}",
        "holds": holds if one["holds"] >= 0.5 else f"**{holds}**",
        "processor": milliseconds(one["seconds"]),
    }
