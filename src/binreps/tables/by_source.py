"""Scores by who said what, in the engine the table lives in.

A long table: each row finds the log odds of its source's answer under a few dozen draws, they are summed per
individual, and the logistic is averaged. A wide table: each row finds the score of its pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import expit, logsumexp

from binreps.errors import DataError
from binreps.notes import Note
from binreps.people import POPULATION
from binreps.readings import Readings
from binreps.tables.design import PATTERN
from binreps.tables.lookup import table_beside
from binreps.tables.roles import Roles
from binreps.tables.sources import (
    SOURCE,
    Whose,
    pattern_counts,
    pattern_keys,
    pattern_readings,
    with_source,
)
from binreps.tables.sql import quoted
from binreps.tables.tally import (
    BAD,
    LOST,
    NEGATIVES,
    ORDER,
    ROWS,
    Frame,
    N,
    S,
    collected,
    dropped_note,
    explain,
    row_counts,
    without_individual,
)

_NAMES = ("score", "lower", "upper", "decision")
ANSWERS: Mapping[str, str] = MappingProxyType({"n": N, "s": S} | {x: f"__binreps_{x}" for x in _NAMES})
"""The columns that are added, and what they are called until the user's names are given."""

_SCORE, _LOWER, _UPPER, _DECISION = (ANSWERS[name] for name in _NAMES)
_SAID, _KEY = "__binreps_said", "__binreps_readings"
_MOST_PATTERNS = 20_000  # of covariates, sent to a database as text with their log odds in every draw


class Asked(NamedTuple):
    """A fit by source, and what is wanted of it."""

    fit: Any
    loss: Any
    new: bool
    level: float | None

    @property
    def merged(self) -> dict[str, str]:
        """What sources that are taken for one are called."""
        return {str(name): " + ".join(map(str, group)) for group in self.fit.merge for name in group}

    def people(self, who: Whose, found: Any) -> Any:
        """Those of collected rows, as the fit's study has them."""
        own = self.fit.readings.people
        values = who.values(found, own.study.numbers)
        if who.by_population:
            names = {str(name): name for name in own.populations}
            told = [names.get(str(each), each) for each in values[who.columns[0]]]
            values = {POPULATION: np.array(told, dtype=object)}
        return own.asked(values, len(found))

    @property
    def tails(self) -> dict[str, float]:
        """Where the interval ends, by the column for it; nowhere if none is wanted."""
        return {} if self.level is None else {_LOWER: (1 - self.level) / 2, _UPPER: (1 + self.level) / 2}


# Wide ------------------------------------------------------------------------------------------------


def wide_answers(
    original: Frame, table: Frame, roles: Roles, asked: Asked, who: Whose, *, by_row: bool
) -> tuple[Frame, tuple[Note, ...]]:
    """The rows, or the individuals, of a wide table with the answer to their pattern."""
    keys, more = pattern_keys(roles), [PATTERN] * bool(who.columns)
    table = who.patterned(table) if more else table
    said = pattern_counts(table, roles, [*who.columns, *more])
    keys += more
    whose = [name for name in who.columns if name not in keys]
    patterns = collected(said.group_by(*keys, *whose).agg(nw.len()))
    own = pattern_readings(patterns, roles)
    if more:
        own = own._with(people=asked.people(who, patterns))
    text = ["-".join(map(str, row)) for row in zip(*(patterns[key].to_list() for key in keys), strict=True)]
    columns: dict[str, list[Any]] = {_KEY: text, **_answers(asked, own)}
    types: dict[str, Any] = dict.fromkeys(columns, nw.Float64) | {N: nw.Int64, S: nw.Int64}
    types |= dict.fromkeys((_KEY, _DECISION), nw.String)
    lookup = table_beside(original, columns, {name: types[name] for name in columns})
    key = nw.concat_str(*(nw.col(name).cast(nw.String) for name in keys), separator="-")
    if not by_row:
        found = said.with_columns(key.alias(_KEY)).join(lookup, on=_KEY, how="left")
        return found, unseen_notes(asked.fit, roles.results)
    rows = pattern_counts_of_rows(table, roles).with_columns(key.alias(_KEY))
    if roles.individual:
        rows = rows.with_columns(nw.when(~without_individual(roles)).then(nw.col(_KEY)).alias(_KEY))
    return rows.join(lookup, on=_KEY, how="left"), unseen_notes(asked.fit, roles.results)


