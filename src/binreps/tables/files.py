"""Files of any size, opened once, through DuckDB: the rows never pass through Python.

CSV and Excel columns are read as the text they are, so that an id 007 stays 007 and no value is guessed
into a date. Writing is atomic: a file appears whole, or not at all.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binreps.errors import DataError, OptionError
from binreps.notes import Note
from binreps.tables.header import (
    EXPORT,
    HEAD_ROWS,
    check_same_columns,
    layout_notes,
    repeated,
    table_end,
    unique,
)
from binreps.tables.leftovers import new_folder
from binreps.tables.sheets import read_sheet
from binreps.tables.sql import quoted
from binreps.tables.tally import ORDER

if TYPE_CHECKING:
    import duckdb

PathLike = str | os.PathLike[str]

FORMATS = {
    "csv": ("csv", "tsv", "tab", "txt"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "excel": ("xlsx", "xlsm"),
}
_SEPARATORS = (",", ";", "\t", "|")
SHORT = re.compile(r"BOOLEAN|U?[A-Z]*INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\([\d, ]+\)|DATE|TIME[A-Z_ ]*|UUID")
"""Types whose values are short."""
_LONG = {"VARCHAR": "strlen", "BLOB": "octet_length"}  # others, and what counts their bytes
_HEAD_BYTES = 2**16  # where a header must be found, and notes at the end
_FEW_BYTES, _FEW_ROWS = 100 * 2**20, 10**6  # of input up to which rows are sorted back into their order


@dataclass(frozen=True, eq=False)
class OpenFiles:
    """Files that are open: where they lie, and their rows as a DuckDB relation on a connection of our own."""

    paths: tuple[Path, ...]
    relation: duckdb.DuckDBPyRelation
    connection: duckdb.DuckDBPyConnection
    twice: frozenset[str] = frozenset()  # names that several columns have; all but the first are renamed
    notes: tuple[Note, ...] = ()  # what lies above and below the table, and which sheet was read
    sheet: str | None = None
    separator: str | None = None
    sheets: tuple[str, ...] = ()  # all that the first workbook has

    def check_single(self, names: Sequence[str]) -> None:
        """Refuse to use a column of which there are two."""
        for name in names:
            if name in self.twice:
                raise DataError(f"{self.paths[0]} has two columns {name!r}; rename one of them")

    def cut(self, longest: int) -> duckdb.DuckDBPyRelation:
        """The rows, with so many characters at most of what may be long: texts, bytes, lists."""
        return self.relation.project(", ".join(_cut(name, kind, longest) for name, kind in self.kinds()))

    def lengths(self) -> dict[str, int]:
        """The bytes of the longest value of each column of text or bytes."""
        long = {name: _LONG[kind] for name, kind in self.kinds() if kind in _LONG}
        if not long:
            return {}
        longest = ", ".join(f"max({how}({quoted(name)}))" for name, how in long.items())
        return {
            name: length or 0
            for name, length in zip(long, self.relation.aggregate(longest).fetchall()[0], strict=True)
        }

    def kinds(self) -> list[tuple[str, str]]:
        """The columns with DuckDB's name of their type."""
        return list(zip(self.relation.columns, map(str, self.relation.types), strict=True))

    def numbered(self) -> duckdb.DuckDBPyRelation:
        """The rows, with their number in a column ORDER where they are few."""
        small = sum(file.stat().st_size for file in self.paths) <= _FEW_BYTES
        if not small or len(self.relation.limit(_FEW_ROWS + 1)) > _FEW_ROWS:
            return self.relation
        self.connection.execute("SET preserve_insertion_order = true")
        return self.relation.project(f'*, row_number() OVER () AS "{ORDER}"')


@dataclass(frozen=True)
class _How:
    """What is asked of the files: columns that their header has, a sheet, a folder to work in."""

    wanted: Sequence[str]
    sheet: str | None
    folder: str


