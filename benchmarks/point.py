"""The point estimate: `fit_map` against the searches that a user could write or install."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import binreps as br
from benchmarks import crowds, tables
from benchmarks.report import Ratio, Section, Settings, milliseconds, power
from benchmarks.timing import Runs, alternate, say
from binreps.study.simulate import simulate_counts

Rates = tuple[float, float, float]

STUDIES = {
    "easy, N = 50, n = 3–5": (br.Rates(0.3, 0.1, 0.15), 50, [3, 4, 5]),
    "hard, N = 12, n = 1–6": (br.Rates(0.5, 0.3, 0.3), 12, range(1, 7)),
}


def run(settings: Settings) -> list[Section]:
    """All sections of this family."""
    return [one_table(settings), many_tables(settings)]


# One table -------------------------------------------------------------------------------------------------


def one_table(settings: Settings) -> Section:
    """Time and objective of each search, on tables of growing size."""
    rows, ratios = [], {}
    for size in (50, 200, 10**3, 10**4, 10**5, 10**6) if settings.full else (50, 10**3, 10**6):
        counts = tables.growing_study(size)
        say(f"point, N = {power(size)}")
        runs = alternate(
            {"fit_map": lambda _, c=counts: tuple(br.fit_map(c).rates), **dict(_peers(counts, settings))},
            2 * settings.turns if size < 10**6 else 3,
            seconds=10 if settings.full else 2,
            warm_up=size < 10**6,
        )
        rows += [_row(size, name, counts, made, runs["fit_map"]) for name, made in runs.items()]
        ratios |= _ratios(size, runs)
    text = (
        "`fit_map` against SciPy's L-BFGS-B on the same log posterior, as a user would write it (bounds, one "
        "start, no gradient), over individuals and over cells; against crowd-kit's Dawid–Skene with one "
        "constant worker; against StepMix with two classes and one column per replicate. The last two "
        "maximise a likelihood without a prior, and StepMix fits rates of its own to each column (their mean "
        "is judged here), so their log posterior is lower by design. Milliseconds; differences of log "
        f"posterior and log likelihood are theirs minus ours. {_missing()}"
    )
    return Section("Point estimate: one table", text, rows, ratios)


def _peers(counts: br.CountTable, settings: Settings) -> Iterator[tuple[str, Callable[[int], Rates]]]:
    """The searches that are within reach for a table of this size."""
    n, s = np.repeat(counts.n, counts.weight), np.repeat(counts.s, counts.weight)
    yield "SciPy, individuals", lambda _: by_scipy(n, s, np.ones(n.size))
    yield "SciPy, cells", lambda _: by_scipy(counts.n, counts.s, counts.weight)
    if counts.individuals > (10**5 if settings.full else 10**3):
        return
    if crowds.installed():
        votes = one_worker(n, s)
        yield "crowd-kit", lambda _: by_dawid_skene(votes)
    if find_spec("stepmix"):
        wide = columns(n, s)
        yield "StepMix", lambda seed: by_stepmix(wide, seed)


def _row(size: int, name: str, counts: br.CountTable, made: Runs, ours: Runs) -> dict[str, Any]:
    """One search."""
    found, best = made.results[-1], ours.results[-1]
    return {
        "N": power(size),
        "search": name,
        "time": made.wall,
        "processor": milliseconds(made.busy.median),
        "log posterior": log_posterior(counts, found) - log_posterior(counts, best),
        "log likelihood": log_likelihood(counts, found) - log_likelihood(counts, best),
    }


def _ratios(size: int, runs: dict[str, Runs]) -> dict[str, Ratio]:
    """How many times faster we were, on the processor."""
    ours = runs["fit_map"].busy.median
    return {
        f"point, N = {power(size)}: {name} to fit_map": Ratio(made.busy.median / ours, slack=0.6)
        for name, made in runs.items()
        if name != "fit_map"
    }


def _missing() -> str:
    """Why rows are missing, if they are."""
    lines = [] if crowds.installed() else [crowds.MISSING]
    if not find_spec("stepmix"):
        lines.append("StepMix is not installed, so its rows are missing.")
    return " ".join(lines)


# The searches ----------------------------------------------------------------------------------------------


def by_scipy(n: np.ndarray, s: np.ndarray, weight: np.ndarray) -> Rates:
    """The mode by L-BFGS-B."""
    from scipy.optimize import minimize

    def lost(rates: np.ndarray) -> float:
        theta, p, q = rates
        positive = theta * (1 - q) ** s * q ** (n - s)
        negative = (1 - theta) * p**s * (1 - p) ** (n - s)
        prior = np.log(p) + np.log1p(-p) + np.log(q) + np.log1p(-q)
        return -float(weight @ np.log(positive + negative) + prior)

    bounds = [(1e-6, 1 - 1e-6), (1e-6, 0.5), (1e-6, 0.5)]
    found = minimize(lost, [0.5, 0.2, 0.2], method="L-BFGS-B", bounds=bounds)
    return tuple(found.x)


def by_dawid_skene(votes: Any) -> Rates:
    """The rates of crowd-kit's one worker."""
    model = crowds.dawid_skene(votes)
    errors, priors = model.errors_, model.priors_
    false_positive, sensitivity = errors.loc[(0, 1), 0], errors.loc[(0, 1), 1]
    return float(priors[1]), float(false_positive), float(1 - sensitivity)


