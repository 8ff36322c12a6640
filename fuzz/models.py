"""The models beside the plain one: readings by source, covariates, and which model to use."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from binreps.covariates import CovariateTable
from binreps.errors import BinrepsError
from binreps.fits.covariates import fit_covariates
from binreps.fits.sources import fit_sources
from binreps.readings import Readings
from binreps.run.compare import compare
from fuzz import values
from fuzz.verdict import WrongError, is_finite, is_probability

_NAMES = ("ann", "bob", "eve", "zoë", 4)


def readings(rng: Random, _: Path) -> None:
    """`Readings` from lists and from a matrix, damaged; merged, printed and counted."""
    if rng.random() < 0.5:
        made = Readings.wide(*(values.mostly(rng, part, 0.05) for part in _matrix(rng)))
    else:
        size = rng.randrange(12)
        who = [rng.randrange(4) for _ in range(size)]
        by = [rng.choice(_NAMES) for _ in range(size)]
        said = [values.mostly(rng, rng.choice((0, 1, None)), 0.02) for _ in range(size)]
        made = Readings(*(values.mostly(rng, part, 0.05) for part in (who, by, said)))
    merged = made.merged()
    if merged.individuals != made.individuals or merged.readings != made.readings:
        raise WrongError("merging changes how many there are")
    groups: Any = values.mostly(rng, [rng.sample(_NAMES, 2)])
    _ = str(made.table()), made.merging(groups), made.counts, made.components
    if rng.random() < 0.3:
        made.in_populations(values.mostly(rng, [rng.choice("ab") for _ in range(len(made))]))


def covariate_table(rng: Random, _: Path) -> None:
    """`CovariateTable` of damaged columns, printed and made into a design."""
    given, covariates = _with_covariates(rng, rng.randrange(8))
    for name in covariates:
        covariates[name] = [values.mostly(rng, value, 0.02) for value in covariates[name]]
    how: dict[str, Any] = {"missing_covariates": values.mostly(rng, rng.choice(("refuse", "level")), 0.05)}
    if rng.random() < 0.2:
        how["reference"] = values.mostly(rng, {"site": rng.choice("abc")})
    table = CovariateTable(given["n"], given["s"], values.mostly(rng, covariates, 0.05), **how)
    is_finite("design", table.design())
    if table.individuals != len(given["n"]):
        raise WrongError("individuals are lost")
    _ = str(table), table.terms, table.counts, table.forget_known()


def sources(rng: Random, _: Path) -> None:
    """`fit_sources` on a few readings: rates, scores and predictions."""
    try:
        made = Readings.wide(*_matrix(rng))
    except BinrepsError:
        return
    fit = fit_sources(made, rng=rng.randrange(100), tol=1, sweeps=rng.choice((20, 60)))
    is_probability("prevalence", fit.rates.prevalence)
    is_probability("error rates", [*fit.rates.false_positive, *fit.rates.false_negative])
    asked = {name: rng.choice((0, 1, None, (2, 1))) for name in rng.sample(_NAMES, 2)}
    is_probability("score", fit.score())
    is_probability("prediction", fit.predict(asked))
    for end in fit.predict_interval(asked, level=0.9):
        is_probability("interval", end)
    _ = str(fit), str(fit.summary())


def covariates(rng: Random, _: Path) -> None:
    """`fit_covariates` on a few individuals: odds ratios, scores and profiles."""
    given, columns = _with_covariates(rng, rng.choice((3, 8, 40)))
    weight = [values.individuals(rng) for _ in given["n"]] if rng.random() < 0.3 else None
    fit = fit_covariates(CovariateTable(given["n"], given["s"], columns, weight), values.prior(rng))
    is_probability("rates", list(fit.rates))
    table = fit.odds_ratios()
    is_finite("odds", [*table["log_odds"], *table["sd"]])
    whose = {name: rng.choice(column) for name, column in columns.items()}
    is_probability("score", fit.score(3, [0, 1, 2, 3], covariates=whose))
    profile = fit.profile(whose)
    is_probability("prediction", profile.predict(3, [0, 3]))
    _ = str(fit), str(profile)


def comparison(rng: Random, _: Path) -> None:
    """`compare` on small tables: a model is chosen, and says why."""
    small = values.small_cells(rng)
    found = compare(small, loss=values.loss(rng))
    if found.preferred not in found.models:
        raise WrongError(f"preferred {found.preferred}")
    for model in found.models:
        is_probability("score", found[model].fit.score(small.n, small.s))
    _ = str(found), str(found.table()), str(found.verdict)


def _matrix(rng: Random) -> tuple[list[list[Any]], list[Any], list[int]]:
    """Readings of a few records by a few sources, their names and weights."""
    size, rows = rng.randrange(1, 5), rng.randrange(1, 7)
    results = [[rng.choice((0, 1, 1, None)) for _ in range(size)] for _ in range(rows)]
    return results, rng.sample(_NAMES, size), [rng.randrange(30) for _ in range(rows)]


def _with_covariates(rng: Random, size: int) -> tuple[dict[str, list[int]], dict[str, list[Any]]]:
    """Results of some individuals, and up to three columns."""
    n = [rng.randrange(1, 6) for _ in range(size)]
    columns: dict[str, list[Any]] = {
        "age": [rng.choice((rng.gauss(50, 20), float(rng.randrange(5)))) for _ in n],
        "site": [rng.choice("abc") for _ in n],
        "dose": [10 ** rng.uniform(-12, 12) for _ in n],
    }
    chosen = {name: columns[name] for name in columns if rng.random() < 0.5}
    return {"n": n, "s": [rng.randint(0, k) for k in n]}, chosen