@dataclass(frozen=True)
class _Found:
    """The rows of files, names that several columns have, and how the table lies in them."""

    rows: duckdb.DuckDBPyRelation
    twice: Iterable[str] = ()
    notes: tuple[Note, ...] = ()
    sheet: str | None = None
    separator: str | None = None
    sheets: tuple[str, ...] = ()  # all that the first workbook has


def _cut(name: str, kind: str, longest: int) -> str:
    """A column in SQL, as text that is cut if its values may be long."""
    column = quoted(name)
    if SHORT.fullmatch(kind):
        return column
    part = f"{column}[1:{longest}]" if kind in _LONG or kind.endswith("]") else column
    return f"left({part}::VARCHAR, {longest}) AS {column}"


@contextmanager
def open_files(
    path: PathLike | Sequence[PathLike],
    wanted: Sequence[str] = (),
    *,
    memory: str | None = None,
    sheet: str | None = None,
) -> Iterator[OpenFiles]:
    """Files found, sniffed and opened once, closed at the end; what DuckDB says becomes one sentence."""
    import duckdb

    paths = find_files(path)
    with (
        new_folder("binreps") as spill,
        _connected(spill, memory) as connection,
    ):
        try:
            kind = _format(paths)
            if sheet is not None and kind != "excel":
                raise OptionError(f"sheet names a sheet of a workbook, and {paths[0]} is none; got {sheet!r}")
            found = _READERS[kind](connection, paths, _How(wanted, sheet, spill))
            how = (found.notes, found.sheet, found.separator, found.sheets)
            yield OpenFiles(tuple(paths), found.rows, connection, frozenset(found.twice), *how)
        except duckdb.Error as error:
            raise DataError(_explained(str(error), paths)) from error
        except RuntimeError as error:
            if "interrupted" in str(error):  # what DuckDB makes of Ctrl-C
                raise KeyboardInterrupt from None
            raise


@contextmanager
def _connected(spill: str, memory: str | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of our own that spills to a directory and asks no network for extensions."""
    import duckdb

    config: dict[str, Any] = {
        "temp_directory": spill,
        "preserve_insertion_order": False,  # keeping the order of many rows costs memory and time
        "autoinstall_known_extensions": False,
    }
    if memory is not None:
        config["memory_limit"] = memory
    try:
        connection = duckdb.connect(config=config)
    except duckdb.Error as error:
        raise OptionError(f"memory must be a size such as '4GB', got {memory!r}") from error
    try:
        yield connection
    finally:
        connection.close()


def find_files(path: PathLike | Sequence[PathLike]) -> list[Path]:
    """Every file that is named or matches, in a fixed order."""
    given: Sequence[PathLike] = [path] if isinstance(path, str | os.PathLike) else path
    found = [file for each in given for file in _matches(os.fspath(each))]
    if not found:
        raise OptionError("path must name at least one file, got none")
    for file in found:
        if file.is_dir():
            raise DataError(f"{file} is a folder; name the files in it, such as {file / '*.parquet'}")
        if file.exists() and not file.is_file():  # reading a pipe or a device may never end
            raise DataError(f"{file} is a pipe or a device; write it to a file first")
        try:
            with file.open("rb") as handle:
                empty = not handle.read(1)
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}") from None
        if empty:
            raise DataError(f"{file} is empty")
    return found


def _matches(path: str) -> list[Path]:
    """The file of that name, or else those that match it as a pattern."""
    if Path(path).exists():
        return [Path(path)]
    files = [Path(name) for name in _glob(path) if Path(name).is_file()]
    if not files:
        raise DataError(f"no file matches {path}" if glob.has_magic(path) else f"there is no file {path}")
    return files


def _glob(pattern: str) -> list[str]:
    """The names that match, sorted."""
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern


def _format(paths: Sequence[Path]) -> str:
    """The one format of the files, by their names."""
    endings = {ending(file) for file in paths}
    formats = {name for name, known in FORMATS.items() for one in endings if one in known}
    unknown = sorted(endings.difference(*FORMATS.values()))
    if unknown:
        odd = next(file for file in paths if ending(file) == unknown[0])
        readable = "CSV, Parquet, Arrow/Feather or .xlsx"
        advice = EXPORT if unknown[0] in ("xls", "xlsb", "ods", "numbers") else f"{readable} can"
        raise DataError(f"{odd} cannot be read; {advice}")
    if len(formats) > 1:
        raise DataError(f"files of one kind can be read together, got {' and '.join(sorted(formats))}")
    return formats.pop()


def ending(path: Path) -> str:
    """The ending that tells the format, without .gz."""
    name = path.name.lower().removesuffix(".gz")
    return name.rpartition(".")[2] if "." in name else ""


def _escaped(path: Path) -> str:
    """A name that DuckDB takes as it is: absolute, and none of its characters a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))


