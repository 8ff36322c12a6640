"""Random and damaged inputs: a sample of `make fuzz`, and every bug that it found."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from fuzz import verdict
from fuzz.__main__ import CASES, main
from fuzz.entries import ENTRIES, split
from fuzz.verdict import WrongError, faulty_sentence, is_probability, judge

import binreps as br
from binreps.fits.exact.panels import Panels
from binreps.fits.gauss import Interval
from binreps.model import NAMES

pytestmark = pytest.mark.slow

INPUTS, FIRST = 2000, 10**9  # seeds that `make fuzz` does not use


@pytest.mark.parametrize("name", ENTRIES)
def test_every_answer_is_a_probability_or_a_sentence(name: str) -> None:
    for seed in range(FIRST, FIRST + split(INPUTS)[name]):
        assert judge(ENTRIES[name], name, seed) is None, f"{name}: {seed}"


def test_inputs_that_failed_once_pass() -> None:
    lines = CASES.read_text(encoding="utf-8").splitlines() if CASES.exists() else []
    for line in lines:
        name, _, seed = line.rpartition(": ")
        assert judge(ENTRIES[name], name, int(seed)) is None, line


# The fuzzer itself ---------------------------------------------------------------------------------------


def _nan(_rng: Random, _folder: Path) -> None:
    is_probability("score", [0.5, np.nan])


def _beyond(_rng: Random, _folder: Path) -> None:
    is_probability("score", 1 + 1e-15)


def _warns(_rng: Random, _folder: Path) -> None:
    warnings.warn("divided by zero", RuntimeWarning, stacklevel=1)


def _crashes(_rng: Random, _folder: Path) -> None:
    raise KeyError("n")


def _babbles(_rng: Random, _folder: Path) -> None:
    raise br.DataError("and so on " * 200)


def _hangs(_rng: Random, _folder: Path) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (_nan, "score = [nan]"),
        (_beyond, "score = [1.0"),
        (_warns, "RuntimeWarning"),
        (_crashes, "KeyError"),
        (_babbles, "2000 characters"),
        (_hangs, "Hang"),
    ],
)
def test_the_fuzzer_sees_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, entry: verdict.Entry, why: str
) -> None:
    monkeypatch.setattr(verdict, "SECONDS", 0.2)
    assert why in str(judge(entry, "entry", 1))


def test_an_input_is_the_same_for_the_same_seed() -> None:
    seen: list[float] = []
    for seed in (1, 1, 2):
        judge(lambda rng, _: seen.append(rng.random()), "entry", seed)
    assert seen[0] == seen[1] != seen[2]


def test_refusals_and_our_own_warnings_pass() -> None:
    def refuses(_rng: Random, _folder: Path) -> None:
        warnings.warn("the result has a limit", br.BinrepsWarning, stacklevel=1)
        raise br.OptionError("level must be between 0 and 1, got 7")

    assert judge(refuses, "entry", 1) is None


def test_inputs_are_split_completely() -> None:
    assert sum(split(100_000).values()) == 100_000
    assert set(split(10)) == set(ENTRIES)


def test_a_run_counts_its_inputs_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "Settings", "--inputs", "3"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "all" in line)
    assert [cell.strip() for cell in row.split("│")[2:4]] == ["3", "0"]
    assert main(["--only", "nothing"]) == 2


# What it found ---------------------------------------------------------------------------------------------

COUNTS = br.CountTable([3, 3, 3], [0, 1, 3], [60, 9, 31])


def refused(call: Callable[[], Any], *words: str) -> None:
    """Refused in one sentence with these words."""
    with pytest.raises(br.BinrepsError) as refusal:
        call()
    sentence = str(refusal.value)
    assert faulty_sentence(sentence) is None
    for word in words:
        assert word in sentence


@pytest.mark.parametrize("shape", [0.001, 1e-17, 1e9, 1e300])
@pytest.mark.parametrize("name", NAMES)
def test_priors_that_floats_cannot_integrate_are_refused(name: str, shape: float) -> None:
    prior = br.Prior(**{name: (shape, 2.0)})
    words = (f"the prior of {name}", "0.05 to 10,000,000", str(shape))
    refused(lambda: br.fit_bayes(COUNTS, prior), *words)
    refused(lambda: br.fit_populations({"a": COUNTS}, prior), *words)
    refused(lambda: br.fit_overdispersed(COUNTS, prior), *words)
    refused(lambda: br.fit_many([COUNTS], prior=prior), *words)


@pytest.mark.parametrize("shapes", [(1e-17, 1.0), (1.0, 0.001), (1e300, 1.0)])
def test_so_are_such_priors_of_the_intraclass_correlation(shapes: tuple[float, float]) -> None:
    refused(lambda: br.fit_overdispersed(COUNTS, intraclass=shapes), "intra-class", "0.05 to 10,000,000")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shapes", [(0.05, 2.0), (2.0, 0.05), (1e7, 2.0), (1e7, 1e7)])
def test_the_most_extreme_priors_give_scores(name: str, shapes: tuple[float, float]) -> None:
    fit = br.fit_bayes(COUNTS, br.Prior(**{name: shapes}))
    n, s = [3, 3, 0, 20, 20], [0, 2, 0, 0, 20]
    for scores in (fit.score(n, s), fit.predict(n, s), *fit.score_interval(3, [0, 2])):
        is_probability("score", scores)
    assert fit.error < 1e-6


def test_densities_are_infinite_at_poles_and_zero_outside() -> None:
    fit = br.fit_bayes(COUNTS)
    prevalence, false_positive = fit.marginal("prevalence"), fit.marginal("false_positive")
    assert prevalence.density(0) == np.inf
    assert false_positive.density(0) == 0
    np.testing.assert_array_equal(prevalence.density([-1.0, 2.0]), 0)
    np.testing.assert_array_equal(false_positive.density([-1e-9, 0.5 + 1e-9, 1.0]), 0)
    x = np.linspace(0.001, 0.999, 400)
    assert np.all(prevalence.density(x) >= 0)
    assert np.isfinite(prevalence.density(x)).all()


def test_a_pole_without_visible_mass_is_still_one() -> None:
    panels = [(Interval(0.0, 0.1, -0.5, 0.0), np.zeros(8)), (Interval(0.1, 0.4), np.ones(8))]
    marginal = Panels(panels)
    np.testing.assert_array_equal(marginal.density([-0.1, 0.0, 0.05, 0.5]), [0, np.inf, 0, 0])


@pytest.mark.parametrize(
    "value", ["0.9", [0.9], None, 1j, Fraction(9, 10), np.datetime64("2020-01-01"), 10**400]
)
def test_options_that_are_no_numbers_are_refused(value: Any) -> None:
    fit = br.fit_bayes(COUNTS)
    refused(lambda: br.Settings(level=value), "level must be between 0 and 1")
    refused(lambda: fit.interval(value), "level must be between 0 and 1")
    refused(lambda: br.fit_map(COUNTS, tol=value if value != 10**400 else None), "tol must be")
    refused(lambda: br.classify(0.5, value, 0.9), "lower must be a number")
    refused(lambda: br.elicit.guess("prevalence", value, surprised_above=0.5), "expect must be")
    refused(lambda: br.elicit.guess("prevalence", 0.1, surprised_above=0.5, chance=value), "chance must be")
    refused(lambda: br.elicit.study("prevalence", of=value, count=1), "of must be")
    refused(lambda: br.elicit.study("prevalence", of=10, count=1, discount=value), "discount must be")
    refused(lambda: br.elicit.earlier(fit, discount=value), "discount must be")


def test_other_values_that_crashed_are_refused_or_taken() -> None:
    refused(lambda: br.Settings(method=[]), "method must be one of")  # type: ignore[arg-type]
    refused(lambda: br.Rates(10**400, 0.1, 0.1), "prevalence must be")
    refused(lambda: br.Prior((10**400, 1)), "the prior of prevalence must be")
    refused(lambda: br.fit_map(COUNTS, br.Prior((1e277, 2))), "the prior of prevalence", "at most 2^53")
    refused(lambda: br.fit_overdispersed(COUNTS, intraclass=(10**400, 1)), "intraclass must be")
    assert br.CountTable(np.array([np.float16(3)], object), [2]) == br.CountTable([3], [2])
    refused(lambda: br.elicit.between([], 0.1, 0.2), "rate must be a text")  # type: ignore[arg-type]
    assert br.Loss(np.float16(3)).false_positive == 3.0  # type: ignore[arg-type]


def test_what_a_fit_cannot_use_is_refused_by_name() -> None:
    fit, average = br.fit_bayes(COUNTS), br.fit_average(COUNTS)
    refused(lambda: fit.score_interval(3, 1, covariates={"age": 3}), "takes nothing", "covariates=")
    refused(lambda: average.predict(3, 1, new=True), "takes nothing", "new=True")
    by_age = br.fit_covariates(br.CovariateTable([3, 3], [0, 3], {"age": [1, 2]}, [30, 20]))
    refused(lambda: by_age.score(3, 1, population="north"), "takes covariates", "population='north'")
    refused(lambda: by_age.score(3, 1, covariates="age"), "covariates must be a mapping", "'age'")
    assert np.isnan(by_age.score_interval_error(3, 1, covariates={"age": 2}))
    assert by_age.score_interval_error(3, 1) >= 0


@pytest.mark.parametrize("value", [np.zeros((2, 2)), COUNTS, "a\nb", "a\u2028b"])
def test_values_of_several_lines_leave_a_message_on_one(value: Any) -> None:
    refused(lambda: br.Prior(value), "the prior of prevalence must be")
    refused(lambda: br.Rates(value, 0.1, 0.1) and br.fit_bayes(value), "must be")


def test_other_calls_that_gave_raw_errors() -> None:
    comparison, loss = br.compare(COUNTS), br.Loss()
    refused(lambda: comparison["nothing"], "model must be one of common", "'nothing'")
    refused(lambda: br.evaluate([0.1], [0], loss, thresholds=3), "thresholds must be a pair")  # type: ignore[arg-type]
    refused(lambda: br.Table({"n": 1}), "column 'n' must be a list of values, got 1")  # type: ignore[dict-item]
    refused(lambda: br.save_fit(br.fit_average(COUNTS), ""), "is a folder; name a file in it")
    table = pa.table({"who": ["a", "b"], "test": [1, 0]})
    refused(lambda: br.analyse(table, truth=object()), "the truth of a table must be the name of its column")  # type: ignore[arg-type]
    refused(lambda: br.fit(table, individual=[3], result="test"), "by their names, got 3 for individual")
    readings = br.Readings.wide([[1, 0]], ["ann", "bob"])
    refused(lambda: readings.merging(["ann", "bob"]), "groups must be a list of lists of names")


@pytest.mark.parametrize("name", ["", "__binreps_n"])
def test_columns_that_cannot_be_grouped_are_refused(name: str) -> None:
    table = pa.table({name: ["a", "b"], "test": [1, 0]})
    refused(lambda: br.count_table(table, individual=name, result="test"), repr(name))


@pytest.mark.parametrize("name", ["a\nb", "9" * 500, "\u2028"])
def test_column_names_leave_a_message_on_one_line(name: str) -> None:
    refused(lambda: br.count_table(pa.table({name: [3], "s": [4]}), n=name, s="s"), "must be whole numbers")


def test_a_damaged_arrow_file_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "damaged.feather"
    table = pa.table({"patient": ["a", "bb", "ccc", "dddd"], "test": [1, 0, 1, 1]})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    offsets = np.array([0, 1, 3, 6, 10], np.int32).tobytes()
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, np.array([0, 1, 2**30, 6, 10], np.int32).tobytes()))
    refused(lambda: br.count_table(path, individual="patient", result="test"), "damaged.feather", "Arrow")


def test_a_workbook_without_sheets_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    book = openpyxl.Workbook()
    book.create_chartsheet()
    book.remove(book.worksheets[0])
    book.save(path)
    refused(lambda: br.count_table(path, n="n", s="s"), "book.xlsx", "Save As")


def test_a_parquet_column_whose_name_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pyarrow.parquet.write_table(pa.table({"n": [3], "positives": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"positives", b"pos\xfftives"))
    refused(lambda: br.count_table(path, n="n", s="s"), "damaged.parquet", "not text")


@pytest.mark.parametrize("method", [[], {}, None, 3, "nuts"])
def test_a_saved_fit_of_no_method_is_refused(tmp_path: Path, method: Any) -> None:
    path = br.save_fit(br.fit_average(COUNTS), tmp_path / "fit.json")
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "method": method}))
    refused(lambda: br.load_fit(path), "method must be one of")


def test_a_wrong_answer_is_an_assertion() -> None:
    with pytest.raises(WrongError, match="score = "):
        is_probability("score", -0.1)
