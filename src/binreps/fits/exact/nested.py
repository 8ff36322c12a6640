"""Gauss rules one inside the other, each on its own conditional support: for ridges and separate modes.

The outer axis is cut into panels. At each of its nodes the second axis gets the interval where its
conditional density lives, cut into pieces where it has sharp edges; at each pair of nodes so does the third.
A ridge, however thin, is followed; two modes, however far apart, get panels of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from binreps.fits.exact.density import Density
from binreps.fits.exact.gauss import Interval, series_tail
from binreps.fits.exact.grid import Grid, Marginal
from binreps.fits.exact.support import Lines, Support
from binreps.model import Float

ORDERS = {0: (0, 2, 1), 1: (1, 2, 0), 2: (2, 1, 0)}
"""For each outer axis the order of the nest; θ innermost where it can be: given p and q it has one mode."""

_SIZES = (24, 32, 32)  # nodes per panel, per piece, per inner line
_TAIL = 1e-9  # a series has died out when its last terms are this small
_NOISE = 1e-6  # rounding may leave this much where a rate is known to nine digits or more
_HALVINGS = 40  # of a panel or a piece at the most
_MOST_WORK = 60_000_000  # nodes × cells at which refinement stops


class Slices(NamedTuple):
    """The density across some outer nodes: pieces of lines of the second axis, with their inner rules.

    `owner` says to which outer node each piece belongs.
    """

    owner: NDArray[Any]
    lower: Float  # ends of the pieces
    upper: Float
    second: Float  # (pieces, nodes)
    third: Float  # (pieces, nodes, nodes)
    third_lower: Float  # (pieces, nodes)
    third_upper: Float
    log_mass: Float  # (pieces, nodes, nodes), without the outer weights

    def totals(self, size: int) -> Float:
        """log ∫∫ at each of the outer nodes."""
        result = np.full(size, -np.inf)
        np.logaddexp.at(result, self.owner, logsumexp(self.log_mass, axis=(1, 2)))
        return result

    def some(self, chosen: NDArray[np.bool_]) -> Slices:
        """Some of the pieces."""
        return Slices(*(column[chosen] for column in self))

    @staticmethod
    def joined(parts: list[Slices]) -> Slices:
        """The pieces of all parts."""
        return Slices(*map(np.concatenate, zip(*parts, strict=True)))


def slices(support: Support, axis: int, outer: Float, sizes: tuple[int, int, int]) -> Slices:
    """Integrate across each outer node, halving pieces of the second axis until its series has died out."""
    density = support.density
    _, second, third = ORDERS[axis]
    completed, owner, lines = support.second(axis, outer, second)
    best = np.full(outer.size, -np.inf)
    before = np.full(owner.size, np.inf)  # what the series of each one's parent left
    done: list[Slices] = []
    for generation in range(_HALVINGS + 1):
        x_second, log_second = lines.rule(density, sizes[1])
        points = np.repeat(completed[:, owner, None], sizes[1], axis=2)
        points[second] = x_second
        inner = support.third(points.reshape(3, -1), third)
        x_third, log_third = (v.reshape(*x_second.shape, -1) for v in inner.rule(density, sizes[2]))
        x = {axis: outer[owner][:, None, None], second: x_second[:, :, None], third: x_third}
        log_mass = density.log_ratio(x[0], x[1], x[2]) + log_second[:, :, None] + log_third
        line = logsumexp(log_mass, axis=2)
        np.maximum.at(best, owner, logsumexp(line, axis=1))
        seen = np.where(np.isfinite(best), best, best.max())[owner, None]
        relevant = np.exp(line - seen) * np.exp(seen - best.max())
        tails = lines.tails(density, relevant)
        rough = _worth_halving(tails, before) & (generation < _HALVINGS)
        ends = (inner.lower.reshape(x_second.shape), inner.upper.reshape(x_second.shape))
        done.append(Slices(owner, lines.lower, lines.upper, x_second, x_third, *ends, log_mass).some(~rough))
        if not rough.any():
            break
        owner, lines = _halved(owner[rough], Lines(second, lines.lower[rough], lines.upper[rough]))
        before = np.tile(tails[rough], 2)
    return Slices.joined(done)


def _worth_halving(tails: Float, before: Float) -> NDArray[np.bool_]:
    """Whether series have not died out yet, and are not at the noise that halving does not lessen."""
    return (tails > _TAIL) & ((tails > _NOISE) | (tails < before / 2))


def _halved(owner: NDArray[Any], lines: Lines) -> tuple[NDArray[Any], Lines]:
    """Each line cut in the middle."""
    middle = (lines.lower + lines.upper) / 2
    lower, upper = np.concatenate([lines.lower, middle]), np.concatenate([middle, lines.upper])
    return np.concatenate([owner, owner]), Lines(lines.axis, lower, upper)


class NestedGrid(Grid):
    """A nest of rules: the outer axis in panels, the others on their conditional supports."""

    def __init__(
        self,
        support: Support,
        axis: int,
        panels: list[Interval],
        sizes: tuple[int, int, int],
        parts: Slices | None = None,
    ) -> None:
        self.support, self.axis, self.panels, self.sizes = support, axis, panels, sizes
        density = support.density
        outer = np.concatenate([panel.nodes(sizes[0]) for panel in panels])
        weights = np.concatenate([outer_weights(density, axis, panel, sizes[0]) for panel in panels])
        if parts is None:
            parts = slices(support, axis, outer, sizes)
        self.owner, self.inner_ends = parts.owner, (parts.third_lower, parts.third_upper)
        nodes = (outer[parts.owner][:, None, None], parts.second[:, :, None], parts.third)
        x = dict(zip(ORDERS[axis], nodes, strict=True))
        log_mass = parts.log_mass + weights[parts.owner][:, None, None]
        super().__init__(density, (x[0], x[1], x[2]), log_mass)

    def marginal(self) -> Marginal:
        """The marginal density of the outer rate."""
        each: Float = self.mass.sum(axis=(1, 2))
        masses = np.asarray(np.bincount(self.owner, each, minlength=len(self.panels) * self.sizes[0]), float)
        pairs = zip(self.panels, masses.reshape(len(self.panels), -1), strict=True)
        return Marginal(sorted(pairs, key=lambda pair: float(pair[0].lower)))


def outer_weights(density: Density, axis: int, panel: Interval, size: int) -> Float:
    """Log weights of a panel with the prior's other factors."""
    return np.asarray(panel.log_weights(size) + density.log_prior_rest(axis, panel.nodes(size), panel))


