"""What a killed run leaves: files and folders whose names say who made them, removed by the next run."""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import tempfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

_MARK = re.compile(r"\.([0-9a-f]{8})-([0-9]+)-[0-9a-f]{8}\.part$")


def marked(name: str) -> str:
    """A hidden name of our own that tells which process of which machine uses it.

    Examples
    --------
    >>> marked("scores.csv").startswith(".scores.csv.")
    True
    """
    return f".{name}{_mark()}"


def _mark() -> str:
    """The end of a name of our own."""
    return f".{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.part"


def remove_leftovers(folder: Path, name: str) -> None:
    """Remove what ended processes of this machine left in a folder under a marked name."""
    with suppress(OSError):
        for left in folder.glob(f".{_literal(name)}.*.part"):
            if _is_left(left.name):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def new_folder(name: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for as long as it is needed; those of killed runs are removed."""
    _tidy(name)
    return tempfile.TemporaryDirectory(prefix=f".{name}.", suffix=_mark(), ignore_cleanup_errors=True)


@cache
def _tidy(name: str) -> None:
    """Remove the temporary folders of killed runs, once in a process."""
    remove_leftovers(Path(tempfile.gettempdir()), name)


@cache
def _machine() -> str:
    """Eight letters for this machine: a shared folder may hold what others are writing."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _literal(name: str) -> str:
    """A name in which no letter is a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _is_left(name: str) -> bool:
    """Whether the process that made a name has ended on this machine, where the system tells."""
    found = _MARK.search(name)
    if found is None or found[1] != _machine() or os.name == "nt":  # asking would end the process there
        return False
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
