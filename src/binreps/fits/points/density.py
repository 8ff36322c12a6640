"""The density of one number, from weighted points.

Few points mean many individuals: on the scale of its normal score the posterior of a rate is then near a
normal law. Of all densities with given moments the one of largest entropy is exp(polynomial); six moments
determine it, and four, and with each scramble left out, say how well. Of many points the distribution
function is read off.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import expit, logit

from binreps.fits.marginal import Marginal
from binreps.fits.points.rule import bound
from binreps.model import Float

MANY = 2**14
"""Points from which a distribution function is read off."""

_GRID = 801
_SMOOTHED = 0.1  # of a standard deviation: less than 1 % of a normal density's height
_STEPS = 60


class Scale(Protocol):
    """How a coordinate becomes a number, as `Axis` does."""

    def x(self, v: Any) -> Any:
        """The number at a coordinate, or its logit."""

    def v(self, x: Any) -> Any:
        """The coordinate of a number."""

    def slope(self, v: Any) -> Any:
        """dx / dv."""


class Straight:
    """A number that is its own coordinate."""

    def x(self, v: Any) -> Any:
        """As `Scale` says."""
        return v

    def v(self, x: Any) -> Any:
        """As `Scale` says."""
        return x

    def slope(self, v: Any) -> Any:
        """As `Scale` says."""
        return np.ones_like(np.asarray(v, dtype=float))


STRAIGHT = Straight()


class Smooth(Marginal):
    """A density on a grid of coordinates.

    Parameters
    ----------
    at : array
        The coordinate at every point.
    masses : array
        Of points, without each scramble in turn after the first row.
    scale : Scale
        From coordinate to number, or to the logit of its share of `end`.
    end : float, optional
        The largest value of a rate; None for any number.
    """

    def __init__(self, at: Float, masses: Float, scale: Scale, end: float | None = None) -> None:
        self._scale, self._end = scale, end
        centre = float(masses[0] @ at)
        sd = float(np.sqrt(max(masses[0] @ (at - centre) ** 2, 1e-300)))
        z = (at - centre) / sd
        reach = float(np.clip(1.3 * np.abs(z[np.abs(masses[0]) > 1e-9]).max(initial=6.0), 6.0, 14.0))
        self._z, self._centre, self._sd = np.linspace(-reach, reach, _GRID), centre, sd
        tails = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
        if at.size >= MANY:
            reached = _reached(z, masses, self._z)
            self._below, self._density = reached[0], _slope(reached[0], self._z)
            each = np.array([np.interp(tails, row, self._z) for row in reached[1:]])
            fewer = 0.0
        else:
            moments = masses @ np.vander(z, 7, increasing=True)[:, 1:]
            log_density, used = _best(moments[0], self._z)
            self._density = _normalised(log_density, self._z)
            self._below = _cumulated(self._density, self._z)
            each = np.array([_quantiles(one, self._z, used, tails) for one in moments[1:]])
            fewer = np.abs(
                np.interp(tails, self._below, self._z) - _quantiles(moments[0], self._z, used - 2, tails)
            )
        self.ends = np.array([-np.inf, np.inf] if end is None else [0.0, end])
        self.error = float(np.max(bound(each) + fewer))

    def _coordinate(self, x: Any) -> Any:
        x = np.asarray(x, dtype=float)
        if self._end is not None:
            with np.errstate(divide="ignore"):
                x = np.clip(logit(np.clip(x / self._end, 0.0, 1.0)), -1400.0, 1400.0)
        return (self._scale.v(x) - self._centre) / self._sd

    def _number(self, z: Any) -> Any:
        x = self._scale.x(self._centre + self._sd * np.asarray(z))
        return x if self._end is None else self._end * expit(x)

    def _height(self, x: Any) -> Any:
        z = self._coordinate(x)
        v = self._centre + self._sd * z
        slope = self._sd * self._scale.slope(v)
        if self._end is not None:
            share = np.asarray(x, dtype=float) / self._end
            slope = slope * self._end * share * (1 - share)
        height = np.interp(z, self._z, self._density, left=0.0, right=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(slope > 0, height / slope, 0.0)

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        return np.interp(self._coordinate(x), self._z, self._below)[()]

    def quantile(self, probability: Any) -> Any:
        """The value below which the number lies with the given probability."""
        kept = np.concatenate([[True], np.diff(self._below) > 0])
        return self._number(np.interp(probability, self._below[kept], self._z[kept]))[()]


def _reached(z: Float, masses: Float, grid: Float) -> Float:
    """The mass below each point of a grid, for each row of masses."""
    order = np.argsort(z)
    own = masses[:, order]
    reached = np.maximum.accumulate(np.cumsum(own, axis=1) - own / 2, axis=1)
    return np.stack([np.interp(grid, z[order], row, left=0.0, right=1.0) for row in reached])


def _slope(below: Float, grid: Float) -> Float:
    """The slope of a distribution function, smoothed a little: what is finer is noise."""
    width = _SMOOTHED / (grid[1] - grid[0])
    reach = int(4 * width)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    density = np.convolve(np.gradient(below, grid), kernel / kernel.sum(), mode="same")
    return np.asarray(np.maximum(density, 0.0))


def _best(moments: Float, z: Float) -> tuple[Float, int]:
    """The log density with six moments, or as many as can be had, and how many that is."""
    for count in (6, 4):
        if (found := _largest_entropy(moments[:count], z)) is not None:
            return found, count
    return _normal(moments, z), 2


def _quantiles(moments: Float, z: Float, count: int, tails: Float) -> Float:
    """Quantiles of the law with some of the moments."""
    found = _largest_entropy(moments[:count], z) if count > 2 else None
    density = _normalised(_normal(moments, z) if found is None else found, z)
    return np.interp(tails, _cumulated(density, z), z)


def _normal(moments: Float, z: Float) -> Float:
    """The log density of the normal law with the first two moments."""
    return np.asarray(-((z - moments[0]) ** 2) / (2 * max(moments[1] - moments[0] ** 2, 1e-12)))


def _largest_entropy(moments: Float, z: Float) -> Float | None:
    """The polynomial whose exponential has the given moments, by Newton's steps; None if there is none.

    The dual is convex: log ∫ exp(λ′t) − λ′m, with Chebyshev polynomials for t, which do not grow apart.
    """
    reach, count = z[-1], moments.size
    basis = np.polynomial.chebyshev.chebvander(z / reach, count)[:, 1:]
    raw = np.concatenate([[1.0], moments / reach ** np.arange(1, count + 1)])
    wanted = np.array(
        [np.polynomial.chebyshev.cheb2poly([0] * k + [1]) @ raw[: k + 1] for k in range(1, count + 1)]
    )
    start = np.polynomial.chebyshev.poly2cheb([0.0, 0.0, -(reach**2) / 2])[1:]
    weights = np.zeros(count)
    weights[: start.size] = start
    value = np.inf
    for _ in range(_STEPS):
        log_density = basis @ weights
        top = log_density.max()
        density = np.exp(log_density - top)
        total = density.sum()
        density /= total
        mean = density @ basis
        value = top + np.log(total) - weights @ wanted
        gradient = mean - wanted
        if np.abs(gradient).max() < 1e-11:
            edge = max(density[0], density[-1])  # mass that leans on the end of the grid is no solution
            return np.asarray(log_density) if edge < 1e-6 * density.max() else None
        hessian = (basis.T * density) @ basis - np.outer(mean, mean)
        step = np.linalg.solve(hessian + 1e-14 * np.eye(count), gradient)
        size = 1.0
        while size > 1e-6:
            tried = basis @ (weights - size * step)
            high = tried.max()
            after = high + np.log(np.exp(tried - high).sum()) - (weights - size * step) @ wanted
            if after <= value - 1e-4 * size * float(gradient @ step) + 1e-13:
                break
            size /= 2
        else:
            return None
        weights = weights - size * step
    return None


def _normalised(log_density: Float, z: Float) -> Float:
    """A density with integral 1 on an even grid."""
    density = np.exp(log_density - log_density.max())
    return np.asarray(density / (density.sum() * (z[1] - z[0])))


def _cumulated(density: Float, z: Float) -> Float:
    """Its integral up to each point."""
    steps = (density[1:] + density[:-1]) * (z[1] - z[0]) / 2
    below = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(below / below[-1])
