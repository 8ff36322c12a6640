"""Every bar that the project has set itself, in one table: engine, sources, covariates, and both together."""

from __future__ import annotations

from benchmarks import engine_bars, model_bars
from benchmarks.report import Section, Settings


def run(settings: Settings) -> list[Section]:
    """The only section."""
    rows = [*engine_bars.rows(settings), *model_bars.rows(settings)]
    missed = sum("no" in row["met"] for row in rows)
    text = (
        f"{len(rows) - missed} of {len(rows)} are met, the others in bold. Time is on the processor, one "
        "core and one BLAS thread: the median of repeated calls, or one call where it takes seconds. `p + "
        "q < 1` is the same table under `Prior(better_than_chance=True)`, which may take "
        f"{engine_bars.DEARER:.0f} × the bar. Sources run to their default error of .05 posterior sds "
        "unless the work says otherwise. Large ones are measured in full mode. Coverage and stated errors "
        "have commands of their own, which take hours: `python -m benchmarks.source_coverage`, "
        "`benchmarks.exact_coverage`, `benchmarks.covariate_trials`, `benchmarks.honesty`."
    )
    return [Section("Bars", text, rows)]
