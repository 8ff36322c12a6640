"""The small grammar that figures share: inline data, axes, the signs of methods and of decisions.

Channels are objects: of one that is given as a text Altair makes one by a search through its whole schema.
Fields have fixed names; names that users chose (methods, populations) are values, so no name can be taken for
a field or a formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from binreps.errors import OptionError
from binreps.options import shown
from binreps.show.theme import (
    ACTION_COLOURS,
    DECISION_DASHES,
    METHOD_COLOURS,
    METHOD_DASHES,
    METHOD_SHAPES,
)
from binreps.table import Table

if TYPE_CHECKING:
    import altair as alt

PANEL = {"width": 190, "height": 160}
"""One panel of three in a row."""

WIDE = {"width": 520, "height": 260}
"""A figure of one panel."""


def inline(**columns: Iterable[Any]) -> alt.InlineData:
    """Columns as inline data: numbers to six digits, null where a number is not finite.

    A tuple of rows, as Altair copies lists, row by row, whenever a chart is put into another.
    """
    import altair as alt

    rows = zip(*([_plain(value) for value in values] for values in columns.values()), strict=True)
    values: Any = tuple(dict(zip(columns, row, strict=True)) for row in rows)
    return alt.InlineData(values=values)


def _plain(value: Any) -> Any:
    """A value for JSON."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def needed(table: Table, *names: str) -> None:
    """Refuse what is no table of ours, and one that lacks a column, or rows."""
    if not isinstance(table, Table):
        raise OptionError(
            f"the table must be a Table with the columns {', '.join(names)}, got {shown(table)}"
        )
    missing = [name for name in names if name not in table.columns]
    if missing:
        listed = ", ".join(names)
        raise OptionError(f"the table must have the columns {listed}, got none named {', '.join(missing)}")
    if not len(table):
        raise OptionError("the table must have at least one row, got none")


def across(field: str, title: str | None, domain: Sequence[float], **axis: Any) -> alt.X:
    """A horizontal axis of numbers, without grid unless asked for."""
    import altair as alt

    lines = alt.Axis(**{"grid": False, "tickCount": 6, "labelSeparation": 6, **axis})
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    return alt.X(field, type="quantitative", title=title, axis=lines, scale=scale)


def upward(field: str, title: str | None, domain: Sequence[float], **axis: Any) -> alt.Y:
    """A vertical axis of numbers."""
    import altair as alt

    lines = alt.Axis(**{"tickCount": 5, **axis})
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    return alt.Y(field, type="quantitative", title=title, axis=lines, scale=scale)


def whole_ticks(highest: int) -> dict[str, Any]:
    """What makes an axis one of whole numbers from 0 on: seven ticks at most, at round numbers.

    Examples
    --------
    >>> whole_ticks(3)["values"], whole_ticks(60)["values"]
    ([0, 1, 2, 3], [0, 10, 20, 30, 40, 50, 60])
    """
    steps = (digit * 10**power for power in range(16) for digit in (1, 2, 5))
    step = next(step for step in steps if highest // step <= 6)
    values = list(range(0, highest + 1, step))
    return {"values": values, "tickCount": len(values), "format": ",d"}


def layered(*layers: Any, **properties: Any) -> alt.LayerChart:
    """Charts on top of each other, the first at the bottom."""
    import altair as alt

    return alt.LayerChart(layer=list(layers), **properties)


def band(lower: float, upper: float, left: float, right: float) -> alt.Chart:
    """What lies between two thresholds, across a panel."""
    import altair as alt

    data = inline(x=[left], x2=[right], y=[lower], y2=[upper])
    chart = alt.Chart(data).mark_rect(style="band")
    result: alt.Chart = chart.encode(
        x=alt.X("x", type="quantitative"), x2=alt.X2("x2"), y=alt.Y("y", type="quantitative"), y2=alt.Y2("y2")
    )
    return result


def panel_title(text: str) -> alt.TitleParams:
    """The title of one panel of several."""
    import altair as alt

    return alt.TitleParams(text, frame="group", fontSize=12, fontWeight="normal", offset=4)


def by_place(values: Sequence[Any], count: int, start: int = 0) -> list[Any]:
    """Values from a place on, in a list that starts again when it ends."""
    return list(islice(cycle(values), start, start + count))


def method_signs(names: Sequence[str], start: int = 0) -> dict[str, Any]:
    """Colour, dash and shape of methods, by their place; equal titles make them one legend."""
    import altair as alt

    def sign(kind: Any, values: Sequence[Any]) -> Any:
        scale = alt.Scale(domain=list(names), range=by_place(values, len(names), start))
        return kind("method", type="nominal", title=None, scale=scale)

    return {
        "color": sign(alt.Color, METHOD_COLOURS),
        "strokeDash": sign(alt.StrokeDash, METHOD_DASHES).legend(**LONG),
        "shape": sign(alt.Shape, METHOD_SHAPES),
    }


LONG: dict[str, Any] = {"symbolSize": 700, "symbolStrokeWidth": 2}
"""What makes a legend's lines long enough to tell their dashes apart."""


def decision_colour(words: Iterable[str | None]) -> alt.Color:
    """The colours of the answers that occur."""
    import altair as alt

    there = set(words)
    shown = [word for word in ACTION_COLOURS if word in there]
    scale = alt.Scale(domain=shown, range=[ACTION_COLOURS[word] for word in shown])
    legend = alt.Legend(symbolOpacity=1)
    return alt.Color("decision", type="nominal", title=None, scale=scale, legend=legend)


def decision_dash() -> alt.StrokeDash:
    """The dashes of the answers."""
    import altair as alt

    scale = alt.Scale(domain=list(DECISION_DASHES), range=list(DECISION_DASHES.values()))
    legend = alt.Legend(**LONG)
    return alt.StrokeDash("decision", type="nominal", title=None, scale=scale, legend=legend)
