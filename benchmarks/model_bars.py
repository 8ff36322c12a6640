"""Bars of the models with sources and covariates: time, memory and quality, a number beside each bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

import binreps as br
from benchmarks import covariates, difficulty, published, sources
from benchmarks.accuracy import judged
from benchmarks.machine import memory_of
from benchmarks.report import Settings, number
from benchmarks.timing import say


@dataclass(frozen=True)
class Bar:
    """One number: what it is of, its unit, and whether it may be at most or must be at least the bar."""

    of: str
    work: str
    bar: float
    unit: str
    measure: Callable[[], float]
    least: bool = False
    only_full: bool = False


def rows(settings: Settings) -> list[dict[str, Any]]:
    """Every bar that can be measured here."""
    return [_row(bar) for bar in _bars() if settings.full or not bar.only_full]


def _row(bar: Bar) -> dict[str, Any]:
    """A bar and what was measured."""
    say(f"bars: {bar.work}")
    found = bar.measure()
    met = found >= bar.bar if bar.least else found <= bar.bar
    sign = "≥" if bar.least else "≤"
    return {
        "of": bar.of,
        "work": bar.work,
        "bar": f"{sign} {bar.bar:g} {bar.unit}".strip(),
        "measured": f"{number(found)} {bar.unit}".strip(),
        "met": "yes" if met else "**no**",
    }


def _bars() -> Iterator[Bar]:
    """Those of sources, of covariates, and of both together."""
    if published.available("rte"):
        rte, carcinoma = published.read_study("rte"), published.read_panel("carcinoma")
        yield Bar("sources", "rte: fit and scores", 2, "s", partial(_fit_seconds, rte))
        yield Bar("sources", "carcinoma: fit and scores", 2, "s", partial(_fit_seconds, carcinoma))
        for measure, bar, independent in (
            ("accuracy", 0.925, True),
            ("log loss", 0.3, True),
            ("log loss", 0.2, False),
        ):
            name = f"rte: {measure}" + (", independent" if independent else ", by default")
            work = partial(_quality, rte, measure, independent=independent)
            yield Bar("sources", name, bar, "", work, least=measure == "accuracy")
    crowd = partial(_crowd, 10**5, 5000)
    yield Bar("sources", "10⁶ readings of 5,000 sources, 16 chains, R̂ ≤ 1.05", 35, "s", crowd, only_full=True)
    memory = partial(_crowd_memory, 10**6, 5000)
    yield Bar("sources", "10⁷ readings of 5,000 sources: memory", 2000, "MB", memory, only_full=True)
    yield Bar(
        "sources", "10⁷ readings scored in DuckDB, over a query by hand", 1.3, "×", _scoring, only_full=True
    )
    for size, bar in ((10**4, 1), (10**6, 20)):
        work = partial(_covariates, size)
        yield Bar("covariates", f"N = {size:,}, d = 10: fit", bar, "s", work, only_full=size > 10**4)
    design = partial(_design_memory, 10**6)
    yield Bar("covariates", "N = 10⁶, d = 10: memory over that of the design", 3, "×", design, only_full=True)
    yield Bar(
        "together", "6,000 readings: effective draws of the slopes, a second", 150, "", _together, least=True
    )
    yield Bar("together", "rte: the discount's share of the time", 0.1, "", _discount, only_full=True)
    yield Bar("together", "difficulty, a reading, sweep and chain", 250, "ns", _difficulty)


# What is measured ------------------------------------------------------------------------------------------


def _seconds(work: Callable[[], Any]) -> float:
    """On the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _scored(study: published.Study, *, independent: bool) -> np.ndarray:
    readings = study.readings
    return np.asarray(br.fit_sources(readings, rng=1, independent=independent).score(readings))


def _fit_seconds(study: published.Study) -> float:
    return _seconds(partial(_scored, study, independent=True))


def _quality(study: published.Study, measure: str, *, independent: bool) -> float:
    assert study.truth is not None
    score = np.clip(_scored(study, independent=independent), sources.NOT_SURE, 1 - sources.NOT_SURE)
    return judged(score, study.truth)[measure]


def _crowd(people: int, size: int) -> float:
    """Seconds; endless if the chains do not agree."""
    readings = sources.simulated("", people, 10, size).study.readings
    start = time.process_time()
    fit = br.fit_sources(readings, rng=1, sweeps=160, chains=16)
    return time.process_time() - start if fit.rhat <= 1.05 else np.inf


def _crowd_memory(people: int, size: int) -> float:
    """MB beyond the readings; 20 sweeps, as memory does not depend on them."""
    readings = sources.simulated("", people, 10, size).study.readings
    return float(memory_of(lambda: br.fit_sources(readings, rng=1, sweeps=20, chains=16))[1] or np.nan)


def _scoring() -> float:
    return float(sources.scoring(Settings(full=True)).rows[0]["attach / by hand"])


def _covariates(size: int) -> float:
    table = covariates.study(size, 10, 14)
    return _seconds(lambda: br.fit_covariates(table))


def _design_memory(size: int) -> float:
    """Beyond the table, over a float for each individual and column."""
    table = covariates.study(size, 10, 15)
    return float(memory_of(lambda: br.fit_covariates(table))[1] or np.nan) / (size * 10 * 8 / 2**20)


def _together() -> float:
    """Effective draws of the worst slope for each second: two covariates, 20 sources, 2,000 × 3 readings."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2000, 2))
    truth = rng.random(2000) < expit(-0.8 + x @ [0.8, -0.5])
    p, q = rng.beta(2, 10, 20), rng.beta(2, 8, 20)
    of, by = np.repeat(np.arange(2000), 3), rng.integers(0, 20, 6000)
    yes = (rng.random(6000) < np.where(truth[of], 1 - q[by], p[by])).astype(np.int64)
    study = published.Study(of, by, yes)
    readings = study.readings.with_covariates({"a": x[:, 0], "b": x[:, 1]})
    start = time.process_time()
    fit = br.fit_sources(readings, rng=1, independent=True)
    return float(np.min(fit.posterior.sampled.side.effective)) / (time.process_time() - start)


def _discount() -> float:
    """What it adds to a fit with scores: the median of five pairs, as the difference is small."""
    if not published.available("rte"):
        return float("nan")
    rte = published.read_study("rte")
    pairs = [[_seconds(partial(_scored, rte, independent=one)) for one in (True, False)] for _ in range(5)]
    plain, discounted = np.median(pairs, axis=0)
    return float(discounted / plain - 1)


def _difficulty() -> float:
    readings = sources.simulated("", 200, 10, 20).study.readings
    return difficulty.sampled(readings, 1, sweeps=150, most=150).nanoseconds
