"""Repeated yes/no measurements into calibrated decisions.

Each public name is loaded from its home when it is first used: `import binreps` itself costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from binreps._version import __version__

_HOMES = {
    "Analysis": "binreps.run.analysis",
    "BatchResult": "binreps.fits.batch",
    "BayesFit": "binreps.fits.bayes",
    "BinrepsError": "binreps.errors",
    "BinrepsWarning": "binreps.errors",
    "CountTable": "binreps.counts",
    "CrossValidation": "binreps.decide.evaluate",
    "DataError": "binreps.errors",
    "Evaluation": "binreps.decide.evaluate",
    "Finding": "binreps.decide.checks.findings",
    "Findings": "binreps.decide.checks.findings",
    "Fit": "binreps.fits.base",
    "FitError": "binreps.errors",
    "Loss": "binreps.decide.loss",
    "Mammography": "binreps.study.mammography",
    "MapFit": "binreps.fits.point.mode",
    "McmcFit": "binreps.fits.mcmc",
    "NextReplicates": "binreps.decide.stopping",
    "Note": "binreps.notes",
    "OptionError": "binreps.errors",
    "OverdispersedFit": "binreps.fits.overdispersed",
    "Plan": "binreps.decide.plan",
    "PopulationsFit": "binreps.fits.populations",
    "Prior": "binreps.model",
    "Rates": "binreps.model",
    "Settings": "binreps.run.analysis",
    "Simulation": "binreps.study.simulate",
    "StoppingTable": "binreps.decide.stopping",
    "Table": "binreps.table",
    "analyse": "binreps.run.front",
    "attach": "binreps.tables.join",
    "average_score": "binreps.fits.point.simple",
    "calibration_curve": "binreps.decide.evaluate",
    "calibration_error": "binreps.decide.evaluate",
    "check": "binreps.decide.checks.run",
    "classify": "binreps.decide.loss",
    "correct_prevalence": "binreps.fits.point.simple",
    "count_table": "binreps.tables.opened",
    "count_tables": "binreps.tables.opened",
    "cross_validate": "binreps.decide.evaluate",
    "decision_table": "binreps.decide.loss",
    "decision_words": "binreps.decide.loss",
    "elicit": "binreps.decide",
    "evaluate": "binreps.decide.evaluate",
    "explain": "binreps.show.wording",
    "fit": "binreps.run.front",
    "fit_average": "binreps.fits.point.simple",
    "fit_bayes": "binreps.fits.bayes",
    "fit_by": "binreps.run.by",
    "fit_known": "binreps.fits.point.simple",
    "fit_many": "binreps.fits.batch",
    "fit_map": "binreps.fits.point.mode",
    "fit_map_em": "binreps.fits.point.em",
    "fit_mcmc": "binreps.fits.mcmc",
    "fit_median": "binreps.fits.point.simple",
    "fit_overdispersed": "binreps.fits.overdispersed",
    "fit_populations": "binreps.fits.populations",
    "likelihood_score": "binreps.model",
    "load_fit": "binreps.run.save",
    "load_screening": "binreps.study.datasets",
    "load_screening_counts": "binreps.study.datasets",
    "load_screening_truth": "binreps.study.datasets",
    "log_likelihood": "binreps.model",
    "median_score": "binreps.fits.point.simple",
    "next_replicates": "binreps.decide.stopping",
    "plan": "binreps.decide.plan",
    "plot_bias": "binreps.show.plots",
    "plot_counts": "binreps.show.plots",
    "plot_decisions": "binreps.show.decision_plots",
    "plot_individuals": "binreps.show.decision_plots",
    "plot_populations": "binreps.show.plots",
    "plot_rates": "binreps.show.plots",
    "plot_risk_by_cost": "binreps.show.decision_plots",
    "plot_risks": "binreps.show.decision_plots",
    "plot_scores": "binreps.show.plots",
    "plot_stopping": "binreps.show.decision_plots",
    "predictive_counts": "binreps.decide.predictive",
    "risk_by_cost": "binreps.decide.indecision",
    "save_chart": "binreps.show.theme",
    "save_fit": "binreps.run.save",
    "score_file": "binreps.tables.join",
    "simulate": "binreps.study.simulate",
    "simulate_counts": "binreps.study.simulate",
    "simulate_mammography": "binreps.study.mammography",
    "stopping_table": "binreps.decide.stopping",
    "theory": "binreps.study",
    "to_arviz": "binreps.run.interop",
    "to_pymc": "binreps.fits.mcmc",
}

__all__ = sorted([*_HOMES, "__version__"])

if TYPE_CHECKING:
    from binreps.counts import CountTable
    from binreps.decide import elicit
    from binreps.decide.checks.findings import Finding, Findings
    from binreps.decide.checks.run import check
    from binreps.decide.evaluate import (
        CrossValidation,
        Evaluation,
        calibration_curve,
        calibration_error,
        cross_validate,
        evaluate,
    )
    from binreps.decide.indecision import risk_by_cost
    from binreps.decide.loss import Loss, classify, decision_table, decision_words
    from binreps.decide.plan import Plan, plan
    from binreps.decide.predictive import predictive_counts
    from binreps.decide.stopping import NextReplicates, StoppingTable, next_replicates, stopping_table
    from binreps.errors import BinrepsError, BinrepsWarning, DataError, FitError, OptionError
    from binreps.fits.base import Fit
    from binreps.fits.batch import BatchResult, fit_many
    from binreps.fits.bayes import BayesFit, fit_bayes
    from binreps.fits.mcmc import McmcFit, fit_mcmc, to_pymc
    from binreps.fits.overdispersed import OverdispersedFit, fit_overdispersed
    from binreps.fits.point.em import fit_map_em
    from binreps.fits.point.mode import MapFit, fit_map
    from binreps.fits.point.simple import (
        average_score,
        correct_prevalence,
        fit_average,
        fit_known,
        fit_median,
        median_score,
    )
    from binreps.fits.populations import PopulationsFit, fit_populations
    from binreps.model import Prior, Rates, likelihood_score, log_likelihood
    from binreps.notes import Note
    from binreps.run.analysis import Analysis, Settings
    from binreps.run.by import fit_by
    from binreps.run.front import analyse, fit
    from binreps.run.interop import to_arviz
    from binreps.run.save import load_fit, save_fit
    from binreps.show.decision_plots import (
        plot_decisions,
        plot_individuals,
        plot_risk_by_cost,
        plot_risks,
        plot_stopping,
    )
    from binreps.show.plots import plot_bias, plot_counts, plot_populations, plot_rates, plot_scores
    from binreps.show.theme import save_chart
    from binreps.show.wording import explain
    from binreps.study import theory
    from binreps.study.datasets import load_screening, load_screening_counts, load_screening_truth
    from binreps.study.mammography import Mammography, simulate_mammography
    from binreps.study.simulate import Simulation, simulate, simulate_counts
    from binreps.table import Table
    from binreps.tables.join import attach, score_file
    from binreps.tables.opened import count_table, count_tables
else:

    def __getattr__(name: str) -> Any:
        """A public name, from its home."""
        if name not in _HOMES:
            raise AttributeError(f"module 'binreps' has no attribute {name!r}")
        home = import_module(_HOMES[name])
        value = getattr(home, name, None) or import_module(f"{_HOMES[name]}.{name}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
