"""What a prior says of one rate alone, the restriction of the error rates included; and draws from it.

Below ½ each error rate is a Beta law cut there. Where p + q < 1 the law of p is
Beta(p; a, b) I_{1−p}(c, d) / P(p + q < 1), with the shapes (c, d) of the other rate: what is left of p when q
is integrated out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, expit, logit, xlog1py, xlogy

from binreps.model import NAMES, Float, Prior
from binreps.region import Shapes, cut_panels, log_betainc, log_cut_density, log_cut_masses

_THETA, _P, _Q = NAMES
_STEPS = 80  # within a panel: Newton's need about six, halvings of the longest panel sixty


def end_of(prior: Prior, name: str) -> float:
    """The largest value that a rate can have."""
    return 1.0 if name == _THETA else prior.region.end


def density(prior: Prior, name: str, x: ArrayLike) -> Float:
    """The prior density of one rate, 0 outside its support; infinite at an end where it diverges.

    Examples
    --------
    >>> density(Prior(), "false_positive", [0.25, 0.5, 0.75])
    array([2.25, 3.  , 0.  ])
    >>> density(Prior(better_than_chance=True), "false_positive", [0.25, 0.5, 0.75]).round(4)
    array([1.8984, 1.5   , 0.3516])
    """
    value = np.asarray(x, dtype=float)
    a, b = getattr(prior, name)
    possible = (value >= 0) & (value <= end_of(prior, name))
    inside = np.where(possible, value, 0.5)
    if name == _THETA or not prior.better_than_chance:
        log_share = 0.0 if name == _THETA else log_betainc(a, b, np.array(0.5))
        found = np.exp(xlogy(a - 1, inside) + xlog1py(b - 1, -inside) - betaln(a, b) - log_share)
        return np.where(possible, found, 0.0)
    own, other = _pair(prior, name)
    y = logit(np.clip(inside, 1e-300, 1 - 2.0**-53))
    log_value = log_cut_density((a - 1, b - 1), other, y) - prior.region.log_mass(own, other)
    return np.where(possible, np.exp(log_value), 0.0)


def cumulative(prior: Prior, name: str, x: ArrayLike) -> Float:
    """The prior probability that one rate is at most x.

    Examples
    --------
    >>> cumulative(Prior(), "false_positive", [0.25, 0.5])
    array([0.3125, 1.    ])
    >>> cumulative(Prior(better_than_chance=True), "false_positive", [0.25, 0.5, 1.0]).round(4)
    array([0.2881, 0.75  , 1.    ])
    """
    value = np.clip(np.asarray(x, dtype=float), 0.0, end_of(prior, name))
    a, b = getattr(prior, name)
    if name == _THETA:
        return np.asarray(betainc(a, b, value))
    if prior.better_than_chance:
        return _cut_cumulative(*_pair(prior, name), value)
    most = float(betainc(a, b, 0.5))
    if most == 0:  # all of it squeezed against ½
        return np.asarray((2 * value) ** a)
    return np.asarray(betainc(a, b, value) / most)


def quantile(prior: Prior, name: str, probability: ArrayLike) -> Float:
    """The inverse of `cumulative`.

    Examples
    --------
    >>> quantile(Prior(), "false_positive", 0.3125).round(6)
    np.float64(0.25)
    >>> quantile(Prior(better_than_chance=True), "false_positive", [0.0, 0.75, 1.0]).round(6)
    array([0. , 0.5, 1. ])
    """
    u = np.asarray(probability, dtype=float)
    a, b = getattr(prior, name)
    if name != _THETA and prior.better_than_chance:
        return _cut_quantile(*_pair(prior, name), u)
    end = end_of(prior, name)
    return np.asarray(np.minimum(betaincinv(a, b, u * betainc(a, b, end)), end))


def draws(prior: Prior, size: int, rng: np.random.Generator) -> Float:
    """Independent draws of θ, p, q in rows: p by its own law, then q given p.

    Examples
    --------
    >>> theta, p, q = draws(Prior(better_than_chance=True), 1000, np.random.default_rng(1))
    >>> bool(np.all(p + q < 1)), bool(np.any(q > 0.5))
    (True, True)
    """
    theta, p = (quantile(prior, name, rng.random(size)) for name in (_THETA, _P))
    u = rng.random(size)
    if not prior.better_than_chance:
        return np.stack([theta, p, quantile(prior, _Q, u)])
    c, d = prior.false_negative
    return np.stack([theta, p, np.minimum(betaincinv(c, d, u * betainc(c, d, 1 - p)), 1 - p)])


def _pair(prior: Prior, name: str) -> tuple[Shapes, Shapes]:
    """The shapes of an error rate, and those of the other."""
    return (
        (prior.false_positive, prior.false_negative)
        if name == _P
        else (prior.false_negative, prior.false_positive)
    )


def _panels(own: Shapes, other: Shapes) -> tuple[Float, Float, float]:
    """Ends of panels in logits, the share of the law below each, and the log of the whole."""
    ends, log_masses = cut_panels(own, other)
    log_whole = float(np.logaddexp.reduce(log_masses))
    return ends, np.concatenate([[0.0], np.cumsum(np.exp(log_masses - log_whole))]), log_whole


def _cut_cumulative(own: Shapes, other: Shapes, x: Float) -> Float:
    """The share of `log_cut_density` up to x: whole panels, and the piece of the last one."""
    ends, below, log_whole = _panels(own, other)
    y = np.clip(logit(x), ends[0], ends[-1])
    k = np.clip(np.searchsorted(ends, y, side="right") - 1, 0, ends.size - 2)
    piece = np.exp(log_cut_masses(own, other, ends[k], y) - log_whole)
    return np.asarray(np.minimum(below[k] + piece, 1.0))


def _cut_quantile(own: Shapes, other: Shapes, u: Float) -> Float:
    """The inverse of `_cut_cumulative`: the panel, then Newton's steps within it, or halvings."""
    ends, below, log_whole = _panels(own, other)
    k = np.clip(np.searchsorted(below, u, side="right") - 1, 0, ends.size - 2)
    low, high, wanted = ends[k], ends[k + 1], np.maximum(u - below[k], 0.0)
    y = (low + high) / 2
    for _ in range(_STEPS):
        excess = np.exp(log_cut_masses(own, other, ends[k], y) - log_whole) - wanted
        low, high = np.where(excess < 0, y, low), np.where(excess < 0, high, y)
        slope = np.maximum(np.exp(log_cut_density(own, other, y) - log_whole), 1e-300)
        newton = y - np.clip(excess / slope, -3000.0, 3000.0)
        before, y = y, np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if np.all(np.abs(y - before) <= 1e-13 * (1 + np.abs(y))):
            break
    return np.asarray(np.where(u <= 0, 0.0, np.where(u >= 1, 1.0, expit(y))))
