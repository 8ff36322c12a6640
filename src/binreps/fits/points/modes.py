"""The modes of a posterior density, by Newton's steps from different starts, and its shape there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from binreps.fits.points.target import Target
from binreps.model import Float

_STEPS = 60
_FEW = 3000  # rows from which starts are worth their steps
_CUBIC_ROWS = 20_000  # rows that the third derivatives are taken from: they need not be exact
_LEAST_CURVE = 0.2  # of the prior's curvature, where the density is no hill
_STARTS = ((0.0, -1.0), (-2.5, -0.5), (2.5, -0.5), (0.0, 0.5))  # scores of the intercept, of error rates
_APART = 1.0  # standard deviations between two modes


class Mode(NamedTuple):
    """A local maximum, a square root of the covariance there, and the log of the mass it stands for."""

    at: Float
    root: Float
    log_mass: float


def find_modes(target: Target) -> list[Mode]:
    """The different modes that Newton's steps find, the one with the largest mass first.

    Some starts lead to where everyone is negative, or everyone positive.
    """
    few = target.thinned(_FEW)
    found: list[Mode] = []
    for alpha, errors in _STARTS:
        start = np.zeros(target.dimension)
        start[0], start[-2:] = alpha, errors
        _keep(found, _climb(few, start))
    if few is not target:
        before, found = found, []
        for mode in before[:2]:
            _keep(found, _climb(target, mode.at))
    found.sort(key=lambda mode: -mode.log_mass)
    return [mode for mode in found if mode.log_mass > found[0].log_mass - 12]


def _keep(found: list[Mode], mode: Mode) -> None:
    """Add a mode that is not there yet."""
    for other in found:
        if np.linalg.norm(np.linalg.solve(other.root, mode.at - other.at)) < _APART:
            return
    found.append(mode)


def _climb(target: Target, v: Float) -> Mode:
    """Newton's steps uphill, halved until they climb."""
    value, gradient, hessian = target.derivatives(v)
    for _ in range(_STEPS):
        curve, axes = _hill(hessian)
        step = axes @ ((axes.T @ gradient) / curve)
        step *= min(1.0, 3.0 / max(float(np.abs(step).max()), 1e-300))
        gain = float(gradient @ step)
        if gain < 1e-10:
            break
        for _ in range(30):
            after = target.derivatives(v + step)
            if after[0] >= value + 1e-4 * gain:
                break
            step, gain = step / 2, gain / 2
        else:
            break
        v, (value, gradient, hessian) = v + step, after
    curve, axes = _hill(hessian)
    root = axes / np.sqrt(curve)
    log_mass = value + v.size * np.log(2 * np.pi) / 2 - np.log(curve).sum() / 2
    return Mode(v, root, float(log_mass))


def _hill(hessian: Float) -> tuple[Float, Float]:
    """Curvatures, all downwards, and their directions."""
    curve, axes = np.linalg.eigh(-hessian)
    return np.maximum(np.abs(curve), _LEAST_CURVE), axes


def third_derivatives(target: Target, mode: Mode) -> Float:
    """Third derivatives at a mode in coordinates in which its covariance is the identity: differences."""
    few = target.thinned(_CUBIC_ROWS)
    scale, step = target.individuals / max(few.individuals, 1.0), 0.1
    tensor = np.empty((target.dimension,) * 3)
    for k, direction in enumerate(mode.root.T):
        above, below = (few.derivatives(mode.at + sign * step * direction)[2] for sign in (1, -1))
        tensor[k] = mode.root.T @ (above - below) @ mode.root * scale / (2 * step)
    return np.asarray((tensor + tensor.transpose(1, 2, 0) + tensor.transpose(2, 0, 1)) / 3)
