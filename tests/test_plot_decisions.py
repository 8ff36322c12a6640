from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pytest

import drawing
from binreps.counts import CountTable
from binreps.decide.indecision import risk_by_cost
from binreps.decide.loss import Loss, decision_table, decision_words
from binreps.decide.stopping import stopping_table
from binreps.errors import DataError, OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.point.simple import PointFit, fit_average
from binreps.show import plot
from binreps.show.theme import DECISION_COLOURS
from binreps.table import Table

LOSS = Loss(inconclusive=0.2)


@pytest.fixture(scope="module")
def fit() -> PointFit:
    return fit_average(CountTable([3, 3, 3, 3], [0, 1, 2, 3], weight=[60, 9, 6, 25]))


# decision table -----------------------------------------------------------------------------------


def test_every_cell_has_its_answer_and_probability(fit: PointFit) -> None:
    table = decision_table(fit, LOSS, replicates=6)
    cells = drawing.rows_with(plot.decisions(table), "label")[0]
    assert [(cell["n"], cell["s"], cell["decision"]) for cell in cells] == list(
        zip(table["n"], table["s"], table["decision"], strict=True)
    )
    for cell, probability in zip(cells, table["probability"], strict=True):
        label = cell["label"]
        if label[0] in "<>":
            assert probability < 0.01 if label == "<1%" else probability > 0.99
        else:
            assert abs(float(label[:-1]) - 100 * probability) <= 0.5


@pytest.mark.parametrize("replicates", [21, 100, [2, 10, 50, 200], range(1, 400)])
@pytest.mark.slow
def test_large_tables_are_blocks_that_cover_every_result(fit: PointFit, replicates: Any) -> None:
    table = decision_table(fit, LOSS, replicates=replicates)
    chart = plot.decisions(table)
    assert drawing.rows_with(chart, "label") == []
    answers = {(n, s): word for n, s, word in zip(table["n"], table["s"], table["decision"], strict=True)}
    blocks = drawing.rows_with(chart, "y2")[0]
    assert len(blocks) < 1000
    covered = {
        (row["n"], s): row["decision"]
        for row in blocks
        for s in range(int(row["y"] + 0.5), int(row["y2"] + 0.5))
    }
    shown = {n for n, _ in covered}
    assert len(shown) == min(len(set(table["n"])), 240)
    assert {min(table["n"]), max(table["n"])} <= shown
    assert covered == {pair: word for pair, word in answers.items() if pair[0] in shown}


