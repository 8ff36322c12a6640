"""How much of a result is the prior's: power-scaling, and whether prior and data disagree.

Raise one prior, or the likelihood, to a power α close to 1. Per unit of log α the posterior mean of a rate x
then moves by Cov(x, log prior) or Cov(x, log likelihood) (Kallioinen and others, 2024): no refit is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import NOTE, WARNING, Finding
from binreps.decide.checks.identifiability import RATE_WORDS
from binreps.decide.checks.subject import Part
from binreps.model import NAMES, Float, Prior

_NOTICEABLE = 0.3  # standard deviations per doubling of the prior
_STRONG = 0.8


def sensitivity_findings(parts: list[Part], prior: Prior) -> Iterator[Finding]:
    """Each prior that moves a rate noticeably, with what it means."""
    likelihood = np.sum([part.log_likelihood() for part in parts], axis=0)
    for name in NAMES:
        worst = max((_shifted(parts, prior, name, likelihood)), key=lambda found: abs(found[1]))
        rate, shift, by_data = worst
        if abs(shift) >= _NOTICEABLE:
            yield _finding(name, rate, shift, by_data, getattr(prior, name) == getattr(Prior(), name))


def _shifted(parts: list[Part], prior: Prior, name: str, likelihood: Float) -> list[tuple[str, float, float]]:
    """Each rate with how far one prior and the likelihood move its mean."""
    found = []
    if name == NAMES[0]:
        power = np.sum([log_prior(prior, name, getattr(part.draws, name)) for part in parts], axis=0)
    else:
        power = log_prior(prior, name, getattr(parts[0].draws, name))
    for i, part in enumerate(parts):
        for rate in NAMES if i == 0 else NAMES[:1]:
            x = getattr(part.draws, rate)
            found.append(
                (
                    f"{RATE_WORDS[rate]}{part.label}",
                    shift_per_doubling(x, power),
                    shift_per_doubling(x, likelihood),
                )
            )
    return found


def log_prior(prior: Prior, name: str, x: Float) -> Float:
    """The log density of one rate's prior, without its constant."""
    a, b = getattr(prior, name)
    inside = np.clip(x, 1e-300, 1 - 2.0**-53)
    return np.asarray((a - 1) * np.log(inside) + (b - 1) * np.log1p(-inside))


def shift_per_doubling(x: Float, log_factor: Float) -> float:
    """How many sds the mean of x moves when a factor of the posterior is squared, to first order."""
    spread = float(np.std(x))
    if spread == 0 or np.std(log_factor) == 0:
        return 0.0
    return float(np.log(2) * np.mean((x - x.mean()) * (log_factor - log_factor.mean())) / spread)


def _finding(name: str, rate: str, shift: float, by_data: float, unchosen: bool) -> Finding:
    """What a sensitive prior means, by what the likelihood does to the same rate."""
    conflict = abs(by_data) >= _NOTICEABLE and by_data * shift < 0
    meaning = (
        "prior and data pull in opposite directions" if conflict else "the data are too weak to outweigh it"
    )
    advice = (
        "Find out which of the two is wrong; show the results under a weaker prior beside these."
        if conflict
        else "Say where this prior comes from, and show the results under another one beside these."
    )
    if unchosen:
        advice = (
            "This is the default prior: put what you know of the rate in its place, or show the results "
            "under another one beside these."
        )
    return Finding(
        f"prior-{name.replace('_', '-')}",
        abs(shift),
        f"The prior of the {RATE_WORDS[name]} matters: counting it twice would move the {rate} by "
        f"{abs(shift):.1f} "
        f"posterior standard deviations; {meaning}.",
        advice,
        WARNING if abs(shift) >= _STRONG else NOTE,
        Action("prior", name.replace("_", "-")),
    )
