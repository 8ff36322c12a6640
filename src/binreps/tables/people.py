"""Individuals one by one, out of the user's engine: results, status, population, covariates, who said what.

For tables of few individuals, who are listed by name; many are counted where they live (`tally`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw

from binreps.counts import UNKNOWN
from binreps.tables.design import covariate_values
from binreps.tables.opened import Reading
from binreps.tables.roles import Roles
from binreps.tables.sources import SOURCE, pattern_counts, pattern_keys, with_source
from binreps.tables.tally import KNOWN, NEGATIVES, ORDER, S, collected, individuals, known_code, prepare

Row = dict[str, Any]
Saying = tuple[str, int, int]
"""A source, how often it said yes, and how often no."""


class Alike(NamedTuple):
    """All that a model may know of an individual: two for whom it is equal are alike."""

    n: int
    s: int
    known: int  # 0, 1 or UNKNOWN
    population: Any
    covariates: tuple[Any, ...]
    said: tuple[Saying, ...]


def people_of(reading: Reading) -> Iterator[tuple[str, Alike]]:
    """The name of each individual and what is known of it, in the order of the rows where that is known."""
    roles = reading.roles
    by, who = _by(reading), roles.individual or (ORDER,)
    rows, said = _rows(reading, by, who)
    order = sorted(range(len(rows)), key=lambda i: rows[i].get(ORDER, 0))
    people: dict[tuple[Any, ...], list[Any]] = {}
    for i in order:
        row = rows[i]
        person = tuple(row[name] for name in (*by, *who))
        one = people.setdefault(person, [0, 0, UNKNOWN, []])
        one[0] += int(row[S]) + int(row[NEGATIVES])
        one[1] += int(row[S])
        one[2] = max(one[2], int(row.get(KNOWN, UNKNOWN)))
        one[3] += said[i]
    several = reading.population is not None
    for number, (person, (n, s, known, told)) in enumerate(people.items(), 1):
        name = " · ".join(map(str, person[len(by) :])) if roles.individual else f"row {number}"
        population = person[0] if several else None
        yield name, Alike(n, s, known, population, person[several : len(by)], tuple(sorted(told)))


def _by(reading: Reading) -> tuple[str, ...]:
    """The columns besides results that tell individuals apart: the population, and covariates."""
    return (*filter(None, [reading.population]), *reading.roles.covariates)


def _rows(
    reading: Reading, by: tuple[str, ...], who: tuple[str, ...]
) -> tuple[list[Row], list[list[Saying]]]:
    """Rows out of the engine, one per individual, or per individual and source; and what each row says."""
    frame, roles = prepare(reading.table.numbered(), reading.roles)
    number = () if roles.long or ORDER in who else (ORDER,)
    keyed = replace(roles, individual=(*by, *who, *number), covariates=(), source=None)
    pattern = bool(roles.results) and not roles.long
    if pattern:
        table = pattern_counts(frame, keyed)
        yes, no = (sum(map(nw.col, keys[1:]), nw.col(keys[0])) for keys in _halves(roles))
        table = table.with_columns(yes.alias(S), no.alias(NEGATIVES))
    else:
        named = roles.long and roles.source is not None
        keys = replace(keyed, individual=(*keyed.individual, *((SOURCE,) if named else ())))
        table = individuals(with_source(frame, roles) if named else frame, keys)
        if roles.known is not None:
            table = table.with_columns(known_code().alias(KNOWN))
    absent = nw.any_horizontal(*(nw.col(name).is_null() for name in who), ignore_nulls=True)
    found = collected(table.filter(~absent))
    found = _with_covariates(found, roles, reading)
    rows = found.rows(named=True)
    return rows, [_told(row, roles) if pattern else _said(row) for row in rows]


def _halves(roles: Roles) -> tuple[list[str], list[str]]:
    """The columns with yes of each source, and those with no."""
    keys = pattern_keys(roles)
    return keys[: len(roles.results)], keys[len(roles.results) :]


def _with_covariates(found: Any, roles: Roles, reading: Reading) -> Any:
    """Covariates as numbers where they are."""
    from_file = reading.table.files is not None
    for name in roles.covariates:
        values = covariate_values(found, name, from_file).tolist()
        found = found.with_columns(nw.new_series(name, values, backend=found.implementation))
    return found


def _told(row: Row, roles: Roles) -> list[Saying]:
    """Who said yes and no how often, in a row of a wide table."""
    each = zip(roles.results, *_halves(roles), strict=True)
    told = [(name, int(row[yes]), int(row[no])) for name, yes, no in each]
    return [one for one in told if one[1] + one[2]]


def _said(row: Row) -> list[Saying]:
    """The same of a row of one source, if it has one."""
    given = int(row[S]) + int(row[NEGATIVES])
    return [(row[SOURCE], int(row[S]), int(row[NEGATIVES]))] if row.get(SOURCE) is not None and given else []
