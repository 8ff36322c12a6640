"""Several populations, one test: a prevalence for each, error rates in common (the Hui–Walter setting)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import getitem
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import DataError, OptionError
from binreps.fits.base import AnyFit, Fit, fit_title, integrable, rates_rows, rests_on_prior
from binreps.fits.bayes import BayesFit
from binreps.fits.exact.posterior import Alone, share
from binreps.fits.exact.shared import Shared
from binreps.fits.left_out import LeftOut
from binreps.fits.marginal import Marginal
from binreps.model import NAMES, Float, Prior, Rates
from binreps.notes import Note, say_long
from binreps.options import check_level, check_whole, generator, kinds_checked, shown
from binreps.table import Table

_MANY = 1_000  # cells of all populations, which take up to 3 seconds


@dataclass(frozen=True, repr=False)
class PopulationFit(BayesFit):
    """The posterior of one population of several; everything that `BayesFit` offers.

    Its error rates are informed by all populations, and so is what follows from them. The evidence is that
    of all populations together.
    """

    kind: ClassVar[str] = "population"
    method: ClassVar[str] = "Bayes, exact, error rates shared"
    alone: ClassVar[bool] = False
    populations: PopulationsFit
    name: Hashable

    @property
    def identifiable(self) -> bool:
        """Whether all populations together can tell prevalences and error rates apart."""
        return self.populations.identifiable

    def __reduce__(self) -> tuple[Any, ...]:
        return getitem, (self.populations, self.name)


@dataclass(frozen=True, repr=False)
class PopulationsFit(AnyFit):
    """The exact posterior of a prevalence per population and shared error rates; made by `fit_populations`.

    `result[name]` is the posterior of one population, with everything that `fit_bayes` gives: scores,
    predictions, intervals, draws. `len(result)` and `for name in result` do what they do for a dictionary.
    Two fits of equal counts and priors are equal; a fit is pickled as these, and fitted again.

    Attributes
    ----------
    prior : Prior
        That of the prevalence holds for each population, independently.
    """

    kind: ClassVar[str] = "populations"
    method: ClassVar[str] = "Bayes, exact"
    notes: ClassVar[tuple[Note, ...]] = ()  # type: ignore[misc]
    prior: Prior
    _populations: tuple[tuple[Hashable, CountTable], ...]
    _shared: Shared | Alone = field(compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return fit_populations, (dict(self._populations), self.prior)

    # Populations -----------------------------------------------------------------------------------

    @property
    def counts(self) -> Mapping[Hashable, CountTable]:
        """The data of each population."""
        return MappingProxyType(self._tables)

    @cached_property
    def _tables(self) -> dict[Hashable, CountTable]:
        return dict(self._populations)

    @property
    def everyone(self) -> CountTable:
        """All individuals."""
        return sum(self._tables.values(), CountTable([], []))

    @property
    def parts(self) -> Mapping[Hashable, Fit]:
        """The fit of each population by its name."""
        return MappingProxyType({name: self[name] for name in self})

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The names of the populations, in the order given."""
        return tuple(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._tables)

    def __getitem__(self, name: Hashable) -> PopulationFit:
        if name not in self._tables:
            raise OptionError(f"name must be one of {_listed(self.names)}, got {name!r}")
        if name not in self._fits:
            posterior = self._shared.of(self.names.index(name))
            self._fits[name] = PopulationFit(self._tables[name], self.prior, posterior, self, name)
        return self._fits[name]

    @cached_property
    def _fits(self) -> dict[Hashable, PopulationFit]:
        return {}

    # Rates -----------------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:
        """Posterior means; `.rates.prevalence` is an array with one entry per population."""
        return self._rates(self._shared.mean)

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations, in the same form."""
        return self._rates(self._shared.sd)

    def _rates(self, values: Any) -> Rates:
        return Rates(values[2:], float(values[0]), float(values[1]))

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior of all populations, without binomial coefficients; priors normalised."""
        return self._shared.log_evidence

    @property
    def error(self) -> float:
        """Numerical error of means, sds and evidence, in units of the sd; fixed when the fit is made.

        It is the difference of two grids of different sizes: the error of the coarser. On a ridge that the
        grids cannot follow it is large, and says so. Intervals have an error of their own beside it.
        """
        return self._shared.error

    @kinds_checked
    def marginal(self, name: str) -> Marginal:
        """The posterior of one of the shared rates, false_positive or false_negative.

        For a prevalence see `result[population].marginal("prevalence")`.
        """
        if name not in NAMES[1:]:
            raise OptionError(f"name must be one of {', '.join(NAMES[1:])}, got {name!r}")
        return self._shared.false_positive if name == NAMES[1] else self._shared.false_negative

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends."""
        check_level(level)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        prevalence = np.stack([self[name].marginal(NAMES[0]).quantile(tails) for name in self])
        p, q = (self.marginal(name).quantile(tails) for name in NAMES[1:])
        return Rates(prevalence[:, 0], p[0], q[0]), Rates(prevalence[:, 1], p[1], q[1])

    def draws(self, size: int, rng: np.random.Generator | int) -> dict[Hashable, Rates]:
        """Independent joint draws: for each population its prevalence, with error rates that all share."""
        return {name: Rates(*drawn) for name, drawn in self.joint_draws(size, rng).items()}

    def joint_draws(self, size: int, rng: np.random.Generator | int) -> Mapping[Hashable, Float]:
        """The same as arrays of shape (parameters, size)."""
        check_whole("size", size, 0)
        return dict(zip(self, self._shared.joint_draws(size, generator(rng)), strict=True))

    # Words -----------------------------------------------------------------------------------------

    def left_out(self) -> LeftOut:
        """The log predictive density of every cell of every population, given all other individuals."""
        return LeftOut.joined([part.left_out() for part in self.parts.values()])

    def everyones_scores(self) -> tuple[Any, Any, Any, Any]:
        """n, s, the number of individuals and the score of every record of the data."""
        each = zip(*(part.everyones_scores() for part in self.parts.values()), strict=True)
        n, s, weight, score = (np.concatenate(columns) for columns in each)
        return n, s, weight, score

    @property
    def identifiable(self) -> bool:
        """Whether the data can tell prevalences and error rates apart without the prior's help.

        They can if one population does on its own (n ≥ 3, or known statuses, which may come from any of the
        populations). Two populations with n ≥ 2 can if their prevalences differ. One replicate each never
        does, however many populations there are.
        """
        return _identified(self._tables) != "never"

    def summary(self, level: float = 0.9) -> Table:
        """Mean, sd and equal-tailed interval of every prevalence and of the shared rates."""
        lower, upper = self.interval(level)
        shared = rates_rows(
            **{
                name: Rates(0.0, rates.false_positive, rates.false_negative)
                for name, rates in (
                    ("estimate", self.rates),
                    ("sd", self.sd),
                    ("lower", lower),
                    ("upper", upper),
                )
            }
        )
        columns: dict[str, list[Any]] = {
            "rate": ["prevalence"] * len(self) + shared["rate"][1:],
            "population": [*self, *[None] * (len(shared["rate"]) - 1)],
        }
        for name, rates in (("estimate", self.rates), ("sd", self.sd), ("lower", lower), ("upper", upper)):
            columns[name] = [*rates.prevalence, *shared[name][1:]]
        title = fit_title(f"{self.method}, {len(self)} population{'s' * (len(self) > 1)}", self.everyone)
        return Table(columns, title=title, note=self._words(level))

    def _words(self, level: float) -> str:
        """How probable the intervals are, how exact, and what identifies the rates."""
        marginals = [self[name].marginal(NAMES[0]) for name in self]
        error = max(self.error, *(marginal.error for marginal in marginals))
        note = f"{level:.0%} credible intervals; numerical error below {error:.0e} of a standard deviation"
        return "\n".join(filter(None, [note, _SENTENCES[_identified(self._tables)]]))


@kinds_checked
def fit_populations(populations: Mapping[Any, CountTable], prior: Prior | None = None) -> PopulationsFit:
    """The Bayesian fit of several populations that took the same test.

    Each population has its own prevalence; the false-positive and the false-negative rate are the same in all
    of them (Hui and Walter, 1980). Given the error rates the prevalences are independent, so the posterior is
    integrated deterministically in time proportional to the number of populations.

    Parameters
    ----------
    populations : mapping of name to CountTable
        Any tables, empty ones included. Known statuses inform the fit.
    prior : Prior, optional
        Default `Prior()`; its prevalence is that of each population, independently.

    Returns
    -------
    PopulationsFit

    Examples
    --------
    >>> clinic = CountTable([2, 2, 2], [0, 1, 2], weight=[120, 60, 220])
    >>> survey = CountTable([2, 2, 2], [0, 1, 2], weight=[500, 80, 20])
    >>> result = fit_populations({"clinic": clinic, "survey": survey})
    >>> print(result)  # doctest: +ELLIPSIS
    Bayes, exact, 2 populations: 1,000 individuals, 2,000 replicates, 3 cells
    rate            population  estimate     sd  lower  upper
    prevalence      clinic         0.658  0.028  0.611  0.704
    prevalence      survey         0.035  0.010  0.020  0.052
    false-positive  –              0.073  0.009  0.059  0.088
    false-negative  –              0.091  0.017  0.064  0.121
    sensitivity     –              0.909  0.017  0.879  0.936
    specificity     –              0.927  0.009  0.912  0.941
    90% credible intervals; numerical error below ... of a standard deviation
    With two replicates only different prevalences tell the error rates: the closer they are, the more rests
    on the prior.
    >>> result["survey"].predict(2, [1, 2]).round(3)
    array([0.043, 0.847])
    """
    if not isinstance(populations, Mapping) or not populations:
        raise OptionError(f"populations must be a dictionary of count tables, got {shown(populations)}")
    for name, table in populations.items():
        if not isinstance(table, CountTable):
            raise DataError(f"population {name!r} must be a CountTable, got {type(table).__name__}")
    if None in populations:
        raise OptionError("every population needs a name, got None")
    prior = integrable(prior)
    if (cells := sum(map(len, populations.values()))) > _MANY:
        say_long(
            f"a fit of several populations takes longer with every (n, s), and there are {cells:,}: "
            "from seconds to minutes; fit_bayes takes a fraction of it for each alone"
        )
    return PopulationsFit(prior, tuple(populations.items()), share(list(populations.values()), prior))


_SENTENCES = {
    "alone": "",
    "together": (
        "With two replicates only different prevalences tell the error rates: the closer they are, the more "
        "rests on the prior."
    ),
    "never": rests_on_prior(False),
}


def _identified(tables: Mapping[Hashable, CountTable]) -> str:
    """What identifies the rates: one population "alone", several "together", or nothing ("never")."""
    everyone = sum(tables.values(), CountTable([], []))
    if everyone.identifiable:  # error rates are shared, so anyone's replicates or known status will do
        return "alone"
    twice = [bool(np.any(table.n[table.known == UNKNOWN] >= 2)) for table in tables.values()]
    return "together" if sum(twice) >= 2 else "never"


def _listed(names: tuple[Hashable, ...]) -> str:
    """The first few names."""
    shown = ", ".join(repr(name) for name in names[:5])
    return f"{shown}, …" if len(names) > 5 else shown
