"""The count table: validation, merging, arithmetic, identifiability."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import FrozenInstanceError
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binreps import CountTable, DataError
from binreps.counts import UNKNOWN, whole_numbers

NAN, INF = float("nan"), float("inf")


class NAType:
    """Behaves like pandas.NA, which refuses to be compared."""

    def __eq__(self, other: object) -> object:  # type: ignore[override]
        return self

    __ne__ = __eq__  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __repr__(self) -> str:
        return "<NA>"


@st.composite
def individuals(draw: st.DrawFn) -> list[tuple[int, int, int | None]]:
    """Rows (n, s, known), many of them equal."""
    n = st.integers(0, 4)
    row = n.flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k), st.sampled_from([0, 1, None])))
    return draw(st.lists(row, max_size=12))


@st.composite
def tables(draw: st.DrawFn) -> CountTable:
    rows = draw(individuals())
    weight = [draw(st.integers(0, 10**12)) for _ in rows]
    return CountTable(*_columns(rows)[:2], weight, _columns(rows)[2])


def _columns(rows: list[tuple[int, int, int | None]]) -> tuple[list[int], list[int], list[int | None]]:
    n, s, known = zip(*rows, strict=True) if rows else ((), (), ())
    return list(n), list(s), list(known)


# --- what is refused, with its place and value ---------------------------------------------------------


@pytest.mark.parametrize("column", ["n", "s", "weight"])
@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (-1, "got -1 at position 1"),
        (2.7, "got 2.7 at position 1"),
        (NAN, "got nan at position 1"),
        (INF, "got inf at position 1"),
        (-INF, "got -inf at position 1"),
        (1e300, r"got 1e\+300 at position 1"),
        (2**53 + 1, "got 9007199254740993 at position 1"),
        (2**70, "got 1180591620717411303424 at position 1"),
        (-(2**70), "got -1180591620717411303424 at position 1"),
        (None, "got None at position 1"),
        (NAType(), "got <NA> at position 1"),
        (object, "got <class 'object'> at position 1"),
        (1j, "got complex128 values, first"),
        ("two", "got text, first '1' at position 0"),
        (b"two", "got text, first b'1' at position 0"),
    ],
)
def test_a_bad_number_is_refused_by_name_place_and_value(column: str, bad: object, sentence: str) -> None:
    values = {"n": [3, 3], "s": [0, 0], "weight": [1, 1]} | {column: [1, bad]}
    with pytest.raises(DataError, match=f"^{column} must be whole numbers .*{sentence}"):
        CountTable(**values)


@pytest.mark.parametrize("column", ["n", "s", "weight"])
@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ([True, False], "got booleans, first True at position 0"),
        (np.array([1, True], object), "got True at position 1"),
        (np.array([1, np.True_], object), "got np.True_ at position 1"),
        (np.array([1, np.complex128(1)], object), "at position 1"),
        (np.array(["2020-01-01"] * 2, "datetime64[D]"), r"got datetime64\[D\] values"),
        ([[1, 1], [1, 1]], "must have one dimension, got 2"),
        (1, "must have one dimension, got 0"),
        (iter([1, 1]), "must have one dimension, got 0"),
        ([[1], [1, 2]], "must be a plain list, got nested lists"),
        ([1, [1, 2]], "must be a plain list, got nested lists"),
    ],
)
def test_a_bad_column_is_refused_by_name(column: str, bad: object, sentence: str) -> None:
    values = {"n": [3, 3], "s": [0, 0], "weight": [1, 1]} | {column: bad}
    with pytest.raises(DataError, match=f"^{column} .*{sentence}"):
        CountTable(**values)


@pytest.mark.parametrize("column", ["s", "weight", "known"])
def test_columns_must_be_as_long_as_n(column: str) -> None:
    values = {"n": [3, 3], "s": [0, 0]} | {column: [1]}
    with pytest.raises(DataError, match=rf"^{column} must be as long as n \(2\), got 1$"):
        CountTable(**values)


@pytest.mark.parametrize("column", ["n", "s", "weight", "known"])
def test_masked_entries_are_refused_and_an_empty_mask_is_none(column: str) -> None:
    values = {"n": [3, 3], "s": [1, 1], "weight": [1, 1], "known": [1, 1]}
    masked = np.ma.masked_array(values[column], mask=[False, True])
    with pytest.raises(DataError, match=f"^{column} must not be masked, got a masked entry at position 1$"):
        CountTable(**values | {column: masked})
    assert CountTable(**values | {column: np.ma.masked_array(values[column])}) == CountTable(**values)


def test_more_positives_than_replicates_are_refused() -> None:
    with pytest.raises(DataError, match=r"^s must be ≤ n, got s = 4 with n = 3 at position 1$"):
        CountTable([5, 3], [5, 4])


@pytest.mark.parametrize("bad", [2, -1, 0.5, "yes", "1", INF, 2**70, [1]])
def test_a_bad_status_is_refused(bad: object) -> None:
    known = np.empty(2, object)
    known[:] = [0, None]
    known[1] = bad
    with pytest.raises(DataError, match=r"^known must be 0, 1 or missing, got .* at position 1$"):
        CountTable([3, 3], [0, 0], known=known)


@pytest.mark.parametrize("bad", [[[0, 1]], [[0], [0, 1]], 1])
def test_a_bad_column_of_statuses_is_refused(bad: object) -> None:
    with pytest.raises(DataError, match=r"^known must"):
        CountTable([3, 3], [0, 0], known=bad)


def test_the_total_weight_has_an_exact_limit() -> None:
    assert CountTable([1, 2], [0, 0], weight=[2**53 - 1, 1]).individuals == 2**53
    for weight in ([2**53, 1], [2**53] * 2, [2**53] * 2000):  # 2000 × 2^53 overflows 64 bits
        with pytest.raises(DataError, match=r"^weight must sum to at most 2\^53 individuals, got"):
            CountTable([3] * len(weight), [0] * len(weight), weight=weight)


# --- what is accepted ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.uint64, np.float16, np.float32, np.longdouble, object]
)
def test_every_kind_of_number_means_the_same(kind: type) -> None:
    n, s, weight = (np.array(values, kind) for values in ([3, 5], [1, 4], [2, 1]))
    assert CountTable(n, s, weight) == CountTable([3, 5], [1, 4], [2, 1])


def test_statuses_may_be_written_in_every_usual_way() -> None:
    expected = [UNKNOWN, 0, 1]
    for null in (None, NAN, np.nan, NAType()):
        for no, yes in ((0, 1), (False, True), (0.0, 1.0), (np.int64(0), np.int64(1)), (np.False_, np.True_)):
            known = np.array([null, no, yes], object)
            assert CountTable([3] * 3, [1] * 3, known=known).known.tolist() == expected
    for array in (np.array([NAN, 0, 1]), np.array([NAN, 0, 1], np.float32), [None, 0, True]):
        assert CountTable([3] * 3, [1] * 3, known=array).known.tolist() == expected


def test_large_cells_are_kept_exactly() -> None:
    counts = CountTable([10**6], [10**6 - 1], weight=[10**12])
    assert counts.individuals == 10**12
    assert counts.replicates == 10**18
    assert counts.positives == 10**18 - 10**12
    many = CountTable([2**53], [2**53], weight=[2**53])
    assert many.replicates == many.positives == 2**106


def test_no_replicates_are_legal() -> None:
    counts = CountTable([0, 0, 2], [0, 0, 1])
    assert counts.table()["weight"] == (2, 1)
    assert counts.individuals == 3


def test_the_empty_table() -> None:
    empty = CountTable([], [])
    assert len(empty) == empty.individuals == empty.replicates == empty.positives == 0
    assert not empty.identifiable
    assert not empty.has_known
    assert empty == CountTable([5], [5], weight=[0])
    assert empty + CountTable([3], [1]) == CountTable([3], [1])
    assert str(empty) == "CountTable: 0 individuals, 0 replicates, 0 cells"


# --- merging, sorting, adding --------------------------------------------------------------------------


@given(individuals())
@settings(deadline=None)
def test_cells_are_the_sorted_distinct_rows_with_their_number(
    rows: list[tuple[int, int, int | None]],
) -> None:
    n, s, known = _columns(rows)
    counts = CountTable(n, s, known=known)
    expected = sorted((n, s, UNKNOWN if t is None else t, w) for (n, s, t), w in Counter(rows).items())
    assert list(zip(counts.n, counts.s, counts.known, counts.weight, strict=True)) == expected
    assert (counts.individuals, counts.replicates, counts.positives) == (len(rows), sum(n), sum(s))
    assert counts.has_known == any(t is not None for t in known)
    assert counts.fully_known == all(t is not None for t in known)


@given(individuals(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_individuals_does_not_matter(
    rows: list[tuple[int, int, int | None]], random: Random
) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = (CountTable(n, s, known=t) for n, s, t in map(_columns, (rows, shuffled)))
    assert one == other
    assert hash(one) == hash(other)


def test_cells_of_weight_0_vanish() -> None:
    assert CountTable([3, 4], [1, 1], weight=[0, 2]) == CountTable([4], [1], weight=[2])


@given(tables(), tables(), tables())
@settings(max_examples=50, deadline=None)
def test_addition_is_commutative_and_associative(a: CountTable, b: CountTable, c: CountTable) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b).individuals == a.individuals + b.individuals
    assert (a + b).forget_known() == a.forget_known() + b.forget_known()


def test_only_count_tables_can_be_added() -> None:
    with pytest.raises(TypeError):
        CountTable([3], [1]) + 1  # type: ignore[operator]


@given(tables())
@settings(max_examples=50, deadline=None)
def test_a_table_is_rebuilt_from_its_own_columns(counts: CountTable) -> None:
    assert CountTable(counts.n, counts.s, counts.weight, counts.known) == counts
    assert pickle.loads(pickle.dumps(counts)) == counts


def test_equality_looks_at_every_column() -> None:
    counts = CountTable([3], [1], [2], [0])
    others = [
        CountTable([4], [1], [2], [0]),
        CountTable([3], [2], [2], [0]),
        CountTable([3], [1], [3], [0]),
        CountTable([3], [1], [2], [1]),
        CountTable([3], [1], [2]),
        "CountTable",
    ]
    assert all(counts != other for other in others)
    assert counts == CountTable([3, 3], [1, 1], known=[False, 0.0])
    assert len({counts, CountTable([3, 3], [1, 1], known=[0, 0])}) == 1


def test_forgetting_merges_what_only_status_told_apart() -> None:
    counts = CountTable([3, 3, 3], [1, 1, 1], known=[0, 1, None])
    assert len(counts) == 3
    assert counts.forget_known() == CountTable([3], [1], weight=[3])


# --- immutability --------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["n", "s", "weight", "known"])
def test_nothing_can_be_changed(column: str) -> None:
    counts = CountTable([3, 4], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        getattr(counts, column)[0] = 0
    with pytest.raises(FrozenInstanceError):
        setattr(counts, column, np.array([1]))


def test_the_table_does_not_share_memory_with_its_input() -> None:
    n, s, weight, known = np.array([3]), np.array([1]), np.array([1]), np.array([0], np.int8)
    counts = CountTable(n, s, weight, known)
    for column in (n, s, weight, known):
        column[0] = 1
    assert counts == CountTable([3], [1], [1], [0])


# --- identifiability -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "known", "identifiable"),
    [
        ([2, 2, 1, 0], None, False),
        ([1], None, False),
        ([2, 3], None, True),
        ([2, 0, 3], None, True),
        ([1, 1], [0, 1], True),
        ([1, 1, 1], [0, 1, None], True),
        ([0, 0, 1], [0, 1, None], False),  # statuses without a replicate say nothing about the test
        ([1, 0, 1], [0, 1, None], False),
        ([9, 9], [0, 0], False),  # nothing from the other class
        ([9, 1], [1, None], False),
        ([1, 2], [1, None], True),  # one rate known: two moments give the other two
        ([0, 2], [1, None], False),
        ([9, 3], [1, None], True),
        ([3, 2], [0, 0], False),
    ],
)
def test_identifiability(n: list[int], known: list[int | None] | None, identifiable: bool) -> None:
    assert CountTable(n, [0] * len(n), known=known).identifiable is identifiable


def test_cells_of_weight_0_do_not_identify() -> None:
    assert not CountTable([2, 3], [1, 1], weight=[5, 0]).identifiable


# --- printing ------------------------------------------------------------------------------------------


def test_printing() -> None:
    counts = CountTable([3, 3], [1, 1], weight=[999, 1], known=[0, None])
    assert repr(counts).splitlines() == [
        "CountTable: 1,000 individuals, 3,000 replicates, 2 cells",
        "n  s  weight  known",
        "3  1       1      –",
        "3  1     999      0",
    ]
    assert "known" not in repr(counts.forget_known())
    assert "<td>999</td>" in counts._repr_html_()


def test_a_long_table_prints_in_one_line() -> None:
    counts = CountTable([40] * 41, range(41))
    assert repr(counts) == "CountTable: 41 individuals, 1,640 replicates, 41 cells"


# --- whole_numbers, for arguments of any shape ---------------------------------------------------------


def test_whole_numbers_keep_their_shape() -> None:
    assert whole_numbers("n", 3).shape == ()
    assert whole_numbers("n", [[1, 2.0]]).tolist() == [[1, 2]]
    for bad in (-1, [[1, 2.5]], [[1], [1, 2]], None, "3", True):
        with pytest.raises(DataError, match=r"^n must be"):
            whole_numbers("n", bad)
