"""Many tables at once: each row is the single fit's, whatever happens to the others."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from binreps.counts import CountTable
from binreps.errors import OptionError
from binreps.fits import batch
from binreps.fits.base import PointFit
from binreps.fits.batch import COLUMNS, BatchResult, fit_many, fit_row, lattice_rows
from binreps.fits.bayes import BayesFit, fit_bayes
from binreps.fits.point.mode import MapFit, Modes, fit_map
from binreps.fits.point.simple import fit_average, fit_median
from binreps.model import NAMES, Prior, Rates
from binreps.study.simulate import simulate_counts
from by_hand import BruteForce, expected_counts, log_posterior, random_case, random_prior
from oracles import ExactPosterior


def assays(number: int, size: int = 40, seed: int = 1) -> list[CountTable]:
    rng = np.random.default_rng(seed)
    rates = [Rates(*rng.uniform([0.05, 0.01, 0.01], [0.6, 0.2, 0.2])) for _ in range(number)]
    return [simulate_counts(one, size, [3, 4, 5], rng=rng) for one in rates]


ALONE = Prior(better_than_chance=True)  # tables are fitted one by one
ASSAYS = assays(12)
ODD = [
    CountTable([], []),
    CountTable([0], [0], [5]),
    CountTable([3], [1]),
    CountTable([2, 2], [0, 2], [400, 300]),
    CountTable([3], [0], [10**5]),
    CountTable([4, 1, 1], [2, 0, 1], [9, 5, 7], [None, 0, 1]),
    CountTable([1000, 1000], [100, 900], [3, 4]),
    simulate_counts(Rates(0.3, 0.1, 0.1), 700, [6], rng=1),
    CountTable(range(100), [k // 2 for k in range(100)]),
]


def assert_same_fit(row: batch.Row, fit: BayesFit, ends: float = 1e-5) -> None:
    sd = np.array(list(fit.sd))
    assert row.reason is None
    assert row.log_evidence == pytest.approx(fit.log_evidence, rel=1e-9, abs=1e-9)
    assert np.all(np.abs(np.array(row.rates) - list(fit.rates)) < 1e-8 * sd)
    assert row.sd == pytest.approx(tuple(fit.sd), rel=1e-8)
    for mine, other in zip((row.lower, row.upper), fit.interval(), strict=True):
        assert np.all(np.abs(np.array(mine) - list(other)) < ends * sd)
    assert 0 < row.error < 1e-7


@pytest.mark.slow
def test_rows_are_those_of_fit_bayes() -> None:
    result = fit_many([*ASSAYS, *ODD])
    for row, table in zip(result.rows, [*ASSAYS, *ODD], strict=True):
        assert_same_fit(row, fit_bayes(table))


def test_level_and_prior_are_heeded() -> None:
    prior = Prior((2, 5), (1, 9), (3, 4))
    result = fit_many(ASSAYS, prior=prior, level=0.5)
    assert (result.prior, result.level) == (prior, 0.5)
    fit = fit_bayes(ASSAYS[3], prior)
    lower, upper = fit.interval(0.5)
    assert result.rates.false_positive[3] == pytest.approx(fit.rates.false_positive, rel=1e-9)
    assert result.lower.prevalence[3] == pytest.approx(lower.prevalence, rel=1e-5)
    assert result.upper.false_negative[3] == pytest.approx(upper.false_negative, rel=1e-5)


def tiny_tables(rng: np.random.Generator, known: float = 0.3) -> list[CountTable]:
    """Five tables of up to four cells, with some statuses known."""
    tables = []
    for _ in range(5):
        n = rng.integers(0, 6, rng.integers(1, 5))
        status = [None if rng.random() >= known else int(rng.integers(2)) for _ in n]
        tables.append(CountTable(n, rng.integers(0, n + 1), rng.integers(1, 9, n.size), status))
    return tables


@pytest.mark.parametrize("seed", range(6))
def test_common_nodes_against_the_closed_form(seed: int) -> None:
    """The finite mixture that the posterior is: no integration at all."""
    rng = np.random.default_rng(seed)
    prior = Prior() if seed == 0 else random_prior(rng)
    tables = tiny_tables(rng)
    for table, row in zip(tables, lattice_rows(tables, prior, 0.9), strict=True):
        assert row is not None
        exact = ExactPosterior(table, prior)
        sds = exact.sds.astype(float)
        assert row.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
        assert np.all(np.abs(np.array(row.rates) - exact.means) <= row.error * sds)
        assert row.sd == pytest.approx(tuple(sds), rel=1e-7)
        for name, lower, upper in zip(NAMES, row.lower, row.upper, strict=True):
            assert exact.cdf(name, lower) == pytest.approx(0.05, abs=1e-5)
            assert exact.cdf(name, upper) == pytest.approx(0.95, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_scores_on_common_nodes_against_the_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = tiny_tables(rng, known=0.0)
    for table, row in zip(tables, lattice_rows(tables, Prior(), 0.9, scores=True), strict=True):
        assert row is not None
        exact = ExactPosterior(table)
        scores = [float(exact.score(n, s)) for n, s in zip(table.n.tolist(), table.s.tolist(), strict=True)]
        assert row.scores == pytest.approx(scores, abs=1e-7)


def test_tables_that_the_common_nodes_cannot_resolve_are_left() -> None:
    sharp = simulate_counts(Rates(0.3, 0.1, 0.1), 10**5, [6], rng=1)
    rows = lattice_rows([sharp, ASSAYS[0]], Prior(), 0.9)
    assert rows[0] is None
    assert_same_fit(rows[1], fit_bayes(ASSAYS[0]))


def test_neighbours_and_order_do_not_matter() -> None:
    alone = fit_many(ASSAYS[:4])
    among = fit_many(reversed([*ASSAYS, *assays(30, seed=2)]))
    for name in NAMES:
        assert getattr(among.rates, name)[::-1][:4] == pytest.approx(getattr(alone.rates, name), rel=1e-8)


@pytest.mark.parametrize(
    ("method", "fit"), [("map", fit_map), ("average", fit_average), ("median", fit_median)]
)
def test_the_point_fits_give_their_rates(method: Any, fit: Any) -> None:
    result = fit_many(ASSAYS, method=method)
    for i, table in enumerate(ASSAYS):
        assert result.rows[i].rates == pytest.approx(tuple(fit(table).rates), rel=1e-9)
    assert np.all(np.isnan(result.log_evidence))
    assert np.all(np.isnan(result.sd.prevalence))
    assert result.reason == (None,) * len(ASSAYS)


@pytest.mark.parametrize("better_than_chance", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_one_search_for_many_modes_is_never_short(seed: int, better_than_chance: bool) -> None:
    """Against a dense grid and its refinements: few cells, known statuses, rates at 0, ½ and 1, two hills."""
    rng = np.random.default_rng(seed)
    prior = random_prior(rng, better_than_chance=better_than_chance)
    tables = [random_case(rng)[0] for _ in range(150)]
    found = fit_many(tables, method="map", prior=prior)
    best = BruteForce(prior.region).maxima([(table, prior) for table in tables])
    for table, row, reference in zip(tables, found.rows, best, strict=True):
        assert prior.region.holds(*row.rates[1:])
        assert log_posterior(table, prior, np.array(row.rates)) >= reference - 1e-9 * (1 + abs(reference))


def test_modes_of_huge_tables_do_not_disturb_each_other() -> None:
    """Weights of 10¹², 10⁶ replicates, a bound that is pressed against, beside a dozen individuals."""
    tables = [
        CountTable([10**6, 10**6], [10, 10**6 - 10], [10**12, 10**12]),
        expected_counts(Rates(0.4, 0.1, 0.6), 10**6, 6),
        expected_counts(Rates(0.3, 0.1, 0.2), 10**12, 5),
        CountTable([6, 6, 6], [0, 3, 6], [50, 45, 55]),
        CountTable([3], [0], [50]),
        *ASSAYS,
    ]
    found = fit_many(tables, method="map")
    for table, row in zip(tables, found.rows, strict=True):
        assert row.rates == pytest.approx(tuple(fit_map(table).rates), rel=1e-6, abs=1e-12)


def test_a_search_that_fails_is_made_again_for_each_table(monkeypatch) -> None:
    def explode(*_: Any) -> Modes:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(batch, "Modes", explode)
    assert fit_many(ASSAYS, method="map").reason == (None,) * len(ASSAYS)
    assert set(fit_many(ASSAYS, method="map", prior=Prior()).reason) == {
        "a posterior mode needs prior shapes ≥ 1 (below, the density is infinite at the edge), got 0.5 for "
        "prevalence; fit_bayes takes them from 0.05"
    }


def test_a_table_that_cannot_be_fitted_is_a_row_with_its_reason() -> None:
    result = fit_many([ASSAYS[0], CountTable([], []), ASSAYS[1]], method="map")
    assert result.reason[0] is result.reason[2] is None
    assert result.reason[1] is not None
    assert result.reason[1].startswith("the maximum a posteriori needs at least one individual")
    assert np.isnan(result.rates.prevalence).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="needs at least one individual"):
        result.fit(1)


def test_a_warning_becomes_the_reason_of_its_row() -> None:
    result = fit_many([CountTable([3], [0], [9]), *ASSAYS], method="average")
    assert (
        result.reason[0]
        == "false_negative undefined: the average gives no individual with replicates to that class"
    )
    assert result.rates.prevalence[0] == 0
    assert np.isnan(result.rates.false_negative[0])
    assert set(result.reason[1:]) == {None}


def test_not_converged_is_said(monkeypatch) -> None:
    stopped = replace(fit_map(ASSAYS[0]), converged=False, n_iter=7)
    monkeypatch.setattr(batch, "fit_map", lambda *_: stopped)
    row = fit_row("map", ASSAYS[0], Prior((1, 1)), 0.9)
    assert row.reason == "The climb to the mode stopped after 7 iterations before it had converged."
    assert row.rates == tuple(stopped.rates)


def test_even_a_bug_in_one_fit_loses_only_that_row(monkeypatch) -> None:
    def explode(*_: Any) -> BayesFit:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(batch, "fit_bayes", explode)
    result = fit_many([CountTable([3], [0], [10**5]), *ASSAYS])
    assert result.reason == ("ZeroDivisionError: by zero", *[None] * len(ASSAYS))


def test_equal_tables_are_fitted_once_and_shared(monkeypatch) -> None:
    calls = []
    monkeypatch.setattr(batch, "Modes", lambda tables, prior: calls.extend(tables) or Modes(tables, prior))
    again = [CountTable(t.n[::-1], t.s[::-1], t.weight[::-1]) for t in ASSAYS[:3]]
    result = fit_many([*ASSAYS[:3], *again, *again], method="map")
    assert len(calls) == 3
    assert result.rows[:3] == result.rows[3:6] == result.rows[6:]


@pytest.mark.parametrize("method", ["bayes", "map", "median"])
def test_progress_counts_every_table_in_the_callers_thread(method: Any) -> None:
    told, threads = [], set()

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        threads.add(threading.get_ident())

    tables = [*ASSAYS, *ASSAYS, CountTable([], []), CountTable([3], [0], [10**5])]
    fit_many(tables, method=method, progress=progress)
    assert told == sorted(told)
    assert told[-1] == (26, 26)
    assert threads == {threading.get_ident()}


def test_an_interruption_gets_through() -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_many(ASSAYS, progress=stop)


# --- processes -------------------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch) -> None:
    """Processes also for a few tables."""
    monkeypatch.setattr(batch, "_WORTH_PROCESSES", 1)
    monkeypatch.setattr(batch, "_CHUNK", 3)


@pytest.mark.usefixtures("eager")
@pytest.mark.slow
def test_processes_give_the_same_rows() -> None:
    tables = [*ASSAYS, CountTable([], [])]
    told: list[int] = []
    result = fit_many(tables, prior=ALONE, workers=2, progress=lambda done, _: told.append(done))
    assert result.reason == fit_many(tables, prior=ALONE, workers=1).reason
    assert repr(result.rows[:12]) == repr(fit_many(ASSAYS, prior=ALONE, workers=1).rows)
    assert told[-1] == 13
    assert len(told) == 5


@pytest.mark.usefixtures("eager")
@pytest.mark.slow
def test_a_process_that_dies_loses_nothing(monkeypatch) -> None:
    class Mortal(batch._Worker):
        def fit(self, *job: Any) -> Any:
            rows = super().fit(*job)
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            return rows

    monkeypatch.setattr(batch, "_Worker", Mortal)
    result = fit_many(ASSAYS, prior=ALONE, workers=2)
    assert repr(result.rows) == repr(fit_many(ASSAYS, prior=ALONE, workers=1).rows)  # NaN is not NaN


@pytest.mark.usefixtures("eager")
def test_where_no_process_can_be_started_there_is_still_this_one(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert fit_many(ASSAYS[:4], prior=ALONE, workers=2).reason == (None,) * 4


@pytest.mark.slow
def test_a_script_without_a_main_guard_runs_once(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from binreps.fits import batch\n"
        "from binreps.counts import CountTable\n"
        "from binreps.model import Prior\n"
        "batch._WORTH_PROCESSES = 1\n"
        "tables = [CountTable([3, 3], [0, 3], [9, k]) for k in range(1, 20)]\n"
        "print(batch.fit_many(tables, prior=Prior(better_than_chance=True), workers=2))\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert run.stdout == "bayes: 19 tables, 0 with a reason to look at\n"


# --- the result ------------------------------------------------------------------------------------------


def test_the_result_is_a_small_frozen_value() -> None:
    result = fit_many(ASSAYS)
    assert isinstance(result, BatchResult)
    assert len(result) == 12
    assert result == fit_many(ASSAYS) != fit_many(ASSAYS, level=0.8)
    copied = pickle.loads(pickle.dumps(result))
    assert copied == result
    assert copied.rows == result.rows
    assert hash(copied) == hash(result)
    assert len(pickle.dumps(result.rows)) < 500 * 12
    assert repr(result) == "bayes: 12 tables, 0 with a reason to look at"


def test_a_full_fit_is_made_again_on_demand() -> None:
    assert fit_many(ASSAYS).fit(2) == fit_bayes(ASSAYS[2])
    fit = fit_many(ASSAYS, method="map").fit(2)
    assert isinstance(fit, MapFit)
    assert fit == fit_map(ASSAYS[2])
    assert isinstance(fit_many(ASSAYS, method="median").fit(0), PointFit)


def test_the_table_has_one_row_per_table_and_nulls() -> None:
    table = fit_many([CountTable([2], [1], [7]), CountTable([], [])], method="map").table()
    assert tuple(table.columns) == COLUMNS
    assert table["individuals"] == (7, 0)
    assert table["replicates"] == (14, 0)
    assert table["cells"] == (1, 0)
    assert table["identifiable"] == (False, False)
    assert table["prevalence"][1] is None
    assert table["false_positive_lower"] == (None, None)
    assert table["reason"][0] is None
    assert "at least one individual" in table["reason"][1]


def test_no_tables_give_no_rows() -> None:
    told: list[Any] = []
    result = fit_many([], progress=lambda *counts: told.append(counts))
    assert len(result) == 0
    assert result.rates.prevalence.shape == (0,)
    assert len(result.table()) == 0
    assert not told


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "mode"}, "method must be one of bayes, map, average, median, got 'mode'"),
        ({"method": "median", "prior": Prior()}, "the median takes no prior"),
        ({"level": 1.0}, "level must be between 0 and 1, got 1.0"),
        ({"workers": 0}, "workers must be a whole number from 1"),
        ({"tables": [ASSAYS[0], [1]]}, "tables must be CountTables, got list at position 1"),
    ],
)
def test_what_is_wrong_for_all_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=f"^{sentence}"):
        fit_many(**{"tables": ASSAYS, **options})


@pytest.mark.parametrize("method", ["bayes", "map", "average"])
def test_scores_are_those_of_single_fits(method: str) -> None:
    """Small tables together on a lattice, and one that is too large for it; a known status plays no part."""
    known = CountTable([4, 4, 3], [0, 4, 1], [9, 5, 3], known=[None, None, 1])
    tables = [*ASSAYS, known, CountTable([5, 5, 5], [0, 2, 5], [30_000, 4_000, 9_000])]
    batch_result = fit_many(tables, method=method, scores=True)
    for i, scores in enumerate(batch_result.scores):
        assert scores == pytest.approx(batch_result.fit(i).score(tables[i]), abs=1e-7)
    with pytest.raises(OptionError, match="scores were not asked for; give fit_many scores=True"):
        _ = fit_many(tables[:1], method=method).scores
