"""The posterior mode: the global constrained optimum, its derivatives, its honesty."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from binreps import BinrepsWarning, CountTable, FitError, Prior, Rates, fit_map
from binreps.fits.point.climb import climb
from binreps.fits.point.mode import MAP_PRIOR
from binreps.fits.point.objective import Objective
from binreps.model import NAMES
from binreps.study.simulate import simulate_counts
from by_hand import BruteForce, as_array, expected_counts, log_posterior, random_case, random_prior

FLAT = Prior((1, 1), (1, 1), (1, 1))
COUNTS = CountTable([4, 4, 4, 4, 3, 2, 0], [0, 1, 3, 4, 2, 1, 0], weight=[50, 20, 10, 20, 5, 3, 2])
TWO_HILLS = CountTable([6, 6, 6], [0, 3, 6], weight=[50, 45, 55])
CASES = st.integers(0, 10**6).map(lambda seed: random_case(np.random.default_rng(seed)))


def quiet_fit(counts: CountTable, prior: Prior, **options):
    """A rate that neither data nor prior inform comes with a warning, which has its own test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BinrepsWarning)
        return fit_map(counts, prior, **options)


# --- the global optimum ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def brute_force() -> BruteForce:
    return BruteForce()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.slow
def test_no_point_is_better_on_many_random_tables(brute_force: BruteForce, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cases = [random_case(rng) for _ in range(150)]
    for (counts, prior), reference in zip(cases, brute_force.maxima(cases), strict=True):
        fit = quiet_fit(counts, prior)
        assert fit.converged
        assert fit.objective >= reference - 1e-9 * (1 + abs(reference)), (counts, prior)
        assert fit.objective == pytest.approx(
            log_posterior(counts, prior, as_array(fit.rates)), rel=1e-9, abs=1e-9
        )
        assert np.all(as_array(fit.rates) <= [1, 0.5, 0.5])
        assert fit.residual < 1e-4


@pytest.mark.slow
def test_scipy_finds_nothing_better_from_many_starts() -> None:
    rng = np.random.default_rng(77)
    for _ in range(15):
        counts, prior = random_case(rng)
        fit = quiet_fit(counts, prior)
        for start in rng.uniform([0.02, 0.02, 0.02], [0.98, 0.48, 0.48], (6, 3)):
            end = minimize(
                lambda x, counts=counts, prior=prior: -log_posterior(counts, prior, x),
                start,
                method="L-BFGS-B",
                bounds=[(1e-12, 1 - 1e-12), (1e-12, 0.5), (1e-12, 0.5)],
            )
            assert fit.objective >= -end.fun - 1e-9 * (1 + abs(end.fun))


@pytest.mark.slow
def test_em_from_many_starts_finds_nothing_better() -> None:
    rng = np.random.default_rng(78)
    for seed in range(20):
        counts, prior = random_case(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BinrepsWarning)
            em = fit_map(counts, prior, algorithm="em", rng=seed, starts=5, max_iter=200)
        assert quiet_fit(counts, prior).objective >= em.objective - 1e-9 * (1 + abs(em.objective))


def test_a_higher_basin_beside_a_flat_one_is_found() -> None:
    """As many positives as negatives: p = q = ½ is a saddle for every prevalence, and EM crawls near it."""
    fit = fit_map(CountTable([0, 2, 4], [0, 0, 3], weight=[4, 2, 2]))
    assert tuple(fit.rates) == pytest.approx((0.563, 0.398, 0.429), abs=1e-3)


@pytest.mark.parametrize(
    ("counts", "prior", "best"),
    [
        (
            CountTable([2, 2, 3, 3, 4, 4, 4, 6], [1, 2, 0, 2, 2, 3, 4, 2], [3, 1, 1, 2, 2, 1, 1, 1]),
            FLAT,
            (0.99918, 0.0, 0.43547),
        ),
        (
            CountTable([2, 4, 48469, 202604, 298936], [0, 0, 9306, 31481, 51537], [80, 23, 10, 6, 23]),
            Prior((1, 1), (1, 1), (1, 1), better_than_chance=True),
            (0.82534, 0.15538, 0.82631),
        ),
    ],
    ids=["flat", "sharp"],
)
def test_a_climb_is_not_given_up_for_a_lower_hill_that_is_uphill_too(counts, prior, best) -> None:
    """From some starts of these tables the straight way to the first maximum found is uphill all along."""
    fit = fit_map(counts, prior)
    assert fit.objective >= log_posterior(counts, prior, np.array(best)) - 1e-4


@given(CASES)
@pytest.mark.slow
def test_every_maximum_reported_is_one(case: tuple[CountTable, Prior]) -> None:
    counts, prior = case
    fit = quiet_fit(counts, prior)
    assert fit.maxima[0] == (fit.rates, fit.objective)
    moves = 1e-5 * np.random.default_rng(0).uniform(-1, 1, (3, 50))
    for rates, objective in fit.maxima:
        around = np.clip(as_array(rates)[:, None] + moves, 0, [[1], [0.5], [0.5]])
        assert log_posterior(counts, prior, around).max() <= objective + 1e-9 * (1 + abs(objective))


def test_two_hills_are_both_reported_and_the_higher_one_wins() -> None:
    """Those with 3 positives of 6 are either sick with a poor test or healthy with a poor test."""
    fit = fit_map(TWO_HILLS)
    (first, high), (second, low) = fit.maxima
    assert high > low
    assert first == fit.rates
    assert first.false_negative < 0.1 < 0.2 < first.false_positive
    assert second.false_positive < 0.1 < 0.2 < second.false_negative
    mirrored = fit_map(CountTable([6, 6, 6], [0, 3, 6], weight=[55, 45, 50]))
    assert tuple(mirrored.rates) == pytest.approx(
        (1 - first.prevalence, first.false_negative, first.false_positive)
    )


# --- derivatives -------------------------------------------------------------------------------------


def exact_objective(counts: CountTable, prior: Prior):
    """The log posterior as a function of logits, in mpmath's arithmetic."""

    def value(*logits):
        theta, p, q = rates = [1 / (1 + mpmath.exp(-x)) for x in logits]
        total = mpmath.mpf(0)
        for n, s, known, w in zip(counts.n, counts.s, counts.known, counts.weight, strict=True):
            n, s, known, w = map(int, (n, s, known, w))
            positive = theta * (1 - q) ** s * q ** (n - s) if known != 0 else 0
            negative = (1 - theta) * p**s * (1 - p) ** (n - s) if known != 1 else 0
            total += w * mpmath.log(positive + negative)
        for (a, b), rate in zip(prior, rates, strict=True):
            total += (a - 1) * mpmath.log(rate) + (b - 1) * mpmath.log(1 - rate)
        return total

    return value


@pytest.mark.parametrize("seed", range(12))
def test_gradient_and_hessian_are_the_derivatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, prior = random_case(rng)
    logits = rng.normal(0, 1.5, 3)
    objective = Objective(counts, prior)
    state = objective.at(1 / (1 + np.exp(-logits[:, None])))
    value = exact_objective(counts, prior)
    with mpmath.workdps(40):
        at = [mpmath.mpf(float(x)) for x in logits]
        orders = np.eye(3, dtype=int).tolist()
        gradient = [float(mpmath.diff(value, at, order)) for order in orders]
        hessian = [[float(mpmath.diff(value, at, np.add(i, j).tolist())) for i in orders] for j in orders]
        assert state.objective[0] == pytest.approx(float(value(*at)), rel=1e-12)
    size = 1e-10 * counts.replicates + 1e-9
    assert objective.gradient(state)[:, 0] == pytest.approx(np.array(gradient), rel=1e-8, abs=size)
    assert objective.hessian(state)[..., 0] == pytest.approx(np.array(hessian), rel=1e-8, abs=10 * size)


def test_many_points_at_once_are_the_points_one_by_one() -> None:
    rng = np.random.default_rng(3)
    objective = Objective(*random_case(rng))
    points = rng.uniform(0.01, 0.49, (3, 5))
    together = objective.at(points)
    for j in range(5):
        alone = objective.at(points[:, [j]])
        assert together.objective[j] == pytest.approx(alone.objective[0], rel=1e-13)
        for derivative in (objective.gradient, objective.hessian):
            assert derivative(together)[..., [j]] == pytest.approx(derivative(alone), rel=1e-9, abs=1e-9)


def test_many_tables_at_once_are_the_tables_one_by_one() -> None:
    """Also where their numbers of cells differ, and statuses are known in some of them."""
    rng = np.random.default_rng(4)
    tables = [random_case(rng)[0] for _ in range(6)]
    points = rng.uniform(0.01, 0.49, (3, 6))
    objective = Objective(tables, MAP_PRIOR)
    together = objective.at(points)
    for j, counts in enumerate(tables):
        own = Objective(counts, MAP_PRIOR)
        alone = own.at(points[:, [j]])
        assert together.objective[j] == pytest.approx(alone.objective[0], rel=1e-13)
        for both in ("gradient", "hessian", "residual"):
            assert getattr(objective, both)(together)[..., [j]] == pytest.approx(
                getattr(own, both)(alone), rel=1e-9, abs=1e-9
            )


@given(st.just(0.0) | st.floats(1e-300, 1e6), st.floats(-0.999, 1e6))
def test_the_m_step_is_exact_also_where_a_shape_is_below_one(alpha: float, beta: float) -> None:
    """α log r + β log(1−r) on r ≤ ½: with β < 0 it has no maximum inside [E4]."""
    objective = Objective(COUNTS, MAP_PRIOR)
    step = objective.maximisation(np.stack([np.full(3, alpha), np.full(3, beta)]), np.full(3, 0.25))
    grid = np.linspace(0, 0.5, 1001)[1:]
    for rate in step[1:]:
        assert 0 <= rate <= 0.5
        terms = (alpha * np.log(rate) if alpha else 0.0) + beta * np.log1p(-rate)
        best = np.max(alpha * np.log(grid) + beta * np.log1p(-grid))
        assert terms >= best - 1e-9 * (1 + abs(best))


# --- constraint and labels ---------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [MAP_PRIOR, FLAT])
def test_a_test_that_misses_most_ends_at_one_half(prior: Prior) -> None:
    """E4: no relabelling brings p = .1, q = .6 into range; the constraint holds at q = ½, pressed against."""
    counts = expected_counts(Rates(0.4, 0.1, 0.6), 10**6, 6)
    fit = fit_map(counts, prior)
    assert fit.rates.false_negative == 0.5
    objective = Objective(counts, prior)
    gradient = objective.gradient(objective.at(as_array(fit.rates)[:, None]))[:, 0]
    assert gradient[2] > 1
    assert np.abs(gradient[:2]) == pytest.approx(0, abs=1e-4)


def test_the_bound_is_reached_along_a_narrow_ridge() -> None:
    """A step cut back at q = ½ must not leave the ridge, or the climb crawls to its cap."""
    fit = fit_map(simulate_counts(Rates(0.999, 0.081, 0.51), 10**6, range(1, 12), rng=0))
    assert fit.converged
    assert fit.n_iter < 100
    assert fit.rates.false_negative == 0.5
    assert fit.residual < 1e-6


@pytest.mark.parametrize("rates", [Rates(0.3, 0.1, 0.2), Rates(0.02, 0.01, 0.3), Rates(0.5, 0.4, 0.05)])
def test_expected_counts_give_their_own_rates_back(rates: Rates) -> None:
    assert tuple(fit_map(expected_counts(rates, 10**12, 5), FLAT).rates) == pytest.approx(
        tuple(rates), rel=1e-4
    )


@pytest.mark.parametrize("status", [0, 1])
def test_known_statuses_are_held_fixed(status: int) -> None:
    """Many known individuals of one class pin its rate, whatever the rest looks like."""
    known = CountTable([4, 4], [1, 3], weight=[10**6, 10**6], known=[status, status])
    rates = fit_map(COUNTS + known).rates
    assert (rates.false_positive if status == 0 else rates.false_negative) == pytest.approx(0.5, abs=1e-3)
    assert rates.prevalence == pytest.approx(status, abs=1e-3)


@given(st.integers(0, 10**6))
def test_fully_known_data_have_a_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 7, 6)
    s, weight, t = rng.integers(0, n + 1), rng.integers(1, 50, 6), np.array([0, 1, 0, 1, 1, 0])
    prior = random_prior(rng)
    fit = quiet_fit(CountTable(n, s, weight, t), prior)
    (a, b), *errors = prior
    expected = [((weight * t).sum() + a - 1) / (weight.sum() + a + b - 2)]
    for (a, b), wrong, right, own in zip(errors, (s, n - s), (n - s, s), (1 - t, t), strict=True):
        alpha, beta = (weight * wrong * own).sum() + a - 1, (weight * right * own).sum() + b - 1
        expected.append(min(0.5, alpha / (alpha + beta)) if beta > 0 else 0.5)
    assert tuple(fit.rates) == pytest.approx(expected, rel=1e-12)
    assert (fit.converged, fit.n_iter, len(fit.maxima)) == (True, 1, 1)


