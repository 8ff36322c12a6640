from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import binreps as br
from binreps.decide.plan import Design, Plan, _Goal, _Simulator, plan
from binreps.study.simulate import simulate_counts

pytestmark = pytest.mark.slow

TRUTH = br.Rates(0.3, 0.1, 0.15)
LOSS = br.Loss(inconclusive=0.2)


@pytest.fixture(scope="module")
def widths() -> Plan:
    return plan(
        TRUTH, prevalence_width=0.25, individuals=[20, 40, 80, 160], replicates=[3, 5], data_sets=200, rng=3
    )


# Simulated studies -------------------------------------------------------------------------------------


def test_small_studies_are_part_of_large_ones() -> None:
    sizes = [(10, 2), (10, 5), (30, 2), (30, 5)]
    _, studies = _Simulator(TRUTH, sizes, np.random.default_rng(1)).draw(40)
    for (n, r), by_s in studies.items():
        assert by_s.shape == (40, r + 1)
        assert np.all(by_s.sum(axis=1) == n)
    for r in (2, 5):
        assert np.all(studies[10, r] <= studies[30, r])
    for n in (10, 30):  # more replicates of the same people: never fewer positives, never fewer negatives
        positives = {r: studies[n, r] @ np.arange(r + 1) for r in (2, 5)}
        assert np.all(positives[2] <= positives[5])
        assert np.all(2 * n - positives[2] <= 5 * n - positives[5])


def test_simulated_counts_follow_the_model() -> None:
    _, studies = _Simulator(TRUTH, [(50, 3), (200, 4)], np.random.default_rng(2)).draw(300)
    theta, p, q = TRUTH
    for (_, r), by_s in studies.items():
        s = np.arange(r + 1)
        law = theta * stats.binom.pmf(s, r, 1 - q) + (1 - theta) * stats.binom.pmf(s, r, p)
        total = by_s.sum(axis=0)
        assert stats.chisquare(total, law * total.sum()).pvalue > 1e-3
        assert np.allclose(by_s.var(axis=0), by_s[0].sum() * law * (1 - law), rtol=0.5)  # multinomial


def test_rates_drawn_from_a_prior_follow_it() -> None:
    prior = br.Prior((2, 5), (2, 4), (0.7, 3))
    rates = _Simulator(prior, [(1, 1)], np.random.default_rng(4)).rates(3000)
    laws = [stats.beta(*shapes).cdf for shapes in prior]
    for rate, law, end in zip(rates, laws, (1, 0.5, 0.5), strict=True):
        assert stats.kstest(rate, lambda x, law=law, end=end: law(x) / law(end)).pvalue > 1e-3


# Goals -------------------------------------------------------------------------------------------------


def test_the_probability_of_a_width_is_that_of_independent_studies(widths: Plan) -> None:
    rng = np.random.default_rng(11)
    for design in widths.designs:
        if not 0.02 < design.probability < 0.98:
            continue
        tables = [simulate_counts(TRUTH, design.individuals, design.replicates, rng) for _ in range(60)]
        fits = br.fit_many(tables)
        found = fits.upper.prevalence - fits.lower.prevalence <= 0.25
        error = np.hypot(design.mc_error, 0.5 / 60**0.5)
        assert abs(np.mean(found) - design.probability) < 4 * error


def test_larger_studies_keep_to_the_width_more_often(widths: Plan) -> None:
    for replicates in (3, 5):
        same = [design for design in widths.designs if design.replicates == replicates]
        assert [design.individuals for design in same] == [20, 40, 80, 160]
        assert np.all(np.diff([design.value for design in same]) < 0)
        assert np.all(np.diff([design.probability for design in same]) >= -0.05)
    assert widths.designs[0].reached == "no"
    assert widths.designs[3].reached == "yes"


def test_more_studies_are_simulated_where_the_verdict_is_close(widths: Plan) -> None:
    sizes = {design.data_sets for design in widths.designs}
    assert min(sizes) == 20
    for design in widths.designs:
        far = abs(design.probability - 0.8) / design.mc_error
        assert (far > 3) or design.data_sets == 200
        assert design.reached == ("perhaps" if far < 2 else "yes" if design.probability > 0.8 else "no")


def test_error_margins_are_half_the_wider_of_the_two_intervals() -> None:
    found = plan(TRUTH, error_margin=0.05, individuals=[400], replicates=[4], data_sets=20, rng=5, level=0.8)
    rng, halves = np.random.default_rng(6), []
    for _ in range(20):
        lower, upper = br.fit_bayes(simulate_counts(TRUTH, 400, 4, rng)).interval(0.8)
        width = max(upper.false_positive - lower.false_positive, upper.false_negative - lower.false_negative)
        halves.append(width / 2)
    assert found.measure == "margin"
    assert found.designs[0].value == pytest.approx(np.quantile(halves, 0.8), rel=0.15)


