"""Data that are absent skip a test, and fail it where everything must run."""

from __future__ import annotations

import pytest

from shared_data import shared_file


def test_absent_data_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^nothing.csv is not in the folder `shared`"):
        shared_file("nothing.csv")


def test_absent_data_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"^nothing.csv is not in the folder `shared`"):
        shared_file("nothing.csv")
