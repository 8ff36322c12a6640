"""`binreps table`, `simulate` and `theory`: the next individual, data from the model, what to expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from binreps.cli import options as opt
from binreps.cli.progress import busy
from binreps.cli.render import grid
from binreps.cli.score import saved_fit, saved_loss
from binreps.decide.loss import decision_table
from binreps.errors import OptionError
from binreps.model import Rates
from binreps.options import check_whole
from binreps.run.save import read_json
from binreps.show.summary import table_rows
from binreps.study import theory
from binreps.study.simulate import Simulation, simulate
from binreps.table import Table
from binreps.tables.write import check_target, write_table

Prevalence = Annotated[float, typer.Option("--prevalence", help="Share of truly positive individuals.")]
FalsePositive = Annotated[float, typer.Option("--false-positive", help="Chance to err on a negative.")]
FalseNegative = Annotated[float, typer.Option("--false-negative", help="Chance to err on a positive.")]


def table_command(
    model: Annotated[Path, typer.Option("--model", help="summary.json of an analysis, or a saved fit.")],
    up_to: Annotated[int, typer.Option("--up-to", help="The largest number of replicates.")] = 6,
    population: Annotated[str | None, typer.Option("--population", help="Which one, of several.")] = None,
    cost_false_positive: Annotated[float | None, typer.Option(help="Instead of the analysis's.")] = None,
    cost_false_negative: Annotated[float | None, typer.Option(help="Instead of the analysis's.")] = None,
    cost_inconclusive: Annotated[str | None, typer.Option(help="Instead of the analysis's.")] = None,
    level: opt.Level = 0.9,
    out: Annotated[Path | None, typer.Option("--out", help="File to write: .csv or .parquet.")] = None,
    as_json: opt.Json = False,
) -> None:
    """What to answer for the next individual, by an earlier fit, perhaps at other costs.

    Example: `binreps table --model results/summary.json --up-to 4 --cost-false-negative 5`
    """
    fit, saved = saved_fit(model), saved_loss(read_json(model))
    fits = {str(name): one for name, one in fit.parts.items()}
    if None not in fit.parts:
        if population not in fits:
            raise OptionError(f"--population must be one of {', '.join(fits)}, got {population!r}")
        fit = fits[population]
    loss = opt.make_loss(
        saved.false_positive if cost_false_positive is None else cost_false_positive,
        saved.false_negative if cost_false_negative is None else cost_false_negative,
        cost_inconclusive or _text_of(saved.inconclusive),
    )
    with busy("deciding"):
        table = decision_table(fit, loss, up_to, level=level)
    _show(table, out, as_json)


def _text_of(cost: float | tuple[float, float]) -> str:
    """The cost of an inconclusive answer as its option takes it."""
    return ",".join(map(repr, cost)) if isinstance(cost, tuple) else repr(cost)


def simulate_command(
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv or .parquet.")],
    prevalence: Prevalence = 0.3,
    false_positive: FalsePositive = 0.1,
    false_negative: FalseNegative = 0.05,
    individuals: Annotated[int, typer.Option("--individuals", help="How many.")] = 200,
    replicates: Annotated[
        str, typer.Option("--replicates", help="A number, or a range of which each draws one: 2-6.")
    ] = "2-6",
    long: Annotated[bool, typer.Option("--long", help="One row per replicate, instead of counts.")] = False,
    seed: opt.Seed = 1,
) -> None:
    """Data from the model, with the true statuses, for trying things out.

    Example: `binreps simulate --individuals 500 --replicates 3-5 --out example.csv`
    """
    check_target(out)
    rates = Rates(prevalence, false_positive, false_negative)
    simulation = simulate(rates, individuals, _replicates(replicates), seed)
    names = [f"I{i:0{len(str(individuals))}d}" for i in range(1, individuals + 1)]
    if long:
        rows = list(simulation.long(seed))
        table = Table(
            {
                "individual": [names[row["individual"]] for row in rows],
                "result": [row["result"] for row in rows],
                "truth": [int(simulation.truth[row["individual"]]) for row in rows],
            }
        )
    else:
        table = Table({"individual": names, **_columns(simulation)})
    write_table(table, out)
    print(f"Written to {out}: {individuals:,} individuals, {int(simulation.n.sum()):,} replicates")


def _columns(simulation: Simulation) -> dict[str, list[int]]:
    """Counts and truth of each individual."""
    return {name: getattr(simulation, name).tolist() for name in ("n", "s", "truth")}


def theory_command(
    prevalence: Prevalence = 0.3,
    false_positive: FalsePositive = 0.1,
    false_negative: FalseNegative = 0.05,
    replicates: Annotated[
        str, typer.Option("--replicates", help="A number, or a range shared evenly: 2-6.")
    ] = "2-6",
    individuals: Annotated[int, typer.Option("--individuals", help="How many.")] = 200,
    as_json: opt.Json = False,
) -> None:
    """What the average and the median make of the prevalence, in closed form: bias and spread.

    Example: `binreps theory --prevalence 0.05 --false-positive 0.1 --replicates 3`
    """
    check_whole("--individuals", individuals, 1)
    rates = Rates(prevalence, false_positive, false_negative)
    _show(theory_table(rates, _replicates(replicates), individuals), None, as_json)


def theory_table(rates: Rates, sizes: list[int], individuals: int) -> Table:
    """Bias, spread and total error of the two simple estimates of the prevalence."""
    errors = {name: theory.prevalence_error(sizes, rates, score=name) for name in get_args(theory.Score)}
    shrink = len(sizes) / individuals  # the sizes stand for equal shares of the individuals
    columns: dict[str, Any] = {"estimate": list(errors), "bias": [error.bias for error in errors.values()]}
    columns["sd"] = [(error.variance * shrink) ** 0.5 for error in errors.values()]
    both = zip(columns["bias"], columns["sd"], strict=True)
    columns["root_mean_square_error"] = [(bias**2 + sd**2) ** 0.5 for bias, sd in both]
    low, high = theory.median_more_biased(sizes, rates.false_positive, rates.false_negative)
    note = f"The median is more biased than the average for prevalences between {low:.3f} and {high:.3f}."
    return Table(columns, note=note if low < high else "")


def _replicates(text: str) -> list[int]:
    """A number of replicates, or a range."""
    ends = text.split("-")
    if not all(end.strip().isdigit() for end in ends) or len(ends) > 2 or int(ends[0]) > int(ends[-1]):
        raise OptionError(f"--replicates must be a number or a range such as 2-6, got {text!r}")
    if int(ends[-1]) > 10**6:
        raise OptionError(f"--replicates must be at most 1,000,000, got {text!r}")
    return list(range(int(ends[0]), int(ends[-1]) + 1))


def _show(table: Table, out: Path | None, as_json: bool) -> None:
    """A table on the terminal, as JSON, and in a file."""
    if out is not None:
        check_target(out)
        write_table(table, out)
    if as_json:
        print(json.dumps(table_rows(table), ensure_ascii=False, allow_nan=False, indent=1))
        return
    console = Console()
    console.print(grid(table))
    if table.note:
        console.print(table.note, style="dim", markup=False, highlight=False)
    if out is not None:
        print(f"Written to {out}")
