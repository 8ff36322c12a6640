"""The error side of the sampler: each source's rates, and the population that they come from.

One side per class: of negatives a source is wrong with p_j, of positives with q_j. A side's mean m and
spread ρ = 1/(1+κ) move by Metropolis steps with its rates integrated out; then the rates are drawn. The two
together are one reversible step, undone as a whole where the rates leave the region in which each component
of sources is better than chance. With several components, which rarely would all stay, that step alone
stalls: mean and spread given the rates, then each component's rates by rejection, follow it. Both leave the
restricted posterior as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, gammaln

from binreps.fits.sampled.draws import log_beta
from binreps.fits.sampled.prior import SourcePrior
from binreps.model import Float
from binreps.readings import Readings

_STEPS = 4  # of mean and spread in each sweep: they mix slowest, and cost least
_TRIES = 8  # of drawing a component's rates again
_START = 0.4  # steps of the logits before they adapt


class Errors:
    """The rates of all sources, and the mean and spread of their population, in every chain.

    Attributes
    ----------
    logs : ndarray
        log rate and log(1 − rate): shape (2 sides, 2, sources, chains).
    places : ndarray
        logit of mean and spread: shape (2 sides, 2, chains).
    shapes : ndarray
        Of the Beta law of each rate given all else: shape (2 sides, 2, sources, chains).
    refused : int
        Times that drawn rates were outside the region.
    """

    def __init__(self, readings: Readings, prior: SourcePrior, chains: int, rng: np.random.Generator) -> None:
        sources = len(readings.sources)
        self._prior, self._region = prior, Region(readings)
        self._collapsed = Collapsed(readings.totals.sum(axis=1))
        self._moves = [_Moves(prior.sides[i]) for i in (0, 1)]
        rate = rng.uniform(0.1, 0.4, chains)  # all sources alike, in each chain another rate: votes decide
        pair = np.broadcast_to(np.stack([np.log(rate), np.log1p(-rate)])[:, None], (2, sources, chains))
        self.logs = np.stack([pair, pair])
        self.places = np.stack([side.start(rng, chains) for side in prior.sides])
        self.shapes = np.ones((2, 2, sources, chains))
        self.refused = 0

    @property
    def log_odds(self) -> Float:
        """What a no and a yes of each source add to the log odds: shape (2 × sources, chains)."""
        (yes0, no0), (no1, yes1) = self.logs  # of negatives a yes is wrong, of positives a no
        return np.stack([no1 - no0, yes1 - yes0], axis=1).reshape(-1, yes0.shape[1])

    def step(self, totals: Float, said: Float, rng: np.random.Generator) -> None:
        """Draw everything given what the sources said of positives, and of all."""
        counts = _wrong_right(totals, said)
        for side in (0, 1):
            self._pair(side, counts[side], rng)
        if self._region.components > 1:
            for side in (0, 1):
                self._given_rates(side, rng)
            self._redraw(counts, rng)

    def _pair(self, side: int, counts: Float, rng: np.random.Generator) -> None:
        """Mean and spread with the rates integrated out, then the rates: kept where they may lie there."""
        place, shapes = self.places[side], self._prior.sides[side]
        target = self._collapsed.of(counts)
        limit = self._limit(side)
        place = self._moves[side].move(place, lambda x: shapes.log_density(x, limit) + target(x), rng)
        beta = _beta_shapes(place, counts)
        drawn = np.stack(log_beta(beta[0], beta[1], rng))
        rates = [np.exp(drawn[0]), np.exp(self.logs[1 - side][0])]
        outside = self._region.outside(rates[0] + rates[1])
        kept = ~outside.any(axis=0)
        self.refused += int(outside.any(axis=0).sum())
        self._region.seen = self._region.seen + outside
        self.places[side] = np.where(kept, place, self.places[side])
        self.logs[side] = np.where(kept, drawn, self.logs[side])
        self.shapes[side] = np.where(kept, beta, self.shapes[side])

    def _limit(self, side: int) -> Any:
        """What the mean must stay below: 1 − the other mean, unless both are held fixed."""
        return np.inf if self._prior.means_fixed else -self.places[1 - side][0]

    def _given_rates(self, side: int, rng: np.random.Generator) -> None:
        """Mean and spread given the rates, on which alone the region rests."""
        sums, size = self.logs[side].sum(axis=1), self.logs.shape[2]
        shapes, limit = self._prior.sides[side], self._limit(side)

        def density(x: Float) -> Float:
            a, b = _population(x)
            rates = a * sums[0] + b * sums[1]
            return np.asarray(shapes.log_density(x, limit) + rates - size * _betaln(a, b))

        self.places[side] = self._moves[side].move(self.places[side], density, rng)

    def _redraw(self, counts: Float, rng: np.random.Generator) -> None:
        """Each component's rates: the first of some draws in the region, or as they were."""
        region = self._region
        self.shapes = np.stack([_beta_shapes(self.places[i], counts[i]) for i in (0, 1)])
        pending: Any = np.ones((region.components, self.logs.shape[3]), bool)
        for _ in range(_TRIES):
            rows = pending.any(axis=1)[region.of]
            own = self.shapes[:, :, rows]
            drawn = np.stack(log_beta(own[:, 0], own[:, 1], rng), axis=1)
            total = np.full(self.logs.shape[2:], 1.0)
            total[rows] = np.exp(drawn[:, 0]).sum(axis=0)
            outside = region.outside(total)
            taken = (pending & ~outside)[region.of[rows]]
            self.logs[:, :, rows] = np.where(taken, drawn, self.logs[:, :, rows])
            self.refused += int((pending & outside).sum())
            pending &= outside
            if not pending.any():
                return

    def exchange(self, totals: Float, said: Float, log_ratio: Float, rng: np.random.Generator) -> Any:
        """Propose that every status is the other one; in which chains it was accepted.

        Where a class is nearly empty, "nobody" and "everybody" are two explanations between which single
        steps never pass. The errors of the full class become the other's, 1 − m in place of m; mean and
        spread of the empty one are drawn from their prior below what the region leaves. Its reverse does
        the same with the sides exchanged, so that either is chosen with probability ½.
        `log_ratio` is what the statuses gain under the prior of the prevalence.
        """
        sides, chains = self._prior.sides, self.places.shape[2]
        kept = rng.integers(0, 2, chains)  # the side whose errors are carried over
        each = np.arange(chains)
        own, other = self.places[kept, :, each].T, 1 - kept
        fresh = np.stack([side.below(own[0], rng) for side in sides])[kept, :, each].T
        places = np.empty_like(self.places)
        places[other, :, each] = np.stack([-own[0], own[1]]).T
        places[kept, :, each] = fresh.T
        counts, turned = _wrong_right(totals, said), _wrong_right(totals, totals - said)
        gain = sum(
            self._collapsed.of(turned[i])(places[i]) - self._collapsed.of(counts[i])(self.places[i])
            for i in (0, 1)
        )
        densities = np.stack([side.natural(np.stack([-own[0], own[1]])) for side in sides])[other, each]
        densities = densities - np.stack([side.natural(own) for side in sides])[kept, each]
        masses = np.stack([side.log_mass_below(own[0]) for side in sides])[kept, each]
        masses = masses - np.stack([side.log_mass_below(-own[0]) for side in sides])[other, each]
        accepted = -rng.standard_exponential(chains) < gain + densities + masses + log_ratio
        shapes = np.stack([_beta_shapes(places[i], turned[i]) for i in (0, 1)])
        drawn = np.stack(log_beta(shapes[:, 0], shapes[:, 1], rng), axis=1)
        outside: Any = self._region.outside(np.exp(drawn[:, 0]).sum(axis=0))
        accepted &= ~outside.any(axis=0)
        self.places = np.where(accepted, places, self.places)
        self.logs = np.where(accepted, drawn, self.logs)
        self.shapes = np.where(accepted, shapes, self.shapes)
        return accepted

    # Before anything is kept -----------------------------------------------------------------------

    def adapt(self) -> None:
        """Learn the size of steps from those taken."""
        for move in self._moves:
            move.adapt()

    def settle(self) -> None:
        """Stop learning: from here on every step leaves the posterior as it is."""
        for move in self._moves:
            move.settle()

    def turn(self, sweeps: int, rng: np.random.Generator) -> Any:
        """Turn components round that most draws of these sweeps put on the wrong side; where that was.

        A chain that started there would stay at the border for long. Shape (components, chains).
        """
        wrong: Any = self._region.seen > sweeps  # of two draws in each
        self._region.seen = np.zeros_like(self._region.seen)
        if wrong.any():
            of = wrong[self._region.of]
            (p, not_p), (q, not_q) = self.logs
            turned = np.stack([np.stack([not_q, q]), np.stack([not_p, p])])
            outside: Any = self._region.outside(np.exp(turned[:, 0]).sum(axis=0))
            inside = ~outside[self._region.of]
            even = np.log(np.stack([np.full_like(p, 0.3), np.full_like(p, 0.7)]))
            fresh = np.where(inside, turned, even)
            self.logs = np.where(of, fresh, self.logs)
            places = np.stack([side.start(rng, wrong.shape[1]) for side in self._prior.sides])
            self.places = np.where(wrong.all(axis=0), places, self.places)
        return wrong


