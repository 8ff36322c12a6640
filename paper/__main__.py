"""Regenerate every table and figure of the paper, then print how they compare with what it prints."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from paper import bias, compare, mammography, periodontal, readers, risk, theorems, theory
from paper.settings import Comparison, Settings

SECTIONS = {
    "(a) bias": bias,
    "(b) risk": risk,
    "(c) periodontal": periodontal,
    "(d) mammography": mammography,
    "(e) theory": theory,
    "(f) theorems": theorems,
    "(g) by reader": readers,
}
HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "paper"
IN_DOCS = (
    *("bias.svg", "bias-two.svg", "coverage.svg", "risk.svg", "periodontal.svg"),
    *("mammography-pixels.png", "mammography-scores.svg", "mammography-risks.svg"),
    *("bias-theory.svg", "interval-j.svg"),
)
"""The figures that docs/paper.md shows."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every section and print the comparison."""
    options = parse(arguments)
    settings = Settings(options.out, options.periodontal, options.quick)
    settings.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    lines = run(settings)
    print(compare.write(settings, lines))
    took = f"{time.perf_counter() - start:.0f} s; {sum(os.times()[:4]):.0f} s on the processors"
    print(f"\nTables and figures are in {settings.out} ({took}).")
    if options.docs:
        copy_figures(settings)


def run(settings: Settings) -> list[Comparison]:
    """All sections, each with its bar."""
    lines: list[Comparison] = []
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bars:
        for name, section in SECTIONS.items():
            task = bars.add_task(name, total=1.0)
            lines += section.run(
                settings, lambda done, total, task=task: bars.update(task, completed=done / total)
            )
            bars.update(task, completed=1.0)
    return lines + compare.in_words()


def copy_figures(settings: Settings) -> None:
    """The figures that the documentation shows."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name in IN_DOCS:
        if (settings.out / name).exists():
            shutil.copy(settings.out / name, DOCS / name)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument(
        "--periodontal", type=Path, metavar="FILE", help="CSV with n, s, truth (or ni, si, ti)"
    )
    parser.add_argument("--out", type=Path, default=HERE / "out", metavar="DIR", help="default: paper/out")
    parser.add_argument("--quick", action="store_true", help="a few data sets only: does it run?")
    parser.add_argument("--docs", action="store_true", help="copy the figures that docs/paper.md shows")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
