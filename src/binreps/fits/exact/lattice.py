"""The trapezoid rule on a lattice: equally spaced points in coordinates without borders.

A smooth density that dies out on all sides is summed by equally spaced points with an error that falls
exponentially in 1/spacing; a Gaussian to 10⁻⁹ at one standard deviation. So the lattice follows the density's
own covariance, and only points that matter are visited: from modes outwards until it has fallen by e^−CUT.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from binreps.model import Float

Function = Callable[[Float], Float]
Index = NDArray[np.int64]

CUT = 28.0
"""Points are left out where the density has fallen by e^−CUT: about 10⁻¹¹ of a Gaussian lies beyond."""

REACH = 2**14  # lattice points on either side of the centre: four coordinates fit into one whole number
_FEW = 16  # seeds that are modes; more of them are points all over the density
_STEP = 0.35  # of a standard deviation, for differences: large enough to be above rounding
_LONGEST = 4.0  # standard deviations within which a Newton step is at home; longer ones are tried too
_SHARES = np.array([1.0, 0.3, 0.08, 0.02])  # of a Newton step


class TooManyPointsError(ArithmeticError):
    """The lattice would need more points than allowed."""


class Peak(NamedTuple):
    """A mode, and a matrix whose columns are as long as the density is wide there."""

    x: Float
    basis: Float
    value: float


def climb(function: Function, x: Float, width: float) -> Peak:
    """The mode that Newton steps by differences lead to; `width` is a first guess of the density's."""
    basis, value = width * np.eye(x.size), float(function(x[:, None])[0])
    for _ in range(80):
        with np.errstate(invalid="ignore"):
            gradient, curvature, found = _differences(function, x, basis)
        if not np.isfinite(curvature).all():  # beyond what floats hold
            break
        value = max(value, found)
        size, axes = np.linalg.eigh(-curvature)
        size = np.maximum(np.abs(size), 1e-2)  # at most ten times wider than it was
        step = axes @ ((axes.T @ gradient) / size)
        length = float(np.sqrt(np.sum((axes.T @ step) ** 2 * size)))
        near = step * min(1.0, _LONGEST / max(np.abs(step).max(), 1e-300))
        tried = x[:, None] + basis @ np.concatenate([np.outer(one, _SHARES) for one in (step, near)], axis=1)
        values = function(tried)
        best = int(np.argmax(values))
        if values[best] > value:
            x, value = tried[:, best], float(values[best])
        basis = basis @ (axes / np.sqrt(size))
        if length < 0.1 and size.min() > 0.5 and size.max() < 2:
            break
    return Peak(x, lower_triangular(basis), value)


def lower_triangular(basis: Float) -> Float:
    """The lower triangular matrix, its diagonal positive, whose columns span what the basis does."""
    triangle = np.linalg.qr(basis.T)[1].T
    return np.asarray(triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0))


def _differences(function: Function, x: Float, basis: Float) -> tuple[Float, Float, float]:
    """Gradient and curvature along the columns of the basis, and the value."""
    dim = x.size
    moves = _stencil(dim)
    values = function(x[:, None] + basis @ (_STEP * moves))
    middle, up, down = values[0], values[1 : dim + 1], values[dim + 1 : 2 * dim + 1]
    bends = up + down - 2 * middle
    curvature = np.diag(bends)
    both = values[2 * dim + 1 :].reshape(-1, 2).sum(axis=1)
    for (i, j), pair in zip(combinations(range(dim), 2), both, strict=True):
        curvature[i, j] = curvature[j, i] = (pair - 2 * middle - bends[i] - bends[j]) / 2
    return (up - down) / (2 * _STEP), curvature / _STEP**2, float(middle)


@lru_cache(maxsize=8)
def _stencil(dim: int) -> Float:
    """Moves for second differences: none, ± along each axis, ± along the sum of each pair of axes."""
    one = np.eye(dim)
    pairs = [sign * (one[i] + one[j]) for i, j in combinations(range(dim), 2) for sign in (1, -1)]
    return np.concatenate([np.zeros((1, dim)), one, -one, *([np.array(pairs)] if pairs else [])]).T


