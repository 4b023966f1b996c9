"""The pictures that clients upload to the service."""

import io
from collections.abc import Iterator

from PIL import Image

from stages.backbone.photographs import open_photograph

UPLOADS = 48
"""Distinct pictures."""


def pictures() -> Iterator[bytes]:
    """JPEG files of 640 × 480 pixels: different parts of a photograph."""
    photograph = open_photograph("astronaut").convert("RGB").resize((1280, 960))
    for number in range(UPLOADS):
        left, top = number * 13 % 640, number * 29 % 480
        file = io.BytesIO()
        photograph.crop((left, top, left + 640, top + 480)).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(
            file, "JPEG"
        )
        yield file.getvalue()
