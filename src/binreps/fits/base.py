"""What every fit offers, written once over (posterior, model, records)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import DataError, FitError, OptionError
from binreps.fits.left_out import LeftOut
from binreps.fits.posterior import Estimate, Marginal, Point, Posterior
from binreps.model import ALIKE, NAMES, Float, Model, Prior, Rates, Records
from binreps.notes import Note
from binreps.options import (
    check_level,
    check_mapping,
    check_whole,
    generator,
    kinds_checked,
    numbers,
    shown,
)
from binreps.table import Table

_LEAST_SHAPE, _MOST_SHAPE = 0.05, 10**7
_UNDEFINED = Rates(*(float("nan"),) * 3)


class Trouble(NamedTuple):
    """What an algorithm has to say of its own work: a name, a number, a sentence and what to do."""

    name: str
    number: float
    sentence: str
    advice: str


class AnyFit(ABC):
    """What fits of one population and of several have in common.

    Attributes
    ----------
    kind : str
        A short name of the method, the same in files, options and tables.
    method : str
        The method's name, in words.
    notes : tuple of Note
        What the reader of the fit should know.
    """

    kind: ClassVar[str]
    method: ClassVar[str]
    has_model: ClassVar[bool] = True
    """Whether the fit says how counts come about, so that they can speak against it."""
    has_sources: ClassVar[bool] = False
    """Whether each source has error rates of its own, so that it is asked about by who said what."""
    usual_error: ClassVar[float] = 1e-3
    """The numerical error, in standard deviations, beyond which something went wrong."""
    notes: tuple[Note, ...]
    records: ClassVar[Any] = None
    """The individuals with their covariates, where the fit uses any."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[Hashable, Fit]:
        """The fit of each population by its name; one without a name where there is one population."""

    @property
    @abstractmethod
    def everyone(self) -> CountTable:
        """All individuals."""

    def among(self, n: int) -> AnyFit:
        """The fit for those who have n replicates: the same, unless their prevalence is another."""
        del n
        return self

    @property
    @abstractmethod
    def error(self) -> float:
        """The numerical error, in posterior standard deviations."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """log ∫ L × prior, without binomial coefficients; NaN where it is not computed."""

    @property
    @abstractmethod
    def identifiable(self) -> bool:
        """Whether the data can tell prevalence and error rates apart without the prior's help."""

    def usual_odds_ratios(self, level: float = 0.9) -> Table | None:
        """What each covariate does to the odds of being positive; None without covariates."""
        del level
        return None

    def prevalence_table(self, level: float = 0.9) -> Table | None:
        """The prevalence of each population of this fit; None if there is one."""
        del level
        return None

    @abstractmethod
    def joint_draws(self, size: int, rng: np.random.Generator | int) -> Mapping[Hashable, Float]:
        """Independent draws of each population's parameters, shape (parameters, size); shared ones agree."""

    @abstractmethod
    def left_out(self) -> LeftOut:
        """The log predictive density of every record, given all other individuals."""

    @abstractmethod
    def everyones_scores(self) -> tuple[Any, Any, Any, Any]:
        """n, s, the number of individuals and the score of every record of the data."""

    @abstractmethod
    def summary(self, level: float = 0.9) -> Table:
        """The estimates as a table: rate, estimate, sd, lower, upper; NaN where the method has none."""

    def troubles(self) -> Iterator[Trouble]:
        """What the algorithm has to say of its own work."""
        if self.error > self.usual_error:
            yield Trouble(
                "numerical-error",
                self.error,
                f"The numerical error of the fit is {self.error:.1g} of a standard deviation.",
                "Read no more digits than that; fewer individuals with very many replicates are easier to "
                "integrate.",
            )

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


