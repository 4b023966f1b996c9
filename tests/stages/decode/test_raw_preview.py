"""RAW files: which files are some, the preview that is taken, and its orientation."""

import contextlib
import io
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from stages.decode import raw_preview
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise
from stages.record.file_kinds import HEAD, FileKind, kind_of
from stages.record.framing import CROP, Framing, Pixels
from tests.example_counts import examples
from tests.stages import raw_files
from tests.stages.orientations import dated, shot_at, shot_with

SIDE = 96
ROWS, COLUMNS = np.mgrid[0:120, 0:160]
PICTURE = Image.fromarray(np.stack([COLUMNS, ROWS, 255 - COLUMNS], -1).astype(np.uint8))
TURNED = PICTURE.transpose(Image.Transpose.ROTATE_90)

OF_MAKERS = [raw_files.cr2, raw_files.nef, raw_files.dng, raw_files.rw2, raw_files.orf, raw_files.cr3]


def jpeg(picture: Image.Image = PICTURE, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", **options)
    return file.getvalue()


def read(data: bytes) -> Pixels:
    return normalise(data, kind_of(data[:HEAD]), Framing(SIDE, CROP)).framed.pixels


@pytest.mark.parametrize("write", OF_MAKERS)
def test_a_raw_file_is_its_preview(write: Callable[[bytes, int], bytes]) -> None:
    file = write(jpeg(), 1)
    assert kind_of(file[:HEAD]) in (FileKind.RAW, FileKind.TIFF)
    assert np.array_equal(read(file), read(jpeg()))
    assert np.array_equal(read(raw_files.raf(jpeg())), read(jpeg()))


@pytest.mark.parametrize("write", OF_MAKERS)
def test_the_files_own_orientation_counts_and_only_once(write: Callable[[bytes, int], bytes]) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    for preview in (jpeg(TURNED), jpeg(TURNED, exif=exif)):
        assert np.abs(read(write(preview, 6)).astype(int) - read(jpeg())).mean() < 2
    assert np.abs(read(raw_files.raf(jpeg(TURNED, exif=exif))).astype(int) - read(jpeg())).mean() < 2


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
@pytest.mark.parametrize("write", [raw_files.nef, raw_files.dng])
def test_a_preview_that_lies_where_the_samples_stand_is_not_turned_again(
    write: Callable[..., bytes], orientation: int
) -> None:
    lies, stands = ({raw_files.WIDTH: width, raw_files.HEIGHT: 10_000 - width} for width in (6000, 4000))
    assert np.array_equal(read(write(jpeg(PICTURE), orientation, size=stands)), read(jpeg(PICTURE)))
    assert not np.array_equal(read(write(jpeg(PICTURE), orientation, size=lies)), read(jpeg(PICTURE)))


@pytest.mark.parametrize("write", [raw_files.nef, raw_files.orf, raw_files.cr3])
def test_the_date_is_the_files_or_else_the_previews_and_the_size_the_previews(
    write: Callable[..., bytes],
) -> None:
    old = jpeg(exif=dated("2001:01:01 00:00:00"))
    found = [
        normalise(data, kind_of(data[:HEAD]), Framing(SIDE, CROP))
        for data in (
            write(old, 1, date=b"2019:08:04 16:30:12\0"),
            write(old, 6, date=b"0000:00:00 00:00:00\0"),
            write(old, 1),
            raw_files.raf(old),
        )
    ]
    assert [(each.size, each.facts.taken) for each in found] == [
        ((160, 120), "2019-08-04T16:30:12"),
        ((120, 160), "2001-01-01T00:00:00"),
        ((160, 120), "2001-01-01T00:00:00"),
        ((160, 120), "2001-01-01T00:00:00"),
    ]


def test_the_camera_is_the_files_or_else_the_previews() -> None:
    preview = jpeg(exif=shot_with("Sony", "DSC-W1"))
    names = (b"NIKON\0", b"NIKON D90\0\0"), (b"NIKON\0", b""), (b"", b"")
    files = [*(raw_files.nef(preview, 1, camera=each) for each in names), raw_files.cr3(preview, 1)]
    cameras = [normalise(data, kind_of(data[:HEAD]), Framing(SIDE, CROP)).facts.camera for data in files]
    assert cameras == ["NIKON D90", "NIKON", "Sony DSC-W1", "Sony DSC-W1"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_place_and_the_lens_are_the_files_or_else_the_previews(order: str) -> None:
    noted = shot_at(((1, 1), (30, 1), (0, 1)), ((2, 1), (0, 1), (0, 1)), lens="of the preview")
    gps: dict[int, int | bytes | list[int]] = {1: b"S\0", 2: [52, 1, 15, 1, 0, 1], 3: b"W\0", 4: [13, 1, 45, 2, 36, 1]}
    broken = {**gps, 4: [13, 1, 45, 0, 36, 1]}
    files = [
        raw_files.nef(jpeg(exif=noted), 1, order, date=b"2019:08:04 16:30:12\0", lens=lens, gps=place)
        for lens, place in ((b"NIKKOR 50mm f/1.8\0", gps), (b"", broken), (b"", {}))
    ]
    found = [normalise(data, kind_of(data[:HEAD]), Framing(SIDE, CROP)).facts for data in files]
    assert [(each.latitude, each.longitude, each.lens) for each in found] == [
        (-52.25, -13.385, "NIKKOR 50mm f/1.8"),
        (1.5, 2.0, "of the preview"),
        (1.5, 2.0, "of the preview"),
    ]
    assert {each.format for each in found} == {"RAW"}


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_largest_preview_is_taken(order: str) -> None:
    small = jpeg(Image.new("RGB", (160, 119), "red"))
    file = raw_files.nef(small + jpeg() + small, 1, order)
    assert np.array_equal(read(file), read(jpeg()))


def test_tiles_of_samples_are_no_preview() -> None:
    large = jpeg(Image.new("RGB", (400, 400), "red"))
    assert np.array_equal(read(raw_files.dng(jpeg(), 1, tile=large)), read(jpeg()))


@pytest.mark.parametrize("write", OF_MAKERS)
def test_a_raw_file_without_a_preview_is_refused(write: Callable[[bytes, int], bytes]) -> None:
    for nothing in (b"", jpeg()[:3], b"\xff\xd8\xff\xff" * 1000):
        with pytest.raises(BadPicture, match=r"^a RAW picture without a preview: save it as JPEG$"):
            read(write(nothing, 1))


@pytest.mark.parametrize("write", OF_MAKERS)
def test_a_damaged_preview_is_refused(write: Callable[[bytes, int], bytes]) -> None:
    file = write(jpeg(), 1)
    place = file.index(jpeg())
    with pytest.raises(BadPicture, match=r"^damaged or truncated (RAW|TIFF) picture"):
        read(file[: place + len(jpeg()) // 2])


def test_a_preview_of_too_many_pixels_is_refused() -> None:
    huge = bytearray(jpeg())
    frame = huge.index(b"\xff\xc0")
    huge[frame + 5 : frame + 9] = b"\xf0\0\xf0\0"
    with pytest.raises(BadPicture, match="a RAW picture may have at most 210,000,000$"):
        read(raw_files.nef(bytes(huge), 1))


def test_an_ordinary_tiff_is_not_raw() -> None:
    for picture in (PICTURE, PICTURE.convert("L"), PICTURE.convert("CMYK")):
        for compression in (None, "jpeg", "tiff_lzw"):
            file = io.BytesIO()
            picture.save(file, "TIFF", compression=compression)
            assert not raw_preview.is_raw(file.getvalue())


@given(st.sampled_from(OF_MAKERS), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=20))
@settings(max_examples=examples(60), deadline=None)
def test_any_bytes_are_a_picture_or_are_refused(
    write: Callable[[bytes, int], bytes], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(write(jpeg(), 1))
    for place, value in changes:
        data[place] = value
    for kind in (FileKind.RAW, FileKind.TIFF):
        with contextlib.suppress(BadPicture):
            assert normalise(bytes(data), kind, Framing(SIDE, CROP)).framed.pixels.shape == (SIDE, SIDE, 3)
