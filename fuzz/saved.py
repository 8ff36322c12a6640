"""Saved fits: damaged JSON."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from binreps.counts import CountTable
from binreps.fits.bayes import fit_bayes
from binreps.fits.point.mode import fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.fits.populations import fit_populations
from binreps.run.front import analyse
from binreps.run.save import fit_to_dict, load_fit
from binreps.show.summary import summary
from fuzz import values
from fuzz.verdict import is_probability


@cache
def contents() -> list[Any]:
    """Saved fits in order."""
    counts = CountTable([3, 3, 3], [0, 1, 3], [6, 2, 4], known=[None, None, 1])
    fits: list[Any] = [fit_bayes(counts), fit_map(counts), fit_average(counts), fit_median(counts)]
    fits.append(fit_populations({"a": counts, 2: CountTable([2], [1])}))
    return [*map(fit_to_dict, fits), summary(analyse(counts))]


def damaged_model(rng: Random) -> bytes:
    """A saved fit with a value or a few bytes changed."""
    content = rng.choice(contents())
    if rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 3))):
            content = values.damaged_json(rng, content)
        return json.dumps(content).encode()
    return values.damaged(rng, json.dumps(content).encode())


def model(rng: Random, folder: Path) -> None:
    """`load_fit` of damaged files."""
    path = folder / "fit.json"
    path.write_bytes(damaged_model(rng))
    fit = load_fit(path)
    if hasattr(fit, "score"):
        is_probability("score", fit.score([1, 3, 3], [0, 1, 3]))
