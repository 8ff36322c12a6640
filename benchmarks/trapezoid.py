"""A quick reference for posteriors that are no ridges: the trapezoid rule in logits, axis by axis.

It shares neither code nor rule with the engine, whose posteriors of three rates are sums of Gauss rules.
With

    θ = expit u, p = ½ expit y₁, q = ½ expit y₂ (both below ½), or p = expit y₁, q = (1 − p) expit y₂

the density of (u, y₁, y₂) is smooth and dies out on all sides; with logits that are 2 sinh(w/2) it does so
at once. Equally spaced points sum it with an error that falls faster than any power of their distance; two
grids that share no point tell how far the finer can be trusted (`agreement`). Between points of an axis sinc
functions are exact, so distribution functions follow without any further rule.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, log_expit, logit, sici

import binreps as br

Float = NDArray[np.floating[Any]]

CUT = 38.0  # e^−38 of the top lies outside of the box
MOST = 40_000_000  # points × cells
HEAVY = 10**7  # replicates from which extended precision is used
SPACINGS = (0.62, 0.5, 0.4, 0.32)  # of conditional standard deviations
BEND = 2.0  # of the hyperbolic sine


class TooThinError(ArithmeticError):
    """The rule would take too many points, or its grids do not agree."""


class Trapezoid:
    """The posterior of one table, in the interface of `tests/reference.py`."""

    def __init__(self, counts: br.CountTable, prior: br.Prior, log_prior_mass: float, enough: float) -> None:
        self.counts, self.prior, self._constant = counts, prior, log_prior_mass
        self.better = prior.better_than_chance
        self.kind = np.longdouble if counts.replicates > HEAVY else np.float64
        self._tables()
        centres, widths, conditional = self._modes()
        self.low, self.high = (centres - 10 * widths).min(axis=1), (centres + 10 * widths).max(axis=1)
        self.conditional = conditional.min(axis=1)
        self._widen()
        before: Grid | None = None
        for k, spacing in enumerate(SPACINGS):
            grid = Grid(self, spacing, 0.3 + 0.37 * k)
            self.agreement = math.inf if before is None else grid.distance(before)
            before = grid
            if self.agreement < enough:
                break
        if self.agreement > enough:
            raise TooThinError
        self.side = self
        self.grid = grid
        self.mean, self.sd = grid.mean, grid.sd
        self.log_evidence = grid.log_integral - log_prior_mass - float(betaln(*prior.prevalence))

    def _tables(self) -> None:
        """Cells of unknown status, and exponents of everything else."""
        table = self.counts
        n, s, w = (x.astype(self.kind) for x in (table.n, table.s, table.weight))
        (a, b), p, q = ([float(x) for x in pair] for pair in self.prior)
        ill, healthy, open_ = table.known == 1, table.known == 0, (table.known < 0) & (table.n > 0)
        self.theta_shapes = (a + float(w[ill].sum()), b + float(w[healthy].sum()))
        self.p_shapes = (p[0] + float(w[healthy] @ s[healthy]), p[1] + float(w[healthy] @ (n - s)[healthy]))
        self.q_shapes = (q[0] + float(w[ill] @ (n - s)[ill]), q[1] + float(w[ill] @ s[ill]))
        self.s, self.misses, self.weight = s[open_], (n - s)[open_], w[open_]

    def errors(self, y1: Float, y2: Float) -> tuple[Float, Float, Float, Float, Float]:
        """log p, log(1−p), log q, log(1−q), and the logarithm of prior and area."""
        e1, f1, e2, f2 = (-np.logaddexp(0, -x) for x in (y1, -y1, y2, -y2))
        if self.better:
            log_p, not_p, log_q = e1, f1, f1 + e2
            not_q, area = np.logaddexp(e1, f1 + f2), e1 + f1 + f1 + e2 + f2
        else:
            log_p, log_q = e1 - math.log(2), e2 - math.log(2)
            not_p, not_q = np.log1p(-np.exp(log_p)), np.log1p(-np.exp(log_q))
            area = log_p + f1 + log_q + f2
        (a, b), (c, d) = self.p_shapes, self.q_shapes
        prior = (a - 1) * log_p + (b - 1) * not_p + (c - 1) * log_q + (d - 1) * not_q + area
        return log_p, not_p, log_q, not_q, prior

    def value(self, w: Float) -> Float:
        """The log density at coordinates (3, …) that broadcast."""
        u, y1, y2 = (BEND * np.sinh(x.astype(self.kind) / BEND) for x in w)
        slopes = sum(np.log(np.cosh(x / BEND)) for x in w)
        log_p, not_p, log_q, not_q, prior = self.errors(y1, y2)
        up, down = -np.logaddexp(0, -u), -np.logaddexp(0, u)
        total = prior + slopes + self.theta_shapes[0] * up + self.theta_shapes[1] * down
        theta, rest = np.exp(up), np.exp(down)
        for s, misses, weight in zip(self.s, self.misses, self.weight, strict=True):
            positive, negative = s * not_q + misses * log_q, s * log_p + misses * not_p
            top = np.maximum(positive, negative)
            mixture = theta * np.exp(positive - top) + rest * np.exp(negative - top)
            total = total + weight * (top + np.log(np.maximum(mixture, 1e-300)))
        return total

    def _modes(self) -> tuple[Float, Float, Float]:
        """Modes to which damped Newton steps lead, standard deviations there, and conditional ones."""
        x = np.stack(np.meshgrid([-2.0, 0.0, 2.0], [-3.0, 0.0], [-3.0, 0.0], indexing="ij")).reshape(3, -1)
        damping, step = np.ones(x.shape[1]), 1e-3 if self.kind is np.float64 else 1e-5
        value, gradient, bend = self._derivatives(x, step)
        for _ in range(40):
            size, axes = np.linalg.eigh(-bend)
            size = np.abs(size) + damping[:, None] * np.abs(size).max(axis=1, keepdims=True) + 1e-9
            along = np.einsum("kij,ki->kj", axes, gradient) / size
            move = np.clip(np.einsum("kij,kj->ki", axes, along).T, -2, 2)
            new = self.value(x + move)
            good = new > value
            x = np.where(good, x + move, x)
            damping = np.clip(np.where(good, damping / 6, damping * 4), 1e-9, 1e6)
            value, gradient, bend = self._derivatives(x, step)
        high = value > value.max() - CUT
        covariance = np.linalg.inv(-bend[high] + 1e-6 * np.eye(3))
        widths = np.sqrt(np.abs(np.diagonal(covariance, axis1=1, axis2=2))).T
        diagonal = np.maximum(-np.diagonal(bend[high], axis1=1, axis2=2).T, 0.05)
        return x[:, high], np.minimum(widths, 8.0), 1 / np.sqrt(diagonal)

    def _derivatives(self, x: Float, step: float) -> tuple[Float, Float, Float]:
        """Value, gradient (points, 3) and curvature (points, 3, 3), by differences."""
        one = np.eye(3) * step
        pairs, signs = ((0, 1), (0, 2), (1, 2)), ((1, 1), (1, -1), (-1, 1), (-1, -1))
        moves = [np.zeros(3), *one, *-one, *(a * one[i] + b * one[j] for i, j in pairs for a, b in signs)]
        values = np.stack([self.value(x + move[:, None]) for move in moves])
        gradient = ((values[1:4] - values[4:7]) / (2 * step)).astype(float).T
        bend = np.empty((x.shape[1], 3, 3))
        for i in range(3):
            bend[:, i, i] = (values[1 + i] + values[4 + i] - 2 * values[0]) / step**2
        for k, (i, j) in enumerate(pairs):
            a, b, c, d = values[7 + 4 * k : 11 + 4 * k]
            bend[:, i, j] = bend[:, j, i] = (a - b - c + d) / (4 * step**2)
        return values[0], gradient, bend

    def _widen(self) -> None:
        """Move the faces of the box until the density has died out there."""
        for _ in range(60):
            axes = [np.linspace(a, b, 17) for a, b in zip(self.low, self.high, strict=True)]
            values = self.value(np.stack(np.meshgrid(*axes, indexing="ij"))).astype(float)
            top, moved = values.max(), False
            for i in range(3):
                faces = np.moveaxis(values, i, 0)
                length = self.high[i] - self.low[i]
                if faces[0].max() > top - CUT and self.low[i] > -9:
                    self.low[i], moved = self.low[i] - 0.2 * length, True
                if faces[-1].max() > top - CUT and self.high[i] < 9:
                    self.high[i], moved = self.high[i] + 0.2 * length, True
            if not moved:
                return

    def score(self, n: int, s: int) -> tuple[float, float]:
        """E[Y_L(n, s)], and its error."""
        return self._chance(n, s, False)

    def predict(self, n: int, s: int) -> tuple[float, float]:
        """The prediction of a new individual, and its error."""
        return self._chance(n, s, True)

    def _chance(self, n: int, s: int, new: bool) -> tuple[float, float]:
        one = self.grid.chance(n, s, new)
        return one, self.agreement

    def cdf(self, parameter: int, x: float) -> float:
        """P(parameter ≤ x)."""
        if parameter == 2 and self.better:
            return self.mirror.cdf(1, x)
        return float(self.grid.below(parameter, self._coordinate(parameter, x)))

    def density(self, parameter: int, x: float) -> float:
        """Density of a parameter, by differences."""
        step = 1e-3 * self.sd[parameter]
        low, high = x - step, x + step
        if parameter and not self.better:
            high = min(high, 0.5)
        return (self.cdf(parameter, high) - self.cdf(parameter, low)) / (high - low)

    def _coordinate(self, parameter: int, x: float) -> float:
        share = x if parameter == 0 or self.better else 2 * x
        return BEND * math.asinh(float(logit(min(max(share, 1e-300), 1.0))) / BEND) if share < 1 else 50.0

    @cached_property
    def mirror(self) -> Trapezoid:
        """Positive and negative exchanged."""
        table = self.counts
        status = [None if one < 0 else int(1 - one) for one in table.known]
        other = br.CountTable(table.n, table.n - table.s, table.weight, status)
        prior = br.Prior(
            self.prior.prevalence[::-1], self.prior.false_negative, self.prior.false_positive, self.better
        )
        return Trapezoid(other, prior, self._constant, max(self.agreement, 1e-9) * 10)

    def with_new(self, n: int, s: int) -> Trapezoid:
        """The posterior of the data and a new individual."""
        more = self.counts + br.CountTable([n], [s])
        return Trapezoid(more, self.prior, self._constant, max(self.agreement, 1e-9) * 10)

    def score_cdf(self, n: int, s: int, y: float) -> float:
        """P(Y_L(n, s) ≤ y | data)."""
        return self.grid.score_below(n, s, float(logit(y)))

    def score_density(self, n: int, s: int, y: float, width: float) -> float:
        """Density of Y_L(n, s)."""
        low, high = max(y - width / 50, 1e-12), min(y + width / 50, 1 - 1e-12)
        return (self.score_cdf(n, s, high) - self.score_cdf(n, s, low)) / (high - low)

    def score_quantile(self, n: int, s: int, probability: float) -> float:
        """The quantile that belongs to `score_cdf`, by halving."""
        low, high = -60.0, 60.0
        for _ in range(50):
            middle = (low + high) / 2
            if self.grid.score_below(n, s, middle) < probability:
                low = middle
            else:
                high = middle
        return float(expit((low + high) / 2))


class Grid:
    """Equally spaced points, and the mass of each."""

    def __init__(self, owner: Trapezoid, spacing: float, shift: float) -> None:
        self.owner, self.spacing = owner, spacing * owner.conditional
        self.axes = [
            low + h * (np.arange(math.ceil((high - low) / h) + 1) + shift - 0.5)
            for low, high, h in zip(owner.low, owner.high, self.spacing, strict=True)
        ]
        if math.prod(x.size for x in self.axes) * max(owner.weight.size, 1) > MOST:
            raise TooThinError
        u, first, second = self.axes
        planes = [owner.value(np.stack(np.meshgrid(u, [y], second, indexing="ij")))[:, 0] for y in first]
        logs = np.stack(planes, axis=1)
        top = logs.max()
        mass = np.exp((logs - top).astype(float))
        self.log_integral = float(top) + math.log(mass.sum()) + float(np.log(self.spacing).sum())
        self.mass = mass / mass.sum()
        y = [BEND * np.sinh(x / BEND) for x in self.axes]
        self.u = y[0]
        self.errors = [x.astype(float) for x in owner.errors(*np.meshgrid(y[1], y[2], indexing="ij"))[:4]]
        columns = [expit(self.u)[:, None, None], np.exp(self.errors[0]), np.exp(self.errors[2])]
        self.mean = np.array([float(np.sum(self.mass * x)) for x in columns])
        squares = [np.sum(self.mass * (x - m) ** 2) for x, m in zip(columns, self.mean, strict=True)]
        self.sd = np.sqrt(squares)

    def distance(self, other: Grid) -> float:
        """The largest difference, as an error is stated."""
        changes = [np.abs(self.mean - other.mean) / self.sd, np.abs(self.sd / other.sd - 1)]
        evidence = abs(self.log_integral - other.log_integral) / max(1.0, abs(self.log_integral))
        return max(float(np.max(changes)), evidence)

    def shift(self, n: int, s: int) -> Float:
        """What a record adds to logit θ at every pair of error rates."""
        log_p, not_p, log_q, not_q = self.errors
        return s * (not_q - log_p) + (n - s) * (log_q - not_p)

    def chance(self, n: int, s: int, new: bool) -> float:
        """E[Y_L], or the prediction."""
        u = self.u[:, None, None]
        if not new:
            return float(np.sum(self.mass * expit(u + self.shift(n, s))))
        log_p, not_p, log_q, not_q = self.errors
        positive = log_expit(u) + s * not_q + (n - s) * log_q
        negative = log_expit(-u) + s * log_p + (n - s) * not_p
        top = max(positive.max(), negative.max())
        up, down = np.sum(self.mass * np.exp(positive - top)), np.sum(self.mass * np.exp(negative - top))
        return float(up / (up + down))

    def below(self, axis: int, w: float) -> float:
        """The mass below a coordinate: sinc functions are exact between the points."""
        line = self.mass.sum(axis=tuple(i for i in range(3) if i != axis))
        return float(line @ _step((w - self.axes[axis]) / self.spacing[axis]))

    def score_below(self, n: int, s: int, z: float) -> float:
        """The mass where the log odds of a record are below z."""
        w = BEND * np.arcsinh((z - self.shift(n, s)) / BEND)
        heavy = self.mass.sum(axis=0) > 1e-13
        places = (w[heavy] - self.axes[0][:, None]) / self.spacing[0]
        return float(np.sum(self.mass[:, heavy] * _step(places)))


def _step(t: Float) -> Float:
    """∫ sinc up to t."""
    return np.asarray(0.5 + sici(np.pi * t)[0] / np.pi)
