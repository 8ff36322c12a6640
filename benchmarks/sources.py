"""Sources with error rates of their own: who is right, how sure and how quick; and scoring in DuckDB."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import binreps as br
from benchmarks import crowds, published
from benchmarks.accuracy import judged
from benchmarks.machine import memory_of
from benchmarks.published import Study
from benchmarks.report import Ratio, Section, Settings, best_in_bold, number, power
from benchmarks.source_methods import CHAINS, DRAWS, LEVEL, Answer, Method, methods
from benchmarks.timing import alternate, say

NOT_SURE = (
    1e-6  # probabilities are kept from 0 and 1 by this: else one that is sure and wrong is all there is
)
OURS = "binreps, by source"
MEASURES = ("accuracy", "log loss", "Brier", "calibration error")


@dataclass(frozen=True)
class Case:
    """A study, and the error rates it was made with, if it was made."""

    name: str
    study: Study
    rates: np.ndarray | None = None  # false-positive and false-negative of each source


def run(settings: Settings) -> list[Section]:
    """Beside the peers, and scoring."""
    return [beside_peers(settings), scoring(settings)]


# Beside the peers ------------------------------------------------------------------------------------------


def beside_peers(settings: Settings) -> Section:
    """Every method on every study that is within its reach."""
    rows: list[dict[str, Any]] = []
    ratios: dict[str, Ratio] = {}
    lost = []
    for case in cases(settings):
        found = dict(_answers(case, settings))
        if case.study.truth is not None:
            losses = {name: row["log loss"] for name, row in found.items()}
            best = min(losses, key=lambda name: losses[name])
            lost += [] if best.startswith("binreps") else [f"{case.name} ({best})"]
            peer = min(loss for name, loss in losses.items() if not name.startswith("binreps"))
            ratios[f"sources, {case.name}: log loss of the best peer to ours"] = Ratio(
                peer / losses[OURS], slack=0.8
            )
        if "crowd-kit, DawidSkene" in found:
            value = found["crowd-kit, DawidSkene"]["processor, s"] / found[OURS]["processor, s"]
            ratios[f"sources, {case.name}: time of Dawid–Skene to ours"] = Ratio(value, slack=0.6)
        rows += best_in_bold(
            [{"study": case.name, "method": name, **row} for name, row in found.items()], MEASURES
        )
    worse = f"**A peer has the least log loss on: {', '.join(lost)}.** " if lost else ""
    return Section("Sources: beside the peers", worse + _explained(), rows, ratios)


def _explained() -> str:
    """What the table means."""
    absent = "" if published.available("rte") else published.ABSENT
    return (
        "Scores without a look at the truth, then judged by it; probabilities are kept from 0 and 1 by "
        f"{number(NOT_SURE)}. The best of a study is in bold, whosever it is. *rte* and *restaurant* are "
        "crowds, *carcinoma* 118 slides read by seven pathologists, without a truth; the others are "
        f"simulated from the model with independent readings. *intervals hold*: how many {LEVEL:.0%} "
        "intervals of the error rates hold those the study was made with; crowd-kit and StepMix have "
        "none. Seconds on the processor, one run each, and memory beyond what the process held before. "
        "*by source* counts each reading as a part of an independent one, as it does by default, which "
        "costs a little where readings are independent and saves much where they are not (rte); of 10⁶ "
        f"readings it runs 160 sweeps. nutpie takes {CHAINS} × {DRAWS:,} draws of the same model as "
        "*independent*, from `to_pymc`, compilation apart. GLAD and nutpie run in full mode, up to 10⁵ "
        "and 10⁴ readings, MMSR up to 10⁴ (at 10⁵ it asks for 55 GB), StepMix up to 50 sources. "
        f"{absent} "
        f"{'' if crowds.installed() else crowds.MISSING}"
    )


def cases(settings: Settings) -> Iterator[Case]:
    """The published studies that are here, a simulated panel, and crowds."""
    for name, read in {"rte": published.read_study, "restaurant": published.read_study,
                       "carcinoma": published.read_panel}.items():  # fmt: skip
        if published.available(name):
            yield Case(name, read(name))
    yield simulated("panel of 5", 500, 5, 5)
    for people, sources in ((10**4, 500), (10**5, 5000))[: 2 if settings.full else 1]:
        yield simulated(f"{power(10 * people)} readings", people, 10, sources)


def simulated(name: str, individuals: int, each: int, sources: int, seed: int = 0) -> Case:
    """Everyone is read by some sources, drawn with replacement, or by all where they are as many."""
    rng = np.random.default_rng(seed)
    truth, p, q = rng.random(individuals) < 0.3, rng.beta(2, 10, sources), rng.beta(2, 8, sources)
    of, by = np.repeat(np.arange(individuals), each), rng.integers(0, sources, individuals * each)
    by = np.tile(np.arange(sources), individuals) if each == sources else by
    chance = np.where(truth[of], 1 - q[by], p[by])
    yes = (rng.random(of.size) < chance).astype(np.int64)
    return Case(name, Study(of, by, yes, truth.astype(int)), np.array([p, q]))


def _answers(case: Case, settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """A row for each method that takes a study of this size."""
    for name, method in methods(full=settings.full).items():
        if case.study.task.size > method.readings or case.study.raters > method.sources:
            continue
        say(f"sources, {case.name}: {name}")
        (seconds, answer), memory = memory_of(partial(_timed, method, case.study))
        seconds -= answer.compiling
        yield name, {**_quality(answer, case), "prevalence": _prevalence(answer),
                     "processor, s": _seconds(seconds, answer), "MB": memory}  # fmt: skip


def _timed(method: Method, study: Study) -> tuple[float, Answer]:
    """Seconds on the processor, and the answer."""
    start = time.process_time()
    answer = method.answer(study)
    return time.process_time() - start, answer


def _quality(answer: Answer, case: Case) -> dict[str, Any]:
    """How right and how sure; None where there is no truth."""
    found: dict[str, Any] = dict.fromkeys((*MEASURES, "intervals hold"))
    if case.study.truth is not None:
        inside = np.clip(answer.score, NOT_SURE, 1 - NOT_SURE)
        measures = judged(inside, case.study.truth)
        found |= {name: measures[name] for name in MEASURES}
    if case.rates is not None and answer.rates is not None:
        low, high = answer.rates
        held = (low <= case.rates) & (case.rates <= high)
        found["intervals hold"] = f"{held.sum():,} of {held.size:,}"
    return found


def _prevalence(answer: Answer) -> str:
    """The mean score, with its interval where there is one."""
    share = f"{answer.score.mean():.3f}"
    if answer.prevalence is None:
        return share
    low, high = answer.prevalence
    return f"{share} ({low:.3f}–{high:.3f})"


def _seconds(seconds: float, answer: Answer) -> float | str:
    """With those of a compiler, where there is one."""
    return f"{number(seconds)} + {number(answer.compiling)} to compile" if answer.compiling else seconds


# Scoring ---------------------------------------------------------------------------------------------------


def scoring(settings: Settings) -> Section:
    """Scores of a table in DuckDB beside a join and a group-by of as many columns, written by hand."""
    people = 10**6 if settings.full else 10**5
    fit = br.fit_sources(simulated("", 20_000, 10, 200).study.readings, rng=1, sweeps=200)
    draws = fit.few(new=False).prevalence.shape[1]
    places = {"by item": "i // 10", "in no order": f"(hash(i + 1) % {people})::BIGINT"}
    rows = [_scoring_row(fit, draws, people, order, item) for order, item in places.items()]
    text = (
        f"DuckDB, one thread, {draws} draws as columns; seconds on the processor, medians of three. attach "
        "also checks votes, and gives n, s, intervals; it looks whether rows are in order and sorts them "
        "before it joins if they are not, which the query by hand does not."
    )
    return Section("Scoring by source", text, rows)


def _scoring_row(fit: Any, draws: int, people: int, order: str, item: str) -> dict[str, Any]:
    """A table whose rows lie so, by hand and by us."""
    import duckdb

    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute(
        f"CREATE TABLE votes AS SELECT {item} AS item, (hash(i) % 200)::VARCHAR AS worker, "
        f"(hash(i + 7) % 3 = 0)::INT AS vote FROM range({people * 10}) t(i)"
    )
    columns = ", ".join(f"random() AS d{i}" for i in range(draws))
    of = "FROM range(200) a(j), range(2) b(v)"
    database.execute(f"CREATE TABLE odds AS SELECT j::VARCHAR AS worker, v AS vote, {columns} {of}")
    sums = ", ".join(f"sum(d{i}) AS d{i}" for i in range(draws))
    logistic = " + ".join(f"1 / (1 + exp(-d{i}))" for i in range(draws))
    query = (
        f"SELECT sum(({logistic}) / {draws}) FROM (SELECT item, {sums} FROM votes "
        "JOIN odds USING (worker, vote) GROUP BY item)"
    )
    names = {"individual": "item", "result": "vote", "source": "worker"}
    runs = alternate(
        {
            "hand": lambda _: database.sql(query).fetchall(),
            "attach": lambda _: (
                br.attach(database.table("votes"), fit, **names).aggregate("sum(score)").fetchall()
            ),
        },
        3,
        warm_up=False,
    )
    hand, attach = (runs[name].busy.median for name in ("hand", "attach"))
    return {
        "readings": f"{people * 10:,}",
        "rows": order,
        "by hand": hand,
        "attach": attach,
        "attach / by hand": attach / hand,
    }
