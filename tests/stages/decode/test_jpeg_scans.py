import io

import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from stages.decode import jpeg_scans
from stages.decode.decoders import BadPicture
from stages.decode.picture_normaliser import normalise
from stages.record.file_kinds import FileKind
from stages.record.file_limits import MAX_JPEG_SCANNED_PIXELS
from stages.record.framing import PAD, Framing
from tests.example_counts import examples

FRAMING = Framing(32, PAD)


def progressive(size: tuple[int, int], more: int = 0, exif: bytes = b"") -> bytes:
    """A progressive JPEG of 10 scans whose last scan is there so many times more."""
    file = io.BytesIO()
    Image.new("RGB", size, "teal").save(file, "JPEG", progressive=True, exif=exif)
    data = file.getvalue()
    last, end = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
    return data[:end] + data[last:end] * more + data[end:]


def baseline(**options: object) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((200, 100), 80).save(file, "JPEG", **options)
    return file.getvalue()


@given(st.integers(0, 300))
@settings(max_examples=examples(30), deadline=None)
def test_every_scan_counts(more: int) -> None:
    assert jpeg_scans.count(progressive((16, 16), more)) == 10 + more


@pytest.mark.parametrize("data", [baseline(), baseline(restart_marker_rows=1), baseline(restart_marker_blocks=1)])
def test_a_baseline_picture_has_one_scan_with_or_without_restarts(data: bytes) -> None:
    assert jpeg_scans.count(data) == 1


def test_thumbnails_and_pictures_behind_the_end_do_not_count() -> None:
    thumbnail = b"Exif\0\0" + progressive((16, 16), 30)
    data = progressive((16, 16), 5, thumbnail)
    assert jpeg_scans.count(data + progressive((16, 16), 30)) == 15
    assert jpeg_scans.at_most(data) == 55


@given(st.binary(max_size=300) | st.binary(max_size=60).map(lambda data: b"\xff\xd8\xff\xda" + data))
@settings(max_examples=examples(300), deadline=None)
def test_any_bytes_are_counted_and_never_above_the_bound(data: bytes) -> None:
    assert 0 <= jpeg_scans.count(data) <= jpeg_scans.at_most(data)


def test_a_picture_of_too_many_scans_is_rejected_before_it_is_decoded() -> None:
    side = 4096
    most = MAX_JPEG_SCANNED_PIXELS // side**2
    data = progressive((side, side), most - 9)
    with pytest.raises(BadPicture, match=rf"^a JPEG picture of {most + 1:,} scans: one of this size may have at most"):
        normalise(data, FileKind.JPEG, FRAMING)
    assert normalise(progressive((1000, 1000), 90), FileKind.JPEG, FRAMING).size == (1000, 1000)


def test_a_picture_of_as_many_scans_in_its_thumbnail_is_decoded() -> None:
    side = 4096
    many = MAX_JPEG_SCANNED_PIXELS // side**2
    data = progressive((side, side), 0, b"Exif\0\0" + progressive((16, 16), many))
    assert jpeg_scans.at_most(data) * side**2 > MAX_JPEG_SCANNED_PIXELS
    assert normalise(data, FileKind.JPEG, FRAMING).size == (side, side)


@pytest.mark.parametrize(
    "before",
    [
        b"\xff" * 100_000,
        b"\0" * 100_000,
        b"\xff\xe0\0\2" * 6_000,
        b"\xff\xfe\0\2" * 6_000,
        b"\xff\0" * 50_000,
        b"\xff\x01" * 50_000,
    ],
    ids=["padding", "zeros", "segments", "comments", "escaped", "bare markers"],
)
def test_headers_that_keep_a_decoder_busy_are_refused(before: bytes) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    good = file.getvalue()
    jpeg_scans.check_headers(good)
    for data in (good[:2] + before + good[2:], good[:2] + before):
        with pytest.raises(ValueError, match="before the first scan"):
            jpeg_scans.check_headers(data)


def test_headers_of_real_files_are_not_refused() -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", icc_profile=bytes(4 << 20), comment=b"\xff" * 60_000)
    jpeg_scans.check_headers(file.getvalue())


@pytest.mark.parametrize("end", [b"", b"\0", b"\xd0"])
def test_a_long_run_is_looked_at_once(end: bytes) -> None:
    """Once for each of its bytes would take hours."""
    data = progressive((16, 16))
    place = data.rfind(b"\xff\xda") + 20
    run = b"\xff" * (8 << 20) + end
    assert jpeg_scans.count(data[:place] + run) == 10
    assert jpeg_scans.count(data[:2] + run + data[2:]) in (0, 10)
