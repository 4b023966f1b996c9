"""Several tables of pictures as one, with the places of their vectors and thumbnails: the parts of a bucket, which
features wrote, and the buckets of a segment, which partition wrote.

Knows no stage and no search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.datum.contract import StageError
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable, merge_images
from stages.files.tables.index_table import PartTable
from stages.files.thumbnail_files import ThumbnailPlace
from stages.files.vector_files import VectorPlaces


@dataclass(frozen=True)
class MergedTable:
    """Distinct pictures, sorted by id, the places of their vectors, and those of their thumbnails. name: of the
    directory of their tables.

    A picture in several tables has the same vector beside each of them: equal pixels, one model, batches of one shape.
    """

    name: str
    images: ImageTable
    vectors: VectorPlaces
    thumbnails: Sequence[ThumbnailPlace]


def read_segment(directory: Path) -> MergedTable:
    """The buckets of a segment: for each <bucket>.parquet. Their vectors lie in <bucket>.npy, float32 (n, d), and their
    thumbnails in <bucket>.thumbnails, of other directories.

    Raises StageError if there are none, or if they come from several models or kinds of pictures.
    """
    tables = {}
    for path in sorted(directory.glob("*.parquet")):
        images = ImageTable.read(path)
        tables[path.stem] = images, thumbnail_files.places(path.stem, images.thumbnail_sizes)
    return _merged(directory, "partition", tables)


def read_bucket(directory: Path) -> MergedTable:
    """The parts of a bucket, in directories at any depth: for each <part>.parquet. Their vectors lie in <part>.npy,
    float32 (n, d), beside it, and their thumbnails in <the part's directory>/<part>/<source>.thumbnails of another
    directory.

    Raises StageError as `read_segment`.
    """
    tables = {}
    for path in sorted(directory.rglob("*.parquet")):
        part = PartTable.read(path)
        name = str(path.relative_to(directory).with_suffix(""))
        tables[name] = part, [place._replace(part=f"{name}/{place.part}") for place in part.thumbnails]
    return _merged(directory, "features", tables)


def _merged(
    directory: Path, stage: str, tables: Mapping[str, tuple[ImageTable, Sequence[ThumbnailPlace]]]
) -> MergedTable:
    if not tables:
        raise StageError(
            f"{directory.name} does not hold pictures: it should be a directory that the {stage} stage wrote"
        )
    images, places = merge_images([table for table, _ in tables.values()])
    thumbnails = [shown for _, shown in tables.values()]
    numbers, rows = np.array(places, np.int64).reshape(-1, 2).T
    return MergedTable(
        directory.name,
        images,
        VectorPlaces([*tables], numbers, rows),
        [thumbnails[number][row] for number, row in places],
    )
