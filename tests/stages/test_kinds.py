import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from stages.kinds import HEAD, Kind, kind_of, why_unreadable


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("JPEG", Kind.JPEG),
        ("PNG", Kind.PNG),
        ("WEBP", Kind.WEBP),
        ("GIF", Kind.GIF),
        ("BMP", Kind.BMP),
        ("TIFF", Kind.TIFF),
        ("MPO", Kind.JPEG),
    ],
)
def test_pictures_are_recognised_by_their_bytes(written: str, kind: Kind) -> None:
    file = io.BytesIO()
    Image.new("RGB", (9, 9)).save(file, written)
    assert kind_of(file.getvalue()[:HEAD]) is kind
    assert kind.is_picture
    assert not kind.is_archive


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_are_recognised_by_their_bytes(dialect: int) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=dialect) as archive:
        archive.addfile(tarfile.TarInfo("é.jpg"))
    assert kind_of(file.getvalue()[:HEAD]) is Kind.TAR
    old = bytearray(file.getvalue()[:HEAD])  # from before tar had magic bytes
    old[257:265] = bytes(8)
    old[148:156] = b"%06o\0 " % (sum(old[:148]) + 8 * 32 + sum(old[156:]))
    assert kind_of(bytes(old)) is Kind.TAR
    assert kind_of(b"x" + file.getvalue()[: HEAD - 1]) is Kind.OTHER


def test_zips_are_recognised_by_their_bytes_even_without_members() -> None:
    for names in ((), ("a",)):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(name, b"")
        assert kind_of(file.getvalue()[:HEAD]) is Kind.ZIP


@given(st.binary(max_size=HEAD))
def test_any_bytes_have_a_kind_or_a_reason(head: bytes) -> None:
    if kind_of(head) is Kind.OTHER:
        assert why_unreadable(head)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", "the file is empty"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\0\0\0\x18ftypheic", "a HEIC picture: save it as JPEG"),
        (b"\0\0\0\x18ftypmp42", "a video"),
        (b"BZh91AY", "bzip2 data: pack it as zip or tar.gz"),
        (b"BMW and other cars", "neither JPEG, PNG, WebP, GIF, BMP, TIFF, zip, tar, tar.gz or STL-10"),
        (bytes(HEAD), "neither JPEG, PNG, WebP, GIF, BMP, TIFF, zip, tar, tar.gz or STL-10"),
    ],
)
def test_known_kinds_of_other_files_are_named(head: bytes, reason: str) -> None:
    assert kind_of(head) is Kind.OTHER
    assert why_unreadable(head).startswith(reason)
