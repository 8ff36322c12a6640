"""Draws and what they say of themselves: Beta draws in logarithms, laws of draws, errors from chains."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

from binreps.errors import FitError
from binreps.model import Float


def log_beta(a: Float, b: Float, rng: np.random.Generator) -> tuple[Float, Float]:
    """log x and log(1 − x) of x ~ Beta(a, b), without underflow however small the shapes are."""
    up, down = _log_gamma(a, rng), _log_gamma(b, rng)
    both = np.logaddexp(up, down)
    return up - both, down - both


def _log_gamma(shape: Float, rng: np.random.Generator) -> Float:
    """log of Gamma(shape) draws; Gamma(a) is Gamma(a + 1) × U^(1/a)."""
    small = shape < 1
    drawn = np.log(rng.standard_gamma(shape + small))
    if small.any():
        drawn[small] -= rng.standard_exponential(int(small.sum())) / shape[small]
    return np.asarray(drawn)


class Drawn:
    """The law of one parameter as its draws give it."""

    def __init__(self, draws: Float) -> None:
        self._draws = np.sort(draws, axis=None)

    error = 0.0
    mode = float("nan")

    def density(self, x: Any) -> Any:
        """Not to be had from draws."""
        del x
        raise FitError("draws have no density; fit_bayes has")

    def cumulative(self, x: Any) -> Any:
        """The share of draws up to x."""
        return np.searchsorted(self._draws, x, side="right") / self._draws.size

    def quantile(self, probability: Any) -> Any:
        """The quantile of the draws."""
        return np.quantile(self._draws, probability)

    def shortest(self, level: float) -> tuple[float, float]:
        """The shortest interval that holds so many of the draws."""
        held = max(int(np.ceil(level * self._draws.size)) - 1, 0)
        lengths = self._draws[held:] - self._draws[: self._draws.size - held]
        first = int(np.argmin(lengths))
        return float(self._draws[first]), float(self._draws[first + held])


def chain_error(means: Float) -> Float:
    """A 95 % bound on the error of the mean of independent chains, whose means are the last axis."""
    chains = means.shape[-1]
    spread = means.std(axis=-1, ddof=1) / np.sqrt(chains)
    return np.asarray(stdtrit(chains - 1, 0.975) * spread)


def split_rhat(draws: Float) -> Float:
    """R̂ of draws (…, chains, draws), each chain split in two; 1 where all draws are the same."""
    half = draws.shape[-1] // 2
    if half < 2:
        return np.full(draws.shape[:-2], np.inf)
    parts = np.concatenate([draws[..., :half], draws[..., -half:]], axis=-2).astype(float)
    within = parts.var(axis=-1, ddof=1).mean(axis=-1)
    between = parts.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((half - 1) / half + between / within)
    return np.where(within + between > 0, found, 1.0)
