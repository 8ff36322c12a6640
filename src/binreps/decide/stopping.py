"""Another replicate, or enough? For one individual by backward induction, for many by what each is worth.

Of an individual with s positives among n replicates, k more replicates give j positives in a given order, and
the status is positive or negative, with the probabilities

    m₁(k, j) = E[w₁ (1−q)^j q^(k−j)],     m₀(k, j) = E[w₀ p^j (1−p)^(k−j)]

under the posterior of the rates, where w₁ = θ(1−q)^s q^(n−s), w₀ = (1−θ)p^s(1−p)^(n−s) for a new individual
(up to a constant) and w₁ = Y_L(n, s), w₀ = 1 − Y_L(n, s) for one whose results are in the fit already. Then
P = m₁ / (m₁ + m₀), and the next result is positive with probability m(k+1, j+1) / m(k, j), m = m₁ + m₀. What
the individual's own results say about the rates is included, and P is a martingale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from binreps.counts import UNKNOWN, CountTable
from binreps.decide.loss import Loss, check_loss, decision_words
from binreps.errors import DataError, FitError, OptionError
from binreps.fits.base import Fit, check_counts, check_one_population
from binreps.fits.posterior import Nodes
from binreps.model import ALIKE, Float, Model, Records, checked_pairs, score_at
from binreps.options import check_whole, kinds_checked, real, shown
from binreps.table import Table

MEASURE = "measure"
"""The action that is no answer: one more replicate."""

SYMBOLS = {"negative": "-", "inconclusive": "?", "positive": "+", MEASURE: "»"}
"""The actions in the chart of a `StoppingTable`; a dot is a result that nobody comes to."""

_MOST_REPLICATES = 500
_MOST_AHEAD = 100
_MOST_BUDGET = 2**53
_TOLERANCE = 1e-8  # of a probability on the lattice, between two grids
_IMPOSSIBLE = -np.finfo(float).max  # the log of a chance that rounded to 0, of which nothing is left
_ROUNDING = 1e-12  # relative: measuring again must save more than this


@dataclass(frozen=True, repr=False)
class StoppingTable:
    """For every result so far: answer, or measure again; made by `stopping_table`.

    Attributes
    ----------
    loss : Loss
    cost_per_replicate : float
    max_replicates : int
    start : pair of int
        (n, s) of the first row.
    new : bool
        Whether the individual's results at `start` are outside the fit.
    error : float
        Numerical error of the probabilities; of draws, how far half of them differ from all.
    """

    _rows: Table
    loss: Loss
    cost_per_replicate: float
    max_replicates: int
    start: tuple[int, int]
    new: bool
    error: float

    def table(self) -> Table:
        """A row for each (n, s).

        Its columns are probability, next_positive (probability that the next replicate is positive), action,
        expected_cost (loss and replicates from here on),
        expected_replicates (further ones), conclusive (probability of ending with a negative or positive
        answer) and reached (probability that someone who starts at `start` and does what the table says comes
        through here).
        """
        return self._rows

    @property
    def expected_cost(self) -> float:
        """Loss and replicates to expect at the start, by doing what the table says."""
        return float(self._rows["expected_cost"][0])

    @property
    def expected_replicates(self) -> float:
        """Further replicates to expect at the start."""
        return float(self._rows["expected_replicates"][0])

    @property
    def conclusive(self) -> float:
        """Probability at the start of ending with a negative or a positive answer."""
        return float(self._rows["conclusive"][0])

    def action(self, n: int, s: int) -> str:
        """What to do with s positives among n replicates: "measure", or the answer in words."""
        return str(self.row(n, s)["action"])

    def row(self, n: int, s: int) -> dict[str, Any]:
        """The row of the table for s positives among n replicates."""
        pair = checked_pairs(n, s)
        if pair[0].shape != ():
            raise OptionError(f"a row is of one n and one s, got shape {pair[0].shape}")
        k, j = int(pair[0]) - self.start[0], int(pair[1]) - self.start[1]
        if not 0 <= j <= k <= self.max_replicates - self.start[0]:
            began = f"n = {self.start[0]}, s = {self.start[1]}"
            raise OptionError(
                f"the table goes from {began} to n = {self.max_replicates}, got n = {n}, s = {s}"
            )
        place = k * (k + 1) // 2 + j
        return {name: values[place] for name, values in self._rows.columns.items()}

    @kinds_checked
    def chart(self, least: float = 1e-4) -> str:
        """One line for each n, one sign for each s, where someone comes with at least this probability."""
        lines: dict[int, list[str]] = {}
        for row in self._rows:
            reached = row["reached"] >= max(least, 1e-300)
            lines.setdefault(row["n"], []).append(SYMBOLS[row["action"]] if reached else ".")
        body = [f"{n:>3}  {' '.join(signs).rstrip(' .')}" for n, signs in lines.items() if {*signs} != {"."}]
        legend = ", ".join(f"{sign} {word}" for word, sign in SYMBOLS.items())
        s = self.start[1]
        return "\n".join(
            [f"  n  s = {s}, {s + 1}, …", *body, f"{legend}, . with probability below {least:g}"]
        )

    def __str__(self) -> str:
        spent = self.expected_replicates * self.cost_per_replicate
        words = (
            f"expected cost {self.expected_cost:.3g}, of which {spent:.3g} for "
            f"{self.expected_replicates:.3g} replicates; conclusive with probability {self.conclusive:.4g}"
        )
        return "\n".join([self.chart(), words, self._rows.note])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._rows._repr_html_()


@kinds_checked
def stopping_table(
    fit: Fit,
    loss: Loss,
    *,
    cost_per_replicate: float,
    max_replicates: int,
    start: tuple[int, int] = (0, 0),
    new: bool = False,
) -> StoppingTable:
    """When to stop measuring one individual, and what to answer then.

    With P the probability of being positive and π that of a positive next result, both exact under the fit,

        V(n, s) = min{ cheapest answer at P(n, s),  cost + π V(n+1, s+1) + (1−π) V(n+1, s) },

    computed from n = `max_replicates` backwards. Where both cost the same, stop. No rule for this individual
    costs less on average, be it a fixed number of replicates or another; what the results teach about the
    rates for *other* individuals is not counted.

    Parameters
    ----------
    fit : any fit
        A posterior is learnt from as the individual's results come in. The rates of a point fit are fixed:
        what is not known about them is left out, and its probabilities are those of `.predict`.
    loss : Loss
        What wrong and inconclusive answers cost.
    cost_per_replicate : float
        The cost of one more replicate, in the same unit, ≥ 0.
    max_replicates : int
        The most replicates one individual can have, those at `start` included; up to 500.
    start : pair of int
        (n, s) from where to begin.
    new : bool
        False if the individual with the results at `start` is one of those the fit was made from: these
        results are then in the posterior and must not count again. Further results are new in either case.

    Returns
    -------
    StoppingTable

    Examples
    --------
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([4] * 5, range(5), [50, 18, 6, 9, 17]))
    >>> best = stopping_table(fit, Loss(inconclusive=0.2), cost_per_replicate=0.01, max_replicates=8)
    >>> best.action(2, 0), best.action(2, 1)
    ('negative', 'measure')
    >>> print(best.chart())
      n  s = 0, 1, …
      0  »
      1  » »
      2  - » »
      3  . » » +
      4  . » » »
      5  . - » » +
      6  . . » » +
      7  . . - » »
      8  . . . - ? +
    - negative, ? inconclusive, + positive, » measure, . with probability below 0.0001
    >>> f"{best.expected_cost:.4f}", f"{best.expected_replicates:.3f}"
    ('0.0402', '3.004')
    """
    cost = _checked_cost(cost_per_replicate)
    n, s = _checked_start(start)
    check_whole("max_replicates", max_replicates, n, n + _MOST_REPLICATES)
    check_one_population(fit)
    check_loss(loss)
    paths = _paths(fit, n, s, max_replicates - n, new=new)
    plan = _induction(paths.probability, paths.next_positive, loss, cost)
    k, j = np.tril_indices(max_replicates - n + 1)
    actions = np.where(plan.measure, MEASURE, _words(loss, paths.probability))
    columns: dict[str, Any] = {
        "n": n + k,
        "s": s + j,
        "probability": paths.probability[k, j],
        "next_positive": paths.next_positive[k, j],
        "action": actions[k, j],
        "expected_cost": plan.cost[k, j],
        "expected_replicates": plan.replicates[k, j],
        "conclusive": plan.conclusive[k, j],
        "reached": _reached(plan.measure, paths.next_positive)[k, j],
    }
    table = Table(columns, note=f"a replicate costs {cost:g}\n{loss}")
    return StoppingTable(table, loss, cost, int(max_replicates), (n, s), new, paths.error)


# One individual ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Paths:
    """Where further results lead: arrays over (k, j), k further replicates with j positives; NaN for j > k.

    The arrays may have leading axes, one entry for each individual or cell.
    """

    probability: Float
    next_positive: Float
    error: float


@dataclass(frozen=True)
class _Plan:
    """The best actions over (k, j) and what to expect from there on."""

    measure: NDArray[np.bool_]
    cost: Float
    replicates: Float
    conclusive: Float


def _induction(probability: Float, next_positive: Float, loss: Loss, cost: Any) -> _Plan:
    """Backward induction; `cost` is a number or one for each entry of the leading axes."""
    stop = loss.risks(probability).min(axis=-1)
    measure, value = _going_on(stop, next_positive, cost)
    replicates = np.zeros_like(stop)
    conclusive = np.where(np.isnan(stop), np.nan, (loss.classify(probability) != 0.5).astype(float))
    for k in range(stop.shape[-1] - 2, -1, -1):
        here = (..., k, slice(0, k + 1))
        replicates[here] = np.where(measure[here], 1 + _ahead(replicates, next_positive, k), 0.0)
        conclusive[here] = np.where(measure[here], _ahead(conclusive, next_positive, k), conclusive[here])
    return _Plan(measure, value, replicates, conclusive)


def _going_on(stop: Float, next_positive: Float, cost: Any) -> tuple[NDArray[np.bool_], Float]:
    """Where measuring again is cheaper than to stop, and what the best actions cost."""
    price = np.asarray(cost, dtype=float)[..., None]
    value, measure = stop.copy(), np.zeros(stop.shape, bool)
    for k in range(stop.shape[-1] - 2, -1, -1):
        here = (..., k, slice(0, k + 1))
        going_on = price + _ahead(value, next_positive, k)
        better = measure[here] = going_on < stop[here] * (1 - _ROUNDING)
        value[here] = np.where(better, going_on, stop[here])
    return measure, value


def _ahead(values: Float, next_positive: Float, k: int) -> Float:
    """What to expect of values after one more replicate than k."""
    pi = next_positive[..., k, : k + 1]
    return np.asarray(pi * values[..., k + 1, 1 : k + 2] + (1 - pi) * values[..., k + 1, : k + 1])


def _reached(measure: NDArray[np.bool_], next_positive: Float) -> Float:
    """The probability of coming through each (k, j) by doing what the table says."""
    reached = np.zeros(measure.shape)
    reached[0, 0] = 1.0
    for k in range(len(measure) - 1):
        on = reached[k, : k + 1] * measure[k, : k + 1]
        reached[k + 1, 1 : k + 2] += on * next_positive[k, : k + 1]
        reached[k + 1, : k + 1] += on * (1 - next_positive[k, : k + 1])
    return reached


def _paths(fit: Fit, n: int, s: int, depth: int, *, new: bool) -> _Paths:
    """All that can happen to one individual, from the fit's posterior or from its fixed rates."""
    if fit.posterior.certain:
        return _fixed_paths(fit, n, s, depth)
    found, error = fit.posterior.settle(
        lambda nodes: _node_paths(fit.model, nodes, n, s, depth, new), _TOLERANCE
    )
    return _Paths(found[0], found[1], max(error, 1e-15))


