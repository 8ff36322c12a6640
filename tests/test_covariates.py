"""The fit with covariates: reference numbers, limits that are known, and sentences for what is wrong."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit, logsumexp, ndtr, ndtri, sici

from binreps import (
    CountTable,
    CovariateTable,
    DataError,
    Loss,
    OptionError,
    Prior,
    decision_table,
    fit_bayes,
    fit_covariates,
    stopping_table,
)
from binreps.fits.points.axes import Axis, ErrorRates, beta_axis
from binreps.fits.points.cloud import Cloud, make_cloud
from binreps.fits.points.density import STRAIGHT, Smooth
from binreps.fits.points.modes import find_modes
from binreps.fits.points.rule import Mixture, Rule
from binreps.fits.points.sobol import Scrambled
from binreps.fits.points.target import Target
from binreps.fits.points.walk import walk
from binreps.priors import quantile
from covariate_studies import drawn_study, golden, screening

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.covariate_trials import FAMILIES, away, covered, numbers_of, particles, tried

REGIONS = [Prior(), Prior(better_than_chance=True)]


def step(t: np.ndarray) -> np.ndarray:
    """∫ sinc up to t: what a lattice point adds to the distribution function t spacings beyond it."""
    return 0.5 + sici(np.pi * t)[0] / np.pi


def screened(size: int = 300, **more: object) -> CovariateTable:
    columns, _ = screening(size)
    return CovariateTable(
        columns["n"], columns["s"], {"age": columns["age"], "site": columns["site"]}, **more
    )


@pytest.fixture(scope="module")
def fit():
    return fit_covariates(screened(), tol=0.02)


# --- the reference numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "within"), [("N50d1", 2e-3), ("N500d5", 3e-3), ("N1e4d10", 1e-3)])
def test_reference_numbers_means_sds_evidence_and_scores(name: str, within: float) -> None:
    case, table, rows = golden(name)
    fit = fit_covariates(table)
    at = fit.cloud.parameters
    mean, sd, _ = fit.cloud.moments(np.vstack([at.alpha, at.beta, at.p, at.q]))
    assert np.max(np.abs(mean - case["mean"]) / case["sd"]) < within
    assert np.max(np.abs(sd / case["sd"] - 1)) < within
    assert fit.log_evidence == pytest.approx(case["log_evidence"], abs=within)
    n, s, *x = rows[:10].T
    scores = fit.score(n, s, covariates={f"x{j}": column for j, column in enumerate(x)})
    assert_allclose(scores, case["scores_first10"], atol=within)


def test_quantiles_of_the_reference_study_by_plain_sums() -> None:
    """Every factor written out, on a lattice of (α, β, p, q): the reference's own means, sds and evidence,
    to many digits, and the quantiles that belong to them."""
    case, table, rows = golden("N50d1")
    n, s, x = rows.T
    alpha, beta, rate = np.linspace(-3, 3, 25), np.linspace(-1.5, 7.5, 25), (np.arange(30) + 0.5) / 60
    up, down = (
        (1 - rate) ** s[:, None] * rate ** (n - s)[:, None],
        rate ** s[:, None] * (1 - rate) ** (n - s)[:, None],
    )
    theta = expit(alpha[:, None, None] + beta[:, None] * x)  # (α, β, individual)
    mass = np.ones((alpha.size, beta.size, rate.size, rate.size))
    for i in range(n.size):
        share = theta[..., i, None, None]
        mass *= (share * up[i] + (1 - share) * down[i][:, None]) * 50  # no underflow
    at_p = 12 * rate * (1 - rate)  # Beta(2, 2) below one half
    prior = np.sqrt(expit(alpha) * expit(-alpha)) / np.pi
    normal = np.exp(-(beta**2) / 4.5) / (1.5 * np.sqrt(2 * np.pi))
    mass *= prior[:, None, None, None] * normal[:, None, None] * at_p[:, None] * at_p
    volume = (alpha[1] - alpha[0]) * (beta[1] - beta[0]) / 60**2
    assert np.log(mass.sum() * volume) - n.size * np.log(50) == pytest.approx(case["log_evidence"], abs=1e-4)
    fit = fit_covariates(table)
    at, masses = fit.cloud.parameters, fit.cloud.points.masses
    laws = (
        Smooth(at.alpha, masses, STRAIGHT),
        fit.slope("x0"),
        fit.marginal("false_positive"),
        fit.marginal("false_negative"),
    )
    for k, (law, axis) in enumerate(zip(laws, (alpha, beta, rate, rate), strict=True)):
        own = mass.sum(axis=tuple({0, 1, 2, 3} - {k})) / mass.sum()
        mean = own @ axis
        assert mean == pytest.approx(case["mean"][k], abs=1e-4 * case["sd"][k])
        assert np.sqrt(own @ (axis - mean) ** 2) == pytest.approx(case["sd"][k], rel=1e-4)
        reached = step((law.quantile([0.05, 0.5, 0.95])[:, None] - axis) / (axis[1] - axis[0])) @ own
        assert_allclose(reached, [0.05, 0.5, 0.95], atol=2e-3)


@pytest.mark.parametrize("prior", REGIONS)
def test_intervals_against_a_lattice_in_four_dimensions(prior: Prior) -> None:
    """Every parameter of a small study with one covariate, by brute force."""
    table, _ = drawn_study(np.random.default_rng(8), 30, 1, 4)
    fit = fit_covariates(table, prior)
    target = fit.cloud.target
    mean = fit.cloud.points.v @ fit.cloud.points.masses[0]
    sd = np.sqrt((fit.cloud.points.v - mean[:, None]) ** 2 @ fit.cloud.points.masses[0])
    axes = [np.linspace(m - 5 * s, m + 5 * s, 26) for m, s in zip(mean, sd, strict=True)]
    v = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    log_density, theta = target.evaluate(v)
    mass = np.exp(log_density - log_density.max())
    spacing = np.prod([axis[1] - axis[0] for axis in axes])
    assert fit.log_evidence == pytest.approx(logsumexp(log_density) + np.log(spacing), abs=3e-3)
    at = target.parameters(v)
    for name, values in (("prevalence", theta), ("false_positive", at.p), ("false_negative", at.q)):
        expected = float(mass @ values / mass.sum())
        spread = float(np.sqrt(mass @ (values - expected) ** 2 / mass.sum()))
        assert getattr(fit.rates, name) == pytest.approx(expected, abs=5e-3 * spread)
        assert getattr(fit.sd, name) == pytest.approx(spread, rel=5e-3)
    planes = mass.reshape(26, 26, 26, 26)
    slope, p = planes.sum(axis=(0, 2, 3)), planes.sum(axis=(0, 1, 3))
    for k, law, plane in ((1, fit.slope("x0"), slope), (2, fit.marginal("false_positive"), p)):
        ends = law.quantile(tails := np.array([0.05, 0.25, 0.5, 0.75, 0.95]))
        scores = (
            ends * table.sd[0] / 1.5 if k == 1 else target.errors.axes[0].v(logit(ends / target.errors.end))
        )
        steps = step((scores[:, None] - axes[k]) / (axes[k][1] - axes[k][0]))  # exact between planes
        assert_allclose(steps @ plane / plane.sum(), tails, atol=2e-3)


# --- known limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [*REGIONS, Prior((2, 5), (2, 9), (3, 4), better_than_chance=True)])
@pytest.mark.parametrize("known", [None, [1, 0, None, None, None, 0]])
def test_without_columns_it_is_fit_bayes(prior: Prior, known: list | None) -> None:
    cells = ([4, 4, 4, 4, 3, 2], [0, 1, 3, 4, 2, 1], [40, 12, 9, 20, 5, 3], known)
    fit, exact = (
        fit_covariates(CovariateTable(*cells[:2], {}, *cells[2:]), prior),
        fit_bayes(CountTable(*cells), prior),
    )
    assert fit.error < 1e-2
    assert fit.log_evidence == pytest.approx(exact.log_evidence, abs=fit.error)
    sd = exact.posterior.sd
    assert_allclose(fit.posterior.mean, exact.posterior.mean, atol=2 * fit.error * sd.max())
    assert np.max(np.abs(fit.posterior.mean - exact.posterior.mean) / sd) < fit.error
    assert np.max(np.abs(fit.posterior.sd / sd - 1)) < 2 * fit.error
    for n, s in ((0, 0), (4, 2), (7, 3)):
        assert fit.score(n, s) == pytest.approx(exact.score(n, s), abs=2 * fit.score_error(n, s) + 1e-4)
        assert fit.predict(n, s) == pytest.approx(exact.predict(n, s), abs=2 * fit.predict_error(n, s) + 1e-4)
        ends, error = fit.predict_interval(n, s), fit.predict_interval_error(n, s)
        assert_allclose(ends, exact.predict_interval(n, s), atol=2 * error + 1e-3)
    lower, upper = fit.interval()
    assert_allclose([*lower, *upper], [*exact.interval()[0], *exact.interval()[1]], atol=0.02 * sd.max())


@pytest.mark.parametrize("prior", REGIONS)
def test_nobody_is_the_prior_and_one_individual_is_legal(prior: Prior) -> None:
    nobody = fit_covariates(CovariateTable([], [], {"age": []}), prior)
    assert nobody.log_evidence == pytest.approx(0.0, abs=1e-4)
    exact = fit_bayes(CountTable([], []), prior)
    assert_allclose([*nobody.rates], [*exact.rates], atol=2e-3)
    assert nobody.slope("age").quantile(0.95) == pytest.approx(1.5 * ndtri(0.95), abs=0.02)
    one = fit_covariates(CovariateTable([3], [2], {"age": [40.0]}), prior)
    alone = fit_bayes(CountTable([3], [2]), prior)
    assert one.log_evidence == pytest.approx(alone.log_evidence, abs=5e-3)
    assert_allclose([*one.rates], [*alone.rates], atol=2e-3)
    assert "constant-covariate" in {note.id for note in one.notes}


def test_weights_and_order_do_not_matter() -> None:
    columns, _ = screening(200)
    age = columns["age"] // 10
    merged = CovariateTable(columns["n"], columns["s"], {"age": age, "site": columns["site"]})
    order = np.random.default_rng(1).permutation(200)
    shuffled = CovariateTable(
        columns["n"][order], columns["s"][order], {"age": age[order], "site": columns["site"][order]}
    )
    assert merged == shuffled
    assert hash(merged) == hash(shuffled)
    assert len(merged) < 200 == merged.individuals
    assert fit_covariates(merged, tol=0.01) == fit_covariates(shuffled, tol=0.01)
    assert fit_covariates(merged, tol=0.01).rates == fit_covariates(shuffled, tol=0.01).rates


def test_repeated_rows_are_as_good_as_weights() -> None:
    n, s, x, weight = (
        np.array([3, 3, 2, 4]),
        np.array([0, 3, 1, 4]),
        np.array([1.0, 5.0, 2.0, 4.0]),
        [30, 12, 9, 20],
    )
    once = CovariateTable(n, s, {"x": x}, weight)
    many = CovariateTable(*(np.repeat(c, weight) for c in (n, s)), {"x": np.repeat(x, weight)})
    assert once == many
    apart = CovariateTable(  # the same up to differences that nothing depends on: not merged
        *(np.repeat(c, weight) for c in (n, s)), {"x": np.repeat(x, weight) + 1e-9 * np.arange(71)}
    )
    assert len(apart) == 71
    first, second = fit_covariates(once), fit_covariates(apart)
    assert_allclose([*first.rates], [*second.rates], atol=1e-6)
    assert first.log_evidence == pytest.approx(second.log_evidence, abs=1e-6)


def test_a_shift_or_scale_of_a_column_changes_only_its_unit() -> None:
    columns, _ = screening(150)
    years = CovariateTable(columns["n"], columns["s"], {"age": columns["age"]})
    other = CovariateTable(columns["n"], columns["s"], {"age": 2020.0 * 365 + 365.25 * columns["age"]})
    first, second = fit_covariates(years), fit_covariates(other)
    assert first.log_evidence == pytest.approx(second.log_evidence, abs=1e-8)
    one, two = (fit.odds_ratios(per={"age": step}) for fit, step in ((first, 10), (second, 3652.5)))
    assert_allclose(one["estimate"] + one["upper"], two["estimate"] + two["upper"], rtol=1e-6)


def test_known_statuses_inform_and_are_clamped() -> None:
    columns, truth = screening(120)
    known = np.where(np.arange(120) < 80, truth, np.nan)
    table = CovariateTable(columns["n"], columns["s"], {"age": columns["age"]}, known=known)
    fit, blind = fit_covariates(table, tol=0.02), fit_covariates(table.forget_known(), tol=0.02)
    assert fit.sd.false_positive < blind.sd.false_positive
    everyone = CovariateTable(columns["n"], columns["s"], {"age": columns["age"]}, known=truth)
    assert fit_covariates(everyone, tol=0.02).sd.prevalence < fit.sd.prevalence
    drawn = fit_covariates(everyone, tol=0.05).draw_positives(20, 1)
    assert np.all(drawn.sum(axis=1) == truth.sum())


def test_many_replicates_and_large_slopes_overflow_nothing() -> None:
    with np.errstate(over="raise", invalid="raise"):
        x = np.repeat([0.0, 1.0], 30)
        fit = fit_covariates(CovariateTable([2000] * 60, np.where(x > 0, 1900, 20), {"x": x * 1e12}))
    assert fit.score(2000, 1900, covariates={"x": 1e12}) > 1 - 1e-9
    assert fit.rates.false_positive == pytest.approx(0.01, rel=0.05)


# --- the parts of the engine ---------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [(0.5, 0.5), (2.0, 2.0), (50.0, 50.0), (0.05, 3.0), (1e6, 2e6)])
def test_an_axis_is_the_normal_score_of_its_prior(shapes: tuple[float, float]) -> None:
    axis, v = beta_axis(shapes), np.linspace(-5, 3, 9)
    expected = quantile(Prior(prevalence=shapes), "prevalence", ndtr(v))
    assert_allclose(expit(axis.x(v)), expected, rtol=1e-6)
    assert_allclose(axis.v(axis.x(v)), v, atol=1e-9)
    step = 1e-5
    assert_allclose((axis.x(v + step) - axis.x(v - step)) / (2 * step), axis.slope(v), rtol=1e-5)


@pytest.mark.parametrize("prior", [*REGIONS, Prior((1, 1), (3, 4), (2, 5), better_than_chance=True)])
def test_error_rates_have_their_prior(prior: Prior) -> None:
    errors = ErrorRates(prior)
    v = np.linspace(-3, 3, 7)
    assert_allclose(errors.at(v, 0.0)[0], quantile(prior, "false_positive", ndtr(v)), atol=1e-7)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for first in (-2.0, 0.0, 1.5):
        assert weights @ np.exp(errors.log_excess(first, nodes)) / weights.sum() == pytest.approx(1, abs=1e-6)


def test_an_axis_of_any_density() -> None:
    axis = Axis(lambda x: -(x**2) / 2)
    assert_allclose(axis.x(np.array([-3.0, 0.0, 2.0])), [-3, 0, 2], atol=1e-9)


@pytest.mark.parametrize("prior", REGIONS)
@pytest.mark.parametrize("known", [False, True])
def test_derivatives_are_those_of_the_density(prior: Prior, known: bool) -> None:
    rng = np.random.default_rng(2)
    table, _ = drawn_study(rng, 40, 3, 5)
    if known:
        statuses = np.where(rng.random(40) < 0.5, np.nan, 1.0 * (table.s > table.n / 2))
        table = CovariateTable(table.n, table.s, {n: table.column(n) for n in table.names}, known=statuses)
    target = Target(table, prior, 1.5)
    v, step = 0.5 * rng.standard_normal(target.dimension), 1e-4
    value, gradient, hessian = target.derivatives(v)
    assert value == pytest.approx(float(target.evaluate(v[:, None]).log_density[0]), abs=1e-9)
    ahead, behind = ([target.derivatives(v + sign * step * e) for e in np.eye(v.size)] for sign in (1, -1))
    slopes = [(a[0] - b[0]) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
    curves = [(a[1] - b[1]) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
    assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-4)
    assert_allclose(hessian, curves, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("prior", [*REGIONS, Prior((0.3, 9), (40, 0.5), (0.2, 0.4), better_than_chance=True)])
def test_far_out_the_density_is_a_number(prior: Prior) -> None:
    """Where a rate rounds to 0 or 1: Student's law sends points there."""
    table, _ = drawn_study(np.random.default_rng(4), 25, 2, 6)
    corners = np.stack(np.meshgrid(*[[-14.0, 0.0, 9.0, 40.0]] * 5, indexing="ij")).reshape(5, -1)
    found = Target(table, prior, 1.5).evaluate(corners)
    assert not np.any(np.isnan(found.log_density))
    assert np.all(found.log_density < 1e3)
    assert np.all((found.prevalence >= 0) & (found.prevalence <= 1))


