"""The posterior of intercept, slopes and error rates as a cloud of points, as many as it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binreps.fits.points.laws import fitted_laws
from binreps.fits.points.modes import find_modes
from binreps.fits.points.rule import SEED, Mixture, Points, Rule, bound
from binreps.fits.points.target import Parameters, Target
from binreps.fits.points.walk import CHAINS, walk
from binreps.fits.posterior import Estimate
from binreps.model import Float

_SMALL = 3000  # individuals up to which points come from the prior too: nobody or everybody may be positive
_MOST_POINTS = 2**18
_MOST_WORK = 3e9  # points × rows: about 20 s
_ENOUGH = 20.0  # effective points for each dimension, before laws are fitted to them
_ROUNDS = 6  # of fitting laws to points
_POOR = 0.05  # an error beyond which chains may do better than weights
_MOST_WALKED = 4e8  # steps × chains × rows: a few seconds
_GOOD = 0.5  # effective points among all: good enough


class Cloud:
    """Weighted points, with the error of whatever follows from them.

    Attributes
    ----------
    target : Target
    points : Points
    sampled : bool
        Whether the points were sampled, because weights alone would not do.
    error : float
        The largest 95 % bound on the error of a mean or sd, in posterior standard deviations, or of the log
        evidence.
    """

    def __init__(self, target: Target, points: Points, *, sampled: bool = False) -> None:
        self.target, self.points, self.sampled = target, points, sampled
        self.error = self._error()

    @cached_property
    def parameters(self) -> Parameters:
        """The points as the model names them."""
        return self.target.parameters(self.points.v)

    @property
    def share(self) -> float:
        """Effective points among all."""
        return float(self.points.effective / self.points.v.shape[1])

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior, without binomial coefficients."""
        return float(self.points.log_evidence[0])

    def jackknife(self, function: Callable[[Float], Any]) -> Estimate:
        """What follows from masses, and a 95 % bound on its error, from leaving out each scramble."""
        value = function(self.points.masses[0])
        left_out = np.array([function(mass) for mass in self.points.masses[1:]])
        return Estimate(value, bound(left_out))

    def moments(self, values: Float) -> tuple[Float, Float, Float]:
        """Means and sds of numbers (numbers, points), and the larger error of the two, in sds."""
        centred = values - (values @ self.points.masses[0])[:, None]
        mean = centred @ self.points.masses.T
        sd = np.sqrt(np.maximum(centred**2 @ self.points.masses.T - mean**2, 1e-300))
        errors = np.maximum(bound(mean[:, 1:].T), bound(sd[:, 1:].T)) / sd[:, 0]
        return values @ self.points.masses[0], sd[:, 0], errors

    def choose(self, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Points drawn by their masses."""
        share = np.maximum(self.points.masses[0], 0.0)
        return rng.choice(share.size, size, p=share / share.sum())

    def _error(self) -> float:
        """Of everything that is reported."""
        at = self.parameters
        reported = np.vstack([at.alpha, at.beta, at.p, at.q, self.points.prevalence])
        worst = float(self.moments(reported)[2].max())
        return max(worst, float(bound(self.points.log_evidence[1:])))


def make_cloud(target: Target, tol: float, seed: int = SEED) -> Cloud:
    """Points until the error is below a tolerance, or there is no more to be had.

    Where the laws at the modes are far from the posterior, laws are fitted to the weighted points, again and
    again while that helps.
    """
    modes = find_modes(target)
    everywhere = target.individuals <= _SMALL
    rule = Rule(target, modes[0], Mixture.around(modes, everywhere=everywhere), seed)
    pairs = rule.first_pairs
    cloud = Cloud(target, rule.extend(pairs))
    rng = np.random.default_rng(seed)
    for repeated in range(_ROUNDS):
        if cloud.error <= tol or (repeated and cloud.share > _GOOD):
            break
        if cloud.points.effective < _ENOUGH * target.dimension and _affordable(rule, 4 * pairs):
            pairs *= 4
            cloud = Cloud(target, rule.extend(pairs))
        laws = fitted_laws(cloud.points, rng, several=cloud.share < _GOOD)
        rule = Rule(target, laws[0], Mixture.fitted(laws, everywhere=everywhere), seed)
        pairs = max(rule.first_pairs, 256) if len(laws) > 1 else pairs
        cloud = Cloud(target, rule.extend(pairs))
    while cloud.error > tol:
        pairs *= 4 if cloud.error > 3 * tol and _affordable(rule, 4 * pairs) else 2
        if not _affordable(rule, pairs):
            break
        cloud = Cloud(target, rule.extend(pairs))
    if cloud.error > max(tol, _POOR):
        steps = int(np.clip(_MOST_WALKED / (CHAINS * max(len(target.table), 100)), 200, 4000))
        walked = Cloud(target, walk(target, cloud.points, rule.mixture, steps, seed), sampled=True)
        cloud = walked if walked.error < cloud.error else cloud
    return cloud


def _affordable(rule: Rule, pairs: int) -> bool:
    """Whether there is time and room for so many points."""
    points = rule.points(pairs)
    return points <= _MOST_POINTS and points * len(rule.target.table) <= _MOST_WORK
