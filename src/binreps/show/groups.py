"""Several groups, each on its own, as one page: a row and a strip for each, to sort and search."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from binreps._version import __version__
from binreps.decide.loss import DECISIONS, Loss
from binreps.notes import Note
from binreps.show.pages import SIGNS, page
from binreps.show.theme import FONT
from binreps.show.wording import cost_words
from binreps.table import Table, format_value
from binreps.words import percents, plural

_RATES = ("prevalence", "false_positive", "false_negative")


def groups_page(
    groups: Table, cells: Table, by: Sequence[str], loss: Loss, notes: Sequence[Note], title: str, author: str
) -> str:
    """The report of an analysis by group.

    Parameters
    ----------
    groups : Table
        A row per group, as `fit_by` gives it.
    cells : Table
        A row for each result (n, s) of a group, with weight and decision.
    by : sequence of str
        The columns that name a group.
    loss : Loss
    notes : sequence of Note
        How the data were read.
    title, author : str

    Returns
    -------
    str
        HTML.
    """
    answers: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in cells:
        own = answers.setdefault(_key(row, by), dict.fromkeys(DECISIONS.values(), 0))
        if row["decision"] is not None:
            own[row["decision"]] += row["weight"]
    return page("groups.html").render(
        title=title,
        author=author,
        made=f"{date.today():%-d %B %Y}",
        by=by,
        rows=[_row(row, by, answers.get(_key(row, by), {})) for row in groups],
        words=plural(len(groups), "group"),
        rule=cost_words(loss),
        notes=notes,
        signs=SIGNS,
        font=FONT,
        version=__version__,
    )


def _key(row: Any, by: Sequence[str]) -> tuple[Any, ...]:
    """What names a group."""
    return tuple(row[name] for name in by)


def _row(row: Any, by: Sequence[str], answers: dict[str, int]) -> dict[str, Any]:
    """What the page shows of one group."""
    ends = {name: (row[name], row[f"{name}_lower"], row[f"{name}_upper"]) for name in _RATES}
    known = {name: tuple(float("nan") if x is None else x for x in own) for name, own in ends.items()}
    left, right = (100 * x if x == x else 0.0 for x in known["prevalence"][1:])
    return {
        "names": [format_value(row[name]) for name in by],
        "individuals": row["individuals"],
        "rates": [(known[name][0], *percents(*known[name])) for name in _RATES],
        "left": round(left, 2),
        "width": round(max(right - left, 0.5), 2),
        "answers": answers,
        "reason": row["reason"] or "",
    }
