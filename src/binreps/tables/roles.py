"""Which part a column can play: the one list that functions, command line, page and words are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypedDict

from binreps.errors import DataError, OptionError
from binreps.notes import Note

POSITIVE = ("positive", "pos", "yes", "true", "+", "1", "1.0", "1,0")
"""Words for a positive result, lower case."""

NEGATIVE = ("negative", "neg", "no", "false", "-", "−", "–", "0", "0.0", "0,0")
"""Words for a negative result, lower case; the signs are a hyphen, a minus and a dash."""

MISSING = ("", "na", "n/a", "nan", "null", "<na>")
"""Words for a missing result, lower case."""


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
    counts : bool
        Whether it is needed to count; the others say what the counted individuals are.
    label : bool
        Whether it is not a column but a word in one.
    """

    title: str
    help: str
    names: frozenset[str] = frozenset()
    many: bool = False
    option: str = ""
    counts: bool = True
    label: bool = False


def _words(text: str) -> frozenset[str]:
    """Usual names, separated by blanks."""
    return frozenset(text.split())


PARTS: Mapping[str, ColumnPart] = MappingProxyType(
    {
        "individual": ColumnPart(
            "Individual",
            "Whose replicate it is; repeat for several columns.",
            _words(
                "individual id patient patient_id subject subject_id sample sample_id item item_id person "
                "person_id case case_id participant participant_id specimen image claim task well unit name"
            ),
            many=True,
        ),
        "result": ColumnPart(
            "Result",
            "Results of a long table, one row per replicate.",
            _words(
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
            _words("n ni n_i n_tests tests n_replicates replicates trials n_trials total measurements"),
        ),
        "s": ColumnPart(
            "Number of positives s",
            "Number of positives.",
            _words(
                "s si s_i positives n_positives n_positive n_pos npos hits successes detections positive k"
            ),
        ),
        "weight": ColumnPart(
            "Number of individuals",
            "Number of individuals with that n and s.",
            _words("weight w count counts freq frequency individuals n_individuals patients subjects"),
        ),
        "known": ColumnPart(
            "Known status (informs the fit)", "Statuses that are known, and inform the fit.", counts=False
        ),
        "truth": ColumnPart(
            "True status (only judges)", "True statuses, which only judge the answers.", counts=False
        ),
        "population": ColumnPart(
            "Population (same test)",
            "Populations that took the same test: one prevalence each.",
            counts=False,
        ),
        "source": ColumnPart(
            "Source (who or what gave the result)",
            "Who or what gave the result; no model uses it yet.",
            _words(
                "source source_id rater rater_id reader reader_id worker worker_id annotator judge "
                "radiologist observer dentist"
            ),
            counts=False,
        ),
        "positive": ColumnPart(
            "Word for positive, if unusual", "The label of a positive result.", label=True
        ),
        "negative": ColumnPart(
            "Word for negative, if unusual", "The label of a negative result.", label=True
        ),
    }
)
"""Every part, by the keyword that names its column."""

STATUS_NAMES = _words(
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

NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "long": ("individual", "result"),
        "wide": ("individual", "replicates"),
        "counted": ("individual", "n", "s"),
        "cells": ("n", "s", "weight"),
    }
)
"""The parts that each kind of table has."""


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
    positive: Any
    negative: Any


class AllColumns(Columns, total=False):
    """The keywords of `fit`: those of `count_table`, and the populations."""

    population: str | None


class JudgedColumns(AllColumns, total=False):
    """The keywords of `analyse`: those of `fit`, and a truth that judges."""

    truth: str | None


@dataclass(frozen=True)
class Roles:
    """The columns of `count_table`, checked to describe one kind of table."""

    individual: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    n: str | None = None
    s: str | None = None
    weight: str | None = None
    known: str | None = None
    source: str | None = None
    positive: Any = None
    negative: Any = None
    long: bool = False

    @classmethod
    def of(cls, **columns: Any) -> Roles:
        """The roles from the keywords of `count_table`."""
        check_keywords(columns, Columns)
        result, replicates = columns.pop("result", None), columns.pop("replicates", None)
        if result is not None and replicates is not None:
            raise OptionError("give result (a long table) or replicates (a wide one), not both")
        roles = cls(
            **{**columns, "individual": names_of(columns.get("individual"))},
            results=names_of(result) or names_of(replicates),
            long=result is not None,
        )
        roles._check()
        return roles

    def _check(self) -> None:
        """Refuse what describes no table, or two at once."""
        for name in self.used:
            if not isinstance(name, str) or not name:
                raise OptionError(f"columns must be given by their names, got {name!r}")
            if name.startswith("__binreps_"):
                raise OptionError(f"column {name!r} has a name that binreps uses itself; rename it")
        self._check_kind()
        if self.negative is not None and self.positive is None:
            raise OptionError("negative needs positive, the label of a positive result")
        used = self.used
        twice = sorted({name for name in used if used.count(name) > 1})
        if twice:
            raise OptionError(f"column {twice[0]!r} is named for two different parts")

    def _check_kind(self) -> None:
        """One kind of table, with all that it needs."""
        counted = self.n is not None and self.s is not None
        half = (self.n is None) != (self.s is None)
        if half or counted == bool(self.results) or (self.weight is not None and not counted):
            forms = "individual and result, or replicates, or n and s, or n, s and weight"
            raise OptionError(f"name the columns of one kind of table: {forms}")
        if self.long and not self.individual:
            raise OptionError("a long table needs individual, the column that says whose result it is")
        if self.weight is not None and self.individual:
            raise OptionError("weight counts individuals, so individual cannot be given with it")

    @property
    def used(self) -> list[str]:
        """Every column that is named."""
        single = (self.n, self.s, self.weight, self.known, self.source)
        return [*self.individual, *self.results, *(name for name in single if name is not None)]

    @property
    def notes(self) -> tuple[Note, ...]:
        """That a column of sources is not used yet."""
        return () if self.source is None else (source_note(self.source),)


def source_note(column: str) -> Note:
    """What is said of a column of sources."""
    same = "the model gives every source the same error rates"
    return Note("source-not-used", f"{same}, so column {column!r} is not used")


def check_keywords(columns: Mapping[str, Any], known: Any) -> None:
    """Refuse a keyword that names no part."""
    unknown = sorted(set(columns) - set(known.__annotations__))
    if unknown:
        choice = ", ".join(known.__annotations__)
        raise OptionError(f"there is no keyword {unknown[0]!r}; the columns are named by {choice}")


def check_columns(wanted: Iterable[str], have: Sequence[str], listed: str) -> None:
    """Refuse a column that the table does not have; `listed` are those it has, in words."""
    for name in wanted:
        if name not in have:
            raise DataError(f"there is no column {name!r}; the columns are {listed}")


def names_of(value: Any) -> tuple[str, ...]:
    """No, one or several column names, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)


def column_names(columns: Mapping[str, Any]) -> list[str]:
    """Every column that the keywords name, alone or in lists."""
    return [
        name
        for part, value in columns.items()
        if part not in PARTS or not PARTS[part].label
        for name in names_of(value)
    ]
