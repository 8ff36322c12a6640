"""`binreps analyse`: the whole analysis of a file, printed and written."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from binreps.cli import options as opt
from binreps.cli.progress import busy
from binreps.cli.render import render
from binreps.errors import OptionError
from binreps.run.analysis import Analysis
from binreps.run.front import analysing
from binreps.run.models import AUTO
from binreps.study.datasets import SCREENING_FILE


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
        from binreps.cli.by import analyse_groups  # who asks for one analysis waits for no batches

        analyse_groups(
            data, by, columns, settings, out, {"memory": memory, "sheet": sheet}, as_json, (title, author)
        )
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
        from binreps.show.summary import summary  # with what saves fits

        print(json.dumps(summary(analysis), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        render(analysis, Console())


def _check_folder(out: Path | None, on_report: str) -> None:
    """Refuse a folder that cannot be made, before any work."""
    if out is None and on_report:
        raise OptionError("--title and --author are for the report: add --out with a folder for it")
    if out is not None and out.exists() and not out.is_dir():
        raise OptionError(f"--out must name a folder, got the file {out}")
