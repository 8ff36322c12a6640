"""An analysis by source as a report, a folder and plain values; computes nothing."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from binreps._version import __version__
from binreps.decide.evaluate import Evaluation
from binreps.decide.loss import Loss, decision_words
from binreps.fits.sources import SourcesFit
from binreps.run.by_source import SourceAnalysis
from binreps.run.methods import METHODS
from binreps.run.recipe import recipe_of
from binreps.run.save import fit_to_dict, write_json
from binreps.run.scores import scored
from binreps.show.folder import new_files
from binreps.show.plot_sources import sources as draw_sources
from binreps.show.summary import VERSION, input_values, loss_values, notes_rows, plain, table_rows
from binreps.show.theme import DECISION_COLOURS, DECISION_TEXT, FONT, to_svg, trusted
from binreps.show.wording import command_words, percent, plural
from binreps.table import Table, format_value
from binreps.tables.write import write_table


def write_source_folder(
    analysis: SourceAnalysis, folder: str | Path, *, parquet: bool = False, memory: str | None = None
) -> list[Path]:
    """Write what `SourceAnalysis.write` promises; all its files appear, or none does."""
    scores = "scores.parquet" if parquet else "scores.csv"
    names = ("report.html", scores, "sources.csv", "summary.json")
    with new_files(folder, names, analysis.source) as paths, scored(analysis, memory=memory) as everyone:
        everyone.write(paths[1])
        write_table(analysis.sources, paths[2], everyone.connection)
        write_json(source_summary(analysis), paths[3])
        paths[0].write_text(source_page(analysis, everyone.rows, scores), encoding="utf-8")
    return [Path(folder, name) for name in names]


def source_summary(analysis: SourceAnalysis) -> dict[str, Any]:
    """Everything an analysis by source holds, as dictionaries, lists, numbers and text."""
    fit, readings = analysis.fit, analysis.fit.readings
    return {
        "schema": "binreps analysis",
        "version": VERSION,
        "binreps": __version__,
        "input": input_values(analysis.source),
        "recipe": recipe_of(analysis.source),
        "options": {
            "method": "sources",
            "loss": loss_values(analysis.settings.loss),
            "level": analysis.settings.level,
        },
        "data": {
            "individuals": readings.individuals,
            "readings": readings.readings,
            "sources": len(readings.sources),
            "records": len(readings),
            "identifiable": fit.identifiable,
        },
        "answers": analysis.answers,
        "prevalence": {name: plain(value) for name, value in analysis.prevalence._asdict().items()},
        "sources": table_rows(analysis.sources),
        "population_of_sources": table_rows(analysis.population),
        "judged": None if analysis.judged is None else _judged(analysis.judged),
        "numerical_error": fit.error,
        "rhat": fit.rhat,
        "effective_draws": fit.effective,
        "findings": table_rows(analysis.findings.table()),
        "notes": notes_rows(analysis.notes),
        "methods": methods_words(analysis),
        "command": source_command(analysis),
        "fit": fit_to_dict(fit),
    }


def _judged(result: Evaluation) -> dict[str, Any]:
    """How good the answers were."""
    return {row["measure"]: plain(row["value"]) for row in result.summary()}


def methods_words(analysis: SourceAnalysis) -> str:
    """The methods, ready to paste."""
    fit, readings = analysis.fit, analysis.fit.readings
    chains = fit.posterior.sampled.logs.shape[2]
    data = (
        f"{plural(readings.individuals, 'individual')} were read {readings.readings:,} times by "
        f"{plural(len(readings.sources), 'source')}."
    )
    how = (
        f"Readings of one individual were taken to be independent given its status. "
        f"{METHODS['sources'].sentence} "
        f"There were {chains} chains (largest split R̂ {fit.rhat:.3f}); the numerical error of every rate is "
        f"below {fit.error:.2f} posterior standard deviations. Intervals are equal-tailed credible intervals "
        f"of {analysis.settings.level:.0%}."
    )
    return f"{data} {how} Decisions: {analysis.settings.loss}. binreps {__version__}."


def source_command(analysis: SourceAnalysis, out: str | None = None) -> str:
    """The command that repeats the analysis."""
    return command_words(analysis.source, analysis.settings, out)


def explain_readings(said: Any, fit: SourcesFit, loss: Loss, *, new: bool = False) -> str:
    """Why an individual is negative, inconclusive or positive, by who said what.

    Parameters
    ----------
    said : mapping of source to answer
        0, 1, or (n, s).
    fit : SourcesFit
    loss : Loss
    new : bool
        Whether the individual is new, rather than one the fit was made from.

    Examples
    --------
    >>> from binreps.fits.sources import fit_sources
    >>> from binreps.readings import Readings
    >>> rows = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> fit = fit_sources(Readings.wide(rows, ["ann", "bob", "eve"], [30, 20, 20, 30]), rng=1)
    >>> print(explain_readings({"eve": 1}, fit, Loss()))  # doctest: +ELLIPSIS
    A yes by eve multiplies the odds of being positive by 1.... Before any reading the probability was
    50..., and
    with these it is 6...: ...
    """
    rates = {name: (p, q) for name, p, q in zip(fit.sources, *list(fit.rates)[1:], strict=True)}
    any_of = float(fit.posterior.mean[-4]), float(fit.posterior.mean[-2])
    words = []
    for name, answer in said.items():
        n, s = answer if isinstance(answer, tuple | list) else (int(answer is not None), answer or 0)
        p, q = rates.get(name, any_of)
        for times, word, factor in ((s, "yes", (1 - q) / p), (n - s, "no", q / (1 - p))):
            if times:
                often = f"{times} × {word}" if times > 1 else f"a {word}"
                words.append(
                    f"{often} by {name} multiplies the odds of being positive by {factor**times:.3g}"
                )
    score = float((fit.predict if new else fit.score)(said))
    answer = decision_words(loss.classify(score))
    costs = ", ".join(f"{cost:.3g}" for cost in loss.risks(score))
    who = "; ".join(words).capitalize() if words else "Nobody read it"
    before = f"Before any reading the probability was {percent(fit.rates.prevalence)}"
    rest = f"the answers negative, inconclusive and positive would cost {costs}, so the cheapest is {answer}"
    return f"{who}. {before}, and with these it is {percent(score)}: {rest}."


def source_page(analysis: SourceAnalysis, individuals: Table | None = None, scores_file: str = "") -> str:
    """The report of an analysis by source as one HTML page."""
    from markupsafe import Markup

    with trusted():
        figure = Markup(_hover(to_svg(draw_sources(analysis.fit, level=analysis.settings.level))))
    return str(
        _template().render(
            analysis=analysis,
            fit=analysis.fit,
            readings=analysis.fit.readings,
            rows=list(analysis.sources),
            figure=figure,
            individuals=individuals,
            scores_file=scores_file,
            methods=methods_words(analysis),
            command=source_command(analysis, "results"),
            version=__version__,
            colours=DECISION_COLOURS,
            inks=DECISION_TEXT,
            font=FONT,
            shown=format_value,
            plural=plural,
            percent=percent,
            total=max(sum(analysis.answers.values()), 1),
        )
    )


@cache
def _template() -> Any:
    """The page, in the style of the report, with everything that is filled in escaped."""
    from jinja2 import Environment, StrictUndefined

    style = (files("binreps.show") / "report.html").read_text(encoding="utf-8")
    style = style[style.index("<style>") : style.index("</style>")]
    text = (files("binreps.show") / "sources.html").read_text(encoding="utf-8")
    whole = text.replace("<style>", style)
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(whole)


def _hover(svg: str) -> str:
    """A name for each mark that browsers show when the mouse is over it."""
    return re.sub(r'<path aria-label="([^"]+)"([^>]*)/>', r"<path\2><title>\1</title></path>", svg)
