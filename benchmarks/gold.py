"""The prevalence when the statuses of some are known (gold labels): our interval beside those of the peers.

Prediction-powered inference (`ppi-python`) and the Rogan–Gladen correction assume no model of the
replicates, but that the known are a random part of all. So where the model fails they are the safe ones, and
where the known were chosen by their results, they are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

import binreps as br
from benchmarks.report import Ratio, Section, Settings
from benchmarks.timing import say

LEVEL, PEOPLE, REPLICATES, SHARES = 0.9, 1000, 3, (0.05, 0.1, 0.2)
RATES = br.Rates(0.3, 0.1, 0.2)
RESAMPLES = 500
HARD = 0.15  # of the individuals, who are always read as what they are not

Interval = tuple[float, float]


@dataclass(frozen=True)
class Study:
    """Positive results of each of three replicates, who is positive, and of whom that is known."""

    s: np.ndarray
    truth: np.ndarray
    gold: np.ndarray

    @property
    def kinds(self) -> np.ndarray:
        """Individuals by what is known (nothing, negative, positive) and by positive results."""
        cell = self.s + (REPLICATES + 1) * np.where(self.gold, 1 + self.truth, 0)
        return np.bincount(cell, minlength=3 * (REPLICATES + 1)).reshape(3, REPLICATES + 1)

    @property
    def counts(self) -> br.CountTable:
        """The individuals, with the statuses that are known."""
        known = np.repeat([np.nan, 0, 1], REPLICATES + 1)
        s = np.tile(np.arange(REPLICATES + 1), 3)
        some = self.kinds.ravel() > 0
        return br.CountTable(
            np.full(some.sum(), REPLICATES), s[some], self.kinds.ravel()[some], known=known[some]
        )


def run(settings: Settings) -> list[Section]:
    """The only section."""
    studies = 500 if settings.full else 20
    rows: list[dict[str, Any]] = []
    ratios: dict[str, Ratio] = {}
    for name, (draw, truth) in WORLDS.items():
        for share in SHARES:
            say(f"gold: {name}, {share:.0%} known")
            found = judged(draw, truth, share, studies)
            rows += [{"studies": name, "known": f"{share:.0%}", **row} for row in _shown(found, studies)]
            if name == FIRST:
                ours, theirs = found["binreps"][0], found.get("PPI++ on s/n", found["Rogan–Gladen"])[0]
                ratios[f"gold, {share:.0%} known: the peer's width over ours"] = Ratio(
                    theirs / ours, slack=0.8
                )
    text = (
        f"{studies} simulated studies of {PEOPLE:,} individuals × {REPLICATES}, prevalence "
        f"{RATES.prevalence}, p = {RATES.false_positive}, q = {RATES.false_negative}; {LEVEL:.0%} "
        "intervals of the prevalence: how wide in the mean, and in which share of studies they hold the "
        f"truth (standard error {np.sqrt(LEVEL * (1 - LEVEL) / studies):.3f} where {LEVEL:.0%} hold; in "
        "bold below three of these). *binreps* is `fit_bayes` with the known statuses; *PPI++* is "
        "prediction-powered inference with power tuning, on the share of positive results or on our "
        "scores from a fit that has not seen the known statuses; Rogan–Gladen has its rates from the "
        f"known and a bootstrap of {RESAMPLES}. *Hard ones*: {HARD:.0%} of the individuals are always read "
        "as what they are not, which no model of ours has: **there prediction-powered inference is the "
        "safe one, and ours is wrong.** *Known by result*: those with a positive result are six times as "
        "likely to be verified, as in most clinics: there the peers are wrong, as they need the known to "
        f"be a random part, and ours is the safe one. {_missing()}"
    )
    return [Section("Prevalence with gold labels", text, rows, ratios)]


# What is studied -------------------------------------------------------------------------------------------


def holds(share: float, rng: np.random.Generator) -> Study:
    """The model holds, and the known are a random part."""
    truth = rng.random(PEOPLE) < RATES.prevalence
    s = rng.binomial(REPLICATES, np.where(truth, 1 - RATES.false_negative, RATES.false_positive))
    return Study(s, truth, _random_part(share, rng))


def hard_ones(share: float, rng: np.random.Generator) -> Study:
    """Some individuals look like the other class, whoever reads them."""
    seen = holds(share, rng)
    return Study(seen.s, seen.truth ^ (rng.random(PEOPLE) < HARD), seen.gold)


def known_by_result(share: float, rng: np.random.Generator) -> Study:
    """The model holds, and those with a positive result are verified six times as often."""
    made = holds(share, rng)
    weight = np.where(made.s > 0, 6.0, 1.0)
    gold = np.zeros(PEOPLE, bool)
    gold[rng.choice(PEOPLE, round(share * PEOPLE), replace=False, p=weight / weight.sum())] = True
    return Study(made.s, made.truth, gold)


def _random_part(share: float, rng: np.random.Generator) -> np.ndarray:
    """So many of all, each as likely as any other."""
    return rng.permutation(PEOPLE) < round(share * PEOPLE)


FIRST = "model holds"
WORLDS: dict[str, tuple[Callable[[float, np.random.Generator], Study], float]] = {
    FIRST: (holds, RATES.prevalence),
    "hard ones": (hard_ones, RATES.prevalence * (1 - HARD) + (1 - RATES.prevalence) * HARD),
    "known by result": (known_by_result, RATES.prevalence),
}
"""How studies are drawn, and the prevalence of the population they are drawn from."""


# Who answers -----------------------------------------------------------------------------------------------


def ours(study: Study, _: np.random.Generator) -> Interval:
    """The exact posterior with known statuses."""
    lower, upper = br.fit_bayes(study.counts).interval(LEVEL)
    return float(lower.prevalence), float(upper.prevalence)


def gold_alone(study: Study, _: np.random.Generator) -> Interval:
    """Wilson's interval from the known alone: what everybody can do."""
    known, z = study.truth[study.gold], 1.6448536269514722
    size, share = known.size, known.mean()
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return float(middle - half), float(middle + half)


