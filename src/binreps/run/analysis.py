"""Analysis: everything one run computed. Terminal, JSON, report and page only render it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.covariates import CovariateTable
from binreps.decide.checks.findings import Findings
from binreps.decide.checks.run import check
from binreps.decide.evaluate import Evaluation, evaluate
from binreps.decide.indecision import risk_by_cost
from binreps.decide.loss import DECISIONS, Loss, check_loss, decision_table
from binreps.decide.predictive import predictive_counts
from binreps.errors import BinrepsError, OptionError
from binreps.fits.base import checked_prior, rates_rows
from binreps.model import NAMES, Prior
from binreps.notes import Note
from binreps.options import check_level, check_whole
from binreps.run.methods import METHODS, check_method
from binreps.table import Table
from binreps.tables.guess import Guess
from binreps.tables.opened import Reading

"""The ids of the rates that are shown: those of the model, and what they say of the test."""

_MOST_REPLICATES = 20  # of the decision table, unless more are asked for
_SEED = 1  # of the predictive draws: the same figure every time

LISTED = 10_000
"""Rows up to which they are listed; beyond, the file of scores has them."""


@dataclass(frozen=True)
class Settings:
    """What the user chose."""

    method: str = "bayes"
    prior: Prior = field(default_factory=Prior)
    loss: Loss = field(default_factory=Loss)
    level: float = 0.9
    replicates: int | None = None  # of the decision table; None: as many as anyone had, at most 20
    independent: bool = False  # whether readings of one individual by sources are, given its status

    def __post_init__(self) -> None:
        check_method(self.method)
        check_level(self.level)
        checked_prior(self.prior)
        check_loss(self.loss)
        _ = self.loss.thresholds  # refuses costs of 0, from which none follow
        if self.replicates is not None:
            check_whole("replicates", self.replicates, 1, 1000)


@dataclass(frozen=True)
class Source:
    """Where the data came from and how they were read."""

    name: str
    paths: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()
    guess: Guess | None = None
    known: str | None = None
    truth: str | None = None
    population: str | None = None
    covariates: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # all that the table has
    missing: int | None = None  # results that are missing; None where only counts were given
    no_result: Mapping[str, int] = field(default_factory=dict)  # words for no result, and how often
    sheet: str | None = None  # of a workbook
    separator: str | None = None  # of a text file
    reading: Reading | None = field(default=None, repr=False, compare=False)
    records: CovariateTable | None = field(default=None, repr=False, compare=False)  # with their statuses


class Estimate(NamedTuple):
    """A number and its interval; NaN where a method has none."""

    estimate: float
    lower: float
    upper: float


class Profile(NamedTuple):
    """Someone of a typical risk: their covariates, the fit for them, and what to answer."""

    name: str
    covariates: Mapping[str, Any]
    fit: Any
    decisions: Table


@dataclass(frozen=True)
class Part:
    """One population: its counts, its fits, and what follows from the one that decides."""

    name: Any
    settings: Settings
    fit: Any
    fits: Mapping[str, Any]  # by every method that these data allow, by id
    cells: Table  # n, s, weight, (known,) score, lower, upper, decision: everyone in the data
    decisions: Table  # the next individual, for every result
    judged: Mapping[str, Evaluation]  # by method, where a truth is given
    truth: CountTable | None = None

    @property
    def counts(self) -> CountTable:
        """The data."""
        counts: CountTable = self.fit.counts
        return counts

    @property
    def answers(self) -> dict[str, int]:
        """How many individuals are negative, inconclusive, positive; "undecided" if someone has no score."""
        totals = dict.fromkeys(DECISIONS.values(), 0)
        for decision, weight in zip(self.cells["decision"], self.cells["weight"], strict=True):
            word = decision or "undecided"
            totals[word] = totals.get(word, 0) + weight
        return totals

    @property
    def judgement(self) -> Table | None:
        """All methods against the truth, if there is one."""
        if not self.judged:
            return None
        columns: dict[str, list[Any]] = {"method": list(self.judged)}
        for name in ("sensitivity", "specificity", "share_inconclusive", "total_risk", "brier"):
            columns[name] = [getattr(result, name) for result in self.judged.values()]
        return Table(columns)

    @property
    def believed(self) -> str:
        """The method whose intervals are shown beside all estimates: a posterior, if there is one."""
        posteriors = ("covariates", "overdispersed", "bayes")
        return next((m for m in posteriors if m in self.fits), self.settings.method)

    @property
    def deciding(self) -> str:
        """The method that decides: the one chosen, or that of the covariates where there are any."""
        return "covariates" if "covariates" in self.fits else self.settings.method

    @cached_property
    def odds_ratios(self) -> Table | None:
        """What each covariate does to the odds of being positive; None without covariates."""
        if self.fit.records is None:
            return None
        found: Table = self.fit.odds_ratios(self.settings.level, per=self.fit.usual_steps)
        return found

    @cached_property
    def profiles(self) -> tuple[Profile, ...]:
        """What to answer for someone of low, middle and high risk; nothing without covariates."""
        if self.fit.records is None:
            return ()
        sizes = sorted(set(self.decisions["n"]))
        found = []
        for name, covariates in self.fit.typical().items():
            fit = self.fit.profile(covariates)
            table = decision_table(fit, self.settings.loss, sizes, level=self.settings.level)
            found.append(Profile(name, covariates, fit, table))
        return tuple(found)

    @cached_property
    def curves(self) -> dict[str, Table]:
        """Prevalence with its interval over the range of each number, others average; by its name."""
        if self.fit.records is None:
            return {}
        found: dict[str, Table] = self.fit.prevalence_curves(self.settings.level)
        return found

    def rates(self, level: float | None = None) -> Table:
        """The rates by all methods side by side, by their ids, and the interval of the one believed."""
        lower, upper = self.fits[self.believed].interval(level or self.settings.level)
        estimates = {method: fit.rates for method, fit in self.fits.items()}
        return Table(rates_rows(**estimates, lower=lower, upper=upper))

    @cached_property
    def headline(self) -> dict[str, Estimate]:
        """What everyone asks for first: the prevalence, and the quality of one replicate of the test."""
        ends = _ends(self.fit, self.settings.level)
        wanted = ("prevalence", "sensitivity", "specificity")
        return {name: Estimate(float(getattr(self.fit.rates, name)), *ends[name]) for name in wanted}

    @cached_property
    def usual(self) -> dict[str, Any]:
        """What to answer for the usual number of replicates: n, and for each answer the fewest and most s."""
        sizes = sorted(set(self.counts.n.tolist()))
        each = [int(self.counts.weight[self.counts.n == size].sum()) for size in sizes]
        most = sizes[each.index(max(each))] if sizes else 1
        listed = sorted(set(self.decisions["n"]))
        n = max((size for size in listed if size <= max(most, 1)), default=listed[0])
        groups: dict[str, list[int]] = {}
        for row in self.decisions:
            if row["n"] == n:
                groups.setdefault(row["decision"] or "undecided", []).append(row["s"])
        return {"n": n, "answers": {word: (own[0], own[-1]) for word, own in groups.items()}}

    @cached_property
    def intraclass(self) -> Estimate | None:
        """The correlation of replicates within an individual, where the method has one."""
        if self.settings.method != "overdispersed":
            return None
        ends = self.fit.intraclass_interval(self.settings.level)
        return Estimate(float(self.fit.intraclass_correlation), *map(float, ends))

    @cached_property
    def expected(self) -> Table | None:
        """Individuals per (n, s) that the posterior expects, with intervals; None without a posterior."""
        fit = self.fits[self.believed]
        if fit.posterior.certain or not self.counts.replicates:
            return None
        return predictive_counts(fit, rng=_SEED, level=self.settings.level)

    @cached_property
    def risks(self) -> Table | None:
        """The risk of every method for every cost of an inconclusive answer; None without a truth."""
        if self.truth is None:
            return None
        n, s = self.truth.n, self.truth.s
        scores = {METHODS[method].name: fit.score(n, s) for method, fit in drawn(self.fits).items()}
        return risk_by_cost(scores, _status(self.truth), self.truth.weight)


def drawn(fits: Mapping[str, Any]) -> dict[str, Any]:
    """Fits in the order of the figures."""
    return {method: fits[method] for method in sorted(fits, key=lambda one: METHODS[one].drawn)}


def _ends(fit: Any, level: float) -> dict[str, tuple[float, float]]:
    """Both ends of the interval of every rate; those of 1 − a rate swap."""
    lower, upper = fit.interval(level)
    ends = {name: (float(getattr(lower, name)), float(getattr(upper, name))) for name in NAMES}
    ends["sensitivity"] = (1 - ends["false_negative"][1], 1 - ends["false_negative"][0])
    ends["specificity"] = (1 - ends["false_positive"][1], 1 - ends["false_positive"][0])
    return ends


@dataclass(frozen=True)
class Analysis:
    """Everything one run computed; made by `analyse`.

    Attributes
    ----------
    settings : Settings
    parts : tuple of Part
        One for each population; a single one without a name where there is only one.
    shared : PopulationsFit or None
        The fit of several populations with the same test.
    findings : Findings
        What `check` says of the fit and its decisions.
    notes : tuple of Note
        How the data were read, and which method is missing and why.
    source : Source
    """

    settings: Settings
    parts: tuple[Part, ...]
    shared: Any = None
    findings: Findings = field(default_factory=Findings)
    notes: tuple[Note, ...] = ()
    truth: CountTable | None = None  # the same individuals with their true statuses, which judged them
    source: Source = field(default_factory=lambda: Source("counts"))

    def __str__(self) -> str:
        answers = ", ".join(f"{count:,} {word}" for word, count in self.answers.items())
        blocks = [f"{self.source.name}: {self.counts.individuals:,} individuals, {answers}"]
        for part in self.parts:
            title = [] if part.name is None else [str(part.name)]
            blocks.append("\n".join([*title, str(part.rates())]))
        blocks += [str(self.findings)] if len(self.findings) else []
        return "\n\n".join(blocks + ["\n".join(map(str, self.notes))] * bool(self.notes))

    def __repr__(self) -> str:
        return str(self)

    @property
    def main(self) -> Part:
        """The first population, or the only one."""
        return self.parts[0]

    @property
    def fit(self) -> Any:
        """The fit that decides; what `attach`, `score_file` and `save_fit` take."""
        return self.main.fit if self.shared is None else self.shared

    @property
    def counts(self) -> CountTable:
        """Everyone."""
        return sum((part.counts for part in self.parts), CountTable([], []))

    @property
    def answers(self) -> dict[str, int]:
        """How many individuals are negative, inconclusive and positive, in all."""
        totals: dict[str, int] = {}
        for part in self.parts:
            for word, weight in part.answers.items():
                totals[word] = totals.get(word, 0) + weight
        return totals

    def write(self, folder: str | Path, *, parquet: bool = False, memory: str | None = None) -> list[Path]:
        """Write report.html, scores.csv (or .parquet), decision_table.csv and summary.json into a folder.

        Each file appears whole or not at all, and replaces one of the same name. The files that were analysed
        are read once more for the scores; a dataframe is scored where it lives.

        Parameters
        ----------
        folder : str or path
            Made if it is not there.
        parquet : bool
            Whether the scores are written as Parquet instead of CSV.
        memory : str, optional
            The most memory to use, such as "4GB".

        Returns
        -------
        list of pathlib.Path
            The files, the report first.
        """
        from binreps.show.folder import write_folder  # what shows an analysis comes after it on the road

        return write_folder(self, folder, parquet=parquet, memory=memory)

    def report(self) -> str:
        """The report as one HTML page that opens without a network, and lists everyone if they are few."""
        from binreps.show.folder import report_page

        return report_page(self)


def analysed(
    counts: CountTable | Mapping[Any, CountTable] | CovariateTable,
    settings: Settings,
    truth: CountTable | CovariateTable | None = None,
) -> Analysis:
    """Fit counts by every method, decide by one, check and judge."""
    if settings.method == "sources":
        raise OptionError("counts do not say who gave which result: sources need a table with them")
    shared: Any = None
    true = truth.counts if isinstance(truth, CovariateTable) else truth
    if isinstance(counts, CovariateTable):
        part, notes = _covariates_part(counts, settings, truth)
        parts: tuple[Part, ...] = (part,)
    elif isinstance(counts, CountTable):
        part, notes = _part(None, counts, None, settings, true)
        parts = (part,)
    else:
        parts, shared, notes = _populations(counts, settings, true)
    asked = shared or parts[0].fits[parts[0].believed]
    findings = check(asked, settings.loss)
    return Analysis(settings, parts, shared, findings, tuple(dict.fromkeys(notes)), true)


def _covariates_part(
    records: CovariateTable, settings: Settings, truth: CovariateTable | CountTable | None
) -> tuple[Part, list[Note]]:
    """Everyone with their covariates, which decide; the other methods see results alone."""
    if settings.method != "bayes":
        raise OptionError(f"covariates are used by the method bayes, got {settings.method!r}")
    fit = METHODS["covariates"].make(records, settings.prior)
    true = truth.counts if isinstance(truth, CovariateTable) else truth
    part, notes = _part(None, records.counts, None, settings, true)
    sizes = sorted(set(part.decisions["n"]))
    judged = dict(part.judged)
    if isinstance(truth, CovariateTable):
        judged["covariates"] = evaluate(fit.score(truth), _status(truth), settings.loss, truth.weight)
    found = replace(
        part,
        fit=fit,
        fits={**part.fits, "covariates": fit},
        cells=_record_cells(fit, part.fit, settings),
        decisions=decision_table(fit, settings.loss, sizes, level=settings.level),
        judged=judged,
    )
    whose = "the decision table is for someone of this study whose covariates are not known"
    return found, [*notes, Note("covariates-unknown", whose)]


def _record_cells(fit: Any, plain: Any, settings: Settings) -> Table:
    """Everyone in the data by results and covariates, and what their answer would be without the covariates.

    Of very many only the totals of every result and answer.
    """
    records: CovariateTable = fit.records
    scores, without = fit.score(records), plain.score(records.n, records.s)
    columns: dict[str, Any] = {"n": records.n, "s": records.s}
    if len(records) <= LISTED:
        taken = ("n", "s", "weight", "known", "score", "lower", "upper", "decision", "without", "before")
        for name in records.names:
            columns[f"{name}_" if name in taken else name] = records.column(name)
        columns["weight"] = records.weight
        if np.any(records.known != UNKNOWN):
            columns["known"] = [None if status == UNKNOWN else status for status in records.known.tolist()]
        lower, upper = fit.score_interval(records, level=settings.level)
        columns |= {"score": scores, "lower": lower, "upper": upper}
    else:
        words = np.array(settings.loss.words(scores))
        keys = np.stack([records.n, records.s, np.unique(words, return_inverse=True)[1]])
        pairs, where = np.unique(keys, axis=1, return_inverse=True)
        weight = np.bincount(where.ravel(), records.weight).astype(np.int64)
        total = np.bincount(where.ravel(), records.weight * scores)
        columns = {"n": pairs[0], "s": pairs[1], "weight": weight, "score": total / weight}
        without = plain.score(pairs[0], pairs[1])
        columns |= {end: [None] * weight.size for end in ("lower", "upper")}
    columns["decision"] = settings.loss.words(columns["score"])
    columns["without"], columns["before"] = without, settings.loss.words(without)
    note = f"{settings.loss}; without, before: score and decision without the covariates"
    return Table(columns, note=note)


def _populations(
    counts: Mapping[Any, CountTable], settings: Settings, truth: CountTable | None
) -> tuple[tuple[Part, ...], Any, list[Note]]:
    """The parts of several populations, which share the error rates."""
    if settings.method != "bayes":
        raise OptionError(f"several populations are fitted by the method bayes, got {settings.method!r}")
    if truth is not None:
        raise OptionError("truth cannot judge several populations at once; analyse them one by one")
    shared = METHODS["populations"].make(counts, settings.prior)
    alone = "Bayes alone shares the error rates between populations; the other methods see each on its own"
    found = [*shared.notes, Note("others-not-shared", alone)]
    parts = []
    for name, own in shared.parts.items():
        part, more = _part(name, counts[name], own, settings, None)
        parts.append(part)
        found += more
    return tuple(parts), shared, found


def _part(
    name: Any, counts: CountTable, bayes: Any, settings: Settings, truth: CountTable | None
) -> tuple[Part, list[Note]]:
    """One population, fitted by every method; and why a method is missing."""
    fits, notes = _fits(counts, bayes, settings)
    deciding = fits[settings.method]
    sizes = range(1, _most_replicates(counts, settings) + 1)
    table = decision_table(deciding, settings.loss, sizes, level=settings.level)
    judged = {} if truth is None else {m: _judged(fit, truth, settings.loss) for m, fit in fits.items()}
    cells = _cells(deciding, settings)
    return Part(name, settings, deciding, fits, cells, table, judged, truth), notes


def _fits(counts: CountTable, bayes: Any, settings: Settings) -> tuple[dict[str, Any], list[Note]]:
    """The fit by every method that these data allow."""
    fits: dict[str, Any] = {}
    notes: list[Note] = []
    for method in METHODS.values():
        if not (method.always or method.id == settings.method):
            continue
        if method.id == "bayes" and bayes is not None:
            fits[method.id] = bayes
            continue
        try:
            fits[method.id] = method.make(counts, settings.prior)
            notes += fits[method.id].notes
        except BinrepsError as error:
            if method.id == settings.method:
                raise
            said = f"no estimate by the {method.name} method: {error}"
            notes.append(Note(f"no-{method.id}", said))
    return fits, notes


def _most_replicates(counts: CountTable, settings: Settings) -> int:
    """The longest row of the decision table."""
    if settings.replicates is not None:
        return settings.replicates
    return max(1, min(int(counts.n.max(initial=1)), _MOST_REPLICATES))


def _cells(fit: Any, settings: Settings) -> Table:
    """Everyone in the data: one row per cell."""
    counts: CountTable = fit.counts
    columns: dict[str, Any] = {"n": counts.n, "s": counts.s, "weight": counts.weight}
    if counts.has_known:
        columns["known"] = [None if status == UNKNOWN else status for status in counts.known.tolist()]
    columns |= fit.answers(counts.n, counts.s, new=False, level=settings.level)
    for end in ("lower", "upper"):
        columns[end] = [None if value != value else value for value in columns[end].tolist()]
    columns["decision"] = settings.loss.words(columns["score"])
    return Table(columns, note=str(settings.loss))


def _status(truth: CountTable | CovariateTable) -> Any:
    """The statuses with NaN for unknown."""
    return np.where(truth.known == UNKNOWN, np.nan, truth.known)


def _judged(fit: Any, truth: CountTable, loss: Loss) -> Evaluation:
    """The answers of one method against the truth."""
    return evaluate(fit.score(truth.n, truth.s), _status(truth), loss, truth.weight)
