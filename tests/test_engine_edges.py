"""Adversarial tables, on which numbers were once wrong, slow or refused, each beside an oracle of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betainc, betaln, expit, gammaln, log_expit
from scipy.stats import multivariate_t, qmc

from binreps import (
    CountTable,
    Prior,
    fit_average,
    fit_bayes,
    fit_map,
    fit_median,
    fit_overdispersed,
    fit_populations,
)
from binreps.decide.predictive import predictive_counts
from binreps.fits.exact.chart import errors_at
from binreps.fits.exact.density import Density
from reference import LIGHT, Reference
from shared_data import cannot_run

pytestmark = pytest.mark.slow

Float = np.ndarray
Rated = Callable[[tuple[Float, ...]], Float]


# --- correlated replicates: importance sampling ----------------------------------------------------------


class Correlated:
    """log posterior of (θ, p, q, ρ) in logits, ρ ~ Beta(1, 9), with chances as products over replicates."""

    def __init__(self, counts: CountTable, prior: Prior | None = None) -> None:
        self.counts, self.prior = counts, prior or Prior()

    def rates(self, z: Float) -> Float:
        """θ, p, q, ρ at logits (4, …)."""
        unit = expit(z)
        return unit * np.array([1, 0.5, 0.5, 1]).reshape(4, *[1] * (z.ndim - 1))

    def log_chances(self, n: int, s: int, rates: Any) -> tuple[Float, Float]:
        """log (1−θ) P(s | T=0) and log θ P(s | T=1), without binomial coefficients."""
        theta, p, q, rho = rates
        return tuple(
            np.log(share)
            + sum(np.log(r * (1 - rho) + i * rho) for i in range(s))
            + sum(np.log((1 - r) * (1 - rho) + i * rho) for i in range(n - s))
            - sum(np.log(1 - rho + i * rho) for i in range(n))
            for share, r in ((1 - theta, p), (theta, 1 - q))
        )

    def __call__(self, z: Float) -> Float:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self._log_density(z)
        return np.where(np.isnan(value), -np.inf, value)  # where a rate is rounded to its end

    def _log_density(self, z: Float) -> Float:
        rates = self.rates(z)
        ends = np.log([1, 0.5, 0.5, 1])
        total = np.zeros(z.shape[1:])
        shapes = [*self.prior, (1.0, 9.0)]
        for x, end, rate, (a, b), top in zip(z, ends, rates, shapes, (1, 0.5, 0.5, 1), strict=True):
            # a log r + (b−1) log(1−r) + log(1 − r/top) is density × derivative of r by its logit
            total = total + a * (log_expit(x) + end) + (b - 1) * _log_rest(x, rate, top) + log_expit(-x)
            total = total - betaln(a, b) - np.log(betainc(a, b, top))
        cells = zip(self.counts.n.tolist(), self.counts.s.tolist(), self.counts.weight.tolist(), strict=True)
        for n, s, weight in cells:
            total = total + weight * np.logaddexp(*self.log_chances(n, s, rates))
        return total


def _log_rest(x: Float, rate: Float, top: float) -> Float:
    return log_expit(-x) if top == 1 else np.log1p(-rate)


@dataclass(frozen=True)
class Sampled:
    """Weighted draws, one row of weights for each scramble."""

    rates: Float  # (4, scrambles, points)
    weight: Float  # (scrambles, points)
    log_evidences: Float

    def expect(self, values: Float) -> tuple[float, float]:
        """Mean of a function and its standard error, from the scrambles."""
        each = (values * self.weight).sum(axis=1) / self.weight.sum(axis=1)
        total = self.weight.sum(axis=1)
        return float(np.average(each, weights=total)), float(each.std(ddof=1) / np.sqrt(each.size))


def sample(target: Correlated, power: int = 16, scrambles: int = 8) -> Sampled:
    """Quasi-random draws from a mixture of t distributions, one at each mode that many starts find."""
    modes = [(mode, 1.3 * covariance, height) for mode, covariance, height in _modes(target)]
    laws = [multivariate_t(mode, covariance, df=5) for mode, covariance, _ in modes]
    heights = np.array([height + np.linalg.slogdet(cov)[1] / 2 for _, cov, height in modes])
    shares = np.maximum(np.exp(heights - heights.max()), 0.02)
    shares = shares / shares.sum()
    drawn, weights, tops = [], [], []
    for seed in range(scrambles):
        points = _t_points(laws, modes, shares, power, seed)
        log_law = np.logaddexp.reduce(
            [np.log(share) + law.logpdf(points.T) for share, law in zip(shares, laws, strict=True)]
        )
        log_weight = target(points) - log_law
        drawn.append(target.rates(points))
        weights.append(log_weight)
        tops.append(log_weight.max())
    top = max(tops)
    weight = np.exp(np.array(weights) - top)
    return Sampled(np.stack(drawn, axis=1), weight, top + np.log(weight.mean(axis=1)))


def _t_points(laws: list, modes: list, shares: Float, power: int, seed: int) -> Float:
    """Sobol points: one coordinate chooses the mode and one the scale."""
    from scipy.stats import chi2, norm

    unit = np.clip(qmc.Sobol(6, rng=np.random.default_rng(seed)).random_base2(power), 1e-12, 1 - 1e-12)
    which = np.minimum(np.searchsorted(np.cumsum(shares), unit[:, 0]), len(laws) - 1)
    scale = np.sqrt(5 / chi2.ppf(unit[:, 1], 5))
    normal = norm.ppf(unit[:, 2:]) * scale[:, None]
    roots = np.array([np.linalg.cholesky(covariance) for _, covariance, _ in modes])
    centres = np.array([mode for mode, _, _ in modes])
    return (centres[which] + np.einsum("nij,nj->ni", roots[which], normal)).T


def _modes(target: Correlated) -> list[tuple[Float, Float, float]]:
    """Distinct modes with the inverse of the curvature and the height, within 40 of the best."""
    rng = np.random.default_rng(7)
    found: list[tuple[Float, Float, float]] = []
    for start in rng.uniform([-2, -5, -5, -5], [2, 2, 2, 1], (40, 4)):
        made = minimize(lambda z: -float(target(z)), start, method="Nelder-Mead", options={"maxiter": 4000})
        made = minimize(lambda z: -float(target(z)), made.x, method="BFGS")
        covariance = _covariance(target, made.x)
        if covariance is None:
            continue
        away = [np.max(np.abs(made.x - mode) / np.sqrt(np.diag(covariance))) for mode, _, _ in found]
        if min(away, default=np.inf) > 0.5:
            found.append((made.x, covariance, -float(made.fun)))
    best = max(height for _, _, height in found)
    return [one for one in found if one[2] > best - 40]


def _covariance(target: Correlated, z: Float) -> Float | None:
    """Inverse of −Hessian by differences on its own scale; None where this is no maximum."""
    step = np.full(4, 1e-3)
    for _ in range(2):
        unit = np.diag(step)
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        points = [z + a * unit[i] + b * unit[j] for i in range(4) for j in range(4) for a, b in signs]
        values = target(np.array(points).T).reshape(4, 4, 4)
        mixed = (values[..., 0] - values[..., 1] - values[..., 2] + values[..., 3]) / 4
        curvature = -mixed / np.outer(step, step)
        if np.linalg.eigvalsh(curvature).min() <= 0:
            return None
        covariance = np.linalg.inv(curvature)
        step = 0.1 * np.sqrt(np.diag(covariance))
    return covariance


@dataclass(frozen=True)
class Product:
    """Means and sds of functions of (θ, p, q, ρ) under a product rule, and the log evidence."""

    mean: Float
    sd: Float
    log_evidence: float


def product(target: Correlated, functions: tuple[Rated, ...] = (), size: int = 56) -> Product:
    """Four Gauss rules over everything, in asin √θ and √p: for a few hundred individuals."""
    x, w = np.polynomial.legendre.leggauss(size)
    unit, weight = (x + 1) / 2, w / 2
    y, v = np.polynomial.legendre.leggauss(7 * size // 4)
    angle, turn = (y + 1) * np.pi / 4, v * np.pi / 4
    (a, b), *errors = target.prior
    of_theta = turn * 2 * np.sin(angle) ** (2 * a - 1) * np.cos(angle) ** (2 * b - 1) / np.exp(betaln(a, b))
    rates = (unit**2 / 2, unit / 2)
    of_errors = [
        jacobian * rate ** (c - 1) * (1 - rate) ** (d - 1) / np.exp(betaln(c, d)) / betainc(c, d, 0.5)
        for rate, jacobian, (c, d) in zip(rates, (weight * unit, weight / 2), errors, strict=True)
    ]
    prior = np.einsum("i,j,k->ijk", of_theta, *of_errors)
    theta, p, q = np.meshgrid(np.sin(angle) ** 2, *rates, indexing="ij", sparse=True)
    sums, top = np.zeros((2, 5 + len(functions))), -np.inf
    cells = list(zip(*(column.tolist() for column in vars_of(target.counts)), strict=True))
    for rho, of_rho in zip(unit, weight * 9 * (1 - unit) ** 8, strict=True):
        at = (theta, p, q, rho)
        logs = sum(c * np.logaddexp(*target.log_chances(n, s, at)) for n, s, c in cells)
        most = max(top, float(logs.max()))
        mass = of_rho * prior * np.exp(logs - most)
        values = [1.0, theta, p, q, rho, *(function(at) for function in functions)]
        new = [[float(np.sum(mass * value**k)) for value in values] for k in (1, 2)]
        sums, top = sums * np.exp(top - most) + np.array(new), most
    mean, square = sums[:, 1:] / sums[0, 0]
    return Product(mean, np.sqrt(square - mean**2), top + float(np.log(sums[0, 0])))


def vars_of(counts: CountTable) -> tuple[Float, Float, Float]:
    return counts.n, counts.s, counts.weight


SPLIT = {
    300: (
        [0.5320723532280619, 0.00478716445111876, 0.2917852007649653, 0.31330446867423506],
        [0.018627926468565544, 0.003888629751272422, 0.019776278420185138, 0.04376969550235117],
        -2149.657423316913,
    ),
    1000: (
        [0.5329755553983027, 0.0012927256256920299, 0.289694806144348, 0.3057470793942622],
        [0.009925998327663076, 0.0009458118374060915, 0.010415291339467714, 0.023384965402668368],
        -7125.752300143762,
    ),
    10**4: (
        [0.5332190017088619, 0.00012483788006684116, 0.28891661808409086, 0.30307665108376847],
        [0.0031126797019195842, 8.855997707003635e-05, 0.0032498942182762245, 0.007337425816392383],
        -71057.41313859685,
    ),
    10**5: (
        [0.5332408622187453, 1.2441883243513255e-05, 0.2888395531772246, 0.3028155255335054],
        [0.000983537193001643, 8.80060065842208e-06, 0.001026379202131108, 0.002318596289922972],
        -710301.3289797166,
    ),
}
"""Mean, sd and log evidence of θ, p, q, ρ for weights 2m, m, m, by another's importance sampling."""


