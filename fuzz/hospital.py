"""Messy hospital files with a known right reading: `python -m fuzz.hospital` reads thousands of them.

A file is made from what its author meant: who was read by whom, and what came out. Then come the things that
hospital files have: covariates that are yes or no, dates, ages, ids, words for no result, odd words, titles,
notes, blanks, mixed case, decimal commas. The reading must give what was meant, or ask; never anything else.
Nothing here looks at how the library guesses.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from binreps.counts import CountTable
from binreps.errors import BinrepsError
from binreps.run.front import read_source
from binreps.tables.opened import open_table
from fuzz.verdict import WrongError, faulty_sentence

FILES = 5_000
"""How many files a run reads."""

MOST_ASKED = 0.2
"""The largest share of them that may be answered by a question."""

_Cell = bool | None  # positive, negative, no result


@dataclass
class Messy:
    """A file, what its author meant, and why a question is the only right answer, if it is."""

    columns: dict[str, list[str]]
    counts: CountTable
    results: set[str]
    only_a_question: str = ""
    layout: dict[str, Any] = field(default_factory=dict)


# Words -------------------------------------------------------------------------------------------------

_CLEAR = {
    "01": (("1",), ("0",)),
    "yes": (("yes", "Yes", "YES", "y"), ("no", "No", "NO", "n")),
    "pos": (("pos", "Pos", "POS", "positive", "Positive "), ("neg", "Neg", "NEG", "negative", " Negative")),
    "sign": (("+",), ("-", "−")),
    "true": (("TRUE", "true"), ("FALSE", "false")),
    "reactive": (("Reactive", "reactive"), ("Non-reactive", "non-reactive", "Nonreactive")),
    "detected": (("Detected", "DETECTED"), ("Not detected", "NOT DETECTED")),
    "present": (("Present", "present"), ("Absent", "absent")),
    "float": (("1.0", "1"), ("0.0", "0")),
}
_UNCLEAR = {
    "12": (("2",), ("1",)),
    "21": (("1",), ("2",)),
    "tumour": (("malignant",), ("benign",)),
    "ab": (("B",), ("A",)),
    "french": (("oui",), ("non",)),
    "grown": (("growth",), ("no growth",)),
}
_NO_RESULT = (
    *("ND", "n.d.", "Indeterminate", "indeterminate", "equivocal", "Invalid", "inhibited", "not done"),
    *("borderline", "NA", "N/A", "", "", "", "", " ", "Not done", "EQUIVOCAL", "#N/A", "not tested", "?"),
)
_ODD = ("weak", "trace", "see comment", "9", "haemolysed", "1?", "weakly pos", "99", "lost", "xx", "2")


def _spelling(rng: Random, name: str) -> Callable[[_Cell], str]:
    """How a column writes its results: one spelling, or several of the same pair."""
    positive, negative = {**_CLEAR, **_UNCLEAR}[name]
    if rng.random() < 0.6:
        positive, negative = (rng.choice(positive),), (rng.choice(negative),)
    return lambda cell: rng.choice(positive if cell else negative)


# What was meant ----------------------------------------------------------------------------------------


def _people(rng: Random) -> list[bool]:
    """Statuses of the individuals, with both kinds among them."""
    return [False, True, *(rng.random() < 0.4 for _ in range(rng.randrange(4, 40)))]


def _result(rng: Random, status: bool, missing: float) -> _Cell:
    """One replicate, which errs or fails now and then."""
    return None if rng.random() < missing else status != (rng.random() < 0.15)


def _written(
    rng: Random, cells: Sequence[_Cell], spell: Callable[[_Cell], str], no: Sequence[str]
) -> list[str]:
    """Results as the file has them."""
    return [rng.choice(no) if cell is None else spell(cell) for cell in cells]


def _counted(rows: Sequence[Sequence[_Cell]], weights: Sequence[int] | None = None) -> CountTable:
    """What should be counted of each individual's cells."""
    n = [sum(cell is not None for cell in row) for row in rows]
    s = [sum(cell is True for cell in row) for row in rows]
    return CountTable(n, s, weights)


# Names -------------------------------------------------------------------------------------------------

