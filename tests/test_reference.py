"""The reference that judges the engine agrees with the closed form, golden values and identities."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import betaln

from binreps import CountTable, Prior
from oracles import ExactPosterior, golden, score_quantile
from reference import FINE, Reference, log_prior_mass
from shared_data import golden_values, shared_file

pytestmark = pytest.mark.slow

TINY = CountTable([3, 4, 2, 5], [1, 4, 0, 2], [3, 2, 4, 1], [None, None, None, 0])
ODD = Prior((0.3, 2), (0.4, 3), (5, 1.5))
SECOND = CountTable([2, 3], [2, 1], [5, 2])


def test_it_is_the_closed_form() -> None:
    for prior in (Prior(), ODD):
        exact, found = ExactPosterior(TINY, prior), Reference(TINY, prior)
        assert found.agreement < 1e-9
        assert np.abs((found.mean - exact.means) / exact.sds).max() < 1e-9
        assert np.abs(found.covariance - exact.covariance).max() < 1e-10
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
        assert found.score(3, 1)[0] == pytest.approx(exact.score(3, 1), abs=1e-9)
        assert found.predict(4, 2)[0] == pytest.approx(exact.predict(4, 2), abs=1e-9)
        for i, name in enumerate(("prevalence", "false_positive", "false_negative")):
            x = exact.quantile(name, 0.95)
            assert found.cdf(i, x) == pytest.approx(0.95, abs=1e-9)
            assert found.density(i, x) == pytest.approx(exact.density(name, x), rel=1e-3 if i else 0.1)
        y = score_quantile(TINY, 3, 1, 0.05, prior)
        assert found.score_cdf(3, 1, y) == pytest.approx(0.05, abs=1e-8)
        assert found.quantile(1, 0.05) == pytest.approx(exact.quantile("false_positive", 0.05), abs=1e-9)


@pytest.mark.parametrize("name", ["n1_only_N1e3", "rare_theta1e-4_N1e6", "ridge_n2_only_N1e6", "N1e9_n345"])
def test_it_is_the_golden_value(name: str) -> None:
    case, allowed = golden(name), golden_values()[name]["max_disagreement"]
    found = Reference(case.counts, case.prior)
    assert found.agreement < 1e-8
    assert np.abs((found.mean - case.means) / case.sds).max() < 1e-9 + allowed["mean_over_sd"]
    assert np.abs(found.sd / case.sds - 1).max() < 1e-8
    assert found.log_evidence == pytest.approx(case.log_evidence, abs=1e-6, rel=1e-15)
    for n, s, score in case.scores:
        assert found.score(n, s)[0] == pytest.approx(score, abs=1e-9)
    for i, quantiles in enumerate(case.quantiles.values()):
        for probability in (0.05, 0.95):
            error = abs(found.cdf(i, quantiles[probability]) - probability)
            assert error < 1e-8, (i, probability)


@pytest.mark.parametrize(
    "name", ["low_sensitivity", "informative_prior", "known_some", "periodontal_default"]
)
def test_it_is_the_golden_value_better_than_chance(name: str) -> None:
    text = shared_file("golden-models.json").read_text(encoding="utf-8")
    case = json.loads(text)["region"]["cases"][name]
    status = [None if known < 0 else known for known in case["known"]]
    counts = CountTable(case["n"], case["s"], case["weight"], status)
    found = Reference(counts, Prior(*case["prior"], better_than_chance=True))
    assert np.abs((found.mean - case["mean"]) / case["sd"]).max() < 1e-9
    assert np.abs(found.sd / np.array(case["sd"]) - 1).max() < 2e-9
    assert found.log_evidence == pytest.approx(case["log_evidence"], abs=1e-8)
    for kind, ask in (("score", found.score), ("predict", found.predict)):
        for key, value in case[kind].items():
            n, s = map(int, key.split(","))
            assert ask(n, s)[0] == pytest.approx(value, abs=1e-9)


MIRRORED = Prior((1, 1), (0.3, 2), (2, 0.3), better_than_chance=True)
ALIKE = Prior((1, 1), (3, 1), (3, 1), better_than_chance=True)


def test_the_mass_of_a_prior_is_known_where_the_two_mirror_each_other() -> None:
    """p and 1 − q have one law: half of everything. Two laws that are equal are no mirror images."""
    assert log_prior_mass(MIRRORED) == pytest.approx(2 * betaln(0.3, 2) - np.log(2), abs=1e-10)
    # P(p + q < 1) for p, q ~ Beta(3, 1) is ∫ 3 p² (1 − p)³ dp = 3 B(3, 4) = 1/20.
    assert log_prior_mass(ALIKE) == pytest.approx(2 * betaln(3, 1) - np.log(20), abs=1e-10)


@pytest.mark.parametrize("prior", [MIRRORED, ALIKE, ODD, Prior((2, 3), (1, 30), (6, 4), True), Prior()])
def test_the_constant_of_a_prior_is_that_of_the_reference(prior: Prior) -> None:
    wanted = -log_prior_mass(prior) - betaln(*prior.prevalence)
    assert prior.log_constant == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("better", [False, True])
def test_populations_obey_the_chain_rule(better: bool) -> None:
    """One empty population changes nothing, and evidences multiply as probabilities do."""
    prior = Prior((0.5, 0.5), (1.5, 4), (2, 2), better)
    alone, beside = Reference(TINY, prior), Reference({"a": TINY, "b": CountTable([], [])}, prior)
    assert beside.mean[[0, 2, 3]] == pytest.approx(alone.mean, abs=1e-9)
    assert (beside.mean[1], beside.log_evidence) == pytest.approx((0.5, alone.log_evidence), abs=1e-9)
    both = Reference({"a": TINY, "b": SECOND}, prior)
    known = Reference({"a": TINY, "b": SECOND + CountTable([0], [0], [1], [1])}, prior)
    assert np.exp(known.log_evidence - both.log_evidence) == pytest.approx(both.mean[1], abs=1e-9)
    if better:
        return
    assert both.cdf(1, float(both.mean[1])) == pytest.approx(
        Reference({"b": SECOND, "a": TINY}, prior, FINE).cdf(0, float(both.mean[1])), abs=1e-8
    )


def test_a_score_is_a_ratio_of_evidences() -> None:
    """On a ridge, where its interval's law must be found across the lines of θ."""
    ridge, prior = CountTable([1, 1], [0, 1], [700, 300]), Prior(better_than_chance=True)
    found = Reference(ridge, prior)
    marked = Reference(CountTable([1, 1, 1], [0, 1, 1], [700, 299, 1], [None, None, 1]), prior)
    score = np.exp(marked.log_evidence - found.log_evidence)
    assert found.score(1, 1)[0] == pytest.approx(score, abs=1e-9)
    y = np.linspace(1e-6, 1 - 1e-6, 5)
    cumulative = [found.score_cdf(1, 1, float(one)) for one in y]
    assert np.all(np.diff(cumulative) >= -1e-9)
    draws = _importance(ridge, prior)
    assert cumulative[2] == pytest.approx(draws, abs=0.01)


def _importance(counts: CountTable, prior: Prior) -> float:
    """P(Y_L(1, 1) ≤ ½ | data) from draws of p and q, and θ on a grid of the mixture's chance."""
    rng = np.random.default_rng(1)
    p, q = rng.beta(*prior.false_positive, 400_000), rng.beta(*prior.false_negative, 400_000)
    inside = p + q < 1
    p, q = p[inside], q[inside]
    chance = rng.beta(*(1 + counts.weight[::-1]), p.size)  # of a positive result: θ(1−q) + (1−θ)p
    theta = (chance - p) / (1 - p - q)
    fits = (theta > 0) & (theta < 1)
    theta, p, q = theta[fits], p[fits], q[fits]
    weight = theta**-0.5 * (1 - theta) ** -0.5 / (1 - p - q)
    score = theta * (1 - q) / (theta * (1 - q) + (1 - theta) * p)
    return float(weight[score <= 0.5].sum() / weight.sum())
