"""Previews of uploads: a JPEG file of every kind of picture that lookalike reads, as people see it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from stages.serving.answer.upload_decoder import PREVIEW_SIDE
from tests.stages import raw_files
from tests.stages.decode.drawn_scenes import encode, scene
from tests.stages.orientations import exif, stored
from tests.stages.serving.services import Service, made

WIDTH, HEIGHT = 96, 64
UPRIGHT = scene(WIDTH, HEIGHT)
TURNED = stored(UPRIGHT, 6)

FILES = {
    "turned TIFF": encode(TURNED, "TIFF", exif=exif(6), compression="tiff_lzw"),
    "HEIC": encode(Image.fromarray(UPRIGHT), "HEIF"),
    "JPEG 2000": encode(Image.fromarray(UPRIGHT), "JPEG2000"),
    "turned RAW": raw_files.nef(encode(TURNED, "JPEG", quality=95), 6),
    "turned JPEG": encode(TURNED, "JPEG", quality=95, exif=exif(6)),
    "Netpbm": encode(Image.fromarray(UPRIGHT), "PPM"),
    "TGA": encode(Image.fromarray(UPRIGHT), "TGA"),
}


def preview(service: Service, content: bytes) -> Image.Image:
    answer = service.ask("/previews", content, {"Content-Type": "application/octet-stream"})
    assert (answer.status, answer.headers["content-type"]) == (200, "image/jpeg"), answer.body
    return Image.open(io.BytesIO(answer.body))


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_is_shown_upright_in_its_own_size(service: Service, kind: str) -> None:
    shown = preview(service, FILES[kind])
    assert (shown.format, shown.size) == ("JPEG", (WIDTH, HEIGHT))
    assert np.abs(np.asarray(shown.convert("RGB"), float) - UPRIGHT).mean() < 5


def test_the_size_is_bounded(service: Service) -> None:
    wide = Image.new("RGB", (3 * PREVIEW_SIDE, 100), "red")
    assert preview(service, encode(wide, "TIFF", compression="tiff_lzw")).size == (PREVIEW_SIDE, 33)


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"just text", "image/tiff", 422, "not-a-picture"),
        (made(1)[:500], "image/png", 422, "not-a-picture"),
        (b"", "image/png", 400, "bad-request"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(
    service: Service, content: bytes, kind: str, status: int, code: str
) -> None:
    answer = service.ask("/previews", content, {"Content-Type": kind})
    assert (answer.status, answer.code) == (status, code)