def split(m: int) -> CountTable:
    """Half of the people all negative, a quarter in the middle and a quarter all positive."""
    return CountTable([4, 4, 4], [0, 2, 4], [2 * m, m, m])


@cache
def sampled(m: int) -> Sampled:
    return sample(Correlated(split(m)))


def found_by(counts: CountTable) -> tuple[Float, Float, float, float]:
    """Means, sds, log evidence and error of the over-dispersed fit."""
    fit = fit_overdispersed(counts)
    return fit.posterior.mean, fit.posterior.sd, fit.log_evidence, fit.error


@pytest.mark.parametrize("m", SPLIT)
def test_the_sampled_oracle_agrees_with_another(m: int) -> None:
    mean, sd, log_evidence = SPLIT[m]
    for rate, centre, spread in zip(sampled(m).rates, mean, sd, strict=True):
        value, error = sampled(m).expect(rate)
        assert abs(value - centre) / spread < 5e-4
        assert error / spread < 3e-4
    assert sampled(m).log_evidences.mean() == pytest.approx(log_evidence, abs=1e-3)


@pytest.mark.parametrize("m", SPLIT)
def test_a_split_table_with_correlation_is_fitted(m: int) -> None:
    mean, sd, log_evidence = SPLIT[m]
    found, spread, evidence, error = found_by(split(m))
    assert np.abs((found - mean) / sd).max() < 1e-3
    assert np.abs(spread / np.array(sd) - 1).max() < 2e-3
    assert evidence == pytest.approx(log_evidence, abs=1e-3)
    assert error < 1e-3


