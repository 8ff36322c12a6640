"""Which part a column can play: the one list that functions, command line, page and words are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypedDict

from binreps.errors import DataError, OptionError
from binreps.notes import Note
from binreps.options import is_single, shown

VOCABULARIES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "0/1": (("1", "1.0", "1,0"), ("0", "0.0", "0,0")),
        "yes/no": (("yes", "y"), ("no", "n")),
        "true/false": (("true",), ("false",)),
        "positive/negative": (("positive", "pos", "pos."), ("negative", "neg", "neg.")),
        "+/−": (("+",), ("-", "−", "–")),  # a hyphen, a minus and a dash
        "reactive/non-reactive": (
            ("reactive",),
            ("non-reactive", "nonreactive", "non reactive", "not reactive", "unreactive"),
        ),
        "detected/not detected": (("detected",), ("not detected", "not-detected", "undetected")),
        "present/absent": (("present",), ("absent",)),
    }
)
"""Words for a positive and for a negative result, lower case, by the name of their pair."""

POSITIVE = tuple(word for positive, _ in VOCABULARIES.values() for word in positive)
"""Words for a positive result, lower case."""

NEGATIVE = tuple(word for _, negative in VOCABULARIES.values() for word in negative)
"""Words for a negative result, lower case."""

BLANK = ("", "na", "n/a", "nan", "null", "<na>", "none", ".", "#n/a")
"""Words of software for a cell that is empty, lower case."""

MISSING = (
    *BLANK,
    *("nd", "n.d.", "n.d", "n/d", "nt", "n.t.", "not done", "not tested", "not performed"),
    *("not determined", "not available", "not applicable", "not interpretable", "not readable"),
    *("indeterminate", "indet", "indet.", "inconclusive", "equivocal", "equiv", "equiv.", "borderline"),
    *("doubtful", "unclear", "uncertain", "ambiguous", "grey zone", "gray zone", "uninterpretable"),
    *("unreadable", "invalid", "inv", "inv.", "inhibited", "inhibition", "insufficient", "qns"),
    *("no result", "no sample", "missing", "unknown", "unk", "pending", "error", "?"),
)
"""Words for "no result", lower case; those that are not blank are counted, and shown."""


@dataclass(frozen=True)
class ColumnPart:
    """One part that a column can play.

    Attributes
    ----------
    title : str
        What the page calls it.
    help : str
        What the command line says of it.
    names : set of str
        How such columns are usually called; empty for a part that is never guessed.
    many : bool
        Whether several columns can play it together.
    option : str
        The option of the command line, if it has another name than the keyword.
    label : bool
        Whether it is not a column but a word in one.
    """

    title: str
    help: str
    names: frozenset[str] = frozenset()
    many: bool = False
    option: str = ""
    label: bool = False


def words_of(text: str) -> frozenset[str]:
    """Usual names, separated by blanks."""
    return frozenset(text.split())


PARTS: Mapping[str, ColumnPart] = MappingProxyType(
    {
        "individual": ColumnPart(
            "Individual",
            "Whose replicate it is; repeat for several columns.",
            words_of(
                "individual id patient patient_id subject subject_id sample sample_id item item_id person "
                "person_id case case_id participant participant_id specimen image claim task well unit name "
                "slide who donor animal"
            ),
            many=True,
        ),
        "result": ColumnPart(
            "Result",
            "Results of a long table, one row per replicate.",
            words_of(
                "result results test outcome reading answer response call detected judgement judgment vote x"
            ),
        ),
        "replicates": ColumnPart(
            "Results, one column per replicate",
            "A column of results of a wide table; repeat for each.",
            many=True,
            option="replicate",
        ),
        "n": ColumnPart(
            "Number of replicates n",
            "Number of replicates.",
            words_of("n ni n_i n_tests tests n_replicates replicates trials n_trials total measurements"),
        ),
        "s": ColumnPart(
            "Number of positives s",
            "Number of positives.",
            words_of(
                "s si s_i positives n_positives n_positive n_pos npos hits successes detections positive k"
            ),
        ),
        "weight": ColumnPart(
            "Number of individuals",
            "Number of individuals with that n and s.",
            words_of(
                "weight w count counts freq frequency individuals n_individuals patients n_patients subjects "
                "n_subjects people n_people persons n_persons"
            ),
        ),
        "known": ColumnPart(
            "Known status (informs the fit)",
            "Statuses that are known, and inform the fit.",
        ),
        "truth": ColumnPart(
            "True status (only judges)",
            "True statuses, which only judge the answers; truth.csv:column for those in another file.",
        ),
        "population": ColumnPart(
            "Population (same test)",
            "Populations that took the same test: one prevalence each.",
        ),
        "source": ColumnPart(
            "Source (who or what gave the result)",
            "Who or what gave the result, in a long table: each gets error rates of its own.",
            words_of(
                "source source_id rater rater_id reader reader_id worker worker_id annotator annotator_id "
                "judge judge_id radiologist pathologist observer dentist examiner technician operator "
                "machine device instrument analyser analyzer laboratory lab kit assay method"
            ),
        ),
        "covariates": ColumnPart(
            "Covariates",
            "What the prevalence may depend on: numbers or categories; repeat, or give several with commas.",
            words_of(
                "age sex gender male female race ethnicity bmi weight_kg height height_cm smoker smoking "
                "smoked diabetes diabetic hypertension hypertensive pregnant pregnancy vaccinated "
                "vaccination symptomatic symptoms symptom fever cough asthma copd obese obesity alcohol "
                "immunosuppressed comorbidity comorbidities hospitalised hospitalized inpatient outpatient "
                "icu ward arm treatment treated therapy medication antibiotics insured married consent "
                "consented menopausal postmenopausal family_history history travel travelled contact "
                "exposed exposure allergy allergies steroids anticoagulant transplant dialysis "
                "rh rhesus parity grade stage healthcare_worker hcw"
            ),
            many=True,
        ),
        "time": ColumnPart(
            "Time",
            "When it was measured; no model uses it yet.",
            words_of(
                "time date day datetime timestamp visit visit_date date_of_visit sample_date collected "
                "collection_date date_of_collection test_date date_of_test week month year wave round"
            ),
        ),
        "batch": ColumnPart(
            "Batch",
            "What was measured together: a plate, a run, a lot; no model uses it yet.",
            words_of("batch batch_id plate plate_id run run_id lot lot_id lot_number rack tray cartridge"),
        ),
        "positive": ColumnPart(
            "Words for positive, if unusual",
            "A label of a positive result; repeat for several.",
            many=True,
            label=True,
        ),
        "negative": ColumnPart(
            "Words for negative, if unusual",
            "A label of a negative result; repeat for several.",
            many=True,
            label=True,
        ),
        "missing": ColumnPart(
            "More words for no result",
            "A word for no result, besides blank, NA, ND, indeterminate, invalid and the like; repeat "
            "for several.",
            many=True,
            label=True,
        ),
    }
)
"""Every part, by the keyword that names its column."""

STATUS_NAMES = words_of(
    "truth true_status status known gold gold_standard reference disease diseased infected t y"
)
"""How columns with a status are usually called: known or truth, and only the user knows which."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "long": "one row per replicate",
        "wide": "one row per individual, one column per replicate",
        "counted": "one row per individual, with counts",
        "cells": "one row per (n, s), with its number of individuals",
    }
)
"""The kinds of tables, in words."""