class Fit(AnyFit):
    """What every fit of one population offers: rates, and answers about records.

    A record is asked for as n and s, which broadcast, or as a count table.

    Attributes
    ----------
    counts : CountTable
        The data it was made from.
    prior : Prior or None
    model : Model
    posterior : Posterior
    rates : Rates
        The estimates of prevalence and of the two error rates.
    """

    model: ClassVar[Model] = ALIKE
    dear: ClassVar[bool] = False
    """Whether the interval of one score takes seconds, so that tables of many go without."""
    beside: ClassVar[tuple[str, ...]] = ()
    """What individuals may be asked with, by name, besides their results."""
    alone: ClassVar[bool] = True
    """Whether its counts are all the data behind it; the rates of one of several populations rest on more."""
    counts: CountTable
    rates: Rates  # no property: a dataclass would take it for a default
    prior: Prior | None
    posterior: Posterior

    @property
    def parts(self) -> Mapping[Hashable, Fit]:
        """The fit itself, without a name."""
        return MappingProxyType({None: self})

    @property
    def everyone(self) -> CountTable:
        """All individuals."""
        return self.counts

    @property
    def identifiable(self) -> bool:
        """Whether the data can tell prevalence and error rates apart without the prior's help."""
        return self.counts.identifiable

    # Rates -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def sd(self) -> Rates:
        """Posterior standard deviations; NaN for a point."""

    @abstractmethod
    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends; NaN for a point."""

    @property
    def overall(self) -> Rates:
        """The three rates as numbers; where each source has its own, those of the population of sources."""
        return self.rates

    def overall_interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each of `overall`."""
        return self.interval(level)

    @property
    def error(self) -> float:
        """Numerical error of means, sds and evidence, in units of the sd; fixed when the fit is made."""
        return self.posterior.error

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior, without binomial coefficients; priors normalised on their supports."""
        return self.posterior.log_evidence

    # Individuals -----------------------------------------------------------------------------------

    def score(self, *asked: Any, **about: Any) -> Any:
        """P(T = 1 | data) of individuals of the data, by their results; never the known status itself.

        What a model knows of individuals besides, such as `covariates=`, is given by name.
        """
        return self._chances(asked, new=False, **self._told(about)).value

    def score_error(self, *asked: Any, **about: Any) -> Any:
        """The numerical error of `.score`: larger for cells far from the data."""
        return self._chances(asked, new=False, **self._told(about)).error

    def predict(self, *asked: Any, **about: Any) -> Any:
        """The probability that a *new* individual with these results is positive.

        E[θ P(s | T = 1)] / E[θ P(s | T = 1) + (1−θ) P(s | T = 0)] under the posterior: the new result is
        evidence about the rates too (erratum E10).
        """
        return self._chances(asked, new=True, **self._told(about)).value

    def predict_error(self, *asked: Any, **about: Any) -> Any:
        """The numerical error of `.predict`."""
        return self._chances(asked, new=True, **self._told(about)).error

    def score_interval(self, *asked: Any, level: float = 0.9, **about: Any) -> tuple[Any, Any]:
        """Equal-tailed interval of P(T = 1 | s; rates) for individuals of the data; NaN for a point.

        It says what the uncertain rates leave open.
        """
        lower, upper = self._ends(asked, level, new=False, **self._told(about))
        return lower.value, upper.value

    def predict_interval(self, *asked: Any, level: float = 0.9, **about: Any) -> tuple[Any, Any]:
        """The same for new individuals, whose own result reweights the posterior."""
        lower, upper = self._ends(asked, level, new=True, **self._told(about))
        return lower.value, upper.value

    def score_interval_error(self, *asked: Any, level: float = 0.9, **about: Any) -> Any:
        """The numerical error of the ends of `.score_interval`, the larger of the two."""
        return self._interval_error(asked, level, new=False, **self._told(about))

    def predict_interval_error(self, *asked: Any, level: float = 0.9, **about: Any) -> Any:
        """The numerical error of the ends of `.predict_interval`, the larger of the two."""
        return self._interval_error(asked, level, new=True, **self._told(about))

    def left_out(self) -> LeftOut:
        """The log predictive density of every cell, given all other individuals."""
        return LeftOut.exact(self.counts, *self.posterior.log_left_out(self.counts))

    def everyones_scores(self) -> tuple[Any, Any, Any, Any]:
        """n, s, the number of individuals and the score of every record of the data."""
        return self.counts.n, self.counts.s, self.counts.weight, self.score(self.counts)

    @kinds_checked
    def answers(self, n: ArrayLike, s: ArrayLike, *, new: bool, level: float | None) -> dict[str, Any]:
        """What a join adds for each (n, s): the score, or a new individual's prediction, and its interval.

        No interval if no level is given; one of NaN where one takes seconds.
        """
        asked, ends = (self.predict, self.predict_interval) if new else (self.score, self.score_interval)
        if level is None:
            return {"score": asked(n, s)}
        interval = None if self.dear else ends(n, s, level=level)  # first: it says so where it takes long
        score = asked(n, s)
        none = np.full(np.shape(score), np.nan)[()]
        lower, upper = interval or (none, none)
        return {"score": score, "lower": lower, "upper": upper}

    @kinds_checked
    def from_text(self, typed: Mapping[str, str]) -> dict[str, Any]:
        """Covariates that were typed, as values of the columns that the fit uses."""
        return dict(typed) if self.records is None else self.records.from_text(typed)

    @kinds_checked
    def profile(self, covariates: Mapping[str, Any]) -> Fit:
        """The fit for whoever has these covariates, where the fit uses any."""
        raise OptionError(f"the fit uses no covariates, got {shown(dict(covariates))}")

    def _told(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is told of individuals besides their results; what this fit cannot use is refused."""
        for name, value in about.items():
            if name not in self.beside:
                rule = f"takes {' and '.join(self.beside)}" if self.beside else "takes nothing"
                raise OptionError(f"this fit {rule} besides results, got {name}={shown(value)}")
        check_mapping("covariates", about.get("covariates"))
        return about

    def _chances(self, asked: tuple[Any, ...], *, new: bool) -> Estimate:
        return self.posterior.chances(Records.of(*asked), new=new)

    def _ends(self, asked: tuple[Any, ...], level: float, *, new: bool) -> list[Estimate]:
        check_level(level)
        tails = [(1 - level) / 2, (1 + level) / 2]
        return self.posterior.quantiles(Records.of(*asked), tails, new=new)

    def _interval_error(self, asked: tuple[Any, ...], level: float, *, new: bool) -> Any:
        check_level(level)
        return self.posterior.interval_error(Records.of(*asked), [(1 - level) / 2, (1 + level) / 2], new=new)

    def joint_draws(self, size: int, rng: np.random.Generator | int) -> Mapping[Hashable, Float]:
        """Independent draws of all parameters, shape (parameters, size)."""
        check_whole("size", size, 0)
        source = generator(rng)
        nothing = np.empty((len(self.model.names), 0))
        return {None: self.posterior.draws(int(size), source) if size else nothing}

    # Words -----------------------------------------------------------------------------------------

    def summary(self, level: float = 0.9) -> Table:
        """Estimates, sds and equal-tailed intervals of the rates, and of sensitivity and specificity."""
        lower, upper = self.interval(level)
        columns = rates_rows(estimate=self.rates, sd=self.sd, lower=lower, upper=upper)
        for name, row in self._more_rows(level).items():
            columns["rate"].append(name)
            for column, value in zip(("estimate", "sd", "lower", "upper"), row, strict=True):
                columns[column].append(value)
        return Table(columns, title=fit_title(self.method, self.counts), note=self._words(level))

    def _more_rows(self, level: float) -> dict[str, tuple[float, float, float, float]]:
        """Rows besides the five that every model has."""
        del level
        return {}

    @abstractmethod
    def _words(self, level: float) -> str:
        """The lines below the table."""


