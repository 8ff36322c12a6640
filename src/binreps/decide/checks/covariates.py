"""Whether results look like those of a model with covariates, and what it assumes of covariates is true.

The results of groups of individuals (by number of replicates, by fitted risk) are compared with what the fit
predicts for them, as in `goodness`; four assumptions are tested as in `scores`: that replicates are
independent, that their number says nothing, that logits are straight in every number, and that the errors of
the test do not go with a covariate. The largest tables are judged by every so many of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from binreps.counts import UNKNOWN
from binreps.covariates import CovariateTable
from binreps.decide.checks.findings import NOTE, Finding
from binreps.decide.checks.goodness import Look, binomial_p_value, number
from binreps.decide.checks.scores import Rows, ScoreTest, error_derivatives, score_test
from binreps.decide.loss import Loss
from binreps.fits.covariates import CovariatesFit
from binreps.model import ALIKE, TIE, Float, Records, log_ways

# How the false alarms allowed in all are shared out; the rest is kept for p-values that are approximations.
_SHARE_TABLE, _SHARE_DISPERSION, _SHARE_REPLICATION, _SHARE_BENT, _SHARE_ERRORS = 0.2, 0.25, 0.1, 0.15, 0.2
_SEED, _DRAWS = 20_260_402, 200  # any number: the same fit must give the same findings
_ROWS = 20_000  # that groups and tests are made of
_MOST_RESULTS = 200_000  # possible results of these rows: individuals with very many replicates are left out
_MOST_GROUPS, _LEAST = 6, 10  # numbers of replicates looked at one by one; individuals in a group
_RISKS = ("low", "middle", "high")


def covariates_findings(fit: CovariatesFit, loss: Loss | None, alarms: float) -> Iterator[Finding]:
    """All findings on a fit by covariates that its own troubles do not name."""
    table = fit.records.thinned(_ROWS)
    if not len(table):
        return
    yield from _table(fit, table, alarms * _SHARE_TABLE)
    yield from _assumptions(fit, table, alarms)
    if loss is not None:
        yield from _close_decisions(fit, loss)


# Results of groups -----------------------------------------------------------------------------------


def _table(fit: CovariatesFit, table: CovariateTable, alarms: float) -> Iterator[Finding]:
    """The groups whose results are not those that the fit predicts."""
    looks = looks_of(fit, table)
    if not looks:
        return
    worst = min(looks, key=lambda look: look.p_value)
    adjusted = min(1.0, worst.p_value * len(looks))
    if adjusted < alarms:
        yield Finding(
            "count-table",
            adjusted,
            f"The model does not describe the results: {worst.words} {number(worst.observed)}, where it "
            f"expects {number(worst.expected)} (posterior-predictive p = {worst.p_value:.1g}, the smallest "
            f"of {len(looks)}).",
            "Ask what these individuals have in common that is not among the covariates, and whether "
            "replicates of one individual share a cause of error.",
        )


def looks_of(fit: CovariatesFit, table: CovariateTable) -> list[Look]:
    """All-negative, all-positive and mixed individuals for each n, and for low, middle and high risk."""
    free = (table.known == UNKNOWN) & (table.n > 0)
    at = fit.cloud.parameters
    drawn = fit.cloud.choose(_DRAWS, np.random.default_rng(_SEED))
    p, q, beta = at.p[drawn], at.q[drawn], at.beta[:, drawn]
    theta = expit(table.design() @ beta + at.alpha[drawn])
    n = table.n[:, None]
    none = theta * q**n + (1 - theta) * (1 - p) ** n
    every = theta * (1 - q) ** n + (1 - theta) * p**n
    kinds = {"all negative": (table.s == 0, none), "all positive": (table.s == table.n, every)}
    kinds["mixed"] = ((table.s > 0) & (table.s < table.n), 1 - none - every)
    looks = []
    for words, group in _groups(table, free, theta.mean(axis=1)):
        used = {k: v for k, v in kinds.items() if k != "all negative" or np.any(table.n[group] > 1)}
        used = used if np.any(table.n[group] > 1) else {"all positive": kinds["all positive"]}
        for kind, (seen, chance) in used.items():
            looks.append(_look(words, kind, table.weight[group], seen[group], chance[group]))
    return looks


def _groups(
    table: CovariateTable, free: NDArray[np.bool_], risk: Float
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Individuals of unknown status by number of replicates, and in three parts by fitted risk."""
    sizes = np.bincount(
        np.searchsorted(values := np.unique(table.n[free]), table.n[free]), table.weight[free]
    )
    for k in np.sort(np.argsort(-sizes, kind="stable")[:_MOST_GROUPS]):
        if sizes[k] >= _LEAST:
            yield f" with n = {values[k]}", free & (table.n == values[k])
    order = np.argsort(risk[free], kind="stable")
    reached = np.cumsum(table.weight[free][order]) / max(table.weight[free].sum(), 1)
    part = np.empty(order.size, int)
    part[order] = np.minimum((reached * 3 - 1e-9).astype(int), 2)
    for k, name in enumerate(_RISKS):
        group = free.copy()
        group[free] = part == k
        if table.terms and table.weight[group].sum() >= _LEAST:
            yield f" of {name} risk", group


