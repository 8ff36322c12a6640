"""Sources with error rates of their own: readers, tests, raters, judges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import DataError, OptionError
from binreps.fits.base import Fit, Trouble
from binreps.fits.left_out import LeftOut
from binreps.fits.posterior import Estimate, Memory
from binreps.fits.sampled.calibration import Calibration, learned_discount, learned_from_gold
from binreps.fits.sampled.pairs import Pair, agreeing_pairs, counted_once
from binreps.fits.sampled.posterior import Few, SourcesPosterior
from binreps.fits.sampled.prior import SourcePrior
from binreps.fits.sampled.run import AGREE, sample
from binreps.model import Float, Model, Rates
from binreps.notes import Note
from binreps.options import check_level, check_tol, check_whole, generator, kinds_checked, real, shown
from binreps.people import POPULATION
from binreps.readings import Readings
from binreps.table import Table

_FEW, _FEW_SOURCES = 64, 500  # draws that scoring in another engine uses; sources up to which so many

_SURE = 0.9  # probability from which a source is called worse than chance, or one that says nothing
_SAYS_NOTHING = 0.15  # 1 − p − q below which an answer says next to nothing
_ENOUGH = 30  # readings from which a source can be called one that says nothing

_SIDES = ("false_positive", "false_negative")


@dataclass(frozen=True, repr=False)
class SourcesFit(Fit):
    """The posterior of the prevalence and of each source's error rates; made by `fit_sources`.

    It is sampled: every number is an average over the draws of several chains, the same for the same seed.
    Individuals are asked about by who said what: `Readings`, a mapping of source to answer, such as
    `{"ann": 1, "bob": 0}`, or a list of these; where the prevalence depends on it, with `population=` or
    `covariates=`. A source that the fit has not seen counts as one of its population.

    Attributes
    ----------
    readings : Readings
        The data.
    prior : SourcePrior
    tol : float
        The numerical error that was asked for.
    merge : tuple of tuples
        Sources that were taken for one.
    """

    kind: ClassVar[str] = "sources"
    method: ClassVar[str] = "Bayes, sampled, error rates by source"
    has_model: ClassVar[bool] = False  # of counts: who said it matters
    has_sources: ClassVar[bool] = True
    beside: ClassVar[tuple[str, ...]] = ("population", "covariates")
    usual_error: ClassVar[float] = np.inf  # what was asked for and not reached has a finding of its own
    readings: Readings
    prior: SourcePrior  # type: ignore[assignment]
    posterior: SourcesPosterior = field(compare=False)
    tol: float = 0.05
    notes: tuple[Note, ...] = ()
    merge: tuple[tuple[Hashable, ...], ...] = ()

    @property
    def counts(self) -> CountTable:  # type: ignore[override]
        """The individuals without their sources."""
        return self.readings.counts

    @property
    def calibration(self) -> Calibration:
        """As how much of an independent one each reading counts, and what known statuses change."""
        return self.posterior.calibration

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

    @property
    def overall(self) -> Rates:
        """The prevalence, and the mean error rates of the population of sources."""
        return _overall(self.posterior.mean)

    def overall_interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each of `overall`."""
        lower, upper = self._quantiles(level)
        return _overall(lower), _overall(upper)

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
        return self.posterior.sampled.most_rhat

    @property
    def effective(self) -> float:
        """How many independent draws the mean of a rate is worth, at least."""
        return self.posterior.sampled.least_effective

    def draws(self, size: int, rng: np.random.Generator | int) -> Rates:
        """Draws of prevalence (size) and of the error rates (sources × size)."""
        drawn = self.joint_draws(size, rng)[None]
        sources = len(self.sources)
        return Rates(drawn[0], drawn[1 : sources + 1], drawn[sources + 1 : 2 * sources + 1])

    # Individuals -----------------------------------------------------------------------------------

    def _chances(self, asked: tuple[Any, ...], *, new: bool, **about: Any) -> Estimate:
        records, shape = self.asked(asked, **about)
        found = self.posterior.chances(records, new=new)
        return Estimate(*(value.reshape(shape)[()] for value in found))

    def _ends(self, asked: tuple[Any, ...], level: float, *, new: bool, **about: Any) -> list[Estimate]:
        check_level(level)
        records, shape = self.asked(asked, **about)
        found = self.posterior.quantiles(records, [(1 - level) / 2, (1 + level) / 2], new=new)
        return [Estimate(*(value.reshape(shape)[()] for value in end)) for end in found]

    def _interval_error(self, asked: tuple[Any, ...], level: float, *, new: bool, **about: Any) -> Any:
        return np.max([end.error for end in self._ends(asked, level, new=new, **about)], axis=0)

    def asked(
        self, asked: tuple[Any, ...], population: Any = None, covariates: Mapping[str, Any] | None = None
    ) -> tuple[Readings, tuple[int, ...]]:
        """The records that are asked about, with who they are; those of the data if none are."""
        if len(asked) > 1:
            rule = "ask about Readings, or about what each source said, such as {'ann': 1, 'bob': 0}"
            raise OptionError(f"{rule}, got {len(asked)} arguments")
        records, shape = Readings.asked(asked[0] if asked else self.readings)
        records = records.merging(self.merge)
        return self._whose(records, population, covariates), shape

    def _whose(
        self, records: Readings, population: Any = None, covariates: Mapping[str, Any] | None = None
    ) -> Readings:
        """Records with their population or covariates as this study has them."""
        own, given = self.readings.people, {} if covariates is None else dict(covariates)
        if population is not None:
            given = {POPULATION: population, **given}
        if own is None:
            if given:
                raise OptionError(f"the fit knows nothing of {next(iter(given))!r}: it was made without")
            return records
        if not given and records.people is not None:
            if records.people.study is own.study:
                return records
            given = records.people.columns
        if not given:
            word = "population" if own.by_population else "covariates"
            raise OptionError(f"the prevalence depends on {word}: give {word}=… for those asked about")
        return records._with(people=own.asked(given, len(records)))

    @kinds_checked
    def from_text(self, typed: Mapping[str, str]) -> dict[str, Any]:
        """Covariates that were typed, as values of the columns that the fit uses."""
        people = self.readings.people
        return dict(typed) if people is None else people.study.from_text(typed)

    def left_out(self) -> LeftOut:
        """The log predictive density of every record, given all others; smoothed, as there are draws only."""
        data = self.readings
        found: Any = self.posterior.left_out_draws(data)
        return LeftOut(*data.sizes, data.known, data.weight, *found)

    def everyones_scores(self) -> tuple[Any, Any, Any, Any]:
        """n, s, the number of individuals and the score of every record of the data."""
        return (*self.readings.sizes, self.readings.weight, self.score())

    def few(self, *, new: bool) -> Few:
        """A few draws that stand for all: `attach` and `score_file` score with these in any engine."""
        size = (_FEW << new) >> (len(self.sources) > _FEW_SOURCES)  # predictions, ratios, need more
        found: Few = self._few.get(new, lambda: self.posterior.few(self.readings, size, new=new))
        return found

    @cached_property
    def _few(self) -> Memory:
        """The few draws, chosen once for individuals of the data and once for new ones."""
        return Memory(2)

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
        if self.readings.people is not None:
            columns = self._with_people(columns, level)
        data = self.readings
        who = f"{data.individuals:,} individuals, {data.readings:,} readings by {size:,} sources"
        return Table(columns, title=f"{self.method}: {who}", note=self._words(level))

    def _with_people(self, columns: dict[str, list[Any]], level: float) -> dict[str, list[Any]]:
        """The rows of populations, or of covariates, after that of the average prevalence."""
        people = self.readings.people
        assert people is not None
        own = self.prevalence_table(level) or self.odds_ratios(level)
        rows: list[dict[str, Any]] = []
        for row in own:
            if people.by_population:
                rows.append({"rate": "prevalence", **row})
                continue
            ends = {"lower": row["lower"], "upper": row["upper"]}
            rows.append({"rate": "odds-ratio", **row, "sd": float("nan")})
            logs = {name: float(np.log(value)) for name, value in ends.items()}
            rows.append({"rate": "log-odds", **row, "estimate": row["log_odds"], **logs})
        word = "population" if people.by_population else "covariate"
        found = {"rate": columns["rate"], word: [None] * len(columns["rate"]), **columns}
        return {
            name: [*values[:1], *(row.get(name) for row in rows), *values[1:]]
            for name, values in found.items()
        }

    def prevalence_table(self, level: float = 0.9) -> Table | None:
        """The prevalence of each population with its interval, one row each; None if there is one."""
        people, side = self.readings.people, self.posterior.sampled.side
        if people is None or side is None or not people.by_population:
            return None
        check_level(level)
        values = expit(side.draws.reshape(len(side.mean), -1).astype(float))
        lower, upper = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=1)
        columns = {"estimate": side.mean, "sd": side.sd, "lower": lower, "upper": upper}
        names = {"population": list(people.populations)}
        return Table({**names, **{name: own.tolist() for name, own in columns.items()}})

    def odds_ratios(self, level: float = 0.9, *, per: Mapping[str, float] | None = None) -> Table:
        """The odds ratio of each column of the covariates: posterior medians, as of `fit_covariates`.

        `per` is the step of a column of numbers, such as `{"age": 10}`.
        """
        check_level(level)
        people, side = self.readings.people, self.posterior.sampled.side
        if people is None or side is None or people.by_population:
            raise OptionError("the fit was made without covariates, so there are no odds ratios")
        steps = {str(term): 1.0 for term in people.terms} | {
            str(name): real(x) for name, x in (per or {}).items()
        }
        if len(steps) > len(people.terms) or not all(0 < abs(step) < np.inf for step in steps.values()):
            rule = f"per must name a finite step of columns ({', '.join(map(str, people.terms))})"
            raise OptionError(f"{rule}, got {shown(per)}")
        scale = people.study.sd / np.array(list(steps.values()))
        slopes = side.draws[1:].reshape(len(scale), -1) / scale[:, None]
        middle, lower, upper = np.quantile(slopes, [0.5, (1 - level) / 2, (1 + level) / 2], axis=1)
        columns = {"estimate": np.exp(middle), "lower": np.exp(lower), "upper": np.exp(upper)}
        columns |= {"log_odds": side.mean[1:] / scale, "sd": side.sd[1:] / scale}
        names = {"covariate": list(steps), "per": list(steps.values())}
        note = f"{level:.0%} credible intervals of posterior medians"
        found = {**names, **{name: own.tolist() for name, own in columns.items()}}
        return Table(found, title="Odds ratios of being positive", note=note)

    def usual_odds_ratios(self, level: float = 0.9) -> Table | None:
        """Odds ratios for steps near the sd of each column of numbers; None without covariates."""
        people = self.readings.people
        if people is None or people.by_population:
            return None
        return self.odds_ratios(level, per=people.study.usual_steps)

    def source_table(self, level: float = 0.9) -> Table:
        """One row per source: its two error rates with their intervals, and its readings.

        `worse_than_chance` is the probability that the two add up to more than 1; `verdict` says whom to
        retrain, or to ask whether yes and no are swapped.
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
        columns["verdict"] = self.verdicts
        return Table(columns, title=f"{len(self.sources):,} sources")

    def component_table(self) -> Table:
        """One row per group of sources that individuals link, directly or through others; the largest first.

        `better_than_chance` is 1 − p − q of its sources, weighted by their readings: positive by assumption,
        which is what says which answer means positive in that group; groups cannot be compared.
        """
        of, each = self.readings.components, self.readings.totals.sum(axis=1)
        total = 1 - self.rates.false_positive - self.rates.false_negative
        size = int(of.max(initial=-1)) + 1
        readings = np.bincount(of, each, size)
        better = np.bincount(of, each * total, size) / np.maximum(readings, 1)
        share = np.bincount(of, self.readings.totals[:, 1], size) / np.maximum(readings, 1)
        order = np.argsort(-readings, kind="stable")
        names = [[name for name, own in zip(self.sources, of, strict=True) if own == i] for i in order]
        columns = {
            "group": list(range(1, size + 1)),
            "sources": [len(own) for own in names],
            "names": [", ".join(map(str, own[:5])) + (", …" if len(own) > 5 else "") for own in names],
            "readings": readings[order].astype(int).tolist(),
            "share_yes": share[order].tolist(),
            "better_than_chance": better[order].tolist(),
        }
        return Table(columns, title=f"{size:,} groups of sources" if size != 1 else "All sources are linked")

    @property
    def worse_than_chance(self) -> Float:
        """The probability that each source's two error rates add up to more than 1."""
        return np.asarray((self._sums() > 1).mean(axis=1))

    @property
    def verdicts(self) -> list[str]:
        """In a word what is wrong with each source; nothing if it reads as the others do.

        "says the opposite" and "says nothing" (p + q is 1 within .15, which takes some readings to be sure
        of) have a probability of .9; "calls too much", "calls too little" and "errs often" compare the 90 %
        interval with the source in the middle.
        """
        lower, _ = self.interval()
        more = [self._above(getattr(self.rates, name), getattr(lower, name)) for name in _SIDES]
        enough = self.readings.totals.sum(axis=1) >= _ENOUGH
        words = {
            "says the opposite": self.worse_than_chance >= _SURE,
            "says nothing": (self.says_nothing(_SAYS_NOTHING) >= _SURE) & enough,
            "errs often": more[0] & more[1],
            "calls too much": more[0],
            "calls too little": more[1],
        }
        return [str(word) for word in np.select(list(words.values()), list(words), "")]

    @staticmethod
    def _above(rates: Float, lower: Float) -> Any:
        """Whose rate is clearly above that of the source in the middle."""
        middle = np.median(rates) if rates.size else 0.0
        return (lower > middle) & (rates > 1.5 * middle + 0.02)

    def gold_table(self) -> Table | None:
        """Those of known status as scored without it, before and after these recalibrate; None without.

        Log loss is minus the mean log probability of the truth.
        """
        known = self.readings.take(np.flatnonzero(self.readings.known != UNKNOWN))
        if not self.calibration.by_gold:
            return None
        before = self.posterior.without_status(known)
        weight, status = known.weight / known.individuals, known.known
        rows = {"before": before, "after": self.calibration.moved(before)}
        chances = [np.where(status == 1, score, 1 - score) for score in rows.values()]
        columns: dict[str, list[Any]] = {
            "scores": list(rows),
            "known": [known.individuals] * 2,
            "truly_positive": [float(weight @ status)] * 2,
            "mean_score": [float(weight @ score) for score in rows.values()],
            "log_loss": [float(-weight @ np.log(np.maximum(chance, 1e-15))) for chance in chances],
        }
        return Table(columns, title="Known statuses, each scored without its own")

    def says_nothing(self, within: float) -> Float:
        """The probability that each source's two error rates add up to 1, within some distance."""
        return np.asarray((np.abs(self._sums() - 1) < within).mean(axis=1))

    @kinds_checked
    def odds(self, source: Hashable) -> tuple[float, float]:
        """By what a no and a yes of this source multiply the odds of being positive, at the mean rates.

        A source that the fit has not seen counts as the mean of its population; a reading as the part of an
        independent one that it is worth.
        """
        if source in self.sources:
            j = self.sources.index(source)
            p, q = (float(rates[j]) for rates in list(self.rates)[1:])
        else:
            p, q = float(self.posterior.mean[-4]), float(self.posterior.mean[-2])
        part = self.calibration.discount
        return (q / (1 - p)) ** part, ((1 - q) / p) ** part

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
        return "\n".join([said, how, str(self.calibration).capitalize(), *map(str, self.notes)])

    def agreeing_pairs(self) -> list[Pair]:
        """Pairs of sources that agree in their errors: copies, or two that were trained alike."""
        return agreeing_pairs(self.readings, self.posterior)

    def counted_once(self, pair: Pair) -> dict[str, Float]:
        """Everyone's score as it is, without either of a pair, and with the two as one; at the mean rates."""
        scores = counted_once(self.readings, self.posterior, pair)
        return {how: np.asarray(self.calibration.moved(score)) for how, score in scores.items()}

    def troubles(self) -> Iterator[Trouble]:
        """Whether the chains can be trusted."""
        longer = (
            "Read no more digits than that; the data say little here: add readings, or individuals of known "
            "status."
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


def _overall(values: Float) -> Rates:
    """Prevalence and mean error rates among all parameters, whose last are mean and spread of both."""
    return Rates(float(values[0]), float(values[-4]), float(values[-2]))


def identified(readings: Readings) -> bool:
    """Whether three sources read common individuals, or statuses of both classes are known.

    Several readings by one source count as those of several. In populations, or with covariates, two are
    enough: prevalences that differ tell errors apart (Hui and Walter 1980).
    """
    people = readings.people
    if people is not None and len(np.unique(people.rows, axis=0)) > 1 and readings.sizes[0].max() > 1:
        return True
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
    independent: bool = False,
    merge: Sequence[Sequence[Hashable]] = (),
    progress: Callable[[int, int], object] | None = None,
) -> SourcesFit:
    """Estimate the prevalence and the error rates of each source, sampled until the error is small.

    Each source j has a false-positive rate p_j and a false-negative rate q_j of its own, which come from a
    population of sources with a mean and a spread that are learned too: a source with few readings is taken
    for one like the others. Single sources may be worse than chance; weighted by their readings, the sources
    of each connected component (those who read the same individuals, directly or through others) are not.

    Real readings of one individual depend on each other given its status, as some are difficult. Scores and
    predictions therefore count each reading as a part of an independent one (`fit.calibration`), learned
    without truth by leaving one reading out; and where statuses of both classes are known these recalibrate
    the scores. Rates
    and their intervals are those of the model.

    Parameters
    ----------
    readings : Readings
        Who said what; equal records are merged. Known statuses inform the fit. Readings in populations
        (`readings.in_populations`) have a prevalence for each; with covariates (`readings.with_covariates`)
        logit θ_i = α + x_i′β, as in `fit_covariates`.
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
    independent : bool
        Whether readings of one individual are independent given its status: then scores are the model's.
    merge : sequence of sequences of sources
        Sources to take for one, such as `[("ann", "bob")]` of whom one copies the other: their answer where
        they agree, none where they differ.
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
    >>> fit.predict([{"ann": 1, "eve": 0}, {"ann": 0, "eve": 1}]).round(1)
    array([1., 0.])
    >>> print(fit.calibration)
    each reading counts as .70 of an independent one
    """
    check_readings(readings)
    if prior is not None and not isinstance(prior, SourcePrior):
        raise OptionError(f"prior must be a SourcePrior, such as SourcePrior(), got {shown(prior)}")
    check_tol(tol)
    if chains is not None:
        check_whole("chains", chains, 4, 1024)
    if sweeps is not None:
        check_whole("sweeps", sweeps, 20, 10**7)
    groups = _groups(merge, readings)
    chosen, data = prior or SourcePrior(), readings.merging(groups).merged()
    how: dict[str, Any] = {"tol": tol, "chains": chains, "sweeps": sweeps, "progress": progress}
    plain = SourcesPosterior(data.sources, sample(data, chosen, generator(rng), **how))
    posterior = plain if independent else _calibrated(data, plain)
    return SourcesFit(data, chosen, posterior, float(tol), merge=groups)


