"""Which column plays which part, guessed from their names and a sample of their values.

A guess is made only where one reading stands out; otherwise the sentence lists the candidates. Whoever uses a
guess shows it, so that a wrong one is seen. A column that looks like a status is never used unasked: it could
train a fit or judge it, and only the user knows which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from binreps.counts import is_null
from binreps.errors import DataError
from binreps.notes import Note
from binreps.tables.roles import (
    KINDS,
    MISSING,
    NEGATIVE,
    PARTS,
    POSITIVE,
    STATUS_NAMES,
    Columns,
    Labels,
    column_names,
    names_of,
)
from binreps.tables.tally import listed, plain_text

Kind = Literal["long", "wide", "counted", "cells"]
Sample = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Guess:
    """The kind of a table, its columns as keywords of `count_table`, and what its reader should know."""

    kind: Kind
    columns: Columns
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        parts = (f"{part} {_quoted(names)}" for part, names in self.columns.items())
        return f"{KINDS[self.kind]}: {', '.join(parts)}"


def guess_columns(sample: Sample, given: Columns | None = None, left_out: Iterable[str] = ()) -> Guess:
    """Complete the columns that the user has named.

    Parameters
    ----------
    sample : mapping of column name to its first values
        All the columns of the table; a thousand rows are plenty.
    given : dict, optional
        The keywords of `count_table` that are already decided.
    left_out : iterable of str
        Columns with another part, such as groups or a truth that judges.

    Returns
    -------
    Guess

    Raises
    ------
    DataError
        If no reading stands out; the sentence lists the candidates.

    Examples
    --------
    >>> print(guess_columns({"patient": ["ann", "ann", "bob"], "test": ["pos", "neg", "neg"]}))
    one row per replicate: individual 'patient', result 'test'
    >>> print(guess_columns({"n": [3, 4], "s": [1, 4], "count": [20, 7]}))
    one row per (n, s), with its number of individuals: n 'n', s 's', weight 'count'
    """
    columns = cast(Columns, {part: name for part, name in (given or {}).items() if name is not None})
    taken = {*left_out, *column_names(columns)}
    free = {name: values for name, values in sample.items() if name not in taken}
    notes = _status_notes(free)
    free = {name: values for name, values in free.items() if not _named(name, "status")}
    kind = _given_kind(columns)
    if kind is None:
        kind = "counted" if _counts_named(free) else _kind_of_results(free, columns)
    complete = {"long": _long, "wide": _wide, "counted": _counted, "cells": _counted}[kind]
    found, more = complete(free, columns)
    if kind == "counted" and "weight" in found:
        kind = "cells"
    return Guess(kind, found, (*notes, *more))


def _given_kind(columns: Columns) -> Kind | None:
    """The kind that the named columns leave no doubt about."""
    if "result" in columns:
        return "long"
    if "replicates" in columns:
        return "wide"
    return "counted" if {"n", "s", "weight"} & set(columns) else None


def _kind_of_results(free: Sample, columns: Columns) -> Kind:
    """Wide if several columns hold results and no individual comes back, otherwise long."""
    results = _results(free, columns)
    if not results:
        example = _nearly(free) or (f"; the columns are {listed(list(free))}" if free else "")
        raise DataError(f"no column holds results (0/1, yes/no, pos/neg, +/−) or counts n and s{example}")
    named = [name for name in free if _named(name, "individual")]
    again = "individual" in columns or any(_comes_back(free[name]) for name in named)
    return "wide" if len(results) > 1 and not again else "long"


def _nearly(free: Sample) -> str:
    """What keeps the column that is called like a result from being one, if there is one."""
    name = next((name for name in free if _named(name, "result")), None)
    if name is None:
        return ""
    others = sorted({_text(value) for value in free[name]} - {"", *POSITIVE, *NEGATIVE})
    if len(others) == 2:
        return f"; column {name!r} holds {listed(others)}: say which of them is positive"
    return f"; column {name!r} also holds {listed(others)}" if others else f"; column {name!r} is empty"


def _long(free: Sample, columns: Columns) -> tuple[Columns, list[Note]]:
    """The result, whose it is, and who gave it if one column says so."""
    results = _results(free, columns)
    result = columns.get("result") or _one(results, "result", "results")
    rest = {name: values for name, values in free.items() if name != result}
    individual = columns.get("individual") or _individual(rest)
    if individual is None:
        raise DataError("say which column is the individual; none is left besides the results")
    sources = [name for name in rest if _named(name, "source") and name != individual]
    found = {**columns, "individual": individual, "result": result}
    if len(sources) == 1 and "source" not in columns:
        found["source"] = sources[0]
    return cast(Columns, found), []


def _wide(free: Sample, columns: Columns) -> tuple[Columns, list[Note]]:
    """The columns of results, and the individual if one column tells every row apart."""
    results = _results(free, columns)
    replicates = columns.get("replicates") or _numbered(results) or results
    rest = {name: values for name, values in free.items() if name not in set(replicates)}
    others = [] if "replicates" in columns else [name for name in results if name in rest]
    said = (
        f"not taken for replicates, though they read as results: {listed(others)}; name every replicate if "
    )
    notes = [Note("results-not-replicates", f"{said}they are")] if others else []
    return cast(Columns, {**_own_id(rest, columns), **columns, "replicates": list(replicates)}), notes


def _numbered(results: Sequence[str]) -> list[str]:
    """The results that are numbered alike (test1, test2, …), if one name alone is."""
    stems: dict[str, list[str]] = {}
    for name in results:
        if match := re.fullmatch(r"(.*?)[\W_]*[0-9]+", name.casefold().strip()):
            stems.setdefault(match[1], []).append(name)
    several = [names for names in stems.values() if len(names) > 1]
    return several[0] if len(several) == 1 else []


def _counted(free: Sample, columns: Columns) -> tuple[Columns, list[Note]]:
    """The columns n, s and weight by their names."""
    found = dict(columns)
    for part in ("n", "s"):
        if part not in found:
            found[part] = _one([name for name in _whole(free) if _named(name, part)], part, "counts")
    rest = {name: values for name, values in free.items() if name not in {found["n"], found["s"]}}
    weights = [name for name in rest if _named(name, "weight")]  # also one that cannot be read: it is refused
    own = _own_id(rest, columns)
    if "weight" not in found and len(weights) == 1 and not own:
        found["weight"] = weights[0]
    if "weight" in found:
        return cast(Columns, found), []
    why = "there is an individual in each row" if own else "there are several of the kind"
    said = f"not used as a number of individuals, as {why}: {listed(weights)}"
    notes = [Note("weight-not-used", said)] if weights else []
    return cast(Columns, {**own, **found}), notes


def _counts_named(free: Sample) -> bool:
    """Whether one column is called n and one s; or something like it, with s ≤ n in every row."""
    whole = _whole(free)
    n = [name for name in whole if _named(name, "n")]
    s = [name for name in whole if _named(name, "s")]
    if len(n) != 1 or len(s) != 1 or n == s:
        return False
    if (n[0].casefold(), s[0].casefold()) == ("n", "s"):
        return True  # nothing else is called that; an s above its n is then a mistake in the data
    pairs = zip(free[n[0]], free[s[0]], strict=True)
    return all(_number(a) >= _number(b) for a, b in pairs if _text(a) and _text(b))


def _results(free: Sample, columns: Columns) -> list[str]:
    """The columns whose values all read as results."""
    labels = Labels(*(names_of(columns.get(name)) for name in ("positive", "negative", "missing")))
    positive, negative, missing = labels.words()
    results = []
    for name, values in free.items():
        texts = {_text(value) for value in values} - {"", *missing}
        others = texts - {*positive, *negative}
        fits = not others or (labels.positive and not labels.negative and len(others) == 1)
        given = texts & {*positive, *negative} or (texts and labels.negative)
        if given and fits and not _named(name, "individual") and not _named(name, "source"):
            results.append(name)
    return results


def _individual(free: Sample) -> str | None:
    """The column that says whose result it is: by its name, or the only one left."""
    rest = [name for name in free if not _named(name, "source")]
    named = [name for name in rest if _named(name, "individual")]
    choice = named or rest
    if len(choice) > 1:
        raise DataError(f"say which column is the individual; the candidates are {listed(choice)}")
    return choice[0] if choice else None


def _comes_back(individuals: Sequence[Any]) -> bool:
    """Whether someone has more than one row."""
    given = [text for value in individuals if (text := _text(value))]
    return len(set(given)) < len(given)


def _own_id(rest: Sample, columns: Columns) -> dict[str, Any]:
    """The individual of a table with one row each: a column so named, whose values differ.

    It is not needed to count, and the answer shows every column anyway, so that none is a good guess too.
    """
    named = [name for name in rest if _named(name, "individual")]
    if len(named) != 1 or "individual" in columns or _comes_back(rest[named[0]]):
        return {}
    return {"individual": named[0]}


def _one(candidates: Sequence[str], part: str, what: str) -> str:
    """The only candidate, or the only one with a telling name."""
    named = [name for name in candidates if _named(name, part)]
    if len(candidates) == 1 or len(named) == 1:
        return named[0] if named else candidates[0]
    if not candidates:
        raise DataError(f"say which column holds {part}; none of the others holds {what}")
    raise DataError(f"say which column holds {part}; the candidates are {listed(list(candidates))}")


def _status_notes(free: Sample) -> list[Note]:
    """What is said of columns that look like a status."""
    advice = "name it as known if it should inform the fit, or as truth if it should judge it"
    names = [name for name in free if _named(name, "status")]
    said = (f"column {name!r} looks like a status and is not used; {advice}" for name in names)
    return [Note("status-not-used", sentence) for sentence in said]


def _whole(free: Sample) -> list[str]:
    """The columns of whole numbers."""
    number = re.compile(r"[0-9]{1,16}([.,]0*)?")
    texts = {name: {_text(value) for value in values} - {""} for name, values in free.items()}
    return [name for name, values in texts.items() if values and all(number.fullmatch(v) for v in values)]


def _number(value: object) -> float:
    """A count, also as text such as 3,0."""
    return float(_text(value).replace(",", "."))


def _named(name: str, part: str) -> bool:
    """Whether a column's name is one of those usual for a part."""
    usual = STATUS_NAMES if part == "status" else PARTS[part].names
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_") in usual


def _text(value: object) -> str:
    """A value as its label is compared; nothing for a missing one."""
    if is_null(value):
        return ""
    text = (plain_text(value) or "").strip().lower()
    return "" if text in MISSING else text


def _quoted(names: Any) -> str:
    """One column, or several; of many the first and the last."""
    several = list(names) if isinstance(names, list | tuple) else [names]
    if len(several) > 6:
        return f"{several[0]!r} to {several[-1]!r} ({len(several)} columns)"
    return ", ".join(repr(name) for name in several)
