"""An analysis as plain values for JSON: what machines read, with full precision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from binreps._version import __version__
from binreps.decide.checks.actions import DOORS, Action
from binreps.decide.checks.findings import Findings
from binreps.decide.compare import Comparison
from binreps.decide.evaluate import Evaluation
from binreps.decide.loss import Loss
from binreps.decide.verdict import Verdict
from binreps.notes import Note
from binreps.run.analysis import Analysis, Estimate, Part, Settings, Source
from binreps.run.recipe import recipe_of
from binreps.run.save import fit_to_dict, prior_to_dict
from binreps.show.wording import command_line, methods_paragraph
from binreps.table import Table

SCHEMA, VERSION = "binreps analysis", 3  # 3: the model; sources as a section


def summary(analysis: Analysis) -> dict[str, Any]:
    """Everything an analysis holds, as dictionaries, lists, numbers and text.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.run.front import analyse
    >>> content = summary(analyse(CountTable([3, 3], [0, 3], [60, 40])))
    >>> content["schema"], content["version"], content["answers"]
    ('binreps analysis', 3, {'negative': 60, 'inconclusive': 0, 'positive': 40})
    """
    counts = analysis.counts
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "binreps": __version__,
        "input": _input(analysis.source),
        "recipe": recipe_of(analysis.source),
        "options": _options(analysis.settings),
        "model": analysis.model,
        "data": {
            "individuals": counts.individuals,
            "replicates": counts.replicates,
            "positives": counts.positives,
            "cells": len(counts),
            "identifiable": analysis.fit.identifiable,
        },
        "verdict": verdict_values(analysis.verdict),
        "comparison": None if analysis.comparison is None else comparison_values(analysis.comparison),
        "answers": analysis.answers,
        "populations": [_part(part) for part in analysis.parts],
        "numerical_error": analysis.fit.error,
        "findings": findings_rows(analysis.findings),
        "notes": notes_rows(analysis.notes),
        "methods": methods_paragraph(analysis),
        "command": command_line(analysis),
        "fit": fit_to_dict(analysis.fit),
    }


def _input(source: Source) -> dict[str, Any]:
    """The input, by name and hash; folders stay private."""
    hashes = zip(source.paths, source.sha256, strict=True)
    return {
        "name": source.name,
        "files": [{"name": Path(path).name, "sha256": digest} for path, digest in hashes],
        "kind": source.guess.kind if source.guess else None,
        "columns": dict(source.guess.columns) if source.guess else {},
        "known": source.known,
        "truth": source.truth,
        "population": source.population,
        "covariates": list(source.covariates),
        "missing": source.missing,
        "no_result": dict(source.no_result),
        "read_as": str(source.guess) if source.guess else None,
        "not_used": dict(source.guess.others or {}) if source.guess else {},
    }


def _options(settings: Settings) -> dict[str, Any]:
    """What the user chose."""
    return {
        "model": settings.model,
        "method": settings.method,
        "prior": {**prior_to_dict(settings.prior), "region": settings.prior.region.words},
        "loss": _loss(settings.loss),
        "level": settings.level,
        "independent": settings.independent,
        "merge": [list(group) for group in settings.merge],
        "replicates": settings.replicates,
    }


def _loss(loss: Loss) -> dict[str, Any]:
    """What answers cost."""
    return {
        "false_positive": loss.false_positive,
        "false_negative": loss.false_negative,
        "inconclusive_negative": loss.inconclusive_negative,
        "inconclusive_positive": loss.inconclusive_positive,
        "thresholds": list(loss.thresholds),
    }


def _part(part: Part) -> dict[str, Any]:
    """One population."""
    return {
        "name": part.name if part.name is None else str(part.name),
        "individuals": part.counts.individuals,
        "headline": {name: _numbers(one) for name, one in part.headline.items()},
        "rates": table_rows(part.rates()),
        "interval_by": part.believed,
        "intraclass": None if part.intraclass is None else _numbers(part.intraclass),
        "usual": part.usual,
        "answers": part.answers,
        "cells": table_rows(part.cells),
        "decisions": table_rows(part.decisions),
        "judged": {method: _judged(result) for method, result in part.judged.items()},
        **_covariates(part),
        **_sources(part),
    }


def _sources(part: Part) -> dict[str, Any]:
    """Each source and their population, where there are any."""
    if part.sources is None or part.source_population is None:
        return {}
    return {
        "sources": table_rows(part.sources),
        "population_of_sources": table_rows(part.source_population),
        "prevalence_of_populations": None if part.populations is None else table_rows(part.populations),
        "gold": None if part.gold is None else table_rows(part.gold),
        "calibration": {**asdict(part.fit.calibration), "sentence": str(part.fit.calibration)},
        "chains": {"rhat": plain(part.fit.rhat), "effective_draws": plain(part.fit.effective)},
    }


def _covariates(part: Part) -> dict[str, Any]:
    """What the covariates do, where there are any."""
    if part.odds_ratios is None:
        return {}
    return {
        "odds_ratios": table_rows(part.odds_ratios),
        "prevalence_curves": {name: table_rows(table) for name, table in part.curves.items()},
        "profiles": [
            {"name": one.name, "covariates": dict(one.covariates), "decisions": table_rows(one.decisions)}
            for one in part.profiles
        ],
    }


def _judged(result: Evaluation) -> dict[str, Any]:
    """How good the answers of one method were."""
    measures = {row["measure"]: plain(row["value"]) for row in result.summary()}
    return {**measures, "confusion": table_rows(result.confusion)}


def _numbers(estimate: Estimate) -> dict[str, Any]:
    """An estimate and its interval."""
    return {name: plain(value) for name, value in estimate._asdict().items()}


def verdict_values(verdict: Verdict) -> dict[str, Any]:
    """The light, its words, and the numbers behind it."""
    return {
        "light": verdict.light,
        "word": verdict.word,
        "sentence": verdict.sentence,
        "reason": verdict.reason,
        "model": verdict.model,
        "numbers": {name: plain(value) for name, value in verdict.numbers.items()},
        "action": _action(verdict.action),
    }


def comparison_values(comparison: Comparison) -> dict[str, Any]:
    """The models that were compared, and whose answer the chosen one changes; the same in every run."""
    models = table_rows(comparison.table())
    for row in models:
        del row["seconds"]
    return {
        "preferred": comparison.preferred,
        "chosen": comparison.chosen,
        "models": models,
        "changes": table_rows(comparison.changes(comparison.chosen)),
        "refused": dict(comparison.refused),
    }


def findings_rows(findings: Findings) -> list[dict[str, Any]]:
    """Findings by their names, with what to do, and what each door offers to do."""
    names = ("severity", "name", "number", "sentence", "advice")
    return [
        {**{name: plain(getattr(one, name)) for name in names}, "action": _action(one.action)}
        for one in findings
    ]


def _action(action: Action | None) -> dict[str, str] | None:
    """An action by its id, and its words at each door."""
    if action is None:
        return None
    return {"id": action.id, "value": action.value, **{door: action.words(door) for door in DOORS}}


def notes_rows(notes: Iterable[Note]) -> list[dict[str, str]]:
    """Notes by their ids."""
    return [{"id": note.id, "sentence": note.sentence} for note in notes]


def table_rows(table: Table) -> list[dict[str, Any]]:
    """The rows of a table, with None for NaN and infinity."""
    return [{name: plain(value) for name, value in row.items()} for row in table]


def plain(value: Any) -> Any:
    """A value that JSON has."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
