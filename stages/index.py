"""The index stage: one segment's vectors in one file, its tables, and on request codes for an approximate search.

Runs as `python -m stages.index`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.index"))

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from stages.contract import Datum
from stages.knn import codes
from stages.knn.backend import Vectors
from stages.knn.codes import Coded
from stages.knn.factory import open_searcher
from stages.knn.settings import Settings, settings
from stages.knn.vectorset import VectorSet
from stages.merging import Segment, read_segment
from stages.tables.indexed import write_indexed


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads METRIC, BACKEND and ALGORITHM; returns the function that indexes the segment of one datum.

    The datum's input `features` is the directory /library/<b>: for each part <part>.npy, float32 (n, d), and
    <part>.parquet. Writes /<b>/vectors.npy, float32 (N, d), sorted by id, and in the same order images.parquet,
    thumbnails.arrow and hashes.npy, uint64 (N,); index.json; with an approximate ALGORITHM also codes.bin, if the
    segment is large enough. BACKEND searches exactly for the recall of these, and for nothing else.
    """
    chosen = settings(environment)

    def process(datum: Datum) -> None:
        segment = datum.inputs["features"]
        _index(segment.path, datum.out / Path(segment.repo_path).name, chosen, environment)

    return process


def _index(source: Path, target: Path, chosen: Settings, environment: Mapping[str, str]) -> None:
    segment = read_segment(source)
    images = segment.images
    target.mkdir(parents=True, exist_ok=True)
    vectors = _written(target / "vectors.npy", segment)
    write_indexed(images, target)
    np.save(target / "hashes.npy", np.array(images.hashes, dtype="<u8"))
    facts = {
        "backbone": images.backbone,
        "count": len(images),
        "devices": images.devices,
        "dimension": images.dimension,
        "fit": images.fit,
        "image_size": images.image_size,
        "metric": chosen.metric,
        "model": images.model,
    }
    library = VectorSet(vectors, chosen.metric, images.ids)
    coded = _coded(library, target / codes.FILE, chosen, environment)
    facts |= {} if coded is None else {"codes": coded.as_data()}
    (target / "index.json").write_text(json.dumps(facts, sort_keys=True) + "\n", encoding="ascii")
    print(f"index: segment {target.name}: {len(images)} pictures")


def _written(path: Path, segment: Segment) -> Vectors:
    """Copies the parts' vectors into one file in the order of the images; returns them, memory-mapped."""
    shape = (len(segment.images), segment.images.dimension)
    together: Vectors = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype("<f4"), shape=shape)  # type: ignore[no-untyped-call]
    segment.fill(together, segment.images.ids)
    return together


def _coded(library: VectorSet, path: Path, chosen: Settings, environment: Mapping[str, str]) -> Coded | None:
    """Writes the codes of an approximate algorithm; None without one, and for a segment that is too small."""
    if chosen.algorithm == "exact":
        return None
    exact = open_searcher(library, replace(chosen, algorithm="exact"), environment)
    return codes.write(library, chosen.algorithm, exact, path)
