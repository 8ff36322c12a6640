"""Draws the pictures of docs/guide/when-readers-disagree.md: `python examples/disagreement.py [folder]`."""

import sys
from pathlib import Path

import altair as alt
import numpy as np
from benchmarks.calibration_trials import Design, study
from benchmarks.pair_trials import panel

import binreps as br
from binreps.decide.evaluate import calibration_curve
from binreps.fits.sampled.pairs import all_pairs

usual = Path(__file__).parents[1] / "docs" / "guide"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else usual


def calibration() -> alt.LayerChart:
    """Scores of a crowd that read difficult items against the share that is truly positive."""
    readings, truth = study(Design(10, 40, 1.5), seed=1, people=2000)
    gold = np.random.default_rng([1, 1]).random(truth.size) < 0.05
    known = readings._with(known=np.where(gold, truth, -1).astype(np.int8))
    fits = {
        "taken for independent": br.fit_sources(readings, rng=1, tol=0.2, independent=True),
        "discounted": br.fit_sources(readings, rng=1, tol=0.2),
        "discounted, with 5 % gold": br.fit_sources(known, rng=1, tol=0.2),
    }
    rows = []
    for name, fit in fits.items():
        curve = calibration_curve(fit.score(readings)[~gold], truth[~gold].astype(int), bins=10)
        rows += [{"model": name, "score": row["mean_score"], "share": row["observed"]} for row in curve]
    chart = alt.Chart(alt.Data(values=rows))
    lines = chart.mark_line(point=True).encode(
        x=alt.X("score:Q", title="score", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("share:Q", title="share truly positive", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("model:N", title=None, sort=list(fits)),
    )
    ends = alt.Data(values=[{"score": 0, "share": 0}, {"score": 1, "share": 1}])
    diagonal = alt.Chart(ends).mark_line(color="grey", strokeDash=[4, 4]).encode(x="score:Q", y="share:Q")
    return (diagonal + lines).properties(width=360, height=300)


def copies() -> alt.Chart:
    """How far each pair of eight readers agrees beyond its error rates; one of them copies another."""
    fit = br.fit_sources(panel(1, 1.0), rng=1, tol=0.2)
    pairs = all_pairs(fit.readings, fit.posterior)
    rows = [{"first": p.first + 1, "second": p.second + 1, "correlation": p.correlation} for p in pairs]
    color = alt.Color("correlation:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]))
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(x=alt.X("first:O", title="reader"), y=alt.Y("second:O", title="and reader"), color=color)
        .properties(width=260, height=260)
    )


br.plot.save(calibration(), folder / "disagreement.svg")
br.plot.save(copies(), folder / "copies.svg")
