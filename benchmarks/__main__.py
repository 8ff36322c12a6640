"""Run the families of rows, compare with the floors, print; a full run also writes the published figures.

The published figures are results.json and docs/benchmarks.md. A quick run leaves them alone: its own go to
build/benchmarks/, which git ignores.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import lead, report
from benchmarks.machine import describe
from benchmarks.timing import say

HERE = Path(__file__).parent
FLOORS = HERE / "floors.json"
PUBLISHED = (HERE / "results.json", HERE.parent / "docs" / "benchmarks.md")
QUICK = tuple(HERE.parent / "build" / "benchmarks" / path.name for path in PUBLISHED)

FAMILIES = {
    "posterior": ("pymc", "nutpie", "pytensor", "numba", "pystan"),
    "point": ("crowd-kit", "stepmix"),
    "data": ("duckdb", "polars", "pandas", "pyarrow", "pyspark", "narwhals", "crowd-kit"),
    "accuracy": ("crowd-kit",),
    "sources": ("crowd-kit", "stepmix", "pymc", "nutpie", "duckdb"),
    "startup": ("pymc", "pystan", "crowd-kit", "stepmix", "pandas"),
    "growth": (),
    "bars": (),
    "covariates": ("pymc", "nutpie", "pytensor", "numba", "stepmix"),
    "region": (),
    "gold": ("ppi-python",),
    "scale": ("duckdb", "pyspark"),
}
"""Modules of this package, each with `run(settings)`, and the packages whose versions matter there."""


def main() -> int:
    """Run what the command line asks for; the exit status counts only with --gate."""
    options = parse()
    if options.page:
        write(json.loads(PUBLISHED[0].read_text(encoding="utf-8")), *PUBLISHED)
        return 0
    settings = report.Settings(full=options.full)
    results, page = PUBLISHED if options.full else QUICK
    kept = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    floors = json.loads(FLOORS.read_text(encoding="utf-8")) if FLOORS.exists() else {}
    ratios: dict[str, report.Ratio] = {}
    for name in options.only:
        say(f"{name} …")
        machine = describe(("binreps", "numpy", "scipy", *FAMILIES[name]))
        sections = importlib.import_module(f"benchmarks.{name}").run(settings)
        kept[name] = report.stored(machine, "full" if options.full else "quick", sections)
        ratios |= {key: ratio for section in sections for key, ratio in section.ratios.items()}
        write(kept, results, page)
    say("done")
    if options.raise_floors:
        floors = report.raised(ratios, floors)
        FLOORS.write_text(json.dumps(floors, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(report.page({name: kept[name] for name in options.only}))
    complaints = report.fallen(ratios, floors)
    print("\n".join(complaints) or "No ratio fell below its floor.")
    return 1 if complaints and options.gate else 0


def write(kept: dict[str, Any], results: Path, page: Path) -> None:
    """The results and the page, after each family: a long run that ends early keeps what it has measured.

    A family that did not run now keeps what it had, under the machine and mode of its own run.
    """
    ordered = {name: kept[name] for name in FAMILIES if name in kept}
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(report.page(ordered, lead.lead(ordered)), encoding="utf-8")
    lead.draw(ordered, page.parent / lead.PICTURE)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="about five minutes, prints (the default)")
    size.add_argument("--full", action="store_true", help="more cases, about an hour, publishes")
    parser.add_argument(
        "--only",
        type=_families,
        default=tuple(FAMILIES),
        metavar="FAMILY,…",
        help=f"some of: {', '.join(FAMILIES)}; the others keep their figures",
    )
    parser.add_argument("--page", action="store_true", help="write the page anew from results.json alone")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a ratio is below its floor")
    parser.add_argument("--raise-floors", action="store_true", help="move floors.json up to this run")
    return parser.parse_args()


def _families(text: str) -> tuple[str, ...]:
    """Names of families from a list with commas."""
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such family: {', '.join(unknown)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
