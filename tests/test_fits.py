"""What every fit must do. A new fit joins by one line in FITS."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import cache

import numpy as np
import pytest

from binreps import (
    CountTable,
    CovariateTable,
    DataError,
    Fit,
    FitError,
    Loss,
    OptionError,
    Rates,
    Table,
    check,
    decision_table,
    fit_average,
    fit_bayes,
    fit_covariates,
    fit_known,
    fit_map,
    fit_median,
    fit_overdispersed,
    fit_populations,
    plot,
)
from binreps.study.simulate import simulate_counts


def fit_known_majority(counts: CountTable) -> Fit:
    """`fit_known`, where everyone's status is the majority of their replicates."""
    return fit_known(CountTable(counts.n, counts.s, counts.weight, 2 * counts.s > counts.n))


def fit_without_covariates(counts: CountTable) -> Fit:
    """`fit_covariates` of individuals of whom nothing else is known."""
    return fit_covariates(CovariateTable(counts.n, counts.s, {}, counts.weight, counts.known))


FITS: dict[str, Callable[[CountTable], Fit]] = {
    "average": fit_average,
    "median": fit_median,
    "known": fit_known_majority,
    "map": fit_map,
    "em": lambda counts: fit_map(counts, algorithm="em", rng=1, starts=4),
    "bayes": fit_bayes,
    "overdispersed": fit_overdispersed,
    "covariates": fit_without_covariates,
}
NULL_WITHOUT_REPLICATES = {"average", "median"}
"""The fits whose score needs a replicate; their predictions do not."""

TAKE_NOBODY = {"bayes", "overdispersed", "covariates"}
"""The fits for which an empty table is an answer: the prior."""

IGNORE_KNOWN = {"average", "median"}
"""The fits that known statuses do not inform."""

RATES = Rates(0.3, 0.1, 0.2)
COUNTS = CountTable([4, 4, 4, 4, 4, 3, 2, 0], [0, 1, 2, 3, 4, 2, 1, 0], weight=[50, 20, 6, 10, 20, 5, 3, 2])


