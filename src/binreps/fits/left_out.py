"""What the others say of each individual: leave-one-out densities, exactly on nodes, smoothed on draws.

By Bayes' theorem the predictive density of a record x given all others is 1/E[1/L(x)], the mean over the
posterior of all. On draws the largest 1/L are replaced by quantiles of a generalised Pareto law fitted
to them (Vehtari, Simpson, Gelman, Yao and Gabry, 2024); its shape k̂ says how far the mean can be trusted:
above 0.7 it cannot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from binreps.model import Float

TRUSTED = 0.7
"""The shape k̂ up to which a smoothed mean can be trusted."""

_FEWEST = 20  # draws in a tail that a law is fitted to
_AT_ONCE = 2_000_000  # numbers held while laws are fitted


class LeftOut(NamedTuple):
    """The log predictive density of every record of the data, each left out in turn.

    Attributes
    ----------
    n, s, known, weight : ndarray
        The records and how many individuals have each.
    density : ndarray
        log 1/E[1/L] of one individual of each record, for its readings in their order.
    error : ndarray
        Its numerical error.
    shape : ndarray
        k̂ of the smoothing; NaN where nothing was smoothed.
    total_error : float
        The numerical error of the sum over individuals.
    """

    n: Any
    s: Any
    known: Any
    weight: Any
    density: Float
    error: Float
    shape: Float
    total_error: float

    @property
    def total(self) -> float:
        """The sum over individuals."""
        return float(self.weight @ self.density)

    @property
    def doubtful(self) -> int:
        """Individuals whose density cannot be trusted, by k̂."""
        return int(self.weight[self.shape > TRUSTED].sum())

    @classmethod
    def exact(cls, records: Any, density: Float, error: Float) -> LeftOut:
        """Those of records that were integrated."""
        parts = (records.n, records.s, records.known, records.weight, density, error)
        return cls(*parts, np.full(density.size, np.nan), float(records.weight @ error))

    @staticmethod
    def joined(parts: list[LeftOut]) -> LeftOut:
        """Those of several populations, one after the other."""
        columns: Any = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:-1]]
        return LeftOut(*(*columns, sum(part.total_error for part in parts)))


def smoothed(log_likelihood: Float) -> tuple[Float, Float]:
    """log 1/E[1/L] of each record from draws (records, draws), and k̂.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> density, shape = smoothed(np.log(rng.beta(8, 2, size=(1, 4000))))
    >>> (abs(density - np.log(7 / 9)) < 0.01).tolist(), (shape < 0.7).tolist()  # E[1/L] = 9/7
    ([True], [True])
    """
    draws = log_likelihood.shape[1]
    tail = int(min(np.ceil(0.2 * draws), np.ceil(3 * np.sqrt(draws))))
    density, shape = np.empty(len(log_likelihood)), np.empty(len(log_likelihood))
    step = max(1, _AT_ONCE // max(draws, (30 + int(np.sqrt(tail))) * tail))
    for start in range(0, len(log_likelihood), step):
        some = slice(start, start + step)
        density[some], shape[some] = _smoothed(log_likelihood[some].astype(float), tail)
    return density, shape


def _smoothed(log_likelihood: Float, tail: int) -> tuple[Float, Float]:
    """The same of some records, with so many draws in the tail."""
    if tail < _FEWEST:
        return -_log_mean(-log_likelihood), np.full(len(log_likelihood), np.inf)
    order = np.partition(log_likelihood, tail, axis=1)  # the smallest likelihoods are the largest ratios
    order[:, :tail].sort(axis=1)
    ratios = order[:, :1] - order  # log of 1/L, relative to the largest: ≤ 0, decreasing in the tail
    cut = np.exp(ratios[:, tail : tail + 1])
    above = np.maximum(np.exp(ratios[:, :tail]) - cut, 0.0)[:, ::-1]  # increasing
    shape, scale = pareto(above)
    place = (np.arange(tail) + 0.5) / tail
    smooth = _quantile(place, shape[:, None], scale[:, None]) + cut
    fitted = np.log(np.minimum(smooth, 1.0))[:, ::-1]
    flat = ~np.isfinite(shape)
    ratios[:, :tail] = np.where(flat[:, None], ratios[:, :tail], fitted)
    weighed = _log_mean(ratios + order)  # Σ w L
    return weighed - _log_mean(ratios), np.where(flat, -np.inf, shape)


def pareto(above: Float) -> tuple[Float, Float]:
    """Shape and scale of the generalised Pareto law of increasing numbers ≥ 0, row by row.

    The posterior mean of Zhang and Stephens (2009), the shape drawn to ½ as if by ten more numbers;
    −∞ where all numbers are 0.
    """
    size = above.shape[1]
    some = above[:, -1] > 0
    shape, scale = np.full(len(above), -np.inf), np.zeros(len(above))
    x = above[some]
    points = 30 + int(np.sqrt(size))
    quarter = np.maximum(x[:, int(size / 4 + 0.5) - 1], 1e-12 * x[:, -1])
    grid = (1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))) / 3
    theta = 1 / x[:, -1:] + grid / quarter[:, None]
    each = np.log1p(-theta[:, :, None] * x[:, None, :]).mean(axis=2)
    profile = size * (np.log(-theta / each) - each - 1)
    weight = np.exp(profile - profile.max(axis=1, keepdims=True))
    mean = (weight * theta).sum(axis=1) / weight.sum(axis=1)
    k = np.log1p(-mean[:, None] * x).mean(axis=1)
    shape[some], scale[some] = (k * size + 5) / (size + 10), -k / mean
    return shape, scale


def _quantile(place: Float, shape: Float, scale: Float) -> Float:
    """Quantiles of the generalised Pareto law."""
    some = np.where(np.isfinite(shape), shape, 1.0)
    safe = np.where(np.abs(some) < 1e-9, 1e-9, some)
    return np.asarray(scale * np.expm1(-safe * np.log1p(-place)) / safe)


def _log_mean(logs: Float) -> Float:
    """log of the mean of exponentials, row by row."""
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).mean(axis=1)) + top[:, 0])
