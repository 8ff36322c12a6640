"""What the API computes. The last analyses are remembered, so that a question about one of them is quick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from binreps.counts import CountTable
from binreps.decide import elicit
from binreps.decide.answer import Answer, explain
from binreps.decide.checks.run import check
from binreps.decide.compare import Comparison
from binreps.decide.loss import Loss
from binreps.decide.plan import plan
from binreps.decide.stopping import next_replicates
from binreps.decide.verdict import reached
from binreps.errors import DataError, OptionError
from binreps.model import NAMES, Prior, Rates
from binreps.priors import density, end_of
from binreps.run.analysed import analysed
from binreps.run.analysis import Analysis, Part, Settings, Source
from binreps.run.candidates import compared
from binreps.run.data import Data
from binreps.run.front import analysed_source
from binreps.run.methods import METHODS
from binreps.run.models import offered_models
from binreps.run.scores import scored
from binreps.show.card import Origin, card
from binreps.show.figures import figures
from binreps.show.grammar import compact
from binreps.show.report import report
from binreps.show.summary import (
    comparison_values,
    findings_rows,
    plain,
    summary,
    table_rows,
    verdict_values,
)
from binreps.show.theme import theme
from binreps.show.wording import command_line, python_lines
from binreps.tables.guess import Guess
from binreps.tables.roles import PARTS, VOCABULARIES
from binreps.web import limits
from binreps.web.progress import Teller
from binreps.web.requests import (
    CardRequest,
    Cells,
    ExplainRequest,
    FileRequest,
    FitRequest,
    LinesRequest,
    NextRequest,
    PlanRequest,
    PriorRequest,
    ReportRequest,
    ScoreRequest,
)
from binreps.web.uploads import reading_file, shown_name

_REMEMBERED = 8  # analyses of each process; one holds 10 to 30 MB
_CARD_TESTS = 8  # the most on a card
_POINTS = 121  # of a curve
_PLAN_INDIVIDUALS, _PLAN_REPLICATES = (50, 100, 200, 400, 800), (3, 4, 6)
_PLAN_DATA_SETS = 100


Forms = tuple[CountTable, tuple[tuple[str, CountTable], ...] | None, Any, Any]
"""What `Data` hold, as a value that can be remembered by."""


@lru_cache(maxsize=_REMEMBERED)
def _remembered(forms: Forms, truth: Forms | None, settings: Settings) -> Analysis:
    """The analysis of these data with these settings."""
    return analysed(_whole(forms), settings, None if truth is None else _whole(truth))


def _whole(forms: Forms) -> Data:
    """The data again."""
    counts, several, records, readings = forms
    return Data(counts, None if several is None else dict(several), records, readings)


def _forms(request: FitRequest | FileRequest) -> tuple[Forms, Forms | None]:
    """The data that a request brings, and the same with the truth if there is one."""
    if request.cells is None:
        raise DataError("send a file, or cells with n and s")
    data, truth = request.cells.data()
    return _as_forms(data), None if truth is None else _as_forms(truth)


def _as_forms(data: Data) -> Forms:
    """Data as a value that can be remembered by."""
    several = None if data.populations is None else tuple(data.populations.items())
    return (data.counts, several, data.records, data.readings)


def analysis_of(request: FitRequest | FileRequest) -> Analysis:
    """The analysis that a request asks for."""
    return _remembered(*_forms(request), request.settings())


def _free_of_costs(request: FitRequest) -> Analysis:
    """The same fit for all costs: what is asked of it depends on them, the fit itself does not."""
    request.settings()  # says what is wrong with the costs
    return analysis_of(request.model_copy(update={"loss": type(request.loss)()}))


def _part(analysis: Analysis, population: str | None) -> Part:
    """The population that is spoken of; the only one without a name."""
    for part in analysis.parts:
        if part.name == population or (population is None and len(analysis.parts) == 1):
            return part
    names = ", ".join(str(part.name) for part in analysis.parts)
    raise OptionError(f"population must be one of {names}, got {population!r}")


def ready() -> None:
    """Nothing: a process that has come here has loaded all it needs."""


def fit(request: FitRequest, _: Path | None = None) -> dict[str, Any]:
    """The summary of an analysis, with the curves of its rates and the score of every cell."""
    analysis = analysis_of(request)
    curves = [_curves(part) for part in analysis.parts]
    return {**summary(analysis), "curves": curves, "scores": _scores(request.cells, analysis)}


def _scores(cells: Cells, analysis: Analysis) -> dict[str, list[Any]]:
    """Score and interval of each entry of the cells that were sent, in their order."""
    names = ("score", "lower", "upper")
    if (asked := _asked(cells, analysis)) is not None:
        (records, more), level = asked, analysis.settings.level
        values = (
            analysis.fit.score(*records, **more),
            *analysis.fit.score_interval(*records, level=level, **more),
        )
        return {
            name: [plain(value) for value in each.tolist()] for name, each in zip(names, values, strict=True)
        }
    found = {
        (part.name, row["n"], row["s"]): [plain(row[name]) for name in names]
        for part in analysis.parts
        for row in part.cells
    }
    of: Sequence[str | None] = [None] * len(cells.n)
    if cells.population is not None and analysis.shared is not None:
        of = cells.population
    places = zip(of, cells.n, cells.s, strict=True)
    entries = [found.get(key, [None] * len(names)) for key in places]
    return {name: [entry[i] for entry in entries] for i, name in enumerate(names)}


def _asked(cells: Cells, analysis: Analysis) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """What to ask a fit about the cells, where results alone do not settle a score."""
    if analysis.fit.has_sources:
        return (cells.data()[0].readings,), {}
    if analysis.fit.records is not None:
        return (cells.n, cells.s), {"covariates": cells.covariates}
    return None


def _curves(part: Part) -> dict[str, Any]:
    """Prior and posterior densities of the rates, where there is a posterior of one population."""
    bayes = part.fits.get("bayes")
    return {} if bayes is None else {name: _curve(bayes, name, part.settings.level) for name in NAMES}


def _curve(bayes: Any, name: str, level: float) -> dict[str, Any]:
    """Densities of one rate where the posterior has its mass, its mean and its interval."""
    end = end_of(bayes.prior, name)
    marginal = bayes.marginal(name)
    likely = np.asarray(marginal.quantile(np.linspace(0.001, 0.999, 41)))
    width = likely[-1] - likely[0]
    low, high = max(0.0, likely[0] - width / 2), min(end, likely[-1] + width / 2)
    near = width * 1e-3  # a density that diverges at an end is taken a little inside
    inside = np.unique([*np.linspace(low, high, _POINTS), *likely])
    x = np.clip(inside, near, end - near)
    posterior, prior = np.maximum(marginal.density(x), 0.0), density(bayes.prior, name, x)
    lower, upper = (getattr(rates, name) for rates in bayes.interval(level))
    numbers = {"estimate": getattr(bayes.rates, name), "lower": lower, "upper": upper}
    curves = {"x": inside.tolist(), "posterior": posterior.tolist(), "prior": prior.tolist()}
    return {**curves, **{what: float(value) for what, value in numbers.items()}}


def offered() -> dict[str, Any]:
    """What the page offers: the parts of columns, the words for results, the models and the methods."""
    shown = sorted(METHODS.values(), key=lambda method: method.drawn)
    return {
        "parts": [
            {
                "id": name,
                "title": part.title,
                "many": part.many,
                "label": part.label,
            }
            for name, part in PARTS.items()
        ],
        "vocabularies": {pair: [list(yes), list(no)] for pair, (yes, no) in VOCABULARIES.items()},
        "models": offered_models(),
        "methods": [{"id": method.id, "name": method.name} for method in shown],
    }


def score(request: ScoreRequest) -> dict[str, Any]:
    """Probability, interval and decision of each individual."""
    limits.check_length("individuals to score", request.n, limits.PAIRS)
    limits.check_size("replicates in all", sum(map(_finite, request.n)), limits.SCORED)
    one: Any = _part(_free_of_costs(request), request.population).fit
    found = one.answers(request.n, request.s, new=request.new, level=request.level)
    columns = {name: np.atleast_1d(np.asarray(values, dtype=float)) for name, values in found.items()}
    probability = columns.pop("score")
    rows: dict[str, list[Any]] = {"n": request.n, "s": request.s, "probability": probability.tolist()}
    rows |= {name: values.tolist() for name, values in columns.items()}
    loss = request.loss.loss()
    rows["decision"] = loss.words(probability)
    rows["expected_cost"] = loss.risks(probability).min(axis=-1).tolist()
    return {
        "scores": [dict(zip(rows, map(plain, row), strict=True)) for row in zip(*rows.values(), strict=True)]
    }


def _finite(value: float) -> int:
    """A number of replicates, for comparison; the library refuses what is none."""
    return int(value) if 0 <= value <= 2**53 else 0


def decide(request: FitRequest) -> dict[str, Any]:
    """The answer for the next individual, for every possible result."""
    analysis = analysis_of(request)
    tables = [{"population": part.name, "rows": table_rows(part.decisions)} for part in analysis.parts]
    return {"tables": tables, "thresholds": list(analysis.settings.loss.thresholds)}


def explained(request: ExplainRequest) -> dict[str, Any]:
    """The answer for one individual: the chance, why, what it rests on, and the next step."""
    limits.check_size("replicates", _finite(request.n), limits.REPLICATES)
    analysis = _free_of_costs(request)
    by_source = analysis.fit.has_sources
    fit = analysis.fit if by_source else _part(analysis, request.population).fit
    whole = [int(value) if float(value).is_integer() else value for value in (request.n, request.s)]
    answer = explain(
        fit,
        request.loss.loss(),
        *([request.said] if by_source else whole),
        covariates=request.known_covariates,
        population=request.population if by_source else None,
        new=request.new,
        level=request.level,
        cost_per_replicate=request.cost_per_replicate,
    )
    numbers = {name: plain(getattr(answer, name)) for name in ("probability", "lower", "upper")}
    told = {name: getattr(answer, name) for name in ("said", "decision", "costs", "reasons", "basis")}
    return {"sentence": answer.sentence, **numbers, **told, "next": _next_step(answer)}


def _next_step(answer: Answer) -> dict[str, Any] | None:
    """What to do next, in a sentence, its branches, and where testing on would lead."""
    step = answer.next
    if step is None or answer.decision is None:
        return None
    lines = list(step.lines(answer.decision))
    return {
        "sentence": lines[0],
        "pays": step.pays,
        "source": step.source,
        "branches": [asdict(branch) for branch in step.branches],
        "path": lines[-1] if len(lines) > 1 + len(step.branches) else None,
    }


def checked(request: FitRequest) -> dict[str, Any]:
    """What to know before believing the fit, and the verdict on its model."""
    analysis = _free_of_costs(request)
    found = check(analysis.fit, request.loss.loss())
    verdict = reached(found, analysis.model, {"individuals": float(analysis.counts.individuals)})
    return {"findings": findings_rows(found), "verdict": verdict_values(verdict)}


def compared_models(request: FitRequest, _: Path | None = None) -> dict[str, Any]:
    """Every model that the cells allow, which of them describes the individuals best, and what it changes."""
    free = replace(request.settings(), model="auto", method="bayes", loss=Loss(), replicates=None)
    found = replace(_compared(_forms(request)[0], free), loss=request.loss.loss())
    return {"verdict": verdict_values(found.verdict), **comparison_values(found)}


@lru_cache(maxsize=_REMEMBERED)
def _compared(forms: Forms, settings: Settings) -> Comparison:
    """The models of these data; a truth informs none of them."""
    return compared(_whole(forms), settings)


def measured_next(request: NextRequest) -> dict[str, Any]:
    """Which individuals of the data to measure again."""
    part = _part(_free_of_costs(request), request.population)
    limits.check_size("cells", len(part.counts), 200)
    limits.check_size("replicates of one individual", int(part.counts.n.max(initial=0)), 1000)
    again = next_replicates(
        part.counts,
        part.fit,
        request.loss.loss(),
        cost_per_replicate=request.cost_per_replicate,
        budget=request.budget,
    )
    return {"replicates": again.replicates, "rows": table_rows(again.table())}


def drawn(request: FitRequest) -> dict[str, Any]:
    """Every figure as a Vega-Lite specification, and the themes for light and dark."""
    analysis = analysis_of(request)
    found = []
    for one in figures(analysis):
        spec = compact(one.view)
        del spec["config"]  # the page has both themes
        found.append({"name": one.name, "caption": one.caption, "spec": spec})
    return {"figures": found, "themes": {"light": theme(), "dark": theme(dark=True)}}


def believed(request: PriorRequest) -> dict[str, Any]:
    """The Beta shapes that say what was believed, and the quantiles they imply."""
    belief = _belief(request)
    quantiles = belief.quantile(list(elicit.SHOWN)).tolist()
    return {
        "rate": belief.model_rate,
        "shapes": list(belief.shapes),
        "said": belief.said,
        "quantiles": [{"probability": u, "value": x} for u, x in zip(elicit.SHOWN, quantiles, strict=True)],
    }


def _belief(request: PriorRequest) -> elicit.Belief:
    """The belief, in whichever of the three ways it was said."""
    if request.of is not None:
        return elicit.study(
            request.rate,
            of=request.of,
            count=request.count,
            share=request.share,
            discount=request.discount,
            better_than_chance=request.better_than_chance,
        )
    if request.low is not None and request.high is not None:
        return elicit.between(
            request.rate,
            request.low,
            request.high,
            level=request.level,
            better_than_chance=request.better_than_chance,
        )
    if request.expect is None:
        ways = "expect with a surprise, low and high, or of with count or share"
        raise OptionError(f"say what is believed of {request.rate}: {ways}")
    return elicit.guess(
        request.rate,
        request.expect,
        surprised_above=request.surprised_above,
        surprised_below=request.surprised_below,
        chance=request.chance,
        better_than_chance=request.better_than_chance,
    )


def lines(request: LinesRequest) -> dict[str, str]:
    """The command and the lines of Python that repeat the page."""
    name = shown_name(request.name)
    named = request.columns.columns()
    apart = {part: named.pop(part, None) for part in ("known", "truth", "population")}
    source = Source(name, (name,), (), Guess("long", named), **apart, sheet=request.sheet)
    analysis = Analysis(request.settings(), (), source=source)
    return {"command": command_line(analysis, "results"), "python": python_lines(analysis)}


# With a file -------------------------------------------------------------------------------------------


@contextmanager
def _analysed(request: FileRequest, path: Path | None, title: str) -> Iterator[Analysis]:
    """The analysis of the file, which stays open, or of the cells."""
    if path is None:
        yield analysis_of(request)
        return
    settings = request.settings()
    with reading_file(request, path, title) as source:
        yield analysed_source(source, settings)


def _public(analysis: Analysis) -> Analysis:
    """The analysis with the client's name of the file in place of ours."""
    source = analysis.source
    return replace(analysis, source=replace(source, paths=(source.name,))) if source.paths else analysis


