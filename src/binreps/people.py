"""Who was read: of each record its population, or its covariates, which the prevalence may depend on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binreps.counts import UNKNOWN, is_null
from binreps.covariates import Category, CovariateTable
from binreps.errors import DataError
from binreps.formula import Formula

Float = NDArray[np.float64]

POPULATION = "population"
"""What the column of populations is called."""


@dataclass(frozen=True, eq=False)
class People:
    """Of each record its population or its covariates, as codes and numbers.

    The prevalence of a record has the log odds `rows @ coefficients`: a coefficient for each population, or
    an intercept and a slope for each column of the design.

    Attributes
    ----------
    study : CovariateTable
        The whole study: what the values mean, and the scale of the design.
    values : tuple of ndarray
        Of each covariate, the value of each record.
    by_population : bool
        Whether these are populations, each with a prevalence of its own.
    """

    study: CovariateTable
    values: tuple[NDArray[Any], ...]
    by_population: bool = False

    @classmethod
    def in_populations(cls, names: Sequence[Hashable], weight: NDArray[np.int64]) -> People:
        """Records by their population, none missing."""
        if missing := sum(map(is_null, names)):
            raise DataError(f"{POPULATION} must not be missing, got {missing:,} of {len(names):,}")
        covariate = Category(POPULATION, tuple(dict.fromkeys(names)))
        values = (covariate.encode(np.array(list(names), dtype=object)),)
        return cls(study_of(weight, (covariate,), values), values, True)

    @classmethod
    def with_covariates(
        cls,
        columns: Mapping[str, Any],
        weight: NDArray[np.int64],
        reference: Mapping[str, Any] | None = None,
        missing_covariates: str = "refuse",
        formula: Formula | str | None = None,
    ) -> People:
        """Records with their covariates, as a `CovariateTable` takes them."""
        nobody = np.zeros(weight.size, np.int64)
        how: Any = {"reference": reference, "missing_covariates": missing_covariates, "formula": formula}
        study = CovariateTable(nobody, nobody, columns, weight, **how)
        return cls(study, _encoded(study, columns))

    def take(self, records: NDArray[Any]) -> People:
        """Some of the records."""
        return replace(self, values=tuple(values[records] for values in self.values))

    def asked(self, columns: Mapping[str, Any], size: int) -> People:
        """Anyone, by populations or covariates of this study: one value for each record, or for all."""
        self.study.rows_of(columns)  # refuses what this study does not have
        full = {name: np.broadcast_to(np.asarray(own, dtype=object), size) for name, own in columns.items()}
        return replace(self, values=_encoded(self.study, full))

    @property
    def names(self) -> tuple[str, ...]:
        """The covariates, or the one column of populations."""
        return self.study.names

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The values as they were given."""
        pairs = zip(self.study.covariates, self.values, strict=True)
        return {each.name: each.decode(own) for each, own in pairs}

    @property
    def populations(self) -> tuple[Hashable, ...]:
        """The names of the populations; none if these are covariates."""
        first = self.study.covariates[0]
        return first.levels if self.by_population and isinstance(first, Category) else ()

    @property
    def terms(self) -> tuple[Hashable, ...]:
        """What the coefficients belong to: the populations, or the columns of the design but the first."""
        return self.populations if self.by_population else self.study.terms

    @property
    def rows(self) -> Float:
        """The design: an indicator of each population, or 1 and the standardised covariates."""
        if self.by_population:
            return np.asarray(self.values[0][:, None] == np.arange(len(self.populations)), float)
        own = self.study.standardised(self.values)
        return np.hstack([np.ones((len(own), 1)), own])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, People):
            return NotImplemented
        same = (self.study.covariates, self.study.formula, self.by_population) == (
            other.study.covariates,
            other.study.formula,
            other.by_population,
        )
        pairs = zip(self.values, other.values, strict=True)
        return same and all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]


def _encoded(study: CovariateTable, columns: Mapping[str, Any]) -> tuple[NDArray[Any], ...]:
    """Values of records as the study has them."""
    return tuple(each.encode(np.asarray(columns[each.name])) for each in study.covariates)


def study_of(weight: Any, covariates: Any, values: Any) -> CovariateTable:
    """A study of which only who took part is known."""
    nobody = np.zeros(weight.size, np.int64)
    rows = (nobody, nobody, weight, np.full(weight.size, UNKNOWN, np.int8))
    return CovariateTable.encoded(rows, covariates, values)
