"""Sources with error rates of their own: crowds with a known truth beside crowd-kit, speed, DuckDB.

The crowds are published data in a folder `shared/data` beside the repository, not ours to ship.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import binreps as br
from benchmarks import crowds
from benchmarks.report import Ratio, Section, Settings, milliseconds
from benchmarks.timing import say

DATA = Path(__file__).parents[2] / "shared" / "data"
CROWDS = ("rte", "restaurant")


def run(settings: Settings) -> list[Section]:
    """Accuracy, speed and scoring."""
    return [accuracy(), speed(settings), scoring(settings)]


# Accuracy --------------------------------------------------------------------------------------------------


def accuracy() -> Section:
    """Probabilities of every item beside its truth, for each way to combine votes."""
    rows: list[dict[str, Any]] = []
    ratios = {}
    for name in CROWDS:
        if not (DATA / f"{name}.csv").exists():
            continue
        votes, truth = read_crowd(name)
        judged = {method: _judge(score(votes), truth) for method, score in _methods().items()}
        rows += [{"crowd": name, "method": method, **figures} for method, figures in judged.items()]
        peers = [figures["log loss"] for method, figures in judged.items() if method.startswith("crowd-kit")]
        if peers:
            value = min(peers) / judged["binreps, by source"]["log loss"]
            ratios[f"crowd {name}, log loss of the best of crowd-kit to ours: by source"] = Ratio(value)
    text = "Published crowds with their truth. Log loss is minus the mean log probability of the truth."
    if not rows:
        text = "The published crowds are not beside the repository, so these rows are missing."
    return Section(
        "Crowds with a known truth", f"{text} {'' if crowds.installed() else crowds.MISSING}", rows, ratios
    )


def read_crowd(name: str) -> tuple[dict[str, list[Any]], np.ndarray]:
    """The votes, and the truth of each item in the order in which items first appear."""
    columns: dict[str, list[Any]] = {"task": [], "worker": [], "label": []}
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for key, value in zip(columns, (row["item"], row["rater"], int(row["result"])), strict=True):
                columns[key].append(value)
    with (DATA / f"{name}_truth.csv").open(newline="", encoding="utf-8") as file:
        status = {row["item"]: int(row["truth"]) for row in csv.DictReader(file)}
    return columns, np.array([status[item] for item in dict.fromkeys(columns["task"])])


def _methods() -> dict[str, Callable[[dict[str, list[Any]]], np.ndarray]]:
    """Votes into a probability for each item, by ours and by those of the peer that are installed."""
    found = {"vote share": _vote_share, "binreps, common rates": _common, "binreps, by source": _by_source}
    if crowds.installed():
        names = ("DawidSkene", "OneCoinDawidSkene", "GLAD", "MMSR")
        found |= {f"crowd-kit, {name}": _peer(name) for name in names}
    return found


def _readings(votes: dict[str, list[Any]]) -> br.Readings:
    return br.Readings(votes["task"], votes["worker"], votes["label"])


def _vote_share(votes: dict[str, list[Any]]) -> np.ndarray:
    n, s = _readings(votes).sizes
    return (s + 0.5) / (n + 1)


def _common(votes: dict[str, list[Any]]) -> np.ndarray:
    readings = _readings(votes)
    return br.fit_bayes(readings.counts).score(*readings.sizes)


def _by_source(votes: dict[str, list[Any]]) -> np.ndarray:
    readings = _readings(votes)
    return br.fit_sources(readings, rng=1).score(readings)


def _peer(name: str) -> Callable[[dict[str, list[Any]]], np.ndarray]:
    """A method of crowd-kit; MMSR gives labels alone, taken as .99 and .01."""

    def score(votes: dict[str, list[Any]]) -> np.ndarray:
        import pandas as pd
        from crowdkit import aggregation

        frame, items = pd.DataFrame(votes), list(dict.fromkeys(votes["task"]))
        with warnings.catch_warnings(action="ignore"):
            if name == "MMSR":
                labels = aggregation.MMSR(random_state=1).fit_predict(frame)
                return np.where(labels.loc[items].to_numpy() == 1, 0.99, 0.01)
            options = {"n_iter": 100} if name != "GLAD" else {"n_iter": 100, "silent": True}
            found = getattr(aggregation, name)(**options).fit_predict_proba(frame)
        return found.loc[items][1].to_numpy(dtype=float)

    return score


def _judge(score: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss (of probabilities kept from 0 and 1 by 10⁻⁶) and Brier score."""
    inside = np.clip(score, 1e-6, 1 - 1e-6)
    loss = -np.mean(np.log(np.where(truth == 1, inside, 1 - inside)))
    right = np.mean((score > 0.5) == truth)
    return {"accuracy": float(right), "log loss": float(loss), "Brier": float(np.mean((score - truth) ** 2))}


