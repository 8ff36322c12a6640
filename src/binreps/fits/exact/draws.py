"""Independent draws from a density that a lattice covers: proposed between its points, and kept by chance."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from binreps.fits.exact.chart import Chart
from binreps.fits.exact.grid import NoMassError
from binreps.fits.exact.lattice import REACH, Frame, Function, TooManyPointsError, flood
from binreps.model import Float

_CUT = 22.0  # 10⁻⁹ of a Gaussian lies beyond
_MOST = 1_000_000
_TRIED = 2_000  # proposals, to see how many are lost
_FEW_LOST, _FEW_LOST_IN_FOUR = 4.0, 40.0  # the highest ratio, above which points move closer together
_CLOSEST = 0.1  # standard deviations between points
_MISSING = 0.01  # of the mass: a lattice of wide steps may be off by so much, above by more, and lack nothing
_AT_ONCE, _GIVEN_UP = 500_000, 500  # proposals, and how many of them to a draw are too many

Piece = tuple[Function, Chart, Frame]


class Proposal:
    """The density that interpolates a lattice's values: straight lines along every axis."""

    def __init__(self, function: Function, frame: Frame) -> None:
        self.function, self.origin, self.basis = function, frame.origin, frame.basis
        x, value = flood(function, frame.origin, frame.basis, frame.seeds, 1.0, cut=_CUT, most=_MOST)
        index = np.round(np.linalg.solve(self.basis, x - self.origin[:, None])).astype(np.int64)
        self._scale = (2 * REACH) ** np.arange(len(x))
        keys = self._keys(index)
        order = np.argsort(keys)
        self._sorted, self.index, self.value = keys[order], index[:, order], value[order]
        self.log_volume = float(np.sum(np.log(np.abs(np.diag(self.basis)))))

    def _keys(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(self._scale @ (index + REACH))

    def propose(self, which: NDArray[np.int64], rng: np.random.Generator) -> tuple[Float, Float]:
        """Points beside some of the lattice's, and how much likelier they are than they were proposed."""
        dim = len(self.index)
        moves = rng.random((dim, which.size)) - rng.random((dim, which.size))
        t = self.index[:, which] + moves
        low = np.floor(t).astype(np.int64)
        part, height = t - low, np.zeros(which.size)
        for corner in product((0, 1), repeat=dim):
            up = np.array(corner)[:, None]
            keys = self._keys(low + up)
            at = np.minimum(np.searchsorted(self._sorted, keys), self._sorted.size - 1)
            found = self._sorted[at] == keys
            share = np.prod(np.where(up == 1, part, 1 - part), axis=0)
            height += np.where(found, np.exp(self.value[at] - self.value.max()), 0.0) * share
        x = self.origin[:, None] + self.basis @ t
        return x, np.exp(self.function(x) - self.value.max()) / height


class Pieces:
    """Proposals for the pieces that together are the posterior, from lattices of one spacing."""

    def __init__(self, pieces: list[Piece], spacing: float) -> None:
        frames = [frame._replace(basis=spacing * frame.basis) for _, _, frame in pieces]
        self._charts = [chart for _, chart, _ in pieces]
        self._each = [Proposal(one[0], frame) for one, frame in zip(pieces, frames, strict=True)]
        logs = np.concatenate([one.value + one.log_volume for one in self._each])
        if not logs.size:
            raise NoMassError
        self._cumulative = np.cumsum(np.exp(logs - logs.max()))
        self.log_mass = float(logs.max() + np.log(self._cumulative[-1]))
        self._starts = np.cumsum([0, *(one.value.size for one in self._each)])

    def propose(self, size: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Parameters, and how much likelier they are than they were proposed."""
        which = np.searchsorted(self._cumulative, rng.random(size) * self._cumulative[-1])
        found, ratio = np.empty((len(self._each[0].origin), size)), np.empty(size)
        for i, (one, chart) in enumerate(zip(self._each, self._charts, strict=True)):
            here = (which >= self._starts[i]) & (which < self._starts[i + 1])
            x, ratio[here] = one.propose(which[here] - self._starts[i], rng)
            found[:, here] = np.stack(chart.place(x).parameters)
        return found, ratio


def draw(pieces: list[Piece], log_mass: float, size: int, rng: np.random.Generator) -> Float:
    """Draws of the parameters, shape (parameters, size), from the pieces that together are the posterior.

    A proposal is kept with probability ratio over the highest ratio; where a higher one turns up, those that
    were kept are thinned to what it would have kept. Pieces without the mass that they should have are no
    posterior: a tail of it lies where no lattice point is.
    """
    proposals, highest = _close_enough(pieces, log_mass, rng)
    kept, tried = np.empty((len(pieces[0][2].origin), 0)), 0
    while kept.shape[1] < size:
        if tried > _GIVEN_UP * (1 + size):
            raise TooManyPointsError
        wanted = min(int(1.2 * highest * (size - kept.shape[1])) + 60, _AT_ONCE)
        found, ratio = proposals.propose(wanted, rng)
        tried += wanted
        higher = max(highest, float(ratio.max()))
        kept = kept[:, rng.random(kept.shape[1]) * higher < highest]
        highest = higher
        kept = np.concatenate([kept, found[:, rng.random(ratio.size) * highest < ratio]], axis=1)
    return kept[:, :size]


def _close_enough(pieces: list[Piece], log_mass: float, rng: np.random.Generator) -> tuple[Pieces, float]:
    """Proposals from points so close that most are kept, or as close as may be; and the highest ratio."""
    good = _FEW_LOST if len(pieces[0][2].origin) < 4 else _FEW_LOST_IN_FOUR
    found, spacing = Pieces(pieces, 1.0), 1.0
    while True:
        highest = max(1.0, float(found.propose(_TRIED, rng)[1].max()))
        there = found.log_mass > log_mass - _MISSING
        if there and (highest <= good or spacing < _CLOSEST):
            return found, highest
        if spacing < _CLOSEST:
            raise NoMassError
        spacing /= 2
        try:
            found = Pieces(pieces, spacing)
        except TooManyPointsError:
            if there:
                return found, highest
            raise
