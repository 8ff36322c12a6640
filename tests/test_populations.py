"""Several populations with one test, against a closed form, brute force and the fit of one population."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from functools import reduce
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import betainc, betaln, logit, logsumexp

from binreps.counts import CountTable
from binreps.errors import DataError, OptionError
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.fits.exact.chart import Place
from binreps.fits.exact.shared import Shared
from binreps.fits.populations import fit_populations
from binreps.model import NAMES, Prior, Rates
from binreps.study.simulate import simulate_counts
from binreps.table import Table
from by_hand import expected_counts

pytestmark = pytest.mark.slow

CLINIC = CountTable([3, 3, 2, 2, 1, 0], [0, 3, 1, 2, 1, 0], weight=[3, 2, 1, 2, 1, 2])
SURVEY = CountTable([4, 2, 2], [0, 0, 1], weight=[2, 5, 1])
SCHOOL = CountTable([2, 3, 1, 0], [1, 2, 0, 0], weight=[1, 2, 1, 1], known=[None, None, 0, 1])
TABLES = {"clinic": CLINIC, "survey": SURVEY, "school": SCHOOL}
SKEWED = Prior(prevalence=(0.3, 1.7), false_positive=(0.6, 4), false_negative=(1.5, 0.8))


# --- an independent closed form ----------------------------------------------------------------------------


def ways(table: CountTable) -> dict[tuple[int, int, int], int]:
    """How often M called positive have a positive and b negative replicates, over all ways to call people."""
    states = {(0, 0, 0): 1}
    for n, s, weight, known in zip(
        *(x.tolist() for x in (table.n, table.s, table.weight, table.known)), strict=True
    ):
        called = {-1: range(weight + 1), 0: [0], 1: [weight]}[known]
        grown: dict[tuple[int, int, int], int] = {}
        for (m, a, b), number in states.items():
            for k in called:
                state = (m + k, a + k * s, b + k * (n - s))
                grown[state] = grown.get(state, 0) + number * comb(weight, k) ** (known == -1)
        states = grown
    return states


class ClosedForm:
    """The posterior of several populations as a finite mixture of independent Betas: no integration."""

    def __init__(self, tables: list[CountTable], prior: Prior) -> None:
        total = reduce(CountTable.__add__, tables)
        self.sizes = [table.individuals for table in tables]
        self.prior, states = prior, list(product(*(ways(table).items() for table in tables)))
        self.called = np.array([[m for (m, _, _), _ in state] for state in states])
        a, b = (np.array([sum(key[i] for key, _ in state) for state in states]) for i in (1, 2))
        negatives = total.replicates - total.positives
        self.p_shapes = prior.false_positive[0] + total.positives - a, prior.false_positive[1] + negatives - b
        self.q_shapes = prior.false_negative[0] + b, prior.false_negative[1] + a
        log_weight = np.array([sum(np.log(float(number)) for _, number in state) for state in states])
        for g in range(len(tables)):
            log_weight += betaln(*self.theta_shapes(g)) - betaln(*prior.prevalence)
        for shapes, own in ((self.p_shapes, prior.false_positive), (self.q_shapes, prior.false_negative)):
            log_weight += log_half_beta(*shapes) - log_half_beta(*own)
        self.log_evidence = float(logsumexp(log_weight))
        self.weight = np.exp(log_weight - self.log_evidence)

    def theta_shapes(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.prior.prevalence
        return a + self.called[:, g], b + self.sizes[g] - self.called[:, g]

    def theta_moments(self, g: int) -> tuple[float, float]:
        a, b = self.theta_shapes(g)
        mean = self.weight @ (a / (a + b))
        return mean, np.sqrt(self.weight @ (a * (a + 1) / ((a + b) * (a + b + 1))) - mean**2)

    def error_moments(self, name: str) -> tuple[float, float]:
        a, b = self.p_shapes if name == "false_positive" else self.q_shapes
        first, second = (np.exp(log_half_beta(a + k, b) - log_half_beta(a, b)) for k in (1, 2))
        mean = self.weight @ first
        return mean, np.sqrt(self.weight @ second - mean**2)

    def theta_cdf(self, g: int, x: float) -> float:
        return float(self.weight @ betainc(*self.theta_shapes(g), x))

    def error_cdf(self, name: str, x: float) -> float:
        a, b = self.p_shapes if name == "false_positive" else self.q_shapes
        return float(self.weight @ (betainc(a, b, x) / betainc(a, b, 0.5)))


def log_half_beta(a, b):
    return betaln(a, b) + np.log(betainc(a, b, 0.5))


@pytest.fixture(scope="module", params=[Prior(), SKEWED], ids=["default prior", "skewed prior"])
def prior(request) -> Prior:
    return request.param


@pytest.fixture(scope="module")
def exact(prior: Prior) -> ClosedForm:
    return ClosedForm(list(TABLES.values()), prior)


@pytest.fixture(scope="module")
def result(prior: Prior):
    return fit_populations(TABLES, prior)


def test_the_evidence_is_that_of_the_closed_form(result, exact) -> None:
    assert result.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
    assert all(result[name].log_evidence == pytest.approx(exact.log_evidence, abs=1e-9) for name in result)


def test_means_and_sds_are_those_of_the_closed_form(result, exact) -> None:
    for g, name in enumerate(TABLES):
        mean, sd = exact.theta_moments(g)
        assert result.rates.prevalence[g] == pytest.approx(mean, abs=1e-9)
        assert result.sd.prevalence[g] == pytest.approx(sd, abs=1e-9)
        assert result[name].rates.prevalence == pytest.approx(mean, abs=1e-9)
        assert result[name].sd.prevalence == pytest.approx(sd, abs=1e-9)
    for rate in NAMES[1:]:
        mean, sd = exact.error_moments(rate)
        for fit in (result, *(result[name] for name in result)):
            assert getattr(fit.rates, rate) == pytest.approx(mean, abs=1e-9)
            assert getattr(fit.sd, rate) == pytest.approx(sd, abs=1e-9)


def test_quantiles_are_those_of_the_closed_form(result, exact) -> None:
    for probability in (0.01, 0.3, 0.95):
        for g, name in enumerate(TABLES):
            x = result[name].quantile(probability).prevalence
            assert exact.theta_cdf(g, x) == pytest.approx(probability, abs=1e-8)
        for rate in NAMES[1:]:
            x = result.marginal(rate).quantile(probability)
            assert exact.error_cdf(rate, x) == pytest.approx(probability, abs=1e-8)


def test_scores_and_predictions_are_ratios_of_evidences(result, prior) -> None:
    """P(T = 1 | data): with the individual known to be positive, over the evidence as it is."""
    before = ClosedForm(list(TABLES.values()), prior).log_evidence
    rest = CountTable(SURVEY.n, SURVEY.s, [5, 0, 2])
    clamped = ClosedForm([CLINIC, rest + CountTable([2], [1], known=[1]), SCHOOL], prior).log_evidence
    assert result["survey"].score(2, 1) == pytest.approx(np.exp(clamped - before), abs=1e-9)
    for n, s in ((3, 2), (1, 1)):
        positive, negative = (
            ClosedForm([CLINIC, SURVEY + CountTable([n], [s], known=[status]), SCHOOL], prior).log_evidence
            for status in (1, 0)
        )
        expected = 1 / (1 + np.exp(negative - positive))
        assert result["survey"].predict(n, s) == pytest.approx(expected, abs=1e-9)


def test_a_prediction_far_from_the_data_is_made_by_refitting(result, prior) -> None:
    tables = [CLINIC, SURVEY, SCHOOL]
    positive, negative = (
        ClosedForm([*tables[:2], SCHOOL + CountTable([60], [20], known=[status])], prior).log_evidence
        for status in (1, 0)
    )
    expected = 1 / (1 + np.exp(negative - positive))
    assert result["school"].predict(60, 20) == pytest.approx(expected, abs=1e-7)
    value, error = result["school"].posterior._predicted_by_refitting((60, 20))
    assert value == pytest.approx(expected, abs=max(1e-12, 10 * error))
    assert error < 1e-7


def test_brute_force_in_four_dimensions() -> None:
    """The definition, on a product of Gauss–Legendre rules: a polynomial, so the rule is exact."""
    prior, tables = Prior((2, 3), (2, 2), (1, 3)), [CLINIC, SURVEY]
    x, w = np.polynomial.legendre.leggauss(24)
    rules = [((x + 1) / 2 * end, w / 2 * end) for end in (1, 1, 0.5, 0.5)]
    nodes = np.meshgrid(*(rule[0] for rule in rules), indexing="ij", sparse=True)
    mass = np.ones((1, 1, 1, 1))
    for axis, (a, b) in enumerate(
        (prior.prevalence, prior.prevalence, prior.false_positive, prior.false_negative)
    ):
        weight = rules[axis][1] * rules[axis][0] ** (a - 1) * (1 - rules[axis][0]) ** (b - 1)
        mass = mass * (weight / weight.sum()).reshape([-1 if i == axis else 1 for i in range(4)])
    for g, table in enumerate(tables):
        for n, s, weight in zip(table.n, table.s, table.weight, strict=True):
            theta, p, q = nodes[g], nodes[2], nodes[3]
            both = theta * (1 - q) ** s * q ** (n - s) + (1 - theta) * p**s * (1 - p) ** (n - s)
            mass = mass * both**weight
    result = fit_populations(dict(enumerate(tables)), prior)
    assert result.log_evidence == pytest.approx(np.log(mass.sum()), abs=1e-9)
    means = [(mass * node).sum() / mass.sum() for node in nodes]
    assert result.rates.prevalence == pytest.approx(np.array(means[:2]), abs=1e-10)
    assert [result.rates.false_positive, result.rates.false_negative] == pytest.approx(means[2:], abs=1e-10)


# --- one population --------------------------------------------------------------------------------------

ONE = {
    "some": CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20]),
    "nobody": CountTable([], []),
    "one": CountTable([3], [1]),
    "known": CountTable([3, 1, 1], [1, 0, 1], [30, 20, 10], [None, 0, 1]),
    "a million": simulate_counts(Rates(0.3, 0.1, 0.05), 10**6, [3, 4, 5], rng=1),
    "all negative": CountTable([3], [0], [10**5]),
    "many replicates": simulate_counts(Rates(0.4, 0.2, 0.1), 60, [80, 90], rng=1),
    "a coin": simulate_counts(Rates(0.4, 0.499, 0.499), 1000, [4], rng=1),
}


@pytest.mark.parametrize("name", ONE)
def test_one_population_is_fitted_as_by_fit_bayes(name: str) -> None:
    table = ONE[name]
    result, fit = fit_populations({"all": table}), fit_bayes(table)
    one = result["all"]
    assert result.log_evidence == pytest.approx(fit.log_evidence, abs=1e-9, rel=1e-12)
    for rate, mean, sd in zip(NAMES, fit.rates, fit.sd, strict=True):
        assert getattr(one.rates, rate) == pytest.approx(mean, abs=1e-9 * sd)
        assert getattr(one.sd, rate) == pytest.approx(sd, rel=1e-9)
        x = [getattr(f.quantile([0.05, 0.5, 0.95]), rate) for f in (one, fit)]
        assert x[0] == pytest.approx(x[1], abs=1e-8 * sd)
    assert one.correlation == pytest.approx(fit.correlation, abs=1e-8)
    n, s = [*table.n, 0], [*table.s, 0]
    for what in ("score", "predict"):
        values = [getattr(f, what)(n, s) for f in (one, fit)]
        errors = [getattr(f, f"{what}_error")(n, s) for f in (one, fit)]
        assert np.all(np.abs(values[0] - values[1]) < 1e-9 + sum(errors))
        assert np.max(errors[0]) < 1e-6
    assert one.next_replicate(n, s) == pytest.approx(fit.next_replicate(n, s), abs=1e-6)


@pytest.mark.parametrize("size", [10, 1000, 10**5])
def test_scores_far_from_the_data_have_an_honest_error(size: int) -> None:
    """All negative: θ has a pole at 0, where the score of a positive cell jumps within 10⁻¹⁶."""
    table = CountTable([3], [0], [size])
    one, fit = fit_populations({"all": table})["all"], fit_bayes(table)
    n, s = [2, 2, 3, 5], [1, 2, 3, 5]
    errors = one.score_error(n, s)
    assert np.all(np.abs(one.score(n, s) - fit.score(n, s)) < 1e-9 + errors + fit.score_error(n, s))
    assert np.all(errors < 1e-5)


def test_intervals_of_one_population_are_those_of_fit_bayes() -> None:
    one, fit = fit_populations({"all": ONE["some"]})["all"], fit_bayes(ONE["some"])
    for what in ("score_interval", "predict_interval"):
        for mine, other in zip(
            getattr(one, what)([4, 4], [1, 2]), getattr(fit, what)([4, 4], [1, 2]), strict=True
        ):
            assert mine == pytest.approx(other, abs=3e-6)
    for mine, other in zip(one.hdi(), fit.hdi(), strict=True):
        assert list(mine) == pytest.approx(list(other), abs=1e-6)
    assert list(one.mode) == pytest.approx(list(fit.mode), abs=1e-6)


@pytest.mark.parametrize(
    "table",
    [
        CountTable([2, 2, 2], [0, 1, 2], [60_000, 15_000, 25_000]),
        CountTable([1, 1], [0, 1], [7000, 3000]),
        simulate_counts(Rates(0.4, 0.45, 0.45), 10**4, [3], rng=1),
    ],
    ids=["two replicates", "one replicate", "nearly a coin"],
)
def test_a_ridge_is_followed_as_by_the_nested_rule(table: CountTable) -> None:
    one, fit = fit_populations({"all": table})["all"], fit_bayes(table)
    assert one.log_evidence == pytest.approx(fit.log_evidence, abs=1e-6)
    tolerance = max(one.error, fit.error, 1e-7)
    assert tolerance < 1e-5
    for mine, other, sd in zip(one.rates, fit.rates, fit.sd, strict=True):
        assert mine == pytest.approx(other, abs=tolerance * sd)


# --- what several populations must do ----------------------------------------------------------------------


def test_the_order_of_populations_does_not_matter() -> None:
    turned = fit_populations(dict(reversed(TABLES.items())))
    result = fit_populations(TABLES)
    assert turned.log_evidence == pytest.approx(result.log_evidence, abs=1e-10)
    assert turned.rates.prevalence[::-1] == pytest.approx(result.rates.prevalence, abs=1e-10)


def test_switching_the_labels_switches_the_rates() -> None:
    mirrored = {name: CountTable(t.n, t.n - t.s, t.weight) for name, t in TABLES.items()}
    result = fit_populations({name: t.forget_known() for name, t in TABLES.items()})
    other = fit_populations(mirrored)
    assert other.rates.prevalence == pytest.approx(1 - result.rates.prevalence, abs=1e-9)
    assert other.rates.false_positive == pytest.approx(result.rates.false_negative, abs=1e-9)


def test_a_population_without_data_has_the_prior_and_changes_nothing() -> None:
    more = fit_populations({**TABLES, "empty": CountTable([], []), "unmeasured": CountTable([0], [0], [7])})
    fit = fit_populations(TABLES)
    assert more.log_evidence == pytest.approx(fit.log_evidence, abs=1e-10)
    assert more.rates.prevalence[:3] == pytest.approx(fit.rates.prevalence, abs=1e-10)
    for name in ("empty", "unmeasured"):
        assert more[name].quantile(0.1).prevalence == pytest.approx(np.sin(np.pi / 20) ** 2, rel=1e-9)
        assert more[name].rates.false_positive == pytest.approx(fit.rates.false_positive, abs=1e-10)


def test_two_populations_make_two_replicates_informative() -> None:
    """The error rates are learnt, which one population cannot do however large; one replicate never does."""

    def sd(size: int, n: int, prevalences: list[float]) -> float:
        tables = {t: expected_counts(Rates(t, 0.1, 0.05), size, n) for t in prevalences}
        return fit_populations(tables).sd.false_positive

    assert sd(10**5, 2, [0.1, 0.5]) < 0.12 * sd(10**3, 2, [0.1, 0.5])
    assert sd(10**5, 2, [0.3]) > 0.8 * sd(10**3, 2, [0.3])
    assert sd(10**5, 1, [0.1, 0.5]) > 0.8 * sd(10**3, 1, [0.1, 0.5])


def test_credible_intervals_cover_the_truth_of_data_drawn_from_the_prior() -> None:
    """Averaged over the prior, a 80 % interval holds the truth in 80 % of the data sets."""
    rng, inside = np.random.default_rng(4), []
    for _ in range(60):
        prior = Prior((1, 1), (2, 2), (2, 2))
        p, q = truncated_draw(rng), truncated_draw(rng)
        thetas = rng.uniform(size=3)
        tables = {g: simulate_counts(Rates(t, p, q), 12, [2, 3], rng=rng) for g, t in enumerate(thetas)}
        result = fit_populations(tables, prior)
        lower, upper = result.interval(0.8)
        inside += list((lower.prevalence < thetas) & (thetas < upper.prevalence))
        inside += [
            lower.false_positive < p < upper.false_positive,
            lower.false_negative < q < upper.false_negative,
        ]
    assert np.mean(inside) == pytest.approx(0.8, abs=0.06)


def truncated_draw(rng: np.random.Generator) -> float:
    while True:
        x = rng.beta(2, 2)
        if x < 0.5:
            return float(x)


# --- draws -----------------------------------------------------------------------------------------------


def test_draws_follow_the_posterior_jointly() -> None:
    result = fit_populations(TABLES, SKEWED)
    draws = result.draws(4000, 7)
    assert list(draws) == list(TABLES)
    assert all(
        np.array_equal(draws["clinic"].false_positive, rates.false_positive) for rates in draws.values()
    )
    for name, rates in draws.items():
        for rate, values in zip(NAMES, rates, strict=True):
            ranks = np.sort(result[name].marginal(rate).cumulative(values))
            assert np.max(np.abs(ranks - (np.arange(4000) + 0.5) / 4000)) < 1.63 / np.sqrt(4000)
        assert np.corrcoef(list(rates)) == pytest.approx(result[name].correlation, abs=0.06)
    again = result["survey"].draws(500, 3)
    assert again == result["survey"].draws(500, 3)
    ranks = np.sort(result["survey"].marginal("prevalence").cumulative(again.prevalence))
    assert np.max(np.abs(ranks - (np.arange(500) + 0.5) / 500)) < 1.63 / np.sqrt(500)
    assert result.draws(0, 1)["clinic"].prevalence.shape == (0,)


# --- extremes --------------------------------------------------------------------------------------------

EXTREMES = {
    "very different sizes": [simulate_counts(Rates(0.2, 0.1, 0.05), 10**k, [3, 4], rng=k) for k in range(7)],
    "rare errors": [simulate_counts(Rates(t, 1e-6, 1e-5), 10**6, [3, 4], rng=1) for t in (0.001, 0.4)],
    "all negative": [CountTable([3], [0], [10**k]) for k in (0, 3, 6)],
    "opposite": [CountTable([3], [0], [10**4]), CountTable([3], [3], [10**4])],
    "nearly coins": [simulate_counts(Rates(t, 0.49, 0.49), 10**5, [4], rng=1) for t in (0.3, 0.6)],
    "equal prevalences, n = 2": [expected_counts(Rates(0.3, 0.1, 0.05), 10**4, 2)] * 2,
    "one replicate": [expected_counts(Rates(t, 0.1, 0.05), 10**4, 1) for t in (0.2, 0.4)],
    "hopeless": [expected_counts(Rates(t, 0.1, 0.05), 10**6, 1) for t in (0.2, 0.4)],
    "contradictions": [CountTable([10**4] * 2, [0, 5000]), CountTable([10**4], [10**4])],
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_give_numbers_and_an_honest_error(name: str) -> None:
    result = fit_populations(dict(enumerate(EXTREMES[name])))
    for one, end in ((result.rates, 1), (result.sd, 0.6)):
        values = np.concatenate([one.prevalence, [one.false_positive, one.false_negative]])
        assert np.all((values > 0) & (values < end))
    assert np.isfinite(result.log_evidence)
    assert result.error < (0.1 if name == "hopeless" else 1e-7)


def test_fifty_populations_of_any_size() -> None:
    rng = np.random.default_rng(5)
    prevalences = rng.uniform(0.02, 0.6, 50)
    tables = {
        g: simulate_counts(Rates(t, 0.1, 0.05), int(10 ** rng.uniform(1, 4)), [3, 4, 5], rng=rng)
        for g, t in enumerate(prevalences)
    }
    result = fit_populations(tables)
    lower, upper = result.interval(0.8)
    assert np.mean((lower.prevalence < prevalences) & (prevalences < upper.prevalence)) == pytest.approx(
        0.8, abs=0.15
    )
    assert abs(result.rates.false_positive - 0.1) < 4 * result.sd.false_positive
    assert result.error < 1e-7


# --- one cell, or many ------------------------------------------------------------------------------------

COMPACT = {
    "clear": ([(t, 0.1, 0.15) for t in (0.1, 0.4, 0.8)], 200, [3, 4, 5]),
    "pairs": ([(t, 0.12, 0.39) for t in (0.05, 0.3, 0.6, 0.9)], 2131, [2]),
    "poor tests": ([(t, 0.45, 0.45) for t in (0.03, 0.33, 0.63)], 10**4, [3, 4]),
    "rare errors": ([(t, 0.02, 0.01) for t in (0.1, 0.5)], 300, [6, 8]),
    "millions": ([(t, 0.1, 0.2) for t in (0.2, 0.6)], 10**6, [3, 4]),
}


@pytest.mark.parametrize("better", [False, True])
@pytest.mark.parametrize("name", COMPACT)
def test_one_cell_says_what_many_say_within_the_stated_errors(
    name: str, better: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, size, n = COMPACT[name]
    tables = [simulate_counts(Rates(*one), size, n, rng=i) for i, one in enumerate(rates)]
    prior = Prior(better_than_chance=better)
    found = Shared(tables, prior)
    assert (found.cells.triangle.size == 1) is (name != "poor tests")
    monkeypatch.setattr(Shared, "_one_cell", lambda *_: None)
    many = Shared(tables, prior)
    assert many.cells.triangle.size > 4
    assert many.error < 2e-8
    assert found.grid.distance(many.grid) < found.error + many.error
    for mine, other in ((found.of(0), many.of(0)), (found.of(1), many.of(1))):
        for axis in range(3):
            laws = [mine.marginal(axis), other.marginal(axis)]
            a, b = (law.quantile(np.array([0.05, 0.5, 0.95])) for law in laws)
            stated = mine.error + other.error + sum(law.error for law in laws)
            assert stated < 1e-4
            assert np.max(np.abs(a - b)) / np.sqrt(other.covariance[axis, axis]) < stated


SPIKE = (-2.49, -1.79)  # logits of error rates, near the mode


def test_a_narrow_mode_that_one_cell_would_step_over_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of one cell lie half a standard deviation apart: two grids may agree between them."""
    tables = [simulate_counts(Rates(t, 0.1, 0.15), 200, [3, 4, 5], rng=i) for i, t in enumerate((0.2, 0.7))]
    plain, log_prior = Shared(tables, Prior()), Shared.log_prior

    def with_spike(self: Shared, at: Place) -> np.ndarray:
        away = ((logit(at.p) - SPIKE[0]) ** 2 + (logit(at.q) - SPIKE[1]) ** 2) / 0.007**2
        return log_prior(self, at) + np.logaddexp(0, 6 - away / 2)

    monkeypatch.setattr(Shared, "log_prior", with_spike)
    found = Shared(tables, Prior())
    assert plain.cells.triangle.size == 1
    assert found.cells.triangle.size > 4
    assert found.log_evidence > plain.log_evidence + 0.2


