"""Normal laws fitted to weighted points: where a posterior is no hill, several follow it better than one."""

from __future__ import annotations

import numpy as np

from binreps.fits.points.modes import Mode
from binreps.fits.points.rule import Points
from binreps.model import Float

_RESAMPLED = 4000  # points that the laws are fitted to
_MOST_LAWS = 12
_STEPS = 40
_LEAST = 0.02  # mass of a law, and variance, in those of all points


def fitted_laws(points: Points, rng: np.random.Generator, *, several: bool) -> list[Mode]:
    """The normal law with the mean and covariance of all points, then a mixture of several laws if asked for.

    By expectation and maximisation, from points taken as centres. Each law needs ten effective points for
    each dimension; masses are given as their logarithms.
    """
    v, size = points.v, len(points.v)
    share = np.maximum(points.masses[0], 0.0)
    share = share / share.sum()
    mean = v @ share
    centred = v - mean[:, None]
    covariance = (centred * share) @ centred.T
    values, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    count = int(min(_MOST_LAWS, points.effective / (10 * size)))
    found = [Mode(mean, root, 0.0)]
    if count < 2 or not several:
        return found
    z = np.linalg.solve(root, centred[:, rng.choice(share.size, _RESAMPLED, p=share)])
    for weight, at, spread in _mixture(z, count, rng):
        found.append(Mode(mean + root @ at, root @ np.linalg.cholesky(spread), float(np.log(weight))))
    return found


def _mixture(z: Float, count: int, rng: np.random.Generator) -> list[tuple[float, Float, Float]]:
    """Weights, centres and covariances of laws that the standardised points could come from."""
    size, points = z.shape
    centres = z[:, rng.choice(points, count, replace=False)]
    spreads = np.repeat(np.eye(size)[None] * 0.5, count, axis=0)
    weights = np.full(count, 1 / count)
    for _ in range(_STEPS):
        logs = np.empty((count, points))
        for k in range(count):
            root = np.linalg.cholesky(spreads[k])
            away = np.linalg.solve(root, z - centres[:, k, None])
            logs[k] = np.log(weights[k]) - np.log(np.diag(root)).sum() - np.sum(away**2, axis=0) / 2
        parts = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
        weights = np.maximum(parts.sum(axis=1) / points, _LEAST)
        centres = (z @ parts.T) / parts.sum(axis=1)
        for k in range(count):
            away = z - centres[:, k, None]
            spreads[k] = (away * parts[k]) @ away.T / parts[k].sum() + _LEAST * np.eye(size)
    return [(float(weights[k]), centres[:, k], spreads[k]) for k in range(count)]
