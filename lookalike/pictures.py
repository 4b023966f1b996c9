"""Anything that stands for a picture, as a question to a service takes it."""

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lookalike.neighbours import Neighbour
from pipelines.client.services.search_client import QueryPicture
from pipelines.errors import LookalikeError

Box: TypeAlias = tuple[float, float, float, float]
"""A region as shares of the picture: left, top, right, bottom."""

PictureInput: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO | Image.Image | NDArray[np.uint8] | Neighbour
"""A path, a URL, the id of a library picture, the bytes of a file, an open file, a picture of Pillow's, pixels as
uint8 (height, width, 3) or (height, width), or a neighbour of another answer."""

_ID = re.compile("[0-9a-f]{64}")


def asked(given: PictureInput | Sequence[PictureInput] | None, box: Box | None) -> list[QueryPicture]:
    """The pictures of a question. box: of the only one. Raises LookalikeError for what is not a picture."""
    several = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    pictures: Sequence[Any] = given if several else [given]  # type: ignore[assignment]
    if not pictures:
        raise LookalikeError("there is no picture to search for in an empty list")
    if box is not None and len(pictures) > 1:
        raise LookalikeError("a box belongs to one picture: search for the others without it")
    return [_one(each, box) for each in pictures]


def _one(given: Any, box: Box | None) -> QueryPicture:
    if isinstance(given, Neighbour):
        return QueryPicture(id=given.id, box=box)
    if isinstance(given, str) and _ID.fullmatch(given):
        return QueryPicture(id=given, box=box)
    if isinstance(given, str) and given.startswith(("http://", "https://")):
        return QueryPicture(url=given, box=box)
    if isinstance(given, str | os.PathLike):
        return _file(Path(given).expanduser(), box)
    if isinstance(given, bytes | bytearray | memoryview):
        return QueryPicture(bytes(given), box=box)
    if isinstance(given, Image.Image):
        return QueryPicture(_png(given), box=box)
    if isinstance(given, np.ndarray):
        return QueryPicture(_png(_from_pixels(given)), box=box)
    if callable(getattr(given, "read", None)):
        content = given.read()
        if isinstance(content, bytes):
            return QueryPicture(content, Path(str(getattr(given, "name", "picture"))).name, box=box)
    raise LookalikeError(
        f"a {type(given).__name__} is not a picture: give a path, bytes, an open binary file, a picture of Pillow's, "
        "an array of uint8, a URL, an id or a neighbour"
    )


def _file(path: Path, box: Box | None) -> QueryPicture:
    try:
        return QueryPicture(path.read_bytes(), path.name, box=box)
    except OSError as error:
        raise LookalikeError(f"cannot read {path}: {error.strerror}") from error


def _from_pixels(pixels: "NDArray[Any]") -> Image.Image:
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)):
        raise LookalikeError(
            f"{pixels.dtype} {pixels.shape} is not a picture: give uint8 (height, width, 3) or (height, width)"
        )
    return Image.fromarray(np.ascontiguousarray(pixels))


def _png(picture: Image.Image) -> bytes:
    """A file of the picture without losses, with its colour profile and orientation."""
    kept = picture if picture.mode in ("1", "L", "LA", "I;16", "P", "RGB", "RGBA") else picture.convert("RGB")
    file = io.BytesIO()
    kept.save(file, "PNG", exif=picture.getexif(), icc_profile=picture.info.get("icc_profile"))
    return file.getvalue()
