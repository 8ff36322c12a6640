"""`binreps analyse`: the whole analysis of a file, printed and written."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from binreps.cli import options as opt
from binreps.cli.progress import bar, busy
from binreps.cli.render import grid, render
from binreps.errors import OptionError
from binreps.fits.batch import COLUMNS
from binreps.run.analysis import Analysis, Settings, analyse_file
from binreps.run.by import fit_by
from binreps.show.folder import write_folder
from binreps.show.summary import summary, table_rows
from binreps.study.datasets import SCREENING_FILE
from binreps.table import Table
from binreps.tables.files import check_target, find_files, open_files, peek, write_table
from binreps.tables.guess import guess_columns
from binreps.tables.tally import Roles

_SHOWN_GROUPS = 30


def analyse_command(
    data: opt.Data = None,
    individual: opt.Individual = None,
    result: opt.Result = None,
    replicate: opt.Replicate = None,
    n: opt.N = None,
    s: opt.S = None,
    weight: opt.Weight = None,
    known: opt.Known = None,
    truth: opt.Truth = None,
    population: opt.Population = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Fit each group on its own, and give its rates alone; repeat for several columns.",
        ),
    ] = None,
    positive: opt.Positive = None,
    negative: opt.Negative = None,
    method: opt.Method = "bayes",
    prior_prevalence: opt.PriorPrevalence = "0.5,0.5",
    prior_false_positive: opt.PriorFalsePositive = "2,2",
    prior_false_negative: opt.PriorFalseNegative = "2,2",
    cost_false_positive: opt.CostFalsePositive = 1,
    cost_false_negative: opt.CostFalseNegative = 1,
    cost_inconclusive: opt.CostInconclusive = "0.25",
    level: opt.Level = 0.9,
    up_to: opt.UpTo = None,
    out: opt.Out = None,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write the scores as Parquet.")] = False,
    memory: opt.Memory = None,
    as_json: opt.Json = False,
) -> None:
    """Estimate prevalence and error rates from repeated yes/no results, score everyone, and decide.

    Example: `binreps analyse tests.csv --individual patient --result test --out results`
    """
    columns = opt.make_columns(locals())
    prior = opt.make_prior(prior_prevalence, prior_false_positive, prior_false_negative)
    loss = opt.make_loss(cost_false_positive, cost_false_negative, cost_inconclusive)
    settings = opt.make_settings(method, prior, loss, level, up_to)
    _check_folder(out)
    if by:
        if population or truth:
            raise OptionError("--by fits each group on its own; it goes without --population and --truth")
        _by(data, by, columns, settings, out, memory, as_json)
        return
    name, path = None, data
    if not data:
        name, path, truth = "Bundled example: a synthetic screening study", [str(SCREENING_FILE)], "truth"
    with busy("reading and fitting"):
        analysis = analyse_file(
            path or (), settings, population=population, truth=truth, memory=memory, name=name, **columns
        )
    _print(analysis, as_json)
    if out is not None:
        with busy("writing"):
            files = write_folder(analysis, out, parquet=parquet, memory=memory)
        if not as_json:
            print(f"\nWritten to {out}: {', '.join(file.name for file in files)}")


def _print(analysis: Analysis, as_json: bool) -> None:
    """The analysis for a person or for a machine."""
    if as_json:
        print(json.dumps(summary(analysis), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        render(analysis, Console())


def _check_folder(out: Path | None) -> None:
    """Refuse a folder that cannot be made, before any work."""
    if out is not None and out.exists() and not out.is_dir():
        raise OptionError(f"--out must name a folder, got the file {out}")


def _by(
    data: list[str] | None,
    by: list[str],
    columns: Any,
    settings: Settings,
    out: Path | None,
    memory: str | None,
    as_json: bool,
) -> None:
    """One fit per group, as one table."""
    if not data:
        raise OptionError("--by needs a file")
    find_files(data)
    guess = guess_columns(peek(data), columns, by)
    wanted = [*Roles.of(**guess.columns).used, *by]
    target = None if out is None else out / "groups.csv"
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        check_target(target, find_files(data))
    with (
        open_files(data, wanted, memory=memory) as relation,
        bar("fitting groups") as progress,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        how: Any = {"method": settings.method, "level": settings.level, **guess.columns}
        if settings.prior != Settings().prior:
            how["prior"] = settings.prior
        answers = fit_by(relation, by=by, progress=progress, **how)
        rows = answers.fetchall()
        table = Table({name: [row[i] for row in rows] for i, name in enumerate(answers.columns)})
    if target is not None:
        write_table(table, target)
    notes = [*guess.notes, *(str(warning.message) for warning in caught), *_untold(table)]
    _print_groups(table, as_json, notes)
    if target is not None and not as_json:
        print(f"\nWritten to {target}")


def _untold(table: Table) -> list[str]:
    """In how many groups the estimates rest on the prior."""
    untold = sum(value is False for value in table["identifiable"])
    rule = "the data alone cannot tell prevalence and error rates apart: the estimates rest on the prior"
    return [f"in {untold:,} of {len(table):,} groups {rule}"] if untold else []


def _print_groups(table: Table, as_json: bool, notes: list[str]) -> None:
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