@lru_cache(maxsize=64)
def _ball(dim: int, radius: float) -> Index:
    """The lattice points of a ball, as columns."""
    reach = int(radius)
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * dim, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes])
    return np.asarray(points[:, np.sum(points**2, axis=0) <= radius**2])


def flood(
    function: Function,
    origin: Float,
    basis: Float,
    seeds: Float,
    spacing: float,
    *,
    cut: float = CUT,
    most: int,
) -> tuple[Float, Float]:
    """Points origin + spacing·basis·k, k whole, where a log density is within `cut` of its top; and values.

    From balls around the seeds (columns), which a Gaussian fills, on to neighbours of points that matter.
    """
    dim, basis = origin.size, spacing * basis
    scale = (2 * REACH) ** np.arange(dim)  # a point as one number
    start = np.round(np.linalg.solve(basis, seeds - origin[:, None])).astype(np.int64)
    one, many = seeds.shape[1] < 2, seeds.shape[1] > _FEW
    ball = _ball(dim, 0.0 if many else round(np.sqrt((2.0 if one else 0.5) * cut) / spacing, 2))
    keys = scale @ start + ((scale @ ball) + REACH * scale.sum())[:, None]
    keys = np.unique(keys) if seeds.shape[1] > 1 else keys[:, 0]
    steps = np.concatenate([scale, -scale])
    before, points, values, top, total = np.empty(0, np.int64), [], [], -np.inf, 0
    while keys.size:
        index = keys // scale[:, None] % (2 * REACH) - REACH
        total += keys.size
        if np.abs(index).max() > REACH - 2 or total > most:
            raise TooManyPointsError
        x = origin[:, None] + basis @ index
        value = function(x)
        points.append(x)
        values.append(value)
        top = max(top, float(value.max()))
        # Of a wave's neighbours those that were seen are in this wave or the last, or are left out anyway.
        ahead = np.sort((keys[value > top - cut] + steps[:, None]).ravel())
        ahead = ahead[np.diff(ahead, prepend=-1) > 0]
        recent = np.sort(np.concatenate([before, keys]))
        place = np.minimum(np.searchsorted(recent, ahead), recent.size - 1)
        before, keys = keys, ahead[recent[place] != ahead]
    x, value = np.concatenate(points, axis=1), np.concatenate(values)
    kept = value > top - cut
    return x[:, kept], value[kept]


class Frame(NamedTuple):
    """Where a lattice lies: a point, a lower triangular matrix as wide as the density, points to start from.

    The first coordinate changes with the first index alone, and along the last index nothing but the last.
    """

    origin: Float
    basis: Float
    seeds: Float


def frame_of(x: Float, mass: Float) -> Frame:
    """The frame of points with masses: their mean and covariance."""
    mean = x @ mass
    away = (x - mean[:, None]) * np.sqrt(mass)
    least = np.diag(1e-7 + 1e-6 * np.sqrt(np.sum(away**2, axis=1)))
    return Frame(mean, lower_triangular(np.concatenate([away, least], axis=1)), x)


TURNS: dict[int, tuple[Float, Float]] = {
    2: (np.array([[1, -1], [1, 1]]) / np.sqrt(2), np.array([[0.9, -(0.19**0.5)], [0.19**0.5, 0.9]])),
    3: (np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3, np.eye(3) - 2 / 3),
}
"""Two rotations that take every axis near a diagonal: a density that is rough along an axis, as one beside an
end of its domain is, is seen at many more places than it would be by planes across that axis."""


def turned(frame: Frame, spacing: float, turn: int) -> tuple[Float, Float]:
    """Origin and basis of a lattice; those of different turns share neither points nor directions."""
    dim = frame.origin.size
    basis = frame.basis @ TURNS[dim][turn % 2]
    return frame.origin + spacing * basis @ (np.sqrt(np.arange(2, dim + 2) + turn) % 1), basis
