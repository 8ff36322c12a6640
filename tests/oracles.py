"""Independent oracles of the exact posterior of small data, to judge the integration engine with.

Nothing here is shared with the engine: neither code nor method (no box, no annealing, no interpolation).

**Closed form** (`ExactPosterior`). The likelihood of the individuals of unknown status expands into positive
terms: with C[M, a, b] the number of ways to call M of N individuals positive that have a positive and b
negative replicates among them (S and F the totals), the posterior is the finite mixture

    Σ C[M, a, b] · Beta(θ; a_T + M, b_T + N − M) · Beta½(p; a_FP + S − a, b_FP + F − b)
                 · Beta½(q; a_FN + b, b_FN + a)

with Beta½ truncated to (0, ½). A known status is conjugate: it only moves the prior. Every number needed is a
sum of positive terms (no gamma function, no cancellation), because with

    R(a, b) = B(x; a, b) / (x^a (1 − x)^b),   B the incomplete beta function,

    R(a, b) = Σ_k Π_{m ≤ k} (a + b + m − 1) x / (a + m) / a              (one corner, by its series)
    R(a, b + 1) = (1 + b x R(a + 1, b)) / (a (1 − x))                    (a diagonal a + b = constant)
    R(a, b) = x R(a + 1, b) + (1 − x) R(a, b + 1)                        (the triangle below it)

The same code runs in float64 (mpmath.fp) and in any number of digits (an mpmath context of its own).

**Law of the likelihood score** (`ScoreLaw`). Given (p, q), Y_L ≤ y means logit θ ≤ logit y − λ(p, q), and θ
is a mixture of Betas; (p, q) is integrated by a double exponential product rule or, for many replicates, by
panels that follow the jump of Y_L. The masses must add up to 1 after division by the closed form's evidence.

**Brute force** (`brute_force`). The definition of the posterior under a plain product rule: no expansion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, betaln, expit, log_expit, logit

from binreps.counts import UNKNOWN, CountTable
from binreps.model import NAMES, Prior
from shared_data import golden_values

Float = NDArray[np.float64]
Integer = NDArray[np.int64]
Numbers = NDArray[Any]
"""Numbers of a context: floats, or mpmath numbers in an object array."""

DEFAULT_PRIOR = Prior()

_DENSE_STATES = 4_000_000  # above, the expansion is kept sparse
_FEW_PAIRS = 64  # up to here each incomplete beta gets its own series, above they share a triangle
_MOST_MASSES = 30_000_000  # of the (p, q) rule, kept at once
_NEGLIGIBLE = -45.0  # log of a posterior mass that no sum can see
_STEPS = (1 / 12, 1 / 18, 1 / 27, 1 / 40, 1 / 60, 1 / 90, 1 / 135)  # of the double exponential rule
_PRODUCT_RULE = 30  # replicates up to which the product rule serves well; above, the band rule
_POSITIVE_CUTS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_CUTS = np.array(sorted({0, *_POSITIVE_CUTS, *(-cut for cut in _POSITIVE_CUTS)}), float)
_COARSE_CUTS = np.array([-128, -48, -16, -6, -2, 0, 2, 6, 16, 48, 128], float)
_ORDERS = (8, 12, 16, 22, 30)  # of Gauss–Legendre between cuts


# ---------------------------------------------------------------------------------------------------------
# Arithmetic: mpmath.fp (Python floats) or a private mpmath context
# ---------------------------------------------------------------------------------------------------------


def context(digits: int | None) -> Any:
    """Float64 arithmetic for None, else an mpmath context with that many decimal digits."""
    if digits is None:
        return mpmath.fp
    own = mpmath.MPContext()
    own.dps = digits
    return own


def _array(ctx: Any, values: Sequence[Any]) -> Numbers:
    """Numbers of the context as an array (in products with a number, let the array stand on the left)."""
    return np.array(values, dtype=float if ctx is mpmath.fp else object)


def _log_beta(ctx: Any, a: Any, b: Any) -> Any:
    """log B(a, b)."""
    if ctx is mpmath.fp:
        return float(betaln(a, b))
    return ctx.loggamma(a) + ctx.loggamma(b) - ctx.loggamma(a + b)


def _beta_cdfs(ctx: Any, a: Numbers, b: Numbers, x: Any) -> Numbers:
    """Regularised incomplete beta function of every pair of shapes."""
    if ctx is mpmath.fp:
        return np.asarray(betainc(a, b, x))
    values = [ctx.betainc(one, two, 0, x, regularized=True) for one, two in zip(a, b, strict=True)]
    return _array(ctx, values)


def _powers(ctx: Any, base: Any, exponents: Integer) -> Numbers:
    """base^k for whole numbers k, each distinct k once."""
    if ctx is mpmath.fp:
        return np.float_power(base, exponents)
    distinct, index = np.unique(exponents, return_inverse=True)
    return _array(ctx, [ctx.mpf(base) ** k for k in distinct.tolist()])[index]


# ---------------------------------------------------------------------------------------------------------
# The expansion of the likelihood
# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Expansion:
    """C[M, a, b] where it is not 0: states sorted by the pair (a, b), then by M."""

    positives: Integer  # a of each pair
    negatives: Integer  # b of each pair
    starts: Integer  # first state of each pair
    pair: Integer  # pair of each state
    called: Integer  # M of each state
    ways: Numbers  # C of each state


@lru_cache(maxsize=64)
def expand(counts: CountTable, exact: bool = False) -> Expansion:
    """C[M, a, b] of individuals of unknown status, as the product of 1 + z^step over individuals.

    A step encodes (a, b, M) = (s, n − s, 1) in mixed radix, so that one polynomial in z does for three
    dimensions. With `exact`, or up to 62 individuals, the coefficients are whole numbers.
    """
    individuals, failures = counts.individuals, counts.replicates - counts.positives
    radix = individuals + 1
    steps = (counts.s * (failures + 1) + counts.n - counts.s) * radix + 1
    order = np.argsort(steps)
    factors = list(zip(steps[order].tolist(), counts.weight[order].tolist(), strict=True))
    kind = np.int64 if individuals <= 62 else (object if exact else float)
    dense = (counts.positives + 1) * (failures + 1) * radix <= _DENSE_STATES
    keys, ways = (_dense_product if dense else _sparse_product)(factors, kind)
    pairs, starts, pair = np.unique(keys // radix, return_index=True, return_inverse=True)
    return Expansion(pairs // (failures + 1), pairs % (failures + 1), starts, pair, keys % radix, ways)


def _dense_product(factors: list[tuple[int, int]], kind: Any) -> tuple[Integer, Numbers]:
    """Exponents and coefficients of Π (1 + z^step)^weight, one individual after the other."""
    ways = np.ones(1, kind)
    for step, weight in factors:
        for _ in range(weight):
            grown = np.zeros(ways.size + step, kind)
            grown[: ways.size] = ways
            grown[step:] += ways
            ways = grown
    keys = np.flatnonzero(ways)
    return keys, ways[keys]


def _sparse_product(factors: list[tuple[int, int]], kind: Any) -> tuple[Integer, Numbers]:
    """The same, cell by cell, keeping only the exponents that occur."""
    keys, ways = np.zeros(1, np.int64), np.ones(1, kind)
    for step, weight in factors:
        chosen = np.array([math.comb(weight, k) for k in range(weight + 1)], kind)
        sums = np.add.outer(step * np.arange(weight + 1), keys).ravel()
        products = np.multiply.outer(chosen, ways).ravel()
        order = np.argsort(sums, kind="stable")
        keys, starts = np.unique(sums[order], return_index=True)
        ways = np.add.reduceat(products[order], starts)
    return keys, ways


# ---------------------------------------------------------------------------------------------------------
# Incomplete beta functions from positive terms
# ---------------------------------------------------------------------------------------------------------


def scaled_beta(ctx: Any, x: Any, a: Any, b: Any) -> Any:
    """R(a, b) = B(x; a, b) / (x^a (1 − x)^b) by its series of positive terms, for x ≤ ½."""
    if ctx is not mpmath.fp:
        return _scaled_beta_of_integers(ctx, x, a, b)
    total = term = 1.0
    k = 0
    while True:
        ratio = (a + b + k) * x / (a + k + 1)
        term *= ratio
        total += term
        k += 1
        if not (ratio >= 1 or term > 1e-17 * total * (1 - ratio)):
            return total / a


def _scaled_beta_of_integers(ctx: Any, x: Any, a: Any, b: Any) -> Any:
    """The same series in whole numbers: a hundred times faster than in mpmath's numbers."""
    (first, last, rate), unit = _common_denominator(ctx, a + b, a + 1, x)
    above, below, rise, fall = first * rate, last * unit, unit * rate, unit * unit
    bits = ctx.prec + 40
    total = term = 1 << bits
    scale = -bits
    while above >= below or term * below << bits > total * (below - above):
        term = term * above // below
        total += term
        above, below = above + rise, below + fall
        if total >> 2 * bits:  # floating point by hand
            total, term, scale = total >> bits, term >> bits, scale + bits
    return ctx.ldexp(ctx.mpf(total), scale) / a


