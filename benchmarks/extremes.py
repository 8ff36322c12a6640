"""How long public calls take on awkward tables of up to 1,000 cells: `python -m benchmarks.extremes`.

Each call runs in a process of its own, which is ended after 60 seconds. Seconds are processor time with one
BLAS thread, without start-up; what takes more than 5 without a word is marked, and what said that it takes
long is shown with that.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

import binreps as br
from benchmarks.timing import say
from binreps.decide.predictive import predictive_counts
from binreps.errors import TakesLong

LIMIT = 60.0
"""Seconds after which a call is ended."""

TOO_LONG = 5.0
"""Seconds that a call may take without a word."""

_RATES = (0.3, 0.12, 0.2)


def _drawn(n: Any, weight: Any = None) -> br.CountTable:
    """A study in which individuals have these numbers of replicates."""
    rng = np.random.default_rng(1)
    theta, p, q = _RATES
    chance = np.where(rng.random(len(n)) < theta, 1 - q, p)
    return br.CountTable(n, rng.binomial(n, chance), weight)


def _triangle(most: int) -> br.CountTable:
    """Every result up to so many replicates, a few individuals each, which fits no model."""
    n = np.concatenate([np.full(k + 1, k) for k in range(1, most + 1)])
    s = np.concatenate([np.arange(k + 1) for k in range(1, most + 1)])
    return br.CountTable(n, s, np.random.default_rng(1).integers(1, 5, n.size))


def _few(n: int, weights: list[int]) -> br.CountTable:
    """All results of n replicates."""
    return br.CountTable([n] * (n + 1), range(n + 1), weights)


TABLES: dict[str, Callable[[], br.CountTable]] = {
    "usual, n = 6": lambda: _few(6, [260, 60, 40, 30, 30, 50, 130]),
    "n = 1": lambda: _few(1, [600, 400]),
    "n = 2": lambda: _few(2, [500, 200, 300]),
    "n = 1, 10¹²": lambda: _few(1, [6 * 10**11, 4 * 10**11]),
    "n = 3, 10¹²": lambda: _few(3, [5 * 10**11, 2 * 10**11, 10**11, 2 * 10**11]),
    "one n = 10⁴": lambda: br.CountTable([10_000] * 3, [900, 1500, 8000], [30, 10, 20]),
    "1,000 cells, n ≤ 10⁴": lambda: _drawn(np.random.default_rng(2).integers(1, 10_000, 1000)),
    "1,000 cells, n ≤ 10⁴, 10¹²": lambda: _drawn(
        np.random.default_rng(2).integers(1, 10_000, 1000), np.random.default_rng(3).integers(1, 10**9, 1000)
    ),
    "all results, n ≤ 43": lambda: _triangle(43),
}


def _scores(fit: Any) -> None:
    """Scores, predictions and intervals of everyone."""
    fit.score(fit.counts)
    fit.predict(fit.counts)
    fit.score_interval(fit.counts)


def _populations(counts: br.CountTable) -> Any:
    """Three populations that took the same test."""
    return br.fit_populations({"a": counts, "b": counts, "c": br.CountTable([2, 2], [0, 2], [50, 9])})


def _validated(counts: br.CountTable) -> Any:
    """Cross-validation with statuses that follow the majority."""
    truth = 2 * counts.s > counts.n
    weight = np.minimum(counts.weight, 10**6)
    return br.cross_validate(counts.n, counts.s, truth, br.fit_bayes, loss=_LOSS, rng=1, weight=weight)


_LOSS = br.Loss(inconclusive=0.2)
_CHANCE = br.Prior(better_than_chance=True)
_MODE = br.Prior((1, 1), better_than_chance=True)
CALLS: dict[str, Callable[[Any], Any]] = {
    "fit_bayes": br.fit_bayes,
    "its scores and intervals": lambda counts: _scores(br.fit_bayes(counts)),
    "better than chance": lambda counts: br.fit_bayes(counts, _CHANCE),
    "fit_map": br.fit_map,
    "fit_map, better than chance": lambda counts: br.fit_map(
        counts, br.Prior((1, 1), better_than_chance=True)
    ),
    "fit_overdispersed": br.fit_overdispersed,
    "its scores": lambda counts: br.fit_overdispersed(counts).score(counts),
    "one interval of it": lambda counts: br.fit_overdispersed(counts).score_interval(3, 2),
    "fit_populations": _populations,
    "check": lambda counts: br.check(br.fit_bayes(counts), _LOSS),
    "compare": br.compare,
    "analyse": br.analyse,
    "report": lambda analysis: analysis.report(),
    "analyse, replicates=50": lambda counts: br.analyse(counts, br.Settings(replicates=50)),
    "decision_table(100)": lambda counts: br.decision_table(br.fit_bayes(counts), _LOSS, 100),
    "stopping_table(100)": lambda counts: br.stopping_table(
        br.fit_bayes(counts), _LOSS, cost_per_replicate=0.01, max_replicates=100
    ),
    "next_replicates": lambda counts: br.next_replicates(
        counts, br.fit_bayes(counts), _LOSS, cost_per_replicate=0.01
    ),
    "explain, correlated": lambda counts: br.explain(br.fit_overdispersed(counts), _LOSS, 3, 2),
    "predictive_counts": lambda counts: predictive_counts(br.fit_bayes(counts), rng=1),
    "cross_validate": _validated,
}
FIRST: dict[str, Callable[[br.CountTable], Any]] = {"report": br.analyse}
"""What a call works on, where that is not the table."""


def main() -> None:
    """Time every call on every table, and print seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--call", help="one call only")
    parser.add_argument("--table", help="one table only")
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    rows: dict[str, list[str]] = {"call": [], **{name: [] for name in TABLES}}
    worst = 0.0
    for call in CALLS:
        if given.call not in (None, call):
            continue
        rows["call"].append(call)
        for table in TABLES:
            found = "" if given.table not in (None, table) else taken(call, table)
            rows[table].append(found if isinstance(found, str) else found.shown)
            worst = max(worst, 0.0 if isinstance(found, str) or found.said else found.seconds)
            say(f"{call}, {table}: {rows[table][-1]}")
    print(br.Table({name: column for name, column in rows.items() if any(column)}))
    print(f"\nSeconds of the processor; * above {TOO_LONG:g} in silence. The most in silence: {worst:.1f}.")


