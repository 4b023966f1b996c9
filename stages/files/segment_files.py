"""The files of a segment of the index, read from an input that may be lazy: facts, table, vectors, thumbnails and
hashes.

Files of a lazy input are pipes: each is read once, to its end. What is memory-mapped of them, such as the vectors of
all pieces together, is copied to files that are deleted at once, since a mapping keeps its file alive: even a killed
process leaves nothing behind. Files of thumbnails are opened when one of theirs is asked for. Knows no stage.
"""

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stages.datum.contract import DatumInput, StageError, spool
from stages.datum.damage import LONGEST_HEADER, damage_as
from stages.files import thumbnail_files, vector_files
from stages.files.tables import annotation_table
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.thumbnail_files import LazyThumbnails, ThumbnailFiles
from stages.files.vector_files import LazyVectors, VectorPlaces
from stages.knn import coarse_rows, code_index
from stages.knn.backend import Vectors
from stages.knn.coarse_rows import CoarseRows
from stages.knn.code_index import CodeFacts, CodeIndex
from stages.record import origin
from stages.record.hashes import Hashes
from stages.record.origin import Origin

FACTS = "index.json"
"""The file of a segment's facts."""

COARSE = "coarse"
"""The directory of a segment's files of vectors in 8 bits."""

WAIT = "Wait until index has recomputed all segments, or reprocess it: lookalike deploy --reprocess index"
"""The remedy for segments that do not belong together."""


@dataclass(frozen=True)
class SegmentFacts:
    """The facts about a segment of n pictures: index.json."""

    count: int  # n
    metric: str  # one of stages.knn.search_settings.METRICS
    origin: Origin
    codes: CodeFacts | None = None  # facts about codes.bin, if there are any

    def as_data(self) -> dict[str, Any]:
        """The facts as JSON values."""
        codes = {} if self.codes is None else {"codes": self.codes.as_data()}
        return {"count": self.count, "metric": self.metric, **self.origin.as_data(), **codes}


def segments(index: DatumInput) -> list[DatumInput]:
    """The segments of an input, by name: that of one segment, the whole index, or a group of some files of segments,
    which Pachyderm names by the last of these."""
    place = Path(index.repo_path.strip("/"))
    if len(place.parts) == 1:
        return [index]
    root = index.path.parent.parent if place.parts else index.path
    return [replace(index, path=each, repo_path=each.name) for each in sorted(root.iterdir()) if each.is_dir()]


def name_of(index: DatumInput) -> str:
    """The segment's name."""
    return Path(index.repo_path).name


def read_facts(index: DatumInput) -> SegmentFacts:
    """The segment's facts. Raises StageError if it has none."""
    return parse_facts(_file(index, FACTS).read_bytes, index.repo_path)


def parse_facts(read: Callable[[], bytes], segment: str) -> SegmentFacts:
    """The facts of a segment. read: its file. Raises StageError for anything else, or a file that cannot be read."""
    foreign = f"the index.json of segment {segment} is not one that this version of the index stage wrote; "
    with damage_as(lambda _: StageError(f"{foreign}{_AGAIN}")):
        held = json.loads(read())
        codes = code_index.from_data(held.get("codes"))
        return SegmentFacts(int(held["count"]), str(held["metric"]), Origin.parse(held, origin.ALL), codes)


def read_table(index: DatumInput) -> IndexTable:
    """The segment's pictures. Raises StageError, which names the segment, for anything that index did not write."""
    file = _file(index, TABLE)
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        try:
            return IndexTable.read(spool(file, Path(directory)))
        except StageError as error:
            raise StageError(f"segment {index.repo_path}: {error}; {_AGAIN}") from error


def thumbnails(index: DatumInput, images: IndexTable) -> LazyThumbnails:
    """The thumbnails of the segment's pictures. The files of a lazy input are read at most once, even if the thumbnails
    are kept for further datums."""
    return LazyThumbnails(images.thumbnails, ThumbnailFiles(index.path / thumbnail_files.DIRECTORY).read)


def read_points(index: DatumInput, places: VectorPlaces, dimension: int) -> Vectors:
    """The segment's vectors at these places, float32 (n, dimension), out of the files of all pieces, memory-mapped.
    Raises StageError if there are none, or if the files do not have all of them."""
    if not len(places):
        raise StageError(f"segment {index.repo_path} has no pictures; {_AGAIN}")
    return places.together(index.path / vector_files.DIRECTORY, dimension, "index")


def lazy_points(index: DatumInput, places: VectorPlaces, dimension: int) -> LazyVectors:
    """The same, of which nothing is read yet. Raises StageError if there are none."""
    if not len(places):
        raise StageError(f"segment {index.repo_path} has no pictures; {_AGAIN}")
    return LazyVectors(places, dimension)


def read_coarse(index: DatumInput, count: int, dimension: int) -> CoarseRows | None:
    """The segment's vectors in 8 bits; None for a segment that is too small to have them. Raises StageError for
    anything else than those of so many vectors."""
    directory = index.path / COARSE
    if not directory.exists():
        return None
    rows = np.empty(count, coarse_rows.record(dimension))
    with damage_as(
        lambda error: StageError(f"the {COARSE} rows of segment {index.repo_path} cannot be read ({error}); {_AGAIN}")
    ):
        start = 0
        for file in sorted(directory.iterdir()):
            some = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
            if some.dtype != rows.dtype or some.ndim != 1 or start + len(some) > count:
                raise ValueError(f"{file.name} holds {some.dtype} {some.shape}")
            rows[start : start + len(some)] = some
            start += len(some)
        if start != count:
            raise ValueError(f"{start} rows of {count} pictures")
    return CoarseRows(rows)


def read_hashes(index: DatumInput) -> Hashes:
    """The perceptual hashes of the segment's pictures, uint64 (n,). Raises StageError for anything else."""
    content = _file(index, "hashes.npy").read_bytes()
    unread = f"the hashes.npy of segment {index.repo_path} cannot be read"
    with damage_as(lambda error: StageError(f"{unread} ({error}); {_AGAIN}")):
        found: Hashes = np.load(io.BytesIO(content), allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
        if found.dtype != np.uint64 or found.ndim != 1:
            raise ValueError(f"it holds {found.dtype} {found.shape}")
        return found


def read_annotations(index: DatumInput) -> pa.Table | None:
    """What people say of the segment's files, see stages.files.tables.annotation_table; None if it has no such file.
    Raises StageError for any other file."""
    file = index.path / annotation_table.FILE
    if not file.exists():
        return None
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        return annotation_table.read_annotations(spool(file, Path(directory)))


def read_codes(index: DatumInput, facts: SegmentFacts) -> CodeIndex | None:
    """The segment's codes, memory-mapped; None if it has none. Raises StageError for those of other vectors."""
    if facts.codes is None:
        return None
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        path = spool(_file(index, code_index.FILE), Path(directory))
        return code_index.open_codes(path, facts.count, facts.origin.dimension)


_AGAIN = "reprocess the index pipeline: lookalike deploy --reprocess index"


def _file(index: DatumInput, name: str) -> Path:
    path = index.path / name
    if not path.exists():
        raise StageError(
            f"segment {index.repo_path} has no {name}: it should be a directory that this version of the index stage "
            f"wrote; {_AGAIN}"
        )
    return path
