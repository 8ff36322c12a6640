"""Coverage of 90 % intervals over studies drawn from the prior of models with sources.

`python -m benchmarks.source_coverage [panel|crowd|populations|covariates|sparse] [intervals]` draws rates
from the prior, a study from the rates, fits it, and counts how often the interval of each rate holds the
truth, in all until so many intervals were seen, with the binomial standard error; and how well probabilities
are calibrated. What was found so far is printed as it goes. Studies whose chains do not agree in 1,500
sweeps (panel, crowd) or 6,000 (others) are left out and counted: given the data that says nothing of the
truth, so that coverage is not changed by it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

import binreps as br

LEVEL = 0.9
AGREE = 1.05  # R̂ up to which chains agree
OFTEN = 50  # studies between two lines of what was found so far


class Truth(NamedTuple):
    """Rates drawn from the prior."""

    false_positive: np.ndarray
    false_negative: np.ndarray


def drawn(sources: int, rng: np.random.Generator) -> Truth:
    """Rates of sources that read equally often, from the prior and its restriction."""
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
    prevalence, truth = rng.beta(0.5, 0.5), drawn(4, rng)
    positive = rng.random(60) < prevalence
    table = said(truth, positive, np.tile(np.arange(4), (60, 1)), rng)
    return br.Readings.wide(table), _named(prevalence, truth), positive


def crowd(rng: np.random.Generator) -> Study:
    """Twenty sources, five of which read each of 200; as often as each other."""
    prevalence, truth = rng.beta(0.5, 0.5), drawn(20, rng)
    positive = rng.random(200) < prevalence
    by = np.concatenate([rng.permutation(20).reshape(4, 5) for _ in range(50)])
    return _readings(by, said(truth, positive, by, rng), 20), _named(prevalence, truth), positive


def populations(rng: np.random.Generator) -> Study:
    """Five tests in three populations of 50."""
    prevalence, truth = rng.beta(0.5, 0.5, 3), drawn(5, rng)
    which = np.repeat(np.arange(3), 50)
    positive = rng.random(150) < prevalence[which]
    table = said(truth, positive, np.tile(np.arange(5), (150, 1)), rng)
    names = np.array(["a", "b", "c"])[which].tolist()
    return br.Readings.wide(table).in_populations(names), _named(prevalence, truth), positive


def covariates(rng: np.random.Generator, each: int = 6) -> Study:
    """A number and a category; eight sources, some of which read each of 120; as often as each other."""
    alpha, beta = rng.beta(0.5, 0.5), rng.normal(0, 1.5, 2)
    x, group = rng.normal(0, 1, 120), rng.random(120) < 0.5
    columns = np.column_stack([x, group != (group.mean() > 0.5)])  # the more frequent level is the reference
    z = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    positive = rng.random(120) < expit(np.log(alpha) - np.log1p(-alpha) + z @ beta)
    truth = drawn(8, rng)
    some = (np.arange(8)[:, None] + np.arange(each)) % 8  # of eight in a ring, each and the next ones
    by = np.concatenate([rng.permutation(8)[some] for _ in range(15)])
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


class Kind(NamedTuple):
    """How studies of a kind are drawn, the error that is asked for, and the most sweeps of each chain."""

    draw: Callable[[np.random.Generator], Study]
    tol: float
    sweeps: int


STUDIES = {
    "panel": Kind(panel, 0.2, 1500),
    "crowd": Kind(crowd, 0.2, 1500),
    "populations": Kind(populations, 0.1, 6000),
    "covariates": Kind(covariates, 0.1, 6000),
    "sparse": Kind(partial(covariates, each=3), 0.1, 6000),
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


class Found:
    """What some studies found.

    Attributes
    ----------
    studies, left_out : int
        How many there were, and how many of them count for nothing as their chains disagreed.
    """

    def __init__(self) -> None:
        self.studies = self.left_out = 0
        self._held: dict[str, list[np.ndarray]] = {}
        self._too_many: list[float] = []

    @property
    def intervals(self) -> int:
        """How many intervals were looked at."""
        return sum(one.size for own in self._held.values() for one in own)

    def add(self, name: str) -> None:
        """One more study of a kind."""
        seed, (draw, tol, sweeps) = self.studies, STUDIES[name]
        readings, truth, positive = draw(np.random.default_rng([seed, len(name)]))
        fit = br.fit_sources(readings, rng=seed, tol=tol, chains=16, sweeps=sweeps, independent=True)
        self.studies += 1
        if fit.rhat > AGREE:
            self.left_out += 1
            return
        for rate, own in held(fit, truth).items():
            self._held.setdefault(rate, []).append(own)
        self._too_many.append(float((fit.score(readings) - positive).sum()))

    def show(self, name: str) -> None:
        """Print it."""
        off = sum(self._too_many) / np.sqrt(np.square(self._too_many).sum())  # a study is off as one
        how = f"{self.left_out} left out as chains disagreed; calibration {off:+.1f} standard errors"
        print(f"{name}: {self.studies} studies, {how}")
        every = [np.concatenate(own) for own in zip(*self._held.values(), strict=True)]
        for rate, studies in {**self._held, "all": every}.items():
            excess = np.array([(own - LEVEL).sum() for own in studies])
            size = sum(own.size for own in studies)
            binomial = excess.sum() / np.sqrt(LEVEL * (1 - LEVEL) * size)
            clustered = excess.sum() / np.sqrt(np.square(excess).sum())  # intervals of a study go together
            errors = f"{binomial:+.1f} binomial standard errors, {clustered:+.1f} over studies"
            print(f"  {rate}: {LEVEL + excess.sum() / size:.3f} of {size:,} ({errors})", flush=True)


def trial(name: str, intervals: int) -> None:
    """Studies until there are so many intervals; what was found, printed now and then and at the end."""
    found = Found()
    while found.intervals < intervals:
        found.add(name)
        if found.studies % OFTEN == 0:
            found.show(name)
    found.show(name)


def main() -> None:
    """The trials that are named, or all."""
    names = [name for name in sys.argv[1:] if name in STUDIES] or list(STUDIES)
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    for name in names:
        trial(name, sizes[0] if sizes else 2000)


if __name__ == "__main__":
    main()
