"""Accuracy with known truth: our scores and crowd-kit's, on simulated studies and on published ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import binreps as br
from benchmarks import crowds, published
from benchmarks.published import Study, panel
from benchmarks.report import Ratio, Section, Settings
from benchmarks.timing import say
from binreps.decide.evaluate import calibration_error

GRID = {"θ": (0.1, 0.4), "p": (0.05, 0.2), "q": (0.1, 0.3), "n": (3, 6)}
INDIVIDUALS = 500
LOSS = br.Loss()
OURS: dict[str, Callable[[br.CountTable], Any]] = {
    "average": br.fit_average,
    "median": br.fit_median,
    "MAP": br.fit_map,
    "Bayes": br.fit_bayes,
}
MEASURES = ("accuracy", "log loss", "Brier", "calibration error", "risk")


def run(settings: Settings) -> list[Section]:
    """All sections of this family."""
    return [simulated(settings), published_studies()]


# Simulated studies -----------------------------------------------------------------------------------------


def simulated(settings: Settings) -> Section:
    """Means over a grid of rates and replicates."""
    found: dict[str, list[dict[str, float]]] = {}
    for cell, study in _grid(10 if settings.full else 1):
        say(f"accuracy, simulated: {cell}")
        for name, scores in scores_of(study).items():
            found.setdefault(name, []).append(judged(scores, study.truth))
    means = {name: _means(made) for name, made in found.items()}
    risks = np.array([[one["risk"] for one in made] for made in found.values()])
    best = dict(zip(found, (risks <= risks.min(axis=0) + 1e-12).mean(axis=1), strict=True))
    rows = [
        {"scores": name, **_shown(mean), "least risk": f"{100 * best[name]:.0f} %"}
        for name, mean in means.items()
    ]
    sizes = " × ".join(f"{name} ∈ {{{', '.join(map(str, values))}}}" for name, values in GRID.items())
    text = (
        f"Means over the grid {sizes}, {INDIVIDUALS} individuals in each study, whose replicates all err "
        "alike: the model holds, and the raters that Dawid–Skene tells apart are the same. A score above ½ "
        "is taken as positive (½ counts half), the risk is of three answers with an inconclusive one at "
        "0.25; a log loss is infinite where a score of 0 or 1 is wrong; in how many studies a score had the "
        f"least risk, ties included. {_missing()}"
    )
    return Section("Accuracy: simulated studies", text, rows, _ratios("simulated", means))


def _grid(repeats: int) -> Iterator[tuple[str, Study]]:
    """A study for each corner of the grid."""
    rng = np.random.default_rng(1)
    for theta, p, q, n in itertools.product(*GRID.values()):
        for _ in range(repeats):
            truth = (rng.random(INDIVIDUALS) < theta).astype(int)
            chance = np.where(truth == 1, 1 - q, p)
            result = (rng.random((INDIVIDUALS, n)) < chance[:, None]).astype(int)
            yield f"θ = {theta}, p = {p}, q = {q}, n = {n}", panel(result, truth)


def _means(made: list[dict[str, float]]) -> dict[str, float]:
    """Of each measure."""
    return {name: float(np.mean([one[name] for one in made])) for name in MEASURES}


# Published studies -----------------------------------------------------------------------------------------


def published_studies() -> Section:
    """Each published study with a truth, or a sentence where the files are missing."""
    rows, ratios = [], {}
    for name in ("restaurant", "rte"):
        if not published.available(name):
            continue
        say(f"accuracy: {name}")
        study = published.read_study(name)
        found = {kind: judged(scores, study.truth) for kind, scores in scores_of(study).items()}
        rows += [{"data": name, "scores": kind, **_shown(measures)} for kind, measures in found.items()]
        ratios |= _ratios(name, found)
    if published.available("periodontal"):
        found = _periodontal()
        rows += [
            {"data": "periodontal", "scores": kind, **_shown(measures)} for kind, measures in found.items()
        ]
    text = (
        "Scores without a look at the truth, then judged by it. *restaurant*: 2,004 pairs of records × 3 "
        "crowd workers; *rte*: 800 pairs of sentences × 10 of 164 workers, who differ much, so that a "
        "model that knows who voted (Dawid–Skene) has what these leave out; *Sources* has ours that does. "
        f"*periodontal*: 50 individuals, the sites are not named, so there are no raters. {_missing()}"
    )
    if not rows:
        text += f" {published.ABSENT}"
    return Section("Accuracy: published studies", text, rows, ratios)


def _periodontal() -> dict[str, dict[str, float]]:
    """Our scores of the published counts."""
    _, n, s, truth = np.array(published.rows("periodontal"), dtype=int).T
    counts = br.CountTable(n, s)
    return {name: judged(fit(counts).score(n, s), truth) for name, fit in OURS.items()}


# Scores and how they are judged ----------------------------------------------------------------------------


def scores_of(study: Study) -> dict[str, np.ndarray]:
    """The scores of every method."""
    counts = br.CountTable(study.n, study.s)
    found = {name: np.asarray(fit(counts).score(study.n, study.s)) for name, fit in OURS.items()}
    return found | (_crowd_scores(study) if crowds.installed() else {})


def _crowd_scores(study: Study) -> dict[str, np.ndarray]:
    """crowd-kit's scores."""
    import pandas as pd

    votes = pd.DataFrame({"task": study.task, "worker": study.rater, "label": study.result})
    shares, model = crowds.majority_shares(votes), crowds.dawid_skene(votes)
    return {
        "crowd-kit, majority": shares.sort_index()[1].to_numpy(),
        "crowd-kit, Dawid–Skene with raters": model.probas_.sort_index()[1].to_numpy(),
    }


def judged(scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss, Brier score, calibration error and risk."""
    found = br.evaluate(np.clip(scores, 0, 1), truth, LOSS)
    right = np.where(scores == 0.5, 0.5, (scores > 0.5) == (truth == 1))
    return {
        "accuracy": float(right.mean()),
        "log loss": float(found.log_score),
        "Brier": float(found.brier),
        "calibration error": float(calibration_error(np.clip(scores, 0, 1), truth)),
        "risk": float(found.mean_risk),
    }


def _shown(measures: dict[str, float]) -> dict[str, str]:
    """With three decimals, as the differences are small."""
    return {name: f"{value:.3f}" for name, value in measures.items()}


def _ratios(name: str, found: dict[str, dict[str, float]]) -> dict[str, Ratio]:
    """Brier score and risk of the peers over those of Bayes."""
    return {
        f"accuracy, {name}, {kind}: {measure} over that of Bayes": Ratio(
            one[measure] / found["Bayes"][measure], slack=0.9
        )
        for kind, one in found.items()
        if kind not in OURS
        for measure in ("Brier", "risk")
    }


def _missing() -> str:
    """Why rows are missing, if they are."""
    return "" if crowds.installed() else crowds.MISSING
