"""What a prior says of one rate alone, against quadrature and against rejection."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from binreps import Prior
from binreps.model import NAMES
from binreps.priors import cumulative, density, draws, quantile

PRIORS = [
    Prior(),
    Prior((1, 9), (1, 20), (3, 2)),
    Prior(better_than_chance=True),
    Prior((1, 9), (2, 40), (6, 4), better_than_chance=True),
    Prior((2, 2), (0.5, 0.5), (0.3, 3), better_than_chance=True),
    Prior((2, 2), (30, 30), (40, 20), better_than_chance=True),
]


def inside(prior: Prior, p, q):
    return (p + q < 1) if prior.better_than_chance else (p < 0.5) & (q < 0.5)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", NAMES)
def test_the_density_is_the_derivative_of_the_distribution(prior: Prior, name: str) -> None:
    x = quantile(prior, name, np.linspace(0.02, 0.98, 25))
    step = 1e-5 * np.minimum(x, 1 - x)
    slope = (cumulative(prior, name, x + step) - cumulative(prior, name, x - step)) / (2 * step)
    np.testing.assert_allclose(slope, density(prior, name, x), rtol=1e-5)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", NAMES)
def test_quantiles_invert_the_distribution(prior: Prior, name: str) -> None:
    u = np.array([0.0, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0])
    np.testing.assert_allclose(cumulative(prior, name, quantile(prior, name, u)), u, atol=1e-11)


@pytest.mark.parametrize("prior", PRIORS[2:])
def test_the_distribution_is_that_of_a_double_integral(prior: Prior) -> None:
    (a, b), (c, d) = prior.false_positive, prior.false_negative

    def law(p):
        return p ** (a - 1) * (1 - p) ** (b - 1) * mpmath.betainc(c, d, 0, 1 - p)

    with mpmath.workdps(20):
        whole = mpmath.quad(law, mpmath.linspace(0, 1, 11))
        for x in (0.05, 0.3, 0.5, 0.8):
            expected = mpmath.quad(law, mpmath.linspace(0, x, 9)) / whole
            assert cumulative(prior, "false_positive", x) == pytest.approx(
                float(expected), rel=1e-7, abs=1e-12
            )


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_are_those_that_rejection_leaves(prior: Prior) -> None:
    rng = np.random.default_rng(1)
    many = np.stack([rng.beta(a, b, 400_000) for a, b in prior])
    kept = many[:, inside(prior, many[1], many[2])]
    found = draws(prior, 20_000, np.random.default_rng(2))
    assert inside(prior, found[1], found[2]).mean() > 1 - 1e-9
    error = 4 * kept.std(axis=1) * np.sqrt(1 / kept.shape[1] + 1 / found.shape[1])
    assert np.all(np.abs(found.mean(axis=1) - kept.mean(axis=1)) < error)
    np.testing.assert_allclose(np.corrcoef(found), np.corrcoef(kept), atol=0.04)
    for i, name in enumerate(NAMES):
        place = cumulative(prior, name, kept[i, :50_000])
        shares = np.bincount((place * 10).astype(int).clip(0, 9), minlength=10) / place.size
        np.testing.assert_allclose(shares, 0.1, atol=5 * np.sqrt(0.09 / place.size))


def test_outside_there_is_nothing() -> None:
    assert density(Prior(), "false_negative", [-0.1, 0.6]).tolist() == [0, 0]
    assert density(PRIORS[3], "false_negative", [-0.1, 1.1]).tolist() == [0, 0]
    assert cumulative(PRIORS[3], "false_negative", [0.0, 1.0]) == pytest.approx([0, 1], abs=1e-12)
