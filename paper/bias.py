"""(a) Bias of the prevalence estimates against the prevalence, with the lines that theory gives."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

import binreps as br
from paper.methods import FITS, fit_all
from paper.output import Row, chart, colour, save_chart, write_table
from paper.settings import Comparison, Progress, Settings, found, part

P, Q, INDIVIDUALS = 0.1, 0.05, 200
DESIGNS: dict[str, Sequence[int]] = {"2 to 6 replicates": range(2, 7), "2 replicates": [2]}
"""The paper's design, and the one in which the data do not identify the rates."""


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """Simulate, fit, draw, and state what was found."""
    rng, rows = settings.rng(1), []
    for i, (design, replicates) in enumerate(DESIGNS.items()):
        thetas = prevalences(settings)[:: i + 1]  # half as many where nothing can be learnt
        rows += study(design, replicates, thetas, settings, rng, part(progress, i, 2))
    write_table(settings, "bias", rows)
    save_chart(settings, "bias", bias_chart([row for row in rows if row["design"] == "2 to 6 replicates"]))
    save_chart(settings, "bias-two", bias_chart([row for row in rows if row["design"] == "2 replicates"]))
    save_chart(settings, "coverage", coverage_chart(rows))
    return conclusions(rows)


def prevalences(settings: Settings) -> list[float]:
    """The grid of θ."""
    return [0.05, 0.2, 0.5] if settings.quick else [0.01, *np.arange(0.02, 0.501, 0.02).round(2).tolist()]


def study(
    design: str,
    replicates: Sequence[int],
    thetas: list[float],
    settings: Settings,
    rng: np.random.Generator,
    progress: Progress,
) -> list[Row]:
    """One row per prevalence and method: bias, its Monte Carlo error, and what theory says."""
    each = settings.datasets(300)
    tables = [
        br.simulate(br.Rates(theta, P, Q), INDIVIDUALS, replicates, rng).counts
        for theta in thetas
        for _ in range(each)
    ]
    rows = []
    for name, fits in fit_all(tables, progress).items():
        estimates = np.reshape(fits.rates.prevalence, (len(thetas), each))
        covered = np.reshape(
            (fits.lower.prevalence <= np.repeat(thetas, each))
            & (np.repeat(thetas, each) <= fits.upper.prevalence),
            estimates.shape,
        )
        for theta, values, inside in zip(thetas, estimates, covered, strict=True):
            errors = values - theta
            rows.append(
                {
                    "design": design,
                    "prevalence": theta,
                    "method": name,
                    "bias": float(errors.mean()),
                    "bias_se": float(errors.std(ddof=1) / np.sqrt(each)),
                    "rmse": float(np.sqrt(np.mean(errors**2))),
                    "theory": expected_bias(name, theta, replicates),
                    "coverage": float(inside.mean()) if name.startswith("Bayes") else None,
                }
            )
    return rows


def expected_bias(method: str, theta: float, replicates: Sequence[int]) -> float | None:
    """The closed form, which only the average and the median have."""
    if method not in br.theory.SCORES:
        return None
    rates = br.Rates(theta, P, Q)
    return float(br.theory.prevalence_error(list(replicates), rates, score=method).bias)


def bias_chart(rows: list[Row]) -> alt.TopLevelMixin:
    """Points with twice their Monte Carlo error, and theoretical lines."""
    for row in rows:
        row |= {"low": row["bias"] - 2 * row["bias_se"], "high": row["bias"] + 2 * row["bias_se"]}
    x = alt.X("prevalence:Q", title="prevalence θ", scale=alt.Scale(domain=[0, 0.51], nice=False))
    y = alt.Y("bias:Q", title="bias of the estimate")
    hue = colour(FITS, "method")
    base = chart(rows, width=620, height=360)
    layers = [
        chart([{"y": 0}]).mark_rule(color="#999999").encode(y="y:Q"),
        base.mark_rule(opacity=0.6).encode(
            x=x, y=alt.Y("low:Q", title="bias of the estimate"), y2="high:Q", color=hue
        ),
        base.mark_point(filled=True, size=35).encode(x=x, y=y, color=hue),
        base.transform_filter("datum.theory !== null")
        .mark_line(strokeDash=[5, 3])
        .encode(x=x, y="theory:Q", color=hue),
    ]
    title = f"{INDIVIDUALS} individuals, p = {P}, q = {Q}, {rows[0]['design']}; dashed: theory"
    return alt.layer(*layers).properties(title=title)


def interval_j() -> tuple[float, float]:
    """Where the median is more biased than the average, in the paper's design."""
    return br.theory.median_more_biased(list(range(2, 7)), P, Q)


def coverage_chart(rows: list[Row]) -> alt.TopLevelMixin:
    """How often the 90 % intervals hold the prevalence."""
    known = [row for row in rows if row["coverage"] is not None]
    base = chart(known, width=300, height=240)
    lines = base.mark_line(point=True).encode(
        x=alt.X("prevalence:Q", title="prevalence θ", axis=alt.Axis(values=[0, 0.1, 0.2, 0.3, 0.4, 0.5])),
        y=alt.Y("coverage:Q", title="share of 90 % intervals that hold θ", scale=alt.Scale(domain=[0, 1])),
        color=colour([name for name in FITS if name.startswith("Bayes")], "method"),
    )
    nominal = base.mark_rule(strokeDash=[4, 4], color="#999999").encode(y=alt.datum(0.9))
    return alt.layer(lines, nominal).facet(
        column=alt.Column("design:N", title=None, sort=list(DESIGNS), header=alt.Header(labelFontSize=13))
    )


def conclusions(rows: list[Row]) -> list[Comparison]:
    """What the figures show, in numbers."""
    paper = [row for row in rows if row["design"] == "2 to 6 replicates"]
    z = max(abs(row["bias"] - row["theory"]) / row["bias_se"] for row in rows if row["theory"] is not None)
    checked = sum(row["theory"] is not None for row in rows)
    low, high = interval_j()
    lines = [
        found(
            "(a) largest distance of a simulated bias from its theoretical line, in standard errors",
            f"{z:.1f} of {checked} points",
            "average and median; about 3 is to be expected",
        ),
        found(
            "(a) interval J of θ where the median is more biased",
            f"({low:.3f}, {high:.3f})",
            "closed form, n uniform on 2…6",
        ),
    ]
    for design, of in (("2 to 6", paper), ("2", [row for row in rows if row not in paper])):
        for name in FITS:
            own = [row for row in of if row["method"] == name]
            worst = max(own, key=lambda row: abs(row["bias"]))
            mean_rmse = float(np.mean([row["rmse"] for row in own]))
            lines.append(
                found(
                    f"(a) {name}, {design} replicates: worst bias over θ",
                    f"{worst['bias']:+.3f} at θ = {worst['prevalence']:g}; rmse {mean_rmse:.3f} on average",
                )
            )
    return lines
