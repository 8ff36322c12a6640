"""Analysis: everything one run computed. Terminal, JSON, report and page only render it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Unpack

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.decide.checks.findings import Findings
from binreps.decide.checks.run import check
from binreps.decide.evaluate import Evaluation, evaluate
from binreps.decide.loss import DECISIONS, Loss, decision_table, decision_words
from binreps.errors import BinrepsError, BinrepsWarning, OptionError
from binreps.fits.base import Fit, rates_rows
from binreps.fits.bayes import fit_bayes
from binreps.fits.overdispersed import fit_overdispersed
from binreps.fits.point.mode import MAP_PRIOR, fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.fits.populations import PopulationsFit, fit_populations
from binreps.model import Prior
from binreps.options import check_level, check_whole
from binreps.table import Table
from binreps.tables.files import PathLike, find_files, open_files, peek, quoted
from binreps.tables.groups import count_tables
from binreps.tables.guess import Guess, guess_columns
from binreps.tables.tally import Columns, Roles, count_table

Method = Literal["bayes", "map", "average", "median", "overdispersed"]

METHODS: Mapping[Method, str] = MappingProxyType(
    {
        "average": "Average",
        "median": "Median",
        "map": "MAP",
        "bayes": "Bayes",
        "overdispersed": "Over-dispersed",
    }
)
"""The methods, in the order they are shown, and their names; the last is fitted only if it is to decide."""

_MOST_REPLICATES = 20  # of the decision table, unless more are asked for
_COUNTED_BYTES = 100 * 2**20  # of a text file up to which its rows are counted a second time


@dataclass(frozen=True)
class Settings:
    """What the user chose."""

    method: Method = "bayes"
    prior: Prior = field(default_factory=Prior)
    loss: Loss = field(default_factory=Loss)
    level: float = 0.9
    replicates: int | None = None  # of the decision table; None: as many as anyone had, at most 20

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise OptionError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        check_level(self.level)
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
    columns: tuple[str, ...] = ()  # all that the file has
    missing: int | None = None  # results that are missing; None where they were not counted


@dataclass(frozen=True)
class Part:
    """One population: its counts, its fits, and what follows from the one that decides."""

    name: Any
    fit: Fit
    fits: Mapping[Method, Fit]  # by every method that these data allow
    cells: Table  # n, s, weight, (known,) score, lower, upper, decision: everyone in the data
    decisions: Table  # the next individual, for every result
    judged: Mapping[Method, Evaluation]  # by method, where a truth is given

    @property
    def counts(self) -> CountTable:
        """The data."""
        return self.fit.counts

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
        columns: dict[str, list[Any]] = {"method": [METHODS[method] for method in self.judged]}
        for name in ("sensitivity", "specificity", "share_inconclusive", "total_risk", "brier"):
            columns[name] = [getattr(result, name) for result in self.judged.values()]
        return Table(columns)

    def rates(self, level: float) -> Table:
        """The rates by all methods side by side, and the interval of the one that has one."""
        columns = {METHODS[method]: fit.rates for method, fit in self.fits.items()}
        interval = getattr(self.fits.get("overdispersed") or self.fits.get("bayes"), "interval", None)
        if interval is not None:
            columns["lower"], columns["upper"] = interval(level)
        return Table(rates_rows(**columns))


@dataclass(frozen=True)
class Analysis:
    """Everything one run computed; made by `analyse` and `analyse_file`.

    Attributes
    ----------
    settings : Settings
    parts : tuple of Part
        One for each population; a single one without a name where there is only one.
    shared : PopulationsFit or None
        The fit of several populations with the same test.
    findings : Findings
        What `check` says of the fit and its decisions.
    notes : tuple of str
        How the data were read, and which method is missing and why.
    source : Source
    """

    settings: Settings
    parts: tuple[Part, ...]
    shared: PopulationsFit | None = None
    findings: Findings = field(default_factory=Findings)
    notes: tuple[str, ...] = ()
    truth: CountTable | None = None  # the same individuals with their true statuses, which judged them
    source: Source = field(default_factory=lambda: Source("counts"))

    def __str__(self) -> str:
        answers = ", ".join(f"{count:,} {word}" for word, count in self.answers.items())
        blocks = [f"{self.source.name}: {self.counts.individuals:,} individuals, {answers}"]
        for part in self.parts:
            title = [] if part.name is None else [str(part.name)]
            blocks.append("\n".join([*title, str(part.rates(self.settings.level))]))
        blocks += [str(self.findings)] if len(self.findings) else []
        return "\n\n".join(blocks + ["\n".join(self.notes)] * bool(self.notes))

    def __repr__(self) -> str:
        return str(self)

    @property
    def main(self) -> Part:
        """The first population, or the only one."""
        return self.parts[0]

    @property
    def fit(self) -> Fit | PopulationsFit:
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


def analyse(
    counts: CountTable | Mapping[Any, CountTable],
    settings: Settings | None = None,
    *,
    truth: CountTable | None = None,
) -> Analysis:
    """Fit by every method, decide by one, and keep all of it for the terminal, a file or a report.

    Parameters
    ----------
    counts : CountTable, or mapping of name to CountTable
        The data; several tables are populations that took the same test (`fit_populations`).
    settings : Settings, optional
        Method, prior, costs, level of intervals, length of the decision table.
    truth : CountTable, optional
        The same individuals with their true statuses as `known`: they judge the answers and inform no fit.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> analysis = analyse(CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31]))
    >>> analysis.answers
    {'negative': 69, 'inconclusive': 0, 'positive': 31}
    >>> print(analysis.main.rates(0.9))
    rate            Average  Median    MAP  Bayes  lower  upper
    prevalence        0.340   0.310  0.310  0.312  0.239  0.390
    false-positive    0.030   0.043  0.048  0.052  0.029  0.080
    false-negative    0.059   0.000  0.011  0.022  0.004  0.052
    sensitivity       0.941   1.000  0.989  0.978  0.948  0.996
    specificity       0.970   0.957  0.952  0.948  0.920  0.971
    """
    settings = settings or Settings()
    shared: PopulationsFit | None = None
    with _collected_warnings() as notes:
        if isinstance(counts, CountTable):
            part, reasons = _part(None, counts, None, settings, truth)
            parts: tuple[Part, ...] = (part,)
        else:
            parts, shared, reasons = _populations(counts, settings, truth)
        findings = check(shared or _checked(parts[0]), settings.loss)
    return Analysis(settings, parts, shared, findings, tuple(dict.fromkeys([*reasons, *notes])), truth)


def _checked(part: Part) -> Fit:
    """The fit that is asked whether it can be believed: a posterior, if there is one."""
    return part.fits.get("overdispersed") or part.fits.get("bayes") or part.fit


def analyse_file(
    path: PathLike | Sequence[PathLike],
    settings: Settings | None = None,
    *,
    population: str | None = None,
    truth: str | None = None,
    memory: str | None = None,
    name: str | None = None,
    **columns: Unpack[Columns],
) -> Analysis:
    r"""Read a file, guess the columns that are not named, and analyse it.

    Parameters
    ----------
    path : str, path or list of them
        What `read_counts` reads.
    settings : Settings, optional
    population : str, optional
        Column of the populations, which took the same test.
    truth : str, optional
        Column with the true statuses, which judge the answers and inform no fit (`known` does).
    memory : str, optional
        The most memory to use, such as "4GB".
    name : str, optional
        What to call the data, if not by the name of the file.
    **columns
        Which column plays which part, as in `count_table`.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tests.csv")
    >>> _ = path.write_text("patient,first,second,third\nann,1,1,1\nbob,0,,0\n")
    >>> analysis = analyse_file(path)
    >>> analysis.source.guess.kind, analysis.source.guess.columns["replicates"], analysis.source.missing
    ('wide', ['first', 'second', 'third'], 1)
    """
    known = columns.get("known")
    if known is not None and truth is not None:
        rule = "a status that informed a fit cannot judge it"
        raise OptionError(f"give known={known!r} or truth={truth!r}, not both: {rule}")
    files = find_files(path)
    sample = peek(path)
    guess = guess_columns(sample, columns, filter(None, [population, truth]))
    with _collected_warnings() as notes:
        counts, missing = _read(path, {**guess.columns, "known": known or truth}, population, memory)
    judge = None
    if truth is not None:
        judge, counts = _everyone(counts), _forgotten(counts)
    if known is not None:
        notes.append("scores say what the replicates say, also of individuals whose status is known")
    analysis = analyse(counts, settings, truth=judge)
    title = name or (files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more")
    hashes, names = tuple(_sha256(file) for file in files), tuple(str(file) for file in files)
    source = Source(title, names, hashes, guess, known, truth, population, tuple(sample), missing)
    return replace(analysis, source=source, notes=(*guess.notes, *notes, *analysis.notes))


def _read(
    path: PathLike | Sequence[PathLike], columns: Any, population: str | None, memory: str | None
) -> tuple[CountTable | dict[Any, CountTable], int | None]:
    """The counts of a file, by population if asked for, and how many results are missing."""
    roles = Roles.of(**columns)
    wanted = [*roles.used, *filter(None, [population])]
    with open_files(path, wanted, memory=memory) as relation:
        counts: CountTable | dict[Any, CountTable]
        if population is None:
            counts = count_table(relation, **columns)
        else:
            counts = count_tables(relation, by=population, **columns)
        return counts, _missing(relation, roles, path, _everyone(counts).replicates)


def _missing(relation: Any, roles: Roles, path: Any, replicates: int) -> int | None:
    """Results that are missing; not counted where that would mean to read a large text file again."""
    if not roles.results:
        return 0
    files = find_files(path)
    text = any(file.suffix.lower() not in (".parquet", ".pq", ".arrow", ".feather") for file in files)
    if text and sum(file.stat().st_size for file in files) > _COUNTED_BYTES:
        return None
    rows = relation
    for name in roles.individual:
        rows = rows.filter(f"{quoted(name)} IS NOT NULL")
    return int(rows.aggregate("count(*)").fetchall()[0][0]) * len(roles.results) - replicates


def _sha256(file: Path) -> str:
    """The hash of a file's bytes."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _everyone(counts: CountTable | Mapping[Any, CountTable]) -> CountTable:
    """The individuals of all populations."""
    if isinstance(counts, CountTable):
        return counts
    return sum(counts.values(), CountTable([], []))


