"""Whether it matters who gave a result, in which batch, or when: tests that need no model of the errors.

If results of one individual are exchangeable, then, given how many are positive, every way to share them out
is equally likely: the number that falls to a source is hypergeometric, with known mean and covariances.
Individuals with few and with many positives are looked at apart, so that sources with equal shares of
positives but unequal errors are told apart too. Where all results of an individual are from one group, the
groups are compared by the shares of positives of their individuals, which random labels would leave alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincc

from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import Finding
from binreps.fits.sampled.posterior import design
from binreps.model import Float
from binreps.readings import Readings

ALARM = 1e-3
"""The p-value below which a difference is reported."""

_MOST = 40  # groups looked at one by one; the others together
_LEAST = 10.0  # results about individuals with mixed results, for a group to be looked at by itself
_QUARTERS = 4  # into which times are cut


class Exchange(NamedTuple):
    """The outcome of a test.

    Attributes
    ----------
    p_value : float
    group : str
        The group that differs most.
    observed, expected : float
        Its positives, and how many it would have if groups were alike.
    total : float
        Its results that were looked at.
    """

    p_value: float
    group: str
    observed: float
    expected: float
    total: float


class Groups(NamedTuple):
    """Positives and results of each record in each group, shape (records, groups), and their names."""

    yes: Float
    all: Float
    weight: Float
    names: tuple[str, ...]


def groups_of(readings: Readings, *, ordered: bool = False) -> Groups:
    """The sources of readings as groups: those with most readings, or four stretches of time."""
    matrix = design(readings)
    yes, no = matrix[:, 1::2], matrix[:, 0::2]
    names = [str(name) for name in readings.sources]
    each = np.asarray(readings.weight @ (yes + no)).ravel()
    where, labels = _quarters(names, each) if ordered else _largest(names, each)
    onto = np.zeros((len(names), len(labels)))
    onto[np.arange(len(names)), where] = 1.0
    yes, whole = yes @ onto, (yes + no) @ onto
    weight = readings.weight.astype(float)
    return Groups(np.asarray(yes, float), np.asarray(whole, float), weight, tuple(labels))


def _largest(names: list[str], each: Float) -> tuple[Any, list[str]]:
    """Each source by itself; of very many those with the most readings, and the others together."""
    if len(names) <= _MOST:
        return np.arange(len(names)), names
    order = np.argsort(-each, kind="stable")
    where = np.full(len(names), _MOST)
    where[order[:_MOST]] = np.arange(_MOST)
    return where, [*(names[i] for i in order[:_MOST]), "the others"]


def _quarters(names: list[str], each: Float) -> tuple[Any, list[str]]:
    """Times in their order, cut into stretches of about equal numbers of readings."""
    try:
        order = np.argsort([float(name) for name in names], kind="stable")
    except ValueError:
        order = np.argsort(np.array(names), kind="stable")
    passed = np.cumsum(each[order]) - each[order] / 2
    where = np.empty(len(names), np.intp)
    where[order] = np.minimum((passed / each.sum() * _QUARTERS).astype(int), _QUARTERS - 1)
    return where, [f"quarter {i + 1}" for i in range(_QUARTERS)]


def within(groups: Groups) -> Exchange | None:
    """Whether results of the same individual differ by group; None where nothing can show it."""
    n, s = groups.all.sum(axis=1), groups.yes.sum(axis=1)
    mixed = (s > 0) & (s < n)
    held = (groups.weight * mixed) @ groups.all
    kept = held >= _LEAST
    if kept.sum() < 2:
        return None
    share = np.divide(s, n, out=np.zeros_like(s), where=n > 0)
    spread = np.divide(s * (n - s), n**2 * (n - 1), out=np.zeros_like(s), where=mixed)
    gap = np.zeros((2, int(kept.sum())))
    statistic = freedom = 0.0
    whole = groups.all[:, kept]
    for half, some in enumerate((mixed & (2 * s <= n), mixed & (2 * s > n))):
        w = groups.weight * some
        gap[half] = w @ (groups.yes[:, kept] - share[:, None] * whole)
        scale = (w * spread * n) @ whole
        covariance = np.diag(scale) - (whole * (w * spread)[:, None]).T @ whole
        one, more = _chi_square(gap[half], covariance, scale)
        statistic, freedom = statistic + one, freedom + more
    if not freedom:
        return None
    total = held[kept]
    expected = (groups.weight * mixed * share) @ whole
    observed = expected + gap.sum(axis=0)
    worst = int(np.argmax(np.abs(gap).sum(axis=0) / np.sqrt(total)))
    name = [label for label, one in zip(groups.names, kept, strict=True) if one][worst]
    p_value = float(gammaincc(freedom / 2, statistic / 2))
    return Exchange(p_value, name, float(observed[worst]), float(expected[worst]), float(total[worst]))


def between(groups: Groups) -> Exchange | None:
    """Whether individuals of different groups differ in their shares of positives; None without such."""
    n, s = groups.all.sum(axis=1), groups.yes.sum(axis=1)
    alone = (n > 0) & (groups.all.max(axis=1, initial=0) == n)
    member = (groups.all[alone] > 0).astype(float)
    weight = groups.weight[alone]
    each = weight @ member
    kept = each >= _LEAST
    if kept.sum() < 2 or weight[:, None][member[:, kept].any(axis=1)].sum() < 0.9 * groups.weight.sum():
        return None
    member, each = member[:, kept], each[kept]
    inside = weight * member.any(axis=1)
    share = s[alone] / n[alone]
    total = float(inside.sum())
    mean = float(inside @ share) / total
    variance = float(inside @ (share - mean) ** 2) / (total - 1)
    gap = weight @ (member * (share - mean)[:, None])
    covariance = variance * (np.diag(each) - np.outer(each, each) / total)
    statistic, freedom = _chi_square(gap, covariance, variance * each)
    if not freedom:
        return None
    worst = int(np.argmax(np.abs(gap) / np.sqrt(each)))
    name = [label for label, one in zip(groups.names, kept, strict=True) if one][worst]
    p_value = float(gammaincc(freedom / 2, statistic / 2))
    expected = mean * each[worst]
    return Exchange(p_value, name, float(expected + gap[worst]), float(expected), float(each[worst]))


def _chi_square(gap: Float, covariance: Float, scale: Float) -> tuple[float, float]:
    """gap′ covariance⁻ gap, and its degrees of freedom: those that differences leave, beyond rounding."""
    values, vectors = np.linalg.eigh(covariance)
    some = values > 1e-9 * max(float(scale.max(initial=0.0)), 1e-300)
    turned = vectors[:, some].T @ gap
    return float(np.sum(turned**2 / values[some])), float(some.sum())


_SAID = {
    "reader-differences": ("Those who gave the results differ", "Let each have error rates of its own."),
    "fixed-panel": (
        "The columns are not replicates of one test: they differ",
        "Let each column have error rates of its own.",
    ),
    "batch-differences": (
        "Results differ from batch to batch",
        "Let each batch have error rates of its own.",
    ),
    "drift": (
        "Results drift over time",
        "Find out what changed; let each period have error rates of its own.",
    ),
}
"""What is said of each kind of group, and what to do."""

_ACTIONS = {
    "reader-differences": Action("model", "sources"),
    "fixed-panel": Action("model", "sources"),
    "batch-differences": Action("column", "source"),
    "drift": Action("column", "source"),
}


def exchange_findings(kind: str, readings: Readings) -> list[Finding]:
    """What groups of readings say: within individuals, and else between them.

    Parameters
    ----------
    kind : {"reader-differences", "fixed-panel", "batch-differences", "drift"}
    readings : Readings
        Their sources are the readers, columns, batches or times.
    """
    groups = groups_of(readings, ordered=kind == "drift")
    found, other = within(groups), None
    said, advice = _SAID[kind]
    if found is not None and found.p_value < ALARM:
        how = (
            f"{found.group} has {found.observed:,.0f} positives among {found.total:,.0f} results about "
            f"individuals with mixed results, where {found.expected:,.0f} would be expected"
        )
        sentence = f"{said}: {how} (p = {found.p_value:.1g})."
        return [Finding(kind, found.p_value, sentence, advice, action=_ACTIONS[kind])]
    if found is None and kind in ("batch-differences", "drift"):
        other = between(groups)
    if other is not None and other.p_value < ALARM:
        how = (
            f"in {other.group} {other.observed / other.total:.0%} of an individual's results are positive "
            f"on average, {other.expected / other.total:.0%} in all"
        )
        told = "Name the column as the population, so that each has a prevalence of its own."
        action = Action("column", "population")
        return [
            Finding(kind, other.p_value, f"{said}: {how} (p = {other.p_value:.1g}).", told, action=action)
        ]
    return []
