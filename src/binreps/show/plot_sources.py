"""The figure of sources: how often each is wrong about negatives and about positives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binreps.errors import OptionError
from binreps.fits.sources import SourcesFit
from binreps.options import check_level, kinds_checked
from binreps.show.grammar import View, field, figure
from binreps.show.marks import inline, layered
from binreps.show.theme import METHOD_COLOURS, themed

if TYPE_CHECKING:
    import altair as alt

_MOST_BARS = 60  # sources whose intervals are drawn; of more they would hide each other


@figure
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
    if not isinstance(fit, SourcesFit):
        raise OptionError(f"fit must be a fit by source, got {type(fit).__name__}")
    check_level(level)
    table = fit.source_table(level)
    rows = [{**row, "source": str(row["source"])} for row in table]
    for row in rows:
        rates = f"false-positive {row['false_positive']:.2f}, false-negative {row['false_negative']:.2f}"
        row["words"] = f"{row['source']}: {rates}, {row['readings']:,} readings"
    data = inline(**{name: [row[name] for row in rows] for name in (*table.columns, "words")})
    scale = {"domain": [0, 1]}
    x = field("false_positive", "quantitative", title="False-positive rate", scale=scale)
    y = field("false_negative", "quantitative", title="False-negative rate", scale=scale)
    chance = View(data=inline(x=[0, 1], y=[1, 0]))
    diagonal = {"x": field("x", "quantitative"), "y": field("y", "quantitative")}
    layers = [chance.mark("line", strokeDash=[4, 4], color="gray").encode(**diagonal)]
    base = View(data=data)
    if len(rows) <= _MOST_BARS:
        bars = base.mark("rule", color=METHOD_COLOURS[0], opacity=0.45)
        low = {name: field(f"{name}_lower", "quantitative") for name in ("false_positive", "false_negative")}
        layers.append(bars.encode(x=low["false_positive"], x2=field("false_positive_upper"), y=y))
        layers.append(bars.encode(x=x, y=low["false_negative"], y2=field("false_negative_upper")))
    points = base.mark("point", filled=True, color=METHOD_COLOURS[0], opacity=0.8).encode(
        x=x,
        y=y,
        size=field("readings", "quantitative", title="readings", scale={"range": [20, 300]}),
        tooltip=field("words", "nominal"),
        description=field("words", "nominal"),
    )
    chart: alt.LayerChart = themed(layered(*layers, points, width=420, height=420))
    return chart
