"""Indexes of pictures with ids that follow from names: for tests of what reads a whole index."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.record.sources import Source
from tests.stages.serving.segments import write_segment


def id_of(name: str) -> str:
    """An id that only the name decides."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def write(root: Path, vectors: Mapping[str, npt.NDArray[np.float32]], sources: Mapping[str, Sequence[str]]) -> Path:
    """Writes the index of pictures, given by id with vector and sources, into a directory; returns it."""
    by_segment: dict[str, list[str]] = {}
    for id in sorted(vectors):
        by_segment.setdefault(id[0], []).append(id)
    for segment, ids in by_segment.items():
        held = {id: [Source(path, "0" * 64) for path in sources[id]] for id in ids}
        write_segment(root / segment, ids, np.stack([vectors[id] for id in ids]), held)
    return root
