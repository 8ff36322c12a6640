"""Sources with error rates of their own: golden posteriors, independent oracles, stated errors, limits."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from binreps import CountTable, DataError, OptionError, Prior, Readings, SourcePrior, fit_bayes, fit_sources
from binreps.fits.sampled.draws import log_beta, split_rhat
from binreps.fits.sampled.errors import Collapsed, Region, _population
from shared_data import golden_models, shared_columns

ALIKE = SourcePrior(
    mean_false_positive=0.5, spread_false_positive=0.2, mean_false_negative=0.5, spread_false_negative=0.2
)
"""m = ½ and κ = 4: Beta(2, 2) for each rate."""


def carcinoma() -> Readings:
    """118 slides read by seven pathologists."""
    columns = shared_columns("data/carcinoma.csv")
    names = [name for name in columns if name != "slide"]
    return Readings.wide(np.array([columns[name] for name in names], int).T, names)


def crowd(name: str) -> tuple[Readings, np.ndarray]:
    """A crowd's votes, and the truth of each item in the order of the records."""
    votes, truth = shared_columns(f"data/{name}.csv"), shared_columns(f"data/{name}_truth.csv")
    readings = Readings(votes["item"], votes["rater"], np.array(votes["result"], int))
    status = dict(zip(truth["item"], map(int, truth["truth"]), strict=True))
    return readings, np.array([status[item] for item in dict.fromkeys(votes["item"])])


def golden(name: str, readings: Readings) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Means, sds and standard errors of the parameters in our order, and the scores."""
    case = golden_models()["sources"]["cases"][name]
    each = [case["sources"][str(source)] for source in readings.sources]
    listed = [case["hyper"]["prevalence"]]
    listed += [one[side] for side in ("false_positive", "false_negative") for one in each]
    listed += [case["hyper"][key] for key in ("mp", "rho_p", "mq", "rho_q")]
    columns = (np.array([one[key] for one in listed]) for key in ("mean", "sd", "mcse"))
    return *columns, np.array(case["scores"])


@cache
def small_fit():
    """Three sources, one of them poor."""
    rows = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0]]
    readings = Readings.wide(rows, ["ann", "bob", "eve"], weight=[30, 20, 20, 30, 3, 2])
    return fit_sources(readings, rng=1, independent=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["carcinoma", "rte"])
def test_golden_posteriors_at_the_default_error(name: str) -> None:
    readings, truth = (carcinoma(), None) if name == "carcinoma" else crowd("rte")
    fit = fit_sources(readings, rng=0, independent=True)
    mean, sd, _, scores = golden(name, readings)
    assert np.all(np.abs(fit.posterior.mean - mean) <= 0.06 * sd)
    assert np.all(np.abs(fit.posterior.sd / sd - 1) < 0.05)
    assert np.all(np.abs(fit.score(readings) - scores) <= 0.03)
    assert fit.error <= 0.05
    assert fit.rhat <= 1.05
    if truth is not None:  # the bars for readings that are taken to be independent
        score = fit.score(readings)
        assert np.mean((score > 0.5) == truth) >= 0.925
        assert -np.mean(np.log(np.where(truth == 1, score, 1 - score))) <= 0.30


@pytest.mark.slow
def test_golden_posterior_at_a_smaller_error() -> None:
    readings = carcinoma()
    fit = fit_sources(readings, rng=5, tol=0.02, independent=True)
    mean, sd, _, scores = golden("carcinoma", readings)
    assert fit.error <= 0.02
    assert np.all(np.abs(fit.posterior.mean - mean) <= 0.03 * sd)
    assert np.all(np.abs(fit.score(readings) - scores) <= 0.01)
    case = golden_models()["sources"]["cases"]["carcinoma"]["sources"]
    lower, upper = fit.interval(0.9)
    for side in ("false_positive", "false_negative"):
        for ends, key in ((lower, "q05"), (upper, "q95")):
            wanted = np.array([case[source][side][key] for source in fit.sources])
            assert np.all(np.abs(getattr(ends, side) - wanted) <= 0.1 * getattr(fit.sd, side))


@pytest.mark.slow
def test_the_stated_error_holds() -> None:
    """The bound of each quantity, with the oracle's own error: ≥ 93 % of them over 20 seeds."""
    readings = carcinoma()
    mean, _, mcse, scores = golden("carcinoma", readings)
    held, score_held = [], []
    for seed in range(20):
        fit = fit_sources(readings, rng=seed, tol=0.2, sweeps=200, independent=True)
        held.append(
            np.abs(fit.posterior.mean - mean) <= fit.posterior.sampled.error * fit.posterior.sd + mcse
        )
        score_held.append(np.abs(fit.score(readings) - scores) <= fit.score_error(readings) + 0.002)
    assert np.mean(held) >= 0.93
    assert np.mean(score_held) >= 0.93


