"""Cells of the plane of two logits, split until a density is a polynomial on each.

The plane is a square (both rates below ½) or the triangle y₁ + y₂ < 0 (p + q < 1). A cell is split along the
axes on which its last coefficients still matter: so a peak costs no more than the halvings that lead there,
and a layer along an axis, as single replicates leave, no more than a peak does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from binreps.fits.gauss import Interval, jacobi_polynomials, jacobi_rule, series_matrix
from binreps.model import Float

LogDensity = Callable[[Float, Float], Float]
"""Of two logits, lists of one size."""

_CUT = 36.0  # a cell that promises less than e^−36 of all mass is left out
_STEEP = 8.0  # a rise between points that may lead to a peak
_NARROW, _NEAR = 1e-13, 4.0  # no cell is smaller; and none near 0 so large that it could hide a peak


class Cells(NamedTuple):
    """Rectangles, and triangles below y₁ + y₂ = 0, by their lower corners and their sides."""

    low: Float  # (2, cells)
    side: Float  # (2, cells)
    triangle: NDArray[np.bool_]

    def some(self, which: Any) -> Cells:
        """Some of the cells."""
        return Cells(self.low[:, which], self.side[:, which], self.triangle[which])

    def points(self, order: int) -> tuple[Float, Float]:
        """Both logits, shape (2, cells, order, order), and the logarithm of each point's area.

        Where a triangle is at y₁, y₂ reaches from its lower corner to the long side.
        """
        rule = jacobi_rule(order, 0.0, 0.0)
        reach = np.where(self.triangle[:, None, None], 1 - rule.nodes[:, None], 1.0)
        first = self.low[0][:, None, None] + self.side[0][:, None, None] * rule.nodes[:, None]
        second = self.low[1][:, None, None] + self.side[1][:, None, None] * reach * rule.nodes
        area = np.log(np.outer(rule.weights, rule.weights)) + np.log(reach)
        area = area + np.log(self.side.prod(axis=0))[:, None, None]
        return np.stack(np.broadcast_arrays(first, second)), area

    def distance(self) -> Float:
        """How far from 0 each logit is at least."""
        return np.maximum(np.maximum(self.low, -(self.low + self.side)), 0.0)

    def split(self, axis: int) -> Cells:
        """The halves of rectangles."""
        side, middle = self.side.copy(), self.low.copy()
        side[axis] /= 2
        middle[axis] += side[axis]
        return joined([Cells(self.low, side, self.triangle), Cells(middle, side, self.triangle)])

    def thirds(self) -> Cells:
        """The square and the two triangles that make up each triangle."""
        half, none = self.side / 2, np.zeros(self.triangle.size, bool)
        right, above = self.low + half * [[1.0], [0.0]], self.low + half * [[0.0], [1.0]]
        corners = [Cells(low, half, ~none) for low in (right, above)]
        return joined([Cells(self.low, half, none), *corners])


def joined(parts: list[Cells]) -> Cells:
    """Cells side by side."""
    low, side, triangle = zip(*parts, strict=True)
    return Cells(np.concatenate(low, axis=1), np.concatenate(side, axis=1), np.concatenate(triangle))


@lru_cache(maxsize=16)
def _last(order: int) -> Float:
    """The matrix that takes values at the nodes to their last two coefficients."""
    return np.asarray(series_matrix(order, 0.0, 0.0)[-2:] * jacobi_rule(order, 0.0, 0.0).weights)


def resolve(function: LogDensity, cells: Cells, order: int, tol: float, most: int) -> Cells:
    """The cells on which e^function is resolved, from given ones; what is left unresolved counts too.

    A cell is left out if its largest value and the rise beside it promise nothing, and kept if the last
    coefficients are small. Steep slopes lead to a peak that no point has seen yet.
    """
    kept: list[Cells] = []
    done = -np.inf
    while cells.triangle.size:
        y, area = cells.points(order)
        values = function(y[0].ravel(), y[1].ravel()).reshape(area.shape)
        values = np.where(np.isnan(values), -np.inf, values)
        top = np.maximum(values.max(axis=(1, 2)), -1e300)
        with np.errstate(over="ignore", under="ignore"):
            shape = np.exp(values - top[:, None, None])
        mass = top + np.log(np.sum(shape * np.exp(area), axis=(1, 2)))
        total = np.logaddexp(done, np.logaddexp.reduce(mass))
        rise, size = _rise(values, top), top + np.log(cells.side.prod(axis=0))
        with np.errstate(divide="ignore"):
            missed = np.stack([_missed(shape, axis) for axis in (0, 1)]) + size
        rough = missed > total + np.log(tol)
        rough |= (rise > _STEEP) & ~rough.any(axis=0)
        rough &= (cells.side > _NARROW) & (size + rise.sum(axis=0) > total - _CUT)
        rough |= cells.side > _NEAR + cells.distance()  # whatever its points promise
        split = rough.any(axis=0)
        good = ~split & (mass > total - _CUT)
        kept.append(cells.some(good))
        done = float(np.logaddexp(done, np.logaddexp.reduce(mass[good], initial=-np.inf)))
        if sum(one.triangle.size for one in kept) + np.sum(split) > most:
            kept.append(cells.some(split))
            break
        cells = _children(cells.some(split), rough[:, split])
    return joined(kept)


def _rise(values: Float, top: Float) -> Float:
    """How much lower than its largest value a cell is beside it, along each axis: no less than a peak rises.

    A peak between two points has the next point on either side to tell of it. Beside the first or the last
    of a row there is none: two points that a peak lies between may be alike, so the third is asked as well.
    """
    cells, order = np.arange(top.size), values.shape[1]
    i, j = np.divmod(values.reshape(top.size, -1).argmax(axis=1), order)

    def beside(k: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [np.where(k > 0, k - 1, 2), np.where(k < order - 1, k + 1, order - 3)]

    first = np.minimum(*(values[cells, k, j] for k in beside(i)))
    second = np.minimum(*(values[cells, i, k] for k in beside(j)))
    return np.asarray(np.minimum(top - np.stack([first, second]), 1e300))


def _missed(shape: Float, axis: int) -> Float:
    """The logarithm of the largest of the last coefficients along an axis."""
    last = np.abs(np.tensordot(_last(shape.shape[1]), shape, axes=(1, axis + 1)))
    return np.asarray(np.log(last.max(axis=(0, 2))))


def _children(cells: Cells, rough: NDArray[np.bool_]) -> Cells:
    """Cells split along the axes that are rough."""
    three = cells.triangle
    both, first, second = (
        ~three & pair for pair in (rough.all(axis=0), rough[0] & ~rough[1], ~rough[0] & rough[1])
    )
    return joined(
        [
            cells.some(three).thirds(),
            cells.some(both).split(0).split(1),
            cells.some(first).split(0),
            cells.some(second).split(1),
        ]
    )


def lines(cells: Cells, mass: Float, axis: int) -> tuple[Interval, Float]:
    """The density of one logit: intervals that may overlap, and masses at the nodes of each."""
    if axis == 1:
        mass = np.where(cells.triangle[:, None, None], _turned(mass), mass.transpose(0, 2, 1))
    low, side = cells.low[axis], cells.side[axis]
    ends, where = np.unique(np.stack([low, low + side]), axis=1, return_inverse=True)
    sums = np.zeros((ends.shape[1], mass.shape[1]))
    np.add.at(sums, where.ravel(), mass.sum(axis=2))
    return Interval(ends[0], ends[1]), sums


def _turned(mass: Float) -> Float:
    """Masses on triangles for the rule that has the other logit first, by the polynomial through them."""
    order = mass.shape[-1]
    rule = jacobi_rule(order, 0.0, 0.0)
    weight = np.outer(rule.weights * (1 - rule.nodes), rule.weights)
    return np.asarray(((mass / weight).reshape(-1, order**2) @ _turn(order).T).reshape(mass.shape) * weight)


@lru_cache(maxsize=16)
def _turn(order: int) -> Float:
    """The matrix from values at a triangle's points to those at the points with the axes exchanged."""
    x = jacobi_rule(order, 0.0, 0.0).nodes
    second, part = (one.ravel() for one in np.meshgrid(x, x, indexing="ij"))
    first = (1 - second) * part
    back = series_matrix(order, 0.0, 0.0) * jacobi_rule(order, 0.0, 0.0).weights
    columns = [jacobi_polynomials(order, 0.0, 0.0, u).T @ back for u in (first, second / (1 - first))]
    return np.asarray(np.einsum("ki,kj->kij", *columns).reshape(x.size**2, -1))
