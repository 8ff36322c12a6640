"""Ways to combine the votes of sources that differ: ours and those of the peers, one function each."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit, logit

import binreps as br
from benchmarks import crowds
from benchmarks.published import Study

LEVEL = 0.9
CHAINS, DRAWS = 2, 1000


@dataclass(frozen=True)
class Answer:
    """A probability for each task; where the method has them, intervals and what it took beside.

    `rates` are the ends of the intervals of false-positive and false-negative rates, shape (2, 2, sources);
    `prevalence` of the prevalence. `compiling` are seconds on the processor that are not counted as its own.
    """

    score: np.ndarray
    rates: np.ndarray | None = None
    prevalence: tuple[float, float] | None = None
    compiling: float = 0.0


@dataclass(frozen=True)
class Method:
    """A way to answer, and the most readings and sources that are given to it here."""

    answer: Callable[[Study], Answer]
    readings: int = 10**9
    sources: int = 10**9


def methods(*, full: bool) -> dict[str, Method]:
    """Those that are installed, and imported, so that no clock counts that; slow ones in a full run only."""
    some = 2 * 10**5 if full else 0
    for name in ("crowdkit.aggregation", "stepmix", "nutpie"):
        if find_spec(name.split(".")[0]) and (full or name != "nutpie"):
            importlib.import_module(name)
    found = {
        "vote share": Method(vote_share),
        "binreps, common rates": Method(common_rates),
        "binreps, by source": Method(by_source),
        "binreps, by source, independent": Method(partial(by_source, independent=True)),
    }
    if crowds.installed():
        most = {"GLAD": some, "MMSR": 10**4}  # at 10⁵ readings MMSR asks for 55 GB
        found |= {
            f"crowd-kit, {name}": Method(partial(by_crowd_kit, name), most.get(name, 10**9))
            for name in crowds.OPTIONS
        }
    if find_spec("stepmix"):
        found["StepMix, two classes"] = Method(by_stepmix, sources=50)
    if full and find_spec("nutpie"):
        found["nutpie, statuses summed out"] = Method(by_nutpie, 10**4)
    return found


def vote_share(study: Study) -> Answer:
    """(s + ½) / (n + 1)."""
    return Answer((study.s + 0.5) / (study.n + 1))


def common_rates(study: Study) -> Answer:
    """All sources err alike: the exact fit."""
    fit = br.fit_bayes(br.CountTable(study.n, study.s))
    ends = [float(end.prevalence) for end in fit.interval(LEVEL)]
    return Answer(np.asarray(fit.score(study.n, study.s)), prevalence=(ends[0], ends[1]))


def by_source(study: Study, *, independent: bool = False) -> Answer:
    """Our sampler: to its default error, or for 160 sweeps of 16 chains of a large crowd."""
    readings = study.readings
    how: dict[str, Any] = {"sweeps": 160, "chains": 16} if readings.readings > 2 * 10**5 else {}
    fit = br.fit_sources(readings, rng=1, independent=independent, **how)
    ends = fit.interval(LEVEL)
    rates = np.array([[end.false_positive, end.false_negative] for end in ends])
    return Answer(
        np.asarray(fit.score(readings)), rates, (float(ends[0].prevalence), float(ends[1].prevalence))
    )


def by_crowd_kit(name: str, study: Study) -> Answer:
    """A class of crowd-kit."""
    return Answer(crowds.scores(name, study))


def by_stepmix(study: Study) -> Answer:
    """Latent classes by EM, a column for each source; the class with more positive votes is positive."""
    from stepmix import StepMix

    wide = np.full((study.size, study.raters), np.nan)
    wide[study.task, study.rater] = study.result
    kind = "binary_nan" if np.isnan(wide).any() else "binary"
    model = StepMix(2, measurement=kind, n_init=10, random_state=1, progress_bar=0)
    with warnings.catch_warnings(action="ignore"):
        share = model.fit(wide).predict_proba(wide)
    votes = share.T @ (study.s / study.n) / share.sum(axis=0)
    return Answer(share[:, int(np.argmax(votes))])


def by_nutpie(study: Study) -> Answer:
    """Our model in PyMC with the statuses summed out, sampled by nutpie."""
    import nutpie

    with warnings.catch_warnings(action="ignore"):
        start = time.process_time()
        ready = nutpie.compile_pymc_model(br.interop.to_pymc(study.readings))
        compiling = time.process_time() - start
        how: dict[str, Any] = {"draws": DRAWS, "tune": DRAWS, "chains": CHAINS, "seed": 1}
        found = nutpie.sample(ready, **how, progress_bar=False).posterior
    theta, p, q = (
        np.moveaxis(found[name].to_numpy().reshape(CHAINS * DRAWS, -1), 0, -1)
        for name in ("prevalence", "false_positive", "false_negative")
    )
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = np.quantile(theta, tails)
    rates = np.quantile([p, q], tails, axis=-1)
    some = slice(None, None, CHAINS * DRAWS // 200)  # of the draws: enough for means of probabilities
    score = _scores(study, theta[:, some], p[:, some], q[:, some])
    return Answer(score, rates, (float(low), float(high)), compiling)


def _scores(study: Study, theta: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The mean over draws of each task's probability."""
    from scipy.sparse import csr_array

    column = study.rater + study.raters * (study.result == 0)
    who = csr_array((np.ones(column.size), (study.task, column)), (study.size, 2 * study.raters))
    odds = np.vstack([np.log1p(-q) - np.log(p), np.log(q) - np.log1p(-p)])
    return expit(logit(theta) + who @ odds).mean(axis=1)
