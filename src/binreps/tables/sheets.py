"""The sheets of Excel workbooks: which one holds the table, and where in it."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from binreps.errors import DataError
from binreps.notes import Note
from binreps.tables.header import (
    EXPORT,
    HEAD_ROWS,
    Row,
    filled,
    header_row,
    layout_notes,
    repeated,
    table_end,
    unique,
)
from binreps.tables.tally import plain_text

_MOST_ROWS = 2**20  # that a sheet can have
_MERGED = rb'<mergeCell ref="(([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7}))"'


@dataclass(frozen=True)
class Sheet:
    """The table in a sheet: its columns as text, names that several have, and what to know of the rest."""

    name: str
    columns: dict[str, list[str | None]]
    twice: frozenset[str]
    notes: tuple[Note, ...]
    beside: tuple[str, ...]  # all sheets of the workbook


def read_sheet(file: Path, wanted: Sequence[str], sheet: str | None) -> Sheet:
    """The table of one sheet: the one that is named, or the first."""
    with _workbook(file) as book:
        chosen = _chosen(file, book, sheet)
        name = str(chosen.title)
        rows = _rows(file, chosen)
        names = [str(one.title) for one in book.worksheets]
        others = [one for one in names if one != name]
        merged = _merged(file, chosen)
    where = f"sheet {name!r} of {file}"
    start = header_row(rows[:HEAD_ROWS], wanted)
    if start is None:
        raise DataError(_no_header(where, rows, wanted, others))
    _check_merged(where, merged, start, rows)
    columns, twice, around = _table(file, rows, start, wanted)
    notes = (*_others_note(name, others, sheet), *layout_notes(where, *around))
    return Sheet(name, columns, twice, notes, tuple(names))


def _rows(file: Path, sheet: Any) -> list[Row]:
    """The rows as text, without the empty cells at their ends; what a sheet says of its size is not believed.

    A row keeps two cells: one of a single cell is a note in a text file.
    """
    sheet.reset_dimensions()
    rows: list[Row] = []
    try:
        for row in sheet.iter_rows(values_only=True):
            end = next((i for i in range(len(row), 2, -1) if row[i - 1] is not None), 2)
            rows.append(tuple(map(plain_text, row[:end])))
            if len(rows) > _MOST_ROWS:
                break
    except Exception as error:  # a damaged sheet is found while it is read
        raise DataError(_no_workbook(file, error)) from None
    if len(rows) > _MOST_ROWS:
        raise DataError(f"{file} has more than the {_MOST_ROWS:,} rows that a sheet can have; {EXPORT}")
    return rows


def sheet_names(file: Path) -> list[str]:
    """The sheets of a workbook that have cells."""
    with _workbook(file) as book:
        return [str(one.title) for one in book.worksheets]


def _table(
    file: Path, rows: Sequence[Row], start: int, wanted: Sequence[str]
) -> tuple[dict[str, list[str | None]], frozenset[str], tuple[int, int]]:
    """The columns below the header, names that several have, and how many rows lie above and below.

    Columns with neither name nor values are left out.
    """
    fields = [(cell or "").strip() for cell in rows[start]]
    body = rows[start + 1 :]
    end = table_end(body, len(fields))
    names = unique(file, fields, wanted)
    columns = {one: [row[i] if i < len(row) else None for row in body[:end]] for i, one in enumerate(names)}
    empty = [one for one, field in zip(names, fields, strict=True) if not field and not filled(columns[one])]
    kept = {one: values for one, values in columns.items() if one not in empty}
    outside = [sum(filled(row) > 0 for row in part) for part in (rows[:start], body[end:])]
    return kept, repeated(fields), (outside[0], outside[1])


def _others_note(name: str, others: Sequence[str], asked: str | None) -> tuple[Note, ...]:
    """That there are other sheets, if nobody chose."""
    if not others or asked is not None:
        return ()
    more = ", ".join(map(repr, others[:8]))
    return (Note("sheet-chosen", f"sheet {name!r} read, the first; the others are {more} (--sheet)"),)


def _no_header(where: str, rows: Sequence[Row], wanted: Sequence[str], others: Sequence[str]) -> str:
    """The sentence for a sheet without the table that was asked for."""
    more = f"; the other sheets are {', '.join(map(repr, others[:8]))} (--sheet)" if others else ""
    first = next((row for row in rows if filled(row)), None)
    if first is None:
        return f"{where} is empty{more}"
    names = [(cell or "").strip() for cell in first]
    missing = " and ".join(repr(name) for name in wanted if name not in names) or repr(wanted[0])
    return f"{where} has no column {missing}; its first row has {', '.join(map(repr, names))}{more}"


def _check_merged(
    where: str, merged: Sequence[tuple[str, int, int]], start: int, rows: Sequence[Row]
) -> None:
    """Refuse a header of which cells are merged, in its row or in the one above that names several."""
    for reference, first, last in merged:
        above = last == start - 1 and filled(rows[start - 1]) > 1
        if first <= start <= last or above:
            advice = "give every column a name of its own in one row"
            raise DataError(f"the header of {where} has merged cells ({reference}); {advice}")


def _merged(file: Path, sheet: Any) -> list[tuple[str, int, int]]:
    """Cells that are merged across columns: their reference, first and last row, from 0."""
    found: set[tuple[bytes, ...]] = set()
    try:
        with zipfile.ZipFile(file) as archive, archive.open(sheet._worksheet_path) as content:
            tail = b""
            while block := content.read(2**20):
                found.update(re.findall(_MERGED, tail + block))
                tail = block[-100:]  # a reference may lie across two blocks
    except (KeyError, AttributeError, OSError, zlib.error, zipfile.BadZipFile):
        return []
    cells = [(ref.decode(), int(top), int(end)) for ref, left, top, right, end in found if left != right]
    return [(ref, top - 1, end - 1) for ref, top, end in sorted(cells)]


@contextmanager
def _workbook(file: Path) -> Iterator[Any]:
    """A workbook that is open."""
    try:
        import openpyxl
    except ImportError:
        raise DataError(f"{file} needs openpyxl (pip install 'binreps[excel]'); or {EXPORT}") from None
    try:
        # it warns about styles, which are not read; a filter that stays is safe where other threads read too
        warnings.filterwarnings("ignore", module="openpyxl")
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception as error:
        raise DataError(_no_workbook(file, error)) from None
    try:
        yield book
    finally:
        book.close()


def _chosen(file: Path, book: Any, sheet: str | None) -> Any:
    """The sheet that is named, or the first one with cells."""
    tables = {str(one.title): one for one in book.worksheets}
    if not tables:
        raise DataError(f"{file} has no sheet with cells; {EXPORT}")
    if sheet is None:
        return next(iter(tables.values()))
    if sheet not in tables:
        raise DataError(f"{file} has no sheet {sheet!r}; its sheets are {', '.join(map(repr, tables))}")
    return tables[sheet]


def _no_workbook(file: Path, error: Exception) -> str:
    """The sentence for a workbook that openpyxl does not read."""
    return f"{file} is not a workbook that can be read ({' '.join(str(error).split())}); {EXPORT}"
