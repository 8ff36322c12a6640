"""Scores, decisions and ranks joined back to the user's own table, in the engine it lives in.

The distinct (n, s) come out of the engine, a table of their answers goes back in, and a join does the rest:
a lazy table stays lazy, and no row passes through Python. What answers is known only by its `parts`, its
`counts` and its `answers`: a fit, or a ranking.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, Unpack

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike

from binreps.counts import CountTable
from binreps.errors import DataError, OptionError
from binreps.notes import Note, warn_of
from binreps.options import check_level, kinds_checked, shown
from binreps.table import Table
from binreps.tables.by_source import ANSWERS, Asked, long_answers, wide_answers
from binreps.tables.design import PATTERN, Entries, entries_of, with_pattern
from binreps.tables.files import PathLike
from binreps.tables.lookup import table_beside
from binreps.tables.opened import OpenTable, Reading, native, open_table, read
from binreps.tables.roles import Columns, Roles
from binreps.tables.sources import Whose, whose
from binreps.tables.sql import quoted
from binreps.tables.tally import (
    ORDER,
    TEXT,
    Frame,
    N,
    S,
    decoded,
    individuals,
    open_frame,
    prepare,
    row_counts,
    without_individual,
)
from binreps.tables.write import check_target, write_file

ADDED = ("n", "s", "score", "lower", "upper", "decision")
"""The columns that a fit and a loss add, in this order."""

_KEY, _POPULATION = "__binreps_key", "__binreps_population"
_LARGEST_N = 2**31  # above, the key would not fit into 64 bits
_MOST_PATTERNS = 200_000  # of covariates, sent to a database as text

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("n", "s", "rank"), nw.Int64),
    **dict.fromkeys(("decision", "measure", "before"), nw.String),
}  # the others are Float64


class Answering(Protocol):
    """What has an answer for every (n, s): a fit, or a ranking of individuals."""

    @property
    def counts(self) -> Any:
        """The individuals it was made from; a mapping where they are several populations."""

    @property
    def parts(self) -> Mapping[Any, Any]:
        """What answers for each population; None names the only one."""

    @property
    def records(self) -> Any:
        """The individuals with their covariates, where answers depend on these; None where they do not."""

    def answers(
        self, n: ArrayLike, s: ArrayLike, *, new: bool, level: float | None
    ) -> Mapping[str, Sequence[Any]]:
        """The columns to add, for each (n, s); with `covariates=` where there are records."""


class Deciding(Protocol):
    """What turns scores into decisions: a loss."""

    def words(self, scores: Any) -> Any:
        """The answer to each score, in words."""


@kinds_checked
def attach(
    table: Any,
    fit: Any,
    loss: Deciding | None = None,
    *,
    population: str | None = None,
    per: Literal["individual", "replicate"] = "individual",
    new: bool = False,
    level: float | None = 0.9,
    prefix: str = "",
    **columns: Unpack[Columns],
) -> Any:
    """Add n, s, the score and its interval to a table, with a loss the decision; the same kind comes back.

    A wide or counted table keeps its rows and columns, and gains columns. A long table gives one row per
    individual, or, with `per="replicate"`, keeps its rows and columns and gains the individual's. pandas,
    PyArrow and eager Polars tables keep the order of their rows (individuals come in the order in which they
    first appear). Lazy tables stay lazy, after one pass that finds the distinct (n, s).

    Parameters
    ----------
    table : dataframe or Table
        Any dataframe that `count_table` reads; `score_file` takes files.
    fit : any fit, or NextReplicates
        What `next_replicates` returned adds worth, the highest price of a replicate at which measuring again
        pays; rank, 1 for those to measure first, null where it does not pay; and measure, "yes", "no", or
        "5 of 18" where the budget ends among equals.
    loss : Loss, optional
        What errors cost: it turns scores into decisions.
    population : str, optional
        Column, of text or whole numbers, that says which population a row belongs to: for a fit of several
        populations, and only then. The same individual in two populations is two individuals.
    per : {"individual", "replicate"}
        What a row of the answer is, for a long table.
    new : bool
        Whether these individuals were not in the data of the fit: then they are predicted, not scored.
    level : float or None
        Probability that the interval of the score holds. A fit without intervals gives null; None leaves the
        columns lower and upper out, which take most of the time where there are hundreds of (n, s).
    prefix : str
        Put before the names of the added columns, for tables that have such columns already.
    **columns
        Which column plays which part, as in `count_table`: `individual` and `result`, or `replicates`, or
        `n` and `s`; `positive` and `negative`. A column `known` is read but does not change a score.

    Returns
    -------
    dataframe or Table
        Of the type of `table`. The decision is "negative", "inconclusive" or "positive"; it is null where
        the score is, and all that is added is null where a row has no individual.

    Examples
    --------
    >>> import binreps as br
    >>> tests = br.Table({"patient": ["ann", "bob", "ann"], "test": ["pos", "neg", "pos"]})
    >>> fit = br.fit_average(br.count_table(tests, individual="patient", result="test"))
    >>> print(attach(tests, fit, br.Loss(), individual="patient", result="test"))
    patient  n  s  score  lower  upper  decision
    ann      2  2  1.000      –      –  positive
    bob      1  0  0.000      –      –  negative
    """
    adding = Adding([fit], loss, per=per, new=new, level=level, prefix=prefix)
    adding.check(Roles.of(**columns), population)
    reading = _read_for(adding, OpenTable(native(table)), columns, population)
    answers, notes = joined(reading, adding)
    warn_of([*_news(reading), *notes])
    return _table_of(answers) if isinstance(table, Table) else answers


def _read_for(
    adding: Adding, table: OpenTable, columns: Mapping[str, Any], population: str | None
) -> Reading:
    """The table counted, unless its sources will be, in the pass that finds them."""
    if not (adding.by_source and Roles.of(**columns).long):
        return read(table, columns, population, numbered=True, rows=False)
    frame, roles = prepare(table.numbered(), Roles.of(**columns))
    nobody = CountTable([], [])
    return Reading(table, frame, roles, population, nobody, [], False, 0, 0, (), {}, numbered=True)


def _news(reading: Reading) -> list[Note]:
    """What was not said when the fit was made from the same columns."""
    return [note for note in reading.notes if note not in reading.roles.notes]


def _table_of(answers: Any) -> Table:
    """An Arrow table as one of ours."""
    return Table({name: answers.column(name).to_pylist() for name in answers.column_names})


@dataclass(frozen=True)
class Adding:
    """What to add to a table, and how: the options of `attach`."""

    answering: Sequence[Any] = ()  # nothing: n and s alone
    loss: Deciding | None = None
    per: str = "individual"
    new: bool = False
    level: float | None = 0.9
    prefix: str = ""

    @property
    def by_source(self) -> bool:
        """Whether what answers wants to know who said what."""
        return any(getattr(each, "has_sources", False) for each in self.answering)

    def check(self, roles: Roles, population: str | None) -> None:
        """Refuse what does not go together, before any row is read."""
        if self.by_source and (not roles.results or (roles.long and roles.source is None)):
            rule = "a fit by source needs to know who said what"
            raise OptionError(f"{rule}: give individual, result and source, or replicates")
        if self.per not in ("individual", "replicate") or (self.per == "replicate" and not roles.long):
            choice = "'individual', or 'replicate' for a long table"
            raise OptionError(f"per must be {choice}, got {self.per!r}")
        if self.level is not None:
            check_level(self.level)
        if self.loss is not None and not hasattr(self.loss, "words"):
            raise OptionError(f"loss must be a Loss, such as Loss(inconclusive=0.2), got {shown(self.loss)}")
        for each in self.answering:
            if not hasattr(each, "parts"):  # tables know fits by what they answer alone
                raise OptionError(f"fit must be what a fit_… function returned, got {type(each).__name__}")
            people = each.readings.people if self.by_source else None
            several = None not in each.parts or (people is not None and people.by_population)
            if several != (population is not None):
                rule = "population, the column that says which, goes with a fit of several populations"
                fitted = "several" if several else "one"
                raise OptionError(f"{rule}; got population={population!r} and a fit of {fitted}")
            used = () if each.records is None else each.records.names
            if people is not None and not people.by_population:
                used = people.names
            if used and set(used) != set(roles.covariates):
                rule = f"the fit uses covariates, so their columns must be named, covariates={list(used)}"
                raise OptionError(f"{rule}; got {list(roles.covariates)}")

    def values(self, pairs: Sequence[tuple[int, int]]) -> dict[str, list[Any]]:
        """The columns for every (n, s), with None for null, and for every population if there are several."""
        n, s = np.array(pairs, np.int64).reshape(-1, 2).T
        if not self.answering:
            return {"n": n.tolist(), "s": s.tolist()}
        columns: dict[str, list[Any]] = {}
        for name in map(str, self.answering[0].parts):
            own: dict[str, Any] = {"n": n.tolist(), "s": s.tolist()}
            for each in self.answering:
                own |= self._answers(_by_text(each)[name], n, s)
            for what, values in own.items():
                columns.setdefault(what, []).extend(values)
            columns.setdefault(_POPULATION, []).extend([name] * len(pairs))
        if None in self.answering[0].parts:
            del columns[_POPULATION]
        return columns

    def by_pattern(self, entries: Entries) -> dict[str, list[Any]]:
        """The columns for every (n, s) and pattern of covariates."""
        columns: dict[str, list[Any]] = {"n": entries.n.tolist(), "s": entries.s.tolist()}
        for each in self.answering:
            more = {} if each.records is None else {"covariates": entries.covariates}
            columns |= self._answers(each, entries.n, entries.s, **more)
        return {**columns, _POPULATION: entries.patterns}

    def _answers(self, one: Any, n: Any, s: Any, **more: Any) -> dict[str, list[Any]]:
        """What one population's fit or ranking says, and the decisions that follow from its scores."""
        found = one.answers(n, s, new=self.new, level=self.level, **more)
        columns = {
            name: [_plain(value) for value in np.asarray(values).tolist()] for name, values in found.items()
        }
        if self.loss is not None and "score" in found:
            columns["decision"] = self.loss.words(found["score"])
        elif self.loss is not None and len(self.answering) == 1:
            raise OptionError(f"a loss decides about scores, which a {type(one).__name__} does not have")
        return columns