class Columns(TypedDict, total=False):
    """Which column plays which part: the keywords of `count_table`, shared by all that reads tables."""

    individual: str | Sequence[str] | None
    result: str | None
    replicates: Sequence[str] | None
    n: str | None
    s: str | None
    weight: str | None
    known: str | None
    source: str | None
    covariates: str | Sequence[str] | None
    time: str | None
    batch: str | None
    positive: Any
    negative: Any
    missing: Any


class AllColumns(Columns, total=False):
    """The keywords of `fit` and `analyse`: those of `count_table`, and the populations."""

    population: str | None


@dataclass(frozen=True)
class Labels:
    """How the words, or numbers, of a result read; the usual words where no positive label is given.

    Attributes
    ----------
    positive, negative : tuple
        Labels; with positive ones alone nothing is negative, until the other label is looked up.
    missing : tuple
        Words for no result besides the usual ones.
    """

    positive: tuple[Any, ...] = ()
    negative: tuple[Any, ...] = ()
    missing: tuple[Any, ...] = ()

    def words(self) -> tuple[list[str], list[str], list[str]]:
        """Positive, negative and missing words, lower case; a label of the user's is never missing."""
        positive, negative = map(compared, self.positive), map(compared, self.negative)
        both = [*positive], [*negative]
        if not self.positive:
            both = [*POSITIVE], [*NEGATIVE]
        more = [*map(compared, self.missing)]
        missing = [word for word in (*MISSING, *more) if word in more or word not in {*both[0], *both[1]}]
        return [w for w in both[0] if w not in more], [w for w in both[1] if w not in more], missing

    def check(self) -> None:
        """Refuse a negative label alone, and one label for two things."""
        if self.negative and not self.positive:
            raise OptionError("negative needs positive, the label of a positive result")
        seen: dict[str, str] = {}
        for name, label in [(name, label) for name, all_of_it in vars(self).items() for label in all_of_it]:
            word = compared(label)
            if seen.get(word, name) != name:
                raise OptionError(f"{seen[word]} and {name} must be different labels, got {label!r} twice")
            seen[word] = name


def compared(value: object) -> str:
    """A label as it is compared: as text, whatever its case and the blanks around it."""
    number = isinstance(value, float) and value.is_integer()
    return str(int(value) if number else value).strip().lower()  # type: ignore[call-overload]


NOT_USED_YET = ("covariates", "time", "batch")
"""Parts that no count uses; covariates are used by fits of their own."""