def _common_denominator(ctx: Any, *values: Any) -> tuple[list[int], int]:
    """Binary numbers as whole numbers over one power of 2."""
    mantissas, exponents = zip(*(ctx.mpf(value).man_exp for value in values), strict=True)
    shift = max(0, *(-exponent for exponent in exponents))
    pairs = zip(mantissas, exponents, strict=True)
    return [int(mantissa) << (exponent + shift) for mantissa, exponent in pairs], 1 << shift


def scaled_betas(ctx: Any, x: Any, shapes: tuple[Any, Any], i: Integer, j: Integer) -> Numbers:
    """R(α + i, β + j) of every pair (i, j) of whole numbers ≥ 0."""
    alpha, beta = shapes
    if i.size <= _FEW_PAIRS:
        pairs = zip(i.tolist(), j.tolist(), strict=True)
        return _array(ctx, [scaled_beta(ctx, x, alpha + k, beta + m) for k, m in pairs])
    depth = int((i + j).max())
    triangle = np.zeros((depth + 1, depth + 1), float if ctx is mpmath.fp else object)
    triangle[depth] = _diagonal(ctx, x, shapes, depth)
    for level in range(depth - 1, -1, -1):
        above = triangle[level + 1, : level + 2]
        triangle[level, : level + 1] = above[1:] * x + above[:-1] * (1 - x)
    return triangle[i + j, i]


def _diagonal(ctx: Any, x: Any, shapes: tuple[Any, Any], depth: int) -> Numbers:
    """R(α + i, β + depth − i) for i = 0 … depth."""
    alpha, beta = shapes
    values = [scaled_beta(ctx, x, alpha + depth, beta)]
    for k in range(depth):
        values.append((1 + (beta + k) * x * values[-1]) / ((alpha + depth - k - 1) * (1 - x)))
    return _array(ctx, values[::-1])


def _lower_order(x: Any, a: Numbers, b: Numbers, higher: Numbers) -> Numbers:
    """R(a, b) from R(a + 1, b)."""
    return ((a + b) * x * higher + 1) / a


def log_half_beta(ctx: Any, a: Any, b: Any) -> Any:
    """log B(½; a, b)."""
    return ctx.log(scaled_beta(ctx, ctx.mpf(0.5), a, b)) - (a + b) * ctx.log(ctx.mpf(2))


