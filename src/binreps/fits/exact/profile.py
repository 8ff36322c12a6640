"""Conditional modes and Laplace profiles at many points at once: how a ridge is followed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from binreps.fits.exact.density import AXES, END
from binreps.fits.point.climb import bend, better_step, newton_step
from binreps.fits.point.objective import Objective
from binreps.model import Float

_FALL = 32.0  # the density falls by e^−32 within 8 standard deviations
_HALF_LOG_2_PI = 0.9189385332046727


class Profile(NamedTuple):
    """The best completion of points some of whose coordinates are fixed."""

    rates: Float  # (3, points)
    value: Float  # log of the density of the fixed logits, by Laplace's method
    spread: Float  # (3, points): standard deviation of each free logit, or what is like it at a bound


def profile(objective: Objective, rates: Float, free: list[int]) -> Profile:
    """Climb in the free logits from each point (a column), the others fixed; integrate them by Laplace."""
    movable = np.isin(AXES, free)
    state = objective.at(rates)
    for _ in range(30):
        step, promise = newton_step(objective, state, movable)
        if promise.max() < 1e-3:
            break
        state = better_step(objective, state, step, movable)
    gradient = objective.gradient(state)
    _, size, axes = bend(objective, state, gradient, movable)
    spread = np.sqrt(np.sum(axes**2 / size[:, None, :], axis=-1)).T
    pressed = movable[:, None] & (state.rates >= np.array(END)[:, None]) & (gradient > 0)
    # Against the bound ½ the density is a piece of a Gaussian, exp(−slope·t − curve·t²/2) at a distance t.
    curve = np.maximum(-np.diagonal(objective.hessian(state), axis1=-2, axis2=-1).T, 0.0)
    slope = np.where(pressed, gradient, 1.0)
    width = np.where(pressed, np.log1p(slope + np.sqrt(2 * curve / np.pi)), 0.0).sum(axis=0)
    spread = np.where(pressed, _FALL / 4 / (slope + np.sqrt(slope**2 + 2 * _FALL * curve)), spread)
    value = state.objective - 0.5 * np.log(size).sum(axis=-1) - width + _HALF_LOG_2_PI * len(free)
    return Profile(state.rates, value, spread)
