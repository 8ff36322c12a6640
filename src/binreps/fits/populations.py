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
from binreps.fits.base import PrintsItsSummary, fit_title, integrable
from binreps.fits.bayes import BayesFit, expected_score
from binreps.fits.exact.grid import Marginal
from binreps.fits.exact.posterior import TOLERANCE
from binreps.fits.exact.shared import Shared, SharedPosterior
from binreps.model import NAMES, Prior, Rates
from binreps.options import check_level, check_whole, generator
from binreps.table import Table

_LEAST_ERROR = 1e-11


@dataclass(frozen=True, repr=False)
class PopulationFit(BayesFit):
    """The posterior of one population of several; everything that `BayesFit` offers.

    Its error rates are informed by all populations, and so is what follows from them. The evidence is that
    of all populations together.
    """

    method: ClassVar[str] = "Bayes, exact, error rates shared"
    populations: PopulationsFit
    name: Hashable

    def __reduce__(self) -> tuple[Any, ...]:
        return getitem, (self.populations, self.name)

    @property
    def _lines_of(self) -> SharedPosterior:
        assert isinstance(self.posterior, SharedPosterior)
        return self.posterior

    def _compute_score(self, n: int, s: int, gap: bool = False) -> tuple[float, float]:
        """On lines of θ for a cell that is not in the data: two grids may agree there and both be wrong."""
        cells = self.counts
        if np.any((cells.n == n) & (cells.s == s) & (cells.known == UNKNOWN)):
            return super()._compute_score(n, s, gap)
        value, error = self._on_lines(lambda lines: expected_score(lines, n, s, gap), TOLERANCE, 0.0)
        return value, max(error, self.posterior.error * 1e-3, _LEAST_ERROR)

    def _predict_by_refitting(self, n: int, s: int) -> tuple[float, float]:
        """Evidence with the new individual known to be positive, over the evidence without that knowledge."""
        shared, which = self._lines_of.shared, self._lines_of.which
        unknown = shared.with_more(which, CountTable([n], [s]))
        positive = shared.with_more(which, CountTable([n], [s], known=[1]))
        change = positive.grid.log_evidence - unknown.grid.log_evidence
        error = sum(abs(one.grid.log_evidence - one.check.log_evidence) for one in (unknown, positive))
        return float(np.exp(min(change, 0.0))), error + 4e-16 * abs(unknown.grid.log_evidence)


@dataclass(frozen=True, repr=False)
class PopulationsFit(PrintsItsSummary):
    """The exact posterior of a prevalence per population and shared error rates; made by `fit_populations`.

    `result[name]` is the posterior of one population, with everything that `fit_bayes` gives: scores,
    predictions, intervals, draws. `len(result)` and `for name in result` do what they do for a dictionary.
    Two fits of equal counts and priors are equal; a fit is pickled as these, and fitted again.

    Attributes
    ----------
    prior : Prior
        That of the prevalence holds for each population, independently.
    """

    method: ClassVar[str] = "Bayes, exact"
    prior: Prior
    _populations: tuple[tuple[Hashable, CountTable], ...]
    _shared: Shared = field(compare=False)

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
            posterior = SharedPosterior(self._shared, self.names.index(name))
            self._fits[name] = PopulationFit(self._tables[name], self.prior, posterior, self, name)
        return self._fits[name]

    @cached_property
    def _fits(self) -> dict[Hashable, PopulationFit]:
        return {}

    # Rates -----------------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:
        """Posterior means; `.rates.prevalence` is an array with one entry per population."""
        return self._rates(self._shared.grid.mean)

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations, in the same form."""
        return self._rates(self._shared.grid.sd)

    def _rates(self, values: Any) -> Rates:
        return Rates(values[2:], float(values[0]), float(values[1]))

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior of all populations, without binomial coefficients; priors normalised."""
        return self._shared.grid.log_evidence

    @property
    def error(self) -> float:
        """Numerical error: in units of the sd for means, sds and quantiles, relative for the evidence.

        It is the difference of two grids of different sizes, or of two marginals of a prevalence, once asked
        for: the error of the coarser. On a ridge that the grids cannot follow it is large, and says so.
        """
        fits = [fit.error for fit in self._fits.values()]
        return max(self._shared.error, 1e-10, *fits)

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
        check_whole("size", size, 0)
        source = generator(rng)
        p, q = self._shared.draw_errors(size, source)
        thetas = (self._shared.draw_prevalence(i, p, q, source) for i in range(len(self)))
        return {name: Rates(theta, p, q) for name, theta in zip(self, thetas, strict=True)}

    # Words -----------------------------------------------------------------------------------------

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
        rows = [f"prevalence, {name}" for name in self] + ["false-positive", "false-negative"]
        columns: dict[str, list[Any]] = {"rate": [*rows, "sensitivity", "specificity"]}
        for name, rates in {"estimate": self.rates, "sd": self.sd, "lower": lower, "upper": upper}.items():
            other = {"lower": upper, "upper": lower}.get(name, rates)
            rest = [other.sensitivity, other.specificity]
            rest = [rates.false_negative, rates.false_positive] if name == "sd" else rest
            columns[name] = [*rates.prevalence, rates.false_positive, rates.false_negative, *rest]
        note = (
            f"{level:.0%} credible intervals; numerical error below {self.error:.0e} of a standard deviation"
        )
        sentence = _SENTENCES[_identified(self._tables)]
        everyone = sum(self._tables.values(), CountTable([], []))
        title = fit_title(f"{self.method}, {len(self)} population{'s' * (len(self) > 1)}", everyone)
        return Table(columns, title=title, note="\n".join(filter(None, [note, sentence])))


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
    rate                estimate     sd  lower  upper
    prevalence, clinic     0.658  0.028  0.611  0.704
    prevalence, survey     0.035  0.010  0.020  0.052
    false-positive         0.073  0.009  0.059  0.088
    false-negative         0.091  0.017  0.064  0.121
    sensitivity            0.909  0.017  0.879  0.936
    specificity            0.927  0.009  0.912  0.941
    90% credible intervals; numerical error below ... of a standard deviation
    With two replicates only different prevalences tell the error rates: the closer they are, the more rests
    on the prior.
    >>> result["survey"].predict(2, [1, 2]).round(3)
    array([0.043, 0.847])
    """
    if not isinstance(populations, Mapping) or not populations:
        raise OptionError(f"populations must be a dictionary of count tables, got {populations!r}")
    for name, table in populations.items():
        if not isinstance(table, CountTable):
            raise DataError(f"population {name!r} must be a CountTable, got {type(table).__name__}")
    prior = integrable(prior)
    return PopulationsFit(prior, tuple(populations.items()), Shared(list(populations.values()), prior))


_SENTENCES = {
    "alone": "",
    "together": (
        "With two replicates only different prevalences tell the error rates: the closer they are, the more "
        "rests on the prior."
    ),
    "never": "The data alone cannot tell prevalence and error rates apart: the estimates rest on the prior.",
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
