"""Where the work is done: in processes of their own, which can be stopped, or in one thread of this one.

A process does one job at a time and is watched meanwhile: it is ended when the job takes too long, when it
holds too much memory, when nobody waits for the answer any more, and with the server. Another takes its
place.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException

from binreps.web import limits

Run = Callable[..., Coroutine[Any, Any, Any]]
"""Called with a function and its arguments."""

_TICK = 0.02  # seconds between two looks at a process; in one it can touch some 50 MB
_SPAWN = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang


class Runner:
    """Jobs in at most so many processes, or in a thread of this one if there are none.

    Parameters
    ----------
    processes : int
    """

    def __init__(self, processes: int) -> None:
        self._limiter = anyio.CapacityLimiter(processes or 1)
        self._threads = anyio.CapacityLimiter(processes + 4)  # some may still be ending their process
        self._job: Callable[..., Any] = self._in_process if processes else _in_thread
        self._idle: list[Worker] = []

    async def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of a function, computed elsewhere."""
        try:
            with anyio.fail_after(limits.WAIT):
                await self._limiter.acquire()
        except TimeoutError:
            raise HTTPException(503, "the server is busy with other requests; try again later") from None
        left = threading.Event()
        try:
            job = partial(self._job, left, function, arguments)
            return await to_thread.run_sync(job, abandon_on_cancel=True, limiter=self._threads)
        finally:
            left.set()
            self._limiter.release()

    def close(self) -> None:
        """End the processes that wait; those at work are ended by the one who gave them the work."""
        while self._idle:
            self._idle.pop().end()

    def _in_process(self, left: threading.Event, function: Callable[..., Any], arguments: Any) -> Any:
        """The answer of a process, which waits for the next job if it is in good order."""
        worker = self._idle.pop() if self._idle else Worker()
        try:
            good, answer = worker.do(left, function, arguments)
        except BaseException:
            worker.end()
            raise
        if worker.memory() > limits.IDLE_BYTES:
            worker.end()
        else:
            self._idle.append(worker)
        if not good:
            raise answer
        return answer


def _in_thread(left: threading.Event, function: Callable[..., Any], arguments: Any) -> Any:
    """The answer of a function, in a thread, which nothing can stop."""
    del left
    return function(*arguments)


class Worker:
    """A process that does one job at a time."""

    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=[theirs], daemon=True)
        self._process.start()
        theirs.close()

    def do(self, left: threading.Event, function: Callable[..., Any], arguments: Any) -> tuple[bool, Any]:
        """Whether it went well, and the answer or the exception; refused where it costs too much."""
        end = time.monotonic() + limits.SECONDS
        try:
            self._pipe.send((function, arguments))
            while not self._pipe.poll(_TICK):
                self._check(end, left)
            good, answer = pickle.loads(self._pipe.recv_bytes(limits.ANSWER_BYTES))
        except (EOFError, OSError):
            raise HTTPException(503, _too_much("ended, perhaps for want of memory")) from None
        return good, answer

    def memory(self) -> int:
        """The bytes that the process holds; 0 where the system does not say."""
        with suppress(OSError, IndexError):
            pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        return 0

    def end(self) -> None:
        """End the process now."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._pipe.close()

    def _check(self, end: float, left: threading.Event) -> None:
        """Refuse to wait for what costs too much, or for what nobody waits for."""
        if self.memory() > limits.WORKER_BYTES:
            most = f"{limits.WORKER_BYTES // 2**20} MB"
            raise HTTPException(503, _too_much(f"needed more memory than the page gives it ({most})"))
        if time.monotonic() > end:
            raise HTTPException(503, _too_much(f"took longer than {limits.SECONDS:g} seconds"))
        if left.is_set():
            raise HTTPException(503, "nobody waits for the answer")


def _too_much(why: str) -> str:
    """The sentence for work that was ended."""
    return f"the process that did the work {why}; send less, or use the command line"


# In the process ----------------------------------------------------------------------------------------


def _serve(pipe: Any) -> None:
    """Do one job after the other, until the server ends or memory does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the server, which then ends us
    threading.Thread(target=_end_with_server, daemon=True).start()
    _limit_memory()
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        answer = _answer(function, arguments)
        pipe.send_bytes(answer)


def _answer(function: Callable[..., Any], arguments: Any) -> bytes:
    """Whether it went well and the answer, pickled; a process without memory ends, for another to come."""
    try:
        return pickle.dumps((True, function(*arguments)))
    except MemoryError:
        os._exit(1)
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:  # an exception that cannot travel: its type can
            return pickle.dumps((False, RuntimeError(type(error).__name__)))


def _end_with_server() -> None:
    """End when the server has ended, whatever is being done."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _limit_memory() -> None:
    """Let the system refuse what is far too much at once; less is seen by who looks at the process."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limits.MAPPED_BYTES, limits.MAPPED_BYTES))
