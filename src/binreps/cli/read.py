"""`binreps read`: how a file is read, column by column, before anything is computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from binreps.cli import options as opt
from binreps.notes import Note
from binreps.run.analysis import Source
from binreps.run.front import reading_source, source_notes
from binreps.run.recipe import recipe_of
from binreps.run.save import write_json
from binreps.show.summary import notes_rows
from binreps.show.wording import missing_words
from binreps.tables.guess import Guess, QuestionError, described
from binreps.tables.opened import open_table
from binreps.tables.roles import column_names
from binreps.words import plural


def read_command(
    data: Annotated[list[str], typer.Argument(help="CSV, Parquet, Arrow or .xlsx files, or a pattern.")],
    save: Annotated[
        Path | None, typer.Option("--save", help="File for the recipe, which --recipe takes: .json.")
    ] = None,
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
    positive: opt.Positive = None,
    negative: opt.Negative = None,
    missing: opt.Missing = None,
    sheet: opt.Sheet = None,
    memory: opt.Memory = None,
    as_json: opt.Json = False,
) -> None:
    """Show the part of every column and every odd word, and keep how a file is read.

    Example: `binreps read t.xlsx --save recipe.json`, then `binreps analyse t.xlsx --recipe recipe.json`
    """
    given = {**opt.make_columns(locals()), "population": population}
    try:
        with reading_source(data, given, truth, memory=memory, sheet=sheet) as found:
            _show(found, given, save, as_json)
    except QuestionError:
        if not as_json:
            with open_table(data, memory=memory, sheet=sheet) as opened:
                _print_columns(described(opened.sample, given), {}, opened.name)
        raise


def _show(found: Source, given: Any, save: Path | None, as_json: bool) -> None:
    """Every column, the counts and the notes; and the recipe, kept if that is asked for."""
    assert found.reading is not None
    assert found.guess is not None
    recipe = recipe_of(found)
    assert recipe is not None
    rows = described(found.reading.table.sample, given)
    notes = source_notes(found)
    if save is not None:
        write_json(recipe, save)
    if as_json:
        columns = [{**row, "part": part_of(row["column"], recipe["columns"])} for row in rows]
        content = {"columns": columns, "recipe": recipe, "no_result": dict(found.no_result)}
        print(json.dumps({**content, "notes": notes_rows(notes)}, ensure_ascii=False, indent=1))
        return
    for line in guess_lines(found.guess):
        print(line)
    _print_columns(rows, recipe["columns"], found.name)
    counts = found.reading.everyone
    sizes = [plural(counts.individuals, "individual"), plural(counts.replicates, "replicate")]
    print(", ".join(filter(None, [*sizes, missing_words(found)])))
    _print_notes(notes, save)


def guess_lines(guess: Guess) -> list[str]:
    """How a table is read, and which columns are not used and why."""
    return [f"read as {guess}", *([f"not used: {guess.unused}"] if guess.unused else [])]


def part_of(column: str, columns: Any) -> str | None:
    """The part that a column plays."""
    return next((part for part in columns if column in column_names({part: columns[part]})), None)


def _print_columns(rows: list[dict[str, Any]], columns: Any, name: str) -> None:
    """Every column with its part, what it holds, and its odd words, one to a line."""
    print(f"\n{name}")
    for row in rows:
        part = part_of(row["column"], columns) or ("not used" if columns else "?")
        words = [f"{row['column']!r}: {part}", f"holds {row['holds']}"]
        words += [f"odd {_counted(row['odd'])}"] if row["odd"] else []
        words += [f"no result {_counted(row['no_result'])}"] if row["no_result"] else []
        print(f"  {'; '.join(words)}")


def _counted(words: dict[str, int]) -> str:
    """Words with their numbers."""
    return ", ".join(f"{word!r} ({number:,})" for word, number in words.items())


def _print_notes(notes: tuple[Note, ...], save: Path | None) -> None:
    """What to know, and where the recipe is."""
    for note in notes:
        print(f"• {note}")
    if save is not None:
        print(f"Written to {save}")
