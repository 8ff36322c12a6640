"""One fit per group: the same rows in every engine, equal to fits of groups made in plain Python."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binreps.counts import CountTable
from binreps.errors import BinrepsWarning, DataError, OptionError
from binreps.fits.batch import COLUMNS, fit_many
from binreps.fits.bayes import fit_bayes
from binreps.model import Prior
from binreps.run.by import CELL_COLUMNS, fit_by
from engines import EAGER, ENGINES, Rows, rows_of

LONG = pa.table(
    {
        "assay": ["b", "b", "b", "b", "it's a", "it's a", "it's a", "c", "b", "it's a"],
        "who": [1, 1, 2, 2, 1, 1, 3, 1, 3, 3],
        "test": ["pos", "neg", "neg", None, "yes", "yes", "no", None, "pos", "no"],
    }
)
COUNTS = {
    "b": CountTable([2, 1, 1], [1, 0, 1]),
    "c": CountTable([0], [0]),
    "it's a": CountTable([2, 2], [2, 0]),
}


def wells(groups: int, size: int = 30) -> Rows:
    rng = np.random.default_rng(1)
    return [
        {"assay": g, "well": i, "result": int(rng.random() < (0.9 if i % 3 == 0 else 0.1))}
        for g in range(groups)
        for i in range(size)
        for _ in range(rng.integers(2, 5))
    ]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    return ENGINES[request.param]


@pytest.mark.slow
def test_every_engine_gives_the_rows_of_the_fits(engine) -> None:
    answer = rows_of(fit_by(engine(LONG), by="assay", individual="who", result="test"))
    assert [row["assay"] for row in answer] == ["b", "c", "it's a"]
    assert list(answer[0]) == ["assay", *COLUMNS]
    for row, expected in zip(answer, fit_many(COUNTS.values()).table(), strict=True):
        for name in COLUMNS:
            same = (
                expected[name]
                if not isinstance(expected[name], float)
                else pytest.approx(expected[name], rel=1e-9)
            )
            assert row[name] == same, name


def test_scores_come_a_row_for_each_result_of_a_group(engine) -> None:
    answer = rows_of(fit_by(engine(LONG), by="assay", individual="who", result="test", scores=True))
    assert list(answer[0]) == ["assay", *CELL_COLUMNS, *COLUMNS]
    for name, counts in COUNTS.items():
        own = [row for row in answer if row["assay"] == name]
        assert [(row["n"], row["s"], row["weight"]) for row in own] == [
            *zip(counts.n.tolist(), counts.s.tolist(), counts.weight.tolist(), strict=True)
        ]
        assert [row["score"] for row in own] == pytest.approx(fit_bayes(counts).score(counts), abs=1e-7)
        assert {row["individuals"] for row in own} == {counts.individuals}


def test_a_group_that_cannot_be_scored_keeps_its_row_and_its_reason() -> None:
    rows = pa.table({"g": ["a", "a", "b"], "n": [3, 3, 0], "s": [0, 3, 0]})
    answer = rows_of(fit_by(rows, by="g", n="n", s="s", method="average", scores=True))
    assert [(row["g"], row["n"], row["s"], row["score"]) for row in answer] == [
        ("a", 3, 0, 0.0),
        ("a", 3, 3, 1.0),
        ("b", 0, 0, None),
    ]
    assert answer[2]["reason"]


@pytest.mark.parametrize("name", ENGINES)
def test_the_answer_is_of_the_users_own_type(name: str) -> None:
    frame = ENGINES[name](LONG)
    answer = fit_by(frame, by="assay", individual="who", result="test", method="median", prefix="fit_")
    assert type(answer) is type(frame)
    assert list(rows_of(answer)[0]) == ["assay", *(f"fit_{column}" for column in COLUMNS)]


@pytest.mark.parametrize("name", EAGER)
def test_groups_keep_their_type(name: str) -> None:
    day, table = (
        datetime.date(2026, 3, 1),
        LONG.append_column("number", pa.array([7] * 9 + [2**60], pa.int64())),
    )
    table = table.append_column("day", pa.array([day] * 10, pa.date32()))
    frame = EAGER[name](table)
    answer = fit_by(frame, by=["number", "day"], individual="who", result="test", method="average")
    rows = rows_of(answer)
    assert [row["number"] for row in rows] == [7, 2**60]
    assert [row["individuals"] for row in rows] == [3, 1]
    if not isinstance(frame, pd.DataFrame):
        kinds = [
            frame.schema[k] if isinstance(frame, pl.DataFrame) else frame.schema.field(k).type
            for k in ("number", "day")
        ]
        found = [
            answer.schema[k] if isinstance(frame, pl.DataFrame) else answer.schema.field(k).type
            for k in ("number", "day")
        ]
        assert kinds == found
    else:
        assert list(answer.dtypes[["number", "day"]]) == list(frame.dtypes[["number", "day"]])
        assert list(answer.index) == [0, 1]


def test_a_duckdb_answer_is_on_the_users_own_connection() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (kind ENUM ('x', 'y'), day DATE, n INTEGER, s INTEGER)")
        connection.execute(
            "INSERT INTO t VALUES ('x', DATE '2026-01-02', 3, 1), ('y', DATE '2026-01-03', 3, 2)"
        )
        answer = fit_by(connection.table("t"), by=["kind", "day"], n="n", s="s", method="average")
        assert [str(kind) for kind in answer.types[:2]] == ["ENUM('x', 'y')", "DATE"]
        joined = connection.table("t").set_alias("t").join(answer.set_alias("a"), "kind")
        joined = joined.project("kind, prevalence").fetchall()
        assert sorted(joined) == [("x", pytest.approx(1 / 3)), ("y", pytest.approx(2 / 3))]


def test_wide_counted_and_weighted_tables() -> None:
    wide = pl.DataFrame({"g": [1, 1, 2], "a": [1, 0, 1], "b": [None, 0, 1], "c": [1, 1, 0]})
    counted = pl.DataFrame({"g": [1, 1, 2], "n": [2, 3, 3], "s": [2, 1, 2]})
    cells = pl.DataFrame({"g": [1, 1, 2, 2], "n": [2, 3, 3, 4], "s": [2, 1, 2, 1], "w": [1, 1, 1, 0]})
    answers = [
        fit_by(wide, by="g", replicates=["a", "b", "c"], method="average"),
        fit_by(counted, by="g", n="n", s="s", method="average"),
        fit_by(cells, by="g", n="n", s="s", weight="w", method="average"),
    ]
    assert answers[0]["individuals"].to_list() == [2, 1]
    assert answers[0]["prevalence"].to_list() == pytest.approx([(1 + 1 / 3) / 2, 2 / 3])
    assert answers[0].equals(answers[1])
    assert answers[0].equals(answers[2])


def test_individuals_of_counted_rows_add_up_within_their_group() -> None:
    frame = pl.DataFrame({"g": ["x", "x", "y"], "who": [1, 1, 1], "n": [2, 3, 4], "s": [1, 1, 4]})
    answer = fit_by(frame, by="g", individual="who", n="n", s="s", method="average")
    assert answer["individuals"].to_list() == [1, 1]
    assert answer["replicates"].to_list() == [5, 4]
    assert answer["prevalence"].to_list() == pytest.approx([0.4, 1])


def test_known_statuses_inform_the_fits_of_their_group() -> None:
    frame = pl.DataFrame(
        {
            "g": [1, 1, 1, 2, 2],
            "n": [3, 3, 3, 3, 3],
            "s": [0, 3, 2, 0, 3],
            "status": ["no", "yes", None, None, None],
        }
    )
    answer = fit_by(frame, by="g", n="n", s="s", known="status")
    fit = fit_bayes(CountTable([3, 3, 3], [0, 3, 2], known=[0, 1, None]))
    assert answer["prevalence"][0] == pytest.approx(fit.rates.prevalence, rel=1e-9)
    assert answer["log_evidence"][0] == pytest.approx(fit.log_evidence, rel=1e-9)


def test_options_reach_the_fits() -> None:
    frame, prior = pl.DataFrame(wells(3)), Prior((1, 9), (2, 8), (1, 3))
    told: list[tuple[int, int]] = []
    answer = fit_by(
        frame,
        by="assay",
        individual="well",
        result="result",
        prior=prior,
        level=0.5,
        workers=1,
        progress=lambda done, total: told.append((done, total)),
    )
    own = frame.filter(pl.col("assay") == 1).group_by("well").agg(n=pl.len(), s=pl.col("result").sum())
    fit = fit_bayes(CountTable(own["n"], own["s"]), prior)
    assert answer["prevalence_upper"][1] == pytest.approx(fit.interval(0.5)[1].prevalence, rel=1e-5)
    assert told[-1] == (3, 3)


def test_labels_can_be_named() -> None:
    frame = pl.DataFrame({"g": [1, 1, 2], "who": [1, 2, 3], "x": ["detected", "clean", "clean"]})
    answer = fit_by(frame, by="g", individual="who", result="x", positive="detected", method="median")
    assert answer["prevalence"].to_list() == [0.5, 0]
    assert answer["reason"][1].startswith("false_negative undefined")


# --- what is missing, and what is wrong --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow", "duckdb", "polars-lazy"])
def test_rows_without_a_group_or_an_individual_are_dropped_and_counted(name: str) -> None:
    frame = ENGINES[name](
        pa.table(
            {
                "g": ["a", None, "a", None, "a"],
                "who": [1, 1, None, None, 2],
                "test": [1, 1, 1, 1, 0],
            }
        )
    )
    with pytest.warns(BinrepsWarning) as caught:
        answer = fit_by(frame, by="g", individual="who", result="test", method="average")
    told = {str(warning.message) for warning in caught}
    assert "2 rows without a group in column 'g' dropped" in told
    assert any("without an individual in column 'who' dropped" in message for message in told)
    assert [(row["g"], row["individuals"], row["prevalence"]) for row in rows_of(answer)] == [("a", 2, 0.5)]


def test_not_a_number_is_not_a_group() -> None:
    frame = pl.DataFrame({"g": [1.5, float("nan"), None, float("nan")], "n": [2, 2, 2, 2], "s": [1, 1, 1, 1]})
    with pytest.warns(BinrepsWarning, match="^3 rows without a group"):
        answer = fit_by(frame, by="g", n="n", s="s", method="average")
    assert answer["g"].to_list() == [1.5]


def test_a_group_that_cannot_be_read_is_a_row_with_its_reason(engine) -> None:
    frame = engine(
        pa.table(
            {
                "g": ["a", "a", "b", "b", "c"],
                "who": [1, 2, 1, 2, 1],
                "test": ["pos", "neg", "maybe", "pos", "neg"],
            }
        )
    )
    rows = rows_of(fit_by(frame, by="g", individual="who", result="test", method="map"))
    assert [row["reason"] is None for row in rows] == [True, False, True]
    assert rows[1]["reason"].startswith("column 'test' must hold 0/1, true/false, positive/negative")
    assert "got 'maybe'" in rows[1]["reason"]
    assert (rows[1]["individuals"], rows[1]["prevalence"]) == (2, None)
    assert rows[0]["prevalence"] is not None


def test_statuses_that_cannot_be_read_are_reasons_too() -> None:
    frame = pl.DataFrame(
        {
            "g": [1, 1, 2, 2, 3],
            "who": [1, 1, 1, 1, 1],
            "x": [1, 0, 1, 0, 1],
            "status": ["yes", None, "yes", "no", "perhaps"],
        }
    )
    answer = fit_by(frame, by="g", individual="who", result="x", known="status")
    assert answer["reason"][0] is None
    assert answer["reason"][1] == "column 'status' must give one status per individual"
    assert answer["reason"][2].startswith("column 'status' must hold 0/1")


def test_counts_that_cannot_be_are_reasons_too() -> None:
    frame = pl.DataFrame({"g": [1, 2, 3], "n": [3, 3, -1], "s": [1, 4, 0]})
    answer = fit_by(frame, by="g", n="n", s="s", method="average")
    assert answer["reason"][0] is None
    assert (
        answer["reason"][1] == "n and s must be whole numbers with 0 ≤ s ≤ n, none missing; got n = 3, s = 4"
    )
    assert "got n = -1, s = 0" in answer["reason"][2]


def test_of_many_unreadable_groups_only_some_are_explained() -> None:
    frame = pl.DataFrame({"g": range(101), "n": [3] * 101, "s": [1] + [4] * 100})
    reasons = fit_by(frame, by="g", n="n", s="s", method="average")["reason"].to_list()
    assert reasons[0] is None
    assert sum("got n = 3, s = 4" in reason for reason in reasons[1:]) == 50
    assert reasons[-1] == "there are results or counts that cannot be read"


def test_if_no_group_can_be_read_that_is_an_error() -> None:
    frame = pl.DataFrame({"g": [1, 2], "who": [1, 1], "x": ["a", "b"]})
    with pytest.raises(DataError, match=r"^no group can be read; the first one: column 'x' must hold"):
        fit_by(frame, by="g", individual="who", result="x")


def test_an_empty_table_gives_an_empty_answer() -> None:
    frame = pl.DataFrame(schema={"g": pl.Int64, "who": pl.Int64, "x": pl.Int64})
    answer = fit_by(frame, by="g", individual="who", result="x")
    assert answer.shape == (0, 1 + len(COLUMNS))
    assert answer.schema["g"] == pl.Int64


def test_groups_of_several_types_come_as_they_are() -> None:
    frame = pd.DataFrame({"g": [1, "x", 1], "n": [2, 2, 3], "s": [0, 1, 1]}, dtype=object)
    answer = fit_by(frame, by="g", n="n", s="s", method="average")
    assert dict(zip(answer["g"], answer["individuals"], strict=True)) == {1: 2, "x": 1}


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        (
            {"by": "nothing"},
            DataError,
            "there is no column 'nothing'; the columns are 'assay', 'who', 'test'",
        ),
        ({"by": []}, OptionError, r"by must be a column's name or several, got \[\]"),
        ({"by": [3]}, OptionError, r"by must be a text or a list of texts, got \[3\]"),
        ({"by": "who"}, OptionError, "column 'who' is named for two different parts"),
        ({"by": ["assay", "assay"]}, OptionError, "column 'assay' is named for two different parts"),
        ({"method": "mode"}, OptionError, "method must be one of"),
        ({"level": 0}, OptionError, "level must be between 0 and 1"),
        ({"patient": "who"}, OptionError, "there is no keyword 'patient'"),
    ],
)
def test_what_is_wrong_for_all_is_refused(
    options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=f"^{sentence}"):
        fit_by(LONG, **{"by": "assay", "individual": "who", "result": "test", **options})


def test_a_group_with_the_name_of_a_result_needs_a_prefix() -> None:
    frame = pl.DataFrame({"cells": [1, 2], "n": [2, 2], "s": [0, 1]})
    with pytest.raises(DataError, match=r"^column 'cells' has the name of a result; give a prefix"):
        fit_by(frame, by="cells", n="n", s="s")
    answer = fit_by(frame, by="cells", n="n", s="s", prefix="fit_", method="average")
    assert answer.columns[:3] == ["cells", "fit_individuals", "fit_replicates"]


def test_a_source_is_mentioned_once() -> None:
    frame = pl.DataFrame({"g": [1, 1], "who": [1, 1], "x": [1, 0], "reader": ["a", "b"]})
    with pytest.warns(BinrepsWarning, match="^the model gives every source the same error rates") as caught:
        fit_by(frame, by="g", individual="who", result="x", source="reader", method="average")
    assert len(caught) == 1
    assert caught[0].filename == __file__


# --- any table -------------------------------------------------------------------------------------------

rows = st.lists(
    st.fixed_dictionaries(
        {
            "g": st.sampled_from(["", "a", "b'", 'c"', "d\\"]),
            "who": st.integers(-3, 3) | st.just(2**62),
            "x": st.sampled_from([0, 1, None]),
        }
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows, name=st.sampled_from(["pandas", "polars", "pyarrow", "duckdb", "polars-lazy"]))
def test_counts_are_those_of_plain_python(rows: Rows, name: str) -> None:
    people: dict[str, dict[int, list[int]]] = {}
    for row in rows:
        people.setdefault(row["g"], {}).setdefault(row["who"], []).append(row["x"])
    schema = pa.schema({"g": pa.string(), "who": pa.int64(), "x": pa.int64()})
    frame = ENGINES[name](pa.Table.from_pylist(rows, schema))
    answer = rows_of(fit_by(frame, by="g", individual="who", result="x", method="average"))
    assert [row["g"] for row in answer] == sorted(people)
    for row in answer:
        given = [[x for x in results if x is not None] for results in people[row["g"]].values()]
        cells = Counter((len(results), sum(results)) for results in given)
        assert row["individuals"] == len(given)
        assert row["replicates"] == sum(map(len, given))
        assert row["cells"] == len(cells)
        shares = [sum(results) / len(results) for results in given if results]
        assert row["prevalence"] == (pytest.approx(np.mean(shares)) if shares else None)
