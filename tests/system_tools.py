"""Programs that some tests need: found, or installed where that is possible, or the test is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess

from shared_data import cannot_run


def require(command: str, package: str) -> str:
    """The path of a command; root on Debian installs its package first.

    Where it cannot be had the test is skipped with that reason, and fails under CI.
    """
    found = shutil.which(command)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        for step in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", package]):
            subprocess.run(["apt-get", *step], capture_output=True, check=False, timeout=600)
        found = shutil.which(command)
    if found is None:
        cannot_run(f"this test needs {command} (Debian's package {package}), which is not on this machine")
    return found
