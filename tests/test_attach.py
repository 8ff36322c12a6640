from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binreps.counts import CountTable
from binreps.decide.loss import Loss, decision_words
from binreps.errors import BinrepsWarning, DataError, OptionError
from binreps.fits.bayes import fit_bayes
from binreps.fits.point.simple import fit_average
from binreps.fits.populations import PopulationsFit, fit_populations
from binreps.model import Rates, likelihood_score
from binreps.tables.join import attach
from binreps.tables.opened import count_table
from engines import EAGER, ENGINES, by_key, lazy_with_passes, rows_of

pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning")
every_engine = pytest.mark.parametrize("engine", ENGINES)
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])

LOSS = Loss(inconclusive=0.2)
RATES = Rates(0.4, 0.1, 0.2)
EVERYONE = CountTable(
    [n for n in range(9) for _ in range(n + 1)], [s for n in range(9) for s in range(n + 1)]
)
EVERYONE = CountTable(EVERYONE.n, EVERYONE.s, weight=EVERYONE.weight * 10**6)


def score(n: Any, s: Any) -> Any:
    """A score that is null without replicates, unlike a prediction."""
    return np.where(np.asarray(n) == 0, np.nan, likelihood_score(n, s, RATES))


class Answering:
    """All that a join asks of a fit."""

    counts = EVERYONE
    records = None

    def __init__(self, *, interval: bool) -> None:
        self.interval = interval

    @property
    def parts(self) -> dict[None, Answering]:
        return {None: self}

    def answers(self, n: Any, s: Any, *, new: bool, level: float | None) -> dict[str, Any]:
        values = likelihood_score(n, s, RATES) if new else score(n, s)
        if level is None:
            return {"score": values}
        if not self.interval:
            return {"score": values, "lower": values + np.nan, "upper": values + np.nan}
        lower, upper = (0 * n + level, 0 * s + 1.0) if new else (values * (1 - level), values)
        return {"score": values, "lower": lower, "upper": upper}


FIT, POSTERIOR = Answering(interval=False), Answering(interval=True)


def expected(n: int, s: int, *, new: bool = False) -> dict[str, Any]:
    """The added columns for one (n, s), by a path of its own."""
    if n == 0 and not new:
        return {"n": n, "s": s, "score": None, "lower": None, "upper": None, "decision": None}
    y = likelihood_score(n, s, RATES)
    word = "negative" if y < 0.2 else "positive" if y > 0.8 else "inconclusive"
    return {"n": n, "s": s, "score": y, "lower": None, "upper": None, "decision": word}


NOTHING: dict[str, Any] = dict.fromkeys(("n", "s", "score", "lower", "upper", "decision"))


def quietly(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A call whose warning about rows without an individual is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BinrepsWarning)
        return call(*args, **options)


@every_engine
@few
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([None, "b", "a", "c'\""]), st.sampled_from([None, 0, 1]), st.integers(0, 9)
        ),
        min_size=1,
        max_size=20,
    ),
    new=st.booleans(),
)
def test_long_tables(engine: str, rows: list[tuple[Any, Any, int]], new: bool) -> None:
    table = pa.table(
        {
            "who": pa.array([row[0] for row in rows], pa.string()),
            "test": pa.array([row[1] for row in rows], pa.int64()),
            "more": [row[2] for row in rows],
        }
    )
    results: dict[str, list[int]] = {}
    for who, result, _ in rows:
        if who is not None:
            results.setdefault(who, []).extend([] if result is None else [result])
    answers = {who: expected(len(values), sum(values), new=new) for who, values in results.items()}
    native = ENGINES[engine](table)
    options = {"loss": LOSS, "individual": "who", "result": "test", "new": new}
    tidy: Callable[[Any], Any] = list if engine in EAGER else by_key

    individuals = quietly(attach, native, FIT, **options)
    assert type(individuals) is type(native)
    assert tidy(rows_of(individuals)) == tidy([{"who": who, **answer} for who, answer in answers.items()])

    replicates = quietly(attach, native, FIT, per="replicate", **options)
    assert type(replicates) is type(native)
    whole = [{**row, **answers.get(row["who"], NOTHING)} for row in table.to_pylist()]
    assert tidy(rows_of(replicates)) == tidy(whole)


