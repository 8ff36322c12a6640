"""From a probability to an answer: what errors cost, the thresholds that follow, and the decision table.

The answers are 0 (negative), ½ (inconclusive) and 1 (positive); a null score gives a null answer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binreps.counts import is_null, whole_numbers
from binreps.errors import DataError, OptionError
from binreps.fits.base import Fit, check_one_population
from binreps.model import TIE, Float
from binreps.options import check_level, kinds_checked, real, shown
from binreps.table import Table

DECISIONS: Mapping[float, str] = MappingProxyType({0.0: "negative", 0.5: "inconclusive", 1.0: "positive"})
"""The three answers and their words, in the order used everywhere."""

_MOST_ROWS = 10**6
_NUMBER = int | float | np.integer | np.floating


class Predictor(Protocol):
    """All that decisions need of a fit: P(T = 1) for a new individual with s positives among n."""

    def predict(self, n: Any, s: Any, /) -> Any:
        """The probabilities, as an array."""


@dataclass(frozen=True)
class Loss:
    """What each wrong or inconclusive answer costs, and the best rule that follows.

    With ϑ = P(T = 1), the answers negative, inconclusive and positive cost on average cϑ, a(1−ϑ) + dϑ and
    b(1−ϑ). If a/b + d/c < 1, the cheapest is negative below a/(a+c−d), positive above (b−a)/(b−a+d) and
    inconclusive between, ends included. Otherwise an inconclusive answer never pays: positive at or above
    b/(b+c), negative below.

    Parameters
    ----------
    false_positive, false_negative : float
        The costs b and c, finite and ≥ 0.
    inconclusive : float or pair of float
        The cost of an inconclusive answer: one number, or a pair (a if truly negative, d if truly positive).

    Examples
    --------
    >>> Loss(inconclusive=0.2).thresholds
    (0.2, 0.8)
    >>> print(Loss(false_negative=9, inconclusive=(0.5, 1)))
    costs: false positive 1, false negative 9, inconclusive 0.5 (truly negative) or 1 (truly positive);
    negative below 0.0588, positive above 0.333
    """

    false_positive: float = 1.0
    false_negative: float = 1.0
    inconclusive: float | tuple[float, float] = 0.25

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative"):
            object.__setattr__(self, name, _cost(name, getattr(self, name)))
        object.__setattr__(self, "inconclusive", _inconclusive_cost(self.inconclusive))

    @property
    def inconclusive_negative(self) -> float:
        """a, the cost of an inconclusive answer for a truly negative individual."""
        return self.inconclusive[0] if isinstance(self.inconclusive, tuple) else self.inconclusive

    @property
    def inconclusive_positive(self) -> float:
        """d, the cost of an inconclusive answer for a truly positive individual."""
        return self.inconclusive[1] if isinstance(self.inconclusive, tuple) else self.inconclusive

    @property
    def allows_inconclusive(self) -> bool:
        """Whether an inconclusive answer is the cheapest for some score: a/b + d/c < 1, multiplied out."""
        a, b, c, d = self._fractions()
        return a * c + d * b < b * c

    @property
    def thresholds(self) -> tuple[float, float]:
        """Lower and upper threshold of the best rule; equal where an inconclusive answer never pays."""
        a, b, c, d = self._fractions()
        if not all((a, b, c, d)):
            advice = "to judge with a cost of 0, give `evaluate` the thresholds"
            raise OptionError(f"thresholds follow only from costs > 0, got {self!r}; {advice}")
        if self.allows_inconclusive:
            return _inside(a / (a + c - d)), _inside((b - a) / (b - a + d))
        return _inside(b / (b + c)), _inside(b / (b + c))

    def classify(self, scores: ArrayLike) -> Any:
        """The cheapest answer for each score: 0, ½ or 1; NaN where the score is null.

        As in `classify`, a score that differs from a threshold by rounding only is equal to it.

        Examples
        --------
        >>> Loss(inconclusive=0.2).classify([0.1, 0.2, 0.9])
        array([0. , 0.5, 1. ])
        >>> Loss(inconclusive=0.7).classify(0.5)
        1.0
        """
        lower, upper = self.thresholds
        if self.allows_inconclusive:
            return classify(scores, lower, upper)
        y = checked_scores(scores)
        return _scalar(np.where(np.isnan(y), np.nan, (_against(y, upper) >= 0).astype(float)))

    def words(self, scores: ArrayLike) -> Any:
        """The answers in words, None where there is no score: what tables show."""
        return decision_words(self.classify(scores))

    def risks(self, score: ArrayLike) -> Float:
        """Expected costs of the answers negative, inconclusive and positive, along a last axis of length 3.

        Examples
        --------
        >>> Loss(inconclusive=0.2).risks(0.25)
        array([0.25, 0.2 , 0.75])
        """
        y = checked_scores(score)[..., None]
        if_negative, if_positive = self._costs()
        risks: Float = (1 - y) * if_negative + y * if_positive
        return risks

    def cost(self, truth: ArrayLike, decision: ArrayLike) -> Any:
        """ℓ(t, t̂), the cost of each answer when the truth is t; NaN where either is null.

        Examples
        --------
        >>> Loss(false_negative=3).cost([0, 0, 1, 1], [0, 0.5, 0, None])
        array([0.  , 0.25, 3.  ,  nan])
        """
        parts = one_of("truth", truth, (0, 1)), one_of("decision", decision, tuple(DECISIONS))
        try:
            t, answer = np.broadcast_arrays(*parts)
        except ValueError:
            rule = "truth and decision must be as long as each other"
            raise OptionError(f"{rule}, got {parts[0].shape} and {parts[1].shape}") from None
        null = np.isnan(t + answer)
        row, column = (np.where(null, 0, index).astype(int) for index in (t, 2 * answer))
        return _scalar(np.where(null, np.nan, self._costs()[row, column]))

    def __str__(self) -> str:
        inconclusive = f"{self.inconclusive_negative:g}"
        if isinstance(self.inconclusive, tuple):
            inconclusive += f" (truly negative) or {self.inconclusive_positive:g} (truly positive)"
        costs = f"false positive {self.false_positive:g}, false negative {self.false_negative:g}"
        return f"costs: {costs}, inconclusive {inconclusive}; {self._rule_words()}"

    def _rule_words(self) -> str:
        """The best rule, in words."""
        if not all(self._fractions()):
            return "no thresholds, as a cost is 0"
        lower, upper = self.thresholds
        if self.allows_inconclusive:
            return f"negative below {lower:.3g}, positive above {upper:.3g}"
        return f"negative below {lower:.3g}, positive from there on, never inconclusive"

    def _fractions(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The costs a, b, c, d as exact fractions, so that no cost is too large or too small."""
        a, d = Fraction(self.inconclusive_negative), Fraction(self.inconclusive_positive)
        return a, Fraction(self.false_positive), Fraction(self.false_negative), d

    def _costs(self) -> Float:
        """ℓ as a matrix: truth negative, positive × answer negative, inconclusive, positive."""
        return np.array(
            [
                [0, self.inconclusive_negative, self.false_positive],
                [self.false_negative, self.inconclusive_positive, 0],
            ],
            dtype=float,
        )