# --- edges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [MAP_PRIOR, FLAT, Prior((1, 1), (1, 0.5), (1, 0.5))])
@pytest.mark.parametrize(
    ("counts", "prevalence"),
    [
        (CountTable([3], [0], [50]), 0),
        (CountTable([3], [3], [50]), 1),
        (CountTable([5, 5], [0, 5], [20, 30]), 0.6),
        (CountTable([10**5, 10**5], [0, 10**5]), 0.5),
        (CountTable([10**5], [0]), 0),
        (CountTable([10**6, 10**6], [10, 10**6 - 10], [10**12, 10**12]), 0.5),
    ],
    ids=["all negative", "all positive", "separated", "n = 10⁵", "one individual", "10¹² individuals"],
)
def test_edges_have_the_obvious_prevalence_and_never_nan(counts, prevalence: float, prior: Prior) -> None:
    fit = quiet_fit(counts, prior)
    assert fit.converged
    assert np.isfinite(fit.objective)
    assert fit.rates.prevalence == pytest.approx(prevalence, abs=1e-3)
    assert fit.rates.false_positive <= 0.5
    assert fit.rates.false_negative <= 0.5
    scores = fit.score(counts.n, counts.s)
    assert scores == pytest.approx(np.where(2 * counts.s > counts.n, 1, 0), abs=1e-3)


