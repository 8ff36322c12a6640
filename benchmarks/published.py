"""Published studies that are not ours to ship: they lie in a folder beside the repository, if at all."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import binreps as br

FOLDER = Path(os.environ.get("BINREPS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
ABSENT = "The published data are not in a folder `shared/data` beside the repository (BINREPS_DATA)."


@dataclass(frozen=True)
class Study:
    """Every vote (task, rater, result), tasks and raters numbered from 0; the truth of tasks, if known."""

    task: np.ndarray
    rater: np.ndarray
    result: np.ndarray
    truth: np.ndarray | None = None

    @property
    def size(self) -> int:
        """How many tasks there are."""
        return int(self.task.max()) + 1

    @property
    def raters(self) -> int:
        """How many raters there are."""
        return int(self.rater.max()) + 1

    @property
    def n(self) -> np.ndarray:
        """Votes on each task."""
        return np.bincount(self.task, minlength=self.size)

    @property
    def s(self) -> np.ndarray:
        """Positive votes on each task."""
        return np.bincount(self.task, weights=self.result, minlength=self.size).astype(int)

    @property
    def readings(self) -> br.Readings:
        """Who said what; sources in the order of their numbers."""
        unknown = np.full(self.size, -1, np.int8)
        names = range(self.raters)
        return br.Readings.counted(names, self.task, self.rater, self.result, 1 - self.result, unknown)


def available(name: str) -> bool:
    """Whether a study is here."""
    return (FOLDER / f"{name}.csv").exists()


def rows(name: str) -> list[list[str]]:
    """The rows of a file, without its header."""
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def read_study(name: str) -> Study:
    """Votes and truth of a long table; votes on tasks without a truth are left out."""
    truth = dict(rows(f"{name}_truth"))
    votes = [row for row in rows(name) if row[0] in truth]
    places = {task: place for place, task in enumerate(truth)}
    raters = {rater: place for place, rater in enumerate(sorted({row[1] for row in votes}))}
    columns = [(places[task], raters[rater], int(result)) for task, rater, result in votes]
    return Study(*np.array(columns).T, np.array([int(value) for value in truth.values()]))


def read_panel(name: str) -> Study:
    """A wide table: an id, then a column for each rater; no truth."""
    return panel(np.array([row[1:] for row in rows(name)], dtype=int))


def panel(results: np.ndarray, truth: np.ndarray | None = None) -> Study:
    """Everyone read by all raters: results of tasks × raters."""
    task, rater = np.indices(results.shape)
    return Study(task.ravel(), rater.ravel(), results.ravel(), truth)