def check_loss(loss: object) -> None:
    """Refuse what is no loss, such as a cost alone."""
    if not isinstance(loss, Loss):
        raise OptionError(f"loss must be a Loss, such as Loss(inconclusive=0.2), got {shown(loss)}")


@kinds_checked
def classify(scores: ArrayLike, lower: float, upper: float) -> Any:
    """Answers from given thresholds: Φ(y) = 0 if y < lower, 1 if y > upper, ½ between, ends included.

    A score that only rounding (4ε) tells from a threshold is equal to it: 9/11 is on the threshold 1 − 2/11,
    although the two floats differ.

    Parameters
    ----------
    scores : array_like
        Probabilities; a null one gives NaN.
    lower, upper : float
        0 < lower ≤ upper < 1; they need not lie on either side of ½.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> classify([0.2, 0.45, 0.55, 0.6, None], 0.45, 0.55)
    array([0. , 0.5, 0.5, 1. , nan])
    >>> classify(9 / 11, 2 / 11, 1 - 2 / 11)
    0.5
    """
    if not 0 < real(lower) <= real(upper) < 1:
        rule = "thresholds must satisfy 0 < lower ≤ upper < 1"
        raise OptionError(f"{rule}, got {shown(lower)} and {shown(upper)}")
    y = checked_scores(scores)
    cases = [np.isnan(y), _against(y, lower) < 0, _against(y, upper) > 0]
    return _scalar(np.select(cases, [np.nan, 0.0, 1.0], 0.5))


@kinds_checked
def decision_words(decisions: ArrayLike) -> Any:
    """Answers in words: "negative", "inconclusive", "positive", or None for a null one.

    Returns
    -------
    list, or str or None for a single answer

    Examples
    --------
    >>> decision_words([0, 0.5, 1, None])
    ['negative', 'inconclusive', 'positive', None]
    """
    answers = one_of("decisions", decisions, tuple(DECISIONS))
    words = np.array([*DECISIONS.values(), None], dtype=object)
    return np.asarray(words[np.where(np.isnan(answers), 3, 2 * answers).astype(int)], dtype=object).tolist()


