"""The bytes of a picture to search for, decoded as the preprocess stage decodes those of the library.

Equal bytes give the same id and the same pixels there and here. Knows no HTTP.
"""

from __future__ import annotations

import io
from collections.abc import Callable

from PIL import Image

from stages.decode import picture_normaliser
from stages.decode.decoders import BadPicture
from stages.decode.perceptual_hash import perceptual_hash
from stages.decode.picture_normaliser import NormalisedPicture, PictureRegion
from stages.files import coded_pictures
from stages.record.file_kinds import HEAD, FileKind, kind_of, why_unreadable
from stages.record.file_limits import LIMITS
from stages.record.framing import PAD, Framing, Pixels, unpadded
from stages.serving.answer.search_answer import QueryPicture
from stages.serving.follow.refusals import Refusal

PictureNormaliser = Callable[[bytes, FileKind, Framing, PictureRegion | None], NormalisedPicture]

PREVIEW_SIDE = 2048
"""Most pixels of the longer side of a preview."""

_PREVIEW_QUALITY = 90


def decode_upload(
    name: str,
    data: bytes,
    framing: Framing,
    region: PictureRegion | None = None,
    normalise: PictureNormaliser = picture_normaliser.normalise,
) -> tuple[QueryPicture, Pixels]:
    """A file, or a region of its picture, decoded here or as `normalise` does, with the pixels that are compared, uint8
    (side, side, 3). name: of its file, for people. Raises Refusal, with the reason that a rejected file has."""
    found = _decoded(name, data, framing, region, normalise)
    hashed = perceptual_hash(unpadded(found.framed))
    asked = QueryPicture(name, picture_normaliser.picture_id(found.framed), None, hashed, *found.size)
    return asked, coded_pictures.compared(found.framed)


def preview(data: bytes, normalise: PictureNormaliser = picture_normaliser.normalise) -> bytes:
    """A file of any kind as one that every browser shows: a JPEG file of the whole picture, upright and in sRGB, at
    most PREVIEW_SIDE pixels wide and high. Raises Refusal as `decode_upload` does."""
    shown = _decoded("", data, Framing(PREVIEW_SIDE, PAD), None, normalise)
    if max(shown.size) < PREVIEW_SIDE:  # it was enlarged
        shown = _decoded("", data, Framing(max(shown.size), PAD), None, normalise)
    file = io.BytesIO()
    Image.fromarray(unpadded(shown.framed)).save(file, "JPEG", quality=_PREVIEW_QUALITY)
    return file.getvalue()


def _decoded(
    name: str, data: bytes, framing: Framing, region: PictureRegion | None, normalise: PictureNormaliser
) -> NormalisedPicture:
    kind = kind_of(data[:HEAD])
    if kind.is_archive:
        raise _refused(name, "an archive: send its pictures one by one, or search for it with `lookalike query`")
    if not kind.is_picture:
        raise _refused(name, why_unreadable(data[:HEAD]))
    if len(data) > LIMITS.picture_bytes:
        raise _refused(name, f"{len(data):,} bytes: the limit for a picture's file is {LIMITS.picture_bytes:,}")
    try:
        return normalise(data, kind, framing, region)
    except BadPicture as failure:
        raise _refused(name, str(failure)) from failure
    except MemoryError as failure:
        raise Refusal(503, "no-memory", "the service has too little memory for this picture: try again", 5) from failure


def _refused(name: str, reason: str) -> Refusal:
    return Refusal(422, "not-a-picture", f"{name}: {reason}" if name else reason)
