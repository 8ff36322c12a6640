"""Random tables of every kind: the errors that fits state hold; `benchmarks.honesty` takes thousands."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.honesty import Claim, judge

pytestmark = pytest.mark.slow

EACH = 2  # of every family and region
QUICK = ("friendly", "few cells", "known")  # the reference takes minutes for others


@pytest.mark.parametrize("better", [False, True], ids=["half", "better than chance"])
@pytest.mark.parametrize("family", QUICK)
def test_stated_errors_hold(family: str, better: bool) -> None:
    record = judge(family, better, range(EACH), seed=16, every=EACH, seconds=600)
    assert not record.failed
    decided = [claim for claim in record.claims if claim.decided]
    assert len(decided) > 0.9 * len(record.claims)
    assert np.mean([claim.honest for claim in decided]) == 1, record.worst


def test_a_claim_is_judged_by_what_the_reference_knows() -> None:
    assert Claim("moments", stated=1e-6, found=5e-7, doubt=1e-10).honest
    assert not Claim("moments", stated=1e-6, found=5e-6, doubt=1e-10).honest
    assert not Claim("moments", stated=1e-6, found=5e-6, doubt=1e-3).decided
