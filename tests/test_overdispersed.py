"""The over-dispersed fit against brute force, the binomial fit, evidence identities and simulated truths."""

from __future__ import annotations

import pickle
from functools import cache
from math import comb

import mpmath
import numpy as np
import pytest
from scipy.special import betainc, betaln
from scipy.stats import betabinom, kstest

from binreps import CountTable, OptionError, Prior, Rates, fit_bayes
from binreps.errors import BinrepsWarning, FitError
from binreps.fits.overdispersed import OverdispersedFit, fit_overdispersed
from binreps.model import CORRELATED, CORRELATION, NAMES, log_rising
from binreps.study.simulate import simulate_counts
from shared_data import shared_columns

pytestmark = pytest.mark.slow

TINY = CountTable([5, 4, 3, 4], [1, 4, 0, 2], [3, 2, 2, 1])
LABELLED = CountTable([5, 4, 3, 4, 0], [1, 4, 0, 2, 0], [2, 2, 1, 3, 2], known=[None, 1, 0, None, 1])
SMALL = CountTable([6, 6, 6, 6, 6, 6, 2], [0, 1, 2, 4, 5, 6, 1], [30, 9, 5, 3, 6, 12, 4])

fitted = cache(fit_overdispersed)


def simulated(rates: tuple[float, float, float], rho: float, individuals: int, seed: int) -> CountTable:
    """Individuals whose replicates are correlated, with 4 or 7 of them."""
    rng = np.random.default_rng(seed)
    theta, p, q = rates
    n = rng.choice([4, 7], individuals)
    mean = np.where(rng.random(individuals) < theta, 1 - q, p)
    own = rng.beta(mean * (1 - rho) / rho, (1 - mean) * (1 - rho) / rho)
    return CountTable(n, rng.binomial(n, own))


