"""What other verbs make of sources: simulation, cross-validation, the next reading, ArviZ, PyMC, "
"scikit-learn."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

import binreps as br
from binreps import Loss, Rates, Readings, fit_sources
from binreps.decide.evaluate import cross_validate_sources
from binreps.decide.next_reading import next_reading
from test_sources import small_fit

RATES = Rates(0.4, [0.1, 0.2, 0.3, 0.05], [0.05, 0.1, 0.4, 0.2])


def test_simulated_readings_have_the_rates_they_were_made_with() -> None:
    made = br.simulate(RATES, 20_000, 3, rng=1)
    assert made.truth.mean() == pytest.approx(0.4, abs=0.012)
    wrong = made.result != made.truth[made.individual]
    for status, rates in ((0, RATES.false_positive), (1, RATES.false_negative)):
        for j, rate in enumerate(rates):
            own = (made.source == j) & (made.truth[made.individual] == status)
            assert wrong[own].mean() == pytest.approx(rate, abs=0.02)
    readings = made.readings
    assert set(readings.sizes[0].tolist()) == {3}
    assert readings.times is None  # nobody reads twice
    assert len(made.table()) == 60_000
    with pytest.raises(br.OptionError, match="at most the number of sources, 4"):
        br.simulate(RATES, 10, 5, rng=1)
    with pytest.raises(br.OptionError, match="one prevalence"):
        br.simulate(Rates([0.1, 0.2], [0.1, 0.2], [0.1, 0.2]), 10, 1, rng=1)


@pytest.mark.slow
def test_cross_validation_predicts_those_it_has_not_seen() -> None:
    made = br.simulate(RATES, 300, 4, rng=2)
    found = cross_validate_sources(
        made.readings, made.truth, partial(fit_sources, rng=1, sweeps=120), loss=Loss(), rng=1, folds=3
    )
    assert found.pooled.individuals == 300
    assert found.pooled.mean_risk < 0.12
    assert found.folds["trained"] == (200, 200, 200)
    with pytest.raises(br.DataError, match="one record per individual"):
        cross_validate_sources(made.readings, [1, 0], small_fit, loss=Loss(), rng=1)


def test_the_next_reading_is_worth_what_it_saves() -> None:
    fit = small_fit()
    table = next_reading(fit, {"eve": 1}, Loss())
    assert set(table["source"][:2]) == {"ann", "bob"}
    assert list(table["worth"]) == sorted(table["worth"], reverse=True)
    now = fit.predict({"eve": 1})
    for row in table:
        # the probability is a martingale, and the worth follows from the three probabilities
        mean = row["chance_of_yes"] * row["if_yes"] + (1 - row["chance_of_yes"]) * row["if_no"]
        assert mean == pytest.approx(now, abs=2e-3)
        risks = [Loss().risks(x).min() for x in (now, row["if_yes"], row["if_no"])]
        saved = risks[0] - row["chance_of_yes"] * risks[1] - (1 - row["chance_of_yes"]) * risks[2]
        assert row["worth"] == pytest.approx(max(saved, 0), abs=2e-3)
    counted = next_reading(fit_sources(fit.readings, rng=1), {"eve": 1}, Loss())
    assert 0 < counted["worth"][0] < table["worth"][0]  # of a part of a reading
    strangers = next_reading(fit, {"ann": (2, 1)}, Loss(), sources=["ann", "nobody"])
    assert set(strangers["source"]) == {"ann", "nobody"}
    with pytest.raises(br.OptionError, match="next_reading"):
        br.stopping_table(fit, Loss(), cost_per_replicate=0.1, max_replicates=3)


def test_an_individual_is_explained_by_who_said_what() -> None:
    fit = small_fit()
    answer = br.explain(fit, Loss(), {"ann": 1, "eve": (2, 0), "nobody": 1}, new=True)
    words = answer.sentence
    factor = (1 - fit.rates.false_negative[0]) / fit.rates.false_positive[0]
    assert f"by {factor:.3g}" in words
    assert "2 × no by eve" in words
    assert "yes by nobody" in words
    assert answer.next is not None
    assert answer.next.source in fit.sources
    assert "no reading" in br.explain(fit, Loss(), {}).sentence
    with pytest.raises(br.OptionError, match="what each source said"):
        br.explain(fit, Loss(), 3, 1)


def test_one_of_the_fit_is_looked_ahead_for_by_scores() -> None:
    """The branches belong to the probability that is shown: that of one of the fit, or of a new one."""
    fit, said = small_fit(), {"eve": 0}
    for new, chance in ((False, fit.score), (True, fit.predict)):
        step = br.explain(fit, Loss(), said, new=new).next
        assert step.source != "eve"
        after = [chance({**said, step.source: x}) for x in (0, 1)]
        assert [branch.probability for branch in step.branches] == pytest.approx(after)


@pytest.mark.slow
def test_arviz_reads_the_chains() -> None:
    fit = small_fit()
    tree = br.interop.to_arviz(fit, rng=1)
    chains, draws = fit.posterior.sampled.logs.shape[2:]
    assert tree.posterior["false_positive"].shape == (chains, draws, 3)
    assert float(tree.posterior["prevalence"].mean()) == pytest.approx(fit.rates.prevalence, abs=0.01)
    assert tree.log_likelihood["readings"].shape == (chains, draws, 105)
    assert list(tree.posterior["source"].to_numpy()) == ["ann", "bob", "eve"]


@pytest.mark.slow
def test_pymc_has_the_same_density_up_to_a_constant() -> None:
    """Log densities differ by the same amount from the closed form at any two points."""
    readings = Readings.wide([[1, 1, 0], [0, None, 0], [1, 0, 1]], ["a", "b", "c"], [3, 4, 2], [None, 0, 1])
    model = br.interop.to_pymc(readings)
    rng = np.random.default_rng(1)
    compiled = model.compile_logp(jacobian=False)
    names = ["mean_false_positive", "spread_false_positive", "mean_false_negative", "spread_false_negative"]
    differences = []
    for _ in range(3):
        theta, (m_p, r_p, m_q, r_q) = rng.uniform(0.2, 0.8), rng.uniform(0.1, 0.45, 4)
        p, q = rng.uniform(0.05, 0.45, (2, 3))
        point = model.initial_point()
        for variable in model.value_vars:
            name = variable.name.removesuffix("_logodds__")
            values = {"prevalence": theta, "false_positive": p, "false_negative": q}
            values |= dict(zip(names, (m_p, r_p, m_q, r_q), strict=True))
            point[variable.name] = np.log(values[name]) - np.log1p(-np.asarray(values[name]))
        assert np.allclose(expit(point["prevalence_logodds__"]), theta)
        differences.append(float(compiled(point)) - _log_density(theta, p, q, m_p, r_p, m_q, r_q))
    assert np.ptp(differences) < 1e-6


def _log_density(theta, p, q, m_p, r_p, m_q, r_q) -> float:
    """The log of prior times likelihood, as SPEC has it, without constants."""
    from scipy.stats import beta

    k_p, k_q = 1 / r_p - 1, 1 / r_q - 1
    total = beta.logpdf(theta, 0.5, 0.5) + beta.logpdf(m_p, 2, 2) + beta.logpdf(m_q, 2, 2)
    total += (
        beta.logpdf(p, m_p * k_p, (1 - m_p) * k_p).sum() + beta.logpdf(q, m_q * k_q, (1 - m_q) * k_q).sum()
    )
    first = theta * (1 - q[0]) * (1 - q[1]) * q[2] + (1 - theta) * p[0] * p[1] * (1 - p[2])
    second = (1 - theta) * (1 - p[0]) * (1 - p[2])
    third = theta * (1 - q[0]) * q[1] * (1 - q[2])
    return float(total + 3 * np.log(first) + 4 * np.log(second) + 2 * np.log(third))


@pytest.mark.slow
def test_scikit_learn_reads_a_column_per_source() -> None:
    from sklearn.model_selection import cross_val_score

    made = br.simulate(RATES, 200, 4, rng=3)
    X = np.full((200, 4), np.nan)
    X[made.individual, made.source] = made.result
    classifier = br.interop.SourceClassifier(method=partial(fit_sources, rng=1, sweeps=120), inconclusive=0)
    assert cross_val_score(classifier, X, made.truth, cv=3).mean() > 0.85
    fitted = classifier.fit(X)
    assert fitted.predict_proba(X[:2]).shape == (2, 2)
    with pytest.raises(br.DataError, match="4 columns as in the fit"):
        fitted.predict(X[:, :3])


@pytest.mark.slow
def test_intervals_of_studies_drawn_from_the_model_hold() -> None:
    """`python -m benchmarks.coverage` does it at length; here a few studies, within 4 standard errors."""
    from benchmarks.coverage import Design, coverage

    rows = coverage(Design("a panel of 4", 60, 4, 4), 10, 60)
    for row in rows[:3]:
        assert abs(float(row["found"]) - 0.9) <= 4 * max(float(row["standard error"]), 0.03)
