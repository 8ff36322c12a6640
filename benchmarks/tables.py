"""The count tables that are measured, and the golden cases that lie beside the repository, if at all."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import binreps as br
from binreps.study.simulate import simulate_counts

_GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden.json"
_RATES = br.Rates(0.3, 0.1, 0.15)


@cache
def golden_cases() -> dict[str, dict[str, Any]]:
    """Reference posteriors by name; empty without the file. Some hold published data that are not ours."""
    if not _GOLDEN.exists():
        return {}
    cases = json.loads(_GOLDEN.read_text(encoding="utf-8"))
    return {name: case for name, case in cases.items() if not name.startswith("_")}


def golden_counts(case: dict[str, Any]) -> br.CountTable:
    """The table of a golden case."""
    return br.CountTable(*np.transpose(case["table_n_s_w"]))


def golden_prior(case: dict[str, Any]) -> br.Prior:
    """The prior of a golden case."""
    shapes = case["prior"]
    return br.Prior(*((shapes[f"a_{rate}"], shapes[f"b_{rate}"]) for rate in ("T", "FP", "FN")))


def small_study() -> br.CountTable:
    """50 individuals in about 20 cells, n = 1–6: the published study if it is here, else one like it."""
    if "periodontal_default" in golden_cases():
        return golden_counts(golden_cases()["periodontal_default"])
    return simulate_counts(br.Rates(0.6, 0.15, 0.3), 50, range(1, 7), rng=1)


def growing_study(individuals: int) -> br.CountTable:
    """The same study with more and more individuals, n = 3–5."""
    return growing_study_of(individuals, 1)


def growing_study_of(individuals: int, seed: int) -> br.CountTable:
    """One of many such studies."""
    return simulate_counts(_RATES, individuals, [3, 4, 5], rng=seed)


def many_cells(individuals: int = 20_000, most: int = 80) -> br.CountTable:
    """About 2,000 distinct cells, or most² / 2 of them if there are individuals enough."""
    return simulate_counts(br.Rates(0.4, 0.2, 0.25), individuals, range(1, most + 1), rng=1)


def ridge() -> br.CountTable:
    """A million individuals with two replicates each: the data cannot tell the three rates apart."""
    return simulate_counts(_RATES, 10**6, 2, rng=1)


def two_modes(weight: int) -> br.CountTable:
    """Individuals in three equal groups: the middle one joins either end, and both are equally likely."""
    return br.CountTable([6, 6, 6], [0, 3, 6], weight=[weight] * 3)


def is_symmetric(counts: br.CountTable) -> bool:
    """Whether a table looks the same with positive and negative exchanged: the mean prevalence is then ½."""
    return counts == br.CountTable(counts.n, counts.n - counts.s, counts.weight)


def lattice(cells: int = 30) -> tuple[list[int], list[int]]:
    """The first cells (n, s), n = 1, 2 and so on."""
    pairs = [(n, s) for n in range(1, cells) for s in range(n + 1)][:cells]
    return [n for n, _ in pairs], [s for _, s in pairs]
