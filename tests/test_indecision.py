from __future__ import annotations

import numpy as np
import pytest

from binreps.decide.evaluate import evaluate
from binreps.decide.indecision import risk_by_cost
from binreps.decide.loss import Loss
from binreps.errors import OptionError
from binreps.fits.point.simple import average_score, median_score
from binreps.model import Rates
from binreps.study import theory


@pytest.mark.parametrize("loss", [None, Loss(1, 1), Loss(2, 5), Loss(3, 0.5)])
def test_between_jumps_it_is_the_risk_of_evaluate(loss: Loss | None) -> None:
    rng = np.random.default_rng(4)
    y, t, w = rng.random(30), rng.integers(0, 2, 30), rng.integers(1, 9, 30)
    table = risk_by_cost({"any": y}, t, w, loss=loss)
    cost, risk = np.array(table["inconclusive"]), np.array(table["risk"])
    b, c = (1.0, 1.0) if loss is None else (loss.false_positive, loss.false_negative)
    assert cost[0] == 0
    np.testing.assert_allclose(cost[-1], b * c / (b + c))
    for k in range(0, cost.size, 2):
        for share in (0.1, 0.5, 0.9):
            a = cost[k] + share * (cost[k + 1] - cost[k])
            there = risk[k] + share * (risk[k + 1] - risk[k])
            np.testing.assert_allclose(there, evaluate(y, t, Loss(b, c, a), w).mean_risk, rtol=1e-9)


def test_it_tends_to_the_curves_of_the_theory() -> None:
    rates, n = Rates(0.4, 0.3, 0.2), 5
    rng = np.random.default_rng(5)
    t = rng.random(200_000) < rates.prevalence
    s = rng.binomial(n, np.where(t, rates.sensitivity, rates.false_positive))
    cells, weight = np.unique(np.stack([s, t]), axis=1, return_counts=True)
    scores = {"average": average_score(n, cells[0]), "median": median_score(n, cells[0])}
    table = risk_by_cost(scores, cells[1], weight)
    jumps = {a for name, a in zip(table["method"], table["inconclusive"], strict=True) if name == "average"}
    np.testing.assert_allclose(sorted(jumps), [0, *theory.risk_jumps([n]), 0.5])
    for row in table:  # away from 0, where the theory has no value; a jump is continuous from the left
        if row["method"] == "median" and row["inconclusive"] > 0:
            wanted = theory.risk_curve(n, rates, row["inconclusive"], score="median")
            assert abs(row["risk"] - wanted) < 0.004
    for a in (0.1, 0.3, 0.45):
        rows = [row for row in table if row["method"] == "average"]
        x, y = [row["inconclusive"] for row in rows], [row["risk"] for row in rows]
        assert abs(np.interp(a, x, y) - theory.risk_curve(n, rates, a, score="average")) < 0.004


def test_with_many_scores_every_jump_has_its_two_rows() -> None:
    rng = np.random.default_rng(6)
    y, t = rng.random(2000), rng.integers(0, 2, 2000)
    table = risk_by_cost({"any": y}, t)
    cost, risk = np.array(table["inconclusive"]), np.array(table["risk"])
    assert cost[2::2] == pytest.approx(np.sort(np.minimum(y, 1 - y)), abs=1e-12)
    for k in rng.integers(0, cost.size // 2, 40):
        middle = (cost[2 * k] + cost[2 * k + 1]) / 2
        judged = evaluate(y, t, Loss(1, 1, middle))
        assert (risk[2 * k] + risk[2 * k + 1]) / 2 == pytest.approx(judged.mean_risk, abs=1e-12)


def test_nulls_are_left_out_and_nothing_is_refused() -> None:
    with_null = risk_by_cost({"any": [0.2, None, 0.9, 0.4]}, [0, 1, 1, None])
    assert with_null["risk"][-1] == risk_by_cost({"any": [0.2, 0.9]}, [0, 1])["risk"][-1] == 0
    with pytest.raises(OptionError, match="at least one method"):
        risk_by_cost({}, [0])
    with pytest.raises(OptionError, match="must be > 0"):
        risk_by_cost({"any": [0.2]}, [0], loss=Loss(0, 1, 0))
