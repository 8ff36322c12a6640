"""The posterior: `fit_bayes` against nutpie + PyMC on the same model, and against the project's own goals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import binreps as br
from benchmarks import fresh, references, tables
from benchmarks.references import PROBABILITIES, Reference
from benchmarks.report import Ratio, Section, Settings, milliseconds
from benchmarks.timing import Runs, alternate, repeat, say
from binreps.fits.bayes import BayesFit
from binreps.fits.exact.posterior import ExactPosterior
from binreps.fits.exact.rules import Product

DRAWS = 4000
TARGETS = (1e-2, 1e-3, 1e-4)


def run(settings: Settings) -> list[Section]:
    """All sections of this family."""
    cold = cold_starts(settings)
    compilation = {start.caches: start.took["compile"] for start in cold if start.side == "nutpie"}
    duels = against_nutpie(settings, compilation)
    return [
        own_goals(settings),
        true_errors(settings),
        cold_section(cold),
        duels,
        to_an_error(duels, settings),
        against_stan(settings),
    ]


# Ours alone ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Something to time, with a goal in milliseconds, on what `prepare` makes of a table."""

    what: str
    goal: float
    work: Callable[[Any], Any]
    prepare: Callable[[br.CountTable], Any] = lambda counts: counts


def _everything(fit: BayesFit) -> None:
    """Quantiles, shortest intervals and the scores of 30 cells, of a fit that has none of them yet."""
    fit.quantile(PROBABILITIES)
    fit.hdi()
    fit.score(*tables.lattice())


LATER = (
    Task("then quantiles, HDIs, scores of 30 cells", 20, _everything, br.fit_bayes),
    Task(f"then {DRAWS:,} draws", 100, lambda fit: fit.draws(DRAWS, rng=1), br.fit_bayes),
)


def _goals(settings: Settings) -> Iterator[tuple[str, br.CountTable, tuple[Task, ...]]]:
    """Tables, and what is asked of each."""
    fast, large = Task("fit", 5, br.fit_bayes), Task("fit", 30, br.fit_bayes)
    hard, wide = Task("fit", 300, br.fit_bayes), Task("fit", 1000, br.fit_bayes)
    yield "N = 50, n = 1–6", tables.small_study(), (fast, *LATER)
    yield "N = 10³, n = 3–5", tables.growing_study(10**3), (large, *LATER)
    yield "N = 10⁶, n = 3–5", tables.growing_study(10**6), (large, *LATER)
    yield "N = 10⁹, n = 3–5", tables.growing_study(10**9), (large, *LATER)
    yield "2,000 cells, n = 1–80", tables.many_cells(), (wide,)
    yield "a ridge: N = 10⁶, n = 2", tables.ridge(), (hard, *(LATER if settings.full else ()))
    yield "two modes, N = 300", tables.two_modes(100), (hard, *(LATER if settings.full else ()))
    if settings.full:  # seconds for each fit
        yield "two modes, N = 3·10⁵", tables.two_modes(10**5), (hard, *LATER)


def own_goals(settings: Settings) -> Section:
    """Our times beside the project's goals."""
    rows = []
    for name, counts, tasks in _goals(settings):
        for task in tasks:
            say(f"posterior, goals: {name}, {task.what}")
            rows.append(_goal_row(name, counts, task, settings))
    text = (
        "What `fit_bayes` takes on one core (BLAS kept to one thread): a fit gives evidence, moments and "
        "error, everything else is computed when first asked for. Milliseconds; `processor` is the median "
        "time on the processor, which other programs on the machine disturb less. A goal is met by the "
        "median on the clock (yes), only by the fastest run (at best), only on the processor, or not."
    )
    return Section("Posterior: our own goals", text, rows)


