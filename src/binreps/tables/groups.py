"""The count table of every group of a table, in one pass: sites, assays, populations.

As for a single count table, the engine does the counting and only the cells leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import DataError, OptionError
from binreps.notes import Note
from binreps.tables.roles import Roles, check_columns
from binreps.tables.tally import (
    BAD,
    CLASH,
    KNOWN,
    LOST,
    ROWS,
    WEIGHT,
    Frame,
    N,
    S,
    cells_of,
    collected,
    dropped_note,
    explain,
    individuals,
    listed,
    lost_notes,
    missing_results,
    row_counts,
    rows_of,
)

_EXPLAINED = 50  # groups whose first wrong values are looked up


def counted_groups(table: Frame, roles: Roles, names: list[str]) -> tuple[dict[Any, CountTable], Groups]:
    """The count table of every group of a prepared frame; a group that cannot be read is an error."""
    groups = grouped_counts(table, roles, names)
    keys = groups.keys.rows()
    for key, reason in zip(keys, groups.reasons, strict=True):
        if reason is not None:
            where = ", ".join(f"{name} = {listed([value])}" for name, value in zip(names, key, strict=True))
            raise DataError(f"{reason} (where {where})")
    found = zip(keys, groups.tables, strict=True)
    return {key[0] if len(names) == 1 else key: counts for key, counts in found}, groups


def group_names(original: Frame, by: str | Sequence[str], roles: Roles) -> list[str]:
    """The columns of the groups, all there and none with another part."""
    names = [by] if isinstance(by, str) else list(by)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"by must be a column's name or several, got {by!r}")
    twice = [name for name in names if names.count(name) > 1 or name in roles.used]
    if twice:
        raise OptionError(f"column {twice[0]!r} is named for two different parts")
    have = original.collect_schema().names()
    check_columns(names, have, listed(have))
    return names


def _without_group(table: Frame, by: list[str]) -> nw.Expr:
    """Whether a row does not say to which group it belongs."""
    schema = table.collect_schema()
    tests = [nw.col(name).is_null() for name in by]
    tests += [nw.col(name).is_nan() for name in by if schema[name].is_float()]
    return nw.any_horizontal(*tests, ignore_nulls=True)


@dataclass(frozen=True)
class Groups:
    """The groups of a table: their columns, one row each, their counts, and why some have none."""

    keys: Any  # an eager nw.DataFrame
    tables: list[CountTable]  # of a group that cannot be read: all that could
    reasons: list[str | None]
    repeated: bool  # whether an individual has several rows of counts
    rows: int
    missing: int
    notes: tuple[Note, ...]


def grouped_counts(frame: Frame, roles: Roles, by: list[str]) -> Groups:
    """The count table of every group, in one pass over a prepared frame."""
    cells, notes = _with_group(frame, collected(_grouped_cells(frame, roles, by)), by)
    lists = {
        name: [int(value) for value in cells[name].to_list()] for name in cells.columns if name not in by
    }
    places = _places(cells, by)
    tables, reasons, explained = [], [], 0
    for key, own_rows in places.items():
        own = {name: [values[i] for i in own_rows] for name, values in lists.items()}
        reason = _unreadable(own, roles)
        if reason is not None and any(own[BAD]) and explained < _EXPLAINED:
            group = (nw.col(name) == value for name, value in zip(by, key, strict=True))
            reason, explained = str(explain(frame.filter(*group), roles)), explained + 1
        tables.append(_count_table(own))
        reasons.append(reason)
    keys = nw.maybe_reset_index(cells.select(*by)[[own_rows[0] for own_rows in places.values()]])
    rows = rows_of(lists)
    return Groups(
        keys,
        tables,
        reasons,
        not roles.long and sum(lists.get(ROWS, ())) > sum(lists[WEIGHT]),
        rows,
        missing_results(roles, rows, sum(table.replicates for table in tables)),
        (*roles.notes, *notes, *lost_notes(lists, roles)),
    )


def _places(cells: Any, by: list[str]) -> dict[tuple[Any, ...], list[int]]:
    """The rows of each group among the cells, groups in their order where they have one."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for i, key in enumerate(zip(*(cells[name].to_list() for name in by), strict=True)):
        places.setdefault(key, []).append(i)
    with suppress(TypeError):  # values of several types have no order
        places = dict(sorted(places.items()))
    return places


def _with_group(frame: Frame, cells: Any, by: list[str]) -> tuple[Any, tuple[Note, ...]]:
    """The cells that belong to a group, and how many rows do not."""
    without = _without_group(cells, by)
    if not len(cells.filter(without)):
        return cells, ()
    rows = collected(frame.filter(_without_group(frame, by)).select(nw.len().alias(ROWS)))[ROWS].to_list()[0]
    return cells.filter(~without), (dropped_note("group", rows, by),)


def _grouped_cells(frame: Frame, roles: Roles, by: list[str]) -> Frame:
    """Individuals per group and (n, s), lazily, with the totals that tell whether something was wrong."""
    if roles.individual:
        people = individuals(frame, replace(roles, individual=(*by, *roles.individual)))
    else:
        people = frame.select(*by, **row_counts(frame, roles))
    return cells_of(people, roles, by)


def _count_table(own: dict[str, list[int]]) -> CountTable:
    """The counts of one group; of results that cannot be read, only those that can."""
    n, s, weight, bad = (np.array(own[name], np.int64) for name in (N, S, WEIGHT, BAD))
    lost = np.array(own.get(LOST, [0] * n.size), np.int64)
    known = np.array(own.get(KNOWN, [UNKNOWN] * n.size), np.int8)
    if bad.any():
        n = np.maximum(n - bad, s)
    return CountTable(n, s, weight - lost, np.where(known > 1, np.int8(UNKNOWN), known))


def _unreadable(own: dict[str, list[int]], roles: Roles) -> str | None:
    """Why the cells of a group cannot be used, if they cannot."""
    if any(own[BAD]):
        return "there are results or counts that cannot be read"
    worst = max(own.get(KNOWN, [UNKNOWN]))
    if worst > 1:
        words = "0/1, true/false, positive/negative, yes/no, +/− or missing"
        rule = "give one status per individual" if worst == CLASH else f"hold {words}"
        return f"column {roles.known!r} must {rule}"
    return None
