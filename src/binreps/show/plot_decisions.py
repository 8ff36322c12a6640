"""Figures of decisions: the decision table, the individuals, what answers cost, what indecision costs.

One function per figure, from computed results only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from binreps.decide.loss import DECISIONS, Loss, check_loss
from binreps.decide.stopping import StoppingTable
from binreps.errors import DataError, OptionError
from binreps.options import check_kind, kinds_checked, shown
from binreps.show.grammar import View, field, figure, heading
from binreps.show.marks import (
    WIDE,
    across,
    band,
    decision_colour,
    decision_dash,
    inline,
    layered,
    method_signs,
    needed,
    upward,
    whole_ticks,
)
from binreps.show.theme import ACTION_TEXT, METHOD_COLOURS, themed
from binreps.table import Table

if TYPE_CHECKING:
    import altair as alt

_PROBABILITY = "Probability of being positive"
_MOST_LABELLED = 20  # replicates for which each probability is written
_MOST_COLUMNS = 240
_MOST_STEPS = 1200  # of individuals: about two for each pixel


# ---------------------------------------------------------------------------------------- decision table


@figure
@kinds_checked
def decisions(table: Table) -> alt.LayerChart:
    """The decision table as a triangle: each replicate moves a row down, left if negative, right if positive.

    Up to 20 replicates each probability is written in its cell; beyond, replicates go across, positives up,
    and neighbours with one answer are one block.

    Parameters
    ----------
    table : Table
        What `decision_table` returns.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.decide.loss import decision_table
    >>> from binreps.fits.point.simple import fit_average
    >>> fit = fit_average(CountTable([2, 2, 4], [0, 1, 4]))
    >>> chart = decisions(decision_table(fit, Loss(), replicates=6))
    """
    needed(table, "n", "s", "probability", "decision")
    drawn = _cells(table) if max(table["n"]) <= _MOST_LABELLED else _blocks(table)
    chart: alt.LayerChart = themed(drawn.properties(title="What to answer"))
    return chart


def _cells(table: Table) -> View:
    """A centred triangle: each replicate moves one row down, left if negative, right if positive."""
    sizes = sorted(set(table["n"]))
    top = max(sizes)
    width, height = (64, 38) if top <= 8 else (46, 26) if top <= 12 else (34, 22)
    pairs = list(zip(table["n"], table["s"], strict=True))
    data = inline(
        n=table["n"],
        s=table["s"],
        left=[s - n / 2 - 0.47 for n, s in pairs],
        middle=[s - n / 2 for n, s in pairs],
        right=[s - n / 2 + 0.47 for n, s in pairs],
        decision=table["decision"],
        label=map(_percent, table["probability"]),
    )
    scale = {"domain": [-top / 2 - 0.5, top / 2 + 0.5], "nice": False, "zero": False}
    rows = {"ticks": False, "domain": False, "labelPadding": 8}
    y = field("n", "ordinal", title="Replicates", axis=rows, scale={"paddingInner": 0.08})
    base = View(data=data).encode(y=y)
    text = base.mark("text", fontSize=12 if top <= 12 else 11)
    middle = field("middle", "quantitative", axis=None, scale=scale)
    ink = {"domain": list(ACTION_TEXT), "range": list(ACTION_TEXT.values())}
    return layered(
        base.mark("rect", cornerRadius=4).encode(
            x=field("left", "quantitative", axis=None, scale=scale),
            x2=field("right"),
            color=decision_colour(table["decision"]),
        ),
        text.encode(
            x=middle,
            text=field("label", "nominal"),
            color=field("decision", "nominal", scale=ink, legend=None),
        ),
        width=width * (top + 1),
        height=height * len(sizes),
        resolve={"scale": {"color": "independent"}},
    )


def _percent(probability: float) -> str:
    """A probability in a small cell, never rounded to certainty.

    Examples
    --------
    >>> [_percent(p) for p in (0.001, 0.25, 0.999, 1.0, float("nan"))]
    ['<1%', '25%', '>99%', '100%', '–']
    """
    if probability != probability:
        return "–"
    if 0 < probability < 0.01:
        return "<1%"
    return ">99%" if 0.99 < probability < 1 else f"{100 * probability:.0f}%"


def _blocks(table: Table) -> View:
    """A block for each run of equal answers."""
    runs = list(_runs(table))
    sizes = sorted({run[0] for run in runs})
    shown = set(
        np.array(sizes)[np.unique(np.linspace(0, len(sizes) - 1, _MOST_COLUMNS).round().astype(int))].tolist()
    )
    n, start, end, decision = zip(*(run for run in runs if run[0] in shown), strict=True)
    data = inline(n=n, y=[s - 0.5 for s in start], y2=[s + 0.5 for s in end], decision=decision)
    labels = {
        "labelAngle": 0,
        "labelOverlap": "parity",
        "labelSeparation": 8,
        "ticks": False,
        "domain": False,
    }
    scale = {"paddingInner": 0 if len(sizes) > 40 else 0.1, "paddingOuter": 0}
    block = View(data=data).mark("rect")
    return layered(
        block.encode(
            x=field("n", "ordinal", title="Replicates", axis=labels, scale=scale),
            y=upward("y", "Positives", (-0.5, max(sizes) + 0.5), **whole_ticks(max(sizes)), grid=False),
            y2=field("y2"),
            color=decision_colour(decision),
        ),
        width=min(520, 52 * len(shown)),
        height=360,
    )


def _runs(table: Table) -> Iterator[tuple[int, int, int, str | None]]:
    """(n, first s, last s, answer) of neighbours with equal answers."""
    rows = sorted(zip(table["n"], table["s"], table["decision"], strict=True), key=lambda row: row[:2])
    for (n, decision), run in groupby(rows, key=lambda row: (row[0], row[2])):
        positives = [row[1] for row in run]
        yield n, positives[0], positives[-1], decision


@figure
@kinds_checked
def stopping(stopping: StoppingTable, *, least: float = 1e-4) -> alt.LayerChart:
    """The best rule for one individual as a lattice: measure again, or answer; probabilities in the cells.

    Parameters
    ----------
    stopping : StoppingTable
        What `stopping_table` returns.
    least : float
        Results that come up more rarely than this are left out.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.decide.stopping import stopping_table
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31]))
    >>> chart = stopping(stopping_table(fit, Loss(), cost_per_replicate=0.01, max_replicates=6))
    """
    check_kind("stopping", stopping, StoppingTable)
    if not 0 <= least <= 1:
        raise OptionError(f"least must be a probability, got {shown(least)}")
    rows = [row for row in stopping.table() if row["reached"] >= least]
    columns = {name: [row[name] for row in rows] for name in ("n", "s", "probability")}
    table = Table({**columns, "decision": [row["action"] for row in rows]})
    drawn = _cells(table) if max(table["n"]) <= _MOST_LABELLED else _blocks(table)
    chart: alt.LayerChart = themed(drawn.properties(title="Measure again, or answer?"))
    return chart


# ------------------------------------------------------------------------------------------- individuals


@figure
@kinds_checked
def individuals(table: Table, thresholds: tuple[float, float] | None = None) -> alt.LayerChart:
    """Individuals sorted by score, with intervals, coloured by the answer; the inconclusive band is shaded.

    Individuals with one result are one step, as wide as they are many: 10⁶ of them take no more room than 50.

    Parameters
    ----------
    table : Table
        A row for each cell or individual: score, decision (its word, or None), and if there are any weight
        (1 each otherwise), lower and upper (the interval), truth (0, 1 or None: a strip below shows it).
        Rows without a score are left out.
    thresholds : pair of float, optional
        Those of the loss: `loss.thresholds`.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> table = Table({"score": [0.1, 0.9], "decision": ["negative", "positive"], "weight": [70, 30]})
    >>> chart = individuals(table, (0.2, 0.8))
    """
    needed(table, "score", "decision")
    cells = _sorted_cells(table)
    people = sum(cell["weight"] for cell in cells)
    steps = _merged(cells, people)
    base = View(data=_steps(steps))
    judged = "truth" in table.columns
    floor = -0.12 if judged else -0.02

    def axes(y: str) -> dict[str, Any]:
        return {
            "x": across("x", "Individuals, sorted by score", (0, people), **whole_ticks(people)),
            "y": upward(y, _PROBABILITY, (floor, 1.02), tickCount=6, values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
            "x2": field("x2"),
            "color": decision_colour(
                [*(step["decision"] for step in steps), *(["negative", "positive"] * judged)]
            ),
        }

    layers: list[Any] = [] if thresholds is None else [band(*thresholds, 0, people), _lines(thresholds)]
    if "lower" in steps[0]:
        layers.append(base.mark("rect", opacity=0.35).encode(**axes("lower"), y2=field("upper")))
    layers.append(base.mark("rule", strokeWidth=3).encode(**axes("score")))
    if judged:
        layers += _truth_strip(cells, axes("y"))
    chart: alt.LayerChart = themed(
        layered(*layers, width=560, height=300, title=f"{people:,} individual{'s' * (people != 1)}")
    )
    return chart


def _sorted_cells(table: Table) -> list[dict[str, Any]]:
    """The rows that have a score, by score and then by truth."""
    rows = [
        {"weight": 1, "truth": None} | row
        for row in table
        if row["score"] == row["score"] and row["score"] is not None
    ]
    if not rows:
        raise DataError("the table must hold at least one score, got none")
    return sorted(rows, key=lambda row: (row["score"], -1 if row["truth"] is None else row["truth"]))


def _merged(cells: Sequence[dict[str, Any]], people: int) -> list[dict[str, Any]]:
    """Cells with one answer that are too narrow to be seen apart, put together: weighted means."""
    least = people / _MOST_STEPS if len(cells) > _MOST_STEPS else 0
    groups: list[list[dict[str, Any]]] = []
    width = np.inf
    for cell in cells:
        if width >= least or cell["decision"] != groups[-1][-1]["decision"]:
            groups.append([])
            width = 0
        groups[-1].append(cell)
        width += cell["weight"]
    names = [name for name in ("score", "lower", "upper") if cells[0].get(name) is not None]
    merged = []
    for group in groups:
        weights = [cell["weight"] for cell in group]
        means = {name: float(np.average([cell[name] for cell in group], weights=weights)) for name in names}
        merged.append({"decision": group[0]["decision"], "weight": sum(weights)} | means)
    return merged


def _steps(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Cells side by side, each as wide as it has individuals."""
    ends = np.cumsum([cell["weight"] for cell in cells])
    starts = [0, *ends[:-1].tolist()]
    columns = {name: [cell[name] for cell in cells] for name in cells[0] if name != "weight"}
    return inline(x=starts, x2=ends, **columns)


