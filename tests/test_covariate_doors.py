"""Covariates through every door: analyse, report, files, command line, what the page gets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import binreps as br
from binreps.cli.app import main
from binreps.decide.predictive import predictive_counts
from covariate_studies import screening
from test_covariate_tables import COLUMNS, long_frame

SETTINGS = br.Settings(loss=br.Loss(inconclusive=0.2))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame, (_, truth) = long_frame(150), screening(150)
    frame["status"] = [int(truth[int(patient[1:])]) for patient in frame["patient"]]
    frame.to_csv(path := tmp_path_factory.mktemp("doors") / "tests.csv", index=False)
    return path


@pytest.fixture(scope="module")
def analysis(file: Path) -> br.Analysis:
    return br.analyse(file, SETTINGS, **COLUMNS, truth="status")


def test_an_analysis_decides_by_covariates(analysis: br.Analysis) -> None:
    part = analysis.main
    assert (analysis.fit.kind, part.deciding, part.believed) == ("covariates", "covariates", "covariates")
    assert sum(analysis.answers.values()) == 150
    scores = analysis.fit.score(analysis.fit.records)
    assert np.allclose(part.cells["score"], scores)
    assert part.judged["covariates"].brier < part.judged["bayes"].brier
    assert [one.name for one in part.profiles] == ["low risk", "middle risk", "high risk"]
    rates = [one.fit.rates.prevalence for one in part.profiles]
    assert rates == sorted(rates)
    assert part.odds_ratios is not None
    assert part.odds_ratios["per"][0] == 10.0  # of age, whose sd is 16
    curve = part.curves["age"]
    assert all(
        low <= mean <= high
        for low, mean, high in zip(curve["lower"], curve["prevalence"], curve["upper"], strict=True)
    )
    assert not any(note.id == "covariates-not-used" for note in analysis.notes)


@pytest.mark.slow
def test_the_folder_has_everything(analysis: br.Analysis, tmp_path: Path) -> None:
    report, scores, decisions, summary = analysis.write(tmp_path / "out")
    page = report.read_text(encoding="utf-8")
    for words in (
        "slopes have normal priors. The posterior was integrated over quasi-random points",
        "Odds ratios of being positive",
        "Prevalence by age",
        "High risk",
        "answers would be different",
    ):
        assert words in page
    with scores.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 150
    assert {"score", "decision", "without", "before"} <= set(rows[0])
    plain = analysis.main.fits["bayes"]
    assert float(rows[0]["without"]) == pytest.approx(plain.score(int(rows[0]["n"]), int(rows[0]["s"])))
    assert decisions.read_text().splitlines()[0].startswith("profile,n,s")
    content = json.loads(summary.read_text())
    assert content["input"]["covariates"] == ["age", "site"]
    assert content["populations"][0]["profiles"][2]["name"] == "high risk"
    assert br.load_fit(summary) == analysis.fit


@pytest.mark.slow
def test_the_command_line_takes_names_with_commas(file: Path, tmp_path: Path, capsys) -> None:
    words = ["analyse", file, "--individual", "patient", "--result", "test", "--covariates", "age,site"]
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words), "--out", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert int(stop.value.code or 0) == 0
    for said in ("Odds ratios of being positive", "site=south", "of high risk", "answers would be different"):
        assert said in out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    words = ["score", file, "--model", tmp_path / "out" / "summary.json", "--out", tmp_path / "new.csv"]
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words), "--individual", "patient", "--result", "test"])
    assert int(stop.value.code or 0) == 0
    said = capsys.readouterr().out
    assert "covariates are not used" not in said
    assert "counts leave covariates out" not in said
    assert "not used: 'status' (looks like a status)" in said
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 151


@pytest.mark.slow
def test_records_are_analysed_without_a_file() -> None:
    columns, truth = screening(60)
    covariates = {"age": columns["age"]}
    records = br.CovariateTable(columns["n"], columns["s"], covariates)
    judged = br.CovariateTable(columns["n"], columns["s"], covariates, known=truth)
    found = br.analyse(records, SETTINGS, truth=judged)
    assert found.main.judged["covariates"].individuals == 60
    assert "Odds ratios" in found.report()


@pytest.mark.slow
def test_the_page_gets_covariates_with_the_cells(file: Path) -> None:
    pytest.importorskip("fastapi")
    from binreps.web.requests import FileRequest
    from binreps.web.uploads import read_cells
    from binreps.web.work import written_summary

    request = FileRequest(columns={**COLUMNS, "truth": "status"})
    found = read_cells(request, file, "tests.csv")
    assert found["columns"]["covariates"] == ["age", "site"]
    assert written_summary(request, file, "tests.csv")["populations"][0]["odds_ratios"]


def test_figures_are_those_of_the_fit_that_decides(analysis: br.Analysis) -> None:
    """The cost by the truth uses everyone's covariates, and what is expected is by the same fit."""
    part = analysis.main
    risks = part.risks
    assert risks is not None
    at = {}
    for name in ("Bayes", "Covariates"):  # the lines of the figure at the cost that was set
        points = [(row["inconclusive"], row["risk"]) for row in risks if row["method"] == name]
        at[name] = np.interp(SETTINGS.loss.inconclusive, *np.transpose(points))
    assert at["Covariates"] == pytest.approx(part.judged["covariates"].mean_risk, abs=0.005)
    assert at["Bayes"] == pytest.approx(part.judged["bayes"].mean_risk, abs=0.005)
    expected = part.expected
    assert expected is not None
    assert sum(expected["mean"]) == pytest.approx(150, abs=1e-6)


def test_counts_are_expected_by_those_who_have_them() -> None:
    """Where the old are measured three times and the young once, each has a prevalence of its own."""
    rng = np.random.default_rng(2)
    age = rng.integers(20, 80, 400)
    n = np.where(age > 50, 3, 1)
    s = rng.binomial(n, np.where(rng.random(400) < 1 / (1 + np.exp((55 - age) / 6)), 0.9, 0.05))
    fit = br.fit_covariates(br.CovariateTable(n, s, {"age": age}), tol=0.05)
    young, old = fit.among(1).rates.prevalence, fit.among(3).rates.prevalence
    assert young < 0.2 < 0.6 < old
    table = predictive_counts(fit, rng=1, size=400)
    for observed, low, high in zip(table["observed"], table["lower"], table["upper"], strict=True):
        assert low - 3 <= observed <= high + 3
