"""The nearest labelled pictures of each labelled picture, exactly. Knows no files, and of labels only who has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stages.datum.progress import Progress
from stages.knn import top_k
from stages.knn.top_k import NONE, Searcher, TopK
from stages.knn.vector_set import VectorSet


class LabelledVectors(NamedTuple):
    """The labelled pictures of a segment, by id: their vectors, and the number of the first of them among all."""

    points: VectorSet
    start: int


def rank(segments: Mapping[str, LabelledVectors], k: int, opened: Callable[[VectorSet], Searcher]) -> dict[str, TopK]:
    """The k nearest labelled pictures of the labelled pictures of each segment, by distance and then by number; fewer
    if there are fewer others. Rows are numbers among all labelled pictures, in the order of segments.

    opened: makes an exact searcher. The vectors of two segments are looked at together at a time.
    """
    count = sum(len(each.points) for each in segments.values())
    found = {name: top_k.empty(len(each.points), min(k, max(0, count - 1))) for name, each in segments.items()}
    progress = Progress("pictures", count)
    for right, there in segments.items():
        searcher = opened(there.points)
        for left, here in segments.items():
            rows = np.arange(len(here.points)) if left == right else np.full(len(here.points), NONE)
            near = searcher.search(here.points, k, rows)
            query, column = np.nonzero(near.rows != NONE)
            numbers = near.rows[query, column] + there.start
            found[left] = top_k.merge(found[left], query, near.distances[query, column], numbers)
        progress.add(len(there.points))
    return found


def depths(found: TopK) -> npt.NDArray[np.int32]:
    """The number of neighbours of each query, int32 (n,)."""
    counts: npt.NDArray[np.int32] = (found.rows != NONE).sum(axis=1, dtype=np.int32)
    return counts
