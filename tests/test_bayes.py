"""The Bayesian fit against closed forms, golden values, symmetries and its own error."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import kstest

from binreps import CountTable, DataError, OptionError, Prior, Rates, simulate
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.fits.exact import posterior as exact
from binreps.fits.exact.rules import Lattices
from binreps.model import NAMES
from by_hand import as_array
from oracles import ExactPosterior, expected_score, golden, prediction_quantile, score_quantile
from small_tables import NOBODY, SMALL, TINY

LABELLED = CountTable(
    [3, 2, 4, 5, 0, 3], [1, 2, 1, 4, 0, 2], [2, 1, 3, 1, 2, 4], known=[None, None, 0, 1, 1, None]
)
DEFAULT = Prior()
MISGUIDED = Prior((0.5, 0.5), (50, 50), (50, 50))
SINGULAR = Prior((0.5, 0.5), (0.1, 1), (0.1, 1))
UNEVEN = Prior((1.5, 4), (1, 7), (3.3, 2.5))
PRIORS = {"default": DEFAULT, "misguided": MISGUIDED, "singular": SINGULAR, "uneven": UNEVEN}
each_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())

fitted = cache(fit_bayes)


def rows(counts: CountTable) -> list[tuple[int, int, int]]:
    """n, s and known status of each cell."""
    return list(zip(counts.n.tolist(), counts.s.tolist(), counts.known.tolist(), strict=True))


def random_table(rng: np.random.Generator) -> CountTable:
    """Up to 8 cells of up to 16 individuals with up to 12 replicates; sometimes all or none positive."""
    cells = int(rng.integers(1, 9))
    n = rng.integers(0, rng.choice([2, 3, 6, 12]) + 1, cells)
    extreme = np.where(rng.random(cells) < 0.5, 0, n)
    s = extreme if rng.random() < 0.3 else rng.integers(0, n + 1)
    weight = np.ceil(10 ** rng.uniform(0, rng.choice([0.3, 0.8, 1.2]), cells))
    share_known = rng.choice([0, 0, 0, 0.5, 1])
    known = [int(rng.integers(2)) if rng.random() < share_known else None for _ in range(cells)]
    return CountTable(n, s, weight, known)


def random_prior(rng: np.random.Generator) -> Prior:
    """The default, or shapes log-uniform from 0.1 to 1000, or round ones from 0.1 to 20."""
    if rng.random() < 0.25:
        return Prior()
    wide = [10 ** rng.uniform(-1, 3, 2) for _ in NAMES]
    round_ones = [rng.choice([0.1, 0.3, 0.5, 1, 2, 5, 20], 2) for _ in NAMES]
    return Prior(*(tuple(wide[i] if rng.random() < 0.5 else round_ones[i]) for i in range(3)))


def random_case(seed: int) -> tuple[CountTable, Prior, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return random_table(rng), random_prior(rng), rng


each_seed = pytest.mark.parametrize("seed", range(40))


# --- golden values --------------------------------------------------------------------------------------

GOLDEN = (
    "N1_n3s1",
    "periodontal_default",
    "periodontal_misguided",
    "periodontal_singular_a0.1",
    "rare_theta1e-4_N1e6",
    "mammography_default",
    "prior_beta1e6_periodontal",
    "n1e4_four_individuals",
    "boundary_p_half_N1e6",
    "n1_only_N1e3",
    "N1e9_n345",
    pytest.param("ridge_n2_only_N1e6", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name: str) -> None:
    case = golden(name)
    fit = fit_bayes(case.counts, case.prior)
    assert np.abs((as_array(fit.rates) - case.means) / case.sds).max() < 1e-8
    assert np.abs(as_array(fit.sd) / case.sds - 1).max() < 1e-8
    assert fit.log_evidence == pytest.approx(case.log_evidence, rel=1e-8)
    for axis, rate in enumerate(NAMES):
        wanted = case.quantiles[rate]
        found = fit.marginal(rate).quantile(np.array(list(wanted)))
        assert np.abs(found - list(wanted.values())).max() < 1e-8 * case.sds[axis]
    n, s, scores = (np.array(column) for column in zip(*case.scores, strict=True))
    assert np.abs(fit.score(n.astype(int), s.astype(int)) - scores).max() < 1e-8
    assert fit.error < 1e-8


# --- the closed form: random small tables ---------------------------------------------------------------


@each_seed
def test_moments_evidence_and_quantiles_are_the_closed_forms(seed: int) -> None:
    counts, prior, rng = random_case(seed)
    fit, exact = fitted(counts, prior), ExactPosterior(counts, prior)
    assert fit.log_evidence == pytest.approx(exact.log_evidence, rel=1e-9, abs=1e-9)
    assert np.abs((as_array(fit.rates) - exact.means) / exact.sds).max() < 1e-8
    assert np.abs(as_array(fit.sd) / exact.sds - 1).max() < 1e-8
    assert np.abs(fit.correlation - exact.correlations).max() < 1e-8
    probability = rng.uniform(0.001, 0.999, 3)
    found = fit.quantile(probability)
    for axis, (rate, values) in enumerate(zip(NAMES, found, strict=True)):
        wanted = [exact.quantile(rate, p) for p in probability]
        assert np.abs(values - wanted).max() < 1e-8 * exact.sds[axis]


@each_seed
def test_scores_of_fitted_individuals_are_the_closed_forms(seed: int) -> None:
    counts, prior, _ = random_case(seed)
    fit, exact = fitted(counts, prior), ExactPosterior(counts, prior)
    for n, s, known in rows(counts)[:3]:
        if known < 0:
            assert fit.score(n, s) == pytest.approx(exact.score(n, s), abs=1e-9)


@each_seed
def test_predictions_are_the_closed_forms(seed: int) -> None:
    counts, prior, rng = random_case(seed)
    fit, exact = fitted(counts, prior), ExactPosterior(counts, prior)
    for n in (0, 1, 5, 40):
        s = int(rng.integers(n + 1))
        assert fit.predict(n, s) == pytest.approx(exact.predict(n, s), abs=1e-8)


def next_replicate(counts: CountTable, prior: Prior, n: int, s: int, new: bool) -> float:
    """The evidence with one more positive replicate over the evidence without."""
    others = counts if new else remove(counts, n, s)
    more, less = (ExactPosterior(others + CountTable([n + k], [s + k]), prior) for k in (1, 0))
    return float(np.exp(more.log_evidence - less.log_evidence))


def remove(counts: CountTable, n: int, s: int) -> CountTable:
    """The table without one individual of a cell of unknown status."""
    here = (counts.n == n) & (counts.s == s) & (counts.known < 0)
    return CountTable(counts.n, counts.s, counts.weight - here, counts.known)


@each_seed
def test_the_next_replicate_is_a_ratio_of_evidences(seed: int) -> None:
    counts, prior, rng = random_case(seed)
    fit = fitted(counts, prior)
    for n, s, known in rows(counts)[:2]:
        if known < 0:
            wanted = next_replicate(counts, prior, n, s, new=False)
            assert fit.next_replicate(n, s) == pytest.approx(wanted, abs=1e-9)
    for n in (0, 3, 30):
        s = int(rng.integers(n + 1))
        wanted = next_replicate(counts, prior, n, s, new=True)
        assert fit.next_replicate(n, s, new=True) == pytest.approx(wanted, abs=1e-8)


# --- cells that are not in the data ---------------------------------------------------------------------

UNSEEN = [(1, 0), (8, 0), (8, 8), (20, 8), (20, 19), (30, 26)]


@pytest.mark.parametrize(("counts", "prior"), [(TINY, DEFAULT), (SMALL, DEFAULT), (TINY, UNEVEN)])
@pytest.mark.slow
def test_scores_of_unseen_cells_however_sharp(counts: CountTable, prior: Prior) -> None:
    """Y_L(8, 0) jumps from 0 to 1 within 1e-5 of θ = 1, where the default prior has a pole."""
    fit = fitted(counts, prior)
    for n, s in UNSEEN:
        wanted = expected_score(counts, n, s, prior, tol=1e-10)
        assert fit.score(n, s) == pytest.approx(wanted, abs=1e-8)


def test_scores_of_unseen_cells_under_singular_priors() -> None:
    """Y_L(20, 19) jumps at q ≈ 1e-6, and a quarter of the mass of Beta(0.1, 2) is below."""
    counts, prior = CountTable([1, 6, 7, 8], [1, 0, 0, 8], [2] * 4), Prior((0.5, 0.3), (20, 0.5), (0.1, 2))
    wanted, fit = expected_score(counts, 20, 19, prior, tol=1e-9), fit_bayes(counts, prior)
    assert abs(fit.score(20, 19) - wanted) < fit.score_error(20, 19) < 0.01


def test_scores_say_how_good_they_are() -> None:
    """The sharpest ones are not exact, and say so."""
    fit = fitted(TINY, UNEVEN)
    for n, s in ((30, 3), (100, 10)):
        error = abs(fit.score(n, s) - expected_score(TINY, n, s, UNEVEN, tol=1e-10))
        assert error < fit.score_error(n, s) < 1e-3


def test_predictions_of_far_cells_are_fitted_anew() -> None:
    """A result that the data never led one to expect."""
    fit, exact = fitted(SMALL), ExactPosterior(SMALL)
    for n, s in ((100, 40), (300, 130), (1000, 450), (1000, 999)):
        assert fit.predict(n, s) == pytest.approx(exact.predict(n, s), abs=1e-8)
        assert fit.predict_error(n, s) < 1e-7


def test_the_papers_prediction_is_the_score() -> None:
    for fit in (fitted(NOBODY), fitted(SMALL), fitted(LABELLED, UNEVEN)):
        n, s = np.array([0, 1, 6, 6, 20]), np.array([0, 1, 2, 6, 8])
        assert np.array_equal(fit.predict_paper(n, s), fit.score(n, s))
        assert np.all(np.abs(fit.predict_paper(n, s)[1:] - fit.predict(n, s)[1:]) > 1e-4)


def test_published_predictions(periodontal: tuple[np.ndarray, ...]) -> None:
    n, s, _ = periodontal
    fit = fitted(CountTable(n, s))
    assert fit.predict([6, 20], [2, 8]) == pytest.approx([0.395, 0.348], abs=5e-4)
    assert fit.predict_paper([6, 20], [2, 8]) == pytest.approx([0.464, 0.587], abs=5e-4)
    assert fitted(NOBODY).predict(6, 6) == pytest.approx(0.980, abs=5e-4)
    assert fitted(NOBODY).predict_paper(6, 6) == pytest.approx(0.877, abs=5e-4)


@pytest.mark.parametrize("case", [(NOBODY, DEFAULT), (SMALL, DEFAULT), (LABELLED, SINGULAR)])
@pytest.mark.parametrize("replicates", [1, 4, 9])
def test_predictions_are_a_martingale(case: tuple[CountTable, Prior], replicates: int) -> None:
    """What one will believe, averaged over what one may see, is what one believes now."""
    fit = fitted(*case)
    total = expected = 0.0
    for s in range(replicates + 1):
        later = fit_bayes(fit.counts + CountTable([replicates], [s]), fit.prior)
        probability = comb(replicates, s) * np.exp(later.log_evidence - fit.log_evidence)
        total += probability
        expected += probability * fit.predict(replicates, s)
    assert total == pytest.approx(1, abs=1e-9)
    assert expected == pytest.approx(fit.rates.prevalence, abs=1e-9)


# --- intervals of scores --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "prior", "cells"),
    [
        (SMALL, DEFAULT, [(3, 2), (6, 2), (9, 4)]),
        (SMALL, UNEVEN, [(0, 0), (3, 2), (20, 0)]),
        (SMALL, MISGUIDED, [(4, 1), (20, 8)]),
        (TINY, SINGULAR, [(3, 1), (6, 5)]),
        (LABELLED, DEFAULT, [(3, 2), (4, 1)]),
    ],
)
@pytest.mark.slow
def test_intervals_of_scores_and_predictions(
    counts: CountTable, prior: Prior, cells: list[tuple[int, int]]
) -> None:
    """Within the error that is stated: 1e-4, or where the prior of an error rate has a pole 5e-3."""
    fit = fitted(counts, prior)
    n, s = np.transpose(cells)
    scores, predictions = fit.score_interval(n, s, level=0.8), fit.predict_interval(n, s, level=0.8)
    score_error = fit.score_interval_error(n, s, level=0.8)
    predict_error = fit.predict_interval_error(n, s, level=0.8)
    assert max(score_error.max(), predict_error.max()) < (5e-3 if prior is SINGULAR else 1e-4)
    for i, cell in enumerate(cells):
        for side, probability in enumerate((0.1, 0.9)):
            wanted = score_quantile(counts, *cell, probability, prior)
            assert abs(scores[side][i] - wanted) < score_error[i]
            wanted = prediction_quantile(counts, *cell, probability, prior)
            assert abs(predictions[side][i] - wanted) < predict_error[i]


@pytest.mark.slow
def test_the_interval_of_a_prediction_is_that_of_a_score_once_the_individual_is_fitted() -> None:
    """Also far from the data, where the posterior is fitted anew."""
    for n, s in ((4, 3), (40, 20), (300, 140)):
        later = fit_bayes(SMALL + CountTable([n], [s]))
        error = fitted(SMALL).predict_interval_error(n, s) + later.score_interval_error(n, s)
        assert error < 2e-4
        assert fitted(SMALL).predict_interval(n, s) == pytest.approx(later.score_interval(n, s), abs=error)


@pytest.mark.slow
def test_intervals_of_scores_on_a_ridge() -> None:
    """The median score of a ridge lies inside, and the interval of n = 0 is that of the prevalence."""
    fit = fitted(CountTable([2, 2, 2], [0, 1, 2], [50_000, 20_000, 30_000]))
    assert isinstance(fit.posterior.rule, Lattices)
    lower, upper = fit.score_interval([0, 2, 2, 2], [0, 0, 1, 2])
    assert np.all(lower < fit.score([0, 2, 2, 2], [0, 0, 1, 2]))
    assert np.all(fit.score([0, 2, 2, 2], [0, 0, 1, 2]) < upper)
    assert lower[0] == pytest.approx(fit.quantile(0.05).prevalence, abs=1e-7)
    assert upper[0] == pytest.approx(fit.quantile(0.95).prevalence, abs=1e-7)


@pytest.mark.slow
def test_thousands_of_cells_are_summed_by_a_product_too() -> None:
    """Cells of two logits would take ten times as long."""
    counts = simulate(Rates(0.3, 0.12, 0.2), 20_000, range(1, 150), rng=1).counts
    assert len(counts) > 3500
    fit = fit_bayes(counts)
    assert isinstance(fit.posterior, exact.ExactPosterior)
    assert fit.error < 1e-8


@pytest.mark.parametrize("better", [False, True])
@pytest.mark.parametrize("weight", [100, 10**5])
def test_draws_from_two_modes_come_from_both(weight: int, better: bool) -> None:
    """The middle third joins either end, alike: half of the draws from each mode, each with its own law."""
    fit = fitted(CountTable([6, 6, 6], [0, 3, 6], [weight] * 3), Prior(better_than_chance=better))
    draws = fit.draws(4000, rng=3)
    assert abs(np.mean(draws.prevalence > 0.5) - 0.5) < 4 * 0.5 / np.sqrt(4000)
    for name in NAMES:
        assert kstest(getattr(draws, name), fit.marginal(name).cumulative).pvalue > 1e-4
    above = draws.prevalence > 0.5  # there the middle is positive: the false negatives are theirs
    assert np.all(draws.false_negative[above] > draws.false_positive[above])


@pytest.mark.parametrize("better", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_density_and_mode_on_a_ridge_are_those_of_its_distribution_function(name: str, better: bool) -> None:
    counts = CountTable([2, 2, 2], [0, 1, 2], [650_000, 130_000, 220_000])
    fit = fitted(counts, Prior(better_than_chance=better))
    law, sd = fit.marginal(name), getattr(fit.sd, name)

    def slope(x: Any) -> Any:
        return (law.cumulative(x + 1e-3 * sd) - law.cumulative(x - 1e-3 * sd)) / (2e-3 * sd)

    x = law.quantile(np.linspace(0.005, 0.995, 200))
    assert law.density(x) == pytest.approx(slope(x), rel=1e-3)
    close = np.linspace(*law.quantile(np.array([0.001, 0.999])), 1001)
    assert abs(law.mode - close[np.argmax(slope(close))]) < 0.02 * sd
    low, high = law.shortest(0.8)
    assert law.cumulative(high) - law.cumulative(low) == pytest.approx(0.8, abs=1e-9)
    assert slope(low) == pytest.approx(slope(high), rel=1e-4)
    for end in (low, high):
        assert law.density(end) == pytest.approx(slope(end), rel=1e-4)


def test_a_rate_that_floats_hardly_resolve_says_how_well() -> None:
    """10¹³ replicates of individuals known to be positive, all negative: q is ½ to twelve digits.

    Near ½ its density falls like e^(−2·10¹³ (½ − q)): an exponential law of mean 5·10⁻¹⁴.
    """
    counts = CountTable([10**6, 3], [0, 1], [10**7, 5], known=[1, None])
    fit = fit_bayes(counts)
    assert 1e-3 < fit.error < 0.05  # floats near ½ are 1/1000 of that apart
    assert abs((0.5 - fit.rates.false_negative) / 5e-14 - 1) < 5 * fit.error
    assert abs(fit.sd.false_negative / 5e-14 - 1) < 5 * fit.error


# --- intervals of rates ---------------------------------------------------------------------------------


@each_prior
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_hold_their_level_and_the_shortest_is_shortest(prior: Prior, level: float) -> None:
    exact, fit = ExactPosterior(SMALL, prior), fitted(SMALL, prior)
    tailed, shortest = fit.interval(level), fit.hdi(level)
    for axis, rate in enumerate(NAMES):
        lower, upper = (as_array(end)[axis] for end in tailed)
        assert lower == pytest.approx(exact.quantile(rate, (1 - level) / 2), abs=1e-9)
        assert upper == pytest.approx(exact.quantile(rate, (1 + level) / 2), abs=1e-9)
        lower, upper = (as_array(end)[axis] for end in shortest)
        assert mass_between(exact, rate, lower, upper) == pytest.approx(level, abs=1e-9)
        marginal = fit.marginal(rate)
        below = np.linspace(0, 1 - level, 401)[1:-1]
        lengths = marginal.quantile(below + level) - marginal.quantile(below)
        assert upper - lower <= lengths.min() + 1e-9


def mass_between(exact: ExactPosterior, rate: str, lower: float, upper: float) -> float:
    """Posterior probability of an interval that may reach the ends of the support."""
    end = 1.0 if rate == NAMES[0] else 0.5
    above = 1.0 if upper > end - 1e-9 else exact.cdf(rate, upper)
    return above - (0.0 if lower < 1e-300 else exact.cdf(rate, lower))


def test_published_modes(periodontal: tuple[np.ndarray, ...]) -> None:
    n, s, _ = periodontal
    counts = CountTable(n, s)
    assert as_array(fitted(counts).mode) == pytest.approx([0.672, 0.113, 0.293], abs=5e-4)
    mode = fitted(counts, MISGUIDED).mode
    assert mode.false_positive == 0.5  # the density rises all the way to the end, and is finite there
    assert mode.false_negative == pytest.approx(0.454, abs=5e-4)


@each_prior
def test_modes_are_where_the_density_is_highest(prior: Prior) -> None:
    exact, fit = ExactPosterior(SMALL, prior), fitted(SMALL, prior)
    for rate, mode in zip(NAMES, fit.mode, strict=True):
        if np.isnan(mode):
            continue
        end = 1.0 if rate == NAMES[0] else 0.5
        top = exact.density(rate, min(mode, end * (1 - 1e-12)))
        for step in (-0.03, -1e-3, 1e-3, 0.03):
            if 0 < mode + step < end:
                assert exact.density(rate, mode + step) < top


def test_a_density_that_falls_from_a_pole_has_no_mode() -> None:
    assert np.isnan(fit_bayes(NOBODY, Prior((0.5, 3), (2, 2), (2, 2))).mode.prevalence)
    assert fit_bayes(NOBODY, Prior((1, 3), (2, 2), (2, 2))).mode.prevalence == 0
    assert fit_bayes(NOBODY, Prior((3, 1), (2, 2), (2, 2))).mode.prevalence == 1


# --- draws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [(NOBODY, DEFAULT), (SMALL, DEFAULT), (LABELLED, SINGULAR), (SMALL, UNEVEN)])
def test_draws_follow_the_posterior(case: tuple[CountTable, Prior]) -> None:
    """Each rate by Kolmogorov and Smirnov, second moments by their standard error; a fixed seed."""
    fit, exact = fitted(*case), ExactPosterior(*case)
    draws = fit.draws(4000, rng=1)
    for rate, values in zip(NAMES, draws, strict=True):
        assert values.shape == (4000,)
        assert kstest(fit.marginal(rate).cumulative(values), "uniform").pvalue > 0.005
    theta, p, q = draws
    products = {(1, 1, 0): theta * p, (1, 0, 1): theta * q, (0, 1, 1): p * q, (0, 2, 0): p * p}
    for powers, values in products.items():
        error = values.std() / np.sqrt(values.size)
        assert abs(values.mean() - exact.moment(*powers)) < 3.5 * error


STEEP = [
    (NOBODY, Prior((19, 0.55), (17, 11), (0.5, 0.5), better_than_chance=True)),
    (CountTable([1], [0]), Prior((32, 69), (0.0534, 0.88), (28, 28), better_than_chance=True)),
    (CountTable([1], [0]), Prior((0.064, 1.2), (168, 954), (0.125, 692), better_than_chance=True)),
    (CountTable([1, 2], [1, 1], [30, 20]), Prior((0.4, 0.4), (0.2, 2), (0.1, 2))),
]


@pytest.mark.parametrize("case", STEEP, ids=["nobody", "p", "prevalence and q", "a few"])
def test_draws_beside_poles_of_the_prior(case: tuple[CountTable, Prior]) -> None:
    """A lattice that lacks a tail is not drawn from: one in the moments had none of the last two."""
    fit = fitted(*case)
    for name, values in zip(NAMES, fit.draws(4000, rng=1), strict=True):
        assert kstest(fit.marginal(name).cumulative(values), "uniform").pvalue > 1e-3


def test_draws_of_a_million_individuals() -> None:
    fit = fitted(CountTable([4] * 5, range(5), [450_000, 180_000, 60_000, 110_000, 200_000]))
    draws = np.stack(list(fit.draws(4000, rng=2)))
    assert np.all(np.abs(draws.mean(axis=1) - as_array(fit.rates)) < 3.5 * as_array(fit.sd) / np.sqrt(4000))
    assert np.abs(np.corrcoef(draws) - fit.correlation).max() < 0.05


def test_draws_depend_on_the_seed_alone() -> None:
    fit = fitted(SMALL)
    one, same, other = (fit.draws(50, rng) for rng in (7, np.random.default_rng(7), 8))
    assert one == same
    assert one != other
    assert fit.draws(0, 1).prevalence.shape == (0,)


def test_drawn_positives_have_the_scores_as_their_share() -> None:
    fit = fitted(LABELLED)
    drawn = fit.draw_positives(4000, rng=3)
    assert drawn.shape == (4000, len(LABELLED))
    assert drawn.min() >= 0
    assert np.all(drawn <= LABELLED.weight)
    for k, (n, s, known) in enumerate(rows(LABELLED)):
        weight = int(LABELLED.weight[k])
        if known >= 0:
            assert np.all(drawn[:, k] == known * weight)
        else:
            error = drawn[:, k].std() / np.sqrt(4000)
            assert abs(drawn[:, k].mean() - weight * fit.score(n, s)) < 3.5 * error


# --- special tables -------------------------------------------------------------------------------------


def truncated_moments(a: float, b: float) -> tuple[float, float]:
    """Mean and sd of a Beta truncated to (0, ½), from SciPy's incomplete beta functions."""
    below = betainc(a, b, 0.5)
    first = a / (a + b) * betainc(a + 1, b, 0.5) / below
    second = a * (a + 1) / ((a + b) * (a + b + 1)) * betainc(a + 2, b, 0.5) / below
    return float(first), float(np.sqrt(second - first**2))


