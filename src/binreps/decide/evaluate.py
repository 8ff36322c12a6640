"""Judging scores and fits against truths: risk, confusion, calibration, cross-validation.

A truth here judges and never trains. To let a status inform a fit, give it to the `CountTable` as `known`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from binreps.counts import UNKNOWN, CountTable, whole_numbers
from binreps.covariates import CovariateTable
from binreps.decide.loss import DECISIONS, Loss, Predictor, check_loss, checked_scores, classify, one_of
from binreps.errors import DataError, OptionError
from binreps.model import Float
from binreps.options import check_kind, check_level, check_pair, check_whole, generator, kinds_checked
from binreps.readings import Readings
from binreps.table import Table

_HYPERGEOMETRIC_LIMIT = 10**9  # NumPy draws multivariate hypergeometric numbers below this total
_MOST = 10**6  # bins or folds: one row each in the table returned


@dataclass(frozen=True)
class Evaluation:
    """How decisions compare with the truth; NaN where a figure is undefined.

    Parameters
    ----------
    counts : pair of triples
        Individuals truly negative, then truly positive, by answer: negative, inconclusive, positive.
    brier : float
        Mean of (y − t)².
    log_score : float
        Mean of −log y for the truly positive and −log(1−y) for the truly negative; infinite if a score of
        exactly 0 or 1 is wrong.
    left_out : int
        Individuals that could not be judged, for want of a score or a truth.
    loss : Loss
        The costs in the risks.
    rule : str
        How scores became answers.
    calibration : Table
        How often individuals with about the same score are truly positive, as `calibration_curve` says.
    """

    counts: tuple[tuple[int, int, int], tuple[int, int, int]]
    brier: float
    log_score: float
    left_out: int
    loss: Loss
    rule: str
    calibration: Table = field(compare=False, repr=False)

    @property
    def individuals(self) -> int:
        """Individuals judged."""
        return sum(map(sum, self.counts))

    @property
    def total_risk(self) -> float:
        """Σ ℓ(t, t̂), the sum that the paper's Table 2 prints [E6]."""
        costs = self.loss.cost([[0], [1]], list(DECISIONS))
        return math.fsum(np.ravel(costs * self.counts))

    @property
    def mean_risk(self) -> float:
        """Mean of ℓ(t, t̂), the empirical risk."""
        return _share(self.total_risk, self.individuals)

    @property
    def confusion(self) -> Table:
        """Individuals by truth (rows) and answer (columns)."""
        answers = zip(DECISIONS.values(), *self.counts, strict=True)
        return Table({"truth": ["negative", "positive"], **{word: pair for word, *pair in answers}})

    @property
    def sensitivity(self) -> float:
        """P(T̂ = 1 | T = 1); an inconclusive answer counts against it."""
        return _share(self.counts[1][2], sum(self.counts[1]))

    @property
    def specificity(self) -> float:
        """P(T̂ = 0 | T = 0); an inconclusive answer counts against it."""
        return _share(self.counts[0][0], sum(self.counts[0]))

    @property
    def informedness(self) -> float:
        """Sensitivity + specificity − 1."""
        return self.sensitivity + self.specificity - 1

    @property
    def positive_predictive_value(self) -> float:
        """P(T = 1 | T̂ = 1)."""
        return _share(self.counts[1][2], self.counts[0][2] + self.counts[1][2])

    @property
    def negative_predictive_value(self) -> float:
        """P(T = 0 | T̂ = 0)."""
        return _share(self.counts[0][0], self.counts[0][0] + self.counts[1][0])

    @property
    def share_inconclusive(self) -> float:
        """P(T̂ = ½)."""
        return _share(self.counts[0][1] + self.counts[1][1], self.individuals)

    def summary(self) -> Table:
        """Every figure in one table."""
        figures = {name: getattr(self, name) for name in _FIGURES}
        return Table({"measure": list(figures), "value": list(figures.values())}, note=self.rule)

    def __str__(self) -> str:
        return f"{self.confusion}\n\n{self.summary()}"


_FIGURES = (
    "individuals",
    "left_out",
    "total_risk",
    "mean_risk",
    "sensitivity",
    "specificity",
    "informedness",
    "positive_predictive_value",
    "negative_predictive_value",
    "share_inconclusive",
    "brier",
    "log_score",
)