def _fixed_paths(fit: Fit, n: int, s: int, depth: int) -> _Paths:
    """With fixed rates: P = Y_L, and the next result is positive with probability P(1−q) + (1−P)p."""
    rates = fit.rates
    if any(rate != rate for rate in rates):
        raise FitError(f"what comes next needs three defined rates, got {rates} from the {fit.method}")
    k, j = np.tril_indices(depth + 1)
    probability = np.full((depth + 1, depth + 1), np.nan)
    probability[k, j] = score_at(n + k, s + j, *rates)
    return _Paths(
        probability, probability * rates.sensitivity + (1 - probability) * rates.false_positive, 0.0
    )


def _node_paths(model: Model, nodes: Nodes, n: int, s: int, depth: int, new: bool) -> Float:
    """P and the chance of a positive next result over (k, j), under the posterior on one set of nodes.

    m₁ and m₀ are integrated for k = depth + 1 alone: m(k, j) = m(k+1, j) + m(k+1, j+1), exactly.
    """
    last = _independent_row if model.independent else _exchangeable_row
    log_m1, log_m0 = (_log_lattice(row) for row in last(model, nodes, n, s, depth + 1, new))
    log_m = np.logaddexp(log_m1, log_m0)
    inside = np.tri(depth + 1, dtype=bool)
    probability, next_positive = (np.full(inside.shape, np.nan) for _ in range(2))
    probability[inside] = expit((log_m1[:-1, :-1])[inside] - (log_m0[:-1, :-1])[inside])
    next_positive[inside] = np.exp((log_m[1:, 1:])[inside] - (log_m[:-1, :-1])[inside])
    return np.stack([probability, np.minimum(next_positive, 1.0)])


