"""What a check returns: findings, each with a number, a sentence and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from binreps.decide.checks.actions import Action
from binreps.table import Table

WARNING, NOTE = "warning", "note"


@dataclass(frozen=True)
class Finding:
    """One thing that the reader of a fit should know.

    Attributes
    ----------
    name : str
        A short name, the same for every finding of its kind.
    number : float
        What was measured; the sentence says what it is.
    sentence : str
        What was found, in plain words, with the numbers.
    advice : str
        What to do about it.
    severity : str
        "warning" if results may mislead, "note" if they stand with a limit.
    action : Action or None
        What the program offers to do about it, in words of every door.
    """

    name: str
    number: float
    sentence: str
    advice: str
    severity: str = WARNING
    action: Action | None = None

    def advise(self, door: str) -> str:
        """What to do about it, in the words of a door: "command", "page" or "python"."""
        return self.advice if self.action is None else f"{self.advice} {self.action.words(door)}"

    def __str__(self) -> str:
        head = f"{self.severity.upper()} {self.name}: {self.sentence}"
        return "\n".join([*_wrapped(head, ""), *_wrapped(f"→ {self.advise('python')}", "  ")])


@dataclass(frozen=True, repr=False)
class Findings:
    """All that `check` found, warnings first; empty, and false, if there is nothing to say.

    Examples
    --------
    >>> found = Findings((Finding("modes", 2, "Two explanations fit.", "Look at both.", "note"),))
    >>> print(found)
    NOTE modes: Two explanations fit.
      → Look at both.
    >>> len(found), len(found.warnings), [finding.name for finding in found]
    (1, 0, ['modes'])
    """

    found: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", tuple(sorted(self.found, key=lambda one: one.severity != WARNING)))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Those that say that results may mislead."""
        return tuple(one for one in self.found if one.severity == WARNING)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Those that name a limit and raise no alarm."""
        return tuple(one for one in self.found if one.severity != WARNING)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __contains__(self, name: object) -> bool:
        """Whether something of that name was found."""
        return any(name in (one, one.name) for one in self.found)

    def table(self) -> Table:
        """The findings as a table with columns severity, name, number, sentence and advice."""
        names = ("severity", "name", "number", "sentence")
        columns: dict[str, list[Any]] = {name: [getattr(one, name) for one in self.found] for name in names}
        return Table({**columns, "advice": [one.advise("python") for one in self.found]})

    def __str__(self) -> str:
        return "\n".join(map(str, self.found)) or "nothing to report"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><b>{escape(one.severity)}, {escape(one.name)}:</b> {escape(one.sentence)} "
            f"<i>{escape(one.advise('python'))}</i></li>"
            for one in self.found
        )
        return f"<ul>{items}</ul>" if items else "<p>nothing to report</p>"


def _wrapped(text: str, indent: str) -> list[str]:
    """The text in lines of at most 100 characters."""
    return textwrap.wrap(text, 100, initial_indent=indent, subsequent_indent=indent + "  ")