def test_the_product_rule_agrees_with_both() -> None:
    mean, sd, log_evidence = SPLIT[300]
    fine, coarse = (product(Correlated(split(300)), size=size) for size in (88, 76))
    assert np.abs((fine.mean - mean) / sd).max() < 3e-4
    assert fine.log_evidence == pytest.approx(log_evidence, abs=1e-3)
    assert np.abs((fine.mean - coarse.mean) / sd).max() < 1e-6


@pytest.mark.parametrize("m", [10, 30, 100, 300])
def test_split_tables_of_a_few_hundred_are_fitted(m: int) -> None:
    oracle = product(Correlated(split(m)), size=56 if m < 300 else 88)
    found, spread, evidence, error = found_by(split(m))
    assert error < 1e-3
    assert np.abs((found - oracle.mean) / oracle.sd).max() < error + 1e-6
    assert np.abs(spread / oracle.sd - 1).max() < error + 1e-6
    assert evidence == pytest.approx(oracle.log_evidence, abs=1e-3)


@pytest.mark.parametrize("m", [1000, 10**4, 10**5, 10**6])
def test_split_tables_of_many_are_fitted(m: int) -> None:
    oracle = sampled(m)
    found, spread, evidence, error = found_by(split(m))
    assert error < 1e-3
    for i, rate in enumerate(oracle.rates):
        mean, noise = oracle.expect(rate)
        sd = np.sqrt(oracle.expect((rate - mean) ** 2)[0])
        assert abs(found[i] - mean) / sd < error + 4 * noise / sd, i
        assert spread[i] / sd == pytest.approx(1, abs=2e-3 + error), i
    assert evidence == pytest.approx(oracle.log_evidences.mean(), abs=2e-3)


