"""The small table: columns, rows, printing."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from binreps import OptionError, Table
from binreps.table import format_value


def test_columns_must_have_equal_lengths() -> None:
    with pytest.raises(OptionError, match=r"^columns must have equal lengths, got {'a': 1, 'b': 2}$"):
        Table({"a": [1], "b": [1, 2]})


def test_rows_are_dictionaries_in_order() -> None:
    table = Table({"rate": ["p", "q"], "value": np.array([0.25, 0.5])})
    assert list(table) == [{"rate": "p", "value": 0.25}, {"rate": "q", "value": 0.5}]
    assert len(table) == 2
    assert table["value"] == (0.25, 0.5)
    with pytest.raises(KeyError):
        table["other"]


def test_numpy_values_become_plain_ones() -> None:
    table = Table({"n": np.array([1, 2]), "x": [np.float32(0.5), None], "ok": [np.True_, False]})
    assert [type(value) for row in table for value in row.values()] == [
        int,
        float,
        bool,
        int,
        type(None),
        bool,
    ]
    assert json.loads(json.dumps(list(table))) == list(table)


def test_printing_aligns_text_left_and_numbers_right() -> None:
    table = Table({"name": ["a", "long"], "n": [1000, 1], "p": [0.5, None]}, title="Title", note="Note.")
    assert str(table).splitlines() == [
        "Title",
        "name      n      p",
        "a     1,000  0.500",
        "long      1      –",
        "Note.",
    ]
    assert repr(table) == str(table)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "inf"),
        (0.0, "0.000"),
        (-0.25, "-0.250"),
        (5e-4, "0.001"),
        (4.9e-4, "4.9e-04"),
        (1e7, "1.0e+07"),
        (1234.5, "1234.500"),
        (10**12, "1,000,000,000,000"),
        (-1000, "-1,000"),
        (True, "True"),
        ("text", "text"),
    ],
)
def test_values_as_a_person_reads_them(value: object, text: str) -> None:
    assert format_value(value) == text


def test_html_is_escaped_everywhere() -> None:
    attack = "<script>alert('x')</script>"
    html = Table({attack: [attack]}, title=attack, note=attack)._repr_html_()
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 4


def test_html_writes_values_like_the_terminal() -> None:
    html = Table({"p": [0.25, None]})._repr_html_()
    assert "<th>p</th>" in html
    assert "<td>0.250</td>" in html
    assert "<td>–</td>" in html
    assert "caption" not in html


def test_empty_tables() -> None:
    assert (len(Table({})), list(Table({})), str(Table({}))) == (0, [], "")
    assert (len(Table({"a": []})), list(Table({"a": []})), str(Table({"a": []}))) == (0, [], "a")


def test_equal_tables_have_equal_columns_in_the_same_order() -> None:
    table = Table({"a": [1], "b": [2.5]})
    assert table == Table({"a": np.array([1]), "b": np.array([2.5])}, title="another title")
    assert hash(table) == hash(Table({"a": (1,), "b": (2.5,)}))
    assert table != Table({"b": [2.5], "a": [1]})
    assert table != Table({"a": [1], "b": [3.5]})
    assert table != {"a": (1,), "b": (2.5,)}


def test_nothing_can_be_changed() -> None:
    values = [1]
    table = Table({"a": values})
    values[0] = 2
    assert table["a"] == (1,)
    with pytest.raises(TypeError):
        table.columns["a"] = (3,)  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        table.title = "new"  # type: ignore[misc]


def test_a_table_survives_pickling_and_copying() -> None:
    table = Table({"a": [1, None]}, title="t", note="n")
    for twin in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert twin == table
        assert (twin.title, twin.note) == ("t", "n")


COLUMNS = {
    "whole": [1, None, 2**60],
    "real": [0.5, None, -1.0],
    "flag": [True, None, False],
    "text": ["a", None, "<b>"],
    "mixed": [1, None, "b"],
    "full": [1, 2, 3],
    "none": [None, None, None],
}
AS_TEXT = COLUMNS | {"mixed": ["1", None, "b"]}


def test_every_data_frame_has_the_same_values_and_nulls() -> None:
    table = Table(COLUMNS)
    assert table.to_arrow().to_pydict() == AS_TEXT
    assert table.to_polars().to_dict(as_series=False) == AS_TEXT
    frame = table.to_pandas()
    assert {
        name: [None if frame[name].isna()[i] else v for i, v in enumerate(frame[name])] for name in frame
    } == (AS_TEXT)
    assert [str(frame[name].dtype) for name in ("whole", "real", "flag", "full")] == [
        *("Int64", "Float64", "boolean", "int64")
    ]


def test_a_float_that_is_not_a_number_is_no_null() -> None:
    table = Table({"x": [float("nan"), None]})
    assert (table.to_arrow()["x"].null_count, table.to_polars()["x"].null_count()) == (1, 1)


def test_empty_tables_become_empty_data_frames() -> None:
    for table in (Table({}), Table({"a": []})):
        frames = (table.to_arrow(), table.to_pandas(), table.to_polars())
        assert [frame.shape for frame in frames] == [(0, len(table.columns))] * 3


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OptionError, match=f"^this needs {name}, which is not installed: pip install {name}$"):
        getattr(Table({"a": [1]}), f"to_{name}")()
