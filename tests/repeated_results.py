"""Results of every deterministic fit as exact text; run in fresh processes by test_reproducible."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import binreps as br
from binreps.study.simulate import simulate_counts
from screening import screening_counts


def results(counts: br.CountTable) -> dict[str, list[float]]:
    """Numbers by name."""
    bayes, mode = br.fit_bayes(counts), br.fit_map(counts)
    shared = br.fit_populations({"a": counts, "b": br.CountTable([2, 2, 2], [0, 1, 2], [50, 9, 20])})
    n, s = [0, 1, 3, 3, 8], [0, 1, 1, 2, 3]
    found: dict[str, Any] = {
        "rates": [*bayes.rates, *bayes.sd, *mode.rates, *np.ravel(list(shared["b"].rates))],
        "intervals": np.ravel([list(end) for end in bayes.interval()]),
        "log evidence": [bayes.log_evidence, shared.log_evidence, mode.objective],
        "scores": [*bayes.score(n, s), *bayes.predict(n, s), *mode.score(n, s), *shared["a"].predict(n, s)],
        "score intervals": np.ravel(bayes.score_interval([3, 3], [1, 2])),
        "draws": np.ravel([list(bayes.draws(5, rng=3))]),
        "many": br.fit_many([counts, br.CountTable([4, 4], [0, 3], [9, 4])], workers=1).rates.prevalence,
    }
    return {name: [float(value) for value in values] for name, values in found.items()}


TABLES = {
    "a box": screening_counts,
    "nested": lambda: br.CountTable([2, 2, 2], [0, 1, 2], [30_000, 4_000, 6_000]),
    "many cells": lambda: simulate_counts(br.Rates(0.2, 0.1, 0.3), 5000, range(2, 12), rng=5),
}

if __name__ == "__main__":
    print(json.dumps({name: results(make()) for name, make in TABLES.items()}))  # JSON keeps every bit
