"""Searches for the posterior mode: how often each falls short, how far, and what it costs.

Run it with `python benchmarks/map_search.py`; docs/decisions/0002 quotes what it prints.
"""

import time
from collections.abc import Callable
from unittest import mock

import numpy as np

import binreps as br
from binreps.fits.batch import fit_many
from binreps.fits.point import climb
from binreps.study.simulate import simulate_counts

Tables = list[br.CountTable]

TABLES = 50
STUDIES = {
    "the paper's: N = 200, n = 2…6": (br.Rates(0.1, 0.1, 0.05), 200, range(2, 7)),
    "pairs: N = 200, n = 2": (br.Rates(0.3, 0.1, 0.05), 200, 2),
    "small: N = 12, n = 1…6": (br.Rates(0.5, 0.3, 0.3), 12, range(1, 7)),
    "rare: N = 10⁶, θ = 10⁻⁴, n = 3": (br.Rates(1e-4, 0.01, 0.1), 10**6, 3),
}
HARD = 1000
PRIORS = {
    "p, q < ½": br.Prior(prevalence=(1, 1)),
    "p, q < ½, flat": br.Prior((1, 1), (1, 1), (1, 1)),
    "p + q < 1": br.Prior(prevalence=(1, 1), better_than_chance=True),
    "p + q < 1, flat": br.Prior((1, 1), (1, 1), (1, 1), better_than_chance=True),
}


def main() -> None:
    """Both tables."""
    rows = [row for name, study in STUDIES.items() for row in small_studies(name, study)]
    print(br.Table(_columns(rows), title=f"{TABLES} tables of each study"))
    print()
    rows = [hard_tables(name, prior) for name, prior in PRIORS.items()]
    print(br.Table(_columns(rows), title=f"{HARD:,} hard tables, all at once, against a wider scan"))


def small_studies(name: str, study: tuple) -> list[dict]:
    """EM against the direct search."""
    tables = [simulate_counts(*study, rng=seed) for seed in range(TABLES)]
    searches: dict[str, Callable[[br.CountTable], br.fits.point.mode.MapFit]] = {
        "direct": br.fit_map,
        "EM, 1 start": lambda counts: br.fit_map(counts, algorithm="em", rng=1, starts=1),
        "EM, 20 starts": lambda counts: br.fit_map(counts, algorithm="em", rng=1, starts=20),
    }
    best = [br.fit_map(table) for table in tables]
    rows = []
    for search, fit in searches.items():
        start = time.process_time()
        found = [fit(table) for table in tables]
        milliseconds = 1000 * (time.process_time() - start) / TABLES
        pairs = list(zip(best, found, strict=True))
        moves = [np.abs(np.subtract([*one.rates], [*other.rates])).max() for one, other in pairs]
        rows.append(
            {
                "study": name,
                "search": search,
                "at the cap": sum(not one.converged for one in found),
                "iterations": int(np.median([one.n_iter for one in found])),
                "objective short by": max(one.objective - other.objective for one, other in pairs),
                "a rate off by": max(moves),
                "ms": milliseconds,
            }
        )
    return rows


def hard_tables(name: str, prior: br.Prior) -> dict:
    """Where the search ends, and where one with four times as many points and twice the EM steps does."""
    tables = [hard(np.random.default_rng(seed)) for seed in range(HARD)]
    start = time.process_time()
    found = fit_many(tables, method="map", prior=prior, workers=1)
    seconds = time.process_time() - start
    with (
        mock.patch.object(climb, "_PREVALENCES", (0.02, 0.08, 0.2, 0.35, 0.65, 0.8, 0.92, 0.98)),
        mock.patch.object(climb, "_EM_STEPS", 10),
        mock.patch.object(climb, "_leads", lambda _, before, *__: np.zeros(before.shape[1], bool)),
    ):
        wider = fit_many(tables, method="map", prior=prior)
    reached, best = (
        np.array([log_posterior(t, prior, row.rates) for t, row in zip(tables, made.rows, strict=True)])
        for made in (found, wider)
    )
    short = np.maximum(best, reached) - reached
    return {
        "region and prior": name,
        "short": int((short > 1e-9 * (1 + np.abs(best))).sum()),
        "at worst by": float(short.max()),
        "wider scan short": int((reached - best > 1e-9 * (1 + np.abs(best))).sum()),
        "tables per second of processor": round(HARD / seconds),
    }


def hard(rng: np.random.Generator) -> br.CountTable:
    """A dozen individuals and poor tests; a few groups far apart; huge weights; very many replicates."""
    kind = rng.integers(4)
    if kind == 0:
        return simulate_counts(br.Rates(0.5, 0.3, 0.3), 12, range(1, 7), rng=rng)
    cells = int(rng.integers(2, 7))
    n = rng.integers(1, 11, cells) if kind < 3 else np.ceil(10 ** rng.uniform(0, 5, cells)).astype(int)
    weight = np.ceil(10 ** rng.uniform(0, 2 if kind == 1 else 9, cells)) if kind < 3 else np.full(cells, 9)
    return br.CountTable(n, rng.binomial(n, rng.uniform(0, 1, cells)), weight)


def log_posterior(counts: br.CountTable, prior: br.Prior, rates: tuple[float, ...]) -> float:
    """What is maximised."""
    terms = ((a - 1, b - 1, rate) for (a, b), rate in zip(prior, rates, strict=True))
    logs = [x * np.log(y) for a, b, rate in terms for x, y in ((a, rate), (b, 1 - rate)) if x]
    return br.model.log_likelihood(counts, br.Rates(*rates)) + float(sum(logs))


def _columns(rows: list[dict]) -> dict[str, list]:
    return {name: [row[name] for row in rows] for name in rows[0]}


if __name__ == "__main__":
    main()
