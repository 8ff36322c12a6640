"""Simulated data follow the model's law, whether individuals or only counts are drawn."""

from __future__ import annotations

from collections import Counter
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

from binreps import BinrepsError, CountTable, OptionError, Rates
from binreps.study.simulate import Simulation, simulate, simulate_counts

RATES = Rates(0.4, 0.1, 0.05)
Cell = tuple[int, int, int]


def exact_law(rates: Rates, replicates: list[int]) -> dict[Cell, float]:
    """P(n, s, T), with exact binomial coefficients."""
    theta, p, q = rates
    law: Counter[Cell] = Counter()
    for n in replicates:
        for s in range(n + 1):
            ways = comb(n, s) / len(replicates)
            law[n, s, 0] += ways * (1 - theta) * p**s * (1 - p) ** (n - s)
            law[n, s, 1] += ways * theta * (1 - q) ** s * q ** (n - s)
    return dict(law)


def observed(counts: CountTable) -> Counter[Cell]:
    columns = (counts.n, counts.s, counts.known, counts.weight)
    return Counter({(n, s, t): w for n, s, t, w in zip(*map(np.ndarray.tolist, columns), strict=True)})


def p_value(counts: CountTable, law: dict[Cell, float]) -> float:
    """Pearson's chi-square; cells of fewer than 5 expected individuals are taken together."""
    seen, total = observed(counts), counts.individuals
    assert set(seen) <= set(law)
    large = [cell for cell in law if total * law[cell] >= 5]
    pairs = [(seen[cell], total * law[cell]) for cell in large]
    rest = (total - sum(o for o, _ in pairs), total - sum(e for _, e in pairs))
    pairs += [rest] if rest[1] >= 1 else []
    return float(chdtrc(len(pairs) - 1, sum((o - e) ** 2 / e for o, e in pairs)))


@pytest.mark.parametrize("replicates", [4, range(2, 7), [0, 1, 1, 1, 5]])
def test_individuals_follow_the_exact_law(replicates) -> None:
    simulation = simulate(RATES, 100_000, replicates, rng=1)
    law = exact_law(RATES, [replicates] if isinstance(replicates, int) else list(replicates))
    assert p_value(simulation.known_counts, law) > 0.001


@pytest.mark.parametrize("individuals", [1000, 10**5, 10**9, 10**12])
@pytest.mark.parametrize("replicates", [4, range(2, 7), [0, 1, 1, 1, 5]])
def test_counts_follow_the_exact_law(individuals: int, replicates) -> None:
    counts = simulate_counts(RATES, individuals, replicates, rng=2, known=True)
    law = exact_law(RATES, [replicates] if isinstance(replicates, int) else list(replicates))
    assert counts.individuals == individuals
    assert p_value(counts, law) > 0.001


def test_the_chi_square_above_would_notice_another_law() -> None:
    law = exact_law(Rates(0.4, 0.1001, 0.05), [4])
    assert p_value(simulate_counts(RATES, 10**9, 4, rng=2, known=True), law) < 1e-6


@pytest.mark.slow
def test_counts_of_few_individuals_vary_like_a_multinomial() -> None:
    rng = np.random.default_rng(3)
    law, size, times = exact_law(RATES, [2]), 7, 3000
    draws = [observed(simulate_counts(RATES, size, 2, rng, known=True)) for _ in range(times)]
    cells = sorted(law)
    table = np.array([[draw[cell] for cell in cells] for draw in draws])
    p = np.array([law[cell] for cell in cells])
    covariance = size * (np.diag(p) - np.outer(p, p))
    assert np.all(np.abs(table.mean(axis=0) - size * p) < 5 * np.sqrt(covariance.diagonal() / times))
    assert np.cov(table.T) == pytest.approx(covariance, abs=0.12)
    for j, share in enumerate(p):
        binomial = np.array([comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)])
        seen = np.bincount(table[:, j], minlength=size + 1) / times
        assert np.abs(seen - binomial).max() < 5 * 0.5 / sqrt(times)


def test_many_replicates() -> None:
    counts = simulate_counts(RATES, 10**12, 10**5, rng=4, known=True)
    for status, mean in ((0, 0.1), (1, 0.95)):
        of_class = counts.known == status
        total = int(counts.weight[of_class].sum()) * 10**5
        share = sum(
            w * s for w, s in zip(counts.weight[of_class].tolist(), counts.s[of_class].tolist(), strict=True)
        )
        assert abs(share / total - mean) < 5 * sqrt(mean * (1 - mean) / total) + 1e-15


@given(
    st.integers(0, 2**53),
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    *[st.floats(0, 1)] * 3,
    st.integers(0, 2**32),
)
@settings(max_examples=100, deadline=None)
def test_nobody_is_lost_and_nothing_impossible_is_drawn(
    individuals: int, replicates: list[int], theta: float, p: float, q: float, seed: int
) -> None:
    rates = Rates(theta, p, q)
    counts = simulate_counts(rates, individuals, replicates, seed, known=True)
    law = exact_law(rates, replicates)
    assert counts.individuals == individuals
    assert all(law[cell] > 0 for cell in observed(counts))


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0])
def test_a_perfect_test_shows_the_truth(theta: float) -> None:
    simulation = simulate(Rates(theta, 0, 0), 200, range(4), rng=5)
    assert np.array_equal(simulation.s, simulation.n * simulation.truth)
    assert theta == 0.5 or np.all(simulation.truth == theta)
    counts = simulate_counts(Rates(theta, 0, 0), 200, range(4), rng=5, known=True)
    assert np.array_equal(counts.s, counts.n * counts.known)


