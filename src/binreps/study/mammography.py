"""Synthetic mammography: many readers look at the same women, and some women are harder than others.

It breaks the model twice, as real studies do: readers differ in their error rates, and errors gather on the
difficult women. The readings of the published study are not public; its size, its missing readings and the
mean error rates are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binreps.counts import CountTable
from binreps.errors import DataError, OptionError
from binreps.model import Float
from binreps.options import check_pair, check_whole, generator, kinds_checked, real, shown
from binreps.study.simulate import Simulation

Weights = Callable[[np.random.Generator, int], Float]
"""A law of difficulty weights: called with a generator and a number of women."""

PUBLISHED_MISSING = ((0, 1), (5, 3), (1, 0))
"""Healthy women and cancers that readers 1201, 7714 and 9007 of the published study did not read."""

MISSING = -1
"""How `Mammography.readings` marks a reading that was not made."""


def exponential_weights(rng: np.random.Generator, women: int) -> Float:
    """Exponential difficulty: most women are easy, a few are several times as hard as the average one."""
    return rng.exponential(size=women)


@dataclass(frozen=True, eq=False)
class Mammography:
    """Readings of every woman by every reader, with the truth; what `simulate_mammography` returns.

    Attributes
    ----------
    readings : ndarray of shape (readers, women)
        0 or 1, and −1 where a reader did not see a woman.
    truth : ndarray
        Status of each woman: the healthy ones (0) first, then the cancers (1).
    weights : ndarray
        Difficulty of each woman; a larger weight is a harder woman (erratum E9).
    false_positive, false_negative : ndarray
        The rates p_j and q_j that each reader's numbers of errors were rounded from.
    """

    readings: NDArray[np.int8]
    truth: NDArray[np.int64]
    weights: Float
    false_positive: Float
    false_negative: Float

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which readings were made."""
        return np.asarray(self.readings != MISSING)

    @property
    def errors(self) -> NDArray[np.bool_]:
        """Which readings were made and are wrong."""
        return np.asarray(self.observed & (self.readings != self.truth))

    @property
    def reader_rates(self) -> tuple[Float, Float]:
        """Each reader's p̂_j and q̂_j: wrong readings among those made, of healthy women and of cancers."""
        healthy, cancer = (
            self.errors[:, who].sum(axis=1) / self.observed[:, who].sum(axis=1)
            for who in (self.truth == 0, self.truth == 1)
        )
        return healthy, cancer

    @property
    def counts(self) -> CountTable:
        """The counts of all readings, one individual per woman, every status unknown."""
        return CountTable(self.observed.sum(axis=0), (self.readings == 1).sum(axis=0))

    def draw_readers(self, replicates: int, rng: np.random.Generator | int) -> Simulation:
        """A small study: for each woman, that many of the readers who saw her, drawn without replacement.

        Examples
        --------
        >>> study = simulate_mammography(1).draw_readers(4, rng=2)
        >>> len(study), set(study.n.tolist())
        (148, {4})
        """
        fewest = int(self.observed.sum(axis=0).min())
        check_whole("replicates", replicates, 1, fewest)
        race = np.where(self.observed, generator(rng).random(self.readings.shape), np.inf)
        chosen = np.argsort(race, axis=0)[:replicates]
        s = np.take_along_axis(self.readings, chosen, axis=0).sum(axis=0, dtype=np.int64)
        return Simulation(np.full(s.size, replicates), s, self.truth)