_STEMS = (
    "Reader",
    "Test",
    "Replicate",
    "R",
    "rep",
    "PCR",
    "Rater",
    "Reading",
    "Run",
    "Swab",
    "Obs",
    "T",
    "Result",
)
_SURNAMES = ("Smith", "Jones", "Müller", "Garcia", "Okafor", "Lee", "Rossi", "Novak", "Khan", "Silva")
_ENTITIES = ("Patient", "patient_id", "Patient ID", "MRN", "ID", "Subject", "subject_no", "Study ID", "Case")
_ORDINALS = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth")
_TESTS = ("ELISA", "PCR", "Culture", "Microscopy", "Antigen test", "Rapid test")


def _result_names(rng: Random, size: int) -> tuple[list[str], str]:
    """What the columns of a wide table are called, and whether nothing but people tells them apart."""
    kind = rng.choices(("number", "letter", "ordinal", "people", "titled", "tests"), (60, 10, 8, 5, 8, 9))[0]
    if kind == "number":
        stem = rng.choice(_STEMS)
        between, start = rng.choice(("", " ", "_", "-", " #", ".")), rng.choice((1, 1, 1, 0))
        end = rng.choice(("", "", "", " result", "_call"))
        return [f"{stem}{between}{i}{end}" for i in range(start, start + size)], kind
    if kind == "letter":
        stem = rng.choice(("Reader ", "Observer_", "", "Lab ", "Radiologist "))
        return [f"{stem}{'ABCDEF'[i]}" for i in range(size)], kind
    if kind == "ordinal":
        stem = rng.choice((" reading", " test", " swab", ""))
        return [f"{_ORDINALS[i]}{stem}" for i in range(size)], kind
    if kind == "tests":
        return rng.sample(_TESTS, size), kind
    names = rng.sample(_SURNAMES, size)
    title = rng.choice(("Dr ", "Dr. ", "Reader ", "Prof ")) if kind == "titled" else ""
    return [f"{title}{name}" for name in names], kind


# Other columns -----------------------------------------------------------------------------------------


def _others(rng: Random, people: int, spelling: str) -> dict[str, list[str]]:
    """What else the file says of each individual."""
    made: dict[str, list[str]] = {}
    for _ in range(rng.choice((0, 1, 2, 3, 4, 5, 7))):
        name, values = rng.choice(_MAKERS)(rng, people, spelling)
        made.setdefault(name, values)
    return made


def _yes_no(rng: Random, people: int, spelling: str) -> tuple[str, list[str]]:
    """A covariate that is yes or no, often in the words of the results."""
    common = (
        "Smoker",
        "Diabetes",
        "Vaccinated",
        "Pregnant",
        "Symptomatic",
        "Family history",
        "male",
        "Fever",
    )
    rare = (
        "Eligible",
        "Prior surgery",
        "Night shift",
        "Flag",
        "On statins",
        "HIV",
        "Rh factor",
        "Wheeze",
        "Fasting",
        "Adult",
    )
    own = spelling if rng.random() < 0.4 and spelling in _CLEAR else rng.choice(("yes", "01", "true", "pos"))
    spell, share = _spelling(rng, own), rng.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    gap = rng.choice((0.0, 0.0, 0.1))
    name = rng.choice(common if rng.random() < 0.7 else rare)
    return name, ["" if rng.random() < gap else spell(rng.random() < share) for _ in range(people)]