# --- predictive counts -----------------------------------------------------------------------------------

SPREAD = CountTable([8] * 9, range(9), [40, 15, 12, 8, 6, 6, 5, 10, 30])


def _chance_of_none(target: Correlated, at: tuple[Float, ...]) -> Float:
    return np.exp(np.logaddexp(*target.log_chances(8, 0, at)))


def test_predictive_counts_keep_the_correlation() -> None:
    target = Correlated(SPREAD)
    expected = SPREAD.individuals * product(target, (lambda at: _chance_of_none(target, at),)).mean[4]
    assert expected == pytest.approx(39.0, abs=0.1)
    table = predictive_counts(fit_overdispersed(SPREAD), rng=1, size=4000)
    assert table["mean"][0] == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize(
    "fit",
    [fit_average, fit_median, fit_map, fit_bayes, fit_overdispersed, lambda c: fit_populations({"a": c})],
)
def test_predictive_counts_serve_every_fit(fit) -> None:
    table = predictive_counts(fit(SPREAD), rng=1, size=200)
    assert sum(table["observed"]) == SPREAD.individuals
    assert sum(table["mean"]) == pytest.approx(SPREAD.individuals)


# --- ridges of several populations -----------------------------------------------------------------------


def once(size: int, share: float) -> CountTable:
    """One replicate each."""
    return CountTable([1, 1], [0, 1], [round(size * (1 - share)), round(size * share)])


