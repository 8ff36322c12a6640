"""Files are read as they were meant, or a question is asked: through the library and the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from fuzz.hospital import MOST_ASKED
from fuzz.hospital import run as read_messy_files

import binreps as br
from binreps.cli.app import main
from binreps.run.recipe import load_recipe
from binreps.show.summary import summary
from binreps.tables.guess import QuestionError, guess_columns
from binreps.tables.header import header_row, table_end
from binreps.tables.profile import alike, stems, tokens_of

READERS = ["Reader 1", "Reader 2", "Reader 3", "Reader 4"]


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    """Exit code, output and errors of the program."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in arguments])
    out, err = capsys.readouterr()
    code = left.value.code
    assert isinstance(code, int)
    return code, out, err


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def readings(people: int = 40) -> dict[str, list[Any]]:
    """Four readers who err now and then."""
    columns: dict[str, list[Any]] = {"patient": [f"p{i}" for i in range(people)]}
    for j, name in enumerate(READERS):
        columns[name] = ["pos" if (i % 3 == 0) != ((i + 5 * j) % 11 == 0) else "neg" for i in range(people)]
    return columns


def scores(path: Path) -> list[dict[str, str]]:
    """The rows of a file of scores."""
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The summary of an analysis of four readers."""
    folder = tmp_path_factory.mktemp("model")
    content = summary(br.analyse(write(folder / "a.csv", readings())))
    path = folder / "summary.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# The three cases that were seen


def test_one_cell_without_a_result_costs_one_result_and_nobody_else_anything(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path
) -> None:
    data = readings()
    plain = write(tmp_path / "a.csv", data)
    assert run(capsys, "score", plain, "--model", model, "--out", tmp_path / "plain.csv")[0] == 0
    data["Reader 4"][7] = "ND"
    new = write(tmp_path / "new.csv", data)
    code, out, _ = run(capsys, "score", new, "--model", model, "--out", tmp_path / "nd.csv")
    assert code == 0
    first, *_ = out.splitlines()
    assert first.endswith("individual 'patient', replicates 'Reader 1', 'Reader 2', 'Reader 3', 'Reader 4'")
    assert "read as no result: 'nd' (1)" in out
    before, after = scores(tmp_path / "plain.csv"), scores(tmp_path / "nd.csv")
    assert [row["n"] for row in after] == ["3" if i == 7 else "4" for i in range(40)]
    assert [row for i, row in enumerate(before) if i != 7] == [row for i, row in enumerate(after) if i != 7]


def test_indeterminate_readings_leave_all_readers_and_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = readings()
    for name, i in (("Reader 2", 3), ("Reader 2", 9), ("Reader 4", 20)):
        data[name][i] = "indeterminate"
    path = write(tmp_path / "a.csv", data)
    code, out, _ = run(capsys, "analyse", path, "--json")
    content = json.loads(out)
    assert code == 0
    assert content["input"]["columns"]["replicates"] == READERS
    assert (content["data"]["replicates"], content["input"]["missing"]) == (157, 3)
    assert content["input"]["no_result"] == {"indeterminate": 3}
    assert "3 missing results ('indeterminate' 3)" in run(capsys, "read", path)[1]


def test_covariates_that_are_yes_or_no_are_no_readers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = readings()
    more = {"Smoker": ["yes", "no"] * 20, "Diabetes": ["no", "no", "no", "yes"] * 10}
    path = write(tmp_path / "a.csv", {**data, **more})
    out = tmp_path / "results"
    lines = [
        line.strip() for line in run(capsys, "analyse", path, "--out", out)[1].splitlines() if line.strip()
    ]
    assert lines[0] == "a.csv"
    assert lines[1].startswith("read as one row per individual, one column per replicate")
    assert "not used: 'Smoker', 'Diabetes' (a covariate by its name)" in lines[3]
    content = json.loads((out / "summary.json").read_text("utf-8"))
    assert content["input"]["columns"]["replicates"] == READERS
    assert content["input"]["not_used"] == dict.fromkeys(more, "a covariate by its name")
    assert "Not used: &#39;Smoker&#39;, &#39;Diabetes&#39;" in (out / "report.html").read_text("utf-8")
    fit, without = br.load_fit(out / "summary.json"), write(tmp_path / "b.csv", data)
    assert fit == br.fit(without, individual="patient", replicates=READERS)


# Questions and their answers


def test_readers_named_by_people_are_asked_for_and_the_answer_is_obeyed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    columns = readings()
    names = dict(zip(READERS, ("Smith", "Jones", "Lee", "Garcia"), strict=True))
    data = {
        names.get(name, name): [{"pos": 1, "neg": 0}.get(v, v) for v in values]
        for name, values in columns.items()
    }
    path = write(tmp_path / "a.csv", {**data, "Allergic": [0, 1] * 20})
    code, out, err = run(capsys, "analyse", path)
    assert (code, out) == (2, "")
    assert "'Smith', 'Jones', 'Lee', 'Garcia', 'Allergic' (0/1)" in err
    assert "(--replicate), and the others as covariates (--covariates)" in err
    answers = [word for name in names.values() for word in ("--replicate", name)]
    code, out, _ = run(capsys, "read", path, *answers)
    assert code == 0
    assert "replicates 'Smith', 'Jones', 'Lee', 'Garcia'\nnot used: 'Allergic' (0/1, but not of the" in out


def test_an_odd_word_is_a_question_that_three_options_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = readings()
    data["Reader 3"][4] = data["Reader 3"][6] = "weak"
    path = write(tmp_path / "a.csv", data)
    code, _, err = run(capsys, "analyse", path)
    assert code == 2
    assert "column 'Reader 3' also holds 'weak' (2); say which are no results (--missing)" in err

    def counts(*options: str) -> tuple[str, dict[str, int]]:
        saved = tmp_path / "recipe.json"
        out = run(capsys, "read", path, *options, "--save", saved, "--json")[1]
        read = br.analyse(path, br.Settings(method="average"), recipe=saved).counts
        return f"{read.positives} of {read.replicates}", json.loads(out)["no_result"]

    positives = sum(value == "pos" for name in READERS for value in data[name])
    assert counts("--missing", "weak") == (f"{positives} of 158", {"weak": 2})
    labels = ("--positive", "pos", "--positive", "weak", "--negative", "neg")
    assert counts(*labels) == (f"{positives + 2} of 160", {})
    three = [word for name in READERS if name != "Reader 3" for word in ("--replicate", name)]
    assert counts(*three)[0].endswith(" of 120")
    code, _, err = run(capsys, "read", path, "--positive", "weak")
    assert code == 2
    assert "no column holds 'weak' and one other label, or those given as negative; column 'Reader 3'" in err


@pytest.mark.parametrize(
    ("sample", "sentence"),
    [
        (
            {"id": [1, 2, 3], "a1": ["pos"] * 3, "a2": ["neg", "?", "lost"]},
            "'a2' also holds 'lost'|'a2' holds",
        ),
        (
            {"id": [1, 2], "test1": ["detected", "nd"], "test2": ["detected", "not detected"]},
            r"holds 'nd' \(1\)|'nd'",
        ),
        (
            {"id": [1, 1, 2], "r1": [0, 1, 1], "r2": [1, 1, 0]},
            r"'id' names someone in several rows.*--individual id",
        ),
        (
            {"dentist1": [0, 1], "dentist2": [1, 1], "count": [80, 9]},
            "'count' looks like a number of individuals",
        ),
        (
            {"n": [2, 2], "s": [1, 2], "read1": [0, 1], "read2": [1, 1]},
            "counts, and columns of results: 'read1'",
        ),
        (
            {"id": [1, 2, 3], "r1": [1, 2, 1], "r2": [2, 2, 1]},
            "'r1' holds '1', '2': say which of them is positive",
        ),
        (
            {"patient": list("aab"), "result": [1, 2, 9], "late": ["yes", "no", "no"]},
            "'result' is called like a result",
        ),
    ],
)
def test_what_could_be_read_in_two_ways_is_asked(sample: Any, sentence: str) -> None:
    with pytest.raises(QuestionError, match=sentence) as caught:
        guess_columns(sample)
    assert len(str(caught.value).splitlines()) == 1


def test_an_individual_who_comes_twice_late_in_the_file_is_asked_for(tmp_path: Path) -> None:
    people = [f"p{i}" for i in range(1100)]
    people[-1] = "p0"
    path = write(tmp_path / "a.csv", {"id": people, "test1": [0, 1] * 550, "test2": [0, 0] * 550})
    with pytest.raises(QuestionError, match="'id' names someone in several rows"):
        br.analyse(path)
    average = br.Settings(method="average")
    assert br.analyse(path, average, individual="id").counts.individuals == 1099
    alone = br.analyse(path, average, replicates=["test1", "test2"])
    assert alone.counts.individuals == 1100


def test_a_reader_who_has_not_read_anything_stays() -> None:
    sample = {"id": [1, 2], "reader1": [0, 1], "reader2": [1, 1], "reader3": [None, ""]}
    assert guess_columns(sample).columns["replicates"] == ["reader1", "reader2", "reader3"]


def test_columns_that_are_constant_within_an_individual_are_no_results() -> None:
    sample = {"who": list("aabb"), "tall": ["yes", "yes", "no", "no"], "seen": ["yes", "no", "no", "no"]}
    guess = guess_columns(sample, {"individual": "who"})
    assert guess.columns["result"] == "seen"
    assert guess.unused == "'tall' (yes/no, but not of the family)"


def test_the_number_of_a_reading_is_no_result() -> None:
    sample = {
        "patient": list("aabbcc"),
        "replicate": [1, 2] * 3,
        "result": ["pos", "pos", "neg", "neg", "neg", "pos"],
    }
    assert guess_columns(sample).columns == {"individual": "patient", "result": "result"}
    with pytest.raises(QuestionError, match=r"holds result \(--result\); the candidates are 'replicate'"):
        guess_columns({**sample, "replicate": [1, 1, 2, 2, 1, 1]})


def test_names_are_alike_whatever_their_spelling() -> None:
    assert tokens_of("Reader1") == tokens_of("READER_1") == tokens_of("reader #1") == ("reader", "1")
    assert tokens_of("1st reading") == ("1", "reading")
    assert stems("second reading") == stems("First Reading") == [("#", "reading")]
    assert alike("Reader 5", READERS)
    assert not alike("Age", READERS)
    assert not alike("Reader 5", [])


# Recipes


def test_a_recipe_is_kept_and_used_exactly(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = readings()
    data["Reader 1"][0] = "lost"
    path, recipe = write(tmp_path / "a.csv", data), tmp_path / "recipe.json"
    code, out, _ = run(capsys, "read", path, "--missing", "lost", "--save", recipe)
    assert code == 0
    assert "'Reader 1': replicates; holds positive/negative; no result 'lost' (1)" in out
    assert load_recipe(recipe)["columns"]["missing"] == ["lost"]
    read = json.loads(run(capsys, "analyse", path, "--recipe", recipe, "--json")[1])
    assert read["recipe"] == load_recipe(recipe)
    assert read["data"]["replicates"] == 159
    code, _, err = run(capsys, "analyse", path, "--recipe", recipe, "--replicate", "Reader 1")
    assert code == 2
    assert "a recipe names the columns, so --replicate cannot be given with it" in err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.pop("Reader 4"), "it has no column 'Reader 4'"),
        (lambda data: data.update({"Reader 5": ["neg"] * 40}), "it also has 'Reader 5'"),
        (lambda data: data["Reader 2"].__setitem__(3, "weak"), "column 'Reader 2' must hold"),
        (lambda data: data.update(patient_id=data.pop("patient")), "it has no column 'patient'"),
    ],
)
def test_a_new_file_that_differs_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path, change: Any, words: str
) -> None:
    data, out = readings(), tmp_path / "scored.csv"
    change(data)
    new = write(tmp_path / "new.csv", data)
    code, _, err = run(capsys, "score", new, "--model", model, "--out", out)
    assert code == 2
    assert words in err
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "holds no recipe"),
        ({"schema": "binreps recipe", "version": 9}, "format 9"),
        (
            {"schema": "binreps recipe", "version": 1, "columns": {"colour": "x"}, "table": []},
            "parts that there",
        ),
        ({"schema": "binreps recipe", "version": 1, "columns": {"n": 3}, "table": []}, "are not names"),
        ({"schema": "binreps recipe", "version": 1, "columns": {"n": "n"}}, "incomplete"),
        ({"recipe": "x"}, "holds no recipe that binreps wrote"),
        ([1], "holds no recipe"),
    ],
)
def test_what_is_no_recipe_is_refused(tmp_path: Path, content: Any, words: str) -> None:
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(br.DataError, match=words):
        load_recipe(path)


def test_a_question_is_shown_with_every_column(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = readings()
    data["Reader 3"][4] = "weak"
    code, out, err = run(capsys, "read", write(tmp_path / "a.csv", data), "--save", tmp_path / "r.json")
    assert code == 2
    assert "'Reader 3': ?; holds positive/negative; odd 'weak' (1)" in out
    assert "say which are no results" in err
    assert not (tmp_path / "r.json").exists()


# Sheets, titles, notes


def workbook(path: Path, sheets: dict[str, list[list[Any]]], merge: str = "") -> Path:
    """A workbook of several sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        if merge:
            sheet.merge_cells(merge)
    book.save(path)
    return path


