"""Files of the reproduction: tables as CSV, charts as PNG and SVG, and the colours they share."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from paper.settings import Settings

COLOURS = {
    "average": "#E69F00",
    "median": "#009E73",
    "MAP": "#0072B2",
    "Bayes": "#000000",
    "Bayes, paper's formula": "#888888",
    "Bayes, misguided prior": "#CC79A7",
    "rates known": "#D55E00",
}
"""One colour per method, the same in every figure (the palette of Okabe and Ito)."""

Row = dict[str, Any]


def write_table(settings: Settings, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with equal keys as a CSV file."""
    with (settings.out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)


def _short(value: Any) -> Any:
    """Seven digits are more than any simulation here is worth."""
    return f"{value:.7g}" if isinstance(value, float) else value


def save_chart(settings: Settings, name: str, chart: alt.TopLevelMixin) -> None:
    """A chart as PNG and as SVG."""
    styled = chart.configure_view(stroke="#dddddd").configure_axis(gridOpacity=0.5, titleFontWeight="normal")
    styled = styled.configure_title(fontSize=13, fontWeight="normal", anchor="start")
    styled.save(settings.out / f"{name}.png", scale_factor=1.5)
    styled.save(settings.out / f"{name}.svg")


def chart(rows: Iterable[Row], **options: Any) -> alt.Chart:
    """A chart of rows; encodings must name their types."""
    return alt.Chart(alt.Data(values=list(rows)), **options)  # type: ignore[no-untyped-call]


def colour(names: Iterable[str], title: str | None = None, field: str = "method") -> alt.Color:
    """The colour of the methods that are in a figure."""
    listed = list(names)
    scale = alt.Scale(domain=listed, range=[COLOURS[name] for name in listed])
    legend = alt.Legend(symbolOpacity=1, labelLimit=300)
    return alt.Color(f"{field}:N", title=title, scale=scale, sort=listed, legend=legend)
