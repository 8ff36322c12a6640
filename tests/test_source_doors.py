"""An analysis by source through its doors: Python, command line, folder, report, scoring later."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import binreps as br
from binreps.cli.app import app
from binreps.show.plot import sources as draw

pytestmark = pytest.mark.slow
COLUMNS = ["--individual", "item", "--result", "vote"]


def write_votes(path, people: int = 400, seed: int = 3):
    """Votes of five workers, one of whom answers at random, with the truth."""
    rng = np.random.default_rng(seed)
    truth, wrong = rng.random(people) < 0.4, [0.05, 0.1, 0.1, 0.15, 0.5]
    lines = ["item,worker,vote,truth"]
    for i in range(people):
        for j in range(5):
            vote = int(truth[i] ^ (rng.random() < wrong[j]))
            lines.append(f"i{i},<w{j}>,{'yes' if vote else 'no'},{int(truth[i])}")
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_in(path) -> list[dict]:
    """The rows of a CSV file."""
    return list(csv.DictReader(path.read_text().splitlines()))


def run(*words: object):
    """What the command prints, and its exit code."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that the command wrote, and what it printed."""
    out = tmp_path_factory.mktemp("votes")
    data = write_votes(out / "votes.csv")
    done = run("analyse", data, "--source", "worker", "--truth", "truth", "--out", out / "results")
    assert done.exit_code == 0, done.output
    return out, done.output


def test_the_command_prints_sources_checks_and_judgement(folder) -> None:
    _, printed = folder
    for words in ("5 sources", "<w0>", "Sources like these", "Judged by column 'truth'", "next to nothing"):
        assert words in printed
    assert "same error rates" not in printed


def test_the_folder_holds_report_scores_sources_and_summary(folder) -> None:
    out, _ = folder
    results = out / "results"
    assert sorted(path.name for path in results.iterdir()) == [
        "report.html", "scores.csv", "sources.csv", "summary.json",
    ]  # fmt: skip
    scores = rows_in(results / "scores.csv")
    assert len(scores) == 400
    assert {row["decision"] for row in scores} <= {"negative", "inconclusive", "positive"}
    listed = rows_in(results / "sources.csv")
    assert [row["source"] for row in listed] == [f"<w{j}>" for j in range(5)]
    content = json.loads((results / "summary.json").read_text())
    assert content["data"] == {
        "individuals": 400, "replicates": 2000, "positives": content["data"]["positives"], "cells": 6,
        "identifiable": True,
    }  # fmt: skip
    (part,) = content["populations"]
    assert [row["readings"] for row in part["sources"]] == [400] * 5
    assert part["chains"]["rhat"] < 1.05
    assert part["judged"]["sources"]["sensitivity"] > 0.8
    assert part["decisions"] == []  # who said it matters
    assert sum(row["weight"] for row in part["cells"]) == 400
    assert content["fit"]["method"] == "sources"
    assert "--source worker" in content["command"]


def test_the_report_shows_the_sources_and_needs_no_network(folder) -> None:
    page = (folder[0] / "results" / "report.html").read_text()
    assert "&lt;w0&gt;" in page
    assert "<w0>" not in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    names = re.findall(r"<title>(&lt;w\d&gt;): false-positive", page)
    assert sorted(names) == [f"&lt;w{j}&gt;" for j in range(5)]
    assert 'id="sources"' in page
    assert "i399" in page


def test_new_votes_are_scored_with_the_summary(folder, tmp_path) -> None:
    new = write_votes(tmp_path / "new.csv", 10, seed=9)
    target = tmp_path / "scored.csv"
    done = run("score", new, "--model", folder[0] / "results" / "summary.json", "--out", target)
    assert done.exit_code == 0, done.output
    assert "same error rates" not in done.output
    rows = rows_in(target)
    fit = br.load_fit(folder[0] / "results" / "summary.json")
    votes = rows_in(new)
    for row in rows:
        said = {vote["worker"]: int(vote["vote"] == "yes") for vote in votes if vote["item"] == row["item"]}
        assert abs(float(row["score"]) - fit.predict(said)) < 0.03


