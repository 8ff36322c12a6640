"""The front door: any table in, opened once; the columns say the model; notes stay with their run."""

from __future__ import annotations

import csv
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines import ENGINES
from tests.screening import screening_counts

import binreps as br
from binreps.cli.app import _run
from binreps.decide.indecision import risk_by_cost
from binreps.decide.predictive import predictive_counts
from binreps.notes import Note
from binreps.run import front
from binreps.study.datasets import SCREENING_FILE
from binreps.tables import files, opened
from binreps.tables.roles import PARTS, AllColumns, Columns

LONG = {"individual": "patient", "result": "test"}
ROWS = {
    "patient": [f"p{i % 20}" for i in range(97)],
    "test": ["pos" if i % 20 < 7 or i % 31 == 0 else "neg" for i in range(97)],
    "reader": [f"r{i % 3}" for i in range(97)],
}
TABLE = pa.table(ROWS)


def as_file(folder: Path) -> Path:
    path = folder / "tests.csv"
    path.write_text("\n".join([",".join(ROWS), *map(",".join, zip(*ROWS.values(), strict=True))]))
    return path


# One opening -------------------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often files are found, headers looked at, connections made, columns guessed and rows counted."""
    found: Counter[str] = Counter()

    def counting(place: Any, name: str) -> None:
        original = getattr(place, name)

        def called(*arguments: Any, **options: Any) -> Any:
            found[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(place, name, called)

    counting(duckdb, "connect")
    counting(files, "find_files")
    counting(files, "_head")
    counting(opened, "guess_columns")
    counting(opened, "tally")
    counting(opened, "counted_groups")
    return found


ONCE = {"connect": 1, "find_files": 1, "_head": 1, "guess_columns": 1}


@pytest.mark.slow
def test_a_whole_run_opens_its_file_once(calls: Counter[str], tmp_path: Path) -> None:
    assert _run(["analyse", str(as_file(tmp_path)), "--out", str(tmp_path / "out")], debug=True) == 0
    assert calls == {**ONCE, "tally": 1}
    assert len(list((tmp_path / "out").iterdir())) == 4


@pytest.mark.slow
def test_populations_are_counted_once_too(calls: Counter[str], tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    path.write_text("site,n,s\n" + "a,3,0\na,3,3\nb,3,1\nb,3,0\n" * 5)
    words = ["analyse", str(path), "--population", "site", "--out", str(tmp_path / "out")]
    assert _run(words, debug=True) == 0
    assert calls == {**ONCE, "counted_groups": 1}


@pytest.mark.parametrize("more", [[], ["--by", "reader"]])
def test_other_commands_open_their_file_once(
    calls: Counter[str], tmp_path: Path, example: Path, more: list[str]
) -> None:
    path, out = str(as_file(tmp_path)), str(tmp_path / "out.csv")
    if more:
        assert _run(["analyse", path, *more], debug=True) == 0
        assert calls == ONCE
        return
    for command in ("score", "next"):
        calls.clear()
        assert _run([command, path, "--model", str(example), "--out", out], debug=True) == 0
        assert calls == {**ONCE, "tally": 1}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return br.save_fit(br.fit_map(screening_counts()), tmp_path_factory.mktemp("fit") / "fit.json")


@pytest.mark.slow
def test_writing_later_is_one_more_opening(calls: Counter[str], tmp_path: Path) -> None:
    analysis = br.analyse(as_file(tmp_path))
    calls.clear()
    analysis.write(tmp_path / "out")
    assert calls == {"connect": 1, "find_files": 1, "_head": 1, "tally": 1}


@pytest.mark.slow
def test_the_report_lists_the_rows_that_were_written(tmp_path: Path) -> None:
    files_ = br.analyse(as_file(tmp_path)).write(tmp_path / "out")
    rows = list(csv.DictReader(files_[1].read_text(encoding="utf-8").splitlines()))
    page = files_[0].read_text(encoding="utf-8")
    listed = re.findall(r'<td class="text">(p\d+)</td>', page)
    assert listed == [row["patient"] for row in rows] == list(dict.fromkeys(ROWS["patient"]))


# Any table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.slow
def test_a_frame_is_analysed_like_its_file(engine: str, tmp_path: Path) -> None:
    from_file, from_frame = br.analyse(as_file(tmp_path)), br.analyse(ENGINES[engine](TABLE))
    assert from_frame.fit == from_file.fit
    assert from_frame.main.cells == from_file.main.cells
    assert from_frame.source.guess == from_file.source.guess
    assert from_frame.source.missing == from_file.source.missing == 0
    assert from_frame.notes == from_file.notes
    assert {note.id for note in from_file.notes} == {"source-not-used"}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, br.Table])
