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
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binreps.errors import DataError, OptionError
from binreps.tables.sql import quoted
from binreps.tables.tally import ORDER, plain_text

if TYPE_CHECKING:
    import duckdb

PathLike = str | os.PathLike[str]
_Rows = tuple["duckdb.DuckDBPyRelation", Iterable[str]]  # and the names that several columns have

FORMATS = {
    "csv": ("csv", "tsv", "tab", "txt"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "excel": ("xlsx", "xlsm"),
}
_EXPORT = "in the spreadsheet program choose File → Save As → CSV UTF-8, and use that file"
_SEPARATORS = (",", ";", "\t", "|")
_HEAD_BYTES, _HEAD_LINES = 2**16, 30  # where a header must be found
_FEW_BYTES, _FEW_ROWS = 100 * 2**20, 10**6  # of input up to which rows are sorted back into their order


@dataclass(frozen=True, eq=False)
class OpenFiles:
    """Files that are open: where they lie, and their rows as a DuckDB relation on a connection of our own."""

    paths: tuple[Path, ...]
    relation: duckdb.DuckDBPyRelation
    connection: duckdb.DuckDBPyConnection
    twice: frozenset[str] = frozenset()  # names that several columns have; all but the first are renamed

    def check_single(self, names: Sequence[str]) -> None:
        """Refuse to use a column of which there are two."""
        for name in names:
            if name in self.twice:
                raise DataError(f"{self.paths[0]} has two columns {name!r}; rename one of them")

    def numbered(self) -> duckdb.DuckDBPyRelation:
        """The rows, with their number in a column ORDER where they are few."""
        small = sum(file.stat().st_size for file in self.paths) <= _FEW_BYTES
        if not small or len(self.relation.limit(_FEW_ROWS + 1)) > _FEW_ROWS:
            return self.relation
        self.connection.execute("SET preserve_insertion_order = true")
        return self.relation.project(f'*, row_number() OVER () AS "{ORDER}"')


@contextmanager
def open_files(
    path: PathLike | Sequence[PathLike], wanted: Sequence[str] = (), *, memory: str | None = None
) -> Iterator[OpenFiles]:
    """Files found, sniffed and opened once, closed at the end; what DuckDB says becomes one sentence."""
    import duckdb

    paths = find_files(path)
    with (
        tempfile.TemporaryDirectory(prefix="binreps-", ignore_cleanup_errors=True) as spill,
        _connected(spill, memory) as connection,
    ):
        try:
            relation, twice = _READERS[_format(paths)](connection, paths, wanted)
            yield OpenFiles(tuple(paths), relation, connection, frozenset(twice))
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
        advice = _EXPORT if unknown[0] in ("xls", "xlsb", "ods", "numbers") else f"{readable} can"
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


def _read_csv(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], wanted: Sequence[str]) -> _Rows:
    """Text files with the same columns; separator, order and titles may differ from file to file."""
    groups: dict[_Dialect, list[Path]] = {}
    for file in paths:
        groups.setdefault(_dialect(file, wanted), []).append(file)
    first = next(iter(groups))
    relations = []
    for dialect, files in groups.items():
        if set(dialect.columns) != set(first.columns):
            differing = ", ".join(repr(name) for name in sorted({*dialect.columns} ^ {*first.columns}))
            raise DataError(
                f"{files[0]} and {paths[0]} differ in columns {differing}; give files with the same"
            )
        relations.append(_read_alike(connection, files, dialect).select(*map(quoted, first.columns)))
    whole = relations[0]
    for relation in relations[1:]:
        whole = whole.union(relation)
    return whole, {name for dialect in groups for name in dialect.twice}


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
        return _Dialect(separator, skip, _unique(file, fields, wanted), zipped, _repeated(fields))
    for separator in _SEPARATORS:
        for skip, line in enumerate(lines):
            fields = [field.strip() for field in next(csv.reader([line], delimiter=separator), [])]
            if set(wanted) <= set(fields):
                return _Dialect(separator, skip, _unique(file, fields, wanted), zipped, _repeated(fields))
    header = next((line for line in lines if line.strip()), "")
    guess = max(_SEPARATORS, key=header.count)
    columns = ", ".join(repr(field.strip()) for field in next(csv.reader([header], delimiter=guess), []))
    missing = " and ".join(repr(name) for name in wanted if name not in header) or repr(wanted[0])
    raise DataError(f"{file} has no header with a column {missing}; its first line has {columns}")


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
    except (OSError, EOFError):
        raise DataError(f"{file} is not a whole gzip file; copy or compress it again") from None
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        text = decoder.decode(head)  # a character cut off at the end is left out
    except UnicodeDecodeError:
        raise DataError(_not_utf8(file)) from None
    if "\0" in text:
        raise DataError(_not_utf8(file))
    return text.splitlines()[:_HEAD_LINES], zipped