@dataclass(frozen=True, repr=False)
class PointFit(Fit):
    """A fit that is three numbers; scores and predictions are the likelihood score at them."""

    counts: CountTable
    rates: Rates
    notes: tuple[Note, ...] = field(default=(), kw_only=True)

    @cached_property
    def posterior(self) -> Posterior:  # type: ignore[override]
        """All mass on the estimates."""
        return Point(*self.rates)

    @property
    def sd(self) -> Rates:
        """NaN: a point has no spread."""
        return _UNDEFINED

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """NaN: a point has no interval."""
        check_level(level)
        return _UNDEFINED, _UNDEFINED

    def _words(self, level: float) -> str:
        del level
        return "\n".join(map(str, self.notes))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "posterior"}


@dataclass(frozen=True, repr=False)
class PosteriorFit(Fit):
    """A fit with a posterior: means, sds, densities, quantiles and draws of its parameters."""

    counts: CountTable
    prior: Prior
    posterior: Posterior = field(compare=False)
    notes: ClassVar[tuple[Note, ...]] = ()  # type: ignore[misc]

    @property
    def rates(self) -> Rates:  # type: ignore[override]
        """Posterior means."""
        return Rates(*self.posterior.mean[:3])

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations."""
        return Rates(*self.posterior.sd[:3])

    @property
    def correlation(self) -> Float:
        """Posterior correlation matrix of the parameters, in the order of the model's names."""
        sd = self.posterior.sd
        return np.asarray(self.posterior.covariance / np.outer(sd, sd))

    @kinds_checked
    def marginal(self, name: str) -> Marginal:
        """The posterior of one rate: `.density(x)`, `.cumulative(x)`, `.quantile(probability)`, `.mode`."""
        names = self.model.names
        if name not in names:
            raise OptionError(f"name must be one of {', '.join(names)}, got {name!r}")
        return self.posterior.marginal(names.index(name))

    def quantile(self, probability: ArrayLike) -> Rates:
        """The quantiles of the three rates; an array of probabilities gives arrays."""
        wanted = numbers("probability", probability)
        if not np.all((wanted > 0) & (wanted < 1)):
            raise OptionError(f"probability must be between 0 and 1, got {wanted}")
        return Rates(*(self.marginal(name).quantile(wanted) for name in NAMES))

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends."""
        check_level(level)
        ends = self.quantile([(1 - level) / 2, (1 + level) / 2])
        return Rates(*(rate[0] for rate in ends)), Rates(*(rate[1] for rate in ends))

    def hdi(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The shortest interval of each rate that holds the given probability: lower ends, upper ends."""
        check_level(level)
        ends = [self.marginal(name).shortest(level) for name in NAMES]
        return Rates(*(low for low, _ in ends)), Rates(*(high for _, high in ends))

    @property
    def mode(self) -> Rates:
        """The modes of the three marginal densities; an end counts if the density is finite there.

        NaN where a density has none.
        """
        return Rates(*(self.marginal(name).mode for name in NAMES))

    def draws(self, size: int, rng: np.random.Generator | int) -> Rates:
        """Independent draws of the three rates, as arrays; `joint_draws` has the other parameters too."""
        return Rates(*np.clip(self.joint_draws(size, rng)[None][:3], 0.0, 1.0))

    def draw_positives(self, size: int, rng: np.random.Generator | int) -> NDArray[np.int64]:
        """Joint draws of the number of positive individuals in each cell, shape (size, cells)."""
        source = generator(rng)
        parameters = self.joint_draws(size, source)[None]
        keys = zip(self.counts.n.tolist(), self.counts.s.tolist(), strict=True)
        chances = [self.model.chance(key, *parameters) for key in keys]
        chance = np.stack(chances, axis=1) if chances else np.zeros((size, 0))
        known = self.counts.known
        return np.asarray(source.binomial(self.counts.weight, np.where(known == UNKNOWN, chance, known)))

    @property
    def interval_error(self) -> float:
        """The largest numerical error of the ends of intervals of rates, in standard deviations."""
        return max(self.marginal(name).error for name in self.model.names)

    def _words(self, level: float) -> str:
        """How probable the intervals are, and how exact: their own error included."""
        error = max(self.error, self.interval_error)
        said = f"{level:.0%} credible intervals; numerical error below {error:.0e} of a standard deviation"
        return "\n".join(filter(None, [said, rests_on_prior(self.identifiable)]))


