"""The one seam inside fits: a posterior as weighted nodes, whoever made them.

A grid, draws or a single point: scores, predictions and their intervals are written once, here, over
(posterior, model, records). An engine that can do better than its nodes, such as the exact one, overrides
`_chance` and `_quantiles` and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from binreps.counts import CountTable
from binreps.errors import FitError
from binreps.model import ALIKE, Float, Model, Records, score_at

Key = tuple[int, int]

_SLOW = 5.0  # grids of similar size may both be off by more than they differ
_AT_ONCE = 2_000_000  # numbers that are held at once
_UNDERFLOW = 1e-290  # likelihoods of an individual above which floats serve
_NOTHING = 1e-15  # mass that may be left out of a mean of chances
_WORTH = 0.7  # of the nodes: to leave out fewer than the rest takes longer than it saves
_REMEMBERED = 20_000  # answers about records that a posterior keeps


class Block(NamedTuple):
    """Nodes that broadcast against each other, and the posterior mass of each."""

    parameters: tuple[Float, ...]
    mass: Float


Nodes = Sequence[Block]
"""One set of nodes: blocks whose masses add up to 1."""


class Estimate(NamedTuple):
    """A number, or an array of them, and its numerical error."""

    value: Any
    error: Any


class Marginal(Protocol):
    """The density of one parameter."""

    @property
    def error(self) -> float:
        """Numerical error of its quantiles, in standard deviations."""

    @property
    def mode(self) -> float:
        """The highest local maximum of the density, NaN if there is none."""

    def density(self, x: Any) -> Any:
        """Density at x."""

    def cumulative(self, x: Any) -> Any:
        """Probability below x."""

    def quantile(self, probability: Any) -> Any:
        """The value below which the parameter lies with the given probability."""

    def shortest(self, level: float) -> tuple[float, float]:
        """The shortest interval that holds the given probability."""


class Memory:
    """What was computed before, by key; the oldest is forgotten where it would be too much."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Any, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The value of a key, computed if it is not remembered."""
        try:
            return self._found[key]
        except KeyError:
            self.put(key, value := compute())
            return value

    def peek(self, key: Any) -> Any:
        """The value of a key, None if it is not remembered."""
        return self._found.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Remember a value."""
        self._found[key] = value
        while len(self._found) > self._most:
            self._found.popitem(last=False)


class Posterior(ABC):
    """Weighted nodes of a model's parameters, and what follows from them for any record.

    Attributes
    ----------
    model : Model
    error : float
        The numerical error of means, sds and evidence, in posterior standard deviations; it is fixed when the
        posterior is made. A marginal and an answer about a record carry errors of their own.
    log_evidence : float
        log ∫ L × prior, without binomial coefficients; NaN where it is not computed.
    mean, covariance : ndarray
        Of the model's parameters, in their order.
    """

    certain = False
    """Whether all mass is on one point, so that nothing is left open."""

    model: Model = ALIKE
    error: float
    log_evidence: float
    mean: Float
    covariance: Float

    def __init__(self) -> None:
        self._memory = Memory(_REMEMBERED)
        self._lately: deque[tuple[Float, Block]] = deque(maxlen=2)  # a coarser and a finer set of nodes
        self._classes: deque[tuple[Float, tuple[Float, Float]]] = deque(maxlen=2)  # of the same two

    @abstractmethod
    def nodes(self) -> Iterator[Nodes]:
        """Sets of nodes, better and better: two at least, unless the posterior is one point."""

    @abstractmethod
    def marginal(self, axis: int) -> Marginal:
        """The density of one parameter."""

    @abstractmethod
    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """Independent draws, shape (parameters, size)."""

    @property
    def sd(self) -> Float:
        """Posterior standard deviations."""
        return np.sqrt(np.diag(self.covariance))

    def expect(self, function: Callable[..., Any]) -> Estimate:
        """The posterior mean of a function of the parameters, and its numerical error."""
        return self.settle(
            lambda nodes: sum(float(np.sum(mass * function(*parameters))) for parameters, mass in nodes)
        )

    def settle(self, function: Callable[[Nodes], Any], tol: float = np.inf) -> Estimate:
        """What follows from nodes: on better and better ones, until it changes by less than tol."""
        value, error = None, 0.0
        for nodes in self.nodes():
            value, before = function(nodes), value
            if before is not None:
                error = float(np.nanmax(np.abs(np.subtract(value, before)), initial=0.0))
                if error <= tol:
                    break
        return Estimate(value, error)

    # Records ---------------------------------------------------------------------------------------

    def chances(self, records: Records, *, new: bool) -> Estimate:
        """P(T = 1) of records: those in the data, or new ones, whose own results are evidence too."""
        keys, where = records.distinct()
        found = [self._memory.get(("chance", new, key), partial(self._chance, key, new)) for key in keys]
        value, error = np.array(found, dtype=float).reshape(-1, 2).T
        return Estimate(value[where].reshape(records.shape)[()], error[where].reshape(records.shape)[()])

    def quantiles(self, records: Records, tails: Sequence[float], *, new: bool) -> list[Estimate]:
        """Quantiles of P(T = 1 | s; parameters) of records, one estimate for each tail."""
        keys, where = records.distinct()
        place = ("quantiles", tuple(tails), new)
        found = {key: ends for key in keys if (ends := self._memory.peek((place, key))) is not None}
        if asked := [key for key in keys if key not in found]:
            found |= (made := self._quantiles(asked, np.array(tails), new))
            for key, ends in made.items():
                self._memory.put((place, key), ends)
        known = [found[key] for key in keys]
        value = np.array([one.value for one in known]).reshape(-1, len(tails))[where]
        error = np.array([one.error for one in known]).reshape(-1, len(tails))[where]
        return [
            Estimate(value[:, i].reshape(records.shape)[()], error[:, i].reshape(records.shape)[()])
            for i in range(len(tails))
        ]

    def interval_error(self, records: Records, tails: Sequence[float], *, new: bool) -> Any:
        """The numerical error of the quantiles of each record, the largest of its tails."""
        return np.max([one.error for one in self.quantiles(records, tails, new=new)], axis=0)

    def log_left_out(self, counts: CountTable) -> Estimate:
        """log 1/E[1/L] of each cell of the data: what all others say of one of its individuals."""
        found = [self._left_out(nodes, counts) for nodes in self.nodes()]
        error = _SLOW * np.abs(found[-1] - found[0]) + self.error * 1e-3
        return Estimate(found[-1], error)

    def _left_out(self, nodes: Nodes, counts: CountTable) -> Float:
        """The same from one set of nodes, a few cells at a time."""
        step = max(1, _AT_ONCE // sum(mass.size for _, mass in nodes))
        found = []
        for start in range(0, len(counts), step):
            cells = (getattr(counts, name)[start : start + step] for name in ("n", "s", "weight", "known"))
            some = CountTable(*cells)  # in the same order: cells are sorted
            inverse, least = self._inverse(nodes, some)
            found.append(-np.log(inverse) if least > _UNDERFLOW else -self._log_inverse(nodes, some))
        return np.concatenate([np.zeros(0), *found])

    def _inverse(self, nodes: Nodes, some: CountTable) -> tuple[Float, float]:
        """E[1/L] of some cells, and the least L: each class is multiplied by its share as it is."""
        inverse, least = np.zeros(len(some)), np.inf
        for (theta, *errors), mass in nodes:
            classes = [np.exp(logs) for logs in self.model.log_classes(some, *errors)]
            if _apart(theta, classes[0]) and mass.ndim == 2:
                kept = _seen(mass, *classes)
                classes, mass = [each[:, kept] for each in classes], mass[kept]
            likelihood = _mixture(theta, *classes)
            least = min(least, float(likelihood.min(initial=np.inf)))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                np.divide(1, likelihood, out=likelihood)
                inverse += likelihood.reshape(len(some), -1) @ mass.ravel()
        return inverse, least

    def _log_inverse(self, nodes: Nodes, some: CountTable) -> Float:
        """log E[1/L] where some L are too small for floats."""
        with np.errstate(divide="ignore"):  # a node may have no mass
            logs = [
                np.log(mass) - np.logaddexp(*self.model.log_shares(some, *parameters))
                for parameters, mass in nodes
            ]
        flat = np.concatenate([log.reshape(len(some), -1) for log in logs], axis=1)
        top = flat.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(flat - top).sum(axis=1)) + top[:, 0])

    def _chance(self, key: Key, new: bool) -> Estimate:
        """P(T = 1) of one record, from the nodes."""
        value, error = self.settle(lambda nodes: self._mean(nodes, key, new))
        return Estimate(value, _SLOW * error + self.error * 1e-3)

    def _mean(self, nodes: Nodes, key: Key, new: bool) -> float:
        """E[P(T = 1 | s)], or P(T = 1, s) / P(s) of a new record, without rounding beside 1."""
        if not new:
            return min(sum(self._expected(key, *block) for block in nodes), 1.0)
        record = self.model.record(key)
        logs = [[log[0] for log in self.model.log_classes(record, *errors)] for (_, *errors), _ in nodes]
        top = max(float(np.max(log)) for pair in logs for log in pair)
        down = up = 0.0
        for (negative, positive), ((theta, *_), mass) in zip(logs, nodes, strict=True):
            of_negative, of_positive = self._by_class(theta, mass, _apart(theta, negative))
            down += float(np.sum(of_negative * np.exp(negative - top)))
            up += float(np.sum(of_positive * np.exp(positive - top)))
        with np.errstate(divide="ignore"):
            return float(expit(np.log(up) - np.log(down)))

    def _expected(self, key: Key, parameters: tuple[Float, ...], mass: Float) -> float:
        """Σ mass · P(T = 1 | s), by class likelihoods that are as few as the error rates are."""
        (theta, *errors), mass = self._with_mass(parameters, mass)
        negative, positive = (logs[0] for logs in self.model.log_classes(self.model.record(key), *errors))
        top = np.maximum(negative, positive)
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.exp(positive - top)
            share = _mixture(theta, np.exp(negative - top), up)
            np.divide(mass, share, out=share)
            found = _weighed_sum(up, theta, share)
        if np.isfinite(found):
            return float(found)
        chances = self.model.chance(key, theta, *errors)  # neither class gives the results, as floats see it
        return float(np.vdot(*np.broadcast_arrays(mass, chances)))

    def _with_mass(self, parameters: tuple[Float, ...], mass: Float) -> Block:
        """The nodes that matter for a mean of chances, found once for the last nodes that were asked for."""
        for asked, block in self._lately:
            if asked is mass:
                return block
        self._lately.append((mass, block := _heavier(parameters, mass)))
        return block

    def _by_class(self, theta: Float, mass: Float, apart: bool) -> tuple[Float, Float]:
        """The mass of either class, summed over θ where it has its own axis, once for the last nodes."""
        if not apart:
            return mass * (1 - theta), mass * theta
        for asked, found in self._classes:
            if asked is mass:
                return found
        self._classes.append((mass, found := ((mass @ (1 - theta))[..., None], (mass @ theta)[..., None])))
        return found

    def _quantiles(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """Quantiles for each of some records, from the nodes."""

        def each(key: Key) -> Estimate:
            value, error = self.settle(
                lambda nodes: weighted_quantiles(*self._weighed(nodes, key, new), tails)
            )
            return Estimate(value, np.full(tails.size, _SLOW * error))

        return {key: each(key) for key in keys}

    def _weighed(self, nodes: Nodes, key: Key, new: bool) -> tuple[Float, Float]:
        """P(T = 1 | s) at every node, and the mass there, reweighted by the record itself if it is new."""
        chances = [np.broadcast_to(self.model.chance(key, *x), mass.shape).ravel() for x, mass in nodes]
        masses = [mass.ravel() for _, mass in nodes]
        if new:
            record = self.model.record(key)
            logs = [
                np.broadcast_to(np.logaddexp(*self.model.log_shares(record, *x))[0], mass.shape).ravel()
                for x, mass in nodes
            ]
            top = max(float(log.max()) for log in logs)
            masses = [mass * np.exp(log - top) for mass, log in zip(masses, logs, strict=True)]
        weight = np.concatenate(masses)
        return np.concatenate(chances), weight / weight.sum()


def _mixture(theta: Float, negative: Float, positive: Float) -> Float:
    """(1−θ) P(s | T = 0) + θ P(s | T = 1) at all nodes; a product of matrices where θ has its own axis."""
    if _apart(theta, negative) and _apart(theta, positive):
        return np.concatenate([negative, positive], axis=-1) @ np.stack([1 - theta, theta])
    return negative * (1 - theta) + positive * theta


def _apart(theta: Float, classes: Float) -> bool:
    """Whether θ has an axis of its own, the last, along which the likelihoods of a class do not change."""
    return theta.ndim == 1 and classes.ndim > 1 and classes.shape[-1] == 1


def _weighed_sum(classes: Float, theta: Float, mass: Float) -> float:
    """Σ mass · θ · P(s | T) over all nodes."""
    if _apart(theta, classes):
        return float(np.sum((mass @ theta) * classes[..., 0]))
    return float(np.sum(mass * theta * classes))


def _seen(mass: Float, negative: Float, positive: Float) -> Any:
    """Which error rates matter for E[1/L] ≥ 1: L is at least the smaller of the two classes' likelihoods."""
    least = np.minimum(negative, positive).min(axis=(0, 2))
    kept = mass.sum(axis=1) > _NOTHING / len(mass) * least
    return kept if np.count_nonzero(kept) < _WORTH * len(mass) else slice(None)


