"""`binreps score`: new individuals by an earlier fit, in files of any size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from binreps.cli import options as opt
from binreps.cli.progress import busy
from binreps.cli.read import guess_lines
from binreps.decide.loss import Loss
from binreps.errors import DataError
from binreps.run.recipe import check_recipe, load_recipe, recipe_sheet, saved_recipe
from binreps.run.save import load_fit, read_json
from binreps.tables.guess import Guess
from binreps.tables.join import Adding, write_joined
from binreps.tables.opened import OpenTable, open_table, read
from binreps.tables.roles import column_names
from binreps.tables.write import check_target

_NOT_SCORED = ("known", "truth", "population")  # parts of a recipe that a score does not need, or has already


def score_command(
    data: Annotated[list[str], typer.Argument(help="Files with new individuals.")],
    model: Annotated[Path, typer.Option("--model", help="summary.json of an analysis, or a saved fit.")],
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .csv.gz, .tsv or .parquet.")],
    individual: opt.Individual = None,
    result: opt.Result = None,
    replicates: opt.Replicates = None,
    n: opt.N = None,
    s: opt.S = None,
    weight: opt.Weight = None,
    population: opt.Population = None,
    source: opt.Source = None,
    covariates: opt.Covariates = None,
    time: opt.Time = None,
    batch: opt.Batch = None,
    positive: opt.Positive = None,
    negative: opt.Negative = None,
    missing: opt.Missing = None,
    sheet: opt.Sheet = None,
    fitted: Annotated[
        bool, typer.Option("--fitted", help="They are the individuals of the fit, not new ones.")
    ] = False,
    memory: opt.Memory = None,
) -> None:
    """Score new individuals with an earlier fit, at the costs of that analysis.

    Example: `binreps score new.parquet --model results/summary.json --out scored.parquet`
    """
    columns = opt.make_columns(locals())
    fit, saved = saved_fit(model), read_json(model)
    recipe = None if columns or population else model_recipe(model)
    if (
        fit.has_sources
        and "source" not in columns
        and (named := saved_value(saved, "input", "columns", "source"))
    ):
        columns["source"] = named
    population = population or saved_value(saved, "input", "population")
    several = None not in fit.parts or fit.prevalence_table() is not None
    if several and population is None:
        raise DataError("the fit has several populations; name their column with --population")
    if fit.records is not None and "covariates" not in columns:
        columns["covariates"] = list(fit.records.names)
    level = saved_value(saved, "options", "level") or 0.9
    adding = Adding([fit], saved_loss(saved), new=not fitted, level=level)
    apart = [population] if population else []
    with opened_like(recipe, data, columns, apart, memory, sheet) as (opened, guess):
        check_target(out, opened.paths)
        with busy("scoring"):
            reading = read(opened, guess.columns, population, numbered=True)
            notes = write_joined(reading, adding, out)
    for line in guess_lines(guess):
        print(line)
    heard = [note for note in reading.notes if not (fit.has_sources and note.id == "source-not-used")]
    if columns.get("covariates") or guess.columns.get("covariates"):
        heard = [note for note in heard if note.id != "covariates-not-used"]
    for note in (*guess.notes, *heard, *notes):
        print(f"• {note}")
    print(f"Written to {out}")


def model_recipe(model: Path) -> dict[str, Any] | None:
    """How the data of a fit were read; None for a fit saved alone, or of counts, which name nobody."""
    if not saved_recipe(read_json(model)):
        return None
    recipe = load_recipe(model)
    return None if recipe["kind"] == "cells" else recipe


@contextmanager
def opened_like(
    recipe: dict[str, Any] | None,
    data: list[str],
    columns: Any,
    apart: list[str],
    memory: str | None = None,
    sheet: str | None = None,
) -> Iterator[tuple[OpenTable, Guess]]:
    """Files with their columns: those of a recipe, which they must match, or named and guessed ones."""
    if recipe is not None:
        columns = {part: name for part, name in recipe["columns"].items() if part not in _NOT_SCORED}
        sheet = sheet or recipe_sheet(recipe, data)
    wanted = [*column_names(columns), *apart]
    with open_table(data, [] if recipe else wanted, memory=memory, sheet=sheet) as opened:
        if recipe is not None:
            check_recipe(recipe, opened, wanted)
        yield opened, opened.guess(columns, apart)


def saved_fit(model: Path) -> Any:
    """The fit of an earlier analysis; it is made again, which may take a while."""
    with busy("fitting again"):
        return load_fit(model)


def saved_value(content: Any, *keys: str) -> Any:
    """A value inside a summary; None where it has none."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def saved_loss(content: Any) -> Loss:
    """The costs of the earlier analysis; the usual ones for a fit saved alone."""
    costs = saved_value(content, "options", "loss")
    if not isinstance(costs, dict):
        return Loss()
    pair = costs.get("inconclusive_negative"), costs.get("inconclusive_positive")
    both: Any = pair[0] if pair[0] == pair[1] else pair
    given: Any = (costs.get("false_positive"), costs.get("false_negative"), both)
    return Loss(*given)