def _plain(value: Any) -> Any:
    """None in place of NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _by_text(answering: Any) -> dict[str, Any]:
    """What answers for each population, by its name as text, which must tell them apart."""
    named = {str(name): one for name, one in answering.parts.items()}
    if len(named) < len(answering.parts):
        raise OptionError("populations must have names that differ as text to be joined to a table")
    return named


def joined(reading: Reading, adding: Adding) -> tuple[Any, tuple[Note, ...]]:
    """The rows that were read with more columns, as their own engine's table, and what to know of them."""
    adding.check(reading.roles, reading.population)
    original, table = _rows(reading)
    eager = isinstance(original, nw.DataFrame)
    if adding.by_source:
        return _joined_by_source(reading, adding, original, table)
    own = reading.roles
    if any(each.records is not None and each.records.names for each in adding.answering):
        table, roles, values = _with_pattern(table, reading, adding, eager)
    else:
        table, roles = _with_population(table, reading, adding.answering)
        own, values = roles, adding.values(reading.pairs)
    form = _form(roles, reading.repeated, adding.per)
    what = [name for name in values if name != _POPULATION]
    added = _added_names(original, roles, form, adding.prefix, what)
    people = reading.people if roles is reading.roles else None  # else there are more of them
    result = _with_answers(table, roles, _lookup(original, values, added), form, people)
    finish = _in_order if eager else _lazily
    answers = finish(original, result, own, list(added.values()), form).to_native()
    asked = [] if adding.new else adding.answering[:1]
    return answers, tuple(note for one in asked for note in _strangers(reading, one))


