"""One segment of the index, memory-mapped: facts, vectors, hashes, ids, sources and the places of thumbnails. Searches
nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stages.datum.contract import DatumInput, StageError
from stages.files import segment_files
from stages.files.segment_files import SegmentFacts
from stages.files.tables import annotation_table
from stages.files.tables.columns import ArrowColumn, SourceColumn
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.thumbnail_files import ThumbnailPlaces
from stages.files.vector_files import VectorPlaces
from stages.knn import code_index
from stages.knn.backend import Vectors
from stages.knn.code_index import CodeIndex
from stages.record.hashes import Hashes

FILES = (annotation_table.FILE, code_index.FILE, "hashes.npy", TABLE, segment_files.FACTS)
"""The files of a segment that are opened beside those of its vectors; all but annotations and codes are needed."""

VectorReader = Callable[[DatumInput, VectorPlaces, int], Vectors]
"""Gives the vectors of a segment at these places, of that dimension, memory-mapped."""

_ID = 64  # hex digits
_AGAIN = "reprocess the index pipeline: lookalike deploy --reprocess index"

IdArray = np.ndarray[Any, np.dtype[np.bytes_]]


@dataclass(frozen=True)
class MappedSegment:
    """An open segment of n pictures.

    key: equal for segments of equal content. vectors: float32 (n, d). hashes: uint64 (n,). ids: n × 64 bytes, strictly
    ascending. table: all that the index tells of the pictures. annotations: what people say of their files.
    """

    name: str
    key: str
    facts: SegmentFacts
    vectors: Vectors
    hashes: Hashes
    ids: IdArray
    table: IndexTable
    codes: CodeIndex | None = None
    annotations: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def id(self, row: int) -> str:
        """The id in that row."""
        return bytes(self.ids[row]).decode("ascii")

    def row(self, id: str) -> int | None:
        """The row of that id, or None."""
        try:
            wanted = np.bytes_(id.encode("ascii"))
        except UnicodeEncodeError:
            return None
        at = int(np.searchsorted(self.ids, wanted))
        return at if at < len(self) and self.ids[at] == wanted else None

    @property
    def thumbnails(self) -> ThumbnailPlaces:
        """The places of the thumbnails, in files of the index."""
        return self.table.thumbnails

    @property
    def sources(self) -> SourceColumn:
        """The sources of the pictures."""
        return SourceColumn.of(self.table.sources)


def map_segment(directory: Path, key: str, read: VectorReader) -> MappedSegment:
    """Maps the segment in a directory, whose last component is its name. key: equal for segments of equal content.
    Raises StageError for anything that the index stage did not write."""
    index = DatumInput("index", directory, directory.name, "")
    facts = segment_files.read_facts(index)
    table = segment_files.read_table(index)
    ids = _ids(ArrowColumn.of(table.ids, pa.string()).stored, directory.name)
    hashes = segment_files.read_hashes(index)
    if len(ids) != len(hashes):
        raise StageError(f"segment {directory.name} has {len(hashes)} hashes for {len(ids)} pictures; {_AGAIN}")
    return MappedSegment(
        name=directory.name,
        key=key,
        facts=facts,
        vectors=read(index, table.vectors, facts.origin.dimension),
        hashes=hashes,
        ids=ids,
        table=table,
        codes=segment_files.read_codes(index, facts),
        annotations=segment_files.read_annotations(index),
    )


def _ids(column: Any, segment: str) -> IdArray:
    """The ids in Arrow's own memory, without a copy."""
    if not len(column):
        raise StageError(f"segment {segment} has no pictures; {_AGAIN}")
    _, offsets, text = column.buffers()
    lengths = np.diff(np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset))
    if len(column) and (column.null_count or (lengths != _ID).any()):
        raise StageError(f"the table of segment {segment} has ids that are not 64 hex digits; {_AGAIN}")
    start = int(np.frombuffer(offsets, np.int32, 1, 4 * column.offset)[0])
    return np.frombuffer(text, f"S{_ID}", len(column), start)
