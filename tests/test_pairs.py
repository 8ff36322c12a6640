"""Pairs of sources that agree in their errors: found, not imagined, and taken for one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp

import binreps as br
from binreps import Readings, fit_sources
from engines import ENGINES, rows_of

NAMES = list("abcdefgh")


def panel(seed: int, copied: float, errors: tuple[int, int] = (3, 17)) -> np.ndarray:
    """What eight readers say of 200; the last says what the one before says, now and then."""
    rng = np.random.default_rng(seed)
    positive, p, q = rng.random((200, 1)) < 0.4, rng.beta(*errors, 8), rng.beta(*errors, 8)
    said = np.where(positive, rng.random((200, 8)) >= q, rng.random((200, 8)) < p).astype(int)
    copies = rng.random(200) < copied
    said[copies, 7] = said[copies, 6]
    return said


@cache
def copied() -> br.SourcesFit:
    return fit_sources(Readings.wide(panel(1, 1.0), NAMES), rng=1, tol=0.2)


def test_a_copy_is_named_with_what_dropping_it_changes() -> None:
    finding = next(one for one in br.check(copied(), br.Loss()) if one.name == "agreeing-pair")
    assert "g and h agree in their errors: on 200 individuals" in finding.sentence
    assert "without g" in finding.sentence
    assert "merge the two into one source" in finding.advice
    assert finding.advise("command").endswith(" binreps analyse FILE --merge g,h")
    assert finding.advise("python").endswith(" br.fit(…, merge=[('g', 'h')])")


def test_a_third_that_agrees_with_two_merged_is_named_with_both() -> None:
    """The sources of the data are named, not the merged one, which no option knows."""
    said = panel(1, 1.0)
    said[:, 5] = said[:, 6]
    fit = fit_sources(Readings.wide(said, [*NAMES[:7], "h, jr"]), rng=1, tol=0.2, merge=[("g", "h, jr")])
    finding = next(one for one in br.check(fit) if one.name == "agreeing-pair")
    assert finding.action.words("command") == "binreps analyse FILE --merge 'f,g,\"h, jr\"'"


def test_sources_that_are_numbers_are_merged_by_their_text() -> None:
    """Options are text; a file may have numbers."""
    numbers = Readings.wide([[1, 1, 0], [1, 0, 0]] * 10, [1, 2, 3])
    fit = fit_sources(numbers, rng=1, tol=0.5, merge=[("1", "2")])
    assert fit.sources == ("1 + 2", 3)
    assert fit.merge == ((1, 2),)


@pytest.mark.slow
def test_independent_readers_raise_no_alarm() -> None:
    for seed in range(3):
        fit = fit_sources(Readings.wide(panel(seed, 0.0), NAMES), rng=1, tol=0.2)
        assert fit.agreeing_pairs() == []


def most_likely(said: np.ndarray, usual: np.ndarray, *, together: bool) -> float:
    """The largest log likelihood of a panel whose last two may have a law of their own, climbed blindly.

    `usual` are mean rates of false positives and false negatives: one individual more of either class for
    every other reader.
    """
    others, cell = said[:, :-2], 2 * said[:, -2] + said[:, -1]

    def loss(x: np.ndarray) -> float:
        size = others.shape[1]
        p, q = expit(x[1 : size + 1]), expit(x[size + 1 : 2 * size + 1])
        yes = others @ np.log([p, 1 - q]).T + (1 - others) @ np.log([1 - p, q]).T
        laws = [log_softmax([0, *own]) for own in x[2 * size + 1 :].reshape(2, 3)]
        if not together:
            laws = [
                np.log(np.outer(law[[0, 2]] + law[[1, 3]], law[[0, 1]] + law[[2, 3]])).ravel()
                for law in map(np.exp, laws)
            ]
        classes = yes + np.log(expit([-x[0], x[0]])) + np.stack(laws, axis=1)[cell]
        prior = sum(m * np.log(r) + (1 - m) * np.log(1 - r) for m, r in zip(usual, (p, q), strict=True))
        return -float(logsumexp(classes, axis=1).sum() + prior.sum())

    start = np.concatenate([[0.0], np.full(2 * others.shape[1], -1.5), [-1, -1, -1], [1, 1, 3]])
    return -float(minimize(loss, start, method="BFGS").fun)


def test_the_gain_of_a_pair_is_that_of_a_law_of_its_own() -> None:
    """Twice the difference of two maxima, found by a climber that knows no EM."""
    fit = copied()
    pair = fit.agreeing_pairs()[0]
    overall = fit.overall
    usual = np.array([overall.false_positive, overall.false_negative])
    together, apart = (most_likely(panel(1, 1.0), usual, together=how) for how in (True, False))
    assert pair.gain == pytest.approx(2 * (together - apart), rel=0.05)
    assert pair.correlation > 0.95
    assert pair.rivals == ()


@pytest.mark.slow
def test_copies_that_pass_for_perfect_readers_are_named_all_the_same() -> None:
    """Among mediocre readers two that agree always decide the statuses: others then seem to err alike."""
    for seed in (0, 1, 2):
        fit = fit_sources(Readings.wide(panel(seed, 1.0, errors=(6, 14)), NAMES), rng=1, tol=0.2)
        assert [pair.members for pair in fit.agreeing_pairs()] == [(6, 7)]


def test_of_four_readers_either_two_may_be_those_who_agree() -> None:
    """Two copies and two others: perfect readers and a pair that errs alike explain it as well."""
    fit = fit_sources(Readings.wide(panel(2, 1.0)[:, 4:], "efgh"), rng=1, tol=0.2)
    assert fit.agreeing_pairs()[0].rivals
    finding = next(one for one in br.check(fit) if one.name == "agreeing-pair")
    assert "agree in their errors, or in place of them" in finding.sentence
    assert "the readings do not tell which" in finding.sentence


def test_a_pair_counted_once_is_scored_so() -> None:
    """Beside scores without one's readings, asked for by hand."""
    fit = copied()
    pair = fit.agreeing_pairs()[0]
    scores = fit.counted_once(pair)
    odds = {how: np.log(score / (1 - score)) for how, score in scores.items()}
    w, p, q = fit.calibration.discount, fit.rates.false_positive, fit.rates.false_negative
    for i, row in enumerate(fit.readings.table()):
        said = {"yes": np.log((1 - q[6]) / p[6]), "no": np.log(q[6] / (1 - p[6]))}[row["g"]]
        assert odds["without the first"][i] == pytest.approx(odds["as it is"][i] - w * said, abs=1e-4)
        assert row["g"] == row["h"]
    middle = (odds["without the first"] + odds["without the second"]) / 2
    assert odds["counted as one"] == pytest.approx(middle, abs=1e-4)


