"""Collects a datum's distinct pictures: equal ones are merged, and the pixels of many go to disk.

Knows no other files. Memory is bounded: about 128 MiB of pixels and half a kilobyte a picture.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby

from stages.framing import Framed, unpadded
from stages.packs import Picture
from stages.perceptual import perceptual_hash
from stages.pictures import picture_id
from stages.sources import Source

IN_MEMORY = 128 * 2**20  # bytes of pixels; beyond, they go to a temporary file


class DistinctPictures:
    """Pictures of side × side pixels by id, each with all its sources. Used in a `with` statement."""

    def __init__(self, side: int, in_memory: int = IN_MEMORY) -> None:
        """in_memory: bytes of pixels that are kept in memory."""
        self._row_size = side * side * 3
        self._pixels = tempfile.SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115, closed by __exit__
        self._rows: dict[str, int] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._hashes: dict[str, int] = {}
        self._sources: dict[str, set[Source]] = {}

    def __enter__(self) -> DistinctPictures:
        return self

    def __exit__(self, *_: object) -> None:
        self._pixels.close()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, source: Source, framed: Framed) -> None:
        """Adds a picture, or only its source if an equal picture is here already."""
        digest = picture_id(framed)
        if digest not in self._rows:
            self._rows[digest] = len(self._rows)
            self._sizes[digest] = framed.size
            self._hashes[digest] = perceptual_hash(unpadded(framed))
            self._pixels.write(framed.pixels.tobytes())
        self._sources.setdefault(digest, set()).add(source)

    def pictures(self) -> list[Picture]:
        """All pictures so far, sorted by id."""
        return [
            Picture(digest, tuple(sorted(self._sources[digest])), self._sizes[digest], self._hashes[digest])
            for digest in sorted(self._rows)
        ]

    def by_prefix(self, digits: int) -> Iterator[tuple[str, list[Picture]]]:
        """All pictures so far by the first hex digits of their ids, both sorted."""
        for prefix, members in groupby(self.pictures(), lambda picture: picture.id[:digits]):
            yield prefix, list(members)

    def rows(self, pictures: Iterable[Picture]) -> Iterator[bytes]:
        """The pixels of these pictures in their order, side × side × 3 RGB bytes each. Ends the adding."""
        for picture in pictures:
            self._pixels.seek(self._rows[picture.id] * self._row_size)
            yield self._pixels.read(self._row_size)
