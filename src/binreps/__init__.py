"""Repeated yes/no measurements into calibrated decisions."""

from binreps._version import __version__
from binreps.counts import CountTable
from binreps.decide.evaluate import (
    CrossValidation,
    Evaluation,
    calibration_curve,
    calibration_error,
    cross_validate,
    evaluate,
)
from binreps.decide.loss import Loss, classify, decision_table, decision_words
from binreps.errors import BinrepsError, BinrepsWarning, DataError, FitError, OptionError
from binreps.fits.base import Fit
from binreps.fits.batch import BatchResult, fit_many
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.fits.em import fit_map_em
from binreps.fits.mode import MapFit, fit_map
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
from binreps.show.attach import attach, score_file
from binreps.show.by import fit_by
from binreps.study import theory
from binreps.study.datasets import load_screening, load_screening_counts, load_screening_truth
from binreps.study.simulate import Simulation, simulate, simulate_counts
from binreps.table import Table

__all__ = [
    "BatchResult",
    "BayesFit",
    "BinrepsError",
    "BinrepsWarning",
    "CountTable",
    "CrossValidation",
    "DataError",
    "Evaluation",
    "Fit",
    "FitError",
    "Loss",
    "MapFit",
    "OptionError",
    "PopulationsFit",
    "Prior",
    "Rates",
    "Simulation",
    "Table",
    "__version__",
    "attach",
    "average_score",
    "calibration_curve",
    "calibration_error",
    "classify",
    "correct_prevalence",
    "count_table",
    "count_tables",
    "cross_validate",
    "decision_table",
    "decision_words",
    "evaluate",
    "fit_average",
    "fit_bayes",
    "fit_by",
    "fit_known",
    "fit_many",
    "fit_map",
    "fit_map_em",
    "fit_median",
    "fit_populations",
    "likelihood_score",
    "load_screening",
    "load_screening_counts",
    "load_screening_truth",
    "log_likelihood",
    "median_score",
    "read_counts",
    "score_file",
    "simulate",
    "simulate_counts",
    "theory",
]
