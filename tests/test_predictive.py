from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from binreps.counts import CountTable
from binreps.decide.predictive import predictive_counts
from binreps.errors import OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.overdispersed import fit_overdispersed
from binreps.fits.point.simple import AverageFit
from binreps.fits.populations import fit_populations
from binreps.model import Rates


def fixed(counts: CountTable, theta: float, p: float, q: float) -> AverageFit:
    """A posterior that is one point, so that the predictive law is known."""
    return AverageFit(counts, Rates(theta, p, q))


def law(n: int, theta: float, p: float, q: float) -> np.ndarray:
    """The mixture's probabilities of s = 0 … n, in logarithms."""
    s = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)
    positive = np.log(theta) + s * np.log1p(-q) + (n - s) * np.log(q)
    negative = np.log1p(-theta) + s * np.log(p) + (n - s) * np.log1p(-p)
    return np.exp(choose + np.logaddexp(positive, negative))


@pytest.mark.parametrize("n", [1, 6, 29, 200])
def test_the_mean_is_the_mixture(n: int) -> None:
    counts = CountTable([n], [0], weight=[1000])
    table = predictive_counts(fixed(counts, 0.3, 0.1, 0.2), rng=1, size=3)
    starts, ends = np.array(table["s"]), np.array(table["s_end"])
    np.testing.assert_array_equal(starts[1:], ends[:-1] + 1)
    assert (starts[0], ends[-1]) == (0, n)
    shares = law(n, 0.3, 0.1, 0.2)
    wanted = [1000 * shares[a : b + 1].sum() for a, b in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(table["mean"], wanted, rtol=1e-9, atol=1e-9)


def test_known_statuses_follow_their_own_class() -> None:
    counts = CountTable([2, 2, 2], [0, 0, 2], weight=[50, 30, 20], known=[None, 0, 1])
    table = predictive_counts(fixed(counts, 0.3, 0.1, 0.2), rng=1, size=2)
    negative, positive = np.array([0.81, 0.18, 0.01]), np.array([0.04, 0.32, 0.64])
    mixture = 0.3 * positive + 0.7 * negative
    np.testing.assert_allclose(table["mean"], 50 * mixture + 30 * negative + 20 * positive)
    assert table["observed"] == (80, 0, 20)


def test_the_interval_is_that_of_the_counts() -> None:
    counts = CountTable([1], [0], weight=[400])
    table = predictive_counts(fixed(counts, 0.5, 0.1, 0.1), rng=2, size=20_000)
    # 400 individuals, half of them with s = 1: a binomial, close to a normal of mean 200 and sd 10
    assert abs(table["lower"][1] - (200 - 16.45)) < 1
    assert abs(table["upper"][1] - (200 + 16.45)) < 1


def test_a_good_fit_covers_its_own_data() -> None:
    rng = np.random.default_rng(3)
    shares = law(4, 0.4, 0.1, 0.15)
    inside = total = 0
    for _ in range(20):
        counts = CountTable(np.full(5, 4), np.arange(5), weight=rng.multinomial(300, shares))
        table = predictive_counts(fit_bayes(counts), rng=rng, size=300)
        inside += sum(
            lo <= x <= up for lo, x, up in zip(table["lower"], table["observed"], table["upper"], strict=True)
        )
        total += len(table)
    assert inside / total > 0.9


def test_very_many_replicates_and_individuals_stay_small() -> None:
    counts = CountTable([10**6, 3], [123_456, 2], weight=[10**12, 10**9])
    table = predictive_counts(fixed(counts, 0.3, 0.1, 0.2), rng=1, size=10)
    assert len(table) < 40
    assert sum(table["observed"]) == 10**12 + 10**9
    np.testing.assert_allclose(sum(table["mean"]), 10**12 + 10**9)


def test_the_six_most_common_numbers_of_replicates_are_shown() -> None:
    counts = CountTable(range(10), [0] * 10, weight=[99, 1, 2, 9, 8, 7, 6, 5, 4, 3])
    assert sorted(set(predictive_counts(fixed(counts, 0.3, 0.1, 0.2), rng=1, size=2)["n"])) == [
        3,
        4,
        5,
        6,
        7,
        8,
    ]
    chosen = predictive_counts(fixed(counts, 0.3, 0.1, 0.2), rng=1, size=2, replicates=[2, 1, 2])
    assert sorted(set(chosen["n"])) == [1, 2]


def test_a_seed_repeats_and_options_are_checked() -> None:
    fit = fit_bayes(CountTable([3, 3], [0, 3], weight=[20, 10]))
    assert predictive_counts(fit, rng=5) == predictive_counts(fit, rng=5)
    with pytest.raises(OptionError, match="level"):
        predictive_counts(fit, rng=1, level=1.0)
    with pytest.raises(OptionError, match="size"):
        predictive_counts(fit, rng=1, size=0)
    with pytest.raises(OptionError, match="at least one"):
        predictive_counts(fit, rng=1, replicates=[])


@pytest.mark.slow
def test_correlated_replicates_are_expected_as_their_model_says() -> None:
    """Many with no and many with only positives: without the correlation 15 zeros are expected, not 39."""
    counts = CountTable([8] * 9, range(9), [40, 15, 12, 8, 6, 6, 5, 10, 30])
    table = predictive_counts(fit_overdispersed(counts), rng=1, size=2000)
    assert table["mean"][0] == pytest.approx(39.0, abs=0.6)
    assert sum(table["mean"]) == pytest.approx(counts.individuals)


def test_several_populations_are_expected_together() -> None:
    low, high = CountTable([3] * 4, range(4), [90, 6, 2, 2]), CountTable([3] * 4, range(4), [40, 6, 9, 45])
    table = predictive_counts(fit_populations({"low": low, "high": high}), rng=1)
    assert table["observed"] == (130, 12, 11, 47)
    assert sum(table["mean"]) == pytest.approx(200)
    assert table["mean"][0] == pytest.approx(130, abs=6)
