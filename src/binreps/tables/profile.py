"""What a column holds and what its name says: all that a guess may rest on, column by column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from binreps.counts import is_null
from binreps.tables.roles import BLANK, PARTS, STATUS_NAMES, VOCABULARIES, Labels, compared, words_of
from binreps.tables.tally import listed, plain_text

Holds = Literal["results", "nearly", "two words", "nothing", "numbers", "text"]
"""Results; results but for some values; two words of which nobody knows which is positive; the others."""

_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?")
_OF_RESULTS = 0.75  # share of 0 and 1 from which a column of numbers would hold results
_SHOWN = 4  # odd words in a sentence

_RESULT_WORDS = words_of(
    "reader reading read rater rating test tests result results replicate replicates rep repl run assay pcr "
    "rtpcr qpcr elisa culture smear antigen antibody serology swab kit lab laboratory observer judge "
    "radiologist pathologist examiner dentist dr doctor prof professor microscopy rapid lfa lft xpert igra "
    "call vote outcome finding findings answer response judgement judgment annotator annotation label "
    "measurement scan screen biopsy aliquot well"
)
_STATUS_WORDS = words_of(
    "truth gold consensus adjudicated adjudication diagnosis diagnosed confirmed reference final disease"
)
_WHO = words_of(
    "patient pat pt subject subj participant person case individual specimen sample study record hospital "
    "hosp donor animal client member item slide image unit well respondent enrolment"
)
_ID = words_of("id ids no nr num number code identifier key")
_ORDINALS = words_of(
    "first second third fourth fifth sixth seventh eighth ninth tenth "
    "one two three four five six seven eight nine ten ii iii iv vi vii viii ix"
)
_NOT_DETECTED = ("nd", "n.d.", "n.d", "n/d")  # not done, but for those who write detected: not detected


@dataclass(frozen=True)
class Profile:
    """One column: its values as they are compared, and how they read.

    Attributes
    ----------
    name : str
    words : Counter
        Values that are given, as they are compared.
    no_result : Counter
        Words for no result, but for blanks.
    odd : Counter
        Values that are no results, in a column that holds some.
    holds : Holds
    vocabulary : frozenset of str
        The pairs of words that its results are from.
    """

    name: str
    values: tuple[str, ...]
    words: Counter[str]
    no_result: Counter[str]
    odd: Counter[str]
    holds: Holds
    vocabulary: frozenset[str]

    @classmethod
    def of(cls, name: str, values: Sequence[Any], labels: Labels) -> Profile:
        """The profile of a column's values."""
        texts = tuple(text_of(value) for value in values)
        positive, negative, missing = labels.words()
        known, given = {*positive, *negative}, Counter(texts)
        if "detected" in given and not labels.positive:  # not done, or not detected?
            missing = [word for word in missing if word not in _NOT_DETECTED or word in labels.missing]
        words = Counter({word: number for word, number in given.items() if word not in missing})
        no_result = Counter({w: k for w, k in given.items() if w in missing and w not in BLANK})
        odd = Counter({word: number for word, number in words.items() if word not in known})
        pairs = {pair: {*yes, *no} for pair, (yes, no) in VOCABULARIES.items()}
        found = frozenset(pair for pair, own in pairs.items() if own & set(words) - set(odd))
        holds = _holds(words, odd)
        if labels.positive and holds == "two words":  # the labels are known: these are others
            holds = "text"
        return cls(name, texts, words, no_result, odd, holds, found)

    @property
    def plausible(self) -> bool:
        """Whether the column may hold results, perhaps under labels that nobody knows."""
        return self.holds in ("results", "nearly", "two words")

    @property
    def may_be_read(self) -> bool:
        """Whether values and name allow for results; a column of readers may hold what they read."""
        reads = self.holds in ("results", "nearly")
        return self.plausible and (self.part is None or (self.part == "source" and reads))

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The words and numbers of its name."""
        return tokens_of(self.name)

    @cached_property
    def part(self) -> str | None:
        """The part that its name speaks of, if any: individual, status, source, covariates, time or batch."""
        return part_of(self.name)

    @cached_property
    def called(self) -> frozenset[str]:
        """The words for tests, readers or results in its name."""
        own = {"result"} if named(self.name, "result") else set()
        return frozenset(own | (_RESULT_WORDS & set(self.tokens)))

    @property
    def contents(self) -> str:
        """What it holds, for a sentence."""
        if self.holds == "nothing":
            return "nothing"
        if self.holds in ("results", "nearly"):
            return " and ".join(sorted(self.vocabulary)) or "the labels"
        if self.holds == "two words":
            return listed(sorted(self.words))
        return self.holds

    def odd_words(self) -> str:
        """The values that keep it from being a result, with their numbers."""
        return counted(self.odd)

    def constant_within(self, individuals: Sequence[str]) -> bool:
        """Whether nobody who has several rows has two different values."""
        seen: dict[str, str] = {}
        for who, text in zip(individuals, self.values, strict=True):
            if who and text and seen.setdefault(who, text) != text:
                return False
        return True


def profiles(sample: Mapping[str, Sequence[Any]], labels: Labels) -> dict[str, Profile]:
    """The profile of every column; with positive labels alone, the one other word is negative."""
    found = {name: Profile.of(name, values, labels) for name, values in sample.items()}
    if labels.positive and not labels.negative:
        positive = set(labels.words()[0])
        others = {word for one in found.values() if positive & set(one.words) for word in one.odd}
        if len(others) == 1:
            both = Labels(labels.positive, tuple(others), labels.missing)
            return {name: Profile.of(name, values, both) for name, values in sample.items()}
    return found


def _holds(words: Counter[str], odd: Counter[str]) -> Holds:
    """How values read."""
    if not words:
        return "nothing"
    if not odd:
        return "results"
    numbers = all(_NUMBER.fullmatch(word) for word in words)
    known = 1 - sum(odd.values()) / sum(words.values())
    if len(words) > len(odd) and known > (_OF_RESULTS if numbers else 0.5):
        return "nearly"
    if len(words) == 2:
        return "two words"
    return "numbers" if numbers else "text"


def text_of(value: object) -> str:
    """A value as it is compared; nothing for null."""
    return "" if is_null(value) else compared(plain_text(value) or "")


def counted(words: Counter[str]) -> str:
    """Words with their numbers, the most frequent first."""
    shown = [f"{listed([word])} ({number:,})" for word, number in words.most_common(_SHOWN)]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def tokens_of(name: str) -> tuple[str, ...]:
    """The words and numbers of a name, lower case: `Reader1`, `reader 1` and `READER_1` are alike."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    apart = re.sub(r"\b([0-9]+)(?:st|nd|rd|th)\b", r"\1", apart, flags=re.IGNORECASE)
    return tuple(re.findall(r"[0-9]+|[^\W\d_]+", apart.casefold()))


