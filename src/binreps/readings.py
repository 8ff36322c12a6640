"""Readings: who said what about whom, encoded; all that a model with sources needs to know of the data.

A reading is a source's yes or no about an individual. Individuals with the same readings by the same sources
are one record with a weight: 3,869 teeth seen by five dentists are 32 records. A reading takes four bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binreps.counts import UNKNOWN, CountTable, is_null, statuses, whole_numbers
from binreps.errors import DataError
from binreps.options import is_single, kinds_checked, shown
from binreps.people import People
from binreps.table import Table

_SOURCES = 2**30  # a source and its answer are one number of 32 bits
_SHOWN = 12  # sources in a printed record


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Readings:
    """Which source said yes or no about which individual, how often, and how many individuals are alike.

    Records keep their order, the order in which individuals first appear; `merged` makes one of those that
    are alike. A missing result is no reading; an individual without readings stays.

    Parameters
    ----------
    individual, source : array_like
        Whose reading it is, and by whom: text, numbers or anything hashable, none missing.
    result : array_like
        0, 1, False, True, or missing (None, NaN).
    known : array_like, optional
        Status 0 or 1 of the individual where it is known, missing where it is not; every reading of an
        individual says the same, or nothing.

    Attributes
    ----------
    sources : tuple
        The names of the sources.
    start : ndarray of int64
        The entries of record i are those from start[i] to start[i + 1].
    code : ndarray of int32
        Of each entry: twice the number of its source, and one more where the answer is yes.
    times : ndarray of int64 or None
        How often that source gave that answer; None where everyone answered once.
    weight : ndarray of int64
        How many individuals each record stands for.
    known : ndarray of int8
        Status 0 or 1, −1 where it is not known.
    people : People or None
        The population or the covariates of each record, where there are any: `in_populations` and
        `with_covariates` give them.

    Examples
    --------
    >>> readings = Readings([1, 1, 2, 2, 3], ["ann", "bob", "ann", "bob", "bob"], [1, 0, 1, 0, None])
    >>> print(readings)
    Readings: 3 individuals, 4 readings by 2 sources, 3 records
    >>> print(readings.merged().table())
    Readings: 3 individuals, 4 readings by 2 sources, 2 records
    ann  bob  weight
                   1
    yes  no        2
    """

    sources: tuple[Hashable, ...]
    start: NDArray[np.int64]
    code: NDArray[np.int32]
    times: NDArray[np.int64] | None
    weight: NDArray[np.int64]
    known: NDArray[np.int8]
    people: People | None

    def __init__(
        self, individual: ArrayLike, source: ArrayLike, result: ArrayLike, known: ArrayLike | None = None
    ) -> None:
        individuals, of = encoded("individual", individual)
        names, by = encoded("source", source)
        for name, column in (("source", by), ("result", np.asarray(result, dtype=object))):
            if column.shape != of.shape:
                raise DataError(f"{name} must be as long as individual ({of.size}), got {column.size}")
        answers = statuses("result", result, of.size)
        status = np.full(len(individuals), UNKNOWN, np.int8)
        if known is not None:
            status = _status_of(of, statuses("known", known, of.size), individuals)
        given = answers != UNKNOWN
        parts = _assembled(names, of[given], by[given], answers[given], None, status, None)
        self._fill({**parts, "people": None})

    def _fill(self, parts: Mapping[str, Any]) -> None:
        """Set the attributes, which nobody can change afterwards."""
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def _of(cls, **parts: Any) -> Readings:
        """Readings that are encoded already."""
        made = object.__new__(cls)
        made._fill({"people": None, **parts})
        return made

    @classmethod
    def counted(
        cls,
        sources: Sequence[Hashable],
        individual: NDArray[Any],
        source: NDArray[Any],
        yes: NDArray[Any],
        no: NDArray[Any],
        known: NDArray[np.int8],
        weight: NDArray[np.int64] | None = None,
    ) -> Readings:
        """From counts: `individual` and `source` are numbers from 0; `known` and `weight` of individuals."""
        of, by = np.tile(individual, 2), np.tile(source, 2)
        answers = np.repeat(np.array([1, 0], np.int8), individual.size)
        times = np.concatenate([yes, no]).astype(np.int64)
        given = times > 0
        of, by, answers = of[given], by[given], answers[given]
        return cls._of(**_assembled(sources, of, by, answers, times[given], known, weight))

    @classmethod
    def wide(
        cls,
        results: ArrayLike,
        sources: Sequence[Hashable] | None = None,
        weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
    ) -> Readings:
        """From a matrix: a row per record, a column per source, 0, 1 or missing.

        Parameters
        ----------
        results : array_like, two-dimensional
        sources : sequence, optional
            The names of the columns; 1, 2, … if not given.
        weight : array_like of whole numbers, optional
            How many individuals each row stands for; 1 each if not given.
        known : array_like, optional
            Status 0 or 1 of each row where it is known, missing where it is not.

        Examples
        --------
        >>> print(Readings.wide([[1, 0], [1, None]], ["ann", "bob"], weight=[10, 5]))
        Readings: 15 individuals, 25 readings by 2 sources, 2 records
        """
        matrix = np.asarray(results, dtype=object)
        if matrix.ndim != 2:
            raise DataError(f"results must have two dimensions, got {matrix.ndim}")
        rows, columns = matrix.shape
        named = range(1, columns + 1) if sources is None else sources
        names = tuple(named) if isinstance(named, Iterable) and not is_single(named) else ()
        hashable = all(isinstance(name, Hashable) for name in names)
        if len(names) != columns or not hashable or len(set(names)) < columns:
            raise DataError(
                f"sources must be {columns} different names, one per column, got {shown(sources)}"
            )
        answers = statuses("results", matrix.ravel(), matrix.size)
        given = answers != UNKNOWN
        of, by = np.divmod(np.arange(matrix.size), max(columns, 1))
        weights = None if weight is None else whole_numbers("weight", weight)
        status = np.full(rows, UNKNOWN, np.int8) if known is None else statuses("known", known, rows)
        if weights is not None and weights.shape != (rows,):
            raise DataError(f"weight must be as long as results ({rows}), got shape {weights.shape}")
        return cls._of(**_assembled(names, of[given], by[given], answers[given], None, status, weights))

    @classmethod
    def asked(cls, records: Any) -> tuple[Readings, tuple[int, ...]]:
        """Readings that a fit is asked about, and the shape of the answer.

        A mapping of source to answer is one record; an answer is 0, 1, missing, or a pair (n, s). A list of
        mappings is several records.
        """
        if isinstance(records, cls):
            return records, (len(records),)
        if isinstance(records, Mapping):
            return cls._mappings([records]), ()
        if isinstance(records, Iterable) and not isinstance(records, str) and not is_single(records):
            listed = list(records)
            if all(isinstance(one, Mapping) for one in listed):
                return cls._mappings(listed), (len(listed),)
        rule = "ask about Readings, or about what each source said, such as {'ann': 1, 'bob': 0}"
        raise DataError(f"{rule}, got {shown(records)}")

    @classmethod
    def _mappings(cls, records: Sequence[Mapping[Hashable, Any]]) -> Readings:
        """Readings from mappings of source to answer."""
        rows = [
            (i, source, *_yes_no(source, answer))
            for i, record in enumerate(records)
            for source, answer in record.items()
        ]
        names, by = encoded("source", [row[1] for row in rows])
        of = np.array([row[0] for row in rows], np.int64)
        yes, no = (np.array([row[i] for row in rows], np.int64) for i in (2, 3))
        return cls.counted(names, of, by, yes, no, np.full(len(records), UNKNOWN, np.int8))

    def in_populations(self, names: Iterable[Hashable]) -> Readings:
        """The same in populations, each with a prevalence of its own: the name of that of each record.

        Examples
        --------
        >>> Readings.wide([[1, 0], [0, 0]]).in_populations(["north", "south"]).people.populations
        ('north', 'south')
        """
        listed = (
            list(names)
            if isinstance(names, Iterable) and not isinstance(names, str) and not is_single(names)
            else []
        )
        if not all(isinstance(name, Hashable) for name in listed):
            raise DataError(f"the name of a population must be a text or a number, got {shown(names)}")
        if len(listed) != len(self):
            raise DataError(f"population must have one name per record ({len(self)}), got {len(listed)}")
        return self._with(people=People.in_populations(listed, self.weight))

    def with_covariates(
        self,
        covariates: Mapping[str, Any],
        *,
        reference: Mapping[str, Any] | None = None,
        missing_covariates: str = "refuse",
        formula: str | None = None,
    ) -> Readings:
        """The same with covariates that the prevalence may depend on: a value of each for each record.

        Options as in `CovariateTable`.

        Examples
        --------
        >>> readings = Readings.wide([[1, 0], [0, 0]]).with_covariates({"age": [61, 40]})
        >>> readings.people.terms
        ('age',)
        """
        if not isinstance(covariates, Mapping):
            raise DataError(f"covariates must be a mapping of names to values, got {shown(covariates)}")
        if not covariates:
            return self._with(people=None)
        how: Any = {"reference": reference, "missing_covariates": missing_covariates, "formula": formula}
        return self._with(people=People.with_covariates(covariates, self.weight, **how))

    # What there is ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.weight.size)

    @property
    def individuals(self) -> int:
        """Number of individuals."""
        return int(self.weight.sum())

    @property
    def readings(self) -> int:
        """Number of readings."""
        return int(self.totals.sum())

    @property
    def has_known(self) -> bool:
        """Whether the status of anyone is known."""
        return bool(np.any(self.known != UNKNOWN))

    @property
    def row(self) -> NDArray[np.int64]:
        """The record of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How often each source said no and yes, of all individuals: shape (sources, 2)."""
        each = self.weight[self.row] * (1 if self.times is None else self.times)
        found = np.zeros(2 * len(self.sources), np.int64)
        np.add.at(found, self.code, each)  # whole numbers: bincount would round beyond 2⁵³
        return found.reshape(-1, 2)

    @cached_property
    def counts(self) -> CountTable:
        """The same individuals without the sources: n readings of which s are yes."""
        return CountTable(*self.sizes, self.weight, self.known)

    @property
    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Readings of each record, and how many of them are yes."""
        times = np.ones(self.code.size) if self.times is None else self.times
        n = np.bincount(self.row, times, len(self)).astype(np.int64)
        return n, np.bincount(self.row, times * (self.code % 2), len(self)).astype(np.int64)

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """To which component of the graph of individuals and sources each source belongs, from 0.

        Sources that no individual links, directly or through others, cannot be compared.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        size = len(self.sources)
        ends = (self.code // 2, self.row + size)
        graph = coo_array((np.ones(self.code.size, np.int8), ends), shape=(size + len(self),) * 2)
        found = connected_components(graph, directed=False)[1][:size]
        _, first, where = np.unique(found, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[where]

    def merged(self) -> Readings:
        """One record for individuals that are alike, sorted: the same for the same data in any order."""
        lots = np.random.default_rng(1).integers(2**63, size=(2, 2 * len(self.sources)), dtype=np.uint64)
        times = np.uint64(1) if self.times is None else self.times.astype(np.uint64)
        # the sum of random numbers, 128 bits of them, tells records apart
        keys: list[Any] = [self.known, *(_sums(lot[self.code] * times, self.start) for lot in lots)]
        if self.people is not None:
            keys += list(self.people.values)
        n, s = self.sizes
        order = np.lexsort([*keys, s, n])
        new = np.ones(len(self), bool)
        for key in keys:
            new[1:] &= key[order][1:] == key[order][:-1]
        new[1:] = ~new[1:]
        group = np.empty(len(self), np.int64)
        group[order] = np.cumsum(new) - 1
        weight = np.zeros(int(new.sum()), np.int64)
        np.add.at(weight, group, self.weight)
        kept = weight > 0
        return self._taken(order[new][kept], weight[kept])

    def take(self, records: NDArray[Any]) -> Readings:
        """Some of the records, by their numbers."""
        return self._taken(np.asarray(records), self.weight[records])

    def _taken(self, records: NDArray[Any], weight: NDArray[np.int64]) -> Readings:
        """Some of the records, with weights."""
        lengths = np.diff(self.start)[records]
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        where = np.arange(start[-1]) + np.repeat(self.start[records] - start[:-1], lengths)
        times = None if self.times is None else self.times[where]
        parts = {"start": start, "code": self.code[where], "times": times, "weight": weight}
        people = None if self.people is None else self.people.take(records)
        return Readings._of(sources=self.sources, known=self.known[records], people=people, **parts)

    @kinds_checked
    def merging(self, groups: Sequence[Sequence[Hashable]]) -> Readings:
        """The same with some sources taken for one: their answer where they agree, none where they differ.

        The merged source is called by all their names. Groups without a source of these readings are left
        as they are.

        Examples
        --------
        >>> readings = Readings.wide([[1, 1, 0], [1, 0, 0]], ["ann", "bob", "eve"])
        >>> print(readings.merging([("ann", "bob")]).table())
        Readings: 2 individuals, 3 readings by 2 sources, 2 records
        ann + bob  eve  weight
        yes        no        1
                   no        1
        """
        named = {name: " + ".join(map(str, group)) for group in groups for name in group}
        if not set(named) & set(self.sources):
            return self
        names = list(dict.fromkeys(named.get(name, name) for name in self.sources))
        place = np.array([names.index(named.get(name, name)) for name in self.sources])
        one = np.isin(np.arange(len(names)), [names.index(x) for x in set(named.values()) & set(names)])
        by, times = place[self.code // 2], np.ones(self.code.size, np.int64)
        times = times if self.times is None else self.times
        keys, where = np.unique(np.stack([self.row, by]), axis=1, return_inverse=True)
        yes, no = (np.zeros(keys.shape[1], np.int64) for _ in range(2))
        for total, answer in ((yes, 1), (no, 0)):
            np.add.at(total, where.ravel(), times * (self.code % 2 == answer))
        differ, merged = (yes > 0) & (no > 0), one[keys[1]]
        yes, no = (np.where(merged, (total > 0) & ~differ, total) for total in (yes, no))
        found = Readings.counted(names, keys[0], keys[1], yes, no, self.known, self.weight)
        return found._with(people=self.people)

    def forget_known(self) -> Readings:
        """The same individuals with every status unknown."""
        return self._with(known=np.full(len(self), UNKNOWN, np.int8))

    def by_source(self, sources: Sequence[Hashable]) -> tuple[Readings, int]:
        """The same with these sources first, and how many others follow them."""
        place = {name: i for i, name in enumerate(sources)}
        own = [place.setdefault(name, len(place)) for name in self.sources]
        code = 2 * np.array(own, np.int32)[self.code // 2] + self.code % 2 if len(own) else self.code
        return self._with(sources=tuple(place), code=code.astype(np.int32)), len(place) - len(sources)

    def _with(self, **changes: Any) -> Readings:
        """The same but for some parts."""
        names = ("sources", "start", "code", "times", "weight", "known", "people")
        return Readings._of(**{**{name: getattr(self, name) for name in names}, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Readings):
            return NotImplemented
        if self.sources != other.sources or (self.times is None) != (other.times is None):
            return False
        if self.people != other.people:
            return False
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("start", "code", "weight", "known", "times")
            if getattr(self, name) is not None
        )

    def __hash__(self) -> int:
        return hash((self.sources, self.start.tobytes(), self.code.tobytes(), self.weight.tobytes()))

    # Words -----------------------------------------------------------------------------------------

    def table(self) -> Table:
        """What each source said, a column per source, ready to print."""
        columns: dict[str, list[Any]] = {str(name): [""] * len(self) for name in self.sources}
        names = [str(name) for name in self.sources]
        times = [1] * self.code.size if self.times is None else self.times.tolist()
        for row, code, often in zip(self.row.tolist(), self.code.tolist(), times, strict=True):
            said = ("no", "yes")[code % 2] + (f" × {often}" if often > 1 else "")
            before = columns[names[code // 2]][row]
            columns[names[code // 2]][row] = f"{before}, {said}" if before else said
        if self.people is not None:
            columns = {**self.people.columns, **columns}
        more: dict[str, Any] = {"weight": self.weight.tolist()}
        if self.has_known:
            more["known"] = [None if status == UNKNOWN else status for status in self.known.tolist()]
        return Table({**columns, **more}, title=str(self))

    def __str__(self) -> str:
        who = f"{self.readings:,} readings by {len(self.sources):,} source{'s' * (len(self.sources) != 1)}"
        return f"Readings: {self.individuals:,} individuals, {who}, {len(self):,} records"

    def __repr__(self) -> str:
        return str(self.table()) if len(self) <= 30 and len(self.sources) <= _SHOWN else str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def encoded(name: str, values: Any) -> tuple[tuple[Hashable, ...], NDArray[np.int64]]:
    """The different values in the order in which they first appear, and the number of each."""
    places: dict[Any, int] = {}
    try:
        plain = list(values.tolist() if isinstance(values, np.ndarray) else values)
        codes = np.fromiter((places.setdefault(value, len(places)) for value in plain), np.int64, len(plain))
    except TypeError:
        raise DataError(f"{name} must be a plain list of text or numbers") from None
    missing = [value for value in places if is_null(value)]
    if missing:
        i = next(i for i, value in enumerate(plain) if is_null(value))
        raise DataError(f"{name} must not be missing, got {missing[0]} at position {i}")
    return tuple(places), codes


def _yes_no(source: Hashable, answer: Any) -> tuple[int, int]:
    """Yes and no of one source: of 0, 1, a missing answer, or a pair (n, s)."""
    if isinstance(answer, tuple | list) and len(answer) == 2:
        n, s = whole_numbers(f"the answers of source {source!r}", answer).tolist()
        if s <= n:
            return s, n - s
    elif is_null(answer):
        return 0, 0
    elif isinstance(answer, bool | int | float | np.number | np.bool_) and answer in (0, 1):
        return int(answer), 1 - int(answer)
    raise DataError(f"source {source!r} must say 0, 1, or (n, s) with s ≤ n, got {shown(answer)}")


def _status_of(of: NDArray[Any], known: NDArray[np.int8], individuals: Sequence[Any]) -> NDArray[np.int8]:
    """The status of each individual, by what its readings say of it."""
    found = np.full(len(individuals), UNKNOWN, np.int8)
    for status in (0, 1):
        own = of[known == status]
        clash = own[found[own] == 1 - status]
        if clash.size:
            who = individuals[int(clash[0])]
            raise DataError(f"known must give one status per individual, got both for individual {who!r}")
        found[own] = status
    return found


def _assembled(
    sources: Sequence[Hashable],
    of: NDArray[Any],
    by: NDArray[Any],
    answers: NDArray[Any],
    times: NDArray[np.int64] | None,
    known: NDArray[np.int8],
    weight: NDArray[np.int64] | None,
) -> dict[str, Any]:
    """The parts of Readings: entries sorted by record and code, equal ones added up."""
    if len(sources) > _SOURCES:
        raise DataError(f"there must be at most {_SOURCES:,} sources, got {len(sources):,}")
    code = (2 * by + answers).astype(np.int32)
    order = np.lexsort((code, of))
    of, code = of[order], code[order]
    new = np.ones(of.size, bool)
    new[1:] = (of[1:] != of[:-1]) | (code[1:] != code[:-1])
    if not new.all() or times is not None:
        often = np.ones(of.size, np.int64) if times is None else times[order]
        starts = np.flatnonzero(new)
        often = np.add.reduceat(often, starts) if starts.size else often
        of, code, times = of[new], code[new], None if np.all(often == 1) else often
    start = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=known.size))]).astype(np.int64)
    weights = np.ones(known.size, np.int64) if weight is None else weight
    parts = {"start": start, "code": code, "times": times, "weight": weights}
    return {"sources": tuple(sources), **parts, "known": known}


def _sums(values: NDArray[np.uint64], start: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The sum of each record's values, modulo 2⁶⁴."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.asarray(total[start[1:]] - total[start[:-1]])
