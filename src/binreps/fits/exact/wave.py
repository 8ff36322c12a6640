"""The density of one coordinate: a lattice whose planes are its values, added up plane by plane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from binreps.fits.exact.lattice import TURNS, Function, flood, frame_of
from binreps.fits.exact.marginal import Scale, Wave
from binreps.model import Float

_MOST = 40_000  # points
_DIED_OUT = 0.02  # the share of the spectrum at its end, over the error that is good enough
_CLOSEST = 0.05  # standard deviations between planes
_BINS, _AROUND = 32, 8  # to a width of a blur, and widths on either side
_BLURRED_CUT = 1e-7  # of a density that was blurred: below are ripples


class How(NamedTuple):
    """How closely a density is looked at: spacing of points on a plane in sds, cut, what is good enough."""

    across: float
    cut: float
    tolerance: float

    def times(self, factor: float) -> How:
        """With points further apart, or closer."""
        return self._replace(across=factor * self.across)


def wave(function: Function, x: Float, mass: Float, axis: int, scale: Scale, how: How) -> Wave:
    """The density of coordinate `axis` of a log density that lives where the points x have mass.

    Planes are moved closer together until the density's spectrum has died out at the highest frequency that
    they can carry.
    """
    across, cut, tolerance = how
    along = across / 2
    order = [axis, *(i for i in range(len(x)) if i != axis)]
    back = np.argsort(order)
    frame = frame_of(x[order], mass / mass.sum())
    inside = frame.basis.copy()
    inside[1:, 1:] = inside[1:, 1:] @ TURNS[len(x) - 1][0]
    seeds = frame.seeds[:, mass > np.exp(-cut) * mass.max()]
    while True:
        basis = inside.copy()
        basis[:, 0] *= along / across
        found, value = flood(
            lambda y: function(y[back]),
            frame.origin,
            basis,
            seeds,
            across,
            cut=cut,
            most=_MOST * 20 ** (len(x) - 3),
        )
        spacing = across * basis[0, 0]
        index = np.round((found[0] - frame.origin[0]) / spacing).astype(np.int64)
        first = int(index.min())
        masses = np.asarray(np.bincount(index - first, np.exp(value - value.max())), float)
        spectrum = np.abs(np.fft.rfft(masses, 4 * masses.size)) / masses.sum()
        if spectrum[-spectrum.size // 16 :].max() < _DIED_OUT * tolerance or along < _CLOSEST:
            return Wave(frame.origin[0] + first * spacing, spacing, masses, scale)
        along /= 1.5


class Blur(NamedTuple):
    """How a density is seen from the points of a grid: blurred by so many sds; on either grid."""

    width: float
    check: bool = False


def blurred(y: Float, mass: Float, scale: Scale, width: float) -> Wave:
    """The density of a number from its values at the points of a lattice that is turned against it.

    A Gaussian of a fraction of a standard deviation makes it smooth, and is taken away again but for the
    seventh power of its width and on: the spectrum is multiplied by exp(−x)(1 + x + x²/2 + x³/6).
    """
    mean = y @ mass
    width *= float(np.sqrt((y - mean) ** 2 @ mass))
    fine = width / _BINS
    first = y.min() - _AROUND * width
    size = int((y.max() - first) / fine + _AROUND * _BINS) + 2
    at = (y - first) / fine
    left = at.astype(np.int64)
    share = mass * (at - left)
    masses = np.bincount(left, mass - share, size) + np.bincount(left + 1, share, size)
    x = (2 * np.pi * np.fft.rfftfreq(2 * size) * _BINS) ** 2 / 2
    kernel = np.exp(-x) * (1 + x * (1 + x / 2 * (1 + x / 3)))
    density = np.fft.irfft(np.fft.rfft(masses, 2 * size) * kernel, 2 * size)[: size : _BINS // 4]
    matters = np.flatnonzero(density > _BLURRED_CUT * density.max())
    ends = slice(matters[0], matters[-1] + 1)
    spacing = _BINS // 4 * fine
    return Wave(first + ends.start * spacing, spacing, np.maximum(density[ends], 1e-300), scale)
