"""What the checks look at: a fit as one or several populations, with draws and possible results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.fits.base import AnyFit, Fit
from binreps.fits.point.mode import MAP_PRIOR, MapFit, fit_map
from binreps.model import Float, Model, Prior, Rates, Records, log_ways

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
    fit : Fit
        The fit of this population.
    parameters : array
        Draws of the model's parameters, shape (parameters, draws); one draw where the fit is a point.
    """

    label: str
    fit: Fit
    parameters: Float

    @property
    def counts(self) -> CountTable:
        """The data of this population."""
        return self.fit.counts

    @property
    def model(self) -> Model:
        """How replicates err."""
        return self.fit.model

    @property
    def draws(self) -> Rates:
        """Draws of the three rates."""
        return Rates(*np.clip(self.parameters[:3], 0.0, 1.0))

    @cached_property
    def estimate(self) -> Rates:
        """Rates close to the most likely ones, and never on the edge of what is possible for p and q.

        The tests of the model use these, so that a wrong prior is not taken for a wrong model.
        """
        if not self.fit.alone or self.fit.posterior.certain:
            return self.fit.rates
        better = self.fit.prior is not None and self.fit.prior.better_than_chance
        return mode_of(self.counts, replace(MAP_PRIOR, better_than_chance=better)).rates

    @cached_property
    def possible(self) -> Possible:
        """Everything that its individuals might have shown."""
        return Possible(self.counts)

    @cached_property
    def chances(self) -> Float:
        """P(T = 1 | s) at each draw for each cell, shape (draws, cells), whatever statuses are known."""
        keys = zip(self.counts.n.tolist(), self.counts.s.tolist(), strict=True)
        return np.stack([self.model.chance(key, *self.parameters) for key in keys], axis=1)

    def log_likelihood(self) -> Float:
        """log L at each draw."""
        return self.model.log_likelihood(self.counts, *self.parameters)


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

    def log_classes(self, model: Model, *errors: Any) -> tuple[Float, Float]:
        """log P(s | T = 0) and log P(s | T = 1) at each point, binomial coefficients included."""
        n, s = self.points_n, self.s
        negative, positive = model.log_classes(Records(n, s), *errors)
        ways = log_ways(n, s).reshape(-1, *(1,) * (negative.ndim - 1))
        return negative + ways, positive + ways


@lru_cache(maxsize=8)  # asked for twice in a check: as the estimate, and for other modes
def mode_of(counts: CountTable, prior: Prior) -> MapFit:
    """The posterior mode."""
    return fit_map(counts, prior)


def parts_of(fit: AnyFit) -> list[Part]:
    """The populations of a fit that has a model of the counts, with their draws, those with someone."""
    if not fit.has_model:
        return []
    fits = fit.parts
    size = 1 if all(one.posterior.certain for one in fits.values()) else DRAWS
    drawn = fit.joint_draws(size, np.random.default_rng(_SEED))
    return [
        Part("" if name is None else f" in population {name}", one, drawn[name])
        for name, one in fits.items()
        if len(one.counts)
    ]
