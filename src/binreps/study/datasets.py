"""Small example data that we simulated ourselves: no real person is behind any of them.

The screening data come from the model with prevalence 0.30, false-positive rate 0.10 and false-negative rate
0.15: 120 people with 2 to 6 replicates each, of which a few results were then lost at random.
"""

from __future__ import annotations

import csv
import io
from importlib.resources import files
from pathlib import Path

import numpy as np

from binreps.model import Rates
from binreps.options import kinds_checked
from binreps.study.simulate import simulate
from binreps.table import Table

SCREENING_RATES = Rates(prevalence=0.30, false_positive=0.10, false_negative=0.15)
"""The rates that the screening data were simulated from."""

SCREENING_FILE = Path(str(files("binreps.study") / "data" / "screening.csv"))
"""The file of the screening data: one row per replicate, with the true status of its individual."""

_SEED = 2026
_LOST = 7  # results that are missing


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


def _screening_text() -> str:
    """The file as it was made; a test compares it with the stored one."""
    rng = np.random.default_rng(_SEED)
    simulation = simulate(SCREENING_RATES, 120, range(2, 7), rng)
    names = [f"P{i:03d}" for i in range(1, len(simulation) + 1)]
    rows = sorted(simulation.long(rng), key=lambda row: row["individual"])  # stable: results stay shuffled
    lost = set(rng.choice(len(rows), _LOST, replace=False).tolist())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["individual", "result", "truth"])
    for i, row in enumerate(rows):
        who = row["individual"]
        writer.writerow([names[who], "" if i in lost else row["result"], int(simulation.truth[who])])
    return text.getvalue()
