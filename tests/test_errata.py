"""Each erratum of docs/errata.md in numbers: what is printed fails, the corrected statement holds.

The second part backs what docs/versus-r.md says of our own behaviour.
"""

from __future__ import annotations

import re
import sys
from itertools import product
from math import comb, log, log10
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import binreps as br
from binreps import theory
from binreps.fits.point.simple import average_score, median_score
from binreps.model import likelihood_score, log_likelihood
from binreps.study.mammography import simulate_mammography
from binreps.study.simulate import simulate_counts

DOCS = Path(__file__).parents[1] / "docs"
MISGUIDED = br.Prior(false_positive=(50, 50), false_negative=(50, 50))
COUNTS = br.CountTable([3, 3, 3, 3, 5, 5, 5], [0, 1, 2, 3, 1, 4, 5], [20, 6, 5, 12, 4, 6, 7])
NOBODY = br.CountTable([], [])


# The paper --------------------------------------------------------------------------------------------


def test_e01_a_missed_positive_is_a_false_negative() -> None:
    """T − X = 1 has the chance θq, which has q in it; T − X = −1 has (1−θ)p."""
    rates = br.Rates(0.3, 0.05, 0.2)
    study = br.simulate(rates, 400_000, 1, rng=1)
    gap = study.truth - study.s
    for value, chance in ((1, 0.3 * 0.2), (-1, 0.7 * 0.05)):
        assert np.mean(gap == value) == pytest.approx(chance, abs=5 * np.sqrt(chance / 400_000))
    assert np.mean(gap) == pytest.approx(0.3 * 0.2 - 0.7 * 0.05, abs=5e-3)


def test_e02_the_m_step_needs_logarithms_of_the_prevalence() -> None:
    """Σ y log θ + (1−y) log(1−θ) peaks at the mean score; with θ in place of log θ it runs to an end."""
    y = likelihood_score(COUNTS.n, COUNTS.s, br.Rates(0.4, 0.1, 0.2))
    positives, negatives = COUNTS.weight @ y, COUNTS.weight @ (1 - y)
    grid = np.linspace(0.001, 0.999, 999)
    correct = positives * np.log(grid) + negatives * np.log(1 - grid)
    printed = positives * grid + negatives * (1 - grid)
    assert grid[np.argmax(correct)] == pytest.approx(positives / COUNTS.individuals, abs=1e-3)
    assert np.argmax(printed) in (0, grid.size - 1)


def test_e03_the_label_switch_crosses_the_error_rates() -> None:
    theta, p, q = 0.3, 0.1, 0.25
    here = log_likelihood(COUNTS, br.Rates(theta, p, q))
    assert log_likelihood(COUNTS, br.Rates(1 - theta, 1 - q, 1 - p)) == pytest.approx(here, abs=1e-11)
    assert abs(log_likelihood(COUNTS, br.Rates(1 - theta, 1 - p, 1 - q)) - here) > 1


def test_e04_relabelling_cannot_keep_both_rates_below_one_half() -> None:
    """p = .1, q = .6 has the twin (1−q, 1−p) = (.4, .9); the mode is found under the constraint instead."""
    p, q = 0.1, 0.6
    assert max(1 - q, 1 - p) > 0.5
    counts = simulate_counts(br.Rates(0.5, p, q), 5000, [6], rng=3)
    fit = br.fit_map(counts)
    assert fit.rates.false_negative == 0.5
    y = likelihood_score(counts.n, counts.s, fit.rates)
    alpha = 1 + counts.weight @ ((counts.n - counts.s) * y)
    beta = 1 + counts.weight @ (counts.s * y)
    best = minimize_scalar(
        lambda x: -alpha * log(x) - beta * log(1 - x), bounds=(1e-6, 0.5), method="bounded"
    )
    assert alpha / (alpha + beta) > 0.5  # where the unconstrained step would go
    assert best.x == pytest.approx(min(0.5, alpha / (alpha + beta)), abs=1e-4)


def test_e05_the_first_interval_of_the_risk_figure_ends_at_the_lower_threshold() -> None:
    loss = br.Loss(false_positive=1, false_negative=2, inconclusive=(0.2, 0.3))
    lower, upper = loss.thresholds
    chance = np.linspace(0, 1, 10_001)
    best = np.argmin(loss.risks(chance), axis=1)
    assert chance[best == 0].max() == pytest.approx(lower, abs=1e-4)
    assert chance[best == 2].min() == pytest.approx(upper, abs=1e-4)
    assert upper - lower > 0.1


def test_e06_the_table_prints_totals(periodontal) -> None:
    n, s, truth = periodontal
    judged = br.evaluate(average_score(n, s), truth, br.Loss(inconclusive=0.45))
    assert judged.total_risk == pytest.approx(11.7)
    assert judged.mean_risk == pytest.approx(0.234)


