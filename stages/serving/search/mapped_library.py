"""The pictures of one commit of the index, memory-mapped. Searches nothing.

A row of the library is a global number: segments lie in the order of their names, which are prefixes of ids, so the
order of rows is the order of ids. A million pictures must open in seconds: columns stay what Arrow and NumPy read, and
become Python's objects only for the pictures of an answer.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise

import numpy as np

from stages.datum.contract import StageError
from stages.files import segment_files
from stages.files.thumbnail_files import ThumbnailPlace
from stages.filters.attribute_table import AttributeSegment, AttributeTable
from stages.knn.backend import Rows, Vectors
from stages.record.hashes import Hashes
from stages.record.sources import Source
from stages.serving.search.library_attributes import LibraryAttributes
from stages.serving.search.library_paths import LibraryPaths
from stages.serving.search.mapped_segment import MappedSegment

ThumbnailReader = Callable[[str, ThumbnailPlace], bytes]
"""Reads a thumbnail of a segment, given by name."""


class MappedLibrary:
    """The pictures of one commit of the index. Immutable; may be used from several threads."""

    def __init__(self, segments: Iterable[MappedSegment], read: ThumbnailReader) -> None:
        """segments: open ones, in any order. Raises StageError if there are none, or if they are not of one index."""
        self.segments = sorted(segments, key=lambda each: each.name)
        if not self.segments:
            raise StageError("the index does not have any segments: add pictures (lookalike add DIRECTORY)")
        for before, after in pairwise(self.segments):
            _check_neighbours(before, after)
        self._read = read
        self.starts = np.cumsum([0, *(len(each) for each in self.segments)]).tolist()
        """The row of each segment's first picture, and at the end the number of all pictures."""
        first = self.segments[0].facts
        self.metric = first.metric
        """The metric of the index."""
        self.origin = first.origin.with_devices(each.facts.origin for each in self.segments)
        """The origin of the vectors, with the devices of all segments."""
        self._firsts = [each.id(0) for each in self.segments]
        self._making = threading.Lock()

    def __len__(self) -> int:
        return int(self.starts[-1])

    def id(self, row: int) -> str:
        """The picture's id: 64 hex digits. Raises IndexError for a row that is not in the library, as all here do."""
        segment, place = self._place(row)
        return segment.id(place)

    def row(self, id: str) -> int | None:
        """The row of the picture with that id; None if the library does not have it."""
        at = bisect_right(self._firsts, id) - 1
        if at < 0:
            return None
        place = self.segments[at].row(id)
        return None if place is None else int(self.starts[at]) + place

    def sources(self, row: int) -> tuple[Source, ...]:
        """The files that the picture came from, sorted by path; at least one."""
        segment, place = self._place(row)
        found: tuple[Source, ...] = segment.sources[place]
        return found

    def thumbnail(self, row: int) -> bytes:
        """The picture's thumbnail, a JPEG file, read now. Raises StageError if its file is missing or damaged, and
        whatever the library's way of reading does."""
        segment, place = self._place(row)
        return self._read(segment.name, segment.thumbnails[place])

    def vectors(self, rows: Rows) -> Vectors:
        """The vectors of pictures, float32 (n, d), as the index has them. rows: int64 (n,)."""
        places = [self._place(row) for row in rows.tolist()]
        return np.array([segment.vectors[place] for segment, place in places], np.float32).reshape(
            len(rows), self.origin.dimension
        )

    def hash(self, row: int) -> int:
        """The picture's perceptual hash, 64 bits."""
        segment, place = self._place(row)
        return int(segment.hashes[place])

    def hashes(self, rows: Rows) -> Hashes:
        """The perceptual hashes of pictures, uint64 (n,). rows: int64 (n,)."""
        found: Hashes = np.fromiter(map(self.hash, rows.tolist()), np.uint64, len(rows))
        return found

    @property
    def paths(self) -> LibraryPaths:
        """The true paths of all pictures; made when first asked for, once."""
        with self._making:
            return self._paths

    @cached_property
    def _paths(self) -> LibraryPaths:
        return LibraryPaths([(each.sources.stored_paths, each.sources.counts) for each in self.segments])

    @cached_property
    def attributes(self) -> LibraryAttributes:
        """The attributes of all pictures, of which each is read when it is first asked for."""
        table = AttributeTable([AttributeSegment(each.table, each.annotations) for each in self.segments])
        return LibraryAttributes(table, lambda: self.paths)

    def _place(self, row: int) -> tuple[MappedSegment, int]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a library of {len(self)} pictures")
        at = bisect_right(self.starts, row) - 1
        return self.segments[at], row - int(self.starts[at])


def _check_neighbours(before: MappedSegment, after: MappedSegment) -> None:
    names = f"segment {before.name}", f"segment {after.name}"
    if mismatch := before.facts.origin.mismatch(after.facts.origin, *names):
        raise StageError(f"{mismatch} {segment_files.WAIT}")
    if before.id(len(before) - 1) >= after.id(0):
        raise StageError(
            f"the ids of segment {after.name} do not follow those of segment {before.name}: these are not segments of "
            "one index; reprocess the index pipeline: lookalike deploy --reprocess index"
        )
