"""The tools of scikit-learn work on replicates, and labels never train and judge in silence."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.metrics import brier_score_loss, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from binreps import (
    CountTable,
    DataError,
    Loss,
    OptionError,
    Prior,
    Rates,
    evaluate,
    fit_average,
    fit_bayes,
    fit_map,
    simulate,
)
from binreps.run.sklearn_adapter import ReplicateClassifier

STUDY = simulate(Rates(0.4, 0.1, 0.15), 300, range(2, 7), rng=1)
X, Y = np.column_stack([STUDY.n, STUDY.s]), STUDY.truth
NEW = np.array([[3, 0], [3, 1], [3, 2], [3, 3], [6, 3]])


def replicates_to_counts(results: np.ndarray) -> np.ndarray:
    """A row of results, NaN where missing, as (n, s)."""
    return np.column_stack([np.sum(~np.isnan(results), axis=1), np.nansum(results, axis=1)])


# --- the same answers as the library ---------------------------------------------------------------------


def test_probabilities_are_those_of_the_fit() -> None:
    classifier = ReplicateClassifier().fit(X)
    expected = fit_bayes(CountTable(STUDY.n, STUDY.s)).predict(*NEW.T)
    found = classifier.predict_proba(NEW)
    assert found[:, 1].tolist() == expected.tolist()
    assert found.sum(axis=1) == pytest.approx(1)
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.fit_ == fit_bayes(CountTable(STUDY.n, STUDY.s))


@pytest.mark.parametrize("inconclusive", [-1, 0.5, 1])
def test_answers_are_those_of_the_loss(inconclusive: float) -> None:
    loss = Loss(false_negative=2, inconclusive=0.2)
    classifier = ReplicateClassifier(loss=loss, inconclusive=inconclusive).fit(X)
    expected = loss.classify(classifier.predict_proba(NEW)[:, 1])
    assert 0.5 in expected
    assert classifier.predict(NEW).tolist() == [inconclusive if x == 0.5 else x for x in expected]


def test_any_method_will_do() -> None:
    counts = CountTable(STUDY.n, STUDY.s)
    prior = Prior((1, 1), (1, 9), (1, 9))
    for method in (fit_map, fit_average, partial(fit_bayes, prior=prior)):
        found = ReplicateClassifier(method=method).fit(X).predict_proba(NEW)[:, 1]
        assert found.tolist() == method(counts).predict(*NEW.T).tolist()


@pytest.mark.filterwarnings("ignore::binreps.BinrepsWarning")
def test_a_null_probability_is_inconclusive() -> None:
    classifier = ReplicateClassifier(method=fit_average).fit([[3, 3], [3, 3]])  # no negative: p is unknown
    assert np.isnan(classifier.predict_proba([[3, 1]])).all()
    assert classifier.predict([[3, 1]]).tolist() == [-1]


def test_weights_stand_for_individuals() -> None:
    cells = CountTable(STUDY.n, STUDY.s)
    counted = ReplicateClassifier().fit(np.column_stack([cells.n, cells.s]), sample_weight=cells.weight)
    assert counted.fit_ == ReplicateClassifier().fit(X).fit_


# --- labels ----------------------------------------------------------------------------------------------


def test_labels_are_ignored_unless_asked_for() -> None:
    assert ReplicateClassifier().fit(X, Y).fit_ == ReplicateClassifier().fit(X, 1 - Y).fit_
    assert not ReplicateClassifier().fit(X, Y).fit_.counts.has_known


@pytest.mark.parametrize("missing", [-1, None, float("nan")])
def test_known_labels_train_when_asked_for(missing: object) -> None:
    labels = np.array([missing if i % 3 else int(status) for i, status in enumerate(Y)], dtype=object)
    found = ReplicateClassifier(use_known=True).fit(X, labels).fit_
    known = [None if i % 3 else status for i, status in enumerate(Y)]
    assert found.counts == CountTable(STUDY.n, STUDY.s, known=known)


# --- scikit-learn's own tools ------------------------------------------------------------------------------


def test_it_is_a_classifier_that_clones_and_pickles() -> None:
    classifier = ReplicateClassifier(loss=Loss(inconclusive=0.1), inconclusive=0.5, use_known=True).fit(X, Y)
    assert is_classifier(classifier)
    twin = clone(classifier)
    assert twin.get_params() == classifier.get_params()
    assert not hasattr(twin, "fit_")
    again = pickle.loads(pickle.dumps(classifier))
    assert isinstance(again, ReplicateClassifier)
    assert again.predict(NEW).tolist() == classifier.predict(NEW).tolist()
    with pytest.raises(NotFittedError):
        twin.predict(NEW)


def test_a_pipeline_may_start_from_single_results() -> None:
    results = np.array([[1, 0, np.nan], [0, 0, 0], [1, 1, 1], [0, np.nan, np.nan]])
    pipeline = make_pipeline(FunctionTransformer(replicates_to_counts), ReplicateClassifier()).fit(results)
    expected = fit_bayes(CountTable([2, 3, 3, 1], [1, 0, 3, 0])).predict([2, 3], [1, 0])
    assert pipeline.predict_proba(results[:2])[:, 1].tolist() == expected.tolist()


def test_cross_validation_scores_held_out_individuals() -> None:
    found = cross_val_score(ReplicateClassifier(), X, Y, cv=5, scoring="neg_brier_score")
    held_out = cross_val_predict(ReplicateClassifier(), X, Y, cv=5, method="predict_proba")[:, 1]
    assert -found.mean() == pytest.approx(brier_score_loss(Y, held_out), rel=1e-12)  # folds of equal size
    assert -found.mean() == pytest.approx(evaluate(held_out, Y, Loss()).brier, rel=1e-12)
    assert -found.mean() < 0.5 * Y.mean() * (1 - Y.mean())  # much better than the prevalence alone
    decided = ReplicateClassifier(inconclusive=1)  # accuracy needs an answer of one class or the other
    assert cross_val_score(decided, X, Y, cv=5).mean() > 0.85


def test_calibration_curves_can_be_drawn() -> None:
    held_out = cross_val_predict(ReplicateClassifier(), X, Y, cv=5, method="predict_proba")[:, 1]
    observed, stated = calibration_curve(Y, held_out, n_bins=3)
    size = np.histogram(held_out, bins=np.linspace(0, 1, 4))[0]
    assert np.all(np.abs(observed - stated) < 4 * np.sqrt(stated * (1 - stated) / size) + 0.01)


def test_a_grid_search_finds_the_cheapest_loss() -> None:
    """Judged by one cost, the rule made for that cost wins over rules made for very different ones."""
    judge = Loss(false_negative=20, inconclusive=0.3)
    scorer = make_scorer(lambda truth, answer: -judge.cost(truth, answer).mean())
    losses = [Loss(false_positive=20, inconclusive=0.3), judge, Loss(inconclusive=0.001)]
    search = GridSearchCV(ReplicateClassifier(inconclusive=0.5), {"loss": losses}, scoring=scorer, cv=3)
    search.fit(X, Y)
    assert search.best_params_ == {"loss": judge}
    assert search.best_estimator_.fit_ == ReplicateClassifier().fit(X).fit_


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([3, 1], r"X must have two columns, n and s, got shape \(2,\)"),
        ([[3, 1, 0]], r"X must have two columns, n and s, got shape \(1, 3\)"),
        ([[1, 3]], "s must be ≤ n, got s = 3 with n = 1 at position 0"),
        ([[3, 0.5]], "s must be whole numbers"),
    ],
)
def test_other_data_are_refused(data: list[object], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        ReplicateClassifier().fit(data)
    with pytest.raises(DataError, match=sentence):
        ReplicateClassifier().fit(X).predict(data)


def test_unusable_labels_are_refused() -> None:
    with pytest.raises(OptionError, match="use_known=True needs the labels y, got none"):
        ReplicateClassifier(use_known=True).fit(X)
    with pytest.raises(DataError, match="y must be -1, 0, 1 or missing, got 2 at position 1"):
        ReplicateClassifier(use_known=True).fit(NEW, [0, 2, 0, 0, 0])
    with pytest.raises(DataError, match=r"y must have one label per row of X \(5\), got shape \(2,\)"):
        ReplicateClassifier(use_known=True).fit(NEW, [0, 1])


def test_binreps_does_not_load_scikit_learn_and_says_how_to_get_it() -> None:
    code = (
        "import sys, binreps; assert not {'sklearn', 'pymc', 'nutpie', 'arviz'} & set(sys.modules);"
        "sys.modules['sklearn'] = None; import binreps.run.sklearn_adapter"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    advice = "which is not installed: pip install 'binreps[sklearn]'"
    assert last == f"ImportError: ReplicateClassifier needs scikit-learn, {advice}"
