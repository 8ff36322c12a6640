"""Cells of two logits: peaks, layers and the triangle are resolved, beside integrals in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from binreps.fits.exact.cells import Cells, LogDensity, lines, resolve

FAR = 60.0
SQUARE = Cells(np.full((2, 1), -FAR), np.full((2, 1), FAR), np.zeros(1, bool))
TRIANGLE = Cells(np.full((2, 1), -FAR), np.full((2, 1), 2 * FAR), np.ones(1, bool))


def integral(function: LogDensity, root: Cells) -> tuple[float, int, Cells]:
    """By the cells that resolve a function, their number, and they themselves."""
    cells = resolve(function, resolve(function, root, 6, 0.03, 4000), 12, 1e-6, 4000)
    (first, second), area = cells.points(12)
    mass = np.exp(function(first.ravel(), second.ravel()).reshape(area.shape) + area)
    return float(mass.sum()), cells.triangle.size, cells


@pytest.mark.parametrize("width", [1e-1, 1e-4, 1e-7])
@pytest.mark.parametrize("root", [SQUARE, TRIANGLE], ids=["square", "triangle"])
def test_a_peak_costs_the_halvings_that_lead_there(width: float, root: Cells) -> None:
    found, number, _ = integral(lambda x, y: -((x + 2.3) ** 2 + (y + 1.1) ** 2) / (2 * width**2), root)
    assert found == pytest.approx(2 * np.pi * width**2, rel=1e-9)
    assert number < 100


def test_a_layer_along_an_axis_costs_as_little() -> None:
    """A normal of width 10⁻⁶ in y₁ times e^(y₂)."""
    found, number, _ = integral(lambda x, y: -((x + 1) ** 2) / 2e-12 + y, SQUARE)
    assert found == pytest.approx(np.sqrt(2 * np.pi) * 1e-6, rel=1e-9)
    assert number < 400


def test_the_triangle_ends_where_the_logits_add_up_to_nothing() -> None:
    """∫∫ e^(x + y) over x + y < 0 and both above −60 is 120 − 1."""
    found, _, cells = integral(lambda x, y: x + y, TRIANGLE)
    assert found == pytest.approx(2 * FAR - 1, rel=1e-9)
    (first, second), _ = cells.points(12)
    assert np.all(first + second <= 1e-12)


def test_the_density_of_either_logit_is_that_of_the_other_by_symmetry() -> None:
    """Triangles are cut with one logit first; the other's density comes from the polynomial on them."""
    _, _, cells = integral(lambda x, y: -((x + 0.2) ** 2) - (y + 0.2) ** 2, TRIANGLE)
    (first, second), area = cells.points(12)
    mass = np.exp(-((first + 0.2) ** 2) - (second + 0.2) ** 2 + area)
    assert cells.triangle.any()
    means = []
    for axis in (0, 1):
        inside, sums = lines(cells, mass, axis)
        means.append(float(np.sum(sums * inside.nodes(12)) / sums.sum()))
    assert_allclose(means[0], means[1], rtol=1e-8)
    assert_allclose(means[0], np.sum(mass * first) / mass.sum(), rtol=1e-8)


@pytest.mark.parametrize("at", [-0.344, -3.4, -0.127 - 0.254])
def test_a_layer_between_the_outermost_points_of_a_cell_is_seen(at: float) -> None:
    """Of a cell of 3.75 logits two points may be alike on either side of it; a peak elsewhere is higher."""

    def layer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        thin = -((x - at) ** 2) / (2 * 0.0106**2) - (y + 1.8) ** 2
        peak = 3 - ((x - at) ** 2 + (y + 30) ** 2) / (2 * 0.01**2)
        return np.logaddexp(thin, peak)

    inside = (1 + math.erf(1.8)) / 2
    wanted = 0.0106 * np.sqrt(2) * np.pi * inside + np.exp(3) * 2 * np.pi * 0.01**2
    square = Cells(np.full((2, 1), -120.0), np.full((2, 1), 120.0), np.zeros(1, bool))
    assert integral(layer, square)[0] == pytest.approx(wanted, rel=1e-6)
