"""Tables of pairs: pictures of one or two segments that are near each other, and pictures with several sources."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.compute import index_in

from stages.files.tables.columns import SOURCES, ArrowColumn, Column, taken
from stages.files.tables.table import Table
from stages.record.hashes import BitCounts
from stages.record.origin import Origin
from stages.record.sources import Source


class PairedPictures(NamedTuple):
    """The m pictures of n pairs: ids, sorted, sources and thumbnails, JPEG files. first, second: of each pair the rows
    of its pictures, int32 (n,); equal for a picture and itself."""

    ids: Sequence[str]
    sources: Sequence[Sequence[Source]]
    thumbnails: Sequence[bytes]
    first: npt.NDArray[np.int32]
    second: npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable(Table):
    """n pairs of pictures, or of a picture with several sources and itself, each once, ordered by first and then by
    second, which does not come before it.

    The sources and the thumbnail of a picture are in the first row that names it, on the side of its first mention
    there, since a picture may be in many pairs. Beside the pictures a pair takes about 300 bytes of memory.
    """

    STATED = ("model", "fit", "backbone")

    first: Annotated[Sequence[str], Column("first", pa.string(), ordered=True, lazy=True)]  # ids
    second: Annotated[Sequence[str], Column("second", pa.string(), ordered=True, lazy=True)]
    distances: Annotated[npt.NDArray[np.float32], Column("distance", pa.float32())]  # 0 for a picture and itself
    bits: Annotated[BitCounts, Column("bits", pa.uint8())]  # in which the perceptual hashes differ
    turns: Annotated[BitCounts, Column("turn", pa.uint8())]  # see stages.record.hashes
    # False only for a picture of which files may differ unseen.
    near: Annotated[npt.NDArray[np.bool_], Column("near", pa.bool_())]
    first_sources: Annotated[Sequence[Sequence[Source] | None], Column("first_sources", SOURCES, optional=True)]
    second_sources: Annotated[Sequence[Sequence[Source] | None], Column("second_sources", SOURCES, optional=True)]
    first_thumbnails: Annotated[Sequence[bytes | None], Column("first_thumbnail", pa.binary(), optional=True)]
    second_thumbnails: Annotated[Sequence[bytes | None], Column("second_thumbnail", pa.binary(), optional=True)]
    origin: Origin
    metric: str  # "euclidean" or "cosine"
    threshold: float  # the largest distance that was looked for
    hash_bits: int  # the most bits

    def __post_init__(self) -> None:
        """Raises ValueError also for a picture whose sources are missing."""
        super().__post_init__()
        if np.any(self.pictures.first > self.pictures.second):
            raise ValueError("the pictures of a pair must be sorted")

    @classmethod
    def of_pictures(cls, pictures: PairedPictures, **others: Any) -> Self:
        """The table of these pairs. others: the remaining columns and the facts."""
        sides = {"first": pictures.first.tolist(), "second": pictures.second.tolist()}
        told: set[int] = set()
        rows: dict[str, list[int | None]] = {side: [] for side in sides}
        for pair in zip(*sides.values(), strict=True):
            for side, row in zip(sides, pair, strict=True):
                rows[side].append(None if row in told else row)
                told.add(row)
        held: dict[str, Any] = {}
        for side, named in sides.items():
            held[side] = [pictures.ids[row] for row in named]
            held[f"{side}_sources"] = [None if row is None else pictures.sources[row] for row in rows[side]]
            held[f"{side}_thumbnails"] = [None if row is None else pictures.thumbnails[row] for row in rows[side]]
        return cls(**held, **others)

    @cached_property
    def pictures(self) -> PairedPictures:
        """The pictures of the pairs."""
        sides = [
            (self.first, self.first_sources, self.first_thumbnails),
            (self.second, self.second_sources, self.second_thumbnails),
        ]
        known = {id: (sources, thumbnail) for side in sides for id, sources, thumbnail in _told(*side)}
        ids = sorted(known)
        value_set = pa.array(ids, pa.string())
        first, second = (index_in(ArrowColumn.of(side[0], pa.string()).stored, value_set=value_set) for side in sides)
        if first.null_count or second.null_count:
            raise ValueError("it lacks the sources of a picture")
        shown = [known[id] for id in ids]
        return PairedPictures(
            ids, [each[0] for each in shown], [each[1] for each in shown], first.to_numpy(), second.to_numpy()
        )


def _told(*side: Any) -> Iterator[tuple[str, Sequence[Source], bytes]]:
    """The pictures whose sources and thumbnails are on a side: three columns."""
    rows = np.flatnonzero(side[1].stored.is_valid().to_numpy(zero_copy_only=False))
    return zip(*(taken(column, rows.tolist()) for column in side), strict=True)
