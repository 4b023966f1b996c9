"""The pictures that a network is trained on: the thumbnails of a table, framed as the backbone takes its pictures.

Only the JPEG files are in memory: 100,000 framed pictures of 224 pixels would be 15 GB. Knows no labels, no network.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from stages.datum.contract import StageError
from stages.decode.thumbnails import SIDE
from stages.record.framing import Framing, Pixels

LARGEST = SIDE
"""Most pixels of the longer side of a thumbnail: a backbone that takes larger pictures gets scaled-up ones."""


def frame_thumbnails(thumbnails: Sequence[bytes], framing: Framing) -> Pixels:
    """The pictures of n JPEG files, uint8 RGB (n, side, side, 3), scaled and framed as the backbone's own are.

    Raises StageError for a thumbnail that is not a picture.
    """
    made = np.empty((len(thumbnails), framing.side, framing.side, 3), np.uint8)
    for row, thumbnail in enumerate(thumbnails):
        made[row] = _framed(thumbnail, framing)
    return made


def _framed(thumbnail: bytes, framing: Framing) -> Pixels:
    try:
        with Image.open(io.BytesIO(thumbnail)) as opened:
            picture = opened.convert("RGB")
    except (OSError, ValueError) as error:
        raise StageError(
            f"a thumbnail in the table of labelled pictures is damaged ({error}): write the table again with "
            "`lookalike deploy --reprocess labelled`"
        ) from error
    kept = framing.kept(picture.size)
    if kept != (0, 0, *picture.size):
        picture = picture.crop(kept)
    size = framing.scaled(picture.size)
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    return framing.frame(np.asarray(picture)).pixels
