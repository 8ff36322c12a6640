"""One patient at the bedside: the answer, the next step, the command and the card."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import binreps as br
from binreps.cli.app import main
from binreps.decide.answer import explain, step_of
from binreps.model import Records
from binreps.show.card import card, card_cells

COUNTS = br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
LOSS = br.Loss(inconclusive=0.2)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return int(stopped.value.code or 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("results")
    analysis = br.analyse(COUNTS, br.Settings(loss=LOSS))
    analysis.write(folder)
    return str(folder / "summary.json")


def test_a_step_follows_from_predictions_alone() -> None:
    fit = br.fit_bayes(COUNTS)
    now, down, up = fit.predict([4, 5, 5], [2, 2, 3])
    step = explain(fit, LOSS, 4, 2, new=True).next
    assert step is not None
    negative, positive = step.branches
    assert (negative.probability, positive.probability) == pytest.approx((down, up), abs=1e-9)
    # the probability is a martingale: that fixes how likely the next result is
    assert positive.likelihood == pytest.approx((now - down) / (up - down), abs=1e-7)
    assert step.clear == sum(one.likelihood for one in step.branches if one.decision != "inconclusive")


def test_testing_until_it_is_clear_adds_up_over_all_sequences() -> None:
    fit, ahead = br.fit_bayes(COUNTS), 5
    rule = br.stopping_table(
        fit, LOSS, cost_per_replicate=0.01, max_replicates=2 + ahead, start=(2, 1), new=True
    )
    clear = tests = 0.0
    for sequence in product((0, 1), repeat=ahead):
        n, s, share = 2, 1, 1.0
        for x in sequence:
            if LOSS.classify(fit.predict(n, s)) != 0.5:
                break
            up = rule.row(n, s)["next_positive"]
            share *= up if x else 1 - up
            n, s = n + 1, s + x
        share *= 0.5 ** (ahead - (n - 2))  # the sequences that begin alike stop together
        clear += share * (LOSS.classify(fit.predict(n, s)) != 0.5)
        tests += share * (n - 2)
    step = step_of(rule, 2, 1)
    assert (step.conclusive, step.expected_replicates) == pytest.approx((clear, tests), abs=1e-7)


@pytest.mark.parametrize("new", [True, False])
def test_correlated_replicates_have_a_next_step(new: bool) -> None:
    counts = br.CountTable([6] * 7, range(7), [80, 20, 8, 4, 6, 12, 20])
    fit = br.fit_overdispersed(counts)
    rule = br.stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=9, start=(6, 2), new=new)
    assert rule.row(6, 2)["probability"] == pytest.approx((fit.predict if new else fit.score)(6, 2), abs=1e-6)
    for row in rule.table():
        if row["n"] < 9:  # no result is expected to move the probability
            after = [rule.row(row["n"] + 1, row["s"] + x)["probability"] for x in (0, 1)]
            mean = after[0] + row["next_positive"] * (after[1] - after[0])
            assert mean == pytest.approx(row["probability"], abs=1e-9)
    if new:
        assert rule.row(8, 4)["probability"] == pytest.approx(fit.predict(8, 4), abs=1e-6)


def test_draws_agree_on_the_next_result_of_correlated_replicates() -> None:
    counts = br.CountTable([6] * 7, range(7), [80, 20, 8, 4, 6, 12, 20])
    fit = br.fit_overdispersed(counts)
    theta, p, q, rho = fit.joint_draws(200_000, 1)[None]

    def seen(n: int, s: int) -> float:
        negative, positive = fit.model.log_shares(Records(np.array([n]), np.array([s])), theta, p, q, rho)
        return float(np.mean(np.exp(negative[0]) + np.exp(positive[0])))

    rule = br.stopping_table(fit, LOSS, cost_per_replicate=0.01, max_replicates=8, start=(6, 2), new=True)
    assert rule.row(6, 2)["next_positive"] == pytest.approx(seen(7, 3) / seen(6, 2), rel=0.01)


def test_an_answer_prints_what_a_clinician_asks(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("decide", "1/2", "--model", model) == 0
    told = capsys.readouterr().out
    answer = explain(br.fit_bayes(COUNTS), LOSS, 2, 1, new=True)
    assert told.strip() == str(answer)
    assert told.startswith("1 positive of 2 tests: inconclusive\n38\u202f% chance of being positive")
    assert "Test once more: either result settles it." in told
    assert "100 individuals with 400 tests" in told
    assert run("decide", "1 of 2", "--model", model, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["probability"] == answer.probability
    assert content["next"]["clear"] == 1.0
    assert content["decision"] == "inconclusive"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["7/6"], "no more positives than tests, got 7/6"),
        ([], "such as 2/6, got nothing"),
        (["two"], "such as 2/6, got two"),
        (["1/2", "--source", "a:1"], "no sources"),
        (["1/2", "--covariate", "age"], "NAME=VALUE"),
        (["1/2", "--covariate", "age=3"], "uses no covariates"),
        (["1/2", "--population", "x"], "no populations"),
    ],
)
def test_what_cannot_be_asked_is_said(
    words: list[str], sentence: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("decide", *words, "--model", model) == 2
    assert sentence in capsys.readouterr().err


def test_covariates_and_populations_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = br.fit_populations({"north": COUNTS, "south": COUNTS})
    br.save_fit(two, tmp_path / "two.json")
    assert run("decide", "1/2", "--model", str(tmp_path / "two.json"), "--population", "south") == 0
    assert str(explain(two["south"], br.Loss(), 2, 1, new=True)) == capsys.readouterr().out.strip()
    assert run("decide", "1/2", "--model", str(tmp_path / "two.json")) == 2
    assert "must be one of north, south" in capsys.readouterr().err
    rng = np.random.default_rng(1)
    age, site = rng.normal(50, 10, 60), np.where(rng.random(60) < 0.5, "A", "B")
    s = rng.binomial(3, np.where(rng.random(60) < 1 / (1 + np.exp(-(age - 50) / 5)), 0.9, 0.1))
    fit = br.fit_covariates(br.CovariateTable(np.full(60, 3), s, {"age": age, "site": site}))
    br.save_fit(fit, tmp_path / "age.json")
    asked = ("--covariate", "age=61", "--covariate", "site=B")
    assert run("decide", "1/2", "--model", str(tmp_path / "age.json"), *asked, "--json") == 0
    found = json.loads(capsys.readouterr().out)["probability"]
    assert found == pytest.approx(fit.predict(2, 1, covariates={"age": 61.0, "site": "B"}), abs=1e-12)
    assert run("decide", "1/2", "--model", str(tmp_path / "age.json"), "--covariate", "age=old") == 2
    assert "'age' must be a number, got 'old'" in capsys.readouterr().err


def test_who_said_what_is_asked_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    fit = br.fit_sources(br.Readings.wide(rows, ["ann", "bob", "eve"], [30, 20, 20, 30]), rng=1)
    br.save_fit(fit, tmp_path / "readers.json")
    assert run("decide", "--source", "ann:1,eve:0", "--model", str(tmp_path / "readers.json")) == 0
    told = capsys.readouterr().out
    assert "A yes by ann multiplies the odds of being positive by" in told
    assert run("decide", "2/3", "--model", str(tmp_path / "readers.json")) == 2
    assert "say who said what" in capsys.readouterr().err
    assert run("decide", "--source", "ann", "--model", str(tmp_path / "readers.json")) == 2
    assert "NAME:0 or NAME:1" in capsys.readouterr().err
    with pytest.raises(br.OptionError, match="error rates that all replicates share"):
        card(fit, LOSS)


@pytest.mark.slow
def test_who_said_what_about_whom(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    age = rng.normal(50, 10, 80).round()
    status = rng.random(80) < 1 / (1 + np.exp(-(age - 50) / 4))
    rows = np.where(status[:, None], rng.random((80, 3)) < 0.85, rng.random((80, 3)) < 0.1).astype(int)
    readings = br.Readings.wide(rows.tolist(), ["ann", "bob", "eve"]).with_covariates({"age": age})
    fit = br.fit_sources(readings, rng=1, sweeps=400)
    br.save_fit(fit, tmp_path / "fit.json")
    words = ("decide", "--source", "ann:1,bob:0", "--covariate", "age=70", "--json")
    assert run(*words, "--model", str(tmp_path / "fit.json")) == 0
    found = json.loads(capsys.readouterr().out)
    said, about = {"ann": 1, "bob": 0}, {"age": 70.0}
    assert found["probability"] == pytest.approx(fit.predict(said, covariates=about), abs=2e-3)
    after = fit.predict([{**said, "eve": x} for x in (0, 1)], covariates=about)
    step = br.explain(fit, br.Loss(), said, covariates=about, new=True).next
    assert step is not None
    if step.source == "eve":
        assert [one.probability for one in step.branches] == pytest.approx(after, abs=1e-9)
    assert run("decide", "--source", "ann:1", "--model", str(tmp_path / "fit.json")) == 2
    assert "depends on covariates" in capsys.readouterr().err


def test_a_card_holds_every_answer_and_needs_nothing_else(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "card.html"
    assert run("card", "--model", model, "--out", str(out), "--title", "Rapid <test>", "--up-to", "5") == 0
    page = out.read_text(encoding="utf-8")
    assert "Rapid &lt;test&gt;" in page
    assert not re.search(r"(src|href)=|https?:|@import|url\(", page)
    cells = json.loads(re.search(r'id="cells">(.*?)</script>', page)[1])  # type: ignore[index]
    assert cells == card_cells(br.fit_bayes(COUNTS), LOSS, 5, 0.01)
    table = br.decision_table(br.fit_bayes(COUNTS), LOSS, replicates=5)
    assert [cell["decision"] for cell in cells] == list(table["decision"])
    assert f'aria-label="2 positive of 4: {cells[11]["chance"]}, {cells[11]["decision"]}"' in page
    assert (cells[11]["n"], cells[11]["s"]) == (4, 2)
    assert run("card", "--model", model, "--out", "card.pdf") == 2
    assert "must name an HTML file" in capsys.readouterr().err
    assert run("card", "--model", model, "--out", str(tmp_path / "no" / "card.html")) == 2
    assert run("card", "--model", model, "--out", str(out), "--up-to", "13") == 2
    assert "up_to" in capsys.readouterr().err
