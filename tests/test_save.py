"""A fit goes to JSON and comes back; a file that was changed, cut or made by a newer version is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binreps import (
    CountTable,
    DataError,
    OptionError,
    Prior,
    fit_average,
    fit_bayes,
    fit_known,
    fit_map,
    fit_median,
    fit_overdispersed,
    fit_populations,
    load_fit,
    save_fit,
)
from binreps.run.save import fit_from_dict, fit_to_dict

COUNTS = CountTable([4, 4, 3, 2, 0], [0, 4, 1, 2, 0], [40, 12, 5, 3, 1])
KNOWN = CountTable([4, 4, 3], [0, 4, 1], [40, 12, 5], known=[None, 1, None])
FITS = {
    "average": fit_average(COUNTS),
    "median": fit_median(COUNTS),
    "map": fit_map(KNOWN, Prior((1, 2), (2, 9), (3, 3))),
    "bayes": fit_bayes(KNOWN, Prior((1, 2), (2, 9), (3, 3))),
    "nobody": fit_bayes(CountTable([], [])),
    "overdispersed": fit_overdispersed(KNOWN, Prior((1, 2)), intraclass=(1, 20)),
    "populations": fit_populations({"north": COUNTS, 7: KNOWN}),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_comes_back_equal(name: str, tmp_path: Path) -> None:
    path = save_fit(FITS[name], tmp_path / "fit.json")
    loaded = load_fit(path)
    assert type(loaded) is type(FITS[name])
    assert loaded == FITS[name]
    assert fit_to_dict(loaded) == json.loads(path.read_text(encoding="utf-8"))


def test_a_rate_that_is_undefined_is_null(tmp_path: Path) -> None:
    fit = fit_average(CountTable([3], [3], [5]))
    path = save_fit(fit, tmp_path / "fit.json")
    assert json.loads(path.read_text(encoding="utf-8"))["results"]["false_positive"] is None
    assert load_fit(path) == fit


def change(*keys: Any, to: Any) -> Callable[[dict[str, Any]], Any]:
    """A way to tamper with a saved fit."""

    def tamper(content: dict[str, Any]) -> Any:
        place: Any = content
        for key in keys[:-1]:
            place = place[key]
        if to is ...:
            del place[keys[-1]]
        else:
            place[keys[-1]] = to
        return content

    return tamper


@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (
            change("results", "prevalence", to=0.5),
            r"must follow from its counts and prior, got prevalence = 0.5",
        ),
        (change("results", "log_evidence", to=-1.0), "got log_evidence = -1.0"),
        (change("results", "prevalence", to="high"), "got prevalence = high"),
        (change("results", to=...), "has no results"),
        (change("cells", "weight", 0, to=41), "must follow from its counts"),
        (change("cells", "s", 0, to=9), "cannot be made again: s must be ≤ n"),
        (change("cells", "n", to="many"), "cannot be made again|damaged"),
        (change("cells", to=...), r"incomplete or damaged \(KeyError: 'cells'\)"),
        (change("prior", "prevalence", to=[0, 1]), "the prior of prevalence must have finite shapes"),
        (change("prior", "colour", to=[1, 1]), "incomplete or damaged"),
        (change("version", to=3), "format 3, and this version reads up to format 2; upgrade"),
        (change("version", to="1"), "version must be a whole number ≥ 1, got '1'"),
        (change("schema", to="x"), "this is not a fit saved by binreps"),
        (change("method", to="magic"), "method must be one of average, .*got 'magic'"),
        (lambda _: [1, 2], "this is not a fit saved by binreps"),
        (lambda _: None, "this is not a fit saved by binreps"),
    ],
)
def test_a_file_that_was_changed_is_refused(tamper: Any, sentence: str) -> None:
    content = json.loads(json.dumps(fit_to_dict(FITS["bayes"])))
    with pytest.raises(DataError, match=sentence):
        fit_from_dict(tamper(content))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ('{"schema": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "this is not a fit saved by binreps"),
    ],
)
def test_what_is_no_fit_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=sentence):
        load_fit(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.json cannot be read: No such file"):
        load_fit(tmp_path / "nowhere.json")


def test_fits_that_cannot_be_saved_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    known = fit_known(CountTable([3, 3], [0, 3], known=[0, 1]))
    for fit in (known, FITS["populations"]["north"]):
        with pytest.raises(OptionError, match="can be saved, got"):
            save_fit(fit, path)
    with pytest.raises(OptionError, match=r"names of text or whole numbers can be saved, got \(1, 2\)"):
        save_fit(fit_populations({(1, 2): COUNTS}), path)
    assert not list(tmp_path.iterdir())


def test_more_cells_than_can_be_fitted_again_soon_are_refused(tmp_path: Path) -> None:
    n = [n for n in range(1, 150) for _ in range(n + 1)]
    s = [s for n in range(1, 150) for s in range(n + 1)]
    many = {"n": n, "s": s, "weight": [1] * len(n)}
    rule = r"at most 10,000 cells \(n, s\).*got 11,324"
    with pytest.raises(DataError, match=rule):
        fit_from_dict({**fit_to_dict(FITS["bayes"]), "cells": many})
    with pytest.raises(DataError, match="got 22,648"):
        fit_from_dict({**fit_to_dict(FITS["populations"]), "populations": [{"name": "a", **many}] * 2})
    average = fit_average(CountTable(**many))
    assert load_fit(save_fit(average, tmp_path / "fit.json")) == average
