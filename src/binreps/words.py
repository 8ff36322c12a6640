"""Numbers as people say them: shares in percent, chances, counts with their noun."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_SPACE = "\u202f"  # narrow, and never a line break


def percent(share: float) -> str:
    """A share as a person says it: enough digits, and never 0% or 100% for what is neither.

    Examples
    --------
    >>> [percent(share) for share in (0.2917, 0.0123, 0.00012, 1e-9, 0.99999, 0.5, 0.0, float("nan"))]
    ['29.2%', '1.2%', '0.012%', 'below 0.001%', 'above 99.9%', '50.0%', '0%', 'undefined']
    """
    if share != share:
        return "undefined"
    if share in (0, 1):
        return f"{share:.0%}"
    if share > 0.9995:
        return "above 99.9%"
    if share < 1e-5:
        return "below 0.001%"
    return f"{100 * share:.1f}%" if share >= 0.001 else f"{100 * share:.2g}%"


def percents(estimate: float, lower: float, upper: float) -> tuple[str, str]:
    """An estimate and its interval, with as many digits as tell its ends apart.

    Examples
    --------
    >>> percents(0.3012, 0.2241, 0.3839)
    ('30.1%', '22.4% to 38.4%')
    >>> percents(0.92, 0.91998, 0.92003)
    ('92.0000%', '91.9980% to 92.0030%')
    >>> percents(0.5, float("nan"), float("nan"))
    ('50.0%', '')
    """
    if lower != lower:
        return percent(estimate), ""
    digits, width = 1, 100 * (upper - lower)
    while 0 < width < 5 * 10.0**-digits and digits < 9:
        digits += 1
    if digits == 1:
        return percent(estimate), f"{percent(lower)} to {percent(upper)}"
    return f"{100 * estimate:.{digits}f}%", f"{100 * lower:.{digits}f}% to {100 * upper:.{digits}f}%"


def chance(probability: float) -> str:
    """The chance of one individual: whole percents, a decimal near 0 and 1, never 0 or 100 by rounding.

    Examples
    --------
    >>> [chance(p).split(" ")[0] for p in (0.434, 0.004, 0.9961, 1e-5, 0.99999, 1.0)]
    ['43', '0.4', '99.6', '<0.1', '>99.9', '100']
    """
    if probability != probability:
        return "undefined"
    if probability in (0, 1):
        number = f"{100 * probability:.0f}"
    elif probability < 0.0005:
        number = "<0.1"
    elif probability > 0.9994:
        number = ">99.9"
    else:
        number = f"{100 * probability:.{int(probability < 0.0095 or probability > 0.9905)}f}"
    return f"{number}{_SPACE}%"


def in_hundred(probability: float) -> str:
    """A chance as a number of people.

    Examples
    --------
    >>> in_hundred(0.434), in_hundred(0.004)
    ('about 43 in 100 such individuals', 'fewer than 1 in 100 such individuals')
    """
    who = "in 100 such individuals"
    if probability < 0.01:
        return f"fewer than 1 {who}"
    return f"more than 99 {who}" if probability > 0.99 else f"about {100 * probability:.0f} {who}"


def plural(number: int, noun: str) -> str:
    """A number and its noun: `1 cell`, `1,200 cells`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[object]) -> str:
    """Names with commas between, as an option takes them; a name with a comma is quoted.

    Examples
    --------
    >>> listed(["ann", "Doe, Jo"])
    'ann,"Doe, Jo"'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def unlisted(text: str) -> tuple[str, ...]:
    """The names that `listed` wrote, or a user; spaces around them do not count.

    Examples
    --------
    >>> unlisted('ann, "Doe, Jo"')
    ('ann', 'Doe, Jo')
    """
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
