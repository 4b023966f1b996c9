import hashlib
import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageCms

from stages.decode.decoders import BadPicture
from stages.decode.perceptual_hash import perceptual_hash
from stages.decode.picture_normaliser import PictureIdentity, normalise, picture_id, reframe
from stages.record.file_kinds import HEAD, FileKind, kind_of
from stages.record.framing import CROP, PAD, Framing, PictureSquare, Pixels, unpadded
from tests.example_counts import examples
from tests.stages.decode.drawn_scenes import SIDE, encode, scene
from tests.stages.orientations import exif, stored


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG that Pillow cannot write, by hand. rows: packed samples, each row after its filter byte."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def read(data: bytes, side: int = SIDE) -> Pixels:
    """The middle square."""
    return normalise(data, kind_of(data[:HEAD]), Framing(side, CROP)).framed.pixels


def whole(data: bytes, side: int = SIDE) -> PictureSquare:
    """The whole picture, padded."""
    return normalise(data, kind_of(data[:HEAD]), Framing(side, PAD)).framed


def over_white(rgba: Pixels) -> Pixels:
    alpha = rgba[..., 3:].astype(float) / 255
    mixed: Pixels = (rgba[..., :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)
    return mixed


def grey(levels: Pixels) -> Pixels:
    return np.repeat(levels[..., None], 3, axis=2)


RGB = scene()
LEVELS = scene()[..., 1]
RGBA = scene(bands=4)
PICTURE = Image.fromarray(RGB)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("PNG", {"compress_level": 0}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "tiff_adobe_deflate"}),
        ("TIFF", {"big_tiff": True}),
        ("WEBP", {"lossless": True}),
    ],
)
def test_lossless_formats_keep_the_pixels(kind: str, options: dict[str, Any]) -> None:
    assert np.array_equal(read(encode(PICTURE, kind, **options)), RGB)


MODES = {
    "PNG": ["1", "L", "LA", "P", "RGB", "RGBA"],
    "BMP": ["1", "L", "P", "RGB", "RGBA"],
    "TIFF": ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"],
    "GIF": ["1", "L", "LA", "P", "RGB", "RGBA"],
    "JPEG": ["1", "L", "RGB", "CMYK", "YCbCr"],
    "WEBP": ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"],
}


@pytest.mark.parametrize(("kind", "mode"), [(kind, mode) for kind, modes in MODES.items() for mode in modes])
def test_every_mode_of_a_format_is_converted_as_the_eye_sees_it(kind: str, mode: str) -> None:
    picture = Image.fromarray(RGBA).convert(mode) if mode in ("LA", "RGBA") else PICTURE.convert(mode)
    data = encode(picture, kind)
    expected = over_white(np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")))
    assert np.abs(read(data).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bit_grey_keeps_its_whites(kind: str) -> None:
    wide = LEVELS.astype(np.uint16) * 257
    assert np.array_equal(read(encode(Image.fromarray(wide), kind)), grey(LEVELS))


def test_16_bit_tiffs_of_either_byte_order_and_with_white_as_zero() -> None:
    wide = LEVELS.astype(np.uint16) * 257
    for order, photometric, expected in (("<", 1, LEVELS), (">", 1, LEVELS), ("<", 0, np.uint8(255) - LEVELS)):
        data = tiff16(wide.astype(f"{order}u2"), order, photometric)
        assert np.array_equal(read(data), grey(expected))
    with pytest.raises(BadPicture, match="of an unusual kind: save it as PNG"):
        read(tiff16(wide.astype(">u2"), ">", 0))


def tiff16(samples: np.ndarray[Any, np.dtype[Any]], order: str, photometric: int) -> bytes:
    """A 16-bit greyscale TIFF written by hand: one strip, behind the directory."""
    height, width = samples.shape
    short, long = 3, 4
    tags = [
        *((256, long, width), (257, long, height), (258, short, 16), (259, short, 1), (262, short, photometric)),
        *((273, long, 8 + 2 + 9 * 12 + 4), (277, short, 1), (278, long, height), (279, long, samples.nbytes)),
    ]
    entries = b"".join(
        struct.pack(f"{order}HHI", tag, kind, 1)
        + (struct.pack(f"{order}HH", value, 0) if kind == short else struct.pack(f"{order}I", value))
        for tag, kind, value in tags
    )
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(f"{order}IH", 8, len(tags)) + entries + bytes(4) + samples.tobytes()


def test_16_bit_colour_and_alpha_in_png() -> None:
    wide = (RGBA.astype(np.uint16) * 257).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in wide)
    assert np.abs(read(png(SIDE, SIDE, 16, 6, rows)).astype(int) - over_white(RGBA)).max() <= 1
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(wide[..., :3]))
    assert np.array_equal(read(png(SIDE, SIDE, 16, 2, rows)), RGBA[..., :3])