def fit_title(method: str, counts: CountTable) -> str:
    """The line above a fit's summary."""
    individuals, replicates = counts.individuals, counts.replicates
    return f"{method}: {individuals:,} individuals, {replicates:,} replicates, {len(counts):,} cells"


def rates_rows(**columns: Rates) -> dict[str, list[Any]]:
    """The five rows of a summary: each column is a `Rates` of one statistic."""
    rows: dict[str, list[Any]] = {"rate": [name.replace("_", "-") for name in NAMES]}
    rows["rate"] += ["sensitivity", "specificity"]
    for name, rates in columns.items():
        rows[name] = [*rates, *_complements(name, columns)]
    return rows


def _complements(name: str, columns: dict[str, Rates]) -> tuple[float, float]:
    """Sensitivity and specificity: 1 − the error rate, so that bounds swap and a spread stays."""
    swapped = {"lower": "upper", "upper": "lower"}.get(name, name)
    rates = columns[swapped]
    if name == "sd":
        return rates.false_negative, rates.false_positive
    return rates.sensitivity, rates.specificity


def rests_on_prior(identifiable: bool) -> str:
    """The sentence that a summary owes its reader where the data do not identify the rates."""
    if identifiable:
        return ""
    return "The data alone cannot tell prevalence and error rates apart: the estimates rest on the prior."


