"""The same posterior by Hamiltonian Monte Carlo (NUTS): a second opinion, and a model to extend.

It needs the extra `mcmc`: PyMC writes the model, nutpie samples it, ArviZ judges the chains.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from binreps.counts import UNKNOWN, CountTable
from binreps.covariates import CovariateTable
from binreps.errors import FitError, OptionError
from binreps.fits.base import PosteriorFit, Trouble, check_counts, checked_prior
from binreps.fits.posterior import Block, Estimate, Key, Marginal, Nodes, Posterior
from binreps.fits.sampled.draws import Drawn
from binreps.fits.sampled.prior import SourcePrior
from binreps.model import NAMES, Float, Prior, Rates
from binreps.options import check_whole, generator, kinds_checked
from binreps.readings import Readings
from binreps.table import Table


class Chains(Posterior):
    """Draws of several chains, each of the same mass; errors come from the chains themselves."""

    log_evidence = float("nan")

    def __init__(self, chains: Rates) -> None:
        super().__init__()
        self.chains = np.stack([*chains])  # (parameters, chains, draws)
        flat = self.chains.reshape(3, -1)
        self.mean, self.covariance = flat.mean(axis=1), np.atleast_2d(np.cov(flat, bias=True))

    @cached_property
    def error(self) -> float:  # type: ignore[override]
        """Twice the largest Monte Carlo standard error of a mean, in standard deviations."""
        return max(2 * _mcse(rate) / max(float(rate.std()), 1e-300) for rate in self.chains)

    def nodes(self) -> Iterator[Nodes]:
        """Half of each chain, then all of them."""
        half = self.chains.shape[2] // 2
        for drawn in (self.chains[:, :, :half], self.chains):
            size = drawn[0].size
            yield [Block(tuple(drawn.reshape(3, -1)), np.full(size, 1 / size))]

    def marginal(self, axis: int) -> Marginal:
        """The draws of one rate."""
        return Drawn(self.chains[axis])

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Draws picked at random, with replacement, from those of all chains."""
        return np.asarray(self.chains.reshape(3, -1)[:, rng.integers(self.chains[0].size, size=size)])

    def _chance(self, key: Key, new: bool) -> Estimate:
        """The mean over the draws, and its Monte Carlo standard error by the delta method.

        A result that is very unlikely under most draws rests on few of them, and its error says so.
        """
        *_, nodes = self.nodes()
        chances, weight = self._weighed(nodes, key, new)
        value = self._mean(nodes, key, new)
        moved = (chances - value) * weight * weight.size
        return Estimate(value, _mcse(moved.reshape(self.chains.shape[1:])))


@dataclass(frozen=True, repr=False)
class McmcFit(PosteriorFit):
    """Draws from the posterior of prevalence and error rates, and what follows; made by `fit_mcmc`.

    Every number is an average over the draws, with a Monte Carlo standard error. The evidence, the densities
    and the modes are not to be had from draws: `fit_bayes` has them.

    Attributes
    ----------
    chains : Rates
        The draws after tuning: arrays of shape (chains, draws).
    diverging : ndarray of bool
        Which of them ended a divergent trajectory.
    """

    kind: ClassVar[str] = "mcmc"
    method: ClassVar[str] = "Bayes, NUTS"
    usual_error: ClassVar[float] = 0.2  # R̂ and the effective sample sizes say more
    posterior: Chains = field(compare=False)
    diverging: NDArray[np.bool_] = field(compare=False)
    chains: Rates = field(hash=False)

    @classmethod
    def of(cls, counts: CountTable, prior: Prior, chains: Rates, diverging: NDArray[np.bool_]) -> McmcFit:
        """The fit of some chains."""
        return cls(counts, prior, Chains(chains), diverging, chains)

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

    def diagnostics(self) -> Table:
        """How good the draws of each rate are: Monte Carlo error, R̂, effective sample sizes."""
        columns = {
            "rate": [name.replace("_", "-") for name in NAMES],
            "mcse": [*self.mcse],
            "rhat": [*self.rhat.values()],
            "bulk": [round(size) for size in self.ess_bulk.values()],
            "tail": [round(size) for size in self.ess_tail.values()],
        }
        return Table(columns, note=f"bulk and tail: effective sample sizes\n{self._diverged()}")

    def _diverged(self) -> str:
        return f"{self.divergences:,} divergences in {self.diverging.size:,} draws"

    def _words(self, level: float) -> str:
        """How good the draws are."""
        rhat, worth = max(self.rhat.values()), round(min(self.ess_bulk.values()))
        worst = f"R̂ up to {rhat:.3f}, worth {worth:,} independent draws"
        return f"{level:.0%} credible intervals; {worst}\n{self._diverged()}"

    def troubles(self) -> Iterator[Trouble]:
        """Whether the chains can be trusted."""
        rhat = max(self.rhat.values())
        ess = min(*self.ess_bulk.values(), *self.ess_tail.values())
        longer = "Run longer chains, or use fit_bayes, which is exact."
        if rhat > 1.01:
            sentence = f"The chains disagree: R̂ is {rhat:.3f}, and should be below 1.01."
            yield Trouble("chains-disagree", rhat, sentence, longer)
        if ess < 400:
            sentence = f"The chains are worth only {ess:.0f} independent draws for some rate; 400 are wanted."
            yield Trouble("few-draws", ess, sentence, longer)
        if self.divergences:
            yield Trouble(
                "divergences",
                self.divergences,
                f"{self.divergences} trajectories diverged: the chains may have missed a part of the "
                "posterior.",
                "Sample more carefully, or use fit_bayes, which is exact.",
            )


