"""The index stage: one segment's vectors in one file, its table, its thumbnails, which it passes on unread, and on
request codes for an approximate search.

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

from stages.contract import Datum, Input, StageError
from stages.knn import codes
from stages.knn.backend import Vectors
from stages.knn.codes import Coded
from stages.knn.factory import open_searcher
from stages.knn.settings import Settings, settings
from stages.knn.vectorset import VectorSet
from stages.merging import Merged, read_segment
from stages.tables.indexed import TABLE, write_indexed
from stages.tables.places import parts_of
from stages.thumbnailfiles import DIRECTORY, SUFFIX


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads METRIC, BACKEND and ALGORITHM; returns the function that indexes the segment of one datum.

    The datum's inputs: `features`, the directory /library/<b> of partition: for each bucket of parts <bucket>.npy,
    float32 (n, d), and <bucket>.parquet; `thumbnails`, the directory /thumbnails/<b>: for each bucket
    <bucket>.thumbnails, of which nothing is read. Writes /<b>/vectors.npy, float32 (N, d), sorted by id, and in the
    same order images.parquet and hashes.npy, uint64 (N,); index.json; with an approximate ALGORITHM also codes.bin, if
    the segment is large enough; and passes on /<b>/thumbnails/<bucket>.thumbnails. BACKEND searches exactly for the
    recall of the codes, and for nothing else.
    """
    chosen = settings(environment)

    def process(datum: Datum) -> None:
        if "features" not in datum.inputs:
            raise StageError("the input features is missing: index needs /library/<segment> of partition")
        features = datum.inputs["features"]
        target = datum.out / Path(features.repo_path).name
        segment = read_segment(features.path)
        _pass_on(datum, segment, target / DIRECTORY)
        _index(segment, target, chosen, environment)

    return process


def _pass_on(datum: Datum, segment: Merged, target: Path) -> None:
    """Gives the segment its files of thumbnails, without reading them."""
    thumbnails: Input | None = datum.inputs.get("thumbnails")
    for part in parts_of(segment.thumbnails):
        file = None if thumbnails is None else thumbnails.path / f"{part}{SUFFIX}"
        if file is None or not file.exists():
            raise StageError(
                f"segment {segment.name} has no thumbnails of bucket {part}; reprocess the partition pipeline, which "
                "writes both: lookalike deploy --reprocess partition"
            )
        datum.pass_on(file, target / file.name)


def _index(segment: Merged, target: Path, chosen: Settings, environment: Mapping[str, str]) -> None:
    images = segment.images
    target.mkdir(parents=True, exist_ok=True)
    vectors = _written(target / "vectors.npy", segment)
    write_indexed(images, segment.thumbnails, target / TABLE)
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


def _written(path: Path, segment: Merged) -> Vectors:
    """Copies the buckets' vectors into one file in the order of the images; returns them, memory-mapped."""
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
