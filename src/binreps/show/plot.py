"""Every figure, by what it shows: `plot.rates(fit)`, `plot.decisions(table)`; `plot.save` writes a file.

Each function draws what was computed before, as an Altair chart; nothing is computed here.
"""

from binreps.show.plot_covariates import odds_ratios, prevalence_curve
from binreps.show.plot_decisions import calibration, decisions, individuals, risk_by_cost, risks, stopping
from binreps.show.plot_fits import bias, counts, populations, rates, scores
from binreps.show.plot_sources import sources
from binreps.show.theme import save

__all__ = [
    "bias",
    "calibration",
    "counts",
    "decisions",
    "individuals",
    "odds_ratios",
    "populations",
    "prevalence_curve",
    "rates",
    "risk_by_cost",
    "risks",
    "save",
    "scores",
    "sources",
    "stopping",
]
