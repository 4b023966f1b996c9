"""The files between preprocess and features: packs of one datum's normalised pictures, and lists of rejections.

A pack is one file: NumPy's `.npy` (uint8, C-order, n × H × W × 3, rows sorted by id), which `np.load` reads as it is,
followed by lines of JSON: one with the pictures' fit, and one for each picture, in the same order. It is one file and
not two because every file of a large library costs Pachyderm time. Knows no decoding, no parts and no Pachyderm. Equal
content gives equal bytes.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from stages.datum.contract import StageError
from stages.datum.damage import LONGEST_HEADER, damage_as
from stages.record.framing import FITS, Framing, PictureSquare, Pixels
from stages.record.sources import Source

# ASCII, so that names that are not valid UTF-8 (lone surrogates) survive, too.
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


class PackPicture(NamedTuple):
    """One distinct picture: its id (64 hex: a hash of its normalised pixels), all its sources, sorted, the (width,
    height) of the picture in the middle of its square, its perceptual hash, the bytes of its thumbnail, a file apart,
    and its traits (stages.decode.picture_traits.PictureTraits); 0 or "" where a test does not care."""

    id: str
    sources: tuple[Source, ...]
    size: tuple[int, int]
    perceptual_hash: int = 0
    thumbnail_size: int = 0
    brightness: float = 0.0
    contrast: float = 0.0
    sharpness: float = 0.0
    colour: str = ""


class Rejection(NamedTuple):
    """A file that is not searchable: its true path, the stage that rejected it, and the reason, for the user."""

    source: str
    stage: str
    reason: str


@dataclass(frozen=True)
class Pack:
    """pixels: uint8 (n, H, W, 3) RGB, a read-only memory map where n > 0. pictures: n of them in the same order.
    fit: how they fill their squares, one of stages.record.framing.FITS."""

    pixels: Pixels
    pictures: tuple[PackPicture, ...]
    fit: str

    def framed(self) -> Iterator[tuple[PackPicture, PictureSquare]]:
        """Each picture with its square."""
        for pixels, picture in zip(self.pixels, self.pictures, strict=True):
            yield picture, PictureSquare(pixels, picture.size)


def write_pack(npy: Path, framing: Framing, pictures: Sequence[PackPicture], rows: Iterable[bytes]) -> None:
    """Writes the pack `npy`, making the directory.

    pictures: sorted by id. rows: the side × side × 3 RGB bytes of each, in the same order, written one at a time, so a
    pack may be larger than memory.
    """
    npy.parent.mkdir(parents=True, exist_ok=True)
    shape = (len(pictures), framing.side, framing.side, 3)
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    with npy.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        for row in rows:
            file.write(row)
        file.write(_line({"fit": framing.fit}))
        for each in pictures:
            sources = [source._asdict() for source in each.sources]
            line = each._asdict() | {"perceptual_hash": f"{each.perceptual_hash:016x}", "sources": sources}
            file.write(_line(line))


def read_pack(npy: Path) -> Pack:
    """Reads a pack from a regular file, with its pixels as a memory map.

    Raises StageError if `write_pack` did not write it.
    """
    with npy.open("rb") as file:
        return _read(file, npy.name, npy)


def parse_pack(content: bytes, name: str) -> Pack:
    """A pack from its file's bytes. name: for errors. Raises StageError as `read_pack` does."""
    return _read(io.BytesIO(content), name, None)


def _read(file: BinaryIO, name: str, path: Path | None) -> Pack:
    """path: the file to map the pixels from, or None to read them."""
    again = "run preprocess again: lookalike deploy --reprocess preprocess"
    with damage_as(lambda failure: StageError(f"the pack {name} cannot be read ({failure}); {again}")):
        np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file, LONGEST_HEADER)  # type: ignore[call-arg, no-untyped-call]
        begin = file.tell()
        file.seek(begin + math.prod(shape))
        if dtype != np.uint8 or fortran or len(shape) != 4 or shape[3] != 3:
            raise ValueError(f"it holds {dtype} {shape}")
        fit = json.loads(file.readline() or b"{}").get("fit")
        if fit not in FITS:
            raise ValueError("another version of lookalike wrote it")
        pictures = tuple(map(_picture, file))
        if shape[0] != len(pictures):
            raise ValueError(f"it holds {dtype} {shape} for {len(pictures)} pictures")
        pixels: Pixels
        if path is not None and math.prod(shape):  # an empty range cannot be mapped
            pixels = np.memmap(path, np.uint8, "r", begin, shape)
        else:
            file.seek(begin)
            pixels = np.frombuffer(file.read(math.prod(shape)), np.uint8).reshape(shape)
        return Pack(pixels, pictures, fit)


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
        raise StageError(
            f"{path.name} is not a list of rejections ({failure}); run preprocess again: "
            "lookalike deploy --reprocess preprocess"
        ) from failure


def _picture(line: bytes) -> PackPicture:
    value = json.loads(line)
    width, height = value["size"]
    thumbnail_size = value["thumbnail_size"]
    if type(thumbnail_size) is not int or not 0 <= thumbnail_size < 1 << 32:
        raise ValueError(f"{thumbnail_size!r} is not the size of a thumbnail")
    sources, hash = tuple(Source(**each) for each in value["sources"]), int(value["perceptual_hash"], 16)
    return PackPicture(**value | {"sources": sources, "size": (width, height), "perceptual_hash": hash})


def _line(value: dict[str, Any]) -> bytes:
    return _ENCODER.encode(value).encode("ascii") + b"\n"
