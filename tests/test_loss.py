from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import bdtr

from binreps import CountTable, Rates, theory
from binreps.decide.loss import DECISIONS, Loss, classify, decision_table, decision_words
from binreps.errors import BinrepsError, DataError, OptionError
from binreps.fits.point.simple import AverageFit, average_score

GRID = np.linspace(0, 1, 2001)
COSTS = st.floats(1e-3, 10)
EXTREME_COSTS = st.sampled_from([5e-324, 1e-300, 1e-9, 1.0, 1e9, 1e300, 1.7e308])


def mean_cost(loss: Loss, theta: float, answer: float) -> Fraction:
    """E ℓ(T, answer) from the definition of ℓ, without rounding."""
    if_negative = {0: 0.0, 0.5: loss.inconclusive_negative, 1: loss.false_positive}[answer]
    if_positive = {0: loss.false_negative, 0.5: loss.inconclusive_positive, 1: 0.0}[answer]
    return (1 - Fraction(theta)) * Fraction(if_negative) + Fraction(theta) * Fraction(if_positive)


class TestBestRule:
    @given(COSTS, COSTS, COSTS, COSTS)
    @example(1, 1, 0.5, 0.5)
    @example(1, 1, 0.9, 0.05)
    def test_no_answer_is_cheaper_anywhere_on_a_grid(self, b, c, a, d):
        loss = Loss(b, c, (a, d))
        costs = np.array([c * GRID, a + (d - a) * GRID, b * (1 - GRID)])
        chosen = costs[(2 * loss.classify(GRID)).astype(int), np.arange(GRID.size)]
        assert np.all(chosen <= costs.min(axis=0) + 1e-12 * max(a, b, c, d))

    @given(COSTS, COSTS, COSTS, COSTS)
    def test_inconclusive_is_allowed_exactly_where_it_is_cheapest_at_the_crossing(self, b, c, a, d):
        # an inconclusive answer pays somewhere iff it pays where the other two cost the same
        loss = Loss(b, c, (a, d))
        crossing = Fraction(b) / (Fraction(b) + Fraction(c))
        inconclusive = Fraction(a) + (Fraction(d) - Fraction(a)) * crossing
        assert loss.allows_inconclusive == (inconclusive < Fraction(b) * (1 - crossing))

    @given(COSTS, COSTS, COSTS, COSTS)
    def test_the_two_forms_of_the_lemma_agree(self, b, c, a, d):
        a, b, c, d = map(Fraction, (a, b, c, d))
        long_form = b * c / (b + c) > a + (d - a) * b / (b + c) and -b < d - a < c
        assert long_form == (a / b + d / c < 1)

    @given(EXTREME_COSTS, EXTREME_COSTS, EXTREME_COSTS, EXTREME_COSTS, st.floats(0, 1))
    def test_extreme_costs_still_give_the_cheapest_answer(self, b, c, a, d, theta):
        loss = Loss(b, c, (a, d))
        lower, upper = loss.thresholds
        assert 0 < lower <= upper < 1
        assert not np.isnan(loss.risks(theta)).any()
        if all(abs(theta - threshold) > 1e-15 for threshold in (lower, upper)):
            costs = {answer: mean_cost(loss, theta, answer) for answer in DECISIONS}
            assert costs[loss.classify(theta)] == min(costs.values())
        assert (loss.classify(0.0), loss.classify(1.0)) == (0, 1)

    @pytest.mark.parametrize("a", [0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.45, 0.49])
    def test_symmetric_loss_has_thresholds_a_and_one_minus_a(self, a):
        assert Loss(inconclusive=a).thresholds == (a, 1 - a)

    def test_thresholds_need_not_straddle_one_half(self):
        lower, upper = Loss(false_negative=9, inconclusive=(0.5, 1)).thresholds
        assert (lower, upper) == pytest.approx((0.5 / 8.5, 0.5 / 1.5))
        assert upper < 0.5

    def test_ties_are_inconclusive(self):
        loss = Loss(inconclusive=0.25)
        assert loss.risks(0.25)[0] == loss.risks(0.25)[1]
        below, above = 0.25 * (1 - 1e-14), 0.75 * (1 + 1e-14)
        np.testing.assert_array_equal(loss.classify([below, 0.25, 0.75, above]), [0, 0.5, 0.5, 1])

    def test_single_cut_is_positive_at_the_cut_and_never_inconclusive(self):
        loss = Loss(false_positive=1, false_negative=3, inconclusive=2)
        assert not loss.allows_inconclusive
        assert loss.thresholds == (0.25, 0.25)
        np.testing.assert_array_equal(loss.classify([0, 0.25 * (1 - 1e-14), 0.25, 1]), [0, 0, 1, 1])
        assert 0.5 not in loss.classify(GRID)

    @pytest.mark.parametrize("inconclusive", [0.2, 0.9])
    def test_null_scores_give_null_answers(self, inconclusive):
        loss = Loss(inconclusive=inconclusive)
        np.testing.assert_array_equal(loss.classify([0.0, np.nan, 1.0]), [0, np.nan, 1])
        assert math.isnan(loss.classify(None))
        assert np.isnan(loss.risks(np.nan)).all()


