"""Where the work is done: in processes of their own, which can be stopped, or in one thread of this one."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import ModuleType
from typing import Any

import anyio
from anyio import to_process, to_thread
from starlette.exceptions import HTTPException

from binreps.web import limits

# anyio starts a process without the module that others import as __main__ where it finds no file of it, as in
# an installed program on Windows; the first thing that such a process loads is this module
sys.modules.setdefault("__main__", ModuleType("__main__"))

Run = Callable[..., Coroutine[Any, Any, Any]]
"""Called with a function and its arguments."""


def make_runner(processes: int) -> Run:
    """Run in so many processes, or in a thread of this one if there is none."""
    limiter = anyio.CapacityLimiter(processes or 1)
    if processes:
        return partial(_run, partial(to_process.run_sync, cancellable=True, limiter=limiter))
    return partial(_run, partial(to_thread.run_sync, abandon_on_cancel=True, limiter=limiter))


async def _run(start: Callable[..., Awaitable[Any]], function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of a function; a process that takes too long is stopped."""
    try:
        with anyio.fail_after(limits.SECONDS):
            return await start(_call, function, *arguments)
    except TimeoutError:
        words = f"this, or what was asked before it, takes longer than {limits.SECONDS:g} seconds"
        raise HTTPException(503, f"{words}; try again later, or use the command line") from None
    except anyio.BrokenWorkerProcess:
        words = "the process that did the work ended, perhaps for want of memory"
        raise HTTPException(503, f"{words}; try again, or use the command line") from None


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of a function, in another process or thread."""
    return function(*arguments)
