"""The posterior as lines of θ at fixed p and q: for what depends on θ, or on all three rates, sharply."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, logit

from binreps.fits.exact.gauss import Interval, jacobi_polynomials, series_matrix
from binreps.model import Float

_NEGLIGIBLE = 1e-11  # of all mass, at one node
_NO_LINE = 1e-12  # of all mass, on one line
_ONE_THREAD = 250_000  # multiplications
_TAIL = 2e-7  # of all mass, beyond the end of all lines


@dataclass(frozen=True, eq=False)
class ThetaLines:
    """Densities of θ along lines of fixed p and q; rows of `masses` are their masses at Gauss nodes."""

    interval: Interval  # ends are numbers, or arrays, one per line
    theta: Float
    masses: Float
    p: Float
    q: Float

    @cached_property
    def total(self) -> float:
        """The mass of all lines."""
        return float(self.masses.sum())

    @cached_property
    def classes(self) -> tuple[Float, Float]:
        """The mass of each line weighted by θ, and by 1 − θ."""
        return (self.masses * self.theta).sum(axis=1), (self.masses * (1 - self.theta)).sum(axis=1)

    @cached_property
    def trapezoid(self) -> tuple[Float, Float]:
        """logit θ, and the matrix that takes masses to masses there, on a trapezoid rule.

        It is equally spaced in z, the logit of the position on a line: for functions of logit θ that jump, or
        wave, close to θ = 0 or 1. Logits have one row, or one row per line where lines have their own ends.
        """
        inside, size = self.interval, self.masses.shape[1]
        step = min(0.5, 6 / size)
        z = np.arange(-30 / (inside.a + 1), 30 / (inside.b + 1), step)
        low, high = log_expit(z), log_expit(-z)
        weight = step * np.exp((inside.a + 1) * low + (inside.b + 1) * high)
        polynomials = weight * jacobi_polynomials(size, inside.a, inside.b, expit(z))
        matrix = series_matrix(size, inside.a, inside.b).T @ polynomials
        matters = np.abs(self.masses.sum(axis=0) @ matrix) > 1e-13 * self.total
        low, high = low[matters], high[matters]
        lower, upper = (np.asarray(end, dtype=float).reshape(-1, 1) for end in (inside.lower, inside.upper))
        with np.errstate(divide="ignore"):
            log_theta = np.logaddexp(np.log(lower) + high, np.log(upper) + low)
            log_rest = np.logaddexp(np.log1p(-lower) + high, np.log1p(-upper) + low)
        return log_theta - log_rest, matrix[:, matters]

    @property
    def _own_ends(self) -> bool:
        return np.ndim(self.interval.lower) > 0

    @property
    def _singular(self) -> bool:
        """Whether a line reaches a pole of the prior: Gauss nodes then say little about logit θ."""
        return min(self.interval.a, self.interval.b) < 0

    @cached_property
    def extent(self) -> tuple[Float, Float]:
        """The lowest and the highest logit θ of each line that matters; +∞ and −∞ for a line without.

        A line that reaches a pole of the prior ends where nearly all of the mass of all lines does.
        """
        matters = self.masses > _NEGLIGIBLE * self.total
        logits = logit(self.theta if self._own_ends else self.theta[:1])
        low = np.where(matters, logits, np.inf).min(axis=1)
        high = np.where(matters, logits, -np.inf).max(axis=1)
        if self._singular:
            logits, matrix = self.trapezoid
            below = np.cumsum(self.masses.sum(axis=0) @ matrix) / self.total
            first, last = np.searchsorted(below, [_TAIL, 1 - _TAIL])
            low = np.where(matters[:, 0], logits[:, first], low)
            high = np.where(matters[:, -1], logits[:, min(last, below.size - 1)], high)
        return low, high

    @cached_property
    def _weighted(self) -> list[Float]:
        """Masses times θ, and times 1 − θ; at the points of the trapezoid rule where lines have their own."""
        both = [self.masses * self.theta, self.masses * (1 - self.theta)]
        return [x @ self.trapezoid[1] for x in both] if self._own_ends and self._singular else both

    def waves(self, step: float, numbers: Any) -> list[Any]:
        """∫ θ e^{iωt} and ∫ (1 − θ) e^{iωt} along each line, t = logit θ and ω = step × each of the numbers.

        Rows are frequencies.
        """
        if self._own_ends:
            logits = self.trapezoid[0] if self._singular else logit(self.theta)
            return _waves_of_lines(step, numbers, logits, self._weighted)
        logits = self.trapezoid[0][0] if self._singular else logit(self.theta[0])
        phases = np.exp(1j * step * np.multiply.outer(numbers, logits))
        phases = _product(phases, self.trapezoid[1].T) if self._singular else phases
        return [_product(phases, masses.T) for masses in self._weighted]


def lines_that_matter(interval: Interval, theta: Float, masses: Float, p: Float, q: Float) -> ThetaLines:
    """The lines without those whose mass is negligible."""
    each = masses.sum(axis=1)
    some = each > _NO_LINE * each.sum()
    if np.ndim(interval.lower):
        interval = Interval(interval.lower[some], interval.upper[some], interval.a, interval.b)
    return ThetaLines(interval, theta[some], masses[some], p[some], q[some])


def sorts_that_matter(sorts: list[ThetaLines]) -> list[ThetaLines]:
    """Sorts of lines without those that have next to no mass, of which nothing can be said."""
    least = _NO_LINE * sum(lines.total for lines in sorts)
    return [lines for lines in sorts if lines.total > least]


def _waves_of_lines(step: float, numbers: Any, logits: Float, both: list[Float]) -> list[Any]:
    """The same where each line has its own logits."""
    turn = np.exp(1j * step * logits)
    wave = np.exp(1j * step * numbers[0] * logits)
    result = np.empty((len(both), len(numbers), len(logits)), dtype=complex)
    for k in range(len(numbers)):
        for masses, row in zip(both, result, strict=True):
            np.einsum("lt,lt->l", masses, wave, out=row[k])
        wave *= turn
    return list(result)


def _product(waves: Any, real: Float) -> Any:
    """A complex matrix times a real one, in products so small that BLAS starts no threads for them.

    Threads gain nothing here, and wait for each other on a busy machine.
    """
    both = np.concatenate([waves.real, waves.imag])
    result = np.empty((len(waves), real.shape[1]), dtype=complex)
    size = max(1, _ONE_THREAD // both.size)
    for some in (slice(start, start + size) for start in range(0, real.shape[1], size)):
        result.real[:, some], result.imag[:, some] = np.split(both @ real[:, some], 2)
    return result