class TestCosts:
    @given(COSTS, COSTS, COSTS, COSTS, st.floats(0, 1))
    def test_risks_are_the_mean_costs(self, b, c, a, d, theta):
        loss = Loss(b, c, (a, d))
        expected = [float(mean_cost(loss, theta, answer)) for answer in DECISIONS]
        assert loss.risks(theta) == pytest.approx(expected, rel=1e-12)
        by_truth = (1 - theta) * loss.cost(0, list(DECISIONS)) + theta * loss.cost(1, list(DECISIONS))
        assert loss.risks(theta) == pytest.approx(by_truth)

    def test_cost_by_enumeration(self):
        loss = Loss(2, 3, (0.5, 0.7))
        np.testing.assert_array_equal(loss.cost([[0], [1]], [0, 0.5, 1]), [[0, 0.5, 2], [3, 0.7, 0]])
        assert loss.cost(1, 0) == 3.0
        np.testing.assert_array_equal(loss.cost([None, 1, 0], [1, np.nan, 1]), [np.nan, np.nan, 2])

    def test_zero_costs_can_be_evaluated_but_give_no_thresholds(self):
        loss = Loss(1, 1, 0)
        np.testing.assert_array_equal(loss.risks(0.25), [0.25, 0, 0.75])
        with pytest.raises(OptionError, match=r"costs > 0, got Loss\(.*inconclusive=0.0\)"):
            _ = loss.thresholds
        with pytest.raises(OptionError):
            loss.classify(0.5)
        assert "no thresholds" in str(loss)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"false_positive": -1}, "false_positive must be a finite cost ≥ 0, got -1"),
            ({"false_negative": math.nan}, "false_negative must be a finite cost ≥ 0, got nan"),
            ({"false_negative": math.inf}, "false_negative .* got inf"),
            ({"false_negative": 10**400}, "false_negative must be a finite cost"),
            ({"false_positive": "1"}, "false_positive .* got '1'"),
            ({"inconclusive": -0.1}, "inconclusive must be a finite cost ≥ 0, got -0.1"),
            ({"inconclusive": (0.1, -2)}, "inconclusive must be a finite cost ≥ 0, got -2"),
            ({"inconclusive": (1, 2, 3)}, r"inconclusive must be one cost, or a pair .* got \(1, 2, 3\)"),
            ({"inconclusive": None}, "inconclusive must be one cost, or a pair"),
        ],
    )
    def test_bad_costs_are_named(self, arguments, message):
        with pytest.raises(OptionError, match=message):
            Loss(**arguments)

    def test_a_loss_is_a_value(self):
        assert Loss(1, 2, [0.1, 0.2]) == Loss(1.0, 2.0, (0.1, 0.2))
        assert len({Loss(), Loss(1, 1, 0.25)}) == 1

    def test_wording(self):
        assert str(Loss()).endswith("inconclusive 0.25; negative below 0.25, positive above 0.75")
        assert str(Loss(inconclusive=1)).endswith("positive from there on, never inconclusive")