def _goal_row(name: str, counts: br.CountTable, task: Task, settings: Settings) -> dict[str, Any]:
    """One task, timed."""
    seconds = 4.0 if settings.full else 0.5
    runs = repeat(task.work, lambda: task.prepare(counts), 10 * settings.turns, seconds=seconds)
    return {
        "table": name,
        "task": task.what,
        "cells": len(counts),
        "goal": task.goal,
        "median (quartiles)": runs.wall,
        "least": milliseconds(runs.wall.least),
        "processor": milliseconds(runs.busy.median),
        "goal met": _met(task, runs) if _plausible(counts, runs.results[-1]) else "**wrong answer**",
    }


def _met(task: Task, runs: Runs) -> str:
    """Whether, and how, the goal of a task was met."""
    times = {"yes": runs.wall.median, "at best": runs.wall.least, "on the processor": runs.busy.median}
    return next((how for how, seconds in times.items() if 1000 * seconds <= task.goal), "**no**")


def _plausible(counts: br.CountTable, result: Any) -> bool:
    """False for a fit that the symmetry of its table refutes."""
    if not isinstance(result, BayesFit) or not tables.is_symmetric(counts):
        return True
    return _asymmetry(result) < 1e-6


def _asymmetry(fit: BayesFit) -> float:
    """How far the mean prevalence is from the ½ that symmetry asks for, in sds."""
    return abs(fit.rates.prevalence - 0.5) / fit.sd.prevalence


def true_errors(settings: Settings) -> Section:
    """Reported and true error where the truth is known from elsewhere."""
    rows = []
    symmetric = {"two modes, N = 300": 100, "two modes, N = 3·10⁵": 10**5}
    for name, weight in list(symmetric.items())[: None if settings.full else 1]:
        fit = br.fit_bayes(tables.two_modes(weight))
        rows.append(_error_row(name, fit, _asymmetry(fit)))
    for name, case in tables.golden_cases().items():
        say(f"posterior, errors: {name}")
        fit = br.fit_bayes(tables.golden_counts(case), tables.golden_prior(case))
        rows.append(_error_row(name, fit, _error(fit, references.golden(name))))
    text = (
        "The error that a fit reports, and the largest error of means and quantiles in posterior sds against "
        "symmetry (between two equal modes the mean prevalence is ½) or values that two other methods agreed "
        "on; an error below their disagreement is given as that."
    )
    if not tables.golden_cases():
        text += " The other cases need golden.json in a folder `shared` beside the repository."
    return Section("Posterior: true errors", text, rows)


def _error_row(name: str, fit: BayesFit, error: float) -> dict[str, Any]:
    """One fit and its error."""
    return {
        "case": name,
        "rule": _rule(fit),
        "error reported": fit.error,
        "error found": error,
        "below 1e-8": "yes" if error < 1e-8 else "**no**",
    }


def _rule(fit: BayesFit) -> str:
    """By which rule a posterior was integrated."""
    if not isinstance(fit.posterior, ExactPosterior):
        return "cells"
    return "product" if isinstance(fit.posterior.rule, Product) else "lattice"


def _error(fit: BayesFit, reference: Reference) -> float:
    """The largest error of means and quantiles."""
    return reference.error(list(fit.rates), list(fit.quantile(PROBABILITIES)))


# From a cold start -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """What fresh processes of one side took for their first answer: seconds of each step, and MB."""

    side: str
    caches: str
    took: dict[str, Any]

    @property
    def seconds(self) -> float:
        """All steps together."""
        return sum(self.took[step] for step in fresh.STEPS)


