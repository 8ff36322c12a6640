"""(c) The periodontal data: known-truth estimates, decisions, modes, and the prior/posterior figure.

The data are not ours to ship; the R package has them::

    Rscript -e 'write.csv(BinaryReplicates::periodontal, "periodontal.csv", row.names = FALSE)'
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

import binreps as br
from paper.methods import DEFAULT, MISGUIDED
from paper.output import COLOURS, Row, chart, save_chart, write_table
from paper.settings import Comparison, Progress, Settings, found, number, text

LOSS = br.Loss(inconclusive=0.45)
NAMES = {"n": ("n", "ni"), "s": ("s", "si"), "truth": ("truth", "ti")}
PRINTED = {
    "average": ("16/1/4", "5/5/19", "11.7"),
    "median": ("16/1/4", "5/5/19", "11.7"),
    "MAP": ("13/0/8", "3/2/24", "11.9"),
    "Bayes": ("13/3/5", "3/2/24", "10.2"),
    "Bayes, misguided prior": ("1/7/13", "1/4/24", "18.9"),
}
"""The paper's table: decisions 0/½/1 of the healthy and of the infected, and the total loss."""

RATE_WORDS = {"prevalence": "θ", "false_positive": "p", "false_negative": "q"}


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n, s and truth from a CSV file with columns n, s, truth, or ni, si, ti as in the R package."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = []
    for name, spellings in NAMES.items():
        spelling = next((word for word in spellings if rows and word in rows[0]), None)
        if spelling is None:
            raise SystemExit(f"{path} must have a column {' or '.join(spellings)} for {name}")
        columns.append(np.array([int(row[spelling]) for row in rows]))
    n, s, truth = columns
    return n, s, truth


def run(settings: Settings, progress: Progress) -> list[Comparison]:
    """The table, the modes, the figure, and the predictions."""
    if settings.periodontal is None:
        return [found("(c) periodontal data", "not given", "see --periodontal FILE")]
    n, s, truth = read(settings.periodontal)
    fits = fit(br.CountTable(n, s))
    progress(1, 2)
    lines = known_truth(n, s, truth) + decisions(settings, fits, n, s, truth)
    lines += modes(fits) + two_estimates(fits["MAP"]) + predictions(fits["Bayes"])
    save_chart(settings, "periodontal", posterior_chart(fits, known_rates(n, s, truth)))
    progress(2, 2)
    return lines


def fit(counts: br.CountTable) -> dict[str, Any]:
    """The five fits of the paper's table."""
    simple = {"average": br.fit_average(counts), "median": br.fit_median(counts), "MAP": br.fit_map(counts)}
    bayes = {"Bayes": DEFAULT, "Bayes, misguided prior": MISGUIDED}
    return simple | {name: br.fit_bayes(counts, prior) for name, prior in bayes.items()}


def known_rates(n: np.ndarray, s: np.ndarray, truth: np.ndarray) -> br.Rates:
    """The estimates with every status known."""
    return br.fit_known(br.CountTable(n, s, known=truth)).rates


def known_truth(n: np.ndarray, s: np.ndarray, truth: np.ndarray) -> list[Comparison]:
    """The known-truth estimates as the fractions that are printed."""
    healthy, infected = truth == 0, truth == 1
    fractions = {
        "θ": (f"{infected.sum()}/{truth.size}", "29/50"),
        "p": (f"{s[healthy].sum()}/{n[healthy].sum()}", "9/48"),
        "q": (f"{(n - s)[infected].sum()}/{n[infected].sum()}", "48/142"),
    }
    rates = zip(fractions.items(), known_rates(n, s, truth), strict=True)
    return [
        text(f"(c) {name} with the truth known", printed, ours, f"= {rate:.4f}")
        for (name, (ours, printed)), rate in rates
    ]


def decisions(
    settings: Settings, fits: dict[str, Any], n: np.ndarray, s: np.ndarray, truth: np.ndarray
) -> list[Comparison]:
    """The paper's table: decisions by truth, thresholds .45 and .55, and the total loss."""
    lines, rows = [], []
    for name, (healthy, infected, total) in PRINTED.items():
        judged = br.evaluate(fits[name].score(n, s), truth, LOSS)
        ours = ["/".join(map(str, row)) for row in judged.counts]
        rows.append({"method": name, "healthy": ours[0], "infected": ours[1], "total": judged.total_risk})
        lines.append(text(f"(c) {name}: healthy 0/½/1", healthy, ours[0]))
        lines.append(text(f"(c) {name}: infected 0/½/1", infected, ours[1]))
        why = f"the total, {truth.size} × {judged.mean_risk:.3f} [E6]"
        lines.append(number(f"(c) {name}: loss", total, judged.total_risk, why))
    write_table(settings, "periodontal", rows)
    return lines


