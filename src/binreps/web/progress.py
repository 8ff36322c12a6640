"""Work that says how far it is: an answer of several lines of JSON, the last of which holds the result.

The work runs in a process of its own, so it writes how far it is to a small file, which is read now and then.
Who leaves before the end stops it, as with any request (guard.py).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import Response

from binreps.errors import BinrepsError
from binreps.tables.leftovers import new_folder
from binreps.web.answers import Json
from binreps.web.runner import Run

LINES = "application/x-ndjson"
_EVERY = 0.2  # seconds

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Teller:
    """What work calls with how much is done; keeps it in a file, not too often."""

    def __init__(self, place: Path) -> None:
        self.place, self.last = place, 0.0

    def __call__(self, done: int, total: int) -> None:
        """So many of so many."""
        if (now := time.monotonic()) - self.last >= _EVERY:
            self.place.write_text(f"{done} {total}", encoding="ascii")
            self.last = now

    @staticmethod
    def read(place: Path) -> dict[str, int] | None:
        """How far it is; None if nothing was said, or is just being written."""
        try:
            done, total = map(int, place.read_text(encoding="ascii").split())
        except (OSError, ValueError):
            return None
        return {"done": done, "total": total}


class Followed(Response):
    """The answer of `function(*arguments, place)`, with lines before it that tell how far it is."""

    media_type = LINES

    def __init__(self, run: Run, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.work = (run, function, arguments)

    async def __call__(self, _: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        with new_folder("binreps-web") as folder:
            place = Path(folder, "progress")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_tell, place, send)
                await _line(send, await self._answer(place))
                tasks.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer(self, place: Path) -> dict[str, Any]:
        """The result, or the sentence why there is none."""
        run, function, arguments = self.work
        try:
            return {"answer": await run(function, *arguments, place)}
        except BinrepsError as error:
            return {"error": str(error)}
        except HTTPException as error:
            return {"error": str(error.detail)}


async def _tell(place: Path, send: Send) -> None:
    """How far it is, whenever that has changed."""
    last = None
    while True:
        await anyio.sleep(_EVERY)
        if (now := Teller.read(place)) is not None and now != last:
            await _line(send, now)
            last = now


async def _line(send: Send, content: dict[str, Any]) -> None:
    """One line."""
    await send({"type": "http.response.body", "body": bytes(Json(content).body) + b"\n", "more_body": True})