def test_the_likelihood_is_the_products_of_the_records() -> None:
    """One by one, in the plain formula."""
    rng = np.random.default_rng(4)
    table, _ = drawn_study(rng, 25, 2, 6)
    target = Target(table, Prior(), 1.5)
    v = rng.standard_normal((target.dimension, 5))
    at, found = target.parameters(v), target.evaluate(v)
    for k in range(5):
        theta = expit(at.alpha[k] + table.design() @ at.beta[:, k])
        p, q = at.p[k], at.q[k]
        up, down = (1 - q) ** table.s * q ** (table.n - table.s), p**table.s * (1 - p) ** (table.n - table.s)
        log_likelihood = table.weight @ np.log(theta * up + (1 - theta) * down)
        log_prior = -v[:, k] @ v[:, k] / 2 - 5 * np.log(2 * np.pi) / 2
        assert found.log_density[k] == pytest.approx(log_likelihood + log_prior, abs=1e-9)
        assert found.prevalence[k] == pytest.approx(table.weight @ theta / table.individuals, abs=1e-12)


def test_sobol_points_are_a_net() -> None:
    """Every interval of length 1/64 has one of 64 points, in every coordinate; pairs fill boxes."""
    points = Scrambled(70, np.random.default_rng(1)).block(0, 64)
    assert points.shape == (70, 64)
    for row in points[:64]:
        assert sorted((row * 64).astype(int).tolist()) == list(range(64))
    boxes = (points[0] * 8).astype(int) * 8 + (points[1] * 8).astype(int)
    assert sorted(boxes.tolist()) == list(range(64))