def _log_lattice(last: Float) -> Float:
    """log m(k, j) over (k, j) from its last row; −∞ for j > k."""
    depth = last.size - 1
    lattice = np.full((depth + 1, depth + 1), -np.inf)
    lattice[-1] = last
    for k in range(depth - 1, -1, -1):
        lattice[k, : k + 1] = np.logaddexp(lattice[k + 1, : k + 1], lattice[k + 1, 1 : k + 2])
    return lattice


def _independent_row(model: Model, nodes: Nodes, n: int, s: int, k: int, new: bool) -> tuple[Float, Float]:
    """log m₁(k, j) and log m₀(k, j) over j, where further results depend on one rate of either class."""
    del model
    (q, of_positive), (p, of_negative) = _class_masses(nodes, n, s, new)
    return _log_moments(np.log1p(-q), np.log(q), of_positive, k), _log_moments(
        np.log(p), np.log1p(-p), of_negative, k
    )


def _log_moments(log_hit: Float, log_miss: Float, mass: Float, k: int) -> Float:
    """log E[hit^j miss^(k−j)] over j = 0, …, k."""
    j = np.arange(k + 1)[:, None]
    return _log_sum(j * log_hit + (k - j) * log_miss, mass)


def _exchangeable_row(model: Model, nodes: Nodes, n: int, s: int, k: int, new: bool) -> tuple[Float, Float]:
    """The same for any model: what is to come and what was seen are one record of n + k replicates.

    θ weighs the classes and does not change what they do: it is summed out first.
    """
    records = Records(np.full(k + 1, n + k), s + np.arange(k + 1))
    rows: list[list[Float]] = [[], []]
    for (theta, *errors), mass in nodes:
        logs, odds = model.log_classes(records, *errors), logit(theta)
        if not new:  # its results so far are in the posterior already
            seen = [log[0] for log in model.log_classes(model.record((n, s)), *errors)]
            logs = tuple(log - np.maximum(one, _IMPOSSIBLE) for log, one in zip(logs, seen, strict=True))
            odds = odds + (seen[1] - seen[0])
        for row, log, share in zip(rows, logs, (expit(-odds), expit(odds)), strict=True):
            row.append(_log_sum(*_summed(mass * share, log)))
    zero, one = (np.logaddexp.reduce(row, axis=0) for row in rows)
    return one, zero


