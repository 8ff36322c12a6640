"""Quasi-random points with weights: importance sampling, made precise by what is known of a normal law.

The points come from a mixture: the normal law of every mode, a Student law with the same shape, and the
prior. Let ρ be the density of the first normal law over that of the mixture. The means of ρ, ρz, ρzz′, ρR
and ρzR, where R is the cubic term of the log density, are known, and weights are calibrated so that the
points give exactly these. Eight independent scrambles, each left out in turn with the calibration done
again, tell the error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtri

from binreps.fits.points.modes import Mode, third_derivatives
from binreps.fits.points.sobol import Scrambled
from binreps.fits.points.target import Target
from binreps.model import Float

SCRAMBLES = 8
_BOUND = 2.3646242515927844  # the 97.5 % point of Student's law with seven degrees of freedom

_FREEDOM = 5.0  # of the Student law
_LEAST_PAIRS = 64  # of the first law in a scramble: the rarest has one
_CROSSED = 60  # dimensions up to which products of different coordinates are controls
SEED = 20_260_101  # any; fixed, so that the same data give the same bits


def bound(left_out: Float) -> Float:
    """The 95 % bound on the error of a mean over scrambles, from the values without each of them."""
    spread = np.sum((left_out - left_out.mean(axis=0)) ** 2, axis=0)
    return np.asarray(_BOUND * np.sqrt((SCRAMBLES - 1) / SCRAMBLES * spread))


class Component(NamedTuple):
    """A law of the mixture: its centre, a root of its covariance, whether it is Student's.

    It gets one point in 2^`rarity` of those of the most frequent law: a power of two, as Sobol' points need.
    """

    at: Float
    root: Float
    student: bool
    rarity: int


class Mixture:
    """The law that points are drawn from."""

    def __init__(self, components: list[Component]) -> None:
        self.components = components
        self._inverse = [np.linalg.inv(each.root) for each in components]
        self._log_size = [-float(np.linalg.slogdet(each.root)[1]) for each in components]
        parts = 0.5 ** np.array([each.rarity for each in components])
        self._log_shares = np.log(parts / parts.sum())

    @classmethod
    def around(cls, modes: list[Mode], *, everywhere: bool) -> Mixture:
        """Normal and Student laws at every mode, by their masses, and the prior's if asked for."""
        parts = []
        for mode in modes:
            rare = min(int(np.rint((modes[0].log_mass - mode.log_mass) / np.log(2))), 3)
            parts += [Component(mode.at, mode.root, student, rare + 2 * student) for student in (False, True)]
        size = modes[0].at.size
        prior = Component(np.zeros(size), np.eye(size), False, 3)
        return cls([*parts, prior] if everywhere else parts)

    @classmethod
    def fitted(cls, laws: list[Mode], *, everywhere: bool) -> Mixture:
        """The law of all points, normal and Student's, and several that follow them, by their masses."""
        first, *rest = laws
        top = max((law.log_mass for law in rest), default=0.0)
        parts = [
            Component(first.at, first.root, False, 1 if rest else 0),
            Component(first.at, first.root, True, 2),
        ]
        for law in rest:
            rare = int(np.rint((top - law.log_mass) / np.log(2)))
            parts.append(Component(law.at, law.root, False, min(rare, 4)))
        prior = Component(np.zeros(first.at.size), np.eye(first.at.size), False, 3)
        return cls([*parts, prior] if everywhere else parts)

    @staticmethod
    def points(law: Component, uniform: Float) -> Float:
        """Points of one law in pairs, mirrored at its centre, from uniform numbers (dimension + 1)."""
        away = ndtri(uniform[1:])
        if law.student:
            away *= np.sqrt(_FREEDOM / (2 * gammaincinv(_FREEDOM / 2, uniform[0])))
        away = law.root @ away
        return np.concatenate([law.at[:, None] + away, law.at[:, None] - away], axis=1)

    def drawn(self, size: int, rng: np.random.Generator) -> Float:
        """Independent points of the mixture."""
        which = rng.choice(len(self.components), size, p=np.exp(self._log_shares))
        uniform = rng.random((self.components[0].at.size + 1, size))
        found = np.empty((len(uniform) - 1, size))
        for k, law in enumerate(self.components):
            own = which == k
            found[:, own] = self.points(law, uniform[:, own])[:, : int(own.sum())]
        return found

    def standardised(self, v: Float) -> Float:
        """Points as the first law sees them."""
        return np.asarray(self._inverse[0] @ (v - self.components[0].at[:, None]))

    def log_density(self, v: Float) -> tuple[Float, Float]:
        """The log density of the mixture at points, and that of its first law."""
        parts = []
        for each, inverse, size in zip(self.components, self._inverse, self._log_size, strict=True):
            square = np.sum((inverse @ (v - each.at[:, None])) ** 2, axis=0)
            parts.append(size + (_student if each.student else _normal)(square, len(v)))
        return np.logaddexp.reduce(np.array(parts) + self._log_shares[:, None], axis=0), parts[0]


def _normal(square: Float, size: int) -> Float:
    """The log density of a standard normal law at a squared distance."""
    return np.asarray(-square / 2 - size * np.log(2 * np.pi) / 2)


def _student(square: Float, size: int) -> Float:
    """The same of Student's law."""
    half = (_FREEDOM + size) / 2
    constant = gammaln(half) - gammaln(_FREEDOM / 2) - size * np.log(np.pi * _FREEDOM) / 2
    return np.asarray(constant - half * np.log1p(square / _FREEDOM))


