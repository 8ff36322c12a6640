"""What every section is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Progress = Callable[[float, float], object]
"""Called as `progress(done, total)`, like that of `fit_many`."""


@dataclass(frozen=True)
class Settings:
    """Where to write, which data to read, and how much to simulate."""

    out: Path
    periodontal: Path | None = None
    quick: bool = False

    def datasets(self, number: int) -> int:
        """How many data sets to simulate: the number asked for, or a few if we are in a hurry."""
        return min(number, 8) if self.quick else number

    def rng(self, section: int) -> np.random.Generator:
        """Each section's own source of randomness, so that one can be run without the others."""
        return np.random.default_rng([2026, section])


@dataclass(frozen=True)
class Comparison:
    """One line of the final table; `agrees` is None where nothing is printed to compare with."""

    what: str
    printed: str
    ours: str
    agrees: bool | None
    why: str = ""


def number(what: str, printed: str, ours: float, why: str = "", *, digits: int | None = None) -> Comparison:
    """Compare with a printed number: it agrees if it is ours, rounded to the digits that are printed."""
    places = len(printed.partition(".")[2])
    agrees = abs(float(printed) - ours) <= 0.5 * 10**-places + 1e-9
    return Comparison(what, printed, f"{ours:.{places + 1 if digits is None else digits}f}", agrees, why)


def text(what: str, printed: str, ours: str, why: str = "") -> Comparison:
    """Compare with printed words or counts: they agree if they are the same."""
    return Comparison(what, printed, ours, printed == ours, why)


def found(what: str, ours: str, why: str = "") -> Comparison:
    """A result of ours where the paper has a picture, and no number that we know."""
    return Comparison(what, "–", ours, None, why)


def part(progress: Progress, i: int, of: int) -> Progress:
    """The progress of the i-th of several equal parts."""
    return lambda done, total: progress(i + done / max(total, 1), of)
