"""Owns the index stage: one segment's vectors in one file, and the nearest neighbours of its pictures within it.

Runs as `python -m stages.index`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.index"))

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages import tables
from stages.contract import Datum, StageError
from stages.neighbours.backend import Vectors
from stages.neighbours.choice import open_searcher
from stages.neighbours.points import Points
from stages.neighbours.settings import Settings, settings
from stages.vectors import read_vectors

NEIGHBOUR = np.dtype([("row", "<i4"), ("distance", "<f4")])
"""One entry of knn.npy: a row of vectors.npy and its distance."""


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads K, METRIC, BACKEND and ALGORITHM; returns the function that indexes the segment of one datum.

    The datum's input `features` is the directory /library/<b>: for each bucket <bb>.npy, float32 (n, d), and
    <bb>.parquet. Writes /<b>/vectors.npy, float32 (N, d), sorted by id; images.parquet, in the same order; index.json;
    knn.npy, NEIGHBOUR (N, k'), each picture's k' = min(K, N - 1) nearest others by distance, then id.
    """
    chosen = settings(environment)

    def process(datum: Datum) -> None:
        segment = datum.inputs["features"]
        _index(segment.path, datum.out / Path(segment.repo_path).name, chosen, environment)

    return process


def _index(source: Path, target: Path, chosen: Settings, environment: Mapping[str, str]) -> None:
    buckets = sorted(source.glob("*.parquet"))
    if not buckets:
        raise StageError(f"{source.name} holds no pictures: it should be a directory that the features stage wrote")
    images = _united([tables.read_images(bucket) for bucket in buckets], source)
    target.mkdir(parents=True, exist_ok=True)
    vectors = _written(target / "vectors.npy", buckets, images)
    tables.write_images(images, target / "images.parquet")
    facts = {
        "count": len(images),
        "dimension": images.dimension,
        "image_size": images.image_size,
        "k": chosen.k,
        "metric": chosen.metric,
        "model": images.model,
    }
    (target / "index.json").write_text(json.dumps(facts, sort_keys=True) + "\n", encoding="ascii")
    np.save(target / "knn.npy", _neighbours(vectors, images.ids, chosen, environment))
    print(f"index: segment {target.name}: {len(images)} pictures")


def _united(parts: Sequence[tables.Images], source: Path) -> tables.Images:
    try:
        return tables.concatenate(parts)
    except ValueError as error:
        raise StageError(
            f"the buckets of segment {source.name} do not follow each other by id ({error}); if BUCKET_DIGITS or "
            "SEGMENT_DIGITS was changed, change it for preprocess and features alike and reprocess both"
        ) from error


def _written(path: Path, buckets: Sequence[Path], images: tables.Images) -> Vectors:
    """Copies the buckets' vectors into one file, a bucket at a time, and returns it, memory-mapped."""
    shape = (len(images), images.dimension)
    together = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype("<f4"), shape=shape)  # type: ignore[no-untyped-call]
    row = 0
    for bucket in buckets:
        part = read_vectors(bucket.with_suffix(".npy"), images.dimension)
        if row + len(part) > len(together):
            raise _mismatch(path.parent.name)
        together[row : row + len(part)] = part
        row += len(part)
    if row != len(together):
        raise _mismatch(path.parent.name)
    together.flush()
    vectors: Vectors = together
    return vectors


def _mismatch(segment: str) -> StageError:
    return StageError(
        f"segment {segment} has not one vector for each picture; reprocess the features pipeline, "
        "which writes both: pachctl update pipeline --reprocess -f its spec"
    )


def _neighbours(
    vectors: Vectors, ids: Sequence[str], chosen: Settings, environment: Mapping[str, str]
) -> "np.ndarray[Any, np.dtype[np.void]]":
    library = Points(vectors, chosen.metric, ids)
    searcher = open_searcher(library, chosen, environment)
    found = searcher.search(library, chosen.k, exclude=np.arange(len(vectors), dtype=np.int64))
    nearest = np.empty(found.rows.shape, dtype=NEIGHBOUR)
    nearest["row"], nearest["distance"] = found.rows, found.distances
    return nearest