@each_prior
def test_without_data_the_posterior_is_the_prior(prior: Prior) -> None:
    fit = fitted(NOBODY, prior)
    a, b = prior.prevalence
    assert fit.rates.prevalence == pytest.approx(a / (a + b), rel=1e-12)
    assert fit.sd.prevalence == pytest.approx(np.sqrt(a * b / (a + b + 1)) / (a + b), rel=1e-10)
    for rate in NAMES[1:]:
        mean, sd = truncated_moments(*getattr(prior, rate))
        assert getattr(fit.rates, rate) == pytest.approx(mean, rel=1e-12)
        assert getattr(fit.sd, rate) == pytest.approx(sd, rel=1e-9)
    assert fit.log_evidence == pytest.approx(0, abs=1e-11)
    np.testing.assert_allclose(fit.correlation, np.eye(3), atol=1e-9)


def test_individuals_without_replicates_say_nothing_and_score_the_prevalence() -> None:
    silent = SMALL + CountTable([0], [0], [10**6])
    fit = fitted(silent)
    assert as_array(fit.rates) == pytest.approx(as_array(fitted(SMALL).rates), rel=1e-13)
    assert fit.log_evidence == pytest.approx(fitted(SMALL).log_evidence, rel=1e-13)
    assert fit.score(0, 0) == pytest.approx(fit.rates.prevalence, abs=1e-12)
    assert fit.predict(0, 0) == pytest.approx(fit.rates.prevalence, abs=1e-12)


