"""Average, median, known statuses and the Rogan–Gladen correction, against sums over individuals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from binreps import (
    CountTable,
    FitError,
    OptionError,
    Rates,
    correct_prevalence,
    fit_average,
    fit_known,
    fit_median,
    simulate,
    theory,
)
from binreps.fits.point.simple import average_score, median_score
from binreps.model import likelihood_score
from by_hand import expected_counts

Person = tuple[int, int, int]  # n, s, status

people = st.lists(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, 1))),
    min_size=1,
    max_size=15,
)


def table(rows: list[Person], known: bool = False) -> CountTable:
    n, s, status = zip(*rows, strict=True)
    return CountTable(n, s, known=status if known else None)


def plug_in(rows: list[Person], scores: list[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    """θ̂, p̂, q̂ as the paper defines them, summed over individuals without rounding."""
    pairs = list(zip(rows, scores, strict=True))
    negative = sum(n * (1 - y) for (n, _, _), y in pairs)
    positive = sum(n * y for (n, _, _), y in pairs)
    assume(negative and positive)
    p = sum(s * (1 - y) for (_, s, _), y in pairs) / negative
    q = sum((n - s) * y for (n, s, _), y in pairs) / positive
    return Fraction(sum(scores), len(rows)), p, q


def vote(n: int, s: int) -> Fraction:
    return Fraction(int(2 * s > n)) if 2 * s != n else Fraction(1, 2)


@given(people)
def test_average_rates_are_the_sums_over_individuals(rows: list[Person]) -> None:
    exact = plug_in(rows, [Fraction(s, n) for n, s, _ in rows])
    assert tuple(fit_average(table(rows)).rates) == pytest.approx(
        tuple(map(float, exact)), rel=1e-13, abs=1e-15
    )


@given(people)
def test_median_rates_are_the_sums_over_individuals(rows: list[Person]) -> None:
    exact = plug_in(rows, [vote(n, s) for n, s, _ in rows])
    assert tuple(fit_median(table(rows)).rates) == pytest.approx(
        tuple(map(float, exact)), rel=1e-13, abs=1e-15
    )


@given(people)
def test_known_rates_are_plain_proportions(rows: list[Person]) -> None:
    exact = plug_in(rows, [Fraction(status) for *_, status in rows])
    fit = fit_known(table(rows, known=True))
    assert tuple(fit.rates) == pytest.approx(tuple(map(float, exact)), rel=1e-13, abs=1e-15)
    assert fit.score(3, 1) == fit.predict(3, 1) == likelihood_score(3, 1, fit.rates)


def test_scores_are_exact_for_every_small_pair() -> None:
    for n in range(1, 30):
        for s in range(n + 1):
            assert average_score(n, s) == s / n
            assert median_score(n, s) == vote(n, s)
    assert np.isnan(average_score(0, 0))
    assert np.isnan(median_score(0, 0))


def test_a_majority_of_one_counts_however_many_replicates() -> None:
    n = 10**6 + 1
    assert median_score(n, [n // 2, n // 2 + 1]).tolist() == [0, 1]
    assert median_score(2**52, 2**51) == 0.5


def test_predictions_are_the_likelihood_score_at_the_rates() -> None:
    counts = CountTable([3, 3, 4, 5], [0, 1, 4, 3], weight=[9, 3, 5, 2])
    for fit in (fit_average(counts), fit_median(counts)):
        assert fit.predict(4, 2) == likelihood_score(4, 2, fit.rates) != fit.score(4, 2)


@pytest.mark.parametrize("fit", [fit_average, fit_median])
def test_individuals_without_replicates_are_left_out(fit) -> None:
    some = CountTable([3, 4], [1, 4], weight=[5, 2])
    assert fit(some + CountTable([0], [0], weight=[100])).rates == fit(some).rates


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        (CountTable([3], [0], [9]), "false_negative"),
        (CountTable([3], [3], [9]), "false_positive"),
        (CountTable([0], [0], [9]), "prevalence and false_positive and false_negative"),
    ],
)
@pytest.mark.parametrize("fit", [fit_average, fit_median])
def test_a_rate_without_a_denominator_is_null_and_so_is_what_needs_it(fit, counts, undefined: str) -> None:
    made = fit(counts)
    (note,) = made.notes
    assert note.id == f"{made.kind}-undefined"
    assert note.sentence.startswith(f"{undefined} undefined")
    assert note.sentence in str(made)
    assert all(np.isnan(getattr(made.rates, rate)) for rate in undefined.split(" and "))
    assert np.isnan(made.predict([0, 3], [0, 1])).all()
    assert "–" in str(made)


def test_rates_above_one_half_are_reported_as_they_are() -> None:
    counts = CountTable([3, 3], [1, 2], weight=[1, 1], known=[1, 0])
    assert tuple(fit_known(counts).rates) == pytest.approx((0.5, 2 / 3, 2 / 3))


def test_known_individuals_without_replicates_count_in_the_prevalence_only() -> None:
    counts = CountTable([4, 4, 0], [1, 3, 0], weight=[1, 1, 2], known=[0, 1, 1])
    assert tuple(fit_known(counts).rates) == (0.75, 0.25, 0.25)


def test_unknown_statuses_are_refused_and_counted() -> None:
    with pytest.raises(FitError, match=r"needs every status, got 1,234 individuals of unknown status"):
        fit_known(CountTable([3, 3], [1, 2], [1234, 5], known=[None, 1]))


def test_the_periodontal_rates_with_the_truth_known(periodontal) -> None:
    n, s, truth = periodontal
    assert tuple(fit_known(CountTable(n, s, known=truth)).rates) == (29 / 50, 9 / 48, 48 / 142)


# --- Rogan–Gladen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rates", [Rates(0.25, 0.125, 0.25), Rates(0.5, 0.0, 0.5), Rates(0.75, 0.5, 0.125)])
def test_correction_recovers_the_prevalence_of_expected_counts(rates: Rates) -> None:
    counts = expected_counts(rates, 2**20, 4)  # powers of two: every expected count is whole
    found = correct_prevalence(
        counts, false_positive=rates.false_positive, false_negative=rates.false_negative
    )
    assert found.estimate == found.unclipped == pytest.approx(rates.prevalence, rel=1e-13)


def test_correction_is_unbiased_with_the_spread_it_states() -> None:
    rates, sizes = Rates(0.2, 0.1, 0.15), [2, 3, 5]
    z = []
    for seed in range(200):
        found = correct_prevalence(
            simulate(rates, 400, sizes, seed).counts, false_positive=0.1, false_negative=0.15
        )
        z.append((found.unclipped - 0.2) / found.sd)
    assert abs(np.mean(z)) < 4 / np.sqrt(200)
    assert 0.85 < np.std(z) < 1.15


def test_the_stated_spread_is_that_of_the_theory() -> None:
    rates = Rates(0.25, 0.125, 0.25)
    counts = expected_counts(rates, 2**20, 4)
    error = theory.prevalence_error(counts.n, rates, weight=counts.weight, score="average")
    found = correct_prevalence(counts, false_positive=0.125, false_negative=0.25)
    assert found.sd == pytest.approx(np.sqrt(error.variance) / (1 - 0.125 - 0.25), rel=1e-5)


def test_the_correction_is_clipped_and_says_by_how_much() -> None:
    low = correct_prevalence(CountTable([4], [0], [10]), false_positive=0.1, false_negative=0.1)
    assert (low.estimate, low.unclipped) == (0.0, pytest.approx(-0.125))
    high = correct_prevalence(CountTable([4], [4], [10]), false_positive=0.1, false_negative=0.1)
    assert (high.estimate, high.unclipped) == (1.0, pytest.approx(1.125))


def test_one_individual_has_no_spread() -> None:
    assert np.isnan(correct_prevalence(CountTable([4], [2]), false_positive=0.1, false_negative=0.1).sd)


@pytest.mark.parametrize(
    ("p", "q", "sentence"),
    [
        (-0.1, 0.1, "false_positive must be between 0 and 1, got -0.1"),
        (0.1, float("nan"), "false_negative must be between 0 and 1, got nan"),
        (0.4, 0.6, r"false_positive \+ false_negative must be below 1, got 0.4 \+ 0.6"),
    ],
)
def test_impossible_error_rates_are_refused(p: float, q: float, sentence: str) -> None:
    with pytest.raises(OptionError, match=f"^{sentence}$"):
        correct_prevalence(CountTable([4], [2]), false_positive=p, false_negative=q)


@pytest.mark.parametrize("counts", [CountTable([], []), CountTable([0], [0], [5])])
def test_the_correction_needs_a_replicate(counts: CountTable) -> None:
    with pytest.raises(FitError, match="needs at least one"):
        correct_prevalence(counts, false_positive=0.1, false_negative=0.1)
