"""Owns pieces: a folder in numbered files of a limited size, which can be unpacked in any order.

Files are cut into blocks, each compressed on its own, so that a piece is unpacked as soon as it arrives and by all
cores. Knows neither wheels nor GPUs; needs pyarrow, for Zstandard, on both sides.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow

BLOCK = 16 << 20
"""Bytes of a block before it is packed."""

_MAGIC = b"PIECES1\n"
_HEAD = 1 << 20  # bytes that a piece leaves for its list of blocks
_MARKS = ".pieces"  # names the pieces that a folder has


@dataclass(frozen=True)
class Block:
    """A run of bytes, of one large file or of small files one after the other.

    parts: path, place in the file, length. at, packed: its place and length in the piece, after the head. sha256: of
    the bytes before packing.
    """

    parts: list[tuple[str, int, int]]
    at: int = 0
    packed: int = 0
    sha256: str = ""

    @property
    def length(self) -> int:
        """The bytes before packing."""
        return sum(length for _path, _place, length in self.parts)


def pack(folder: Path, out: Path, name: str, limit: int, level: int = 6) -> list[Path]:
    """Writes out/NAME-01.piece and so on, of at most `limit` bytes (over 1 MiB and what a block takes), packed at this
    level of Zstandard; returns their paths."""
    pieces: list[list[tuple[Block, bytes]]] = [[]]
    blocks = list(_blocks(folder))
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for block, (body, digest) in zip(blocks, threads.map(partial(_packed, folder, level), blocks), strict=True):
            at = sum(each.packed for each, _ in pieces[-1])
            if at + len(body) > limit - _HEAD and pieces[-1]:
                pieces.append([])
                at = 0
            pieces[-1].append((replace(block, at=at, packed=len(body), sha256=digest), body))
    links = [(str(path.relative_to(folder)), str(path.readlink())) for path in _below(folder) if path.is_symlink()]
    written = []
    for number, content in enumerate(pieces, 1):
        head = {"name": name, "number": number, "of": len(pieces), "links": links if number == 1 else []}
        text = json.dumps({**head, "blocks": [asdict(block) for block, _ in content]}).encode()
        packed = pyarrow.Codec("zstd").compress(text, asbytes=True)
        path = out / f"{name}-{number:02}.piece"
        sizes = len(packed).to_bytes(8, "little") + len(text).to_bytes(8, "little")
        path.write_bytes(b"".join((_MAGIC, sizes, packed, *(body for _, body in content))))
        written.append(path)
    return written


def unpack(piece: Path, target: Path) -> list[int]:
    """Unpacks a piece below `target`; returns the numbers of those that are still missing there. Raises ValueError if
    it is not a piece, or damaged."""
    with piece.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(f"{piece} is not a piece")
        packed, plain = (int.from_bytes(file.read(8), "little") for _ in range(2))
        head = json.loads(pyarrow.decompress(file.read(packed), plain, "zstd", asbytes=True))
        start = file.tell()
    blocks = [Block(**each) for each in head["blocks"]]
    for folder in {Path(path).parent for block in blocks for path, _place, _length in block.parts}:
        (target / folder).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(min(16, os.cpu_count() or 1)) as processes:
        list(processes.map(partial(_write, piece, start, target), blocks))
    for path, to in head["links"]:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).unlink(missing_ok=True)
        (target / path).symlink_to(to)
    marks = target / _MARKS
    marks.mkdir(parents=True, exist_ok=True)
    (marks / f"{head['name']}-{head['number']}").touch()
    return [number for number in range(1, head["of"] + 1) if not (marks / f"{head['name']}-{number}").exists()]


def _below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def _blocks(folder: Path) -> Iterator[Block]:
    small: list[tuple[str, int, int]] = []
    for path in _below(folder):
        if path.is_symlink() or not path.is_file():
            continue
        size, name = path.stat().st_size, str(path.relative_to(folder))
        if size > BLOCK // 4:
            for place in range(0, size, BLOCK):
                yield Block([(name, place, min(BLOCK, size - place))])
            continue
        small.append((name, 0, size))
        if sum(length for _name, _place, length in small) >= BLOCK:
            yield Block(small)
            small = []
    if small:
        yield Block(small)


def _packed(folder: Path, level: int, block: Block) -> tuple[bytes, str]:
    data = b"".join(_read(folder / path, place, length) for path, place, length in block.parts)
    return pyarrow.Codec("zstd", compression_level=level).compress(data, asbytes=True), hashlib.sha256(data).hexdigest()


def _read(path: Path, place: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(place)
        return file.read(length)


def _write(piece: Path, start: int, target: Path, block: Block) -> None:
    """Writes a block's bytes into its files, which other processes write, too."""
    packed = _read(piece, start + block.at, block.packed)
    data = memoryview(pyarrow.decompress(packed, block.length, "zstd", asbytes=True))
    if hashlib.sha256(data).hexdigest() != block.sha256:
        raise ValueError(f"{piece} is damaged")
    for path, place, length in block.parts:
        descriptor = os.open(target / path, os.O_WRONLY | os.O_CREAT, 0o755)
        with os.fdopen(descriptor, "wb") as file:
            file.seek(place)
            file.write(data[:length])
        data = data[length:]
