"""The reproduction of the paper: its sections run on a few data sets, and their key facts hold."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

import binreps as br
from binreps.fits.point.simple import average_score
from shared_data import shared_file

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # the folder `paper` is no part of the package

pytest.importorskip("altair", reason="the figures of the paper need altair")

from paper import __main__ as command  # noqa: E402 (after the path)
from paper import bias, compare, mammography, periodontal, readers, risk, theorems, theory  # noqa: E402
from paper.settings import Comparison, Settings, found, number, text  # noqa: E402

pytestmark = pytest.mark.slow


def no_progress(done: float, total: float) -> None:
    assert 0 <= done <= total * (1 + 1e-9)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, quick=True)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of charts that a section would draw; each is built and checked but not rendered."""
    names: list[str] = []

    def keep(_: Settings, name: str, chart) -> None:
        chart.to_dict()
        names.append(name)

    for section in command.SECTIONS.values():
        monkeypatch.setattr(section, "save_chart", keep, raising=False)
    return names


def rows_of(settings: Settings, name: str) -> list[dict[str, str]]:
    with (settings.out / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# (a) ----------------------------------------------------------------------------------------------------


def test_simulated_biases_are_on_the_lines_of_theory(settings: Settings, pictures: list[str]) -> None:
    bias.run(settings, no_progress)
    rows = [row for row in rows_of(settings, "bias") if row["theory"]]
    assert len(rows) == 2 * (3 + 2)  # scores, prevalences of both designs
    for row in rows:
        distance = abs(float(row["bias"]) - float(row["theory"]))
        rates = br.Rates(float(row["prevalence"]), bias.P, bias.Q)
        sizes = bias.DESIGNS[row["design"]]
        error = br.theory.prevalence_error(list(sizes) * 200, rates, score=row["method"]).variance
        error *= len(sizes) / 8  # list(sizes) * 200 are as many data sets of 200 as there are sizes
        assert distance < 4.5 * np.sqrt(error)
    assert pictures == ["bias", "bias-two", "coverage"]


def test_the_lines_are_the_formulas_of_the_paper() -> None:
    assert bias.expected_bias("average", 0.2, range(2, 7)) == pytest.approx(0.1 - 0.2 * 0.15)
    assert bias.expected_bias("median", 0.2, [2]) == pytest.approx(0.1 - 0.2 * 0.15)
    assert bias.expected_bias("Bayes", 0.2, [2]) is None


def test_the_interval_j_is_outside_the_prevalences_of_the_paper() -> None:
    low, high = bias.interval_j()
    assert 0.5 < low < high < 1
    for theta in (0.01, 0.25, 0.5):
        median, average = (
            abs(bias.expected_bias(name, theta, range(2, 7))) for name in ("median", "average")
        )
        assert median < average


# (b) ----------------------------------------------------------------------------------------------------


def test_the_risk_of_the_average_jumps_where_the_paper_says() -> None:
    assert br.theory.risk_jumps(list(risk.REPLICATES)) == pytest.approx([1 / 6, 1 / 5, 1 / 4, 1 / 3, 2 / 5])
    assert min(abs(size) for size in risk.jump_sizes().values()) > 0.003
    for between in (0.15, 0.18, 0.22, 0.3, 0.37, 0.45):
        curve = br.theory.risk_curve(
            list(risk.REPLICATES), risk.RATES, [between - 1e-9, between + 1e-9], score="average"
        )
        assert abs(curve[1] - curve[0]) < 1e-8


def test_risks_are_those_of_judging_one_study_after_the_other() -> None:
    rng = np.random.default_rng(3)
    studies = [br.simulate(risk.RATES, risk.INDIVIDUALS, risk.REPLICATES, rng) for _ in range(3)]
    curves = risk.risk_curves(studies, no_progress)
    for i, study in enumerate(studies):
        for k in (0, 40, 80, 120):
            a = float(risk.COSTS[k])
            scores = {
                "average": average_score(study.n, study.s),
                "MAP": br.fit_map(study.counts).score(study.n, study.s),
                "Bayes": br.fit_bayes(study.counts).score(study.n, study.s),
            }
            for name, y in scores.items():
                judged = br.evaluate(y, study.truth, br.Loss(inconclusive=a), thresholds=(a, 1 - a))
                assert curves[name][i, k] == pytest.approx(judged.mean_risk, abs=1e-12)


def test_the_risk_section_runs(settings: Settings, pictures: list[str]) -> None:
    lines = risk.run(settings, no_progress)
    assert lines[0].agrees is True
    rows = rows_of(settings, "risk")
    assert all(float(row["low"]) <= float(row["median"]) <= float(row["high"]) for row in rows)
    assert pictures == ["risk"]


# (c) ----------------------------------------------------------------------------------------------------


@pytest.fixture
def periodontal_file() -> Path:
    return shared_file("data/periodontal.csv")


def test_the_periodontal_table_is_the_printed_one(
    settings: Settings, pictures: list[str], periodontal_file: Path
) -> None:
    lines = periodontal.run(Settings(settings.out, periodontal_file), no_progress)
    differing = {line.what for line in lines if line.agrees is False}
    assert differing == {  # read off samples in the paper, and one remark
        "(c) mode of p",
        "(c) mode of q, misguided prior",
        "(c) posterior of θ, misguided prior",
    }
    assert sum(line.agrees is True for line in lines) == 3 + 5 * 3 + 3
    totals = {row["method"]: float(row["total"]) for row in rows_of(settings, "periodontal")}
    assert totals == pytest.approx(
        {"average": 11.7, "median": 11.7, "MAP": 11.9, "Bayes": 10.25, "Bayes, misguided prior": 18.95}
    )
    assert pictures == ["periodontal"]


def test_the_columns_of_the_r_package_are_understood(tmp_path: Path, periodontal_file: Path) -> None:
    theirs = tmp_path / "periodontal.csv"
    n, s, truth = periodontal.read(periodontal_file)
    rows = "\n".join(f"{a},{b},{c}" for a, b, c in zip(n, s, truth, strict=True))
    theirs.write_text(f'"ni","si","ti"\n{rows}\n', encoding="utf-8")
    assert all(np.array_equal(a, b) for a, b in zip(periodontal.read(theirs), (n, s, truth), strict=True))


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("n,positive\n3,1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="must have a column s or si for s"):
        periodontal.read(wrong)


def test_without_the_data_the_section_says_so(settings: Settings) -> None:
    (line,) = periodontal.run(settings, no_progress)
    assert line.agrees is None
    assert "--periodontal" in line.why


# (d) ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_study_by_reader_is_judged_by_every_method() -> None:
    study = mammography.simulate_mammography(1, **mammography.LAWS["women differ a lot"])
    readings = readers.four_readers(study, np.random.default_rng(1))
    assert set(readings.sizes[0].tolist()) == {4}
    found = readers.trial(study, np.random.default_rng(1))
    assert tuple(found) == readers.METHODS
    assert found["sources, discount"][1] < found["sources, independent"][1]


def test_the_mammography_section_runs(settings: Settings, pictures: list[str]) -> None:
    mammography.run(settings, no_progress)
    rows = rows_of(settings, "mammography-risks")
    assert len(rows) == len(mammography.LAWS) * len(mammography.METHODS) * (len(mammography.COSTS) + 1)
    for law in mammography.LAWS:
        for name in mammography.METHODS:
            *each, total = [float(row["risk"]) for row in rows if (row["law"], row["method"]) == (law, name)]
            assert total == pytest.approx(sum(each))
    scores = rows_of(settings, "mammography-scores")
    assert all(0 <= float(row["low"]) <= float(row["median"]) <= float(row["high"]) <= 1 for row in scores)
    assert pictures == ["mammography-pixels", "mammography-scores", "mammography-risks"]


def test_expected_losses_are_the_losses_of_the_women_at_hand() -> None:
    """With the 15 women themselves as the joint frequency, expected and realised totals are the same."""
    rng = np.random.default_rng(5)
    s, truth = rng.integers(0, 5, 15), rng.integers(0, 2, 15)
    joint = np.zeros((2, 5))
    np.add.at(joint, (truth, s), 1)
    predictions = np.sort(rng.random((1, 5)), axis=1)
    expected = mammography._expected(predictions, joint)
    assert expected == pytest.approx(mammography._totals(predictions, [(s, truth)]))


def test_difficult_women_take_the_advantage_away() -> None:
    """Bayes gains on the average where all women are alike, and not where errors gather on some of them."""
    rng = np.random.default_rng(6)
    gains = {}
    for law in ("readers differ", "women differ a lot"):
        _, risks, _ = mammography.study(law, mammography.LAWS[law], 24, rng, no_progress)
        (gains[law],) = (row for row in mammography._sums(risks, law) if row["method"] == "Bayes")
    alike, uneven = gains["readers differ"], gains["women differ a lot"]
    assert alike["minus_average"] < -3 * alike["difference_se"]
    assert uneven["minus_average"] > -uneven["difference_se"]


# (e), (f) -----------------------------------------------------------------------------------------------


def test_the_theory_section_runs(settings: Settings, pictures: list[str]) -> None:
    theory.run(settings, no_progress)
    deltas = {(int(row["k"]), float(row["a"])): float(row["delta"]) for row in rows_of(settings, "delta")}
    assert deltas[3, 0.1] == pytest.approx(0.028)
    assert pictures == ["delta", "risk-lines", "bias-theory"]


def test_the_theorems_section_runs(settings: Settings, pictures: list[str]) -> None:
    lines = theorems.run(settings, no_progress)
    least = [float(line.ours) for line in lines if "least of" in line.what]
    assert len(least) == 4
    assert min(least) > -1e-12
    assert pictures == ["interval-j"]


def test_outcomes_of_a_new_individual_add_up() -> None:
    s = np.arange(theorems.NEW + 1)
    rates = br.Rates(0.3, 0.1, 0.2)
    chance = theorems._outcomes(rates, s)
    assert chance.sum() == pytest.approx(1)
    assert chance @ s / theorems.NEW == pytest.approx(0.3 * 0.8 + 0.7 * 0.1)


# The command --------------------------------------------------------------------------------------------


def test_a_printed_number_agrees_if_ours_rounds_to_it() -> None:
    assert number("", "0.67", 0.672).agrees
    assert number("", "10.2", 10.25).agrees  # a half may be rounded either way
    assert not number("", "0.12", 0.113).agrees
    assert text("", "29/50", "29/50").agrees
    assert found("", "anything").agrees is None


def test_the_comparison_is_written_and_printed(settings: Settings) -> None:
    lines = [
        Comparison("x", "1.0", "1.00", True),
        Comparison("y", "2", "3", False, "a slip"),
        found("z", "4"),
    ]
    printed = compare.write(settings, lines)
    assert "1 agree, 1 differ" in printed
    assert printed.endswith("z: 4")
    assert [row["agree"] for row in rows_of(settings, "comparison")] == ["yes", "no", "–"]


def test_the_command_draws_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(command, "SECTIONS", {"(e) theory": theory})
    monkeypatch.setattr(command, "DOCS", tmp_path / "docs")
    command.main(["--quick", "--out", str(tmp_path / "out"), "--docs"])
    assert (tmp_path / "out" / "delta.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "risk-lines.svg").read_text(encoding="utf-8")
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["bias-theory.svg"]
    assert "Tables and figures are in" in capsys.readouterr().out


def test_figures_of_the_documentation_are_small_and_there() -> None:
    folder = ROOT / "docs" / "paper"
    assert {path.name for path in folder.iterdir()} == set(command.IN_DOCS)
    assert max(path.stat().st_size for path in folder.iterdir()) < 200_000