def rogan_gladen(study: Study, rng: np.random.Generator) -> Interval:
    """The mean of s/n, corrected by the rates of the known; everyone resampled, within known and unknown."""
    unknown, known = study.kinds[0], study.kinds[1:].ravel()
    again = [rng.multinomial(one.sum(), one / one.sum(), RESAMPLES) for one in (unknown, known)]
    by_kind = np.hstack(again).reshape(RESAMPLES, 3, REPLICATES + 1)
    share = np.arange(REPLICATES + 1) / REPLICATES
    with np.errstate(all="ignore"):  # a resample without anyone of a class says nothing
        _, false_positive, sensitivity = (by_kind @ share / by_kind.sum(axis=2)).T
        raw = by_kind.sum(axis=1) @ share / PEOPLE
        corrected = (raw - false_positive) / (sensitivity - false_positive)
    tails = np.nanquantile(np.clip(corrected, 0, 1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(tails[0]), float(tails[1])


def _powered(score: np.ndarray, study: Study) -> Interval:
    """Prediction-powered inference with these predictions."""
    from ppi_py import ppi_mean_ci

    with warnings.catch_warnings(action="ignore"):
        lower, upper = ppi_mean_ci(
            study.truth[study.gold].astype(float), score[study.gold], score[~study.gold], alpha=1 - LEVEL
        )
    return float(np.squeeze(lower)), float(np.squeeze(upper))


def powered_by_share(study: Study, _: np.random.Generator) -> Interval:
    """Predictions that need no model."""
    return _powered(study.s / REPLICATES, study)


def powered_by_scores(study: Study, _: np.random.Generator) -> Interval:
    """Our scores, from a fit that has not seen the known statuses."""
    n, s = np.full(REPLICATES + 1, REPLICATES), np.arange(REPLICATES + 1)
    fit = br.fit_bayes(br.CountTable(n, s, study.kinds.sum(axis=0)))
    return _powered(np.asarray(fit.score(n, s))[study.s], study)


def methods() -> dict[str, Callable[[Study, np.random.Generator], Interval]]:
    """Those that are installed."""
    found = {"binreps": ours, "Rogan–Gladen": rogan_gladen, "known alone": gold_alone}
    if find_spec("ppi_py"):
        found |= {"PPI++ on s/n": powered_by_share, "PPI++ on our scores": powered_by_scores}
    return found


def judged(draw: Any, truth: float, share: float, studies: int) -> dict[str, tuple[float, float]]:
    """Mean width, and the share of intervals that hold the truth, of each method on the same studies."""
    ends: dict[str, list[Interval]] = {name: [] for name in methods()}
    for seed in range(studies):
        study = draw(share, np.random.default_rng([seed, round(100 * share)]))
        for name, answer in methods().items():
            ends[name].append(answer(study, np.random.default_rng([seed, 1])))
    found = {}
    for name, made in ends.items():
        lower, upper = np.transpose(made)
        found[name] = float((upper - lower).mean()), float(((lower <= truth) & (truth <= upper)).mean())
    return found


def _shown(found: dict[str, tuple[float, float]], studies: int) -> list[dict[str, Any]]:
    """A row per method; too few that hold are in bold."""
    least = LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / studies)
    return [
        {
            "method": name,
            "width": f"{width:.3f}",
            "holds": f"{held:.3f}" if held >= least else f"**{held:.3f}**",
        }
        for name, (width, held) in found.items()
    ]


def _missing() -> str:
    """Why rows are missing, if they are."""
    return "" if find_spec("ppi_py") else "ppi-python is not installed, so its rows are missing."
