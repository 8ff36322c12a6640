"""From data to an Analysis: fitted by every method, decided by one model, checked and judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN, CountTable
from binreps.covariates import CovariateTable
from binreps.decide.checks.run import check
from binreps.decide.compare import Comparison
from binreps.decide.evaluate import Evaluation, evaluate
from binreps.decide.loss import Loss
from binreps.errors import BinrepsError, OptionError
from binreps.notes import Note
from binreps.run.analysis import Analysis, Part, Settings, listed, status_of
from binreps.run.candidates import candidates, compared, made
from binreps.run.data import Data
from binreps.run.methods import METHODS
from binreps.run.models import AUTO, MODELS, Offer
from binreps.table import Table

_MOST_REPLICATES = 20  # of the decision table, unless more are asked for


def analysed(data: Any, settings: Settings, truth: Any = None) -> Analysis:
    """Fit data by every method, decide by one model, check and judge.

    `data` are counts, counts of several populations, records, readings, or `Data` with several of these;
    `truth` are the same individuals with their statuses, which judge and inform no fit.
    """
    whole = Data.of(data)
    judge = None if truth is None else Data.of(truth)
    comparison = _comparison(whole, settings)
    offer = MODELS[comparison.chosen if comparison else _spoken(whole, settings)]
    ready = comparison[offer.id].fit if comparison else None
    if settings.method != "bayes" and offer.needs is not None:
        raise OptionError(f"the model {offer.id} is fitted by the method bayes, got {settings.method!r}")
    if offer.needs == "population":
        parts, shared, notes = _populations(whole, settings, offer, judge, ready)
    else:
        part, notes = _one_part(whole, settings, offer, judge, ready)
        parts, shared = (part,), None
    asked = shared or parts[0].fits[parts[0].believed]
    findings = comparison[offer.id].findings if comparison else check(asked, settings.loss)
    true = None if judge is None else judge.counts
    said = tuple(dict.fromkeys(notes))
    return Analysis(settings, parts, shared, findings, said, true, comparison=comparison)


def _comparison(data: Data, settings: Settings) -> Comparison | None:
    """The models that the columns allow, where the user leaves the choice and there is a choice."""
    if settings.model != AUTO or settings.method != "bayes":
        return None
    return compared(data, settings) if len(candidates(data, settings)) > 1 else None


def _spoken(data: Data, settings: Settings) -> str:
    """The model that was chosen, or the one that the columns speak of."""
    chosen = settings.model
    if chosen in (AUTO, None):
        spoken = [offer.id for offer in MODELS.values() if offer.needs in data.parts]
        chosen = spoken[-1] if spoken else "common"
    wide = chosen == "common" and settings.prior.better_than_chance
    return "better-than-chance" if wide else str(chosen)


def _one_part(
    data: Data, settings: Settings, offer: Offer, judge: Data | None, ready: Any
) -> tuple[Part, list[Note]]:
    """Everyone in one population, by results alone or by more, which then decides."""
    if offer.needs is None:
        return _part(None, data.counts, ready, settings, offer, judge)
    fit = ready or made(offer, data, settings)
    part, notes = _part(None, data.counts, None, _plain(settings), MODELS["common"], judge)
    whose = "the decision table is for someone of this study whose covariates are not known"
    more = [] if fit.has_sources else [Note("covariates-unknown", whose)]
    judged, true = dict(part.judged), part.truth
    if judge is not None:
        told = judge.form(offer.needs)
        true = true if fit.has_sources else told
        judged[offer.kind] = evaluate(fit.score(told), status_of(told), settings.loss, told.weight)
    found = replace(
        part,
        settings=settings,
        model=offer.id,
        fit=fit,
        fits={**part.fits, offer.kind: fit},
        scored=_told_scores(fit, part.fit, settings),
        sizes=() if fit.has_sources else part.sizes,
        judged=judged,
        truth=true,
    )
    return found, [*notes, *more]


def _plain(settings: Settings) -> Settings:
    """The settings of the methods that see results alone, beside the model that sees more."""
    return replace(settings, model="common", merge=())


def _told_scores(fit: Any, plain: Any, settings: Settings) -> Table:
    """Everyone in the data, and what their answer would be by results alone; of very many only totals."""
    columns = _record_scores(fit) if listed(fit) else _totals(fit, settings)
    without = plain.score(columns["n"], columns["s"])
    columns["decision"] = settings.loss.words(columns["score"])
    columns["without"], columns["before"] = without, settings.loss.words(without)
    return Table(columns, note=f"{settings.loss}; without, before: score and decision by results alone")


def _record_scores(fit: Any) -> dict[str, Any]:
    """Everyone in the data by results and covariates."""
    records: CovariateTable = fit.records
    columns: dict[str, Any] = {"n": records.n, "s": records.s}
    taken = ("n", "s", "weight", "known", "score", "lower", "upper", "decision", "without", "before")
    for name in records.names:
        columns[f"{name}_" if name in taken else name] = records.column(name)
    columns["weight"] = records.weight
    if np.any(records.known != UNKNOWN):
        columns["known"] = [None if status == UNKNOWN else status for status in records.known.tolist()]
    return columns | {"score": fit.score(records)}


def _totals(fit: Any, settings: Settings) -> dict[str, Any]:
    """How many have every result and answer, and their mean score."""
    n, s, weight, scores = fit.everyones_scores()
    words = np.unique(np.array(settings.loss.words(scores)), return_inverse=True)[1]
    pairs, where = np.unique(np.stack([n, s, words]), axis=1, return_inverse=True)
    each = np.bincount(where.ravel(), weight).astype(np.int64)
    total = np.bincount(where.ravel(), weight * scores)
    return {"n": pairs[0], "s": pairs[1], "weight": each, "score": total / each}


def _populations(
    data: Data, settings: Settings, offer: Offer, judge: Data | None, ready: Any
) -> tuple[tuple[Part, ...], Any, list[Note]]:
    """The parts of several populations, which share the error rates."""
    if judge is not None:
        raise OptionError("truth cannot judge several populations at once; analyse them one by one")
    counts = data.form(offer.needs)
    shared = ready or offer.make(counts, settings.prior)
    alone = "Bayes alone shares the error rates between populations; the other methods see each on its own"
    found = [*shared.notes, Note("others-not-shared", alone)]
    parts = []
    for name, own in shared.parts.items():
        part, more = _part(name, counts[name], own, settings, offer, None)
        parts.append(part)
        found += more
    return tuple(parts), shared, found


def _part(
    name: Any, counts: CountTable, ready: Any, settings: Settings, offer: Offer, judge: Data | None
) -> tuple[Part, list[Note]]:
    """One population by results alone, fitted by every method; and why a method is missing."""
    truth = None if judge is None else judge.counts
    fits, notes = _fits(counts, ready, settings, offer)
    deciding = fits[settings.method] if offer.needs or settings.method != "bayes" else fits[offer.kind]
    sizes = tuple(range(1, _most_replicates(counts, settings) + 1))
    judged = {} if truth is None else {m: _judged(fit, truth, settings.loss) for m, fit in fits.items()}
    scored = _scores(deciding, settings)
    if deciding.dear:
        notes.append(Note("no-score-intervals", "with this model single answers are given without intervals"))
    return Part(name, settings, offer.id, deciding, fits, scored, sizes, judged, truth), notes


def _fits(
    counts: CountTable, ready: Any, settings: Settings, offer: Offer
) -> tuple[dict[str, Any], list[Note]]:
    """The fit by every method that these data allow, and by the model if it is another one."""
    fits: dict[str, Any] = {}
    notes: list[Note] = []
    prior = offer.prior(settings.prior)
    bayes = ready if offer.kind in ("bayes", "populations") else None
    for method in METHODS.values():
        if bayes is not None and method.id == "bayes":
            fits[method.id] = bayes
            continue
        try:
            fits[method.id] = method.make(counts, prior)
            notes += fits[method.id].notes
        except BinrepsError as error:
            if method.id == settings.method:
                raise
            said = f"no estimate by the {method.name} method: {error}"
            notes.append(Note(f"no-{method.id}", said))
    if offer.needs is None and offer.kind not in fits:
        fits[offer.kind] = ready or offer.make(counts, settings.prior)
    return fits, notes


def _most_replicates(counts: CountTable, settings: Settings) -> int:
    """The longest row of the decision table."""
    if settings.replicates is not None:
        return settings.replicates
    return max(1, min(int(counts.n.max(initial=1)), _MOST_REPLICATES))


def _scores(fit: Any, settings: Settings) -> Table:
    """Everyone in the data: one row per cell."""
    counts: CountTable = fit.counts
    columns: dict[str, Any] = {"n": counts.n, "s": counts.s, "weight": counts.weight}
    if counts.has_known:
        columns["known"] = [None if status == UNKNOWN else status for status in counts.known.tolist()]
    columns["score"] = fit.score(counts.n, counts.s)
    columns["decision"] = settings.loss.words(columns["score"])
    return Table(columns, note=str(settings.loss))


def _judged(fit: Any, truth: CountTable, loss: Loss) -> Evaluation:
    """The answers of one method against the truth."""
    return evaluate(fit.score(truth.n, truth.s), status_of(truth), loss, truth.weight)
