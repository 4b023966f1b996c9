"""The part of the features stage that computes: a model in memory, a datum's pictures in, its vectors and tables out.

Imports NumPy and Arrow, so `stages.features` imports it only for datums without a flaw in their set-up. Owns the files
that the stage writes. Knows nothing about how a model computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.backbone import text_points
from stages.backbone.embedder import Embedder, cores
from stages.datum.contract import StageError, load
from stages.datum.progress import Progress
from stages.files import pack_tables, query_texts, thumbnail_files
from stages.files.packs import Pack, PackPicture, Rejection, read_pack, read_rejections, write_rejections
from stages.files.query_texts import QueryText
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import PartTable, placed
from stages.files.thumbnail_files import ThumbnailPlace
from stages.record import part_names
from stages.record.framing import Pixels
from stages.record.origin import Origin
from stages.record.pfs_names import QUESTION_FILE, TEXTS_FILE
from stages.record.sources import chosen, unite

if TYPE_CHECKING:  # most models have none
    from stages.backbone.text_tower import TextTower

_STAGE = "features"

_DECODERS = 8
"""Most threads that decode pictures: more would wait for each other."""


@dataclass(frozen=True)
class _Picture:
    facts: PackPicture  # with the sources of all packs
    pack: Pack
    row: int  # in the pack
    thumbnail: ThumbnailPlace  # in the file of its pack


@dataclass(frozen=True)
class _Pictures:
    """The distinct pictures of one datum by id, in ascending order, and their common fit."""

    by_id: Mapping[str, _Picture]
    fit: str

    @property
    def thumbnails(self) -> list[ThumbnailPlace]:
        """The places of their thumbnails, in the same order."""
        return [each.thumbnail for each in self.by_id.values()]


class FeatureExtractor:
    """A loaded model, which computes the vectors of one datum at a time. Its pictures must have the model's size."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.spec = embedder.spec

    def library(self, packs: Path, part: str, out: Path) -> None:
        """Writes library/<bucket>/<part>.npy and .parquet below `out` (see stages.record.part_names.directory)."""
        pictures = _united(packs)
        target = out / "library" / part_names.directory(part)
        target.mkdir(parents=True, exist_ok=True)
        np.save(target / f"{part}.npy", self._vectors(pictures))
        images = self._images([each.facts for each in pictures.by_id.values()], pictures.fit)
        PartTable.of(images, **placed(pictures.thumbnails)).write(target / f"{part}.parquet")

    def query(self, packs: Path, out: Path, tower: TextTower | None = None) -> None:
        """Writes vectors.npy, images.parquet, images.thumbnails and, if something was rejected, rejected.jsonl to
        `out`, with the entry's question.json if it has one, and its texts.jsonl: its texts are rows as its pictures
        are, without thumbnails. tower: the model's, which texts need; without one they are rejected."""
        pictures, texts = _united(packs), query_texts.read(packs)
        known = texts if tower is not None else []
        table, shown = out / "images.parquet", thumbnail_files.ThumbnailFiles(packs, "preprocess-queries")
        out.mkdir(parents=True, exist_ok=True)
        vectors, order = self._vectors(pictures), np.argsort([*pictures.by_id, *(each.id for each in known)])
        if known and tower is not None:
            words = text_points.text_points(tower, [(each.text, each.without) for each in known])
            vectors = np.concatenate([vectors, words])[order]
            read = (each._replace(unread=tower.unread(each.text)) for each in known)
            query_texts.write(out / TEXTS_FILE, read)
        np.save(out / "vectors.npy", vectors)
        rows = [*(each.facts for each in pictures.by_id.values()), *map(_row, known)]
        self._images([rows[at] for at in order.tolist()], pictures.fit).write(table)
        thumbnail_files.write(table.with_suffix(thumbnail_files.SUFFIX), map(shown.read, pictures.thumbnails))
        rejected = [each for path in sorted(packs.glob("*.rejected.jsonl")) for each in read_rejections(path)]
        if texts and tower is None:
            reason = load("stages.backbone.text_tower").NO_WORDS
            rejected += [Rejection(source.path, _STAGE, reason) for each in texts for source in each.sources]
        if rejected:
            write_rejections(out / "rejected.jsonl", rejected)
        for question in packs.glob(f"*.{QUESTION_FILE}"):
            (out / QUESTION_FILE).write_bytes(question.read_bytes())

    def _vectors(self, pictures: _Pictures) -> NDArray[np.float32]:
        """The vectors of n pictures, (n, dimension)."""
        vectors = np.empty((len(pictures.by_id), self.spec.dimension), np.float32)
        progress, done = Progress("pictures", len(vectors)), 0
        for some in self.embedder.stream(_decoded(list(pictures.by_id.values()), self.spec.batch)):
            vectors[done : done + len(some)] = some
            done += len(some)
            progress.add(len(some))
        return vectors

    def _images(self, rows: Sequence[PackPicture], fit: str) -> ImageTable:
        spec, devices, backend = self.spec, (self.embedder.device,), self.embedder.backend
        side = spec.image_size
        origin = Origin(spec.sha256, fit, side, spec.dimension, spec.described, devices, backend)
        return ImageTable.of_rows(rows, origin=origin)


def _row(text: QueryText) -> PackPicture:
    """A text as a row of a table of pictures."""
    return PackPicture(text.id, text.sources, (0, 0))


def _decoded(pictures: Sequence[_Picture], batch: int) -> Iterator[Pixels]:
    """The pixels of the pictures, `batch` at a time, uint8 (n, side, side, 3). Threads decode some batches ahead: no
    pass must wait for its pictures."""

    def decode(some: Sequence[_Picture]) -> Pixels:
        return np.stack([each.pack.square(each.row).pixels for each in some])

    ahead: deque[Future[Pixels]] = deque()
    threads = min(_DECODERS, cores())
    with ThreadPoolExecutor(threads, "decode") as decoders:
        for begin in range(0, len(pictures), batch):
            ahead.append(decoders.submit(decode, pictures[begin : begin + batch]))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _united(directory: Path) -> _Pictures:
    """The distinct pictures of all packs; one in several packs has all its sources (see
    stages.record.sources.chosen)."""
    found: dict[str, _Picture] = {}
    fits: set[str] = set()
    for path in pack_tables.paths(directory):
        pack = read_pack(path)
        fits.add(pack.framing.fit)
        places = thumbnail_files.places(path.stem, (each.thumbnail_size for each in pack.pictures))
        for row, (picture, thumbnail) in enumerate(zip(pack.pictures, places, strict=True)):
            before = found.get(picture.id)
            if before is not None:
                thumbnail = chosen([(before.facts.sources, before.thumbnail), (picture.sources, thumbnail)])
                sources = unite(picture.sources, before.facts.sources)
                picture = picture._replace(sources=sources, thumbnail_size=thumbnail.size)
            # Equal ids mean equal coded pictures, so that of any of the packs will do.
            found[picture.id] = _Picture(picture, pack, row, thumbnail)
    if len(fits) != 1:
        raise StageError(
            f"{directory.name} holds packs of {len(fits)} fits ({', '.join(sorted(fits))}), not of one: reprocess the "
            "pipelines that pack pictures: lookalike deploy --reprocess preprocess --reprocess preprocess-queries"
        )
    return _Pictures(dict(sorted(found.items())), fits.pop())
