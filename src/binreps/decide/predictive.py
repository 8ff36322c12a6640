"""What the fit expects the count table to look like: the posterior-predictive check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binreps.counts import UNKNOWN, CountTable, whole_numbers
from binreps.errors import FitError, OptionError
from binreps.fits.base import AnyFit, Fit, check_fit
from binreps.model import Float
from binreps.options import check_level, check_whole, generator, is_single, kinds_checked
from binreps.table import Table

_MOST_PANELS = 6
_MOST_BINS = 30


@kinds_checked
def predictive_counts(
    fit: AnyFit,
    *,
    rng: np.random.Generator | int,
    size: int = 1000,
    level: float = 0.9,
    replicates: Iterable[int] | None = None,
) -> Table:
    """How many individuals had s positives among n, and how many the fit would expect if it were repeated.

    Each draw from the posterior gives a new table: of the individuals with n replicates, those of unknown
    status spread over s by θ P(s | T = 1) + (1−θ) P(s | T = 0), as the fit's model has it, those of known
    status by their own class's law. With covariates θ is the average over those with n replicates.

    Parameters
    ----------
    fit : any fit
        Several populations are expected together, each by its own prevalence. A point is one draw, again
        and again.
    rng : int or numpy.random.Generator
        Seed of the draws.
    size : int
        Number of draws.
    level : float
        Probability that each interval holds.
    replicates : iterable of int, optional
        The numbers of replicates to show; by default the six that most individuals have.

    Returns
    -------
    Table
        Columns n, s, s_end, observed, mean, lower, upper. A row holds the individuals with s to s_end
        positives: one value of s where n < 30, a range of them beyond.

    Examples
    --------
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([2, 2, 2], [0, 1, 2], weight=[50, 10, 40]))
    >>> table = predictive_counts(fit, rng=1)
    >>> table["observed"], [round(mean) for mean in table["mean"]]
    ((50, 10, 40), [49, 13, 38])
    """
    check_fit(fit)
    check_level(level)
    check_whole("size", size, 1, 10**6)
    source = generator(rng)
    if any(np.isnan(one.posterior.mean).any() for one in fit.parts.values()):
        raise FitError(f"predictive counts need defined rates, which the {fit.method} does not give here")
    shown = _most_common(fit.everyone) if replicates is None else _checked(replicates)
    draws = fit.joint_draws(size, source)
    tails = [(1 - level) / 2, (1 + level) / 2]
    columns: dict[str, list[Any]] = {
        name: [] for name in ("n", "s", "s_end", "observed", "mean", "lower", "upper")
    }
    for n in shown:
        starts = _bins(n)
        own = fit.among(n)
        drawn_here = draws if own is fit else own.joint_draws(size, source)
        each = [_predicted(one, n, starts, drawn_here[name], source) for name, one in own.parts.items()]
        expected, drawn = sum(mean for mean, _ in each), sum(counts for _, counts in each)
        lower, upper = np.quantile(drawn, tails, axis=0)
        ends = [*(starts[1:] - 1), n]
        observed = _observed(fit.everyone, n, starts)
        block = ([n] * starts.size, starts, ends, observed, expected, lower, upper)
        for column, values in zip(columns.values(), block, strict=True):
            column.extend(np.asarray(values).tolist())
    return Table(columns, note=f"{level:.0%} intervals of the counts in {size:,} repetitions")


def _checked(replicates: Iterable[int]) -> list[int]:
    """Distinct numbers of replicates, in order."""
    given: Any = (
        list(replicates) if isinstance(replicates, Iterable) and not is_single(replicates) else replicates
    )
    wanted: list[int] = np.unique(whole_numbers("replicates", given)).tolist()
    if not wanted:
        raise OptionError("replicates must name at least one number of replicates, got none")
    return wanted


def _most_common(counts: CountTable) -> list[int]:
    """The numbers of replicates that most individuals have, in order."""
    n, where = np.unique(counts.n[counts.n > 0], return_inverse=True)
    people = np.bincount(where, counts.weight[counts.n > 0], minlength=n.size)
    return sorted(n[np.argsort(-people, kind="stable")[:_MOST_PANELS]].tolist())


def _bins(n: int) -> NDArray[np.int64]:
    """The first s of each row: every s, or ranges of nearly equal width where they would be too many."""
    return np.unique(np.arange(min(n + 1, _MOST_BINS)) * (n + 1) // min(n + 1, _MOST_BINS))


def _observed(counts: CountTable, n: int, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Individuals in each row."""
    here = counts.n == n
    total = np.zeros(starts.size, np.int64)
    np.add.at(total, np.searchsorted(starts, counts.s[here], side="right") - 1, counts.weight[here])
    return total


def _predicted(
    fit: Fit, n: int, starts: NDArray[np.int64], draws: Float, rng: np.random.Generator
) -> tuple[Float, NDArray[np.int64]]:
    """Mean count of each row in one population, and the counts drawn, shape (draws, rows)."""
    theta, *errors = draws
    negative, positive = fit.model.ranges(n, starts, *errors)
    mixture = theta[:, None] * positive + (1 - theta[:, None]) * negative
    expected, drawn = np.zeros(starts.size), np.zeros(negative.shape, np.int64)
    for status, law in ((UNKNOWN, mixture), (0, negative), (1, positive)):
        people = int(fit.counts.weight[(fit.counts.n == n) & (fit.counts.known == status)].sum())
        expected += people * law.mean(axis=0)
        drawn += rng.multinomial(people, law / law.sum(axis=1, keepdims=True))
    return expected, drawn
