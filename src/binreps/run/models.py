"""The models: one list that settings, saving, command line, page and comparisons are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from binreps.errors import OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.overdispersed import fit_overdispersed
from binreps.fits.populations import fit_populations
from binreps.model import Prior
from binreps.options import shown
from binreps.run.methods import INTEGRATED, METHODS, Way

if TYPE_CHECKING:
    from binreps.fits.sampled.prior import SourcePrior

AUTO = "auto"
"""The choice to let the data choose."""

SEED = 1
"""Of the chains of an analysis: the same numbers every time."""


@dataclass(frozen=True)
class Offer(Way):
    """A model as the doors offer it.

    Attributes
    ----------
    says : str
        What it assumes, in a sentence for whoever chooses.
    needs : str or None
        The part of a column without which it cannot be fitted: population, source, covariates.
    kind : str
        `fit.kind` of its fits.
    """

    says: str = ""
    needs: str | None = None
    kind: str = ""

    def prior(self, prior: Prior) -> Any:
        """The prior as this model takes it."""
        if self.id == "better-than-chance":
            return replace(prior, better_than_chance=True)
        return _source_prior(prior) if self.needs == "source" else prior


def _source_prior(given: Prior) -> SourcePrior:
    """The prior of the prevalence is the user's; that of error rates belongs to other models."""
    from binreps.fits.sampled.prior import SourcePrior

    usual = Prior()
    others = (given.false_positive, given.false_negative, given.better_than_chance)
    if others != (usual.false_positive, usual.false_negative, usual.better_than_chance):
        rule = "with sources the error rates come from a population that is learned"
        raise OptionError(f"{rule}; give their prior to fit_sources (SourcePrior), not to an analysis")
    return SourcePrior(prevalence=given.prevalence)


def _fit_covariates(*data: Any, **how: Any) -> Any:
    """`fit_covariates`, loaded where it is asked for."""
    from binreps.fits.covariates import fit_covariates

    return fit_covariates(*data, **how)


def _fit_sources(*data: Any, rng: Any = SEED, **how: Any) -> Any:
    """`fit_sources` with the seed of an analysis, loaded where it is asked for."""
    from binreps.fits.sources import fit_sources

    return fit_sources(*data, rng=rng, **how)


_CORRELATED = "Replicates of one individual may be correlated (beta-binomial, one correlation)."
_COVARIATES = (
    "The prevalence depends on covariates by a logistic regression whose slopes have normal priors. The "
    "posterior was integrated over quasi-random points under the priors {prior}."
)
_SOURCES = (
    "Each source has error rates of its own, which come from a population of sources; the posterior was "
    "sampled by several chains, until its numerical error was small."
)

MODELS: Mapping[str, Offer] = MappingProxyType(
    {
        offer.id: offer
        for offer in (
            Offer(
                "common",
                "Common error rates",
                INTEGRATED,
                fit_bayes,
                says="Every replicate errs alike, and less often than not.",
                kind="bayes",
            ),
            Offer(
                "better-than-chance",
                "Better than chance",
                INTEGRATED,
                fit_bayes,
                says="Every replicate errs alike; the test may miss more than it finds.",
                kind="bayes",
            ),
            Offer(
                "correlated",
                "Correlated replicates",
                f"{INTEGRATED} {_CORRELATED}",
                fit_overdispersed,
                drawn=5,
                extras=lambda fit: {"intraclass": list(fit.intraclass_prior)},
                says="Some individuals are harder than others: their replicates err together.",
                kind="correlated",
            ),
            Offer(
                "populations",
                "Populations",
                INTEGRATED,
                fit_populations,
                says="Each population has a prevalence of its own; the test errs alike in all of them.",
                needs="population",
                kind="populations",
            ),
            Offer(
                "covariates",
                "Covariates",
                _COVARIATES,
                _fit_covariates,
                drawn=6,
                extras=lambda fit: {"slope_sd": fit.slope_sd, "tol": fit.tol},
                says="The prevalence depends on what else is known of an individual.",
                needs="covariates",
                kind="covariates",
            ),
            Offer(
                "sources",
                "By source",
                _SOURCES,
                _fit_sources,
                drawn=7,
                says="Each reader, test or rater has error rates of its own.",
                needs="source",
                kind="sources",
            ),
        )
    }
)
"""The models by id, the simplest first."""

WAYS: Mapping[str, Way] = MappingProxyType(
    {**METHODS, **{offer.kind: offer for offer in MODELS.values() if offer.kind not in METHODS}}
)
"""How a fit was made, by its kind: what files and figures know it by."""


def check_model(model: Any) -> None:
    """Refuse a model that there is not."""
    if not isinstance(model, str) or model not in (AUTO, *MODELS):
        raise OptionError(f"model must be one of {', '.join((AUTO, *MODELS))}, got {shown(model)}")


def offered_models() -> list[dict[str, Any]]:
    """The models as a door offers them: id, name, what each assumes, and the part of a column it needs.

    Examples
    --------
    >>> [offer["id"] for offer in offered_models()]
    ['auto', 'common', 'better-than-chance', 'correlated', 'populations', 'covariates', 'sources']
    """
    says = "The simplest model that the data do not refute."
    auto = {"id": AUTO, "name": "Automatic", "says": says, "needs": None}
    shown_of = ("id", "name", "says", "needs")
    return [auto, *({name: getattr(one, name) for name in shown_of} for one in MODELS.values())]