def test_colours_go_to_their_answers(fit: PointFit) -> None:
    spec = drawing.specification(plot.decisions(decision_table(fit, LOSS, replicates=4)))
    scale = spec["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == dict(DECISION_COLOURS)


def test_a_null_probability_is_a_dash() -> None:
    table = Table(
        {"n": [1, 1], "s": [0, 1], "probability": [0.5, float("nan")], "decision": ["inconclusive", None]}
    )
    assert [cell["label"] for cell in drawing.rows_with(plot.decisions(table), "label")[0]] == ["50%", "–"]


# individuals --------------------------------------------------------------------------------------


def individuals(weight: list[int], truth: list[int | None] | None = None) -> Table:
    scores = [0.9, 0.1, 0.5]
    columns: dict[str, Any] = {
        "score": scores,
        "lower": [0.8, 0.0, 0.2],
        "upper": [1.0, 0.3, 0.7],
        "weight": weight,
    }
    columns["decision"] = decision_words(LOSS.classify(scores))
    return Table(columns | ({} if truth is None else {"truth": truth}))


@pytest.mark.parametrize("scale", [1, 10**6])
def test_individuals_are_sorted_steps_as_wide_as_they_are_many(scale: int) -> None:
    chart = plot.individuals(individuals([3 * scale, 5 * scale, 2 * scale]), LOSS.thresholds)
    steps = drawing.rows_with(chart, "score")[0]
    assert [(row["x"], row["x2"]) for row in steps] == [
        (0, 5 * scale),
        (5 * scale, 7 * scale),
        (7 * scale, 10 * scale),
    ]
    assert [row["score"] for row in steps] == [0.1, 0.5, 0.9]
    assert [row["decision"] for row in steps] == ["negative", "inconclusive", "positive"]
    assert [(row["lower"], row["upper"]) for row in steps] == [(0.0, 0.3), (0.2, 0.7), (0.8, 1.0)]
    band = drawing.rows_with(chart, "y2")[0]
    assert (band[0]["y"], band[0]["y2"]) == LOSS.thresholds


def test_the_truth_is_a_strip_in_the_same_order() -> None:
    table = individuals([3, 5, 2], [1, None, 0])
    strip = next(rows for rows in drawing.rows_with(plot.individuals(table), "x2") if "score" not in rows[0])
    assert [(row["x"], row["x2"], row["decision"]) for row in strip] == [
        (0, 5, None),
        (5, 7, "negative"),
        (7, 10, "positive"),
    ]


@pytest.mark.slow
def test_very_many_cells_are_merged_without_losing_anyone() -> None:
    rng = np.random.default_rng(1)
    scores, weight = rng.random(20_000), rng.integers(1, 50, 20_000)
    table = Table({"score": scores, "weight": weight, "decision": decision_words(LOSS.classify(scores))})
    steps = drawing.rows_with(plot.individuals(table, LOSS.thresholds), "score")[0]
    assert len(steps) < 1300
    widths = np.array([row["x2"] - row["x"] for row in steps])
    assert widths.sum() == weight.sum()
    np.testing.assert_allclose(widths @ [row["score"] for row in steps], weight @ scores, rtol=1e-5)
    for word, (low, high) in {"negative": (0, 0.2), "inconclusive": (0.2, 0.8), "positive": (0.8, 1)}.items():
        there = (scores >= low) & (scores < high)
        assert (
            sum(w for w, row in zip(widths, steps, strict=True) if row["decision"] == word)
            == weight[there].sum()
        )


def test_rows_without_a_score_are_left_out() -> None:
    table = Table({"score": [None, float("nan"), 0.3], "decision": [None, None, "inconclusive"]})
    assert [row["score"] for row in drawing.rows_with(plot.individuals(table), "score")[0]] == [0.3]
    with pytest.raises(DataError, match="at least one score"):
        plot.individuals(Table({"score": [None], "decision": [None]}))


# costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [LOSS, Loss(1, 9, (0.5, 1)), Loss(3, 2, 0.4)])
def test_the_thick_line_is_the_least_cost(loss: Loss) -> None:
    assert loss.allows_inconclusive
    chart = plot.risks(loss)
    lower, upper = loss.thresholds
    marks, whole, best = [layer.data.to_dict()["values"] for layer in chart.layer[1:]]
    np.testing.assert_allclose([row["x"] for row in marks], [lower, upper], rtol=1e-5)
    np.testing.assert_allclose([row["x"] for row in best], [0, lower, lower, upper, upper, 1], rtol=1e-5)
    np.testing.assert_allclose(
        [row["y"] for row in best], loss.risks([row["x"] for row in best]).min(axis=-1), rtol=1e-4
    )
    a, b, c, d = (
        loss.inconclusive_negative,
        loss.false_positive,
        loss.false_negative,
        loss.inconclusive_positive,
    )
    assert [row["y"] for row in whole] == [0, c, a, d, b, 0]


def test_a_loss_for_which_inconclusive_never_pays_has_one_threshold() -> None:
    marks, whole, best = [layer.data.to_dict()["values"] for layer in plot.risks(Loss(1, 3, 2)).layer[1:]]
    assert [row["x"] for row in marks] == [0.25]
    assert {row["decision"] for row in best} == {"negative", "positive"}
    assert {row["decision"] for row in whole} == {"negative", "inconclusive", "positive"}
    with pytest.raises(OptionError, match="costs > 0"):
        plot.risks(Loss(1, 1, 0))


def test_risk_by_cost_keeps_the_rows_and_their_order() -> None:
    table = risk_by_cost({"b": [0.2, 0.7], "a": [0.0, 0.4]}, [0, 1])
    rows = drawing.rows_with(plot.risk_by_cost(table), "method")[0]
    assert [row["order"] for row in rows] == list(range(len(table)))
    np.testing.assert_allclose([row["y"] for row in rows], table["risk"], rtol=1e-5)
    np.testing.assert_allclose([row["x"] for row in rows], table["inconclusive"], rtol=1e-5)


# all ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_are_data_and_every_figure_can_be_drawn(
    fit: PointFit, capfd: pytest.CaptureFixture[str]
) -> None:
    table = risk_by_cost({name: [0.2, 0.7] for name in drawing.HOSTILE}, [0, 1])
    svg = drawing.drawn(plot.risk_by_cost(table), capfd)
    for name in drawing.HOSTILE:
        assert not name or f">{escape(name, quote=False)}<" in svg
    for replicates in (1, 6, 20, 60):
        svg = drawing.drawn(plot.decisions(decision_table(fit, LOSS, replicates=replicates)), capfd)
        assert all(word in svg for word in ("Replicates", "negative"))
    for loss in (LOSS, Loss(1, 3, 2)):
        assert "Probability of being positive" in drawing.drawn(plot.risks(loss), capfd)
    drawing.drawn(plot.individuals(individuals([3, 5, 2], [1, None, 0]), LOSS.thresholds), capfd)
    drawing.drawn(plot.individuals(individuals([3, 5, 2])), capfd)


def test_the_stopping_rule_is_drawn_as_it_is() -> None:
    fit = fit_bayes(CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31]))
    rule = stopping_table(fit, Loss(), cost_per_replicate=0.01, max_replicates=6)
    values = {(v["n"], v["s"]): v["decision"] for v in drawing.rows_with(plot.stopping(rule), "label")[0]}
    rows = [row for row in rule.table() if row["reached"] >= 1e-4]
    assert values == {(row["n"], row["s"]): row["action"] for row in rows}
    assert "measure" in values.values()
