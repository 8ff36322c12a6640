"""Whether intervals cover and stated errors hold, on studies drawn from the prior: `--help` says how many.

`python -m benchmarks.covariate_trials --studies 500`. Each study is drawn from the prior (slopes, error
rates and prevalence), fitted to a rough tolerance, and fitted again to a fine one. An interval is right if
it holds the parameter; a stated error, if it holds the difference of the two fits.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import binreps as br
from benchmarks.report import markdown_table
from benchmarks.timing import say
from binreps.fits.covariates import CovariatesFit
from binreps.fits.points.cloud import make_cloud
from binreps.fits.points.target import Target

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from covariate_studies import drawn_study

KINDS = ((30, 1), (60, 2), (150, 3), (400, 4), (1000, 5))
REGIONS = {"p, q < ½": br.Prior(), "p + q < 1": br.Prior(better_than_chance=True)}


def covered(fit: CovariatesFit, true: dict[str, float], level: float) -> list[bool]:
    """Whether each interval holds its parameter."""
    found = []
    for name, value in true.items():
        law = fit.slope(name) if name in fit.records.terms else fit.marginal(name)
        low, high = law.quantile([(1 - level) / 2, (1 + level) / 2])
        found.append(bool(low <= value <= high))
    return found


def held(table: br.CovariateTable, prior: br.Prior, rough: float, fine: float) -> list[bool]:
    """Whether each mean of a rough fit is within its stated error of that of a fine one."""
    target = Target(table, prior, 1.5)
    moments = []
    for tol in (rough, fine):
        cloud = make_cloud(target, tol)
        at = cloud.parameters
        moments.append(cloud.moments(np.vstack([at.alpha, at.beta, at.p, at.q, cloud.points.prevalence])))
    (mean, _, error), (true, sd, own) = moments
    return list(np.abs(mean - true) / sd <= np.hypot(error, own))


def main() -> None:
    """Run the trials and print a table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--studies", type=int, default=100, help="of each region")
    options.add_argument("--level", type=float, default=0.9)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--errors", action="store_true", help="try the stated errors too, which takes longer"
    )
    chosen = options.parse_args()
    rows = []
    for region, prior in REGIONS.items():
        rng = np.random.default_rng(chosen.seed)
        inside: list[bool] = []
        honest: list[bool] = []
        for k in range(chosen.studies):
            table, true = drawn_study(rng, *KINDS[k % len(KINDS)], 4, prior)
            inside += covered(br.fit_covariates(table, prior, tol=0.05), true, chosen.level)
            if chosen.errors:
                honest += held(table, prior, 0.05, 0.005)
            if (k + 1) % 20 == 0:
                say(f"{region}: {k + 1} studies, {np.mean(inside):.3f} of {len(inside)} covered")
        share, error = float(np.mean(inside)), float(np.sqrt(0.09 / len(inside)))
        rows.append(
            {
                "region": region,
                "intervals": len(inside),
                "covered": f"{share:.3f} ± {error:.3f}",
                "errors held": f"{np.mean(honest):.3f} of {len(honest)}" if honest else "–",
            }
        )
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
