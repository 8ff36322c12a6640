"""Scores and decisions joined back to the user's own table, in the engine it lives in.

The distinct (n, s) come out of the engine, a table of their scores goes back in, and a join does the rest:
a lazy table stays lazy, and no row passes through Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack

import narwhals.stable.v2 as nw
import numpy as np

from binreps.counts import CountTable, is_null
from binreps.decide.loss import Loss, decision_words
from binreps.decide.stopping import next_replicates
from binreps.errors import DataError, OptionError
from binreps.fits.base import Fit
from binreps.fits.populations import PopulationsFit
from binreps.options import check_level
from binreps.tables.files import PathLike, beside, check_target, find_files, open_files, quoted, write_file
from binreps.tables.groups import group_names
from binreps.tables.tally import (
    ORDER,
    TEXT,
    Columns,
    Frame,
    N,
    Roles,
    S,
    Tally,
    collected,
    individuals,
    open_frame,
    prepare,
    row_counts,
    tally,
    warn,
    without_individual,
)

ADDED = ("n", "s", "score", "lower", "upper", "decision")
"""The columns that `attach` adds, in this order."""

_SQL = {nw.Int64: "BIGINT", nw.Float64: "DOUBLE", nw.String: "VARCHAR"}
_KEY, _POPULATION = "__binreps_key", "__binreps_population"
_LARGEST_N = 2**31  # above, the key would not fit into 64 bits

_TYPES: dict[str, Any] = {
    **dict.fromkeys(("n", "s", "rank"), nw.Int64),
    **dict.fromkeys(("decision", "measure"), nw.String),
}  # the others are Float64


def attach(
    frame: Any,
    fit: Fit | PopulationsFit,
    *,
    loss: Loss,
    population: str | None = None,
    per: Literal["individual", "replicate"] = "individual",
    new: bool = False,
    level: float = 0.9,
    prefix: str = "",
    **columns: Unpack[Columns],
) -> Any:
    """Add n, s, score, its interval and the decision to a table, and give the same kind of table back.

    A wide or counted table keeps its rows and columns, and gains columns. A long table gives one row per
    individual, or, with `per="replicate"`, keeps its rows and columns and gains the individual's. pandas,
    PyArrow and eager Polars tables keep the order of their rows (individuals come in the order in which they
    first appear). Lazy tables stay lazy, after one pass that finds the distinct (n, s).

    Parameters
    ----------
    frame : dataframe
        Any that `count_table` reads.
    fit : any fit
    loss : Loss
        What errors cost: it turns scores into decisions.
    population : str, optional
        Column, of text or whole numbers, that says which population a row belongs to: for a fit of several
        populations, and only then. The same individual in two populations is two individuals.
    per : {"individual", "replicate"}
        What a row of the answer is, for a long table.
    new : bool
        Whether these individuals were not in the data of the fit: then they are predicted, not scored.
    level : float
        Probability that the interval of the score holds. A fit without intervals gives null.
    prefix : str
        Put before the names of the added columns, for tables that have such columns already.
    **columns
        Which column plays which part, as in `count_table`: `individual` and `result`, or `replicates`, or
        `n` and `s`; `positive` and `negative`. A column `known` is read but does not change a score.

    Returns
    -------
    dataframe
        Of the type of `frame`. The decision is "negative", "inconclusive" or "positive"; it is null where
        the score is, and all that is added is null where a row has no individual.

    Examples
    --------
    >>> import pyarrow
    >>> from binreps.decide.loss import Loss
    >>> from binreps.fits.point.simple import fit_average
    >>> from binreps.tables.tally import count_table
    >>> tests = pyarrow.table({"patient": ["ann", "bob", "ann"], "test": ["pos", "neg", "pos"]})
    >>> fit = fit_average(count_table(tests, individual="patient", result="test"))
    >>> answers = attach(tests, fit, loss=Loss(), individual="patient", result="test")
    >>> answers.select(["patient", "n", "s", "score", "decision"]).to_pylist()[0]
    {'patient': 'ann', 'n': 2, 's': 2, 'score': 1.0, 'decision': 'positive'}
    """
    more = _Answers(fit, loss, new, level)
    return _attach(frame, more, population=population, per=per, prefix=prefix, roles=Roles.of(**columns))


def attach_next(
    frame: Any,
    fit: Fit,
    *,
    loss: Loss,
    cost_per_replicate: float,
    budget: int = 200,
    new: bool = False,
    level: float = 0.9,
    prefix: str = "",
    **columns: Unpack[Columns],
) -> Any:
    """`attach`, and whether to measure each individual again: `next_replicates` for the user's own table.

    Parameters
    ----------
    frame, fit, loss, new, level, prefix, **columns
        As in `attach`.
    cost_per_replicate, budget
        As in `next_replicates`, which says how individuals are ranked, and that the rule is myopic.

    Returns
    -------
    dataframe
        Of the type of `frame`, with the columns of `attach` and: worth, the highest price of a replicate at
        which measuring again pays; rank, 1 for those to measure first, null where it does not pay; measure,
        "yes", "no", or "5 of 18" where the budget ends among equals.

    Examples
    --------
    >>> import pyarrow
    >>> from binreps.fits.bayes import fit_bayes
    >>> tests = pyarrow.table({"patient": ["ann", "bob", "eve"], "n": [4, 4, 4], "s": [0, 2, 4]})
    >>> fit = fit_bayes(CountTable([4] * 5, range(5), [50, 18, 6, 9, 17]))
    >>> answers = attach_next(tests, fit, loss=Loss(), cost_per_replicate=0.01, n="n", s="s")
    >>> answers.select(["patient", "decision", "rank", "measure"]).to_pylist()[1]
    {'patient': 'bob', 'decision': 'inconclusive', 'rank': 1, 'measure': 'yes'}
    """
    more = _Again(fit, loss, new, level, cost_per_replicate, budget)
    return _attach(frame, more, population=None, per="individual", prefix=prefix, roles=Roles.of(**columns))


@dataclass(frozen=True)
class _Answers:
    """What `attach` adds: the columns, and their values for every (n, s)."""

    fit: Any
    loss: Loss
    new: bool
    level: float

    names: ClassVar[tuple[str, ...]] = ADDED

    def values(self, counted: Tally) -> dict[str, list[Any]]:
        """The columns for every (n, s), with None for null, and for every population if there are several."""
        how: dict[str, Any] = {"new": self.new, "level": self.level}
        if not isinstance(self.fit, PopulationsFit):
            return _score_pairs(counted.pairs, self.fit, self.loss, **how)
        columns: dict[str, list[Any]] = {_POPULATION: []}
        for name, one in _by_text(self.fit).items():
            for what, values in _score_pairs(counted.pairs, one, self.loss, **how).items():
                columns.setdefault(what, []).extend(values)
            columns[_POPULATION] += [name] * len(counted.pairs)
        return columns


@dataclass(frozen=True)
class _Again(_Answers):
    """What `attach_next` adds."""

    cost: float
    budget: int

    names: ClassVar[tuple[str, ...]] = (*ADDED, "worth", "rank", "measure")

    def values(self, counted: Tally) -> dict[str, list[Any]]:
        """Those of `attach`, and whom to measure again; a known status needs no measurement."""
        again = next_replicates(
            counted.counts,
            self.fit,
            self.loss,
            cost_per_replicate=self.cost,
            budget=self.budget,
            new=self.new,
        )
        rows = {(row["n"], row["s"]): row for row in again.table()}
        found = [rows.get(pair) for pair in counted.pairs]
        return {
            **super().values(counted),
            "worth": [row and row["worth"] for row in found],
            "rank": [row and row["rank"] for row in found],
            "measure": [_measure_words(row) for row in found],
        }


def _measure_words(row: dict[str, Any] | None) -> str:
    """Whether everyone, no one or some of a cell are measured again."""
    if row is None or row["measure"] == 0:
        return "no"
    everyone = row["measure"] == row["individuals"]
    return "yes" if everyone else f"{row['measure']} of {row['individuals']}"


def _attach(
    frame: Any, more: _Answers, *, population: str | None, per: str, prefix: str, roles: Roles
) -> Any:
    """The user's table with more columns, which follow from n and s."""
    if per not in ("individual", "replicate") or (per == "replicate" and not roles.long):
        choice = "'individual', or 'replicate' for a long table"
        raise OptionError(f"per must be {choice}, got {per!r}")
    check_level(more.level)
    original = open_frame(frame)
    eager = isinstance(original, nw.DataFrame)
    table, roles = prepare(original.with_row_index(ORDER) if eager else original, roles)
    table, roles = _with_population(table, roles, more.fit, population)
    counted = tally(table, roles)
    if not more.new:
        _warn_of_strangers(counted.counts, more.fit)
    form = _form(roles, counted, per)
    added = _added_names(original, roles, form, prefix, more.names)
    lookup = _lookup(original, more.values(counted), added)
    joined = _joined(table, roles, lookup, form)
    finish = _in_order if eager else _lazily
    return finish(original, joined, roles, list(added.values()), form).to_native()


