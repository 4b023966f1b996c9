"""Pictures, and pairs of them, for tests of groups: written as tables as neighbours writes them."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from stages.files.tables.pair_table import PairedPictures, PairTable
from stages.quality.copy_groups import CopyCandidates
from stages.record.origin import Origin
from stages.record.sources import Source

THRESHOLD = 0.5


def id_of(name: str) -> str:
    """The id of a picture that tests call `name`."""
    return hashlib.sha256(name.encode()).hexdigest()


def source(
    path: str,
    width: int = 40,
    height: int = 30,
    size: int = 1000,
    taken: str = "",
    coding: str = "",
    encoder: str = "",
    pixels: str = "",
) -> Source:
    """A source whose hash follows from its path."""
    return Source(path, id_of(path), width, height, size, taken, coding, encoder, pixels)


def thumbnail(name: str) -> bytes:
    """A JPEG for the picture that tests call `name`."""
    file = io.BytesIO()
    Image.new("RGB", (16, 12), (len(name) * 20 % 256, 90, 120)).save(file, "JPEG")
    return file.getvalue()


def candidates(
    sources: Sequence[Sequence[Source]], *pairs: tuple[int, int, float], turn: int = 0, near: bool = True
) -> CopyCandidates:
    """Pictures with these sources, and pairs of them; with those of several sources and themselves."""
    itself = [(row, row, 0.0) for row, each in enumerate(sources) if len(each) > 1]
    every = sorted({*pairs, *itself})
    first, second = (np.array([pair[side] for pair in every], np.int32) for side in (0, 1))
    return CopyCandidates(
        [f"{row:064x}" for row in range(len(sources))],
        [tuple(sorted(each)) for each in sources],
        first,
        second,
        np.array([pair[2] for pair in every], np.float32),
        np.full(len(every), 3, np.uint8),
        np.full(len(every), turn, np.uint8),
        np.full(len(every), near, np.bool_),
    )


def write(
    path: Path,
    pictures: Mapping[str, Sequence[Source]],
    near: Sequence[tuple[str, str, float]],
    threshold: float = THRESHOLD,
    model: str = "m" * 64,
    bits: int = 3,
    turn: int = 0,
) -> None:
    """Writes a table of these pictures by name and their near pairs; a pair of one name is a picture with itself.
    bits: those in which the hashes of two pictures differ."""
    named = {id_of(name): name for pair in near for name in pair[:2]}
    ids = sorted(named)
    rows = {id: row for row, id in enumerate(ids)}
    ordered = sorted((*sorted((rows[id_of(one)], rows[id_of(other)])), distance) for one, other, distance in near)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = PairTable.of_pictures(
        PairedPictures(
            ids,
            [tuple(sorted(pictures[named[id]])) for id in ids],
            [thumbnail(named[id]) for id in ids],
            np.array([one for one, _, _ in ordered], np.int32),
            np.array([other for _, other, _ in ordered], np.int32),
        ),
        distances=np.array([distance for _, _, distance in ordered], np.float32),
        bits=np.array([0 if one == other else bits for one, other, _ in ordered], np.uint8),
        turns=np.array([0 if one == other else turn for one, other, _ in ordered], np.uint8),
        near=np.ones(len(ordered), np.bool_),
        origin=Origin(model, "pad", backbone="a backbone"),
        metric="euclidean",
        threshold=threshold,
        hash_bits=12,
    )
    table.write(path)
