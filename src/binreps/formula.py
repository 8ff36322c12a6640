"""Formulas: columns of a design from words such as `age + C(site)`; the extra `formula`.

A formula is code that is run on the columns, so it comes from a program alone: never from a file or the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binreps.errors import DataError, OptionError
from binreps.options import shown

_INTERCEPT = "Intercept"


class Formula:
    """The right-hand side of a formula, and what its terms became on the study that it was first used on.

    Attributes
    ----------
    text : str
    variables : tuple of str
        The columns that it needs.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text.strip() or "~" in text:
            rule = "formula must be the right-hand side, such as 'age + C(site)'"
            raise OptionError(f"{rule}, got {shown(text)}")
        self.text, self._spec = text, None
        try:
            self._parsed = _formulaic().Formula(text)
            self.variables = tuple(sorted(map(str, self._parsed.required_variables)))
        except OptionError:
            raise
        except Exception as error:  # formulaic has errors of its own
            raise OptionError(f"formula {text!r} cannot be read: {_line(error)}") from None
        if not self.variables:
            raise OptionError(f"formula must name a column, got {text!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.text,)

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Formula) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def design(self, columns: Mapping[str, Sequence[Any]]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Names and values of its columns, without an intercept; new rows as the first ones were."""
        frame = import_module("pandas").DataFrame({name: list(columns[name]) for name in self.variables})
        try:
            first = self._spec is None
            matrix = _formulaic().model_matrix(self._parsed if first else self._spec, frame)
            self._spec = matrix.model_spec if first else self._spec
        except Exception as error:  # whatever the code of the formula raises
            raise DataError(f"formula {self.text!r} cannot be computed: {_line(error)}") from None
        kept = [name for name in matrix.columns if name != _INTERCEPT]
        values = np.asarray(matrix[kept], dtype=float)
        if len(values) != len(frame) or not np.all(np.isfinite(values)):
            raise DataError(f"formula {self.text!r} must give a finite number for everyone")
        return tuple(map(str, kept)), values


def _formulaic() -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        import formulaic
    except ModuleNotFoundError:
        advice = "pip install 'binreps[formula]'"
        raise OptionError(f"a formula needs formulaic, which is not installed: {advice}") from None
    return formulaic


def _line(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).strip().split("\n")[0][:200] or type(error).__name__