@kinds_checked
def simulate_mammography(
    rng: np.random.Generator | int,
    *,
    healthy: int = 84,
    cancers: int = 64,
    readers: int = 110,
    mean_rates: tuple[float, float] = (0.22, 0.13),
    spread: float = 0.1,
    weights: Weights = exponential_weights,
    missing: Sequence[tuple[int, int]] = PUBLISHED_MISSING,
) -> Mammography:
    """Draw the readings of a study in which every reader looks at every woman.

    ::

        p_j, q_j ~ Beta with the given means and standard deviation, for each reader j
        round(healthy · p_j) errors among the healthy, round(cancers · q_j) among the cancers, exactly

    The women on whom a reader errs are drawn one after the other without replacement, each draw proportional
    to the remaining weights (R's `sample`), so a heavier woman is a harder one. Readings that were not made
    are taken away afterwards, at random within the class.

    Parameters
    ----------
    rng : numpy.random.Generator or int
    healthy, cancers, readers : int
        Sizes; the defaults are those of the published study.
    mean_rates : pair of float
        Means of p_j and of q_j; the defaults are the published ones, the individual rates are not public.
    spread : float
        Standard deviation of p_j and of q_j; 0 makes all readers alike.
    weights : callable
        The law of the difficulty weights: `weights(rng, women)` returns as many numbers > 0.
    missing : sequence of pairs
        Of the first readers, how many (healthy women, cancers) each did not read.

    Returns
    -------
    Mammography

    Examples
    --------
    >>> study = simulate_mammography(1)
    >>> study.readings.shape, int((~study.observed).sum())
    ((110, 148), 10)
    >>> [float(rates.mean().round(2)) for rates in study.reader_rates]
    [0.21, 0.12]
    """
    for name, size in (("healthy", healthy), ("cancers", cancers), ("readers", readers)):
        check_whole(name, size, 1)
    source = generator(rng)
    p, q = (_reader_rates(name, mean, spread, readers, source) for name, mean in _named(mean_rates))
    truth = np.repeat([0, 1], [healthy, cancers])
    difficulty = _checked_weights(weights(source, truth.size), truth.size)
    sides = (p, difficulty[:healthy]), (q, difficulty[healthy:])
    wrong = np.concatenate([_errors(rates, part, source) for rates, part in sides], axis=1)
    unseen = _unseen(missing, (healthy, cancers), readers, source)
    readings = np.where(unseen, MISSING, truth ^ wrong).astype(np.int8)
    for column in (readings, truth, difficulty, p, q):
        column.setflags(write=False)
    return Mammography(readings, truth, difficulty, p, q)


def _named(mean_rates: tuple[float, float]) -> list[tuple[str, float]]:
    """The two means with their names."""
    pair = check_pair("mean_rates", mean_rates)
    return list(zip(("false-positive", "false-negative"), pair, strict=True))


def _reader_rates(name: str, mean: float, spread: float, readers: int, rng: np.random.Generator) -> Float:
    """Rates of all readers: Beta with this mean and standard deviation."""
    if not 0 < real(mean) < 1:
        raise OptionError(f"the mean {name} rate must be between 0 and 1, got {shown(mean)}")
    most = (mean * (1 - mean)) ** 0.5
    if not 0 <= spread < most:
        raise OptionError(
            f"spread must be from 0 to below {most:.3g} for a mean {name} rate of {mean}, got {spread}"
        )
    if spread == 0:
        return np.full(readers, mean)
    size = mean * (1 - mean) / spread**2 - 1  # a + b
    return rng.beta(mean * size, (1 - mean) * size, readers)


def _checked_weights(values: Float, women: int) -> Float:
    """Difficulty weights, positive and finite, as many as there are women."""
    array = np.array(values, dtype=float)
    if array.shape != (women,):
        raise DataError(f"weights must give one number per woman ({women}), got shape {array.shape}")
    wrong = ~((array > 0) & np.isfinite(array))
    if wrong.any():
        raise DataError(f"weights must be finite and > 0, got {array[wrong][0]}")
    return array


def _errors(rates: Float, weights: Float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """For each reader, who is misread: exactly round(women × rate) of them, of shape (readers, women).

    The first k to arrive in a race of exponential times with the weights as speeds are k successive draws
    proportional to the remaining weights: no loop over draws is needed.
    """
    arrival = rng.exponential(size=(rates.size, weights.size)) / weights
    place = np.argsort(np.argsort(arrival, axis=1), axis=1)
    return np.asarray(place < np.rint(weights.size * rates)[:, None])


def _unseen(
    missing: Sequence[tuple[int, int]], sizes: tuple[int, int], readers: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which readings were not made, of shape (readers, women)."""
    if len(missing) > readers:
        raise OptionError(f"missing must name at most {readers} readers, got {len(missing)}")
    unseen = np.zeros((readers, sum(sizes)), bool)
    for j, numbers in enumerate(missing):
        for first, size, number in zip((0, sizes[0]), sizes, check_pair("missing", numbers), strict=True):
            check_whole(f"missing of reader {j}", number, 0, size - 1)
            unseen[j, first + rng.choice(size, number, replace=False)] = True
    return unseen
