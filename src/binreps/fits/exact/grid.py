"""Points with posterior mass: what every rule produces and every result is read from."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from binreps.model import Float

_ROUND = 1e-9  # added to correlations of ±1


class NoMassError(ArithmeticError):
    """No point of a grid has a finite mass: the posterior is narrower than floats resolve there."""


def spread(x: Float, mass: Float) -> tuple[Float, Float, Float]:
    """Means, sds and conditional sds, each coordinate's given the others, of points (columns) with masses."""
    centre = x @ mass
    away = x - centre[:, None]
    covariance = (away * mass) @ away.T
    sd = np.maximum(np.sqrt(np.diag(covariance)), 1e-100)
    correlation = covariance / sd / sd[:, None] + _ROUND * np.eye(len(x))
    return centre, sd, sd / np.sqrt(np.diag(np.linalg.inv(correlation)))


class Grid:
    """Points of the parameters, and the posterior mass of each.

    Parameters
    ----------
    parameters : arrays that broadcast against each other
        θ, p, q, …
    log_mass : array
        Logarithm of likelihood × prior density × the rule's weight at each point, in a common unit.
    log_unit : float
        That unit: what must be added for the logarithm of the evidence.
    """

    def __init__(self, parameters: tuple[Float, ...], log_mass: Float, log_unit: float) -> None:
        self.parameters = parameters
        if not log_mass.size:
            raise NoMassError
        peak = float(log_mass.max())
        if not np.isfinite(peak):
            raise NoMassError
        self.mass = log_mass - peak
        np.exp(self.mass, out=self.mass)
        total = float(self.mass.sum())
        self.mass /= total
        self.log_evidence = peak + math.log(total) + log_unit

    def expect(self, *values: Any) -> float:
        """The posterior mean of a product of values at the points.

        Rows of points share their error rates, so that products of matrices add most of it up.
        """
        if self.mass.ndim == 1:
            return float(self.mass @ math.prod(values))
        of_rows = [x[:, 0] for x in values if np.ndim(x) == 2 and x.shape[1] == 1]
        along: Any = math.prod((x for x in values if not (np.ndim(x) == 2 and x.shape[1] == 1)), start=1.0)
        each = self._rows * along if np.ndim(along) == 0 else self._along(along)
        return float(each @ math.prod(of_rows) if of_rows else each.sum())

    @cached_property
    def _rows(self) -> Float:
        return np.asarray(self.mass.sum(axis=1))

    def _along(self, values: Float) -> Float:
        """Sums over each row of mass times values."""
        return np.asarray(
            self.mass @ values if values.ndim == 1 else np.einsum("ij,ij->i", self.mass, values)
        )

    @cached_property
    def _centre(self) -> list[float]:
        """The point with the most mass, from which means are measured: no digits are lost beside it."""
        best = int(np.argmax(self.mass))
        return [float(np.broadcast_to(x, self.mass.shape).flat[best]) for x in self.parameters]

    @cached_property
    def mean(self) -> Float:
        """Posterior means."""
        pairs = zip(self._centre, self.parameters, strict=True)
        return np.array([centre + self.expect(x - centre) for centre, x in pairs])

    @cached_property
    def covariance(self) -> Float:
        """Posterior covariance."""
        away = [x - mean for x, mean in zip(self.parameters, self.mean, strict=True)]
        result = np.empty((len(away),) * 2)
        for i, one in enumerate(away):
            for j, other in enumerate(away[: i + 1]):
                result[i, j] = result[j, i] = self.expect(one, other)
        return result

    @property
    def sd(self) -> Float:
        """Posterior standard deviations."""
        return np.sqrt(np.diag(self.covariance))

    def distance(self, other: Grid) -> float:
        """The largest difference of two grids: log evidence, means and sds in units of the sd."""
        sd = np.maximum(self.sd, 1e-300)
        changes = np.concatenate([(self.mean - other.mean) / sd, self.sd / sd - other.sd / sd])
        worst = float(np.max(np.abs(changes)))
        scale = max(1.0, abs(self.log_evidence))
        return max(worst, abs(self.log_evidence - other.log_evidence) / scale)
