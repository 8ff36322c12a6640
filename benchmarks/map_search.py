"""EM against the direct search for the posterior mode: how often it falls short, and what it costs.

Run it with `python benchmarks/map_search.py`; docs/decisions/0002 quotes what it prints.
"""

import time

import numpy as np

import binreps as br
from binreps.study.simulate import simulate_counts

TABLES = 50
STUDIES = {
    "the paper's: N = 200, n = 2…6": (br.Rates(0.1, 0.1, 0.05), 200, range(2, 7)),
    "pairs: N = 200, n = 2": (br.Rates(0.3, 0.1, 0.05), 200, 2),
    "small: N = 12, n = 1…6": (br.Rates(0.5, 0.3, 0.3), 12, range(1, 7)),
    "rare: N = 10⁶, θ = 10⁻⁴, n = 3": (br.Rates(1e-4, 0.01, 0.1), 10**6, 3),
}
SEARCHES = {
    "direct": br.fit_map,
    "EM, 1 start": lambda counts: br.fit_map(counts, algorithm="em", rng=1, starts=1),
    "EM, 20 starts": lambda counts: br.fit_map(counts, algorithm="em", rng=1, starts=20),
}

rows = []
for study, arguments in STUDIES.items():
    tables = [simulate_counts(*arguments, rng=seed) for seed in range(TABLES)]
    best = [br.fit_map(table) for table in tables]
    for search, fit in SEARCHES.items():
        start = time.perf_counter()
        found = [fit(table) for table in tables]
        milliseconds = 1000 * (time.perf_counter() - start) / TABLES
        pairs = list(zip(best, found, strict=True))
        moves = [np.abs(np.subtract([*one.rates], [*other.rates])).max() for one, other in pairs]
        rows.append(
            {
                "study": study,
                "search": search,
                "at the cap": sum(not one.converged for one in found),
                "iterations": int(np.median([one.n_iter for one in found])),
                "objective short by": max(one.objective - other.objective for one, other in pairs),
                "a rate off by": max(moves),
                "ms": milliseconds,
            }
        )
columns = {name: [row[name] for row in rows] for name in rows[0]}
print(br.Table(columns, title=f"{TABLES} tables of each study"))
