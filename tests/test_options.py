"""The options that many functions share have one rule and one sentence each."""

from __future__ import annotations

import numpy as np
import pytest

from binreps import (
    CountTable,
    Loss,
    OptionError,
    Rates,
    cross_validate,
    fit_average,
    fit_map,
    simulate,
)
from binreps.options import check_level, check_tol, check_whole, generator

COUNTS = CountTable([3, 3], [0, 3])


def test_a_generator_is_used_and_a_seed_makes_one() -> None:
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    assert generator(5).random() == generator(np.int64(5)).random() == np.random.default_rng(5).random()


@pytest.mark.parametrize("bad", [None, -1, 1.5, True, "1", np.random.RandomState(1)])
@pytest.mark.parametrize(
    "call",
    [
        lambda rng: simulate(Rates(0.3, 0.1, 0.1), 5, 3, rng),
        lambda rng: fit_map(COUNTS, algorithm="em", rng=rng),
        lambda rng: cross_validate([3, 3], [0, 3], [0, 1], fit_average, loss=Loss(), folds=2, rng=rng),
    ],
)
def test_anything_else_is_no_source_of_randomness(call, bad: object) -> None:
    with pytest.raises(OptionError, match=r"^rng must be a numpy Generator or a whole-number seed ≥ 0, got "):
        call(bad)


@pytest.mark.parametrize("bad", [0, 2.0, True, "3", 10**10])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("max_iter", lambda value: fit_map(COUNTS, max_iter=value)),
        ("max_iter", lambda value: fit_map(COUNTS, algorithm="em", rng=1, max_iter=value)),
        ("starts", lambda value: fit_map(COUNTS, algorithm="em", rng=1, starts=value)),
    ],
)
def test_whole_numbers_in_their_range(name: str, call, bad: object) -> None:
    with pytest.raises(
        OptionError, match=f"^{name} must be a whole number from 1 to 1,000,000,000, got {bad!r}"
    ):
        call(bad)
    check_whole("folds", np.int8(2), 2, 5)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "fit", [fit_map, lambda counts, tol: fit_map(counts, algorithm="em", rng=1, tol=tol)]
)
def test_a_tolerance_is_positive(fit, bad: float) -> None:
    with pytest.raises(OptionError, match=r"^tol must be a finite number > 0, got "):
        fit(COUNTS, tol=bad)
    check_tol(1e-300)


@pytest.mark.parametrize("bad", [0, 1, 90, float("nan")])
def test_a_level_is_a_probability(bad: float) -> None:
    with pytest.raises(OptionError, match=r"^level must be between 0 and 1, got "):
        check_level(bad)
    check_level(0.5)
