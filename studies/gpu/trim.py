"""Owns CUDA's fat binaries: removes the machine code of other GPUs from libraries, so that they pack into a fraction of
their size.

A fat binary holds each kernel once for every generation of GPUs, and the driver loads the one that the GPU runs. The
others are overwritten with zeros where the driver never looks: headers, offsets and sizes stay, as does every byte of
the generation that is kept and of the processor's code.
"""

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

_MAGIC = 0xBA55ED50
_SECTIONS = {".nv_fatbin", "__nv_relfatbin", ".nv_fatbin_seg"}
_PTX, _ELF = 1, 2  # kinds of entries: intermediate and machine code
_NO_BITS = 8  # the type of a section without bytes in the file


class Entry(NamedTuple):
    """The code for one architecture: bytes `start` to `start + length` of the file."""

    kind: int
    architecture: int
    start: int
    length: int


def trim(path: Path, architecture: int) -> int:
    """Overwrites, in the file, the code that a GPU of this compute capability (90: Hopper) does not run; returns the
    number of those bytes. A file without such code, or with an unknown layout, stays as it is."""
    with path.open("r+b") as file:
        if file.read(4) != b"\x7fELF":
            return 0
        with mmap.mmap(file.fileno(), 0) as data:
            dropped = [entry for binary in _binaries(data) for entry in _superfluous(binary, architecture)]
            for entry in dropped:
                data[entry.start : entry.start + entry.length] = bytes(entry.length)
            return sum(entry.length for entry in dropped)


def _superfluous(binary: list[Entry], architecture: int) -> list[Entry]:
    """The entries that the GPU does not need: if there is machine code for its generation, the newest that it runs is
    enough. Otherwise none is known to be superfluous."""
    runnable = [
        entry.architecture
        for entry in binary
        if entry.kind == _ELF and entry.architecture // 10 == architecture // 10 and entry.architecture <= architecture
    ]
    if not runnable:
        return []
    kept = (_ELF, max(runnable))
    return [entry for entry in binary if entry.kind in (_ELF, _PTX) and entry[:2] != kept]


def _binaries(data: mmap.mmap) -> list[list[Entry]]:
    """The entries of every fat binary; none if the layout of one section is unknown."""
    found: list[list[Entry]] = []
    for name, offset, size in _sections(data):
        if name in _SECTIONS:
            binaries = _in_section(data, offset, offset + size)
            if binaries is None:
                return []
            found += binaries
    return found


def _sections(data: mmap.mmap) -> list[tuple[str, int, int]]:
    """The name, the place and the size of each section of a 64-bit ELF file."""
    if data[4] != 2:
        return []
    start = struct.unpack_from("<Q", data, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, start + number * size) for number in range(count)]
    if not headers:
        return []
    table = headers[names][4]
    found = []
    for name, kind, _flags, _address, offset, length in headers:
        at = table + name
        if kind != _NO_BITS:
            found.append((data[at : data.find(b"\0", at)].decode(errors="replace"), offset, length))
    return found


def _in_section(data: mmap.mmap, start: int, end: int) -> list[list[Entry]] | None:
    """The entries of each fat binary of a section; None for an unknown layout."""
    found, at = [], start
    while at + 16 <= end:
        magic, _version, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != _MAGIC:
            if any(data[at : at + 8]):
                return None
            at += 8  # padding
            continue
        entries, inner, stop = [], at + header, at + header + size
        if stop > end:
            return None
        while inner < stop:
            kind, _, length, payload, *_, architecture = struct.unpack_from("<HHIQIIHHI", data, inner)
            if not length or inner + length + payload > stop:
                return None
            entries.append(Entry(kind, architecture, inner + length, payload))
            inner += length + payload
        found.append(entries)
        at = stop
    return found
