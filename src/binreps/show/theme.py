"""How every figure looks, and how it becomes a file: colours, one Vega theme, PNG, SVG, HTML.

Colours are named once, here, for figures, report and page. Everything that must follow the background (text,
axes, reference lines) gets its colour from the theme, through a named style, and never from a chart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from binreps.errors import OptionError
from binreps.options import kinds_checked
from binreps.show.grammar import View, compact
from binreps.tables.files import PathLike
from binreps.tables.write import replacing

if TYPE_CHECKING:
    import altair as alt

DECISION_COLOURS: Mapping[str, str] = MappingProxyType(
    {"negative": "#1b5299", "inconclusive": "#f4c754", "positive": "#dc562c"}
)
"""Blue, amber, vermilion: apart for every kind of colour vision, and in grey (dark, light, middle)."""

DECISION_TEXT: Mapping[str, str] = MappingProxyType(
    {"negative": "#ffffff", "inconclusive": "#000000", "positive": "#000000"}
)
"""What is readable on each of them."""

ACTION_COLOURS: Mapping[str, str] = MappingProxyType({**DECISION_COLOURS, "measure": "#cdd5de"})
ACTION_TEXT: Mapping[str, str] = MappingProxyType({**DECISION_TEXT, "measure": "#000000"})
"""The same with grey for measuring again."""

DECISION_DASHES: Mapping[str, Sequence[int]] = MappingProxyType(
    {"negative": (1, 0), "inconclusive": (7, 4), "positive": (2, 3)}
)
"""A second sign for lines."""

METHOD_COLOURS = ("#9467c8", "#1f9a86", "#c2527f", "#8a8420", "#7f8790", "#4e8a35", "#a8652c")
METHOD_DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 4), (1, 3), (12, 3))
STAR = "M0,-1.2L.28,-.39L1.14,-.37L.46,.15L.71,.97L0,.48L-.71,.97L-.46,.15L-1.14,-.37L-.28,-.39Z"
METHOD_SHAPES = ("circle", STAR, "diamond", "triangle-up", "square", "cross", "triangle-down")
"""Methods by their place: colour, dash and shape; a list that is too short starts again."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

_LIGHT = {"page": "#ffffff", "text": "#1f2328", "quiet": "#57606a", "grid": "#e7e9ec", "fill": "#c9ced4"}
_DARK = {"page": "#15181c", "text": "#e9ecef", "quiet": "#adb5bd", "grid": "#343a40", "fill": "#4a525a"}
_SUFFIXES = (".png", ".svg", ".html", ".json")


def theme(dark: bool = False) -> dict[str, Any]:
    """The look of every figure, as a Vega configuration; its background is transparent.

    Figures come with the light one. `spec["config"] = theme(dark=True)` turns a specification dark.

    Parameters
    ----------
    dark : bool
        For a dark background.

    Examples
    --------
    >>> theme()["background"], theme(dark=True)["text"]["color"]
    ('transparent', '#e9ecef')
    """
    ink = _DARK if dark else _LIGHT
    labels = {"labelColor": ink["quiet"], "titleColor": ink["text"], "labelFontSize": 11, "titleFontSize": 12}
    titles = {"anchor": "start", "color": ink["text"], "subtitleColor": ink["quiet"]}
    return {
        "background": "transparent",
        "font": FONT,
        "padding": 6,
        "view": {"stroke": None},
        "axis": labels
        | {"titleFontWeight": "normal", "gridColor": ink["grid"], "labelFlush": False}
        | _ends(ink["quiet"]),
        "legend": labels | {"titleFontWeight": "normal", "orient": "bottom", "labelLimit": 200},
        "title": titles | {"fontSize": 13, "fontWeight": 600, "subtitleFontSize": 12, "offset": 8},
        "text": {"color": ink["text"], "fontSize": 11},
        "concat": {"spacing": 16},
        "style": _styles(ink),
    }


def _ends(colour: str) -> dict[str, Any]:
    """Lines at the edge of an axis."""
    return {"domainColor": colour, "tickColor": colour, "tickSize": 4}