def _look(words: str, kind: str, weight: NDArray[np.int64], seen: NDArray[np.bool_], chance: Float) -> Look:
    """One number of a group against its prediction."""
    total, observed = float(weight.sum()), float(weight[seen].sum())
    expected = weight @ chance
    p_value = binomial_p_value(observed, total, np.clip(expected / total, 0.0, 1.0))
    sentence = f"among {total:,.0f} individuals{words} those {kind} number"
    return Look(sentence, observed, float(expected.mean()), p_value, observed > float(expected.mean()))


# Assumptions -----------------------------------------------------------------------------------------


class Results:
    """Every possible result of every row, with its chance and the derivatives at the fit's estimates."""

    def __init__(self, fit: CovariatesFit, table: CovariateTable) -> None:
        kept = _with_room(table)
        at, mass = fit.cloud.parameters, fit.cloud.points.masses[0]
        self._p, self._q = float(at.p @ mass), float(at.q @ mass)
        x = table.design()[kept]
        own = table.n[kept]
        self.row = np.repeat(np.arange(kept.size), own + 1)
        self.n = own[self.row]
        self.s = np.arange(self.row.size) - (np.cumsum(own + 1) - (own + 1))[self.row]
        self.x, eta = x[self.row], (x @ (at.beta @ mass) + float(at.alpha @ mass))[self.row]
        self.known = table.known[kept][self.row]
        negative, positive = ALIKE.log_classes(Records(self.n, self.s), self._p, self._q)
        self.theta, open_ = expit(eta), self.known == UNKNOWN
        self.y = np.where(open_, expit(eta + positive - negative), self.known)
        mixture = np.logaddexp(np.log1p(-self.theta) + negative, np.log(self.theta) + positive)
        chance = np.select([open_, self.known == 1], [mixture, positive], negative)
        weight = table.weight[kept][self.row]
        self.expected = weight * np.exp(chance + log_ways(self.n, self.s))
        self.observed = weight * (self.s == table.s[kept][self.row])
        self.risen = np.where(open_, self.y - self.theta, 0.0)  # by η
        self.of_p, self.of_q, self.pairs = error_derivatives(self.n, self.s, self.y, self._p, self._q)

    def rows(self) -> Rows:
        """What the tests take."""
        rates = np.column_stack([self.risen, self.risen[:, None] * self.x, self.of_p, self.of_q])
        free = self.observed * (self.known == UNKNOWN)
        middle = float(free @ self.n) / max(float(free.sum()), 1.0)
        return Rows(self.expected, self.observed, rates, self.pairs, self.risen * (self.n - middle))


def _with_room(table: CovariateTable) -> NDArray[np.intp]:
    """Rows with someone measured whose possible results are few enough, the fewest replicates first."""
    kept = np.flatnonzero(table.n > 0)
    order = kept[np.argsort(table.n[kept], kind="stable")]
    return np.sort(order[np.cumsum(table.n[order] + 1) <= _MOST_RESULTS])


def _assumptions(fit: CovariatesFit, table: CovariateTable, alarms: float) -> Iterator[Finding]:
    """Tests of what the model takes for granted."""
    results = Results(fit, table)
    if not results.row.size:
        return
    rows = results.rows()
    yield from _dispersion(score_test(rows, rows.correlation), int(table.n.max()), alarms * _SHARE_DISPERSION)
    yield from _replication(score_test(rows, rows.replication), alarms * _SHARE_REPLICATION)
    yield from _bent(table, results, rows, alarms * _SHARE_BENT)
    yield from _errors_differ(table, results, rows, alarms * _SHARE_ERRORS)


