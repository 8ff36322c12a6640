"""The posterior mode where the error rates add up to at most 1, against dense grids and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from binreps import CountTable, FitError, Prior, Rates, fit_map, simulate
from binreps.fits.point.objective import Objective
from binreps.region import BETTER_THAN_CHANCE
from by_hand import BruteForce, as_array, expected_counts, log_posterior, random_case, random_prior

CHANCE = Prior(prevalence=(1, 1), better_than_chance=True)
FLAT = Prior((1, 1), (1, 1), (1, 1), better_than_chance=True)
SMEARS = simulate(Rates(0.5, 0.02, 0.7), 500, 5, rng=1).counts
CASES = st.integers(0, 10**6).map(
    lambda seed: random_case(np.random.default_rng(seed), better_than_chance=True)
)


def adversarial(seed: int) -> tuple[CountTable, Prior]:
    """Low sensitivity, few or many replicates, huge weights, known statuses, everyone alike."""
    rng = np.random.default_rng(seed)
    kind = seed % 5
    if kind == 0:  # sensitivity .1 to .4
        rates = Rates(rng.uniform(0.05, 0.95), rng.uniform(0.001, 0.1), rng.uniform(0.6, 0.9))
        counts = simulate(rates, int(10 ** rng.uniform(1, 6)), [int(rng.integers(1, 12))], rng=seed).counts
    elif kind == 1:  # nobody or everybody positive
        n = int(rng.integers(1, 9))
        counts = CountTable([n], [n * int(rng.integers(2))], [int(10 ** rng.uniform(0, 9))])
    elif kind == 2:  # one replicate
        counts = CountTable([1, 1], [0, 1], np.ceil(10 ** rng.uniform(0, 5, 2)))
    elif kind == 3:  # some known, and their rates beyond ½
        n = rng.integers(1, 7, 6)
        counts = CountTable(
            n, rng.binomial(n, rng.uniform(0, 1)), rng.integers(1, 1000, 6), [0, 1, None, None, 0, 1]
        )
    else:  # rates that add up to 1, but for chance
        p = rng.uniform(0.05, 0.95)
        counts = simulate(Rates(rng.uniform(), p, 1 - p), 1000, range(1, 6), rng=seed).counts
    return counts, random_prior(rng, better_than_chance=True)


def scipys_best(counts: CountTable, prior: Prior, rng: np.random.Generator, starts: int) -> float:
    """The best of several climbs by L-BFGS-B in (θ, p, share of 1 − p)."""

    def fall(x):
        return -log_posterior(counts, prior, np.array([x[0], x[1], (1 - x[1]) * x[2]]))

    ends = (1e-12, 1 - 1e-12)
    found = [
        minimize(fall, x, method="L-BFGS-B", bounds=[ends] * 3) for x in rng.uniform(0.02, 0.98, (starts, 3))
    ]
    return -min(end.fun for end in found)


def well(fit, counts: CountTable, prior: Prior) -> None:
    """What every mode must be."""
    assert fit.converged
    assert BETTER_THAN_CHANCE.holds(fit.rates.false_positive, fit.rates.false_negative)
    own = log_posterior(counts, prior, as_array(fit.rates))
    assert fit.objective == pytest.approx(own, rel=1e-9, abs=1e-9 + 1e-15 * counts.replicates)
    assert fit.residual < 1e-4


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_no_point_is_better_on_many_random_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cases = [random_case(rng, better_than_chance=True) for _ in range(150)]
    for (counts, prior), reference in zip(cases, BruteForce(BETTER_THAN_CHANCE).maxima(cases), strict=True):
        fit = fit_map(counts, prior)
        well(fit, counts, prior)
        assert fit.objective >= reference - 1e-9 * (1 + abs(reference)), (counts, prior)


@pytest.mark.parametrize("seed", range(60))
def test_scipy_finds_nothing_better_on_adversarial_tables(seed: int) -> None:
    counts, prior = adversarial(seed)
    fit = fit_map(counts, prior)
    well(fit, counts, prior)
    reference = scipys_best(counts, prior, np.random.default_rng(seed), 8)
    assert fit.objective >= reference - 1e-9 * (1 + abs(reference))


def test_a_climb_that_does_not_arrive_on_a_ridge_of_millions_says_so() -> None:
    """One replicate and flat priors: the mode is θ = 0, p = the share of positives, whatever q."""
    counts = CountTable([1, 1], [0, 1], [4_744_801, 6_067_634])
    prior = Prior((1, 4), (1, 1), (1, 1), better_than_chance=True)
    fit = fit_map(counts, prior)
    share = 6_067_634 / counts.individuals
    best = log_posterior(counts, prior, np.array([0.0, share, 0.25]))
    assert best - 0.1 < fit.objective <= best + 1e-8 * abs(best)
    assert fit.converged or "Not converged" in str(fit)


@pytest.mark.parametrize("seed", range(10))
def test_em_climbs_to_the_same_mode(seed: int) -> None:
    counts, prior = adversarial(5 * seed)  # low sensitivity
    em = fit_map(counts, prior, algorithm="em", rng=seed, starts=10, max_iter=3000, tol=1e-10)
    direct = fit_map(counts, prior)
    assert direct.objective >= em.objective - 1e-9 * (1 + abs(em.objective))
    assert BETTER_THAN_CHANCE.holds(em.rates.false_positive, em.rates.false_negative)


@given(CASES)
@example(random_case(np.random.default_rng(403), better_than_chance=True))  # a plateau that leads on
@pytest.mark.slow
def test_every_maximum_reported_is_one(case: tuple[CountTable, Prior]) -> None:
    counts, prior = case
    fit = fit_map(counts, prior)
    moves = 1e-5 * np.random.default_rng(0).uniform(-1, 1, (3, 50))
    for rates, objective in fit.maxima:
        around = np.clip(as_array(rates)[:, None] + moves, 0, 1)
        around = around[:, BETTER_THAN_CHANCE.holds(around[1], around[2])]
        assert log_posterior(counts, prior, around).max(initial=-np.inf) <= objective + 1e-9 * (
            1 + abs(objective)
        )


@given(st.lists(st.just(0.0) | st.floats(1e-3, 1e6), min_size=6, max_size=6))
def test_the_m_step_is_exact(exponents: list[float]) -> None:
    alpha, beta = np.array(exponents).reshape(2, 3)
    step = Objective(SMEARS, CHANCE).maximisation(np.stack([alpha, beta]), np.array([0.25, 0.7, 0.25]))
    assert BETTER_THAN_CHANCE.holds(*step[1:])
    grid = np.stack([x.ravel() for x in np.meshgrid(*[np.linspace(0, 1, 201)[1:-1]] * 2)])
    grid = grid[:, BETTER_THAN_CHANCE.holds(*grid)]
    best = np.max(alpha[1:] @ np.log(grid) + beta[1:] @ np.log1p(-grid))
    with np.errstate(divide="ignore"):
        own = sum(a * x for a, x in zip(alpha[1:], np.log(step[1:]), strict=True) if a) + sum(
            b * x for b, x in zip(beta[1:], np.log1p(-step[1:]), strict=True) if b
        )
    assert own >= best - 1e-9 * (1 + abs(best))


@pytest.mark.parametrize(
    "rates", [Rates(0.5, 0.02, 0.7), Rates(0.3, 0.001, 0.9), Rates(0.2, 0.6, 0.1), Rates(0.4, 0.1, 0.2)]
)
def test_expected_counts_give_their_own_rates_back(rates: Rates) -> None:
    assert tuple(fit_map(expected_counts(rates, 10**12, 5), FLAT).rates) == pytest.approx(
        tuple(rates), rel=1e-4
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_mirror_image_of_the_data_has_the_mirror_image_of_the_mode(seed: int) -> None:
    """Positives for negatives and classes exchanged: (θ, p, q) → (1−θ, q, p)."""
    counts, prior = adversarial(seed)
    known = [None if k < 0 else 1 - k for k in counts.known.tolist()]
    mirrored = CountTable(counts.n, counts.n - counts.s, counts.weight, known)
    turned = Prior(
        prior.prevalence[::-1], prior.false_negative, prior.false_positive, better_than_chance=True
    )
    here, there = fit_map(counts, prior), fit_map(mirrored, turned)
    assert here.objective == pytest.approx(there.objective, rel=1e-12)


@given(st.integers(0, 10**6))
def test_fully_known_data_have_a_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 7, 6)
    s, weight, t = rng.integers(0, n + 1), rng.integers(1, 50, 6), np.array([0, 1, 0, 1, 1, 0])
    prior = random_prior(rng, better_than_chance=True)
    fit = fit_map(CountTable(n, s, weight, t), prior)
    (a, b), *errors = prior
    pairs = []
    for (a, b), wrong, right, own in zip(errors, (s, n - s), (n - s, s), (1 - t, t), strict=True):
        pairs.append(((weight * wrong * own).sum() + a - 1, (weight * right * own).sum() + b - 1))
    (e, f), (g, h) = pairs
    p, q = e / (e + f), g / (g + h)
    if p + q > 1:
        p = (e + h) / (e + f + g + h)
        q = 1 - p
    assert tuple(fit.rates)[1:] == pytest.approx((p, q), rel=1e-12)
    assert (fit.converged, fit.n_iter) == (True, 1)


def test_repeat_smears_have_the_sensitivity_they_were_made_with() -> None:
    half, whole = fit_map(SMEARS), fit_map(SMEARS, CHANCE)
    assert half.rates.false_negative == 0.5
    assert half.rates.prevalence < 0.3
    assert whole.rates.false_negative > 0.55
    assert whole.objective > half.objective
    many = simulate(Rates(0.5, 0.02, 0.7), 50_000, 5, rng=1).counts
    assert tuple(fit_map(many, CHANCE).rates) == pytest.approx((0.5, 0.02, 0.7), abs=0.04)


@pytest.mark.parametrize("prior", [CHANCE, FLAT])
@pytest.mark.parametrize(
    "counts",
    [
        CountTable([3], [0], [50]),
        CountTable([3], [3], [50]),
        CountTable([5, 5], [0, 5], [20, 30]),
        CountTable([10**5, 10**5], [0, 10**5]),
        CountTable([10**5], [0]),
        CountTable([10**6, 10**6], [10, 10**6 - 10], [10**12, 10**12]),
        CountTable([0], [0], [7]),
    ],
)
def test_edges_are_finite_and_inside(counts: CountTable, prior: Prior) -> None:
    fit = fit_map(counts, prior)
    assert fit.converged
    assert np.isfinite(fit.objective)
    assert BETTER_THAN_CHANCE.holds(fit.rates.false_positive, fit.rates.false_negative)


def test_on_the_border_a_flat_prior_leaves_the_prevalence_open_and_says_so() -> None:
    counts = CountTable([4] * 5, range(5), [1, 4, 6, 4, 1])
    fit = fit_map(counts, Prior((1, 1), (20, 20), (20, 20), better_than_chance=True))
    assert fit.rates.false_positive + fit.rates.false_negative == 1
    said = "prevalence is arbitrary: error rates that add up to 1 make the replicates say nothing about it"
    assert [str(note) for note in fit.notes] == [said]


@pytest.mark.parametrize("rate", ["false_positive", "false_negative"])
@pytest.mark.parametrize("shapes", [(0.5, 2), (2, 0.5)])
def test_shapes_below_one_are_refused_at_both_ends(rate: str, shapes: tuple[float, float]) -> None:
    prior = Prior(prevalence=(1, 1), better_than_chance=True, **{rate: shapes})
    with pytest.raises(FitError, match=rf"^a posterior mode needs prior shapes ≥ 1 .*, got 0.5 for {rate}; "):
        fit_map(SMEARS, prior)
