"""The output of the stage neighbours, made by brute force: for tests of the stages that read it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.files.tables.nearest_table import NEAREST, NearestArray, PictureRows, write_nearest
from stages.record.origin import Origin
from stages.record.sources import Source
from tests.stages.image_tables import unseen


def id_of(name: str) -> str:
    """An id that only the name decides."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def write(
    root: Path, vectors: Mapping[str, npt.NDArray[np.float32]], sources: Mapping[str, Sequence[str]], k: int
) -> Path:
    """Writes /nearest and /pictures of pictures, given by id with vector and sources, into a directory; returns it."""
    by_segment: dict[str, list[str]] = {}
    for id in sorted(vectors):
        by_segment.setdefault(id[0], []).append(id)
    (root / "pictures").mkdir(parents=True)
    for segment, ids in by_segment.items():
        pictures = PictureRows(
            ids=ids,
            sources=[[Source(path, "0" * 64) for path in sources[id]] for id in ids],
            **unseen(len(ids)),
            origin=Origin("5eed" * 16, "pad", 32, len(vectors[ids[0]]), "small 32"),
            metric="euclidean",
            k=k,
        )
        pictures.write(root / "pictures" / f"{segment}.parquet")
        for right, others in by_segment.items():
            (root / "nearest" / segment).mkdir(parents=True, exist_ok=True)
            write_nearest(_nearest(ids, others, vectors, k), root / "nearest" / segment / f"{right}.npy")
    return root


def _nearest(
    ids: Sequence[str], others: Sequence[str], vectors: Mapping[str, npt.NDArray[np.float32]], k: int
) -> NearestArray:
    width = min(k, len(others) - (ids == others))
    found = np.zeros((len(ids), width), NEAREST)
    there = np.stack([vectors[other] for other in others]).astype(np.float64)
    for row, id in enumerate(ids):
        distances = np.linalg.norm(there - vectors[id].astype(np.float64), axis=1).astype(np.float32)
        order = [at for at in np.lexsort((np.arange(len(others)), distances)).tolist() if others[at] != id][:width]
        found["row"][row] = order
        found["distance"][row] = distances[order]
    return found
