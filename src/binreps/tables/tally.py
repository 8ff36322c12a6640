"""Any dataframe into a count table, in the engine it lives in.

::

    rows ──► individuals (n, s) ──► cells (n, s, weight)      both steps run in the user's engine,
                                                              only the cells leave it

Reading and checking are one pass. For each individual the engine counts the results that are given and adds
up the positive ones, to which a result that is neither adds far more; such results show up in the totals of
the cells, and only then is a second query asked which values they are.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from binreps.counts import UNKNOWN, CountTable, is_null
from binreps.errors import DataError, OptionError
from binreps.notes import Note
from binreps.tables.roles import BLANK, Labels, Roles, check_columns
from binreps.words import plural

Frame = Any  # nw.DataFrame or nw.LazyFrame: their union has no common type that can be grouped

# Columns of the working tables; the prefix keeps them apart from the user's.
N, S = "__binreps_n", "__binreps_s"  # replicates and positives, of a row or of an individual
NEGATIVES, BAD = "__binreps_negatives", "__binreps_bad"  # results that are negative; that are neither
ORDER = "__binreps_order"  # number of the row, where rows have an order
WEIGHT, ROWS = "__binreps_weight", "__binreps_rows"
LOST, LOST_ROWS = "__binreps_lost", "__binreps_lost_rows"  # individuals without a name, and their rows
BLANKS = "__binreps_blanks"  # individuals whose name begins or ends with a blank
KNOWN, _K, _K1, _K0 = (f"__binreps_known{end}" for end in ("", "_given", "_positive", "_negative"))
CLASH, UNREADABLE = 2, 3  # codes of KNOWN besides 0, 1 and UNKNOWN

TEXT = (nw.String, nw.Categorical, nw.Enum)
_COUNT = r"^[0-9]{1,16}(?:[.,]0*)?$"  # a count written as text, also by software that writes 3 as 3.0 or 3,0

_WORDS = 8  # for no result, in a note
_SHOWN = 3  # offending values in a message
_LOOKED_AT = 1000  # rows fetched to find them
_PLAIN = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "VARCHAR", "DATE"}
"""Types of DuckDB whose values are the same in Python, whether Arrow brings them or not."""
_LARGEST = float(2**53)
_NEITHER = 2**40  # what a result that is neither adds to the positives: more than anybody has results


@dataclass(frozen=True)
class Tally:
    """What one pass over a table brings back.

    Attributes
    ----------
    counts : CountTable
    pairs : list of pair
        Every (n, s) there is.
    repeated : bool
        Whether an individual has several rows of counts.
    rows : int
        Rows that belong to an individual; of a table of cells, individuals. Of a long table whose rows were
        not counted, those with a result.
    missing : int
        Results that are missing, if rows were counted.
    notes : tuple of Note
    people : frame
        One row per individual; S of a long table is still a code.
    """

    counts: CountTable
    pairs: list[tuple[int, int]]
    repeated: bool
    rows: int
    missing: int
    notes: tuple[Note, ...] = ()
    people: Frame | None = None


def tally(frame: Frame, roles: Roles, *, rows: bool = True) -> Tally:
    """Make the one pass over a prepared frame and check what it brings back.

    Rows of a long table are counted if somebody wants to know, or where words may stand for no result.
    """
    rows = rows or _has_words(frame, roles)
    people = _long_individuals(frame, roles, rows) if roles.long else individuals(frame, roles)
    cells = _read_code(_lists(cells_of(people, roles)))
    if any(cells[BAD]):
        raise explain(frame, roles)
    known = cells.get(KNOWN, [UNKNOWN] * len(cells[N]))
    if max(known, default=UNKNOWN) > 1:
        raise explain_known(frame, people, roles, max(known))
    weight = [w - gone for w, gone in zip(cells[WEIGHT], lost_of(cells, LOST), strict=True)]
    counts = CountTable(cells[N], cells[S], weight, np.array(known, np.int8))
    counted = counts.replicates if roles.long and ROWS not in cells else rows_of(cells)
    return Tally(
        counts,
        sorted(set(zip(cells[N], cells[S], strict=True))),
        not roles.long and sum(cells.get(ROWS, ())) > sum(cells[WEIGHT]),
        counted,
        missing_results(roles, counted, counts.replicates),
        (*roles.notes, *_lost_notes(frame, cells, roles), *_blank_notes(cells, roles)),
        people,
    )


def _has_words(frame: Frame, roles: Roles) -> bool:
    """Whether results are words, of which some may stand for no result."""
    schema = frame.collect_schema()
    return any(schema[name] in TEXT for name in roles.results)


def _lost_notes(frame: Frame, cells: Mapping[str, list[int]], roles: Roles) -> tuple[Note, ...]:
    """How many rows have no individual; they are counted now if somebody has no name and they were not."""
    if LOST_ROWS in cells or not any(lost_of(cells, LOST)):
        return lost_notes(cells, roles)
    rows = frame.filter(without_individual(roles)).select(nw.len().alias(ROWS))
    return (dropped_note("individual", int(_column(rows, ROWS)[0]), roles.individual),)


def _blank_notes(cells: Mapping[str, list[int]], roles: Roles) -> tuple[Note, ...]:
    """How many names begin or end with blanks."""
    if not (several := sum(cells.get(BLANKS, ()))):
        return ()
    where = " and ".join(repr(name) for name in roles.individual)
    verb = "begins or ends" if several == 1 else "begin or end"
    said = f"{plural(several, 'name')} in column {where} {verb} with a blank"
    return (
        Note("names-with-blanks", f"{said}; names that differ in blanks alone are different individuals"),
    )


def lost_of(cells: Mapping[str, list[int]], name: str) -> list[int]:
    """A column of what was lost, 0 where nobody can be."""
    return cells.get(name, [0] * len(cells[N]))


def rows_of(cells: Mapping[str, list[int]]) -> int:
    """Rows that belong to someone; a table without individuals has one for each."""
    return sum(cells.get(ROWS, cells[WEIGHT])) - sum(lost_of(cells, LOST_ROWS))


def missing_results(roles: Roles, rows: int, replicates: int) -> int:
    """Results that are not there; a count has none."""
    return rows * len(roles.results) - replicates if roles.results else 0


def lost_notes(cells: Mapping[str, list[int]], roles: Roles) -> tuple[Note, ...]:
    """How many rows have no individual."""
    rows = sum(lost_of(cells, LOST_ROWS))
    return (dropped_note("individual", rows, roles.individual),) if rows else ()


def dropped_note(what: str, rows: int, columns: Sequence[str]) -> Note:
    """How many rows do not say to whom, or to what, they belong."""
    where = " and ".join(repr(name) for name in columns)
    article = "an" if what == "individual" else "a"
    said = f"{rows:,} row{'s' * (rows != 1)} without {article} {what} in column {where} dropped"
    return Note(f"rows-without-{what}", said)


def prepare(frame: Any, roles: Roles) -> tuple[Frame, Roles]:
    """The user's table, its columns checked and readable, and the roles with both labels."""
    table = open_frame(frame)
    have = table.collect_schema().names()
    check_columns(roles.used, have, listed(have))
    table = _without_objects(table, roles)
    _check_types(table, roles)
    labels = roles.labels
    if labels.positive and not labels.negative:
        roles = replace(roles, labels=replace(labels, negative=_other_label(table, roles)))
    return table, roles


