"""The models: rates, priors, what either class makes of a record, and the score when the rates are known.

::

    T ~ Bernoulli(θ)                      θ  prevalence
    S | T = 0 ~ Binomial(n, p)            p  false-positive rate
    S | T = 1 ~ Binomial(n, 1 − q)        q  false-negative rate
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaln, expit, gammaln, logit, xlog1py, xlogy

from binreps.counts import CountTable, whole_numbers
from binreps.errors import DataError, OptionError
from binreps.options import check_kind
from binreps.region import BETTER_THAN_CHANCE, HALF, Region

Float = NDArray[np.float64]

NAMES = ("prevalence", "false_positive", "false_negative")
"""The three rates, in the order used everywhere: θ, p, q."""

CORRELATION = "intraclass_correlation"
"""The name of ρ, the correlation of two replicates of one individual whose status is given."""

_LEAST_REST = 1e-17  # of 1 − ρ: less than that rounds to ρ = 1, where chances have limits
_AT_ONCE = 20_000  # numbers at a time, so that they stay in the processor's cache
FEW = 64  # replicates up to which a product of factors is multiplied out
_FACTORS, _TINY = 8, 1e-35  # factors to one logarithm, each so large that their product is a float

TIE = 4 * float(np.finfo(float).eps)
"""A score this close to a threshold is on it: 9/11 and 1 − 2/11 are not the same double."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Prevalence and the two error rates: numbers, or arrays of equal shape (draws, quantiles).

    NaN means that a rate is undefined.

    Examples
    --------
    >>> rates = Rates(prevalence=0.3, false_positive=0.1, false_negative=0.05)
    >>> rates.sensitivity, rates.specificity
    (0.95, 0.9)
    """

    prevalence: Any
    false_positive: Any
    false_negative: Any

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            try:
                array = np.array(value, dtype=float)
            except (TypeError, ValueError, OverflowError):
                raise OptionError(f"{name} must be a number or numbers, got {value!r}") from None
            array.setflags(write=False)
            if np.any((array < 0) | (array > 1)):
                raise OptionError(f"{name} must be between 0 and 1, got {value}")
            object.__setattr__(self, name, float(array) if array.ndim == 0 else array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rates):
            return NotImplemented
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:  # of numbers; arrays are refused, as usual
        return hash(tuple(None if isinstance(rate, float) and rate != rate else rate for rate in self))

    def __iter__(self) -> Iterator[Any]:
        """The rates θ, p, q, in this order."""
        return iter((self.prevalence, self.false_positive, self.false_negative))

    @property
    def sensitivity(self) -> Any:
        """1 − q, the chance that one replicate of a positive individual is positive."""
        return 1 - self.false_negative

    @property
    def specificity(self) -> Any:
        """1 − p, the chance that one replicate of a negative individual is negative."""
        return 1 - self.false_positive


@dataclass(frozen=True)
class Prior:
    """Beta priors of the three rates, and where the error rates may lie.

    Each is a pair of shapes (a, b), both > 0. The product of those of the error rates is restricted to
    p, q < ½, as in the paper, or to p + q < 1 with `better_than_chance=True`: for a test that may miss more
    positives than it finds.

    Examples
    --------
    >>> Prior(prevalence=(1, 9)).false_positive
    (2.0, 2.0)
    >>> Prior(better_than_chance=True).region.words
    'the two error rates add up to less than 1'
    """

    prevalence: tuple[float, float] = (0.5, 0.5)
    false_positive: tuple[float, float] = (2.0, 2.0)
    false_negative: tuple[float, float] = (2.0, 2.0)
    better_than_chance: bool = False

    def __post_init__(self) -> None:
        for name in NAMES:
            object.__setattr__(self, name, checked_shapes(name, getattr(self, name)))
        if not isinstance(self.better_than_chance, bool):
            got = self.better_than_chance
            raise OptionError(f"better_than_chance must be True or False, got {got!r}")

    @property
    def region(self) -> Region:
        """Where the error rates may lie."""
        return BETTER_THAN_CHANCE if self.better_than_chance else HALF

    @property
    def log_constant(self) -> float:
        """The logarithm of what normalises the densities θ^(a−1) (1−θ)^(b−1) … over the region."""
        of_errors = self.region.log_mass(self.false_positive, self.false_negative)
        return -float(betaln(*self.prevalence)) - of_errors

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """The shapes of θ, p, q, in this order."""
        return iter((self.prevalence, self.false_positive, self.false_negative))


def checked_shapes(name: str, pair: object) -> tuple[float, float]:
    """Two positive finite numbers."""
    try:
        a, b = (float(shape) for shape in pair)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"the prior of {name} must be a pair of shapes (a, b), got {pair!r}") from None
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise OptionError(f"the prior of {name} must have finite shapes > 0, got {(a, b)}")
    return a, b


@dataclass(frozen=True, eq=False)
class Records:
    """Results that a fit is asked about: s positives among n replicates, in any order and shape.

    Examples
    --------
    >>> records = Records.of(3, [0, 1, 1])
    >>> records.distinct()
    ([(3, 0), (3, 1)], array([0, 1, 1]))
    """

    n: NDArray[np.int64]
    s: NDArray[np.int64]

    @classmethod
    def of(cls, *asked: Any) -> Records:
        """The records of n and s, or of a count table."""
        if len(asked) == 1 and isinstance(asked[0], CountTable | Records):
            return cls(asked[0].n, asked[0].s)
        if len(asked) != 2:
            raise OptionError(f"ask about n and s, or about a count table, got {len(asked)} arguments")
        return cls(*checked_pairs(*asked))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in which answers are given."""
        return self.n.shape

    def distinct(self) -> tuple[list[tuple[int, int]], NDArray[np.intp]]:
        """The keys (n, s) that differ, sorted, and which of them each record has."""
        n, s = self.n.ravel(), self.s.ravel()
        if n.max(initial=0) < 2**31:  # then one number tells pairs apart, and sorts much faster than two
            _, first, where = np.unique(n * (n + 1) // 2 + s, return_index=True, return_inverse=True)
            pairs = np.stack([n[first], s[first]])
        else:
            pairs, where = np.unique(np.stack([n, s]), axis=1, return_inverse=True)
        return [(a, b) for a, b in pairs.T.tolist()], where.ravel()


def checked_pairs(n: ArrayLike, s: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Broadcast n and s, refusing what cannot be a number of replicates and of positives."""
    n_values, s_values = whole_numbers("n", n), whole_numbers("s", s)
    try:
        n_values, s_values = np.broadcast_arrays(n_values, s_values)
    except ValueError:
        raise DataError(f"n and s must broadcast, got shapes {n_values.shape} and {s_values.shape}") from None
    if np.any(s_values > n_values):
        i = int(np.argmax(np.ravel(s_values > n_values)))
        raise DataError(
            f"s must be ≤ n, got s = {s_values.flat[i]} with n = {n_values.flat[i]} at position {i}"
        )
    return n_values, s_values


def likelihood_score(n: ArrayLike, s: ArrayLike, rates: Rates) -> Any:
    """Probability that an individual with s positives among n replicates is positive, given the rates.

    Y_L = θ(1−q)^s q^(n−s) / [θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)], computed as a logistic function of s.
    Where a rate of 0 or 1 makes both classes impossible the value is the limit as the rate gets there: the
    class with fewer impossible replicates wins, which for p = q = 0 is the median score. NaN in, NaN out.

    Parameters
    ----------
    n, s : array_like of whole numbers
        Replicates and positives; they broadcast with each other and with the rates.
    rates : Rates
        Numbers or arrays.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> likelihood_score(3, [0, 1, 2, 3], Rates(0.4, 0.1, 0.2)).round(3)
    array([0.007, 0.208, 0.905, 0.997])
    >>> likelihood_score(0, 0, Rates(0.4, 0.1, 0.2))
    0.4
    """
    check_kind("rates", rates, Rates)
    n_values, s_values = checked_pairs(n, s)
    shapes = [np.shape(rate) for rate in rates]
    try:
        np.broadcast_shapes(n_values.shape, *shapes)
    except ValueError:
        raise DataError(
            f"rates must broadcast with n and s, got shapes {shapes} and {n_values.shape}"
        ) from None
    score = score_at(n_values, s_values, *rates)
    return float(score) if np.ndim(score) == 0 else score


def score_at(n: NDArray[np.int64], s: NDArray[np.int64], theta: Any, p: Any, q: Any) -> Float:
    """`likelihood_score` on checked arrays."""
    theta, p, q = (np.asarray(rate, dtype=float) for rate in (theta, p, q))
    misses = n - s
    impossible_positive = np.where(q == 1, s, 0) + np.where(q == 0, misses, 0)
    impossible_negative = np.where(p == 0, s, 0) + np.where(p == 1, misses, 0)
    edge = np.sign(impossible_negative - impossible_positive)
    evidence = s * _log_ratio(1 - q, p) + misses * _log_ratio(q, 1 - p)
    evidence = np.select([edge > 0, edge < 0], [np.inf, -np.inf], evidence)
    settled = (theta == 0) | (theta == 1)  # then logit θ = ∓∞ decides, whatever the evidence
    score: Float = expit(np.where(settled, 0.0, evidence) + logit(theta))
    return np.where(np.isnan(p + q), np.nan, score)


def _log_ratio(above: Float, below: Float) -> Float:
    """log(above / below), leaving out whichever of the two is zero."""
    return np.log(np.where(above == 0, 1.0, above)) - np.log(np.where(below == 0, 1.0, below))


def _log_powers(k: NDArray[np.int64], m: NDArray[np.int64], x: Float) -> Float:
    """k log x + m log(1−x), with 0 log 0 = 0."""
    if np.all((x > 0) & (x < 1)):  # the usual case: one logarithm for all cells
        return np.asarray(k * np.log(x) + m * np.log1p(-x))
    return np.asarray(xlogy(k, x) + xlog1py(m, -x))


def log_rising(x: Any, rho: Any, k: NDArray[np.int64]) -> Float:
    """Σ_{j<k} log(x + jρ), for x and ρ that broadcast, along a new first axis for the entries of k."""
    x, rho = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(rho, dtype=float))
    most = int(k.max(initial=0))
    if most <= FEW:
        total, product, sums = np.zeros(x.shape), np.ones(x.shape), np.empty((k.size, *x.shape))
        at_once = _FACTORS if x.min(initial=1.0) > _TINY else 1
        for j in range(most + 1):  # one sum is held at a time
            if (here := k == j).any() or j % at_once == 0:
                total, product = total + np.log(product), np.ones(x.shape)
                sums[here] = total
            product *= x + j * rho
        return sums
    return np.asarray(k.reshape(-1, *(1,) * x.ndim) * np.log(x) + rising_rest(x, rho, k))


def rising_rest(x: Float, rho: Float, k: NDArray[np.int64]) -> Float:
    """Σ_{j<k} log(1 + jρ/x), small where ρ is.

    With z = x/ρ it is log Γ(z+k) − log Γ(z) − k log z, by Stirling's formula: no difference of large numbers.
    """
    z = np.asarray(x / np.maximum(rho, 1e-30))
    less, result = _stirling_rest(z), np.empty((k.size, *z.shape))
    size = max(1, _AT_ONCE // max(z.size, 1))
    for some in (slice(first, first + size) for first in range(0, k.size, size)):
        steps = k[some].reshape(-1, *(1,) * z.ndim).astype(float)
        u = steps / z
        result[some] = z * _log1p_less(u) + (steps - 0.5) * np.log1p(u) + _stirling_rest(z + steps) - less
    return result


def _log1p_less(u: Float) -> Float:
    """log(1 + u) − u, also where u is small."""
    small, series = np.minimum(u, 0.02), np.float64(0.0)
    for i in range(10, 1, -1):
        series = small * series + (-1) ** (i + 1) / i
    return np.where(u < 0.02, series * small**2, np.log1p(u) - u)


def log_ways(n: Any, s: Any) -> Any:
    """log of the binomial coefficient n over s."""
    return gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)


def _stirling_rest(z: Float) -> Float:
    """log Γ(z) − [(z − ½) log z − z + ½ log 2π]."""
    r = 1 / np.maximum(z, 15.0)
    square = r * r
    series = np.asarray(r * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))))
    if (few := z < 15).any():
        some = z[few]
        series[few] = gammaln(some) - (some - 0.5) * np.log(some) + some - 0.9189385332046727
    return series


class Model(ABC):
    """How replicates err: names of the parameters, where they may lie, what either class makes of a record.

    The first parameter is always the prevalence θ; the others say how replicates err.
    """

    names: ClassVar[tuple[str, ...]]
    independent: ClassVar[bool]  # whether replicates are, given the status

    @abstractmethod
    def log_classes(self, records: Any, *errors: Any) -> tuple[Float, Float]:
        """log P(s | T = 0) and log P(s | T = 1) along a new first axis, without binomial coefficients.

        −∞ where a known status excludes the class. The error parameters broadcast against each other.
        """

    @abstractmethod
    def ranges(self, n: int, starts: NDArray[np.int64], *errors: Any) -> tuple[Float, Float]:
        """P(start ≤ s < next start), given T = 0 and given T = 1, along a new last axis; the last up to n."""

    def log_shares(self, records: Any, theta: Any, *errors: Any) -> tuple[Float, Float]:
        """log (1−θ) P(s | T = 0) and log θ P(s | T = 1), along a new first axis."""
        negative, positive = self.log_classes(records, *errors)
        with np.errstate(divide="ignore"):  # a prevalence may round to 0 or 1
            return negative + np.log1p(-theta), positive + np.log(theta)

    def chance(self, key: tuple[int, int], theta: Any, *errors: Any) -> Float:
        """P(T = 1 | s) of one record at given parameters."""
        negative, positive = self.log_shares(self.record(key), theta, *errors)
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(negative[0] - positive[0])))

    def log_likelihood(self, counts: CountTable, theta: Any, *errors: Any) -> Float:
        """log L = Σ w log[θ P(s | T = 1) + (1−θ) P(s | T = 0)]."""
        mixture = np.logaddexp(*self.log_shares(counts, theta, *errors))
        return np.asarray(np.einsum("k,k...->...", counts.weight.astype(float), mixture))

    def record(self, key: tuple[int, int]) -> Records:
        """One record as records."""
        return Records(np.array([key[0]]), np.array([key[1]]))


class Alike(Model):
    """Every replicate errs alike: P(s | T = 0) = p^s (1−p)^(n−s), P(s | T = 1) = (1−q)^s q^(n−s)."""

    names: ClassVar = NAMES
    independent: ClassVar = True

    def log_classes(self, records: Any, p: Any, q: Any) -> tuple[Float, Float]:
        """As `Model` says."""
        p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        shape = (-1,) + (1,) * max(p.ndim, q.ndim)
        s, misses = (v.reshape(shape) for v in (records.s, records.n - records.s))
        return _excluding(records, _log_powers(s, misses, p), _log_powers(misses, s, q))

    def chance(self, key: tuple[int, int], theta: Any, *errors: Any) -> Float:
        """As `Model` says; also where a rate of 0 or 1 makes both classes impossible."""
        return score_at(np.int64(key[0]), np.int64(key[1]), theta, *errors)  # type: ignore[arg-type]

    def ranges(self, n: int, starts: NDArray[np.int64], p: Any, q: Any) -> tuple[Float, Float]:
        """Differences of distribution functions: n = 10⁶ neither underflows nor needs a million terms."""
        below = np.concatenate([starts[1:] - 1, [n]]).astype(float)

        def differences(chance: Float) -> Float:
            cumulative = bdtr(below, n, chance[..., None])
            cumulative[..., -1] = 1.0
            return np.maximum(np.diff(cumulative, axis=-1, prepend=0.0), 0.0)

        return differences(np.asarray(p)), differences(1 - np.asarray(q))


class Correlated(Model):
    """Replicates of one individual are correlated: s is beta-binomial, given the status.

    With mean r = p or 1 − q and intra-class correlation ρ,
    P(s) = Π_{j<s} (r(1−ρ) + jρ) · Π_{j<n−s} ((1−r)(1−ρ) + jρ) / Π_{j<n} (1−ρ + jρ). Nothing is singular at
    ρ = 0, where replicates are independent.
    """

    names: ClassVar = (*NAMES, CORRELATION)
    independent: ClassVar = False

    def log_classes(self, records: Any, p: Any, q: Any, rho: Any) -> tuple[Float, Float]:
        """As `Model` says."""
        s, misses = records.s, records.n - records.s
        rest = np.maximum(1 - np.asarray(rho, dtype=float), _LEAST_REST)
        negative = log_rising(p * rest, rho, s) + log_rising((1 - p) * rest, rho, misses)
        positive = log_rising((1 - q) * rest, rho, s) + log_rising(q * rest, rho, misses)
        common = log_rising(rest, rho, records.n)
        common = common.reshape(common.shape + (1,) * (negative.ndim - common.ndim))
        return _excluding(records, negative - common, positive - common)

    def ranges(self, n: int, starts: NDArray[np.int64], *errors: Any) -> tuple[Float, Float]:
        """Sums over every s: the draws are taken a few at a time where n is large."""
        s = np.arange(n + 1)
        records = Records(np.full(n + 1, n), s)
        ways = log_ways(n, s)
        columns = [np.atleast_1d(np.asarray(error, dtype=float)) for error in errors]
        size = max(1, 2_000_000 // (n + 1))
        found: list[list[Float]] = [[], []]
        for start in range(0, columns[0].size, size):
            some = [column[start : start + size] for column in columns]
            for each, log_class in zip(found, self.log_classes(records, *some), strict=True):
                each.append(np.add.reduceat(np.exp(log_class.T + ways), starts, axis=1))
        negative, positive = (np.concatenate(each) for each in found)
        return negative, positive


def _excluding(records: Any, negative: Float, positive: Float) -> tuple[Float, Float]:
    """The log likelihoods, −∞ for the class that a known status excludes."""
    if isinstance(records, CountTable) and records.has_known:
        known = records.known.reshape(-1, *(1,) * (negative.ndim - 1))
        return np.where(known == 1, -np.inf, negative), np.where(known == 0, -np.inf, positive)
    return negative, positive


ALIKE, CORRELATED = Alike(), Correlated()


def log_likelihood(counts: CountTable, rates: Rates) -> float:
    """log L = Σ w log[θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)], without binomial coefficients.

    An individual of known status contributes its own class's term only.

    Examples
    --------
    >>> round(log_likelihood(CountTable([3], [1]), Rates(0.4, 0.1, 0.2)), 6)
    -2.790345
    """
    check_kind("counts", counts, CountTable)
    check_kind("rates", rates, Rates)
    return float(ALIKE.log_likelihood(counts, *rates)) if len(counts) else 0.0
