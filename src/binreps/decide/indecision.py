"""What indecision costs: the empirical risk as a function of the cost of an inconclusive answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from binreps.decide.evaluate import judged
from binreps.decide.loss import Loss, check_loss, checked_scores
from binreps.errors import OptionError
from binreps.model import Float
from binreps.options import kinds_checked
from binreps.table import Table

_ROUNDING = 1e-12  # of the largest cost: jumps that are closer are one


@kinds_checked
def risk_by_cost(
    scores: Mapping[str, ArrayLike],
    truth: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    loss: Loss | None = None,
) -> Table:
    """Empirical risk of each method for every cost a of an inconclusive answer at which it can pay.

    With costs b and c of a false positive and a false negative, an answer is inconclusive as long as
    a ≤ min(cy, b(1−y)): the risk is linear in a between these values and jumps just above them. It is
    tabulated from 0 to bc/(b+c), with two rows at each jump: before and after.

    Parameters
    ----------
    scores : mapping of str to array_like
        The scores of each method, by its name: of individuals, or of cells.
    truth, weight : array_like
        As for `evaluate`.
    loss : Loss, optional
        The costs of a false positive and of a false negative, 1 each by default; its own cost of an
        inconclusive answer plays no part.

    Returns
    -------
    Table
        Columns method, inconclusive (the cost a) and risk.

    Examples
    --------
    >>> print(risk_by_cost({"average": [0.25, 1.0]}, [0, 1]))
    method   inconclusive   risk
    average         0.000  0.000
    average         0.250  0.125
    average         0.250  0.000
    average         0.500  0.000
    """
    if not scores:
        raise OptionError("scores must hold the scores of at least one method, got none")
    if loss is not None:
        check_loss(loss)
    b, c = (loss.false_positive, loss.false_negative) if loss else (1.0, 1.0)
    if not b * c:
        raise OptionError(
            f"the costs of a false positive and of a false negative must be > 0, got {b:g} and {c:g}"
        )
    columns: dict[str, list[Any]] = {"method": [], "inconclusive": [], "risk": []}
    for method, values in scores.items():
        for start, end, first, last in _risk_lines(checked_scores(values), truth, weight, b, c):
            columns["method"] += [method] * 2
            columns["inconclusive"] += [start, end]
            columns["risk"] += [first, last]
    return Table(columns)


def _risk_lines(y: Float, truth: ArrayLike, weight: ArrayLike | None, b: float, c: float) -> Iterator[Any]:
    """Costs from jump to jump, each with the risk at its start and at its end.

    At a cost a everyone whose answer stops being inconclusive at a or above costs a, the others what their
    own answer costs: with individuals in the order of these values, two running sums say all.
    """
    y, t, w, _ = judged(y, truth, weight)
    highest = b * (c / (b + c))
    stops = np.minimum(c * y, b * (1 - y))
    answered = np.where(t == 1, np.where(c * y < b * (1 - y), c, 0.0), np.where(c * y < b * (1 - y), 0.0, b))
    jumps = _jumps(stops, highest)
    order = np.argsort(stops, kind="stable")
    paid = np.concatenate([[0.0], np.cumsum((w * answered)[order])])
    people = np.concatenate([[0.0], np.cumsum(w[order])])
    edges = np.concatenate([[0.0], jumps, [highest]])
    # those who stop at a jump, give or take a rounding, are still inconclusive on the piece that ends there
    done = np.searchsorted(stops[order], edges[:-1] * (1 + _ROUNDING) + 1e-300, side="right")
    done[0] = np.searchsorted(stops[order], 0.0, side="right")
    total = max(float(people[-1]), 1e-300)
    for start, end, k in zip(edges[:-1].tolist(), edges[1:].tolist(), done.tolist(), strict=True):
        fixed, open_ = float(paid[k]), float(people[-1] - people[k])
        yield start, end, (fixed + start * open_) / total, (fixed + end * open_) / total


def _jumps(stops: Float, highest: float) -> Float:
    """Where answers stop being inconclusive, inside the range."""
    found = np.unique(stops[(stops > 0) & (stops < highest)])
    return np.asarray(
        found[np.diff(found, prepend=-highest) > _ROUNDING * highest]
    )  # 1/5 and 1 − 4/5 are one
