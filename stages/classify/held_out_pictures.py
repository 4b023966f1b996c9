"""The labelled pictures that no training has seen: their labels, vectors and thumbnails.

Reads what the stage labelled wrote, one table after the other. Knows no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stages.classify.training import dataset, splits
from stages.datum.contract import StageError
from stages.record.origin import Origin


@dataclass(frozen=True)
class HeldOutPictures:
    """n pictures, sorted by id, that are held out at a share.

    vectors: float32 (n, d), of `origin`. thumbnails: JPEG files, without padding.
    """

    ids: Sequence[str]
    labels: Sequence[str]
    vectors: npt.NDArray[np.float32]
    thumbnails: Sequence[bytes]
    origin: Origin
    share: float

    def __len__(self) -> int:
        return len(self.ids)


def read(directory: Path, share: float) -> HeldOutPictures:
    """The pictures held out at this share, whatever their labels, in a directory of <segment>.npy and
    <segment>.parquet. Raises StageError if there are no such files, or if they do not belong together."""
    ids: list[str] = []
    labels: list[str] = []
    thumbnails: list[bytes] = []
    vectors = []
    origins = set()
    for table, of_segment in dataset.read_segments(directory):
        origins.add(replace(table.origin, devices=()))
        rows = [row for row, id in enumerate(table.ids) if splits.held_out(id, share)]
        ids += [table.ids[row] for row in rows]
        labels += [table.labels[row] for row in rows]
        thumbnails += [table.thumbnails[row] for row in rows]
        vectors.append(of_segment[rows])
    if len(origins) > 1:
        raise StageError(
            "the labelled pictures come from several models; start labelled again with: "
            "lookalike deploy --reprocess labelled"
        )
    return HeldOutPictures(ids, labels, np.concatenate(vectors), thumbnails, origins.pop(), share)
