"""The product rule: it finds its box from anywhere, and agrees with brute force and with the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from binreps import CountTable, Prior
from binreps.fits.exact.density import AXES, END, Density
from binreps.fits.exact.tensor import (
    CUT,
    BoxGrid,
    UnresolvedError,
    find_box,
    find_peak,
    integrate_box,
    lifted_objective,
    snapped,
)
from oracles import ExactPosterior, brute_force
from small_tables import LABELLED, NOBODY, SMALL, TINY

LARGE = CountTable([4] * 5, range(5), [450_000, 180_000, 60_000, 110_000, 200_000])
RIDGE = CountTable([2, 2, 2], [0, 1, 2], [500_000, 200_000, 300_000])
TWO_HILLS = CountTable([6, 6, 6], [0, 3, 6], [50, 45, 50])
PRIORS = {
    "default": Prior(),
    "misguided": Prior((0.5, 0.5), (50, 50), (50, 50)),
    "singular": Prior((0.1, 0.1), (0.1, 1), (0.1, 1)),
    "uneven": Prior((1.5, 4), (1, 7), (3.3, 2.5)),
    "high powers": Prior((44.7, 989), (22.1, 25.6), (45, 610)),
}
each_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())
each_table = pytest.mark.parametrize(
    "counts", [NOBODY, TINY, SMALL, LABELLED], ids=["nobody", "tiny", "small", "labelled"]
)


def whole_domain(counts: CountTable, prior: Prior, sizes: tuple[int, int, int]) -> BoxGrid:
    density = Density(counts, prior, np.array([0.4, 0.2, 0.3]))
    return BoxGrid(density, tuple(density.interval(i, 0.0, END[i]) for i in AXES), sizes)


# --- a grid ----------------------------------------------------------------------------------------------


def test_a_grid_on_the_whole_domain_is_brute_force() -> None:
    grid = whole_domain(LABELLED, Prior(), (14, 12, 13))
    evidence = brute_force(LABELLED, lambda theta, p, q: np.ones_like(theta + p + q))
    assert np.exp(grid.log_evidence) == pytest.approx(evidence, rel=1e-12)
    third = brute_force(LABELLED, lambda theta, p, q: theta * p * q) / evidence
    theta, p, q = grid.nodes
    assert grid.expect(theta * p * q) == pytest.approx(third, rel=1e-12)
    for axis in AXES:
        assert grid.mean[axis] == pytest.approx(grid.line(axis) @ grid.nodes[axis].ravel(), rel=1e-13)


def test_moments_of_a_grid_are_those_of_the_closed_form() -> None:
    grid = whole_domain(SMALL, PRIORS["singular"], (40, 40, 40))
    exact = ExactPosterior(SMALL, PRIORS["singular"])
    np.testing.assert_allclose(grid.mean, exact.means, rtol=1e-12)
    np.testing.assert_allclose(grid.covariance, exact.covariance, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(grid.sd, exact.sds, rtol=1e-11)
    assert grid.log_evidence == pytest.approx(exact.log_evidence, rel=1e-13)


def test_the_distance_of_two_grids_is_their_largest_relative_difference() -> None:
    fine, coarse = whole_domain(SMALL, Prior(), (20, 20, 20)), whole_domain(SMALL, Prior(), (5, 5, 5))
    assert fine.distance(fine) == 0
    differences = np.concatenate(
        [
            (fine.mean - coarse.mean) / fine.sd,
            1 - coarse.sd / fine.sd,
            [(fine.log_evidence - coarse.log_evidence) / fine.log_evidence],
        ]
    )
    assert fine.distance(coarse) == pytest.approx(np.abs(differences).max(), rel=1e-9)


def test_resizing_keeps_the_box() -> None:
    grid = whole_domain(SMALL, Prior(), (10, 11, 12)).resized(1.5)
    assert grid.sizes == (15, 17, 18)
    assert grid.mass.shape == grid.sizes
    assert grid.mass.sum() == pytest.approx(1, rel=1e-14)


def test_occupied_counts_the_nodes_of_a_line() -> None:
    """A flat likelihood and a flat prior occupy Σw² / (Σw)² of a Gauss–Legendre rule, on every axis."""
    grid = whole_domain(NOBODY, Prior((1, 1), (1, 1), (1, 1)), (8, 20, 40))
    for axis, size in zip(AXES, grid.sizes, strict=True):
        weights = np.polynomial.legendre.leggauss(size)[1]
        assert grid.occupied(axis) == pytest.approx(4 / np.sum(weights**2), rel=1e-12)


def test_the_marginal_of_a_logit() -> None:
    """Under the prior alone the logit of a rate has the density x^a (1−x)^b, whatever box shows it."""
    prior = Prior((0.1, 3), (4.5, 9), (0.7, 2))
    grid = whole_domain(NOBODY, prior, (30, 31, 32))
    for axis in AXES:
        (a, b), x = tuple(prior)[axis], grid.nodes[axis].ravel()
        level, expected = grid.log_marginal(axis), a * np.log(x) + b * np.log1p(-x)
        np.testing.assert_allclose(level - level[0], expected - expected[0], atol=1e-10)


# --- the peak --------------------------------------------------------------------------------------------


@each_prior
@each_table
def test_the_centre_is_near_the_mode_of_the_logits(counts: CountTable, prior: Prior) -> None:
    """A Newton step of a fraction of a spread is left at the most."""
    density, spread = find_peak(counts, prior)
    objective = lifted_objective(counts, prior)
    state = objective.at(density.centre)
    moves = np.random.default_rng(0).normal(size=(200, 3))
    around = np.minimum(expit(logit(density.centre) + 0.3 * spread * moves), np.array(END))
    assert max(float(objective.at(point).objective) for point in around) < float(state.objective) + 0.05


def test_other_modes_are_within_reach_of_the_peak() -> None:
    for factor in (10, 1000):
        counts = CountTable(TWO_HILLS.n, TWO_HILLS.s, TWO_HILLS.weight * factor)
        density, spread = find_peak(counts, Prior())
        mirrored = np.array([1 - density.centre[0], density.centre[2], density.centre[1]])
        assert np.all(np.abs(logit(mirrored) - logit(density.centre)) < 8.5 * spread)


# --- the box ---------------------------------------------------------------------------------------------


def test_ends_close_to_the_ends_of_the_domain_are_moved_there() -> None:
    low, high = snapped(np.array([0.001, 0.02, 0.2]), np.array([0.999, 0.3, 0.49]), np.array(END))
    assert low.tolist() == [0, 0.02, 0.2]
    assert high.tolist() == [1, 0.3, 0.5]


@each_prior
@each_table
@pytest.mark.parametrize("factor", [0.02, 1, 30])
def test_the_box_is_found_from_any_start(counts: CountTable, prior: Prior, factor: float) -> None:
    """From a start far too narrow it widens, from one far too wide it trims; what it holds is the same."""
    density, spread = find_peak(counts, prior)
    grid, _ = integrate_box(density, factor * spread, 1e-9)
    exact = ExactPosterior(counts, prior)
    assert np.abs((grid.mean - exact.means) / exact.sds).max() < 1e-9
    assert np.abs(grid.sd / exact.sds - 1).max() < 1e-9
    assert grid.log_evidence == pytest.approx(exact.log_evidence, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("factor", [0.02, 30])
def test_the_box_of_a_million_is_found_from_any_start(factor: float) -> None:
    density, spread = find_peak(LARGE, Prior())
    grid, _ = integrate_box(density, spread, 1e-9)
    other, _ = integrate_box(density, factor * spread, 1e-9)
    assert other.distance(grid) < 1e-9


@pytest.mark.parametrize("counts", [SMALL, LABELLED, LARGE], ids=["small", "labelled", "large"])
def test_the_box_ends_where_the_density_does(counts: CountTable) -> None:
    """Outside an end that is not the domain's lies no mass worth mentioning, and not much room is wasted."""
    density, spread = find_peak(counts, Prior())
    grid = find_box(density, spread)
    grid = grid.resized(2)
    for axis in AXES:
        inside, level = grid.box[axis], grid.log_marginal(axis)
        level = level - level.max()
        if inside.lower > 0:
            assert level[0] < -0.8 * CUT
        if inside.upper < END[axis]:
            assert level[-1] < -0.8 * CUT
        assert np.mean(level > -1.5 * CUT) > 0.3