def _heavier(parameters: tuple[Float, ...], mass: Float) -> Block:
    """Nodes without the error rates that have next to no mass, where these are most of them."""
    theta, *errors = parameters
    if mass.ndim == 2 and all(x.shape == (len(mass), 1) for x in errors):
        kept = mass.sum(axis=1) > _NOTHING / len(mass)
        if np.count_nonzero(kept) < _WORTH * len(mass):
            return Block((theta, *(x[kept] for x in errors)), mass[kept])
    return Block(parameters, mass)


def weighted_quantiles(values: Float, weight: Float, probabilities: Float) -> Float:
    """Quantiles of weighted values, each in the middle of its own weight, with straight lines between."""
    order = np.argsort(values)
    weight = weight[order]
    reached = np.cumsum(weight) - weight / 2
    return np.asarray(np.interp(probabilities * weight.sum(), reached, values[order]))


class Point(Posterior):
    """All mass on one point: what an estimate without a posterior is."""

    certain = True
    error = 0.0
    log_evidence = float("nan")

    def __init__(self, *parameters: float) -> None:
        super().__init__()
        self.mean = np.array(parameters)
        self.covariance = np.full((self.mean.size,) * 2, np.nan)

    def nodes(self) -> Iterator[Nodes]:
        """The point."""
        yield [Block(tuple(self.mean.reshape(-1, 1)), np.ones(1))]

    def marginal(self, axis: int) -> Marginal:
        """There is none."""
        raise FitError(f"a point has no density of {self.model.names[axis]}; fit_bayes has")

    def draws(self, size: int, rng: np.random.Generator) -> Float:
        """The point, again and again."""
        del rng
        return np.repeat(self.mean[:, None], size, axis=1)

    def chances(self, records: Records, *, new: bool) -> Estimate:
        """The likelihood score, for individuals of the data and new ones alike."""
        del new
        score = score_at(records.n, records.s, *self.mean)
        return Estimate(score[()], np.zeros(score.shape)[()])

    def _quantiles(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """None: nothing is left open, because nothing was asked about it."""
        del new
        return {key: Estimate(*np.full((2, tails.size), np.nan)) for key in keys}
