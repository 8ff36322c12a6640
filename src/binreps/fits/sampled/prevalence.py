"""The prevalence side of the sampler: one prevalence for everyone, one per population, or by covariates.

Any side gives the log odds of some records (`log_odds`), sees how many of them are positive (`see`), and
draws its parameters given that (`step`). The error side knows nothing of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import betaln, expit

from binreps.counts import UNKNOWN
from binreps.fits.sampled.draws import log_beta
from binreps.fits.sampled.prior import SourcePrior
from binreps.model import Float
from binreps.readings import Readings

_FLAT = 0.02  # of the precision of proposals of α: at most seven apart


class Prevalence(Protocol):
    """What every side offers.

    Attributes
    ----------
    logs : ndarray
        log θ and log(1 − θ) of the prevalence, the average over the study: shape (2, chains).
    coefficients : ndarray
        What the log odds of records are made of, logit θ of populations or intercept and slopes: shape
        (coefficients, chains); none where one prevalence is for everyone.
    """

    logs: Float
    coefficients: Float

    def log_odds(self, rows: slice) -> Float:
        """log θ/(1−θ) of some rows, in each chain."""

    def see(self, rows: slice, positives: Float) -> None:
        """Count the positives among some rows."""

    def step(self, rng: np.random.Generator) -> None:
        """Draw the parameters given the statuses that were seen."""

    def conditional(self) -> tuple[Float, Float]:
        """Mean and variance of the average prevalence given all else."""

    def exchange_ratio(self) -> Float:
        """What the statuses gain under the prior if every one is the other, as a logarithm."""

    def exchange(self, where: Any) -> None:
        """Take every status for the other one, in some chains."""

    def turn(self, where: Any) -> None:
        """Start again from the other side, in some chains."""


def prevalence_side(readings: Readings, prior: SourcePrior, chains: int) -> Prevalence:
    """The side that these readings ask for."""
    if readings.people is None:
        return Common(readings, prior, chains)
    return (Populations if readings.people.by_population else Slopes)(readings, prior, chains)


class Common:
    """One prevalence θ ~ Beta(a, b): given the statuses it is Beta(a + positives, b + negatives)."""

    def __init__(self, readings: Readings, prior: SourcePrior, chains: int) -> None:
        self._shapes, self._individuals = prior.prevalence, readings.individuals
        self._settled = int(readings.weight[readings.known == 1].sum())
        self._positives = np.zeros(chains)
        self.logs = np.full((2, chains), np.log(0.5))
        self.coefficients = np.zeros((0, chains))

    def log_odds(self, rows: slice) -> Float:
        """The same for all rows."""
        del rows
        return np.asarray(self.logs[0] - self.logs[1])

    def see(self, rows: slice, positives: Float) -> None:
        """Count the positives among some rows."""
        del rows
        self._positives += positives.sum(axis=0, dtype=float)

    def exchange_ratio(self) -> Float:
        """The prevalence is integrated out."""
        a, b = self._shapes
        positives = self._positives + self._settled
        negatives = self._individuals - positives
        return np.asarray(betaln(a + negatives, b + positives) - betaln(a + positives, b + negatives))

    def exchange(self, where: Any) -> None:
        """Take every status for the other one, in some chains."""
        self._positives = np.where(where, self._individuals - self._positives, self._positives)

    def turn(self, where: Any) -> None:
        """1 − θ in place of θ, in some chains."""
        self.logs = np.where(where, self.logs[::-1], self.logs)

    def step(self, rng: np.random.Generator) -> None:
        """Draw the prevalence."""
        positives = self._positives + self._settled
        self._drawn_from = (self._shapes[0] + positives, self._shapes[1] + self._individuals - positives)
        self.logs = np.stack(log_beta(*self._drawn_from, rng))
        self._positives = np.zeros_like(self._positives)

    def conditional(self) -> tuple[Float, Float]:
        """Of a Beta law."""
        return beta_moments(*self._drawn_from)


class Groups:
    """Records in groups of the same log odds: populations, or distinct rows of the design.

    Attributes
    ----------
    rows : ndarray
        The design, a row for each group.
    """

    def __init__(self, readings: Readings, chains: int) -> None:
        from scipy.sparse import csr_array

        assert readings.people is not None
        self.rows, where = np.unique(readings.people.rows, axis=0, return_inverse=True)
        size, weight, where = len(self.rows), readings.weight.astype(float), where.ravel()
        open_, positive = readings.known == UNKNOWN, readings.known == 1
        self._sizes = np.bincount(where, weight, size)[:, None]
        self._open = np.bincount(where[open_], weight[open_], size)[:, None]
        self._settled = np.bincount(where[positive], weight[positive], size)[:, None]
        self._of = where[open_]
        ones, index = np.ones(self._of.size), np.arange(self._of.size)
        self._belongs = csr_array((ones, (index, self._of)), shape=(self._of.size, size))
        self._parts: dict[int, Any] = {}
        self._seen = np.zeros((size, chains))
        self.odds = np.zeros((size, chains))

    def log_odds(self, rows: slice) -> Float:
        """log θ/(1−θ) of some rows, in each chain."""
        return np.asarray(self.odds[self._of[rows]])

    def see(self, rows: slice, positives: Float) -> None:
        """Count the positives of each group among some rows."""
        if rows.start not in self._parts:
            self._parts[rows.start] = self._belongs[rows].T.tocsr()
        self._seen += self._parts[rows.start] @ positives

    def exchange(self, where: Any) -> None:
        """Take every status for the other one, in some chains."""
        self._seen = np.where(where, self._open - self._seen, self._seen)

    def _taken(self) -> tuple[Float, Float]:
        """Positives of each group in each chain, those of known status among them, and negatives."""
        positives = self._seen + self._settled
        self._seen = np.zeros_like(self._seen)
        return positives, self._sizes - positives

    def _average(self) -> Float:
        """log of the average prevalence over the study, and of its complement."""
        share = self._sizes / max(self._sizes.sum(), 1.0)
        return np.log(np.maximum([(share * expit(sign * self.odds)).sum(axis=0) for sign in (1, -1)], 1e-300))


class Populations(Groups):
    """A prevalence for each population, all with the same Beta prior, independently."""

    def __init__(self, readings: Readings, prior: SourcePrior, chains: int) -> None:
        super().__init__(readings, chains)
        self._shapes = prior.prevalence
        names = readings.people.populations if readings.people else ()
        self._place = self.rows.argmax(axis=1)  # of each group among all populations
        self.coefficients = np.zeros((len(names), chains))
        self.logs = self._average()

    def exchange_ratio(self) -> Float:
        """The prevalences are integrated out."""
        a, b = self._shapes
        positives = self._seen + self._settled
        negatives = self._sizes - positives
        each = betaln(a + negatives, b + positives) - betaln(a + positives, b + negatives)
        return np.asarray(each.sum(axis=0))

    def turn(self, where: Any) -> None:
        """1 − θ in place of θ, in some chains."""
        self.odds = np.where(where, -self.odds, self.odds)

    def step(self, rng: np.random.Generator) -> None:
        """Draw the prevalences."""
        positives, negatives = self._taken()
        self._drawn_from = (self._shapes[0] + positives, self._shapes[1] + negatives)
        up, down = log_beta(*self._drawn_from, rng)
        self.odds = up - down
        self.coefficients[self._place] = self.odds
        self.logs = self._average()

    def conditional(self) -> tuple[Float, Float]:
        """Of an average of Beta laws."""
        mean, variance = beta_moments(*self._drawn_from)
        share = self._sizes / max(self._sizes.sum(), 1.0)
        return (share * mean).sum(axis=0), (share**2 * variance).sum(axis=0)


class Slopes(Groups):
    """logit θ_i = α + x_i′β: given the statuses a logistic regression, drawn by Newton steps.

    The proposal is normal, with mean one Newton step from where the chain is and the inverse of the
    information there as its covariance; Metropolis and Hastings decide (Gamerman 1997). expit(α) ~ Beta(a, b)
    and β ~ N(0, slope_sd²) per standardised column.
    """

    def __init__(self, readings: Readings, prior: SourcePrior, chains: int) -> None:
        super().__init__(readings, chains)
        self._shapes = prior.prevalence
        size = self.rows.shape[1]
        self._precision = np.full(size, prior.slope_sd**-2.0)
        self._precision[0] = 0.0
        self._squares = (self.rows[:, :, None] * self.rows[:, None, :]).reshape(len(self.rows), -1)
        self.coefficients = np.zeros((size, chains))
        self._information = self._informed(self.coefficients, self.odds)
        self.logs = self._average()

    def exchange_ratio(self) -> Float:
        """−α in place of α, −β in place of β: the likelihood of the statuses is the same."""
        a, b = self._shapes
        return np.asarray((b - a) * self.coefficients[0])

    def exchange(self, where: Any) -> None:
        """Take every status for the other one, and every coefficient for its opposite."""
        super().exchange(where)
        self.turn(where)

    def turn(self, where: Any) -> None:
        """The opposite of every coefficient, in some chains."""
        self.coefficients = np.where(where, -self.coefficients, self.coefficients)
        self.odds = np.where(where, -self.odds, self.odds)
        self._information = self._informed(self.coefficients, self.odds)

    def step(self, rng: np.random.Generator) -> None:
        """One proposal in each chain."""
        positives, _ = self._taken()
        here = self._proposing(self.coefficients, self.odds, self._information, positives)
        noise = rng.standard_normal(self.coefficients.shape)
        step = np.linalg.solve(np.swapaxes(here.root, 1, 2), noise.T[:, :, None])[:, :, 0].T
        new = here.center + step
        odds = self.rows @ new
        information = self._informed(new, odds)
        there = self._proposing(new, odds, information, positives)
        gain = self._log_density(new, odds, positives) - self._log_density(
            self.coefficients, self.odds, positives
        )
        back = there.log_density(self.coefficients) - here.log_density(new)
        taken = -rng.standard_exponential(gain.shape) < gain + back
        self.coefficients = np.where(taken, new, self.coefficients)
        self.odds = np.where(taken, odds, self.odds)
        self._information = np.where(taken[:, None, None], information, self._information)
        self.logs = self._average()

    def conditional(self) -> tuple[Float, Float]:
        """The draw itself: the average of logistic functions has no law with a name."""
        return np.exp(self.logs[0]), np.zeros_like(self.logs[0])

    def _log_density(self, at: Float, odds: Float, positives: Float) -> Float:
        """log prior × P(statuses), in each chain."""
        a, b = self._shapes
        likelihood = (positives * odds - self._sizes * np.logaddexp(0.0, odds)).sum(axis=0)
        prior = a * at[0] - (a + b) * np.logaddexp(0.0, at[0]) - self._precision @ at**2 / 2
        return np.asarray(likelihood + prior)

    def _informed(self, at: Float, odds: Float) -> Float:
        """The information at some coefficients, never quite 0: shape (chains, coefficients, coefficients).

        Where nobody is positive the tail of α has none; proposals are then wide, not endless.
        """
        theta, first = expit(odds), expit(at[0])
        size = len(at)
        found = (self._squares.T @ (self._sizes * theta * (1 - theta))).T.reshape(-1, size, size)
        found = found + np.diag(self._precision)
        found[:, 0, 0] += sum(self._shapes) * first * (1 - first) + _FLAT
        return np.asarray(found)

    def _proposing(self, at: Float, odds: Float, information: Float, positives: Float) -> _Normal:
        """The law of proposals from some coefficients."""
        gradient = self.rows.T @ (positives - self._sizes * expit(odds)) - self._precision[:, None] * at
        gradient[0] += self._shapes[0] - sum(self._shapes) * expit(at[0])
        newton = np.linalg.solve(information, gradient.T[:, :, None])[:, :, 0].T
        return _Normal(at + newton, np.asarray(np.linalg.cholesky(information), float))


class _Normal:
    """Normal laws, one in each chain, by their centers and the roots of their precisions."""

    def __init__(self, center: Float, root: Float) -> None:
        self.center, self.root = center, root

    def log_density(self, at: Float) -> Float:
        """The log density up to a constant."""
        away = np.einsum("cij,ic->jc", self.root, at - self.center)  # rootᵀ (at − center)
        scale = np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(scale - (away**2).sum(axis=0) / 2)


def beta_moments(a: Float, b: Float) -> tuple[Float, Float]:
    """Mean and variance of Beta laws."""
    total = a + b
    mean = a / total
    return mean, mean * (1 - mean) / (total + 1)
