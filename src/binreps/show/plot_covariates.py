"""Figures of covariates: what each does to the odds, and prevalence over the range of a number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from binreps.options import kinds_checked
from binreps.show.grammar import View, field, figure
from binreps.show.marks import WIDE, across, inline, layered, needed, upward
from binreps.show.theme import METHOD_COLOURS, themed
from binreps.table import Table

if TYPE_CHECKING:
    import altair as alt

_STEP, _LETTER, _MOST_ROOM = 24, 7, 220  # pixels of a row, of a letter, and of a name
_WIDEST = 1e6  # odds ratios beyond are drawn at the edge
_TICKS = (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000, 1e4, 1e5, 1e6)


@figure
@kinds_checked
def odds_ratios(table: Table) -> alt.LayerChart:
    """A forest plot: the odds ratio of every column of the design with its interval, on a log scale.

    Parameters
    ----------
    table : Table
        What `odds_ratios` of a fit with covariates gives: covariate, per, estimate, lower, upper.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = {"covariate": ["age"], "per": [10.0], "estimate": [2.7], "lower": [2.0], "upper": [3.7]}
    >>> chart = odds_ratios(Table(rows))
    """
    needed(table, "covariate", "per", "estimate", "lower", "upper")
    names = [_label(*pair) for pair in zip(table["covariate"], table["per"], strict=True)]
    columns = {name: [_inside(value) for value in table[name]] for name in ("estimate", "lower", "upper")}
    low, high = min([*columns["lower"], 0.8]), max([*columns["upper"], 1.25])
    room = min(_LETTER * max(map(len, names)), _MOST_ROOM)  # browsers' letters differ in width
    beside = {"labelLimit": _MOST_ROOM, "minExtent": room, "ticks": False, "domain": False, "labelPadding": 8}
    base = View(data=inline(name=names, **columns)).encode(
        y=field("name", "nominal", sort=names, title=None, axis=beside)
    )
    scale = {"type": "log", "domain": [low / 1.1, high * 1.1], "nice": False}
    ticks = [tick for tick in _TICKS if low / 1.1 <= tick <= high * 1.1]
    axis = {"values": ticks, "format": "~g", "grid": True}

    def x(name: str) -> dict[str, Any]:
        return field(name, "quantitative", title="Odds ratio of being positive", axis=axis, scale=scale)

    one = View(data=inline(estimate=[1.0])).mark("rule", strokeDash=[4, 3]).encode(x=x("estimate"))
    chart: alt.LayerChart = themed(
        layered(
            one,
            base.mark("rule", color=METHOD_COLOURS[0], strokeWidth=2.5).encode(
                x=x("lower"), x2=field("upper")
            ),
            base.mark("point", color=METHOD_COLOURS[0], filled=True, size=60, opacity=1).encode(
                x=x("estimate")
            ),
            width=WIDE["width"],
            height=_STEP * max(len(names), 2),
            title="Odds ratios, with their intervals",
        )
    )
    return chart


def _label(name: str, per: float) -> str:
    """A column of the design, with its step if it is not 1."""
    return name if per == 1 else f"{name} (per {per:g})"


def _inside(value: float) -> float:
    """An odds ratio that can be drawn."""
    return float(min(max(value, 1 / _WIDEST), _WIDEST)) if math.isfinite(value) else _WIDEST


@figure
@kinds_checked
def prevalence_curve(table: Table, name: str) -> alt.LayerChart:
    """Prevalence against one covariate of numbers, with the band of its intervals.

    Parameters
    ----------
    table : Table
        Columns x, prevalence, lower, upper: one of what `prevalence_curves` of a fit gives.
    name : str
        What the covariate is called.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> rows = {"x": [20.0, 80.0], "prevalence": [0.1, 0.6], "lower": [0.0, 0.5], "upper": [0.2, 0.7]}
    >>> chart = prevalence_curve(Table(rows), "age")
    """
    needed(table, "x", "prevalence", "lower", "upper")
    values = list(table["x"])
    base = View(data=inline(**{key: table[key] for key in ("x", "prevalence", "lower", "upper")}))
    along = across("x", name, (values[0], values[-1]))

    def up(column: str) -> dict[str, Any]:
        return upward(column, "Prevalence", (0, 1), tickCount=6)

    shade = base.mark("area", opacity=0.25, color=METHOD_COLOURS[0]).encode(
        x=along, y=up("lower"), y2=field("upper")
    )
    line = base.mark("line", color=METHOD_COLOURS[0], strokeWidth=2.5).encode(x=along, y=up("prevalence"))
    chart: alt.LayerChart = themed(layered(shade, line, **WIDE, title=f"Prevalence by {name}"))
    return chart
