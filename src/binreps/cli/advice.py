"""`binreps next`, `plan` and `prior`: whom to measure again, how large a study, what is already believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from binreps.cli import options as opt
from binreps.cli.progress import bar, busy
from binreps.cli.read import guess_lines
from binreps.cli.render import grid
from binreps.cli.score import model_recipe, opened_like, saved_fit, saved_loss
from binreps.decide import elicit
from binreps.decide.loss import Loss
from binreps.decide.plan import plan
from binreps.decide.stopping import NextReplicates, StoppingTable, next_replicates, stopping_table
from binreps.errors import OptionError
from binreps.model import Prior, Rates
from binreps.run.save import read_json
from binreps.show import plot
from binreps.show.summary import table_rows
from binreps.show.wording import command_options
from binreps.table import Table
from binreps.tables.guess import Guess
from binreps.tables.join import Adding, in_order, joined
from binreps.tables.opened import OpenTable, arrow_rows, read
from binreps.tables.write import check_target, write_file, write_table

_SIZES = "25,50,100,200,400,800"
_SHOWN = 15  # individuals that are named


def next_command(
    data: Annotated[
        list[str] | None, typer.Argument(help="Files with the individuals to choose from, if any.")
    ] = None,
    model: Annotated[
        Path, typer.Option("--model", help="summary.json of an analysis, or a saved fit.")
    ] = ...,  # type: ignore[assignment]
    cost_per_replicate: Annotated[
        float, typer.Option("--cost-per-replicate", help="In the unit of the costs of an answer.")
    ] = 0.01,
    max_replicates: Annotated[int, typer.Option("--max-replicates", help="The most anyone can have.")] = 10,
    budget: Annotated[int, typer.Option("--budget", help="Replicates to spend now.")] = 200,
    out: Annotated[Path | None, typer.Option("--out", help="File to write: .csv or .parquet.")] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Picture of the rule: .svg, .png.")] = None,
    individual: opt.Individual = None,
    result: opt.Result = None,
    replicates: opt.Replicates = None,
    n: opt.N = None,
    s: opt.S = None,
    positive: opt.Positive = None,
    negative: opt.Negative = None,
    missing: opt.Missing = None,
    new: Annotated[bool, typer.Option("--new", help="They were not in the data of the fit.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Another replicate, or enough? The best rule for one individual, and whom to measure again now.

    Example: `binreps next --model results/summary.json --cost-per-replicate 0.02 --budget 50`
    """
    fit, loss = saved_fit(model), saved_loss(read_json(model))
    if None not in fit.parts:
        raise OptionError("next takes a fit of one population; analyse that population on its own")
    costs: dict[str, Any] = {"cost_per_replicate": cost_per_replicate}
    if data:
        columns = opt.make_columns(locals())
        if out is None:
            raise OptionError("--out must name the file for the individuals")
        recipe = None if columns else model_recipe(model)
        with opened_like(recipe, data, columns, []) as (opened, guess):
            _write_individuals(opened, guess, out, (fit, loss, new), {"budget": budget, **costs})
        if figure is not None:
            plot.save(
                plot.stopping(stopping_table(fit, loss, max_replicates=max_replicates, **costs)), figure
            )
        print("Written to", " and ".join(str(path) for path in (out, figure) if path is not None))
        return
    with busy("looking ahead"):
        rule = stopping_table(fit, loss, max_replicates=max_replicates, **costs)
        again = next_replicates(fit.counts, fit, loss, budget=budget, **costs)
    if out is not None:
        check_target(out)
        write_table(rule.table(), out)
    if figure is not None:
        plot.save(plot.stopping(rule), figure)
    if as_json:
        content = {"rule": table_rows(rule.table()), "measure_again": table_rows(again.table())}
        print(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1))
        return
    _print_advice(rule, again)
    if out is not None:
        print(f"Written to {out}")


