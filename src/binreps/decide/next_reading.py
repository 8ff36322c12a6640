"""What one more reading would tell, and by whom."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from binreps.decide.loss import Loss, check_loss
from binreps.errors import OptionError
from binreps.fits.sources import SourcesFit
from binreps.options import kinds_checked, shown
from binreps.table import Table


@kinds_checked
def next_reading(
    fit: SourcesFit,
    said: Mapping[Hashable, Any],
    loss: Loss,
    *,
    sources: Sequence[Hashable] | None = None,
    population: Any = None,
    covariates: Mapping[str, Any] | None = None,
    new: bool = True,
) -> Table:
    """What one more reading of an individual would tell, source by source; those worth most come first.

    Worth is how much lower the expected loss is after the reading than now: the highest price at which asking
    that source pays. Where a reading counts as a part of an independent one, worth is that of a source with
    the likelihood ratios of such a reading: then the probability now is the mean of those after.

    Parameters
    ----------
    fit : SourcesFit
    said : mapping of source to answer
        What is known of the individual so far: 0, 1, or (n, s); empty for nothing.
    loss : Loss
        What wrong and inconclusive answers cost.
    sources : sequence, optional
        Whom one could ask; all sources of the fit if not given. One that the fit has not seen counts as any
        of its population.
    population, covariates
        Of the individual, where the prevalence depends on them.
    new : bool
        Whether the individual is new, rather than one the fit was made from.

    Returns
    -------
    Table
        source, chance of a yes, probability of being positive after a yes and after a no, worth.

    Examples
    --------
    >>> from binreps.fits.sources import fit_sources
    >>> from binreps.readings import Readings
    >>> rows = [[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> readings = Readings.wide(rows, ["ann", "bob", "eve"], weight=[30, 20, 20, 30])
    >>> table = next_reading(fit_sources(readings, rng=1), {"eve": 1}, Loss())
    >>> sorted(table["source"][:2]), table["source"][2]
    (['ann', 'bob'], 'eve')
    """
    if not isinstance(fit, SourcesFit):
        raise OptionError(
            f"fit must be a fit by source, got {type(fit).__name__}; stopping_table takes others"
        )
    check_loss(loss)
    asked = list(fit.sources if sources is None else sources)
    if not all(isinstance(source, Hashable) for source in asked):
        raise OptionError(f"sources must be names of sources, got {shown(sources)}")
    records = [dict(said), *(_and(said, source, x) for source in asked for x in (1, 0))]
    data, _ = fit.asked((records,), population, covariates)
    chance, log = fit.posterior.chances(data, new=new).value, fit.posterior.log_marginal(data)
    of_negatives, of_positives = np.exp(log[:, 1::2] - log[:, :1])  # P(yes | T), given what was said
    yes = chance[0] * of_positives + (1 - chance[0]) * of_negatives
    risks, apart = loss.risks(chance).min(axis=1), chance[1::2] - chance[2::2]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(apart == 0, 0.5, (chance[0] - chance[2::2]) / apart).clip(0, 1)
    worth = np.maximum(risks[0] - (share * risks[1::2] + (1 - share) * risks[2::2]), 0.0)
    order = np.argsort(-worth, kind="stable")
    columns = {"chance_of_yes": yes, "if_yes": chance[1::2], "if_no": chance[2::2], "worth": worth}
    table = {"source": [asked[i] for i in order], **{x: v[order].tolist() for x, v in columns.items()}}
    return Table(table, title=f"now: {chance[0]:.3f}")


def _and(said: Mapping[Hashable, Any], source: Hashable, answer: int) -> dict[Hashable, Any]:
    """What is said, and one reading more."""
    before = said.get(source)
    if before is None:
        return {**said, source: answer}
    n, s = before if isinstance(before, tuple | list) else (1, int(before))
    return {**said, source: (n + 1, s + answer)}
