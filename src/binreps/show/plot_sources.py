"""The figure of sources: how often each is wrong about negatives and about positives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binreps.errors import OptionError
from binreps.fits.sources import SourcesFit
from binreps.options import check_level, kinds_checked
from binreps.show.marks import inline
from binreps.show.theme import METHOD_COLOURS, themed

if TYPE_CHECKING:
    import altair as alt

_MOST_BARS = 60  # sources whose intervals are drawn; of more they would hide each other


@kinds_checked
def sources(fit: SourcesFit, *, level: float = 0.9) -> alt.LayerChart:
    """False-positive against false-negative rate of each source, with intervals; size by readings.

    On the diagonal line the two add up to 1: the answers of a source there say nothing, and beyond it the
    opposite. Names are shown when the mouse is over a point. Of many sources the intervals are left out.

    Parameters
    ----------
    fit : SourcesFit
    level : float
        Probability that the intervals hold.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from binreps.fits.sources import fit_sources
    >>> from binreps.readings import Readings
    >>> readings = Readings.wide([[1, 1, 0], [0, 0, 1]], ["ann", "bob", "eve"], weight=[30, 20])
    >>> sources(fit_sources(readings, rng=1, sweeps=50)).to_dict()["layer"][0]["mark"]["type"]
    'line'
    """
    import altair as alt

    bars: Any
    if not isinstance(fit, SourcesFit):
        raise OptionError(f"fit must be a fit by source, got {type(fit).__name__}")
    check_level(level)
    table = fit.source_table(level)
    rows = [{**row, "source": str(row["source"])} for row in table]
    for row in rows:
        rates = f"false-positive {row['false_positive']:.2f}, false-negative {row['false_negative']:.2f}"
        row["words"] = f"{row['source']}: {rates}, {row['readings']:,} readings"
    data = inline(**{name: [row[name] for row in rows] for name in (*table.columns, "words")})
    x = alt.X("false_positive:Q", title="False-positive rate", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("false_negative:Q", title="False-negative rate", scale=alt.Scale(domain=[0, 1]))
    chance = alt.Chart(inline(x=[0, 1], y=[1, 0]))
    layers: list[Any] = [chance.mark_line(strokeDash=[4, 4], color="gray").encode(alt.X("x:Q"), alt.Y("y:Q"))]
    base = alt.Chart(data)
    if len(rows) <= _MOST_BARS:
        bars = {"color": METHOD_COLOURS[0], "opacity": 0.45}
        layers.append(
            base.mark_rule(**bars).encode(
                alt.X("false_positive_lower:Q"), alt.X2("false_positive_upper:Q"), y
            )
        )
        layers.append(
            base.mark_rule(**bars).encode(
                x, alt.Y("false_negative_lower:Q"), alt.Y2("false_negative_upper:Q")
            )
        )
    size = alt.Size("readings:Q", title="readings", scale=alt.Scale(range=[20, 300]))
    points = base.mark_point(filled=True, color=METHOD_COLOURS[0], opacity=0.8)
    named: Any = {"tooltip": alt.Tooltip("words:N"), "description": alt.Description("words:N")}
    layers.append(points.encode(x, y, size, **named))
    chart: alt.LayerChart = alt.layer(*layers)  # type: ignore[assignment]
    return themed(chart.properties(width=420, height=420))
