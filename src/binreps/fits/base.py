"""What every fit offers, and what the point fits share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from binreps.counts import CountTable
from binreps.errors import BinrepsWarning, DataError, FitError, OptionError
from binreps.model import NAMES, Float, Prior, Rates, likelihood_score
from binreps.table import Table

_LEAST_SHAPE, _MOST_SHAPE = 0.05, 10**7


class Fit(Protocol):
    """What every fit offers."""

    @property
    def method(self) -> str:
        """The method's name, in words."""

    @property
    def counts(self) -> CountTable:
        """The data it was made from."""

    @property
    def rates(self) -> Rates:
        """The estimates of prevalence and of the two error rates."""

    def score(self, n: ArrayLike, s: ArrayLike) -> Any:
        """Scores of fitted individuals; never the known status itself."""

    def predict(self, n: ArrayLike, s: ArrayLike) -> Any:
        """Probabilities that new individuals are positive."""

    def summary(self) -> Table:
        """The estimates as a table."""


class PrintsItsSummary(ABC):
    """What a fit shows of itself, in a terminal and in a notebook."""

    @abstractmethod
    def summary(self) -> Table:
        """The estimates as a table."""

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True, repr=False)
class PointFit(PrintsItsSummary):
    """A fit that is three numbers; scores and predictions are the likelihood score at them."""

    method: ClassVar[str]
    counts: CountTable
    rates: Rates

    def score(self, n: ArrayLike, s: ArrayLike) -> Any:
        """Score of fitted individuals with s positives among n replicates."""
        return likelihood_score(n, s, self.rates)

    def predict(self, n: ArrayLike, s: ArrayLike) -> Any:
        """Probability that a new individual with s positives among n replicates is positive."""
        return likelihood_score(n, s, self.rates)

    def summary(self) -> Table:
        """The estimates: prevalence, error rates, sensitivity and specificity."""
        return Table(rates_rows(estimate=self.rates), title=fit_title(self.method, self.counts))


def fit_title(method: str, counts: CountTable) -> str:
    """The line above a fit's summary."""
    individuals, replicates = counts.individuals, counts.replicates
    return f"{method}: {individuals:,} individuals, {replicates:,} replicates, {len(counts):,} cells"


def rates_rows(**columns: Rates) -> dict[str, list[Any]]:
    """The five rows of a summary: each column is a `Rates` of one statistic."""
    rows: dict[str, list[Any]] = {"rate": [name.replace("_", "-") for name in NAMES]}
    rows["rate"] += ["sensitivity", "specificity"]
    for name, rates in columns.items():
        rows[name] = [*rates, *_complements(name, columns)]
    return rows


def _complements(name: str, columns: dict[str, Rates]) -> tuple[float, float]:
    """Sensitivity and specificity: 1 − the error rate, so that bounds swap and a spread stays."""
    swapped = {"lower": "upper", "upper": "lower"}.get(name, name)
    rates = columns[swapped]
    if name == "sd":
        return rates.false_negative, rates.false_positive
    return rates.sensitivity, rates.specificity


def rests_on_prior(counts: CountTable) -> str:
    """The sentence that a summary owes its reader where the data do not identify the rates."""
    if counts.identifiable:
        return ""
    return "The data alone cannot tell prevalence and error rates apart: the estimates rest on the prior."


def integrable(prior: Prior | None) -> Prior:
    """The prior, `Prior()` if none is given; one that floats cannot integrate is refused.

    Of Beta(a, ·) the share (10⁻³⁰⁸)^a lies below the smallest float, more than a rounding if a < 0.05; and a
    log density a log x is rounded by 10⁻¹⁶ a, more than the tolerance if a > 10⁷.
    """
    chosen = checked_prior(prior)
    for name, shapes in zip(NAMES, chosen, strict=True):
        check_integrable(name, shapes)
    return chosen


def checked_prior(prior: Prior | None) -> Prior:
    """The prior, `Prior()` if none is given; anything else is refused."""
    if prior is not None and not isinstance(prior, Prior):
        raise OptionError(f"prior must be a Prior, such as Prior(false_positive=(2, 20)), got {prior!r}")
    return prior or Prior()


def check_counts(counts: CountTable) -> None:
    """Refuse what is no count table, such as the table that one is made from."""
    if not isinstance(counts, CountTable):
        raise DataError(
            f"counts must be a CountTable, got {type(counts).__name__}; count_table makes one from a table "
            "of results, and CountTable(n, s) from counts"
        )


def check_integrable(name: str, shapes: tuple[float, float]) -> None:
    """Refuse the shapes of a Beta prior that floats cannot integrate."""
    if not all(_LEAST_SHAPE <= shape <= _MOST_SHAPE for shape in shapes):
        rule = f"shapes from {_LEAST_SHAPE} to {_MOST_SHAPE:,} to be integrated"
        raise OptionError(f"the prior of {name} must have {rule}, got {shapes}")


def refuse_empty(counts: CountTable, method: str) -> None:
    """The point fits need at least one individual."""
    check_counts(counts)
    if not len(counts):
        raise FitError(f"the {method} needs at least one individual, got an empty table; fit_bayes takes it")


def plug_in_rates(counts: CountTable, scores: Float, method: str) -> Rates:
    """θ̂ = mean of Y, p̂ = Σ s(1−Y)/Σ n(1−Y), q̂ = Σ (n−s)Y/Σ nY over individuals whose score is defined.

    A rate whose denominator is 0 is NaN, with a warning.
    """
    defined = ~np.isnan(scores)
    y, w = scores[defined], counts.weight[defined].astype(float)
    n, s = counts.n[defined], counts.s[defined]
    rates = Rates(
        prevalence=_ratio(w @ y, w.sum()),
        false_positive=_ratio(w @ (s * (1 - y)), w @ (n * (1 - y))),
        false_negative=_ratio(w @ ((n - s) * y), w @ (n * y)),
    )
    undefined = [name for name, rate in zip(NAMES, rates, strict=True) if np.isnan(rate)]
    if undefined:
        reason = f"the {method} gives no individual with replicates to that class"
        warnings.warn(f"{' and '.join(undefined)} undefined: {reason}", BinrepsWarning, stacklevel=3)
    return rates


def _ratio(above: Any, below: Any) -> float:
    """above / below, NaN where below is 0; rounding never takes it past 1."""
    return min(float(above / below), 1.0) if below > 0 else float("nan")
