"""How much one request may ask for, and the sentence for more."""

from __future__ import annotations

import time
from collections.abc import Sequence, Sized

from binreps.counts import CountTable
from binreps.errors import DataError, OptionError
from binreps.fits.batch import Progress
from binreps.model import NAMES, Prior, Rates
from binreps.options import check_level, check_whole
from binreps.run.analysis import TABULATED

UPLOAD_BYTES = 200 * 2**20
ANSWER_BYTES = 64 * 2**20  # of what a process sends back; longer answers are files
KEPT_FILES, KEPT_BYTES = 20, 2**30  # that were sent and may be asked about again
BODY_BYTES = 4 * 2**20  # of a request without a file
ROWS = 5_000_000
UNPACKED_BYTES = 500 * 2**20  # of a gzipped file
WORKBOOK_BYTES = 64 * 2**20  # of one unpacked: half a minute to read
COLUMNS, NAME = 1_000, 1_000  # and letters of the name of one
VALUE_BYTES = 10_000  # of one value of a file
CELLS = 2_000
RECORDS = 20_000  # individuals who differ in their covariates
READINGS = 200_000  # by sources
REPLICATES = 10**6
INDIVIDUALS = 10**9
PAIRS = 2_000
POPULATIONS = 30
SHAPES = (0.05, 1e6)  # of a Beta prior
LEVELS = (0.01, 0.9999)
RATES, ERRORS = (0.001, 0.999), 0.8  # the prevalence to plan for, and how many errors a test may make
SCORED = 10**6  # replicates of all individuals in one request
SECONDS = 30  # that a process may work for one request
PLANNING = 15  # seconds of the processor for one plan: within those that a process may work
WAIT = 60  # seconds that a request waits for a process
GRACE = 1.0  # seconds that work goes on when nobody waits for it any more
SLOW, PACE = 10, 10**5  # seconds, and the bytes a second beyond them, in which a request must come
READING = 60  # seconds in which a client must take what it is sent
OPEN, OPEN_OF_CLIENT = 256, 64  # connections
WORKER_BYTES = 560 * 2**20  # of memory that a process may hold at work
IDLE_BYTES = 300 * 2**20  # and while it waits: one server, one at work and one that waits stay below 1 GB
MAPPED_BYTES = 4 * 2**30  # of a process, most of it never touched; the system refuses more
MEMORY = "300MB"  # of DuckDB; more is spilled to the temporary directory

_ADVICE = "use the library or the command line for more"


def check_size(what: str, size: int, most: int) -> None:
    """Refuse more than the page works with."""
    if size > most:
        raise DataError(f"the page takes at most {most:,} {what}, got {size:,}; {_ADVICE}")


def check_length(what: str, values: Sized, most: int) -> None:
    """Refuse a longer list."""
    check_size(what, len(values), most)


def check_columns(names: Sequence[str]) -> None:
    """Refuse more columns, or longer names, than anyone can read."""
    check_length("columns", names, COLUMNS)
    for name in names:
        check_length(f"letters in the name of a column ({name[:20]}…)", name, NAME)


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


def check_rates(rates: Rates) -> None:
    """Refuse to plan for tests that say next to nothing: simulating them takes minutes."""
    low, high = RATES
    if not low <= rates.prevalence <= high:
        rule = f"prevalence must be from {low} to {high} on the page"
        raise OptionError(f"{rule}, got {rates.prevalence:g}; {_ADVICE}")
    together = rates.false_positive + rates.false_negative
    if together > ERRORS:
        rule = f"false_positive and false_negative must add up to at most {ERRORS} on the page"
        raise OptionError(f"{rule}, got {together:g}; {_ADVICE}")


def within(seconds: float, what: str, told: Progress | None = None) -> Progress:
    """What work calls with how much is done: tells it, and ends it after some seconds of the processor."""
    start = time.process_time()

    def tell(done: int, total: int) -> None:
        if time.process_time() - start > seconds:
            raise OptionError(f"{what} takes more than {seconds:g} seconds of the processor; {_ADVICE}")
        if told is not None:
            told(done, total)

    return tell


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
        if replicates > TABULATED:
            rule = f"replicates must be at most {TABULATED} on the page"
            raise OptionError(f"{rule}, got {replicates}; {_ADVICE}")
