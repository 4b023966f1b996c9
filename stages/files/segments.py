"""The files of a segment of the index, read from an input that may be lazy: facts, table, vectors, thumbnails and
hashes.

Files of a lazy input are pipes: each is read once, to its end. What is memory-mapped of them, such as the vectors of
all buckets together, is copied to files that are deleted at once, since a mapping keeps its file alive: even a killed
process leaves nothing behind. Files of thumbnails are opened when one of theirs is asked for. Knows no stage.
"""

import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.datum.contract import Input, StageError, spool
from stages.datum.damage import LONGEST_HEADER, is_damage
from stages.files import thumbnailfiles, vectors
from stages.files.tables.images import OfVectors
from stages.files.tables.indexed import TABLE, Indexed, read_indexed
from stages.files.thumbnailfiles import Files, Thumbnails
from stages.files.vectors import VectorPlaces
from stages.knn import codes
from stages.knn.backend import Vectors
from stages.knn.codes import Coded, Codes
from stages.record.hashes import Hashes


@dataclass(frozen=True)
class Facts(OfVectors):
    """The facts about a segment of n pictures that index.json holds, as in Images."""

    count: int  # n
    model: str
    image_size: int
    fit: str
    dimension: int
    backbone: str
    codes: Coded | None = None  # facts about codes.bin, if there are any


def name_of(index: Input) -> str:
    """The segment's name."""
    return Path(index.repo_path).name


def read_facts(index: Input) -> Facts:
    """The segment's facts. Raises StageError if it has none."""
    try:
        held = json.loads(_file(index, "index.json").read_bytes())
        plain = {name: kind(held[name]) for name, kind in Facts.__annotations__.items() if name != "codes"}
        return Facts(**plain, codes=codes.from_data(held.get("codes")))
    except Exception as error:
        if not is_damage(error):
            raise
        raise StageError(
            f"the index.json of segment {index.repo_path} is not one that the index stage wrote; {_AGAIN}"
        ) from error


def read_table(index: Input) -> Indexed:
    """The segment's pictures."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        return read_indexed(spool(_file(index, TABLE), Path(directory)))


def thumbnails(index: Input, images: Indexed) -> Thumbnails:
    """The thumbnails of the segment's pictures. The files of a lazy input are read at most once, even if the thumbnails
    are kept for further datums."""
    return Thumbnails(images.thumbnails, Files(index.path / thumbnailfiles.DIRECTORY).read)


def read_points(index: Input, places: VectorPlaces, dimension: int) -> Vectors:
    """The segment's vectors at these places, float32 (n, dimension), out of the files of all buckets, memory-mapped.
    Raises StageError if there are none, or if the files do not have all of them."""
    if not len(places):
        raise StageError(f"segment {index.repo_path} has no pictures; {_AGAIN}")
    return places.together(index.path / vectors.DIRECTORY, dimension, "partition")


def read_hashes(index: Input) -> Hashes:
    """The perceptual hashes of the segment's pictures, uint64 (n,). Raises StageError for anything else."""
    with _file(index, "hashes.npy").open("rb") as file:
        content = file.read()
    try:
        found: Hashes = np.load(io.BytesIO(content), allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
        if found.dtype != np.uint64 or found.ndim != 1:
            raise ValueError(f"it holds {found.dtype} {found.shape}")
    except Exception as error:
        if not is_damage(error):
            raise
        raise StageError(f"the hashes.npy of segment {index.repo_path} cannot be read ({error}); {_AGAIN}") from error
    return found


def read_codes(index: Input, facts: Facts) -> Codes | None:
    """The segment's codes, memory-mapped; None if it has none. Raises StageError for those of other vectors."""
    if facts.codes is None:
        return None
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        return codes.opened(spool(_file(index, codes.FILE), Path(directory)), facts.codes, facts.count, facts.dimension)


_AGAIN = "reprocess the index pipeline: lookalike deploy --reprocess index"


def _file(index: Input, name: str) -> Path:
    path = index.path / name
    if not path.exists():
        raise StageError(
            f"segment {index.repo_path} has no {name}: it should be a directory that this version of the index stage "
            f"wrote; {_AGAIN}"
        )
    return path
