"""Pictures with the detail and the shades of photographs, made here, and their files."""

import io

import numpy as np
from PIL import Image

from stages.decode.thumbnails import thumbnail

SIZE = (320, 240)


def scene(seed: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """Soft patches of two sizes, RGB; another seed is another scene."""
    random = np.random.default_rng(seed)
    picture = np.zeros((size[1], size[0], 3))
    for patches, weight in ((9, 0.7), (25, 0.3)):
        coarse = Image.fromarray(random.integers(0, 256, (patches, patches + 2, 3), np.uint8))
        picture += weight * np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), float)
    return Image.fromarray(picture.round().astype(np.uint8))


def lain(picture: Image.Image, turn: int) -> Image.Image:
    """The picture as the turn's number says: rows and columns exchanged first."""
    pixels = np.asarray(picture)
    pixels = pixels.transpose(1, 0, 2) if turn & 4 else pixels
    return Image.fromarray(np.ascontiguousarray(pixels[:: -1 if turn & 1 else 1, :: -1 if turn & 2 else 1]))


def saved(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    """The picture as a file."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def shown(picture: Image.Image) -> bytes:
    """Its thumbnail, as preprocess makes it."""
    return thumbnail(picture.convert("RGB"))
