"""crowd-kit, which aggregates the votes of crowds: majority, Dawid–Skene, one coin, GLAD, MMSR."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import engines
from benchmarks.engines import PANDAS
from benchmarks.published import Study
from benchmarks.report import Ratio, milliseconds
from benchmarks.timing import alternate, say

OPTIONS: dict[str, dict[str, Any]] = {
    "MajorityVote": {},
    "DawidSkene": {"n_iter": 100},
    "OneCoinDawidSkene": {"n_iter": 100},
    "GLAD": {"n_iter": 100, "silent": True},
    "MMSR": {"random_state": 1},
}
"""Its methods for votes of yes and no, and how they are called."""

MISSING = "crowd-kit is not installed, so its rows are missing."


def installed() -> bool:
    """Whether the peer is here."""
    return find_spec("crowdkit") is not None


def majority_vote(file: Path) -> tuple[list[dict[str, Any]], dict[str, Ratio], str]:
    """Its majority vote of a long table of 10⁶ rows, beside our counts, fit and scores; or why not.

    It has no intervals; our scores are timed without them and with them.
    """
    if not installed():
        return [], {}, MISSING
    say("data, 10⁶ rows: majority vote of crowd-kit")
    frame = PANDAS.open(file)
    votes = frame.rename(columns={"individual": "task", "result": "label"}).assign(worker=0)
    runs = alternate(
        {
            "hand": lambda _: len(majority(votes)),
            "scores": lambda _: len(engines.scored(frame, PANDAS, level=None)),
            "intervals": lambda _: len(engines.scored(frame, PANDAS)),
        },
        3,
        seconds=10,
    )
    vote = runs["hand"]
    named = {"scores": "crowd-kit's MajorityVote on pandas", "intervals": "the same beside intervals"}
    rows = [
        {
            "rows": "10⁶",
            "engine": name,
            "by hand": vote.wall,
            "scores": runs[kind].wall,
            "by hand, processor": milliseconds(vote.busy.median),
        }
        for kind, name in named.items()
    ]
    words = {"scores": "majority vote to scores", "intervals": "majority vote to scores with intervals"}
    ratios = {
        f"data, 10⁶ rows, crowd-kit: {words[kind]}": Ratio(
            vote.wall.median / runs[kind].wall.median, 1.0 if kind == "scores" else None
        )
        for kind in words
    }
    return rows, ratios, "Beside crowd-kit's, scores are without intervals (`level=None`), as its votes are."


def majority(votes: Any) -> Any:
    """The label that most gave, for each task."""
    from crowdkit.aggregation import MajorityVote

    with _quiet():
        return MajorityVote().fit_predict(votes)


def majority_shares(votes: Any) -> Any:
    """The share of positive votes for each task."""
    from crowdkit.aggregation import MajorityVote

    with _quiet():
        return MajorityVote().fit_predict_proba(votes)


def dawid_skene(votes: Any, *, iterations: int = 100) -> Any:
    """The Dawid–Skene model, fitted by EM."""
    from crowdkit.aggregation import DawidSkene

    with _quiet():
        return DawidSkene(n_iter=iterations).fit(votes)


def scores(name: str, study: Study) -> np.ndarray:
    """A probability for each task by one of its classes; MMSR gives labels alone, taken as .99 and .01."""
    import pandas as pd
    from crowdkit import aggregation

    votes = pd.DataFrame({"task": study.task, "worker": study.rater, "label": study.result})
    with _quiet():
        if name == "MMSR":
            labels = aggregation.MMSR(**OPTIONS[name]).fit_predict(votes).sort_index()
            return np.where(labels.to_numpy() == 1, 0.99, 0.01)
        found = getattr(aggregation, name)(**OPTIONS[name]).fit_predict_proba(votes)
    return found.sort_index()[1].to_numpy(dtype=float)


def _quiet() -> Any:
    """Without the peer's warnings of its own dependencies."""
    return warnings.catch_warnings(action="ignore")
