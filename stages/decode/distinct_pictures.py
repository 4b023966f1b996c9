"""Collects a datum's distinct pictures: equal ones are merged, and the bytes of many go to disk.

Knows no other files. Memory is bounded: about 128 MiB of coded pictures and thumbnails and a kilobyte a picture.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from stages.decode.perceptual_hash import perceptual_hash
from stages.decode.picture_normaliser import PictureIdentity, picture_id
from stages.decode.picture_traits import picture_traits
from stages.files.packs import PackPicture
from stages.record.framing import PictureSquare, unpadded
from stages.record.sources import Source

IN_MEMORY = 128 * 2**20  # bytes of coded pictures and thumbnails; beyond, they go to a temporary file


class _Place(NamedTuple):
    """A place in the temporary file."""

    begin: int
    size: int


class DistinctPictures:
    """Normalised pictures by id, each with all its sources. Used in a `with` statement."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        """in_memory: bytes of coded pictures and thumbnails that are kept in memory."""
        self._bytes = tempfile.SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115, closed by __exit__
        self._end = 0
        self._shown: dict[str, dict[str, _Place]] = {}  # thumbnails of each picture by the hashes of its sources
        self._coded: dict[str, _Place] = {}
        self._pictures: dict[str, PackPicture] = {}  # without their sources and thumbnails
        self._sources: dict[str, set[Source]] = {}

    def __enter__(self) -> DistinctPictures:
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes.close()

    def __len__(self) -> int:
        return len(self._pictures)

    def add(
        self,
        source: Source,
        framed: PictureSquare,
        coded: bytes,
        thumbnail: bytes,
        known: PictureIdentity | None = None,
    ) -> None:
        """Adds a picture, or only its source, with its thumbnail, if an equal picture is here already. coded: the
        picture for its pack. known: its identity, if it need not be computed."""
        digest = known.id if known else picture_id(framed)
        if digest not in self._pictures:
            shown = unpadded(framed)
            hash = known.perceptual_hash if known else perceptual_hash(shown)
            traits = picture_traits(shown)._asdict()
            self._pictures[digest] = PackPicture(digest, (), framed.size, hash, coded_size=len(coded), **traits)
            self._coded[digest] = self._written(coded)
        self._sources.setdefault(digest, set()).add(source)
        places = self._shown.setdefault(digest, {})
        if source.sha256 not in places:
            same = (each for each in places.values() if each.size == len(thumbnail) and self._read(each) == thumbnail)
            places[source.sha256] = next(same, None) or self._written(thumbnail)

    def pictures(self) -> list[PackPicture]:
        """All pictures so far, sorted by id."""
        return [
            each._replace(sources=tuple(sorted(self._sources[id])), thumbnail_size=self._chosen(id).size)
            for id, each in sorted(self._pictures.items())
        ]

    def by_prefix(self, digits: int) -> Iterator[tuple[str, list[PackPicture]]]:
        """All pictures so far by the first hex digits of their ids, both sorted."""
        for prefix, members in groupby(self.pictures(), lambda picture: picture.id[:digits]):
            yield prefix, list(members)

    def coded(self, pictures: Iterable[PackPicture]) -> Iterator[bytes]:
        """These pictures for their pack, in their order. Ends the adding."""
        return (self._read(self._coded[picture.id]) for picture in pictures)

    def thumbnails(self, pictures: Iterable[PackPicture]) -> Iterator[bytes]:
        """The thumbnails of these pictures in their order, each of the source with the smallest hash, see
        stages.record.sources.chosen."""
        return (self._read(self._chosen(picture.id)) for picture in pictures)

    def further_thumbnails(self, pictures: Iterable[PackPicture]) -> Iterator[tuple[str, bytes]]:
        """The hashes of the sources of these pictures whose thumbnails are others, with these: a source may go while
        its datum stays."""
        for picture in pictures:
            chosen = self._chosen(picture.id)
            for sha256, place in self._shown[picture.id].items():
                if place != chosen:
                    yield sha256, self._read(place)

    def _chosen(self, id: str) -> _Place:
        shown = self._shown[id]
        return shown[min(shown)]

    def _written(self, content: bytes) -> _Place:
        self._bytes.seek(self._end)
        place = _Place(self._end, self._bytes.write(content))
        self._end += place.size
        return place

    def _read(self, place: _Place) -> bytes:
        self._bytes.seek(place.begin)
        return self._bytes.read(place.size)
