"""When a fit with covariates should not be believed: what `check` says, and how often it is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import betabinom, binom

from binreps import CovariateTable, Loss, check, fit_covariates
from binreps.decide.checks.covariates import Results, covariates_findings, looks_of
from covariate_studies import drawn_study, screening

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.covariate_trials import screened


def findings(table: CovariateTable, **how: object) -> dict[str, str]:
    fit = fit_covariates(table, tol=0.05)
    return {one.name: one.sentence for one in check(fit, **how)}


# --- design and prior ----------------------------------------------------------------------------------


def test_separation_is_named() -> None:
    x = np.linspace(-1, 1, 60)
    assert "separation" in findings(CovariateTable([5] * 60, np.where(x > 0, 5, 0), {"dose": x}))
    columns, _ = screening(200)
    assert "separation" not in findings(CovariateTable(columns["n"], columns["s"], {"age": columns["age"]}))


def test_a_level_without_anyone_clearly_positive_is_named() -> None:
    columns, _ = screening(200)
    site = columns["site"].copy()
    s = np.where(site == "west", 0, columns["s"])
    found = findings(CovariateTable(np.full(200, 3), s, {"age": columns["age"], "site": site}))
    assert "site=west" in found["separated-level"]


def test_collinear_columns_are_named() -> None:
    columns, _ = screening(150)
    age, other = columns["age"], np.random.default_rng(1).standard_normal(150)
    table = CovariateTable(columns["n"], columns["s"], {"age": age, "months": 12 * age, "z": other})
    assert "age and months follow" in findings(table)["collinear-covariates"]
    assert np.isfinite(fit_covariates(table, tol=0.05).log_evidence)


def test_a_level_that_follows_from_another_column_is_named() -> None:
    """A site whose patients are all of one ward: the columns of two categories add up."""
    columns, _ = screening(150)
    ward = np.where(columns["site"] == "west", "w1", "w2")
    table = CovariateTable(columns["n"], columns["s"], {"site": columns["site"], "ward": ward})
    said = findings(table)["collinear-covariates"]
    assert "site=west" in said
    assert "ward=w1" in said
    assert "site=south" not in said


def test_one_replicate_is_named() -> None:
    columns, _ = screening(200)
    table = CovariateTable([1] * 200, (columns["s"] > 0).astype(int), {"age": columns["age"]})
    fit = fit_covariates(table, tol=0.05)
    assert "one-replicate" in {note.id for note in fit.notes}
    assert not fit.identifiable
    assert "one-replicate" in check(fit)
    two = CovariateTable([2] * 200, columns["s"].clip(0, 2), {"age": columns["age"]})
    assert fit_covariates(two, tol=0.05).identifiable


def test_a_replicate_in_disguise_is_named() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(200) < 0.4
    results = rng.random((200, 3)) < np.where(truth, 0.85, 0.1)[:, None]
    rest = CovariateTable([3] * 200, results.sum(axis=1), {"first": results[:, 0]})
    assert "'first'" in findings(rest)["covariate-like-a-result"]
    sex = CovariateTable([3] * 200, results.sum(axis=1), {"sex": rng.choice(["f", "m"], 200)})
    assert "covariate-like-a-result" not in findings(sex)


def test_what_rests_on_the_prior_is_named() -> None:
    found = findings(CovariateTable([1, 1, 1], [0, 1, 1], {"x": [0.0, 1.0, 3.0]}))
    assert "slope of x" in found["rests-on-prior"]
    assert "false-positive rate" in found["rests-on-prior"]


def test_a_constant_column_is_named() -> None:
    columns, _ = screening(60)
    table = CovariateTable(columns["n"], columns["s"], {"age": columns["age"], "year": [2020] * 60})
    assert "year is the same for everyone" in findings(table)["constant-covariate"]


# --- what the model assumes ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "name", "words"),
    [
        ({"bent": 0.6}, "bent-covariate", "straight with age: it is higher at both ends"),
        ({"bent": -0.6}, "bent-covariate", "straight with age: it is lower at both ends"),
        ({"correlation": 0.25}, "over-dispersion", "agree more than"),
        (
            {"more_false": 0.25},
            "errors-by-covariate",
            "it is higher for individuals with site=b",
        ),
    ],
)
def test_what_is_not_as_the_model_says_is_found(how: dict, name: str, words: str) -> None:
    found = findings(screened(np.random.default_rng(4), 600, **how))
    assert words in found[name]


def test_replicates_until_positive_are_found() -> None:
    rng = np.random.default_rng(5)
    table = screened(rng, 500, replicates=(2,))
    more = np.where(table.s > 0, rng.integers(1, 4, table.n.size), 0)  # who had a positive is measured again
    again = rng.binomial(more, np.where(rng.random(table.n.size) < 0.8, 0.85, 0.1))
    covariates = {name: table.column(name) for name in table.names}
    found = findings(CovariateTable(table.n + more, table.s + again, covariates))
    assert "more often positive" in found["informative-replication"]


def test_a_group_that_does_not_fit_is_found() -> None:
    """Results of one number of replicates that come from nowhere: half all negative, half all positive."""
    table = screened(np.random.default_rng(6), 600)
    s = np.where(table.n == 4, np.where(np.arange(table.n.size) % 2, 4, 0), table.s)
    covariates = {name: table.column(name) for name in table.names}
    said = findings(CovariateTable(table.n, s, covariates))["count-table"]
    assert "with n = 4" in said


@pytest.mark.slow
def test_false_alarms_are_rare_on_data_from_the_model() -> None:
    """At most 5 % in the long run; `python -m benchmarks.covariate_trials alarms` tries hundreds."""
    rng, warned = np.random.default_rng(7), 0
    for _ in range(20):
        fit = fit_covariates(screened(rng, 150), tol=0.1)
        warned += any(one.severity == "warning" for one in covariates_findings(fit, None, 0.05))
    assert warned <= binom(20, 0.05).ppf(0.99)


def test_the_largest_tables_are_judged_by_some_rows() -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal(25_000)
    s = rng.binomial(3, np.where(rng.random(x.size) < expit(x - 1 + 0.3 * x**2), 0.85, 0.1))
    fit = fit_covariates(CovariateTable(np.full(x.size, 3), s, {"x": x}), tol=0.05)
    assert "bent-covariate" in {one.name for one in covariates_findings(fit, None, 0.05)}


def test_nobody_and_known_statuses_are_legal() -> None:
    assert "no-data" in findings(CovariateTable([], [], {"x": []}))
    columns, truth = screening(80)
    table = CovariateTable(columns["n"], columns["s"], {"age": columns["age"]}, known=truth)
    assert "count-table" not in findings(table, loss=Loss(inconclusive=0.2))


# --- oracles for the numbers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    return fit_covariates(drawn_study(np.random.default_rng(9), 80, 2, 5)[0], tol=0.05)


def test_derivatives_are_those_of_the_chance_of_each_result(small) -> None:
    """By finite differences of the mixture, in each direction that is tested."""
    results, step = Results(small, small.records), 1e-5
    at, mass = small.cloud.parameters, small.cloud.points.masses[0]
    p, q = float(at.p @ mass), float(at.q @ mass)
    eta = results.x @ (at.beta @ mass) + at.alpha @ mass
    x, n, s = results.x[:, 0], results.n, results.s

    def log_chance(up: float = 0.0, of_p: float = 0.0, of_q: float = 0.0, rho: float = 0.0) -> np.ndarray:
        theta, a, b = expit(eta + up * x**2), p + of_p * x, 1 - q - of_q * x
        if rho:
            k = (1 - rho) / rho
            classes = [betabinom(n, rate * k, (1 - rate) * k).pmf(s) for rate in (a, b)]
        else:
            classes = [binom(n, rate).pmf(s) for rate in (a, b)]
        return np.log((1 - theta) * classes[0] + theta * classes[1])

    weight = np.repeat(small.records.weight, small.records.n + 1)
    assert_allclose(results.expected, weight * np.exp(log_chance()), rtol=1e-9)
    for name, own in (("up", results.risen * x**2), ("of_p", results.of_p * x), ("of_q", results.of_q * x)):
        ahead, behind = log_chance(**{name: step}), log_chance(**{name: -step})
        assert_allclose((ahead - behind) / (2 * step), own, rtol=1e-4, atol=1e-6)
    slope = (4 * log_chance(rho=step) - log_chance(rho=2 * step) - 3 * log_chance()) / (2 * step)
    assert_allclose(slope, results.pairs, rtol=1e-3, atol=1e-3)


def test_looks_expect_what_new_data_show(small) -> None:
    """Studies drawn from the posterior have, on average, the numbers that the looks expect."""
    table, rng = small.records, np.random.default_rng(10)
    drawn = small.parameter_draws(2000, 11)
    slopes = np.array([drawn[term] for term in table.terms]) * table.sd[:, None]
    theta = expit(table.design() @ slopes + drawn["intercept"])
    rate = np.where(rng.random(theta.shape) < theta, 1 - drawn["false_negative"], drawn["false_positive"])
    s = rng.binomial(table.n[:, None], rate)
    look = next(one for one in looks_of(small, table) if "n = 3 those mixed" in one.words)
    group = table.n == 3
    mixed = table.weight[group] @ ((s > 0) & (s < 3))[group]
    assert look.expected == pytest.approx(mixed.mean(), abs=3 * mixed.std() / np.sqrt(200))  # of draws
    assert look.observed == table.weight[group & (table.s > 0) & (table.s < 3)].sum()
