"""When a fit with covariates should not be believed: separation, collinearity, one replicate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from binreps.counts import UNKNOWN
from binreps.covariates import CovariateTable
from binreps.fits.base import Trouble
from binreps.fits.points.cloud import Cloud
from binreps.model import NAMES, Float

_ROWS = 200_000  # rows that the design is judged by: the largest tables are thinned
_LEARNT = 0.1  # nats between prior and posterior below which a number was not learnt
_CLEAR = 2.0  # log likelihood ratio from which replicates say clearly what someone is
_SEVERAL = 5  # individuals on either side, before a pattern among them means anything
_DEPENDENT = 1e-9  # of the largest singular value


def troubles_of(table: CovariateTable, cloud: Cloud) -> Iterator[Trouble]:
    """What design, results and posterior give reason to say."""
    if not table.terms or not len(table):
        return
    few = table.thinned(_ROWS)
    design = few.design()
    yield from _constant(table, design)
    yield from _collinear(table, design, few.weight)
    yield from _one_replicate(table)
    yield from _disguised(few)
    yield from _separated(few, design, cloud)
    yield from _unlearnt(table, cloud)


def _constant(table: CovariateTable, design: Float) -> Iterator[Trouble]:
    """Columns that are the same for everyone."""
    same = [term for term, column in zip(table.terms, design.T, strict=True) if np.ptp(column) == 0]
    if same:
        yield Trouble(
            "constant-covariate",
            len(same),
            f"{_listed(same)} {_is(same)} the same for everyone, so the data say nothing of it.",
            "Leave it out.",
        )


def _collinear(table: CovariateTable, design: Float, weight: NDArray[np.int64]) -> Iterator[Trouble]:
    """Columns that follow from each other, each set of them once."""
    varies = np.ptp(design, axis=0) > 0
    names = [term for term, kept in zip(table.terms, varies, strict=True) if kept]
    if len(names) < 2 or len(design) < 2:
        return
    scaled = design[:, varies] * np.sqrt(weight)[:, None]
    gram = scaled.T @ scaled / weight.sum()
    values, axes = np.linalg.eigh(gram)
    lost = values < _DEPENDENT * max(float(values[-1]), 1.0)
    if np.any(lost):
        share = np.sqrt(np.sum(axes[:, lost] ** 2, axis=1))
        found = [name for name, part in zip(names, share, strict=True) if part > 1e-3]
        yield Trouble(
            "collinear-covariates",
            int(lost.sum()),
            f"{_listed(found)} follow from each other, so that only the prior tells their slopes apart.",
            "Leave one of them out; predictions for individuals like those of the study are not affected.",
        )


def _one_replicate(table: CovariateTable) -> Iterator[Trouble]:
    """Whether nobody was measured twice."""
    unknown = table.known == UNKNOWN
    classes = {int(status) for status in table.known[table.n > 0]} - {UNKNOWN}
    most = int(table.n[unknown].max(initial=0))
    if most == 1 and len(classes) < 2:
        yield Trouble(
            "one-replicate",
            most,
            "Nobody of unknown status has more than one replicate: error rates are told only by how the "
            "logistic "
            "curve bends, which is an assumption.",
            "Measure some individuals twice or more, or add individuals of known status.",
        )


def _disguised(table: CovariateTable) -> Iterator[Trouble]:
    """Columns of two values that may be one of the results: never 1 without a positive, never 0 with all."""
    some = (table.n > 0) & (table.known == UNKNOWN)
    n, s, weight = table.n[some], table.s[some], table.weight[some]
    for each, values in zip(table.covariates, table.values, strict=True):
        own = values[some]
        levels = np.unique(own[own == own])
        if levels.size != 2:
            continue
        for high in levels:
            yes = own == high
            one, none = weight[yes & (s == 0)].sum(), weight[~yes & (s == n)].sum()
            mixed = weight[yes & (s < n)].sum() + weight[~yes & (s > 0)].sum()
            enough = weight[yes].sum() >= _SEVERAL and weight[~yes].sum() >= _SEVERAL
            if enough and one == 0 and none == 0 and (mixed >= _SEVERAL or np.all(n == 1)):
                yield Trouble(
                    "covariate-like-a-result",
                    float(weight.sum()),
                    f"Column {each.name!r} goes with the results as if it were one of them: nobody has "
                    f"its one value "
                    "without a positive replicate, or its other value with positive replicates only.",
                    "If it is one of the replicates, or follows from them, leave it out: it would count "
                    "twice.",
                )


def _separated(table: CovariateTable, design: Float, cloud: Cloud) -> Iterator[Trouble]:
    """Whether covariates alone tell who is clearly positive from who is clearly negative."""
    at, mass = cloud.parameters, cloud.points.masses[0]
    p, q = float(at.p @ mass), float(at.q @ mass)
    evidence = table.s * np.log((1 - q) / p) + (table.n - table.s) * np.log(q / (1 - p))
    positive = np.where(table.known == UNKNOWN, evidence > _CLEAR, table.known == 1)
    negative = np.where(table.known == UNKNOWN, evidence < -_CLEAR, table.known == 0)
    sizes = [int(table.weight[each].sum()) for each in (positive, negative)]
    if min(sizes) < 2:
        return
    risk = design @ (at.beta @ mass)
    if risk[positive].min() > risk[negative].max():
        yield Trouble(
            "separation",
            float(min(sizes)),
            "The covariates tell clearly positive from clearly negative individuals without a mistake, so "
            "that the "
            "data would let the slopes be as large as they like: how large they are is the prior's.",
            "Read the odds ratios as lower bounds; predictions depend on the prior of the slopes "
            "(slope_sd) too.",
        )
        return
    for term, column in zip(table.terms, table.indicators(design), strict=True):
        if column is None:
            continue
        inside = [int(table.weight[each & column].sum()) for each in (positive, negative)]
        if min(inside) == 0 and max(inside) >= _SEVERAL:
            word = "negative" if inside[0] == 0 else "positive"
            yield Trouble(
                "separated-level",
                float(max(inside)),
                f"Everyone with {term} whose replicates are clear is {word}: how large its odds ratio is "
                f"rests on the "
                "prior.",
                "Merge the level with another, or read the odds ratio as a bound.",
            )


def _unlearnt(table: CovariateTable, cloud: Cloud) -> Iterator[Trouble]:
    """Numbers whose posterior is their prior, which is a standard normal law in these coordinates."""
    v, mass = cloud.points.v, cloud.points.masses[0]
    mean = v @ mass
    var = np.maximum((v - mean[:, None]) ** 2 @ mass, 1e-12)
    gain = (var + mean**2 - 1 - np.log(var)) / 2
    words = [name.replace("_", "-") + " rate" for name in NAMES[1:]]
    names = [f"the slope of {term}" for term in table.terms] + [f"the {word}" for word in words]
    lost = [name for name, one in zip(names, gain[1:], strict=True) if one < _LEARNT]
    if lost:
        yield Trouble(
            "rests-on-prior",
            float(gain[1:].min()),
            f"The data hardly change what the prior says of {_listed(lost)}.",
            "Read these as assumptions; more replicates, or individuals of known status, would tell.",
        )


def _listed(names: list[str]) -> str:
    """Names in a sentence, the first few of many."""
    shown = names if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