def open_frame(frame: Any) -> Frame:
    """The user's table through narwhals."""
    try:
        return nw.from_native(frame)
    except TypeError:
        kinds = "pandas, Polars, PyArrow, DuckDB, PySpark or Ibis"
        rule = f"the table must be a dataframe ({kinds}) or the name of a file"
        raise DataError(f"{rule}, got {type(frame).__name__}") from None
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"column names must differ; {' '.join(str(error).split())}") from None


def no_result_words(frame: Frame, roles: Roles) -> dict[str, int]:
    """How often each word for no result stands in the results of a prepared frame, blanks left out."""
    schema = frame.collect_schema()
    names = [name for name in roles.results if schema[name] in TEXT]
    words = [word for word in roles.labels.words()[2] if word not in BLANK]
    if not names:
        return {}
    worded = {name: _word(nw.col(name)) for name in names}
    rows = frame.filter(nw.any_horizontal(*(one.is_in(words) for one in worded.values()), ignore_nulls=True))
    patterns = rows.select(**worded).group_by(*names).agg(nw.len().alias(ROWS))
    found: Counter[str] = Counter()
    for *cells, number in zip(*values_of(patterns.select(*names, ROWS)).values(), strict=True):
        for word in cells:
            if isinstance(word, str) and word in words:
                found[word] += int(number)
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def no_result_note(words: Mapping[str, int]) -> tuple[Note, ...]:
    """The note on words that were read as no result, if there are any."""
    if not words:
        return ()
    shown = ", ".join(f"{_shown(word)} ({number:,})" for word, number in list(words.items())[:_WORDS])
    more = f" and {len(words) - _WORDS} more words" if len(words) > _WORDS else ""
    return (Note("words-for-no-result", f"read as no result: {shown}{more}"),)


