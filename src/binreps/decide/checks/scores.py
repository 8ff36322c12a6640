"""Tests of the model's assumptions that know that the rates were estimated.

Widen the model by one parameter (a correlation of replicates, a prevalence that changes with n). The
derivative of the log likelihood in it, freed from its regression on the derivatives in the rates, is a sum
over individuals whose mean, 0, and variance are exact under the model; to first order it does not depend on
how the rates were estimated (Rao's score test). Where nothing is left after the regression, no data of this
form can show the effect.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from binreps.decide.checks.subject import Part
from binreps.model import ALIKE, Float

_NOTHING_LEFT = 1e-7  # of the variance: then the regression has explained everything


class ScoreTest(NamedTuple):
    """The outcome: z and its two tails, or `possible` false if the data could not show the effect."""

    possible: bool
    z: float = 0.0
    above: float = 1.0
    below: float = 1.0


class Rows(NamedTuple):
    """Every possible result of every population: chances, derivatives, expected and observed numbers."""

    expected: Float
    observed: Float
    rates: Float  # (points, parameters)
    correlation: Float
    replication: Float


def rows_of(parts: list[Part]) -> Rows | None:
    """The derivatives at the estimates; none where an estimate is at the edge of what is possible."""
    found = []
    for i, part in enumerate(parts):
        theta, p, q = part.estimate
        if not (0 < theta < 1 and 0 < p < 1 and 0 < q < 1):
            return None
        found.append(_rows(part, i, len(parts)))
    return Rows(*(np.concatenate(columns) for columns in zip(*found, strict=True))) if found else None


def _rows(part: Part, index: int, populations: int) -> Rows:
    """The derivatives for one population, whose prevalence is one of several."""
    possible, (theta, p, q) = part.possible, part.estimate
    n, s, group = possible.points_n, possible.s, possible.group
    known = possible.known[group]
    negative, positive = possible.log_classes(ALIKE, p, q)
    mixture = np.logaddexp(np.log1p(-theta) + negative, np.log(theta) + positive)
    unknown = known == -1
    y = np.where(unknown, np.exp(np.log(theta) + positive - mixture), known)
    chance = np.exp(np.select([unknown, known == 1], [mixture, positive], negative))
    rates = np.zeros((n.size, populations + 2))
    rates[:, index] = np.where(unknown, y / theta - (1 - y) / (1 - theta), 0.0)
    rates[:, -2], rates[:, -1], correlation = error_derivatives(n, s, y, p, q)
    free = possible.size * possible.unknown
    middle = float(free @ possible.n / free.sum()) if free.any() else 0.0
    return Rows(
        possible.size[group] * chance,
        possible.observed,
        rates,
        correlation,
        np.where(unknown, (y - theta) * (n - middle), 0.0),
    )


def error_derivatives(n: Any, s: Any, y: Any, p: float, q: float) -> tuple[Float, Float, Float]:
    """Of the log chance of results by p, by q and by the correlation of replicates; y is P(T = 1 | s)."""
    misses = n - s
    of_p, of_q = (1 - y) * (s - n * p) / (p * (1 - p)), y * (misses - n * q) / (q * (1 - q))
    pairs_s, pairs_misses, pairs = s * (s - 1) / 2, misses * (misses - 1) / 2, n * (n - 1) / 2
    if_negative = pairs_s / p + pairs_misses / (1 - p) - pairs
    if_positive = pairs_s / (1 - q) + pairs_misses / q - pairs
    return of_p, of_q, (1 - y) * if_negative + y * if_positive


def score_test(rows: Rows, direction: Float) -> ScoreTest:
    """The test of one direction."""
    root = np.sqrt(rows.expected)
    scale = np.sqrt(np.sum((rows.rates * root[:, None]) ** 2, axis=0))
    columns = rows.rates / np.where(scale > 0, scale, 1.0)
    whole = float(np.sum(rows.expected * direction**2))
    coefficients = np.linalg.lstsq(columns * root[:, None], direction * root, rcond=1e-11)[0]
    rest = direction - columns @ coefficients
    variance = float(np.sum(rows.expected * rest**2))
    if variance <= _NOTHING_LEFT * whole or whole == 0:
        return ScoreTest(False)
    z = float(rows.observed @ rest) / np.sqrt(variance)
    skewness = float(np.sum(rows.expected * rest**3)) / variance**1.5
    return ScoreTest(True, z, _above(z, skewness), _above(-z, -skewness))


def _above(z: float, skewness: float) -> float:
    """P(Z ≥ z) for a standardised sum of the given skewness, taken for a gamma variable."""
    if abs(skewness) < 1e-4:
        return float(ndtr(-z))
    shape = 4 / skewness**2
    place = max(shape + np.sign(skewness) * z * np.sqrt(shape), 0.0)
    return float(gammaincc(shape, place) if skewness > 0 else gammainc(shape, place))