@pytest.mark.parametrize(
    "populations",
    [
        {"x": once(10**6, 0.3)},
        {"a": once(10**5, 0.1), "b": once(10**5, 0.3), "c": once(10**5, 0.5)},
        {"a": once(10**4, 0.3), "b": once(10**4, 0.3)},
    ],
    ids=["one", "three", "two alike"],
)
@pytest.mark.parametrize("better", [False, True])
def test_populations_with_one_replicate_are_right(populations: dict[str, CountTable], better: bool) -> None:
    prior = Prior(better_than_chance=better)
    oracle = Reference(populations, prior)
    fit = fit_populations(populations, prior)
    found = np.array([*fit.rates.prevalence, fit.rates.false_positive, fit.rates.false_negative])
    spread = np.array([*fit.sd.prevalence, fit.sd.false_positive, fit.sd.false_negative])
    assert oracle.agreement < 1e-7
    assert fit.error < 1e-5
    allowed = fit.error + oracle.agreement
    assert np.abs((found - oracle.mean) / oracle.sd).max() < allowed
    assert np.abs(spread / oracle.sd - 1).max() < allowed
    assert abs(fit.log_evidence - oracle.log_evidence) < allowed * max(1, abs(oracle.log_evidence))


@pytest.mark.parametrize("better", [False, True])
def test_intervals_of_predictions_on_a_ridge_are_right_by_either_way(better: bool) -> None:
    """Two replicates each: the ends of both fits hold what they say they hold, within their own errors."""
    counts = CountTable([2, 2, 2], [0, 1, 2], [62_000, 18_000, 20_000])
    prior = Prior(better_than_chance=better)
    alone, shared = fit_bayes(counts, prior), fit_populations({"x": counts}, prior)["x"]
    for n, s in ((6, 3),) if better else ((2, 1),):
        law = Reference(counts + CountTable([n], [s]), prior, both=False)
        for fit in (alone, shared):
            error = float(fit.predict_interval_error(n, s))
            assert error < 1e-4
            for end, tail in zip(fit.predict_interval(n, s), (0.05, 0.95), strict=True):
                low, high = (law.score_cdf(n, s, float(end + way * (error + 1e-9))) for way in (-1, 1))
                assert low - 1e-7 <= tail <= high + 1e-7, (n, s, tail, float(end), error)
    ends = [np.array(fit.predict_interval([2, 6], [1, 3])) for fit in (alone, shared)]
    assert np.abs(ends[0] - ends[1]).max() < 1e-4


# --- huge weights ----------------------------------------------------------------------------------------


def in_time(script: str, seconds: float) -> list[float]:
    """What a script prints, in a process of its own that is given up after some seconds."""
    start = "import binreps as br\nimport numpy as np\n"
    try:
        made = subprocess.run(
            [sys.executable, "-c", start + script],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"no result in {seconds} s")
    except OSError as error:
        cannot_run(f"no process can be started: {error}")
    assert made.returncode == 0, made.stderr[-500:]
    return [float(word) for word in made.stdout.split()]


_PRINT_FIT = """
fit = br.fit_bayes(br.CountTable({n}, {s}, {weight}), br.Prior(better_than_chance={better}))
print(*fit.rates, *fit.sd, fit.log_evidence, fit.error)
"""


@pytest.mark.parametrize("better", [False, True])
@pytest.mark.parametrize("weight", [10**9, 10**12, 2**53])
def test_one_cell_of_any_weight_is_what_its_limit_says(weight: int, better: bool) -> None:
    """All W positive: q W ~ Gamma(2, 1) and, given p, (1−θ)(1−p) W ~ Gamma(½, 1), up to 1/W or √(1/W)."""
    script = _PRINT_FIT.format(n=[1], s=[1], weight=[weight], better=better)
    theta, p, q, sd_theta, sd_p, sd_q, log_evidence, error = in_time(script, 60)
    x, w = np.polynomial.legendre.leggauss(200)
    rest = (
        ((x + 1) / 2) ** 2 if better else (3 + x) / 4
    )  # 1 − p, its square root the variable where p may be 1
    mass = w * (1 - rest) * np.sqrt(rest) * ((x + 1) / 2 if better else 0.25)
    moments = [float(mass @ (1 - rest) ** k / mass.sum()) for k in (1, 2)]
    # no float beside 1 is closer; better than chance, the sd of θ rests on a tail that ends nowhere
    open_tail = 0.5 if better and weight >= 10**12 else 0.0
    assert error < max(0.01, 2 * float(np.finfo(float).eps) / sd_theta, open_tail)
    assert theta > 1 - 1e-8
    assert p == pytest.approx(moments[0], rel=1e-4)
    assert sd_p == pytest.approx(np.sqrt(moments[1] - moments[0] ** 2), rel=1e-3)
    assert q * weight == pytest.approx(2, rel=1e-3)
    assert sd_q * weight == pytest.approx(np.sqrt(2), rel=1e-3)
    constant = np.log(72) if better else np.log(144)
    expected = constant - betaln(0.5, 0.5) + gammaln(0.5) - 2.5 * np.log(weight) + np.log(mass.sum())
    assert log_evidence == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("better", [False, True])