def from_the_prior(readings: Readings, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and sds by weighting draws from the restricted prior: no chain, no conditional law."""
    rng, sources = np.random.default_rng(7), len(readings.sources)
    m = rng.beta(2, 2, (2, size))
    m = m[:, m.sum(axis=0) < 1]
    size = m.shape[1]
    rho = rng.random((2, size))
    a, b = m * (1 / rho - 1), (1 - m) * (1 / rho - 1)
    p, q = (rng.beta(np.maximum(a[i], 1e-9), np.maximum(b[i], 1e-9), (sources, size)) for i in (0, 1))
    theta = rng.beta(0.5, 0.5, size)
    each, inside = readings.totals.sum(axis=1), np.ones(size, bool)
    for component in set(readings.components.tolist()):
        own = readings.components == component
        inside &= each[own] @ (p[own] + q[own] - 1) < 0
    weight = inside.astype(float)
    for i in range(len(readings)):
        classes = [1 - theta, theta.copy()]
        for e in range(readings.start[i], readings.start[i + 1]):
            source, yes = divmod(int(readings.code[e]), 2)
            often = 1 if readings.times is None else readings.times[e]
            classes[0] = classes[0] * (p[source] if yes else 1 - p[source]) ** often
            classes[1] = classes[1] * (1 - q[source] if yes else q[source]) ** often
        known = readings.known[i]
        weight *= (classes[known] if known >= 0 else classes[0] + classes[1]) ** readings.weight[i]
    values = np.vstack([theta, p, q, m[0], rho[0], m[1], rho[1]])
    mean = values @ weight / weight.sum()
    return mean, np.sqrt(values**2 @ weight / weight.sum() - mean**2)


TINY = {
    "one source": Readings([1, 1, 2, 3], ["a"] * 4, [1, 0, 1, 0]),
    "three components": Readings(
        [1, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6], list("abaabcdceee"), [1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0]
    ),
    "nobody or everybody": Readings.wide([[0, 1, 0], [0, 0, 0], [0, 1, 1]], weight=[3, 4, 1]),
    "gold": Readings([1, 1, 2, 2, 3, 3], list("ababab"), [1, 1, 0, 1, 0, 0], [1, 1, None, None, 0, 0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_tiny_data_agree_with_weighted_draws_from_the_prior(name: str) -> None:
    fit = fit_sources(TINY[name], rng=1, tol=0.03)
    mean, sd = from_the_prior(TINY[name], 1_000_000)
    assert np.all(np.abs(fit.posterior.mean - mean) <= 0.06 * sd)
    assert np.all(np.abs(fit.posterior.sd / sd - 1) <= 0.04)


@pytest.mark.slow
def test_one_source_with_a_fixed_population_is_the_exact_fit_on_its_region() -> None:
    counts = CountTable([3, 3, 3, 3, 5, 5], [0, 1, 2, 3, 1, 4], [30, 10, 8, 20, 5, 6])
    one = np.zeros(len(counts), int)
    unknown = np.full(len(counts), -1, np.int8)
    rows = np.arange(len(counts))
    readings = Readings.counted(["x"], rows, one, counts.s, counts.n - counts.s, unknown, counts.weight)
    exact = fit_bayes(counts, Prior(better_than_chance=True))
    fit = fit_sources(readings, ALIKE, rng=3, tol=0.02, independent=True)
    for name in ("prevalence", "false_positive", "false_negative"):
        off = np.ravel(getattr(fit.rates, name))[0] - getattr(exact.rates, name)
        assert abs(off) <= 0.03 * getattr(exact.sd, name)
    assert np.all(np.abs(fit.score(readings) - exact.score(counts)) <= fit.score_error(readings) + 1e-4)
    asked = [{"x": (4, s)} for s in range(5)]
    predicted = exact.predict(4, range(5))
    assert np.all(np.abs(fit.predict(asked) - predicted) <= fit.predict_error(asked) + 1e-3)
    for mine, theirs in zip(fit.predict_interval(asked), exact.predict_interval(4, range(5)), strict=True):
        assert np.all(np.abs(mine - theirs) <= 0.02)


def test_the_same_seed_gives_the_same_bits() -> None:
    readings = TINY["gold"]
    first, again = (fit_sources(readings, rng=4, sweeps=50) for _ in range(2))
    assert np.array_equal(first.posterior.sampled.logs, again.posterior.sampled.logs)
    assert first == again
    other = fit_sources(readings, rng=5, sweeps=50)
    assert not np.array_equal(first.posterior.mean, other.posterior.mean)


def test_an_error_that_is_not_reached_is_said() -> None:
    fit = fit_sources(TINY["one source"], rng=1, sweeps=40, tol=1e-4)
    assert fit.error > 1e-4
    assert "error-not-reached" in [trouble.name for trouble in fit.troubles()]


@pytest.mark.slow
def test_a_prediction_is_the_score_after_the_new_individual_joined() -> None:
    fit = small_fit()
    for said in ({"ann": 1, "bob": 0}, {"eve": 1}, {"someone": (3, 3), "ann": 0}):
        rows = [(i, source, x) for i, row in enumerate(
            [{"ann": 1, "bob": 1, "eve": 1}] * 30 + [{"ann": 1, "bob": 1, "eve": 0}] * 20
            + [{"ann": 0, "bob": 0, "eve": 1}] * 20 + [{"ann": 0, "bob": 0, "eve": 0}] * 30
            + [{"ann": 1, "bob": 0, "eve": 1}] * 3 + [{"ann": 0, "bob": 1, "eve": 0}] * 2
        ) for source, x in row.items()]  # fmt: skip
        for source, answer in said.items():
            n, s = answer if isinstance(answer, tuple) else (1, answer)
            rows += [(-1, source, 1)] * s + [(-1, source, 0)] * (n - s)
        refitted = fit_sources(Readings(*zip(*rows, strict=True)), rng=2, independent=True)
        assert abs(fit.predict(said) - refitted.score(said)) <= 0.03


def test_a_source_never_seen_is_one_of_its_population() -> None:
    """One reading by a stranger weighs what the population's mean rates say, draw by draw."""
    fit = small_fit()
    flat = np.exp(fit.posterior.sampled.logs[:, 0].astype(float)).reshape(len(fit.model.names), -1)
    theta, m_p, m_q = flat[0], flat[-4], flat[-2]
    wanted = (theta * (1 - m_q)).mean() / (theta * (1 - m_q) + (1 - theta) * m_p).mean()
    assert fit.predict({"stranger": 1}) == pytest.approx(wanted, abs=1e-5)
    assert fit.predict({}) == pytest.approx(theta.mean(), abs=1e-6)


def test_scores_are_what_the_draws_say() -> None:
    fit = small_fit()
    flat = np.exp(fit.posterior.sampled.logs.astype(float)).reshape(len(fit.model.names), 2, -1)
    theta, p, q = flat[0, 0], flat[1:4], flat[4:7]
    positive = theta * q[0, 1] * q[2, 0]
    negative = (1 - theta) * p[0, 0] * p[2, 1]
    chance = positive / (positive + negative)
    said = {"ann": 1, "eve": 0}
    assert fit.score(said) == pytest.approx(chance.mean(), abs=1e-5)
    lower, upper = fit.score_interval(said, level=0.8)
    assert (lower, upper) == pytest.approx(tuple(np.quantile(chance, [0.1, 0.9])), abs=1e-4)
    predicted = positive.sum() / (positive + negative).sum()
    assert fit.predict(said) == pytest.approx(predicted, abs=1e-5)


def test_many_individuals_alike_are_one_record() -> None:
    few = fit_sources(Readings.wide([[1, 1, 0], [0, 0, 0]], weight=[10**9, 2 * 10**9]), rng=1, sweeps=100)
    assert len(few.readings) == 2
    assert few.rates.prevalence == pytest.approx(1 / 3, abs=1e-3)


def test_no_data_give_the_prior() -> None:
    fit = fit_sources(Readings([], [], []), rng=1)
    assert fit.rates.prevalence == pytest.approx(0.5, abs=0.03)
    assert fit.posterior.mean[1] == pytest.approx(0.3535, abs=0.02)  # of m(1−m) m'(1−m') on m + m' < 1


def test_summary_has_a_row_per_rate_and_source() -> None:
    fit = small_fit()
    table = fit.summary()
    assert table["rate"][:3] == ("prevalence", "false-positive", "false-negative")
    assert table["source"][1:7] == ("ann", "ann", "bob", "bob", "eve", "eve")
    assert table["readings"][0] == 3 * 105
    assert list(fit.source_table()["source"]) == ["ann", "bob", "eve"]
    assert np.all(fit.worse_than_chance < 0.5)
    assert "numerical error below" in str(fit)
    rates = fit.draws(7, 1)
    assert rates.false_positive.shape == (3, 7)


def test_a_fit_can_be_pickled() -> None:
    fit = small_fit()
    again = pickle.loads(pickle.dumps(fit))
    assert again == fit
    assert np.array_equal(again.score(), fit.score())


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: fit_sources(CountTable([1], [1]), rng=1), DataError, "readings must be Readings"),
        (lambda: fit_sources(TINY["gold"], Prior(), rng=1), OptionError, "prior must be a SourcePrior"),
        (lambda: fit_sources(TINY["gold"], rng=None), OptionError, "rng must be"),
        (lambda: fit_sources(TINY["gold"], rng=1, tol=0), OptionError, "tol must be"),
        (lambda: fit_sources(TINY["gold"], rng=1, chains=2), OptionError, "chains must be"),
        (lambda: fit_sources(TINY["gold"], rng=1, sweeps=1), OptionError, "sweeps must be"),
        (lambda: SourcePrior(mean_false_positive=1.0), OptionError, "mean_false_positive must be between 0"),
        (lambda: SourcePrior(spread_false_negative=(0, 1)), OptionError, "spread_false_negative must have"),
        (lambda: small_fit().score(3, 1), OptionError, "ask about Readings"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(make, error, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        make()


def test_rates_integrated_out_are_beta_binomial() -> None:
    from scipy.special import betaln

    counts = np.array([[[3.0], [0], [40], [700]], [[2.0], [5], [60], [1]]])
    place = np.array([[-1.0], [-0.5]])
    a, b = _population(place)
    wanted = (betaln(a + counts[0], b + counts[1]) - betaln(a, b)).sum()
    for readings in (counts.sum(axis=0).ravel(), np.full(4, 10**6)):  # in tails, and one by one
        assert Collapsed(readings).of(counts)(place)[0] == pytest.approx(wanted, rel=1e-12)


def test_beta_draws_in_logarithms_are_beta_draws() -> None:
    rng = np.random.default_rng(3)
    log, log_not = log_beta(np.full(200_000, 0.3), np.full(200_000, 2.0), rng)
    x = np.exp(log)
    assert np.allclose(x + np.exp(log_not), 1)
    assert x.mean() == pytest.approx(0.3 / 2.3, abs=3e-3)
    assert x.var() == pytest.approx(0.3 * 2 / (2.3**2 * 3.3), abs=2e-3)
    tiny, _ = log_beta(np.full(1000, 1e-6), np.ones(1000), rng)
    assert np.all(np.isfinite(tiny))
    assert tiny.min() < -1000  # far below the smallest float


def test_chains_that_disagree_are_seen() -> None:
    rng = np.random.default_rng(2)
    same = rng.normal(size=(1, 8, 500))
    assert split_rhat(same)[0] < 1.01
    assert split_rhat(same + np.arange(8)[None, :, None])[0] > 2
    assert split_rhat(np.zeros((1, 8, 500)))[0] == 1


def test_components_must_each_be_better_than_chance() -> None:
    region = Region(Readings([1, 1, 2], ["a", "b", "c"], [1, 1, 0]))
    totals = np.array([[0.5], [1.4], [1.1]])
    assert region.outside(totals).tolist() == [[False], [True]]


@pytest.mark.slow
def test_adversaries_are_found_and_used() -> None:
    """45 % who say the opposite: the majority is as good as a coin, the sources together are not."""
    rng = np.random.default_rng(6)
    truth, wrong = rng.random(600) < 0.4, np.where(np.arange(60) < 27, 0.9, 0.1)
    rows = [(i, j, int(truth[i] ^ (rng.random() < wrong[j])))
            for i in range(600) for j in rng.choice(60, 8, replace=False)]  # fmt: skip
    readings = Readings(*zip(*rows, strict=True))
    fit = fit_sources(readings, rng=1, sweeps=1500)
    assert np.mean((fit.score(readings) > 0.5) == truth) > 0.95
    assert np.mean(fit.worse_than_chance > 0.5) == pytest.approx(0.45, abs=0.05)


@pytest.mark.slow
def test_single_readings_say_nothing_and_chains_say_so() -> None:
    rng = np.random.default_rng(0)
    readings = Readings(np.arange(500), rng.integers(0, 20, 500), (rng.random(500) < 0.4).astype(int))
    fit = fit_sources(readings, rng=1, sweeps=600)
    assert not fit.identifiable
    assert fit.sd.prevalence > 0.1


def test_votes_of_one_population_of_sources_follow_the_binomial_law() -> None:
    """With spread held near 0 all sources are alike, and the score depends on the number of votes alone."""
    same = SourcePrior(
        mean_false_positive=0.1,
        spread_false_positive=1e-6,
        mean_false_negative=0.2,
        spread_false_negative=1e-6,
    )
    readings = Readings.wide([[1, 1, 0], [0, 1, 1], [0, 0, 0]], weight=[5, 5, 10])
    fit = fit_sources(readings, same, rng=1, independent=True)
    theta = np.exp(fit.posterior.sampled.logs[0, 0].astype(float)).ravel()
    positive, negative = theta * binom.pmf(2, 3, 0.8), (1 - theta) * binom.pmf(2, 3, 0.1)
    wanted = (positive / (positive + negative)).mean()
    assert fit.score(readings)[:2] == pytest.approx([wanted] * 2, abs=2e-3)
