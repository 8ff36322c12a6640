"""The log posterior of (θ, p, q): its value, its derivatives, and its exact maximisation step.

Everything happens in (θ, p, q) with steps taken in logits. There the objective's derivatives come from
the expectation step (Louis' identity) without any singularity::

    y = P(T = 1 | s; θ, p, q) for each cell,   α_p = a_FP − 1 + Σ w s (1−y),   β_p = b_FP − 1 + Σ w (n−s)(1−y)
    gradient:  α − rate · (α + β)              for each rate
    Hessian:   Σ w y(1−y) v vᵀ − diag((α + β) rate (1 − rate)),   v = (1, −(s − np), (n−s) − nq)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from binreps.counts import CountTable
from binreps.fits.point.bounds import bounds_of, per_rate
from binreps.model import ALIKE, Float, Prior


class State(NamedTuple):
    """One point of a climb, or many side by side (a second axis), with the expectation step done there."""

    rates: Float  # θ, p, q
    objective: Any  # −∞ where these rates cannot have produced the data
    positive: Float  # y per cell
    negative: Float  # 1 − y per cell, kept apart: it may be far below the rounding of y
    alpha: Float  # per rate
    beta: Float


class Objective:
    """Log posterior of (θ, p, q) for one count table and prior."""

    def __init__(self, counts: CountTable, prior: Prior) -> None:
        self.counts = counts
        self.bounds = bounds_of(prior.region)
        self.shapes = np.array(list(prior)) - 1  # a − 1, b − 1 per rate
        self.weight = counts.weight.astype(float)
        self.s = counts.s.astype(float)
        self.misses = (counts.n - counts.s).astype(float)
        w, ws, wm, none = self.weight, self.weight * self.s, self.weight * self.misses, 0 * self.weight
        self._sums = np.block([[w, none], [none, ws], [wm, none], [none, w], [none, wm], [ws, none]])

    def at(self, rates: Float) -> State:
        """The objective and the expectation step at (θ, p, q)."""
        theta, p, q = rates
        negative, positive = ALIKE.log_classes(self.counts, p, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            negative, positive = negative + np.log1p(-theta), positive + np.log(theta)
            mixture = np.logaddexp(negative, positive)
            y, z = np.exp(positive - mixture), np.exp(negative - mixture)
        if np.isneginf(mixture).any():
            y, z = np.nan_to_num(y), np.nan_to_num(z)
        alpha, beta = self.completed_counts(y, z)
        return State(rates, _added_up(self.weight, mixture) + self.log_prior(rates), y, z, alpha, beta)

    def log_prior(self, rates: Float) -> Any:
        """(a−1) log r + (b−1) log(1−r), added up over the three rates."""
        a, b = per_rate(self.shapes.T, rates)
        return np.sum(xlogy(a, rates) + xlog1py(b, -rates), axis=0)

    def completed_counts(self, y: Float, z: Float) -> tuple[Float, Float]:
        """The Beta exponents of each rate once the statuses are filled in: θ^α (1−θ)^β and so on.

        y and z are the chances of either status, per cell (and per point, along a second axis).
        """
        exponents = np.einsum("ik,k...->i...", self._sums, np.concatenate([y, z]))
        a, b = per_rate(self.shapes.T, exponents)
        return exponents[:3] + a, exponents[3:] + b

    def maximisation(self, alpha: Float, beta: Float, current: Float) -> Float:
        """The exact M-step: the maximiser of α log r + β log(1−r), summed over the rates, in the region.

        With α = β = 0 it is flat and the rate stays where it is, if that is in the region.
        """
        return self.bounds.maximiser(alpha, beta, current)

    def residual(self, state: State) -> float:
        """How far the M-step moves any rate."""
        return float(np.max(np.abs(self.maximisation(state.alpha, state.beta, state.rates) - state.rates)))

    def gradient(self, state: State) -> Float:
        """Derivatives in logit θ, logit p, logit q."""
        return state.alpha - state.rates * (state.alpha + state.beta)

    def hessian(self, state: State) -> Float:
        """Second derivatives in logit θ, logit p, logit q (Louis' identity)."""
        _, p, q = state.rates
        s, misses, weight = (per_rate(x, state.positive) for x in (self.s, self.misses, self.weight))
        n = s + misses
        v = np.stack([np.ones_like(state.positive), n * p - s, misses - n * q])
        missing = np.einsum("ik...,jk...->...ij", v * (weight * state.positive * state.negative), v)
        complete = (state.alpha + state.beta) * state.rates * (1 - state.rates)
        return np.asarray(missing - np.eye(3) * np.moveaxis(complete, 0, -1)[..., None])


def _added_up(weight: Float, values: Float) -> Any:
    """Σ weight × values over the first axis; einsum, because BLAS starts threads for less than they cost."""
    return np.einsum("k,k...->...", weight, values)
