"""One way to search or to multiply, in a process of its own, so that it has its own kernels and its own peak memory.

`python -m benchmarks.contenders NAME DIR`: DIR holds library.npy and queries.npy. For each line on its standard input
it does the work once and answers with the seconds; at the end of its input it writes what it found to DIR/NAME.npz, if
it searches, and says its peak memory in MiB. Knows no other contender.
"""

import os
import resource
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import timed

SEGMENTS = 16
K = 3
_BLOCK = 4096  # queries multiplied at once

Found = tuple[NDArray[np.float32], NDArray[np.int64]]
Work = Callable[[], Found | None]


def main(name: str, directory: Path) -> None:
    """Works for as long as it is asked to."""
    library = np.load(directory / "library.npy", mmap_mode="r").view(np.ndarray)
    queries = np.load(directory / "queries.npy", mmap_mode="r").view(np.ndarray)
    bounds = [len(library) * number // SEGMENTS for number in range(SEGMENTS + 1)]
    segments = [library[begin:end] for begin, end in pairwise(bounds)]
    work = _WAYS[name.partition(":")[0]](segments, queries)
    found = work()  # what is loaded or compiled is so now
    print("ready", flush=True)
    for _ in sys.stdin:
        print(timed(work), flush=True)
    if found is not None:
        np.savez(directory / f"{name}.npz", distances=found[0], rows=found[1])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)


def _numpy(segments: list[Any], queries: Any) -> Work:
    out = np.empty((min(_BLOCK, len(queries)), max(map(len, segments))), np.float32)

    def multiply() -> None:
        for segment in segments:
            for start in range(0, len(queries), _BLOCK):
                some = queries[start : start + _BLOCK]
                np.matmul(some, segment.T, out=out[: len(some), : len(segment)])

    return multiply


def _tensorflow(segments: list[Any], queries: Any) -> Work:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf  # noqa: PLC0415  (seconds, and memory, that the others must not have)

    held = [tf.constant(segment) for segment in segments]
    asked = [tf.constant(queries[start : start + _BLOCK]) for start in range(0, len(queries), _BLOCK)]

    def multiply() -> None:
        for segment in held:
            for some in asked:
                tf.linalg.matmul(some, segment, transpose_b=True).numpy()

    return multiply


def _ours(segments: list[Any], queries: Any) -> Work:
    """As the stage search does it, segment by segment, and the answers merged as render does."""
    from stages.neighbours.choice import open_searcher  # noqa: PLC0415
    from stages.neighbours.found import merge, nothing  # noqa: PLC0415
    from stages.neighbours.points import Points  # noqa: PLC0415
    from stages.neighbours.settings import Settings  # noqa: PLC0415

    def search() -> Found:
        asked, best, begin = Points(queries), nothing(len(queries), K), 0
        for segment in segments:
            found = open_searcher(Points(segment), Settings(k=K), {"CUDA_VISIBLE_DEVICES": ""}).search(asked, K)
            query, rank = np.nonzero(found.rows >= 0)
            best = merge(best, query, found.distances[query, rank], found.rows[query, rank] + begin)
            begin += len(segment)
        return best.distances, best.rows

    return search


def _faiss(segments: list[Any], queries: Any) -> Work:
    """As it comes: a flat index over everything."""
    import faiss  # noqa: PLC0415

    library = np.concatenate(segments)

    def search() -> Found:
        index = faiss.IndexFlatL2(library.shape[1])
        index.add(library)
        squares, rows = index.search(queries, K)
        return np.sqrt(np.maximum(squares, 0)), rows

    return search


def _sklearn(segments: list[Any], queries: Any) -> Work:
    """As the article has it."""
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415

    library = np.concatenate(segments)

    def search() -> Found:
        distances, rows = NearestNeighbors(n_neighbors=K, n_jobs=-1).fit(library).kneighbors(queries)
        return distances.astype(np.float32), rows

    return search


_WAYS: dict[str, Callable[[list[Any], Any], Work]] = {
    "numpy": _numpy,
    "tensorflow": _tensorflow,
    "ours": _ours,
    "faiss": _faiss,
    "sklearn": _sklearn,
}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
