from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from binreps import DataError, OptionError, fit_bayes
from binreps.study.mammography import MISSING, _errors, simulate_mammography


def equal_weights(_: np.random.Generator, women: int) -> np.ndarray:
    return np.ones(women)


def successive_draws(weights: list[float], number: int) -> np.ndarray:
    """Chance that each woman is among `number` successive draws, by every order of drawing."""
    inclusion = np.zeros(len(weights))
    for order in permutations(range(len(weights)), number):
        chance, remaining = 1.0, sum(weights)
        for i in order:
            chance *= weights[i] / remaining
            remaining -= weights[i]
        inclusion[list(order)] += chance
    return inclusion


def test_the_sizes_are_those_of_the_published_study() -> None:
    study = simulate_mammography(1)
    assert study.readings.shape == (110, 148)
    assert study.truth.tolist() == [0] * 84 + [1] * 64
    unseen = ~study.observed
    assert unseen[:3, :84].sum(axis=1).tolist() == [0, 5, 1]
    assert unseen[:3, 84:].sum(axis=1).tolist() == [1, 3, 0]
    assert not unseen[3:].any()


def test_every_reader_makes_exactly_the_rounded_number_of_errors() -> None:
    study = simulate_mammography(2, missing=())
    healthy = (study.readings[:, :84] == 1).sum(axis=1)
    cancers = (study.readings[:, 84:] == 0).sum(axis=1)
    assert healthy.tolist() == [round(84 * p) for p in study.false_positive.tolist()]
    assert cancers.tolist() == [round(64 * q) for q in study.false_negative.tolist()]


def test_reader_rates_leave_out_what_was_not_read() -> None:
    study = simulate_mammography(3)
    p, q = study.reader_rates
    for j in (0, 1, 2, 50):
        readings = [(t, r) for t, r in zip(study.truth, study.readings[j], strict=True) if r != MISSING]
        for status, rate in ((0, p[j]), (1, q[j])):
            of_class = [r for t, r in readings if t == status]
            assert rate == pytest.approx(sum(r != status for r in of_class) / len(of_class))
    assert p[3:] == pytest.approx(np.rint(84 * study.false_positive[3:]) / 84)


def test_errors_are_successive_draws_without_replacement() -> None:
    """The race of exponentials against every order of drawing; inclusion is not proportional to weight."""
    weights, draws = [1.0, 2.0, 4.0, 0.5], 200_000
    for number in (1, 2, 3):
        rates = np.full(draws, number / 4)
        found = _errors(rates, np.array(weights), np.random.default_rng(number)).mean(axis=0)
        expected = successive_draws(weights, number)
        error = np.sqrt(expected * (1 - expected) / draws)
        assert np.all(np.abs(found - expected) < 4.5 * error)
    proportional = 2 * np.array(weights) / sum(weights)
    assert np.abs(successive_draws(weights, 2) - proportional).max() > 0.1


def test_a_larger_weight_is_a_harder_woman() -> None:
    study = simulate_mammography(4)
    errors = study.errors.sum(axis=0)
    for who in (slice(0, 84), slice(84, 148)):
        hardest = np.argsort(study.weights[who])[-10:]
        assert errors[who][hardest].mean() > 2 * errors[who].mean()


def test_rates_of_readers_have_the_mean_and_spread_asked_for() -> None:
    sizes = {"readers": 40_000, "healthy": 2, "cancers": 2, "missing": ()}
    study = simulate_mammography(5, mean_rates=(0.3, 0.1), spread=0.06, **sizes)
    for rates, mean in ((study.false_positive, 0.3), (study.false_negative, 0.1)):
        assert rates.mean() == pytest.approx(mean, abs=4 * 0.06 / 200)
        assert rates.std() == pytest.approx(0.06, rel=0.03)
    alike = simulate_mammography(5, spread=0)
    assert set(alike.false_positive) == {0.22}
    assert set(alike.false_negative) == {0.13}


def test_a_draw_of_readers_takes_those_who_saw_the_woman() -> None:
    study = simulate_mammography(6, readers=5, missing=[(83, 63)])  # the first reader saw one of each class
    small = study.draw_readers(4, rng=7)
    unseen = ~study.observed[0]
    assert np.all(small.n == 4)
    assert np.array_equal(small.truth, study.truth)
    assert np.array_equal(small.s[unseen], (study.readings[1:, unseen] == 1).sum(axis=0))
    with pytest.raises(OptionError, match="replicates must be a whole number from 1 to 4, got 5"):
        study.draw_readers(5, rng=7)


def test_drawn_readers_are_fair() -> None:
    study = simulate_mammography(8, healthy=1, cancers=1, readers=6, missing=[(0, 0)], spread=0.2)
    rng = np.random.default_rng(9)
    s = np.array([study.draw_readers(2, rng).s for _ in range(4000)])
    share = (study.readings == 1).mean(axis=0)
    assert np.all(np.abs(s.mean(axis=0) / 2 - share) < 4.5 * 0.5 / np.sqrt(8000))


def test_the_counts_hold_every_reading_once() -> None:
    study = simulate_mammography(10)
    assert study.counts.individuals == 148
    assert study.counts.replicates == 110 * 148 - 10
    assert study.counts.positives == (study.readings == 1).sum()
    assert not study.counts.has_known
    assert 0.3 < fit_bayes(study.counts).rates.prevalence < 0.6


def test_the_seed_decides_and_results_are_frozen() -> None:
    one, other = simulate_mammography(11), simulate_mammography(np.random.default_rng(11))
    assert np.array_equal(one.readings, other.readings)
    assert not np.array_equal(one.readings, simulate_mammography(12).readings)
    with pytest.raises(ValueError, match="read-only"):
        one.readings[0, 0] = 1


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"healthy": 0}, OptionError, "healthy must be a whole number from 1"),
        ({"readers": 2.5}, OptionError, "readers must be a whole number from 1"),
        ({"mean_rates": (0.2,)}, OptionError, "mean_rates must be a pair of numbers"),
        (
            {"mean_rates": (0.2, 1.0)},
            OptionError,
            "false-negative rate must be between 0 and 1, got 1.0",
        ),
        ({"spread": 0.5}, OptionError, "spread must be from 0 to below 0.414"),
        ({"spread": -0.1}, OptionError, "spread must be from 0"),
        ({"weights": lambda _, women: np.zeros(women)}, DataError, "finite and > 0, got 0.0"),
        ({"weights": lambda *_: np.ones(3)}, DataError, "one number per woman"),
        ({"missing": [(84, 0)]}, OptionError, "missing of reader 0 must be a whole number from 0 to 83"),
        ({"missing": [(0, 0)] * 3, "readers": 2}, OptionError, "at most 2 readers, got 3"),
    ],
)
def test_what_cannot_be_is_refused(options: dict, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        simulate_mammography(1, **options)


def test_equal_weights_make_all_women_alike() -> None:
    study = simulate_mammography(13, readers=2000, spread=0, weights=equal_weights, missing=())
    share = study.errors[:, :84].mean(axis=0)
    chance = round(84 * 0.22) / 84
    assert np.abs(share - chance).max() < 4.5 * np.sqrt(chance * (1 - chance) / 2000)