def _log_half_beta_ratio(ctx: Any, shapes: tuple[Any, Any], others: tuple[Any, Any]) -> Any:
    """log B(½; shapes) / B(½; others), with no cancellation however large the shapes."""
    above, below = (scaled_beta(ctx, ctx.mpf(0.5), *pair) for pair in (shapes, others))
    return ctx.log(above / below) - (sum(shapes) - sum(others)) * ctx.log(ctx.mpf(2))


def _log_beta_ratio(ctx: Any, shapes: tuple[Any, Any], added: tuple[int, int]) -> Any:
    """log B(a + i, b + j) / B(a, b) as a product of i + j factors."""
    (a, b), (i, j) = shapes, added
    factors = [(a + k) / (a + b + k) for k in range(i)] + [(b + k) / (a + i + b + k) for k in range(j)]
    return sum((ctx.log(factor) for factor in factors), ctx.mpf(0))


# ---------------------------------------------------------------------------------------------------------
# The posterior in closed form
# ---------------------------------------------------------------------------------------------------------


class ExactPosterior:
    """The posterior as a finite mixture: float64 for `digits=None`, else mpmath with that many digits.

    Float64 keeps about 13 digits up to roughly 1,000 replicates; it raises OverflowError beyond, where
    `digits` still answers. Standard deviations lose (mean/sd)² · 1e-16: use `digits` for tight posteriors.
    """

    def __init__(self, counts: CountTable, prior: Prior = DEFAULT_PRIOR, digits: int | None = None) -> None:
        self.counts, self.prior, self.digits = counts, prior, digits
        self.ctx = context(digits)
        self.half = self.ctx.mpf(0.5)
        self.unknown = _of_status(counts, UNKNOWN)
        self.shapes = _shapes_with_known(self.ctx, counts, prior)
        self.expansion = expand(self.unknown, exact=digits is not None)
        self._weigh()

    def _weigh(self) -> None:
        """Unnormalised weight of every pair (a, b), also multiplied by θ and θ², and moments of p and q."""
        e = self.expansion
        positives, negatives = self.unknown.positives, self.unknown.replicates - self.unknown.positives
        self._p_pairs = (positives - e.positives, negatives - e.negatives)
        self._q_pairs = (e.negatives, e.positives)
        with np.errstate(over="ignore", invalid="ignore"):
            r_p, self._p_moments = self._rate_terms(self.shapes[1], *self._p_pairs)
            r_q, self._q_moments = self._rate_terms(self.shapes[2], *self._q_pairs)
            self._r = {"false_positive": r_p, "false_negative": r_q}
            reference = [scaled_beta(self.ctx, self.half, *shapes) for shapes in self.shapes[1:]]
            self._rates_factor = (r_p / reference[0]) * (r_q / reference[1])
            weights = e.ways * self._prevalence_factor[e.called]
            first, second = (weights * moment[e.called] for moment in self._prevalence_moments)
            self._theta_sums = [np.add.reduceat(terms, e.starts) for terms in (weights, first, second)]
            self._total = np.sum(self._theta_sums[0] * self._rates_factor)
        if not 0 < self._total < self.ctx.inf:
            raise OverflowError("the data are too many for float64: give digits")

    def _rate_terms(self, shapes: tuple[Any, Any], i: Integer, j: Integer) -> tuple[Numbers, list[Numbers]]:
        """R of every pair, and the moments 1, E r, E r² of the truncated Beta of an error rate."""
        a, b = _shifted(self.ctx, shapes, i, j)
        second = scaled_betas(self.ctx, self.half, shapes, i + 2, j)
        first = _lower_order(self.half, a + 1, b, second)
        zeroth = _lower_order(self.half, a, b, first)
        return zeroth, [zeroth / zeroth, first / zeroth / 2, second / zeroth / 4]

    @cached_property
    def _prevalence_factor(self) -> Numbers:
        """B(a_T + M, b_T + N − M) / B(a_T, b_T) for M = 0 … N."""
        (a, b), individuals = self.shapes[0], self.unknown.individuals
        value = self.ctx.mpf(1)
        for k in range(individuals):
            value *= (b + k) / (a + b + k)
        values = [value]
        for called in range(individuals):
            values.append(values[-1] * (a + called) / (b + individuals - called - 1))
        return _array(self.ctx, values)

    @cached_property
    def _prevalence_moments(self) -> list[Numbers]:
        """E θ and E θ² of Beta(a_T + M, b_T + N − M) for M = 0 … N."""
        a, b = self._prevalence_shapes
        return [a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))]

    @property
    def _prevalence_shapes(self) -> tuple[Numbers, Numbers]:
        """a_T + M and b_T + N − M for M = 0 … N."""
        called = np.arange(self.unknown.individuals + 1)
        return _shifted(self.ctx, self.shapes[0], called, called[::-1])

    @cached_property
    def _prevalence_weights(self) -> Numbers:
        """Posterior probability that M individuals of unknown status are positive, M = 0 … N."""
        e = self.expansion
        weights = e.ways * self._prevalence_factor[e.called] * self._rates_factor[e.pair]
        order = np.argsort(e.called, kind="stable")
        present, starts = np.unique(e.called[order], return_index=True)
        sums = _array(self.ctx, [self.ctx.mpf(0)] * (self.unknown.individuals + 1))
        sums[present] = np.add.reduceat(weights[order], starts)
        return sums / self._total

    @cached_property
    def _pair_weights(self) -> Numbers:
        """Posterior probability of every pair (a, b)."""
        return self._theta_sums[0] * self._rates_factor / self._total

    @property
    def log_evidence_of_unknown(self) -> Any:
        """log P(individuals of unknown status | those of known status)."""
        return self.ctx.log(self._total) - self.unknown.replicates * self.ctx.log(self.ctx.mpf(2))

    @property
    def log_evidence(self) -> Any:
        """log ∫ L · prior, without binomial coefficients, the prior normalised on its truncated support."""
        after, before = self.shapes, _own_shapes(self.ctx, self.prior)
        known = _log_beta_ratio(self.ctx, before[0], _individuals_of_known(self.counts))
        for k in (1, 2):
            if after[k] != before[k]:
                known += _log_half_beta_ratio(self.ctx, after[k], before[k])
        return self.log_evidence_of_unknown + known

    def moment(self, theta: int = 0, p: int = 0, q: int = 0) -> Any:
        """E[θ^i p^j q^k | data], each power at most 2."""
        terms = self._theta_sums[theta] * self._rates_factor * self._p_moments[p] * self._q_moments[q]
        return np.sum(terms) / self._total

    @cached_property
    def means(self) -> Numbers:
        """Posterior means of θ, p, q."""
        return _array(self.ctx, [self.moment(*powers) for powers in np.eye(3, dtype=int).tolist()])

    @cached_property
    def covariance(self) -> Numbers:
        """Posterior covariance matrix of θ, p, q."""
        unit = np.eye(3, dtype=int)
        second = _array(self.ctx, [[self.ctx.mpf(0)] * 3] * 3)
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            second[i, j] = second[j, i] = self.moment(*(unit[i] + unit[j]).tolist())
        return second - np.multiply.outer(self.means, self.means)

    @cached_property
    def sds(self) -> Numbers:
        """Posterior standard deviations of θ, p, q."""
        return _array(self.ctx, [self.ctx.sqrt(variance) for variance in np.diagonal(self.covariance)])

    @property
    def correlations(self) -> Numbers:
        """Posterior correlation matrix of θ, p, q."""
        return self.covariance / np.multiply.outer(self.sds, self.sds)

    def cdf(self, name: str, x: Any) -> Any:
        """P(rate ≤ x | data), x inside the rate's support."""
        x = self.ctx.mpf(x)
        if name == NAMES[0]:
            return np.sum(self._prevalence_weights * _beta_cdfs(self.ctx, *self._prevalence_shapes, x))
        i, j, weights, r_half = self._marginal(name)
        shapes = self.shapes[NAMES.index(name)]
        r_x = scaled_betas(self.ctx, x, shapes, i, j)
        return np.sum(weights * (r_x / r_half) * self._density_ratio(shapes, i, j, x))

    def density(self, name: str, x: Any) -> Any:
        """Posterior density of a rate at x inside its support."""
        x = self.ctx.mpf(x)
        if name == NAMES[0]:
            a, b = self._prevalence_shapes
            logs = [self._log_beta_density(*ab, x) for ab in zip(a, b, strict=True)]
            return np.sum(self._prevalence_weights * _array(self.ctx, [self.ctx.exp(v) for v in logs]))
        i, j, weights, r_half = self._marginal(name)
        ratio = self._density_ratio(self.shapes[NAMES.index(name)], i, j, x)
        return np.sum(weights / r_half * ratio) / (x * (1 - x))

    def _log_beta_density(self, a: Any, b: Any, x: Any) -> Any:
        """Log density of Beta(a, b) at x."""
        log = self.ctx.log
        return (a - 1) * log(x) + (b - 1) * log(1 - x) - _log_beta(self.ctx, a, b)

    def _marginal(self, name: str) -> tuple[Integer, Integer, Numbers, Numbers]:
        """Pairs of an error rate that matter, their weights and their R at ½."""
        i, j = self._p_pairs if name == NAMES[1] else self._q_pairs
        kept = np.asarray(self._pair_weights > self.ctx.eps * 1e-6, dtype=bool)
        return i[kept], j[kept], self._pair_weights[kept], self._r[name][kept]

    def _density_ratio(self, shapes: tuple[Any, Any], i: Integer, j: Integer, x: Any) -> Numbers:
        """x^a (1 − x)^b / (½)^(a + b) at a = α + i, b = β + j."""
        ctx, (alpha, beta) = self.ctx, shapes
        log_twice_rest = math.log1p(1 - 2 * x) if ctx is mpmath.fp else ctx.log(2 - 2 * x)
        common = ctx.exp(alpha * ctx.log(2 * x) + beta * log_twice_rest)
        with np.errstate(under="ignore"):
            return _powers(ctx, 2 * x, i) * _powers(ctx, 2 - 2 * x, j) * common

    def quantile(self, name: str, probability: float) -> Any:
        """The x with P(rate ≤ x | data) = probability, by safeguarded Newton on the logit of both sides."""
        ctx, upper = self.ctx, self.ctx.mpf(1 if name == NAMES[0] else 0.5)
        target = ctx.mpf(probability)
        low, high, z = ctx.mpf(-690), ctx.mpf(36), ctx.mpf(0)
        last_step = ctx.inf
        while True:
            x = upper * _sigmoid(ctx, z)
            below = self.cdf(name, x)
            low, high = (z, high) if below < target else (low, z)
            step = (low + high) / 2 - z
            if 0 < below < 1:
                slope = self.density(name, x) * x * (1 - x / upper) / (below * (1 - below))
                newton = (ctx.log(target / (1 - target)) - ctx.log(below / (1 - below))) / slope
                step = newton if low <= z + newton <= high or abs(newton) < 1e-9 else step
            z += step
            stalled = abs(step) < 1e-9 and abs(step) >= abs(last_step) / 4  # rounding noise is reached
            if stalled or abs(step) <= 8 * ctx.eps * (1 + abs(z)):
                return upper * _sigmoid(ctx, z)
            last_step = step

    def score(self, n: int, s: int) -> Any:
        """E[Y_L(n, s) | data] = P(T = 1 | data) of an individual (n, s) of unknown status in the data."""
        is_cell = (self.counts.n == n) & (self.counts.s == s) & (self.counts.known == UNKNOWN)
        if not is_cell.any():
            raise ValueError(f"nobody of unknown status has n = {n}, s = {s}")
        c = self.counts
        rest = CountTable(c.n, c.s, c.weight - is_cell, c.known)
        clamped = self._with(rest, n, s, 1)
        return self.ctx.exp(clamped.log_evidence - self.log_evidence)

    def predict(self, n: int, s: int) -> Any:
        """P(T' = 1 | data, s') of a new individual: its own result informs the rates too."""
        positive, negative = (self._with(self.counts, n, s, status).log_evidence for status in (1, 0))
        largest = max(positive, negative)
        positive, negative = self.ctx.exp(positive - largest), self.ctx.exp(negative - largest)
        return positive / (positive + negative)

    def _with(self, counts: CountTable, n: int, s: int, status: int) -> ExactPosterior:
        """The posterior of these counts and one individual of known status."""
        return ExactPosterior(counts + CountTable([n], [s], known=[status]), self.prior, self.digits)

    def draws(self, size: int, rng: np.random.Generator) -> tuple[Float, Float, Float]:
        """Independent draws of (θ, p, q): a term of the mixture, then its three Betas. Float64 only."""
        e = self.expansion
        weights = e.ways * self._prevalence_factor[e.called] * self._rates_factor[e.pair] / self._total
        state = rng.choice(weights.size, size, p=weights / weights.sum())
        a, b = (shapes[e.called[state]] for shapes in self._prevalence_shapes)
        rates = []
        for shapes, pairs in zip(self.shapes[1:], (self._p_pairs, self._q_pairs), strict=True):
            one, two = _shifted(self.ctx, shapes, *(counts[e.pair[state]] for counts in pairs))
            rates.append(betaincinv(one, two, rng.random(size) * betainc(one, two, 0.5)))
        return rng.beta(a, b), rates[0], rates[1]