@kinds_checked
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
        Beta priors, those of the error rates restricted to the prior's region. Default `Prior()`.
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
        _compiled(prior.better_than_chance).with_data(**_data(counts, prior)),
        draws=int(draws),
        tune=int(tune),
        chains=int(chains),
        seed=int(source.integers(2**32)),
        save_warmup=False,
        progress_bar=False,
    )
    kept = Rates(*(trace.posterior[name].to_numpy() for name in NAMES))
    return McmcFit.of(counts, prior, kept, trace.sample_stats["diverging"].to_numpy().astype(bool))


def to_pymc(
    counts: CountTable | CovariateTable | Readings,
    prior: Prior | SourcePrior | None = None,
    *,
    slope_sd: float = 1.5,
) -> Any:
    """The model as a PyMC model, to extend or to sample in your own way; needs `pip install 'binreps[mcmc]'`.

    Its variables are `prevalence`, `false_positive` and `false_negative`; its data `n`, `s` and `weight` (the
    cells whose status is unknown), `prior` (the shapes) and `known` (what known statuses add to them). The
    statuses are summed out, and equal individuals are one term. Where the prior is better than chance,
    `false_negative` is its share of 1 − `false_positive`, the variable `false_negative_share`, times that.

    Of a `CovariateTable` it is the model of `fit_covariates`, with `slopes` per standardised column (the
    dimension `term`), the design as data `x`, and `prevalence` that at average covariates.

    From `Readings` (with a `SourcePrior`) it is the model of `fit_sources`: its error rates have an entry for
    each source, and `mean_…` and `spread_…` are those of the population of sources. In populations
    the `prevalence` has an entry for each (dimension `population`); with covariates there are `slopes`.

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
    if isinstance(counts, Readings):
        return _sources_model(pm, pt, counts.merged(), prior)
    chosen = checked_prior(prior)  # type: ignore[arg-type]
    if isinstance(counts, CovariateTable):
        return _with_covariates(pm, pt, counts, chosen, slope_sd)
    check_counts(counts)
    with pm.Model() as model:
        data = {name: pm.Data(name, values) for name, values in _data(counts, chosen).items()}
        n, s, weight, shapes, known = data.values()
        theta = pm.Beta("prevalence", shapes[0, 0], shapes[0, 1])
        # a truncated Beta has no usable gradient in PyMC: a uniform one, and the rest of the log density
        p, q = _anywhere(pm, pt, chosen.better_than_chance)
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


def _with_covariates(pm: Any, pt: Any, records: CovariateTable, prior: Prior, slope_sd: float) -> Any:
    """The model in which the log odds of being positive are linear in the covariates."""
    with pm.Model(coords={"term": list(records.terms)}) as model:
        names = ("n", "s", "weight", "known")
        data = {name: pm.Data(name, getattr(records, name).astype(float)) for name in names}
        x = pm.Data("x", records.design())
        theta = pm.Beta("prevalence", *prior.prevalence)
        slopes = pm.Normal("slopes", 0.0, slope_sd, dims="term")
        p, q = _anywhere(pm, pt, prior.better_than_chance)
        for name, rate in (("false_positive", p), ("false_negative", q)):
            a, b = getattr(prior, name)
            pm.Potential(f"prior_of_{name}", (a - 1) * pt.log(rate) + (b - 1) * pt.log1p(-rate))
        eta = pt.log(theta) - pt.log1p(-theta) + x @ slopes
        misses = data["n"] - data["s"]
        positive = -pt.softplus(-eta) + data["s"] * pt.log1p(-q) + misses * pt.log(q)
        negative = -pt.softplus(eta) + data["s"] * pt.log(p) + misses * pt.log1p(-p)
        known = data["known"]
        term = pt.switch(
            pt.eq(known, 1), positive, pt.switch(pt.eq(known, 0), negative, pt.logaddexp(positive, negative))
        )
        pm.Potential("likelihood", (data["weight"] * term).sum())
    return model


def _sources_model(pm: Any, pt: Any, readings: Readings, prior: Any) -> Any:
    """The model of `fit_sources`: statuses summed out, each component of sources better than chance."""
    chosen = SourcePrior() if prior is None else prior
    if not isinstance(chosen, SourcePrior):
        raise OptionError(f"readings need a SourcePrior, got {type(chosen).__name__}")
    matrix = np.zeros((len(readings), 2 * len(readings.sources)))
    matrix[readings.row, readings.code] = 1 if readings.times is None else readings.times
    with pm.Model(coords={"source": [str(name) for name in readings.sources]}) as model:
        odds = _log_odds(pm, pt, readings, chosen)
        rates, means = [], []
        for name in NAMES[1:]:
            m, rho = (_learned(pm, pt, f"{word}_{name}", chosen) for word in ("mean", "spread"))
            kappa = 1 / rho - 1
            rates.append(pm.Beta(name, m * kappa, (1 - m) * kappa, dims="source"))
            means.append(m)
        p, q = rates
        if not chosen.means_fixed:
            pm.Potential("means", pt.switch(means[0] + means[1] < 1, 0.0, -np.inf))
        each = readings.totals.sum(axis=1)
        for component in range(int(readings.components.max(initial=-1)) + 1):
            own = np.flatnonzero(readings.components == component)
            margin = (each[own] * (p[own] + q[own] - 1)).sum()
            pm.Potential(f"component_{component}", pt.switch(margin < 0, 0.0, -np.inf))
        logs = ((pt.log1p(-p), pt.log(p)), (pt.log(q), pt.log1p(-q)))
        said = [pt.dot(matrix, pt.stack(both, axis=1).flatten()) for both in logs]
        negative, positive = said[0] - pt.softplus(odds), said[1] - pt.softplus(-odds)
        known = readings.known
        either = pt.switch(known == UNKNOWN, pt.logaddexp(negative, positive), negative)
        pm.Potential("likelihood", (readings.weight * pt.switch(known == 1, positive, either)).sum())
    return model


def _log_odds(pm: Any, pt: Any, readings: Readings, prior: SourcePrior) -> Any:
    """The log odds of being positive before any reading: of everyone, by population, or by covariates."""
    people = readings.people
    dims: str | None = None
    if people is not None:
        dims = "population" if people.by_population else "term"
        pm.modelcontext(None).add_coord(dims, [str(name) for name in people.terms])
    theta = pm.Beta("prevalence", *prior.prevalence, dims=dims if dims == "population" else None)
    odds = pt.log(theta) - pt.log1p(-theta)
    if people is None:
        return odds
    if people.by_population:
        return odds[people.values[0]]
    return odds + people.rows[:, 1:] @ pm.Normal("slopes", 0.0, prior.slope_sd, dims="term")


def _learned(pm: Any, pt: Any, name: str, prior: SourcePrior) -> Any:
    """A mean or a spread of the population of sources, or the number that it is held at."""
    value = getattr(prior, name)
    return pt.constant(value) if isinstance(value, float) else pm.Beta(name, *value)


def _anywhere(pm: Any, pt: Any, better_than_chance: bool) -> tuple[Any, Any]:
    """Error rates that are uniform over the region."""
    if not better_than_chance:
        return pm.Uniform("false_positive", 0, 0.5), pm.Uniform("false_negative", 0, 0.5)
    p, share = pm.Uniform("false_positive", 0, 1), pm.Uniform("false_negative_share", 0, 1)
    pm.Potential("area", pt.log1p(-p))
    return p, pm.Deterministic("false_negative", (1 - p) * share)


def arviz() -> Any:
    """The installed ArviZ."""
    return _extra("judging draws", "arviz")[0]


@cache
def _compiled(better_than_chance: bool) -> Any:
    """The model compiled by Numba, once for each region: data and priors of any size are put in later."""
    (nutpie,) = _extra("fit_mcmc", "nutpie")
    counts = CountTable([3], [1], known=[1]) + CountTable([3], [1])
    return nutpie.compile_pymc_model(to_pymc(counts, Prior(better_than_chance=better_than_chance)))


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
