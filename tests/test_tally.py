from __future__ import annotations

import datetime
import warnings
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binreps.counts import CountTable
from binreps.errors import BinrepsWarning, DataError, OptionError
from binreps.tables.opened import count_table
from engines import ENGINES, lazy_with_passes, to_duckdb

pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning")
every_engine = pytest.mark.parametrize("engine", [name for name in ENGINES if name != "pandas-index"])
few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])

IDS = {
    "integer": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1])),
    "text": (pa.string(), st.sampled_from(["", " ", "1", "01", "a", "A", "Ärztin", "O'Hara", '"', "a,b\nc"])),
}
RESULTS: dict[str, tuple[pa.DataType, dict[Any, int]]] = {
    "integer": (pa.int64(), {0: 0, 1: 1}),
    "byte": (pa.uint8(), {0: 0, 1: 1}),
    "float": (pa.float64(), {0.0: 0, 1.0: 1}),
    "boolean": (pa.bool_(), {False: 0, True: 1}),
    "word": (pa.string(), {"pos": 1, " Positive\t": 1, "+": 1, "YES": 1, "1": 1, "neg": 0, "−": 0, "No ": 0}),
}


@st.composite
def long_tables(draw: st.DrawFn) -> tuple[pa.Table, list[tuple[Any, int | None]]]:
    """A long table, and the same as a list of (individual, 0, 1 or None)."""
    id_type, ids = draw(st.sampled_from(list(IDS.values())))
    result_type, meaning = draw(st.sampled_from(list(RESULTS.values())))
    results = st.sampled_from(list(meaning))
    rows = draw(st.lists(st.tuples(st.none() | ids, st.none() | results), min_size=1, max_size=40))
    table = pa.table(
        {
            "who": pa.array([row[0] for row in rows], id_type),
            "test": pa.array([row[1] for row in rows], result_type),
        }
    )
    return table, [(who, None if result is None else meaning[result]) for who, result in rows]


def counted_by_hand(rows: list[tuple[Any, int | None]]) -> CountTable:
    """The count table without any engine."""
    results: dict[Any, list[int]] = {}
    for who, result in rows:
        if who is not None:
            results.setdefault(who, []).extend([] if result is None else [result])
    cells = Counter((len(values), sum(values)) for values in results.values())
    return CountTable([n for n, _ in cells], [s for _, s in cells], list(cells.values()))


@every_engine
@few
@given(data=long_tables())
def test_every_engine_counts_what_plain_python_counts(
    engine: str, data: tuple[pa.Table, list[tuple[Any, int | None]]]
) -> None:
    table, rows = data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BinrepsWarning)
        counts = count_table(ENGINES[engine](table), individual="who", result="test")
    assert counts == counted_by_hand(rows)
    lost = sum(who is None for who, _ in rows)
    messages = [str(warning.message) for warning in caught if warning.category is BinrepsWarning]
    about_blanks = [message for message in messages if "with a blank" in message]
    odd = {who for who, _ in rows if isinstance(who, str) and who.strip(" \t") != who}
    assert bool(about_blanks) >= bool(odd)
    assert len(messages) - len(about_blanks) == (lost > 0)
    assert all(message.startswith(f"{lost} row") for message in messages if message not in about_blanks)


@every_engine
def test_names_that_end_in_a_blank_are_others_and_said(engine: str) -> None:
    table = pa.table({"who": ["ann", "ann ", "bob", " cy", None], "test": [1, 0, 1, 1, 0]})
    blanks, nobody = (
        "^2 names in column 'who' begin or end with a blank; names",
        "1 row without an individual",
    )
    with pytest.warns(BinrepsWarning, match=blanks), pytest.warns(BinrepsWarning, match=nobody):
        counts = count_table(ENGINES[engine](table), individual="who", result="test")
    assert counts == CountTable([1, 1], [0, 1], [1, 3])


