"""(d) Synthetic mammography: readings, predictions by s, summed risks, also where the model fails."""

from __future__ import annotations

from itertools import chain
from typing import Any

import altair as alt
import numpy as np

import binreps as br
from binreps.fits.batch import BatchResult
from binreps.model import likelihood_score
from binreps.study.mammography import Mammography, exponential_weights, simulate_mammography
from paper.methods import DEFAULT, MISGUIDED, fit_all, on_all_cores
from paper.output import COLOURS, Row, chart, colour, save_chart, write_table
from paper.settings import Comparison, Progress, Settings, found, number, part

TRAINED, REPLICATES = 133, 4
COSTS = (0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45)
S = np.arange(REPLICATES + 1)
NAMES = ("prevalence", "false_positive", "false_negative")
METHODS = ("average", "median", "MAP", "Bayes", "Bayes, paper's formula", "Bayes, misguided prior")


def equal_weights(_: np.random.Generator, women: int) -> np.ndarray:
    """No woman is harder than another."""
    return np.ones(women)


def uneven_weights(rng: np.random.Generator, women: int) -> np.ndarray:
    """A few women attract most errors: log-normal weights with a log-sd of 2."""
    return rng.lognormal(sigma=2.0, size=women)


LAWS: dict[str, dict[str, Any]] = {
    "all alike": {"spread": 0.0, "weights": equal_weights},
    "readers differ": {"weights": equal_weights},
    "women differ": {"weights": exponential_weights},
    "women differ a lot": {"weights": uneven_weights},
}
"""From the model itself to errors that gather on a few women; the third stands for the paper's study."""


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """The pixel figure of one study, then 100 data sets under each law."""
    rng = settings.rng(4)
    one = simulate_mammography(rng)
    save_chart(settings, "mammography-pixels", pixel_chart(one))
    lines = published_means(settings, rng)
    results = [
        study(law, options, settings.datasets(100), rng, part(progress, i, len(LAWS)))
        for i, (law, options) in enumerate(LAWS.items())
    ]
    scores, risks, rates = (list(chain.from_iterable(rows)) for rows in zip(*results, strict=True))
    for name, rows in {"scores": scores, "risks": risks, "rates": rates}.items():
        write_table(settings, f"mammography-{name}", rows)
    save_chart(settings, "mammography-scores", score_chart(scores))
    save_chart(settings, "mammography-risks", risk_chart(risks))
    return lines + conclusions(risks, rates, scores)


def study(
    law: str, options: dict[str, Any], datasets: int, rng: np.random.Generator, progress: Progress
) -> tuple[list[Row], ...]:
    """Fit on 133 women, predict the other 15, many times: rows of scores, of risks and of rates."""
    train, test, joint = [], [], np.zeros((2, S.size))
    for _ in range(datasets):
        women = simulate_mammography(rng, **options).draw_readers(REPLICATES, rng)
        order = rng.permutation(len(women))
        train.append(br.CountTable(women.n[order[:TRAINED]], women.s[order[:TRAINED]]))
        test.append((women.s[order[TRAINED:]], women.truth[order[TRAINED:]]))
        np.add.at(joint, (women.truth, women.s), 1)
    fits = fit_all(train, part(progress, 0, 2))
    predictions = predict(fits, part(progress, 1, 2))
    rates = [
        {"law": law, "method": name, **{rate: float(np.mean(getattr(batch.rates, rate))) for rate in NAMES}}
        for name, batch in fits.items()
    ]
    return score_rows(law, predictions, joint), risk_rows(law, predictions, test, joint), rates


def predict(fits: dict[str, BatchResult], progress: Progress) -> dict[str, np.ndarray]:
    """The prediction for s = 0…4 of 4 readings: one row per data set."""
    points = {name: _columns(fits[name].rates) for name in ("average", "median", "MAP")}
    found = {name: likelihood_score(REPLICATES, S, rates) for name, rates in points.items()}
    each = on_all_cores(bayes_predictions, fits["Bayes"].tables, progress)
    names = ("Bayes", "Bayes, paper's formula", "Bayes, misguided prior")
    return found | {
        name: np.array(values) for name, values in zip(names, zip(*each, strict=True), strict=True)
    }


def bayes_predictions(table: br.CountTable) -> tuple[np.ndarray, ...]:
    """Predictions from one data set: the exact one, the paper's formula, and under the misguided prior."""
    default, misguided = br.fit_bayes(table, DEFAULT), br.fit_bayes(table, MISGUIDED)
    exact, paper = default.predict(REPLICATES, S), default.predict_paper(REPLICATES, S)
    return exact, paper, misguided.predict(REPLICATES, S)