def _print_advice(rule: StoppingTable, again: NextReplicates) -> None:
    """The rule for the next individual, and whom of the data to measure again."""
    print("The next individual: measure, or answer?", rule, sep="\n")
    print("\nIn the data: whom to measure again?")
    rows = sorted((row for row in again.table() if row["rank"]), key=lambda row: row["rank"])
    shown = ("rank", "n", "s", "individuals", "probability", "decision", "worth", "measure")
    Console().print(grid(Table({name: [row[name] for row in rows] for name in shown})))
    print(again.table().note)


def _print_first(rows: Any, guess: Guess) -> None:
    """Those to measure again first, by name."""
    individual = guess.columns.get("individual") or ()
    own = [individual] if isinstance(individual, str) else list(individual)
    names = [name for name in (*own, "n", "s", "score", "decision", "worth") if name in rows.column_names]
    print("Whom to measure again first:")
    Console().print(grid(Table({name: rows.column(name).to_pylist() for name in names})))


def _write_individuals(
    opened: OpenTable, guess: Guess, out: Path, by: tuple[Any, Loss, bool], how: dict[str, Any]
) -> None:
    """Everyone in the files with score, decision and rank, those to measure first on top."""
    check_target(out, opened.paths)
    for line in guess_lines(guess):
        print(line)
    reading = read(opened, guess.columns, numbered=True)
    fit, loss, new = by
    with busy("looking ahead"):
        again = next_replicates(reading.everyone, fit, loss, new=new, **how)
    answers, notes = joined(reading, Adding([fit, again], loss, new=new))
    first = arrow_rows(in_order(answers.filter("measure <> 'no'"), "rank").limit(_SHOWN))
    write_file(in_order(answers, "rank"), out)
    for note in (*guess.notes, *reading.notes, *notes):
        print(f"• {note}")
    _print_first(first, guess)


def plan_command(
    prevalence: Annotated[float, typer.Option("--prevalence", help="What you expect.")] = 0.3,
    false_positive: Annotated[float, typer.Option("--false-positive", help="What you expect.")] = 0.1,
    false_negative: Annotated[float, typer.Option("--false-negative", help="What you expect.")] = 0.1,
    prevalence_width: Annotated[
        float | None,
        typer.Option("--prevalence-width", help="Goal: width of the prevalence's interval."),
    ] = None,
    error_margin: Annotated[
        float | None, typer.Option("--error-margin", help="Goal: both error rates known to ± this.")
    ] = None,
    inconclusive: Annotated[
        float | None, typer.Option("--inconclusive", help="Goal: at most this share without an answer.")
    ] = None,
    risk: Annotated[float | None, typer.Option("--risk", help="Goal: a mean cost of at most this.")] = None,
    individuals: Annotated[
        str, typer.Option("--individuals", help="Sizes to try; between the usual ones it looks for more.")
    ] = _SIZES,
    replicates: Annotated[str, typer.Option("--replicates", help="Replicates to try.")] = "2,3,4,5,6,8",
    cost_per_individual: Annotated[float, typer.Option("--cost-per-individual")] = 0,
    cost_per_replicate: Annotated[float, typer.Option("--cost-per-replicate")] = 1,
    max_tests: Annotated[int | None, typer.Option("--max-tests", help="The most replicates in all.")] = None,
    max_cost: Annotated[float | None, typer.Option("--max-cost", help="The most it may cost.")] = None,
    assurance: Annotated[float, typer.Option("--assurance", help="Probability of reaching the goal.")] = 0.8,
    better_than_chance: opt.BetterThanChance = False,
    level: opt.Level = 0.9,
    data_sets: Annotated[int, typer.Option("--data-sets", help="Simulated per design, at most.")] = 400,
    seed: opt.Seed = 1,
    out: Annotated[Path | None, typer.Option("--out", help="File to write: .csv or .parquet.")] = None,
    as_json: opt.Json = False,
) -> None:
    """How many individuals, how many replicates each? The cheapest design that reaches a goal.

    Example: `binreps plan --prevalence 0.1 --prevalence-width 0.1 --cost-per-individual 5`
    """
    goals: Any = {
        "prevalence_width": prevalence_width,
        "error_margin": error_margin,
        "inconclusive": inconclusive,
        "risk": risk,
    }
    if not any(value is not None for value in goals.values()):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in goals)
        raise OptionError(f"plan needs a goal, one of {options}")
    if out is not None:
        check_target(out)
    with bar("simulating studies") as progress:
        result = plan(
            Rates(prevalence, false_positive, false_negative),
            prior=Prior(better_than_chance=better_than_chance),
            rng=seed,
            individuals=_sizes("--individuals", individuals),
            replicates=_sizes("--replicates", replicates),
            cost_per_individual=cost_per_individual,
            cost_per_replicate=cost_per_replicate,
            max_tests=max_tests,
            max_cost=max_cost,
            assurance=assurance,
            level=level,
            refine=individuals == _SIZES,
            data_sets=data_sets,
            progress=progress,
            **goals,
        )
    if out is not None:
        write_table(result.table(), out)
    print(json.dumps(table_rows(result.table()), indent=1) if as_json else result)