def write_scores(target: Path, request: FileRequest, path: Path | None, title: str) -> None:
    """Everyone's score and decision into a CSV file: they may be more than a process should send."""
    with _analysed(request, path, title) as analysis, scored(analysis) as everyone:
        everyone.write(target)


def written_report(request: ReportRequest, path: Path | None, title: str) -> bytes:
    """The report as one HTML page."""
    with _analysed(request, path, title) as analysis, scored(analysis) as everyone:
        on_top: Any = {"title": request.title, "author": request.author}
        return report(_public(analysis), everyone.rows, "scores.csv", **on_top).encode("utf-8", "replace")


def written_card(request: CardRequest, path: Path | None, title: str) -> bytes:
    """The card for the bedside as one HTML page."""
    with _analysed(request, path, title) as analysis:
        part, source = _part(analysis, request.population), analysis.source
        page = card(
            part.fit,
            request.loss.loss(),
            up_to=min(max(int(part.counts.n.max(initial=1)), 1), _CARD_TESTS),
            title=request.title,
            valid_for="" if part.name is None else str(part.name),
            origin=Origin(source.name, "".join(source.sha256[:1]), date.today()),
            level=request.level,
        )
        return page.encode("utf-8", "replace")


def written_summary(request: FileRequest, path: Path | None, title: str) -> dict[str, Any]:
    """The summary of an analysis, as `binreps analyse` writes it."""
    with _analysed(request, path, title) as analysis:
        return summary(_public(analysis))


def planned(request: PlanRequest, progress: Path | None = None) -> dict[str, Any]:
    """The cheapest study that reaches a goal, from simulations few enough for someone who waits."""
    limits.check_interval(request.level)
    expected = Rates(request.prevalence, request.false_positive, request.false_negative)
    limits.check_rates(expected)
    result = plan(
        expected,
        prior=Prior(better_than_chance=request.better_than_chance),
        rng=1,
        prevalence_width=request.prevalence_width,
        individuals=_PLAN_INDIVIDUALS,
        replicates=_PLAN_REPLICATES,
        cost_per_individual=request.cost_per_individual,
        cost_per_replicate=request.cost_per_replicate,
        level=request.level,
        data_sets=_PLAN_DATA_SETS,
        refine=True,
        workers=1,
        progress=limits.within(
            limits.PLANNING, "a plan for such a test", None if progress is None else Teller(progress)
        ),
    )
    return {"sentence": f"{result.goal}; {result.answer}", "rows": table_rows(result.table())}
