"""Error rates pressed against the limit of their region, and the way out of the narrower one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN
from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import Finding
from binreps.decide.checks.identifiability import RATE_WORDS
from binreps.decide.checks.subject import Part
from binreps.decide.loss import Loss
from binreps.errors import BinrepsError
from binreps.fits.base import AnyFit
from binreps.fits.bayes import fit_bayes
from binreps.fits.overdispersed import fit_overdispersed
from binreps.fits.populations import fit_populations
from binreps.model import NAMES, Prior

_NEAR, _PILED = 0.9, 0.4  # so much posterior above nine tenths of the way to the limit is a pile

_AGAIN: Mapping[str, Callable[[Any, Prior], AnyFit]] = MappingProxyType(
    {
        "bayes": lambda fit, prior: fit_bayes(fit.counts, prior),
        "correlated": lambda fit, prior: fit_overdispersed(
            fit.counts, prior, intraclass=fit.intraclass_prior
        ),
        "populations": lambda fit, prior: fit_populations(
            {name: part.counts for name, part in fit.parts.items()}, prior
        ),
    }
)
"""How a fit is made again, by its kind; the others have no evidence to compare."""


def limits_findings(fit: AnyFit, parts: list[Part], prior: Prior, loss: Loss | None) -> Iterator[Finding]:
    """Error rates that would be larger if they could."""
    if prior.better_than_chance:
        yield from _at_chance(parts[0])
        return
    offer = ""
    for name in NAMES[1:]:
        share = float(np.mean(np.asarray(getattr(parts[0].draws, name)) > _NEAR / 2))
        if share > _PILED:
            offer = offer or _offer(fit, prior, loss)
            yield Finding(
                f"at-half-{name.replace('_', '-')}",
                share,
                f"The {RATE_WORDS[name]} is pressed against its limit ½: {share:.0%} of it is above "
                f"{_NEAR / 2}.",
                "Either the test errs more often than not for one status, or it is no better than a coin, "
                f"or the prior says so, or results are coded the wrong way round. {offer}",
                action=Action("model", "better-than-chance"),
            )


def _at_chance(part: Part) -> Iterator[Finding]:
    """Error rates that add up to nearly 1."""
    _, p, q = part.draws
    share = float(np.mean(np.asarray(p) + np.asarray(q) > _NEAR))
    if share > _PILED:
        yield Finding(
            "at-chance",
            share,
            "The two error rates are pressed against their limit, where they add up to 1: with a "
            f"probability of {share:.0%} they add up to more than {_NEAR}. There a result is as likely in a "
            "positive as in a negative individual, and the replicates say nothing.",
            "Do not decide by these scores, which are the prior's: look for a better test, for individuals "
            "of known status, or for results coded the wrong way round.",
        )


def _offer(fit: AnyFit, prior: Prior, loss: Loss | None) -> str:
    """What the wider region would change."""
    way = "the model better than chance lets either error rate be above ½"
    wider = replace(prior, better_than_chance=True)
    try:
        other = _AGAIN[fit.kind](fit, wider) if fit.kind in _AGAIN else None
    except BinrepsError:  # the offer stands without its numbers
        other = None
    if other is None:
        return f"For a test that may miss more than it finds, {way}."
    gain = other.log_evidence - fit.log_evidence
    verdict = (
        f"the data speak for it by a factor of {_factor(gain)}"
        if gain > 0
        else f"the data speak against it by a factor of {_factor(-gain)}"
    )
    found = f"{verdict} (log evidence {gain:+.1f})"
    changed = "" if loss is None else f", and {_changed(fit, other, loss)}"
    return f"For a test that may miss more than it finds, {way}: {found}{changed}."


def _factor(log_factor: float) -> str:
    """A ratio of evidences in words that fit on a line."""
    return f"{np.exp(log_factor):,.1f}" if log_factor < np.log(1e4) else f"10^{log_factor / np.log(10):.0f}"


def _changed(fit: AnyFit, other: AnyFit, loss: Loss) -> str:
    """How many of the individuals that need a decision get another one."""
    several = total = 0
    for name, part in fit.parts.items():
        needed = np.where(part.counts.known == UNKNOWN, part.counts.weight, 0)
        answers = [
            loss.classify(np.clip(one.score(part.counts.n, part.counts.s), 0.0, 1.0))
            for one in (part, other.parts[name])
        ]
        several += int(needed[answers[0] != answers[1]].sum())
        total += int(needed.sum())
    return f"{several:,} of {total:,} decisions would change"
