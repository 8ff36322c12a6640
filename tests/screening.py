"""The bundled screening study, counted plainly: what tests compare the data path with, or start from."""

from __future__ import annotations

from itertools import groupby

from binreps import CountTable, load_screening


def screening_counts() -> CountTable:
    """n and s of everyone; a missing result is no replicate."""
    people = [list(rows) for _, rows in groupby(load_screening(), key=lambda row: row["individual"])]
    results = [[row["result"] for row in rows if row["result"] is not None] for rows in people]
    return CountTable([len(values) for values in results], [sum(values) for values in results])


def screening_truth() -> dict[str, int]:
    """The true status of everyone, by name."""
    return {row["individual"]: row["truth"] for row in load_screening()}
