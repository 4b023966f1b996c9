"""HEIC, AVIF, JPEG 2000 and first frames: the right picture of a file, upright, with its colours, and no bombs."""

import base64
import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pillow_heif
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageSequence
from PIL.PngImagePlugin import PngInfo

from stages.decode import decoders
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise
from stages.record.file_kinds import HEAD, kind_of
from stages.record.file_limits import MAX_AVIF_PIXELS, MAX_HEIC_PIXELS, MAX_WHOLE_JPEG_2000_PIXELS
from stages.record.framing import CROP, Framing, Pixels
from stages.record.sources import LOSSLESS as LOSSLESS_CODING, PALETTE, Source
from tests.example_counts import examples
from tests.stages.decode import drawn_scenes
from tests.stages.decode.drawn_scenes import SIDE, scene
from tests.stages.orientations import dated, exif, shot_at, shot_with, stored

Fractions = Sequence[tuple[int, int]]
BERLIN = (52, 1), (31, 1), (699, 100)
SYDNEY_EAST = (151, 1), (12, 1), (55, 1)

LOSSLESS: dict[str, dict[str, Any]] = {
    "HEIF": {"quality": -1, "chroma": 444},
    "AVIF": {"quality": 100, "subsampling": "4:4:4"},
    "JPEG2000": {"irreversible": False},
}


def encode(picture: Image.Image, kind: str, **options: Any) -> bytes:
    return drawn_scenes.encode(picture, kind, **(LOSSLESS.get(kind, {}) | options))


def read(data: bytes, side: int = SIDE) -> Pixels:
    return normalise(data, kind_of(data[:HEAD]), Framing(side, CROP)).framed.pixels


def described(data: bytes) -> Source:
    """What is told of the file."""
    return normalise(data, kind_of(data[:HEAD]), Framing(SIDE, CROP)).facts


def difference(one: Pixels, other: Pixels) -> int:
    return int(np.abs(one.astype(int) - other).max())


PICTURE = Image.fromarray(scene())


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_modes_are_converted_as_the_eye_sees_them(kind: str, mode: str) -> None:
    picture = Image.fromarray(scene(bands=4)).convert(mode)
    seen = Image.new("RGBA", picture.size, "white")
    seen.alpha_composite(picture.convert("RGBA"))
    assert difference(read(encode(picture, kind)), np.asarray(seen.convert("RGB"))) <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["HEIF", "AVIF"])
def test_the_turn_of_a_box_is_applied_once_beside_the_same_exif(kind: str, orientation: int) -> None:
    upright = scene(120, 80)
    data = encode(stored(upright, orientation), kind, exif=exif(orientation).tobytes())
    assert (b"irot" in data or b"imir" in data) is (orientation != 1)
    assert difference(read(data), read(encode(Image.fromarray(upright), "PNG"))) <= 3


@pytest.mark.parametrize("kind", ["HEIF", "AVIF"])
def test_metadata_alone_turn_nothing(kind: str) -> None:
    """As HEIF demands: a program that turns the pixels may leave them as they were."""
    plain = encode(Image.fromarray(scene(120, 80)), kind, exif=exif(1).tobytes() + b"filler")
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="1"/></x:xmpmeta>'
    described = encode(Image.fromarray(scene(120, 80)), kind, xmp=xmp)
    turned = [described.replace(b'Orientation="1"', b'Orientation="6"')]
    if kind == "HEIF":  # Pillow removes EXIF's from what it writes as AVIF
        entry = struct.pack(">HHIH", 0x0112, 3, 1, 1)
        assert entry in plain
        turned.append(plain.replace(entry, entry[:-1] + b"\6"))
    for each in turned:
        assert difference(read(each), read(plain)) == 0


def test_ten_bits_are_eight() -> None:
    wide = scene().astype(np.uint16) * 257
    for mode, samples in (("RGB;16", wide), ("RGBA;16", np.dstack([wide, np.full((SIDE, SIDE), 65535, np.uint16)]))):
        file = io.BytesIO()
        made = pillow_heif.from_bytes(mode=mode, size=(SIDE, SIDE), data=samples.tobytes())
        made.save(file, quality=-1, chroma=444)
        assert difference(read(file.getvalue()), scene()) <= 3


