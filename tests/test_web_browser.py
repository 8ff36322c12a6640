"""The page in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import csv
import json
import random
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, expect, sync_playwright
from tests.system_tools import require

import binreps as br
from binreps.decide.answer import explain
from binreps.study.datasets import WELLS_FILE
from binreps.web import limits, uploads
from binreps.web.app import create_app
from binreps.web.uploads import Uploads
from screening import screening_counts

pytestmark = pytest.mark.slow

expect.set_options(timeout=30_000)

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@contextmanager
def serving() -> Iterator[str]:
    """The page on a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SECONDS", 300)  # the machine of a test may be busy
        options: Any = {"log_config": None, "access_log": False, "ws": "none", "lifespan": "off"}
        server = uvicorn.Server(uvicorn.Config(create_app(processes=2), **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as place:
        yield place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = require("chromium", "chromium")
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A fresh page; anything that the browser complains about fails the test."""
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
    one = context.new_page()
    complaints: list[str] = []
    one.on("pageerror", lambda error: complaints.append(str(error)))
    one.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    one.complaints = complaints
    one.goto(address)
    yield one
    assert [text for text in complaints if "422" not in text] == []  # a refused file is logged by the browser
    context.close()


def load_example(page: Any, name: str = "screening") -> None:
    page.click(f"[data-example={name}]")
    expect(page.locator("#triangle button").first).to_be_visible()
    expect(page.locator("#patient")).to_contain_text("the cheapest is")
    expect(page.locator("#verdict")).not_to_be_empty()


def answers(page: Any) -> dict[str, int]:
    """How many individuals have which answer, as the page says."""
    places = page.locator("#answers > span")
    found = places.evaluate_all("(all) => all.map((one) => [one.dataset.answer, one.lastChild.textContent])")
    return {answer: int(number.replace(",", "")) for answer, number in found}


def wait_for_answers(page: Any, wanted: dict[str, int]) -> None:
    """Until the page has so many individuals with each answer."""
    for answer, number in wanted.items():
        place = page.locator(f"#answers > span[data-answer={answer}]")
        expect(place).to_contain_text(f"{number:,}", timeout=120_000)
    assert answers(page) == wanted


def move(page: Any, slider: str, value: float) -> None:
    """Move a slider as the mouse does: its value, and the event."""
    page.locator(slider).evaluate(
        "(one, value) => { one.value = value; one.dispatchEvent(new Event('input', {bubbles: true})); }",
        value,
    )
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def expected_answers(loss: br.Loss, settings: Any = None) -> dict[str, int]:
    chosen = br.Settings(loss=loss) if settings is None else settings
    return br.analyse(screening_counts(), chosen).answers


def test_what_the_data_cannot_tell_is_said_beside_the_numbers(page: Any) -> None:
    load_example(page)
    expect(page.locator("#verdict .good")).to_be_visible()
    page.click("#new-file")
    counts = {"name": "twice.csv", "mimeType": "text/csv", "buffer": b"n,s,count\n2,0,50\n2,1,9\n2,2,20\n"}
    page.set_input_files("#file", counts)
    page.click("#confirm")
    expect(page.locator("#verdict .stop")).to_contain_text("cannot")
    page.click("#verdict button")
    expect(page.locator("#expect summary")).to_be_focused()


def test_the_example_shows_the_numbers_of_the_library(page: Any) -> None:
    load_example(page)
    analysis = br.analyse(screening_counts())
    assert answers(page) == analysis.answers
    fit = analysis.main.fit
    cells = {(row["n"], row["s"]): row for row in analysis.main.decisions}
    for (n, s), row in cells.items():
        cell = page.locator(f"#triangle [data-n='{n}'][data-s='{s}']")
        assert cell.get_attribute("class").split()[0] == row["decision"]
    expect(page.locator("#patient")).to_contain_text(explain(fit, br.Loss(), 6, 2, new=True).sentence)
    assert page.locator("#cards strong").first.inner_text() == f"{100 * fit.rates.prevalence:.1f}%"


def test_a_slider_changes_the_decisions_without_asking_the_server(page: Any) -> None:
    load_example(page)
    expect(page.locator("#checks")).not_to_be_empty()
    fits: list[str] = []
    page.on("request", lambda request: fits.append(request.url) if request.url.endswith("/api/fit") else None)
    before = answers(page)
    move(page, "#inconclusive", -1)
    after = answers(page)
    assert after == expected_answers(br.Loss(inconclusive=0.1)) != before
    assert page.locator("#inconclusive-number").input_value() == "0.1"
    move(page, "#falseNegative", 1)
    assert answers(page) == expected_answers(br.Loss(1, 10, 0.1))
    loss = br.Loss(1, 10, 0.1)
    expect(page.locator("#patient")).to_contain_text(
        explain(br.fit_bayes(screening_counts()), loss, 6, 2, new=True).sentence
    )
    assert fits == []
    measured = page.evaluate("() => performance.getEntriesByName('slider to page').length")
    assert measured == 2


def test_the_thresholds_of_the_browser_are_those_of_the_library_to_the_last_bit(page: Any) -> None:
    rng = random.Random(1)
    costs = [
        tuple(round(10 ** rng.uniform(-3, 3), rng.randint(0, 5)) or 1 for _ in range(3)) for _ in range(300)
    ]
    costs += [tuple(10 ** rng.uniform(-30, 30) for _ in range(3)) for _ in range(100)]
    scores = [rng.random() for _ in range(20)] + [0.0, 1.0]
    found = page.evaluate(
        """async ([costs, scores]) => {
          const { decide, risks, rule } = await import("/page/decide.js");
          return costs.map(([falsePositive, falseNegative, inconclusive]) => {
            const best = rule({ falsePositive, falseNegative, inconclusive });
            const on = [best.lower, best.upper, best.lower + 2 ** -52, 1 - best.upper];
            return [best.lower, best.upper, scores.map((y) => [decide(y, best), risks(y, best)]),
              on.map((y) => [y, decide(y, best)])];
          });
        }""",
        [costs, scores],
    )
    for (b, c, a), (lower, upper, decided, on) in zip(costs, found, strict=True):
        loss = br.Loss(b, c, a)
        assert (lower, upper) == loss.thresholds
        assert [word for word, _ in decided] == br.decision_words(loss.classify(scores))
        assert [list(map(float, risks)) for _, risks in decided] == loss.risks(scores).tolist()
        assert [word for _, word in on] == br.decision_words(loss.classify([y for y, _ in on]))


def test_a_file_is_sent_once_unless_the_server_has_it_no_more(page: Any, monkeypatch: Any) -> None:
    sent: list[str] = []

    def noting(original: Any) -> Any:
        def called(*arguments: Any) -> Any:
            sent.append(arguments[-1])
            return original(*arguments)

        return called

    monkeypatch.setattr(Uploads, "add", noting(Uploads.add))
    monkeypatch.setattr(uploads, "saved", noting(uploads.saved))
    text = "patient,test\n" + "".join(f"p{i % 7},{int(i % 7 < 3)}\n" for i in range(40))
    send(page, "a.csv", text)
    expect(page.locator("#people tbody tr")).to_have_count(7)
    page.click("#change")
    page.click("#confirm")
    for button in ("#get-scores", "#get-summary", "#get-report"):
        with page.expect_download(timeout=60_000):
            page.click(button)
    assert sent == ["a.csv"]
    monkeypatch.setattr(Uploads, "using", _lost_once(Uploads.using))
    with page.expect_download():
        page.click("#get-scores")
    assert sent == ["a.csv", "a.csv"]
    page.complaints[:] = [text for text in page.complaints if "410" not in text]


def _lost_once(using: Any) -> Any:
    """A store that has lost the first file it is asked for."""
    lost: list[str] = []

    @contextmanager
    def asked(store: Any, key: str) -> Iterator[Any]:
        if not lost:
            lost.append(key)
            store.drop(key)
        with using(store, key) as found:
            yield found

    return asked


def test_the_page_shows_names_and_numbers_by_their_ids(page: Any) -> None:
    load_example(page)
    page.click("#more-rates summary")
    heads = page.locator("#rates thead th").all_inner_texts()
    assert heads == ["rate", "Average", "Median", "MAP", "Bayes", "lower", "upper"]
    assert page.locator("#rates tbody tr td:first-child").all_inner_texts()[1] == "false-positive"
    assert page.locator("#method option").all_inner_texts()[0] == "Bayes"
    lower, upper = br.fit_bayes(screening_counts()).interval(0.9)
    card = page.locator("#cards .number").first.inner_text()
    assert f"{lower.prevalence:.1%} to {upper.prevalence:.1%}" in card


def test_an_expectation_changes_the_fit(page: Any) -> None:
    load_example(page)
    fits: list[str] = []
    page.on("request", lambda request: fits.append(request.url) if request.url.endswith("/api/fit") else None)
    page.check("#prevalence-on")
    page.wait_for_timeout(300)
    assert fits == []  # a tick alone changes nothing
    move(page, "#prevalence-expect", 0.1)
    move(page, "#prevalence-expect", 0.05)
    shapes = br.elicit.guess("prevalence", 0.05, surprised_above=0.2).shapes
    settings = br.Settings(prior=br.Prior(shapes))
    expected = br.analyse(screening_counts(), settings).main.fit.rates.prevalence
    expect(page.locator("#cards strong").first).to_have_text(f"{100 * expected:.1f}%")
    page.uncheck("#prevalence-on")
    usual = br.fit_bayes(screening_counts()).rates.prevalence
    expect(page.locator("#cards strong").first).to_have_text(f"{100 * usual:.1f}%")


def test_one_switch_takes_a_test_that_misses_more_than_it_finds(page: Any) -> None:
    content = b"n,s,count\n5,0,283\n5,1,96\n5,2,79\n5,3,33\n5,4,9\n"
    send(page, "smears.csv", content.decode())
    page.select_option("#method", "map")
    counts = br.CountTable([5] * 5, range(5), [283, 96, 79, 33, 9])
    first = page.locator("#cards strong").first
    expect(first).to_have_text(f"{100 * br.fit_map(counts).rates.prevalence:.1f}%")
    page.check("#better-than-chance")
    better = br.fit_map(counts, br.Prior((1, 1), better_than_chance=True))
    expect(first).to_have_text(f"{100 * better.rates.prevalence:.1f}%")
    page.check("#false_negative-on")
    move(page, "#false_negative-surprise", 0.2)
    move(page, "#false_negative-expect", 0.4)
    belief = br.elicit.guess("sensitivity", 0.4, surprised_below=0.2, better_than_chance=True)
    prior = br.Prior((1, 1), false_negative=belief.shapes, better_than_chance=True)
    expect(first).to_have_text(f"{100 * br.fit_map(counts, prior).rates.prevalence:.1f}%")
    expect(page.locator("#false_negative-words")).to_contain_text("cut where the two add up to 100%")
    page.uncheck("#better-than-chance")
    expect(page.locator("#false_negative-expect")).to_have_attribute("min", "0.51")


def test_a_file_with_a_hostile_id_is_shown_as_text(page: Any) -> None:
    hostile = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    text = f"patient,test\n{hostile},1\n{hostile},1\nbob,0\nbob,0\nbob,1\n"
    send(page, "<b>x.csv", text)
    expect(page.locator("#people tbody button").first).to_have_text(hostile)
    assert "owned" not in page.title()
    assert page.locator("main script, main img, #source b").count() == 0


def test_bad_files_get_a_sentence_and_a_good_one_then_works(page: Any) -> None:
    files = [("empty.csv", b"", "empty.csv is empty"), ("notes.docx", b"x", "notes.docx cannot be read")]
    for name, content, words in files:
        page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": content})
        expect(page.locator("#problem")).to_contain_text(words)
        expect(page.locator("#work")).to_be_hidden()
    good = b"n,s,count\n3,0,50\n3,1,9\n3,2,8\n3,3,30\n"
    send(page, "good.csv", good.decode())
    expect(page.locator("#answers > span")).to_have_count(3)
    expect(page.locator("#problem")).to_be_hidden()
    assert sum(answers(page).values()) == 97


def send(page: Any, name: str, text: str) -> None:
    """A file whose reading is confirmed as it is proposed."""
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": text.encode()})
    page.click("#confirm")


def chip(page: Any, column: str) -> Any:
    """The menu of a column's part."""
    return page.locator(f".column[data-column='{column}'] select")


def test_nothing_is_computed_before_the_columns_are_confirmed_and_they_can_be_corrected(page: Any) -> None:
    rows = "".join(f"p{i % 9},{i % 2},{(i // 2) % 2}\n" for i in range(36))
    content = ("box,first,second\n" + rows).encode()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.set_input_files("#file", {"name": "odd.csv", "mimeType": "text/csv", "buffer": content})
    expect(chip(page, "first")).to_have_value("result")
    expect(chip(page, "box")).to_have_value("")
    assert asked == ["columns"]
    expect(page.locator("#work")).to_be_hidden()
    chip(page, "first").select_option("")
    chip(page, "box").select_option("individual")
    page.click("#confirm")
    expect(page.locator("#facts")).to_contain_text("9 individuals · 36 tests")
    expect(page.locator("#parts")).to_contain_text("individual box")
    expect(page.locator("#parts")).to_contain_text("not used: 'first' (0/1, but not of the family)")
    expect(page.locator("#people tbody tr")).to_have_count(9)
    page.click("#change")
    chip(page, "first").select_option("result")
    chip(page, "box").select_option("")
    page.click("#confirm")
    expect(page.locator("#people tbody tr")).to_have_count(36)
    assert asked.count("columns") == 1


READERS = "patient,Reader 1,Reader 2,Reader 3,Reader 4\n"


def test_a_word_for_no_result_keeps_its_reader(page: Any) -> None:
    rows = [f"p{i},pos,pos,neg,{'ND' if i == 3 else 'pos'}\n" for i in range(6)]
    send(page, "nd.csv", READERS + "".join(rows))
    for reader in range(1, 5):
        expect(page.locator("#parts")).to_contain_text(f"result Reader {reader}")
    expect(page.locator("#notes")).to_contain_text("read as no result: 'nd' (1)")
    expect(page.locator("#people tbody tr")).to_have_count(6)


def test_an_odd_word_is_given_a_meaning_before_anything_is_computed(page: Any) -> None:
    rows = [f"p{i},pos,pos,neg,{'weak' if i == 3 else 'neg'}\n" for i in range(6)]
    content = (READERS + "".join(rows)).encode()
    page.set_input_files("#file", {"name": "weak.csv", "mimeType": "text/csv", "buffer": content})
    expect(page.locator("#question")).to_contain_text("column 'Reader 4' also holds 'weak' (1)")
    assert "--" not in page.locator("#question").inner_text()
    page.click("#confirm")
    expect(page.locator("#misread")).to_have_text("Say what “weak” means.")
    expect(page.locator("#work")).to_be_hidden()
    page.select_option("[data-word=weak]", "positive")
    page.click("#confirm")
    lines = page.locator("#people tbody tr", has_text="p3").first
    expect(lines).to_contain_text("3")
    counts = br.CountTable([4] * 2, [2, 3], [5, 1])
    expect(page.locator("#cards strong").first).to_have_text(
        f"{100 * br.fit_bayes(counts).rates.prevalence:.1f}%"
    )
    page.click("#change")
    page.select_option("[data-word=weak]", "missing")
    page.click("#confirm")
    fewer = br.CountTable([4, 3], [2, 2], [5, 1])
    expect(page.locator("#cards strong").first).to_have_text(
        f"{100 * br.fit_bayes(fewer).rates.prevalence:.1f}%"
    )


def test_smokers_and_diabetics_are_no_readers(page: Any) -> None:
    rows = [f"p{i},{'yes' if i % 2 else 'no'},{'no' if i % 3 else 'yes'},pos,neg,pos,neg\n" for i in range(8)]
    header = READERS.replace("patient,", "patient,Smoker,Diabetes,")
    page.set_input_files(
        "#file", {"name": "s.csv", "mimeType": "text/csv", "buffer": (header + "".join(rows)).encode()}
    )
    for name in ("Smoker", "Diabetes"):
        expect(chip(page, name)).to_have_value("")
    page.click("#confirm")
    expect(page.locator("#parts")).to_contain_text("not used: 'Smoker', 'Diabetes' (a covariate by its name)")
    expect(page.locator("#patient-n")).to_have_value("4")


def test_pasted_rows_and_typed_counts(page: Any) -> None:
    page.click("#paste summary")
    page.fill("#pasted", "patient\ttest\nann\tpos\nann\tpos\nbob\tneg\nbob\tneg\nbob\tneg\n")
    page.click("#use-pasted")
    page.click("#confirm")
    expect(page.locator("#people tbody tr")).to_have_count(2)
    page.click("#new-file")
    page.click("#type summary")
    page.click("#use-grid")
    expect(page.locator("#facts")).to_contain_text("100 individuals")
    counts = br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
    expect(page.locator("#people tbody tr")).to_have_count(5)
    assert answers(page) == br.analyse(counts).answers
    page.click("#new-file")
    page.fill("#grid tbody tr:first-child td:nth-child(2) input", "9")
    page.click("#use-grid")
    expect(page.locator("#problem")).to_contain_text("s ≤ n")


def test_downloads_hold_the_numbers_of_the_library(page: Any, tmp_path: Path) -> None:
    load_example(page)
    move(page, "#inconclusive", -1)
    loss = br.Loss(inconclusive=0.1)
    fit = br.fit_bayes(screening_counts())
    with page.expect_download() as scores:
        page.click("#get-scores")
    scores.value.save_as(tmp_path / "scores.csv")
    rows = list(csv.DictReader((tmp_path / "scores.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 120
    expected = [fit.score(int(row["n"]), int(row["s"])) for row in rows]
    assert [float(row["score"]) for row in rows] == pytest.approx(expected, abs=1e-12)  # threads may round
    assert {row["decision"] for row in rows} == {"negative", "inconclusive", "positive"}
    with page.expect_download() as kept:
        page.click("#get-summary")
    kept.value.save_as(tmp_path / "summary.json")
    content = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert content["answers"] == answers(page) == expected_answers(loss)
    assert br.load_fit(tmp_path / "summary.json") == fit
    page.fill("#report-title", "Spring <b>screening</b>")
    page.fill("#report-author", "A. Reader")
    with page.expect_download(timeout=60_000) as report:
        page.click("#get-report")
    assert report.value.suggested_filename == "report.html"
    report.value.save_as(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Spring &lt;b&gt;screening&lt;/b&gt;" in text
    assert "A. Reader" in text
    page.click("#repeat summary")
    expect(page.locator("#command")).to_contain_text("--cost-inconclusive 0.1")


def test_individuals_can_be_found_and_filtered(page: Any) -> None:
    load_example(page)
    expect(page.locator("#people tbody tr")).to_have_count(120)
    page.fill("#search", "p01")
    expect(page.locator("#people tbody tr")).to_have_count(10)
    page.fill("#search", "")
    page.click("[data-only=inconclusive]")
    expect(page.locator("#people tbody tr")).to_have_count(answers(page)["inconclusive"])


def test_everything_works_from_the_keyboard(page: Any) -> None:
    def tab_to(name: str) -> None:
        for _ in range(90):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.id") == name:
                return
        raise AssertionError(f"{name} cannot be reached")

    page.focus("[data-example=screening]")
    page.keyboard.press("Enter")
    expect(page.locator("#triangle button").first).to_be_visible()
    before = answers(page)
    page.focus("#costs summary")
    tab_to("inconclusive")
    ring = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(100)
    assert answers(page) != before
    tab_to("prevalence-on")
    page.keyboard.press("Space")
    tab_to("prevalence-expect")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#prevalence-words")).to_contain_text("Beta(")
    page.focus("#results")
    page.keyboard.press("Tab")
    tab_to("patient-n")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#patient")).to_contain_text("Beyond the 6 tests")
    tab_to("get-report")


def axe(page: Any) -> list[tuple[str, str]]:
    """What hinders people who use a keyboard, a screen reader or other colours."""
    return [(one["id"], one["nodes"][0]["html"]) for one in Axe().run(page).response["violations"]]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_accessibility(browser: Any, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 844}, bypass_csp=True
    )
    page = context.new_page()
    page.goto(address)
    assert axe(page) == []
    load_example(page, "readers")
    if width < 760:
        page.click("#dock-settings")
    page.check("#prevalence-on")
    page.check("#model-sources")
    expect(page.locator("#sources-table tbody tr")).to_have_count(5, timeout=90_000)
    assert axe(page) == []
    page.check("#model-common")
    expect(page.locator("#triangle button").first).to_be_visible()
    if width < 760:
        page.click("#dock-settings")
    page.click("#change")
    page.click("#first-rows summary")
    for details in ("#more-rates", "#repeat"):
        page.click(f"{details} summary")
    page.click("#people tbody button >> nth=0")
    expect(page.locator("#people .detail")).to_contain_text("the cheapest is")
    page.click("#next summary")
    expect(page.locator("#next-table td").first).to_be_visible()
    page.click("#plan summary")
    page.fill("#plan-width", "0.3")
    page.click("#plan-find")
    expect(page.locator("#plan-table td").first).to_be_visible(timeout=90_000)
    expect(page.locator("#checks")).not_to_be_empty()
    assert axe(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    context.close()


def test_figures_are_drawn_without_eval(page: Any) -> None:
    load_example(page)
    page.click("#figures summary")
    expect(page.locator("#figure-list figure svg").first).to_be_visible(timeout=60_000)
    assert page.locator("#figure-list figure").count() >= 5
    with pytest.raises(Error):  # and nobody else can bring a script
        page.add_script_tag(content="window.inline = 1")
    page.complaints.clear()


def test_an_impossible_cost_is_marked_and_the_last_answers_stay(page: Any) -> None:
    load_example(page)
    before = answers(page)
    for wrong in ("0", "-3", ""):
        page.fill("#falseNegative-number", wrong)
        expect(page.locator("#falseNegative-number")).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#falseNegative-bad")).to_contain_text("the last one counts")
        assert answers(page) == before
    page.fill("#falseNegative-number", "10")
    expect(page.locator("#falseNegative-number")).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("#falseNegative-bad")).to_be_hidden()
    page.wait_for_timeout(100)
    assert answers(page) == expected_answers(br.Loss(1, 10))
    page.fill("#patient-s", "7")
    expect(page.locator("#patient-bad")).to_contain_text("At most 6: only 6 tests were done.")
    expect(page.locator("#patient")).to_contain_text("2 positive of 6 tests")


def test_settings_are_in_the_address_without_data_and_can_be_undone(page: Any) -> None:
    load_example(page)
    move(page, "#inconclusive", -1)
    page.wait_for_timeout(900)  # another step of undo
    page.select_option("#level", "0.95")
    address = page.url
    assert address.partition("#")[2] == "inconclusive=0.1&level=0.95"
    page.click("#undo")
    expect(page.locator("#level")).to_have_value("0.9")
    page.focus("#pin")
    page.keyboard.press("Control+z")
    expect(page.locator("#inconclusive-number")).to_have_value("0.25")
    assert answers(page) == expected_answers(br.Loss())
    page.click("#redo")
    expect(page.locator("#inconclusive-number")).to_have_value("0.1")
    page.goto("about:blank")
    page.goto(address)
    load_example(page)
    expect(page.locator("#level")).to_have_value("0.95")
    assert answers(page) == expected_answers(br.Loss(inconclusive=0.1))


def test_the_triangle_is_walked_by_keys_and_one_patient_has_a_next_step(page: Any) -> None:
    load_example(page)
    page.fill("#patient-n", "4")
    expect(page.locator("#patient h3").first).to_have_text("Test once more: either result settles it.")
    page.focus("#triangle [aria-pressed=true]")
    for key, pair in (
        ("+", (5, 3)),
        ("ArrowUp", (4, 3)),
        ("-", (5, 3)),
        ("ArrowLeft", (5, 2)),
        ("End", (5, 5)),
    ):
        page.keyboard.press(key)
        cell = page.locator("#triangle [aria-pressed=true]")
        expect(cell).to_be_focused()
        assert (cell.get_attribute("data-n"), cell.get_attribute("data-s")) == tuple(map(str, pair))
    label = page.locator("#triangle [data-n='4'][data-s='2']").get_attribute("aria-label")
    assert label.endswith("%, inconclusive")
    assert label.startswith("2 positive of 4: 43")


def test_pinned_settings_say_who_gets_another_answer(page: Any) -> None:
    load_example(page)
    page.click("#pin")
    before = answers(page)
    move(page, "#inconclusive", -1)
    after = expected_answers(br.Loss(inconclusive=0.1))
    moved = after["inconclusive"] - before["inconclusive"]
    pin = page.locator(".pin:not(.now)")
    expect(pin).to_contain_text(f"{moved} answers are different")
    expect(pin).to_contain_text("− negative: P004")
    pin.get_by_role("button", name="Use").click()
    page.wait_for_timeout(100)
    assert answers(page) == before


def test_rows_sort_and_open_with_their_next_step(page: Any) -> None:
    load_example(page)
    page.click("th[data-column=score] button")
    expect(page.locator("th[data-column=score]")).to_have_attribute("aria-sort", "descending")
    page.click("th[data-column=name] button")
    expect(page.locator("th[data-column=name]")).to_have_attribute("aria-sort", "ascending")
    first = page.locator("#people tbody button").first
    expect(first).to_have_text("P001")
    first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#people tbody button").first).to_have_attribute("aria-expanded", "true")
    counts, rows = screening_counts(), [row for row in br.load_screening() if row["individual"] == "P001"]
    n, s = sum(row["result"] is not None for row in rows), sum(row["result"] == 1 for row in rows)
    answer = explain(br.fit_bayes(counts), br.Loss(), n, s)
    expect(page.locator("#people .detail")).to_contain_text(answer.sentence)
    expect(page.locator("#people .detail h3").first).to_have_text(answer.next.sentence(answer.decision))


def test_each_reader_has_rates_and_a_slide_says_who_said_what(page: Any) -> None:
    load_example(page, "readers")
    expect(page.locator("#judged")).to_be_visible()
    expect(page.locator("#verdict .read")).to_contain_text("differ in how often they err", timeout=90_000)
    page.get_by_role("button", name="Use: by source").click()
    expect(page.locator("#sources-words")).to_contain_text("Berg calls too much", timeout=90_000)
    expect(page.locator("#sources-picture title")).to_have_count(5)
    page.click("#sources-table th[data-column=false_negative] button")
    expect(page.locator("#sources-table tbody tr").first).to_contain_text("Diaz")
    page.select_option("[data-source=Berg]", "1")
    expect(page.locator("#patient")).to_contain_text("A yes by Berg multiplies the odds")
    page.locator("#people tbody button").first.click()
    expect(page.locator("#people .detail li")).to_have_count(4)


def test_a_ticked_covariate_is_used_and_has_an_odds_ratio(page: Any) -> None:
    load_example(page, "wells")
    page.check("[data-covariate=temperature]")
    expect(page.locator("#odds svg")).to_have_attribute(
        "aria-label", re.compile("temperature"), timeout=120_000
    )
    expect(page.locator("#model-covariates")).to_be_checked()
    page.select_option("#profile", "high risk")
    expect(page.locator("#patient")).to_contain_text("the cheapest is", timeout=60_000)
    page.uncheck("[data-covariate=temperature]")
    expect(page.locator("#covariate-part")).to_be_hidden(timeout=60_000)


def test_one_click_uses_the_model_that_fits_better(page: Any) -> None:
    load_example(page, "wells")
    expect(page.locator("#verdict .read")).to_contain_text("27 of 150 answers change", timeout=90_000)
    before, after = answers(page), br.analyse(WELLS_FILE, br.Settings(model="correlated")).answers
    assert before != after
    page.locator("#verdict button").click()
    expect(page.locator("#model-correlated")).to_be_checked()
    wait_for_answers(page, after)
    expect(page.locator("#verdict .read")).to_have_count(0)
    page.click("#undo")
    wait_for_answers(page, before)
    expect(page.locator("#verdict .read")).to_be_visible()


def test_print_has_the_summary_and_no_settings(page: Any) -> None:
    load_example(page)
    page.emulate_media(media="print")
    for place in ("#controls", "#data", "#dock", ".patient", "#search", ".bar"):
        expect(page.locator(place)).to_be_hidden()
    for place in ("#print-title", "#verdict", "#answers", "#triangle", "#print-people"):
        expect(page.locator(place)).to_be_visible()
    expect(page.locator("#print-people")).to_contain_text("in need of another test: P003")


def test_a_plan_shows_how_far_it_is_and_can_be_stopped(page: Any) -> None:
    load_example(page)
    page.click("#plan summary")
    page.fill("#plan-width", "0.03")
    page.click("#plan-find")
    expect(page.locator("#plan-progress")).to_be_visible()
    page.click("#plan-stop")
    expect(page.locator("#plan-words")).to_have_text("Stopped.")
    expect(page.locator("#plan-progress")).to_be_hidden()
