"""Repeated yes/no measurements into calibrated decisions.

Each public name is loaded from its home when it is first used: `import binreps` itself costs next to nothing.
What most users need is here; figures are in `plot`, closed forms in `theory`, priors from words in `elicit`,
other tools in `interop`; the types that verbs return are reached through their modules.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from binreps._version import __version__

_HOMES = {
    "Analysis": "binreps.run.analysis",
    "BinrepsError": "binreps.errors",
    "BinrepsWarning": "binreps.errors",
    "CountTable": "binreps.counts",
    "CovariateTable": "binreps.covariates",
    "DataError": "binreps.errors",
    "Fit": "binreps.fits.base",
    "FitError": "binreps.errors",
    "Loss": "binreps.decide.loss",
    "OptionError": "binreps.errors",
    "Prior": "binreps.model",
    "Rates": "binreps.model",
    "Readings": "binreps.readings",
    "Settings": "binreps.run.analysis",
    "SourcePrior": "binreps.fits.sampled.prior",
    "Table": "binreps.table",
    "analyse": "binreps.run.front",
    "attach": "binreps.tables.join",
    "check": "binreps.decide.checks.run",
    "classify": "binreps.decide.loss",
    "compare": "binreps.run.compare",
    "correct_prevalence": "binreps.fits.point.simple",
    "count_table": "binreps.tables.opened",
    "count_tables": "binreps.tables.opened",
    "cross_validate": "binreps.decide.evaluate",
    "decision_table": "binreps.decide.loss",
    "decision_words": "binreps.decide.loss",
    "elicit": "binreps.decide",
    "evaluate": "binreps.decide.evaluate",
    "explain": "binreps.decide.answer",
    "fit": "binreps.run.front",
    "fit_average": "binreps.fits.point.simple",
    "fit_bayes": "binreps.fits.bayes",
    "fit_by": "binreps.run.by",
    "fit_covariates": "binreps.fits.covariates",
    "fit_known": "binreps.fits.point.simple",
    "fit_many": "binreps.fits.batch",
    "fit_map": "binreps.fits.point.mode",
    "fit_mcmc": "binreps.fits.mcmc",
    "fit_median": "binreps.fits.point.simple",
    "fit_overdispersed": "binreps.fits.overdispersed",
    "fit_populations": "binreps.fits.populations",
    "fit_sources": "binreps.fits.sources",
    "interop": "binreps.run",
    "load_fit": "binreps.run.save",
    "load_screening": "binreps.study.datasets",
    "next_replicates": "binreps.decide.stopping",
    "plan": "binreps.decide.plan",
    "plot": "binreps.show",
    "save_fit": "binreps.run.save",
    "score_file": "binreps.tables.join",
    "simulate": "binreps.study.simulate",
    "stopping_table": "binreps.decide.stopping",
    "theory": "binreps.study",
}

__all__ = sorted([*_HOMES, "__version__"])

if TYPE_CHECKING:
    from binreps.counts import CountTable
    from binreps.covariates import CovariateTable
    from binreps.decide import elicit
    from binreps.decide.answer import explain
    from binreps.decide.checks.run import check
    from binreps.decide.evaluate import cross_validate, evaluate
    from binreps.decide.loss import Loss, classify, decision_table, decision_words
    from binreps.decide.plan import plan
    from binreps.decide.stopping import next_replicates, stopping_table
    from binreps.errors import BinrepsError, BinrepsWarning, DataError, FitError, OptionError
    from binreps.fits.base import Fit
    from binreps.fits.batch import fit_many
    from binreps.fits.bayes import fit_bayes
    from binreps.fits.covariates import fit_covariates
    from binreps.fits.mcmc import fit_mcmc
    from binreps.fits.overdispersed import fit_overdispersed
    from binreps.fits.point.mode import fit_map
    from binreps.fits.point.simple import correct_prevalence, fit_average, fit_known, fit_median
    from binreps.fits.populations import fit_populations
    from binreps.fits.sampled.prior import SourcePrior
    from binreps.fits.sources import fit_sources
    from binreps.model import Prior, Rates
    from binreps.readings import Readings
    from binreps.run import interop
    from binreps.run.analysis import Analysis, Settings
    from binreps.run.by import fit_by
    from binreps.run.compare import compare
    from binreps.run.front import analyse, fit
    from binreps.run.save import load_fit, save_fit
    from binreps.show import plot
    from binreps.study import theory
    from binreps.study.datasets import load_screening
    from binreps.study.simulate import simulate
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
