"""Nested rules: the same posterior in every order, ridges and separate modes included; and their parts."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import kstest

from binreps import CountTable, Prior, fit_bayes
from binreps.fits.exact.density import AXES, Density
from binreps.fits.exact.nested import ORDERS, NestedGrid, find_panels, integrate_nested
from binreps.fits.exact.posterior import BoxPosterior, NestedPosterior
from binreps.fits.exact.profile import profile
from binreps.fits.exact.support import Lines, Support
from binreps.fits.exact.tensor import find_peak, integrate_box, lifted_objective
from binreps.model import NAMES, score_at
from oracles import ExactPosterior
from small_tables import LABELLED, SMALL

pytestmark = pytest.mark.slow

RIDGE = CountTable([2, 2, 2], [0, 1, 2], [500, 200, 300])
SHORT_RIDGE = CountTable([2, 2, 2], [0, 1, 2], [30, 12, 18])
DEFAULT = Prior()
SINGULAR = Prior((0.5, 0.5), (0.1, 1), (0.1, 1))
UNEVEN = Prior((1.5, 4), (1, 7), (3.3, 2.5))


@cache
def support(counts: CountTable, prior: Prior = DEFAULT) -> Support:
    return Support(find_peak(counts, prior)[0])


@cache
def nest(counts: CountTable, prior: Prior, axis: int) -> tuple[NestedGrid, NestedGrid]:
    return integrate_nested(support(counts, prior), axis, 1e-8)


CASES = [
    pytest.param(SMALL, DEFAULT, id="default"),
    pytest.param(SMALL, SINGULAR, id="singular"),
    pytest.param(LABELLED, UNEVEN, id="labelled"),
    pytest.param(SHORT_RIDGE, DEFAULT, id="ridge"),
]


@pytest.mark.parametrize(("counts", "prior"), CASES)
@pytest.mark.parametrize("axis", AXES)
def test_every_order_of_the_nest_is_the_closed_form(counts: CountTable, prior: Prior, axis: int) -> None:
    grid, check = nest(counts, prior, axis)
    exact = ExactPosterior(counts, prior)
    assert grid.distance(check) < 1e-8
    assert np.abs((grid.mean - exact.means) / exact.sds).max() < 1e-9
    assert np.abs(grid.sd / exact.sds - 1).max() < 1e-9
    assert grid.log_evidence == pytest.approx(exact.log_evidence, rel=1e-12)
    np.testing.assert_allclose(grid.covariance, exact.covariance, rtol=1e-7, atol=1e-9)


def test_a_peak_beside_a_plateau_is_found_in_every_order() -> None:
    """Each of two tests like a coin may be the one that nobody has: p and q are close to ½, or else free.

    The peak is 10⁻³ wide, and θ matters from 10⁻⁷ on; two orders of the nest share no line.
    """
    counts = CountTable([2, 3, 12], [1, 0, 12], [10**7, 289, 1])
    where = support(counts, Prior(false_positive=(2, 2), false_negative=(2, 2)))
    outside_theta, outside_p, outside_q = (find_panels(where, axis) for axis in AXES)
    assert outside_theta.distance(outside_p) < 1e-7
    assert outside_theta.distance(outside_q) < 1e-7


def test_lines_that_reach_an_end_have_few_other_ends_and_none_is_shortened() -> None:
    number, ends = np.arange(300), np.sort(np.random.default_rng(1).random((2, 300)), axis=0)
    lines = Lines(0, np.where(number < 100, 0.0, ends[0]), np.where(number > 200, 1.0, ends[1]))
    few = lines.with_few_ends()
    assert np.all(few.lower <= lines.lower)
    assert np.all(few.upper >= lines.upper)
    assert np.all((few.lower == 0) == (lines.lower == 0))
    assert np.all((few.upper == 1) == (lines.upper == 1))
    sorts = list(few.alike(support(SMALL).density))
    assert np.all(np.sum([same for same, _ in sorts], axis=0) == 1)
    assert 3 < len(sorts) < 120  # of 200 lines that reach an end
    for same, interval in sorts:
        assert np.all(interval.lower == few.lower[same])
        assert np.all(interval.upper == few.upper[same])


@pytest.mark.parametrize(("counts", "prior"), CASES)
@pytest.mark.parametrize("axis", AXES)
def test_the_marginal_of_the_outer_rate_is_the_closed_forms(
    counts: CountTable, prior: Prior, axis: int
) -> None:
    marginal, exact = nest(counts, prior, axis)[0].marginal(), ExactPosterior(counts, prior)
    for probability in (0.01, 0.05, 0.5, 0.95, 0.99):
        x = exact.quantile(NAMES[axis], probability)
        assert abs(marginal.quantile(probability) - x) < 1e-8 * exact.sds[axis]


def test_both_rules_agree_within_their_errors_where_a_ridge_still_fits_a_box() -> None:
    box, box_check = integrate_box(*find_peak(RIDGE, DEFAULT), 1e-8)
    for axis in (0, 2):
        grid, check = nest(RIDGE, DEFAULT, axis)
        assert grid.distance(box) < grid.distance(check) + box.distance(box_check)


def test_orders_agree_on_a_ridge_that_fits_no_box() -> None:
    """The prevalence outermost and the false-negative rate outermost follow the ridge differently."""
    long = CountTable(RIDGE.n, RIDGE.s, 1000 * RIDGE.weight)
    first, second = nest(long, DEFAULT, 2)[0], nest(long, DEFAULT, 0)[0]
    assert first.distance(second) < 1e-8


def test_two_equal_modes_far_apart_share_the_mass_equally() -> None:
    """Positives for negatives: prevalence becomes its complement, and the two error rates change places."""
    for n, weights in ((6, (200, 180, 200)), (20, (200, 180, 200)), (400, (10, 9, 10))):
        counts = CountTable([n] * 3, [0, n // 2, n], weights)
        grid, _ = nest(counts, DEFAULT, 2)
        theta, p, q = grid.mean
        assert abs(theta - 0.5) < 1e-8 * grid.sd[0]
        assert abs(p - q) < 1e-8 * grid.sd[1]
        assert grid.sd[1] == pytest.approx(grid.sd[2], rel=1e-8)
        assert grid.covariance[0, 1] == pytest.approx(-grid.covariance[0, 2], rel=1e-8)
        assert grid.expect(np.broadcast_to(grid.nodes[1] < 0.1, grid.mass.shape)) == pytest.approx(0.5)


# --- conditional modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
def test_conditional_modes_are_stationary(free: list[int]) -> None:
    """No free logit can move a fraction of its spread and gain more than a thousandth or so."""
    objective = lifted_objective(SMALL, DEFAULT)
    rng = np.random.default_rng(len(free))
    points = rng.uniform(0.05, [[0.95], [0.45], [0.45]], (3, 12))
    found = profile(objective, points, free)
    held = [i for i in AXES if i not in free]
    np.testing.assert_allclose(found.rates[held], points[held], rtol=1e-13)
    best = objective.at(found.rates).objective
    for axis in free:
        for sign in (-1, 1):
            moved = found.rates.copy()
            moved[axis] = expit(logit(moved[axis]) + sign * 0.1 * found.spread[axis])
            moved[axis] = np.minimum(moved[axis], 1 if axis == 0 else 0.5)
            assert np.all(objective.at(moved).objective < best + 0.01)


def test_the_profile_is_laplaces_integral() -> None:
    """Of one logit, against a plain sum; for 10⁵ individuals Laplace's method is good to 10⁻³."""
    counts = CountTable([4] * 5, range(5), [45_000, 18_000, 6_000, 11_000, 20_000])
    objective = lifted_objective(counts, DEFAULT)
    points = np.array([[0.3, 0.3], [0.08, 0.08], [0.1, 0.11]])
    found = profile(objective, points, [0])
    for k in range(2):
        z = logit(found.rates[0, k]) + found.spread[0, k] * np.linspace(-9, 9, 400)
        line = np.repeat(points[:, k : k + 1], z.size, axis=1)
        line[0] = expit(z)
        values = objective.at(line).objective
        exact = np.log(np.exp(values - values.max()).sum() * (z[1] - z[0])) + values.max()
        assert found.value[k] == pytest.approx(exact, abs=1e-3)


