"""The closed forms against every outcome counted out, mpmath, simulation and root search."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import comb, nan, prod

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from binreps.errors import DataError, OptionError
from binreps.model import Rates
from binreps.study.theory import (
    SCORES,
    EstimateError,
    Score,
    classifier_performance,
    classifier_risk,
    classifiers_coincide,
    coincidence_margin,
    harmonic_mean,
    majority_probability,
    median_mean,
    median_more_biased,
    median_variance,
    prevalence_error,
    risk_curve,
    risk_jumps,
    score_moments,
    tie_probability,
)

HALF = Fraction(1, 2)
RATES = [Rates(0.4, 0.1, 0.2), Rates(0.05, 0.35, 0.02), Rates(0.7, 0.6, 0.3), Rates(0.3, 0.0, 1.0)]

facts = settings(deadline=None, derandomize=True, max_examples=60)
error_rates = st.floats(0.001, 0.499)
replicates = st.integers(1, 60)
straddling = st.tuples(st.floats(0.01, 0.5), st.floats(0.5, 0.99))


def close(value, expected, rel=1e-13, absolute=1e-300):  # subnormal numbers have few digits
    np.testing.assert_allclose(value, np.asarray(expected, dtype=float), rtol=rel, atol=absolute)


# Oracles: every outcome of every replicate, in exact fractions.


@cache
def outcomes(n, chance):
    """Every sequence of n replicates, added up to (number of positives, probability)."""
    a = Fraction(chance)
    total = dict.fromkeys(range(n + 1), Fraction(0))
    for sequence in product((0, 1), repeat=n):
        total[sum(sequence)] += prod((a if x else 1 - a for x in sequence), start=Fraction(1))
    return tuple(total.items())


def score_of(score, n, s):
    """The score by its definition."""
    if score == "average":
        return Fraction(s, n)
    return Fraction(2 * s > n) + HALF * (2 * s == n)


def states(score, n, rates):
    """Every (status, score) of one individual, with its probability."""
    theta, p, q = map(Fraction, rates)
    for s, probability in outcomes(n, p):
        yield 0, score_of(score, n, s), (1 - theta) * probability
    for s, probability in outcomes(n, 1 - q):
        yield 1, score_of(score, n, s), theta * probability


def moments(pairs):
    """Mean and variance of (value, probability) pairs, whose probabilities need not sum to 1."""
    pairs = list(pairs)
    total = sum(w for _, w in pairs)
    mean = sum(w * y for y, w in pairs) / total
    return mean, sum(w * (y - mean) ** 2 for y, w in pairs) / total


def estimate_moments(score, n, rates):
    """Mean and variance of the mean score over every joint outcome of a few individuals."""
    each = [[(y, w) for _, y, w in states(score, k, rates)] for k in n]
    merged = [[(y, sum(w for z, w in one if z == y)) for y in {y for y, _ in one}] for one in each]
    return moments(
        (sum(y for y, _ in joint) / len(n), prod((w for _, w in joint), start=Fraction(1)))
        for joint in product(*merged)
    )


def answer_of(y, lower, upper):
    """Φ by its definition."""
    return Fraction(0) if y < lower else Fraction(1) if y > upper else HALF


def answer_probability(score, n, rates, lower, upper, status, answer):
    """P(answer | status), counted out."""
    kept = [(y, w) for t, y, w in states(score, n, rates) if t == status]
    hit = sum(w for y, w in kept if answer_of(y, lower, upper) == answer)
    return hit / sum(w for _, w in kept)


def counted_risk(score, n, rates, costs, lower, upper):
    """Expected loss, counted out."""
    a, b, c, d = map(Fraction, costs)
    loss = {(0, HALF): a, (0, 1): b, (1, 0): c, (1, HALF): d}
    return sum(
        w * loss.get((t, answer_of(y, lower, upper)), Fraction(0)) for t, y, w in states(score, n, rates)
    )


# Primitives.


@pytest.mark.parametrize("n", range(8))
@pytest.mark.parametrize("chance", [0.0, 1e-7, 0.1, 0.35, 0.5, 0.8, 1.0])
def test_primitives_match_every_outcome(n, chance):
    u = sum(w for s, w in outcomes(n, chance) if 2 * s > n)
    v = sum(w for s, w in outcomes(n, chance) if 2 * s == n)
    close(majority_probability(n, chance), u)
    close(tie_probability(n, chance), v)
    if n:
        mean, variance = moments((score_of("median", n, s), w) for s, w in outcomes(n, chance))
        close(median_mean(n, chance), mean)
        close(median_variance(n, chance), variance, absolute=1e-16 * (chance > 0.5))


@pytest.mark.parametrize(
    ("n", "chance"),
    [
        (31, 0.3),
        (32, 0.3),
        (33, 1e-9),
        (100, 0.01),
        (1000, 0.1),
        (1001, 0.49),
        (10**4, 0.45),
        (10**5, 0.45),
        (10**6, 0.49),
        (10**6, 0.4999),
        (10**6 - 1, 0.49),
        (10**6, 0.5),
    ],
)
def test_tails_keep_their_relative_accuracy(n, chance):
    with mpmath.workdps(40):
        a, first = mpmath.mpf(chance), n // 2 + 1
        term = mpmath.binomial(n, first) * a**first * (1 - a) ** (n - first)
        u = mpmath.mpf(0)
        for s in range(first, n + 1):
            u += term
            if term < u * mpmath.mpf(10) ** -25:
                break
            term *= (n - s) * a / ((s + 1) * (1 - a))
        v = mpmath.binomial(n, n // 2) * (a * (1 - a)) ** (n // 2) if n % 2 == 0 else mpmath.mpf(0)
        gamma = u * (1 - u) + v * (1 - v) / 4 - u * v
        delta = u + v / 2
    assert u > 0
    close(majority_probability(n, chance), u, rel=5e-12)
    close(tie_probability(n, chance), v, rel=5e-13)
    close(median_mean(n, chance), delta, rel=5e-12)
    close(median_variance(n, chance), gamma, rel=5e-12)


def test_ties_of_a_fair_coin_are_central_binomial_coefficients():
    m = np.arange(0, 60)
    close(tie_probability(2 * m, 0.5), [Fraction(comb(2 * k, k), 4**k) for k in m.tolist()], rel=3e-15)


@facts
@given(n=st.integers(1, 10**6), chance=st.floats(0, 1))
def test_mean_and_variance_are_symmetric(n, chance):
    close(1 - median_mean(n, chance), median_mean(n, 1 - chance), absolute=1e-14)
    close(median_variance(n, chance), median_variance(n, 1 - chance), rel=1e-10, absolute=1e-14)


@facts
@given(n=st.integers(1, 2000), chance=st.floats(0, 1))
def test_the_mean_is_the_majority_and_half_of_the_ties(n, chance):
    u, v = majority_probability(n, chance), tie_probability(n, chance)
    close(median_mean(n, chance), u + v / 2, rel=1e-12)
    close(median_variance(n, chance), u * (1 - u) + v * (1 - v) / 4 - u * v, rel=1e-11, absolute=1e-15)


@facts
@given(chance=st.floats(0, 1))
def test_one_or_two_replicates_leave_the_rate_exactly_as_it_is(chance):
    assert median_mean(1, chance) == median_mean(2, chance) == chance


@facts
@given(m=st.integers(1, 10**5), chance=st.floats(0, 1))
def test_an_even_replicate_adds_nothing_to_the_mean(m, chance):
    total = majority_probability(2 * m, chance) + tie_probability(2 * m, chance) / 2
    close(total, majority_probability(2 * m - 1, chance), rel=1e-10)


@facts
@given(chance=st.floats(1e-6, 0.4999))
def test_the_mean_decreases_to_zero_below_one_half(chance):
    odd = median_mean(np.arange(1, 60, 2), chance)
    assert np.all(np.diff(odd) < 0)
    assert median_mean(10**10, chance) < 1e-9


def test_no_replicates_have_no_median_but_tie_by_definition():
    assert np.isnan(median_mean(0, 0.3))
    assert np.isnan(median_variance(0, 0.3))
    assert (majority_probability(0, 0.3), tie_probability(0, 0.3)) == (0, 1)


# Moments of scores and estimates.


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("n", range(1, 7))
def test_score_moments_match_every_outcome(score: Score, rates, n):
    everything = list(states(score, n, rates))
    for status in (None, 0, 1):
        expected = moments((y, w) for t, y, w in everything if status in (None, t))
        found = score_moments(n, rates, score=score, status=status)
        close(found.mean, expected[0])
        close(found.variance, expected[1])


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("n", [(3,), (1, 2, 3), (4, 4, 5), (2, 6)])
def test_prevalence_error_matches_every_joint_outcome(score: Score, rates, n):
    mean, variance = estimate_moments(score, n, rates)
    found = prevalence_error([*n, 0], rates, score=score)  # the individual without a replicate is left out
    close(found.bias, mean - Fraction(rates.prevalence), absolute=1e-16)
    close(found.variance, variance)
    close(found.root_mean_square**2, (mean - Fraction(rates.prevalence)) ** 2 + variance)


def test_the_printed_unsquared_variances_are_wrong():  # E7
    n, rates = (1, 3, 5), Rates(0.4, 0.1, 0.2)
    theta, p, q = rates
    delta_p, delta_q = median_mean(n, p).mean(), median_mean(n, q).mean()
    within = theta * q * (1 - q) + (1 - theta) * p * (1 - p)
    within_median = np.mean(theta * median_variance(n, q) + (1 - theta) * median_variance(n, p))
    printed = {
        "average": (theta * (1 - theta) * (1 - q + p) + within / harmonic_mean(n)) / 3,
        "median": (theta * (1 - theta) * (1 - delta_q + delta_p) + within_median) / 3,
    }
    for score in SCORES:
        _, variance = estimate_moments(score, n, rates)
        assert printed[score] > 1.2 * variance
        close(prevalence_error(n, rates, score=score).variance, variance)


def test_the_median_needs_the_mean_of_the_squares():  # E7
    n, rates = (1, 9), Rates(0.4, 0.3, 0.3)
    _, variance = estimate_moments("median", n, rates)
    theta, p, q = rates
    gaps = 1 - median_mean(n, p) - median_mean(n, q)
    within = np.mean(theta * median_variance(n, q) + (1 - theta) * median_variance(n, p))
    square_of_mean = (theta * (1 - theta) * gaps.mean() ** 2 + within) / 2
    mean_of_squares = (theta * (1 - theta) * np.mean(gaps**2) + within) / 2
    close(mean_of_squares, variance)
    assert square_of_mean < 0.97 * variance


def test_the_average_error_is_the_formula_in_the_harmonic_mean():
    n, (theta, p, q) = [1, 2, 2, 6], RATES[0]
    expected = theta * (1 - theta) * (1 - p - q) ** 2
    expected += (theta * q * (1 - q) + (1 - theta) * p * (1 - p)) * (1 + 0.5 + 0.5 + 1 / 6) / 4
    close(harmonic_mean(n), 24 / 13)
    close(prevalence_error(n, RATES[0], score="average").variance, expected / 4)


@pytest.mark.parametrize("score", SCORES)
def test_weights_stand_for_individuals(score: Score):
    rates = RATES[0]
    each = prevalence_error([3, 5, 3, 0, 3], rates, score=score)
    cells = prevalence_error([5, 3, 0, 7], rates, score=score, weight=[1, 3, 5, 0])
    close([cells.bias, cells.variance], [each.bias, each.variance])
    many = prevalence_error([3, 5], rates, score=score, weight=[3 * 10**9, 10**9])
    close([many.bias, many.variance * 10**9], [each.bias, each.variance])
    assert harmonic_mean([3, 5, 0], weight=[3, 1, 9]) == harmonic_mean([3, 3, 3, 5])


@pytest.mark.parametrize("score", SCORES)
def test_arrays_of_rates_give_arrays(score: Score):
    theta = np.linspace(0, 1, 5)
    together = Rates(theta[:, None], [0.1, 0.2, 0.3], 0.05)
    n = [1, 3, 4]
    error = prevalence_error(n, together, score=score)
    risk = classifier_risk(n, together, (0.2, 1, 2, 0.3), lower=0.4, upper=0.6, score=score)
    marginal = score_moments(4, together, score=score)
    for i, j in np.ndindex(5, 3):
        rates = Rates(theta[i], [0.1, 0.2, 0.3][j], 0.05)
        one = prevalence_error(n, rates, score=score)
        close([error.bias[i, j], error.variance[i, j]], [one.bias, one.variance], absolute=1e-17)
        close(risk[i, j], classifier_risk(n, rates, (0.2, 1, 2, 0.3), lower=0.4, upper=0.6, score=score))
        close(marginal.variance[i, j], score_moments(4, rates, score=score).variance)


@pytest.mark.parametrize("score", SCORES)
def test_nothing_is_defined_without_a_replicate(score: Score):
    rates = RATES[0]
    moment = score_moments([0, 3], rates, score=score)
    performance = classifier_performance([0, 3], rates, lower=0.4, upper=0.6, score=score)
    parts = [moment.mean, moment.variance, performance.sensitivity, performance.specificity]
    parts += [performance.given_negative.inconclusive, performance.risk((1, 1, 1, 1))]
    assert all(np.array_equal(np.isnan(part), [True, False]) for part in parts)
    for n in ([], [0, 0]):
        error = prevalence_error(n, rates, score=score)
        low, high = median_more_biased(n, 0.1, 0.2)
        values = [error.bias, error.variance, low, high, harmonic_mean(n), coincidence_margin(n)]
        values.append(risk_curve(n, rates, 0.3, score=score))
        assert np.all(np.isnan(values))
    assert risk_jumps([0]).size == 0
    assert classifiers_coincide([0, 3], lower=0.4, upper=0.6)


@pytest.mark.parametrize("score", SCORES)
def test_an_undefined_rate_makes_the_result_undefined(score: Score):
    performance = classifier_performance(3, Rates(0.4, nan, 0.2), lower=0.4, upper=0.6, score=score)
    answers = performance.given_negative
    assert np.isnan([answers.negative, answers.inconclusive, answers.positive]).all()
    assert performance.sensitivity > 0
    assert np.isnan(prevalence_error([3, 4], Rates(0.4, nan, 0.2), score=score).variance)


# Where the median is more biased.


def counted_biases(n, p, q, theta):
    """|bias| of the average and of the median."""
    rates = Rates(theta, p, q)
    means = [[moments((y, w) for _, y, w in states(score, k, rates))[0] for k in n] for score in SCORES]
    return [abs(sum(mean) / len(n) - Fraction(theta)) for mean in means]


@pytest.mark.parametrize(("n", "p", "q"), [((3,), 0.1, 0.2), ((1, 4, 5), 0.3, 0.05), ((2, 6), 0.45, 0.4)])
def test_interval_ends_are_where_the_biases_cross(n, p, q):
    low, high = median_more_biased(n, p, q)
    assert 0 < low < high < 1

    def excess(theta):
        average, median = counted_biases(n, p, q, theta)
        return float(median - average)

    middle = (low + high) / 2
    assert excess(middle) > 0
    close(brentq(excess, 0, middle, xtol=1e-15, rtol=1e-14), low, rel=1e-11)
    close(brentq(excess, middle, 1, xtol=1e-15, rtol=1e-14), high, rel=1e-11)


@facts
@given(
    n=st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(lambda n: max(n) > 2),
    p=error_rates,
    q=error_rates,
    theta=st.floats(0, 1),
)
def test_the_median_is_more_biased_exactly_inside_the_interval(n, p, q, theta):
    low, high = median_more_biased(n, p, q)
    rates = Rates(theta, p, q)
    average, median = (abs(prevalence_error(n, rates, score=score).bias) for score in SCORES)
    if abs(median - average) > 1e-12:
        assert (median > average) == (low < theta < high)


def test_the_interval_is_empty_for_equal_rates_and_undefined_up_to_two_replicates():
    low, high = median_more_biased([3, 8], [0.1, 0.3], [0.1, 0.3])
    assert low.tolist() == high.tolist() == [0.5, 0.5]
    assert np.isnan(median_more_biased([1, 2, 2], 0.1, 0.2)).all()
    assert np.isnan(median_more_biased([3, 4], [0, 0.5], [0, 0.5])).all()
    assert median_more_biased([3], 0, 0.2) == (0, 0)


def test_individuals_with_two_replicates_cancel_exactly_from_one_end():
    _, high = median_more_biased([2, 3], 0.1, 0.2, weight=[10**12, 1])
    gap_p, gap_q = (a - 3 * a**2 + 2 * a**3 for a in (0.1, 0.2))  # a − δ(3, a)
    close(high, gap_p / (gap_p + gap_q), rel=1e-12)


def test_the_length_of_the_interval_vanishes_but_not_monotonically():
    ends = [median_more_biased(n, 0.3, 0.45) for n in (3, 9, 51, 10**5)]
    lengths = [high - low for low, high in ends]
    assert lengths[0] < lengths[1] > lengths[2]
    assert lengths[3] < 1e-9


# Classifiers.

THRESHOLDS = sorted({Fraction(i, d) for d in (2, 3, 4, 5, 6, 7, 20) for i in range(1, d)})


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n", range(1, 7))
def test_answers_match_every_outcome_on_and_off_the_grid(score: Score, n):
    rates = Rates(0.4, 0.15, 0.3)
    for lower, upper in product(THRESHOLDS[::3], THRESHOLDS[1::3]):
        if lower > upper:
            continue
        found = classifier_performance(n, rates, lower=float(lower), upper=float(upper), score=score)
        for status, answers in enumerate((found.given_negative, found.given_positive)):
            expected = [
                answer_probability(score, n, rates, lower, upper, status, answer) for answer in (0, HALF, 1)
            ]
            close([answers.negative, answers.inconclusive, answers.positive], expected, absolute=1e-15)
        assert found.specificity == found.given_negative.negative
        assert found.sensitivity == found.given_positive.positive


def test_a_threshold_that_rounds_to_an_attainable_average_is_that_average():
    mirrored_wrong = 0
    for n in range(3, 60):
        s = np.arange(1, (n + 1) // 2)
        mirrored_wrong += np.sum(1 - s / n < (n - s) / n)
        found = classifier_performance(n, Rates(0.5, 0.5, 0.5), lower=s / n, upper=1 - s / n, score="average")
        expected = [1 - 2 * sum(comb(n, j) for j in range(k)) / 2**n for k in s]
        close(found.given_negative.inconclusive, expected, rel=1e-12)
    assert mirrored_wrong > 0  # comparing s/n with the double 1 − a would have failed


def test_thresholds_next_to_zero_and_one_leave_unanimous_results_decided():
    found = classifier_performance(
        3, Rates(0.5, 0.2, 0.2), lower=5e-324, upper=np.nextafter(1, 0), score="average"
    )
    close([found.specificity, found.sensitivity], [0.512, 0.512])


@facts
@given(n=replicates, p=error_rates, q=error_rates, cut=straddling, theta=st.floats(0, 1))
def test_answers_sum_to_one_and_mirror(n, p, q, cut, theta):
    lower, upper = cut
    for score in SCORES:
        found = classifier_performance(n, Rates(theta, p, q), lower=lower, upper=upper, score=score)
        swapped = classifier_performance(
            n, Rates(1 - theta, q, p), lower=1 - upper, upper=1 - lower, score=score
        )
        for answers in (found.given_negative, found.given_positive):
            close(answers.negative + answers.inconclusive + answers.positive, 1, rel=1e-12)
        close(swapped.given_positive.positive, found.given_negative.negative, rel=1e-12)
        close(swapped.given_positive.negative, found.given_negative.positive, rel=1e-12)
        close(
            swapped.given_positive.inconclusive, found.given_negative.inconclusive, rel=1e-9, absolute=1e-15
        )


def test_rare_errors_keep_their_relative_accuracy():
    q = 1e-9
    found = classifier_performance(5, Rates(0.5, q, q), lower=0.5, upper=0.5, score="average")
    expected = 10 * q**3 * (1 - q) ** 2 + 5 * q**4 * (1 - q) + q**5
    close([found.given_positive.negative, found.given_negative.positive], [expected, expected])
    unsure = classifier_performance(6, Rates(0.5, q, q), lower=0.4, upper=0.6, score="average")
    expected = 20 * q**3 * (1 - q) ** 3
    close([unsure.given_positive.inconclusive, unsure.given_negative.inconclusive], [expected, expected])


@facts
@given(n=replicates, p=error_rates)
def test_the_median_is_the_average_cut_at_one_half(n, p):
    rates = Rates(0.4, p, 0.2)
    average = classifier_performance(n, rates, lower=0.5, upper=0.5, score="average").given_negative
    median = classifier_performance(n, rates, lower=0.1, upper=0.9, score="median").given_negative
    assert vars(average) == vars(median)
    close(median.positive, majority_probability(n, p))
    close(median.inconclusive, tie_probability(n, p), rel=1e-12)


def test_thresholds_on_one_side_of_one_half_settle_ties():
    rates = Rates(0.4, 0.3, 0.2)
    below = classifier_performance(4, rates, lower=0.2, upper=0.4, score="median")
    above = classifier_performance(4, rates, lower=0.6, upper=0.8, score="median")
    assert below.given_negative.inconclusive == above.given_negative.inconclusive == 0
    close(below.given_negative.positive, majority_probability(4, 0.3) + tie_probability(4, 0.3))
    close(above.given_negative.positive, majority_probability(4, 0.3))


@facts
@given(
    n=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    shift=st.tuples(st.floats(-0.999, 0.999), st.floats(-0.999, 0.999)).map(sorted),
)
def test_thresholds_within_the_margin_make_the_classifiers_coincide(n, shift):
    lower, upper = (0.5 + coincidence_margin(n) * part for part in shift)
    if lower > 0 and upper < 1:
        assert classifiers_coincide(n, lower=lower, upper=upper)


@facts
@given(
    n=st.lists(st.integers(1, 9), min_size=1, max_size=3), lower=st.integers(1, 59), upper=st.integers(1, 59)
)
def test_coincidence_is_equality_of_every_answer(n, lower, upper):
    low, high = sorted((Fraction(lower, 60), Fraction(upper, 60)))
    equal = all(
        answer_of(score_of("average", k, s), low, high) == answer_of(score_of("median", k, s), low, high)
        for k in n
        for s in range(k + 1)
    )
    assert classifiers_coincide(n, lower=float(low), upper=float(high)) == equal


def test_the_classifiers_differ_at_the_ends_of_the_margin():  # E11
    n = range(1, 7)
    margin = coincidence_margin(n)
    assert margin == 0.1
    assert answer_of(Fraction(3, 5), HALF, Fraction(3, 5)) == HALF  # the average of (5, 3); its median says 1
    assert not classifiers_coincide(n, lower=0.5, upper=0.5 + margin)
    assert not classifiers_coincide(n, lower=0.5 - margin, upper=0.5)
    assert classifiers_coincide(n, lower=0.401, upper=0.599)
    average, median = (
        classifier_performance(5, Rates(0.4, 0.1, 0.2), lower=0.5, upper=0.6, score=score) for score in SCORES
    )
    close(median.sensitivity - average.sensitivity, 10 * 0.8**3 * 0.2**2, rel=1e-12)


def test_the_margin_is_not_necessary_if_the_odd_number_is_missing():  # E11
    assert coincidence_margin([4, 6]) == 0.1
    assert classifiers_coincide([4, 6], lower=0.35, upper=0.65)
    assert not classifiers_coincide([4, 5, 6], lower=0.35, upper=0.65)
    assert [coincidence_margin(k) for k in (1, 2, 3, 4, 5)] == [1 / 2, 1 / 2, 1 / 6, 1 / 6, 1 / 10]


# Risks.


@facts
@given(n=replicates, p=error_rates, q=error_rates, cut=straddling, theta=st.floats(0.01, 0.99))
def test_who_misclassifies_more_depends_on_the_inconclusive_answers(n, p, q, cut, theta):  # E12
    average, median = (
        classifier_performance(n, Rates(theta, p, q), lower=cut[0], upper=cut[1], score=score)
        for score in SCORES
    )
    assert median.sensitivity >= average.sensitivity
    assert median.specificity >= average.specificity
    with_half = [x.misclassification(inconclusive_is_error=True) for x in (average, median)]
    without_half = [x.misclassification(inconclusive_is_error=False) for x in (average, median)]
    assert with_half[1] <= with_half[0] * (1 + 1e-12)
    assert without_half[0] <= without_half[1] * (1 + 1e-12)


def test_either_score_can_win_in_risk():  # E12
    rates = Rates(0.4, 0.35, 0.35)
    average, median = (risk_curve(5, rates, 0.15, score=score) for score in SCORES)
    close(average, 0.15 * (1 - 0.65**5 - 0.35**5) + 0.35**5)
    close(median, sum(comb(5, s) * 0.35**s * 0.65 ** (5 - s) for s in (3, 4, 5)))
    assert (round(average, 3), round(median, 3)) == (0.137, 0.235)
    strict = Rates(0.4, 0.05, 0.05)
    assert risk_curve(5, strict, 0.15, score="average") > risk_curve(5, strict, 0.15, score="median")


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    "costs", [(0.2, 1, 2, 0.3), (0, 1, 1, 0), (1, 1, 1, 1), (1, 1, 0, 0), (0.5, 3, 7, 0)]
)
def test_risk_matches_every_outcome(score: Score, costs):
    rates, lower, upper = Rates(0.3, 0.15, 0.25), Fraction(1, 3), Fraction(3, 5)
    expected = [counted_risk(score, n, rates, costs, lower, upper) for n in (3, 5, 6)]
    options = {"lower": 1 / 3, "upper": 0.6, "score": score}
    close(classifier_performance([3, 5, 6], rates, **options).risk(costs), expected)
    weighted = (2 * expected[0] + 5 * expected[1] + expected[2]) / 8
    close(classifier_risk([6, 3, 0, 5], rates, costs, weight=[1, 2, 9, 5], **options), weighted)


def test_misclassification_is_a_risk_and_unit_costs_complement_the_correct_answers():
    found = classifier_performance(5, Rates(0.3, 0.15, 0.25), lower=0.4, upper=0.6, score="average")
    correct = 0.3 * found.sensitivity + 0.7 * found.specificity
    close(found.misclassification(inconclusive_is_error=True), 1 - correct)
    wrong = 0.3 * found.given_positive.negative + 0.7 * found.given_negative.positive
    close(found.misclassification(inconclusive_is_error=False), wrong)


@pytest.mark.parametrize("score", SCORES)
def test_risk_curves_match_every_outcome_also_at_the_jumps(score: Score):
    rates, n = Rates(0.4, 0.15, 0.25), (3, 5, 6)
    a = sorted(
        {*map(Fraction, ("0.05", "0.15", "0.45", "0.5")), *(Fraction(s, k) for k in n for s in (1, 2))}
    )
    a = [cost for cost in a if cost <= HALF]
    expected = [
        sum(counted_risk(score, k, rates, (cost, 1, 1, cost), cost, 1 - cost) for k in n) / 3 for cost in a
    ]
    close(risk_curve(n, rates, [float(cost) for cost in a], score=score), expected)


def test_the_curve_of_the_median_is_linear():
    n, rates = (2, 3, 6), Rates(0.4, 0.15, 0.25)
    slope = np.mean(0.6 * tie_probability(n, 0.15) + 0.4 * tie_probability(n, 0.25))
    start = np.mean(0.6 * majority_probability(n, 0.15) + 0.4 * majority_probability(n, 0.25))
    a = np.array([1e-300, 1e-17, 0.01, 0.2, 1 / 3, 0.5])
    close(risk_curve(n, rates, a, score="median"), start + slope * a)


def test_the_curve_of_the_average_is_linear_between_its_jumps_and_left_continuous():
    n, rates = (3, 5, 6), Rates(0.4, 0.15, 0.25)
    jumps = risk_jumps(n)
    assert jumps.tolist() == [1 / 6, 1 / 5, 1 / 3, 2 / 5]
    for left, right in pairwise([1e-9, *jumps, 0.5]):
        a = left + (right - left) * np.array([1e-9, 0.3, 0.8, 1])
        values = risk_curve(n, rates, a, score="average")
        slopes = np.diff(values) / np.diff(a)
        close(slopes, np.full(3, slopes[0]), rel=1e-6)
    before, after = (risk_curve(n, rates, jumps + step, score="average") for step in (-1e-12, 1e-12))
    close(risk_curve(n, rates, jumps, score="average"), before, rel=1e-11)
    assert np.all(np.abs(after - before) > 1e-3)
    ends = [risk_curve(n, rates, 0.5, score=score) for score in SCORES]
    close(ends[0], ends[1])


@facts
@given(st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_jumps_are_the_attainable_averages_below_one_half(n):
    expected = sorted({Fraction(s, k) for k in n for s in range(1, k) if 2 * s < k})
    assert risk_jumps(n).tolist() == [float(jump) for jump in expected]


# Simulation, for sizes no enumeration reaches.


def test_simulated_scores_and_answers_agree():
    rng = np.random.default_rng(20260131)
    size, n, rates = 200_000, 400, Rates(0.3, 0.47, 0.44)
    status = rng.random(size) < rates.prevalence
    s = rng.binomial(n, np.where(status, 1 - rates.false_negative, rates.false_positive))
    y = {"average": s / n, "median": (2 * s > n) + 0.5 * (2 * s == n)}
    for score in SCORES:
        found = score_moments(n, rates, score=score)
        centred = (y[score] - found.mean) ** 2
        performance = classifier_performance(n, rates, lower=0.48, upper=0.53, score=score)
        answers = np.where(y[score] < 0.48, 0, np.where(y[score] > 0.53, 1, 0.5))
        p = [performance.specificity, performance.sensitivity, performance.given_positive.inconclusive]
        hits = [answers[~status] == 0, answers[status] == 1, answers[status] == 0.5]
        z = [(y[score].mean() - found.mean) / np.sqrt(found.variance / size)]
        z.append((centred.mean() - found.variance) / (centred.std() / np.sqrt(size)))
        z += [(h.mean() - x) / np.sqrt(x * (1 - x) / h.size) for h, x in zip(hits, p, strict=True)]
        assert np.max(np.abs(z)) < 4


@pytest.mark.parametrize("score", SCORES)
def test_simulated_prevalence_estimates_agree(score: Score):
    rng = np.random.default_rng(8)
    size, n, rates = 20_000, np.repeat([2, 3, 4, 5, 6, 51], 5), Rates(0.2, 0.1, 0.3)
    status = rng.random((size, n.size)) < rates.prevalence
    s = rng.binomial(n, np.where(status, 1 - rates.false_negative, rates.false_positive))
    y = s / n if score == "average" else (2 * s > n) + 0.5 * (2 * s == n)
    errors = y.mean(axis=1) - rates.prevalence
    found = prevalence_error(n, rates, score=score)
    assert abs(errors.mean() - found.bias) < 4 * np.sqrt(found.variance / size)
    centred = (errors - found.bias) ** 2
    assert abs(centred.mean() - found.variance) < 4 * centred.std() / np.sqrt(size)


# Refusals.


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: median_mean(-1, 0.1), DataError, "n must be whole numbers"),
        (lambda: median_mean(2.5, 0.1), DataError, "n must be whole numbers"),
        (lambda: median_mean(3, 1.5), OptionError, "chance must be between 0 and 1, got 1.5"),
        (lambda: tie_probability(3, nan), OptionError, "chance must be between 0 and 1, got nan"),
        (lambda: median_variance(3, "x"), OptionError, "chance must be a number .* got 'x'"),
        (lambda: score_moments(3, RATES[0], score="mode"), OptionError, "score must be .* got 'mode'"),
        (
            lambda: score_moments(3, RATES[0], score="median", status=2),
            OptionError,
            "status must be .* got 2",
        ),
        (
            lambda: prevalence_error([3, 4], RATES[0], score="median", weight=[1]),
            DataError,
            r"weight must be as long as n \(2\), got 1",
        ),
        (lambda: harmonic_mean([3], weight=[-1]), DataError, "weight must be whole numbers"),
        (
            lambda: median_more_biased(3, 0.6, 0.1),
            OptionError,
            "false_positive must be between 0 and 0.5, got 0.6",
        ),
        (
            lambda: median_more_biased(3, 0.1, 0.6),
            OptionError,
            "false_negative must be between 0 and 0.5, got 0.6",
        ),
        (
            lambda: classifiers_coincide(3, lower=0.6, upper=0.4),
            OptionError,
            "lower ≤ upper < 1, got 0.6 and 0.4",
        ),
        (lambda: classifiers_coincide(3, lower=0, upper=0.4), OptionError, "0 < lower"),
        (lambda: classifiers_coincide(3, lower=0.4, upper=1), OptionError, "upper < 1"),
        (lambda: classifiers_coincide(3, lower=nan, upper=0.4), OptionError, "lower must be between 0 and 1"),
        (lambda: risk_curve(3, RATES[0], 0.6, score="median"), OptionError, "inconclusive .* got 0.6"),
        (
            lambda: risk_curve(3, RATES[0], [0.1, 0], score="median"),
            OptionError,
            "inconclusive must be above 0",
        ),
        (
            lambda: classifier_risk(3, RATES[0], (1, 1, 1), lower=0.4, upper=0.6, score="median"),
            OptionError,
            "costs must be the four numbers .* got 3",
        ),
        (
            lambda: classifier_risk(3, RATES[0], (1, np.inf, 1, 1), lower=0.4, upper=0.6, score="median"),
            OptionError,
            "costs must be finite and ≥ 0, got inf",
        ),
        (
            lambda: classifier_risk(3, RATES[0], (1, 1, -1, 1), lower=0.4, upper=0.6, score="median"),
            OptionError,
            "costs must be finite and ≥ 0, got -1",
        ),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_root_mean_square_joins_bias_and_variance():
    close(EstimateError(np.array([3.0, 0.0]), np.array([16.0, 4.0])).root_mean_square, [5, 2])
