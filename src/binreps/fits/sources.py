"""Sources with error rates of their own: readers, tests, raters, judges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import DataError, OptionError
from binreps.fits.base import Fit, Trouble
from binreps.fits.posterior import Estimate
from binreps.fits.sampled.posterior import Few, SourcesPosterior
from binreps.fits.sampled.prior import SourcePrior
from binreps.fits.sampled.run import AGREE, sample
from binreps.model import Float, Model, Rates
from binreps.notes import Note
from binreps.options import check_level, check_tol, check_whole, generator, kinds_checked, shown
from binreps.readings import Readings
from binreps.table import Table

_FEW, _FEW_SOURCES = 64, 500  # draws that scoring in another engine uses; sources up to which so many

_SIDES = ("false_positive", "false_negative")


@dataclass(frozen=True, repr=False)
class SourcesFit(Fit):
    """The posterior of the prevalence and of each source's error rates; made by `fit_sources`.

    It is sampled: every number is an average over the draws of several chains, the same for the same seed.
    Individuals are asked about by who said what: `Readings`, a mapping of source to answer, such as
    `{"ann": 1, "bob": 0}`, or a list of these. A source that the fit has not seen counts as one of its
    population.

    Attributes
    ----------
    readings : Readings
        The data.
    prior : SourcePrior
    tol : float
        The numerical error that was asked for.
    """

    kind: ClassVar[str] = "sources"
    method: ClassVar[str] = "Bayes, sampled, error rates by source"
    has_model: ClassVar[bool] = False  # of counts: who said it matters
    has_sources: ClassVar[bool] = True
    usual_error: ClassVar[float] = np.inf  # what was asked for and not reached has a finding of its own
    readings: Readings
    prior: SourcePrior  # type: ignore[assignment]
    posterior: SourcesPosterior = field(compare=False)
    tol: float = 0.05
    notes: tuple[Note, ...] = ()

    @property
    def counts(self) -> CountTable:  # type: ignore[override]
        """The individuals without their sources."""
        return self.readings.counts

    @property
    def sources(self) -> tuple[Hashable, ...]:
        """The names of the sources."""
        return self.readings.sources

    @property
    def model(self) -> Model:  # type: ignore[override]
        """What the parameters are called."""
        return self.posterior.model

    @property
    def identifiable(self) -> bool:
        """Whether the data can tell prevalence and error rates apart without the prior's help."""
        return identified(self.readings)

    # Rates -----------------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:  # type: ignore[override]
        """Posterior means; the error rates are arrays with one entry per source."""
        return self._rates(self.posterior.mean)

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations, in the same form."""
        return self._rates(self.posterior.sd)

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends."""
        lower, upper = self._quantiles(level)
        return self._rates(lower), self._rates(upper)

    def _rates(self, values: Float) -> Rates:
        size = len(self.sources)
        return Rates(float(values[0]), values[1 : size + 1], values[size + 1 : 2 * size + 1])

    def _quantiles(self, level: float) -> tuple[Float, Float]:
        """Both ends of the interval of every parameter."""
        check_level(level)
        values = self.posterior.values.reshape(self.posterior.mean.size, -1)
        lower, upper = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=1)
        return np.asarray(lower, float), np.asarray(upper, float)

    @property
    def rhat(self) -> float:
        """The largest split R̂: above 1.05 the chains disagree."""
        return float(self.posterior.sampled.rhat.max())

    @property
    def effective(self) -> float:
        """How many independent draws the mean of a rate is worth, at least."""
        return float(np.nanmin(self.posterior.sampled.effective))

    def draws(self, size: int, rng: np.random.Generator | int) -> Rates:
        """Draws of prevalence (size) and of the error rates (sources × size)."""
        drawn = self.joint_draws(size, rng)[None]
        sources = len(self.sources)
        return Rates(drawn[0], drawn[1 : sources + 1], drawn[sources + 1 : 2 * sources + 1])

    # Individuals -----------------------------------------------------------------------------------

    def _chances(self, asked: tuple[Any, ...], *, new: bool) -> Estimate:
        records, shape = self._asked(asked)
        found = self.posterior.chances(records, new=new)
        return Estimate(*(value.reshape(shape)[()] for value in found))

    def _ends(self, asked: tuple[Any, ...], level: float, *, new: bool) -> list[Estimate]:
        check_level(level)
        records, shape = self._asked(asked)
        found = self.posterior.quantiles(records, [(1 - level) / 2, (1 + level) / 2], new=new)
        return [Estimate(*(value.reshape(shape)[()] for value in end)) for end in found]

    def _interval_error(self, asked: tuple[Any, ...], level: float, *, new: bool) -> Any:
        return np.max([end.error for end in self._ends(asked, level, new=new)], axis=0)

    def _asked(self, asked: tuple[Any, ...]) -> tuple[Readings, tuple[int, ...]]:
        """The records that are asked about; those of the data if none are."""
        if len(asked) > 1:
            rule = "ask about Readings, or about what each source said, such as {'ann': 1, 'bob': 0}"
            raise OptionError(f"{rule}, got {len(asked)} arguments")
        return Readings.asked(asked[0] if asked else self.readings)

    def few(self, *, new: bool) -> Few:
        """A few draws that stand for all: `attach` and `score_file` score with these in any engine."""
        size = (_FEW << new) >> (len(self.sources) > _FEW_SOURCES)  # predictions, ratios, need more
        return self.posterior.few(self.readings, size, new=new)

    # Words -----------------------------------------------------------------------------------------

    def summary(self, level: float = 0.9) -> Table:
        """Mean, sd, interval and readings: the prevalence, each source's rates, and their population."""
        lower, upper = self._quantiles(level)
        size, totals = len(self.sources), self.readings.totals.sum(axis=1).tolist()
        rows = {
            "rate": ["prevalence", *(side.replace("_", "-") for side in _SIDES for _ in self.sources)]
            + [f"{word} {side.replace('_', '-')}" for side in _SIDES for word in ("mean", "spread")],
            "source": [None, *self.sources, *self.sources, *[None] * 4],
            "estimate": self.posterior.mean.tolist(),
            "sd": self.posterior.sd.tolist(),
            "lower": lower.tolist(),
            "upper": upper.tolist(),
            "readings": [sum(totals), *totals, *totals, *[None] * 4],
        }
        first = [x for j in range(size) for x in (1 + j, 1 + size + j)]  # source by source
        order = [0, *first, *range(2 * size + 1, 2 * size + 5)]
        columns = {name: [values[i] for i in order] for name, values in rows.items()}
        data = self.readings
        who = f"{data.individuals:,} individuals, {data.readings:,} readings by {size:,} sources"
        return Table(columns, title=f"{self.method}: {who}", note=self._words(level))

    def source_table(self, level: float = 0.9) -> Table:
        """One row per source: its two error rates with their intervals, and its readings.

        `worse_than_chance` is the probability that the two add up to more than 1.
        """
        lower, upper = self.interval(level)
        columns: dict[str, Any] = {
            "source": list(self.sources),
            "readings": self.readings.totals.sum(axis=1).tolist(),
        }
        for name in _SIDES:
            for end, rates in (("", self.rates), ("_lower", lower), ("_upper", upper)):
                columns[name + end] = getattr(rates, name).tolist()
        columns["worse_than_chance"] = self.worse_than_chance.tolist()
        return Table(columns, title=f"{len(self.sources):,} sources")

    @property
    def worse_than_chance(self) -> Float:
        """The probability that each source's two error rates add up to more than 1."""
        return np.asarray((self._sums() > 1).mean(axis=1))

    def says_nothing(self, within: float) -> Float:
        """The probability that each source's two error rates add up to 1, within some distance."""
        return np.asarray((np.abs(self._sums() - 1) < within).mean(axis=1))

    def _sums(self) -> Float:
        """Draws of p + q of each source."""
        size = len(self.sources)
        both = self.posterior.values[1 : 2 * size + 1].reshape(2, size, self.posterior.values[0].size)
        return np.asarray(both.sum(axis=0))

    def _words(self, level: float) -> str:
        """How probable the intervals are, how exact, and how the chains were."""
        chains = self.posterior.sampled.logs.shape[2]
        said = (
            f"{level:.0%} credible intervals; numerical error below {self.error:.2f} of a standard deviation"
        )
        how = (
            f"{chains} chains, worth {self.effective:,.0f} independent draws or more, R̂ up to {self.rhat:.3f}"
        )
        return "\n".join([said, how, *map(str, self.notes)])

    def troubles(self) -> Iterator[Trouble]:
        """Whether the chains can be trusted."""
        longer = (
            "Ask for more sweeps (sweeps=…); if that does not help, the data say too little: add readings or "
            "known statuses."
        )
        if self.rhat > AGREE:
            sentence = f"The chains disagree: R̂ is {self.rhat:.2f}, and should be below {AGREE}."
            yield Trouble("chains-disagree", self.rhat, sentence, longer)
        if self.error > self.tol:
            sentence = (
                f"The numerical error is {self.error:.2g} of a standard deviation; {self.tol:.2g} was asked "
                "for and not reached."
            )
            yield Trouble("error-not-reached", self.error, sentence, longer)