@kinds_checked
def decision_table(
    fit: Fit, loss: Loss, replicates: int | Iterable[int], *, level: float | None = 0.9
) -> Table:
    """What to answer for the next individual, for every possible result.

    Parameters
    ----------
    fit : any fit
        Of one population. The answer uses the probability alone; a point fit gives no interval.
    loss : Loss
    replicates : int or iterable of int
        The numbers of replicates to tabulate; a single m stands for 1, …, m.
    level : float or None
        Probability that the interval holds; None leaves the intervals out, which take most of the time: for
        more than 250 results a `TakesLong` warning says so.

    Returns
    -------
    Table
        Columns n, s, probability, lower, upper, decision and expected_cost, the cost to expect from it.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([4] * 5, range(5), weight=[50, 18, 6, 9, 17]))
    >>> print(decision_table(fit, Loss(inconclusive=0.2), replicates=[2]))
    n  s  probability  lower  upper  decision      expected_cost
    2  0        0.012  0.003  0.027  negative              0.012
    2  1        0.378  0.201  0.572  inconclusive          0.200
    2  2        0.971  0.942  0.990  positive              0.029
    costs: false positive 1, false negative 1, inconclusive 0.2; negative below 0.2, positive above 0.8
    """
    if level is not None:
        check_level(level)
    check_one_population(fit)
    check_loss(loss)
    n, s = _results(replicates)
    found = fit.answers(n, s, new=True, level=level)
    probability = np.asarray(found.pop("score"), dtype=float)
    columns: dict[str, Any] = {"n": n, "s": s, "probability": probability, **found}
    columns["decision"] = decision_words(loss.classify(probability))
    columns["expected_cost"] = loss.risks(probability).min(axis=-1)  # the best rule takes the least
    return Table(columns, note=str(loss))


def _results(replicates: int | Iterable[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every (n, s) with n in replicates, refusing more than a person or a page could read."""
    if isinstance(replicates, np.ndarray) and replicates.ndim == 0:  # iterable only in name
        replicates = replicates.item()
    if isinstance(replicates, int | np.integer) and not isinstance(replicates, bool):
        replicates = range(1, int(replicates) + 1)
    if not isinstance(replicates, Iterable):
        raise OptionError(f"replicates must be a whole number or several, got {replicates!r}")
    sizes = whole_numbers("replicates", list(islice(replicates, _MOST_ROWS + 1)))
    rows = sum(sizes.tolist()) + sizes.size  # whole numbers of Python do not overflow
    if rows == 0:
        raise OptionError("replicates must name at least one number of replicates, got none")
    if rows > _MOST_ROWS:
        raise OptionError(f"replicates must give at most {_MOST_ROWS:,} rows (n, s), got {rows:,} or more")
    positives = [np.arange(size + 1) for size in sizes]
    return np.repeat(sizes, sizes + 1), np.concatenate(positives)


def numbers(name: str, values: ArrayLike) -> Float:
    """Numbers of any shape, with every kind of null as NaN."""
    try:
        array = np.asarray(values.tolist() if isinstance(values, np.ma.MaskedArray) else values)
        if array.dtype == object:
            plain = [math.nan if is_null(value) else value for value in array.flat]
            array = np.array(plain).reshape(array.shape)
    except ValueError:
        raise DataError(f"{name} must be a plain list of numbers, got lists of unequal lengths") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} must be numbers, got {array.ravel()[:3].tolist()}")
    return array.astype(float)


def one_of(name: str, values: ArrayLike, allowed: Collection[float]) -> Float:
    """Numbers that are among the allowed ones, or null."""
    array = numbers(name, values)
    wrong = ~(np.isin(array, list(allowed)) | np.isnan(array))
    if wrong.any():
        choice = ", ".join(f"{value:g}" for value in allowed)
        raise DataError(f"{name} must be {choice} or missing, got {_first(array, wrong)}")
    return array


def checked_scores(scores: ArrayLike) -> Float:
    """Scores as an array, each a probability or NaN."""
    y = numbers("scores", scores)
    wrong = (y < 0) | (y > 1)
    if wrong.any():
        raise DataError(f"scores must be between 0 and 1, got {_first(y, wrong)}")
    return y


def _against(scores: Float, threshold: float) -> Float:
    """How far each score is above (> 0) or below (< 0) a threshold; 0 if only rounding tells them apart.

    A score of exactly 0 or 1 is certain: it is on no threshold, however close.
    """
    gap = scores - threshold
    tie = TIE * min(1.0, 1e6 * threshold)  # less where the threshold is too small to be 1 − something
    return np.where((np.abs(gap) <= tie) & (scores < 1), 0.0, gap)


def _first(array: Float, wrong: NDArray[np.bool_]) -> str:
    """The first wrong value and its place."""
    position = int(np.argmax(wrong))
    return f"{array.flat[position]:g} at position {position}"


def _cost(name: str, value: object) -> float:
    """One cost, finite and ≥ 0."""
    cost = real(value)
    if not 0 <= cost < np.inf:
        raise OptionError(f"{name} must be a finite cost ≥ 0, got {shown(value)}")
    return cost


def _inconclusive_cost(value: Any) -> float | tuple[float, float]:
    """One cost, or one for each truth."""
    if isinstance(value, _NUMBER):
        return _cost("inconclusive", value)
    try:
        negative, positive = value
    except (TypeError, ValueError):
        raise OptionError(
            f"inconclusive must be one cost, or a pair (truly negative, truly positive), got {value!r}"
        ) from None
    return _cost("inconclusive", negative), _cost("inconclusive", positive)


def _inside(threshold: Fraction) -> float:
    """A threshold as a float strictly between 0 and 1, also where rounding would leave the interval."""
    return min(max(float(threshold), math.nextafter(0, 1)), math.nextafter(1, 0))


def _scalar(values: Float) -> Any:
    """A float in place of an array without dimensions."""
    return float(values) if values.ndim == 0 else values