def integrable(prior: Prior | None) -> Prior:
    """The prior, `Prior()` if none is given; one that floats cannot integrate is refused.

    Of Beta(a, ·) the share (10⁻³⁰⁸)^a lies below the smallest float, more than a rounding if a < 0.05; and a
    log density a log x is rounded by 10⁻¹⁶ a, more than the tolerance if a > 10⁷.
    """
    chosen = checked_prior(prior)
    for name, shapes in zip(NAMES, chosen, strict=True):
        check_integrable(name, shapes)
    return chosen


def checked_prior(prior: Prior | None) -> Prior:
    """The prior, `Prior()` if none is given; anything else is refused."""
    if prior is not None and not isinstance(prior, Prior):
        raise OptionError(f"prior must be a Prior, such as Prior(false_positive=(2, 20)), got {shown(prior)}")
    return prior or Prior()


def check_counts(counts: CountTable) -> None:
    """Refuse what is no count table, such as the table that one is made from."""
    if not isinstance(counts, CountTable):
        raise DataError(
            f"counts must be a CountTable, got {type(counts).__name__}; count_table makes one from a table "
            "of results, and CountTable(n, s) from counts"
        )


def check_fit(fit: object) -> None:
    """Refuse what is no fit."""
    if not isinstance(fit, AnyFit):
        raise OptionError(f"fit must be what a fit_… function returned, got {type(fit).__name__}")


def check_one_population(fit: object, *, by_source: bool = False) -> None:
    """Refuse what is no fit, and a fit of several populations, of which one must be chosen.

    A fit by source is refused too, unless it can be asked about by who said what.
    """
    check_fit(fit)
    if not isinstance(fit, Fit):
        advice = "of the fit of several populations choose one, such as fit[name]"
        raise OptionError(f"fit must be one fit, got {type(fit).__name__}; {advice}")
    if fit.has_sources and not by_source:
        rule = "this needs error rates that all replicates share, and the fit has those of each source"
        raise OptionError(f"{rule}; next_reading says what a reading by each would tell")


def check_integrable(name: str, shapes: tuple[float, float]) -> None:
    """Refuse the shapes of a Beta prior that floats cannot integrate."""
    if not all(_LEAST_SHAPE <= shape <= _MOST_SHAPE for shape in shapes):
        rule = f"shapes from {_LEAST_SHAPE} to {_MOST_SHAPE:,} to be integrated"
        raise OptionError(f"the prior of {name} must have {rule}, got {shapes}")


def refuse_empty(counts: CountTable, method: str) -> None:
    """The point fits need at least one individual."""
    check_counts(counts)
    if not len(counts):
        raise FitError(f"the {method} needs at least one individual, got an empty table; fit_bayes takes it")


def plug_in_rates(counts: CountTable, scores: Float, method: str) -> tuple[Rates, tuple[Note, ...]]:
    """θ̂ = mean of Y, p̂ = Σ s(1−Y)/Σ n(1−Y), q̂ = Σ (n−s)Y/Σ nY over individuals whose score is defined.

    A rate whose denominator is 0 is NaN; a note says so.
    """
    defined = ~np.isnan(scores)
    y, w = scores[defined], counts.weight[defined].astype(float)
    n, s = counts.n[defined], counts.s[defined]
    rates = Rates(
        prevalence=_ratio(w @ y, w.sum()),
        false_positive=_ratio(w @ (s * (1 - y)), w @ (n * (1 - y))),
        false_negative=_ratio(w @ ((n - s) * y), w @ (n * y)),
    )
    undefined = [name for name, rate in zip(NAMES, rates, strict=True) if np.isnan(rate)]
    reason = f"the {method} gives no individual with replicates to that class"
    if not undefined:
        return rates, ()
    return rates, (Note(f"{method}-undefined", f"{' and '.join(undefined)} undefined: {reason}"),)


def _ratio(above: Any, below: Any) -> float:
    """above / below, NaN where below is 0; rounding never takes it past 1."""
    return min(float(above / below), 1.0) if below > 0 else float("nan")
