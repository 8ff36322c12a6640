"""Progress on the terminal, on the error stream, and only where someone watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} …"):
        yield


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], object]]:
    """A progress bar, as a callback that takes what is done and what there is to do."""
    from rich.progress import Progress  # a spinner needs none

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