def _log_sum(logs: Float, mass: Float) -> Float:
    """log Σ mass · exp(logs) along the last axis."""
    top = logs.max(axis=1)
    with np.errstate(divide="ignore"):  # a class without mass
        return np.asarray(np.log(np.exp(logs - top[:, None]) @ mass) + top)


def _class_masses(nodes: Nodes, n: int, s: int, new: bool) -> tuple[tuple[Float, Float], tuple[Float, Float]]:
    """Where the individual stands: q with the mass of being positive, p with that of being negative.

    What happens to a positive individual depends on q alone, and to a negative one on p alone: the other
    rates are summed out once.
    """
    ((theta, p, q), mass) = nodes[0]  # replicates that are independent: one block, three parameters
    if new:
        log_negative, log_positive = (log[0] for log in ALIKE.log_classes(ALIKE.record((n, s)), p, q))
        top = max(log_positive.max(), log_negative.max())
        positive, negative = theta * np.exp(log_positive - top), (1 - theta) * np.exp(log_negative - top)
    else:
        positive = ALIKE.chance((n, s), theta, p, q)
        negative = ALIKE.chance((n, n - s), 1 - theta, q, p)
    return _summed(mass * positive, q[None]), _summed(mass * negative, p[None])


def _summed(mass: Float, x: Float) -> tuple[Float, Float]:
    """Rows of values x and the masses of their columns, summed over the axes that x does not depend on."""
    others = tuple(axis for axis, size in enumerate(x.shape[1:]) if size == 1)
    along = mass.sum(axis=others, keepdims=True)
    return np.broadcast_to(x, (len(x), *along.shape)).reshape(len(x), -1), along.ravel()