def _lines(thresholds: tuple[float, float]) -> Any:
    """The thresholds, across the figure."""
    data = inline(y=sorted(set(thresholds)))
    return View(data=data).mark("rule", style="reference").encode(y=field("y", "quantitative"))


def _truth_strip(cells: Sequence[dict[str, Any]], axes: dict[str, Any]) -> list[Any]:
    """Who is truly positive (raised) and who negative (lowered), in the same order, below the scores."""
    signs = {None: (None, -0.08, -0.08), 0: ("negative", -0.11, -0.08), 1: ("positive", -0.08, -0.05)}
    runs = []
    for truth, run in groupby(cells, key=lambda cell: cell["truth"]):
        row = dict(zip(("decision", "y", "y2"), signs[truth], strict=True))
        runs.append(row | {"weight": sum(cell["weight"] for cell in run)})
    name = View(data=inline(y=[-0.08], text=["truth"])).mark("text", align="right", dx=-6, style="note")
    return [
        View(data=_steps(runs)).mark("rect").encode(**axes, y2=field("y2")),
        name.encode(x={"value": 0}, y=axes["y"], text=field("text", "nominal")),
    ]


# ------------------------------------------------------------------------------------------------- costs


@figure
@kinds_checked
def risks(loss: Loss) -> alt.LayerChart:
    """Expected cost of each answer against the probability of being positive, with the thresholds.

    With ϑ = P(T = 1): cϑ for negative, a + (d−a)ϑ for inconclusive, b(1−ϑ) for positive. The cheapest answer
    is drawn thick.

    Parameters
    ----------
    loss : Loss
        All its costs > 0.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> chart = risks(Loss(inconclusive=0.2))
    """
    check_loss(loss)
    lower, upper = loss.thresholds
    words = list(DECISIONS.values())
    whole = _segments(loss, words, [(0.0, 1.0)] * 3)
    pays = [(0.0, lower), (lower, upper), (upper, 1.0)]
    if not loss.allows_inconclusive:
        pays[1] = (np.nan, np.nan)
    best = _segments(loss, words, pays)
    axes = {
        "x": across("x", _PROBABILITY, (0, 1)),
        "y": upward("y", "Expected cost", (0, 1.03 * float(np.max(loss.risks([0.0, 1.0]))))),
        "color": decision_colour(words),
    }
    marks = sorted({lower, upper})
    text = [f"{value:.3g}" for value in marks]
    rules = View(data=inline(x=marks, text=text))
    names = rules.mark("text", align="center", dy=-6, style="note")
    chart: alt.LayerChart = themed(
        layered(
            rules.mark("rule", style="reference").encode(x=axes["x"]),
            names.encode(x=axes["x"], y={"value": 0}, text=field("text", "nominal")),
            View(data=whole).mark("line", strokeWidth=1.5).encode(**axes, strokeDash=decision_dash()),
            View(data=best).mark("line", strokeWidth=5).encode(**axes),
            **WIDE,
            title=heading("What each answer costs", subtitle="thick: the cheapest answer", offset=20),
        )
    )
    return chart