@cache
def cold_starts(settings: Settings) -> list[Start]:
    """Both sides from a cold start; in full mode nutpie again with the caches it left, and Stan, once."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(settings.processes):
        with tempfile.TemporaryDirectory() as folder:
            for key in (("ours", "–"), ("nutpie", "empty"), ("nutpie", "filled"))[: 2 + settings.full]:
                say(f"posterior, cold start: {key[0]}, caches {key[1]}")
                found.setdefault(key, []).append(fresh.measure(key[0], Path(folder)))
    if settings.full and find_spec("stan"):
        say("posterior, cold start: Stan, caches empty")
        with tempfile.TemporaryDirectory() as folder:
            found["stan", "empty"] = [fresh.measure("stan", Path(folder))]
    return [
        Start(side, caches, {name: _median([one[name] for one in took]) for name in took[0]})
        for (side, caches), took in found.items()
    ]


def _median(values: list[float | None]) -> float | None:
    """The middle value; none where there is none."""
    return None if None in values else float(np.median(values))


def cold_section(starts: list[Start]) -> Section:
    """The cold starts as a table."""
    ours, empty, *others = starts
    rows = [
        {
            "side": {"ours": "fit_bayes", "nutpie": "nutpie + PyMC", "stan": "PyStan"}[start.side],
            "caches": start.caches,
            **{f"{step}, s": start.took[step] for step in fresh.STEPS},
            "in all, s": start.seconds,
            "peak MB": start.took["memory"],
            "largest child, MB": start.took["child"],
        }
        for start in starts
    ]
    ratios = {
        "cold start: time, caches empty": Ratio(empty.seconds / ours.seconds, slack=0.3),
        "cold start: memory": Ratio(empty.took["memory"] / ours.took["memory"], slack=0.8),
    }
    for one in others:
        name = "Stan" if one.side == "stan" else "caches filled"
        ratios[f"cold start: time, {name}"] = Ratio(one.seconds / ours.seconds, slack=0.3)
    text = (
        "One answer (means and quantiles, N = 50) from a new Python process. nutpie + PyMC, and in full mode "
        "PyStan, first compile their model; a second process of nutpie's (full mode) finds parts of that in "
        "a cache on disk. Children are Stan's compiler and chains."
    )
    return Section("Posterior: from a cold start", text, rows, _prefixed(ratios))


# Against nutpie + PyMC -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Duel:
    """One table for both sides, and the posterior that judges them."""

    name: str
    counts: br.CountTable
    reference: Reference
    individually: bool = False  # whether the peer gets one term per individual


def _duels(settings: Settings) -> Iterator[Duel]:
    """The tables on which both sides are measured."""
    for name, counts in (("N = 50", tables.small_study()), ("N = 200", tables.growing_study(200))):
        say(f"posterior: closed form for {name}")
        reference = references.closed_form(counts)
        yield Duel(name, counts, reference)
        yield Duel(f"{name}, individually", counts, reference, individually=True)
    for name, individuals in (("N = 10⁴", 10**4), ("N = 10⁶", 10**6)):
        counts = tables.growing_study(individuals)
        yield Duel(name, counts, references.product_rule(counts))
    for name, case in tables.golden_cases().items() if settings.full else ():
        if tables.golden_prior(case) == br.Prior() and name != "periodontal_default":
            yield Duel(name, tables.golden_counts(case), references.golden(name))


def against_nutpie(settings: Settings, compilation: dict[str, float]) -> Section:
    """Sampling time and error beside ours, alternated; `compilation` in seconds, by state of the caches."""
    from benchmarks import nutpie_peer as peer

    say("posterior: compiling the PyMC model")
    ready = peer.compiled(peer.columns(tables.small_study()))
    rows, ratios = [], {}
    for duel in _duels(settings):
        say(f"posterior, against nutpie: {duel.name}")
        data = peer.columns(duel.counts, individually=duel.individually)
        row, more = _fight(duel, peer, ready.with_data(**data), compilation, settings)
        rows.append(row)
        ratios |= more
    text = (
        f"nutpie samples {peer.CHAINS} chains × {peer.DRAWS:,} draws after as many of tuning, on all cores, "
        "with the likelihood of whole cells (of individuals where the name says so), its model compiled "
        "before the clock starts. `fit_bayes` runs on one core: a fit (evidence, moments, error), a fit with "
        f"quantiles, a fit with {DRAWS:,} independent draws. Milliseconds on the clock, and medians on the "
        "processor, all threads together. Errors are the largest of means and 5, 50, 95 % quantiles in "
        "posterior sds, the sampler's a median over its seeds."
    )
    return Section("Posterior: against nutpie + PyMC", text, rows, _prefixed(ratios))


def _fight(
    duel: Duel, peer: Any, ready: Any, compilation: dict[str, float], settings: Settings
) -> tuple[dict[str, Any], dict[str, Ratio]]:
    """Both sides on one table."""
    counts = duel.counts
    runs = alternate(
        {
            "fit": lambda _: br.fit_bayes(counts),
            "quantiles": lambda _: br.fit_bayes(counts).quantile(PROBABILITIES),
            "draws": lambda seed: br.fit_bayes(counts).draws(DRAWS, rng=seed),
            "sampling": lambda seed: peer.sample(ready, seed),
        },
        2 * settings.turns,
        seconds=10.0 if settings.full else 2.0,
    )
    theirs = [duel.reference.error(*peer.summary(found, PROBABILITIES)) for found in runs["sampling"].results]
    errors = _error(br.fit_bayes(counts), duel.reference), float(np.median(theirs))
    row = {
        "table": duel.name,
        "fit": runs["fit"].wall,
        "with quantiles": runs["quantiles"].wall,
        "with draws": runs["draws"].wall,
        "nutpie": runs["sampling"].wall,
        "fit, processor": milliseconds(runs["fit"].busy.median),
        "nutpie, processor": milliseconds(runs["sampling"].busy.median),
        "our error": errors[0],
        "its error": errors[1],
    }
    return row, _duel_ratios(duel.name, runs, errors, compilation)


def _duel_ratios(
    name: str, runs: dict[str, Runs], errors: tuple[float, float], compilation: dict[str, float]
) -> dict[str, Ratio]:
    """How many times faster and closer we were on one table."""
    fit, draws, sampling = (runs[kind].wall.median for kind in ("fit", "draws", "sampling"))
    busy = runs["sampling"].busy.median / runs["fit"].busy.median
    compiled = {"empty": "with compilation", "filled": "with caches filled"}
    return {
        f"{name}: sampling to fit": Ratio(sampling / fit, claim=20, slack=0.5),
        f"{name}: the same on the processor": Ratio(busy, claim=20, slack=0.7),
        f"{name}: to fit with draws": Ratio(sampling / draws, slack=0.5),
        **{
            f"{name}: {compiled[caches]}": Ratio(
                (seconds + sampling) / fit, claim=1000 if caches == "empty" else None, slack=0.3
            )
            for caches, seconds in compilation.items()
        },
        f"{name}: error": Ratio(errors[1] / errors[0], claim=1e5, slack=0.1),
    }


def to_an_error(duels: Section, settings: Settings) -> Section:
    """What the sampler would take for a given error: it falls with the root of the draws."""
    rows, ratios = [], {}
    reached = _reached(duels) if settings.full else {}
    for row in duels.rows:
        longer = reached.get(row["table"])
        seconds, error = longer.values() if longer else (row["nutpie"].median, row["its error"])
        needed = {target: seconds * (error / target) ** 2 for target in TARGETS}
        rows.append(
            {
                "table": row["table"],
                "fit with quantiles, ms": milliseconds(row["with quantiles"].median),
                "its error": row["our error"],
                "a longer run, s": longer["seconds"] if longer else None,
                "nutpie's error then": longer["error"] if longer else None,
                **{f"nutpie to {target:.0e}, s": time for target, time in needed.items()},
            }
        )
        ours = row["with quantiles"].median
        ratios[f"{row['table']}: time to an error of 1e-3"] = Ratio(needed[1e-3] / ours, slack=0.2)
    text = (
        "Seconds until the largest error of means and quantiles is below 10⁻², 10⁻³, 10⁻⁴ posterior sds, "
        "extrapolated by the law that errors fall with the root of the draws: in full mode from a longer run "
        "that should come close to 10⁻² (medians of three), otherwise from the time and the error above, "
        "which counts the tuning again and again. `fit_bayes` is below all three at once."
    )
    return Section("Posterior: time to a given error", text, rows, _prefixed(ratios))


def _reached(duels: Section) -> dict[str, dict[str, float]]:
    """The sampler with the draws that an error of 10⁻² should take: what it took, and its error then."""
    from benchmarks import nutpie_peer as peer

    ready = peer.compiled(peer.columns(tables.small_study()))
    errors = {row["table"]: row["its error"] for row in duels.rows}
    found = {}
    for duel in _duels(Settings()):
        data = ready.with_data(**peer.columns(duel.counts, individually=duel.individually))
        draws = int(np.ceil(peer.DRAWS * (errors[duel.name] / TARGETS[0]) ** 2))
        say(f"posterior, to an error of 1e-2: {duel.name}, {peer.CHAINS} × {draws:,} draws")
        runs = repeat(lambda seed, d=data, k=draws: peer.sample(d, seed, k), count(1).__next__, 3, seconds=0)
        those = [duel.reference.error(*peer.summary(one, PROBABILITIES)) for one in runs.results]
        found[duel.name] = {"seconds": runs.wall.median, "error": float(np.median(those))}
    return found


# Against Stan ----------------------------------------------------------------------------------------------


def against_stan(settings: Settings) -> Section:
    """PyStan's NUTS on the same tables, in full mode: it compiles for minutes."""
    title = "Posterior: against Stan"
    if not settings.full:
        return Section(title, "In full mode only: PyStan compiles its model for minutes.", [])
    if find_spec("stan") is None:
        return Section(title, "PyStan is not installed, so there are no rows.", [])
    from benchmarks import stan_peer as peer

    rows, ratios = [], {}
    with peer.compiled() as (stan, compilation):
        for duel in _stan_duels():
            say(f"posterior, against Stan: {duel.name}")
            row, more = _fight_stan(duel, peer, stan)
            rows.append(row)
            ratios |= more
    text = (
        f"PyStan, 4 chains × 1,000 draws after as many of tuning, compiled before the clock starts (that "
        f"took {compilation:.0f} s, with empty caches), with the likelihood of whole cells, or of "
        "individuals where the name says so. Milliseconds; errors as above."
    )
    return Section(title, text, rows, _prefixed(ratios))