class Region:
    """Σ_j r_j (p_j + q_j − 1) < 0 in every component, r_j the readings of source j.

    Attributes
    ----------
    of : ndarray
        The component of each source.
    components : int
    seen : ndarray
        How often drawn rates were outside: shape (components, chains); broadcast until it is first added to.
    """

    def __init__(self, readings: Readings) -> None:
        self.of = readings.components
        self.components = int(self.of.max(initial=-1)) + 1
        each = readings.totals.sum(axis=1).astype(float)
        self._readings = each[:, None]
        self.seen: Any = np.zeros((max(self.components, 1), 1))
        if self.components > 1:
            from scipy.sparse import csr_array

            ends = (self.of, np.arange(each.size))
            self._sums: Any = csr_array((each, ends), shape=(self.components, each.size))
        else:
            self._sums = each[None, :]
        self._empty = (np.bincount(self.of, each, self.components) == 0)[:, None]

    def outside(self, totals: Float) -> Any:
        """Which components are not better than chance, by p_j + q_j: shape (components, chains)."""
        return (self._sums @ (totals - 1) >= 0) & ~self._empty


class Collapsed:
    """log P(right and wrong | mean, spread), the rates integrated out: Σ_j log B(a + w, b + r)/B(a, b).

    Counts are whole numbers, so that log Γ(a + w)/Γ(a) = Σ_{k<w} log(a + k): up to some k, how many sources
    have more than k is all that is needed; the few sources with more readings add the rest, one by one.
    """

    def __init__(self, readings: Float) -> None:
        # a logarithm for each k costs about a quarter of what a source's Γ does
        costs = {most: most + 4 * int((readings > most).sum()) for most in (0, 16, 64, 256, 1024)}
        self._most = min(costs, key=lambda most: costs[most])
        self._busy = np.flatnonzero(readings > self._most)
        self._k = np.arange(self._most)[:, None]

    def of(self, counts: Float) -> Callable[[Float], Float]:
        """The log likelihood of these counts, as a function of the logits of mean and spread."""
        both = np.concatenate([counts, counts.sum(axis=0)[None]])
        tails = [_tails(np.minimum(one, self._most), self._most) for one in both]
        rest = np.maximum(both[:, self._busy] - self._most, 0.0)

        def value(place: Float) -> Float:
            a, b = _population(place)
            wrong, right, all_ = (
                self._rising(tail, more, x) for tail, more, x in zip(tails, rest, (a, b, a + b), strict=True)
            )
            return np.asarray(wrong + right - all_)

        return value

    def _rising(self, tail: Float, more: Float, x: Float) -> Float:
        """Σ_j log Γ(x + w_j)/Γ(x) in each chain."""
        found = np.einsum("kc,kc->c", tail, np.log(x + self._k)) if self._most else 0.0
        if not self._busy.size:
            return np.asarray(found)
        x = x + self._most
        return np.asarray(found + gammaln(x + more).sum(axis=0) - self._busy.size * gammaln(x))


