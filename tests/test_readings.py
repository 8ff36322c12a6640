"""Who said what, encoded: any ids, several readings, patterns with weights, components."""

from __future__ import annotations

import numpy as np
import pytest

from binreps import CountTable, DataError, Readings


def said(readings: Readings) -> list[dict]:
    """What each record holds: source to (no, yes), and its weight and status."""
    found = []
    for i in range(len(readings)):
        entries = range(readings.start[i], readings.start[i + 1])
        record: dict = {}
        for e in entries:
            source, yes = divmod(int(readings.code[e]), 2)
            counts = record.setdefault(readings.sources[source], [0, 0])
            counts[yes] += 1 if readings.times is None else int(readings.times[e])
        found.append((record, int(readings.weight[i]), int(readings.known[i])))
    return found


def test_ids_of_any_kind_and_results_of_any_kind() -> None:
    ids = [("a", 1), ("a", 1), 7, "x"]
    readings = Readings(ids, ["r", 2.5, "r", "r"], [True, np.nan, 0, 1.0])
    assert said(readings) == [({"r": [0, 1]}, 1, -1), ({"r": [1, 0]}, 1, -1), ({"r": [0, 1]}, 1, -1)]
    assert readings.sources == ("r", 2.5)
    assert readings.readings == 3
    assert readings.code.dtype == np.int32
    assert readings.times is None


def test_a_source_may_read_an_individual_several_times() -> None:
    readings = Readings([1, 1, 1, 1], ["a", "a", "a", "b"], [1, 1, 0, 1])
    assert said(readings) == [({"a": [1, 2], "b": [0, 1]}, 1, -1)]
    assert readings.counts == CountTable([4], [3])


def test_equal_records_are_one_with_a_weight_and_nothing_else_is() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 3, (5000, 4)).astype(float)
    matrix[matrix == 2] = np.nan
    known = np.where(rng.random(5000) < 0.2, rng.integers(0, 2, 5000), -1).astype(np.int8)
    readings = Readings.wide(matrix, "abcd", known=known)
    merged = readings.merged()
    tuples = {(*np.nan_to_num(row, nan=2), k) for row, k in zip(matrix, known, strict=True)}
    assert len(merged) == len(tuples)
    assert merged.individuals == 5000
    assert np.array_equal(merged.totals, readings.totals)
    assert merged.counts == readings.counts
    assert merged.merged() == merged
    assert readings.take(rng.permutation(5000)).merged() == merged


def test_rows_and_columns_say_the_same() -> None:
    matrix = [[1, 0, None], [0, 0, 1]]
    wide = Readings.wide(matrix, ["a", "b", "c"], known=[1, None])
    rows = [(i, s, x, k) for i, (line, k) in enumerate(zip(matrix, (1, None), strict=True))
            for s, x in zip("abc", line, strict=True)]  # fmt: skip
    long = Readings(*zip(*[row[:3] for row in rows], strict=True), known=[row[3] for row in rows])
    assert wide == long
    assert hash(wide) == hash(long)
    assert Readings.wide(matrix, ["a", "b", "c"], weight=[0, 3]).merged().individuals == 3


def test_components_are_those_of_the_graph() -> None:
    readings = Readings([1, 1, 2, 2, 3, 4], ["a", "b", "c", "d", "b", "e"], [1] * 6)
    assert readings.components.tolist() == [0, 0, 1, 1, 2]


def test_individuals_without_readings_stay() -> None:
    readings = Readings([1, 2, 2], ["a", "a", "b"], [None, 1, 0])
    assert readings.counts == CountTable([0, 2], [0, 1])
    nothing = Readings([], [], [])
    assert (nothing.individuals, nothing.readings, len(nothing.merged())) == (0, 0, 0)
    assert nothing.components.size == 0


def test_what_is_asked_about() -> None:
    one, shape = Readings.asked({"a": 1, "b": (3, 2), "c": None})
    assert shape == ()
    assert said(one) == [({"a": [0, 1], "b": [1, 2]}, 1, -1)]
    several, shape = Readings.asked([{"a": 1}, {}])
    assert shape == (2,)
    assert several.counts == CountTable([0, 1], [0, 1])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Readings([1, None], ["a", "b"], [1, 0]), "individual must not be missing, got None at posi"),
        (
            lambda: Readings([1, 2], ["a", np.nan], [1, 0]),
            "source must not be missing, got nan at position 1",
        ),
        (lambda: Readings([1, 2], ["a", "b"], [1, 2]), "result must be 0, 1 or missing, got 2 at position 1"),
        (lambda: Readings([1, 2], ["a"], [1, 1]), "source must be as long as individual"),
        (lambda: Readings([1, 2], ["a", "b"], [1]), "result must be as long as individual"),
        (lambda: Readings([1, 1], "ab", [1, 1], known=[0, 1]), "one status per individual, got both"),
        (lambda: Readings([[1], [2]], ["a", "b"], [1, 1]), "individual must be a plain list"),
        (lambda: Readings.wide([[1, 0]], ["a", "a"]), "2 different names"),
        (lambda: Readings.wide([[1, 0]], weight=[1, 2]), "weight must be as long as results"),
        (lambda: Readings.wide([1, 0]), "two dimensions"),
        (lambda: Readings.asked({"a": 2}), "source 'a' must say 0, 1, or"),
        (lambda: Readings.asked({"a": (1, 2)}), "with s ≤ n"),
        (lambda: Readings.asked(3), "ask about Readings"),
    ],
)
def test_what_cannot_be_readings_is_refused_in_a_sentence(make, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence.replace("(", r"\(")):
        make()
