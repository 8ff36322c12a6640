"""Columns are guessed where one reading stands out, and asked for where none does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from binreps import DataError, Loss, count_table, fit_average, score_file
from binreps.errors import BinrepsWarning
from binreps.tables.guess import Guess, QuestionError, guess_columns
from binreps.tables.opened import open_table
from shared_data import shared_file

LONG = {"patient": ["ann", "ann", "bob"], "test": ["pos", "neg", None]}
WIDE = {"id": [1, 2], "first": [1, 0], "second": [0, None]}


def guess_file(path: Path) -> Guess:
    """The guess for a file."""
    with open_table(path) as opened:
        return opened.guess({})


@pytest.mark.parametrize(
    ("sample", "kind", "columns"),
    [
        (LONG, "long", {"individual": "patient", "result": "test"}),
        (WIDE, "wide", {"individual": "id", "replicates": ["first", "second"]}),
        ({"a": [True, False], "b": [False, None]}, "wide", {"replicates": ["a", "b"]}),
        ({"n": [3, 4], "s": [1, 4]}, "counted", {"n": "n", "s": "s"}),
        ({"ID": ["x", "y"], "tests": ["3", "4"], "Hits": ["1", "4,0"]}, "counted", {"individual": "ID"}),
        ({"n": [3, 3], "s": [0, 1], "count": [9, 4]}, "cells", {"weight": "count"}),
        ({"n": [3, 3], "s": [0, 5]}, "counted", {"n": "n", "s": "s"}),
        ({"item": ["i", "i"], "rater": ["r", "q"], "label": ["+", "-"]}, "long", {"result": "label"}),
        ({"patient": [1, 1], "result": [1, 0], "male": [1, 1]}, "long", {"result": "result"}),
        ({"sex": ["f", "f"], "one": [1, 0], "two": [1, 0]}, "wide", {"replicates": ["one", "two"]}),
    ],
)
def test_the_usual_tables_are_recognised(sample: Any, kind: str, columns: dict[str, Any]) -> None:
    guess = guess_columns(sample)
    assert guess.kind == kind
    assert columns.items() <= guess.columns.items()
    assert str(guess).startswith("one row per")


def test_a_status_is_never_used_unasked() -> None:
    guess = guess_columns({"id": [1, 2], "n": [3, 4], "s": [1, 4], "truth": [0, 1]})
    assert "truth" not in guess.columns.values()
    (note,) = guess.notes
    assert note.id == "status-not-used"
    assert note.sentence == (
        "column 'truth' looks like a status and is not used; "
        "name it as known if it should inform the fit, or as truth if it should judge it"
    )
    assert not guess_columns({"n": [3], "s": [1], "truth": [0]}, left_out=["truth"]).notes


def test_a_rater_is_a_source() -> None:
    guess = guess_columns({"item": [1, 1], "rater": ["x", "y"], "result": [0, 1]})
    assert guess.columns == {"individual": "item", "result": "result", "source": "rater"}
    two = guess_columns({"item": [1, 1], "rater": ["x", "y"], "lab": ["a", "b"], "result": [0, 1]})
    assert "source" not in two.columns


@pytest.mark.parametrize(
    ("sample", "sentence"),
    [
        ({"a": ["x"], "b": ["z"]}, "no column holds results.*; the columns are 'a', 'b'"),
        ({}, r"no column holds results \(0/1, yes/no, pos/neg, \+/−\) or counts n and s$"),
        ({"box": ["x", "x"], "where": [7, 8], "test": [1, 0]}, "is the individual.* 'box', 'where'"),
        (
            {"test": [1, 0]},
            "column 'test' holds the results, and no column is left to say whose they are; add one",
        ),
        ({"seen": [1, 0]}, "'seen' holds 0/1, but neither its name nor its rows say that it is a result"),
        (
            {"id": [1, 1], "bag": [1, 0], "box": [1, 0]},
            r"which column holds result \(--result\); the candidates are 'bag' \(0/1\), 'box' \(0/1\)$",
        ),
        (
            {"id": [1, 1, 2], "test": ["pos", "neg", "maybe"]},
            r"column 'test' also holds 'maybe' \(1\); say which are no results \(--missing\), or give all",
        ),
        (
            {"id": [1, 2], "result": ["oui", "non"]},
            r"'result' holds 'non', 'oui': say which of them is positive \(--positive, --negative\)$",
        ),
        ({"id": [], "test": []}, "column 'test' is empty$"),
    ],
)
def test_what_is_not_clear_is_asked_for(sample: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        guess_columns(sample)


def test_replicates_that_are_numbered_alike_stand_out() -> None:
    sample = {"id": [1, 2], "test1": [0, 1], "Test 2": [1, 1], "smoker": ["yes", "no"], "male": [0, 1]}
    guess = guess_columns(sample)
    assert guess.columns["replicates"] == ["test1", "Test 2"]
    assert guess.notes == ()
    assert guess.unused == "'smoker', 'male' (a covariate by its name)"
    named = guess_columns(sample, {"replicates": ["test1", "smoker"]})
    assert named.columns["replicates"] == ["test1", "smoker"]
    assert named.notes == ()


def test_two_families_of_numbered_columns_are_a_question() -> None:
    sample = {"a1": [0, 1], "a2": [1, 1], "b1": [0, 0], "b2": [0, 1]}
    with pytest.raises(QuestionError, match="columns are numbered in two ways: 'a1', 'b1', 'a2', 'b2'"):
        guess_columns(sample)
    sample = {"reader1": [0, 1], "reader2": [1, 1], "mark1": [0, 0], "mark2": [0, 1]}
    with pytest.raises(
        QuestionError, match=r"two families .* 'reader1', 'reader2' \(0/1\) and 'mark1', 'mark2'"
    ):
        guess_columns(sample)
    given = {"covariates": ["mark1", "mark2"]}
    assert guess_columns(sample, given).columns == {**given, "replicates": ["reader1", "reader2"]}


@pytest.mark.parametrize("bad", ["1,200", "1 200", "50x", "50.5", "-5"])
def test_a_number_of_individuals_that_cannot_be_read_is_refused_and_not_left_out(
    bad: str, tmp_path: Path
) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(f'n,s,count\n3,0,"{bad}"\n3,1,50\n3,3,20\n', encoding="utf-8")
    guess = guess_file(file)
    assert guess.kind == "cells"
    with pytest.raises(DataError, match="count a whole number"):
        count_table(file, **guess.columns)


def test_a_weight_beside_individuals_is_mentioned() -> None:
    guess = guess_columns({"patient": ["a", "b"], "n": [3, 3], "s": [1, 0], "count": [5, 6]})
    assert "weight" not in guess.columns
    (note,) = guess.notes
    assert "'count'" in note.sentence


def test_decimal_commas_in_every_cell(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("n;s;count\n4,0;0,0;50,0\n4,0;1,0;7,0\n", encoding="utf-8")
    guess = guess_file(file)
    assert count_table(file, **guess.columns).individuals == 57


def test_what_the_user_names_stays() -> None:
    sample = {"id": [1, 1], "c": [1, 0], "d": [1, 0]}
    assert guess_columns(sample, {"result": "d"}).columns == {"individual": "id", "result": "d"}
    sample = {"who": [1, 1], "where": ["x", "y"], "seen": ["detected", "not"]}
    guess = guess_columns(sample, {"individual": "who", "positive": "detected"})
    assert guess.columns == {"individual": "who", "positive": "detected", "result": "seen"}
    with pytest.raises(DataError, match=r"say which column holds s .--s.; none of the others holds counts"):
        guess_columns({"n": [1, 2]}, {"n": "n"})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("periodontal.csv", "counted"),
        ("caries_counts.csv", "cells"),
        ("qpcr_goby.csv", "long"),
        ("rte.csv", "long"),
        ("restaurant.csv", "long"),
    ],
)
def test_real_files_are_recognised(name: str, kind: str) -> None:
    assert guess_file(shared_file(f"data/{name}")).kind == kind


@pytest.mark.filterwarnings("ignore:1 row above the header of")
def test_a_file_as_spreadsheet_programs_export_it(tmp_path: Path) -> None:
    """Semicolons, a byte-order mark, Windows line ends, decimal commas, a title, a column without name."""
    path = tmp_path / "export.csv"
    header = "\ufeffStudy of 2026;;;;\r\n\r\n;Patient;Test 1;Test 2;Test 3\r\n"
    path.write_bytes(f"{header}1;007;1,0;0,0;\r\n2;008;0,0;1,0;1,0\r\n".encode())
    guess = guess_file(path)
    assert guess.columns == {"individual": "Patient", "replicates": ["Test 1", "Test 2", "Test 3"]}
    counts = count_table(path, **guess.columns)
    assert sorted(zip(counts.n.tolist(), counts.s.tolist(), strict=True)) == [(2, 1), (3, 2)]


def test_text_that_a_spreadsheet_would_run_is_disarmed_in_csv_only(tmp_path: Path) -> None:
    ids = ["=1+1", "@SUM(A1)", "-2+3", "\tx", "+", "-7", "+1.5e3", "P-1", "＝1"]
    path = tmp_path / "ids.csv"
    rows = "".join(f'"{name}",{"neg" if i else "pos"}\n' for i, name in enumerate(ids))
    path.write_text(f"=who(),test\n{rows}", encoding="utf-8")
    columns = {"individual": "=who()", "result": "test"}
    with pytest.warns(BinrepsWarning, match="1 name in column '=who\\(\\)' begins or ends with a blank"):
        fit = fit_average(count_table(path, **columns))
    with pytest.warns(BinrepsWarning, match="begins or ends with a blank"):
        out = score_file(path, fit, tmp_path / "out.csv", loss=Loss(), **columns)
    read = duckdb.read_csv(str(out), all_varchar=True, header=True)
    assert read.columns[0] == "'=who()"
    assert {row[0] for row in read.fetchall()} == {
        *("'=1+1", "'@SUM(A1)", "'-2+3", "'\tx", "'＝1"),
        *("+", "-7", "+1.5e3", "P-1"),
    }
    with pytest.warns(BinrepsWarning, match="begins or ends with a blank"):
        out = score_file(path, fit, tmp_path / "out.parquet", loss=Loss(), **columns)
    assert {row[0] for row in duckdb.read_parquet(str(out)).fetchall()} == set(ids)


def test_a_column_that_may_count_individuals_is_asked_for() -> None:
    cells = {"n": [4, 4, 4], "s": [0, 1, 2], "how many": [50, 18, 6]}
    with pytest.raises(QuestionError, match=r"column 'how many' may count individuals; name it as weight"):
        guess_columns(cells)
    assert guess_columns({"n": [4, 4], "s": [0, 1], "people": [50, 18]}).columns["weight"] == "people"
    assert "weight" not in guess_columns({"n": [4, 4], "s": [1, 1], "how many": [50, 18]}).columns
    assert "weight" not in guess_columns(cells, {"n": "n", "s": "s"}).columns  # named, also by a recipe
    assert "weight" not in guess_columns({"id": ["a", "b"], "n": [4, 4], "s": [0, 1], "dose": [5, 8]}).columns


def test_more_positives_than_tests_are_asked_about() -> None:
    with pytest.raises(QuestionError, match=r"columns 'tests' and 'positives' look like n and s, .* 4 of 3;"):
        guess_columns({"id": ["a", "b"], "tests": [3, 2], "positives": [4, 1]})