@each_prior
@pytest.mark.parametrize("known", [[1, 1, 0, 0], [1, None, 0, None], [1, 1, None, None], [0, 0, 0, 0]])
def test_known_statuses(prior: Prior, known: list[int | None]) -> None:
    counts = CountTable([4, 3, 4, 6], [4, 2, 0, 1], [3, 2, 4, 2], known)
    fit, exact = fitted(counts, prior), ExactPosterior(counts, prior)
    assert as_array(fit.rates) == pytest.approx(exact.means, rel=1e-10)
    assert as_array(fit.sd) == pytest.approx(exact.sds, rel=1e-9)
    assert fit.log_evidence == pytest.approx(exact.log_evidence, rel=1e-11)
    if None not in known:  # conjugate: the prevalence is a Beta
        positives, (a, b) = int(counts.weight[counts.known == 1].sum()), prior.prevalence
        assert fit.rates.prevalence == pytest.approx((a + positives) / (a + b + 11), rel=1e-11)


def mirrored(counts: CountTable) -> CountTable:
    """Positive for negative."""
    known = [None if status < 0 else 1 - status for status in counts.known.tolist()]
    return CountTable(counts.n, counts.n - counts.s, counts.weight, known)


@pytest.mark.parametrize("individuals", [10**2, 10**6, 10**9])
def test_nothing_but_negatives(individuals: int) -> None:
    """All zero, and all one: the same posterior mirrored, up to the rounding of a prevalence close to 1."""
    counts = CountTable([3], [0], [individuals])
    zeros, ones = fit_bayes(counts), fit_bayes(mirrored(counts))
    sd = as_array(zeros.sd)
    theta, p, q = ones.rates
    allowed = np.array([2.3e-16 / sd[0] + 1e-8, 1e-8, 1e-8])
    assert np.all(np.abs(as_array(ones.sd)[[0, 2, 1]] / sd - 1) < allowed)
    assert np.all(np.abs(as_array(zeros.rates) - [1 - theta, q, p]) / sd < allowed)
    assert zeros.log_evidence == pytest.approx(ones.log_evidence, rel=1e-8)
    # Nearly everyone is negative: p is about Beta(2, 3N), and q keeps its prior apart from a few positives.
    assert zeros.rates.false_positive == pytest.approx(2 / (3 * individuals), rel=0.05)
    assert zeros.rates.false_negative == pytest.approx(0.3147, abs=2e-3)
    assert ones.error >= 2.2e-16 / sd[0]


