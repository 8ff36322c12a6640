"""`compare`: which model fits a table, and what it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from binreps.decide.compare import Comparison
from binreps.decide.loss import Loss
from binreps.model import Prior
from binreps.options import kinds_checked
from binreps.run.analysis import Settings
from binreps.run.candidates import compared
from binreps.run.data import Data
from binreps.run.front import counted, is_counted, reading_source, source_data
from binreps.run.looked import looked_at
from binreps.tables.files import PathLike
from binreps.tables.roles import AllColumns


@kinds_checked
def compare(
    table: Any | PathLike | Sequence[PathLike],
    *,
    prior: Prior | None = None,
    loss: Loss | None = None,
    memory: str | None = None,
    reference: Mapping[str, Any] | None = None,
    missing_covariates: str = "refuse",
    sheet: str | None = None,
    **columns: Unpack[AllColumns],
) -> Comparison:
    """Fit every model that the columns allow, and say which describes the individuals best.

    Each model is judged by what it says of an individual when all others are given: the log predictive
    density of its readings in their order, log 1/E[1/L], summed over individuals. A difference below 4 or
    below two standard errors over individuals is a tie, and of models that tie the simpler one is preferred.

    Parameters
    ----------
    table : dataframe, path, list of paths, Table, CountTable, mapping, CovariateTable or Readings
        Whatever `fit` takes.
    prior : Prior, optional
        Of the three rates; its region is that of every model.
    loss : Loss, optional
        What wrong answers cost: by it decisions are compared.
    memory, reference, missing_covariates, sheet
        As in `fit`.
    **columns
        Which column plays which part, as in `fit`; those that are not named are guessed. `population`,
        `source` and `covariates` allow the models that need them.

    Returns
    -------
    Comparison
        `.table()`, `.preferred`, `.chosen`, `.verdict`, `.changes(model)`, and the fits, such as
        `comparison["correlated"].fit`.

    Examples
    --------
    >>> from binreps.counts import CountTable
    >>> tests = CountTable([6] * 7, range(7), weight=[260, 60, 40, 30, 30, 50, 130])
    >>> comparison = compare(tests)
    >>> comparison.models, comparison.preferred
    (('common', 'better-than-chance', 'correlated'), 'correlated')
    >>> print(comparison.verdict)
    Read first: Repeated tests of the same individual err together, and 120 of 600 answers change when that is
    taken into account.
    """
    settings = Settings(
        prior=Prior() if prior is None else prior,
        loss=Loss() if loss is None else loss,
    )
    if is_counted(table):
        return compared(Data.of(counted(table, columns)), settings)
    how: Any = {"memory": memory, "sheet": sheet, "reference": reference}
    with reading_source(table, columns, None, missing_covariates=missing_covariates, **how) as source:
        return compared(source_data(source, settings, looked_at(source))[0], settings)
