"""Individuals with covariates: results, and what is known of everyone besides; validated once, here.

A covariate is a column of numbers, or of categories that become differences from a reference level. Each
column of the design is centred and divided by its standard deviation over individuals (ddof 0): that is the
scale of the prior of its slope. Individuals that agree in everything are merged and weighted, so that a
survey of 10⁸ people by age group and site is a few hundred rows; numbers are never binned.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binreps.counts import UNKNOWN, CountTable, entries, is_null
from binreps.errors import DataError, OptionError
from binreps.formula import Formula
from binreps.options import check_mapping, kinds_checked, real, shown
from binreps.table import Table

Float = NDArray[np.float64]

MISSING = "missing"
"""The level that a missing value gets if the user says so."""

_MOST_COLUMNS = 200  # of a design: a Laplace approximation of more has 10⁶ third derivatives
_MOST_NUMBER = 1e100  # whose square is a float
_SHOWN = 5  # levels in a message
_LOOKED_AT = 1000  # rows that tell whether numbers repeat enough to be merged


@dataclass(frozen=True)
class Numeric:
    """A covariate of numbers.

    Attributes
    ----------
    name : str
    fill : float, optional
        The mean, which a missing value takes beside a column of its own that says it was missing; None where
        no value may be missing.
    """

    name: str
    fill: float | None = None

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of its columns in the design."""
        return (self.name,) if self.fill is None else (self.name, f"{self.name}={MISSING}")

    def encode(self, values: Sequence[Any] | NDArray[Any]) -> Float:
        """The values as numbers, NaN where missing; what is no number is refused."""
        numbers = _numbers(self.name, values)
        if self.fill is None and np.any(lost := np.isnan(numbers)):
            raise _missing(self.name, int(lost.sum()), numbers.size)
        return numbers

    def columns(self, numbers: Float) -> Float:
        """The columns of the design, before they are standardised."""
        if self.fill is None:
            return numbers[:, None]
        lost = np.isnan(numbers)
        return np.column_stack([np.where(lost, self.fill, numbers), lost])

    def from_text(self, text: str) -> float:
        """A value that was typed."""
        try:
            return float(text)
        except ValueError:
            raise DataError(f"column {self.name!r} must be a number, got {text!r}") from None

    def decode(self, numbers: Float) -> list[Any]:
        """The values again, None where missing."""
        return [None if value != value else value for value in numbers.tolist()]


