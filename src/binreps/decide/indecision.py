"""What indecision costs: the empirical risk as a function of the cost of an inconclusive answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from binreps.decide.evaluate import Evaluation, evaluate
from binreps.decide.loss import Loss, checked_scores
from binreps.errors import OptionError
from binreps.model import Float
from binreps.table import Table

_MOST_JUMPS = 200  # beyond, no jump is large enough to be seen


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
    b, c = (loss.false_positive, loss.false_negative) if loss else (1.0, 1.0)
    if not b * c:
        raise OptionError(
            f"the costs of a false positive and of a false negative must be > 0, got {b:g} and {c:g}"
        )
    columns: dict[str, list[Any]] = {"method": [], "inconclusive": [], "risk": []}
    for method, values in scores.items():
        for start, end, judged in _pieces(checked_scores(values), truth, weight, b, c):
            columns["method"] += [method] * 2
            columns["inconclusive"] += [start, end]
            columns["risk"] += [replace(judged, loss=Loss(b, c, a)).mean_risk for a in (start, end)]
    return Table(columns)


def _pieces(
    y: Float, truth: ArrayLike, weight: ArrayLike | None, b: float, c: float
) -> Iterator[tuple[float, float, Evaluation]]:
    """Costs from jump to jump, with the answers between them, which do not change."""
    highest = b * (c / (b + c))
    jumps = _jumps(np.minimum(c * y, b * (1 - y)), highest)
    for start, end in pairwise([0.0, *jumps.tolist(), highest]):
        yield start, end, evaluate(y, truth, Loss(b, c, (start + end) / 2), weight)


def _jumps(largest: Float, highest: float) -> Float:
    """Where answers stop being inconclusive, inside the range; too many are replaced by equal steps."""
    found = np.unique(largest[(largest > 0) & (largest < highest)])
    found = found[np.diff(found, prepend=-highest) > 1e-12 * highest]  # 1/5 and 1 − 4/5 are one jump
    if found.size <= _MOST_JUMPS:
        return found
    return np.linspace(0, highest, _MOST_JUMPS + 2)[1:-1]
