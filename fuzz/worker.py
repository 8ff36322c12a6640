"""A process that judges inputs one by one, so that a crash or a hang ends no run."""

from __future__ import annotations

import faulthandler
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection

from fuzz.entries import ENTRIES
from fuzz.verdict import judge

_SILENCE = 120.0  # seconds without a word after which a process is ended


def answers(name: str, seeds: range) -> Iterator[tuple[int, str | None]]:
    """What is wrong with each input, from a process that may crash or hang without ending the run."""
    left = seeds
    while left:
        here, there = multiprocessing.Pipe(duplex=False)
        worker = multiprocessing.get_context("spawn").Process(target=_work, args=(name, left, there))
        worker.start()
        there.close()
        try:
            while left:
                if not here.poll(_SILENCE):
                    yield left[0], f"no word after {_SILENCE:g} s"
                    left = left[1:]
                    break
                yield left[0], here.recv()
                left = left[1:]
        except EOFError:
            worker.join()
            yield left[0], f"the process ended with code {worker.exitcode}"
            left = left[1:]
        finally:
            worker.kill()
            worker.join()


def _work(name: str, seeds: range, out: Connection) -> None:
    """Judge inputs one by one and say what is wrong with each."""
    faulthandler.enable()
    for seed in seeds:
        out.send(judge(ENTRIES[name], name, seed))
