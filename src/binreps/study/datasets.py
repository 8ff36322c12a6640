"""Small example data that we simulated ourselves: no real person is behind any of them.

Screening: the model with prevalence 0.30, false-positive rate 0.10 and false-negative rate 0.15; 120 people
with 2 to 6 replicates each, of which a few results were then lost at random. Readers: five readers whose
error rates differ, 120 slides, each read by four of them. Wells: 150 water samples of six wells each, whose
results are correlated within a sample; the species is likelier where the water is warm.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from binreps.model import Rates
from binreps.options import kinds_checked
from binreps.table import Table

SCREENING_RATES = Rates(prevalence=0.30, false_positive=0.10, false_negative=0.15)
"""The rates that the screening data were simulated from."""

READERS_RATES = Rates(0.4, [0.05, 0.30, 0.04, 0.02, 0.12], [0.08, 0.04, 0.12, 0.45, 0.06])
"""Prevalence, and the error rates of each reader."""

WELLS_RATES, WELLS_CORRELATION, WELLS_LOG_ODDS = Rates(0.45, 0.03, 0.35), 0.35, 0.45
"""Rates at average warmth, correlation of the wells of a sample, and log odds per degree."""

_FOLDER = Path(str(files("binreps.study") / "data"))
SCREENING_FILE, READERS_FILE, WELLS_FILE = (
    _FOLDER / f"{name}.csv" for name in ("screening", "readers", "wells")
)
"""The files: one row per replicate or reading, with the true status; wells in one row per sample."""

_READERS = ("Ahn", "Berg", "Cruz", "Diaz", "Egede")
_SAMPLES = 150
_SEED = 2026
_LOST = 7  # results of the screening that are missing


@kinds_checked
def load_screening() -> Table:
    """A synthetic screening study in long form: one row per replicate, with the individual's true status.

    Returns
    -------
    Table
        Columns `individual` ("P001" to "P120"), `result` (0 or 1, None where it is missing) and `truth` (0 or
        1, the same in all rows of an individual; to judge with, never to fit with).

    Examples
    --------
    >>> screening = load_screening()
    >>> len(screening), screening["individual"][:3], screening["result"].count(None)
    (480, ('P001', 'P001', 'P001'), 7)
    """
    rows = list(csv.DictReader(io.StringIO(SCREENING_FILE.read_text(encoding="utf-8"))))
    return Table(
        {
            "individual": [row["individual"] for row in rows],
            "result": [int(row["result"]) if row["result"] else None for row in rows],
            "truth": [int(row["truth"]) for row in rows],
        }
    )


def made() -> dict[Path, str]:
    """The files as they were made; a test compares them with the stored ones."""
    return {SCREENING_FILE: _screening(), READERS_FILE: _readers(), WELLS_FILE: _wells()}


def _screening() -> str:
    """People tested 2 to 6 times."""
    from binreps.study.simulate import simulate  # whoever reads the files has no need of it

    rng = np.random.default_rng(_SEED)
    simulation = simulate(SCREENING_RATES, 120, range(2, 7), rng)
    names = [f"P{i:03d}" for i in range(1, len(simulation) + 1)]
    rows = sorted(simulation.long(rng), key=lambda row: row["individual"])  # stable: results stay shuffled
    lost = set(rng.choice(len(rows), _LOST, replace=False).tolist())
    lines = []
    for i, row in enumerate(rows):
        who = row["individual"]
        lines.append([names[who], "" if i in lost else row["result"], int(simulation.truth[who])])
    return _text(["individual", "result", "truth"], lines)


def _readers() -> str:
    """Slides, each read by four of five readers."""
    from binreps.study.simulate import simulate

    drawn = simulate(READERS_RATES, 120, 4, np.random.default_rng(_SEED))
    words = ("neg", "pos")
    lines = []
    for row in drawn.table():
        who = [f"S{row['individual']:03d}", _READERS[row["source"] - 1]]
        lines.append([*who, words[row["result"]], words[row["truth"]]])
    return _text(["slide", "reader", "result", "truth"], lines)


def _wells() -> str:
    """Water samples, each with six wells, whose chance of a signal varies from sample to sample."""
    rng = np.random.default_rng(_SEED)
    theta, p, q = WELLS_RATES
    warmth = np.round(rng.normal(12, 3, _SAMPLES), 1)
    odds = np.log(theta / (1 - theta)) + WELLS_LOG_ODDS * (warmth - warmth.mean())
    there = rng.random(_SAMPLES) < expit(odds)
    mean, size = np.where(there, 1 - q, p), 1 / WELLS_CORRELATION - 1
    signals = rng.random((_SAMPLES, 6)) < rng.beta(mean * size, (1 - mean) * size)[:, None]
    lines = [[f"W{i + 1:03d}", warmth[i], *signals[i].astype(int)] for i in range(_SAMPLES)]
    return _text(["sample", "temperature", *(f"well {k}" for k in range(1, 7))], lines)


def _text(header: Iterable[str], lines: Iterable[Any]) -> str:
    """Lines as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()
