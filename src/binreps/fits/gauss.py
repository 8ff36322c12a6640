"""One-dimensional Gauss–Jacobi rules, and the densities they carry.

A density on an interval is written f(x) = (x − lower)^a (upper − x)^b g(x) with g smooth. The rule with the
weight (x − lower)^a (upper − x)^b integrates g spectrally, however singular the ends. The same values of g
at the nodes give g everywhere, as a series of Jacobi polynomials whose integrals are known in closed form:
density, distribution function and quantiles follow without any further integration.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaln, roots_jacobi

from binreps.model import Float


class Rule(NamedTuple):
    """Nodes in (0, 1) and weights for ∫ u^a (1−u)^b g(u) du."""

    nodes: Float
    weights: Float


@lru_cache(maxsize=1024)
def jacobi_rule(size: int, a: float, b: float) -> Rule:
    """The Gauss rule of `size` nodes on (0, 1) for the weight u^a (1−u)^b, a and b > −1.

    SciPy's nodes are polished from the end that they are nearer to: beside a singular end the weights need
    the distance to it to full relative precision.
    """
    x = roots_jacobi(size, b, a)[0]
    left = _polished((1 + x[x < 0]) / 2, size, a, b)
    right = _polished((1 - x[x >= 0]) / 2, size, b, a)
    weights = np.concatenate([left.weights, right.weights])
    nodes = np.concatenate([left.nodes, 1 - right.nodes])
    return Rule(nodes, weights * np.exp(betaln(a + 1, b + 1)) / weights.sum())


def _polished(u: Float, size: int, a: float, b: float) -> Rule:
    """One Newton step for some nodes, given by their distances from the end 0; weights up to a constant.

    P_k, 1 at that end, is summed from differences P_k − P_{k−1}, which are small with u. At a node
    u(1−u)(2n+a+b) P_n′ = −n(n+b) P_{n−1}, and the weight is proportional to 1 / (u(1−u) P_n′²).
    """
    last, value, constant = np.ones_like(u), np.ones_like(u), size + b
    step = -(a + b + 2) / (a + 1) * u
    for k in range(1, size + 1):
        last, value = value, value + step
        c, below = 2 * k + a + b, (k + a + 1) * (k + a + b + 1)
        step = k * (k + b) * (c + 2) / (below * c) * step - (c + 1) * (c + 2) / below * u * value
        constant *= 1 + a / k
    c, room = 2 * size + a + b, u * (1 - u)
    move = value / last * room * c / (size * (size + b))
    last = last * (1 - move * (size + a + b) * (a - b + c * (1 - 2 * u)) / (2 * c * room))
    return Rule(u + move, (u + move) * (1 - u - move) / (last * constant) ** 2)


@dataclass(frozen=True)
class Interval:
    """An interval with the powers of its singular ends: (x − lower)^a (upper − x)^b.

    The ends may be arrays: as many intervals of one sort.
    """

    lower: Any
    upper: Any
    a: float = 0.0
    b: float = 0.0

    @property
    def length(self) -> Any:
        """upper − lower."""
        return self.upper - self.lower

    def nodes(self, size: int) -> Float:
        """The nodes of the rule, increasing."""
        lower, length = np.asarray(self.lower)[..., None], np.asarray(self.length)[..., None]
        return np.asarray(lower + length * jacobi_rule(size, self.a, self.b).nodes)

    def log_weights(self, size: int) -> Float:
        """Logarithms of the weights of the rule for ∫ (x − lower)^a (upper − x)^b g(x) dx."""
        scale = (self.a + self.b + 1) * np.log(self.length)
        return np.asarray(np.log(jacobi_rule(size, self.a, self.b).weights) + scale)

    def log_steps(self, size: int) -> Float:
        """Logarithms of the weights of the rule for ∫ f(x) dx."""
        x = self.nodes(size)
        return np.asarray(
            self.log_weights(size) - self.a * np.log(x - self.lower) - self.b * np.log(self.upper - x)
        )

    def unit(self, x: Any) -> Any:
        """Positions in the interval as fractions of it."""
        return np.clip((np.asarray(x, dtype=float) - self.lower) / self.length, 0.0, 1.0)


def jacobi_polynomials(size: int, a: float, b: float, u: Any) -> Float:
    """P_0(u), …, P_{size−1}(u) along a new first axis, orthogonal on (0, 1) for the weight u^a (1−u)^b."""
    x = 2 * np.asarray(u) - 1
    values = np.empty((size, *x.shape))
    values[0] = 1
    if size > 1:
        values[1] = (b - a) / 2 + (a + b + 2) / 2 * x
    for k, (slope, level, last) in enumerate(_recurrence(size, a, b), start=1):
        values[k + 1] = (slope * x + level) * values[k] - last * values[k - 1]
    return values


@lru_cache(maxsize=1024)
def _recurrence(size: int, a: float, b: float) -> list[tuple[float, float, float]]:
    """Coefficients of P_{k+1} = (slope·x + level) P_k − last·P_{k−1}, k = 1 … size − 2."""
    k = np.arange(1, max(size - 1, 1), dtype=float)
    c = 2 * k + a + b
    lead = 2 * (k + 1) * (k + 1 + a + b) * c
    columns = (
        (c + 1) * (c + 2) * c / lead,
        (c + 1) * (b - a) * (b + a) / lead,
        2 * (k + b) * (k + a) * (c + 2) / lead,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


@lru_cache(maxsize=1024)
def series_matrix(size: int, a: float, b: float) -> Float:
    """The matrix that takes masses w_i g_i at the nodes to the coefficients of g in Jacobi polynomials."""
    rows = jacobi_polynomials(size, a, b, jacobi_rule(size, a, b).nodes)
    return np.asarray(rows / _squares(size, a, b)[:, None])


@lru_cache(maxsize=1024)
def _squares(size: int, a: float, b: float) -> Float:
    """∫ u^a (1−u)^b P_k(u)² du for k < size."""
    rule = jacobi_rule(size, a, b)
    return np.asarray(jacobi_polynomials(size, a, b, rule.nodes) ** 2 @ rule.weights)


def series_tail(interval: Interval, masses: Float) -> Float:
    """For each row of masses, the mass that the last three terms of its series move about."""
    size = masses.shape[-1]
    last = masses @ series_matrix(size, interval.a, interval.b)[-3:].T
    squares = _squares(size, interval.a, interval.b)
    return np.asarray(np.max(np.abs(last) * np.sqrt(squares[-3:] * squares[0]), axis=-1))


@lru_cache(maxsize=1024)
def _integration(size: int, a: float, b: float) -> Float:
    """The matrix that takes masses at the nodes to the polynomial part of the distribution function there.

    ∫ u^a (1−u)^b P_k = −u^(a+1) (1−u)^(b+1) P_{k−1}^{(a+1, b+1)} / k for k ≥ 1.
    """
    lifted = jacobi_polynomials(size - 1, a + 1, b + 1, jacobi_rule(size, a, b).nodes)
    return np.asarray(lifted.T @ (series_matrix(size, a, b)[1:] / np.arange(1, size)[:, None]))


@lru_cache(maxsize=1024)
def _barycentric_weights(size: int, a: float, b: float) -> Float:
    """Weights of barycentric interpolation at the nodes: (−1)^j √(u_j (1−u_j) w_j)."""
    nodes, weights = jacobi_rule(size, a, b)
    size_of = np.sqrt(nodes * (1 - nodes) * weights)
    return np.asarray(size_of / size_of.max() * (-1.0) ** np.arange(size))


Law = Callable[[Float], tuple[Float, Float]]
"""A distribution function and its density at some points."""

_FEW_ROWS = 0.6  # of all, that are still on their way: worth a law of their own


def invert(
    law: Law,
    wanted: Float,
    x: Float,
    low: Any = -np.inf,
    high: Any = np.inf,
    *,
    tol: float = 1e-13,
    some: Callable[[Any], Law] | None = None,
) -> Float:
    """Where a distribution function reaches some values: Newton steps inside brackets that shrink.

    A bracket that is still open is left in steps that double. `some` gives the law of some rows, with which
    those go on that take longer than others.
    """
    x, low, high = (np.array(np.broadcast_to(one, wanted.shape), dtype=float) for one in (x, low, high))
    stride = np.full(x.shape, 0.05)
    for _ in range(100):
        below, height = law(x)
        excess = below - wanted
        low, high = np.where(excess < 0, x, low), np.where(excess >= 0, x, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = x - excess / height
            closed = np.isfinite(high - low)
            middle = np.where(closed, (low + high) / 2, x - np.sign(excess) * stride)
        good = (newton >= low) & (newton <= high) & (closed | (np.abs(newton - x) <= 4 * stride))
        following = np.where(np.abs(excess) < 1e-15, x, np.where(good, newton, middle))
        stride = np.where(good, stride, 2 * stride)
        move, x = np.abs(following - x), following
        moving = move > tol + 4e-16 * np.abs(x)
        if not moving.any():
            break
        if some is not None and (rows := moving.any(axis=1)).mean() < _FEW_ROWS:
            x[rows] = invert(some(rows), wanted[rows], x[rows], low[rows], high[rows], tol=tol, some=None)
            break
    return x


class Series:
    """Densities on one interval, one per row, from their masses at the nodes of the interval's rule.

    Parameters
    ----------
    interval : Interval
    masses : array, last axis the nodes
        Weight times g at each node, in any common unit: the sum of a row is its total mass.
    """

    def __init__(self, interval: Interval, masses: Float) -> None:
        self.interval, self.masses = interval, masses
        self.total = masses.sum(axis=-1)
        self._kind = (masses.shape[-1], interval.a, interval.b)
        self._constant = (
            masses @ series_matrix(*self._kind)[0] * np.exp(betaln(interval.a + 1, interval.b + 1))
        )
        self._smooth = masses / jacobi_rule(*self._kind).weights
        self._rest = masses @ _integration(*self._kind).T

    @property
    def coefficients(self) -> Float:
        """The coefficients of g in Jacobi polynomials."""
        return np.asarray(self.masses @ series_matrix(*self._kind).T)

    def rows(self, which: Any) -> Series:
        """Some of the rows, in any order and number, of series on one interval."""
        some = copy(self)
        for name in ("masses", "total", "_constant", "_smooth", "_rest"):
            setattr(some, name, getattr(self, name)[which])
        return some

    def density(self, x: Any) -> Any:
        """Density at x, in mass per unit of x."""
        inside = self.interval
        u = inside.unit(x)
        with np.errstate(divide="ignore"):
            envelope = u**inside.a * (1 - u) ** inside.b / inside.length
        return envelope * self._interpolate(u, self._smooth)

    def cumulative(self, x: Any) -> Any:
        """Mass below x."""
        a, b = self.interval.a, self.interval.b
        u = self.interval.unit(x)
        bend = u ** (a + 1) * (1 - u) ** (b + 1) * self._interpolate(u, self._rest)
        return betainc(a + 1, b + 1, u) * self._constant - bend

    def _interpolate(self, u: Any, values: Float) -> Any:
        """The polynomial with the given values at the nodes, by the barycentric formula."""
        gap = u[..., None] - jacobi_rule(*self._kind).nodes
        gap[gap == 0] = 1e-100  # at a node its own term decides
        terms = _barycentric_weights(*self._kind) / gap
        return np.einsum("...k,...k->...", terms, values) / terms.sum(axis=-1)

    def quantile(self, mass: Any) -> Any:
        """The x below which the given mass lies."""
        mass, inside = np.asarray(mass, dtype=float), self.interval
        x, low, high = np.broadcast_arrays(self._first_guess(mass), inside.lower, inside.upper)
        found = invert(
            lambda x: (self.cumulative(x), self.density(x)),
            mass,
            x,
            low,
            high,
            tol=1e-13 * np.min(inside.length),
        )
        return found[()]

    def densities(self, u: Float, rest: Float, slope: Float) -> Float:
        """The densities of all rows at parts u of their intervals, times a slope; `rest` is 1 − u."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            envelope = np.nan_to_num(u**self.interval.a * rest**self.interval.b * slope, posinf=0.0)
        return np.asarray(self._smooth @ self._between(u).T * envelope)

    def cumulatives(self, u: Float, rest: Float) -> Float:
        """The masses of all rows below the same parts of their intervals, shape (rows, points)."""
        a, b = self.interval.a + 1, self.interval.b + 1
        below = np.where(u < 0.5, betainc(a, b, u), 1 - betainc(b, a, rest))
        bend = u**a * rest**b * (self._rest @ self._between(u).T)
        return np.asarray(np.outer(self._constant, below) - bend)

    def _between(self, u: Float) -> Float:
        """The matrix that takes values at the nodes to those of their polynomial at some points."""
        gap = u[:, None] - jacobi_rule(*self._kind).nodes
        gap[gap == 0] = 1e-100
        terms = _barycentric_weights(*self._kind) / gap
        return np.asarray(terms / terms.sum(axis=1, keepdims=True))

    def _first_guess(self, mass: Any) -> Any:
        """Where the masses at the nodes, added up, reach the given mass."""
        steps = np.cumsum(self.masses, axis=-1) - self.masses / 2
        nodes = self.interval.nodes(self.masses.shape[-1])
        if self.masses.ndim == 1:
            return np.interp(mass, steps, nodes)
        nearest = np.minimum((steps < mass[..., None]).sum(axis=-1), steps.shape[-1] - 1)
        return np.take_along_axis(np.broadcast_to(nodes, steps.shape), nearest[:, None], axis=1)[:, 0]
