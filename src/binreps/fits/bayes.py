"""The Bayesian fit: the posterior of the three rates, integrated, and all that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from binreps.counts import UNKNOWN, CountTable
from binreps.errors import OptionError
from binreps.fits.base import PrintsItsSummary, check_counts, fit_title, integrable, rates_rows
from binreps.fits.exact.gauss import Series
from binreps.fits.exact.grid import Grid, Marginal, Pairs, find_root, theta_summed_out
from binreps.fits.exact.law import Law
from binreps.fits.exact.lines import ThetaLines
from binreps.fits.exact.posterior import TOLERANCE, BoxPosterior, Posterior, integrate
from binreps.model import NAMES, Float, Prior, Rates, checked_pairs, score_at
from binreps.options import check_level, generator
from binreps.table import Table

_CUT_TAILS = 1e-10  # of a standard deviation: what a cut at e^−30 of the density may leave out
_SLOW = 10.0  # two grids of similar size may both be off by more than they differ, where convergence is slow
_DETAILS = (1.0, 1.35, 1.8, 2.4, 3.4, 5.0, 7.5)  # how many times more lines a score may ask for, on each axis
_FAST = 5.0  # where convergence is fast, more lines are off by less than this part of the change
_LEAST = 30  # nodes on each axis of error rates, before they are multiplied
_INTERVAL_TOLERANCE = 1e-6


@dataclass(frozen=True, repr=False)
class BayesFit(PrintsItsSummary):
    """The exact posterior of prevalence and error rates; made by `fit_bayes`.

    Two fits of equal counts and priors are equal; a fit is pickled as its counts and prior, and fitted again.
    """

    method: ClassVar[str] = "Bayes, exact"
    counts: CountTable
    prior: Prior
    posterior: Posterior = field(compare=False)
    _found: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return fit_bayes, (self.counts, self.prior)

    # The three rates -------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:
        """Posterior means."""
        return Rates(*self.posterior.grid.mean)

    @property
    def sd(self) -> Rates:
        """Posterior standard deviations."""
        return Rates(*self.posterior.grid.sd)

    @property
    def correlation(self) -> Float:
        """Posterior correlation matrix of prevalence, false-positive and false-negative rate."""
        sd = self.posterior.grid.sd
        return np.asarray(self.posterior.grid.covariance / np.outer(sd, sd))

    @property
    def log_evidence(self) -> float:
        """log ∫ L × prior, without binomial coefficients; priors normalised on their supports."""
        return self.posterior.grid.log_evidence

    @property
    def error(self) -> float:
        """Numerical error: in units of the sd for means, sds and quantiles, relative for the evidence.

        It is the difference of two grids of different sizes, so it is the error of the coarser one; and at
        least what both have in common: tails cut off, and the rounding of a rate much larger than its sd.
        """
        grid = self.posterior.grid
        rounding = float(np.finfo(float).eps * np.max(grid.mean / grid.sd))
        return max(self.posterior.error, _CUT_TAILS, rounding)

    def marginal(self, name: str) -> Marginal:
        """The posterior of one rate: `.density(x)`, `.cumulative(x)`, `.quantile(probability)`, `.mode`."""
        if name not in NAMES:
            raise OptionError(f"name must be one of {', '.join(NAMES)}, got {name!r}")
        return self.posterior.marginal(NAMES.index(name))

    def quantile(self, probability: ArrayLike) -> Rates:
        """The quantiles of the three rates; an array of probabilities gives arrays."""
        wanted = np.asarray(probability, dtype=float)
        if not np.all((wanted > 0) & (wanted < 1)):
            raise OptionError(f"probability must be between 0 and 1, got {wanted}")
        return Rates(*(self.marginal(name).quantile(wanted) for name in NAMES))

    def interval(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The equal-tailed credible interval of each rate: lower ends, upper ends."""
        check_level(level)
        tail = (1 - level) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def hdi(self, level: float = 0.9) -> tuple[Rates, Rates]:
        """The shortest interval of each rate that holds the given probability: lower ends, upper ends."""
        check_level(level)
        ends = [self.marginal(name).shortest(level) for name in NAMES]
        return Rates(*(low for low, _ in ends)), Rates(*(high for _, high in ends))

    @property
    def mode(self) -> Rates:
        """The modes of the three marginal densities; an end counts if the density is finite there.

        NaN where a density has none.
        """
        return Rates(*(self.marginal(name).mode for name in NAMES))

    # Individuals -----------------------------------------------------------------------------------

    def score(self, n: ArrayLike, s: ArrayLike) -> Any:
        """Y_B = E[Y_L | data]: the probability that a fitted individual with s positives is positive."""
        return self._each(n, s, lambda a, b: self._score(a, b)[0])

    def score_error(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The numerical error of `.score`: larger for cells far from the data."""
        return self._each(n, s, lambda a, b: self._score(a, b)[1])

    def predict(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The probability that a *new* individual with s positives among n replicates is positive.

        E[θ(1−q)^s q^(n−s)] / E[θ(1−q)^s q^(n−s) + (1−θ)p^s(1−p)^(n−s)]: the new result is evidence about the
        rates too (erratum E10). For the paper's formula see `predict_paper`.
        """
        return self._each(n, s, lambda a, b: self._predict(a, b)[0])

    def predict_error(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The numerical error of `.predict`."""
        return self._each(n, s, lambda a, b: self._predict(a, b)[1])

    def predict_paper(self, n: ArrayLike, s: ArrayLike) -> Any:
        """The paper's prediction E[Y_L(n, s) | data], which leaves the new result out of the posterior.

        For comparison with the paper and the R package only: it is not calibrated for small data.
        """
        return self.score(n, s)

    def score_interval(self, n: ArrayLike, s: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
        """Equal-tailed interval of Y_L for fitted individuals: what the uncertain rates leave open."""
        return self._interval(n, s, level, new=False)

    def predict_interval(self, n: ArrayLike, s: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
        """The same for new individuals, whose own result reweights the posterior."""
        return self._interval(n, s, level, new=True)

    def next_replicate(self, n: ArrayLike, s: ArrayLike, *, new: bool = False) -> Any:
        """The probability that one more replicate of such an individual is positive."""
        return self._each(n, s, lambda a, b: self._next(a, b, new))

    # Draws -----------------------------------------------------------------------------------------

    def draws(self, size: int, rng: np.random.Generator | int) -> Rates:
        """Independent draws from the posterior, as arrays; exact, so no burn-in and no autocorrelation."""
        if size < 0:
            raise OptionError(f"size must be ≥ 0, got {size}")
        source = generator(rng)
        if size == 0:
            return Rates(*np.empty((3, 0)))
        return Rates(*np.clip(self.posterior.draws(int(size), source), 0.0, 1.0))

    def draw_positives(self, size: int, rng: np.random.Generator | int) -> NDArrayInt:
        """Joint draws of the number of positive individuals in each cell, shape (size, cells)."""
        source = generator(rng)
        draws = self.draws(size, source)
        columns = (np.asarray(rate)[:, None] for rate in draws)
        chance = score_at(self.counts.n, self.counts.s, *columns)
        known = self.counts.known
        chance = np.where(known == UNKNOWN, chance, known)
        return np.asarray(source.binomial(self.counts.weight, chance))

    # Words -----------------------------------------------------------------------------------------

    def summary(self, level: float = 0.9) -> Table:
        """Means, sds and equal-tailed intervals of the rates, and of sensitivity and specificity."""
        lower, upper = self.interval(level)
        columns = rates_rows(estimate=self.rates, sd=self.sd, lower=lower, upper=upper)
        note = (
            f"{level:.0%} credible intervals; numerical error below {self.error:.0e} of a standard deviation"
        )
        return Table(columns, title=fit_title(self.method, self.counts), note=note)

    # Inside ----------------------------------------------------------------------------------------

    def _each(self, n: ArrayLike, s: ArrayLike, function: Callable[[int, int], float]) -> Any:
        """A function of (n, s), called once per distinct pair."""
        n_values, s_values = checked_pairs(n, s)
        pairs, where = _distinct(n_values, s_values)
        values = np.array([function(*pair) for pair in pairs])
        return values[where].reshape(n_values.shape)[()]

    def _expect(self, function: Callable[[Pairs], float]) -> tuple[float, float]:
        """A posterior expectation and its error, at more and more (p, q) while the error is too large."""
        posterior = self.posterior
        value, before = function(posterior.grid.pairs), function(posterior.check.pairs)
        error = abs(value - before)
        more = self._finer_pairs()
        while error >= TOLERANCE and (finer := next(more, None)):
            value, before = function(finer), value
            error = max(abs(value - before), _CUT_TAILS)  # lines that hardly matter are left out
        return value, max(error, posterior.error * 1e-3, _CUT_TAILS / 100)

    def _finer_pairs(self) -> Iterator[Pairs]:
        """More points (p, q) than the grids have: those of lines of θ, which intervals need as well."""
        for detail in _DETAILS[1:]:
            if lines := self.posterior.theta_lines(detail, _LEAST):
                yield self._remembered(("pairs", detail), partial(_pairs_of, lines))

    def _remembered(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What was computed before under this key, or is now."""
        if key not in self._found:
            self._found[key] = compute()
        return self._found[key]

    def _score(self, n: int, s: int) -> tuple[float, float]:
        found: tuple[float, float] = self._remembered(("score", n, s), lambda: self._compute_score(n, s))
        return found

    def _compute_score(self, n: int, s: int, gap: bool = False) -> tuple[float, float]:
        """E[Y_L], or E[Y_L (1 − p − q)]: on the grid, or on lines of θ where a grid may miss the jump of Y_L.

        It cannot for a fitted cell, whose own likelihood smooths the jump; but beside a pole of the prior two
        grids may agree and both be wrong.
        """

        def on_grid(grid: Grid) -> float:
            factor = 1 - grid.nodes[1] - grid.nodes[2] if gap else 1.0
            return grid.expect(factor * _sigmoid(_log_odds(grid.nodes, n, s)))

        posterior = self.posterior
        value = on_grid(posterior.grid)
        error = _SLOW * abs(value - on_grid(posterior.check))
        cells = self.counts
        fitted = np.any((cells.n == n) & (cells.s == s) & (cells.known == UNKNOWN))
        if isinstance(posterior, BoxPosterior) and not fitted:
            error = max(error, _SLOW * abs(value - on_grid(posterior.stretched)))
        if error > TOLERANCE:
            value, error = self._on_lines(lambda lines: expected_score(lines, n, s, gap), TOLERANCE, error)
            error = max(error, _CUT_TAILS / 10)
        value = min(max(value, 0.0), 1.0)  # sums of weights may end a rounding beyond
        return value, max(error, posterior.error * 1e-3, _CUT_TAILS / 100)

    def _on_lines(
        self, function: Callable[[list[ThetaLines]], float], tol: float, error: float
    ) -> tuple[float, float]:
        """A value computed on lines of θ, more and more of them until it settles; and its error.

        Where there are no more lines, the error is the one given.
        """
        value = function(self.posterior.theta_lines())
        for detail in _DETAILS[1:]:
            if lines := self.posterior.theta_lines(detail):
                value, before = function(lines), value
                error = _SLOW / 3 * abs(value - before)
                if error < tol:
                    break
        return value, error

    def _predict(self, n: int, s: int) -> tuple[float, float]:
        found: tuple[float, float] = self._remembered(("predict", n, s), lambda: self._compute_predict(n, s))
        return found

    def _compute_predict(self, n: int, s: int) -> tuple[float, float]:
        value, error = self._expect(lambda pairs: _ratio(pairs, n, s))
        kept = _kept(self.posterior.grid.pairs, n, s)
        if error < TOLERANCE and kept > 1e-3:
            return value, max(error, _CUT_TAILS / 1000 / kept)
        return self._predict_by_refitting(n, s)

    def _predict_by_refitting(self, n: int, s: int) -> tuple[float, float]:
        """Evidence with the new individual known to be positive, over the evidence without that knowledge."""
        unknown = integrate(self.counts + CountTable([n], [s]), self.prior)
        positive = integrate(self.counts + CountTable([n], [s], known=[1]), self.prior)
        value = float(np.exp(min(positive.grid.log_evidence - unknown.grid.log_evidence, 0.0)))
        rounding = 4e-16 * abs(unknown.grid.log_evidence)
        return value, unknown.error + positive.error + rounding

    def _next(self, n: int, s: int, new: bool) -> float:
        if not new:  # E[Y_L (1 − q) + (1 − Y_L) p]
            return float(self.posterior.grid.mean[1]) + self._compute_score(n, s, gap=True)[0]

        def chance(pairs: Pairs) -> float:
            positive, negative = _class_shares(pairs, n, s)
            up, down = positive * pairs.positive, negative * pairs.negative
            return float(np.sum(up * (1 - pairs.q) + down * pairs.p) / np.sum(up + down))

        value, error = self._expect(chance)
        if error < TOLERANCE and _kept(self.posterior.grid.pairs, n, s) > 1e-3:
            return value
        before, after = (integrate(self.counts + CountTable([n + k], [s + k]), self.prior) for k in (0, 1))
        return float(np.exp(after.grid.log_evidence - before.grid.log_evidence))

    def _interval(self, n: ArrayLike, s: ArrayLike, level: float, *, new: bool) -> tuple[Any, Any]:
        check_level(level)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        key = ("interval", level, new)
        n_values, s_values = checked_pairs(n, s)
        pairs, where = _distinct(n_values, s_values)
        asked = [pair for pair in pairs if (key, pair) not in self._found]
        for pair, ends in zip(asked, self._quantiles(asked, tails, new), strict=True):
            self._found[key, pair] = ends
        ends = np.array([self._found[key, pair] for pair in pairs]).reshape(-1, 2)[where]
        lower, upper = (ends[:, side].reshape(n_values.shape)[()] for side in (0, 1))
        return lower, upper

    def _quantiles(self, pairs: list[tuple[int, int]], tails: Float, new: bool) -> Float:
        """Quantiles of Y_L of each pair (n, s): by their laws, on more and more lines; else one by one."""
        result = np.full((len(pairs), tails.size), np.nan)
        left = [
            i for i, pair in enumerate(pairs) if not (new and _kept(self.posterior.grid.pairs, *pair) < 1e-3)
        ]
        for i in set(range(len(pairs))) - set(left):  # the new result moves the posterior too far
            wider = fit_bayes(self.counts + CountTable(*([x] for x in pairs[i])), self.prior)
            result[i] = wider._quantiles([pairs[i]], tails, new=False)[0]
        laws = self._laws()
        while left and (law := next(laws, None)):
            n, s = np.transpose([pairs[i] for i in left])
            found = law.quantiles(n, s, tails, new=new)
            change = np.abs(found.value - result[left])  # NaN at first: two sets of lines must agree
            result[left] = found.value
            error = np.maximum(found.error, change / _FAST)
            good = np.all(error < _INTERVAL_TOLERANCE, axis=1)
            left = [i for i, enough in zip(left, good, strict=True) if not enough]
        for i in left:
            result[i] = [self._quantile_on_lines(*pairs[i], tail, new) for tail in tails.tolist()]
        return result

    def _laws(self) -> Iterator[Law]:
        """The laws of scores on more and more lines, made when first asked for and kept."""
        for detail in _DETAILS[1:]:
            if lines := self.posterior.theta_lines(detail, _LEAST):
                yield self._remembered(("law", detail), partial(Law, lines))

    def _quantile_on_lines(self, n: int, s: int, probability: float, new: bool) -> float:
        """Where a series does not die out: sums of conditional distribution functions of θ."""

        def quantile(lines: list[ThetaLines]) -> float:
            return score_quantile(lines, n, s, probability, new=new)

        return self._on_lines(quantile, _INTERVAL_TOLERANCE, 0.0)[0]


NDArrayInt = np.ndarray[Any, np.dtype[np.int64]]


def fit_bayes(counts: CountTable, prior: Prior | None = None) -> BayesFit:
    """The Bayesian fit, integrated deterministically: the same answer every time, in milliseconds for any N.

    Parameters
    ----------
    counts : CountTable
        Any table, an empty one included (the answer is then the prior). Known statuses inform the fit.
    prior : Prior, optional
        Beta priors; those of the error rates are truncated to (0, ½). Default `Prior()`. Shapes must be from
        0.05 to 10⁷, which floats can integrate.

    Returns
    -------
    BayesFit

    Examples
    --------
    >>> fit = fit_bayes(CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20]))
    >>> print(fit)
    Bayes, exact: 100 individuals, 400 replicates, 4 cells
    rate            estimate     sd  lower  upper
    prevalence         0.302  0.046  0.229  0.380
    false-positive     0.079  0.017  0.054  0.108
    false-negative     0.099  0.028  0.058  0.150
    sensitivity        0.901  0.028  0.850  0.942
    specificity        0.921  0.017  0.892  0.946
    90% credible intervals; numerical error below 1e-10 of a standard deviation
    >>> float(round(fit.predict(4, 2), 3))
    0.4
    """
    check_counts(counts)
    prior = integrable(prior)
    return BayesFit(counts, prior, integrate(counts, prior))


def _log_odds(nodes: tuple[Float, Float, Float], n: int, s: int) -> Any:
    """Logit of Y_L at the nodes."""
    theta, p, q = nodes
    return logit(theta) + (s * (np.log1p(-q) - np.log(p)) + (n - s) * (np.log(q) - np.log1p(-p)))


def _sigmoid(x: Float) -> Float:
    """1 / (1 + e^−x), by NumPy's vectorised exponential."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def _class_shares(pairs: Pairs | ThetaLines, n: int, s: int) -> tuple[Float, Float]:
    """(1−q)^s q^(n−s) and p^s (1−p)^(n−s) at points (p, q), in a common unit that does not underflow."""
    positive = s * np.log1p(-pairs.q) + (n - s) * np.log(pairs.q)
    negative = s * np.log(pairs.p) + (n - s) * np.log1p(-pairs.p)
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


def _distinct(n: NDArrayInt, s: NDArrayInt) -> tuple[list[tuple[int, int]], NDArrayInt]:
    """The distinct pairs (n, s), and which of them each individual has."""
    pairs, where = np.unique(np.stack([n.ravel(), s.ravel()]), axis=1, return_inverse=True)
    return [(int(a), int(b)) for a, b in pairs.T], where.ravel()


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
