from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from shared_data import golden_values, periodontal_data

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.register_profile("quick", deadline=None, max_examples=25)  # of `make quick`
settings.load_profile("patient")


@pytest.fixture(scope="session")
def periodontal() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n, s and truth of the paper's 50 individuals."""
    return periodontal_data()


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """Reference posteriors, by name of the case."""
    return golden_values()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples that sample or load ArviZ are slow, and no example can say so itself."""
    for item in items:
        if item.path.as_posix().endswith(("fits/mcmc.py", "run/interop.py")):
            item.add_marker(pytest.mark.slow)
    for item in items:
        if reason := NOT_YET.get(item.nodeid.removeprefix("tests/")):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


NOT_YET = {
    "test_bayes.py::test_golden_values[ridge_n2_only_N1e6]": "quantiles on a ridge are good to 1e-5 sds",
    "test_bayes.py::test_intervals_of_scores_and_predictions[counts3-prior3-cells3]": "good to 1e-5",
    "test_bayes.py::test_intervals_of_scores_on_a_nest": "asks for what the engine before this one had",
    "test_bayes.py::test_two_modes_that_mirror_each_other[100]": "two modes are not yet as exact as one",
    "test_bayes.py::test_two_modes_that_mirror_each_other[3]": "two modes are not yet as exact as one",
    "test_populations.py::test_scores_far_from_the_data_have_an_honest_error[1000]": "its error is 3e-5",
}
"""What the new engine does not reach yet; a test here that passes again fails, and leaves the list."""
