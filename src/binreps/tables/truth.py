"""The truth in a file of its own, joined to the rows of other files by individual."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from binreps.errors import DataError, OptionError
from binreps.notes import Note
from binreps.tables.files import find_files, open_files
from binreps.tables.opened import OpenTable
from binreps.tables.roles import names_of
from binreps.tables.sql import beside, quoted
from binreps.tables.tally import ORDER


class TruthFile(NamedTuple):
    """Where the truth is: `truth.csv:status` names a file and its column."""

    name: str
    path: Path
    column: str


def truth_file(truth: str | None) -> TruthFile | None:
    """Where the truth is, if what stands before the last colon is the name of a file.

    Examples
    --------
    >>> truth_file("status") is None
    True
    """
    path, colon, column = (truth or "").rpartition(":")
    ends = re.search(
        r"\.(csv|tsv|tab|txt|parquet|pq|arrow|feather|ipc|xlsx|xlsm)(\.gz)?$", path, re.IGNORECASE
    )
    if truth is None or not colon or not (ends or Path(path).is_file()):
        return None
    if not column:
        raise OptionError(f"truth must name a file and its column, such as truth.csv:status, got {truth!r}")
    return TruthFile(truth, find_files(path)[0], column)


def with_truth(opened: OpenTable, named: Mapping[str, Any], elsewhere: TruthFile) -> OpenTable:
    """The table with one more column, the truth of each row's individual; a note says how many have none."""
    assert opened.files is not None
    given = {part: name for part, name in named.items() if part not in ("truth", "population")}
    guess = opened.guess(given, names_of(named.get("population")))
    keys = names_of(guess.columns.get("individual"))
    if not keys:
        raise OptionError("a truth in a file of its own is joined by individual, and the table names none")
    statuses = _statuses(elsewhere, keys)
    who = _people(opened.files.relation, keys)
    if elsewhere.name in opened.files.relation.columns:
        raise DataError(f"the table already has a column {elsewhere.name!r}; rename it")
    columns: dict[str, list[Any]] = {
        f"__binreps_key{i}": [key[i] for key in statuses] for i in range(len(keys))
    }
    columns[elsewhere.name] = list(statuses.values())
    small = beside(opened.files.relation, columns, dict.fromkeys(columns, "VARCHAR")).set_alias("__truth")
    on = " AND ".join(
        f"trim(CAST(__rows.{quoted(key)} AS VARCHAR)) = __truth.{quoted(f'__binreps_key{i}')}"
        for i, key in enumerate(keys)
    )
    numbered = opened.files.numbered()
    both = numbered.set_alias("__rows").join(small, on, "left")
    if ORDER in numbered.columns:  # a join does not keep the order of rows
        both = both.order(quoted(ORDER))
    whole = both.project(", ".join(map(quoted, (*opened.files.relation.columns, elsewhere.name))))
    notes = (*opened.files.notes, *_unmatched(elsewhere, who, set(statuses)))
    return OpenTable(whole, opened.name, replace(opened.files, relation=whole, notes=notes))


def _statuses(elsewhere: TruthFile, keys: tuple[str, ...]) -> dict[tuple[str, ...], str | None]:
    """The status of each individual in the file, of which nobody may have two."""
    with open_files(elsewhere.path, [*keys, elsewhere.column]) as files:
        wanted = ", ".join(f"trim(CAST({quoted(name)} AS VARCHAR))" for name in (*keys, elsewhere.column))
        rows = files.relation.project(wanted).fetchall()
    found: dict[tuple[str, ...], str | None] = {}
    for *key, status in rows:
        if any(part is None for part in key):
            continue
        if found.setdefault(tuple(key), status) != status:
            who = ", ".join(map(repr, key))
            raise DataError(
                f"{elsewhere.path} must give one {elsewhere.column!r} per individual, got two for {who}"
            )
    return found


def _people(relation: Any, keys: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Everyone in the table."""
    wanted = ", ".join(f"trim(CAST({quoted(name)} AS VARCHAR))" for name in keys)
    return {row for row in relation.project(wanted).distinct().fetchall() if None not in row}


def _unmatched(
    elsewhere: TruthFile, people: set[tuple[str, ...]], judged: set[tuple[str, ...]]
) -> tuple[Note, ...]:
    """How many individuals are in one of the two only; nobody in both is an error."""
    if not people & judged:
        raise DataError(f"nobody in {elsewhere.path} is in the table; the individuals must be named alike")
    without, more = len(people - judged), len(judged - people)
    said = []
    if without:
        said.append(f"{without:,} individual{'s' * (without != 1)} of the table not in {elsewhere.path.name}")
    if more:
        said.append(f"{more:,} individual{'s' * (more != 1)} of {elsewhere.path.name} not in the table")
    return (Note("truth-unmatched", f"the truth does not match everyone: {', '.join(said)}"),) if said else ()
