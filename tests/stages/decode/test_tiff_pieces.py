"""Large TIFF pictures, decoded in pieces: as if they were decoded whole and then shrunk."""

import io
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image
from PIL.TiffImagePlugin import AppendingTiffWriter, ImageFileDirectory_v2

from stages.decode import decoders, tiff_pieces
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise
from stages.record.file_kinds import FileKind
from stages.record.framing import Framing

MODES = ("RGB", "L", "1", "P", "RGBA", "CMYK", "I;16")
COMPRESSIONS = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits")
ORIENTATION, SUBFILE_TYPE = 274, 254

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every picture here is large, and few rows are decoded at a time."""
    monkeypatch.setattr(tiff_pieces, "MAX_PIXELS", 10)
    monkeypatch.setattr(decoders, "MAX_PIXELS", 10)
    monkeypatch.setattr(tiff_pieces, "_TOGETHER", 400)
    monkeypatch.setattr(tiff_pieces, "MAX_TIFF_PIECE_PIXELS", 2000)


def picture(mode: str, width: int, height: int, seed: int = 0) -> Image.Image:
    few = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), np.uint8)
    drawn = Image.fromarray(few).resize((width, height), Image.Resampling.BICUBIC)
    if mode == "I;16":
        return Image.fromarray(np.asarray(drawn.convert("L"), np.uint16) * 257)
    if mode == "RGBA":
        drawn.putalpha(Image.linear_gradient("L").resize(drawn.size))
    return drawn.convert(mode)


def in_strips(drawn: Image.Image, rows: int, compression: str, **tags: Any) -> bytes:
    file = io.BytesIO()
    line = -(-drawn.width * len(drawn.getbands()) * {"1": 1, "I;16": 16}.get(drawn.mode, 8) // 8)
    drawn.save(file, "TIFF", compression=compression, strip_size=rows * line, **tags)
    return file.getvalue()


def in_tiles(drawn: Image.Image, side: int) -> bytes:
    """Compressed tiles of RGB."""
    parts = [
        zlib.compress(drawn.crop((left, top, left + side, top + side)).tobytes())
        for top in range(0, drawn.height, side)
        for left in range(0, drawn.width, side)
    ]
    ifd = ImageFileDirectory_v2(b"II*\0\x08\0\0\0")
    found = {256: drawn.width, 257: drawn.height, 258: (8, 8, 8), 259: 8, 262: 2, 277: 3, 322: side, 323: side}
    for tag, value in (found | {324: tuple([1 << 20] * len(parts)), 325: tuple(map(len, parts))}).items():
        ifd.tagtype[tag] = 4
        ifd[tag] = value
    begin = 8 + len(ifd.tobytes(8))
    ifd[324] = tuple(begin + sum(map(len, parts[:at])) for at in range(len(parts)))
    return b"".join((b"II*\0\x08\0\0\0", ifd.tobytes(8), *parts))


def read(data: bytes, least: tuple[int, int]) -> Image.Image:
    found, turn = decoders.open_picture(data, FileKind.TIFF).load(least)
    assert turn is None
    return found


@given(
    mode=st.sampled_from(MODES),
    compression=st.sampled_from(COMPRESSIONS),
    size=st.tuples(st.integers(8, 60), st.integers(8, 60)),
    rows=st.integers(1, 30),
    factor=st.integers(1, 4),
    orientation=st.sampled_from([1, 1, 3, 6, 7]),
    big=st.booleans(),
)
@SLOW
def test_strips_are_shrunk_as_the_whole_picture(
    mode: str, compression: str, size: tuple[int, int], rows: int, factor: int, orientation: int, big: bool
) -> None:
    tags = {} if orientation == 1 else {"tiffinfo": {ORIENTATION: orientation}}
    drawn = picture(mode, *size)
    data = in_strips(drawn, rows, compression, big_tiff=big, **tags)
    least = -(-size[0] // factor), -(-size[1] // factor)
    exact = max(1, min(size[0] // least[0], size[1] // least[1]))
    found = read(data, least[::-1] if orientation in (6, 7) else least)
    reducible = drawn.convert(tiff_pieces._REDUCIBLE.get(mode, mode)).reduce(exact)
    turns = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE}
    expected = reducible if orientation == 1 else reducible.transpose(turns[orientation])
    assert (found.mode, found.size) == (expected.mode, expected.size)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_strips_of_jpeg_share_their_tables(mode: str) -> None:
    data = in_strips(picture(mode, 96, 80), 16, "jpeg")
    np.testing.assert_array_equal(np.asarray(read(data, (32, 20))), np.asarray(Image.open(io.BytesIO(data)).reduce(3)))


def test_tiles_that_are_larger_than_pieces_may_be_are_refused() -> None:
    with pytest.raises(BadPicture, match="in small strips or tiles"):
        decoders.open_picture(in_tiles(picture("RGB", 20, 20), 64), FileKind.TIFF)


@given(size=st.tuples(st.integers(20, 100), st.integers(20, 100)), factor=st.integers(1, 4))
@SLOW
def test_tiles_are_shrunk_as_the_whole_picture(size: tuple[int, int], factor: int) -> None:
    drawn = picture("RGB", *size)
    found = read(in_tiles(drawn, 16), (size[0] // factor, size[1] // factor))
    exact = max(1, min(each // (each // factor) for each in size))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(drawn.reduce(exact)))


def test_the_smallest_page_with_enough_pixels_is_read() -> None:
    file = io.BytesIO()
    with AppendingTiffWriter(file) as pages:
        for seed, side in enumerate((96, 48, 24)):
            reduced = {SUBFILE_TYPE: int(seed > 0)}
            picture("RGB", side, side, seed).save(
                pages, "TIFF", compression="tiff_lzw", strip_size=900, tiffinfo=reduced
            )
            pages.newFrame()
    data = file.getvalue()
    for least, seed, side in ((20, 2, 24), (24, 2, 24), (25, 1, 48), (90, 0, 96)):
        found = np.asarray(read(data, (least, least)))
        np.testing.assert_array_equal(found, np.asarray(picture("RGB", side, side, seed)))
    assert normalise(data, FileKind.TIFF, Framing(8, "pad"), shown=True).size == (96, 96)


def test_a_picture_is_normalised_as_if_it_were_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in MODES:
        data = in_strips(picture(mode, 240, 160), 4, "tiff_lzw")
        in_pieces = normalise(data, FileKind.TIFF, Framing(20, "pad"), shown=True)
        with monkeypatch.context() as usual:
            usual.setattr(tiff_pieces, "MAX_PIXELS", 10**8)
            usual.setattr(decoders, "MAX_PIXELS", 10**8)
            expected = normalise(data, FileKind.TIFF, Framing(20, "pad"), shown=True)
        assert (in_pieces.size, in_pieces.facts.encoder) == (expected.size, expected.facts.encoder)
        apart = np.abs(in_pieces.framed.pixels.astype(int) - expected.framed.pixels)
        assert apart.max() <= 3, mode


def test_what_cannot_be_decoded_in_pieces_is_refused_in_words() -> None:
    drawn = picture("RGB", 100, 300)
    large = in_strips(drawn, 300, "tiff_lzw")
    with pytest.raises(BadPicture, match="100 × 300 pixels: a TIFF picture may have at most 10, or .* in small strips"):
        decoders.open_picture(large, FileKind.TIFF)
    cut = in_strips(drawn, 8, "tiff_lzw")
    with pytest.raises(BadPicture, match="damaged or truncated TIFF picture"):
        normalise(cut[: len(cut) // 2], FileKind.TIFF, Framing(20, "pad"))
