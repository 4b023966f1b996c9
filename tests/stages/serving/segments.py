"""Writes small indexes as the index stage does."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages import thumbnailfiles
from stages.sources import Source
from stages.tables.images import Images
from stages.tables.indexed import TABLE, write_indexed
from stages.thumbnailfiles import DIRECTORY, SUFFIX, Place

PARTS = 3
MODEL = "5eed" * 16


def ids(start: str, count: int) -> list[str]:
    """Ids in ascending order that begin with `start`."""
    return [f"{start}{row:0{64 - len(start)}x}" for row in range(count)]


def write_segment(
    directory: Path,
    names: Sequence[str],
    vectors: NDArray[np.floating[Any]],
    sources: Mapping[str, Sequence[Source]] | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
    thumbnails: Sequence[bytes] = (),
    hashes: Sequence[int] = (),
) -> Path:
    """The directory, now a segment of these pictures. facts: those of index.json that differ from the usual ones.
    thumbnails, hashes: made from ids and rows by default."""
    directory.mkdir(parents=True)
    held = sources or {id: [Source(f"trip/{id[:2]}/{id[-6:]}.jpg", id, 640, 480, 1000, "")] for id in names}
    known = {
        "backbone": "small",
        "count": len(names),
        "devices": ["cpu"],
        "dimension": vectors.shape[1],
        "fit": "pad",
        "image_size": 96,
        "metric": "euclidean",
        "model": MODEL,
    } | dict(facts)
    shown = thumbnails or [b"jpeg of " + id.encode() for id in names]
    images = Images(
        ids=list(names),
        sources=[held[id] for id in names],
        thumbnail_sizes=[len(each) for each in shown],
        hashes=hashes or range(len(names)),
        **{name: known[name] for name in ("model", "image_size", "fit", "dimension", "backbone")},
    )
    write_indexed(images, write_thumbnails(directory, shown), directory / TABLE)
    np.save(directory / "vectors.npy", vectors.astype(np.float32))
    np.save(directory / "hashes.npy", np.array(images.hashes, "<u8"))
    (directory / "index.json").write_text(json.dumps(known) + "\n")
    return directory


def write_thumbnails(segment: Path, thumbnails: Sequence[bytes]) -> list[Place]:
    """Writes the thumbnails of a segment in files of its parts, every third one in the same; returns their places."""
    found: dict[int, Place] = {}
    for part in range(PARTS):
        rows = range(part, len(thumbnails), PARTS)
        some = [thumbnails[row] for row in rows]
        if some:
            thumbnailfiles.write(segment / DIRECTORY / f"part{part}{SUFFIX}", some)
            found |= zip(rows, thumbnailfiles.places(f"part{part}", map(len, some)), strict=True)
    return [found[row] for row in range(len(thumbnails))]


def write_index(
    root: Path,
    vectors: NDArray[np.floating[Any]],
    segments: str = "02af",
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> list[Path]:
    """An index of these vectors, in order, over segments of those names."""
    parts = np.array_split(vectors, len(segments))
    return [
        write_segment(root / name, ids(name, len(part)), part, facts=facts)
        for name, part in zip(segments, parts, strict=True)
    ]
