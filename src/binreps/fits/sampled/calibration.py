"""How sure readings of one individual may make us: a discount learned without truth, and gold beside it.

Readings of one individual depend on each other given its status: some items are difficult, some readers
copy. Each reading then counts as a part of an independent one, and known statuses say what is left to mend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from binreps.counts import UNKNOWN
from binreps.model import Float
from binreps.readings import Readings

_PART = 0.7  # of the learned discount: what everyone misreads passes for the other class, and is not seen
_LEAST = 0.1
_LOOKED_AT = 100_000  # entries that the discount is learned from
_SURE = 1e-15  # a probability this near 0 or 1 is no nearer
_SHIFT_SD, _SLOPE_SD = 1.0, 0.5  # of the prior of shift and log slope


@dataclass(frozen=True)
class Calibration:
    """What becomes of the log odds of readings, and of the score that follows.

    logit score = shift + slope × logit of the mean of expit(logit θ + discount × ℓ).

    Attributes
    ----------
    discount : float
        As how much of an independent reading each counts; 1 if they are independent.
    shift, slope : float
        Learned from known statuses; 0 and 1 where there are none.
    """

    discount: float = 1.0
    shift: float = 0.0
    slope: float = 1.0

    @property
    def by_gold(self) -> bool:
        """Whether known statuses moved the scores."""
        return (self.shift, self.slope) != (0.0, 1.0)

    def moved(self, scores: Any) -> Any:
        """Scores as known statuses would have them."""
        if not self.by_gold:
            return scores
        inside = np.clip(scores, _SURE, 1 - _SURE)
        return np.asarray(expit(self.shift + self.slope * logit(inside)))

    def moved_error(self, scores: Any, error: Any) -> Any:
        """How far an error of the scores before takes them."""
        if not self.by_gold:
            return error
        here = self.moved(scores)
        ends = (self.moved(np.clip(scores + sign * error, 0.0, 1.0)) for sign in (-1, 1))
        return np.max([np.abs(end - here) for end in ends], axis=0)

    def __str__(self) -> str:
        if self.discount == 1 and not self.by_gold:
            return "readings of one individual are taken to be independent given its status"
        gold = "; known statuses recalibrate the scores" if self.by_gold else ""
        part = f"{self.discount:.2f}".lstrip("0")
        return f"each reading counts as {part} of an independent one{gold}"


def learned_discount(readings: Readings, odds: Float, negative: Float, positive: Float) -> float:
    """The discount max(.1, .7 w), w best at saying each reading from the others of the same individual.

    w maximises Σ log[π P(x | 1) + (1−π) P(x | 0)] over (0, 1], π the probability of being positive by the
    other readings with their log likelihood ratio times w. Nobody of known status counts, nor anyone with
    one reading; if none is left, readings are taken to be independent.

    Parameters
    ----------
    readings : Readings
    odds : ndarray
        The log odds of being positive before any reading, of each record.
    negative, positive : ndarray
        log P(answer | T) of each source, by code.
    """
    own = np.flatnonzero((readings.known == UNKNOWN) & (readings.sizes[0] > 1))
    if not own.size:
        return 1.0
    entries = int(np.diff(readings.start)[own].sum())
    own = own[:: max(1, -(-entries // _LOOKED_AT))]
    some = readings.take(own)
    times = np.ones(some.code.size) if some.times is None else some.times
    said = (positive - negative)[some.code]
    others = np.bincount(some.row, said * times, len(some))[some.row] - said
    before = odds[own][some.row]
    weight = times * some.weight[some.row]

    def value(w: float) -> float:
        now = before + w * others
        both = np.logaddexp(now + positive[some.code], negative[some.code]) - np.logaddexp(now, 0.0)
        return float(weight @ both)

    return max(_LEAST, _PART * _best(value))


def _best(value: Any) -> float:
    """Where a smooth function of (0, 1] is largest, to a thousandth: a coarse look, then golden sections."""
    at = np.linspace(0.1, 1.0, 10)
    place = int(np.argmax([value(x) for x in at]))
    low, high = float(at[max(place - 1, 0)]) if place else 0.0, float(at[min(place + 1, at.size - 1)])
    ratio = (np.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    there = value(left), value(right)
    while high - low > 1e-3:
        if there[0] > there[1]:
            high, right = right, left
            left = high - ratio * (high - low)
            there = value(left), there[0]
        else:
            low, left = left, right
            right = low + ratio * (high - low)
            there = there[1], value(right)
    return 1.0 if high == 1.0 else (low + high) / 2


def learned_from_gold(scores: Float, status: Any, weight: Any) -> tuple[float, float]:
    """Shift and slope of the logit of scores that known statuses ask for, at the mode.

    P(T = 1) = expit(a + b logit score), a ~ N(0, 1), log b ~ N(0, ½²).
    """
    x = logit(np.clip(scores, _SURE, 1 - _SURE))
    place, precision = np.zeros(2), np.array([_SHIFT_SD, _SLOPE_SD]) ** -2.0

    def value(at: Float) -> float:
        z = at[0] + np.exp(at[1]) * x
        return float(weight @ (status * z - np.logaddexp(0.0, z)) - precision @ at**2 / 2)

    for _ in range(50):
        rows = np.stack([np.ones_like(x), np.exp(place[1]) * x])
        chance = expit(place[0] + rows[1])
        gradient = rows @ (weight * (status - chance)) - precision * place
        information = (rows * (weight * chance * (1 - chance))) @ rows.T + np.diag(precision)
        step = np.linalg.solve(information, gradient)
        while value(place + step) < value(place) and np.abs(step).max() > 1e-9:
            step = step / 2
        place = place + step
        if np.abs(step).max() < 1e-9:
            break
    return float(place[0]), float(np.exp(place[1]))
