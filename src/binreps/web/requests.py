"""What the API takes, and how it becomes the library's own values: the library checks them, in its words."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from binreps.counts import CountTable, entries
from binreps.covariates import CovariateTable
from binreps.decide.loss import Loss
from binreps.errors import DataError
from binreps.model import Prior
from binreps.readings import Readings
from binreps.run.analysis import Settings
from binreps.run.data import Data
from binreps.run.methods import METHODS
from binreps.run.models import AUTO, MODELS
from binreps.web import limits

Whole = StrictInt | StrictFloat  # 2.5 is refused by the library, whose sentence names its place
Status = StrictBool | StrictInt | StrictFloat | None
Shapes = tuple[StrictFloat, StrictFloat]

_BETTER = "Whether error rates may be above ½, as long as they add up to less than 1."


class Body(BaseModel):
    """A JSON object without names that nobody asked for."""

    model_config = ConfigDict(extra="forbid")


class Said(Body):
    """Who said what: of each cell and source, how often yes and no; columns of equal length."""

    sources: list[StrictStr] = Field(description="Their names.", examples=[["Ahn", "Berg"]])
    cell: list[StrictInt] = Field(description="The number of the cell, from 0.", examples=[[0, 0, 1]])
    source: list[StrictInt] = Field(description="The number of the source, from 0.", examples=[[0, 1, 0]])
    yes: list[StrictInt] = Field(description="How often it said yes.", examples=[[1, 0, 0]])
    no: list[StrictInt] = Field(description="How often it said no.", examples=[[0, 1, 1]])

    def readings(self, weight: Any, known: Any) -> Readings:
        """The library's readings, a record for each cell."""
        columns = (self.cell, self.source, self.yes, self.no)
        limits.check_length("readings", self.cell, limits.READINGS)
        if len({len(column) for column in columns}) > 1:
            raise DataError("readings: cell, source, yes and no must be equally long")
        cell, source, yes, no = (_numbers(column) for column in columns)
        for name, values, end in (("cell", cell, weight.size), ("source", source, len(self.sources))):
            if values.size and not (values.min() >= 0 and values.max() < end):
                raise DataError(f"readings: each {name} must be a number from 0 to {end - 1}")
        if min(yes.min(initial=0), no.min(initial=0)) < 0:
            raise DataError("readings: yes and no must be 0 or more")
        return Readings.counted(self.sources, cell, source, yes, no, known, weight)


def _numbers(values: list[int]) -> Any:
    """Whole numbers of a size that can be counted."""
    if values and not -1 <= min(values) <= max(values) <= limits.INDIVIDUALS:
        raise DataError(f"readings: numbers must be from 0 to {limits.INDIVIDUALS:,}")
    return np.array(values, np.int64)


