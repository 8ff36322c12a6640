"""What the figures were measured on."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def describe(packages: Sequence[str]) -> dict[str, str]:
    """Processor, cores, load, system, Python and the versions of some packages."""
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load at the start": ", ".join(f"{load:.1f}" for load in os.getloadavg()) + " (1, 5, 15 minutes)",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    return found | {package: _version(package) for package in packages}


def peak_memory() -> float:
    """The most memory that this process has held, in MB.

    Not `ru_maxrss` where it can be helped: Linux lets a child inherit its parent's.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return _peak(status)
    import resource

    return _most_held(resource.RUSAGE_SELF)


def memory_of(work: Callable[[], Any]) -> tuple[Any, float | None]:
    """What a call returns, and the MB it took at most beyond what this process held before; Linux only."""
    forget, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not forget.exists():
        return work(), None
    gc.collect()
    with suppress(OSError, AttributeError):  # what earlier calls let go goes back to the system
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    forget.write_text("5")  # the peak is what is held now
    before = _peak(status)
    found = work()
    return found, _peak(status) - before


def peak_memory_of(*words: str) -> float:
    """The most memory, in MB together, of the processes that run now with all these words in their command.

    Zero where the system does not tell.
    """
    return sum(_peak(folder / "status") for folder in _running(words))


def busy_seconds_of(*words: str) -> float:
    """Seconds on the processor of this process, those it has started, and those with all these words."""
    ours = {str(os.getpid())}
    own = [folder for folder in _running(()) if ours & {folder.name, _parent(folder)}]
    return sum(_busy(folder) for folder in {*own, *_running(words)})


def _running(words: Sequence[str]) -> list[Path]:
    """What the system tells of processes with all these words in their command."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that ended meanwhile
            command = (folder / "cmdline").read_text(errors="replace")
            if command and all(word in command for word in words):
                found.append(folder)
    return found


def _stat(folder: Path) -> list[str]:
    """What follows the name of a process in its line of figures."""
    try:
        return (folder / "stat").read_text(errors="replace").rsplit(") ", 1)[1].split()
    except OSError:
        return ["0"] * 20


def _parent(folder: Path) -> str:
    """Who started a process."""
    return _stat(folder)[1]


def _busy(folder: Path) -> float:
    """Seconds on the processor."""
    return sum(map(int, _stat(folder)[11:13])) / os.sysconf("SC_CLK_TCK")


def _peak(status: Path) -> float:
    """The most memory of one process in MB, from what Linux says of it."""
    try:
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):  # it ended meanwhile
        return 0.0
    return int(line.split()[1]) / 1024


def largest_child() -> float | None:
    """The most memory that a process started by this one has held, in MB; none if there was none."""
    import resource

    return _most_held(resource.RUSAGE_CHILDREN) or None


def _most_held(whose: int) -> float:
    """What the system remembers of it."""
    import resource

    unit = 1024**2 if platform.system() == "Darwin" else 1024
    return resource.getrusage(whose).ru_maxrss / unit


def _processor() -> str:
    """The model of the processor, as the system names it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    """The installed version."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