def test_chains_agree_with_weights() -> None:
    """What is sampled where weights fail is the same posterior, within both stated errors."""
    table, _ = drawn_study(np.random.default_rng(6), 60, 2, 4)
    target = Target(table, Prior(), 1.5)
    modes = find_modes(target)
    rule = Rule(target, modes[0], Mixture.around(modes, everywhere=True))
    walked = Cloud(target, walk(target, rule.extend(64), rule.mixture, 600), sampled=True)
    cloud = make_cloud(target, 0.02)
    (first, sd, error), (second, _, own) = (
        each.moments(np.vstack([*each.points.v, each.points.prevalence])) for each in (cloud, walked)
    )
    assert np.all(np.abs(first - second) / sd < 1.5 * (error + own))
    assert 0.005 < walked.error < 0.2


def test_modes_are_stationary() -> None:
    table, _ = drawn_study(np.random.default_rng(6), 60, 2, 4)
    target = Target(table, Prior(), 1.5)
    for mode in find_modes(target):
        assert np.abs(mode.root.T @ target.derivatives(mode.at)[1]).max() < 1e-4


@pytest.mark.slow
def test_stated_errors_hold() -> None:
    """At least 93 % of numbers lie within the stated error of a run with other points, odd studies too.

    `python -m benchmarks.covariate_trials errors` tries hundreds, and others than these.
    """
    rng = np.random.default_rng(21)
    easy = ("N = 30, d = 1, p, q < ½", "N = 60, d = 2, p + q < 1")
    odd = ("separated", "rare level", "doubled", "heavy", "nobody")
    trials = [tried(name, rng, 0.05, with_particles=False) for name in (*easy, *odd)]
    whole, own, ends = (
        np.concatenate([getattr(one, part) for one in trials]) for part in ("whole", "own", "ends")
    )
    assert whole.mean() >= 0.93
    assert own.mean() >= 0.9  # a hundred numbers of a few studies, each with a bound of 95 %
    assert ends.mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("family", ["N = 60, d = 2, p + q < 1", "nobody"])