@pytest.mark.parametrize(
    ("depth", "colour", "pixel", "key"),
    [
        (1, 0, b"\xff", struct.pack(">H", 1)),
        (2, 0, b"\xaa", struct.pack(">H", 2)),
        (4, 0, b"\x77", struct.pack(">H", 7)),
        (8, 0, b"\x11", struct.pack(">H", 0x11)),
        (16, 0, b"\x12\x34", struct.pack(">H", 0x1234)),
        (8, 2, b"\x11\x22\x33", struct.pack(">HHH", 0x11, 0x22, 0x33)),
        (16, 2, b"\x12\x34\x12\x34\x00\x01", struct.pack(">HHH", 0x1234, 0x1234, 1)),
    ],
)
def test_a_transparent_colour_is_white_at_every_depth(depth: int, colour: int, pixel: bytes, key: bytes) -> None:
    samples = 3 if colour == 2 else 1
    row = b"\0" + pixel * (8 * depth * samples // 8 // len(pixel))
    assert (read(png(8, 8, depth, colour, row * 8, (b"tRNS", key)), 8) == 255).all()
    if depth > 1:
        assert (read(png(8, 8, depth, colour, row * 8), 8) != 255).all()


def test_transparent_palettes_lie_over_white() -> None:
    palette = PICTURE.quantize(16)
    for kind in ("PNG", "GIF"):
        data = encode(palette, kind, transparency=3)
        expected = np.where((np.asarray(palette) == 3)[..., None], 255, np.asarray(palette.convert("RGB")))
        assert np.array_equal(read(data), expected)


def test_only_the_first_frame_counts() -> None:
    second = Image.new("RGB", PICTURE.size, "red")
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {}), ("TIFF", {})):
        still = encode(PICTURE, kind, **options)
        moving = encode(PICTURE, kind, save_all=True, append_images=[second], **options)
        assert len(moving) > len(still)
        assert np.array_equal(read(moving), read(still))


def test_a_jpeg_of_several_pictures_is_its_first() -> None:
    several = encode(PICTURE, "MPO", save_all=True, append_images=[Image.new("RGB", PICTURE.size)])
    assert kind_of(several) is FileKind.JPEG
    assert np.array_equal(read(several), read(encode(PICTURE, "JPEG")))
    # The index of the pictures damaged: still a good JPEG.
    assert np.array_equal(read(several.replace(b"MPF\0", b"MPF\0\xff\xff", 1)), read(encode(PICTURE, "JPEG")))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
def test_the_exif_orientation_is_applied(kind: str, orientation: int) -> None:
    upright = scene(120, 80)
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {"quality": 95} if kind == "JPEG" else {}
    data = encode(stored(upright, orientation), kind, exif=exif(orientation), **options)
    expected = read(encode(Image.fromarray(upright), "PNG"))
    difference = np.abs(read(data).astype(int) - expected)
    assert difference.mean() < 2 if kind == "JPEG" else difference.max() == 0
    assert whole(data).size == (96, 64)
    difference = np.abs(whole(data).pixels.astype(int) - whole(encode(Image.fromarray(upright), "PNG")).pixels)
    assert difference.mean() < 2 if kind == "JPEG" else difference.max() == 0


def test_damaged_exif_does_not_spoil_the_pixels() -> None:
    data = encode(PICTURE, "JPEG", exif=b"Exif\0\0MM\0*\0\0\xff\xffgarbage")
    assert np.array_equal(read(data), read(encode(PICTURE, "JPEG")))


