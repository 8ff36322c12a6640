"""The options that several commands share, and what they become."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from binreps.decide.loss import Loss
from binreps.errors import OptionError
from binreps.model import Prior
from binreps.run.analysis import Settings
from binreps.run.methods import METHODS
from binreps.run.models import AUTO, MODELS
from binreps.tables.roles import PARTS, Columns
from binreps.words import unlisted

_COLUMNS, _CHOICES, _COSTS = "Columns (guessed if not named)", "Choices", "Costs of an answer"


def _column(part: str) -> Any:
    """An option that names a column, or a label in one."""
    one = PARTS[part]
    option = f"--{one.option or part}"
    return typer.Option(option, help=one.help, rich_help_panel=_COLUMNS, show_default=False)


def _cost(name: str, text: str) -> Any:
    """An option with a cost."""
    return typer.Option(name, help=text, rich_help_panel=_COSTS)


def _choice(name: str, text: str) -> Any:
    """Any other option."""
    return typer.Option(name, help=text, rich_help_panel=_CHOICES)


Data = Annotated[
    list[str] | None,
    typer.Argument(help="CSV, Parquet, Arrow or .xlsx files, or a pattern; without, the bundled example."),
]
Individual = Annotated[list[str] | None, _column("individual")]
Result = Annotated[str | None, _column("result")]
Replicates = Annotated[list[str] | None, _column("replicates")]
N = Annotated[str | None, _column("n")]
S = Annotated[str | None, _column("s")]
Weight = Annotated[str | None, _column("weight")]
Known = Annotated[str | None, _column("known")]
Truth = Annotated[str | None, _column("truth")]
Population = Annotated[str | None, _column("population")]
Source = Annotated[str | None, _column("source")]
Covariates = Annotated[list[str] | None, _column("covariates")]
Time = Annotated[str | None, _column("time")]
Batch = Annotated[str | None, _column("batch")]
Positive = Annotated[list[str] | None, _column("positive")]
Negative = Annotated[list[str] | None, _column("negative")]
Missing = Annotated[list[str] | None, _column("missing")]
Model = Annotated[str, _choice("--model", f"What is assumed: {', '.join((AUTO, *MODELS))}.")]
Method = Annotated[str, _choice("--method", f"How rates are estimated: {', '.join(METHODS)}.")]
PriorPrevalence = Annotated[str, _choice("--prior-prevalence", "Shapes of its Beta prior.")]
PriorFalsePositive = Annotated[str, _choice("--prior-false-positive", "The same, cut to (0, ½).")]
PriorFalseNegative = Annotated[str, _choice("--prior-false-negative", "The same, cut to (0, ½).")]
BetterThanChance = Annotated[
    bool,
    _choice(
        "--better-than-chance",
        "Error rates may be above ½ and add up to less than 1: for a test that may miss more than it finds.",
    ),
]
CostFalsePositive = Annotated[float, _cost("--cost-false-positive", "Of a positive answer that is wrong.")]
CostFalseNegative = Annotated[float, _cost("--cost-false-negative", "Of a negative answer that is wrong.")]
CostInconclusive = Annotated[
    str,
    _cost("--cost-inconclusive", "Of no answer; or two, if truly negative and truly positive: 0.1,0.3."),
]
Independent = Annotated[
    bool,
    _choice("--independent", "Readings of one individual by its sources are independent given its status."),
]
Merge = Annotated[
    list[str] | None,
    _choice("--merge", "Sources to take for one, such as ann,bob of whom one copies the other; may repeat."),
]
Level = Annotated[float, _choice("--level", "Probability that intervals hold.")]
UpTo = Annotated[
    int | None, _choice("--up-to", "Replicates of the decision table; as many as anyone had, if not given.")
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", help="The sheet of a workbook; the first if not given.", rich_help_panel=_COLUMNS
    ),
]
Recipe = Annotated[
    Path | None,
    typer.Option(
        "--recipe",
        help="Read the file exactly as this recipe says: one that `binreps read` saved, or a summary.json.",
        rich_help_panel=_COLUMNS,
        show_default=False,
    ),
]
Memory = Annotated[str | None, _choice("--memory", "The most memory to use, such as 4GB.")]
Json = Annotated[bool, _choice("--json", "Print JSON for machines.")]
Out = Annotated[Path | None, _choice("--out", "Folder for the report, scores, decision table and summary.")]
Title = Annotated[str, _choice("--title", "Of the report; the file's name if not given.")]
Author = Annotated[str, _choice("--author", "Of the report.")]
Seed = Annotated[int, _choice("--seed", "Seed of the random numbers.")]


def make_columns(given: dict[str, Any]) -> Any:
    """The columns among the arguments of a command, as keywords of `count_table`."""
    columns = {part: given[part] for part in Columns.__annotations__ if given.get(part) not in (None, [])}
    if "covariates" in columns:  # age,site or one by one
        columns["covariates"] = [name for each in columns["covariates"] for name in each.split(",") if name]
    if len(columns.get("individual", ())) == 1:
        (columns["individual"],) = columns["individual"]
    return columns


def make_prior(prevalence: str, false_positive: str, false_negative: str, better_than_chance: bool) -> Prior:
    """A prior from three pairs of shapes, and where the error rates may lie."""
    return Prior(
        numbers("--prior-prevalence", prevalence, 2),
        numbers("--prior-false-positive", false_positive, 2),
        numbers("--prior-false-negative", false_negative, 2),
        better_than_chance,
    )


def make_loss(false_positive: float, false_negative: float, inconclusive: str) -> Loss:
    """A loss from its costs."""
    costs = numbers("--cost-inconclusive", inconclusive)
    return Loss(false_positive, false_negative, costs if len(costs) == 2 else costs[0])


def make_settings(
    method: str,
    prior: Prior,
    loss: Loss,
    level: float,
    up_to: int | None,
    model: str = AUTO,
    independent: bool = False,
    merge: list[str] | None = None,
) -> Settings:
    """What the user chose, checked."""
    groups = tuple(unlisted(group) for group in merge or ())
    return Settings(method.lower(), prior, loss, level, up_to, model.lower(), independent, groups)


def numbers(option: str, text: str, wanted: int | None = None) -> Any:
    """One or two numbers with a comma between."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in ((wanted,) if wanted else (1, 2)):
        rule = (
            "two numbers with a comma between, such as 2,2"
            if wanted
            else "one number, or two such as 0.1,0.3"
        )
        raise OptionError(f"{option} must be {rule}, got {text!r}")
    return values