# Speed -----------------------------------------------------------------------------------------------------


def simulated(individuals: int, each: int, sources: int, seed: int = 0) -> tuple[br.Readings, np.ndarray]:
    """A crowd in which every individual is read by some sources, drawn with replacement."""
    rng = np.random.default_rng(seed)
    truth, p, q = rng.random(individuals) < 0.3, rng.beta(2, 10, sources), rng.beta(2, 8, sources)
    of, by = np.repeat(np.arange(individuals), each), rng.integers(0, sources, individuals * each)
    yes = np.where(truth[of], rng.random(of.size) >= q[by], rng.random(of.size) < p[by]).astype(np.int64)
    unknown = np.full(individuals, -1, np.int8)
    return br.Readings.counted([f"s{j}" for j in range(sources)], of, by, yes, 1 - yes, unknown), truth


def speed(settings: Settings) -> Section:
    """Processor time of fits, to the default error or for a number of sweeps."""
    cases: list[tuple[str, br.Readings, dict[str, Any]]] = []
    if (DATA / "rte.csv").exists():
        cases.append(("rte, to an error of .05", _readings(read_crowd("rte")[0]), {}))
    sizes = ((10**4, 500), (10**5, 5000), (10**6, 5000)) if settings.full else ((10**4, 500), (10**5, 5000))
    for people, sources in sizes:
        name = f"{people * 10:,} readings of {sources:,} sources, 16 × 160 sweeps"
        cases.append((name, simulated(people, 10, sources)[0], {"sweeps": 160, "chains": 16}))
    rows = []
    for name, readings, how in cases:
        say(f"sources: {name}")
        start = time.process_time()
        fit = br.fit_sources(readings, rng=1, **how)
        taken = time.process_time() - start
        rows.append({"case": name, "processor": milliseconds(taken), "R̂": fit.rhat, "error, sds": fit.error})
    return Section("Sampling sources", "Processor time, one fit each.", rows)


# Scoring ---------------------------------------------------------------------------------------------------


def scoring(settings: Settings) -> Section:
    """Scores of a table in DuckDB beside a join and a group-by of as many columns, written by hand."""
    import duckdb

    people = 10**6 if settings.full else 10**5
    readings, _ = simulated(20_000, 10, 200)
    fit = br.fit_sources(readings, rng=1, sweeps=200)
    draws = fit.few(new=False).prevalence.shape[1]
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute(
        f"CREATE TABLE votes AS SELECT i // 10 AS item, 's' || (hash(i) % 200) AS worker, "
        f"(hash(i + 7) % 3 = 0)::INT AS vote FROM range({people * 10}) t(i)"
    )
    columns = ", ".join(f"random() AS d{i}" for i in range(draws))
    database.execute(f"CREATE TABLE odds AS SELECT 's' || j AS worker, v AS vote, {columns} "
                     "FROM range(200) a(j), range(2) b(v)")  # fmt: skip
    sums = ", ".join(f"sum(d{i}) AS d{i}" for i in range(draws))
    logistic = " + ".join(f"1 / (1 + exp(-d{i}))" for i in range(draws))
    by_hand = (
        f"SELECT item, ({logistic}) / {draws} AS score FROM (SELECT item, {sums} FROM votes "
        "JOIN odds USING (worker, vote) GROUP BY item)"
    )

    def ours() -> Any:
        columns = {"individual": "item", "result": "vote", "source": "worker"}
        return br.attach(database.table("votes"), fit, **columns).aggregate("sum(score)").fetchall()

    times: dict[str, list[float]] = {"by hand": [], "attach": []}
    for _ in range(3):
        runs = {
            "by hand": lambda: database.sql(f"SELECT sum(score) FROM ({by_hand})").fetchall(),
            "attach": ours,
        }
        for name, work in runs.items():
            start = time.process_time()
            work()
            times[name].append(time.process_time() - start)
    hand, attach = (float(np.median(times[name])) for name in ("by hand", "attach"))
    row = {"readings": f"{people * 10:,}", "by hand": milliseconds(hand), "attach": milliseconds(attach)}
    text = (
        f"DuckDB, one thread, {draws} draws as columns; attach also checks votes, and gives n, s, intervals."
    )
    return Section("Scoring by source", text, [{**row, "attach / by hand": attach / hand}])