def test_particles_that_walk_from_the_prior_find_the_same(family: str) -> None:
    """A reference that knows nothing of modes, laws and weights."""
    table, prior = FAMILIES[family](np.random.default_rng(4))
    target = Target(table, prior, 1.5)
    found, other = numbers_of(make_cloud(target, 0.02)), particles(target, np.random.default_rng(5), 256)
    gap = away(found, other)
    assert np.mean(gap <= np.hypot(found.error, other.error)) >= 0.85
    assert np.all(gap <= 2 * np.hypot(found.error, other.error))


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say() -> None:
    """Studies drawn from the prior: 90 % intervals hold the parameters within three standard errors.

    `python -m benchmarks.covariate_trials coverage` tries thousands.
    """
    rng, inside = np.random.default_rng(5), []
    for _ in range(24):
        table, true = drawn_study(rng, 60, 2, 5)
        inside += covered(fit_covariates(table, tol=0.2), true, 0.9)
    share = np.mean(inside)
    assert abs(share - 0.9) < 3 * np.sqrt(0.09 / len(inside)) * 1.5  # five of a study go together


# --- answers -------------------------------------------------------------------------------------------


def test_scores_of_the_study_are_those_of_each_individual(fit) -> None:
    table = fit.records
    scores = fit.score(table)
    asked = {name: table.column(name) for name in table.names}
    assert_allclose(scores, fit.score(table.n, table.s, covariates=asked), atol=1e-12)
    at, mass = fit.cloud.parameters, fit.cloud.points.masses[0]
    i = 17
    theta = expit(at.alpha + table.design()[i] @ at.beta)
    up = theta * (1 - at.q) ** table.s[i] * at.q ** (table.n[i] - table.s[i])
    down = (1 - theta) * at.p ** table.s[i] * (1 - at.p) ** (table.n[i] - table.s[i])
    assert scores[i] == pytest.approx(mass @ (up / (up + down)), abs=1e-12)
    assert fit.predict(table)[i] == pytest.approx(mass @ up / (mass @ (up + down)), abs=1e-12)
    low, high = fit.score_interval(table)
    assert np.all((low <= scores) & (scores <= high))