def test_no_individuals_and_no_replicates_are_legal() -> None:
    assert len(simulate(RATES, 0, 3, rng=1)) == 0
    assert simulate_counts(RATES, 0, 3, rng=1) == CountTable([], [])
    assert simulate(RATES, 5, 0, rng=1).counts == CountTable([0], [0], [5])
    assert simulate_counts(RATES, 5, 0, rng=1) == CountTable([0], [0], [5])
    assert len(simulate(RATES, 5, 0, rng=1).long()) == 0


# --- truth, counts and long form -----------------------------------------------------------------------


def test_the_truth_informs_a_fit_only_when_asked() -> None:
    simulation = simulate(RATES, 50, 3, rng=1)
    assert not simulation.counts.has_known
    assert simulation.known_counts.fully_known
    assert simulation.known_counts.forget_known() == simulation.counts
    assert observed(simulation.known_counts) == Counter(
        zip(simulation.n.tolist(), simulation.s.tolist(), simulation.truth.tolist(), strict=True)
    )
    known = simulate_counts(RATES, 50, 3, rng=1, known=True)
    assert known.fully_known
    assert simulate_counts(RATES, 50, 3, rng=1) == known.forget_known()


def test_long_form_has_every_replicate() -> None:
    simulation = simulate(RATES, 40, range(5), rng=6)
    natural, shuffled = simulation.long(), simulation.long(rng=1)
    for table in (natural, shuffled):
        rows = Counter(table["individual"])
        positives = Counter(i for i, x in zip(table["individual"], table["result"], strict=True) if x == 1)
        assert [rows[i] for i in range(40)] == simulation.n.tolist()
        assert [positives[i] for i in range(40)] == simulation.s.tolist()
        assert set(table["result"]) == {0, 1}
    assert natural["individual"] == tuple(sorted(natural["individual"]))
    assert shuffled["individual"] != natural["individual"]
    assert shuffled == simulation.long(rng=1) != simulation.long(rng=2)


# --- randomness ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw", [lambda rng: simulate(RATES, 50, 3, rng).counts, lambda rng: simulate_counts(RATES, 50, 3, rng)]
)
def test_the_seed_decides_and_a_generator_moves_on(draw) -> None:
    assert draw(1) == draw(1) == draw(np.random.default_rng(1)) == draw(np.int64(1))
    assert draw(1) != draw(2)
    rng = np.random.default_rng(1)
    assert draw(rng) != draw(rng)


def test_arrays_cannot_be_changed() -> None:
    simulation = simulate(RATES, 5, 3, rng=1)
    for column in (simulation.n, simulation.s, simulation.truth):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [simulate, simulate_counts])
@pytest.mark.parametrize(
    ("argument", "bad", "sentence"),
    [
        ("rng", None, "rng must be a numpy Generator or a whole-number seed ≥ 0, got None"),
        ("rng", -1, "rng must be .* got -1"),
        ("rng", True, "rng must be .* got True"),
        ("rng", 1.5, "rng must be .* got 1.5"),
        ("individuals", -1, r"individuals must be a whole number from 0 to 2\^53, got -1"),
        ("individuals", 2.5, "individuals must be .* got 2.5"),
        ("individuals", float("nan"), "individuals must be .* got nan"),
        ("individuals", float("inf"), "individuals must be .* got inf"),
        ("individuals", 2**53 + 1, "individuals must be .* got 9007199254740993"),
        ("individuals", "ten", "individuals must be .* got 'ten'"),
        ("individuals", None, "individuals must be .* got None"),
        ("individuals", True, "individuals must be .* got True"),
        ("replicates", -1, "replicates must be whole numbers .* got -1"),
        ("replicates", [2, 2.5], "replicates must be whole numbers .* got 2.5 at position 1"),
        ("replicates", "two", "replicates must be whole numbers .* got text"),
        ("replicates", None, "replicates must be whole numbers .* got None"),
        ("replicates", [], r"replicates must be a whole number or a list of them, got \[\]"),
        ("replicates", [[2, 3]], "replicates must be a whole number or a list of them, got"),
        ("rates", Rates(float("nan"), 0.1, 0.1), "rates must be three numbers"),
        ("rates", Rates([0.1, 0.2], 0.1, 0.1), "rates must be three numbers"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(draw, argument: str, bad: object, sentence: str) -> None:
    arguments = {"rates": RATES, "individuals": 5, "replicates": 3, "rng": 1} | {argument: bad}
    with pytest.raises(BinrepsError, match=f"^{sentence}"):
        draw(**arguments)


def test_the_order_of_long_rows_needs_a_proper_seed_too() -> None:
    with pytest.raises(OptionError, match=r"^rng must be"):
        Simulation(np.array([1]), np.array([1]), np.array([1])).long(rng=-1)


def test_a_number_may_be_written_with_an_exponent() -> None:
    assert simulate_counts(RATES, 1e9, 3, rng=1) == simulate_counts(RATES, 10**9, 3, rng=1)  # type: ignore[arg-type]
