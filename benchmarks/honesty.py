"""Whether errors that fits state hold: random tables of many kinds beside references that share nothing.

`python -m benchmarks.honesty --help`. A stated error is honest if the truth lies within it. The reference is
the trapezoid rule in logits (`benchmarks/trapezoid.py`); where that would take too many points, nested panels
(`tests/reference.py`). Where they say that an error does not hold, the panels are computed again, sharper and
in two orders of integration: their difference is added to what is stated, and what they cannot decide is left
out.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import binreps as br
from benchmarks.report import markdown_table, number
from benchmarks.timing import say
from benchmarks.trapezoid import TooThinError, Trapezoid
from binreps.fits.bayes import BayesFit
from binreps.study.simulate import simulate_counts

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from reference import FINE, LIGHT, Reference, log_prior_mass

ROUNDING = 1e-9  # what a reference cannot tell from zero
ENOUGH = 1e-7  # to which two grids of the quick reference must agree
ONE_ORDER = 1e-8  # what panels in one order of integration may be off
DECIDES = 1e-5  # the least that it must, in sds

Table = tuple[br.CountTable, br.Prior]
Truth = Reference | Trapezoid


# Families --------------------------------------------------------------------------------------------------


def _rates(rng: np.random.Generator, better: bool) -> br.Rates:
    """Any rates of the region."""
    theta = rng.uniform(0.02, 0.98)
    if not better:
        return br.Rates(theta, *rng.uniform(0.01, 0.49, 2))
    p = rng.uniform(0.01, 0.9)
    return br.Rates(theta, p, rng.uniform(0.01, 0.98 * (1 - p)))


def _prior(better: bool, **shapes: Any) -> br.Prior:
    return br.Prior(**shapes, better_than_chance=better)


def _size(rng: np.random.Generator, low: float, high: float) -> int:
    """A whole number, uniform in its logarithm."""
    return int(10 ** rng.uniform(low, high))


def friendly(rng: np.random.Generator, better: bool) -> Table:
    """A study as they are: some people, two to six replicates."""
    n = list(range(2, int(rng.integers(4, 8))))
    counts = simulate_counts(_rates(rng, better), _size(rng, 1, 3), n, rng=rng)
    return counts, _prior(better)


def ridged(rng: np.random.Generator, better: bool) -> Table:
    """Nobody has more than two replicates."""
    n = [[1], [2], [1, 2]][rng.integers(3)]
    return simulate_counts(_rates(rng, better), _size(rng, 1.5, 6), n, rng=rng), _prior(better)


def near_half(rng: np.random.Generator, better: bool) -> Table:
    """A test that is nearly a coin."""
    p, q = rng.uniform(0.42, 0.499, 2)
    if better:
        p = rng.uniform(0.1, 0.9)
        q = (1 - p) * rng.uniform(0.9, 0.999)
    n = list(range(1, int(rng.integers(3, 7))))
    return simulate_counts(br.Rates(rng.uniform(0.2, 0.8), p, q), _size(rng, 1.5, 3.5), n, rng=rng), _prior(
        better
    )


def large_weights(rng: np.random.Generator, better: bool) -> Table:
    """Three to five replicates of very many."""
    counts = simulate_counts(_rates(rng, better), 2000, [int(rng.integers(3, 6))], rng=rng)
    weight = counts.weight * _size(rng, 2, 8)
    return br.CountTable(counts.n, counts.s, weight), _prior(better)


def odd_priors(rng: np.random.Generator, better: bool) -> Table:
    """Shapes from 0.05 to 10⁴."""
    shapes = [tuple(10 ** rng.uniform(-1.3, rng.choice([1, 2, 4]), 2)) for _ in range(3)]
    counts = simulate_counts(_rates(rng, better), _size(rng, 0.5, 2.5), [1, 2, 3, 4], rng=rng)
    names = ("prevalence", "false_positive", "false_negative")
    return counts, _prior(better, **dict(zip(names, shapes, strict=True)))


def two_modes(rng: np.random.Generator, better: bool) -> Table:
    """Symmetric, or nearly: whoever is in the middle belongs to either end."""
    n = 2 * int(rng.integers(2, 5))
    weight = _size(rng, 0.5, 4)
    tilt = weight + int(rng.integers(-1, 2) * rng.integers(1, 3))
    return br.CountTable([n] * 3, [0, n // 2, n], [weight, weight, max(tilt, 1)]), _prior(better)


def few_cells(rng: np.random.Generator, better: bool) -> Table:
    """One to four cells of anything."""
    size = int(rng.integers(1, 5))
    n = rng.integers(0, rng.choice([3, 8, 40]), size)
    weight = np.ceil(10 ** rng.uniform(0, rng.choice([0.5, 2, 4]), size)).astype(int)
    return br.CountTable(n, rng.integers(0, n + 1), weight), _prior(better)


def known(rng: np.random.Generator, better: bool) -> Table:
    """Some statuses are known."""
    counts, prior = friendly(rng, better)
    status = [int(rng.integers(2)) if rng.random() < 0.3 else None for _ in range(len(counts))]
    return br.CountTable(counts.n, counts.s, counts.weight, status), prior


FAMILIES: dict[str, Callable[[np.random.Generator, bool], Table]] = {
    "friendly": friendly,
    "ridged": ridged,
    "near ½": near_half,
    "large weights": large_weights,
    "odd priors": odd_priors,
    "two modes": two_modes,
    "few cells": few_cells,
    "known": known,
}


# Judging ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """An error that a fit states, the one found, and how well the reference knows."""

    kind: str
    stated: float
    found: float
    doubt: float

    @property
    def decided(self) -> bool:
        """Whether the reference knows well enough: far better than what is stated, or well in itself."""
        return self.doubt <= max(DECIDES, self.stated)

    @property
    def honest(self) -> bool:
        """Whether the truth can lie within the stated error."""
        return bool(self.found <= self.stated + self.doubt + ROUNDING)


@dataclass
class Record:
    """All claims about the tables of one family in one region."""

    claims: list[Claim] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    reference: float = 0.0
    given_up: int = 0
    failed: list[str] = field(default_factory=list)
    worst: tuple[float, str] = (0.0, "")


def claims_of(fit: BayesFit, truth: Truth, intervals: bool, rng: np.random.Generator) -> Iterator[Claim]:
    """What a fit states, beside the reference."""
    found = max(
        float(np.max(np.abs(np.array([*fit.rates]) - truth.mean) / truth.sd)),
        float(np.max(np.abs(np.array([*fit.sd]) - truth.sd) / truth.sd)),
        abs(fit.log_evidence - truth.log_evidence) / max(1.0, abs(truth.log_evidence)),
    )
    yield Claim("moments", fit.error, found, _doubt(truth))
    for n, s in _records(fit.counts, rng):
        for kind in ("score", "predict"):
            value, doubt = _chance(truth, kind, n, s)
            stated = float(getattr(fit, f"{kind}_error")(n, s))
            yield Claim(kind, stated, abs(float(getattr(fit, kind)(n, s)) - value), doubt)
    if intervals:
        yield from _of_marginals(fit, truth)
        yield from _of_intervals(fit, truth, rng)


def _doubt(truth: Truth) -> float:
    """How far a reference can be off."""
    return ONE_ORDER if np.isnan(truth.agreement) else truth.agreement


def _chance(truth: Truth, kind: str, n: int, s: int) -> tuple[float, float]:
    """A score or a prediction, and its error where that is known."""
    if np.isnan(truth.agreement):  # one order of integration only
        return getattr(truth.side, kind)(n, s), ONE_ORDER
    return getattr(truth, kind)(n, s)


def _records(counts: br.CountTable, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A record of the data, and one that need not be there."""
    n = int(rng.integers(1, 7))
    asked = [(n, int(rng.integers(n + 1)))]
    if len(counts):
        k = int(rng.integers(len(counts)))
        asked.append((int(counts.n[k]), int(counts.s[k])))
    return asked


