"""Sampling where weights will not do: many chains that walk from the weighted points, in eight groups.

Each step proposes for a chain either a move by the difference of two other chains of its group (ter Braak
2006), which has the shape of the posterior whatever that is, or a fresh point of the fitted laws; Metropolis
and Hastings decide. Groups never meet, so they tell the error as scrambles do.
"""

from __future__ import annotations

import numpy as np

from binreps.fits.points.rule import SCRAMBLES, SEED, Mixture, Points
from binreps.fits.points.target import Target
from binreps.model import Float

_CHAINS = 32  # of a group
CHAINS = SCRAMBLES * _CHAINS
"""All chains."""

_KEPT = 64  # points of each chain
_FRESH = 0.2  # share of steps that propose a fresh point


def walk(target: Target, points: Points, mixture: Mixture, steps: int, seed: int = SEED) -> Points:
    """Points of equal mass after so many steps, the first third left out; the evidence is as it was."""
    rng = np.random.default_rng(seed)
    share = np.maximum(points.masses[0], 0.0)
    at = points.v[:, rng.choice(share.size, SCRAMBLES * _CHAINS, p=share / share.sum())]
    now = target.evaluate(at)
    log_density, theta = now.log_density.copy(), now.prevalence.copy()
    log_mixture = mixture.log_density(at)[0]
    kept: list[tuple[Float, Float]] = []
    first, every = 2 * (steps // 3), max((2 * steps - 2 * (steps // 3)) // _KEPT, 1)
    for step in range(2 * steps):  # half of each group moves by differences within the other half, in turns
        moving = np.flatnonzero(np.tile(np.arange(_CHAINS) % 2 == step % 2, SCRAMBLES))
        fresh = rng.random() < _FRESH
        tried = mixture.drawn(moving.size, rng) if fresh else at[:, moving] + _differences(at, step, rng)
        found = target.evaluate(tried)
        there = mixture.log_density(tried)[0]
        gain = found.log_density - log_density[moving]
        if fresh:
            gain = gain + log_mixture[moving] - there
        taken = np.log(rng.random(gain.size)) < gain
        moved = moving[taken]
        at[:, moved], log_density[moved] = tried[:, taken], found.log_density[taken]
        theta[moved], log_mixture[moved] = found.prevalence[taken], there[taken]
        if step >= first and (step - first) % every == 0:
            kept.append((at.copy(), theta.copy()))
    return _points(kept, points)


def _differences(at: Float, step: int, rng: np.random.Generator) -> Float:
    """Multiples of differences of two chains of the half that stays; now and then the whole of one."""
    size, half = len(at), _CHAINS // 2
    scale = 1.0 if step % 20 < 2 else 2.38 / np.sqrt(2 * size)
    groups = np.arange(SCRAMBLES).repeat(half) * _CHAINS + (step + 1) % 2
    first = rng.integers(0, half, groups.size)
    second = (first + rng.integers(1, half, groups.size)) % half
    noise = 1e-3 * rng.standard_normal((size, groups.size))
    return np.asarray(scale * (at[:, groups + 2 * first] - at[:, groups + 2 * second]) + noise)


def _points(kept: list[tuple[Float, Float]], before: Points) -> Points:
    """The points that were kept, group by group, and their masses without each group in turn."""
    v = np.stack([each[0] for each in kept], axis=2).reshape(len(kept[0][0]), -1)
    theta = np.stack([each[1] for each in kept], axis=1).ravel()
    group = np.arange(theta.size) // (theta.size // SCRAMBLES)
    masses = np.stack([group != left_out for left_out in range(-1, SCRAMBLES)]).astype(float)
    masses /= masses.sum(axis=1)[:, None]
    return Points(v, theta, masses, before.log_evidence, float(theta.size))