def test_sixteen_bits_of_jpeg_2000_keep_their_whites() -> None:
    levels = scene()[..., 1]
    data = encode(Image.fromarray(levels.astype(np.uint16) * 257), "JPEG2000")
    assert difference(read(data), np.repeat(levels[..., None], 3, axis=2)) <= 1


COARSE = base64.b64decode(
    "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAIAAAACAAAwsHAAAAAAAPY29scgEAAAAAABIAAAJp"
    "anAyY/9P/1EALwAAAAAAIAAAACAAAAAAAAAAAAAAACAAAAAgAAAAAAAAAAAAAwsBAQsCAgsCAv9SAAwAAAABAAUEBAAB/1wAE0BgaGhwaGhw"
    "aGhwaGhwaGhw/2QAJQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAB4gAB/5PB+AEACE/B+AEACCPH7AQEP8P2"
    "AoPzAoP2AwRlBHgIgX+AgMP2B4PzBoD8AUAHodmeSdV/CfRMUUEECWiCiQ3D9gKAPnBQB9QEAwUHLwA/x/IHH8gc/2AAYAnefwiBPwLnP8P2"
    "DoPzDYH5hAAV/2H3gsJ570vMPSggvwxkDC0C5Mj31RD5F3sWA90sx3bbn8H5g0AfOFgB84QI8Mm9OzgEwhWHfwQwNj/P8BE/wEQ/kHAE8VYp"
    "3tF73wTFCcrUo9G/BC7kGdylx8P2FoPzFIH5hQAk2dvQT03VarVQrolX/diWXD6KzG0/AMgdBzw4DLOKMdalztwLcoDA878k3VBZcm3gsfl/"
    "wfmFQB84eAHzhRcryD1QzPNwLzIPFBHZtbuTFrBskAnP8CE/wIQ/kKAWq6o6fKqmn89U0t1YaRjzFqguQPt7qk/L49UZG8gpThauUCbT5H1f"
    "l3/D9g+D8xGB+YKAgv4OwmKOkCDFm/0d4uHHZ2p/S5TTkP8HO4gPCr6XJoeC/zwRv8H5hkAfOHgB84MhbgoEMaZzEZtD/38DeCUHYoi/JCxO"
    "z/AlH8hkP5BQJCHSAFJTPRMZ9917LXiWzp1/A3wHoWLn3VRP34OSJCwzpD//2Q=="
)
"""A JPEG 2000 that Pillow cannot write: 12 bits, YCbCr, with colours at half the width and height."""


def test_a_jpeg_2000_with_coarser_colours_and_more_bits_is_read() -> None:
    expected = np.empty((32, 32, 3), np.uint8)
    expected[:16], expected[16:] = (250, 30, 60), (20, 200, 90)
    expected[:, 16:] = 255 - expected[:, 16:]
    assert difference(read(COARSE, 32), expected) <= 3


def test_a_bare_code_stream_is_read() -> None:
    assert difference(read(encode(PICTURE, "JPEG2000", no_jp2=True)), scene()) <= 1


def test_the_primary_picture_of_several_is_taken() -> None:
    red = Image.new("RGB", (64, 64), "red")
    data = encode(red, "HEIF", save_all=True, append_images=[PICTURE, red], primary_index=1)
    assert difference(read(data), scene()) <= 3


def test_a_sequence_is_its_first_frame() -> None:
    moving = encode(PICTURE, "AVIF", save_all=True, append_images=[Image.new("RGB", (SIDE, SIDE), "red")] * 3)
    assert moving[8:12] == b"avis"
    assert difference(read(moving), scene()) <= 3


def partial_gif(transparent: bool) -> bytes:
    """A GIF of 8 × 8 whose first frame is the 4 × 4 in its middle, blue, on a palette that begins with red."""
    frame = Image.new("P", (8, 8), 2)
    frame.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3])
    data = encode(frame.crop((0, 0, 4, 4)), "GIF", optimize=False, **({"transparency": 3} if transparent else {}))
    start = data.index(b"\x2c\0\0\0\0\4\0\4\0")
    return data[:6] + struct.pack("<HH", 8, 8) + data[10:start] + b"\x2c\2\0\2\0" + data[start + 5 :]


