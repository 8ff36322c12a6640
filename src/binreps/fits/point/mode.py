"""The posterior mode (MAP): the best of several climbs, by Newton from a scan or by the paper's EM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from binreps.counts import CountTable
from binreps.errors import FitError, OptionError
from binreps.fits.base import (
    PointFit,
    Trouble,
    checked_prior,
    plug_in_rates,
    refuse_empty,
    rests_on_prior,
)
from binreps.fits.point.climb import Climb, search
from binreps.fits.point.em import climb_em, random_scores
from binreps.fits.point.objective import Objective, State
from binreps.model import NAMES, Float, Prior, Rates, score_at
from binreps.notes import Note
from binreps.options import check_kind, check_tol, check_whole, generator, kinds_checked

MAP_PRIOR = Prior(prevalence=(1, 1))
"""The default prior of the mode: flat in the prevalence."""

_BESIDE = 1e-5  # of an error rate
_SHARES = np.array([1e-3, 1e-2, 0.1, 0.5])  # of the way to a better maximum
_MOST_SHAPE = 2.0**53  # as many individuals as a count table takes; far above, squares overflow


@dataclass(frozen=True, repr=False)
class MapFit(PointFit):
    """The posterior mode. `.rates` is the penalised optimum that scores and predictions use.

    Attributes
    ----------
    objective : float
        Log likelihood plus log prior (without the prior's constant) at the mode.
    converged : bool
        Whether the climb ended at a stationary point; a cap reached is not convergence.
    n_iter : int
        Iterations of the climb that found the mode.
    residual : float
        How far one exact maximisation step moves any rate: 0 where the optimality conditions hold.
    maxima : tuple of (Rates, float)
        The distinct local maxima met, best first, with their objectives.
    """

    kind: ClassVar[str] = "map"
    method: ClassVar[str] = "maximum a posteriori"
    prior: Prior
    objective: float
    converged: bool
    n_iter: int
    residual: float
    maxima: tuple[tuple[Rates, float], ...] = field(default=())

    @property
    def plug_in_rates(self) -> Rates:
        """The rates plugged in from the MAP scores (the stars of the paper's figure), without the prior."""
        scores = score_at(self.counts.n, self.counts.s, *self.rates)
        return plug_in_rates(self.counts, scores, self.method)[0]

    def _words(self, level: float) -> str:
        """Whether the climb converged, and whether the estimates rest on the prior."""
        del level
        stopped = "" if self.converged else f"Not converged after {self.n_iter} iterations."
        return "\n".join(filter(None, [stopped, rests_on_prior(self.identifiable), *map(str, self.notes)]))

    def troubles(self) -> Iterator[Trouble]:
        """Whether the climb ended where it should."""
        if not self.converged:
            yield Trouble(
                "not-converged",
                self.n_iter,
                f"The climb to the mode stopped after {self.n_iter} iterations before it had converged.",
                "Raise max_iter, or use the direct algorithm, which climbs faster than EM.",
            )


def refuse_no_mode(counts: CountTable, prior: Prior) -> None:
    """Refuse data and priors without a posterior mode."""
    refuse_empty(counts, MapFit.method)
    checked_prior(prior)
    check_kind("prior", prior, Prior)
    refuse_small_shapes(prior)
    for name, shapes in zip(NAMES, prior, strict=True):
        if max(shapes) > _MOST_SHAPE:
            raise OptionError(f"the prior of {name} must have shapes of at most 2^53, got {shapes}")


def refuse_small_shapes(prior: Prior) -> None:
    """Below 1, a shape makes the density infinite where its rate ends; below ½ error rates end at 0 only."""
    ends = {"prevalence": prior.prevalence}
    for name in NAMES[1:]:
        shapes: tuple[float, float] = getattr(prior, name)
        ends[name] = shapes if prior.better_than_chance else (shapes[0], 1.0)
    for name, shapes in ends.items():
        if min(shapes) < 1:
            raise FitError(
                f"a posterior mode needs prior shapes ≥ 1 (below, the density is infinite at the edge), got "
                f"{min(shapes)} for {name}; fit_bayes takes them from 0.05"
            )


class Modes:
    """The posterior modes of several tables, by one search.

    No table may be empty, nor may the statuses of all its individuals be known.
    """

    def __init__(
        self, tables: Sequence[CountTable], prior: Prior, *, max_iter: int = 1000, tol: float = 1e-12
    ) -> None:
        self.tables, self.prior, self.objective = tables, prior, Objective(tables, prior)
        ends, table = search(self.objective, max_iter=max_iter, tol=tol)
        order = np.lexsort((-ends.state.objective, table))
        self._ends, self._first = ends.of(order), np.searchsorted(table[order], np.arange(len(tables) + 1))
        self.best = self._ends.of(self._first[:-1])

    def fit(self, i: int) -> MapFit:
        """The fit of one table."""
        ends = self._ends.of(slice(*self._first[i : i + 2]))
        return map_fit(self.tables[i], self.prior, self.objective.of([i]), ends)

    def best_fit(self, i: int) -> MapFit:
        """The same without a look at other maxima, for which a row of a batch has no place."""
        return map_fit(self.tables[i], self.prior, self.objective.of([i]), self.best.of([i]))

    @property
    def plain(self) -> NDArray[np.bool_]:
        """Whether there is nothing to say of a fit but its rates."""
        _, p, q = self.best.state.rates
        flat = (self.best.state.exponents == 0).all(axis=0).any(axis=0)
        return np.asarray(self.best.converged & ~flat & (p + q < 1))


def map_fit(counts: CountTable, prior: Prior, objective: Objective, ends: Climb) -> MapFit:
    """The first of several climbs, the best, as a result, with the distinct maxima they met."""
    best = ends.state.of([0])
    return MapFit(
        counts,
        Rates(*best.rates[:, 0].tolist()),
        prior=prior,
        objective=float(best.objective[0]),
        converged=bool(ends.converged[0]),
        n_iter=int(ends.n_iter[0]),
        residual=float(objective.residual(best)[0]),
        maxima=_maxima(objective, ends.state.of(ends.converged)),
        notes=_flat(best) + _silent(counts, best, prior),
    )


def _maxima(objective: Objective, ends: State) -> tuple[tuple[Rates, float], ...]:
    """The ends of climbs, best first, without those that are part of a better hill."""
    found: list[int] = []
    for i in range(ends.objective.size):
        one = ends.of([i])
        if not (found and _rises(objective, one)) and all(
            _dips(objective, one, ends.rates[:, [j]]) for j in found
        ):
            found.append(i)
    return tuple((Rates(*ends.rates[:, i].tolist()), float(ends.objective[i])) for i in found)


def _rises(objective: Objective, state: State) -> bool:
    """Whether smaller error rates beside an end are better: a plateau that error rates of sum 1 leave."""
    around = np.maximum(state.rates - _BESIDE * np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1]]), 0.0)
    rise = objective.value(around) - state.objective
    return bool((rise > 1e-9 * (1 + np.abs(state.objective))).any())