# --- words ------------------------------------------------------------------------------------------------


def test_the_summary_has_a_row_per_prevalence_and_the_shared_rates() -> None:
    result = fit_populations(TABLES)
    table = result.summary(0.5)
    assert isinstance(table, Table)
    assert list(table.columns) == ["rate", "population", "estimate", "sd", "lower", "upper"]
    assert (table["rate"][:3], table["population"][:3]) == (("prevalence",) * 3, tuple(TABLES))
    assert table["population"][3:] == (None,) * 4
    assert table["rate"][3:] == ("false-positive", "false-negative", "sensitivity", "specificity")
    lower, upper = result.interval(0.5)
    assert table["estimate"][:3] == tuple(result.rates.prevalence)
    assert table["lower"][3:] == (
        lower.false_positive,
        lower.false_negative,
        upper.sensitivity,
        upper.specificity,
    )
    assert table["sd"][5:] == (result.sd.false_negative, result.sd.false_positive)
    assert str(result).startswith("Bayes, exact, 3 populations: ")
    assert "<td>prevalence</td><td>clinic</td>" in result._repr_html_()
    assert np.all(lower.prevalence < upper.prevalence)


@pytest.mark.parametrize(
    ("tables", "identifiable", "sentence"),
    [
        ([CountTable([3], [1]), CountTable([1], [1])], True, None),
        ([CountTable([2], [1])], False, "cannot tell prevalence and error rates apart"),
        (
            [CountTable([2], [1]), CountTable([2], [2])],
            True,
            "only different prevalences tell the error rates",
        ),
        ([CountTable([2], [1]), CountTable([1], [1])], False, "cannot tell"),
        ([CountTable([1], [1]), CountTable([1], [0]), CountTable([1], [0])], False, "cannot tell"),
        ([CountTable([1], [1], known=[1]), CountTable([1], [0], known=[0])], True, None),
        ([CountTable([1], [1], known=[1]), CountTable([2], [0])], True, None),
        ([CountTable([1], [1], known=[1]), CountTable([1], [0])], False, "cannot tell"),
    ],
)
def test_it_says_what_identifies_the_rates(tables, identifiable: bool, sentence: str | None) -> None:
    result = fit_populations(dict(enumerate(tables)))
    assert result.identifiable is identifiable
    note = result.summary().note
    assert sentence in note if sentence else "prior" not in note


