"""The exceptions and warnings of binreps.

::

    ValueError
    └── BinrepsError         one sentence: what is wrong, where, and what to do
        ├── DataError        the user's numbers or table break a rule
        ├── OptionError      an argument is out of its range
        └── FitError         the data are well formed but this fit cannot use them
    UserWarning
    └── BinrepsWarning       the result stands, with a limit the user should know
        └── TakesLong        said before work begins that takes more than a few seconds
"""

from __future__ import annotations


class BinrepsError(ValueError):
    """Anything binreps refuses; its message is one sentence for the user, on one line whatever it quotes."""

    def __init__(self, message: str = "", *more: object) -> None:
        super().__init__(" ".join(str(message).splitlines()), *more)


class DataError(BinrepsError):
    """The data break a rule; the message names the column, the place and the value."""


class OptionError(BinrepsError):
    """An argument is out of its range; the message names it, the rule and the value."""


class FitError(BinrepsError):
    """The fit cannot be made from these data; the message says which one can."""


class BinrepsWarning(UserWarning):
    """The result is correct but has a limit that matters to its reader."""


class TakesLong(BinrepsWarning):
    """What was asked may take more than a few seconds; nothing is wrong with it."""
