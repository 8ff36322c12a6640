"""The chances of individuals under an integrated posterior, sharper than its grid.

Y_L may jump from 0 to 1 between two nodes of a grid. Scores are looked at on several grids, predictions at
points (p, q) with θ summed out, intervals by the law of the score; where these do not settle, lines of θ do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import expit, logit

from binreps.counts import CountTable
from binreps.fits.exact.gauss import Series
from binreps.fits.exact.grid import Grid, Pairs, find_root, theta_summed_out
from binreps.fits.exact.law import Law
from binreps.fits.exact.lines import ThetaLines
from binreps.fits.posterior import Block, Estimate, Key, Memory, Nodes, Posterior
from binreps.model import ALIKE, Float, Records

TOLERANCE = 1e-8
CUT_TAILS = 1e-10
"""Of a standard deviation: what a cut at e^−30 of the density may leave out."""

_SLOW = 10.0  # two grids of similar size may both be off by more than they differ, where convergence is slow
_DETAILS = (1.0, 1.35, 1.8, 2.4, 3.4, 5.0, 7.5)  # how many times more lines a score may ask for, on each axis
_FAST = 5.0  # where convergence is fast, more lines are off by less than this part of the change
_LEAST = 30  # nodes on each axis of error rates, before they are multiplied
_INTERVAL_TOLERANCE = 1e-6
_FAR = 1e-3  # of the posterior: where a new result leaves less of it, it moves the posterior too far


class ExactPosterior(Posterior):
    """What every integrated posterior of (θ, p, q) offers, whichever rule it took.

    Attributes
    ----------
    grid, check : Grid
        The finer and the coarser of two grids that agree.
    rule : str
        How it was integrated.
    """

    rule: str
    grid: Grid
    check: Grid

    def __init__(self, error: float) -> None:
        super().__init__()
        self._distance = error
        self._work = Memory(2 * len(_DETAILS))  # pairs and laws on more and more lines

    @abstractmethod
    def theta_lines(self, detail: float = 1.0, least: int = 0) -> list[ThetaLines]:
        """The posterior as lines of θ, for what depends on the rates sharply.

        `detail` multiplies the nodes on p and q, which count as `least` if they are fewer; no lines are left
        where they would be too many.
        """

    @abstractmethod
    def with_more(self, more: CountTable) -> ExactPosterior:
        """The posterior with more individuals in the data."""

    @abstractmethod
    def is_fitted(self, key: Key) -> bool:
        """Whether someone of unknown status has this record: then grids do not miss a jump."""

    # Moments ---------------------------------------------------------------------------------------

    @property
    def mean(self) -> Float:  # type: ignore[override]
        """Posterior means of θ, p, q."""
        return self.grid.mean

    @property
    def covariance(self) -> Float:  # type: ignore[override]
        """Posterior covariance of θ, p, q."""
        return self.grid.covariance

    @property
    def log_evidence(self) -> float:  # type: ignore[override]
        """log ∫ L × prior."""
        return self.grid.log_evidence

    @property
    def error(self) -> float:  # type: ignore[override]
        """The difference of two grids: the error of the coarser.

        It is at least what both have in common: tails cut off, and the rounding of a rate much larger than
        its sd.
        """
        rounding = float(np.finfo(float).eps * np.max(self.mean / self.sd))
        return max(self._distance, CUT_TAILS, rounding)

    def nodes(self) -> Iterator[Nodes]:
        """The coarser grid, the finer one, and grids that are finer still where the rule has them."""
        for grid in chain((self.check, self.grid), self.finer_grids()):
            yield [Block(grid.nodes, grid.mass)]

    def finer_grids(self) -> Iterator[Grid]:
        """Grids with more nodes; none where they would be too many."""
        yield from ()

    # Records ---------------------------------------------------------------------------------------

    def _chance(self, key: Key, new: bool) -> Estimate:
        return self._predicted(*key) if new else self._scored(*key)

    def _scored(self, n: int, s: int, gap: bool = False) -> Estimate:
        """E[Y_L], or E[Y_L (1 − p − q)]: on the grid, or on lines of θ where a grid may miss the jump of Y_L.

        It cannot for a fitted cell, whose own likelihood smooths the jump; but beside a pole of the prior two
        grids may agree and both be wrong.
        """

        def on_grid(grid: Grid) -> float:
            factor = 1 - grid.nodes[1] - grid.nodes[2] if gap else 1.0
            return grid.expect(factor * _sigmoid(_log_odds(grid.nodes, n, s)))

        first = value = on_grid(self.grid)
        others = self.other_grids(self.is_fitted((n, s)))
        error = max((_SLOW * abs(value - on_grid(other)) for other in others), default=np.inf)
        if error > TOLERANCE:
            value, error = self._on_lines(lambda lines: expected_score(lines, n, s, gap), TOLERANCE, error)
            error = max(error if np.isfinite(error) else _SLOW * abs(value - first), CUT_TAILS / 10)
        value = min(max(value, 0.0), 1.0)  # sums of weights may end a rounding beyond
        return Estimate(value, max(error, self._distance * 1e-3, CUT_TAILS / 100))

    def other_grids(self, fitted: bool) -> list[Grid]:
        """Grids with which a score on the finer one is compared; none if only lines can be trusted."""
        del fitted
        return [self.check]

    def _on_lines(
        self, function: Callable[[list[ThetaLines]], float], tol: float, error: float
    ) -> tuple[float, float]:
        """A value computed on lines of θ, more and more of them until it settles; and its error.

        Where there are no more lines, the error is the one given.
        """
        value = function(self.theta_lines())
        for detail in _DETAILS[1:]:
            if lines := self.theta_lines(detail):
                value, before = function(lines), value
                error = _SLOW / 3 * abs(value - before)
                if error < tol:
                    break
        return value, error

    def _on_pairs(self, function: Callable[[Pairs], float]) -> Estimate:
        """What follows from points (p, q), at more and more of them while its error is too large."""
        value, before = function(self.grid.pairs), function(self.check.pairs)
        error = abs(value - before)
        more = self._finer_pairs()
        while error >= TOLERANCE and (finer := next(more, None)):
            value, before = function(finer), value
            error = max(abs(value - before), CUT_TAILS)  # lines that hardly matter are left out
        return Estimate(value, max(error, self._distance * 1e-3, CUT_TAILS / 100))

    def _finer_pairs(self) -> Iterator[Pairs]:
        """More points (p, q) than the grids have: those of lines of θ, which intervals need as well."""
        for detail in _DETAILS[1:]:
            if lines := self.theta_lines(detail, _LEAST):
                yield self._work.get(("pairs", detail), partial(_pairs_of, lines))

    def _predicted(self, n: int, s: int) -> Estimate:
        value, error = self._on_pairs(lambda pairs: _ratio(pairs, n, s))
        kept = _kept(self.grid.pairs, n, s)
        if error < TOLERANCE and kept > _FAR:
            return Estimate(value, max(error, CUT_TAILS / 1000 / kept))
        return self._predicted_by_refitting(n, s)

    def _predicted_by_refitting(self, n: int, s: int) -> Estimate:
        """Evidence with the new individual known to be positive, over the evidence without that knowledge."""
        unknown = self.with_more(CountTable([n], [s]))
        positive = self.with_more(CountTable([n], [s], known=[1]))
        value = float(np.exp(min(positive.log_evidence - unknown.log_evidence, 0.0)))
        rounding = 4e-16 * abs(unknown.log_evidence)
        return Estimate(value, unknown.evidence_error + positive.evidence_error + rounding)

    @property
    def evidence_error(self) -> float:
        """The numerical error of the log evidence."""
        return self._distance

    def next_positive(self, key: Key, new: bool) -> float:
        """The probability that one more replicate of such an individual is positive."""
        n, s = key
        if not new:  # E[Y_L (1 − q) + (1 − Y_L) p]
            return float(self.mean[1]) + float(self._scored(n, s, gap=True).value)

        def chance(pairs: Pairs) -> float:
            positive, negative = _class_shares(pairs, n, s)
            up, down = positive * pairs.positive, negative * pairs.negative
            return float(np.sum(up * (1 - pairs.q) + down * pairs.p) / np.sum(up + down))

        value, error = self._on_pairs(chance)
        if error < TOLERANCE and _kept(self.grid.pairs, n, s) > _FAR:
            return float(value)
        before, after = (self.with_more(CountTable([n + k], [s + k])) for k in (0, 1))
        return float(np.exp(after.log_evidence - before.log_evidence))

    def _quantiles(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """Quantiles of Y_L: by their laws, on more and more lines; else one by one."""
        far = [key for key in keys if new and _kept(self.grid.pairs, *key) < _FAR]
        found = {
            key: self.with_more(CountTable(*([x] for x in key)))._sharp([key], tails, False)[key]
            for key in far
        }
        return found | self._sharp([key for key in keys if key not in found], tails, new)

    def interval_error(self, records: Records, tails: Sequence[float], *, new: bool) -> Any:
        """The error of the law, or its distance from sums of conditional laws of θ if that is larger.

        A law may settle on a wrong value: the other way to a quantile, too slow to go always, tells.
        """
        said = super().interval_error(records, tails, new=new)
        keys, where = records.distinct()
        found = [self.quantiles(Records.of(*key), tails, new=new) for key in keys]
        apart = [
            max(
                abs(float(one.value) - self._other_way(key, tail, new))
                for one, tail in zip(ends, tails, strict=True)
            )
            for key, ends in zip(keys, found, strict=True)
        ]
        return np.maximum(said, np.array(apart)[where].reshape(records.shape)[()])

    def _other_way(self, key: Key, tail: float, new: bool) -> float:
        """A quantile by sums of conditional distribution functions of θ."""
        far = new and _kept(self.grid.pairs, *key) < _FAR
        posterior = self.with_more(CountTable(*([x] for x in key))) if far else self
        return score_quantile(posterior.theta_lines(), *key, tail, new=new and not far)

    def _sharp(self, keys: list[Key], tails: Float, new: bool) -> dict[Key, Estimate]:
        """Quantiles by laws on more and more lines until two sets of lines agree."""
        result, errors = np.full((2, len(keys), tails.size), np.nan)
        left, laws = list(range(len(keys))), self._laws()
        while left and (law := next(laws, None)):
            n, s = np.transpose([keys[i] for i in left])
            found = law.quantiles(n, s, tails, new=new)
            change = np.abs(found.value - result[left])  # NaN at first: two sets of lines must agree
            result[left], errors[left] = found.value, np.maximum(found.error, change / _FAST)
            good = np.all(errors[left] < _INTERVAL_TOLERANCE, axis=1)
            left = [i for i, enough in zip(left, good, strict=True) if not enough]
        for i in left:
            ends = [self._quantile_on_lines(*keys[i], tail, new) for tail in tails.tolist()]
            result[i], errors[i] = np.transpose(ends)
        return {key: Estimate(result[i], errors[i]) for i, key in enumerate(keys)}

    def _laws(self) -> Iterator[Law]:
        """The laws of scores on more and more lines, made when first asked for and kept."""
        for detail in _DETAILS[1:]:
            if lines := self.theta_lines(detail, _LEAST):
                yield self._work.get(("law", detail), partial(Law, lines))

    def _quantile_on_lines(self, n: int, s: int, probability: float, new: bool) -> tuple[float, float]:
        """Where a series does not die out: sums of conditional distribution functions of θ."""

        def quantile(lines: list[ThetaLines]) -> float:
            return score_quantile(lines, n, s, probability, new=new)

        return self._on_lines(quantile, _INTERVAL_TOLERANCE, _INTERVAL_TOLERANCE)


def _log_odds(nodes: tuple[Float, Float, Float], n: int, s: int) -> Any:
    """Logit of Y_L at the nodes."""
    theta, p, q = nodes
    negative, positive = ALIKE.log_classes(ALIKE.record((n, s)), p, q)
    return logit(theta) + (positive[0] - negative[0])


def _sigmoid(x: Float) -> Float:
    """1 / (1 + e^−x), by NumPy's vectorised exponential."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def _class_shares(pairs: Pairs | ThetaLines, n: int, s: int) -> tuple[Float, Float]:
    """What the positive and the negative class make of a record at points (p, q), in a common unit."""
    negative, positive = (log[0] for log in ALIKE.log_classes(ALIKE.record((n, s)), pairs.p, pairs.q))
    top = max(positive.max(), negative.max())
    return np.exp(positive - top), np.exp(negative - top)


