"""From what people can say to a prior: Beta shapes, and what they imply, shown back.

A rate is "prevalence", "false_positive" or "false_negative", or else "sensitivity" or "specificity", which
are 1 − an error rate. Error rates are below ½ in this model: their Beta distributions are cut there, and each
quantile here is that of the cut one. With `better_than_chance=True` a rate may be anywhere between 0 and 1,
and what is cut off is where the two error rates add up to more than 1: little if something is said of both,
and `implied` shows what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln

from binreps.errors import FitError, OptionError
from binreps.fits.base import Fit, check_one_population
from binreps.fits.marginal import find_root
from binreps.model import NAMES, Prior
from binreps.options import check_kind, check_level, kinds_checked, numbers, real, shown
from binreps.priors import quantile
from binreps.table import Table

COMPLEMENTS = {"sensitivity": "false_negative", "specificity": "false_positive"}
"""The rates that are 1 − a rate of the model."""

RATES = (*NAMES, *COMPLEMENTS)

SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that are shown back."""

_LEAST_SHAPE, _MOST_SUM = 1e-3, 1e9
_WAY_OUT = "better_than_chance=True takes a test that may miss more than it finds"
_CLOSE = 1e-6  # of a probability: how well two quantiles must be met


@dataclass(frozen=True, repr=False)
class Belief:
    """What is believed of one rate, as a Beta distribution; `prior` puts several together.

    Attributes
    ----------
    rate : str
        The rate that was spoken of.
    shapes : pair of float
        Beta shapes (a, b) of the *model's* rate: for "sensitivity" those of the false-negative rate.
    said : str
        What they were made from, in words.
    better_than_chance : bool
        Whether it is meant for a prior that is better than chance: then the shapes are those of a Beta
        distribution on (0, 1), and else of one that is cut at ½ if the rate is an error rate.
    """

    rate: str
    shapes: tuple[float, float]
    said: str
    better_than_chance: bool = False

    @property
    def model_rate(self) -> str:
        """The rate of the model that the shapes are for."""
        return COMPLEMENTS.get(self.rate, self.rate)

    @property
    def end(self) -> float:
        """Where the Beta distribution is cut, if below 1."""
        return _end(self.rate, self.better_than_chance)

    def quantile(self, probability: ArrayLike) -> Any:
        """Quantiles of the rate that was spoken of, its cut at ½ included.

        Examples
        --------
        >>> belief = Belief("sensitivity", (1, 1), "nothing")
        >>> belief.quantile([0.0, 0.5, 1.0])
        array([0.5 , 0.75, 1.  ])
        """
        u = np.asarray(probability, dtype=float)
        if not np.all((u >= 0) & (u <= 1)):
            raise OptionError(f"probability must be between 0 and 1, got {u}")
        turned = self.rate in COMPLEMENTS
        x = _quantile(*self.shapes, self.end, 1 - u if turned else u)
        return (1 - x if turned else x)[()]

    def table(self, probabilities: Sequence[float] = SHOWN) -> Table:
        """The shapes and the quantiles they imply."""
        a, b = self.shapes
        quantiles = zip(probabilities, np.atleast_1d(self.quantile(list(probabilities))), strict=True)
        columns: dict[str, Any] = {"rate": [self.rate], "a": [a], "b": [b]} | {
            percent(u): [x] for u, x in quantiles
        }
        return Table(
            columns, title=self.said, note=f"a, b: Beta shapes{self._kind}; then quantiles{self._rest}"
        )

    @property
    def _kind(self) -> str:
        """What the shapes are of."""
        cut = "" if self.end == 1 else ", cut to (0, ½)"
        return "" if self.rate == "prevalence" else f" of the {self.model_rate} rate{cut}"

    @property
    def _rest(self) -> str:
        """What the prior will cut off, if better than chance."""
        if self.rate == "prevalence" or not self.better_than_chance:
            return ""
        share = _cut_off(prior(self))
        return (
            f"\nthe prior cuts off where the error rates add up to more than 1: {percent(share)} of this, "
            "unless something is said of the other error rate too"
        )

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@kinds_checked
def guess(
    rate: str,
    expect: float,
    *,
    surprised_above: float | None = None,
    surprised_below: float | None = None,
    chance: float = 0.05,
    better_than_chance: bool = False,
) -> Belief:
    """From a best guess and a value that would be a surprise.

    The best guess is the *median*: the rate is as likely above it as below. (As a mode it would leave out
    every prior that falls from 0 on, which is what a rare disease may ask for.) Beyond the surprising value
    the rate lies with probability `chance`. At most one Beta distribution meets both.

    Parameters
    ----------
    rate : str
    expect : float
        The best guess.
    surprised_above, surprised_below : float
        One of the two: "I would be surprised if it were above (below) this".
    chance : float
        The probability of that surprise.
    better_than_chance : bool
        Whether error rates may be above ½, for a prior with the same switch.

    Returns
    -------
    Belief

    Examples
    --------
    >>> print(guess("prevalence", 0.05, surprised_above=0.2))
    expect 0.05, surprised (5%) above 0.2
    rate            a       b     5%    25%    50%    75%    95%
    prevalence  0.991  13.354  0.004  0.021  0.050  0.098  0.200
    a, b: Beta shapes; then quantiles
    """
    _check_rate(rate)
    if (surprised_above is None) == (surprised_below is None):
        raise OptionError("guess needs one of surprised_above and surprised_below")
    if not 0 < real(chance) < 0.5:
        raise OptionError(f"chance must be between 0 and ½, got {shown(chance)}")
    _check_possible(rate, "expect", expect, better_than_chance)
    side = "above" if surprised_above is not None else "below"
    end = surprised_above if surprised_above is not None else surprised_below
    assert end is not None
    _check_possible(rate, f"surprised_{side}", end, better_than_chance)
    if end == expect or (end > expect) != (side == "above"):
        raise OptionError(f"surprised_{side} must be {side} expect, {expect:g}, got {end:g}")
    said = f"expect {expect:g}, surprised ({percent(chance)}) {side} {end:g}"
    surprise = (end, 1 - chance if side == "above" else chance)
    low, high = sorted([(expect, 0.5), surprise])
    return _from_quantiles(rate, low, high, said, better_than_chance)