# --- supports --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", AXES)
def test_the_outer_interval_holds_the_marginal(axis: int) -> None:
    for counts, prior in ((SMALL, DEFAULT), (SMALL, SINGULAR), (RIDGE, DEFAULT)):
        panels = support(counts, prior).outer(axis)
        marginal = integrate_box(*find_peak(counts, prior), 1e-8)[0].marginal(axis)
        assert marginal.cumulative(panels[0].lower) < 1e-11
        assert marginal.cumulative(panels[-1].upper) > 1 - 1e-11
        assert all(left.upper == right.lower for left, right in pairwise(panels))


def test_the_inner_interval_holds_the_conditional_density() -> None:
    """Against the conditional density of θ on a fine grid of logits: no more than e^−25 lies outside."""
    given = support(RIDGE)
    rng = np.random.default_rng(3)
    points = np.stack([np.full(8, 0.5), *rng.uniform(0.02, 0.48, (2, 8))])
    lines = given.third(points, 0)
    z = np.linspace(-60, 60, 40_001)
    for k in range(8):
        line = np.repeat(points[:, k : k + 1], z.size, axis=1)
        line[0] = np.clip(expit(z), 1e-290, 1 - 1e-16)
        density = given.objective.at(line).objective
        density = np.exp(density - density.max())
        outside = (line[0] < lines.lower[k]) | (line[0] > lines.upper[k])
        assert density[outside].sum() / density.sum() < np.exp(-25)


