"""Where a table begins and ends among the rows of a text file or a sheet: titles above, notes below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from binreps.errors import DataError
from binreps.notes import Note

HEAD_ROWS = 30
"""Rows among which a header must be found."""

EXPORT = "in the spreadsheet program choose File → Save As → CSV UTF-8, and use that file"
"""What to do with a file that cannot be read."""

Row = Sequence[str | None]


def filled(row: Row) -> int:
    """How many cells of a row hold something."""
    return sum(1 for cell in row if cell and cell.strip())


def header_row(rows: Sequence[Row], wanted: Sequence[str]) -> int | None:
    """The first row with all the wanted names, or the first one that is mostly filled; None without any."""
    if wanted:
        found = (i for i, row in enumerate(rows) if set(wanted) <= {(cell or "").strip() for cell in row})
        return next(found, None)
    most = max(map(filled, rows), default=0)
    return next((i for i, row in enumerate(rows) if filled(row) >= max(1, min(2, most), most / 2)), None)


def table_end(rows: Sequence[Row], width: int) -> int:
    """How many rows belong to the table: notes below it have one cell each, after an empty row.

    A line of one cell where the table has several columns is a note also without an empty row before it.
    """
    end = len(rows)
    while end and (not filled(rows[end - 1]) or len(rows[end - 1]) == 1 < width):
        end -= 1
    blank = next((i for i in range(end - 1, -1, -1) if not filled(rows[i])), None)
    if blank is None or width < 2:
        return end
    notes = rows[blank:end]
    if all(not any(map(str.strip, map(_text, row[1:]))) for row in notes):
        return table_end(rows[:blank], width)
    return end


def _text(cell: str | None) -> str:
    """A cell as text."""
    return cell or ""


def layout_notes(where: str, above: int, below: int) -> tuple[Note, ...]:
    """What was found above and below a table."""
    notes = []
    if above:
        rows = f"{above} row{'s' * (above != 1)}"
        notes.append(Note("rows-above", f"{rows} above the header of {where} not read"))
    if below:
        rows = f"{below} row{'s' * (below != 1)}"
        said = f"{rows} below the table in {where}, of notes or without any value, not read"
        notes.append(Note("rows-below", said))
    return tuple(notes)


def unique(file: Path, fields: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Column names made different, with a name for those without."""
    columns: list[str] = []
    taken: set[str] = set()
    times: Counter[str] = Counter()
    twice = repeated(fields)
    for position, field in enumerate(fields, start=1):
        if field in twice and field in wanted:
            raise DataError(f"{file} has two columns {field!r}; rename one of them")
        name = given = field or f"column{position}"
        while name.casefold() in taken:
            times[given.casefold()] += 1
            name = f"{given}_{times[given.casefold()] + 1}"
        columns.append(name)
        taken.add(name.casefold())
    return tuple(columns)


def repeated(fields: Sequence[str]) -> frozenset[str]:
    """Names that several columns have."""
    return frozenset(field for field, times in Counter(fields).items() if field and times > 1)


def check_same_columns(first: Path, columns: Sequence[str], file: Path, others: Sequence[str]) -> None:
    """Refuse files with different columns, and say which has which."""
    more = [name for name in others if name not in columns]
    fewer = [name for name in columns if name not in others]
    if more or fewer:
        said = [f"has {', '.join(map(repr, more))} that {first} has not"] if more else []
        said += [f"lacks {', '.join(map(repr, fewer))} of {first}"] if fewer else []
        raise DataError(f"{file} {' and '.join(said)}; give files with the same columns")