def _rule(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss and Legendre's rule on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    return (nodes + 1) / 2, weights / 2


class BruteForce:
    """A product of four Legendre rules over the whole domain, with classes from Beta functions."""

    def __init__(self, counts: CountTable, prior: Prior, intraclass: tuple[float, float]) -> None:
        (unit, weights), (turn, of_turn) = _rule(26), _rule(120)
        angle = turn * np.pi / 2  # θ = sin², so that a prior with poles at 0 and 1 stays finite
        self.theta, self.p, self.q, self.rho = np.meshgrid(
            np.sin(angle) ** 2, unit / 2, unit / 2, unit, indexing="ij", sparse=True
        )
        (a, b), fp, fn = prior
        of_theta = of_turn * np.pi * np.sin(angle) ** (2 * a - 1) * np.cos(angle) ** (2 * b - 1)
        of_errors = [
            weights
            / 2
            * (unit / 2) ** (c - 1)
            * (1 - unit / 2) ** (d - 1)
            / np.exp(betaln(c, d))
            / betainc(c, d, 0.5)
            for c, d in (fp, fn)
        ]
        c, d = intraclass
        of_rho = weights * unit ** (c - 1) * (1 - unit) ** (d - 1) / np.exp(betaln(c, d))
        mass = np.einsum("i,j,k,l->ijkl", of_theta / np.exp(betaln(a, b)), *of_errors, of_rho)
        for n, s, weight, known in zip(counts.n, counts.s, counts.weight, counts.known, strict=True):
            negative, positive = self.shares(n, s)
            mass = (
                mass
                * np.select([known == 0, known == 1], [negative, positive], negative + positive) ** weight
            )
        self.evidence, self.mass = mass.sum(), mass / mass.sum()

    def shares(self, n: int, s: int) -> tuple[np.ndarray, np.ndarray]:
        """(1−θ) P(s | T=0) and θ P(s | T=1), without binomial coefficients."""
        k = (1 - self.rho) / self.rho
        chance = [
            np.exp(betaln(r * k + s, (1 - r) * k + n - s) - betaln(r * k, (1 - r) * k))
            for r in (self.p, 1 - self.q)
        ]
        return (1 - self.theta) * chance[0], self.theta * chance[1]

    def expect(self, values: np.ndarray) -> float:
        return float(np.sum(self.mass * values))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        axes = (self.theta, self.p, self.q, self.rho)
        mean = np.array([self.expect(x) for x in axes])
        return mean, np.sqrt([self.expect((x - m) ** 2) for x, m in zip(axes, mean, strict=True)])


CASES = {
    "tiny": (TINY, Prior(), (1.0, 9.0)),
    "labelled": (LABELLED, Prior((1, 3), (1, 7), (3, 2)), (2.0, 3.0)),
    "nobody": (CountTable([], []), Prior(), (1.0, 9.0)),
}
each_case = pytest.mark.parametrize("case", CASES)


def both(case: str) -> tuple[OverdispersedFit, BruteForce]:
    counts, prior, intraclass = CASES[case]
    return fit_overdispersed(counts, prior, intraclass=intraclass), BruteForce(counts, prior, intraclass)


# --- brute force ---------------------------------------------------------------------------------------


@each_case
def test_everything_is_what_brute_force_says(case: str) -> None:
    fit, brute = both(case)
    mean, sd = brute.moments()
    found = np.array([*fit.rates, fit.intraclass_correlation])
    spread = np.array([*fit.sd, fit.intraclass_sd])
    assert fit.error < 2e-4
    allowed = max(fit.error, 1e-6)
    assert np.abs((found - mean) / sd).max() < allowed
    assert np.abs(spread / sd - 1).max() < allowed
    assert fit.log_evidence == pytest.approx(np.log(brute.evidence), abs=allowed)
    for n, s in ((4, 0), (4, 2), (5, 5), (1, 1), (0, 0)):
        negative, positive = brute.shares(n, s)
        score = brute.expect(positive / (positive + negative))
        assert abs(fit.score(n, s) - score) < fit.score_error(n, s) + 1e-9
        assert fit.score_error(n, s) < (1e-3 if case == "nobody" else 1e-5)  # without data a score jumps
        ratio = brute.expect(positive) / brute.expect(positive + negative)
        assert abs(fit.predict(n, s) - ratio) < fit.predict_error(n, s) + 1e-9 < 1e-6


def test_correlations_of_the_parameters_are_those_of_brute_force() -> None:
    fit, brute = both("tiny")
    mean, sd = brute.moments()
    product = brute.expect((brute.p - mean[1]) * (brute.rho - mean[3])) / (sd[1] * sd[3])
    assert fit.correlation[1, 3] == pytest.approx(product, abs=1e-4)
    assert np.diag(fit.correlation) == pytest.approx(1)


# --- identities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1e-6, 0.3, 0.999])
@pytest.mark.parametrize("rho", [1e-12, 1e-5, 0.02, 0.7])
def test_rising_products_hold_to_the_last_digits(x: float, rho: float) -> None:
    for k in (0, 1, 7, 64, 65, 1000, 10**6):
        with mpmath.workdps(40):
            z = mpmath.mpf(x) / mpmath.mpf(rho)
            wanted = k * mpmath.log(rho) + mpmath.loggamma(z + k) - mpmath.loggamma(z)
        found = log_rising(x, rho, np.array([k, 1000]))[0]  # the second takes the way for many
        assert float(found) == pytest.approx(float(wanted), rel=2e-14, abs=1e-13)
        few = log_rising(x, rho, np.array([min(k, 64)]))[0]
        assert float(few) == pytest.approx(
            float(log_rising(x, rho, np.array([min(k, 64), 65]))[0]), rel=1e-13
        )


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.6])
def test_classes_are_beta_binomial(rho: float) -> None:
    n, p, q = 7, 0.2, 0.1
    s = np.arange(n + 1)
    negative, positive = CORRELATED.log_classes(CountTable(np.full(n + 1, n), s), p, q, rho)
    for log_chance, rate in ((negative, p), (positive, 1 - q)):
        chance = np.exp(log_chance) * [comb(n, k) for k in s]
        assert chance.sum() == pytest.approx(1)
        assert chance @ s == pytest.approx(n * rate)
        assert chance @ (s - n * rate) ** 2 == pytest.approx(n * rate * (1 - rate) * (1 + (n - 1) * rho))
        if rho > 0:
            k = (1 - rho) / rho
            assert chance == pytest.approx(betabinom(n, rate * k, (1 - rate) * k).pmf(s))


def test_without_correlation_it_is_the_binomial_fit() -> None:
    plain = fit_bayes(SMALL)
    fit = fit_overdispersed(SMALL, intraclass=(1, 1e7))
    assert np.abs((np.array([*fit.rates]) - [*plain.rates]) / [*plain.sd]).max() < 2e-4
    assert fit.log_evidence == pytest.approx(plain.log_evidence, abs=1e-3)
    assert fit.score(SMALL.n, SMALL.s) == pytest.approx(plain.score(SMALL.n, SMALL.s), abs=1e-4)
    assert fit.predict(6, 3) == pytest.approx(plain.predict(6, 3), abs=1e-4)
    assert fit.intraclass_correlation == pytest.approx(1e-7, rel=0.01)


