"""Files that an attacker, a bad disk or a strange program may put into a library, made from a seed."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pi_heif  # noqa: F401  registers HEIC's decoder with Pillow
import pillow_heif
from PIL import Image, PngImagePlugin

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "JPEG2000", "HEIF", "PPM", "TGA", "ICO", "QOI")
"""Those that lookalike reads, by Pillow's names."""

OTHERS = ("DDS", "DIB", "EPS", "ICNS", "MSP", "PCX", "PDF", "SGI", "SPIDER", "XBM")
"""Those that Pillow writes and lookalike refuses."""

_HUGE = (65_500, 60_000)
"""Pixels of a picture that no machine should decode."""


class HostileFile(NamedTuple):
    """A file. pictures: whether it may hold one, None if that is not known."""

    name: str
    content: bytes
    pictures: bool | None = None


def corpus(seed: int, each: int) -> Iterator[HostileFile]:
    """All kinds of hostile files. each: damaged variants of every format, of every kind of damage."""
    chance = random.Random(seed)
    good = {name: _picture(name) for name in FORMATS}
    for name, content in good.items():
        yield HostileFile(f"good.{name.lower()}", content, True)
        for number in range(each):
            yield HostileFile(f"cut-{number}.{name.lower()}", content[: chance.randrange(len(content))])
            yield HostileFile(f"flipped-{number}.{name.lower()}", _flipped(content, chance, 1 + number % 30))
            yield HostileFile(f"filled-{number}.{name.lower()}", _filled(content, chance))
            yield HostileFile(f"doubled-{number}.{name.lower()}", content + _flipped(content, chance, 3))
    for name in OTHERS:
        yield HostileFile(f"other.{name.lower()}", _other(name), False)
    yield from _pixel_bombs(good)
    yield from _metadata_bombs()
    yield from _polyglots(good)
    yield from _zips(good["PNG"])
    yield from _tars(good["PNG"])
    yield HostileFile("empty", b"", False)
    yield HostileFile("noise", chance.randbytes(5000), False)


def write(files: Iterator[HostileFile], into: Path) -> dict[str, HostileFile]:
    """Writes the files below a directory, with one of 4 GiB that takes no room; returns them by name."""
    found = {}
    for each in files:
        (into / each.name).write_bytes(each.content)
        found[each.name] = each
    with (into / "sparse.png").open("wb") as sparse:
        sparse.write(_picture("PNG")[:500])
        sparse.truncate(4 << 30)
    found["sparse.png"] = HostileFile("sparse.png", b"", False)
    return found


def _picture(name: str, size: tuple[int, int] = (120, 90)) -> bytes:
    file = io.BytesIO()
    picture = Image.linear_gradient("L").resize(size).convert("RGB")
    if name == "HEIF":
        pillow_heif.from_pillow(picture).save(file, quality=50)
    else:
        picture.save(file, name)
    return file.getvalue()


def _other(name: str) -> bytes:
    file, mode = io.BytesIO(), {"MSP": "1", "XBM": "1", "SPIDER": "F"}.get(name, "RGB")
    Image.linear_gradient("L").convert(mode).save(file, name)
    return file.getvalue()


def _flipped(content: bytes, chance: random.Random, bits: int) -> bytes:
    changed = bytearray(content)
    for _ in range(bits):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _filled(content: bytes, chance: random.Random) -> bytes:
    """With a run of one byte somewhere: the largest and the smallest numbers are in lengths and sizes then."""
    begin, length = chance.randrange(len(content)), chance.randrange(1, 40)
    return content[:begin] + bytes([chance.choice((0, 255, 127, 128))]) * length + content[begin + length :]


def _png(width: int, height: int, chunks: bytes, rows: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(rows or bytes(1 + 3 * width) * height, 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + chunks + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _pixel_bombs(good: dict[str, bytes]) -> Iterator[HostileFile]:
    """Small files that state billions of pixels."""
    width, height = _HUGE
    yield HostileFile("bomb.png", _png(width, height, b"", bytes(1000)), False)
    yield HostileFile("bomb.gif", b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + good["GIF"][13:], None)
    yield HostileFile("bomb.bmp", good["BMP"][:18] + struct.pack("<ii", width, height) + good["BMP"][26:], False)
    start = good["JPEG"].find(b"\xff\xc0")
    yield HostileFile(
        "bomb.jpeg", good["JPEG"][: start + 5] + struct.pack(">HH", height, width) + good["JPEG"][start + 9 :], False
    )
    for side in (2**31 - 1, -(2**31), 0):
        content = good["BMP"][:18] + struct.pack("<ii", side, side) + good["BMP"][26:]
        yield HostileFile(f"sides-{side}.bmp", content, False)
    yield HostileFile("thin.png", _png(1, 3_000_000, b"", bytes(4) * 3_000_000), True)
    yield HostileFile("scans.jpeg", _scans(6000), False)
    yield HostileFile("frames.gif", _frames(500), True)


def _scans(count: int) -> bytes:
    """A progressive JPEG with so many scans that change nothing."""
    file = io.BytesIO()
    Image.new("RGB", (2000, 2000), "teal").save(file, "JPEG", progressive=True)
    data = file.getvalue()
    last, end = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
    return data[:end] + data[last:end] * count + data[end:]


def _frames(count: int) -> bytes:
    file, first = io.BytesIO(), Image.new("P", (40, 40))
    first.save(file, "GIF", save_all=True, append_images=[Image.new("P", (40, 40), n % 256) for n in range(count)])
    return file.getvalue()


def _metadata_bombs() -> Iterator[HostileFile]:
    """Small descriptions that become large ones."""
    large = zlib.compress(bytes(200 << 20), 9)
    for kind, content in (
        (b"zTXt", b"Comment\0\0" + large),
        (b"iTXt", b"Comment\0\1\0\0\0" + large),
        (b"iCCP", b"profile\0\0" + large),
        (b"eXIf", b"MM\0*\0\0\0\x08" + b"\xff\xff" + bytes(20_000)),
    ):
        yield HostileFile(f"{kind.decode()}.png", _png(8, 8, _chunk(kind, content)))
    many = PngImagePlugin.PngInfo()
    for number in range(5000):
        many.add_text(f"key {number}", "x" * 200)
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG", pnginfo=many)
    yield HostileFile("texts.png", file.getvalue())
    loop = b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">HHHII", 1, 34665, 4, 1, 8) + b"\0\0\0\x08"
    for name, exif in (("loop", loop), ("noise", b"Exif\0\0II*\0\x08\0\0\0" + b"\xff" * 60_000)):
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, "JPEG", exif=exif)
        yield HostileFile(f"exif-{name}.jpeg", file.getvalue(), True)


