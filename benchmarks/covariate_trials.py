"""Whether intervals cover and stated errors hold, on studies drawn from the prior and on odd ones.

`python -m benchmarks.covariate_trials coverage --studies 400` counts how often 90 % intervals hold the
parameters that studies were drawn with. `python -m benchmarks.covariate_trials errors --studies 200` compares
fits with two references: the same engine with other points and a tolerance twice as fine, and tempered
particles that walk from the prior to the posterior and know nothing of modes, laws or weights. `alarms` says
how often `check` warns of studies that are as the model says, and of some that are not; `bars` how near the
reference numbers are and how long that takes.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

import binreps as br
from benchmarks.covariates import study
from benchmarks.report import markdown_table
from benchmarks.timing import say
from binreps.decide.checks.covariates import covariates_findings
from binreps.fits.covariates import CovariatesFit
from binreps.fits.points.cloud import Cloud, make_cloud
from binreps.fits.points.posterior import CloudPosterior
from binreps.fits.points.rule import bound
from binreps.fits.points.target import Target
from binreps.model import NAMES

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from covariate_studies import drawn_study, golden

KINDS = ((30, 1), (60, 2), (150, 3), (400, 4), (1000, 5))
SMALL = KINDS[:3]  # where intervals are least like those of a normal law
REGIONS = {"p, q < ½": br.Prior(), "p + q < 1": br.Prior(better_than_chance=True)}
Study = tuple[br.CovariateTable, br.Prior]


# Odd studies ---------------------------------------------------------------------------------------


def _normal_columns(rng: np.random.Generator, size: int, columns: int) -> dict[str, np.ndarray]:
    return {f"x{j}": rng.standard_normal(size) for j in range(columns)}


def _results(
    rng: np.random.Generator, theta: Any, replicates: Any, p: float, q: float
) -> tuple[np.ndarray, np.ndarray]:
    """Replicates of everyone, and how many of them are positive."""
    n = np.broadcast_to(replicates, np.shape(theta))
    return n, rng.binomial(n, np.where(rng.random(np.shape(theta)) < theta, 1 - q, p))


def hardly_identified(rng: np.random.Generator) -> Study:
    """Fifty people, two columns, one or two replicates of a poor test."""
    x = _normal_columns(rng, 50, 2)
    return br.CovariateTable(
        *_results(rng, np.full(50, 0.4), rng.integers(1, 3, 50), 0.3, 0.35), x
    ), br.Prior()


def wide(rng: np.random.Generator) -> Study:
    """Six to nine columns on 100 to 200 people."""
    size, columns = int(rng.integers(100, 201)), int(rng.integers(6, 10))
    table, _ = drawn_study(rng, size, columns, 4)
    return table, br.Prior()


def once(rng: np.random.Generator) -> Study:
    """One replicate each."""
    x = _normal_columns(rng, 120, 1)
    return br.CovariateTable(*_results(rng, expit(2 * x["x0"] - 1), 1, 0.1, 0.2), x), br.Prior()


def separated(rng: np.random.Generator) -> Study:
    """A column that decides who is positive."""
    x = _normal_columns(rng, 40, 2)
    return br.CovariateTable(*_results(rng, (x["x0"] > 0) * 1.0, 4, 0.05, 0.05), x), br.Prior()


def rare_level(rng: np.random.Generator) -> Study:
    """Sites, one of them with two people."""
    site = rng.permutation(np.repeat(["a", "b", "c"], [90, 40, 2]))
    theta = np.where(site == "a", 0.2, 0.6)
    return br.CovariateTable(*_results(rng, theta, 3, 0.1, 0.15), {"site": site}), br.Prior()


def doubled(rng: np.random.Generator) -> Study:
    """Two columns that are one."""
    x = _normal_columns(rng, 150, 1)
    table = br.CovariateTable(*_results(rng, expit(x["x0"]), 3, 0.1, 0.2), x | {"again": 3 * x["x0"]})
    return table, br.Prior()


def half_known(rng: np.random.Generator) -> Study:
    """Statuses known of every other person."""
    x = _normal_columns(rng, 80, 2)
    truth = rng.random(80) < expit(x["x0"])
    n, s = _results(rng, truth * 1.0, rng.integers(0, 4, 80), 0.2, 0.3)
    return br.CovariateTable(n, s, x, known=np.where(np.arange(80) % 2, truth, np.nan)), br.Prior()


def heavy(rng: np.random.Generator) -> Study:
    """A survey of up to 10⁶ people in four groups."""
    group = rng.choice(["a", "b", "c", "d"], int(10 ** rng.uniform(3, 6)))
    return br.CovariateTable(
        *_results(rng, (group == "a") * 0.3 + 0.1, 2, 0.1, 0.2), {"group": group}
    ), br.Prior()


def nobody(rng: np.random.Generator) -> Study:
    """Nobody is positive."""
    x = _normal_columns(rng, 100, 2)
    return br.CovariateTable(*_results(rng, np.zeros(100), 3, 0.05, 0.2), x), br.Prior()


def poor(rng: np.random.Generator) -> Study:
    """A test that misses more than it finds."""
    x = _normal_columns(rng, 120, 2)
    table = br.CovariateTable(*_results(rng, expit(1.5 * x["x0"]), 4, 0.1, 0.65), x)
    return table, br.Prior(better_than_chance=True)


def _from_prior(region: str, kind: tuple[int, int]) -> Callable[[np.random.Generator], Study]:
    prior = REGIONS[region]
    return lambda rng: (drawn_study(rng, *kind, 4, prior)[0], prior)


ODD = (hardly_identified, wide, once, separated, rare_level, doubled, half_known, heavy, nobody, poor)
FAMILIES: dict[str, Callable[[np.random.Generator], Study]] = {
    f"N = {kind[0]:,}, d = {kind[1]}, {region}": _from_prior(region, kind)
    for region in REGIONS
    for kind in KINDS
} | {each.__name__.replace("_", " "): each for each in ODD}


# Stated errors -------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """What a fit reports, in posterior sds of the reference, with the bound on each number's error."""

    mean: np.ndarray
    sd: np.ndarray
    log_evidence: float
    error: np.ndarray
    """Of the larger of mean and sd, in sds; of the log evidence last."""


