"""Several tables of pictures as one, with their vectors: the parts of a bucket, which features wrote, and the buckets
of a segment, which partition wrote.

Knows no stage and no search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages import thumbnailfiles
from stages.contract import StageError
from stages.knn.backend import Vectors
from stages.tables.embedded import read_embedded
from stages.tables.images import Images, merge_images, read_images
from stages.thumbnailfiles import Place
from stages.vectors import read_vectors


@dataclass(frozen=True)
class Merged:
    """Distinct pictures, sorted by id, the places of their thumbnails, and the tables that they came from, by file.
    name: of the directory of these. stage: that wrote them."""

    name: str
    stage: str
    images: Images
    thumbnails: Sequence[Place]
    tables: Mapping[Path, Images]

    def fill(self, into: Vectors, ids: Sequence[str]) -> None:
        """Copies the vectors of these pictures into an array, float32 (len(ids), dimension).

        A picture in several tables has the same vector beside each of them: equal pixels, one model, batches of one
        shape. Raises StageError if a table does not have one vector for each of its pictures.
        """
        rows = {id: row for row, id in enumerate(ids)}
        for table, images in self.tables.items():
            vectors = read_vectors(table.with_suffix(".npy"), self.images.dimension)
            if len(vectors) != len(images):
                raise StageError(
                    f"{self.name} does not have one vector for each picture; reprocess the {self.stage} pipeline, "
                    f"which writes both: lookalike deploy --reprocess {self.stage}"
                )
            here = [place for place, id in enumerate(images.ids) if id in rows]
            into[[rows[images.ids[place]] for place in here]] = vectors[here]


def read_segment(directory: Path) -> Merged:
    """The buckets of a segment: for each <bucket>.npy, float32 (n, d), and <bucket>.parquet. Their thumbnails lie in
    <bucket>.thumbnails of another directory.

    Raises StageError if there are none, or if they come from several models or kinds of pictures.
    """
    tables = {}
    for path in sorted(directory.glob("*.parquet")):
        images = read_images(path)
        tables[path] = images, thumbnailfiles.places(path.stem, images.thumbnail_sizes)
    return _merged(directory, "partition", tables)


def read_bucket(directory: Path) -> Merged:
    """The parts of a bucket, in directories at any depth: for each <part>.npy, float32 (n, d), and <part>.parquet.
    Their thumbnails lie in <the part's directory>/<part>/<source>.thumbnails of another directory.

    Raises StageError as `read_segment`.
    """
    tables = {}
    for path in sorted(directory.rglob("*.parquet")):
        images, shown = read_embedded(path)
        above = path.relative_to(directory).with_suffix("")
        tables[path] = images, [place._replace(part=f"{above}/{place.part}") for place in shown]
    return _merged(directory, "features", tables)


def _merged(directory: Path, stage: str, tables: Mapping[Path, tuple[Images, Sequence[Place]]]) -> Merged:
    if not tables:
        raise StageError(
            f"{directory.name} does not hold pictures: it should be a directory that the {stage} stage wrote"
        )
    images, shown = merge_images([*tables.values()])
    return Merged(directory.name, stage, images, shown, {path: table for path, (table, _) in tables.items()})
