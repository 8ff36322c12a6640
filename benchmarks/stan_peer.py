"""Stan, through PyStan: the same posterior sampled by NUTS, written to be fast."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import binreps as br

CODE = """
data {
  int<lower=1> cells;
  vector[cells] n;
  vector[cells] s;
  vector[cells] weight;
}
parameters {
  real<lower=0, upper=1> theta;
  real<lower=0, upper=0.5> p;
  real<lower=0, upper=0.5> q;
}
model {
  theta ~ beta(0.5, 0.5);
  p ~ beta(2, 2);
  q ~ beta(2, 2);
  for (i in 1:cells)
    target += weight[i] * log_sum_exp(
      log(theta) + s[i] * log1m(q) + (n[i] - s[i]) * log(q),
      log1m(theta) + s[i] * log(p) + (n[i] - s[i]) * log1m(p));
}
"""


@contextlib.contextmanager
def compiled() -> Iterator[tuple[Any, float]]:
    """PyStan with the model compiled into a cache that is removed, and the seconds it took."""
    with tempfile.TemporaryDirectory() as folder, _cache_in(folder):
        import stan

        start = time.perf_counter()
        _build(stan, br.CountTable([3, 3], [0, 3]), 1, individually=False)
        yield stan, time.perf_counter() - start


def sample(stan: Any, counts: br.CountTable, seed: int, *, individually: bool) -> np.ndarray:
    """Draws of θ, p, q: 4 chains × 1,000 after as many of tuning. Shape (3, draws)."""
    posterior = _build(stan, counts, seed, individually=individually)
    with _quiet():
        found = posterior.sample(num_chains=4, num_samples=1000, num_warmup=1000)
    return np.stack([found[name].ravel() for name in ("theta", "p", "q")])


def _build(stan: Any, counts: br.CountTable, seed: int, *, individually: bool) -> Any:
    """The model with its data; compiled by the first call only."""
    n, s, weight = counts.n, counts.s, counts.weight
    if individually:
        n, s, weight = np.repeat(n, weight), np.repeat(s, weight), np.ones(counts.individuals)
    data = {"cells": len(n), "n": n.tolist(), "s": s.tolist(), "weight": weight.tolist()}
    with _quiet():
        return stan.build(CODE, data=data, random_seed=seed)


@contextlib.contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Let PyStan keep its files there."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = folder
    try:
        yield
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without PyStan's progress and advice."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