def prior_command(
    rate: Annotated[
        str, typer.Argument(help="prevalence, false_positive, false_negative, sensitivity or specificity.")
    ],
    expect: Annotated[float | None, typer.Option("--expect", help="Your best guess.")] = None,
    surprised_above: Annotated[float | None, typer.Option("--surprised-above")] = None,
    surprised_below: Annotated[float | None, typer.Option("--surprised-below")] = None,
    between: Annotated[str | None, typer.Option("--between", help="A 90% range: 0.01,0.2.")] = None,
    share: Annotated[float | None, typer.Option("--share", help="What an earlier study found.")] = None,
    of: Annotated[float | None, typer.Option("--of", help="How many individuals that study had.")] = None,
    discount: Annotated[float, typer.Option("--discount", help="How much of that study to believe.")] = 1.0,
    better_than_chance: opt.BetterThanChance = False,
    as_json: opt.Json = False,
) -> None:
    """From what you know to a prior, shown back as quantiles.

    Example: `binreps prior prevalence --expect 0.05 --surprised-above 0.2`
    """
    values = expect, surprised_above, surprised_below, between, share, of, discount
    belief = _belief(rate, *values, better_than_chance)
    if as_json:
        content = {"rate": belief.model_rate, "shapes": list(belief.shapes), "said": belief.said}
        print(json.dumps({**content, "better_than_chance": better_than_chance}))
        return
    print(belief)
    switch = " --better-than-chance" if better_than_chance else ""
    print(f"\nTo use it: binreps analyse … {command_options(belief.model_rate, belief.shapes)}{switch}")


def _belief(
    rate: str,
    expect: float | None,
    above: float | None,
    below: float | None,
    between: str | None,
    share: float | None,
    of: float | None,
    discount: float,
    better: bool,
) -> elicit.Belief:
    """The one way of saying it that was used."""
    ways = [expect is not None, between is not None, share is not None or of is not None]
    if sum(ways) != 1:
        ways_words = "--expect with --surprised-above or -below, --between, or --share with --of"
        raise OptionError(f"say it in one way: {ways_words}")
    if expect is not None:
        return elicit.guess(
            rate, expect, surprised_above=above, surprised_below=below, better_than_chance=better
        )
    if between is not None:
        low, high = opt.numbers("--between", between, 2)
        return elicit.between(rate, low, high, better_than_chance=better)
    if share is None or of is None:
        raise OptionError("--share and --of go together")
    return elicit.study(rate, of=of, share=share, discount=discount, better_than_chance=better)


def _sizes(option: str, text: str) -> list[int]:
    """Whole numbers with commas between."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise OptionError(f"{option} must be whole numbers with commas between, got {text!r}") from None
