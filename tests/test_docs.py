"""Every block of Python in README.md and docs runs, and prints what the block of text below it says.

A block below `<!-- no-test -->` is left alone. Blocks of one page run in order and share their names.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from binreps import __version__

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(set(ROOT.glob("docs/**/*.md")) - {ROOT / "docs" / "spark.md"})]
"""All but the page on Spark: test_spark.py runs that, with a session."""

SLOW = {"other-tools.md", "readers.md", "study-size.md"}
"""They sample, or simulate many studies."""

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


def test_the_picture_of_the_guide_is_drawn_by_its_script(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["smears.py", str(tmp_path / "smears.svg")])
    runpy.run_path(str(ROOT / "examples" / "smears.py"))
    drawn = (tmp_path / "smears.svg").read_text(encoding="utf-8")
    shown = (ROOT / "docs" / "guide" / "smears.svg").read_text(encoding="utf-8")
    words = re.compile(r"<text[^>]*>([^<]*)</text>")
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


def test_links_within_the_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
            made = target.endswith("pictures/report.html")  # by `make docs`, with its date
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