def _with_population(
    table: Frame, roles: Roles, fit: Fit | PopulationsFit, population: str | None
) -> tuple[Frame, Roles]:
    """The table with its populations as text, all of which the fit has; they are part of who someone is."""
    if isinstance(fit, PopulationsFit) != (population is not None):
        rule = "population, the column that says which, goes with a fit of several populations"
        raise OptionError(f"{rule}; got population={population!r} and a fit by {fit.method}")
    if population is None:
        return table, roles
    (name,) = group_names(table, population, roles)
    if not (table.collect_schema()[name].is_integer() or table.collect_schema()[name] in TEXT):
        raise DataError(f"column {name!r} must hold text or whole numbers, as it names populations")
    table = table.with_columns(nw.col(name).cast(nw.String).alias(_POPULATION))
    found = collected(table.select(_POPULATION).unique())[_POPULATION].to_list()
    strangers = sorted({text for text in found if not is_null(text)} - set(_by_text(fit)))
    if strangers:
        raise DataError(f"column {name!r} has a population {strangers[0]!r} that the fit does not have")
    if not roles.individual and roles.long is False:
        return table, roles
    return table, replace(roles, individual=(name, *roles.individual))


def _by_text(fit: Any) -> dict[str, Fit]:
    """The fit of each population by its name as text."""
    return {str(name): fit[name] for name in fit}