@pytest.mark.parametrize("transparent", [True, False])
def test_the_canvas_beside_a_first_frame_is_white(transparent: bool) -> None:
    expected = np.full((8, 8, 3), 255)
    expected[2:6, 2:6] = (0, 0, 255)
    assert np.array_equal(read(partial_gif(transparent), 8), expected)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_its_first_frame_over_white(kind: str) -> None:
    first = Image.new("RGBA", (SIDE, SIDE), (0, 0, 255, 0))
    first.paste((10, 20, 250, 255), (20, 30, 60, 70))
    options: dict[str, Any] = {"lossless": True, "background": (255, 0, 0, 255)} if kind == "WEBP" else {}
    second = Image.new("RGBA", (SIDE, SIDE), "red")
    data = encode(first, kind, save_all=True, append_images=[second], disposal=2, **options)
    assert len(list(ImageSequence.Iterator(Image.open(io.BytesIO(data))))) == 2
    expected = np.full((SIDE, SIDE, 3), 255)
    expected[30:70, 20:60] = (10, 20, 250)
    assert difference(read(data), expected) <= 1


def stated(data: bytes, box: bytes, at: int, size: int) -> bytes:
    """The file with another size in a box."""
    place = data.index(box) + at
    return data[:place] + struct.pack(">II", size, size) + data[place + 8 :]


def test_bombs_are_refused_by_their_stated_size() -> None:
    bombs = {
        "HEIC": (stated(encode(PICTURE, "HEIF"), b"ispe", 8, 9000), MAX_HEIC_PIXELS),
        "AVIF": (stated(encode(PICTURE, "AVIF"), b"ispe", 8, 9000), MAX_AVIF_PIXELS),
        "JPEG 2000": (stated(encode(PICTURE, "JPEG2000"), b"ihdr", 4, 30_000), MAX_WHOLE_JPEG_2000_PIXELS),
    }
    for kind, (data, most) in bombs.items():
        with pytest.raises(
            BadPicture, match=rf"^\d+,000 × \d+,000 pixels: a\w? {kind} picture may have at most {most:,}$"
        ):
            read(data)


@pytest.mark.parametrize(
    ("kind", "most"), [("JPEG", "MAX_WHOLE_JPEG_PIXELS"), ("JPEG2000", "MAX_WHOLE_JPEG_2000_PIXELS")]
)
def test_larger_pictures_are_decoded_at_a_smaller_scale(kind: str, most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, most, 500_000)
    whole = Image.fromarray(scene(1600, 1200))
    data = encode(whole, kind)
    picture, _ = decoders.open_picture(data, kind_of(data[:HEAD])).load(least=whole.size)
    assert picture.size == (800, 600)
    assert np.abs(np.asarray(picture).astype(int) - scene(800, 600)).mean() < 3
    found = normalise(data, kind_of(data[:HEAD]), Framing(SIDE, CROP), region=(0.0, 0.5, 0.5, 1.0))
    assert found.size == whole.size
    region = whole.crop((100, 600, 700, 1200)).resize((SIDE, SIDE))
    assert np.abs(found.framed.pixels.astype(int) - np.asarray(region)).mean() < 3


def test_a_progressive_jpeg_has_the_limit_of_what_is_in_memory_whole() -> None:
    data = encode(PICTURE, "JPEG", progressive=True)
    start = data.index(b"\xff\xc2") + 5
    with pytest.raises(BadPicture, match="may have at most 210,000,000"):
        read(data[:start] + struct.pack(">HH", 20_000, 20_000) + data[start + 4 :])


@pytest.mark.parametrize(("kind", "box", "at"), [("HEIF", b"ispe", 8), ("JPEG2000", b"ihdr", 4)])
def test_a_file_that_states_another_size_than_its_picture_has_is_refused(kind: str, box: bytes, at: int) -> None:
    with pytest.raises(BadPicture, match="^damaged or truncated"):
        read(stated(encode(PICTURE, kind), box, at, 48))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_the_size_is_that_of_the_upright_picture_and_the_date_the_cameras(kind: str, orientation: int) -> None:
    data = encode(stored(scene(400, 200), orientation), kind, exif=dated("2019:08:04 16:30:12", orientation))
    found = described(data)
    assert (found.width, found.height, found.taken) == (400, 200, "2019-08-04T16:30:12")


