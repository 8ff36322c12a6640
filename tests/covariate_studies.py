"""Studies with covariates: drawn from the model, and those of the reference numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from scipy.special import expit, logit

from binreps import CovariateTable, Prior
from binreps.priors import draws
from shared_data import shared_file


def golden(name: str) -> tuple[dict[str, Any], CovariateTable, np.ndarray]:
    """A case of the reference numbers, its data by the recipe there, and the order of individuals."""
    case = json.loads(shared_file("golden-models.json").read_text(encoding="utf-8"))["covariates"]["cases"][
        name
    ]
    rng = np.random.default_rng(case["seed"])
    size, columns = case["N"], case["d"]
    x = rng.standard_normal((size, columns))
    for j in range(2, columns, 3):
        x[:, j] = rng.random(size) < 0.4
    x = (x - x.mean(0)) / x.std(0)
    truth = rng.random(size) < expit(logit(case["theta0"]) + x @ np.array(case["slopes"]))
    n = rng.choice(case["nset"], size)
    s = rng.binomial(n, np.where(truth, 1 - case["q_true"], case["p_true"]))
    assert (n.sum(), s.sum()) == (case["check_sum_n"], case["check_sum_s"])
    table = CovariateTable(n, s, {f"x{j}": x[:, j] for j in range(columns)})
    return case, table, np.column_stack([n, s, x])


def drawn_study(
    rng: np.random.Generator, size: int, columns: int, most: int, prior: Prior | None = None
) -> tuple[CovariateTable, dict[str, float]]:
    """A study from the prior: covariates, parameters, results; and the parameters."""
    theta, p, q = (float(rate[0]) for rate in draws(prior or Prior(), 1, rng))
    slopes = 1.5 * rng.standard_normal(columns)
    x = rng.standard_normal((size, columns))
    for j in range(2, columns, 3):
        x[:, j] = rng.random(size) < 0.4
    spread = x.std(0)
    standard = (x - x.mean(0)) / np.where(spread > 0, spread, 1.0)
    truth = rng.random(size) < expit(logit(theta) + standard @ slopes)
    n = rng.integers(1, most + 1, size)
    s = rng.binomial(n, np.where(truth, 1 - q, p))
    per_unit = slopes / np.where(spread > 0, spread, 1.0)
    true = {"false_positive": p, "false_negative": q, **{f"x{j}": b for j, b in enumerate(per_unit.tolist())}}
    true["prevalence"] = float(np.mean(expit(logit(theta) + standard @ slopes)))
    return CovariateTable(n, s, {f"x{j}": x[:, j] for j in range(columns)}), true


def screening(size: int = 300, seed: int = 3) -> tuple[dict[str, Any], np.ndarray]:
    """A screening programme: n, s, age and site of everyone, and the truth."""
    rng = np.random.default_rng(seed)
    age = rng.integers(25, 80, size)
    site = rng.choice(["north", "south", "west"], size, p=[0.5, 0.3, 0.2])
    truth = rng.random(size) < expit((age - 60) / 8 + (site == "south"))
    n = rng.integers(1, 4, size)
    s = rng.binomial(n, np.where(truth, 0.85, 0.08))
    return {"n": n, "s": s, "age": age, "site": site}, truth
