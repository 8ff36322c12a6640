"""Posteriors that judge everyone, from three methods that share nothing with the engine measured."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy.optimize import brentq
from scipy.special import expit, logit

import binreps as br
from benchmarks.tables import golden_cases

PROBABILITIES = (0.05, 0.5, 0.95)
RATES = ("prevalence", "false_positive", "false_negative")
END = (1.0, 0.5, 0.5)  # of their domains


@dataclass(frozen=True)
class Reference:
    """Means, sds and quantiles of the three rates, and how far they can be trusted (in sds)."""

    means: np.ndarray
    sds: np.ndarray
    quantiles: np.ndarray  # (rates, probabilities)
    precision: float

    def error(self, means: Any, quantiles: Any) -> float:
        """The largest error of means and quantiles in sds, never better than the reference itself."""
        of_means = np.abs(np.asarray(means) - self.means) / self.sds
        of_quantiles = np.abs(np.asarray(quantiles) - self.quantiles) / self.sds[:, None]
        return max(float(of_means.max()), float(of_quantiles.max()), self.precision)


def golden(name: str) -> Reference:
    """A case of the shared golden file, which two other methods agreed on."""
    case = golden_cases()[name]
    means, sds = (np.array([case[kind][x] for x in ("theta", "p", "q")]) for kind in ("mean", "sd"))
    quantiles = [[case["quantiles"][x][str(p)] for p in PROBABILITIES] for x in ("theta", "p", "q")]
    agreement = case["max_disagreement"]
    precision = max(agreement["mean_over_sd"], agreement["quantiles_over_sd"])
    return Reference(means, sds, np.array(quantiles), precision)


def closed_form(counts: br.CountTable) -> Reference:
    """The finite mixture that the posterior is, summed term by term: the oracle of the tests."""
    tests = str(Path(__file__).parents[1] / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    from oracles import ExactPosterior

    exact = ExactPosterior(counts)
    quantiles = [[exact.quantile(name, p) for p in PROBABILITIES] for name in RATES]
    return Reference(exact.means, exact.sds, np.array(quantiles), precision=1e-12)


def product_rule(counts: br.CountTable) -> Reference:
    """Gauss–Legendre in whitened logits around the mode, in extended precision; for many individuals.

    Two rules that differ in their nodes and in their reach say how far they can be trusted.
    """
    coarse, fine = _product_rule(counts, 64, 8.0), _product_rule(counts, 84, 9.5)
    return Reference(fine.means, fine.sds, fine.quantiles, fine.error(coarse.means, coarse.quantiles))


def _product_rule(counts: br.CountTable, size: int, width: float) -> Reference:
    """One rule on ± `width` sds: `size` nodes along the marginal, about half as many across."""
    mode, covariance = _laplace(counts)
    (x, weights), (y, inner) = legendre.leggauss(size), legendre.leggauss(size // 2 + 4)
    columns = []
    for rate in range(3):  # each in turn comes first, so that its marginal lies along an axis
        order = [rate, *(i for i in range(3) if i != rate)]
        root = np.linalg.cholesky(covariance[np.ix_(order, order)])
        z = np.empty((3, size * y.size**2))
        z[order] = width * root @ np.stack(np.meshgrid(x, y, y, indexing="ij")).reshape(3, -1)
        height = _log_posterior(counts, mode[:, None] + z) - _log_posterior(counts, mode[:, None])
        line = np.exp(height.astype(float)).reshape(size, -1) @ np.kron(inner, inner)
        columns.append(_column(line * weights, x, mode[rate], width * root[0, 0], END[rate]))
    means, sds, quantiles = zip(*columns, strict=True)
    return Reference(np.array(means), np.array(sds), np.array(quantiles), precision=1e-13)


def _column(
    mass: np.ndarray, x: np.ndarray, middle: float, half: float, end: float
) -> tuple[float, float, list[float]]:
    """Mean, sd and quantiles of a rate below `end`, from masses at the nodes x of its logit's axis."""
    mass = mass / mass.sum()
    centre = end * expit(middle)
    values = end * expit(middle + half * x) - centre
    mean = float(mass @ values)
    sd = float(np.sqrt(mass @ (values - mean) ** 2))
    terms = (np.arange(x.size) + 0.5) * (legendre.legvander(x, x.size - 1).T @ mass)
    below = legendre.legint(terms, lbnd=-1)
    at = [brentq(lambda u, p=p: legendre.legval(u, below) - p, -1, 1, xtol=1e-15) for p in PROBABILITIES]
    return float(centre + mean), sd, [float(end * expit(middle + half * u)) for u in at]


def _laplace(counts: br.CountTable) -> tuple[np.ndarray, np.ndarray]:
    """Mode and covariance in logits, by Newton's method with differences, from rates near the data's."""
    z = np.array([logit(0.3), logit(0.2), logit(0.3)])
    for _ in range(30):
        gradient, curvature = _derivatives(counts, z)
        step = np.linalg.solve(curvature, gradient)
        z = z + step / max(1.0, np.abs(step).max())
    return z, np.linalg.inv(curvature)


def _derivatives(counts: br.CountTable, z: np.ndarray, h: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and −Hessian of the log posterior by central differences."""
    unit = h * np.eye(3)
    shifts = [a * unit[i] + b * unit[j] for i in range(3) for j in range(3) for a in (1, -1) for b in (1, -1)]
    values = _log_posterior(counts, (z + np.array(shifts)).T).reshape(3, 3, 2, 2)
    mixed = values[..., 0, 0] - values[..., 0, 1] - values[..., 1, 0] + values[..., 1, 1]
    ends = _log_posterior(counts, (z + np.concatenate([unit, -unit])).T).reshape(2, 3)
    return ((ends[0] - ends[1]) / (2 * h)).astype(float), (-mixed / (4 * h * h)).astype(float)


def _log_posterior(counts: br.CountTable, z: np.ndarray) -> np.ndarray:
    """Log density of (logit θ, logit 2p, logit 2q) under the default prior, up to a constant."""
    unit = 1 / (1 + np.exp(-z.astype(np.longdouble)))
    theta, p, q = unit[0], unit[1] / 2, unit[2] / 2
    total = np.log(theta * (1 - theta)) / 2  # Beta(½, ½) and the change to logits
    for rate in (p, q):  # Beta(2, 2), likewise
        total = total + np.log(rate * rate * (1 - rate) * (1 - 2 * rate))
    hit_p, miss_p, hit_q, miss_q = (_powers(rate, counts.n.max()) for rate in (p, 1 - p, 1 - q, q))
    for n, s, weight in zip(counts.n.tolist(), counts.s.tolist(), counts.weight.tolist(), strict=True):
        positive, negative = hit_q[s] * miss_q[n - s], hit_p[s] * miss_p[n - s]
        total = total + weight * np.log(theta * positive + (1 - theta) * negative)
    return total


def _powers(x: np.ndarray, most: int) -> list[np.ndarray]:
    """1, x, x² and so on."""
    powers = [np.ones_like(x)]
    for _ in range(most):
        powers.append(powers[-1] * x)
    return powers
