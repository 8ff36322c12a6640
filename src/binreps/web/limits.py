"""How much one request may ask for, and the sentence for more."""

from __future__ import annotations

from collections.abc import Sized

from binreps.counts import CountTable
from binreps.errors import DataError, OptionError
from binreps.model import NAMES, Prior
from binreps.options import check_level, check_whole

UPLOAD_BYTES = 200 * 2**20
KEPT_FILES, KEPT_BYTES = 20, 2**30  # that were sent and may be asked about again
BODY_BYTES = 4 * 2**20  # of a request without a file
ROWS = 5_000_000
UNPACKED_BYTES = 500 * 2**20  # of a workbook, which is read into memory
COLUMNS = 2_000
CELLS = 2_000
RECORDS = 20_000  # individuals who differ in their covariates
READINGS = 200_000  # by sources
REPLICATES = 10**6
INDIVIDUALS = 10**9
TABLE = 50  # replicates of the decision table
PAIRS = 2_000
POPULATIONS = 30
SHAPES = (0.05, 1e6)  # of a Beta prior
LEVELS = (0.01, 0.9999)
SECONDS = 120  # that a request may take
MEMORY = "2GB"  # of DuckDB; more is spilled to the temporary directory

_ADVICE = "use the library or the command line for more"


def check_size(what: str, size: int, most: int) -> None:
    """Refuse more than the page works with."""
    if size > most:
        raise DataError(f"the page takes at most {most:,} {what}, got {size:,}; {_ADVICE}")


def check_length(what: str, values: Sized, most: int) -> None:
    """Refuse a longer list."""
    check_size(what, len(values), most)


def check_counts(counts: CountTable) -> None:
    """Refuse tables that would keep the server busy for long."""
    check_size("cells", len(counts), CELLS)
    check_size("replicates of one individual", int(counts.n.max(initial=0)), REPLICATES)
    check_size("individuals", counts.individuals, INDIVIDUALS)


def check_prior(prior: Prior) -> None:
    """Refuse shapes that say more, or less, than anyone can know."""
    low, high = SHAPES
    for name, shapes in zip(NAMES, prior, strict=True):
        if not low <= min(shapes) <= max(shapes) <= high:
            rule = f"must have shapes from {low:g} to {high:,.0f} on the page"
            raise OptionError(f"the prior of {name} {rule}, got {shapes}; {_ADVICE}")


def check_interval(level: float) -> None:
    """Refuse intervals that hold almost never, or almost always."""
    check_level(level)
    low, high = LEVELS
    if not low <= level <= high:
        raise OptionError(f"level must be from {low} to {high} on the page, got {level}; {_ADVICE}")


def check_table(replicates: int | None) -> None:
    """Refuse a decision table that nobody could read on a page."""
    if replicates is not None:
        check_whole("replicates", replicates, 1)
        if replicates > TABLE:
            raise OptionError(f"replicates must be at most {TABLE} on the page, got {replicates}; {_ADVICE}")
