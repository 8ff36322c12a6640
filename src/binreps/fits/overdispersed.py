"""The over-dispersed fit: replicates of one individual may be correlated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from binreps.counts import CountTable
from binreps.errors import OptionError
from binreps.fits.base import (
    PrintsItsSummary,
    check_counts,
    check_integrable,
    fit_title,
    integrable,
    rates_rows,
)
from binreps.fits.exact.correlated import CorrelatedPosterior, log_correlated
from binreps.fits.exact.grid import Grid, Marginal
from binreps.model import NAMES, Float, Prior, Rates, checked_pairs
from binreps.options import check_level, check_whole, generator
from binreps.table import Table

CORRELATION = "intraclass_correlation"
"""The name of ρ, the correlation of two replicates of one individual whose status is given."""

_SLOW = 5.0  # grids of similar size may both be off by more than they differ


@dataclass(frozen=True, repr=False)
class OverdispersedFit(PrintsItsSummary):
    """The posterior of prevalence, error rates and intra-class correlation; made by `fit_overdispersed`.

    Two fits of equal counts and priors are equal; a fit is pickled as these, and fitted again.
    """

    method: ClassVar[str] = "Bayes, over-dispersed"
    counts: CountTable
    prior: Prior
    intraclass_prior: tuple[float, float]
    posterior: CorrelatedPosterior = field(compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _refit, (self.counts, self.prior, self.intraclass_prior)

    # Rates -----------------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:
        """Posterior means."""
        return Rates(*self.posterior.slices.mean[:3])

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations."""
        return Rates(*self.posterior.slices.sd[:3])

    @property
    def intraclass_correlation(self) -> float:
        """Posterior mean of ρ, the correlation of two replicates of one individual, its status given."""
        return float(self.posterior.slices.mean[3])

    @property
    def intraclass_sd(self) -> float:
        """Posterior standard deviation of ρ."""
        return float(self.posterior.slices.sd[3])

    @property
    def correlation(self) -> Float:
        """Posterior correlation matrix of prevalence, error rates and intra-class correlation."""
        slices = self.posterior.slices
        return np.asarray(slices.covariance / np.outer(slices.sd, slices.sd))

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior, without binomial coefficients: to compare with that of `fit_bayes`."""
        return self.posterior.slices.log_evidence

    @property
    def error(self) -> float:
        """Numerical error: in units of the sd for means and sds, relative for the evidence."""
        return max(self.posterior.error, 1e-9)

    def marginal(self, name: str) -> Marginal:
        """The posterior of a rate or of "intraclass_correlation", as `fit_bayes` gives it."""
        names = (*NAMES, CORRELATION)
        if name not in names:
            raise OptionError(f"name must be one of {', '.join(names)}, got {name!r}")
        return self.posterior.marginal(names.index(name))

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends."""
        check_level(level)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        ends = [self.marginal(name).quantile(tails) for name in NAMES]
        return Rates(*(low for low, _ in ends)), Rates(*(high for _, high in ends))

    def intraclass_interval(self, level: float = 0.9) -> tuple[float, float]:
        """The equal-tailed credible interval of ρ."""
        check_level(level)
        low, high = self.marginal(CORRELATION).quantile(np.array([(1 - level) / 2, (1 + level) / 2]))
        return float(low), float(high)

    # Individuals -----------------------------------------------------------------------------------

    def score(self, n: ArrayLike, s: ArrayLike) -> Any:
        """E[P(T = 1 | s; θ, p, q, ρ) | data]: the probability that a fitted individual is positive."""
        return self._each(n, s, lambda cell: self._score(cell)[0])

    def score_error(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The numerical error of `.score`: larger for cells far from the data."""
        return self._each(n, s, lambda cell: self._off(self._score(cell)))

    def predict(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The probability that a *new* individual with s positives among n replicates is positive.

        As in `fit_bayes` the new result is evidence about the rates too: P(T = 1, s) / P(s).
        """
        return self._each(n, s, lambda cell: self._predict(cell)[0])

    def predict_error(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The numerical error of `.predict`."""
        return self._each(n, s, lambda cell: self._off(self._predict(cell)))

    def score_interval(self, n: ArrayLike, s: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
        """Equal-tailed interval of P(T = 1 | s; θ, p, q, ρ): what the uncertain rates leave open.

        Read off the nodes of the rules: good to about two digits.
        """
        return self._interval(n, s, level, new=False)

    def predict_interval(self, n: ArrayLike, s: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
        """The same for new individuals, whose own result reweights the posterior."""
        return self._interval(n, s, level, new=True)

    # Draws -----------------------------------------------------------------------------------------

    def draws(self, size: int, rng: np.random.Generator | int) -> Rates:
        """Independent draws of the three rates, as arrays; `draws_all` gives ρ with them."""
        return self.draws_all(size, rng)[0]

    def draws_all(self, size: int, rng: np.random.Generator | int) -> tuple[Rates, Float]:
        """Independent joint draws of the three rates and of the intra-class correlation."""
        check_whole("size", size, 0)
        drawn = self.posterior.draws(size, generator(rng))
        return Rates(*drawn[:3]), drawn[3]

    # Words -----------------------------------------------------------------------------------------

    def summary(self, level: float = 0.9) -> Table:
        """Means, sds and equal-tailed intervals of the rates; the intra-class correlation in the note."""
        lower, upper = self.interval(level)
        columns = rates_rows(estimate=self.rates, sd=self.sd, lower=lower, upper=upper)
        low, high = self.intraclass_interval(level)
        spread = (
            f"{self.intraclass_correlation:.3f}, sd {self.intraclass_sd:.3f}, from {low:.3f} to {high:.3f}"
        )
        note = f"intra-class correlation {spread}\n{level:.0%} credible intervals; "
        note += f"numerical error below {self.error:.0e} of a standard deviation"
        return Table(columns, title=fit_title(self.method, self.counts), note=note)

    # Inside ----------------------------------------------------------------------------------------

    def _each(self, n: ArrayLike, s: ArrayLike, function: Callable[[CountTable], float]) -> Any:
        """A function of one individual, called once per distinct pair (n, s)."""
        n_values, s_values = checked_pairs(n, s)
        pairs, where = np.unique(np.stack([n_values.ravel(), s_values.ravel()]), axis=1, return_inverse=True)
        values = np.array([function(CountTable([a], [b])) for a, b in pairs.T], dtype=float)
        return values[where.ravel()].reshape(n_values.shape)[()]

    def _grids(self, check: bool) -> list[tuple[float, float, Grid]]:
        """Mass, ρ and grid of each slice that matters; the coarser grids to check."""
        slices = self.posterior.slices
        grids = [box.check for box in slices.boxes] if check else slices.grids
        return [row for row in zip(slices.mass, slices.rho, grids, strict=True) if row[0] > 1e-13]

    def _score(self, cell: CountTable) -> tuple[float, float]:
        """The score of one individual, on the grids and on the coarser ones."""
        return _pair(lambda check: sum(m * g.expect(_chance(cell, g, r)) for m, r, g in self._grids(check)))

    def _predict(self, cell: CountTable) -> tuple[float, float]:
        """The prediction for one individual, on the grids and on the coarser ones."""

        def ratio(check: bool) -> float:
            shares = [(m, g, *_log_shares(cell, g, r)) for m, r, g in self._grids(check)]
            top = max(max(a.max(), b.max()) for _, _, a, b in shares)
            positive = sum(m * g.expect(np.exp(a - top)) for m, g, a, _ in shares)
            negative = sum(m * g.expect(np.exp(b - top)) for m, g, _, b in shares)
            return float(positive / (positive + negative))

        return _pair(ratio)

    def _off(self, pair: tuple[float, float]) -> float:
        """The error of a value that was computed on two sets of grids."""
        return _SLOW * abs(pair[0] - pair[1]) + self.error * 1e-3

    def _interval(self, n: ArrayLike, s: ArrayLike, level: float, *, new: bool) -> tuple[Any, Any]:
        check_level(level)
        tail = (1 - level) / 2
        return (
            self._each(n, s, lambda cell: self._quantile(cell, tail, new)),
            self._each(n, s, lambda cell: self._quantile(cell, 1 - tail, new)),
        )

    def _quantile(self, cell: CountTable, probability: float, new: bool) -> float:
        """The quantile of the score over the nodes of all grids."""
        values, log_masses = [], []
        for mass, rho, grid in self._grids(check=False):
            log_a, log_b = _log_shares(cell, grid, rho)
            weight = np.logaddexp(log_a, log_b) if new else 0.0
            values.append((log_a - log_b).ravel())
            with np.errstate(divide="ignore"):
                log_masses.append((np.log(mass * grid.mass) + weight).ravel())
        logits, log_mass = np.concatenate(values), np.concatenate(log_masses)
        order = np.argsort(logits)
        masses = np.exp(log_mass - log_mass.max())[order]
        reached = np.cumsum(masses) - masses / 2
        middle = np.interp(probability * masses.sum(), reached, logits[order])
        return float(_sigmoid(middle))


def fit_overdispersed(
    counts: CountTable, prior: Prior | None = None, *, intraclass: tuple[float, float] = (1.0, 9.0)
) -> OverdispersedFit:
    """The Bayesian fit that lets replicates of one individual be correlated, whatever its status.

    Given the status, s is beta-binomial with mean n·r, r = p (negative) or 1 − q (positive), and variance
    n·r(1−r)·[1 + (n−1)ρ]: some individuals are harder than others, and ρ says by how much. At ρ = 0 this is
    the model of `fit_bayes`. The posterior of the four parameters is integrated deterministically. The
    difference of the two fits' `log_evidence` compares the models: above 3 the data speak clearly for the
    one with the larger.

    Parameters
    ----------
    counts : CountTable
        Any table; someone needs n ≥ 4 for the data to tell ρ from the error rates. Known statuses inform
        the fit.
    prior : Prior, optional
        Beta priors of prevalence and error rates, as in `fit_bayes`. Default `Prior()`.
    intraclass : pair of float
        Shapes of the Beta prior of ρ. The default (1, 9) has its mode at 0, mean 0.1 and 95 % of its mass
        below 0.28.

    Returns
    -------
    OverdispersedFit

    Examples
    --------
    >>> counts = CountTable([6, 6, 6, 6, 6, 6], [0, 1, 2, 4, 5, 6], weight=[60, 12, 9, 5, 7, 27])
    >>> fit = fit_overdispersed(counts)
    >>> print(fit)  # doctest: +ELLIPSIS
    Bayes, over-dispersed: 120 individuals, 720 replicates, 6 cells
    rate            estimate     sd  lower  upper
    prevalence         0.319  0.057  0.234  0.405
    false-positive     0.087  0.040  0.050  0.156
    false-negative     0.107  0.057  0.052  0.202
    sensitivity        0.893  0.057  0.798  0.948
    specificity        0.913  0.040  0.844  0.950
    intra-class correlation 0.206, sd 0.134, from 0.055 to 0.494
    90% credible intervals; numerical error below ... of a standard deviation
    >>> from binreps.fits.bayes import fit_bayes
    >>> round(fit.log_evidence - fit_bayes(counts).log_evidence, 1)
    4.6
    """
    a, b = Prior(prevalence=_shapes(intraclass)).prevalence
    check_counts(counts)
    chosen = integrable(prior)
    return OverdispersedFit(counts, chosen, (a, b), CorrelatedPosterior(counts, chosen, (a, b)))


def _refit(counts: CountTable, prior: Prior, intraclass: tuple[float, float]) -> OverdispersedFit:
    """The same fit again, for pickle, which knows no keywords."""
    return fit_overdispersed(counts, prior, intraclass=intraclass)


def _shapes(pair: Any) -> tuple[float, float]:
    """Two positive finite numbers."""
    try:
        a, b = (float(shape) for shape in pair)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"intraclass must be a pair of shapes (a, b), got {pair!r}") from None
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise OptionError(f"intraclass must have finite shapes > 0, got {(a, b)}")
    check_integrable("the intra-class correlation", (a, b))
    return a, b


def _pair(function: Callable[[bool], float]) -> tuple[float, float]:
    """A probability on the grids and on the coarser ones; rounding takes neither past 1."""
    return min(float(function(False)), 1.0), min(float(function(True)), 1.0)


def _log_shares(cell: CountTable, grid: Grid, rho: float) -> tuple[Float, Float]:
    """log of θ P(s | T = 1) and of (1−θ) P(s | T = 0) at the nodes, for one individual."""
    theta, p, q = grid.nodes
    negative, positive = log_correlated(cell, p, q, rho)
    return np.log(theta) + positive[0], np.log1p(-theta) + negative[0]


def _chance(cell: CountTable, grid: Grid, rho: float) -> Float:
    """P(T = 1 | s) at the nodes."""
    log_a, log_b = _log_shares(cell, grid, rho)
    return _sigmoid(log_a - log_b)


def _sigmoid(x: Any) -> Float:
    """1 / (1 + e^−x), by NumPy's vectorised exponential."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))
