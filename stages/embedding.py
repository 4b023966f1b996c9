"""The part of the features stage that computes: a model in memory, a datum's pictures in, its vectors and tables out.

Imports NumPy and Arrow, so `stages.features` imports it only for datums without a flaw in their set-up. Owns the files
that the stage writes. Knows nothing about how a model computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages import packthumbnails, thumbnailfiles
from stages.contract import StageError
from stages.embedders import Embedder
from stages.framing import Framed
from stages.packs import read_pack, read_rejections, write_rejections
from stages.progress import Progress
from stages.sources import Source, chosen, unite
from stages.tables.images import Images, write_images


@dataclass(frozen=True)
class _Picture:
    framed: Framed  # its pixels are a view of its pack
    sources: tuple[Source, ...]
    hash: int
    thumbnail: bytes


@dataclass(frozen=True)
class _Pictures:
    """The distinct pictures of one datum by id, in ascending order, and their common fit."""

    by_id: Mapping[str, _Picture]
    fit: str

    @cached_property
    def thumbnails(self) -> list[bytes]:
        """Their thumbnails, in the same order."""
        return [each.thumbnail for each in self.by_id.values()]


class Embedding:
    """A loaded model, which computes the vectors of one datum at a time. Its pictures must have the model's size."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.spec = embedder.spec

    def library(self, packs: Path, part: str, out: Path, segment_digits: int) -> None:
        """Writes library/<segment>/<part>.npy and .parquet and thumbnails/<segment>/<part>.thumbnails below `out` for
        each segment with pictures of the packs, as soon as its vectors are there: meanwhile the next ones are
        computed."""
        pictures = _united(packs)
        images, vectors = self._images(pictures), self._room(pictures)
        left = deque(_segments(images.ids, segment_digits))
        for done in _filled(vectors, self.embedder, pictures):
            while left and left[0].rows.stop <= done:
                segment, rows = left.popleft()
                target = out / "library" / segment
                _write(target / f"{part}.npy", vectors[rows], target / f"{part}.parquet", images.part(rows))
                file = out / thumbnailfiles.DIRECTORY / segment / f"{part}{thumbnailfiles.SUFFIX}"
                thumbnailfiles.write(file, pictures.thumbnails[rows])

    def query(self, packs: Path, out: Path) -> None:
        """Writes vectors.npy, images.parquet, images.thumbnails and, if something was rejected, rejected.jsonl to
        `out`."""
        pictures = _united(packs)
        vectors = self._room(pictures)
        for _ in _filled(vectors, self.embedder, pictures):
            pass
        table = out / "images.parquet"
        _write(out / "vectors.npy", vectors, table, self._images(pictures))
        thumbnailfiles.write(table.with_suffix(thumbnailfiles.SUFFIX), pictures.thumbnails)
        rejected = [each for path in sorted(packs.glob("*.rejected.jsonl")) for each in read_rejections(path)]
        if rejected:
            write_rejections(out / "rejected.jsonl", rejected)

    def _room(self, pictures: _Pictures) -> NDArray[np.float32]:
        return np.empty((len(pictures.by_id), self.spec.dimension), np.float32)

    def _images(self, pictures: _Pictures) -> Images:
        return Images(
            ids=list(pictures.by_id),
            sources=[each.sources for each in pictures.by_id.values()],
            thumbnail_sizes=list(map(len, pictures.thumbnails)),
            hashes=[each.hash for each in pictures.by_id.values()],
            model=self.spec.sha256,
            image_size=self.spec.image_size,
            fit=pictures.fit,
            dimension=self.spec.dimension,
            backbone=self.spec.described,
            devices=(self.embedder.device,),
        )


class _Segment(NamedTuple):
    name: str
    rows: slice


def _segments(ids: Sequence[str], digits: int) -> Iterator[_Segment]:
    """The segments of ascending ids, with their rows."""
    first = 0
    for name, members in groupby(ids, lambda id: id[:digits]):
        rows = slice(first, first + sum(1 for _ in members))
        yield _Segment(name, rows)
        first = rows.stop


def _united(directory: Path) -> _Pictures:
    """The distinct pictures of all packs; one in several packs has all its sources (see stages.sources.chosen)."""
    found: dict[str, _Picture] = {}
    fits: set[str] = set()
    for npy in sorted(directory.glob("*.npy")):
        pack = read_pack(npy)
        fits.add(pack.fit)
        thumbnails = packthumbnails.read(npy, len(pack.pictures))
        for (picture, framed), thumbnail in zip(pack.framed(), thumbnails, strict=True):
            sources, before = picture.sources, found.get(picture.id)
            if before is not None:
                thumbnail = chosen([(before.sources, before.thumbnail), (sources, thumbnail)])
                sources = unite(sources, before.sources)
            # Equal ids mean equal pixels, so those of any of the packs will do.
            found[picture.id] = _Picture(framed, sources, picture.perceptual_hash, thumbnail)
    if len(fits) != 1:
        raise StageError(
            f"{directory.name} holds packs of {len(fits)} fits ({', '.join(sorted(fits))}), not of one: reprocess the "
            "pipelines that pack pictures: lookalike deploy --reprocess preprocess --reprocess preprocess-queries"
        )
    return _Pictures(dict(sorted(found.items())), fits.pop())


def _filled(vectors: NDArray[np.float32], embedder: Embedder, pictures: _Pictures) -> Iterator[int]:
    """Fills (n, dimension) with the vectors of n pictures; yields the number of rows that are, again and again."""
    squares, batch = [each.framed.pixels for each in pictures.by_id.values()], embedder.spec.batch
    batches = (np.stack(squares[begin : begin + batch]) for begin in range(0, len(squares), batch))
    progress, done = Progress("pictures", len(squares)), 0
    for some in embedder.stream(batches):
        vectors[done : done + len(some)] = some
        done += len(some)
        progress.add(len(some))
        yield done


def _write(vectors_file: Path, vectors: NDArray[np.float32], images_file: Path, images: Images) -> None:
    vectors_file.parent.mkdir(parents=True, exist_ok=True)
    np.save(vectors_file, vectors)
    write_images(images, images_file)
