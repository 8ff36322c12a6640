"""`check`: every question that a fit should be asked before it is believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from binreps.decide.checks.decisions import decisions_findings
from binreps.decide.checks.findings import Finding, Findings
from binreps.decide.checks.goodness import assumption_findings, table_findings
from binreps.decide.checks.identifiability import (
    learning_findings,
    modes_findings,
    replicates_findings,
)
from binreps.decide.checks.limits import limits_findings
from binreps.decide.checks.sensitivity import sensitivity_findings
from binreps.decide.checks.subject import parts_of
from binreps.decide.loss import Loss, check_loss
from binreps.fits.base import AnyFit, check_fit
from binreps.model import Prior
from binreps.options import check_level, kinds_checked


@kinds_checked
def check(fit: AnyFit, loss: Loss | None = None, *, level: float = 0.95) -> Findings:
    """What to know before believing a fit: findings, each with a number, a sentence and what to do.

    - Can the data tell prevalence and error rates apart, and did they? Too few replicates, rates whose
      posterior is their prior, error rates pressed against the limit of their region (against ½ with what
      `Prior(better_than_chance=True)` would change), a class with nobody in it, several modes.
    - Does the model describe the counts? Posterior-predictive p-values of the count table; tests of
      correlated replicates (over-dispersion) and of numbers of replicates that go with the status.
    - With covariates: separation, columns that follow from each other or that look like a result, slopes and
      rates that are the prior's; results by number of replicates and by fitted risk beside what is predicted;
      tests of correlated replicates, of straight logits, and of errors that go with a covariate.
    - How much is the prior's? Power-scaling of each prior and of the likelihood.
    - With sources: groups that no individual links, too few sources or readings, chains that disagree,
      sources worse than chance and those whose answers say nothing, by name.
    - Given a loss, which decisions hang by a thread: within the numerical error, within the uncertainty of
      the rates, within a mild change of prior.

    Parameters
    ----------
    fit : any fit
        A Bayesian fit, of one or several populations, is asked everything; a posterior mode, what a point can
        answer; the average and the median, which have no model of the counts, only about the replicates.
    loss : Loss, optional
        What wrong answers cost; without it no decisions are checked.
    level : float
        How often, at least, the tests of the model stay silent on data that come from it.

    Returns
    -------
    Findings

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> from binreps.fits.bayes import fit_bayes
    >>> found = check(fit_bayes(CountTable([2, 2, 2], [0, 1, 2], weight=[60, 30, 10])))
    >>> "not-identifiable" in found
    True
    >>> print(found.warnings[0])
    WARNING not-identifiable: Nobody of unknown status has more than 2 replicates, so the data cannot
      tell prevalence and error rates apart: the estimates rest on the prior.
      → Measure some individuals three times or more, add individuals of known status, or state a prior
        that you can defend for the error rates. br.fit(…, prior=br.Prior(false_positive=(a, b)))
    """
    check_level(level)
    check_fit(fit)
    if loss is not None:
        check_loss(loss)
    return Findings(tuple(_findings(fit, loss, 1 - level)))


def _findings(fit: Any, loss: Loss | None, alarms: float) -> Iterator[Finding]:
    """All findings, in the order of the questions."""
    if fit.has_sources:
        from binreps.decide.checks.sources import sources_findings  # with all that samples

        yield from sources_findings(fit, loss)
        yield from (Finding(*trouble) for trouble in fit.troubles())
        return
    yield from replicates_findings(fit)
    yield from (Finding(*trouble) for trouble in fit.troubles())
    if fit.records is not None:
        from binreps.decide.checks.covariates import covariates_findings

        yield from covariates_findings(fit, loss, alarms)
    parts = parts_of(fit)
    if not parts:
        return
    drawn, prior = not parts[0].fit.posterior.certain, parts[0].fit.prior or Prior()
    if drawn:
        yield from learning_findings(parts, prior)
    yield from limits_findings(fit, parts, prior, loss)
    yield from modes_findings(parts, prior)
    yield from table_findings(parts, alarms)
    yield from assumption_findings(parts, alarms)
    if drawn:
        yield from sensitivity_findings(parts, prior)
    if loss is not None:
        yield from decisions_findings(parts, loss, prior if drawn else None)
