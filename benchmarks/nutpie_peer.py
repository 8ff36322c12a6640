"""The peer: the same posterior sampled by nutpie's NUTS on a PyMC model, written to be fast."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version on import
    import nutpie
    import pymc as pm
    import pytensor.tensor as pt

if TYPE_CHECKING:
    import binreps as br  # not at run time: the peer's start-up is measured too


CHAINS, DRAWS = 4, 1000


def columns(counts: br.CountTable, *, individually: bool = False) -> dict[str, np.ndarray]:
    """The data of the model: one entry per cell with its weight, or one per individual."""
    n, s, weight = counts.n, counts.s, counts.weight
    if individually:
        n, s, weight = np.repeat(n, weight), np.repeat(s, weight), np.ones(counts.individuals)
    return {"n": n.astype(float), "s": s.astype(float), "weight": weight.astype(float)}


def model(data: dict[str, np.ndarray]) -> pm.Model:
    """θ ~ Beta(½, ½), p and q ~ Beta(2, 2) on (0, ½); the status of each individual is summed out.

    Uniform priors with the rest as a potential: a truncated Beta has no usable gradient in PyMC.
    """
    with pm.Model() as built:
        n, s, weight = (pm.Data(name, values) for name, values in data.items())
        theta = pm.Beta("theta", 0.5, 0.5)
        p, q = pm.Uniform("p", 0, 0.5), pm.Uniform("q", 0, 0.5)
        pm.Potential("prior", pt.log(p) + pt.log1p(-p) + pt.log(q) + pt.log1p(-q))
        positive = pt.log(theta) + s * pt.log1p(-q) + (n - s) * pt.log(q)
        negative = pt.log1p(-theta) + s * pt.log(p) + (n - s) * pt.log1p(-p)
        pm.Potential("likelihood", (weight * pt.logaddexp(positive, negative)).sum())
    return built


def compiled(data: dict[str, np.ndarray]) -> Any:
    """The model compiled by Numba; `.with_data` serves other tables without compiling again."""
    return nutpie.compile_pymc_model(model(data))


def sample(ready: Any, seed: int, draws: int = DRAWS) -> np.ndarray:
    """Draws of θ, p, q after 1,000 of tuning: 4 chains × 1,000, on all cores. Shape (3, draws)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = nutpie.sample(
            ready,
            draws=draws,
            tune=DRAWS,
            chains=CHAINS,
            seed=seed,
            progress_bar=False,
            store_unconstrained=False,
        )
    return np.stack([trace.posterior[name].to_numpy().ravel() for name in ("theta", "p", "q")])


def summary(draws: np.ndarray, probabilities: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Means and quantiles of the three rates."""
    return draws.mean(axis=1), np.quantile(draws, probabilities, axis=1).T