def _not_utf8(file: Path) -> str:
    """The sentence for text in another encoding."""
    return f"{file} is not UTF-8 text; {_EXPORT}"


def _unique(file: Path, fields: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Column names made different, with a name for those without."""
    columns: list[str] = []
    taken: set[str] = set()
    for position, field in enumerate(fields, start=1):
        if field in columns and field in wanted:
            raise DataError(f"{file} has two columns {field!r}; rename one of them")
        name = field or f"column{position}"
        while name.casefold() in taken:
            name += "_"
        columns.append(name)
        taken.add(name.casefold())
    return tuple(columns)


def _repeated(fields: Sequence[str]) -> frozenset[str]:
    """Names that several columns have."""
    return frozenset(field for field in fields if field and fields.count(field) > 1)


def _read_parquet(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], wanted: Sequence[str]
) -> _Rows:
    """Parquet files with the same columns."""
    del wanted  # the tally says which is not there
    try:
        return connection.read_parquet([_escaped(file) for file in paths]), ()
    except RuntimeError as error:
        if "conversion error" not in str(error):
            raise
        raise DataError(f"{paths[0]} has a column whose name is not text; write it again") from None


def _read_arrow(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], wanted: Sequence[str]) -> _Rows:
    """Arrow and Feather files, streamed."""
    del wanted
    import pyarrow
    import pyarrow.dataset

    try:
        rows = pyarrow.dataset.dataset(list(map(str, paths)), format="feather")
        for batch in rows.to_batches():
            batch.validate(full=True)  # DuckDB trusts what it is given: a damaged file would end the process
        return connection.from_arrow(rows), ()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, OSError):
        raise DataError(
            f"{paths[0]} is not an Arrow file (Feather version 2); write it again as such"
        ) from None


def _read_excel(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], wanted: Sequence[str]) -> _Rows:
    """The first sheets of workbooks, every column as text."""
    import pyarrow

    sheets = [_sheet_columns(file, wanted) for file in paths]
    tables = [pyarrow.table(columns) for columns, _ in sheets]
    try:
        whole = connection.from_arrow(pyarrow.concat_tables(tables))
        return whole, {name for _, twice in sheets for name in twice}
    except pyarrow.ArrowInvalid:
        raise DataError("the workbooks differ in columns; give files with the same") from None


def _sheet_columns(file: Path, wanted: Sequence[str]) -> tuple[dict[str, Any], frozenset[str]]:
    """The columns of a workbook's first sheet under the first row with all the wanted names."""
    import pyarrow

    rows = _sheet_rows(file)
    first: tuple[str, ...] = ()
    for row in islice(rows, _HEAD_LINES):
        fields = tuple((text or "").strip() for text in row)
        first = first or fields
        if set(wanted) <= set(fields):
            names = _unique(file, fields, wanted)
            columns = list(zip(*rows, strict=True)) or [()] * len(names)
            texts = (pyarrow.array(column, pyarrow.string()) for column in columns)
            return dict(zip(names, texts, strict=True)), _repeated(fields)
    missing = " and ".join(repr(name) for name in wanted if name not in first) or repr(wanted[0])
    raise DataError(
        f"the first sheet of {file} has no column {missing}; its first row has {', '.join(map(repr, first))}"
    )


def _sheet_rows(file: Path) -> Iterator[tuple[str | None, ...]]:
    """The rows of a workbook's first sheet, as text."""
    try:
        import openpyxl
    except ImportError:
        raise DataError(f"{file} needs openpyxl (pip install 'binreps[excel]'); or {_EXPORT}") from None
    try:
        # it warns about styles, which are not read; a filter that stays is safe where other threads read too
        warnings.filterwarnings("ignore", module="openpyxl")
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception as error:
        raise DataError(_no_workbook(file, error)) from None
    try:
        for row in book.worksheets[0].iter_rows(values_only=True):
            yield tuple(map(plain_text, row))
    except Exception as error:  # a damaged sheet is found while it is read
        raise DataError(_no_workbook(file, error)) from None
    finally:
        book.close()


def _no_workbook(file: Path, error: Exception) -> str:
    """The sentence for a workbook that openpyxl does not read."""
    return f"{file} is not a workbook that can be read ({' '.join(str(error).split())}); {_EXPORT}"


_READERS = {"csv": _read_csv, "parquet": _read_parquet, "arrow": _read_arrow, "excel": _read_excel}


def _explained(error: str, paths: Sequence[Path]) -> str:
    """DuckDB's error as one sentence that says what to change."""
    named = re.search(r"^\s*file = (.+)$", error, re.MULTILINE)
    file = named[1] if named else str(paths[0])
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
    if "magic bytes" in error:
        return f"{file} is not a whole Parquet file; copy or write it again"
    if "Out of Memory" in error:
        return f"{file} needs more memory; give a larger memory=, or free some on this machine"
    reason = " ".join(error.split("\n\n")[0].split())
    return f"{where} gave DuckDB a problem: {reason}"
