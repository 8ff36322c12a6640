"""The seam inside fits: what follows from weighted nodes, whoever made them."""

from __future__ import annotations

import numpy as np
import pytest

from binreps import (
    CountTable,
    FitError,
    Prior,
    Rates,
    fit_average,
    fit_bayes,
    fit_overdispersed,
    fit_populations,
)
from binreps.fits.mcmc import McmcFit
from binreps.fits.posterior import Memory, Point, weighted_quantiles
from binreps.model import ALIKE, CORRELATED, OptionError, Records, score_at
from oracles import score_quantile

COUNTS = CountTable([4, 4, 4, 4, 4, 3, 2], [0, 1, 2, 3, 4, 2, 1], weight=[50, 20, 6, 10, 20, 5, 3])
ONCE = CountTable([1, 1], [0, 1], [70_000, 30_000])  # a ridge, which nested rules follow
CELLS = ([4, 4, 6, 2, 9], [0, 2, 3, 1, 9])


def drawn(size: int = 20_000) -> McmcFit:
    """Independent draws of the exact posterior, as chains."""
    draws = fit_bayes(COUNTS).draws(size, rng=1)
    chains = Rates(*(rate.reshape(4, -1) for rate in draws))
    return McmcFit.of(COUNTS, Prior(), chains, np.zeros((4, size // 4), bool))


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.slow
def test_nodes_and_draws_give_the_chances_that_the_exact_engine_sharpens(new: bool) -> None:
    """The same few lines over weighted nodes serve a grid, draws and boxes over a correlation."""
    exact, sampled = fit_bayes(COUNTS).posterior, drawn().posterior
    records = Records.of(*CELLS)
    sharp, rough = exact.chances(records, new=new), sampled.chances(records, new=new)
    assert np.all(np.abs(sharp.value - rough.value) < 5 * rough.error + 1e-6)
    *_, nodes = exact.nodes()
    for key, value in zip(zip(*CELLS, strict=True), sharp.value, strict=True):
        chances, weight = exact._weighed(nodes, key, new)
        assert weight.sum() == pytest.approx(1)
        assert weight @ chances == pytest.approx(value, abs=1e-6)
        (ends,) = exact._quantiles([key], np.array([0.05, 0.95]), new).values()
        assert weighted_quantiles(chances, weight, np.array([0.05, 0.95])) == pytest.approx(
            ends.value, abs=0.02
        )


def test_expectations_come_with_their_error() -> None:
    fit = fit_bayes(COUNTS)
    for i, mean in enumerate(fit.rates):
        value, error = fit.posterior.expect(lambda *parameters, i=i: parameters[i])
        assert abs(value - mean) <= max(error, 1e-12)
    correlated = fit_overdispersed(COUNTS)
    value, error = correlated.posterior.expect(lambda *parameters: parameters[3])
    assert abs(value - correlated.intraclass_correlation) <= max(10 * error, 1e-9)


@pytest.mark.slow
def test_the_error_is_fixed_when_the_fit_is_made() -> None:
    for fit in (fit_bayes(ONCE), fit_populations({"a": ONCE, "b": ONCE})["a"]):
        before = fit.error
        fit.quantile([0.05, 0.95])
        assert fit.error == before
        stated = max(fit.error, *(fit.marginal(name).error for name in ALIKE.names))
        assert f"numerical error below {stated:.0e}" in str(fit)


@pytest.mark.parametrize(
    "fit", [fit_bayes(COUNTS), fit_overdispersed(COUNTS)], ids=["bayes", "overdispersed"]
)
def test_intervals_of_chances_have_an_error_of_their_own(fit) -> None:
    for error in (fit.score_interval_error(*CELLS), fit.predict_interval_error(*CELLS, level=0.5)):
        assert error.shape == (5,)
        assert np.all((error >= 0) & (error < 0.05))


def test_the_error_of_an_interval_holds() -> None:
    """Against brute force."""
    counts = CountTable([2, 2, 3], [0, 2, 1], [9, 4, 3])
    fit = fit_bayes(counts)
    ends, error = fit.score_interval(3, 2), fit.score_interval_error(3, 2)
    for end, tail in zip(ends, (0.05, 0.95), strict=True):
        assert abs(end - score_quantile(counts, 3, 2, tail, Prior())) < error + 1e-6


def test_a_point_leaves_nothing_open() -> None:
    fit = fit_average(COUNTS)
    assert fit.posterior.certain
    assert (fit.error, np.isnan(fit.log_evidence)) == (0.0, True)
    assert np.isnan(fit.predict_interval(*CELLS)).all()
    assert fit.predict(*CELLS).tolist() == score_at(*map(np.array, CELLS), *fit.rates).tolist()
    assert fit.joint_draws(3, rng=1)[None].T.tolist() == [list(fit.rates)] * 3
    with pytest.raises(FitError, match="a point has no density of prevalence"):
        Point(*fit.rates).marginal(0)


def test_what_is_remembered_has_a_bound() -> None:
    memory, made = Memory(3), []
    for key in (1, 2, 3, 1, 4, 2, 1):
        memory.get(key, lambda key=key: made.append(key))
    assert len(memory) == 3
    assert made == [1, 2, 3, 4, 1]  # 1 made way for 4
    fit = fit_bayes(COUNTS)
    fit.posterior._memory = Memory(5)
    n = np.repeat(np.arange(1, 9), 2)
    first = [fit.score(n, n // 2), *fit.score_interval(n, n // 2)]
    assert len(fit.posterior._memory) == 5
    assert np.array_equal(first, [fit.score(n, n // 2), *fit.score_interval(n, n // 2)])


def test_records_are_asked_for_by_n_and_s_or_as_a_table() -> None:
    fit = fit_bayes(COUNTS)
    assert np.array_equal(fit.score(COUNTS), fit.score(COUNTS.n, COUNTS.s))
    for asked in ((3,), (3, 1, 2), ()):
        with pytest.raises(OptionError, match="ask about n and s, or about a count table, got"):
            fit.score(*asked)
    huge = Records.of([2**40, 2**40, 3], [7, 7, 1])
    assert huge.distinct()[0] == [(3, 1), (2**40, 7)]
    assert huge.distinct()[1].tolist() == [1, 1, 0]


def test_a_model_says_what_the_classes_make_of_a_record() -> None:
    """Ranges of s add up to 1, and are sums of the classes' probabilities of each s."""
    starts = np.array([0, 2, 3, 7])
    p, q, rho = np.array([0.1, 0.4]), np.array([0.2, 0.05]), np.array([0.3, 1e-9])
    alike, correlated = ALIKE.ranges(8, starts, p, q), CORRELATED.ranges(8, starts, p, q, rho)
    for negative, positive in (alike, correlated):
        assert negative.shape == positive.shape == (2, 4)
        assert negative.sum(axis=1) == pytest.approx([1, 1])
        assert positive.sum(axis=1) == pytest.approx([1, 1])
    assert correlated[0][1] == pytest.approx(alike[0][1], rel=1e-6)  # without correlation
    assert correlated[0][0][3] > 5 * alike[0][0][3]  # with it, many alike are likelier


@pytest.mark.parametrize(
    ("counts", "cell"),
    [
        (CountTable([6, 2, 1, 6, 2], [2, 1, 0, 4, 0], [51, 5, 42, 16, 44]), (4, 4)),
        (CountTable([2], [2], [22]), (4, 0)),
    ],
)
def test_intervals_on_which_a_series_once_settled_wrongly(counts: CountTable, cell) -> None:
    """An earlier engine was off by 3e-4 and 3e-5 here while its own series had died out."""
    prior = Prior((1, 1), (2, 20), (1, 5))
    fit = fit_bayes(counts, prior)
    true = [score_quantile(counts, *cell, tail, prior) for tail in (0.05, 0.95)]
    off = np.max(np.abs(np.subtract(fit.score_interval(*cell), true)))
    assert off < min(fit.score_interval_error(*cell) + 1e-6, 1e-5)


@pytest.mark.parametrize("fit", [fit_bayes, fit_overdispersed])
def test_what_is_left_by_a_new_record_is_summed_over_all_nodes(fit) -> None:
    posterior = fit(COUNTS).posterior
    for key in ((1, 1), (4, 2), (9, 9), (30, 12)):
        record = posterior.model.record(key)
        weight = np.exp(np.logaddexp(*posterior.model.log_shares(record, *posterior.grid.parameters))[0])
        mass = posterior.grid.mass
        expected = np.sum(mass * weight) ** 2 / np.sum(mass * weight**2) / mass.sum()
        assert posterior._kept(key) == pytest.approx(expected, rel=0.05)  # some nodes tell, of a million


def test_lines_are_made_once_for_all_records(monkeypatch) -> None:
    posterior, made = fit_bayes(CountTable([3, 3, 2], [0, 3, 1], [3, 2, 1])).posterior, []
    threads = posterior._threads
    monkeypatch.setattr(posterior, "_threads", lambda level: made.append(level) or threads(level))
    for _ in range(3):
        posterior._on_threads(lambda *_: 0.0, tol=-1.0)  # as if nothing ever settled
    assert made == list(range(5))  # four levels, and that there is no fifth
