"""Rules, polynomials and series against SciPy, mpmath and closed forms."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from scipy.special import betainc, betaincinv, betaln, eval_jacobi

from binreps.fits.gauss import (
    Interval,
    Series,
    jacobi_polynomials,
    jacobi_rule,
    series_tail,
)
from binreps.region import log_betainc
from oracles import context, log_half_beta

POWERS = (-0.9, -0.5, 0.0, 1.0, 3.7)
each_weight = pytest.mark.parametrize(("a", "b"), list(itertools.product(POWERS, POWERS)))


def moment(a: float, b: float, k: int) -> float:
    """∫ u^(a+k) (1−u)^b du."""
    return float(mpmath.beta(mpmath.mpf(a) + 1 + k, mpmath.mpf(b) + 1))


# --- rules ---------------------------------------------------------------------------------------------


@each_weight
@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_a_rule_integrates_every_power_it_must(size: int, a: float, b: float) -> None:
    rule = jacobi_rule(size, a, b)
    for k in {0, 1, 2, 3, size, 2 * size - 1} & set(range(2 * size)):
        assert rule.weights @ rule.nodes**k == pytest.approx(moment(a, b, k), rel=1e-14)
        assert rule.weights @ (1 - rule.nodes) ** k == pytest.approx(moment(b, a, k), rel=1e-14)


@each_weight
def test_a_rule_misses_the_first_power_it_may_miss(a: float, b: float) -> None:
    rule = jacobi_rule(3, a, b)
    assert abs(rule.weights @ rule.nodes**6 / moment(a, b, 6) - 1) > 1e-6


@each_weight
def test_nodes_increase_inside_and_weights_are_positive(a: float, b: float) -> None:
    rule = jacobi_rule(30, a, b)
    assert np.all(np.diff(np.concatenate([[0], rule.nodes, [1]])) > 0)
    assert np.all(rule.weights > 0)


@pytest.mark.parametrize("a", [-0.99, -0.9, 0.3])
def test_many_nodes_beside_a_singular_end_keep_their_digits(a: float) -> None:
    """SciPy's own rule is off by 1e-9 here."""
    rule = jacobi_rule(200, a, 0.0)
    for k in (0, 1, 10, 100, 399):
        assert rule.weights @ rule.nodes**k == pytest.approx(1 / (a + 1 + k), rel=1e-13)


def test_nodes_are_exact_relative_to_their_distance_from_zero() -> None:
    size, a, b = 24, -0.9, 1.5
    with mpmath.workdps(40):
        for node in jacobi_rule(size, a, b).nodes[:6]:
            root = mpmath.findroot(lambda u: mpmath.jacobi(size, b, a, 2 * u - 1), mpmath.mpf(node))
            assert abs(node / root - 1) < 4e-15


def test_an_interval_scales_its_rule() -> None:
    inside = Interval(0.2, 0.7, -0.5, 1.0)
    x, weights = inside.nodes(12), np.exp(inside.log_weights(12))
    assert np.all((x > 0.2) & (x < 0.7))
    for k in (0, 5, 20):  # substituted: x = 0.2 + 0.5 u
        assert weights @ (x - 0.2) ** k == pytest.approx(0.5 ** (k + 1.5) * moment(-0.5, 1.0, k), rel=1e-13)


def test_an_interval_of_arrays_is_as_many_intervals() -> None:
    lower, upper = np.array([0.0, 0.1, 0.3]), np.array([0.5, 0.2, 1.0])
    many = Interval(lower, upper, 0.5, 0.0)
    for i in range(3):
        one = Interval(float(lower[i]), float(upper[i]), 0.5, 0.0)
        np.testing.assert_allclose(many.nodes(7)[i], one.nodes(7), rtol=1e-15)
        assert many.unit(0.15)[i] == one.unit(0.15)


# --- polynomials ---------------------------------------------------------------------------------------


@each_weight
def test_polynomials_are_jacobis(a: float, b: float) -> None:
    u = np.linspace(0, 1, 41)
    values = jacobi_polynomials(25, a, b, u)
    assert values.shape == (25, 41)
    for k in range(25):
        expected = eval_jacobi(k, b, a, 2 * u - 1)
        np.testing.assert_allclose(values[k], expected, atol=2e-13 * np.abs(expected).max())


@each_weight
def test_polynomials_are_orthogonal(a: float, b: float) -> None:
    rule = jacobi_rule(15, a, b)
    values = jacobi_polynomials(15, a, b, rule.nodes)
    gram = values * rule.weights @ values.T
    norms = [
        mpmath.gammaprod([k + a + 1, k + b + 1], [k + 1, k + a + b + 1]) / (2 * k + a + b + 1)
        for k in range(1, 15)
    ]
    norms = np.array([moment(a, b, 0), *map(float, norms)])
    np.testing.assert_allclose(np.diag(gram), norms, rtol=1e-12)
    scale = np.sqrt(np.outer(norms, norms))
    np.testing.assert_allclose(gram / scale, np.eye(15), atol=1e-12)