def _without_objects(table: Frame, roles: Roles) -> Frame:
    """Columns of mixed Python objects as text or numbers: pandas keeps booleans with gaps that way."""
    schema = table.collect_schema()
    for name in roles.used:
        if schema[name] == nw.Object and name not in roles.individual:
            counted = name in (roles.n, roles.s, roles.weight)
            plain, dtype = (_plain_number, nw.Float64) if counted else (plain_text, nw.String)
            values = [plain(value) for value in table[name].to_list()]
            series = nw.new_series(name, values, dtype, backend=table.implementation)
            table = table.with_columns(series)
    return table


def _check_types(table: Frame, roles: Roles) -> None:
    """Refuse dates, lists and the like as results, and text as counts."""
    schema = table.collect_schema()
    for name in (*roles.results, *filter(None, [roles.known])):
        dtype = schema[name]
        if dtype.is_temporal() or dtype.is_nested() or dtype in (nw.Binary, nw.Time):
            raise _not_results(name, _first_values(table, name))
    for name in filter(None, (roles.n, roles.s, roles.weight)):
        if not schema[name].is_numeric() and schema[name] not in TEXT:
            found = listed(_first_values(table, name))
            raise DataError(f"column {name!r} must hold whole numbers ≥ 0, got {found}")
    _check_labels(roles, [schema[name] for name in roles.results])


def _check_labels(roles: Roles, dtypes: list[Any]) -> None:
    """Numbers as labels for columns of numbers."""
    for label in (*roles.labels.positive, *roles.labels.negative):
        if _as_label(label) is None and any(dtype.is_numeric() for dtype in dtypes):
            raise OptionError(f"the results are numbers, so their labels must be too, got {label!r}")


def _other_label(table: Frame, roles: Roles) -> tuple[Any, ...]:
    """The one label besides the positive ones; none if there is no other."""
    schema, others = table.collect_schema(), set()
    for name in roles.results:
        numeric = schema[name].is_numeric()
        reading = _reading(name, schema[name], roles.labels)
        label = nw.col(name) if numeric else _word(nw.col(name))
        rest = table.filter(reading.given & ~reading.positive).select(label.alias(name)).unique()
        others |= set(_column(rest.head(_SHOWN), name))
    if len(others) > 1:
        advice = "name the negative ones, too, or give those that are no results as missing"
        given, found = listed(roles.labels.positive), listed(sorted(others, key=str))
        raise DataError(f"besides {given} there must be one label only, got {found}; {advice}")
    return tuple(others)


def plain_text(value: object) -> str | None:
    """A Python value as the text that the words are compared with."""
    if is_null(value):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _plain_number(value: object) -> float | None:
    """A Python value as a number; NaN, which no count can be, for anything else."""
    if is_null(value):
        return None
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan


@dataclass(frozen=True)
class _Reading:
    """How a column of results reads: three conditions on a row."""

    positive: nw.Expr
    negative: nw.Expr
    given: nw.Expr
    number: nw.Expr | None = None  # the column, where what is read as 0 or 1 is that number

    @property
    def code(self) -> nw.Expr:
        """What a row adds to the positives, null where no result is given."""
        neither = nw.lit(float(_NEITHER), nw.Float64)
        if self.number is not None:
            return nw.when(~(self.positive | self.negative)).then(neither).otherwise(self.number)
        read = nw.when(self.negative).then(nw.lit(0.0)).otherwise(nw.when(self.given).then(neither))
        return nw.when(self.positive).then(nw.lit(1.0)).otherwise(read)


def _reading(name: str, dtype: Any, labels: Labels | None = None) -> _Reading:
    """The conditions for one column of results, by its type and the labels given."""
    column, labels = nw.col(name), labels or Labels()
    if dtype == nw.Boolean and not labels.positive:
        return _Reading(column, ~column, ~column.is_null())
    if dtype.is_numeric():
        return _number_reading(column, dtype, labels)
    return _word_reading(column, labels)