def test_e07_variances_have_squares() -> None:
    """Every outcome of three individuals, against the corrected formula and the printed one."""
    n, rates = (1, 3, 5), br.Rates(0.4, 0.1, 0.2)
    theta, p, q = rates
    for name, score in (("average", average_score), ("median", median_score)):
        first = second = 0.0
        for s in product(*(range(k + 1) for k in n)):
            pairs = list(zip(n, s, strict=True))
            ways = np.prod([comb(k, x) for k, x in pairs])
            chance = ways * np.exp(sum(log_likelihood(br.CountTable([k], [x]), rates) for k, x in pairs))
            estimate = float(np.mean(score(n, s)))
            first, second = first + chance * estimate, second + chance * estimate**2
        assert theory.prevalence_error(n, rates, score=name).variance == pytest.approx(second - first**2)
        within = np.mean(
            [
                theta * theory.score_moments(k, rates, score=name, status=1).variance
                + (1 - theta) * theory.score_moments(k, rates, score=name, status=0).variance
                for k in n
            ]
        )
        rate = [np.mean(theory.median_mean(n, x)) if name == "median" else x for x in (p, q)]
        printed = (theta * (1 - theta) * (1 - rate[1] + rate[0]) + within) / 3
        assert printed > 1.2 * (second - first**2)


def test_e08_the_training_set_is_a_share_of_the_women() -> None:
    study = simulate_mammography(1)
    readers, women = study.readings.shape
    assert women - round(0.9 * women) == 15
    assert readers - round(0.9 * readers) == 11


def test_e09_a_larger_weight_is_a_harder_woman() -> None:
    """Of two women, the one with three times the weight takes a single error three times out of four."""
    rng = np.random.default_rng(1)
    options = {"healthy": 2, "cancers": 1, "mean_rates": (0.5, 0.5), "spread": 0.0, "missing": ()}
    study = simulate_mammography(rng, readers=20_000, weights=lambda *_: np.array([1.0, 3.0, 1.0]), **options)
    assert study.errors[:, 1].mean() == pytest.approx(0.75, abs=5 * np.sqrt(0.75 * 0.25 / 20_000))
    assert np.all(study.errors[:, :2].sum(axis=1) == 1)


def test_e10_a_new_result_is_evidence_about_the_rates() -> None:
    """The ratio is the score once the individual is among the data; the paper's formula is not."""
    counts = br.CountTable([3, 4, 5, 6], [0, 1, 5, 2], [3, 2, 2, 1])
    fit = br.fit_bayes(counts)
    draws = fit.draws(40_000, rng=2)
    theta, p, q = draws
    for n, s in ((6, 2), (6, 6), (20, 8)):
        afterwards = br.fit_bayes(counts + br.CountTable([n], [s])).score(n, s)
        assert fit.predict(n, s) == pytest.approx(afterwards, abs=1e-9)
        assert abs(fit.predict_paper(n, s) - afterwards) > 0.003
        positive = theta * (1 - q) ** s * q ** (n - s)
        negative = (1 - theta) * p**s * (1 - p) ** (n - s)
        ratio = positive.mean() / (positive + negative).mean()
        assert fit.predict(n, s) == pytest.approx(ratio, abs=0.02)
        assert fit.predict_paper(n, s) == pytest.approx(likelihood_score(n, s, draws).mean(), abs=0.005)


def test_e10_published_predictions(periodontal) -> None:
    n, s, _ = periodontal
    fit, nobody = br.fit_bayes(br.CountTable(n, s)), br.fit_bayes(NOBODY)
    assert fit.predict([6, 20], [2, 8]) == pytest.approx([0.395, 0.348], abs=5e-4)
    assert fit.predict_paper([6, 20], [2, 8]) == pytest.approx([0.464, 0.587], abs=5e-4)
    assert nobody.predict(6, 6) == pytest.approx(0.980, abs=5e-4)
    assert nobody.predict_paper(6, 6) == pytest.approx(0.877, abs=5e-4)


def test_e11_the_classifiers_differ_at_the_ends_of_the_interval() -> None:
    margin = theory.coincidence_margin(range(1, 7))
    assert margin == pytest.approx(0.1)
    assert br.classify(average_score(5, 3), 0.4, 0.6) == 0.5  # 3/5 is on the threshold ½ + δ_0
    assert br.classify(median_score(5, 3), 0.4, 0.6) == 1
    pairs = [(n, s) for n in range(1, 7) for s in range(n + 1)]
    inside = [br.classify(f(*map(np.array, zip(*pairs, strict=True))), 0.401, 0.599) for f in SCORES]
    assert np.array_equal(*inside)


