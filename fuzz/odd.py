"""Objects of a wrong kind for every public function and method: each gets a sentence, never a traceback."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

import binreps as br

_LEFT_OUT = {"fit_mcmc", "to_arviz", "to_pymc"}  # minutes, or other people's objects
_LEFT_OUT |= {"counted", "take", "asked", "by_source"}  # of Readings, for arrays that the library encoded
_NO_CALLS = {"BinrepsError", "BinrepsWarning", "DataError", "FitError", "OptionError", "Fit", "Analysis"}


def call(rng: Random, folder: Path) -> None:
    """One public function or method with arguments of which some are odd."""
    name = rng.choice(list(callables()))
    function = callables()[name]
    given: dict[str, Any] = {}
    parameters = [one for one in _parameters(function) if one.name != "self"]
    odd = rng.randrange(len(parameters)) if parameters else -1
    for i, parameter in enumerate(parameters):
        usual = usuals(folder).get(parameter.name, parameter.default)
        if i == odd or rng.random() < 0.1 or usual is inspect.Parameter.empty:
            given[parameter.name] = rng.choice(odds())
        elif parameter.default is inspect.Parameter.empty:
            given[parameter.name] = usual
    try:
        with contextlib.chdir(folder):  # a text is a good name of a file
            answer = function(*given.values()) if _is_positional(parameters, given) else function(**given)
            repr(answer)
    except Exception as error:
        error.add_note(f"{name}({', '.join(f'{k}={v!r:.60}' for k, v in given.items())})")
        raise


def _is_positional(parameters: list[inspect.Parameter], given: dict[str, Any]) -> bool:
    """Whether all that is given must be given by position."""
    kinds = [one.kind for one in parameters if one.name in given]
    return bool(kinds) and all(kind is inspect.Parameter.POSITIONAL_ONLY for kind in kinds)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """What a function takes by name."""
    left_out = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in inspect.signature(function).parameters.values() if one.kind not in left_out]


@cache
def odds() -> list[Any]:
    """Objects that hardly any argument can be."""
    return [
        *(None, 3, -1, 0.5, "a", "", b"x", object(), [], {}, (), float("nan"), float("inf"), 10**400, True),
        *([None], ["a", 3], [[1, 2], [3]], {"a": 1}, {1: [2]}, {"a": [1, 2], "b": [1]}, 1j, set(), int, len),
        *(np.zeros((2, 2)), np.array([1.5, np.nan]), np.array("a"), np.array([object()]), np.array([])),
        *(br.CountTable([], []), br.Table({"n": [1]}), Path("/nowhere"), range(3), slice(3)),
    ]


@cache
def _made() -> dict[str, Any]:
    """What usual arguments are made of."""
    counts = br.CountTable([3, 3, 3, 3], [0, 1, 2, 3], [20, 3, 2, 9])
    table = br.Table({"who": ["a", "a", "b", "b", "c"], "test": [1, 0, 1, 1, 0], "age": [1.0, 1.0, 2, 2, 3]})
    long = {"individual": "who", "result": "test"}
    readings = br.Readings(["a", "a", "b", "b"], ["r", "q", "r", "q"], [1, 0, 1, 1])
    fit = br.fit_bayes(counts)
    return {
        "counts": counts,
        "table": table,
        "fit": fit,
        "readings": readings,
        "long": long,
        "average": br.fit_average(counts),
        "known": br.CountTable([3, 3, 3], [0, 1, 3], [20, 3, 2], [0, 1, 1]),
        "populations": br.fit_populations({"a": counts, "b": counts}),
        "analysis": br.analyse(counts, br.Settings(method="average")),
    }


def usuals(folder: Path) -> dict[str, Any]:
    """Arguments that make sense, by name."""
    made = _made()
    return {
        "counts": made["counts"],
        "table": made["table"],
        "data": made["counts"],
        "fit": made["fit"],
        "new_fit": made["fit"],
        "readings": made["readings"],
        "loss": br.Loss(),
        "prior": br.Prior(),
        "rates": br.Rates(0.3, 0.1, 0.1),
        "settings": br.Settings(method="average"),
        "tables": {"a": made["counts"]},
        "populations": {"a": made["counts"]},
        "path": folder / "data.csv",
        "target": folder / "out.csv",
        "folder": folder,
        "rng": 1,
        "seed": 1,
        "level": 0.9,
        "n": [3, 2],
        "s": [1, 2],
        "replicates": 3,
        "individuals": 20,
        "n_replicates": 3,
        "truth": [1, 0],
        "scores": [0.2, 0.9],
        "score": [0.2, 0.9],
        "prevalence": 0.3,
        "false_positive": 0.1,
        "false_negative": 0.1,
        "rate": "prevalence",
        "cost_per_replicate": 0.1,
        "by": "who",
        "individual": ["a", "b"],
        "source": ["r", "r"],
        "result": [1, 0],
        "columns": {"n": [1]},
        "name": "prevalence",
        "analysis": made["analysis"],
    }


@cache
def callables() -> dict[str, Callable[..., Any]]:
    """Every public function, class and method by name."""
    found: dict[str, Callable[..., Any]] = {}
    for name in br.__all__:
        value = getattr(br, name)
        if isinstance(value, ModuleType):
            found |= {f"{name}.{one}": function for one, function in _functions(value).items()}
        elif callable(value):
            found[name] = value
    nouns = {"loss": br.Loss(), "prior": br.Prior(), "rates": br.Rates(0.3, 0.1, 0.1)}
    for name, made in {**_made(), **nouns}.items():
        if type(made).__module__.startswith("binreps"):
            found |= {f"{name}.{one}": method for one, method in _methods(made).items()}
    left_out = _LEFT_OUT | _NO_CALLS
    return {name: one for name, one in sorted(found.items()) if name.rpartition(".")[2] not in left_out}


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The public functions of a module."""
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    functions = {name: getattr(module, name) for name in names if inspect.isfunction(getattr(module, name))}
    own = (module.__name__, "binreps.show.")
    return {name: one for name, one in functions.items() if one.__module__.startswith(own)}


def _methods(value: Any) -> dict[str, Callable[..., Any]]:
    """The public methods of a value."""
    names = [name for name in dir(type(value)) if not name.startswith("_")]
    return {name: getattr(value, name) for name in names if inspect.isfunction(getattr(type(value), name))}
