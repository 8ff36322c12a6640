"""How large a study: individuals × replicates, by simulated studies that are fitted exactly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from binreps.counts import CountTable, whole_numbers
from binreps.decide.elicit import percent
from binreps.decide.loss import Loss, check_loss
from binreps.errors import OptionError
from binreps.fits.base import checked_prior
from binreps.fits.batch import Progress, fit_many
from binreps.fits.exact.posterior import integrate
from binreps.model import Float, Prior, Rates, score_at
from binreps.options import check_level, check_whole, generator, kinds_checked, real, shown
from binreps.priors import draws
from binreps.table import Table

Reached = Literal["yes", "no", "perhaps"]

_FIRST = 20  # data sets of every design; where the verdict is not clear, twice as many, and again
_FINE = 1.1  # ratio of two sizes between which nobody looks for another
_CLEAR = 3.0  # Monte Carlo errors from the limit: no more data sets are needed
_ROUGH = 1e-2  # of a standard deviation, for widths alone
_TOLERANCE = 1e-4  # of a standard deviation: far below what one study differs from the next
_MOST_DESIGNS = 1000
_WEAK = (
    "with fewer than 3 replicates the data alone cannot tell the rates apart: such designs rest on the prior"
)


class Design(NamedTuple):
    """One design and what it achieves.

    `value` is what the goal is about: the width or margin that is kept with the probability asked for, or
    the mean share or loss. `probability`, for a width or margin, is that of keeping to the goal. `mc_error`
    is the Monte Carlo standard error of the probability, or else of the mean. `reached` is "perhaps" where
    the goal is less than 2 of them away.
    """

    individuals: int
    replicates: int
    tests: int
    cost: float
    value: float
    probability: float | None
    mc_error: float
    data_sets: int
    reached: Reached


@dataclass(frozen=True, repr=False)
class Plan:
    """What each design achieves; made by `plan`.

    Attributes
    ----------
    goal : str
        In words.
    designs : tuple of Design
        By replicates, then individuals.
    measure : str
        What `Design.value` is: "width", "margin", "inconclusive" or "risk".
    """

    goal: str
    designs: tuple[Design, ...]
    measure: str

    def table(self) -> Table:
        """A row for each design."""
        columns: dict[str, Any] = dict(zip(Design._fields, zip(*self.designs, strict=True), strict=True))
        if columns["probability"][0] is None:
            del columns["probability"]
        columns["cost"] = _plain_costs(columns["cost"])
        named = {self.measure if name == "value" else name: values for name, values in columns.items()}
        return Table(named, title=self.goal, note=self._note)

    @property
    def cheapest(self) -> Design | None:
        """The cheapest design that reaches the goal, beyond Monte Carlo error; None if none does."""
        good = [design for design in self.designs if design.reached == "yes"]
        return min(good, key=lambda design: (design.cost, design.tests, design.individuals), default=None)

    @property
    def closest(self) -> Design:
        """The design that does best, whatever it costs."""
        return min(self.designs, key=lambda design: (-(design.probability or 0.0), design.value, design.cost))

    @property
    def curve(self) -> Table:
        """The trade-off: for each number of replicates, the cheapest design that reaches the goal."""
        rows = []
        for replicates in sorted({design.replicates for design in self.designs}):
            same = tuple(design for design in self.designs if design.replicates == replicates)
            found = Plan(self.goal, same, self.measure).cheapest
            rows.append(
                (replicates, *((found.individuals, found.tests, found.cost) if found else (None,) * 3))
            )
        names = ("replicates", "individuals", "tests", "cost")
        columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
        return Table(columns | {"cost": _plain_costs(columns["cost"])})

    @property
    def answer(self) -> str:
        """The cheapest design, or the closest where none surely reaches the goal, in words."""
        if self.cheapest is None:
            return f"no design here surely reaches it; the closest: {self._words(self.closest)}"
        return f"cheapest: {self._words(self.cheapest)}"

    def __str__(self) -> str:
        curve = "" if self.cheapest is None else str(self.curve)
        return "\n".join(filter(None, [self.goal, self.answer, curve, self._note]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def _note(self) -> str:
        return _WEAK if min(design.replicates for design in self.designs) < 3 else ""

    def _words(self, design: Design) -> str:
        """One design in words."""
        size = (
            f"{design.individuals:,} individuals × {design.replicates:,} replicates = {design.tests:,} tests"
        )
        achieved = f"{self.measure} {design.value:.3g}"
        if design.probability is None:
            achieved += f" ± {design.mc_error:.1g}"
        else:
            achieved = f"probability {design.probability:.2f} ± {design.mc_error:.1g}"
        return f"{size}, cost {design.cost:,g} ({achieved})"


def _plain_costs(costs: Sequence[float | None]) -> list[float | None]:
    """Costs as whole numbers if all of them are."""
    whole = all(cost is None or cost == int(cost) for cost in costs)
    return [cost if cost is None or not whole else int(cost) for cost in costs]


@kinds_checked
def plan(
    truth: Rates | Prior,
    *,
    rng: np.random.Generator | int,
    prevalence_width: float | None = None,
    error_margin: float | None = None,
    inconclusive: float | None = None,
    risk: float | None = None,
    individuals: Iterable[int] = (25, 50, 100, 200, 400, 800),
    replicates: Iterable[int] = (2, 3, 4, 5, 6, 8),
    prior: Prior | None = None,
    loss: Loss | None = None,
    level: float = 0.9,
    assurance: float = 0.8,
    cost_per_individual: float = 0.0,
    cost_per_replicate: float = 1.0,
    max_tests: int | None = None,
    max_cost: float | None = None,
    refine: bool = False,
    data_sets: int = 400,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Plan:
    """How many individuals and replicates a study needs, from simulated studies fitted by `fit_bayes`.

    Each design (individuals × replicates) is simulated and fitted until it is clear whether it reaches the
    goal, at most `data_sets` times. The studies are nested: the k-th small one is part of the k-th large one,
    which makes differences between designs sharper than each of them. A grid of 6 × 6 designs takes less
    than a minute; longer with a vague prior as the truth, as tests no better than a coin are hard to fit.

    Parameters
    ----------
    truth : Rates or Prior
        What to plan for: rates taken as true, or a prior to draw them from, anew for each simulated study.
    rng : numpy.random.Generator or int
        The source of randomness, or a seed for one.
    prevalence_width, error_margin, inconclusive, risk : float
        The goal, one of: the interval of the prevalence is no wider than this; both error rates are known to
        ± this (half the width of their intervals); the expected share of inconclusive answers, or the
        expected loss per individual of the study, is no larger than this.
    individuals, replicates : iterable of int
        The designs to compare: all pairs. With a limit, `individuals` may be empty.
    prior : Prior, optional
        The prior that the study will be analysed with. Default: `truth` if that is a prior, else `Prior()`.
    loss : Loss, optional
        For `inconclusive` and `risk`; default `Loss()`.
    level : float
        Probability of the credible intervals.
    assurance : float
        For `prevalence_width` and `error_margin`: the probability with which a study must keep to it.
    cost_per_individual, cost_per_replicate : float
        A study costs individuals × (cost_per_individual + replicates × cost_per_replicate).
    max_tests, max_cost : float, optional
        Limits. Larger designs are left out, and for each number of replicates the largest design within the
        limit is added.
    refine : bool
        Whether to look between the numbers of individuals for designs that reach the goal and are cheaper
        than any found so far, until neighbours differ by a tenth.
    data_sets : int
        The most simulated studies per design.
    workers : int, optional
        As in `fit_many`, which fits the studies for a width or a margin.
    progress : callable, optional
        Called as `progress(done, total)`, in simulated studies; what turns out unnecessary counts as done.

    Returns
    -------
    Plan

    Examples
    --------
    >>> truth = Rates(0.3, 0.05, 0.1)
    >>> found = plan(truth, prevalence_width=0.2, individuals=[20, 60, 120], replicates=[3, 6], rng=1)
    >>> found.cheapest.individuals, found.cheapest.replicates, found.cheapest.tests
    (120, 3, 360)
    >>> found.curve
    replicates  individuals  tests  cost
             3          120    360   360
             6          120    720   720
    """
    analysis = checked_prior(prior) if prior is not None or not isinstance(truth, Prior) else truth
    given = (prevalence_width, error_margin, inconclusive, risk)
    goal = _goal(given, analysis, Loss() if loss is None else loss, level, assurance)
    source = generator(rng)
    check_whole("data_sets", data_sets, 2, 10**6)
    costs = tuple(
        _checked_cost(name, value)
        for name, value in (("individual", cost_per_individual), ("replicate", cost_per_replicate))
    )
    sizes = _designs(individuals, replicates, costs, max_tests, max_cost)
    found: dict[Size, Design] = {}
    while sizes:
        study = _Simulator(_checked_truth(truth), sizes, source)
        values = _simulated(study, goal, analysis, int(data_sets), workers, progress)
        for n, r in sizes:
            cost = n * (costs[0] + r * costs[1])
            found[n, r] = Design(n, r, n * r, cost, *goal.result(values[n, r]))
        sizes = _between(found, costs) if refine else []
    designs = tuple(found[size] for size in sorted(found, key=lambda size: size[::-1]))
    return Plan(goal.words, designs, goal.measure)


def _between(found: Mapping[Size, Design], costs: tuple[float, ...]) -> list[Size]:
    """For each number of replicates, a size between the last that fails and the first that reaches the goal.

    Only where that could be cheaper than the cheapest found so far.
    """
    good = [design for design in found.values() if design.reached == "yes"]
    best = min((design.cost for design in good), default=np.inf)
    sizes = []
    for r in sorted({r for _, r in found}):
        enough = min((design.individuals for design in good if design.replicates == r), default=0)
        short = max((n for n, other in found if other == r and n < enough), default=0)
        middle = round((short * enough) ** 0.5)
        fine = enough <= _FINE * short or not short < middle < enough
        if not fine and middle * (costs[0] + r * costs[1]) < best:
            sizes.append((middle, r))
    return sizes


# Goals -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Goal:
    """What a study shall achieve, and how to tell from simulated ones."""

    measure: str
    limit: float
    loss: Loss
    level: float
    assurance: float

    @property
    def has_assurance(self) -> bool:
        """Whether the goal is to keep to a limit with some probability, rather than on average."""
        return self.measure in ("width", "margin")

    @property
    def words(self) -> str:
        """The goal in words."""
        interval = f"{percent(self.level)} interval"
        sure = f"{self.limit:g} with probability {self.assurance:g}"
        return {
            "width": f"goal: width of the {interval} of the prevalence at most {sure}",
            "margin": f"goal: half the width of the {interval} of both error rates at most {sure}",
            "inconclusive": f"goal: mean share of inconclusive answers at most {self.limit:g}\n{self.loss}",
            "risk": f"goal: mean loss per individual at most {self.limit:g}\n{self.loss}",
        }[self.measure]

    def margin(self, values: Float) -> tuple[float, float]:
        """How far a design is on the right side of the goal, and the Monte Carlo error of that."""
        size = values.size
        if not self.has_assurance:
            return self.limit - float(values.mean()), float(values.std(ddof=1)) / size**0.5
        kept = int(np.sum(values <= self.limit))
        smoothed = (kept + 1) / (size + 2)  # none of 50 does not mean never
        return kept / size - self.assurance, float((smoothed * (1 - smoothed) / size) ** 0.5)

    def is_clear(self, values: Float) -> bool:
        """Whether more data sets would hardly change the verdict."""
        margin, error = self.margin(values)
        return abs(margin) > _CLEAR * error

    def result(self, values: Float) -> tuple[float, float | None, float, int, Reached]:
        """The last fields of a `Design`."""
        margin, error = self.margin(values)
        reached: Reached = "perhaps" if abs(margin) < 2 * error else "yes" if margin >= 0 else "no"
        if not self.has_assurance:
            return float(values.mean()), None, error, values.size, reached
        value = float(np.quantile(values, self.assurance, method="inverted_cdf"))
        return value, margin + self.assurance, error, values.size, reached


def _goal(
    values: tuple[float | None, ...], prior: Prior, loss: Loss, level: float, assurance: float
) -> _Goal:
    """The one goal that was given: of width, margin, share and risk."""
    names = ("prevalence_width", "error_margin", "inconclusive", "risk")
    measures = ("width", "margin", "inconclusive", "risk")
    highest = (1.0, prior.region.end / 2, 1.0, np.inf)
    given = [i for i, value in enumerate(values) if value is not None]
    if len(given) != 1:
        what = " and ".join(names[i] for i in given) or "none"
        raise OptionError(f"plan needs one goal of {', '.join(names)}, got {what}")
    i = given[0]
    limit: Any = values[i]
    if not 0 < limit < highest[i]:
        raise OptionError(f"{names[i]} must be between 0 and {highest[i]:g}, got {limit!r}")
    check_level(level)
    if not 0 < assurance < 1:
        raise OptionError(f"assurance must be between 0 and 1, got {assurance}")
    check_loss(loss)
    _ = loss.thresholds  # a cost of 0 gives no decisions: say so before the work
    return _Goal(measures[i], float(limit), loss, level, assurance)


# Simulated studies -------------------------------------------------------------------------------------


Size = tuple[int, int]
"""Individuals and replicates."""


class _Simulator:
    """Nested studies: the k-th of a larger design contains the k-th of a smaller one."""

    def __init__(self, truth: Rates | Prior, sizes: Sequence[Size], rng: np.random.Generator) -> None:
        self.truth, self.sizes, self.rng = truth, sizes, rng

    def rates(self, data_sets: int) -> Float:
        """True rates, one column for each data set."""
        if isinstance(self.truth, Rates):
            return np.repeat(np.array([*self.truth])[:, None], data_sets, axis=1)
        return draws(self.truth, data_sets, self.rng)

    def draw(self, data_sets: int) -> tuple[Float, dict[Size, NDArray[np.int64]]]:
        """True rates, and for each design the individuals by number of positives, one row per data set.

        Individuals are added from design to design; each class is split by one replicate after the other.
        """
        theta, p, q = rates = self.rates(data_sets)
        most = max(r for _, r in self.sizes)
        totals = {r: np.zeros((data_sets, r + 1), np.int64) for r in {r for _, r in self.sizes}}
        found: dict[Size, NDArray[np.int64]] = {}
        before = 0
        for n in sorted({n for n, _ in self.sizes}):
            positive = self.rng.binomial(n - before, theta)
            for members, chance in ((positive, 1 - q), (n - before - positive, p)):
                by_s = members[:, None]
                for r in range(1, most + 1):
                    hits = self.rng.binomial(by_s, chance[:, None])
                    by_s = np.pad(by_s - hits, ((0, 0), (0, 1))) + np.pad(hits, ((0, 0), (1, 0)))
                    if r in totals:
                        totals[r] += by_s
            found |= {(n, r): totals[r].copy() for r in totals}
            before = n
        return rates, {size: found[size] for size in self.sizes}


def _simulated(
    study: _Simulator,
    goal: _Goal,
    prior: Prior,
    most: int,
    workers: int | None,
    progress: Progress | None,
) -> dict[Size, Float]:
    """What the goal is about, for each design and study; more studies where the verdict is close."""
    values: dict[Size, Float] = {size: np.zeros(0) for size in study.sizes}
    unclear, done, total = list(values), 0, len(values) * most

    def report(now: int, _: int) -> None:
        if progress is not None:
            progress(done + now, total)

    while unclear:
        so_far = values[unclear[0]].size
        more = min(max(_FIRST, so_far), most - so_far)
        rates, studies = study.draw(more)
        tables = [_table(r, row) for n, r in unclear for row in studies[n, r]]
        truths = np.tile(rates, len(unclear)).T
        found = _measured(goal, tables, truths, prior, workers, report).reshape(len(unclear), more)
        for size, row in zip(unclear, found, strict=True):
            values[size] = np.concatenate([values[size], row])
        unclear = [x for x in unclear if values[x].size < most and not goal.is_clear(values[x])]
        done = total - sum(most - values[x].size for x in unclear)
        report(0, 0)
    return values


def _table(replicates: int, by_s: NDArray[np.int64]) -> CountTable:
    """The count table of one study."""
    return CountTable(np.full(replicates + 1, replicates), np.arange(replicates + 1), by_s)


def _measured(
    goal: _Goal,
    tables: list[CountTable],
    truths: Float,
    prior: Prior,
    workers: int | None,
    report: Callable[[int, int], None],
) -> Float:
    """The width, margin, share or risk of each study."""
    if not goal.has_assurance:
        result = np.empty(len(tables))
        for i, (table, rates) in enumerate(zip(tables, truths, strict=True)):
            result[i] = _decided(goal, table, rates, prior)
            report(i + 1, len(tables))
        return result
    if prior.better_than_chance:
        return _roughly_measured(goal, tables, prior, report)
    fits = fit_many(tables, prior=prior, level=goal.level, workers=workers, progress=report)
    widths = np.array([upper - lower for lower, upper in zip(fits.lower, fits.upper, strict=True)])
    widths = np.where(np.isnan(widths), np.inf, widths)  # a study that cannot be fitted keeps no limit
    return np.asarray(widths[0] if goal.measure == "width" else widths[1:].max(axis=0) / 2)


def _roughly_measured(
    goal: _Goal, tables: list[CountTable], prior: Prior, report: Callable[[int, int], None]
) -> Float:
    """Widths or margins to a percent: a ridge of p + q < 1 takes long to integrate further."""
    tails = np.array([(1 - goal.level) / 2, (1 + goal.level) / 2])
    axes = (0,) if goal.measure == "width" else (1, 2)
    result = np.empty(len(tables))
    for i, table in enumerate(tables):
        posterior = integrate(table, prior, tol=_ROUGH)
        widths = [float(np.diff(posterior.roughly(axis, tails))[0]) for axis in axes]
        result[i] = max(widths) / (1 if goal.measure == "width" else 2)
        report(i + 1, len(tables))
    return result


def _decided(goal: _Goal, table: CountTable, rates: Float, prior: Prior) -> float:
    """The share of inconclusive answers in one study, or its loss given the true rates.

    P(T = 1) at the true rates takes the place of a drawn status: the mean is the same, with less noise.
    """
    grid = integrate(table, prior, tol=_TOLERANCE).grid
    scores = [grid.expect(score_at(n, s, *grid.parameters)) for n, s in zip(table.n, table.s, strict=True)]
    answers = np.asarray(goal.loss.classify(np.minimum(scores, 1.0)))
    if goal.measure == "inconclusive":
        return float(np.average(answers == 0.5, weights=table.weight))
    risks = goal.loss.risks(score_at(table.n, table.s, *rates))
    each = np.take_along_axis(risks, (2 * answers).astype(int)[:, None], axis=1)[:, 0]
    return float(np.average(each, weights=table.weight))


# Options -----------------------------------------------------------------------------------------------


def _designs(
    individuals: Iterable[int],
    replicates: Iterable[int],
    costs: tuple[float, ...],
    max_tests: float | None,
    max_cost: float | None,
) -> list[Size]:
    """All pairs within the limits, and the largest of each number of replicates."""
    limited = max_tests is not None or max_cost is not None
    many, few = (
        _sizes("individuals", individuals, least=0 if limited else 1),
        _sizes("replicates", replicates),
    )
    sizes: set[Size] = set()
    for r in few:
        largest = _largest(r, costs, max_tests, max_cost)
        sizes |= {(n, r) for n in many if n <= largest}
        if 0 < largest < np.inf:
            sizes.add((int(largest), r))
    if not sizes:
        raise OptionError(f"the limits leave no design, with max_tests {max_tests} and max_cost {max_cost}")
    if len(sizes) > _MOST_DESIGNS:
        raise OptionError(f"individuals × replicates must give at most {_MOST_DESIGNS:,} designs")
    return sorted(sizes)


def _largest(r: int, costs: tuple[float, ...], max_tests: float | None, max_cost: float | None) -> float:
    """The most individuals with r replicates that the limits allow; infinite without limits."""
    largest = np.inf
    for name, limit, each in (("max_tests", max_tests, r), ("max_cost", max_cost, costs[0] + r * costs[1])):
        if limit is not None and not 0 < real(limit) < np.inf:
            raise OptionError(f"{name} must be a finite number > 0, got {shown(limit)}")
        if limit is not None and each > 0:
            largest = min(largest, np.floor(limit / each * (1 + 1e-12)))  # 0.3 / 0.1 is 3
    return float(largest)


def _sizes(name: str, values: Iterable[int], least: int = 1) -> list[int]:
    """Distinct whole numbers from 1 on, at least so many."""
    given = [values] if isinstance(values, int) else list(values)
    sizes = whole_numbers(name, given)
    if sizes.size < least or sizes.min(initial=1) < 1:
        raise OptionError(f"{name} must be whole numbers ≥ 1, got {given}")
    return sorted(set(sizes.tolist()))


def _checked_truth(truth: object) -> Rates | Prior:
    """Three rates, or a prior."""
    if isinstance(truth, Prior):
        return truth
    if isinstance(truth, Rates) and all(isinstance(rate, float) and rate == rate for rate in truth):
        return truth
    raise OptionError(
        f"truth must be Rates of three numbers, or a Prior to draw them from, got {shown(truth)}"
    )


def _checked_cost(name: str, value: float) -> float:
    """A cost, finite and ≥ 0."""
    if not 0 <= value <= sys.float_info.max:
        raise OptionError(f"cost_per_{name} must be a finite cost ≥ 0, got {value!r}")
    return float(value)