def test_a_trillion_individuals_are_fitted(better: bool) -> None:
    n, s, weight = [3] * 4, [0, 1, 2, 3], [5 * 10**11, 2 * 10**11, 10**11, 2 * 10**11]
    found = in_time(_PRINT_FIT.format(n=n, s=s, weight=weight, better=better), 60)
    oracle = Reference(CountTable(n, s, weight), Prior(better_than_chance=better))
    assert oracle.agreement < 1e-5
    assert np.abs((np.array(found[:3]) - oracle.mean) / oracle.sd).max() < 1e-4
    assert np.abs(np.array(found[3:6]) / oracle.sd - 1).max() < 1e-4


def test_one_replicate_of_two_trillion_is_what_its_limit_says() -> None:
    """Half of them positive: θ(1−q) + (1−θ)p = ½, and the ridge has no width.

    With p = (1−x²)/2 and q = (1−y²)/2 that is θ = x²/(x²+y²), and everything but p(1−p) q(1−q) cancels.
    """
    script = _PRINT_FIT.format(n=[1, 1], s=[0, 1], weight=[10**12, 10**12], better=False)
    theta, p, q, *sds, _, error = in_time(script, 60)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    x = (nodes + 1) / 2
    rate = (1 - x**2) / 2
    mass = weights * rate * (1 - rate) / (weights @ (rate * (1 - rate)))
    mean, square = mass @ rate, mass @ rate**2
    share = x[:, None] ** 2 / (x[:, None] ** 2 + x**2)
    wanted = np.sqrt([mass @ (share - 0.5) ** 2 @ mass, square - mean**2, square - mean**2])
    assert error < 1e-3
    assert np.abs((np.array([theta, p, q]) - [0.5, mean, mean]) / wanted).max() < error
    assert np.abs(np.array(sds) / wanted - 1).max() < error


def test_a_trillion_individuals_with_up_to_ten_thousand_replicates_have_the_mode_as_mean() -> None:
    """Boxes and lattices held no point of it; under a flat prior mean and mode are 10⁻⁶ sd apart."""
    rng = np.random.default_rng(1)
    n = rng.integers(1, 10_000, 1000)
    s, weight = rng.binomial(n, rng.random(1000)), rng.integers(1, 10**9, 1000)
    counts, flat = CountTable(n, s, weight), Prior((1, 1), (1, 1), (1, 1))
    fit, mode = fit_bayes(counts, flat), fit_map(counts, flat)
    assert fit.error < 1e-3
    assert np.abs(np.subtract(list(fit.rates), list(mode.rates)) / list(fit.sd)).max() < fit.error + 1e-6


def test_new_individuals_of_a_trillion_tested_once_are_as_those_of_the_data() -> None:
    """The posterior with one more, by which predictions are checked, is narrower than floats resolve."""
    script = (
        "import binreps as br\n"
        "fit = br.fit_bayes(br.CountTable([1, 1], [0, 1], [6 * 10**11, 4 * 10**11]))\n"
        "print(*fit.score(1, [0, 1]), *fit.predict(1, [0, 1]))\n"
        "print(*fit.score_error(1, [0, 1]) + fit.predict_error(1, [0, 1]))"
    )
    first, second, third, fourth, *errors = in_time(script, 60)
    assert max(errors) < 1e-3
    assert abs(third - first) < errors[0]
    assert abs(fourth - second) < errors[1]


