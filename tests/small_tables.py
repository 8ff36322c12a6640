"""Count tables small enough for every oracle: what the tests of the exact posterior share."""

from __future__ import annotations

from binreps import CountTable

NOBODY = CountTable([], [])
TINY = CountTable([3, 2], [1, 2])
SMALL = CountTable(
    [1, 2, 3, 3, 4, 4, 5, 6, 6], [1, 0, 0, 2, 1, 4, 5, 2, 5], weight=[2, 1, 3, 2, 1, 2, 1, 1, 2]
)
LABELLED = CountTable([3, 2, 4, 5], [1, 2, 1, 4], known=[None, None, 0, 1])