def pattern_counts_of_rows(table: Frame, roles: Roles) -> Frame:
    """The table with yes and no of each source in each row."""
    size, columns = len(roles.results), {}
    for i, name in enumerate(roles.results):
        one = row_counts(table, Roles(results=(name,), labels=roles.labels))
        columns[f"{SOURCE}{i}"] = one[S].cast(nw.Int64)
        columns[f"{SOURCE}{i + size}"] = one[NEGATIVES].cast(nw.Int64)
    return table.with_columns(**columns)


def _answers(asked: Asked, records: Readings) -> dict[str, list[Any]]:
    """What the fit says of records, by all its draws."""
    fit = asked.fit
    score = (fit.predict if asked.new else fit.score)(records)
    n, s = records.sizes
    found = {N: n, S: s, _SCORE: score}
    if asked.level is not None:
        ends = (fit.predict_interval if asked.new else fit.score_interval)(records, level=asked.level)
        found |= {_LOWER: ends[0], _UPPER: ends[1]}
    columns: dict[str, list[Any]] = {name: np.asarray(values).tolist() for name, values in found.items()}
    return columns if asked.loss is None else {**columns, _DECISION: asked.loss.words(score)}


# Long ------------------------------------------------------------------------------------------------


def long_answers(
    original: Frame, table: Frame, roles: Roles, asked: Asked, who: Whose
) -> tuple[Frame, tuple[Note, ...]]:
    """The individuals of a long table with their answers."""
    table = with_source(table, roles)
    table = who.patterned(table) if who.columns else table
    one = row_counts(table, Roles(results=roles.results, labels=roles.labels))
    sources, whole, notes = _sources_of(table, roles, one)
    sources = list(dict.fromkeys(asked.merged.get(name, name) for name in sources))
    table = table.filter(~without_individual(roles))
    few = asked.fit.few(new=asked.new)
    sums = _table_of_logs(asked, few, sources)
    names = [name for name in sums if name not in (SOURCE, _SAID)]
    types: dict[str, Any] = {SOURCE: nw.String, _SAID: nw.Int64} | dict.fromkeys(names, nw.Float64)
    lookup = table_beside(original, sums, types)
    said = nw.when(one[N] > 0).then(one[S]).otherwise(nw.lit(2))  # 2: nothing, joins nothing
    said = (one[S] if whole else said).cast(nw.Int64)
    order = [ORDER] if ORDER in table.collect_schema().names() else []
    more = [PATTERN] * bool(who.columns)
    counts = [one[name].cast(nw.Int64).alias(name) for name in (N, S)]
    rows = table.select(*roles.individual, *more, *order, SOURCE, said.alias(_SAID), *counts)
    if asked.fit.merge:
        rows = _as_one(rows, [*roles.individual, *more], order, asked.merged)
    rows = _side_by_side(rows, [*roles.individual, *more], mixed=bool(asked.fit.merge))
    # where every row finds a partner the cheaper join loses nobody
    how: Any = "inner" if whole and not asked.fit.merge else "left"
    rows = rows.join(lookup, on=[SOURCE, _SAID], how=how)
    totals = [nw.col(N, S, *names).sum(), *(nw.col(name).min() for name in order)]
    people = rows.group_by(*roles.individual, *more).agg(*totals)
    people = people.with_columns(nw.col(N, S).cast(nw.Int64))
    if more:
        people = people.join(_table_of_odds(original, table, asked, few, who), on=PATTERN, how="left")
    kept = [*roles.individual, *order, N, S]
    prevalence = None if more else few.prevalence
    return _finished(people, kept, asked, prevalence), (*notes, *unseen_notes(asked.fit, sources))


def _side_by_side(rows: Frame, keys: list[str], *, mixed: bool) -> Frame:
    """Rows of one individual beside each other, while they are narrow: sums of many columns follow.

    Rows in no order would make Spark move, and DuckDB keep, unfinished sums of all draws for nearly every
    row: 10⁸ readings took 70 GB of disk before. DuckDB looks first whether they are in
    order, which takes a tenth of the time of sorting them, unless they are known to be mixed.
    """
    engine = rows.implementation
    if engine.is_duckdb():
        return rows if not mixed and _in_order(rows, keys) else rows.sort(*keys)
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return nw.from_native(rows.to_native().repartition(*(f"`{key}`" for key in keys)))
    return rows


