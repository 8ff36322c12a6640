"""What to know before believing a fit by source: who is linked, what rests on the prior, who errs how."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from binreps.counts import UNKNOWN
from binreps.decide.checks.actions import Action
from binreps.decide.checks.findings import NOTE, WARNING, Finding
from binreps.decide.loss import Loss
from binreps.fits.sampled.pairs import Pair
from binreps.fits.sources import SourcesFit
from binreps.words import listed

_SHOWN = 5  # names in a sentence
_SHOWN_PAIRS = 3  # that agree in their errors
_PINNED = 0.5  # share of draws outside the region from which the restriction shapes the answer


def sources_findings(fit: SourcesFit, loss: Loss | None) -> Iterator[Finding]:
    """All findings on a fit by source."""
    if not fit.readings.individuals:
        yield Finding("no-data", 0, "There are no individuals: every result is the prior.", "Add data.")
        return
    yield from _components(fit)
    yield from _identified(fit)
    yield from _mirror(fit)
    yield from _single_readings(fit)
    yield from _poor(fit)
    yield from _copies(fit, loss or Loss())
    if loss is not None:
        yield from _close_decisions(fit, loss)


def _components(fit: SourcesFit) -> Iterator[Finding]:
    """Groups of sources that no individual links."""
    readings = fit.readings
    count = int(readings.components.max(initial=0)) + 1
    if count < 2:
        return
    rows = list(fit.component_table())[:_SHOWN]
    told = "; ".join(
        f"{row['names']} ({row['readings']:,} readings, {row['share_yes']:.0%} yes, 1 − p − q = "
        f"{row['better_than_chance']:.2f})"
        for row in rows
    )
    more = f"; and {count - len(rows):,} more" if count > len(rows) else ""
    yield Finding(
        "components",
        count,
        f"The sources fall into {count:,} groups that no individual links: {told}{more}. Which answer means "
        "positive is settled in each group by taking its sources, weighted by their readings, to be better "
        "than chance, and the groups cannot be compared with each other.",
        "Let some sources of each group read the same individuals, or add individuals of known status.",
    )


def _identified(fit: SourcesFit) -> Iterator[Finding]:
    """Too few readings to tell prevalence and error rates apart."""
    readings = fit.readings
    n, _ = readings.sizes
    unknown = readings.known == UNKNOWN
    most = int(n[unknown].max(initial=0))
    if fit.identifiable or not unknown.any():
        return
    advice = "Let three sources read the same individuals, or add individuals of known status."
    known = Action("column", "known")
    if most <= 1:
        sentence = (
            "Every individual was read once, so nothing tells a source's errors from the statuses: rates and "
            "probabilities rest on the prior."
        )
        yield Finding("one-reading", most, sentence, advice, action=known)
        return
    sentence = (
        f"Nobody was read more than {most} times, and two sources in one population cannot tell prevalence "
        f"and "
        "error rates apart: the estimates rest on the prior, and the chains mix slowly."
    )
    yield Finding("two-sources", most, sentence, advice, action=known)


def _mirror(fit: SourcesFit) -> Iterator[Finding]:
    """Draws that keep leaving the region in which sources are better than chance."""
    share = fit.posterior.sampled.refused
    if share < _PINNED:
        return
    yield Finding(
        "mirror",
        share,
        f"{share:.0%} of the drawn rates made the sources of a group worse than chance and were refused: "
        f"the data "
        "hardly say which answer means positive, or they say the opposite.",
        "Check that yes and no are not swapped; add individuals of known status.",
    )


def _single_readings(fit: SourcesFit) -> Iterator[Finding]:
    """Sources of which next to nothing is known."""
    each = fit.readings.totals.sum(axis=1)
    once = int((each <= 1).sum())
    if once < 1 or len(each) < 2:
        return
    share = once / len(each)
    yield Finding(
        "single-readings",
        once,
        f"{once:,} of {len(each):,} sources gave one reading: their rates are those of the population of "
        f"sources.",
        "Read nothing into the rates of these sources; let each read more, if it should be judged.",
        WARNING if share > 0.5 else NOTE,
    )


def _poor(fit: SourcesFit) -> Iterator[Finding]:
    """Sources worse than chance, and those whose answers say nothing."""
    verdicts = np.array(fit.verdicts)
    worse = verdicts == "says the opposite"
    if worse.any():
        names = _named([fit.sources[j] for j in np.flatnonzero(worse)])
        yield Finding(
            "worse-than-chance",
            int(worse.sum()),
            f"{_sources(worse.sum())} say the opposite of the truth more often than not: {names}.",
            "Their answers are used with the sign turned. Check that they do not swap yes and no.",
            NOTE,
        )
    says_nothing = verdicts == "says nothing"
    if says_nothing.any():
        names = _named([fit.sources[j] for j in np.flatnonzero(says_nothing)])
        yield Finding(
            "spammers",
            int(says_nothing.sum()),
            f"The answers of {_sources(says_nothing.sum()).lower()} say next to nothing: their two error "
            f"rates add "
            f"up to about 1 ({names}).",
            "They cost nothing but money: their answers have no weight. Retrain them, or do without.",
            NOTE,
        )


def _copies(fit: SourcesFit, loss: Loss) -> Iterator[Finding]:
    """Pairs that agree in their errors, and what counting them once would change."""
    pairs = fit.agreeing_pairs()
    if not pairs:
        return
    weight = fit.readings.weight
    whole: dict[Hashable, Iterable[Hashable]] = {" + ".join(map(str, group)): group for group in fit.merge}
    for pair in pairs[:_SHOWN_PAIRS]:
        names = tuple(fit.sources[i] for i in (pair.first, pair.second))
        scores = fit.counted_once(pair)
        now = loss.classify(scores.pop("as it is"))
        hows = (f"without {names[0]}", f"without {names[1]}", "with the two as one")
        changed = [
            f"{int(weight[loss.classify(score) != now].sum()):,} {how}"
            for how, score in zip(hows, scores.values(), strict=True)
        ]
        yield Finding(
            "agreeing-pair",
            pair.correlation,
            f"{names[0]} and {names[1]} agree in their errors{_or_others(fit, pair)}: on {pair.shared:,} "
            f"individuals their answers have a correlation of {pair.correlation:.2f} beyond what their error "
            f"rates explain. Of {int(weight.sum()):,} answers would change: {', '.join(changed)}.",
            "Find out whether one copies the other, or both one teacher; then drop one, or merge the two "
            "into one source.",
            action=Action("merge", listed(one for name in names for one in whole.get(name, (name,)))),
        )
    if len(pairs) > _SHOWN_PAIRS:
        rest = f"{len(pairs) - _SHOWN_PAIRS:,} more pairs of sources agree in their errors."
        yield Finding("agreeing-pairs", len(pairs), rest, "Settle the pairs above first, then look again.")


def _or_others(fit: SourcesFit, pair: Pair) -> str:
    """The pairs whose agreement would explain as much, if there are any."""
    others = [f"{fit.sources[j]} and {fit.sources[k]}" for j, k in pair.rivals]
    if not others:
        return ""
    return f", or in place of them {_named(others)}: the readings do not tell which"


def _close_decisions(fit: SourcesFit, loss: Loss) -> Iterator[Finding]:
    """Decisions within the numerical error of a threshold."""
    weight = fit.readings.weight
    scores, error = fit.score(), fit.score_error()
    close = np.zeros(len(weight), bool)
    for threshold in loss.thresholds:
        close |= np.abs(scores - threshold) <= error
    number = int(weight[close].sum())
    if number:
        yield Finding(
            "within-error",
            number,
            f"{number:,} of {int(weight.sum()):,} individuals have a score within its numerical error of a "
            f"threshold.",
            "Treat these answers as inconclusive: the draws do not settle them.",
            NOTE,
        )


def _sources(count: Any) -> str:
    return f"{int(count):,} source{'s' * (int(count) != 1)}"


def _named(names: Sequence[Any]) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(map(str, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"