@dataclass(frozen=True)
class _Dialect:
    """How a text file is laid out."""

    separator: str
    skip: int
    columns: tuple[str, ...]
    zipped: bool
    twice: frozenset[str]
    above: int = 0  # lines above the header that say something


def _read_csv(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], how: _How) -> _Found:
    """Text files with the same columns; separator, order and titles may differ from file to file."""
    groups: dict[_Dialect, list[Path]] = {}
    notes: list[Note] = []
    for file in paths:
        dialect = _dialect(file, how.wanted)
        part, below = _without_notes(_with_one_line_end(file, dialect, how.folder), dialect, how.folder)
        groups.setdefault(dialect, []).append(part)
        notes += layout_notes(str(file), dialect.above, below)
        check_same_columns(paths[0], next(iter(groups)).columns, file, dialect.columns)
    first = next(iter(groups))
    relations = [_read_alike(connection, files, dialect) for dialect, files in groups.items()]
    whole = relations[0].select(*map(quoted, first.columns))
    for relation in relations[1:]:
        whole = whole.union(relation.select(*map(quoted, first.columns)))
    twice = {name for dialect in groups for name in dialect.twice}
    return _Found(whole, twice, tuple(dict.fromkeys(notes)), separator=first.separator)


def _with_one_line_end(file: Path, dialect: _Dialect, folder: str) -> Path:
    """The file, or a copy whose lines all end alike, which is all that DuckDB reads.

    Rows that were added with other line ends are at the beginning or the end of a file of moderate size.
    """
    size = file.stat().st_size
    if dialect.zipped or size > _FEW_BYTES:
        return file
    with file.open("rb") as handle:
        head = handle.read(_HEAD_BYTES)
        handle.seek(max(0, size - _HEAD_BYTES))
        tail = handle.read()
    seen = b"".join([*head.split(b'"')[::2], *tail.split(b'"')[::-2]])  # what lies between quotes is data
    if seen.count(b"\r\n") in (0, seen.count(b"\n")):
        return file
    parts = file.read_bytes().split(b'"')
    parts[::2] = [part.replace(b"\r\n", b"\n") for part in parts[::2]]
    copy = _copied(file, folder)
    copy.write_bytes(b'"'.join(parts))
    return copy


def _copied(file: Path, folder: str) -> Path:
    """Where a copy of a file goes, under a name of its own."""
    return Path(folder, f"{len(os.listdir(folder))}-{file.name}")  # noqa: PTH208 - a number of its own


