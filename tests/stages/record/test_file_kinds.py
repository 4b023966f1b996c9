import io
import tarfile
import zipfile

import pillow_heif
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from stages.record.file_kinds import HEAD, READABLE, FileKind, kind_of, why_unreadable

pillow_heif.register_heif_opener()


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("JPEG", FileKind.JPEG),
        ("PNG", FileKind.PNG),
        ("WEBP", FileKind.WEBP),
        ("GIF", FileKind.GIF),
        ("BMP", FileKind.BMP),
        ("TIFF", FileKind.TIFF),
        ("MPO", FileKind.JPEG),
        ("HEIF", FileKind.HEIC),
        ("AVIF", FileKind.AVIF),
        ("JPEG2000", FileKind.JPEG_2000),
    ],
)
def test_pictures_are_recognised_by_their_bytes(written: str, kind: FileKind) -> None:
    file = io.BytesIO()
    Image.new("RGB", (9, 9)).save(file, written)
    assert kind_of(file.getvalue()[:HEAD]) is kind
    assert kind.is_picture
    assert not kind.is_archive


@pytest.mark.parametrize(
    ("brands", "kind"),
    [
        (b"heic\0\0\0\0mif1heic", FileKind.HEIC),
        (b"mif1\0\0\0\0mif1heic", FileKind.HEIC),
        (b"mif1\0\0\0\0mif1avifmiaf", FileKind.AVIF),
        (b"avis\0\0\0\0msf1iso8", FileKind.AVIF),
        (b"mif1\0\0\0\0mif1", FileKind.HEIC),  # the decoder says that it cannot read what is inside
        (b"crx \0\0\0\1crx isom", FileKind.RAW),
        (b"isom\0\0\0\0heic", FileKind.OTHER),
    ],
)
def test_files_of_boxes_are_told_apart_by_their_brands(brands: bytes, kind: FileKind) -> None:
    head = (8 + len(brands)).to_bytes(4, "big") + b"ftyp" + brands
    assert kind_of(head + b"\0\0\0\x10heicavif") is kind


@pytest.mark.parametrize("head", [b"II*\0\x10\0\0\0CR\2\0", b"FUJIFILMCCD-RAW 0201", b"IIU\0", b"IIRO\x08", b"MMOR\0"])
def test_raw_files_of_their_own_kinds_are_recognised(head: bytes) -> None:
    assert kind_of(head) is FileKind.RAW


def test_a_name_in_a_tar_is_not_a_brand() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a/b_ftyp.jpg"))
    assert file.getvalue()[4:8] == b"ftyp"
    assert kind_of(file.getvalue()[:HEAD]) is FileKind.TAR


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_are_recognised_by_their_bytes(dialect: int) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=dialect) as archive:
        archive.addfile(tarfile.TarInfo("é.jpg"))
    assert kind_of(file.getvalue()[:HEAD]) is FileKind.TAR
    old = bytearray(file.getvalue()[:HEAD])  # from before tar had magic bytes
    old[257:265] = bytes(8)
    old[148:156] = b"%06o\0 " % (sum(old[:148]) + 8 * 32 + sum(old[156:]))
    assert kind_of(bytes(old)) is FileKind.TAR
    assert kind_of(b"x" + file.getvalue()[: HEAD - 1]) is FileKind.OTHER


def test_zips_are_recognised_by_their_bytes_even_without_members() -> None:
    for names in ((), ("a",)):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(name, b"")
        assert kind_of(file.getvalue()[:HEAD]) is FileKind.ZIP


@given(st.binary(max_size=HEAD))
def test_any_bytes_have_a_kind_or_a_reason(head: bytes) -> None:
    if kind_of(head) is FileKind.OTHER:
        assert why_unreadable(head)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", "the file is empty"),
        (b"%PDF-1.7", "a PDF document: save its pages as PNG"),
        (b'<svg xmlns="http://www.w3.org/2000/svg">', "an SVG drawing: save it as PNG"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- by Inkscape -->\n<svg', "an SVG drawing: save it as PNG"),
        (b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"', "an SVG drawing: save it as PNG"),
        (b'<?xml version="1.0"?>\n<html>', f"neither {READABLE}"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0heic", "a video: save single frames as PNG"),
        (b"\0\0\0\x18ftypav", "a damaged or truncated picture or video"),
        (b"FOVb\1\0\4\0", "a RAW picture of Sigma's: save it as JPEG"),
        (b"BZh91AY", "bzip2 data: pack it as zip or tar.gz"),
        (b"BMW and other cars", f"neither {READABLE}"),
        (bytes(HEAD), f"neither {READABLE}"),
    ],
)
def test_known_kinds_of_other_files_are_named(head: bytes, reason: str) -> None:
    assert kind_of(head) is FileKind.OTHER
    assert why_unreadable(head).startswith(reason)
