"""Data: the same individuals in every form that a model may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from binreps.counts import CountTable
from binreps.covariates import CovariateTable
from binreps.errors import OptionError
from binreps.readings import Readings

_FORMS = MappingProxyType({"population": "populations", "covariates": "records", "source": "readings"})
_LACKING = MappingProxyType(
    {
        "population": "there is one population: name the column of several",
        "covariates": "no covariates are given: name their columns",
        "source": "counts do not say who gave which result: sources need a table with them",
    }
)


@dataclass(frozen=True)
class Data:
    """The same individuals as counts, by population, with covariates, by source; None where nobody said.

    Attributes
    ----------
    counts : CountTable
    populations : mapping of name to CountTable, or None
    records : CovariateTable or None
    readings : Readings or None
    """

    counts: CountTable
    populations: Mapping[Any, CountTable] | None = None
    records: CovariateTable | None = None
    readings: Readings | None = None

    @classmethod
    def of(cls, data: Any) -> Data:
        """The data of a noun: counts, counts of several populations, records or readings."""
        if isinstance(data, Data):
            return data
        if isinstance(data, CovariateTable):
            return cls(data.counts, records=data)
        if isinstance(data, Readings):
            return cls(data.counts, readings=data)
        if isinstance(data, Mapping):
            return cls(sum(data.values(), CountTable([], [])), populations=data)
        return cls(data)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of columns that are there besides results: population, covariates, source."""
        return tuple(part for part, form in _FORMS.items() if getattr(self, form) is not None)

    def form(self, needs: str | None) -> Any:
        """The form that a model needs; refused where it is not there."""
        found = self.counts if needs is None else getattr(self, _FORMS[needs])
        if found is None:
            raise OptionError(_LACKING[str(needs)])
        return found

    def forget_known(self) -> Data:
        """The same without known statuses."""
        several = self.populations
        return Data(
            self.counts.forget_known(),
            None if several is None else {name: one.forget_known() for name, one in several.items()},
            None if self.records is None else self.records.forget_known(),
            None if self.readings is None else self.readings.forget_known(),
        )
