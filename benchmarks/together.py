"""Covariates beside sources: effective draws of the slopes, and what the discount costs.

`python -m benchmarks.together` fits 2,000 individuals with three readings each by 30 sources and two
covariates, and prints the effective draws of each slope per second of processor time (bar: 150); then the
processor time of the discount as a share of the whole fit (bar: 10 %), for this study and for plain ones.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import expit

import binreps as br
from binreps.fits.sampled.calibration import learned_discount

SEEDS = range(5)
PLAIN = ((500, 5, 5), (500, 3, 20), (500, 10, 40), (20_000, 5, 200))
"""Individuals, readings of each, and sources of studies without covariates."""


def study(individuals: int, each: int, sources: int, seed: int, *, covariates: bool = False) -> br.Readings:
    """Readings by sources that err in about a seventh; being positive may go with age and sex."""
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(50, 10, individuals), rng.random(individuals) < 0.5
    odds = -0.5 + covariates * (0.08 * (age - 50) + 0.7 * sex)
    positive = rng.random(individuals) < expit(odds)
    p, q = rng.beta(3, 17, sources), rng.beta(3, 17, sources)
    by = rng.permuted(np.tile(np.arange(sources), (individuals, 1)), axis=1)[:, :each]
    yes = np.where(positive[:, None], rng.random(by.shape) >= q[by], rng.random(by.shape) < p[by]).ravel()
    unknown = np.full(individuals, -1, np.int8)
    of = np.repeat(np.arange(individuals), each)
    readings = br.Readings.counted(range(sources), of, by.ravel(), yes.astype(int), 1 - yes, unknown)
    return readings.with_covariates({"age": age, "sex": sex.astype(int)}) if covariates else readings


def timed(readings: br.Readings, seed: int) -> tuple[br.SourcesFit, float, float]:
    """A fit, its processor time, and that of learning the discount once more."""
    start = time.process_time()
    fit = br.fit_sources(readings, rng=seed)
    middle = time.process_time()
    learned_discount(fit.readings, *fit.posterior.at_the_mean(fit.readings))
    return fit, middle - start, time.process_time() - middle


def slopes() -> None:
    """Effective draws per second."""
    for seed in SEEDS:
        fit, seconds, discount = timed(study(2000, 3, 30, seed, covariates=True), seed)
        side = fit.posterior.sampled.side
        assert side is not None
        rates = ", ".join(f"{worth / seconds:,.0f}" for worth in side.effective[1:])
        share = f"discount {discount / seconds:.1%} of {seconds:.2f} s"
        print(f"slopes, 6,000 readings: {rates} effective draws per second; {share}", flush=True)


def discounts() -> None:
    """The share of the discount in plain fits."""
    for shape in PLAIN:
        shares = [discount / seconds for _, seconds, discount in (timed(study(*shape, s), s) for s in SEEDS)]
        name = "{:,} individuals, {} of {} sources each".format(*shape)
        print(f"discount, {name}: {np.median(shares):.1%} of the fit, at most {max(shares):.1%}", flush=True)


if __name__ == "__main__":
    slopes()
    discounts()
