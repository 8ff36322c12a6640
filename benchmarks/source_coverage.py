"""Coverage of 90 % intervals over studies drawn from the prior of models with sources.

`python -m benchmarks.source_coverage [panel|crowd|populations|covariates] [intervals]` draws rates from the
prior, a study from the rates, fits it, and counts how often the interval of each rate holds the truth, in all
until so many intervals were seen, with the binomial standard error; and how well probabilities are
calibrated. Studies whose chains do not agree are left out and counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

import binreps as br

LEVEL = 0.9


class Truth(NamedTuple):
    """Rates drawn from the prior."""

    false_positive: np.ndarray
    false_negative: np.ndarray


def drawn(sources: int, readings: int, rng: np.random.Generator) -> Truth:
    """Rates of sources that read equally often, from the prior and its restriction."""
    del readings
    while True:
        m, rho = rng.beta(2, 2, 2), rng.random(2)
        kappa = 1 / rho - 1
        if m.sum() >= 1:
            continue
        rates = [rng.beta(m[i] * kappa[i], (1 - m[i]) * kappa[i], sources) for i in (0, 1)]
        if (rates[0] + rates[1] - 1).sum() < 0:
            return Truth(*rates)


def said(truth: Truth, positive: np.ndarray, by: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What each source says: individuals × readers."""
    yes = rng.random(by.shape)
    return np.where(
        positive[:, None], yes >= truth.false_negative[by], yes < truth.false_positive[by]
    ).astype(int)


Study = tuple[br.Readings, dict[str, np.ndarray], np.ndarray]


def panel(rng: np.random.Generator) -> Study:
    """Four sources that read everyone of 60."""
    prevalence, truth = rng.beta(0.5, 0.5), drawn(4, 60, rng)
    positive = rng.random(60) < prevalence
    table = said(truth, positive, np.tile(np.arange(4), (60, 1)), rng)
    return br.Readings.wide(table), _named(prevalence, truth), positive


def crowd(rng: np.random.Generator) -> Study:
    """Twenty sources, five of which read each of 200; as often as each other."""
    prevalence, truth = rng.beta(0.5, 0.5), drawn(20, 50, rng)
    positive = rng.random(200) < prevalence
    by = np.concatenate([rng.permutation(20).reshape(4, 5) for _ in range(50)])
    return _readings(by, said(truth, positive, by, rng), 20), _named(prevalence, truth), positive


def populations(rng: np.random.Generator) -> Study:
    """Two tests in three populations of 100."""
    prevalence, truth = rng.beta(0.5, 0.5, 3), drawn(2, 300, rng)
    which = np.repeat(np.arange(3), 100)
    positive = rng.random(300) < prevalence[which]
    table = said(truth, positive, np.tile([0, 1], (300, 1)), rng)
    names = np.array(["a", "b", "c"])[which].tolist()
    return br.Readings.wide(table).in_populations(names), _named(prevalence, truth), positive


def covariates(rng: np.random.Generator) -> Study:
    """A number and a category; eight sources, three of which read each of 160."""
    alpha, beta = rng.beta(0.5, 0.5), rng.normal(0, 1.5, 2)
    x, group = rng.normal(0, 1, 160), rng.random(160) < 0.5
    columns = np.column_stack([x, group != (group.mean() > 0.5)])  # the more frequent level is the reference
    z = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    positive = rng.random(160) < expit(np.log(alpha) - np.log1p(-alpha) + z @ beta)
    truth = drawn(8, 60, rng)
    by = np.concatenate([np.array([rng.permutation(8)[:3] for _ in range(160)])])
    readings = _readings(by, said(truth, positive, by, rng), 8)
    level = np.where(group, "yes", "no").tolist()
    named = {"log_odds": beta / columns.std(axis=0), **_named(np.zeros(0), truth)}
    return readings.with_covariates({"x": x, "group": level}), named, positive


def _readings(by: np.ndarray, table: np.ndarray, sources: int) -> br.Readings:
    """Readings of individuals × readers, sources in their order."""
    of = np.repeat(np.arange(len(by)), by.shape[1])
    yes = table.ravel()
    unknown = np.full(len(by), -1, np.int8)
    return br.Readings.counted(range(sources), of, by.ravel(), yes, 1 - yes, unknown)


def _named(prevalence: float | np.ndarray, truth: Truth) -> dict[str, np.ndarray]:
    return {"prevalence": np.atleast_1d(prevalence), **truth._asdict()}


STUDIES: dict[str, Callable[[np.random.Generator], Study]] = {
    "panel": panel,
    "crowd": crowd,
    "populations": populations,
    "covariates": covariates,
}


def held(fit: br.SourcesFit, truth: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Whether the interval of each rate holds the truth."""
    lower, upper = fit.interval(LEVEL)
    ends = {name: (getattr(lower, name), getattr(upper, name)) for name in Truth._fields}
    ends["prevalence"] = (np.atleast_1d(lower.prevalence), np.atleast_1d(upper.prevalence))
    several = fit.prevalence_table(LEVEL)
    if several is not None:
        order = [list(several["population"]).index(name) for name in "abc"]
        ends["prevalence"] = tuple(np.array(several[end])[order] for end in ("lower", "upper"))
    if "log_odds" in truth:
        ratios = fit.odds_ratios(LEVEL)
        ends["log_odds"] = tuple(np.log(ratios[end]) for end in ("lower", "upper"))
    return {name: (ends[name][0] <= own) & (own <= ends[name][1]) for name, own in truth.items() if own.size}


def trial(name: str, intervals: int) -> None:
    """Studies until there are so many intervals; what was found, printed."""
    found: dict[str, list[np.ndarray]] = {}
    too_many, left_out, seed = [], 0, 0
    while sum(one.size for own in found.values() for one in own) < intervals:
        readings, truth, positive = STUDIES[name](np.random.default_rng([seed, len(name)]))
        fit = br.fit_sources(readings, rng=seed, tol=0.2, chains=16, sweeps=1500, independent=True)
        seed += 1
        if fit.rhat > 1.05:
            left_out += 1
            continue
        for rate, own in held(fit, truth).items():
            found.setdefault(rate, []).append(own)
        too_many.append(float((fit.score(readings) - positive).sum()))
    off = sum(too_many) / np.sqrt(np.square(too_many).sum())  # of a study all are off together
    how = f"{left_out} left out as chains disagreed; calibration {off:+.1f} standard errors"
    print(f"{name}: {seed} studies, {how}")
    for rate, own in found.items():
        every = np.concatenate(own)
        error = np.sqrt(LEVEL * (1 - LEVEL) / every.size)
        z = (every.mean() - LEVEL) / error
        print(f"  {rate}: {every.mean():.3f} of {every.size:,} ({z:+.1f} standard errors)", flush=True)


def main() -> None:
    """The trials that are named, or all."""
    names = [name for name in sys.argv[1:] if name in STUDIES] or list(STUDIES)
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    for name in names:
        trial(name, sizes[0] if sizes else 2000)


if __name__ == "__main__":
    main()
