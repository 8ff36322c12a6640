"""Who may ask, how much, how slowly: host, origin, token, size; and headers that keep a page to itself.

Work that nobody waits for is ended: when the client leaves, so does its request.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
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
        What everyone must bring: as `Authorization: Bearer …`, or once as `?token=…`. A browser gets a cookie
        in its place, which holds a secret of this server and not the token.
    """

    def __init__(self, app: Any, hosts: Collection[str] = (), token: str | None = None) -> None:
        self.app, self.token = app, token
        self.hosts = {"localhost", *(host.lower() for host in hosts)}
        self._session, self._codes = secrets.token_urlsafe(), set[str]()

    def invite(self) -> str:
        """A code that opens the page once, as `?code=…`: what a list of processes or a history may show."""
        code = secrets.token_urlsafe()
        self._codes.add(code)
        return code

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
            with anyio.fail_after(limits.READING):
                await send(message)

        await _while_there(self._refusal(scope) or self.app, scope, receive, answer)
        _log.info("%s %s %s", scope["method"], scope["path"], state["status"])  # no query, no body

    def _refusal(self, scope: Scope) -> Any:
        """The answer to a request that goes no further."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if not self._is_ours(host):
            return problem("this address is not one that the page is served under", 421)
        elsewhere = headers.get(b"sec-fetch-site") == "cross-site" and scope["method"] != "GET"
        if elsewhere or not _is_from(headers.get(b"origin"), host):
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
        if kind.lower() == "bearer" and _same(given.strip(), self.token or ""):
            return True
        try:
            cookie = SimpleCookie(headers.get(b"cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self._session)

    def _entrance(self, scope: Scope) -> Response:
        """The first visit, with the token or a code in the address, which the cookie then replaces."""
        if scope["method"] == "GET" and scope["path"] == "/" and self._opens(scope["query_string"]):
            response = RedirectResponse("/", 303)
            safe = scope.get("scheme") == "https"
            response.set_cookie(
                COOKIE, self._session, httponly=True, samesite="strict", path="/", secure=safe
            )
            return response
        words = "a token is needed: open /?token=… once, or send the header Authorization: Bearer …"
        return problem(words, 401, {"www-authenticate": "Bearer"})

    def _opens(self, query: bytes) -> bool:
        """Whether an address holds the token, or a code that nobody has used."""
        assert self.token is not None
        asked = parse_qs(query.decode("latin-1"))
        code = asked.get("code", [""])[0]
        if code in self._codes:
            self._codes.remove(code)
            return True
        return _same(asked.get("token", [""])[0], self.token)


def _same(given: str, secret: str) -> bool:
    """Compare in a time that tells nothing."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _is_from(origin: str | None, host: str) -> bool:
    """Whether a request comes from a page of ours, or from no page."""
    try:
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


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


class _Client:
    """Who sent a request: its body as it comes, not too long, not too slowly; and whether they are there."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive, self._most = receive, _most_bytes(scope)
        self._seen, self._waited, self._whole = 0, 0.0, anyio.Event()

    async def body(self) -> MutableMapping[str, Any]:
        """The next part of the body."""
        if self._whole.is_set():
            await anyio.sleep_forever()  # whether the client leaves is seen by `gone`
        start = anyio.current_time()
        try:
            with anyio.fail_after(limits.SLOW + self._seen / limits.PACE - self._waited):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the request came too slowly; send it again") from None
        self._waited += anyio.current_time() - start
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            raise HTTPException(413, _too_large_words(self._most))
        if not message.get("more_body"):
            self._whole.set()
        return message

    async def gone(self) -> None:
        """Return when the client has left."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def _while_there(app: Any, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request, and stop when nobody waits for it any more."""
    client = _Client(scope, receive)

    async def leave() -> None:
        await client.gone()
        await anyio.sleep(limits.GRACE)  # most work ends by itself sooner than a new process starts
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
        try:
            await app(scope, client.body, send)
        except Exception as error:  # answered already; its words may hold data, its place does not
            _log.error("%s at %s", type(error).__name__, _place(error))
        tasks.cancel_scope.cancel()


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
