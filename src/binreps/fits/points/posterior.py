"""Answers from a cloud: prevalence of whoever is asked about, with the error rates that all share.

The prevalence of one profile of covariates, or its mean over a population, is a number at every point; with
the error rates there it makes a posterior of three rates like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from binreps.fits.points.cloud import Cloud
from binreps.fits.points.density import MANY, Smooth
from binreps.fits.points.rule import bound
from binreps.fits.posterior import Block, Estimate, Key, Nodes, Posterior
from binreps.model import Float

_BINS = 4096  # of 24 standard deviations, where quantiles are read off


class CloudPosterior(Posterior):
    """The posterior of a prevalence and the two error rates, from weighted points.

    Parameters
    ----------
    cloud : Cloud
    theta : array
        The prevalence at every point.
    """

    def __init__(self, cloud: Cloud, theta: Float) -> None:
        super().__init__()
        self.cloud, self.theta = cloud, np.clip(theta, 0.0, 1.0)
        self.log_evidence = cloud.log_evidence
        self._rates = np.vstack([self.theta, cloud.parameters.p, cloud.parameters.q])
        self.mean, _, errors = cloud.moments(self._rates)
        centred = self._rates - self.mean[:, None]
        self.covariance = (centred * cloud.points.masses[0]) @ centred.T
        self.error = max(cloud.error, float(errors.max()))

    def nodes(self) -> Iterator[Nodes]:
        """All points: what is below 0 after the calibration counts as nothing here."""
        for mass in self.cloud.points.masses:
            share = np.maximum(mass, 0.0)
            yield [Block(tuple(self._rates), share / share.sum())]

    def settle(self, function: Callable[[Nodes], Any], tol: float = np.inf) -> Estimate:
        """What follows from all points, and the largest error by leaving scrambles out."""
        del tol
        value, *left_out = (function(nodes) for nodes in self.nodes())
        return Estimate(value, float(np.nanmax(bound(np.array(left_out)), initial=0.0)))

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Independent draws of points, by their masses."""
        return self._rates[:, self.cloud.choose(size, rng)]

    @cached_property
    def _marginals(self) -> dict[int, Smooth]:
        return {}

    def marginal(self, axis: int) -> Smooth:
        """The density of one rate."""
        if axis not in self._marginals:
            target = self.cloud.target
            errors = target.errors
            scale, end = (
                (target.alpha_axis, 1.0),
                (errors.axes[0], errors.end),
                (errors.axes[1], errors.end),
            )[axis]
            with np.errstate(divide="ignore"):
                at = scale.v(np.clip(logit(self._rates[axis] / end), -1400.0, 1400.0))
            self._marginals[axis] = Smooth(at, self.cloud.points.masses, scale, end)
        return self._marginals[axis]

    # Records ---------------------------------------------------------------------------------------

    def _chance(self, key: Key, new: bool) -> Estimate:
        """P(T = 1) of one record, with the error of its scrambles."""
        negative, positive = (log[0] for log in self.model.log_shares(self.model.record(key), *self._rates))
        return chance_estimate(self.cloud.points.masses, negative, positive, new)

    def _quantiles(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """Quantiles of P(T = 1 | s; parameters) of some records."""
        found = {}
        for key in keys:
            negative, positive = (
                log[0] for log in self.model.log_shares(self.model.record(key), *self._rates)
            )
            found[key] = quantile_estimate(self.cloud.points.masses, negative, positive, tails, new)
        return found


def chance_estimate(masses: Float, negative: Float, positive: Float, new: bool) -> Estimate:
    """P(T = 1) from the log shares of the classes at every point, and a bound on its error."""
    if new:
        top = max(float(negative.max()), float(positive.max()))
        up, down = masses @ np.exp(positive - top), masses @ np.exp(negative - top)
        found = up / np.maximum(up + down, 1e-300)
    else:
        found = masses @ expit(positive - negative)
    return Estimate(float(np.clip(found[0], 0.0, 1.0)), float(bound(found[1:])))


def quantile_estimate(masses: Float, negative: Float, positive: Float, tails: Float, new: bool) -> Estimate:
    """Quantiles of P(T = 1 | s) over points, a new record reweighting them by itself, and their error."""
    odds = np.clip(positive - negative, -1e6, 1e6)
    if new:
        mixture = np.logaddexp(positive, negative)
        masses = masses * np.exp(mixture - mixture.max())
        masses = masses / masses.sum(axis=1)[:, None]
    found = expit(log_odds_quantiles(masses, odds, tails))
    return Estimate(found[0], bound(found[1:]))


def log_odds_quantiles(masses: Float, odds: Float, tails: Float) -> Float:
    """Quantiles of numbers at points, one row for each row of masses.

    Many points are read off; few give four moments, and the quantiles of Cornish and Fisher follow.
    """
    if odds.size >= MANY:
        return binned_quantiles(masses, odds, tails)
    return cornish_fisher(masses, odds[None], tails)[:, 0]


def binned_quantiles(masses: Float, values: Float, tails: Float) -> Float:
    """Quantiles of many weighted numbers, shape (sets of masses, tails), without sorting.

    Bins are so narrow that a line within each is good to 10⁻³ of a standard deviation.
    """
    share = np.maximum(masses, 0.0)
    share = share / share.sum(axis=1)[:, None]
    centre = float(share[0] @ values)
    sd = max(float(np.sqrt(share[0] @ (values - centre) ** 2)), 1e-12)
    ends = centre + sd * np.linspace(-12, 12, _BINS + 1)
    places = np.clip((values - ends[0]) * (_BINS / (ends[-1] - ends[0])), 0, _BINS - 1).astype(np.intp)
    found = []
    for row in share:
        reached = np.concatenate([[0.0], np.cumsum(np.bincount(places, row, minlength=_BINS))])
        found.append(np.interp(tails, reached, ends))
    return np.stack(found)


def cornish_fisher(masses: Float, values: Float, tails: Float) -> Float:
    """Quantiles from four moments, shape (sets of masses, numbers, tails)."""
    centre = values @ masses[0]
    z = values - centre[:, None]
    powers = [masses @ z.T]
    for _ in range(3):
        z = z * (values - centre[:, None])
        powers.append(masses @ z.T)
    mean, second, third, fourth = powers
    var = np.maximum(second - mean**2, 1e-300)
    skew = np.clip((third - 3 * mean * second + 2 * mean**3) / var**1.5, -2.0, 2.0)
    tail = np.clip((fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4) / var**2 - 3, -2.0, 6.0)
    x = ndtri(tails)
    w = (
        x
        + (x**2 - 1) * skew[..., None] / 6
        + (x**3 - 3 * x) * tail[..., None] / 24
        - (2 * x**3 - 5 * x) * skew[..., None] ** 2 / 36
    )
    return np.asarray((centre + mean)[..., None] + np.sqrt(var)[..., None] * w)
