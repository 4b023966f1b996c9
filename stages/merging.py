"""The parts of a segment that features wrote, as one: its distinct pictures by id, their vectors, and the places of
their thumbnails.

Knows no stage and no search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.contract import StageError
from stages.knn.backend import Vectors
from stages.tables.images import Images, merge_images, read_images
from stages.thumbnailfiles import Place
from stages.vectors import read_vectors


@dataclass(frozen=True)
class Segment:
    """The pictures of a segment, sorted by id, the places of their thumbnails, and the parts that they came from, by
    table."""

    name: str
    images: Images
    thumbnails: Sequence[Place]
    parts: Mapping[Path, Images]

    def fill(self, into: Vectors, ids: Sequence[str]) -> None:
        """Copies the vectors of these pictures into an array, float32 (len(ids), dimension).

        A picture in several parts has the same vector in all of them: equal pixels, one model, batches of one shape.
        Raises StageError if a part does not have one vector for each of its pictures.
        """
        rows = {id: row for row, id in enumerate(ids)}
        for table, part in self.parts.items():
            vectors = read_vectors(table.with_suffix(".npy"), self.images.dimension)
            if len(vectors) != len(part):
                raise StageError(
                    f"segment {self.name} does not have one vector for each picture; reprocess the features pipeline, "
                    "which writes both: lookalike deploy --reprocess features"
                )
            here = [place for place, id in enumerate(part.ids) if id in rows]
            into[[rows[part.ids[place]] for place in here]] = vectors[here]


def read_segment(directory: Path) -> Segment:
    """The parts of a segment in a directory: for each <part>.npy, float32 (n, d), and <part>.parquet.

    Raises StageError if there are none, or if they come from several models or kinds of pictures.
    """
    parts = {path: read_images(path) for path in sorted(directory.glob("*.parquet"))}
    if not parts:
        raise StageError(
            f"{directory.name} does not hold pictures: it should be a directory that the features stage wrote"
        )
    images, places = merge_images({path.stem: part for path, part in parts.items()})
    return Segment(directory.name, images, places, parts)