def _forgotten(counts: CountTable | Mapping[Any, CountTable]) -> CountTable | dict[Any, CountTable]:
    """The same data with every status unknown."""
    if isinstance(counts, CountTable):
        return counts.forget_known()
    return {name: table.forget_known() for name, table in counts.items()}


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Our own warnings as sentences; those of others stay warnings."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    for warning in caught:
        if issubclass(warning.category, BinrepsWarning):
            sentences.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _populations(
    counts: Mapping[Any, CountTable], settings: Settings, truth: CountTable | None
) -> tuple[tuple[Part, ...], PopulationsFit, list[str]]:
    """The parts of several populations; a truth judges them together, in the first one's place."""
    if settings.method != "bayes":
        raise OptionError(f"several populations are fitted by the method bayes, got {settings.method!r}")
    if truth is not None:
        raise OptionError("truth cannot judge several populations at once; analyse them one by one")
    shared = fit_populations(counts, settings.prior)
    alone = "Bayes alone shares the error rates between populations; the other methods see each on its own"
    parts, reasons = [], [alone]
    for name, table in counts.items():
        part, sentences = _part(name, table, shared[name], settings, None)
        parts.append(part)
        reasons += sentences
    return tuple(parts), shared, reasons


def _part(
    name: Any, counts: CountTable, bayes: Fit | None, settings: Settings, truth: CountTable | None
) -> tuple[Part, list[str]]:
    """One population, fitted by every method; and why a method is missing."""
    fits: dict[Method, Fit] = {}
    reasons = []
    for method, fit in _fitters(settings.prior).items():
        if method == "overdispersed" != settings.method:
            continue
        try:
            fits[method] = bayes if method == "bayes" and bayes is not None else fit(counts)
        except BinrepsError as error:
            if method == settings.method:
                raise
            reasons.append(f"no estimate by the {METHODS[method]} method: {error}")
    deciding = fits[settings.method]
    table = decision_table(
        deciding, settings.loss, range(1, _most_replicates(counts, settings) + 1), level=settings.level
    )
    judged = {} if truth is None else {m: _judged(fit, truth, settings.loss) for m, fit in fits.items()}
    return Part(name, deciding, fits, _cells(deciding, settings), table, judged), reasons