@pytest.mark.parametrize("goal", ["inconclusive", "risk"])
def test_decisions_of_a_large_study_are_those_with_known_rates(goal: str) -> None:
    r, (theta, p, q) = 4, TRUTH
    s = np.arange(r + 1)
    positive, negative = theta * stats.binom.pmf(s, r, 1 - q), (1 - theta) * stats.binom.pmf(s, r, p)
    risks = LOSS.risks(positive / (positive + negative))
    share = np.sum((positive + negative)[risks.argmin(axis=1) == 1])
    expected = share if goal == "inconclusive" else np.sum((positive + negative) * risks.min(axis=1))
    found = plan(TRUTH, individuals=[10**7], replicates=[r], loss=LOSS, data_sets=4, rng=1, **{goal: 0.5})
    assert found.designs[0].value == pytest.approx(expected, rel=2e-3)
    assert found.measure == goal


def test_the_risk_is_that_of_answers_judged_by_the_drawn_statuses() -> None:
    prior = br.Prior((2, 4), (2, 9), (2, 9))
    found = plan(prior, risk=0.001, individuals=[30], replicates=[3], loss=LOSS, data_sets=50, rng=1)
    rng, judged = np.random.default_rng(8), []
    for rates in zip(*br.fit_bayes(br.CountTable([], []), prior).draws(100, rng), strict=True):
        one = br.simulate(br.Rates(*rates), 30, 3, rng)
        fit = br.fit_bayes(one.counts, prior)
        judged.append(br.evaluate(fit.score(one.n, one.s), one.truth, LOSS).mean_risk)
    error = np.hypot(found.designs[0].mc_error, np.std(judged) / 100**0.5)
    assert abs(found.designs[0].value - np.mean(judged)) < 4 * error


def test_the_same_seed_gives_the_same_plan() -> None:
    options = {"prevalence_width": 0.3, "individuals": [20, 30], "replicates": [3], "data_sets": 50}
    first, again, other = (plan(TRUTH, rng=rng, **options) for rng in (1, np.random.default_rng(1), 2))
    assert first.designs == again.designs
    assert first.designs != other.designs


def test_the_analysis_may_have_another_prior_than_the_truth() -> None:
    options = {"error_margin": 0.05, "individuals": [30], "replicates": [2], "data_sets": 50, "rng": 1}
    vague, sure = (
        plan(TRUTH, prior=prior, **options) for prior in (None, br.Prior((1, 1), (40, 360), (60, 340)))
    )
    assert sure.designs[0].value < vague.designs[0].value / 2


