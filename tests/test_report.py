"""The report in a real browser: complete, silent, without a network, and with nothing of the user's run."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import binreps as br
from binreps.show.report import report
from binreps.show.wording import read_words
from binreps.study.datasets import SCREENING_FILE
from screening import screening_counts
from system_tools import require

pytestmark = pytest.mark.slow

EVIL = '<script>document.title="owned"</script>'
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Page(HTMLParser):
    """What a page holds: its tags, and what they point to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def page() -> str:
    analysis = br.analyse(SCREENING_FILE, br.Settings(replicates=4), truth="truth")
    rows = br.Table({"individual": ["P001", EVIL], "score": [0.5, 0.9], "decision": ["negative", None]})
    return report(analysis, rows, "scores.csv")


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    links = [
        value
        for _, attributes in Page(page).tags
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "action") and value
    ]
    assert set(links) <= {"scores.csv"} | {link for link in links if link.startswith("#")}
    assert not re.search(r"@import|url\((?!#)", page)


def test_what_users_write_is_text(page: str) -> None:
    assert EVIL not in page
    assert "&lt;script&gt;document.title" in page
    assert sum(tag == "script" for tag, _ in Page(page).tags) == 1


def test_ids_are_given_once(page: str) -> None:
    ids = [attributes["id"] for _, attributes in Page(page).tags if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_the_first_answers_are_there(page: str) -> None:
    fit = br.fit_bayes(screening_counts())
    assert f"<span>Prevalence</span><span>{fit.rates.prevalence:.1%}</span>" in page
    assert f"<span>Sensitivity</span><span>{fit.rates.sensitivity:.1%}</span>" in page
    assert "? 2 of 4" in page
    assert "Clinical summary" in page
    assert page.count("<figure") >= 6
    assert page.count("<svg") == page.count("<figure")
    assert "truly positive" in page  # judged, under names that no rate of the test has
    assert "Chances, judged by the truth" in page
    assert 'aria-label="' in page


def test_user_text_is_escaped_in_titles_columns_and_populations(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = "".join(f"{site},{i},3,{3 * (i % 2)}\n" for i in range(8) for site in ('"<b>x"', "y"))
    path.write_text(f'"<i>site",id,n,s\n{rows}', encoding="utf-8")
    analysis = br.analyse(path, br.Settings(model="populations"), population="<i>site", name=EVIL)
    page = report(analysis)
    assert EVIL not in page
    assert "<b>x" not in page
    assert "<i>site" not in page
    assert "&lt;b&gt;x" in page


def test_a_browser_draws_it_without_a_word(page: str, tmp_path: Path) -> None:
    chromium = require("chromium", "chromium")
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    flags = [*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--v=0"]
    pdf, dump = tmp_path / "report.pdf", [chromium, *flags, "--dump-dom", path.as_uri()]
    done = subprocess.run(dump, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>screening.csv" in done.stdout
    assert "CONSOLE" not in done.stderr
    printing = [chromium, *flags, f"--print-to-pdf={pdf}", path.as_uri()]
    subprocess.run(printing, capture_output=True, timeout=120, check=True)
    assert pdf.stat().st_size > 20_000


def test_a_title_and_an_author_head_the_page_and_who_needs_another_test_is_named(tmp_path: Path) -> None:
    analysis = br.analyse(SCREENING_FILE)
    files = analysis.write(tmp_path, title="Rapid test", author="A. Author")
    page = files[0].read_text(encoding="utf-8")
    assert "<h1>Rapid test</h1>" in page
    assert "A. Author" in page
    scored = [line.split(",") for line in (tmp_path / "scores.csv").read_text().splitlines()]
    names = dict(enumerate(scored[0]))
    rows = [{names[i]: value for i, value in enumerate(row)} for row in scored[1:]]
    open_ones = {row["individual"] for row in rows if row["decision"] == "inconclusive"}
    first = page[page.index("Who needs another test") : page.index("A false alarm costs")]
    assert f"Who needs another test: {len(open_ones)} individuals" in first
    assert all(name in first for name in open_ones)


def test_what_one_more_test_gives_is_what_the_next_fit_would_predict() -> None:
    part = br.analyse(screening_counts()).main
    for row in part.again:
        rule = br.explain(part.fit, br.Loss(), row["n"], row["s"]).next
        assert rule is not None
        assert [one.probability for one in rule.branches] == pytest.approx(
            [row["if_negative"], row["if_positive"]]
        )
    assert sum(part.again["weight"]) == part.answers["inconclusive"]


def test_people_of_known_status_need_no_other_test(tmp_path: Path) -> None:
    rows = [f"p{i},{a},{b},{c},{status}" for i, (a, b, c, status) in enumerate(KNOWN_ROWS)]
    path = tmp_path / "known.csv"
    path.write_text("\n".join(["patient,t1,t2,t3,status", *rows]) + "\n", encoding="utf-8")
    settings = br.Settings(model="common", loss=br.Loss(inconclusive=0.05))
    analysis = br.analyse(path, settings, known="status")
    again = analysis.main.again
    assert len(set(zip(again["n"], again["s"], strict=True))) == len(again)
    unknown = [row for row in KNOWN_ROWS if row[3] in ("", "NA")]
    assert sum(again["weight"]) <= len(unknown)
    assert "known 'status'" in " ".join(read_words(analysis.source))
    page = analysis.report()
    table = page[page.index("Who needs another test") :].split("</table>")[0]
    open_ones = {f"p{i}" for i, row in enumerate(KNOWN_ROWS) if row in unknown and 0 < sum(row[:3]) < 3}
    assert set(re.findall(r"\bp\d+\b", table)) == open_ones


KNOWN_ROWS: list[tuple[Any, ...]] = [*[(0, 0, 0, "")] * 12, *[(1, 1, 1, "")] * 8]
KNOWN_ROWS += [*[(1, 0, 0, "NA")] * 3, *[(1, 1, 0, "")] * 3]
KNOWN_ROWS += [(1, 0, 0, 0), (1, 1, 0, 1), (1, 0, 0, 1), (1, 1, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1)]
