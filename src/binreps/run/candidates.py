"""The models that data allow, fitted and compared."""

from __future__ import annotations

from functools import partial
from typing import Any

from binreps.decide.checks.run import check
from binreps.decide.compare import Comparison, Tried, tried
from binreps.errors import BinrepsError
from binreps.fits.overdispersed import MANY
from binreps.run.analysis import Settings
from binreps.run.data import Data
from binreps.run.models import MODELS, Offer

_SATURATED = 3  # replicates up to which two classes describe any counts


def candidates(data: Data, settings: Settings) -> list[Offer]:
    """The models that the columns allow, the simplest first; one region of error rates if it is chosen.

    With up to three replicates each, nothing can show whether they are correlated, so that is not tried.
    """
    left_out = {"common"} if settings.prior.better_than_chance else set()
    left_out |= {"correlated"} if data.counts.n.max(initial=0) <= _SATURATED else set()
    allowed = [offer for offer in MODELS.values() if offer.needs is None or offer.needs in data.parts]
    return [offer for offer in allowed if offer.id not in left_out]


def made(offer: Offer, data: Data, settings: Settings) -> Any:
    """The fit of a model to data, as the settings want it."""
    chosen = {"independent": settings.independent, "merge": settings.merge}
    how = chosen if offer.needs == "source" else {}
    return offer.make(data.form(offer.needs), settings.prior, **how)


def compared(data: Data, settings: Settings) -> Comparison:
    """Every model that the columns allow, on the same individuals; those that cannot be fitted say why."""
    if data.readings is not None and data.readings.counts != data.counts:
        data = Data.of(data.readings)  # results without a source, or a part of very many, are left out
    found: list[Tried] = []
    refused: dict[str, str] = {}
    for offer in candidates(data, settings):
        if offer.id == "correlated" and len(data.counts) > MANY:
            refused[offer.id] = _too_long(len(data.counts))
            continue
        try:
            make = partial(made, offer, data, settings)
            found.append(tried(offer.id, make, partial(check, loss=settings.loss)))
        except BinrepsError as error:
            if not found:
                raise
            refused[offer.id] = str(error)
    return Comparison(tuple(found), settings.loss, refused)


def _too_long(cells: int) -> str:
    """Why a model is not tried unless it is asked for."""
    rule = f"it is compared for up to {MANY} cells (n, s), as it takes minutes beyond"
    return f"{rule}, got {cells:,}; it is fitted where it is the model that is asked for"