def _columns(rates: br.Rates) -> br.Rates:
    """Rates as columns, to meet a row of s."""
    return br.Rates(*(np.asarray(rate)[:, None] for rate in rates))


def score_rows(law: str, predictions: dict[str, np.ndarray], joint: np.ndarray) -> list[Row]:
    """Predictions by s, over data sets, beside the share of cancers among all women with that s."""
    share = joint[1] / joint.sum(axis=0)
    rows = []
    for name, values in predictions.items():
        for k in S.tolist():
            low, middle, high = np.quantile(values[:, k], [0.05, 0.5, 0.95]).tolist()
            columns = {"median": middle, "low": low, "high": high, "cancers": float(share[k])}
            rows.append({"law": law, "method": name, "s": k, **columns})
    return rows


def risk_rows(
    law: str, predictions: dict[str, np.ndarray], test: list[tuple[np.ndarray, np.ndarray]], joint: np.ndarray
) -> list[Row]:
    """Total ℓ_a over the 15 women predicted, by a and summed over a.

    `risk` is the total, as in the paper. `expected` is what it would be with 15 women from all those of this
    law in place of the 15 at hand, and `minus_average` the difference from the average with its Monte Carlo
    error: the same comparison with much less noise.
    """
    totals = {name: _totals(values, test) for name, values in predictions.items()}
    expected = {name: _expected(values, joint) for name, values in predictions.items()}
    rows = []
    for name in predictions:
        gap = expected[name] - expected["average"]
        for k, a in enumerate((*COSTS, "sum")):
            columns = {"risk": totals[name], "expected": expected[name], "minus_average": gap}
            means = {key: float(values[:, k].mean()) for key, values in columns.items()}
            error = float(gap[:, k].std(ddof=1) / np.sqrt(len(gap)))
            rows.append({"law": law, "method": name, "a": a, **means, "difference_se": error})
    return rows


