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
from binreps.decide.compare import Comparison
from binreps.decide.evaluate import Evaluation
from binreps.decide.loss import DECISIONS, Loss, check_loss, decision_table
from binreps.decide.verdict import Verdict, reached
from binreps.errors import OptionError
from binreps.fits.base import checked_prior, rates_rows
from binreps.fits.point.simple import fit_known
from binreps.model import NAMES, Prior
from binreps.notes import Note
from binreps.options import check_level, check_whole, kinds_checked, shown
from binreps.run.methods import check_method
from binreps.run.models import AUTO, MODELS, WAYS, check_model
from binreps.table import Table
from binreps.tables.guess import Guess
from binreps.tables.opened import Reading

_MOST_AGAIN = 40  # inconclusive results that a summary lists
_SEED = 1  # of the predictive draws: the same figure every time

TABULATED = 50
"""Replicates of the decision table of an analysis, at most: 1,325 results, each with its interval."""

LISTED = 10_000
"""Rows up to which they are listed; beyond, the file of scores has them."""


@dataclass(frozen=True)
class Settings:
    """What the user chose: the model, how it is estimated, and what answers cost.

    `model` says what is assumed of the data, by its id in `run.models`: "auto" compares those that the
    columns allow and takes the simplest that the data do not refute, None takes what the columns say.
    `method` says how the rates are estimated: by Bayes, or, for the models whose replicates all err alike, by
    one of the simpler ways of the paper.
    """

    method: str = "bayes"
    prior: Prior = field(default_factory=Prior)
    loss: Loss = field(default_factory=Loss)
    level: float = 0.9
    replicates: int | None = None  # of the decision table; None: as many as anyone had, at most 20
    model: str | None = AUTO
    independent: bool = False  # whether readings of one individual by sources are, given its status
    merge: tuple[tuple[str, ...], ...] = ()  # sources to take for one: then the model is that by source

    def __post_init__(self) -> None:
        groups = self.merge if isinstance(self.merge, tuple | list) else [None]
        if not all(isinstance(group, tuple | list) for group in groups):
            raise OptionError(f"merge must be a list of lists of names, got {shown(self.merge)}")
        if self.merge and self.model in (None, AUTO):
            object.__setattr__(self, "model", "sources")
        check_method(self.method)
        if self.model is not None:
            check_model(self.model)
        if self.method != "bayes" and self.model not in (None, AUTO, "common", "better-than-chance"):
            raise OptionError(f"the model {self.model} is fitted by the method bayes, got {self.method!r}")
        if self.merge and self.model != "sources":
            raise OptionError(f"merge names sources, which the model {self.model} does not tell apart")
        check_level(self.level)
        checked_prior(self.prior)
        check_loss(self.loss)
        _ = self.loss.thresholds  # refuses costs of 0, from which none follow
        if self.replicates is not None:
            check_whole("replicates", self.replicates, 1, TABULATED)


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
    by: str | None = None  # the column of the sources, where it was named
    covariates: tuple[str, ...] = ()
    design: Mapping[str, Any] = field(default_factory=dict)  # how covariates become one, where there are any
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
    model: str  # that decides, by id
    fit: Any
    fits: Mapping[str, Any]  # by every method that these data allow, and by the model, by kind
    scored: Table  # n, s, weight, (known,) score, decision: everyone in the data
    sizes: tuple[int, ...]  # numbers of replicates of the decision table; none where it matters who gave it
    judged: Mapping[str, Evaluation]  # by method, where a truth is given
    truth: Any = None  # counts or records with their statuses, in the form that the deciding fit takes

    @property
    def counts(self) -> CountTable:
        """The data."""
        counts: CountTable = self.fit.counts
        return counts

    @cached_property
    def cells(self) -> Table:
        """Everyone in the data, each score with its interval; None where there is none."""
        columns: dict[str, Any] = {}
        for name, values in self.scored.columns.items():
            columns[name] = values
            if name == "score":
                columns |= _score_ends(self.fit, self.settings.level, len(self.scored))
        return Table(columns, note=self.scored.note)

    @cached_property
    def next_answers(self) -> Table:
        """The next individual, for every result, without intervals; empty where it matters who gave it."""
        return self._decisions(None)

    @cached_property
    def decisions(self) -> Table:
        """The same with the interval of every probability, which takes most of the time."""
        return self._decisions(self.settings.level)

    def _decisions(self, level: float | None) -> Table:
        if not self.sizes:
            return Table({"n": [], "s": []})
        return decision_table(self.fit, self.settings.loss, self.sizes, level=level)

    @property
    def answers(self) -> dict[str, int]:
        """How many individuals are negative, inconclusive, positive; "undecided" if someone has no score."""
        totals = dict.fromkeys(DECISIONS.values(), 0)
        for decision, weight in zip(self.scored["decision"], self.scored["weight"], strict=True):
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
    def prior(self) -> Prior:
        """The prior of the three rates, over the region of the model."""
        wide = self.model == "better-than-chance"
        return replace(self.settings.prior, better_than_chance=True) if wide else self.settings.prior

    @property
    def believed(self) -> str:
        """The kind of fit whose intervals are shown beside all estimates: the posterior of the model."""
        return list(self.fits)[-1]

    @property
    def deciding(self) -> str:
        """The kind of fit that decides."""
        chosen = self.settings.method
        return MODELS[self.model].kind if chosen == "bayes" else chosen

    @cached_property
    def sources(self) -> Table | None:
        """One row per source, those with the most readings first; None without sources."""
        if not self.fit.has_sources:
            return None
        table = self.fit.source_table(self.settings.level)
        order = np.argsort(-np.array(table["readings"]), kind="stable")
        return Table({name: [column[i] for i in order] for name, column in table.columns.items()})

    @cached_property
    def gold(self) -> Table | None:
        """Known statuses against their scores before and after these recalibrate; None without."""
        found: Table | None = self.fit.gold_table() if self.fit.has_sources else None
        return found

    @cached_property
    def source_population(self) -> Table | None:
        """Mean and spread of the population of sources; None without sources."""
        if not self.fit.has_sources:
            return None
        rows = [row for row in self.fit.summary(self.settings.level) if " " in row["rate"]]
        names = ("rate", "estimate", "sd", "lower", "upper")
        return Table({name: [row[name] for row in rows] for name in names})

    @cached_property
    def odds_ratios(self) -> Table | None:
        """What each covariate does to the odds of being positive; None without covariates."""
        found: Table | None = self.fit.usual_odds_ratios(self.settings.level)
        return found

    @cached_property
    def populations(self) -> Table | None:
        """The prevalence of each population where one fit has several; None where it has one."""
        found: Table | None = self.fit.prevalence_table(self.settings.level)
        return found

    @cached_property
    def profiles(self) -> tuple[Profile, ...]:
        """What to answer for someone of low, middle and high risk; nothing without covariates."""
        if self.fit.records is None:
            return ()
        found = []
        for name, covariates in self.fit.typical().items():
            fit = self.fit.profile(covariates)
            table = decision_table(fit, self.settings.loss, self.sizes, level=self.settings.level)
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
        lower, upper = self.fits[self.believed].overall_interval(level or self.settings.level)
        estimates = {kind: fit.overall for kind, fit in self.fits.items()}
        return Table(rates_rows(**estimates, lower=lower, upper=upper))

    @cached_property
    def headline(self) -> dict[str, Estimate]:
        """What everyone asks for first: the prevalence, and the quality of one replicate of the test."""
        ends = _ends(self.fit, self.settings.level)
        wanted = ("prevalence", "sensitivity", "specificity")
        return {name: Estimate(float(getattr(self.fit.overall, name)), *ends[name]) for name in wanted}

    @cached_property
    def usual(self) -> dict[str, Any] | None:
        """What to answer for the usual number of replicates: n, and for each answer the fewest and most s."""
        if not self.sizes:
            return None
        sizes = sorted(set(self.counts.n.tolist()))
        each = [int(self.counts.weight[self.counts.n == size].sum()) for size in sizes]
        most = sizes[each.index(max(each))] if sizes else 1
        n = max((size for size in self.sizes if size <= max(most, 1)), default=self.sizes[0])
        groups: dict[str, list[int]] = {}
        for row in self.next_answers:
            if row["n"] == n:
                groups.setdefault(row["decision"] or "undecided", []).append(row["s"])
        return {"n": n, "answers": {word: (own[0], own[-1]) for word, own in groups.items()}}

    @cached_property
    def again(self) -> Table:
        """The inconclusive results of those whose status is not known, and what one more replicate leads to.

        A row per result (n, s): how many have it, the chance, and the chances after a negative and after a
        positive replicate. Empty where more than results is known of individuals.
        """
        from binreps.decide.stopping import stopping_table  # for reports

        names = ("n", "s", "weight", "probability", "if_negative", "if_positive")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        told = self.fit.has_sources or self.fit.records is not None
        unknown = [] if told else [row for row in self.scored if row.get("known") is None]
        rows = [row for row in unknown if row["decision"] == "inconclusive"]
        for row in rows[:_MOST_AGAIN]:
            n, s, loss = row["n"], row["s"], self.settings.loss
            rule = stopping_table(self.fit, loss, cost_per_replicate=0, max_replicates=n + 1, start=(n, s))
            _, down, up = rule.table()["probability"]
            values = (n, s, row["weight"], row["score"], down, up)
            for name, value in zip(names, values, strict=True):
                columns[name].append(value)
        return Table(columns)

    @cached_property
    def true_rates(self) -> Table | None:
        """The rates as estimated and as the truth has them; None where not everyone's is known."""
        if self.truth is None or not len(self.truth) or np.any(self.truth.known == UNKNOWN):
            return None
        true = CountTable(self.truth.n, self.truth.s, self.truth.weight, self.truth.known)
        return Table(rates_rows(estimated=self.fit.overall, true=fit_known(true).rates))

    @cached_property
    def intraclass(self) -> Estimate | None:
        """The correlation of replicates within an individual, where the model has one."""
        if self.model != "correlated":
            return None
        ends = self.fit.intraclass_interval(self.settings.level)
        return Estimate(float(self.fit.intraclass_correlation), *map(float, ends))

    @cached_property
    def expected(self) -> Table | None:
        """Individuals per (n, s) that the posterior expects, with intervals; None without a posterior."""
        fit = self.fits[self.believed]
        if fit.posterior.certain or fit.has_sources or not self.counts.replicates:
            return None
        from binreps.decide.predictive import predictive_counts  # for reports

        return predictive_counts(fit, rng=_SEED, level=self.settings.level)

    @cached_property
    def risks(self) -> Table | None:
        """The risk of every method for every cost of an inconclusive answer; None without a truth."""
        if self.truth is None:
            return None
        n, s, fits = self.truth.n, self.truth.s, drawn(self.fits)
        asked = {kind: (n, s) if fit.records is None else (self.truth,) for kind, fit in fits.items()}
        scores = {WAYS[kind].name: fit.score(*asked[kind]) for kind, fit in fits.items()}
        from binreps.decide.indecision import risk_by_cost  # for reports

        return risk_by_cost(scores, status_of(self.truth), self.truth.weight)


