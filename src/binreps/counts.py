"""The count table: all that a fit needs to know of the data, validated once, here.

Every likelihood in binreps depends on the data only through w(n, s), the number of individuals with n
replicates of which s are positive: the sufficient statistic. A table of 10⁹ individuals is as small as
one of 50.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binreps.errors import DataError
from binreps.table import Table

UNKNOWN = -1
"""How `CountTable.known` marks an individual whose status is not known."""

_LARGEST = 2**53  # whole numbers up to here are exact as floats, which is what the fits compute with


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CountTable:
    """How many individuals have n replicates of which s are positive.

    Build it from individuals (one entry each) or from cells with a weight: equal cells are merged, cells
    are sorted by (n, s, known), and cells of weight 0 vanish.

    Parameters
    ----------
    n, s : array_like of whole numbers
        Replicates, and how many of them are positive; 0 ≤ s ≤ n.
    weight : array_like of whole numbers, optional
        How many individuals each entry stands for; 1 each if not given.
    known : array_like, optional
        Status 0 or 1 where it is known, None or NaN where it is not. A known status *informs a fit*; to
        judge a fit, keep the truth apart and give it to `evaluate`.

    Examples
    --------
    >>> counts = CountTable([3, 3, 5], [1, 1, 4])
    >>> counts
    CountTable: 3 individuals, 11 replicates, 2 cells
    n  s  weight
    3  1       2
    5  4       1
    >>> counts + CountTable([3], [1], weight=[10]) == CountTable([3, 5], [1, 4], weight=[12, 1])
    True
    """

    n: NDArray[np.int64]
    s: NDArray[np.int64]
    weight: NDArray[np.int64]
    known: NDArray[np.int8]

    def __init__(
        self, n: ArrayLike, s: ArrayLike, weight: ArrayLike | None = None, known: ArrayLike | None = None
    ) -> None:
        n_values, s_values, weights, status = entries(n, s, weight, known)
        for name, column in zip(
            ("n", "s", "known", "weight"), _merge(n_values, s_values, status, weights), strict=True
        ):
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    @property
    def individuals(self) -> int:
        """Number of individuals, N."""
        return int(self.weight.sum())

    @property
    def replicates(self) -> int:
        """Number of replicates, Σ n."""
        return sum(w * n for w, n in zip(self.weight.tolist(), self.n.tolist(), strict=True))

    @property
    def positives(self) -> int:
        """Number of positive replicates, Σ s."""
        return sum(w * s for w, s in zip(self.weight.tolist(), self.s.tolist(), strict=True))

    @property
    def has_known(self) -> bool:
        """Whether the status of anyone is known."""
        return bool(np.any(self.known != UNKNOWN))

    @property
    def fully_known(self) -> bool:
        """Whether the status of everyone is known."""
        return bool(np.all(self.known != UNKNOWN))

    @property
    def identifiable(self) -> bool:
        """Whether the data can tell prevalence and the two error rates apart without the prior's help.

        A mixture of two binomials needs n ≥ 3 for someone of unknown status. Known statuses help: with
        replicates from both classes any n will do; with replicates from one class, its rate is known and
        n ≥ 2 is enough for the rest.
        """
        classes_measured = sum(bool(np.any((self.known == status) & (self.n > 0))) for status in (0, 1))
        unknown_n = self.n[self.known == UNKNOWN]
        return classes_measured == 2 or bool(np.any(unknown_n >= 3 - classes_measured))

    def __len__(self) -> int:
        return self.n.size

    def __add__(self, other: CountTable) -> CountTable:
        if not isinstance(other, CountTable):
            return NotImplemented
        return CountTable(
            np.concatenate([self.n, other.n]),
            np.concatenate([self.s, other.s]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.known, other.known]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountTable):
            return NotImplemented
        columns = ("n", "s", "weight", "known")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in columns)

    def __hash__(self) -> int:
        return hash((self.n.tobytes(), self.s.tobytes(), self.weight.tobytes(), self.known.tobytes()))

    def weighted(self, weight: ArrayLike) -> CountTable:
        """The same cells with other weights."""
        return CountTable(self.n, self.s, weight, self.known)

    def forget_known(self) -> CountTable:
        """The same individuals with every status unknown."""
        return CountTable(self.n, self.s, self.weight)

    def table(self) -> Table:
        """The cells, ready to print."""
        columns: dict[str, Any] = {"n": self.n, "s": self.s, "weight": self.weight}
        if self.has_known:
            columns["known"] = [None if status == UNKNOWN else status for status in self.known.tolist()]
        return Table(columns, title=str(self))

    def __str__(self) -> str:
        sizes = f"{self.individuals:,} individuals, {self.replicates:,} replicates, {len(self):,} cells"
        return f"CountTable: {sizes}"

    def __repr__(self) -> str:
        return str(self.table()) if len(self) <= 30 else str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def entries(
    n: ArrayLike, s: ArrayLike, weight: ArrayLike | None, known: ArrayLike | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """n, s, weight and known of each entry, checked, in the order in which they are given."""
    n_values = _whole_numbers("n", n)
    size = n_values.size
    s_values = _whole_numbers("s", s, size)
    too_many = np.flatnonzero(s_values > n_values)
    if too_many.size:
        i = too_many[0]
        raise DataError(f"s must be ≤ n, got s = {s_values[i]} with n = {n_values[i]} at position {i}")
    weights = np.ones(size, np.int64) if weight is None else _whole_numbers("weight", weight, size)
    status = np.full(size, UNKNOWN, np.int8) if known is None else statuses("known", known, size)
    total = weights.sum(dtype=float)
    if total > _LARGEST or weights.sum() > _LARGEST:  # the first cannot overflow, the second is exact
        raise DataError(f"weight must sum to at most 2^53 individuals, got {total:.4g}")
    return n_values, s_values, weights, status


def whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers ≥ 0 of any shape, or a sentence that says which is not."""
    array = _array(name, values)
    return _whole_numbers(name, array.ravel()).reshape(array.shape)


