"""The kinds of files, told apart by their first bytes and never by name. Knows no decoder and reads no files."""

from __future__ import annotations

import struct
import tarfile
from enum import Enum

HEAD = 512  # bytes that `kind_of` needs: one tar header


class Kind(Enum):
    """The kind of a file; the value is its name for people."""

    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WebP"
    GIF = "GIF"
    BMP = "BMP"
    TIFF = "TIFF"
    ZIP = "zip"
    TAR = "tar"
    GZIP = "gzip"
    OTHER = "other"

    @property
    def is_archive(self) -> bool:
        return self in (Kind.ZIP, Kind.TAR, Kind.GZIP)

    @property
    def is_picture(self) -> bool:
        return not self.is_archive and self is not Kind.OTHER


_BEGINNINGS = {
    b"\xff\xd8\xff": Kind.JPEG,
    b"\x89PNG\r\n\x1a\n": Kind.PNG,
    b"GIF87a": Kind.GIF,
    b"GIF89a": Kind.GIF,
    b"II*\0": Kind.TIFF,
    b"MM\0*": Kind.TIFF,
    b"II+\0": Kind.TIFF,  # BigTIFF, as the next
    b"MM\0+": Kind.TIFF,
    b"PK\x03\x04": Kind.ZIP,
    b"PK\x05\x06": Kind.ZIP,  # without members
    b"\x1f\x8b": Kind.GZIP,
}
_BMP_HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)

# Files that people put by mistake, named in the rejection: (offset, bytes, name).
_UNREADABLE = (
    (0, b"%PDF", "a PDF document"),
    (4, b"ftyphei", "a HEIC picture: save it as JPEG"),
    (4, b"ftypmif1", "a HEIF picture: save it as JPEG"),
    (4, b"ftypavif", "an AVIF picture: save it as PNG"),
    (4, b"ftyp", "a video"),
    (4, b"jP  ", "a JPEG 2000 picture: save it as PNG"),
    (4, b"JXL ", "a JPEG XL picture: save it as PNG"),
    (0, b"\xff\x0a", "a JPEG XL picture: save it as PNG"),
    (0, b"8BPS", "a Photoshop document: save it as PNG"),
    (0, b"\0\0\1\0", "an icon: save it as PNG"),
    (0, b"<svg", "an SVG drawing: save it as PNG"),
    (0, b"BZh", "bzip2 data: pack it as zip or tar.gz"),
    (0, b"\xfd7zXZ\0", "xz data: pack it as zip or tar.gz"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data: pack it as zip or tar.gz"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive: pack it as zip or tar.gz"),
    (0, b"Rar!", "a RAR archive: pack it as zip or tar.gz"),
)
READABLE = "JPEG, PNG, WebP, GIF, BMP, TIFF, zip, tar, tar.gz or STL-10"


def kind_of(head: bytes) -> Kind:
    """The kind of the file that begins with `head`, its first HEAD bytes (fewer if it is shorter)."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Kind.WEBP
    if head[:2] == b"BM" and len(head) >= 18 and struct.unpack_from("<I", head, 14)[0] in _BMP_HEADER_SIZES:
        return Kind.BMP
    return Kind.TAR if is_tar_header(head[:HEAD]) else Kind.OTHER


def is_tar_header(block: bytes) -> bool:
    """Whether a block of 512 bytes is a tar header. Old tars have no magic number, but every header has a checksum."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def why_unreadable(head: bytes) -> str:
    """The reason for rejecting a file of the kind OTHER, for the user."""
    if not head:
        return "the file is empty"
    for offset, mark, name in _UNREADABLE:
        if head.startswith(mark, offset):
            return name
    return f"neither {READABLE}, whatever its name says"
