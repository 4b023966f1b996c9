"""Zip archives written while they are sent: members stored as they are, and a text that names the missing ones.

Equal members give equal bytes. Each member's size and checksum are known before its bytes, so a reader needs no seek.
Knows no pictures.
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

MOST_BYTES = 4_000_000_000
"""Of an archive: a little less than what needs the extensions that not every program reads."""

MOST_MEMBERS = 2000

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")

_VERSION, _UTF8, _UNIX, _PLAIN_FILE = 20, 0x800, 3 << 8, 0o100644 << 16

_EPOCH = datetime(1980, 1, 1)
_LAST = datetime(2107, 12, 31)

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*]')
_ODD = re.compile("[\ud800-\udfff]")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
"""Names that Windows takes for devices."""

MISSING = "MISSING.txt"


@dataclass(frozen=True)
class ZipMember:
    """A file of an archive: its size, CRC-32 and bytes. date: local, YYYY-MM-DDTHH:MM:SS, "" for none."""

    name: str
    date: str
    size: int
    crc: int
    chunks: Iterable[bytes]


def archive(members: Iterable[ZipMember | str]) -> Iterator[bytes]:
    """The bytes of an archive. A text among the members is a line on one that cannot be had; these, and those beyond
    MOST_BYTES, are listed in MISSING.txt."""
    names, central, missing = _Names(), bytearray(), list[str]()
    at = count = 0

    def written(member: ZipMember) -> Iterator[bytes]:
        nonlocal at, count
        name = names.free(member.name).encode()
        moment = _moment(member.date)
        day = (moment.year - 1980) << 9 | moment.month << 5 | moment.day
        facts = (_UTF8, 0, moment.hour << 11 | moment.minute << 5 | moment.second // 2, day)
        sizes = (member.crc, member.size, member.size, len(name))
        central.extend(
            _CENTRAL.pack(b"PK\1\2", _UNIX | _VERSION, _VERSION, *facts, *sizes, 0, 0, 0, 0, _PLAIN_FILE, at) + name
        )
        header = _LOCAL.pack(b"PK\3\4", _VERSION, *facts, *sizes, 0) + name
        at += len(header) + member.size
        count += 1
        yield header
        yield from member.chunks

    for each in members:
        if isinstance(each, str):
            missing.append(each)
        elif at + each.size > MOST_BYTES:
            missing.append(f"{each.name}: it did not fit into this archive")
        else:
            yield from written(each)
    if missing:
        text = "".join(f"{_ODD.sub(_coded, each)}\r\n" for each in ("These files could not be had:", "", *missing))
        content = text.encode()
        yield from written(ZipMember(MISSING, "", len(content), zlib.crc32(content), [content]))
    yield bytes(central) + _END.pack(b"PK\5\6", 0, 0, count, count, len(central), at, 0)


class _Names:
    """The names of an archive's files: each safe and once, also where case and accents are not told apart."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def free(self, path: str) -> str:
        """The name for a true path."""
        whole = "/".join(_safe(each) for each in path.split("/") if each) or "_"
        if _parents(_key(whole)) & self._files:
            whole = whole.replace("/", "_")
        folder, slash, name = whole.rpartition("/")
        stem, dot, ending = name.rpartition(".") if "." in name[1:] else (name, "", "")
        found, number = whole, 1
        while _key(found) in self._files or _key(found) in self._folders:
            number += 1
            found = f"{folder}{slash}{stem} ({number}){dot}{ending}"
        self._files.add(_key(found))
        self._folders |= _parents(_key(found))
        return found


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _parents(name: str) -> set[str]:
    return {name[: each.start()] for each in re.finditer("/", name)}


def _safe(part: str) -> str:
    """A part of a path that every system takes for a name."""
    plain = _UNSAFE.sub("_", _ODD.sub(_coded, part))
    if plain.endswith((".", " ")):
        plain = f"{plain[:-1]}_"
    return f"_{plain}" if _DEVICE.match(plain) else plain


def _coded(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"%{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else "_"


def _moment(date: str) -> datetime:
    try:
        found = datetime.fromisoformat(date)
    except ValueError:
        return _EPOCH
    return found.replace(tzinfo=None) if _EPOCH <= found.replace(tzinfo=None) <= _LAST else _EPOCH
