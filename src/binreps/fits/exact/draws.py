"""Independent draws from a density that a lattice covers: proposed between its points, and kept by chance."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from binreps.fits.exact.chart import Chart
from binreps.fits.exact.lattice import REACH, Frame, Function, flood
from binreps.model import Float

_CUT = 22.0  # 10⁻⁹ of a Gaussian lies beyond
_MOST = 1_000_000


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


def draw(pieces: list[tuple[Function, Chart, Frame]], size: int, rng: np.random.Generator) -> Float:
    """Draws of the parameters, shape (parameters, size), from the pieces that together are the posterior."""
    proposals = [Proposal(function, frame) for function, _, frame in pieces]
    logs = np.concatenate([one.value + one.log_volume for one in proposals])
    mass = np.exp(logs - logs.max())
    starts = np.cumsum([0, *(one.value.size for one in proposals)])
    cumulative = np.cumsum(mass)
    kept: list[Float] = []
    left, highest = size, 1.0
    while left > 0:
        which = np.searchsorted(cumulative, rng.random(int(1.6 * left) + 60) * cumulative[-1])
        found = np.empty((len(pieces[0][2].origin), which.size))
        ratio = np.empty(which.size)
        for one, (_, chart, _), start, end in zip(proposals, pieces, starts[:-1], starts[1:], strict=True):
            here = (which >= start) & (which < end)
            x, ratio[here] = one.propose(which[here] - start, rng)
            found[:, here] = np.stack(chart.place(x).parameters)
        highest = max(highest, float(ratio.max()))
        good = found[:, rng.random(which.size) * highest < ratio]
        kept.append(good[:, :left])
        left -= kept[-1].shape[1]
    return np.concatenate(kept, axis=1) if kept else np.empty((len(pieces[0][2].origin), 0))
