"""The contenders that search, or only multiply: `python -m benchmarks.races.searchers NAME DIR`, see
benchmarks.kit.contenders. DIR holds library.npy and queries.npy; the answers go to DIR/NAME.npz."""

import importlib
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.kit.contenders import serve

SEGMENTS = 16
K = 3
_BLOCK = 4096  # queries multiplied at once

Vectors = NDArray[np.float32]
Found = tuple[NDArray[np.float32], NDArray[np.int64]]
Work = Callable[[], Found | None]


def main(name: str, directory: Path) -> None:
    """Serves one contender. Only what it needs is imported, for the rest would count as its memory."""
    library, queries = (np.load(directory / f"{each}.npy", mmap_mode="r") for each in ("library", "queries"))

    def keep(found: Found | None) -> None:
        if found is not None:
            np.savez(directory / f"{name}.npz", distances=found[0], rows=found[1])

    serve(lambda: _WAYS[name.partition(":")[0]](library.view(np.ndarray), queries.view(np.ndarray)), keep)


def _segments(library: Vectors) -> list[Vectors]:
    bounds = [len(library) * number // SEGMENTS for number in range(SEGMENTS + 1)]
    return [library[begin:end] for begin, end in pairwise(bounds)]


def _numpy(library: Vectors, queries: Vectors) -> Work:
    segments = _segments(library)
    out = np.empty((min(_BLOCK, len(queries)), max(map(len, segments))), np.float32)

    def multiply() -> None:
        for segment in segments:
            for start in range(0, len(queries), _BLOCK):
                some = queries[start : start + _BLOCK]
                np.matmul(some, segment.T, out=out[: len(some), : len(segment)])

    return multiply


def _tensorflow(library: Vectors, queries: Vectors) -> Work:
    tf = importlib.import_module("tensorflow")
    held = [tf.constant(segment) for segment in _segments(library)]
    asked = [tf.constant(queries[start : start + _BLOCK]) for start in range(0, len(queries), _BLOCK)]

    def multiply() -> None:
        for segment in held:
            for some in asked:
                # One number of the product: copying all of it is not part of a bare product.
                tf.linalg.matmul(some, segment, transpose_b=True)[0, 0].numpy()

    return multiply


def _onnxruntime(library: Vectors, queries: Vectors) -> Work:
    """With its default number of threads."""
    onnxruntime = importlib.import_module("onnxruntime")
    file = importlib.import_module("stages.knn.onnx_file")
    inputs = [
        file.OnnxVariable("queries", "float32", (None, None)),
        file.OnnxVariable("library", "float32", (None, None)),
    ]
    output = file.OnnxVariable("product", "float32", (None, None))
    session = onnxruntime.InferenceSession(
        file.model([file.OnnxNode("MatMul", ("queries", "library"), "product")], inputs, output, {})
    )
    held = [np.ascontiguousarray(segment.T) for segment in _segments(library)]

    def multiply() -> None:
        for segment in held:
            for start in range(0, len(queries), _BLOCK):
                session.run(None, {"queries": queries[start : start + _BLOCK], "library": segment})

    return multiply


def _ours(library: Vectors, queries: Vectors) -> Work:
    """As in the stage search, segment by segment on the CPU, with the answers merged as in render."""
    open_searcher = importlib.import_module("stages.knn.searcher_factory").open_searcher
    found_in = importlib.import_module("stages.knn.top_k")
    points = importlib.import_module("stages.knn.vector_set").VectorSet
    chosen = importlib.import_module("stages.knn.search_settings").SearchSettings(k=K)

    def search() -> Found:
        asked, best, begin = points(queries), found_in.empty(len(queries), K), 0
        for segment in _segments(library):
            found = open_searcher(points(segment), chosen, {"CUDA_VISIBLE_DEVICES": ""}).search(asked, K)
            query, rank = np.nonzero(found.rows >= 0)
            best = found_in.merge(best, query, found.distances[query, rank], found.rows[query, rank] + begin)
            begin += len(segment)
        return best.distances, best.rows

    return search


def _faiss(library: Vectors, queries: Vectors) -> Work:
    """A flat index over everything, with the defaults."""
    faiss = importlib.import_module("faiss")

    def search() -> Found:
        index = faiss.IndexFlatL2(library.shape[1])
        index.add(library)
        squares, rows = index.search(queries, K)
        return np.sqrt(np.maximum(squares, 0)), rows

    return search


def _as_the_article(package: str, library: Vectors, queries: Vectors) -> Work:
    """NearestNeighbors of cuML, or of scikit-learn, on all cores; both have the same names."""
    module = importlib.import_module(f"{package}.neighbors")
    options = {"n_jobs": -1} if package == "sklearn" else {}

    def search() -> Found:
        distances, rows = module.NearestNeighbors(n_neighbors=K, **options).fit(library).kneighbors(queries)
        return np.asarray(distances, np.float32), np.asarray(rows, np.int64)

    return search


_WAYS: dict[str, Callable[[Vectors, Vectors], Work]] = {
    "numpy": _numpy,
    "tensorflow": _tensorflow,
    "onnxruntime": _onnxruntime,
    "ours": _ours,
    "faiss": _faiss,
    "sklearn": partial(_as_the_article, "sklearn"),
    "cuml": partial(_as_the_article, "cuml"),
}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
