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
from binreps.decide.evaluate import calibration_curve, calibration_error, cross_validate_sources
from binreps.decide.indecision import risk_by_cost
from binreps.decide.next_reading import next_reading
from binreps.decide.predictive import predictive_counts
from binreps.fits.point.simple import average_score, median_score
from binreps.model import likelihood_score, log_likelihood
from binreps.show.card import Origin, card
from binreps.study.mammography import simulate_mammography
from binreps.study.simulate import simulate_counts
from binreps.tables.roles import PARTS

_LEFT_OUT = {"fit_mcmc", "to_arviz", "to_pymc"}  # minutes, or other people's objects
_LEFT_OUT |= {"counted", "take", "asked", "by_source", "encoded", "decoded"}  # for arrays that were encoded
_LEFT_OUT |= {
    "standardised",
    "design",
    "thinned",
    "indicators",
    "rows_of",
    "says_nothing",
    "few",
    "counted_once",
}
_DOCUMENTED = (  # in the reference, though not at the top level
    *(
        calibration_curve,
        calibration_error,
        cross_validate_sources,
        risk_by_cost,
        next_reading,
        predictive_counts,
    ),
    *(average_score, median_score, likelihood_score, log_likelihood, card, Origin),
    *(simulate_counts, simulate_mammography),
)
_CALLED = ("progress", "fit", "weights")
_MAKERS = ((br.Readings, "wide"),)
_NO_CALLS = {"BinrepsError", "BinrepsWarning", "DataError", "FitError", "OptionError", "Fit", "Analysis"}


def call(rng: Random, folder: Path) -> None:
    """One public function or method with arguments of which some are odd."""
    name = rng.choice(list(callables()))
    function = callables()[name]
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    odd = rng.choice(parameters).name if parameters else None
    usual = usuals(folder) | own_usuals().get(name, {})
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for one in parameters:
        is_odd = one.name == odd or rng.random() < 0.1
        if one.kind is one.VAR_POSITIONAL:
            args += _several(rng, usual, is_odd)
        elif one.kind is one.VAR_KEYWORD:
            kwargs |= _by_name(rng, one, usual, is_odd)
        elif is_odd or one.default is one.empty or (one.name in usual and rng.random() < 0.2):
            value = usual.get(one.name, one.empty)
            value = _odd_for(rng, one.name) if is_odd or value is one.empty else value
            by_place = one.kind is not one.KEYWORD_ONLY and len(args) == parameters.index(one)
            args, kwargs = ([*args, value], kwargs) if by_place else (args, {**kwargs, one.name: value})
    try:
        with contextlib.chdir(folder):  # a text is a good name of a file
            repr(function(*args, **kwargs))
    except Exception as error:
        given = [*map(_short, args), *(f"{key}={_short(value)}" for key, value in kwargs.items())]
        error.add_note(f"{name}({', '.join(given)})")
        raise


def _odd_for(rng: Random, name: str) -> Any:
    """Something odd for a parameter; no function where one is called, as its errors are its own."""
    found = rng.choice(odds())
    return None if name in _CALLED and callable(found) else found


def _several(rng: Random, usual: dict[str, Any], is_odd: bool) -> list[Any]:
    """What `*asked` is given: n and s, or who said what, or up to three odd things."""
    return [rng.choice(odds()) for _ in range(rng.randrange(4))] if is_odd else list(usual["asked"])


def _by_name(
    rng: Random, parameter: inspect.Parameter, usual: dict[str, Any], is_odd: bool
) -> dict[str, Any]:
    """What `**columns` or `**about` is given: what is usual, with some odd things among it."""
    if parameter.name != "columns":
        found, names = usual.get("about", {}), ["covariates", "population", "new", "odd"]
    else:
        found, names = usual.get("named", {"individual": "who", "result": "test"}), [*PARTS, "odd"]
    if is_odd:
        found = found | {rng.choice(names): rng.choice(odds()) for _ in range(rng.randrange(1, 3))}
    return dict(found)


def _short(value: object) -> str:
    """A value in a few letters."""
    return f"{value!r:.60}".replace("\n", " ")


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
    """Values whose methods are called, and that usual arguments are made of."""
    counts = br.CountTable([3, 3, 3, 3], [0, 1, 2, 3], [20, 3, 2, 9])
    n, s, weight = [3, 3, 3, 2], [0, 3, 1, 2], [20, 9, 3, 2]
    records = br.CovariateTable(n, s, {"age": [1.0, 2.0, 3.0, 4.0], "site": ["a", "b", "a", "b"]}, weight)
    readings = br.Readings.wide([[0, 0, 0], [1, 1, 1], [1, 0, 1]], ["r", "q", "t"], weight=[30, 10, 3])
    fit = br.fit_bayes(counts)
    answer = br.explain(fit, br.Loss(), 3, 2)
    return {
        "counts": counts,
        "known": br.CountTable([3, 3, 3], [0, 1, 3], [20, 3, 2], [0, 1, 1]),
        "records": records,
        "readings": readings,
        "table": br.Table({"who": list("aabbc"), "test": [1, 0, 1, 1, 0], "age": [1.0, 1.0, 2, 2, 3]}),
        "fit": fit,
        "average": br.fit_average(counts),
        "populations": br.fit_populations({"a": counts, "b": counts}),
        "overdispersed": br.fit_overdispersed(counts),
        "by covariates": br.fit_covariates(records),
        "by source": br.fit_sources(readings, rng=1),
        "analysis": br.analyse(counts, br.Settings(method="average")),
        "comparison": br.compare(counts),
        "answer": answer,
        "step": answer.next,
        "rule": br.stopping_table(fit, br.Loss(), cost_per_replicate=0.1, max_replicates=3),
        "findings": br.check(fit),
        "loss": br.Loss(),
        "prior": br.Prior(),
        "rates": br.Rates(0.3, 0.1, 0.1),
    }


