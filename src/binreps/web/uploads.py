"""Files that a browser sends: kept in a temporary folder under a name of our own, for one request or some.

The name that the client gives is shown, and tells the format; it is never opened.
"""

from __future__ import annotations

import gzip
import re
import secrets
import shutil
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from starlette.exceptions import HTTPException

from binreps.counts import CountTable
from binreps.errors import BinrepsError, DataError
from binreps.run.analysis import Source
from binreps.run.front import named_columns, read_source, source_notes
from binreps.show.summary import notes_rows
from binreps.show.wording import read_words
from binreps.tables.guess import QuestionError, described
from binreps.tables.leftovers import new_folder
from binreps.tables.opened import OpenTable, open_table
from binreps.tables.roles import column_names
from binreps.tables.sheets import sheet_names
from binreps.web import limits
from binreps.web.people import read_people
from binreps.web.requests import FileRequest

_ENDINGS = ("csv", "tsv", "tab", "txt", "parquet", "pq", "arrow", "feather", "ipc", "xlsx", "xlsm")
_SHOWN = 5  # values of each column
_LONGEST = 60  # characters of a shown value
_NESTED = 500  # letters of the name of a type, which grows with what is in it
_SMALLER = "save it as CSV UTF-8, or use the command line"


def shown_name(name: str | None) -> str:
    r"""The client's name for a file, without folders and control characters.

    Examples
    --------
    >>> shown_name("C:\\me/tests\n.csv"), shown_name(None)
    ('tests.csv', 'data.csv')
    """
    last = re.split(r"[/\\]", name or "")[-1]
    text = "".join(letter for letter in last if letter.isprintable())[-120:]
    return text or "data.csv"


@contextmanager
def saved(file: BinaryIO, name: str) -> Iterator[Path]:
    """The upload as a file of our own name, for as long as it is needed; sentences speak of the client's."""
    with new_folder("binreps-web") as folder:
        path = Path(folder, f"{secrets.token_hex(8)}{_ending(name)}")
        with speaking_of(path, name):
            write_upload(file, path, name)
            yield path


@contextmanager
def speaking_of(path: Path, name: str) -> Iterator[None]:
    """Sentences about a file with the client's name of it."""
    try:
        yield
    except BinrepsError as error:
        raise type(error)(str(error).replace(str(path), name)) from None


def write_upload(file: BinaryIO, path: Path, name: str) -> None:
    """Keep the bytes of an upload, if they are safe to open."""
    with path.open("wb") as handle:
        shutil.copyfileobj(file, handle, 2**20)
    unpacked, most = _unpacked(path)
    if unpacked > most:
        raise DataError(f"{name} unpacks to more than {most // 2**20} MB; {_SMALLER}")


@dataclass
class _Kept:
    """A file that was sent: where it lies, the client's name of it, and how many requests read it now."""

    path: Path
    name: str
    size: int
    readers: int = 0
    gone: bool = False


class Uploads:
    """Files that were sent, kept for the requests to come: few, of bounded size, gone with the server.

    The oldest make room for new ones. A client knows its file by a random id; whoever asks for one that is
    gone is told to send it again.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def add(self, file: BinaryIO, name: str) -> str:
        """Keep a file; the id to ask for it by."""
        key = secrets.token_urlsafe(16)
        with self._lock:
            if self._folder is None:
                self._folder = new_folder("binreps-web")
            path = Path(self._folder.name, f"{secrets.token_hex(8)}{_ending(name)}")
        try:
            with speaking_of(path, name):
                write_upload(file, path, name)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        with self._lock:
            self._files[key] = _Kept(path, name, path.stat().st_size)
            self._make_room()
        return key

    def drop(self, key: str | None) -> None:
        """Forget a file that another one replaces."""
        with self._lock:
            self._forget(key)

    @contextmanager
    def using(self, key: str) -> Iterator[tuple[Path, str]]:
        """A file that was sent and the client's name of it, which stays for as long as it is read."""
        with self._lock:
            kept = self._files.get(key)
            if kept is None:
                raise HTTPException(410, "the file that was sent is no longer here; send it again")
            kept.readers += 1
        try:
            with speaking_of(kept.path, kept.name):
                yield kept.path, kept.name
        finally:
            with self._lock:
                kept.readers -= 1
                if kept.gone and not kept.readers:
                    kept.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            self._files.clear()
            if self._folder is not None:
                self._folder.cleanup()
            self._folder = None

    def _make_room(self) -> None:
        """Forget the oldest while there are too many, or too much."""
        while len(self._files) > 1 and (
            len(self._files) > limits.KEPT_FILES
            or sum(kept.size for kept in self._files.values()) > limits.KEPT_BYTES
        ):
            self._forget(next(iter(self._files)))

    def _forget(self, key: str | None) -> None:
        """Remove one file, as soon as nobody reads it."""
        kept = self._files.pop(key or "", None)
        if kept is not None:
            kept.gone = True
            if not kept.readers:
                kept.path.unlink(missing_ok=True)


