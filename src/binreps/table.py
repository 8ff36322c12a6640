"""One small frozen table: what summaries and decision tables return."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from types import MappingProxyType
from typing import Any

from binreps.errors import OptionError
from binreps.options import is_single, shown


@dataclass(frozen=True)
class Table:
    """Named columns of equal length that print well in a terminal and in a notebook.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns, in order; None is a null. `.to_pandas()`, `.to_polars()`, `.to_arrow()` give them away.
    title, note : str
        A line above and a line below the printed table.

    Examples
    --------
    >>> table = Table({"rate": ["prevalence"], "estimate": [0.25]}, title="average")
    >>> print(table)
    average
    rate        estimate
    prevalence     0.250
    >>> table["estimate"]
    (0.25,)
    """

    columns: Mapping[str, Sequence[Any]]
    title: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not all(isinstance(name, str) for name in self.columns):
            raise OptionError(f"columns must be a mapping of names to values, got {shown(self.columns)}")
        for name, text in (("title", self.title), ("note", self.note)):
            if not isinstance(text, str):
                raise OptionError(f"{name} must be a text, got {shown(text)}")
        for name, values in self.columns.items():
            if not isinstance(values, Iterable) or is_single(values):
                raise OptionError(f"column {name!r} must be a list of values, got {shown(values)}")
        columns = {name: _plain(values) for name, values in self.columns.items()}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise OptionError(f"columns must have equal lengths, got {lengths}")
        object.__setattr__(self, "columns", MappingProxyType(columns))

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return tuple(self.columns[name])

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dictionary."""
        for row in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, row, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and tuple(self.columns.items()) == tuple(other.columns.items())

    def __hash__(self) -> int:
        return hash(tuple(self.columns.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (dict(self.columns), self.title, self.note)  # a mapping proxy cannot be pickled

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`; nulls stay nulls, and a column of values that have no common type becomes text.

        Examples
        --------
        >>> Table({"n": [3, None], "name": ["a", 1]}).to_arrow().to_pydict()
        {'n': [3, None], 'name': ['a', '1']}
        """
        arrow = _installed("pyarrow")
        return arrow.table({name: _arrow_array(arrow, values) for name, values in self.columns.items()})

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; columns with nulls have pandas' nullable types: whole numbers stay whole.

        Examples
        --------
        >>> Table({"n": [3, None]}).to_pandas()["n"].tolist()
        [3, <NA>]
        """
        pandas, table = _installed("pandas"), self.to_arrow()
        nullable = {
            "int64": pandas.Int64Dtype(),
            "double": pandas.Float64Dtype(),
            "bool": pandas.BooleanDtype(),
        }
        columns = {
            name: column.to_pandas(types_mapper=lambda kind: nullable.get(str(kind)))
            if column.null_count
            else column.to_pandas()
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        return pandas.DataFrame(columns)

    def to_polars(self) -> Any:
        """A `polars.DataFrame`; nulls stay nulls."""
        return _installed("polars").from_arrow(self.to_arrow())

    def __str__(self) -> str:
        texts = [[name, *map(format_value, values)] for name, values in self.columns.items()]
        widths = [max(map(len, column)) for column in texts]
        left = [_is_text(values) for values in self.columns.values()]
        lines = [
            "  ".join(
                text.ljust(width) if is_left else text.rjust(width)
                for text, width, is_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in zip(*texts, strict=True)
        ]
        return "\n".join(filter(None, [self.title, *lines, self.note]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for a notebook, everything escaped."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(format_value(value))}</td>" for value in row.values()) + "</tr>"
            for row in self
        )
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def format_value(value: Any) -> str:
    """A cell as a person reads it: three decimals, a dash for null.

    Examples
    --------
    >>> [format_value(value) for value in (0.12345, 2e-7, 3, None, "yes", 12345678)]
    ['0.123', '2.0e-07', '3', '–', 'yes', '12,345,678']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        small = value != 0 and abs(value) < 5e-4
        return f"{value:.1e}" if small or abs(value) >= 1e7 else f"{value:.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _installed(name: str) -> Any:
    """A data frame library, or a sentence that says how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise OptionError(f"this needs {name}, which is not installed: pip install {name}") from None


def _arrow_array(arrow: Any, values: Sequence[Any]) -> Any:
    """A column for Arrow; as text where its values have no type in common, such as names "a" and 1."""
    try:
        return arrow.array(list(values))
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError):
        return arrow.array([None if value is None else str(value) for value in values])


def _plain(values: Sequence[Any]) -> tuple[Any, ...]:
    """NumPy scalars as Python values, so that a table compares, prints and serialises the same everywhere."""
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def _is_text(values: Sequence[Any]) -> bool:
    """Whether a column is written flush left."""
    return any(isinstance(value, str) for value in values)