def test_perfectly_separated_data_and_flat_priors_make_a_perfect_test() -> None:
    fit = fit_map(CountTable([5, 5], [0, 5], [20, 30]), FLAT)
    assert tuple(fit.rates) == (0.6, 0.0, 0.0)
    assert fit.score(5, [0, 2, 3, 5]).tolist() == [0, 0, 1, 1]  # the median, where both are impossible


def test_a_rate_about_which_nothing_is_known_comes_with_a_note() -> None:
    fit = fit_map(CountTable([3], [0], [50], known=[0]), FLAT)
    said = "false_negative is arbitrary: neither the data nor the flat prior say anything about it"
    assert [(note.id, note.sentence) for note in fit.notes] == [("map-arbitrary", said)]
    assert fit.rates.false_negative == 0.25


@pytest.mark.parametrize(
    ("prior", "shape", "name"),
    [
        (Prior(), 0.5, "prevalence"),
        (Prior(prevalence=(2, 0.9)), 0.9, "prevalence"),
        (Prior((1, 1), false_positive=(0.99, 2)), 0.99, "false_positive"),
        (Prior((1, 1), false_negative=(0.1, 2)), 0.1, "false_negative"),
    ],
)
@pytest.mark.parametrize(
    "fit", [fit_map, lambda counts, prior: fit_map(counts, prior, algorithm="em", rng=1)]
)
def test_shapes_below_one_are_refused_where_the_mode_would_be_infinite(fit, prior, shape, name) -> None:
    sentence = rf"^a posterior mode needs prior shapes ≥ 1 .*, got {shape} for {name}; .* from 0.05$"
    with pytest.raises(FitError, match=sentence):
        fit(COUNTS, prior)


