from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import altair as alt
import numpy as np
import pytest

from binreps.decide.loss import DECISIONS, Loss
from binreps.errors import OptionError
from binreps.show import plot
from binreps.show.theme import DECISION_COLOURS, DECISION_TEXT, METHOD_COLOURS, theme
from binreps.table import Table
from drawing import specification

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
COLOUR_BLIND = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lightness(colour: str) -> float:
    return 116 * luminance(colour) ** (1 / 3) - 16


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb.clip(
        0, 1
    )
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_decision_colours_differ_in_grey() -> None:
    assert list(DECISION_COLOURS) == list(DECISIONS.values())
    for one, other in combinations(DECISION_COLOURS.values(), 2):
        assert abs(lightness(one) - lightness(other)) > 18


@pytest.mark.parametrize("kind", COLOUR_BLIND)
def test_decision_colours_differ_for_the_colour_blind(kind: str) -> None:
    matrix = np.array(COLOUR_BLIND[kind])
    for one, other in combinations(DECISION_COLOURS.values(), 2):
        seen = [lab(matrix @ linear(colour)) for colour in (one, other)]
        assert np.linalg.norm(seen[0] - seen[1]) > 25


def test_text_on_decision_colours_is_readable() -> None:
    for word, colour in DECISION_COLOURS.items():
        assert contrast(colour, DECISION_TEXT[word]) > 4.5


@pytest.mark.parametrize(("dark", "page"), [(False, "#ffffff"), (True, "#15181c")])
def test_text_and_lines_are_readable_on_the_page(dark: bool, page: str) -> None:
    config = theme(dark)
    assert config["background"] == "transparent"
    for colour in (config["text"]["color"], config["axis"]["labelColor"], config["axis"]["titleColor"]):
        assert contrast(colour, page) > 4.5
    for colour in METHOD_COLOURS[:4]:
        assert contrast(colour, page) > 3
    sizes = [
        value
        for part in config.values()
        if isinstance(part, dict)
        for key, value in part.items()
        if "ontSize" in key
    ]
    assert min(sizes) >= 11


def test_figures_hold_no_text_colour_of_their_own() -> None:
    spec = specification(plot.risks(Loss(inconclusive=0.2)))
    assert spec["config"]["text"] == theme()["text"]
    del spec["config"]
    assert theme()["text"]["color"] not in json.dumps(spec)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
@pytest.mark.slow
def test_a_saved_figure_is_whole_and_of_its_kind(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure{suffix.upper()}"
    plot.save(plot.risks(Loss(inconclusive=0.2)), path)
    start = {".png": b"\x89PNG", ".svg": b"<svg", ".html": b"<!DOCTYPE html>", ".json": b"{"}[suffix]
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]
    if suffix == ".json":
        assert alt.Chart.from_dict(json.loads(path.read_text(encoding="utf-8"))).to_dict()


def test_a_dark_figure_has_the_dark_theme(tmp_path: Path) -> None:
    chart = plot.risks(Loss(inconclusive=0.2))
    plot.save(chart, tmp_path / "dark.json", dark=True)
    assert (
        json.loads((tmp_path / "dark.json").read_text(encoding="utf-8"))["config"]["text"]
        == theme(True)["text"]
    )
    assert specification(chart)["config"]["text"] == theme()["text"]  # the chart itself is left as it was


@pytest.mark.slow
def test_an_html_file_needs_no_network_and_runs_no_text(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script><!--"
    table = Table({"method": [name, name], "inconclusive": [0.0, 0.5], "risk": [0.0, 0.1]})
    plot.save(plot.risk_by_cost(table), tmp_path / "figure.html")
    text = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert text.count("</script>") == text.count("<script>") == 2
    assert "<script>alert" not in text
    assert "<!--" not in text
    outside_scripts = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"src=|href=|url\(|@import", outside_scripts)
    found = re.search(r'vegaEmbed\("#figure", (.*), \{"renderer"', text)
    assert found is not None
    assert name in json.dumps(json.loads(found[1]), ensure_ascii=False)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    chart = plot.risks(Loss(inconclusive=0.2))
    with pytest.raises(OptionError, match=r"figure\.pdf cannot be written; name a file that ends in \.png"):
        plot.save(chart, tmp_path / "figure.pdf")
    with pytest.raises(OptionError, match="there is no folder"):
        plot.save(chart, tmp_path / "absent" / "figure.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(OptionError, match="is a folder"):
        plot.save(chart, tmp_path / "folder.svg")


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figure.svg"
    path.write_text("old", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        plot.save(plot.risks(Loss(inconclusive=0.2)), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
