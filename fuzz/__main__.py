"""Give random and damaged inputs to every entry point, show progress, and print what failed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fuzz.entries import ENTRIES, split
from fuzz.worker import answers

CASES = Path(__file__).with_name("cases.txt")
"""Inputs that failed once, one `entry point: seed` a line; the tests try them again."""


class Failure(NamedTuple):
    """An input that failed."""

    entry: str
    seed: int
    why: str

    def __str__(self) -> str:
        again = f"python -m fuzz --only '{self.entry}' --seed {self.seed}"
        return f"{self.entry}: {self.seed}: {self.why}\n  again: {again}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 if an input failed."""
    options = _parse(arguments)
    wanted = split(options.inputs)
    if options.only is not None:
        if options.only not in ENTRIES:
            print(f"--only must be one of {', '.join(ENTRIES)}, got {options.only!r}")
            return 2
        wanted = {options.only: 1 if options.seed is not None else options.inputs}
    start = options.seed or 0
    console = Console(stderr=True)
    rows, failures = [], []
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        for name, count in wanted.items():
            task, before = bars.add_task(name, total=count), time.monotonic()
            found = []
            for seed, why in answers(name, range(start, start + count)):
                bars.advance(task)
                if why is not None:
                    found.append(Failure(name, seed, why))
                    console.print(str(found[-1]), markup=False, highlight=False)
            rows.append((name, count, len(found), time.monotonic() - before))
            failures += found
    _print_totals(rows)
    if failures and options.keep:
        _keep(failures)
    return 1 if failures else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many in all (default 100,000)")
    parser.add_argument("--only", metavar="ENTRY", help="one entry point")
    parser.add_argument("--seed", type=int, help="with --only: this one input; otherwise the first seed")
    parser.add_argument("--keep", action="store_true", help=f"write failures to {CASES.name}")
    return parser.parse_args(arguments)


def _print_totals(rows: list[tuple[str, int, int, float]]) -> None:
    """Inputs, failures and seconds of each entry point."""
    table = Table("entry point", "inputs", "failures", "seconds")
    for name, count, failed, seconds in rows:
        table.add_row(name, f"{count:,}", str(failed), f"{seconds:.0f}")
    table.add_section()
    table.add_row(
        "all",
        f"{sum(row[1] for row in rows):,}",
        str(sum(row[2] for row in rows)),
        f"{sum(row[3] for row in rows):.0f}",
    )
    Console().print(table)


def _keep(failures: list[Failure]) -> None:
    """Add failures to the cases that the tests try again."""
    known = CASES.read_text(encoding="utf-8").splitlines() if CASES.exists() else []
    new = [f"{failure.entry}: {failure.seed}" for failure in failures]
    CASES.write_text(
        "\n".join([*known, *(line for line in new if line not in known)]) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    sys.exit(main())
