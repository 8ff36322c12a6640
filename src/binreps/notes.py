"""Notes: what is worth saying about a result that stands, as values that travel with it.

Inside the package nothing warns: reading, counting and guessing return their notes, so that several analyses
can run in one process at once. Where a public function returns a bare result, `warn_of` turns them into
warnings at its door, and `say_long` says before work begins that it takes long.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from binreps.errors import BinrepsWarning, TakesLong


@dataclass(frozen=True)
class Note:
    """One thing to know: a stable id for machines, a sentence for people.

    Examples
    --------
    >>> print(Note("rows-without-individual", "2 rows without an individual in column 'patient' dropped"))
    2 rows without an individual in column 'patient' dropped
    """

    id: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def warn_of(notes: Iterable[Note], category: type[BinrepsWarning] = BinrepsWarning) -> None:
    """Each note as a warning that points at the user's line, however deep inside the package we are."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("binreps."):
        level, frame = level + 1, frame.f_back
    for note in notes:
        warnings.warn(note.sentence, category, stacklevel=level)


def say_long(sentence: str) -> None:
    """A warning that what was asked takes long, before it begins: nobody should wonder for five seconds."""
    warn_of([Note("takes-long", sentence)], TakesLong)