ROWS = [["id", "test 1", "test 2"], ["a", 1, 1], ["b", 0, None], ["c", 0, 1]]


def test_sheets_are_named_and_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = workbook(tmp_path / "b.xlsx", {"Cover": [["Study"], ["2025"]], "Data": ROWS})
    assert br.analyse(path, sheet="Data").counts == br.CountTable([2, 1, 2], [2, 0, 1])
    code, _, err = run(capsys, "analyse", path, "--sheet", "Dada")
    assert (code, "has no sheet 'Dada'; its sheets are 'Cover', 'Data'" in err) == (2, True)
    with pytest.raises(
        br.DataError, match=r"sheet 'Cover' of .* has no column 'test 1'.*other sheets are 'Data'"
    ):
        br.count_table(path, replicates=["test 1", "test 2"])
    two = workbook(tmp_path / "two.xlsx", {"Data": ROWS, "Codes": [["x"]]})
    out = run(capsys, "analyse", two, "--out", tmp_path / "results")[1]
    assert "sheet 'Data' read, the first; the others are 'Codes' (--sheet)" in " ".join(out.split())
    kept = json.loads((tmp_path / "results" / "summary.json").read_text("utf-8"))
    assert kept["recipe"]["sheet"] == "Data"
    csv_file = write(tmp_path / "a.csv", {"id": ["a"], "test 1": [1], "test 2": [0]})
    with pytest.raises(br.OptionError, match="sheet names a sheet of a workbook"):
        br.analyse(csv_file, sheet="Data")


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_titles_and_notes_are_found_and_mentioned(kind: str, tmp_path: Path) -> None:
    rows = [["Ward list"], [], *ROWS, [], ["Exported by the laboratory"], ["* repeated"]]
    path = tmp_path / f"a.{kind}"
    if kind == "xlsx":
        workbook(path, {"Data": rows})
    else:
        path.write_text(
            "\n".join(",".join("" if v is None else str(v) for v in row) for row in rows), "utf-8"
        )
    analysis = br.analyse(path)
    assert analysis.counts == br.CountTable([2, 1, 2], [2, 0, 1])
    said = {note.id: note.sentence for note in analysis.notes}
    assert said["rows-above"].startswith("1 row above the header of ")
    assert said["rows-below"].startswith("2 rows below the table in ")


