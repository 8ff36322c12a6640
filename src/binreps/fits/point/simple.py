"""The simple fits: average, median, known statuses, and the Rogan–Gladen correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import FitError, OptionError
from binreps.fits.base import PointFit, plug_in_rates, refuse_empty
from binreps.model import Float, Prior, Records, checked_pairs
from binreps.options import kinds_checked


def average_score(n: ArrayLike, s: ArrayLike) -> Any:
    """Y_A = s/n; NaN at n = 0.

    Examples
    --------
    >>> average_score([4, 5, 0], [1, 3, 0])
    array([0.25, 0.6 ,  nan])
    """
    n_values, s_values = checked_pairs(n, s)
    with np.errstate(invalid="ignore"):
        return (s_values / n_values)[()]


def median_score(n: ArrayLike, s: ArrayLike) -> Any:
    """Y_M = 1 if s > n/2, ½ if s = n/2, otherwise 0; NaN at n = 0.

    Examples
    --------
    >>> median_score([4, 4, 5, 0], [1, 2, 3, 0])
    array([0. , 0.5, 1. , nan])
    """
    n_values, s_values = checked_pairs(n, s)
    majority = (1 + np.sign(2 * s_values - n_values)) / 2  # 2s against n: exact integers
    return np.where(n_values == 0, np.nan, majority)[()]


class AverageFit(PointFit):
    """Scores are s/n; rates are plugged in from them."""

    kind: ClassVar[str] = "average"
    method: ClassVar[str] = "average"
    has_model: ClassVar[bool] = False
    prior: ClassVar[Prior | None] = None  # type: ignore[misc]

    def score(self, *asked: Any) -> Any:
        """Y_A = s/n."""
        records = Records.of(*asked)
        return average_score(records.n, records.s)


class MedianFit(PointFit):
    """Scores are majority votes; rates are plugged in from them."""

    kind: ClassVar[str] = "median"
    method: ClassVar[str] = "median"
    has_model: ClassVar[bool] = False
    prior: ClassVar[Prior | None] = None  # type: ignore[misc]

    def score(self, *asked: Any) -> Any:
        """Y_M, the majority vote."""
        records = Records.of(*asked)
        return median_score(records.n, records.s)


class KnownFit(PointFit):
    """Rates counted from individuals of known status."""

    kind: ClassVar[str] = "known"
    method: ClassVar[str] = "known statuses"
    has_model: ClassVar[bool] = False
    prior: ClassVar[Prior | None] = None  # type: ignore[misc]


@kinds_checked
def fit_average(counts: CountTable) -> AverageFit:
    """The average of the replicates as score, and the rates that follow from it.

    θ̂ = mean of Y_A, p̂ = Σ s(1−Y_A)/Σ n(1−Y_A), q̂ = Σ (n−s)Y_A/Σ nY_A. Known statuses play no part.

    Examples
    --------
    >>> fit_average(CountTable([2, 2, 4], [0, 1, 4]))
    average: 3 individuals, 8 replicates, 3 cells
    rate            estimate  sd  lower  upper
    prevalence         0.500   –      –      –
    false-positive     0.167   –      –      –
    false-negative     0.100   –      –      –
    sensitivity        0.900   –      –      –
    specificity        0.833   –      –      –
    """
    refuse_empty(counts, AverageFit.method)
    rates, notes = plug_in_rates(counts, average_score(counts.n, counts.s), AverageFit.method)
    return AverageFit(counts, rates, notes=notes)


@kinds_checked
def fit_median(counts: CountTable) -> MedianFit:
    """The majority vote of the replicates as score (½ on a tie), and the rates that follow from it.

    Examples
    --------
    >>> fit_median(CountTable([3, 3, 5], [0, 1, 4])).rates.false_negative
    0.2
    """
    refuse_empty(counts, MedianFit.method)
    rates, notes = plug_in_rates(counts, median_score(counts.n, counts.s), MedianFit.method)
    return MedianFit(counts, rates, notes=notes)


@kinds_checked
def fit_known(counts: CountTable) -> KnownFit:
    """The rates when every status is known: plain proportions, the same formulas with t in place of Y.

    Examples
    --------
    >>> fit_known(CountTable([4, 4], [1, 3], known=[0, 1])).rates
    Rates(prevalence=0.5, false_positive=0.25, false_negative=0.25)
    """
    refuse_empty(counts, KnownFit.method)
    if not counts.fully_known:
        unknown = int(counts.weight[counts.known == UNKNOWN].sum())
        raise FitError(
            f"fit_known needs every status, got {unknown:,} individuals of unknown status; "
            "fit_map and fit_bayes take partly known statuses"
        )
    rates, notes = plug_in_rates(counts, counts.known.astype(float), KnownFit.method)
    return KnownFit(counts, rates, notes=notes)


@dataclass(frozen=True)
class CorrectedPrevalence:
    """The Rogan–Gladen estimate: `estimate` within [0, 1], its `sd`, and the value before clipping."""

    estimate: float
    sd: float
    unclipped: float


@kinds_checked
def correct_prevalence(
    counts: CountTable, *, false_positive: float, false_negative: float
) -> CorrectedPrevalence:
    """The prevalence when the error rates are known: (mean of s/n − p) / (1 − p − q).

    The raw average has bias p − θ(p+q); Rogan and Gladen (1978) invert it. The result can fall outside
    [0, 1], where it is clipped. The standard deviation is the empirical one of the mean of s/n, rescaled;
    it is NaN for a single individual.

    Examples
    --------
    >>> counts = CountTable([2, 2], [0, 1], weight=[60, 40])
    >>> round(correct_prevalence(counts, false_positive=0.05, false_negative=0.1).estimate, 4)
    0.1765
    """
    refuse_empty(counts, "corrected prevalence")
    for name, rate in (("false_positive", false_positive), ("false_negative", false_negative)):
        if not 0 <= rate <= 1:
            raise OptionError(f"{name} must be between 0 and 1, got {rate}")
    gain = 1 - false_positive - false_negative
    if gain <= 0:
        total = f"{false_positive} + {false_negative}"
        raise OptionError(f"false_positive + false_negative must be below 1, got {total}")
    measured = counts.n > 0
    if not measured.any():
        raise FitError("the corrected prevalence needs at least one replicate, got none")
    w = counts.weight[measured].astype(float)
    y: Float = average_score(counts.n[measured], counts.s[measured])
    size = float(w.sum())
    mean = float(w @ y) / size
    variance = float(w @ (y - mean) ** 2) / (size - 1) if size > 1 else float("nan")
    raw = float((mean - false_positive) / gain)
    return CorrectedPrevalence(min(max(raw, 0.0), 1.0), float(np.sqrt(variance / size)) / gain, raw)
