"""Where `make bench` writes: what is published comes from a full run only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as bench
from benchmarks import growth


@pytest.mark.parametrize("full", [False, True])
def test_only_a_full_run_writes_the_published_figures(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published, quick = ((tmp_path / kind / "a.json", tmp_path / kind / "a.md") for kind in ("full", "quick"))
    monkeypatch.setattr(bench, "PUBLISHED", published)
    monkeypatch.setattr(bench, "QUICK", quick)
    monkeypatch.setattr(growth, "run", lambda _: [])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "growth", *["--full"] * full])
    assert bench.main() == 0
    assert all(path.exists() is full for path in published)
    assert all(path.exists() is not full for path in quick)
    assert "# Benchmarks" in capsys.readouterr().out


def test_git_ignores_what_a_quick_run_writes() -> None:
    root = Path(bench.__file__).parents[1]
    ignored = (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {path.relative_to(root).parts[0] + "/" for path in bench.QUICK} <= set(ignored)
