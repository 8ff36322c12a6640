"""Pairs of sources that agree in their errors: found, not imagined, and taken for one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import binreps as br
from binreps import Readings, fit_sources
from engines import ENGINES, rows_of

NAMES = list("abcdefgh")


def panel(seed: int, copied: float) -> np.ndarray:
    """What eight readers say of 200; the last says what the one before says, now and then."""
    rng = np.random.default_rng(seed)
    positive, p, q = rng.random((200, 1)) < 0.4, rng.beta(3, 17, 8), rng.beta(3, 17, 8)
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
    assert finding.advise("command").endswith(" binreps analyse --merge g,h")
    assert finding.advise("python").endswith(" br.fit(…, merge=[('g', 'h')])")


def test_a_third_that_agrees_with_two_merged_is_named_with_both() -> None:
    """The sources of the data are named, not the merged one, which no option knows."""
    said = panel(1, 1.0)
    said[:, 5] = said[:, 6]
    fit = fit_sources(Readings.wide(said, [*NAMES[:7], "h, jr"]), rng=1, tol=0.2, merge=[("g", "h, jr")])
    finding = next(one for one in br.check(fit) if one.name == "agreeing-pair")
    assert finding.action.words("command") == "binreps analyse --merge 'f,g,\"h, jr\"'"


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


def test_the_correlation_of_a_pair_is_what_leaving_both_out_says() -> None:
    """Written out, record by record."""
    fit = copied()
    pair = fit.agreeing_pairs()[0]
    p, q, theta = fit.rates.false_positive, fit.rates.false_negative, fit.rates.prevalence
    excess, spread = [], []
    for row in panel(1, 1.0):
        chance = np.array([1 - theta, theta])
        for j in range(6):
            chance *= [p[j], 1 - q[j]] if row[j] else [1 - p[j], q[j]]
        one = chance[1] / chance.sum()
        mean = one * (1 - q[6:]) + (1 - one) * p[6:]
        excess.append(np.prod(row[6:] - mean) - one * (1 - one) * np.prod(1 - p[6:] - q[6:]))
        spread.append(np.sqrt(np.prod(mean * (1 - mean))))
    assert pair.correlation == pytest.approx(sum(excess) / sum(spread), rel=1e-5)
    assert pair.z == pytest.approx(sum(excess) / np.sqrt(np.sum(np.square(excess))), rel=1e-5)


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