@pytest.mark.parametrize("kind", ["GIF", "BMP", "JPEG2000", "JPEG"])
def test_a_picture_without_a_date_has_none(kind: str) -> None:
    found = described(encode(Image.fromarray(scene(160, 80)), kind))
    assert (found.width, found.height, found.taken) == (160, 80, "")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2019-08-04T16:30:12", "2019-08-04T16:30:12"),
        ("2019:08:04 16:30:12.25+02:00", "2019-08-04T16:30:12"),
        ("0000:00:00 00:00:00", ""),
        ("2019:02:30 16:30:12", ""),
        ("    :  :     :  :  ", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_a_date_that_is_not_valid_is_none(date: str, expected: str) -> None:
    assert described(encode(PICTURE, "JPEG", exif=dated(date))).taken == expected


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_the_camera_is_the_files_also_of_a_turned_picture(kind: str, orientation: int) -> None:
    data = encode(stored(scene(160, 80), orientation), kind, exif=shot_with("Sony", "DSC-W1", orientation))
    found = described(data)
    assert (found.width, found.height, found.camera) == (160, 80, "Sony DSC-W1")


@pytest.mark.parametrize(
    ("make", "model", "expected"),
    [
        ("Canon", "Canon EOS 5D", "Canon EOS 5D"),
        ("CANON", "Canon EOS 5D", "Canon EOS 5D"),
        ("NIKON CORPORATION", "NIKON D90", "NIKON CORPORATION NIKON D90"),
        ("  Leica \0\0\0", "\0 M8  \0", "Leica M8"),
        ("So\nny\x07", "A\x1b[31m7", "Sony A[31m7"),
        ("", "Pixel 7", "Pixel 7"),
        ("Nokia", "", "Nokia"),
        (" \0", "\t", ""),
        ("华为".encode(), b"P30", "华为 P30"),
        (b"Caf\xe9", b"X", "Café X"),
        ("a\u202eb".encode(), b"X", "ab X"),
        ("M" * 60_000, "X", "M" * 80),
        ("华".encode() * 20_000, b"", "华" * 80),
        ("M" * 79, "X", "M" * 79),
    ],
)
def test_the_name_of_a_camera_is_short_text_for_people(make: str | bytes, model: str | bytes, expected: str) -> None:
    assert described(encode(PICTURE, "JPEG", exif=shot_with(make, model))).camera == expected


@pytest.mark.parametrize("kind", ["GIF", "BMP", "JPEG2000", "JPEG"])
def test_a_picture_without_a_camera_has_none(kind: str) -> None:
    assert described(encode(PICTURE, kind)).camera == ""


def test_a_camera_that_is_no_text_is_none() -> None:
    numbers = shot_with(b"\7\0\0", b"\7\0\0", kind=3)
    assert described(encode(PICTURE, "JPEG", exif=numbers)).camera == ""


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_the_place_and_the_lens_are_the_files(kind: str, orientation: int) -> None:
    noted = shot_at(BERLIN, SYDNEY_EAST, lens="EF24-105mm f/4L IS USM", orientation=orientation)
    found = described(encode(stored(scene(160, 80), orientation), kind, exif=noted))
    assert (found.latitude, found.longitude, found.lens) == (52.5186083, 151.2152778, "EF24-105mm f/4L IS USM")


@pytest.mark.parametrize("kind", ["GIF", "BMP", "JPEG2000", "JPEG"])
def test_a_picture_without_a_place_or_a_lens_has_none(kind: str) -> None:
    found = described(encode(PICTURE, kind))
    assert (found.latitude, found.longitude, found.lens) == (None, None, "")


@pytest.mark.parametrize(
    ("latitude", "longitude", "hemispheres", "expected"),
    [
        (BERLIN, SYDNEY_EAST, "SW", (-52.5186083, -151.2152778)),
        (BERLIN, SYDNEY_EAST, "se", (-52.5186083, 151.2152778)),
        (((90, 1), (0, 1), (0, 1)), ((180, 1), (0, 1), (0, 1)), "SW", (-90.0, -180.0)),
        (((5251860, 100_000), (0, 1), (0, 1)), ((0, 1), (0, 1), (0, 1)), "NW", (52.5186, 0.0)),
        (((0, 1),) * 3, ((0, 1),) * 3, "NE", None),
        (((0, 0),) * 3, ((0, 0),) * 3, "NE", None),
        (BERLIN, ((13, 1), (24, 1), (1, 0)), "NE", None),
        (BERLIN, (), "NE", None),
        ((), SYDNEY_EAST, "NE", None),
        (BERLIN, SYDNEY_EAST, " E", None),
        (BERLIN, SYDNEY_EAST, "N ", None),
        (BERLIN, SYDNEY_EAST, "EN", None),
        (BERLIN, SYDNEY_EAST, "X\0", None),
        (((90, 1), (0, 1), (1, 1)), SYDNEY_EAST, "NE", None),
        (((91, 1), (0, 1), (0, 1)), SYDNEY_EAST, "NE", None),
        (BERLIN, ((180, 1), (1, 1), (0, 1)), "NE", None),
        (BERLIN, ((4_294_967_295, 1), (0, 1), (0, 1)), "NE", None),
        (BERLIN, ((13, 1), (61, 1), (0, 1)), "NE", None),
        (BERLIN, ((13, 1), (24, 1)), "NE", None),
        (BERLIN, ((13, 1),) * 4, "NE", None),
    ],
)
def test_a_place_is_on_earth_or_none(
    latitude: Fractions, longitude: Fractions, hemispheres: str, expected: tuple[float, float] | None
) -> None:
    found = described(encode(PICTURE, "JPEG", exif=shot_at(latitude, longitude, hemispheres)))
    assert (found.latitude, found.longitude) == (expected or (None, None))


def test_a_damaged_place_leaves_the_camera_and_the_date() -> None:
    data = encode(PICTURE, "JPEG", exif=shot_at(BERLIN, SYDNEY_EAST, lens="XF35"))
    order = "<" if b"II*" in data else ">"
    place = data.index(struct.pack(f"{order}H", 0x8825))
    found = described(data[: place + 8] + b"\xff\xff\xff\xff" + data[place + 12 :])
    assert (found.latitude, found.longitude, found.lens) == (None, None, "XF35")


def test_the_lens_is_short_text_for_people() -> None:
    assert described(encode(PICTURE, "JPEG", exif=shot_at((), (), lens="\n XF35 " + "m" * 100))).lens == (
        "XF35 " + "m" * 75
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *(("JPEG", "JPEG"), ("PNG", "PNG"), ("WEBP", "WebP"), ("GIF", "GIF"), ("BMP", "BMP"), ("TIFF", "TIFF")),
        *(("HEIF", "HEIC"), ("AVIF", "AVIF"), ("JPEG2000", "JPEG 2000"), ("PPM", "Netpbm"), ("TGA", "TGA")),
        *(("ICO", "ICO"), ("QOI", "QOI")),
    ],
)
def test_the_format_is_the_files_as_people_name_it(kind: str, expected: str) -> None:
    assert described(encode(PICTURE, kind)).format == expected