@every_engine
@few
@given(
    values=st.lists(
        st.lists(st.sampled_from([None, "+", "-"]), min_size=2, max_size=2), min_size=1, max_size=9
    ),
    each=st.sampled_from([1, 2]),
    lost=st.booleans(),
)
@pytest.mark.slow
def test_wide_tables(engine: str, values: list[list[str | None]], each: int, lost: bool) -> None:
    who = [None if lost and i == 0 else i // each for i in range(len(values))]
    table = pa.table(
        {
            "who": pa.array(who, pa.int64()),
            "x": pa.array([row[0] for row in values], pa.string()),
            "y": pa.array([row[1] for row in values], pa.string()),
        }
    )
    native = ENGINES[engine](table)
    tidy: Callable[[Any], Any] = list if engine in EAGER else by_key

    def answers(row_ids: list[Any]) -> list[dict[str, Any]]:
        marks = ["".join(mark for mark in row if mark is not None) for row in values]
        pooled = {i: "".join(m for m, j in zip(marks, row_ids, strict=True) if i == j) for i in row_ids}
        return [
            {**row, **(NOTHING if i is None else expected(len(pooled[i]), pooled[i].count("+")))}
            for row, i in zip(table.to_pylist(), row_ids, strict=True)
        ]

    by_row = attach(native, FIT, loss=LOSS, replicates=["x", "y"])
    assert type(by_row) is type(native)
    assert tidy(rows_of(by_row)) == tidy(answers(list(range(len(values)))))
    by_individual = quietly(attach, native, FIT, loss=LOSS, individual="who", replicates=["x", "y"])
    assert tidy(rows_of(by_individual)) == tidy(answers(who))


@every_engine
def test_counted_tables_keep_their_own_counts(engine: str) -> None:
    table = pa.table({"who": ["a", "b", "c"], "n": [3, 0, 3], "s": [3, 0, 1], "w": [1, 2, 0]})
    native = ENGINES[engine](table)
    whole = [{**row, **expected(row["n"], row["s"])} for row in table.to_pylist()]
    for columns in ({}, {"individual": "who"}, {"weight": "w"}):
        answer = attach(native, FIT, loss=LOSS, n="n", s="s", **columns)
        assert by_key(rows_of(answer)) == by_key(
            [{k: row[k] for k in [*table.column_names, *NOTHING]} for row in whole]
        )


@every_engine
def test_posteriors_bring_their_intervals(engine: str) -> None:
    native = ENGINES[engine](pa.table({"n": [4], "s": [3]}))
    (fitted,) = rows_of(attach(native, POSTERIOR, loss=LOSS, n="n", s="s", level=0.75))
    assert fitted["lower"] == fitted["score"] * 0.25
    assert fitted["upper"] == fitted["score"]
    (predicted,) = rows_of(attach(native, POSTERIOR, loss=LOSS, n="n", s="s", level=0.75, new=True))
    assert (predicted["lower"], predicted["upper"]) == (0.75, 1.0)
    (alone,) = rows_of(attach(native, POSTERIOR, loss=LOSS, n="n", s="s", level=None))
    assert alone == {name: fitted[name] for name in ("n", "s", "score", "decision")}


@every_engine
def test_scores_survive_the_way_there_and_back_to_the_last_bit(engine: str) -> None:
    table = pa.table({"n": np.repeat(8, 9), "s": np.arange(9)})
    answer = rows_of(attach(ENGINES[engine](table), FIT, loss=LOSS, n="n", s="s"))
    assert {row["s"]: row["score"] for row in answer} == dict(
        enumerate(likelihood_score(8, np.arange(9), RATES))
    )


@every_engine
def test_columns_that_are_there_already_need_a_prefix(engine: str) -> None:
    table = pa.table({"n": [2], "s": [1], "score": [0.5]})
    native = ENGINES[engine](table)
    with pytest.raises(DataError, match="the table already has a column 'score'; give a prefix"):
        attach(native, FIT, loss=LOSS, n="n", s="s")
    (row,) = rows_of(attach(native, FIT, loss=LOSS, n="n", s="s", prefix="it's "))
    assert row == {"n": 2, "s": 1, "score": 0.5} | {f"it's {k}": v for k, v in expected(2, 1).items()}


def test_databases_do_not_tell_upper_from_lower_case() -> None:
    table = pa.table({"n": [2], "s": [1], "Score": [0.5]})
    assert "score" in attach(table, FIT, loss=LOSS, n="n", s="s").column_names
    with pytest.raises(DataError, match="already has a column 'score'"):
        attach(ENGINES["duckdb"](table), FIT, loss=LOSS, n="n", s="s")


@every_engine
def test_an_empty_table_stays_empty(engine: str) -> None:
    table = pa.table({"who": pa.array([], pa.string()), "test": pa.array([], pa.bool_())})
    native = ENGINES[engine](table)
    assert rows_of(attach(native, FIT, loss=LOSS, individual="who", result="test")) == []


def test_pandas_keeps_index_types_and_the_input() -> None:
    frame = pd.DataFrame(
        {
            "who": ["b", "a", "b"],
            "test": pd.Series([True, None, False], dtype=object),
            "day": pd.to_datetime("2024"),
        },
    ).set_axis(pd.MultiIndex.from_tuples([(1, "x"), (1, "x"), (0, "y")]))
    before = frame.copy(deep=True)
    answer = attach(frame, FIT, loss=LOSS, individual="who", result="test", per="replicate")
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(answer[["who", "test", "day"]], before)
    assert answer["n"].tolist() == [2, 0, 2]
    individuals = attach(frame, FIT, loss=LOSS, individual="who", result="test")
    assert individuals.index.tolist() == [0, 1]
    assert individuals["who"].tolist() == ["b", "a"]


def test_polars_keeps_types() -> None:
    frame = pl.DataFrame({"who": ["b", "a", "b"], "test": ["Pos", "neg", "neg"]}).cast(pl.Categorical)
    answer = attach(frame, FIT, loss=LOSS, individual="who", result="test", per="replicate")
    assert answer.select("who", "test").equals(frame)
    floats = dict.fromkeys(("score", "lower", "upper"), pl.Float64)
    assert answer.schema == frame.schema | {"n": pl.Int64, "s": pl.Int64} | floats | {"decision": pl.String}


def test_arrow_dictionaries_may_be_individuals() -> None:
    table = pa.table({"who": pa.array(["b", "a", "b"]).dictionary_encode(), "test": [1, 0, 1]})
    answer = attach(table, FIT, loss=LOSS, individual="who", result="test", per="replicate")
    assert answer["n"].to_pylist() == [2, 1, 2]
    assert answer.schema.field("who").type == table.schema.field("who").type


def test_lazy_tables_are_read_once_and_stay_lazy() -> None:
    lazy, passes = lazy_with_passes()
    answer = attach(lazy, FIT, loss=LOSS, individual="who", result="test")
    assert len(passes) == 1
    assert isinstance(answer, pl.LazyFrame)
    assert answer.collect().height == 2


def test_duckdb_answers_on_the_users_connection() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE tests AS SELECT i // 3 AS who, i % 2 AS test FROM range(12) t(i)")
    options = {"loss": LOSS, "individual": "who", "result": "test", "per": "replicate"}
    answer = attach(connection.table("tests"), FIT, **options)
    connection.execute("INSERT INTO tests VALUES (4, 1), (4, 1), (4, NULL)")
    assert answer.aggregate("count(*), count(score)").fetchall() == [
        (15, 12)
    ]  # (2, 2) came after the question
    again = attach(connection.table("tests"), FIT, **options)
    assert again.aggregate("count(*), count(score)").fetchall() == [(15, 15)]


def test_a_real_posterior_end_to_end() -> None:
    table = pa.table({"who": [1, 1, 1, 2, 2, 2, 2, 3], "test": [1, 1, 0, 0, 0, 0, 1, 1]})
    columns: Any = {"individual": "who", "result": "test"}
    fit = fit_bayes(count_table(table, **columns))
    answer = attach(table, fit, loss=LOSS, level=0.8, **columns).to_pydict()
    n, s = [3, 4, 1], [2, 1, 1]
    assert (answer["n"], answer["s"]) == (n, s)
    np.testing.assert_allclose(answer["score"], fit.score(n, s), rtol=1e-12)
    interval = fit.score_interval(n, s, level=0.8)
    np.testing.assert_allclose([answer["lower"], answer["upper"]], interval, rtol=1e-12)
    assert answer["decision"] == decision_words(LOSS.classify(fit.score(n, s)))
    alone = attach(table, fit, loss=LOSS, level=None, **columns)
    assert alone.column_names == ["who", "n", "s", "score", "decision"]
    np.testing.assert_allclose(alone["score"].to_pylist(), answer["score"], rtol=1e-12)
    predicted = attach(table, fit, loss=LOSS, new=True, **columns).to_pydict()
    np.testing.assert_allclose(predicted["score"], fit.predict(n, s), rtol=1e-12)


def test_individuals_that_the_fit_has_not_seen_are_mentioned() -> None:
    table = pa.table({"n": [3, 3], "s": [1, 2]})
    fit = fit_average(count_table(table, n="n", s="s"))
    attach(table, fit, loss=LOSS, n="n", s="s")
    attach(table.slice(1), fit, loss=LOSS, n="n", s="s")
    more = pa.concat_tables([table, table])
    with pytest.warns(BinrepsWarning, match="individuals that the fit has not seen.*new=True") as caught:
        attach(more, fit, loss=LOSS, n="n", s="s")
    assert caught[0].filename == __file__
    attach(more, fit, loss=LOSS, n="n", s="s", new=True)


def test_rows_without_an_individual_are_mentioned_and_a_source_is_not_again() -> None:
    table = pa.table({"who": ["a", None], "test": [1, 0], "reader": [1, 2]})
    with pytest.warns(BinrepsWarning, match="1 row without an individual in column 'who' dropped") as caught:
        attach(table, FIT, loss=LOSS, individual="who", result="test", source="reader")
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"per": "patient", "individual": "who", "result": "test"},
            "per must be 'individual', or 'replicate'",
        ),
        ({"per": "replicate", "replicates": ["test"]}, "'replicate' for a long table, got 'replicate'"),
        ({"level": 90, "replicates": ["test"]}, "level must be between 0 and 1, got 90"),
        ({"results": "test"}, "there is no keyword 'results'; the columns are named by individual, result"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        attach(pa.table({"who": [1], "test": [1]}), FIT, loss=LOSS, **options)


POPULATIONS = {
    "site": ["a", "a", "b", "b", "b", None],
    "who": [1, 1, 1, 1, 2, 3],
    "test": [1, 1, 1, 0, 0, 1],
}


@pytest.fixture(scope="module")
def populations() -> PopulationsFit:
    return fit_populations(
        {"a": CountTable([3, 3], [0, 3], [10, 40]), "b": CountTable([3, 3], [0, 3], [90, 10])}
    )


@pytest.mark.parametrize(
    "engine",
    [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, lambda c: duckdb.connect().from_arrow(pa.table(c))],
)
def test_each_population_has_its_own_scores(engine: Any, populations: PopulationsFit) -> None:
    columns = {"individual": "who", "result": "test", "new": True, "population": "site"}
    with pytest.warns(BinrepsWarning, match="1 row without a group in column 'site' dropped"):
        answers = attach(engine(POPULATIONS), populations, loss=Loss(), **columns)
    rows = sorted(nw.from_native(answers).lazy().collect(backend="pyarrow").rows())
    assert [row[:4] for row in rows] == [("a", 1, 2, 2), ("b", 1, 2, 1), ("b", 2, 1, 0)]
    for site, _, n, s, score, lower, upper, _ in rows:
        assert score == populations[site].predict(n, s)
        assert (lower, upper) == populations[site].predict_interval(n, s)


def test_rows_of_counts_find_their_population(populations: PopulationsFit) -> None:
    frame = pl.DataFrame({"site": ["b", "a", "b"], "n": [3, 3, 2], "s": [1, 1, 2]})
    answers = attach(frame, populations, loss=Loss(), new=True, population="site", n="n", s="s")
    assert answers.select("site", "n", "s").equals(frame)
    expected = [populations[site].predict(n, s) for site, n, s in frame.rows()]
    assert answers["score"].to_list() == expected


def test_a_population_that_the_fit_does_not_have_is_refused(populations: PopulationsFit) -> None:
    frame = pl.DataFrame({"site": ["c"], "n": [3], "s": [1]})
    with pytest.raises(DataError, match="column 'site' has a population 'c' that the fit does not have"):
        attach(frame, populations, loss=Loss(), new=True, population="site", n="n", s="s")
    with pytest.raises(OptionError, match=r"goes with a fit of several populations; got population=None"):
        attach(frame, populations, loss=Loss(), n="n", s="s")
    with pytest.raises(OptionError, match=r"got population='site' and a fit of one"):
        attach(frame, fit_average(CountTable([3], [1])), loss=Loss(), population="site", n="n", s="s")
    with pytest.raises(DataError, match="must hold text or whole numbers"):
        attach(frame.with_columns(site=0.5), populations, loss=Loss(), population="site", n="n", s="s")