@pytest.mark.parametrize("individuals", [10**6, 10**9, 10**12, 2**52])
def test_any_number_of_individuals(individuals: int) -> None:
    """The posterior shrinks like 1/√N around the same point, and nothing turns into NaN."""
    shares = np.array([0.45, 0.18, 0.06, 0.11, 0.2])
    fit = fit_bayes(CountTable([4] * 5, range(5), np.floor(shares * individuals)))
    small = fitted(CountTable([4] * 5, range(5), np.floor(shares * 10**8)))
    ratio = as_array(small.sd) / as_array(fit.sd) / np.sqrt(individuals / 10**8)
    assert ratio == pytest.approx([1, 1, 1], rel=1e-4)
    distance = np.abs(as_array(small.rates) - as_array(fit.rates))
    assert np.all(distance < 0.1 * np.maximum(as_array(small.sd), as_array(fit.sd)))
    lower, upper = fit.interval(0.9)
    width = (as_array(upper) - as_array(lower)) / as_array(fit.sd)
    assert width == pytest.approx([2 * 1.6448536] * 3, rel=1e-3)
    assert np.all(np.isfinite(fit.score([4] * 5, range(5))))
    assert np.all(np.isfinite(fit.predict([4] * 5, range(5))))
    assert fit.error < (1e-8 if individuals < 10**15 else 1e-7)