def test_damaged_metadata_are_no_date() -> None:
    data = encode(PICTURE, "JPEG", exif=dated("2019:08:04 16:30:12"))
    place = data.index(struct.pack("<H", 0x8769) if b"II*" in data else struct.pack(">H", 0x8769))
    assert described(data[: place + 8] + b"\xff\xff\xff\xff" + data[place + 12 :]).taken == ""


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_xmp_turns_no_picture(kind: str) -> None:
    said = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:Description xmlns:r="r" tiff:Orientation="6"/></x:xmpmeta>'
    data = encode(PICTURE, kind)
    if kind == "JPEG":
        segment = b"http://ns.adobe.com/xap/1.0/\0" + said
        data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]
    elif kind == "PNG":
        info = PngInfo()
        info.add_itxt("XML:com.adobe.xmp", said.decode())
        data = encode(PICTURE, kind, pnginfo=info)
    else:
        data = encode(PICTURE, kind, **({"tiffinfo": {700: said}} if kind == "TIFF" else {"xmp": said}))
    assert b'Orientation="6"' in data
    assert np.array_equal(read(data), read(encode(PICTURE, kind)))


@given(st.integers(0, 2**16), st.booleans(), st.sampled_from(["L", "RGB", "CMYK"]), st.integers(1, 400))
@settings(max_examples=examples(40), deadline=None)
def test_a_jpeg_that_lacks_its_end_alone_is_read_and_one_that_lacks_samples_refused(
    seed: int, progressive: bool, mode: str, missing: int
) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    whole = encode(Image.fromarray(noise).convert(mode), "JPEG", progressive=progressive, quality=85)
    assert whole.endswith(b"\xff\xd9")
    unended = whole[:-2]
    assert np.array_equal(read(unended), read(whole))
    try:
        found = read(unended[:-missing])
    except BadPicture as refusal:
        assert str(refusal) == "damaged or truncated JPEG picture"
    else:  # what is missing is no more than the bits that fill the last byte
        assert np.array_equal(found, read(whole))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PPM", "RGB"), ("PPM", "L"), ("PPM", "1"), ("QOI", "RGB"), ("QOI", "RGBA")]
    + [("TGA", mode) for mode in ("L", "LA", "P", "RGB", "RGBA")],
)
def test_plain_formats_keep_the_pixels(kind: str, mode: str) -> None:
    picture = Image.fromarray(scene(bands=4)).convert("RGB" if mode in ("1", "P") else mode).convert(mode)
    data = encode(picture, kind)
    assert np.array_equal(read(data), read(encode(picture, "PNG")))
    assert described(data).coding == (PALETTE if mode == "P" else LOSSLESS_CODING)


