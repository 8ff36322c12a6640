"""What the region of the error rates means for a climb: the maximisation step, and where steps must end.

In logits both regions have straight borders: logit p ≤ 0 and logit q ≤ 0, or logit p + logit q ≤ 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit, logit

from binreps.model import Float
from binreps.region import BETTER_THAN_CHANCE, HALF, Region

_HIGH = (0.57, 0.69, 0.81, 0.91, 0.97)  # with the low ones of the scan, pairs that add up to just below 1


class Bounds(ABC):
    """A region of the error rates as a climb meets it; rates are θ, p, q along the first axis."""

    @abstractmethod
    def maximiser(self, alpha: Float, beta: Float, current: Float) -> Float:
        """Where in the region Σ α log r + β log(1−r) is largest; a rate in which it is flat stays."""

    @abstractmethod
    def held(self, rates: Float, gradient: Float) -> Any:
        """Which rates are at a bound of their own that the gradient presses against."""

    @abstractmethod
    def slope(self, rates: Float, gradient: Float) -> Any:
        """How hard the gradient presses against a border that p and q share; 0 where it does not."""

    @abstractmethod
    def moved(self, rates: Float, step: Float) -> Float:
        """The rates after a step in logits, or after the part of it that leads onto the border.

        Cutting back only the rate that would cross is no ascent where rates depend on each other.
        """

    @abstractmethod
    def cut(self, rates: Float, kept: Any) -> Float:
        """The rates moved into the region, the given one kept."""

    @abstractmethod
    def scanned(self, low: Float) -> Float:
        """Pairs (p, q) to scan, made of low rates in ascending order; pairs are along the second axis."""


class BelowHalf(Bounds):
    """p ≤ ½, q ≤ ½."""

    _upper = np.array([1.0, 0.5, 0.5])

    def maximiser(self, alpha: Float, beta: Float, current: Float) -> Float:
        """As `Bounds` says: each rate on its own.

        With β ≤ 0 < α or β < 0 the function increases up to the bound [E4].
        """
        inside = beta > 0
        upper = per_rate(self._upper, alpha)
        step = np.minimum(alpha / np.where(inside, alpha + beta, 1.0), upper)
        if inside.all():
            return np.asarray(step)
        return np.where(inside, step, np.where((alpha == 0) & (beta == 0), current, upper))

    def held(self, rates: Float, gradient: Float) -> Any:
        """As `Bounds` says."""
        return (rates >= per_rate(self._upper, gradient)) & (gradient > 0)

    def slope(self, rates: Float, gradient: Float) -> Any:
        """As `Bounds` says: no border is shared."""
        del rates, gradient
        return 0.0

    def moved(self, rates: Float, step: Float) -> Float:
        """As `Bounds` says."""
        upper = per_rate(self._upper, rates)
        room = np.where(upper < 1, -logit(rates), np.inf)  # logit ½ = 0
        crossing = (step > room) & (room > 0)
        part = np.min(np.where(crossing, room / np.where(crossing, step, 1.0), 1.0), axis=0)
        moved = np.where(crossing & (part * step >= room), upper, expit(logit(rates) + part * step))
        return np.asarray(np.minimum(moved, upper))

    def cut(self, rates: Float, kept: Any) -> Float:
        """As `Bounds` says: no rate limits another."""
        del kept
        return rates

    def scanned(self, low: Float) -> Float:
        """As `Bounds` says."""
        return _pairs(low)


class BelowTheDiagonal(Bounds):
    """p + q ≤ 1. Exponents of the maximisation step are ≥ 0 here: smaller shapes have no mode."""

    def maximiser(self, alpha: Float, beta: Float, current: Float) -> Float:
        """As `Bounds` says.

        The function is concave: where the rates' own maxima lie beyond the border, the maximum is on it, and
        with q = 1 − p the exponents of p and 1 − q add up.
        """
        total = alpha + beta
        flat = total == 0
        theta, p, q = np.where(flat, current, alpha / np.where(flat, 1.0, total))
        p = np.where(flat[1], np.minimum(p, 1 - np.where(flat[2], 0.0, q)), p)
        q = np.where(flat[2] & ~flat[1], np.minimum(q, 1 - p), q)
        beyond = p + q > 1
        border = (alpha[1] + beta[2]) / np.where(beyond, total[1] + total[2], 1.0)
        p = np.where(beyond, border, p)
        return np.stack([theta, p, np.where(beyond, 1 - p, q)])

    def held(self, rates: Float, gradient: Float) -> Any:
        """As `Bounds` says: a rate ends at 1, in infinity."""
        del gradient
        return np.zeros(rates.shape, bool)

    def slope(self, rates: Float, gradient: Float) -> Any:
        """As `Bounds` says."""
        pressed = _on_the_diagonal(rates) & (rates[1] > 0) & (rates[2] > 0)
        return np.where(pressed, np.maximum((gradient[1] + gradient[2]) / 2, 0.0), 0.0)

    def moved(self, rates: Float, step: Float) -> Float:
        """As `Bounds` says."""
        along = step[1] + step[2]
        flat = np.abs(along) <= 1e-9 * (np.abs(step[1]) + np.abs(step[2]))  # but for rounding
        inside = ~_on_the_diagonal(rates)
        with np.errstate(invalid="ignore"):  # at p = 0, q = 1
            room = np.where(inside, -logit(rates[1]) - logit(rates[2]), 0.0)
        crossing = np.where(inside, along > room, flat | (along > 0))
        part = np.where(
            crossing & inside, np.maximum(room, 0.0) / np.where(crossing & inside, along, 1.0), 1.0
        )
        theta, p, q = expit(logit(rates) + part * step)
        return np.stack([theta, p, np.where(crossing, 1 - p, np.minimum(q, 1 - p))])

    def cut(self, rates: Float, kept: Any) -> Float:
        """As `Bounds` says."""
        theta, p, q = rates
        below_p, below_q = np.minimum(q, 1 - p), np.minimum(p, 1 - q)
        return np.stack([theta, np.where(kept == 2, below_q, p), np.where(kept == 1, below_p, q)])

    def scanned(self, low: Float) -> Float:
        """As `Bounds` says: also rates near 1, as far from it as the low ones are from 0."""
        high = np.broadcast_to(per_rate(np.array(_HIGH), low), (len(_HIGH), *low.shape[1:]))
        pairs = _pairs(np.concatenate([low, high, 1 - 2 * low[:1]]))
        inside = (pairs.sum(axis=0) < 1).reshape(pairs.shape[1], -1)
        return pairs[:, inside[:, 0]]  # the same ones for any low rates


def bounds_of(region: Region) -> Bounds:
    """The bounds of a region."""
    return _OF[region]


def per_rate(values: Any, like: Float) -> Any:
    """Values per rate, the last axis, shaped to act on `like`, whose first axis is the rates."""
    return values.reshape(values.shape + (1,) * (like.ndim - 1))


def _on_the_diagonal(rates: Float) -> Any:
    """Whether p + q = 1, but for rounding."""
    return rates[1] + rates[2] >= 1 - 2.0**-48


def _pairs(each: Float) -> Float:
    """All pairs of rates, along a new first axis."""
    p, q = np.broadcast_arrays(each[:, None], each)
    return np.stack([p, q]).reshape(2, -1, *each.shape[1:])


_OF: dict[Region, Bounds] = {HALF: BelowHalf(), BETTER_THAN_CHANCE: BelowTheDiagonal()}