def _of_marginals(fit: BayesFit, truth: Reference) -> Iterator[Claim]:
    """The ends of intervals of rates, in sds: what is missing in probability, over the density.

    Beside a pole no density is that of the way there; but the truth is on this side of the domain's end.
    """
    lower, upper = fit.interval(0.9)
    most = 1.0 if fit.prior.better_than_chance else 0.5
    for i, name in enumerate(("prevalence", "false_positive", "false_negative")):
        for tail, ends in ((0.05, lower), (0.95, upper)):
            end = float(getattr(ends, name))
            wrong = truth.cdf(i, end) - tail
            slope = truth.density(i, end) * truth.sd[i]
            stated = fit.error + fit.marginal(name).error
            doubt = (_doubt(truth) + ROUNDING) / max(slope, 1e-12)
            room = (end if wrong > 0 else (1.0 if i == 0 else most) - end) / truth.sd[i]
            yield Claim("interval", stated, min(abs(wrong) / max(slope, 1e-12), room), doubt)


def _of_intervals(fit: BayesFit, truth: Truth, rng: np.random.Generator) -> Iterator[Claim]:
    """The ends of the intervals of a score and of a prediction."""
    (n, s) = _records(fit.counts, rng)[0]
    for kind in ("score", "predict"):
        law = truth if kind == "score" else truth.with_new(n, s)
        stated = float(getattr(fit, f"{kind}_interval_error")(n, s))
        ends = [float(end) for end in getattr(fit, f"{kind}_interval")(n, s)]
        for tail, end in zip((0.05, 0.95), ends, strict=True):
            wrong = abs(law.score_cdf(n, s, end) - tail)
            slope = law.score_density(n, s, end, 0.05 * (ends[1] - ends[0]))
            found = wrong / max(slope, 1e-12)
            if found > 0.5 * stated + ROUNDING:  # too near for a rough density
                found = abs(law.score_quantile(n, s, tail) - end)
            yield Claim(f"{kind} interval", stated, found, (_doubt(law) + ROUNDING) / max(slope, 1e-12))