def test_e11_the_classifiers_can_coincide_beyond_the_interval() -> None:
    assert theory.coincidence_margin([4, 6]) == pytest.approx(0.1)
    pairs = [(n, s) for n in (4, 6) for s in range(n + 1)]
    n, s = map(np.array, zip(*pairs, strict=True))
    assert np.array_equal(*(br.classify(score(n, s), 0.35, 0.65) for score in SCORES))


SCORES = (average_score, median_score)


def test_e12_who_misclassifies_more_depends_on_what_counts() -> None:
    s = np.arange(6)
    chance = np.array(
        [comb(5, k) * 0.35**k * 0.65 ** (5 - k) for k in s]
    )  # of the healthy; p = q is symmetric
    answers = [br.classify(score(5, s), 0.15, 0.85) for score in SCORES]
    hard = [chance @ (answer == 1) for answer in answers]
    with_half = [chance @ (answer != 0) for answer in answers]
    risk = [chance @ br.Loss(inconclusive=0.15).cost(0, answer) for answer in answers]
    assert with_half[1] < with_half[0]
    assert hard[0] < hard[1]
    assert risk == pytest.approx([0.137, 0.235], abs=5e-4)


def test_e13_the_limit_of_the_bayes_score_on_a_tie_depends_on_the_data() -> None:
    """θ → ½ and p, q → 0: off ties the median score; at (2, 1) beside (3, 1) it is .400, alone it is ½."""
    for sharp, tol in ((1e4, 2e-3), (1e6, 2e-5)):
        prior = br.Prior((sharp, sharp), (2, sharp), (2, sharp))
        both = br.fit_bayes(br.CountTable([3, 2], [1, 1]), prior).score([3, 2], [1, 1])
        assert both == pytest.approx([0.0, 0.4], abs=tol)
        assert br.fit_bayes(br.CountTable([2], [1]), prior).score(2, 1) == pytest.approx(0.5, abs=1e-6)


def test_admissibility_no_rule_dominates_the_bayes_rule() -> None:
    """The theorem holds: of the 81 rules for three replicates, none is as good everywhere and better once."""
    loss = br.Loss(inconclusive=0.2)
    bayes = tuple(loss.classify(br.fit_bayes(NOBODY).predict(3, range(4))))
    grid = np.array(list(product((0.1, 0.3, 0.5, 0.7, 0.9), (0.02, 0.2, 0.4), (0.02, 0.2, 0.4))))
    risks = {rule: _risk(rule, grid, loss) for rule in product((0.0, 0.5, 1.0), repeat=4)}
    assert len(risks) == 81
    own = risks.pop(bayes)
    assert all(np.any(other > own + 1e-12) for other in risks.values())
    dominated = [rule for rule, risk in risks.items() if np.all(own <= risk)]
    assert (1.0, 1.0, 0.0, 0.0) in dominated  # so the check can fail


def _risk(rule: tuple[float, ...], grid: np.ndarray, loss: br.Loss) -> np.ndarray:
    """Expected loss of a rule for three replicates, at each of the rates."""
    theta, p, q = grid.T[:, :, None]
    s, ways = np.arange(4), np.array([1, 3, 3, 1])
    negative, positive = ways * p**s * (1 - p) ** (3 - s), ways * (1 - q) ** s * q ** (3 - s)
    return np.sum((1 - theta) * negative * loss.cost(0, rule) + theta * positive * loss.cost(1, rule), axis=1)


def test_combinations_follow_the_numbers_of_errors() -> None:
    """64 × .13 ≈ 8 and 84 × .22 ≈ 18 errors, not a half of the women."""
    assert (round(64 * 0.13), round(84 * 0.22)) == (8, 18)
    right, printed = (110 * log10(comb(64, a) * comb(84, b)) for a, b in ((8, 18), (32, 42)))
    assert (round(right), round(printed)) == (3039, 4674)


def test_the_misguided_prior_does_not_call_everyone_infected(periodontal) -> None:
    n, s, truth = periodontal
    fit = br.fit_bayes(br.CountTable(n, s), MISGUIDED)
    (a, b, c), (d, e, f) = br.evaluate(fit.score(n, s), truth, br.Loss(inconclusive=0.45)).counts
    assert (a + d, b + e, c + f) == (2, 11, 37)


def test_the_misguided_posterior_of_the_prevalence_is_not_uniform(periodontal) -> None:
    n, s, _ = periodontal
    fit = br.fit_bayes(br.CountTable(n, s), MISGUIDED)
    assert fit.rates.prevalence == pytest.approx(0.63, abs=5e-3)
    assert fit.marginal("prevalence").cumulative(0.5) < 0.35


def test_the_average_beats_the_map_on_the_periodontal_data(periodontal) -> None:
    n, s, truth = periodontal
    loss = br.Loss(inconclusive=0.45)
    scores = (average_score(n, s), br.fit_map(br.CountTable(n, s)).score(n, s))
    assert [br.evaluate(y, truth, loss).total_risk for y in scores] == pytest.approx([11.7, 11.9])


