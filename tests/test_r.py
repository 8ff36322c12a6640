"""The script for R runs and says what Python says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import binreps as br
from binreps.study.datasets import SCREENING_FILE
from screening import screening_counts

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_script_for_r_gives_the_numbers_of_python(tmp_path: Path) -> None:
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed, so examples/from_r.R cannot be run")
    if subprocess.run([program, "-e", "library(jsonlite)"], capture_output=True, check=False).returncode:
        pytest.skip("R has no package jsonlite, which examples/from_r.R needs")
    command = tmp_path / "binreps"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m binreps "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    words = [program, str(ROOT / "examples" / "from_r.R"), str(SCREENING_FILE)]
    how = {"env": {**os.environ, "BINREPS": str(command)}, "timeout": 300, "cwd": tmp_path}
    done = subprocess.run(words, capture_output=True, text=True, check=True, **how)
    fit = br.fit_bayes(screening_counts())
    assert f"{fit.rates.prevalence:.7f}" in done.stdout
    answer = br.explain(fit, br.Loss(), 6, 2, new=True)
    assert f"2 of 6: {answer.decision}, {100 * answer.probability:.1f} %" in done.stdout