def test_two_modes_of_moderate_data() -> None:
    counts = CountTable([6, 6, 6], [0, 3, 6], [20, 18, 21])
    fit, exact = fit_bayes(counts), ExactPosterior(counts)
    assert np.abs((as_array(fit.rates) - exact.means) / exact.sds).max() < 1e-8
    assert np.abs(as_array(fit.sd) / exact.sds - 1).max() < 1e-8
    for axis, rate in enumerate(NAMES):
        error = fit.marginal(rate).quantile(0.5) - exact.quantile(rate, 0.5)
        assert abs(error) < 1e-7 * exact.sds[axis]  # a median between two modes is ill-conditioned


@pytest.mark.parametrize("factor", [1, 3, 100])
@pytest.mark.slow
def test_two_modes_that_mirror_each_other(factor: int) -> None:
    """Those with half of their replicates positive may be either: by symmetry with probability ½."""
    counts = CountTable([6, 6, 6], [0, 3, 6], np.array([50, 45, 50]) * factor)
    fit = fit_bayes(counts)
    assert fit.rates.prevalence == pytest.approx(0.5, abs=1e-8)
    assert fit.score(6, 3) == pytest.approx(0.5, abs=1e-7)
    assert fit.rates.false_positive == pytest.approx(fit.rates.false_negative, abs=1e-8)
    assert fit.sd.prevalence == pytest.approx(0.16, abs=0.01)


