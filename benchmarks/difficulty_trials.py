"""Whether a difficulty of each item, as a model, gives better scores than the discount.

`python -m benchmarks.difficulty_trials [studies [individuals]]` simulates the studies of
`benchmarks.calibration_trials` and prints log losses of the model that takes readings for independent, with
the discount, and with a difficulty of each item (`benchmarks.difficulty`); the largest R̂ of its chains in
any of the studies, in how many it exceeds 1.05 after 4,000 sweeps, the median number of sweeps, and the least
processor time for each reading, sweep and chain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import binreps as br
from benchmarks.calibration_trials import DESIGNS, Design, asked, judged, study
from benchmarks.difficulty import AGREE, Sampled, sampled

ASKED = [name for name in DESIGNS if "3 of 20" not in name]


class Tried(NamedTuple):
    """Log losses by method, and what the chains of the model with difficulty say of themselves."""

    losses: dict[str, float]
    chains: Sampled


def tried(design: Design, seed: int, people: int) -> Tried:
    """One study by every method."""
    readings, truth = study(design, seed, people)
    how: dict[str, Any] = {"rng": seed, "tol": 0.1}
    chains = sampled(readings, seed)
    scores = {
        "independent": br.fit_sources(readings, independent=True, **how).score(readings),
        "discount": br.fit_sources(readings, **how).score(readings),
        "difficulty": chains.score,
    }
    return Tried({name: float(judged(score, truth)[0]) for name, score in scores.items()}, chains)


def words(found: list[Tried]) -> str:
    """Mean log losses, the gain on the discount with its standard error, and the chains."""
    losses = {name: np.array([one.losses[name] for one in found]) for name in found[0].losses}
    gain = losses["discount"] - losses["difficulty"]
    cells = ", ".join(f"{name} {loss.mean():.3f}" for name, loss in losses.items())
    error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else float("nan")
    rhats = np.array([one.chains.rhat for one in found])
    sigma = np.mean([one.chains.draws[1].mean() for one in found])
    chains = f"R̂ up to {rhats.max():.2f}, above {AGREE} in {(rhats > AGREE).sum()} of {rhats.size}"
    sweeps = np.median([1.5 * one.chains.draws.shape[2] for one in found])
    cost = min(one.chains.nanoseconds for one in found)
    told = f"gain {gain.mean():+.3f} ± {error:.3f}; mean σ {sigma:.2f}"
    return f"{cells}; {told}; {chains}; {sweeps:.0f} sweeps; {cost:.0f} ns"


def main() -> None:
    """Print the means over studies."""
    studies, people = asked()
    print(f"{studies} studies of {people} individuals each: log loss")
    for name in ASKED:
        print(f"{name}: {words([tried(DESIGNS[name], seed, people) for seed in range(studies)])}", flush=True)


if __name__ == "__main__":
    main()