@kinds_checked
def evaluate(
    scores: ArrayLike,
    truth: ArrayLike,
    loss: Loss,
    weight: ArrayLike | None = None,
    *,
    thresholds: tuple[float, float] | None = None,
) -> Evaluation:
    """Judge scores, and the decisions that follow from them, against the truth.

    Parameters
    ----------
    scores : array_like
        P(T = 1) of each individual, or of each cell of a table.
    truth : array_like
        0 or 1, or null where it is not known.
    loss : Loss
        The costs. Its best rule turns scores into answers.
    weight : array_like of whole numbers, optional
        How many individuals each entry stands for; 1 each if not given.
    thresholds : pair of float, optional
        Lower and upper threshold to use in place of the loss's own, with `classify`. Costs of 0 are then
        legal: `Loss(1, 1, 0)` makes the risk the rate of hard errors.

    Returns
    -------
    Evaluation
        Individuals with a null score or truth are left out, and counted.

    Examples
    --------
    >>> judged = evaluate([0.1, 0.5, 0.9, 0.9], [0, 1, 1, 0], Loss(inconclusive=0.2))
    >>> print(judged.confusion)
    truth     negative  inconclusive  positive
    negative         1             0         1
    positive         0             1         1
    >>> judged.total_risk, judged.sensitivity
    (1.2, 0.5)
    """
    check_loss(loss)
    y, t, w, left_out = judged(scores, truth, weight)
    pair = None if thresholds is None else check_pair("thresholds", thresholds)
    answers = loss.classify(y) if pair is None else classify(y, *pair)
    a, b, c, d, e, f = np.bincount((3 * t + 2 * answers).astype(int), w, minlength=6).astype(int).tolist()
    with np.errstate(divide="ignore"):
        surprise = -np.where(t == 1, np.log(y), np.log1p(-y))
    return Evaluation(
        counts=((a, b, c), (d, e, f)),
        brier=_mean((y - t) ** 2, w),
        log_score=_mean(surprise, w),
        left_out=left_out,
        loss=loss,
        rule=str(loss) if pair is None else "thresholds {:g} and {:g}".format(*pair),
        calibration=calibration_curve(y, t, w),
    )


def calibration_curve(
    scores: ArrayLike,
    truth: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    bins: int = 10,
    level: float = 0.9,
) -> Table:
    """How often individuals with about the same score are truly positive.

    Scores are sorted into bins of equal width, [k/bins, (k+1)/bins), the last one closed. Quantile bins
    would have to split ties, and scores that come from cells tie heavily. Empty bins are left out.

    Parameters
    ----------
    scores, truth, weight : array_like
        As for `evaluate`.
    bins : int
        Number of bins.
    level : float
        Level of the Wilson interval of the observed share, which takes individuals as independent.

    Returns
    -------
    Table
        Columns start, end, individuals, mean_score, observed, lower, upper.

    Examples
    --------
    >>> print(calibration_curve([0.1, 0.9, 0.9], [0, 1, 0], [30, 80, 10], bins=2))
    start    end  individuals  mean_score  observed  lower  upper
    0.000  0.500           30       0.100     0.000  0.000  0.083
    0.500  1.000           90       0.900     0.889  0.823  0.932
    expected calibration error 0.033
    """
    check_level(level)
    index, total, mean_score, observed = _binned(scores, truth, weight, bins)
    lower, upper = _wilson(observed, total, level)
    error = _mean(np.abs(mean_score - observed), total)
    columns: dict[str, Any] = {
        "start": index / bins,
        "end": (index + 1) / bins,
        "individuals": total.astype(int),
        "mean_score": mean_score,
        "observed": observed,
        "lower": lower,
        "upper": upper,
    }
    return Table(columns, note=f"expected calibration error {error:.3f}")


def calibration_error(
    scores: ArrayLike, truth: ArrayLike, weight: ArrayLike | None = None, *, bins: int = 10
) -> float:
    """Expected calibration error: Σ (individuals in bin / N) |mean score − observed share|.

    The bins are those of `calibration_curve`; NaN if nobody can be judged.

    Examples
    --------
    >>> round(calibration_error([0.1, 0.9, 0.9], [0, 1, 0], [30, 80, 10]), 4)
    0.0333
    """
    _, total, mean_score, observed = _binned(scores, truth, weight, bins)
    return _mean(np.abs(mean_score - observed), total)


@dataclass(frozen=True)
class CrossValidation:
    """What `cross_validate` found.

    Parameters
    ----------
    pooled : Evaluation
        Everyone, each predicted by a fit that has not seen them.
    folds : Table
        A row per fold: individuals it was trained on, and the figures of its `Evaluation`.
    """

    pooled: Evaluation
    folds: Table

    def __str__(self) -> str:
        return f"{len(self.folds):,}-fold cross-validation\n{self.pooled}"


