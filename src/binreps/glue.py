"""Glue until every fit offers the same: each function becomes the attribute of its name."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from binreps.errors import BinrepsWarning
from binreps.model import NAMES, Rates
from binreps.notes import Note

_KINDS = {
    "AverageFit": "average",
    "MedianFit": "median",
    "MapFit": "map",
    "BayesFit": "bayes",
    "PopulationFit": "population",
    "OverdispersedFit": "overdispersed",
    "PopulationsFit": "populations",
}
_ONE_AT_A_TIME = threading.RLock()  # Python's warnings belong to the whole process


def kind(fit: Any) -> str:
    """The stable id of a fit's method."""
    return getattr(fit, "kind", None) or _KINDS.get(type(fit).__name__, type(fit).__name__)


def parts(fit: Any) -> Mapping[Any, Any]:
    """The fits of single populations by name; None names the only one."""
    if hasattr(fit, "parts"):
        return fit.parts  # type: ignore[no-any-return]
    return {name: fit[name] for name in fit} if kind(fit) == "populations" else {None: fit}


def error(fit: Any) -> float:
    """The numerical error; 0 for a fit that integrates nothing."""
    return float(getattr(fit, "error", 0.0))


def log_evidence(fit: Any) -> float:
    """The log evidence; NaN where a method has none."""
    return float(getattr(fit, "log_evidence", np.nan))


def interval(fit: Any, level: float) -> tuple[Rates, Rates]:
    """The interval of the rates; NaN where a method has none."""
    if hasattr(fit, "interval"):
        return fit.interval(level)  # type: ignore[no-any-return]
    return (Rates(*[np.nan] * len(NAMES)),) * 2


def answers(fit: Any, n: Any, s: Any, *, new: bool, level: float) -> dict[str, Any]:
    """What a join adds for every (n, s): score, lower, upper, or what a ranking has."""
    if hasattr(fit, "answers"):
        return fit.answers(n, s, new=new, level=level)  # type: ignore[no-any-return]
    given = getattr(fit, "predict_interval" if new else "score_interval", None)
    score = np.asarray((fit.predict if new else fit.score)(n, s), dtype=float)
    lower, upper = (np.full(score.shape, np.nan),) * 2 if given is None else given(n, s, level=level)
    return {"score": score, "lower": lower, "upper": upper}


def noted(make: Callable[[], Any]) -> tuple[Any, tuple[Note, ...]]:
    """What a function makes, and what it warns of as notes: `fit.notes`, once fits have them."""
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    said = [str(each.message) for each in caught if issubclass(each.category, BinrepsWarning)]
    return made, tuple(Note("rate-undefined", sentence) for sentence in dict.fromkeys(said))