def _sigmoid(ctx: Any, z: Any) -> Any:
    """1 / (1 + e^−z)."""
    return 1 / (1 + ctx.exp(-z))


def _shifted(ctx: Any, shapes: tuple[Any, Any], i: Integer, j: Integer) -> tuple[Numbers, Numbers]:
    """α + i and β + j in the numbers of the context."""
    alpha, beta = shapes
    return _array(ctx, [alpha + k for k in i.tolist()]), _array(ctx, [beta + k for k in j.tolist()])


def _of_status(counts: CountTable, status: int) -> CountTable:
    """The individuals of this status, with the status left out."""
    kept = counts.known == status
    return CountTable(counts.n[kept], counts.s[kept], counts.weight[kept])


def _own_shapes(ctx: Any, prior: Prior) -> list[tuple[Any, Any]]:
    """The prior's shapes of θ, p, q as numbers of the context."""
    return [(ctx.mpf(a), ctx.mpf(b)) for a, b in prior]


def _individuals_of_known(counts: CountTable) -> tuple[int, int]:
    """How many are known to be positive, and how many to be negative."""
    return _of_status(counts, 1).individuals, _of_status(counts, 0).individuals


def _shapes_with_known(ctx: Any, counts: CountTable, prior: Prior) -> list[tuple[Any, Any]]:
    """Shapes of θ, p, q given the individuals of known status."""
    healthy, ill = _of_status(counts, 0), _of_status(counts, 1)
    (a_t, b_t), (a_fp, b_fp), (a_fn, b_fn) = _own_shapes(ctx, prior)
    return [
        (a_t + ill.individuals, b_t + healthy.individuals),
        (a_fp + healthy.positives, b_fp + healthy.replicates - healthy.positives),
        (a_fn + ill.replicates - ill.positives, b_fn + ill.positives),
    ]