@pytest.mark.parametrize("counts", [TINY, LABELLED, SMALL], ids=["tiny", "labelled", "small"])
def test_the_evidence_ratio_is_the_density_at_zero(counts: CountTable) -> None:
    """Savage and Dickey: p(data | ρ=0) / p(data) = p(ρ=0 | data) / p(ρ=0), and the prior (1, 9) is 9 at 0."""
    fit = fitted(counts)
    density = float(fit.marginal("intraclass_correlation").density(0.0))
    ratio = np.log(density / 9)
    assert fit_bayes(counts).log_evidence - fit.log_evidence == pytest.approx(ratio, abs=1e-4)


def test_a_prediction_is_a_ratio_of_evidences() -> None:
    fit = fitted(SMALL)
    for n, s in ((6, 3), (10, 9)):
        unknown = fit_overdispersed(SMALL + CountTable([n], [s])).log_evidence
        positive = fit_overdispersed(SMALL + CountTable([n], [s], known=[1])).log_evidence
        assert fit.predict(n, s) == pytest.approx(np.exp(positive - unknown), abs=1e-6)


def test_the_score_averages_to_the_prevalence_over_all_results() -> None:
    """Σ_s P(s) P(T=1 | s) = E θ for a new individual."""
    fit, n = fitted(SMALL), 2
    evidence = [fit_overdispersed(SMALL + CountTable([n], [s])).log_evidence for s in range(n + 1)]
    chance = np.array([comb(n, s) for s in range(n + 1)]) * np.exp(np.array(evidence) - fit.log_evidence)
    assert chance.sum() == pytest.approx(1, abs=1e-6)
    assert chance @ fit.predict(n, np.arange(n + 1)) == pytest.approx(fit.rates.prevalence, abs=1e-6)


def test_switching_labels_switches_rates_and_keeps_the_correlation() -> None:
    prior = Prior((1, 2), (2, 3), (1, 5))
    mirror = Prior((2, 1), (1, 5), (2, 3))
    one = fit_overdispersed(SMALL, prior)
    other = fit_overdispersed(CountTable(SMALL.n, SMALL.n - SMALL.s, SMALL.weight), mirror)
    theta, p, q = one.rates
    assert tuple(other.rates) == pytest.approx((1 - theta, q, p), abs=1e-6)
    assert other.intraclass_correlation == pytest.approx(one.intraclass_correlation, abs=1e-6)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-6)
    assert other.score(6, 2) == pytest.approx(1 - one.score(6, 4), abs=1e-6)


def test_known_statuses_alone_inform_the_prevalence() -> None:
    counts = CountTable([4, 4, 4], [0, 3, 4], [6, 2, 5], known=[0, 1, 1])
    fit = fit_overdispersed(counts)  # θ has the posterior Beta(½ + 7, ½ + 6), whatever the replicates
    assert fit.rates.prevalence == pytest.approx(7.5 / 14, abs=1e-7)
    assert fit.sd.prevalence == pytest.approx(np.sqrt(7.5 * 6.5 / 14**2 / 15), rel=1e-6)
    assert np.max(fit.rates.false_positive) < 0.5


# --- marginals, draws, intervals -----------------------------------------------------------------------


@pytest.mark.slow
def test_the_false_negative_rate_beside_a_false_positive_rate_that_is_known() -> None:
    """Its density was off by .08 in probability: where p is known, p / (1−q) is not."""
    prior = Prior(false_positive=(100, 3000), better_than_chance=True)
    fit = fit_overdispersed(CountTable([6, 6, 6], [0, 4, 6], [30, 10, 10]), prior)
    law = fit.marginal("false_negative")
    assert law.error < 1e-4
    assert kstest(law.cumulative(fit.draws(4000, 1).false_negative), "uniform").pvalue > 1e-3
    x = law.quantile((np.arange(4000) + 0.5) / 4000)
    assert abs(x.mean() - fit.rates.false_negative) < 1e-3 * fit.sd.false_negative


def test_draws_have_the_marginals_that_it_says() -> None:
    fit = fitted(SMALL)
    drawn = fit.joint_draws(2000, rng=3)[None]
    for name, values in zip((*NAMES, "intraclass_correlation"), drawn, strict=True):
        assert kstest(values, fit.marginal(name).cumulative).pvalue > 1e-3
    matrix = np.corrcoef(drawn)
    assert np.abs(matrix - fit.correlation).max() < 0.09  # 4 / √2000
    assert np.array_equal(fit.draws(10, rng=3).prevalence, fit.draws(10, rng=3).prevalence)
    assert fit.draws(0, rng=1).prevalence.shape == (0,)


