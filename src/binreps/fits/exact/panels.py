"""The distribution of one number as the exact engine has it: a rate, or the log odds of a record.

`Panels` are series on intervals; `Crossings` in `lines.py` are lines along which the number varies.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, logit

from binreps.fits.gauss import Interval, Series, invert
from binreps.fits.marginal import Marginal
from binreps.fits.posterior import weighted_quantiles
from binreps.model import Float


class Scale:
    """How a number follows from its coordinate: itself, or as a share of its `end` with that logit."""

    def __init__(self, end: float | None = None) -> None:
        self._end = end

    def value(self, w: Any) -> Any:
        """The number at a coordinate."""
        return w if self._end is None else self._end * expit(w)

    def coordinate(self, x: Any) -> Any:
        """The coordinate of a number."""
        if self._end is None:
            return x
        with np.errstate(divide="ignore"):
            return np.clip(logit(x / self._end), -1400, 1400)

    def slope(self, w: Any) -> Any:
        """d number / d w."""
        return 1.0 if self._end is None else self._end * np.exp(log_expit(w) + log_expit(-w))

    @property
    def ends(self) -> Float:
        """Where the number may lie."""
        return np.array([-np.inf, np.inf] if self._end is None else [0.0, self._end])


class Scaled(Marginal):
    """The density of a number from that of its coordinate, w.

    Attributes
    ----------
    scale : Scale
    tol : float
        To which quantiles are found, in coordinates.
    low, high : float
        Between which coordinates all mass lies.
    """

    scale: Scale
    tol: float
    low, high = -np.inf, np.inf

    @abstractmethod
    def _law(self, w: Float) -> tuple[Float, Float]:
        """Probability below coordinates, a list, and the density there."""

    @abstractmethod
    def _points(self) -> tuple[Float, Float]:
        """Coordinates and masses that tell roughly where the number is."""

    def _roughly(self, probability: Float) -> Float:
        """Quantiles of the coordinate that need not be exact."""
        return weighted_quantiles(*self._points(), probability)

    def _about(self, probability: Float) -> Float:
        return np.asarray(self.scale.value(self._roughly(probability)))

    def _at(self, x: Any) -> Float:
        w = self.scale.coordinate(np.asarray(x, dtype=float))
        return np.asarray(np.clip(w, self.low, self.high))

    def _height(self, x: Any) -> Any:
        w = self._at(x)
        height = self._law(w.ravel())[1].reshape(w.shape)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 at an end
            return np.where(height > 0, height / self.scale.slope(w), 0.0)[()]

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""
        w = self._at(x)
        return self._law(w.ravel())[0].reshape(w.shape)[()]

    def quantile(self, probability: Any) -> Any:
        """The value below which the number lies with the given probability."""
        wanted = np.asarray(probability, dtype=float)
        flat = wanted.ravel()
        found = invert(self._law, flat, self._roughly(flat), self.low, self.high, tol=self.tol)
        return self.scale.value(found.reshape(wanted.shape))[()]


class Panels(Scaled):
    """Series on intervals, which may overlap, of a number or, with a scale, of its coordinate.

    Parameters
    ----------
    panels : list of Interval and masses
        The ends of an interval may be arrays, with as many rows of masses.
    error : float
    scale : Scale, optional
    """

    def __init__(
        self, panels: list[tuple[Interval, Float]], error: float = 0.0, scale: Scale | None = None
    ) -> None:
        total = sum(float(masses.sum()) for _, masses in panels)
        self.error, self.scale = error, scale or Scale()
        self._series = [Series(interval, np.atleast_2d(masses) / total) for interval, masses in panels]
        lower = min(panels, key=lambda pair: float(np.min(pair[0].lower)))[0]
        upper = max(panels, key=lambda pair: float(np.max(pair[0].upper)))[0]
        self.low, self.high = float(np.min(lower.lower)), float(np.max(upper.upper))
        self.tol = 1e-13 * (self.high - self.low)
        self.ends = scale.ends if scale else np.array([self.low, self.high])
        self.poles = (*((self.low,) if lower.a < 0 else ()), *((self.high,) if upper.b < 0 else ()))

    def _law(self, w: Float) -> tuple[Float, Float]:
        below, height, at = np.zeros(w.shape), np.zeros(w.shape), w[..., None]
        for one in self._series:
            inside = one.interval
            here = (at >= inside.lower) & ((at < inside.upper) | (at == self.high) & (at == inside.upper))
            below += one.cumulative(at).sum(axis=-1)
            with np.errstate(invalid="ignore"):  # ∞ · 0 at a pole with too little mass beside it to be seen
                height += np.where(here, np.nan_to_num(one.density(at), posinf=np.inf), 0.0).sum(axis=-1)
        return np.clip(below, 0.0, 1.0), height

    def _points(self) -> tuple[Float, Float]:
        masses = [one.masses for one in self._series]
        nodes = [one.interval.nodes(one.masses.shape[-1]) for one in self._series]
        values = [np.broadcast_to(x, mass.shape).ravel() for x, mass in zip(nodes, masses, strict=True)]
        return np.concatenate(values), np.concatenate([mass.ravel() for mass in masses])