@pytest.mark.parametrize("individuals", [60, 600, 2000])
@pytest.mark.slow
def test_ridges_that_still_fit_a_box(individuals: int) -> None:
    """n = 1 only: the number of positives is all there is, and the closed form is short."""
    positives = individuals // 3
    counts = CountTable([1, 1], [1, 0], [positives, individuals - positives])
    fit = fit_bayes(counts)
    assert fit.error < 1e-8
    assert not counts.identifiable
    later = fit_bayes(counts + CountTable([1], [1]))
    total = np.exp(later.log_evidence - fit.log_evidence)
    assert fit.next_replicate(0, 0, new=True) == pytest.approx(total, abs=1e-9)
    if individuals == 60:
        exact = ExactPosterior(counts)
        assert np.abs((as_array(fit.rates) - exact.means) / exact.sds).max() < 1e-8


def test_thousands_of_replicates() -> None:
    counts = CountTable([5000, 3000, 800], [2000, 10, 700])
    fit, exact = fit_bayes(counts), ExactPosterior(counts, digits=40)
    means, sds = (np.array(values, dtype=float) for values in (exact.means, exact.sds))
    assert np.abs((as_array(fit.rates) - means) / sds).max() < 1e-8
    assert np.abs(as_array(fit.sd) / sds - 1).max() < 1e-8
    assert fit.log_evidence == pytest.approx(float(exact.log_evidence), rel=1e-11)


def test_two_thousand_cells() -> None:
    n, s = np.transpose([(n, s) for n in range(63) for s in range(n + 1)])[:, :2000]
    rng = np.random.default_rng(1)
    status = rng.random(2000) < 0.4
    s = rng.binomial(n, np.where(status, 0.8, 0.15))
    fit = fit_bayes(CountTable(n, s, rng.integers(1, 9, 2000)))
    assert len(fit.counts) > 400
    assert np.all(np.abs(as_array(fit.rates) - [0.4, 0.15, 0.2]) < [0.06, 0.01, 0.01])
    assert fit.error < 1e-8


