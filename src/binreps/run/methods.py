"""The methods: one list that settings, saving, command line, page and figures are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from binreps.errors import OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.covariates import fit_covariates
from binreps.fits.overdispersed import fit_overdispersed
from binreps.fits.point.mode import MAP_PRIOR, fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.fits.populations import fit_populations
from binreps.fits.sources import fit_sources
from binreps.model import Prior
from binreps.options import shown


@dataclass(frozen=True)
class Method:
    """One way to fit.

    Attributes
    ----------
    id : str
        What settings, files and the API call it; `fit.kind` of its fits.
    name : str
        What people read.
    sentence : str
        How it estimates, for the methods of a paper; {prior} stands for the priors.
    fit : callable
        From counts, and a prior if it takes one, to a fit.
    takes_prior : bool
    always : bool
        Whether every analysis fits it beside the one that decides.
    chosen : bool
        Whether a user can choose it to decide; several populations choose theirs themselves.
    drawn : int
        Its place in figures: a method keeps its colour and shape from figure to figure.
    extras : callable
        What besides counts and prior a fit was made with, as keywords of `fit`.
    """

    id: str
    name: str
    sentence: str
    fit: Callable[..., Any]
    takes_prior: bool = False
    always: bool = True
    chosen: bool = True
    drawn: int = 0
    extras: Callable[[Any], dict[str, Any]] = lambda _: {}

    def make(self, counts: Any, prior: Prior) -> Any:
        """The fit of these counts under this prior, if the method has one."""
        if not self.takes_prior:
            return self.fit(counts)
        return self.fit(counts, self.prior(prior))

    def prior(self, prior: Prior) -> Prior:
        """The prior as the method takes it: the mode needs shapes ≥ 1, which the usual prevalence lacks."""
        flat = self.id == "map" and min(prior.prevalence) < 1
        return replace(prior, prevalence=MAP_PRIOR.prevalence) if flat else prior


_INTEGRATED = "The posterior was integrated deterministically under the priors {prior}."

_CORRELATED = "Replicates of one individual may be correlated (beta-binomial, one correlation)."

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.id: method
        for method in (
            Method(
                "average",
                "Average",
                "The rates follow from the average score of each individual.",
                fit_average,
                drawn=3,
            ),
            Method(
                "median",
                "Median",
                "The rates follow from the median score of each individual.",
                fit_median,
                drawn=4,
            ),
            Method(
                "map",
                "MAP",
                "The rates are the mode of their joint posterior density.",
                fit_map,
                takes_prior=True,
                drawn=2,
            ),
            Method("bayes", "Bayes", _INTEGRATED, fit_bayes, takes_prior=True, drawn=1),
            Method(
                "overdispersed",
                "Over-dispersed",
                f"{_INTEGRATED} {_CORRELATED}",
                fit_overdispersed,
                takes_prior=True,
                always=False,
                drawn=5,
                extras=lambda fit: {"intraclass": list(fit.intraclass_prior)},
            ),
            Method(
                "populations",
                "Populations",
                _INTEGRATED,
                fit_populations,
                takes_prior=True,
                always=False,
                chosen=False,
            ),
            Method(
                "covariates",
                "Covariates",
                "The prevalence depends on covariates by a logistic regression whose slopes have normal "
                "priors. The posterior was integrated over quasi-random points under the priors {prior}.",
                fit_covariates,
                takes_prior=True,
                always=False,
                chosen=False,
                drawn=6,
                extras=lambda fit: {"slope_sd": fit.slope_sd, "tol": fit.tol},
            ),
            Method(
                "sources",
                "By source",
                "Each source has error rates of its own, which come from a population of sources; the "
                "posterior was sampled by several chains, until its numerical error was small.",
                fit_sources,
                takes_prior=True,
                always=False,
                chosen=False,
            ),
        )
    }
)
"""The methods by id, in the order in which tables show them."""

CHOICES = tuple(method.id for method in METHODS.values() if method.chosen)
"""The methods that a user can choose to decide."""


def check_method(method: Any) -> None:
    """Refuse a method that nobody can choose."""
    if not isinstance(method, str) or method not in (*CHOICES, "sources"):
        raise OptionError(f"method must be one of {', '.join(CHOICES)}, got {shown(method)}")