def _styles(ink: Mapping[str, str]) -> dict[str, Any]:
    """What marks may ask for by name, so that their colour follows the background."""
    return {
        "reference": {"color": ink["text"], "strokeWidth": 1, "strokeDash": [4, 3]},
        "band": {"color": ink["fill"], "fillOpacity": 0.3},
        "bars": {"color": ink["fill"], "stroke": ink["page"], "strokeWidth": 1},
        "prior": {"color": ink["quiet"], "strokeWidth": 1.5, "strokeDash": [4, 3]},
        "outline": {"stroke": ink["page"], "strokeWidth": 1},
        "note": {"color": ink["text"], "fontSize": 11},
    }


def themed(view: View) -> Any:
    """A view of ours with the theme, for `figure` to make a chart of."""
    return view.properties(config=theme())


@kinds_checked
def save(chart: alt.TopLevelMixin, path: PathLike, *, dark: bool = False) -> None:
    """Write a figure as PNG (twice the pixels), SVG, HTML or JSON (Vega-Lite), by the ending of the name.

    The file appears whole, or not at all. SVG and JSON have a transparent background. An HTML file needs no
    network: the drawing library is in it.

    Parameters
    ----------
    chart : altair chart
        Any figure of `plot`.
    path : str or path
        Ends in .png, .svg, .html or .json.
    dark : bool
        For a dark background.

    Examples
    --------
    >>> save(None, "a.bmp")
    Traceback (most recent call last):
    binreps.errors.OptionError: a.bmp cannot be written; name a file that ends in .png, .svg, .html or .json
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _SUFFIXES:
        endings = f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
        raise OptionError(f"{target} cannot be written; name a file that ends in {endings}")
    if target.is_dir():
        raise OptionError(f"{target} is a folder; name a file in it")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"{target} cannot be written, as there is no folder {target.parent}")
    spec = chart.to_dict() | {"config": theme(dark)}
    content = _rendered(spec, suffix, (_DARK if dark else _LIGHT)["page"])
    with replacing(target) as part:
        part.write_bytes(content)


def _rendered(spec: dict[str, Any], suffix: str, page: str) -> bytes:
    """The figure in the format of the suffix."""
    import vl_convert

    version = vegalite_version()
    if suffix == ".png":  # a picture cannot know what it will lie on: it gets a page of its own
        spec["config"]["background"] = page
        return bytes(vl_convert.vegalite_to_png(spec, vl_version=version, scale=2))
    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec, vl_version=version)).encode()
    if suffix == ".html":
        return _page(spec, _library(version), page).encode()
    return json.dumps(spec, ensure_ascii=False, allow_nan=False, indent=1).encode()


def to_svg(view: View) -> str:
    """A figure of ours as SVG with a transparent background, to stand inside a page."""
    import vl_convert

    newest = vl_convert.get_vegalite_versions()[-1]
    return str(vl_convert.vegalite_to_svg(compact(view), vl_version=newest))


@cache
def _library(version: str) -> str:
    """The JavaScript that draws: Vega, Vega-Lite and their embedding, in one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version))


def vegalite_version() -> str:
    """The Vega-Lite version that the installed Altair writes, as vl-convert names it.

    Examples
    --------
    >>> vegalite_version().count(".")
    1
    """
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def script_json(spec: Any) -> str:
    r"""JSON that is safe inside a script element: no text in it can end the element or start a comment.

    Examples
    --------
    >>> print(script_json({"name": "</script>"}))
    {"name": "\u003c/script>"}
    """
    return json.dumps(spec, allow_nan=False).replace("<", "\\u003c")


def _page(spec: Mapping[str, Any], library: str, colour: str) -> str:
    """One page with one figure and the library that draws it."""
    style = f"body {{ margin: 1rem; background: {colour} }} svg {{ max-width: 100%; height: auto }}"
    actions = {"export": True, "source": False, "compiled": False, "editor": False}  # nothing leaves the page
    arguments = f"{script_json(spec)}, {script_json({'renderer': 'svg', 'actions': actions})}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>binreps</title>
<style>{style}</style>
<script>{library}</script>
</head>
<body>
<div id="figure"></div>
<script>vegaEmbed("#figure", {arguments});</script>
</body>
</html>
"""
