"""Covariates as plain values for JSON: what each is, and its value in every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from binreps.covariates import Category, Covariate, CovariateTable, Numeric
from binreps.errors import DataError, OptionError
from binreps.formula import Formula
from binreps.options import real

_AGREE = 1e-6  # results of two machines or versions differ by less; a hand-made change hardly does


def covariates_to_list(study: CovariateTable, values: Sequence[Any]) -> list[dict[str, Any]]:
    """The covariates of a study, with the values of some rows."""
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


def formula_to_dict(records: CovariateTable) -> dict[str, Any]:
    """A formula and the columns that it made, with the means and sds by which they were standardised."""
    assert records.formula is not None
    records.formula.check_plain()
    mean, sd = records.mean.tolist(), records.sd.tolist()
    return {"text": records.formula.text, "terms": list(records.terms), "mean": mean, "sd": sd}


def formula_from_dict(content: Mapping[str, Any] | None) -> Formula | None:
    """A formula that does no harm."""
    if content is None:
        return None
    formula = Formula(content["text"])
    formula.check_plain()
    return formula


def check_columns(records: CovariateTable, content: Mapping[str, Any] | None) -> None:
    """Refuse a formula that makes other columns than it did, as another version of formulaic may."""
    if content is None:
        return
    same = list(records.terms) == content["terms"] and all(
        len(saved) == len(own) and all(map(agree, saved, own.tolist()))
        for saved, own in ((content["mean"], records.mean), (content["sd"], records.sd))
    )
    if not same:
        rule = f"the formula {content['text']!r} must make the columns that it made, {content['terms']}"
        raise DataError(
            f"{rule}, got {list(records.terms)}; formulaic was of another version, or the file changed"
        )


def agree(old: Any, new: Any) -> bool:
    """Whether two numbers are the same but for rounding; None is equal to None only."""
    if old is None or new is None:
        return old is new
    if not isinstance(old, int | float) or isinstance(old, bool):
        return False
    return bool(abs(real(old) - new) <= _AGREE * max(1.0, abs(new)))
