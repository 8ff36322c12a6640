"""The law of a score: what the uncertain rates leave open, by its characteristic function.

Given p and q, z = logit Y_L is logit θ + e(p, q). Whether z is below some value jumps from node to node of a
grid, and sums of jumps converge slowly; e^{iωz} is smooth, and its expectation φ(ω) dies out while a grid
still resolves it. A few dozen equally spaced values of φ are the Fourier series of the density of z on an
interval that holds it; distribution function and quantiles follow term by term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from binreps.fits.exact.lines import ThetaLines
from binreps.model import ALIKE, Float, Records

_BLOCK = 32  # frequencies at a time
_MOST = 320  # of them
_WINDOW = 6  # φ has died out when so many values in a row have
_DEAD = 1e-7
_REVIVED = 30.0  # times the least so far: from there on the grid no longer resolves the wave
_NEGLIGIBLE = 1e-10  # of an individual's mass: a line that does not matter
_MOST_AT_ONCE = 4_000_000  # cells × lines


class Quantiles(NamedTuple):
    """Quantiles of scores, and what the terms left out may have cost; cells × probabilities each."""

    value: Float
    error: Float


class Law:
    """The laws of the scores of any cells, on one set of lines."""

    def __init__(self, lines: list[ThetaLines]) -> None:
        self._lines = lines
        self._low, self._high = _side_by_side([line.extent for line in lines], axis=0)
        self._positive, self._negative = _side_by_side([line.classes for line in lines], axis=0)
        self._p, self._q = _side_by_side([(line.p, line.q) for line in lines], axis=0)
        self._waves: dict[tuple[float, int], tuple[Float, Float]] = {}

    def quantiles(self, n: Any, s: Any, probabilities: Any, *, new: bool) -> Quantiles:
        """Quantiles of Y_L(n, s), under the posterior reweighted by the individual itself if it is new."""
        n, s = (np.asarray(x, dtype=float) for x in (n, s))
        value, error = np.empty((2, n.size, np.size(probabilities)))
        size = max(1, _MOST_AT_ONCE // self._low.size)
        for start in range(0, n.size, size):
            some = slice(start, start + size)
            value[some], error[some] = self._some(n[some], s[some], np.asarray(probabilities), new)
        return Quantiles(value, error)

    def _some(self, n: Float, s: Float, probabilities: Float, new: bool) -> Quantiles:
        """Cells that fit into memory together; those with the same period share their waves."""
        positive, negative = self._class_likelihoods(n, s)
        evidence = positive - negative
        top = np.maximum(positive.max(axis=1), negative.max(axis=1))[:, None] if new else 0.0
        weights = [np.exp(positive - top), np.exp(negative - top)] if new else None
        middle, period = self._range(evidence, weights)
        value, error = np.empty((2, n.size, probabilities.size))
        for length in np.unique(period):
            here = np.flatnonzero(period == length)
            phi = self._characteristic(
                2 * np.pi / length,
                evidence[here] - middle[here, None],
                None if weights is None else [weight[here] for weight in weights],
            )
            value[here], error[here] = _inverted(phi, length, middle[here], probabilities)
        return Quantiles(value, error)

    def _class_likelihoods(self, n: Float, s: Float) -> tuple[Float, Float]:
        """Logarithms of what the positive and the negative class make of each cell, cells × lines."""
        negative, positive = ALIKE.log_classes(Records(n, s), self._p, self._q)  # type: ignore[arg-type]
        return positive, negative

    def _range(self, evidence: Float, weights: list[Float] | None) -> tuple[Float, Float]:
        """The middle of an interval that holds each cell's z, and its length, rounded up to a power of 2."""
        low, high = self._low + evidence, self._high + evidence
        if weights is not None:
            mass = weights[0] * self._positive + weights[1] * self._negative
            light = mass < _NEGLIGIBLE * mass.sum(axis=1, keepdims=True)
            low[light], high[light] = np.inf, -np.inf
        lowest, highest = low.min(axis=1), high.max(axis=1)
        return (lowest + highest) / 2, np.exp2(np.ceil(np.log2(1.02 * (highest - lowest))))

    def _characteristic(self, step: float, evidence: Float, weights: list[Float] | None) -> Any:
        """φ at 0, step, 2 step, …: for each cell as many values as it takes to die out, then zeros."""
        turn = np.exp(1j * step * evidence)
        parts = [np.ones_like(turn)] if weights is None else [weight.astype(complex) for weight in weights]
        phi = np.zeros((len(turn), _MOST), dtype=complex)
        alive = np.arange(len(turn))
        for start in range(0, _MOST, _BLOCK):
            positive, negative = self._block(step, start)
            waves = (positive + negative,) if weights is None else (positive, negative)
            for k in range(_BLOCK):
                sums = [np.einsum("cl,l->c", a, b[k]) for a, b in zip(parts, waves, strict=True)]
                phi[alive, start + k] = sum(sums)
                for part in parts:
                    part *= turn
            going = ~_end(phi[alive, : start + _BLOCK] / phi[alive, :1].real).known
            alive, turn, parts = alive[going], turn[going], [part[going] for part in parts]
            if not alive.size:
                break
        return phi[:, : start + _BLOCK] / phi[:, :1].real

    def _block(self, step: float, start: int) -> tuple[Any, Any]:
        """The waves of one block of frequencies along all lines."""
        if (step, start) not in self._waves:
            numbers = np.arange(start, start + _BLOCK)
            self._waves[step, start] = _side_by_side([x.waves(step, numbers) for x in self._lines], axis=1)
        return self._waves[step, start]


