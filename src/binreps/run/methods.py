"""The methods of the paper: ways to estimate the rates of one test, shown side by side in every analysis.

A model says what is assumed of the data (`run.models`); a method says how the rates are estimated. Every
model is fitted by Bayes; average, median and mode are there to be compared with it, and know one model only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from binreps.errors import OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.point.mode import MAP_PRIOR, fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.model import Prior
from binreps.options import shown


@dataclass(frozen=True)
class Way:
    """One way to make a fit, and what people read of it.

    Attributes
    ----------
    id : str
        What settings, files and the API call it.
    name : str
        What people read.
    sentence : str
        How it estimates, for the methods of a paper; {prior} stands for the priors.
    fit : callable
        From data, and a prior if it takes one, to a fit.
    takes_prior : bool
    drawn : int
        Its place in figures: a fit keeps its colour and shape from figure to figure.
    extras : callable
        What besides data and prior a fit was made with, as keywords of `fit`.
    """

    id: str
    name: str
    sentence: str
    fit: Callable[..., Any]
    takes_prior: bool = True
    drawn: int = 0
    extras: Callable[[Any], dict[str, Any]] = lambda _: {}

    def make(self, data: Any, prior: Any, **how: Any) -> Any:
        """The fit of these data under this prior, if there is one."""
        return self.fit(data, self.prior(prior), **how) if self.takes_prior else self.fit(data, **how)

    def prior(self, prior: Prior) -> Any:
        """The prior as this way takes it: the mode needs shapes ≥ 1, which the usual prevalence lacks."""
        flat = self.id == "map" and min(prior.prevalence) < 1
        return replace(prior, prevalence=MAP_PRIOR.prevalence) if flat else prior


INTEGRATED = "The posterior was integrated deterministically under the priors {prior}."

_AVERAGE = "The rates follow from the average score of each individual."
_MEDIAN = "The rates follow from the median score of each individual."
_MODE = "The rates are the mode of their joint posterior density."

METHODS: Mapping[str, Way] = MappingProxyType(
    {
        way.id: way
        for way in (
            Way("average", "Average", _AVERAGE, fit_average, takes_prior=False, drawn=3),
            Way("median", "Median", _MEDIAN, fit_median, takes_prior=False, drawn=4),
            Way("map", "MAP", _MODE, fit_map, drawn=2),
            Way("bayes", "Bayes", INTEGRATED, fit_bayes, drawn=1),
        )
    }
)
"""The methods by id, in the order in which tables show them; the last is the one that every model has."""


def check_method(method: Any) -> None:
    """Refuse a method that there is not."""
    if not isinstance(method, str) or method not in METHODS:
        raise OptionError(f"method must be one of {', '.join(METHODS)}, got {shown(method)}")