def modes(fits: dict[str, Any]) -> list[Comparison]:
    """Modes of the marginal posteriors; the paper read them off samples."""
    default, misguided = fits["Bayes"].mode, fits["Bayes, misguided prior"].mode
    sampled = "ours is exact; the paper's comes from samples"
    mean = fits["Bayes, misguided prior"].rates.prevalence
    return [
        number("(c) mode of θ", "0.67", default.prevalence, sampled),
        number("(c) mode of p", "0.12", default.false_positive, sampled),
        number("(c) mode of q", "0.29", default.false_negative, sampled),
        number("(c) mode of p, misguided prior", "0.50", misguided.false_positive, sampled),
        number("(c) mode of q, misguided prior", "0.46", misguided.false_negative, sampled),
        text(
            "(c) posterior of θ, misguided prior", "uniform", f"mean {mean:.2f}", "a uniform one has mean ½"
        ),
    ]


def two_estimates(fit: Any) -> list[Comparison]:
    """The two estimates of p that go by the name of MAP."""
    return [
        found("(c) p at the MAP (penalised)", f"{fit.rates.false_positive:.3f}", "what scores use"),
        found(
            "(c) p plugged in from MAP scores",
            f"{fit.plug_in_rates.false_positive:.3f}",
            "the stars of the figure",
        ),
    ]


def predictions(fit: Any) -> list[Comparison]:
    """Two new individuals by the paper's formula and by the exact one [E10]."""
    lines = []
    for n, s in ((6, 2), (20, 8)):
        paper, exact = float(fit.predict_paper(n, s)), float(fit.predict(n, s))
        words = [br.decision_words(LOSS.classify(value)) for value in (paper, exact)]
        ours = f"exact {exact:.3f} ({words[1]}), paper's formula {paper:.3f} ({words[0]})"
        lines.append(found(f"(c) a new individual with {s} positives of {n}", ours, "E10"))
    return lines


def posterior_chart(fits: dict[str, Any], known: br.Rates) -> alt.TopLevelMixin:
    """Prior and posterior of the three rates under both priors, with the point estimates."""
    points = {
        "average": fits["average"].rates,
        "median": fits["median"].rates,
        "MAP": fits["MAP"].plug_in_rates,
    }
    marks = points | {"truth known": known}
    colours = {name: COLOURS.get(name, "#D55E00") for name in marks}
    hue = alt.Color(
        "estimate:N",
        title="estimate",
        sort=list(marks),
        scale=alt.Scale(domain=list(marks), range=list(colours.values())),
    )
    panels = []
    for label, name in {"default prior": "Bayes", "misguided prior": "Bayes, misguided prior"}.items():
        for rate, letter in RATE_WORDS.items():
            lines = (
                chart(densities(fits[name], rate), width=210, height=170)
                .mark_line(clip=True)
                .encode(
                    x=alt.X("x:Q", title=f"{letter}, {label}"),
                    y=alt.Y("density:Q", title=None, scale=alt.Scale(domain=[0, _top(fits[name], rate)])),
                    strokeDash=alt.StrokeDash("what:N", title=None, sort=["posterior", "prior"]),
                )
            )
            stars = [{"x": float(getattr(value, rate)), "estimate": key} for key, value in marks.items()]
            panels.append(lines + chart(stars).mark_rule(size=2).encode(x="x:Q", color=hue))
    return alt.vconcat(alt.hconcat(*panels[:3]), alt.hconcat(*panels[3:]))


def densities(fit: Any, rate: str) -> list[Row]:
    """Prior and posterior density of one rate on a grid."""
    end = 1.0 if rate == "prevalence" else 0.5
    x = np.linspace(0.002, end - 0.001, 250)
    nobody = br.fit_bayes(br.CountTable([], []), fit.prior)
    curves = {"posterior": fit.marginal(rate).density(x), "prior": nobody.marginal(rate).density(x)}
    return [
        {"x": float(a), "density": float(b), "what": what}
        for what, values in curves.items()
        for a, b in zip(x, values, strict=True)
    ]


def _top(fit: Any, rate: str) -> float:
    """The height of a panel: the highest of both curves, or of the posterior where the prior diverges."""
    rows = densities(fit, rate)
    heights = [row["density"] for row in rows if rate != "prevalence" or row["what"] == "posterior"]
    return 1.1 * float(max(heights))
