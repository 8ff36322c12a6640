"""An analysis in the terminal: tables that stay readable in 80 columns, without colour, and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from binreps.decide.checks.findings import Findings
from binreps.run.analysis import Analysis, Part
from binreps.run.models import WAYS
from binreps.show.wording import (
    changed_words,
    chosen_words,
    method_name,
    missing_words,
    model_rows,
    named_methods,
    named_odds,
    named_rates,
    next_words,
    profile_words,
    read_words,
    retrain_words,
)
from binreps.table import Table, format_value
from binreps.words import plural

STYLES = {"negative": "black on #92c5de", "inconclusive": "black on #f7f7c6", "positive": "white on #b2182b"}
SIGNS = {"negative": "−", "inconclusive": "?", "positive": "+", None: "·"}
_SHOWN_SOURCES = 20  # in the terminal
_LATTICE = 10  # replicates up to which the decision table is drawn as a lattice


def render(analysis: Analysis, console: Console) -> None:
    """Print everything."""
    for block in blocks(analysis):
        console.print(block)


def blocks(analysis: Analysis) -> Iterator[RenderableType]:
    """The parts of the printout, in order."""
    yield _title(analysis.source.name)
    yield _indented(_read_words(analysis))
    yield from _verdict(analysis)
    for part in analysis.parts:
        yield from _part_blocks(part, analysis)
    yield _title("Checks")
    yield _indented(_findings(analysis.findings))
    if analysis.notes:
        yield _title("Please note")
        for note in analysis.notes:
            yield _indented(Text(f"• {note}"))


_LIGHTS = {"green": "black on #8fd19e", "amber": "black on #f5c542", "red": "white on #b2182b"}


def _verdict(analysis: Analysis) -> Iterator[RenderableType]:
    """Whether the results can be used, and which models were tried."""
    verdict, comparison = analysis.verdict, analysis.comparison
    yield _title("Verdict")
    head = Text(f" {verdict.word} ", style=_LIGHTS[verdict.light])
    yield _indented(head + Text(f"  {verdict.sentence}", style="default"))
    if comparison is not None:
        yield _indented(grid(model_rows(comparison)))
        yield _indented(Text(chosen_words(comparison, "command"), style="dim"))
    elif verdict.action is not None:
        yield _indented(Text(f"→ {verdict.action.words('command')}"))


def _source_blocks(part: Part) -> Iterator[RenderableType]:
    """Each source and their population, where there are any."""
    if part.sources is None or part.source_population is None:
        return
    yield _title("Sources")
    yield _indented(grid(_source_rows(part.sources)))
    if len(part.sources) > _SHOWN_SOURCES:
        more = f"… and {len(part.sources) - _SHOWN_SOURCES:,} more sources; --out writes them all"
        yield _indented(Text(more, style="dim"))
    if words := retrain_words(part.sources):
        yield _indented(Text(words))
    yield _title("Sources like these")
    yield _indented(grid(part.source_population))
    how = f"numerical error below {part.fit.error:.2f} of a standard deviation; sampled"
    yield _indented(Text(f"{part.settings.level:.0%} intervals; {how}", style="dim"))
    yield _indented(Text(f"In everyone's score, {part.fit.calibration}.", style="dim"))


def _source_rows(sources: Table) -> Table:
    """The sources with the most readings, in 80 columns."""
    rows = [row for row, _ in zip(sources, range(_SHOWN_SOURCES), strict=False)]
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in ("source", "readings")}
    columns["source"] = [str(name)[:20] for name in columns["source"]]
    for name in ("false_positive", "false_negative"):
        columns[name] = [
            f"{row[name]:.3f} ({row[name + '_lower']:.2f}–{row[name + '_upper']:.2f})" for row in rows
        ]
    return Table(columns)


def _part_blocks(part: Part, analysis: Analysis) -> Iterator[RenderableType]:
    """One population."""
    level = analysis.settings.level
    where = "" if part.name is None else f" · {part.name}"
    yield _title(f"Rates{where}")
    yield _indented(grid(named_rates(part)))
    whose = WAYS[part.believed].name
    like = "" if part.sources is None else "; its error rates are those of one more source like these"
    yield _indented(Text(f"lower, upper: {level:.0%} credible interval, {whose}{like}", style="dim"))
    if part.intraclass is not None:
        estimate, low, high = part.intraclass
        found = f"{estimate:.3f}, from {low:.3f} to {high:.3f}"
        yield _indented(Text(f"intra-class correlation of replicates: {found}"))
    yield from _source_blocks(part)
    if part.populations is not None:
        yield _title("Prevalence of each population")
        yield _indented(grid(part.populations))
    if (odds := named_odds(part)) is not None:
        yield _title(f"Odds ratios of being positive{where}")
        yield _indented(grid(odds))
    yield _title(f"Everyone in the data{where}")
    yield _indented(_answers(part.answers))
    if words := changed_words(part):
        yield _indented(Text(words))
    yield from _next_blocks(part, f"{method_name(analysis)}{where}")
    if part.judgement is not None:
        yield _title(f"Judged by column {analysis.source.truth!r}{where}")
        yield _indented(grid(named_methods(part.judgement)))


def _next_blocks(part: Part, whose: str) -> Iterator[RenderableType]:
    """What to answer for the next individual, where that depends on the numbers alone."""
    if not part.sizes:
        yield _indented(Text(str(part.settings.loss), style="dim"))
        return
    yield _title(f"The next individual, by {whose}")
    yield _indented(_decisions(part.next_answers))
    yield _indented(Text(str(part.settings.loss), style="dim"))
    yield _indented(Text(f"In short: {next_words(part)}."))
    for one in part.profiles:
        share = f"prevalence {one.fit.rates.prevalence:.3f}"
        yield _title(f"The next individual of {one.name}: {profile_words(one.covariates)} ({share})")
        yield _indented(_decisions(one.decisions))


def _findings(findings: Findings) -> RenderableType:
    """What speaks against the results, and what to do."""
    if not findings:
        return Text("nothing speaks against these results")
    lines: list[RenderableType] = []
    for one in findings:
        head = Text(f"{one.severity} ", style="bold red" if one.severity == "warning" else "bold")
        advice = Padding(Text(f"→ {one.advise('command')}"), (0, 0, 0, 2))
        lines += [head + Text(one.sentence, style="default"), advice]
    return Group(*lines)


def _title(text: str) -> Text:
    """A heading."""
    return Text(f"\n{text}", style="bold")


def _indented(block: RenderableType) -> Padding:
    """A block under its heading."""
    return Padding(block, (0, 0, 0, 2), expand=False)


def _read_words(analysis: Analysis) -> RenderableType:
    """How it was read, and what."""
    counts, source = analysis.counts, analysis.source
    sizes = [
        plural(counts.individuals, "individual"),
        f"{plural(counts.replicates, 'replicate')}, {counts.positives:,} positive",
        plural(len(counts), "cell"),
        *([plural(len(sources), "source")] if (sources := analysis.main.sources) is not None else []),
        missing_words(source),
    ]
    return Group(*map(Text, read_words(source)), Text(" · ".join(filter(None, sizes))))


def grid(table: Table) -> Grid:
    """Any small table; text flush left, numbers flush right and whole: headings and texts wrap first."""
    out = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, values in table.columns.items():
        text = any(isinstance(value, str) for value in values)
        widest = 0 if text else max((len(format_value(value)) for value in values), default=0)
        out.add_column(
            name.replace("_", " "), justify="left" if text else "right", overflow="fold", min_width=widest
        )
    for row in table:
        out.add_row(*(Text(format_value(value)) for value in row.values()))
    return out


def _answers(answers: dict[str, int]) -> RenderableType:
    """How many are negative, inconclusive and positive."""
    total = max(sum(answers.values()), 1)
    line = Text()
    for word, number in answers.items():
        line.append(f" {word} {SIGNS.get(word, '·')} ", style=STYLES.get(word, "dim"))
        line.append(f" {number:,} ({number / total:.1%})   ")
    return line


def _decisions(table: Table) -> RenderableType:
    """The decision table as a lattice, or as ranges where that would be too wide."""
    sizes = sorted(set(table["n"]))
    return _lattice(table, sizes) if sizes[-1] <= _LATTICE else _ranges(table, sizes)


def _lattice(decisions: Table, sizes: list[int]) -> RenderableType:
    """One row per number of replicates, one column per number of positives."""
    cells = {(row["n"], row["s"]): row for row in decisions}
    out = Grid(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    out.add_column("n ╲ s", justify="right")
    for s in range(sizes[-1] + 1):
        out.add_column(str(s), justify="center", no_wrap=True)
    for n in sizes:
        out.add_row(str(n), *(_cell(cells[n, s]) for s in range(n + 1)))
    legend = Text("probability of being positive; − negative, ? inconclusive, + positive", style="dim")
    return Group(out, legend)


def _cell(row: dict[str, Any]) -> Text:
    """One probability with its answer's sign and colour."""
    probability = row["probability"]
    number = (
        "–" if probability is None or probability != probability else f"{probability:.2f}".removeprefix("0")
    )
    number = "1.0" if number == "1.00" else number
    return Text(f"{number}{SIGNS[row['decision']]}", style=STYLES.get(row["decision"], ""))


def _ranges(decisions: Table, sizes: list[int]) -> RenderableType:
    """For each number of replicates, which numbers of positives get which answer."""
    out = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    out.add_column("replicates", justify="right")
    for word, style in STYLES.items():
        out.add_column(Text(f" {word} {SIGNS[word]} ", style=style))
    for n in sizes:
        rows = [row for row in decisions if row["n"] == n]
        out.add_row(str(n), *(_span(row["s"] for row in rows if row["decision"] == word) for word in STYLES))
    return out


def _span(numbers: Iterable[int]) -> str:
    """Numbers of positives as a range."""
    values = list(numbers)
    if not values:
        return "–"
    return str(values[0]) if len(values) == 1 else f"{values[0]}–{values[-1]}"
