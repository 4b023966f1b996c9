"""An index of perceptual hashes: all that differ from others in few bits, exactly, without a look at every pair.

Multi-index hashing, after Norouzi, Punjani and Fleet. Hashes are cut into bands. If two differ in at most r bits, then
they differ in at most r_i in some band i, as long as the r_i + 1 add up to r + 1. So each query looks up, band by band,
the values that are this near to its own, and only what lies there is compared. The number of bands follows from the
number of hashes; where looking up costs more than comparing, everything is compared. Knows no pictures and no vectors.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from stages.knn.backend import Mask, Rows
from stages.record.hashes import BITS, NO_VERDICT, TURNS, BitCounts, Hashes, least_differing, turned

_FEWEST_BANDS, _MOST_BANDS = 3, 16  # the tables of two bands would be of 32 bits
_LOOKUP, _CANDIDATE = 10.0, 14.0  # the time of each, beside that of comparing two hashes; measured
_LOOKED_UP, _COMPARED = 8192, 1024
"""Queries at a time; neither these nor the next two change a result."""

_QUERIES, _ROWS = 8, 4096
"""Queries and hashes of a block that is compared as a whole: it stays in a processor's cache."""

_Found = tuple[Rows, Rows]


class HashPairs(NamedTuple):
    """n pairs of a query and a row, sorted: int64 (n,) each, and the bits in which they differ as one lies best on the
    other, uint8 (n,)."""

    queries: Rows
    rows: Rows
    bits: BitCounts


class HashBand(NamedTuple):
    """Some neighbouring bits of the hashes, the lowest of them `shift`, in which those of a pair differ at most
    `radius`. order: the rows by the value of these bits; starts: of each value its first place there, and the end."""

    shift: int
    width: int
    radius: int
    order: Rows
    starts: Rows


class HashIndex:
    """n hashes, uint64 (n,). bits: in which those of a pair differ at most, 0 to 63. Hashes without a verdict are in no
    pair."""

    def __init__(self, hashes: Hashes, bits: int) -> None:
        self._hashes, self._bits = hashes, bits
        self._rows = np.flatnonzero(hashes != NO_VERDICT)
        self._said = hashes[self._rows]
        self.bands = [self._band(*each) for each in _cheapest(len(self._rows), bits)]
        if sum(map(self._cost, self.bands)) > len(self._rows):
            self.bands = []  # many hashes are alike: each lookup would find most of them

    def pairs(self, queries: Hashes, after: bool = False) -> Iterator[HashPairs]:
        """The pairs of the queries, uint64 (m,), with the hashes of the index, in any of the ways in which a picture
        can lie; some queries at a time, in order. after: of the queries these are the hashes themselves, and each pair
        is wanted once: those whose row comes after the query."""
        step = _LOOKED_UP if self.bands else _COMPARED
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            said = np.flatnonzero(part != NO_VERDICT)
            found = [self._near(turned(part[said], turn)) for turn in range(TURNS)]
            query, row = (np.concatenate(each) for each in zip(*found, strict=True))
            query, row = said[query] + start, self._rows[row]
            if after:
                query, row = query[row > query], row[row > query]
            keys = np.unique(query * len(self._hashes) + row)  # a pair may be found in several bands and turns
            query, row = np.divmod(keys, max(1, len(self._hashes)))
            yield HashPairs(query, row, least_differing(queries[query], self._hashes[row]))

    def _band(self, shift: int, width: int, radius: int) -> HashBand:
        values = _values(self._said, shift, width)
        starts = np.zeros((1 << width) + 1, np.int64)
        np.cumsum(np.bincount(values, minlength=1 << width), out=starts[1:])
        return HashBand(shift, width, radius, np.argsort(values, kind="stable"), starts)

    def _cost(self, band: HashBand) -> float:
        """The time of one query, beside that of comparing two hashes, if queries are spread as the hashes are."""
        alike = float((np.diff(band.starts).astype(np.float64) ** 2).sum()) / max(1, len(self._rows))
        return _masks_of(band.width, band.radius) * (_LOOKUP + _CANDIDATE * alike)

    def _near(self, queries: Hashes) -> _Found:
        """Queries and places in `_said` that are near as they lie, in no order, some of them several times."""
        found = list(self._looked_up(queries) if self.bands else self._compared(queries))
        none = np.empty(0, np.int64)
        query, row = zip(*found, strict=True) if found else ((), ())
        return np.concatenate([none, *query]), np.concatenate([none, *row])

    def _looked_up(self, queries: Hashes) -> Iterator[_Found]:
        for band in self.bands:
            values = _values(queries, band.shift, band.width)
            for changed in _masks(band.width, band.radius):
                place = values ^ changed
                begin = band.starts[place]
                counts = band.starts[place + 1] - begin
                query = np.flatnonzero(counts)
                counts, begin = counts[query], begin[query]
                ends = np.cumsum(counts)
                query = np.repeat(query, counts)
                row = band.order[np.arange(len(query)) + np.repeat(begin - ends + counts, counts)]
                near = np.bitwise_count(queries[query] ^ self._said[row]) <= self._bits
                yield query[near], row[near]

    def _compared(self, queries: Hashes) -> Iterator[_Found]:
        for start in range(0, len(queries), _QUERIES):
            some = queries[start : start + _QUERIES, None]
            for first in range(0, len(self._said), _ROWS):
                near: Mask = np.bitwise_count(some ^ self._said[first : first + _ROWS]) <= self._bits
                if near.any():
                    query, row = np.nonzero(near)
                    yield query + start, row + first


def _values(hashes: Hashes, shift: int, width: int) -> Rows:
    """Some neighbouring bits of hashes, the lowest of them `shift`, int64."""
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.int64)


def _masks(width: int, radius: int) -> Iterator[int]:
    """The numbers of so many bits of which at most `radius` are set."""
    for count in range(radius + 1):
        for places in combinations(range(width), count):
            yield sum(1 << place for place in places)


def _masks_of(width: int, radius: int) -> int:
    return sum(comb(width, count) for count in range(radius + 1))


def _cheapest(count: int, bits: int) -> list[tuple[int, int, int]]:
    """The shift, width and radius of each band of an index of so many hashes; none if comparing all is the best."""
    best, least = [], float(count)
    for number in range(_FEWEST_BANDS, min(_MOST_BANDS, bits + 1) + 1):
        bands = _bands(number, bits)
        cost = sum(_masks_of(width, radius) * (_LOOKUP + _CANDIDATE * count / 2**width) for _, width, radius in bands)
        if cost < least:
            best, least = bands, cost
    return best


def _bands(number: int, bits: int) -> list[tuple[int, int, int]]:
    """Bands as equal as can be: the wider ones first, and with them the larger radii."""
    widths = [BITS // number + (at < BITS % number) for at in range(number)]
    radius, more = divmod(bits + 1 - number, number)
    return [(sum(widths[:at]), width, radius + (at < more)) for at, width in enumerate(widths)]