def _fitters(prior: Prior) -> dict[Method, Callable[[CountTable], Fit]]:
    """How each method fits; the mode needs shapes ≥ 1, which the usual prior of the prevalence lacks."""
    flat = min(prior.prevalence) < 1
    map_prior = replace(prior, prevalence=MAP_PRIOR.prevalence) if flat else prior
    return {
        "average": fit_average,
        "median": fit_median,
        "map": lambda counts: fit_map(counts, map_prior),
        "bayes": lambda counts: fit_bayes(counts, prior),
        "overdispersed": lambda counts: fit_overdispersed(counts, prior),
    }


def _most_replicates(counts: CountTable, settings: Settings) -> int:
    """The longest row of the decision table."""
    if settings.replicates is not None:
        return settings.replicates
    return max(1, min(int(counts.n.max(initial=1)), _MOST_REPLICATES))


def _cells(fit: Any, settings: Settings) -> Table:
    """Everyone in the data: one row per cell."""
    counts: CountTable = fit.counts
    score = np.asarray(fit.score(counts.n, counts.s), dtype=float)
    columns: dict[str, Any] = {"n": counts.n, "s": counts.s, "weight": counts.weight}
    if counts.has_known:
        columns["known"] = [None if status == UNKNOWN else status for status in counts.known.tolist()]
    columns["score"] = score
    if hasattr(fit, "score_interval"):
        columns["lower"], columns["upper"] = fit.score_interval(counts.n, counts.s, level=settings.level)
    columns["decision"] = decision_words(settings.loss.classify(score))
    return Table(columns, note=str(settings.loss))


def _judged(fit: Fit, truth: CountTable, loss: Loss) -> Evaluation:
    """The answers of one method against the truth."""
    status = np.where(truth.known == UNKNOWN, np.nan, truth.known)
    return evaluate(fit.score(truth.n, truth.s), status, loss, truth.weight)
