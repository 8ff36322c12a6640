from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import drawing
from binreps.counts import CountTable
from binreps.decide.predictive import predictive_counts
from binreps.errors import OptionError
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.fits.point.mode import fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.fits.populations import PopulationsFit, fit_populations
from binreps.model import NAMES, Prior, Rates
from binreps.priors import density as prior_density
from binreps.show import plot
from binreps.study import theory
from binreps.study.simulate import simulate_counts
from binreps.table import Table
from screening import screening_counts


@pytest.fixture(scope="module")
def fit() -> BayesFit:
    return fit_bayes(screening_counts())


@pytest.fixture(scope="module")
def others(fit: BayesFit) -> dict[str, Any]:
    counts = fit.counts
    return {"posterior mode": fit_map(counts), "average": fit_average(counts), "median": fit_median(counts)}


# rates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [(0.5, 0.5), (2, 2), (50, 50), (1, 9)])
def test_the_prior_density_is_a_truncated_beta(shapes: tuple[float, float]) -> None:
    x = np.array([0.01, 0.2, 0.49])
    prior = Prior(shapes, shapes, shapes)
    law = beta(*shapes)
    np.testing.assert_allclose(prior_density(prior, "prevalence", x), law.pdf(x))
    np.testing.assert_allclose(prior_density(prior, "false_negative", x), law.pdf(x) / law.cdf(0.5))
    assert prior_density(prior, "false_positive", np.array([0.7])) == 0