def _segments(loss: Loss, words: Sequence[str], parts: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Each answer's line over its own part of the axis."""
    rows = [
        (word, x, loss.risks(x)[k])
        for k, (word, part) in enumerate(zip(words, parts, strict=True))
        for x in part
        if x == x
    ]
    decision, x, y = zip(*rows, strict=True)
    return inline(decision=decision, x=x, y=y)


@figure
@kinds_checked
def calibration(table: Table) -> alt.LayerChart:
    """How often individuals with about the same chance are truly positive.

    Parameters
    ----------
    table : Table
        What `calibration_curve` returns.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from binreps.decide.evaluate import calibration_curve
    >>> chart = calibration(calibration_curve([0.1, 0.9, 0.9], [0, 1, 0], [30, 80, 10]))
    """
    needed(table, "mean_score", "observed", "lower", "upper", "individuals")
    data = inline(
        x=table["mean_score"],
        y=table["observed"],
        lower=table["lower"],
        upper=table["upper"],
        people=table["individuals"],
    )
    x = across("x", "Chance of being positive", (0, 1), format="%")
    y = upward("y", "Truly positive", (0, 1), format="%")
    colour = METHOD_COLOURS[0]
    line = View(data=inline(x=[0, 1], y=[0, 1])).mark("line", style="reference")
    ends = View(data=data).mark("rule", color=colour, strokeWidth=2)
    size = field("people", "quantitative", legend=None, scale={"range": [40, 400]})
    points = View(data=data).mark("point", color=colour, filled=True, opacity=1)
    chart: alt.LayerChart = themed(
        layered(
            line.encode(x=x, y=y),
            ends.encode(x=x, y=upward("lower", "Truly positive", (0, 1), format="%"), y2=field("upper")),
            points.encode(x=x, y=y, size=size),
            **WIDE,
            title="Chances, judged by the truth",
        )
    )
    return chart


@figure
@kinds_checked
def risk_by_cost(table: Table) -> alt.LayerChart:
    """Empirical risk of each method against the cost of an inconclusive answer.

    Parameters
    ----------
    table : Table
        Columns method, inconclusive and risk, as `risk_by_cost` returns; rows are joined in their order, so
        two rows at one cost draw a jump.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> table = Table({"method": ["average"] * 2, "inconclusive": [0.1, 0.5], "risk": [0.05, 0.2]})
    >>> chart = risk_by_cost(table)
    """
    needed(table, "method", "inconclusive", "risk")
    names = list(dict.fromkeys(table["method"]))
    cost, risk = table["inconclusive"], table["risk"]
    data = inline(method=table["method"], x=cost, y=risk, order=range(len(table)))
    signs = method_signs(names)
    lines = View(data=data).mark("line", strokeWidth=2, strokeJoin="bevel")
    chart: alt.LayerChart = themed(
        layered(
            lines.encode(
                x=across("x", "Cost of an inconclusive answer", (min(cost), max(cost))),
                y=upward("y", "Mean cost per individual", (0, 1.05 * max(*risk, 1e-9))),
                order=field("order", "quantitative"),
                color=signs["color"],
                strokeDash=signs["strokeDash"],
            ),
            **WIDE,
            title="Cost of decisions, judged by the truth",
        )
    )
    return chart
