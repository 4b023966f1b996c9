"""Pictures: their decoders, the scans of a JPEG, previews in RAW files, kinds told apart by first bytes."""

import io
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

import numpy as np
import pi_heif  # noqa: F401  registers HEIC's decoder with Pillow
import pillow_heif
import pytest
from PIL import Image

from stages.decode import jpeg_scans, raw_preview
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise, picture_id
from stages.record.file_kinds import HEAD, FileKind, kind_of, why_unreadable
from stages.record.framing import Framing
from tests.fuzz.target import Target
from tests.stages import raw_files

_FORMATS = {
    FileKind.JPEG: "JPEG",
    FileKind.PNG: "PNG",
    FileKind.WEBP: "WEBP",
    FileKind.GIF: "GIF",
    FileKind.BMP: "BMP",
    FileKind.TIFF: "TIFF",
    FileKind.HEIC: "HEIF",
    FileKind.AVIF: "AVIF",
    FileKind.JPEG_2000: "JPEG2000",
}
_MOST_PIXELS = 1 << 18
"""Larger pictures are decoded no further than their size: their limits have tests of their own."""
_FRAMINGS = (Framing(16, "pad"), Framing(16, "crop"))


def during(pixels: int) -> nullcontext[None]:
    """Refuses to decode what would take long."""
    if pixels > _MOST_PIXELS:
        raise BadPicture("too large to be decoded here")
    return nullcontext()


def _decode(kind: FileKind, data: bytes) -> None:
    """The framing, and whether all or a region is decoded, depend on the length, so that each has its share."""
    framing, region = _FRAMINGS[len(data) % 2], (0.25, 0.0, 1.0, 0.5) if len(data) % 3 == 0 else None
    try:
        found = normalise(data, kind, framing, region, during, shown=True)
    except BadPicture as reason:
        assert str(reason)
        with pytest.raises(BadPicture):
            normalise(data, kind, framing, region, during)
        return
    # What is told of a file beside its pixels never changes these.
    assert np.array_equal(found.framed.pixels, normalise(data, kind, framing, region, during).framed.pixels)
    assert len(found.facts.pixels) in (0, 32)
    assert found.framed.pixels.shape == (framing.side, framing.side, 3)
    assert min(found.size) > 0
    assert found.thumbnail.startswith(b"\xff\xd8") or region is not None
    assert found.facts.taken == "" or len(found.facts.taken) == len("2026-01-31T12:00:00")
    for name in (found.facts.camera, found.facts.lens):
        assert len(name) <= 80 and (not name or name.isprintable())
    assert (found.facts.latitude is None) == (found.facts.longitude is None)
    assert found.facts.latitude is None or (
        abs(found.facts.latitude) <= 90 and abs(found.facts.longitude or 0.0) <= 180
    )
    assert len(picture_id(found.framed)) == 64


def _scans(data: bytes) -> None:
    """The number of scans is that of a walk without expressions for the two kinds of places."""
    found = jpeg_scans.count(data)
    assert 0 <= found <= jpeg_scans.at_most(data)
    assert found == _walked(data)


def _walked(data: bytes) -> int:
    found, at = 0, 2  # behind the marker that begins a JPEG
    while 0 <= (at := data.find(b"\xff", at)) < len(data) - 1:
        while data[at : at + 1] == b"\xff":
            at += 1
        code, at = data[at : at + 1], at + 1
        if code == b"\xd9":
            break
        if not code or code == b"\0" or code == b"\1" or b"\xd0" <= code <= b"\xd8":
            continue
        if code == b"\xda":
            found += 1
        at += max(2, int.from_bytes(data[at : at + 2], "big"))
    return found


def _raw(data: bytes) -> None:
    raw_preview.is_raw(data)
    found = raw_preview.preview(data)
    assert found is None or (found.jpeg.startswith(b"\xff\xd8\xff") and data.endswith(found.jpeg))


def _kind(data: bytes) -> None:
    head = data[:HEAD]
    if kind_of(head) is FileKind.OTHER:
        assert why_unreadable(head)


def picture(kind: FileKind, mode: str = "RGB", **options: object) -> bytes:
    """A small picture as a file of that kind."""
    drawn = Image.linear_gradient("L").resize((24, 18)).convert(mode)
    file = io.BytesIO()
    if kind is FileKind.HEIC:
        pillow_heif.from_pillow(drawn).save(file, quality=50)
    else:
        drawn.save(file, _FORMATS[kind], **options)
    return file.getvalue()


def _exif() -> bytes:
    exif = Image.Exif()
    exif[274] = 6
    exif.get_ifd(34665)[36867] = "2026:01:31 12:00:00"
    return exif.tobytes()


def _seeds(kind: FileKind) -> Iterator[bytes]:
    yield picture(kind)
    if kind is FileKind.JPEG:
        yield picture(kind, progressive=True)
        yield picture(kind, "L", exif=_exif(), restart_marker_blocks=2)
        yield picture(kind, "CMYK")
    elif kind in (FileKind.PNG, FileKind.TIFF, FileKind.WEBP):
        yield picture(kind, "RGBA", exif=_exif())
        yield picture(kind, "L")
    elif kind in (FileKind.GIF, FileKind.BMP):
        yield picture(kind, "P")
        yield picture(kind, "1")
    if kind is FileKind.TIFF:
        for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
            yield picture(kind, compression=compression)


def _raws() -> Iterator[bytes]:
    preview = picture(FileKind.JPEG)
    file = raw_files.Tiff()
    place = file.put(preview)
    file.directory(
        {raw_files.STRIP: place, raw_files.LENGTH: len(preview), raw_files.ORIENTATION: 6, raw_files.DNG_VERSION: 1}
    )
    file.directory({raw_files.PHOTOMETRIC: raw_files.CFA, raw_files.STRIP: 8})
    yield bytes(file.content)
    yield b"FUJIFILMCCD-RAW " + bytes(20) + preview


def _jpegs() -> Iterator[bytes]:
    yield from _seeds(FileKind.JPEG)
    yield b"\xff\xd8\xff\xda\0\2ab\xff\0\xff\xd0c\xff\xda\0\2\xff\xd9"


def _all() -> Iterator[bytes]:
    for kind in _FORMATS:
        yield picture(kind)[: HEAD // 4]
    yield from (
        b"%PDF-1.4",
        b"\xef\xbb\xbf<?xml ?><svg>",
        b"PK\3\4",
        b"\x1f\x8b\x08",
        b"\0\0\0\x18ftypmif1\0\0\0\0avif",
    )


_JPEG_WORDS = (b"\xff\xd8", b"\xff\xda\0\2", b"\xff\xd9", b"\xff\0", b"\xff\xd0", b"\xff\x01", b"\xff\xff")


def _decoder(kind: FileKind) -> Target:
    run: Callable[[bytes], None] = partial(_decode, kind)
    return Target(kind.name.lower().replace("_", "-"), run, partial(_seeds, kind), longest=4096)


TARGETS = (
    *map(_decoder, _FORMATS),
    Target("raw-decoder", partial(_decode, FileKind.RAW), _raws, _JPEG_WORDS),
    Target("raw-previews", _raw, _raws, _JPEG_WORDS, 2048),
    Target("jpeg-scans", _scans, _jpegs, _JPEG_WORDS, 1024),
    Target("kinds", _kind, _all, (b"ftyp", b"mif1", b"heic", b"<svg", b"<!--"), HEAD),
)