class Cells(Body):
    """The data as columns of equal length: one entry per (n, s), or per individual if there is no weight."""

    n: list[Whole] = Field(description="Number of replicates.", examples=[[4, 4, 4, 4, 4]])
    s: list[Whole] = Field(description="How many of them are positive.", examples=[[0, 1, 2, 3, 4]])
    weight: list[Whole] | None = Field(
        None, description="Individuals with that n and s; 1 if not given.", examples=[[50, 18, 6, 9, 17]]
    )
    known: list[Status] | None = Field(
        None, description="Status 0 or 1 where it is known: it informs the fit."
    )
    truth: list[Status] | None = Field(None, description="Status that judges the answers and informs no fit.")
    population: list[StrictStr] | None = Field(
        None, description="Population, where several took the same test."
    )
    covariates: dict[str, list[StrictFloat | StrictInt | StrictBool | StrictStr | None]] | None = Field(
        None, description="Columns that the prevalence may depend on, by name."
    )
    readings: Said | None = Field(None, description="Who said what, where sources differ.")

    def data(self) -> tuple[Data, Data | None]:
        """The data in every form that they have, and the same with the truth if there is one."""
        limits.check_length("entries of n", self.n, 50 * limits.CELLS)
        if self.truth is not None and self.known is not None:
            raise DataError("give known or truth, not both: a status that informed a fit cannot judge it")
        whole = CountTable(self.n, self.s, self.weight, _statuses(self.known or self.truth))
        limits.check_counts(whole)
        data = Data(whole, self._populations(), self._records(), self._readings())
        return (data, None) if self.truth is None else (data.forget_known(), data)

    def _records(self) -> CovariateTable | None:
        """Everyone with their covariates."""
        if not self.covariates:
            return None
        limits.check_length("cells with covariates", self.n, limits.RECORDS)
        status = _statuses(self.known or self.truth)
        return CovariateTable(self.n, self.s, self.covariates, self.weight, status)

    def _readings(self) -> Readings | None:
        """Who said what."""
        if self.readings is None:
            return None
        _, _, weight, known = entries(self.n, self.s, self.weight, _statuses(self.known or self.truth))
        readings = self.readings.readings(weight, known)
        if self.covariates:
            return readings.with_covariates(self.covariates)
        return readings if self.population is None else readings.in_populations(self.population)

    def _populations(self) -> dict[str, CountTable] | None:
        """One table for each population, in the order in which they first appear."""
        if self.population is None:
            return None
        if len(self.population) != len(self.n):
            raise DataError(f"population must be as long as n ({len(self.n)}), got {len(self.population)}")
        names = np.array(self.population, dtype=object)
        limits.check_length("populations", set(self.population), limits.POPULATIONS)
        columns = {name: getattr(self, name) for name in ("n", "s", "weight", "known")}
        tables = {}
        for name in dict.fromkeys(self.population):
            rows = np.flatnonzero(names == name)
            own = {part: [values[i] for i in rows] for part, values in columns.items() if values is not None}
            if "known" in own:
                own["known"] = _statuses(own["known"])
            tables[name] = CountTable(**own)
            limits.check_counts(tables[name])
        return tables


def _statuses(values: list[Any] | None) -> Any:
    """Statuses as the library takes them, with None for unknown."""
    return None if values is None else np.array(values, dtype=object)


class PriorShapes(Body):
    """Beta shapes (a, b) of the three rates, and where the error rates may lie."""

    prevalence: Shapes = (0.5, 0.5)
    false_positive: Shapes = (2.0, 2.0)
    false_negative: Shapes = (2.0, 2.0)
    better_than_chance: Annotated[StrictBool, Field(description=_BETTER)] = False

    def chosen(self) -> Prior:
        """The library's prior."""
        return Prior(**self.model_dump())


class Costs(Body):
    """What a wrong or inconclusive answer costs; a pair for truly negative and truly positive individuals."""

    false_positive: StrictFloat = 1.0
    false_negative: StrictFloat = 1.0
    inconclusive: StrictFloat | tuple[StrictFloat, StrictFloat] = 0.25

    def loss(self) -> Loss:
        """The library's loss."""
        return Loss(self.false_positive, self.false_negative, self.inconclusive)


class Choices(Body):
    """What the user chose."""

    prior: PriorShapes = Field(default_factory=PriorShapes)
    loss: Costs = Field(default_factory=Costs)
    level: StrictFloat = Field(0.9, description="Probability that intervals hold.")
    model: str | None = Field(None, description=f"What is assumed: {', '.join((AUTO, *MODELS))}.")
    independent: StrictBool = Field(
        False, description="Whether readings of one individual by sources are independent, given its status."
    )
    method: str = Field("bayes", description=f"How rates are estimated: {', '.join(METHODS)}.")
    replicates: StrictInt | None = Field(
        None, description="Replicates of the decision table; as many as anyone had, if not given."
    )

    def settings(self) -> Settings:
        """The library's settings."""
        limits.check_table(self.replicates)
        limits.check_interval(self.level)
        prior = self.prior.chosen()
        limits.check_prior(prior)
        chosen = (self.level, self.replicates, self.model, self.independent)
        return Settings(self.method, prior, self.loss.loss(), *chosen)


class FitRequest(Choices):
    """Counts, and how to analyse them."""

    cells: Cells


class ScoreRequest(FitRequest):
    """Individuals to score with a fit."""

    n: list[Whole] = Field(examples=[[2, 2, 3]])
    s: list[Whole] = Field(examples=[[1, 2, 0]])
    new: bool = Field(False, description="Whether they were not in the data of the fit.")
    population: str | None = None