def test_singular_ends_belong_to_the_box() -> None:
    """Where the density of a rate rises to infinity at 0, its height there says nothing about the mass."""
    prior = Prior((0.26, 30.6), (5, 2), (0.146, 652))
    counts = CountTable([11], [0], [2])
    grid, _ = integrate_box(*find_peak(counts, prior), 1e-8)
    exact = ExactPosterior(counts, prior, digits=30)
    np.testing.assert_allclose(grid.sd, np.array(exact.sds, dtype=float), rtol=1e-10)


def test_a_ridge_fits_no_box() -> None:
    with pytest.raises(UnresolvedError):
        integrate_box(*find_peak(RIDGE, Prior()), 1e-8)


@each_prior
def test_the_marginal_is_the_closed_forms(prior: Prior) -> None:
    grid, _ = integrate_box(*find_peak(SMALL, prior), 1e-8)
    exact = ExactPosterior(SMALL, prior)
    for axis, name in enumerate(("prevalence", "false_positive", "false_negative")):
        marginal = grid.marginal(axis)
        for probability in (0.001, 0.05, 0.5, 0.95, 0.999):
            x = float(exact.quantile(name, probability))
            assert abs(marginal.quantile(probability) - x) < 1e-9 * float(exact.sds[axis])
            if x > 1 - 1e-6:  # a hair's breadth from the singular end, where x itself is rounded
                continue
            assert marginal.cumulative(x) == pytest.approx(probability, abs=1e-10)
            assert marginal.density(x) == pytest.approx(float(exact.density(name, x)), rel=1e-7)
