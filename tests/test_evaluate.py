from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binreps.counts import CountTable
from binreps.decide.evaluate import _split, calibration_curve, calibration_error, cross_validate, evaluate
from binreps.decide.loss import Loss
from binreps.errors import DataError, OptionError
from binreps.fits.point.mode import fit_map
from binreps.fits.point.simple import fit_average, fit_median

ENTRIES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.5, 0.8, 0.95, 1.0, None]),
        st.sampled_from([0, 1, None]),
        st.integers(0, 4),
    ),
    max_size=12,
)


def expand(entries):
    """One (score, truth) per individual that can be judged."""
    return [(y, t) for y, t, w in entries for _ in range(w) if y is not None and t is not None]


def columns(entries):
    return ([entry[i] for entry in entries] for i in range(3))


def ratio(part, whole):
    return part / whole if whole else math.nan


class TestEvaluate:
    @given(ENTRIES)
    def test_agrees_with_a_loop_over_individuals(self, entries):
        scores, truth, weight = columns(entries)
        judged = evaluate(scores, truth, Loss(2, 3, (0.4, 0.6)), weight)
        lower, upper = 0.4 / 2.8, 1.6 / 2.2
        people = [(y, t, 0 if y < lower else 1 if y > upper else 0.5) for y, t in expand(entries)]
        seen = Counter((t, answer) for _, t, answer in people)
        assert judged.individuals == len(people)
        assert judged.left_out == sum(weight) - len(people)
        assert judged.counts == tuple(tuple(seen[t, answer] for answer in (0, 0.5, 1)) for t in (0, 1))
        costs = {(0, 0.5): 0.4, (0, 1): 2, (1, 0): 3, (1, 0.5): 0.6}
        total = sum(costs.get((t, answer), 0) for _, t, answer in people)
        positive, negative = (sum(t == status for _, t, _ in people) for status in (1, 0))
        expected = {
            "total_risk": total,
            "mean_risk": ratio(total, len(people)),
            "sensitivity": ratio(seen[1, 1], positive),
            "specificity": ratio(seen[0, 0], negative),
            "informedness": ratio(seen[1, 1], positive) + ratio(seen[0, 0], negative) - 1,
            "positive_predictive_value": ratio(seen[1, 1], seen[1, 1] + seen[0, 1]),
            "negative_predictive_value": ratio(seen[0, 0], seen[0, 0] + seen[1, 0]),
            "share_inconclusive": ratio(seen[0, 0.5] + seen[1, 0.5], len(people)),
            "brier": ratio(sum((y - t) ** 2 for y, t, _ in people), len(people)),
            "log_score": ratio(
                sum(-math.log(p) if (p := y if t else 1 - y) else math.inf for y, t, _ in people), len(people)
            ),
        }
        found = {name: getattr(judged, name) for name in expected}
        assert found == pytest.approx(expected, nan_ok=True)

    def test_confusion_and_summary_show_the_fields(self):
        judged = evaluate([0.1, 0.5, 0.9, None], [0, 1, 1, 1], Loss(inconclusive=0.2), [5, 2, 3, 4])
        assert list(judged.confusion) == [
            {"truth": "negative", "negative": 5, "inconclusive": 0, "positive": 0},
            {"truth": "positive", "negative": 0, "inconclusive": 2, "positive": 3},
        ]
        summary = judged.summary()
        figures = dict(zip(summary["measure"], summary["value"], strict=True))
        assert figures["left_out"] == 4
        assert figures["total_risk"] == pytest.approx(0.4)
        assert figures["sensitivity"] == 0.6
        assert "inconclusive" in str(judged)

    def test_nobody_to_judge(self):
        judged = evaluate([None, 0.5], [1, None], Loss())
        assert (judged.individuals, judged.left_out, judged.total_risk) == (0, 2, 0)
        assert math.isnan(judged.mean_risk)
        assert math.isnan(judged.brier)

    def test_a_certain_score_that_is_wrong_has_infinite_log_score(self):
        assert evaluate([1.0, 0.5], [0, 1], Loss()).log_score == math.inf
        assert evaluate([1.0, 0.0], [1, 0], Loss()).log_score == 0
        assert evaluate([1.0, 0.0], [0, 0], Loss(), weight=[0, 1]).log_score == 0

    def test_given_thresholds_replace_those_of_the_loss_and_allow_costs_of_zero(self):
        scores, truth = [0.3, 0.5, 0.7], [1, 1, 0]
        hard_errors = evaluate(scores, truth, Loss(1, 1, 0), thresholds=(0.45, 0.55))
        assert hard_errors.total_risk == 2
        assert "0.45 and 0.55" in hard_errors.rule
        with pytest.raises(OptionError, match="costs > 0"):
            evaluate(scores, truth, Loss(1, 1, 0))

    def test_ten_to_the_nine_individuals(self):
        judged = evaluate([0.1, 0.9], [0, 1], Loss(), weight=[6 * 10**8, 4 * 10**8])
        assert (judged.individuals, judged.sensitivity, judged.specificity) == (10**9, 1, 1)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0.5], [2]), "truth must be 0, 1 or missing, got 2 at position 0"),
            (([0.5], ["sick"]), r"truth must be numbers, got \['sick'\]"),
            (([1.5], [1]), "scores must be between 0 and 1"),
            (([0.5, 0.5], [1]), r"equal length, got shapes \(2,\), \(1,\)"),
            (([[0.5]], [[1]]), "lists of equal length"),
            (([0.5], [1], [-1]), "weight must be whole numbers"),
            (([0.5], [1], [1, 2]), "equal length"),
        ],
    )
    def test_bad_data_are_named(self, arguments, message):
        scores, truth, *weight = arguments
        with pytest.raises(DataError, match=message):
            evaluate(scores, truth, Loss(), *weight)

    @pytest.mark.parametrize(
        ("fit", "negative", "positive", "total"),
        [
            (fit_average, (16, 1, 4), (5, 5, 19), 11.7),
            (fit_median, (16, 1, 4), (5, 5, 19), 11.7),
            (fit_map, (13, 0, 8), (3, 2, 24), 11.9),
        ],
    )
    def test_the_periodontal_table_as_published(self, periodontal, fit, negative, positive, total):
        n, s, truth = periodontal
        judged = evaluate(fit(CountTable(n, s)).score(n, s), truth, Loss(inconclusive=0.45))
        assert judged.counts == (negative, positive)
        assert judged.total_risk == total
        assert judged.mean_risk == pytest.approx(total / 50, rel=1e-15)