def _totals(predictions: np.ndarray, test: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The summed loss of each data set (rows) at each cost, and over all costs (columns)."""
    rows = []
    for scores, (s, truth) in zip(predictions, test, strict=True):
        losses = [br.Loss(inconclusive=a) for a in COSTS]
        rows.append([loss.cost(truth, loss.classify(scores[s])).sum() for loss in losses])
    return _with_sum(np.array(rows))


def _expected(predictions: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """The same, expected for women whose truth and s have this joint frequency."""
    columns = []
    for a in COSTS:
        loss = br.Loss(inconclusive=a)
        answers = loss.classify(predictions)
        cost = joint[0] * loss.cost(0, answers) + joint[1] * loss.cost(1, answers)
        columns.append((148 - TRAINED) * cost.sum(axis=1) / joint.sum())
    return _with_sum(np.stack(columns, axis=1))


def _with_sum(columns: np.ndarray) -> np.ndarray:
    """The columns and, last, their sum."""
    return np.column_stack([columns, columns.sum(axis=1)])


def pixel_chart(one: Mammography) -> Any:
    """Every reading: who is misread, by whom; women by difficulty within their class."""
    women = np.lexsort((one.weights, one.truth))
    readers = np.argsort(one.errors.sum(axis=1), kind="stable")
    colours = {"wrong": "#0072B2", "not read": "#D55E00"}
    pixels = [
        {"woman": int(i), "reader": int(j), "reading": reading}
        for reading, which in zip(colours, (one.errors, ~one.observed), strict=True)
        for j, i in np.argwhere(which[readers][:, women])
    ]
    hidden = alt.Axis(labels=False, ticks=False, domain=False)
    sizes = {
        axis: alt.Scale(domain=list(range(n)), padding=0)
        for axis, n in zip("yx", one.readings.shape, strict=True)
    }
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return (
        chart(
            pixels, width=592, height=330, title="84 healthy women, then 64 cancers, each from easy to hard"
        )
        .mark_rect()
        .encode(
            x=alt.X("woman:O", scale=sizes["x"], axis=hidden, title="148 women"),
            y=alt.Y("reader:O", scale=sizes["y"], axis=hidden, title="110 readers, from few errors to many"),
            color=alt.Color("reading:N", scale=scale, sort=list(colours), title="reading"),
        )
    )


def score_chart(rows: list[Row]) -> alt.TopLevelMixin:
    """Prediction by s and method, in each law; the bar is the share that truly has cancer."""
    base = chart(rows, width=150, height=220)
    hue = colour(METHODS, "method")
    x = alt.X("s:O", title="positive readings of 4", axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("method:N", sort=list(METHODS))
    bars = (
        base.transform_filter(f"datum.method === '{METHODS[0]}'")
        .mark_bar(color="#dddddd")
        .encode(x=x, y=alt.Y("cancers:Q", title="prediction (bar: true share of cancers)"))
    )
    lines = base.mark_rule(size=2).encode(x=x, xOffset=offset, y="low:Q", y2="high:Q", color=hue)
    dots = base.mark_point(filled=True, size=18).encode(x=x, xOffset=offset, y="median:Q", color=hue)
    return alt.layer(bars, lines, dots).facet(column=alt.Column("law:N", title=None, sort=list(LAWS)))


def risk_chart(rows: list[Row]) -> alt.TopLevelMixin:
    """What each method gains on the average, with twice its Monte Carlo error."""
    shown = [
        row
        | {"low": row["minus_average"] - 2 * row["difference_se"]}
        | {"high": row["minus_average"] + 2 * row["difference_se"]}
        for row in rows
        if row["method"] != "average" and row["a"] != "sum"
    ]
    base = chart(shown, width=170, height=240)
    hue = colour([name for name in METHODS if name != "average"], "method")
    x = alt.X("a:Q", title="cost a", scale=alt.Scale(domain=[0.13, 0.47], nice=False))
    title = "expected loss over 15 women, minus the average's"
    zero = base.mark_rule(color=COLOURS["average"]).encode(y=alt.datum(0))
    bands = base.mark_area(opacity=0.15).encode(x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=hue)
    lines = base.mark_line(point=True).encode(x=x, y="minus_average:Q", color=hue)
    return alt.layer(zero, bands, lines).facet(column=alt.Column("law:N", title=None, sort=list(LAWS)))


def published_means(settings: Settings, rng: np.random.Generator) -> list[Comparison]:
    """The mean rates of the synthetic readers, over many studies, beside the published ones."""
    studies = [simulate_mammography(rng).reader_rates for _ in range(settings.datasets(100))]
    means = np.mean(studies, axis=(0, 2))
    why = "the individual rates are not public: drawn from a Beta law with this mean"
    return [
        number(f"(d) mean {name} of the readers", printed, float(mean), why)
        for name, printed, mean in zip("pq", ("0.22", "0.13"), means, strict=True)
    ]


def conclusions(risks: list[Row], rates: list[Row], scores: list[Row]) -> list[Comparison]:
    """Risks summed over a, and what the mixture makes of over-dispersed readings."""
    lines = []
    for law in LAWS:
        lines.append(found(f"(d) {law}: loss over 15 women, summed over a = .15….45", ranking(risks, law)))
        lines.append(found(f"(d) {law}: the same, expected, minus the average's", differences(risks, law)))
        estimate = next(row for row in rates if (row["law"], row["method"]) == (law, "Bayes"))
        words = ", ".join(f"{estimate[rate]:.3f}" for rate in NAMES)
        lines.append(found(f"(d) {law}: Bayes' mean θ, p, q", words, "the readers' own: .432, .22, .13"))
        tie = [row for row in scores if (row["law"], row["s"]) == (law, 2)]
        words = ", ".join(f"{row['method']} {row['median']:.2f}" for row in tie)
        lines.append(found(f"(d) {law}: prediction at 2 of 4", f"{words}; truly {tie[0]['cancers']:.2f}"))
    return lines


def _sums(risks: list[Row], law: str) -> list[Row]:
    """The rows of one law that are sums over a."""
    return [row for row in risks if (row["law"], row["a"]) == (law, "sum")]


def ranking(risks: list[Row], law: str) -> str:
    """The methods from the lowest summed risk to the highest."""
    ranked = sorted(_sums(risks, law), key=lambda row: row["risk"])
    return ", ".join(f"{row['method']} {row['risk']:.2f}" for row in ranked)


def differences(risks: list[Row], law: str) -> str:
    """What each method gains (−) or loses (+) on the average, with its Monte Carlo error."""
    others = sorted(
        (row for row in _sums(risks, law) if row["method"] != "average"), key=lambda row: row["minus_average"]
    )
    return ", ".join(
        f"{row['method']} {row['minus_average']:+.2f} ± {row['difference_se']:.2f}" for row in others
    )
