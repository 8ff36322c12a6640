"""One individual: the answer, why, what it rests on, and the next step."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from binreps.decide.loss import Loss, check_loss, decision_words
from binreps.decide.next_reading import next_reading
from binreps.decide.stopping import MEASURE, StoppingTable, stopping_table
from binreps.errors import OptionError
from binreps.fits.base import Fit, check_one_population, rests_on_prior
from binreps.model import Records
from binreps.options import check_level, check_whole, kinds_checked
from binreps.words import chance, in_hundred, percent, plural

AHEAD = 10
"""How many further replicates the next step thinks ahead."""


@dataclass(frozen=True)
class Branch:
    """What one more replicate leads to, if it says so.

    Attributes
    ----------
    result : {"negative", "positive"}
        What the replicate says.
    likelihood : float
        The probability that it does.
    probability : float
        Of being positive, after it.
    decision : str
        The answer then.
    """

    result: str
    likelihood: float
    probability: float
    decision: str

    @property
    def clear(self) -> bool:
        """Whether the answer is then negative or positive."""
        return self.decision != "inconclusive"

    def __str__(self) -> str:
        likely = f"if {self.result} ({chance(self.likelihood)} likely)"
        return f"{likely}: {chance(self.probability)}, {self.decision}"


@dataclass(frozen=True)
class NextStep:
    """What to do next with one individual, by the best rule; a part of an `Answer`.

    Attributes
    ----------
    pays : bool
        Whether one more replicate is worth its cost.
    branches : pair of Branch
        After a negative and after a positive result.
    source : hashable or None
        Whom to ask, where sources differ.
    conclusive : float or None
        The probability of coming to a clear answer by testing until there is one, as far as it thinks ahead;
        None where sources differ: it then thinks of one reading.
    expected_replicates : float or None
        How many further replicates that takes on average.
    """

    pays: bool
    branches: tuple[Branch, Branch]
    source: Hashable | None = None
    conclusive: float | None = None
    expected_replicates: float | None = None

    @property
    def clear(self) -> float:
        """The probability of a clear answer after one more replicate."""
        return float(sum(one.likelihood for one in self.branches if one.clear))

    @kinds_checked
    def sentence(self, decision: str) -> str:
        """The next step in one line, for an individual whose answer is `decision` so far."""
        again = "Test once more" if self.source is None else f"Ask {self.source} for a reading"
        if decision != "inconclusive":
            stands = "Answer so. Another test is optional: on average it is worth its cost."
            return stands if self.pays else "No further test is needed."
        if not self.pays:
            return "One more test would cost more than it is worth: decide without it, or use another test."
        if all(one.clear for one in self.branches):
            return f"{again}: either result settles it."
        return f"{again}: {chance(self.clear)} chance of a clear answer."

    @kinds_checked
    def lines(self, decision: str) -> Iterator[str]:
        """The next step with its branches, and where the rule ends."""
        yield self.sentence(decision)
        if not self.pays:
            return
        yield from (f"  {branch}" for branch in self.branches)
        if decision == "inconclusive" and self.conclusive is not None and self.clear < self.conclusive:
            tests = f"{self.expected_replicates:.1f} more tests on average"
            yield f"Testing until it is settled: {chance(self.conclusive)} chance of a clear answer, {tests}."


@dataclass(frozen=True)
class Answer:
    """The answer for one individual; made by `explain`, and printed as sentences.

    Attributes
    ----------
    said : str
        The results, in words.
    probability, lower, upper : float
        Of being positive, and what the uncertain rates leave open; NaN where the method gives none.
    level : float
        Probability of the interval.
    decision : str or None
        "negative", "inconclusive" or "positive".
    costs : tuple of float
        What the answers negative, inconclusive and positive would cost on average.
    reasons : tuple of str
        What each source's reading does to the odds, where sources differ.
    basis : str
        What the answer rests on.
    next : NextStep or None
        None where the method cannot say.
    """

    said: str
    probability: float
    lower: float
    upper: float
    level: float
    decision: str | None
    costs: tuple[float, float, float]
    reasons: tuple[str, ...]
    basis: str
    next: NextStep | None

    @property
    def sentence(self) -> str:
        """Why the answer is what it is."""
        if self.decision is None:
            return f"With {self.said} this method gives no probability."
        why = "".join(f"{reason}. " for reason in self.reasons)
        negative, inconclusive, positive = (f"{cost:.3g}" for cost in self.costs)
        expected = f"negative would cost {negative}, inconclusive {inconclusive}, positive {positive}"
        return (
            f"{why}With {self.said} the probability of being positive is {percent(self.probability)}. On "
            f"average the answer {expected}: the cheapest is {self.decision}."
        )

    def __str__(self) -> str:
        if self.decision is None:
            return self.sentence
        ends = f" ({self.level:.0%} interval {chance(self.lower)} to {chance(self.upper)})"
        known = ends if self.lower == self.lower else ""
        lines = [
            f"{self.said}: {self.decision}",
            f"{chance(self.probability)} chance of being positive{known}, {in_hundred(self.probability)}.",
            self.sentence,
            *(self.next.lines(self.decision) if self.next is not None else ()),
            f"Rests on {self.basis}.",
        ]
        return "\n".join(lines)

    __repr__ = __str__


@kinds_checked
def explain(
    fit: Fit,
    loss: Loss,
    *asked: Any,
    covariates: Mapping[str, Any] | None = None,
    population: Any = None,
    new: bool = False,
    level: float = 0.9,
    cost_per_replicate: float = 0.01,
    ahead: int = AHEAD,
) -> Answer:
    """The answer for one individual: the chance, why, what it rests on, and the next step.

    Parameters
    ----------
    fit : any fit
        Of one population.
    loss : Loss
        What wrong and inconclusive answers cost.
    *asked
        n and s, replicates and positives of the individual; for a fit by source a mapping of source to answer
        (0, 1, or (n, s)).
    covariates : mapping of name to value, optional
        Of the individual, where the fit uses any.
    population : optional
        Of the individual, where a fit by source has several. A fit of several populations is asked for the
        one that the individual belongs to.
    new : bool
        Whether the individual is new, rather than one the fit was made from.
    level : float
        Probability that the interval holds.
    cost_per_replicate : float
        What one more replicate costs, in the unit of the loss.
    ahead : int
        How many further replicates to think ahead.

    Returns
    -------
    Answer

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> fit = fit_bayes(CountTable([4, 4, 4, 4, 4], [0, 1, 2, 3, 4], weight=[50, 18, 6, 9, 17]))
    >>> answer = explain(fit, Loss(inconclusive=0.2), 2, 1, new=True)
    >>> print(answer.sentence)
    With 1 positive of 2 tests the probability of being positive is 37.8%. On average the answer negative
    would cost 0.378, inconclusive 0.2, positive 0.622: the cheapest is inconclusive.
    >>> print(answer.next.sentence(answer.decision))
    Test once more: either result settles it.
    """
    check_one_population(fit, by_source=True)
    check_loss(loss)
    check_level(level)
    check_whole("ahead", ahead, 1, 100)
    given = {"covariates": covariates, "population": population}
    about = {name: value for name, value in given.items() if value is not None and fit.has_sources}
    one = fit if covariates is None or about else fit.profile(covariates)
    _check_one(one, asked)
    probability = float((one.predict if new else one.score)(*asked, **about))
    lower, upper = (one.predict_interval if new else one.score_interval)(*asked, level=level, **about)
    steps = ahead if probability == probability else 0
    explained = partial(_by_source, about) if one.has_sources else _by_results
    said, reasons, step = explained(one, loss, asked, new, cost_per_replicate, steps)
    return Answer(
        said,
        probability,
        float(lower),
        float(upper),
        level,
        decision_words(loss.classify(probability)),
        tuple(loss.risks(probability).tolist()),
        reasons,
        _basis(one, level),
        step,
    )


def _check_one(fit: Fit, asked: tuple[Any, ...]) -> None:
    """Refuse what is not one individual."""
    if fit.has_sources:
        if len(asked) != 1 or not isinstance(asked[0], Mapping):
            raise OptionError("ask about what each source said, such as {'ann': 1, 'bob': 0}")
    elif (shape := Records.of(*asked).shape) != ():
        raise OptionError(f"ask about one individual, n and s, got shape {shape}")


_Explained = tuple[str, tuple[str, ...], NextStep | None]


def _by_results(
    fit: Fit, loss: Loss, asked: tuple[Any, ...], new: bool, cost: float, ahead: int
) -> _Explained:
    """Results in words and the next step, where replicates are alike."""
    n, s = (int(value) for value in asked)
    said = f"{s} positive of {plural(n, 'test')}"
    if not ahead:
        return said, (), None
    rule = stopping_table(fit, loss, cost_per_replicate=cost, max_replicates=n + ahead, start=(n, s), new=new)
    return said, (), step_of(rule, n, s)


def step_of(rule: StoppingTable, n: int, s: int) -> NextStep:
    """The next step with s positives among n replicates, by a stopping table that goes further."""
    here, down, up = (rule.row(*pair) for pair in ((n, s), (n + 1, s), (n + 1, s + 1)))
    likely = here["next_positive"]
    branches = tuple(
        Branch(result, share, row["probability"], str(decision_words(rule.loss.classify(row["probability"]))))
        for result, share, row in (("negative", 1 - likely, down), ("positive", likely, up))
    )
    pays = here["action"] == MEASURE
    return NextStep(pays, branches, None, *_until_clear(rule, n, s))  # type: ignore[arg-type]


def _until_clear(rule: StoppingTable, n: int, s: int) -> tuple[float, float]:
    """The chance of coming to a clear answer, and how many tests that takes, testing until there is one."""
    ends = [(0.0, 0.0)] * (rule.max_replicates - n + 2)
    for k in range(rule.max_replicates - n, -1, -1):
        rows = [rule.row(n + k, s + j) for j in range(k + 1)]
        ends = [_reached(rule, row, down, up) for row, down, up in zip(rows, ends, ends[1:], strict=False)]
    return ends[0]


def _reached(
    rule: StoppingTable, row: dict[str, Any], down: tuple[float, float], up: tuple[float, float]
) -> tuple[float, float]:
    """The same from one row on, where it is known of the two that follow."""
    if rule.loss.classify(row["probability"]) != 0.5:
        return 1.0, 0.0
    if row["n"] == rule.max_replicates:
        return 0.0, 0.0
    pi = row["next_positive"]
    return pi * up[0] + (1 - pi) * down[0], 1 + pi * up[1] + (1 - pi) * down[1]


def _by_source(
    about: Mapping[str, Any], fit: Any, loss: Loss, asked: tuple[Any, ...], new: bool, cost: float, ahead: int
) -> _Explained:
    """Who said what, what it does to the odds, and whom to ask next."""
    said = {source: answer for source, answer in asked[0].items() if answer is not None}
    heard = list(_heard(fit, said))
    told = ", ".join(words for words, _ in heard) or "no reading"
    reasons = tuple(
        f"{words[0].upper()}{words[1:]} multiplies the odds of being positive by {factor:.3g}"
        for words, factor in heard
    )
    if not ahead:
        return told, reasons, None
    best = next(iter(next_reading(fit, said, loss, new=new, **about)))
    branches = tuple(
        Branch(result, share, p, str(decision_words(loss.classify(p))))
        for result, share, p in (
            ("negative", 1 - best["chance_of_yes"], best["if_no"]),
            ("positive", best["chance_of_yes"], best["if_yes"]),
        )
    )
    return told, reasons, NextStep(best["worth"] > cost, branches, best["source"])  # type: ignore[arg-type]


def _heard(fit: Any, said: Mapping[Hashable, Any]) -> Iterator[tuple[str, float]]:
    """What each source said, in words, and by what it multiplies the odds of being positive."""
    for source, answer in said.items():
        n, s = answer if isinstance(answer, tuple | list) else (1, int(answer))
        no, yes = fit.odds(source)
        source = source if source in fit.sources else f"{source}, whom the fit has not seen"
        for times, word, factor in ((s, "yes", yes), (n - s, "no", no)):
            if times:
                yield f"{times} × {word} by {source}" if times > 1 else f"a {word} by {source}", factor**times


def _basis(fit: Fit, level: float) -> str:
    """The data, the rates and the method that an answer rests on."""
    counts = fit.everyone
    rates = [
        f"{row['rate']} {percent(row['estimate'])} ({percent(row['lower'])} to {percent(row['upper'])})"
        if row["lower"] == row["lower"]
        else f"{row['rate']} {percent(row['estimate'])}"
        for row in fit.summary(level)
        if row["rate"] in ("prevalence", "sensitivity", "specificity")
    ]
    data = f"{plural(counts.individuals, 'individual')} with {plural(counts.replicates, 'test')}"
    prior = rests_on_prior(fit.identifiable).rstrip(".")
    return "; ".join(filter(None, [data, ", ".join(rates), fit.method, prior]))
