"""SourceAnalysis: everything one run computed where each source has error rates of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN
from binreps.decide.checks.findings import Findings
from binreps.decide.checks.run import check
from binreps.decide.evaluate import Evaluation, evaluate
from binreps.decide.loss import DECISIONS
from binreps.errors import OptionError
from binreps.fits.sampled.prior import SourcePrior
from binreps.fits.sources import SourcesFit, fit_sources
from binreps.notes import Note
from binreps.run.analysis import Estimate, Settings, Source
from binreps.table import Table
from binreps.tables.sources import MOST, source_readings

SEED = 1
"""Of the chains of an analysis: the same numbers every time."""


@dataclass(frozen=True)
class SourceAnalysis:
    """Everything one run computed where each source has error rates of its own; made by `analyse`.

    Attributes
    ----------
    settings : Settings
    fit : SourcesFit
    findings : Findings
        What `check` says of the fit.
    notes : tuple of Note
        How the data were read.
    source : Source
        Where the data came from.
    judged : Evaluation or None
        The answers against the truth, where one is given.
    """

    settings: Settings
    fit: SourcesFit
    findings: Findings = field(default_factory=Findings)
    notes: tuple[Note, ...] = ()
    source: Source = field(default_factory=lambda: Source("readings"))
    judged: Evaluation | None = None

    @cached_property
    def answers(self) -> dict[str, int]:
        """How many individuals of the fit are negative, inconclusive and positive."""
        totals = dict.fromkeys(DECISIONS.values(), 0)
        words = self.settings.loss.words(self.fit.score())
        for word, weight in zip(words, self.fit.readings.weight.tolist(), strict=True):
            totals[word] += weight
        return totals

    @property
    def prevalence(self) -> Estimate:
        """The prevalence and its interval."""
        lower, upper = self.fit.interval(self.settings.level)
        return Estimate(self.fit.rates.prevalence, lower.prevalence, upper.prevalence)

    @cached_property
    def sources(self) -> Table:
        """One row per source, those with the most readings first."""
        table = self.fit.source_table(self.settings.level)
        order = np.argsort(-np.array(table["readings"]), kind="stable")
        return Table({name: [column[i] for i in order] for name, column in table.columns.items()})

    @cached_property
    def population(self) -> Table:
        """Mean and spread of the population of sources."""
        rows = [row for row in self.fit.summary(self.settings.level) if " " in row["rate"]]
        names = ("rate", "estimate", "sd", "lower", "upper")
        return Table({name: [row[name] for row in rows] for name in names})

    def __str__(self) -> str:
        answers = ", ".join(f"{count:,} {word}" for word, count in self.answers.items())
        blocks = [f"{self.source.name}: {self.fit.readings.individuals:,} individuals, {answers}"]
        blocks += [str(self.sources), str(self.population)]
        blocks += [str(self.findings)] if len(self.findings) else []
        return "\n\n".join(blocks + ["\n".join(map(str, self.notes))] * bool(self.notes))

    __repr__ = __str__

    def write(self, folder: str | Path, *, parquet: bool = False, memory: str | None = None) -> list[Path]:
        """Write report.html, scores.csv (or .parquet), sources.csv and summary.json into a folder."""
        from binreps.show.sources import write_source_folder  # what shows an analysis comes after it

        return write_source_folder(self, folder, parquet=parquet, memory=memory)

    def report(self) -> str:
        """The report as one HTML page that opens without a network."""
        from binreps.show.sources import source_page

        return source_page(self)


def analysed_by_source(source: Source, settings: Settings, notes: tuple[Note, ...]) -> SourceAnalysis:
    """The analysis of a table that was read, its sources apart."""
    assert source.reading is not None
    if source.population is not None:
        raise OptionError("a model with sources has one prevalence; population cannot be given with source")
    readings, more = source_readings(source.reading, MOST)
    judges = source.truth is not None
    data, how = readings.forget_known() if judges else readings, settings.independent
    fit = fit_sources(data, _prior(settings), rng=SEED, independent=how)
    judged = None
    if judges:
        truth = np.where(readings.known == UNKNOWN, np.nan, readings.known)
        judged = evaluate(fit.score(readings), truth, settings.loss, readings.weight)
    kept = tuple(note for note in notes if note.id != "source-not-used")
    return SourceAnalysis(settings, fit, check(fit, settings.loss), (*kept, *more), source, judged)


def _prior(settings: Settings) -> SourcePrior:
    """The prior of the prevalence is the user's; that of error rates belongs to other models."""
    usual, given = Settings().prior, settings.prior
    others = (given.false_positive, given.false_negative, given.better_than_chance)
    if others != (usual.false_positive, usual.false_negative, usual.better_than_chance):
        rule = "with sources the error rates come from a population that is learned"
        raise OptionError(f"{rule}; give their prior to fit_sources (SourcePrior), not to an analysis")
    return SourcePrior(prevalence=given.prevalence)


def wants_sources(named: Mapping[str, Any], settings: Settings) -> bool:
    """Whether a source is named, or each column of a wide table is to be one."""
    return settings.method == "sources" or (settings.method == "bayes" and named.get("source") is not None)
