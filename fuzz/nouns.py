"""The values that users make themselves: count tables, priors, rates, losses, settings."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from binreps.counts import CountTable
from binreps.decide.loss import Loss, classify, decision_words
from binreps.fits.point.simple import average_score, fit_average, fit_median, median_score
from binreps.model import Prior, Rates, likelihood_score, log_likelihood
from binreps.run.analysis import Settings
from fuzz import values
from fuzz.verdict import WrongError, is_probability


def count_table(rng: Random, _: Path) -> None:
    """CountTable from damaged columns, and what follows from it at once."""
    given = values.columns(rng)
    if rng.random() < 0.6:
        name = rng.choice(list(given))
        given[name] = _damaged_column(rng, given[name])
    made = CountTable(**given)
    if made + CountTable([], []) != made or CountTable(made.n, made.s, made.weight, made.known) != made:
        raise WrongError("the table is not equal to itself")
    if not (made.positives <= made.replicates and len(made) <= made.individuals):
        raise WrongError("the totals contradict each other")
    _ = repr(made), made.identifiable, hash(made)
    if len(made):
        for fit in (fit_average(made), fit_median(made)):
            is_probability("score", fit.score(made.n, made.s), nulls=made.n == 0)


def _damaged_column(rng: Random, column: list[Any]) -> Any:
    """A column with an absurd value, of another type or length, or something that is no column."""
    kind = rng.randrange(6)
    if kind == 0:
        return values.anything(rng)
    if kind == 1:
        return [values.mostly(rng, value) for value in column]
    if kind == 2:
        return [*column, values.anything(rng)]
    if kind == 3:
        with np.errstate(over="ignore"):
            return np.array(column, dtype=rng.choice((float, object, "U5", np.float16)))
    if kind == 4:
        return [[value] for value in column]
    return [*column[1:], values.number(rng)] if column else column


def model(rng: Random, _: Path) -> None:
    """Prior, Rates and the score at given rates."""
    tables = [values.mostly(rng, (values.shape(rng), values.shape(rng)), 0.1) for _ in range(3)]
    rates = [values.mostly(rng, rng.choice((0.0, 1.0, rng.random(), 1e-300)), 0.1) for _ in range(3)]
    Prior(*tables)
    known = Rates(*rates)
    n, s = values.replicates(rng), values.replicates(rng)
    score = likelihood_score(values.mostly(rng, n), values.mostly(rng, s), known)
    undefined = np.isnan(sum(np.asarray(rate, dtype=float) for rate in known))
    is_probability("score", score, nulls=undefined)
    if all(np.ndim(rate) == 0 for rate in known) and not undefined:
        level = log_likelihood(values.count_table(rng, 4), known)
        if not level <= 1e-3:  # rounding of 10¹² individuals
            raise WrongError(f"log likelihood = {level}")
    for score in (average_score(n, min(n, s)), median_score(n, min(n, s))):
        is_probability("score", score, nulls=n == 0)


def loss(rng: Random, _: Path) -> None:
    """Loss, its thresholds, and answers from scores."""
    costs = [values.mostly(rng, rng.random(), 0.3) for _ in range(2)]
    inconclusive = values.mostly(rng, rng.choice((rng.random(), (rng.random(), rng.random()))), 0.3)
    made = Loss(costs[0], costs[1], inconclusive)
    _ = str(made)
    scores = [values.mostly(rng, rng.random(), 0.05) for _ in range(rng.randrange(5))]
    lower, upper = made.thresholds
    if not 0 < lower <= upper < 1:
        raise WrongError(f"thresholds = {lower}, {upper}")
    answers = made.classify(scores)
    classify(scores, values.mostly(rng, lower), values.mostly(rng, upper))
    decision_words(values.mostly(rng, answers))
    if not np.all(made.risks(scores)[~np.isnan(answers)] >= 0):
        raise WrongError("a cost below 0")


def settings(rng: Random, _: Path) -> None:
    """Settings from absurd choices."""
    method: Any = rng.choice(("bayes", "map", "average", "median"))
    Settings(
        values.mostly(rng, method),
        values.prior(rng),
        values.loss(rng),
        values.mostly(rng, rng.random(), 0.4),
        values.mostly(rng, rng.randrange(1, 30), 0.4),
    )
