"""The options that many functions share: one rule and one sentence for each."""

from __future__ import annotations

import math

import numpy as np

from binreps.errors import OptionError

_LONGEST = 100  # characters of a value in a message: a table is named, not printed
_NUMBER = int | float | np.integer | np.floating


def generator(rng: np.random.Generator | int) -> np.random.Generator:
    """The generator itself, or a new one from a seed; None is refused, so that results can be repeated."""
    if isinstance(rng, np.random.Generator):
        return rng
    if _is_whole(rng) and rng >= 0:
        return np.random.default_rng(rng)
    raise OptionError(f"rng must be a numpy Generator or a whole-number seed ≥ 0, got {shown(rng)}")


def check_level(level: float) -> None:
    """Refuse a probability that an interval cannot hold with."""
    if not 0 < real(level) < 1:
        raise OptionError(f"level must be between 0 and 1, got {shown(level)}")


def check_tol(tol: float) -> None:
    """Refuse a tolerance that nothing could meet, or that anything would."""
    if not 0 < real(tol) < np.inf:
        raise OptionError(f"tol must be a finite number > 0, got {shown(tol)}")


def check_whole(name: str, value: int, least: int, most: int = 10**9) -> None:
    """Refuse an option that is not a whole number in its range."""
    if not _is_whole(value) or not least <= value <= most:
        raise OptionError(f"{name} must be a whole number from {least:,} to {most:,}, got {shown(value)}")


def real(value: object) -> float:
    """A number as a float; NaN, which is in no range, for what is no number.

    Examples
    --------
    >>> real(2), real("2"), real(-(10**400))
    (2.0, nan, -inf)
    """
    if not isinstance(value, _NUMBER):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def shown(value: object) -> str:
    """A value as a message shows it: on one line, a number without its type, of what is long the type alone.

    Examples
    --------
    >>> shown(np.float64(2.5)), shown("two"), shown(list(range(100)))
    ('2.5', "'two'", 'a list')
    """
    if isinstance(value, _NUMBER):
        return str(value)
    text = repr(value)
    return text if len(text) <= _LONGEST and "\n" not in text else f"a {type(value).__name__}"


def _is_whole(value: object) -> bool:
    """Whether a value is an integer, which True is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
