"""Readers, panels, batches and times that differ are found, and those that do not are left alone."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import binreps as br
from binreps.decide.checks.exchange import ALARM, between, exchange_findings, groups_of, within


def panel(seed: int, people: int, right: list[float], prevalence: float = 0.3) -> np.ndarray:
    """What sources of given accuracy say about everyone."""
    rng = np.random.default_rng(seed)
    positive = rng.random((people, 1)) < prevalence
    return np.where(rng.random((people, len(right))) < right, positive, ~positive).astype(int)


def readings(said: np.ndarray) -> br.Readings:
    """The columns as sources."""
    return br.Readings.wide(said, [f"r{j}" for j in range(said.shape[1])])


def test_mean_and_covariance_are_those_of_all_ways_to_share_positives_out() -> None:
    ways = np.array(sorted(set(permutations([1, 1, 0, 0, 0]))))
    given = np.array([2, 2, 1])  # results by each of three sources
    owner = np.repeat(np.arange(3), given)
    shares = np.stack([ways[:, owner == j].sum(axis=1) for j in range(3)], axis=1)
    n, s = 5, 2
    spread = s * (n - s) / (n**2 * (n - 1))
    expected = spread * (n * np.diag(given) - np.outer(given, given))
    np.testing.assert_allclose(shares.mean(axis=0), s / n * given)
    np.testing.assert_allclose(np.cov(shares.T, bias=True), expected, atol=1e-12)


def test_equal_sources_raise_no_more_alarms_than_promised() -> None:
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(200):
        right = [0.85] * int(rng.integers(2, 7))
        found = within(groups_of(readings(panel(seed, int(rng.choice([60, 200, 600])), right))))
        if found is not None:
            p_values.append(found.p_value)
    assert np.mean(np.array(p_values) < 0.05) < 0.1
    assert np.mean(np.array(p_values) < ALARM) < 0.01


@pytest.mark.parametrize("prevalence", [0.3, 0.5])
def test_sources_that_differ_are_found_also_where_they_say_yes_equally_often(prevalence: float) -> None:
    said = panel(1, 500, [0.6, 0.7, 0.8, 0.9, 0.95], prevalence)
    (finding,) = exchange_findings("reader-differences", readings(said))
    assert finding.number < 1e-6
    assert "r0" in finding.sentence or "r4" in finding.sentence


def test_groups_of_individuals_are_compared_where_each_has_one() -> None:
    rng = np.random.default_rng(2)
    batch = np.repeat(["a", "b", "c"], 150)
    chance = np.where(rng.random(450) < np.where(batch == "c", 0.7, 0.2), 0.85, 0.1)
    who, result = np.repeat(np.arange(450), 4), rng.binomial(1, np.repeat(chance, 4))
    data = br.Readings(who, np.repeat(batch, 4), result)
    assert within(groups_of(data)) is None
    found = between(groups_of(data))
    assert found is not None
    assert found.p_value < 1e-6
    assert found.group == "c"
    same = br.Readings(who, np.repeat(rng.permutation(batch), 4), result)
    other = between(groups_of(same))
    assert other is not None
    assert other.p_value > ALARM


def long_table(said: np.ndarray, **more: np.ndarray) -> br.Table:
    """One row for each result, with columns of the same shape."""
    people, sources = said.shape
    columns = {"patient": np.repeat([f"p{i}" for i in range(people)], sources).tolist()}
    columns["test"] = said.ravel().tolist()
    return br.Table(columns | {name: values.ravel().tolist() for name, values in more.items()})


def test_a_column_of_readers_is_looked_at_though_nobody_named_it() -> None:
    said = panel(3, 400, [0.6, 0.8, 0.95, 0.95])
    readers = np.broadcast_to(np.array(["ann", "bob", "eve", "kim"]), said.shape)
    table = long_table(said, reader=readers)
    plain = br.analyse(table, br.Settings(model="common"))
    assert "reader-differences" in plain.findings
    assert plain.verdict.light == "amber"
    chosen = br.analyse(table)
    assert chosen.model == "sources"
    assert "reader-differences" not in chosen.findings


def test_columns_of_a_fixed_panel_are_looked_at() -> None:
    said = panel(4, 400, [0.6, 0.9, 0.95])
    columns = {f"test{j + 1}": said[:, j].tolist() for j in range(3)}
    table = br.Table({"patient": [f"p{i}" for i in range(400)], **columns})
    assert "fixed-panel" in br.analyse(table, br.Settings(model="common")).findings
    alike = panel(4, 400, [0.9] * 3)
    columns = {f"test{j + 1}": alike[:, j].tolist() for j in range(3)}
    table = br.Table({"patient": [f"p{i}" for i in range(400)], **columns})
    assert "fixed-panel" not in br.analyse(table, br.Settings(model="common")).findings


def test_batches_and_drift_are_looked_at() -> None:
    rng = np.random.default_rng(5)
    positive = rng.random((300, 1)) < 0.4
    day = np.tile(np.arange(1, 5), (300, 1))
    right = np.array([0.95, 0.95, 0.95, 0.65])[day - 1]
    said = np.where(rng.random((300, 4)) < right, positive, ~positive).astype(int)
    how = {"individual": "patient", "result": "test"}
    settings = br.Settings(model="common")
    table = long_table(said, plate=day)
    assert "batch-differences" in br.analyse(table, settings, **how, batch="plate").findings
    drift = br.analyse(long_table(said, day=day), settings, **how, time="day").findings
    assert "drift" in drift
    shuffled = rng.permuted(day, axis=1)
    assert "drift" not in br.analyse(long_table(said, day=shuffled), settings, **how, time="day").findings
