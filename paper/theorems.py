"""(f) The paper's theorems in numbers: orders, the vanishing J, the optimality of the Bayes score."""

from __future__ import annotations

from itertools import product
from math import comb

import altair as alt
import numpy as np

import binreps as br
from binreps.fits.point.simple import average_score, median_score
from binreps.model import likelihood_score, log_likelihood
from paper.methods import DEFAULT, on_all_cores, one, scores_of_cells
from paper.output import Row, chart, save_chart, write_table
from paper.settings import Comparison, Progress, Settings, found, part

COST, NEW = 0.2, 12  # of an inconclusive answer; replicates of a new individual
RANKED = ("average", "median", "MAP", "Bayes", "Bayes, misguided prior")


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """Each theorem in turn."""
    rng = settings.rng(6)
    lines = orders() + simulated_orders(rng)
    lines += vanishing_interval(settings)
    lines += bayes_is_optimal(settings, rng, part(progress, 0, 2))
    return lines + exact_prediction(settings, rng, part(progress, 1, 2))


def orders() -> list[Comparison]:
    """Sensitivity and specificity of the median are never below those of the average.

    Nor is its misclassification above, if ½ is an error; without ½ it is the other way round [E12].
    """
    rates = [0.01, 0.1, 0.25, 0.4, 0.49]
    gaps = []
    for n, p, q, lower, upper in product(range(1, 13), rates, rates, (0.1, 0.3, 0.5), (0.5, 0.7, 0.9)):
        average, median = (
            br.theory.classifier_performance(n, br.Rates(0.4, p, q), lower=lower, upper=upper, score=score)
            for score in br.theory.SCORES
        )
        both = [
            [x.misclassification(inconclusive_is_error=y) for x in (average, median)] for y in (True, False)
        ]
        gaps.append(
            (
                median.sensitivity - average.sensitivity,
                median.specificity - average.specificity,
                both[0][0] - both[0][1],
                both[1][1] - both[1][0],
            )
        )
    names = (
        "sensitivity, median − average",
        "specificity, median − average",
        "misclassification with ½ an error, average − median",
        "hard errors alone, median − average",
    )
    return [
        found(f"(f) {name}: least of {len(gaps):,} cases", f"{low:.1e}", "never below 0, up to rounding")
        for name, low in zip(names, np.min(gaps, axis=0), strict=True)
    ]


def simulated_orders(rng: np.random.Generator) -> list[Comparison]:
    """The same by simulation, with its error: sensitivities of both classifiers at n = 5."""
    rates, size = br.Rates(1.0, 0.2, 0.25), 100_000
    study = br.simulate(rates, size, 5, rng)
    lines = []
    for name, score in (("average", average_score), ("median", median_score)):
        share = float(np.mean(br.classify(score(study.n, study.s), 0.3, 0.7) == 1))
        exact = br.theory.classifier_performance(5, rates, lower=0.3, upper=0.7, score=name).sensitivity  # type: ignore[arg-type]
        error = np.sqrt(exact * (1 - exact) / size)
        lines.append(
            found(
                f"(f) sensitivity of the {name}, n = 5, q = .25, thresholds .3/.7",
                f"{share:.4f} ± {error:.4f}",
                f"theory {exact:.4f}",
            )
        )
    return lines


def vanishing_interval(settings: Settings) -> list[Comparison]:
    """The length of J against n, for everyone the same n."""
    rows: list[Row] = []
    for p, q in ((0.1, 0.2), (0.1, 0.05), (0.3, 0.45)):
        for n in range(3, 62, 2):
            low, high = br.theory.median_more_biased(n, p, q)
            rows.append({"rates": f"p = {p}, q = {q}", "n": n, "length": high - low})
    write_table(settings, "interval-j", rows)
    picture = (
        chart([row for row in rows if row["length"] > 1e-12], width=460, height=280)
        .mark_line(point=True)
        .encode(
            x=alt.X("n:Q", title="replicates n of everyone (odd; n + 1 is the same)"),
            y=alt.Y(
                "length:Q", title="length of J", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e")
            ),
            color=alt.Color("rates:N", title=None),
        )
    )
    save_chart(settings, "interval-j", picture)
    lengths = {n: np.subtract(*br.theory.median_more_biased(n, 0.3, 0.45)[::-1]) for n in (3, 9, 51, 501)}
    words = ", ".join(f"n = {n}: {length:.4f}" for n, length in lengths.items())
    return [found("(f) length of J, p = .3, q = .45", words, "→ 0, but not monotonically")]


