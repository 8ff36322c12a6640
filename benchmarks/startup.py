"""Start-up: the first answer of a new process, against what the peers take before theirs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import posterior
from benchmarks.report import Ratio, Section, Settings, milliseconds
from benchmarks.timing import Spread, say

FIT = (
    "import binreps as br; br.fit_bayes(br.CountTable([4, 4, 4, 4, 4], [0, 1, 2, 3, 4], [50, 18, 6, 9, 17]))"
)
ANALYSE = ["-m", "binreps", "analyse"]
IMPORTS = {
    "SciPy": "scipy.optimize",
    "pandas": "pandas",
    "crowd-kit": "crowdkit.aggregation",
    "StepMix": "stepmix",
    "PyMC": "pymc",
    "PyStan": "stan",
}


def run(settings: Settings) -> list[Section]:
    """The only section: commands of ours, imports of theirs, alternated."""
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "ours: import": ["-c", "import binreps"],
            "ours: import and exact fit": ["-c", FIT],
            "ours: `binreps analyse`, the answer": ANALYSE,
            "ours: `binreps analyse`, with report and charts": [*ANALYSE, "--out", str(Path(folder) / "out")],
            **{
                f"{name}: import": ["-c", f"import {module}"]
                for name, module in IMPORTS.items()
                if find_spec(module.split(".")[0])
            },
        }
        runs = _alternated(commands, 5 if settings.full else 2, warm_up=settings.full)
    rows = [_row(name, *spreads) for name, spreads in runs.items()]
    peer = next(start for start in posterior.cold_starts(settings) if start.caches == "empty")
    rows.append({"process": "nutpie + PyMC: import, compile, first answer", "time": Spread((peer.seconds,))})
    text = (
        "New Python processes, from their start to their end, with files in the disk's cache. What the "
        "compilation of the PyMC model adds is taken from *Posterior: from a cold start* (inside the "
        "process, and at another moment of the run: take its ratio as rough). Milliseconds; the "
        "processor time counts children."
    )
    return [Section("Start-up", text, rows, _ratios(runs, peer.seconds))]


def _ratios(runs: dict[str, tuple[Spread, Spread]], compiled: float) -> dict[str, Ratio]:
    """Peers over ours, on the clock."""
    fit = runs["ours: import and exact fit"][0].median
    analyse = runs["ours: `binreps analyse`, with report and charts"][0].median
    found = {
        "start-up, exact fit: PyMC compiled to ours": Ratio(compiled / fit, slack=0.3),
        "start-up, binreps analyse: PyMC compiled to ours": Ratio(compiled / analyse, slack=0.3),
    }
    for name in ("PyMC", "crowd-kit", "StepMix", "PyStan"):
        if f"{name}: import" in runs:
            imported = runs[f"{name}: import"][0].median
            found[f"start-up, exact fit: {name} imported to ours"] = Ratio(imported / fit, slack=0.5)
            found[f"start-up, binreps analyse: {name} imported to ours"] = Ratio(
                imported / analyse, slack=0.5
            )
    return found


def _row(name: str, wall: Spread, busy: Spread) -> dict[str, Any]:
    """One command."""
    return {"process": name, "time": wall, "processor": milliseconds(busy.median)}


def _alternated(
    commands: dict[str, list[str]], turns: int, *, warm_up: bool
) -> dict[str, tuple[Spread, Spread]]:
    """Seconds on the clock and on the processor of each command; the first run may not count."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(turns + warm_up):
        for name, command in commands.items():
            say(f"start-up: {name}")
            seconds = _process(command)
            if turn or not warm_up:
                took[name].append(seconds)
    return {name: tuple(map(Spread, zip(*made, strict=True))) for name, made in took.items()}


def _process(arguments: list[str]) -> tuple[float, float]:
    """One process: seconds on the clock, and on the processor with its children.

    Modules are compiled once, as everybody's are: ours where they are edited, too.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    after = os.times()
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    return after.elapsed - before.elapsed, busy
