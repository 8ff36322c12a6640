"""Data from the model: one individual at a time, or only their counts, for as many individuals as you like.

::

    n ~ uniform over the entries of `replicates`
    T ~ Bernoulli(θ)
    S | T ~ Binomial(n, T(1−q) + (1−T)p)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, logit

from binreps.counts import UNKNOWN, CountTable, whole_numbers
from binreps.covariates import CovariateTable
from binreps.errors import OptionError
from binreps.model import ALIKE, Float, Rates
from binreps.options import check_kind, generator, kinds_checked, real, shown
from binreps.readings import Readings
from binreps.table import Table

Replicates = int | Sequence[int] | NDArray[np.int64]
"""A whole number, or several of which each individual draws one."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated individuals with their true status: what `simulate` returns.

    Attributes
    ----------
    n, s : ndarray
        Replicates and positives of each individual.
    truth : ndarray
        Status of each individual, 0 or 1.
    covariates : mapping of name to array, optional
        What the prevalence depended on.

    Examples
    --------
    >>> simulation = Simulation(n=np.array([2, 3]), s=np.array([1, 3]), truth=np.array([0, 1]))
    >>> simulation.counts.has_known, simulation.known_counts.has_known
    (False, True)
    """

    n: NDArray[np.int64]
    s: NDArray[np.int64]
    truth: NDArray[np.int64]
    covariates: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return self.n.size

    @property
    def counts(self) -> CountTable:
        """The counts as a study sees them, every status unknown; `truth` can then judge a fit."""
        return CountTable(self.n, self.s)

    @property
    def known_counts(self) -> CountTable:
        """The counts with every status known, which informs a fit; the truth can then not judge it."""
        return CountTable(self.n, self.s, known=self.truth)

    @property
    def records(self) -> CovariateTable:
        """The individuals with their covariates, every status unknown: what `fit_covariates` takes."""
        return CovariateTable(self.n, self.s, self.covariates or {})

    def long(self, rng: np.random.Generator | int | None = None) -> Table:
        """One row per replicate, with columns `individual` (0, 1, …) and `result` (0 or 1).

        Rows go by individual, positives first; with `rng` they come in random order instead. An individual
        without replicates has no row.

        Examples
        --------
        >>> Simulation(n=np.array([2, 0, 1]), s=np.array([1, 0, 0]), truth=np.array([0, 1, 0])).long()
        individual  result
                 0       1
                 0       0
                 2       0
        """
        individual = np.repeat(np.arange(len(self)), self.n)
        place = np.arange(individual.size) - np.repeat(np.cumsum(self.n) - self.n, self.n)
        result = (place < self.s[individual]).astype(int)
        order = slice(None) if rng is None else generator(rng).permutation(individual.size)
        columns = {"individual": individual[order].tolist(), "result": result[order].tolist()}
        for name, values in (self.covariates or {}).items():
            columns[name] = np.asarray(values)[individual][order].tolist()
        return Table(columns)


@kinds_checked
def simulate(
    rates: Rates,
    individuals: int,
    replicates: Replicates,
    rng: np.random.Generator | int,
    *,
    covariates: Mapping[str, Any] | None = None,
    log_odds: Mapping[str, float] | None = None,
) -> Any:
    """Draw individuals from the model, each with replicates, positives and a true status.

    Where the error rates are arrays, each entry is a source: every individual is read once by as many
    different sources as it has replicates, and a `SourceSimulation` comes back.

    Parameters
    ----------
    rates : Rates
        Prevalence and error rates, three numbers; or a prevalence, and the error rates of each source.
    individuals : int
        How many.
    replicates : int or sequence of int
        A whole number: everyone has as many. A sequence: each individual draws one of its entries, all
        equally likely (so `range(2, 7)` is uniform on 2…6, and a repeated entry is likelier).
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    covariates : mapping of name to array_like, optional
        One value per individual. `rates.prevalence` is then the prevalence at average covariates. Populations
        are a category of which each level has its `log_odds`.
    log_odds : mapping of name to float, optional
        What one unit of a number, or a level such as `"site=north"` against the reference, adds to the log
        odds of being positive; 0 if not named.

    Returns
    -------
    Simulation or SourceSimulation

    See Also
    --------
    simulate_counts : the same law for any number of individuals, without a row for each.

    Examples
    --------
    >>> simulation = simulate(Rates(0.4, 0.1, 0.05), 200, range(2, 7), rng=1)
    >>> len(simulation), sorted(set(simulation.n.tolist()))
    (200, [2, 3, 4, 5, 6])
    >>> simulation.counts.individuals
    200
    >>> readers = simulate(Rates(0.4, [0.1, 0.2, 0.3], [0.05, 0.1, 0.4]), 200, 3, rng=1)
    >>> print(readers.readings)
    Readings: 200 individuals, 600 readings by 3 sources, 200 records
    """
    check_kind("rates", rates, Rates)
    if log_odds and covariates is None:
        raise OptionError(f"log_odds are those of covariates, and there are none, got {shown(log_odds)}")
    if np.ndim(rates.false_positive) or np.ndim(rates.false_negative):
        return _simulate_sources(rates, individuals, replicates, generator(rng), covariates, log_odds)
    theta, p, q = _three_numbers(rates)
    size, choices, rng = _individuals(individuals), _choices(replicates), generator(rng)
    n = rng.choice(choices, size)
    chance = _chances(theta, size, covariates, log_odds)
    truth = (rng.random(size) < chance).astype(np.int64)
    s = rng.binomial(n, np.where(truth == 1, 1 - q, p))
    for column in (n, s, truth):
        column.setflags(write=False)
    return Simulation(n, s, truth, covariates)


def _chances(
    theta: float, size: int, covariates: Mapping[str, Any] | None, given: Mapping[str, float] | None
) -> Any:
    """The prevalence, of everyone by their covariates where there are any."""
    if covariates is None:
        return theta
    log_odds = dict(given or {})
    zeros = np.zeros(size, np.int64)
    table = CovariateTable(zeros, zeros, covariates)
    if more := [name for name in log_odds if name not in table.terms]:
        raise OptionError(f"log_odds must name columns ({', '.join(table.terms)}), got {more[0]!r}")
    slopes = np.array([real(log_odds.get(term, 0.0)) for term in table.terms]) * table.sd
    if not np.all(np.isfinite(slopes)):
        raise OptionError(f"log_odds must be finite numbers, got {shown(log_odds)}")
    return np.asarray(expit(logit(theta) + table.rows_of(covariates)[0] @ slopes))


@dataclass(frozen=True, eq=False)
class SourceSimulation:
    """Simulated readings by sources, and the true status of each individual.

    Attributes
    ----------
    individual, source, result : ndarray
        Of each reading.
    truth : ndarray
        Status of each individual, 0 or 1.
    sources : int
        How many there are, whether they read anyone or not.
    covariates : mapping of name to array, optional
        What the prevalence depended on.
    """

    individual: NDArray[np.int64]
    source: NDArray[np.int64]
    result: NDArray[np.int64]
    truth: NDArray[np.int64]
    sources: int
    covariates: Mapping[str, Any] | None = None

    @property
    def readings(self) -> Readings:
        """The readings as a study sees them: source j is called j + 1, every status is unknown."""
        names = range(1, self.sources + 1)
        unknown = np.full(self.truth.size, UNKNOWN, np.int8)
        plain = Readings.counted(names, self.individual, self.source, self.result, 1 - self.result, unknown)
        return plain.with_covariates(self.covariates or {})

    def table(self) -> Table:
        """One row per reading."""
        columns: dict[str, Any] = {"individual": self.individual + 1, "source": self.source + 1}
        columns |= {"result": self.result, "truth": self.truth[self.individual]}
        for name, values in (self.covariates or {}).items():
            columns[name] = np.asarray(values)[self.individual]
        return Table(columns)


def _simulate_sources(
    rates: Rates,
    individuals: int,
    replicates: Replicates,
    rng: np.random.Generator,
    covariates: Mapping[str, Any] | None,
    log_odds: Mapping[str, float] | None,
) -> SourceSimulation:
    """Readings by different sources, drawn at random for each individual."""
    size, choices = _individuals(individuals), _choices(replicates)
    p, q = np.broadcast_arrays(np.atleast_1d(rates.false_positive), np.atleast_1d(rates.false_negative))
    if np.ndim(rates.prevalence) or p.ndim != 1 or np.isnan([rates.prevalence, *p, *q]).any():
        rule = "rates must have one prevalence and an error rate of each source, none missing"
        raise OptionError(f"{rule}; prevalences that differ are those of covariates")
    if choices.max() > p.size:
        raise OptionError(f"replicates must be at most the number of sources, {p.size}, got {choices.max()}")
    n = rng.choice(choices, size)
    truth = (rng.random(size) < _chances(rates.prevalence, size, covariates, log_odds)).astype(np.int64)
    of = np.repeat(np.arange(size), n)
    chosen = [rng.choice(p.size, k, replace=False) for k in n.tolist()]
    by = np.concatenate([np.zeros(0, np.int64), *chosen]).astype(np.int64)
    chance = np.where(truth[of] == 1, 1 - q[by], p[by])
    result = (rng.random(of.size) < chance).astype(np.int64)
    return SourceSimulation(of, by, result, truth, p.size, covariates)


@kinds_checked
def simulate_counts(
    rates: Rates,
    individuals: int,
    replicates: Replicates,
    rng: np.random.Generator | int,
    *,
    known: bool = False,
) -> CountTable:
    """Draw only the counts, by the law of `simulate`, at a cost that does not depend on `individuals`.

    The individuals are split at random over the cells (n, s, T) in the proportions of the model.

    Parameters
    ----------
    rates, individuals, replicates, rng
        As in `simulate`; `individuals` may be as large as 2^53.
    known : bool
        Whether the table keeps each status as known.

    Returns
    -------
    CountTable

    Examples
    --------
    >>> counts = simulate_counts(Rates(0.4, 0.1, 0.05), 10**12, [3, 4], rng=1)
    >>> print(counts.individuals, len(counts))
    1000000000000 9
    """
    theta, p, q = _three_numbers(rates)
    size, rng = _individuals(individuals), generator(rng)
    sizes, times = np.unique(_choices(replicates), return_counts=True)
    cells = CountTable(np.repeat(sizes, sizes + 1), np.concatenate([np.arange(k + 1) for k in sizes]))
    n, s = cells.n, cells.s
    log_orders = -np.log1p(n) - betaln(s + 1, n - s + 1)  # log of the binomial coefficient
    chance_of_n = np.repeat(times / times.sum(), sizes + 1)
    negative, positive = (chance_of_n * np.exp(log_orders + c) for c in ALIKE.log_classes(cells, p, q))
    weight = _split(size, np.concatenate([(1 - theta) * negative, theta * positive]), rng)
    status = np.repeat([0, 1], len(cells)) if known else None
    return CountTable(np.tile(n, 2), np.tile(s, 2), weight, status)


def _split(total: int, probability: Float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Multinomial counts by halving; each share is a ratio of sums, never a difference, hence accurate."""
    depth = (probability.size - 1).bit_length()
    levels = [np.pad(probability, (0, 2**depth - probability.size))]
    while levels[-1].size > 1:
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    counts = np.array([total], dtype=np.int64)
    for both, level in zip(levels[:0:-1], levels[-2::-1], strict=True):
        share = np.divide(level[::2], both, out=np.zeros(both.size), where=both > 0)
        first = rng.binomial(counts, share)
        counts = np.stack([first, counts - first], axis=1).ravel()
    return counts[: probability.size]


def _three_numbers(rates: Rates) -> tuple[float, float, float]:
    """The rates, which must be defined numbers."""
    check_kind("rates", rates, Rates)
    if not all(isinstance(rate, float) and rate == rate for rate in rates):
        raise OptionError(f"rates must be three numbers between 0 and 1 to simulate from, got {rates}")
    return rates.prevalence, rates.false_positive, rates.false_negative


def _individuals(value: float) -> int:
    """How many individuals: a whole number, also when written as 1e9."""
    number = isinstance(value, int | float | np.integer) and not isinstance(value, bool)
    if not (number and 0 <= value <= 2**53 and value % 1 == 0):
        raise OptionError(f"individuals must be a whole number from 0 to 2^53, got {value!r}")
    return int(value)


def _choices(replicates: Replicates) -> NDArray[np.int64]:
    """The numbers of replicates to draw from."""
    choices = np.atleast_1d(whole_numbers("replicates", replicates))
    if choices.ndim > 1 or choices.size == 0:
        raise OptionError(f"replicates must be a whole number or a list of them, got {replicates!r}")
    return choices