def usuals(folder: Path) -> dict[str, Any]:
    """Arguments that make sense, by name."""
    made = _made()
    return (
        {name: made[name] for name in ("counts", "records", "readings", "table", "fit", "loss", "prior")}
        | {"rates": made["rates"], "analysis": made["analysis"], "stopping": made["rule"]}
        | {"data": made["counts"], "new_fit": made["fit"], "settings": br.Settings(method="average")}
        | {"tables": [made["counts"]], "populations": {"a": made["counts"]}}
        | {"path": folder / "data.csv", "target": folder / "out.csv", "folder": folder}
        | {"rng": 1, "seed": 1, "level": 0.9, "n": [3, 2], "s": [1, 2], "weight": [4, 5]}
        | {"replicates": 3, "individuals": 20, "n_replicates": 3, "max_replicates": 4, "ahead": 3}
        | {"truth": [1, 0], "scores": [0.2, 0.9], "score": [0.2, 0.9], "decisions": [0, 1]}
        | {"prevalence": 0.3, "false_positive": 0.1, "false_negative": 0.1, "rate": "prevalence"}
        | {"lower": 0.2, "upper": 0.8, "chance": 0.2, "size": 3, "workers": 1, "data_sets": 2}
        | {"cost_per_replicate": 0.1, "by": "who", "columns": {"n": [1]}, "name": "prevalence"}
        | {"individual": ["a", "b"], "source": ["r", "r"], "result": [1, 0], "asked": ([3, 2], [1, 2])}
        | {"covariates": {"age": [1.0, 2.0]}, "expect": 0.1, "surprised_above": 0.3, "of": 20, "share": 0.1}
        | {"said": {"r": 1}, "names": ["a", "b", "a"], "groups": [["r", "q"]], "merge": [["r", "q"]]}
    )


@cache
def own_usuals() -> dict[str, dict[str, Any]]:
    """Arguments that make sense for one function and not for others of the same name."""
    made = _made()
    one = {"age": 2.0, "site": "a"}
    by_covariates = {"fit": made["by covariates"], "covariates": one, "asked": (3, 2)}
    design = {"truth": made["rates"], "individuals": [20], "replicates": [3], "error_margin": 0.2}
    found: dict[str, dict[str, Any]] = {
        "plan": {**design, "refine": True},
        "cross_validate": {"fit": br.fit_average, "folds": 2, "covariates": None},
        "cross_validate_sources": {"fit": _fit_sources, "folds": 2, "truth": [1, 0, 1]},
        "analyse": {"truth": None, "name": "mine", "covariates": "age"},
        "fit": {"prior": br.Prior(), "formula": "age", "merge": ()},
        "explain": by_covariates,
        "card": by_covariates,
        "next_reading": {"fit": made["by source"], "covariates": None},
        "simulate": {"covariates": None},
        "fit_sources": {"prior": br.SourcePrior()},
        "readings.with_covariates": {"covariates": {"age": [1.0, 2.0, 3.0]}},
        "Settings": {"model": "correlated", "replicates": 3},
        "risk_by_cost": {"scores": {"mine": [0.2, 0.9]}},
        "plot.sources": {"fit": made["by source"]},
        "plot.populations": {"fit": made["populations"]},
    }
    for method in _methods(made["by covariates"]):
        found[f"by covariates.{method}"] = {
            "about": {"covariates": {"age": 2.0, "site": "a"}},
            "covariates": one,
        }
    for method in _methods(made["by source"]):
        found[f"by source.{method}"] = {"asked": ({"r": 1, "q": 0},)}
    return found


def _fit_sources(readings: br.Readings) -> Any:
    """A fit for cross-validation."""
    return br.fit_sources(readings, rng=1, tol=1)


@cache
def callables() -> dict[str, Callable[..., Any]]:
    """Every public function, class and method by name."""
    found: dict[str, Callable[..., Any]] = {one.__name__: one for one in _DOCUMENTED}
    for name in br.__all__:
        value = getattr(br, name)
        if isinstance(value, ModuleType):
            found |= {f"{name}.{one}": function for one, function in _functions(value).items()}
        elif callable(value):
            found[name] = value
    for name, made in _made().items():
        found |= {f"{name}.{one}": method for one, method in _methods(made).items()}
    found |= {f"{noun.__name__}.{one}": getattr(noun, one) for noun, one in _MAKERS}
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
