"""A pen: a process that draws figures while the run goes on.

Drawing takes the better part of a second, most of it to start the engine that draws, and no other thread gets
on meanwhile. So a command that will draw starts a process when it starts itself. It is this very file, run as
a program that reads specifications from a pipe, one a line, and ends with the pipe: also when whoever started
it was killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from binreps.show.grammar import View

_PATIENCE = 60.0  # seconds for a figure: hundreds of times what it takes
_FIRST = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}
"""A figure that nobody sees: the engine is started by it."""


class Pen:
    """Figures drawn by another process; by this one, later, where the other cannot."""

    def __init__(self) -> None:
        own = [sys.executable, "-P", __file__]  # -P: files beside this one are not taken for libraries
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(own, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def draw(self, view: View) -> Callable[[], str]:
        """Begin a figure; what is given back waits for its SVG."""
        from binreps.show.grammar import compact
        from binreps.show.theme import to_svg

        asked = self._thread.submit(self._asked, compact(view))

        def svg() -> str:
            try:
                return asked.result(_PATIENCE)
            except (OSError, ValueError):  # it could not start, ended, or takes too long
                self.close()  # the other figures need not wait
                return to_svg(view)

        return svg

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._thread.shutdown()  # it waited for an answer, and finds the end of the pipe
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not read
                pipe.close()  # type: ignore[union-attr] # both are pipes

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        """Who waits for the process: one, so that figures are asked for one by one."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(max_workers=1)

    def _asked(self, spec: dict[str, Any]) -> str:
        """A specification given to the process, and its answer; ValueError where that is none."""
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        asking.write(json.dumps(spec).encode() + b"\n")
        asking.flush()
        return str(json.loads(answering.readline()))


def new_pen() -> Pen | None:
    """A pen, or None where no other Python can be started."""
    if getattr(sys, "frozen", False) or not sys.executable:  # a bundle would start itself again
        return None
    try:
        return Pen()
    except OSError:
        return None


def main() -> None:
    """Draw what is asked for, until nobody asks any more."""
    import vl_convert

    newest = vl_convert.get_vegalite_versions()[-1]
    vl_convert.vegalite_to_svg(_FIRST, vl_version=newest)
    for line in sys.stdin.buffer:
        print(json.dumps(vl_convert.vegalite_to_svg(json.loads(line), vl_version=newest)), flush=True)


if __name__ == "__main__":
    main()