class Taken(NamedTuple):
    """The seconds of a call, which is ended at the limit, and after how many it said that it takes long."""

    seconds: float
    word: float
    end: str = ""

    @property
    def said(self) -> bool:
        """Whether there was a word in time."""
        return self.word <= TOO_LONG

    @property
    def shown(self) -> str:
        """Seconds, marked where there are too many in silence."""
        seconds = f"{self.end}{self.seconds:.1f}" if self.seconds < LIMIT else f"> {LIMIT:g}"
        if self.said:
            return f"{seconds} (said)"
        return seconds + ("*" if self.seconds > TOO_LONG else "")


def taken(call: str, table: str) -> Taken | str:
    """The seconds of one call, or why there are none."""
    here, there = multiprocessing.Pipe(duplex=False)
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(call, table, there))
    worker.start()
    there.close()
    try:
        return here.recv() if here.poll(4 * LIMIT) else f"no answer in {4 * LIMIT:g} seconds*"
    except EOFError:
        worker.join()
        return f"ended with {worker.exitcode}*"
    finally:
        worker.kill()
        worker.join()


def _work(call: str, table: str, out: Connection) -> None:
    """Make the table, time the call and say how long it took."""
    import signal

    counts = TABLES[table]()
    br.fit_average(counts)  # imports
    subject = FIRST[call](counts) if call in FIRST else counts
    start, words = time.process_time(), [float("inf")]
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", TakesLong)
    warnings.showwarning = lambda *_, **__: words.append(time.process_time() - start)
    signal.signal(signal.SIGPROF, lambda *_: (out.send(Taken(LIMIT, min(words))), os._exit(0)))
    signal.setitimer(signal.ITIMER_PROF, LIMIT)  # ends the process, which is then told from a crash
    try:
        CALLS[call](subject)
        out.send(Taken(time.process_time() - start, min(words)))
    except br.BinrepsError:
        out.send(Taken(time.process_time() - start, min(words), "refused, "))
    except Exception as error:
        out.send(f"{type(error).__name__}*")


if __name__ == "__main__":
    main()
