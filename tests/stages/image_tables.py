"""Tables of pictures for tests that care for a part of them."""

from collections.abc import Sequence
from typing import Any

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
        **unseen(len(ids)),
        origin=origin or Origin(MODEL, "pad", 96, dimension),
    )


def unseen(count: int) -> dict[str, Any]:
    """The columns of traits for so many pictures that no test looks at."""
    return {name: [0.0] * count for name in ("brightness", "contrast", "sharpness")} | {"colours": [""] * count}