def test_rates_are_drawn_as_the_fit_has_them(fit: BayesFit, others: dict[str, Any]) -> None:
    chart = plot.rates(fit, others, level=0.8)
    lower, upper = fit.interval(0.8)
    panels = drawing.specification(chart)["hconcat"]
    for panel, name in zip(chart.hconcat, NAMES, strict=True):
        shaded, prior, posterior = [layer.data.to_dict()["values"] for layer in panel.layer[:3]]
        np.testing.assert_allclose(
            (shaded[0]["x"], shaded[-1]["x"]), (getattr(lower, name), getattr(upper, name)), rtol=1e-5
        )
        for rows, density in (
            (posterior, fit.marginal(name).density),
            (prior, lambda x, k=name: prior_density(fit.prior, k, x)),
        ):
            x, y = (np.array([row[key] for row in rows]) for key in "xy")
            inside = slice(1, -1)
            top = panels[NAMES.index(name)]["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
            np.testing.assert_allclose(
                y[inside], np.minimum(density(x), top)[inside], rtol=2e-4, atol=1e-5 * top
            )
        mean, stars = (layer.data.to_dict()["values"] for layer in panel.layer[3:])
        assert mean[0]["x"] == pytest.approx(getattr(fit.rates, name), rel=1e-5)
        assert {star["method"]: star["x"] for star in stars} == {
            method: pytest.approx(getattr(other.rates, name), rel=1e-5) for method, other in others.items()
        }


@pytest.mark.parametrize(
    "counts",
    [
        CountTable([], []),
        CountTable([1, 1], [0, 1], weight=[70, 30]),
        CountTable([3, 4], [0, 0], weight=[40, 30]),
        CountTable([3], [3], weight=[50]),
        simulate_counts(Rates(0.3, 0.1, 0.15), 10**6, replicates=range(2, 7), rng=1),
    ],
)
@pytest.mark.slow
def test_a_pole_or_a_spike_does_not_squash_the_picture(counts: CountTable) -> None:
    fit = fit_bayes(counts)
    for panel, name in zip(drawing.specification(plot.rates(fit))["hconcat"], NAMES, strict=True):
        left, right = panel["layer"][0]["encoding"]["x"]["scale"]["domain"]
        bottom, top = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
        marginal = fit.marginal(name)
        low, middle, high = marginal.quantile(np.array([0.01, 0.5, 0.99]))
        assert 0 <= left <= low < high <= right <= 1
        assert bottom == 0
        assert top < 8 * marginal.density(middle)  # the typical density fills an eighth of the height or more


def test_an_undefined_estimate_is_left_out() -> None:
    counts = CountTable([3], [0], weight=[9])
    average = fit_average(counts)
    stars = drawing.rows_with(plot.rates(fit_bayes(counts), {"average": average}), "method")
    assert [len(rows) for rows in stars] == [1, 1]  # the false-negative rate has none


# scores -------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_fits(fit: BayesFit, others: dict[str, Any]) -> None:
    fits = {"Bayes": fit, **others}
    chart = plot.scores(fits, replicates=[0, 3, 5], level=0.8, thresholds=(0.2, 0.8))
    assert len(chart.concat) == 2
    for panel, n in zip(chart.concat, (3, 5), strict=True):
        shaded, intervals, lines, _ = (layer.data.to_dict()["values"] for layer in panel.layer)
        assert (shaded[0]["y"], shaded[0]["y2"]) == (0.2, 0.8)
        s = np.arange(n + 1)
        lower, upper = fit.score_interval(n, s, level=0.8)
        np.testing.assert_allclose([row["y"] for row in intervals], lower, rtol=1e-5)
        np.testing.assert_allclose([row["y2"] for row in intervals], upper, rtol=1e-5)
        wanted = np.concatenate([each.score(n, s) for each in fits.values()])
        np.testing.assert_allclose([row["y"] for row in lines], wanted, rtol=1e-5)
        assert [row["x"] for row in lines] == [*s.tolist()] * len(fits)


def test_the_panels_span_the_replicates_of_the_data() -> None:
    counts = CountTable(range(200), [n // 2 for n in range(200)])
    chart = plot.scores({"average": fit_average(counts)})
    titles = [panel["title"]["text"] for panel in drawing.specification(chart)["concat"]]
    assert len(titles) == 6
    assert (titles[0], titles[-1]) == ("1 replicate", "199 replicates")
    assert drawing.points(chart) < 1500


def test_scores_refuse_nothing_to_draw(fit: BayesFit) -> None:
    with pytest.raises(OptionError, match="at least one fit"):
        plot.scores({})
    with pytest.raises(OptionError, match="replicates"):
        plot.scores({"Bayes": fit}, replicates=[0])


# counts, populations, bias ------------------------------------------------------------------------


def test_counts_are_those_of_the_table(fit: BayesFit) -> None:
    table = predictive_counts(fit, rng=1, size=200)
    rows = [row for panel in drawing.rows_with(plot.counts(table), "observed") for row in panel]
    for name in ("observed", "mean", "lower", "upper"):
        np.testing.assert_allclose([row[name] for row in rows], table[name], rtol=1e-5)
    np.testing.assert_allclose([row["x"] + 0.5 for row in rows], table["s"])


def test_a_table_without_its_columns_is_refused() -> None:
    with pytest.raises(OptionError, match="none named s_end, observed"):
        plot.counts(Table({"n": [1], "s": [0], "mean": [1.0], "lower": [1.0], "upper": [1.0]}))
    with pytest.raises(OptionError, match="at least one row"):
        plot.bias(Table({"prevalence": [], "average": [], "median": []}))


def test_populations_keep_their_names_and_order() -> None:
    names = [*drawing.HOSTILE, 1, "1"]  # names that print alike stay apart
    tables = {name: CountTable([3, 3], [0, 3], weight=[40 + k, 9]) for k, name in enumerate(names)}
    fit = fit_populations(tables)
    chart = plot.populations(fit, level=0.8)
    prevalences, errors = (rows for rows in drawing.rows_with(chart, "middle"))
    lower, upper = fit.interval(0.8)
    assert [row["name"] for row in prevalences] == [str(name) for name in names]
    np.testing.assert_allclose([row["middle"] for row in prevalences], fit.rates.prevalence, rtol=1e-5)
    np.testing.assert_allclose([row["x"] for row in prevalences], lower.prevalence, rtol=1e-5)
    np.testing.assert_allclose(
        [row["x2"] for row in errors], [upper.false_positive, upper.false_negative], rtol=1e-5
    )


def test_many_populations_are_sorted_and_thinned() -> None:
    prevalence = np.random.default_rng(1).random(2000)
    many = Rates(prevalence, 0.1, 0.2)

    class Many(PopulationsFit):
        rates = many

        def __init__(self) -> None:
            """Without any data."""

        def __iter__(self) -> Any:
            return iter(range(prevalence.size))

        def interval(self, _: float) -> tuple[Rates, Rates]:
            return many, many

    rows = drawing.rows_with(plot.populations(Many()), "middle")[0]  # type: ignore[arg-type]
    middles = [row["middle"] for row in rows]
    assert len(middles) == 480
    assert middles == sorted(middles)
    np.testing.assert_allclose((middles[0], middles[-1]), (prevalence.min(), prevalence.max()), rtol=1e-5)


def bias_table(n: list[int], p: float, q: float) -> Table:
    theta = np.linspace(0, 1, 11)
    errors = {
        score: theory.prevalence_error(n, Rates(theta, p, q), score=score).bias for score in theory.SCORES
    }
    return Table({"prevalence": theta, **errors})


def test_bias_is_drawn_with_the_interval() -> None:
    table = bias_table([3, 5], 0.1, 0.2)
    low, high = theory.median_more_biased([3, 5], 0.1, 0.2)
    chart = plot.bias(table, (low, high))
    lines = drawing.rows_with(chart, "method")[0]
    np.testing.assert_allclose(
        [row["y"] for row in lines], [*table["average"], *table["median"]], rtol=1e-5, atol=1e-9
    )
    shaded = drawing.rows_with(chart, "x2")[0]
    np.testing.assert_allclose((shaded[0]["x"], shaded[0]["x2"]), (low, high), rtol=1e-5)


@pytest.mark.parametrize(("n", "p", "q"), [([3, 5], 0.1, 0.1), ([1, 2], 0.1, 0.2)])
def test_an_empty_or_undefined_interval_shades_nothing(n: list[int], p: float, q: float) -> None:
    chart = plot.bias(bias_table(n, p, q), theory.median_more_biased(n, p, q))
    assert drawing.rows_with(chart, "x2") == []


# all ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_are_data_and_every_figure_can_be_drawn(
    fit: BayesFit, capfd: pytest.CaptureFixture[str]
) -> None:
    average = fit_average(fit.counts)
    named = dict.fromkeys(drawing.HOSTILE, average)
    for chart in (plot.rates(fit, named), plot.scores({**named, "Bayes": fit}, replicates=[2, 3])):
        seen = {row["method"] for rows in drawing.rows_with(chart, "method") for row in rows}
        assert seen >= set(drawing.HOSTILE)
        svg = drawing.drawn(chart, capfd)
        for name in drawing.HOSTILE:
            assert not name or f">{escape(name, quote=False)}<" in svg
    populations = fit_populations(dict.fromkeys(drawing.HOSTILE[:3], fit.counts))
    assert ">x[0]<" in drawing.drawn(plot.populations(populations), capfd)
    drawing.drawn(plot.counts(predictive_counts(fit, rng=1, size=50)), capfd)
    drawing.drawn(plot.bias(bias_table([3, 5], 0.1, 0.2), (0.3, 0.4)), capfd)
