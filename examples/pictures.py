"""Draws the pictures of README and site, and the report in the guide: `python examples/pictures.py`."""

import sys
from pathlib import Path

import binreps as br
from binreps.decide.evaluate import calibration_curve
from binreps.decide.predictive import predictive_counts

usual = Path(__file__).parents[1] / "docs" / "pictures"
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else usual
folder.mkdir(parents=True, exist_ok=True)

# A lab with a rapid test: what to answer for the next patient, who is what, and when to stop testing
analysis = br.analyse(
    br.load_screening(), individual="individual", result="result", name="Rapid test screening"
)
br.plot.save(br.plot.decisions(analysis.main.decisions), folder / "triangle.svg")
br.plot.save(br.plot.individuals(analysis.main.cells, br.Loss().thresholds), folder / "individuals.svg")
rule = br.stopping_table(analysis.fit, br.Loss(), cost_per_replicate=0.02, max_replicates=8)
br.plot.save(br.plot.stopping(rule), folder / "stopping.svg")
(folder / "report.html").write_text(analysis.report(title="Rapid test screening"), encoding="utf-8")

# A panel of readers, two of whom differ
readers = br.Rates(0.4, [0.03, 0.05, 0.04, 0.25, 0.06, 0.03, 0.05], [0.08, 0.1, 0.06, 0.1, 0.45, 0.12, 0.09])
panel = br.simulate(readers, 300, 7, rng=4)
br.plot.save(br.plot.sources(br.fit_sources(panel.readings, rng=1)), folder / "readers.svg")

# qPCR whose replicates err together: what the simple model expects, and what is there
wells = br.CountTable([6] * 7, range(7), [210, 22, 14, 12, 16, 24, 57])
br.plot.save(br.plot.counts(predictive_counts(br.fit_bayes(wells), rng=1)), folder / "correlated.svg")

# Model judges: chances against the truth
study = br.simulate(br.Rates(0.3, 0.1, 0.2), 2000, 3, rng=2)
fit = br.fit_bayes(study.counts)
scores = fit.score(study.n, study.s)
br.plot.save(br.plot.calibration(calibration_curve(scores, study.truth)), folder / "calibration.svg")
