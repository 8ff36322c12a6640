"""The log density against mpmath: near its centre and far from it, for few and for a billion individuals."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import betaln

from binreps import CountTable, Prior, Rates
from binreps.fits.exact.density import AXES, END, Density
from by_hand import expected_counts

DIGITS = 60


def exact_log_likelihood(counts: CountTable, point: np.ndarray) -> mpmath.mpf:
    """log L with many digits, as the model is written."""
    theta, p, q = (mpmath.mpf(float(x)) for x in point)
    total = mpmath.mpf(0)
    columns = (counts.n, counts.s, counts.weight, counts.known)
    for n, s, weight, known in zip(*(column.tolist() for column in columns), strict=True):
        positive = theta * (1 - q) ** s * q ** (n - s) * (known != 0)
        negative = (1 - theta) * p**s * (1 - p) ** (n - s) * (known != 1)
        total += weight * mpmath.log(positive + negative)
    return total


def log_ratio(density: Density, points: np.ndarray) -> np.ndarray:
    """log L(point) − log L(centre) at points (3, count)."""
    return density.log_ratio(*points)


def errors(counts: CountTable, centre: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far the log ratio is off, relative to 1 + its size."""
    got = log_ratio(Density(counts, Prior(), centre), points)
    with mpmath.workdps(DIGITS):
        base = exact_log_likelihood(counts, centre)
        exact = [exact_log_likelihood(counts, point) - base for point in points.T]
        return np.array([abs(float(a - b)) / (1 + abs(float(b))) for a, b in zip(got, exact, strict=True)])


def random_table(rng: np.random.Generator, individuals: float, replicates: int) -> CountTable:
    """A few cells of any kind: n = 0 and known statuses included."""
    cells = int(rng.integers(1, 8))
    n = rng.integers(0, replicates + 1, cells)
    weight = np.ceil(individuals * rng.random(cells))
    known = [int(rng.integers(2)) if rng.random() < 0.3 else None for _ in range(cells)]
    return CountTable(n, rng.integers(0, n + 1), weight, known)


