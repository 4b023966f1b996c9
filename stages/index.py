"""The index stage: the vectors, pictures and thumbnails of one segment, each in one file in the order of the ids.

Runs as `python -m stages.index`, under Pachyderm or on plain directories. Knows neither models nor queries.
"""

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.index"))

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from stages.contract import Datum, StageError
from stages.knn.backend import Vectors
from stages.knn.settings import Settings, settings
from stages.knn.vectorset import VectorSet
from stages.tables.images import Images, merge_images, read_images
from stages.tables.indexed import write_indexed
from stages.vectors import read_vectors


def start(environment: Mapping[str, str]) -> Callable[[Datum], None]:
    """Reads K and METRIC; returns the function that indexes the segment of one datum.

    The datum's input `features` is the directory /library/<b>: for each part <part>.npy, float32 (n, d), and
    <part>.parquet. Writes /<b>/vectors.npy, float32 (N, d), sorted by id, and in the same order images.parquet,
    thumbnails.arrow and hashes.npy, uint64 (N,); index.json, with the facts of the vectors, and the K and METRIC that
    searches of the service take.
    """
    chosen = settings(environment)

    def process(datum: Datum) -> None:
        segment = datum.inputs["features"]
        _index(segment.path, datum.out / Path(segment.repo_path).name, chosen)

    return process


def _index(source: Path, target: Path, chosen: Settings) -> None:
    parts = {path: read_images(path) for path in sorted(source.glob("*.parquet"))}
    if not parts:
        raise StageError(
            f"{source.name} does not hold pictures: it should be a directory that the features stage wrote"
        )
    images = merge_images(list(parts.values()))
    target.mkdir(parents=True, exist_ok=True)
    vectors = _written(target / "vectors.npy", parts, images)
    VectorSet(vectors, ids=images.ids)  # refuses those that cannot be compared
    write_indexed(images, target)
    np.save(target / "hashes.npy", np.array(images.hashes, dtype="<u8"))
    facts = {
        "backbone": images.backbone,
        "count": len(images),
        "devices": images.devices,
        "dimension": images.dimension,
        "fit": images.fit,
        "image_size": images.image_size,
        "k": chosen.k,
        "metric": chosen.metric,
        "model": images.model,
    }
    (target / "index.json").write_text(json.dumps(facts, sort_keys=True) + "\n", encoding="ascii")
    print(f"index: segment {target.name}: {len(images)} pictures")


def _written(path: Path, parts: Mapping[Path, Images], images: Images) -> Vectors:
    """Copies the parts' vectors into one file in the order of the images; returns them, memory-mapped.

    A picture in several parts has the same vector in all of them: equal pixels, one model, batches of one shape.
    """
    shape = (len(images), images.dimension)
    together = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype("<f4"), shape=shape)  # type: ignore[no-untyped-call]
    rows = {id: row for row, id in enumerate(images.ids)}
    for table, part in parts.items():
        vectors = read_vectors(table.with_suffix(".npy"), images.dimension)
        if len(vectors) != len(part):
            raise _mismatch(path.parent.name)
        together[[rows[id] for id in part.ids]] = vectors
    written: Vectors = together
    return written


def _mismatch(segment: str) -> StageError:
    return StageError(
        f"segment {segment} does not have one vector for each picture; reprocess the features pipeline, "
        "which writes both: lookalike deploy --reprocess features"
    )
