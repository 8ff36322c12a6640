"""Random values: sensible, extreme and absurd ones, and ways to damage what was sensible."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from binreps.counts import CountTable
from binreps.decide.loss import Loss
from binreps.errors import BinrepsError
from binreps.model import Prior

ODD: tuple[Any, ...] = (
    *(None, True, False, math.nan, math.inf, -math.inf, -1, -0.0, 0.5, 1e-320, 1e308, 2**53, 2**53 + 1),
    *(2**63, -(2**64), 10**400, "", "x", "1", "０", b"1", (), [], {}, [[1, 2], [3]], 1j, object, np.nan),
    *(np.int8(-1), np.uint64(2**64 - 1), np.float16(3), np.bool_(True), np.datetime64("2020-01-01")),
    *(Decimal("NaN"), Decimal(2), Fraction(1, 3), np.array(3), np.array([]), "\ud800", "a\nb"),
)
"""Values that no argument expects, and a few that it might."""

WORDS = (
    *("1", "0", "pos", "neg", "yes", "no", "+", "-", "−", "true", "False", "", "NA", "nan", "maybe", "2"),
    *(
        "1.0",
        "0,0",
        "1e3",
        " 1 ",
        "=1+1",
        '"',
        "'",
        ";",
        "\t",
        "\x00",
        "ß",
        "👩‍🔬",
        "\u202e",
        "\ufeff",
        "9" * 30,
    ),
)
"""Text as it is found in files."""

NAMES = (
    *("patient", "test", "n", "s", "count", "truth", "known", "id", "result", "first", "second", "rater"),
    *(
        "weight",
        "site",
        "",
        " ",
        "n ",
        "N",
        "a,b",
        'a"b',
        "a\nb",
        "__binreps_n",
        "score",
        "decision",
        "naïve",
    ),
)
"""Names of columns."""


def number(rng: Random) -> float:
    """A number of any size."""
    return rng.choice(
        (
            rng.random(),
            float(rng.randrange(1000)),
            10 ** rng.uniform(-320, 308),
            -rng.random(),
            rng.gauss(0, 5),
        )
    )


def anything(rng: Random) -> Any:
    """An absurd value, a number, or some of them."""
    kind = rng.randrange(6)
    if kind < 3:
        return rng.choice(ODD)
    if kind < 5:
        return number(rng)
    return [rng.choice(ODD) for _ in range(rng.randrange(4))]


def mostly(rng: Random, value: Any, chance: float = 0.15) -> Any:
    """A value, or now and then anything."""
    return anything(rng) if rng.random() < chance else value


def replicates(rng: Random, largest: int = 6) -> int:
    """A number of replicates: mostly few, at most a power of 10."""
    many = 10 ** rng.randrange(largest + 1)
    return rng.choice((rng.randrange(9), rng.randrange(4), 3, rng.randrange(60), many))


def individuals(rng: Random) -> int:
    """A number of individuals: mostly few, and up to the 10⁹ that the exact fits are made for."""
    return rng.choice((1, rng.randrange(20), rng.randrange(20), rng.randrange(2000), 10 ** rng.randrange(10)))


def columns(rng: Random, most: int = 12, largest: int = 6) -> dict[str, list[Any]]:
    """The columns of a count table that is in order."""
    n = [replicates(rng, largest) for _ in range(rng.randrange(most))]
    found: dict[str, list[Any]] = {"n": n, "s": [rng.choice((0, size, rng.randint(0, size))) for size in n]}
    if rng.random() < 0.8:
        found["weight"] = [individuals(rng) for _ in n]
    if rng.random() < 0.2:
        found["known"] = [rng.choice((0, 1, None, None)) for _ in n]
    return found


def count_table(rng: Random, most: int = 12) -> CountTable:
    """A count table that is in order."""
    return CountTable(**columns(rng, most))


def study(rng: Random, most: int = 6) -> CountTable:
    """A count table of up to 1,000 replicates each, as the exact fits are made for."""
    return CountTable(**columns(rng, most, largest=3))


def small_cells(rng: Random) -> CountTable:
    """A table as studies have them: few replicates, some hundred individuals."""
    n = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 7))]
    return CountTable(n, [rng.randint(0, size) for size in n], [rng.randrange(1, 200) for _ in n])


def shape(rng: Random) -> float:
    """A shape of a Beta prior: usual, sharp, with a pole, or out of all range."""
    return rng.choice(
        (1.0, 2.0, 0.5, rng.uniform(0.1, 20), 10 ** rng.uniform(-1.3, 7), 10 ** rng.uniform(-310, 308))
    )


def prior(rng: Random) -> Prior:
    """A prior, extreme ones included."""
    if rng.random() < 0.4:
        return Prior()
    usual = rng.random() < 0.7
    shapes = [10 ** rng.uniform(-1.3, 4) if usual else shape(rng) for _ in range(6)]
    return Prior((shapes[0], shapes[1]), (shapes[2], shapes[3]), (shapes[4], shapes[5]))


def loss(rng: Random) -> Loss:
    """Costs from which thresholds follow, extreme ones included."""
    for _ in range(20):
        try:
            pair = rng.choice((rng.random(), (rng.random(), rng.random()), 10 ** rng.uniform(-300, 300)))
            found = Loss(10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-300, 300), pair)
            _ = found.thresholds
        except BinrepsError:
            continue
        return found
    return Loss()


def damaged(rng: Random, content: bytes) -> bytes:
    """Bytes with a few of them changed, cut out, repeated or put elsewhere."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        place = rng.randrange(len(data) + 1)
        length = rng.choice((1, 2, 8, 64))
        kind = rng.randrange(6)
        if kind == 0:
            data[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length]
        elif kind == 3:
            data[place:place] = rng.choice(WORDS).encode("utf-8")
        elif kind == 4:
            data[place:place] = rng.choice(
                (b"\n", b"\r\n", b",", b";", b'"', b"\x00", b"\xff", b"\xef\xbb\xbf")
            )
        else:
            del data[place:]
    return bytes(data)


def damaged_json(rng: Random, content: Any) -> Any:
    """JSON with one value somewhere in it replaced, removed or doubled."""
    if isinstance(content, dict) and content and rng.random() < 0.85:
        key = rng.choice(list(content))
        if rng.random() < 0.1:
            return {name: value for name, value in content.items() if name != key}
        return {**content, key: damaged_json(rng, content[key])}
    if isinstance(content, list) and content and rng.random() < 0.8:
        i = rng.randrange(len(content))
        again = content[i : i + 1] if rng.random() < 0.1 else []
        return [*content[:i], *again, damaged_json(rng, content[i]), *content[i + 1 :]]
    absurd = (None, True, -1, 0, 1, 3, 0.5, 1e300, 10**30, "", "x", [], {}, [1, 2], {"n": 1}, "\ud800")
    return rng.choice((rng.choice(absurd), rng.randrange(10), number(rng)))
