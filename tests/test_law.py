"""The laws of scores by their series, against sums of conditional laws, draws and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from binreps import CountTable, Prior
from binreps.fits.bayes import fit_bayes
from binreps.fits.exact.chances import score_quantile
from binreps.fits.exact.gauss import Interval
from binreps.fits.exact.law import Law
from binreps.fits.exact.lines import ThetaLines, lines_that_matter
from binreps.model import score_at
from small_tables import SMALL

pytestmark = pytest.mark.slow

CELLS = np.array([(n, s) for n in (1, 3, 6) for s in range(n + 1)]).T
SOME = np.array([(6, 0), (6, 3)]).T


def simulated(size: int, theta: float = 0.3, seed: int = 1) -> CountTable:
    rng = np.random.default_rng(seed)
    n, status = rng.integers(2, 7, size), rng.random(size) < theta
    return CountTable(n, rng.binomial(n, np.where(status, 0.95, 0.1)))


TABLES = {
    "nobody": CountTable([], []),
    "small": SMALL,
    "50": simulated(50),
    "1000": simulated(1000),
    "rare": simulated(10**4, 0.01),
    "million": simulated(10**6),
    "all negative": CountTable([3], [0], [40]),
}
each_table = pytest.mark.parametrize("counts", TABLES.values(), ids=TABLES.keys())


@each_table
@pytest.mark.parametrize("new", [False, True])
def test_both_ways_to_a_quantile_agree(counts: CountTable, new: bool) -> None:
    """The series, and the sum of conditional distribution functions of θ on very many lines."""
    fit = fit_bayes(counts)
    intervals = fit.predict_interval(*SOME) if new else fit.score_interval(*SOME)
    lines = fit.posterior.theta_lines(4.0, 30)
    for i, (n, s) in enumerate(SOME.T.tolist()):
        wanted = [score_quantile(lines, n, s, tail, new=new) for tail in (0.05, 0.95)]
        assert [ends[i] for ends in intervals] == pytest.approx(wanted, abs=2e-6)


@each_table
def test_intervals_are_quantiles_of_draws(counts: CountTable) -> None:
    """Within four standard errors of the share of draws below."""
    fit, size = fit_bayes(counts), 8_000
    theta, p, q = (np.asarray(rate)[:, None] for rate in fit.draws(size, 1))
    draws = score_at(*CELLS, theta, p, q)
    for level in (0.5, 0.9):
        lower, upper = fit.score_interval(*CELLS, level=level)
        tail = (1 - level) / 2
        for end, share in ((lower, tail), (upper, 1 - tail)):
            allowed = 4 * np.sqrt(tail * (1 - tail) / size)
            assert np.all(np.abs(np.mean(draws <= end, axis=0) - share) < allowed)


def test_intervals_of_new_individuals_are_quantiles_of_weighted_draws() -> None:
    fit, size = fit_bayes(SMALL), 20_000
    theta, p, q = (np.asarray(rate)[:, None] for rate in fit.draws(size, 2))
    n, s = CELLS
    weight = theta * (1 - q) ** s * q ** (n - s) + (1 - theta) * p**s * (1 - p) ** (n - s)
    weight /= weight.sum(axis=0)
    draws = score_at(n, s, theta, p, q)
    for end, share in zip(fit.predict_interval(n, s), (0.05, 0.95), strict=True):
        error = np.sqrt(np.sum((weight * ((draws <= end) - share)) ** 2, axis=0))
        assert np.all(np.abs(np.sum(weight * (draws <= end), axis=0) - share) < 4 * error)


@each_table
def test_a_cell_does_not_depend_on_the_others_asked_with_it(counts: CountTable) -> None:
    together, alone = fit_bayes(counts), fit_bayes(counts)
    for name in ("score_interval", "predict_interval"):
        table = getattr(together, name)(*CELLS)
        for i in (0, 4, 9):
            one = getattr(alone, name)(int(CELLS[0, i]), int(CELLS[1, i]))
            assert one == pytest.approx((table[0][i], table[1][i]), rel=1e-12)


def test_levels_and_kinds_are_remembered_apart() -> None:
    fit, fresh = fit_bayes(SMALL), fit_bayes(SMALL)
    asked = [(kind, level) for level in (0.9, 0.5) for kind in ("score_interval", "predict_interval")]
    first = [getattr(fit, kind)(6, 2, level=level) for kind, level in asked]
    assert len(set(first)) == 4
    assert [getattr(fit, kind)(6, 2, level=level) for kind, level in asked] == first
    assert [getattr(fresh, kind)(6, 2, level=level) for kind, level in reversed(asked)] == first[::-1]


def gaussian_lines(size: int, middle: float, spread: float) -> ThetaLines:
    """logit θ about normal, the same on each of a few lines of given p and q."""
    inside = Interval(expit(middle - 8 * spread), expit(middle + 8 * spread))
    theta = inside.nodes(size)
    log_mass = inside.log_weights(size) + norm.logpdf(logit(theta), middle, spread)
    masses = np.exp(log_mass - np.log(theta * (1 - theta))) / 2
    rows = np.stack([masses, masses])
    return ThetaLines(
        inside, np.broadcast_to(theta, rows.shape), rows, np.array([0.1, 0.2]), np.array([0.2, 0.1])
    )


def test_a_normal_logit_has_normal_quantiles() -> None:
    """With n = 0 the score is θ; with n = 2, s = 1 it is shifted by ±log(16/9): two normal laws mixed."""
    law, tails = Law([gaussian_lines(60, -0.4, 0.3)]), np.array([0.05, 0.5, 0.975])
    found = law.quantiles([0, 2], [0, 1], tails, new=False)
    assert logit(found.value[0]) == pytest.approx(-0.4 + 0.3 * norm.ppf(tails), abs=1e-6)
    z = logit(found.value[1]) + 0.4
    shift = np.log(16 / 9)
    mixture = (norm.cdf(z, shift, 0.3) + norm.cdf(z, -shift, 0.3)) / 2
    assert mixture[[0, 2]] == pytest.approx(tails[[0, 2]], abs=1e-6)


def test_the_error_says_when_a_series_is_cut_short() -> None:
    """Two lines with a sharp θ, far from each other: more waves than are allowed."""
    sharp = gaussian_lines(60, 0.0, 1e-3)
    found = Law([sharp]).quantiles([2], [1], [0.05, 0.95], new=False)
    assert np.all(found.error > 1e-6)


def test_lines_without_mass_are_left_out() -> None:
    lines = gaussian_lines(20, 0.0, 0.3)
    masses = lines.masses * np.array([[1.0], [1e-14]])
    kept = lines_that_matter(lines.interval, lines.theta, masses, lines.p, lines.q)
    assert kept.p.tolist() == [0.1]
    assert kept.total == pytest.approx(0.5, rel=1e-9)


def test_waves_are_characteristic_functions() -> None:
    """Of a normal law exp(iωμ − ω²σ²/2); of Beta(½, ½) in logits |Γ(½ + iω)|²/π = 1 / cosh πω."""
    numbers = np.arange(4)
    positive, negative = gaussian_lines(60, -0.4, 0.3).waves(0.7, numbers)
    omega = 0.7 * numbers
    wanted = np.exp(-0.4j * omega - (0.3 * omega) ** 2 / 2) / 2
    np.testing.assert_allclose((positive + negative)[:, 0], wanted, atol=1e-10)
    pole = Interval(0.0, 1.0, -0.5, -0.5)
    masses = np.exp(pole.log_weights(12))[None]
    lines = ThetaLines(pole, pole.nodes(12)[None], masses / masses.sum(), np.array([0.1]), np.array([0.1]))
    np.testing.assert_allclose(sum(lines.waves(0.7, numbers))[:, 0], 1 / np.cosh(np.pi * omega), atol=1e-10)


def test_priors_with_sharp_poles_still_have_intervals() -> None:
    """Series do not die out there: sums of conditional laws take over."""
    fit = fit_bayes(CountTable([3, 2], [1, 2]), Prior((0.5, 0.5), (0.1, 1), (0.1, 1)))
    lower, upper = fit.score_interval([3, 6], [1, 5])
    assert np.all((lower > 0) & (lower < fit.score([3, 6], [1, 5])) & (fit.score([3, 6], [1, 5]) < upper))
