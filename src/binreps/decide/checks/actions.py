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
        "model", "method", "column" or "prior".
    value : str
        The model, the method, the part of a column, or the rate.

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
        "method": {
            "command": "binreps analyse --method {value}",
            "page": "Method: {value}",
            "python": 'br.fit(…, method="{value}")',
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
