"""The prevalence side of the sampler: one prevalence for everyone, with a Beta prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln

from binreps.fits.sampled.draws import log_beta
from binreps.model import Float


class Common:
    """One prevalence θ ~ Beta(a, b): given the statuses it is Beta(a + positives, b + negatives).

    Any prevalence side offers `log_odds` of some rows, `see` how many of them are positive, and `step`.
    """

    def __init__(self, shapes: tuple[float, float], individuals: int, positives: int, chains: int) -> None:
        self._shapes, self._individuals, self._settled = shapes, individuals, positives
        self._positives = np.zeros(chains)
        self.logs = np.full((2, chains), np.log(0.5))  # log θ, log(1 − θ)

    def log_odds(self, rows: slice) -> Float:
        """log θ/(1−θ) of some rows, in each chain."""
        del rows
        return np.asarray(self.logs[0] - self.logs[1])

    def see(self, rows: slice, positives: Float) -> None:
        """Count the positives among some rows."""
        del rows
        self._positives += positives.sum(axis=0, dtype=float)

    def exchange_ratio(self) -> Float:
        """What the statuses gain under the prior if every one is the other, as a logarithm."""
        a, b = self._shapes
        positives = self._positives + self._settled
        negatives = self._individuals - positives
        return np.asarray(betaln(a + negatives, b + positives) - betaln(a + positives, b + negatives))

    def exchange(self, where: Any) -> None:
        """Take every status for the other one, in some chains."""
        self._positives = np.where(where, self._individuals - self._positives, self._positives)

    def step(self, rng: np.random.Generator) -> None:
        """Draw the prevalence given the statuses that were seen."""
        positives = self._positives + self._settled
        self.shapes = (self._shapes[0] + positives, self._shapes[1] + self._individuals - positives)
        self.logs = np.stack(log_beta(*self.shapes, rng))
        self._positives = np.zeros_like(self._positives)
