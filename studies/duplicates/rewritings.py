"""Files that hold one picture in two ways, and files that only seem to: what exact copies are, and are not. Knows no
finder of copies."""

import io
import struct
from collections.abc import Callable
from functools import partial

import numpy as np
from PIL import Image, ImageCms

Rewriting = Callable[[Image.Image], tuple[bytes, bytes]]
"""From a picture, RGB, to two files."""

LARGE = 3000, 2000
"""The size of a large picture. A JPEG of it is decoded at a smaller scale."""

_EXIF = bytes.fromhex("4578696600004d4d002a00000008") + struct.pack(">HHHII", 1, 0x0131, 2, 4, 0x746F6F00) + bytes(4)
"""That a program wrote the file, the tag Software: "too"."""


def _file(image: Image.Image, format_: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


def _saved(image: Image.Image, format_: str, **options: object) -> tuple[bytes, bytes]:
    return _file(image, "PNG"), _file(image, format_, **options)


def _of_few_colours(image: Image.Image, format_: str) -> tuple[bytes, bytes]:
    few = image.quantize(200)
    return _file(few.convert("RGB"), "PNG"), _file(few, format_)


def _with_exif(image: Image.Image) -> tuple[bytes, bytes]:
    bare = _file(image, "JPEG", quality=90)
    return bare, bare[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(_EXIF)) + _EXIF + bare[2:]


def _decoded(image: Image.Image) -> tuple[bytes, bytes]:
    jpeg = _file(image, "JPEG", quality=90)
    return jpeg, _file(Image.open(io.BytesIO(jpeg)), "PNG")


def _saved_again(image: Image.Image) -> tuple[bytes, bytes]:
    jpeg = _file(image, "JPEG", quality=90)
    return jpeg, _file(Image.open(io.BytesIO(jpeg)), "JPEG", quality=85)


def _large(image: Image.Image, rewriting: Rewriting) -> tuple[bytes, bytes]:
    return rewriting(image.resize(LARGE))


def _in_16_bits(image: Image.Image) -> tuple[bytes, bytes]:
    grey = image.convert("L")
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 256 + 7)
    return _file(grey, "PNG"), _file(deep, "PNG")


def _half_empty(image: Image.Image) -> tuple[bytes, bytes]:
    """Its left half white, or transparent."""
    left = Image.new("L", (image.width // 2, image.height))
    right, cut, white = Image.new("L", image.size, 255), image.copy(), Image.new("RGB", image.size, "white")
    right.paste(left)
    cut.putalpha(right)
    white.paste(image, mask=right)
    return _file(white, "PNG"), _file(cut, "PNG")


def _in_another_profile(image: Image.Image) -> tuple[bytes, bytes]:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    return _file(image, "PNG"), _file(image, "PNG", icc_profile=profile)


def _with_more(image: Image.Image, format_: str) -> tuple[bytes, bytes]:
    """Alone, and as the first of two pictures."""
    first = image.quantize(200) if format_ == "GIF" else image
    second = first.transpose(Image.Transpose.ROTATE_180)
    return _file(first, format_), _file(first, format_, save_all=True, append_images=[second])


def _with_a_pixel_changed(image: Image.Image) -> tuple[bytes, bytes]:
    changed, middle = image.copy(), (image.width // 2, image.height // 2)
    red, *others = changed.getpixel(middle)  # type: ignore[misc]  # of RGB, it is a tuple
    changed.putpixel(middle, (red ^ 1, *others))
    return _file(image, "PNG"), _file(changed, "PNG")


EQUAL: dict[str, Rewriting] = {
    "an equal file under another name": partial(_saved, format_="PNG"),
    "PNG, compressed less": partial(_saved, format_="PNG", compress_level=1),
    "PNG → BMP": partial(_saved, format_="BMP"),
    "PNG → TIFF": partial(_saved, format_="TIFF"),
    "PNG → TIFF, LZW": partial(_saved, format_="TIFF", compression="tiff_lzw"),
    "PNG → lossless WebP": partial(_saved, format_="WEBP", lossless=True),
    "PNG of 200 colours → PNG with a palette": partial(_of_few_colours, format_="PNG"),
    "PNG of 200 colours → GIF": partial(_of_few_colours, format_="GIF"),
    "JPEG, EXIF added or removed": _with_exif,
    "JPEG of 3000 × 2000, EXIF added or removed": partial(_large, rewriting=_with_exif),
    "JPEG → PNG of its pixels": _decoded,
    "JPEG of 3000 × 2000 → PNG of its pixels": partial(_large, rewriting=_decoded),
}
"""Both files show the same pixels."""

UNEQUAL: dict[str, Rewriting] = {
    "8 and 16 bits": _in_16_bits,
    "a white and a transparent half": _half_empty,
    "another colour profile": _in_another_profile,
    "TIFF, a second page": partial(_with_more, format_="TIFF"),
    "GIF, a second frame": partial(_with_more, format_="GIF"),
    "one pixel, by one level": _with_a_pixel_changed,
    "one pixel of 3000 × 2000, by one level": partial(_large, rewriting=_with_a_pixel_changed),
    "JPEG, saved again": _saved_again,
    "JPEG of 3000 × 2000, saved again": partial(_large, rewriting=_saved_again),
}
"""One file shows or holds something that the other does not."""