def test_tga_is_read_as_coded_and_from_either_edge() -> None:
    for options in ({"compression": "tga_rle"}, {"orientation": 1}, {"orientation": -1}):
        assert np.array_equal(read(encode(PICTURE, "TGA", **options)), np.asarray(PICTURE))


def test_netpbm_in_plain_text_with_comments_and_in_16_bits() -> None:
    grey = scene(bands=1)[..., 0]
    text = f"P2 # by hand\n# {SIDE} pixels\n{SIDE} {SIDE}\n255\n" + "\n".join(map(str, grey.ravel()))
    deep = b"P5 %d %d 65535\n" % (SIDE, SIDE) + (grey.astype(np.uint16) * 257).astype(">u2").tobytes()
    for data in (text.encode(), deep):
        assert np.array_equal(read(data), np.repeat(grey[..., None], 3, -1))


@pytest.mark.parametrize("inner", ["png", "bmp"])
def test_an_icon_is_its_largest_picture(inner: str) -> None:
    picture = Image.fromarray(scene(128, 128, bands=4))
    icon = encode(picture, "ICO", sizes=[(16, 16), (128, 128), (32, 32)], bitmap_format=inner)
    found = described(icon)
    assert (found.width, found.height) == (128, 128)
    assert difference(read(icon, 128), read(encode(picture, "PNG"), 128)) <= 1


def test_an_icon_that_states_another_size_or_has_no_picture_is_refused() -> None:
    icon = encode(PICTURE.resize((64, 64)), "ICO", sizes=[(64, 64)], bitmap_format="bmp")
    place = struct.unpack_from("<I", icon, 18)[0]
    bomb = icon[: place + 4] + struct.pack("<ii", 60_000, 120_000) + icon[place + 12 :]
    for data in (bomb, icon[:30], b"\0\0\1\0\0\0", icon[:4] + b"\xff\xff" + icon[6:22]):
        with pytest.raises(BadPicture, match="damaged or truncated"):
            read(data)
    large = encode(Image.new("L", (200, 200)), "PNG")
    bomb = large[:16] + struct.pack(">II", 60_000, 60_000) + large[24:29] + struct.pack(">I", zlib.crc32(large[12:16]))
    with pytest.raises(BadPicture):
        read(icon[:14] + struct.pack("<II", len(bomb), 22) + bomb)


@pytest.mark.parametrize("head", [b"P6 is a road\n", b"P5 12 twelve 255\n", b"PK", b"\0\0\2\0\1\0\x20\x20", b"\1\1\1"])
def test_what_only_begins_like_a_picture_is_none(head: bytes) -> None:
    assert not kind_of(head + bytes(600)).is_picture