def _number_reading(column: nw.Expr, dtype: Any, labels: Labels) -> _Reading:
    """0 and 1, or other numbers; NaN and numbers that are called missing are."""
    if not dtype.is_integer():
        column = column.cast(nw.Float64)
    given = ~column.is_null() if dtype.is_integer() else ~column.is_null() & ~column.is_nan()
    for number in _numbers(labels.missing):
        given = given & (column != number)
    yes = _equals(column, _numbers(labels.positive) if labels.positive else [1])
    no = _equals(column, _numbers(labels.negative) if labels.positive else [0])
    plain = dtype.is_integer() and not labels.missing and not labels.positive
    return _Reading(yes, no, given, column.cast(nw.Float64) if plain else None)


def _equals(column: nw.Expr, values: Sequence[Any]) -> nw.Expr:
    """Whether a column is one of some numbers; of none, it never is."""
    found: nw.Expr = reduce(
        or_, [column == value for value in values] or [column.is_null() & ~column.is_null()]
    )
    return found


def _numbers(labels: Sequence[Any]) -> list[Any]:
    """The labels that are numbers."""
    return [number for number in map(_as_label, labels) if number is not None]


def _as_label(label: Any) -> Any:
    """A label of a column of numbers: a number, also as text; None if it is none."""
    if isinstance(label, numbers.Real):
        return label
    try:
        return float(str(label).strip().replace(",", "."))
    except ValueError:
        return None


def _word_reading(column: nw.Expr, labels: Labels) -> _Reading:
    """Words, whatever their case and the blanks around them."""
    word = _word(column)
    positive, negative, missing = labels.words()
    given = ~column.is_null() & ~word.is_in(missing)
    yes = word.is_in(positive)  # Spark 3 takes no tuples
    no = word.is_in(negative) if negative else yes & ~yes  # PyArrow takes no empty list
    return _Reading(yes, no, given)


def _word(column: nw.Expr) -> nw.Expr:
    """A label as it is compared."""
    return column.cast(nw.String).str.strip_chars().str.to_lowercase()


def individuals(frame: Frame, roles: Roles) -> Frame:
    """One row per individual, lazily: its columns, N, S, and what is needed to check them."""
    if roles.long:
        return decoded(_long_individuals(frame, roles, rows=True))
    counts = row_counts(frame, roles)
    rows = frame.select(*roles.individual, **counts)
    if not roles.individual:
        return rows
    return rows.group_by(*roles.individual).agg(nw.col(*counts).sum(), nw.len().alias(ROWS))


def _long_individuals(frame: Frame, roles: Roles, rows: bool) -> Frame:
    """Count the results of each individual, and add up their codes as S; without ROWS if nobody asks."""
    schema, (result,) = frame.collect_schema(), roles.results
    readings = {(N, S): _reading(result, schema[result], roles.labels)}
    if roles.known is not None:
        missing = Labels(missing=roles.labels.missing)
        readings[_K, _K1] = _reading(roles.known, schema[roles.known], missing)
    eager = isinstance(frame, nw.DataFrame)
    order = [ORDER] if ORDER in schema else []
    marks: dict[str, nw.Expr] = {}
    totals = [nw.len().alias(ROWS)] if rows else []
    totals += [nw.col(name).min() for name in order]
    for (given, code), reading in readings.items():
        own, total = _seen(frame, reading, given, code) if eager else _coded(reading, given, code)
        marks |= own
        totals += total
    people = frame.select(*roles.individual, *order, **marks).group_by(*roles.individual).agg(*totals)
    return people if roles.known is None else people.with_columns(**_decoded(_K, _K1, _K0))


_Marks = tuple[dict[str, Any], list[nw.Expr]]  # columns of rows, and what to make of them for an individual


def _coded(reading: _Reading, given: str, code: str) -> _Marks:
    """One column of codes: in databases, and lazily, work by group costs more than looking at rows."""
    return {code: reading.code}, [nw.col(code).sum(), nw.col(code).count().alias(given)]