class Points(NamedTuple):
    """Weighted points: coordinates, mean prevalence over individuals, and masses.

    The first row of `masses` has all scrambles; each other one leaves a scramble out. Masses add up to 1, and
    a few may be negative: what is calibrated is not always a share.
    """

    v: Float
    prevalence: Float
    masses: Float
    log_evidence: Float
    effective: float
    """How many independent points would be worth as much, were it not for the calibration."""


class Rule:
    """Points of one posterior, more of them whenever asked; another seed gives other points."""

    def __init__(self, target: Target, centre: Mode, mixture: Mixture, seed: int = SEED) -> None:
        self.target, self.mixture = target, mixture
        size = target.dimension
        self._cubic = third_derivatives(target, centre)
        self._rows, self._columns = np.triu_indices(size) if size <= _CROSSED else (np.arange(size),) * 2
        self.controls = 3 + 2 * size + self._rows.size
        self._sobol = [
            [Scrambled(size + 1, each) for each in rng.spawn(len(mixture.components))]
            for rng in np.random.default_rng(seed).spawn(SCRAMBLES)
        ]
        self._pairs = 0
        self._found: list[list[tuple[Float, Float, Float]]] = [[] for _ in self._sobol]

    def points(self, pairs: int) -> int:
        """How many points there are with so many pairs of the first law in each scramble."""
        return 2 * SCRAMBLES * sum(pairs >> each.rarity for each in self.mixture.components)

    @property
    def first_pairs(self) -> int:
        """Pairs to begin with: as few as there can be, and four points for each control."""
        pairs = _LEAST_PAIRS
        while self.points(pairs) < 4 * self.controls:
            pairs *= 2
        return pairs

    def extend(self, pairs: int) -> Points:
        """The points with so many pairs of the first law in each scramble, a power of two."""
        for found, scramble in zip(self._found, self._sobol, strict=True):
            own = [
                self.mixture.points(law, sobol.block(self._pairs >> law.rarity, pairs >> law.rarity))
                for law, sobol in zip(self.mixture.components, scramble, strict=True)
            ]
            v = np.concatenate(own, axis=1)
            found.append((v, *self.target.evaluate(v)))
        self._pairs = pairs
        return self._weighted()

    def _weighted(self) -> Points:
        """All points, with calibrated masses."""
        parts = [[np.concatenate(part, axis=-1) for part in zip(*own, strict=True)] for own in self._found]
        v, log_target, prevalence = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        log_mixture, log_first = self.mixture.log_density(v)
        log_weight = log_target - log_mixture
        top = float(log_weight.max())
        weight = np.exp(log_weight - top)
        masses = self._calibrated(v, np.exp(log_first - log_mixture)) * weight
        totals = np.maximum(masses.sum(axis=1), 1e-300)
        effective = float(weight.sum() ** 2 / (weight @ weight))
        return Points(v, prevalence, masses / totals[:, None], np.log(totals) + top, effective)

    def _calibrated(self, v: Float, ratio: Float) -> Float:
        """Weights of points, near 1 / points, with which the controls have their means; one left out each."""
        scrambles = list(zip(np.split(v, SCRAMBLES, axis=1), np.split(ratio, SCRAMBLES), strict=True))
        means = self._means()
        grams, sums = [], []
        for own, part in scrambles:
            controls = self._controls(own, part)
            grams.append(controls @ controls.T)
            sums.append(controls.sum(axis=1))
        size = ratio.size // SCRAMBLES
        changes = np.zeros((SCRAMBLES + 1, means.size))
        for left_out in range(-1, SCRAMBLES):
            used = np.arange(SCRAMBLES) != left_out
            count = float(used.sum() * size)
            gram, mean = (
                np.sum([each[i] for i in np.flatnonzero(used)], axis=0) / count for each in (grams, sums)
            )
            scale = np.sqrt(np.diag(gram))
            scale = np.where(scale > 0, scale, 1.0)  # without data there is no cubic term
            gram = gram / np.outer(scale, scale) + 1e-10 * np.eye(scale.size)
            changes[left_out + 1] = np.linalg.solve(gram, (means - mean) / scale) / scale
        found = np.concatenate([changes @ self._controls(*each) for each in scrambles], axis=1) + 1
        for i in range(SCRAMBLES):
            found[i + 1, i * size : (i + 1) * size] = 0.0
        counts = np.array([SCRAMBLES, *[SCRAMBLES - 1] * SCRAMBLES]) * size
        return np.asarray(found / counts[:, None])

    def _controls(self, v: Float, ratio: Float) -> Float:
        """1, ρ, ρz, ρzz′, ρR and ρzR at points."""
        z = self.mixture.standardised(v)
        bent = np.stack([np.sum(z * (each @ z), axis=0) for each in self._cubic])
        cubic = ratio * np.sum(bent * z, axis=0) / 6
        squares = ratio * z[self._rows] * z[self._columns]
        return np.concatenate([[np.ones_like(ratio), ratio], ratio * z, squares, [cubic], cubic * z])

    def _means(self) -> Float:
        """What the controls are on average."""
        trace = np.einsum("abb->a", self._cubic) / 2
        return np.concatenate([[1.0, 1.0], 0 * trace, (self._rows == self._columns) * 1.0, [0.0], trace])
