"""How often the alarm for pairs of sources is false, and how often it finds a copy.

`python -m benchmarks.pair_trials [studies]` draws panels of eight readers of 200 individuals, without a copy
and with one that says what another says always, or four times in five.
"""

from __future__ import annotations

import sys

import numpy as np

import binreps as br


def panel(seed: int, copied: float) -> br.Readings:
    """What eight readers say; the last copies the one before, now and then."""
    rng = np.random.default_rng(seed)
    positive = rng.random((200, 1)) < rng.uniform(0.2, 0.6)
    p, q = rng.beta(3, 17, 8), rng.beta(3, 17, 8)
    said = np.where(positive, rng.random((200, 8)) >= q, rng.random((200, 8)) < p).astype(int)
    copies = rng.random(200) < copied
    said[copies, 7] = said[copies, 6]
    return br.Readings.wide(said, range(8))


def main() -> None:
    """Print the shares."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for copied in (0.0, 1.0, 0.8):
        found, wrong = 0, 0
        for seed in range(studies):
            fit = br.fit_sources(panel(seed, copied), rng=seed, tol=0.2)
            pairs = {(pair.first, pair.second) for pair in fit.agreeing_pairs()}
            found += (6, 7) in pairs and copied > 0
            wrong += bool(pairs - ({(6, 7)} if copied else set()))
        print(f"copied {copied:.0%}: found in {found} of {studies}, other pairs in {wrong}", flush=True)


if __name__ == "__main__":
    main()
