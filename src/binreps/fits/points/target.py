"""The posterior density of intercept, slopes and error rates, at many points at once.

With E = exp(η), η = α + x′β, and Λ = P(s | T = 1) / P(s | T = 0) a record's likelihood is
P(s | T = 0) (1 + EΛ) / (1 + E). The ratio lies between 1 and Λ, so that many of them are multiplied before
one logarithm is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from binreps.counts import UNKNOWN
from binreps.covariates import CovariateTable
from binreps.fits.points.axes import ErrorRates, beta_axis
from binreps.model import Float, Prior

_POINTS, _ROWS = 256, 128  # of one block: its arrays stay in a processor's own cache
_MANY_ROWS = 16_384  # of one block where there is one point
_SAFE = 300.0  # e to this power, squared, is a float
_STEP = 1e-3  # of differences in the two coordinates of the error rates, which cost nothing


class Parameters(NamedTuple):
    """Points as the model names them, along the last axis; slopes are those of the standardised design."""

    alpha: Float
    beta: Float
    p: Float
    q: Float


class Evaluated(NamedTuple):
    """The log density at points, and the prevalence there: the mean over individuals."""

    log_density: Float
    prevalence: Float


class Target:
    """Prior × likelihood in coordinates in which the prior is normal: (α, slopes, p, q) by their scores.

    Attributes
    ----------
    table : CovariateTable
    dimension : int
        Slopes and three.
    """

    def __init__(self, table: CovariateTable, prior: Prior, slope_sd: float) -> None:
        self.table, self.prior, self.slope_sd = table, prior, slope_sd
        self.dimension = len(table.terms) + 3
        self.alpha_axis = beta_axis(prior.prevalence)
        self.errors = ErrorRates(prior)
        pairs = np.stack([table.n, table.s])
        cells, self._cell = np.unique(pairs, axis=1, return_inverse=True)
        self._cell = self._cell.ravel()
        self._s, self._misses = cells[1].astype(float), (cells[0] - cells[1]).astype(float)
        totals = np.bincount(self._cell, table.weight, minlength=self._s.size)
        self._positives, self._negatives = float(totals @ self._s), float(totals @ self._misses)
        self._known = table.known if np.any(table.known != UNKNOWN) else None
        self._ones = bool(np.all(table.weight == 1))
        self.individuals = float(table.individuals)

    def thinned(self, most: int) -> Target:
        """The same with at most so many rows of the table."""
        few = self.table.thinned(most)
        return self if few is self.table else Target(few, self.prior, self.slope_sd)

    def parameters(self, v: Float) -> Parameters:
        """What coordinates (dimension, points) stand for."""
        p, q = self.errors.at(v[-2], v[-1])
        return Parameters(self.alpha_axis.x(v[0]), self.slope_sd * v[1:-2], p, q)

    def log_prior(self, v: Float) -> Float:
        """The log prior density of the coordinates."""
        normal = -np.sum(v**2, axis=0) / 2 - len(v) * np.log(2 * np.pi) / 2
        return np.asarray(normal + self.errors.log_excess(v[-2], v[-1]))

    # At many points --------------------------------------------------------------------------------

    def evaluate(self, v: Float) -> Evaluated:
        """The log density, prior included, and the mean prevalence at points (dimension, points)."""
        log_prior, found = self.log_prior(v), self.parameters(v)
        parts = [
            self._likelihood(Parameters(*(each[..., start : start + _POINTS] for each in found)))
            for start in range(0, v.shape[1], _POINTS)
        ]
        value = np.concatenate([part.log_density for part in parts])
        return Evaluated(log_prior + value, np.concatenate([part.prevalence for part in parts]))

    def _likelihood(self, at: Parameters) -> Evaluated:
        """The log likelihood at the points of one block."""
        with np.errstate(divide="ignore"):
            log_p, log_r = np.log(at.p), np.log1p(-at.p)  # p is never 0: its coordinate is finite
            up, down = np.log1p(-at.q) - log_p, np.log(at.q) - log_r
        log_ratio = self._s[:, None] * up + self._misses[:, None] * down
        value = self._positives * log_p + self._negatives * log_r
        total = np.zeros(at.p.size)
        widest = float(np.abs(log_ratio).max(initial=0.0))
        ratio = np.exp(log_ratio) if widest < _SAFE else log_ratio
        # With x′β below 345 in size nothing overflows; beyond, the ratio is Λ or 1 to the last digit.
        rows = _ROWS if widest * _ROWS < 2 * _SAFE else max(int(2 * _SAFE / max(widest, 1.0)), 1)
        for x, cell, weight, known in self._blocks(_ROWS):
            eta = x @ at.beta + at.alpha
            if known is not None or widest >= _SAFE:
                log_odds = log_ratio[cell]
                value = value + weight @ _log_terms(eta, log_odds, known)
                total += weight @ expit(eta)
                continue
            odds = np.exp(np.clip(eta, -345.0, 345.0, out=eta), out=eta)
            rest = 1 / (1 + odds)
            odds *= ratio[cell]
            odds += 1
            odds *= rest
            if self._ones:
                starts = np.arange(0, len(odds), rows)
                value = value + np.log(np.multiply.reduceat(odds, starts, axis=0)).sum(axis=0)
                total += len(rest) - rest.sum(axis=0)
            else:
                value = value + weight @ np.log(odds)
                total += weight.sum() - weight @ rest
        with np.errstate(invalid="ignore"):
            average = total / self.individuals if self.individuals else expit(at.alpha)
        return Evaluated(value, np.clip(average, 0.0, 1.0))

    def _blocks(self, size: int) -> Iterator[tuple[Float, NDArray[np.intp], Float, NDArray[np.int8] | None]]:
        """Rows of the design, their cells, weights and known statuses."""
        weight = self.table.weight
        for first in range(0, len(self.table), _MANY_ROWS):
            many = slice(first, min(first + _MANY_ROWS, len(self.table)))
            design = self.table.design(many)
            for start in range(many.start, many.stop, size):
                rows = slice(start, min(start + size, many.stop))
                x = design[rows.start - many.start : rows.stop - many.start]
                known = None if self._known is None else self._known[rows]
                yield x, self._cell[rows], weight[rows].astype(float), known

    # At one point ----------------------------------------------------------------------------------

    def derivatives(self, v: Float) -> tuple[float, Float, Float]:
        """The log density at one point, its gradient and its matrix of second derivatives.

        With y = P(T = 1 | record): ∂/∂η = y − θ, ∂²/∂η² = y(1−y) − θ(1−θ), and likewise for p and q.
        """
        value, sums = self._sums(v)
        y, spread, slopes, curve, mixed = sums
        p, q = self.errors.at(v[-2], v[-1])
        s, misses = self._s, self._misses
        of_p, of_q = s / p - misses / (1 - p), misses / q - s / (1 - q)  # of the log of either class
        totals = np.bincount(self._cell, self.table.weight, minlength=s.size)
        not_y = totals - y
        curve_p = spread @ of_p**2 - not_y @ (s / p**2 + misses / (1 - p) ** 2)
        curve_q = spread @ of_q**2 - y @ (misses / q**2 + s / (1 - q) ** 2)
        both = -float(spread @ (of_p * of_q))
        first = np.concatenate([slopes, [not_y @ of_p, y @ of_q]])
        second = np.zeros((first.size,) * 2)
        second[:-2, :-2] = curve
        second[:-2, -2], second[:-2, -1] = -mixed.T @ of_p, mixed.T @ of_q
        second[-2, :-2], second[-1, :-2] = second[:-2, -2], second[:-2, -1]
        second[-2:, -2:] = [[curve_p, both], [both, curve_q]]
        return self._in_scores(v, value, first, second)

    def _sums(self, v: Float) -> tuple[float, tuple[Float, Float, Float, Float, Float]]:
        """The log likelihood, and sums over individuals: of y and y(1−y) in each cell, of x(y − θ)."""
        at = self.parameters(v[:, None])
        p, q = float(at.p[0]), float(at.q[0])
        log_ratio = self._s * np.log((1 - q) / p) + self._misses * np.log(q / (1 - p))
        value = self._positives * np.log(p) + self._negatives * np.log1p(-p)
        d, cells = self.dimension - 2, self._s.size
        y_sum, spread_sum, slopes = np.zeros(cells), np.zeros(cells), np.zeros(d)
        curve, mixed = np.zeros((d, d)), np.zeros((cells, d))
        for x, cell, weight, known in self._blocks(_MANY_ROWS):
            x = np.concatenate([np.ones((len(x), 1)), x], axis=1)
            eta = x @ np.concatenate([at.alpha, at.beta[:, 0]])
            theta, y = expit(eta), expit(eta + log_ratio[cell])
            if known is not None:
                y = np.where(known == UNKNOWN, y, known)
            value += float(weight @ _log_terms(eta, log_ratio[cell], known))
            spread = weight * y * (1 - y)
            y_sum += np.bincount(cell, weight * y, minlength=cells)
            spread_sum += np.bincount(cell, spread, minlength=cells)
            slopes += x.T @ (weight * (y - theta))
            curve += (x.T * (spread - weight * theta * (1 - theta))) @ x
            starts = np.flatnonzero(np.diff(cell, prepend=-1))  # rows are sorted by cell
            mixed[cell[starts]] += np.add.reduceat(x * spread[:, None], starts, axis=0)
        return float(value), (y_sum, spread_sum, slopes, curve, mixed)

    def _in_scores(self, v: Float, value: float, first: Float, second: Float) -> tuple[float, Float, Float]:
        """Derivatives by the coordinates, from those by α, standardised slopes, p and q; with the prior."""
        a = self.alpha_axis.slope(v[0] + _STEP * np.array([-1.0, 0.0, 1.0]))
        rates, bend, excess = _differences(self.errors, v[-2:])
        jacobian = np.diag(np.concatenate([[a[1]], np.full(v.size - 3, self.slope_sd), [0.0, 0.0]]))
        jacobian[-2:, -2:] = rates
        gradient = jacobian.T @ first - v
        hessian = jacobian.T @ second @ jacobian - np.eye(v.size)
        hessian[0, 0] += first[0] * (a[2] - a[0]) / (2 * _STEP)
        hessian[-2:, -2:] += np.einsum("k,kij->ij", first[-2:], bend) + excess[2]
        gradient[-2:] += excess[1]
        constant = -float(v @ v) / 2 - v.size * np.log(2 * np.pi) / 2
        return value + constant + excess[0], gradient, hessian


def _log_terms(eta: Float, log_ratio: Float, known: NDArray[np.int8] | None) -> Float:
    """log (1 + EΛ) / (1 + E), or the one class's term where the status is known."""
    open_term = np.logaddexp(0.0, eta + log_ratio) + log_expit(-eta)
    if known is None:
        return np.asarray(open_term)
    status = known.reshape(-1, *(1,) * (eta.ndim - 1))
    given = np.where(status == 1, log_expit(eta) + log_ratio, log_expit(-eta))
    return np.where(status == UNKNOWN, open_term, given)


def _differences(errors: ErrorRates, at: Float) -> tuple[Float, Float, tuple[float, Float, Float]]:
    """Of (p, q): the Jacobian and second derivatives; of the prior's excess: value, gradient, Hessian."""
    steps = _STEP * np.array([-1.0, 0.0, 1.0])
    grid = np.meshgrid(at[0] + steps, at[1] + steps, indexing="ij")
    values = np.stack([*errors.at(*grid), errors.log_excess(*grid)])
    first = np.stack([values[:, 2, 1] - values[:, 0, 1], values[:, 1, 2] - values[:, 1, 0]], axis=1)
    own = [values[:, 2, 1] + values[:, 0, 1], values[:, 1, 2] + values[:, 1, 0]]
    cross = (values[:, 2, 2] - values[:, 2, 0] - values[:, 0, 2] + values[:, 0, 0]) / 4
    middle = 2 * values[:, 1, 1]
    second = np.stack([[own[0] - middle, cross], [cross, own[1] - middle]]).transpose(2, 0, 1) / _STEP**2
    first = first / (2 * _STEP)
    return first[:2], second[:2], (float(values[2, 1, 1]), first[2], second[2])
