"""The fit with covariates beside nutpie on the same model in PyMC: seconds on the processor, and errors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

import binreps as br
from benchmarks.accuracy import MEASURES, judged
from benchmarks.point import columns as columns_of_replicates
from benchmarks.report import Ratio, Section, Settings, best_in_bold, number, power
from benchmarks.timing import say
from binreps.fits.points.cloud import Cloud, make_cloud
from binreps.fits.points.target import Target

STUDIES = {(500, 5): 13, (10**4, 10): 14}
"""Individuals and columns, and the seed of each study."""

SLOPES = np.array([0.8, -0.5, 0.4, 0.3, 0.0, -0.3, 0.2, 0.0, 0.5, -0.1])
CHAINS, DRAWS = 2, 1000


def study(size: int, columns: int, seed: int) -> br.CovariateTable:
    """Normal covariates, every third one yes or no; two to four replicates; prevalence .3 on average."""
    people = drawn(size, columns, seed)
    return br.CovariateTable(people.n, people.s, people.covariates)


class People(NamedTuple):
    """Replicates, positive ones, covariates and status of each."""

    n: np.ndarray
    s: np.ndarray
    covariates: dict[str, np.ndarray]
    truth: np.ndarray


def drawn(size: int, columns: int, seed: int) -> People:
    """The individuals of such a study."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((size, columns))
    for j in range(2, columns, 3):
        x[:, j] = rng.random(size) < 0.4
    standard = (x - x.mean(0)) / x.std(0)
    truth = rng.random(size) < expit(logit(0.3) + standard @ SLOPES[:columns])
    n = rng.choice([2, 3, 4], size)
    s = rng.binomial(n, np.where(truth, 0.85, 0.1))
    return People(n, s, {f"x{j}": x[:, j] for j in range(columns)}, truth.astype(int))


