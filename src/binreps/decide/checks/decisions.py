"""Decisions at risk: individuals whose answer would change with next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN
from binreps.decide.checks.findings import NOTE, WARNING, Finding
from binreps.decide.checks.identifiability import RATE_WORDS
from binreps.decide.checks.sensitivity import log_prior
from binreps.decide.checks.subject import Part
from binreps.decide.loss import Loss
from binreps.model import NAMES, TIE, Float, Prior

_OPEN = 0.1  # chance of another answer, over the posterior of the rates, from which a decision is open
_WORTH_SAYING = 0.02  # of the individuals
_WIDE_OPEN, _MANY_OPEN = 0.25, 0.5  # half of the individuals with a quarter against them are too many
_MILD = (0.8, 1.25)  # powers of a prior
_MANY_MOVED = 0.25  # of the individuals


def decisions_findings(parts: list[Part], loss: Loss, prior: Prior | None) -> Iterator[Finding]:
    """Answers within the numerical error, the uncertainty of the rates, or a mild change of prior."""
    total = sum(_unknown(part).sum() for part in parts)
    if not total:
        return
    scores = [np.clip(part.fit.score(part.counts.n, part.counts.s), 0.0, 1.0) for part in parts]  # rounding
    yield from _numerical(parts, scores, loss)
    if not any(part.fit.posterior.certain for part in parts):
        yield from _uncertain(parts, scores, loss, float(total))
        if prior is not None:
            yield from _by_prior(parts, scores, loss, prior, float(total))


def _unknown(part: Part) -> Any:
    """Individuals per cell, without those whose status is known: they need no decision."""
    return np.where(part.counts.known == UNKNOWN, part.counts.weight, 0)


def _numerical(parts: list[Part], scores: list[Float], loss: Loss) -> Iterator[Finding]:
    number = 0
    for part, score in zip(parts, scores, strict=True):
        error = np.asarray(part.fit.score_error(part.counts))
        gap = np.min([np.abs(score - threshold) for threshold in loss.thresholds], axis=0)
        number += int(_unknown(part)[(gap <= error) & (gap > TIE)].sum())
    if number:
        yield Finding(
            "decision-numerical",
            number,
            f"The score of {_individuals(number)} is so close to a threshold that the numerical error of "
            "the score "
            "could change the answer.",
            "Treat these answers as inconclusive: no data of this size can support the difference.",
        )


def _uncertain(parts: list[Part], scores: list[Float], loss: Loss, total: float) -> Iterator[Finding]:
    """Individuals for whom other plausible rates give another answer."""
    several = wide = 0.0
    for part, score in zip(parts, scores, strict=True):
        other = np.mean(loss.classify(part.chances) != loss.classify(score), axis=0)
        several += float(_unknown(part)[other > _OPEN].sum())
        wide += float(_unknown(part)[other > _WIDE_OPEN].sum())
    if several >= _WORTH_SAYING * total:
        extreme = wide > _MANY_OPEN * total
        yield Finding(
            "decision-uncertain",
            several / total,
            f"For {_individuals(several)} ({several / total:.0%}) other rates that the data allow would "
            "give another "
            f"answer, with a chance of at least {_OPEN:.0%}.",
            "The answers stand as the best ones now; more individuals in the study would settle the rates"
            + (", and until then hardly any decision should rest on this fit alone." if extreme else "."),
            WARNING if extreme else NOTE,
        )


def _by_prior(
    parts: list[Part], scores: list[Float], loss: Loss, prior: Prior, total: float
) -> Iterator[Finding]:
    """Individuals whose answer changes if one prior is made a little stronger or weaker."""
    moved, culprits = [np.zeros(len(part.counts), bool) for part in parts], []
    for name in NAMES:
        for power in _MILD:
            changed = [
                loss.classify(np.clip(score + _shift(part, prior, name, power), 0, 1)) != loss.classify(score)
                for part, score in zip(parts, scores, strict=True)
            ]
            if any(_unknown(part)[c].any() for part, c in zip(parts, changed, strict=True)):
                culprits.append(RATE_WORDS[name])
            moved = [a | b for a, b in zip(moved, changed, strict=True)]
    number = float(sum(_unknown(part)[m].sum() for part, m in zip(parts, moved, strict=True)))
    if number:
        names = " or ".join(dict.fromkeys(culprits))
        yield Finding(
            "decision-prior",
            number / total,
            f"A slightly stronger or weaker prior of the {names} (to the power {_MILD[0]} or {_MILD[1]}) "
            "changes "
            f"the answer for {_individuals(number)} ({number / total:.0%}).",
            "Look at the results of these individuals again, or repeat their test, before acting on the "
            "answer.",
            WARNING if number > _MANY_MOVED * total else NOTE,
        )


def _shift(part: Part, prior: Prior, name: str, power: float) -> Float:
    """How much the scores move when one prior is raised to a power, by reweighting the draws."""
    log_weight = (power - 1) * log_prior(prior, name, getattr(part.draws, name))
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight @ part.chances / weight.sum() - part.chances.mean(axis=0))


def _individuals(number: float) -> str:
    return f"{number:,.0f} individual{'s' * (number != 1)}"