def random_points(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.uniform(0.001, [[0.999], [0.5], [0.5]], (3, count))


# 30,000 individuals is where the computation changes from shares to differences.
@pytest.mark.parametrize("individuals", [1, 100, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("replicates", [2, 6, 100, 10**4])
def test_any_point_of_any_table(individuals: float, replicates: int) -> None:
    rng = np.random.default_rng([int(individuals), replicates])
    for _ in range(10):
        counts = random_table(rng, individuals, replicates)
        centre, *points = random_points(rng, 9).T
        assert errors(counts, centre, np.transpose(points)).max() < 1e-12


@pytest.mark.parametrize("individuals", [100, 1e9])
@pytest.mark.parametrize("replicates", [6, 10**4])
def test_points_at_the_ends_of_the_domain(individuals: float, replicates: int) -> None:
    rng = np.random.default_rng([1, int(individuals), replicates])
    tiny = [1e-30, 1e-9, 0.5]
    points = np.stack(np.meshgrid([1e-30, 1e-9, 1 - 1e-12], tiny, tiny)).reshape(3, -1)
    for _ in range(5):
        counts = random_table(rng, individuals, replicates)
        centre = random_points(rng, 1)[:, 0]
        assert errors(counts, centre, points).max() < 1e-12


@pytest.mark.parametrize("individuals", [10**3, 10**4, 10**6, 10**9, 10**12])
def test_near_the_peak_no_rounding_of_the_size_of_the_data_is_left(individuals: int) -> None:
    """A sum of 10⁹ logarithms would be off by 10⁻⁶ or more; here the absolute error stays below 10⁻⁹."""
    rates = Rates(0.3, 0.1, 0.2)
    counts = expected_counts(rates, individuals, 4) + expected_counts(rates, individuals, 5)
    centre = np.array(list(rates))
    rng = np.random.default_rng(individuals)
    spread = np.array([0.6, 0.3, 0.5])[:, None] / np.sqrt(2 * individuals)
    points = centre[:, None] + spread * rng.normal(size=(3, 20))
    got = log_ratio(Density(counts, Prior(), centre), points)
    with mpmath.workdps(DIGITS):
        base = exact_log_likelihood(counts, centre)
        exact = np.array([float(exact_log_likelihood(counts, point) - base) for point in points.T])
    assert -40 < exact.min() < -0.5
    assert np.abs(got - exact).max() < (1e-9 if individuals < 10**12 else 1e-7)


def test_the_centre_itself_has_ratio_nought() -> None:
    for individuals in (50, 10**9):
        density = Density(CountTable([3, 5], [1, 4], [individuals] * 2), Prior(), np.array([0.4, 0.1, 0.2]))
        assert log_ratio(density, np.array([[0.4], [0.1], [0.2]])) == pytest.approx([0], abs=1e-9)


def test_it_broadcasts() -> None:
    counts = CountTable([3, 5, 4], [1, 4, 0], [4, 2, 9])
    density = Density(counts, Prior(), np.array([0.4, 0.1, 0.2]))
    theta, p, q = np.array([0.1, 0.7]), np.array([0.05, 0.2, 0.4]), np.array([0.11, 0.3])
    together = density.log_ratio(theta[:, None, None], p[None, :, None], q[None, None, :])
    assert together.shape == (2, 3, 2)
    grid = np.stack(np.meshgrid(theta, p, q, indexing="ij")).reshape(3, -1)
    np.testing.assert_allclose(together.ravel(), log_ratio(density, grid), rtol=1e-13)


def test_the_likelihood_at_the_centre() -> None:
    rng = np.random.default_rng(5)
    for individuals in (10, 1e9):
        counts, centre = random_table(rng, individuals, 50), random_points(rng, 1)[:, 0]
        with mpmath.workdps(DIGITS):
            exact = float(exact_log_likelihood(counts, centre))
        if not np.any((counts.n == 0) & (counts.known < 0)):  # their factor is 1, up to rounding
            assert Density(counts, Prior(), centre).log_likelihood == pytest.approx(exact, rel=1e-14)


def test_cells_without_replicates_count_only_if_their_status_is_known() -> None:
    centre, points = np.array([0.4, 0.1, 0.2]), np.array([[0.7], [0.3], [0.05]])
    plain = CountTable([3, 5], [1, 4])
    silent = plain + CountTable([0], [0], [10**6])
    assert log_ratio(Density(silent, Prior(), centre), points) == log_ratio(
        Density(plain, Prior(), centre), points
    )
    known = plain + CountTable([0, 0], [0, 0], [3, 2], known=[1, 0])
    gain = log_ratio(Density(known, Prior(), centre), points) - log_ratio(
        Density(plain, Prior(), centre), points
    )
    assert gain == pytest.approx(3 * np.log(0.7 / 0.4) + 2 * np.log(0.3 / 0.6), rel=1e-13)


# --- the prior -----------------------------------------------------------------------------------------

PRIORS = [
    Prior(),
    Prior((0.1, 1), (0.1, 1), (0.1, 5)),
    Prior((3.25, 40), (4.5, 9), (1, 12)),
    Prior((900, 0.3), (1e6, 1e6), (50, 3)),
]
each_prior = pytest.mark.parametrize("prior", PRIORS)


@each_prior
def test_the_constant_is_that_of_the_truncated_priors(prior: Prior) -> None:
    """∫ x^(a−1) (1−x)^(b−1) over (0, 1) for the prevalence and over (0, ½) for the error rates."""
    with mpmath.workdps(30):
        total = mpmath.log(mpmath.beta(*prior.prevalence))
        for a, b in (prior.false_positive, prior.false_negative):
            if a == b:  # half of the whole
                total += 2 * mpmath.loggamma(a) - mpmath.loggamma(2 * a) - mpmath.log(2)
            else:
                total += mpmath.log(mpmath.betainc(a, b, 0, mpmath.mpf(1) / 2))
    density = Density(CountTable([], []), prior, np.array([0.5, 0.2, 0.2]))
    assert density.log_constant == pytest.approx(-float(total), rel=1e-13)


@each_prior
@pytest.mark.parametrize("lower", [0.0, 0.03])
@pytest.mark.parametrize("reaches_end", [True, False])
def test_weight_and_rest_together_are_the_prior(prior: Prior, lower: float, reaches_end: bool) -> None:
    density = Density(CountTable([], []), prior, np.array([0.5, 0.2, 0.2]))
    for axis in AXES:
        a, b = tuple(prior)[axis]
        upper = END[axis] if reaches_end else 0.4
        inside = density.interval(axis, lower, upper)
        assert (inside.lower, inside.upper) == (lower, upper)
        assert min(inside.a, inside.b) > -1
        x = np.array([0.05, 0.2, 0.39])
        rest = density.log_prior_rest(axis, x, inside)
        carried = inside.a * np.log(x - lower) + inside.b * np.log(upper - x)
        np.testing.assert_allclose(rest + carried, (a - 1) * np.log(x) + (b - 1) * np.log1p(-x), rtol=1e-12)


@each_prior
def test_a_rule_on_the_whole_domain_integrates_the_prior(prior: Prior) -> None:
    """Whatever stays out of the weight is smooth enough for a rule, singular powers included."""
    density = Density(CountTable([], []), prior, np.array([0.5, 0.2, 0.2]))
    (a, b), inside = prior.prevalence, density.interval(0, 0.0, 1.0)
    x = inside.nodes(400)
    total = np.exp(inside.log_weights(400) + density.log_prior_rest(0, x, inside) - betaln(a, b)).sum()
    assert total == pytest.approx(1, rel=1e-11)
