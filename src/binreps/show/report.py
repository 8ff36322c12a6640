"""One self-contained HTML page: it opens from disk without a network, can be mailed, and prints well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, NamedTuple

from binreps._version import __version__
from binreps.run.analysis import Analysis, Estimate, Part
from binreps.show.figures import Figure, figures
from binreps.show.grammar import View
from binreps.show.pages import SIGNS, page
from binreps.show.theme import FONT, to_svg
from binreps.show.wording import (
    REFERENCES,
    changed_words,
    chosen_words,
    command_line,
    cost_words,
    data_words,
    methods_paragraph,
    missing_words,
    model_rows,
    named_methods,
    named_odds,
    named_rates,
    profile_words,
    python_lines,
    read_words,
    retrain_words,
    threshold_words,
)
from binreps.table import Table, format_value
from binreps.tables.roles import Labels, compared, names_of
from binreps.words import chance, percent, percents, plural

_LATTICE = 8  # replicates up to which the triangle is as wide as a page
_NAMES = 12  # individuals that a row names
_RATES = (
    ("Prevalence", "prevalence", "are truly positive"),
    ("Sensitivity", "sensitivity", "of positives found"),
    ("Specificity", "specificity", "of negatives cleared"),
)
_JUDGED = {
    "sensitivity": "found",
    "specificity": "cleared",
    "share_inconclusive": "inconclusive",
    "total_risk": "total_cost",
}


class Drawing(NamedTuple):
    """A figure that was begun, and what waits for its SVG."""

    figure: Figure
    svg: Callable[[], str]


def begin(
    analysis: Analysis, draw: Callable[[View], Callable[[], str]] = lambda view: partial(to_svg, view)
) -> list[Drawing]:
    """Begin the figures of a report, by a pen or by what draws each when it is asked for."""
    wide = any(max(part.sizes, default=0) > _LATTICE for part in analysis.parts)
    without = () if wide else ("decisions",)  # the triangle says the same
    return [Drawing(one, draw(one.view)) for one in figures(analysis, without)]


def report(
    analysis: Analysis,
    individuals: Table | None = None,
    scores_file: str = "",
    *,
    title: str = "",
    author: str = "",
    drawings: Sequence[Drawing] | None = None,
) -> str:
    """The report of an analysis as an HTML page: a clinical summary, then methods, checks, figures, everyone.

    Parameters
    ----------
    analysis : Analysis
    individuals : Table, optional
        The rows to list, if they are few enough for a page.
    scores_file : str
        The name of the file with everyone's score, to point to.
    title : str
        The data's name if it is not given.
    author : str
    drawings : sequence of Drawing, optional
        Its figures where they were begun before; drawn now if not given.

    Returns
    -------
    str
    """
    return page("report.html").render(
        title=title or analysis.source.name,
        author=author,
        made=f"{date.today():%-d %B %Y}",
        analysis=analysis,
        data_words=data_words(analysis),
        verdict=_verdict(analysis),
        parts=[_part(part, analysis, individuals) for part in analysis.parts],
        counts=analysis.counts,
        models=None if analysis.comparison is None else model_rows(analysis.comparison),
        chosen="" if analysis.comparison is None else chosen_words(analysis.comparison, "command"),
        answers=_answers(analysis.answers),
        key=threshold_words(analysis.settings.loss),
        rule=cost_words(analysis.settings.loss),
        figures=_drawn(begin(analysis) if drawings is None else drawings),
        individuals=individuals,
        chances=[_added(individuals, name) for name in ("score", "lower", "upper", "without")],
        scores_file=scores_file,
        methods=methods_paragraph(analysis),
        references=REFERENCES,
        command=command_line(analysis, "results"),
        python=python_lines(analysis),
        version=__version__,
        signs=SIGNS,
        font=FONT,
        shown=format_value,
        share=_share,
        chance=lambda value: "–" if value is None else chance(value),
        plural=plural,
        percent=percent,
        read_words=read_words,
        missing_words=missing_words,
    )


_LIGHTS = {"green": ("good", "✓"), "amber": ("care", "!"), "red": ("stop", "✕")}


def _verdict(analysis: Analysis) -> dict[str, str]:
    """Whether the answers can be used, and what to do about it."""
    verdict, others = analysis.verdict, analysis.findings.warnings
    tone, sign = _LIGHTS[verdict.light]
    more = len([one for one in others if one.name != verdict.reason])
    advice = next((one.advise("command") for one in others if one.name == verdict.reason), "")
    if not advice and analysis.comparison is not None and verdict.light != "green":
        advice = chosen_words(analysis.comparison, "command").capitalize()
    said = verdict.sentence + (f" ({more} more below)" if more else "")
    return {"tone": tone, "sign": sign, "title": verdict.word, "sentence": said, "advice": advice}


def _part(part: Part, analysis: Analysis, individuals: Table | None) -> dict[str, Any]:
    """What the page shows of one population."""
    lattice = _lattice(part.decisions)
    return {
        "name": part.name,
        "strips": [(name, words, _strip(part.headline[rate])) for name, rate, words in _RATES],
        "lattice": lattice,
        "shown_up_to": _LATTICE if max(part.sizes, default=0) > _LATTICE else 0,
        "again": _again(part, analysis, individuals),
        "again_total": sum(part.again["weight"]),
        "by_source": part.sources is not None,
        "source_words": _source_words(part),
        "worst": _worst(part),
        "sources": [] if part.sources is None else list(part.sources),
        "calibration": "" if part.sources is None else str(part.fit.calibration),
        "rates": named_rates(part),
        "odds": named_odds(part),
        "populations": part.populations,
        "gold": part.gold,
        "changed": changed_words(part),
        "profiles": [
            (one.name, profile_words(one.covariates), _lattice(one.decisions), one.fit.rates.prevalence)
            for one in part.profiles
        ],
        **_judged(part),
    }


def _judged(part: Part) -> dict[str, Any]:
    """How answers and rates compare with the truth, under names that no rate of the test has."""
    if part.judgement is None:
        return {"judged": None, "confusion": None, "true_rates": None}
    found = part.judged[part.deciding].confusion
    confusion = Table({**found.columns, "truth": [f"truly {word}" for word in found["truth"]]})
    named = named_methods(part.judgement)
    columns = {_JUDGED.get(name, name): values for name, values in named.columns.items()}
    return {"judged": Table(columns), "confusion": confusion, "true_rates": part.true_rates}


def _strip(one: Estimate) -> dict[str, Any]:
    """A rate as words, and as places on a strip from 0 to 100."""
    estimate, interval = percents(*one)
    bounded = bool(interval)
    place, left, right = (round(100 * value, 2) if value == value else 0.0 for value in one)
    ends = {"left": left, "width": max(right - left, 0.5) if bounded else 0}
    return {"estimate": estimate, "interval": interval.replace("%", "", 1), "place": place, **ends}


def _again(part: Part, analysis: Analysis, individuals: Table | None) -> list[dict[str, Any]]:
    """The inconclusive results: who has them, and what one more test gives."""
    who = _who(individuals, analysis, None if part.name is None else str(part.name))
    words = part.settings.loss.words
    rows = []
    for row in part.again:
        names = who.get((row["n"], row["s"]), [])
        more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
        after = [
            f"{result} → {chance(row[f'if_{result}'])} {SIGNS[words([row[f'if_{result}']])[0]]}"
            for result in ("negative", "positive")
        ]
        said = ", ".join(names[:_NAMES]) + more if names else f"{row['weight']:,}"
        own = {"n": row["n"], "s": row["s"], "chance": chance(row["probability"])}
        rows.append({**own, "who": said, "next": ", ".join(after)})
    return rows


def _who(individuals: Table | None, analysis: Analysis, name: str | None) -> Mapping[Any, list[str]]:
    """The names of individuals by their result, where they are listed, have names and no known status."""
    guess = analysis.source.guess
    own = None if guess is None else guess.columns.get("individual")
    columns = [own] if isinstance(own, str) else list(own or [])
    n, s = (_added(individuals, name) for name in ("n", "s"))
    if individuals is None or not columns or not {*columns, n, s} <= set(individuals.columns):
        return {}
    population, known = analysis.source.population, str(analysis.source.known)
    *_, missing = Labels(missing=names_of(guess.columns.get("missing") if guess else None)).words()
    found: dict[Any, list[str]] = {}
    for row in individuals:
        status = row.get(known)
        unknown = status is None or compared(status) in missing
        if unknown and (name is None or str(row.get(str(population))) == name):
            told = found.setdefault((row[n], row[s]), [])
            told.append(" ".join(str(row[column]) for column in columns))
    return {key: list(dict.fromkeys(names)) for key, names in found.items()}


def _worst(part: Part) -> list[dict[str, Any]]:
    """The sources that err most, both ways together, as many as a first page has room for."""
    rows = [] if part.sources is None else list(part.sources)
    return sorted(rows, key=lambda row: -(row["false_positive"] + row["false_negative"]))[:_NAMES]


def _source_words(part: Part) -> str:
    """Who read, and who is poor, in a sentence."""
    if part.sources is None:
        return ""
    worse = f" {retrain_words(part.sources)}".rstrip()
    shown = ", of whom those who err most are shown" if len(part.sources) > _NAMES else ""
    names = f"{plural(len(part.sources), 'source')} gave the readings{shown}; all of them below."
    return f"{names}{worse} Who said what decides: binreps decide --source answers for the next individual."


def _answers(answers: dict[str, int]) -> list[tuple[str, int, float]]:
    """Each answer with its number and share."""
    total = max(sum(answers.values()), 1)
    return [(word, number, number / total) for word, number in answers.items()]


def _lattice(decisions: Table) -> list[tuple[int, list[dict[str, Any]]]]:
    """The rows of the decision table, by number of replicates; not longer than a page is wide."""
    sizes = [n for n in sorted(set(decisions["n"])) if n <= _LATTICE]
    return [(n, [row for row in decisions if row["n"] == n]) for n in sizes]


def _share(value: Any) -> str:
    """A cell of a table of rates: shares in percent, everything else as it is."""
    return percent(value) if isinstance(value, float) else format_value(value)


def _added(individuals: Table | None, name: str) -> str:
    """What an added column is called in everyone's rows, which may have columns of the same names."""
    return f"binreps_{name}" if individuals is not None and "binreps_score" in individuals.columns else name


def _drawn(drawings: Iterable[Drawing]) -> Sequence[tuple[str, str, Any]]:
    """Name, caption and drawing of every figure."""
    return [
        (figure.name, figure.caption, _inside(figure.caption, svg(), i))
        for i, (figure, svg) in enumerate(drawings)
    ]


def _inside(caption: str, svg: str, number: int) -> Any:
    """A figure that scales with its column, with ids of its own and its caption for those who listen."""
    from markupsafe import Markup, escape

    text = re.sub(r"\b(id=\"|url\(#|href=\"#)(clip|gradient)", rf"\1f{number}\2", _hover(svg))
    start = text.index("<svg")
    opening = f'<svg role="img" aria-label="{escape(caption)}"'
    return Markup(opening + text[start + 4 :])


def _hover(svg: str) -> str:
    """A name for each source that browsers show when the mouse is over it."""
    named = r'<path aria-label="([^"]+: false-positive[^"]*)"([^>]*)/>'
    return re.sub(named, r"<path\2><title>\1</title></path>", svg)