def _tails(counts: Float, most: int) -> Float:
    """How many sources have more than k, for k = 0 … most − 1: shape (most, chains)."""
    if not most:
        return np.zeros((0, counts.shape[1]))
    chains = counts.shape[1]
    where = counts.astype(np.int64) * chains + np.arange(chains)
    found = np.bincount(where.ravel(), minlength=(most + 1) * chains).reshape(-1, chains)
    return np.asarray(np.cumsum(found[::-1], axis=0)[::-1][1:], float)


class _Moves:
    """Metropolis steps of two logits, with steps as the chains together have taught."""

    def __init__(self, side: Any) -> None:
        self._free = side.free
        self._root = np.diag(_START * self._free)
        self._log_scale = 0.0
        self._seen: list[Float] = []
        self._accepted: list[float] = []
        self._learning = True

    def move(self, place: Float, density: Any, rng: np.random.Generator) -> Float:
        """Some steps, each of all chains."""
        if not self._free.any():
            return place
        value = density(place)
        for _ in range(_STEPS):
            step = np.exp(self._log_scale) * (self._root @ rng.standard_normal(place.shape))
            new = place + step
            with np.errstate(over="ignore", invalid="ignore"):
                there = density(new)
            better = -rng.standard_exponential(value.shape) < there - value
            place, value = np.where(better, new, place), np.where(better, there, value)
            if self._learning:
                self._accepted.append(float(better.mean()))
        if self._learning:
            self._seen.append(place)
        return place

    def adapt(self) -> None:
        """The covariance of where the chains were, and a scale by how many steps were taken."""
        if not self._free.any() or len(self._seen) < 2:
            return
        seen = np.concatenate(self._seen, axis=1)[self._free]
        covariance = np.atleast_2d(np.cov(seen)) + 1e-4 * np.eye(len(seen))
        self._root = np.zeros((2, 2))
        self._root[np.ix_(self._free, self._free)] = np.linalg.cholesky(covariance)
        # 2.38/√d is the best scale for a normal law; steps that were taken too rarely shorten it
        rate = np.mean(self._accepted)
        self._log_scale = float(np.log(2.38 / np.sqrt(len(seen))) + min(0.0, np.log((rate + 0.02) / 0.2)))
        self._seen, self._accepted = [], []

    def settle(self) -> None:
        """Learn no more."""
        self._learning, self._seen = False, []


def _wrong_right(totals: Float, said: Float) -> Float:
    """How often each source was wrong and right, of negatives and of positives."""
    of_positives, of_negatives = (
        said.reshape(-1, 2, said.shape[1]),
        (totals - said).reshape(-1, 2, said.shape[1]),
    )
    negatives = np.stack([of_negatives[:, 1], of_negatives[:, 0]])
    positives = np.stack([of_positives[:, 0], of_positives[:, 1]])
    return np.maximum(np.stack([negatives, positives]), 0.0)


def _population(place: Float) -> tuple[Float, Float]:
    """The shapes mκ and (1−m)κ at the logits of m and ρ = 1/(1+κ)."""
    kappa = np.exp(-place[1])
    return expit(place[0]) * kappa, expit(-place[0]) * kappa


def _beta_shapes(place: Float, counts: Float) -> Float:
    """The shapes of the rates given what was wrong and right."""
    a, b = _population(place)
    return np.stack([counts[0] + a, counts[1] + b])


def _betaln(a: Float, b: Float) -> Float:
    return np.asarray(gammaln(a) + gammaln(b) - gammaln(a + b))
