"""Covariates from tables of every engine: read, fitted, joined back, saved."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import binreps as br
from binreps.formula import Formula
from binreps.tables.design import read_entries
from binreps.tables.opened import OpenTable, open_table
from covariate_studies import screening
from engines import ENGINES, rows_of

COLUMNS = {"individual": "patient", "result": "test", "covariates": ["age", "site"]}


def long_frame(size: int = 120) -> pd.DataFrame:
    """One row per replicate, with what is known of the patient."""
    columns, _ = screening(size)
    place = np.repeat(np.arange(size), columns["n"])
    nth = np.arange(place.size) - np.repeat(np.cumsum(columns["n"]) - columns["n"], columns["n"])
    return pd.DataFrame(
        {
            "patient": [f"p{i:03d}" for i in place],
            "test": np.where(nth < columns["s"][place], "pos", "neg"),
            "age": columns["age"][place],
            "site": columns["site"][place],
        }
    )


FRAME = long_frame()
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


def records() -> br.CovariateTable:
    columns, _ = screening(120)
    return br.CovariateTable(columns["n"], columns["s"], {"age": columns["age"], "site": columns["site"]})


@pytest.fixture(scope="module")
def fit():
    return br.fit_covariates(records(), tol=0.05)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_individuals(engine: str) -> None:
    found = read_entries(OpenTable(ENGINES[engine](TABLE)), COLUMNS)
    assert found.records(None, "refuse") == records()
    assert found.missing == 0


def test_categories_of_pandas_are_text() -> None:
    found = read_entries(OpenTable(FRAME.astype({"site": "category"})), COLUMNS)
    assert found.records(None, "refuse") == records()


def test_files_give_the_same_individuals(tmp_path: Path) -> None:
    FRAME.to_csv(path := tmp_path / "tests.csv", index=False)
    with open_table(path, ["patient", "test", "age", "site"]) as opened:
        assert read_entries(opened, COLUMNS).records(None, "refuse") == records()


def test_wide_and_counted_tables_too() -> None:
    columns, _ = screening(120)
    counted = pd.DataFrame({key: columns[key] for key in ("n", "s", "age", "site")})
    found = read_entries(OpenTable(counted), {"n": "n", "s": "s", "covariates": ["age", "site"]})
    assert found.records(None, "refuse") == records()
    wide = pd.DataFrame({"a": [1, 0, 1], "b": [0, None, 1], "age": [40.0, 50.0, None]})
    found = read_entries(OpenTable(wide), {"replicates": ["a", "b"], "covariates": "age"})
    assert found.missing == 1
    with pytest.raises(br.DataError, match="'age' must have no missing values, got 1 of 3"):
        found.records(None, "refuse")
    assert found.records(None, "level").terms == ("age", "age=missing")


@pytest.mark.parametrize("engine", ["pandas", "lazy", "duckdb"])
def test_an_individual_with_two_values_is_named(engine: str) -> None:
    wrong = pd.concat([FRAME, FRAME[FRAME["patient"] == "p007"].assign(age=99)])
    arrow = pa.Table.from_pandas(wrong)
    frame = {"pandas": wrong, "lazy": pl.from_arrow(arrow).lazy(), "duckdb": duckdb.from_arrow(arrow)}
    with pytest.raises(br.DataError, match=r"'age' must have one value per individual, got .* 'p007'"):
        br.fit(frame[engine], **COLUMNS)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({**COLUMNS, "covariates": ["weight"]}, {}, "there is no column 'weight'"),
        ({**COLUMNS, "covariates": ["test"]}, {}, "'test' is named for two different parts"),
        ({**COLUMNS, "population": "site"}, {}, "population cannot be given with covariates"),
        (COLUMNS, {"method": "map"}, "is fitted by the method bayes, got 'map'"),
        (COLUMNS, {"reference": {"site": "east"}}, "must be one of 'north', 'south', 'west', got 'east'"),
        (
            {**COLUMNS, "covariates": None},
            {"reference": {"site": "west"}},
            "reference names levels of covariates",
        ),
    ],
)
def test_bad_columns_get_a_sentence(columns, options, words: str) -> None:
    with pytest.raises(br.BinrepsError) as caught:
        br.fit(FRAME, **columns, **options)
    assert words in str(caught.value)


def test_dates_and_counts_are_refused() -> None:
    dated = FRAME.assign(age=pd.Timestamp("2020-01-01"))
    with pytest.raises(br.DataError, match="'age' must hold numbers or text to be a covariate"):
        br.fit(dated, **COLUMNS)
    with pytest.raises(br.OptionError, match="CovariateTable has both"):
        br.fit(br.CountTable([3], [1]), covariates="age")


def test_the_front_door_fits_by_covariates() -> None:
    found = br.fit(FRAME, **COLUMNS, reference={"site": "west"})
    assert found.kind == "covariates"
    assert found.records.terms == ("age", "site=north", "site=south")
    assert br.fit(found.records) == found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("per", ["individual", "replicate"])
def test_scores_are_joined_back(fit, engine: str, per: str) -> None:
    answers = br.attach(ENGINES[engine](TABLE), fit, br.Loss(inconclusive=0.2), per=per, **COLUMNS)
    table = pd.DataFrame(rows_of(answers)).set_index("patient")
    assert len(table) == (120 if per == "individual" else len(FRAME))
    who = FRAME.groupby("patient").first()
    for patient in ("p000", "p031", "p119"):
        row = table.loc[[patient]].iloc[0]
        asked = {"age": who.loc[patient, "age"], "site": who.loc[patient, "site"]}
        assert row["score"] == pytest.approx(fit.score(row["n"], row["s"], covariates=asked), abs=1e-9)
        assert_allclose(
            [row["lower"], row["upper"]], fit.score_interval(row["n"], row["s"], covariates=asked)
        )
    assert set(table["decision"]) <= {"negative", "inconclusive", "positive"}
    alone = br.attach(ENGINES[engine](TABLE), fit, br.Loss(inconclusive=0.2), per=per, level=None, **COLUMNS)
    without = table.drop(columns=["lower", "upper"]).sort_values(["n", "s", "score"])
    found = pd.DataFrame(rows_of(alone)).set_index("patient").sort_values(["n", "s", "score"])
    assert list(found) == list(without)
    assert_allclose(found["score"], without["score"], rtol=1e-13)  # sums have an order


def test_new_rows_of_a_counted_table_are_predicted(fit) -> None:
    new = pd.DataFrame(
        {"k": [2, 1, 2], "hits": [1, 1, 0], "age": [33, 70, 50], "site": ["south", "west", "north"]}
    )
    found = br.attach(new, fit, new=True, n="k", s="hits", covariates=["age", "site"])
    expected = fit.predict(new["k"], new["hits"], covariates={"age": new["age"], "site": new["site"]})
    assert_allclose(found["score"], expected)
    with pytest.raises(br.DataError, match="'site' must be one of the levels of the study"):
        br.attach(new.assign(site="east"), fit, new=True, n="k", s="hits", covariates=["age", "site"])
    with pytest.raises(br.OptionError, match=r"covariates=\['age', 'site'\]"):
        br.attach(new, fit, new=True, n="k", s="hits")


def test_files_are_scored(fit, tmp_path: Path) -> None:
    FRAME.to_csv(path := tmp_path / "tests.csv", index=False)
    answers = pd.read_csv(br.score_file(path, fit, tmp_path / "out.csv", loss=br.Loss(), **COLUMNS))
    expected = br.attach(FRAME, fit, br.Loss(), **COLUMNS)
    assert_allclose(answers["score"], expected["score"])
    assert answers["decision"].tolist() == expected["decision"].tolist()


def test_a_fit_is_saved_and_loaded(fit, tmp_path: Path) -> None:
    assert br.load_fit(br.save_fit(fit, tmp_path / "fit.json")) == fit
    columns, truth = screening(60)
    age = np.where(np.arange(60) % 9 == 0, np.nan, columns["age"])
    known = np.where(np.arange(60) % 2, truth, np.nan)
    table = br.CovariateTable(
        columns["n"],
        columns["s"],
        {"age": age, "ward": columns["age"] % 3},
        known=known,
        reference={"ward": 1},
        missing_covariates="level",
    )
    other = br.fit_covariates(table, br.Prior(better_than_chance=True), slope_sd=1.0, tol=0.1)
    assert br.load_fit(br.save_fit(other, tmp_path / "other.json")) == other
    text = (tmp_path / "fit.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace('"levels"', '"labels"'))
    with pytest.raises(br.DataError, match="incomplete or damaged"):
        br.load_fit(tmp_path / "bad.json")


def test_categories_aggregate_to_patterns() -> None:
    """A hundred thousand individuals of two sites and four age groups are a few dozen rows."""
    rng = np.random.default_rng(1)
    size = 100_000
    frame = pl.DataFrame(
        {
            "n": rng.integers(1, 4, size),
            "s": np.zeros(size, int),
            "group": rng.choice(["a", "b", "c", "d"], size),
            "site": rng.choice(["x", "y"], size),
        }
    ).with_columns(s=(pl.col("n") * pl.Series(rng.random(size))).floor().cast(pl.Int64))
    found = br.fit(frame.lazy(), n="n", s="s", covariates=["group", "site"])
    assert found.counts.individuals == size
    assert len(found.records) <= 6 * 8


def test_numbers_pass_in_blocks_and_are_never_binned() -> None:
    """Every value that differs is a row of its own, however many there are."""
    rng = np.random.default_rng(2)
    size = 50_000
    columns = {"n": np.full(size, 2), "s": rng.integers(0, 3, size), "x": rng.standard_normal(size)}
    frame = pl.DataFrame(columns)
    found = read_entries(OpenTable(frame.lazy()), {"n": "n", "s": "s", "covariates": ["x"]})
    table = found.records(None, "refuse")
    assert len(table) == size
    assert_allclose(np.sort(table.column("x")), np.sort(frame["x"].to_numpy()), rtol=0, atol=0)


def test_a_formula_makes_the_columns() -> None:
    pytest.importorskip("formulaic")
    plain = br.fit(FRAME, **COLUMNS)
    columns = {"individual": "patient", "result": "test"}
    same = br.fit(FRAME, **columns, formula="age + C(site)")
    assert set(same.records.names) == {"age", "site"}
    assert same.records.terms == ("age", "C(site)[T.south]", "C(site)[T.west]")
    assert same.log_evidence == pytest.approx(plain.log_evidence, abs=1e-6)
    asked = {"age": [30, 70], "site": ["south", "west"]}
    assert_allclose(same.predict(2, 1, covariates=asked), plain.predict(2, 1, covariates=asked), atol=1e-6)
    bent = br.fit(FRAME, **columns, formula="age + I(age**2)")
    assert_allclose(bent.records.mean[1], np.mean(screening(120)[0]["age"] ** 2.0))
    joined = br.attach(FRAME, bent, **columns, covariates=["age"])
    one = joined.iloc[0]
    age = FRAME.loc[FRAME["patient"] == one["patient"], "age"].iloc[0]
    assert one["score"] == pytest.approx(bent.score(one["n"], one["s"], covariates={"age": age}))
    with pytest.raises(br.DataError, match="must be one of the levels"):
        same.predict(1, 1, covariates={"age": 3, "site": "east"})


@pytest.mark.parametrize("formula", ["age + I(age**2)", "np.log(age) * C(site)", "bs(age, df=3) + site"])
def test_a_fit_by_a_formula_is_saved_and_loaded(formula: str, tmp_path: Path) -> None:
    pytest.importorskip("formulaic")
    columns = {"individual": "patient", "result": "test"}
    entries = read_entries(OpenTable(FRAME), {**columns, "covariates": list(Formula(formula).variables)})
    fit = br.fit_covariates(entries.records(None, "refuse", Formula(formula)), tol=0.2)
    found = br.load_fit(br.save_fit(fit, tmp_path / "fit.json"))
    assert found == fit
    assert found.records.terms == fit.records.terms
    asked = {"age": [30, 45, 70], "site": ["south", "west", "north"]}
    asked = {name: asked[name] for name in fit.records.names}
    assert_allclose(found.predict(2, 1, covariates=asked), fit.predict(2, 1, covariates=asked))


def formula_fit(formula: str) -> br.CovariatesFit:
    columns, _ = screening(40)
    used = {name: columns[name] for name in Formula(formula).variables}
    return br.fit_covariates(br.CovariateTable(columns["n"], columns["s"], used, formula=formula), tol=0.3)


def test_a_file_whose_formula_is_code_or_makes_other_columns_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("formulaic")
    path = br.save_fit(formula_fit("age + I(age**2)"), tmp_path / "fit.json")
    text = path.read_text()
    for bad in ("I(open('/etc/passwd'))", "I(age.__class__)", "I([a for a in age])", "I((lambda: age)())"):
        path.write_text(text.replace("I(age**2)", bad))
        with pytest.raises(br.DataError, match="a formula in a file may use columns"):
            br.load_fit(path)
    path.write_text(text.replace("age + I(age**2)", "age + I(age**3)"))
    with pytest.raises(br.DataError, match="must make the columns that it made"):
        br.load_fit(path)


def test_code_in_a_formula_is_not_saved(tmp_path: Path) -> None:
    pytest.importorskip("formulaic")
    with pytest.raises(br.OptionError, match=r"may use columns.*got 'age.clip\(40\)'"):
        br.save_fit(formula_fit("age.clip(40)"), tmp_path / "fit.json")
    assert not (tmp_path / "fit.json").exists()


def test_without_formulaic_a_saved_formula_gets_a_sentence(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("formulaic")
    path = br.save_fit(formula_fit("age"), tmp_path / "fit.json")
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(br.DataError, match=r"needs formulaic.*pip install 'binreps\[formula\]'"):
        br.load_fit(path)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("test ~ age", "right-hand side"),
        ("age + (", "cannot be read"),
        ("1", "must name a column"),
        ("age + weight", "there is no column 'weight'"),
        ("np.log(age - 1000)", "cannot be computed|finite number"),
    ],
)
def test_bad_formulas_get_a_sentence(formula: str, words: str) -> None:
    pytest.importorskip("formulaic")
    with pytest.raises(br.BinrepsError, match=words):
        br.fit(FRAME, individual="patient", result="test", formula=formula)
    with pytest.raises(br.OptionError, match="not both"):
        br.fit(FRAME, **COLUMNS, formula="age")