# ---------------------------------------------------------------------------------------------------------
# The law of the likelihood score
# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """Posterior masses on points (p, q) of the double exponential rule, split by M, the number of positives.

    Given the point and M, θ ~ Beta(a_T + M, b_T + N − M). The masses add up to 1 if the rule has converged,
    because they are divided by the evidence in closed form.
    """

    theta_shapes: tuple[float, float]
    masses: Float  # (N + 1) × points
    log_p: Float
    log_not_p: Float
    log_q: Float
    log_not_q: Float

    @property
    def individuals(self) -> int:
        """Number of individuals of unknown status, N."""
        return self.masses.shape[0] - 1

    def log_odds_shift(self, n: int, s: int) -> Float:
        """λ(p, q) = logit Y_L − logit θ at every point."""
        return s * (self.log_not_q - self.log_p) + (n - s) * (self.log_q - self.log_not_p)

    def cdf_at_logit(self, n: int, s: int, z: float) -> float:
        """P(logit Y_L(n, s) ≤ z | data).

        I_t(a, b) = I_t(a + 1, b − 1) + t^a (1 − t)^(b−1) / (a B(a, b)), summed from M = N down to 0.
        """
        shift = self.log_odds_shift(n, s)
        log_t, log_not_t = log_expit(z - shift), log_expit(shift - z)
        (a, b), individuals = self.theta_shapes, self.individuals
        last = 1 - betainc(b, a + individuals, np.exp(log_not_t))  # I_t(a + N, b), exact for t near 1
        total = np.sum(self._cumulative[-1] * last)
        for called in range(individuals):
            one, two = a + called, b + individuals - called
            log_term = one * log_t + (two - 1) * log_not_t - np.log(one) - betaln(one, two)
            total += np.sum(self._cumulative[called] * np.exp(log_term))
        return float(total)

    @cached_property
    def _cumulative(self) -> Float:
        """Mass of at most M positives at every point."""
        return np.cumsum(self.masses, axis=0)

    def quantile(self, n: int, s: int, probability: float) -> float:
        """The y with P(Y_L(n, s) ≤ y | data) = probability."""
        low, high = -1.0, 1.0
        while self.cdf_at_logit(n, s, low) > probability:
            low *= 2
        while self.cdf_at_logit(n, s, high) < probability:
            high *= 2

        def excess(z: float) -> float:
            """How far the CDF is above its target."""
            return self.cdf_at_logit(n, s, z) - probability

        return float(expit(brentq(excess, low, high, xtol=1e-13)))

    def mean(self, n: int, s: int) -> float:
        """E[Y_L(n, s) | data], θ by the trapezoid rule in logit θ, where the integrand is analytic."""
        (a, b), individuals = self.theta_shapes, self.individuals
        step = 1.5 / math.sqrt(individuals + a + b + 16)
        u = np.arange(-50 / a, 50 / b, step)
        one = (a + np.arange(individuals + 1))[:, None]
        two = a + b + individuals - one
        density = step * np.exp(one * log_expit(u) + two * log_expit(-u) - betaln(one, two))
        kept = self.masses.sum(axis=1) @ density > 1e-19
        against, shift = np.exp(-u[kept, None]), np.clip(self.log_odds_shift(n, s), -600, 600)
        total = 0.0
        for points in _blocks(shift.size):
            conditional = density[:, kept].T @ self.masses[:, points]
            total += float(np.sum(conditional / (1 + against * np.exp(-shift[points]))))
        return total


@dataclass(frozen=True, eq=False)
class _Points:
    """Points (p, q) of a rule with the log of their prior mass, the prior including those of known status."""

    log_p: Float
    log_not_p: Float
    log_q: Float
    log_not_q: Float
    log_mass: Float

    def at(self, chosen: Any) -> _Points:
        """Some of the points."""
        columns = (self.log_p, self.log_not_p, self.log_q, self.log_not_q, self.log_mass)
        return _Points(*(column[chosen] for column in columns))


@lru_cache(maxsize=12)
def score_law(counts: CountTable, prior: Prior, step: float) -> ScoreLaw:
    """The posterior on a product rule, good for the score of any (n, s) with n up to about 50."""
    posterior = ExactPosterior(counts, prior)
    log_p, log_not_p, mass_p = _rate_rule(posterior.shapes[1], step)
    log_q, log_not_q, mass_q = _rate_rule(posterior.shapes[2], step)
    i, j = np.nonzero(_worth_keeping(posterior, np.add.outer(mass_p, mass_q)))
    points = _Points(log_p[i], log_not_p[i], log_q[j], log_not_q[j], mass_p[i] + mass_q[j])
    return _law_on(posterior, points)


@lru_cache(maxsize=4)
def band_law(counts: CountTable, prior: Prior, order: int, n: int, s: int, z: float) -> ScoreLaw:
    """The posterior on a rule for this (n, s) however large n, for the CDF at logit y = z (the mean: z = 0).

    Y_L jumps from 0 to 1 where λ(p, q) = ψ(q) − ψ̃(p) crosses a band around z, with ψ(q) = s log(1 − q) +
    (n − s) log q and ψ̃(p) = s log p + (n − s) log(1 − p). So for each p the q axis is cut at the band; and
    the p axis where the band leaves the square. Gauss–Legendre in log p and in log q between the cuts.
    """
    posterior = ExactPosterior(counts, prior)
    turn = min(0.5, max(1 - s / n, 1e-300))
    leaves = np.array([_psi(n, s, math.log(q)) - z for q in {turn, 0.5}])
    cuts_p = np.unique(_band_cuts(n, n - s, leaves, _COARSE_CUTS, posterior.shapes[1][0]))
    log_p, mass_p = (column[0] for column in _panel_rule(cuts_p[None], posterior.shapes[1], order))
    kept = _worth_keeping(posterior, mass_p)
    log_p, mass_p = log_p[kept], mass_p[kept]
    cuts_q = _band_cuts(n, s, z + _psi(n, n - s, log_p), _CUTS, posterior.shapes[2][0])
    log_q, mass_q = _panel_rule(cuts_q, posterior.shapes[2], order)
    log_mass = mass_p[:, None] + mass_q
    i, j = np.nonzero(_worth_keeping(posterior, log_mass))
    log_p, log_q = log_p[i], log_q[i, j]
    log_not_p, log_not_q = np.log1p(-np.exp(log_p)), np.log1p(-np.exp(log_q))
    return _law_on(posterior, _Points(log_p, log_not_p, log_q, log_not_q, log_mass[i, j]))


def _worth_keeping(posterior: ExactPosterior, log_mass: Float) -> NDArray[np.bool_]:
    """Whether a point of this prior mass can matter: no likelihood exceeds 1."""
    return log_mass - posterior.log_evidence_of_unknown > _NEGLIGIBLE


def _law_on(posterior: ExactPosterior, points: _Points) -> ScoreLaw:
    """Posterior masses on the points of a rule, without those that are negligible."""
    kept, masses = [], []
    for block in _blocks(points.log_p.size):
        chosen, mass = _block_masses(posterior, points.at(block))
        kept.append(chosen + block.start)
        masses.append(mass)
        if sum(some.size for some in masses) > _MOST_MASSES:
            raise ArithmeticError("the law of the score needs too many points")
    left = points.at(np.concatenate(kept))
    mass = np.hstack(masses)
    return ScoreLaw(posterior.shapes[0], mass, left.log_p, left.log_not_p, left.log_q, left.log_not_q)


def _block_masses(posterior: ExactPosterior, points: _Points) -> tuple[Integer, Float]:
    """Which points matter, and their posterior masses."""
    cells = posterior.unknown
    s, misses = cells.s[:, None], (cells.n - cells.s)[:, None]
    negative = s * points.log_p + misses * points.log_not_p
    positive = s * points.log_not_q + misses * points.log_q
    # An upper bound of each point's mass: the mixture θA + (1 − θ)B is at most max(A, B).
    most = cells.weight @ np.maximum(negative, positive) + points.log_mass - posterior.log_evidence_of_unknown
    chosen = np.flatnonzero(most > _NEGLIGIBLE)
    mass = _called_coefficients(cells.weight.tolist(), negative[:, chosen], positive[:, chosen])
    mass *= posterior._prevalence_factor[:, None] * np.exp(most[chosen])
    heavy = mass.sum(axis=0) > math.exp(_NEGLIGIBLE)
    return chosen[heavy], mass[:, heavy]


def _blocks(size: int) -> list[slice]:
    """Slices of at most 4096 points, which stay in the processor's cache."""
    return [slice(start, min(size, start + 4096)) for start in range(0, max(size, 1), 4096)]


