"""Each check fires where it must and is silent where it must; its numbers are those of oracles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, betabinom, binom, kstest

from binreps import (
    CountTable,
    Loss,
    OptionError,
    Prior,
    Rates,
    fit_average,
    fit_bayes,
    fit_known,
    fit_map,
    fit_median,
    fit_populations,
    simulate,
)
from binreps.decide.checks.findings import Finding, Findings
from binreps.decide.checks.goodness import Look, dispersion, looks_of, table_advice
from binreps.decide.checks.identifiability import information_gain
from binreps.decide.checks.run import check
from binreps.decide.checks.scores import rows_of, score_test
from binreps.decide.checks.sensitivity import log_prior, shift_per_doubling
from binreps.decide.checks.subject import Part, parts_of
from binreps.fits.bayes import BayesFit
from binreps.fits.mcmc import McmcFit
from binreps.fits.overdispersed import fit_overdispersed
from binreps.model import NAMES
from binreps.study.simulate import simulate_counts
from shared_data import shared_columns

TRUTH = Rates(0.3, 0.1, 0.05)
LOSS = Loss(inconclusive=0.45)
GOOD = simulate_counts(TRUTH, 5000, range(2, 7), rng=4)
HONEST = simulate_counts(TRUTH, 200, range(2, 7), rng=1)
MISGUIDED = Prior((0.5, 0.5), (50, 50), (50, 50))

bayes = cache(fit_bayes)


def names(fit: Any, loss: Loss | None = LOSS) -> set[str]:
    return {finding.name for finding in check(fit, loss)}


def correlated(individuals: int, rho: float, seed: int) -> CountTable:
    """Individuals of one status that differ: their replicates are correlated."""
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 7, individuals)
    mean = np.where(rng.random(individuals) < 0.3, 0.95, 0.1)
    return CountTable(n, rng.binomial(n, rng.beta(mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1))))


def more_for_positives(individuals: int, seed: int) -> CountTable:
    """Positive individuals are measured more often."""
    rng = np.random.default_rng(seed)
    truth = rng.random(individuals) < 0.4
    n = np.where(truth, rng.integers(4, 7, individuals), rng.integers(2, 5, individuals))
    return CountTable(n, rng.binomial(n, np.where(truth, 0.9, 0.1)))


def two_tests(seed: int) -> CountTable:
    """Those with 3 replicates took a much worse test than those with 5."""
    poor = simulate_counts(Rates(0.3, 0.4, 0.4), 300, 3, rng=seed)
    return poor + simulate_counts(Rates(0.3, 0.02, 0.02), 300, 5, rng=seed + 1)


# --- each check: where it fires, where it is silent --------------------------------------------------------

FIRES: dict[str, Callable[[], Any]] = {
    "no-data": lambda: fit_bayes(CountTable([], [])),
    "not-identifiable": lambda: fit_bayes(CountTable([2, 2, 2], [0, 1, 2], [60, 30, 10])),
    "two-replicates": lambda: fit_populations(
        {"a": CountTable([2, 2, 2], [0, 1, 2], [60, 30, 10]), "b": CountTable([2, 2], [0, 2], [9, 50])}
    ),
    "few-replicated": lambda: fit_bayes(CountTable([1, 1, 4], [0, 1, 3], [60, 30, 4])),
    "unlearnt-prevalence": lambda: fit_bayes(CountTable([3], [1])),
    "unlearnt-false-positive": lambda: fit_bayes(CountTable([3], [3], [1])),
    "unlearnt-false-negative": lambda: fit_bayes(CountTable([4, 4], [0, 1], [80, 20])),
    "no-positives": lambda: fit_bayes(CountTable([4], [0], [100])),
    "no-negatives": lambda: fit_bayes(CountTable([4], [4], [100])),
    "at-half-false-positive": lambda: fit_bayes(GOOD, Prior((0.5, 0.5), (10**6, 10), (2, 2))),
    "at-half-false-negative": lambda: fit_map(simulate_counts(Rates(0.5, 0.05, 0.7), 400, 6, rng=1)),
    "several-modes": lambda: fit_bayes(CountTable([3, 4, 5, 7], [2, 0, 5, 4], [27, 12, 36, 36])),
    "count-table": lambda: fit_bayes(two_tests(1)),
    "over-dispersion": lambda: fit_bayes(correlated(500, 0.2, 1)),
    "dispersion-unseen": lambda: fit_bayes(simulate_counts(TRUTH, 500, 3, rng=1)),
    "informative-replication": lambda: fit_bayes(more_for_positives(300, 1)),
    "prior-prevalence": lambda: fit_bayes(HONEST, Prior((300, 10), (2, 2), (2, 2))),
    "prior-false-positive": lambda: fit_bayes(HONEST, Prior((0.5, 0.5), (300, 300), (2, 2))),
    "prior-false-negative": lambda: fit_bayes(HONEST, Prior((0.5, 0.5), (2, 2), (300, 300))),
    "decision-uncertain": lambda: fit_bayes(simulate_counts(Rates(0.5, 0.3, 0.3), 30, 3, rng=2)),
    "decision-prior": lambda: fit_bayes(CountTable([3, 3], [1, 2], [5, 5])),
    "not-converged": lambda: fit_map(HONEST, algorithm="em", rng=1, starts=1, max_iter=2),
    "numerical-error": lambda: Rough(**vars_of(HONEST)),
    "chains-disagree": lambda: chains_that_did_not_mix(HONEST),
    "few-draws": lambda: chains_that_did_not_mix(HONEST),
    "divergences": lambda: chains_that_did_not_mix(HONEST),
}


def vars_of(counts: CountTable) -> dict[str, Any]:
    fit = bayes(counts)
    return {"counts": fit.counts, "prior": fit.prior, "posterior": fit.posterior}


class Rough(BayesFit):
    """A fit that says that it is not exact."""

    error = 0.01


def chains_that_did_not_mix(counts: CountTable) -> McmcFit:
    pytest.importorskip("arviz")
    draws = bayes(counts).draws(80, rng=1)
    shifted = [np.reshape(rate, (4, 20)) + np.array([[0.0], [0.0], [0.0], [0.1]]) for rate in draws]
    diverging = np.arange(80).reshape(4, 20) < 7
    return McmcFit.of(counts, Prior(), Rates(*(np.clip(rate, 0, 1) for rate in shifted)), diverging)


@pytest.mark.parametrize("name", FIRES)
def test_it_fires(name: str) -> None:
    found = {finding.name: finding for finding in check(FIRES[name](), LOSS)}
    assert name in found
    finding = found[name]
    assert np.isfinite(finding.number)
    assert finding.sentence.endswith(".")
    assert finding.advice.endswith(".")
    assert "nan" not in str(finding)


def test_everything_is_silent_on_plenty_of_good_data() -> None:
    assert not check(bayes(GOOD), LOSS)
    assert str(check(bayes(GOOD))) == "nothing to report"
    assert not check(fit_map(GOOD), LOSS)
    halves = {
        name: simulate_counts(Rates(theta, 0.1, 0.05), 3000, range(2, 7), rng=7)
        for name, theta in ((1, 0.2), (2, 0.6))
    }
    assert not check(fit_populations(halves), LOSS)


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("dispersion-unseen", lambda: fit_bayes(simulate_counts(TRUTH, 500, 4, rng=1))),
        ("two-replicates", lambda: fit_populations({1: HONEST, 2: CountTable([2], [1])})),
        ("not-identifiable", lambda: fit_bayes(CountTable([1, 1], [0, 1], [40, 40], known=[0, 1]))),
        ("few-replicated", lambda: fit_bayes(CountTable([1, 1], [0, 1], [40, 40], known=[0, 1]))),
        ("prior-false-positive", lambda: fit_bayes(GOOD, Prior((0.5, 0.5), (20, 180), (2, 2)))),
    ],
)
def test_it_is_silent_next_to_where_it_fires(name: str, fit: Callable[[], Any]) -> None:
    assert name not in names(fit())


@pytest.mark.slow
def test_the_over_dispersed_fit_answers_the_finding() -> None:
    counts = correlated(300, 0.3, 1)
    assert "over-dispersion" in names(fit_bayes(counts))
    assert not check(fit_overdispersed(counts)).warnings


def test_the_severity_follows_the_size() -> None:
    small = {
        finding.name: finding.severity
        for finding in check(fit_bayes(simulate_counts(TRUTH, 30, range(2, 7), rng=1)))
    }
    assert small["prior-false-negative"] == "note"
    strong = check(FIRES["prior-false-positive"]())
    assert any(finding.name == "prior-false-positive" for finding in strong.warnings)
    assert all(finding.severity == "note" for finding in strong.notes)


def test_an_answer_within_the_numerical_error_is_named() -> None:
    fit = bayes(HONEST)
    score = fit.score(4, 2)
    assert score < 0.5
    close = Loss(inconclusive=float(score + 0.5 * fit.score_error(4, 2)))
    finding = next(one for one in check(fit, close) if one.name == "decision-numerical")
    assert finding.number == HONEST.weight[(HONEST.n == 4) & (HONEST.s == 2)].sum()
    assert "decision-numerical" not in names(fit, Loss(inconclusive=float(score + 1e-6)))


def test_decisions_are_asked_about_only_if_there_is_a_loss() -> None:
    fit = FIRES["decision-uncertain"]()
    assert any(name.startswith("decision") for name in names(fit))
    assert not any(name.startswith("decision") for name in names(fit, None))


def test_known_statuses_need_no_decision() -> None:
    counts = CountTable([3, 3], [1, 2], [15, 15], known=[0, 1])
    assert not any(name.startswith("decision") for name in names(fit_bayes(counts)))


def test_the_misguided_prior_of_the_paper_is_noticed(periodontal) -> None:
    n, s, _ = periodontal
    found = {finding.name for finding in check(fit_bayes(CountTable(n, s), MISGUIDED), LOSS)}
    assert {"at-half-false-positive", "count-table", "prior-false-negative"} <= found


# --- false alarms ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_false_alarms_are_rare_on_data_from_the_model() -> None:
    """At most 5 % in the long run: of 60 data sets, more than 7 would have a chance below 1 %."""
    alarms = [
        bool(check(fit_bayes(simulate_counts(TRUTH, 200, range(2, 7), rng=seed)), LOSS).warnings)
        for seed in range(60)
    ]
    assert sum(alarms) <= binom(60, 0.05).ppf(0.99)


def test_a_higher_level_is_quieter() -> None:
    fit = fit_bayes(more_for_positives(60, 4))
    p_value = next(one.number for one in check(fit, level=0.5) if one.name == "informative-replication")
    assert "informative-replication" in check(fit, level=1 - p_value / 0.2 * 1.01)
    assert "informative-replication" not in check(fit, level=1 - p_value / 0.2 * 0.99)


@pytest.mark.slow
def test_p_values_of_the_score_tests_are_uniform_under_the_model() -> None:
    tails = []
    for seed in range(150):
        counts = simulate_counts(Rates(0.4, 0.15, 0.1), 150, range(2, 7), rng=seed)
        rows = rows_of([point(counts)])
        tails.append((score_test(rows, rows.correlation).above, score_test(rows, rows.replication).above))
    for p_values in np.transpose(tails):
        assert kstest(p_values, "uniform").pvalue > 1e-3


def point(counts: CountTable) -> Part:
    """What the checks see of a posterior mode."""
    return parts_of(fit_map(counts))[0]


# --- oracles for the numbers ----------------------------------------------------------------------------


def test_the_direction_of_correlation_is_the_derivative_of_the_likelihood() -> None:
    part = point(HONEST)
    rows, step = rows_of([part]), 1e-5
    theta, p, q = part.estimate
    n, s = part.possible.points_n, part.possible.s

    def log_chance(rho: float) -> np.ndarray:
        k = (1 - rho) / rho
        classes = [betabinom(n, rate * k, (1 - rate) * k).pmf(s) for rate in (p, 1 - q)]
        return np.log((1 - theta) * classes[0] + theta * classes[1])

    slope = (log_chance(2 * step) - log_chance(step)) / step
    assert rows.correlation == pytest.approx(slope, rel=0.01, abs=0.01)
    assert rows.expected @ rows.correlation == pytest.approx(0, abs=1e-8)
    assert rows.expected @ rows.rates == pytest.approx(np.zeros(3), abs=1e-8)


@pytest.mark.parametrize(
    ("replicates", "possible"),
    [([3], False), ([2, 3], False), ([1, 2, 3], False), ([4], True), ([2, 4], True), ([2, 3, 4], True)],
)
def test_one_correlation_needs_four_replicates(replicates: list[int], possible: bool) -> None:
    rows = rows_of([point(simulate_counts(TRUTH, 500, replicates, rng=2))])
    assert score_test(rows, rows.correlation).possible is possible


def test_known_statuses_show_over_dispersion_with_two_replicates() -> None:
    known = simulate(TRUTH, 500, 2, rng=1).known_counts
    rows = rows_of(parts_of(fit_bayes(known)))
    assert score_test(rows, rows.correlation).possible


def test_dispersion_is_pearsons_where_statuses_are_known(periodontal) -> None:
    """The issue's figures for the paper's data: 1.4 among the healthy and 1.8 among the infected."""
    n, s, truth = periodontal
    found = dispersion(parts_of(fit_bayes(CountTable(n, s, known=truth))))
    for t in (0, 1):
        rate = s[truth == t].sum() / n[truth == t].sum()
        terms = (s - n * rate) ** 2 / (n * rate * (1 - rate))
        assert found[t] == pytest.approx(terms[truth == t].sum() / ((truth == t).sum() - 1))
    assert np.round(found, 1).tolist() == [1.4, 1.8]


def test_dispersion_is_one_on_average_under_the_model_and_above_it_otherwise() -> None:
    true = [dispersion([point(simulate_counts(TRUTH, 500, range(3, 8), rng=seed))]) for seed in range(30)]
    assert np.mean(true, axis=0) == pytest.approx([1, 1], abs=0.1)
    wide = [dispersion([point(correlated(500, 0.3, seed))]) for seed in range(5)]
    assert np.mean(wide, axis=0).min() > 1.2


def test_predictive_p_values_are_those_of_simulated_tables() -> None:
    counts = CountTable([4, 4, 4, 4, 4], [0, 1, 2, 3, 4], [30, 25, 12, 3, 20])
    part = parts_of(fit_bayes(counts))[0]
    rng = np.random.default_rng(1)
    theta, p, q = (np.repeat(rate, 40) for rate in part.draws)
    positives = rng.binomial(90, theta)
    none = rng.binomial(90 - positives, (1 - p) ** 4) + rng.binomial(positives, q**4)
    look = looks_of(part)[0]
    assert "all negative" in look.words
    assert look.expected == pytest.approx(none.mean(), abs=0.2)
    wanted = 2 * min(np.mean(none <= 30), np.mean(none >= 30))
    assert look.p_value == pytest.approx(wanted, abs=0.02)


def test_the_information_gained_is_the_integral() -> None:
    fit = bayes(HONEST)
    part = parts_of(fit)[0]
    for name in NAMES:
        a, b = getattr(fit.prior, name)
        top = 1.0 if name == "prevalence" else 0.5
        marginal, law = fit.marginal(name), beta(a, b)

        def term(x: float, marginal: Any = marginal, law: Any = law, top: float = top) -> float:
            density = float(marginal.density(x))
            return density * np.log(density * law.cdf(top) / law.pdf(x)) if density > 1e-12 else 0.0

        exact = quad(term, *marginal.ends, limit=200)[0]
        binned = information_gain(part, fit.prior, name)
        assert 0.5 * exact < binned <= 1.05 * exact  # 20 bins see no more than there is
    unread = fit_bayes(CountTable([0], [0]))
    nothing = Part("", unread, unread.joint_draws(40_000, 1)[None])
    assert max(information_gain(nothing, Prior(), name) for name in NAMES) < 0.001


@pytest.mark.parametrize("name", NAMES)
def test_power_scaling_is_what_refits_with_the_scaled_prior_do(name: str) -> None:
    prior = Prior((2, 5), (3, 9), (2, 4))
    counts = simulate_counts(Rates(0.4, 0.15, 0.1), 40, range(2, 6), rng=3)
    fit, alpha = fit_bayes(counts, prior), 1.02
    a, b = getattr(prior, name)
    shapes = {other: getattr(prior, other) for other in NAMES}
    scaled = fit_bayes(counts, Prior(**{**shapes, name: (alpha * (a - 1) + 1, alpha * (b - 1) + 1)}))
    part = parts_of(fit)[0]
    power = log_prior(prior, name, getattr(part.draws, name))
    for rate in NAMES:
        moved = getattr(scaled.rates, rate) - getattr(fit.rates, rate)
        exact = np.log(2) * moved / np.log(alpha) / getattr(fit.sd, rate)
        found = shift_per_doubling(getattr(part.draws, rate), power)
        assert found == pytest.approx(exact, abs=0.08)  # 500 draws


def test_likelihood_scaling_is_what_heavier_data_do() -> None:
    """Weights of 20 and 21 times the same table: a likelihood to the power 1.05."""
    counts = CountTable([3, 3, 3, 4], [0, 1, 3, 3], [3, 1, 1, 1])
    twenty, more = (CountTable(counts.n, counts.s, k * counts.weight) for k in (20, 21))
    prior = Prior((8, 8), (20, 20), (20, 20))
    fit, heavier = fit_bayes(twenty, prior), fit_bayes(more, prior)
    part = Part("", fit, fit.joint_draws(8000, rng=1)[None])
    for rate in NAMES:
        moved = getattr(heavier.rates, rate) - getattr(fit.rates, rate)
        exact = np.log(2) * moved / np.log(1.05) / getattr(fit.sd, rate)
        found = shift_per_doubling(getattr(part.draws, rate), part.log_likelihood())
        assert found == pytest.approx(exact, abs=0.06)


def test_chances_are_scores(periodontal) -> None:
    n, s, truth = periodontal
    counts = CountTable(np.r_[n, n], np.r_[s, s], known=[*truth.tolist(), *[None] * n.size])  # cells twice
    fit = fit_bayes(counts)
    part = parts_of(fit)[0]
    assert part.chances.mean(axis=0) == pytest.approx(fit.score(counts.n, counts.s), abs=0.05)


# --- real data ------------------------------------------------------------------------------------------


def shared_counts(name: str, truth: str | None = None) -> CountTable:
    columns = shared_columns(f"data/{name}.csv")
    items, where = np.unique(columns["item"], return_inverse=True)
    n, s = np.bincount(where), np.bincount(where, np.array(columns["result"], dtype=int)).astype(int)
    if truth is None:
        return CountTable(n, s)
    known = shared_columns(f"data/{truth}.csv")
    status = dict(zip(known["item"], map(int, known["truth"]), strict=True))
    return CountTable(n, s, known=[status.get(item) for item in items])


def test_the_papers_data_break_its_model(periodontal) -> None:
    n, s, truth = periodontal
    assert "informative-replication" in names(fit_bayes(CountTable(n, s)))  # 2.3 sites of the healthy, 4.9
    assert "over-dispersion" in names(fit_bayes(CountTable(n, s, known=truth)))


def test_other_peoples_data() -> None:
    assert "over-dispersion" in names(fit_bayes(shared_counts("qpcr_goby")))
    columns = {
        name: list(map(int, values)) for name, values in shared_columns("data/caries_counts.csv").items()
    }
    assert "over-dispersion" in names(fit_bayes(CountTable(columns["n"], columns["s"], columns["count"])))
    restaurant = check(
        fit_bayes(shared_counts("restaurant")), LOSS
    )  # three workers each: it fits, as it must
    assert not restaurant.warnings
    assert "dispersion-unseen" in restaurant
    assert "over-dispersion" in names(fit_bayes(shared_counts("rte", "rte_truth")))  # the truth shows it


# --- any fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [fit_average, fit_median])
def test_scores_without_a_model_are_asked_about_replicates_only(make) -> None:
    assert not check(make(HONEST), LOSS)
    assert names(make(CountTable([2], [1], [30]))) == {"not-identifiable"}


def test_fits_of_every_kind_are_taken() -> None:
    known = simulate(TRUTH, 300, 4, rng=1).known_counts
    assert "over-dispersion" not in names(fit_known(known)) | names(fit_bayes(known))
    result = fit_populations({"a": correlated(400, 0.3, 1), "b": correlated(400, 0.3, 2)})
    assert "over-dispersion" in names(result)
    assert "over-dispersion" in names(result["a"])


@pytest.mark.filterwarnings("ignore::binreps.BinrepsWarning")
def test_extreme_tables_raise_nothing() -> None:
    for counts in (
        CountTable([0], [0], [5]),
        CountTable([10**6] * 2, [10**5, 9 * 10**5], [10**6, 10**6]),
        CountTable([3, 3], [0, 3], [10**9, 10**9]),
        CountTable(np.arange(1, 300), np.arange(1, 300) // 3),
        CountTable([1], [1], known=[0]),
    ):
        for fit in (fit_bayes(counts), fit_average(counts)):
            assert all(np.isfinite(finding.number) for finding in check(fit, LOSS))


def test_the_same_fit_gives_the_same_findings() -> None:
    assert check(fit_bayes(HONEST), LOSS) == check(fit_bayes(HONEST), LOSS)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check(GOOD.n), "fit must be what a fit_… function returned, got ndarray"),
        (lambda: check(bayes(GOOD), level=1), "level must be between 0 and 1, got 1"),
    ],
)
def test_bad_arguments_are_refused(call, sentence: str) -> None:
    with pytest.raises(OptionError, match=f"^{sentence}"):
        call()


# --- the collection --------------------------------------------------------------------------------------

NOTED = Finding("little", 1, "A small thing.", "Smile.", "note")
WARNED = Finding("much", 2.5, "A <large> thing.", "Stop.")


def test_warnings_come_first_and_notes_are_no_alarm() -> None:
    found = Findings((NOTED, WARNED))
    assert [*found] == [WARNED, NOTED]
    assert (found.warnings, found.notes, len(found), bool(found)) == ((WARNED,), (NOTED,), 2, True)
    assert not Findings()
    assert "much" in found
    assert "nothing" not in found


def test_findings_print_and_tabulate() -> None:
    found = Findings((NOTED, WARNED))
    assert str(found).splitlines()[:2] == ["WARNING much: A <large> thing.", "  → Stop."]
    assert repr(found) == str(found)
    assert "A &lt;large&gt; thing." in found._repr_html_()
    table = found.table()
    assert table["name"] == ("much", "little")
    assert table["number"] == (2.5, 1)
    long = Finding("long", 0, "word " * 60, "word " * 60)
    assert max(map(len, str(long).splitlines())) <= 100


# --- sentences that were wrong once -----------------------------------------------------------------------


def test_the_direction_of_replication_is_told_within_populations() -> None:
    """In each population positives have more replicates; together they have fewer, as one has few of both."""
    low = CountTable([3, 3, 5, 5], [0, 3, 0, 5], [400, 10, 100, 60])
    high = CountTable([1, 1, 2, 2], [0, 1, 0, 2], [60, 200, 10, 300])
    found = check(fit_populations({"low": low, "high": high}))
    (finding,) = [one for one in found if one.name == "informative-replication"]
    assert finding.sentence.startswith("Within populations positive individuals have more replicates, by ")
    assert "fit_populations" not in finding.advice


def test_replicates_that_are_too_alike_are_not_called_over_dispersed() -> None:
    found = check(fit_bayes(CountTable([3, 3], [1, 2], [50, 50])))
    (finding,) = [one for one in found if one.name == "count-table"]
    assert "overdispersed" not in finding.advice
    assert "more alike" in finding.advice


def test_nobody_of_unknown_status_means_those_of_unknown_status() -> None:
    found = check(fit_bayes(CountTable([5, 1, 1], [4, 0, 1], [20, 60, 40], known=[1, None, None])))
    (finding,) = [one for one in found if one.name == "not-identifiable"]
    assert finding.sentence.startswith("Nobody of unknown status has more than 1 replicate, ")


def test_advice_for_several_populations_can_be_followed_from_there() -> None:
    one, other = correlated(800, 0.6, 1), correlated(800, 0.6, 2)
    found = {one.name: one.advice for one in check(fit_populations({"a": one, "b": other}))}
    assert "analyse each population by itself" in found["over-dispersion"]
    spread = Look("", 5, 1, 0.0, True)
    assert "analyse them apart" in table_advice(spread, several=True)
    assert "as the population" in table_advice(spread, several=False)


def test_one_of_several_populations_rests_on_all_of_them() -> None:
    few, many = (
        CountTable([2] * 3, range(3), [120, 60, 220]),
        CountTable([4] * 5, range(5), [50, 18, 6, 9, 17]),
    )
    part = fit_populations({"few": few, "many": many})["few"]
    assert part.identifiable
    assert "not-identifiable" not in check(part)
    assert parts_of(part)[0].estimate == part.rates
    assert "rest on the prior" not in str(part)
    assert "rest on the prior" in str(fit_bayes(few))


def test_a_method_without_a_prior_is_not_said_to_rest_on_one() -> None:
    found = check(fit_average(CountTable([1, 1], [0, 1], [5, 5])))
    assert "not-identifiable" in found
    assert "rest on the prior" not in str(found)