def test_merged_sources_are_one_that_says_what_they_agree_on() -> None:
    rows = [[1, 1, 0], [1, 0, 0], [None, 1, 1]]
    merged = Readings.wide(rows, ["ann", "bob", "eve"]).merging([("ann", "bob")])
    assert merged == Readings.wide([[1, 0], [None, 0], [1, 1]], ["ann + bob", "eve"])
    fit = fit_sources(Readings.wide(panel(1, 1.0), NAMES), rng=1, tol=0.2, merge=[("g", "h")])
    assert fit.sources == (*NAMES[:6], "g + h")
    assert fit.agreeing_pairs() == []
    assert fit.score({"a": 1, "g": 1, "h": 1}) == fit.score({"a": 1, "g + h": 1})
    assert fit.score({"a": 1, "g": 1, "h": 0}) == fit.score({"a": 1})


@pytest.mark.slow
def test_tables_with_merged_sources_are_scored_in_every_engine(tmp_path) -> None:
    said = panel(2, 0.8)[:40]
    places = [(i, j) for i in range(40) for j in range(8) if (i + j) % 5]
    rows = [(f"i{i}", NAMES[j], int(said[i, j])) for i, j in places]
    table = pa.table(dict(zip(("item", "by", "x"), map(list, zip(*rows, strict=True)), strict=True)))
    columns = {"individual": "item", "source": "by", "result": "x"}
    fit = br.fit(table, tol=0.5, merge=[("g", "h")], **columns)
    assert br.load_fit(br.save_fit(fit, tmp_path / "fit.json")).merge == (("g", "h"),)
    own = Readings(*(table[name].to_pylist() for name in ("item", "by", "x")))
    wanted = dict(zip(dict.fromkeys(table["item"].to_pylist()), fit.score(own), strict=True))
    n = dict(zip(wanted, own.merging(fit.merge).sizes[0], strict=True))
    for engine in ("pandas", "duckdb", "polars-lazy"):
        for row in rows_of(br.attach(ENGINES[engine](table), fit, **columns)):
            assert abs(row["score"] - wanted[row["item"]]) < 0.03
            assert row["n"] == n[row["item"]]


@pytest.mark.parametrize("merge", [["gh"], [("g",)], [("g", "h"), ("h", "a")], [("g", "nobody")], "gh"])
def test_what_cannot_be_merged_is_refused(merge) -> None:
    with pytest.raises(br.OptionError, match="merge must"):
        fit_sources(Readings.wide(panel(1, 1.0), NAMES), rng=1, merge=merge)