@pytest.mark.slow
def test_the_rows_of_a_frame_are_written_and_listed(make: Any, tmp_path: Path) -> None:
    analysis = br.analyse(make(ROWS), name="mine")
    rows = list(csv.DictReader(analysis.write(tmp_path)[1].read_text(encoding="utf-8").splitlines()))
    assert [row["patient"] for row in rows] == list(dict.fromkeys(ROWS["patient"]))
    assert "p19" in analysis.report()
    assert "<title>mine" in analysis.report()


@pytest.mark.parametrize("engine", ENGINES)
def test_fit_reads_any_engine(engine: str) -> None:
    table = ENGINES[engine](TABLE)
    assert br.fit(table, **LONG) == br.fit_bayes(br.count_table(table, **LONG))


def test_fit_reads_files_tables_and_counts(tmp_path: Path) -> None:
    path, counts = as_file(tmp_path), br.count_table(TABLE, **LONG)
    expected = br.fit_bayes(counts)
    for table in (path, str(path), [path], br.Table(ROWS)):
        assert br.fit(table, **LONG) == expected
    assert br.fit(counts) == expected
    prior = br.Prior((1, 4))
    assert br.fit(counts, prior=prior) == br.fit_bayes(counts, prior)
    assert br.fit(counts, method="median") == br.fit_median(counts)
    assert br.fit(counts, model="correlated") == br.fit_overdispersed(counts)


def test_a_population_makes_several_of_them() -> None:
    sites = {**ROWS, "site": ["a" if int(name[1:]) < 9 else "b" for name in ROWS["patient"]]}
    tables = br.count_tables(pa.table(sites), by="site", **LONG)
    assert br.fit(pa.table(sites), population="site", **LONG) == br.fit_populations(tables)
    assert br.fit(tables) == br.fit_populations(tables)
    with pytest.raises(br.OptionError, match="population is fitted by the method bayes, got 'map'"):
        br.fit(tables, method="map")


def test_fit_guesses_only_if_nothing_is_named_and_says_so() -> None:
    with pytest.warns(br.BinrepsWarning) as caught:
        guessed = br.fit(TABLE)
    assert guessed == br.fit(TABLE, **LONG)
    assert str(caught[0].message).startswith("read as one row per replicate: individual 'patient', ")
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.raises(br.OptionError, match="a long table needs individual"):
        br.fit(TABLE, result="test")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rater": "x", **LONG}, "there is no keyword 'rater'; the columns are named by individual, "),
        ({"method": "magic", **LONG}, "method must be one of average, median, map, bayes"),
        ({"method": "average", "prior": br.Prior(), **LONG}, "the method average takes no prior"),
        ({"rng": "x", **LONG}, "rng must be a numpy Generator or a whole-number seed"),
    ],
)
def test_what_fit_does_not_take(options: Any, sentence: str) -> None:
    with pytest.raises(br.OptionError, match=sentence):
        br.fit(TABLE, **options)


def test_counts_have_no_columns() -> None:
    counts = br.CountTable([3], [1])
    for call in (br.fit, br.analyse):
        with pytest.raises(br.OptionError, match="counts have no columns, so individual cannot name one"):
            call(counts, individual="patient")
        with pytest.raises(br.DataError, match="one CountTable for each population, got DataFrame"):
            call({"a": pd.DataFrame(ROWS)})
    with pytest.raises(br.OptionError, match="the truth of counts must be a CountTable, got str"):
        br.analyse(counts, truth="status")
    with pytest.raises(br.OptionError, match="must be the name of its column, got a CountTable"):
        br.analyse(TABLE, truth=counts)


