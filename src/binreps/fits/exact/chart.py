"""Coordinates without borders: every point of ℝ^d is a point of the parameters' domain, and nothing is cut.

A rate between two ends has a logit, and that is c + s sinh w: its density in w dies out doubly exponentially
however singular the prior is at an end, so that equally spaced points integrate it like any rule. Centre and
scale follow the density, once it is known where it lives. Two charts:

* `Box`: logit θ, p, q (and ρ) one by one.
* `Moments`: mean μ = θ(1−q) + (1−θ)p and variance v = θ(1−θ)(1−p−q)² between individuals, and logit θ.
  One replicate each tells μ alone, two tell μ and v: ridges that wind through the box are straight here.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from binreps.fits.exact.grid import NoMassError
from binreps.model import Float, Model
from binreps.region import Region

_LOG_2 = float(np.log(2))


class Place(NamedTuple):
    """Points of the domain, with the logarithms that neither rounding nor underflow touches."""

    u: Float  # logit θ
    p: Float
    q: Float
    log_p: tuple[Float, Float]  # log p, log(1−p)
    log_q: tuple[Float, Float]
    log_volume: Float  # log |d(θ, p, q, …) / dx|
    rest: tuple[Float, ...] = ()  # further parameters
    log_rest: tuple[tuple[Float, Float], ...] = ()  # log ρ, log(1−ρ)

    def some(self, which: Any) -> Place:
        """Some of the points."""

        def cut(x: Any) -> Any:
            return tuple(cut(one) for one in x) if isinstance(x, tuple) else x[which] if x.size > 1 else x

        return Place(*(cut(x) for x in self))

    @property
    def parameters(self) -> tuple[Float, ...]:
        """θ, p, q and what the model has beyond them."""
        return (expit(self.u), self.p, self.q, *self.rest)


def errors_at(first: Float, second: Float) -> Place:
    """Error rates with two logits as a place; its logit θ says nothing."""
    (log_p, rest_p), (log_q, rest_q) = ((log_expit(y), log_expit(-y)) for y in (first, second))
    area = log_p + rest_p + log_q + rest_q
    return Place(np.zeros(1), np.exp(log_p), np.exp(log_q), (log_p, rest_p), (log_q, rest_q), area)


class Unit(NamedTuple):
    """x, the logarithms of x and 1 − x, and log dx/dw."""

    x: Float
    log: tuple[Float, Float]
    log_slope: Float


class Stretch(NamedTuple):
    """How a logit follows from its coordinate w: centre + scale · sinh w."""

    centre: float = 0.0
    scale: float = 2.0

    def logit(self, w: Any) -> Any:
        """The logit at a coordinate, ±∞ beyond what floats hold."""
        with np.errstate(over="ignore"):
            return self.centre + self.scale * np.sinh(w)

    def coordinate(self, logit: Any) -> Any:
        """The coordinate of a logit."""
        return np.arcsinh((np.asarray(logit) - self.centre) / self.scale)

    def log_slope(self, w: Any) -> Any:
        """log d logit / d w."""
        with np.errstate(over="ignore"):
            return np.log(self.scale * np.cosh(w))


def unit(w: Any, stretch: Stretch) -> Unit:
    """The number between 0 and 1 at a coordinate."""
    logit = stretch.logit(w)
    log, other = log_expit(logit), log_expit(-logit)
    with np.errstate(invalid="ignore"):  # ∞ − ∞ beyond what floats hold: nothing is there
        return Unit(np.exp(log), (log, other), log + other + stretch.log_slope(w))


def _logit(x: Any) -> Any:
    """The logit, of rates that may have rounded to 0 or 1 too."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(x) - np.log1p(-np.asarray(x, dtype=float)), -60.0, 60.0)


class Chart(ABC):
    """A map from ℝ^d onto the domain of the parameters, or onto a piece of it."""

    dim: int
    stretches: tuple[Stretch, ...]

    def fitted(self, x: Float, mass: Float) -> tuple[Chart, Float]:
        """The same chart with stretches that follow points with masses, and the points in its coordinates.

        A scale of 4 standard deviations leaves a Gaussian as it is and tames the tails of others; no scale
        above 2 is needed, because beyond logits fall exponentially.
        """
        logits = np.stack([stretch.logit(w) for stretch, w in zip(self.stretches, x, strict=True)])
        mean = logits @ mass
        sd = np.sqrt((logits - mean[:, None]) ** 2 @ mass)
        if not np.all(sd > 0):
            raise NoMassError
        chart = copy.copy(self)
        chart.stretches = tuple(
            Stretch(float(c), float(min(4 * one, 2.0))) for c, one in zip(mean, sd, strict=True)
        )
        return chart, chart.at_logits(logits)

    def at_logits(self, logits: Float) -> Float:
        """The coordinates of logits."""
        pairs = zip(self.stretches, logits, strict=True)
        return np.stack([stretch.coordinate(logit) for stretch, logit in pairs])

    @abstractmethod
    def place(self, x: Float) -> Place:
        """The points at coordinates x, of shape (d, …)."""

    @abstractmethod
    def coordinates(self, *parameters: Any) -> Float:
        """The coordinates of points of the domain, shape (d, …)."""


