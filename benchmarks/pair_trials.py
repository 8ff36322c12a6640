"""How often the alarm for pairs of sources is false, how often it finds a copy, and whom it names.

`python -m benchmarks.pair_trials [studies]` draws panels of good, mediocre and few readers of 200 people,
without a copy and with one that says what another says always, or four times in five. Of pairs that are
named it says how many are the wrong one, and how often the right one is named as one of two that the readings
do not tell apart.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

import binreps as br


class Kind(NamedTuple):
    """Readers of a kind: how many, and the shapes of their error rates."""

    readers: int
    shapes: tuple[int, int]


KINDS = {
    "8 readers who err in .15": Kind(8, (3, 17)),
    "8 readers who err in .3": Kind(8, (6, 14)),
    "5 readers who err in .15": Kind(5, (3, 17)),
    "4 readers who err in .15": Kind(4, (3, 17)),
}


def panel(seed: int, copied: float, kind: Kind) -> br.Readings:
    """What readers say; the last copies the one before, now and then."""
    rng = np.random.default_rng(seed)
    size = (200, kind.readers)
    positive = rng.random((200, 1)) < rng.uniform(0.2, 0.6)
    p, q = rng.beta(*kind.shapes, kind.readers), rng.beta(*kind.shapes, kind.readers)
    said = np.where(positive, rng.random(size) >= q, rng.random(size) < p).astype(int)
    copies = rng.random(200) < copied
    said[copies, -1] = said[copies, -2]
    return br.Readings.wide(said, range(kind.readers))


def main() -> None:
    """Print the numbers."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for name, kind in KINDS.items():
        right = (kind.readers - 2, kind.readers - 1)
        for copied in (0.0, 1.0, 0.8):
            named = [_named(panel(seed, copied, kind), seed) for seed in range(studies)]
            if not copied:
                print(f"{name}: alarms without a copy in {sum(map(bool, named))} of {studies}", flush=True)
                continue
            found = sum(any(pair[0] == right for pair in pairs) for pairs in named)
            either = sum(any(right in pair[1:] for pair in pairs) for pairs in named)
            wrong = sum(any(right not in pair for pair in pairs) for pairs in named)
            how = f"{found} named it, {either} as the second of two, {wrong} named others only"
            print(f"{name}, one copied in {copied:.0%}: {how}", flush=True)


def _named(readings: br.Readings, seed: int) -> list[list[tuple[int, int]]]:
    """The pairs that are named, each with those that might be meant in its place."""
    pairs = br.fit_sources(readings, rng=seed, tol=0.2).agreeing_pairs()
    return [[pair.members, *pair.rivals] for pair in pairs]


if __name__ == "__main__":
    main()
