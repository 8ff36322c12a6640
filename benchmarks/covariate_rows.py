"""Very many rows with categories: how long the one query takes, and how many patterns come out.

`python -m benchmarks.covariate_rows --rows 100000000` writes a Parquet file with DuckDB, in a folder that is
removed again, and fits it from there.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import binreps as br
from benchmarks.report import markdown_table, number, power

SITES, AGES = ("north", "south", "west"), 6


def write(path: Path, rows: int, *, long: bool) -> None:
    """Individuals by site and age group: counted, or a row for each of two replicates."""
    who = "range // 2" if long else "range"
    sites = " ".join(f"when hash({who}) % 3 = {k} then '{site}'" for k, site in enumerate(SITES))
    columns = f"case {sites} end as site, 'age ' || (hash({who} + 1) % {AGES})::varchar as age"
    positive = f"(hash({who} + 2) % 100 < 10 + 8 * (hash({who} + 1) % {AGES}))"
    found = f"(hash(range + 3) % 100 < case when {positive} then 85 else 10 end)"
    again = found.replace("+ 3", "+ 4")
    measured = (
        f"{who} as patient, {found}::int as test" if long else f"2 as n, {found}::int + {again}::int as s"
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select {measured}, {columns} from range({rows})) to '{path}' (format parquet)"
        )


def measured(rows: int, *, long: bool) -> dict[str, Any]:
    """One file, fitted from where it lies."""
    columns = {"individual": "patient", "result": "test"} if long else {"n": "n", "s": "s"}
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder, "rows.parquet"), rows, long=long)
        start, clock = time.process_time(), time.perf_counter()
        fit = br.fit(path, **columns, covariates=["site", "age"])
        used, waited = time.process_time() - start, time.perf_counter() - clock
    return {
        "rows": f"{power(rows)} {'results' if long else 'individuals'}",
        "individuals": f"{fit.counts.individuals:,}",
        "patterns": str(len(fit.records)),
        "seconds on the processor": number(used),
        "seconds waited": number(waited),
        "peak memory, GB": number(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20),
        "stated error": number(fit.error),
    }


def main() -> None:
    """Print a row."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--rows", type=int, default=10**7)
    options.add_argument("--long", action="store_true", help="one row per replicate, two for each individual")
    chosen = options.parse_args()
    print(markdown_table([measured(chosen.rows, long=chosen.long)]))


if __name__ == "__main__":
    main()
