from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from shared_data import golden_values, periodontal_data

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.register_profile("quick", deadline=None, max_examples=25)  # of `make quick`
settings.load_profile("patient")

NEEDED = {"spark_cluster.py": "pyspark", "test_web_browser.py": "axe_playwright_python"}
collect_ignore = [
    name for name, module in NEEDED.items() if not find_spec(module)
]  # `--group quick` has none


@pytest.fixture(scope="session")
def periodontal() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n, s and truth of the paper's 50 individuals."""
    return periodontal_data()


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """Reference posteriors, by name of the case."""
    return golden_values()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples that sample or load ArviZ are slow, and no example can say so itself; long files come first.

    A worker that began with a short one would have a long one to itself at the end.
    """
    for item in items:
        if item.path.as_posix().endswith(("fits/mcmc.py", "run/interop.py")):
            item.add_marker(pytest.mark.slow)
    every = Counter(item.path for item in items)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path] / every[item.path])