def named(name: str, part: str) -> bool:
    """Whether a column's name is one of those usual for a part."""
    usual = STATUS_NAMES if part == "status" else PARTS[part].names
    return (
        re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_") in usual or "_".join(tokens_of(name)) in usual
    )


def part_of(name: str) -> str | None:
    """The part that a name speaks of, besides results and counts."""
    tokens = set(tokens_of(name))
    if _is_individual(name, tokens):
        return "individual"
    if named(name, "status") or tokens & _STATUS_WORDS:
        return "status"
    for part in ("source", "covariates", "time", "batch"):
        if named(name, part):
            return part
    if tokens & _RESULT_WORDS:
        return None
    return next((part for part in ("covariates", "time", "batch") if tokens & PARTS[part].names), None)


def _is_individual(name: str, tokens: set[str]) -> bool:
    """Whether a name is that of an identifier: patient, Patient ID, subject_no, MRN, Hosp. No."""
    together = "".join(tokens_of(name))
    ends = tuple(who + end for who in _WHO for end in ("id", "no", "nr"))
    alone = together in {"mrn", "pid", "nhsnumber", "barcode", "accession", *ends}
    return named(name, "individual") or alone or (bool(tokens & _WHO) and bool(tokens & _ID))


def stems(name: str) -> list[tuple[str, ...]]:
    """The ways in which a name can be one of several that are numbered, lettered or counted alike."""
    tokens = tokens_of(name)
    places = [i for i, token in enumerate(tokens) if _counts_up(token)]
    return [(*tokens[:i], "#", *tokens[i + 1 :]) for i in places]


def alike(name: str, family: Sequence[str]) -> bool:
    """Whether a name is numbered or called like all columns of a family."""
    if not family:
        return False
    numbered = set.intersection(*(set(stems(one)) for one in family))
    called = frozenset.intersection(*(_RESULT_WORDS & set(tokens_of(one)) for one in family))
    return bool(numbered & set(stems(name))) or bool(called & set(tokens_of(name)))


def _counts_up(token: str) -> bool:
    """Whether a word of a name can number it: 2, B, second, two, iii."""
    return token.isdigit() or token in _ORDINALS or (len(token) == 1 and token.isascii())


def whole_numbers(profile: Profile) -> bool:
    """Whether a column holds counts."""
    number = re.compile(r"[0-9]{1,16}([.,]0*)?")
    return bool(profile.words) and all(number.fullmatch(word) for word in profile.words)


def short_list(names: Iterable[str]) -> str:
    """Names of columns; of many the first and the last."""
    several = list(names)
    if len(several) > 6:
        return f"{listed([several[0]])} to {listed([several[-1]])} ({len(several)} columns)"
    return listed(several)