def _without_notes(file: Path, dialect: _Dialect, folder: str) -> tuple[Path, int]:
    """The file, or a copy without the notes below its table, and how many lines they are.

    Only the end of a file of moderate size is looked at; a quotation mark there that is not closed may belong
    to a field of several lines, and then the file is left as it is.
    """
    size = file.stat().st_size
    if dialect.zipped or size > _FEW_BYTES:
        return file, 0
    with file.open("rb") as handle:
        handle.seek(max(0, size - _HEAD_BYTES))
        tail = handle.read()
    lines = tail.splitlines(keepends=True)[1 if size > _HEAD_BYTES else 0 :]
    if size <= _HEAD_BYTES:
        lines = lines[dialect.skip + 1 :]
    try:
        texts = [line.decode("utf-8") for line in lines]
    except UnicodeDecodeError:
        return file, 0
    if not texts or any(text.count('"') % 2 for text in texts):
        return file, 0
    rows = [next(csv.reader([text.rstrip("\r\n")], delimiter=dialect.separator), []) for text in texts]
    end = table_end(rows, len(dialect.columns))
    below = sum(bool(row) for row in rows[end:])
    if not below:
        return file, 0
    copy = _copied(file, folder)
    with file.open("rb") as source, copy.open("wb") as target:
        target.write(source.read(size - sum(map(len, lines[end:]))))
    return copy, below


def _read_alike(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], dialect: _Dialect
) -> duckdb.DuckDBPyRelation:
    """Text files that are laid out alike, every column as text."""
    read: Any = connection.read_csv  # takes several files, whatever its annotation says
    relation: duckdb.DuckDBPyRelation = read(
        [_escaped(file) for file in files],
        sep=dialect.separator,
        skiprows=dialect.skip,
        header=True,
        columns=dict.fromkeys(dialect.columns, "VARCHAR"),
        auto_detect=False,
        quotechar='"',
        escapechar='"',
        compression="gzip" if dialect.zipped else "none",
    )
    return relation


def _dialect(file: Path, wanted: Sequence[str]) -> _Dialect:
    """Find the header, the first line with all the wanted names, and the separator that shows it."""
    lines, zipped = _head(file)
    if not wanted:
        separator, skip, fields = _likely_header(lines)
        return _made_dialect(file, lines, (separator, skip, fields), zipped, wanted)
    for separator in _SEPARATORS:
        for skip, line in enumerate(lines):
            fields = [field.strip() for field in next(csv.reader([line], delimiter=separator), [])]
            if set(wanted) <= set(fields):
                return _made_dialect(file, lines, (separator, skip, fields), zipped, wanted)
    header = next((line for line in lines if line.strip()), "")
    guess = max(_SEPARATORS, key=header.count)
    columns = ", ".join(repr(field.strip()) for field in next(csv.reader([header], delimiter=guess), []))
    missing = " and ".join(repr(name) for name in wanted if name not in header) or repr(wanted[0])
    raise DataError(f"{file} has no header with a column {missing}; its first line has {columns}")


def _made_dialect(
    file: Path, lines: Sequence[str], found: tuple[str, int, list[str]], zipped: bool, wanted: Sequence[str]
) -> _Dialect:
    """How a file is laid out, from its separator and header."""
    separator, skip, fields = found
    above = sum(bool(line.strip(f" {separator}")) for line in lines[:skip])
    return _Dialect(separator, skip, unique(file, fields, wanted), zipped, repeated(fields), above)


def _likely_header(lines: Sequence[str]) -> tuple[str, int, list[str]]:
    """The separator on whose number of fields most lines agree, and the first such line, if mostly filled.

    With decimal commas a comma may give more fields than the semicolon does, but not in the header.
    """
    best, agreed = (",", 0, next(csv.reader(lines), [])), (0, 1)
    for separator in _SEPARATORS:
        rows = [[field.strip() for field in row] for row in csv.reader(lines, delimiter=separator)]
        widths = [len(row) for row in rows if any(row)]
        usual = max(widths, key=widths.count, default=0)
        skip = next(
            (i for i, row in enumerate(rows) if len(row) == usual < 2 * len(list(filter(None, row)))), 0
        )
        if usual > 1 and (widths.count(usual), usual) > agreed:
            best, agreed = (separator, skip, rows[skip]), (widths.count(usual), usual)
    return best