class TestCalibration:
    @given(ENTRIES, st.integers(1, 12))
    def test_agrees_with_a_loop_over_individuals(self, entries, bins):
        table = calibration_curve(*columns(entries), bins=bins)
        people = expand(entries)
        error = 0.0
        for row in table:
            last = row["end"] == 1
            inside = [(y, t) for y, t in people if row["start"] <= y < row["end"] or (last and y == 1)]
            assert row["individuals"] == len(inside) > 0
            assert row["mean_score"] == pytest.approx(sum(y for y, _ in inside) / len(inside))
            assert row["observed"] == pytest.approx(sum(t for _, t in inside) / len(inside))
            assert 0 <= row["lower"] <= row["observed"] + 1e-12
            assert row["observed"] - 1e-12 <= row["upper"] <= 1
            error += abs(sum(y - t for y, t in inside)) / len(people)
        assert sum(table["individuals"]) == len(people)
        found = calibration_error(*columns(entries), bins=bins)
        assert found == pytest.approx(error if people else math.nan, nan_ok=True)

    @given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([(0.9, 1.6448536), (0.95, 1.959964)]))
    def test_wilson_ends_are_where_the_score_test_turns(self, positives, more, level_z):
        level, z = level_z
        total = positives + more
        (row,) = calibration_curve([0.5, 0.5], [1, 0], [positives, more], bins=1, level=level)
        for end in (row["lower"], row["upper"]):
            gap = (positives / total - end) ** 2
            assert gap == pytest.approx(z**2 * end * (1 - end) / total, rel=1e-5, abs=1e-12)

    def test_scores_on_an_edge_belong_to_the_bin_above(self):
        table = calibration_curve([k / 100 for k in range(101)], [0] * 101, bins=100)
        assert table["individuals"] == (1,) * 99 + (2,)

    def test_a_calibrated_score_has_no_error(self):
        assert calibration_error([0.25, 0.25], [1, 0], [10**9, 3 * 10**9]) == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize("bins", [0, 2.5, True, 10**7])
    def test_bad_bins(self, bins):
        with pytest.raises(OptionError, match="bins must be a whole number from 1 to 1,000,000"):
            calibration_curve([0.5], [1], bins=bins)

    def test_bad_level(self):
        with pytest.raises(OptionError, match="level"):
            calibration_curve([0.5], [1], level=1)