@pytest.mark.slow
def test_scores_where_the_prevalence_has_steep_poles() -> None:
    """4 % of the mass of θ is closer to 1 than any float: it was lost, and scores were off by .006."""
    counts = CountTable([1, 3, 4], [1, 3, 3], [1, 2, 1])
    prior = Prior((0.06, 0.085), (5965, 1.3), (1.24, 0.06))
    fit, oracle = fit_bayes(counts, prior), Reference(counts, prior, both=False)
    for n, s in ((5, 0), (6, 0), (6, 1)):
        assert abs(fit.score(n, s) - oracle.side.score(n, s)) < fit.score_error(n, s) < 1e-5


@pytest.mark.parametrize(("weight", "better"), [([22411, 22933], False), ([14171, 4064], True)])
def test_the_error_of_single_replicates_holds(weight: list[int], better: bool) -> None:
    """Cells that were too few, with refined grids on them that agreed, were off by 1.8e-7 for 4e-8."""
    counts, prior = CountTable([1, 1], [0, 1], weight), Prior(better_than_chance=better)
    fit, truth = fit_bayes(counts, prior), Reference(counts, prior, LIGHT, both=False)
    off = [np.array([*fit.rates]) - truth.mean, np.array([*fit.sd]) - truth.sd]
    assert np.max(np.abs(off) / truth.sd) < fit.error < 1e-6


# --- what the trial of stated errors found -----------------------------------------------------------------


def test_a_layer_between_the_last_points_of_a_cell_is_not_lost() -> None:
    """If nobody is positive, q is whatever the prior says, along a layer in p: a sixth of this posterior.

    It ran between the last two points of a cell, which were alike, and was left out with a stated 10⁻¹⁰.
    """
    counts, prior = CountTable([2, 2, 7], [0, 1, 3], [577, 5, 4914]), Prior(better_than_chance=True)
    fit, truth = fit_bayes(counts, prior), Reference(counts, prior, LIGHT, both=False)
    assert fit.log_evidence == pytest.approx(truth.log_evidence, abs=1e-7)
    found = np.array([*fit.rates, *fit.sd]) - [*truth.mean, *truth.sd]
    assert np.max(np.abs(found) / [*truth.sd, *truth.sd]) <= fit.error + 1e-8


def test_the_density_of_q_has_the_points_that_p_needs() -> None:
    """Better than chance its grid has q first; with the points of the first grid p was too coarse on it."""
    n, s = [2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4], [0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]
    known = [0, None, None, None, None, 1, None, 0, None, None, 1, 0]
    counts = CountTable(n, s, [14, 5, 1, 17, 2, 1, 1, 17, 2, 3, 1, 1], known)
    prior = Prior(better_than_chance=True)
    fit, truth = fit_bayes(counts, prior), Reference(counts, prior, LIGHT, both=False)
    for tail in (0.05, 0.95):
        end = float(fit.quantile(tail).false_negative)
        off = (truth.cdf(2, end) - tail) / truth.density(2, end) / truth.sd[2]
        assert abs(off) <= fit.error + fit.marginal("false_negative").error + 1e-9


def test_scores_say_what_rounding_beside_a_prevalence_of_one_takes() -> None:
    """Everyone was positive twice: a millionth of the posterior is so near to 1 that floats have no odds."""
    counts, prior = CountTable([1, 2], [1, 2], [161, 7787]), Prior(better_than_chance=True)
    fit, truth = fit_bayes(counts, prior), Reference(counts, prior, LIGHT, both=False)
    for n, s in ((5, 0), (6, 0), (6, 1), (4, 3)):
        assert abs(fit.score(n, s) - truth.side.score(n, s)) <= fit.score_error(n, s) + 1e-8


# --- results that leave no doubt ---------------------------------------------------------------------------


