"""Where the error rates may lie, against sums, quadrature and the mirror image."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import betainc, betaln

from binreps import Prior
from binreps.errors import OptionError
from binreps.region import BETTER_THAN_CHANCE, HALF

SHAPES = [(2.0, 2.0), (1.0, 9.0), (9.0, 1.0), (0.5, 0.5), (50.0, 50.0), (2.0, 20.0), (1.0, 1.0), (300.0, 2.0)]


@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", SHAPES)
def test_the_mass_below_the_diagonal_is_that_of_high_precision(first, second):
    found = BETTER_THAN_CHANCE.log_mass(first, second) - betaln(*first) - betaln(*second)
    assert found == pytest.approx(float(log_share(first, second)), rel=1e-9, abs=1e-13)


def log_share(first, second):
    """log P(p + q < 1): where p + q > 1 is the smaller part, one minus that."""
    (a, b), (c, d) = first, second
    mirrored = a / (a + b) + c / (c + d) < 1
    if mirrored:  # 1 − p and 1 − q in place of p and q
        (a, b), (c, d) = (b, a), (d, c)
    with mpmath.workdps(25):

        def density(p):
            return p ** (a - 1) * (1 - p) ** (b - 1) * mpmath.betainc(c, d, 0, 1 - p)

        share = mpmath.quad(density, mpmath.linspace(0, 1, 31)) / mpmath.beta(a, b) / mpmath.beta(c, d)
        return mpmath.log1p(-share) if mirrored else mpmath.log(share)


def test_equal_priors_that_lean_to_zero_are_hardly_cut():
    whole = 2 * betaln(1, 9)
    assert np.exp(BETTER_THAN_CHANCE.log_mass((1, 9), (1, 9)) - whole) == pytest.approx(
        1 - 9 * np.exp(betaln(10, 9)), rel=1e-12
    )  # ∫ 9 (1−p)^8 p^9 dp lies beyond
    assert np.exp(BETTER_THAN_CHANCE.log_mass((1, 9), (9, 1)) - whole) == pytest.approx(0.5, rel=1e-12)


def test_half_is_the_product_of_two_cut_betas():
    found = HALF.log_mass((2, 5), (3, 4))
    expected = sum(betaln(a, b) + np.log(betainc(a, b, 0.5)) for a, b in ((2, 5), (3, 4)))
    assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("region", [HALF, BETTER_THAN_CHANCE])
def test_the_unit_square_goes_to_the_region_and_back(region):
    a, b = np.random.default_rng(1).random((2, 500))
    p, q = region.errors(a, b)
    assert region.holds(p, q).all()
    np.testing.assert_allclose(region.square(p, q), (a, b), rtol=1e-12)
    step = 1e-6
    across = [(region.errors(a + step, b)[i] - region.errors(a - step, b)[i]) / (2 * step) for i in (0, 1)]
    along = [(region.errors(a, b + step)[i] - region.errors(a, b - step)[i]) / (2 * step) for i in (0, 1)]
    area = np.abs(across[0] * along[1] - across[1] * along[0])
    np.testing.assert_allclose(np.exp(region.log_area(a, b)), area, rtol=1e-6)


def test_a_switch_is_true_or_false():
    with pytest.raises(OptionError, match="better_than_chance must be True or False, got 1"):
        Prior(better_than_chance=1)
