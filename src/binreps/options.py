"""The options that many functions share: one rule and one sentence for each; and kinds, by annotation."""

from __future__ import annotations

import inspect
import math
from collections import abc
from collections.abc import Callable
from functools import cache, wraps
from inspect import isclass
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

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


# Arguments of a wrong kind ------------------------------------------------------------------------------

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_Kind = tuple[str, Callable[[object], bool]]  # what a value must be, in words, and whether it is


def kinds_checked(function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Refuse an argument that is not of its annotated kind, in a sentence.

    Plain kinds are checked: numbers, texts, paths, lists, mappings, functions. Ranges, whole numbers and our
    own types are left to each function, whose sentence says more; what an annotation leaves open is too.

    Examples
    --------
    >>> @kinds_checked
    ... def double(level: float, name: str | None = None) -> float:
    ...     return 2 * level
    >>> double(0.5)
    1.0
    >>> double("a")
    Traceback (most recent call last):
        ...
    binreps.errors.OptionError: level must be a number, got 'a'
    >>> double(1, name=3)
    Traceback (most recent call last):
        ...
    binreps.errors.OptionError: name must be a text or None, got 3
    """
    signature = inspect.signature(function)

    @wraps(function)
    def checking(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise OptionError(f"{function.__name__}: {error}") from None
        kinds = _kinds(function)
        for name, value in given.items():
            words, fits = kinds.get(name, _ANYTHING)
            if not fits(value):
                raise OptionError(f"{name} must be {words}, got {shown(value)}")
        return function(*args, **kwargs)

    return checking


@cache
def _kinds(function: Callable[..., Any]) -> dict[str, _Kind]:
    """What the parameters of a function must be, from their annotations, looked up at the first call."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        annotation = parameter.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, function.__globals__)
            except NameError:  # imported for the type checker alone
                continue
        found[name] = _kind(annotation)
    return found


def _kind(annotation: Any) -> _Kind:
    """What a value must be that is annotated so."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        kinds = [_kind(part) for part in get_args(annotation)]
        if _ANYTHING in kinds:
            return _ANYTHING
        return " or ".join(words for words, _ in kinds), lambda value: any(fits(value) for _, fits in kinds)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(annotation))), lambda value: isinstance(value, str)
    if origin is not None and isclass(origin):
        return _several(origin, get_args(annotation))
    return _ANYTHING


def _several(origin: Any, of: tuple[Any, ...]) -> _Kind:
    """What a container must be, and what a list must hold."""
    if origin is PathLike:
        return _PATH
    if origin is abc.Callable:
        return "a function", callable
    if issubclass(origin, abc.Mapping):
        return "a mapping", lambda value: isinstance(value, abc.Mapping)
    if origin is tuple or not issubclass(origin, abc.Sequence):
        return _ANYTHING
    words, fits_one = _kind(of[0]) if of else _ANYTHING

    def fits(value: object) -> bool:
        if not isinstance(value, abc.Iterable) or isinstance(value, str | bytes | abc.Mapping):
            return False
        if isinstance(value, np.ndarray) and value.ndim != 1:
            return False
        if not isinstance(value, abc.Sequence | np.ndarray):
            return True  # what can be gone through only once is looked at by who does
        return all(map(fits_one, value))

    return "a list" if words == "anything" else f"a list of {_plural(words)}", fits


def is_single(value: object) -> bool:
    """Whether an array is a single value, which calls itself iterable and is not."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def _plural(words: str) -> str:
    """Several of what a word says.

    Examples
    --------
    >>> _plural("a number"), _plural("a list of names")
    ('numbers', 'lists of names')
    """
    noun, of, what = words.removeprefix("a ").partition(" of ")
    return f"{noun}s{of}{what}"


def numbers(name: str, values: object) -> NDArray[np.float64]:
    """Values as an array of floats, or a sentence.

    Examples
    --------
    >>> numbers("probability", [0.1, 1])
    array([0.1, 1. ])
    >>> numbers("probability", "a")
    Traceback (most recent call last):
        ...
    binreps.errors.OptionError: probability must be numbers, got 'a'
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} must be numbers, got {shown(values)}") from None


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse what is not one of our own types."""
    if not isinstance(value, kind):
        raise OptionError(f"{name} must be a {kind.__name__}, got {shown(value)}")


def check_pair(name: str, value: object) -> tuple[Any, Any]:
    """Two values, or a sentence; what they are is for others to judge."""
    if isinstance(value, abc.Iterable) and not isinstance(value, str) and not is_single(value):
        pair = tuple(value)
        if len(pair) == 2:
            return pair
    raise OptionError(f"{name} must be a pair of numbers, got {shown(value)}")


def check_mapping(name: str, value: object) -> None:
    """Refuse what is neither a mapping of names to values nor None."""
    if not (value is None or (isinstance(value, abc.Mapping) and all(isinstance(one, str) for one in value))):
        raise OptionError(f"{name} must be a mapping of names to values, got {shown(value)}")


def _is_number(value: object) -> bool:
    """Whether a value is one number that a float can hold; infinite and missing ones are."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf":
        return True
    return isinstance(value, _NUMBER) and (isinstance(value, float) or math.isfinite(real(value)))


_ANYTHING: _Kind = ("anything", lambda _: True)
_PATH: _Kind = ("a path", lambda value: isinstance(value, PathLike))
_PLAIN: dict[Any, _Kind] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    inspect.Parameter.empty: _ANYTHING,
    None: ("None", lambda value: value is None),
    type(None): ("None", lambda value: value is None),
    float: ("a number", _is_number),
    bool: ("True or False", lambda value: isinstance(value, bool | np.bool_ | int)),
    abc.Hashable: ("a name", lambda value: isinstance(value, abc.Hashable)),
    str: ("a text", lambda value: isinstance(value, str)),
    PathLike: _PATH,
    Path: _PATH,
}
