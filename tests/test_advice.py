"""Every piece of advice names something that the reader can do where they are; it is tried here."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import binreps as br
from binreps.cli.app import app
from binreps.decide.checks.actions import DOORS, Action
from binreps.decide.checks.exchange import exchange_findings
from binreps.decide.checks.findings import Finding
from binreps.run.models import offered_models
from binreps.tables.roles import PARTS

CODE = re.compile(r"\bfit_|\bbr\.|\w\(|\w=|--\w|SourcePrior|log_evidence")
"""Words of one door only."""


def smears() -> br.CountTable:
    """A test that misses most."""
    return br.CountTable([5] * 6, range(6), [700, 180, 80, 30, 8, 2])


@cache
def walked() -> dict[str, Finding]:
    """Findings of many kinds, by name, from data that raise them."""
    loss, known = br.Loss(), br.Prior()
    spread = br.CountTable([6] * 7, range(7), [260, 60, 40, 30, 30, 50, 130])
    fits: list[Any] = [
        br.fit_bayes(br.CountTable([], [])),
        br.fit_bayes(br.CountTable([2, 2], [0, 2], [60, 40])),
        br.fit_average(br.CountTable([2, 2], [0, 2], [60, 40])),
        br.fit_bayes(br.CountTable([3] * 4, range(4), [3, 1, 1, 3])),
        br.fit_bayes(br.CountTable([3], [0], [300])),
        br.fit_bayes(spread, known),
        br.fit_populations({"a": spread, "b": br.CountTable([6] * 7, range(7), [400, 60, 20, 9, 9, 20, 60])}),
        br.fit_bayes(smears()),
        br.fit_bayes(
            br.CountTable([4] * 5, range(5), [62, 250, 375, 250, 63]), br.Prior(better_than_chance=True)
        ),
        br.fit_bayes(
            br.CountTable([2] * 3 + [6] * 7, [*range(3), *range(7)], [300, 40, 20, 5, 2, 1, 1, 6, 30, 90])
        ),
        br.fit_bayes(br.CountTable([3] * 4, range(4), [30, 9, 6, 20]), br.Prior(false_positive=(60, 2))),
    ]
    found = [finding for fit in fits for finding in br.check(fit, loss)]
    for kind in ("reader-differences", "fixed-panel", "batch-differences", "drift"):
        rng = np.random.default_rng(1)
        positive = rng.random((400, 1)) < 0.4
        said = np.where(rng.random((400, 4)) < [0.6, 0.95, 0.95, 0.95], positive, ~positive)
        found += exchange_findings(kind, br.Readings.wide(said.astype(int), [1, 2, 3, 4]))
    said = [[1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 0, 0]]
    for readings in (
        br.Readings.wide(said, list("abc"), weight=[30, 20, 20, 30]),
        br.Readings.wide([[1, None], [None, 0], [0, None]], list("ab"), weight=[30, 20, 20]),
        br.Readings.wide([[1, 1], [0, 1], [0, 0]], list("ab"), weight=[30, 20, 20]),
    ):
        found += list(br.check(br.fit_sources(readings, rng=1, sweeps=60), loss))
    return {finding.name: finding for finding in found}


@pytest.mark.slow
def test_many_kinds_are_walked_and_no_advice_speaks_the_language_of_one_door() -> None:
    assert len(walked()) >= 20, sorted(walked())
    for finding in walked().values():
        assert not CODE.search(finding.advice), finding.advice
        assert not CODE.search(finding.sentence.replace("n = ", "").replace("p = ", "")), finding.sentence


@cache
def actions() -> tuple[Action, ...]:
    """What the findings offer to do."""
    return tuple(dict.fromkeys(one.action for one in walked().values() if one.action is not None))


def table() -> dict[str, list[Any]]:
    """A small study with a column for every part."""
    rng = np.random.default_rng(2)
    rows: dict[str, list[Any]] = {name: [] for name in ("patient", "test", "reader", "site", "status")}
    for i in range(60):
        positive = rng.random() < 0.4
        for reader in "abc":
            said = int(positive if rng.random() < 0.9 else not positive)
            one = (f"p{i}", said, reader, "ab"[i % 2], int(positive) if i < 10 else None)
            for name, value in zip(rows, one, strict=True):
                rows[name].append(value)
    return rows


COLUMNS = {"population": "site", "source": "reader", "known": "status"}


def keywords(action: Action) -> dict[str, Any]:
    """The action as keywords of `fit`, read off its words for Python."""
    inside = action.words("python").removeprefix("br.fit(…, ").removesuffix(")")
    inside = inside.replace('"…"', repr(COLUMNS.get(action.value))).replace("(a, b)", "(2, 20)")
    return dict(eval(f"dict({inside})", {"br": br}))  # our own words, as printed


@pytest.mark.slow
def test_the_words_for_python_are_what_fit_takes() -> None:
    for action in actions():
        how = {"individual": "patient", "result": "test", **keywords(action)}
        if action == Action("model", "sources"):
            how["source"] = "reader"
        assert br.fit(br.Table(table()), **how) is not None, action


@pytest.mark.slow
def test_the_words_for_the_command_line_are_what_analyse_takes(tmp_path: Path) -> None:
    rows = table()
    lines = [
        ",".join(rows),
        *(",".join("" if v is None else str(v) for v in row) for row in zip(*rows.values(), strict=True)),
    ]
    path = tmp_path / "study.csv"
    path.write_text("\n".join(lines) + "\n")
    for action in actions():
        words = action.words("command").removeprefix("binreps analyse FILE ").replace("a,b", "2,20").split()
        words = [COLUMNS[action.value] if word == "COLUMN" else word for word in words]
        named = ["--individual", "patient", "--result", "test"]
        by_source = action.id == "merge" or action == Action("model", "sources")
        named += ["--source", "reader"] if by_source else []
        free = by_source or {"--model", "--method"} & set(words) or action.value == "source"
        named += [] if free else ["--model", "common"]
        done = CliRunner().invoke(app, ["analyse", str(path), *named, *words])
        assert done.exit_code == 0, (action, done.output)


@pytest.mark.slow
def test_the_page_has_what_its_words_name() -> None:
    models = {offer["id"] for offer in offered_models()}
    for action in actions():
        assert all(action.words(door) for door in DOORS)
        if action.id == "model":
            assert action.value in models
        if action.id == "column":
            assert action.value in PARTS