@kinds_checked
def between(
    rate: str, low: float, high: float, *, level: float = 0.9, better_than_chance: bool = False
) -> Belief:
    """From a range that holds with some probability, as likely missed below as above.

    Examples
    --------
    >>> print(between("specificity", 0.9, 0.99))
    90% between 0.9 and 0.99
    rate             a       b     5%    25%    50%    75%    95%
    specificity  2.355  49.726  0.900  0.940  0.960  0.976  0.990
    a, b: Beta shapes of the false_positive rate, cut to (0, ½); then quantiles

    A test that may miss more than it finds:

    >>> smear = between("sensitivity", 0.2, 0.6, better_than_chance=True)
    >>> print(implied(prior(smear, between("specificity", 0.95, 0.99, better_than_chance=True))))
    rate               5%    25%    50%    75%    95%
    prevalence      0.006  0.146  0.500  0.854  0.994
    false_positive  0.010  0.018  0.025  0.034  0.050
    false_negative  0.400  0.526  0.613  0.696  0.800
    sensitivity     0.200  0.304  0.387  0.474  0.600
    specificity     0.950  0.966  0.975  0.982  0.990
    """
    _check_rate(rate)
    check_level(level)
    _check_possible(rate, "low", low, better_than_chance)
    _check_possible(rate, "high", high, better_than_chance)
    if low >= high:
        raise OptionError(f"low must be below high, got {low:g} and {high:g}")
    tail = (1 - level) / 2
    said = f"{percent(level)} between {low:g} and {high:g}"
    return _from_quantiles(rate, (low, tail), (high, 1 - tail), said, better_than_chance)


@kinds_checked
def study(
    rate: str,
    *,
    of: float,
    count: float | None = None,
    share: float | None = None,
    discount: float = 1.0,
    better_than_chance: bool = False,
) -> Belief:
    """From an earlier study: `count` of `of`, or a `share` of them, as in "sensitivity 95 % in 200 patients".

    The shapes are 1 + discount · count and 1 + discount · (of − count): from a flat start, so that the most
    likely rate is the study's own. The true status must have been known there: the positives of an imperfect
    test among all tested are not the prevalence.

    Parameters
    ----------
    rate : str
    of : float
        How many individuals (for an error rate: of the class concerned) the earlier study had.
    count, share : float
        One of the two: how many of them, or what share of them, had the event that `rate` names.
    discount : float
        How many individuals of the study at hand one of the earlier study is worth: 1 if both are alike, less
        the more they differ.
    better_than_chance : bool
        Whether error rates may be above ½, for a prior with the same switch.

    Returns
    -------
    Belief

    Examples
    --------
    >>> print(study("sensitivity", share=0.95, of=200, discount=0.5))
    190 of 200, each counted as 0.5
    rate             a       b     5%    25%    50%    75%    95%
    sensitivity  6.000  96.000  0.899  0.927  0.944  0.958  0.974
    a, b: Beta shapes of the false_negative rate, cut to (0, ½); then quantiles
    """
    _check_rate(rate)
    if (count is None) == (share is None):
        raise OptionError("study needs one of count and share")
    if not 0 < real(of) < np.inf:
        raise OptionError(f"of must be a finite number > 0, got {shown(of)}")
    if share is not None and not 0 <= real(share) <= 1:
        raise OptionError(f"share must be from 0 to 1, got {shown(share)}")
    events = share * of if share is not None else count
    assert events is not None
    if not 0 <= real(events) <= of:
        raise OptionError(f"count must be from 0 to of, {of:g}, got {shown(events)}")
    if not 0 < real(discount) <= 1:
        raise OptionError(f"discount must be above 0 and at most 1, got {shown(discount)}")
    hits = of - events if rate in COMPLEMENTS else events
    shapes = (1 + discount * hits, 1 + discount * (of - hits))
    if hits > of * _end(rate, better_than_chance):
        name = COMPLEMENTS.get(rate, rate)
        rule = f"the {name} rate must be at most ½ in this model"
        raise OptionError(f"{rule}, got {hits:g} of {of:g}; {_WAY_OUT}")
    worth = "" if discount == 1 else f", each counted as {discount:g}"
    return Belief(rate, shapes, f"{events:g} of {of:g}{worth}", better_than_chance)


