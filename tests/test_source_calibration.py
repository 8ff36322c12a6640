"""How much a reading counts, and what gold changes: independent oracles, limits, a crowd with its truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

import binreps as br
from binreps import Readings, fit_sources
from binreps.fits.sampled.calibration import Calibration, learned_discount, learned_from_gold
from engines import ENGINES, rows_of
from test_sources import crowd


def difficult(
    people: int, sources: int, each: int, seed: int, spread: float = 1.5
) -> tuple[Readings, np.ndarray]:
    """Readings whose errors depend on the item too: logit P(error) = a_j + σ b_i."""
    rng = np.random.default_rng(seed)
    truth, skill = (rng.random(people) < 0.4).astype(int), rng.normal(-1.5, 0.5, sources)
    hard = rng.normal(0, spread, people)
    rows = [
        (i, j, int(truth[i] ^ (rng.random() < expit(skill[j] + hard[i]))))
        for i in range(people)
        for j in rng.choice(sources, each, replace=False)
    ]
    return Readings(*zip(*rows, strict=True)), truth


def log_loss(score: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.mean(np.log(np.where(truth == 1, score, 1 - score))))


def test_the_discount_is_what_leaving_one_reading_out_says() -> None:
    """Written out reading by reading, and maximised by scipy."""
    rows = [[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0], [1, None, None], [1, 0, 1]]
    known = [None, None, None, None, None, 1]
    readings = Readings.wide(rows, "abc", weight=[20, 25, 30, 40, 5, 50], known=known)
    theta, p, q = 0.3, np.array([0.01, 0.05, 0.1]), np.array([0.05, 0.1, 0.02])

    def left_out(w: float) -> float:
        total = 0.0
        for row, weight in zip(rows[:4], [20, 25, 30, 40], strict=True):
            for j, x in enumerate(row):
                odds = logit(theta)
                for k, y in enumerate(row):
                    if k != j:
                        odds += w * np.log((1 - q[k]) / p[k] if y else q[k] / (1 - p[k]))
                chance = expit(odds)
                said = chance * (1 - q[j]) + (1 - chance) * p[j]
                total += weight * np.log(said if x else 1 - said)
        return -total

    wanted = minimize_scalar(left_out, bounds=(0, 1), method="bounded", options={"xatol": 1e-6}).x
    negative = np.log(np.column_stack([1 - p, p])).ravel()
    positive = np.log(np.column_stack([q, 1 - q])).ravel()
    found = learned_discount(readings, np.full(6, logit(theta)), negative, positive)
    assert 0.2 < wanted < 0.9
    assert found == pytest.approx(max(0.1, 0.7 * wanted), abs=1e-3)


def test_without_two_readings_of_anyone_nothing_is_discounted() -> None:
    once = Readings([1, 2, 3], ["a", "b", "a"], [1, 0, 1])
    assert fit_sources(once, rng=1, sweeps=40).calibration == Calibration()
    gold = Readings.wide([[1, 1], [0, 0]], known=[1, 0])
    assert fit_sources(gold, rng=1, sweeps=40).calibration.discount == 1


def test_a_discounted_score_is_what_the_draws_say() -> None:
    readings = Readings.wide([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], "abc", weight=[30, 20, 20, 30])
    fit = fit_sources(readings, rng=1, sweeps=100)
    flat = np.exp(fit.posterior.sampled.logs.astype(float)).reshape(len(fit.model.names), 2, -1)
    theta, p, q, w = flat[0], flat[1:4], flat[4:7], fit.calibration.discount
    positive = theta[0] * (q[0, 1] * q[2, 0]) ** w
    negative = theta[1] * (p[0, 0] * p[2, 1]) ** w
    said = {"a": 1, "c": 0}
    assert w < 1
    assert fit.score(said) == pytest.approx((positive / (positive + negative)).mean(), abs=1e-5)
    assert fit.predict(said) == pytest.approx(positive.mean() / (positive + negative).mean(), abs=1e-5)
    assert "counts as .70 of an independent one" in str(fit)
    plain = fit_sources(readings, rng=1, sweeps=100, independent=True)
    assert np.array_equal(plain.posterior.mean, fit.posterior.mean)  # rates are the model's
    assert "independent given its status" in str(plain)


@pytest.mark.slow
def test_on_real_readings_a_discount_lowers_the_log_loss() -> None:
    readings, truth = crowd("rte")
    fit = fit_sources(readings, rng=1)
    assert 0.4 < fit.calibration.discount < 0.55
    assert log_loss(fit.score(readings), truth) <= 0.20


def test_gold_moves_scores_as_a_penalised_logistic_regression_does() -> None:
    rng = np.random.default_rng(3)
    scores, weight = rng.random(40), rng.integers(1, 4, 40)
    status = (rng.random(40) < expit(0.7 + 0.5 * logit(scores))).astype(int)

    def penalty(at: np.ndarray) -> float:
        z = at[0] + np.exp(at[1]) * logit(scores)
        return -(weight @ (status * z - np.logaddexp(0, z))) + at[0] ** 2 / 2 + 2 * at[1] ** 2

    wanted = minimize(penalty, [0, 0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    shift, slope = learned_from_gold(scores, status, weight)
    assert (shift, np.log(slope)) == pytest.approx(tuple(wanted), abs=1e-4)
    sure = learned_from_gold(np.array([0.0, 1.0]), np.array([1, 0]), np.array([10, 10]))
    assert np.all(np.isfinite(sure))


@pytest.mark.slow
def test_the_score_of_the_known_forgets_their_status() -> None:
    """Beside a fit that never knew it."""
    rows = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [1, 0, 0]]
    weight, how = [20, 8, 8, 20, 8, 1], {"rng": 1, "tol": 0.02, "independent": True}
    fit = fit_sources(Readings.wide(rows, "abc", weight, known=[None] * 5 + [1]), **how)
    wanted = fit_sources(Readings.wide(rows, "abc", weight), **how).score({"a": 1, "b": 0, "c": 0})
    known = fit.readings.take(np.flatnonzero(fit.readings.known == 1))
    assert fit.posterior.without_status(known)[0] == pytest.approx(wanted, abs=0.015)
    assert fit.score({"a": 1, "b": 0, "c": 0}) - wanted > 0.1  # which knows


@pytest.mark.slow
def test_every_engine_moves_scores_as_gold_does(tmp_path) -> None:
    readings, truth = difficult(60, 6, 4, seed=2)
    table = {"item": [], "worker": [], "vote": [], "gold": []}
    for i, code in zip(readings.row.tolist(), readings.code.tolist(), strict=True):
        gold = str(truth[i]) if i < 20 else None
        for name, value in zip(table, (i, f"w{code // 2}", code % 2, gold), strict=True):
            table[name].append(value)
    columns = {"individual": "item", "result": "vote", "source": "worker"}
    fit = br.fit(br.Table(table), rng=1, tol=0.5, known="gold", **columns)
    assert fit.calibration.by_gold
    names = [f"w{j}" for j in range(len(readings.sources))]
    wanted = fit.score(readings._with(sources=tuple(names)))
    import pyarrow as pa

    for engine in ("pandas", "duckdb", "polars-lazy"):
        rows = rows_of(br.attach(ENGINES[engine](pa.table(table)), fit, **columns))
        score = {row["item"]: (row["score"], row["lower"], row["upper"]) for row in rows}
        found = np.array([score[i] for i in range(60)])
        assert np.abs(found[:, 0] - wanted).max() < 0.03
        assert np.all(found[:, 1] <= found[:, 2])
    path = br.save_fit(fit, tmp_path / "fit.json") or tmp_path / "fit.json"
    assert br.load_fit(path).calibration == fit.calibration


def test_the_report_shows_gold_before_and_after() -> None:
    rows = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1]]
    known = [None, None, None, None, 0, 1]
    readings = Readings.wide(rows, "abc", weight=[30, 20, 20, 30, 9, 8], known=known)
    fit = fit_sources(readings, rng=1, sweeps=60)
    table = fit.gold_table()
    assert table["scores"] == ("before", "after")
    assert table["known"][0] == 17
    assert table["truly_positive"][0] == pytest.approx(8 / 17)
    assert table["log_loss"][1] <= table["log_loss"][0]
    assert fit_sources(readings.forget_known(), rng=1, sweeps=60).gold_table() is None
    one_class = Readings.wide(rows, "abc", known=[None, None, None, None, None, 1])
    assert not fit_sources(one_class, rng=1, sweeps=60).calibration.by_gold
