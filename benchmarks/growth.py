"""Growth: how the time of a fit grows with individuals, with cells and with populations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import binreps as br
from benchmarks import tables
from benchmarks.report import Ratio, Section, Settings, milliseconds
from benchmarks.timing import repeat, say
from binreps.study.simulate import simulate_counts

SCALES = {
    "individuals": (10**2, 10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
    "cells": (30, 100, 300, 1000, 2000, 5000),
    "populations": (2, 5, 10, 20, 50, 100),
}
MOST_POWERS = {"individuals": 0.2, "cells": 1.2, "populations": 1.2}
"""What a fitted exponent may be: constant in the individuals, linear in the others."""


def run(settings: Settings) -> list[Section]:
    """The only section."""
    rows, ratios = [], {}
    for name, work in _tasks().items():
        scale = name.split(", ")[1]
        sizes = SCALES[scale] if settings.full else SCALES[scale][::2]
        say(f"growth: {name}")
        made = [_measured(scale, size, work, settings) for size in sizes]
        exponent = fitted_exponent(*zip(*made, strict=True))
        rows.append(
            {
                "fit": name,
                "from": made[0][0],
                "to": made[-1][0],
                "first, ms": milliseconds(made[0][1]),
                "last, ms": milliseconds(made[-1][1]),
                "exponent": f"{exponent:.2f}",
            }
        )
        goal = MOST_POWERS[scale]
        ratios[f"growth, {name}: last exponent allowed less exponent, plus one"] = Ratio(
            1 + goal - exponent, claim=1.0, slack=0.8
        )
    text = (
        "Least-squares slopes of log time on the processor (median of several) against log size, cells as "
        "found in the table. A fit should not grow with the individuals (exponent 0; at most 0.2), and be "
        "linear in cells and populations (1; at most 1.2). n = 3–5 for individuals, 100 individuals each "
        "for populations; more cells come with more individuals and more replicates."
    )
    return [Section("Growth", text, rows, ratios)]


def _tasks() -> dict[str, Callable[[Any], Any]]:
    """What is fitted, named "fit, scale"."""
    return {
        "fit_bayes, individuals": br.fit_bayes,
        "fit_map, individuals": br.fit_map,
        "fit_bayes, cells": br.fit_bayes,
        "fit_map, cells": br.fit_map,
        "fit_populations, populations": br.fit_populations,
    }


def _measured(scale: str, size: int, work: Callable[[Any], Any], settings: Settings) -> tuple[int, float]:
    """The size as found, and the seconds of a fit."""
    data = _data(scale, size)
    runs = repeat(work, lambda: data, settings.turns, seconds=3 if settings.full else 0.5)
    return (len(data) if scale != "individuals" else size), runs.busy.median


def _data(scale: str, size: int) -> Any:
    """A table, or populations, of a given size."""
    if scale == "individuals":
        return tables.growing_study(size)
    if scale == "cells":
        return tables.many_cells(100 * size, int(1.2 * np.sqrt(2 * size)))
    return {
        k: simulate_counts(br.Rates(0.1 + 0.5 * k / size, 0.1, 0.2), 100, [3, 4], rng=k) for k in range(size)
    }


def fitted_exponent(sizes: tuple[int, ...], seconds: tuple[float, ...]) -> float:
    """The slope of log time against log size.

    Examples
    --------
    >>> round(fitted_exponent((1, 10, 100), (2.0, 20.0, 200.0)), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
