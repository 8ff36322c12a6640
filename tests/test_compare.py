"""Models compared: leave-one-out densities beside refits, ties, decisions that change, and the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import binreps as br
from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import Finding, Findings
from binreps.decide.compare import Comparison, Tried
from binreps.decide.verdict import FOUND, WORDS, reached
from binreps.fits.left_out import LeftOut, pareto, smoothed
from binreps.run.models import MODELS

WIDE = br.Prior(better_than_chance=True)
TABLES = {
    "even": br.CountTable([4] * 5, range(5), [20, 5, 3, 4, 12]),
    "two replicates": br.CountTable([2, 2, 2], [0, 1, 2], [5, 3, 2]),
    "known": br.CountTable(
        [6, 6, 5, 3, 3, 1], [0, 6, 2, 1, 3, 1], [3, 2, 1, 2, 2, 4], [None] * 3 + [1, 0, None]
    ),
    "one of each": br.CountTable([3, 5, 4], [0, 5, 2]),
    "many": br.CountTable([3] * 4, range(4), [60_000, 9000, 4000, 27_000]),
}
FITS = {
    "common": br.fit_bayes,
    "better-than-chance": lambda counts: br.fit_bayes(counts, WIDE),
    "correlated": br.fit_overdispersed,
}
SPREAD = br.CountTable([6] * 7, range(7), weight=[260, 60, 40, 30, 30, 50, 130])


def without(counts: br.CountTable, cell: int) -> br.CountTable:
    """All but one individual of a cell."""
    weight = counts.weight.copy()
    weight[cell] -= 1
    kept = weight > 0
    return br.CountTable(counts.n[kept], counts.s[kept], weight[kept], counts.known[kept])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("model", ["common", "better-than-chance"])
def test_a_density_is_the_ratio_of_evidences_with_and_without_the_individual(table: str, model: str) -> None:
    counts, make = TABLES[table], FITS[model]
    fit = make(counts)
    found = fit.left_out()
    refitted = [fit.log_evidence - make(without(counts, i)).log_evidence for i in range(len(counts))]
    np.testing.assert_allclose(found.density, refitted, atol=2e-7)  # the last digits of an evidence near −10⁵
    assert found.total == pytest.approx(float(counts.weight @ found.density))
    assert np.all(np.isnan(found.shape))


@pytest.mark.slow
@pytest.mark.parametrize("table", ["even", "known"])
def test_so_it_is_where_replicates_are_correlated(table: str) -> None:
    counts = TABLES[table]
    fit = br.fit_overdispersed(counts)
    refitted = [
        fit.log_evidence - br.fit_overdispersed(without(counts, i)).log_evidence for i in range(len(counts))
    ]
    np.testing.assert_allclose(fit.left_out().density, refitted, atol=1e-6)


@pytest.mark.slow
def test_so_it_is_with_populations() -> None:
    tables = {
        "a": br.CountTable([3] * 4, range(4), [9, 3, 2, 4]),
        "b": br.CountTable([3] * 4, range(4), [2, 1, 3, 9]),
    }
    fit = br.fit_populations(tables)
    refitted = [
        fit.log_evidence - br.fit_populations({**tables, name: without(tables[name], i)}).log_evidence
        for name in tables
        for i in range(4)
    ]
    np.testing.assert_allclose(fit.left_out().density, refitted, atol=1e-8)


@pytest.mark.slow
def test_so_it_is_with_covariates_within_the_stated_error() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40).round(2)
    s = rng.binomial(4, np.where(rng.random(40) < 1 / (1 + np.exp(-1.5 * x)), 0.85, 0.1))
    records = br.CovariateTable(np.full(40, 4), s, {"x": x})
    fit = br.fit_covariates(records)
    found = fit.left_out()
    for i in range(0, len(records), 10):
        weight = records.weight.copy()
        keep = np.arange(len(records)) != i
        some = br.CovariateTable.__new__(br.CovariateTable)  # the others, on the scale of all
        parts = {name: getattr(records, name)[keep] for name in ("n", "s", "weight", "known")}
        parts["values"] = tuple(column[keep] for column in records.values)
        parts |= {name: getattr(records, name) for name in ("covariates", "mean", "sd", "formula")}
        for name, value in parts.items():
            object.__setattr__(some, name, value)
        assert weight[i] == 1
        other = br.fit_covariates(some)
        both = found.error[i] + fit.error + other.error
        assert abs(found.density[i] - (fit.log_evidence - other.log_evidence)) < both


@pytest.mark.slow
def test_so_it_is_with_sources_by_the_prediction_of_a_fit_without_the_individual() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random((40, 1)) < 0.4
    said = np.where(rng.random((40, 4)) < [0.9, 0.8, 0.85, 0.65], truth, ~truth).astype(int)
    fit = br.fit_sources(br.Readings.wide(said, list("abcd")), rng=1, tol=0.02)
    found = fit.left_out()
    assert found.doubtful == 0
    for i in (0, 7, 19):
        others = br.fit_sources(br.Readings.wide(np.delete(said, i, axis=0), list("abcd")), rng=2, tol=0.02)
        one = br.Readings.wide(said[i : i + 1], list("abcd"))
        expected = float(np.logaddexp(*others.posterior.log_marginal(one))[0])
        density = dict(zip(map(tuple, _patterns(fit.readings)), found.density, strict=True))
        assert density[tuple(said[i])] == pytest.approx(expected, abs=0.03)


def _patterns(readings: br.Readings) -> np.ndarray:
    """The answers of four sources in each record."""
    from binreps.fits.sampled.posterior import design

    return design(readings).toarray()[:, 1::2].astype(int)


def test_the_tail_of_a_pareto_law_is_found() -> None:
    rng = np.random.default_rng(2)
    for shape in (0.1, 0.5, 0.9):
        draws = np.sort((rng.random((40, 400)) ** -shape - 1) / shape, axis=1)
        k, scale = pareto(draws)
        assert abs(k.mean() - shape) < 0.05
        assert abs(scale.mean() - 1) < 0.1


def test_smoothed_draws_give_the_harmonic_mean_and_say_when_they_do_not() -> None:
    rng = np.random.default_rng(3)
    density, shape = smoothed(np.log(rng.beta(6, 3, size=(20, 4000))))  # E[1/L] = 8/5
    np.testing.assert_allclose(density, np.log(5 / 8), atol=0.02)
    assert shape.max() < 0.7
    _, heavy = smoothed(np.log(rng.beta(1.05, 3, size=(5, 4000))))  # 1/L has hardly a mean
    assert heavy.min() > 0.7
    flat, none = smoothed(np.full((1, 1000), -2.0))
    assert flat.tolist() == [-2.0]
    assert none.tolist() == [-np.inf]


def made(model: str, density: list[float], weight: list[int] | None = None) -> Tried:
    """A model with given densities for individuals tested once each, by number of replicates."""
    size = len(density)
    n, many = np.arange(1, size + 1), np.array(weight or [1] * size)
    counts = br.CountTable(n, np.zeros(size, int), many)
    zeros = np.zeros(size)
    left = LeftOut(
        n, zeros.astype(int), np.full(size, -1), many, np.array(density), zeros, zeros * np.nan, 0.0
    )
    return Tried(model, br.fit_bayes(counts), left, 0.0)


@pytest.mark.parametrize(
    ("better", "preferred"),
    [
        ([3.9, 0, 0, 0], "common"),  # below 4
        ([1.1, 1.1, 1.1, 1.1], "correlated"),  # 4.4 with no spread
        ([10, -5, -4, 4], "common"),  # 5, and no more than its standard error
    ],
)
def test_a_small_or_an_unsure_difference_is_a_tie_and_the_simpler_model_wins(better, preferred: str) -> None:
    models = (made("common", [-9.0] * 4), made("correlated", list(np.array(better) - 9.0)))
    comparison = Comparison(models, br.Loss())
    assert comparison.preferred == preferred
    found = comparison.difference("correlated", "common")
    assert found.value == pytest.approx(sum(better))
    assert found.se == pytest.approx(2 * np.std(better, ddof=1))


def test_a_model_that_is_beaten_by_any_other_is_refuted() -> None:
    models = [
        made(name, [value] * 50)
        for name, value in (("common", -3.0), ("correlated", -2.95), ("sources", -2.8))
    ]
    assert Comparison(tuple(models), br.Loss()).preferred == "sources"


def test_the_table_says_what_was_tried_and_who_gets_another_answer() -> None:
    comparison = br.compare(SPREAD)
    assert comparison.models == ("common", "better-than-chance", "correlated")
    assert comparison.preferred == "correlated"
    table = comparison.table()
    assert table["density"][2] - table["density"][0] == pytest.approx(table["difference"][2])
    assert "over-dispersion" in table["against"][0]
    assert table["outright"] == (False, False, True)
    plain, other = comparison["common"].fit, comparison["correlated"].fit
    loss = br.Loss()
    expected = sum(
        int(weight)
        for s, weight in zip(SPREAD.s, SPREAD.weight, strict=True)
        if loss.classify(plain.score(6, s)) != loss.classify(other.score(6, s))
    )
    assert (
        comparison.changed("correlated") == expected == sum(comparison.changes("correlated")["individuals"])
    )
    verdict = comparison.verdict
    assert (verdict.light, verdict.reason, verdict.model) == ("amber", "other-model", "correlated")
    assert verdict.action == Action("model", "correlated")
    assert f"{expected} of 600 answers" in verdict.sentence


def test_a_model_that_its_checks_refute_gives_way_to_one_that_ties_and_fits() -> None:
    plain, other = made("common", [-9.0] * 4), made("correlated", [-8.0] * 4)
    refuted = replace(plain, check=lambda _: warning("over-dispersion"))
    comparison = Comparison((refuted, other), br.Loss())
    assert (comparison.preferred, comparison.chosen) == ("common", "correlated")
    assert comparison.verdict.light == "amber"
    both = Comparison((refuted, replace(other, check=lambda _: warning("count-table"))), br.Loss())
    assert both.chosen == "common"
    assert both.verdict.light == "red"


def test_a_region_that_is_chosen_is_that_of_every_model() -> None:
    comparison = br.compare(TABLES["even"], prior=WIDE)
    assert comparison.models == ("better-than-chance", "correlated")


def warning(name: str) -> Findings:
    """One warning."""
    return Findings((Finding(name, 1, "A sentence.", "An advice."),))


@pytest.mark.parametrize(
    ("findings", "model", "simplest", "light"),
    [
        (Findings(), "common", "common", "green"),
        (Findings(), "common", None, "green"),
        (Findings(), "correlated", "common", "amber"),
        (warning("not-identifiable"), "common", "common", "red"),
        (warning("over-dispersion"), "common", None, "amber"),
        (warning("over-dispersion"), "common", "common", "red"),
        (warning("informative-replication"), "common", "common", "amber"),
    ],
)
def test_each_light_has_its_reason(findings: Findings, model: str, simplest: str | None, light: str) -> None:
    numbers = {"individuals": 100.0, "changed": 7.0, "models": 3.0}
    verdict = reached(findings, model, numbers, simplest)
    assert verdict.light == light
    assert str(verdict).startswith(WORDS[light])


def test_every_model_has_a_sentence_for_the_verdict() -> None:
    assert set(FOUND) == set(MODELS)


@pytest.mark.slow
def test_models_that_see_different_things_are_compared_through_the_simplest() -> None:
    rng = np.random.default_rng(4)
    rows: dict[str, list[object]] = {"who": [], "reader": [], "result": [], "marker": []}
    for i in range(300):
        positive = rng.random() < 0.4
        marker = float(rng.normal() + 1.5 * positive)
        for j, right in enumerate((0.95, 0.9, 0.85, 0.6)):
            said = positive if rng.random() < right else not positive
            for name, value in zip(rows, (f"p{i}", f"r{j}", int(said), marker), strict=True):
                rows[name].append(value)
    table = br.Table(rows)
    by = {"individual": "who", "result": "result", "source": "reader", "covariates": ["marker"]}
    comparison = br.compare(table, **by)
    assert {"sources", "covariates"} <= set(comparison.models)
    pair = comparison.difference("sources", "covariates")
    one, two = (comparison.difference(name, "common") for name in ("sources", "covariates"))
    assert pair.value == pytest.approx(one.value - two.value)
    assert pair.se == pytest.approx(one.se + two.se)


def test_the_correlated_model_of_very_many_cells_is_not_tried_unasked() -> None:
    n = [n for n in range(1, 21) for _ in range(n + 1)]
    s = [s for n in range(1, 21) for s in range(n + 1)]
    found = br.compare(br.CountTable(n, s))
    assert "correlated" not in found.models
    assert "up to 200 cells (n, s), as it takes minutes beyond, got 230" in found.refused["correlated"]
    assert "correlated: it is compared for up to 200 cells" in str(found)
