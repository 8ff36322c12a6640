"""(e) The figures of the theory: δ(k, a), the risk lines, and the biases with the interval J."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

import binreps as br
from paper.output import COLOURS, Row, chart, save_chart, write_table
from paper.settings import Comparison, Progress, Settings, found

P, Q, REPLICATES = 0.1, 0.2, (3, 4, 5)


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """Three figures from closed forms."""
    rows = delta_rows()
    write_table(settings, "delta", rows)
    save_chart(settings, "delta", delta_chart(rows))
    save_chart(settings, "risk-lines", alt.hconcat(risk_lines(0.2), risk_lines(0.45), risk_lines(0.6)))
    save_chart(settings, "bias-theory", bias_chart())
    progress(1, 1)
    even = float(
        np.max(
            np.abs(
                [
                    br.theory.median_mean(2 * m, 0.3) - br.theory.median_mean(2 * m - 1, 0.3)
                    for m in range(1, 50)
                ]
            )
        )
    )
    low, high = br.theory.median_more_biased(list(REPLICATES), P, Q)
    return [
        found(
            "(e) δ(2m, a) − δ(2m−1, a), largest for m < 50 at a = .3",
            f"{even:.0e}",
            "equal: an even replicate adds nothing",
        ),
        found(f"(e) J for n = 3, 4, 5, p = {P}, q = {Q}", f"({low:.4f}, {high:.4f})", "closed form"),
    ]


def delta_rows() -> list[Row]:
    """δ(k, a) for odd k; an even k has the value of k − 1."""
    grid = np.linspace(0, 1, 101)
    return [
        {"k": k, "a": float(a), "delta": float(br.theory.median_mean(k, a))}
        for k in (1, 3, 5, 9, 21, 101)
        for a in grid
    ]


def delta_chart(rows: list[Row]) -> Any:
    """The error rate of a majority against that of one replicate."""
    return (
        chart(rows, width=380, height=320, title="mean of the median score of k replicates")
        .mark_line()
        .encode(
            x=alt.X("a:Q", title="chance a that one replicate is positive"),
            y=alt.Y("delta:Q", title="δ(k, a)"),
            color=alt.Color("k:O", title="k", scale=alt.Scale(scheme="viridis")),
        )
    )


def risk_lines(a: float) -> Any:
    """Expected loss ℓ_a of each answer against ϑ = P(T = 1), and the best rule's thresholds."""
    loss, grid = br.Loss(inconclusive=a), np.linspace(0, 1, 101)
    words = list(br.decision_words([0, 0.5, 1]))
    rows = [
        {"theta": float(x), "risk": float(risk), "answer": word}
        for x in grid
        for word, risk in zip(words, loss.risks(x), strict=True)
    ]
    cuts = [{"theta": cut} for cut in sorted(set(loss.thresholds))]
    scale = alt.Scale(domain=words, range=["#0072B2", "#999999", "#D55E00"])
    lines = (
        chart(rows, width=210, height=210)
        .mark_line()
        .encode(
            x=alt.X("theta:Q", title="ϑ = P(T = 1)"),
            y=alt.Y("risk:Q", title="expected loss"),
            color=alt.Color("answer:N", title="answer", sort=words, scale=scale),
        )
    )
    rule = chart(cuts).mark_rule(strokeDash=[3, 3], color="#555555").encode(x="theta:Q")
    never = "" if loss.allows_inconclusive else ": never inconclusive"
    return alt.layer(rule, lines).properties(title=f"a = {a}{never}")


def bias_chart() -> alt.TopLevelMixin:
    """|bias| of the average and the median against θ, with J shaded."""
    grid = np.linspace(0, 1, 201)
    rates = br.Rates(grid, P, Q)
    rows = [
        {"theta": float(x), "bias": float(abs(y)), "score": score}
        for score in br.theory.SCORES
        for x, y in zip(
            grid, br.theory.prevalence_error(list(REPLICATES), rates, score=score).bias, strict=True
        )
    ]
    low, high = br.theory.median_more_biased(list(REPLICATES), P, Q)
    scale = alt.Scale(domain=list(br.theory.SCORES), range=[COLOURS[score] for score in br.theory.SCORES])
    lines = (
        chart(rows, width=480, height=280)
        .mark_line()
        .encode(
            x=alt.X("theta:Q", title="prevalence θ"),
            y=alt.Y("bias:Q", title="|bias|"),
            color=alt.Color("score:N", title="score", scale=scale),
        )
    )
    shade = chart([{"low": low, "high": high}]).mark_rect(color=COLOURS["median"], opacity=0.15)
    title = f"p = {P}, q = {Q}, n = 3, 4, 5; shaded: J, where the median is more biased"
    return alt.layer(shade.encode(x="low:Q", x2="high:Q"), lines).properties(title=title)
