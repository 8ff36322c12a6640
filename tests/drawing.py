"""What tests ask of a figure: its data, and that it can be drawn without a complaint."""

from __future__ import annotations

import json
from typing import Any

import pytest
import vl_convert

from binreps.show.theme import vegalite_version

HOSTILE = [
    "a.b",
    "x[0]",
    "<script>alert(1)</script>",
    "it's",
    '"',
    "",
    "datum.y",
    "__proto__",
    "=1+1",
    "\\",
    "Zürich ½",
]


def specification(chart: Any) -> dict[str, Any]:
    """The figure as JSON: validated by Altair's schema, and without NaN or infinity."""
    spec: dict[str, Any] = json.loads(json.dumps(chart.to_dict(), allow_nan=False))
    return spec


def rows_with(chart: Any, *fields: str) -> list[list[dict[str, Any]]]:
    """The data sets, in the order of the figure, that have all these fields."""
    spec = specification(chart)
    found = []

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            data = node.get("data")
            if isinstance(data, dict):
                values = spec["datasets"][data["name"]] if "name" in data else data["values"]
                if values and set(fields) <= set(values[0]):
                    found.append(values)
            for value in node.values():
                visit(value)
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit({key: value for key, value in spec.items() if key not in ("datasets", "config")})
    return found


def points(chart: Any) -> int:
    """How many rows of data the figure carries."""
    return sum(len(rows) for rows in rows_with(chart))


def drawn(chart: Any, capfd: pytest.CaptureFixture[str]) -> str:
    """The figure as SVG; a warning of the drawing library is a failure."""
    capfd.readouterr()
    text = vl_convert.vegalite_to_svg(specification(chart), vl_version=vegalite_version(), show_warnings=True)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert "NaN" not in text
    return str(text)
