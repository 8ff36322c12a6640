"""What the checks look at: a fit as one or several populations, with draws and possible results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import BinrepsWarning
from binreps.fits.exact.correlated import log_correlated
from binreps.fits.overdispersed import OverdispersedFit
from binreps.fits.point.mode import MAP_PRIOR, MapFit, fit_map
from binreps.fits.populations import PopulationsFit
from binreps.model import Float, Prior, Rates

DRAWS = 500
_SEED = 20_260_401  # any number: the same fit must give the same findings
_MOST_POINTS = 10_000  # possible results (n, s) that are enumerated


@dataclass(frozen=True, eq=False)
class Part:
    """One population of a fit, or the whole of it.

    Attributes
    ----------
    label : str
        Its name in a sentence; empty if there is only one.
    fit : the fit of this population
    draws : Rates
        Draws of the rates: arrays; of length 1 where the fit is a point.
    intraclass : array
        Draws of the correlation of replicates; 0 where the model has none.
    """

    label: str
    counts: CountTable
    fit: Any
    draws: Rates
    intraclass: Float

    @cached_property
    def estimate(self) -> Rates:
        """Rates close to the most likely ones, and never on the edge of what is possible for p and q.

        The tests of the model use these, so that a wrong prior is not taken for a wrong model.
        """
        if self.label or isinstance(self.fit, MapFit):
            return Rates(*self.fit.rates)
        return mode_of(self.counts).rates

    @cached_property
    def possible(self) -> Possible:
        """Everything that its individuals might have shown."""
        return Possible(self.counts)

    @cached_property
    def chances(self) -> Float:
        """P(T = 1 | s) at each draw for each cell, shape (draws, cells), whatever statuses are known."""
        theta, p, q = self.draws
        negative, positive = log_classes(self.counts.n, self.counts.s, p, q, self.intraclass)
        with np.errstate(divide="ignore", over="ignore"):
            odds = np.log(theta) - np.log1p(-theta) + positive - negative
            return np.asarray(1 / (1 + np.exp(-odds))).T

    def log_likelihood(self) -> Float:
        """log L at each draw."""
        theta, p, q = self.draws
        negative, positive = log_correlated(self.counts, p, q, self.intraclass)
        with np.errstate(divide="ignore"):
            mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
        return np.asarray(self.counts.weight @ mixture)


class Possible:
    """Every s from 0 to n for each group of individuals of equal n and known status.

    Groups with very many replicates are left out, the largest first; then it is not `complete`.

    Attributes
    ----------
    n, known, size : arrays
        Replicates, status and individuals of each group.
    group, s, observed : arrays
        To which group each point belongs, its positives, and how many individuals are there.
    """

    def __init__(self, counts: CountTable) -> None:
        kept = np.flatnonzero(counts.n > 0)
        keys = np.stack([counts.n[kept], counts.known[kept].astype(np.int64)])
        pairs, where = np.unique(keys, axis=1, return_inverse=True)
        fits_in = np.cumsum(pairs[0] + 1) <= _MOST_POINTS
        self.complete = bool(fits_in.all())
        self.n, self.known = pairs[0][fits_in], pairs[1][fits_in]
        self.group = np.repeat(np.arange(self.n.size), self.n + 1)
        starts = np.cumsum(self.n + 1) - (self.n + 1)
        self.s = np.arange(self.group.size) - starts[self.group]
        where = where.ravel()
        inside = fits_in[where]
        self.observed = np.zeros(self.group.size)
        weight = counts.weight[kept][inside].astype(float)
        np.add.at(self.observed, starts[where[inside]] + counts.s[kept][inside], weight)
        self.size = np.bincount(self.group, self.observed, minlength=self.n.size)

    @property
    def points_n(self) -> Any:
        """n at each point."""
        return self.n[self.group]

    @property
    def unknown(self) -> Any:
        """Whether the status of a group is unknown."""
        return self.known == UNKNOWN

    def log_classes(self, p: Any, q: Any, rho: Any) -> tuple[Float, Float]:
        """log P(s | T = 0) and log P(s | T = 1) at each point, binomial coefficients included."""
        n, s = self.points_n, self.s
        negative, positive = log_classes(n, s, p, q, rho)
        ways = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)
        ways = ways.reshape(-1, *(1,) * (negative.ndim - 1))
        return negative + ways, positive + ways


def log_classes(n: Any, s: Any, p: Any, q: Any, rho: Any) -> tuple[Float, Float]:
    """log P(s | T = 0) and log P(s | T = 1) along a first axis of pairs (n, s), without the coefficients."""
    pairs, where = np.unique(np.stack([n, s]), axis=1, return_inverse=True)
    negative, positive = log_correlated(CountTable(pairs[0], pairs[1]), p, q, rho)
    return negative[where.ravel()], positive[where.ravel()]


@lru_cache(maxsize=8)  # asked for twice in a check: as the estimate, and for other modes
def mode_of(counts: CountTable, prior: Prior = MAP_PRIOR) -> MapFit:
    """The posterior mode, without the warnings that are findings here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BinrepsWarning)
        return fit_map(counts, prior)


def parts_of(fit: Any) -> Iterator[Part]:
    """The populations of a fit that has a model of the counts, with their draws."""
    rng = np.random.default_rng(_SEED)
    if isinstance(fit, PopulationsFit):
        draws = fit.draws(DRAWS, rng)
        for name in fit:
            if len(fit.counts[name]):
                yield Part(
                    f" in population {name}", fit.counts[name], fit[name], draws[name], np.zeros(DRAWS)
                )
    elif isinstance(fit, OverdispersedFit):
        yield Part("", fit.counts, fit, *fit.draws_all(DRAWS, rng))
    elif hasattr(fit, "draws"):
        yield Part("", fit.counts, fit, fit.draws(DRAWS, rng), np.zeros(DRAWS))
    elif isinstance(fit, MapFit):
        yield Part("", fit.counts, fit, Rates(*(np.array([rate]) for rate in fit.rates)), np.zeros(1))
