"""Repeated yes/no measurements into calibrated decisions."""

from binreps._version import __version__
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
from binreps.fits.em import fit_map_em
from binreps.fits.mcmc import McmcFit, fit_mcmc, to_pymc
from binreps.fits.mode import MapFit, fit_map
from binreps.fits.overdispersed import OverdispersedFit, fit_overdispersed
from binreps.fits.populations import PopulationsFit, fit_populations
from binreps.fits.simple import (
    average_score,
    correct_prevalence,
    fit_average,
    fit_known,
    fit_median,
    median_score,
)
from binreps.model import Prior, Rates, likelihood_score, log_likelihood
from binreps.read.files import read_counts
from binreps.read.groups import count_tables
from binreps.read.tally import count_table
from binreps.show.analysis import Analysis, Settings, analyse, analyse_file
from binreps.show.attach import attach, attach_next, score_file
from binreps.show.by import fit_by
from binreps.show.decision_plots import plot_decisions, plot_individuals, plot_risk_by_cost, plot_risks
from binreps.show.folder import write_folder
from binreps.show.interop import to_arviz
from binreps.show.plots import plot_bias, plot_counts, plot_populations, plot_rates, plot_scores
from binreps.show.report import report
from binreps.show.save import load_fit, save_fit
from binreps.show.theme import save_chart
from binreps.show.wording import explain
from binreps.study import theory
from binreps.study.datasets import load_screening, load_screening_counts, load_screening_truth
from binreps.study.mammography import Mammography, simulate_mammography
from binreps.study.simulate import Simulation, simulate, simulate_counts
from binreps.table import Table

__all__ = [
    "Analysis",
    "BatchResult",
    "BayesFit",
    "BinrepsError",
    "BinrepsWarning",
    "CountTable",
    "CrossValidation",
    "DataError",
    "Evaluation",
    "Finding",
    "Findings",
    "Fit",
    "FitError",
    "Loss",
    "Mammography",
    "MapFit",
    "McmcFit",
    "NextReplicates",
    "OptionError",
    "OverdispersedFit",
    "Plan",
    "PopulationsFit",
    "Prior",
    "Rates",
    "Settings",
    "Simulation",
    "StoppingTable",
    "Table",
    "__version__",
    "analyse",
    "analyse_file",
    "attach",
    "attach_next",
    "average_score",
    "calibration_curve",
    "calibration_error",
    "check",
    "classify",
    "correct_prevalence",
    "count_table",
    "count_tables",
    "cross_validate",
    "decision_table",
    "decision_words",
    "elicit",
    "evaluate",
    "explain",
    "fit_average",
    "fit_bayes",
    "fit_by",
    "fit_known",
    "fit_many",
    "fit_map",
    "fit_map_em",
    "fit_mcmc",
    "fit_median",
    "fit_overdispersed",
    "fit_populations",
    "likelihood_score",
    "load_fit",
    "load_screening",
    "load_screening_counts",
    "load_screening_truth",
    "log_likelihood",
    "median_score",
    "next_replicates",
    "plan",
    "plot_bias",
    "plot_counts",
    "plot_decisions",
    "plot_individuals",
    "plot_populations",
    "plot_rates",
    "plot_risk_by_cost",
    "plot_risks",
    "plot_scores",
    "predictive_counts",
    "read_counts",
    "report",
    "risk_by_cost",
    "save_chart",
    "save_fit",
    "score_file",
    "simulate",
    "simulate_counts",
    "simulate_mammography",
    "stopping_table",
    "theory",
    "to_arviz",
    "to_pymc",
    "write_folder",
]
