"""Rates, priors, the likelihood and the likelihood score, against mpmath and as limits."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from binreps import CountTable, DataError, OptionError, Prior, Rates
from binreps.model import NAMES, checked_pairs, likelihood_score, log_likelihood

NAN = float("nan")
mpmath.mp.dps = 60

open_rates = st.one_of(st.floats(1e-300, 1e-3), st.floats(1e-3, 0.999))


def terms(n: int, s: int, theta: float, p: float, q: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """(1−θ)p^s(1−p)^(n−s) and θ(1−q)^s q^(n−s), written as in the paper."""
    theta, p, q = map(mpmath.mpf, (theta, p, q))
    return (1 - theta) * p**s * (1 - p) ** (n - s), theta * (1 - q) ** s * q ** (n - s)


def naive_score(n: int, s: int, theta: float, p: float, q: float) -> mpmath.mpf:
    negative, positive = terms(n, s, theta, p, q)
    return positive / (positive + negative)


def median_score(n: int, s: int, tie: float) -> float:
    return tie if 2 * s == n else float(2 * s > n)


# --- Rates and Prior -----------------------------------------------------------------------------------


def test_rates_come_in_the_order_of_names() -> None:
    rates = Rates(0.3, 0.1, 0.05)
    assert tuple(rates) == tuple(getattr(rates, name) for name in NAMES) == (0.3, 0.1, 0.05)
    assert (rates.sensitivity, rates.specificity) == (0.95, 0.9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [-0.1, 1.1, [0.2, 1.5], float("inf")])
def test_rates_outside_0_1_are_refused(name: str, bad: object) -> None:
    with pytest.raises(OptionError, match=f"^{name} must be between 0 and 1, got "):
        Rates(**{"prevalence": 0.1, "false_positive": 0.1, "false_negative": 0.1} | {name: bad})


@pytest.mark.parametrize("bad", ["high", [[0.1], [0.1, 0.2]], {0.1}])
def test_rates_that_are_not_numbers_are_refused(bad: object) -> None:
    with pytest.raises(OptionError, match=r"^false_positive must be a number or numbers, got "):
        Rates(0.3, bad, 0.1)


def test_rates_may_be_arrays_or_undefined() -> None:
    draws = np.array([0.1, 0.2])
    rates = Rates(draws, NAN, 0.1)
    draws[0] = 0.9
    assert rates.prevalence.tolist() == [0.1, 0.2]
    assert math.isnan(rates.false_positive)
    with pytest.raises(ValueError, match="read-only"):
        rates.prevalence[0] = 0.5
    with pytest.raises(FrozenInstanceError):
        rates.false_negative = 0.5  # type: ignore[misc]


def test_rates_are_equal_if_their_values_are() -> None:
    draws = [0.1, NAN, 0.3]
    assert Rates(draws, 0.1, NAN) == Rates(np.array(draws), 0.1, NAN)
    assert Rates(draws, 0.1, 0.2) != Rates([0.1, NAN, 0.4], 0.1, 0.2)
    assert Rates(draws, 0.1, 0.2) != Rates(0.1, 0.1, 0.2)
    assert Rates(0.1, 0.1, 0.2) != (0.1, 0.1, 0.2)


def test_rates_have_a_hash_if_they_are_numbers() -> None:
    assert len({Rates(0.1, 0.2, NAN), Rates(0.1, 0.2, float("nan")), Rates(0.1, 0.2, 0.3)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Rates([0.1, 0.2], 0.1, 0.2))


def test_default_priors_are_those_of_the_paper() -> None:
    assert tuple(Prior()) == ((0.5, 0.5), (2.0, 2.0), (2.0, 2.0))
    assert Prior(prevalence=[1, 9]) == Prior(prevalence=(1.0, 9.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "bad", [(0, 1), (1, -1), (NAN, 1), (1, math.inf), 2, (1, 2, 3), (1,), ("a", 1), None]
)
def test_bad_shapes_are_refused(name: str, bad: object) -> None:
    with pytest.raises(OptionError, match=f"^the prior of {name} must "):
        Prior(**{name: bad})  # type: ignore[arg-type]


# --- the likelihood score ------------------------------------------------------------------------------


@given(st.integers(0, 10**6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), *[open_rates] * 3)
@settings(max_examples=200, deadline=None)
def test_score_is_the_naive_formula_at_high_precision(
    pair: tuple[int, int], theta: float, p: float, q: float
) -> None:
    n, s = pair
    exact = naive_score(n, s, theta, p, q)
    score = likelihood_score(n, s, Rates(theta, p, q))
    sizes = s * (1 - math.log(p) - math.log1p(-q)) + (n - s) * (1 - math.log(q) - math.log1p(-p))
    logit_error = 1e-15 * (sizes + 10 - math.log(theta))  # the rounding of the terms added up
    assert abs(score - exact) <= exact * (1 - exact) * logit_error + 1e-15 * exact + 1e-300


@given(open_rates, open_rates, open_rates, st.integers(0, 300))
@settings(max_examples=100, deadline=None)
def test_score_does_not_decrease_in_s(theta: float, p: float, q: float, n: int) -> None:
    p, q = (p, q) if p + q < 0.999 else (p / 2.1, q / 2.1)
    score = likelihood_score(n, np.arange(n + 1), Rates(theta, p, q))
    assert np.all(np.diff(score) >= 0)
    assert np.all((score >= 0) & (score <= 1))


@given(open_rates, open_rates, open_rates, st.integers(0, 40), st.data())
@settings(max_examples=100, deadline=None)
def test_switching_the_labels_gives_the_complement(
    theta: float, p: float, q: float, n: int, data: st.DataObject
) -> None:
    """E3: (θ, p, q) → (1−θ, 1−q, 1−p) swaps the classes."""
    theta, p, q = (1 - (1 - rate) for rate in (theta, p, q))  # numbers whose complement is exact
    s = data.draw(st.integers(0, n))
    assume(min(theta, p, q) > 0)
    switched = likelihood_score(n, s, Rates(1 - theta, 1 - q, 1 - p))
    assert switched == pytest.approx(1 - likelihood_score(n, s, Rates(theta, p, q)), rel=1e-12, abs=1e-12)


def test_score_without_replicates_is_the_prevalence() -> None:
    for theta in (0.0, 1e-300, 1e-9, 0.3, 1.0):
        for p, q in ((0.1, 0.2), (0.0, 0.0), (0.0, 1.0), (0.5, 0.5)):
            assert likelihood_score(0, 0, Rates(theta, p, q)) == pytest.approx(theta, rel=1e-13, abs=0)


def test_score_with_a_useless_test_is_the_prevalence() -> None:
    assert likelihood_score(1000, [0, 500, 1000], Rates(0.3, 0.4, 0.6)) == pytest.approx(0.3, rel=1e-12)


def test_no_false_positives_make_one_positive_decisive() -> None:
    score = likelihood_score(4, range(5), Rates(0.3, 0.0, 0.2))
    assert score[0] == pytest.approx(float(naive_score(4, 0, 0.3, 0.0, 0.2)))
    assert score[1:].tolist() == [1, 1, 1, 1]


def test_no_false_negatives_make_one_negative_decisive() -> None:
    score = likelihood_score(4, range(5), Rates(0.3, 0.1, 0.0))
    assert score[4] == pytest.approx(float(naive_score(4, 4, 0.3, 0.1, 0.0)))
    assert score[:4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 10**6])
def test_a_perfect_test_gives_the_median_and_the_prevalence_on_a_tie(n: int) -> None:
    for s in {0, 1, n // 2, (n + 1) // 2, n - 1, n}:
        assert likelihood_score(n, s, Rates(0.3, 0.0, 0.0)) == pytest.approx(
            median_score(n, s, 0.3), rel=1e-15
        )


@pytest.mark.parametrize(
    ("at", "near"),
    [
        ((0.0, 0.0), (1e-12, 1e-12)),
        ((1.0, 1.0), (1 - 1e-12, 1 - 1e-12)),
        ((0.0, 0.3), (1e-12, 0.3)),
        ((0.1, 0.0), (0.1, 1e-12)),
        ((1.0, 0.3), (1 - 1e-12, 0.3)),
        ((0.1, 1.0), (0.1, 1 - 1e-12)),
        ((0.0, 1.0), (1e-12, 1 - 1e-12)),
        ((1.0, 0.0), (1 - 1e-12, 1e-12)),
    ],
)
def test_rates_of_0_and_1_are_limits(at: tuple[float, float], near: tuple[float, float]) -> None:
    n, s = np.array([(n, s) for n in range(6) for s in range(n + 1)]).T
    limit = likelihood_score(n, s, Rates(0.3, *at))
    assert limit == pytest.approx(likelihood_score(n, s, Rates(0.3, *near)), abs=1e-3)
    exact = [float(naive_score(k, j, 0.3, *near)) for k, j in zip(n.tolist(), s.tolist(), strict=True)]
    assert limit == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("theta", [0.0, 1.0])
@pytest.mark.parametrize("p", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("q", [0.0, 0.1, 1.0])
def test_a_certain_prevalence_wins_against_everything(theta: float, p: float, q: float) -> None:
    for n in (0, 1, 2, 10**6):
        assert np.all(likelihood_score(n, [0, n // 2, n], Rates(theta, p, q)) == theta)


@pytest.mark.parametrize(
    "rates", [(NAN, 0.1, 0.1), (0.3, NAN, 0.1), (0.3, 0.1, NAN), (0, NAN, 0), (1, 0, NAN)]
)
def test_an_undefined_rate_gives_an_undefined_score(rates: tuple[float, float, float]) -> None:
    assert np.isnan(likelihood_score([0, 1, 3], [0, 1, 1], Rates(*rates))).all()


def test_n_s_and_rates_broadcast() -> None:
    theta, p, q = np.random.default_rng(1).uniform(0, 0.5, (3, 5))
    n, s = np.array([[3], [4]]), np.array([[1], [4]])
    scores = likelihood_score(n, s, Rates(theta, p, q))
    assert scores.shape == (2, 5)
    for i in range(2):
        for j in range(5):
            one = likelihood_score(n[i, 0], s[i, 0], Rates(theta[j], p[j], q[j]))
            assert isinstance(one, float)
            assert scores[i, j] == one


@pytest.mark.parametrize("rates", [Rates([0.1] * 4, 0.1, 0.1), Rates(0.1, [0.1] * 2, [0.1] * 3)])
def test_rates_that_do_not_broadcast_are_refused(rates: Rates) -> None:
    with pytest.raises(DataError, match=r"^rates must broadcast with n and s, got shapes \[.*\] and \(3,\)$"):
        likelihood_score([3, 4, 5], 1, rates)


@pytest.mark.parametrize(
    ("n", "s", "sentence"),
    [
        (3, 4, "s must be ≤ n, got s = 4 with n = 3 at position 0"),
        ([3, 3], [1, 5], "s must be ≤ n, got s = 5 with n = 3 at position 1"),
        (-1, 0, "n must be whole numbers .* got -1"),
        (3, 1.5, "s must be whole numbers .* got 1.5"),
        (None, 0, "n must be whole numbers .* got None"),
        ([[1], [2, 3]], 0, "n must be a plain list"),
        ([1, 2], [1, 1, 1], r"n and s must broadcast, got shapes \(2,\) and \(3,\)"),
    ],
)
def test_bad_pairs_are_refused(n: object, s: object, sentence: str) -> None:
    with pytest.raises(DataError, match=f"^{sentence}"):
        checked_pairs(n, s)
    with pytest.raises(DataError, match=f"^{sentence}"):
        likelihood_score(n, s, Rates(0.3, 0.1, 0.1))


# --- the log-likelihood --------------------------------------------------------------------------------


def naive_log_likelihood(counts: CountTable, rates: Rates) -> mpmath.mpf:
    total = mpmath.mpf(0)
    for row in counts.table():
        both = terms(row["n"], row["s"], *rates)
        known = row.get("known")
        total += row["weight"] * mpmath.log(sum(both) if known is None else both[known])
    return total


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.floats(0, 1),
            st.integers(1, 10**12),
            st.sampled_from([0, 1, None]),
        ),
        min_size=1,
        max_size=4,
    ),
    *[open_rates] * 3,
)
@settings(max_examples=100, deadline=None)
def test_log_likelihood_is_the_naive_formula_at_high_precision(
    rows: list[tuple[int, float, int, int | None]], theta: float, p: float, q: float
) -> None:
    n, fraction, weight, known = map(list, zip(*rows, strict=True))
    s = [int(f * k) for f, k in zip(fraction, n, strict=True)]
    counts, rates = CountTable(n, s, weight, known), Rates(theta, p, q)
    exact = naive_log_likelihood(counts, rates)
    # A mixture near 1 has a log near 0, hence an absolute part per individual.
    assert abs(log_likelihood(counts, rates) - exact) <= 1e-13 * abs(exact) + 1e-15 * counts.individuals


def test_log_likelihood_is_accurate_for_tiny_rates_and_many_individuals() -> None:
    counts = CountTable([10**6], [0], weight=[10**12], known=[0])
    exact = naive_log_likelihood(counts, Rates(0.0, 1e-12, 0.1))
    assert log_likelihood(counts, Rates(0.0, 1e-12, 0.1)) == pytest.approx(float(exact), rel=1e-14)


def test_log_likelihood_adds_up_over_tables() -> None:
    one, other = CountTable([3, 4], [1, 4], [10, 20]), CountTable([3, 2], [1, 0], [5, 5], [None, 1])
    rates = Rates(0.3, 0.1, 0.2)
    both = log_likelihood(one, rates) + log_likelihood(other, rates)
    assert log_likelihood(one + other, rates) == pytest.approx(both, rel=1e-14)
    assert log_likelihood(CountTable([], []), rates) == 0


def test_log_likelihood_does_not_change_when_the_labels_switch() -> None:
    counts = CountTable([3, 4, 6], [1, 4, 3], [10, 20, 7])
    switched = log_likelihood(counts, Rates(0.75, 0.875, 0.5))
    assert log_likelihood(counts, Rates(0.25, 0.5, 0.125)) == pytest.approx(switched, rel=1e-14)


@pytest.mark.parametrize(
    ("rates", "known"),
    [((0.3, 0.0, 0.0), None), ((0.0, 0.1, 0.1), 1), ((1.0, 0.1, 0.1), 0), ((0.0, 0.0, 0.1), None)],
)
def test_impossible_data_have_likelihood_0(rates: tuple[float, float, float], known: int | None) -> None:
    assert log_likelihood(CountTable([3], [1], known=[known]), Rates(*rates)) == -math.inf


def test_certain_data_have_likelihood_1() -> None:
    assert log_likelihood(CountTable([3], [0], [10**12]), Rates(0.0, 0.0, 0.0)) == 0
    assert log_likelihood(CountTable([3], [3], [10**12]), Rates(1.0, 0.0, 0.0)) == 0
    assert log_likelihood(CountTable([0], [0], [10**12]), Rates(0.3, 0.1, 0.1)) == pytest.approx(0, abs=1e-3)