def test_shapes_below_one_at_the_bound_are_fine() -> None:
    assert fit_map(COUNTS, Prior((1, 1), (1, 0.2), (1, 0.2))).converged


# --- what it says about itself -----------------------------------------------------------------------


def test_a_cap_reached_is_not_convergence() -> None:
    counts = CountTable([2, 2, 2], [0, 1, 2], weight=[185088, 157647, 33789])
    capped, full = fit_map(counts, max_iter=1), fit_map(counts)
    assert (capped.converged, capped.n_iter) == (False, 1)
    assert "Not converged after 1 iterations." in str(capped)
    assert full.converged
    assert 1 < full.n_iter < 10
    assert "converged" not in str(full)
    assert capped.objective <= full.objective


def test_a_climb_stops_at_its_cap_or_where_nothing_is_left_to_gain() -> None:
    objective, start = Objective(COUNTS, MAP_PRIOR), np.array([[0.9], [0.4], [0.4]])
    ends = [climb(objective, start, max_iter=cap, tol=1e-12) for cap in (1, 3, 200)]
    assert [bool(end.converged[0]) for end in ends] == [False, False, True]
    assert [int(end.n_iter[0]) for end in ends[:2]] == [1, 3]
    assert objective.residual(ends[0].state) > 1e-4
    assert objective.residual(ends[2].state) < 1e-8
    assert ends[0].state.objective < ends[1].state.objective < ends[2].state.objective


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (COUNTS, False),
        (CountTable([2, 2, 1], [0, 1, 1], weight=[5, 5, 9]), True),
        (CountTable([1, 1, 1], [0, 1, 1], known=[0, 1, None]), False),
    ],
)
def test_estimates_that_rest_on_the_prior_say_so(counts: CountTable, told: bool) -> None:
    assert ("the estimates rest on the prior." in str(fit_map(counts))) == told


