"""Sobol' points, scrambled: quasi-random numbers whose independent copies tell their own error.

Each scramble multiplies the digits of every coordinate by a random lower triangular matrix and adds random
digits (Matoušek 1998), so that each point is uniform and the set keeps its balance. Written out here because
scipy's generator costs half a second to import, more than most fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binreps.model import Float

# Primitive polynomials and first direction numbers of coordinates 2, 3, … (Joe and Kuo 2008).
_JOE_KUO = (
    "3:1 7:1,3 11:1,3,1 13:1,1,1 19:1,1,3,3 25:1,3,5,13 37:1,1,5,5,17 41:1,1,5,5,5 47:1,1,7,11,19 "
    "55:1,1,5,1,1 59:1,1,1,3,11 61:1,3,5,5,31 67:1,3,3,9,7,49 91:1,1,1,15,21,21 97:1,3,1,13,27,49 "
    "103:1,1,1,15,7,5 109:1,3,1,15,13,25 115:1,1,5,5,19,61 131:1,3,7,11,23,15,103 "
    "137:1,3,7,13,13,15,69 143:1,1,3,13,7,35,63 145:1,3,5,9,1,25,53 157:1,3,1,13,9,35,107 "
    "167:1,3,1,5,27,61,31 171:1,1,5,11,19,41,61 185:1,3,5,3,3,13,69 191:1,1,7,13,1,19,1 "
    "193:1,3,7,5,13,19,59 203:1,1,3,9,25,29,41 211:1,3,5,13,23,1,55 213:1,3,7,3,13,59,17 "
    "229:1,3,1,3,5,53,69 239:1,1,5,5,23,33,13 241:1,1,7,7,1,61,123 247:1,1,7,9,13,61,49 "
    "253:1,3,3,5,3,55,33 285:1,3,1,15,31,13,49,245 299:1,3,5,15,31,59,63,97 "
    "301:1,3,1,11,11,11,77,249 333:1,3,1,11,27,43,71,9 351:1,1,7,15,21,11,81,45 "
    "355:1,3,7,3,25,31,65,79 357:1,3,1,1,19,11,3,205 361:1,1,5,9,19,21,29,157 "
    "369:1,3,7,11,1,33,89,185 391:1,3,3,3,15,9,79,71 397:1,3,7,11,15,39,119,27 "
    "425:1,1,3,1,11,31,97,225 451:1,1,1,3,23,43,57,177 463:1,3,7,7,17,17,37,71 "
    "487:1,3,1,5,27,63,123,213 501:1,1,3,5,11,43,53,133 529:1,3,5,5,29,17,47,173,479 "
    "539:1,3,3,11,3,1,109,9,69 545:1,1,1,5,17,39,23,5,343 557:1,3,1,5,25,15,31,103,499 "
    "563:1,1,1,11,11,17,63,105,183 601:1,1,5,11,9,29,97,231,363 607:1,1,5,15,19,45,41,7,383 "
    "617:1,3,7,7,31,19,83,137,221 623:1,1,1,3,23,15,111,223,83 631:1,1,5,13,31,15,55,25,161 "
    "637:1,1,3,13,25,47,39,87,257 "
)
_BITS = 32


class Scrambled:
    """One scramble of the Sobol' sequence; coordinates beyond the table are independent random numbers.

    Examples
    --------
    >>> points = Scrambled(3, np.random.default_rng(1)).block(0, 8)
    >>> points.shape, sorted((points[1] * 8).astype(int).tolist())
    ((3, 8), [0, 1, 2, 3, 4, 5, 6, 7])
    """

    def __init__(self, dimension: int, rng: np.random.Generator) -> None:
        directions = _directions(min(dimension, _JOE_KUO.count(":") + 1))
        self._directions = np.stack([_scrambled(row, rng) for row in directions])
        self._shift = rng.integers(0, 2**_BITS, (len(directions), 1), dtype=np.uint64)
        self._rest, self._rng = dimension - len(directions), rng

    def block(self, start: int, stop: int) -> Float:
        """Points start … stop − 1 as columns, inside (0, 1); both ends are 0 or powers of two."""
        found = np.zeros((len(self._directions), 1), np.uint64)
        for bit in range((stop - 1).bit_length()):
            found = np.concatenate([found, found ^ self._directions[:, bit, None]], axis=1)
        uniform = ((found[:, start:stop] ^ self._shift) + 0.5) / 2.0**_BITS
        return np.concatenate([uniform, self._rng.random((self._rest, stop - start))])


def _directions(dimension: int) -> NDArray[np.uint64]:
    """Direction numbers of each coordinate, the leading digit first."""
    rows = [[1 << (_BITS - 1 - k) for k in range(_BITS)]]
    for entry in _JOE_KUO.split()[: dimension - 1]:
        polynomial, first = entry.split(":")
        m, taps = [int(v) for v in first.split(",")], int(polynomial)
        degree = len(m)
        for k in range(degree, _BITS):
            value = m[k - degree] ^ (m[k - degree] << degree)
            for i in range(1, degree):
                value ^= ((taps >> (degree - i)) & 1) * (m[k - i] << i)
            m.append(value)
        rows.append([value << (_BITS - 1 - k) for k, value in enumerate(m)])
    return np.array(rows, np.uint64)


def _scrambled(row: NDArray[np.uint64], rng: np.random.Generator) -> NDArray[np.uint64]:
    """Each direction number's digits times one random lower triangular matrix with a unit diagonal."""
    places = np.arange(_BITS - 1, -1, -1, dtype=np.uint64)
    digits = (row[:, None] >> places) & np.uint64(1)
    matrix = np.tril(rng.integers(0, 2, (_BITS, _BITS), dtype=np.uint64), -1) + np.eye(_BITS, dtype=np.uint64)
    return np.asarray((((digits @ matrix.T) & np.uint64(1)) << places).sum(axis=1, dtype=np.uint64))