def _in_order(rows: Frame, keys: list[str]) -> bool:
    """Whether rows of DuckDB come in the order of some columns, in which there are no nulls."""
    key = quoted(keys[0]) if len(keys) == 1 else f"row({', '.join(map(quoted, keys))})"
    relation = rows.to_native().project(f"{key} >= lag({key}) OVER () AS in_order")
    ((found,),) = relation.aggregate("bool_and(in_order)").fetchall()
    return found is not False  # of one row nothing is known


def _as_one(rows: Frame, keys: list[str], order: list[str], named: dict[str, str]) -> Frame:
    """Rows in which some sources are one: a row for what they agree on, none where they differ."""
    one = nw.col(SOURCE).is_in(list(named))
    several = rows.filter(one)
    name = nw.col(SOURCE)
    for old, new in named.items():
        name = nw.when(nw.col(SOURCE) == old).then(nw.lit(new)).otherwise(name)
    several = several.with_columns(name.alias(SOURCE))
    first = [nw.col(each).min() for each in order]
    several = several.group_by(*keys, SOURCE).agg(nw.col(N, S).sum(), *first)
    agree = (nw.col(S) == 0) | (nw.col(S) == nw.col(N))
    given = nw.when(agree & (nw.col(N) > 0)).then(nw.lit(1)).otherwise(nw.lit(0))
    yes = nw.when(nw.col(S) > 0).then(nw.lit(1)).otherwise(nw.lit(0))
    several = several.with_columns(given.alias(N), yes.alias(S))
    said = nw.when(nw.col(N) > 0).then(nw.col(S)).otherwise(nw.lit(2))
    several = several.with_columns(said.alias(_SAID), (nw.col(S) * nw.col(N)).alias(S))
    names = [*keys, *order, SOURCE, _SAID, N, S]
    counts = [nw.col(each).cast(nw.Int64) for each in (_SAID, N, S)]
    parts = [part.select(*keys, *order, SOURCE, *counts) for part in (rows.filter(~one), several)]
    return nw.concat([part.select(*names) for part in parts])


def _table_of_odds(original: Frame, table: Frame, asked: Asked, few: Any, who: Whose) -> Frame:
    """For each population, or each pattern of covariates, its log odds in each draw."""
    found = collected(table.select(*who.columns, PATTERN).unique())
    if not isinstance(original, nw.DataFrame) and len(found) > _MOST_PATTERNS:
        rule = "different covariates can be joined to a table with sources that is not in memory"
        raise DataError(f"at most {_MOST_PATTERNS:,} {rule}, got {len(found):,}; collect it first")
    odds = asked.people(who, found).rows @ few.coefficients
    columns: dict[str, list[Any]] = {PATTERN: found[PATTERN].to_list()}
    columns |= {f"__binreps_e{i}": odds[:, i].tolist() for i in range(odds.shape[1])}
    return table_beside(original, columns, dict.fromkeys(columns, nw.Float64) | {PATTERN: nw.String})


def _sources_of(
    table: Frame, roles: Roles, one: dict[str, nw.Expr]
) -> tuple[list[str], bool, tuple[Note, ...]]:
    """The sources of a table, in one pass that also finds results that are none and rows of nobody.

    And whether every row has a source and a result.
    """
    nobody = nw.when(without_individual(roles)).then(nw.lit(1)).otherwise(nw.lit(0))
    bad = (one[N] - one[S] - one[NEGATIVES]).cast(nw.Int64)
    given = one[N].cast(nw.Int64).alias(N)
    rows = table.select(SOURCE, given, bad.alias(BAD), nobody.alias(LOST))
    found = collected(rows.group_by(SOURCE).agg(nw.col(N, BAD, LOST).sum(), nw.len().alias(ROWS)))
    if any(map(int, found[BAD].to_list())):
        raise explain(table, roles)
    notes = []
    if lost := sum(map(int, found[LOST].to_list())):
        notes.append(dropped_note("individual", lost, roles.individual))
    each = dict(zip(found[SOURCE].to_list(), map(int, found[ROWS].to_list()), strict=True))
    if nameless := each.pop(None, 0):
        notes.append(dropped_note("source", nameless, [str(roles.source)]))
    missing = sum(map(int, found[ROWS].to_list())) - sum(map(int, found[N].to_list()))
    return [str(name) for name in each], not missing and not nameless, tuple(notes)