def _dips(objective: Objective, state: State, better: Float) -> bool:
    """Whether every way from a maximum to a better one leads down first; if not, they are one.

    The straight way is tried, and the one that changes θ first, which is free where error rates add up to 1.
    """
    turn = np.concatenate([better[:1], state.rates[1:]])
    ways = [start * (1 - _SHARES) + better * _SHARES for start in (state.rates, turn)]
    values = objective.value(np.concatenate([turn, *ways], axis=1))
    down = values < state.objective - 1e-10 * (1 + np.abs(state.objective))
    turned, straight, after = np.split(down, [1, 1 + _SHARES.size])
    return bool(straight.any() and (turned.any() or after.any()))


def _flat(state: State) -> tuple[Note, ...]:
    """Rates on which neither data nor prior have a say are arbitrary: tell."""
    flat = np.flatnonzero((state.exponents == 0).all(axis=(0, 2)))
    reason = "neither the data nor the flat prior say anything about it"
    return tuple(Note("map-arbitrary", f"{NAMES[i]} is arbitrary: {reason}") for i in flat)


def _silent(counts: CountTable, state: State, prior: Prior) -> tuple[Note, ...]:
    """On the border p + q = 1 the replicates are silent; without prior or known statuses, so is the mode."""
    _, p, q = state.rates[:, 0]
    informed = counts.has_known or prior.prevalence != (1, 1)
    if not prior.better_than_chance or p + q < 1 or informed:
        return ()
    reason = "error rates that add up to 1 make the replicates say nothing about it"
    return (Note("map-arbitrary", f"{NAMES[0]} is arbitrary: {reason}"),)


