"""A run that is killed leaves every file as it was, or whole."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import binreps as br

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are needed to kill many runs quickly"),
]

KILLS = {"analyse": 15, "score": 35}
HERE = Path(__file__).parent


def runs(folder: Path, jobs: list[Any]) -> list[tuple[int, float]]:
    """The exit status and the seconds of each job."""
    listed = folder / "jobs.json"
    listed.write_text(json.dumps(jobs))
    done = subprocess.run(
        [sys.executable, HERE / "killed_runs.py", listed],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder that are not hidden."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data of 60 individuals, and a fit."""
    folder = tmp_path_factory.mktemp("source")
    counts = br.simulate(br.Rates(0.3, 0.1, 0.05), 60, 3, rng=1)
    rows = "".join(f"I{i},{n},{s}\n" for i, (n, s) in enumerate(zip(counts.n, counts.s, strict=True)))
    (folder / "data.csv").write_text("id,n,s\n" + rows)
    br.save_fit(br.fit_map(br.count_table(folder / "data.csv", n="n", s="s")), folder / "model.json")
    return folder


def arguments(command: str, source: Path, out: Path) -> list[str]:
    """The words of one run that writes to a folder."""
    data = str(source / "data.csv")
    if command == "analyse":
        return ["analyse", data, "--up-to", "2", "--out", str(out)]
    return ["score", data, "--model", str(source / "model.json"), "--out", str(out / "scores.csv")]


def check_whole(out: Path) -> None:
    """What the killed runs are compared with is itself complete."""
    assert len((out / "scores.csv").read_text().splitlines()) == 61
    if (out / "report.html").exists():
        assert (out / "report.html").read_text().rstrip().endswith("</html>")
        assert br.load_fit(out / "summary.json").counts.individuals == 60
    assert not [file for file in out.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("command", KILLS)
def test_a_killed_run_leaves_no_partial_file(command: str, source: Path, tmp_path: Path) -> None:
    whole, before = tmp_path / "whole", contents(source)
    whole.mkdir()
    ((status, seconds),) = runs(tmp_path, [[arguments(command, source, whole), None]])
    assert status == 0
    expected = contents(whole)
    check_whole(whole)

    draw, jobs, old = random.Random(8), [], {}
    for i in range(KILLS[command]):
        out = tmp_path / f"out{i}"
        out.mkdir()
        old[out] = dict.fromkeys(expected, b"of an earlier run") if i % 2 else {}
        for name, content in old[out].items():
            (out / name).write_bytes(content)
        jobs.append([arguments(command, source, out), seconds * draw.uniform(0.1, 1.1)])
    statuses = [status for status, _ in runs(tmp_path, jobs)]

    assert set(statuses) <= {0, -signal.SIGKILL}
    assert statuses.count(-signal.SIGKILL) >= KILLS[command] // 2
    for out, earlier in old.items():
        for name, content in contents(out).items():
            assert content in (expected[name], earlier.get(name)), f"{name} of {out.name}"
        hidden = [file.name for file in out.iterdir() if file.name.startswith(".")]
        assert all(name.endswith(".part") for name in hidden)
    assert contents(source) == before