def test_json_goes_to_standard_output(tmp_path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("id,a,b,c\nx,1,0,1\ny,0,0,0\nz,1,1,1\n")
    columns = ["--individual", "id", *(word for name in "abc" for word in ("--replicate", name))]
    done = run("analyse", wide, "--model", "sources", *columns, "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.output)
    assert [row["source"] for row in content["populations"][0]["sources"]] == ["a", "b", "c"]


def test_analyse_in_python_gives_the_same(folder) -> None:
    analysis = br.analyse(folder[0] / "votes.csv", source="worker", truth="truth")
    assert analysis.model == "sources"
    content = json.loads((folder[0] / "results" / "summary.json").read_text())
    assert analysis.fit.rates.prevalence == content["populations"][0]["headline"]["prevalence"]["estimate"]
    assert sum(analysis.answers.values()) == 400
    assert "<w4>" in str(analysis)
    assert "report" in analysis.report()
    assert len(draw(analysis.fit).to_dict()["layer"]) == 4


def test_a_model_that_could_not_be_tried_is_named_with_its_reason(folder) -> None:
    words = ["--source", "worker", "--prior-false-positive", "2,20"]
    done = run("analyse", folder[0] / "votes.csv", *words)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "not tried: By source, as with sources the error rates come from a population" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--source", "nobody"], "column 'nobody'"),
        (
            ["--source", "worker", "--model", "sources", "--prior-false-positive", "2,20"],
            "population that is learned",
        ),
    ],
)
def test_what_does_not_go_together_is_said_in_a_sentence(folder, words, sentence: str) -> None:
    done = run("analyse", folder[0] / "votes.csv", *words)
    assert done.exit_code != 0
    assert sentence in " ".join((done.output + str(done.exception)).split())


def test_copies_are_merged_at_the_terminal(tmp_path) -> None:
    """As in Python, kept in the summary and in the command that repeats it, and known when scoring later."""
    data, out = write_votes(tmp_path / "votes.csv", 60), tmp_path / "results"
    done = run(
        "analyse", data, "--source", "worker", "--merge", "<w0>,<w1>", "--merge", "<w2>, <w3>", "--out", out
    )
    assert done.exit_code == 0, done.output
    content = json.loads((out / "summary.json").read_text())
    assert content["options"]["merge"] == [["<w0>", "<w1>"], ["<w2>", "<w3>"]]
    assert "--merge '<w0>,<w1>' --merge '<w2>,<w3>'" in content["command"]
    names = [row["source"] for row in content["populations"][0]["sources"]]
    assert sorted(names) == ["<w0> + <w1>", "<w2> + <w3>", "<w4>"]
    fit = br.fit(
        data, source="worker", individual="item", result="vote", merge=[("<w0>", "<w1>"), ("<w2>", "<w3>")]
    )
    found = {row["source"]: row["false_positive"] for row in rows_in(out / "sources.csv")}
    rates = dict(zip(fit.sources, fit.rates.false_positive, strict=True))
    assert {name: float(rate) for name, rate in found.items()} == pytest.approx(rates, abs=1e-6)
    scored = run("score", data, "--model", out / "summary.json", "--fitted", "--out", tmp_path / "scored.csv")
    assert scored.exit_code == 0, scored.output
    own = {row["item"]: float(row["score"]) for row in rows_in(out / "scores.csv")}
    for row in rows_in(tmp_path / "scored.csv"):
        assert float(row["score"]) == pytest.approx(own[row["item"]], abs=0.03)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (
            ["--source", "worker", "--merge", "<w0>,nobody"],
            "merge must name sources of the data, got 'nobody'",
        ),
        (["--source", "worker", "--merge", "<w0>"], "merge must be groups of two or more sources"),
        (
            ["--source", "worker", "--merge", "a,b", "--model", "common"],
            "the model common does not tell apart",
        ),
        (
            ["--by", "worker", "--merge", "<w0>,<w1>"],
            "it goes without --population, --truth, --recipe and --merge",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused_at_the_terminal(words, rule, tmp_path) -> None:
    done = run("analyse", write_votes(tmp_path / "votes.csv", 30), *words)
    assert isinstance(done.exception, br.OptionError)
    assert rule in str(done.exception)