def _stan_duels() -> Iterator[Duel]:
    """The tables for Stan: one term per individual only up to 200, and once at 10⁴."""
    for name, counts in (("N = 50", tables.small_study()), ("N = 200", tables.growing_study(200))):
        reference = references.closed_form(counts)
        yield Duel(name, counts, reference)
        yield Duel(f"{name}, individually", counts, reference, individually=True)
    for name, individuals in (("N = 10⁴", 10**4), ("N = 10⁶", 10**6)):
        counts = tables.growing_study(individuals)
        reference = references.product_rule(counts)
        yield Duel(name, counts, reference)
        if individuals == 10**4:
            yield Duel(f"{name}, individually", counts, reference, individually=True)


def _fight_stan(duel: Duel, peer: Any, stan: Any) -> tuple[dict[str, Any], dict[str, Ratio]]:
    """Both sides on one table."""
    once = duel.individually and duel.counts.individuals >= 10**4
    runs = alternate(
        {
            "fit": lambda _: br.fit_bayes(duel.counts),
            "sampling": lambda seed: peer.sample(stan, duel.counts, seed, individually=duel.individually),
        },
        1 if once else 3,
        warm_up=not once,
    )
    fit, sampling = runs["fit"], runs["sampling"]
    errors = [
        duel.reference.error(found.mean(axis=1), np.quantile(found, PROBABILITIES, axis=1).T)
        for found in sampling.results
    ]
    row = {
        "table": duel.name,
        "fit": fit.wall,
        "Stan": sampling.wall,
        "our error": _error(br.fit_bayes(duel.counts), duel.reference),
        "its error": float(np.median(errors)),
    }
    ratio = Ratio(sampling.wall.median / fit.wall.median, slack=0.5)
    return row, {f"{duel.name}: Stan's sampling to fit": ratio}


def _prefixed(ratios: dict[str, Ratio]) -> dict[str, Ratio]:
    """Ratios under the name of the family, as floors.json keeps them."""
    return {f"posterior, {name}": ratio for name, ratio in ratios.items()}
