"""Who may ask, and how much: host, origin, token, size; and the headers that keep a page to itself."""

from __future__ import annotations

import ipaddress
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from binreps.web import limits
from binreps.web.answers import problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

COOKIE = "binreps_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, no inline script, no eval; figures style themselves inline."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_log = logging.getLogger("binreps.web")


class Guard:
    """The first to see a request and the last to see its answer.

    Parameters
    ----------
    app : ASGI application
    hosts : collection of str
        Names, besides `localhost` and plain addresses, under which the page may be asked for. A page
        elsewhere whose name is pointed at this machine has another name.
    token : str, optional
        What everyone must bring: as `Authorization: Bearer …`, or once as `?token=…`, which becomes a cookie.
    """

    def __init__(self, app: Any, hosts: Collection[str] = (), token: str | None = None) -> None:
        self.app, self.token = app, token
        self.hosts = {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = {"status": 0}

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                message["headers"] = _with_headers(message.get("headers", []))
            await send(message)

        refused = self._refusal(scope)
        try:
            if refused is not None:
                await refused(scope, receive, answer)
            else:
                await self.app(scope, _counted(scope, receive), answer)
        except Exception as error:  # answered already; its words may hold data, its place does not
            _log.error("%s at %s", type(error).__name__, _place(error))
        _log.info("%s %s %s", scope["method"], scope["path"], state["status"])  # no query, no body

    def _refusal(self, scope: Scope) -> Any:
        """The answer to a request that goes no further."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if not self._is_ours(host):
            return problem("this address is not one that the page is served under", 421)
        origin = headers.get(b"origin")
        elsewhere = headers.get(b"sec-fetch-site") == "cross-site" and scope["method"] != "GET"
        if elsewhere or (origin is not None and urlsplit(origin).netloc.lower() != host.lower()):
            return problem("requests from pages of other sites are refused", 403)
        if self.token is not None and not self._may(headers):
            return self._entrance(scope)
        return _too_large(scope, headers.get(b"content-length"))

    def _is_ours(self, host: str) -> bool:
        """Whether the page is asked for by a name of ours; a plain address cannot be pointed elsewhere."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name.lower().rstrip(".") in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _may(self, headers: dict[bytes, str]) -> bool:
        """Whether the token is there, in the header or the cookie."""
        kind, _, given = headers.get(b"authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._same(given.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._same(cookie.value)

    def _same(self, given: str) -> bool:
        """Compare in a time that tells nothing."""
        assert self.token is not None
        return secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _entrance(self, scope: Scope) -> Response:
        """The first visit, with the token in the address, which the cookie then replaces."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == "/" and self._same(given):
            response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, given, httponly=True, samesite="strict", path="/")
            return response
        words = "a token is needed: open /?token=… once, or send the header Authorization: Bearer …"
        return problem(words, 401, {"www-authenticate": "Bearer"})


def _most_bytes(scope: Scope) -> int:
    """How long a body may be: long for what takes a file."""
    return limits.UPLOAD_BYTES if scope["path"] in FORMS else limits.BODY_BYTES


FORMS = frozenset(f"/api/{name}" for name in ("columns", "counts", "scores", "report", "card", "summary"))
"""The paths that take a file."""


def _too_large(scope: Scope, length: str | None) -> Response | None:
    """The answer to a body that says that it is too long."""
    most = _most_bytes(scope)
    if length is not None and (not length.isdigit() or int(length) > most):
        return problem(_too_large_words(most), 413)
    return None


def _too_large_words(most: int) -> str:
    """The sentence for a body that is too long."""
    return f"the page takes at most {most // 2**20} MB at once; use the library or the command line for more"


def _counted(scope: Scope, receive: Receive) -> Receive:
    """The body, cut off with a sentence where it gets too long."""
    most, seen = _most_bytes(scope), 0

    async def counted() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, _too_large_words(most))
        return message

    return counted


def _with_headers(headers: Any) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with ours where it has no own."""
    have = {name.lower() for name, _ in headers}
    added = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in have]
    return [*headers, *added]


def _place(error: BaseException) -> str:
    """File and line where an error arose."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "nowhere" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
