"""The second opinion agrees with the first, and knows how far it can be trusted.

Most facts about `McmcFit` need no sampler: independent draws from the exact posterior make one as well.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from scipy import stats

import test_fits as contract
from binreps import (
    CountTable,
    FitError,
    Loss,
    OptionError,
    Prior,
    Rates,
    decision_table,
    fit_bayes,
    fit_mcmc,
)
from binreps.fits.mcmc import McmcFit, _extra, to_pymc
from binreps.model import NAMES, likelihood_score, log_likelihood
from binreps.study.simulate import simulate_counts
from screening import screening_counts

pytestmark = pytest.mark.slow

COUNTS = contract.COUNTS
KNOWN = COUNTS + CountTable([4, 4, 3, 1], [0, 4, 1, 1], weight=[15, 9, 4, 2], known=[0, 1, 1, 0])
DATA = {
    "mixed": COUNTS,
    "known": KNOWN,
    "pairs": CountTable([2, 2, 2], [0, 1, 2], weight=[30, 12, 8]),  # rests on the prior
}
PRIORS = {
    "default": Prior(),
    "misguided": Prior(false_positive=(50, 50), false_negative=(50, 50)),
    "informed": Prior((2, 6), (1, 12), (3, 9)),
}
MISGUIDED = PRIORS["misguided"]


def from_exact(
    counts: CountTable, prior: Prior = PRIORS["default"], size: int = 4000, rng: int = 1
) -> McmcFit:
    """The fit that a perfect sampler would give."""
    draws = fit_bayes(counts, prior).draws(size, rng)
    chains = Rates(*(rate.reshape(4, -1) for rate in draws))
    return McmcFit.of(counts, prior, chains, np.zeros((4, size // 4), bool))


@pytest.fixture(scope="module")
def sampled() -> McmcFit:
    return fit_mcmc(COUNTS, rng=1, draws=500, tune=500)


# --- agreement with the exact posterior ------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("data", DATA)
def test_it_agrees_with_the_exact_posterior_within_its_monte_carlo_error(data: str, prior: str) -> None:
    counts = DATA[data]
    fit = fit_mcmc(counts, PRIORS[prior], rng=7)
    exact = fit_bayes(counts, PRIORS[prior])
    assert max(fit.rhat.values()) < 1.02
    assert fit.divergences <= 40
    assert deviations(fit.rates, exact.rates, fit.mcse) < 5
    assert np.all(
        np.abs(fit.score(counts.n, counts.s) - exact.score(counts.n, counts.s))
        < 5 * fit.score_error(counts.n, counts.s)
    )
    n, s = [3, 3, 6], [1, 3, 2]
    assert np.all(np.abs(fit.predict(n, s) - exact.predict(n, s)) < 5 * fit.predict_error(n, s))
    for probability in (0.05, 0.5, 0.95):
        for rate, quantile in zip(fit.chains, exact.quantile(probability), strict=True):
            below = Rates(rate <= quantile, 0, 0)
            error = McmcFit.of(
                counts, PRIORS[prior], Rates(*[below.prevalence] * 3), fit.diverging
            ).mcse.prevalence
            assert abs(below.prevalence.mean() - probability) < 5 * error


def deviations(found: Rates, exact: Rates, error: Rates) -> float:
    """The largest difference in units of its error."""
    return max(abs(a - b) / e for a, b, e in zip(found, exact, error, strict=True))


def test_without_data_it_is_the_prior() -> None:
    """Moments of Beta laws, those of the error rates cut at ½, by SciPy's own integration."""
    prior = Prior((3, 1), (2, 5), (1, 1))
    fit = fit_mcmc(CountTable([], []), prior, rng=3)
    upper = (1, 0.5, 0.5)
    means = [
        stats.beta(*shapes).expect(lb=0, ub=end, conditional=True)
        for shapes, end in zip(prior, upper, strict=True)
    ]
    assert deviations(fit.rates, Rates(*means), fit.mcse) < 5


def test_ten_to_the_twelve_individuals_cost_what_a_hundred_cost() -> None:
    counts = simulate_counts(Rates(0.3, 0.1, 0.2), 10**12, [4, 5], rng=1)
    fit = fit_mcmc(counts, rng=4, draws=500)
    assert deviations(fit.rates, fit_bayes(counts).rates, fit.mcse) < 5
    assert max(fit.rhat.values()) < 1.02


# --- what every fit must do -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fact",
    [
        contract.test_it_names_its_method_and_keeps_its_data,
        contract.test_rates_are_probabilities_that_tell_the_classes_apart,
        contract.test_it_prints_as_a_small_table,
        contract.test_the_summary_holds_the_rates,
        contract.test_a_notebook_gets_the_same_table,
        contract.test_it_is_a_frozen_value,
        *(
            test
            for what in ("score", "predict")
            for test in (
                partial(contract.test_probabilities_do_not_decrease_in_s, what=what, name="mcmc"),
                partial(contract.test_numbers_give_numbers_and_arrays_arrays, what=what),
            )
        ),
        partial(contract.test_without_replicates_the_prediction_is_the_prevalence, name="mcmc"),
        *(
            partial(
                contract.test_impossible_counts_are_refused,
                what=what,
                n=3,
                s=4,
                sentence="s must be ≤ n, got s = 4",
            )
            for what in ("score", "predict")
        ),
    ],
)
def test_it_does_what_every_fit_does(sampled: McmcFit, fact) -> None:
    fact(sampled)


