"""Draws the picture of docs/guide/poor-tests.md: `python examples/smears.py`, or with another path."""

import sys
from pathlib import Path

import binreps as br

counts = br.simulate(br.Rates(prevalence=0.5, false_positive=0.02, false_negative=0.7), 500, 5, rng=3).counts
half, better = br.fit_bayes(counts), br.fit_bayes(counts, br.Prior(better_than_chance=True))

usual = Path(__file__).parents[1] / "docs" / "guide" / "smears.svg"
target = Path(sys.argv[1]) if len(sys.argv) > 1 else usual
br.plot.save(br.plot.rates(better, {"with both error rates below ½": half}), target)
