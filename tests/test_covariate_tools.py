"""Other verbs with covariates: simulation, cross-validation, scikit-learn, ArviZ, PyMC."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import binreps as br
from covariate_studies import screening


@pytest.fixture(scope="module")
def fit():
    columns, _ = screening(80)
    table = br.CovariateTable(columns["n"], columns["s"], {"age": columns["age"], "site": columns["site"]})
    return br.fit_covariates(table, tol=0.1)


def test_what_is_simulated_is_found_again() -> None:
    rng = np.random.default_rng(1)
    covariates = {"age": rng.normal(50, 10, 4000), "site": rng.choice(["a", "b"], 4000, p=[0.7, 0.3])}
    log_odds = {"age": 0.08, "site=b": 1.0}
    rates = br.Rates(0.3, 0.1, 0.15)
    found = br.simulate(rates, 4000, [2, 3], 2, covariates=covariates, log_odds=log_odds)
    fit = br.fit_covariates(found.records, tol=0.02)
    for term, value in log_odds.items():
        low, high = fit.slope(term).quantile([0.001, 0.999])
        assert low < value < high
    low, high = fit.interval(0.998)
    assert low.false_positive < 0.1 < high.false_positive
    assert set(found.long().columns) == {"individual", "result", "age", "site"}
    assert_allclose(np.mean(found.truth[covariates["age"] > 60]) > np.mean(found.truth), True)
    with pytest.raises(br.OptionError, match="log_odds must name columns"):
        br.simulate(rates, 4000, 3, 2, covariates=covariates, log_odds={"sex": 1.0})


def test_cross_validation_predicts_with_covariates() -> None:
    columns, truth = screening(150)
    covariates = {"age": columns["age"], "site": columns["site"]}

    def quick(table: br.CovariateTable):
        assert not table.counts.has_known
        return br.fit_covariates(table, tol=0.2)

    found = br.cross_validate(
        columns["n"], columns["s"], truth, quick, loss=br.Loss(), rng=1, covariates=covariates, folds=3
    )
    plain = br.cross_validate(columns["n"], columns["s"], truth, br.fit_bayes, loss=br.Loss(), rng=1, folds=3)
    assert found.pooled.individuals == plain.pooled.individuals == 150
    assert found.pooled.log_score < plain.pooled.log_score


def test_the_classifier_takes_covariates() -> None:
    pytest.importorskip("sklearn")
    columns, _ = screening(80)
    X = pd.DataFrame(columns)
    classifier = br.interop.ReplicateClassifier(covariates=True).fit(X)
    chance = classifier.predict_proba(X.head(5))[:, 1]
    expected = classifier.fit_.predict(
        columns["n"][:5],
        columns["s"][:5],
        covariates={"age": columns["age"][:5], "site": columns["site"][:5]},
    )
    assert_allclose(chance, expected)
    assert classifier.n_features_in_ == 4
    with pytest.raises(br.DataError, match="two columns"):
        br.interop.ReplicateClassifier().fit(X[["n", "s", "age"]])


def test_arviz_gets_every_parameter(fit) -> None:
    pytest.importorskip("arviz")
    tree = br.interop.to_arviz(fit, rng=1, draws=400)
    assert tree.posterior["log_odds"].shape == (4, 100, 3)
    assert list(tree.posterior["term"].to_numpy()) == list(fit.records.terms)
    likelihood = tree.log_likelihood["s"].to_numpy()
    assert likelihood.shape == (4, 100, 80)
    draw = {
        name: float(tree.posterior[name][1, 7]) for name in ("intercept", "false_positive", "false_negative")
    }
    slopes = tree.posterior["log_odds"][1, 7].to_numpy()
    table = fit.records
    i = int(np.flatnonzero(np.repeat(np.arange(len(table)), table.weight) == 5)[0])
    theta = 1 / (1 + np.exp(-(draw["intercept"] + table.design()[5] @ (slopes * table.sd))))
    n, s, p, q = table.n[5], table.s[5], draw["false_positive"], draw["false_negative"]
    from math import comb

    mixture = theta * (1 - q) ** s * q ** (n - s) + (1 - theta) * p**s * (1 - p) ** (n - s)
    assert likelihood[1, 7, i] == pytest.approx(np.log(comb(int(n), int(s)) * mixture), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("better", [False, True])
def test_pymc_has_the_same_density(better: bool) -> None:
    """The log density of the PyMC model differs from ours by a constant, at any point."""
    pytest.importorskip("pymc")
    from binreps.fits.points.target import Target

    columns, truth = screening(40)
    known = np.where(np.arange(40) < 8, truth, np.nan)
    prior = br.Prior(false_positive=(2, 5), better_than_chance=better)
    table = br.CovariateTable(columns["n"], columns["s"], {"age": columns["age"]}, known=known)
    model = br.interop.to_pymc(table, prior)
    target = Target(table, prior, 1.5)
    rng = np.random.default_rng(3)
    v = 0.7 * rng.standard_normal((4, 5))
    at, mine = target.parameters(v), target.evaluate(v).log_density
    compiled = model.compile_logp(jacobian=False)
    theirs = []
    for k in range(5):
        theta = 1 / (1 + np.exp(-at.alpha[k]))
        point = {"prevalence": theta, "slopes": at.beta[:, k], "false_positive": at.p[k]}
        point["false_negative_share" if better else "false_negative"] = (
            at.q[k] / (1 - at.p[k]) if better else at.q[k]
        )
        values = {
            model.rvs_to_values[variable].name: model.rvs_to_transforms[variable]
            .forward(point[variable.name], *variable.owner.inputs)
            .eval()
            if model.rvs_to_transforms[variable] is not None
            else point[variable.name]
            for variable in model.free_RVs
        }
        theirs.append(float(compiled(values)))
    step = 1e-6
    volume = []
    for k in range(5):  # how much of (θ, slopes, p, q) a unit of our coordinates is
        moved = [target.parameters(v[:, [k]] + step * e[:, None]) for e in np.eye(4)]
        base = target.parameters(v[:, [k]])

        def flat(one):
            share = one.q / (1 - one.p) if better else one.q
            return np.concatenate([1 / (1 + np.exp(-one.alpha)), one.beta[:, 0], one.p, share])

        volume.append(np.linalg.slogdet(np.stack([(flat(m) - flat(base)) / step for m in moved]))[1])
    difference = mine - np.array(volume) - np.array(theirs)
    assert np.ptp(difference) < 1e-3