def _joined_by_source(reading: Reading, adding: Adding, original: Frame, table: Frame) -> tuple[Any, Any]:
    """The same where who said it decides."""
    asked = Asked(adding.answering[0], adding.loss, adding.new, adding.level)
    who = whose(reading) if asked.fit.readings.people is not None else Whose()
    table, roles = who.prepared(table, reading.roles)
    form = _form(roles, reading.repeated, adding.per)
    left_out = [*["decision"] * (adding.loss is None), *["lower", "upper"] * (adding.level is None)]
    what = [name for name in ADDED if name not in left_out]
    added = _added_names(original, roles, form, adding.prefix, what)
    if roles.long:
        found, notes = long_answers(original, table, roles, asked, who)
    else:
        found, notes = wide_answers(original, table, roles, asked, who, by_row=form == "rows")
    found = found.rename({ANSWERS[each]: name for each, name in added.items()})
    if form == "rows by individual":
        found = found.select(*roles.individual, *added.values())
        found = table.join(found, on=list(roles.individual), how="left")
    finish = _in_order if isinstance(original, nw.DataFrame) else _lazily
    return finish(original, found, roles, list(added.values()), form).to_native(), notes


def _rows(reading: Reading) -> tuple[Frame, Frame]:
    """The user's rows, and the same with their order, readable."""
    original = open_frame(reading.table.frame)
    table = reading.frame if reading.numbered else prepare(reading.table.numbered(), reading.roles)[0]
    return (original if isinstance(original, nw.DataFrame) else table), table