@kinds_checked
def cross_validate(
    n: ArrayLike,
    s: ArrayLike,
    truth: ArrayLike,
    fit: Callable[[Any], Predictor],
    *,
    loss: Loss,
    rng: int | np.random.Generator,
    weight: ArrayLike | None = None,
    covariates: Mapping[str, Any] | None = None,
    folds: int = 10,
    thresholds: tuple[float, float] | None = None,
) -> CrossValidation:
    """Judge a way of fitting by its predictions for individuals it has not seen.

    Individuals are dealt at random into folds; those of each fold are predicted, as new individuals, by a
    fit to all others. The fit never sees a truth. Cells are split by their weights, so the cost is that of
    the folds and the cells, whatever the number of individuals. Equal training sets are fitted once:
    leave-one-out (`folds` = number of individuals) needs one fit per distinct (n, s).

    Below 10⁹ individuals every partition with fold sizes that differ by at most 1 is equally likely
    (multivariate hypergeometric splits of the cells). From 10⁹ on, NumPy's limit, each individual joins a
    fold independently (multinomial splits) and the sizes of N/k differ by about √(N/k).

    Parameters
    ----------
    n, s : array_like of whole numbers
        Replicates and positives of each individual or cell.
    truth : array_like
        0 or 1, or null where not known: such individuals train but are not judged.
    fit : callable
        From a `CountTable` to a fit, `fit_map` for example; equal tables must give equal fits.
    loss : Loss
        The costs, as for `evaluate`.
    rng : int or numpy.random.Generator
        Seed of the partition. The order of the entries does not matter.
    weight : array_like of whole numbers, optional
        How many individuals each entry stands for.
    covariates : mapping of name to array_like, optional
        One value per entry; `fit` then takes a `CovariateTable`, as `fit_covariates` does.
    folds : int
        From 2 to the number of individuals.
    thresholds : pair of float, optional
        As for `evaluate`.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def fit_share(counts):
    ...     share = counts.positives / counts.replicates
    ...     return SimpleNamespace(predict=lambda n, s: (s + share) / (n + 1))
    >>> found = cross_validate([3, 3], [0, 3], [0, 1], fit_share, weight=[60, 40], loss=Loss(), rng=1)
    >>> found.pooled.individuals, found.pooled.total_risk
    (100, 0.0)
    >>> found.folds["individuals"]
    (10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
    """
    cells, columns = _cells(n, s, truth, weight, covariates)
    _check_folds(folds, cells.individuals)
    fit_once = cache(fit)
    trained, judged = [], []
    for held_out in _split(cells.weight, int(folds), generator(rng)):
        test = held_out > 0
        training = cells.weighted(cells.weight - held_out).forget_known()
        asked = {name: {key: column[test] for key, column in own.items()} for name, own in columns.items()}
        scores = checked_scores(fit_once(training).predict(cells.n[test], cells.s[test], **asked))
        statuses = np.where(cells.known[test] == UNKNOWN, np.nan, cells.known[test])
        trained.append(training.individuals)
        judged.append((scores, statuses, held_out[test]))
    return _pooled(judged, trained, loss, thresholds)


@kinds_checked
def cross_validate_sources(
    readings: Readings,
    truth: ArrayLike,
    fit: Callable[[Readings], Any],
    *,
    loss: Loss,
    rng: int | np.random.Generator,
    folds: int = 10,
    thresholds: tuple[float, float] | None = None,
) -> CrossValidation:
    """`cross_validate` where who said it matters: records of readings are dealt into folds.

    Parameters
    ----------
    readings : Readings
        One record per individual; known statuses train and are not judged by.
    truth : array_like
        0 or 1 of each record, or null where not known: such individuals train but are not judged.
    fit : callable
        From `Readings` to a fit, such as `functools.partial(fit_sources, rng=1)`.
    loss, rng, folds, thresholds
        As in `cross_validate`.

    Examples
    --------
    >>> from functools import partial
    >>> from binreps.fits.sources import fit_sources
    >>> readings = Readings.wide([[1, 1, 1], [0, 0, 0]] * 20)
    >>> fit = partial(fit_sources, rng=1, sweeps=40)
    >>> cross_validate_sources(readings, [1, 0] * 20, fit, loss=Loss(), rng=1, folds=2).pooled.total_risk
    0.0
    """
    check_kind("readings", readings, Readings)
    statuses = one_of("truth", truth, (0, 1))
    if statuses.shape != (len(readings),) or np.any(readings.weight != 1):
        raise DataError("readings must have one record per individual, and truth one entry for each")
    _check_folds(folds, len(readings))
    dealt = generator(rng).permutation(len(readings)) % int(folds)
    judged, trained = [], []
    for fold in range(int(folds)):
        test, rest = np.flatnonzero(dealt == fold), np.flatnonzero(dealt != fold)
        scores = checked_scores(fit(readings.take(rest)).predict(readings.take(test)))
        trained.append(rest.size)
        judged.append((scores, statuses[test], np.ones(test.size, np.int64)))
    return _pooled(judged, trained, loss, thresholds)


