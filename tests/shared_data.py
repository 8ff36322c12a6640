"""Published data and reference numbers, not ours to ship: they lie beside the repository, if at all."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

SHARED = Path(__file__).parents[2] / "shared"


def cannot_run(reason: str) -> NoReturn:
    """Skip the test with a plain reason; where everything must run (CI, beside the data), fail instead."""
    if os.environ.get("CI") == "true" and SHARED.exists():
        pytest.fail(reason)
    pytest.skip(reason)


def shared_file(name: str) -> Path:
    """A file of the shared folder."""
    path = SHARED / name
    if not path.exists():
        cannot_run(f"{name} is not in the folder `shared` beside the repository")
    return path


def shared_columns(name: str) -> dict[str, list[str]]:
    """The columns of a shared CSV file, as text."""
    with shared_file(name).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def periodontal_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n, s and truth of the paper's 50 individuals."""
    columns = shared_columns("data/periodontal.csv")
    n, s, truth = (np.array(columns[name], dtype=int) for name in ("n", "s", "truth"))
    return n, s, truth


def golden_models() -> dict[str, Any]:
    """Reference posteriors of the models beyond the paper."""
    return json.loads(shared_file("golden-models.json").read_text(encoding="utf-8"))


def golden_values() -> dict[str, Any]:
    """Reference posteriors, by name of the case."""
    return json.loads(shared_file("golden.json").read_text(encoding="utf-8"))