@pytest.fixture(params=FITS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(name: str) -> Callable[[CountTable], Fit]:
    return FITS[name]


@cache
def fitted(name: str) -> Fit:
    return FITS[name](COUNTS)


@pytest.fixture
def fit(name: str) -> Fit:
    return fitted(name)


# --- rates ---------------------------------------------------------------------------------------------


def test_it_names_its_method_and_keeps_its_data(fit: Fit) -> None:
    assert fit.method
    assert (fit.counts.individuals, fit.counts.replicates) == (COUNTS.individuals, COUNTS.replicates)


def test_rates_are_probabilities_that_tell_the_classes_apart(fit: Fit) -> None:
    theta, p, q = fit.rates
    assert 0 < theta < 1
    assert 0 < p < 0.5
    assert 0 < q < 0.5
    assert (fit.rates.sensitivity, fit.rates.specificity) == (1 - q, 1 - p)


def test_the_order_of_individuals_does_not_matter(make) -> None:
    individuals = np.repeat(np.stack([COUNTS.n, COUNTS.s]), COUNTS.weight, axis=1)
    shuffled = np.random.default_rng(2).permutation(individuals, axis=1)
    assert make(CountTable(*shuffled)).rates == make(COUNTS).rates


def test_the_same_data_give_the_same_fit(make) -> None:
    assert make(COUNTS) == make(COUNTS)
    assert make(COUNTS) != make(COUNTS + COUNTS)


def test_switching_the_labels_switches_the_rates(make, name: str) -> None:
    """Results renamed positive ↔ negative turn prevalence θ into 1 − θ, and p into q."""
    counts = CountTable([5, 5, 5, 5, 5], [0, 1, 2, 4, 5], weight=[40, 25, 6, 9, 12])
    theta, p, q = make(counts).rates
    mirrored = make(CountTable(counts.n, counts.n - counts.s, counts.weight)).rates
    rel = 1e-3 if name == "covariates" else 1e-4  # points have an error, and say so
    assert tuple(mirrored) == pytest.approx((1 - theta, q, p), rel=rel)


# --- scores and predictions ------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["score", "predict"])
def test_probabilities_do_not_decrease_in_s(fit: Fit, what: str, name: str) -> None:
    far = () if name == "overdispersed" else (50,)  # 50 alike there speak for a correlation
    for n in (1, 2, 3, 10, *far):
        values = getattr(fit, what)(n, np.arange(n + 1))
        assert np.all((values >= 0) & (values <= 1))
        assert np.all(np.diff(values) >= 0)
        assert values[0] < values[-1]


def test_without_replicates_the_prediction_is_the_prevalence(fit: Fit, name: str) -> None:
    assert fit.predict(0, 0) == pytest.approx(fit.rates.prevalence, rel=1e-12)
    if name in NULL_WITHOUT_REPLICATES:
        assert np.isnan(fit.score(0, 0))
    else:
        assert fit.score(0, 0) == pytest.approx(fit.rates.prevalence, rel=1e-12)


@pytest.mark.parametrize("what", ["score", "predict"])
def test_numbers_give_numbers_and_arrays_arrays(fit: Fit, what: str) -> None:
    call = getattr(fit, what)
    assert isinstance(call(3, 1), float)
    assert call([3, 4], [1, 2]).shape == (2,)
    assert call([], []).shape == (0,)
    n, s = np.array([[3], [5]]), np.array([0, 1, 2])
    assert call(n, s).shape == (2, 3)
    assert call(n, s)[1, 2] == call(5, 2)


@pytest.mark.parametrize("what", ["score", "predict"])
@pytest.mark.parametrize(
    ("n", "s", "sentence"),
    [
        (3, 4, "s must be ≤ n, got s = 4 with n = 3 at position 0"),
        ([3, -3], [1, 0], "n must be whole numbers .* got -3 at position 1"),
        (3, 1.5, "s must be whole numbers .* got 1.5"),
        (3, float("nan"), "s must be whole numbers .* got nan"),
        (3, None, "s must be whole numbers .* got None"),
        ("3", 1, "n must be whole numbers .* got text"),
        ([1, 2], [1, 1, 1], "n and s must broadcast"),
    ],
)
def test_impossible_counts_are_refused(fit: Fit, what: str, n: object, s: object, sentence: str) -> None:
    with pytest.raises(DataError, match=f"^{sentence}"):
        getattr(fit, what)(n, s)


def test_known_statuses_never_leak_into_a_score(make, name: str) -> None:
    """Someone whose replicates speak for one status and who is known to have the other keeps a low score."""
    known = CountTable([4, 4], [0, 4], weight=[3, 3], known=[1, 0])
    fit = make(COUNTS + known)
    assert fit.score(4, 0) < 0.5 < fit.score(4, 4)
    if name in IGNORE_KNOWN:
        assert fit.rates == make(COUNTS + known.forget_known()).rates


# --- extremes -------------------------------------------------------------------------------------------


def test_nobody_is_refused_with_a_sentence(make, name) -> None:
    if name in TAKE_NOBODY:
        assert make(CountTable([], [])).rates.prevalence == pytest.approx(0.5)
        return
    with pytest.raises(FitError, match="needs at least one individual, got an empty table"):
        make(CountTable([], []))


@pytest.mark.slow
def test_ten_to_the_twelve_individuals_are_a_thousand_times_ten_to_the_nine(make, name: str) -> None:
    counts = simulate_counts(RATES, 10**9, [4, 5], rng=1)
    tol = 1e-4 if name == "overdispersed" else 1e-6  # a correlation ≥ 0 pulls as far as its own uncertainty
    thousandfold = CountTable(counts.n, counts.s, 1000 * counts.weight)
    assert tuple(make(thousandfold).rates) == pytest.approx(tuple(make(counts).rates), rel=tol)


@pytest.mark.slow
def test_a_million_replicates_each(make) -> None:
    counts = CountTable([10**6] * 4, [100_000, 100_500, 800_000, 799_000], weight=[10**9, 1, 10**9, 5])
    fit = make(counts)
    assert all(0 < rate < 1 for rate in fit.rates)
    assert fit.predict(10**6, [0, 10**6]).tolist() == pytest.approx([0, 1], abs=1e-9)


@pytest.mark.parametrize(
    "counts",
    [
        CountTable([3], [0], [50]),
        CountTable([3], [3], [50]),
        CountTable([3, 3], [0, 3], [20, 30]),
        CountTable([3], [1]),
        CountTable([2], [1], [7]),
        CountTable([0], [0], [5]),
        CountTable([1, 1], [0, 1], [60, 40]),
        CountTable([10**5, 10**5], [0, 10**5]),
    ],
    ids=lambda counts: " ".join(f"{n}/{s}" for n, s in zip(counts.n, counts.s, strict=True)),
)
@pytest.mark.filterwarnings("ignore::binreps.BinrepsWarning")
def test_degenerate_data_never_break_it(make, counts: CountTable) -> None:
    fit = make(counts)
    assert all(np.isnan(rate) or 0 <= rate <= 1 for rate in fit.rates)
    for what in (fit.score, fit.predict):
        values = what([0, 1, 1, 3, 3], [0, 0, 1, 1, 3])
        assert np.all(np.isnan(values) | ((values >= 0) & (values <= 1)))
    assert "nan" not in str(fit)


# --- the words -------------------------------------------------------------------------------------------


def test_it_prints_as_a_small_table(fit: Fit) -> None:
    lines = str(fit).splitlines()
    assert lines[0].startswith(fit.method)
    assert "116 individuals, 445 replicates, 8 cells" in lines[0]
    words = [line.split()[0] for line in lines[2:7]]
    assert words == ["prevalence", "false-positive", "false-negative", "sensitivity", "specificity"]
    assert repr(fit) == str(fit)
    assert max(map(len, lines)) < 80


def test_the_summary_holds_the_rates(fit: Fit) -> None:
    summary = fit.summary()
    assert isinstance(summary, Table)
    assert tuple(summary.columns) == ("rate", "estimate", "sd", "lower", "upper")
    rates = fit.rates
    assert summary["estimate"][:5] == (*rates, rates.sensitivity, rates.specificity)
    assert np.all(np.isnan(summary["sd"])) if fit.posterior.certain else np.all(np.array(summary["sd"]) > 0)


def test_a_notebook_gets_the_same_table(fit: Fit) -> None:
    html = fit._repr_html_()  # type: ignore[attr-defined]
    assert html == fit.summary()._repr_html_()
    assert html.count("<tr>") == len(fit.summary()) + 1
    assert fit.method in html


def test_it_is_a_frozen_value(fit: Fit) -> None:
    with pytest.raises(FrozenInstanceError):
        fit.rates = RATES  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert hash(pickle.loads(pickle.dumps(fit))) == hash(fit)


def test_what_is_no_count_table_or_no_prior_is_refused_in_a_sentence(name: str) -> None:
    if name not in ("known", "covariates"):  # made from the columns of a table here
        with pytest.raises(DataError, match="counts must be a CountTable, got list; count_table makes one"):
            FITS[name]([[3, 1]])  # type: ignore[arg-type]


@pytest.mark.parametrize("fit", [fit_bayes, fit_map, fit_overdispersed])
def test_a_prior_that_is_none_is_refused_in_a_sentence(fit: Callable[..., Fit]) -> None:
    with pytest.raises(OptionError, match=r"prior must be a Prior, such as .*, got \(1, 1\)"):
        fit(COUNTS, (1, 1))


def test_several_populations_are_no_single_fit() -> None:
    several = fit_populations({"a": COUNTS, "b": COUNTS})
    with pytest.raises(OptionError, match=r"got PopulationsFit; .* choose one, such as fit\[name\]"):
        decision_table(several, Loss(), 2)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"got PopulationsFit; .* choose one, such as fit\[name\]"):
        plot.rates(several)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"loss must be a Loss, .*, got a CountTable"):
        check(several["a"], COUNTS)  # type: ignore[arg-type]
