"""The front door: any table, its columns named or guessed, into one fit or a whole analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from binreps.counts import CountTable
from binreps.covariates import CovariateTable
from binreps.decide.checks.findings import Findings
from binreps.errors import DataError, OptionError
from binreps.fits.base import checked_prior
from binreps.formula import Formula
from binreps.model import Prior
from binreps.notes import Note, warn_of
from binreps.options import check_kind, check_whole, generator, kinds_checked, shown
from binreps.readings import Readings
from binreps.run.analysed import analysed
from binreps.run.analysis import Analysis, Settings, Source
from binreps.run.data import Data
from binreps.run.looked import Looked, looked_at
from binreps.run.methods import METHODS, check_method
from binreps.run.models import AUTO, MODELS, SEED, check_model
from binreps.run.recipe import check_recipe, load_recipe, recipe_columns, recipe_sheet
from binreps.tables.design import read_entries
from binreps.tables.files import PathLike
from binreps.tables.guess import several_rows
from binreps.tables.opened import OpenTable, is_path, open_table, read
from binreps.tables.roles import AllColumns, Columns, check_keywords, column_names, names_of
from binreps.tables.sources import MOST, source_readings, whose
from binreps.tables.truth import truth_file, with_truth

Counts = CountTable | Mapping[Any, CountTable]

if TYPE_CHECKING:
    from binreps.fits.sampled.prior import SourcePrior

_NOUNS: Mapping[Any, str] = MappingProxyType(
    {CovariateTable: "records", Readings: "readings", CountTable: "counts", Mapping: "counts"}
)
_KNOWN = "scores say what the replicates say, also of individuals whose status is known"


@kinds_checked
def fit(
    table: Any | PathLike | Sequence[PathLike] | Counts | Readings,
    *,
    prior: Prior | SourcePrior | None = None,
    rng: np.random.Generator | int | None = None,
    model: str | None = None,
    method: str = "bayes",
    memory: str | None = None,
    reference: Mapping[str, Any] | None = None,
    missing_covariates: str = "refuse",
    formula: str | None = None,
    sheet: str | None = None,
    tol: float | None = None,
    independent: bool = False,
    merge: Sequence[Sequence[str]] = (),
    most: int = MOST,
    **columns: Unpack[AllColumns],
) -> Any:
    """Estimate prevalence and error rates from any table: the columns that are named decide the model.

    Without a `population` this is `fit_bayes`; with one it is `fit_populations`, whose populations took the
    same test and have a prevalence each; with `covariates` it is `fit_covariates`; with a `source` it is
    `fit_sources`, which gives each reader, test or rater error rates of its own, whatever the prevalence
    depends on. `model` may name another model, `method` another way to estimate.

    Parameters
    ----------
    table : dataframe, path, list of paths, Table, CountTable, CovariateTable, Readings, …
        Whatever `count_table` reads, or what is counted already.
    prior : Prior or SourcePrior, optional
        Of the three rates; `Prior()` if not given. With sources, a `SourcePrior`.
    reference : mapping of column to level, optional
        The levels that others of a category are compared with; the most frequent one if not named. A column
        of numbers becomes a category by it.
    missing_covariates : {"refuse", "level"}
        What becomes of a missing covariate: refused, or a level of its own.
    formula : str, optional
        Such as `"age + C(site)"`, in place of `covariates`; needs the extra `formula`. It is run as code.
    rng : Generator or int, optional
        Where the random numbers of a sampled model, one with sources, come from; the seed 1 if not given.
    model : {"common", "better-than-chance", "correlated", "populations", "covariates", "sources"}, optional
        What is assumed of the data; if not given, what the columns say. "sources" makes a source of each
        column of `replicates` of a wide table.
    method : {"bayes", "map", "average", "median"}
        How the rates of one test are estimated; the other models are fitted by Bayes.
    tol : float, optional
        The numerical error that a sampled model is to reach, in posterior standard deviations; 0.05.
    independent : bool
        Whether the readings of one individual by sources are independent given its status. If not, each
        counts as a part of one, learned without truth.
    merge : sequence of sequences of sources
        Sources to take for one, such as `[("ann", "bob")]` of whom one copies the other.
    most : int
        Readings to hold in memory. Of more, the error rates of sources are learned from a random part of the
        individuals, and a warning says so; `attach` and `score_file` score everyone.
    memory : str, optional
        The most memory to use for files, such as "4GB".
    sheet : str, optional
        The sheet of a workbook; the first if not given.
    population : str, optional
        Column that says which population a row belongs to.
    covariates : str or list of str, optional
        Columns of numbers or categories that the prevalence may depend on, one value per individual.
    **columns
        Which column plays which part, as in `count_table`. If none is named they are guessed, and a warning
        says how the table was read.

    Returns
    -------
    any fit

    Examples
    --------
    >>> import binreps as br
    >>> tests = br.Table({"patient": [1, 1, 2, 2, 3, 3], "test": [1, 1, 0, 0, 0, 1]})
    >>> result = fit(tests, individual="patient", result="test")
    >>> result == br.fit_bayes(br.count_table(tests, individual="patient", result="test"))
    True
    """
    check_keywords(columns, AllColumns)
    check_method(method)
    if rng is not None:
        generator(rng)
    made = None if formula is None else Formula(formula)
    if made is not None:
        if columns.get("covariates") is not None:
            raise OptionError("give covariates or a formula, which names its columns itself, not both")
        columns["covariates"] = list(made.variables)
    needs = _needs(table, columns, model)
    if needs is not None and method != "bayes":
        raise OptionError(f"a model with {needs} is fitted by the method bayes, got {method!r}")
    how: Any = {} if tol is None else {"tol": tol}
    if needs == "source":
        design = {"reference": reference, "missing_covariates": missing_covariates, "formula": made}
        data, found = _readings_of(table, columns, memory, sheet, most, design)
        warn_of(found)
        how |= {"independent": independent, "merge": merge, "rng": SEED if rng is None else rng}
        from binreps.fits.sources import fit_sources

        return fit_sources(data, prior, **how)  # type: ignore[arg-type]
    if needs == "covariates":
        records, notes = _records_of(table, columns, memory, reference, missing_covariates, made)
        warn_of(notes)
        from binreps.fits.covariates import fit_covariates

        return fit_covariates(records, prior, **how)  # type: ignore[arg-type]
    if reference:
        raise OptionError(f"reference names levels of covariates, and there are none, got {shown(reference)}")
    if tol is not None:
        raise OptionError("tol is for models that are sampled, those with sources; the others are exact")
    counts, notes = _counts_of(table, columns, memory, sheet)
    return _counted_fit(counts, model, method, prior, notes)


def _needs(table: Any, columns: Mapping[str, Any], model: str | None) -> str | None:
    """Which part besides results the model needs: that of the one named, or what the columns speak of."""
    given = {part for part in ("population", "covariates", "source") if names_of(columns.get(part))}
    given |= {"covariates"} if isinstance(table, CovariateTable) else set()
    given |= {"source"} if isinstance(table, Readings) else set()
    given |= {"population"} if isinstance(table, Mapping) else set()
    if model is None:
        return next((part for part in ("source", "covariates", "population") if part in given), None)
    check_model(model)
    if model == AUTO:
        raise OptionError("compare says which model fits; name one of them, or none for what the columns say")
    needs = MODELS[model].needs
    if needs in ("population", "covariates") and needs not in given:
        raise OptionError(f"the model {model} needs {needs}, which names no column here")
    return needs


def _counted_fit(counts: Any, model: str | None, method: str, prior: Any, notes: Any) -> Any:
    """The fit of counts, or of those of several populations."""
    several = isinstance(counts, Mapping)
    offer = MODELS[model or ("populations" if several else "common")]
    if several and offer.needs is None:
        counts = sum(counts.values(), CountTable([], []))
    if method != "bayes" and offer.kind != "bayes":
        raise OptionError(f"the model {offer.id} is fitted by the method bayes, got {method!r}")
    way = offer if method == "bayes" else METHODS[method]
    if prior is not None and not way.takes_prior:
        raise OptionError(f"the method {method} takes no prior, got {shown(prior)}")
    warn_of(notes)
    if offer.id == "better-than-chance":
        prior = offer.prior(checked_prior(prior))
    return way.fit(counts) if prior is None or not way.takes_prior else way.fit(counts, prior)


def _records_of(
    table: Any,
    columns: Mapping[str, Any],
    memory: str | None,
    reference: Mapping[str, Any] | None,
    missing_covariates: str,
    formula: Formula | None,
) -> tuple[CovariateTable, tuple[Note, ...]]:
    """Individuals with their covariates, of any table, or those that are given."""
    named = {name: value for name, value in columns.items() if value is not None}
    if isinstance(table, CovariateTable):
        if named:
            raise OptionError(f"records have no columns to name, so {next(iter(named))} cannot name one")
        return table, ()
    if isinstance(table, CountTable | Mapping):
        raise OptionError("counts have no columns, so covariates cannot name one; CovariateTable has both")
    check_no_population(named)
    covariates = names_of(named["covariates"])
    with open_table(table, column_names(named), memory=memory) as opened:
        notes: tuple[Note, ...] = ()
        if set(named) == {"covariates"}:
            guess = opened.guess({}, list(covariates))
            named = {**guess.columns, "covariates": covariates}
            notes = (Note("columns-guessed", f"read as {guess}"), *guess.notes)
        entries = read_entries(opened, named)
        records = entries.records(reference, missing_covariates, formula)
        return records, (*notes, *entries.notes)


def check_no_population(named: Mapping[str, Any]) -> None:
    """A population beside covariates is one of them."""
    if named.get("population") is not None:
        advice = f"name it among the covariates instead: {named['population']!r}"
        raise OptionError(f"population cannot be given with covariates; {advice}")


def _readings_of(
    table: Any,
    columns: Mapping[str, Any],
    memory: str | None,
    sheet: str | None,
    most: int,
    how: Mapping[str, Any],
) -> tuple[Readings, tuple[Note, ...]]:
    """Who said what, of any table with sources."""
    named = {name: value for name, value in columns.items() if value is not None}
    if isinstance(table, Readings):
        if named:
            raise OptionError(f"readings have no columns, so {next(iter(named))} cannot name one")
        return table, ()
    if isinstance(table, CountTable | Mapping):
        raise OptionError("counts do not say who gave which result: sources need a table, or Readings")
    if named.get("covariates"):
        check_no_population(named)
    check_whole("most", most, 1, 10**12)
    with open_table(table, column_names(named), memory=memory, sheet=sheet) as opened:
        population = named.pop("population", None)
        beside = {name: value for name, value in named.items() if name in ("source", "covariates")}
        if len(beside) == len(named):
            apart = [*names_of(named.get("covariates")), *filter(None, [population])]
            guessed = opened.guess({n: v for n, v in named.items() if n == "source"}, apart)
            named = {**guessed.columns, **named}
        reading = read(opened, named, population)
        readings, notes = source_readings(reading, most, who=whose(reading, **how))
    unused = ("source-not-used", "covariates-not-used")
    return readings, (*(note for note in reading.notes if note.id not in unused), *notes)


def _counts_of(
    table: Any, columns: Mapping[str, Any], memory: str | None, sheet: str | None
) -> tuple[Counts, tuple[Note, ...]]:
    """The counts of any table, or those that are given."""
    if isinstance(table, CountTable | Mapping):
        return counted(table, columns), ()
    return _read_counts(table, columns, memory, sheet)


def counted(table: Any, columns: Mapping[str, Any]) -> Any:
    """Counts as they are: they have no columns, and several are populations."""
    if isinstance(table, Mapping):
        for value in table.values():
            if not isinstance(value, CountTable):
                rule = "a mapping must hold one CountTable for each population"
                raise DataError(f"{rule}, got {type(value).__name__}")
    named = [name for name, value in columns.items() if value is not None]
    if named:
        raise OptionError(f"counts have no columns, so {named[0]} cannot name one")
    return table


def _read_counts(
    table: Any, columns: Mapping[str, Any], memory: str | None, sheet: str | None
) -> tuple[Counts, tuple[Note, ...]]:
    """The counts of a table whose columns are named, or guessed if none is."""
    named = {name: value for name, value in columns.items() if value is not None}
    wanted, population = column_names(named), named.pop("population", None)
    with open_table(table, wanted, memory=memory, sheet=sheet) as opened:
        notes: tuple[Note, ...] = () if opened.files is None else opened.files.notes
        if not named:
            guess = opened.guess({}, list(filter(None, [population])))
            named = dict(guess.columns)
            unused = (Note("columns-not-used", f"not used: {guess.unused}"),) if guess.unused else ()
            notes = (Note("columns-guessed", f"read as {guess}"), *unused, *guess.notes)
        reading = read(opened, named, population)
    return reading.counts, (*notes, *reading.notes)


@kinds_checked
def analyse(
    table: Any | PathLike | Sequence[PathLike] | Counts,
    settings: Settings | None = None,
    *,
    truth: str | CountTable | CovariateTable | None = None,
    memory: str | None = None,
    name: str | None = None,
    reference: Mapping[str, Any] | None = None,
    missing_covariates: str = "refuse",
    sheet: str | None = None,
    recipe: PathLike | None = None,
    **columns: Unpack[AllColumns],
) -> Any:
    r"""Fit by every method, decide by one, and keep all of it for the terminal, a file or a report.

    Parameters
    ----------
    table : dataframe, path, list of paths, Table, CountTable or mapping of CountTable
        Whatever `count_table` reads, or what is counted already; several count tables are populations that
        took the same test (`fit_populations`).
    settings : Settings, optional
        Method, prior, costs, level of intervals, length of the decision table.
    truth : str or CountTable, optional
        Column with the true statuses, which judge the answers and inform no fit (`known` does); in a file
        of its own, `"truth.csv:column"`, it is joined by individual. For counts: the same individuals with
        their true statuses as `known`.
    memory : str, optional
        The most memory to use for files, such as "4GB".
    name : str, optional
        What to call the data, if not by the name of the file.
    sheet : str, optional
        The sheet of a workbook; the first if not given.
    recipe : str or path, optional
        A recipe that `binreps read` wrote, or the summary of an analysis: the table is read exactly so, and
        refused if it differs. It names the columns, so none is given beside it.
    population : str, optional
        Column of the populations, which took the same test.
    covariates : str or list of str, optional
        Columns that the prevalence may depend on; `fit_covariates` then decides. `reference` and
        `missing_covariates` as in `fit`.
    **columns
        Which column plays which part, as in `count_table`; those that are not named are guessed.

    source : str, optional
        Column that says who or what gave the result: each source then has error rates of its own. Settings
        with the method "sources" make a source of each column of a wide table.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> analysis = analyse(CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31]))
    >>> analysis.answers
    {'negative': 69, 'inconclusive': 0, 'positive': 31}
    >>> print(analysis.main.rates())
    rate            average  median    map  bayes  lower  upper
    prevalence        0.340   0.310  0.310  0.312  0.239  0.390
    false-positive    0.030   0.043  0.048  0.052  0.029  0.080
    false-negative    0.059   0.000  0.011  0.022  0.004  0.052
    sensitivity       0.941   1.000  0.989  0.978  0.948  0.996
    specificity       0.970   0.957  0.952  0.948  0.920  0.971
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tests.csv")
    >>> _ = path.write_text("patient,first,second,third\nann,1,1,1\nbob,0,,0\n")
    >>> source = analyse(path).source
    >>> source.guess.kind, source.guess.columns["replicates"], source.missing
    ('wide', ['first', 'second', 'third'], 1)
    """
    how: Any = {"memory": memory, "name": name, "sheet": sheet, "recipe": recipe}
    how |= {"reference": reference, "missing_covariates": missing_covariates}
    with analysing(table, settings, truth=truth, **how, **columns) as analysis:
        return analysis


@contextmanager
def analysing(
    table: Any,
    settings: Settings | None = None,
    *,
    truth: str | CountTable | CovariateTable | None = None,
    memory: str | None = None,
    name: str | None = None,
    reference: Mapping[str, Any] | None = None,
    missing_covariates: str = "refuse",
    sheet: str | None = None,
    recipe: PathLike | None = None,
    **columns: Unpack[AllColumns],
) -> Iterator[Any]:
    """`analyse`, with the files kept open: what is written meanwhile needs no second reading."""
    settings = Settings() if settings is None else settings
    check_kind("settings", settings, Settings)
    if is_counted(table):
        data, called = counted(table, columns), _called(table, truth)
        yield replace(analysed(data, settings, truth), source=Source(name or called))
        return
    if not isinstance(truth, str | None):
        rule = "the truth of a table must be the name of its column"
        raise OptionError(f"{rule}, got a {type(truth).__name__}")
    how: Any = {"memory": memory, "name": name, "sheet": sheet, "recipe": recipe}
    how |= {"reference": reference, "missing_covariates": missing_covariates}
    with reading_source(table, columns, truth, **how) as source:
        yield analysed_source(source, settings)


@contextmanager
def reading_source(
    table: Any,
    columns: Mapping[str, Any],
    truth: str | None,
    *,
    memory: str | None = None,
    name: str | None = None,
    sheet: str | None = None,
    recipe: PathLike | None = None,
    reference: Mapping[str, Any] | None = None,
    missing_covariates: str = "refuse",
) -> Iterator[Source]:
    """A table opened and counted, its columns named by a recipe, by the user, or guessed."""
    known_recipe = None if recipe is None else load_recipe(recipe)
    if known_recipe is not None:
        columns = recipe_columns(known_recipe, {**columns, "truth": truth})
        truth = columns.pop("truth", None)
        sheet = sheet or recipe_sheet(known_recipe, table)
    named = named_columns(columns, truth)
    elsewhere = truth_file(truth) if is_path(table) else None
    wanted = column_names({**named, "truth": None if elsewhere else truth})
    with open_table(table, [] if known_recipe else wanted, memory=memory, name=name, sheet=sheet) as opened:
        if known_recipe is not None:
            check_recipe(known_recipe, opened, wanted)
        whole = opened if elsewhere is None else with_truth(opened, named, elsewhere)
        try:
            yield read_source(whole, named, reference, missing_covariates)
        finally:
            whole.closed = whole.files is not None  # a dataframe never is


def named_columns(columns: Mapping[str, Any], truth: str | None) -> dict[str, Any]:
    """The columns that are named, a truth among them; a status is known or judges, not both."""
    check_keywords(columns, AllColumns)
    given = {**columns, "truth": truth}
    named = {part: value for part, value in given.items() if value is not None}
    if "known" in named and truth is not None:
        rule = "a status that informed a fit cannot judge it"
        raise OptionError(f"give known={named['known']!r} or truth={truth!r}, not both: {rule}")
    return named


def read_source(
    opened: OpenTable,
    named: Mapping[str, Any],
    reference: Mapping[str, Any] | None = None,
    missing_covariates: str = "refuse",
) -> Source:
    """An open table with its columns completed, and counted."""
    apart = {part: named.get(part) for part in ("known", "truth", "population")}
    given = {part: value for part, value in named.items() if part not in apart}
    covariates = names_of(named.get("covariates"))
    if covariates:
        check_no_population(named)
    guess = opened.guess(given, list(filter(None, apart.values())))
    status = apart["known"] or apart["truth"]
    reading = read(opened, {**guess.columns, "known": status}, apart["population"])
    if guess.kind == "wide" and reading.repeated and "individual" not in given:  # found beyond the first rows
        columns = dict(guess.columns)
        individual = columns.pop("individual")
        if "replicates" not in given:
            raise several_rows(str(individual))
        guess = replace(guess, columns=cast(Columns, columns))
        reading = read(opened, {**columns, "known": status}, apart["population"])
    everything = {**guess.columns, "known": status}
    records = read_entries(opened, everything).records(reference, missing_covariates) if covariates else None
    return Source(
        opened.name,
        tuple(map(str, opened.paths)),
        opened.sha256,
        guess,
        **apart,
        by=named.get("source"),
        covariates=covariates,
        design={"reference": reference, "missing_covariates": missing_covariates},
        records=records,
        columns=tuple(opened.sample),
        missing=reading.missing,
        no_result=reading.no_result,
        sheet=None if opened.files is None else opened.files.sheet,
        separator=None if opened.files is None else opened.files.separator,
        reading=reading,
    )


def source_notes(source: Source) -> tuple[Note, ...]:
    """How a table was read."""
    assert source.guess is not None
    assert source.reading is not None
    known = () if source.known is None else (Note("known-scored", _KNOWN),)
    notes = dict.fromkeys([*source.guess.notes, *source.reading.notes, *known])
    return tuple(note for note in notes if not source.covariates or note.id != "covariates-not-used")


def is_counted(table: Any) -> bool:
    """Whether a table is a noun, which has no columns to name."""
    return isinstance(table, tuple(_NOUNS))


def _called(table: Any, truth: Any) -> str:
    """What a noun is called; a truth of another kind is refused."""
    noun, called = next((noun, called) for noun, called in _NOUNS.items() if isinstance(table, noun))
    kind = CountTable if noun is Mapping else noun
    if truth is not None and not isinstance(truth, kind):
        rule = f"the truth of {called} must be a {kind.__name__}"
        raise OptionError(f"{rule}, got {type(truth).__name__}")
    return called


def analysed_source(source: Source, settings: Settings) -> Analysis:
    """The analysis of a table that was read."""
    looks = looked_at(source)
    data, more = source_data(source, settings, looks)
    judges = source.truth is not None
    analysis = analysed(data.forget_known() if judges else data, settings, data if judges else None)
    compared = _compared_notes(analysis, source)
    used = {"source-not-used"} if analysis.fit.has_sources or compared else set()
    answered = ("reader-differences", "fixed-panel") if analysis.fit.has_sources else ()
    seen = [one for look in looks if look.kind not in answered for one in look.findings]
    analysis = replace(analysis, findings=Findings((*analysis.findings, *seen)))
    read = (note for note in [*source_notes(source), *more, *analysis.notes] if note.id not in used)
    return replace(analysis, source=source, notes=tuple(dict.fromkeys([*compared, *read])))


def _compared_notes(analysis: Analysis, source: Source) -> list[Note]:
    """That columns were named, and the model that needs them predicts no better than one without."""
    comparison = analysis.comparison
    if comparison is None or MODELS[comparison.chosen].needs is not None:
        return []
    named = {"source": source.by, "population": source.population, "covariates": source.covariates}
    tried = [MODELS[model] for model in comparison.models]
    said = "{} {} was compared and is not used: the model {} predicts no better; --model {} uses it"
    return [
        Note(f"{need}-compared", said.format(need, ", ".join(map(repr, names)), offer.name, offer.id))
        for offer in tried
        if (need := offer.needs) and (names := names_of(named[need]))
    ]


def source_data(
    source: Source, settings: Settings, looks: Sequence[Looked] = ()
) -> tuple[Data, tuple[Note, ...]]:
    """What was read in the forms that the models need; by source also where the results speak for it."""
    reading = source.reading
    assert reading is not None
    several = None if isinstance(reading.counts, CountTable) else reading.counts
    data = Data(reading.everyone, several, source.records)
    if settings.model == "sources" or (settings.model in (AUTO, None) and source.by):
        readings, notes = source_readings(reading, MOST, who=whose(reading, **source.design))
        return replace(data, readings=readings), notes
    if settings.model == AUTO and settings.method == "bayes" and several is None:
        for look in looks:
            if look.findings and look.kind in ("reader-differences", "fixed-panel"):
                return replace(data, readings=look.readings), ()
    return data, ()
