"""The entry points, and how many of a thousand inputs each gets: cheap ones get most."""

from __future__ import annotations

from importlib.util import find_spec

from fuzz import command, deciding, fitting, hospital, models, nouns, odd, reading, saved
from fuzz.verdict import Entry

SHARES: dict[str, tuple[Entry, float]] = {
    "CountTable": (nouns.count_table, 340),
    "Prior, Rates, likelihood_score": (nouns.model, 150),
    "Loss, classify": (nouns.loss, 130),
    "Settings": (nouns.settings, 50),
    "guess_columns": (reading.guess, 125),
    "count_table": (reading.frame, 60),
    "count_table, files": (reading.file, 40),
    "analyse, files": (reading.analysed_file, 2),
    "messy files": (hospital.messy, 2),
    "load_fit": (saved.model, 45),
    "elicit": (deciding.beliefs, 20),
    "decision_table": (deciding.table, 5),
    "stopping_table": (deciding.stopping, 5),
    "check": (deciding.checks, 1),
    "fit_map": (fitting.posterior_mode, 6),
    "fit_bayes": (fitting.bayes, 4),
    "better than chance": (fitting.better_than_chance, 3),
    "fit_many": (fitting.many, 3),
    "fit_populations": (fitting.populations, 0.4),
    "fit_overdispersed": (fitting.overdispersed, 0.4),
    "Readings": (models.readings, 30),
    "CovariateTable": (models.covariate_table, 30),
    "fit_sources": (models.sources, 0.4),
    "fit_covariates": (models.covariates, 0.4),
    "compare": (models.comparison, 0.4),
    "recipes": (reading.recipe, 5),
    "explain, card": (deciding.one_patient, 10),
    "command line": (command.program, 8),
    "odd calls": (odd.call, 300),
}

if find_spec("fastapi") and find_spec("binreps.web"):
    from fuzz import web

    SHARES["web API"] = (web.request, 6)

ENTRIES: dict[str, Entry] = {name: entry for name, (entry, _) in SHARES.items()}


def split(inputs: int) -> dict[str, int]:
    """How many inputs each entry point gets, at least one, so that there are no fewer than asked for."""
    total = sum(share for _, share in SHARES.values())
    counts = {name: max(1, round(inputs * share / total)) for name, (_, share) in SHARES.items()}
    counts["CountTable"] = max(1, counts["CountTable"] + inputs - sum(counts.values()))
    return counts
