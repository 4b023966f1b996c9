"""The files between preprocess and features: packs of one datum's normalised pictures, and lists of rejections.

A pack is one file: a line of JSON about all its pictures (their fit, the side of their squares, the bytes of the lines
that follow), a line for each picture, sorted by id, and then the coded pictures (stages.files.coded_pictures), one
after the other in the same order. It is one file and not two because every file of a large library costs Pachyderm
time, and the lines are at its front so that whoever needs them reads no picture. Knows no decoding, no parts and no
Pachyderm. Equal content gives equal bytes.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from stages.datum.contract import StageError
from stages.datum.damage import damage_as
from stages.files import coded_pictures, pack_tables
from stages.record.framing import FITS, Framing, PictureSquare
from stages.record.sources import Source

# ASCII, so that names that are not valid UTF-8 (lone surrogates) survive, too.
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


class PackPicture(NamedTuple):
    """One distinct picture: its id (64 hex: a hash of its normalised pixels), all its sources, sorted, the (width,
    height) of the picture in the middle of its square, its perceptual hash, the bytes of its thumbnail, a file apart,
    its traits (stages.decode.picture_traits.PictureTraits), and the bytes of the coded picture; 0 or "" where a test
    does not care."""

    id: str
    sources: tuple[Source, ...]
    size: tuple[int, int]
    perceptual_hash: int = 0
    thumbnail_size: int = 0
    brightness: float = 0.0
    contrast: float = 0.0
    sharpness: float = 0.0
    colour: str = ""
    coded_size: int = 0


class Rejection(NamedTuple):
    """A file that is not searchable: its true path, the stage that rejected it, and the reason, for the user."""

    source: str
    stage: str
    reason: str


@dataclass(frozen=True)
class Pack:
    """A pack whose pictures are read when they are asked for. framing: of their squares. places: the first byte of each
    coded picture in the file, and the end of the last one. name: of the file, for errors."""

    pictures: tuple[PackPicture, ...]
    framing: Framing
    places: tuple[int, ...]
    name: str
    read: Callable[[int, int], bytes]  # so many bytes of the file from an offset on

    def square(self, row: int) -> PictureSquare:
        """One picture, decoded. Raises StageError if it is damaged. May be called from any thread."""
        begin, end = self.places[row : row + 2]
        with damage_as(lambda failure: _unreadable(self.name, failure)):
            return coded_pictures.decode(self.read(begin, end - begin), self.pictures[row].size, self.framing.side)

    def framed(self) -> Iterator[tuple[PackPicture, PictureSquare]]:
        """Each picture with its square, one decoded at a time."""
        for row, picture in enumerate(self.pictures):
            yield picture, self.square(row)


def write_pack(path: Path, framing: Framing, pictures: Sequence[PackPicture], coded: Iterable[bytes]) -> None:
    """Writes a pack, making the directory.

    pictures: sorted by id. coded: the bytes of each, as `coded_pictures.encode` gives them and as long as `coded_size`
    says, in the same order, written one at a time, so a pack may be larger than memory.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    table = b"".join(map(_picture_line, pictures))
    facts = {"fit": framing.fit, "side": framing.side, "table": len(table)}
    with path.open("wb") as file:
        file.write(_line(facts) + table)
        file.writelines(coded)


def read_pack(path: Path) -> Pack:
    """Reads the table of a pack in a regular file, from which its pictures are read later.

    Raises StageError if `write_pack` did not write it.
    """

    def read(begin: int, size: int) -> bytes:
        with path.open("rb") as file:
            return os.pread(file.fileno(), size, begin)

    with path.open("rb") as file:
        return _read(file, path.name, read)


def parse_pack(content: bytes, name: str) -> Pack:
    """A pack from its file's bytes. name: for errors. Raises StageError as `read_pack` does."""
    return _read(io.BytesIO(content), name, lambda begin, size: content[begin : begin + size])


def _read(file: BinaryIO, name: str, read: Callable[[int, int], bytes]) -> Pack:
    with damage_as(lambda failure: _unreadable(name, failure)):
        head = pack_tables.header(file.readline(pack_tables.HEAD))
        if head.fit not in FITS:
            raise ValueError("another version of lookalike wrote it")
        size = file.seek(0, os.SEEK_END)
        if size < head.end:
            raise ValueError("it ends within its table")
        file.seek(head.begin)
        pictures = tuple(map(_picture, file.read(head.end - head.begin).splitlines()))
        places = tuple(accumulate((each.coded_size for each in pictures), initial=head.end))
        if places[-1] != size:
            raise ValueError(f"it has {size:,} bytes and not {places[-1]:,}")
        return Pack(pictures, Framing(head.side, head.fit), places, name, read)


def _unreadable(name: str, failure: Exception) -> StageError:
    return StageError(f"the pack {name} cannot be read ({failure}); {pack_tables.AGAIN}")


def write_rejections(path: Path, rejections: Iterable[Rejection]) -> None:
    """Writes the rejections as JSON lines sorted by source, each once, making the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(_line(each._asdict()) for each in sorted(set(rejections)))


def read_rejections(path: Path) -> list[Rejection]:
    """Reads what `write_rejections` wrote. Raises StageError for anything else."""
    try:
        with path.open("rb") as file:
            return [Rejection(line["source"], line["stage"], line["reason"]) for line in map(json.loads, file)]
    except (ValueError, KeyError, TypeError, RecursionError) as failure:
        raise StageError(f"{path.name} is not a list of rejections ({failure}); {pack_tables.AGAIN}") from failure


def _picture(line: bytes) -> PackPicture:
    value = json.loads(line)
    width, height = value["size"]
    for name, what in (("thumbnail_size", "a thumbnail"), ("coded_size", "a coded picture")):
        size = value[name]
        if type(size) is not int or not 0 <= size < 1 << 32:
            raise ValueError(f"{size!r} is not the size of {what}")
    sources, hash = tuple(Source(**each) for each in value["sources"]), int(value["perceptual_hash"], 16)
    return PackPicture(**value | {"sources": sources, "size": (width, height), "perceptual_hash": hash})


def _picture_line(picture: PackPicture) -> bytes:
    sources = [source._asdict() for source in picture.sources]
    return _line(picture._asdict() | {"perceptual_hash": f"{picture.perceptual_hash:016x}", "sources": sources})


def _line(value: dict[str, Any]) -> bytes:
    return _ENCODER.encode(value).encode("ascii") + b"\n"
