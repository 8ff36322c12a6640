"""(g) The mammography study by reader: error rates of each; with the discount, with gold, with difficulty.

The paper's methods see how many of four readers were positive; here it is known who they were. Everyone's
score is judged, not 15 women left out: readers have few readings each, and the question is what knowing them
is worth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.difficulty import sampled

import binreps as br
from binreps.fits.sampled.calibration import Calibration
from binreps.study.mammography import Mammography, simulate_mammography
from paper.mammography import COSTS, LAWS, REPLICATES
from paper.output import Row, write_table
from paper.settings import Comparison, Progress, Settings, found

METHODS = (
    *("average", "median", "MAP", "Bayes"),
    *("sources, independent", "sources, discount", "sources, gold", "sources, difficulty"),
)


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """Some data sets under each law, every method."""
    rng, datasets = settings.rng(7), settings.datasets(12)
    rows: list[Row] = []
    for i, (law, options) in enumerate(LAWS.items()):
        judged = []
        for j in range(datasets):
            judged.append(trial(simulate_mammography(rng, **options), rng))
            progress(i * datasets + j + 1, len(LAWS) * datasets)
        for name in METHODS:
            risk, loss = np.array([one[name] for one in judged]).T
            error = {"risk_se": _error(risk), "log_loss_se": _error(loss)}
            means = {"risk": float(risk.mean()), "log_loss": float(loss.mean())}
            rows.append({"law": law, "method": name, **means, **error})
    write_table(settings, "mammography-readers", rows)
    return [found(f"By reader, {row['law']}: {row['method']}", _words(row)) for row in rows]


def trial(study: Mammography, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Risk summed over costs and women, and log loss, of every method in one study."""
    readings, truth = four_readers(study, rng), study.truth
    n, s = readings.sizes
    counts = readings.counts
    scores: dict[str, Any] = {"average": s / n, "median": br.fit_median(counts).score(n, s)}
    scores |= {"MAP": br.fit_map(counts).score(n, s), "Bayes": br.fit_bayes(counts).score(n, s)}
    fit = br.fit_sources(readings, rng=1, tol=0.1)
    plain = fit.posterior.with_calibration(Calibration())
    scores["sources, independent"] = plain.chances(readings, new=False).value
    scores["sources, discount"] = fit.score(readings)
    gold = rng.random(truth.size) < 0.1
    known = readings._with(known=np.where(gold, truth, -1).astype(np.int8))
    scores["sources, gold"] = br.fit_sources(known, rng=1, tol=0.1).score(readings)
    scores["sources, difficulty"] = sampled(readings, 1, sweeps=600, most=1200).score
    rest = truth[~gold]
    return {
        name: (_risk(scores[name][~gold], rest), _log_loss(scores[name][~gold], rest)) for name in METHODS
    }


def four_readers(study: Mammography, rng: np.random.Generator) -> br.Readings:
    """For each woman four of those who read her, and who they were."""
    race = np.where(study.observed, rng.random(study.readings.shape), np.inf)
    by = np.argsort(race, axis=0)[:REPLICATES]
    said = np.take_along_axis(study.readings, by, axis=0)
    of = np.tile(np.arange(study.truth.size), REPLICATES)
    return br.Readings(of, by.ravel(), said.ravel())


def _risk(score: np.ndarray, truth: np.ndarray) -> float:
    """Mean loss of a woman, summed over the costs of an inconclusive answer."""
    losses = [br.Loss(inconclusive=a) for a in COSTS]
    return float(sum(loss.cost(truth, loss.classify(score)).mean() for loss in losses))


def _log_loss(score: np.ndarray, truth: np.ndarray) -> float:
    inside = np.clip(score, 0.01, 0.99)  # the average says 0 and 1
    return float(-np.mean(np.log(np.where(truth == 1, inside, 1 - inside))))


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def _words(row: Row) -> str:
    risk, loss = f"{row['risk']:.3f} ± {row['risk_se']:.3f}", f"{row['log_loss']:.3f}"
    return f"risk {risk}, log loss {loss}"
