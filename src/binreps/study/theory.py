"""Closed forms for the average and the median score when the rates are known.

Everything follows from one remark. A score acts on an individual with n replicates as a single test would,
with error rates of its own::

    average   p and q,              conditional variances p(1−p)/n and q(1−q)/n
    median    δ(n, p) and δ(n, q),  conditional variances γ(n, p) and γ(n, q)

Neither score is defined without a replicate: at n = 0 its moments and decisions are NaN, and means over
individuals leave n = 0 out. Those means cost the number of distinct n, never the number of individuals.

Tails are incomplete beta functions, of p for negative individuals and of q for positive ones, never of 1 − q:
small probabilities keep their relative accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, xlog1py, xlogy

from binreps.counts import whole_numbers
from binreps.errors import DataError, OptionError
from binreps.model import TIE, Float, Rates
from binreps.options import check_kind, kinds_checked

Int = NDArray[np.int64]
Score = Literal["average", "median"]

SCORES: tuple[Score, ...] = ("average", "median")
"""The two scores that need no rates."""

_SMALL_CENTRAL = np.array([comb(2 * m, m) / 4**m for m in range(16)])


# ------------------------------------------------------------------------------------------- primitives


@kinds_checked
def majority_probability(n: ArrayLike, chance: ArrayLike) -> Any:
    """Probability that most of n replicates are positive: u(n, a) = P(Bin(n, a) > n/2).

    Parameters
    ----------
    n : array_like of whole numbers
        Replicates.
    chance : array_like
        Chance a that one replicate is positive; it broadcasts with n.

    Returns
    -------
    float or ndarray
        The relative error stays below 1e-11 up to n = 10⁶, tails included. u(0, a) = 0.

    Examples
    --------
    >>> majority_probability([1, 2, 3], 0.1).round(3)
    array([0.1  , 0.01 , 0.028])
    """
    n_values, a = _at_chance(n, chance)
    return _plain(_at_least(n_values // 2 + 1, n_values, a))


@kinds_checked
def tie_probability(n: ArrayLike, chance: ArrayLike) -> Any:
    """Probability that exactly half of n replicates are positive: v(n, a) = P(Bin(n, a) = n/2).

    v(2m, a) = C(2m, m) [a(1−a)]^m, and 0 for odd n; parameters and accuracy as in `majority_probability`.
    v(0, a) = 1.

    Examples
    --------
    >>> tie_probability([1, 2, 4], 0.5)
    array([0.   , 0.5  , 0.375])
    """
    return _plain(_tie(*_at_chance(n, chance)))


@kinds_checked
def median_mean(n: ArrayLike, chance: ArrayLike) -> Any:
    """Mean of the median score of n replicates: δ(n, a) = u(n, a) + v(n, a)/2.

    δ(n, a) = I_a(m, m) with m = ⌈n/2⌉ and I the regularised incomplete beta function, so that
    δ(2m, a) = δ(2m−1, a): the replicate that makes n even adds nothing to the mean. Parameters and accuracy
    as in `majority_probability`; NaN at n = 0.

    Examples
    --------
    >>> median_mean([0, 1, 2, 3, 4], 0.1).round(3)
    array([  nan, 0.1  , 0.1  , 0.028, 0.028])
    """
    return _plain(_delta(*_at_chance(n, chance)))


@kinds_checked
def median_variance(n: ArrayLike, chance: ArrayLike) -> Any:
    """Variance of the median score of n replicates: γ(n, a) = u(1−u) + v(1−v)/4 − uv = δ(1−δ) − v/4.

    γ(n, a) = γ(n, 1−a). Parameters and accuracy as in `majority_probability`; NaN at n = 0.

    Examples
    --------
    >>> median_variance([1, 2, 3], 0.1).round(4)
    array([0.09  , 0.045 , 0.0272])
    """
    return _plain(_gamma(*_at_chance(n, chance)))


def _delta(n: Int, a: Any) -> Float:
    """δ on checked arrays; at n = 1 and 2 it is a itself, without rounding."""
    half = (np.maximum(n, 1) + 1) // 2
    return np.where(n > 2, betainc(half, half, a), np.where(n > 0, a, np.nan))


def _gamma(n: Int, a: Any) -> Float:
    """γ on checked arrays."""
    return _delta(n, a) * _delta(n, 1 - a) - _tie(n, a) / 4


def _tie(n: Int, a: Any) -> Float:
    """v on checked arrays: C(2m, m)/4^m times [4a(1−a)]^m, neither of which overflows."""
    m = n // 2
    even: Float = _central(m) * np.exp(_log_power(m, np.asarray(a)))
    return np.where(n % 2 == 0, even, 0 * even)


def _log_power(m: Int, a: Float) -> Float:
    """m log[4a(1−a)], where 4a(1−a) = 1 − (1−2a)² is best near a = ½."""
    product = 4 * a * (1 - a)
    return np.where(product < 0.5, xlogy(m, product), xlog1py(m, -((1 - 2 * a) ** 2)))


def _central(m: Int) -> Float:
    """C(2m, m)/4^m: exact for small m, Stirling's series beyond (lgamma would lose digits)."""
    x = 1 / np.maximum(m, _SMALL_CENTRAL.size)
    series = -x / 8 + x**3 / 192 - x**5 / 640 + x**7 * 17 / 14336 - x**9 * 31 / 18432
    large = np.sqrt(x / np.pi) * np.exp(series)
    return np.where(m < _SMALL_CENTRAL.size, _SMALL_CENTRAL[np.minimum(m, _SMALL_CENTRAL.size - 1)], large)


