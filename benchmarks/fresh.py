"""One posterior in a fresh process, by either side: import, first answer, peak memory.

`python -m benchmarks.fresh ours` prints JSON; `measure` runs it with empty or kept caches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import binreps as br

STEPS = ("import", "compile", "answer")
PROBABILITIES = (0.05, 0.5, 0.95)


def measure(side: str, cache: Path) -> dict[str, float]:
    """Seconds of each step and peak memory in MB of a new process that keeps compiled code in `cache`."""
    flags = {"PYTENSOR_FLAGS": f"base_compiledir={cache}", "NUMBA_CACHE_DIR": str(cache / "numba")}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fresh", side],
        cwd=Path(__file__).parents[1],
        env=os.environ | flags,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _ours() -> dict[str, float]:
    """Our fit with its quantiles."""
    clock = _Clock()
    # the names that are used, as `import binreps` alone loads nothing: else the table below would load
    # NumPy, SciPy and the engine while the clock stands still
    from binreps import CountTable, fit_bayes  # noqa: F401

    clock.step("import")
    counts = _table()
    clock.restart()
    fit_bayes(counts).quantile(PROBABILITIES)
    clock.step("answer")
    return clock.steps


def _nutpie() -> dict[str, float]:
    """The sampler's answer, its model compiled before."""
    clock = _Clock()
    from benchmarks import nutpie_peer

    clock.step("import")
    data = nutpie_peer.columns(_table())
    clock.restart()
    ready = nutpie_peer.compiled(data)
    clock.step("compile")
    nutpie_peer.summary(nutpie_peer.sample(ready, seed=1), PROBABILITIES)
    clock.step("answer")
    return clock.steps


def _stan() -> dict[str, float]:
    """PyStan's answer, its model compiled before."""
    clock = _Clock()
    import stan  # noqa: F401

    clock.step("import")
    from benchmarks import stan_peer

    counts = _table()
    with stan_peer.compiled() as (engine, compilation):
        clock.restart()
        stan_peer.sample(engine, counts, 1, individually=False)
        clock.step("answer")
    return clock.steps | {"compile": compilation}


def _table() -> br.CountTable:
    """The table, imported only once the clock of the imports has stopped."""
    from benchmarks.tables import small_study

    return small_study()


class _Clock:
    """Seconds of steps that follow one another."""

    def __init__(self) -> None:
        self.steps = dict.fromkeys(STEPS, 0.0)
        self.restart()

    def restart(self) -> None:
        """Leave out what happened since the last step."""
        self._start = time.perf_counter()

    def step(self, name: str) -> None:
        """The step that ends now."""
        self.steps[name] = time.perf_counter() - self._start
        self.restart()


if __name__ == "__main__":
    from benchmarks.machine import largest_child, peak_memory

    measured = {"ours": _ours, "nutpie": _nutpie, "stan": _stan}[sys.argv[1]]()
    print(json.dumps(measured | {"memory": peak_memory(), "child": largest_child()}))