def _with_pattern(
    table: Frame, reading: Reading, adding: Adding, eager: bool
) -> tuple[Frame, Roles, dict[str, list[Any]]]:
    """The table with the covariates of each row as one text, part of who someone is; and the answers."""
    records = next(each.records for each in adding.answering if each.records is not None)
    entries = entries_of(table, reading.roles, reading.table.files is not None, records.numbers)
    if not eager and len(entries.patterns) > _MOST_PATTERNS:
        rule = (
            f"at most {_MOST_PATTERNS:,} different covariates can be joined to a table that is not in memory"
        )
        raise DataError(f"{rule}, got {len(entries.patterns):,}; collect it first, or join in pieces")
    table = with_pattern(table, reading.roles).rename({PATTERN: _POPULATION})
    roles = reading.roles
    roles = replace(roles, individual=(_POPULATION, *roles.individual)) if roles.individual else roles
    return table, roles, adding.by_pattern(entries)


def _with_population(table: Frame, reading: Reading, answering: Sequence[Any]) -> tuple[Frame, Roles]:
    """The table with its populations as text, all of which the fit has; they are part of who someone is."""
    name, roles = reading.population, reading.roles
    if name is None:
        return table, roles
    kind = table.collect_schema()[name]
    if not (kind.is_integer() or kind in TEXT):
        raise DataError(f"column {name!r} must hold text or whole numbers, as it names populations")
    known = set(_by_text(answering[0])) if answering else {str(each) for each in reading.populations}
    strangers = sorted({str(each) for each in reading.populations} - known)
    if strangers:
        raise DataError(f"column {name!r} has a population {strangers[0]!r} that the fit does not have")
    table = table.with_columns(nw.col(name).cast(nw.String).alias(_POPULATION))
    return table, replace(roles, individual=(name, *roles.individual)) if roles.individual else roles


_Form = Literal["rows", "individuals", "rows by individual"]


def _form(roles: Roles, repeated: bool, per: str) -> _Form:
    """What a row of the answer is, and how it finds its n and s."""
    if roles.long and per == "individual":
        return "individuals"
    return "rows by individual" if roles.long or repeated else "rows"