def test_it_is_a_frozen_collection_of_posteriors() -> None:
    result = fit_populations(TABLES)
    assert len(result) == 3
    assert list(result) == list(result.names) == list(result.counts) == list(TABLES)
    assert isinstance(result["clinic"], BayesFit)
    assert result["clinic"] is result["clinic"]
    assert result["clinic"].counts == CLINIC
    assert "error rates shared" in str(result["clinic"])
    with pytest.raises(FrozenInstanceError):
        result.prior = Prior()  # type: ignore[misc]
    one = pickle.loads(pickle.dumps(result["survey"]))
    assert one == result["survey"] != result["clinic"]
    assert one.rates == result["survey"].rates
    copied = pickle.loads(pickle.dumps(result))
    assert copied == result == fit_populations(TABLES)
    assert hash(copied) == hash(result)
    assert copied.rates == result.rates
    assert result != fit_populations({"clinic": CLINIC})
    assert result != fit_populations(TABLES, SKEWED)


def test_what_it_refuses() -> None:
    with pytest.raises(OptionError, match=r"^populations must be a dictionary of count tables, got \{\}"):
        fit_populations({})
    with pytest.raises(OptionError, match="populations must be a mapping, got a list"):
        fit_populations([CLINIC])  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"^population 'a' must be a CountTable, got list"):
        fit_populations({"a": [1, 2]})  # type: ignore[dict-item]
    result = fit_populations({"a": CLINIC})
    with pytest.raises(OptionError, match=r"^name must be one of 'a', got 'b'"):
        result["b"]
    with pytest.raises(
        OptionError, match=r"^name must be one of false_positive, false_negative, got 'prevalence'"
    ):
        result.marginal("prevalence")
    with pytest.raises(OptionError, match=r"^level must be between 0 and 1, got 1.5"):
        result.interval(1.5)
    with pytest.raises(OptionError, match=r"^size must be a whole number"):
        result.draws(-1, 1)