def unseen_notes(fit: Any, sources: Any) -> tuple[Note, ...]:
    """A note if a table has sources that the fit has not seen."""
    known = {str(name) for name in (*fit.sources, *(one for group in fit.merge for one in group))}
    new = [name for name in sources if str(name) not in known]
    if not new:
        return ()
    first = ", ".join(map(repr, sorted(new)[:3])) + (", …" if len(new) > 3 else "")
    said = (
        f"the fit has not seen {len(new):,} of the sources ({first}): they count as any of their population"
    )
    return (Note("unseen-sources", said),)


def _table_of_logs(asked: Asked, few: Any, sources: list[str]) -> dict[str, list[Any]]:
    """For each source and answer, its log odds in each draw; of new individuals both classes' logs."""
    place = {str(name): i for i, name in enumerate(asked.fit.sources)}
    own = [place.get(name, -1) for name in sources]
    classes = [
        np.concatenate([one, few.population[i][None]])[own].reshape(2 * len(own), few.prevalence.shape[1])
        for i, one in enumerate((few.negative, few.positive))
    ]
    logs = np.hstack(classes) if asked.new else classes[1] - classes[0]
    columns: dict[str, list[Any]] = {
        SOURCE: [name for name in sources for _ in (0, 1)],
        _SAID: [0, 1] * len(sources),
    }
    short = logs.astype(np.float32).astype(str)  # seven digits, so that what is sent is short
    return columns | {f"__binreps_d{i}": [float(x) for x in short[:, i]] for i in range(logs.shape[1])}


def _finished(people: Frame, kept: list[str], asked: Asked, prevalence: Any) -> Frame:
    """Sums of log odds into scores, intervals and decisions, each engine in its own words.

    `prevalence` holds log θ and log(1−θ) of each draw; None where the columns e hold each one's log odds.
    """
    engine = people.implementation
    if isinstance(people, nw.DataFrame):
        return _by_numpy(people, kept, asked, prevalence)
    finish: Callable[..., Frame] = _by_narwhals
    if engine.is_duckdb():
        finish = _by_duckdb
    elif engine.is_polars():
        finish = _by_polars
    elif engine.is_pyspark() or engine.is_pyspark_connect():
        finish = _by_spark
    size = len([name for name in people.collect_schema().names() if name.startswith("__binreps_d")])
    terms: Any = (_expressions if finish is _by_narwhals else _terms)(size, prevalence, asked.new)
    return _decided(_moved(finish(people, kept, asked, terms), asked.fit.calibration), asked.loss)


def _by_numpy(people: Frame, kept: list[str], asked: Asked, prevalence: Any) -> Frame:
    """Eager tables: all at once."""
    score, ends = _numbers(people, asked, prevalence)
    score, ends = asked.fit.calibration.moved(score), asked.fit.calibration.moved(ends)
    values: dict[str, Any] = {_SCORE: score, **dict(zip(asked.tails, ends, strict=True))}
    types: dict[str, Any] = dict.fromkeys(values, nw.Float64) | {_DECISION: nw.String}
    if asked.loss is not None:
        values[_DECISION] = asked.loss.words(score)
    engine = people.implementation
    found = people.select(*kept)
    series = {
        name: nw.new_series(name, list(column), types[name], backend=engine)
        for name, column in values.items()
    }
    return nw.maybe_reset_index(found).with_columns(**series)


def _numbers(people: Frame, asked: Asked, prevalence: Any) -> tuple[Any, Any]:
    """Scores, and the ends of their intervals, of an eager table."""

    def columns(letter: str) -> Any:
        names = [name for name in people.columns if name.startswith(f"__binreps_{letter}")]
        names.sort(key=lambda name: int(name.removeprefix(f"__binreps_{letter}")))
        return np.stack([people[name].to_numpy().astype(float) for name in names])

    sums = columns("d")
    tails = np.array([*asked.tails.values()])
    if not sums.size:
        return sums[0], np.zeros((tails.size, 0))
    prior = columns("e") if prevalence is None else (prevalence[0] - prevalence[1])[:, None]
    if not asked.new:
        odds = sums + prior
        return expit(odds).mean(axis=0), expit(np.quantile(odds, tails, axis=0))
    negative, positive = np.split(sums, 2)
    up, down = (-np.logaddexp(0.0, -prior), -np.logaddexp(0.0, prior))
    if prevalence is not None:  # moved draws: the two are not those of one θ
        up, down = (one[:, None] for one in prevalence)
    positive, negative = positive + up, negative + down
    score = expit(logsumexp(positive, axis=0) - logsumexp(negative, axis=0))
    return score, expit(np.quantile(positive - negative, tails, axis=0))