def _rate_rule(shapes: tuple[float, float], step: float) -> tuple[Float, Float, Float]:
    """log r, log(1 − r) and log prior mass at r = ½ / (1 + exp(−π sinh v)), v = … −step, 0, step …"""
    a, b = shapes
    v = step * np.arange(-math.floor(6.5 / step), math.floor(6.5 / step) + 1)
    w = math.pi * np.sinh(v)
    log_rate = log_expit(w) - math.log(2)
    log_not_rate = np.log1p(-np.exp(log_rate))
    log_derivative = log_expit(-w) + np.log(math.pi * step * np.cosh(v))  # of log r
    log_mass = a * log_rate + (b - 1) * log_not_rate + log_derivative - log_half_beta(mpmath.fp, a, b)
    return log_rate, log_not_rate, log_mass


def _psi(n: int, s: int, log_q: Any) -> Any:
    """ψ(q) = s log(1 − q) + (n − s) log q, which rises up to q = 1 − s/n and then falls."""
    return s * np.log1p(-np.exp(log_q)) + (n - s) * log_q


def _band_cuts(n: int, s: int, shift: Float, cuts: Float, a: float) -> Float:
    """Per row, sorted log q up to log ½: where ψ(q) − shift is one of the cuts, and some always there."""
    least, most = max(-690.0, -50 / a), math.log(0.5)  # q^a is negligible below the first
    turn = float(np.clip(np.log(max(1 - s / n, 1e-300)), least, most))
    always = np.concatenate([np.log(np.arange(1, 9) / 16), np.arange(least, -3, 3), [turn]])
    rows = [np.broadcast_to(always, (shift.size, always.size))]
    targets = np.add.outer(shift, cuts)
    for left, right in ((least, turn), (turn, most)):
        if left < right:
            rows.append(_solve_monotone(n, s, targets, left, right))
    return np.sort(np.concatenate(rows, axis=1), axis=1)


