"""Owns a made index to measure with: segments as the stage index writes them, with generated vectors whose spread is
like that of a backbone's. Measures nothing."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stages.decode.thumbnails import thumbnail
from stages.files import thumbnail_files, vector_files
from stages.files.segment_files import SegmentFacts
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import TABLE, IndexTable, placed
from stages.files.thumbnail_files import ThumbnailPlace
from stages.index import SegmentPiece, pieces, write_coarse
from stages.record.origin import Origin
from stages.record.sources import Source

SEGMENTS = "0123456789abcdef"
DIMENSION = 1280
"""The length of a vector of the default backbone."""

_FACTORS, _KINDS, _FAMILIES = 64, 500, 0.02
_THUMBNAIL = 3_000  # bytes

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class MadeIndex:
    """Vectors of `pictures` pictures in 16 segments, or 16^digits. They are rectified mixtures of few factors around
    the centres of some kinds, of length 1; two in a hundred are a near copy of another picture, in any segment.
    resized: of so many pictures of a segment one is half as large, and may be a copy of others; 0 for none."""

    pictures: int
    seed: int = 0
    model: str = "5eed" * 16
    digits: int = 1
    resized: int = 0

    @property
    def segments(self) -> tuple[str, ...]:
        """The names of all segments."""
        return tuple(map("".join, product(SEGMENTS, repeat=self.digits)))

    def count(self, segment: str) -> int:
        """The number of a segment's pictures."""
        place, number = int(segment, 16), len(self.segments)
        return self.pictures * (place + 1) // number - self.pictures * place // number

    def vectors(self, segment: str, more: int = 0) -> Vectors:
        """A segment's vectors, float32 (count + more, DIMENSION)."""
        shared = np.random.default_rng([self.seed, 99])
        mixing = shared.standard_normal((_FACTORS, DIMENSION), np.float32) / np.float32(_FACTORS**0.5)
        centres = shared.standard_normal((_KINDS, _FACTORS), np.float32)
        originals = shared.standard_normal((_KINDS, _FACTORS), np.float32)
        own = np.random.default_rng([self.seed, int(segment, 16)])
        count = self.count(segment)
        factors = centres[own.integers(_KINDS, size=count)]
        factors += np.float32(0.6) * own.standard_normal((count, _FACTORS), np.float32)
        copies = own.random(count) < _FAMILIES
        factors[copies] = originals[own.integers(_KINDS, size=int(copies.sum()))]
        if more:
            factors = np.concatenate([factors, own.standard_normal((more, _FACTORS), np.float32)])
        found: Vectors = factors @ mixing
        found += np.float32(0.05) * own.standard_normal((count + more, DIMENSION), np.float32)
        np.maximum(found, 0, out=found)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def write(self, directory: Path, segment: str, more: int = 0) -> Path:
        """Writes a segment below a directory, `more` pictures larger, and returns its own directory."""
        place = directory / segment
        place.mkdir(parents=True, exist_ok=True)
        points = self.vectors(segment, more)
        ids = sorted(self._ids(segment, len(points)))
        hashes = self._hashes(points)
        shares = np.full(len(ids), 0.5)
        images = ImageTable(
            ids=ids,
            sources=[(self._source(row, id),) for row, id in enumerate(ids)],
            thumbnail_sizes=[_THUMBNAIL] * len(ids),
            hashes=hashes.tolist(),
            brightness=shares,
            contrast=shares,
            sharpness=shares,
            colours=["grey"] * len(ids),
            origin=Origin(self.model, "pad", 224, DIMENSION, "made", ("cpu",)),
        )
        thumbnails, vector_rows = list[ThumbnailPlace](), list[int]()
        for piece in pieces(segment, ids):
            thumbnails += self._write_piece(place, piece, points[piece.rows])
            vector_rows += range(piece.rows.stop - piece.rows.start)
        write_coarse(place, segment, ids, points)
        IndexTable.of(images, **placed(thumbnails), vector_rows=vector_rows).write(place / TABLE)
        np.save(place / "hashes.npy", hashes)
        facts = SegmentFacts(len(ids), "euclidean", images.origin).as_data()
        (place / "index.json").write_text(json.dumps(facts, sort_keys=True) + "\n", encoding="ascii")
        return place

    def _write_piece(self, segment: Path, piece: SegmentPiece, points: Vectors) -> list[ThumbnailPlace]:
        """Writes vectors and thumbnails of a piece; returns the places of the thumbnails."""
        shown = [self._thumbnail()] * len(points)
        (segment / vector_files.DIRECTORY).mkdir(exist_ok=True)
        np.save(segment / vector_files.DIRECTORY / f"{piece.name}{vector_files.SUFFIX}", points)
        file = segment / thumbnail_files.DIRECTORY / f"{piece.name}{thumbnail_files.SUFFIX}"
        thumbnail_files.write(file, shown)
        return thumbnail_files.places(piece.name, map(len, shown))

    def _thumbnail(self) -> bytes:
        """One for all pictures, so that those with near vectors and hashes also lie on each other."""
        patches = np.random.default_rng(self.seed).integers(0, 256, (9, 12, 3), np.uint8)
        file = thumbnail(Image.fromarray(patches).resize((80, 60), Image.Resampling.BICUBIC))
        assert len(file) <= _THUMBNAIL
        return file.ljust(_THUMBNAIL, b"\0")

    def _hashes(self, vectors: Vectors) -> NDArray[np.uint64]:
        """Hashes, uint64 (n,), in which near vectors differ in few bits: the sides of planes that they are on."""
        planes = np.random.default_rng([self.seed, 98]).standard_normal((DIMENSION, 64), np.float32)
        bytes_ = np.packbits(vectors @ (planes - planes.mean(axis=0)) > 0, axis=1)
        return bytes_.view("<u8")[:, 0]

    def _source(self, row: int, id: str) -> Source:
        # One program has written all of them, as most pictures of a library: the thumbnails of few are compared.
        smaller = 1 + bool(self.resized and row % self.resized == self.resized // 2)
        return Source(f"library/{id[:12]}.jpg", id, 640 // smaller, 480 // smaller, 90_000, encoder="5eed5eed")

    def _ids(self, segment: str, count: int) -> Iterator[str]:
        for number in range(count):
            digest = hashlib.sha256(f"{self.seed}/{segment}/{number}".encode()).hexdigest()
            yield segment + digest[self.digits :]
