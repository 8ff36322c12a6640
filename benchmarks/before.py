"""Before and after: the processor time of some tasks by this code and by another revision, side by side.

Run it with `python -m benchmarks.before main` (any revision of this repository; `main` if none is named).
Each task runs in new processes, by turns; the least of several runs counts, as other programs only add to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import binreps as br

HERE = Path(__file__).resolve().parents[1]
TURNS = 3

_TABLES = """
import time
import numpy as np, binreps as br
from binreps.fits.batch import fit_many
from binreps.study.simulate import simulate_counts
def timed(work, calls=1):
    work()
    start = time.process_time()
    for _ in range(calls):
        work()
    print((time.process_time() - start) / calls)
easy = [simulate_counts(br.Rates(0.3, 0.1, 0.15), 50, [3, 4, 5], rng=seed) for seed in range(256)]
hard = [simulate_counts(br.Rates(0.5, 0.3, 0.3), 12, range(1, 7), rng=seed) for seed in range(256)]
study = simulate_counts(br.Rates(0.3, 0.1, 0.15), 200, [3, 4, 5], rng=1)
"""
_ROWS = (
    _TABLES
    + """
import pandas as pd
rng = np.random.default_rng(1)
who = rng.permutation(np.repeat(np.arange(250_000), 4))
positive = rng.random(250_000) < 0.3
columns = {"who": who, "result": (rng.random(who.size) < np.where(positive[who], 0.85, 0.1)).astype(int)}
frame = pd.DataFrame(columns)
def counted():
    return br.count_table(frame, individual="who", result="result")
def scored():
    return br.attach(frame, br.fit_bayes(counted()), br.Loss(), individual="who", result="result")
"""
)
_ANALYSE = """
import contextlib, io, sys, tempfile, time
from importlib.resources import files
from binreps.cli.app import main
sys.argv = ["binreps", "analyse", str(files("binreps.study") / "data" / "screening.csv"), *ARGUMENTS]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print(time.process_time())
"""
TASKS = {
    "fit_map, N = 200": _TABLES + "timed(lambda: br.fit_map(study), 30)",
    "fit_map, 256 tables, N = 50": _TABLES + "timed(lambda: fit_many(easy, method='map', workers=1))",
    "fit_map, 256 tables, N = 12": _TABLES + "timed(lambda: fit_many(hard, method='map', workers=1))",
    "fit_bayes, 256 tables, N = 50": _TABLES + "timed(lambda: fit_many(easy, workers=1))",
    "the same with scores": _TABLES + "timed(lambda: fit_many(easy, workers=1, scores=True))",
    "10⁶ rows on pandas, counts": _ROWS + "timed(counted, 3)",
    "10⁶ rows on pandas, scores": _ROWS + "timed(scored, 3)",
    "10⁶ rows on PyArrow, counts": _ROWS
    + "import pyarrow as pa; frame = pa.table(columns); timed(counted, 3)",
    "binreps --help": _ANALYSE.replace(
        '"analyse", str(files("binreps.study") / "data" / "screening.csv"), *ARGUMENTS', '"--help"'
    ),
    "binreps analyse": _ANALYSE.replace("*ARGUMENTS", ""),
    "binreps analyse --out": _ANALYSE.replace("*ARGUMENTS", '"--out", tempfile.mkdtemp() + "/out"'),
}


def main() -> None:
    """A line per task."""
    revision = sys.argv[1] if len(sys.argv) > 1 else "main"
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=HERE, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        homes = {"before": Path(folder) / "src", "after": HERE / "src"}
        rows = [{"task": task, **compared(code, homes)} for task, code in TASKS.items()]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    print(br.Table(columns, title=f"Milliseconds of processor time, {revision} and now"))


def compared(code: str, homes: dict[str, Path]) -> dict[str, float]:
    """The least time of each, and how many times less it is now."""
    took: dict[str, list[float]] = {name: [] for name in homes}
    for _ in range(TURNS):
        for name, home in homes.items():
            took[name].append(seconds(code, home))
    before, after = (min(times) for times in took.values())
    return {
        "before": round(1000 * before, 1),
        "after": round(1000 * after, 1),
        "times": round(before / after, 2),
    }


def seconds(code: str, home: Path) -> float:
    """What one process says that it took."""
    environment = os.environ | {"PYTHONPATH": str(home), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or every process would compile every module
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