def _pooled(
    judged: list[tuple[Any, Any, Any]],
    trained: list[int],
    loss: Loss,
    thresholds: tuple[float, float] | None,
) -> CrossValidation:
    """Everyone together, and fold by fold."""
    each = [evaluate(y, t, loss, w, thresholds=thresholds) for y, t, w in judged]
    y, t, w = (np.concatenate(column) for column in zip(*judged, strict=True))
    figures = {name: [getattr(one, name) for one in each] for name in _FIGURES}
    return CrossValidation(
        pooled=evaluate(y, t, loss, w, thresholds=thresholds),
        folds=Table({"fold": range(1, len(each) + 1), "trained": trained, **figures}),
    )


def _split(weight: NDArray[np.int64], folds: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """How many individuals of each cell are held out, fold by fold."""
    remaining = weight
    balanced = weight.sum() < _HYPERGEOMETRIC_LIMIT
    for left in range(folds, 0, -1):
        if balanced:
            held_out = rng.multivariate_hypergeometric(remaining, remaining.sum() // left)
        else:
            held_out = rng.binomial(remaining, 1 / left)  # a multinomial, one margin at a time
        remaining = remaining - held_out
        yield held_out


def _cells(
    n: ArrayLike,
    s: ArrayLike,
    truth: ArrayLike,
    weight: ArrayLike | None,
    covariates: Mapping[str, Any] | None = None,
) -> tuple[CountTable | CovariateTable, dict[str, dict[str, NDArray[Any]]]]:
    """The cells (n, s, truth), merged and sorted, and their covariates, if any, as `predict` takes them.

    `known` holds the truth, which no training table gets.
    """
    statuses = one_of("truth", truth, (0, 1))
    shape = whole_numbers("n", n).shape
    if statuses.shape != shape:
        raise DataError(f"truth must be as long as n, got shapes {statuses.shape} and {shape}")
    if covariates is None:
        return CountTable(n, s, weight, known=statuses), {}
    table = CovariateTable(n, s, covariates, weight, known=statuses)
    return table, {"covariates": {name: np.array(table.column(name), object) for name in table.names}}


def _check_folds(folds: int, individuals: int) -> None:
    """Refuse folds that would leave nobody to train on, or nobody to predict."""
    if individuals < 2:
        raise DataError(f"cross-validation needs at least 2 individuals, got {individuals}")
    check_whole("folds", folds, 2, _MOST)
    if folds > individuals:
        raise OptionError(f"folds must be at most the number of individuals, {individuals}, got {folds}")


def judged(
    scores: ArrayLike, truth: ArrayLike, weight: ArrayLike | None
) -> tuple[Float, Float, NDArray[np.int64], int]:
    """Scores, truths and weights of those who have both, and how many have not."""
    y, t = checked_scores(scores), one_of("truth", truth, (0, 1))
    w = np.ones(y.shape, np.int64) if weight is None else whole_numbers("weight", weight)
    if not (y.ndim == 1 and y.shape == t.shape == w.shape):
        shapes = f"{y.shape}, {t.shape} and {w.shape}"
        raise DataError(f"scores, truth and weight must be lists of equal length, got shapes {shapes}")
    complete = ~np.isnan(y + t)
    left_out = int(w[~complete].sum())
    kept = complete & (w > 0)
    return y[kept], t[kept], w[kept], left_out


def _binned(
    scores: ArrayLike, truth: ArrayLike, weight: ArrayLike | None, bins: int
) -> tuple[NDArray[np.intp], Float, Float, Float]:
    """Of each bin that is not empty: its index, individuals, mean score and share of positives."""
    check_whole("bins", bins, 1, _MOST)
    y, t, w, _ = judged(scores, truth, weight)
    edges = np.arange(1, bins) / bins
    index = np.searchsorted(edges, y, side="right")
    sums: list[Float] = [np.bincount(index, v, minlength=bins).astype(float) for v in (w, w * y, w * t)]
    filled = np.flatnonzero(sums[0])
    total, score_sum, positives = (column[filled] for column in sums)
    return filled, total, score_sum / total, positives / total


def _wilson(share: Float, total: Float, level: float) -> tuple[Float, Float]:
    """Wilson's interval of a share observed on `total` individuals."""
    z2 = ndtri((1 + level) / 2) ** 2
    centre = share + z2 / (2 * total)
    half = np.sqrt(z2 * (share * (1 - share) + z2 / (4 * total)) / total)
    scale = 1 + z2 / total
    return np.maximum((centre - half) / scale, 0), np.minimum((centre + half) / scale, 1)


def _mean(values: Float, weight: NDArray[Any]) -> float:
    """Weighted mean, NaN of nobody."""
    return _share(float(np.dot(values, weight)), float(weight.sum()))


def _share(part: float, whole: float) -> float:
    """part / whole, NaN if the whole is nothing."""
    return part / whole if whole else math.nan
