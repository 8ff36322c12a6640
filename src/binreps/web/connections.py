"""Connections: each must say in time what it wants, and no client has so many that others get none."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from binreps.web import limits


class Connection(H11Protocol):
    """A connection that is closed when it asks for nothing, or for half a thing, for too long.

    A client that opens more than its share loses those of its connections that ask for nothing, the oldest
    first.
    """

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._look()
        own = [one for one in self.connections if isinstance(one, Connection) and one._host == self._host]
        if len(own) > limits.OPEN_OF_CLIENT:
            idle = [one for one in own if one._idle and one is not self]
            min(idle, key=lambda one: one._since, default=self).transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next one."""
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _host(self) -> str:
        """Who is at the other end."""
        return self.client[0] if self.client else ""

    @property
    def _idle(self) -> bool:
        """Whether no whole request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        """Close what has asked for nothing since too long; else look again later."""
        if self._idle and self.loop.time() - self._since >= limits.SLOW:
            self.transport.close()
        self._timer: asyncio.TimerHandle = self.loop.call_later(limits.SLOW / 4, self._look)
