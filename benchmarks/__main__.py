"""Run the families of rows, write results.json and docs/benchmarks.md, compare with the floors."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.machine import describe
from benchmarks.timing import say

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
RESULTS, FLOORS = HERE / "results.json", HERE / "floors.json"

FAMILIES = ("posterior",)
"""Modules of this package, each with `run(settings)`."""

PACKAGES = ("binreps", "numpy", "scipy", "pymc", "nutpie", "pytensor", "numba")


def main() -> int:
    """Run what the command line asks for; the exit status counts only with --gate."""
    options = parse()
    machine = describe(PACKAGES)
    settings = report.Settings(full=options.full)
    sections = []
    for name in options.only:
        say(f"{name} …")
        sections += importlib.import_module(f"benchmarks.{name}").run(settings)
    say("done")
    floors = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}
    ratios = {name: ratio for section in sections for name, ratio in section.ratios.items()}
    if options.raise_floors:
        floors = report.raised(ratios, floors)
        FLOORS.write_text(json.dumps(floors, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    mode = "full" if options.full else "quick"
    page = report.page(machine, mode, sections)
    print(page)
    if set(options.only) == set(FAMILIES):  # a part does not replace the whole
        PAGE.write_text(page, encoding="utf-8")
        RESULTS.write_text(report.results(machine, mode, sections), encoding="utf-8")
    complaints = report.fallen(ratios, floors)
    print("\n".join(complaints) or "No ratio fell below its floor.")
    return 1 if complaints and options.gate else 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="under three minutes (the default)")
    size.add_argument("--full", action="store_true", help="more cases and more runs, under half an hour")
    parser.add_argument(
        "--only", type=_families, default=FAMILIES, metavar="FAMILY,…", help=f"some of: {', '.join(FAMILIES)}"
    )
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