_Form = Literal["rows", "individuals", "rows by individual"]


def _form(roles: Roles, counted: Tally, per: str) -> _Form:
    """What a row of the answer is, and how it finds its n and s."""
    if roles.long and per == "individual":
        return "individuals"
    return "rows by individual" if roles.long or counted.repeated else "rows"


def _warn_of_strangers(counts: CountTable, fit: Fit | PopulationsFit) -> None:
    """Say so if the table cannot be part of the data of the fit."""
    everyone = sum(fit.counts.values(), CountTable([], [])) if isinstance(fit, PopulationsFit) else fit.counts
    fitted = _weights(everyone)
    if any(weight > fitted.get(cell, 0) for cell, weight in _weights(counts).items()):
        advice = "give new=True to predict individuals that are new"
        message = f"the table holds individuals that the fit has not seen, scored as if it had; {advice}"
        warn(message)


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


def _score_pairs(
    pairs: Sequence[tuple[int, int]], fit: Any, loss: Loss, *, new: bool, level: float
) -> dict[str, list[Any]]:
    """The columns of `ADDED` for every (n, s), with None for null."""
    n, s = np.array(pairs, np.int64).reshape(-1, 2).T
    score = np.asarray((fit.predict if new else fit.score)(n, s), dtype=float)
    interval = getattr(fit, "predict_interval" if new else "score_interval", None)
    lower, upper = (np.full(n.shape, np.nan),) * 2 if interval is None else interval(n, s, level=level)
    columns = {"score": score, "lower": lower, "upper": upper}
    decision = decision_words(loss.classify(score))
    nullable = {name: _with_nulls(values) for name, values in columns.items()}
    return {"n": n.tolist(), "s": s.tolist(), **nullable, "decision": decision}


def _with_nulls(values: Any) -> list[float | None]:
    """Floats with None in place of NaN."""
    return [None if math.isnan(value) else value for value in np.asarray(values, dtype=float).tolist()]


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
    engine, native = original.implementation, original.to_native()
    if isinstance(original, nw.DataFrame):
        return _small_table(columns, types, engine)
    if engine.is_duckdb():
        return nw.from_native(beside(native, columns, {name: _SQL[types[name]] for name in columns}))
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return nw.from_native(_spark_table(native.sparkSession, columns, types))
    if engine.is_polars():
        return _small_table(columns, types, engine).lazy()
    return _small_table(columns, types, "pyarrow").lazy(backend=engine)


def _small_table(columns: dict[str, list[Any]], types: dict[str, Any], backend: Any) -> Frame:
    """An eager table from columns; a series keeps None where `from_dict` makes it text in older pandas."""
    return nw.from_dict(
        {name: nw.new_series(name, values, types[name], backend=backend) for name, values in columns.items()}
    )


