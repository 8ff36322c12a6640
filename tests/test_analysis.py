"""An analysis holds what the fits, decisions and evaluations say; its JSON, words and files say the same."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import binreps as br
from binreps.fits.populations import PopulationsFit
from binreps.show.figures import figures
from binreps.show.grammar import compact
from binreps.show.summary import summary
from binreps.show.wording import command_line, methods_paragraph, python_lines, with_interval
from binreps.study.datasets import SCREENING_FILE
from binreps.study.simulate import simulate_counts
from binreps.words import percent
from screening import screening_counts

COUNTS = screening_counts()
LOSS = br.Loss(false_negative=3, inconclusive=(0.2, 0.4))
SETTINGS = br.Settings(prior=br.Prior((1, 4)), loss=LOSS, level=0.8, replicates=3)


@pytest.fixture(scope="module")
def example() -> br.Analysis:
    return br.analyse(SCREENING_FILE, br.Settings(loss=br.Loss(inconclusive=0.2)), truth="truth")


def test_everything_comes_from_the_library() -> None:
    analysis = br.analyse(COUNTS, SETTINGS)
    fit = br.fit_bayes(COUNTS, SETTINGS.prior)
    part = analysis.main
    assert analysis.fit == fit
    assert part.decisions == br.decision_table(fit, LOSS, 3, level=0.8)
    assert part.cells["score"] == tuple(fit.score(COUNTS.n, COUNTS.s))
    assert part.cells["lower"] == tuple(fit.score_interval(COUNTS.n, COUNTS.s, level=0.8)[0])
    words = br.decision_words(LOSS.classify(fit.score(COUNTS.n, COUNTS.s)))
    assert part.cells["decision"] == tuple(words)
    for word, number in analysis.answers.items():
        assert number == sum(w for w, d in zip(COUNTS.weight, words, strict=True) if d == word)
    rates = part.rates(0.8)
    assert rates["average"][:3] == tuple(br.fit_average(COUNTS).rates)
    assert rates["map"][:3] == tuple(br.fit_map(COUNTS, br.Prior((1, 4))).rates)
    assert rates["upper"][:3] == tuple(fit.interval(0.8)[1])


def test_any_method_can_decide() -> None:
    for method in ("average", "median", "map"):
        analysis = br.analyse(COUNTS, br.Settings(method))
        assert analysis.fit == analysis.main.fits[method]
        assert set(analysis.main.cells["lower"]) == {None}
        assert analysis.main.believed == "bayes"
        assert analysis.main.rates(0.9)["lower"][0] > 0  # the Bayesian fit is there for comparison


@pytest.mark.slow
def test_correlated_replicates_can_decide() -> None:
    analysis = br.analyse(COUNTS, br.Settings(model="correlated"))
    fit = br.fit_overdispersed(COUNTS)
    assert analysis.fit == fit
    assert analysis.main.rates(0.9)["lower"][:3] == tuple(fit.interval(0.9)[0])
    assert "correlated" in analysis.main.rates(0.9).columns


def test_the_findings_are_those_of_check() -> None:
    assert br.analyse(COUNTS).findings == br.check(br.fit_bayes(COUNTS), br.Loss())


def test_the_truth_judges_and_informs_nothing(example: br.Analysis) -> None:
    assert example.fit == br.fit_bayes(COUNTS)
    n, s, truth = example.truth.n, example.truth.s, example.truth.known
    again = br.evaluate(example.fit.score(n, s), truth, example.settings.loss, example.truth.weight)
    assert example.main.judged["bayes"] == again
    assert example.main.judged["bayes"].individuals == 120


def test_a_known_status_informs_the_fit(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("id,n,s,status\na,3,0,0\nb,3,3,1\nc,3,1,\n", encoding="utf-8")
    analysis = br.analyse(path, known="status")
    assert analysis.counts.has_known
    assert not analysis.main.judged
    with pytest.raises(br.OptionError, match=r"give known='status' or truth='status', not both"):
        br.analyse(path, known="status", truth="status")


@pytest.mark.slow
def test_populations_share_the_test(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    rows = {"site": ["a"] * 60 + ["b"] * 60, "n": [3] * 120, "s": [0, 3] * 30 + [0, 0, 0, 3, 0, 1] * 10}
    pa.parquet.write_table(pa.table(rows), path)
    analysis = br.analyse(path, br.Settings(model="populations"), population="site")
    assert isinstance(analysis.fit, PopulationsFit)
    assert [part.name for part in analysis.parts] == ["a", "b"]
    assert analysis.parts[1].decisions == br.decision_table(analysis.shared["b"], br.Loss(), 3)
    assert sum(analysis.answers.values()) == 120
    files = analysis.write(tmp_path / "out")
    scores = list(csv.DictReader(files[1].read_text(encoding="utf-8").splitlines()))
    assert len(scores) == 120
    for row in scores[::7]:
        fit = analysis.shared[row["site"]]
        assert float(row["score"]) == pytest.approx(fit.score(int(row["n"]), int(row["s"])), abs=1e-12)
    content = json.loads(files[3].read_text(encoding="utf-8"))
    assert br.load_fit(files[3]) == analysis.fit
    assert [part["name"] for part in content["populations"]] == ["a", "b"]
    with pytest.raises(br.OptionError, match="the model populations is fitted by the method bayes"):
        br.analyse(path, br.Settings("map"), population="site")


def test_one_who_cannot_be_scored_is_undecided() -> None:
    analysis = br.analyse(br.CountTable([0, 3, 3], [0, 0, 3], [2, 5, 4]), br.Settings("average"))
    assert analysis.answers == {"negative": 5, "inconclusive": 0, "positive": 4, "undecided": 2}


def test_nobody_at_all_is_an_answer() -> None:
    analysis = br.analyse(br.CountTable([], []))
    assert set(analysis.main.fits) == {"bayes"}
    assert any("no estimate by the Average method" in note.sentence for note in analysis.notes)
    assert "no-average" in {note.id for note in analysis.notes}
    assert json.dumps(summary(analysis), allow_nan=False)
    assert "no binary replicates" in methods_paragraph(analysis)


def test_data_that_rest_on_the_prior_say_so() -> None:
    assert "not-identifiable" in br.analyse(br.CountTable([2, 2], [0, 2])).findings
    assert not br.analyse(COUNTS).findings.warnings


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": "mean"}, "method must be one of average, median, map, bayes, got 'mean'"),
        ({"level": 1.5}, "level must be between 0 and 1"),
        ({"loss": br.Loss(inconclusive=0)}, "thresholds follow only from costs > 0"),
        ({"replicates": 0}, "replicates must be a whole number from 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(br.OptionError, match=sentence):
        br.Settings(**settings)


def test_the_summary_holds_every_number_in_full(example: br.Analysis) -> None:
    content = json.loads(json.dumps(summary(example), allow_nan=False))
    assert content["schema"] == "binreps analysis"
    assert content["version"] == 3
    assert content["input"]["missing"] == 7
    assert len(content["input"]["files"][0]["sha256"]) == 64
    (part,) = content["populations"]
    by_name = {row["rate"]: row for row in part["rates"]}
    assert by_name["prevalence"]["bayes"] == example.fit.rates.prevalence
    assert by_name["sensitivity"]["upper"] == 1 - example.fit.interval(0.9)[0].false_negative
    assert [cell["score"] for cell in part["cells"]] == list(example.main.cells["score"])
    assert content["numerical_error"] == example.fit.error
    assert part["judged"]["bayes"]["total_risk"] == example.main.judged["bayes"].total_risk
    assert str(SCREENING_FILE.parent) not in json.dumps(content["input"])


def test_the_words_have_the_numbers(example: br.Analysis) -> None:
    words, rates = (
        {name: with_interval(one) for name, one in example.main.headline.items()},
        example.fit.rates,
    )
    lower, upper = example.fit.interval(0.9)
    assert words["prevalence"] == (
        f"{rates.prevalence:.1%} ({lower.prevalence:.1%} to {upper.prevalence:.1%})"
    )
    assert words["sensitivity"].startswith(f"{rates.sensitivity:.1%} ({1 - upper.false_negative:.1%} to")
    paragraph = methods_paragraph(example)
    for part in ("120 individuals", "473 replicates", "Beta(0.5, 0.5)", words["prevalence"], br.__version__):
        assert part in paragraph


def test_a_share_is_never_rounded_to_certainty() -> None:
    for share in (1e-12, 1e-4, 0.5, 0.9996, 1 - 1e-12):
        assert percent(share) not in ("0%", "100%", "0.0%", "100.0%")


def test_an_explanation_names_the_cheapest_answer() -> None:
    fit = br.fit_bayes(COUNTS)
    for s in range(7):
        sentence = br.explain(fit, LOSS, 6, s, new=True).sentence
        answer = br.decision_words(LOSS.classify(fit.predict(6, s)))
        assert sentence.endswith(f"the cheapest is {answer}.")
        assert f"With {s} positive of 6 tests" in sentence
    assert "gives no probability" in str(br.explain(br.fit_average(COUNTS), LOSS, 0, 0))


@pytest.mark.slow
def test_the_lines_of_python_repeat_the_analysis(tmp_path: Path) -> None:
    path = tmp_path / "it's data.csv"
    path.write_bytes(SCREENING_FILE.read_bytes())
    analysis = br.analyse(path, SETTINGS, truth="truth")
    place: dict[str, Any] = {}
    exec(python_lines(analysis), place)
    assert place["analysis"] == analysis
    counted = br.analyse(COUNTS, SETTINGS)
    exec(python_lines(counted), place)
    assert place["analysis"].fit == counted.fit
    assert place["analysis"].settings == SETTINGS


def test_the_command_names_what_was_chosen() -> None:
    analysis = br.analyse(SCREENING_FILE, SETTINGS, truth="truth")
    words = shlex.split(command_line(analysis, "a folder"))
    assert words[:2] == ["binreps", "analyse"]
    pairs = dict(zip(words[3::2], words[4::2], strict=True))
    assert pairs == {
        "--individual": "individual",
        "--result": "result",
        "--truth": "truth",
        "--prior-prevalence": "1,4",
        "--cost-false-negative": "3",
        "--cost-inconclusive": "0.2,0.4",
        "--level": "0.8",
        "--up-to": "3",
        "--out": "a folder",
    }


@pytest.mark.slow
def test_the_files_of_a_folder_agree(example: br.Analysis, tmp_path: Path) -> None:
    files = example.write(tmp_path / "new" / "folder")
    assert [file.name for file in files] == [
        "report.html",
        "scores.csv",
        "decision_table.csv",
        "summary.json",
    ]
    assert sorted(path.name for path in files[0].parent.iterdir()) == sorted(file.name for file in files)
    scores = list(csv.DictReader(files[1].read_text(encoding="utf-8").splitlines()))
    assert len(scores) == 120
    decided = [row["decision"] for row in scores]
    assert {word: decided.count(word) for word in example.answers} == example.answers
    table = list(csv.DictReader(files[2].read_text(encoding="utf-8").splitlines()))
    assert [float(row["probability"]) for row in table] == list(example.main.decisions["probability"])
    assert br.load_fit(files[3]) == example.fit
    parquet = example.write(tmp_path / "p", parquet=True)[1]
    assert np.array_equal(
        sorted(pa.parquet.read_table(parquet)["score"].to_pylist()),
        sorted(float(row["score"]) for row in scores),
    )


def test_a_folder_that_is_a_file_is_refused(example: br.Analysis, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine", encoding="utf-8")
    with pytest.raises(br.OptionError, match="must not be a file"):
        example.write(tmp_path / "x")
    assert (tmp_path / "x").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_counts_alone_are_written_cell_by_cell(tmp_path: Path) -> None:
    files = br.analyse(COUNTS).write(tmp_path)
    scores = list(csv.DictReader(files[1].read_text(encoding="utf-8").splitlines()))
    assert [int(row["weight"]) for row in scores] == COUNTS.weight.tolist()


@pytest.mark.slow
def test_columns_that_have_our_names_stay(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("id,tests,hits,score,decision\na,3,0,9,x\nb,3,3,8,y\n", encoding="utf-8")
    files = br.analyse(path, n="tests", s="hits").write(tmp_path / "out")
    rows = list(csv.DictReader(files[1].read_text(encoding="utf-8").splitlines()))
    assert [row["score"] for row in rows] == ["9", "8"]
    assert [row["binreps_decision"] for row in rows] == ["negative", "positive"]


def test_statuses_that_are_known_do_not_change_scores_and_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "known.csv"
    file.write_text("n,s,status\n4,2,1\n4,2,\n4,0,0\n4,4,1\n", encoding="utf-8")
    notes = br.analyse(file, known="status").notes
    assert any("also of individuals whose status is known" in note.sentence for note in notes)


@pytest.mark.slow
def test_warnings_of_the_data_are_notes_and_are_not_raised_again(tmp_path: Path) -> None:
    """A warning is an error in these tests."""
    file = tmp_path / "lost.csv"
    file.write_text("patient,test\na,1\na,0\nb,1\n,1\n", encoding="utf-8")
    analysis = br.analyse(file)
    assert any("without an individual" in note.sentence for note in analysis.notes)
    analysis.write(tmp_path / "out")


@pytest.mark.slow
def test_the_methods_paragraph_says_what_the_data_cannot_tell() -> None:
    negative = br.analyse(br.CountTable([3], [0], [20]))
    assert "next to nothing about the false-negative rate" in methods_paragraph(negative)
    twice = br.analyse(br.CountTable([2, 2, 2], [0, 1, 2], [20, 9, 7]))
    (first, *_) = twice.findings.warnings
    assert first.sentence in methods_paragraph(twice)
    good = br.analyse(simulate_counts(br.Rates(0.3, 0.1, 0.05), 400, [5, 6], rng=1))
    assert "cannot" not in methods_paragraph(good)


def test_an_analysis_prints_its_rates_and_findings() -> None:
    analysis = br.analyse(br.CountTable([3, 3, 3, 3], [0, 1, 2, 3], [60, 9, 6, 25]))
    assert repr(analysis) == str(analysis)
    for part in ("100 individuals", "69 negative", "sensitivity", str(analysis.findings)):
        assert part in str(analysis)


@pytest.mark.slow
def test_a_method_keeps_its_colour_from_figure_to_figure() -> None:
    drawn = {one.name: compact(one.view) for one in figures(br.analyse(screening_counts()))}
    found = {name: set(_colours(drawn[name])) for name in ("rates", "scores")}
    assert len(found["rates"]) == 3
    assert found["rates"] < found["scores"]


def _colours(spec: Any) -> Iterator[tuple[str, str]]:
    """The methods and colours of every legend of methods."""
    if isinstance(spec, dict):
        colour = spec.get("color")
        if isinstance(colour, dict) and colour.get("field") == "method":
            yield from zip(colour["scale"]["domain"], colour["scale"]["range"], strict=True)
        for one in spec.values():
            yield from _colours(one)
    elif isinstance(spec, list):
        for one in spec:
            yield from _colours(one)


def test_a_table_of_decisions_is_no_longer_than_can_be_waited_for() -> None:
    with pytest.raises(br.OptionError, match="replicates must be a whole number from 1 to 50, got 51"):
        br.Settings(replicates=51)