def _ratio(pairs: Pairs, n: int, s: int) -> float:
    """The calibrated prediction on one set of points."""
    positive, negative = _class_shares(pairs, n, s)
    up = np.sum(positive * pairs.positive)
    return float(up / (up + np.sum(negative * pairs.negative)))


def _kept(pairs: Pairs, n: int, s: int) -> float:
    """The share of the posterior that still counts once it is reweighted by a new individual's likelihood."""
    up, down = _class_shares(pairs, n, s)
    mean = np.sum(up * pairs.positive + down * pairs.negative)
    square = up**2 * pairs.positive_twice + 2 * up * down * pairs.mixed + down**2 * pairs.negative_twice
    return float(mean**2 / np.sum(square))


def _pairs_of(lines: list[ThetaLines]) -> Pairs:
    """Lines with θ summed out."""
    parts = [theta_summed_out(one.masses, one.theta, one.p, one.q, axes=(1,)) for one in lines]
    return Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def expected_score(lines: list[ThetaLines], n: int, s: int, gap: bool = False) -> float:
    """E[Y_L(n, s) | data], or E[Y_L (1 − p − q) | data], by the trapezoid rule in logit θ along each line.

    Y_L may jump from 0 to 1 within 10⁻⁹ of θ = 0 or 1; as a function of logit θ it never does.
    """
    total = 0.0
    for line in lines:
        logits, matrix = line.trapezoid
        mass = line.masses @ matrix
        evidence = _log_odds((np.array(0.5), line.p, line.q), n, s)
        factor = 1 - line.p - line.q if gap else 1.0
        total += float(np.sum(factor * np.sum(mass * _sigmoid(evidence[:, None] + logits), axis=1)))
    return total / sum(float(line.masses.sum()) for line in lines)