@dataclass(frozen=True)
class Roles:
    """The columns of `count_table`, checked to describe one kind of table.

    Who gave a result is the column `source` of a long table; in a wide one the columns in `results` are the
    sources themselves.
    """

    individual: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    n: str | None = None
    s: str | None = None
    weight: str | None = None
    known: str | None = None
    source: str | None = None
    covariates: tuple[str, ...] = ()
    time: str | None = None
    batch: str | None = None
    labels: Labels = Labels()
    long: bool = False

    @classmethod
    def of(cls, **columns: Any) -> Roles:
        """The roles from the keywords of `count_table`."""
        check_keywords(columns, Columns)
        result, replicates = columns.pop("result", None), columns.pop("replicates", None)
        if result is not None and replicates is not None:
            raise OptionError("give result (a long table) or replicates (a wide one), not both")
        labels = Labels(*(names_of(columns.pop(name, None)) for name in ("positive", "negative", "missing")))
        several = {name: names_of(columns.get(name)) for name in ("individual", "covariates")}
        roles = cls(
            **{**columns, **several},
            results=names_of(result) or names_of(replicates),
            labels=labels,
            long=result is not None,
        )
        roles._check()
        return roles

    def _check(self) -> None:
        """Refuse what describes no table, or two at once."""
        for name in self.used:
            if not isinstance(name, str) or not name:
                raise OptionError(f"columns must be given by their names, got {shown(name)}")
            if name.startswith("__binreps_"):
                raise OptionError(f"column {name!r} has a name that binreps uses itself; rename it")
        self._check_kind()
        self.labels.check()
        used = self.used
        twice = sorted({name for name in used if used.count(name) > 1})
        if twice:
            raise OptionError(f"column {twice[0]!r} is named for two different parts")

    def _check_kind(self) -> None:
        """One kind of table, with all that it needs."""
        counted = self.n is not None and self.s is not None
        half = (self.n is None) != (self.s is None)
        if half or counted == bool(self.results) or (self.weight is not None and self.long):
            forms = "individual and result, or replicates, or n and s, and weight with the last two"
            raise OptionError(f"name the columns of one kind of table: {forms}")
        if counted and (self.labels.positive or self.labels.negative):
            label = [*self.labels.positive, *self.labels.negative][0]
            raise OptionError(
                "positive and negative are labels of single results; n and s are counts and need none, "
                f"got {label!r}"
            )
        if self.long and not self.individual:
            raise OptionError("a long table needs individual, the column that says whose result it is")
        if self.weight is not None and self.individual:
            raise OptionError("weight counts individuals, so individual cannot be given with it")

    @property
    def used(self) -> list[str]:
        """Every column that is named."""
        single = (self.n, self.s, self.weight, self.known, self.source, self.time, self.batch)
        several = (*self.individual, *self.results, *self.covariates)
        return [*several, *(name for name in single if name is not None)]

    @property
    def notes(self) -> tuple[Note, ...]:
        """That sources, covariates, time and batch are not used yet."""
        later = ((name, names_of(getattr(self, name))) for name in NOT_USED_YET)
        notes = [unused_note(part, names) for part, names in later if names]
        return (*(() if self.source is None else (source_note(self.source),)), *notes)


def source_note(column: str) -> Note:
    """What is said of a column of sources."""
    same = "the model gives every source the same error rates"
    advice = f"give source={column!r} to a fit, or --source, for rates of each source"
    return Note("source-not-used", f"{same}, so column {column!r} is not used; {advice}")


def unused_note(part: str, names: Sequence[str]) -> Note:
    """What is said of a part that no model uses yet."""
    columns = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
    if part == "covariates":
        said = f"counts leave covariates out, so {columns} only stay; fit and analyse use them"
        return Note("covariates-not-used", said)
    return Note(f"{part}-not-used", f"{part} is not used by any model yet, so {columns} only stay")


def check_keywords(columns: Mapping[str, Any], known: Any) -> None:
    """Refuse a keyword that names no part, and a name that is no text; labels are looked at elsewhere."""
    unknown = sorted(set(columns) - set(known.__annotations__))
    if unknown:
        choice = ", ".join(known.__annotations__)
        raise OptionError(f"there is no keyword {unknown[0]!r}; the columns are named by {choice}")
    for part, value in columns.items():
        for name in () if PARTS[part].label else names_of(value):
            if not isinstance(name, str):
                raise OptionError(f"columns must be given by their names, got {shown(name)} for {part}")


def check_columns(wanted: Iterable[str], have: Sequence[str], listed: str) -> None:
    """Refuse a column that the table does not have; `listed` are those it has, in words."""
    for name in wanted:
        if name not in have:
            raise DataError(f"there is no column {name!r}; the columns are {listed}")
        if name == "*":  # which engines take for all columns
            raise DataError("a column that is used must not be called '*'; rename it")


def names_of(value: Any) -> tuple[str, ...]:
    """No, one or several column names, as a tuple."""
    if value is None:
        return ()
    several = isinstance(value, Iterable) and not isinstance(value, str) and not is_single(value)
    return tuple(value) if several else (value,)


def column_names(columns: Mapping[str, Any]) -> list[str]:
    """Every column that the keywords name, alone or in lists."""
    return [
        name
        for part, value in columns.items()
        if part not in PARTS or not PARTS[part].label
        for name in names_of(value)
    ]
