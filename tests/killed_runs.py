"""Run the program many times in forks of one warm process, each killed after its delay; used by test_kill.

    python killed_runs.py JOBS.json

JOBS.json holds a list of [arguments, delay in seconds or null]; the statuses are printed as JSON, with the
seconds that each run took.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import altair  # noqa: F401 - imported before the forks, so that each starts at once
import duckdb  # noqa: F401
import narwhals  # noqa: F401
import pyarrow.dataset  # noqa: F401
import scipy.optimize
import scipy.stats  # noqa: F401

from binreps.cli.app import main


def run(arguments: list[str], delay: float | None) -> tuple[int, float]:
    """The exit status of one run, killed after the delay, and how long it took."""
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - the process ends with it
        try:
            main(arguments)
        except SystemExit as end:
            os._exit(int(end.code or 0))
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)  # a run that has ended waits for waitpid: the signal does nothing
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status), time.perf_counter() - start


if __name__ == "__main__":
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([run(*job) for job in jobs]))
