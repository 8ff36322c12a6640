"""The Bayesian fit: the posterior of the three rates, integrated, and all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from binreps.counts import CountTable
from binreps.fits.base import PosteriorFit, check_counts, integrable
from binreps.fits.exact.integrated import Integrated
from binreps.fits.exact.posterior import integrate
from binreps.model import Prior, Records
from binreps.options import kinds_checked


@dataclass(frozen=True, repr=False)
class BayesFit(PosteriorFit):
    """The exact posterior of prevalence and error rates; made by `fit_bayes`.

    Two fits of equal counts and priors are equal; a fit is pickled as its counts and prior, and fitted again.
    """

    kind: ClassVar[str] = "bayes"
    method: ClassVar[str] = "Bayes, exact"
    posterior: Integrated = field(compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return fit_bayes, (self.counts, self.prior)

    def predict_paper(self, *asked: Any) -> Any:
        """The paper's prediction E[Y_L(n, s) | data], which leaves the new result out of the posterior.

        For comparison with the paper and the R package only: it is not calibrated for small data.
        """
        return self.score(*asked)

    @kinds_checked
    def next_replicate(self, *asked: Any, new: bool = False) -> Any:
        """The probability that one more replicate of such an individual is positive."""
        records = Records.of(*asked)
        keys, where = records.distinct()
        values = np.array([self.posterior.next_positive(key, new) for key in keys])
        return values[where].reshape(records.shape)[()]


@kinds_checked
def fit_bayes(counts: CountTable, prior: Prior | None = None) -> BayesFit:
    """The Bayesian fit, integrated deterministically: the same answer every time, in milliseconds for any N.

    Parameters
    ----------
    counts : CountTable
        Any table, an empty one included (the answer is then the prior). Known statuses inform the fit.
    prior : Prior, optional
        Beta priors; those of the error rates are truncated to (0, ½). Default `Prior()`. Shapes must be from
        0.05 to 10⁷, which floats can integrate.

    Returns
    -------
    BayesFit

    Examples
    --------
    >>> fit = fit_bayes(CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20]))
    >>> print(fit)
    Bayes, exact: 100 individuals, 400 replicates, 4 cells
    rate            estimate     sd  lower  upper
    prevalence         0.302  0.046  0.229  0.380
    false-positive     0.079  0.017  0.054  0.108
    false-negative     0.099  0.028  0.058  0.150
    sensitivity        0.901  0.028  0.850  0.942
    specificity        0.921  0.017  0.892  0.946
    90% credible intervals; numerical error below 2e-09 of a standard deviation
    >>> float(round(fit.predict(4, 2), 3))
    0.4
    """
    check_counts(counts)
    prior = integrable(prior)
    return BayesFit(counts, prior, integrate(counts, prior))
