"""Vega-Lite as plain dictionaries: the few words that our figures use.

A view is its specification, so a report or a page needs no other library to write it; `figure` makes Altair
charts of views for everyone else. Views are not changed, every word gives a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Chart = TypeVar("Chart")

_SEVERAL = {
    "layer": "LayerChart",
    "concat": "ConcatChart",
    "hconcat": "HConcatChart",
    "vconcat": "VConcatChart",
}
"""The key of views in a view, and what Altair calls it."""


class View(dict[str, Any]):
    """One view, or several in one, as Vega-Lite has it.

    Examples
    --------
    >>> view = View(data={"values": [{"x": 1}]}).mark("point", size=9).encode(x=field("x", "quantitative"))
    >>> view["mark"], view["encoding"]
    ({'type': 'point', 'size': 9}, {'x': {'field': 'x', 'type': 'quantitative'}})
    """

    def mark(self, kind: str, **how: Any) -> View:
        """The view drawn by this mark."""
        return self.properties(mark={"type": kind, **how})

    def encode(self, **channels: Mapping[str, Any]) -> View:
        """The view with these channels besides its own."""
        return self.properties(encoding={**self.get("encoding", {}), **channels})

    def properties(self, **given: Any) -> View:
        """The view with these properties in place of its own."""
        return View({**self, **given})

    def without(self, name: str) -> View:
        """The view without a property."""
        return View({key: value for key, value in self.items() if key != name})


def field(name: str, kind: str = "", **how: Any) -> dict[str, Any]:
    """A channel that shows a field; the kind is quantitative, ordinal or nominal, none for a second end."""
    return {"field": name, **({"type": kind} if kind else {}), **how}


def heading(text: str, **how: Any) -> dict[str, Any]:
    """A title with more than its text."""
    return {"text": text, **how}


def compact(view: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of a whole figure, with data that several views share once."""
    names: dict[int, str] = {}
    datasets: dict[str, Any] = {}

    def visit(node: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(node)
        if "data" in found:
            values = found["data"]["values"]
            name = names.setdefault(id(values), f"data-{len(names) + 1}")
            datasets[name], found["data"] = list(values), {"name": name}
        for key in found.keys() & _SEVERAL:
            found[key] = [visit(one) for one in found[key]]
        return found

    return {**visit(view), "datasets": datasets}


def figure(draw: Callable[Parameters, Chart]) -> Callable[Parameters, Chart]:
    """A function that draws a view as one that gives an Altair chart; `view_of` asks the former.

    The function is declared as those see it who call it, and the chart that it names is a view until then.
    """

    @wraps(draw)
    def chart(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Chart:
        view: Any = draw(*args, **kwargs)
        made: Chart = _altair(view)
        return made

    return chart


def view_of(chart: Callable[Parameters, Any], *args: Parameters.args, **kwargs: Parameters.kwargs) -> View:
    """What a figure draws, as a view: no chart is made, and Altair is not needed."""
    draw: Callable[Parameters, View] = chart.__wrapped__  # type: ignore[attr-defined]
    return draw(*args, **kwargs)


def _altair(view: Mapping[str, Any]) -> Any:
    """A view as an Altair chart, and the views in it as charts."""
    import altair as alt

    rest = dict(view)
    if "data" in rest:
        rest["data"] = alt.InlineData(**rest["data"])
    if "encoding" in rest:
        rest["encoding"] = alt.FacetedEncoding(**rest["encoding"])
    for key, name in _SEVERAL.items():
        if key in rest:
            return getattr(alt, name)(**rest | {key: [_altair(one) for one in rest[key]]})
    return alt.Chart(**rest)