def drawn(fits: Mapping[str, Any]) -> dict[str, Any]:
    """Fits that are asked by n and s, in the order of the figures."""
    plain = [kind for kind, fit in fits.items() if not fit.has_sources]
    return {kind: fits[kind] for kind in sorted(plain, key=lambda one: WAYS[one].drawn)}


def listed(fit: Any) -> bool:
    """Whether the individuals of a fit with covariates are few enough to be listed one by one."""
    return fit.records is not None and len(fit.records) <= LISTED


def _score_ends(fit: Any, level: float, rows: int) -> dict[str, list[Any]]:
    """Both ends of every score's interval; None where rows are totals, or a fit has none."""
    if listed(fit):
        ends = dict(zip(("lower", "upper"), fit.score_interval(fit.records, level=level), strict=True))
    elif fit.has_sources or fit.records is not None:
        return {end: [None] * rows for end in ("lower", "upper")}
    else:
        ends = fit.answers(fit.counts.n, fit.counts.s, new=False, level=level)
    return {
        end: [None if value != value else value for value in ends[end].tolist()] for end in ("lower", "upper")
    }


def _ends(fit: Any, level: float) -> dict[str, tuple[float, float]]:
    """Both ends of the interval of every rate; those of 1 − a rate swap."""
    lower, upper = fit.overall_interval(level)
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
        Where the data came from.
    comparison : Comparison or None
        The models that were compared to choose one.
    """

    settings: Settings
    parts: tuple[Part, ...]
    shared: Any = None
    findings: Findings = field(default_factory=Findings)
    notes: tuple[Note, ...] = ()
    truth: CountTable | None = None  # the same individuals with their true statuses, which judged them
    source: Source = field(default_factory=lambda: Source("counts"))
    comparison: Comparison | None = field(default=None, compare=False)  # it holds the time it took

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the results can be used: a light, a sentence, and the numbers behind it."""
        if self.comparison is None or len(self.comparison.tried) < 2:
            return reached(self.findings, self.model, {"individuals": float(self.counts.individuals)})
        return reached(self.findings, self.model, self.comparison.numbers, self.comparison.simplest.model)

    def __str__(self) -> str:
        answers = ", ".join(f"{count:,} {word}" for word, count in self.answers.items())
        blocks = [
            f"{self.source.name}: {self.counts.individuals:,} individuals, {answers}",
            str(self.verdict),
        ]
        for part in self.parts:
            title = [] if part.name is None else [str(part.name)]
            tables = [part.rates()] if part.sources is None else [part.sources, part.source_population]
            blocks.append("\n".join([*title, *map(str, tables)]))
        blocks += [str(self.findings)] if len(self.findings) else []
        return "\n\n".join(blocks + ["\n".join(map(str, self.notes))] * bool(self.notes))

    def __repr__(self) -> str:
        return str(self)

    @property
    def main(self) -> Part:
        """The first population, or the only one."""
        return self.parts[0]

    @property
    def model(self) -> str:
        """The model that decides, by id."""
        return self.main.model

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

    @kinds_checked
    def write(
        self,
        folder: str | Path,
        *,
        parquet: bool = False,
        memory: str | None = None,
        title: str = "",
        author: str = "",
    ) -> list[Path]:
        """Write report.html, scores.csv (or .parquet), decision_table.csv and summary.json into a folder.

        Where each source has rates of its own there is sources.csv in place of decision_table.csv.

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
        title, author : str
            Of the report; the title is the data's name if it is not given.

        Returns
        -------
        list of pathlib.Path
            The files, the report first.
        """
        from binreps.show.folder import write_folder  # what shows an analysis comes after it on the road

        how: Any = {"title": title, "author": author}
        return write_folder(self, folder, parquet=parquet, memory=memory, **how)

    @kinds_checked
    def report(self, *, title: str = "", author: str = "") -> str:
        """The report as one HTML page that opens without a network, and lists everyone if they are few."""
        from binreps.show.folder import report_page

        return report_page(self, title=title, author=author)


def status_of(truth: Any) -> Any:
    """The statuses with NaN for unknown."""
    return np.where(truth.known == UNKNOWN, np.nan, truth.known)