def _sex(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """Two letters, or two words, or two numbers."""
    pair = rng.choice((("M", "F"), ("m", "f"), ("male", "female"), ("1", "2")))
    return rng.choice(("Sex", "sex", "Gender")), [rng.choice(pair) for _ in range(people)]


def _age(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """Whole numbers."""
    return rng.choice(("Age", "age", "Age (years)")), [str(rng.randrange(18, 95)) for _ in range(people)]


def _measure(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """Numbers with decimals, with a point or a comma."""
    point = rng.choice((".", ","))
    values = [f"{rng.uniform(15, 40):.1f}".replace(".", point) for _ in range(people)]
    return rng.choice(("BMI", "Ct value", "CRP", "Temp")), values


def _date(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """Dates as people write them."""
    form = rng.choice(("2025-{m:02}-{d:02}", "{d}/{m}/2025", "{d}.{m}.25", "2025{m:02}{d:02}"))
    values = [form.format(m=rng.randrange(1, 13), d=rng.randrange(1, 29)) for _ in range(people)]
    return rng.choice(("Date", "Visit date", "DOB", "Collected", "date_of_test")), values


def _ordinal(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """A grade, or a number of children: 0 and 1 are among them."""
    low, high = rng.choice(((1, 4), (0, 3), (0, 2), (0, 9)))
    values = [str(rng.randrange(low, high + 1)) for _ in range(people)]
    return rng.choice(("Grade", "Parity", "ASA", "Children", "Score")), values


def _group(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """Where, or in which arm."""
    words = rng.choice((("North", "South"), ("A", "B", "C"), ("W1", "W2", "W3", "W4"), ("control", "case")))
    return rng.choice(("Site", "Ward", "Arm", "Hospital", "Group")), [
        rng.choice(words) for _ in range(people)
    ]


def _comment(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """Free text, mostly empty, with words that also are results."""
    words = ("", "", "", "", "see notes", "no", "no complaints", "repeat, please", "called 2x", "yes; moved")
    return rng.choice(("Comment", "Remarks", "Notes")), [rng.choice(words) for _ in range(people)]


def _constant(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """The same in every row, or nothing at all."""
    name, value = rng.choice(
        (("Country", "UK"), ("Consent", "yes"), ("Study", "1"), ("Fax", ""), ("Unit", "-"))
    )
    return name, [value] * people


def _final(rng: Random, people: int, _: str) -> tuple[str, list[str]]:
    """A status that nobody may take for a reading."""
    spell = _spelling(rng, rng.choice(("pos", "01", "yes")))
    name = rng.choice(("Final diagnosis", "Consensus", "Gold standard", "truth", "Disease", "Confirmed"))
    return name, [spell(rng.random() < 0.4) for _ in range(people)]


_MAKERS = (_yes_no,) * 6 + (
    _sex,
    _age,
    _age,
    _measure,
    _date,
    _date,
    _ordinal,
    _group,
    _comment,
    _constant,
    _final,
)


def _numbered_others(rng: Random, people: int) -> dict[str, list[str]]:
    """Numbered columns that are no results."""
    kind, size = rng.choice(("Symptom", "Ct", "Date", "Drug", "Flag")), rng.randrange(2, 4)
    if kind == "Ct":
        return {f"Ct{i}": [f"{rng.uniform(15, 40):.2f}" for _ in range(people)] for i in range(1, size + 1)}
    if kind == "Date":
        return {f"Date {i}": _date(rng, people, "")[1] for i in range(1, size + 1)}
    spell = _spelling(rng, rng.choice(("yes", "01")))
    return {f"{kind} {i}": [spell(rng.random() < 0.3) for _ in range(people)] for i in range(1, size + 1)}


# Files -------------------------------------------------------------------------------------------------


def messy_file(rng: Random) -> Messy:
    """One file."""
    made = rng.choices((_wide, _long, _counts), (55, 38, 7))[0](rng)
    made.layout = {
        "separator": rng.choice((",", ",", ";", "\t")),
        "title": rng.random() < 0.12,
        "notes": rng.random() < 0.08,
        "blank": rng.random() < 0.1,
        "mark": rng.random() < 0.2,
        "excel": rng.random() < 0.06,
    }
    return made


def _ids(rng: Random, people: int) -> list[str]:
    """Who is who."""
    form = rng.choice(("P{:03}", "{}", "{:05}", "AB-{:02}", "Patient {}"))
    first = rng.choice((1, 1, 0, 100))
    return [form.format(first + i) for i in range(people)]


def _words(rng: Random) -> tuple[str, list[str], str]:
    """The pair of words, the words for no result, and why a question is the only right answer, if it is."""
    why = ""
    name = rng.choice(tuple(_CLEAR))
    if rng.random() < 0.05:
        name, why = rng.choice(tuple(_UNCLEAR)), "labels that nobody can know"
    no = rng.sample(_NO_RESULT, rng.randrange(1, 4))
    if name == "detected" and any(word in ("ND", "n.d.") for word in no):
        no = [word for word in no if word not in ("ND", "n.d.")] or [""]  # ND would be not detected
    if name == "12" or name == "21" or not why:
        no = [word for word in no if word != "?"] or [""]
    return name, no, why


def _shuffled(rng: Random, columns: dict[str, list[str]], first: str | None = None) -> dict[str, list[str]]:
    """Columns in any order, the individual mostly first."""
    names = list(columns)
    if rng.random() < 0.3:
        rng.shuffle(names)
    if first is not None and rng.random() < 0.9:
        names = [first, *(name for name in names if name != first)]
    return {name: columns[name] for name in names}


def _wide(rng: Random) -> Messy:
    """One row per individual, one column per reading."""
    statuses, size = _people(rng), rng.randrange(2, 6)
    names, kind = _result_names(rng, size)
    spelling, no, why = _words(rng)
    missing = rng.choice((0.0, 0.0, 0.05, 0.2))
    rows = [[_result(rng, status, missing) for _ in names] for status in statuses]
    spell = _spelling(rng, spelling)
    texts = {name: _written(rng, [row[j] for row in rows], spell, no) for j, name in enumerate(names)}
    columns = _others(rng, len(statuses), spelling)
    if rng.random() < 0.08:
        columns |= _numbered_others(rng, len(statuses))
    if rng.random() < 0.08:  # what else was written down of each reading
        make, what = rng.choice(((_date, "date"), (_comment, "comment"), (_measure, "Ct")))
        columns |= {f"{name} {what}": make(rng, len(statuses), "")[1] for name in names}
    columns = {name: values for name, values in columns.items() if name not in texts}
    if rng.random() < 0.05:  # one odd word in one reader's column, or in all of them
        for name in names if rng.random() < 0.3 else [rng.choice(names)]:
            texts[name][rng.randrange(len(statuses))] = rng.choice(_ODD)
        why = why or "an odd word"
    if rng.random() < 0.03:
        texts[rng.choice(names)] = [""] * len(statuses)  # a reader who never read
        rows = [
            [cell if any(texts[name]) else None for cell, name in zip(row, names, strict=True)]
            for row in rows
        ]
    if not any(cell is not None for cell in rows[-1]):  # nobody could tell the last row from an empty one
        rows[-1][-1] = True
        texts[names[-1]][-1] = spell(True)
    identity = None
    if rng.random() < 0.85:
        identity = rng.choice(_ENTITIES)
        columns[identity] = _ids(rng, len(statuses))
        if rng.random() < 0.04:
            columns[identity][1] = columns[identity][0]
            why = why or "an individual that comes twice in a wide table"
    counts = _counted(rows)
    if kind == "number" and rng.random() < 0.03 and identity is None:
        weights = [rng.randrange(1, 50) for _ in statuses]
        columns["count"], counts = [str(weight) for weight in weights], _counted(rows, weights)
    return Messy(_shuffled(rng, {**columns, **texts}, identity), counts, set(names), why)


def _long(rng: Random) -> Messy:
    """One row per reading."""
    statuses = _people(rng)
    spelling, no, why = _words(rng)
    missing, spell = rng.choice((0.0, 0.05, 0.2)), _spelling(rng, spelling)
    ids, own = _ids(rng, len(statuses)), _others(rng, len(statuses), spelling)
    rows = [[_result(rng, status, missing) for _ in range(rng.randrange(1, 6))] for status in statuses]
    rows[0] = [_result(rng, statuses[0], 0.0) for _ in range(3)]
    place = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    if rng.random() < 0.4:
        rng.shuffle(place)
    result = rng.choice(
        ("Result", "result", "Test result", "Outcome", "Reading", "test", "PCR", "Finding", "call")
    )
    identity = rng.choice(_ENTITIES)
    columns = {identity: [ids[i] for i, _ in place]}
    columns |= {name: [values[i] for i, _ in place] for name, values in own.items() if name != result}
    columns[result] = _written(rng, [rows[i][j] for i, j in place], spell, no)
    if rng.random() < 0.4:
        columns[rng.choice(("Reader", "rater", "Radiologist", "Lab"))] = [_SURNAMES[j] for _, j in place]
    if rng.random() < 0.25:  # which of an individual's readings it is
        name = rng.choice(("Replicate", "Test no", "Visit", "Seq", "rep", "Reading no"))
        columns[name] = [str(j + 1) for _, j in place]
    if rng.random() < 0.15:
        columns["Row"] = [str(i) for i in range(1, len(place) + 1)]
    if rng.random() < 0.12:  # yes or no, but of the row
        again = _spelling(rng, rng.choice(("yes", "01")))
        columns[rng.choice(("Repeat", "Night shift", "Contaminated"))] = [
            again(rng.random() < 0.3) for _ in place
        ]
    if rng.random() < 0.05:
        columns[result][rng.randrange(len(place))] = rng.choice(_ODD)
        why = why or "an odd word"
    return Messy(_shuffled(rng, columns, identity), _counted(rows), {result}, why)


def _counts(rng: Random) -> Messy:
    """One row per individual, with counts."""
    statuses = _people(rng)
    rows = [[_result(rng, status, 0.0) for _ in range(rng.randrange(1, 7))] for status in statuses]
    n, s = rng.choice((("n", "s"), ("tests", "positives"), ("N tests", "N positive"), ("trials", "hits")))
    columns = _others(rng, len(statuses), "01")
    identity = rng.choice(_ENTITIES)
    columns[identity] = _ids(rng, len(statuses))
    columns[n] = [str(len(row)) for row in rows]
    columns[s] = [str(sum(cell is True for cell in row)) for row in rows]
    return Messy(_shuffled(rng, columns, identity), _counted(rows), {n, s})


def write(made: Messy, folder: Path) -> Path:
    """The file, as CSV or as a workbook."""
    layout, names = made.layout, list(made.columns)
    rows: list[list[str]] = [names, *map(list, zip(*made.columns.values(), strict=True))]
    if layout["title"]:
        rows = [["Screening study 2025, ward list"], [], *rows]
    if layout["notes"]:
        rows += [[], ["Exported by the laboratory system"]]
    if layout["excel"]:
        return _workbook(rows, folder / "messy.xlsx")
    out = io.StringIO()
    csv.writer(out, delimiter=layout["separator"], lineterminator="\r\n").writerows(rows)
    text = out.getvalue() + "\r\n" * layout["blank"]
    path = folder / "messy.csv"
    path.write_bytes((b"\xef\xbb\xbf" if layout["mark"] else b"") + text.encode())
    return path


def _workbook(rows: Sequence[Sequence[str]], path: Path) -> Path:
    """A workbook, numbers as numbers."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in rows:
        sheet.append(
            [int(cell) if cell.isdigit() and str(int(cell)) == cell else cell or None for cell in row]
        )
    book.save(path)
    return path


# The verdict -------------------------------------------------------------------------------------------


def verdict(made: Messy, folder: Path) -> str:
    """`read` or `asked`; a wrong reading is an error."""
    path = write(made, folder)
    try:
        with open_table(path) as opened:
            source = read_source(opened, {})
    except BinrepsError as error:
        if fault := faulty_sentence(str(error)):
            raise WrongError(fault) from None
        return "asked"
    assert source.guess is not None
    assert source.reading is not None
    columns: Any = source.guess.columns
    used = set(columns.get("replicates") or [columns.get("result")])
    used = {columns["n"], columns["s"]} if "n" in columns else used
    if made.only_a_question:
        raise WrongError(f"{made.only_a_question}, but it was read as {source.guess}")
    empty = {name for name in made.results if not any(map(str.strip, made.columns[name]))}
    if used | empty != made.results | empty or source.reading.counts != made.counts:
        raise WrongError(f"meant {sorted(made.results)}, but it was read as {source.guess}")
    return "read"


def messy(rng: Random, folder: Path) -> None:
    """A messy hospital file is read as it was meant, or a question is asked."""
    verdict(messy_file(rng), folder)


def run(seeds: Sequence[int], tell: Callable[[str], None] = print) -> Counter[str]:
    """How many files were read, asked about and read wrongly."""
    totals: Counter[str] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="binreps-fuzz-") as folder:
            try:
                totals[verdict(messy_file(Random(f"hospital {seed}")), Path(folder))] += 1
            except WrongError as error:
                totals["wrong"] += 1
                tell(f"{seed}: {error}")
    return totals


def main(arguments: Sequence[str] | None = None) -> int:
    """Read many files; the exit status is 1 if one was read wrongly, or too many were asked about."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.hospital", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help=f"how many (default {FILES:,})")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    options = parser.parse_args(arguments)
    totals = run(range(options.seed, options.seed + options.files))
    total = max(sum(totals.values()), 1)
    for what in ("read", "asked", "wrong"):
        print(f"{what:>6}  {totals[what]:>6,}  {totals[what] / total:.1%}")
    return int(bool(totals["wrong"]) or totals["asked"] > MOST_ASKED * total)


if __name__ == "__main__":
    sys.exit(main())
