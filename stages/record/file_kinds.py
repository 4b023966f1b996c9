"""The kinds of files, told apart by their first bytes and never by name. Knows no decoder and reads no files."""

from __future__ import annotations

import re
import struct
import tarfile
from enum import Enum

HEAD = 512  # bytes that `kind_of` needs: one tar header


class FileKind(Enum):
    """The kind of a file; the value is its name for people."""

    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WebP"
    GIF = "GIF"
    BMP = "BMP"
    TIFF = "TIFF"
    HEIC = "HEIC"
    AVIF = "AVIF"
    JPEG_2000 = "JPEG 2000"
    RAW = "RAW"  # a camera's; those that begin as any TIFF does are told apart by `stages.decode.raw_preview`
    NETPBM = "Netpbm"
    TGA = "TGA"
    ICO = "ICO"
    QOI = "QOI"
    ZIP = "zip"
    TAR = "tar"
    GZIP = "gzip"
    OTHER = "other"

    @property
    def is_archive(self) -> bool:
        return self in (FileKind.ZIP, FileKind.TAR, FileKind.GZIP)

    @property
    def is_picture(self) -> bool:
        return not self.is_archive and self is not FileKind.OTHER


_BEGINNINGS = {
    b"\xff\xd8\xff": FileKind.JPEG,
    b"\x89PNG\r\n\x1a\n": FileKind.PNG,
    b"GIF87a": FileKind.GIF,
    b"GIF89a": FileKind.GIF,
    b"II*\0": FileKind.TIFF,
    b"MM\0*": FileKind.TIFF,
    b"II+\0": FileKind.TIFF,  # BigTIFF, as the next
    b"MM\0+": FileKind.TIFF,
    b"\0\0\0\x0cjP  \r\n\x87\n": FileKind.JPEG_2000,
    b"\xff\x4f\xff\x51": FileKind.JPEG_2000,  # a bare code stream
    b"FUJIFILMCCD-RAW ": FileKind.RAW,  # RAF
    b"IIU\0": FileKind.RAW,  # Panasonic's RW2
    b"IIRO": FileKind.RAW,  # Olympus' ORF, as the next two
    b"IIRS": FileKind.RAW,
    b"MMOR": FileKind.RAW,
    b"\0\0\1\0": FileKind.ICO,
    b"qoif": FileKind.QOI,
    b"PK\x03\x04": FileKind.ZIP,
    b"PK\x05\x06": FileKind.ZIP,  # without members
    b"\x1f\x8b": FileKind.GZIP,
}
_NETPBM = re.compile(rb"P(?:[14](?:GAP\d+){2}|[2356](?:GAP\d+){3})\s".replace(b"GAP", rb"(?:\s|#.*\n)+"))
_TGA_HEADER = struct.Struct("<BBBHHBHHHHBB")
_TGA_OF_PALETTE = (1, 9)
_TGA_DEPTHS = {  # of a picture, by the way it is coded
    **dict.fromkeys(_TGA_OF_PALETTE, (8,)),
    **dict.fromkeys((2, 10), (15, 16, 24, 32)),
    **dict.fromkeys((3, 11), (8, 16)),
}
_BMP_HEADER_SIZES = (12, 40, 52, 56, 64, 108, 124)

# The brands in the first box of an ISO base media file. A container's brand says nothing about what it contains.
_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"), FileKind.HEIC),
    **dict.fromkeys((b"avif", b"avis"), FileKind.AVIF),
    b"crx ": FileKind.RAW,  # Canon's CR3
}
_BRAND_END = 12
_CONTAINERS = (b"mif1", b"msf1", b"miaf")

