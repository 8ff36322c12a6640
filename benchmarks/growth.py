"""Growth: how the time and memory of each model grow with individuals, cells, readings, sources, columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import binreps as br
from benchmarks import covariates, sources, tables
from benchmarks.machine import memory_of
from benchmarks.report import Ratio, Section, Settings, milliseconds
from benchmarks.timing import repeat, say
from binreps.study.simulate import simulate_counts

SCALES = {
    "individuals": (10**2, 10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
    "cells": (30, 100, 300, 1000, 2000, 5000),
    "populations": (2, 5, 10, 20, 50, 100),
}
CONSTANT, LINEAR, SQUARE = 0.2, 1.2, 2.2
"""What a fitted exponent may be, a fifth above what is meant."""


@dataclass(frozen=True)
class Task:
    """A fit of data of growing size: by what it grows, to which power at most, and how the data are made."""

    fit: str
    scale: str
    sizes: tuple[int, ...]
    power: float
    data: Callable[[int], Any]
    work: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """What the table and the floors call it."""
        return f"{self.fit}, {self.scale}"


def tasks() -> list[Task]:
    """Every model in everything its data can have more of."""
    individuals, cells, populations = SCALES.values()
    study, many = tables.growing_study, _many_cells
    swept = partial(br.fit_sources, rng=1, sweeps=40, chains=16, independent=True)
    return [
        Task("fit_bayes", "individuals", individuals, CONSTANT, study, br.fit_bayes),
        Task("fit_map", "individuals", individuals, CONSTANT, study, br.fit_map),
        Task("fit_bayes", "cells", cells, LINEAR, many, br.fit_bayes),
        Task("fit_map", "cells", cells, LINEAR, many, br.fit_map),
        Task("fit_populations", "populations", populations, LINEAR, _populations, br.fit_populations),
        Task("fit_populations", "individuals", individuals, CONSTANT, _two_populations, br.fit_populations),
        Task("fit_overdispersed", "individuals", individuals, CONSTANT, study, br.fit_overdispersed),
        Task("fit_overdispersed", "cells", (10, 30, 100, 200), LINEAR, many, br.fit_overdispersed),
        Task("fit_covariates", "individuals", _powers(3, 6), LINEAR, _by_individuals, br.fit_covariates),
        Task("fit_covariates", "covariates", (1, 2, 5, 10), SQUARE, _by_columns, br.fit_covariates),
        Task("fit_sources", "readings", _powers(4, 6), LINEAR, _by_readings, swept),
        Task("fit_sources", "sources", (20, 100, 500, 2500), LINEAR, _by_sources, swept),
        Task("fit_sources", "individuals of a panel", _powers(3, 6), CONSTANT, _panel, swept),
    ]


def run(settings: Settings) -> list[Section]:
    """The only section."""
    rows, ratios = [], {}
    for task in tasks():
        say(f"growth: {task.name}")
        sizes = task.sizes if settings.full else _fewer(task.sizes)
        made = [_measured(task, size, settings) for size in sizes]
        found, seconds, memory = zip(*made, strict=True)
        exponent = fitted_exponent(found, seconds)
        rows.append(
            {
                "fit": task.name,
                "from": found[0],
                "to": found[-1],
                "first, ms": milliseconds(seconds[0]),
                "last, ms": milliseconds(seconds[-1]),
                "last, MB": memory[-1],
                "exponent": f"{exponent:.2f}",
                "at most": task.power,
            }
        )
        ratios[f"growth, {task.name}: last exponent allowed less exponent, plus one"] = Ratio(
            1 + task.power - exponent, claim=1.0, slack=0.8
        )
    return [Section("Growth", _explained(), rows, ratios)]


def _explained() -> str:
    """What the table means."""
    return (
        "Least-squares slopes of log time on the processor (median of several, or one call where it takes "
        "seconds) against log size, cells as found in the table; and the memory of the largest beyond "
        "what the process held. Where the data are counts a fit should not grow with the individuals "
        "(exponent 0; at most .2); it should be linear in cells, populations, readings and sources (at "
        "most 1.2), and square in covariates. n = 3–5 for individuals, 100 individuals each for "
        "populations; more cells come with more individuals and more replicates; 10 covariates for "
        "individuals, 5,000 individuals for covariates; 10 readings each by 500 sources for readings, 10⁵ "
        "readings for sources, and five readers of everyone for the panel, all for 40 sweeps of 16 "
        "chains, as the number of sweeps depends on the error that is asked for. A slope above its bar is "
        "in bold below."
    )


def _fewer(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """For a quick run: three of them at most, not the largest of what grows."""
    return sizes[:: max(len(sizes) // 3, 1)][:3]


def _measured(task: Task, size: int, settings: Settings) -> tuple[int, float, float | None]:
    """The size as found, the seconds of a fit, and its memory in MB."""
    data = task.data(size)
    _, memory = memory_of(lambda: task.work(data))
    runs = repeat(
        task.work, lambda: data, settings.turns, seconds=3 if settings.full else 0.5, warm_up=False, least=1
    )
    return (len(data) if task.scale in ("cells", "populations") else size), runs.busy.median, memory


# Data of a given size --------------------------------------------------------------------------------------


def _powers(first: int, last: int) -> tuple[int, ...]:
    """Powers of ten."""
    return tuple(10**k for k in range(first, last + 1))


def _many_cells(size: int) -> br.CountTable:
    return tables.many_cells(100 * size, int(1.2 * np.sqrt(2 * size)))


def _populations(size: int) -> dict[int, br.CountTable]:
    return {
        k: simulate_counts(br.Rates(0.1 + 0.5 * k / size, 0.1, 0.2), 100, [3, 4], rng=k) for k in range(size)
    }


def _two_populations(size: int) -> dict[str, br.CountTable]:
    return {
        name: simulate_counts(br.Rates(theta, 0.1, 0.2), size // 2, [3, 4], rng=1)
        for name, theta in (("a", 0.2), ("b", 0.5))
    }


def _by_individuals(size: int) -> br.CovariateTable:
    return covariates.study(size, 10, 1)


def _by_columns(columns: int) -> br.CovariateTable:
    return covariates.study(5000, columns, 1)


def _by_readings(readings: int) -> br.Readings:
    return sources.simulated("", readings // 10, 10, 500).study.readings


def _by_sources(size: int) -> br.Readings:
    return sources.simulated("", 10**4, 10, size).study.readings


def _panel(size: int) -> br.Readings:
    return sources.simulated("", size, 5, 5).study.readings.merged()


def fitted_exponent(sizes: tuple[int, ...], seconds: tuple[float, ...]) -> float:
    """The slope of log time against log size.

    Examples
    --------
    >>> round(fitted_exponent((1, 10, 100), (2.0, 20.0, 200.0)), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
