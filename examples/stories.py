"""Draws the pictures of docs/guide/does-it-fit.md: `python examples/stories.py`, or with another folder."""

import sys
from pathlib import Path

import numpy as np

import binreps as br
from binreps.decide.predictive import predictive_counts

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "guide"


def beside(counts: br.CountTable, name: str, model: str = "common") -> None:
    """The counts of a study beside what a model expects of them."""
    fit = br.fit(counts, model=model)
    br.plot.save(br.plot.counts(predictive_counts(fit, rng=1)), folder / f"{name}.svg")


swabs = br.simulate(br.Rates(prevalence=0.3, false_positive=0.05, false_negative=0.2), 400, 5, rng=1).counts
beside(swabs, "fit-well")

rng = np.random.default_rng(2)
ill = rng.random(400) < 0.3
chance = np.where(ill, rng.beta(3.2, 0.8, 400), rng.beta(0.4, 3.6, 400))
pcr = br.CountTable(np.full(400, 6), rng.binomial(6, chance))
beside(pcr, "fit-correlated")

readers = br.Rates(0.3, np.array([0.02, 0.05, 0.08, 0.3]), np.array([0.05, 0.1, 0.15, 0.4]))
slides = br.simulate(readers, 300, 4, rng=3).readings
br.plot.save(br.plot.sources(br.fit(slides)), folder / "fit-readers.svg")

smears = br.simulate(br.Rates(prevalence=0.5, false_positive=0.02, false_negative=0.7), 500, 5, rng=3).counts
beside(smears, "fit-poor")
