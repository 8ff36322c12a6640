"""Everyone's score and decision, for the rows that an analysis read: written and listed, in one join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from binreps.decide.loss import Loss
from binreps.run.analysis import LISTED, Analysis, Profile
from binreps.table import Table, format_value
from binreps.tables.files import PathLike
from binreps.tables.join import ADDED, Adding, in_order, joined
from binreps.tables.opened import Reading, arrow_rows, open_table, read
from binreps.tables.roles import column_names
from binreps.tables.tally import open_frame, values_of
from binreps.tables.write import kept, write_arrow, write_file, write_table


class Scored(NamedTuple):
    """Everyone's rows: how to write them to a file, and themselves if they are few."""

    write: Callable[[PathLike], None]
    rows: Table | None
    connection: Any = None  # that other files may be written on


class Without:
    """What the answers would be without the covariates: columns `without`, the score, and `before`."""

    records = None

    def __init__(self, fit: Any, loss: Loss) -> None:
        self.counts, self._fit, self._loss = fit.counts, fit, loss

    @property
    def parts(self) -> dict[None, Without]:
        """Itself: there is one population."""
        return {None: self}

    def answers(self, n: Any, s: Any, *, new: bool, level: float | None) -> dict[str, Any]:
        """What a join adds for each (n, s)."""
        del level
        score = (self._fit.predict if new else self._fit.score)(n, s)
        return {"without": score, "before": self._loss.words(score)}


@contextmanager
def scored(analysis: Analysis, *, memory: str | None = None) -> Iterator[Scored]:
    """The rows that were read with their scores; cell by cell where only counts were given."""
    if analysis.source.reading is None:
        table = together(analysis, "cells")
        yield Scored(lambda target: write_table(table, target), table if len(table) <= LISTED else None)
        return
    with reopened(analysis, memory=memory) as reading:
        yield _scored_rows(analysis, reading)


@contextmanager
def reopened(analysis: Analysis, *, memory: str | None = None) -> Iterator[Reading]:
    """What was read, if it is still open; else read again."""
    source = analysis.source
    assert source.reading is not None
    assert source.guess is not None
    if not source.reading.table.closed:
        yield source.reading
        return
    wanted = column_names({**source.guess.columns, "population": source.population})
    paths = [Path(path) for path in source.paths]
    with open_table(paths, wanted, memory=memory, sheet=source.sheet) as table:
        yield read(table, source.guess.columns, source.population, numbered=True)


def _scored_rows(analysis: Analysis, reading: Reading) -> Scored:
    """The rows joined to their scores: few of them at once, many only as they are written."""
    settings, files = analysis.settings, reading.table.files
    plain = [] if analysis.fit.records is None else [Without(analysis.main.fits["bayes"], settings.loss)]
    answering = [analysis.fit, *plain]
    if None in analysis.fit.parts:  # a model without populations was kept, though they are named
        reading = replace(reading, population=None, counts=reading.everyone)
    adding = Adding(answering, settings.loss, level=settings.level, prefix=_prefix(analysis))
    answers, _ = joined(reading, adding)
    few = (reading.everyone.individuals if reading.roles.long else reading.rows) <= LISTED
    if files is not None:
        found = in_order(answers)
        found = kept(found, files.connection) if few else found
        listed = Table(values_of(open_frame(found))) if few else None
        return Scored(lambda target: write_file(found, target), listed, files.connection)
    rows = arrow_rows(answers)
    table = Table({name: rows.column(name).to_pylist() for name in rows.column_names})
    return Scored(lambda target: write_arrow(rows, target), table if few else None)


def _prefix(analysis: Analysis) -> str:
    """A prefix for the added columns, where the table has columns of the same names."""
    guess, have = analysis.source.guess, {name.casefold() for name in analysis.source.columns}
    if guess is None or guess.kind == "long":
        return ""
    own = {guess.columns.get("n"), guess.columns.get("s")} & {"n", "s"}
    return "binreps_" if (set(ADDED) - own) & have else ""


def _profile(one: Profile) -> str:
    """A typical individual, by name and covariates."""
    return f"{one.name}: {', '.join(f'{name} {format_value(v)}' for name, v in one.covariates.items())}"


def together(analysis: Analysis, what: str) -> Table:
    """The tables of all populations below each other, with their names if there are several."""
    tables = [
        (part.name, {"cells": part.cells, "decisions": part.decisions}[what]) for part in analysis.parts
    ]
    label = "population"
    if what == "decisions" and analysis.main.profiles:
        label, tables = "profile", [("covariates not known", tables[0][1])]
        tables += [(_profile(one), one.decisions) for one in analysis.main.profiles]
    if len(tables) == 1:
        return tables[0][1]
    columns: dict[str, list[Any]] = {label: [name for name, table in tables for _ in range(len(table))]}
    for name in tables[0][1].columns:
        columns[name] = [value for _, table in tables for value in table[name]]
    return Table(columns)