def _groups(merge: Any, readings: Readings) -> tuple[tuple[Hashable, ...], ...]:
    """Groups of sources that are taken for one, checked."""
    rule = "merge must be groups of two or more sources, such as [('ann', 'bob')], none in two groups"
    if isinstance(merge, str) or not all(isinstance(group, tuple | list) for group in merge):
        raise OptionError(f"{rule}, got {shown(merge)}")
    own = {str(name): name for name in readings.sources} | {name: name for name in readings.sources}
    names = [name for group in merge for name in group]
    if len(set(names)) < len(names) or any(len(group) < 2 for group in merge):
        raise OptionError(f"{rule}, got {shown(merge)}")
    if lost := [name for name in names if name not in own]:
        raise OptionError(f"merge must name sources of the data, got {lost[0]!r}")
    return tuple(tuple(own[name] for name in group) for group in merge)  # 7 is also "7": options are text


def _calibrated(data: Readings, plain: SourcesPosterior) -> SourcesPosterior:
    """The posterior whose scores count readings as what they are worth."""
    posterior = plain.with_calibration(Calibration(learned_discount(data, *plain.at_the_mean(data))))
    known = data.take(np.flatnonzero(data.known != UNKNOWN))
    if len(set(known.known.tolist())) < 2:  # of one class alone they would move everybody towards it
        return posterior
    moved = learned_from_gold(posterior.without_status(known), known.known, known.weight)
    return posterior.with_calibration(Calibration(posterior.calibration.discount, *moved))


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
