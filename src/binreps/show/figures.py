"""The figures of an analysis, each with its caption: report and page show the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.decide.indecision import risk_by_cost
from binreps.decide.predictive import predictive_counts
from binreps.fits.base import Fit
from binreps.fits.bayes import BayesFit
from binreps.run.analysis import METHODS, Analysis, Method, Part
from binreps.show import plot
from binreps.table import Table

if TYPE_CHECKING:
    import altair as alt

_MOST_CELLS = 400  # of a figure that shows each of them
_MOST_PARTS = 6  # populations whose own figures are drawn
_SEED = 1  # of the predictive draws: the same figure every time


class Figure(NamedTuple):
    """A chart, its name in files and pages, and its caption."""

    name: str
    caption: str
    chart: alt.TopLevelMixin


def figures(analysis: Analysis) -> Iterator[Figure]:
    """Every figure that these data allow, in the order of the report."""
    if analysis.shared is not None:
        caption = "Prevalence of each population, and the error rates that they share, with their intervals."
        yield Figure("populations", caption, plot.populations(analysis.shared, level=analysis.settings.level))
    for part in analysis.parts[:_MOST_PARTS]:
        for figure in _part_figures(part, analysis):
            where = "" if part.name is None else f"{part.name}: "
            yield figure._replace(caption=where + figure.caption)
    caption = "Expected cost of each answer against the probability of being positive; the cheapest is thick."
    yield Figure("risks", caption, plot.risks(analysis.settings.loss))


def _part_figures(part: Part, analysis: Analysis) -> Iterator[Figure]:
    """The figures of one population."""
    settings = analysis.settings
    thresholds = settings.loss.thresholds
    bayes = part.fits.get("bayes")
    if isinstance(bayes, BayesFit):
        others = {name: fit for name, fit in _ordered(part).items() if fit is not bayes}
        caption = (
            "Prior and posterior of the three rates; shaded: the credible interval; marks: the other methods."
        )
        yield Figure("rates", caption, plot.rates(bayes, others, level=settings.level))
    caption = "What to answer for the next individual, for every result, with the probability in percent."
    yield Figure("decisions", caption, plot.decisions(part.decisions))
    caption = "Everyone in the data by score, with intervals; inside the band the answer is inconclusive."
    yield Figure("individuals", caption, plot.individuals(part.cells, thresholds))
    if 0 < len(part.counts) <= _MOST_CELLS:
        caption = "Scores by all methods against the number of positives."
        drawn = plot.scores(_ordered(part), thresholds=thresholds, level=settings.level)
        yield Figure("scores", caption, drawn)
        if isinstance(bayes, BayesFit):
            caption = (
                "Individuals observed (bars) and expected by the fit (points with intervals): "
                "a bar far outside its interval speaks against the model."
            )
            expected = predictive_counts(bayes, rng=_SEED, level=settings.level)
            yield Figure("counts", caption, plot.counts(expected))
    if analysis.truth is not None:
        caption = "Mean cost of the answers against the cost of an inconclusive one, judged by the truth."
        yield Figure("risk_by_cost", caption, plot.risk_by_cost(_risk_by_cost(part, analysis.truth)))


def _ordered(part: Part) -> dict[str, Fit]:
    """The fits by their names, in one order: a method keeps its colour and shape from figure to figure."""
    methods: tuple[Method, ...] = ("bayes", "map", "average", "median", "overdispersed")
    return {METHODS[method]: part.fits[method] for method in methods if method in part.fits}


def _risk_by_cost(part: Part, truth: CountTable) -> Table:
    """The risk of every method, for every cost of an inconclusive answer."""
    status = np.where(truth.known == UNKNOWN, np.nan, truth.known)
    scores = {name: fit.score(truth.n, truth.s) for name, fit in _ordered(part).items()}
    return risk_by_cost(scores, status, truth.weight)
