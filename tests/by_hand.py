"""The model written out plainly, to judge the fits with: nothing here is shared with them."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

import numpy as np
from numpy.typing import NDArray

from binreps import CountTable, Prior, Rates
from binreps.region import HALF, Region

Float = NDArray[np.float64]

LARGEST_N = 6  # of the random tables
_IMPOSSIBLE = -1e200  # log 0, finite so that a weight of 0 makes it 0
_KINDS = [(n, s, known) for n in range(LARGEST_N + 1) for s in range(n + 1) for known in (-1, 0, 1)]


def as_array(rates: Iterable[float]) -> Float:
    """The three rates as one array."""
    return np.array(list(rates))


def expected_counts(rates: Rates, size: int, n: int) -> CountTable:
    """The counts of `size` individuals with n replicates each, in the proportions of the model."""
    theta, p, q = rates
    cells = []
    for s in range(n + 1):
        both = (1 - theta) * p**s * (1 - p) ** (n - s) + theta * (1 - q) ** s * q ** (n - s)
        cells.append((n, s, round(size * comb(n, s) * both)))
    return CountTable(*zip(*cells, strict=True))


def log_or_least(x: Float) -> Float:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(x), _IMPOSSIBLE)


def log_terms(n: Float, s: Float, known: Float, rates: Float) -> Float:
    """log of θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s) per cell; of one of the two where the status is known."""
    theta, p, q = rates
    positive = np.where(known == 0, 0, theta * (1 - q) ** s * q ** (n - s))
    negative = np.where(known == 1, 0, (1 - theta) * p**s * (1 - p) ** (n - s))
    return log_or_least(positive + negative)


def log_prior_terms(rates: Float) -> Float:
    """log θ, log(1−θ), log p, log(1−p), log q, log(1−q): the prior is a sum of them times a shape − 1."""
    return np.stack([log_or_least(x) for rate in rates for x in (rate, 1 - rate)])


def exponents(prior: Prior) -> Float:
    return np.ravel(list(prior)) - 1


def log_posterior(counts: CountTable, prior: Prior, rates: Float) -> Float:
    """The objective of the posterior mode at rates (3, …points)."""
    cells = np.stack([counts.n, counts.s, counts.known]).reshape(3, -1, *[1] * (rates.ndim - 1))
    mixture = np.tensordot(counts.weight.astype(float), log_terms(*cells, rates), 1)
    return mixture + np.tensordot(exponents(prior), log_prior_terms(rates), 1)


class BruteForce:
    """The best log posterior on a dense grid, edges included, then on ever finer ones around that point."""

    def __init__(self, region: Region = HALF) -> None:
        theta = np.concatenate([[0, 1e-4, 1e-3, 0.01], np.linspace(0.02, 0.98, 25), [0.99, 0.999, 0.9999, 1]])
        errors = np.concatenate([[0, 1e-4, 1e-3, 0.005], np.linspace(0.015, 0.5, 24)])
        if region is not HALF:
            errors = np.concatenate([errors, 1 - errors[:-1:2]])
        grid = np.meshgrid(theta, errors, errors, indexing="ij")
        points = np.stack([axis.ravel() for axis in grid])
        self.grid = points[:, region.holds(points[1], points[2])]
        cells = np.array(_KINDS).T[:, :, None]
        self.terms = np.concatenate([log_terms(*cells, self.grid[:, None]), log_prior_terms(self.grid)])

    def maxima(self, cases: list[tuple[CountTable, Prior]]) -> list[float]:
        """The values only: where they are taken need not be unique."""
        peaks = np.argmax(np.stack([_factors(*case) for case in cases]) @ self.terms, axis=1)
        return [_zoomed(*case, self.grid[:, peak]) for case, peak in zip(cases, peaks, strict=True)]


def _factors(counts: CountTable, prior: Prior) -> Float:
    """The log posterior as a linear function of the terms of a `BruteForce`."""
    kinds = zip(counts.n.tolist(), counts.s.tolist(), counts.known.tolist(), strict=True)
    weight = np.zeros(len(_KINDS))
    weight[[_KINDS.index(kind) for kind in kinds]] = counts.weight
    return np.concatenate([weight, exponents(prior)])


def _zoomed(counts: CountTable, prior: Prior, centre: Float) -> float:
    """The best value on 5³ points around a centre that follows it, closer each time it stays."""
    step, best = np.array([0.04, 0.02, 0.02]), -np.inf
    end = prior.region.end
    for _ in range(15):
        around = np.clip(centre[:, None] + step[:, None] * _AROUND, 0, [[1], [end], [end]])
        around = around[:, prior.region.holds(around[1], around[2])]
        values = log_posterior(counts, prior, around)
        if values.max() <= best:
            step = step / 3
        else:
            centre, best = around[:, values.argmax()], values.max()
    return float(best)


_AROUND = np.stack([axis.ravel() for axis in np.meshgrid(*[[-1, -0.4, 0, 0.4, 1]] * 3)])


def random_case(rng: np.random.Generator, *, better_than_chance: bool = False) -> tuple[CountTable, Prior]:
    """A small table of any kind, and a prior that has a mode."""
    size = rng.integers(1, 7)
    n = rng.integers(0, LARGEST_N + 1, size)
    extreme = np.where(rng.random(size) < 0.5, 0, n)
    s = extreme if rng.random() < 0.2 else rng.integers(0, n + 1)
    weight = np.ceil(10 ** rng.uniform(0, rng.choice([0.5, 2, 4]), size))
    share_known = rng.choice([0, 0, 0, 0.5, 1])
    status = [int(rng.integers(2)) if rng.random() < share_known else None for _ in range(size)]
    return CountTable(n, s, weight, status), random_prior(rng, better_than_chance=better_than_chance)


def random_prior(rng: np.random.Generator, *, better_than_chance: bool = False) -> Prior:
    """Any shapes that give a mode: those of 1 − p and 1 − q may be below 1 where neither reaches 0."""
    if rng.random() < 0.4:
        return Prior(prevalence=(1, 1), better_than_chance=better_than_chance)
    a = rng.choice([1, 1, 1.5, 2, 3, 20], 3)
    b = [rng.choice([1, 1, 2, 4]), *rng.choice([0.05, 0.3, 0.7, 1, 1, 2, 3, 20], 2)]
    if better_than_chance:
        b = [max(shape, 1) for shape in b]
    return Prior(*zip(a, b, strict=True), better_than_chance=better_than_chance)
