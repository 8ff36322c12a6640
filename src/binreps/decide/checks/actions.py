"""Actions: what a reader can do where they are: on the command line, on the page, in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DOORS = ("command", "page", "python")
"""Where a reader may be."""


@dataclass(frozen=True)
class Action:
    """Something to do, by an id and a value, and its words at each door.

    Attributes
    ----------
    id : str
        "model", "column", "prior" or "tol".
    value : str
        The model, the part of a column, the rate, or nothing.

    Examples
    --------
    >>> Action("model", "correlated").words("command")
    'binreps analyse --model correlated'
    >>> print(Action("model", "correlated").words("python"))
    br.fit(…, model="correlated")
    """

    id: str
    value: str = ""

    def words(self, door: str) -> str:
        """What to do, in the words of a door."""
        name = self.value.replace("-", "_")
        return _WORDS[self.id][door].format(value=self.value, name=name)


_WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "model": {
            "command": "binreps analyse --model {value}",
            "page": "Model: {value}",
            "python": 'br.fit(…, model="{value}")',
        },
        "column": {
            "command": "binreps analyse --{value} COLUMN",
            "page": "Columns: {value}",
            "python": 'br.fit(…, {name}="…")',
        },
        "prior": {
            "command": "binreps analyse --prior-{value} a,b",
            "page": "Settings: prior of the {value} rate",
            "python": "br.fit(…, prior=br.Prior({name}=(a, b)))",
        },
    }
)
