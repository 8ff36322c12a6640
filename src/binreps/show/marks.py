"""The small grammar that figures share: inline data, axes, the signs of methods and of decisions.

Fields have fixed names; names that users chose (methods, populations) are values, so no name can be taken for
a field or a formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from typing import Any

from binreps.errors import OptionError
from binreps.options import shown
from binreps.show.grammar import View, field, heading
from binreps.show.theme import (
    ACTION_COLOURS,
    DECISION_DASHES,
    METHOD_COLOURS,
    METHOD_DASHES,
    METHOD_SHAPES,
)
from binreps.table import Table

PANEL = {"width": 190, "height": 160}
"""One panel of three in a row."""

WIDE = {"width": 520, "height": 260}
"""A figure of one panel."""


def inline(**columns: Iterable[Any]) -> dict[str, Any]:
    """Columns as inline data: numbers to six digits, null where a number is not finite.

    A tuple of rows, as Altair copies lists, row by row, whenever a chart is put into another.
    """
    rows = zip(*([_plain(value) for value in values] for values in columns.values()), strict=True)
    return {"values": tuple(dict(zip(columns, row, strict=True)) for row in rows)}


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


def across(name: str, title: str | None, domain: Sequence[float], **axis: Any) -> dict[str, Any]:
    """A horizontal axis of numbers, without grid unless asked for."""
    lines = {"grid": False, "tickCount": 6, "labelSeparation": 6, **axis}
    scale = {"domain": list(domain), "nice": False, "zero": False}
    return field(name, "quantitative", title=title, axis=lines, scale=scale)


def upward(name: str, title: str | None, domain: Sequence[float], **axis: Any) -> dict[str, Any]:
    """A vertical axis of numbers."""
    lines = {"tickCount": 5, **axis}
    scale = {"domain": list(domain), "nice": False, "zero": False}
    return field(name, "quantitative", title=title, axis=lines, scale=scale)


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


def layered(*layers: View, **properties: Any) -> View:
    """Views on top of each other, the first at the bottom; data that all of them show are theirs together."""
    data = layers[0]["data"]
    if any(one["data"] is not data for one in layers):
        return View(layer=list(layers), **properties)
    return View(data=data, layer=[one.without("data") for one in layers], **properties)


def band(lower: float, upper: float, left: float, right: float) -> View:
    """What lies between two thresholds, across a panel."""
    data = inline(x=[left], x2=[right], y=[lower], y2=[upper])
    chart = View(data=data).mark("rect", style="band")
    return chart.encode(
        x=field("x", "quantitative"), x2=field("x2"), y=field("y", "quantitative"), y2=field("y2")
    )


def panel_title(text: str) -> dict[str, Any]:
    """The title of one panel of several."""
    return heading(text, frame="group", fontSize=12, fontWeight="normal", offset=4)


def by_place(values: Sequence[Any], count: int, start: int = 0) -> list[Any]:
    """Values from a place on, in a list that starts again when it ends."""
    return list(islice(cycle(values), start, start + count))


def method_signs(names: Sequence[str], start: int = 0) -> dict[str, Any]:
    """Colour, dash and shape of methods, by their place; equal titles make them one legend."""

    def sign(values: Sequence[Any], **how: Any) -> dict[str, Any]:
        scale = {"domain": list(names), "range": by_place(values, len(names), start)}
        return field("method", "nominal", title=None, scale=scale, **how)

    return {
        "color": sign(METHOD_COLOURS),
        "strokeDash": sign(METHOD_DASHES, legend=LONG),
        "shape": sign(METHOD_SHAPES),
    }


LONG: dict[str, Any] = {"symbolSize": 700, "symbolStrokeWidth": 2}
"""What makes a legend's lines long enough to tell their dashes apart."""


def decision_colour(words: Iterable[str | None]) -> dict[str, Any]:
    """The colours of the answers that occur."""
    there = set(words)
    shown = [word for word in ACTION_COLOURS if word in there]
    scale = {"domain": shown, "range": [ACTION_COLOURS[word] for word in shown]}
    return field("decision", "nominal", title=None, scale=scale, legend={"symbolOpacity": 1})


def decision_dash() -> dict[str, Any]:
    """The dashes of the answers."""
    scale = {"domain": list(DECISION_DASHES), "range": list(DECISION_DASHES.values())}
    return field("decision", "nominal", title=None, scale=scale, legend=LONG)