def identified(readings: Readings) -> bool:
    """Whether three sources read common individuals, or statuses of both classes are known.

    Several readings by one source count as those of several.
    """
    unknown = readings.known == UNKNOWN
    known = {int(status) for status in readings.known} - {UNKNOWN}
    return len(known) == 2 or readings.take(np.flatnonzero(unknown)).counts.identifiable


@kinds_checked
def fit_sources(
    readings: Readings,
    prior: SourcePrior | None = None,
    *,
    rng: np.random.Generator | int,
    tol: float = 0.05,
    chains: int | None = None,
    sweeps: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> SourcesFit:
    """Estimate the prevalence and the error rates of each source, sampled until the error is small.

    Each source j has a false-positive rate p_j and a false-negative rate q_j of its own, which come from a
    population of sources with a mean and a spread that are learned too: a source with few readings is taken
    for one like the others. Single sources may be worse than chance; weighted by their readings, the sources
    of each connected component (those who read the same individuals, directly or through others) are not.

    Parameters
    ----------
    readings : Readings
        Who said what; equal records are merged. Known statuses inform the fit.
    prior : SourcePrior, optional
        Default `SourcePrior()`.
    rng : numpy.random.Generator or int
        Where random numbers come from: the same seed gives the same bits.
    tol : float
        The numerical error to reach, in posterior standard deviations: a 95 % bound for each rate.
    chains : int, optional
        Independent chains; 64 for small data, otherwise 16.
    sweeps : int, optional
        The most sweeps of each chain. If the error is not reached by then, `check` says so.
    progress : callable, optional
        Called with the sweeps done and to do.

    Returns
    -------
    SourcesFit

    Examples
    --------
    >>> said = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> readings = Readings.wide(said, ["ann", "bob", "eve"], weight=[30, 20, 20, 30])
    >>> fit = fit_sources(readings, rng=1)
    >>> fit.rates.false_positive.round(1), fit.rates.false_negative.round(1)
    (array([0. , 0. , 0.4]), array([0. , 0. , 0.4]))
    >>> fit.predict([{"ann": 1, "eve": 0}, {"eve": 1}, {"someone new": 1}]).round(1)
    array([1. , 0.6, 0.7])
    """
    check_readings(readings)
    if prior is not None and not isinstance(prior, SourcePrior):
        raise OptionError(f"prior must be a SourcePrior, such as SourcePrior(), got {shown(prior)}")
    check_tol(tol)
    if chains is not None:
        check_whole("chains", chains, 4, 1024)
    if sweeps is not None:
        check_whole("sweeps", sweeps, 20, 10**7)
    chosen, data = prior or SourcePrior(), readings.merged()
    how: dict[str, Any] = {"tol": tol, "chains": chains, "sweeps": sweeps, "progress": progress}
    sampled = sample(data, chosen, generator(rng), **how)
    return SourcesFit(data, chosen, SourcesPosterior(data.sources, sampled), float(tol))


def check_readings(readings: object) -> None:
    """Refuse what are no readings."""
    if not isinstance(readings, Readings):
        raise DataError(
            f"readings must be Readings, got {type(readings).__name__}; Readings(individual, source, result) "
            "makes them from columns, Readings.wide from a matrix"
        )


def parameters(fit: SourcesFit) -> Mapping[str, Float]:
    """The draws of every kind of parameter: shapes (chains, draws), of rates (chains, draws, sources)."""
    values, size = fit.posterior.values, len(fit.sources)
    names = fit.model.names[-4:]
    rates = {
        name: np.moveaxis(values[1 + i * size : 1 + (i + 1) * size], 0, -1) for i, name in enumerate(_SIDES)
    }
    return {"prevalence": values[0], **rates, **dict(zip(names, values[-4:], strict=True))}
