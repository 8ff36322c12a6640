"""Covariates as plain values for JSON: what each is, and its value in every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from binreps.covariates import Category, Covariate, CovariateTable, Numeric
from binreps.errors import DataError, OptionError


def covariates_to_list(study: CovariateTable, values: Sequence[Any]) -> list[dict[str, Any]]:
    """The covariates of a study, with the values of some rows."""
    if study.formula is not None:
        raise OptionError("a fit by a formula cannot be saved: loading it would run the formula as code")
    covariates = []
    for each, own in zip(study.covariates, values, strict=True):
        if isinstance(each, Category):
            kind: dict[str, Any] = {"levels": [_level(each.name, level) for level in each.levels]}
            rows: list[Any] = own.tolist()
        else:
            kind, rows = {"fill": each.fill}, [None if value != value else value for value in own.tolist()]
        covariates.append({"name": each.name, **kind, "values": rows})
    return covariates


def _level(name: str, level: object) -> Any:
    """A level that JSON can hold."""
    if not isinstance(level, str | int | float | bool):
        raise OptionError(f"levels of text or numbers can be saved, got {level!r} in column {name!r}")
    return level


def covariates_from_list(
    content: Sequence[Mapping[str, Any]], size: int
) -> tuple[tuple[Covariate, ...], list[Any]]:
    """The covariates that were saved, and their values in so many rows."""
    covariates: list[Covariate] = []
    values: list[Any] = []
    for one in content:
        own = one["values"]
        if "levels" in one:
            levels = tuple(one["levels"])
            covariates.append(Category(one["name"], levels))
            own = np.array([levels[i] for i in own], dtype=object)
        else:
            covariates.append(Numeric(one["name"], one["fill"]))
            own = np.array([np.nan if value is None else value for value in own], dtype=float)
        values.append(covariates[-1].encode(own))
    if any(len(own) != size for own in values):
        raise DataError("every covariate must have one value per row")
    return tuple(covariates), values
