"""Does the model describe the counts: posterior-predictive p-values, dispersion, numbers of replicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, gammaincc

from binreps.counts import UNKNOWN
from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import NOTE, Finding
from binreps.decide.checks.scores import Rows, rows_of, score_test
from binreps.decide.checks.subject import Part, Possible
from binreps.model import Float, score_at

# How the false alarms allowed in all are shared out; the rest is kept for p-values that are approximations.
_SHARE_TABLE, _SHARE_DISPERSION, _SHARE_REPLICATION = 0.3, 0.4, 0.2
_CORRELATED = Action("model", "correlated")
_MOST_GROUPS = 8  # numbers of replicates looked at one by one: those with most individuals
_LEAST = 5  # individuals in such a group
_MOST_VALUES = 400_000  # draws × possible results


class Look(NamedTuple):
    """One number of the count table against what the fit predicts for it."""

    words: str
    observed: float
    expected: float
    p_value: float
    spread: bool  # whether what was observed is more spread out than expected


def table_findings(parts: list[Part], alarms: float) -> Iterator[Finding]:
    """The count table against the posterior-predictive distribution, all looks together."""
    looks = [look for part in parts for look in looks_of(part)]
    if not looks:
        return
    worst = min(looks, key=lambda look: look.p_value)
    adjusted = min(1.0, worst.p_value * len(looks))
    if adjusted < alarms * _SHARE_TABLE:
        yield Finding(
            "count-table",
            adjusted,
            f"The model does not describe the counts: {worst.words} {number(worst.observed)}, where it "
            "expects "
            f"{number(worst.expected)} (posterior-predictive p = {worst.p_value:.1g}, the smallest of "
            f"{len(looks)}).",
            table_advice(worst, several=len(parts) > 1),
            action=_CORRELATED if worst.spread else None,
        )


def table_advice(worst: Look, *, several: bool) -> str:
    """What to do about counts that the model does not describe."""
    look = "Look at the count table beside the prediction"
    if several:
        return (
            f"{look}; if the test errs differently from population to population, analyse them apart; "
            "if individuals of one status differ, let replicates be correlated."
        )
    if not worst.spread:
        return (
            f"{look}: results are more alike from individual to individual than independent errors are; ask "
            "whether replicates were repeated until they agreed, or made to balance."
        )
    return (
        f"{look}; if groups of individuals differ, name their column as the population; if individuals of "
        "one status differ, let replicates be correlated."
    )


def looks_of(part: Part) -> list[Look]:
    """All-negative, all-positive and mixed individuals for each n and in all, and the variance of s."""
    possible = part.possible
    free = np.flatnonzero(possible.unknown & (possible.size >= _LEAST))
    if not free.size:
        return []
    groups = np.sort(free[np.argsort(-possible.size[free], kind="stable")][:_MOST_GROUPS])
    chance = _mixture(part)
    looks = [
        look
        for group in groups
        for look in _group_looks(
            possible, chance, np.array([group]), f" with n = {possible.n[group]}", part.label
        )
    ]
    several = np.flatnonzero(possible.unknown & (possible.n >= 2))
    if several.size > 1:
        looks += _group_looks(possible, chance, several, "", part.label)
    return [*looks, _variance_look(possible, chance, part.label)]


def _mixture(part: Part) -> Float:
    """P(s) at every possible result and draw, shape (points, draws)."""
    possible = part.possible
    most = max(20, _MOST_VALUES // max(possible.group.size, 1))
    theta, *errors = part.parameters[:, :most]
    negative, positive = possible.log_classes(part.model, *errors)
    return np.asarray(theta * np.exp(positive) + (1 - theta) * np.exp(negative))


def _group_looks(possible: Possible, chance: Float, groups: Any, words: str, label: str) -> list[Look]:
    """The three shares among the individuals of some groups."""
    total = float(possible.size[groups].sum())
    inside = np.isin(possible.group, groups)
    kinds = {"all negative": possible.s == 0, "all positive": possible.s == possible.points_n}
    if np.any(possible.n[groups] > 1):
        kinds["mixed"] = ~(kinds["all negative"] | kinds["all positive"])
    else:
        del kinds["all negative"]  # says the same
    looks = []
    for kind, where in kinds.items():
        here = inside & where
        observed = float(possible.observed[here].sum())
        expected = possible.size[possible.group[here]] @ chance[here]
        p_value = binomial_p_value(observed, total, np.clip(expected / total, 0.0, 1.0))
        sentence = f"among {total:,.0f} individuals{words}{label} those {kind} number"
        more = observed > float(expected.mean())
        looks.append(Look(sentence, observed, float(expected.mean()), p_value, more != (kind == "mixed")))
    return looks


def binomial_p_value(observed: float, total: float, chance: Float) -> float:
    """Twice the smaller of P(X ≤ x) and P(X ≥ x), averaged over draws.

    Groups with different chances added up are taken for a binomial, which is a little too wide.
    """
    below = float(np.mean(bdtr(observed, int(total), chance)))
    above = float(np.mean(bdtrc(observed - 1, int(total), chance))) if observed > 0 else 1.0
    return min(1.0, 2 * min(below, above))


def _variance_look(possible: Possible, chance: Float, label: str) -> Look:
    """Σ (s − E s)² of the individuals of unknown status, over its expectation; both at each draw.

    Given a draw it is a sum of independent squares with known mean and variance, taken for a gamma variable.
    """
    free = possible.unknown[possible.group]
    chance, s, size = chance[free], possible.s[free].astype(float), possible.size[possible.unknown]
    repeats = possible.n[possible.unknown] + 1  # points per group
    starts = np.cumsum(repeats) - repeats
    mean = np.add.reduceat(s[:, None] * chance, starts)
    square = (s[:, None] - np.repeat(mean, repeats, axis=0)) ** 2
    second = np.add.reduceat(square * chance, starts)
    fourth = np.add.reduceat(square**2 * chance, starts)
    expected, variance = size @ second, size @ (fourth - second**2)
    found = possible.observed[free] @ square
    shape = expected**2 / np.maximum(variance, 1e-300)
    above = float(np.mean(gammaincc(shape, shape * found / np.maximum(expected, 1e-300))))
    ratio = float(np.mean(found) / max(np.mean(expected), 1e-300))
    words = f"the variance of s{label}, relative to the model's, is"
    return Look(words, ratio, 1.0, min(1.0, 2 * min(above, 1 - above)), ratio > 1)


def assumption_findings(parts: list[Part], alarms: float) -> Iterator[Finding]:
    """Correlated replicates, and numbers of replicates that go with the status."""
    rows = rows_of(parts)
    if rows is None:
        return
    if all(part.model.independent for part in parts):  # otherwise the model has a correlation already
        yield from _dispersion(parts, rows, alarms * _SHARE_DISPERSION)
    yield from _replication(parts, rows, alarms * _SHARE_REPLICATION)


def _dispersion(parts: list[Part], rows: Rows, alarms: float) -> Iterator[Finding]:
    """Whether replicates of an individual agree more than its status explains."""
    test = score_test(rows, rows.correlation)
    most = max(int(part.possible.n.max(initial=0)) for part in parts)
    if not test.possible and all(part.possible.complete for part in parts):
        yield Finding(
            "dispersion-unseen",
            most,
            f"With at most {most} replicate{'s' * (most != 1)} each, nothing can show whether replicates of "
            "an "
            "individual are correlated: the model fits any such table.",
            "If replicates may share a cause of error, measure some individuals four times or more.",
            NOTE,
        )
    elif test.possible and test.above < alarms:
        negative, positive = dispersion(parts)
        yield Finding(
            "over-dispersion",
            max(negative, positive),
            "Individuals of the same status differ more than independent replicates do: X²/df is "
            f"{negative:.2f} among negatives and {positive:.2f} among positives, where 1 is expected "
            f"(p = {test.above:.1g}).",
            "Scores close to 0 and 1 are then too sure: "
            + ("analyse each population by itself, and " * (len(parts) > 1))
            + "let replicates be correlated.",
            action=_CORRELATED,
        )


def dispersion(parts: list[Part]) -> tuple[float, float]:
    """Pearson's X²/df among negatives and among positives, each cell weighted by the chance v of the status.

    Σ wv (s − n r)² / (n r (1−r)) / (Σ wv − 1) with r = Σ wv s / Σ wv n: about 1 if the model is true.
    """
    cells = [part.counts for part in parts]
    n, s, weight, known = (
        np.concatenate([getattr(table, name) for table in cells]) for name in ("n", "s", "weight", "known")
    )
    score = np.concatenate([score_at(part.counts.n, part.counts.s, *part.estimate) for part in parts])
    y = np.where(known == UNKNOWN, score, known)
    measured = n > 0
    negative, positive = (_pearson(n[measured], s[measured], (weight * v)[measured]) for v in (1 - y, y))
    return negative, positive


def _pearson(n: Any, s: Any, weight: Float) -> float:
    """X²/df of counts that share one rate; 1 where they say nothing about their spread."""
    df, trials = float(weight.sum() - 1), float(weight @ n)
    rate = float(weight @ s) / trials if trials > 0 else 0.0
    if df <= 0 or not 0 < rate < 1:
        return 1.0
    return float(weight @ ((s - n * rate) ** 2 / (n * rate * (1 - rate)))) / df


def _replication(parts: list[Part], rows: Rows, alarms: float) -> Iterator[Finding]:
    """Whether individuals with more replicates are more, or less, often positive."""
    test = score_test(rows, rows.replication)
    p_value = min(1.0, 2 * min(test.above, test.below))
    if not (test.possible and p_value < alarms):
        return
    advice = (
        "Ask why some were measured more often; if it was because of earlier results, give each number of "
        "replicates a population of its own, or the scores leave that evidence out."
    )
    yield Finding(
        "informative-replication",
        p_value,
        f"{_replication_words(parts, test.z)} (p = {p_value:.1g}), so the number of replicates says "
        "something about the status.",
        advice,
        action=Action("column", "population"),
    )


def _replication_words(parts: list[Part], z: float) -> str:
    """Who has more replicates; within populations, since between them n may differ for any reason."""
    means = [pair for part in parts if (pair := _mean_replicates(part)) is not None]
    gap = sum((many - few) * weight for few, many, weight in means)
    if not means or gap * z <= 0:  # the estimates do not show what the test has seen: no direction is claimed
        return "Positive and negative individuals differ in their numbers of replicates"
    word = "more" if gap > 0 else "fewer"
    if len(parts) > 1:
        average = abs(gap) / sum(weight for _, _, weight in means)
        return f"Within populations positive individuals have {word} replicates, by {average:.1f} on average"
    ((few, many, _),) = means
    against = f"{many:.1f} on average against {few:.1f} for negative ones"
    return f"Positive individuals have {word} replicates: {against}"


def _mean_replicates(part: Part) -> tuple[float, float, float] | None:
    """The mean number of replicates of negatives and of positives, and how much their difference tells.

    None if all are of one class.
    """
    y = part.chances.mean(axis=0)
    negative, positive = part.counts.weight * (1 - y), part.counts.weight * y
    if not (negative.any() and positive.any()):
        return None
    few, many = (float(w @ part.counts.n / w.sum()) for w in (negative, positive))
    return few, many, float(negative.sum() * positive.sum() / (negative.sum() + positive.sum()))


def number(value: float) -> str:
    """A count or a ratio in words."""
    return f"{value:,.0f}" if value == round(value) and value != 1 else f"{value:,.3g}"
