"""Bars of the exact engine: what each kind of posterior may take, on one core, in both regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import binreps as br
from benchmarks import tables
from benchmarks.report import Settings, milliseconds, power
from benchmarks.timing import repeat, say
from binreps.fits.bayes import BayesFit
from binreps.study.simulate import simulate_counts

PROBABILITIES = (0.05, 0.5, 0.95)
REGIONS = {"p, q < ½": br.Prior(), "p + q < 1": br.Prior(better_than_chance=True)}
DEARER = 2.0  # the bar of the second region, over that of the first


@dataclass(frozen=True)
class Work:
    """Something to time on what `prepare` makes of a table and a prior, and the most milliseconds for it."""

    name: str
    bar: float
    table: Callable[[], br.CountTable]
    work: Callable[[Any], Any]
    prepare: Callable[[br.CountTable, br.Prior], Any] = lambda counts, prior: (counts, prior)


def _fit(asked: tuple[br.CountTable, br.Prior]) -> BayesFit:
    """A fit: evidence, moments and error."""
    return br.fit_bayes(*asked)


def _fit_and_intervals(asked: tuple[br.CountTable, br.Prior]) -> BayesFit:
    """A fit, the quantiles of its rates, and the intervals of the scores of its cells."""
    fit = br.fit_bayes(*asked)
    fit.quantile(PROBABILITIES)
    fit.score_interval(fit.counts)
    return fit


def _score_intervals(fit: BayesFit) -> None:
    """Of 27 cells: everyone with one to six replicates."""
    fit.score_interval(*tables.lattice(27))


def _prediction_intervals(fit: BayesFit) -> None:
    """Of a decision table up to six replicates."""
    fit.predict_interval(*tables.lattice(27))


def _draws(fit: BayesFit) -> None:
    """As many as a sampler would give."""
    fit.draws(4000, rng=1)


@cache
def _single() -> br.CountTable:
    """A million individuals with one replicate each."""
    return simulate_counts(br.Rates(0.3, 0.1, 0.15), 10**6, 1, rng=1)


@cache
def _near_half() -> br.CountTable:
    """A test that is nearly a coin, up to twelve replicates."""
    return br.simulate(br.Rates(0.5, 0.48, 0.5), 1000, range(1, 13), rng=1).counts


def _works() -> Iterator[Work]:
    """Every row; tables are made when they are needed."""
    study = tables.growing_study
    yield Work("fit, N = 50", 3, tables.small_study, _fit)
    for size in (200, 10**3, 10**6, 10**9):
        yield Work(f"fit, N = {power(size)}, n = 3–5", 12, partial(study, size), _fit)
    yield Work("n = 2, N = 10⁶: fit", 120, tables.ridge, _fit)
    yield Work("n = 2, N = 10⁶: fit, quantiles, score intervals", 500, tables.ridge, _fit_and_intervals)
    yield Work("n = 1, N = 10⁶: fit", 200, _single, _fit)
    yield Work("near ½, N = 10³, n = 1–12: fit", 1000, _near_half, _fit)
    yield Work("near ½: fit, quantiles, score intervals", 2000, _near_half, _fit_and_intervals)
    modes = partial(tables.two_modes, 10**5)
    yield Work("two modes, N = 3·10⁵: fit, quantiles, score intervals", 400, modes, _fit_and_intervals)
    for size in (50, 10**3):
        table = tables.small_study if size == 50 else partial(study, size)
        name = f"27 score intervals after a fit, N = {power(size)}"
        yield Work(name, 80, table, _score_intervals, br.fit_bayes)
    few = partial(simulate_counts, br.Rates(0.3, 0.1, 0.15), 400, 2, rng=1)
    yield Work("n = 2, N = 400: predict_interval up to n = 6", 300, few, _prediction_intervals, br.fit_bayes)
    for size in (50, 10**6):
        table = tables.small_study if size == 50 else partial(study, size)
        yield Work(f"4,000 draws after a fit, N = {power(size)}", 25, table, _draws, br.fit_bayes)


def rows(settings: Settings) -> list[dict[str, Any]]:
    """Every work beside its bar."""
    return [_row(one, settings) for one in _works()]


def _row(one: Work, settings: Settings) -> dict[str, Any]:
    """One work in both regions beside its bars."""
    counts = one.table()
    row: dict[str, Any] = {"of": "engine", "work": one.name, "bar": f"≤ {one.bar:g} ms"}
    met, columns = [], ("measured", "with p + q < 1")
    for (region, prior), dearer, column in zip(REGIONS.items(), (1.0, DEARER), columns, strict=True):
        say(f"bars: {one.name}; {region}")
        taken = _taken(one, counts, prior, settings)
        row[column] = f"{milliseconds(taken)} ms"
        met.append(1000 * taken <= dearer * one.bar)
    row["met"] = "yes" if all(met) else "**no**" if not met[0] else "**not p + q < 1**"
    return row


def _taken(one: Work, counts: br.CountTable, prior: br.Prior, settings: Settings) -> float:
    """Seconds on the processor: the median of calls, or that of the first if it took very long."""
    prepare = partial(one.prepare, counts, prior)
    first = repeat(one.work, prepare, 1, seconds=0, warm_up=False)
    slow = 1.0 if settings.full else 0.3
    if first.busy.median > 10 * slow:
        return first.busy.median
    return repeat(one.work, prepare, 4 * settings.turns, seconds=slow, warm_up=False).busy.median