def _words(loss: Loss, probability: Float) -> NDArray[Any]:
    """The cheapest answers in words."""
    return np.asarray(decision_words(loss.classify(probability)), dtype=object)


# Many individuals --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class NextReplicates:
    """Which individuals to measure again; made by `next_replicates`.

    Attributes
    ----------
    loss : Loss
    cost_per_replicate : float
    budget : int
    counts : CountTable
        The individuals it was asked about.
    """

    _rows: Table
    loss: Loss
    cost_per_replicate: float
    budget: int
    counts: CountTable = field(repr=False)
    records: ClassVar[None] = None  # it goes by results alone

    @property
    def parts(self) -> dict[None, NextReplicates]:
        """Itself: it ranks one population."""
        return {None: self}

    def answers(self, n: ArrayLike, s: ArrayLike, *, new: bool, level: float | None) -> dict[str, list[Any]]:
        """What `attach` adds for each (n, s): worth, rank and measure; a known status needs none."""
        del new, level  # decided when they were ranked
        rows = {(row["n"], row["s"]): row for row in self._rows}
        found = [rows.get(pair) for pair in zip(np.asarray(n).tolist(), np.asarray(s).tolist(), strict=True)]
        return {
            "worth": [row and row["worth"] for row in found],
            "rank": [row and row["rank"] for row in found],
            "measure": [_measure_words(row) for row in found],
        }

    def table(self) -> Table:
        """A row for each (n, s).

        Its columns are individuals, probability, decision, gain_one, gain, worth, expected_replicates, rank
        and measure, the number of these individuals to measure within the budget.
        """
        return self._rows

    @property
    def replicates(self) -> int:
        """How much of the budget is spent, one replicate for each individual to be measured."""
        return sum(self._rows["measure"])

    def __str__(self) -> str:
        order = sorted((row for row in self._rows if row["rank"] is not None), key=lambda row: row["rank"])
        names = list(self._rows.columns)
        ranked = Table({name: [row[name] for row in order] for name in names}, note=self._rows.note)
        others = sum(self._rows["individuals"]) - sum(ranked["individuals"])
        words = f"measure {self.replicates:,} individuals again; for {others:,} it does not pay"
        return f"{words}\n{ranked}" if order else words

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._rows._repr_html_()


@kinds_checked
def next_replicates(
    counts: CountTable,
    fit: Fit,
    loss: Loss,
    *,
    cost_per_replicate: float,
    budget: int = 200,
    ahead: int = 20,
    new: bool = False,
) -> NextReplicates:
    """Which individuals to measure again, if there is a budget of replicates to spend.

    For the individuals of each (n, s), with the best continuation of `stopping_table` over at most `ahead`
    further replicates:

    - gain_one: what one more replicate and then an answer saves on average, its cost deducted;
    - gain: what the best continuation saves;
    - worth: the highest price of one replicate at which measuring again still pays, which is the largest
      ratio of loss saved to replicates used that any continuation has. Individuals are ranked by it, and
      those for whom it exceeds `cost_per_replicate` share the budget, one replicate each.

    One replicate each, then look again: fit the new results and call this again for the next round. The rule
    looks at one individual at a time and is myopic across them: it does not weigh that a budget spent here is
    missing there in later rounds, nor that every result teaches the rates for everyone.

    Parameters
    ----------
    counts : CountTable
        The individuals. Those of known status need no measurement and are left out.
    fit : any fit
    loss : Loss
    cost_per_replicate : float
        In the unit of the loss; 0 if the replicates are paid for.
    budget : int
        Replicates to spend now.
    ahead : int
        How many further replicates of one individual to think ahead.
    new : bool
        Whether the individuals are new, rather than those the fit was made from.

    Returns
    -------
    NextReplicates

    Examples
    --------
    >>> from binreps.fits.bayes import fit_bayes
    >>> counts = CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
    >>> again = next_replicates(counts, fit_bayes(counts), Loss(), cost_per_replicate=0.01, budget=20)
    >>> again.replicates, again.table()["measure"], again.table()["rank"]
    (20, (0, 5, 6, 9, 0), (None, 3, 1, 2, None))
    """
    cost = _checked_cost(cost_per_replicate)
    check_whole("budget", budget, 0, _MOST_BUDGET)
    check_whole("ahead", ahead, 1, _MOST_AHEAD)
    check_counts(counts)
    check_one_population(fit)
    check_loss(loss)
    unknown = counts.known == UNKNOWN
    n, s, weight = counts.n[unknown], counts.s[unknown], counts.weight[unknown]
    columns: dict[str, Any] = {"n": n, "s": s, "individuals": weight}
    columns |= _gains(
        [_paths(fit, int(a), int(b), ahead, new=new) for a, b in zip(n, s, strict=True)], loss, cost
    )
    columns["rank"], columns["measure"] = _shared_out(columns["worth"], weight, cost, int(budget))
    note = f"one replicate each, then look again; a replicate costs {cost:g}, budget {budget:,}\n{loss}"
    return NextReplicates(Table(columns, note=note), loss, cost, int(budget), counts)


