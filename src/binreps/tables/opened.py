"""A table that is open: files or a dataframe, opened once, looked at once, counted once.

::

    open_table ──► OpenTable ──► guess ──► read ──► Reading (counts, missing results, notes)
                                                      └──► joined back, on the same connection (join.py)
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import narwhals.stable.v2 as nw

from binreps.counts import CountTable
from binreps.errors import DataError, OptionError
from binreps.notes import Note, warn_of
from binreps.options import kinds_checked
from binreps.table import Table
from binreps.tables.files import OpenFiles, PathLike, open_files
from binreps.tables.groups import counted_groups, group_names
from binreps.tables.guess import Guess, guess_columns
from binreps.tables.roles import Columns, Roles, column_names
from binreps.tables.tally import (
    ORDER,
    Frame,
    collected,
    no_result_note,
    no_result_words,
    open_frame,
    prepare,
    tally,
    values_of,
)

_SAMPLE = 1000  # rows that columns are guessed from
_SAMPLE_VALUES = 200_000  # of all columns together
_LONGEST = 200  # characters of such a value; the rest stays in the file


@dataclass(eq=False)
class OpenTable:
    """Rows where they live: those of files on a connection of our own, or the user's dataframe.

    Attributes
    ----------
    frame : dataframe
        The rows: a DuckDB relation over files, or what the user gave.
    name : str
        What to call the data.
    files : OpenFiles, optional
    closed : bool
        Whether the files are closed; a dataframe never is.
    """

    frame: Any
    name: str = "data"
    files: OpenFiles | None = None
    closed: bool = False

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, if there are any."""
        return () if self.files is None else self.files.paths

    @cached_property
    def sample(self) -> dict[str, list[Any]]:
        """The columns with their first values: what columns are guessed from."""
        shown = self.frame if self.files is None else self.files.cut(_LONGEST)
        frame = open_frame(shown)
        rows = min(_SAMPLE, _SAMPLE_VALUES // max(len(frame.collect_schema().names()), 1) + 1)
        return values_of(frame.head(rows))

    @cached_property
    def sha256(self) -> tuple[str, ...]:
        """The hash of each file's bytes."""
        return tuple(_sha256(file) for file in self.paths)

    def guess(self, given: Mapping[str, Any], left_out: Sequence[str] = ()) -> Guess:
        """The columns completed where they are not named."""
        columns: Any = given
        guess = guess_columns(self.sample, columns, left_out)
        if self.files is not None:
            self.files.check_single(column_names(guess.columns))
            return replace(guess, notes=(*self.files.notes, *guess.notes))
        return guess

    def numbered(self) -> Any:
        """The rows with their number in a column ORDER, where they are few or in memory."""
        if self.files is not None:
            return self.files.numbered()
        original = open_frame(self.frame)
        return original.with_row_index(ORDER) if isinstance(original, nw.DataFrame) else original


@contextmanager
def open_table(
    table: Any,
    wanted: Sequence[str] = (),
    *,
    memory: str | None = None,
    name: str | None = None,
    sheet: str | None = None,
) -> Iterator[OpenTable]:
    """A path, several, a dataframe or a `Table` as an open table; files are closed at the end."""
    if not is_path(table):
        if sheet is not None:
            raise OptionError(f"sheet names a sheet of a workbook, and the table is none; got {sheet!r}")
        yield OpenTable(native(table), name or "data")
        return
    with open_files(table, wanted, memory=memory, sheet=sheet) as files:
        first, more = files.paths[0].name, len(files.paths) - 1
        opened = OpenTable(files.relation, name or (f"{first} and {more} more" if more else first), files)
        try:
            yield opened
        finally:
            opened.closed = True


def is_path(table: Any) -> bool:
    """Whether a table is given by the names of its files."""
    several = table if isinstance(table, list | tuple) else [table]
    return all(isinstance(each, str | os.PathLike) for each in several)


def native(table: Any) -> Any:
    """A dataframe that engines read: a `Table` of ours becomes one of Arrow."""
    if not isinstance(table, Table):
        return table
    import pyarrow

    try:
        columns = {
            name: pyarrow.array(list(values), from_pandas=True) for name, values in table.columns.items()
        }
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise DataError(f"a column of the table holds values of several types ({error})") from None
    return pyarrow.table(columns)


def arrow_rows(frame: Any) -> Any:
    """The rows of any dataframe as an Arrow table, computed if it is lazy."""
    return collected(open_frame(frame)).to_arrow()


def _sha256(file: Path) -> str:
    """The hash of a file's bytes."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@dataclass(frozen=True, eq=False)
class Reading:
    """A table counted in one pass, and all that joining scores back needs.

    Attributes
    ----------
    table : OpenTable
    frame : prepared frame
    roles : Roles
        With both labels.
    population : str or None
    counts : CountTable, or dict of name to CountTable
        One for each population where their column is given.
    pairs : list of pair
        Every (n, s) there is.
    repeated : bool
        Whether an individual has several rows of counts.
    rows, missing : int
        Rows that belong to an individual; results that are missing.
    notes : tuple of Note
    no_result : dict
        Words that were read as no result, and how often.
    """

    table: OpenTable
    frame: Frame
    roles: Roles
    population: str | None
    counts: CountTable | dict[Any, CountTable]
    pairs: list[tuple[int, int]]
    repeated: bool
    rows: int
    missing: int
    notes: tuple[Note, ...]
    no_result: Mapping[str, int]  # words that were read as no result, and how often
    numbered: bool = False  # whether the frame has the rows' order already
    people: Frame | None = None  # one row per individual of that frame, if they are to be joined back

    @property
    def populations(self) -> list[Any]:
        """The names of the populations, if there are several."""
        return [] if isinstance(self.counts, CountTable) else list(self.counts)

    @property
    def everyone(self) -> CountTable:
        """The individuals of all populations."""
        if isinstance(self.counts, CountTable):
            return self.counts
        return sum(self.counts.values(), CountTable([], []))


def read(
    table: OpenTable,
    columns: Mapping[str, Any],
    population: str | None = None,
    *,
    numbered: bool = False,
    rows: bool = True,
) -> Reading:
    """Count a table, by population if asked for; `numbered` if its rows are to be joined back next.

    Without `rows` nobody asks how many rows a long table has, nor how many results are missing.
    """
    roles = Roles.of(**columns)
    frame = table.numbered() if numbered else table.frame
    if population is None:
        found, roles = prepare(frame, roles)
        one = tally(found, roles, rows=rows)
        how = (one.repeated, one.rows, one.missing, *_worded(found, roles, one.missing, one.notes))
        people = one.people if numbered else None
        return Reading(table, found, roles, None, one.counts, one.pairs, *how, numbered, people)
    names = group_names(open_frame(frame), population, roles)
    found, roles = prepare(frame, roles)
    tables, groups = counted_groups(found, roles, names)
    pairs = {pair for each in tables.values() for pair in zip(each.n.tolist(), each.s.tolist(), strict=True)}
    worded = _worded(found, roles, groups.missing, groups.notes)
    how = (groups.repeated, groups.rows, groups.missing, *worded)
    return Reading(table, found, roles, population, tables, sorted(pairs), *how, numbered)


def _worded(frame: Frame, roles: Roles, missing: int, notes: tuple[Note, ...]) -> tuple[Any, dict[str, int]]:
    """The notes with one on words that were read as no result, and these words; looked up if any can be."""
    words = no_result_words(frame, roles) if missing else {}
    return (*notes, *no_result_note(words)), words


@kinds_checked
def count_table(
    table: Any | PathLike | Sequence[PathLike],
    *,
    memory: str | None = None,
    sheet: str | None = None,
    **columns: Unpack[Columns],
) -> CountTable:
    r"""Count replicates and positives per individual, then individuals per (n, s), inside the table's engine.

    The table is one of

    - long, one row per replicate: give `individual` and `result`;
    - wide, one row per individual and one column per replicate: give `replicates`;
    - counted, one row per individual: give `n` and `s`, the columns with the counts;
    - cells, one row per distinct (n, s): give `n`, `s` and `weight`.

    Results are 0/1, booleans, or words, whatever their case: positive/negative, pos/neg, yes/no, true/false,
    reactive/non-reactive, detected/not detected, present/absent, +/−. Other labels need `positive`. Missing
    results (null, NaN, blank, NA) are not replicates, nor are words for no result (ND, not done,
    indeterminate, equivocal, invalid and the like); an individual with missing results only stays, with
    n = 0. Rows without an individual are dropped, with a warning that says how many.

    Parameters
    ----------
    table : dataframe, path or list of paths
        A dataframe of pandas, Polars (eager or lazy), PyArrow, a DuckDB relation, PySpark, Ibis: whatever
        narwhals reads; of a lazy one only the cells are collected. A `Table` of ours. Or files of any size:
        CSV (also tab- or semicolon-separated, also gzipped), Parquet, Arrow/Feather or .xlsx; a pattern such
        as `"run_*/calls.parquet"` takes every file that matches, and rows that do not fit into memory are
        spilled to the temporary directory.
    memory : str, optional
        The most memory to use for files, such as "4GB"; most of the machine's if not given.
    sheet : str, optional
        The sheet of a workbook; the first if not given.
    individual : str or list of str, optional
        Column, or columns together, that say whose replicate it is. In wide and counted tables it may be
        left out, which is faster: each row is then one individual. If given, rows of one individual add up.
    result : str, optional
        Column with the results of a long table.
    replicates : list of str, optional
        Columns with the results of a wide table.
    n, s, weight : str, optional
        Columns with the number of replicates, of positives, and of individuals.
    known : str, optional
        Column with the status of those whose status is known, missing for the others. It informs a fit;
        keep a truth that judges a fit apart.
    source : str, optional
        Column that says who or what gave the result. Counts leave it out, and a warning says so; `fit` uses
        it. In a wide table the replicates themselves are the sources.
    covariates : str or list of str, optional
        Counts leave them out, and a warning says so; `fit` uses them.
    time, batch : str, optional
        Columns that no model uses yet; a warning says so.
    positive, negative : optional
        The labels, one or several, for other words or numbers than those above: `positive="growth"`. With
        `positive` alone, every result must be one of these or one single other; finding which takes one more
        look at the column.
    missing : optional
        One or several more words, or numbers, that stand for no result.

    Returns
    -------
    CountTable

    Raises
    ------
    DataError
        For a column that is not there, and for a result that is neither positive, negative nor missing.

    Examples
    --------
    >>> import pyarrow
    >>> long = pyarrow.table({"patient": ["ann", "bob", "ann", "bob"], "test": ["pos", "neg", "neg", None]})
    >>> count_table(long, individual="patient", result="test")
    CountTable: 2 individuals, 3 replicates, 2 cells
    n  s  weight
    1  0       1
    2  1       1
    >>> wide = pyarrow.table({"first": [1, 0], "second": [0, None]})
    >>> count_table(wide, replicates=["first", "second"]) == _
    True
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "tests.csv")
    >>> _ = path.write_text("patient;test\n007;pos\n007;neg\n008;\n")
    >>> count_table(path, individual="patient", result="test").individuals
    2
    """
    roles = Roles.of(**columns)
    with open_table(table, roles.used, memory=memory, sheet=sheet) as opened:
        reading = read(opened, columns, rows=False)
    warn_of((*(() if opened.files is None else opened.files.notes), *reading.notes))
    return reading.everyone


@kinds_checked
def count_tables(
    table: Any | PathLike | Sequence[PathLike],
    *,
    by: str | Sequence[str],
    memory: str | None = None,
    **columns: Unpack[Columns],
) -> dict[Any, CountTable]:
    """Count every group of a table on its own: what `fit_populations` and `fit_many` take.

    Parameters
    ----------
    table : dataframe, path or list of paths
        Any that `count_table` reads; of a lazy one only the cells of each group are collected.
    by : str or list of str
        Column, or columns together, that say to which group a row belongs. Rows where one is missing are
        dropped, with a warning that says how many. The same individual in two groups is two individuals.
    memory, **columns
        As in `count_table`.

    Returns
    -------
    dict
        The counts of each group, sorted by group; with several columns a group is a tuple.

    Examples
    --------
    >>> import pyarrow
    >>> tests = pyarrow.table({"site": ["b", "a", "a"], "tests": [3, 3, 2], "hits": [3, 0, 1]})
    >>> for site, counts in count_tables(tests, by="site", n="tests", s="hits").items():
    ...     print(site, counts)
    a CountTable: 2 individuals, 5 replicates, 2 cells
    b CountTable: 1 individuals, 3 replicates, 1 cells
    """
    roles = Roles.of(**columns)
    with open_table(table, roles.used, memory=memory) as opened:
        names = group_names(open_frame(opened.frame), by, roles)
        found, roles = prepare(opened.frame, roles)
        tables, groups = counted_groups(found, roles, names)
    warn_of(groups.notes)
    return tables
