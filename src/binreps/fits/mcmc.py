"""The same posterior by Hamiltonian Monte Carlo (NUTS): a second opinion, and a model to extend.

It needs the extra `mcmc`: PyMC writes the model, nutpie samples it, ArviZ judges the chains.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import FitError, OptionError
from binreps.fits.base import PrintsItsSummary, check_counts, checked_prior, fit_title, rates_rows
from binreps.model import NAMES, Float, Prior, Rates, checked_pairs, score_at
from binreps.options import check_level, check_whole, generator
from binreps.table import Table


@dataclass(frozen=True, repr=False)
class McmcFit(PrintsItsSummary):
    """Draws from the posterior of prevalence and error rates, and what follows; made by `fit_mcmc`.

    Every number is an average over the draws, with a Monte Carlo standard error. The evidence, the densities
    and the modes are not to be had from draws: `fit_bayes` has them.

    Parameters
    ----------
    counts : CountTable
    prior : Prior
    chains : Rates
        The draws after tuning: arrays of shape (chains, draws).
    diverging : ndarray of bool
        Which of them ended a divergent trajectory.
    """

    method: ClassVar[str] = "Bayes, NUTS"
    counts: CountTable
    prior: Prior
    chains: Rates = field(hash=False)
    diverging: NDArray[np.bool_] = field(compare=False)

    # The three rates -------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:
        """Posterior means."""
        return Rates(*(rate.mean() for rate in self.chains))

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations."""
        return Rates(*(rate.std() for rate in self.chains))

    def quantile(self, probability: ArrayLike) -> Rates:
        """The quantiles of the three rates; an array of probabilities gives arrays."""
        wanted = np.asarray(probability, dtype=float)
        if not np.all((wanted > 0) & (wanted < 1)):
            raise OptionError(f"probability must be between 0 and 1, got {wanted}")
        return Rates(*(np.quantile(rate, wanted) for rate in self.chains))

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends."""
        check_level(level)
        tail = (1 - level) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def draws(self, size: int, rng: np.random.Generator | int) -> Rates:
        """Draws picked at random, with replacement, from those of all chains; as arrays."""
        check_whole("size", size, 0)
        picked = generator(rng).integers(self.chains.prevalence.size, size=int(size))
        return Rates(*(rate.ravel()[picked] for rate in self.chains))

    # How good the draws are ------------------------------------------------------------------------

    @cached_property
    def mcse(self) -> Rates:
        """Monte Carlo standard errors of the posterior means."""
        return Rates(*(_mcse(rate) for rate in self.chains))

    @cached_property
    def rhat(self) -> dict[str, float]:
        """Rank-normalised split R̂ of each rate: above 1.01 the chains disagree."""
        return self._diagnosed("rhat")

    @cached_property
    def ess_bulk(self) -> dict[str, float]:
        """Effective sample size of each rate in the bulk: how many independent draws its mean is worth."""
        return self._diagnosed("ess", method="bulk")

    @cached_property
    def ess_tail(self) -> dict[str, float]:
        """Effective sample size of each rate's 5 % and 95 % quantiles, the smaller of the two."""
        return self._diagnosed("ess", method="tail", prob=(0.05, 0.95))

    @property
    def divergences(self) -> int:
        """Divergent trajectories after tuning: if there are any, draws may miss a part of the posterior."""
        return int(self.diverging.sum())

    def _diagnosed(self, function: str, **options: Any) -> dict[str, float]:
        judge = getattr(arviz(), function)
        return {name: float(judge(rate, **options)) for name, rate in zip(NAMES, self.chains, strict=True)}

    # Individuals -----------------------------------------------------------------------------------

    def score(self, n: ArrayLike, s: ArrayLike) -> Any:
        """Y_B = E[Y_L | data]: the probability that a fitted individual with s positives is positive."""
        return _each(n, s, lambda a, b: float(self._scores(a, b).mean()))

    def score_error(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The Monte Carlo standard error of `.score`."""
        return _each(n, s, lambda a, b: _mcse(self._scores(a, b)))

    def predict(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The probability that a *new* individual with s positives among n replicates is positive.

        E[θ(1−q)^s q^(n−s)] / E[θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)], both over the draws (erratum E10).
        A result that is very unlikely under most draws rests on few of them: see `predict_error`.
        """
        return _each(n, s, self._predict)

    def predict_error(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The Monte Carlo standard error of `.predict`, by the delta method."""
        return _each(n, s, self._predict_error)

    def score_interval(self, n: ArrayLike, s: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
        """Equal-tailed interval of Y_L for fitted individuals: what the uncertain rates leave open."""
        return self._interval(n, s, level, new=False)

    def predict_interval(self, n: ArrayLike, s: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
        """The same for new individuals, whose own result reweights the draws."""
        return self._interval(n, s, level, new=True)

    def _scores(self, n: int, s: int) -> Float:
        """Y_L at every draw."""
        return score_at(np.array(n), np.array(s), *self.chains)

    def _log_shares(self, n: int, s: int) -> tuple[Float, Float]:
        """log θ(1−q)^s q^(n−s) and log (1−θ)p^s(1−p)^(n−s) at every draw."""
        theta, p, q = self.chains
        with np.errstate(divide="ignore"):  # a prevalence may round to 1
            positive = np.log(theta) + s * np.log1p(-q) + (n - s) * np.log(q)
            negative = np.log1p(-theta) + s * np.log(p) + (n - s) * np.log1p(-p)
        return positive, negative

    def _predict(self, n: int, s: int) -> float:
        positive, negative = self._log_shares(n, s)
        return float(expit(logsumexp(positive) - logsumexp(negative)))

    def _predict_error(self, n: int, s: int) -> float:
        """E[A]/E[A + B] moves with each draw by [A − R(A + B)] / E[A + B], to first order."""
        scores, weight, ratio = self._scores(n, s), self._weight(n, s), self._predict(n, s)
        return _mcse((scores - ratio) * weight)

    def _weight(self, n: int, s: int) -> Float:
        """How much each draw counts once a new individual's result is in; 1 on average."""
        mixture = np.logaddexp(*self._log_shares(n, s))
        weight = np.exp(mixture - mixture.max())
        return np.asarray(weight / weight.mean())

    def _interval(self, n: ArrayLike, s: ArrayLike, level: float, *, new: bool) -> tuple[Any, Any]:
        check_level(level)
        tail = (1 - level) / 2

        def quantile(a: int, b: int, probability: float) -> float:
            weight = self._weight(a, b) if new else np.ones(self.chains.prevalence.shape)
            return _weighted_quantile(self._scores(a, b), weight, probability)

        return (
            _each(n, s, lambda a, b: quantile(a, b, tail)),
            _each(n, s, lambda a, b: quantile(a, b, 1 - tail)),
        )

    # Words -----------------------------------------------------------------------------------------

    def summary(self, level: float = 0.9) -> Table:
        """Means with their Monte Carlo standard errors, sds, intervals, R̂ and effective sample sizes."""
        lower, upper = self.interval(level)
        columns = rates_rows(estimate=self.rates, sd=self.sd, lower=lower, upper=upper)
        for name, values in (
            ("mcse", [*self.mcse]),
            ("rhat", [*self.rhat.values()]),
            ("bulk", [round(size) for size in self.ess_bulk.values()]),
            ("tail", [round(size) for size in self.ess_tail.values()]),
        ):
            columns[name] = [*values, values[2], values[1]]  # sensitivity is as good as q, specificity as p
        note = (
            f"{level:.0%} credible intervals; bulk and tail: effective sample sizes\n"
            f"{self.divergences:,} divergences in {self.diverging.size:,} draws"
        )
        return Table(columns, title=fit_title(self.method, self.counts), note=note)


def fit_mcmc(
    counts: CountTable,
    prior: Prior | None = None,
    *,
    rng: np.random.Generator | int,
    draws: int = 1000,
    chains: int = 4,
    tune: int = 1000,
) -> McmcFit:
    """The Bayesian fit by NUTS, an independent check of `fit_bayes`; needs `pip install 'binreps[mcmc]'`.

    The model has one term per cell, so any N costs the same: a fraction of a second, after about ten seconds
    to compile the model once per process.

    Parameters
    ----------
    counts : CountTable
        Any table, an empty one included (the answer is then the prior). Known statuses inform the fit.
    prior : Prior, optional
        Beta priors; those of the error rates are truncated to (0, ½). Default `Prior()`.
    rng : numpy.random.Generator or int
        Equal seeds give equal draws, whatever the number of cores.
    draws, chains, tune : int
        Draws kept from each chain, chains (at least 2, to compare), and draws that tune each chain first.

    Returns
    -------
    McmcFit

    Examples
    --------
    >>> fit = fit_mcmc(CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20]), rng=1)
    >>> round(fit.rates.prevalence, 2), float(round(fit.predict(4, 2), 2))
    (0.3, 0.4)
    >>> fit.divergences, max(fit.rhat.values()) < 1.01
    (0, True)
    """
    check_counts(counts)
    prior = checked_prior(prior)
    source = generator(rng)
    check_whole("draws", draws, 100, 10**6)
    check_whole("chains", chains, 2, 1000)
    check_whole("tune", tune, 100, 10**6)
    (nutpie,) = _extra("fit_mcmc", "nutpie")
    trace = nutpie.sample(
        _compiled().with_data(**_data(counts, prior)),
        draws=int(draws),
        tune=int(tune),
        chains=int(chains),
        seed=int(source.integers(2**32)),
        save_warmup=False,
        progress_bar=False,
    )
    kept = Rates(*(trace.posterior[name].to_numpy() for name in NAMES))
    return McmcFit(counts, prior, kept, trace.sample_stats["diverging"].to_numpy().astype(bool))


def to_pymc(counts: CountTable, prior: Prior | None = None) -> Any:
    """The model as a PyMC model, to extend or to sample in your own way; needs `pip install 'binreps[mcmc]'`.

    Its variables are `prevalence`, `false_positive` and `false_negative`; its data `n`, `s` and `weight` (the
    cells whose status is unknown), `prior` (the shapes) and `known` (what known statuses add to them). The
    statuses are summed out, and equal individuals are one term.

    Returns
    -------
    pymc.Model

    Examples
    --------
    >>> model = to_pymc(CountTable([3, 3, 3], [0, 1, 3], weight=[60, 9, 31]))
    >>> sorted(variable.name for variable in model.free_RVs)
    ['false_negative', 'false_positive', 'prevalence']
    """
    pm, pt = _extra("to_pymc", "pymc", "pytensor.tensor")
    check_counts(counts)
    with pm.Model() as model:
        data = {name: pm.Data(name, values) for name, values in _data(counts, checked_prior(prior)).items()}
        n, s, weight, shapes, known = data.values()
        theta = pm.Beta("prevalence", shapes[0, 0], shapes[0, 1])
        # a truncated Beta has no usable gradient in PyMC: a uniform one, and the rest of the log density
        p, q = pm.Uniform("false_positive", 0, 0.5), pm.Uniform("false_negative", 0, 0.5)
        yes, no = [pt.log(rate) for rate in (theta, p, q)], [pt.log1p(-rate) for rate in (theta, p, q)]
        pm.Potential(
            "prior_of_error_rates",
            sum((shapes[i, 0] - 1) * yes[i] + (shapes[i, 1] - 1) * no[i] for i in (1, 2)),
        )
        pm.Potential("known_statuses", sum(known[i, 0] * yes[i] + known[i, 1] * no[i] for i in range(3)))
        positive = yes[0] + s * no[2] + (n - s) * yes[2]
        negative = no[0] + s * yes[1] + (n - s) * no[1]
        pm.Potential("likelihood", (weight * pt.logaddexp(positive, negative)).sum())
    return model


def arviz() -> Any:
    """The installed ArviZ."""
    return _extra("judging draws", "arviz")[0]


@cache
def _compiled() -> Any:
    """The model compiled by Numba, once: data and priors of any size are put in later."""
    (nutpie,) = _extra("fit_mcmc", "nutpie")
    return nutpie.compile_pymc_model(to_pymc(CountTable([3], [1], known=[1]) + CountTable([3], [1])))


def _data(counts: CountTable, prior: Prior) -> dict[str, Float]:
    """The data of the model, by name.

    A known status makes its individual's term a product of powers of θ, p, q and their complements, which is
    what a Beta prior is: all known individuals together are six numbers, to be added to the prior's shapes.
    """
    unknown = counts.known == UNKNOWN
    n, s, weight = (column.astype(float) for column in (counts.n, counts.s, counts.weight))
    of = [weight * (counts.known == status) for status in (0, 1)]
    known = [
        [of[1].sum(), of[0].sum()],
        [of[0] @ s, of[0] @ (n - s)],
        [of[1] @ (n - s), of[1] @ s],
    ]
    return {
        "n": n[unknown],
        "s": s[unknown],
        "weight": weight[unknown],
        "prior": np.array([*prior]),
        "known": np.array(known),
    }


def _extra(who: str, *modules: str) -> list[Any]:
    """Modules of the extra `mcmc`, or a sentence that says how to get them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ announces its next version when imported
            return [import_module(module) for module in modules]
    except ModuleNotFoundError as missing:
        advice = "pip install 'binreps[mcmc]'"
        raise FitError(
            f"{who} needs {missing.name or modules[0]}, which is not installed: {advice}"
        ) from None


def _mcse(draws: Float) -> float:
    """Monte Carlo standard error of the mean of draws (chains × draws); 0 if they are all equal."""
    return float(np.squeeze(arviz().mcse(draws, method="mean"))) if np.ptp(draws) > 0 else 0.0


def _each(n: ArrayLike, s: ArrayLike, function: Callable[[int, int], float]) -> Any:
    """A function of (n, s), called once per distinct pair."""
    n_values, s_values = checked_pairs(n, s)
    pairs, where = np.unique(np.stack([n_values.ravel(), s_values.ravel()]), axis=1, return_inverse=True)
    values = np.array([function(int(a), int(b)) for a, b in pairs.T])
    return values[where.ravel()].reshape(n_values.shape)[()]


def _weighted_quantile(values: Float, weight: Float, probability: float) -> float:
    """The smallest value with at least this share of the weight at or below it."""
    order = np.argsort(values, axis=None)
    reached = np.cumsum(weight.ravel()[order])
    place = np.searchsorted(reached, probability * reached[-1])
    return float(values.ravel()[order[min(int(place), order.size - 1)]])
