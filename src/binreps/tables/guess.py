"""Which column plays which part, guessed from their names and a sample of their values.

Columns that read alike and are numbered or called alike are a family. One clear family is used, and whoever
uses the guess shows which columns are results, which are not, and why. Two families, or a column that would
belong to the family but for some values, are a question, and its sentence says how to answer. A column that
looks like a status is never used unasked: it could train a fit or judge it, and only the user knows which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from binreps.errors import DataError
from binreps.notes import Note
from binreps.tables.profile import (
    Profile,
    counted,
    named,
    profiles,
    short_list,
    stems,
    whole_numbers,
)
from binreps.tables.roles import KINDS, Columns, Labels, column_names, names_of
from binreps.tables.tally import listed

Kind = Literal["long", "wide", "counted", "cells"]
Sample = Mapping[str, Sequence[Any]]
_Free = Mapping[str, Profile]

_ROWS = 10  # from which on a column with one value in all of them names nobody
_FEW = 12  # different values up to which a column may hold results in labels that nobody knows
_ODD = 12  # words that are listed of a column
_NAMED = "name the results as replicates (--replicate), and the others as covariates (--covariates)"


class QuestionError(DataError):
    """A table that can be read in two ways; the sentence says how to answer.

    Attributes
    ----------
    proposed : dict
        The columns, where only the meaning of some words is open.
    """

    def __init__(self, sentence: str, proposed: Columns | None = None) -> None:
        super().__init__(sentence)
        self.proposed: Columns = proposed or {}


@dataclass(frozen=True)
class Guess:
    """The kind of a table, its columns as keywords of `count_table`, and what its reader should know.

    Attributes
    ----------
    kind : {"long", "wide", "counted", "cells"}
    columns : dict
    notes : tuple of Note
    others : dict
        Why a column is not used, for each that is not.
    """

    kind: Kind
    columns: Columns
    notes: tuple[Note, ...] = ()
    others: Mapping[str, str] | None = None

    def __str__(self) -> str:
        parts = (f"{part} {short_list(map(str, names_of(names)))}" for part, names in self.columns.items())
        return f"{KINDS[self.kind]}: {', '.join(parts)}"

    @property
    def unused(self) -> str:
        """The columns that are not used and why, in words; nothing if all are."""
        reasons: dict[str, list[str]] = {}
        for name, reason in (self.others or {}).items():
            reasons.setdefault(reason, []).append(name)
        return "; ".join(f"{short_list(names)} ({reason})" for reason, names in reasons.items())


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
    QuestionError
        If no reading stands out; the sentence lists the candidates.

    Examples
    --------
    >>> print(guess_columns({"patient": ["ann", "ann", "bob"], "test": ["pos", "neg", "neg"]}))
    one row per replicate: individual 'patient', result 'test'
    >>> print(guess_columns({"n": [3, 4], "s": [1, 4], "count": [20, 7]}))
    one row per (n, s), with its number of individuals: n 'n', s 's', weight 'count'
    >>> table = {"id": [1, 2], "reader A": ["pos", "neg"], "reader B": ["pos", "nd"], "smoker": ["yes", "no"]}
    >>> guess = guess_columns(table)
    >>> print(guess)
    one row per individual, one column per replicate: individual 'id', replicates 'reader A', 'reader B'
    >>> guess.unused
    "'smoker' (a covariate by its name)"
    """
    columns = cast(Columns, {part: name for part, name in (given or {}).items() if name is not None})
    labels = Labels(*(names_of(columns.get(name)) for name in ("positive", "negative", "missing")))
    taken = {*left_out, *column_names(columns)}
    everything = profiles(sample, labels)
    free = {name: one for name, one in everything.items() if name not in taken}
    kind, found, notes = _Table(free, everything, columns).read()
    others = {name: _why_not(one) for name, one in free.items() if name not in column_names(found)}
    return Guess(kind, found, (*_status_notes(others, free), *notes), others)