class ExplainRequest(FitRequest):
    """One individual to explain: n and s, or who said what where sources differ."""

    n: Whole = Field(0, examples=[6])
    s: Whole = Field(0, examples=[2])
    said: dict[str, StrictInt | tuple[StrictInt, StrictInt]] = Field(
        {}, description="What each source said: 0, 1, or how many readings and how many of them are yes."
    )
    known_covariates: dict[str, StrictFloat | StrictInt | StrictStr | StrictBool] | None = Field(
        None, description="The individual's covariates, where the model uses any."
    )
    new: bool = Field(False, description="Whether it was not in the data of the fit.")
    cost_per_replicate: StrictFloat = Field(0.01, description="What one more replicate costs.")
    population: str | None = None


class NextRequest(FitRequest):
    """What a further replicate costs, and how many can be had."""

    cost_per_replicate: StrictFloat = 0.01
    budget: StrictInt = 200
    population: str | None = None


class Named(Body):
    """Which column of a file plays which part, as in `analyse`; guessed where nothing is given."""

    individual: str | list[str] | None = None
    result: str | None = None
    replicates: list[str] | None = None
    n: str | None = None
    s: str | None = None
    weight: str | None = None
    known: str | None = None
    truth: str | None = None
    population: str | None = None
    source: str | None = None
    covariates: str | list[str] | None = None
    time: str | None = None
    batch: str | None = None
    positive: str | list[str] | None = None
    negative: str | list[str] | None = None
    missing: str | list[str] | None = None

    def columns(self) -> Any:
        """The keywords of `analyse`."""
        return {name: value for name, value in self.model_dump().items() if value not in (None, [])}


class FileRequest(Choices):
    """How to read a file, and how to analyse it."""

    columns: Named = Field(default_factory=Named)
    sheet: str | None = Field(None, description="The sheet of a workbook; the first if not given.")
    cells: Cells | None = Field(None, description="The data, where no file is sent.")


class ReportRequest(FileRequest):
    """What is on top of the report."""

    title: str = Field("", max_length=200, description="The name of the data if not given.")
    author: str = Field("", max_length=200)


class CardRequest(FileRequest):
    """Whose card for the bedside, and what is on it."""

    title: str = Field("Repeated test", max_length=200, description="The name of the test.")
    population: str | None = Field(None, description="The population it is for, if there are several.")


class LinesRequest(FileRequest):
    """The name of a file, and how it is analysed."""

    name: str = Field("data.csv", max_length=500)


class PriorRequest(Body):
    """What is believed of one rate, in one of three ways.

    A best guess and a surprising value (`expect` with `surprised_above` or `surprised_below`), a range (`low`
    and `high`), or an earlier study (`of` with `count` or `share`).
    """

    rate: str = Field("prevalence", examples=["prevalence", "sensitivity"])
    expect: StrictFloat | None = None
    surprised_above: StrictFloat | None = None
    surprised_below: StrictFloat | None = None
    chance: Annotated[StrictFloat, Field(description="Probability of the surprise.")] = 0.05
    low: StrictFloat | None = None
    high: StrictFloat | None = None
    level: Annotated[StrictFloat, Field(description="Probability of the range.")] = 0.9
    of: StrictFloat | None = None
    count: StrictFloat | None = None
    share: StrictFloat | None = None
    discount: StrictFloat = 1.0
    better_than_chance: Annotated[StrictBool, Field(description=_BETTER)] = False


class PlanRequest(Body):
    """A goal for the prevalence, the rates to expect, and what a study costs."""

    prevalence: StrictFloat = Field(0.3, description="What is expected, as the two error rates are.")
    false_positive: StrictFloat = 0.1
    false_negative: StrictFloat = 0.1
    prevalence_width: StrictFloat = Field(0.1, description="How wide its interval may be.")
    cost_per_individual: StrictFloat = 0.0
    cost_per_replicate: StrictFloat = 1.0
    better_than_chance: Annotated[StrictBool, Field(description=_BETTER)] = False
    level: StrictFloat = 0.9