def by_stepmix(wide: np.ndarray, seed: int) -> Rates:
    """The rates of StepMix's two classes, averaged over replicates."""
    from stepmix.stepmix import StepMix

    with warnings.catch_warnings(action="ignore"):
        model = StepMix(2, measurement="binary_nan", random_state=seed, progress_bar=0).fit(wide)
    found = model.get_parameters()
    positives = found["measurement"]["pis"].mean(axis=1)
    high = int(positives.argmax())
    return float(found["weights"][high]), float(positives[1 - high]), float(1 - positives[high])


def one_worker(n: np.ndarray, s: np.ndarray) -> Any:
    """Votes of one worker, as crowd-kit reads them."""
    import pandas as pd

    order = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    task = np.repeat(np.arange(n.size), n)
    return pd.DataFrame({"task": task, "worker": 0, "label": (order < s[task]).astype(int)})


def columns(n: np.ndarray, s: np.ndarray) -> np.ndarray:
    """One column per replicate, in random order, NaN where there is none."""
    most = int(n.max())
    place = np.arange(most)
    results = np.where(place < s[:, None], 1.0, np.where(place < n[:, None], 0.0, np.nan))
    return np.random.default_rng(1).permuted(results, axis=1)


def log_likelihood(counts: br.CountTable, rates: Rates) -> float:
    """Of the table, by our model."""
    theta, p, q = rates
    n, s = counts.n, counts.s
    mixed = theta * (1 - q) ** s * q ** (n - s) + (1 - theta) * p**s * (1 - p) ** (n - s)
    with np.errstate(divide="ignore"):
        return float(counts.weight @ np.log(mixed))


def log_posterior(counts: br.CountTable, rates: Rates) -> float:
    """With the default prior of `fit_map`: flat for θ, Beta(2, 2) for p and q."""
    _, p, q = rates
    with np.errstate(divide="ignore"):
        return log_likelihood(counts, rates) + float(np.log(p * (1 - p)) + np.log(q * (1 - q)))


# Many tables -----------------------------------------------------------------------------------------------


def many_tables(settings: Settings) -> Section:
    """Many small data sets, by `fit_many` and by loops."""
    size = 1000 if settings.full else 50
    rows, ratios = [], {}
    for name, arguments in STUDIES.items():
        say(f"point, {size:,} tables: {name}")
        studies = [simulate_counts(*arguments, rng=seed) for seed in range(size)]
        runs = alternate(
            {
                "`fit_many`, map": lambda _, t=studies: list(
                    zip(*br.fit_many(t, method="map").rates, strict=True)
                ),
                "loop over `fit_map`": lambda _, t=studies: [br.fit_map(one).rates for one in t],
                "loop over SciPy, cells": lambda _, t=studies: [by_scipy(c.n, c.s, c.weight) for c in t],
            },
            3,
            seconds=20 if settings.full else 2,
        )
        rows += [_many_row(name, search, made, studies, runs) for search, made in runs.items()]
        many, loop, scipy = (made.wall.median for made in runs.values())
        ratios[f"point, {name}: SciPy to fit_many"] = Ratio(scipy / many, slack=0.3)
        ratios[f"point, {name}: SciPy to a loop over fit_map"] = Ratio(scipy / loop)
    text = (
        f"{size:,} small tables of each kind. `fit_many` makes one search for all, in a thread per core. "
        "A search falls short where its log posterior ends more than 10⁻³ below the best "
        "of the three. Milliseconds for all."
    )
    return Section("Point estimate: many tables", text, rows, ratios)


def _many_row(
    name: str, search: str, made: Runs, studies: list[br.CountTable], runs: dict[str, Runs]
) -> dict[str, Any]:
    """One search on all tables of a kind."""
    heights = {kind: _heights(studies, one.results[-1]) for kind, one in runs.items()}
    short = np.max(list(heights.values()), axis=0) - heights[search]
    return {
        "tables": name,
        "search": search,
        "time": made.wall,
        "processor": milliseconds(made.busy.median),
        "fits per second": len(studies) / made.wall.median,
        "short": f"{int((short > 1e-3).sum())} of {len(studies)}",
        "at worst by": float(short.max()),
    }


def _heights(studies: list[br.CountTable], found: list[Any]) -> np.ndarray:
    """The log posterior that was reached on each table."""
    return np.array([log_posterior(c, tuple(rates)) for c, rates in zip(studies, found, strict=True)])
