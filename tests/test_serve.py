"""The server as it is started: connections that say nothing, clients that leave, processes that end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from starlette.exceptions import HTTPException

from binreps.web import limits, work
from binreps.web.app import create_app
from binreps.web.connections import Connection
from binreps.web.runner import Runner

pytestmark = pytest.mark.slow
CELLS = {"n": [4] * 5, "s": list(range(5)), "weight": [50, 18, 6, 9, 17]}


def _who() -> int:
    return os.getpid()


def _sleep(seconds: float, before: Path, after: Path) -> None:
    before.touch()
    time.sleep(seconds)
    after.touch()


def _fill() -> int:
    return len(bytearray(b"x") * (2 * limits.WORKER_BYTES))


def _refuse() -> None:
    raise MemoryError


@pytest.fixture
def port(monkeypatch: Any) -> Iterator[int]:
    """A server in this process, which waits for nobody for long."""
    monkeypatch.setattr(limits, "SLOW", 1.0)
    monkeypatch.setattr(limits, "OPEN_OF_CLIENT", 20)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(), http=Connection, log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(30)


def status(port: int, path: str = "/page/style.css") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    found = connection.getresponse().status
    connection.close()
    return found


def is_closed(held: socket.socket) -> bool:
    """Whether the other end has closed; waited for, a while."""
    held.settimeout(10)
    try:
        while held.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"GET /page/style.css HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
        b"POST /api/fit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
)
def test_who_sends_half_a_request_is_not_waited_for(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as held:
        held.sendall(sent)
        assert is_closed(held)


def test_connections_that_say_nothing_keep_nobody_out(port: int) -> None:
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    assert status(port) == 200
    for one in held:
        one.close()


def test_an_origin_that_is_no_address_is_refused(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for origin in ("http://[", "http://]", "http://elsewhere", "//"):
        connection.request("GET", "/", headers={"Origin": origin})
        response = connection.getresponse()
        assert response.status == 403
        assert "refused" in json.loads(response.read())["error"]
    connection.close()


def test_work_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"

    async def leave() -> None:
        run = Runner(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, _sleep, 5, before, after)
            while not before.exists():
                await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()
        assert await run(_who) > 0
        run.close()

    anyio.run(leave)
    assert before.exists()
    assert not after.exists()


@pytest.mark.parametrize("function", [_fill, _refuse])
def test_a_process_without_memory_is_replaced(function: Any) -> None:
    async def ask() -> tuple[int, int]:
        run = Runner(1)
        first = await run(_who)
        with pytest.raises(HTTPException, match="memory"):
            await run(function)
        second = await run(_who)
        run.close()
        return first, second

    first, second = anyio.run(ask)
    assert first != second


def test_a_client_that_leaves_takes_its_request_along(port: int, monkeypatch: Any) -> None:
    asked, cancelled = threading.Event(), threading.Event()
    run = Runner.__call__

    async def watched(self: Runner, function: Any, *arguments: Any) -> Any:
        asked.set()
        try:
            return await run(self, function, *arguments)
        except anyio.get_cancelled_exc_class():
            cancelled.set()
            raise

    monkeypatch.setattr(Runner, "__call__", watched)
    monkeypatch.setattr(work, "fit", lambda _: cancelled.wait(30))
    monkeypatch.setattr(limits, "GRACE", 0.1)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/api/fit", json.dumps({"cells": CELLS}), {"content-type": "application/json"})
    assert asked.wait(20)
    connection.close()
    assert cancelled.wait(10)


def children(process: int) -> list[int]:
    """The processes that any thread of a process has started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def is_gone(process: int) -> bool:
    """Whether a process has ended, waited for, a while."""
    for _ in range(200):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_the_processes_end_with_the_server(name: str) -> None:
    command = [sys.executable, "-m", "binreps", "web", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[2]
        port = int(address.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        asked = json.dumps({"prevalence_width": 0.001})
        connection.request("POST", "/api/plan", asked, {"content-type": "application/json"})
        for _ in range(100):
            time.sleep(0.1)
            if started := children(server.pid):
                break
        server.send_signal(getattr(signal, name))
        server.wait(timeout=30)
        connection.close()
    finally:
        server.kill()
        server.communicate()
    assert started
    assert all(map(is_gone, started))