def _at_least(k: Any, n: Int, a: Any) -> Float:
    """P(Bin(n, a) ≥ k) = I_a(k, n−k+1) for k ≥ 1."""
    inside: Float = betainc(np.maximum(k, 1), np.maximum(n - k, 0) + 1, a)
    return np.where(k > n, 0 * inside, inside)


# ---------------------------------------------------------------------------------- scores and estimates


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of a score, numbers or arrays."""

    mean: Any
    variance: Any


@dataclass(frozen=True, eq=False)
class EstimateError:
    """Bias and variance of an estimate, numbers or arrays.

    Examples
    --------
    >>> EstimateError(bias=0.3, variance=0.16).root_mean_square
    0.5
    """

    bias: Any
    variance: Any

    @property
    def root_mean_square(self) -> Any:
        """√(bias² + variance)."""
        return _plain(np.sqrt(np.square(self.bias) + self.variance))


@kinds_checked
def score_moments(n: ArrayLike, rates: Rates, *, score: Score, status: int | None = None) -> Moments:
    """Mean and variance of the average or median score of n replicates.

    ::

        E(Y_A|T) = T(1−q) + (1−T)p              Var(Y_A|T) = [T q(1−q) + (1−T)p(1−p)]/n
        E(Y_M|T) = T δ(n,1−q) + (1−T) δ(n,p)    Var(Y_M|T) = T γ(n,1−q) + (1−T) γ(n,p)
        Var(Y) = θ(1−θ)[E(Y|1) − E(Y|0)]² + θ Var(Y|1) + (1−θ) Var(Y|0)

    Parameters
    ----------
    n : array_like of whole numbers
        Replicates; they broadcast with the rates. NaN at n = 0.
    rates : Rates
        Numbers or arrays.
    score : {"average", "median"}
    status : 0, 1 or None
        Condition on this status; None averages over the prevalence.

    Examples
    --------
    >>> rates = Rates(0.4, 0.1, 0.2)
    >>> median = score_moments(3, rates, score="median")
    >>> round(median.mean, 4), round(median.variance, 4)
    (0.3752, 0.2344)
    >>> score_moments(3, rates, score="average", status=0).mean
    0.1
    """
    if status not in (None, 0, 1):
        raise OptionError(f"status must be 0, 1 or None, got {status!r}")
    check_kind("rates", rates, Rates)
    theta, p, q = rates
    p, q, variance_0, variance_1 = _as_one_test(whole_numbers("n", n), p, q, score)
    if status == 0:
        return Moments(_plain(p), _plain(variance_0))
    if status == 1:
        return Moments(_plain(1 - q), _plain(variance_1))
    mean = theta * (1 - q) + (1 - theta) * p
    return Moments(_plain(mean), _plain(_marginal_variance(theta, p, q, variance_0, variance_1)))


@kinds_checked
def prevalence_error(
    n: ArrayLike, rates: Rates, *, score: Score, weight: ArrayLike | None = None
) -> EstimateError:
    """Bias and variance of the prevalence estimated by the mean of the average or median scores.

    ::

        bias(θ̂_A) = p − θ(p+q)            bias(θ̂_M) = δ̄(p) − θ[δ̄(p) + δ̄(q)]
        Var(θ̂_A) = {θ(1−θ)(1−p−q)² + [θq(1−q) + (1−θ)p(1−p)]/ñ} / N
        Var(θ̂_M) = {θ(1−θ) mean[(1−δ(n,p)−δ(n,q))²] + θγ̄(1−q) + (1−θ)γ̄(p)} / N

    with bars and `mean` over the N individuals that have a replicate, and ñ their `harmonic_mean`. Erratum
    E7: the paper prints (1−q+p) and (1−δ̄(q)+δ̄(p)), unsquared, in the variances.

    Parameters
    ----------
    n : array_like of whole numbers
        Replicates of each individual, or distinct values with a weight.
    rates : Rates
        Numbers or arrays; the result has their shape.
    score : {"average", "median"}
    weight : array_like of whole numbers, optional
        How many individuals each n stands for; 1 each if not given.

    Examples
    --------
    >>> error = prevalence_error([3, 5], Rates(0.4, 0.1, 0.2), score="average", weight=[10**9, 10**9])
    >>> round(error.bias, 3)
    -0.02
    """
    check_kind("rates", rates, Rates)
    theta, p, q = rates
    n_values, weights = _distinct(n, weight, np.broadcast(theta, p, q).ndim)
    p, q, variance_0, variance_1 = _as_one_test(n_values, p, q, score)
    bias = _mean(p - theta * (p + q), weights)
    variance = _mean(_marginal_variance(theta, p, q, variance_0, variance_1), weights) / weights.sum()
    return EstimateError(_plain(bias), _plain(variance))


@kinds_checked
def harmonic_mean(n: ArrayLike, *, weight: ArrayLike | None = None) -> float:
    """Harmonic mean ñ = N / Σ(1/n) of the replicates of the N individuals that have any; NaN if none has.

    Examples
    --------
    >>> harmonic_mean([1, 3, 0]), harmonic_mean([1, 3], weight=[10, 10])
    (1.5, 1.5)
    """
    n_values, weights = _distinct(n, weight)
    return float(1 / _mean(_inverse(n_values), weights))


@kinds_checked
def median_more_biased(
    n: ArrayLike, false_positive: ArrayLike, false_negative: ArrayLike, *, weight: ArrayLike | None = None
) -> tuple[Any, Any]:
    """The open interval J of prevalences for which the median score is more biased than the average.

    Its ends, sorted, are (p−δ̄(p)) / [(p−δ̄(p)) + (q−δ̄(q))] and (p+δ̄(p)) / [(p+δ̄(p)) + (q+δ̄(q))]. Between
    them |bias(θ̂_M)| > |bias(θ̂_A)|; outside them the median is less biased.

    Parameters
    ----------
    n, weight
        As in `prevalence_error`.
    false_positive, false_negative : array_like
        Error rates, at most ½.

    Returns
    -------
    low, high : float or ndarray
        Equal ends mean that J is empty, as it is for p = q. NaN means that J is undefined because the two
        biases are equal for every prevalence: no n above 2, or error rates that are both 0 or both ½.

    Examples
    --------
    >>> low, high = median_more_biased([3, 4, 5], 0.1, 0.2)
    >>> round(low, 4), round(high, 4)
    (0.2963, 0.4134)
    """
    p = _numbers("false_positive", false_positive, 0, 0.5)
    q = _numbers("false_negative", false_negative, 0, 0.5)
    n_values, weights = _distinct(n, weight, np.broadcast(p, q).ndim)
    delta_p, delta_q = _delta(n_values, p), _delta(n_values, q)
    one = _share(_mean(p - delta_p, weights), _mean(q - delta_q, weights))
    other = _share(_mean(p + delta_p, weights), _mean(q + delta_q, weights))
    return _plain(np.minimum(one, other)), _plain(np.maximum(one, other))


def _as_one_test(n: Int, p: Any, q: Any, score: Score) -> tuple[Float, Float, Float, Float]:
    """The score seen as one test: its error rates, and its variances given status 0 and 1."""
    if _checked(score) == "median":
        return _delta(n, p), _delta(n, q), _gamma(n, p), _gamma(n, q)
    defined = np.where(n > 0, 1.0, np.nan)
    return p * defined, q * defined, p * (1 - p) * _inverse(n), q * (1 - q) * _inverse(n)


def _marginal_variance(theta: Any, p: Any, q: Any, variance_0: Any, variance_1: Any) -> Float:
    """Variance over the status as well: between the two classes plus within them."""
    between = theta * (1 - theta) * (1 - p - q) ** 2
    return np.asarray(between + theta * variance_1 + (1 - theta) * variance_0)


def _inverse(n: Int) -> Float:
    """1/n, NaN at n = 0."""
    return np.where(n > 0, 1 / np.maximum(n, 1), np.nan)


def _share(x: Float, y: Float) -> Float:
    """x / (x + y), NaN where both are 0."""
    total = x + y
    return np.where(total == 0, np.nan, x / np.where(total == 0, 1.0, total))


# ------------------------------------------------------------------------------------------ classifiers


@dataclass(frozen=True, eq=False)
class Answers:
    """Probabilities of the answers 0, ½ and 1 for individuals of one status, numbers or arrays."""

    negative: Any
    inconclusive: Any
    positive: Any


@dataclass(frozen=True, eq=False)
class Performance:
    """What a classifier answers, for each status; made by `classifier_performance`.

    Examples
    --------
    >>> always_unsure = Performance(0.4, Answers(0.0, 1.0, 0.0), Answers(0.0, 1.0, 0.0))
    >>> always_unsure.sensitivity, always_unsure.risk((0.1, 1, 1, 0.1))
    (0.0, 0.1)
    """

    prevalence: Any
    given_negative: Answers
    given_positive: Answers

    @property
    def sensitivity(self) -> Any:
        """P(answer 1 | status 1); an inconclusive answer counts against it."""
        return self.given_positive.positive

    @property
    def specificity(self) -> Any:
        """P(answer 0 | status 0); an inconclusive answer counts against it."""
        return self.given_negative.negative

    def risk(self, costs: Sequence[ArrayLike]) -> Any:
        """Expected loss (1−θ)[a P(½|0) + b P(1|0)] + θ[c P(0|1) + d P(½|1)].

        Parameters
        ----------
        costs : (a, b, c, d)
            Costs ≥ 0 of: inconclusive on a negative, positive on a negative, negative on a positive,
            inconclusive on a positive. Each is a number or an array.
        """
        a, b, c, d = _four_costs(costs)
        on_negative = a * self.given_negative.inconclusive + b * self.given_negative.positive
        on_positive = c * self.given_positive.negative + d * self.given_positive.inconclusive
        return _plain((1 - self.prevalence) * on_negative + self.prevalence * on_positive)

    def misclassification(self, *, inconclusive_is_error: bool) -> Any:
        """Probability of an error, with the answer ½ counted as one or not.

        Erratum E12: the median never does worse than the average if ½ is an error, and the average never
        does worse if it is not (thresholds on either side of ½).
        """
        unsure = float(inconclusive_is_error)
        return self.risk((unsure, 1.0, 1.0, unsure))


@kinds_checked
def classifier_performance(
    n: ArrayLike, rates: Rates, *, lower: ArrayLike, upper: ArrayLike, score: Score
) -> Performance:
    """Probabilities of each answer of the double-threshold classifier Φ on the average or median score.

    Φ(y) = 0 if y < v_L, ½ if v_L ≤ y ≤ v_U, 1 if y > v_U. A threshold written as s/n, or computed to be s/n
    up to rounding, is taken as exactly s/n. NaN at n = 0.

    Parameters
    ----------
    n : array_like of whole numbers
        Replicates; they broadcast with the rates and the thresholds.
    rates : Rates
        Numbers or arrays.
    lower, upper : array_like
        Thresholds 0 < v_L ≤ v_U < 1; they need not be on either side of ½.
    score : {"average", "median"}

    Examples
    --------
    >>> rates = Rates(0.4, 0.1, 0.2)
    >>> average = classifier_performance(5, rates, lower=0.4, upper=0.6, score="average")
    >>> median = classifier_performance(5, rates, lower=0.4, upper=0.6, score="median")
    >>> round(average.sensitivity, 4), round(median.sensitivity, 4)
    (0.7373, 0.9421)
    """
    check_kind("rates", rates, Rates)
    theta, p, q = rates
    n_values = whole_numbers("n", n)
    below, within = _cuts(n_values, *_thresholds(lower, upper), score)
    given_negative = _answers(n_values, below, within, p)
    mirrored = _answers(n_values, n_values + 1 - within, n_values + 1 - below, q)  # n − S is Bin(n, q)
    return Performance(
        theta, given_negative, Answers(mirrored.positive, mirrored.inconclusive, mirrored.negative)
    )


@kinds_checked
def classifiers_coincide(n: ArrayLike, *, lower: float, upper: float) -> bool:
    """Whether the average and the median give the same answer for every s, at each of the n given.

    Examples
    --------
    >>> classifiers_coincide([5, 6], lower=0.45, upper=0.55)
    True
    >>> classifiers_coincide([5, 6], lower=0.45, upper=0.6)  # at (5, 3): ½ against 1
    False
    """
    n_values = whole_numbers("n", n)
    n_values = n_values[n_values > 0]
    thresholds = _thresholds(lower, upper)
    average, median = (_cuts(n_values, *thresholds, score) for score in SCORES)
    return bool(np.array_equal(average, median))


@kinds_checked
def coincidence_margin(n: ArrayLike) -> float:
    """How close to ½ thresholds must be for the average and the median to classify alike.

    δ_0 = 1/(2n_0) for odd n_0 = max n, and 1/(2(n_0−1)) for even n_0 > 0; NaN if no n is above 0. If
    ½ − δ_0 < v_L and v_U < ½ + δ_0, the classifiers coincide. Erratum E11: both inequalities are strict, and
    the converse is sure only if the largest odd number ≤ n_0 is among the n; `classifiers_coincide` is exact.

    Examples
    --------
    >>> coincidence_margin([2, 5, 6])
    0.1
    """
    largest = int(np.max(whole_numbers("n", n), initial=0))
    return 1 / (2 * (largest - 1 + largest % 2)) if largest else float("nan")


def _thresholds(lower: ArrayLike, upper: ArrayLike) -> tuple[Float, Float]:
    """Thresholds with 0 < lower ≤ upper < 1."""
    low, high = _numbers("lower", lower, 0, 1), _numbers("upper", upper, 0, 1)
    if not np.all((low > 0) & (low <= high) & (high < 1)):
        raise OptionError(f"thresholds must satisfy 0 < lower ≤ upper < 1, got {lower!r} and {upper!r}")
    return low, high


def _cuts(n: Int, lower: Float, upper: Float, score: Score) -> tuple[Int, Int]:
    """How many s have a score < lower, and how many a score ≤ upper."""
    if _checked(score) == "average":
        return _cut(n, lower, closed=False), _cut(n, upper, closed=True)
    # The median score takes the values 0, ½, 1 of the average of two, at s below, at and above n/2.
    below, within = _cuts(np.array(2), lower, upper, "average")
    without_tie, with_tie = (n + 1) // 2, n // 2 + 1
    return np.where(below == 1, without_tie, with_tie), np.where(within == 1, without_tie, with_tie)


def _cut(n: Int, threshold: Float, *, closed: bool) -> Int:
    """How many s in 0..n have s/n < threshold, or ≤ if closed, for a threshold strictly between 0 and 1."""
    position = n * threshold
    nearest = np.rint(position)
    position = np.where(np.abs(position - nearest) <= n * TIE, nearest, position)
    count = np.floor(position) + 1 if closed else np.ceil(position)
    # However close to 0 or 1 the threshold, s = 0 is below it and s = n above it.
    return np.asarray(np.clip(count, 1, np.maximum(n, 1)), dtype=np.int64)


def _answers(n: Int, below: Int, within: Int, a: Any) -> Answers:
    """Probabilities of S < below, below ≤ S < within and S ≥ within, for S ~ Bin(n, a)."""
    b = 1 - a
    negative, positive = _at_least(n + 1 - below, n, b), _at_least(within, n, a)
    from_above, from_below = _at_least(below, n, a), _at_least(n + 1 - within, n, b)
    # Subtract on the side of the smaller tail: the difference keeps its relative accuracy.
    between = np.where(from_above < from_below, from_above - positive, from_below - negative)
    defined = np.where(n > 0, 1.0, np.nan)
    return Answers(*(_plain(defined * part) for part in (negative, between, positive)))


# ------------------------------------------------------------------------------------------------ risks


@kinds_checked
def classifier_risk(
    n: ArrayLike,
    rates: Rates,
    costs: Sequence[ArrayLike],
    *,
    lower: ArrayLike,
    upper: ArrayLike,
    score: Score,
    weight: ArrayLike | None = None,
) -> Any:
    """Expected loss of the double-threshold classifier, averaged over individuals that have a replicate.

    The mean over individuals of `Performance.risk`; costs (1, 1, 1, 1) and (0, 1, 1, 0) give the
    misclassification with and without inconclusive answers.

    Parameters
    ----------
    n, weight
        As in `prevalence_error`.
    rates, lower, upper, score
        As in `classifier_performance`; the result has the shape of the rates, costs and thresholds.
    costs : (a, b, c, d)
        As in `Performance.risk`.

    Examples
    --------
    >>> rates = Rates(0.4, 0.1, 0.2)
    >>> round(classifier_risk([3, 4], rates, (0.2, 1, 2, 0.3), lower=0.4, upper=0.6, score="median"), 4)
    0.0741
    """
    checked = _four_costs(costs)
    low, high = _thresholds(lower, upper)
    n_values, weights = _distinct(n, weight, np.broadcast(*rates, *checked, low, high).ndim)
    performance = classifier_performance(n_values, rates, lower=low, upper=high, score=score)
    return _plain(_mean(performance.risk(checked), weights))


@kinds_checked
def risk_curve(
    n: ArrayLike, rates: Rates, inconclusive: ArrayLike, *, score: Score, weight: ArrayLike | None = None
) -> Any:
    """Risk under the symmetric loss ℓ_a as a function of a, the cost of an inconclusive answer.

    ℓ_a has costs (a, 1, 1, a) and thresholds (a, 1−a). The curve of the median is linear; that of the
    average is linear between the `risk_jumps`, where it is continuous from the left.

    Parameters
    ----------
    n, weight
        As in `prevalence_error`.
    rates : Rates
        Numbers or arrays that broadcast with `inconclusive`.
    inconclusive : array_like
        Costs a, above 0 and at most ½.
    score : {"average", "median"}

    Examples
    --------
    >>> rates = Rates(0.4, 0.35, 0.35)
    >>> [round(risk_curve(5, rates, 0.15, score=score), 3) for score in SCORES]
    [0.137, 0.235]
    """
    a = _numbers("inconclusive", inconclusive, 0, 0.5)
    if np.any(a == 0):
        raise OptionError("inconclusive must be above 0, got 0.0")
    upper = np.minimum(1 - a, np.nextafter(1, 0))  # 1 − a < 1 also where it rounds to 1
    return classifier_risk(n, rates, (a, 1.0, 1.0, a), lower=a, upper=upper, score=score, weight=weight)


@kinds_checked
def risk_jumps(n: ArrayLike) -> Float:
    """Where the risk curve of the average can jump: the attainable averages 0 < s/n < ½, sorted.

    Examples
    --------
    >>> risk_jumps([3, 4])
    array([0.25      , 0.33333333])
    """
    distinct = np.unique(whole_numbers("n", n))
    averages = [np.arange(1, (k + 1) // 2) / k for k in distinct[distinct > 0]]
    return np.unique(np.concatenate([np.zeros(0), *averages]))


# ------------------------------------------------------------------------------- arguments and averaging


def _checked(score: Score) -> Score:
    """The score, or a sentence that lists the two there are."""
    if score not in SCORES:
        raise OptionError(f'score must be "average" or "median", got {score!r}')
    return score


def _at_chance(n: ArrayLike, chance: ArrayLike) -> tuple[Int, Float]:
    """Numbers of replicates and chances, as they came, which must go together."""
    counts, chances = whole_numbers("n", n), _numbers("chance", chance, 0, 1)
    try:
        np.broadcast_shapes(counts.shape, chances.shape)
    except ValueError:
        raise OptionError(
            f"n and chance must go together, got shapes {counts.shape} and {chances.shape}"
        ) from None
    return counts, chances


def _numbers(name: str, values: ArrayLike, low: float, high: float) -> Float:
    """Numbers from low to high, NaN refused."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} must be a number or an array of numbers, got {values!r}") from None
    wrong = ~((array >= low) & (array <= high) & np.isfinite(array))
    if wrong.any():
        rule = f"between {low} and {high}" if np.isfinite(high) else f"finite and ≥ {low}"
        raise OptionError(f"{name} must be {rule}, got {array[wrong].flat[0]}")
    return array