@every_engine
@few
@given(
    values=st.lists(st.lists(st.sampled_from([None, 0, 1]), min_size=3, max_size=3), min_size=1, max_size=12),
    twice=st.booleans(),
)
def test_wide_tables_count_like_long_ones(engine: str, values: list[list[int | None]], twice: bool) -> None:
    wide = pa.table(
        {
            "who": pa.array([i // 2 if twice else i for i in range(len(values))]),
            **{f"r{k}": pa.array([row[k] for row in values], pa.int8()) for k in range(3)},
        }
    )
    whole = [(i // 2 if twice else i, result) for i, row in enumerate(values) for result in row]
    replicates = ["r0", "r1", "r2"]
    native = ENGINES[engine](wide)
    assert count_table(native, individual="who", replicates=replicates) == counted_by_hand(whole)
    rows = [(i, result) for i, row in enumerate(values) for result in row]
    assert count_table(native, replicates=replicates) == counted_by_hand(rows)


@every_engine
@few
@given(
    cells=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 10**9)), min_size=1),
    dtype=st.sampled_from([pa.int16(), pa.float32(), pa.string()]),
)
def test_counts_and_cells_are_taken_as_they_stand(
    engine: str, cells: list[tuple[int, int, int]], dtype: pa.DataType
) -> None:
    n, s, weight = (list(column) for column in zip(*((a + b, b, w) for a, b, w in cells), strict=True))
    table = pa.table({"n": pa.array(n).cast(dtype), "s": pa.array(s).cast(dtype), "w": pa.array(weight)})
    native = ENGINES[engine](table)
    assert count_table(native, n="n", s="s", weight="w") == CountTable(n, s, weight)
    assert count_table(native, n="n", s="s") == CountTable(n, s)


@every_engine
def test_counts_of_one_individual_add_up(engine: str) -> None:
    table = pa.table({"who": ["a", "b", "a"], "n": [2, 3, 1], "s": [1, 0, 1]})
    native = ENGINES[engine](table)
    assert count_table(native, individual="who", n="n", s="s") == CountTable([3, 3], [2, 0])


@every_engine
def test_individuals_may_need_several_columns(engine: str) -> None:
    table = pa.table(
        {"plate": [1, 1, 2, 2, None], "well": ["A", "A", "A", "B", "B"], "test": [1, 0, 1, 0, 1]}
    )
    with pytest.warns(
        BinrepsWarning, match="1 row without an individual in column 'plate' and 'well' dropped"
    ):
        counts = count_table(ENGINES[engine](table), individual=["plate", "well"], result="test")
    assert counts == CountTable([2, 1, 1], [1, 1, 0])


@every_engine
def test_known_statuses_go_into_the_cells(engine: str) -> None:
    long = pa.table(
        {
            "who": ["a", "a", "b", "c", "c", "d"],
            "test": [1, 0, 1, 1, 0, 1],
            "status": ["pos", "pos", "neg", None, "Positive", None],
        }
    )
    expected = CountTable([2, 1, 2, 1], [1, 1, 1, 1], known=[1, 0, 1, None])
    assert count_table(ENGINES[engine](long), individual="who", result="test", known="status") == expected
    counted = pa.table({"n": [2, 1, 2, 1], "s": [1, 1, 1, 1], "status": [1, 0, 1, None]})
    assert count_table(ENGINES[engine](counted), n="n", s="s", known="status") == expected


@every_engine
def test_statuses_that_differ_within_an_individual_are_refused(engine: str) -> None:
    table = pa.table({"who": ["a", "b", "b"], "test": [1, 1, 0], "status": [1, 1, 0]})
    with pytest.raises(
        DataError, match="'status' must give one status per individual, got both for individual 'b'"
    ):
        count_table(ENGINES[engine](table), individual="who", result="test", known="status")
    table = pa.table({"who": ["a", "b"], "test": [1, 1], "status": ["pos", "ill"]})
    with pytest.raises(DataError, match=r"column 'status' must hold .* got 'ill'"):
        count_table(ENGINES[engine](table), individual="who", result="test", known="status")


@every_engine
def test_other_labels_need_the_positive_one(engine: str) -> None:
    table = pa.table({"who": [1, 1, 2, 3], "test": ["Growth ", "no growth", None, "growth"]})
    native = ENGINES[engine](table)
    expected = CountTable([2, 0, 1], [1, 0, 1])
    assert count_table(native, individual="who", result="test", positive="growth") == expected
    both = {"positive": "growth", "negative": "No growth"}
    assert count_table(native, individual="who", result="test", **both) == expected
    with pytest.raises(DataError, match=r"column 'test' must hold .* got 'Growth ', 'no growth'"):
        count_table(native, individual="who", result="test")


@pytest.mark.filterwarnings("ignore:read as no result")
@every_engine
def test_several_labels_and_words_for_no_result(engine: str) -> None:
    words = ["weak +", "POS", "neg", "trace", "n.d.", "Indeterminate", "haemolysed"]
    native = ENGINES[engine](pa.table({"who": [1, 1, 1, 1, 2, 2, 2], "test": words}))
    labels = {"positive": ["pos", "weak +"], "negative": ["neg", "trace"], "missing": "haemolysed"}
    expected = CountTable([4, 0], [2, 0])
    assert count_table(native, individual="who", result="test", **labels) == expected
    with pytest.raises(DataError, match=r"column 'test' must hold .* got 'weak .', 'trace', 'haemolysed'"):
        count_table(native, individual="who", result="test")
    labels["negative"] = None
    with pytest.raises(DataError, match=r"besides 'pos', 'weak .' there must be one label only"):
        count_table(native, individual="who", result="test", **labels)


@every_engine
def test_words_for_no_result_are_counted_and_said(engine: str) -> None:
    words = ["pos", "ND", "neg", "nd ", "invalid", "", None, "pos"]
    native = ENGINES[engine](pa.table({"who": [1, 1, 2, 2, 3, 3, 4, 4], "test": words}))
    with pytest.warns(BinrepsWarning, match=r"read as no result: 'nd' \(2\), 'invalid' \(1\)$"):
        count_table(native, individual="who", result="test")
    wide = ENGINES[engine](pa.table({"a": words, "b": words[::-1]}))
    with pytest.warns(BinrepsWarning, match=r"read as no result: 'nd' \(4\), 'invalid' \(2\)$"):
        count_table(wide, replicates=["a", "b"])


@pytest.mark.filterwarnings("ignore:read as no result")
@every_engine
def test_a_number_may_stand_for_no_result(engine: str) -> None:
    for kind in (pa.int64(), pa.float64()):
        table = pa.table({"who": [1, 1, 2, 2], "test": pa.array([1, 9, 0, 1], kind)})
        native = ENGINES[engine](table)
        for nine in (9, "9", [9]):
            counts = count_table(native, individual="who", result="test", missing=nine)
            assert counts == CountTable([1, 2], [1, 1])
    text = ENGINES[engine](pa.table({"who": [1, 1, 2, 2], "test": ["2", "9", "1", "2"]}))
    labels = {"positive": 2, "negative": "1", "missing": 9.0}
    assert count_table(text, individual="who", result="test", **labels) == CountTable([1, 2], [1, 1])


@pytest.mark.filterwarnings("ignore:read as no result")
def test_a_label_of_the_users_is_a_label_and_not_missing() -> None:
    table = pa.table({"who": [1, 1, 2], "test": ["ND", "detected", "nd"]})
    labels = {"positive": "detected", "negative": "nd"}
    assert count_table(table, individual="who", result="test", **labels) == CountTable([2, 1], [1, 0])
    plain = count_table(table, individual="who", result="test")
    assert plain == CountTable([1, 0], [1, 0])
    no = pa.table({"who": [1, 1, 2], "test": ["no", "yes", "no"]})
    assert count_table(no, individual="who", result="test", missing="No") == CountTable([1, 0], [1, 0])


def test_parts_that_no_model_uses_yet_are_said() -> None:
    table = pa.table({name: [1, 0] for name in ("who", "test", "age", "sex", "day", "plate", "reader")})
    parts = {"source": "reader", "covariates": ["age", "sex"], "time": "day", "batch": "plate"}
    with pytest.warns(BinrepsWarning) as caught:
        counts = count_table(table, individual="who", result="test", **parts)
    assert counts == count_table(table, individual="who", result="test")
    said = [str(warning.message) for warning in caught]
    assert said[0].endswith("give source='reader' to a fit, or --source, for rates of each source")
    assert said[1] == (
        "counts leave covariates out, so columns 'age', 'sex' only stay; fit and analyse use them"
    )
    assert [sentence.split()[0] for sentence in said[2:]] == ["time", "batch"]
    with pytest.raises(DataError, match="there is no column 'bmi'"):
        count_table(table, individual="who", result="test", covariates="bmi")


@every_engine
def test_a_third_label_is_refused(engine: str) -> None:
    table = pa.table({"who": [1, 1, 2], "a": ["hit", "miss", "hit"], "b": ["hit", "hit", "void"]})
    native = ENGINES[engine](table)
    with pytest.raises(DataError, match="besides 'hit' there must be one label only, got 'miss', 'void'"):
        count_table(native, replicates=["a", "b"], positive="hit")
    with pytest.raises(DataError, match="column 'b' must hold 'hit', 'miss' or missing, got 'void'"):
        count_table(native, replicates=["a", "b"], positive="hit", negative="miss")


@every_engine
def test_one_label_alone_is_enough(engine: str) -> None:
    native = ENGINES[engine](pa.table({"who": [1, 1], "test": ["hit", "hit"], "code": [2, 2]}))
    assert count_table(native, individual="who", result="test", positive="hit") == CountTable([2], [2])
    assert count_table(native, individual="who", result="test", positive="miss") == CountTable([2], [0])
    assert count_table(native, individual="who", result="code", positive=2) == CountTable([2], [2])


@every_engine
def test_numbers_may_be_labels(engine: str) -> None:
    native = ENGINES[engine](pa.table({"who": [1, 1, 2], "test": [1, 2, None]}))
    assert count_table(native, individual="who", result="test", positive=2) == CountTable([2, 0], [1, 0])
    with pytest.raises(OptionError, match="the results are numbers, so their labels must be too, got 'two'"):
        count_table(native, individual="who", result="test", positive="two")


BAD = {
    "third": (pa.array(["pos", "neg", "maybe"]), "'maybe'"),
    "half": (pa.array([0.0, 1.0, 0.5]), "0.5"),
    "two": (pa.array([0, 1, 2]), "2"),
    "hidden": (pa.array([-1, 2, 0]), "-1, 2"),
    "infinite": (pa.array([0.0, 1.0, np.inf]), "inf"),
    "date": (pa.array([datetime.date(2024, 2, 29)] * 3), "'?2024-02-29"),
    "time": (pa.array([datetime.datetime(2024, 2, 29, 1, 2)] * 3), "2024-02-29 01:02:00"),
}


@every_engine
@pytest.mark.parametrize("kind", BAD)
def test_results_that_are_neither_are_shown(engine: str, kind: str) -> None:
    values, shown = BAD[kind]
    native = ENGINES[engine](pa.table({"who": [1, 1, 1], "test": values}))
    with pytest.raises(DataError, match=f"column 'test' must hold 0/1, .* or missing, got {shown}"):
        count_table(native, individual="who", result="test")
    with pytest.raises(DataError, match=f"column 'test' must hold 0/1, .* or missing, got {shown}"):
        count_table(native, replicates=["test"])


@every_engine
@pytest.mark.parametrize(
    ("n", "s", "shown"),
    [
        ([3, 2], [1, 3], "n = 2, s = 3"),
        ([3, -1], [1, -1], "n = -1, s = -1"),
        ([3.0, 2.5], [1.0, 1.0], "n = 2.5, s = 1.0"),
        ([3.0, None], [1.0, 1.0], "n = missing, s = 1.0"),
        (["3", "many"], ["1", "2"], "n = 'many', s = '2'"),
    ],
)
def test_counts_that_cannot_be_are_shown(engine: str, n: list[Any], s: list[Any], shown: str) -> None:
    native = ENGINES[engine](pa.table({"n": n, "s": s}))
    with pytest.raises(DataError, match=f"whole numbers with 0 ≤ s ≤ n, none missing; got {shown}"):
        count_table(native, n="n", s="s")


@every_engine
def test_a_column_that_is_not_there_is_named(engine: str) -> None:
    native = ENGINES[engine](pa.table({"patient": [1], "test": [0]}))
    with pytest.raises(DataError, match="there is no column 'who'; the columns are 'patient', 'test'"):
        count_table(native, individual="who", result="test")


@every_engine
def test_empty_and_missing_results(engine: str) -> None:
    nothing = pa.table({"who": pa.array([], pa.string()), "test": pa.array([], pa.int64())})
    assert len(count_table(ENGINES[engine](nothing), individual="who", result="test")) == 0
    blank = pa.table({"who": [1, 1, 2], "test": ["", " NA", "n/a"]})
    assert count_table(ENGINES[engine](blank), individual="who", result="test") == CountTable([0, 0], [0, 0])
    not_a_number = pa.table({"who": [1, 1, 2], "test": [float("nan"), 1.0, None]})
    assert count_table(ENGINES[engine](not_a_number), individual="who", result="test") == CountTable(
        [1, 0], [1, 0]
    )


@pytest.mark.parametrize(
    "values",
    [
        pl.Series("test", ["pos", "neg", None], dtype=pl.Categorical),
        pl.Series("test", ["pos", "neg", None], dtype=pl.Enum(["neg", "pos"])),
        pl.Series("test", [Decimal(1), Decimal(0), None]),
        pl.Series("test", [True, False, None], dtype=pl.Object),
        pl.Series("test", [1, 0, None], dtype=pl.Int128),
    ],
    ids=lambda series: str(series.dtype),
)
def test_less_common_types_read_too(values: pl.Series) -> None:
    frame = pl.DataFrame({"who": [1, 1, 1]}).with_columns(values)
    assert count_table(frame, individual="who", result="test") == CountTable([2], [1])


@pytest.mark.parametrize(
    "values", [[True, None, False], [1, None, "neg"], [1.0, float("nan"), 0], ["+", pd.NA, "−"]]
)
def test_pandas_objects_read_too(values: list[Any]) -> None:
    frame = pd.DataFrame({"who": [1, 1, 1], "test": pd.Series(values, dtype=object)}).set_axis([5, 5, 7])
    assert count_table(frame, individual="who", result="test") == CountTable([2], [1])
    categories = frame.assign(test=frame["test"].astype("category"))
    assert count_table(categories, individual="who", result="test") == CountTable([2], [1])


def test_pandas_objects_that_are_no_results_are_shown() -> None:
    frame = pd.DataFrame({"who": [1, 1], "test": pd.Series([True, 0.5], dtype=object)})
    with pytest.raises(DataError, match=r"column 'test' must hold .* got '0.5'"):
        count_table(frame, individual="who", result="test")


def test_a_column_of_nulls_has_no_results() -> None:
    for engine in ("polars", "pyarrow", "pandas", "polars-lazy", "duckdb"):
        native = ENGINES[engine](pa.table({"who": [1, 1], "test": pa.nulls(2)}))
        assert count_table(native, individual="who", result="test") == CountTable([0], [0])


def test_a_source_is_mentioned() -> None:
    table = pa.table({"who": [1, 1], "test": [1, 0], "reader": ["x", "y"]})
    with pytest.warns(BinrepsWarning, match="column 'reader' is not used") as caught:
        count_table(table, individual="who", result="test", source="reader")
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "name the columns of one kind of table"),
        ({"n": "a"}, "name the columns of one kind of table"),
        ({"n": "a", "s": "b", "negative": "x"}, "n and s are counts and need none, got 'x'"),
        ({"individual": "a", "result": "b", "n": "c", "s": "d"}, "one kind of table"),
        ({"individual": "a", "result": "b", "weight": "c"}, "one kind of table"),
        ({"result": "a"}, "a long table needs individual"),
        ({"result": "a", "replicates": ["b"]}, "not both"),
        ({"individual": "a", "result": "a"}, "column 'a' is named for two different parts"),
        ({"individual": "a", "n": "b", "s": "c", "weight": "d"}, "individual cannot be given with it"),
        ({"individual": "a", "result": "b", "negative": "c"}, "negative needs positive"),
        ({"individual": 3, "result": "b"}, "columns must be given by their names, got 3"),
        ({"individual": "a", "result": "b", "positive": "X", "negative": "x "}, "different labels"),
    ],
)
def test_arguments_that_describe_no_table_are_refused(columns: dict[str, Any], sentence: str) -> None:
    table = pa.table({name: ["x", "y"] for name in "abcd"})
    with pytest.raises(OptionError, match=sentence):
        count_table(table, **columns)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"must be a dataframe \(pandas, .*\) or the name of a file, got dict"
    ):
        count_table({"who": [1]}, individual="who", result="test")