def _spark_table(session: Any, columns: dict[str, list[Any]], types: dict[str, Any]) -> Any:
    """A table on the user's own session, sent to every worker instead of shuffling the rows.

    It is written in SQL: from Python rows, Spark would need Python on the workers to read it. The first row
    is null, which joins nothing; it gives the columns their types, also where there is no other row.
    """
    sql = {nw.Int64: "BIGINT", nw.Float64: "DOUBLE", nw.String: "STRING"}
    kinds = [sql[types[name]] for name in columns]
    rows = [(None,) * len(kinds), *zip(*columns.values(), strict=True)]
    values = ", ".join(
        "(" + ", ".join(_spark_literal(v, kind) for v, kind in zip(row, kinds, strict=True)) + ")"
        for row in rows
    )
    names = ", ".join(f"`{name.replace('`', '``')}`" for name in columns)
    return session.sql(f"SELECT * FROM VALUES {values} AS lookup({names})").hint("broadcast")


def _spark_literal(value: object, kind: str) -> str:
    """A value in Spark's SQL."""
    return f"CAST({'NULL' if value is None else repr(str(value))} AS {kind})"


def _joined(table: Frame, roles: Roles, lookup: Frame, form: _Form) -> Frame:
    """The table with the lookup's columns."""
    columns = lookup.collect_schema().names()
    keys = [name for name in (_KEY, _POPULATION) if name in columns]
    if form == "rows":
        return table.with_columns(_row_key(table, roles)).join(lookup, on=keys, how="left")
    people = individuals(table, roles).filter(~without_individual(roles))
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


def _lazily(original: Frame, joined: Frame, roles: Roles, added: list[str], form: _Form) -> Frame:
    """The columns of the answer, still lazy."""
    have = original.collect_schema().names()
    kept = [*roles.individual, *({ORDER} & set(have))] if form == "individuals" else have
    return joined.select(*kept, *added)


def _in_order(original: Frame, joined: Frame, roles: Roles, added: list[str], form: _Form) -> Frame:
    """The rows in their own order, and all that was there untouched."""
    joined = joined.sort(ORDER)
    if form == "individuals":
        return nw.maybe_reset_index(joined.select(*roles.individual, *added))
    return original.with_columns(*(joined[name] for name in added))


def score_file(
    source: PathLike | Sequence[PathLike],
    target: PathLike,
    fit: Fit | PopulationsFit,
    *,
    loss: Loss,
    population: str | None = None,
    per: Literal["individual", "replicate"] = "individual",
    new: bool = False,
    level: float = 0.9,
    prefix: str = "",
    memory: str | None = None,
    **columns: Unpack[Columns],
) -> Path:
    r"""Add scores and decisions to files of any size, in a new file.

    Up to a million rows (and 100 MB) stay in their order; more come in any order, as sorting them back
    would take longer than all the rest. The columns of a CSV file are written as the text they were, with an
    apostrophe before what a spreadsheet would take for a formula (`=…`, `@…`). The new file
    appears whole at the end, or not at all.

    Parameters
    ----------
    source : str, path or list of them
        What `read_counts` reads.
    target : str or path
        File to write: .csv, .csv.gz, .tsv or .parquet. It is replaced if it exists; it cannot be a source.
    fit, loss, population, per, new, level, prefix, **columns
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
    >>> from binreps.fits.point.simple import fit_average
    >>> from binreps.tables.files import read_counts
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tests.csv")
    >>> _ = path.write_text("patient,test\n007,pos\n007,pos\n008,neg\n")
    >>> fit = fit_average(read_counts(path, individual="patient", result="test"))
    >>> out = path.with_name("answers.csv")
    >>> print(score_file(path, out, fit, loss=Loss(), individual="patient", result="test").read_text())
    patient,n,s,score,lower,upper,decision
    007,2,2,1.0,,,positive
    008,1,0,0.0,,,negative
    """
    roles = Roles.of(**columns)
    check_target(target, find_files(source))
    wanted = [*roles.used, *filter(None, [population])]
    how: dict[str, Any] = {"per": per, "new": new, "level": level, "prefix": prefix, **columns}
    with open_files(source, wanted, memory=memory, ordered=True) as relation:
        answers = attach(relation, fit, loss=loss, population=population, **how)
        if ORDER in answers.columns:
            kept = ", ".join(quoted(name) for name in answers.columns if name != ORDER)
            answers = answers.order(quoted(ORDER)).project(kept)
        write_file(answers, target)
    return Path(target)
