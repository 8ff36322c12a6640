"""EM as the paper defines it, with its errata: it climbs, keeps p, q ≤ ½, and says when it was stopped."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binreps import CountTable, OptionError, Prior, Rates, fit_map
from binreps.counts import UNKNOWN
from binreps.fits.point.em import em_path, random_scores
from binreps.fits.point.objective import Objective
from binreps.model import log_likelihood
from by_hand import expected_counts, log_posterior, random_case

COUNTS = CountTable([4, 4, 4, 4, 3, 2], [0, 1, 3, 4, 2, 1], weight=[50, 20, 10, 20, 5, 3])
PARTLY_KNOWN = COUNTS + CountTable([4, 4], [1, 3], weight=[5, 4], known=[0, 1])


@given(st.integers(0, 10**6))
def test_the_objective_never_decreases_along_a_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, prior = random_case(rng)
    objective = Objective(counts, prior)
    states = list(islice(em_path(objective, random_scores(counts, rng, 1)), 15))
    values = [log_posterior(counts, prior, state.rates[:, 0]) for state in states]
    assert values == pytest.approx([state.objective[0] for state in states], rel=1e-9, abs=1e-9)
    assert np.all(np.diff(values) >= -1e-9 * (1 + np.abs(values[0])))
    assert all(np.all(state.rates[:, 0] <= [1, 0.5, 0.5]) for state in states)


def test_one_step_is_the_formula_of_the_paper() -> None:
    prior = Prior((1.5, 2), (2, 3), (4, 2))
    y = np.linspace(0.1, 0.9, len(COUNTS))
    first, second = islice(em_path(Objective(COUNTS, prior), y[:, None]), 2)

    def m_step(y):
        w, n, s = COUNTS.weight, COUNTS.n, COUNTS.s
        theta = ((w * y).sum() + 0.5) / (w.sum() + 1.5)
        p = min(0.5, ((w * s * (1 - y)).sum() + 1) / ((w * n * (1 - y)).sum() + 3))
        q = min(0.5, ((w * (n - s) * y).sum() + 3) / ((w * n * y).sum() + 4))
        return theta, p, q

    theta, p, q = m_step(y)
    assert first.rates[:, 0] == pytest.approx(np.array([theta, p, q]), rel=1e-13)
    positive = theta * (1 - q) ** COUNTS.s * q ** (COUNTS.n - COUNTS.s)
    negative = (1 - theta) * p**COUNTS.s * (1 - p) ** (COUNTS.n - COUNTS.s)
    assert second.rates[:, 0] == pytest.approx(np.array(m_step(positive / (positive + negative))), rel=1e-12)


@pytest.mark.parametrize("counts", [COUNTS, PARTLY_KNOWN, expected_counts(Rates(0.4, 0.1, 0.6), 10**4, 6)])
def test_it_meets_the_direct_search(counts: CountTable) -> None:
    em, direct = fit_map(counts, algorithm="em", rng=3), fit_map(counts)
    assert em.converged
    assert em.objective == pytest.approx(direct.objective, rel=1e-9)
    assert tuple(em.rates) == pytest.approx(tuple(direct.rates), rel=1e-3)


def test_fully_known_data_need_no_path() -> None:
    counts = CountTable([4, 4, 3], [1, 3, 3], weight=[5, 4, 2], known=[0, 1, 1])
    assert fit_map(counts, algorithm="em", rng=1) == fit_map(counts)


def test_known_statuses_are_clamped_in_the_starts() -> None:
    y = random_scores(PARTLY_KNOWN, np.random.default_rng(1), 1)[:, 0]
    known = PARTLY_KNOWN.known != UNKNOWN
    assert y[known].tolist() == PARTLY_KNOWN.known[known].tolist()
    assert np.all((y[~known] > 0) & (y[~known] < 1))


def test_starts_follow_their_beta_law() -> None:
    rng = np.random.default_rng(5)
    draws = random_scores(CountTable([5], [2]), rng, 4000)[0]
    mean, variance = 2.5 / 6, 2.5 * 3.5 / (36 * 7)  # of Beta(s + ½, n − s + ½)
    assert abs(draws.mean() - mean) < 4 * np.sqrt(variance / 4000)
    assert draws.var() == pytest.approx(variance, rel=0.1)


def test_a_cap_reached_is_not_convergence() -> None:
    capped, full = fit_map(COUNTS, algorithm="em", rng=1, max_iter=1), fit_map(COUNTS, algorithm="em", rng=1)
    assert (capped.converged, capped.n_iter, capped.maxima) == (False, 1, ())
    assert str(capped).endswith("Not converged after 1 iterations.")
    assert full.converged
    assert 1 < full.n_iter < 1000
    assert "converged" not in str(full)


def test_the_seed_decides() -> None:
    assert fit_map(COUNTS, algorithm="em", rng=1) == fit_map(
        COUNTS, algorithm="em", rng=np.random.default_rng(1)
    )


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.45), st.floats(0.01, 0.45))
def test_the_labels_switch_with_both_error_rates_crossed(theta: float, p: float, q: float) -> None:
    """E3: L(θ, p, q) = L(1−θ, 1−q, 1−p); the paper's (1−θ, 1−p, 1−q) is another point unless p = q."""
    here = log_likelihood(COUNTS, Rates(theta, p, q))
    crossed = log_likelihood(COUNTS, Rates(1 - theta, 1 - q, 1 - p))
    assert crossed == pytest.approx(here, rel=1e-12)
    uncrossed = log_likelihood(COUNTS, Rates(1 - theta, 1 - p, 1 - q))
    swapped = log_likelihood(COUNTS, Rates(theta, q, p))
    assert uncrossed == pytest.approx(swapped, rel=1e-12)


def test_the_label_switch_of_the_paper_changes_the_likelihood() -> None:
    here, printed = (log_likelihood(COUNTS, rates) for rates in (Rates(0.3, 0.1, 0.2), Rates(0.7, 0.9, 0.8)))
    assert printed < here - 1


def test_the_algorithm_is_named_and_em_asks_for_a_seed() -> None:
    with pytest.raises(OptionError, match=r"^algorithm must be 'direct' or 'em', got 'newton'$"):
        fit_map(COUNTS, algorithm="newton")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^rng must be .*, got None"):
        fit_map(COUNTS, algorithm="em")