def test_intervals_hold_their_share() -> None:
    fit = fitted(SMALL)
    lower, upper = fit.interval(0.8)
    for name in NAMES:
        marginal = fit.marginal(name)
        assert marginal.cumulative(getattr(lower, name)) == pytest.approx(0.1, abs=1e-8)
        assert marginal.cumulative(getattr(upper, name)) == pytest.approx(0.9, abs=1e-8)
        x = np.linspace(*marginal.ends, 4001)[1:-1]
        assert np.trapezoid(marginal.density(x), x) == pytest.approx(1, abs=1e-3)
    low, high = fit.intraclass_interval(0.8)
    assert fit.marginal("intraclass_correlation").cumulative([low, high]) == pytest.approx([0.1, 0.9])


def test_the_interval_of_a_score_is_that_of_draws() -> None:
    fit = fitted(SMALL)
    theta, p, q, rho = fit.joint_draws(4000, rng=5)[None]
    negative, positive = CORRELATED.log_classes(CountTable([6], [3]), p, q, rho)
    score = 1 / (1 + np.exp(np.log1p(-theta) - np.log(theta) + negative[0] - positive[0]))
    assert fit.score(6, 3) == pytest.approx(score.mean(), abs=4 * score.std() / 4000**0.5)
    assert fit.score_interval(6, 3) == pytest.approx(np.quantile(score, [0.05, 0.95]), abs=0.02)
    low, high = fit.predict_interval(6, 3)
    assert low < fit.predict(6, 3) < high


# --- what it is for ------------------------------------------------------------------------------------


def test_correlated_data_are_recognised_and_their_rates_recovered() -> None:
    truth, rho = (0.3, 0.1, 0.15), 0.15
    inside = []
    for seed in range(2):
        counts = simulated(truth, rho, 600, seed)
        fit = fitted(counts)
        assert fit.log_evidence - fit_bayes(counts).log_evidence > 3
        found = np.array([*fit.rates, fit.intraclass_correlation])
        spread = np.array([*fit.sd, fit.intraclass_sd])
        inside += (np.abs(found - [*truth, rho]) < 3 * spread).tolist()
    assert all(inside)


def test_independent_replicates_do_not_ask_for_a_correlation() -> None:
    for seed in range(2):
        counts = simulate_counts(Rates(0.3, 0.1, 0.15), 600, [4, 7], rng=seed)
        fit = fit_overdispersed(counts)
        assert fit.log_evidence < fit_bayes(counts).log_evidence
        assert fit.intraclass_correlation < 0.1


def test_scores_are_less_sure_than_without_correlation() -> None:
    counts = simulated((0.3, 0.1, 0.15), 0.15, 600, 1)
    fit, plain = fitted(counts), fit_bayes(counts)
    assert plain.score(7, 0) < fit.score(7, 0)
    assert fit.score(7, 7) < plain.score(7, 7)


def test_qpcr_replicates_of_water_samples_are_correlated() -> None:
    columns = shared_columns("data/qpcr_goby.csv")
    items, where = np.unique(columns["item"], return_inverse=True)
    result = np.array(columns["result"], dtype=int)
    counts = CountTable(np.bincount(where), np.bincount(where, result).astype(int))
    fit = fit_overdispersed(counts)
    assert counts.individuals == items.size == 355
    assert fit.log_evidence - fit_bayes(counts).log_evidence > 10


# --- the rest ------------------------------------------------------------------------------------------


def test_many_individuals_and_many_replicates() -> None:
    counts = simulate_counts(Rates(0.3, 0.1, 0.2), 10**9, [4, 6], rng=1)
    fit = fit_overdispersed(counts)
    assert tuple(fit.rates) == pytest.approx((0.3, 0.1, 0.2), abs=1e-3)
    assert 0 < fit.intraclass_correlation < 1e-3
    long = fit_overdispersed(CountTable([10**5] * 4, [9000, 11_000, 80_000, 78_000]))
    assert long.rates.false_positive < 0.25 < 0.75 < long.rates.sensitivity
    assert 1e-6 < long.intraclass_correlation < 0.1


def test_it_prints_its_correlation() -> None:
    fit = fitted(SMALL)
    row = list(fit.summary(0.8))[-1]
    numbers = (fit.intraclass_correlation, fit.intraclass_sd, *fit.intraclass_interval(0.8))
    assert tuple(row.values()) == ("intraclass-correlation", *numbers)


def test_a_fit_is_its_data_and_priors() -> None:
    fit = fit_overdispersed(TINY, intraclass=(1, 4))
    again = pickle.loads(pickle.dumps(fit))
    assert again == fit
    assert again.rates == fit.rates
    assert fit != fitted(TINY)


