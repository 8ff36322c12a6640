"""Whether the data can tell prevalence and error rates apart, and whether they did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import NOTE, WARNING, Finding
from binreps.decide.checks.subject import Part, mode_of
from binreps.fits.base import AnyFit
from binreps.model import NAMES, Float, Prior
from binreps.priors import cumulative

_FEW = 10  # individuals with enough replicates
_LEARNT = 0.1  # nats between prior and posterior below which a rate was not learnt
_LONELY = 3.0  # individuals of a class below which its rate rests on next to nobody
_BINS = 20
_RIVAL = np.log(100)  # a second mode counts if it is at most 100 times less likely

RATE_WORDS = dict(zip(NAMES, ("prevalence", "false-positive rate", "false-negative rate"), strict=True))
"""The three rates as a sentence names them."""


def replicates_findings(fit: AnyFit) -> Iterator[Finding]:
    """Whether the numbers of replicates can identify the rates."""
    counts = fit.everyone
    if not len(counts):
        yield Finding("no-data", 0, "There are no individuals: every result is the prior.", "Add data.")
        return
    most = int(counts.n[counts.known == UNKNOWN].max(initial=0))
    if not fit.identifiable and not any(one.prior for one in fit.parts.values()):
        yield Finding(
            "not-identifiable",
            most,
            "The data cannot tell prevalence and error rates apart without assumptions, and this method "
            "makes strong ones: its rates are what follows from its scores.",
            "Measure some individuals three times or more, add individuals of known status, or estimate by "
            "Bayes with a prior that you can defend.",
            action=Action("method", "bayes"),
        )
        return
    if not fit.identifiable:
        yield Finding(
            "not-identifiable",
            most,
            f"Nobody of unknown status has more than {most} replicate{'s' * (most != 1)}, so the data "
            "cannot tell "
            "prevalence and error rates apart: the estimates rest on the prior.",
            "Measure some individuals three times or more, add individuals of known status, or state a "
            "prior that "
            "you can defend for the error rates.",
            action=Action("prior", "false-positive"),
        )
        return
    if not counts.identifiable:
        yield Finding(
            "two-replicates",
            most,
            "With at most two replicates only different prevalences tell the error rates: the closer they "
            "are, the "
            "more rests on the prior.",
            "Measure some individuals three times or more.",
            NOTE,
        )
        return
    yield from _few_findings(counts)


def _few_findings(counts: CountTable) -> Iterator[Finding]:
    """Whether enough individuals have enough replicates."""
    classes = len(set(counts.known[counts.n > 0].tolist()) - {UNKNOWN})
    enough = (counts.known == UNKNOWN) & (counts.n >= 3 - classes)
    several = int(counts.weight[enough].sum())
    if classes < 2 and several < _FEW:
        yield Finding(
            "few-replicated",
            several,
            f"Only {several} individual{'s have' if several != 1 else ' has'} the {3 - classes} or more "
            "replicates "
            "that it takes to tell prevalence and error rates apart.",
            "Replicate more individuals; until then read the intervals, not the estimates.",
        )


def learning_findings(parts: list[Part], prior: Prior) -> Iterator[Finding]:
    """Rates whose posterior is their prior, and prevalences that leave a class nearly empty."""
    for part in parts:
        gains = {name: information_gain(part, prior, name) for name in NAMES}
        shared = part is parts[0]  # error rates are the same in every population
        for name in NAMES if shared else NAMES[:1]:
            if gains[name] < _LEARNT:
                yield _unlearnt(name, gains[name], part.label if name == NAMES[0] else "")
        if shared:
            yield from _lonely_class(parts, gains)


def information_gain(part: Part, prior: Prior, name: str) -> float:
    """Kullback–Leibler divergence of a rate's posterior from its prior, in nats, from draws.

    The prior's distribution function turns the prior into a uniform law: what is left is the posterior's
    departure from it, in 20 equally likely bins.
    """
    x = np.asarray(getattr(part.draws, name))
    place = cumulative(prior, name, x)
    share = np.bincount(np.minimum((place * _BINS).astype(int), _BINS - 1), minlength=_BINS) / x.size
    used = share > 0
    bias = (used.sum() - 1) / (2 * x.size)
    return max(float(share[used] @ np.log(share[used] * _BINS) - bias), 0.0)


def _unlearnt(name: str, gain: float, label: str) -> Finding:
    return Finding(
        f"unlearnt-{name.replace('_', '-')}",
        gain,
        f"The data say next to nothing about the {RATE_WORDS[name]}{label}: its posterior is its prior "
        f"({gain:.2f} nats apart).",
        "Do not report it as a result; add replicates or individuals, or known statuses.",
        action=Action("column", "known"),
    )


def _lonely_class(parts: list[Part], gains: dict[str, float]) -> Iterator[Finding]:
    """A class with next to nobody in it, whose error rate is then the prior's."""
    positive = sum(float(part.counts.weight @ _positive(part)) for part in parts)
    total = sum(part.counts.individuals for part in parts)
    for number, rate, word in (
        (positive, NAMES[2], "positive"),
        (total - positive, NAMES[1], "negative"),
    ):
        if number < _LONELY and gains[rate] < 2 * _LEARNT + 0.1:
            yield Finding(
                f"no-{word}s",
                number,
                f"About {number:.1f} of {total:,} individuals are {word}, too few to learn the "
                f"{RATE_WORDS[rate]}.",
                f"Read the {RATE_WORDS[rate]} as an assumption, and add individuals known to be {word}.",
            )


def _positive(part: Part) -> Float:
    """The chance of each cell's individuals to be positive, their known status where there is one."""
    known = part.counts.known
    return np.where(known == UNKNOWN, part.chances.mean(axis=0), known)


def modes_findings(parts: list[Part], prior: Prior) -> Iterator[Finding]:
    """Several explanations of the same data; of several populations nothing is said."""
    if not all(part.fit.alone for part in parts):
        return
    found = mode_of(parts[0].counts, _with_modes(prior))
    rivals = [(rates, value) for rates, value in found.maxima if value > found.maxima[0][1] - _RIVAL]
    if len(rivals) > 1:
        (best, top), (other, value) = rivals[:2]
        yield Finding(
            "several-modes",
            len(rivals),
            f"{len(rivals)} different explanations fit: prevalence {best.prevalence:.2f} with error rates "
            f"{best.false_positive:.2f} and {best.false_negative:.2f}, or {other.prevalence:.2f} with "
            f"{other.false_positive:.2f} and {other.false_negative:.2f} ({np.exp(top - value):.3g} times "
            "less likely).",
            "A mean or a mode describes neither: look at the marginal densities, and bring in what is known "
            "about "
            "the test as a prior.",
            WARNING,
        )


def _with_modes(prior: Prior) -> Prior:
    """The prior with shapes of at least 1, below which a density has no mode."""
    shapes: dict[str, Any] = {
        name: (max(a, 1.0), max(b, 1.0)) for name, (a, b) in zip(NAMES, prior, strict=True)
    }
    if not prior.better_than_chance:  # error rates end at ½, where no shape makes a pole
        shapes |= {name: (shapes[name][0], getattr(prior, name)[1]) for name in NAMES[1:]}
    return replace(prior, **shapes)
