"""The page under the hand and under load: `python -m benchmarks.web`.

- slider to page: 200 moves of a cost slider in Chromium on a table of 30 cells, from the event to the frame
  after the redraw, by the page's own marks;
- load: 32 connections for 30 seconds that fit and decide;
- memory: the server's during 10,000 fits, each of other counts.

The server runs as a process of its own, started as a user starts it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_CELLS = [(n, s) for n in range(3, 8) for s in range(n + 1)][:30]


def cells(shift: int) -> dict[str, list[int]]:
    """A table of 30 cells, another one for every shift."""
    weights = [20 + 7 * ((3 * n + 5 * s) % 11) + (shift * (i + 1)) % 13 for i, (n, s) in enumerate(_CELLS)]
    weights[0] += shift
    return {"n": [n for n, _ in _CELLS], "s": [s for _, s in _CELLS], "weight": weights}


@contextmanager
def serving() -> Iterator[tuple[str, int, int]]:
    """Host, port and process of a server."""
    command = [sys.executable, "-m", "binreps", "web", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        try:
            yield host, int(port), process.pid
        finally:
            process.terminate()


def ask(connection: http.client.HTTPConnection, path: str, content: Any) -> int:
    """The status of one request."""
    connection.request("POST", path, json.dumps(content), {"content-type": "application/json"})
    response = connection.getresponse()
    response.read()
    return response.status


def load(host: str, port: int, connections: int, seconds: float) -> tuple[int, int, list[float]]:
    """Requests answered, errors, and the time of each, with so many connections at once."""
    times: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    def one(number: int) -> None:
        nonlocal errors
        connection = http.client.HTTPConnection(host, port, timeout=120)
        turn = 0
        while time.perf_counter() < end:
            start, turn = time.perf_counter(), turn + 1
            with suppress(OSError):
                fitting = turn % 10 == 0  # the others ask about a fit that is there, as sliders do
                data = {"cells": cells(1000 * number + turn if fitting else number % 4)}
                path = "/api/fit" if fitting else "/api/explain"
                status = ask(connection, path, data if fitting else {**data, "n": 5, "s": 2})
                errors += status != 200
                times.append(time.perf_counter() - start)

    threads = [threading.Thread(target=one, args=[i]) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times), errors, times


def family(process: int) -> list[Path]:
    """The process and those that it started, where Linux describes them."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    return [Path(f"/proc/{one}") for one in [process, *children]]


def processor_seconds(process: int) -> float:
    """Processor time that the server has used: what is left of a measurement on a busy machine."""
    stats = [(one / "stat").read_text(encoding="utf-8").rpartition(")")[2].split() for one in family(process)]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """Megabytes that the server holds."""
    states = [(one / "status").read_text(encoding="utf-8") for one in family(process)]
    return sum(int(text.split("VmRSS:")[1].split()[0]) for text in states) / 1024


def slider(address: str, moves: int) -> list[float]:
    """Milliseconds from each move of a slider to the page that shows it."""
    from playwright.sync_api import expect, sync_playwright

    table = cells(0)
    rows = zip(table["n"], table["s"], table["weight"], strict=True)
    text = "n,s,individuals\n" + "".join(f"{n},{s},{w}\n" for n, s, w in rows)
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=quiet)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.set_input_files("#file", {"name": "counts.csv", "mimeType": "text/csv", "buffer": text.encode()})
        page.click("#confirm")
        expect(page.locator("#triangle button").first).to_be_visible(timeout=60_000)
        page.focus("#inconclusive")
        for i in range(moves):
            page.keyboard.press("ArrowLeft" if i // 20 % 2 else "ArrowRight")
            page.wait_for_timeout(30)
        page.wait_for_timeout(500)
        marks = page.evaluate(
            "() => performance.getEntriesByName('slider to page').map((one) => one.duration)"
        )
        browser.close()
    return [float(mark) for mark in marks]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="the page under the hand and under load")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--moves", type=int, default=200)
    chosen = parser.parse_args()
    with serving() as (host, port, process):
        if chosen.moves:
            times = sorted(slider(f"http://{host}:{port}/", chosen.moves))
            p95 = times[int(0.95 * len(times))]
            middle = statistics.median(times)
            print(f"slider to page: {len(times)} moves, median {middle:.0f} ms, p95 {p95:.0f} ms", flush=True)
        if chosen.seconds:
            before = processor_seconds(process)
            done, errors, took = load(host, port, 32, chosen.seconds)
            p95 = sorted(took)[int(0.95 * len(took))]
            rate, busy = done / chosen.seconds, processor_seconds(process) - before
            each = f"p95 {1e3 * p95:.0f} ms, {1e3 * busy / done:.1f} ms of processor time each"
            print(f"load: {rate:.0f} requests/s over 32 connections, {errors} errors, {each}", flush=True)
        if chosen.fits:
            connection = http.client.HTTPConnection(host, port, timeout=120)
            for i in range(chosen.fits + 200):
                few = {name: values[:9] for name, values in cells(i).items()}  # as many fits, in less time
                assert ask(connection, "/api/fit", {"cells": few, "replicates": 1}) == 200
                if i in (200, chosen.fits // 2):
                    print(f"memory after {i:,} fits: {resident(process):.0f} MB", flush=True)
            print(f"memory after {chosen.fits + 200:,} fits: {resident(process):.0f} MB")


if __name__ == "__main__":
    main()