class _Terms(NamedTuple):
    """In SQL: each draw's log odds, and for new individuals the logs of both classes."""

    odds: list[str]
    negative: list[str]
    positive: list[str]


def _terms(columns: int, prevalence: Any, new: bool) -> _Terms:
    """The terms of so many columns of sums."""
    draws = columns // 2 if new else columns
    if prevalence is None:
        prior = [f"__binreps_e{i}" for i in range(draws)]
        up, down = [f"-ln(1 + exp(-{x}))" for x in prior], [f"-ln(1 + exp({x}))" for x in prior]
    else:
        up, down = ([repr(float(x)) for x in logs] for logs in prevalence)
        prior = [repr(float(x)) for x in prevalence[0] - prevalence[1]]
    if not new:
        return _Terms([f"__binreps_d{i} + ({x})" for i, x in enumerate(prior)], [], [])
    negative = [f"__binreps_d{i} + ({x})" for i, x in enumerate(down)]
    positive = [f"__binreps_d{draws + i} + ({x})" for i, x in enumerate(up)]
    return _Terms([f"({p}) - ({n})" for p, n in zip(positive, negative, strict=True)], negative, positive)


def _by_duckdb(people: Frame, kept: list[str], asked: Asked, terms: _Terms) -> Frame:
    """Lists of DuckDB."""
    odds, negative, positive = terms
    own = ", ".join('"' + name.replace('"', '""') + '"' for name in kept)
    found = people.to_native()
    score = f"({' + '.join(f'1 / (1 + exp(-({x})))' for x in odds)}) / {len(odds)} AS {_SCORE}"
    lists = f"[{', '.join(odds)}] AS odds, {score}"
    score = _SCORE
    if asked.new:
        lists = f"[{', '.join(odds)}] AS odds"
        lists += f", [{', '.join(negative)}] AS l0, [{', '.join(positive)}] AS l1"
        up, down = (f"list_sum(list_transform({x}, lambda y: exp(y - top)))" for x in ("l1", "l0"))
        score = f"{up} / ({up} + {down})"
    found = found.project(f"{own}, {lists}")
    if asked.new:
        found = found.project("*, greatest(list_max(l0), list_max(l1)) AS top")
    named = {_SCORE: score} | {
        name: f"1 / (1 + exp(-list_aggregate(odds, 'quantile_cont', {tail!r})))"
        for name, tail in asked.tails.items()
    }
    return nw.from_native(
        found.project(f"{own}, " + ", ".join(f"{x} AS {name}" for name, x in named.items()))
    )


def _by_polars(people: Frame, kept: list[str], asked: Asked, terms: _Terms) -> Frame:
    """Lists of Polars."""
    import polars as pl

    odds, negative, positive = ([pl.sql_expr(x) for x in some] for some in terms)
    if asked.new:
        top = pl.max_horizontal(*negative, *positive)
        up, down = (pl.sum_horizontal(*((x - top).exp() for x in some)) for some in (positive, negative))
        score = up / (up + down)
    else:
        score = pl.mean_horizontal(*(1 / (1 + (-x).exp()) for x in odds))
    listed = pl.concat_list(*odds).list
    ends = {
        name: 1 / (1 + (-_between(listed.sort().list.get, len(odds), tail)).exp())
        for name, tail in asked.tails.items()
    }
    return nw.from_native(people.to_native().select(*kept, score.alias(_SCORE), **ends))


def _between(get: Callable[[int], Any], size: int, tail: float) -> Any:
    """A quantile of a sorted list, with straight lines between."""
    place = tail * (size - 1)
    low = min(int(place), size - 2) if size > 1 else 0
    part = place - low
    return get(low) * (1 - part) + get(min(low + 1, size - 1)) * part