@kinds_checked
def earlier(fit: Fit, *, discount: float = 1.0) -> tuple[Belief, Belief, Belief]:
    """From an earlier Bayesian fit: the Beta distributions with the 5 % and 95 % quantiles of its posterior.

    Never for the same data again: they would count twice, and every interval would be too narrow. What the
    posterior knew of the three rates jointly (their correlation) is lost; to keep it, add the count tables
    and fit once.

    Parameters
    ----------
    fit : BayesFit
        Or any fit with an `.interval(level)`.
    discount : float
        As in `study`: the power to which the earlier evidence is raised, a → 1 + discount · (a − 1).

    Returns
    -------
    three Beliefs
        Of prevalence, false-positive and false-negative rate.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> last_year = fit_bayes(CountTable([4] * 5, range(5), [50, 18, 6, 9, 17]))
    >>> [tuple(round(shape, 1) for shape in belief.shapes) for belief in earlier(last_year)]
    [(24.2, 58.8), (18.0, 178.2), (9.9, 59.0)]
    """
    if not 0 < real(discount) <= 1:
        raise OptionError(f"discount must be above 0 and at most 1, got {shown(discount)}")
    check_one_population(fit)
    if fit.posterior.certain:
        raise FitError(f"a prior is made of the posterior of one population, got {fit.method}")
    ends = zip(NAMES, *fit.interval(0.9), strict=True)
    worth = "" if discount == 1 else f", each individual counted as {discount:g}"
    said = f"an earlier fit to {fit.counts.individuals:,} individuals{worth}; not for the same data again"
    better = fit.prior is not None and fit.prior.better_than_chance
    beliefs = [_from_quantiles(name, (low, 0.05), (high, 0.95), said, better) for name, low, high in ends]
    powers = [tuple(1 + discount * (shape - 1) for shape in belief.shapes) for belief in beliefs]
    first, second, third = (
        Belief(x.rate, (a, b), said, better) for x, (a, b) in zip(beliefs, powers, strict=True)
    )
    return first, second, third


@kinds_checked
def prior(*beliefs: Belief) -> Prior:
    """The prior made of some beliefs, at most one for each rate; the others keep the defaults of `Prior`.

    Examples
    --------
    >>> prior(study("specificity", count=99, of=100)).false_positive
    (2.0, 100.0)
    """
    shapes: dict[str, Any] = {}
    for belief in beliefs:
        if not isinstance(belief, Belief):
            raise OptionError(f"prior takes beliefs, such as guess(…) returns, got {belief!r}")
        if belief.model_rate in shapes:
            raise OptionError(f"prior takes one belief for each rate, got two for {belief.model_rate}")
        shapes[belief.model_rate] = belief.shapes
    errors = [belief for belief in beliefs if belief.rate != "prevalence"]
    if len({belief.better_than_chance for belief in errors}) > 1:
        got = " and ".join(f"{belief.better_than_chance} for {belief.rate}" for belief in errors)
        raise OptionError(f"better_than_chance must be the same for both error rates, got {got}")
    return Prior(**shapes, better_than_chance=any(belief.better_than_chance for belief in beliefs))


@kinds_checked
def implied(prior: Prior, probabilities: Sequence[float] = SHOWN) -> Table:
    """The quantiles that a prior implies, for the three rates, sensitivity and specificity.

    Examples
    --------
    >>> print(implied(Prior()))
    rate               5%    25%    50%    75%    95%
    prevalence      0.006  0.146  0.500  0.854  0.994
    false_positive  0.094  0.221  0.326  0.416  0.483
    false_negative  0.094  0.221  0.326  0.416  0.483
    sensitivity     0.517  0.584  0.674  0.779  0.906
    specificity     0.517  0.584  0.674  0.779  0.906
    """
    check_kind("prior", prior, Prior)
    u = numbers("probabilities", list(probabilities))
    rows = np.array(
        [
            1 - quantile(prior, COMPLEMENTS[rate], 1 - u) if rate in COMPLEMENTS else quantile(prior, rate, u)
            for rate in RATES
        ]
    )
    columns = {percent(u): column for u, column in zip(probabilities, rows.T, strict=True)}
    return Table({"rate": list(RATES), **columns})


