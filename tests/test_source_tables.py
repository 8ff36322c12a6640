"""Tables with sources: into readings and back with scores, in every engine; files; parts of many readings."""

from __future__ import annotations

import warnings
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import binreps as br
from binreps.tables.by_source import _in_order
from binreps.tables.opened import OpenTable, read
from binreps.tables.sources import source_readings
from engines import ENGINES, rows_of

LONG = {"individual": "item", "result": "vote", "source": "worker"}


def votes(people: int = 60, seed: int = 1) -> pa.Table:
    """Votes of six workers, one of them poor, about items with text ids; a few missing."""
    rng = np.random.default_rng(seed)
    truth, wrong = rng.random(people) < 0.4, np.array([0.05, 0.1, 0.1, 0.2, 0.15, 0.45])
    rows = [
        (
            f"item {i}",
            f"w{j}",
            None if rng.random() < 0.05 else ["no", "yes"][int(truth[i] ^ (rng.random() < wrong[j]))],
        )
        for i in range(people)
        for j in rng.choice(6, 4, replace=False)
    ]
    item, worker, vote = zip(*rows, strict=True)
    return pa.table({"item": list(item), "worker": list(worker), "vote": list(vote)})


def readings_of(table: pa.Table) -> br.Readings:
    """The same through plain lists."""
    said = [{"yes": 1, "no": 0}.get(vote) for vote in table["vote"].to_pylist()]
    return br.Readings(table["item"].to_pylist(), table["worker"].to_pylist(), said)


def quick(table, **options):
    """A fit of few sweeps: what is tested is not its error."""
    return br.fit(table, rng=1, tol=0.5, **options)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_fit_and_scores(engine: str) -> None:
    table = votes()
    fit = quick(ENGINES[engine](table), **LONG)
    mine = readings_of(table)
    assert fit.readings.counts == mine.counts
    assert sorted(map(str, fit.sources)) == [f"w{j}" for j in range(6)]
    assert fit == quick(table, **LONG)
    for new in (False, True):
        answers = rows_of(br.attach(ENGINES[engine](table), fit, br.Loss(), new=new, **LONG))
        assert len(answers) == 60
        score = {row["item"]: row["score"] for row in answers}
        wanted = (fit.predict if new else fit.score)(mine)
        found = np.array([score[item] for item in dict.fromkeys(table["item"].to_pylist())])
        assert np.abs(found - wanted).max() < 0.03
        for row in answers:
            assert row["decision"] == br.Loss().words(row["score"])
            if engine != "ibis":  # whose lists we do not speak
                assert row["lower"] <= row["score"] + 0.05
                assert row["upper"] >= row["score"] - 0.05
        alone = rows_of(br.attach(ENGINES[engine](table), fit, br.Loss(), new=new, level=None, **LONG))
        assert [list(row) for row in alone] == [["item", "n", "s", "score", "decision"]] * 60
        assert {row["item"]: row["score"] for row in alone} == pytest.approx(score, rel=1e-12)
        counts = {row["item"]: (row["n"], row["s"]) for row in answers}
        n, s = mine.sizes
        assert list(counts.values()) == list(zip(n.tolist(), s.tolist(), strict=True)) or engine in (
            "duckdb",
            "ibis",
            "polars-lazy",
        )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_wide_tables_and_patterns_with_a_weight(engine: str) -> None:
    rows = [[1, 1, 1], [1, None, 0], [0, 0, 0], [1, 0, 0]]
    columns = dict(zip("abc", zip(*rows, strict=True), strict=True))
    table = pa.table({**{name: list(one) for name, one in columns.items()}, "count": [30, 10, 40, 5]})
    wide = {"replicates": ["a", "b", "c"], "weight": "count"}
    fit = quick(ENGINES[engine](table), model="sources", **wide)
    assert fit.readings == br.Readings.wide(rows, "abc", weight=[30, 10, 40, 5]).merged()
    assert br.count_table(ENGINES[engine](table), **wide) == fit.counts
    answers = rows_of(br.attach(ENGINES[engine](table), fit, **wide))
    found = sorted((row["count"], row["score"], row["lower"]) for row in answers)
    own = br.Readings.wide(rows, "abc")
    wanted = sorted(zip([30, 10, 40, 5], fit.score(own), fit.score_interval(own)[0], strict=True))
    assert np.allclose(found, wanted, atol=1e-6)
    alone = rows_of(br.attach(ENGINES[engine](table), fit, level=None, **wide))
    assert [list(row) for row in alone] == [["a", "b", "c", "count", "n", "s", "score"]] * 4
    assert sorted((row["count"], row["score"]) for row in alone) == [row[:2] for row in found]


