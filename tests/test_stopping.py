from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import beta as beta_function
from scipy.special import betainc

import binreps as br
from binreps.decide.stopping import (
    MEASURE,
    NextReplicates,
    StoppingTable,
    _exchangeable_row,
    next_replicates,
    stopping_table,
)
from binreps.fits.mcmc import McmcFit
from binreps.fits.posterior import Block
from binreps.model import CORRELATED

COUNTS = br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
FEW = br.CountTable([3, 3, 2, 4], [0, 3, 1, 1], [3, 2, 1, 1])
LOSS = br.Loss(false_negative=2, inconclusive=0.2)
FITS = {
    "bayes": br.fit_bayes(COUNTS),
    "few": br.fit_bayes(FEW),
    "nothing": br.fit_bayes(br.CountTable([], [])),
    "nested": br.fit_bayes(br.CountTable([1, 1], [0, 1], [400_000, 9000])),
    "population": br.fit_populations({"a": COUNTS, "b": FEW})["b"],
    "map": br.fit_map(COUNTS),
    "average": br.fit_average(COUNTS),
}


def lattice(table: StoppingTable, name: str) -> dict[tuple[int, int], float]:
    return {(row["n"], row["s"]): row[name] for row in table.table()}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_probabilities_and_costs_are_those_of_the_fit(fit) -> None:
    best = stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=12)
    n, s = (np.array(best.table()[name]) for name in ("n", "s"))
    np.testing.assert_allclose(best.table()["probability"], fit.predict(n, s), rtol=0, atol=1e-7)
    last = n == 12
    np.testing.assert_allclose(
        np.array(best.table()["expected_cost"])[last],
        LOSS.risks(fit.predict(n, s)).min(axis=-1)[last],
        atol=1e-7,
    )


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_probabilities_are_a_martingale_in_the_next_result(fit) -> None:
    rates = fit.rates
    p = lattice(stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=60), "probability")
    for n, s in [(0, 0), (1, 0), (3, 2), (10, 4), (59, 7), (59, 59)]:
        if hasattr(fit, "next_replicate"):
            chance = fit.next_replicate(n, s, new=True)
        else:
            chance = p[n, s] * rates.sensitivity + (1 - p[n, s]) * rates.false_positive
        assert chance * p[n + 1, s + 1] + (1 - chance) * p[n + 1, s] == pytest.approx(p[n, s], abs=1e-8)


def test_probabilities_without_data_are_ratios_of_beta_functions() -> None:
    prior = br.Prior(prevalence=(1, 3), false_positive=(2, 5), false_negative=(1.5, 4))

    def power(shapes: tuple[float, float], k: int, m: int) -> float:  # E[x^k (1−x)^m] on (0, ½)
        a, b = shapes
        part = [beta_function(*ab) * betainc(*ab, 0.5) for ab in ((a + k, b + m), (a, b))]
        return part[0] / part[1]

    fit = br.fit_bayes(br.CountTable([], []), prior)
    best = stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=40)
    for row in best.table():
        n, s = row["n"], row["s"]
        positive, negative = 0.25 * power((1.5, 4), n - s, s), 0.75 * power((2, 5), s, n - s)
        assert row["probability"] == pytest.approx(positive / (positive + negative), rel=1e-9)


def best_of_all_rules(p: dict, chance: dict, loss: br.Loss, cost: float, most: int) -> float:
    """The least expected cost of every rule that says at which results to go on, each followed forwards."""
    inner = [(n, s) for n in range(most) for s in range(n + 1)]
    costs = []
    for choice in product([False, True], repeat=len(inner)):
        go_on = dict(zip(inner, choice, strict=True))
        alive, total = {(0, 0): 1.0}, 0.0
        while alive:
            (n, s), mass = alive.popitem()
            if go_on.get((n, s), False):
                total += mass * cost
                for hit, share in ((1, chance[n, s]), (0, 1 - chance[n, s])):
                    alive[n + 1, s + hit] = alive.get((n + 1, s + hit), 0.0) + mass * share
            else:
                total += mass * min(loss.risks(p[n, s]))
        costs.append(total)
    return min(costs)