_EMPTY = "the file is empty"
# Files that people put by mistake, named in the rejection: (offset, bytes, name).
_DOCUMENTS = (
    (0, b"%PDF", "a PDF document: save its pages as PNG"),
    (0, b"\0\0\x08\x03", "pictures in the IDX format: `lookalike add` adds each of them"),
    (0, b"\0\0\x08\x01", "labels in the IDX format: `lookalike classify add` reads them beside their pictures"),
    (0, b"%!PS", "a PostScript document: save its pages as PNG"),
    (4, b"ftyp", "a video: save single frames as PNG"),
    (0, b"\x1a\x45\xdf\xa3", "a video: save single frames as PNG"),
)
_UNREADABLE = (
    *_DOCUMENTS,
    (4, b"JXL ", "a JPEG XL picture: save it as PNG"),
    (0, b"\xff\x0a", "a JPEG XL picture: save it as PNG"),
    (0, b"FOVb", "a RAW picture of Sigma's: save it as JPEG"),
    (6, b"HEAPCCDR", "an old RAW picture of Canon's: save it as JPEG"),
    (0, b"8BPS", "a Photoshop document: save it as PNG"),
    (0, b"BZh", "bzip2 data: pack it as zip or tar.gz"),
    (0, b"\xfd7zXZ\0", "xz data: pack it as zip or tar.gz"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data: pack it as zip or tar.gz"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive: pack it as zip or tar.gz"),
    (0, b"Rar!", "a RAR archive: pack it as zip or tar.gz"),
)
_SVG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<svg|<!DOCTYPE\s+svg|<(?:\?xml|!--).*<(?:svg|!DOCTYPE\s+svg))", re.DOTALL)
READABLE = (
    "JPEG, PNG, WebP, GIF, BMP, TIFF, HEIC, AVIF, JPEG 2000, camera RAW, Netpbm, TGA, ICO, QOI, zip, tar, tar.gz or "
    "STL-10"
)
_NONE_OF_THESE = f"neither {READABLE}, whatever its name says"
_NOT_PICTURES = frozenset((_EMPTY, _NONE_OF_THESE, *(reason for *_, reason in _DOCUMENTS)))
_PICTURE_NAME = re.compile(
    r"""\.(?:jpe?g|jpe|jf?if|thm|a?png|webp|gif|bmp|dib|tiff?|hei[cf]|hif|avif|jp2|j2[kc]|jp[xfc]|jxl|psd|svgz?
    |cr[23w]|nef|nrw|arw|sr[2fw]|dng|raf|rw[2l]|raw|orf|pef|3fr|fff|iiq|mos|mrw|erf|kdc|dcr|x3f|gpr
    |p[bgpnaf]m|tga|ico|cur|qoi|zip|tar|t?gz|t?bz2|t?xz|zst|7z|rar|bin)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""The name of a picture or of a file of many, also of a kind that is not read."""


def kind_of(head: bytes) -> FileKind:
    """The kind of the file that begins with `head`, its first HEAD bytes (fewer if it is shorter)."""
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind if kind is not FileKind.TIFF or head[8:10] != b"CR" else FileKind.RAW  # Canon's CR2
    if head[4:8] == b"ftyp" and (branded := _of_brands(head)):
        return branded
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return FileKind.WEBP
    if head[:2] == b"BM" and len(head) >= 18 and struct.unpack_from("<I", head, 14)[0] in _BMP_HEADER_SIZES:
        return FileKind.BMP
    if _NETPBM.match(head):
        return FileKind.NETPBM
    if is_tar_header(head[:HEAD]):
        return FileKind.TAR
    return FileKind.TGA if _is_tga(head) else FileKind.OTHER


def _is_tga(head: bytes) -> bool:
    """Whether a file begins with a header of TGA, which has no mark of its own: all of its fields must be possible."""
    if len(head) < _TGA_HEADER.size:
        return False
    _, palette, coding, first, colours, entry, _, _, width, height, depth, rest = _TGA_HEADER.unpack_from(head)
    if coding not in _TGA_DEPTHS or depth not in _TGA_DEPTHS[coding] or not width or not height or rest & 0xC0:
        return False
    if palette == 0:
        return coding not in _TGA_OF_PALETTE and not (first or colours or entry)
    return palette == 1 and colours > 0 and entry in (15, 16, 24, 32)


def _of_brands(head: bytes) -> FileKind | None:
    size = min(int.from_bytes(head[:4], "big"), len(head))
    major, *compatible = (head[at : at + 4] for at in (8, *range(16, size - 3, 4)))
    if major not in _CONTAINERS:
        return _BRANDS.get(major)
    return next((_BRANDS[brand] for brand in compatible if brand in _BRANDS), FileKind.HEIC)


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
        return _EMPTY
    if head[4:8] == b"ftyp" and len(head) < _BRAND_END:
        return "a damaged or truncated picture or video"
    for offset, mark, name in _UNREADABLE:
        if head.startswith(mark, offset):
            return name
    if _SVG.match(head):
        return "an SVG drawing: save it as PNG"
    return _NONE_OF_THESE


def has_picture_extension(name: str) -> bool:
    """Whether a file is called like a picture or a file of many."""
    return _PICTURE_NAME.search(name) is not None


def is_not_a_picture(name: str, reason: str) -> bool:
    """Whether a file that is rejected for this reason, see `why_unreadable`, is not a picture by its name either: a
    sidecar, a document, a video."""
    return reason in _NOT_PICTURES and not has_picture_extension(name)