def numbers_of(cloud: Cloud) -> Numbers:
    """Means and sds of intercept, slopes, error rates and prevalence."""
    at = cloud.parameters
    mean, sd, error = cloud.moments(np.vstack([at.alpha, at.beta, at.p, at.q, cloud.points.prevalence]))
    own = bound(cloud.points.log_evidence[1:])
    return Numbers(mean, sd, cloud.log_evidence, np.append(error, own))


def away(found: Numbers, reference: Numbers) -> np.ndarray:
    """The larger of the errors of mean and sd of each number, in sds, and that of the log evidence."""
    means = np.abs(found.mean - reference.mean) / reference.sd
    sds = np.abs(found.sd / reference.sd - 1)
    return np.append(np.maximum(means, sds), abs(found.log_evidence - reference.log_evidence))


def particles(target: Target, rng: np.random.Generator, size: int = 512, groups: int = 8) -> Numbers:
    """Particles of the prior whose likelihood is raised step by step, moved by differences in each group."""
    found = [_one_group(target, rng, size) for _ in range(groups)]
    v = np.concatenate([each[0] for each in found], axis=1)
    at = target.parameters(v)
    numbers = np.vstack([at.alpha, at.beta, at.p, at.q, target.evaluate(v).prevalence])
    each = np.split(numbers, groups, axis=1)
    means = np.array([one.mean(axis=1) for one in each])
    sd = numbers.std(axis=1)
    sds = np.array([np.sqrt(np.mean((one - numbers.mean(axis=1)[:, None]) ** 2, axis=1)) for one in each])
    evidence = np.array([one[1] for one in found])
    spread = np.maximum(means.std(axis=0, ddof=1), sds.std(axis=0, ddof=1)) / sd
    error = 2.365 / np.sqrt(groups) * np.append(spread, evidence.std(ddof=1))
    return Numbers(
        numbers.mean(axis=1),
        sd,
        float(np.log(np.mean(np.exp(evidence - evidence.max()))) + evidence.max()),
        error,
    )


