"""The logarithm of the posterior density, relative to a centre.

Each cell's mixture θA(q) + (1−θ)B(p) is divided by its value at the centre (θ₀, p₀, q₀) and enters as
log1p of a difference built from expm1: no rounding of the size of eps·N is left, so a table of 10⁹
individuals is integrated as precisely as one of 50.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaln

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.exact.gauss import Interval, log_beta_half
from binreps.model import ALIKE, Float, Prior

AXES = (0, 1, 2)  # θ, p, q
END = (1.0, 0.5, 0.5)  # the domain is (0, 1) for θ and (0, ½) for p and q
_MANY = 30_000  # individuals from which rounding of the size eps·N would be felt


class Density:
    """Log posterior density of (θ, p, q) without the factors that an interval's weight already carries."""

    def __init__(self, counts: CountTable, prior: Prior, centre: Float, modes: Float | None = None) -> None:
        self.modes = centre[None] if modes is None else modes  # points that a box must hold, one per row
        measured = informative(counts)
        self.counts, self.prior, self.centre = measured, prior, centre
        theta, p, q = centre
        negative, positive = ALIKE.log_classes(measured, p, q)
        mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
        self._many = measured.individuals > _MANY
        self.log_likelihood = float(measured.weight @ mixture)
        self.s, self.misses = measured.s.astype(float), (measured.n - measured.s).astype(float)
        self.weight = measured.weight.astype(float)
        self.log_a, self.log_b = positive - mixture, negative - mixture
        self.log_constant = -float(
            betaln(*prior.prevalence)
            + log_beta_half(*prior.false_positive)
            + log_beta_half(*prior.false_negative)
        )

    def interval(self, axis: int, lower: float, upper: float) -> Interval:
        """The interval with the prior's powers at the ends that it reaches."""
        a, b = tuple(self.prior)[axis]
        at_zero, at_one = lower == 0, upper == 1
        powers = (_weight_power(a) if at_zero else 0.0, _weight_power(b) if at_one else 0.0)
        return Interval(lower, upper, *powers)

    def log_prior_rest(self, axis: int, x: Any, inside: Interval) -> Any:
        """The prior's factors at x that the interval's weight does not carry."""
        a, b = tuple(self.prior)[axis]
        at_zero, at_one = a - 1 - inside.a, b - 1 - inside.b
        value = np.zeros_like(x)
        if at_zero:
            value = value + at_zero * np.log(x)
        if at_one:
            value = value + at_one * np.log1p(-x)
        return value

    def log_ratio(self, theta: Any, p: Any, q: Any) -> Float:
        """log L(θ, p, q) − log L(centre), on three arrays that broadcast and have equally many axes."""
        _, p0, q0 = self.centre
        shape = np.broadcast_shapes(theta.shape, p.shape, q.shape)
        total, buffer = np.zeros(shape), np.empty(shape)
        with np.errstate(divide="ignore"):
            p_hit, p_miss = _log_quotient(p, p0), np.log1p((p0 - p) / (1 - p0))
            q_hit, q_miss = np.log1p((q0 - q) / (1 - q0)), _log_quotient(q, q0)
            for some in _chunks(len(self.weight), max(p.size, q.size)):
                s, misses, log_a, log_b = (
                    column[some].reshape(-1, *(1,) * theta.ndim)
                    for column in (self.s, self.misses, self.log_a, self.log_b)
                )
                shares = _Shares(log_a, s * q_hit + misses * q_miss, log_b, s * p_hit + misses * p_miss)
                for k, weight in enumerate(self.weight[some].tolist()):
                    self._log_mixture(theta, shares, k, buffer)
                    buffer *= weight
                    total += buffer
        return total

    def _log_mixture(self, theta: Any, shares: _Shares, k: int, out: Float) -> None:
        """log of [θA + (1−θ)B] / [the same at the centre] for one cell."""
        if not shares.moderate[k]:
            shares.log_mixture(theta, k, out)
            return
        a, b = shares.a[k], shares.b[k]
        # On a product of rules each summand is a plane: only their sum has the size of the grid.
        if not self._many:
            np.add(theta * a, (1 - theta) * b, out=out)
            np.log(out, out=out)
            return
        theta0 = self.centre[0]
        change = theta - theta0
        np.add(change * a + theta0 * shares.da[k], (1 - theta0) * shares.db[k] - change * b, out=out)
        if out.min() > -0.5:
            np.log1p(out, out=out)
            return
        # Far below 1 the difference has lost digits that the sum still has.
        far = np.log(theta * a + (1 - theta) * b)
        np.copyto(out, np.where(out > -0.5, np.log1p(np.maximum(out, -0.5)), far))


class _Shares:
    """What each class contributes to the mixture of some cells, relative to the mixture at the centre."""

    def __init__(self, log_a: Float, to_a: Float, log_b: Float, to_b: Float) -> None:
        self.log_a, self.to_a, self.log_b, self.to_b = log_a, to_a, log_b, to_b
        at_a, at_b = log_a + to_a, log_b + to_b
        axes = tuple(range(1, at_a.ndim))
        highest = np.maximum(at_a.max(axis=axes), at_b.max(axis=axes))
        lowest = np.maximum(at_a.min(axis=axes), at_b.min(axis=axes))
        self.moderate = (highest < 300) & (lowest > -300)  # none overflows, not both underflow
        with np.errstate(over="ignore"):
            self.a, self.b = np.exp(at_a), np.exp(at_b)

    @cached_property
    def da(self) -> Float:
        """How much the positive class's share differs from the one at the centre, without cancellation."""
        return _difference(self.log_a, self.to_a, self.a)

    @cached_property
    def db(self) -> Float:
        """The same for the negative class."""
        return _difference(self.log_b, self.to_b, self.b)

    def log_mixture(self, theta: Any, k: int, out: Float) -> None:
        """The logarithm of the mixture in logarithms throughout, for extreme shares."""
        positive = np.log(theta) + self.log_a[k] + self.to_a[k]
        np.logaddexp(positive, np.log1p(-theta) + self.log_b[k] + self.to_b[k], out=out)


def _log_quotient(x: Any, centre: float) -> Any:
    """log(x / centre), exact both close to the centre and far below it."""
    change = (x - centre) / centre
    return np.where(change > -0.5, np.log1p(change), np.log(x / centre))


def _difference(log_value: Float, to: Float, value: Float) -> Float:
    """exp(log_value + to) − exp(log_value)."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.exp(log_value) * np.expm1(to)
    return np.where(log_value > -30, near, value - np.exp(log_value))


def _chunks(cells: int, nodes: int) -> Iterator[slice]:
    """Cells a few at a time, so that what is computed for all of them stays small."""
    size = max(1, 2_000_000 // max(nodes, 1))
    return (slice(start, start + size) for start in range(0, cells, size))


def _weight_power(shape: float) -> float:
    """The power of x^(shape−1) that a rule's weight carries; whole powers of a high one stay a polynomial.

    In the weight a high power would gather the nodes where the weight is, not where the mass is.
    """
    return shape - 1 if shape < 4 else shape % 1


def informative(counts: CountTable) -> CountTable:
    """The table without the cells that say nothing: no replicates and no known status."""
    kept = (counts.n > 0) | (counts.known != UNKNOWN)
    return CountTable(counts.n[kept], counts.s[kept], counts.weight[kept], counts.known[kept])
