"""Decisions and advice: decision tables, stopping rules, priors from words, checks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from binreps.counts import CountTable
from binreps.decide import elicit
from binreps.decide.answer import explain
from binreps.decide.checks.run import check
from binreps.decide.loss import decision_table
from binreps.decide.stopping import next_replicates, stopping_table
from binreps.errors import BinrepsError
from binreps.fits.bayes import fit_bayes
from binreps.fits.point.mode import fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.model import Prior
from binreps.show.card import card
from fuzz import values
from fuzz.verdict import WrongError, is_finite, is_probability


@cache
def fits() -> list[Any]:
    """A few fits: usual, of nobody, sharp, and without scores for n = 0."""
    usual = CountTable([3, 3, 3, 0], [0, 1, 3, 0], [60, 9, 31, 2])
    sharp = CountTable([5, 5], [0, 5], [10**9, 10**8])
    nobody = CountTable([], [])
    bayes = [fit_bayes(counts) for counts in (usual, sharp, nobody)]
    return [
        *bayes,
        fit_bayes(usual, Prior((0.1, 0.1), (0.1, 2), (3, 9))),
        fit_map(usual),
        fit_average(usual),
        fit_median(usual),
    ]


def table(rng: Random, _: Path) -> None:
    """`decision_table` for any replicates, costs and level."""
    several = [values.replicates(rng) % 40 for _ in range(rng.randrange(3))]
    wanted: Any = values.mostly(rng, rng.choice((rng.randrange(8), several)))
    found = decision_table(rng.choice(fits()), values.loss(rng), wanted, level=values.mostly(rng, 0.9))
    nulls = [n == 0 for n in found["n"]]
    is_probability("probability", found["probability"], nulls=nulls)
    if any(cost < 0 for cost, null in zip(found["expected_cost"], nulls, strict=True) if not null):
        raise WrongError("a cost below 0")
    _ = str(found)


def stopping(rng: Random, _: Path) -> None:
    """`stopping_table` and `next_replicates` for any costs."""
    fit, costs = rng.choice(fits()), values.loss(rng)
    price = values.mostly(rng, 10 ** rng.uniform(-4, 1))
    if rng.random() < 0.5:
        start = values.mostly(rng, (rng.randrange(3), rng.randrange(3)), 0.3)
        most = values.mostly(rng, rng.randrange(9))
        rule = stopping_table(
            fit, costs, cost_per_replicate=price, max_replicates=most, start=start, new=rng.random() < 0.5
        )
        nulls = [n == 0 for n in rule.table()["n"]]
        for name in ("probability", "conclusive", "reached"):
            is_probability(name, rule.table()[name], nulls=nulls)
        _ = str(rule)
        return
    again = next_replicates(
        values.count_table(rng, 5),
        fit,
        costs,
        cost_per_replicate=price,
        budget=values.mostly(rng, 50),
        ahead=values.mostly(rng, 5),
    )
    is_probability("probability", again.table()["probability"], nulls=[n == 0 for n in again.table()["n"]])
    _ = str(again)


def one_patient(rng: Random, _: Path) -> None:
    """`explain` and `card` of any fit, for any results and costs."""
    fit, costs = rng.choice(fits()), values.loss(rng)
    price, level = values.mostly(rng, 10 ** rng.uniform(-4, 1)), values.mostly(rng, 0.9)
    if rng.random() < 0.3:
        made = card(
            fit,
            costs,
            up_to=values.mostly(rng, rng.randrange(1, 5)),
            cost_per_replicate=price,
            title=values.mostly(rng, rng.choice(values.WORDS), 0.05),
            level=level,
            paper=values.mostly(rng, rng.choice(("a4", "a5"))),
        )
        if "<script>" in made.partition("<title>")[2].partition("</title>")[0]:
            raise WrongError("a title that runs")
        return
    n = rng.randrange(8)
    asked = [values.mostly(rng, value, 0.1) for value in (n, rng.randint(0, n))]
    ahead = values.mostly(rng, rng.randrange(1, 6))
    answer = explain(
        fit, costs, *asked, new=rng.random() < 0.5, level=level, cost_per_replicate=price, ahead=ahead
    )
    is_probability("probability", answer.probability, nulls=n == 0)
    _ = str(answer)


def beliefs(rng: Random, _: Path) -> None:
    """`elicit`: from absurd beliefs to a sentence, from others to shapes."""
    rate = values.mostly(rng, rng.choice(elicit.RATES), 0.05)
    low, middle, high = sorted(
        rng.choice((rng.random(), rng.random() / 2, 10 ** rng.uniform(-9, 0))) for _ in range(3)
    )
    kind = rng.randrange(3)
    level = values.mostly(rng, rng.uniform(0.5, 0.99))
    if kind == 0:
        which = rng.choice(("surprised_above", "surprised_below"))
        end = {which: values.mostly(rng, high if which == "surprised_above" else low)}
        belief = elicit.guess(rate, values.mostly(rng, middle), chance=values.mostly(rng, 0.05), **end)
    elif kind == 1:
        belief = elicit.between(rate, values.mostly(rng, low), values.mostly(rng, high), level=level)
    else:
        size: Any = values.mostly(rng, rng.choice((rng.randrange(500), 10 ** rng.uniform(0, 12))), 0.2)
        belief = elicit.study(
            rate, of=size, share=values.mostly(rng, middle), discount=values.mostly(rng, rng.random())
        )
    is_finite("shapes", belief.shapes)
    _ = str(belief), elicit.implied(elicit.prior(belief))


def checks(rng: Random, _: Path) -> None:
    """`check` of fits to random tables."""
    counts, prior = values.study(rng), values.prior(rng)
    try:
        fit: Any = fit_map(counts) if rng.random() < 0.3 else fit_bayes(counts, prior)
    except BinrepsError:
        return
    found = check(fit, values.loss(rng))
    is_finite("findings", [finding.number for finding in found])
    _ = str(found)