@pytest.mark.parametrize("prior", [DEFAULT, SINGULAR, UNEVEN, Prior((44.7, 9), (22.1, 25.6), (45, 6))])
def test_lines_integrate_the_prior_whatever_ends_they_reach(prior: Prior) -> None:
    """The pieces of a partition of the domain, singular ends included, add up to the prior's constant."""
    density = Density(CountTable([], []), prior, np.array([0.5, 0.2, 0.2]))
    total = 0.0
    for axis, cuts in ((0, [0, 0.01, 0.1, 0.6, 0.95, 1]), (1, [0, 0.04, 0.3, 0.5]), (2, [0, 0.1, 0.5])):
        lines = Lines(axis, np.array(cuts[:-1]), np.array(cuts[1:]))
        nodes, log_weights = lines.rule(density, 40)
        assert np.all((nodes > lines.lower[:, None]) & (nodes < lines.upper[:, None]))
        total += np.log(np.exp(log_weights).sum())
    assert total == pytest.approx(-density.log_constant, rel=1e-12)


def test_each_order_names_every_axis_once() -> None:
    for axis, order in ORDERS.items():
        assert order[0] == axis
        assert sorted(order) == [0, 1, 2]


# --- what both rules offer -------------------------------------------------------------------------------


def test_a_nested_posterior_offers_what_a_box_offers() -> None:
    density, spread = find_peak(SMALL, DEFAULT)
    box, nested = (
        BoxPosterior(SMALL, *integrate_box(density, spread, 1e-8)),
        NestedPosterior(SMALL, density, 1e-8),
    )
    assert (box.rule, nested.rule) == ("box", "nested")
    for axis in AXES:
        for probability in (0.05, 0.5, 0.95):
            difference = box.marginal(axis).quantile(probability) - nested.marginal(axis).quantile(
                probability
            )
            assert abs(difference) < 1e-9 * box.grid.sd[axis]
    masses = [sum(float(line.masses.sum()) for line in one.theta_lines()) for one in (box, nested)]
    assert masses == pytest.approx([1, 1], rel=1e-10)
    draws = nested.draws(500, np.random.default_rng(1))
    for axis in AXES:
        assert kstest(box.marginal(axis).cumulative(draws[axis]), "uniform").pvalue > 0.001


def test_two_modes_whose_cuts_coincide_leave_no_empty_panel() -> None:
    fit = fit_bayes(CountTable([0, 1, 10, 100], [0, 0, 10, 56], [11, 1, 1, 17]))
    assert np.all(np.isfinite([*fit.rates, *fit.sd, fit.log_evidence]))


@pytest.mark.slow
def test_lines_of_a_sort_without_mass_do_not_break_an_interval() -> None:
    """On a ridge some lines of θ reach an end where nothing is: that ended in an IndexError once."""
    fit = fit_bayes(CountTable([1, 1], [0, 1], [70_000, 30_000]))
    lower, upper = fit.score_interval(1, 1)
    assert 0 < lower < fit.score(1, 1) < upper < 1
    draws = fit.draws(4000, rng=1)
    share = np.mean(score_at(np.int64(1), np.int64(1), *draws) <= upper)
    assert share == pytest.approx(0.95, abs=0.02)
