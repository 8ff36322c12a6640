"""Actions: what a reader can do where they are: on the command line, on the page, in Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from binreps.words import unlisted

DOORS = ("command", "page", "python")
"""Where a reader may be."""


@dataclass(frozen=True)
class Action:
    """Something to do, by an id and a value, and its words at each door.

    Attributes
    ----------
    id : str
        "model", "method", "column", "prior" or "merge".
    value : str
        The model, the method, the part of a column, the rate, or the sources with commas between.

    Examples
    --------
    >>> Action("model", "correlated").words("command")
    'binreps analyse FILE --model correlated'
    >>> print(Action("model", "correlated").words("python"))
    br.fit(…, model="correlated")
    >>> Action("merge", "ann,bob").words("command")
    'binreps analyse FILE --merge ann,bob'
    """

    id: str
    value: str = ""

    def words(self, door: str) -> str:
        """What to do, in the words of a door."""
        name, several = self.value.replace("-", "_"), unlisted(self.value)
        return _WORDS[self.id][door].format(
            value=self.value, name=name, group=several, option=shlex.quote(self.value)
        )


_WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "model": {
            "command": "binreps analyse FILE --model {value}",
            "page": "Model: {value}",
            "python": 'br.fit(…, model="{value}")',
        },
        "method": {
            "command": "binreps analyse FILE --method {value}",
            "page": "Method: {value}",
            "python": 'br.fit(…, method="{value}")',
        },
        "column": {
            "command": "binreps analyse FILE --{value} COLUMN",
            "page": "Columns: {value}",
            "python": 'br.fit(…, {name}="…")',
        },
        "prior": {
            "command": "binreps analyse FILE --prior-{value} a,b",
            "page": "Settings: prior of the {value} rate",
            "python": "br.fit(…, prior=br.Prior({name}=(a, b)))",
        },
        "merge": {
            "command": "binreps analyse FILE --merge {option}",
            "page": "At the terminal: binreps analyse FILE --merge {option}",
            "python": "br.fit(…, merge=[{group}])",
        },
    }
)
