"""The hash of a picture's pixels at full size, by which files are exact copies that differ in bytes.

Two files with one hash decode to equal pixels in all that a file of their kind can hold. Where that cannot be told from
what a decoder gives, as of several frames, deeper samples or data behind a picture, there is no hash, and only equal
bytes are exact copies. Knows the decoders' pictures, no files and no ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from PIL import Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from stages.decode import jpeg_scans
from stages.decode.colour_profiles import ColourConversion

_DIGITS = 32  # hexadecimal, of a sha256
_STRIP = 256  # rows at a time, so that a large picture is not in memory twice
_WHOLE = (BmpImageFile, GifImageFile, JpegImageFile, PngImageFile, TiffImageFile, WebPImageFile)
_COLOURS = frozenset(("1", "L", "LA", "P", "PA", "RGB", "RGBA"))  # modes that RGBA can hold
_DEPTH, _BELOW, _LAYERS = 258, 330, 37724  # TIFF: bits of a sample, directories below this one, Photoshop's layers
_MOST_PRIVATE = 1024  # bytes of PNG's private chunks: macOS writes few into each screenshot, Fireworks all its layers

_START_OF_SCAN = 0xDA
_METADATA = frozenset((*range(0xE0, 0xEE), 0xEF, 0xFE))  # of JPEG: all but Adobe's segment, which names the colours


def is_whole(picture: ImageFile.ImageFile) -> bool:
    """Whether a decoder gives all that an opened file holds in pixels; to be asked before it decodes."""
    try:
        if not isinstance(picture, _WHOLE) or getattr(picture, "is_animated", False):
            return False
        if isinstance(picture, TiffImageFile):
            held = picture.tag_v2
            return max(held.get(_DEPTH, (1,))) <= 8 and _BELOW not in held and _LAYERS not in held
    except Exception:  # what lies behind the picture is damaged: the picture itself may be good
        return False
    return not any(";16" in str(tile.args) for tile in picture.tile)


def pixel_hash(
    data: bytes,
    picture: ImageFile.ImageFile,
    upright: Image.Image,
    turn: Image.Transpose | None,
    scaled: bool,
    colours: ColourConversion | None,
) -> str:
    """The hash, 32 hex digits, of an opened file that is whole; "" if only its bytes tell what it shows.

    data: the file. picture: opened, and by now decoded. upright: its pixels, turned by `turn`. scaled: whether they are
    decoded at a smaller scale, as those of large JPEGs. Such a file is compared by what its decoder reads: its metadata
    do not count, but a file that holds the same pixels in another way has another hash. colours: what makes sRGB of its
    samples.
    """
    if isinstance(picture, PngImageFile) and sum(len(each[1]) for each in picture.private_chunks) > _MOST_PRIVATE:
        return ""
    if _behind(data, picture).strip(b"\0"):
        return ""
    coded = _coded(data) if isinstance(picture, JpegImageFile) else []
    if coded is None:
        return ""
    parts: Iterable[bytes]
    digest = hashlib.sha256(colours.digest if colours else b"")
    if scaled:
        digest.update(f"coded {turn}".encode())
        parts = coded
    elif mode := _canonical(upright):
        digest.update(f"{mode} {upright.size}".encode())
        parts = (strip.tobytes() for strip in _strips(upright, mode))
    else:
        return ""
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:_DIGITS]


def _behind(data: bytes, picture: ImageFile.ImageFile) -> bytes:
    """What lies behind a picture in its file, such as an archive; of JPEG see `_coded`."""
    if isinstance(picture, PngImageFile):
        return data[data.rfind(b"IEND") + 8 :]  # its name and checksum
    if isinstance(picture, WebPImageFile):
        return data[int.from_bytes(data[4:8], "little") + 8 :]
    return data[data.rfind(b";") + 1 :] if isinstance(picture, GifImageFile) else b""


def _canonical(picture: Image.Image) -> str:
    """The mode in which equal pictures have equal samples, whatever their own; "" if there is none."""
    if picture.mode not in _COLOURS:
        return "CMYK" if picture.mode == "CMYK" else ""
    return "RGBA" if picture.has_transparency_data and not _is_opaque(picture) else "RGB"


def _strips(picture: Image.Image, mode: str) -> Iterator[Image.Image]:
    for top in range(0, picture.height, _STRIP):
        strip = picture.crop((0, top, picture.width, min(top + _STRIP, picture.height)))
        yield strip if strip.mode == mode else strip.convert(mode)


def _is_opaque(picture: Image.Image) -> bool:
    return all(strip.getchannel("A").getextrema()[0] == 255 for strip in _strips(picture, "RGBA"))


def _coded(data: bytes) -> list[bytes] | None:
    """The parts of a JPEG that its decoder reads; None if its end is missing, or anything but zeros lies behind it, as
    a video or a second picture does."""
    parts: list[bytes] = []
    place = 2
    while data[place : place + 1] == b"\xff" and len(data) >= place + 4:
        code = data[place + 1]
        if code == 0xFF:  # padding
            place += 1
            continue
        if code == _START_OF_SCAN:
            end = data.find(jpeg_scans.END, place)
            return [*parts, data[place:end]] if end >= 0 and not data[end + 2 :].strip(b"\0") else None
        following = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        if code not in _METADATA:
            parts.append(data[place:following])
        place = following
    return None
