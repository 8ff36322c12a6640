"""Everyone of a table that was read, as the cells of a request: individuals who are alike are one cell.

A cell has n, s and a number of individuals, and whatever else a model may use: a known or true status, a
population, covariates, and who said what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw

from binreps.counts import UNKNOWN, CountTable
from binreps.readings import Readings
from binreps.run.analysis import LISTED, Source
from binreps.tables.design import covariate_values
from binreps.tables.opened import Reading
from binreps.tables.roles import Roles
from binreps.tables.sources import SOURCE, pattern_counts, pattern_keys, source_readings, with_source
from binreps.tables.tally import KNOWN, NEGATIVES, ORDER, S, collected, individuals, known_code, prepare
from binreps.web import limits

Columns = dict[str, Any]


def read_people(source: Source) -> tuple[Columns, dict[str, list[Any]] | None]:
    """The cells, and the names of everyone with their cells; None if they are too many, or only counted."""
    reading = source.reading
    assert reading is not None
    status = "known" if source.known else "truth" if source.truth else None
    size = reading.everyone.individuals if reading.roles.long else reading.rows
    if reading.roles.weight is not None or size > LISTED:
        return _many(source, reading, status), None
    return _few(reading, status)


# Few: individual by individual ---------------------------------------------------------------------------


def _few(reading: Reading, status: str | None) -> tuple[Columns, dict[str, list[Any]]]:
    """Everyone by name, and the cells that they make up."""
    places: dict[tuple[Any, ...], int] = {}
    weight: list[int] = []
    names, cell = [], []
    for name, key in _alike(reading):
        place = places.setdefault(key, len(places))
        if place == len(weight):
            weight.append(0)
        weight[place] += 1
        names.append(name)
        cell.append(place)
    return _cells(list(places), weight, reading, status), {"name": names, "cell": cell}


def _alike(reading: Reading) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The name of each individual, and what must be equal for two to be alike, in the order of the file."""
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
    for number, (person, (n, s, known, told)) in enumerate(people.items(), 1):
        own = person[len(by) :]
        name = " · ".join(map(str, own)) if roles.individual else f"row {number}"
        yield name, (n, s, known, person[: len(by)], tuple(sorted(told)))


def _by(reading: Reading) -> tuple[str, ...]:
    """The columns besides results that tell individuals apart: the population, and covariates."""
    return (*filter(None, [reading.population]), *reading.roles.covariates)


def _rows(
    reading: Reading, by: tuple[str, ...], who: tuple[str, ...]
) -> tuple[list[Columns], list[list[tuple[str, int, int]]]]:
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


def _told(row: Columns, roles: Roles) -> list[tuple[str, int, int]]:
    """Who said yes and no how often, in a row of a wide table."""
    each = zip(roles.results, *_halves(roles), strict=True)
    told = [(name, int(row[yes]), int(row[no])) for name, yes, no in each]
    return [one for one in told if one[1] + one[2]]


def _said(row: Columns) -> list[tuple[str, int, int]]:
    """The same of a row of one source, if it has one."""
    given = int(row[S]) + int(row[NEGATIVES])
    return [(row[SOURCE], int(row[S]), int(row[NEGATIVES]))] if row.get(SOURCE) is not None and given else []


def _cells(keys: list[tuple[Any, ...]], weight: list[int], reading: Reading, status: str | None) -> Columns:
    """The columns of `Cells`."""
    cells: Columns = {"n": [key[0] for key in keys], "s": [key[1] for key in keys], "weight": weight}
    if status is not None:
        cells[status] = [None if key[2] == UNKNOWN else key[2] for key in keys]
    several = reading.population is not None
    if several:
        cells["population"] = [str(key[3][0]) for key in keys]
    if names := reading.roles.covariates:
        cells["covariates"] = {name: [key[3][several + i] for key in keys] for i, name in enumerate(names)}
    if any(key[4] for key in keys):
        cells["readings"] = _columns([(i, *one) for i, key in enumerate(keys) for one in key[4]])
    return cells


def _columns(entries: list[tuple[int, str, int, int]]) -> Columns:
    """The columns of `Said`."""
    sources = sorted({name for _, name, _, _ in entries})
    place = {name: i for i, name in enumerate(sources)}
    return {
        "sources": sources,
        "cell": [entry[0] for entry in entries],
        "source": [place[entry[1]] for entry in entries],
        "yes": [entry[2] for entry in entries],
        "no": [entry[3] for entry in entries],
    }


# Many: as the engine counts them ---------------------------------------------------------------------------


def _many(source: Source, reading: Reading, status: str | None) -> Columns:
    """The cells of very many, by covariates or by source where these are given."""
    if source.records is not None:
        records = source.records
        limits.check_length("individuals with different covariates", records, limits.RECORDS)
        cells = _plain(records, status)
        return {**cells, "covariates": {name: records.column(name) for name in records.names}}
    if source.by is not None and reading.population is None:
        readings, _ = source_readings(reading)
        limits.check_size("readings", readings.readings, limits.READINGS)
        n, s = readings.sizes
        plain = {"n": n.tolist(), "s": s.tolist()}
        return {**plain, **_plain(readings, status), **plain, "readings": _of_readings(readings)}
    cells = {}
    for name, table in _tables(reading).items():
        for part, values in _plain(table, status).items():
            cells.setdefault(part, []).extend(values)
        if name is not None:
            cells.setdefault("population", []).extend([str(name)] * len(table))
    return cells


def _plain(table: Any, status: str | None) -> Columns:
    """Numbers of replicates, positives and individuals, and statuses."""
    cells: Columns = {} if isinstance(table, Readings) else {"n": table.n.tolist(), "s": table.s.tolist()}
    cells["weight"] = table.weight.tolist()
    if status is not None:
        cells[status] = [None if value == UNKNOWN else value for value in table.known.tolist()]
    return cells


def _of_readings(readings: Readings) -> Columns:
    """The columns of `Said`, of readings."""
    times = [1] * readings.code.size if readings.times is None else readings.times.tolist()
    each = zip(readings.row.tolist(), readings.code.tolist(), times, strict=True)
    names = [str(name) for name in readings.sources]
    entries = [(i, names[c // 2], t * (c % 2), t * (1 - c % 2)) for i, c, t in each]
    return _columns(entries)


def _tables(reading: Reading) -> dict[Any, CountTable]:
    """The counts of each population; None names the only one."""
    return {None: reading.counts} if isinstance(reading.counts, CountTable) else reading.counts
