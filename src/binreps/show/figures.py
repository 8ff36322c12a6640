"""The figures of an analysis, each with its caption: report and page show the same ones."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from binreps.run.analysis import Analysis, Part, drawn
from binreps.run.models import WAYS
from binreps.show import plot
from binreps.show.grammar import View, view_of

_MOST_CELLS = 400  # of a figure that shows each of them
_MOST_PARTS = 6  # populations whose own figures are drawn


class Figure(NamedTuple):
    """A view, its name in files and pages, and its caption."""

    name: str
    caption: str
    view: View


def figures(analysis: Analysis, without: Container[str] = ()) -> Iterator[Figure]:
    """Every figure that these data allow, in the order of the report, but for those of some names."""
    if analysis.shared is not None:
        caption = "Prevalence of each population, and the error rates that they share, with their intervals."
        yield Figure(
            "populations", caption, view_of(plot.populations, analysis.shared, level=analysis.settings.level)
        )
    for part in analysis.parts[:_MOST_PARTS]:
        for figure in _part_figures(part, analysis, without):
            where = "" if part.name is None else f"{part.name}: "
            yield figure._replace(caption=where + figure.caption)
    caption = "Expected cost of each answer against the probability of being positive; the cheapest is thick."
    yield Figure("risks", caption, view_of(plot.risks, analysis.settings.loss))


def _part_figures(part: Part, analysis: Analysis, without: Container[str]) -> Iterator[Figure]:
    """The figures of one population."""
    settings = analysis.settings
    thresholds = settings.loss.thresholds
    yield from _covariate_figures(part, settings.level)
    if part.sources is not None:
        caption = (
            "Each point is a source: how often it is wrong about negatives (across) and about positives "
            f"(up), with {settings.level:.0%} intervals; larger points have more readings. On the dashed "
            "line answers say nothing, beyond it the opposite. Hover over a point for its name."
        )
        yield Figure("sources", caption, view_of(plot.sources, part.fit, level=settings.level))
    shown = part.fit if part.fit.records is not None else part.fits.get("bayes")
    if shown is not None and part.sources is None:
        others = {name: fit for name, fit in _named(part).items() if fit is not shown}
        average = "" if shown.records is None else " (that of the prevalence, of someone average)"
        caption = (
            f"Prior{average} and posterior of the three rates; shaded: the credible interval; marks: the "
            "other methods."
        )
        yield Figure("rates", caption, view_of(plot.rates, shown, others, level=settings.level))
    if part.sizes and "decisions" not in without:
        caption = "What to answer for the next individual, for every result, with the probability in percent."
        yield Figure("decisions", caption, view_of(plot.decisions, part.decisions))
    if part.sources is None and any(score is not None and score == score for score in part.scored["score"]):
        caption = "Everyone in the data by score, with intervals; inside the band the answer is inconclusive."
        yield Figure("individuals", caption, view_of(plot.individuals, part.cells, thresholds))
    if part.sources is None and 0 < len(part.counts) <= _MOST_CELLS:
        whose = "" if part.fit.records is None else ", of someone whose covariates are not known"
        caption = f"Scores by all methods against the number of positives{whose}."
        view = view_of(plot.scores, _named(part), thresholds=thresholds, level=settings.level)
        yield Figure("scores", caption, view)
        if part.expected is not None:
            caption = (
                "Individuals observed (bars) and expected by the fit (points with intervals): "
                "a bar far outside its interval speaks against the model."
            )
            yield Figure("counts", caption, view_of(plot.counts, part.expected))
    if part.judged:
        caption = (
            "Of individuals with about the same chance of being positive (across), how many are (up), with "
            "intervals; larger points stand for more individuals. On the line chances and truth agree."
        )
        yield Figure(
            "calibration", caption, view_of(plot.calibration, part.judged[part.deciding].calibration)
        )
    if part.risks is not None:
        caption = "Mean cost of the answers against the cost of an inconclusive one, judged by the truth."
        yield Figure("risk_by_cost", caption, view_of(plot.risk_by_cost, part.risks))


def _covariate_figures(part: Part, level: float) -> Iterator[Figure]:
    """What the covariates do, where there are any."""
    ratios = part.odds_ratios
    if ratios is None or not len(ratios):
        return
    caption = (
        f"Odds ratios of being positive, with {level:.0%} intervals: of a step of a number, and of a level "
        "against its reference. To the right of 1 the odds are higher."
    )
    yield Figure("odds_ratios", caption, view_of(plot.odds_ratios, ratios))
    for name, table in list(part.curves.items())[:_MOST_PARTS]:
        caption = f"Prevalence by {name}, all other covariates average, with its {level:.0%} interval."
        yield Figure(f"prevalence_by_{name}", caption, view_of(plot.prevalence_curve, table, name))


def _named(part: Part) -> dict[str, Any]:
    """The fits by their names, in one order: a method keeps its colour and shape from figure to figure."""
    return {WAYS[kind].name: fit for kind, fit in drawn(part.fits).items()}