def test_a_profile_and_a_population_are_whole_fits(fit) -> None:
    old = fit.profile({"age": 70, "site": "south"})
    assert old.predict(2, 1) == pytest.approx(
        fit.predict(2, 1, covariates={"age": 70, "site": "south"}), abs=1e-9
    )
    assert_allclose(
        old.predict_interval(2, 1),
        fit.predict_interval(2, 1, covariates={"age": 70, "site": "south"}),
        atol=1e-9,
    )
    young = fit.profile({"age": 30, "site": "north"})
    assert young.rates.prevalence < fit.rates.prevalence < old.rates.prevalence
    assert old.rates.false_positive == fit.rates.false_positive
    table = fit.records
    same = fit.population({name: table.column(name) for name in table.names}, table.weight)
    assert_allclose([*same.rates], [*fit.rates], rtol=1e-9)
    assert len(decision_table(old, Loss(inconclusive=0.2), 3)) == 9
    assert stopping_table(old, Loss(inconclusive=0.2), cost_per_replicate=0.01, max_replicates=4)
    assert list(fit.typical()) == ["low risk", "middle risk", "high risk"]


def test_the_summary_has_a_row_per_column(fit) -> None:
    table = fit.summary(per={"age": 10})
    rows = list(zip(table["rate"], table["covariate"], strict=True))
    assert rows[5:] == [(rate, term) for term in fit.records.terms for rate in ("odds-ratio", "log-odds")]
    i = rows.index(("log-odds", "age"))
    at, mass = fit.cloud.parameters, fit.cloud.points.masses[0]
    assert table["estimate"][i] == pytest.approx(10 * (mass @ at.beta[0]) / fit.records.sd[0])
    assert table["upper"][i] == pytest.approx(np.log(table["upper"][i - 1]))
    assert fit.records.terms == ("age", "site=south", "site=west")


