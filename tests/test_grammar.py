"""Views: what the report draws is what `plot` gives as an Altair chart."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import vl_convert

import binreps as br
from binreps.show import plot
from binreps.show.figures import figures
from binreps.show.grammar import View, compact, field, view_of
from binreps.show.theme import to_svg, vegalite_version
from binreps.study.datasets import SCREENING_FILE

COUNTS = br.CountTable([4] * 5, range(5), weight=[50, 18, 6, 9, 17])


@pytest.mark.parametrize(
    ("draw", "asked"),
    [
        (plot.rates, (br.fit_bayes(COUNTS), {"average": br.fit_average(COUNTS)})),
        (plot.scores, ({"Bayes": br.fit_bayes(COUNTS)},)),
        (plot.risks, (br.Loss(),)),
        (plot.decisions, (br.decision_table(br.fit_bayes(COUNTS), br.Loss(), 6),)),
    ],
    ids=["rates", "scores", "risks", "decisions"],
)
def test_a_view_and_its_chart_are_drawn_alike(draw: Any, asked: tuple[Any, ...]) -> None:
    chart = draw(*asked).to_dict()
    by_altair = vl_convert.vegalite_to_svg(chart, vl_version=vegalite_version())
    assert to_svg(view_of(draw, *asked)) == by_altair


def test_words_leave_a_view_as_it_is() -> None:
    view = View(data={"values": ({"x": 1},)})
    drawn = view.mark("point").encode(x=field("x", "quantitative"))
    assert set(view) == {"data"}
    assert set(drawn) == {"data", "mark", "encoding"}
    assert set(drawn.encode(y=field("x"))["encoding"]) == {"x", "y"}


def test_data_of_several_views_are_written_once() -> None:
    shared, other = ({"values": ({"x": i},)} for i in (1, 2))
    views = [View(data=data).mark("point").encode(x=field("x", "quantitative")) for data in (shared, other)]
    spec = compact(View(hconcat=[*views, views[0]]))
    assert [one["data"]["name"] for one in spec["hconcat"]] == ["data-1", "data-2", "data-1"]
    assert json.loads(json.dumps(spec["datasets"])) == {"data-1": [{"x": 1}], "data-2": [{"x": 2}]}


def test_figures_of_an_analysis_follow_the_schema() -> None:
    import altair as alt

    analysis = br.analyse(SCREENING_FILE, truth="truth")
    for one in figures(analysis):
        spec = json.loads(json.dumps(compact(one.view), allow_nan=False))
        kind = next(kind for key, kind in _KINDS.items() if key in spec)
        getattr(alt, kind).validate(spec)


_KINDS = {"hconcat": "TopLevelHConcatSpec", "concat": "TopLevelConcatSpec", "layer": "TopLevelLayerSpec"}


def test_a_report_needs_no_altair() -> None:
    code = """
import sys
sys.modules["altair"] = None
import binreps as br
counts = br.CountTable([3] * 4, range(4), weight=[60, 9, 6, 25])
assert "<svg" in br.analyse(counts).report()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