def test_counts_of_dates_are_refused() -> None:
    table = pa.table({"n": [datetime.date(2024, 2, 29)], "s": [1]})
    with pytest.raises(DataError, match="column 'n' must hold whole numbers ≥ 0, got 2024-02-29"):
        count_table(table, n="n", s="s")


def test_lazy_tables_are_read_once() -> None:
    """One query brings the cells; a second one is asked only where something is wrong."""
    lazy, passes = lazy_with_passes()
    count_table(lazy, individual="who", result="test")
    assert len(passes) == 1
    with pytest.raises(DataError):
        count_table(lazy.with_columns(test=pl.col("test") * 2), individual="who", result="test")
    assert len(passes) == 3


def test_many_rows() -> None:
    rng = np.random.default_rng(5)
    who, test = rng.integers(0, 20_000, 100_000), rng.integers(0, 2, 100_000).astype(np.int8)
    table = pa.table({"who": who, "test": test})
    n, s = np.bincount(who, minlength=20_000), np.bincount(who, weights=test, minlength=20_000)
    expected = CountTable(n[n > 0], s[n > 0].astype(int))
    for native in (table, pl.from_arrow(table), to_duckdb(table), table.to_pandas()):
        assert count_table(native, individual="who", result="test") == expected


def test_equal_column_names_are_refused() -> None:
    frame = pd.DataFrame([[1, 1, 0]], columns=["who", "who", "test"])
    with pytest.raises(DataError, match=r"column names must differ; .* 'who' 2 times"):
        count_table(frame, individual="who", result="test")