def _one_group(target: Target, rng: np.random.Generator, size: int) -> tuple[np.ndarray, float]:
    """Equally weighted particles, and the log evidence that their steps add up to."""
    v = rng.standard_normal((target.dimension, size))

    def split(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        normal = -np.sum(at**2, axis=0) / 2 - len(at) * np.log(2 * np.pi) / 2
        return normal, target.evaluate(at).log_density - normal

    base, gain = split(v)
    power, log_evidence = 0.0, 0.0
    while power < 1:
        step = _next_power(gain, power)
        weight = (step - power) * gain
        log_evidence += float(np.log(np.mean(np.exp(weight - weight.max()))) + weight.max())
        share = np.exp(weight - weight.max())
        chosen = np.searchsorted(np.cumsum(share / share.sum()), (np.arange(size) + rng.random()) / size)
        chosen = np.minimum(chosen, size - 1)
        v, base, gain, power = v[:, chosen], base[chosen], gain[chosen], step
        for turn in range(60 if power == 1 else 24):
            half = rng.permutation(size)
            for moving, other in (
                (half[: size // 2], half[size // 2 :]),
                (half[size // 2 :], half[: size // 2]),
            ):
                first, second = rng.choice(other, moving.size), rng.choice(other, moving.size)
                scale = 1.0 if turn % 6 == 5 else 2.38 / np.sqrt(2 * len(v)) * rng.choice([0.3, 0.7, 1.0])
                tried = v[:, moving] + scale * (v[:, first] - v[:, second])
                tried += 1e-3 * rng.standard_normal(tried.shape)
                there = split(tried)
                change = there[0] - base[moving] + power * (there[1] - gain[moving])
                taken = np.log(rng.random(moving.size)) < change
                moved = moving[taken]
                v[:, moved], base[moved], gain[moved] = tried[:, taken], there[0][taken], there[1][taken]
    return v, log_evidence


def _next_power(gain: np.ndarray, power: float) -> float:
    """The largest power at which half of the particles are still effective."""
    low, high = power, 1.0
    for _ in range(40):
        middle = (low + high) / 2 if _ > 0 else 1.0
        weight = np.exp((middle - power) * (gain - gain.max()))
        enough = weight.sum() ** 2 / (weight @ weight) > gain.size / 2
        if enough and middle == 1.0:
            return 1.0
        low, high = (middle, high) if enough else (low, middle)
    return max(low, power + 1e-9)


def ends_of(cloud: Cloud) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends of 90 % intervals of slopes and rates, posterior sds, and the stated errors of ends, in sds."""
    target = cloud.target
    posterior = CloudPosterior(cloud, cloud.points.prevalence)
    fit = CovariatesFit(target.table.counts, target.prior, posterior, target.table)
    laws = [*(fit.slope(term) for term in target.table.terms), *(fit.marginal(name) for name in NAMES)]
    slopes = cloud.moments(cloud.parameters.beta)[1] / target.table.sd
    ends = np.array([law.quantile([0.05, 0.95]) for law in laws])
    return ends, np.array([*slopes, *fit.sd])[:, None], np.array([[law.error] for law in laws])


class Trial(NamedTuple):
    """How one study went: errors over what was stated, beside either reference."""

    family: str
    stated: float
    sampled: bool
    own: np.ndarray
    """Whether each number is within its own bound of the finer run."""
    whole: np.ndarray
    """Whether each number is within the fit's error of the finer run."""
    apart: np.ndarray
    """Whether each number is within its own bound of the particles."""
    ends: np.ndarray
    """Whether each end of an interval is within its stated error of the finer run."""
    worst: float
    seconds: float


def tried(family: str, rng: np.random.Generator, tol: float, *, with_particles: bool) -> Trial:
    """One study of a family."""
    table, prior = FAMILIES[family](rng)
    target = Target(table, prior, 1.5)
    start = time.process_time()
    cloud = make_cloud(target, tol)
    seconds = time.process_time() - start
    fine = make_cloud(target, tol / 2, seed=int(rng.integers(1, 2**31)))
    found, finer = numbers_of(cloud), numbers_of(fine)
    (ends, _, stated), (true, sd, own) = ends_of(cloud), ends_of(fine)
    gap = away(found, finer)
    apart = np.ones(0, bool)
    if with_particles:
        other = particles(target, rng)
        apart = away(found, other) <= np.hypot(found.error, other.error)
    return Trial(
        family,
        cloud.error,
        cloud.sampled,
        gap <= np.hypot(found.error, finer.error),
        gap <= np.hypot(cloud.error, finer.error),
        apart,
        (np.abs(ends - true) / sd <= np.hypot(stated, own)).ravel(),
        float(np.max(gap / np.hypot(cloud.error, finer.error))),
        seconds,
    )


def errors(
    studies: int, seed: int, tol: float, families: list[str], *, with_particles: bool
) -> list[dict[str, str]]:
    """A row for each family, and one for all."""
    rng, trials = np.random.default_rng(seed), []
    for k in range(studies):
        trials.append(tried(families[k % len(families)], rng, tol, with_particles=with_particles))
        one = trials[-1]
        say(
            f"{k + 1}: {one.family}: stated {one.stated:.1g}{' (sampled)' * one.sampled}, "
            f"ends {one.ends.mean():.2f}, own {one.own.mean():.2f}, whole {one.whole.mean():.2f}, "
            f"worst {one.worst:.2f}, {one.seconds:.1f} s"
        )
        if (k + 1) % 20 == 0:
            say(str(_row("so far", trials)))
    rows = [_row(name, [one for one in trials if one.family == name]) for name in families[:studies]]
    return [*rows, _row("all", trials)]


def _row(name: str, trials: list[Trial]) -> dict[str, str]:
    """Shares over some trials."""
    stated = [one.stated for one in trials]
    own, whole, apart, ends = (
        np.concatenate([getattr(one, part) for one in trials]) for part in ("own", "whole", "apart", "ends")
    )
    return {
        "studies": f"{name} ({len(trials)})",
        "stated error": f"{np.median(stated):.1g} (largest {max(stated):.1g})",
        "sampled": str(sum(one.sampled for one in trials)),
        "within the fit's error": f"{whole.mean():.3f} of {whole.size}",
        "each within its own": f"{own.mean():.3f}",
        "ends of intervals": f"{ends.mean():.3f} of {ends.size}",
        "beside particles": f"{apart.mean():.3f} of {apart.size}" if apart.size else "–",
        "seconds": f"{np.median([one.seconds for one in trials]):.1f}",
    }


# Coverage ------------------------------------------------------------------------------------------


def covered(fit: CovariatesFit, true: dict[str, float], level: float) -> list[bool]:
    """Whether each interval holds its parameter."""
    found = []
    for name, value in true.items():
        law = fit.slope(name) if name in fit.records.terms else fit.marginal(name)
        low, high = law.quantile([(1 - level) / 2, (1 + level) / 2])
        found.append(bool(low <= value <= high))
    return found


def coverage(studies: int, seed: int, level: float) -> list[dict[str, str]]:
    """Shares of intervals that hold the parameters, in both regions, by parameter."""
    rows = []
    for i, (region, prior) in enumerate(REGIONS.items()):
        rng = np.random.default_rng([seed, i])
        inside: list[bool] = []
        parts: dict[str, list[bool]] = {}
        for k in range(studies):
            table, true = drawn_study(rng, *SMALL[k % len(SMALL)], 4, prior)
            found = covered(br.fit_covariates(table, prior, tol=0.05), true, level)
            inside += found
            for name, one in zip(true, found, strict=True):
                parts.setdefault("slopes" if name.startswith("x") else name.replace("_", "-"), []).append(one)
            if (k + 1) % 20 == 0:
                say(f"{region}: {k + 1} studies, {np.mean(inside):.3f} of {len(inside)} covered")
        row = {"region": region, "intervals": str(len(inside)), "covered": _share(inside, level)}
        rows.append(row | {name: _share(own, level) for name, own in parts.items()})
    return rows


def _share(inside: list[bool], level: float) -> str:
    return f"{np.mean(inside):.3f} ± {np.sqrt(level * (1 - level) / len(inside)):.3f}"


# False alarms --------------------------------------------------------------------------------------


def screened(
    rng: np.random.Generator,
    size: int,
    *,
    bent: float = 0.0,
    correlation: float = 0.0,
    more_false: float = 0.0,
    replicates: tuple[int, ...] = (2, 3, 4, 5),
) -> br.CovariateTable:
    """A screening programme by age and site that is as the model says, or is not."""
    age, site = rng.normal(50, 12, size), rng.choice(["a", "b", "c"], size, p=[0.5, 0.3, 0.2])
    z = (age - 50) / 12
    truth = rng.random(size) < expit(-0.8 + z + 0.7 * (site == "b") + bent * (z**2 - 1))
    rate = np.where(truth, 0.85, 0.1 + more_false * (site == "b"))
    if correlation:
        rest = (1 - correlation) / correlation
        rate = rng.beta(rate * rest, (1 - rate) * rest)
    n = rng.choice(replicates, size)
    return br.CovariateTable(n, rng.binomial(n, rate), {"age": age, "site": site})


WRONG: dict[str, dict[str, Any]] = {
    "as the model says": {},
    "one or two replicates": {"replicates": (1, 2)},
    "prevalence bends with age": {"bent": 0.4},
    "replicates correlated, ρ = .15": {"correlation": 0.15},
    "10 % more false positives at a site": {"more_false": 0.1},
}


def alarms(studies: int, seed: int) -> list[dict[str, str]]:
    """How often `check` warns of what the model assumes, at its usual level of 95 %."""
    rows = []
    for name, how in WRONG.items():
        for size in (100, 300, 1000):
            rng, warned, named = np.random.default_rng(seed), 0, Counter[str]()
            for _ in range(studies):
                fit = br.fit_covariates(screened(rng, size, **how), tol=0.05)
                found = [one for one in covariates_findings(fit, None, 0.05) if one.severity == "warning"]
                warned += bool(found)
                named.update({one.name for one in found})
            said = ", ".join(f"{key} {count}" for key, count in named.most_common(2))
            share = f"{warned / studies:.3f}"
            rows.append({"study": name, "N": str(size), "studies": str(studies), "warned": share, "by": said})
            say(str(rows[-1]))
    return rows


# Bars ----------------------------------------------------------------------------------------------

BARS = {"N50d1": 2e-3, "N500d5": 3e-3, "N1e4d10": 1e-3}
"""How near the reference numbers must be, in posterior sds."""


def bars() -> list[dict[str, str]]:
    """Beside the reference numbers, and for a million individuals beside other points."""
    rows = []
    for name, within in BARS.items():
        case, table, _ = golden(name)
        seconds, cloud = min((_timed(table) for _ in range(3)), key=lambda one: one[0])
        found = numbers_of(cloud)
        gap = np.abs(found.mean[:-1] - case["mean"]) / case["sd"]
        sds = np.abs(found.sd[:-1] / case["sd"] - 1)
        evidence = abs(found.log_evidence - case["log_evidence"])
        rows.append(_bar(name, within, gap.max(), sds.max(), evidence, seconds, cloud.error))
        say(str(rows[-1]))
    table = study(10**6, 10, 15)
    tracemalloc.start()
    design = sum(column.nbytes for column in table.values)
    seconds, cloud = _timed(table)
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    first, second = numbers_of(cloud), numbers_of(make_cloud(Target(table, br.Prior(), 1.5), 1e-3, seed=7))
    gap = away(first, second)
    rows.append(
        _bar(
            "N = 10⁶, d = 10, two seeds", 1e-3, gap[:-1].max(), gap[:-1].max(), gap[-1], seconds, cloud.error
        )
    )
    rows[-1]["memory"] = f"{extra / 2**20:.0f} MB beside a design of {design / 2**20:.0f} MB"
    return rows


def _timed(table: br.CovariateTable) -> tuple[float, Cloud]:
    """Seconds on the processor, and the points."""
    start = time.process_time()
    cloud = make_cloud(Target(table, br.Prior(), 1.5), 1e-3)
    return time.process_time() - start, cloud


def _bar(name: str, within: float, mean: float, sd: float, evidence: float, *rest: float) -> dict[str, str]:
    numbers = {"worst mean, sds": mean, "worst sd, relative": sd, "log evidence": evidence}
    numbers |= {"bar": within, "seconds": rest[0], "stated": rest[1]}
    return {"study": name, **{key: f"{value:.2g}" for key, value in numbers.items()}, "memory": "–"}


def main() -> None:
    """Run one of the trials and print a table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("trial", choices=["coverage", "errors", "alarms", "bars"])
    options.add_argument("--studies", type=int, default=200, help="of each region, or in all")
    options.add_argument("--level", type=float, default=0.9)
    options.add_argument("--tol", type=float, default=0.02)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--family", default="", help="only families whose name has this text")
    options.add_argument("--particles", action="store_true", help="compare with tempered particles too")
    chosen = options.parse_args()
    if chosen.trial == "coverage":
        rows = coverage(chosen.studies, chosen.seed, chosen.level)
    elif chosen.trial == "bars":
        rows = bars()
    elif chosen.trial == "alarms":
        rows = alarms(chosen.studies, chosen.seed)
    else:
        families = [name for name in FAMILIES if chosen.family in name]
        rows = errors(chosen.studies, chosen.seed, chosen.tol, families, with_particles=chosen.particles)
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