@dataclass(frozen=True)
class Category:
    """A covariate of categories; the first level is the reference.

    Attributes
    ----------
    name : str
    levels : tuple
        All levels of the data; `MISSING` among them if a missing value is one.
    """

    name: str
    levels: tuple[Hashable, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of its columns in the design: each level but the reference."""
        return tuple(f"{self.name}={level}" for level in self.levels[1:])

    def encode(self, values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int32]:
        """The place of each value among the levels; a new level is refused."""
        places = {level: i for i, level in enumerate(self.levels)}
        found, where = _distinct(values)
        if any(is_null(value) for value in found) and MISSING not in places:
            lost = sum(is_null(found[i]) for i in where)
            raise _missing(self.name, lost, len(where))
        codes = [places.get(MISSING if is_null(value) else value, -1) for value in found]
        if -1 in codes:
            rule = f"must be one of the levels of the study ({_listed(self.levels)})"
            raise DataError(f"column {self.name!r} {rule}, got {shown(found[codes.index(-1)])}")
        return np.array(codes, np.int32)[where]

    def columns(self, codes: NDArray[np.int32]) -> Float:
        """The columns of the design, before they are standardised."""
        return np.asarray(codes[:, None] == np.arange(1, len(self.levels)), dtype=float)

    def from_text(self, text: str) -> Hashable:
        """The level that was typed; `encode` refuses one that is none."""
        return next((level for level in self.levels if str(level) == text), text)

    def decode(self, codes: NDArray[np.int32]) -> list[Any]:
        """The values again, None where missing."""
        return [None if self.levels[i] == MISSING else self.levels[i] for i in codes.tolist()]


Covariate = Numeric | Category


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CovariateTable:
    """How many individuals have n replicates, s of them positive, and these covariates.

    Parameters
    ----------
    n, s : array_like of whole numbers
        Replicates, and how many of them are positive; 0 ≤ s ≤ n.
    covariates : mapping of name to array_like
        One value per entry: numbers (booleans are 0 and 1), or text, which makes a category. None is legal:
        an empty mapping.
    weight : array_like of whole numbers, optional
        How many individuals each entry stands for; 1 each if not given.
    known : array_like, optional
        Status 0 or 1 where it is known, None or NaN where it is not. It informs a fit.
    reference : mapping of name to level, optional
        The level that others are compared with, by default the most frequent one. Naming one makes a
        category of a column of numbers.
    missing_covariates : {"refuse", "level"}
        What becomes of missing values: refused, or made a level of their own. A number that is missing then
        takes the mean, beside a column of its own.
    formula : str, optional
        The columns of the design, such as `"age + C(site)"`, from the covariates that it names; needs the
        extra `formula`. It is run as code.

    Examples
    --------
    >>> table = CovariateTable([2, 2, 3], [0, 2, 1], {"age": [40, 61, 55], "site": ["A", "B", "A"]})
    >>> table
    CovariateTable: 3 individuals, 7 replicates, 2 covariates
    n  s     age  site  weight
    2  0  40.000  A          1
    2  2  61.000  B          1
    3  1  55.000  A          1
    >>> table.terms
    ('age', 'site=B')
    """

    n: NDArray[np.int64]
    s: NDArray[np.int64]
    weight: NDArray[np.int64]
    known: NDArray[np.int8]
    covariates: tuple[Covariate, ...]
    values: tuple[NDArray[Any], ...]
    mean: Float
    sd: Float
    formula: Formula | None

    def __init__(
        self,
        n: ArrayLike,
        s: ArrayLike,
        covariates: Mapping[str, Any],
        weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
        *,
        reference: Mapping[str, Any] | None = None,
        missing_covariates: str = "refuse",
        formula: str | Formula | None = None,
    ) -> None:
        check_mapping("covariates", covariates if covariates is not None else ())
        check_mapping("reference", reference)
        rows = entries(n, s, weight, known)
        columns = {name: _column(name, values, rows[0].size) for name, values in covariates.items()}
        found = _encodings(columns, rows[2], dict(reference or {}), missing_covariates)
        made = None if formula is None else _formula(formula, found, missing_covariates)
        self._set(rows, found, [each.encode(columns[each.name]) for each in found], made)

    @classmethod
    def encoded(
        cls,
        rows: tuple[NDArray[Any], ...],
        covariates: tuple[Covariate, ...],
        values: Sequence[NDArray[Any]],
        formula: Formula | None = None,
    ) -> CovariateTable:
        """A table of entries (n, s, weight, known) whose covariates are encoded already."""
        table = cls.__new__(cls)
        table._set(rows, covariates, values, formula)
        return table

    def _set(
        self,
        rows: tuple[NDArray[Any], ...],
        covariates: tuple[Covariate, ...],
        values: Sequence[NDArray[Any]],
        formula: Formula | None,
    ) -> None:
        (n, s, weight, known), values = merged(rows, values)
        names = ("n", "s", "weight", "known", "covariates", "values", "formula")
        for name, value in zip(names, (n, s, weight, known, covariates, tuple(values), formula), strict=True):
            object.__setattr__(self, name, value)
        if len(self.terms) > _MOST_COLUMNS:
            widest = max(covariates, key=lambda each: len(each.terms))
            got = f"got {len(self.terms):,}, {len(widest.terms):,} of them from {widest.name!r}"
            raise DataError(f"covariates must make at most {_MOST_COLUMNS} columns, {got}")
        mean, sd = _moments(self)
        for name, value in (("mean", mean), ("sd", sd)):
            object.__setattr__(self, name, value)

    # What there is ---------------------------------------------------------------------------------

    @property
    def individuals(self) -> int:
        """Number of individuals, N."""
        return int(self.weight.sum())

    @cached_property
    def counts(self) -> CountTable:
        """The same individuals without their covariates."""
        return CountTable(self.n, self.s, self.weight, self.known)

    @property
    def names(self) -> tuple[str, ...]:
        """The covariates."""
        return tuple(each.name for each in self.covariates)

    @property
    def terms(self) -> tuple[str, ...]:
        """The columns of the design: a number's name, category=level, or what a formula calls them."""
        if self.formula is not None:
            return self._by_formula[0]
        return tuple(term for each in self.covariates for term in each.terms)

    @cached_property
    def _by_formula(self) -> tuple[tuple[str, ...], Float]:
        """The columns that the formula makes of all rows, before they are standardised."""
        assert self.formula is not None
        return self.formula.design({name: self.column(name) for name in self.names})

    def __len__(self) -> int:
        return self.n.size

    @property
    def numbers(self) -> tuple[str, ...]:
        """The covariates whose values are numbers, be they levels or not."""
        return tuple(
            each.name
            for each in self.covariates
            if isinstance(each, Numeric) or not any(isinstance(level, str) for level in each.levels)
        )

    @property
    def usual_steps(self) -> dict[str, float]:
        """For each column of numbers 1, 2 or 5 times a power of ten near its sd: what figures show."""
        found, column = {}, 0
        if self.formula is not None:
            return {}
        for each in self.covariates:
            if not isinstance(each, Category):
                size = float(self.sd[column])
                power = 10.0 ** np.floor(np.log10(size))
                found[each.name] = float(power * max(k for k in (1, 2, 5) if k <= size / power * 1.0000001))
            column += len(each.terms)
        return found

    @kinds_checked
    def column(self, name: str) -> list[Any]:
        """The values of one covariate, as they were given."""
        if name not in self.names:
            raise OptionError(f"name must be one of {_listed(self.names)}, got {name!r}")
        i = self.names.index(name)
        return self.covariates[i].decode(self.values[i])

    def forget_known(self) -> CovariateTable:
        """The same individuals with every status unknown."""
        unknown = np.full(self.n.size, UNKNOWN, np.int8)
        rows = (self.n, self.s, self.weight, unknown)
        return CovariateTable.encoded(rows, self.covariates, self.values, self.formula)

    def weighted(self, weight: ArrayLike) -> CovariateTable:
        """The same rows with other weights, and the same levels and references."""
        rows = (self.n, self.s, entries(self.n, self.s, weight, None)[2], self.known)
        return CovariateTable.encoded(rows, self.covariates, self.values, self.formula)

    def thinned(self, most: int) -> CovariateTable:
        """Every so many rows, so that there are at most so many, on the scale of all of them."""
        step = -(-len(self) // most)
        if step <= 1:
            return self
        some = CovariateTable.__new__(CovariateTable)
        parts = {name: getattr(self, name)[::step] for name in ("n", "s", "weight", "known")}
        parts |= {"values": tuple(column[::step] for column in self.values)}
        parts |= {name: getattr(self, name) for name in ("covariates", "mean", "sd", "formula")}
        for name, value in parts.items():
            object.__setattr__(some, name, value)
        return some

    # Design ----------------------------------------------------------------------------------------

    def design(self, rows: slice = slice(None)) -> Float:
        """Some rows of the standardised design, shape (rows, terms)."""
        if self.formula is not None:
            return np.asarray((self._by_formula[1][rows] - self.mean) / self.sd)
        return self.standardised([values[rows] for values in self.values])

    def standardised(self, values: Sequence[NDArray[Any]]) -> Float:
        """Encoded values as rows of the standardised design."""
        if not self.covariates:
            return np.zeros((self.n.size if not values else len(values[0]), 0))
        raw = [each.columns(value) for each, value in zip(self.covariates, values, strict=True)]
        if self.formula is not None:
            pairs = zip(self.covariates, values, strict=True)
            raw = [self.formula.design({each.name: each.decode(value) for each, value in pairs})[1]]
        return np.asarray((np.concatenate(raw, axis=1) - self.mean) / self.sd)

    def indicators(self, design: Float) -> Iterator[NDArray[np.bool_] | None]:
        """Whether each row has the level of each column; None for a column of numbers."""
        if self.formula is not None:
            yield from [None] * design.shape[1]
            return
        column = 0
        for each in self.covariates:
            for _ in each.terms:
                yield design[:, column] > 0 if isinstance(each, Category) else None
                column += 1

    @kinds_checked
    def from_text(self, typed: Mapping[str, str]) -> dict[str, Any]:
        """Covariates that were typed, as values of this study's columns; other names stay as they are."""
        own = {each.name: each for each in self.covariates}
        return {name: own[name].from_text(text) if name in own else text for name, text in typed.items()}

    def rows_of(self, asked: Mapping[str, Any]) -> tuple[Float, tuple[int, ...]]:
        """Covariates of anyone, which broadcast, as rows of this study's design, and their shape."""
        if not isinstance(asked, Mapping):
            raise OptionError(f"covariates must be a mapping of names to values, got {shown(asked)}")
        if lost := [name for name in self.names if name not in asked]:
            raise OptionError(
                f"covariates must have a value for {lost[0]!r}; the fit uses {_listed(self.names)}"
            )
        if more := [name for name in asked if name not in self.names]:
            raise OptionError(f"covariates must be those of the fit ({_listed(self.names)}), got {more[0]!r}")
        given = [np.asarray(_objects(asked[name])) for name in self.names]
        try:
            given = list(np.broadcast_arrays(*given)) if given else []
        except ValueError:
            raise DataError(
                f"covariates must broadcast, got shapes {[each.shape for each in given]}"
            ) from None
        shape = given[0].shape if given else ()
        encoded = [each.encode(value.ravel()) for each, value in zip(self.covariates, given, strict=True)]
        return (self.standardised(encoded) if given else np.zeros((1, 0))), shape

    # Words -----------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CovariateTable):
            return NotImplemented
        same = (self.covariates, self.formula) == (other.covariates, other.formula)
        return same and all(
            a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            for a, b in zip(_arrays(self), _arrays(other), strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.covariates, *(array.tobytes() for array in _arrays(self))))

    def table(self) -> Table:
        """The rows, ready to print."""
        columns: dict[str, Any] = {"n": self.n, "s": self.s}
        columns |= {name: self.column(name) for name in self.names}
        columns["weight"] = self.weight
        if np.any(self.known != UNKNOWN):
            columns["known"] = [None if status == UNKNOWN else status for status in self.known.tolist()]
        return Table(columns, title=str(self))

    def __str__(self) -> str:
        sizes = f"{self.individuals:,} individuals, {self.counts.replicates:,} replicates"
        return f"CovariateTable: {sizes}, {len(self.covariates)} covariate{'s' * (len(self.covariates) != 1)}"

    def __repr__(self) -> str:
        return str(self.table()) if len(self) <= 30 else str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _arrays(table: CovariateTable) -> Iterator[NDArray[Any]]:
    """The columns of a table."""
    yield from (table.n, table.s, table.weight, table.known)
    yield from table.values


def merged(
    rows: tuple[NDArray[Any], ...], values: Sequence[NDArray[Any]]
) -> tuple[tuple[NDArray[Any], ...], list[NDArray[Any]]]:
    """Rows sorted by (n, s, known), those that agree in everything added up, those of weight 0 left out.

    Numbers that hardly repeat are not compared: nothing could be merged.
    """
    n, s, weight, known = rows
    alike = all(_repeats(column) for column in values)
    keys = (*(reversed(values) if alike else ()), known, s, n)
    kept = np.flatnonzero(weight > 0)
    order = kept[np.lexsort(tuple(key[kept] for key in keys))]
    columns = [column[order] for column in (n, s, known, *values)]
    total = weight[order]
    if alike and order.size:
        new = np.ones(order.size, bool)
        new[1:] = np.any([_differs(column) for column in columns], axis=0)
        starts = np.flatnonzero(new)
        columns, total = [column[starts] for column in columns], np.add.reduceat(total, starts)
    for column in (*columns, total):
        column.setflags(write=False)
    n, s, known, *rest = columns
    return (n, s, total, known), rest


def _repeats(column: NDArray[Any]) -> bool:
    """Whether values of a column occur several times, by its first rows."""
    if column.dtype.kind != "f":
        return True
    return column.size <= _LOOKED_AT or np.unique(column[:_LOOKED_AT]).size < _LOOKED_AT // 2


def _differs(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each entry differs from the one before; two missing numbers do not."""
    after, before = column[1:], column[:-1]
    differs = after != before
    return np.asarray(differs & ~((after != after) & (before != before)))


def _encodings(
    columns: Mapping[str, NDArray[Any]], weight: NDArray[np.int64], reference: dict[str, Any], missing: str
) -> tuple[Covariate, ...]:
    """What each covariate is: numbers, or categories with their levels."""
    if not isinstance(missing, str) or missing not in ("refuse", "level"):
        raise OptionError(f"missing_covariates must be 'refuse' or 'level', got {shown(missing)}")
    if more := [name for name in reference if name not in columns]:
        raise OptionError(f"reference must name covariates ({_listed(tuple(columns))}), got {more[0]!r}")
    level = missing == "level"
    return tuple(
        _category(name, column, weight, level, reference.get(name))
        if name in reference or not is_numeric(column)
        else _numeric(name, column, weight, level)
        for name, column in columns.items()
    )


def is_numeric(column: NDArray[Any]) -> bool:
    """Whether all values that are there are numbers or booleans."""
    if column.dtype.kind in "biuf":
        return True
    return column.dtype == object and all(
        isinstance(value, bool | int | float | np.number | np.bool_) for value in column if not is_null(value)
    )


def _numeric(name: str, column: NDArray[Any], weight: NDArray[np.int64], level: bool) -> Numeric:
    """A covariate of numbers, with the mean of those that are there where some may be missing."""
    if not level:
        return Numeric(name)
    numbers = _numbers(name, column)
    there = ~np.isnan(numbers)
    if np.all(there):
        return Numeric(name)
    total = weight[there].sum()
    return Numeric(name, float(numbers[there] @ weight[there] / total) if total else 0.0)


def _category(
    name: str, column: NDArray[Any], weight: NDArray[np.int64], level: bool, reference: Any
) -> Category:
    """A covariate of categories: the reference first, then the others in their order."""
    found, where = _distinct(column)
    totals = np.bincount(where, weight, minlength=len(found)) if len(found) else np.zeros(0)
    if any(is_null(value) for value in found):
        if not level:
            lost = sum(int(np.sum(where == i)) for i, value in enumerate(found) if is_null(value))
            raise _missing(name, lost, len(where))
        if MISSING in found:
            rule = f"cannot have a level {MISSING!r} and missing values, which would be that level"
            raise DataError(f"column {name!r} {rule}")
    merged_totals: dict[Hashable, float] = {}
    for value, total in zip(found, totals.tolist(), strict=True):
        key = MISSING if is_null(value) else value
        merged_totals[key] = merged_totals.get(key, 0.0) + total
    levels = _sorted(merged_totals)
    if reference is None and levels:
        reference = max(levels, key=lambda one: (one != MISSING, merged_totals[one]))
    elif levels and reference not in merged_totals:
        raise OptionError(f"reference of {name!r} must be one of {_listed(levels)}, got {shown(reference)}")
    texts = [str(one) for one in levels]
    if twice := [one for one in texts if texts.count(one) > 1]:
        raise DataError(f"column {name!r} has two levels that print alike, {twice[0]!r}; rename one")
    return Category(name, (reference, *(one for one in levels if one != reference)) if levels else ())


def _sorted(levels: Mapping[Hashable, float]) -> tuple[Hashable, ...]:
    """Levels in their order, by their text where they have none."""
    try:
        return tuple(sorted(levels))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(levels, key=str))


def _distinct(values: Sequence[Any] | NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """The values that differ, in the order in which they come, and which of them each one is."""
    array = np.asarray(values)
    if array.dtype.kind in "biufU" and array.size:
        found, where = np.unique(array, return_inverse=True)
        return found.tolist(), where.ravel()
    places: dict[Any, int] = {}
    lost = object()
    where = np.empty(array.size, np.intp)
    for i, value in enumerate(array.tolist()):
        key = lost if is_null(value) else value
        try:
            where[i] = places.setdefault(key, len(places))
        except TypeError:
            raise DataError(f"covariates must be numbers or text, got {shown(value)}") from None
    return [None if key is lost else key for key in places], where


def _numbers(name: str, values: Sequence[Any] | NDArray[Any]) -> Float:
    """Values as finite numbers, NaN where missing."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        wrong = [value for value in array.tolist() if not is_null(value) and not _is_number(value)]
        if wrong:
            raise DataError(f"column {name!r} must hold numbers, got {shown(wrong[0])}")
        array = np.array([np.nan if is_null(value) else real(value) for value in array.tolist()], dtype=float)
    numbers = array.astype(float)
    if np.any(endless := np.abs(numbers) > _MOST_NUMBER):
        rule = f"must hold finite numbers, up to {_MOST_NUMBER:g}"
        raise DataError(f"column {name!r} {rule}, got {numbers[endless][0]}; use another unit")
    return numbers


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_)


def _objects(values: Any) -> Any:
    """Values that keep their None."""
    if np.ndim(values) == 0 and not isinstance(values, np.ndarray):
        return np.array(values, dtype=None if _is_number(values) else object)
    return _column_array(values)


def _column_array(values: Any) -> NDArray[Any]:
    """Any column as an array; a data frame's own nulls stay nulls, and numbers stay numbers."""
    to_list = getattr(values, "to_pylist", None)  # Arrow
    try:
        array = np.asarray(to_list() if to_list else values)
    except ValueError:
        raise DataError(f"a covariate must have one value per entry, got {shown(values)}") from None
    if array.dtype.kind in "biufO":
        return array
    return array.astype(object)


def _column(name: str, values: Any, size: int) -> NDArray[Any]:
    """One covariate with a value for each entry."""
    array = _column_array(values)
    if array.ndim != 1 or array.size != size:
        raise DataError(f"column {name!r} must have one value per entry ({size}), got shape {array.shape}")
    return array


def _moments(table: CovariateTable) -> tuple[Float, Float]:
    """Mean and sd of each column of the design over individuals; an sd of 1 for a column that is constant."""
    means, sds = [], []
    weight = table.weight.astype(float)
    total = max(float(weight.sum()), 1.0)
    for column in _raw_columns(table):
        shift = float(column[0]) if column.size else 0.0
        away = column - shift  # years 2020 ± 1 lose no digits
        mean = float(weight @ away) / total
        var = float(weight @ (away - mean) ** 2) / total
        means.append(shift + mean)
        sds.append(np.sqrt(var) if var > 0 else 1.0)
    return np.array(means), np.array(sds)


def _raw_columns(table: CovariateTable) -> Iterator[Float]:
    """The columns of the design, one at a time, before they are standardised."""
    if table.formula is not None:
        yield from table._by_formula[1].T
        return
    for each, value in zip(table.covariates, table.values, strict=True):
        for k in range(len(each.terms)):
            yield each.columns(value)[:, k]


def _formula(formula: str | Formula, found: tuple[Covariate, ...], missing: str) -> Formula:
    """A formula over all covariates, none of which may be missing."""
    made = formula if isinstance(formula, Formula) else Formula(formula)
    names = tuple(each.name for each in found)
    if set(names) != set(made.variables):
        rule = f"covariates must be the columns of the formula ({_listed(made.variables)})"
        raise OptionError(f"{rule}, got {_listed(names)}")
    if missing == "level":
        raise OptionError("missing covariates cannot be a level of their own in a formula")
    return made


def _missing(name: str, lost: int, size: int) -> DataError:
    """The sentence for values that are not there."""
    level = "make missing values a level of their own (missing_covariates='level')"
    advice = f"leave these individuals out, or {level}"
    return DataError(f"column {name!r} must have no missing values, got {lost:,} of {size:,}; {advice}")


def _listed(values: Sequence[Any]) -> str:
    """The first few values."""
    text = ", ".join(repr(value) for value in values[:_SHOWN])
    return f"{text}, …" if len(values) > _SHOWN else text or "none"
