"""Figures of fits: the rates, the scores, the counts expected, several populations, bias.

One function per figure, from computed results only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from binreps.counts import whole_numbers
from binreps.errors import FitError, OptionError
from binreps.fits.base import Fit, PosteriorFit, check_one_population
from binreps.fits.populations import PopulationsFit
from binreps.model import NAMES, Float
from binreps.options import check_kind, check_level, kinds_checked
from binreps.priors import density, end_of
from binreps.show.grammar import View, field, figure, heading
from binreps.show.marks import (
    PANEL,
    WIDE,
    across,
    band,
    by_place,
    inline,
    layered,
    method_signs,
    needed,
    panel_title,
    upward,
    whole_ticks,
)
from binreps.show.theme import METHOD_COLOURS, METHOD_DASHES, themed
from binreps.table import Table

if TYPE_CHECKING:
    import altair as alt

_TITLES = {
    "prevalence": "Prevalence",
    "false_positive": "False-positive rate",
    "false_negative": "False-negative rate",
}
_MAIN = METHOD_COLOURS[0]  # the fit that the figure is about
_MOST_PANELS = 6
_MOST_POINTS = 61  # per line of scores
_MOST_SHAPES = 21
_MOST_NAMES = 60  # populations that are named
_MOST_POPULATIONS = 480


# ------------------------------------------------------------------------------------------------ rates


@figure
@kinds_checked
def rates(
    fit: PosteriorFit, others: Mapping[str, Fit] | None = None, *, level: float = 0.9
) -> alt.HConcatChart:
    """Prior and posterior densities of the three rates, with the estimates of other methods marked.

    The shaded part is the equal-tailed credible interval, the upright line the posterior mean. Each axis
    shows where the posterior has its mass; a density that diverges at an end runs out of the picture.

    Parameters
    ----------
    fit : PosteriorFit
    others : mapping of str to fit, optional
        Other fits by name; only their estimates are drawn, those that are defined.
    level : float
        Probability that the shaded interval holds.

    Returns
    -------
    altair.HConcatChart

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> from binreps.fits.point.simple import fit_average
    >>> counts = CountTable([3, 3, 3, 3], [0, 1, 2, 3], weight=[60, 9, 6, 25])
    >>> chart = rates(fit_bayes(counts), {"average": fit_average(counts)})
    >>> len(chart.hconcat)
    3
    """
    check_one_population(fit)
    if fit.posterior.certain:
        raise FitError(f"a figure of the rates needs a posterior, which fit_bayes has, got the {fit.method}")
    lower, upper = fit.interval(level)
    others = others or {}
    for other in others.values():
        check_one_population(other)
    panels = []
    for name in NAMES:
        interval = (getattr(lower, name), getattr(upper, name))
        estimates = {method: float(getattr(other.rates, name)) for method, other in others.items()}
        panels.append(_rate_panel(fit, name, interval, estimates))
    text = f"line: posterior with its mean and {level:.0%} interval; dashes: prior"
    title = heading("The three rates", subtitle=text)
    chart: alt.HConcatChart = themed(View(hconcat=panels, title=title))
    return chart


def _rate_panel(
    fit: PosteriorFit, name: str, interval: tuple[float, float], estimates: Mapping[str, float]
) -> View:
    """Densities of one rate, and the estimates of the other methods above the axis."""
    low, high = _range(fit, name, list(estimates.values()))
    likely = fit.marginal(name).quantile(np.linspace(0.001, 0.999, 61))  # a narrow peak needs its own points
    x = np.unique([*np.linspace(low, high, 121), *likely, *interval])
    possible = _possible(fit, name, x)
    posterior = _posterior_density(fit, name, x)
    prior = density(fit.prior, name, x)
    top = _top(fit, name, posterior, prior, x)
    axes: dict[str, Any] = {
        "x": across("x", _TITLES[name], (low, high), tickCount=5),
        "y": upward("y", "Density" if name == NAMES[0] else None, (0, top), tickCount=4),
    }

    def curve(y: Float, where: Any) -> Any:
        return View(data=inline(x=x[where], y=np.minimum(y, top)[where])).encode(**axes)

    mean = float(getattr(fit.rates, name))
    height = min(float(_posterior_density(fit, name, np.array(mean))), top)
    within = (x >= interval[0]) & (x <= interval[1])
    layers = [
        curve(posterior, within).mark("area", color=_MAIN, opacity=0.25),
        curve(prior, possible).mark("line", style="prior"),
        curve(posterior, x == x).mark("line", color=_MAIN, strokeWidth=2),
        View(data=inline(x=[mean], y=[0.0], y2=[height]))
        .mark("rule", color=_MAIN)
        .encode(**axes, y2=field("y2")),
    ]
    if estimates:
        layers.append(_stars(estimates, top).encode(**axes))
    return layered(*layers, **PANEL)


def _stars(estimates: Mapping[str, float], top: float) -> Any:
    """The estimates of other methods, each a little higher than the one before, so that none is hidden."""
    heights = [top * (10 + 14 * (k % 8)) / PANEL["height"] for k in range(len(estimates))]
    rows = [(*item, y) for item, y in zip(estimates.items(), heights, strict=True) if np.isfinite(item[1])]
    data = inline(method=[row[0] for row in rows], x=[row[1] for row in rows], y=[row[2] for row in rows])
    signs = method_signs(list(estimates), start=1)
    points = View(data=data).mark("point", filled=True, size=110, opacity=1, style="outline")
    return points.encode(color=signs["color"], shape=signs["shape"])


def _posterior_density(fit: PosteriorFit, name: str, x: Float) -> Float:
    """The posterior's density of one rate, 0 where it cannot be.

    At an end where it diverges it is taken a little inside, so that a pole is drawn only if it has some mass.
    """
    near = 1e-3 * float(getattr(fit.sd, name))
    inside = np.clip(x, near, 1 - near)
    return np.where(_possible(fit, name, x), np.maximum(fit.marginal(name).density(inside), 0.0), 0.0)


def _possible(fit: PosteriorFit, name: str, x: Float) -> Any:
    """Whether a rate can have this value."""
    return (x >= 0) & (x <= end_of(fit.prior, name))


def _range(fit: PosteriorFit, name: str, estimates: Sequence[float]) -> tuple[float, float]:
    """Where the posterior has its mass and the other estimates lie; an end that is close is included."""
    end = end_of(fit.prior, name)
    points = [*fit.marginal(name).quantile(np.array([0.001, 0.999])), *estimates]
    low, high = float(np.nanmin(points)), float(np.nanmax(points))
    room = 0.08 * (high - low)
    low, high = max(low - room, 0.0), min(high + room, 1.0)
    if low < 0.35 * high:
        low = 0.0
    if high < end and end - high < 0.15 * (high - low):
        high = end
    return low, high


def _top(fit: PosteriorFit, name: str, posterior: Float, prior: Float, x: Float) -> float:
    """The height of the picture: the peak of the posterior's middle nine tenths, and of the prior.

    A pole of the prior sets no height, and next to it the posterior's is limited.
    """
    ends = fit.marginal(name).quantile(np.array([0.05, 0.5, 0.95]))
    at_ends = _posterior_density(fit, name, ends)
    peak = float(np.max([*posterior[(x > ends[0]) & (x < ends[2])], *at_ends]))
    a, b = getattr(fit.prior, name)
    pole = a < 1 or (b < 1 and end_of(fit.prior, name) == 1)
    return 1.1 * (min(peak, 4 * float(at_ends[1])) if pole else max(peak, float(np.max(prior))))


# ----------------------------------------------------------------------------------------------- scores


@figure
@kinds_checked
def scores(
    fits: Mapping[str, Fit],
    *,
    replicates: Iterable[int] | None = None,
    thresholds: tuple[float, float] | None = None,
    level: float = 0.9,
) -> alt.ConcatChart:
    """Scores against the number of positives, a panel for each number of replicates, all methods.

    Parameters
    ----------
    fits : mapping of str to fit
        The methods by name. A fit with a posterior is drawn with its intervals.
    replicates : iterable of int, optional
        One panel each; by default up to six of those in the data of the first fit.
    thresholds : pair of float, optional
        Those of the loss (`loss.thresholds`): the inconclusive band between them is shaded.
    level : float
        Probability that the intervals hold.

    Returns
    -------
    altair.ConcatChart

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> counts = CountTable([3, 3, 5, 5], [0, 3, 1, 5], weight=[60, 25, 9, 6])
    >>> len(scores({"Bayes": fit_bayes(counts)}).concat)
    2
    """
    check_level(level)
    if not fits:
        raise OptionError("fits must hold at least one fit, got none")
    for fit in fits.values():
        check_one_population(fit)
    shown = _spread(next(iter(fits.values())).counts.n) if replicates is None else _wanted(replicates)
    panels = [_score_panel(fits, n, thresholds, level, first=i % 3 == 0) for i, n in enumerate(shown)]
    text = "" if thresholds is None else "shaded: inconclusive"
    title = heading("Score by number of positives", subtitle=text)
    chart: alt.ConcatChart = themed(View(concat=panels, columns=3, title=title))
    return chart


def _wanted(replicates: Iterable[int]) -> list[int]:
    """Numbers of replicates that can be drawn."""
    wanted = sorted(set(whole_numbers("replicates", list(replicates)).tolist()) - {0})
    if not wanted:
        raise OptionError("replicates must name at least one number of replicates ≥ 1, got none")
    return wanted


def _spread(n: Any) -> list[int]:
    """Up to six of the numbers of replicates in the data, the least and the most among them."""
    distinct = np.unique(n[n > 0])
    places = np.linspace(0, distinct.size - 1, min(distinct.size, _MOST_PANELS)).round().astype(int)
    return [int(value) for value in distinct[places]] or [1]


def _score_panel(
    fits: Mapping[str, Fit], n: int, thresholds: tuple[float, float] | None, level: float, *, first: bool
) -> View:
    """The scores of every method for individuals with n replicates."""
    s = np.unique(np.linspace(0, n, min(n + 1, _MOST_POINTS)).round().astype(int))
    methods = list(fits.values())
    scores = [np.asarray(fit.score(n, s), dtype=float) for fit in methods]
    sides = (-0.05 * n, 1.05 * n)
    axes: dict[str, Any] = {
        "x": across("x", "Positives", sides, **whole_ticks(n)),
        "y": upward("y", "Score" if first else None, (-0.02, 1.02)),
    }
    layers: list[Any] = [] if thresholds is None else [band(*thresholds, *sides)]
    for colour, fit in zip(by_place(METHOD_COLOURS, len(methods)), methods, strict=True):
        if not fit.posterior.certain:
            interval = fit.score_interval(n, s, level=level)
            layers.append(_intervals(s, interval, colour).encode(**axes, y2=field("y2")))
    layers += _score_lines(list(fits), s, scores, axes)
    return layered(*layers, **PANEL, title=panel_title(_replicates(n)))


def _score_lines(names: Sequence[str], s: Any, scores: Sequence[Float], axes: dict[str, Any]) -> list[Any]:
    """A line for each method, and its shape: at every s, or at some of them where they are many."""

    def data(where: Any) -> dict[str, Any]:
        some = s[where]
        return inline(
            method=[name for name in names for _ in some],
            place=[k for k in range(len(names)) for _ in some],
            x=np.tile(some, len(names)),
            y=np.concatenate([score[where] for score in scores]),
        )

    signs = method_signs(names)
    places = {"domain": list(range(len(names))), "range": by_place(METHOD_DASHES, len(names))}
    # Dashes go by place and have no legend: they would run over the shapes of the methods' legend.
    dashes = field("place", "nominal", scale=places, legend=None)
    lines = View(data=data(slice(None))).mark("line", strokeWidth=1.5)
    some = np.arange(s.size) if s.size <= _MOST_SHAPES else np.linspace(0, s.size - 1, 9).round().astype(int)
    points = View(data=data(some)).mark("point", filled=True, size=40, opacity=1)
    return [
        lines.encode(**axes, color=signs["color"], strokeDash=dashes),
        points.encode(**axes, color=signs["color"], shape=signs["shape"]),
    ]


def _replicates(n: int) -> str:
    """The title of a panel."""
    return f"{n:,} replicate{'s' * (n != 1)}"


def _intervals(s: Any, interval: tuple[Any, Any], colour: str) -> Any:
    """Intervals of scores: a bar at each s, or a band where they are many."""
    data = View(data=inline(x=s, y=interval[0], y2=interval[1]))
    if s.size <= _MOST_SHAPES:
        return data.mark("rule", color=colour, opacity=0.3, strokeWidth=7)
    return data.mark("area", color=colour, opacity=0.25)


# ----------------------------------------------------------------------------------------------- counts


@figure
@kinds_checked
def counts(table: Table) -> alt.ConcatChart:
    """Posterior-predictive check: individuals observed in each cell, and how many the fit expects there.

    Parameters
    ----------
    table : Table
        What `predictive_counts` returns.

    Returns
    -------
    altair.ConcatChart
        A panel for each number of replicates: bars are observed, points with their intervals expected.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.decide.predictive import predictive_counts
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([2, 2, 2], [0, 1, 2], weight=[50, 10, 40]))
    >>> len(counts(predictive_counts(fit, rng=1)).concat)
    1
    """
    needed(table, "n", "s", "s_end", "observed", "mean", "lower", "upper")
    rows = list(table)
    shown = enumerate(sorted({row["n"] for row in rows}))
    panels = [_count_panel(n, [row for row in rows if row["n"] == n], first=i % 3 == 0) for i, n in shown]
    text = ["bars: observed", "points and lines: expected, with intervals"]
    title = heading("Individuals by number of positives", subtitle=text)
    chart: alt.ConcatChart = themed(View(concat=panels, columns=3, title=title))
    return chart


def _count_panel(n: int, rows: Sequence[Mapping[str, Any]], *, first: bool) -> View:
    """The cells of one number of replicates."""
    data = inline(
        x=[row["s"] - 0.5 for row in rows],
        x2=[row["s_end"] + 0.5 for row in rows],
        middle=[(row["s"] + row["s_end"]) / 2 for row in rows],
        zero=[0] * len(rows),
        **{name: [row[name] for row in rows] for name in ("observed", "mean", "lower", "upper")},
    )
    highest = max(1.0, *(max(row["observed"], row["upper"]) for row in rows))
    number = {"tickCount": 4, "tickMinStep": 1, "format": "~s" if highest >= 10_000 else ",d"}

    def axes(x: str, y: str) -> dict[str, Any]:
        title = "Individuals" if first else None
        return {
            "x": across(x, "Positives", (-0.5, n + 0.5), **whole_ticks(n)),
            "y": upward(y, title, (0, 1.05 * highest), **number),
        }

    base = View(data=data)
    return layered(
        base.mark("rect", style="bars").encode(**axes("x", "observed"), x2=field("x2"), y2=field("zero")),
        base.mark("rule", color=_MAIN, strokeWidth=2).encode(**axes("middle", "lower"), y2=field("upper")),
        base.mark("point", color=_MAIN, filled=True, size=45, opacity=1).encode(**axes("middle", "mean")),
        **PANEL,
        title=panel_title(_replicates(n)),
    )


# ------------------------------------------------------------------------------------------ populations


@figure
@kinds_checked
def populations(fit: PopulationsFit, *, level: float = 0.9) -> alt.VConcatChart:
    """The prevalence of each population with its interval, and the error rates that all share.

    More than 60 populations are sorted by prevalence and not named; of more than 480 an even choice is drawn.

    Parameters
    ----------
    fit : PopulationsFit
    level : float
        Probability that each interval holds.

    Returns
    -------
    altair.VConcatChart

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.populations import fit_populations
    >>> clinic = CountTable([2, 2, 2], [0, 1, 2], weight=[120, 60, 220])
    >>> survey = CountTable([2, 2, 2], [0, 1, 2], weight=[500, 80, 20])
    >>> len(populations(fit_populations({"clinic": clinic, "survey": survey})).vconcat)
    2
    """
    check_kind("fit", fit, PopulationsFit)
    lower, upper = fit.interval(level)
    names, title = [str(name) for name in fit], "Prevalence"
    columns = [np.asarray(one.prevalence) for one in (fit.rates, lower, upper)]
    if len(names) > _MOST_NAMES:
        places = np.linspace(0, len(names) - 1, min(len(names), _MOST_POPULATIONS)).round().astype(int)
        order = np.argsort(columns[0], kind="stable")[places]
        columns = [column[order] for column in columns]
        names, title = [""] * order.size, f"Prevalence of {len(names):,} populations, sorted"
    errors = [_TITLES[name] for name in NAMES[1:]]
    shared = [[getattr(one, name) for name in NAMES[1:]] for one in (fit.rates, lower, upper)]
    parts = [
        _interval_rows(names, *columns, title=title, colour=_MAIN),
        _interval_rows(errors, *shared, title="Shared by all", colour=METHOD_COLOURS[1]),
    ]
    chart: alt.VConcatChart = themed(View(vconcat=parts, title=f"Estimates and {level:.0%} intervals"))
    return chart


def _interval_rows(
    names: Sequence[str], estimate: Any, lower: Any, upper: Any, *, title: str, colour: str
) -> View:
    """A row for each name: estimate and interval; names are text beside it, so that equal ones stay apart."""
    step = 22 if len(names) <= _MOST_NAMES else max(1, 480 // len(names))
    data = inline(row=range(len(names)), name=names, x=lower, x2=upper, middle=estimate)
    highest = float(np.max(upper))
    end = 1.0 if highest > 0.7 else 0.5 if highest > 0.35 else 1.1 * highest
    scale = {"domain": [-0.5, len(names) - 0.5], "reverse": True, "nice": False}
    base = View(data=data).encode(y=field("row", "quantitative", axis=None, scale=scale))
    ends, middle = (across(field, None, (0, end), grid=True) for field in ("x", "middle"))
    points = base.mark("point", color=colour, filled=True, size=min(60, 3 * step), opacity=1)
    labels = base.mark("text", align="right", dx=-8, limit=180, style="note")
    return layered(
        base.mark("rule", color=colour, strokeWidth=min(2.5, 0.6 * step)).encode(x=ends, x2=field("x2")),
        points.encode(x=middle),
        labels.encode(x={"value": 0}, text=field("name", "nominal")),
        width=420,
        height=step * len(names),
        title=panel_title(title),
    )


# ------------------------------------------------------------------------------------------------- bias


@figure
@kinds_checked
def bias(table: Table, median_more_biased: tuple[float, float] | None = None) -> alt.LayerChart:
    """Bias of the prevalence estimated by the average and by the median, against the prevalence.

    Parameters
    ----------
    table : Table
        Columns prevalence, average and median: `theory.prevalence_error(…).bias` of each score.
    median_more_biased : pair of float, optional
        The interval J that `theory.median_more_biased` gives, to be shaded; NaN or equal ends shade nothing.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> table = Table({"prevalence": [0.0, 1.0], "average": [0.1, -0.2], "median": [0.03, -0.1]})
    >>> len(bias(table, (0.3, 0.41)).layer)
    3
    """
    needed(table, "prevalence", "average", "median")
    names, theta = ["average", "median"], table["prevalence"]
    bias = [*table["average"], *table["median"]]
    data = inline(method=[name for name in names for _ in theta], x=[*theta, *theta], y=bias)
    lowest, highest = min(*bias, 0.0), max(*bias, 0.0)
    room = 0.05 * (highest - lowest) or 0.01
    x = across("x", "Prevalence", (min(theta), max(theta)))
    y = upward("y", "Bias", (lowest - room, highest + room))
    signs = method_signs(names, start=2)  # as in figures with Bayes, posterior mode, average, median
    lines = View(data=data).mark("line", strokeWidth=2)
    layers: list[Any] = [
        View(data=inline(y=[0.0])).mark("rule", style="reference").encode(y=y),
        lines.encode(x=x, y=y, color=signs["color"], strokeDash=signs["strokeDash"]),
    ]
    low, high = median_more_biased or (np.nan, np.nan)
    text = ""
    if low < high:
        layers.insert(
            0, View(data=inline(x=[low], x2=[high])).mark("rect", style="band").encode(x=x, x2=field("x2"))
        )
        text = f"shaded: the median is more biased, from {low:.3f} to {high:.3f}"
    title = heading("Bias of the estimated prevalence", subtitle=text)
    chart: alt.LayerChart = themed(layered(*layers, **WIDE, title=title))
    return chart
