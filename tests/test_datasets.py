"""The bundled example data are what our own simulation made."""

from __future__ import annotations

from collections import Counter

import numpy as np

from binreps import CountTable, count_table
from binreps.model import likelihood_score
from binreps.study.datasets import SCREENING_RATES, load_screening, made
from screening import screening_counts, screening_truth


def test_the_files_are_those_that_were_simulated() -> None:
    """To make one anew, write what `made()` gives for it."""
    assert {path.read_bytes() == text.encode() for path, text in made().items()} == {True}


def test_screening_is_long_form_with_a_few_missing_results() -> None:
    screening = load_screening()
    assert tuple(screening.columns) == ("individual", "result", "truth")
    assert Counter(screening["result"]).keys() == {0, 1, None}
    assert screening["result"].count(None) == 7
    rows = Counter(screening["individual"])
    assert len(rows) == 120
    assert set(rows.values()) == {2, 3, 4, 5, 6}


def test_everyone_has_a_truth() -> None:
    truths = {(row["individual"], row["truth"]) for row in load_screening()}
    assert {name for name, _ in truths} == set(load_screening()["individual"])
    assert {truth for _, truth in truths} == {0, 1}
    assert (len(truths), sum(truth for _, truth in truths)) == (120, 35)


def test_counts_leave_out_missing_results() -> None:
    rows, positives = Counter[str](), Counter[str]()
    for row in load_screening():
        rows[row["individual"]] += row["result"] is not None
        positives[row["individual"]] += row["result"] == 1
    counts = count_table(load_screening().to_arrow(), individual="individual", result="result")
    assert counts == screening_counts() == CountTable(list(rows.values()), [positives[name] for name in rows])
    assert counts.identifiable
    assert not counts.has_known


def test_the_example_shows_all_three_decisions() -> None:
    counts = screening_counts()
    score = likelihood_score(counts.n, counts.s, SCREENING_RATES)
    for decided in (score < 0.2, (score >= 0.2) & (score <= 0.8), score > 0.8):
        assert counts.weight[decided].sum() >= 5


def test_the_example_looks_like_its_rates() -> None:
    """Estimates from the known truth lie within two standard errors of the rates behind the data."""
    truth = screening_truth()
    results = [(row["truth"], row["result"]) for row in load_screening() if row["result"] is not None]
    healthy, infected = ([x for t, x in results if t == status] for status in (0, 1))
    samples = (list(truth.values()), healthy, [1 - x for x in infected])
    for rate, sample in zip(SCREENING_RATES, samples, strict=True):
        assert abs(np.mean(sample) - rate) < 2 * np.sqrt(rate * (1 - rate) / len(sample))