def _whole_numbers(name: str, values: ArrayLike, size: int | None = None) -> NDArray[np.int64]:
    """A one-dimensional array of whole numbers ≥ 0."""
    array = _one_dimensional(name, values, size)
    if array.dtype == object:
        array = _numbers_from_objects(name, array)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iuf":
        kind = {"b": "booleans", "U": "text", "S": "text"}.get(array.dtype.kind, f"{array.dtype} values")
        first = f"first {array[0].item()!r} at position 0"
        raise DataError(f"{name} must be whole numbers ≥ 0, got {kind}, {first}")
    if array.dtype.kind == "f":
        array = array.astype(float)  # half precision cannot be compared with 2^53
    wrong = ~((array >= 0) & (array <= _LARGEST))  # NaN compares false, so it is wrong too
    if array.dtype.kind == "f":
        wrong |= array != np.floor(array)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(f"{name} must be whole numbers from 0 to 2^53, got {array[i]} at position {i}")
    return array.astype(np.int64)


def _numbers_from_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An object array as numbers: what nullable data frame columns and very large integers give."""
    for i, value in enumerate(array):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise DataError(f"{name} must be whole numbers ≥ 0, got {value!r} at position {i}")
        number = float(value) if isinstance(value, np.floating) else value  # half precision, as below
        if not 0 <= number <= _LARGEST:
            raise DataError(f"{name} must be whole numbers from 0 to 2^53, got {value} at position {i}")
    return array.astype(float)  # exact up to 2^53


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    """The values as an array of any shape."""
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        i = int(np.argmax(values.mask))
        raise DataError(f"{name} must not be masked, got a masked entry at position {i}")
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{name} must be a plain list, got nested lists of unequal lengths") from None


def _one_dimensional(name: str, values: ArrayLike, size: int | None) -> NDArray[Any]:
    """The values as an array of the expected length."""
    array = _array(name, values)
    if array.ndim != 1:
        raise DataError(f"{name} must have one dimension, got {array.ndim}")
    if size is not None and array.size != size:
        raise DataError(f"{name} must be as long as n ({size}), got {array.size}")
    return array


def statuses(name: str, values: ArrayLike, size: int) -> NDArray[np.int8]:
    """Known statuses, or results, as 0, 1 or UNKNOWN."""
    array = _one_dimensional(name, values, size)
    if array.dtype == np.int8 and np.isin(array, (UNKNOWN, 0, 1)).all():
        return array
    if array.dtype.kind in "biuf" and np.all((array == 0) | (array == 1)):
        return array.astype(np.int8)
    return np.array([_status(name, value, i) for i, value in enumerate(array.tolist())], np.int8)


def _status(name: str, value: object, position: int) -> int:
    """One status: 0, 1, True, False, or a null."""
    if is_null(value):
        return UNKNOWN
    if isinstance(value, bool | int | float | np.number | np.bool_) and value in (0, 1):
        return int(value)
    raise DataError(f"{name} must be 0, 1 or missing, got {value!r} at position {position}")


def is_null(value: object) -> bool:
    """Whether a value is None, NaN or a data frame's own null (told by its name: it refuses to compare)."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _merge(
    n: NDArray[np.int64], s: NDArray[np.int64], known: NDArray[np.int8], weight: NDArray[np.int64]
) -> Iterable[NDArray[Any]]:
    """Sort by (n, s, known), add up equal cells, drop those of weight 0."""
    order = np.lexsort((known, s, n))
    n, s, known, weight = n[order], s[order], known[order], weight[order]
    new = np.ones(n.size, bool)
    new[1:] = (np.diff(n) != 0) | (np.diff(s) != 0) | (np.diff(known) != 0)
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(weight, starts) if n.size else weight
    kept = sums > 0
    return n[starts][kept], s[starts][kept], known[starts][kept], sums[kept]