def _by_spark(people: Frame, kept: list[str], asked: Asked, terms: _Terms) -> Frame:
    """Arrays of Spark."""
    from pyspark.sql import functions as f

    odds, negative, positive = terms
    table = people.to_native()
    score = f"aggregate(odds, 0D, (a, x) -> a + 1 / (1 + exp(-x))) / {len(odds)}"
    if asked.new:
        table = table.withColumn("l0", f.expr(f"array({', '.join(negative)})"))
        table = table.withColumn("l1", f.expr(f"array({', '.join(positive)})"))
        table = table.withColumn("top", f.expr("greatest(array_max(l0), array_max(l1))"))
        up, down = (f"aggregate({x}, 0D, (a, y) -> a + exp(y - top))" for x in ("l1", "l0"))
        score = f"{up} / ({up} + {down})"
    table = table.withColumn("odds", f.expr(f"sort_array(array({', '.join(odds)}))"))
    named = {_SCORE: f.expr(score)} | {
        name: f.expr("1D") / (1 + f.exp(-_between(lambda i: f.col("odds")[i], len(odds), tail)))
        for name, tail in asked.tails.items()
    }
    return nw.from_native(table.select(*kept, *(x.alias(name) for name, x in named.items())))


def _expressions(columns: int, prevalence: Any, new: bool) -> Any:
    """What `_terms` says, for engines without SQL of their own here."""
    draws = columns // 2 if new else columns
    sums = [nw.col(f"__binreps_d{i}") for i in range(columns)]
    prior: Any = [nw.col(f"__binreps_e{i}") for i in range(draws)]
    up, down = [-(1 + (-x).exp()).log() for x in prior], [-(1 + x.exp()).log() for x in prior]
    if prevalence is not None:
        prior = (prevalence[0] - prevalence[1]).tolist()
        up, down = (logs.tolist() for logs in prevalence)
    if not new:
        return [x + y for x, y in zip(sums, prior, strict=True)], [], []
    negative = [x + y for x, y in zip(sums[:draws], down, strict=True)]
    positive = [x + y for x, y in zip(sums[draws:], up, strict=True)]
    return [p - n for p, n in zip(positive, negative, strict=True)], negative, positive


def _by_narwhals(people: Frame, kept: list[str], asked: Asked, terms: Any) -> Frame:
    """Any other engine: the score; null for its interval, which needs lists."""
    odds, negative, positive = terms
    if asked.new:
        people = people.with_columns(nw.max_horizontal(*negative, *positive).alias(_KEY))
        top = nw.col(_KEY)
        up, down = (reduce(add, [(x - top).exp() for x in some]) for some in (positive, negative))
        people = people.with_columns(up.alias(_LOWER), down.alias(_UPPER))
        score = nw.col(_LOWER) / (nw.col(_LOWER) + nw.col(_UPPER))
    else:
        score = reduce(add, [1 / (1 + (-x).exp()) for x in odds]) / len(odds)
    ends = dict.fromkeys(asked.tails, nw.lit(None).cast(nw.Float64))
    return people.with_columns(score.alias(_SCORE), **ends).select(*kept, _SCORE, *ends)


def _moved(people: Frame, calibration: Any) -> Frame:
    """Scores and the ends of their intervals as known statuses would have them."""
    if not calibration.by_gold:
        return people

    def moved(name: str) -> nw.Expr:
        inside = nw.col(name).clip(1e-15, 1 - 1e-15)
        odds: nw.Expr = (inside.log() - (1 - inside).log()) * calibration.slope + calibration.shift
        return (1 / (1 + (-odds).exp())).alias(name)

    have = people.collect_schema().names()
    return people.with_columns(*(moved(name) for name in (_SCORE, _LOWER, _UPPER) if name in have))


def _decided(people: Frame, loss: Any) -> Frame:
    """The decisions that follow from scores."""
    if loss is None:
        return people
    lower, upper = loss.thresholds
    score = nw.col(_SCORE)
    if loss.allows_inconclusive:
        word = nw.when(score > upper).then(nw.lit("positive")).otherwise(nw.lit("inconclusive"))
        word = nw.when(score < lower).then(nw.lit("negative")).otherwise(word)
    else:
        word = nw.when(score >= upper).then(nw.lit("positive")).otherwise(nw.lit("negative"))
    return people.with_columns(word.alias(_DECISION))
