"""The posterior of a model with sources as draws of several chains: scores, predictions and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, gammaln, logit

from binreps.counts import UNKNOWN
from binreps.errors import FitError
from binreps.fits.left_out import smoothed
from binreps.fits.posterior import Estimate, Marginal, Nodes, Posterior, weighted_quantiles
from binreps.fits.sampled.calibration import Calibration
from binreps.fits.sampled.draws import Drawn, chain_error
from binreps.fits.sampled.run import Sampled
from binreps.model import Float, Model
from binreps.readings import Readings

_AT_ONCE = 2**22  # chances (records × draws) at once
_LEFT_OUT = 20_000_000  # records × draws of leave-one-out densities: so many draws settle them
_WORK = 2 * 10**8  # chances in all; beyond, fewer draws answer
_LEAST = 256  # draws that answer at least
_CANDIDATES = 2000  # draws that a few are chosen from
_JUDGES = 1000  # records that choose them
_GROUPS = 8  # groups of chains whose quantiles are compared


class Few(NamedTuple):
    """A few draws that stand for all: what scoring in another engine needs.

    Attributes
    ----------
    prevalence : ndarray
        log θ and log(1 − θ): shape (2, draws).
    negative, positive : ndarray
        log P(answer) of each source, no and yes, for negatives and positives, times the discount: shape
        (sources, 2, draws).
    population : ndarray
        The same of a source never seen, for negatives and for positives: shape (2, 2, draws).
    coefficients : ndarray
        What the log odds of populations or covariates are made of: shape (coefficients, draws); none where
        one prevalence is for everyone.
    """

    prevalence: Float
    negative: Float
    positive: Float
    population: Float
    coefficients: Float


class _Draws(NamedTuple):
    """Draws of the rates, as logs (parameters, 2, …), and of the coefficients of the prevalence."""

    logs: Float
    coefficients: Float

    def every(self, step: int) -> _Draws:
        """Every so many of them."""
        return _Draws(self.logs[..., ::step], self.coefficients[..., ::step])


class Sources(Model):
    """Each source errs at its own rates: their names, for one set of sources."""

    independent: ClassVar = True

    def __init__(self, sources: Sequence[Any]) -> None:
        self.names = (  # type: ignore[misc]
            "prevalence",
            *(f"false_positive[{name}]" for name in sources),
            *(f"false_negative[{name}]" for name in sources),
            *("mean_false_positive", "spread_false_positive", "mean_false_negative", "spread_false_negative"),
        )

    def log_classes(self, records: Any, *errors: Any) -> tuple[Float, Float]:
        """log P(readings | T = 0) and log P(readings | T = 1) at given rates p_1 …, q_1 …."""
        half = len(errors) // 2
        p, q = (np.stack(errors[i : i + half]) for i in (0, half))
        negative = _by_code(np.log1p(-p), np.log(p))
        positive = _by_code(np.log(q), np.log1p(-q))
        matrix = design(records)
        return matrix @ negative, matrix @ positive

    def ranges(self, n: int, starts: Any, *errors: Any) -> tuple[Float, Float]:
        """There are none: who said it matters, not how many did."""
        del n, starts, errors
        raise FitError("a fit by source says nothing of numbers of positives; ask it about readings")


class SourcesPosterior(Posterior):
    """Draws of several chains of prevalence, rates of sources, and their population.

    Parameters are in this order: the prevalence, p of each source, q of each source, mean and spread of p,
    mean and spread of q. Scores and predictions are calibrated; rates and likelihoods are the model's.
    """

    log_evidence = float("nan")

    def __init__(
        self, sources: Sequence[Any], sampled: Sampled, calibration: Calibration | None = None
    ) -> None:
        super().__init__()
        self.sources, self.sampled = tuple(sources), sampled
        self.calibration = calibration or Calibration()
        self.model = Sources(self.sources)
        self.mean, self.error = sampled.mean, sampled.worst
        self._draws = _Draws(sampled.logs, np.zeros((0, *sampled.logs.shape[2:]), np.float32))
        if sampled.side is not None:
            self._draws = _Draws(sampled.logs, sampled.side.draws)

    def with_calibration(self, calibration: Calibration) -> SourcesPosterior:
        """The same draws, scores calibrated so."""
        return SourcesPosterior(self.sources, self.sampled, calibration)

    def at_the_mean(self, records: Readings) -> tuple[Float, Float, Float]:
        """At the mean rates: log odds of records before any reading, log P(answer | T) of sources by code."""
        size, tiny = len(self.sources), np.finfo(float).tiny
        logs = np.log(np.maximum([self.mean, 1 - self.mean], tiny))
        p, q = logs[:, 1 : size + 1], logs[:, size + 1 : 2 * size + 1]
        odds = np.full(len(records), logs[0, 0] - logs[1, 0])
        if records.people is not None and self.sampled.side is not None:
            own = self.sampled.side.mean
            odds = records.people.rows @ (logit(own) if records.people.by_population else own)
        return odds, _by_code(p[1], p[0]), _by_code(q[0], q[1])

    @property
    def sd(self) -> Float:
        """Posterior standard deviations."""
        return self.sampled.sd

    @property
    def covariance(self) -> Float:  # type: ignore[override]
        """Of all parameters; large where there are many sources."""
        return np.atleast_2d(np.cov(self.values.reshape(self.mean.size, -1), bias=True))

    @property
    def values(self) -> Float:
        """The draws: shape (parameters, chains, draws)."""
        return np.asarray(np.exp(self.sampled.logs[:, 0]))

    def nodes(self) -> Iterator[Nodes]:
        """There are none: so many parameters are drawn, not integrated."""
        raise FitError("a fit by source has draws and no nodes; ask it about readings")

    def marginal(self, axis: int) -> Marginal:
        """The draws of one parameter."""
        return Drawn(np.exp(self.sampled.logs[axis, 0].astype(float)))

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Draws picked at random, with replacement, from those of all chains."""
        logs = self.sampled.logs[:, 0].reshape(self.mean.size, -1)
        return np.asarray(np.exp(logs[:, rng.integers(logs.shape[1], size=size)].astype(float)))

    def few(self, readings: Readings, size: int, *, new: bool) -> Few:
        """Draws that together say of these records what all draws say, chosen one by one (herding).

        They agree in the mean of each chance, and in how far it spreads.
        For new individuals they are moved so that the mean of each rate, to the power of the discount, is
        that of all draws: a prediction is a ratio of means of products of these.
        """
        kept = int(np.prod(self._draws.logs.shape[2:]))
        flat = _Draws(*(one.reshape(*one.shape[:-2], kept) for one in self._draws))
        flat = flat.every(max(1, flat.logs.shape[2] // _CANDIDATES))
        logs, coefficients = flat.logs.astype(float), flat.coefficients.astype(float)
        logs[1:] *= self.calibration.discount
        some = readings.take(np.linspace(0, len(readings) - 1, min(len(readings), _JUDGES)).astype(int))
        own, _ = some.by_source(self.sources)
        draws = _Draws(logs[..., None], coefficients[..., None])
        negative, positive = self._shares(own, draws, self._tables(logs), 0, 1.0)
        chance = _expit(positive - negative)[..., 0].astype(float)
        told = [chance] if not new else [_relative(one)[..., 0].astype(float) for one in (negative, positive)]
        wanted = np.log(np.exp(logs).mean(axis=2))
        prevalence = np.exp(logs[:1, 0])
        chosen = _herded(np.vstack([*told, prevalence, _spreads(np.vstack([chance, prevalence]))]), size)
        logs, coefficients = logs[..., chosen], coefficients[..., chosen]
        if new:
            logs += (wanted - np.log(np.exp(logs).mean(axis=2)))[..., None]
        negative, positive = (one.reshape(len(self.sources), 2, logs.shape[2]) for one in self._tables(logs))
        mean_p, mean_q = logs[-4], logs[-2]
        strangers = np.stack([mean_p[::-1], mean_q])  # no and yes, for negatives and for positives
        return Few(logs[0], negative, positive, strangers, coefficients)

    # Records ---------------------------------------------------------------------------------------

    def chances(self, records: Any, *, new: bool) -> Estimate:
        """P(T = 1) of records, and a 95 % bound on its numerical error."""
        found = [self._means(*block, new) for block in self._blocks(records, self.calibration.discount)]
        return self._moved(_joined(found))

    def quantiles(self, records: Any, tails: Sequence[float], *, new: bool) -> list[Estimate]:
        """Quantiles of P(T = 1 | readings; rates) of records, one estimate for each tail."""
        at = np.array(tails)
        blocks = self._blocks(records, self.calibration.discount)
        value, error = self._moved(_joined([self._spread(*block, at, new) for block in blocks], (0, at.size)))
        return [Estimate(value[:, i], error[:, i]) for i in range(at.size)]

    def _moved(self, found: Estimate) -> Estimate:
        """Scores as known statuses would have them."""
        moved = self.calibration.moved_error(*found)
        return Estimate(self.calibration.moved(found.value), moved)

    def without_status(self, records: Readings) -> Float:
        """The scores of records of known status without that knowledge, before these move any score.

        1/E[1/Y] of positives and 1 − 1/E[1/(1−Y)] of negatives, Y the score at given rates (SPEC 14).
        """
        found: list[Float] = []
        for negative, positive in self._blocks(records, self.calibration.discount):
            known = records.known[sum(map(len, found)) :][: len(negative)]
            odds = positive - negative
            against = _log_mean(np.where(known[:, None, None] == 1, -odds, odds))
            found.append(np.where(known == 1, expit(-against), expit(against)))
        return np.concatenate([np.zeros(0), *found])

    def log_marginal(self, records: Readings) -> Float:
        """log E[P(readings, T)] of each record over the posterior, for negatives and positives."""
        found = [np.stack([_log_mean(share) for share in block]) for block in self._blocks(records)]
        return np.concatenate([np.zeros((2, 0)), *found], axis=1)

    def log_likelihoods(self, records: Readings) -> Float:
        """log P(readings | rates) of each record in each draw, its class alone where the status is known.

        Shape (records, chains, draws).
        """
        found: list[Float] = []
        for negative, positive in self._blocks(records):
            known = records.known[sum(map(len, found)) :][: len(negative), None, None]
            either = np.where(known == UNKNOWN, np.logaddexp(negative, positive), negative)
            found.append(np.where(known == 1, positive, either))
        return np.concatenate(found) if found else np.zeros((0, *self.sampled.logs.shape[2:]))

    def left_out_draws(self, records: Readings) -> tuple[Float, Float, Float, float]:
        """log 1/E[1/L] of each record from Pareto-smoothed draws, its error, k̂, and the error of the sum."""
        logs = self.log_likelihoods(records)
        logs = logs[..., :: -(-logs.size // _LEFT_OUT) or 1]
        density, shape = smoothed(logs.reshape(len(logs), -1))
        chains = _relative_chains(logs)
        total = chain_error(records.weight @ chains if len(logs) else np.zeros(2))
        return density, chain_error(chains), shape, float(total)

    def _blocks(self, records: Readings, discount: float = 1.0) -> Iterator[tuple[Float, Float]]:
        """log (1−θ) P(readings | T = 0) and log θ P(readings | T = 1), block by block of records.

        Shapes (records, chains, draws). A source never seen enters by its population. The likelihoods are
        taken to the power of the discount.
        """
        own, unseen = records.by_source(self.sources)
        draws = self._thinned(len(own))
        tables = [np.float32(discount) * table for table in self._tables(draws.logs)]
        size = max(1, _AT_ONCE // draws.logs[0, 0].size)
        for first in range(0, len(own), size):
            some = own.take(np.arange(first, min(first + size, len(own))))
            yield self._shares(some, draws, tables, unseen, discount)

    def _thinned(self, records: int) -> _Draws:
        """As many draws as the work allows."""
        chains, kept = self._draws.logs.shape[2:]
        wanted = max(_LEAST // chains, _WORK // max(records * chains, 1), 1)
        return self._draws.every(-(-kept // min(wanted, kept)))

    def _tables(self, logs: Float) -> list[Float]:
        """log P(answer) of each source for negatives and for positives: shape (2 × sources, draws)."""
        size = len(self.sources)
        flat = logs.reshape(*logs.shape[:2], -1)
        p, q = flat[1 : size + 1], flat[size + 1 : 2 * size + 1]
        return [_by_code(p[:, 1], p[:, 0]), _by_code(q[:, 0], q[:, 1])]

    def _shares(
        self, some: Readings, draws: _Draws, tables: list[Float], unseen: int, discount: float
    ) -> tuple[Float, Float]:
        """The two classes' shares of some records."""
        matrix, logs = design(some), draws.logs
        prevalence = self._prevalences(some, draws)
        kept = tables[0].shape[0]
        shares = [matrix[:, :kept] @ table + prevalence[1 - i] for i, table in enumerate(tables)]
        if unseen:
            population = logs[-4:, 0].reshape(4, -1).astype(float)
            _add_unseen(shares, some, len(self.sources), population, discount)
        negative, positive = (share.reshape(len(some), *logs.shape[2:]) for share in shares)
        return negative, positive

    def _prevalences(self, some: Readings, draws: _Draws) -> Any:
        """log θ and log(1 − θ) of some records at some draws, each of shape (records or 1, draws)."""
        if not len(draws.coefficients):
            return draws.logs[0].reshape(2, 1, -1)
        assert some.people is not None
        flat = draws.coefficients.reshape(len(draws.coefficients), -1)
        odds = some.people.rows.astype(flat.dtype) @ flat
        return -np.logaddexp(0, -odds), -np.logaddexp(0, odds)

    def _means(self, negative: Float, positive: Float, new: bool) -> Estimate:
        """The mean of each record, and its error from the chains."""
        chance = _expit(positive - negative)
        if not new:
            by_chain = chance.mean(axis=2, dtype=float)
            return Estimate(by_chain.mean(axis=1), chain_error(by_chain))
        weight = _weights(negative, positive)
        by_chain = (weight * chance).mean(axis=2, dtype=float)
        value = by_chain.mean(axis=1)
        moved = by_chain - value[:, None] * weight.mean(axis=2, dtype=float)
        return Estimate(value, chain_error(moved))

    def _spread(self, negative: Float, positive: Float, tails: Float, new: bool) -> Estimate:
        """Quantiles of each record, and their error from groups of chains."""
        chance = _expit(positive - negative)
        if not new:
            value = np.quantile(chance.reshape(len(chance), -1), tails, axis=1).T
            groups = np.stack([np.quantile(one, tails, axis=(1, 2)).T for one in _grouped(chance)], axis=-1)
            return Estimate(value, chain_error(groups))
        weight = _weights(negative, positive)
        value = _weighted(chance, weight, tails)
        pairs = zip(_grouped(chance), _grouped(weight), strict=True)
        return Estimate(value, chain_error(np.stack([_weighted(*pair, tails) for pair in pairs], axis=-1)))


def _relative_chains(logs: Float) -> Float:
    """The mean of 1/L in each chain, divided by that of all: shape (records, chains)."""
    inverse = np.exp(logs.min(axis=(1, 2), keepdims=True) - logs.astype(float)).mean(axis=2)
    return np.asarray(inverse / inverse.mean(axis=1, keepdims=True))


def _relative(logs: Float) -> Float:
    """Likelihoods divided by their mean over the draws."""
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(likelihood / likelihood.mean(axis=1, keepdims=True))


def _spreads(chances: Float) -> Float:
    """Numbers with mean 0 over all draws, whose sum over some says by how much these spread too widely.

    Without them herding takes draws near the mean, and intervals of half their width.
    """
    away = chances - chances.mean(axis=1, keepdims=True)
    sd = np.maximum(np.sqrt((away**2).mean(axis=1, keepdims=True)), 1e-12)
    return np.asarray((away**2 / sd - sd) / 2)


def _herded(chances: Float, size: int) -> list[int]:
    """Columns whose mean is close to the mean of all columns, each chosen given those before it."""
    target, total = chances.mean(axis=1), np.zeros(len(chances))
    chosen: list[int] = []
    squares = (chances**2).sum(axis=0)
    for i in range(1, min(size, chances.shape[1]) + 1):
        # ‖total + x − i · target‖² for every column x, without what they share
        cost = squares + 2 * (total - i * target) @ chances
        cost[chosen] = np.inf
        chosen.append(int(np.argmin(cost)))
        total += chances[:, chosen[-1]]
    return chosen


def design(records: Readings) -> Any:
    """How often each source said no and yes in each record, as a sparse matrix in single precision."""
    from scipy.sparse import csr_array

    times = np.ones(records.code.size) if records.times is None else records.times
    parts = (times.astype(np.float32), records.code, records.start)
    return csr_array(parts, shape=(len(records), 2 * len(records.sources)))


def _by_code(no: Float, yes: Float) -> Float:
    """Rows in the order of codes: no and yes of the first source, of the second, and so on."""
    return np.stack([no, yes], axis=1).reshape(2 * len(no), *no.shape[1:])


def _add_unseen(shares: list[Float], some: Readings, seen: int, population: Float, discount: float) -> None:
    """Add what sources never seen say: their rates integrated over the population of sources."""
    new = np.flatnonzero(some.code // 2 >= seen)
    if not new.size:
        return
    times = np.ones(new.size) if some.times is None else some.times[new]
    keys, where = np.unique(np.stack([some.row[new], some.code[new] // 2]), axis=1, return_inverse=True)
    said = np.zeros((2, keys.shape[1]))  # no, yes
    np.add.at(said, (some.code[new] % 2, where.ravel()), times)
    no, yes = said
    for share, (mean, spread), wrong, right in (
        (shares[0], population[:2], yes, no),
        (shares[1], population[2:], no, yes),
    ):
        kappa = np.expm1(-spread)  # 1/ρ − 1
        a = np.exp(mean) * kappa
        b = kappa - a
        for i, row in enumerate(keys[0]):
            said_so = _rising(a, wrong[i]) + _rising(b, right[i]) - _rising(kappa, wrong[i] + right[i])
            share[row] += discount * said_so


def _rising(x: Float, k: float) -> Float:
    """log Γ(x + k)/Γ(x)."""
    if k == 0:
        return np.zeros_like(x)
    return np.log(x) if k == 1 else np.asarray(gammaln(x + k) - gammaln(x))


def _expit(odds: Float) -> Float:
    """1/(1 + e^−odds)."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-odds)))


def _weights(negative: Float, positive: Float) -> Float:
    """P(readings) at each draw, divided by its mean: what a new record's own readings say of the rates."""
    log = np.logaddexp(negative, positive)
    weight = np.exp(log - log.max(axis=(1, 2), keepdims=True)).astype(float)
    return np.asarray(weight / weight.mean(axis=(1, 2), keepdims=True))


def _grouped(values: Float) -> list[Float]:
    """The draws (records, chains, draws) of some groups of chains."""
    return np.array_split(values, min(_GROUPS, values.shape[1]), axis=1)


def _weighted(values: Float, weight: Float, tails: Float) -> Float:
    """Weighted quantiles of each record."""
    rows = zip(values.reshape(len(values), -1), weight.reshape(len(weight), -1), strict=True)
    return np.stack([weighted_quantiles(value, each, tails) for value, each in rows])


def _log_mean(logs: Float) -> Float:
    """log of the mean over chains and draws."""
    top = logs.max(axis=(1, 2), keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).mean(axis=(1, 2), dtype=float)) + top[:, 0, 0])


def _joined(found: list[Estimate], empty: tuple[int, ...] = (0,)) -> Estimate:
    """The estimates of blocks of records, one after the other."""
    if not found:
        return Estimate(np.zeros(empty), np.zeros(empty))
    return Estimate(*(np.concatenate([one[i] for one in found]) for i in (0, 1)))