def _four_costs(costs: Sequence[ArrayLike]) -> list[Float]:
    """The costs a, b, c, d, all ≥ 0."""
    if len(costs) != 4:
        raise OptionError(f"costs must be the four numbers (a, b, c, d), got {len(costs)}")
    return [_numbers("costs", cost, 0, np.inf) for cost in costs]


def _distinct(n: ArrayLike, weight: ArrayLike | None, ndim: int = 0) -> tuple[Int, Float]:
    """Distinct n > 0 on a leading axis before ndim others, and how many individuals have each."""
    values = np.ravel(whole_numbers("n", n))
    weights = np.ones(values.size) if weight is None else np.ravel(whole_numbers("weight", weight))
    if weights.size != values.size:
        raise DataError(f"weight must be as long as n ({values.size}), got {weights.size}")
    kept = (values > 0) & (weights > 0)
    if not kept.any():  # one individual without a replicate: NaN in every mean
        values, weights, kept = np.zeros(1, np.int64), np.ones(1), np.ones(1, bool)
    distinct, group = np.unique(values[kept], return_inverse=True)
    return distinct.reshape((-1,) + (1,) * ndim), np.bincount(group, weights[kept]).astype(float)


def _mean(values: Float, weights: Float) -> Float:
    """Mean over the leading axis, individuals counted by weight."""
    return np.asarray(np.tensordot(weights / weights.sum(), values, 1))


def _plain(values: Any) -> Any:
    """A float if there is only one."""
    return float(values) if np.ndim(values) == 0 else values
