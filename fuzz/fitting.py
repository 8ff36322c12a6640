"""Fits of random tables under random priors, extreme ones included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from binreps.counts import CountTable
from binreps.fits.batch import fit_many
from binreps.fits.bayes import fit_bayes
from binreps.fits.overdispersed import fit_overdispersed
from binreps.fits.point.mode import MAP_PRIOR, fit_map
from binreps.fits.populations import fit_populations
from fuzz import values
from fuzz.verdict import WrongError, is_finite, is_probability


def bayes(rng: Random, _: Path) -> None:
    """`fit_bayes`: rates, intervals, scores, predictions, draws."""
    fit = fit_bayes(values.study(rng), values.prior(rng))
    _check_posterior(rng, fit)
    name = rng.choice(("prevalence", "false_positive", "false_negative"))
    if not np.all(fit.marginal(name).density([-1.0, 0.0, rng.random(), 1.0, 2.0]) >= 0):
        raise WrongError("a density that is not ≥ 0")
    is_probability("a draw", list(fit.draws(5, rng.randrange(100))))


def posterior_mode(rng: Random, _: Path) -> None:
    """`fit_map`: rates and scores."""
    prior = MAP_PRIOR if rng.random() < 0.4 else values.prior(rng)
    fit = fit_map(values.count_table(rng, 8), prior)
    is_probability("rates", list(fit.rates))
    is_finite("objective", fit.objective)
    check_scores(rng, fit)


def better_than_chance(rng: Random, _: Path) -> None:
    """`fit_bayes` and `fit_map` where the error rates need only add up to less than 1."""
    prior = replace(values.prior(rng), better_than_chance=True)
    if rng.random() < 0.5:
        fit: Any = fit_bayes(values.study(rng), prior)
        _check_posterior(rng, fit)
        drawn = fit.draws(5, rng.randrange(100))
        is_probability("the sum of the error rates", drawn.false_positive + drawn.false_negative)
        return
    fit = fit_map(values.count_table(rng, 8), replace(prior, prevalence=MAP_PRIOR.prevalence))
    is_probability("rates and their sum", [*fit.rates, fit.rates.false_positive + fit.rates.false_negative])
    is_finite("objective", fit.objective)
    check_scores(rng, fit)


def overdispersed(rng: Random, _: Path) -> None:
    """`fit_overdispersed`: rates, intervals, scores."""
    small = values.small_cells(rng)
    fit = fit_overdispersed(small, values.prior(rng), intraclass=(values.shape(rng), values.shape(rng)))
    _check_posterior(rng, fit)


def populations(rng: Random, _: Path) -> None:
    """`fit_populations`: one to three populations."""
    tables: dict[Any, CountTable] = {i: values.study(rng, 5) for i in range(rng.randrange(1, 4))}
    fit = fit_populations(tables, values.prior(rng))
    _ = str(fit)
    for name in fit:
        _check_posterior(rng, fit[name])


def many(rng: Random, _: Path) -> None:
    """`fit_many`: a few tables; a table that fails has a reason instead of rates."""
    tables = [values.study(rng, 5) for _ in range(rng.randrange(4))]
    method: Any = rng.choice(("bayes", "map", "average", "median"))
    prior = values.prior(rng) if method in ("bayes", "map") else None
    found = fit_many(tables, method=method, prior=prior, workers=1)
    nulls = np.array([reason is not None for reason in found.reason], dtype=bool)
    for rate in found.rates:
        is_probability("rates", rate, nulls=nulls)
    for reason in found.reason:
        if reason and ("Error:" in reason or "Warning:" in reason):
            raise WrongError(f"the reason is {reason}")


def _check_posterior(rng: Random, fit: Any) -> None:
    """Rates, spreads, intervals and scores of a posterior."""
    is_probability("rates", list(fit.rates))
    is_probability("sd", list(fit.sd))
    is_finite("log evidence and error", [fit.log_evidence, fit.error])
    for end in fit.interval(rng.choice((0.5, 0.9, 0.999))):
        is_probability("interval", list(end))
    _ = str(fit)
    check_scores(rng, fit)


def check_scores(rng: Random, fit: Any) -> None:
    """Scores and predictions of cells of the data and of others, with intervals if there are any."""
    n = [rng.choice((0, 1, 2, 3, 5, 10, 40)) for _ in range(3)]
    s = [rng.choice((0, size, rng.randint(0, size))) for size in n]
    n, s = [*n, *fit.counts.n[:2].tolist()], [*s, *fit.counts.s[:2].tolist()]
    is_probability("score", fit.score(n, s))
    is_probability("prediction", fit.predict(n, s))
    for name in () if fit.posterior.certain else ("score_interval", "predict_interval"):
        if hasattr(fit, name) and rng.random() < 0.5:
            lower, upper = getattr(fit, name)(n[-2:], s[-2:], level=0.9)
            is_probability(f"{name}, lower end", lower)
            is_probability(f"{name}, upper end", upper)
            if np.any(lower > upper):
                raise WrongError(f"{name} from {lower} to {upper}")
