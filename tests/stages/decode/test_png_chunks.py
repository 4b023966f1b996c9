"""Damaged, large and unknown descriptions in a PNG do not keep its pixels from being read; damaged pixels do."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from stages.decode import png_chunks
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise
from stages.record.file_kinds import FileKind
from stages.record.framing import CROP, Framing, Pixels
from tests.example_counts import examples
from tests.stages.decode.drawn_scenes import SIDE, scene
from tests.stages.orientations import exif

PICTURE = scene(SIDE, SIDE, bands=4)
ANCILLARY = [b"tEXt", b"zTXt", b"iTXt", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"pHYs", b"tIME", b"eXIf", b"sBIT", b"prVt"]


def png(bands: int = 3) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PICTURE[..., :bands]).save(file, "PNG")
    return file.getvalue()


def chunk(name: bytes, content: bytes, damage: int = 0) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content) ^ damage)


def read(data: bytes) -> Pixels:
    return normalise(data, FileKind.PNG, Framing(SIDE, CROP)).framed.pixels


def packed(size: int) -> bytes:
    return zlib.compress(bytes(size))


@pytest.mark.parametrize("place", [33, -12], ids=["before the pixels", "behind them"])
@pytest.mark.parametrize(
    "added",
    [
        chunk(b"tEXt", b"Comment\0" + bytes(3 << 20)),
        chunk(b"zTXt", b"Comment\0\0" + packed(3 << 20)),
        chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + packed(3 << 20)),
        chunk(b"iCCP", b"large\0\0" + packed(3 << 20)),
        chunk(b"iCCP", b"no end"),
        chunk(b"tEXt", b"Comment\0text", damage=1),
        chunk(b"gAMA", b"\0\0\xb1\x8f", damage=1),
        chunk(b"gAMA", b"\0\0"),
        chunk(b"pHYs", b"\0\0"),
        chunk(b"cHRM", b"\0" * 31),
        chunk(b"eXIf", b"MM\0*", damage=1),
        chunk(b"zTXt", b"Comment\0\7method"),
    ],
)
def test_descriptions_never_keep_pixels_from_being_read(added: bytes, place: int) -> None:
    good = png()
    assert np.array_equal(read(good[:place] + added + good[place:]), read(good))


@given(st.sampled_from(ANCILLARY), st.binary(max_size=60), st.booleans(), st.sampled_from([33, -12]))
@settings(max_examples=examples(200), deadline=None)
def test_any_content_of_a_description_leaves_a_picture(name: bytes, content: bytes, right: bool, place: int) -> None:
    good = png()
    assert read(good[:place] + chunk(name, content, damage=not right) + good[place:]).shape == (SIDE, SIDE, 3)


def test_a_transparent_colour_of_the_wrong_length_or_checksum_is_left_out() -> None:
    good = png()
    for added in (chunk(b"tRNS", b"\0"), chunk(b"tRNS", bytes(6), damage=1)):
        assert np.array_equal(read(good[:33] + added + good[33:]), read(good))


def test_damaged_pixels_are_refused() -> None:
    good = png()
    place = good.index(b"IDAT")
    for damaged in (good[: place + 40], good[: place + 20] + b"\0\0\0\0" + good[place + 24 :]):
        with pytest.raises(BadPicture, match="damaged or truncated PNG"):
            read(damaged)


def test_what_pixels_and_dates_depend_on_is_kept_and_a_plain_file_is_itself() -> None:
    plain = png(bands=4)
    assert png_chunks.readable(plain) is plain
    turned = exif(6).tobytes().removeprefix(b"Exif\0\0")
    kept = [chunk(b"gAMA", struct.pack(">I", 100_000)), chunk(b"eXIf", turned)]
    kept.append(chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(b"\nexif\n 4\n" + turned.hex().encode())))
    file = plain[:33] + b"".join([*kept, chunk(b"tEXt", b"Title\0of no use")]) + plain[33:]
    assert png_chunks.readable(file) == plain[:33] + b"".join(kept) + plain[33:]
    for each in kept[1:]:
        turns = read(plain[:33] + each + plain[33:])
        assert np.array_equal(turns, np.rot90(read(plain), 3))


def test_too_many_chunks_are_refused() -> None:
    good = png()
    assert np.array_equal(read(good[:33] + chunk(b"prVt", b"") * 10_000 + good[33:]), read(good))
    with pytest.raises(BadPicture, match="damaged or truncated PNG"):
        read(good[:33] + chunk(b"prVt", b"") * 100_001 + good[33:])
