"""Several tables of pictures as one, with the places of their vectors and thumbnails: the parts of a bucket, which
features wrote, and the buckets of a segment, which partition wrote.

Knows no stage and no search.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stages.datum.contract import StageError
from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable, merge_images
from stages.files.tables.index_table import PartTable
from stages.files.thumbnail_files import ThumbnailPlace
from stages.files.vector_files import VectorPlaces
from stages.record import part_names


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
        places = thumbnail_files.places(path.stem, images.thumbnail_sizes)
        tables[path.stem] = _Table(images, range(len(images)), places)
    if not tables:
        raise _without_pictures(directory, "partition")
    return _merged(directory, tables)


def read_bucket(directory: Path, shown: Path, masks: Mapping[str, Collection[str]]) -> MergedTable | None:
    """The parts of a bucket, in directories at any depth: for each <part>.parquet. Their vectors lie in <part>.npy,
    float32 (n, d), beside it, and their thumbnails in `shown`/<the part's directory>/<part>/<source>.thumbnails.

    masks: the true paths that are no more, by the name of the packs that have them (stages.record.masks); names of
    which nothing is known are passed over. None if no picture is left. Raises StageError as `read_segment`.
    """
    tables, paths = {}, sorted(directory.rglob("*.parquet"))
    if not paths:
        raise _without_pictures(directory, "features")
    for path in paths:
        part = PartTable.read(path)
        name = str(path.relative_to(directory).with_suffix(""))
        table = _Table(part, range(len(part)), [each._replace(part=f"{name}/{each.part}") for each in part.thumbnails])
        if hidden := masks.get(part_names.source_of(path.stem)):
            table = _unmasked(table, name, shown, hidden)
        if len(table.images):  # a part without pictures says nothing, not even which device computed it
            tables[name] = table
    return _merged(directory, tables) if tables else None


class _Table(NamedTuple):
    """Some pictures of a table, with their rows in its file of vectors, and the places of their thumbnails."""

    images: ImageTable
    rows: Sequence[int]
    thumbnails: Sequence[ThumbnailPlace]


def _unmasked(part: _Table, name: str, shown: Path, hidden: Collection[str]) -> _Table:
    """The pictures of a part, with this name in its bucket, that have other sources than the hidden ones, with these
    alone. Where that leaves another thumbnail, the part has it in a file of its own, see stages.preprocess."""
    rows, live, thumbnails = [], [], []
    for row, sources in enumerate(part.images.sources):
        left = [each for each in sources if each.path not in hidden]
        if not left:
            continue
        sha256 = min(each.sha256 for each in left)
        further = f"{name}/{sha256}"
        file = shown / f"{further}{thumbnail_files.SUFFIX}"
        is_further = len(left) < len(sources) and file.exists()
        thumbnails.append(ThumbnailPlace(further, 0, file.stat().st_size) if is_further else part.thumbnails[row])
        rows.append(row)
        live.append(left)
    sizes = [each.size for each in thumbnails]
    return _Table(replace(part.images.part(rows), sources=live, thumbnail_sizes=sizes), rows, thumbnails)


def _without_pictures(directory: Path, stage: str) -> StageError:
    return StageError(f"{directory.name} does not hold pictures: it should be a directory that the {stage} stage wrote")


def _merged(directory: Path, tables: Mapping[str, _Table]) -> MergedTable:
    images, places = merge_images([each.images for each in tables.values()])
    of = [*tables.values()]
    rows = np.array([of[number].rows[row] for number, row in places], np.int64)
    return MergedTable(
        directory.name,
        images,
        VectorPlaces([*tables], np.array([number for number, _ in places], np.int64), rows),
        [of[number].thumbnails[row] for number, row in places],
    )