@dataclass(frozen=True)
class ShareFit:
    """A stand-in fit: predictions lean on the share of positives in the training data."""

    counts: CountTable

    def predict(self, n, s):
        return (s + 3 * self.counts.positives / self.counts.replicates) / (n + 3)


N = [3, 3, 4, 2, 2, 5, 1, 4]
S = [0, 3, 2, 1, 1, 4, 1, 4]
TRUTH = [0, 1, None, 0, 1, 1, 0, 1]
WEIGHT = [3, 2, 2, 1, 1, 1, 2, 4]
LOSS = Loss(inconclusive=0.3)


class TestCrossValidate:
    def test_leave_one_out_leaves_out_individuals(self):
        people = [row for *row, w in zip(N, S, TRUTH, WEIGHT, strict=True) for _ in range(w)]
        scores = []
        for i, (n, s, _) in enumerate(people):
            others = people[:i] + people[i + 1 :]
            share = sum(row[1] for row in others) / sum(row[0] for row in others)
            scores.append((s + 3 * share) / (n + 3))
        expected = evaluate(scores, [t for *_, t in people], LOSS)
        found = cross_validate(N, S, TRUTH, ShareFit, loss=LOSS, weight=WEIGHT, folds=len(people), rng=3)
        assert found.pooled.counts == expected.counts
        assert found.pooled.left_out == expected.left_out == 2
        assert found.pooled.log_score == pytest.approx(expected.log_score, rel=1e-12)
        assert found.pooled.brier == pytest.approx(expected.brier, rel=1e-12)
        assert set(found.folds["trained"]) == {len(people) - 1}

    def test_leave_one_out_fits_once_per_cell(self):
        fitted = []
        cross_validate(
            [3, 3, 3],
            [0, 1, 3],
            [0, 1, 1],
            lambda counts: (fitted.append(counts), ShareFit(counts))[1],
            loss=LOSS,
            weight=[50, 30, 20],
            folds=100,
            rng=1,
        )
        assert len(fitted) == 3

    def test_two_folds_by_hand(self):
        # two individuals: each is predicted from the other alone, whatever the seed
        found = cross_validate([2, 4], [0, 3], [0, 1], ShareFit, loss=LOSS, folds=2, rng=0)
        scores = [(0 + 3 * 3 / 4) / 5, (3 + 0) / 7]
        assert found.pooled == evaluate(scores, [0, 1], LOSS)
        assert sorted(found.folds["brier"]) == pytest.approx(sorted([scores[0] ** 2, (1 - scores[1]) ** 2]))

    def test_training_sets_have_no_statuses_and_miss_each_individual_once(self):
        seen = []
        cross_validate(
            *(N, S, TRUTH),
            lambda counts: (seen.append(counts), ShareFit(counts))[1],
            loss=LOSS,
            weight=WEIGHT,
            folds=3,
            rng=5,
        )
        assert not any(counts.has_known for counts in seen)
        everyone = CountTable(N, S, WEIGHT)
        twice = CountTable(N, S, [2 * w for w in WEIGHT])
        assert seen[0] + seen[1] + seen[2] == twice
        assert [counts.individuals for counts in seen] == [
            everyone.individuals * 2 // 3 + d for d in (1, 1, 0)
        ]

    def test_pooled_adds_up_the_folds(self):
        found = cross_validate(N, S, TRUTH, ShareFit, loss=LOSS, weight=WEIGHT, folds=4, rng=5)
        assert sum(found.folds["individuals"]) == found.pooled.individuals == sum(WEIGHT) - 2
        assert sum(found.folds["left_out"]) == found.pooled.left_out == 2
        assert sum(found.folds["total_risk"]) == pytest.approx(found.pooled.total_risk)
        assert found.folds["fold"] == (1, 2, 3, 4)
        assert str(found).startswith("4-fold")

    def test_the_seed_settles_everything_and_the_order_nothing(self):
        def run(rng, order):
            data = [[column[i] for i in order] for column in (N, S, TRUTH, WEIGHT)]
            return cross_validate(*data[:3], ShareFit, loss=LOSS, weight=data[3], folds=3, rng=rng)

        order = range(len(N))
        first = run(7, order)
        assert first == run(7, order) == run(7, order[::-1]) == run(np.random.default_rng(7), order)
        assert len({run(seed, order).pooled.log_score for seed in range(5)}) > 1

    @settings(max_examples=50)
    @given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(2, 6), st.integers(0, 99))
    def test_splits_are_balanced_partitions(self, weight, folds, seed):
        parts = list(_split(np.array(weight), folds, np.random.default_rng(seed)))
        assert np.sum(parts, axis=0).tolist() == weight
        sizes = [part.sum() for part in parts]
        assert len(sizes) == folds
        assert max(sizes) - min(sizes) <= 1

    def test_every_balanced_partition_is_equally_likely(self):
        rng = np.random.default_rng(11)
        draws = 6000
        seen = Counter(tuple(next(_split(np.ones(4, int), 2, rng)).tolist()) for _ in range(draws))
        assert len(seen) == 6
        assert all(abs(count - draws / 6) < 5 * math.sqrt(draws * 5 / 36) for count in seen.values())

    @pytest.mark.parametrize("size", [10**9 - 10, 10**9, 10**13])
    def test_the_number_of_individuals_costs_nothing(self, size):
        weight = [size // 2, size // 5, size - size // 2 - size // 5]
        found = cross_validate(
            [5, 5, 5], [0, 5, 2], [0, 1, None], ShareFit, loss=LOSS, weight=weight, folds=10, rng=2
        )
        assert found.pooled.individuals + found.pooled.left_out == size
        spread = 0.5 if size < 10**9 else 6 * math.sqrt(size / 10)
        assert all(abs(trained - 0.9 * size) <= spread for trained in found.folds["trained"])

    def test_null_predictions_are_left_out(self):
        class Nothing:
            def predict(self, n, s):
                return np.full(np.broadcast(n, s).shape, np.nan)

        found = cross_validate(N, S, TRUTH, lambda _: Nothing(), loss=LOSS, folds=2, rng=1)
        assert (found.pooled.individuals, found.pooled.left_out) == (0, len(N))

    def test_thresholds_are_passed_on(self):
        found = cross_validate(
            N, S, TRUTH, ShareFit, loss=Loss(1, 1, 0), folds=2, rng=1, thresholds=(0.01, 0.99)
        )
        assert found.pooled.share_inconclusive == 1
        assert found.pooled.total_risk == 0

    @pytest.mark.parametrize(
        ("folds", "message"),
        [
            (1, "folds must be a whole number from 2 to 1,000,000, got 1"),
            (2.0, "folds must be a whole number"),
            (9, "folds must be at most the number of individuals, 8, got 9"),
        ],
    )
    def test_bad_folds(self, folds, message):
        with pytest.raises(OptionError, match=message):
            cross_validate(N, S, TRUTH, ShareFit, loss=LOSS, folds=folds, rng=1)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (([3], [1], [1]), "at least 2 individuals, got 1"),
            (([], [], []), "at least 2 individuals, got 0"),
            (([3, 3], [1, 1], [1]), "truth must be as long as n"),
            (([3, 3], [1, 1], [1, 7]), "truth must be 0, 1 or missing, got 7 at position 1"),
            (([3, 3], [1, 4], [1, 0]), "s must be ≤ n"),
        ],
    )
    def test_bad_data(self, data, message):
        with pytest.raises(DataError, match=message):
            cross_validate(*data, ShareFit, loss=LOSS, folds=2, rng=1)
