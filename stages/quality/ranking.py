"""The nearest labelled pictures of each labelled picture, from its nearest in every segment. NumPy alone; knows no
files and no labels beyond their codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.files.tables.nearest_table import NearestArray

NONE = -1
"""Fills the places after the last neighbour."""

_CELLS = 1 << 22  # candidates that are sorted at a time


@dataclass(frozen=True)
class SegmentNeighbours:
    """The nearest pictures of one segment, for all m pictures of another: `nearest` is (m, k'), sorted by distance and
    then row. start: the segment's first row among all. others: the number of pictures that could be there,
    the picture itself not counted."""

    nearest: NearestArray
    start: int
    others: int


@dataclass(frozen=True)
class Ranking:
    """The labelled neighbours of m pictures, nearest first: `rows` int32 (m, k), `distances` float32 (m, k), of which
    the first `depths` int32 (m,) are known. skipped: int32 (m,), the nearer pictures without a label."""

    rows: npt.NDArray[np.int32]
    distances: npt.NDArray[np.float32]
    depths: npt.NDArray[np.int32]
    skipped: npt.NDArray[np.int32]


def rank(
    sides: Sequence[SegmentNeighbours], queries: npt.NDArray[np.int64], labelled: npt.NDArray[np.bool_], k: int
) -> Ranking:
    """The k nearest labelled pictures of the queries, which are rows of the sides' arrays, by distance and then row.

    Sides are in the order of their segments. A ranking ends where it is no longer certain: at the last neighbour of a
    segment that has more pictures than it gives neighbours, a picture that follows may be missing. So every neighbour
    is the true one of its rank among the labelled, and a ranking is shorter than k if too many pictures have no label.
    """
    columns = sum(side.nearest.shape[1] for side in sides)
    rows = np.full((len(queries), k), NONE, np.int32)
    distances = np.full((len(queries), k), np.inf, np.float32)
    skipped = np.zeros(len(queries), np.int32)
    depths = np.zeros(len(queries), np.int32)
    for part in _parts(len(queries), columns):
        found = _merged(sides, queries[part])
        usable = found.certain & labelled[found.rows]
        places = np.argsort(~usable, axis=1, kind="stable")[:, :k]
        valid = np.take_along_axis(usable, places, 1)
        width = places.shape[1]
        rows[part, :width] = np.where(valid, np.take_along_axis(found.rows, places, 1), NONE)
        distances[part, :width] = np.where(valid, np.take_along_axis(found.distances, places, 1), np.inf)
        depths[part] = valid.sum(axis=1)
        skipped[part] = _passed(places, valid, found.certain)
    return Ranking(rows, distances, depths, skipped)


@dataclass(frozen=True)
class _Merged:
    """The candidates of all sides, nearest first; `certain` is true up to the place where one may be missing."""

    rows: npt.NDArray[np.int32]
    distances: npt.NDArray[np.float32]
    certain: npt.NDArray[np.bool_]


def _parts(queries: int, columns: int) -> Iterator[slice]:
    step = max(1, _CELLS // max(1, columns))
    for begin in range(0, queries, step):
        yield slice(begin, begin + step)


def _merged(sides: Sequence[SegmentNeighbours], queries: npt.NDArray[np.int64]) -> _Merged:
    rows, distances, lasts = [], [], []
    for side in sides:
        chosen = side.nearest[queries]
        last = np.zeros(chosen.shape, np.bool_)
        if chosen.shape[1]:
            last[:, -1] = side.others > chosen.shape[1]
        rows.append(chosen["row"] + np.int32(side.start))
        distances.append(chosen["distance"])
        lasts.append(last)
    # Segments come in the order of ids, and each is sorted: a stable sort by distance is one by distance and id.
    order = np.argsort(np.concatenate(distances, axis=1), axis=1, kind="stable")
    last = np.take_along_axis(np.concatenate(lasts, axis=1), order, 1)
    return _Merged(
        np.take_along_axis(np.concatenate(rows, axis=1), order, 1),
        np.take_along_axis(np.concatenate(distances, axis=1), order, 1),
        np.cumsum(last, axis=1) - last == 0,
    )


def _passed(
    places: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_], certain: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The candidates passed over: those before the last one taken or, if fewer than wanted were found, all that are
    certain, without those taken."""
    taken = valid.sum(axis=1)
    whole = valid.all(axis=1) & (valid.shape[1] > 0)
    ends = certain.sum(axis=1)
    if valid.shape[1]:
        ends = np.where(whole, places[:, -1] + 1, ends)
    passed: npt.NDArray[np.int64] = ends - taken
    return passed