def test_draws_and_pickles(fit) -> None:
    assert pickle.loads(pickle.dumps(fit)) == fit
    drawn = fit.parameter_draws(4000, 1)
    assert set(drawn) == {"prevalence", "false_positive", "false_negative", "intercept", *fit.records.terms}
    assert np.mean(drawn["false_positive"]) == pytest.approx(fit.rates.false_positive, abs=0.005)
    assert fit.draws(10, 1).prevalence.shape == (10,)
    positives = fit.draw_positives(200, 2)
    assert positives.sum(axis=1).mean() == pytest.approx(
        fit.score(fit.records) @ fit.records.weight, rel=0.05
    )


def test_covariates_help_with_few_replicates() -> None:
    """One replicate each: with a covariate that tells, the truth is told better."""
    columns, truth = screening(600, seed=9)
    s = (columns["s"] > 0).astype(int)
    n = np.ones(600, int)
    table = CovariateTable(n, s, {"age": columns["age"]})
    fit, plain = fit_covariates(table, tol=0.02), fit_bayes(CountTable(n, s))

    def log_loss(scores):
        return -np.mean(np.log(np.where(truth, scores, 1 - scores)))

    assert log_loss(fit.score(n, s, covariates={"age": columns["age"]})) < log_loss(plain.score(n, s)) - 0.05