def test_wide_rows_of_one_individual_add_up() -> None:
    table = pa.table({"id": ["x", "x", "y", None], "a": [1, 0, 0, 1], "b": [1, 1, 0, 1]})
    columns = {"individual": "id", "replicates": ["a", "b"]}
    with pytest.warns(br.BinrepsWarning, match="without an individual"):
        fit = quick(table, model="sources", **columns)
    assert fit.readings.counts == br.CountTable([4, 2], [3, 0])
    assert fit.readings.times is not None
    with pytest.warns(br.BinrepsWarning, match="without an individual"):
        answers = rows_of(br.attach(table, fit, **columns))
    assert answers[0]["score"] == answers[1]["score"] == pytest.approx(fit.score({"a": (2, 1), "b": (2, 2)}))
    assert answers[3]["score"] is None


def test_a_source_may_be_a_number_or_missing() -> None:
    table = pl.DataFrame({"i": [1, 1, 2, 2], "r": [1, 0, 1, 1], "by": [7, 8, 7, None]})
    columns = {"individual": "i", "result": "r", "source": "by"}
    with pytest.warns(br.BinrepsWarning, match="1 row without a source in column 'by' dropped"):
        fit = quick(table, **columns)
    assert fit.sources == ("7", "8")
    with pytest.warns(br.BinrepsWarning, match="1 row without a source"):
        assert quick(table.to_pandas(), **columns).readings == fit.readings
    with pytest.raises(br.DataError, match="column 'by' must hold text or whole numbers"):
        quick(table.with_columns(by=pl.date(2026, 1, 1)), **columns)


def test_known_statuses_come_with_the_readings() -> None:
    table = votes(20)
    gold = [{"item 1": 1, "item 2": 0}.get(item) for item in table["item"].to_pylist()]
    fit = quick(table.append_column("gold", pa.array(gold, pa.int64())), known="gold", **LONG)
    assert sorted(fit.readings.known[fit.readings.known >= 0].tolist()) == [0, 1]


def test_strangers_are_said_and_count_as_any_source() -> None:
    fit = quick(votes(), **LONG)
    table = pa.table({"item": ["x", "x"], "worker": ["w1", "nobody knows"], "vote": ["yes", "no"]})
    with pytest.warns(br.BinrepsWarning, match=r"not seen 1 of the sources \('nobody knows'\)"):
        (answer,) = rows_of(br.attach(table, fit, new=True, **LONG))
    assert answer["score"] == pytest.approx(fit.predict({"w1": 1, "nobody knows": 0}), abs=0.03)


def test_each_replicate_of_a_long_table_gets_its_individuals_score() -> None:
    table = votes(20)
    fit = quick(table, **LONG)
    rows = rows_of(br.attach(table, fit, per="replicate", prefix="its_", **LONG))
    assert [row["item"] for row in rows] == table["item"].to_pylist()
    assert len({row["its_score"] for row in rows if row["item"] == "item 3"}) == 1


