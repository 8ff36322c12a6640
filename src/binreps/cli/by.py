"""`binreps analyse --by`: one fit per group, printed and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from binreps.cli.progress import bar
from binreps.cli.read import guess_lines
from binreps.cli.render import grid
from binreps.decide.loss import Loss
from binreps.errors import OptionError
from binreps.fits.batch import COLUMNS
from binreps.notes import Note
from binreps.run.analysis import Settings
from binreps.run.by import CELL_COLUMNS, fitted_groups, rows_table
from binreps.run.methods import METHODS
from binreps.show.groups import groups_page
from binreps.show.summary import table_rows
from binreps.table import Table
from binreps.tables.opened import OpenTable, open_table
from binreps.tables.roles import Roles, column_names
from binreps.tables.write import check_target, replacing, write_table

_SHOWN_GROUPS = 30


def analyse_groups(
    data: list[str] | None,
    by: list[str],
    columns: Any,
    settings: Settings,
    out: Path | None,
    opening: dict[str, Any],
    as_json: bool,
    heading: tuple[str, str],
) -> None:
    """One fit per group, as one table; the folder also has what each result is answered, and a report."""
    if not data:
        raise OptionError("--by needs a file")
    with open_table(data, [*column_names(columns), *by], **opening) as opened:
        guess = opened.guess(columns, by)
        files = _groups_files(out, opened)
        how: Any = {"method": settings.method, "level": settings.level}
        if settings.prior != Settings().prior:
            how["prior"] = METHODS[settings.method].prior(settings.prior)
        with bar("fitting groups") as progress:
            roles = Roles.of(**guess.columns)
            answer, _, notes = fitted_groups(
                opened.frame, by, roles, progress=progress, scores=bool(files), **how
            )
    table, cells = _by_group(rows_table(answer), by, settings.loss)
    told = [*guess.notes, *notes, *_untold(table)]
    if files:
        name = heading[0] or ", ".join(path.name for path in opened.paths)
        whole = groups_page(table, cells, by, settings.loss, told, name, heading[1])
        write_table(table, files[0])
        write_table(cells, files[1])
        with replacing(files[2]) as part:
            part.write_text(whole, encoding="utf-8")
    if not as_json:
        print(*guess_lines(guess), sep="\n", end="\n\n")
    _print_groups(table, as_json, told)
    if files and not as_json:
        print(f"\nWritten to {out}: {', '.join(file.name for file in files)}")


def _by_group(rows: Table, by: list[str], loss: Loss) -> tuple[Table, Table]:
    """A row per group, and one for each result (n, s) of a group with its decision, if there are scores."""
    if "score" not in rows.columns:
        return rows, Table({})
    first: dict[Any, int] = {}
    for i, row in enumerate(rows):
        first.setdefault(tuple(row[name] for name in by), i)
    own = [name for name in rows.columns if name not in CELL_COLUMNS]
    groups = Table({name: [rows[name][i] for i in first.values()] for name in own})
    there = [i for i, n in enumerate(rows["n"]) if n is not None]
    cells = {name: [rows[name][i] for i in there] for name in (*by, *CELL_COLUMNS)}
    return groups, Table({**cells, "decision": loss.words(cells["score"])})


def _groups_files(out: Path | None, opened: OpenTable) -> list[Path]:
    """Where groups, their scores and the report are written, if they are, refused before any work."""
    if out is None:
        return []
    out.mkdir(parents=True, exist_ok=True)
    files = [out / "groups.csv", out / "scores.csv", out / "report.html"]
    for target in files[:2]:
        check_target(target, opened.paths)
    return files


def _untold(table: Table) -> list[Note]:
    """In how many groups the estimates rest on the prior."""
    untold = sum(value is False for value in table["identifiable"])
    rule = "the data alone cannot tell prevalence and error rates apart: the estimates rest on the prior"
    return [Note("groups-not-identifiable", f"in {untold:,} of {len(table):,} groups {rule}")] * bool(untold)


def _print_groups(table: Table, as_json: bool, notes: list[Note]) -> None:
    """One row per group; of many, the first ones."""
    if as_json:
        print(json.dumps(table_rows(table), ensure_ascii=False, allow_nan=False, default=str, indent=1))
        return
    shown = _compact(table)
    console = Console()
    console.print(grid(shown))
    if len(table) > _SHOWN_GROUPS:
        console.print(f"… and {len(table) - _SHOWN_GROUPS:,} more groups; --out writes them all")
    for note in dict.fromkeys(notes):
        console.print(f"• {note}", markup=False)


def _compact(table: Table) -> Table:
    """The first groups in 80 columns: estimates, the interval of the prevalence, and what went wrong."""
    rows = [row for row, _ in zip(table, range(_SHOWN_GROUPS), strict=False)]
    given = [name for name in table.columns if name not in COLUMNS]
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in given}
    for name in ("individuals", "prevalence"):
        columns[name] = [row[name] for row in rows]
    columns["interval"] = [_interval(row["prevalence_lower"], row["prevalence_upper"]) for row in rows]
    for name in ("false_positive", "false_negative"):
        columns[name] = [row[name] for row in rows]
    if any(row["reason"] for row in rows):
        columns["note"] = [row["reason"] or "" for row in rows]
    return Table(columns)


def _interval(lower: float | None, upper: float | None) -> str:
    """Both ends, if there are any."""
    return "–" if lower is None or upper is None else f"{lower:.3f}–{upper:.3f}"
