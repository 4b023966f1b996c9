"""Writes small indexes as the index stage does."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import DatumInput
from stages.files import thumbnail_files
from stages.files.segment_files import read_points
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import TABLE, IndexTable, placed
from stages.files.thumbnail_files import DIRECTORY, SUFFIX, ThumbnailFiles, ThumbnailPlace
from stages.record.origin import ALL, Origin
from stages.record.sources import Source
from stages.serving.search.mapped_library import MappedLibrary
from stages.serving.search.mapped_segment import map_segment
from tests.stages.image_tables import unseen

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
    images = ImageTable(
        ids=list(names),
        sources=[held[id] for id in names],
        thumbnail_sizes=[len(each) for each in shown],
        hashes=hashes or range(len(names)),
        **unseen(len(names)),
        origin=Origin.parse(known, ALL),
    )
    write_table(directory, images, vectors, shown)
    np.save(directory / "hashes.npy", np.array(images.hashes, "<u8"))
    (directory / "index.json").write_text(json.dumps(known) + "\n")
    return directory


def write_table(
    segment: Path, images: ImageTable, vectors: NDArray[np.floating[Any]], thumbnails: Sequence[bytes]
) -> None:
    """Writes the table of a segment, and the vectors and thumbnails in files of its parts, every third of each in the
    same."""
    found: dict[int, ThumbnailPlace] = {}
    (segment / "vectors").mkdir(exist_ok=True)
    for part in range(min(PARTS, len(images))):
        rows, name = range(part, len(images), PARTS), f"part{part}"
        some = [thumbnails[row] for row in rows]
        thumbnail_files.write(segment / DIRECTORY / f"{name}{SUFFIX}", some)
        np.save(segment / "vectors" / f"{name}.npy", vectors[part::PARTS].astype(np.float32))
        found |= zip(rows, thumbnail_files.places(name, map(len, some)), strict=True)
    places = [found[row] for row in range(len(images))]
    IndexTable.of(images, **placed(places), vector_rows=[row // PARTS for row in range(len(images))]).write(
        segment / TABLE
    )


def vectors_of(segment: Path) -> NDArray[np.float32]:
    """The vectors of a segment in the order of its table, float32 (n, d)."""
    table = IndexTable.read(segment / TABLE)
    return np.array(read_points(DatumInput("index", segment, segment.name, ""), table.vectors, table.origin.dimension))


def open_library(directories: Sequence[Path], keys: Sequence[str] = ()) -> MappedLibrary:
    """The library of the segments in these directories. keys: by default the directories."""
    files = {each.name: ThumbnailFiles(each / DIRECTORY) for each in directories}
    segments = [
        map_segment(directory, key, read_points)
        for directory, key in zip(directories, keys or map(str, directories), strict=True)
    ]
    return MappedLibrary(segments, lambda segment, place: files[segment].read(place))


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