@pytest.mark.parametrize("known", [None, [None, 1, 0, None, None, 1, None, 0]])
def test_likelihoods_are_sums_over_individuals_however_sure_some_of_them_are(known: list[Any] | None) -> None:
    """Of 110 replicates most results leave no doubt, at some error rates and not at others."""
    n, s = np.array([110, 110, 109, 3, 110, 2, 0, 40]), np.array([0, 110, 54, 2, 13, 1, 0, 39])
    counts = CountTable(n, s, [3, 5, 1, 40, 2, 7, 9, 4], known)
    rng = np.random.default_rng(4)
    errors = errors_at(rng.normal(-2, 2, 50), rng.normal(-2, 2, 50))
    density = Density(counts, Prior(), errors.some([3])._replace(u=np.array([-1.0])))
    table = density.counts
    for u in (rng.normal(0, 1, (50, 7)), rng.normal(0, 9, (50, 7)), rng.normal(0, 2, (1, 7))):
        theta, rest = (expit(u), expit(-u)) if len(u) > 1 else (expit(u[0]), expit(-u[0]))
        ones, zeros = table.s[:, None, None], (table.n - table.s)[:, None, None]
        (log_p, log_1p), (log_q, log_1q) = errors.log_p, errors.log_q
        negative = ones * log_p[:, None] + zeros * log_1p[:, None] + log_expit(-u)
        positive = ones * log_1q[:, None] + zeros * log_q[:, None] + log_expit(u)
        status = table.known[:, None, None]
        mixture = np.where(
            status == 1, positive, np.where(status == 0, negative, np.logaddexp(negative, positive))
        )
        expected = np.tensordot(table.weight, mixture, axes=1) - density.log_likelihood
        np.testing.assert_allclose(density.log_ratios(errors, theta, rest), expected, rtol=1e-12, atol=1e-9)


KNOWN_P = [
    (CountTable([], []), Prior(false_positive=(100, 3000), better_than_chance=True)),
    (CountTable([2, 5], [1, 4]), Prior((1, 2), (60, 1800), (2, 5), better_than_chance=True)),
    (CountTable([2, 5], [1, 4]), Prior((1, 2), (100, 3000), (0.5, 5), better_than_chance=True)),
    (
        CountTable([3, 3, 3], [0, 1, 3], [10, 3, 5]),
        Prior(false_positive=(100, 3000), better_than_chance=True),
    ),
]


@pytest.mark.parametrize("case", KNOWN_P, ids=["nobody", "two", "two, a pole", "some"])
def test_the_false_negative_rate_beside_a_false_positive_rate_that_is_known(case: tuple[Any, Prior]) -> None:
    """Where p is known, p / (1−q) is not: the density of q was off by up to .12 in probability."""
    fit, truth = fit_bayes(*case), Reference(*case, LIGHT, both=False)
    law = fit.marginal("false_negative")
    for probability in (0.05, 0.25, 0.5, 0.75, 0.95):
        x = float(law.quantile(probability))
        assert truth.cdf(2, x) == pytest.approx(probability, abs=1e-6)
    x = law.quantile((np.arange(4000) + 0.5) / 4000)
    assert abs(x.mean() - fit.rates.false_negative) < 1e-3 * fit.sd.false_negative


def test_the_density_along_a_ridge_that_lines_do_not_follow() -> None:
    """It had spikes of 15,000 where the other rule has 67."""
    counts = CountTable([2, 2, 2], [0, 1, 2], [17_901, 10_070, 2_029])
    prior = Prior((1.0, 1.0), (2.0, 0.5), (0.3, 2.0), better_than_chance=True)
    law = fit_bayes(counts, prior).marginal("false_positive")
    x = law.quantile(np.linspace(0.01, 0.99, 400))
    slope = np.diff(law.cumulative(x)) / np.diff(x)
    assert law.density((x[1:] + x[:-1]) / 2) == pytest.approx(slope, rel=0.02)
    for probability in (0.05, 0.95):
        assert law.cumulative(law.quantile(probability)) == pytest.approx(probability, abs=1e-9)
