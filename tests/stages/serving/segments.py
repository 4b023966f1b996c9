"""Writes small indexes as the index stage does."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.sources import Source
from stages.tables.parquet import SOURCES, stored_sources, write_table

MODEL = "5eed" * 16


def ids(start: str, count: int) -> list[str]:
    """Ids in ascending order that begin with `start`."""
    return [f"{start}{row:0{64 - len(start)}x}" for row in range(count)]


def write_segment(
    directory: Path,
    names: Sequence[str],
    vectors: NDArray[np.floating[Any]],
    sources: Mapping[str, Sequence[Source]] | None = None,
    facts: Mapping[str, object] = MappingProxyType({}),
) -> Path:
    """The directory, now a segment of these pictures. facts: those of index.json that differ from the usual ones."""
    directory.mkdir(parents=True)
    held = sources or {id: [Source(f"trip/{id[:2]}/{id[-6:]}.jpg", id, 640, 480, 1000, "")] for id in names}
    columns = {
        "id": list(names),
        "sources": stored_sources([held[id] for id in names]),
        "thumbnail": [b""] * len(names),
        "perceptual_hash": list(range(len(names))),
    }
    fields = {"id": pa.string(), "sources": SOURCES, "thumbnail": pa.binary(), "perceptual_hash": pa.uint64()}
    schema = pa.schema(list(fields.items()))
    usual = {
        "backbone": "small",
        "count": len(names),
        "devices": ["cpu"],
        "dimension": vectors.shape[1],
        "fit": "pad",
        "image_size": 96,
        "k": 3,
        "metric": "euclidean",
        "model": MODEL,
    }
    known = {name: str(usual[name]) for name in ("model", "image_size", "fit", "dimension", "backbone")}
    write_table(columns, schema, known, directory / "images.parquet")
    np.save(directory / "vectors.npy", vectors.astype(np.float32))
    np.save(directory / "hashes.npy", np.arange(len(names), dtype="<u8"))
    (directory / "index.json").write_text(json.dumps(usual | dict(facts)) + "\n")
    thumbnails = pa.table({"thumbnail": pa.array([b"jpeg of " + id.encode() for id in names], pa.binary())})
    with pa.OSFile(str(directory / "thumbnails.arrow"), "wb") as file, pa.ipc.new_file(file, thumbnails.schema) as out:
        out.write_table(thumbnails)
    return directory


def write_index(
    root: Path,
    vectors: NDArray[np.floating[Any]],
    segments: str = "02af",
    facts: Mapping[str, object] = MappingProxyType({}),
) -> list[Path]:
    """An index of these vectors, in order, over segments of those names."""
    parts = np.array_split(vectors, len(segments))
    return [
        write_segment(root / name, ids(name, len(part)), part, facts=facts)
        for name, part in zip(segments, parts, strict=True)
    ]
