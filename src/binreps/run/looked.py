"""What columns that a model does not use say all the same: readers, panels, batches, times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from binreps.decide.checks.findings import Finding
from binreps.errors import BinrepsError
from binreps.readings import Readings
from binreps.run.analysis import Source
from binreps.tables.opened import Reading
from binreps.tables.sources import grouped_readings, source_readings

_MOST = 300_000  # results up to which columns are looked at that nobody asked about
_FEWEST, _WIDEST = 2, 40  # columns of a panel


class Looked(NamedTuple):
    """One column, or the columns of a panel: what was found, and the readings by it."""

    kind: str
    findings: list[Finding]
    readings: Readings


def looked_at(source: Source) -> list[Looked]:
    """What readers, the columns of a panel, batches and times say of exchangeable results."""
    reading = source.reading
    if reading is None or not reading.roles.results or reading.everyone.replicates > _MOST:
        return []
    found = []
    for kind, readings in _grouped(reading):
        from binreps.decide.checks.exchange import exchange_findings  # most tables have no such columns

        found.append(Looked(kind, exchange_findings(kind, readings), readings))
    return found


def _grouped(reading: Reading) -> Iterator[tuple[str, Readings]]:
    """The readings by each column that groups them."""
    roles = reading.roles
    if not roles.long:
        if _FEWEST <= len(roles.results) <= _WIDEST:
            yield "fixed-panel", source_readings(reading)[0]
        return
    named = {"reader-differences": roles.source, "batch-differences": roles.batch, "drift": roles.time}
    for kind, column in named.items():
        if column is not None:
            try:
                yield kind, grouped_readings(reading, column)
            except BinrepsError:  # a column that cannot name groups says nothing
                continue
