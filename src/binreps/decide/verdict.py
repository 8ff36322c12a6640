"""The verdict: one light, one sentence, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import Finding, Findings

WORDS = MappingProxyType({"green": "Good to use", "amber": "Read first", "red": "Do not use yet"})
"""The lights, and what they say."""

FOUND = MappingProxyType(
    {
        "common": "every test errs alike",
        "better-than-chance": "one test misses more positives than it finds",
        "correlated": "repeated tests of the same individual err together",
        "populations": "the populations differ in how many are positive",
        "covariates": "what else is known of individuals tells who is positive",
        "sources": "those who gave the results differ in how often they err",
    }
)
"""What the data say where a model is preferred, by its id."""

_UNTOLD = ("no-data", "not-identifiable", "one-reading", "two-sources", "at-chance", "chains-disagree")
MISFIT = ("count-table", "over-dispersion")
"""The findings that refute a model."""


@dataclass(frozen=True)
class Verdict:
    """Whether results can be used.

    Attributes
    ----------
    light : {"green", "amber", "red"}
    sentence : str
        Why, in words that need no statistics.
    reason : str
        The id of why: "fits", "other-model", or the name of a finding.
    model : str
        The model that the results are by, or should be.
    action : Action or None
        What to do about it.
    numbers : mapping of str to float
        Behind the sentence: individuals, changed (answers), difference and se of predictions, models tried.
    """

    light: str
    sentence: str
    reason: str
    model: str
    action: Action | None = None
    numbers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def word(self) -> str:
        """The light in words."""
        return WORDS[self.light]

    def __str__(self) -> str:
        return f"{self.word}: {self.sentence}"


def reached(
    findings: Findings, model: str, numbers: Mapping[str, float], simplest: str | None = None
) -> Verdict:
    """The verdict on a model from what speaks against it, and on its choice where others were tried.

    Parameters
    ----------
    findings : Findings
        Of the fit by this model.
    model : str
        The model that decides.
    numbers : mapping
    simplest : str, optional
        The simplest of the models that were tried; None where no other was.
    """
    if (one := _first(findings, _UNTOLD)) is not None:
        return Verdict("red", one.sentence, one.name, model, one.action, numbers)
    if (one := _first(findings, MISFIT)) is not None:
        if simplest is None:
            return Verdict("amber", one.sentence, one.name, model, one.action, numbers)
        said = f"None of {numbers['models']:.0f} models that were tried describes these data. {one.sentence}"
        return Verdict("red", said, one.name, model, one.action, numbers)
    if simplest is not None and model != simplest:
        said = f"{FOUND[model].capitalize()}, and {_changed(numbers)}."
        return Verdict("amber", said, "other-model", model, Action("model", model), numbers)
    if findings.warnings:
        one = findings.warnings[0]
        return Verdict("amber", one.sentence, one.name, model, one.action, numbers)
    tried = "" if simplest is None else f" Of {numbers['models']:.0f} models none describes them better."
    said = f"The data fit, and nothing speaks against the answers.{tried}"
    return Verdict("green", said, "fits", model, None, numbers)


def _first(findings: Findings, names: tuple[str, ...]) -> Finding | None:
    """The first warning with one of these names."""
    return next((one for one in findings.warnings if one.name in names), None)


def _changed(numbers: Mapping[str, float]) -> str:
    """How many answers change when that is taken into account."""
    changed, total = numbers["changed"], numbers["individuals"]
    if not changed:
        return "no answer changes when that is taken into account"
    verb = "changes" if changed == 1 else "change"
    return f"{changed:,.0f} of {total:,.0f} answers {verb} when that is taken into account"