@kinds_checked
def fit_map(
    counts: CountTable,
    prior: Prior = MAP_PRIOR,
    *,
    algorithm: Literal["direct", "em"] = "direct",
    rng: np.random.Generator | int | None = None,
    starts: int = 20,
    max_iter: int = 1000,
    tol: float = 1e-12,
) -> MapFit:
    """The posterior mode: the global maximum of log likelihood plus log prior over the prior's region.

    That is θ ≤ 1 and p, q ≤ ½, or p + q ≤ 1 if the prior is better than chance.

    "direct": a scan over (θ, p, q) finds the basins; a Newton climb that falls back on EM steps finishes
    each. Certain, fast, and without chance.

    "em": the paper's Algorithm 1, corrected, for comparison. Each random start draws scores
    y ~ Beta(s+½, n−s+½) per cell; then M-steps within the region [E4] and E-steps alternate. There is no
    relabelling: the constraint makes it unnecessary [E3].

    Known statuses are held fixed.

    Parameters
    ----------
    counts : CountTable
        At least one individual.
    prior : Prior
        Shapes ≥ 1 where the rate can reach 0 or 1; the default is flat in the prevalence.
    algorithm : {"direct", "em"}
    rng : numpy.random.Generator or int, optional
        Seed of the random starts: "em" needs one, "direct" has no use for it.
    starts : int
        Random starts of "em".
    max_iter, tol : int, float
        Cap of each climb, and the gain in log posterior below which it has converged.

    Returns
    -------
    MapFit

    Examples
    --------
    >>> counts = CountTable([4, 4, 4, 4], [0, 1, 3, 4], weight=[50, 20, 10, 20])
    >>> fit = fit_map(counts)
    >>> fit.converged, len(fit.maxima)
    (True, 1)
    >>> print(fit)
    maximum a posteriori: 100 individuals, 400 replicates, 4 cells
    rate            estimate  sd  lower  upper
    prevalence         0.300   –      –      –
    false-positive     0.076   –      –      –
    false-negative     0.092   –      –      –
    sensitivity        0.908   –      –      –
    specificity        0.924   –      –      –
    >>> round(fit_map(counts, algorithm="em", rng=1).rates.prevalence, 3)
    0.3
    """
    if algorithm not in ("direct", "em"):
        raise OptionError(f"algorithm must be 'direct' or 'em', got {algorithm!r}")
    check_whole("starts", starts, 1)
    check_whole("max_iter", max_iter, 1)
    check_tol(tol)
    source = generator(rng) if algorithm == "em" else None  # type: ignore[arg-type]  # None is refused there
    refuse_no_mode(counts, prior)
    if source is None and not counts.fully_known:
        return Modes([counts], prior, max_iter=max_iter, tol=tol).fit(0)
    objective = Objective(counts, prior)
    if source is None or counts.fully_known:
        return map_fit(counts, prior, objective, known_climb(objective))
    ends = climb_em(objective, random_scores(counts, source, starts), max_iter=max_iter, tol=tol)
    return map_fit(counts, prior, objective, ends.of(np.argsort(-ends.state.objective, kind="stable")))


def known_climb(objective: Objective) -> Climb:
    """Every status known: one M-step is the answer. A rate without any information is put at ¼."""
    y = objective.cells.known
    exponents = objective.completed_counts(np.stack([y, 1 - y]))
    rates = objective.maximisation(exponents, np.full((3, 1), 0.25))
    return Climb(objective.at(rates), np.array([True]), np.array([1]), np.array([False]))