def test_a_frame_in_the_place_of_counts_is_named_and_not_printed() -> None:
    for call in (br.fit_bayes, br.fit_map, br.fit_average):
        with pytest.raises(br.DataError) as refused:
            call(pd.DataFrame(ROWS))
        assert "got DataFrame" in str(refused.value)
        assert "p19" not in str(refused.value)
    for options in ({"method": pd.DataFrame(ROWS)}, {"level": pd.DataFrame(ROWS)}):
        with pytest.raises(br.OptionError, match=r"got a DataFrame$"):
            br.Settings(**options)


# A ranking joined back -----------------------------------------------------------------------------------


def test_a_ranking_is_attached_like_a_fit() -> None:
    counts = br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
    fit = br.fit_bayes(counts)
    again = br.next_replicates(counts, fit, br.Loss(), cost_per_replicate=0.01, budget=20)
    people = pa.table({"id": list("abcde"), "n": [4] * 5, "s": list(range(5))})
    rows = br.attach(people, again, n="n", s="s").to_pylist()
    assert [row["rank"] for row in rows] == [None, 3, 1, 2, None]
    assert [row["measure"] for row in rows] == ["no", "5 of 18", "yes", "yes", "no"]
    assert list(rows[0]) == ["id", "n", "s", "worth", "rank", "measure"]
    with pytest.raises(br.OptionError, match="a loss decides about scores, which a NextReplicates"):
        br.attach(people, again, br.Loss(), n="n", s="s")


def test_without_a_loss_nothing_is_decided() -> None:
    fit = br.fit_bayes(br.count_table(TABLE, **LONG))
    assert br.attach(TABLE, fit, **LONG).column_names == ["patient", "n", "s", "score", "lower", "upper"]


# Notes ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_analyses_at_once_keep_their_own_notes(tmp_path: Path) -> None:
    paths = []
    for i in range(2):
        lost = "".join(f",{j % 2}\n" for j in range(i + 1))
        paths.append(tmp_path / f"{i}.csv")
        paths[-1].write_text(f"patient,test\na,1\na,1\nb,0\nb,0\n{lost}")
    together = threading.Barrier(2, timeout=60)

    def run(i: int) -> list[set[str]]:
        found = []
        for _ in range(5):
            together.wait()
            found.append({str(note) for note in br.analyse(paths[i]).notes})
        return found

    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(run, range(2))
    said = "{} without an individual in column 'patient' dropped"
    assert one == [{said.format("1 row")}] * 5
    assert two == [{said.format("2 rows")}] * 5


def test_a_note_has_an_id_and_a_sentence() -> None:
    (note,) = br.analyse(TABLE).notes
    assert note == Note("source-not-used", str(note))


# One list ------------------------------------------------------------------------------------------------


def test_the_keywords_are_the_parts() -> None:
    assert {*AllColumns.__annotations__, "truth"} == set(PARTS)
    assert set(PARTS) - set(Columns.__annotations__) == {"truth", "population"}


def test_missing_results_are_counted_in_the_same_pass(tmp_path: Path) -> None:
    wide = pa.table({"id": ["a", "b", None], "x1": [1, None, 1], "x2": [None, None, 0]})
    with_id = br.analyse(wide, individual="id", replicates=["x1", "x2"])
    assert with_id.source.missing == 3
    assert br.analyse(wide, replicates=["x1", "x2"]).source.missing == 3
    long = pa.table({"id": ["a", "a", "b", None], "x": [1, None, None, None]})
    path = tmp_path / "long.parquet"
    pq.write_table(long, path)
    for table in (long, path):
        assert br.analyse(table, individual="id", result="x").source.missing == 2
    assert br.analyse(pa.table({"n": [3], "s": [1]})).source.missing == 0


def test_the_example_has_its_missing_results() -> None:
    with front.analysing(SCREENING_FILE, truth="truth") as analysis:
        assert analysis.source.missing == 7
        assert not analysis.source.reading.table.closed
    assert analysis.source.reading.table.closed


def test_rows_that_stay_open_can_be_written_twice(tmp_path: Path) -> None:
    with front.analysing(SCREENING_FILE, truth="truth") as analysis:
        first, second = ([path.read_text() for path in analysis.write(tmp_path / name)[1:]] for name in "ab")
    assert first == second
    assert len(first[0].splitlines()) == 121


# --- what a fresh pair of eyes met -----------------------------------------------------------------------


def test_an_analysis_of_people_without_results_is_written_whole(tmp_path: Path) -> None:
    for counts in (br.CountTable([0], [0], [7]), br.CountTable([2], [1])):
        files = br.analyse(counts).write(tmp_path / str(counts.replicates))
        assert all(file.exists() for file in files)