def _dispersion(test: ScoreTest, most: int, alarms: float) -> Iterator[Finding]:
    """Whether replicates of an individual agree more than status and covariates explain."""
    if not test.possible and most > 1:
        yield Finding(
            "dispersion-unseen",
            most,
            f"With at most {most} replicates each, nothing can show whether replicates of an individual are "
            "correlated.",
            "If replicates may share a cause of error, measure some individuals four times or more.",
            NOTE,
        )
    elif test.possible and test.above < alarms:
        yield Finding(
            "over-dispersion",
            test.above,
            "Replicates of an individual agree more than its status and its covariates explain (p = "
            f"{test.above:.1g}).",
            "Scores close to 0 and 1 are then too sure; fit_overdispersed, without the covariates, says by "
            "how much.",
        )


def _replication(test: ScoreTest, alarms: float) -> Iterator[Finding]:
    """Whether individuals with more replicates are positive more, or less, often than covariates say."""
    p_value = _two_sided(test)
    if p_value < alarms:
        more = "more" if test.z > 0 else "less"
        yield Finding(
            "informative-replication",
            p_value,
            f"Individuals with more replicates are {more} often positive than their covariates say (p = "
            f"{p_value:.1g}).",
            "Ask why some were measured more often; if it was because of earlier results, make the number "
            "of replicates a covariate.",
        )


def _bent(table: CovariateTable, results: Results, rows: Rows, alarms: float) -> Iterator[Finding]:
    """Columns of numbers along which the logit of the prevalence is not straight."""
    names = [name for name, is_level in _terms(table) if not is_level]
    places = [table.terms.index(name) for name in names]
    tests = [score_test(rows, results.risen * results.x[:, k] ** 2) for k in places]
    for k, p_value in _worst(tests, alarms):
        name, more = names[k], tests[k].z > 0
        yield Finding(
            "bent-covariate",
            p_value,
            f"Prevalence does not go straight with {name}: it is {'higher' if more else 'lower'} at both "
            f"ends, and {'lower' if more else 'higher'} in the middle, than a straight line of log odds "
            f"says (p = {p_value:.1g}).",
            f"Add its square as a column (formula='{name} + I({name}**2)'), or make it a category.",
        )


def _errors_differ(table: CovariateTable, results: Results, rows: Rows, alarms: float) -> Iterator[Finding]:
    """The column with which the errors of the test go most."""
    sides = (("false-positive", results.of_p), ("false-negative", results.of_q))
    asked = [(word, of, k) for word, of in sides for k in range(len(table.terms))]
    tests = [score_test(rows, of * results.x[:, k]) for _, of, k in asked]
    for i, p_value in _worst(tests, alarms):
        word, _, k = asked[i]
        name, is_level = _terms(table)[k]
        where = f"for individuals with {name}" if is_level else f"where {name} is larger"
        yield Finding(
            "errors-by-covariate",
            p_value,
            f"The {word} rate is not the same for everyone: it is {'higher' if tests[i].z > 0 else 'lower'} "
            f"{where} (p = {p_value:.1g}), and the model gives everyone the same.",
            f"Part of what {name} seems to do to the prevalence may be what it does to the test: fit groups "
            "apart (fit_by), where error rates are their own.",
        )


def _terms(table: CovariateTable) -> list[tuple[str, bool]]:
    """The columns of the design, and whether each is a level of a category."""
    levels = table.indicators(table.design(slice(0, 1)))
    return [(name, level is not None) for name, level in zip(table.terms, levels, strict=True)]


def _worst(tests: list[ScoreTest], alarms: float) -> Iterator[tuple[int, float]]:
    """The test with the smallest p-value, corrected for how many there are, if that is small enough."""
    found = {k: _two_sided(test) for k, test in enumerate(tests) if test.possible}
    if not found:
        return
    k = min(found, key=lambda one: found[one])
    p_value = min(1.0, found[k] * len(found))
    if p_value < alarms:
        yield k, p_value


def _two_sided(test: ScoreTest) -> float:
    return min(1.0, 2 * min(test.above, test.below)) if test.possible else 1.0


def _close_decisions(fit: CovariatesFit, loss: Loss) -> Iterator[Finding]:
    """Decisions that the numerical error leaves open."""
    table = fit.records
    score, error = fit.score(table), fit.score_error(table)
    gap = np.min([np.abs(score - threshold) for threshold in loss.thresholds], axis=0)
    close = (gap <= error) & (gap > TIE) & (table.known == UNKNOWN)
    several = int(table.weight[close].sum())
    if several:
        yield Finding(
            "decision-numerical",
            several,
            f"{several:,} of {table.individuals:,} individuals have a score so close to a threshold that the "
            "numerical error of the fit decides.",
            "Look at them yourself, or ask for a smaller error (tol=…).",
            NOTE,
        )