class TestClassify:
    @given(st.lists(st.floats(0, 1)), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
    def test_is_phi(self, scores, one, other):
        lower, upper = sorted((one, other))
        tie = 4 * np.finfo(float).eps
        expected = [0 if y < lower - tie else 1 if y > upper + tie else 0.5 for y in scores]
        assert classify(scores, lower, upper).tolist() == expected

    @pytest.mark.parametrize("n", [*range(3, 80), 100, 1000])
    @pytest.mark.slow
    def test_an_average_on_a_threshold_is_on_it_however_the_threshold_is_computed(self, n):
        """The answers are those that exact fractions give, and that the theory counts."""
        scores, fair = average_score(n, np.arange(n + 1)), Rates(0.5, 0.5, 0.5)
        for k in range(1, (n + 1) // 2):
            expected = [0.0] * k + [0.5] * (n + 1 - 2 * k) + [1.0] * k
            assert Loss(inconclusive=k / n).classify(scores).tolist() == expected
            for lower, upper in ((k / n, 1 - k / n), (1 - (n - k) / n, (n - k) / n)):
                assert classify(scores, lower, upper).tolist() == expected
                theirs = theory.classifier_performance(n, fair, lower=lower, upper=upper, score="average")
                assert theirs.specificity == theirs.sensitivity
                assert theirs.specificity == pytest.approx(float(bdtr(k - 1, n, 0.5)), rel=1e-9)

    def test_certain_scores_are_on_no_threshold(self):
        assert classify([0.0, 1.0], 5e-324, math.nextafter(1, 0)).tolist() == [0, 1]

    def test_masked_scores_are_null(self):
        np.testing.assert_array_equal(classify(np.ma.masked_equal([0.9, 0.8], 0.8), 0.4, 0.6), [1, np.nan])

    def test_shapes_and_scalars(self):
        assert classify(0.5, 0.5, 0.5) == 0.5
        assert isinstance(classify(1, 0.2, 0.3), float)
        assert classify(np.zeros((2, 3)), 0.2, 0.3).shape == (2, 3)
        assert classify([], 0.2, 0.3).shape == (0,)

    @pytest.mark.parametrize("pair", [(0, 0.5), (0.6, 0.5), (0.5, 1), (math.nan, 0.5), (0.5, math.nan)])
    def test_bad_thresholds(self, pair):
        with pytest.raises(OptionError, match="0 < lower ≤ upper < 1"):
            classify(0.5, *pair)

    def test_bad_scores(self):
        with pytest.raises(DataError, match=r"scores must be between 0 and 1, got 1.5 at position 1"):
            classify([0.5, 1.5], 0.4, 0.6)
        with pytest.raises(DataError, match=r"scores must be numbers, got \['high'\]"):
            classify(["high"], 0.4, 0.6)
        with pytest.raises(DataError, match="unequal lengths"):
            classify([[0.5], [0.5, 0.5]], 0.4, 0.6)


class TestWords:
    def test_of_every_answer(self):
        assert decision_words(np.array([0, 0.5, 1, np.nan])) == [*DECISIONS.values(), None]
        assert decision_words(0.5) == "inconclusive"
        assert decision_words(None) is None
        assert decision_words([[0], [1]]) == [["negative"], ["positive"]]
        assert decision_words([]) == []

    def test_of_a_null_that_refuses_comparison(self):
        class NAType:  # as pandas.NA
            def __ne__(self, other):
                raise TypeError("ambiguous")

        assert decision_words([NAType(), 1]) == [None, "positive"]

    def test_of_something_else(self):
        with pytest.raises(DataError, match=r"decisions must be 0, 0.5, 1 or missing, got 0.3 at position 1"):
            decision_words([0, 0.3])


def predict(n, s):
    """A stand-in probability, null where nothing was measured."""
    return np.where(n == 0, np.nan, (s + 0.1) / (n + 0.2))


class StandIn(AverageFit):
    """A fit with the stand-in's predictions, and intervals around them."""

    def predict(self, n, s):
        return predict(n, s)

    def predict_interval(self, n, s, level=0.9):
        return predict(n, s) - level / 100, predict(n, s) + level / 100


STAND_IN = StandIn(CountTable([1], [1]), Rates(0.3, 0.1, 0.1))


class TestDecisionTable:
    LOSS = Loss(inconclusive=0.2)

    def test_rows_are_every_result(self):
        table = decision_table(STAND_IN, self.LOSS, 3)
        rows = [(n, s) for n in (1, 2, 3) for s in range(n + 1)]
        assert list(zip(table["n"], table["s"], strict=True)) == rows
        for row in table:
            y = predict(row["n"], row["s"])
            risks = {"negative": y, "inconclusive": 0.2, "positive": 1 - y}
            assert row["probability"] == pytest.approx(y)
            assert row["expected_cost"] == pytest.approx(risks[row["decision"]])
            assert row["expected_cost"] == pytest.approx(min(risks.values()))

    def test_without_a_level_there_are_no_intervals(self):
        whole, plain = (decision_table(STAND_IN, self.LOSS, 3, level=level) for level in (0.9, None))
        assert set(whole.columns) - set(plain.columns) == {"lower", "upper"}
        assert all(plain[name] == whole[name] for name in plain.columns)

    def test_int_is_short_for_a_range(self):
        fit = STAND_IN
        assert decision_table(fit, self.LOSS, 4) == decision_table(fit, self.LOSS, range(1, 5))
        assert decision_table(fit, self.LOSS, (n for n in (5, 2)))["n"] == (5,) * 6 + (2,) * 3

    def test_null_predictions_stay_null(self):
        table = decision_table(STAND_IN, self.LOSS, [0])
        assert table["decision"] == (None,)
        assert math.isnan(table["expected_cost"][0])

    def test_the_interval_has_the_level_asked_for(self):
        table = decision_table(STAND_IN, self.LOSS, [2], level=0.5)
        assert list(table.columns) == ["n", "s", "probability", "lower", "upper", "decision", "expected_cost"]
        assert np.subtract(table["upper"], table["lower"]) == pytest.approx([0.01] * 3)

    @pytest.mark.parametrize(
        ("replicates", "message"),
        [
            (0, "at least one number of replicates"),
            ([], "at least one number of replicates"),
            ([2, -3], "replicates must be whole numbers .* got -3 at position 1"),
            ([1.5], "replicates must be whole numbers"),
            (2.0, "replicates must be a whole number or several, got 2.0"),
            (np.array(2.5), "replicates must be a whole number or several, got 2.5"),
            (True, "replicates must be a whole number or several, got True"),
            (10**12, "at most 1,000,000 rows"),
            ([2**53] * 2000, "at most 1,000,000 rows"),
            ([10**6], "at most 1,000,000 rows"),
        ],
    )
    def test_bad_replicates(self, replicates, message):
        with pytest.raises(BinrepsError, match=message):
            decision_table(STAND_IN, self.LOSS, replicates)

    def test_bad_level(self):
        with pytest.raises(OptionError, match="level must be between 0 and 1, got 90"):
            decision_table(STAND_IN, self.LOSS, 2, level=90)