class Box(Chart):
    """The parameters one by one."""

    def __init__(self, model: Model, region: Region) -> None:
        self.region, self.dim = region, len(model.names)
        self.stretches = (Stretch(),) * self.dim

    def place(self, x: Float) -> Place:
        """As `Chart` says."""
        u = self.stretches[0].logit(x[0])
        a, b, *rest = (unit(w, stretch) for w, stretch in zip(x[1:], self.stretches[1:], strict=True))
        log_p, log_q = self.region.logs(a.log, b.log)
        log_volume = self.region.log_area(a.x, b.x) if self.region.end < 1 else a.log[1]
        log_volume = log_volume + a.log_slope + b.log_slope + sum(one.log_slope for one in rest)
        log_volume = log_volume + log_expit(u) + log_expit(-u) + self.stretches[0].log_slope(x[0])
        p, q, others = np.exp(log_p[0]), np.exp(log_q[0]), tuple(one.x for one in rest)
        return Place(u, p, q, log_p, log_q, log_volume, others, tuple(one.log for one in rest))

    def coordinates(self, *parameters: Any) -> Float:
        """As `Chart` says."""
        theta, p, q, *rest = parameters
        each = (_logit(x) for x in (theta, *self.region.square(p, q), *rest))
        return self.at_logits(np.stack(np.broadcast_arrays(*each)))


class Moments(Chart):
    """μ, v and logit θ, for one prevalence and replicates that err alike.

    Given μ and v, p > 0 and 1 − q < 1 leave logit θ between log v/(1−μ)² and log μ²/v. Below ½ the rates
    leave less: with μ < ½, 1 − q > ½ ends it at log v/(½−μ)² if that is lower, which is so for
    v < μ(½−μ). So this region is four smooth pieces: `low` says which side of that v, and `mirrored` is
    μ > ½, the mirror image (1−θ, q, p).
    """

    dim = 3

    def __init__(self, half: bool, *, low: bool = False, mirrored: bool = False) -> None:
        self.stretches = (Stretch(),) * 3
        self.half, self.low, self.high, self.mirrored = half, half and low, half and not low, mirrored

    def place(self, x: Float) -> Place:
        """As `Chart` says. Distances of p and q from 0 are computed as such, never as differences."""
        m, y, z = (unit(w, stretch) for w, stretch in zip(x, self.stretches, strict=True))
        half = _LOG_2 if self.half else 0.0
        log_mu, log_beyond = m.log[0] - half, m.log[1] - half  # log μ, and of ½ − μ or 1 − μ
        mu = np.exp(log_mu)
        log_rest = np.log1p(-mu) if self.half else log_beyond
        log_width = log_mu - half if self.high else log_mu + log_beyond
        log_v = log_width + y.log[0]
        if self.high:
            log_v = np.logaddexp(log_mu + log_beyond, log_v)
        lower = log_v - 2 * log_rest
        upper = log_v - 2 * log_beyond if self.low else 2 * log_mu - log_v
        length = upper - lower
        u = lower + length * z.x
        # q = 1 − μ − √v e^(−u/2) and p = μ − √v e^(u/2), measured from the ends where they are 0
        q = -np.exp(log_rest) * np.expm1(-length * z.x / 2)
        p = -mu * np.expm1(-length * np.exp(z.log[1]) / 2)
        if self.low:  # there 1 − q is ½ at the upper end, and p is 0 only if v is at its own as well
            p = p * y.x + mu * np.exp(y.log[1])
        p, q = np.maximum(p, 1e-300), np.maximum(q, 1e-300)
        with np.errstate(divide="ignore"):  # beside 1, where nothing is
            log_p, log_q = (np.log(p), np.log1p(-p)), (np.log(q), np.log1p(-q))
        # |d(θ, p, q) / d(u, μ, v)| = θ(1−θ) cosh(u/2) / √v
        log_volume = np.abs(u) / 2 + np.log1p(np.exp(-np.abs(u))) - _LOG_2 - log_v / 2
        log_volume = log_volume + log_expit(u) + log_expit(-u) + m.log_slope - half
        with np.errstate(divide="ignore", invalid="ignore"):
            log_volume = log_volume + log_width + y.log_slope + np.log(length) + z.log_slope
        if self.mirrored:
            return Place(-u, q, p, log_q, log_p, log_volume)
        return Place(u, p, q, log_p, log_q, log_volume)

    def coordinates(self, *parameters: Any) -> Float:
        """As `Chart` says; a point outside the piece is moved to its border."""
        theta, p, q = (np.asarray(x, dtype=float) for x in parameters)
        if self.mirrored:
            theta, p, q = 1 - theta, q, p
        most = 0.5 if self.half else 1.0
        mu = np.clip(theta * (1 - q) + (1 - theta) * p, 1e-9, most - 1e-9)
        first = mu * (0.5 - mu) if self.high else 0.0
        width = mu / 2 if self.high else mu * (most - mu)
        v = first + width * np.clip((theta * (1 - theta) * (1 - p - q) ** 2 - first) / width, 1e-9, 1 - 1e-9)
        lower = np.log(v) - 2 * np.log1p(-mu)
        upper = np.log(v) - 2 * np.log(most - mu) if self.low else 2 * np.log(mu) - np.log(v)
        along = np.clip((_logit(theta) - lower) / (upper - lower), 1e-9, 1 - 1e-9)
        return self.at_logits(_logit(np.stack([mu / most, (v - first) / width, along])))


def pieces(region: Region) -> list[Moments]:
    """The charts of moments that together cover a region."""
    if region.end == 1:
        return [Moments(False)]
    return [Moments(True, low=low, mirrored=mirrored) for low in (True, False) for mirrored in (False, True)]
