"""All rows within a distance, exactly: the nearest rows searched again, for more of them, while all are near enough.

Knows no backend, no files and no pictures.
"""

from typing import NamedTuple

import numpy as np

from stages.knn.backend import Distances, Rows
from stages.knn.topk import NONE, Searcher, TopK
from stages.knn.vectorset import VectorSet

_GROWTH = 8
"""The factor by which the number of neighbours grows for queries all of whose neighbours are near enough."""

_HELD = 4_000_000
"""Neighbours of one search, so that many queries with many neighbours take turns."""


class TooManyError(Exception):
    """There are more rows within the distance than the caller can take."""


class Within(NamedTuple):
    """n pairs: query `queries[i]` is at `distances[i]` from row `rows[i]`; sorted by query, then by row."""

    queries: Rows  # int64 (n,)
    rows: Rows  # int64 (n,)
    distances: Distances  # float32 (n,)


def within(
    searcher: Searcher, queries: VectorSet, distance: float, nearest: TopK, exclude: Rows, available: int, most: int
) -> Within:
    """All pairs of queries and rows at most so far apart.

    nearest: the answer of the searcher to these queries, with any number of columns. exclude: as it was asked.
    available: the number of rows that are not excluded, of each query. Raises TooManyError for more than `most` pairs.
    """
    found: list[Within] = []
    waiting = [(np.arange(len(queries), dtype=np.int64), nearest)]
    while waiting:
        some, answer = waiting.pop()
        columns = answer.rows.shape[1]
        near = (answer.rows != NONE) & (answer.distances.astype(np.float64) <= distance)
        more = near.all(axis=1) & (columns < available)
        query, column = np.nonzero(near & ~more[:, None])
        found.append(Within(some[query], answer.rows[query, column], answer.distances[query, column]))
        if sum(len(each.rows) for each in found) + columns * int(more.sum()) > most:
            raise TooManyError
        again, wider = some[more], min(available, columns * _GROWTH)
        step = max(1, _HELD // max(1, wider))
        for part in (again[start : start + step] for start in range(0, len(again), step)):
            waiting.append((part, searcher.search(queries.part(part), wider, exclude[part])))
    return _sorted(found)


def _sorted(found: list[Within]) -> Within:
    query, row, distance = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((row, query))
    return Within(query[order], row[order], distance[order])
