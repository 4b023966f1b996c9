"""The pictures that are far from all others: what is usual, and the distance to the nearest where it is not.

Most pictures have one within the limit in the first segment that is looked at, and no other segment needs to be. Knows
no files.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stages.knn.top_k import NONE, Searcher
from stages.knn.vector_set import VectorSet

_SAMPLE = 1000
"""Pictures whose nearest are known in any case: the usual distance is their median."""

_Floats = NDArray[np.float64]


def nearest_distances(
    segments: Sequence[VectorSet], times: float, opened: Callable[[VectorSet], Searcher]
) -> tuple[float, _Floats]:
    """The usual distance to the nearest other picture, 0 if there is none, and of each of n pictures, segment by
    segment, the distance to the nearest other one if that is more than so many times the usual one, else to one that is
    not farther; float64 (n,), NaN in a library of one picture. opened: makes an exact searcher."""
    count = sum(map(len, segments))
    sample = np.arange(0, count, max(1, -(-count // _SAMPLE)))
    known = _searched(segments, sample, 0.0, opened)[sample]
    positive = known[np.isfinite(known) & (known > 0)]
    usual = float(np.median(positive)) if len(positive) else 0.0
    found = _searched(segments, np.arange(count), times * usual, opened)
    return usual, np.where(np.isfinite(found), found, np.nan)


def _searched(
    segments: Sequence[VectorSet], rows: NDArray[np.int64], enough: float, opened: Callable[[VectorSet], Searcher]
) -> _Floats:
    """The distance to the nearest other picture of these rows, to the first one within `enough`, of all n pictures;
    infinite for other rows."""
    starts = np.cumsum([0, *map(len, segments)])
    least = np.full(starts[-1], np.inf)
    open_ = rows
    for there, first in zip(segments, starts.tolist(), strict=False):
        searcher = opened(there)
        for here, start in zip(segments, starts.tolist(), strict=False):
            mine = open_[(open_ >= start) & (open_ < start + len(here))]
            if len(mine):
                itself = np.where((mine >= first) & (mine < first + len(there)), mine - first, NONE)
                near = searcher.search(here.part(mine - start), 1, itself).distances
                least[mine] = np.minimum(least[mine], near[:, 0] if near.shape[1] else np.inf)
        open_ = open_[least[open_] > enough]
    return least
