"""Owns the pictures that a run of the whole pipeline puts: pieces of the sample photographs, as records of STL-10,
those of the library in a file that is deleted once they are put. Memory holds a thousand of them, and the names of all.

Of a million pieces 98.9 % differ in photograph, scale, place, side or brightness; and one in a hundred is a copy.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.kit.stl10_pieces import PhotographPieces
from pipelines.library.datasets import stl10
from pipelines.library.datasets.stl10 import Stl10Split
from pipelines.library.picture_sources import PictureSource
from stages.decode.stl10 import RECORD, record_name
from stages.decode.stl10_records import upright

MOST_QUERIES = 1_000
"""The most queries of a library, of which they are a tenth."""

_SEED = 0


@dataclass(frozen=True, slots=True)
class Supply:
    """The files of a library and of its queries, and the number of pictures in each."""

    library: Path
    queries: Path
    sizes: tuple[int, int]

    @property
    def split(self) -> Stl10Split:
        """The pictures by name, whether or not their files are still there."""
        first, rest = self.sizes
        return Stl10Split(_sources(self.library, range(first)), _sources(self.queries, range(first, first + rest)))

    def write(self) -> None:
        """Writes both files: equal sizes give equal files."""
        pieces = PhotographPieces(_SEED)
        for path, count in zip((self.library, self.queries), self.sizes, strict=True):
            new = path.with_suffix(".new")
            with new.open("wb") as file:
                pieces.write(file, count)
            new.replace(path)

    def sample(self, count: int, side: int) -> NDArray[np.uint8]:
        """The first pictures of the library, (count, side, side, 3) RGB."""
        with self.library.open("rb") as file:
            found = [*upright(file.read(count * RECORD))]
        if side != found[0].shape[0]:
            found = [np.asarray(Image.fromarray(each).resize((side, side))) for each in found]
        return np.stack(found)


def supply(place: Path, pictures: int) -> Supply:
    """The pictures of a library of this size, queries included, in a directory."""
    queries = min(pictures // 10, MOST_QUERIES)
    return Supply(place / "library.bin", place / "queries.bin", (pictures - queries, queries))


def _sources(path: Path, numbers: range) -> list[PictureSource]:
    return [
        PictureSource(record_name(stl10.UNLABELLED, number), path, RECORD, at * RECORD)
        for at, number in enumerate(numbers)
    ]
