"""What the discount costs where readings are independent, and what it gains, with gold, where they are not.

`python -m benchmarks.calibration_trials [studies [individuals]]` simulates studies, of 500 individuals each
if not said, and prints log losses and calibration errors: of the model that takes readings for independent,
with the discount, and with a twentieth of the statuses known.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

import binreps as br
from binreps.decide.evaluate import calibration_error

PEOPLE = 500


class Design(NamedTuple):
    """Readers of each individual, of how many; and how much individuals differ in difficulty."""

    each: int
    of: int
    difficulty: float = 0.0


DESIGNS = {
    "independent, 5 of 5": Design(5, 5),
    "independent, 3 of 20": Design(3, 20),
    "independent, 10 of 40": Design(10, 40),
    "difficult (σ 1), 10 of 40": Design(10, 40, 1.0),
    "difficult (σ 1.5), 10 of 40": Design(10, 40, 1.5),
    "difficult (σ 2.5), 10 of 40": Design(10, 40, 2.5),
    "difficult (σ 1.5), 5 of 5": Design(5, 5, 1.5),
}


def study(design: Design, seed: int, people: int = PEOPLE) -> tuple[br.Readings, np.ndarray]:
    """Readings and truth: logit P(error) = a_j + σ b_i, the same for both classes but for the source."""
    rng = np.random.default_rng(seed)
    truth = rng.random(people) < rng.uniform(0.2, 0.8)
    wrong = rng.normal(-1.6, 0.6, (2, design.of))
    hard = design.difficulty * rng.standard_normal(people)
    by = np.concatenate([rng.permutation(design.of)[: design.each] for _ in range(people)])
    of = np.repeat(np.arange(people), design.each)
    error = rng.random(of.size) < expit(wrong[truth[of].astype(int), by] + hard[of])
    return br.Readings(of, by, (truth[of] ^ error).astype(int)), truth


def judged(score: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Log loss and calibration error."""
    inside = np.clip(score, 1e-9, 1 - 1e-9)
    loss = -np.mean(np.log(np.where(truth, inside, 1 - inside)))
    return np.array([loss, calibration_error(score, truth.astype(int))])


def trial(design: Design, seed: int, people: int = PEOPLE) -> dict[str, np.ndarray]:
    """One study, by every method; a twentieth of the statuses known, who are not judged."""
    readings, truth = study(design, seed, people)
    gold = np.random.default_rng([seed, 1]).random(truth.size) < 0.05
    known = readings._with(known=np.where(gold, truth, -1).astype(np.int8))
    n, s = readings.sizes
    how: dict[str, Any] = {"rng": seed, "tol": 0.1}
    scores = {
        "vote share": (s + 0.5) / (n + 1),
        "independent": br.fit_sources(readings, independent=True, **how).score(readings),
        "discount": br.fit_sources(readings, **how).score(readings),
        "gold": br.fit_sources(known, **how).score(readings),
    }
    return {name: judged(score[~gold], truth[~gold]) for name, score in scores.items()}


def asked() -> tuple[int, int]:
    """How many studies, of how many individuals: what the command was given."""
    given = [int(word) for word in sys.argv[1:3]]
    return (*given, *(10, PEOPLE)[len(given) :])


def main() -> None:
    """Print the means over studies."""
    studies, people = asked()
    print(f"{studies} studies of {people} individuals each: log loss / calibration error")
    for name, design in DESIGNS.items():
        found = [trial(design, seed, people) for seed in range(studies)]
        means = {method: np.mean([one[method] for one in found], axis=0) for method in found[0]}
        cells = ", ".join(f"{method} {loss:.3f} / {error:.3f}" for method, (loss, error) in means.items())
        print(f"{name}: {cells}", flush=True)


if __name__ == "__main__":
    main()
