"""What ArviZ makes of a posterior is what the posterior is."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats

from binreps import CountTable, FitError, OptionError, Prior, Rates, fit_bayes, fit_map
from binreps.fits.mcmc import McmcFit, arviz
from binreps.model import NAMES
from binreps.run.interop import to_arviz

pytestmark = pytest.mark.slow

UNKNOWN = CountTable([4, 4, 4, 4, 4, 3, 2], [0, 1, 2, 3, 4, 2, 1], weight=[25, 10, 3, 5, 10, 2, 2])
COUNTS = UNKNOWN + CountTable([4, 4, 3], [0, 4, 2], weight=[3, 2, 1], known=[0, 1, 1])
PRIOR = Prior((2, 3), (2, 6), (2, 2))
GROUPS = {"prior", "posterior", "posterior_predictive", "observed_data", "log_likelihood", "constant_data"}


@pytest.fixture(scope="module")
def az():
    return arviz()


@pytest.fixture(scope="module")
def tree():
    return to_arviz(fit_bayes(COUNTS, PRIOR), rng=1, draws=4000)


def test_it_is_what_the_installed_arviz_expects(az, tree) -> None:
    wanted = {"0": "InferenceData", "1": "DataTree"}[az.__version__[0]]
    assert type(tree).__name__ == wanted
    assert all(hasattr(tree, group) for group in GROUPS)


def test_the_posterior_holds_the_exact_draws(tree) -> None:
    exact = fit_bayes(COUNTS, PRIOR).draws(4000, np.random.default_rng(1))
    for name, rate in zip(NAMES, exact, strict=True):
        assert np.array_equal(np.ravel(tree.posterior[name]), rate)


def test_the_prior_group_is_the_prior(tree) -> None:
    """Kolmogorov–Smirnov against Beta laws, those of the error rates cut at ½."""
    for name, shapes, upper in zip(NAMES, PRIOR, (1, 0.5, 0.5), strict=True):
        law = stats.beta(*shapes)
        found = stats.kstest(
            np.ravel(tree.prior[name]), lambda x, law=law, end=upper: law.cdf(x) / law.cdf(end)
        )
        assert found.pvalue > 1e-3


def test_likelihoods_are_those_of_each_individual(tree) -> None:
    theta, p, q = (tree.posterior[name].to_numpy()[:, :100, None] for name in NAMES)
    n, s, known = (np.repeat(column, COUNTS.weight) for column in (COUNTS.n, COUNTS.s, COUNTS.known))
    negative = np.where(known == 1, 0, (1 - theta) * stats.binom.pmf(s, n, p))
    positive = np.where(known == 0, 0, theta * stats.binom.pmf(s, n, 1 - q))
    found = tree.log_likelihood["s"]
    assert found.dims == ("chain", "draw", "individual")
    assert found.to_numpy()[:, :100] == pytest.approx(np.log(negative + positive), rel=1e-10, abs=1e-12)
    assert tree.observed_data["s"].to_numpy().tolist() == s.tolist()
    assert tree.constant_data["n"].to_numpy().tolist() == n.tolist()
    assert tree.constant_data["known"].to_numpy().tolist() == known.tolist()


def test_predicted_results_average_to_their_expectation(tree) -> None:
    theta, p, q = (np.ravel(tree.posterior[name]) for name in NAMES)
    n, known = (np.repeat(column, COUNTS.weight) for column in (COUNTS.n, COUNTS.known))
    drawn = tree.posterior_predictive["s"].to_numpy().reshape(-1, n.size)
    assert np.all((drawn >= 0) & (drawn <= n))
    chance = {-1: theta * (1 - q) + (1 - theta) * p, 0: p, 1: 1 - q}
    for status, expected in chance.items():
        error = drawn[:, known == status].mean(axis=1) - expected * n[known == status].mean()
        assert abs(error.mean()) < 5 * error.std() / np.sqrt(error.size)


def test_arviz_summarises_it(az, tree) -> None:
    exact = fit_bayes(COUNTS, PRIOR)
    summary = az.summary(tree, round_to="none")
    for name, mean, sd in zip(NAMES, exact.rates, exact.sd, strict=True):
        assert float(summary.loc[name, "mean"]) == pytest.approx(mean, abs=5 * sd / np.sqrt(4000))
        assert float(summary.loc[name, "r_hat"]) < 1.01


def test_arviz_draws_it(az, tree, monkeypatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    az.plot_pair(tree, var_names=list(NAMES[:2]))
    plt.close("all")


def test_leaving_one_individual_out_agrees_with_a_fit_without_it(az) -> None:
    """The log predictive probability of an individual is a difference of two log evidences, both exact."""
    counts, fit = COUNTS, fit_bayes(COUNTS, PRIOR)
    exact = np.array([left_out(fit.log_evidence, cell) for cell in range(len(counts))])
    first = np.cumsum(counts.weight) - counts.weight  # an individual of each cell
    found = []
    for seed in range(12):
        loo = az.loo(to_arviz(fit, rng=seed, draws=2000), pointwise=True)
        each = np.asarray(loo.loo_i if hasattr(loo, "loo_i") else loo.elpd_i)
        assert each.size == counts.individuals
        assert np.ptp(each[np.repeat(first, counts.weight)] - each) < 1e-12  # equal individuals, equal values
        found.append(np.append(each[first], each.sum()))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(12)
    difference = np.abs(np.mean(found, axis=0) - np.append(exact, counts.weight @ exact))
    assert np.all(difference < 5 * error)
    assert error[-1] < 0.03  # of a total of −91: sharp enough to see a single individual left in


def left_out(log_evidence: float, cell: int) -> float:
    """log P(s | n, everyone else) of one individual of a cell, by fitting everyone else."""
    fewer = COUNTS.weight - (np.arange(len(COUNTS)) == cell)
    others = fit_bayes(CountTable(COUNTS.n, COUNTS.s, fewer, COUNTS.known), PRIOR)
    n, s = COUNTS.n[cell], COUNTS.s[cell]
    ways = stats.binom.logpmf(s, n, 0.5) + n * np.log(2)
    return float(log_evidence - others.log_evidence + ways)


def test_individuals_without_evidence_are_left_out(az) -> None:
    """Their likelihood is 1 whatever the rates, which ArviZ cannot smooth; a known status is evidence."""
    empty = CountTable([0, 0], [0, 0], weight=[7, 2], known=[None, 1])
    tree = to_arviz(fit_bayes(COUNTS + empty, PRIOR), rng=1, draws=8000)
    assert tree.constant_data["n"].to_numpy().tolist().count(0) == 2
    assert tree.log_likelihood["s"].shape == (4, 2000, COUNTS.individuals + 2)
    loo = az.loo(tree)
    assert np.isfinite(loo.elpd_loo if hasattr(loo, "elpd_loo") else loo.elpd)


def test_chains_of_a_sampler_are_taken_as_they_are() -> None:
    exact = fit_bayes(COUNTS, PRIOR).draws(303, rng=1)
    chains = Rates(*(rate.reshape(3, 101) for rate in exact))
    diverging = np.arange(303).reshape(3, 101) == 7
    tree = to_arviz(McmcFit.of(COUNTS, PRIOR, chains, diverging), rng=1)
    assert np.array_equal(tree.posterior["false_positive"], chains.false_positive)
    assert np.array_equal(tree.sample_stats["diverging"], diverging)
    assert tree.log_likelihood["s"].shape == (3, 101, COUNTS.individuals)


def test_equal_seeds_give_equal_trees() -> None:
    fit = fit_bayes(COUNTS)
    one, same, other = (to_arviz(fit, rng=seed, draws=101) for seed in (1, 1, 2))
    assert one.posterior["prevalence"].shape == (4, 26)
    for group in ("posterior", "prior", "posterior_predictive"):
        assert getattr(one, group).equals(getattr(same, group))
        assert not getattr(one, group).equals(getattr(other, group))


def test_too_many_individuals_are_refused_with_advice() -> None:
    fit = fit_bayes(CountTable(COUNTS.n, COUNTS.s, 10**6 * COUNTS.weight))
    with pytest.raises(
        OptionError, match="at most 20,000,000, got 2,000 × 63,000,000; for exact leave-one-out"
    ):
        to_arviz(fit, rng=1)


def test_a_fit_without_draws_is_refused() -> None:
    with pytest.raises(
        OptionError, match="takes a fit by fit_bayes, fit_covariates, fit_mcmc or fit_sources, got MapFit"
    ):
        to_arviz(fit_map(COUNTS), rng=1)
    with pytest.raises(OptionError, match="draws must be a whole number from 100"):
        to_arviz(fit_bayes(COUNTS), rng=1, draws=10)


def test_without_the_extra_a_sentence_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(
        FitError, match=r"needs arviz, which is not installed: pip install 'binreps\[mcmc\]'$"
    ):
        to_arviz(fit_bayes(COUNTS), rng=1)
