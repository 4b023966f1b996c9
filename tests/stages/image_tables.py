"""Tables of pictures for tests that care for a part of them."""

from collections.abc import Sequence

from stages.files.tables.image_table import ImageTable
from stages.record.origin import Origin
from stages.record.sources import Source

MODEL = "5eed" * 16


def image_table(
    ids: Sequence[str],
    dimension: int,
    sources: Sequence[Sequence[Source]] | None = None,
    thumbnails: Sequence[bytes] = (),
    hashes: Sequence[int] = (),
    origin: Origin | None = None,
) -> ImageTable:
    """The table of the pictures with these ids, with a source each, no thumbnails and no hashes unless they are given,
    of vectors of that dimension by MODEL, or of another origin."""
    return ImageTable(
        ids=ids,
        sources=[(Source(f"{id[:5]}.jpg", id),) for id in ids] if sources is None else sources,
        thumbnail_sizes=list(map(len, thumbnails)) or [0] * len(ids),
        hashes=hashes or [0] * len(ids),
        origin=origin or Origin(MODEL, "pad", 96, dimension),
    )
