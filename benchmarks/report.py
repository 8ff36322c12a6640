"""What a family of rows returns, and how it is written: JSON for machines, Markdown for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.timing import Spread


@dataclass(frozen=True)
class Settings:
    """How much to do."""

    full: bool = False

    @property
    def turns(self) -> int:
        """Alternated turns for each comparison."""
        return 15 if self.full else 5

    @property
    def processes(self) -> int:
        """Fresh processes for each measurement of a cold start."""
        return 3 if self.full else 1


@dataclass(frozen=True)
class Ratio:
    """How many times better than the peer we are, named "row: column": what a floor guards.

    Parameters
    ----------
    value : float
    claim : float, optional
        What the project claims.
    slack : float
        The share of the value that a new floor asks for: less for what is noisy.
    """

    value: float
    claim: float | None = None
    slack: float = 0.6


@dataclass(frozen=True)
class Section:
    """One table with what it means; its rows map a column's heading to a value."""

    title: str
    text: str
    rows: list[dict[str, Any]]
    ratios: dict[str, Ratio] = field(default_factory=dict)


def show(value: Any) -> str:
    """A value as a person reads it."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case {"median": median, "quartiles": [low, high]}:
            return f"{milliseconds(median)} ({milliseconds(low)}–{milliseconds(high)})"
        case float():
            return number(value)
        case int():
            return f"{value:,}"
    return str(value)


def number(value: float) -> str:
    """Two significant digits.

    Examples
    --------
    >>> [number(value) for value in (0.0234, 1234.5, 3.21e9, 2e-13, 41.0)]
    ['0.023', '1,200', '3.2e+09', '2.0e-13', '41']
    """
    if value == 0 or not math.isfinite(value):
        return str(value)
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def power(value: int) -> str:
    """A round number as people write it.

    Examples
    --------
    >>> [power(value) for value in (50, 10**6, 2 * 10**7)]
    ['50', '10⁶', '2·10⁷']
    """
    digits = len(str(value)) - 1
    first, rest = divmod(value, 10**digits)
    if digits < 3 or rest:
        return f"{value:,}"
    raised = "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(digits))
    return raised if first == 1 else f"{first}·{raised}"


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds, three significant digits."""
    value = 1000 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, Spread):
        return {
            "median": value.median,
            "quartiles": list(value.quartiles),
            "least": value.least,
            "runs": len(value.seconds),
        }
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def stored(machine: Mapping[str, str], mode: str, sections: Iterable[Section]) -> dict[str, Any]:
    """A family as JSON holds it."""
    return {
        "machine": machine,
        "mode": mode,
        "sections": [
            {
                "title": section.title,
                "text": section.text.strip(),
                "rows": [{name: plain(value) for name, value in row.items()} for row in section.rows],
                "ratios": {
                    name: {"value": plain(ratio.value), "claim": ratio.claim}
                    for name, ratio in section.ratios.items()
                },
            }
            for section in sections
        ],
    }


def markdown_table(rows: list[dict[str, Any]]) -> str:
    """Rows as a table: text flush left, numbers flush right."""
    if not rows:
        return "(no rows)"
    names = list(dict.fromkeys(name for row in rows for name in row))
    marks = ["---" if isinstance(rows[0].get(name), str) else "--:" for name in names]
    lines = [names, marks, *([show(row.get(name)) for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def best_in_bold(rows: list[dict[str, Any]], measures: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of one study with measures in three decimals, the best in bold: the least, or most accurate.

    Examples
    --------
    >>> best_in_bold([{"Brier": 0.0312, "time": 1}, {"Brier": 0.05, "time": 2}], ["Brier"])
    [{'Brier': '**0.031**', 'time': 1}, {'Brier': '0.050', 'time': 2}]
    """
    shown = [dict(row) for row in rows]
    for name in measures:
        known = [row[name] for row in rows if row[name] is not None]
        best = f"{(max if name == 'accuracy' else min)(known):.3f}" if known else ""
        for row in shown:
            if row[name] is not None:
                text = f"{row[name]:.3f}"
                row[name] = f"**{text}**" if text == best else text
    return shown


def ratio_table(ratios: Mapping[str, Mapping[str, Any]]) -> str:
    """Ratios named "row: column" as a table, with what is claimed above and what is missed in bold."""
    rows: dict[str, dict[str, Any]] = {}
    for name, ratio in ratios.items():
        row, column = name.split(": ")
        value, claim = float(ratio["value"]), ratio["claim"]
        if claim is not None:
            column += f" (≥ {number(claim)})"
        missed = claim is not None and not value >= claim
        cell = f"**{number(value)}**" if missed else number(value)
        rows.setdefault(row, {"times better": row})[column] = cell
    return markdown_table(list(rows.values()))


EDITION = (
    "In this edition posterior, data, growth, bars, region and scale were measured last, one after the "
    "other, on a machine that did little else; the other families the evening before, on one like it."
)
"""What a reader must know of the figures as they stand; the next run of everything at once empties it."""


def page(families: Mapping[str, Mapping[str, Any]], lead: str = "") -> str:
    """The page for people, from families as JSON holds them, and what it begins with."""
    parts = [
        "# Benchmarks",
        *([lead] if lead else []),
        "Written by `make bench ARGS=--full`; `make bench` alone prints. Families are measured one by one, "
        "not always on the same day, version or load: the line under a family's first heading says on what. "
        f"{EDITION} Times are medians of "
        "alternated runs, quartiles in brackets, on the clock unless a column says otherwise: on a busy "
        "machine trust ratios and processor time, not milliseconds. Ratios are the peer's figure over ours, "
        "in bold where a claim (≥) is missed.",
    ]
    for family in families.values():
        machine = "; ".join(f"{name} {value}" for name, value in family["machine"].items())
        for place, section in enumerate(family["sections"]):
            parts.append(f"## {section['title']}")
            if place == 0:
                parts.append(f"*Measured in {family['mode']} mode on: {machine}.*")
            parts += [section["text"], markdown_table(section["rows"])]
            if section["ratios"]:
                parts.append(ratio_table(section["ratios"]))
    return "\n\n".join(parts) + "\n"


def fallen(ratios: Mapping[str, Ratio], floors: Mapping[str, float]) -> list[str]:
    """A sentence for each ratio below its floor."""
    return [
        f"{name}: {number(ratio.value)}, below its floor of {number(floors[name])}"
        for name, ratio in ratios.items()
        if name in floors and not ratio.value >= floors[name]
    ]


def raised(ratios: Mapping[str, Ratio], floors: Mapping[str, float]) -> dict[str, float]:
    """Floors slightly below what was reached now; no floor is lowered."""
    new = {name: float(f"{ratio.slack * ratio.value:.1e}") for name, ratio in ratios.items()}
    return dict(floors) | {name: max(value, floors.get(name, 0.0)) for name, value in new.items()}
