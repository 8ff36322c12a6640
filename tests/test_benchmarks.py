"""Where `make bench` writes, what its page begins with, and how its figures are made."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import __main__ as bench
from benchmarks import extremes, gold, growth, lead, machine, posterior, report, scale

import binreps as br


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


def family(ratios: dict[str, float], rows: list[dict[str, object]] | None = None) -> dict[str, Any]:
    """A family as JSON holds it."""
    named = {name: {"value": value, "claim": None} for name, value in ratios.items()}
    return {
        "machine": {},
        "mode": "full",
        "sections": [{"title": "", "text": "", "rows": rows or [], "ratios": named}],
    }


def test_the_first_lines_say_in_bold_where_a_peer_is_better() -> None:
    names = ("sources, rte: log loss of the best peer to ours", "sources, rte: time of Dawid–Skene to ours")
    text = lead.lead({"sources": family(dict(zip(names, (1.9, 0.11), strict=True)))})
    assert "is 1.9 times ours" in text
    assert "**0.11** times our time" in text
    assert lead.lead({}) == ""


def test_the_picture_shows_every_ratio_that_was_measured(tmp_path: Path) -> None:
    names = list(lead.DOTS.values())[:3]
    kept = {"posterior": family(dict(zip(names, (15.0, 0.5, 3000.0), strict=True)))}
    lead.draw(kept, tmp_path / lead.PICTURE)
    drawn = (tmp_path / lead.PICTURE).read_text(encoding="utf-8")
    assert all(label in drawn for label in ("15 ×", "0.50 ×", "3,000 ×", "the peer is better"))
    lead.draw({}, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_the_published_page_is_what_the_published_figures_give() -> None:
    results, page = bench.PUBLISHED
    kept = json.loads(results.read_text(encoding="utf-8"))
    assert page.read_text(encoding="utf-8") == report.page(kept, lead.lead(kept))
    assert set(kept) <= set(bench.FAMILIES)


def test_every_ratio_of_the_picture_is_published_or_waits_for_its_family() -> None:
    """A ratio that is renamed would leave the picture in silence."""
    kept = json.loads(bench.PUBLISHED[0].read_text(encoding="utf-8"))
    if set(bench.FAMILIES) <= set(kept):
        assert set(lead.DOTS.values()) <= set(lead.all_ratios(kept))


@pytest.mark.parametrize("world", ["model holds", "known by result"])
def test_intervals_with_known_statuses_hold_where_the_model_does(world: str) -> None:
    draw, truth = gold.WORLDS[world]
    rng = np.random.default_rng(1)
    held = []
    for _ in range(20):
        lower, upper = gold.ours(draw(0.05, rng), rng)
        held.append(lower <= truth <= upper)
    assert np.mean(held) > 0.6  # nine of ten are meant; so few once in 10⁴ trials


def test_rogan_and_gladen_correct_the_share_of_positive_results() -> None:
    study = gold.holds(0.2, np.random.default_rng(2))
    lower, upper = gold.rogan_gladen(study, np.random.default_rng(3))
    share = np.arange(gold.REPLICATES + 1) / gold.REPLICATES
    false_positive, sensitivity = (row @ share / row.sum() for row in study.kinds[1:])
    by_hand = (study.s.mean() / gold.REPLICATES - false_positive) / (sensitivity - false_positive)
    assert lower < by_hand < upper


def test_scale_goes_on_in_straight_lines() -> None:
    small, large = scale.SIZES
    found = {(size, "Spark"): {"counting, processor": 4 + 2e-6 * size} for size in (small, large)}
    on_two = scale._line(found, "Spark", "counting", 10**10, scale.WORKERS)
    assert on_two == pytest.approx((4 + 2e-6 * 10**10) / scale.WORKERS)
    on_many = scale._line(found, "Spark", "counting", 10**10, 800)
    assert on_many == pytest.approx(4 / scale.WORKERS + 2e-6 * 10**10 / 800)


def test_memory_of_a_call_is_what_it_held_at_most() -> None:
    _, held = machine.memory_of(lambda: np.ones(10**7).sum())  # 76 MB, let go again
    if held is None:
        pytest.skip("the system does not tell")
    assert 60 < held < 120


@pytest.mark.parametrize(
    ("seconds", "word", "shown"),
    [
        (4.9, np.inf, "4.9"),
        (5.1, np.inf, "5.1*"),
        (5.1, 0.2, "5.1 (said)"),
        (9.0, 5.5, "9.0*"),  # a word that comes too late
        (60.0, np.inf, "> 60*"),
        (60.0, 0.2, "> 60 (said)"),
    ],
)
def test_silence_is_marked_and_a_word_in_time_is_not(seconds: float, word: float, shown: str) -> None:
    assert extremes.Taken(seconds, word).shown == shown


def test_a_refusal_may_not_keep_anyone_waiting_either() -> None:
    assert extremes.Taken(5.1, np.inf, "refused, ").shown == "refused, 5.1*"


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        (([3], [1]), "product"),
        (([2] * 3, range(3), [50_000, 20_000, 30_000]), "lattice"),
        (([1, 1], [0, 1], [70_000, 30_000]), "cells"),
    ],
)
def test_a_row_of_true_errors_says_by_which_rule_and_can_be_written(counts: Any, rule: str) -> None:
    fit = br.fit_bayes(br.CountTable(*counts))
    row = posterior._error_row("one", fit, 1e-9)
    assert row["rule"] == rule
    assert json.loads(json.dumps(row))["case"] == "one"