@pytest.mark.parametrize(("cost", "fit"), [(0.01, FITS["few"]), (0.03, FITS["bayes"]), (0.02, FITS["map"])])
def test_no_rule_of_all_that_exist_costs_less(cost: float, fit) -> None:
    most = 4
    best = stopping_table(fit, LOSS, cost_per_replicate=cost, max_replicates=most)
    p = {(n, s): float(fit.predict(n, s)) for n in range(most + 1) for s in range(n + 1)}
    chance = {
        (n, s): (p[n, s] - p[n + 1, s]) / (p[n + 1, s + 1] - p[n + 1, s]) for n, s in p if n < most
    }  # what the martingale says
    assert best.expected_cost == pytest.approx(best_of_all_rules(p, chance, LOSS, cost, most), rel=1e-6)


def followed(best: StoppingTable, results: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss and number of replicates of individuals measured as the table says."""
    words = {"negative": 0, "inconclusive": 0.5, "positive": 1, MEASURE: np.nan}
    answer = np.full((results.shape[1] + 1,) * 2, np.nan)
    for row in best.table():
        answer[row["n"], row["s"]] = words[row["action"]]
    n, s = np.zeros(truth.size, int), np.zeros(truth.size, int)
    while (going_on := np.isnan(answer[n, s])).any():
        s[going_on] += results[going_on, n[going_on]]
        n[going_on] += 1
    return best.loss.cost(truth, answer[n, s]), n


def test_following_the_table_costs_what_it_says_and_less_than_any_fixed_number() -> None:
    fit, cost, most, size = FITS["few"], 0.01, 12, 40_000
    best = stopping_table(fit, LOSS, cost_per_replicate=cost, max_replicates=most)
    rng = np.random.default_rng(8)
    theta, p, q = fit.draws(size, rng)  # the rates are not known either: each individual has their own draw
    truth = (rng.random(size) < theta).astype(int)
    results = (rng.random((size, most)) < np.where(truth == 1, 1 - q, p)[:, None]).astype(int)
    losses, used = followed(best, results, truth)
    total = losses + cost * used
    noise = 4 / np.sqrt(size)
    assert abs(total.mean() - best.expected_cost) < noise * total.std()
    assert abs(used.mean() - best.expected_replicates) < noise * used.std()
    for n in range(most + 1):
        s = results[:, :n].sum(axis=1)
        answers = np.asarray(LOSS.classify(fit.predict(n, np.arange(n + 1))))[s]
        difference = LOSS.cost(truth, answers) + cost * n - total
        assert difference.mean() > noise * difference.std()


def test_the_chance_of_ending_conclusive_and_of_coming_through() -> None:
    best = stopping_table(FITS["bayes"], LOSS, cost_per_replicate=0.02, max_replicates=9)
    ends = [row for row in best.table() if row["reached"] > 0 and row["action"] != MEASURE]
    assert sum(row["reached"] for row in ends) == pytest.approx(1)
    conclusive = sum(row["reached"] for row in ends if row["action"] != "inconclusive")
    assert best.conclusive == pytest.approx(conclusive)
    assert best.expected_replicates == pytest.approx(sum(row["reached"] * row["n"] for row in ends))
    risks = sum(row["reached"] * min(LOSS.risks(row["probability"])) for row in ends)
    assert best.expected_cost == pytest.approx(risks + 0.02 * best.expected_replicates)


@pytest.mark.parametrize("start", [(4, 2), (2, 1), (0, 0)])
def test_an_individual_of_the_study_as_if_fitted_again_with_the_further_results(
    start: tuple[int, int],
) -> None:
    others, (n, s) = FEW, start
    fit = br.fit_bayes(others + br.CountTable([n], [s]))
    best = stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=n + 3, start=start, new=False)
    assert best.table()["probability"][0] == pytest.approx(float(fit.score(n, s)), abs=1e-9)
    for row in best.table():
        again = br.fit_bayes(others + br.CountTable([row["n"]], [row["s"]]))
        assert row["probability"] == pytest.approx(float(again.score(row["n"], row["s"])), abs=1e-7)
    p = lattice(best, "probability")
    chance = fit.next_replicate(n, s)
    assert chance * p[n + 1, s + 1] + (1 - chance) * p[n + 1, s] == pytest.approx(p[n, s], abs=1e-9)


def test_a_later_start_changes_nothing_for_a_new_individual() -> None:
    options = {"cost_per_replicate": 0.01, "max_replicates": 10, "new": True}
    whole, late = (stopping_table(FITS["few"], LOSS, start=start, **options) for start in ((0, 0), (3, 1)))
    for name in ("probability", "expected_cost", "expected_replicates", "conclusive"):
        known, found = lattice(whole, name), lattice(late, name)
        assert len(found) == 8 * 9 / 2
        assert all(value == pytest.approx(known[pair], abs=1e-7) for pair, value in found.items())


def test_a_dear_replicate_stops_everyone_and_a_free_one_nobody_who_is_in_doubt() -> None:
    dear = stopping_table(FITS["bayes"], LOSS, cost_per_replicate=5, max_replicates=10)
    assert dear.expected_replicates == 0
    assert MEASURE not in dear.table()["action"]
    free = stopping_table(FITS["bayes"], LOSS, cost_per_replicate=0, max_replicates=30)
    assert free.expected_cost < 0.01 < dear.expected_cost


def test_a_perfect_test_is_done_once() -> None:
    fit = br.fit_known(br.CountTable([2, 2], [0, 2], [7, 3], known=[0, 1]))
    best = stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=5)
    assert (best.action(0, 0), best.action(1, 0), best.action(1, 1)) == (MEASURE, "negative", "positive")
    assert (best.expected_replicates, best.expected_cost) == (1, 0.01)


def test_the_chart_shows_only_what_is_reached() -> None:
    best = stopping_table(FITS["bayes"], LOSS, cost_per_replicate=0.02, max_replicates=60)
    lines = str(best).splitlines()
    for row in best.table():
        if row["reached"] >= 1e-4:
            line = next(line for line in lines if line.startswith(f"{row['n']:>3}  "))
            sign = {"negative": "-", "inconclusive": "?", "positive": "+", MEASURE: "»"}[row["action"]]
            assert line[5 + 2 * row["s"]] == sign
    assert len(lines) < 40


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cost_per_replicate": -1}, "cost_per_replicate must be a finite cost ≥ 0, got -1"),
        ({"cost_per_replicate": float("nan")}, "cost_per_replicate must be a finite cost"),
        ({"cost_per_replicate": True}, "cost_per_replicate must be a finite cost"),
        ({"max_replicates": 501}, "max_replicates must be a whole number from 0 to 500"),
        (
            {"start": (4, 2), "max_replicates": 3},
            "max_replicates must be a whole number from 4 to 504, got 3",
        ),
        ({"start": (1, 2)}, r"start must be a pair \(n, s\) with 0 ≤ s ≤ n, got \(1, 2\)"),
        ({"start": 3}, "start must be a pair"),
    ],
)
def test_options_that_make_no_sense(options: dict, sentence: str) -> None:
    with pytest.raises(br.OptionError, match=sentence):
        stopping_table(FITS["map"], LOSS, **{"cost_per_replicate": 0.01, "max_replicates": 5} | options)


def test_a_result_outside_the_table_and_rates_that_are_undefined() -> None:
    best = stopping_table(FITS["map"], LOSS, cost_per_replicate=0.01, max_replicates=5, start=(2, 1))
    with pytest.raises(br.OptionError, match="from n = 2, s = 1 to n = 5, got n = 6, s = 3"):
        best.action(6, 3)
    undefined = br.fit_average(br.CountTable([2], [0]))
    with pytest.raises(br.FitError, match="needs three defined rates"):
        stopping_table(undefined, LOSS, cost_per_replicate=0.01, max_replicates=5)


@pytest.mark.slow
def test_draws_of_a_posterior_are_learnt_from_too() -> None:
    exact = FITS["few"]
    chains = br.Rates(*(np.reshape(rate, (2, -1)) for rate in exact.draws(20_000, rng=3)))
    drawn = McmcFit.of(FEW, br.Prior(), chains, np.zeros((2, 10_000), bool))
    options = {"cost_per_replicate": 0.01, "max_replicates": 8}
    for start, new in (((0, 0), True), ((4, 1), False)):
        found, known = (stopping_table(fit, LOSS, start=start, new=new, **options) for fit in (drawn, exact))
        assert 1e-4 < found.error < 0.05
        np.testing.assert_allclose(
            found.table()["probability"], known.table()["probability"], rtol=0, atol=0.05
        )
        assert found.expected_cost == pytest.approx(known.expected_cost, rel=0.05)
    n, s = found.table()["n"][5], found.table()["s"][5]
    whole = stopping_table(drawn, LOSS, **options)
    assert lattice(whole, "probability")[n, s] == pytest.approx(float(drawn.predict(n, s)), abs=1e-12)


def test_without_results_it_does_not_matter_whether_the_individual_is_new() -> None:
    options = {"cost_per_replicate": 0.01, "max_replicates": 8}
    old, new = (stopping_table(FITS["few"], LOSS, new=new, **options).table() for new in (False, True))
    assert old["action"] == new["action"]
    np.testing.assert_allclose(old["probability"], new["probability"], rtol=0, atol=1e-12)


# Many individuals --------------------------------------------------------------------------------------


def test_gains_of_each_cell_are_those_of_its_own_stopping_table() -> None:
    cost, fit = 0.01, FITS["bayes"]
    again = next_replicates(COUNTS, fit, LOSS, cost_per_replicate=cost, ahead=8)
    for row in again.table():
        n, s = row["n"], row["s"]
        best = stopping_table(
            fit, LOSS, cost_per_replicate=cost, max_replicates=n + 8, start=(n, s), new=False
        )
        now = min(LOSS.risks(fit.score(n, s)))
        assert row["gain"] == pytest.approx(now - best.expected_cost, abs=1e-9)
        assert row["expected_replicates"] == pytest.approx(best.expected_replicates, abs=1e-7)
        p, chance = lattice(best, "probability"), fit.next_replicate(n, s)
        after = chance * min(LOSS.risks(p[n + 1, s + 1])) + (1 - chance) * min(LOSS.risks(p[n + 1, s]))
        assert row["gain_one"] == pytest.approx(now - after - cost, abs=1e-9)


@pytest.mark.parametrize("new", [False, True])
def test_worth_is_the_price_at_which_measuring_again_stops_paying(new: bool) -> None:
    fit = FITS["bayes"]
    again = next_replicates(COUNTS, fit, LOSS, cost_per_replicate=0.01, ahead=10, new=new)
    for row in again.table():
        start = (row["n"], row["s"])
        for factor, pays in ((0.999, True), (1.001, False)):
            price = row["worth"] * factor
            best = stopping_table(
                fit, LOSS, cost_per_replicate=price, max_replicates=start[0] + 10, start=start, new=new
            )
            assert (best.action(*start) == MEASURE) is pays
        assert (row["rank"] is not None) is (row["worth"] > 0.01)


def test_the_budget_goes_to_those_worth_most() -> None:
    everyone = next_replicates(COUNTS, FITS["bayes"], LOSS, cost_per_replicate=0, budget=10**6)
    assert everyone.table()["measure"] == tuple(COUNTS.weight.tolist())
    assert everyone.replicates == 100
    for budget in (0, 1, 6, 20, 99):
        some = next_replicates(COUNTS, FITS["bayes"], LOSS, cost_per_replicate=0, budget=budget)
        assert some.replicates == budget
        order = sorted(some.table(), key=lambda row: -row["worth"])
        assert [row["rank"] for row in order] == [1, 2, 3, 4, 5]
        left = budget
        for row in order:
            assert row["measure"] == min(row["individuals"], left)
            left -= row["measure"]


def test_one_replicate_may_not_pay_where_several_do() -> None:
    row = next_replicates(COUNTS, FITS["bayes"], br.Loss(), cost_per_replicate=0.01).table()
    one, best = row["gain_one"][1], row["gain"][1]
    assert one == pytest.approx(-0.01)  # no single result changes the answer at (4, 1)
    assert best > 0


def test_known_statuses_need_no_measurement_and_nobody_gives_an_empty_table() -> None:
    counts = br.CountTable([2, 2, 2], [1, 1, 0], [5, 3, 40], known=[1, None, None])
    again = next_replicates(counts, br.fit_bayes(counts), LOSS, cost_per_replicate=0.001)
    assert (again.table()["n"], again.table()["s"]) == ((2, 2), (0, 1))
    assert again.table()["individuals"] == (40, 3)
    nobody = next_replicates(br.CountTable([], []), FITS["bayes"], LOSS, cost_per_replicate=0)
    assert (len(nobody.table()), nobody.replicates) == (0, 0)
    assert str(nobody) == "measure 0 individuals again; for 0 it does not pay"


def test_words() -> None:
    again = next_replicates(COUNTS, FITS["bayes"], br.Loss(), cost_per_replicate=0.01, budget=20)
    assert isinstance(again, NextReplicates)
    lines = str(again).splitlines()
    assert lines[0] == "measure 20 individuals again; for 67 it does not pay"
    assert [line.split()[:3] for line in lines[2:5]] == [["4", "2", "6"], ["4", "3", "9"], ["4", "1", "18"]]
    best = stopping_table(FITS["map"], LOSS, cost_per_replicate=0.01, max_replicates=2)
    for result in (again, best):
        assert result._repr_html_().startswith("<table>")


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("new", [True, False])
def test_what_correlated_results_lead_to_is_summed_over_every_node(new: bool, apart: bool) -> None:
    rng, n, s, k = np.random.default_rng(1), 5, 3, 4
    errors = rng.uniform(0.02, 0.45, (3, 7, 1))
    theta, mass = rng.uniform(0.05, 0.95, 6), rng.dirichlet(np.ones(42)).reshape(7, 6)
    block = Block((theta, *errors), mass)
    if not apart:  # draws: each has parameters of its own
        block = Block(tuple(np.broadcast_to(x, mass.shape).ravel() for x in block.parameters), mass.ravel())
    expected = np.zeros((2, k + 1))
    for i, j in np.ndindex(*mass.shape):
        at = (theta[j], *errors[:, i, 0])
        shares = [np.exp(CORRELATED.log_shares(CORRELATED.record((n + k, s + m)), *at)) for m in range(k + 1)]
        seen = 1.0 if new else np.exp(CORRELATED.log_shares(CORRELATED.record((n, s)), *at)).sum()
        expected += mass[i, j] * np.squeeze(shares).T / seen
    one, zero = _exchangeable_row(CORRELATED, [block], n, s, k, new)
    np.testing.assert_allclose(np.exp([zero, one]), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_class_that_rounding_excludes_leads_nowhere() -> None:
    possible, mass = ([0.1], [0.2], [0.1]), np.array([[0.4], [0.6]])
    errors = [np.array([[0.0 if axis == 0 else x[0]], x]) for axis, x in enumerate(possible)]
    both = _exchangeable_row(CORRELATED, [Block((np.array([0.3]), *errors), mass)], 2, 1, 3, False)
    alone = Block((np.array([0.3]), *(x[1:] for x in errors)), mass[1:])
    np.testing.assert_allclose(both[1], _exchangeable_row(CORRELATED, [alone], 2, 1, 3, False)[1])
    assert np.isclose(np.exp(both[0]) @ [1, 3, 3, 1] + np.exp(both[1]) @ [1, 3, 3, 1], 1.0)