def moments(cloud: Cloud) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds of slopes and error rates."""
    at = cloud.parameters
    mean, sd, _ = cloud.moments(np.vstack([at.beta, at.p, at.q]))
    return mean, sd


def sampled(table: br.CovariateTable) -> tuple[np.ndarray, float, float]:
    """Means by nutpie, and seconds on the processor to compile and to sample."""
    import nutpie

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        ready = nutpie.compile_pymc_model(br.interop.to_pymc(table))
        compiled = time.process_time()
        trace = nutpie.sample(ready, draws=DRAWS, tune=1000, chains=CHAINS, seed=1, progress_bar=False)
        done = time.process_time()
    slopes = trace.posterior["slopes"].to_numpy().mean(axis=(0, 1))
    rates = [float(trace.posterior[name].mean()) for name in ("false_positive", "false_negative")]
    return np.array([*slopes, *rates]), compiled - start, done - compiled


def run(settings: Settings) -> list[Section]:
    """Time and errors beside the sampler, and scores beside latent classes."""
    return [beside_sampler(settings), beside_classes()]


# Beside a sampler of the same model ------------------------------------------------------------------------


def beside_sampler(settings: Settings) -> Section:
    """Seconds and errors."""
    rows: list[dict[str, Any]] = []
    ratios: dict[str, Ratio] = {}
    for (size, columns), seed in list(STUDIES.items())[: 2 if settings.full else 1]:
        say(f"covariates: N = {size:,}, d = {columns}")
        table = study(size, columns, seed)
        start = time.process_time()
        fit = br.fit_covariates(table)
        seconds = time.process_time() - start
        mean, sd = moments(make_cloud(Target(table, br.Prior(), 1.5), 1e-4))
        own = float(np.max(np.abs(moments(fit.cloud)[0] - mean) / sd))
        theirs, compiling, sampling = sampled(table)
        name = f"N = {power(size)}, d = {columns}"
        ratios[f"{name}: times the peer's sampling time"] = Ratio(
            sampling / seconds, claim=30 if size >= 10**4 else None, slack=0.4
        )
        rows.append(
            {
                "study": name,
                "binreps, s": number(seconds),
                "worst mean, sds": number(own),
                "stated": number(fit.error),
                "nutpie, s": f"{number(sampling)} + {number(compiling)} to compile",
                "its worst mean, sds": number(float(np.max(np.abs(theirs - mean) / sd))),
                "times": number(sampling / seconds),
            }
        )
    if settings.full:
        rows.append(_million())
    text = (
        "Seconds on the processor, one BLAS thread; the errors of posterior means are against a run of "
        "ours to "
        f"10⁻⁴ of an sd. nutpie samples the same density ({CHAINS} × {DRAWS:,} draws) from `to_pymc`; the "
        "larger study in full mode."
    )
    return Section("Covariates", text, rows, ratios)


def _million() -> dict[str, Any]:
    """A million individuals, which nobody else tries here."""
    say("covariates: N = 10⁶")
    table = study(10**6, 10, 15)
    start = time.process_time()
    fit = br.fit_covariates(table)
    seconds = time.process_time() - start
    return {"study": "N = 10⁶, d = 10", "binreps, s": number(seconds), "stated": number(fit.error)}


# Beside latent classes with covariates ---------------------------------------------------------------------


def beside_classes() -> Section:
    """Scores judged by who is positive."""
    rows: list[dict[str, Any]] = []
    ratios: dict[str, Ratio] = {}
    for (size, columns), seed in STUDIES.items():
        people = drawn(size, columns, seed)
        name, own = f"N = {power(size)}, d = {columns}", []
        for method, answer in _methods().items():
            say(f"covariates, {name}: {method}")
            start = time.process_time()
            score = answer(people)
            seconds = time.process_time() - start
            found = judged(np.clip(score, 1e-6, 1 - 1e-6), people.truth)
            figures = {measure: found[measure] for measure in MEASURES[:4]}
            own.append({"study": name, "scores": method, **figures, "processor, s": seconds})
        losses = {row["scores"]: row["log loss"] for row in own}
        rows += best_in_bold(own, MEASURES[:4])
        if "StepMix" in losses:
            value = losses["StepMix"] / losses["binreps"]
            ratios[f"covariates, {name}: log loss of StepMix to ours"] = Ratio(value, slack=0.9)
    text = (
        "The same studies, scored without a look at who is positive, then judged by it. *StepMix* fits two "
        "classes with covariates by EM in one step, a column and rates of its own for each replicate, and "
        "gives no interval here; *binreps without covariates* is the exact fit of the counts. The best of a "
        "study is in bold: **of large studies StepMix's scores are as good as ours, and it takes less time.**"
    )
    return Section("Covariates: who is positive", text, rows, ratios)


def _methods() -> dict[str, Callable[[People], np.ndarray]]:
    """Scores of individuals, by those that are installed."""
    found = {"binreps": _ours, "binreps without covariates": _without}
    return found | ({"StepMix": _stepmix} if find_spec("stepmix") else {})


def _ours(people: People) -> np.ndarray:
    n, s, covariates, _ = people
    return np.asarray(
        br.fit_covariates(br.CovariateTable(n, s, covariates)).score(n, s, covariates=covariates)
    )


def _without(people: People) -> np.ndarray:
    return np.asarray(br.fit_bayes(br.CountTable(people.n, people.s)).score(people.n, people.s))


def _stepmix(people: People) -> np.ndarray:
    """The class with more positive replicates is positive."""
    from stepmix import StepMix

    x, wide = np.column_stack(list(people.covariates.values())), columns_of_replicates(people.n, people.s)
    model = StepMix(2, measurement="binary_nan", structural="covariate", random_state=1, progress_bar=0)
    with warnings.catch_warnings(action="ignore"):
        share = model.fit(wide, x).predict_proba(wide, x)
    votes = share.T @ (people.s / people.n) / share.sum(axis=0)
    return share[:, int(votes.argmax())]