def _truths(counts: br.CountTable, prior: br.Prior) -> Iterator[Truth]:
    """The quickest reference that can follow a posterior, then sharper ones."""
    with suppress(TooThinError):
        yield Trapezoid(counts, prior, log_prior_mass(prior), ENOUGH)
    yield Reference(counts, prior, LIGHT, both=False)
    yield Reference(counts, prior, FINE, both=True)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """A `TimeoutError` where something takes more processor time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def judge(name: str, better: bool, tables: range, seed: int, every: int, seconds: float) -> Record:
    """Fit random tables of one family in one region; every so many have their intervals judged too."""
    record = Record()
    for i in tables:
        rng = np.random.default_rng([seed, list(FAMILIES).index(name), better, i])
        counts, prior = FAMILIES[name](rng, better)
        begin = time.process_time()
        try:
            fit = br.fit_bayes(counts, prior)
        except Exception as error:
            record.failed.append(f"{_shown(counts, prior)}: {type(error).__name__}: {error}")
            continue
        record.seconds.append(time.process_time() - begin)
        begin = time.process_time()
        asked = int(rng.integers(2**32))
        made: list[Claim] = []
        intervals = every > 0 and i % every == 0
        try:
            with patience(seconds):
                for truth in _truths(counts, prior):
                    with suppress(TooThinError):
                        made = list(claims_of(fit, truth, intervals, np.random.default_rng(asked)))
                        if all(claim.honest for claim in made):
                            break
        except (ArithmeticError, MemoryError, TimeoutError):  # what no reference can follow is undecided
            record.given_up += 1
            made = [claim if claim.honest else replace(claim, doubt=np.inf) for claim in made]
        record.reference += time.process_time() - begin
        record.claims += made
        for claim in made:
            if claim.decided and not claim.honest:
                ratio = claim.found / max(claim.stated, 1e-300)
                text = (
                    f"{claim.kind}: {number(claim.found)} for {number(claim.stated)}; {_shown(counts, prior)}"
                )
                say(f"{name}: {text}")
                record.worst = max(record.worst, (ratio, text))
    return record


def _shown(counts: br.CountTable, prior: br.Prior) -> str:
    """A table and a prior as they can be typed."""
    columns = [counts.n.tolist(), counts.s.tolist(), counts.weight.tolist()]
    if (counts.known >= 0).any():
        columns.append([None if one < 0 else one for one in counts.known.tolist()])
    return f"CountTable({', '.join(map(str, columns))}), {prior}"


KINDS = ("moments", "score", "predict", "interval", "score interval", "predict interval")


def rows(name: str, better: bool, record: Record) -> list[dict[str, Any]]:
    """A line for each kind of claim."""
    made = []
    for kind in KINDS:
        claims = [claim for claim in record.claims if claim.kind == kind]
        decided = [claim for claim in claims if claim.decided]
        if not decided:
            continue
        ratios = [claim.stated / max(claim.found, claim.doubt, 1e-16) for claim in decided]
        first = kind == KINDS[0]
        made.append(
            {
                "family": name,
                "region": "p + q < 1" if better else "p, q < ½",
                "claim": kind,
                "number": len(claims),
                "undecided": len(claims) - len(decided),
                "honest": f"{100 * np.mean([claim.honest for claim in decided]):.1f} %",
                "stated/true": float(np.median(ratios)),
                "largest error": max(claim.found for claim in decided),
                "largest stated": max(claim.stated for claim in decided),
                "failed": len(record.failed) if first else None,
                "given up": record.given_up if first else None,
                "fit, s": float(np.mean(record.seconds)) if first else None,
                "reference, s": record.reference / max(1, len(record.seconds)) if first else None,
            }
        )
    return made


def main() -> int:
    """Judge, print a table, and the worst of each family."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty", description=__doc__)
    parser.add_argument("--tables", type=int, default=2000, help="in all, shared by families and regions")
    parser.add_argument("--families", default=",".join(FAMILIES), help="some of: " + ", ".join(FAMILIES))
    parser.add_argument("--regions", default="half,better", help="half, better or both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--intervals", type=int, default=25, help="judge those of every so many tables; 0: none"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first table of each family")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="of the processor that references of a table may take"
    )
    parser.add_argument("--memory", type=float, default=8.0, help="GB; a reference that needs more is none")
    options = parser.parse_args()
    most = int(options.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    names = options.families.split(",")
    if unknown := [name for name in names if name not in FAMILIES]:
        parser.error(f"no such family: {', '.join(unknown)}")
    regions = [region == "better" for region in options.regions.split(",")]
    each = -(-options.tables // (len(names) * len(regions)))
    found: list[dict[str, Any]] = []
    kept: list[Claim] = []
    notes = []
    for name in names:
        for better in regions:
            asked = range(options.first, options.first + each)
            record = judge(name, better, asked, options.seed, options.intervals, options.seconds)
            say(f"{name}, {'p + q < 1' if better else 'p, q < ½'}: {len(record.claims)} claims")
            found += rows(name, better, record)
            kept += [claim for claim in record.claims if claim.decided]
            notes += [record.worst[1]] if record.worst[1] else []
            notes += record.failed
    print(markdown_table(found))
    print("\n".join(["", *notes]))
    share = float(np.mean([claim.honest for claim in kept])) if kept else 0.0
    print(f"\nHonest: {100 * share:.2f} % of {len(kept):,} claims that the reference decides.")
    return 0 if share >= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
