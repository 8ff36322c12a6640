"""The log posterior of (θ, p, q): its value, its derivatives, and its exact maximisation step.

Everything happens in (θ, p, q) with steps taken in logits. There the objective's derivatives come from
the expectation step (Louis' identity) without any singularity::

    y = P(T = 1 | s; θ, p, q) for each cell,   α_p = a_FP − 1 + Σ w s (1−y),   β_p = b_FP − 1 + Σ w (n−s)(1−y)
    gradient:  α − rate · (α + β)              for each rate
    Hessian:   Σ w y(1−y) v vᵀ − diag((α + β) rate (1 − rate)),   v = (1, −(s − np), (n−s) − nq)

Rates, or cells, are along the first axis of every array; the points at which they are taken follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.point.bounds import Bounds, bounds_of, per_rate
from binreps.model import Float, Prior

_ROUNDING = 2.0**-49  # of a sum of some terms, relative to its size: a gradient below it points nowhere
_CLASS = np.array([[0, 1, 0], [1, 1, 0]])  # α and β of θ, p, q: positives or negatives of whom
_SUM = np.array([[0, 1, 2], [0, 2, 1]])  # individuals, positive or negative replicates are counted
_DIAGONAL = np.arange(3)
_LOG_0 = -1e290  # finite, so that 0 · log 0 = 0, and 2^53 of them are finite too


class State(NamedTuple):
    """Points of a climb, with the expectation step done there."""

    rates: Float  # θ, p, q
    objective: Any  # far below any other where these rates cannot have produced the data
    chances: Float  # y and 1 − y per cell, apart: one may be far below the rounding of the other
    exponents: Float  # α and β per rate

    def of(self, which: Any) -> State:
        """Some of the points."""
        return State(*(x[..., which] for x in self))

    def put(self, which: Any, other: State) -> None:
        """Put others in place of some of the points."""
        for x, new in zip(self, other, strict=True):
            x[..., which] = new


class Cells(NamedTuple):
    """The cells of some tables, those of each in a column; weight 0 where a table has fewer than another."""

    s: Float
    misses: Float
    weight: Float
    known: Float
    sums: Float  # w, w s and w (n−s), along an axis before the others

    @classmethod
    def of(cls, tables: Sequence[CountTable]) -> Cells:
        """The cells of each table."""
        sizes = np.array([len(table) for table in tables])
        filled = np.arange(sizes.max(initial=0)) < sizes[:, None]

        def columns(name: str, blank: int) -> Float:
            rows = np.full(filled.shape, float(blank))
            rows[filled] = np.concatenate([getattr(table, name) for table in tables])
            return np.ascontiguousarray(rows.T)

        s, weight = columns("s", 0), columns("weight", 0)
        misses = columns("n", 0) - s
        sums = np.stack([weight, weight * s, weight * misses])
        return cls(s, misses, weight, columns("known", UNKNOWN), sums)


class Objective:
    """Log posterior of (θ, p, q): of one count table at any points, or of several at one point each."""

    def __init__(self, counts: CountTable | Sequence[CountTable], prior: Prior) -> None:
        self.cells = Cells.of([counts] if isinstance(counts, CountTable) else counts)
        self.bounds: Bounds = bounds_of(prior.region)
        self.less_one = np.array(list(prior)).T - 1  # a − 1 and b − 1 of each rate
        self.any_known = bool((self.cells.known != UNKNOWN).any())

    @property
    def tables(self) -> int:
        """How many there are."""
        return int(self.cells.s.shape[1])

    def of(self, which: Any) -> Objective:
        """The objective of the given tables, one for each point; that of one is the same at all points."""
        return self if self.tables == 1 else self._with(Cells(*(x[..., which] for x in self.cells)))

    def spread(self) -> Objective:
        """The objective at several points of each table, along an axis of their own after that of tables."""
        return self._with(Cells(*(x[..., None] for x in self.cells)))

    def _with(self, cells: Cells) -> Objective:
        other = copy(self)
        other.cells = cells
        return other

    @np.errstate(divide="ignore", over="ignore")
    def at(self, rates: Float) -> State:
        """The objective and the expectation step at (θ, p, q)."""
        value, odds = self._value(rates)
        chances = _chances(odds)
        return State(rates, value, chances, self.completed_counts(chances))

    @np.errstate(divide="ignore", over="ignore")
    def value(self, rates: Float) -> Any:
        """The objective alone."""
        return self._value(rates)[0]

    def _value(self, rates: Float) -> tuple[Any, Float]:
        """The objective, and the log odds of each cell."""
        logs = _logs(rates)
        negative, positive = self._log_shares(*logs)
        odds = positive - negative
        mixture = np.maximum(negative, positive) + np.log1p(np.exp(-np.abs(odds)))
        log_prior = (per_rate(self.less_one, rates) * logs).sum(axis=(0, 1))
        return _added_up(self.cells.weight, mixture) + log_prior, odds

    @np.errstate(divide="ignore", over="ignore")
    def em_step(self, rates: Float) -> Float:
        """Where an expectation and a maximisation step lead."""
        odds = self._log_odds(*_logs(rates))
        return self.maximisation(self.completed_counts(_chances(odds)), rates)

    def _log_shares(self, log: Float, log_not: Float) -> tuple[Float, Float]:
        """log (1−θ) P(s | T = 0) and log θ P(s | T = 1) of each cell, −∞ for what a known status excludes."""
        s, misses, _, known, _ = self.cells
        negative = s * log[1] + misses * log_not[1] + log_not[0]
        positive = s * log_not[2] + misses * log[2] + log[0]
        if self.any_known:
            negative = np.where(known == 1, -np.inf, negative)
            positive = np.where(known == 0, -np.inf, positive)
        return negative, positive

    def _log_odds(self, log: Float, log_not: Float) -> Float:
        """The difference of the two, by half as many products."""
        s, misses, _, known, _ = self.cells
        odds = s * (log_not[2] - log[1])
        odds += misses * (log[2] - log_not[1])
        odds += log[0] - log_not[0]
        if self.any_known:
            odds = np.where(known == UNKNOWN, odds, np.where(known == 1, np.inf, -np.inf))
        return np.asarray(odds)

    def evidence(self, rates: Float) -> Float:
        """log P(s | T = 1) − log P(s | T = 0) of each cell."""
        even = rates.copy()
        even[0] = 0.5
        return self._log_odds(*_logs(even))

    def completed_counts(self, chances: Float) -> Float:
        """The Beta exponents once the statuses are filled in: α and β of θ^α (1−θ)^β, and of p and q."""
        sums = self.cells.sums
        if sums.shape[2:] == (1,):  # several points of one table: a product of matrices
            counts = sums[:, :, 0] @ chances
        elif sums.shape[3:] == (1,):  # of several tables: one for each
            counts = (sums[..., 0].transpose(2, 0, 1) @ chances.swapaxes(1, 2)).swapaxes(1, 2)
        else:
            counts = np.einsum("ik...,ck...->ci...", sums, chances)
        return np.asarray(counts[_CLASS, _SUM] + per_rate(self.less_one, chances[0]))

    def maximisation(self, exponents: Float, current: Float) -> Float:
        """The exact M-step: the maximiser of α log r + β log(1−r), summed over the rates, in the region.

        With α = β = 0 it is flat and the rate stays where it is, if that is in the region.
        """
        alpha, beta = exponents
        return self.bounds.maximiser(alpha, beta, current)

    def residual(self, state: State) -> Any:
        """How far the M-step moves any rate."""
        return np.abs(self.maximisation(state.exponents, state.rates) - state.rates).max(axis=0)

    def gradient(self, state: State) -> Float:
        """Derivatives in logit θ, logit p, logit q; 0 where they are rounding alone."""
        alpha, beta = state.exponents
        up, down = alpha * (1 - state.rates), beta * state.rates
        return np.where(np.abs(up - down) > _ROUNDING * (up + down), up - down, 0.0)

    def hessian(self, state: State) -> Float:
        """Second derivatives in logit θ, logit p, logit q (Louis' identity), along the first two axes."""
        s, misses, weight, _, _ = self.cells
        _, p, q = state.rates
        n = s + misses
        missing = weight * state.chances[0] * state.chances[1]
        v_p, v_q = n * p - s, misses - n * q
        m_p, m_q = missing * v_p, missing * v_q
        complete = state.exponents.sum(axis=0) * state.rates * (1 - state.rates)
        matrix = np.empty((3, *complete.shape))
        matrix[0, 0], matrix[1, 1], matrix[2, 2] = (
            missing.sum(axis=0),
            _added_up(m_p, v_p),
            _added_up(m_q, v_q),
        )
        matrix[0, 1] = matrix[1, 0] = m_p.sum(axis=0)
        matrix[0, 2] = matrix[2, 0] = m_q.sum(axis=0)
        matrix[1, 2] = matrix[2, 1] = _added_up(m_p, v_q)
        matrix[_DIAGONAL, _DIAGONAL] -= complete
        return matrix


def _logs(rates: Float) -> Float:
    """log r and log(1 − r)."""
    logs = np.empty((2, *rates.shape))
    np.log(rates, out=logs[0])
    np.log1p(-rates, out=logs[1])
    return np.maximum(logs, _LOG_0, out=logs)


def _chances(log_odds: Float) -> Float:
    """y and 1 − y from log odds, each to its own last digit: 1 / (1 + exp(∓ log odds))."""
    both = np.empty((2, *log_odds.shape))
    np.exp(log_odds, out=both[1])
    np.reciprocal(both[1], out=both[0])
    both += 1
    return np.reciprocal(both, out=both)


def _added_up(weight: Float, values: Float) -> Any:
    """Σ weight × values over the first axis; einsum, because BLAS starts threads for less than they cost."""
    return np.einsum("k...,k...->...", weight, values)