def _seen(frame: Frame, reading: _Reading, given: str, code: str) -> _Marks:
    """The same of rows in memory, where a look often tells that every result is read, or even there."""
    seen = frame.select(positive=reading.positive, negative=reading.negative, given=reading.given)
    read = nw.col("positive") | nw.col("negative") | ~nw.col("given")
    found = seen.select(read=read.all(), given=nw.col("given").all())
    if not found["read"].item():
        return _coded(reading, given, code)
    if found["given"].item():
        return {code: seen["positive"]}, [nw.col(code).sum(), nw.len().alias(given)]
    return {code: seen["positive"], given: seen["given"]}, [nw.col(code, given).sum()]


def decoded(people: Frame) -> Frame:
    """Individuals with S and NEGATIVES in place of the code in S; others as they are."""
    if NEGATIVES in people.collect_schema().names():
        return people
    return people.with_columns(**_decoded(N, S, NEGATIVES))


def _decoded(given: str, code: str, negative: str) -> dict[str, nw.Expr]:
    """Positives and negatives from a sum of codes; with results that are neither, fewer than are given."""
    total = nw.col(code).cast(nw.Float64)
    neither = (total / _NEITHER).floor()
    positive = (total - neither * _NEITHER).cast(nw.Int64)
    return {code: positive, negative: nw.col(given).cast(nw.Int64) - positive - neither.cast(nw.Int64)}


def _read_code(cells: dict[str, list[int]]) -> dict[str, list[int]]:
    """The same of cells of coded individuals."""
    if BAD in cells:
        return cells
    bad, s = zip(*(divmod(code, _NEITHER) for code in cells[S]), strict=True) if cells[S] else ((), ())
    return {**cells, S: list(s), BAD: list(bad)}


def row_counts(frame: Frame, roles: Roles) -> dict[str, nw.Expr]:
    """For a table with one row per individual: expressions for what each row holds."""
    schema = frame.collect_schema()
    columns = _wide_counts(roles, schema) if roles.results else _given_counts(roles, schema)
    if roles.known is not None:
        known = _reading(roles.known, schema[roles.known], Labels(missing=roles.labels.missing))
        conditions = {_K: known.given, _K1: known.positive, _K0: known.negative}
        columns |= {name: _as_number(condition) for name, condition in conditions.items()}
    return columns


def _wide_counts(roles: Roles, schema: nw.Schema) -> dict[str, nw.Expr]:
    """Given, positive and negative results across the columns of a row."""
    readings = [_reading(name, schema[name], roles.labels) for name in roles.results]
    parts = {N: "given", S: "positive", NEGATIVES: "negative"}
    counts = {
        name: nw.sum_horizontal(*(_as_number(getattr(reading, part)) for reading in readings))
        for name, part in parts.items()
    }
    if roles.weight is not None:  # a row whose weight is none becomes one result that is neither
        good = _good_count(roles.weight, schema)
        counts[N] = counts[N] + 1 - _as_number(good)
        weight = nw.when(good).then(_count(roles.weight, schema)).otherwise(nw.lit(0))
        counts[WEIGHT] = weight.cast(nw.Int64)
    return counts


def _good_count(name: str, schema: nw.Schema) -> nw.Expr:
    """Whether a row has a whole number ≥ 0 there."""
    count = _count(name, schema)
    good = (count >= 0) & (count <= _LARGEST)
    return good if schema[name].is_integer() else good & (count == count.floor())


def _given_counts(roles: Roles, schema: nw.Schema) -> dict[str, nw.Expr]:
    """Counts as they stand; a row that breaks a rule becomes one result that is neither."""
    good = _good_counts(roles, schema)
    n, s = _count(roles.n, schema), _count(roles.s, schema)
    values = {N: (n, 1), S: (s, 0), NEGATIVES: (n - s, 0)}
    if roles.weight is not None:
        values[WEIGHT] = _count(roles.weight, schema), 0
    return {
        name: nw.when(good).then(value).otherwise(nw.lit(instead)).cast(nw.Int64)
        for name, (value, instead) in values.items()
    }


def _good_counts(roles: Roles, schema: nw.Schema) -> nw.Expr:
    """Whether a row's counts are whole numbers with 0 ≤ s ≤ n."""
    good = _count(roles.s, schema) <= _count(roles.n, schema)
    for name in filter(None, (roles.n, roles.s, roles.weight)):
        good = good & _good_count(name, schema)
    return good