def _ending(name: str) -> str:
    """The ending that tells the format, if it is one that we read."""
    lower = name.lower()
    zipped = ".gz" if lower.endswith(".gz") else ""
    ending = lower.removesuffix(".gz").rpartition(".")[2]
    if ending not in _ENDINGS:
        advice = (
            "save it as CSV UTF-8" if ending in ("xls", "xlsb", "ods", "numbers") else "send one of those"
        )
        raise DataError(f"{name} cannot be read; the page takes CSV, Parquet, Arrow or .xlsx files: {advice}")
    return f".{ending}{zipped}"


def _unpacked(path: Path) -> tuple[int, int]:
    """How many bytes a packed file holds, counted to a little more than it may, and how many it may."""
    if path.suffix in (".xlsx", ".xlsm") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist()), limits.WORKBOOK_BYTES
    size, most = 0, limits.UNPACKED_BYTES
    if path.suffix == ".gz":
        with (
            suppress(OSError, EOFError, zlib.error),
            gzip.open(path) as content,
        ):  # a damaged one is told later
            while size <= most and (block := content.read(2**20)):
                size += len(block)
    return size, most


def describe(sheet: str | None, path: Path, title: str) -> dict[str, Any]:
    """The columns of a file with some values, and the guess of what they are, or the question instead.

    Of a workbook with several sheets also one without a table is described, so that another can be chosen.
    """
    try:
        return _described(sheet, path, title)
    except DataError as error:
        names = sheet_names(path) if path.suffix in (".xlsx", ".xlsm") else []
        if len(names) < 2:
            raise
        content = {"name": title, "sheet": sheet or names[0], "sheets": names, "columns": [], "guess": None}
        return {**content, "problem": str(error).replace(str(path), title), "proposed": {}}


def _described(sheet: str | None, path: Path, title: str) -> dict[str, Any]:
    """The columns of a file, or of a sheet in it, that has a table."""
    with open_table(path, memory=limits.MEMORY, sheet=sheet) as opened:
        limits.check_columns(opened.frame.columns)
        rows = {row.pop("column"): row for row in described(opened.sample, {})}
        content: dict[str, Any] = {
            "name": title,
            "sheet": None if opened.files is None else opened.files.sheet,
            "sheets": [] if opened.files is None else list(opened.files.sheets),
            "columns": [
                {"name": column, "values": [_short(value) for value in values[:_SHOWN]], **rows[column]}
                for column, values in opened.sample.items()
            ],
            "guess": None,
            "problem": None,
            "proposed": {},
        }
        try:
            guess = opened.guess({})
        except QuestionError as error:
            return {**content, "problem": str(error), "proposed": dict(error.proposed)}
        except DataError as error:
            return {**content, "problem": str(error)}
    found = {"kind": guess.kind, "words": str(guess), "columns": dict(guess.columns)}
    return {**content, "guess": {**found, "notes": notes_rows(guess.notes)}}


def _short(value: Any) -> str | None:
    """A value as text that fits on a line."""
    return None if value is None else str(value)[:_LONGEST]


def read_cells(request: FileRequest, path: Path, title: str) -> dict[str, Any]:
    """The counts of a file as the cells that a fit takes, and its individuals if they are few."""
    with reading_file(request, path, title) as source:
        assert source.reading is not None
        assert source.guess is not None
        cells, people = read_people(source)
        return {
            "name": title,
            "cells": cells,
            "columns": dict(source.guess.columns),
            "read_as": read_words(source),
            "notes": notes_rows(source_notes(source)),
            "missing": source.missing,
            "individuals": people,
        }


@contextmanager
def reading_file(request: FileRequest, path: Path, title: str) -> Iterator[Source]:
    """A file that was sent, opened once, counted, and refused if it is more than the page works with."""
    given = request.columns.columns()
    named = named_columns(given, given.pop("truth", None))
    opening: Any = {"memory": limits.MEMORY, "name": title, "sheet": request.sheet}
    with open_table(path, column_names(named), **opening) as opened:
        _check_table(opened)
        source = read_source(opened, named)
        assert source.reading is not None
        limits.check_length("populations", source.reading.populations, limits.POPULATIONS)
        counts = source.reading.counts
        for table in [counts] if isinstance(counts, CountTable) else counts.values():
            limits.check_counts(table)
        yield source


def _check_table(opened: OpenTable) -> None:
    """Refuse more columns and rows, and longer values, than the page works with."""
    assert opened.files is not None
    limits.check_columns(opened.frame.columns)
    limits.check_size("rows", len(opened.frame.limit(limits.ROWS + 1)), limits.ROWS)
    for name, kind in opened.files.kinds():
        if len(kind) > _NESTED:
            raise DataError(f"column {name[:_LONGEST]!r} must hold plain values, got {kind[:_LONGEST]}…")
    for name, length in opened.files.lengths().items():
        limits.check_size(f"bytes in a value of column {name[:_LONGEST]!r}", length, limits.VALUE_BYTES)
