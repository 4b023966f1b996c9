"""Collects a datum's distinct pictures: equal ones are merged, and the pixels of many go to disk.

Knows no other files. Memory is bounded: about 128 MiB of pixels, 16 MiB of thumbnails and half a kilobyte a picture.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from stages.decode.perceptual_hash import perceptual_hash
from stages.decode.picture_normaliser import PictureIdentity, picture_id
from stages.decode.picture_traits import picture_traits
from stages.files.packs import PackPicture
from stages.record.framing import PictureSquare, unpadded
from stages.record.sources import Source

IN_MEMORY = 128 * 2**20  # bytes of pixels; beyond, they go to a temporary file
_THUMBNAILS = 8  # a file of thumbnails may be in memory if it is smaller than so many times less


class _Thumbnail(NamedTuple):
    """The hash of the source of a picture's thumbnail, and the place in the file of thumbnails."""

    sha256: str
    begin: int
    size: int


class DistinctPictures:
    """Pictures of side × side pixels by id, each with all its sources. Used in a `with` statement."""

    def __init__(self, side: int, in_memory: int = IN_MEMORY) -> None:
        """in_memory: bytes of pixels that are kept in memory."""
        self._row_size = side * side * 3
        self._pixels = tempfile.SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115, closed by __exit__
        self._thumbnails = tempfile.SpooledTemporaryFile(max_size=in_memory // _THUMBNAILS)  # noqa: SIM115, as above
        self._end = 0  # of the file of thumbnails
        self._chosen: dict[str, _Thumbnail] = {}
        self._rows: dict[str, int] = {}
        self._pictures: dict[str, PackPicture] = {}  # without their sources and thumbnails
        self._sources: dict[str, set[Source]] = {}

    def __enter__(self) -> DistinctPictures:
        return self

    def __exit__(self, *_: object) -> None:
        self._pixels.close()
        self._thumbnails.close()

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self, source: Source, framed: PictureSquare, thumbnail: bytes, known: PictureIdentity | None = None
    ) -> None:
        """Adds a picture, or only its source if an equal picture is here already. The thumbnail of the source with
        the smallest hash is kept, see stages.record.sources.chosen. known: its identity, if it need not be computed."""
        digest = known.id if known else picture_id(framed)
        if digest not in self._rows:
            self._rows[digest] = len(self._rows)
            shown = unpadded(framed)
            hash = known.perceptual_hash if known else perceptual_hash(shown)
            traits = picture_traits(shown)._asdict()
            self._pictures[digest] = PackPicture(digest, (), framed.size, hash, **traits)
            self._pixels.write(np.ascontiguousarray(framed.pixels).data)
        self._sources.setdefault(digest, set()).add(source)
        if digest not in self._chosen or source.sha256 < self._chosen[digest].sha256:
            self._chosen[digest] = _Thumbnail(source.sha256, self._end, len(thumbnail))
            self._end += self._thumbnails.write(thumbnail)

    def pictures(self) -> list[PackPicture]:
        """All pictures so far, sorted by id."""
        return [
            each._replace(sources=tuple(sorted(self._sources[id])), thumbnail_size=self._chosen[id].size)
            for id, each in sorted(self._pictures.items())
        ]

    def by_prefix(self, digits: int) -> Iterator[tuple[str, list[PackPicture]]]:
        """All pictures so far by the first hex digits of their ids, both sorted."""
        for prefix, members in groupby(self.pictures(), lambda picture: picture.id[:digits]):
            yield prefix, list(members)

    def rows(self, pictures: Iterable[PackPicture]) -> Iterator[bytes]:
        """The pixels of these pictures in their order, side × side × 3 RGB bytes each. Ends the adding."""
        for picture in pictures:
            self._pixels.seek(self._rows[picture.id] * self._row_size)
            yield self._pixels.read(self._row_size)

    def thumbnails(self, pictures: Iterable[PackPicture]) -> Iterator[bytes]:
        """The thumbnails of these pictures in their order. Ends the adding."""
        for picture in pictures:
            _, begin, size = self._chosen[picture.id]
            self._thumbnails.seek(begin)
            yield self._thumbnails.read(size)