@kinds_checked
def percent(probability: float) -> str:
    """A probability as it heads a column.

    Examples
    --------
    >>> percent(0.05), percent(0.975)
    ('5%', '97.5%')
    """
    return f"{100 * probability:.3g}%"


def _cut_off(prior: Prior) -> float:
    """How much of the product of the two Beta distributions lies outside the region."""
    both = sum(float(betaln(*shapes)) for shapes in (prior.false_positive, prior.false_negative))
    return float(-np.expm1(prior.region.log_mass(prior.false_positive, prior.false_negative) - both))


# Beta distributions ------------------------------------------------------------------------------------


def _cumulative(a: float, b: float, end: float, x: float) -> float:
    """P(X ≤ x) for a Beta distribution cut to (0, end)."""
    whole = float(betainc(a, b, end))
    return float(betainc(a, b, x)) / whole if whole > 0 else 0.0  # all of it squeezed against the end


def _quantile(a: float, b: float, end: float, u: Any) -> Any:
    """The inverse of `_cumulative`."""
    return np.minimum(betaincinv(a, b, u * betainc(a, b, end)), end)


Point = tuple[float, float]
"""A value and the probability below it."""


def _from_quantiles(rate: str, low: Point, high: Point, said: str, better: bool = False) -> Belief:
    """The Beta distribution through two quantiles, turned round for 1 − a rate."""
    if rate in COMPLEMENTS:
        (x, u), (y, v) = low, high
        low, high = (1 - y, 1 - v), (1 - x, 1 - u)
    end = _end(rate, better)
    shapes = _match(low, high, end)
    if shapes is None:
        where = "on (0, 1)" if end == 1 else "cut at ½, where error rates end in this model,"
        raise OptionError(f"no Beta distribution {where} fits what was said of {rate}: {said}; move an end")
    return Belief(rate, shapes, said, better)


def _match(low: Point, high: Point, end: float) -> tuple[float, float] | None:
    """Shapes that meet two quantiles, or None where none does.

    At a given a + b there is one a that meets the first, as the distributions are ordered by it; and the
    larger a + b, the more of the mass lies between the two. Two members cannot share both quantiles: their
    log density ratio, α log x + β log(1−x) + c, changes its sign twice at most.
    """

    def shapes(log_sum: float) -> tuple[float, float]:
        total = np.exp(log_sum)

        def excess(z: float) -> float:
            share = 1 / (1 + np.exp(-z))
            return low[1] - _cumulative(total * share, total * (1 - share), end, low[0])

        share = 1 / (1 + np.exp(-find_root(excess, -25.0, 25.0, tol=1e-13)))
        return float(total * share), float(total * (1 - share))

    def above(log_sum: float) -> float:
        a, b = shapes(log_sum)
        if _cumulative(a, b, end, low[0]) > low[1] + _CLOSE:  # cut at ½: too much below, whatever a
            return -1.0
        return _cumulative(a, b, end, high[0]) - high[1]

    a, b = shapes(find_root(above, np.log(2 * _LEAST_SHAPE), np.log(_MOST_SUM), tol=1e-12))
    missed = [abs(_cumulative(a, b, end, x) - u) for x, u in (low, high)]
    return (a, b) if max(missed) < _CLOSE and min(a, b) >= _LEAST_SHAPE else None


# Options -----------------------------------------------------------------------------------------------


def _check_rate(rate: object) -> None:
    """Refuse a name that is no rate."""
    if not isinstance(rate, str) or rate not in RATES:
        raise OptionError(f"rate must be one of {', '.join(RATES)}, got {shown(rate)}")


def _end(rate: str, better_than_chance: bool) -> float:
    """The largest value of the model's rate, alone."""
    if not isinstance(better_than_chance, bool):
        raise OptionError(f"better_than_chance must be True or False, got {shown(better_than_chance)}")
    return 1.0 if rate == "prevalence" or better_than_chance else 0.5


def _check_possible(rate: str, name: str, value: float, better_than_chance: bool) -> None:
    """Refuse a value that the rate cannot have in this model."""
    end = _end(rate, better_than_chance)
    low, high = (1 - end, 1.0) if rate in COMPLEMENTS else (0.0, end)
    if not low < real(value) < high:
        advice = f"; {_WAY_OUT}" if end < 1 and 0 < real(value) < 1 else ""
        raise OptionError(
            f"{name} must be between {low:g} and {high:g} for {rate}, got {shown(value)}{advice}"
        )