def _why_not(one: Profile) -> str:
    """Why a column is not used."""
    if one.part == "status":
        return "looks like a status"
    if one.part in ("source", "covariates", "time", "batch"):
        article = "" if one.part == "time" else "a "
        return f"{article}{one.part.removesuffix('s')} by its name"
    if one.part == "individual":
        return "an identifier by its name"
    if one.holds in ("results", "nearly", "two words"):
        return f"{one.contents}, but not of the family"
    return f"holds {one.contents}"


def _status_notes(others: Mapping[str, str], free: _Free) -> list[Note]:
    """What is said of columns that look like a status."""
    advice = "name it as known if it should inform the fit, or as truth if it should judge it"
    names = [name for name in others if free[name].part == "status"]
    said = (f"column {name!r} looks like a status and is not used; {advice}" for name in names)
    return [Note("status-not-used", sentence) for sentence in said]


@dataclass(frozen=True)
class _Table:
    """The columns that are free, all columns, and what the user has named."""

    free: _Free
    everything: _Free
    columns: Columns

    def read(self) -> tuple[Kind, Columns, list[Note]]:
        """The kind of the table, its columns completed, and what to know."""
        if "replicates" in self.columns:
            return "wide", self._with_id(), []
        if "result" in self.columns:
            return "long", self._long(str(self.columns["result"])), []
        if {"n", "s"} & set(self.columns):
            return self._counted()
        if counts := self._counts_named():
            self._without(counts).check_no_results()
            return self._counted()
        if family := self._family():
            return self._wide(family)
        if "weight" in self.columns:
            return self._counted()
        return "long", self._long(self._result()), []

    def _without(self, names: Sequence[str]) -> _Table:
        """The table without some columns."""
        return replace(self, free={name: one for name, one in self.free.items() if name not in names})

    def check_no_results(self) -> None:
        """Ask where a table with counts also has columns of results."""
        numbered, called, _ = self._groups()
        if numbered or len(called) > 1:
            both = f"counts, and columns of results: {short_list((*numbered, called)[0])}"
            raise QuestionError(f"the table has {both}; name n and s (--n, --s), or replicates (--replicate)")

    # One row per individual

    def _family(self) -> list[str]:
        """The columns of results of a wide table; none if one column alone, or none, holds results."""
        if (len(self._readings()) < 2 and not self._numbered()) or self._is_long():
            return []
        numbered, called, alone = self._groups()
        groups = [*numbered, *([called] if called else [])]
        if len(groups) > 1:
            raise self._two_families(groups)
        rest = [group for group in self._by_vocabulary(alone) if len(group) > 1]
        if not numbered and len(called) < 2:
            if called or not rest:
                return []
            raise QuestionError(
                f"nothing but their values says that {self._described([alone])} are results; {_NAMED}"
            )
        (family,) = groups
        self._check_rivals(family, family is called, alone)
        self._check_odd(family)
        if not self._shared(family):
            self._check_suspects(family)
        return self._with_empty(family)

    def _check_suspects(self, chosen: Sequence[str]) -> None:
        """Ask where other columns are called like results, and hold few words that are none."""
        few = [one for name, one in self.free.items() if name not in chosen and 0 < len(one.words) <= _FEW]
        suspects = [one for one in few if one.called and one.part is None and not one.plausible]
        if suspects:
            one = suspects[0]
            said = f"column {one.name!r} is called like a result, but holds {counted(one.words)}"
            raise QuestionError(
                f"{said}; say what they mean (--positive, --negative, --missing), or {_NAMED}"
            )

    def _readings(self) -> list[str]:
        """The columns that may hold results, by their values and names."""
        return [name for name, one in self.free.items() if one.may_be_read]

    def _is_long(self) -> bool:
        """Whether individuals come back, and no columns are numbered alike."""
        comes_back = "individual" in self.columns or any(map(self._comes_back, self._ids()))
        return comes_back and not self._numbered()

    def _groups(self) -> tuple[list[list[str]], list[str], list[str]]:
        """Columns that are numbered alike; that are called results; and those with a name of their own."""
        numbered = self._numbered()
        within = {name for group in numbered for name in group}
        rest = [name for name in self._readings() if name not in within]
        called = [name for name in rest if self.free[name].called]
        return numbered, called, [name for name in rest if name not in called]

    def _numbered(self) -> list[list[str]]:
        """The families of columns that are numbered, lettered or counted alike, with some results in each."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, one in self.free.items():
            if one.part in (None, "source", "batch", "individual", "time"):
                for stem in stems(name):
                    groups.setdefault(stem, []).append(name)
        several = [names for names in groups.values() if self._may_be_family(names)]
        return [group for i, group in enumerate(several) if group not in several[:i]]

    def _may_be_family(self, names: Sequence[str]) -> bool:
        """Whether two or more columns may hold results, some of them perhaps later."""
        may = [self.free[name].plausible for name in names]
        return any(may) and sum(may) + sum(self.free[name].holds == "nothing" for name in names) > 1

    def _by_vocabulary(self, names: Sequence[str]) -> list[list[str]]:
        """Columns that use the same words."""
        groups: dict[frozenset[str], list[str]] = {}
        for name in names:
            one = self.free[name]
            groups.setdefault(one.vocabulary or frozenset(one.words), []).append(name)
        return list(groups.values())

    def _check_rivals(self, family: Sequence[str], called: bool, alone: Sequence[str]) -> None:
        """Ask where columns outside of the family could be results as well."""
        words = frozenset().union(*(self.free[name].vocabulary for name in family))
        alike = [name for name in alone if self.free[name].vocabulary & words]
        clear = bool(self._shared(family))
        rivals = [] if clear else alike if called else alone if len(alone) > 1 else []
        if rivals:
            raise self._two_families([family, rivals])

    def _shared(self, family: Sequence[str]) -> frozenset[str]:
        """The words for results that all names of a family share."""
        return frozenset.intersection(*(self.free[name].called for name in family))

    def _two_families(self, groups: Sequence[Sequence[str]]) -> QuestionError:
        """The question which columns are results."""
        names = [name for group in groups for name in group]
        if len(set(names)) < len(names):
            both = list(dict.fromkeys(names))
            return QuestionError(f"columns are numbered in two ways: {self._described([both])}; {_NAMED}")
        return QuestionError(f"two families of columns could be results: {self._described(groups)}; {_NAMED}")

    def _check_odd(self, family: Sequence[str]) -> None:
        """Ask what the odd words mean in columns that would belong to the family but for them."""
        odd = [self.free[name] for name in family if self.free[name].holds not in ("results", "nothing")]
        if odd:
            raise _odd_question(odd, self._with_id(list(family)))

    def _with_empty(self, family: Sequence[str]) -> list[str]:
        """The family with columns of its name that hold nothing yet: someone who has not read anything."""
        shared = self._shared(family)
        return [
            name
            for name, one in self.free.items()
            if name in family or (one.holds == "nothing" and one.part is None and one.called & shared)
        ]

    def _wide(self, family: Sequence[str]) -> tuple[Kind, Columns, list[Note]]:
        """A table with a column for each replicate; what else could change the counts is asked for."""
        ids = [name for name in self._ids() if self._comes_back(name)]
        if ids and "individual" not in self.columns:
            raise several_rows(ids[0])
        found = self._with_id(list(family))
        weights = [name for name in self._weights() if name not in family]
        if weights and not {"individual", "weight"} & set(found):
            said = f"column {weights[0]!r} looks like a number of individuals"
            raise QuestionError(f"{said}; name it as weight (--weight), or as covariates (--covariates)")
        return "wide", found, []

    def _with_id(self, replicates: list[str] | None = None) -> Columns:
        """The columns with the individual, if one column so named tells every row apart.

        It is not needed to count, and the answer shows every column anyway, so that none is a good guess too.
        """
        named_ids = [name for name in self._ids() if name not in (replicates or ())]
        apart = len(named_ids) == 1 and not self._comes_back(named_ids[0]) and "weight" not in self.columns
        own = {"individual": named_ids[0]} if apart else {}
        found = {"replicates": replicates} if replicates else {}
        return cast(Columns, {**({} if "individual" in self.columns else own), **self.columns, **found})

    def _ids(self) -> list[str]:
        """The columns that are called like an identifier, and could be one."""
        ids = [name for name, one in self.free.items() if one.part == "individual"]
        return [name for name in ids if not self._constant(name)]

    def _constant(self, name: str) -> bool:
        """Whether a column says the same in each of many rows."""
        values = self.free[name].values
        return len(values) >= _ROWS and len(set(values)) == 1

    def _comes_back(self, name: str) -> bool:
        """Whether someone has more than one row."""
        given = [text for text in self.free[name].values if text]
        return len(set(given)) < len(given)

    # One row per replicate

    def _result(self) -> str:
        """The column of results of a long table: the only one, or the only one that is called so."""
        readings = self._readings()
        if not readings:
            raise QuestionError(self._nothing_reads())
        called = [name for name in readings if self.free[name].called]
        counting = [name for name in readings if self._numbers_rows(name)]
        if len(set(called) - set(counting)) == 1:
            called = [name for name in called if name not in counting]
            readings = [name for name in readings if name not in counting]
        rivals = self._varying(readings)
        if len(called) == 1:
            words = self.free[called[0]].vocabulary
            alike = [name for name in rivals if name not in called and self.free[name].vocabulary & words]
            choice = [*called, *alike]
        else:
            choice = called or rivals
        if len(choice) > 1 or (not called and not self._sure(readings)):
            raise QuestionError(self._which_result(choice))
        (result,) = choice
        if not called:
            self._check_suspects(choice)
        if self.free[result].holds != "results":
            raise _odd_question([self.free[result]], self._long(result))
        return result

    def _numbers_rows(self, name: str) -> bool:
        """Whether a column only says which reading of someone it is: numbers from 1, none of them twice."""
        who, one = self._who(), self.free[name]
        rows = [row for row in zip(who, one.values, strict=True) if all(row)] if who else []
        often = len(rows) > 1 + len({individual for individual, _ in rows})
        return often and whole_numbers(one) and "0" not in one.words and len(set(rows)) == len(rows)

    def _who(self) -> tuple[str, ...]:
        """Whose row each is, if one column says so and people come back."""
        ids = names_of(self.columns.get("individual")) or [n for n in self._ids() if self._comes_back(n)]
        return self.everything[ids[0]].values if len(ids) == 1 and ids[0] in self.everything else ()

    def _varying(self, names: Sequence[str]) -> list[str]:
        """The columns that differ within an individual; all if none does."""
        who = self._who()
        if not who:
            return list(names)
        varying = [name for name in names if not self.free[name].constant_within(who)]
        return varying or list(names)

    def _sure(self, readings: Sequence[str]) -> bool:
        """Whether a column not called a result may be one: people come back, and no other column may."""
        back = "individual" in self.columns or any(map(self._comes_back, self._ids()))
        return back and all(self.free[name].holds == "results" for name in readings)

    def _which_result(self, choice: Sequence[str]) -> str:
        """The question for the column of results."""
        if len(choice) == 1:
            one = self.free[choice[0]]
            return (
                f"column {one.name!r} holds {one.contents}, but neither its name nor its rows say that it is "
                "a result; name the result (--result), or the columns of results as replicates (--replicate)"
            )
        names = ", ".join(f"{name!r} ({self.free[name].contents})" for name in choice[:8])
        return f"say which column holds result (--result); the candidates are {names}"

    def _nothing_reads(self) -> str:
        """The sentence for a table in which no column holds results."""
        rule = "no column holds results (0/1, yes/no, pos/neg, +/−) or counts n and s"
        if given := names_of(self.columns.get("positive")):
            rule = f"no column holds {listed(given)} and one other label, or those given as negative"
        called = [one for one in self.free.values() if one.called and one.part is None]
        called.sort(key=lambda one: len(one.words) == len(one.odd))  # those with a label first
        if not called:
            return f"{rule}; the columns are {short_list(self.free)}" if self.free else rule
        one = called[0]
        if not one.words:
            return f"{rule}; column {one.name!r} is empty"
        return f"{rule}; column {one.name!r} holds {one.odd_words()}"

    def _long(self, result: str) -> Columns:
        """The result, whose it is, and who gave it if one column says so."""
        individual: Any = self.columns.get("individual")
        individual = individual if names_of(individual) else self._individual(result)
        rest = [one for name, one in self.free.items() if name not in (result, individual)]
        sources = [one.name for one in rest if one.part == "source" and not one.may_be_read]
        found = {**self.columns, "individual": individual, "result": result}
        if len(sources) == 1 and "source" not in self.columns:
            found["source"] = sources[0]
        return cast(Columns, found)

    def _individual(self, result: str) -> str:
        """The column that says whose result it is, by its name; of several, the one that comes back."""
        ids = [name for name in self._ids() if name != result]
        again = [name for name in ids if self._comes_back(name)]
        choice = again if len(again) == 1 else ids
        if len(choice) == 1:
            return choice[0]
        others = [name for name, one in self.free.items() if name != result and one.words and not one.called]
        candidates = choice or [name for name in others if self.free[name].part is None]
        if not candidates:
            rule = "no column is left to say whose they are; add one with the individual"
            raise QuestionError(f"column {result!r} holds the results, and {rule}, or name it (--individual)")
        what = f"the candidates are {short_list(candidates)}"
        raise QuestionError(f"say which column is the individual (--individual); {what}")

    # Counts

    def _counted(self) -> tuple[Kind, Columns, list[Note]]:
        """The columns n, s and weight by their names."""
        found: dict[str, Any] = dict(self.columns)
        for part in ("n", "s"):
            if part not in found:
                found[part] = self._one_count(part, found)
        weights = [name for name in self._weights() if name not in (found["n"], found["s"])]
        own = [name for name in self._ids() if name not in weights and not self._comes_back(name)]
        with_id = {"individual": own[0]} if len(own) == 1 and "individual" not in found else {}
        if "weight" not in found and len(weights) == 1 and not (with_id or "individual" in found):
            found["weight"] = weights[0]
        if "weight" in found:
            return "cells", cast(Columns, found), []
        if not (weights or with_id or "individual" in found or {"n", "s"} <= set(self.columns)):
            self._check_no_weight(found)
        why = "there is an individual in each row" if with_id else "there are several of the kind"
        said = f"not used as a number of individuals, as {why}: {listed(weights)}"
        notes = [Note("weight-not-used", said)] if weights else []
        return "counted", cast(Columns, {**with_id, **found}), notes

    def _check_no_weight(self, found: Mapping[str, Any]) -> None:
        """Ask where no (n, s) comes twice, nobody has a name, and a column could say how many have each."""
        pairs = list(zip(*(self.everything[str(found[part])].values for part in ("n", "s")), strict=True))
        open_ones = [
            name for name in self._whole() if name not in found.values() and not self.free[name].part
        ]
        if open_ones and len(set(pairs)) == len(pairs):
            said = f"no two rows have the same n and s, so column {open_ones[0]!r} may count individuals"
            raise QuestionError(
                f"{said}; name it as weight (--weight), or name n and s (--n, --s) if it does not"
            )

    def _one_count(self, part: str, found: Mapping[str, Any]) -> str:
        """The only column of counts that is called n, or s."""
        taken = list(found.values())
        choice = [name for name in self._whole() if named(name, part) and name not in taken]
        if len(choice) == 1:
            return choice[0]
        if not choice:
            raise QuestionError(f"say which column holds {part} (--{part}); none of the others holds counts")
        raise QuestionError(
            f"say which column holds {part} (--{part}); the candidates are {short_list(choice)}"
        )

    def _weights(self) -> list[str]:
        """The columns called a number of individuals, also one that cannot be read: it is refused."""
        return [name for name in self.free if named(name, "weight")]

    def _whole(self) -> list[str]:
        """The columns of whole numbers."""
        return [name for name, one in self.free.items() if whole_numbers(one)]

    def _counts_named(self) -> list[str]:
        """The columns that are called n and s; or something like it, with s ≤ n in every row."""
        n = [name for name in self._whole() if named(name, "n")]
        s = [name for name in self._whole() if named(name, "s")]
        if len(n) != 1 or len(s) != 1 or n == s:
            return []
        if (n[0].casefold(), s[0].casefold()) == ("n", "s"):
            return [*n, *s]  # nothing else is called that; an s above its n is then a mistake in the data
        pairs = zip(self.free[n[0]].values, self.free[s[0]].values, strict=True)
        worse = [(a, b) for a, b in pairs if a and b and _number(a) < _number(b)]
        if worse and len(self._readings()) < 3:  # few columns that may be results, these two among them
            most, got = worse[0]
            said = f"columns {n[0]!r} and {s[0]!r} look like n and s, but a row has {got} of {most}"
            raise QuestionError(f"{said}; correct it, or name the columns of results (--replicate, --result)")
        return [] if worse else [*n, *s]

    def _described(self, groups: Iterable[Sequence[str]]) -> str:
        """Families of columns with what they hold."""
        described = []
        for group in groups:
            contents = dict.fromkeys(self.free[name].contents for name in group)
            described.append(f"{short_list(group)} ({' or '.join(list(contents)[:3])})")
        return " and ".join(described[:4])


def several_rows(individual: str) -> QuestionError:
    """The question for an individual who comes twice where each row has several results."""
    twice = f"column {individual!r} names someone in several rows, of which each has results"
    add = f"name it as individual (--individual {individual}) to add their rows up"
    return QuestionError(f"{twice}; {add}, or the replicates (--replicate) alone if each row is someone else")


def _number(text: str) -> float:
    """A count, also as text such as 3,0."""
    return float(text.replace(",", "."))


def _odd_question(odd: Sequence[Profile], proposed: Columns) -> QuestionError:
    """The question what odd words mean."""
    first = odd[0]
    if first.holds == "two words":
        which = f"column {first.name!r} holds {first.contents}"
        return QuestionError(f"{which}: say which of them is positive (--positive, --negative)", proposed)
    said = "; ".join(f"column {one.name!r} also holds {one.odd_words()}" for one in odd[:4])
    more = f", and {len(odd) - 4} more columns do so" if len(odd) > 4 else ""
    answer = "say which are no results (--missing), or give all labels (--positive, --negative)"
    alone = "or name the columns of results alone (--replicate, --result)"
    return QuestionError(f"{said}{more}; {answer}, {alone}", proposed)


def _odd_words(one: Profile) -> Counter[str]:
    """The words of a column whose meaning is open."""
    return one.words if one.holds == "two words" else one.odd if one.holds == "nearly" else Counter()


def described(sample: Sample, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every column of a sample with what it holds, its odd words, and why it would not be used."""
    labels = Labels(*(names_of(given.get(name)) for name in ("positive", "negative", "missing")))
    return [
        {
            "column": name,
            "part": one.part,
            "holds": one.contents,
            "odd": dict(_odd_words(one).most_common(_ODD)),
            "vocabulary": sorted(one.vocabulary),
            "no_result": dict(one.no_result.most_common(_ODD)),
            "why": _why_not(one),
        }
        for name, one in profiles(sample, labels).items()
    ]