def _solve_monotone(n: int, s: int, targets: Float, left: float, right: float) -> Float:
    """The log q of [left, right] where ψ(q) is nearest to its target, by bisection."""
    low, high = np.full(targets.shape, left), np.full(targets.shape, right)
    rising = _psi(n, s, right) > _psi(n, s, left)
    for _ in range(60):
        middle = (low + high) / 2
        too_far = (_psi(n, s, middle) > targets) == rising
        low, high = np.where(too_far, low, middle), np.where(too_far, middle, high)
    return low


def _panel_rule(cuts: Float, shapes: tuple[float, float], order: int) -> tuple[Float, Float]:
    """log r and log prior mass at Gauss–Legendre nodes between neighbouring cuts of log r, per row."""
    a, b = shapes
    x, weights = np.polynomial.legendre.leggauss(order)
    width = np.diff(cuts, axis=1)[:, :, None]
    log_rate = (cuts[:, :-1, None] + width * (x + 1) / 2).reshape(len(cuts), -1)
    with np.errstate(divide="ignore"):  # cuts may coincide
        log_weight = np.log(width * weights / 2).reshape(len(cuts), -1)
    log_not_rate = np.log1p(-np.exp(log_rate))
    return log_rate, a * log_rate + (b - 1) * log_not_rate + log_weight - log_half_beta(mpmath.fp, a, b)


def _called_coefficients(weights: list[int], log_negative: Float, log_positive: Float) -> Float:
    """Coefficients in x of Π (B + A x)^weight / max(A, B)^weight, per point."""
    coefficients = np.zeros((sum(weights) + 1, log_negative.shape[1]))
    coefficients[0] = 1
    degree = 0
    for weight, negative, positive in zip(weights, log_negative, log_positive, strict=True):
        largest = np.maximum(negative, positive)
        b, a = np.exp(negative - largest), np.exp(positive - largest)
        for _ in range(weight):
            degree += 1
            coefficients[1 : degree + 1] = b * coefficients[1 : degree + 1] + a * coefficients[:degree]
            coefficients[0] *= b
    return coefficients


def _converged(laws: Iterator[ScoreLaw], value: Callable[[ScoreLaw], float], tol: float) -> float:
    """The value on the first rule that agrees with the one before it and has a total mass of 1."""
    values = [math.nan]
    for law in laws:
        values.append(value(law))
        if abs(values[-1] - values[-2]) <= tol and abs(law.masses.sum() - 1) <= tol:
            return values[-1]
    raise ArithmeticError(f"no agreement within {tol}: {values[1:]}")


def _laws(counts: CountTable, prior: Prior, n: int, s: int, z: float) -> Iterator[ScoreLaw]:
    """Ever finer rules, of the kind that suits the number of replicates."""
    if n <= _PRODUCT_RULE:
        return _product_laws(counts, prior)
    return (band_law(counts, prior, order, n, s, z) for order in _ORDERS)


def _product_laws(counts: CountTable, prior: Prior) -> Iterator[ScoreLaw]:
    """Ever finer product rules."""
    return (score_law(counts, prior, step) for step in _STEPS)


def _with_new(counts: CountTable, n: int, s: int) -> CountTable:
    """The data and a new individual of unknown status: the posterior reweighted by its mixture."""
    return counts + CountTable([n], [s])