@pytest.mark.slow
def test_files_are_fitted_and_scored(tmp_path) -> None:
    import pyarrow.csv

    path = tmp_path / "votes.csv"
    pyarrow.csv.write_csv(votes(), path)
    fit = quick(path, **LONG)
    assert fit == quick(votes(), **LONG)
    target = br.score_file(path, fit, tmp_path / "scores.csv", loss=br.Loss(), new=True, **LONG)
    lines = target.read_text().splitlines()
    assert lines[0] == "item,n,s,score,lower,upper,decision"
    assert len(lines) == 61
    wide = tmp_path / "wide.csv"
    wide.write_text("id,a,b\nx,1,0\ny,0,0\n")
    columns = {"individual": "id", "replicates": ["a", "b"]}
    fitted = quick(wide, model="sources", **columns)
    assert (
        br.score_file(wide, fitted, tmp_path / "w.csv", **columns).read_text().startswith("id,a,b,n,s,score")
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_of_too_many_readings_a_random_part_of_the_individuals_teaches(engine: str) -> None:
    table = votes(400)
    if engine == "ibis":
        pytest.skip("a hash in Ibis is not written yet")
    some, notes = source_readings(read(OpenTable(ENGINES[engine](table)), LONG), 400)
    assert [note.id for note in notes] == ["part-of-the-readings"]
    assert 200 < some.readings < 600
    whole = {(n, s) for n, s in zip(*readings_of(table).sizes, strict=True)}
    assert {(n, s) for n, s in zip(*some.sizes, strict=True)} <= whole  # nobody is cut in two
    assert source_readings(read(OpenTable(ENGINES[engine](table)), LONG), 400)[0] == some


def test_a_part_of_the_readings_is_said() -> None:
    with pytest.warns(br.BinrepsWarning, match="learned from a random part of the individuals"):
        assert quick(votes(200), most=400, **LONG).readings.readings < 600


def test_a_column_of_sources_that_is_not_named_is_proposed() -> None:
    with pytest.warns(br.BinrepsWarning) as said:
        fit = br.fit(votes())
    assert fit.kind == "bayes"
    assert any("source='worker'" in str(one.message) for one in said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick(votes(), source="worker").kind == "sources"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: br.fit(br.CountTable([1], [1]), model="sources"), "counts do not say who gave which"),
        (lambda: br.fit(votes(5), model="sources", individual="item", result="vote"), "needs source"),
        (lambda: br.fit(votes(5), prior=br.Prior(), **LONG), "prior must be a SourcePrior"),
        (lambda: br.fit(votes(5), tol=0.1, individual="item", result="vote"), "tol is for models"),
        (lambda: br.fit(readings_of(votes(5)), source="worker"), "readings have no columns"),
        (
            lambda: br.attach(votes(5), quick(votes(9), **LONG), individual="item", result="vote"),
            "who said what",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(make, sentence: str) -> None:
    with pytest.raises(br.BinrepsError, match=sentence):
        make()


def test_readings_can_be_fitted_through_the_front_door() -> None:
    assert quick(readings_of(votes())).kind == "sources"


def test_an_empty_table_gives_the_prior_and_no_rows() -> None:
    table = votes().slice(0, 0)
    fit = quick(table, **LONG)
    assert fit.readings.individuals == 0
    assert rows_of(br.attach(table, fit, br.Loss(), **LONG)) == []


def test_intervals_from_a_few_draws_are_as_wide_as_those_from_all() -> None:
    """Draws chosen for their means alone gave a sixth of the width for the individual that mattered most."""
    rates = br.Rates(0.4, [0.05, 0.35, 0.06, 0.07, 0.05, 0.08], [0.06, 0.05, 0.07, 0.45, 0.06, 0.05])
    wide = br.simulate(rates, 150, 6, rng=4).readings
    fit = br.fit_sources(wide, rng=1)
    rows = [
        (i, by, word == "yes")
        for i, one in enumerate(wide.table())
        for by, word in one.items()
        if by != "weight"
    ]
    table = pa.table(dict(zip(("who", "by", "said"), zip(*rows, strict=True), strict=True)))
    columns = {"individual": "who", "result": "said", "source": "by"}
    answers = br.attach(duckdb.connect().from_arrow(table), fit, **columns).order("who").fetchnumpy()
    lower, upper = fit.score_interval(wide)
    whole, few = upper - lower, answers["upper"] - answers["lower"]
    open_ = whole > 0.02
    assert 0.85 < np.median(few[open_] / whole[open_]) < 1.2
    assert np.all(few[open_] > 0.6 * whole[open_])
    assert np.abs(answers["score"] - fit.score(wide)).max() < 0.02


def test_duckdb_sorts_narrow_rows_before_it_sums_many_columns() -> None:
    """Of rows in no order it would keep unfinished sums of all draws for nearly every row."""
    table = duckdb.connect().from_arrow(
        pa.table({"item": [1, 2, 1], "worker": list("aab"), "vote": [1, 0, 1]})
    )
    columns = {"individual": "item", "result": "vote", "source": "worker"}
    with warnings.catch_warnings(action="ignore"):
        fit = br.fit(table, rng=1, tol=0.9, **columns)
    plan = br.attach(table, fit, **columns).explain().lower().replace("_", " ")  # the last step comes first
    assert plan.index("group by") < plan.index("hash join") < plan.index("order by")


@pytest.mark.parametrize(
    ("rows", "keys", "answer"),
    [
        ([(1, "b"), (1, "a"), (2, "a")], ["who"], True),
        ([(1, "b"), (1, "a"), (2, "a")], ["who", "place"], False),
        ([(1, "a"), (1, "b"), (2, "a")], ["who", "place"], True),
        ([(2, "a"), (1, "a"), (2, "a")], ["who"], False),
        ([(2, "a")], ["who"], True),
        ([], ["who"], True),
    ],
)
def test_rows_in_order_are_known_as_such(rows: list[Any], keys: list[str], answer: bool) -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE rows (who BIGINT, place VARCHAR)")
    for row in rows:
        database.execute("INSERT INTO rows VALUES (?, ?)", row)
    assert _in_order(nw.from_native(database.table("rows")), keys) is answer


def test_the_few_draws_of_a_fit_are_chosen_once() -> None:
    fit = br.fit_sources(
        br.Readings.wide([[1, 1, 0], [0, 0, 1]], ["a", "b", "c"], weight=[30, 20]), rng=1, sweeps=50
    )
    assert fit.few(new=True) is fit.few(new=True)
    assert fit.few(new=True) is not fit.few(new=False)