@pytest.mark.parametrize("size", [1, 2])
def test_short_rows_of_polynomials(size: int) -> None:
    values = jacobi_polynomials(size, 0.5, -0.5, np.array([0.25]))
    np.testing.assert_allclose(values[:, 0], [1, -1][:size])  # P_1 = −½ + x at x = −½


# --- series --------------------------------------------------------------------------------------------

SHAPES = [(0.1, 0.1), (0.1, 5.0), (0.5, 0.5), (0.5, 7.3), (2.0, 2.0), (1.0, 0.1), (13.4, 4.2)]
each_shape = pytest.mark.parametrize("shapes", SHAPES)


def beta_series(shapes: tuple[float, float], inside: Interval, size: int) -> Series:
    """A Beta density stretched over an interval: whole powers that its ends do not carry are in g."""
    (alpha, beta), rule = shapes, jacobi_rule(size, inside.a, inside.b)
    extra = rule.nodes ** (alpha - 1 - inside.a) * (1 - rule.nodes) ** (beta - 1 - inside.b)
    return Series(inside, rule.weights * extra / np.exp(betaln(alpha, beta)))


@each_shape
@pytest.mark.parametrize("whole", [0, 3])
def test_a_series_is_the_beta_distribution(shapes: tuple[float, float], whole: int) -> None:
    """With the powers of its ends all in the weight, or three of each in the polynomial."""
    alpha, beta = shapes[0] + whole, shapes[1] + whole
    lower, upper = 0.2, 0.7
    inside = Interval(lower, upper, shapes[0] - 1, shapes[1] - 1)
    series = beta_series((alpha, beta), inside, 20)
    u = np.array([1e-6, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-6])
    x = lower + (upper - lower) * u
    u = (x - lower) / (upper - lower)  # as rounded
    exact = u ** (alpha - 1) * (1 - u) ** (beta - 1) / np.exp(betaln(alpha, beta)) / (upper - lower)
    np.testing.assert_allclose(series.density(x), exact, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(series.cumulative(x), betainc(alpha, beta, u), atol=2e-14)
    probability = np.array([1e-6, 0.02, 0.3, 0.5, 0.9, 0.999])
    expected = lower + (upper - lower) * betaincinv(alpha, beta, probability)
    np.testing.assert_allclose(series.quantile(probability), expected, atol=1e-13)
    assert series.total == pytest.approx(1, rel=1e-14)


def test_a_series_ends_where_its_interval_ends() -> None:
    series = beta_series((0.5, 2.0), Interval(0.1, 0.4, -0.5, 1.0), 9)
    np.testing.assert_allclose(series.cumulative(np.array([0.0, 0.1, 0.4, 0.9])), [0, 0, 1, 1], atol=1e-15)
    assert series.density(0.1) == np.inf
    assert series.density(0.4) == 0
    assert series.quantile(0.0) == pytest.approx(0.1, abs=1e-13)
    assert series.quantile(1.0) == pytest.approx(0.4, abs=1e-7)  # where the density is 0, rounding moves it


def test_rows_of_a_series_are_as_many_densities() -> None:
    inside = Interval(0.0, 0.5, -0.5, -0.9)
    rows = [(0.5 + i, 0.1 + j) for i, j in ((0, 0), (0, 4), (3, 1), (6, 0))]
    alone = [beta_series(row, inside, 16) for row in rows]
    together = Series(inside, np.stack([one.masses for one in alone]))
    x = np.array([0.02, 0.1, 0.3, 0.49])
    wanted = [float(betainc(*row, 2 * at)) for row, at in zip(rows, x, strict=True)]
    np.testing.assert_allclose(together.cumulative(x), wanted, atol=2e-14)
    np.testing.assert_allclose(
        together.density(x), [one.density(at) for one, at in zip(alone, x, strict=True)], rtol=1e-12
    )
    probability = np.array([0.1, 0.5, 0.9, 0.31])
    wanted = [0.5 * float(betaincinv(*row, mass)) for row, mass in zip(rows, probability, strict=True)]
    np.testing.assert_allclose(together.quantile(probability), wanted, atol=1e-13)


def test_rows_may_each_have_their_own_ends() -> None:
    lower, upper = np.array([0.0, 0.2, 0.45]), np.array([0.1, 0.9, 0.5])
    shapes = [(0.5, 1.0), (2.5, 3.0), (1.5, 1.0)]
    masses = np.stack([beta_series(row, Interval(0.0, 1.0, -0.5, 0.0), 12).masses for row in shapes])
    series = Series(Interval(lower, upper, -0.5, 0.0), masses)
    probability = np.array([0.2, 0.7, 0.5])
    unit = np.array([betaincinv(*row, mass) for row, mass in zip(shapes, probability, strict=True)])
    x = lower + (upper - lower) * unit
    np.testing.assert_allclose(series.quantile(probability), x, atol=1e-13)
    np.testing.assert_allclose(series.cumulative(x), probability, atol=1e-13)


def test_a_quantile_between_two_far_peaks_is_found() -> None:
    """Newton alone would leave the interval from the flat middle."""
    inside = Interval(0.0, 1.0)
    x = inside.nodes(120)
    peaks = np.exp(-0.5 * ((x - 0.2) / 0.03) ** 2) + np.exp(-0.5 * ((x - 0.8) / 0.03) ** 2)
    masses = np.exp(inside.log_weights(120)) * peaks
    series = Series(inside, masses / masses.sum())
    assert series.quantile(np.array([0.25, 0.75])) == pytest.approx([0.2, 0.8], abs=1e-9)
    middle = float(series.quantile(np.array(0.5 - 1e-6)))
    assert 0.2 < middle < 0.5
    assert series.cumulative(middle) == pytest.approx(0.5 - 1e-6, abs=1e-13)


# --- how far a series is from having died out ------------------------------------------------------------


@each_weight
def test_the_tail_of_a_short_polynomial_is_nothing(a: float, b: float) -> None:
    inside = Interval(0.0, 1.0, a, b)
    rule = jacobi_rule(12, a, b)
    polynomial = 1 + rule.nodes**8
    tail = series_tail(inside, (rule.weights * polynomial)[None])
    assert tail[0] < 1e-13 * (rule.weights @ polynomial)


@pytest.mark.parametrize("degree", [9, 10, 11])
def test_the_tail_is_the_size_of_the_last_terms(degree: int) -> None:
    a, b = -0.5, 1.0
    rule = jacobi_rule(12, a, b)
    term = jacobi_polynomials(12, a, b, rule.nodes)[degree]
    size = np.sqrt(rule.weights @ term**2 * rule.weights.sum())
    rows = np.stack([rule.weights * (1 + 0.001 * term), rule.weights * (1 + 0.1 * term)])
    np.testing.assert_allclose(
        series_tail(Interval(0.0, 1.0, a, b), rows), [0.001 * size, 0.1 * size], rtol=1e-9
    )


def test_the_tail_shrinks_with_every_node() -> None:
    tails = []
    for size in (6, 10, 14, 18):
        rule = jacobi_rule(size, 0.0, 0.0)
        tails.append(series_tail(Interval(0.0, 1.0), (rule.weights * np.exp(3 * rule.nodes))[None])[0])
    assert all(after < 1e-3 * before for before, after in itertools.pairwise(tails[:3]))
    assert tails[-1] < 1e-12


# --- the constant of a truncated Beta ----------------------------------------------------------------------


def log_beta_half(a: float, b: float) -> float:
    """log ∫_0^½ x^(a−1) (1−x)^(b−1) dx."""
    return float(betaln(a, b) + log_betainc(a, b, np.array(0.5)))


@pytest.mark.parametrize(
    ("a", "b"),
    [(0.1, 1.0), (0.5, 0.5), (2.0, 2.0), (50.0, 50.0), (3.7, 0.2), (700.0, 0.3), (20.5, 4000.0), (4e3, 20.5)],
)
def test_log_beta_half_agrees_with_mpmath(a: float, b: float) -> None:
    with mpmath.workdps(30):
        exact = float(log_half_beta(context(30), mpmath.mpf(a), mpmath.mpf(b)))
    assert log_beta_half(a, b) == pytest.approx(exact, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("a", [1e4, 1e6, 1e8])
def test_log_beta_half_of_extreme_shapes_has_a_closed_form(a: float) -> None:
    assert log_beta_half(a, 1.0) == pytest.approx(-a * np.log(2) - np.log(a), rel=1e-14)
    assert log_beta_half(1.0, a) == pytest.approx(-np.log(a), rel=1e-12)
    with mpmath.workdps(30):
        half = float(2 * mpmath.loggamma(a) - mpmath.loggamma(2 * a) - mpmath.log(2))
    assert log_beta_half(a, a) == pytest.approx(half, rel=1e-14)
    # ∫_0^½ x^(a−1) (1−x) dx = ½^a/a − ½^(a+1)/(a+1)
    two = -a * np.log(2) + np.log(1 / a - 0.5 / (a + 1))
    assert log_beta_half(a, 2.0) == pytest.approx(two, rel=1e-14)