def test_the_residual_is_zero_where_the_optimality_conditions_hold() -> None:
    fit = fit_map(COUNTS)
    assert fit.residual < 1e-9
    objective = Objective(COUNTS, MAP_PRIOR)
    assert objective.residual(objective.at(as_array(fit.rates)[:, None] + 0.01)) > 1e-4


def test_both_estimates_of_the_error_rates_on_the_periodontal_data(periodontal) -> None:
    n, s, _ = periodontal
    fit = fit_map(CountTable(n, s))
    assert round(fit.rates.false_positive, 3) == 0.101
    assert round(fit.plug_in_rates.false_positive, 3) == 0.085
    assert len(fit.maxima) == 1


def test_plug_in_rates_are_those_of_the_scores() -> None:
    fit = fit_map(COUNTS)
    y, w = fit.score(COUNTS.n, COUNTS.s), COUNTS.weight
    expected = [
        (w * y).sum() / w.sum(),
        (w * COUNTS.s * (1 - y)).sum() / (w * COUNTS.n * (1 - y)).sum(),
        (w * (COUNTS.n - COUNTS.s) * y).sum() / (w * COUNTS.n * y).sum(),
    ]
    assert tuple(fit.plug_in_rates) == pytest.approx(expected, rel=1e-12)
    assert list(vars(fit.plug_in_rates)) == list(NAMES)
