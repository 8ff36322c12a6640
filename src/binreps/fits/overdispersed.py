"""The over-dispersed fit: replicates of one individual may be correlated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from binreps.counts import CountTable
from binreps.errors import OptionError
from binreps.fits.base import PosteriorFit, check_counts, check_integrable, integrable
from binreps.fits.exact.integrated import Integrated
from binreps.fits.exact.posterior import integrate
from binreps.fits.posterior import Marginal
from binreps.model import CORRELATED, CORRELATION, Model, Prior
from binreps.notes import say_long
from binreps.options import check_level, kinds_checked

MANY = 200
"""Cells beyond which a correlated fit takes long: it says so, and is not tried unasked."""

_TOLERANCE = 1e-5  # sds: four dimensions are dear, and nobody reads more digits


@dataclass(frozen=True, repr=False)
class OverdispersedFit(PosteriorFit):
    """The posterior of prevalence, error rates and intra-class correlation; made by `fit_overdispersed`.

    Two fits of equal counts and priors are equal; a fit is pickled as these, and fitted again.
    """

    kind: ClassVar[str] = "correlated"
    method: ClassVar[str] = "Bayes, over-dispersed"
    model: ClassVar[Model] = CORRELATED
    dear: ClassVar[bool] = True
    posterior: Integrated = field(compare=False)
    intraclass_prior: tuple[float, float]

    def __reduce__(self) -> tuple[Any, ...]:
        return _refit, (self.counts, self.prior, self.intraclass_prior)

    @property
    def intraclass_correlation(self) -> float:
        """Posterior mean of ρ, the correlation of two replicates of one individual, its status given."""
        return float(self.posterior.mean[3])

    @property
    def intraclass_sd(self) -> float:
        """Posterior standard deviation of ρ."""
        return float(self.posterior.sd[3])

    def marginal(self, name: str) -> Marginal:
        """The posterior of one parameter, after a word where there are so many cells that it takes long."""
        _say_if_many(self.counts)
        return super().marginal(name)

    def intraclass_interval(self, level: float = 0.9) -> tuple[float, float]:
        """The equal-tailed credible interval of ρ."""
        check_level(level)
        low, high = self.marginal(CORRELATION).quantile(np.array([(1 - level) / 2, (1 + level) / 2]))
        return float(low), float(high)

    def _more_rows(self, level: float) -> dict[str, tuple[float, float, float, float]]:
        """The correlation."""
        interval = self.intraclass_interval(level)
        return {"intraclass-correlation": (self.intraclass_correlation, self.intraclass_sd, *interval)}


@kinds_checked
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
    intraclass-correlation     0.206  0.134  0.055  0.494
    90% credible intervals; numerical error below ... of a standard deviation
    >>> from binreps.fits.bayes import fit_bayes
    >>> round(fit.log_evidence - fit_bayes(counts).log_evidence, 1)
    4.6
    """
    a, b = Prior(prevalence=_shapes(intraclass)).prevalence
    check_counts(counts)
    chosen = integrable(prior)
    _say_if_many(counts)
    posterior = integrate(counts, chosen, model=CORRELATED, shapes=(a, b), tol=_TOLERANCE)
    return OverdispersedFit(counts, chosen, posterior, (a, b))


def _say_if_many(counts: CountTable) -> None:
    """A word before work that takes longer with every cell."""
    if len(counts) > MANY:
        say_long(
            f"a correlated fit takes longer with every (n, s), and there are {len(counts):,}: "
            "from seconds to minutes; fit_bayes takes milliseconds"
        )


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