def test_replicates_belong_to_women_not_to_readers() -> None:
    """Three readers skip 1, 8 and 1 women: they read 147, 140 and 147; nobody has 102 readings."""
    study = simulate_mammography(1)
    assert study.observed[:3].sum(axis=1).tolist() == [147, 140, 147]
    assert study.observed.sum(axis=0).min() >= 107


# The R package -----------------------------------------------------------------------------------------


def test_partly_known_statuses_inform_the_fit() -> None:
    counts = simulate_counts(br.Rates(0.4, 0.1, 0.2), 60, [1, 2], rng=1, known=True)
    partly = br.CountTable(counts.n, counts.s, counts.weight) + counts
    for fit in (br.fit_map, br.fit_bayes):
        with_labels, without = fit(partly).rates, fit(partly.forget_known()).rates
        assert np.max(np.abs(np.array(list(with_labels)) - list(without))) > 0.02
    assert br.fit_bayes(partly).sd.prevalence < br.fit_bayes(partly.forget_known()).sd.prevalence


def test_fully_known_statuses_keep_the_prior_unless_asked() -> None:
    counts = br.CountTable([4, 4], [1, 3], [5, 5], known=[0, 1])
    assert br.fit_map(counts).rates.false_positive == pytest.approx((5 + 1) / (20 + 2))
    assert br.fit_known(counts).rates.false_positive == 5 / 20


def test_error_rates_never_exceed_one_half() -> None:
    """Data in which one class looks inverted: an unconstrained EM would end with q > ½."""
    counts = br.CountTable([5, 5], [0, 2], [50, 50])
    for rates in (
        br.fit_map(counts).rates,
        br.fit_map(counts, algorithm="em", rng=1).rates,
        br.fit_bayes(counts).rates,
    ):
        assert rates.false_positive <= 0.5
        assert rates.false_negative <= 0.5
    assert br.fit_map(counts).rates.false_negative == 0.5


def test_the_switch_of_the_r_package_would_change_the_posterior() -> None:
    """(θ, p, q) → (1−θ, 1−p, 1−q) is not a symmetry of the data's likelihood unless p = q."""
    switched = [log_likelihood(COUNTS, rates) for rates in (br.Rates(0.3, 0.6, 0.8), br.Rates(0.7, 0.4, 0.2))]
    assert abs(switched[0] - switched[1]) > 0.1


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_many_replicates_do_not_underflow(n: int) -> None:
    s = [n // 10, 9 * n // 10]
    assert 0.9 ** (0.9 * n) * 0.1 ** (0.1 * n) < sys.float_info.min or n == 1_000
    counts = br.CountTable([n, n], s, [30, 20])
    for fit in (br.fit_map(counts), br.fit_bayes(counts)):
        assert fit.rates.prevalence == pytest.approx(0.4, abs=0.02)
        assert fit.score([n, n], s) == pytest.approx([0, 1], abs=1e-12)
        assert np.isfinite(log_likelihood(counts, fit.rates))


def test_a_rate_of_zero_gives_a_score_and_not_nan() -> None:
    assert likelihood_score(3, [1, 3], br.Rates(0.4, 0.1, 0.0)) == pytest.approx([0, 0.4 / 0.4006])


def test_no_seed_changes_a_fit() -> None:
    for fit in (br.fit_map, br.fit_bayes):
        np.random.seed(1)  # noqa: NPY002 (the global state, which must not matter)
        first = fit(COUNTS).rates
        np.random.seed(2)  # noqa: NPY002
        assert fit(COUNTS).rates == first


def test_a_score_on_a_threshold_up_to_rounding_is_on_it() -> None:
    assert 9 / 11 > 1 - 2 / 11  # as floats
    assert br.classify(9 / 11, 2 / 11, 1 - 2 / 11) == 0.5


def test_individuals_without_replicates_are_taken() -> None:
    counts = COUNTS + br.CountTable([0], [0], [7])
    assert tuple(br.fit_bayes(counts).rates) == pytest.approx(tuple(br.fit_bayes(COUNTS).rates), abs=1e-9)


# The pages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["errata.md", "versus-r.md", "paper.md"])
def test_tests_named_in_the_pages_exist(page: str) -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", (DOCS / page).read_text(encoding="utf-8")))
    missing = {name for name in named if f"def {name}(" not in tests}
    assert not missing


def test_every_erratum_has_a_page_entry_and_a_test() -> None:
    page, own = (DOCS / "errata.md").read_text(encoding="utf-8"), Path(__file__).read_text(encoding="utf-8")
    for k in range(1, 14):
        assert f"## E{k} " in page
        assert f"def test_e{k:02d}_" in own
        assert f"`test_e{k:02d}_" in page
