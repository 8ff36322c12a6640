"""Everyone of a table that was read, as the cells of a request: individuals who are alike are one cell.

A cell has n, s and a number of individuals, and whatever else a model may use: a known or true status, a
population, covariates, and who said what.
"""

from __future__ import annotations

from typing import Any

from binreps.counts import UNKNOWN, CountTable
from binreps.readings import Readings
from binreps.run.analysis import LISTED, Source
from binreps.tables.opened import Reading
from binreps.tables.people import Alike, people_of
from binreps.tables.sources import source_readings
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
    places: dict[Alike, int] = {}
    weight: list[int] = []
    names, cell = [], []
    for name, alike in people_of(reading):
        place = places.setdefault(alike, len(places))
        if place == len(weight):
            weight.append(0)
        weight[place] += 1
        names.append(name)
        cell.append(place)
    return _cells(list(places), weight, reading, status), {"name": names, "cell": cell}


def _cells(kinds: list[Alike], weight: list[int], reading: Reading, status: str | None) -> Columns:
    """The columns of `Cells`."""
    cells: Columns = {"n": [kind.n for kind in kinds], "s": [kind.s for kind in kinds], "weight": weight}
    if status is not None:
        cells[status] = [None if kind.known == UNKNOWN else kind.known for kind in kinds]
    if reading.population is not None:
        cells["population"] = [str(kind.population) for kind in kinds]
    if names := reading.roles.covariates:
        cells["covariates"] = {name: [kind.covariates[i] for kind in kinds] for i, name in enumerate(names)}
    if any(kind.said for kind in kinds):
        cells["readings"] = _columns([(i, *one) for i, kind in enumerate(kinds) for one in kind.said])
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
