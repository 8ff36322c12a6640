"""What is said of a fit by source, and a fit by source saved and loaded."""

from __future__ import annotations

import json

import numpy as np
import pytest

import binreps as br
from binreps import Readings


def simulated(people: int, wrong: np.ndarray, each: int, seed: int = 1) -> Readings:
    """Readings by sources with these chances of being wrong, `each` per individual."""
    rng = np.random.default_rng(seed)
    truth = rng.random(people) < 0.4
    rows = [
        (i, f"s{j}", int(truth[i] ^ (rng.random() < wrong[j])))
        for i in range(people)
        for j in rng.choice(wrong.size, each, replace=False)
    ]
    return Readings(*zip(*rows, strict=True))


def findings(readings: Readings, sweeps: int = 80):
    """What `check` says of a short fit."""
    return br.check(br.fit_sources(readings, rng=1, sweeps=sweeps, tol=0.5, chains=16), br.Loss())


GOOD = np.full(6, 0.1)


def test_good_sources_raise_no_alarm() -> None:
    assert not findings(simulated(300, GOOD, 4), 400).warnings


def test_sources_that_nobody_links_are_said() -> None:
    one, other = simulated(60, GOOD[:3], 3), simulated(60, GOOD[:3], 3, seed=2)
    rows = [
        (f"{name}{row}", f"{name}{code // 2}", int(code % 2))
        for name, part in (("a", one), ("b", other))
        for row, code in zip(part.row, part.code, strict=True)
    ]
    found = findings(Readings(*zip(*rows, strict=True)))
    (finding,) = [one for one in found if one.name == "components"]
    assert finding.number == 2
    assert "a0, a1, a2 (180 readings" in finding.sentence
    assert "b0, b1, b2 (180 readings" in finding.sentence


def test_one_reading_each_and_two_sources_rest_on_the_prior() -> None:
    assert "one-reading" in findings(simulated(100, GOOD, 1))
    assert "two-sources" in findings(simulated(100, GOOD[:2], 2))
    known = Readings([1, 1, 2, 2, 3], list("ababa"), [1, 1, 0, 0, 1], known=[1, 1, 0, 0, None])
    assert "two-sources" not in findings(known)


def test_poor_sources_are_named() -> None:
    found = findings(simulated(400, np.array([0.05, 0.1, 0.1, 0.1, 0.5, 0.95]), 5))
    named = {one.name: one.sentence for one in found}
    assert "s5" in named["worse-than-chance"]
    assert "s4" in named["spammers"]
    assert "s0" not in named["spammers"] + named["worse-than-chance"]


def test_sources_with_one_reading_are_said() -> None:
    rng = np.random.default_rng(3)
    rows = [(i, f"w{3 * i + k}", int(rng.random() < 0.5)) for i in range(40) for k in range(3)]
    found = findings(Readings(*zip(*rows, strict=True)))
    assert "single-readings" in {one.name for one in found.warnings}


def test_swapped_codes_press_on_the_region() -> None:
    """Three sources who agree, but a known status says that their yes means no."""
    rows = [(i, s, x) for i in range(40) for s, x in zip("abc", [i % 2] * 3, strict=True)]
    known = [1 - i % 2 for i, _, _ in rows]
    readings = Readings(*zip(*rows, strict=True), known=known)
    assert "mirror" in findings(readings)


def test_an_error_not_reached_and_no_data_are_said() -> None:
    fit = br.fit_sources(simulated(30, GOOD, 3), rng=1, sweeps=30, tol=1e-3)
    assert "error-not-reached" in br.check(fit)
    assert "no-data" in findings(Readings([], [], []))


def test_a_saved_fit_says_the_same(tmp_path) -> None:
    readings = simulated(80, GOOD, 4)
    fit = br.fit_sources(readings, rng=1, sweeps=100)
    again = br.load_fit(br.save_fit(fit, tmp_path / "fit.json"))
    assert again == fit
    assert np.array_equal(again.posterior.mean, fit.posterior.mean)
    assert again.error == fit.error
    assert again.summary()["estimate"] == fit.summary()["estimate"]
    assert np.allclose(again.score(readings), fit.score(readings), atol=1e-6)  # few draws: all are kept
    content = json.loads((tmp_path / "fit.json").read_text())
    assert content["results"]["sources"][0]["source"] == fit.sources[0]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda c: c["results"].update(prevalence=0.1), "the file was changed"),
        (lambda c: c["readings"]["code"].update(base64="????"), "code of the fit cannot be read"),
        (lambda c: c["sampled"]["draws"].update(shape=[1, 2, 3]), "draws of the fit cannot be read"),
        (lambda c: c["sources"].append("more"), "draws of 19 parameters"),
        (lambda c: c["sources"].__setitem__(0, c["sources"][1]), "two sources have the same name"),
        (lambda c: c["sampled"].pop("mean"), "incomplete or damaged"),
        (lambda c: c["readings"].update(weight=c["readings"]["start"]), "do not fit together"),
        (lambda c: c["prior"].update(prevalence=[0, 1]), "cannot be made again"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, spoil, sentence: str) -> None:
    fit = br.fit_sources(simulated(20, GOOD, 4), rng=1, sweeps=20, chains=4)
    path = br.save_fit(fit, tmp_path / "fit.json")
    content = json.loads(path.read_text())
    spoil(content)
    path.write_text(json.dumps(content))
    with pytest.raises(br.DataError, match=sentence):
        br.load_fit(path)
