"""The fit with covariates: who is likely to be positive, by age, site or anything else that is known.

::

    logit θ_i = α + x_i′β        expit(α) ~ Beta(½, ½),  β ~ N(0, 1.5²) per standardised column
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from binreps.counts import UNKNOWN, whole_numbers
from binreps.covariates import Category, CovariateTable
from binreps.errors import DataError, OptionError
from binreps.fits.base import PosteriorFit, Trouble, integrable
from binreps.fits.covariate_troubles import troubles_of
from binreps.fits.left_out import LeftOut
from binreps.fits.points.cloud import Cloud, make_cloud
from binreps.fits.points.density import STRAIGHT, Smooth
from binreps.fits.points.posterior import CloudPosterior, log_odds_quantiles
from binreps.fits.points.rule import bound
from binreps.fits.points.target import Target
from binreps.fits.posterior import Estimate
from binreps.model import ALIKE, Float, Prior, Records
from binreps.notes import Note
from binreps.options import check_level, check_tol, check_whole, generator, kinds_checked, real, shown
from binreps.table import Table

SLOPE_SD = 1.5
"""The prior sd of a slope per standardised column: wider ones run away under separation."""

_BLOCK = 2**21  # rows × points of a block of scores
_SOME = 5000  # rows that the mean prevalence of a part of the study is taken from


@dataclass(frozen=True, repr=False)
class ProfileFit(PosteriorFit):
    """The posterior for one profile of covariates, or for a population; made by a `CovariatesFit`.

    Everything that a fit of one population offers, with the prevalence of whoever has these covariates:
    predictions, decision tables, stopping tables. Its data are those of the whole study.
    """

    kind: ClassVar[str] = "profile"
    method: ClassVar[str] = "Bayes, by covariates"
    alone: ClassVar[bool] = False
    has_model: ClassVar[bool] = False
    posterior: CloudPosterior = field(compare=False)
    name: str

    def summary(self, level: float = 0.9) -> Table:
        """As of any fit; the line above says for whom."""
        found = super().summary(level)
        return Table(dict(found.columns), title=f"{self.method}: {self.name}", note=found.note)


@dataclass(frozen=True, repr=False)
class CovariatesFit(PosteriorFit):
    """The posterior of slopes, error rates and prevalences; made by `fit_covariates`.

    As a fit of three rates its prevalence is the average over the study's individuals: `score(n, s)` is the
    answer for someone whose covariates are not known. With `covariates=` scores and predictions are those of
    individuals who have them; `profile` and `population` give whole fits for one profile and for any
    population. Two fits of equal data and priors are equal; a fit is pickled as these, and fitted again.

    Attributes
    ----------
    records : CovariateTable
        The data.
    slope_sd : float
        Prior sd of each slope, per standardised column.
    tol : float
        The numerical error that was asked for, in posterior standard deviations.
    """

    kind: ClassVar[str] = "covariates"
    method: ClassVar[str] = "Bayes, by covariates"
    has_model: ClassVar[bool] = False
    alone: ClassVar[bool] = False
    usual_error: ClassVar[float] = 0.02
    beside: ClassVar[tuple[str, ...]] = ("covariates",)
    posterior: CloudPosterior = field(compare=False)
    records: CovariateTable  # type: ignore[misc]
    slope_sd: float = SLOPE_SD
    tol: float = 1e-3

    def __reduce__(self) -> tuple[Any, ...]:
        return _refit, (self.records, self.prior, self.slope_sd, self.tol)

    @property
    def cloud(self) -> Cloud:
        """The weighted points."""
        return self.posterior.cloud

    @property
    def notes(self) -> tuple[Note, ...]:  # type: ignore[override]
        """What the reader should know of design, data and numerical error."""
        return tuple(Note(one.name, one.sentence) for one in self.troubles())

    @property
    def identifiable(self) -> bool:
        """Whether the data can tell prevalence and error rates apart without the prior's help.

        With covariates that vary two replicates are enough.
        """
        counts = self.counts
        if counts.identifiable:
            return True
        twice = bool(np.any(counts.n[counts.known == UNKNOWN] >= 2))
        return twice and bool(self.records.terms) and len(self.records) > 1

    # Slopes ----------------------------------------------------------------------------------------

    @cached_property
    def _log_odds(self) -> dict[str, Smooth]:
        """The posterior of each slope, per unit of the user's scale."""
        masses, sd = self.cloud.points.masses, self.records.sd
        found = {}
        for term, slope, scale in zip(self.records.terms, self.cloud.parameters.beta, sd, strict=True):
            found[term] = Smooth(slope / scale, masses, STRAIGHT)
        return found

    @kinds_checked
    def slope(self, term: str) -> Smooth:
        """The posterior of one slope, in log odds per unit: as `marginal` gives those of rates."""
        if term not in self._log_odds:
            raise OptionError(f"term must be one of {', '.join(self.records.terms) or 'none'}, got {term!r}")
        return self._log_odds[term]

    @kinds_checked
    def odds_ratios(self, level: float = 0.9, *, per: Mapping[str, float] | None = None) -> Table:
        """The odds ratio of each column: what one unit, or a level against its reference, does to the odds.

        Parameters
        ----------
        level : float
            Probability of the intervals, which are equal-tailed.
        per : mapping of name to number, optional
            The step of a column of numbers, such as `{"age": 10}`.

        Returns
        -------
        Table
            Columns covariate, per, estimate (the posterior median), lower, upper, and log_odds with its sd.
        """
        check_level(level)
        steps, tails = self._steps(per), np.array([0.5, (1 - level) / 2, (1 + level) / 2])
        masses = self.cloud.points.masses[0]
        rows: dict[str, list[Any]] = {
            name: [] for name in ("covariate", "per", "estimate", "lower", "upper", "log_odds", "sd")
        }
        for term, slope, scale in zip(
            self.records.terms, self.cloud.parameters.beta, self.records.sd, strict=True
        ):
            step = steps[term]
            log_odds = float(masses @ slope) / scale * step
            sd = float(np.sqrt(max(masses @ slope**2 - (masses @ slope) ** 2, 0.0))) / scale * abs(step)
            ends = np.sort(np.exp(self.slope(term).quantile(tails) * step)[1:]).tolist()
            middle = float(np.exp(self.slope(term).quantile(0.5) * step))
            for name, value in zip(rows, (term, step, middle, *ends, log_odds, sd), strict=True):
                rows[name].append(value)
        note = f"{level:.0%} credible intervals of posterior medians; {self._references()}"
        return Table(rows, title="Odds ratios of being positive", note=note)

    def usual_odds_ratios(self, level: float = 0.9) -> Table:
        """Odds ratios for steps near the sd of each column of numbers."""
        return self.odds_ratios(level, per=self.records.usual_steps)

    def _steps(self, per: Mapping[str, float] | None) -> dict[str, float]:
        """The step of each column, 1 if none is named."""
        steps = dict.fromkeys(self.records.terms, 1.0)
        numeric = [
            each.name
            for each in self.records.covariates
            if not isinstance(each, Category) and each.name in steps
        ]
        for name, step in (per or {}).items():
            if name not in numeric:
                known = ", ".join(map(repr, numeric)) or "none"
                raise OptionError(f"per must name columns of numbers ({known}), got {name!r}")
            if not 0 < abs(real(step)) < np.inf:
                raise OptionError(f"per must give a finite step ≠ 0, got {shown(step)} for {name!r}")
            steps[name] = float(step)
        return steps

    def _references(self) -> str:
        """Which levels others are compared with."""
        if self.records.formula is not None:
            return f"per unit of each column of {self.records.formula.text}"
        levels = [
            f"{each.name} against {each.levels[0]}"
            for each in self.records.covariates
            if isinstance(each, Category) and each.levels
        ]
        return ", ".join(levels) or "per unit of each column"

    # Profiles and populations ----------------------------------------------------------------------

    def profile(self, covariates: Mapping[str, Any]) -> ProfileFit:
        """The fit for whoever has these covariates: predictions, decision and stopping tables."""
        rows, shape = self.records.rows_of(covariates)
        if shape != ():
            raise OptionError(f"a profile has one value of each covariate, got shape {shape}; see population")
        at = self.cloud.parameters
        theta = expit(at.alpha + rows[0] @ at.beta)
        said = ", ".join(f"{name} {covariates[name]}" for name in self.records.names) or "everyone"
        return ProfileFit(self.counts, self.prior, CloudPosterior(self.cloud, theta), said)

    def population(
        self, covariates: Mapping[str, Any], weight: Any = None, *, name: str = "a population"
    ) -> ProfileFit:
        """The fit for a population: its prevalence is the mean over individuals with these covariates."""
        rows, shape = self.records.rows_of(covariates)
        weights = np.ones(len(rows)) if weight is None else whole_numbers("weight", weight).astype(float)
        if weights.shape != (len(rows),) or not weights.sum() > 0:
            raise DataError(f"weight must have one whole number per individual ({len(rows)}), one > 0")
        del shape
        return self._average(rows, weights, name)

    def among(self, n: int) -> ProfileFit:
        """The fit for those of the study who have n replicates; of very many, for some of them."""
        check_whole("n", n, 0)
        table = self.records.thinned(_SOME)
        here = (table.n == n) & (table.known == UNKNOWN)
        here = here if np.any(here) else np.ones(len(table), bool)
        return self._average(table.design()[here], table.weight[here].astype(float), f"n = {n}")

    def _average(self, rows: Float, weights: Float, name: str) -> ProfileFit:
        """The fit whose prevalence is the mean over rows of the design."""
        at, total = self.cloud.parameters, np.zeros(self.cloud.points.v.shape[1])
        step = max(_BLOCK // total.size, 1)
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            total += weights[some] @ expit(rows[some] @ at.beta + at.alpha)
        posterior = CloudPosterior(self.cloud, total / weights.sum())
        return ProfileFit(self.counts, self.prior, posterior, name)

    def typical(self) -> dict[str, dict[str, Any]]:
        """Covariates of three individuals of the study: low, middle and high risk (10, 50 and 90 %)."""
        if not len(self.records) or not self.records.names:
            return {}
        at, mass = self.cloud.parameters, self.cloud.points.masses[0]
        slopes = at.beta @ mass
        risk = np.concatenate(
            [self.records.design(slice(k, k + 65_536)) @ slopes for k in range(0, len(self.records), 65_536)]
        )
        order = np.argsort(risk, kind="stable")
        reached = np.cumsum(self.records.weight[order]) / self.records.individuals
        found = {}
        for name, share in (("low", 0.1), ("middle", 0.5), ("high", 0.9)):
            i = order[min(int(np.searchsorted(reached, share)), order.size - 1)]
            found[f"{name} risk"] = {
                each.name: each.decode(values[i : i + 1])[0]
                for each, values in zip(self.records.covariates, self.records.values, strict=True)
            }
        return found

    def prevalence_curves(self, level: float = 0.9, points: int = 41) -> dict[str, Table]:
        """Prevalence over the range of each covariate of numbers, with intervals; the others are average.

        Average is the mean of every column of the design: of a category, its shares in the study.
        """
        check_level(level)
        check_whole("points", points, 2, 10_000)
        at, mass = self.cloud.parameters, self.cloud.points.masses[0]
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        found: dict[str, Table] = {}
        column = 0
        if self.records.formula is not None:  # which has no column for each covariate
            return found
        for each, values in zip(self.records.covariates, self.records.values, strict=True):
            if not isinstance(each, Category) and np.any(there := values == values):
                x = np.linspace(values[there].min(), values[there].max(), points)
                z = (x - self.records.mean[column]) / self.records.sd[column]
                eta = z[:, None] * at.beta[column] + at.alpha
                ends = expit(_row_quantiles(eta, np.broadcast_to(mass, eta.shape), tails))
                columns = {"x": x, "prevalence": expit(eta) @ mass, "lower": ends[:, 0], "upper": ends[:, 1]}
                found[each.name] = Table({name: own.tolist() for name, own in columns.items()})
            column += len(each.terms)
        return found

    # Individuals -----------------------------------------------------------------------------------

    def _chances(
        self, asked: tuple[Any, ...], *, new: bool, covariates: Mapping[str, Any] | None = None
    ) -> Estimate:
        """P(T = 1) and its error; without covariates, of someone drawn from the study.

        Ask with n, s and `covariates=`, which broadcast, or with a `CovariateTable`.
        """
        own = self._own(asked, covariates)
        if own is None:
            return super()._chances(asked, new=new)
        return Estimate(*self._row_chances(*own, new=new))

    def _ends(
        self,
        asked: tuple[Any, ...],
        level: float,
        *,
        new: bool,
        covariates: Mapping[str, Any] | None = None,
    ) -> list[Estimate]:
        own = self._own(asked, covariates)
        if own is None:
            return super()._ends(asked, level, new=new)
        return [Estimate(end, float("nan")) for end in self._ends_of(*own, level, new)]

    def _interval_error(
        self,
        asked: tuple[Any, ...],
        level: float,
        *,
        new: bool,
        covariates: Mapping[str, Any] | None = None,
    ) -> Any:
        """NaN where covariates are given: the ends of such intervals are not compared with others."""
        own = self._own(asked, covariates)
        if own is None:
            return super()._interval_error(asked, level, new=new)
        return np.full(np.shape(self._ends_of(*own, level, new)[0]), np.nan)[()]

    def left_out(self) -> LeftOut:
        """The log predictive density of every record, given all other individuals."""
        table = self.records
        masses = self.cloud.points.masses.T
        values = np.zeros((len(table), masses.shape[1]))
        known = table.known
        for some, eta, negative, positive in self._blocks(Records(table.n, table.s), table.design()):
            top = max(float(negative.max()), float(positive.max()))
            up, down = _shares(eta, negative, positive)
            own = known[some, None]
            density = np.where(own != 0, up, 0.0) + np.where(own != 1, down, 0.0)
            values[some] = top - np.log(np.maximum((1 / density) @ masses, 1e-300))
        return LeftOut.exact(table, values[:, 0], bound(values[:, 1:].T))

    def everyones_scores(self) -> tuple[Any, Any, Any, Any]:
        """n, s, the number of individuals and the score of every record of the data."""
        records = self.records
        return records.n, records.s, records.weight, self.score(records)

    @kinds_checked
    def answers(
        self, n: Any, s: Any, *, new: bool, level: float | None, covariates: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What a join adds for individuals with these results and covariates."""
        asked, ends = (self.predict, self.predict_interval) if new else (self.score, self.score_interval)
        found = {"score": asked(n, s, covariates=covariates)}
        if level is not None:
            found["lower"], found["upper"] = ends(n, s, covariates=covariates, level=level)
        return found

    def _own(
        self, asked: tuple[Any, ...], covariates: Mapping[str, Any] | None
    ) -> tuple[Records, Float, tuple[int, ...]] | None:
        """Records and rows of the design, and the shape of the answer; None where no covariates are given."""
        if len(asked) == 1 and isinstance(asked[0], CovariateTable):
            table = asked[0]
            rows = self.records.rows_of({name: table.column(name) for name in table.names})[0]
            return Records(table.n, table.s), rows, table.n.shape
        if covariates is None:
            return None
        records, (rows, shape) = Records.of(*asked), self.records.rows_of(covariates)
        try:
            full = np.broadcast_shapes(records.shape, shape)
        except ValueError:
            got = f"got shapes {records.shape} and {shape}"
            raise DataError(f"covariates must broadcast with n and s, {got}") from None
        where = np.broadcast_to(np.arange(len(rows)).reshape(shape), full).ravel()
        n, s = (np.broadcast_to(each, full).ravel() for each in (records.n, records.s))
        return Records(n, s), rows[where], full

    def _blocks(
        self, records: Records, rows: Float
    ) -> Iterator[tuple[NDArray[np.intp], Float, Float, Float]]:
        """Some records of one key: which, η at points, and log likelihoods of both classes at points."""
        at = self.cloud.parameters
        keys, where = records.distinct()
        step = max(_BLOCK // at.p.size, 1)
        for k, key in enumerate(keys):
            negative, positive = (log[0] for log in ALIKE.log_classes(ALIKE.record(key), at.p, at.q))
            own = np.flatnonzero(where == k)
            for start in range(0, own.size, step):
                some = own[start : start + step]
                yield some, rows[some] @ at.beta + at.alpha, negative, positive

    def _row_chances(
        self, records: Records, rows: Float, shape: tuple[int, ...], *, new: bool
    ) -> tuple[Any, Any]:
        """P(T = 1) and its error for records with their own rows of the design."""
        masses = self.cloud.points.masses.T
        values = np.zeros((len(rows), masses.shape[1]))
        for some, eta, negative, positive in self._blocks(records, rows):
            if new:
                up, down = _shares(eta, negative, positive)
                positives, negatives = up @ masses, down @ masses
                values[some] = positives / np.maximum(positives + negatives, 1e-300)
            else:
                values[some] = expit(eta + (positive - negative)) @ masses
        chance = np.clip(values[:, 0], 0.0, 1.0).reshape(shape)[()]
        return chance, bound(values[:, 1:].T).reshape(shape)[()]

    def _ends_of(
        self, records: Records, rows: Float, shape: tuple[int, ...], level: float, new: bool
    ) -> tuple[Any, Any]:
        """Both ends of intervals of P(T = 1 | s; parameters)."""
        check_level(level)
        tails, mass = np.array([(1 - level) / 2, (1 + level) / 2]), self.cloud.points.masses[0]
        ends = np.zeros((len(rows), 2))
        for some, eta, negative, positive in self._blocks(records, rows):
            own = np.broadcast_to(mass, eta.shape)
            if new:
                own = own * np.add(*_shares(eta, negative, positive))
                own = own / own.sum(axis=1)[:, None]
            ends[some] = expit(_row_quantiles(eta + (positive - negative), own, tails))
        return ends[:, 0].reshape(shape)[()], ends[:, 1].reshape(shape)[()]

    def draw_positives(self, size: int, rng: np.random.Generator | int) -> Any:
        """Joint draws of the number of positive individuals in each cell of `counts`, shape (size, cells)."""
        check_whole("size", size, 0)
        source = generator(rng)
        where = self.cloud.choose(size, source)
        counts, table = self.counts, self.records
        places = {key: i for i, key in enumerate(zip(counts.n, counts.s, counts.known, strict=True))}
        found = np.zeros((size, len(counts)), np.int64)
        at = self.cloud.parameters
        p, q, alpha, beta = at.p[where], at.q[where], at.alpha[where], at.beta[:, where]
        step = max(_BLOCK // max(size, 1), 1)
        for start in range(0, len(table), step):
            some = slice(start, start + step)
            records = Records(table.n[some], table.s[some])
            negative, positive = ALIKE.log_classes(records, p, q)
            chance = expit(table.design(some) @ beta + alpha + positive - negative)
            known = table.known[some][:, None]
            chance = np.where(known == UNKNOWN, chance, known)
            drawn = source.binomial(table.weight[some][:, None], chance)
            keys = zip(table.n[some], table.s[some], table.known[some], strict=True)
            np.add.at(found.T, [places[key] for key in keys], drawn)
        return found

    def parameter_draws(self, size: int, rng: np.random.Generator | int) -> dict[str, Float]:
        """Draws of the three rates, of `intercept` (at average covariates) and of log odds per unit."""
        check_whole("size", size, 0)
        where = self.cloud.choose(size, generator(rng))
        at = self.cloud.parameters
        found = {"prevalence": self.posterior.theta[where], "false_positive": at.p[where]}
        found |= {"false_negative": at.q[where], "intercept": at.alpha[where]}
        slopes = at.beta[:, where] / self.records.sd[:, None]
        return found | dict(zip(self.records.terms, slopes, strict=True))

    # Words -----------------------------------------------------------------------------------------

    def summary(self, level: float = 0.9, *, per: Mapping[str, float] | None = None) -> Table:
        """The rates, then for each column of the design its odds ratio and its log odds.

        The prevalence is the average over the study's individuals. An odds ratio is a posterior median, and
        its spread is that of the log odds.
        """
        found = super().summary(level)
        if not self.records.terms:
            return found
        columns = {name: list(values) for name, values in found.columns.items()}
        columns = {"rate": columns["rate"], "covariate": [None] * len(columns["rate"]), **columns}
        ratios = self.odds_ratios(level, per=per)
        for i, term in enumerate(ratios["covariate"]):
            lower, upper = ratios["lower"][i], ratios["upper"][i]
            rows = (
                ("odds-ratio", term, ratios["estimate"][i], float("nan"), lower, upper),
                ("log-odds", term, ratios["log_odds"][i], ratios["sd"][i], np.log(lower), np.log(upper)),
            )
            for row in rows:
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
        return Table(columns, title=found.title, note=found.note)

    def _words(self, level: float) -> str:
        """What intervals are, how exact, and what the troubles say."""
        said = super()._words(level)
        return "\n".join([said, *(note.sentence for note in self.notes)])

    @property
    def interval_error(self) -> float:
        """The error of the ends of intervals, those of slopes included."""
        return max(super().interval_error, *(law.error for law in self._log_odds.values()), 0.0)

    def troubles(self) -> Iterator[Trouble]:
        """What should be known before the fit is believed."""
        if self.error > max(self.usual_error, self.tol):
            how = " (by sampling, as weighted points did worse)" if self.cloud.sampled else ""
            said = f"The numerical error of the fit is {self.error:.1g} of a standard deviation{how}"
            yield Trouble(
                "numerical-error",
                self.error,
                f"{said}: the study is small for so many columns.",
                "Read no more digits than that; fewer covariates, or more individuals, are easier to "
                "integrate.",
            )
        yield from troubles_of(self.records, self.cloud)


def _shares(eta: Float, negative: Float, positive: Float) -> tuple[Float, Float]:
    """P(s, T = 1) and P(s, T = 0) at points, up to a factor."""
    theta = expit(eta)
    top = max(float(negative.max()), float(positive.max()))
    return theta * np.exp(positive - top), (1 - theta) * np.exp(negative - top)


def _row_quantiles(odds: Float, masses: Float, tails: Float) -> Float:
    """Quantiles of each row of log odds, with its own masses."""
    pairs = zip(odds, masses, strict=True)
    return np.stack([log_odds_quantiles(mass[None], row, tails)[0] for row, mass in pairs])


@kinds_checked
def fit_covariates(
    records: CovariateTable,
    prior: Prior | None = None,
    *,
    slope_sd: float = SLOPE_SD,
    tol: float = 1e-3,
) -> CovariatesFit:
    """The Bayesian fit in which prevalence depends on covariates: logit θ_i = α + x_i′β.

    Replicates err alike, as in `fit_bayes`; without covariates the two fits agree, evidence included. The
    posterior is a cloud of quasi-random points with a fixed seed: the same answer every time, with its
    numerical error measured. Where the points do not suffice
    (small studies with many columns) more are taken, up to a limit, then chains sample; `error` says what was
    reached.

    Parameters
    ----------
    records : CovariateTable
        Results and covariates of individuals; an empty table is an answer (the prior). Known statuses inform
        the fit.
    prior : Prior, optional
        Default `Prior()`. That of the prevalence is the prior at average covariates.
    slope_sd : float
        Prior standard deviation of each slope, per standardised column.
    tol : float
        Numerical error to reach, in posterior standard deviations.

    Returns
    -------
    CovariatesFit

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> age = rng.integers(20, 80, 400)
    >>> positive = rng.random(400) < expit((age - 60) / 8)
    >>> s = rng.binomial(3, np.where(positive, 0.85, 0.1))
    >>> fit = fit_covariates(CovariateTable([3] * 400, s, {"age": age}))
    >>> print(fit.odds_ratios(per={"age": 10}))
    Odds ratios of being positive
    covariate     per  estimate  lower  upper  log_odds     sd
    age        10.000     3.606  2.886  4.692     1.290  0.148
    90% credible intervals of posterior medians; per unit of each column
    >>> fit.predict(1, 1, covariates={"age": [30, 50, 70]}).round(2)
    array([0.13, 0.63, 0.96])
    """
    if not isinstance(records, CovariateTable):
        rule = "records must be a CovariateTable, such as CovariateTable(n, s, {'age': ages})"
        raise DataError(f"{rule}, got {type(records).__name__}")
    if not 0 < real(slope_sd) < np.inf:
        raise OptionError(f"slope_sd must be a finite number > 0, got {shown(slope_sd)}")
    check_tol(tol)
    chosen = integrable(prior)
    cloud = make_cloud(Target(records, chosen, float(slope_sd)), float(tol))
    posterior = CloudPosterior(cloud, cloud.points.prevalence)
    return CovariatesFit(records.counts, chosen, posterior, records, float(slope_sd), float(tol))


def _refit(records: CovariateTable, prior: Prior, slope_sd: float, tol: float) -> CovariatesFit:
    """What a pickled fit becomes."""
    return fit_covariates(records, prior, slope_sd=slope_sd, tol=tol)
