"""Tables into files. Writing is atomic: a file appears whole, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binreps.errors import OptionError
from binreps.table import Table
from binreps.tables.files import FORMATS, SHORT, PathLike, ending
from binreps.tables.leftovers import marked, remove_leftovers
from binreps.tables.sql import quoted

if TYPE_CHECKING:
    import duckdb

_KEPT = "binreps_kept"  # a table on a connection of ours, which is in memory
_STAGE = "binreps"  # where files are that take their places together
_UNSEEN = (  # letters that a spreadsheet may leave out: spaces, controls, marks of direction and order
    "\\x00-\\x20\\x7f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
_FORMULA = rf"^([{_UNSEEN}]*[=+\-@＝＋－＠]|[\t\r\n])"  # how text starts that a spreadsheet may run
_SIGNED = r"^ *[+\-]([0-9]*[.,]?[0-9]*([eE][+\-]?[0-9]+)?)$"  # numbers, and the results + and −


def write_file(relation: duckdb.DuckDBPyRelation, target: PathLike) -> None:
    """Write a relation as CSV, gzipped CSV or Parquet, by the ending of the name; whole or not at all."""
    zipped = str(target).lower().endswith(".gz")
    with replacing(target) as part:
        if ending(Path(target)) in FORMATS["parquet"]:
            relation.write_parquet(str(part))
        else:
            separator = "\t" if ending(Path(target)) in ("tsv", "tab") else ","
            _spreadsheet_safe(relation).write_csv(
                str(part), sep=separator, header=True, compression="gzip" if zipped else "none"
            )


def write_table(table: Table, target: PathLike, connection: duckdb.DuckDBPyConnection | None = None) -> None:
    """Write a small table of ours as CSV, gzipped CSV or Parquet, whole or not at all.

    DuckDB gets lists: to make an Arrow array of one imports pandas where it is installed, which takes longer.
    """
    names = {f"c{i}": name for i, name in enumerate(table.columns)}
    lists = {key: [None if x != x else x for x in table[name]] for key, name in names.items()}
    parts = [f"unnest(${key}{_kind(lists[key])}) AS {quoted(name)}" for key, name in names.items()]
    with _keeping_order(connection) as used:
        write_file(used.sql(f"SELECT {', '.join(parts)}", params=lists), target)


def _kind(values: list[Any]) -> str:
    """The type of a list of whole numbers: DuckDB would choose one by the largest."""
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in values if x is not None)
    return "::BIGINT[]" if whole else ""


def kept(relation: duckdb.DuckDBPyRelation, connection: duckdb.DuckDBPyConnection) -> Any:
    """The rows of a relation, computed once and in their order: for few that are read again."""
    with _keeping_order(connection):
        connection.execute(f"DROP TABLE IF EXISTS {_KEPT}")
        relation.create(_KEPT)
    return connection.table(_KEPT)


def write_arrow(rows: Any, target: PathLike) -> None:
    """Write an Arrow table in its order."""
    with _keeping_order(None) as used:
        write_file(used.from_arrow(rows), target)


@contextmanager
def _keeping_order(connection: duckdb.DuckDBPyConnection | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that is open, or one of its own, that keeps the order of rows."""
    import duckdb

    with duckdb.connect() if connection is None else nullcontext(connection) as used:
        used.execute("SET preserve_insertion_order = true")
        yield used


def _spreadsheet_safe(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it; numbers stay."""
    parts = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        value = quoted(name)
        if not SHORT.fullmatch(str(kind)):  # bytes and lists are written as text too
            text = f"{value}::VARCHAR"
            formula = f"regexp_matches({text}, '{_FORMULA}') AND NOT regexp_matches({text}, '{_SIGNED}')"
            value = f"CASE WHEN {formula} THEN chr(39) || {text} ELSE {text} END"
        parts.append(f"{value} AS {quoted(safe_text(name))}")
    return relation.project(", ".join(parts))


def safe_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> [safe_text(text) for text in ("=1+1", " =1", "-1", "+", "P-7", "@x")]
    ["'=1+1", "' =1", '-1', '+', 'P-7', "'@x"]
    """
    return f"'{text}" if re.match(_FORMULA, text) and not re.fullmatch(_SIGNED, text) else text


def check_target(target: PathLike, sources: Iterable[Path] = ()) -> None:
    """Refuse a file that cannot be written, or that is read."""
    path = Path(target)
    zipped = path.suffix.lower() == ".gz"
    if ending(path) not in (FORMATS["csv"] if zipped else FORMATS["csv"] + FORMATS["parquet"]):
        raise OptionError(
            f"{path} cannot be written; name a file that ends in .csv, .csv.gz, .tsv or .parquet"
        )
    check_place(path)
    if path.exists() and any(path.samefile(source) for source in sources):
        raise OptionError(f"{path} is read and cannot be written too; name another file")


def check_place(path: Path) -> None:
    """Refuse a file that is a folder, or in a folder that is not there."""
    if path.is_dir():
        raise OptionError(f"{path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"{path} cannot be written, as there is no folder {path.parent}")


@contextmanager
def replacing(target: PathLike) -> Iterator[Path]:
    """A new file beside the target that takes its place at the end, or vanishes if something goes wrong."""
    path = Path(target)
    check_place(path)
    part = path.with_name(marked(path.name))
    remove_leftovers(path.absolute().parent, path.name)
    try:
        yield part
        if path.exists():
            shutil.copymode(path, part)
        with part.open("rb+") as handle:
            os.fsync(handle.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.absolute().parent)


@contextmanager
def replacing_all(folder: Path) -> Iterator[Path]:
    """A folder for new files, which all take their places in another at the end; or nothing happens there."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder, _STAGE)
    stage = folder / marked(_STAGE)
    try:
        stage.mkdir()
        yield stage
        with _undisturbed():
            for file in stage.iterdir():
                file.replace(folder / file.name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        with suppress(OSError):
            if new:
                folder.rmdir()  # which is refused unless it is empty
    _sync_folder(folder.absolute())


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals wait until the end of what takes an instant, where the system can hold them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