def bayes_is_optimal(settings: Settings, rng: np.random.Generator, progress: Progress) -> list[Comparison]:
    """Averaged over the prior, no method has a lower ℓ_a risk than the Bayes score.

    The loss is averaged over the statuses given the data and the true rates, which leaves less noise.
    """
    number = settings.datasets(1000)
    rates = br.fit_bayes(br.CountTable([], []), DEFAULT).draws(number, rng)
    tables = [br.simulate(one(rates, i), 25, range(2, 7), rng).counts for i in range(number)]
    scores, loss = scores_of_cells(tables, rates, progress), br.Loss(inconclusive=COST)
    risks = {
        name: np.array([_risk(scores, name, i, table, loss) for i, table in enumerate(tables)])
        for name in RANKED
    }
    where = f"(f) rates from the prior, 25 individuals, a = {COST}"
    lines = [found(f"{where}: risk of Bayes", f"{risks['Bayes'].mean():.4f}")]
    for name in RANKED:
        gap = risks[name] - risks["Bayes"]
        if name != "Bayes":
            error = gap.std(ddof=1) / np.sqrt(number)
            lines.append(found(f"{where}: excess over it of {name}", f"{gap.mean():+.4f} ± {error:.4f}"))
    return lines


def _risk(
    scores: dict[str, list[np.ndarray]], name: str, i: int, table: br.CountTable, loss: br.Loss
) -> float:
    """Expected mean loss of one data set by one method, given the rates that made it."""
    answers = (2 * loss.classify(scores[name][i])).astype(int)
    risks = loss.risks(scores["rates known"][i])
    return float(table.weight @ risks[np.arange(len(table)), answers]) / table.individuals


def exact_prediction(settings: Settings, rng: np.random.Generator, progress: Progress) -> list[Comparison]:
    """A new individual by the exact ratio and by the paper's formula [E10], rates drawn from the prior."""
    number = settings.datasets(500)
    rates = br.fit_bayes(br.CountTable([], []), DEFAULT).draws(number, rng)
    truths = [one(rates, i) for i in range(number)]
    tables = [br.simulate(truth, 10, range(2, 7), rng).counts for truth in truths]
    scores = on_all_cores(predictions, tables, progress)
    judged = np.array([judge(truth, pair) for truth, pair in zip(truths, scores, strict=True)])
    lines = []
    for what, values in zip((f"ℓ_a risk at a = {COST}", "log score"), judged.T, strict=True):
        gap = values[1] - values[0]
        ours = f"{gap.mean():+.5f} ± {gap.std(ddof=1) / np.sqrt(number):.5f}"
        where = f"10 individuals, {NEW} replicates: {what}"
        lines.append(found(f"(f) excess of the paper's prediction, {where}", ours, "E10; above 0 is worse"))
    return lines


def predictions(table: br.CountTable) -> tuple[np.ndarray, np.ndarray]:
    """The exact prediction and the paper's, for every result of a new individual."""
    fit, s = br.fit_bayes(table, DEFAULT), np.arange(NEW + 1)
    return fit.predict(NEW, s), fit.predict_paper(NEW, s)


def judge(truth: br.Rates, pair: tuple[np.ndarray, np.ndarray]) -> list[tuple[float, float]]:
    """Expected ℓ_a risk and log score of both predictions, given the rates."""
    s, loss = np.arange(NEW + 1), br.Loss(inconclusive=COST)
    chance, status = _outcomes(truth, s), likelihood_score(NEW, s, truth)
    judged = []
    for score in pair:
        answers = (2 * loss.classify(score)).astype(int)
        surprise = -chance @ (status * np.log(score) + (1 - status) * np.log1p(-score))
        judged.append((float(chance @ loss.risks(status)[s, answers]), float(surprise)))
    return judged


def _outcomes(rates: br.Rates, s: np.ndarray) -> np.ndarray:
    """The chance of each number of positives among the replicates of a new individual."""
    each = [comb(NEW, k) * np.exp(log_likelihood(br.CountTable([NEW], [k]), rates)) for k in s.tolist()]
    return np.array(each)
