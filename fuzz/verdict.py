"""Whether one input passes: run it, and say in one line what is wrong, if anything."""

from __future__ import annotations

import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np

from binreps.errors import BinrepsError, BinrepsWarning

Entry = Callable[[Random, Path], None]
"""An entry point: makes an input from random numbers, and gives it to the library; it may use a folder."""

SECONDS = 20.0
"""Of computing for one input; a busy machine is no hang."""

_LONGEST = 1000  # characters of a sentence


class Hang(BaseException):
    """An input took too long; no `except Exception` catches it."""


class WrongError(AssertionError):
    """An answer that is none."""


def judge(entry: Entry, name: str, seed: int) -> str | None:
    """What is wrong with the answer to one input, in a few words; None if nothing is."""
    rng = Random(f"{name} {seed}")  # the same in every process and version
    with tempfile.TemporaryDirectory(prefix="binreps-fuzz-", ignore_cleanup_errors=True) as folder:
        try:
            with _limited(), warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", BinrepsWarning)
                entry(rng, Path(folder))
        except BinrepsError as error:
            return faulty_sentence(str(error))
        except (Exception, Hang) as error:
            return f"{type(error).__name__}: {str(error)[:200]!r} in {_place(error)}"
    return None


@contextmanager
def _limited() -> Iterator[None]:
    """Interrupt what computes for too long."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise Hang(f"no answer after {SECONDS:g} s of computing")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> str:
    """The innermost line of binreps that an error went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "binreps" in frame.filename]
    if not frames:
        return "the fuzzer"
    last = frames[-1]
    return f"{last.filename.rpartition('binreps/')[2]}:{last.lineno} ({last.name})"


def faulty_sentence(text: str) -> str | None:
    """What is wrong with a message to the user; None if it is one sentence."""
    if not text.strip():
        return "an empty message"
    if len(text.splitlines()) > 1:
        return f"a message of several lines: {text[:200]!r}"
    if len(text) > _LONGEST:
        return f"a message of {len(text)} characters: {text[:200]!r}"
    return None


def is_probability(what: str, values: Any, *, nulls: Any = False) -> None:
    """Refuse values that are no probabilities; where `nulls` is true they may be NaN."""
    array, allowed = np.asarray(values, dtype=float), np.asarray(nulls, dtype=bool)
    good = ((array >= 0) & (array <= 1)) | (allowed & np.isnan(array))
    if not good.all():
        raise WrongError(f"{what} = {array[~good].ravel()[:3].tolist()}")


def is_finite(what: str, values: Any) -> None:
    """Refuse values that are not finite."""
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise WrongError(f"{what} = {array.ravel()[:3].tolist()}")
