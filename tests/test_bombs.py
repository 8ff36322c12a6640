"""A small file that unpacks to much ends in a sentence, not in the end of the machine's memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from binreps.web import limits
from bombs import BOMBS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/statm").exists(), reason="the system does not say who holds what"
    ),
]
MOST = 10**9  # bytes of all processes of the server together


class Watch:
    """The memory of a process and all that it started, looked at 25 times a second."""

    def __init__(self, process: int) -> None:
        self.peak, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self._look, args=[process], daemon=True)
        self.thread.start()

    def _look(self, process: int) -> None:
        while not self.ended.wait(0.04):
            self.peak = max(self.peak, sum(map(memory, family(process))))


def memory(process: int) -> int:
    """The bytes that a process holds."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def family(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """The address and the process of a server."""
    command = [sys.executable, "-m", "binreps", "web", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[2], process.pid
        finally:
            process.terminate()
            process.wait(timeout=30)


def ask(client: httpx.Client, name: str, content: bytes) -> list[Any]:
    """The statuses of all that the page would ask about a file, and the last sentence."""
    described = client.post("/api/columns", files={"file": (name, content)})
    answers = [described]
    if described.status_code == 200 and described.json()["guess"] is not None:
        columns = described.json()["guess"]["columns"]
        asked = {"upload": described.json()["id"], "request": json.dumps({"columns": columns})}
        answers += [client.post(f"/api/{path}", data=asked) for path in ("counts", "scores")]
    return answers


def test_no_small_upload_takes_the_memory_or_the_time_of_the_server() -> None:
    with (
        serving() as (address, process),
        httpx.Client(base_url=address, timeout=limits.SECONDS + 30) as client,
    ):
        for what, (name, make) in BOMBS.items():
            content = make()
            assert len(content) <= 10 * 2**20, what
            watch, start = Watch(process), time.monotonic()
            answers = ask(client, name, content)
            seconds = time.monotonic() - start
            watch.ended.set()
            watch.thread.join()
            if os.environ.get("SHOW"):
                statuses = [answer.status_code for answer in answers]
                print(f"{watch.peak // 2**20:5} MB {seconds:5.1f} s {statuses} {what}", flush=True)
            assert watch.peak < MOST, what
            for answer in answers:
                assert answer.status_code in (200, 422, 503), (what, answer.text)