def _strangers(reading: Reading, answering: Any) -> tuple[Note, ...]:
    """A note if the table cannot be part of the data of the fit, population by population."""
    counts = {"None": reading.counts} if isinstance(reading.counts, CountTable) else reading.counts
    parts = _by_text(answering)
    if all(_is_part(own, parts[str(name)].counts) for name, own in counts.items()):
        return ()
    advice = "give new=True to predict individuals that are new"
    said = f"the table holds individuals that the fit has not seen, scored as if it had; {advice}"
    return (Note("not-in-the-fit", said),)


def _is_part(some: CountTable, everyone: CountTable) -> bool:
    """Whether individuals can be among others, by their results."""
    fitted = _weights(everyone)
    return all(weight <= fitted.get(cell, 0) for cell, weight in _weights(some).items())


def _weights(counts: CountTable) -> dict[tuple[int, int], int]:
    """Individuals per (n, s), whatever their status."""
    plain = counts.forget_known()
    return dict(zip(zip(plain.n.tolist(), plain.s.tolist(), strict=True), plain.weight.tolist(), strict=True))


def _added_names(
    original: Frame, roles: Roles, form: _Form, prefix: str, names: Sequence[str]
) -> dict[str, str]:
    """The names of the columns to add: none that is there already, but for the user's own n and s."""
    have = roles.individual if form == "individuals" else original.collect_schema().names()
    same = {"n": roles.n, "s": roles.s} if form == "rows" else {}
    added = {what: prefix + what for what in names if same.get(what) != prefix + what}
    # databases do not tell upper from lower case in the names of columns
    plain: Callable[[str], str] = str if isinstance(original, nw.DataFrame) else str.casefold
    taken = sorted({plain(name) for name in have} & {plain(name) for name in added.values()})
    if taken:
        advice = "give a prefix for the added ones, such as prefix='answer_'"
        raise DataError(f"the table already has a column {taken[0]!r}; {advice}")
    return added


def _key(n: Any, s: Any) -> Any:
    """One number for each (n, s) with 0 ≤ s ≤ n: a join on one column, whatever rows come later."""
    return n * (n + 1) + 2 * s


def _lookup(original: Frame, scores: dict[str, list[Any]], added: dict[str, str]) -> Frame:
    """The scores as a table of the user's engine, with the key to join on."""
    if max(scores["n"], default=0) > _LARGEST_N:
        raise DataError(f"individuals must have at most {_LARGEST_N:,} replicates to be joined back")
    columns = {_KEY: [_key(n, s) for n, s in zip(scores["n"], scores["s"], strict=True)]}
    columns |= {name: scores[what] for what, name in added.items()}
    types = {_KEY: nw.Int64} | {name: _TYPES.get(what, nw.Float64) for what, name in added.items()}
    if _POPULATION in scores:
        columns[_POPULATION], types[_POPULATION] = scores[_POPULATION], nw.String
    return table_beside(original, columns, types)


def _with_answers(
    table: Frame, roles: Roles, lookup: Frame, form: _Form, people: Frame | None = None
) -> Frame:
    """The table with the lookup's columns; individuals are counted unless they were."""
    columns = lookup.collect_schema().names()
    keys = [name for name in (_KEY, _POPULATION) if name in columns]
    if form == "rows":
        return table.with_columns(_row_key(table, roles)).join(lookup, on=keys, how="left")
    people = individuals(table, roles) if people is None else decoded(people)
    people = people.filter(~without_individual(roles))
    n, s = (nw.col(name).cast(nw.Int64) for name in (N, S))
    people = people.with_columns(_key(n, s).alias(_KEY))
    if _POPULATION in keys:
        people = people.with_columns(nw.col(roles.individual[0]).cast(nw.String).alias(_POPULATION))
    people = people.join(lookup, on=keys, how="left")
    if form == "individuals":
        return people
    names = [name for name in columns if name not in keys]
    return table.join(people.select(*roles.individual, *names), on=list(roles.individual), how="left")


