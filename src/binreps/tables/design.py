"""Any table into individuals with covariates, in the engine it lives in.

The engine groups rows by individual and covariates, then individuals by results and covariates: categories
come out as patterns, however many rows there are; numbers as they are, never binned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from binreps.counts import UNKNOWN
from binreps.covariates import CovariateTable
from binreps.errors import DataError
from binreps.formula import Formula
from binreps.notes import Note
from binreps.tables.opened import OpenTable
from binreps.tables.roles import BLANK, Roles
from binreps.tables.tally import (
    BAD,
    KNOWN,
    LOST,
    ROWS,
    TEXT,
    WEIGHT,
    Frame,
    N,
    S,
    cells_of,
    collected,
    explain,
    explain_known,
    individuals,
    listed,
    lost_notes,
    prepare,
    row_counts,
    without_individual,
)

PATTERN = "__binreps_pattern"
"""The covariates of a row as one text: what answers are joined by."""

_LENGTH = "__binreps_length"
_BETWEEN = "\u241f"  # a separator that no value has
_NULL = "\u2400"


@dataclass(frozen=True, eq=False)
class Entries:
    """Individuals by results and covariates, as they came out of the engine.

    Attributes
    ----------
    n, s, weight, known : arrays
    covariates : dict of str to array
    patterns : list of str
        The covariates of each entry as one text.
    missing : int
        Results that are missing.
    notes : tuple of Note
    """

    n: NDArray[np.int64]
    s: NDArray[np.int64]
    weight: NDArray[np.int64]
    known: NDArray[np.int8]
    covariates: dict[str, NDArray[Any]]
    patterns: list[str]
    missing: int
    notes: tuple[Note, ...]

    def records(
        self, reference: Mapping[str, Any] | None, missing_covariates: str, formula: Formula | None = None
    ) -> CovariateTable:
        """The individuals, their covariates encoded."""
        return CovariateTable(
            self.n,
            self.s,
            self.covariates,
            self.weight,
            self.known,
            reference=as_levels(reference, self.covariates),
            missing_covariates=missing_covariates,
            formula=formula,
        )


def read_entries(
    table: OpenTable, columns: Mapping[str, Any], numbers: Sequence[str] | None = None
) -> Entries:
    """Individuals with their covariates.

    Text is numbers in the columns of `numbers`; if it is not known which, in columns of a file that hold
    nothing else.
    """
    return entries_of(*prepare(table.frame, Roles.of(**columns)), table.files is not None, numbers)


def entries_of(frame: Frame, roles: Roles, from_file: bool, numbers: Sequence[str] | None = None) -> Entries:
    """The same of a prepared frame."""
    found, cells = _cells(frame, roles)
    lost = np.array(found.get(LOST, [0] * len(found[N])), np.int64)
    weight = np.array(found[WEIGHT], np.int64) - lost
    there = np.flatnonzero(weight > 0)
    known = np.array(found.get(KNOWN, [UNKNOWN] * len(found[N])), np.int8)
    n, s = (np.array(found[name], np.int64)[there] for name in (N, S))
    values = {
        name: covariate_values(cells, name, from_file if numbers is None else name in numbers)[there]
        for name in roles.covariates
    }
    replicates = int(n @ weight[there])
    rows = sum(found.get(ROWS, found[WEIGHT]))
    return Entries(
        n,
        s,
        weight[there],
        known[there],
        values,
        np.array(cells[PATTERN].to_list(), dtype=object)[there].tolist(),
        rows * len(roles.results) - replicates if roles.results else 0,
        (*(note for note in roles.notes if note.id != "covariates-not-used"), *lost_notes(found, roles)),
    )


def with_pattern(frame: Frame, roles: Roles) -> Frame:
    """The table with the covariates of each row as one text."""
    parts = [nw.col(name).cast(nw.String).fill_null(_NULL) for name in roles.covariates]
    return frame.with_columns(nw.concat_str(*parts, separator=_BETWEEN).alias(PATTERN))


def _cells(frame: Frame, roles: Roles) -> tuple[dict[str, list[int]], Any]:
    """Individuals per (n, s) and covariates, checked: readable results, one value of each for everyone."""
    check_covariates(frame, roles)
    by = [*roles.covariates, PATTERN]
    table = with_pattern(as_plain(frame, roles), roles)
    if roles.individual:
        people = individuals(table, replace(roles, individual=(*by, *roles.individual)))
        people = people if isinstance(people, nw.LazyFrame) else nw.maybe_reset_index(people)
    else:
        people = table.select(*by, **row_counts(table, roles))
    cells = collected(cells_of(people, roles, by))
    found = {name: [int(v) for v in cells[name].to_list()] for name in cells.columns if name not in by}
    if any(found[BAD]):
        raise explain(frame, roles)
    worst = max(found.get(KNOWN, [UNKNOWN]), default=UNKNOWN)
    if worst > 1:
        raise explain_known(frame, individuals(frame, roles), roles, worst)
    if roles.individual:
        check_constant(people, roles)
    return found, cells


def check_covariates(frame: Frame, roles: Roles) -> None:
    """Refuse dates, lists and the like."""
    schema = frame.collect_schema()
    for name in roles.covariates:
        kind = schema[name]
        if kind.is_temporal() or kind.is_nested() or kind in (nw.Binary, nw.Time):
            advice = "make it a number, such as days since a date"
            raise DataError(
                f"column {name!r} must hold numbers or text to be a covariate, got {kind}; {advice}"
            )


def as_plain(frame: Frame, roles: Roles) -> Frame:
    """Categories as text, whose order and codes mean nothing here."""
    schema = frame.collect_schema()
    texts = [name for name in roles.covariates if schema[name] in TEXT and schema[name] != nw.String]
    return frame.with_columns(*(nw.col(name).cast(nw.String) for name in texts)) if texts else frame


def check_constant(people: Frame, roles: Roles) -> None:
    """Refuse an individual with two values of a covariate, and name the first."""
    named = people.filter(~without_individual(roles)).select(*roles.individual, *roles.covariates)
    several = named.group_by(*roles.individual).agg(nw.len().alias(_LENGTH)).filter(nw.col(_LENGTH) > 1)
    first = collected(several.sort(*roles.individual).head(1))
    if not len(first):
        return
    who = first.select(*roles.individual).rows()[0]
    own = collected(
        named.filter(*(nw.col(name) == value for name, value in zip(roles.individual, who, strict=True)))
    )
    for name in roles.covariates:
        if len(set(map(str, own[name].to_list()))) > 1:
            found = listed(sorted(own[name].to_list(), key=str)[:3])
            whose = f"individual {listed(who)}"
            raise DataError(f"column {name!r} must have one value per individual, got {found} for {whose}")


def covariate_values(cells: Any, name: str, as_numbers: bool) -> NDArray[Any]:
    """One covariate of every entry: numbers, or text; the text of a file that is all numbers is numbers."""
    kind = cells.collect_schema()[name]
    if kind.is_numeric() or kind == nw.Boolean:
        values = cells[name].to_list() if kind == nw.Boolean else cells[name].cast(nw.Float64).to_list()
        return np.array([np.nan if value is None else float(value) for value in values], dtype=float)
    words = [_word(value) for value in cells[name].to_list()]
    if as_numbers and (numbers := _parsed(words)) is not None:
        return numbers
    return np.array(words, dtype=object)


def _word(value: Any) -> str | None:
    """A level as text, None where it is blank."""
    if value is None or value != value:
        return None
    text = str(value).strip()
    return None if text.lower() in BLANK else text


def _parsed(words: Sequence[str | None]) -> NDArray[np.float64] | None:
    """Text as numbers, if all of it can be."""
    try:
        return np.array([np.nan if word is None else float(word.replace(",", ".")) for word in words])
    except ValueError:
        return None


def as_levels(reference: Mapping[str, Any] | None, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Reference levels as the columns have them: numbers for numbers, text for text."""
    found = dict(reference or {})
    for name, level in found.items():
        if name in entries:
            numeric = entries[name].dtype.kind == "f"
            if numeric and isinstance(level, str) and _parsed([level]) is not None:
                found[name] = float(level.replace(",", "."))
            elif not numeric:
                found[name] = str(level)
    return found
