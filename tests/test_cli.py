"""The program as a user runs it: what it prints, what it writes, how it fails."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import binreps as br
from binreps.cli import app
from binreps.cli.app import main
from binreps.study.datasets import SCREENING_FILE
from screening import screening_counts
from system_tools import require


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, output and errors of the program."""
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one analysis."""
    folder = tmp_path_factory.mktemp("results")
    br.analyse(SCREENING_FILE, br.Settings(replicates=4), truth="truth").write(folder)
    return folder


def test_without_a_file_the_example_is_analysed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "analyse", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    fit = br.fit_bayes(screening_counts())
    assert f"{fit.rates.prevalence:.3f}" in out
    for words in (
        "120 individuals",
        "7 missing results",
        "Average  Median    MAP  Bayes",
        "Judged by column",
    ):
        assert words in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines()[:-1])) <= 80  # the last line names the folder
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["decision_table.csv", "report.html", "scores.csv", "summary.json"]


def test_json_is_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "analyse", SCREENING_FILE, "--json", "--cost-inconclusive", "0.1,0.3")
    content = json.loads(out)
    assert code == 0
    assert content["options"]["loss"]["inconclusive_positive"] == 0.3
    assert content["populations"][0]["rates"][0]["bayes"] == content["fit"]["results"]["prevalence"]


@pytest.mark.slow
def test_the_printed_command_repeats_the_analysis(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("analyse", SCREENING_FILE, "--method", "map", "--prior-false-positive", "1,30", "--level", "0.5")
    first = json.loads(run(capsys, *words, "--truth", "truth", "--json")[1])
    again = first["command"].split()[1:]
    assert json.loads(run(capsys, *again, "--json")[1]) == first


def test_groups_are_fitted_one_by_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = "".join(f"{'ab'[i % 2]},{i},3,{3 * (i % 3 == 0)}\n" for i in range(60))
    path.write_text(f"assay,id,n,s\n{rows}", encoding="utf-8")
    code, out, _ = run(capsys, "analyse", path, "--by", "assay", "--out", tmp_path / "out")
    assert code == 0
    assert "prevalence" in out
    with (tmp_path / "out" / "groups.csv").open(encoding="utf-8") as file:
        groups = list(csv.DictReader(file))
    assert [row["assay"] for row in groups] == ["a", "b"]
    counts = br.count_table(path, n="n", s="s", individual="id")
    assert sum(int(row["individuals"]) for row in groups) == counts.individuals
    rows_as_json = json.loads(run(capsys, "analyse", path, "--by", "assay", "--json")[1])
    assert float(groups[0]["prevalence"]) == rows_as_json[0]["prevalence"]


def test_new_individuals_are_scored_by_an_earlier_fit(
    capsys: pytest.CaptureFixture[str], results: Path, tmp_path: Path
) -> None:
    new, out = tmp_path / "new.csv", tmp_path / "scored.parquet"
    new.write_text("id,n,s\nx,6,2\ny,3,3\n", encoding="utf-8")
    words = ("score", new, "--model", results / "summary.json", "--out", out)
    code, _, err = run(capsys, *words)
    assert code == 2
    assert (
        "new.csv does not match the recipe: it has no column 'individual', 'result'; name the columns" in err
    )
    code, text, _ = run(capsys, *words, "--n", "n", "--s", "s")
    assert code == 0
    assert "read as one row per individual" in text
    rows = pyarrow.parquet.read_table(out).to_pylist()
    fit = br.load_fit(results / "summary.json")
    assert [row["score"] for row in rows] == [fit.predict(6, 2), fit.predict(3, 3)]
    assert rows[1]["decision"] == "positive"


def test_the_table_takes_other_costs(
    capsys: pytest.CaptureFixture[str], results: Path, tmp_path: Path
) -> None:
    words = ("table", "--model", results / "summary.json", "--up-to", 2, "--cost-false-negative", 9)
    rows = json.loads(run(capsys, *words, "--json", "--out", tmp_path / "t.csv")[1])
    fit = br.load_fit(results / "summary.json")
    expected = br.decision_table(fit, br.Loss(false_negative=9), 2)
    assert [row["decision"] for row in rows] == list(expected["decision"])
    assert (tmp_path / "t.csv").exists()
    assert "expected cost" in run(capsys, *words)[1]


@pytest.mark.slow
def test_simulated_data_can_be_analysed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for path, more in ((tmp_path / "a.csv", []), (tmp_path / "b.csv", ["--long"])):
        words = ("simulate", "--individuals", 50, "--replicates", "3-5", "--seed", 7, "--out", path, *more)
        assert run(capsys, *words)[0] == 0
    one, other = (
        json.loads(run(capsys, "analyse", tmp_path / name, "--truth", "truth", "--json")[1])["fit"]["cells"]
        for name in ("a.csv", "b.csv")
    )
    assert one == other


def test_theory_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(run(capsys, "theory", "--replicates", "3", "--individuals", "50", "--json")[1])
    exact = br.theory.prevalence_error([3] * 50, br.Rates(0.3, 0.1, 0.05), score="median")
    assert rows[1]["bias"] == pytest.approx(exact.bias)
    assert rows[1]["root_mean_square_error"] == pytest.approx(exact.root_mean_square)
    assert "The median is more biased than the average" in run(capsys, "theory")[1]


BAD = {
    "no such file": (("analyse", "nowhere.csv"), "there is no file nowhere.csv"),
    "no such option": (("analyse", "--colour"), "No such option: --colour"),
    "no such command": (("analyze",), "No such command 'analyze'"),
    "a word for a number": (("analyse", "--level", "high"), "Invalid value for '--level'"),
    "a level": (("analyse", "--level", "2"), "level must be between 0 and 1, got 2.0"),
    "a method": (("analyse", "--method", "mean"), "method must be one of"),
    "a prior": (("analyse", "--prior-prevalence", "3"), "--prior-prevalence must be two numbers"),
    "a cost": (("analyse", "--cost-false-positive", "-1"), "false_positive must be a finite cost"),
    "by and truth": (("analyse", "x.csv", "--by", "a", "--truth", "t"), "--by fits each group on its own"),
    "no model": (("score", "x.csv", "--model", "no.json", "--out", "y.csv"), "no.json cannot be read"),
    "a range": (("theory", "--replicates", "6-2"), "--replicates must be a number or a range"),
    "a target": (("simulate", "--out", "x.doc"), "x.doc cannot be written"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_usage_and_bad_data_end_in_one_sentence(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, sentence = BAD[what]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("binreps: ")
    assert err.count("\n") == 1


def test_words_become_what_a_command_asks_for() -> None:
    words = ["a.csv", "b.csv", "--replicate", "x", "--replicate", "y", "--n", "7", "--level", "1e-1"]
    words += ["--up-to", "3", "--out", "folder/", "--title", "", "--better-than-chance"]
    made = app.command("analyse").make_context("analyse", words).params
    wanted = {"data": ["a.csv", "b.csv"], "replicates": ["x", "y"], "n": "7", "level": 0.1, "up_to": 3}
    wanted |= {"out": Path("folder"), "title": "", "better_than_chance": True}
    wanted |= {
        "cost_false_positive": 1.0,
        "s": None,
        "parquet": False,
        "model": "auto",
    }  # as they are otherwise
    for name, value in wanted.items():
        assert (made[name], type(made[name])) == (value, type(value)), name


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_linear_algebra_has_one_thread_unless_told_otherwise(given: dict[str, str], used: str) -> None:
    code = "import atexit, os; atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS']))"
    code += "; from binreps.cli.app import main; main(['--version'])"
    rest = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=rest | given, check=True
    )
    assert done.stdout.split()[-1] == used


def test_debug_shows_where_an_error_comes_from() -> None:
    with pytest.raises(br.DataError, match="no file"):
        main(["analyse", "nowhere.csv", "--debug"])


def test_unclear_columns_are_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("box,where,test\nx,7,1\nx,8,0\n", encoding="utf-8")
    code, _, err = run(capsys, "analyse", path)
    assert code == 2
    assert "say which column is the individual (--individual); the candidates are 'box', 'where'" in err
    assert run(capsys, "analyse", path, "--individual", "box")[0] == 0


def test_an_input_is_never_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    shutil.copy(SCREENING_FILE, path)
    code, _, err = run(capsys, "analyse", path, "--out", tmp_path)
    assert code == 2
    assert "is read and cannot be written too" in err
    assert path.read_bytes() == SCREENING_FILE.read_bytes()


def test_help_has_an_example_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [line.split()[1] for line in run(capsys, "--help")[1].splitlines() if line.startswith("│ ")]
    named = {"analyse", "score", "table", "simulate", "theory", "next", "plan", "prior"}
    assert named <= set(commands)
    for command in named:
        assert f"binreps {command}" in run(capsys, command, "--help")[1]
    assert run(capsys, "--version")[1] == f"binreps {br.__version__}\n"


@pytest.mark.slow
def test_the_installed_program_survives_a_reader_that_stops() -> None:
    command = f"{sys.executable} -m binreps analyse --json | head -c 20; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)  # where it was when the pipe broke
    assert not done.stderr


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.slow
def test_the_terminal_shows_colours_within_its_width(columns: int, tmp_path: Path) -> None:
    """In tmux, as a person sees it."""
    tmux = require("tmux", "tmux")
    socket = str(tmp_path / "s")
    env = {**os.environ, "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    start = [tmux, "-S", socket, "new-session", "-d", "-x", str(columns), "-y", "60"]
    command = f"{sys.executable} -m binreps analyse; tmux -S {socket} wait-for -S done; sleep 60"
    subprocess.run([*start, command], check=True, env=env)
    try:
        subprocess.run([tmux, "-S", socket, "wait-for", "done"], check=True, timeout=120)
        show = [tmux, "-S", socket, "capture-pane", "-p", "-t", ":0"]
        plain = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        coloured = subprocess.run([*show, "-e"], capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run([tmux, "-S", socket, "kill-server"], check=False)
    assert ".36?" in plain
    assert "In short: of 5 replicates" in plain
    assert "\x1b[" in coloured


@pytest.mark.slow
def test_the_next_replicate_is_advised(
    capsys: pytest.CaptureFixture[str], results: Path, tmp_path: Path
) -> None:
    words = ("next", "--model", results / "summary.json", "--cost-per-replicate", "0.02", "--budget", 9)
    content = json.loads(run(capsys, *words, "--out", tmp_path / "rule.csv", "--json")[1])
    fit = br.load_fit(results / "summary.json")
    rule = br.stopping_table(fit, br.Loss(), cost_per_replicate=0.02, max_replicates=10)
    assert [row["action"] for row in content["rule"]] == list(rule.table()["action"])
    assert sum(row["measure"] for row in content["measure_again"]) == 9
    assert "whom to measure again" in run(capsys, *words)[1]
    picture = tmp_path / "rule.svg"
    code, out, _ = run(capsys, *words, SCREENING_FILE, "--out", tmp_path / "who.csv", "--figure", picture)
    assert code == 0
    assert "P003" in out
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    with (tmp_path / "who.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert rows[0]["rank"] == "1"
    assert (rows[0]["n"], rows[0]["s"], rows[0]["measure"]) == ("2", "1", "yes")
    assert rows[-1]["measure"] == "no"


@pytest.mark.slow
def test_a_study_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--individuals", "50,200", "--replicates", "3,5", "--data-sets", 20)
    code, out, _ = run(capsys, "plan", "--prevalence-width", "0.2", *few)
    assert code == 0
    assert "200" in out
    assert len(json.loads(run(capsys, "plan", "--error-margin", "0.05", *few, "--json")[1])) == 4
    assert run(capsys, "plan", *few)[0] == 2  # without a goal


def test_a_prior_is_made_from_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("prior", "prevalence", "--expect", "0.05", "--surprised-above", "0.2")
    belief = br.elicit.guess("prevalence", 0.05, surprised_above=0.2)
    assert json.loads(run(capsys, *words, "--json")[1])["shapes"] == list(belief.shapes)
    last = run(capsys, *words)[1].splitlines()[-1]
    option, value = last.split()[-2:]
    analysed = json.loads(run(capsys, "analyse", SCREENING_FILE, option, value, "--json")[1])
    assert analysed["options"]["prior"]["prevalence"] == list(belief.shapes)
    assert run(capsys, "prior", "sensitivity", "--share", "0.95", "--of", "200")[0] == 0
    assert run(capsys, "prior", "prevalence", "--between", "0.01,0.2")[0] == 0
    assert "say it in one way" in run(capsys, "prior", "prevalence")[2]
    assert "--share and --of go together" in run(capsys, "prior", "prevalence", "--share", "0.1")[2]


def test_groups_whose_estimates_rest_on_the_prior_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "clinics.csv"
    rows = ["x,a,1", "x,a,0", "x,a,1", "y,b,1", "y,b,0", "y,c,1", "y,c,0"]
    path.write_text("\n".join(["clinic,patient,test", *rows]), encoding="utf-8")
    code, out, _ = run(capsys, "analyse", path, "--by", "clinic")
    assert code == 0
    assert "in 1 of 2 groups the data alone cannot tell" in out


def test_without_a_command_it_says_what_to_try_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert "binreps analyse tests.csv --out results" in out


def test_groups_have_a_report_and_what_each_result_is_answered(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, out = tmp_path / "assays.csv", tmp_path / "out"
    cells = [(g, s) for g in ("<a>", "b") for s, many in enumerate((20, 3, 1, 9)) for _ in range(many)]
    rows = "".join(f"{g},{i},3,{s}\n" for i, (g, s) in enumerate(cells))
    path.write_text(f"assay,well,n,s\n{rows}", encoding="utf-8")
    assert run(capsys, "analyse", path, "--by", "assay", "--out", out, "--title", "Assays")[0] == 0
    fit = br.fit_bayes(br.CountTable([3] * 4, range(4), [20, 3, 1, 9]))
    with (out / "scores.csv").open(encoding="utf-8") as file:
        scores = [row for row in csv.DictReader(file) if row["assay"] == "b"]
    assert [float(row["score"]) for row in scores] == pytest.approx(fit.score(3, [0, 1, 2, 3]), abs=1e-6)
    assert [row["decision"] for row in scores] == br.Loss().words(fit.score(3, [0, 1, 2, 3]))
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<h1>Assays</h1>" in page
    assert "&lt;a&gt;" in page
    assert f"{fit.rates.prevalence:.1%}" in page


@pytest.mark.slow
def test_no_number_is_cut_off_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "analyse", "--model", "correlated")
    rates = out[out.index("\nRates") : out.index("\nEveryone")].splitlines()
    assert "…" not in "".join(rates)
    assert max(map(len, rates)) <= 80
    assert len(next(line for line in rates if "prevalence" in line).split()) == 8


@pytest.mark.slow
def test_readers_who_were_compared_in_vain_are_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["slide,reader,call"]
    counts = screening_counts()
    for i, s in enumerate(counts.s.repeat(counts.weight.astype(int))[:40]):
        rows += [f"{i},{reader},{int(j < s)}" for j, reader in enumerate(("ann", "bob", "cy"))]
    (tmp_path / "slides.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = (
        "analyse",
        tmp_path / "slides.csv",
        "--source",
        "reader",
        "--result",
        "call",
        "--individual",
        "slide",
    )
    code, out, _ = run(capsys, *words)
    said = " ".join(out.split())
    assert code == 0
    used = "By source" in said.split("Rates")[1]
    assert (
        used or "source 'reader' was compared and is not used: the model By source predicts no better" in said
    )
    assert "give source=" not in said