def _row_key(table: Frame, roles: Roles) -> nw.Expr:
    """The key of each row of a wide or counted table; −1, which no (n, s) has, without an individual."""
    counts = row_counts(table, roles)
    key: nw.Expr = _key(counts[N].cast(nw.Int64), counts[S].cast(nw.Int64))
    if roles.individual:
        key = nw.when(without_individual(roles)).then(nw.lit(-1)).otherwise(key)
    return key.cast(nw.Int64).alias(_KEY)


def _lazily(original: Frame, found: Frame, roles: Roles, added: list[str], form: _Form) -> Frame:
    """The columns of the answer, still lazy."""
    have = original.collect_schema().names()
    kept = [*roles.individual, *({ORDER} & set(have))] if form == "individuals" else have
    return found.select(*kept, *added)


def _in_order(original: Frame, found: Frame, roles: Roles, added: list[str], form: _Form) -> Frame:
    """The rows in their own order, and all that was there untouched."""
    found = found.sort(ORDER)
    if form == "individuals":
        return nw.maybe_reset_index(found.select(*roles.individual, *added))
    return original.with_columns(*(found[name] for name in added))


@kinds_checked
def score_file(
    path: PathLike | Sequence[PathLike],
    fit: Any,
    target: PathLike,
    *,
    loss: Deciding | None = None,
    population: str | None = None,
    per: Literal["individual", "replicate"] = "individual",
    new: bool = False,
    level: float | None = 0.9,
    prefix: str = "",
    memory: str | None = None,
    **columns: Unpack[Columns],
) -> Path:
    r"""Add scores, and with a loss decisions, to files of any size, in a new file.

    Up to a million rows (and 100 MB) stay in their order; more come in any order, as sorting them back
    would take longer than all the rest. The columns of a CSV file are written as the text they were, with an
    apostrophe before what a spreadsheet would take for a formula (`=…`, `@…`). The new file
    appears whole at the end, or not at all.

    Parameters
    ----------
    path : str, path or list of them
        The files that `count_table` reads.
    fit : any fit, or NextReplicates
        As in `attach`.
    target : str or path
        File to write: .csv, .csv.gz, .tsv or .parquet. It is replaced if it exists, unless it is read.
    loss, population, per, new, level, prefix, **columns
        As in `attach`.
    memory : str, optional
        The most memory to use, such as "4GB".

    Returns
    -------
    pathlib.Path
        The file that was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import binreps as br
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tests.csv")
    >>> _ = path.write_text("patient,test\n007,pos\n007,pos\n008,neg\n")
    >>> columns = {"individual": "patient", "result": "test"}
    >>> fit = br.fit_average(br.count_table(path, **columns))
    >>> print(score_file(path, fit, path.with_name("answers.csv"), loss=br.Loss(), **columns).read_text())
    patient,n,s,score,lower,upper,decision
    007,2,2,1.0,,,positive
    008,1,0,0.0,,,negative
    """
    roles = Roles.of(**columns)
    adding = Adding([fit], loss, per=per, new=new, level=level, prefix=prefix)
    adding.check(roles, population)
    with open_table(path, [*roles.used, *filter(None, [population])], memory=memory) as opened:
        check_target(target, opened.paths)
        reading = _read_for(adding, opened, columns, population)
        notes = write_joined(reading, adding, target)
    warn_of([*_news(reading), *notes])
    return Path(target)


def write_joined(reading: Reading, adding: Adding, target: PathLike, *, order: str = "") -> tuple[Note, ...]:
    """Write the rows of files with what is added, in their own order or that of a column."""
    answers, notes = joined(reading, adding)
    write_file(in_order(answers, order), target)
    return notes


def in_order(answers: Any, by: str = "") -> Any:
    """A relation in the order of its rows, if it is known, or of a column; without our own column."""
    kept = [quoted(name) for name in answers.columns if name != ORDER]
    if by:
        return answers.order(f"{quoted(by)} NULLS LAST").project(", ".join(kept))
    return answers.order(quoted(ORDER)).project(", ".join(kept)) if ORDER in answers.columns else answers
