"""The paper's methods, and their scores on many data sets at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np

import binreps as br
from binreps.fits.batch import BatchResult
from binreps.fits.point.simple import average_score, median_score
from binreps.model import likelihood_score
from paper.settings import Progress, part

T = TypeVar("T")
R = TypeVar("R")

DEFAULT = br.Prior()
MISGUIDED = br.Prior(false_positive=(50, 50), false_negative=(50, 50))
"""The prior that is sure of a worthless test."""

FITS: dict[str, dict[str, Any]] = {
    "average": {"method": "average"},
    "median": {"method": "median"},
    "MAP": {"method": "map"},
    "Bayes": {"method": "bayes", "prior": DEFAULT},
    "Bayes, misguided prior": {"method": "bayes", "prior": MISGUIDED},
}
"""How `fit_many` makes each method."""

SCORED = (*FITS, "rates known")
"""The methods and, to compare with, the likelihood score at the rates that made the data."""

_WORTH_PROCESSES = 50  # items
_SECONDS = {"average": 0.2, "median": 0.2, "MAP": 10.0}  # per thousand fits; for the progress bar only


def fit_all(
    tables: Sequence[br.CountTable], progress: Progress, names: Sequence[str] = tuple(FITS)
) -> dict[str, BatchResult]:
    """Every data set by every method."""
    costs = [_SECONDS.get(name, 4.0) for name in names]
    results, before = {}, 0.0
    for name, cost in zip(names, costs, strict=True):

        def report(done: float, total: float, before: float = before, cost: float = cost) -> None:
            progress(before + cost * done / max(total, 1), sum(costs))

        results[name] = br.fit_many(tables, progress=report, **FITS[name])
        before += cost
    return results


def scores_of_cells(
    tables: Sequence[br.CountTable], rates: br.Rates, progress: Progress
) -> dict[str, list[np.ndarray]]:
    """Scores of the cells of every data set: for each method, one array per data set."""
    modes = fit_all(tables, part(progress, 0, 2), ("MAP",))["MAP"].rates
    bayes = on_all_cores(bayes_scores, tables, part(progress, 1, 2))
    scores: dict[str, list[np.ndarray]] = {name: [] for name in SCORED}
    for i, table in enumerate(tables):
        n, s = table.n, table.s
        scores["average"].append(average_score(n, s))
        scores["median"].append(median_score(n, s))
        scores["MAP"].append(likelihood_score(n, s, one(modes, i)))
        scores["Bayes"].append(bayes[i][0])
        scores["Bayes, misguided prior"].append(bayes[i][1])
        scores["rates known"].append(likelihood_score(n, s, one(rates, i)))
    return scores


def bayes_scores(table: br.CountTable) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the cells of one data set, under both priors."""
    default, misguided = (
        br.fit_bayes(table, prior).score(table.n, table.s) for prior in (DEFAULT, MISGUIDED)
    )
    return default, misguided


def on_all_cores(function: Callable[[T], R], items: Sequence[T], progress: Progress) -> list[R]:
    """The function of every item, in several processes if there are many items."""
    results = []
    with ExitStack() as stack:
        each: Iterable[R] = map(function, items)
        if len(items) > _WORTH_PROCESSES:
            pool = ProcessPoolExecutor(mp_context=get_context("spawn"))  # a fork would copy running threads
            each = stack.enter_context(pool).map(function, items, chunksize=10)
        for result in each:
            results.append(result)
            progress(len(results), len(items))
    return results


def one(rates: br.Rates, i: int) -> br.Rates:
    """The i-th of an array of rates."""
    return br.Rates(*(np.asarray(rate)[i] for rate in rates))
