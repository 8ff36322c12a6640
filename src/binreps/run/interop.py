"""Other tools: a posterior for ArviZ, the model for PyMC, a classifier for scikit-learn.

What ArviZ reads are draws, predictions and likelihoods, one entry per individual. Each tool is loaded when it
is needed, scikit-learn by `ReplicateClassifier` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, log_expit

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import OptionError
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.fits.covariates import CovariatesFit
from binreps.fits.mcmc import McmcFit, arviz, to_pymc
from binreps.fits.sources import SourcesFit, parameters
from binreps.model import ALIKE, NAMES, Float, Rates
from binreps.options import check_whole, generator, kinds_checked

if TYPE_CHECKING:
    from binreps.run.sklearn_adapter import ReplicateClassifier, SourceClassifier

__all__ = ["ReplicateClassifier", "SourceClassifier", "to_arviz", "to_pymc"]

_CHAINS = 4  # ArviZ compares chains; independent draws may be dealt to as many as one likes
_MOST_VALUES = 2 * 10**7  # draws × individuals: 160 MB for each of two groups


@kinds_checked
def to_arviz(
    fit: BayesFit | McmcFit | CovariatesFit | SourcesFit, *, rng: np.random.Generator | int, draws: int = 2000
) -> Any:
    """A posterior as ArviZ's own object: `InferenceData` for ArviZ 0.x, a `DataTree` for ArviZ 1.x.

    Its groups are `prior` and `posterior` (the three rates), `posterior_predictive` and `observed_data`
    (`s`), `log_likelihood` (of `s`, per *individual*, so that `arviz.loo` leaves out one individual at a
    time) and `constant_data` (`n`, and `known`: −1 if not). Individuals are in the order of the count table;
    those of unknown status without replicates, who have no result to predict, are left out.

    The likelihood is that of s given n, log C(n, s) + log[θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)]; an
    individual of known status has its own class's term only, and is predicted within that class.

    Parameters
    ----------
    fit : BayesFit, CovariatesFit, McmcFit or SourcesFit
        The exact posterior is drawn from independently: no burn-in, and R̂ is 1 but for chance. The draws of
        `fit_mcmc` are taken as they are, chain by chain, with their divergences. A fit by source gives its
        chains of prevalence, of the error rates by `source`, and of their population, and the log likelihood
        of each individual's `readings`; for it `rng` and `draws` do nothing. Its `prevalence` is the average
        one; in populations `prevalence_of` has that of each (dimension `population`).
        With covariates the posterior has `intercept` (at average covariates) and `log_odds` per unit of each
        column (dimension `term`) too.
    rng : numpy.random.Generator or int
        Seed of the draws.
    draws : int
        How many draws from an exact posterior, rounded up to a multiple of 4.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree

    Raises
    ------
    OptionError
        For more than 20 million values per group: ArviZ has no weights, so every individual is listed.

    Examples
    --------
    >>> tree = to_arviz(fit_bayes(CountTable([3, 3, 3], [0, 1, 3], weight=[60, 9, 31])), rng=1)
    >>> tree.posterior["prevalence"].shape, tree.log_likelihood["s"].shape
    ((4, 500), (4, 500, 100))
    """
    if isinstance(fit, SourcesFit):
        return _sources_tree(fit)
    if not isinstance(fit, BayesFit | McmcFit | CovariatesFit):
        which = "fit_bayes, fit_covariates, fit_mcmc or fit_sources"
        raise OptionError(f"to_arviz takes a fit by {which}, got {type(fit).__name__}")
    check_whole("draws", draws, 100, 10**7)
    size = fit.diverging.size if isinstance(fit, McmcFit) else -(-int(draws) // _CHAINS) * _CHAINS
    dims = {name: ["individual"] for name in ("s", "n", "known")}
    if isinstance(fit, CovariatesFit):
        _refuse_too_many(fit.records.individuals, size)
        groups = _covariate_groups(fit, size, generator(rng))
        return _tree(groups, dims={**dims, "log_odds": ["term"]}, coords={"term": list(fit.records.terms)})
    counts = _with_evidence(fit.counts)
    _refuse_too_many(counts.individuals, size)
    return _tree(_groups(fit, counts, size, generator(rng)), dims=dims)


def _covariate_groups(fit: CovariatesFit, size: int, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """What ArviZ calls groups, of a fit with covariates; individuals in the order of its records."""
    table, own = fit.records, fit.parameter_draws(size, rng)
    kept = np.repeat(np.arange(len(table)), table.weight)
    evident = (table.n[kept] > 0) | (table.known[kept] != UNKNOWN)
    kept = kept[evident]
    n, s, known = (column[kept] for column in (table.n, table.s, table.known))
    slopes = np.stack([own[term] for term in table.terms]) if table.terms else np.zeros((0, size))
    eta = own["intercept"][:, None] + (table.design()[kept] @ (slopes * table.sd[:, None])).T
    p, q = own["false_positive"][:, None], own["false_negative"][:, None]
    negative = log_expit(-eta) + s * np.log(p) + (n - s) * np.log1p(-p)
    positive = log_expit(eta) + s * np.log1p(-q) + (n - s) * np.log(q)
    both = np.where(known == 1, positive, np.where(known == 0, negative, np.logaddexp(positive, negative)))
    ways = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)
    status = np.where(known == UNKNOWN, rng.random(eta.shape) < expit(eta), known == 1)
    predicted = rng.binomial(n, np.where(status, 1 - q, p))
    deal = (_CHAINS, size // _CHAINS)
    rates = {name: own[name].reshape(deal) for name in (*NAMES, "intercept")}
    return {
        "posterior": {**rates, "log_odds": slopes.T.reshape(*deal, len(table.terms))},
        "posterior_predictive": {"s": predicted.reshape(*deal, n.size)},
        "log_likelihood": {"s": (both + ways).reshape(*deal, n.size)},
        "observed_data": {"s": s},
        "constant_data": {"n": n, "known": known},
    }


def _tree(groups: dict[str, dict[str, Any]], **how: Any) -> Any:
    """Groups as the object of the ArviZ that is installed."""
    az = arviz()
    if int(az.__version__.split(".")[0]) == 0:
        return az.from_dict(**groups, **how)
    return az.from_dict(groups, **how)


def _sources_tree(fit: SourcesFit) -> Any:
    """The chains of a fit by source, and the likelihood of each individual."""
    data = fit.readings.take(np.flatnonzero((fit.readings.sizes[0] > 0) | (fit.readings.known != UNKNOWN)))
    chains, kept = fit.posterior.sampled.logs.shape[2:]
    _refuse_too_many(data.individuals, chains * kept)
    likelihood = np.moveaxis(fit.posterior.log_likelihoods(data), 0, -1)
    side, by_side = _side(fit)
    posterior = {name: np.asarray(values, float) for name, values in {**parameters(fit), **side}.items()}
    groups: dict[str, dict[str, Any]] = {
        "posterior": posterior,
        "constant_data": {"known": np.repeat(data.known, data.weight)},
    }
    if likelihood.shape[1] == kept:  # beyond some work fewer draws answer
        groups["log_likelihood"] = {"readings": np.repeat(likelihood, data.weight, axis=-1).astype(float)}
    dims = {name: ["source"] for name in NAMES[1:]} | {x: ["individual"] for x in ("readings", "known")}
    coords = {"source": [str(name) for name in fit.sources], **by_side}
    own = {"prevalence_of": ["population"], "log_odds": ["term"]}
    return _tree(groups, dims={**dims, **{name: own[name] for name in own if name in side}}, coords=coords)


def _side(fit: SourcesFit) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """What the prevalence depends on in a fit by source: draws (chains, draws, …), and the names of these."""
    people, side = fit.readings.people, fit.posterior.sampled.side
    if people is None or side is None:
        return {}, {}
    draws, names = np.moveaxis(side.draws.astype(float), 0, -1), [str(name) for name in people.terms]
    if people.by_population:
        return {"prevalence_of": expit(draws)}, {"population": names}
    return {"intercept": draws[..., 0], "log_odds": draws[..., 1:] / people.study.sd}, {"term": names}


def _with_evidence(counts: CountTable) -> CountTable:
    """Those with a replicate or a known status: ArviZ fails on a likelihood that is 1 whatever the rates."""
    kept = (counts.n > 0) | (counts.known != UNKNOWN)
    return CountTable(counts.n[kept], counts.s[kept], counts.weight[kept], counts.known[kept])


def _groups(
    fit: BayesFit | McmcFit, counts: CountTable, size: int, rng: np.random.Generator
) -> dict[str, dict[str, Any]]:
    """What ArviZ calls groups, each with its variables."""
    chains = fit.chains if isinstance(fit, McmcFit) else _in_chains(fit, size, rng)
    before = _in_chains(fit_bayes(CountTable([], []), fit.prior), size - size % _CHAINS, rng)
    n, s, known = (np.repeat(column, counts.weight) for column in (counts.n, counts.s, counts.known))
    groups: dict[str, dict[str, Any]] = {
        "posterior": dict(zip(NAMES, chains, strict=True)),
        "prior": dict(zip(NAMES, before, strict=True)),
        "posterior_predictive": {"s": _predicted(n, known, chains, rng)},
        "log_likelihood": {"s": np.repeat(_log_likelihoods(counts, chains), counts.weight, axis=-1)},
        "observed_data": {"s": s},
        "constant_data": {"n": n, "known": known},
    }
    if isinstance(fit, McmcFit):
        groups["sample_stats"] = {"diverging": fit.diverging}
    return groups


def _refuse_too_many(individuals: int, draws: int) -> None:
    """A table of 10⁹ individuals is small here, but not in ArviZ."""
    if individuals * draws > _MOST_VALUES:
        raise OptionError(
            f"to_arviz lists every individual, so draws × individuals must be at most {_MOST_VALUES:,}, got "
            f"{draws:,} × {individuals:,}; for exact leave-one-out at any size, subtract log evidences"
        )


def _in_chains(fit: BayesFit, size: int, rng: np.random.Generator) -> Rates:
    """Independent draws, dealt to chains."""
    return Rates(*(rate.reshape(_CHAINS, -1) for rate in fit.draws(size, rng)))


def _log_likelihoods(counts: CountTable, chains: Rates) -> Float:
    """log P(s | n, rates) of an individual of each cell, shape (chains, draws, cells)."""
    theta, p, q = chains
    negative, positive = ALIKE.log_classes(counts, p, q)
    with np.errstate(divide="ignore"):  # a prevalence may round to 1
        mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
    n, s = counts.n, counts.s
    ways = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)
    return np.asarray(np.moveaxis(mixture, 0, -1) + ways)


def _predicted(
    n: NDArray[Any], known: NDArray[Any], chains: Rates, rng: np.random.Generator
) -> NDArray[np.int64]:
    """New results of every individual: a status (unless known), then as many replicates as it had."""
    theta, p, q = (rate[..., None] for rate in chains)
    drawn = rng.random((*chains.prevalence.shape, n.size)) < theta
    status = np.where(known == UNKNOWN, drawn, known == 1)
    return np.asarray(rng.binomial(n, np.where(status, 1 - q, p)))


def __getattr__(name: str) -> Any:
    """The classifiers, which alone need scikit-learn to be defined."""
    if name not in ("ReplicateClassifier", "SourceClassifier"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from binreps.run import sklearn_adapter

    return getattr(sklearn_adapter, name)
