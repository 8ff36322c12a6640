"""The sampler: sweeps of all chains, in rounds, until the chains agree and the error is what was asked for.

A sweep draws the statuses (`cells`), the prevalence (`prevalence`) and the error rates (`errors`), each given
the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from binreps.fits.sampled.cells import Cells
from binreps.fits.sampled.draws import chain_error, split_rhat
from binreps.fits.sampled.errors import Errors
from binreps.fits.sampled.prevalence import Prevalence, beta_moments, prevalence_side
from binreps.fits.sampled.prior import SourcePrior
from binreps.model import Float
from binreps.readings import Readings

WARM, FIRST = 100, 100
_EXCHANGED = 5  # sweeps between proposals that every status is the other one
AGREE = 1.05  # R̂ up to which chains are taken to agree
_FEW = 4000  # readings up to which many chains cost as much as few
_KEPT = 2**24  # numbers that are kept of all draws
_WORK = 2 * 10**10  # readings × chains × sweeps, unless the user says otherwise

Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False)
class Sampled:
    """What the chains were.

    Attributes
    ----------
    logs : ndarray of float32
        log and log of the complement of prevalence, false-positive and false-negative rate of each source,
        mean and spread of either: shape (parameters, 2, chains, draws).
    mean, sd, error, rhat : ndarray
        Of each parameter: its mean, its sd, a 95 % bound on the numerical error of the mean in sds, and R̂.
    effective : ndarray
        How many independent draws the mean of each parameter is worth.
    sweeps : int
        Sweeps of each chain that count.
    refused : float
        The share of drawn rates that lay outside the region.
    side : Side or None
        The prevalence of each population, or intercept and slopes of covariates.
    """

    logs: Any
    mean: Float
    sd: Float
    error: Float
    rhat: Float
    effective: Float
    sweeps: int
    refused: float
    side: Side | None = None

    @property
    def worst(self) -> float:
        """The largest error of a mean, in sds."""
        return float(max(self.error.max(), 0.0 if self.side is None else self.side.error.max()))

    @property
    def most_rhat(self) -> float:
        """The largest R̂."""
        return float(max(self.rhat.max(), 1.0 if self.side is None else self.side.rhat.max()))

    @property
    def least_effective(self) -> float:
        """The least number of independent draws that a mean is worth."""
        each = [self.effective, *([] if self.side is None else [self.side.effective])]
        return float(np.nanmin(np.concatenate(each)))


@dataclass(frozen=True, eq=False)
class Side:
    """What the log odds of the prevalence are made of.

    Attributes
    ----------
    draws : ndarray of float32
        logit θ of each population, or intercept and slopes: shape (coefficients, chains, draws).
    mean, sd, error, rhat, effective : ndarray
        As of other parameters; of populations, those of θ.
    """

    draws: Any
    mean: Float
    sd: Float
    error: Float
    rhat: Float
    effective: Float


def sample(
    readings: Readings,
    prior: SourcePrior,
    rng: np.random.Generator,
    *,
    tol: float,
    chains: int | None = None,
    sweeps: int | None = None,
    progress: Progress | None = None,
) -> Sampled:
    """Sample until the error is below tol and the chains agree, or the sweeps are used up."""
    size = readings.code.size
    chains = chains or (64 if size <= _FEW else 16)
    most = sweeps or int(np.clip(_WORK / max(size * chains, 1), 400, 5000))
    chain = Chain(readings, prior, chains, rng)
    chain.warm(min(WARM, max(most // 2, 1)))
    rounds = [chain.round(min(FIRST, most))]
    while True:
        found = _pooled(rounds)
        done = sum(one.sweeps for one in rounds)
        needed = done * max((found.worst / tol) ** 2, 1.0)
        if progress is not None:
            progress(chain.sweeps, int(min(chain.sweeps - done + max(needed, done + 1), most)))
        agree = bool(found.most_rhat <= AGREE)
        if (found.worst <= tol and agree) or chain.sweeps >= most:
            return found
        if not agree and len(rounds) > 1:
            rounds = rounds[len(rounds) // 2 :]  # what came before they agreed counts as a warm-up
        chain.thin(rounds)
        double = not agree or found.worst > 2 * tol
        wanted = done if double else int(np.clip(1.1 * needed - done, FIRST, done))
        rounds.append(chain.round(min(wanted, most - chain.sweeps)))


class Chain:
    """All chains, and where they are."""

    def __init__(self, readings: Readings, prior: SourcePrior, chains: int, rng: np.random.Generator) -> None:
        self._rng, self._chains = rng, chains
        self._cells = Cells(readings)
        self._errors = Errors(readings, prior, chains, rng)
        self._prevalence = prevalence_side(readings, prior, chains)
        self._by_population = readings.people is not None and readings.people.by_population
        self._exchanges = prior.all_learned and not readings.has_known  # known statuses cannot be exchanged
        self.sweeps = 0
        self._every = 1

    def sweep(self) -> None:
        """Draw everything once."""
        said = self._cells.draw(self._errors.log_odds, self._prevalence, self._rng)
        if self._exchanges and self.sweeps % _EXCHANGED == 0:
            ratio = self._prevalence.exchange_ratio()
            turned = self._errors.exchange(self._cells.totals, said, ratio, self._rng)
            self._prevalence.exchange(turned)
            said = np.where(turned, self._cells.totals - said, said)
        self._prevalence.step(self._rng)
        self._errors.step(self._cells.totals, said, self._rng)
        self.sweeps += 1

    def warm(self, sweeps: int) -> None:
        """Learn the steps, and turn round what started on the wrong side; nothing of this is kept."""
        quarter = max(sweeps // 4, 1)
        for part in range(4):
            for _ in range(quarter):
                self.sweep()
            if part < 3:
                wrong = self._errors.turn(quarter, self._rng)
                self._prevalence.turn(wrong.all(axis=0))
            self._errors.adapt()
        self._errors.settle()
        self._errors.refused = 0

    def thin(self, rounds: list[Round]) -> None:
        """Keep every other draw while they are too many to hold."""
        while len(rounds[0].draws) > 2 and sum(draw.size for one in rounds for draw in one.draws) > _KEPT:
            for one in rounds:
                one.draws, one.sides = one.draws[::2], one.sides[::2]
            self._every *= 2

    def round(self, sweeps: int) -> Round:
        """Some sweeps, kept."""
        found = Round(self._chains, self._by_population)
        for i in range(sweeps):
            self.sweep()
            found.add(self._prevalence, self._errors, keep=i % self._every == 0)
        found.close(self._errors.refused)
        self._errors.refused = 0
        return found


class Round:
    """Sums over some sweeps, and the draws that are kept.

    Attributes
    ----------
    sweeps : int
    refused : int
        Times that drawn rates were outside the region.
    draws : list of ndarray
        The logs of all parameters, shape (parameters, 2, chains), of the sweeps that are kept.
    sides : list of ndarray
        The coefficients of the prevalence, shape (coefficients, chains), of the same sweeps.
    side_sums : ndarray
        Sums over the sweeps of these, and of their squares; of populations, of θ.
    by_population : bool
    """

    def __init__(self, chains: int, by_population: bool) -> None:
        self.chains, self.sweeps, self.refused = chains, 0, 0
        self.draws: list[Float] = []
        self.sides: list[Float] = []
        self.by_population = by_population
        self._sums: Any = 0.0
        self.side_sums: Any = 0.0

    def add(self, prevalence: Prevalence, errors: Errors, *, keep: bool) -> None:
        """One sweep: means and variances given all else, and the draws themselves."""
        now = _logs(prevalence, errors)
        values = np.exp(now[:, 0])
        means, variances = _conditional(prevalence, errors, values)
        self._sums = self._sums + np.stack([means, means**2 + variances, values, values**2])
        own = expit(prevalence.coefficients) if self.by_population else prevalence.coefficients
        self.side_sums = self.side_sums + np.stack([own, own**2])
        self.sweeps += 1
        if keep:
            self.draws.append(now.astype(np.float32))
            self.sides.append(prevalence.coefficients.astype(np.float32))

    def close(self, refused: int) -> None:
        """The sums as they are kept."""
        self.refused = refused

    @property
    def sums(self) -> Float:
        """Sums over the sweeps: mean, second moment given all else; draws and their squares."""
        return np.asarray(self._sums)


def _logs(prevalence: Prevalence, errors: Errors) -> Float:
    """log x and log(1 − x) of every parameter: shape (parameters, 2, chains)."""
    rates = np.swapaxes(errors.logs, 1, 2).reshape(-1, 2, errors.logs.shape[3])
    place = errors.places.reshape(4, 1, -1)
    with np.errstate(over="ignore"):
        population = -np.logaddexp(0, np.concatenate([-place, place], axis=1))
    return np.concatenate([prevalence.logs[None], rates, population])


def _conditional(prevalence: Prevalence, errors: Errors, values: Float) -> tuple[Float, Float]:
    """Mean and variance of each parameter given all else; of mean and spread, which have none, the draws."""
    means, variances = values.copy(), np.zeros_like(values)
    a, b = np.swapaxes(errors.shapes, 0, 1).reshape(2, -1, values.shape[1])
    means[0], variances[0] = prevalence.conditional()
    means[1:-4], variances[1:-4] = beta_moments(a, b)
    return means, variances


def _pooled(rounds: list[Round]) -> Sampled:
    """What some rounds say together."""
    sweeps = sum(one.sweeps for one in rounds)
    refused = sum(one.refused for one in rounds)
    sums = np.sum([one.sums for one in rounds], axis=0) / sweeps
    # where rates were refused, a mean given all else is not the mean within the region: the draws are
    first, second = sums[:2] if refused == 0 else sums[2:]
    mean = first.mean(axis=1)
    logs = np.stack([draw for one in rounds for draw in one.draws], axis=-1)
    held = np.ptp(logs[:, 0], axis=(1, 2)) == 0  # what is held fixed has no spread, not even by rounding
    sd = np.where(held, 0.0, np.sqrt(np.maximum(second.mean(axis=1) - mean**2, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(sd > 0, chain_error(first) / sd, 0.0)
        effective = sd**2 / (first.var(axis=1, ddof=1) / first.shape[1])
    rhat = split_rhat(np.exp(logs[:, 0]))
    share = refused / (2 * sweeps * rounds[0].chains)
    return Sampled(logs, mean, sd, error, rhat, effective, sweeps, share, _side(rounds, sweeps))


def _side(rounds: list[Round], sweeps: int) -> Side | None:
    """What some rounds say of the coefficients of the prevalence, if it has any."""
    draws = np.stack([draw for one in rounds for draw in one.sides], axis=-1)
    if not len(draws):
        return None
    first, second = np.sum([one.side_sums for one in rounds], axis=0) / sweeps
    mean = first.mean(axis=1)
    sd = np.sqrt(np.maximum(second.mean(axis=1) - mean**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(sd > 0, chain_error(first) / sd, 0.0)
        effective = sd**2 / (first.var(axis=1, ddof=1) / first.shape[1])
    return Side(draws, mean, sd, error, split_rhat(draws), effective)