def test_an_individual_without_results_is_no_note(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,test 1,test 2\na,1,1\nb,0,1\nc,,\n", encoding="utf-8")
    assert br.analyse(path).counts == br.CountTable([2, 2, 0], [2, 1, 0])


def test_merged_headers_are_refused(tmp_path: Path) -> None:
    rows = [["patient", "readers", None, None], [None, "A", "B", "C"], ["p1", 1, 0, 1], ["p2", 0, 0, 1]]
    path = workbook(tmp_path / "m.xlsx", {"Data": rows}, merge="B1:D1")
    with pytest.raises(br.DataError, match=r"the header of sheet 'Data' of .* has merged cells \(B1:D1\)"):
        br.analyse(path)
    title = workbook(tmp_path / "t.xlsx", {"Data": [["Title", None, None], *ROWS]}, merge="A1:C1")
    assert br.analyse(title).counts.individuals == 3


def test_where_a_table_begins_and_ends() -> None:
    assert header_row([["x"], [], ["a", "b"], ["1", "2"]], []) == 2
    assert header_row([["a", "b"]], ["c"]) is None
    assert header_row([], []) is None
    assert table_end([["1", "2"], ["", ""], ["note", ""]], 2) == 1
    assert table_end([["1", "2"], ["", ""], ["3", "4"]], 2) == 3
    assert table_end([["1"], [""], ["2"]], 1) == 3


def test_files_with_other_columns_are_told_apart(tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv", {"id": [1], "test": [1]})
    write(tmp_path / "b.csv", {"id": [1], "result": [1]})
    with pytest.raises(
        br.DataError, match=r"b.csv has 'result' that .*a.csv has not and lacks 'test' of .*a.csv"
    ):
        br.analyse([first, tmp_path / "b.csv"])
    books = [workbook(tmp_path / f"{i}.xlsx", {"S": [[*row, i][: 3 + i] for row in ROWS]}) for i in (0, 1)]
    with pytest.raises(br.DataError, match=r"1.xlsx has '1' that .*0.xlsx has not"):
        br.analyse(books)


# The truth in a second file


def test_a_truth_in_a_second_file_is_joined_by_individual(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = readings()
    status = [int(i % 3 == 0) for i in range(40)]
    beside = br.analyse(write(tmp_path / "c.csv", {**data, "status": status}), truth="status")
    people = [*data["patient"][::-1], "stranger"]
    truth = write(tmp_path / "truth.csv", {"patient": people, "status": [*status[::-1], 1]})
    path = write(tmp_path / "a.csv", data)
    analysis = br.analyse(path, truth=f"{truth}:status")
    assert analysis.truth == beside.truth
    assert analysis.counts == beside.counts
    (note,) = [note for note in analysis.notes if note.id == "truth-unmatched"]
    assert note.sentence.endswith("1 individual of truth.csv not in the table")
    out = tmp_path / "results"
    assert run(capsys, "analyse", path, "--truth", f"{truth}:status", "--out", out)[0] == 0
    assert [row["patient"] for row in scores(out / "scores.csv")] == data["patient"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"patient": ["p0", "p0"], "status": [1, 0]},
            "must give one 'status' per individual, got two for 'p0'",
        ),
        ({"patient": ["x"], "status": [1]}, "nobody in .* is in the table"),
        ({"person": ["p0"], "status": [1]}, "has no header with a column 'patient'"),
        ({"patient": ["p0"], "other": [1]}, "has no header with a column 'status'"),
        ({"patient": ["p0"], "status": ["ill"]}, "must hold .* got 'ill'"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(tmp_path: Path, columns: Any, words: str) -> None:
    truth = write(tmp_path / "truth.csv", columns)
    with pytest.raises(br.DataError, match=words):
        br.analyse(write(tmp_path / "a.csv", readings()), truth=f"{truth}:status")


# Many messy files


@pytest.mark.slow
def test_messy_hospital_files_are_read_as_they_were_meant_or_asked_about() -> None:
    wrong: list[str] = []
    totals = read_messy_files(range(200), wrong.append)
    assert wrong == []
    assert totals["asked"] <= MOST_ASKED * 200