@pytest.mark.parametrize(
    "prior",
    [
        Prior((0.1, 1), (0.1, 1), (0.1, 1)),
        Prior((1e6, 1e6), (1e6, 1e6), (1e6, 1e6)),
        Prior((0.1, 0.1), (1e6, 1), (1, 1e6)),
        Prior((1, 1e4), (1e4, 1), (0.2, 0.2)),
    ],
)
@pytest.mark.slow
def test_extreme_priors(prior: Prior) -> None:
    fit, exact = fitted(TINY, prior), ExactPosterior(TINY, prior, digits=40)
    means, sds = (np.array(values, dtype=float) for values in (exact.means, exact.sds))
    assert np.abs((as_array(fit.rates) - means) / sds).max() < 1e-8
    assert np.abs(as_array(fit.sd) / sds - 1).max() < 1e-8
    assert fit.log_evidence == pytest.approx(float(exact.log_evidence), abs=1e-8)


# --- repeated runs --------------------------------------------------------------------------------------

ANSWERS = """
import numpy as np
from binreps import CountTable
from binreps.fits.bayes import fit_bayes
counts = CountTable([1, 2, 3, 3, 4, 4, 5, 6, 6], [1, 0, 0, 2, 1, 4, 5, 2, 5], [2, 1, 3, 2, 1, 2, 1, 1, 2])
for fit in (fit_bayes(counts), fit_bayes(CountTable(counts.n, counts.s, 10**6 * counts.weight))):
    lower, upper = fit.interval()
    parts = [fit.rates, fit.sd, lower, upper, *fit.hdi(), fit.score([3, 6, 8], [2, 2, 8]),
             fit.predict([3, 6, 8], [2, 2, 8]), [fit.log_evidence], *fit.draws(20, 1)]
    print(*(value for part in parts for value in np.ravel(list(part)).tolist()))
"""


def answers(threads: int) -> np.ndarray:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS], env=environment, capture_output=True, text=True, check=True
    )
    return np.array(done.stdout.split(), dtype=float)


@pytest.mark.slow
def test_thread_counts_change_nothing_that_matters() -> None:
    one, two = answers(1), answers(2)
    assert np.all(np.isfinite(one))
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-15)


def test_repeated_runs_are_identical_to_the_last_bit() -> None:
    for counts, prior in ((SMALL, DEFAULT), (LABELLED, SINGULAR)):
        one, two = fit_bayes(counts, prior), fit_bayes(counts, prior)
        assert one.rates == two.rates
        assert one.sd == two.sd
        assert one.log_evidence == two.log_evidence
        assert one.error == two.error
        assert one.interval() == two.interval()
        assert one.hdi() == two.hdi()
        assert np.array_equal(one.score([3, 6, 8], [2, 2, 8]), two.score([3, 6, 8], [2, 2, 8]))
        assert np.array_equal(one.predict([3, 90], [2, 40]), two.predict([3, 90], [2, 40]))
        assert one.score_interval(3, 2) == two.score_interval(3, 2)
        assert one.draws(30, 1) == two.draws(30, 1)


def test_the_order_of_questions_does_not_change_the_answers() -> None:
    one, two = fit_bayes(SMALL), fit_bayes(SMALL)
    first = (one.score(30, 26), one.error, one.predict(6, 2), one.quantile(0.3), one.score(6, 2))
    second = (two.score(6, 2), two.quantile(0.3), two.predict(6, 2), two.error, two.score(30, 26))
    assert first == (second[4], second[3], second[2], second[1], second[0])


# --- the published decisions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "healthy", "infected", "total"),
    [(DEFAULT, (13, 3, 5), (3, 2, 24), 10.25), (MISGUIDED, (1, 7, 13), (1, 4, 24), 18.95)],
    ids=["default", "misguided"],
)
def test_published_decisions(
    periodontal: tuple[np.ndarray, ...], prior: Prior, healthy: tuple, infected: tuple, total: float
) -> None:
    n, s, truth = periodontal
    fit = fitted(CountTable(n, s), prior)
    score = fit.score(n, s)
    decision = np.select([score < 0.45, score > 0.55], [0, 1], 0.5)
    assert tuple(np.sum((truth == 0) & (decision == d)) for d in (0, 0.5, 1)) == healthy
    assert tuple(np.sum((truth == 1) & (decision == d)) for d in (0, 0.5, 1)) == infected
    loss = np.where(decision == 0.5, 0.45, np.abs(truth - decision))
    assert loss.sum() == pytest.approx(total, abs=1e-12)
    nearest = np.abs(score[:, None] - [0.45, 0.55]).min()
    assert nearest > 1e3 * fit.score_error(n, s).max()  # no decision hangs on the numerical error


# --- shapes, words, refusals ----------------------------------------------------------------------------


def test_shapes_follow_the_question() -> None:
    fit = fitted(SMALL)
    assert np.shape(fit.score(3, 2)) == ()
    assert fit.score([3, 3, 6], [2, 2, 5]).shape == (3,)
    assert fit.score(6, [[0, 1], [2, 3]]).shape == (2, 2)
    assert fit.predict([[3]], [2]).shape == (1, 1)
    assert fit.quantile([0.1, 0.5]).prevalence.shape == (2,)
    assert np.shape(fit.quantile(0.5).prevalence) == ()
    assert fit.correlation.shape == (3, 3)
    lower, upper = fit.predict_interval([1, 2], [1, 1])
    assert lower.shape == upper.shape == (2,)