def _side_by_side(pairs: Sequence[Sequence[Any]], axis: int) -> tuple[Any, Any]:
    """Pairs of arrays joined; one pair as it is."""
    first, second = (
        one[0] if len(one) == 1 else np.concatenate(one, axis) for one in zip(*pairs, strict=True)
    )
    return first, second


class _End(NamedTuple):
    """Where each series is cut off, the size of the terms left out next, and whether more would not help."""

    at: NDArray[np.int64]
    left_out: Float
    known: NDArray[np.bool_]


def _end(phi: Any) -> _End:
    """Cut where the values have died out, or are least before the grid fails and they revive."""
    most = np.lib.stride_tricks.sliding_window_view(np.abs(phi), _WINDOW, axis=1).max(axis=2)
    least = np.minimum.accumulate(most, axis=1)
    over = (most < _DEAD) | (most > _REVIVED * least)
    known = over.any(axis=1)
    last = np.where(known, over.argmax(axis=1), most.shape[1])
    at = np.where(np.arange(most.shape[1]) <= last[:, None], most, np.inf).argmin(axis=1)
    return _End(at, np.take_along_axis(most, at[:, None], axis=1), known)


def _inverted(phi: Any, period: float, middle: Float, probabilities: Float) -> Quantiles:
    """Quantiles of Y_L from the series of each cell, by Newton steps from a table."""
    end = _end(phi)
    terms = int(max(end.at.max(), 2))
    phi = np.where(np.arange(terms) < np.maximum(end.at, 2)[:, None], phi[:, :terms], 0)
    k = np.arange(1, terms)
    at_start = np.sum(phi[:, 1:].imag * (-1.0) ** k / (np.pi * k), axis=1)[:, None]
    u = _table(phi, probabilities)  # in periods
    lower, upper = u - 0.25 / terms, u + 0.25 / terms
    for _ in range(6):
        wave = phi[:, None, 1:] * np.exp(-2j * np.pi * u[:, :, None] * k)
        density = np.maximum(1 + 2 * wave.real.sum(axis=2), 1e-300)
        excess = u + 0.5 + at_start - (wave.imag / (np.pi * k)).sum(axis=2) - probabilities
        u = np.clip(u - excess / density, lower, upper)
    y = expit(middle[:, None] + period * u)
    return Quantiles(y, period * y * (1 - y) / density * (end.left_out / 3 + np.abs(excess)))


def _table(phi: Any, probabilities: Float) -> Float:
    """Where the density, added up on a table of one period from −½ to ½, reaches the probabilities."""
    size = 8 * phi.shape[1]
    density = np.fft.irfft(np.conj(phi) * (-1.0) ** np.arange(phi.shape[1]), size, axis=1)
    reached = np.cumsum(density, axis=1)
    below = np.sum(reached[:, None, :] < probabilities[:, None], axis=2)
    return np.asarray(below / size - 0.5)