def find_panels(support: Support, axis: int) -> NestedGrid:
    """A nest whose outer panels are halved until the marginal density is a short series on each."""
    density, size = support.density, _SIZES[0]
    pending, top = support.outer(axis), -np.inf
    before = np.full(len(pending), np.inf)  # what the series of each one's parent left
    panels: list[Interval] = []
    done: list[Slices] = []
    for generation in range(_HALVINGS + 1):
        outer = np.concatenate([panel.nodes(size) for panel in pending])
        weights = np.concatenate([outer_weights(density, axis, panel, size) for panel in pending])
        parts = slices(support, axis, outer, _SIZES)
        log_mass = (parts.totals(outer.size) + weights).reshape(len(pending), size)
        top = max(top, float(logsumexp(log_mass)))
        rows = zip(pending, np.exp(log_mass - top), strict=True)
        tails = np.array([series_tail(panel, row[None])[0] for panel, row in rows])
        rough = _worth_halving(tails, before) & (generation < _HALVINGS)
        # Pieces of the panels that stay, with owners counted among those.
        place = size * (len(panels) + np.cumsum(~rough) - 1)
        panel = parts.owner // size
        moved = parts._replace(owner=place[panel] + parts.owner % size)
        done.append(moved.some(~rough[panel]))
        panels += [one for one, again in zip(pending, rough, strict=True) if not again]
        halved = [one for one, again in zip(pending, rough, strict=True) if again]
        if not halved:
            break
        pending = [half for one in halved for half in _halves(density, axis, one)]
        before = np.repeat(tails[rough], 2)
    return NestedGrid(support, axis, panels, _SIZES, Slices.joined(done))


def _halves(density: Density, axis: int, panel: Interval) -> tuple[Interval, Interval]:
    """A panel cut in the middle."""
    middle = (panel.lower + panel.upper) / 2
    return density.interval(axis, panel.lower, middle), density.interval(axis, middle, panel.upper)


def integrate_nested(support: Support, axis: int, tol: float) -> tuple[NestedGrid, NestedGrid]:
    """Nests of growing size until two agree, or the work allowed is done: the last two, the finer first."""
    grid, before = find_panels(support, axis), np.inf
    cells = max(len(support.density.counts), 1)
    while True:
        outer, second, third = grid.sizes
        finer = NestedGrid(support, axis, grid.panels, (outer + 4, second + 4, third + 6))
        change = finer.distance(grid)
        noise = before / 2 < change < _NOISE
        if change < tol or noise or finer.mass.size * cells > _MOST_WORK:
            return finer, grid
        grid, before = finer, change
