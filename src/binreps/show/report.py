"""One self-contained HTML page: it opens from disk without a network, can be mailed, and prints well."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from binreps._version import __version__
from binreps.run.analysis import Analysis, Part
from binreps.show.figures import Figure, figures
from binreps.show.theme import DECISION_COLOURS, DECISION_TEXT, FONT, to_svg, trusted
from binreps.show.wording import (
    REFERENCES,
    changed_words,
    command_line,
    methods_paragraph,
    missing_words,
    named_methods,
    named_odds,
    named_rates,
    next_words,
    profile_words,
    python_lines,
    read_words,
    with_interval,
)
from binreps.table import Table, format_value
from binreps.words import percent, plural

if TYPE_CHECKING:
    from jinja2 import Template

_LATTICE = 12  # replicates up to which the decision table is as wide as a page


def report(analysis: Analysis, individuals: Table | None = None, scores_file: str = "") -> str:
    """The report of an analysis as an HTML page.

    Parameters
    ----------
    analysis : Analysis
    individuals : Table, optional
        The rows to list, if they are few enough for a page.
    scores_file : str
        The name of the file with everyone's score, to point to.

    Returns
    -------
    str
    """
    return _template().render(
        analysis=analysis,
        parts=[_part(part) for part in analysis.parts],
        counts=analysis.counts,
        answers=_answers(analysis.answers),
        figures=_drawn(analysis),
        individuals=individuals,
        scores_file=scores_file,
        methods=methods_paragraph(analysis),
        references=REFERENCES,
        command=command_line(analysis, "results"),
        python=python_lines(analysis),
        version=__version__,
        colours=DECISION_COLOURS,
        inks=DECISION_TEXT,
        font=FONT,
        shown=format_value,
        chance=_chance,
        plural=plural,
        percent=percent,
        with_interval=with_interval,
        read_words=read_words,
        missing_words=missing_words,
    )


@cache
def _template() -> Template:
    """The page, with everything that is filled in escaped."""
    from jinja2 import Environment, StrictUndefined

    text = (files("binreps.show") / "report.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(text)


def _part(part: Part) -> dict[str, Any]:
    """What the page shows of one population."""
    return {
        "name": part.name,
        "headline": part.headline,
        "next": next_words(part),
        "by_source": part.sources is not None,
        "sources": [] if part.sources is None else list(part.sources),
        "calibration": "" if part.sources is None else str(part.fit.calibration),
        "rates": named_rates(part),
        "answers": _answers(part.answers),
        "lattice": _lattice(part.decisions),
        "judged": None if part.judgement is None else named_methods(part.judgement),
        "odds": named_odds(part),
        "changed": changed_words(part),
        "profiles": [
            (one.name, profile_words(one.covariates), _lattice(one.decisions), one.fit.rates.prevalence)
            for one in part.profiles
        ],
    }


def _answers(answers: dict[str, int]) -> list[tuple[str, int, float]]:
    """Each answer with its number and share."""
    total = max(sum(answers.values()), 1)
    return [(word, number, number / total) for word, number in answers.items()]


def _lattice(decisions: Table) -> list[tuple[int, list[dict[str, Any]]]]:
    """The rows of the decision table, by number of replicates; not longer than a page is wide."""
    sizes = [n for n in sorted(set(decisions["n"])) if n <= _LATTICE]
    return [(n, [row for row in decisions if row["n"] == n]) for n in sizes]


def _chance(probability: float | None) -> str:
    """A probability in a cell of the lattice."""
    if probability is None or probability != probability:
        return "–"
    if 0 < probability < 5e-4:
        return "<0.001"
    return ">0.999" if 0.9995 < probability < 1 else f"{probability:.3f}"


def _drawn(analysis: Analysis) -> list[tuple[str, str, Any]]:
    """Name, caption and drawing of every figure."""
    wide = any(max(part.decisions["n"], default=0) > _LATTICE for part in analysis.parts)
    with trusted():
        return [
            (one.name, one.caption, _svg(one, i))
            for i, one in enumerate(figures(analysis))
            if one.name != "decisions" or wide  # otherwise the lattice says the same
        ]


def _svg(figure: Figure, number: int) -> Any:
    """A figure that scales with its column, with ids of its own and its caption for those who listen."""
    from markupsafe import Markup, escape

    text = _hover(to_svg(figure.chart))
    text = re.sub(r"\b(id=\"|url\(#|href=\"#)(clip|gradient)", rf"\1f{number}\2", text)
    start = text.index("<svg")
    width = re.search(r'width="([\d.]+)"', text)
    limit = f"max-width:{width[1]}px;" if width else ""
    label = escape(figure.caption)
    opening = f'<svg role="img" aria-label="{label}" style="{limit}width:100%;height:auto"'
    return Markup(opening + text[start + 4 :])


def _hover(svg: str) -> str:
    """A name for each source that browsers show when the mouse is over it."""
    named = r'<path aria-label="([^"]+: false-positive[^"]*)"([^>]*)/>'
    return re.sub(named, r"<path\2><title>\1</title></path>", svg)