def score_quantile(lines: list[ThetaLines], n: int, s: int, probability: float, *, new: bool) -> float:
    """The quantile of Y_L under the posterior, reweighted by the individual's own likelihood if it is new.

    Given p and q, Y_L ≤ y means θ ≤ some value: the distribution function is a sum over lines of θ. The
    root is found in logit y, from the weighted quantile of the nodes.
    """
    levels, masses, parts = [], [], []
    for line in lines:
        nodes = (line.theta, line.p[:, None], line.q[:, None])
        odds = _log_odds(nodes, n, s)
        mass = line.masses
        if new:
            up, down = (share[:, None] for share in _class_shares(line, n, s))
            mass = mass * (line.theta * up + (1 - line.theta) * down)
        levels.append(odds.ravel())
        masses.append(mass.ravel())
        evidence = _log_odds((np.array(0.5), line.p, line.q), n, s)
        parts.append((Series(line.interval, mass), evidence))
    level, mass = np.concatenate(levels), np.concatenate(masses)
    total = mass.sum()

    def excess(z: float) -> float:
        below = sum(float(np.sum(part.cumulative(expit(z - evidence)))) for part, evidence in parts)
        return float(below / total) - probability

    order = np.argsort(level)
    reached = np.cumsum(mass[order]) / total
    guess = float(level[order][min(int(np.searchsorted(reached, probability)), level.size - 1)])
    step = 0.05
    while excess(guess - step) > 0 or excess(guess + step) < 0:
        step *= 4
    return float(expit(find_root(excess, guess - step, guess + step)))