def expected_score(
    counts: CountTable, n: int, s: int, prior: Prior = DEFAULT_PRIOR, tol: float = 1e-12
) -> float:
    """The paper's E[Y_L(n, s) | data] for any n and s."""
    return _converged(_laws(counts, prior, n, s, 0.0), lambda law: law.mean(n, s), tol)


def score_cdf(
    counts: CountTable, n: int, s: int, y: float, prior: Prior = DEFAULT_PRIOR, tol: float = 1e-10
) -> float:
    """P(Y_L(n, s) ≤ y | data)."""
    z = float(logit(y))
    return _converged(_laws(counts, prior, n, s, z), lambda law: law.cdf_at_logit(n, s, z), tol)


def score_quantile(
    counts: CountTable, n: int, s: int, probability: float, prior: Prior = DEFAULT_PRIOR, tol: float = 1e-10
) -> float:
    """The y with P(Y_L(n, s) ≤ y | data) = probability, for n up to about 50."""
    return _converged(_product_laws(counts, prior), lambda law: law.quantile(n, s, probability), tol)


def prediction_cdf(
    counts: CountTable, n: int, s: int, y: float, prior: Prior = DEFAULT_PRIOR, tol: float = 1e-10
) -> float:
    """P(Y_L(n, s) ≤ y) under the posterior reweighted by the new individual's own mixture."""
    return score_cdf(_with_new(counts, n, s), n, s, y, prior, tol)


def prediction_quantile(
    counts: CountTable, n: int, s: int, probability: float, prior: Prior = DEFAULT_PRIOR, tol: float = 1e-10
) -> float:
    """The quantile that belongs to `prediction_cdf`."""
    return score_quantile(_with_new(counts, n, s), n, s, probability, prior, tol)


# ---------------------------------------------------------------------------------------------------------
# Brute force
# ---------------------------------------------------------------------------------------------------------

RateFunction = Callable[[Float, Float, Float], Any]


def brute_force(
    counts: CountTable,
    function: RateFunction,
    prior: Prior = DEFAULT_PRIOR,
    nodes: int = 48,
    theta_below: Callable[[Float, Float], Float] | None = None,
) -> float:
    """∫ function(θ, p, q) · L · prior over the cube, θ up to `theta_below(p, q)` if given.

    Gauss–Legendre in asin √θ and in the fourth roots of p and q, and the likelihood as it is written in the
    paper: only for a handful of individuals, and no expansion.
    """
    x, weights = np.polynomial.legendre.leggauss(nodes)
    unit = (x + 1) / 2
    rate = 0.5 * unit**4
    log_rate_weight = np.log(weights / 2 * 2 * unit**3)
    p, q = rate[:, None, None], rate[None, :, None]
    most = 1.0 if theta_below is None else theta_below(p, q)
    largest = np.arcsin(np.sqrt(most))
    theta = np.sin(largest * unit) ** 2
    cosine2 = np.cos(largest * unit) ** 2
    (a_t, b_t), fp, fn = prior
    log_density = (a_t - 0.5) * np.log(theta) + (b_t - 0.5) * np.log(cosine2) - betaln(a_t, b_t)
    log_density = log_density + _log_truncated_beta(p, *fp) + _log_truncated_beta(q, *fn)
    volume = weights * largest * np.exp(log_rate_weight[:, None, None] + log_rate_weight[:, None])
    density = np.exp(log_density) * _likelihood(counts, theta, p, q)
    return float(np.sum(volume * density * function(theta, p, q)))


def _log_truncated_beta(rate: Float, a: float, b: float) -> Float:
    """Log density of a Beta truncated to (0, ½)."""
    normaliser = betaln(a, b) + np.log(betainc(a, b, 0.5))
    return (a - 1) * np.log(rate) + (b - 1) * np.log1p(-rate) - normaliser


def _likelihood(counts: CountTable, theta: Float, p: Float, q: Float) -> Float:
    """Π [θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)], one individual after the other."""
    product = np.ones(np.broadcast_shapes(theta.shape, p.shape, q.shape))
    for n, s, weight, known in zip(counts.n, counts.s, counts.weight, counts.known, strict=True):
        positive = (known != 0) * theta * (1 - q) ** s * q ** (n - s)
        negative = (known != 1) * (1 - theta) * p**s * (1 - p) ** (n - s)
        product = product * (positive + negative) ** weight
    return product


# ---------------------------------------------------------------------------------------------------------
# Golden values
# ---------------------------------------------------------------------------------------------------------

"""Values from two other methods. Some cases hold real data, so the file stays outside the project."""


@dataclass(frozen=True)
class Golden:
    """One case of golden.json: data, prior, and what two methods agreed on."""

    counts: CountTable
    prior: Prior
    log_evidence: float
    means: Float
    sds: Float
    quantiles: dict[str, dict[float, float]]  # by rate, then by probability
    scores: list[tuple[int, int, float]]


def golden(name: str) -> Golden:
    """A case of the reference posteriors."""
    case = golden_values()[name]
    n, s, weight = np.transpose(case["table_n_s_w"])
    shapes = case["prior"]
    prior = Prior(*((shapes[f"a_{rate}"], shapes[f"b_{rate}"]) for rate in ("T", "FP", "FN")))
    quantiles = {
        rate: {float(probability): x for probability, x in case["quantiles"][letter].items()}
        for rate, letter in zip(NAMES, ("theta", "p", "q"), strict=True)
    }
    means, sds = (np.array([case[key][x] for x in ("theta", "p", "q")]) for key in ("mean", "sd"))
    scores = [(int(n), int(s), y) for n, s, y in case["scores"]]
    return Golden(CountTable(n, s, weight), prior, case["log_evidence"], means, sds, quantiles, scores)
