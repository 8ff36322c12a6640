"""`binreps decide` and `binreps card`: one patient at the bedside, by an earlier analysis."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from binreps.cli import options as opt
from binreps.cli.progress import busy
from binreps.cli.score import saved_fit, saved_loss, saved_value
from binreps.decide.answer import AHEAD, Answer, explain
from binreps.errors import OptionError
from binreps.run.save import read_json
from binreps.show.card import Origin, card
from binreps.show.summary import plain
from binreps.tables.write import check_place, replacing

Model = Annotated[Path, typer.Option("--model", help="summary.json of an analysis, or a saved fit.")]
Covariate = Annotated[
    list[str] | None, typer.Option("--covariate", help="age=61; repeat for several.", metavar="NAME=VALUE")
]
OnePopulation = Annotated[str | None, typer.Option("--population", help="Of several, the one it is of.")]
CostPerReplicate = Annotated[
    float, typer.Option("--cost-per-replicate", help="Of one more test, in the unit of the costs.")
]


def decide_command(
    results: Annotated[
        str | None, typer.Argument(help="Positives and tests, such as 2/6.", metavar="[S/N]")
    ] = None,
    model: Model = ...,  # type: ignore[assignment]
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="Who said what, such as A:1,B:0.", metavar="NAME:ANSWER"),
    ] = None,
    covariate: Covariate = None,
    population: OnePopulation = None,
    fitted: Annotated[
        bool, typer.Option("--fitted", help="The individual is one of the fit, not a new one.")
    ] = False,
    cost_per_replicate: CostPerReplicate = 0.01,
    ahead: Annotated[int, typer.Option("--ahead", help="Further tests to think of.")] = AHEAD,
    as_json: opt.Json = False,
) -> None:
    """One patient: the answer, the chance, what it rests on, and the next step.

    Example: `binreps decide 2/6 --model results/summary.json`
    """
    saved = read_json(model)
    fit = _of_population(saved_fit(model), population)
    with busy("looking ahead"):
        answer = explain(
            fit,
            saved_loss(saved),
            *_asked(fit.has_sources, results, source),
            covariates=_covariates(fit, covariate),
            population=population if fit.has_sources else None,
            new=not fitted,
            level=saved_value(saved, "options", "level") or 0.9,
            cost_per_replicate=cost_per_replicate,
            ahead=ahead,
        )
    print(json.dumps(_values(answer), ensure_ascii=False, allow_nan=False, indent=1) if as_json else answer)


def card_command(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path("card.html"),
    title: Annotated[str, typer.Option("--title", help="The name of the test.")] = "Repeated test",
    up_to: Annotated[
        int | None, typer.Option("--up-to", help="The most tests on the card, up to 12.")
    ] = None,
    covariate: Covariate = None,
    population: OnePopulation = None,
    cost_per_replicate: CostPerReplicate = 0.01,
    paper: Annotated[str, typer.Option("--paper", help="What it prints on: a5 or a4.")] = "a5",
) -> None:
    """A card for the bedside, one page that works offline: enter s of n, read the answer; or print it.

    Example: `binreps card --model results/summary.json --title "Rapid test" --out card.html`
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--out must name an HTML file, such as card.html, got {str(out)!r}")
    check_place(out)
    saved = read_json(model)
    fit = _of_population(saved_fit(model), population)
    with busy("looking ahead"):
        page = card(
            fit,
            saved_loss(saved),
            up_to=up_to or min(max(int(fit.everyone.n.max(initial=1)), 1), 8),
            cost_per_replicate=cost_per_replicate,
            covariates=_covariates(fit, covariate),
            title=title,
            valid_for=population or "",
            origin=_origin(saved),
            level=saved_value(saved, "options", "level") or 0.9,
            paper=paper,
        )
    with replacing(out) as part:
        part.write_text(page, encoding="utf-8")
    print(f"Written to {out}")


def _of_population(fit: Any, population: str | None) -> Any:
    """The fit of one population; of several, the one that is named."""
    if fit.has_sources:  # it is asked about with the individual's population
        return fit
    names = {str(name): name for name in fit.parts if name is not None}
    if not names:
        if population is not None:
            raise OptionError(f"the fit has no populations, got --population {population}")
        return fit
    if population not in names:
        raise OptionError(f"--population must be one of {', '.join(names)}, got {population}")
    return fit[names[population]]


def _asked(by_source: bool, results: str | None, source: list[str] | None) -> tuple[Any, ...]:
    """What is asked about: n and s, or who said what."""
    if by_source:
        if results is not None:
            raise OptionError(f"the fit knows sources: say who said what, --source A:1,B:0, got {results}")
        return (_said(source or []),)
    if source:
        raise OptionError("the fit has no sources; give positives and tests, such as 2/6")
    found = re.fullmatch(r"\s*(\d+)\s*(?:/|of)\s*(\d+)\s*", results or "")
    if not found:
        raise OptionError(f"give positives and tests, such as 2/6, got {results or 'nothing'}")
    s, n = map(int, found.groups())
    if s > n:
        raise OptionError(f"there must be no more positives than tests, got {results}")
    return n, s


def _said(parts: list[str]) -> dict[Hashable, Any]:
    """Who said what: A:1,B:0; a source may be named again."""
    said: dict[Hashable, Any] = {}
    for part in (one for each in parts for one in each.split(",") if one.strip()):
        name, _, answer = part.rpartition(":")
        if not name or answer.strip() not in ("0", "1"):
            raise OptionError(f"--source must be NAME:0 or NAME:1, such as A:1,B:0, got {part!r}")
        n, s = said.get(name.strip(), (0, 0))
        said[name.strip()] = (n + 1, s + int(answer))
    return said


def _covariates(fit: Any, given: list[str] | None) -> dict[str, Any] | None:
    """Covariates by name; numbers where the fit has numbers."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for part in given:
        name, equals, value = part.partition("=")
        if not equals:
            raise OptionError(f"--covariate must be NAME=VALUE, such as age=61, got {part!r}")
        found[name.strip()] = value.strip()
    return dict(fit.from_text(found))


def _origin(saved: Any) -> Origin:
    """Data and date of a card."""
    files = saved_value(saved, "input", "files") or []
    names = ", ".join(str(one.get("name", "")) for one in files) or str(
        saved_value(saved, "input", "name") or ""
    )
    return Origin(names, " ".join(str(one.get("sha256", "")) for one in files), date.today())


def _values(answer: Answer) -> dict[str, Any]:
    """An answer for machines."""
    content = {name: plain(value) for name, value in asdict(answer).items()}
    if answer.next is not None:
        content["next"] |= {
            "clear": answer.next.clear,
            "sentence": answer.next.sentence(str(answer.decision)),
        }
    return {**content, "sentence": answer.sentence}
