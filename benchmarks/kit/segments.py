"""The vectors of a segment of the index on plain directories, for programs that search all of them. Knows no search."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import DatumInput
from stages.files import segment_files


def vectors(segment: Path) -> NDArray[np.float32]:
    """The vectors in the segment's own directory in the order of its table, float32 (n, d), memory-mapped and
    read-only."""
    index = DatumInput("index", segment, segment.name, "")
    images = segment_files.read_table(index)
    return segment_files.read_points(index, images.vectors, images.origin.dimension)