def test_equal_seeds_give_equal_draws_on_any_number_of_cores(sampled: McmcFit, monkeypatch) -> None:
    (nutpie,) = _extra("test", "nutpie")
    monkeypatch.setattr(nutpie, "sample", partial(nutpie.sample, cores=1))
    again = fit_mcmc(COUNTS, rng=np.random.default_rng(1), draws=500, tune=500)
    other = fit_mcmc(COUNTS, rng=2, draws=500, tune=500)
    assert again == sampled
    assert other != sampled
    assert other.rates != sampled.rates


def test_known_statuses_never_leak_into_a_score() -> None:
    known = CountTable([4, 4], [0, 4], weight=[3, 3], known=[1, 0])
    fit = fit_mcmc(COUNTS + known, rng=1, draws=200, tune=300)
    assert fit.score(4, 0) < 0.5 < fit.score(4, 4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rng": None}, "rng must be a numpy Generator or a whole-number seed ≥ 0, got None"),
        ({"rng": 1, "draws": 5}, "draws must be a whole number from 100 to 1,000,000, got 5"),
        ({"rng": 1, "chains": 1}, "chains must be a whole number from 2 to 1,000, got 1"),
        ({"rng": 1, "tune": 1.5}, "tune must be a whole number from 100 to 1,000,000, got 1.5"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(OptionError, match=f"^{sentence}$"):
        fit_mcmc(COUNTS, **options)


@pytest.mark.parametrize(("module", "call"), [("nutpie", partial(fit_mcmc, rng=1)), ("pymc", to_pymc)])
def test_without_the_extra_a_sentence_says_how_to_get_it(module: str, call, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        FitError, match=rf"needs {module}, which is not installed: pip install 'binreps\[mcmc\]'$"
    ):
        call(COUNTS)


# --- averages over draws --------------------------------------------------------------------------------


def test_a_prediction_is_a_ratio_of_two_averages() -> None:
    fit = from_exact(COUNTS)
    theta, p, q = (rate.ravel() for rate in fit.chains)
    for n, s in [(4, 2), (6, 5), (1, 0)]:
        positive = np.mean(theta * (1 - q) ** s * q ** (n - s))
        negative = np.mean((1 - theta) * p**s * (1 - p) ** (n - s))
        assert fit.predict(n, s) == pytest.approx(positive / (positive + negative), rel=1e-12)
        assert fit.score(n, s) == pytest.approx(likelihood_score(n, s, Rates(theta, p, q)).mean(), rel=1e-12)


def test_predictions_neither_under_nor_overflow() -> None:
    fit = from_exact(COUNTS)
    assert fit.predict(10**6, [0, 10**6]).tolist() == pytest.approx([0, 1], abs=1e-12)
    assert np.isfinite(fit.predict_error(10**6, [0, 300_000, 10**6])).all()


@pytest.mark.parametrize("kind", ["score", "predict"])
def test_intervals_agree_with_the_exact_ones(kind: str) -> None:
    fit, exact = from_exact(COUNTS, size=40_000), fit_bayes(COUNTS)
    n, s = [4, 3, 6], [2, 1, 2]
    for found, true in zip(
        getattr(fit, f"{kind}_interval")(n, s, level=0.8),
        getattr(exact, f"{kind}_interval")(n, s, level=0.8),
        strict=True,
    ):
        width = np.subtract(*getattr(exact, f"{kind}_interval")(n, s, level=0.8)[::-1])
        assert np.all(np.abs(found - true) < 0.03 * width)  # about 4 standard errors of a 10 % quantile


def test_a_decision_table_has_the_interval_of_the_prediction() -> None:
    table = decision_table(from_exact(COUNTS), Loss(inconclusive=0.2), replicates=3)
    rows = zip(table["lower"], table["probability"], table["upper"], strict=True)
    assert all(lower < probability < upper for lower, probability, upper in rows)


def test_draws_are_whole_triples_of_the_chains(sampled: McmcFit) -> None:
    triples = set(zip(*(rate.ravel().tolist() for rate in sampled.chains), strict=True))
    picked = sampled.draws(300, rng=1)
    assert set(zip(*(rate.tolist() for rate in picked), strict=True)) <= triples
    assert sampled.draws(0, rng=1).prevalence.shape == (0,)
    with pytest.raises(OptionError, match="size must be a whole number"):
        sampled.draws(-1, rng=1)


def test_quantiles_are_those_of_the_draws(sampled: McmcFit) -> None:
    lower, upper = sampled.interval(0.5)
    for low, rate, high in zip(lower, sampled.chains, upper, strict=True):
        assert np.mean((low <= rate) & (rate <= high)) == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(OptionError, match="probability must be between 0 and 1"):
        sampled.quantile(1)


# --- how good the draws are -----------------------------------------------------------------------------


def test_independent_draws_are_worth_what_they_count() -> None:
    """An effective sample size is noisy, so the mean of eight."""
    fits = [from_exact(COUNTS, rng=seed) for seed in range(8)]
    for name in NAMES:
        assert np.mean([fit.rhat[name] for fit in fits]) == pytest.approx(1, abs=0.002)
        assert np.mean([fit.ess_bulk[name] for fit in fits]) == pytest.approx(4000, rel=0.1)
        assert np.mean([fit.ess_tail[name] for fit in fits]) == pytest.approx(4000, rel=0.1)
        naive = [getattr(fit.sd, name) / np.sqrt(4000) for fit in fits]
        assert np.mean([getattr(fit.mcse, name) for fit in fits]) == pytest.approx(np.mean(naive), rel=0.05)
    assert sum(fit.divergences for fit in fits) == 0


def test_errors_are_the_spread_of_repeated_fits() -> None:
    """60 fits of 400 independent draws: their spread is known within about 10 %."""
    fits = [from_exact(COUNTS, size=400, rng=seed) for seed in range(60)]
    for what, n, s in [("score", 4, 2), ("predict", 4, 2), ("predict", 8, 3)]:
        spread = np.std([getattr(fit, what)(n, s) for fit in fits], ddof=1)
        stated = np.mean([getattr(fit, f"{what}_error")(n, s) for fit in fits])
        assert stated == pytest.approx(spread, rel=0.35)


def test_chains_that_disagree_are_told() -> None:
    good = from_exact(COUNTS)
    theta, p, q = good.chains
    shifted = theta + 0.1 * np.array([[0], [0], [0], [1]])
    bad = McmcFit.of(COUNTS, good.prior, Rates(shifted, p, q), good.diverging)
    assert bad.rhat["prevalence"] > 1.1
    assert bad.ess_bulk["prevalence"] < 50
    assert bad.rhat["false_positive"] == good.rhat["false_positive"]


def test_a_posterior_that_nuts_cannot_follow_shows_as_divergences() -> None:
    """Priors with poles, of which Beta(0.05, 0.05) keeps 7 % of its mass within 10⁻¹⁶ of 1."""
    fit = fit_mcmc(CountTable([1, 1], [0, 1], [60, 40]), Prior((0.05, 0.05), (0.1, 0.1), (0.1, 9)), rng=2)
    assert fit.divergences > 100
    assert f"{fit.divergences:,} divergences in 4,000 draws" in str(fit)


def test_the_summary_states_the_diagnostics(sampled: McmcFit) -> None:
    table = sampled.diagnostics()
    assert table["mcse"] == tuple(sampled.mcse)
    assert table["rhat"] == tuple(sampled.rhat.values())
    assert table["bulk"] == tuple(round(size) for size in sampled.ess_bulk.values())
    assert table["tail"] == tuple(round(size) for size in sampled.ess_tail.values())
    assert "50% credible intervals; R̂ up to " in str(sampled.summary(0.5))
    assert "0 divergences in 2,000 draws" in str(sampled)
    assert 0.5 < sampled.error / max(2 * e / s for e, s in zip(sampled.mcse, sampled.sd, strict=True)) < 2


# --- the model for others to extend --------------------------------------------------------------------


@pytest.mark.parametrize("counts", [KNOWN, screening_counts(), CountTable([], [])], ids=len)
def test_the_pymc_model_is_the_likelihood_times_the_prior(counts: CountTable) -> None:
    prior = Prior((2, 6), (1.5, 12), (3, 0.5))
    density = to_pymc(counts, prior).compile_logp(jacobian=False, mode="FAST_COMPILE")
    points = [Rates(0.3, 0.1, 0.2), Rates(0.9, 0.45, 0.01), Rates(1e-6, 1e-3, 0.4)]

    def expected(rates: Rates) -> float:
        laws = (stats.beta(*shapes).logpdf(rate) for shapes, rate in zip(prior, rates, strict=True))
        return log_likelihood(counts, rates) + sum(laws)

    found = [float(density(unconstrained(rates))) for rates in points]
    assert np.diff(found) == pytest.approx(np.diff([expected(rates) for rates in points]), rel=1e-10)


def unconstrained(rates: Rates) -> dict[str, np.ndarray]:
    """The point as PyMC names and stretches it: logits of θ, 2p and 2q."""
    theta, p, q = rates
    logit = {
        "prevalence_logodds__": theta,
        "false_positive_interval__": 2 * p,
        "false_negative_interval__": 2 * q,
    }
    return {name: np.array(np.log(x / (1 - x))) for name, x in logit.items()}


def test_the_pymc_model_can_be_extended() -> None:
    (pm,) = _extra("test", "pymc")
    with to_pymc(COUNTS) as model:
        pm.Deterministic("sensitivity", 1 - model["false_negative"])
    assert {variable.name for variable in model.unobserved_RVs} == {*NAMES, "sensitivity"}