def _count(name: str | None, schema: nw.Schema) -> nw.Expr:
    """A column of counts as numbers; −1 for text that is none."""
    column, dtype = nw.col(str(name)), schema[str(name)]
    if dtype.is_integer():
        return column.cast(nw.Int64)
    if dtype.is_numeric():
        return column.cast(nw.Float64)
    text = column.cast(nw.String).str.strip_chars()
    digits = nw.when(text.str.contains(_COUNT)).then(text).otherwise(nw.lit("-1"))
    return digits.str.replace_all("[.,]0*$", "").cast(nw.Float64)


def _as_number(condition: nw.Expr) -> nw.Expr:
    """1 where the condition holds, otherwise 0."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def cells_of(people: Frame, roles: Roles, by: Sequence[str] = ()) -> Frame:
    """Individuals per (n, s), within groups if any, and the totals that tell whether something was wrong."""
    schema = people.collect_schema()
    have = schema.names()
    columns, totals = {N: nw.col(N), S: nw.col(S)}, []
    if NEGATIVES in have:
        n, s, negatives = (nw.col(name).cast(nw.Int64) for name in (N, S, NEGATIVES))
        columns, totals = {N: n, S: s, BAD: n - s - negatives}, [nw.col(BAD).sum()]
    if roles.known is not None:
        columns[KNOWN] = known_code()
    if roles.individual and not _all_named(people, roles):
        nobody = without_individual(roles)
        columns[LOST] = nw.when(nobody).then(nw.lit(True))
        totals.append(nw.col(LOST).count())
        if ROWS in have:
            columns[LOST_ROWS] = nw.when(nobody).then(nw.col(ROWS)).otherwise(nw.lit(0))
            totals.append(nw.col(LOST_ROWS).sum())
    if texts := [
        nw.col(name).cast(nw.String) for name in roles.individual if not by and schema[name] in TEXT
    ]:
        blanks = reduce(or_, (~name.is_null() & (name != name.str.strip_chars()) for name in texts))
        columns[BLANKS] = nw.when(blanks).then(nw.lit(True))
        totals.append(nw.col(BLANKS).count())
    for name in (WEIGHT, ROWS):
        if name in have:
            columns[name] = nw.col(name)
            totals.append(nw.col(name).sum())
    if WEIGHT not in have:
        totals.append(nw.len().alias(WEIGHT))
    keys = [name for name in (N, S, KNOWN) if name in columns]
    return people.select(*by, **columns).group_by(*by, *keys).agg(*totals)


def _all_named(people: Frame, roles: Roles) -> bool:
    """Whether everyone has a name, which a look tells where people are in memory."""
    if not isinstance(people, nw.DataFrame):
        return False
    return not any(people[name].null_count() for name in roles.individual)


def known_code() -> nw.Expr:
    """The status of an individual: 0, 1, UNKNOWN, or what is wrong with it."""
    given, positive, negative = (nw.col(name).cast(nw.Int64) for name in (_K, _K1, _K0))
    status = nw.when(negative > 0).then(nw.lit(0)).otherwise(nw.lit(UNKNOWN))
    status = nw.when(positive > 0).then(nw.lit(1)).otherwise(status)
    status = nw.when((positive > 0) & (negative > 0)).then(nw.lit(CLASH)).otherwise(status)
    return nw.when(given != positive + negative).then(nw.lit(UNREADABLE)).otherwise(status)


def without_individual(roles: Roles) -> nw.Expr:
    """Whether a row does not say whose it is."""
    nobody: nw.Expr = reduce(or_, (nw.col(name).is_null() for name in roles.individual))
    return nobody


def _lists(cells: Frame) -> dict[str, list[int]]:
    """Collect a small table of whole numbers (DuckDB gives some as decimals)."""
    return {name: [int(value) for value in values] for name, values in values_of(cells).items()}


def values_of(frame: Frame) -> dict[str, list[Any]]:
    """The columns of a small table; plain values come from DuckDB itself: Arrow is not loaded for them."""
    relation: Any = nw.to_native(frame)
    if frame.implementation.is_duckdb() and _PLAIN.issuperset(map(str, relation.types)):
        rows = relation.fetchall()
        return {name: [row[i] for row in rows] for i, name in enumerate(relation.columns)}
    table = collected(frame)
    return {name: table[name].to_list() for name in table.columns}


def collected(frame: Frame) -> Any:
    """An eager frame, computed if it was lazy."""
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def _column(frame: Frame, name: str) -> list[Any]:
    """The values of one column of a small table."""
    return values_of(frame.select(name))[name]


def explain(frame: Frame, roles: Roles) -> DataError:
    """The error for results or counts that cannot be, with the first of them."""
    schema = frame.collect_schema()
    if roles.results:
        changed = DataError("the table changed while it was read")
        if roles.weight is not None:
            wrong = frame.filter(_as_number(_good_count(roles.weight, schema)) == 0)
            values = [_shown(value) for value in _column(wrong.head(_SHOWN), roles.weight)]
            rule = f"column {roles.weight!r} must hold whole numbers ≥ 0, got {', '.join(values)}"
            changed = DataError(rule) if values else changed
        return next(filter(None, (_neither(frame, name, roles.labels) for name in roles.results)), changed)
    wrong = frame.filter(_as_number(_good_counts(roles, schema)) == 0)
    columns = [name for name in (roles.n, roles.s, roles.weight) if name is not None]
    rows = collected(wrong.select(*columns).head(_SHOWN)).rows()
    found = "; ".join(
        ", ".join(f"{_on_line(c)} = {_shown(v)}" for c, v in zip(columns, row, strict=True)) for row in rows
    )
    n, s = _on_line(roles.n), _on_line(roles.s)
    rule = f"{n} and {s} must be whole numbers with 0 ≤ {s} ≤ {n}"
    weight = f", {_on_line(roles.weight)} a whole number ≥ 0" if roles.weight else ""
    return DataError(f"{rule}{weight}, none missing; got {found}")


def _neither(frame: Frame, name: str, labels: Labels) -> DataError | None:
    """The error for a column with results that are neither positive nor negative, if it has any."""
    reading = _reading(name, frame.collect_schema()[name], labels)
    values = _first_values(frame.filter(reading.given & ~reading.positive & ~reading.negative), name)
    if not values:
        return None
    return _not_results(name, values, labels)


def _first_values(frame: Frame, name: str) -> list[Any]:
    """The first different values of a column that are not null."""
    values = _column(frame.filter(~nw.col(name).is_null()).head(_LOOKED_AT), name)
    shown: list[Any] = []
    for value in values:
        if value not in shown and len(shown) < _SHOWN:
            shown.append(value)
    return shown


def _not_results(name: str, values: list[Any], labels: Labels | None = None) -> DataError:
    """The sentence for values that are no results."""
    if labels is not None and labels.positive:
        rule = f"{', '.join(map(repr, (*labels.positive, *labels.negative)))} or missing"
        return DataError(f"column {name!r} must hold {rule}, got {listed(values)}")
    rule = "0/1, true/false, positive/negative, yes/no, +/− or missing"
    return DataError(
        f"column {name!r} must hold {rule}, got {listed(values)}; name other labels with positive=…"
    )


def explain_known(frame: Frame, people: Frame, roles: Roles, code: int) -> DataError:
    """The error for statuses that cannot be read, or that differ within an individual."""
    name = str(roles.known)
    if code == UNREADABLE:
        rule = "0/1, true/false, positive/negative, yes/no, +/− or missing"
        reading = _reading(name, frame.collect_schema()[name], Labels(missing=roles.labels.missing))
        wrong = frame.filter(reading.given & ~reading.positive & ~reading.negative)
        return DataError(f"column {name!r} must hold {rule}, got {listed(_first_values(wrong, name))}")
    clashes = people.with_columns(known_code().alias(KNOWN)).filter(nw.col(KNOWN) == CLASH)
    rows = collected(clashes.select(*roles.individual).head(1)).rows()
    who = ", ".join(_shown(value) for value in rows[0])
    return DataError(f"column {name!r} must give one status per individual, got both for individual {who}")


def listed(values: Sequence[Any]) -> str:
    """Values as a reader can recognise them."""
    return ", ".join(_shown(value) for value in values) or "nothing"


def _on_line(name: object) -> str:
    """A column's name as it is, or quoted where it would not stay on one line; a long one is cut."""
    text = str(name)
    text = text if text.isprintable() and text.strip() else repr(text)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _shown(value: object) -> str:
    """One value, short; numbers and text are told apart by quotes."""
    if is_null(value):
        return "missing"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
