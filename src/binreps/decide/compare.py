"""Which model: several fits of the same individuals, by what each says of an individual that it has not seen.

The measure is the leave-one-out log predictive density, summed over individuals, of the readings in their
order: no binomial coefficients, statuses and individual effects integrated out. Two models differ if their
difference is above 4 and above two standard errors over individuals; otherwise they tie, and the simpler one
is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from binreps.counts import UNKNOWN
from binreps.decide.checks.findings import Findings
from binreps.decide.loss import Loss, decision_words
from binreps.decide.verdict import MISFIT, Verdict, reached
from binreps.errors import OptionError
from binreps.fits.base import AnyFit
from binreps.fits.left_out import LeftOut
from binreps.options import shown
from binreps.table import Table

LEAST, SURE = 4.0, 2.0
"""The difference, and the standard errors of it, up to which two models tie."""


@dataclass(frozen=True, eq=False)
class Tried:
    """One model that was fitted.

    Attributes
    ----------
    model : str
        Its id.
    fit : any fit
    left_out : LeftOut
        What it says of each individual, the others given.
    seconds : float
        Processor time of both.
    check : callable
        How the fit is checked, when it is asked what speaks against it.
    """

    model: str
    fit: AnyFit
    left_out: LeftOut
    seconds: float
    check: Callable[[AnyFit], Findings] = lambda _: Findings()

    @cached_property
    def findings(self) -> Findings:
        """What speaks against it."""
        return self.check(self.fit)

    @cached_property
    def by_results(self) -> bool:
        """Whether n, s and a known status settle its density, so that any record of the data has one."""
        keys = _keys(self.left_out)
        return bool(np.unique(keys, axis=1).shape == keys.shape)


class Difference(NamedTuple):
    """How much better one model predicts than another: the sum over individuals, and how sure it is.

    Attributes
    ----------
    value : float
        In nats.
    se : float
        Its standard error over individuals.
    error : float
        Its numerical error.
    """

    value: float
    se: float
    error: float

    @property
    def outright(self) -> bool:
        """Whether the first model is better, and no tie."""
        return self.value - self.error > max(LEAST, SURE * self.se)


def tried(model: str, make: Callable[[], AnyFit], check: Callable[[AnyFit], Findings]) -> Tried:
    """A model fitted and timed."""
    start = time.process_time()
    fit = make()
    left_out = fit.left_out()
    return Tried(model, fit, left_out, time.process_time() - start, check)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Several models of the same individuals, the simplest first; made by `compare`.

    Attributes
    ----------
    tried : tuple of Tried
    loss : Loss
        By which decisions are made.
    refused : mapping of str to str
        Models that could not be fitted, and why.
    """

    tried: tuple[Tried, ...]
    loss: Loss
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, model: str) -> Tried:
        if isinstance(model, str) and model in self.models:
            return self.tried[self.models.index(model)]
        raise OptionError(f"model must be one of {', '.join(self.models)}, got {shown(model)}")

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were tried, the simplest first."""
        return tuple(one.model for one in self.tried)

    @property
    def simplest(self) -> Tried:
        """What the others are measured by."""
        return self.tried[0]

    @cached_property
    def _unbeaten(self) -> list[Tried]:
        """The models that no other beats outright, the simplest first."""
        return [
            one
            for one in self.tried
            if not any(self.difference(other.model, one.model).outright for other in self.tried)
        ]

    @property
    def preferred(self) -> str:
        """The simplest model that no other beats outright."""
        return self._unbeaten[0].model

    @cached_property
    def chosen(self) -> str:
        """The simplest model that is not refuted: neither beaten, nor by its own checks.

        Where the checks refute all that are not beaten, it is the preferred one.
        """
        fits = (one.model for one in self._unbeaten if not set(MISFIT) & _names(one.findings))
        return next(fits, self.preferred)

    def difference(self, model: str, other: str) -> Difference:
        """How much better one model predicts individuals than another.

        Two models that see different things of an individual, such as its source and its age, are compared
        through the simplest; the standard error is then a bound, the sum of two.
        """
        a, b = self[model], self[other]
        error = a.left_out.total_error + b.left_out.total_error
        value = a.left_out.total - b.left_out.total
        if a.by_results or b.by_results:
            return Difference(value, _pair_se(a, b), error)
        return Difference(value, _pair_se(a, self.simplest) + _pair_se(b, self.simplest), error)

    @property
    def verdict(self) -> Verdict:
        """Whether the chosen model can be used, and what it changes."""
        chosen = self[self.chosen]
        return reached(chosen.findings, chosen.model, self.numbers, self.simplest.model)

    @property
    def numbers(self) -> dict[str, float]:
        """Behind the verdict: what the chosen model changes, and how much better it predicts."""
        found = self.difference(self.chosen, self.simplest.model)
        return {
            "individuals": float(self.simplest.left_out.weight.sum()),
            "changed": float(self.changed(self.chosen)),
            "difference": found.value,
            "se": found.se,
            "models": float(len(self.tried)),
        }

    def changes(self, model: str) -> Table:
        """Whose decision differs from the simplest model's: results, both answers, and how many."""
        one = self[model].left_out
        n, s, weight, scores = self[model].fit.everyones_scores()
        *_, plain = self.simplest.fit.everyones_scores()
        after, before = (self.loss.classify(np.clip(each, 0.0, 1.0)) for each in (scores, plain))
        before = before[_places(self.simplest.left_out, one)]
        other = (after != before) & (np.asarray(one.known) == UNKNOWN)
        rows = np.stack([n, s, 2 * before, 2 * after])[:, other].astype(np.int64)
        kinds, where = np.unique(rows, axis=1, return_inverse=True)
        many = np.bincount(where.ravel(), weight[other], minlength=kinds.shape[1]).astype(np.int64)
        columns: dict[str, Any] = {"n": kinds[0], "s": kinds[1]}
        columns |= {name: decision_words(kinds[i] / 2) for i, name in ((2, "before"), (3, "after"))}
        columns["individuals"] = many
        return Table(columns)

    def changed(self, model: str) -> int:
        """How many individuals get another decision than by the simplest model."""
        return int(sum(self.changes(model)["individuals"]))

    def table(self) -> Table:
        """One row per model.

        model, log_evidence (NaN where it is not computed), density (summed), difference from the simplest
        model with its se, outright (whether that is no tie), doubtful (individuals whose density cannot be
        trusted, by k̂), against (findings), changed (decisions), error (numerical, in posterior sds) and
        seconds.
        """
        rows = [self._row(one) for one in self.tried]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        refused = [f"{model}: {why}" for model, why in self.refused.items()]
        return Table(columns, title=f"chosen: {self.chosen}", note="\n".join(refused))

    def _row(self, one: Tried) -> dict[str, Any]:
        """What is shown of one model."""
        found = self.difference(one.model, self.simplest.model)
        return {
            "model": one.model,
            "log_evidence": one.fit.log_evidence,
            "density": one.left_out.total,
            "difference": found.value,
            "se": found.se,
            "outright": found.outright,
            "doubtful": one.left_out.doubtful,
            "against": ", ".join(finding.name for finding in one.findings.warnings),
            "changed": self.changed(one.model),
            "error": one.fit.error,
            "seconds": one.seconds,
        }

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _pair_se(a: Tried, b: Tried) -> float:
    """The standard error over individuals of a summed difference; one of the two goes by results alone."""
    fine, plain = (a, b) if b.by_results else (b, a)
    weight = np.asarray(fine.left_out.weight, float)
    gap = fine.left_out.density - plain.left_out.density[_places(plain.left_out, fine.left_out)]
    total = float(weight.sum())
    if total < 2:
        return 0.0
    spread = float(weight @ (gap - weight @ gap / total) ** 2)
    return float(np.sqrt(total / (total - 1) * spread))


def _names(findings: Findings) -> set[str]:
    """The names of the warnings."""
    return {one.name for one in findings.warnings}


def _keys(records: LeftOut) -> Any:
    """n, s and known status of each record."""
    return np.stack([records.n, records.s, np.asarray(records.known, np.int64)])


def _places(own: LeftOut, asked: LeftOut) -> Any:
    """Which record of a model by results each record of another has."""
    keys = _keys(own)
    both = np.concatenate([keys, _keys(asked)], axis=1)
    kinds, where = np.unique(both, axis=1, return_inverse=True)
    where = where.ravel()
    place = np.zeros(kinds.shape[1], np.intp)
    place[where[: keys.shape[1]]] = np.arange(keys.shape[1])
    return place[where[keys.shape[1] :]]
