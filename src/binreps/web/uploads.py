"""Files that a browser sends: kept in a temporary folder under a name of our own for one request, then gone.

The name that the client gives is shown, and tells the format; it is never opened.
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from binreps.counts import UNKNOWN, CountTable
from binreps.decide.loss import Loss
from binreps.errors import BinrepsError, BinrepsWarning, DataError
from binreps.fits.point.simple import fit_average
from binreps.show.folder import listed
from binreps.show.summary import plain
from binreps.tables.files import open_files, peek
from binreps.tables.groups import count_tables
from binreps.tables.guess import KINDS, guess_columns
from binreps.tables.join import score_file
from binreps.tables.tally import Roles, count_table
from binreps.web import limits
from binreps.web.requests import FileRequest

_ENDINGS = ("csv", "tsv", "tab", "txt", "parquet", "pq", "arrow", "feather", "ipc", "xlsx", "xlsm")
_SHOWN = 5  # values of each column
_LONGEST = 60  # characters of a shown value


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
    with tempfile.TemporaryDirectory(prefix="binreps-web-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, f"{secrets.token_hex(8)}{_ending(name)}")
        with path.open("wb") as handle:
            shutil.copyfileobj(file, handle, 2**20)
        try:
            _check_workbook(path, name)
            yield path
        except BinrepsError as error:
            raise type(error)(str(error).replace(str(path), name)) from None


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


def _check_workbook(path: Path, name: str) -> None:
    """Refuse a workbook that unpacks to more than memory should hold."""
    if path.suffix in (".xlsx", ".xlsm") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > limits.UNPACKED_BYTES:
            most = f"{limits.UNPACKED_BYTES // 2**20} MB"
            raise DataError(f"{name} unpacks to more than {most}; save it as CSV UTF-8")


def describe(path: Path, title: str) -> dict[str, Any]:
    """The columns of a file with some values, and the guess of what they are, or why there is none."""
    sample = peek(path)
    limits.check_length("columns", sample, limits.COLUMNS)
    content: dict[str, Any] = {
        "name": title,
        "columns": [
            {"name": column, "values": [_short(value) for value in values[:_SHOWN]]}
            for column, values in sample.items()
        ],
        "kinds": dict(KINDS),
        "guess": None,
        "problem": None,
    }
    try:
        guess = guess_columns(sample)
    except DataError as error:
        content["problem"] = str(error)
    else:
        content["guess"] = {
            "kind": guess.kind,
            "words": str(guess),
            "columns": dict(guess.columns),
            "notes": list(guess.notes),
        }
    return content


def _short(value: Any) -> str | None:
    """A value as text that fits on a line."""
    return None if value is None else str(value)[:_LONGEST]


def read_cells(request: FileRequest, path: Path, title: str) -> dict[str, Any]:
    """The counts of a file as the cells that a fit takes, and its individuals if they are few."""
    columns = _columns(path, request)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counts = _counts(path, columns, request)
        notes = [str(one.message) for one in caught if issubclass(one.category, BinrepsWarning)]
        people = _individuals(path, columns, request.population, counts)  # what it warns of is noted already
    tables = counts if isinstance(counts, dict) else {None: counts}
    for table in tables.values():
        limits.check_counts(table)
    return {
        "name": title,
        "cells": _as_cells(tables, request),
        "columns": {name: value for name, value in columns.items() if name != "known"},
        "notes": notes,
        "individuals": people,
    }


def check_file(path: Path, request: FileRequest) -> None:
    """Refuse a file with more rows, populations or cells than the page works with."""
    counts = _counts(path, _columns(path, request), request)
    for table in counts.values() if isinstance(counts, dict) else [counts]:
        limits.check_counts(table)


def _columns(path: Path, request: FileRequest) -> Any:
    """The columns of a file, completed where they are not named."""
    named = request.columns.columns()
    taken = filter(None, [request.population, request.truth, request.known])
    return dict(guess_columns(peek(path), named, taken).columns)


def _counts(path: Path, columns: Any, request: FileRequest) -> CountTable | dict[str, CountTable]:
    """The counts, with the statuses that are known or the truth."""
    if request.known is not None and request.truth is not None:
        raise DataError("give known or truth, not both: a status that informed a fit cannot judge it")
    roles = {**columns, "known": request.known or request.truth}
    wanted = [*Roles.of(**roles).used, *filter(None, [request.population])]
    with open_files(path, wanted, memory=limits.MEMORY) as relation:
        limits.check_size("rows", len(relation.limit(limits.ROWS + 1)), limits.ROWS)
        if request.population is None:
            return count_table(relation, **roles)
        tables = count_tables(relation, by=request.population, **roles)
        limits.check_length("populations", tables, limits.POPULATIONS)
        return {str(name): table for name, table in tables.items()}


def _as_cells(tables: dict[Any, CountTable], request: FileRequest) -> dict[str, list[Any]]:
    """The columns of `Cells`."""
    cells: dict[str, list[Any]] = {"n": [], "s": [], "weight": []}
    status = "known" if request.known else "truth" if request.truth else None
    for name, table in tables.items():
        for part in ("n", "s", "weight"):
            cells[part] += getattr(table, part).tolist()
        if status is not None:
            known = [None if value == UNKNOWN else value for value in table.known.tolist()]
            cells.setdefault(status, []).extend(known)
        if name is not None:
            cells.setdefault("population", []).extend([name] * len(table))
    return cells


def _individuals(path: Path, columns: Any, population: str | None, counts: Any) -> dict[str, Any] | None:
    """Names, n and s of everyone in the order of the file; None if they are too many, or only counted."""
    if "weight" in columns:
        return None
    everyone = sum(counts.values(), CountTable([], [])) if isinstance(counts, dict) else counts
    roles = dict(columns)
    names = roles.get("individual") or []
    names = [names] if isinstance(names, str) else list(names)
    if population is not None and "result" in roles:
        roles["individual"] = [population, *names]
    target = path.with_name("individuals.parquet")
    fit: Any = fit_average(everyone.forget_known())
    score_file(path, target, fit, loss=Loss(), prefix="binreps ", memory=limits.MEMORY, **roles)
    table = listed(target, limits.MEMORY)
    if table is None:
        return None
    rows = [row for row in table if row["binreps n"] is not None]
    people: dict[str, Any] = {
        "name": [" · ".join(str(row[name]) for name in names) or f"row {i}" for i, row in enumerate(rows, 1)],
        "n": [plain(row["binreps n"]) for row in rows],
        "s": [plain(row["binreps s"]) for row in rows],
    }
    if population is not None:
        people["population"] = [str(row[population]) for row in rows]
    return people