@pytest.mark.parametrize(("width", "height"), [(96, 96), (300, 96), (96, 301), (1000, 700), (7, 5), (1, 1), (5000, 1)])
def test_any_size_is_cropped_to_its_middle_square(width: int, height: int) -> None:
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    picture = np.zeros((height, width, 3), np.uint8)
    picture[top : top + side, left : left + side] = (10, 200, 90)
    pixels = read(encode(Image.fromarray(picture), "PNG"))
    assert pixels.shape == (SIDE, SIDE, 3)
    assert (pixels == (10, 200, 90)).all()


@pytest.mark.parametrize(
    ("width", "height", "size"),
    [
        (96, 96, (96, 96)),
        (300, 100, (96, 32)),
        (100, 300, (32, 96)),
        (1000, 700, (96, 67)),
        (7, 5, (96, 69)),
        (1, 1, (96, 96)),
        (10_000, 1, (96, 1)),
        (1, 10_000, (1, 96)),
    ],
)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_any_size_is_scaled_whole_and_its_borders_colour_fills_the_square(
    kind: str, width: int, height: int, size: tuple[int, int]
) -> None:
    rows, columns = np.mgrid[0:height, 0:width]
    ramp = np.stack([rows * 255 / max(1, height - 1), columns * 255 / max(1, width - 1), 0 * rows], axis=-1)
    picture = Image.fromarray(ramp.astype(np.uint8))
    framed = whole(encode(picture, kind, **({"subsampling": 0, "quality": 95} if kind == "JPEG" else {})))
    assert framed.size == size
    assert framed.pixels.shape == (SIDE, SIDE, 3)
    plain = np.asarray(picture.resize(size, Image.Resampling.LANCZOS)).astype(int)
    assert np.abs(unpadded(framed) - plain).mean() < 4
    scaled = unpadded(framed)
    border = np.ones(scaled.shape[:2], bool)
    border[1:-1, 1:-1] = False
    rest = np.ones((SIDE, SIDE), bool)
    left, top = (SIDE - size[0]) // 2, (SIDE - size[1]) // 2
    rest[top : top + size[1], left : left + size[0]] = False
    assert (np.abs(framed.pixels[rest] - scaled[border].mean(axis=0)) <= 0.5).all()


def test_shrinking_is_close_to_plain_lanczos_for_large_pictures_of_any_format() -> None:
    large = Image.fromarray(scene(1700, 1500)).crop((100, 0, 1600, 1500))
    plain = np.asarray(large.resize((SIDE, SIDE), Image.Resampling.LANCZOS)).astype(int)
    for kind, options in (("PNG", {}), ("JPEG", {"quality": 95}), ("JPEG", {"quality": 95, "progressive": True})):
        assert np.abs(read(encode(large, kind, **options)) - plain).mean() < 1
        assert np.abs(whole(encode(large, kind, **options)).pixels - plain).mean() < 1


@pytest.mark.parametrize("fit", [PAD, CROP])
def test_pictures_already_decoded_are_framed_alike(fit: str) -> None:
    several = [RGB, RGB[::-1], np.rot90(RGB)]
    for side in (SIDE, 64, 200):
        for pixels, found in zip(several, reframe(np.stack(several), Framing(side, fit)), strict=True):
            png = encode(Image.fromarray(np.ascontiguousarray(pixels)), "PNG")
            alone = normalise(png, FileKind.PNG, Framing(side, fit), shown=True)
            assert np.array_equal(found.framed.pixels, alone.framed.pixels)
            assert (found.framed.size, found.size, found.coded) == (alone.framed.size, alone.size, alone.coded)
            assert found.identity == PictureIdentity(picture_id(alone.framed), perceptual_hash(unpadded(alone.framed)))


def test_one_picture_has_one_id_in_every_lossless_format() -> None:
    files = [encode(PICTURE, kind) for kind in ("PNG", "BMP", "TIFF")] + [encode(PICTURE, "WEBP", lossless=True)]
    square = PictureSquare(RGB, (SIDE, SIDE))
    assert {picture_id(whole(data)) for data in files} == {picture_id(square)}
    assert {picture_id(PictureSquare(read(data), (SIDE, SIDE))) for data in files} == {picture_id(square)}


