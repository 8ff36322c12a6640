"""`binreps web`: the page, served on this machine."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import threading
import webbrowser
from typing import Annotated, Any

import typer

from binreps.errors import OptionError

_PORT = 8765
_SHORTEST = 16  # characters of a token
_MOST_PROCESSES = 4


def web_command(
    host: Annotated[
        str, typer.Option("--host", help="Address to serve on; other than this machine's own needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to serve on; 0 for any that is free.")] = _PORT,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", envvar="BINREPS_TOKEN", help="What everyone must bring, in the first address."
        ),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A name under which the page is asked for; repeat.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Serve a page where costs and priors move with the mouse. The data stay on this machine.

    Example: `binreps web`
    """
    _check(host, token)
    try:
        import uvicorn

        from binreps.web import limits
        from binreps.web.app import create_app
        from binreps.web.connections import Connection
    except ImportError as error:
        raise OptionError(f"the page needs {error.name} (pip install 'binreps[web]')") from None
    listening = _listen(host, port)
    address = _address(host, listening.getsockname()[1])
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    names = {host, socket.gethostname(), *(name or ())}
    app: Any = create_app(names, token, processes=min(os.cpu_count() or 1, _MOST_PROCESSES))
    options: Any = {
        "access_log": False,
        "log_config": None,
        "limit_concurrency": limits.OPEN,
        "http": Connection,
        "timeout_graceful_shutdown": 3,  # seconds; who asks for more is not waited for
        "server_header": False,
    }
    server = uvicorn.Server(uvicorn.Config(app, proxy_headers=False, **options))
    first = address if token is None else f"{address}?code={app.invite()}"
    print(f"binreps serves {address} (Ctrl-C stops it)", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=[first], daemon=True).start()
    if hasattr(signal, "SIGHUP"):  # the others are the server's own
        signal.signal(signal.SIGHUP, server.handle_exit)
    server.run(sockets=[listening])


def _check(host: str, token: str | None) -> None:
    """Refuse to serve others without a token."""
    if token is not None and (len(token) < _SHORTEST or not token.isascii() or not token.isalnum()):
        raise OptionError(
            f"--token must be at least {_SHORTEST} letters and digits, got {len(token)} characters"
        )
    if token is None and not _is_own(host):
        advice = "give --token too, or leave out --host"
        raise OptionError(f"--host {host} would let other machines in; {advice}")


def _is_own(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    """The socket to serve on."""
    if not 0 <= port <= 65535:
        raise OptionError(f"--port must be from 0 to 65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        advice = "give another --port, or 0 for any"
        raise OptionError(f"{host} cannot be served on port {port} ({error}); {advice}") from None


def _address(host: str, port: int) -> str:
    """The address to open."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