def test_progress_ends_where_it_said_it_would() -> None:
    calls: list[tuple[int, int]] = []
    plan(
        TRUTH, risk=0.05, individuals=[10, 20], replicates=[3], data_sets=60, rng=1,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    done = [now for now, _ in calls]
    assert done == sorted(done)
    assert {total for _, total in calls} == {120}
    assert done[-1] == 120


# Costs and limits --------------------------------------------------------------------------------------


def test_costs_and_limits() -> None:
    options = {"inconclusive": 0.2, "data_sets": 2, "rng": 1, "replicates": [3, 5], "individuals": [10, 100]}
    limited = plan(TRUTH, max_tests=200, cost_per_individual=7, cost_per_replicate=0.5, **options)
    sizes = [(design.individuals, design.replicates) for design in limited.designs]
    assert sizes == [(10, 3), (66, 3), (10, 5), (40, 5)]
    assert [design.tests for design in limited.designs] == [30, 198, 50, 200]
    assert [design.cost for design in limited.designs] == [85, 66 * 8.5, 95, 40 * 9.5]
    paid = plan(TRUTH, max_cost=100, cost_per_individual=0.7, cost_per_replicate=0.1, **options)
    assert [(x.individuals, x.replicates) for x in paid.designs] == [(10, 3), (100, 3), (10, 5), (83, 5)]
    largest = plan(TRUTH, max_tests=31, **options | {"individuals": []})
    assert [(x.individuals, x.replicates) for x in largest.designs] == [(10, 3), (6, 5)]


def design(individuals: int, replicates: int, value: float, reached: str, probability=None) -> Design:
    tests = individuals * replicates
    return Design(individuals, replicates, tests, float(tests), value, probability, 0.01, 50, reached)


def test_the_cheapest_the_closest_and_the_curve() -> None:
    designs = (
        *(design(100, 2, 0.2, "no"), design(200, 2, 0.1, "perhaps"), design(400, 2, 0.05, "yes")),
        *(design(100, 3, 0.07, "yes"), design(200, 3, 0.03, "yes"), design(10, 9, 0.3, "no")),
    )
    found = Plan("goal: few", designs, "risk")
    assert found.cheapest == designs[3]
    assert found.closest == designs[4]
    assert found.curve["individuals"] == (400, 100, None)
    assert found.curve["cost"] == (800, 300, None)
    assert "probability" not in found.table().columns
    assert found.table()["risk"] == (0.2, 0.1, 0.05, 0.07, 0.03, 0.3)
    assert str(found).splitlines()[1] == (
        "cheapest: 100 individuals × 3 replicates = 300 tests, cost 300 (risk 0.07 ± 0.01)"
    )
    assert str(found).endswith("such designs rest on the prior")
    none = Plan("goal: none", (design(10, 3, 0.4, "no", 0.1), design(20, 3, 0.3, "no", 0.2)), "width")
    assert none.cheapest is None
    assert none.closest.individuals == 20
    assert (
        str(none)
        .splitlines()[1]
        .endswith("20 individuals × 3 replicates = 60 tests, cost 60 (probability 0.20 ± 0.01)")
    )
    assert none._repr_html_().startswith("<table>")


def test_none_of_fifty_is_not_never() -> None:
    goal = _Goal("width", 0.1, LOSS, 0.9, 0.02)
    margin, error = goal.margin(np.full(50, 0.2))
    assert margin == -0.02
    assert 0.01 < error < 0.03
    assert not goal.is_clear(np.full(50, 0.2))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "plan needs one goal of prevalence_width, error_margin, inconclusive, risk, got none"),
        ({"risk": 0.1, "inconclusive": 0.1}, "got inconclusive and risk"),
        ({"prevalence_width": 1.5}, "prevalence_width must be between 0 and 1, got 1.5"),
        ({"error_margin": 0.4}, "error_margin must be between 0 and 0.25, got 0.4"),
        ({"risk": 0}, "risk must be between 0 and inf, got 0"),
        ({"risk": 0.1, "individuals": []}, "individuals must be whole numbers ≥ 1"),
        ({"risk": 0.1, "replicates": [0, 2]}, "replicates must be whole numbers ≥ 1"),
        ({"risk": 0.1, "max_tests": 1}, "the limits leave no design"),
        ({"risk": 0.1, "max_cost": -1}, "max_cost must be a finite number > 0"),
        ({"risk": 0.1, "cost_per_replicate": -1}, "cost_per_replicate must be a finite cost ≥ 0"),
        ({"risk": 0.1, "assurance": 1}, "assurance must be between 0 and 1"),
        ({"risk": 0.1, "level": 0}, "level must be between 0 and 1"),
        ({"risk": 0.1, "data_sets": 1}, "data_sets must be a whole number from 2"),
        ({"risk": 0.1, "rng": None}, "rng must be a numpy Generator"),
        ({"risk": 0.1, "individuals": range(1, 2000)}, "at most 1,000 designs"),
        ({"risk": 0.1, "loss": br.Loss(inconclusive=0)}, "thresholds follow only from costs > 0"),
    ],
)
def test_options_that_make_no_sense(options: dict, sentence: str) -> None:
    with pytest.raises(br.OptionError, match=sentence):
        plan(TRUTH, **{"rng": 1} | options)


@pytest.mark.parametrize("truth", [0.3, br.Rates([0.1, 0.2], 0.1, 0.1), br.Rates(float("nan"), 0.1, 0.1)])
def test_a_truth_is_three_numbers_or_a_prior(truth: object) -> None:
    with pytest.raises(br.OptionError, match="truth must be Rates of three numbers, or a Prior"):
        plan(truth, risk=0.1, rng=1)


@pytest.mark.slow
def test_refining_finds_a_cheaper_design_between_the_sizes() -> None:
    how = {"prevalence_width": 0.2, "individuals": [20, 160], "replicates": [3, 5], "rng": 1}
    coarse = plan(br.Rates(0.3, 0.05, 0.1), data_sets=80, **how)
    fine = plan(br.Rates(0.3, 0.05, 0.1), data_sets=80, refine=True, **how)
    assert coarse.cheapest is not None
    assert fine.cheapest is not None
    assert fine.cheapest.cost < coarse.cheapest.cost
    tried = {design.individuals for design in fine.designs if design.replicates == fine.cheapest.replicates}
    below = max(size for size in tried if size < fine.cheapest.individuals)
    # nothing that could be cheaper lies between it and the last size that is not enough
    assert fine.cheapest.individuals <= 1.1 * below + 1