@pytest.mark.parametrize(
    ("intraclass", "sentence"),
    [
        ((0, 1), "intraclass must have finite shapes > 0, got"),
        (3, "intraclass must be a pair of shapes"),
        ((1, 2, 3), "intraclass must be a pair of shapes"),
        ((1, float("nan")), "intraclass must have finite shapes > 0"),
    ],
)
def test_a_bad_prior_of_the_correlation_is_refused(intraclass, sentence: str) -> None:
    with pytest.raises(OptionError, match=f"^{sentence}"):
        fit_overdispersed(TINY, intraclass=intraclass)


def test_an_unknown_marginal_is_refused() -> None:
    with pytest.raises(
        OptionError, match=r"^name must be one of prevalence, .*, intraclass_correlation, got 'rho'"
    ):
        fitted(TINY).marginal("rho")


def test_a_ridge_is_refused_with_a_sentence() -> None:
    counts = CountTable([2, 2, 2], [0, 1, 2], [600_000, 250_000, 150_000])
    with pytest.raises(FitError, match=r"^the over-dispersed posterior is too thin a ridge"):
        fit_overdispersed(counts)


def test_a_billion_individuals_can_be_drawn_from() -> None:
    """Masses of slices add up to 1 but for rounding, which grows with the evidence."""
    fit = fit_overdispersed(CountTable([4] * 5, range(5), [w * 10**7 for w in (50, 18, 6, 9, 17)]))
    assert fit.draws(5, rng=1).prevalence == pytest.approx(fit.rates.prevalence, abs=0.01)


@pytest.mark.parametrize(
    "counts",
    [
        simulated((0.3, 0.1, 0.15), 0.3, 300, 3),
        CountTable([4] * 5, range(5), [150, 30, 20, 30, 70]),
        CountTable([6] * 7, range(7), [260, 60, 40, 30, 30, 50, 130]),
        CountTable([2] * 3, range(3), [500, 200, 300]),
    ],
    ids=["simulated", "n = 4", "n = 6", "n = 2"],
)
def test_broad_posteriors_are_integrated_to_many_digits(counts: CountTable) -> None:
    """Against sums over the whole domain, good to 5·10⁻⁴; a sine takes the poles from its ends."""
    fit, size = fitted(counts), 56
    assert fit.error < 1e-4
    u, weight = _rule(size)
    x, step = np.sin(np.pi * u / 2) ** 2, np.pi * np.sin(np.pi * u / 2) * np.cos(np.pi * u / 2) * weight
    p, q, rho = (one.ravel() for one in np.meshgrid(x / 2, x / 2, x, indexing="ij"))
    negative, positive = CORRELATED.log_classes(counts, p, q, rho)
    of_errors = np.log(np.einsum("i,j,k->ijk", step, step, step).ravel()) + 8 * np.log1p(-rho)
    for one, (a, b) in ((p, fit.prior.false_positive), (q, fit.prior.false_negative)):
        of_errors += (a - 1) * np.log(one) + (b - 1) * np.log1p(-one)
    a, b = fit.prior.prevalence
    of_theta = np.log(step) + (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)
    mixtures = (np.logaddexp(negative + np.log1p(-theta), positive + np.log(theta)) for theta in x)
    log = np.stack(
        [of_errors + one + counts.weight @ each for one, each in zip(of_theta, mixtures, strict=True)]
    )
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    sums, places = (np.arange(2000) + 0.5) / 2000, ((x, 1), (p, 0), (q, 0), (rho, 0))
    for axis, ((one, summed), name) in enumerate(zip(places, (*NAMES, CORRELATION), strict=True)):
        share = mass.sum(axis=summed)
        mean = one @ share
        sd = np.sqrt((one - mean) ** 2 @ share)
        assert fit.posterior.mean[axis] == pytest.approx(mean, abs=1e-3 * sd)
        assert fit.posterior.sd[axis] == pytest.approx(sd, rel=1e-3)
        quantiles = fit.marginal(name).quantile(sums)
        assert quantiles.mean() == pytest.approx(mean, abs=1e-3 * sd)
        assert quantiles.std() == pytest.approx(sd, rel=2e-3)


def test_many_cells_take_long_and_are_announced() -> None:
    rng = np.random.default_rng(1)
    n = np.arange(10, 240)
    counts = CountTable(n, rng.binomial(n, np.where(rng.random(n.size) < 0.3, 0.8, 0.1)))
    with pytest.warns(BinrepsWarning, match="there are 230: from seconds to minutes"):
        fit = fit_overdispersed(counts)
    assert fit.rates.prevalence == pytest.approx(0.3, abs=0.1)
    assert fit.error < 1e-4
