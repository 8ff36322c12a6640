"""Every block of Python in README.md and docs runs, and prints what the block of text below it says.

A block below `<!-- no-test -->` is left alone. Blocks of one page run in order and share their names.
"""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from binreps import __version__

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(set(ROOT.glob("docs/**/*.md")) - {ROOT / "docs" / "spark.md"})]
"""All but the page on Spark: test_spark.py runs that, with a session."""

SLOW = {"does-it-fit.md", "other-tools.md", "readers.md", "study-size.md"}
"""They sample, or simulate many studies."""

STORIES = ("well", "correlated", "readers", "poor")
"""The pictures of docs/guide/does-it-fit.md."""

PYTHON = r"(?P<skip><!-- no-test -->\n)?^```python\n(?P<code>.*?)^```$"
OUTPUT = r"(\s*^```text\n(?P<output>.*?)^```$)?"
BLOCK = re.compile(PYTHON + OUTPUT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_documented_code_runs_and_prints_what_the_page_says(page: Path, capsys) -> None:
    names = {"__name__": page.stem}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["skip"]:
            continue
        exec(compile(block["code"], page.name, "exec"), names)
        printed = capsys.readouterr().out
        if block["output"] is not None:
            assert printed == block["output"]


def test_the_demo_runs(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "demo.py"))
    printed = capsys.readouterr().out
    for heading in ("READ", "RATES", "NEXT INDIVIDUAL", "DECISIONS BY MAXIMUM A POSTERIORI"):
        assert f"{heading}\n" in printed
    assert "120 individuals, 473 replicates" in printed


@pytest.mark.parametrize(
    ("script", "target", "pictures"),
    [
        ("smears.py", "smears.svg", ["smears"]),
        pytest.param("stories.py", ".", [f"fit-{name}" for name in STORIES], marks=pytest.mark.slow),
    ],
)
def test_the_pictures_of_the_guide_are_drawn_by_their_scripts(
    tmp_path: Path, monkeypatch, script: str, target: str, pictures: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", [script, str(tmp_path / target)])
    runpy.run_path(str(ROOT / "examples" / script))
    words = re.compile(r"<text[^>]*>([^<]*)</text>")
    for name in pictures:
        drawn = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        shown = (ROOT / "docs" / "guide" / f"{name}.svg").read_text(encoding="utf-8")
        assert words.findall(drawn) == words.findall(shown)


@pytest.mark.slow
def test_the_pictures_of_the_site_are_drawn_by_their_script(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["pictures.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "pictures.py"))
    words = re.compile(r"<text[^>]*>([^<]*)</text>")
    for drawn in tmp_path.glob("*.svg"):
        shown = (ROOT / "docs" / "pictures" / drawn.name).read_text(encoding="utf-8")
        assert words.findall(drawn.read_text(encoding="utf-8")) == words.findall(shown), drawn.name
    assert "Clinical summary" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lab", "readers", "edna", "judges"])
def test_the_notebooks_run_and_print_what_they_show(name: str, capsys) -> None:
    book = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8"))
    scope: dict[str, object] = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), scope)
            shown = "".join(text for output in cell["outputs"] for text in output["text"])
            assert capsys.readouterr().out == shown


def test_links_within_the_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
            made = target.endswith("pictures/report.html")  # by `make docs`, with its date
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
