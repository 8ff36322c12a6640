"""Formulas: columns of a design from words such as `age + C(site)`; the extra `formula`.

A formula is code that is run on the columns, so it comes from a program, never from the page. In a file there
may be formulas of columns, numbers, arithmetic and a few functions: `check_plain` refuses all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binreps.errors import DataError, OptionError
from binreps.options import shown

_INTERCEPT = "Intercept"
_ENCODED = ("C", "Q", "Treatment", "I", "center", "scale", "poly", "bs", "cr", "cs")
_COUNTED = ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs", "sin", "cos")
_FUNCTIONS = {*_ENCODED, *_COUNTED[:3], "exp", "contr.treatment", *(f"np.{name}" for name in _COUNTED)}
_PLAIN = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Name, ast.Load),
    *(ast.Call, ast.keyword, ast.List, ast.Tuple),
)


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
            self.variables = tuple(sorted(self._columns()))
        except OptionError:
            raise
        except Exception as error:  # formulaic has errors of its own
            raise OptionError(f"formula {text!r} cannot be read: {_line(error)}") from None
        if not self.variables:
            raise OptionError(f"formula must name a column, got {text!r}")

    @property
    def _factors(self) -> Iterator[tuple[str, bool]]:
        """The pieces of the formula, and whether each is code."""
        for term in self._parsed:
            yield from ((factor.expr, factor.eval_method.value == "python") for factor in term.factors)

    def _columns(self) -> set[str]:
        """The columns that it names; formulaic overlooks those in some of its own functions."""
        found = set(map(str, self._parsed.required_variables))
        for expression, is_code in self._factors:
            nodes = _outside_calls(expression) if is_code else []
            found |= {node.id for node in nodes if isinstance(node, ast.Name)} - _FUNCTIONS
        return found

    def check_plain(self) -> None:
        """Refuse what a file could do harm with: all but columns, numbers, arithmetic and known functions."""
        for expression, is_code in self._factors:
            if is_code and not _is_plain(expression):
                rule = "may use columns, numbers, arithmetic and functions such as np.log, I, C, poly and bs"
                raise OptionError(f"a formula in a file {rule}, got {expression!r}")

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


def _calls(expression: str) -> list[ast.expr]:
    """What a piece of code calls."""
    tree = ast.parse(expression, mode="eval")
    return [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _outside_calls(expression: str) -> list[ast.AST]:
    """The parts of a piece of code that are not the names of what it calls."""
    tree = ast.parse(expression, mode="eval")
    called = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.Call) for part in ast.walk(node.func)
    }
    return [node for node in ast.walk(tree) if id(node) not in called]


def _is_plain(expression: str) -> bool:
    """Whether a piece of code calls nothing but the functions that are known."""
    known = all(ast.unparse(call) in _FUNCTIONS for call in _calls(expression))
    return known and all(isinstance(node, _PLAIN) for node in _outside_calls(expression))


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
