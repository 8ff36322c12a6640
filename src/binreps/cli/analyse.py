"""`binreps analyse`: the whole analysis of a file, printed and written."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from binreps.cli import options as opt
from binreps.cli.progress import bar, busy
from binreps.cli.read import guess_lines
from binreps.cli.render import grid, render
from binreps.decide.loss import Loss
from binreps.errors import OptionError
from binreps.fits.batch import COLUMNS
from binreps.notes import Note
from binreps.run.analysis import Analysis, Settings
from binreps.run.by import CELL_COLUMNS, fitted_groups, rows_table
from binreps.run.front import analysing
from binreps.run.methods import METHODS
from binreps.run.models import AUTO
from binreps.show.groups import groups_page
from binreps.show.summary import summary, table_rows
from binreps.study.datasets import SCREENING_FILE
from binreps.table import Table
from binreps.tables.opened import OpenTable, open_table
from binreps.tables.roles import Roles, column_names
from binreps.tables.write import check_target, replacing, write_table

_SHOWN_GROUPS = 30


def analyse_command(
    context: typer.Context,
    data: opt.Data = None,
    individual: opt.Individual = None,
    result: opt.Result = None,
    replicates: opt.Replicates = None,
    n: opt.N = None,
    s: opt.S = None,
    weight: opt.Weight = None,
    known: opt.Known = None,
    truth: opt.Truth = None,
    population: opt.Population = None,
    source: opt.Source = None,
    covariates: opt.Covariates = None,
    time: opt.Time = None,
    batch: opt.Batch = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Fit each group on its own, and give its rates alone; repeat for several columns.",
        ),
    ] = None,
    positive: opt.Positive = None,
    negative: opt.Negative = None,
    missing: opt.Missing = None,
    sheet: opt.Sheet = None,
    recipe: opt.Recipe = None,
    model: opt.Model = AUTO,
    method: opt.Method = "bayes",
    prior_prevalence: opt.PriorPrevalence = "0.5,0.5",
    prior_false_positive: opt.PriorFalsePositive = "2,2",
    prior_false_negative: opt.PriorFalseNegative = "2,2",
    better_than_chance: opt.BetterThanChance = False,
    cost_false_positive: opt.CostFalsePositive = 1,
    cost_false_negative: opt.CostFalseNegative = 1,
    cost_inconclusive: opt.CostInconclusive = "0.25",
    independent: opt.Independent = False,
    merge: opt.Merge = None,
    level: opt.Level = 0.9,
    up_to: opt.UpTo = None,
    out: opt.Out = None,
    title: opt.Title = "",
    author: opt.Author = "",
    parquet: Annotated[bool, typer.Option("--parquet", help="Write the scores as Parquet.")] = False,
    memory: opt.Memory = None,
    as_json: opt.Json = False,
) -> None:
    """Estimate prevalence and error rates from repeated yes/no results, score everyone, and decide.

    Example: `binreps analyse tests.csv --individual patient --result test --out results`
    """
    columns = opt.make_columns(locals())
    shapes = prior_prevalence, prior_false_positive, prior_false_negative
    prior = opt.make_prior(*shapes, better_than_chance)
    loss = opt.make_loss(cost_false_positive, cost_false_negative, cost_inconclusive)
    settings = opt.make_settings(method, prior, loss, level, up_to, model, independent, merge)
    _check_folder(out, title or author)
    if by:
        if population or truth or recipe or merge:
            rule = "it goes without --population, --truth, --recipe and --merge"
            raise OptionError(f"--by fits each group on its own; {rule}")
        _by(data, by, columns, settings, out, {"memory": memory, "sheet": sheet}, as_json, (title, author))
        return
    name, path = None, data
    if not data:
        name, path, truth = "Bundled example: a synthetic screening study", [str(SCREENING_FILE)], "truth"
    how: Any = {"population": population, "truth": truth, "memory": memory, "name": name, **columns}
    how |= {"sheet": sheet, "recipe": recipe}
    with ExitStack() as stack:
        with busy("reading and fitting"):
            analysis = stack.enter_context(analysing(path, settings, **how))
        _print(analysis, as_json)
        if out is not None:
            from binreps.show.folder import write_folder  # the answer was printed without it

            with busy("writing"):
                how = {"title": title, "author": author, "pen": context.obj}
                files = write_folder(analysis, out, parquet=parquet, memory=memory, **how)
            if not as_json:
                print(f"\nWritten to {out}: {', '.join(file.name for file in files)}")


def _print(analysis: Analysis, as_json: bool) -> None:
    """The analysis for a person or for a machine."""
    if as_json:
        print(json.dumps(summary(analysis), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        render(analysis, Console())


def _check_folder(out: Path | None, on_report: str) -> None:
    """Refuse a folder that cannot be made, before any work."""
    if out is None and on_report:
        raise OptionError("--title and --author are for the report: add --out with a folder for it")
    if out is not None and out.exists() and not out.is_dir():
        raise OptionError(f"--out must name a folder, got the file {out}")


def _by(
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
