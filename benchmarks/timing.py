"""Timing on a machine that may be busy: alternated runs, medians with quartiles, processor time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_TURN = 0.05  # seconds: a shorter function is called again within its turn
_MOST_CALLS = 10  # per turn

_START = time.perf_counter()


def say(text: str) -> None:
    """A line of progress, with the seconds since the start."""
    print(f"[{time.perf_counter() - _START:5.0f} s] {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Spread:
    """Seconds of several runs."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle run."""
        return float(np.median(self.seconds))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The runs at one and at three quarters."""
        low, high = np.quantile(self.seconds, [0.25, 0.75])
        return float(low), float(high)

    @property
    def least(self) -> float:
        """The fastest run: what the machine can do when nothing else runs."""
        return min(self.seconds)


@dataclass(frozen=True)
class Runs:
    """What repeated calls of one function took and returned."""

    wall: Spread  # on the clock
    busy: Spread  # on the processor, all threads together: other programs hardly disturb it
    results: tuple[Any, ...]


def alternate(
    functions: dict[str, Callable[[int], Any]], turns: int, *, seconds: float = 60.0, warm_up: bool = True
) -> dict[str, Runs]:
    """Call the functions in turn, a, b, a, b, …, so that whatever slows the machine slows them all.

    Each is called once before the clock starts, unless that would cost too much (`warm_up`). A function gets
    the number of its call, as a seed. No turn begins after the given seconds, but everyone gets three.
    """
    for function in functions.values() if warm_up else ():
        function(0)
    calls: dict[str, list[tuple[float, float, Any]]] = {name: [] for name in functions}
    start = time.perf_counter()
    for turn in range(turns):
        if turn >= 3 and time.perf_counter() - start > seconds:
            break
        for name, function in functions.items():
            _take_turn(function, calls[name])
    return {name: _collected(made) for name, made in calls.items()}


def repeat(
    work: Callable[[Any], Any],
    prepare: Callable[[], Any],
    turns: int,
    *,
    seconds: float,
    warm_up: bool = True,
    least: int = 3,
) -> Runs:
    """Time one function, each call on something newly prepared that the clock does not count.

    No call begins after the given seconds, but there are at least so many.
    """
    made: list[tuple[float, float, Any]] = []
    if warm_up:
        work(prepare())
    start = time.perf_counter()
    while len(made) < turns and (len(made) < least or time.perf_counter() - start < seconds):
        made.append(_timed(work, prepare()))
    return _collected(made)


def _take_turn(function: Callable[[int], Any], made: list[tuple[float, float, Any]]) -> None:
    """Call a function once, or several times if it is short."""
    begin = time.perf_counter()
    for _ in range(_MOST_CALLS):
        made.append(_timed(function, len(made) + 1))
        if time.perf_counter() - begin > _TURN:
            break


def _timed(function: Callable[[Any], Any], argument: Any) -> tuple[float, float, Any]:
    """Seconds on the clock, seconds on the processor, and the result."""
    wall, busy = time.perf_counter(), time.process_time()
    result = function(argument)
    return time.perf_counter() - wall, time.process_time() - busy, result


def _collected(made: Sequence[tuple[float, float, Any]]) -> Runs:
    """The calls of one function, column by column."""
    wall, busy, results = zip(*made, strict=True)
    return Runs(Spread(wall), Spread(busy), results)