def _head(file: Path) -> tuple[list[str], bool]:
    """The first lines of a text file, and whether it is gzipped."""
    with file.open("rb") as handle:
        zipped = handle.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(file) if zipped else file.open("rb") as handle:
            head = handle.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{file} is not a whole gzip file; copy or compress it again") from None
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        text = decoder.decode(head)  # a character cut off at the end is left out
    except UnicodeDecodeError:
        raise DataError(_not_utf8(file)) from None
    if "\0" in text:
        raise DataError(_not_utf8(file))
    return text.splitlines()[:HEAD_ROWS], zipped


def _not_utf8(file: Path) -> str:
    """The sentence for text in another encoding."""
    return f"{file} is not UTF-8 text; {EXPORT}"


def _read_parquet(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], how: _How) -> _Found:
    """Parquet files with the same columns."""
    del how  # the tally says which column is not there
    try:
        return _Found(connection.read_parquet([_escaped(file) for file in paths]))
    except RuntimeError as error:
        if "conversion error" not in str(error):
            raise
        raise DataError(f"{paths[0]} has a column whose name is not text; write it again") from None


def _read_arrow(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], how: _How) -> _Found:
    """Arrow and Feather files, streamed."""
    del how
    import pyarrow
    import pyarrow.dataset

    try:
        rows = pyarrow.dataset.dataset(list(map(str, paths)), format="feather")
        for batch in rows.to_batches():
            batch.validate(full=True)  # DuckDB trusts what it is given: a damaged file would end the process
        return _Found(connection.from_arrow(rows))
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, OSError):
        raise DataError(
            f"{paths[0]} is not an Arrow file (Feather version 2); write it again as such"
        ) from None


def _read_excel(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], how: _How) -> _Found:
    """One sheet of each workbook, every column as text."""
    import pyarrow

    sheets = [read_sheet(file, how.wanted, how.sheet) for file in paths]
    first = list(sheets[0].columns)
    for file, sheet in zip(paths, sheets, strict=True):
        check_same_columns(paths[0], first, file, list(sheet.columns))
    tables = [
        pyarrow.table({name: pyarrow.array(sheet.columns[name], pyarrow.string()) for name in first})
        for sheet in sheets
    ]
    whole = connection.from_arrow(pyarrow.concat_tables(tables))
    notes = dict.fromkeys(note for sheet in sheets for note in sheet.notes)
    twice = {name for sheet in sheets for name in sheet.twice}
    return _Found(whole, twice, tuple(notes), sheets[0].name, sheets=sheets[0].beside)


_READERS = {"csv": _read_csv, "parquet": _read_parquet, "arrow": _read_arrow, "excel": _read_excel}


def _explained(error: str, paths: Sequence[Path]) -> str:
    """DuckDB's error as one sentence that says what to change."""
    named = re.search(r"^\s*file = (.+)$", error, re.MULTILINE)
    read = Path(named[1] if named else paths[0]).name  # perhaps that of a copy
    file = str(
        next((path for path in paths if re.fullmatch(rf"(\d+-)?{re.escape(path.name)}", read)), paths[0])
    )
    line = re.search(r"CSV Error on Line: (\d+)", error)
    where = f"line {line[1]} of {file}" if line else file
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", error)
    if fields:
        advice = "correct the line (a field that holds the separator needs quotes around it)"
        return f"{where} has {fields[2]} fields where the header has {fields[1]}; {advice}"
    if "Invalid unicode" in error:
        return _not_utf8(Path(file))
    if "quote" in error.lower() and line:
        return f"{where} has a quotation mark that is not closed; close or remove it"
    if "invalid state" in error:
        return f"{file} has lines that end in different ways, or damaged ones; save it anew as CSV"
    if "magic bytes" in error:
        return f"{file} is not a whole Parquet file; copy or write it again"
    if "Out of Memory" in error:
        return f"{file} needs more memory; give a larger memory=, or free some on this machine"
    reason = " ".join(error.split("\n\n")[0].split())
    return f"{where} gave DuckDB a problem: {reason}"
