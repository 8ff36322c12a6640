"""(b) The ℓ_a-risk of each method against a, the cost of an inconclusive answer, at θ = 0.4."""

from __future__ import annotations

import altair as alt
import numpy as np

import binreps as br
from binreps.study.simulate import Simulation
from paper.methods import SCORED, scores_of_cells
from paper.output import Row, chart, colour, save_chart, write_table
from paper.settings import Comparison, Progress, Settings, found, text

RATES, INDIVIDUALS, REPLICATES = br.Rates(0.4, 0.1, 0.05), 200, range(2, 7)
COSTS = np.arange(0.1, 0.5001, 0.0025).round(4)
JUMPS = {"1/6": 1 / 6, "1/5": 1 / 5, "1/4": 1 / 4, "1/3": 1 / 3, "2/5": 2 / 5}
"""Where the curve of the average jumps: the averages s/n < ½ that 2 to 6 replicates can give."""


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """Simulate, score, draw, and state what was found."""
    rng = settings.rng(2)
    studies = [br.simulate(RATES, INDIVIDUALS, REPLICATES, rng) for _ in range(settings.datasets(300))]
    risks = risk_curves(studies, progress)
    rows = [row for name, curves in risks.items() for row in summary(name, curves)]
    write_table(settings, "risk", rows)
    save_chart(settings, "risk", risk_chart(rows))
    return conclusions(risks)


def risk_curves(studies: list[Simulation], progress: Progress) -> dict[str, np.ndarray]:
    """Mean loss of every data set (rows) at every cost (columns), by method."""
    tables = [study.counts for study in studies]
    rates = br.Rates(*(np.full(len(studies), rate) for rate in RATES))
    scores = scores_of_cells(tables, rates, progress)
    where = np.repeat(np.arange(len(studies)), [len(table) for table in tables])
    parts = [truths(study) for study in studies]
    healthy, infected = (np.concatenate(column) for column in zip(*parts, strict=True))

    def mean_losses(y: np.ndarray, a: float) -> np.ndarray:
        decisions, loss = br.classify(y, a, 1 - a), br.Loss(inconclusive=a)
        cost = healthy * loss.cost(0, decisions) + infected * loss.cost(1, decisions)
        return np.bincount(where, cost) / INDIVIDUALS

    stacked = {name: np.concatenate(scores[name]) for name in SCORED}
    return {name: np.stack([mean_losses(y, a) for a in COSTS], axis=1) for name, y in stacked.items()}


def truths(study: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """How many of each cell are truly negative and truly positive, in the order of the count table."""
    table = study.counts
    index = {pair: i for i, pair in enumerate(zip(table.n.tolist(), table.s.tolist(), strict=True))}
    place = [index[pair] for pair in zip(study.n.tolist(), study.s.tolist(), strict=True)]
    positive = np.bincount(place, study.truth, minlength=len(table))
    return table.weight - positive, positive


def summary(name: str, curves: np.ndarray) -> list[Row]:
    """Median and .4–.6 quantiles over data sets, as in the paper's figure, and the mean."""
    low, middle, high = np.quantile(curves, [0.4, 0.5, 0.6], axis=0)
    columns = {"a": COSTS, "median": middle, "low": low, "high": high, "mean": curves.mean(axis=0)}
    return [
        {"method": name, **{key: float(values[i]) for key, values in columns.items()}}
        for i in range(COSTS.size)
    ]


def risk_chart(rows: list[Row]) -> alt.TopLevelMixin:
    """Medians with their bands; vertical lines where the average jumps."""
    axis = alt.Axis(values=[0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5])
    x = alt.X("a:Q", title="cost a of an inconclusive answer", scale=alt.Scale(domain=[0.1, 0.5]), axis=axis)
    title = "risk: median over data sets, quantiles .4 to .6"
    hue = colour(SCORED, "method")
    base = chart(rows, width=620, height=380)
    ticks = chart([{"a": value, "label": label} for label, value in JUMPS.items()])
    return alt.layer(
        ticks.mark_rule(color="#bbbbbb", strokeDash=[2, 3]).encode(x=x),
        ticks.mark_text(dy=-6, color="#666666").encode(x=x, y=alt.value(0), text="label:N"),
        base.mark_area(opacity=0.12).encode(x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=hue),
        base.mark_line().encode(x=x, y=alt.Y("median:Q", title=title), color=hue),
    ).properties(title="θ = 0.4, p = 0.1, q = 0.05, 2 to 6 replicates, 200 individuals")


def jump_sizes() -> dict[str, float]:
    """How far the expected curve of the average jumps at each of its jumps."""
    step = 1e-9

    def curve(a: float) -> float:
        return float(br.theory.risk_curve(list(REPLICATES), RATES, a, score="average"))

    return {label: curve(value + step) - curve(value - step) for label, value in JUMPS.items()}


def conclusions(risks: dict[str, np.ndarray]) -> list[Comparison]:
    """The jumps, the agreement with theory, and the ranking."""
    attainable = br.theory.risk_jumps(list(REPLICATES))
    labels = ", ".join(label for label, value in JUMPS.items() if np.any(np.isclose(attainable, value)))
    jumps = "; ".join(f"{label}: {size:+.4f}" for label, size in jump_sizes().items())
    lines = [text("(b) jumps of the average's risk", "1/6, 1/5, 1/4, 1/3, 2/5", labels, jumps)]
    for name in br.theory.SCORES:
        expected = br.theory.risk_curve(list(REPLICATES), RATES, COSTS, score=name)
        error = risks[name].std(axis=0, ddof=1) / np.sqrt(len(risks[name]))
        z = np.max(np.abs(risks[name].mean(axis=0) - expected) / error)
        lines.append(found(f"(b) {name}: largest distance from theory, in standard errors", f"{z:.1f}"))
    return lines + [found(f"(b) mean risks at a = {a}", ranking(risks, a)) for a in (0.15, 0.3, 0.45)]


def ranking(risks: dict[str, np.ndarray], a: float) -> str:
    """The methods from the lowest mean risk to the highest."""
    column = int(np.argmin(np.abs(COSTS - a)))
    means = {name: float(curves[:, column].mean()) for name, curves in risks.items()}
    return ", ".join(f"{name} {value:.4f}" for name, value in sorted(means.items(), key=lambda item: item[1]))