@pytest.mark.slow
def test_the_report_expects_what_the_deciding_posterior_expects() -> None:
    counts = br.CountTable([6] * 7, range(7), [60, 12, 9, 4, 5, 7, 27])
    part = br.analyse(counts, br.Settings(model="correlated")).main
    assert part.expected["mean"][0] == pytest.approx(58.3, abs=0.5)  # 51.8 without the correlation


@pytest.mark.parametrize(
    "call",
    [
        lambda fit: br.attach(pa.table({"n": [3], "s": [1]}), fit, 0.2, n="n", s="s"),
        lambda fit: br.decision_table(fit, 0.2, 2),
        lambda fit: br.explain(fit, 0.2, 3, 1),
        lambda fit: br.check(fit, 0.2),
        lambda _: br.evaluate([0.1], [0], 0.2),
        lambda fit: br.next_replicates(fit.counts, fit, 0.2, cost_per_replicate=0.1),
        lambda fit: br.stopping_table(fit, 0.2, cost_per_replicate=0.1, max_replicates=3),
        lambda _: risk_by_cost({"a": [0.1]}, [0], loss=0.2),
        lambda _: br.plot.risks(0.2),
        lambda _: br.Settings(loss=0.2),
    ],
)
def test_a_cost_alone_is_no_loss(call: Any) -> None:
    fit = br.fit_bayes(br.CountTable([3, 3], [0, 3], [6, 4]))
    with pytest.raises(
        br.OptionError, match=r"^loss must be a Loss, such as Loss\(inconclusive=0.2\), got 0.2$"
    ):
        call(fit)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda _: br.attach(pa.table({"n": [3], "s": [1]}), "x", n="n", s="s"), "fit must be what a fit_"),
        (lambda _: br.save_fit("x", "fit.json"), "fit must be what a fit_"),
        (lambda fit: br.explain(br.fit_populations({"a": fit.counts}), br.Loss(), 3, 1), "choose one"),
        (lambda fit: br.plot.rates(br.fit_average(fit.counts)), "needs a posterior"),
        (lambda fit: br.plot.decisions(fit), "must be a Table"),
        (lambda fit: br.fit_many(fit.counts), "several CountTables, got CountTable"),
        (lambda fit: br.fit_populations({None: fit.counts}), "every population needs a name"),
        (
            lambda fit: br.attach(
                pa.table({"n": [3], "s": [0], "p": ["1"]}),
                br.fit_populations({1: fit.counts, "1": fit.counts}),
                n="n",
                s="s",
                population="p",
            ),
            "differ as text",
        ),
        (lambda _: predictive_counts(br.fit_average(br.CountTable([3], [0])), rng=1), "defined rates"),
        (
            lambda _: br.fit({"n": [3], "s": [1]}, n="n", s="s"),
            "one CountTable for each population, got list",
        ),
        (lambda fit: br.fit_bayes(fit.counts, pd.DataFrame({"a": range(1000)})), "got a DataFrame"),
    ],
)
def test_a_wrong_object_ends_in_a_sentence(call: Any, sentence: str) -> None:
    fit = br.fit_bayes(br.CountTable([3, 3], [0, 3], [6, 4]))
    with pytest.raises(br.BinrepsError, match=sentence):
        call(fit)


def test_tables_by_name_are_fitted_as_many() -> None:
    tables = {"a": br.CountTable([3, 3], [0, 3], [6, 4]), "b": br.CountTable([3], [0], [9])}
    assert br.fit_many(tables).tables == tuple(tables.values())


def test_individuals_of_another_population_are_strangers() -> None:
    rows = pd.DataFrame({"site": ["x"] * 6 + ["y"] * 6, "n": 3, "s": [0, 0, 0, 0, 0, 1, 3, 3, 3, 3, 2, 3]})
    fit = br.fit(rows, n="n", s="s", population="site")
    br.attach(rows, fit, n="n", s="s", population="site")  # no warning, which would be an error here
    with pytest.warns(br.BinrepsWarning, match="individuals that the fit has not seen"):
        br.attach(rows.assign(site=rows["site"][::-1].tolist()), fit, n="n", s="s", population="site")