def _polyglots(good: dict[str, bytes]) -> Iterator[HostileFile]:
    """Files that are two things at once."""
    packed = _zip({"inside.png": good["PNG"]})
    yield HostileFile("jpeg-and-zip", good["JPEG"] + packed, True)
    yield HostileFile("png-and-zip", good["PNG"] + packed, True)
    yield HostileFile("gif-and-script", b"GIF89a/*" + good["GIF"][8:] + b"*/=1;alert(1)")
    yield HostileFile("pdf-and-jpeg", b"%PDF-1.4\n" + good["JPEG"], False)
    yield HostileFile(
        "jpeg-in-riff", b"RIFF" + struct.pack("<I", len(good["JPEG"]) + 4) + b"WEBP" + good["JPEG"], False
    )


def _zip(files: dict[str, bytes], change: Callable[[zipfile.ZipInfo], None] = lambda _: None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            change(info)
            archive.writestr(info, content)
    return file.getvalue()


def _zips(png: bytes) -> Iterator[HostileFile]:
    yield HostileFile("good.zip", _zip({"a.png": png}), True)
    yield HostileFile("bomb.zip", _zip({f"{number}": bytes(120 << 20) for number in range(10)}), False)
    yield HostileFile("nested.zip", _zip({"inside.zip": _zip({"a.png": png})}), False)
    names = {"../up.png": png, "/absolute.png": png, "C:\\drive.png": png, "a/../../b.png": png, "x" * 60_000: png}
    yield HostileFile("names.zip", _zip(names))
    yield HostileFile("link.zip", _zip({"link": b"/etc/passwd"}, _linked), False)
    yield HostileFile("raw-names.zip", _zip({"abc.png": png}).replace(b"abc.png", b"\xff\xfe\x00.png"), None)
    whole = _zip({"a.png": png})
    yield HostileFile("cut.zip", whole[:-30], False)
    end = whole.rfind(b"PK\x05\x06")
    yield HostileFile("many.zip", whole[: end + 8] + b"\xff\xff\xff\xff" + whole[end + 12 :], None)


def _linked(info: zipfile.ZipInfo) -> None:
    info.external_attr = 0o120777 << 16


def _tars(png: bytes) -> Iterator[HostileFile]:
    def tarred(*members: tuple[str, bytes, bytes, str]) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, kind, content, target in members:
                info = tarfile.TarInfo(name)
                info.type, info.size, info.linkname = kind, len(content), target
                archive.addfile(info, io.BytesIO(content))
        return file.getvalue()

    plain = tarred(("a.png", tarfile.REGTYPE, png, ""))
    yield HostileFile("good.tar", plain, True)
    yield HostileFile("good.tar.gz", gzip.compress(plain), True)
    yield HostileFile(
        "links.tar",
        tarred(
            ("symbolic", tarfile.SYMTYPE, b"", "/etc/passwd"),
            ("hard", tarfile.LNKTYPE, b"", "../../etc/passwd"),
            ("device", tarfile.CHRTYPE, b"", ""),
            ("pipe", tarfile.FIFOTYPE, b"", ""),
        ),
        False,
    )
    yield HostileFile(
        "names.tar", tarred(*((name, tarfile.REGTYPE, png, "") for name in ("../up", "/abs", "n" * 5000)))
    )
    yield HostileFile("bomb.tar.gz", gzip.compress(bytes(1 << 20) + plain), None)
    yield HostileFile("zeros.tar.gz", _zeros(1100 << 20), False)
    yield HostileFile(
        "nested.tar.gz", gzip.compress(tarred(("in.tar.gz", tarfile.REGTYPE, gzip.compress(plain), ""))), False
    )
    yield HostileFile("raw-names.tar", plain.replace(b"a.png", b"\xff\xfe.pg"), None)
    yield HostileFile("cut.tar", plain[:700], False)
    lying = tarfile.TarInfo("large.png")
    lying.size = 8 << 40
    yield HostileFile("lying.tar", lying.tobuf(tarfile.GNU_FORMAT) + png, False)
    yield HostileFile("gzip-of-nothing.gz", gzip.compress(b""), False)


def _zeros(size: int) -> bytes:
    """A packed tar of one member of that many zeros, made without having them in memory."""
    file, info = io.BytesIO(), tarfile.TarInfo("zeros.png")
    info.size = size
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
        packed.write(info.tobuf())
        for _ in range(size >> 20):
            packed.write(bytes(1 << 20))
    return file.getvalue()
