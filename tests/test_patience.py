"""What takes long says so before it begins, and what nobody asked for is not computed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest

import binreps as br
from binreps.cli import app as program
from binreps.decide.loss import decision_table
from binreps.errors import BinrepsWarning, TakesLong
from binreps.fits import overdispersed, populations
from binreps.fits.exact.integrated import Integrated
from binreps.fits.exact.posterior import ExactPosterior
from binreps.fits.posterior import Estimate
from binreps.notes import say_long

COUNTS = br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
LOSS = br.Loss(inconclusive=0.2)


class BegunError(Exception):
    """The long work has begun."""


def begin(*_: Any, **__: Any) -> NoReturn:
    """Stands for the long work."""
    raise BegunError


def many(cells: int) -> br.CountTable:
    """A table of so many cells."""
    return br.CountTable(np.arange(1, cells + 1), np.zeros(cells, int))


def words_before(work: Callable[[], Any]) -> list[warnings.WarningMessage]:
    """What is said before the long work begins, which it must."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(BegunError):
            work()
    return said


def test_a_decision_table_without_intervals_computes_none(monkeypatch) -> None:
    fit = br.fit_bayes(COUNTS)
    monkeypatch.setattr(Integrated, "_quantiles", begin)
    assert "lower" not in decision_table(fit, LOSS, 3, level=None)
    with pytest.raises(BegunError):
        decision_table(fit, LOSS, 3)


@pytest.mark.parametrize(("replicates", "said"), [(20, 0), (22, 1)])  # 230 and 275 results
def test_many_intervals_say_so_first(monkeypatch, replicates: int, said: int) -> None:
    fit = br.fit_bayes(COUNTS)
    monkeypatch.setattr(ExactPosterior, "_law_ends", begin)
    monkeypatch.setattr(ExactPosterior, "_chance", begin)  # no probability is computed before the word
    found = words_before(lambda: decision_table(fit, LOSS, replicates))
    assert [one.category for one in found] == [TakesLong] * said
    if said:
        assert str(found[0].message).startswith("the intervals of 275 results take")
        assert found[0].filename == __file__


def test_intervals_that_are_remembered_are_not_announced_again(monkeypatch) -> None:
    fit = br.fit_bayes(COUNTS)
    n, s = np.full(300, 299), np.arange(300)
    made = {(299, k): Estimate(np.zeros(2), np.zeros(2)) for k in range(300)}
    monkeypatch.setattr(ExactPosterior, "_law_ends", lambda *_: made)
    with pytest.warns(TakesLong):
        fit.score_interval(n, s)
    fit.score_interval(n, s)


@pytest.mark.parametrize(("cells", "said"), [(1000, 0), (1001, 1)])
def test_populations_of_many_cells_say_so_first(monkeypatch, cells: int, said: int) -> None:
    monkeypatch.setattr(populations, "share", begin)
    found = words_before(lambda: br.fit_populations({"a": many(cells - 5), "b": COUNTS}))
    assert [one.category for one in found] == [TakesLong] * said


@pytest.mark.parametrize(("cells", "said"), [(200, 0), (201, 1)])
def test_a_correlated_fit_of_many_cells_says_so_first(monkeypatch, cells: int, said: int) -> None:
    monkeypatch.setattr(overdispersed, "integrate", begin)
    found = words_before(lambda: br.fit_overdispersed(many(cells)))
    assert [one.category for one in found] == [TakesLong] * said
    assert all(one.filename == __file__ for one in found)


@pytest.mark.parametrize(("cells", "said"), [(200, 0), (201, 1)])
def test_densities_of_a_correlated_fit_of_many_cells_say_so_first(cells: int, said: int) -> None:
    class Unready:
        marginal = staticmethod(begin)

    fit = overdispersed.OverdispersedFit(many(cells), br.Prior(), Unready(), (1.0, 9.0))  # type: ignore[arg-type]
    found = words_before(lambda: fit.marginal("prevalence"))
    assert [one.category for one in found] == [TakesLong] * said


@pytest.mark.filterwarnings("always")
def test_the_program_says_it_in_a_sentence(monkeypatch, capsys) -> None:
    monkeypatch.setattr(program, "app", lambda *_, **__: say_long("this takes long"))
    shown = warnings.showwarning
    assert program._run([], debug=False) == 0
    assert capsys.readouterr().err == "binreps: this takes long\n"
    assert warnings.showwarning is shown


@pytest.mark.filterwarnings("always")
def test_warnings_of_others_are_shown_as_they_are(monkeypatch, capsys) -> None:
    def other(*_: Any, **__: Any) -> None:
        warnings.warn("from elsewhere", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(program, "app", other)
    program._run([], debug=False)
    assert "RuntimeWarning: from elsewhere" in capsys.readouterr().err


def test_a_long_wait_is_a_warning_like_others() -> None:
    assert issubclass(TakesLong, BinrepsWarning)