def test_the_id_never_changes() -> None:
    content = b"lookalike-picture-2\0" + bytes([0, 0, 0, 96, 0, 0, 0, 96, 0, 0, 0, 96, 0, 0, 0, 64]) + RGB.tobytes()
    assert picture_id(PictureSquare(RGB, (96, 64))) == hashlib.sha256(content).hexdigest()
    flat = [np.zeros((2, 2, 3), np.uint8), np.zeros((1, 4, 3), np.uint8)]
    assert picture_id(PictureSquare(flat[0], (1, 1))) != picture_id(PictureSquare(flat[1], (1, 1)))


def test_pictures_that_differ_only_in_their_padding_have_different_ids() -> None:
    """Their squares are equal, but not their thumbnails."""
    stripes = Image.fromarray(RGB[:, :48])
    narrow = whole(encode(stripes, "PNG"))
    wide = whole(encode(Image.fromarray(narrow.pixels), "PNG"))
    assert np.array_equal(narrow.pixels, wide.pixels)
    assert (narrow.size, wide.size) == ((48, 96), (96, 96))
    assert picture_id(narrow) != picture_id(wide)


FILES = {
    "jpeg": encode(PICTURE, "JPEG"),
    "progressive jpeg": encode(PICTURE, "JPEG", progressive=True),
    "png": encode(PICTURE, "PNG"),
    "webp": encode(PICTURE, "WEBP"),
    "gif": encode(PICTURE, "GIF"),
    "bmp": encode(PICTURE, "BMP"),
    "tiff": encode(PICTURE, "TIFF"),
    "lzw tiff": encode(PICTURE, "TIFF", compression="tiff_lzw"),
    "heic": encode(PICTURE, "HEIF"),
    "avif": encode(PICTURE, "AVIF"),
    "jpeg 2000": encode(PICTURE, "JPEG2000"),
}


@given(st.sampled_from(sorted(FILES)), st.floats(0.02, 0.95))
def test_truncated_pictures_are_refused_as_such(name: str, part: float) -> None:
    data = FILES[name]
    with pytest.raises(
        BadPicture, match=r"^damaged or truncated \w+( 2000)? picture(, or of an unusual kind: save it as PNG)?$"
    ):
        whole(data[: int(len(data) * part)])


@given(st.sampled_from(sorted(FILES)), st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=20))
@settings(max_examples=examples(250), deadline=None)
def test_no_bytes_raise_anything_but_bad_picture(name: str, changes: list[tuple[float, int]]) -> None:
    data = bytearray(FILES[name])
    for place, value in changes:
        data[int(place * len(data))] = value
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(normalise(bytes(data), kind_of(FILES[name]), Framing(SIDE, PAD)).framed.pixels.tobytes())
        except BadPicture as failure:
            outcomes.append(str(failure).encode())
    assert outcomes[0] == outcomes[1]  # no memory addresses, no randomness


def test_pixel_bombs_are_refused_by_their_stated_size() -> None:
    flat = Image.new("L", (64, 64))
    huge = struct.pack("<HH", 60_000, 60_000)
    gif = encode(flat, "GIF")
    bmp = encode(flat, "BMP")
    jpeg = encode(flat, "JPEG")
    start = jpeg.index(b"\xff\xc0") + 5
    bombs = {
        "PNG": png(60_000, 60_000, 1, 0, b""),
        "GIF": gif[:6] + huge + gif[10:],
        "BMP": bmp[:18] + struct.pack("<ii", 60_000, 60_000) + bmp[26:],
        "JPEG": jpeg[:start] + struct.pack(">HH", 60_000, 60_000) + jpeg[start + 4 :],
        "TIFF": encode(Image.new("1", (12_000, 12_000)), "TIFF", compression="group4"),
    }
    most = "1?2?[01]0,000,000(, or 400,000,000 in small strips or tiles)?"
    for kind, data in bombs.items():
        with pytest.raises(BadPicture, match=f"pixels: a {kind} picture may have at most {most}$"):
            read(data)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_samples_without_a_white_are_refused(mode: str) -> None:
    with pytest.raises(BadPicture, match="no defined white: save it with 8 or 16 bits"):
        read(encode(PICTURE.convert(mode), "TIFF"))


def test_lab_is_refused() -> None:
    lab = ImageCms.profileToProfile(
        PICTURE, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert lab is not None
    with pytest.raises(BadPicture, match=r"CIE L\*a\*b\*"):
        read(encode(lab, "TIFF"))
