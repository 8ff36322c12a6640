"""The model: rates, priors, the likelihood, and the score of one individual when the rates are known.

::

    T ~ Bernoulli(θ)                      θ  prevalence
    S | T = 0 ~ Binomial(n, p)            p  false-positive rate
    S | T = 1 ~ Binomial(n, 1 − q)        q  false-negative rate
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, xlog1py, xlogy

from binreps.counts import CountTable, whole_numbers
from binreps.errors import DataError, OptionError

Float = NDArray[np.float64]

NAMES = ("prevalence", "false_positive", "false_negative")
"""The three rates, in the order used everywhere: θ, p, q."""

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
    """Beta priors of the three rates; those of the error rates are truncated to (0, ½).

    Each is a pair of shapes (a, b), both > 0.

    Examples
    --------
    >>> Prior(prevalence=(1, 9)).false_positive
    (2.0, 2.0)
    """

    prevalence: tuple[float, float] = (0.5, 0.5)
    false_positive: tuple[float, float] = (2.0, 2.0)
    false_negative: tuple[float, float] = (2.0, 2.0)

    def __post_init__(self) -> None:
        for name in NAMES:
            object.__setattr__(self, name, _shapes(name, getattr(self, name)))

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """The shapes of θ, p, q, in this order."""
        return iter((self.prevalence, self.false_positive, self.false_negative))


def _shapes(name: str, pair: object) -> tuple[float, float]:
    """Two positive finite numbers."""
    try:
        a, b = (float(shape) for shape in pair)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"the prior of {name} must be a pair of shapes (a, b), got {pair!r}") from None
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise OptionError(f"the prior of {name} must have finite shapes > 0, got {(a, b)}")
    return a, b


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


def log_class_likelihoods(counts: CountTable, p: Any, q: Any) -> tuple[Float, Float]:
    """Per cell, log of p^s(1−p)^(n−s) and of (1−q)^s q^(n−s); −∞ where a known status excludes the class.

    p and q are numbers, or arrays that broadcast against a leading axis of cells.
    """
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    shape = (-1,) + (1,) * max(p.ndim, q.ndim)
    s, misses, known = (v.reshape(shape) for v in (counts.s, counts.n - counts.s, counts.known))
    negative, positive = _log_powers(s, misses, p), _log_powers(misses, s, q)
    if counts.has_known:
        negative = np.where(known == 1, -np.inf, negative)
        positive = np.where(known == 0, -np.inf, positive)
    return negative, positive


def _log_powers(k: NDArray[np.int64], m: NDArray[np.int64], x: Float) -> Float:
    """k log x + m log(1−x), with 0 log 0 = 0."""
    if np.all((x > 0) & (x < 1)):  # the usual case: one logarithm for all cells
        return np.asarray(k * np.log(x) + m * np.log1p(-x))
    return np.asarray(xlogy(k, x) + xlog1py(m, -x))


def log_likelihood(counts: CountTable, rates: Rates) -> float:
    """log L = Σ w log[θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)], without binomial coefficients.

    An individual of known status contributes its own class's term only.

    Examples
    --------
    >>> round(log_likelihood(CountTable([3], [1]), Rates(0.4, 0.1, 0.2)), 6)
    -2.790345
    """
    theta, p, q = rates
    negative, positive = log_class_likelihoods(counts, p, q)
    with np.errstate(divide="ignore"):
        mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
    return float(np.dot(counts.weight, mixture)) if len(counts) else 0.0
