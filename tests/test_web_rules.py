"""The page decides by itself: its thresholds, answers and costs are the library's, to the last bit."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system_tools import require

import binreps as br
import binreps.web

PAGE = Path(binreps.web.__file__).parent / "page"
SCRIPT = """
import { readFileSync } from "node:fs";
const { decide, risks, rule } = await import(process.argv[1]);
const { costs, scores } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(costs.map(([falsePositive, falseNegative, inconclusive]) => {
  const best = rule({ falsePositive, falseNegative, inconclusive });
  const on = [best.lower, best.upper, Math.max(best.lower - 2 ** -53, 0), Math.min(best.upper + 2 ** -52, 1)];
  const decided = scores.map((y) => [decide(y, best), risks(y, best)]);
  return [best.lower, best.upper, decided, on.map((y) => [y, decide(y, best)])];
})));
"""


def asked(costs: list[tuple[float, ...]], scores: list[float]) -> list[tuple[float, float, list, list]]:
    """What the page's own rule says, run by node."""
    node = require("node", "nodejs")
    words = [node, "--input-type=module", "--eval", SCRIPT, (PAGE / "decide.js").as_uri()]
    content = json.dumps({"costs": costs, "scores": scores})
    done = subprocess.run(words, input=content, capture_output=True, text=True, check=True, timeout=120)
    found: list[tuple[float, float, list, list]] = json.loads(done.stdout)
    return found


def random_costs() -> list[tuple[float, ...]]:
    """Plain ones, ones with few digits that tie, and ones at the ends of what a number can be."""
    rng = random.Random(7)
    plain = [tuple(rng.uniform(1e-3, 10) for _ in range(3)) for _ in range(2000)]
    short = [tuple(rng.randint(1, 40) / 20 for _ in range(3)) for _ in range(2000)]
    wide = [tuple(10 ** rng.uniform(-300, 300) for _ in range(3)) for _ in range(1000)]
    ends = [sys.float_info.min, 5e-324, 1e-310, 1.0, 1e300, sys.float_info.max]
    return plain + short + wide + [(a, b, c) for a in ends for b in ends for c in ends]


@pytest.mark.slow
def test_thresholds_answers_and_costs_are_the_librarys_to_the_last_bit() -> None:
    rng = random.Random(8)
    costs, scores = random_costs(), [*(rng.random() for _ in range(10)), 0.0, 0.5, 1.0]
    compared = 0
    for (b, c, a), (lower, upper, decided, on) in zip(costs, asked(costs, scores), strict=True):
        loss = br.Loss(b, c, a)
        assert (lower, upper) == loss.thresholds, (b, c, a)
        assert [word for word, _ in decided] == loss.words(scores), (b, c, a)
        assert [word for _, word in on] == loss.words([y for y, _ in on]), (b, c, a)
        if max(b, c, a) < 1e300:
            assert [list(map(float, risks)) for _, risks in decided] == loss.risks(scores).tolist(), (b, c, a)
            compared += 1
    assert compared > 4000


@pytest.mark.parametrize("name", sorted(path.name for path in PAGE.glob("*.js")))
def test_the_page_reads_numbers_and_ids_never_sentences(name: str) -> None:
    text = (PAGE / name).read_text(encoding="utf-8")
    assert "Bayes" not in text
    assert '.split(" (")' not in text