# --- sentences -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("covariates", "options", "words"),
    [
        ({"age": [1, None, 3]}, {}, "'age' must have no missing values, got 1 of 3"),
        ({"age": [1, np.inf, 3]}, {}, "'age' must hold finite numbers, up to 1e+100, got inf"),
        ({"site": ["a", None, "b"]}, {}, "'site' must have no missing values, got 1 of 3"),
        ({"age": [1, 2]}, {}, "'age' must have one value per entry (3)"),
        ({"site": ["a", "b", "b"]}, {"reference": {"site": "c"}}, "must be one of 'a', 'b', got 'c'"),
        (
            {"site": ["a", "b", "b"]},
            {"reference": {"ward": "c"}},
            "must name covariates ('site'), got 'ward'",
        ),
        (
            {"site": ["a", "b", "b"]},
            {"missing_covariates": "drop"},
            "missing_covariates must be 'refuse' or 'level'",
        ),
        ({"x": np.array([1, "1", "b"], dtype=object)}, {}, "print alike"),
        ([1, 2, 3], {}, "must be a mapping"),
    ],
)
def test_bad_covariates_get_a_sentence(covariates, options, words: str) -> None:
    with pytest.raises((DataError, OptionError), match=r".") as caught:
        CovariateTable([1, 1, 1], [0, 1, 1], covariates, **options)
    assert words in str(caught.value)


def test_too_many_levels_get_a_sentence() -> None:
    with pytest.raises(DataError, match="at most 200 columns, got 299, 299 of them from 'id'"):
        CovariateTable([1] * 300, [1] * 300, {"id": [f"p{i}" for i in range(300)]})


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"age": 40, "site": "east"},
            "must be one of the levels of the study ('north', 'south', 'west'), got 'east'",
        ),
        ({"age": None, "site": "north"}, "'age' must have no missing values, got 1 of 1"),
        ({"age": 40}, "must have a value for 'site'"),
        ({"age": 40, "site": "north", "sex": 1}, "must be those of the fit ('age', 'site'), got 'sex'"),
        ({"age": "old", "site": "north"}, "'age' must hold numbers, got 'old'"),
        ({"age": [1, 2, 3], "site": ["north", "south"]}, "must broadcast"),
        (40, "must be a mapping"),
    ],
)
def test_bad_questions_get_a_sentence(fit, asked, words: str) -> None:
    with pytest.raises((DataError, OptionError), match=r".") as caught:
        fit.predict(1, 1, covariates=asked)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda fit: fit_covariates(fit.counts), "records must be a CovariateTable"),
        (lambda fit: fit_covariates(fit.records, slope_sd=0), "slope_sd must be a finite number > 0"),
        (lambda fit: fit_covariates(fit.records, tol=-1), "tol must be"),
        (
            lambda fit: fit.odds_ratios(per={"site": 2}),
            "per must name columns of numbers ('age'), got 'site'",
        ),
        (lambda fit: fit.odds_ratios(per={"age": 0}), "finite step"),
        (lambda fit: fit.profile({"age": [1, 2], "site": "north"}), "one value of each covariate"),
        (lambda fit: fit.slope("sex"), "term must be one of age"),
        (lambda fit: fit.population({"age": [1], "site": ["north"]}, [0]), "weight must have"),
        (
            lambda fit: fit.predict([1, 1], [1, 0], covariates={"age": [1, 2, 3], "site": "north"}),
            "broadcast",
        ),
    ],
)
def test_bad_options_get_a_sentence(fit, call, words: str) -> None:
    with pytest.raises((DataError, OptionError), match=r".") as caught:
        call(fit)
    assert words in str(caught.value)


def test_missing_values_can_be_a_level() -> None:
    columns, _ = screening(150)
    age = np.where(np.arange(150) % 10 == 0, np.nan, columns["age"])
    site = np.where(np.arange(150) % 7 == 0, None, columns["site"])
    table = CovariateTable(columns["n"], columns["s"], {"age": age, "site": site}, missing_covariates="level")
    assert table.terms == ("age", "age=missing", "site=missing", "site=south", "site=west")
    fit = fit_covariates(table, tol=0.05)
    known = fit.predict(2, 1, covariates={"age": [None, 40], "site": ["north", None]})
    assert np.all((known > 0) & (known < 1))
    lost = [weight for value, weight in zip(table.column("age"), table.weight, strict=True) if value is None]
    assert sum(lost) == np.isnan(age).sum()
