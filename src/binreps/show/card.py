"""A card for the bedside: one HTML page for one fitted test, which needs no server and no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from binreps._version import __version__
from binreps.decide.answer import step_of
from binreps.decide.loss import Loss, check_loss, decision_words
from binreps.decide.stopping import stopping_table
from binreps.errors import OptionError
from binreps.fits.base import Fit, check_one_population
from binreps.options import check_kind, check_level, check_whole, kinds_checked, shown
from binreps.show.pages import SIGNS, page
from binreps.show.theme import FONT
from binreps.show.wording import profile_words
from binreps.words import chance, in_hundred, percent, plural

_MOST = 12  # tests up to which a triangle is as wide as a page
_PAPERS = ("a5", "a4")


@dataclass(frozen=True)
class Origin:
    """Where a card comes from.

    Attributes
    ----------
    name : str
        The file that was analysed.
    sha256 : str
        Its hash.
    made : date
        When the card was made.
    """

    name: str = ""
    sha256: str = ""
    made: date | None = None


@kinds_checked
def card(
    fit: Fit,
    loss: Loss,
    *,
    up_to: int = 6,
    cost_per_replicate: float = 0.01,
    covariates: Mapping[str, Any] | None = None,
    title: str = "Repeated test",
    valid_for: str = "",
    origin: Origin | None = None,
    level: float = 0.9,
    paper: str = "a5",
) -> str:
    """A bedside card: enter s of n, read the answer and the next step; printed, the triangle of all answers.

    Parameters
    ----------
    fit : any fit
        Of one population, whose replicates are alike.
    loss : Loss
    up_to : int
        The most tests on the card, up to 12.
    cost_per_replicate : float
        What one more test costs, in the unit of the loss.
    covariates : mapping of name to value, optional
        Whom the card is for, where the fit uses covariates.
    title : str
        The name of the test.
    valid_for : str
        The population, if it has a name.
    origin : Origin, optional
        Data and date, to be shown.
    level : float
        Probability of the intervals that are shown.
    paper : {"a5", "a4"}
        The page it prints on.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> page = card(fit_bayes(CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31])), Loss(), title="Rapid test")
    >>> "Rapid test" in page, "http" in page
    (True, False)
    """
    check_one_population(fit)
    check_loss(loss)
    check_level(level)
    check_whole("up_to", up_to, 1, _MOST)
    if origin is not None:
        check_kind("origin", origin, Origin)
    if paper not in _PAPERS:
        raise OptionError(f"paper must be one of {', '.join(_PAPERS)}, got {shown(paper)}")
    one = fit if covariates is None else fit.profile(covariates)
    for_whom = ", ".join(filter(None, [valid_for, profile_words(covariates or {})]))
    cells = card_cells(one, loss, up_to, cost_per_replicate)
    return page("card.html").render(
        title=title,
        cells=cells,
        rows=[[cell for cell in cells if cell["n"] == n] for n in range(1, up_to + 1)],
        content=json.dumps(cells, ensure_ascii=False).replace("<", "\\u003c"),
        up_to=up_to,
        rule=_rule(loss, up_to),
        valid=for_whom or "the study population",
        prevalence=_prevalence(one, level),
        individuals=plural(one.everyone.individuals, "individual"),
        origin=origin or Origin(),
        loss=loss,
        signs=SIGNS,
        paper=paper,
        font=FONT,
        version=__version__,
    )


def card_cells(fit: Fit, loss: Loss, up_to: int, cost_per_replicate: float) -> list[dict[str, Any]]:
    """What the card says for each result: chance, answer, and the next step in words."""
    rule = stopping_table(fit, loss, cost_per_replicate=cost_per_replicate, max_replicates=up_to, new=True)
    return [_cell(rule, n, s, up_to) for n in range(1, up_to + 1) for s in range(n + 1)]


def _cell(rule: Any, n: int, s: int, up_to: int) -> dict[str, Any]:
    """One result."""
    probability = rule.row(n, s)["probability"]
    decision = str(decision_words(rule.loss.classify(probability)))
    cell = {"n": n, "s": s, "decision": decision, "chance": chance(probability)}
    cell["people"] = in_hundred(probability).replace("individuals", "patients")
    if n == up_to:
        last = f"{plural(up_to, 'test')} done: the card ends here."
        clear = decision != "inconclusive"
        return {**cell, "next": "No further test is needed." if clear else last, "branches": []}
    step = step_of(rule, n, s)
    branches = [
        {
            "result": one.result,
            "likely": chance(one.likelihood),
            "chance": chance(one.probability),
            "decision": one.decision,
        }
        for one in step.branches
    ]
    asks = step.pays and decision == "inconclusive"
    return {**cell, "next": step.sentence(decision), "branches": branches if asks else []}


def _rule(loss: Loss, up_to: int) -> str:
    """How to answer, in one sentence."""
    lower, upper = (chance(value) for value in loss.thresholds)
    if not loss.allows_inconclusive:
        return f"Answer negative below a chance of {lower}, positive from there on."
    return (
        f"Answer negative below a chance of {lower}, positive above {upper}; between them the result is "
        f"inconclusive: test again, up to {plural(up_to, 'test')}."
    )


def _prevalence(fit: Fit, level: float) -> str:
    """The prevalence and its interval."""
    lower, upper = fit.interval(level)
    said = percent(fit.rates.prevalence)
    if lower.prevalence != lower.prevalence:
        return said
    return f"{said} ({percent(lower.prevalence)} to {percent(upper.prevalence)})"