def test_scores_rise_with_the_positives() -> None:
    for fit in (fitted(SMALL), fitted(LABELLED, UNEVEN)):
        for n in (1, 6, 15):
            s = np.arange(n + 1)
            assert np.all(np.diff(fit.score(n, s)) > 0)
            assert np.all(np.diff(fit.predict(n, s)) > 0)


def test_it_prints_itself_in_plain_words() -> None:
    text = str(fitted(SMALL))
    for words in ("15 individuals", "54 replicates", "9 cells", "prevalence", "sensitivity", "specificity"):
        assert words in text
    assert "numerical error below" in text
    assert "90%" in text


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, float("nan")])
def test_levels_out_of_range_are_refused(level: float) -> None:
    fit = fitted(SMALL)
    for ask in (fit.interval, fit.hdi, lambda x: fit.score_interval(3, 2, level=x)):
        with pytest.raises(OptionError, match="level must be between 0 and 1"):
            ask(level)
    with pytest.raises(OptionError, match="level must be between 0 and 1"):
        fit.predict_interval(3, 2, level=level)


@pytest.mark.parametrize("probability", [0, 1, -0.1, [0.5, 1.1], float("nan")])
def test_probabilities_out_of_range_are_refused(probability: object) -> None:
    with pytest.raises(OptionError, match="probability must be between 0 and 1"):
        fitted(SMALL).quantile(probability)


def test_a_rate_must_be_named() -> None:
    with pytest.raises(OptionError, match="name must be one of prevalence, false_positive, false_negative"):
        fitted(SMALL).marginal("theta")


@pytest.mark.parametrize(("n", "s"), [(3, 4), (-1, 0), (3, -1), (2.5, 1), (3, float("nan"))])
def test_impossible_cells_are_refused(n: float, s: float) -> None:
    fit: BayesFit = fitted(SMALL)
    for ask in (fit.score, fit.predict, fit.predict_paper, fit.score_interval, fit.next_replicate):
        with pytest.raises(DataError):
            ask(n, s)


def test_draws_need_a_size_and_a_seed() -> None:
    with pytest.raises(OptionError, match="size must be"):
        fitted(SMALL).draws(-1, 1)
    with pytest.raises(OptionError, match="rng must be"):
        fitted(SMALL).draws(1, None)


# --- the honesty of the error ---------------------------------------------------------------------------


def true_error(fit: BayesFit, exact: ExactPosterior) -> float:
    """The largest error of what `.error` speaks for, less what float64 leaves of the oracle's sd."""
    own = 1e-15 * float(np.max(exact.means / exact.sds)) ** 2
    mean = np.abs((as_array(fit.rates) - exact.means) / exact.sds).max()
    sd = np.abs(as_array(fit.sd) / exact.sds - 1).max() - own
    evidence = abs(fit.log_evidence - exact.log_evidence) / max(1, abs(exact.log_evidence))
    probabilities = (0.05, 0.5, 0.95)
    found = fit.quantile(probabilities)
    quantiles = [
        abs(value - exact.quantile(rate, probability)) / exact.sds[axis]
        for axis, rate in enumerate(NAMES)
        for probability, value in zip(probabilities, getattr(found, rate), strict=True)
    ]
    return max(mean, sd, evidence, *quantiles)


@pytest.mark.slow
def test_the_error_bounds_the_true_error() -> None:
    """In at least 99 % of 200 cases drawn as `random_table` and `random_prior` say.

    That is: 1–8 cells, up to 16 individuals each, up to 12 replicates, statuses unknown, half known or known;
    shapes of the priors from 0.1 to 1000. For scores (of a fitted cell) and predictions (of up to 100
    replicates) likewise. Run once over 2,000 other cases, 2 of `.error`, none of `.score_error` and 10 of
    `.predict_error` were too small, and the largest true error was 1.04e-8.
    """
    honest: dict[str, list[bool]] = {"error": [], "score": [], "predict": []}
    for seed in range(1000, 1200):
        counts, prior, rng = random_case(seed)
        try:
            exact = ExactPosterior(counts, prior)
        except OverflowError:
            continue
        fit = fit_bayes(counts, prior)
        honest["error"].append(true_error(fit, exact) <= fit.error)
        for n, s, known in rows(counts)[:1]:
            if known < 0:
                honest["score"].append(abs(fit.score(n, s) - exact.score(n, s)) <= fit.score_error(n, s))
        n = int(rng.choice([1, 3, 8, 30, 100]))
        s = int(rng.integers(n + 1))
        honest["predict"].append(abs(fit.predict(n, s) - exact.predict(n, s)) <= fit.predict_error(n, s))
    assert all(len(answers) > 100 for answers in honest.values())
    assert {kind: np.mean(answers) >= 0.99 for kind, answers in honest.items()} == dict.fromkeys(honest, True)


def test_an_error_below_a_billionth_is_not_claimed() -> None:
    """The tails beyond the box and rounding are part of it."""
    for fit in (fitted(NOBODY), fitted(SMALL), fitted(LABELLED)):
        assert 1e-10 <= fit.error < 1e-8


def test_rounding_never_takes_a_score_past_certainty() -> None:
    fit = fit_bayes(CountTable([3, 3], [0, 3], [10**9, 10**9]))
    assert 0 <= fit.score(3, 0) <= fit.score(3, 3) <= 1