def _measure_words(row: dict[str, Any] | None) -> str:
    """Whether everyone, no one or some of a cell are measured again."""
    if row is None or row["measure"] == 0:
        return "no"
    everyone = row["measure"] == row["individuals"]
    return "yes" if everyone else f"{row['measure']} of {row['individuals']}"


def _gains(each: list[_Paths], loss: Loss, cost: float) -> dict[str, Any]:
    """Columns of what measuring again would bring, one entry for each place."""
    if not each:
        names = ("probability", "decision", "gain_one", "gain", "worth", "expected_replicates")
        return {name: np.zeros(0) for name in names}
    probability, pi = (
        np.stack([getattr(one, name) for one in each]) for name in ("probability", "next_positive")
    )
    stop = loss.risks(probability).min(axis=-1)
    now, first = stop[:, 0, 0], pi[:, 0, 0]
    after_one = first * stop[:, 1, 1] + (1 - first) * stop[:, 1, 0]
    plan = _induction(probability, pi, loss, cost)
    return {
        "probability": probability[:, 0, 0],
        "decision": _words(loss, probability[:, 0, 0]),
        "gain_one": now - after_one - cost,
        "gain": now - plan.cost[:, 0, 0],
        "worth": _worth(stop, pi),
        "expected_replicates": plan.replicates[:, 0, 0],
    }


def _worth(stop: Float, next_positive: Float) -> Float:
    """The highest price at which measuring again pays, by bisection: 0 where it never does."""
    now = stop[:, 0, 0]
    low, high = np.zeros_like(now), now.copy()  # one replicate cannot save more than all there is to lose
    for _ in range(45):
        price = (low + high) / 2
        pays = _going_on(stop, next_positive, price)[0][:, 0, 0]
        low, high = np.where(pays, price, low), np.where(pays, high, price)
    return np.where(low > _ROUNDING * now, low, 0.0)


def _shared_out(
    worth: Float, weight: NDArray[np.int64], cost: float, budget: int
) -> tuple[list[int | None], NDArray[np.int64]]:
    """Ranks from 1 for those that pay, and how many individuals of each the budget is enough for."""
    order = [i for i in np.argsort(-worth, kind="stable").tolist() if worth[i] > cost]
    ranks: list[int | None] = [None] * worth.size
    measure = np.zeros(worth.size, np.int64)
    for rank, i in enumerate(order, start=1):
        ranks[i] = rank
        measure[i] = min(int(weight[i]), budget)
        budget -= int(measure[i])
    return ranks, measure


# Options -----------------------------------------------------------------------------------------------


def _checked_cost(value: object) -> float:
    """The cost of a replicate, finite and ≥ 0."""
    if isinstance(value, bool) or not 0 <= real(value) < np.inf:
        raise OptionError(f"cost_per_replicate must be a finite cost ≥ 0, got {shown(value)}")
    return real(value)


def _checked_start(start: object) -> tuple[int, int]:
    """A pair (n, s)."""
    try:
        pair = checked_pairs(*start)  # type: ignore[misc]
    except (TypeError, ValueError, DataError):
        raise OptionError(f"start must be a pair (n, s) with 0 ≤ s ≤ n, got {start!r}") from None
    return int(pair[0]), int(pair[1])
