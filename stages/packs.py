"""Packs: how one datum's normalised pictures lie on disk between preprocess and features, and how rejections do.

A pack is `<stem>.npy` (uint8, C-order, n × H × W × 3, rows sorted by id) beside `<stem>.jsonl` (one picture a line, in
the same order). Knows nothing of decoding, of buckets or of Pachyderm. Same content, same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.contract import StageError

Pixels = NDArray[np.uint8]


class Source(NamedTuple):
    """Where a picture came from: its true path (not PFS's escaped one) and the sha256 (64 hex) of that file's bytes."""

    path: str
    sha256: str


class Picture(NamedTuple):
    """One distinct picture: its id (64 hex: a hash of its normalised pixels) and all its sources, sorted."""

    id: str
    sources: tuple[Source, ...]


class Rejection(NamedTuple):
    """Something that is not searchable: its true path, the stage that refused it, and why, for the user."""

    source: str
    stage: str
    reason: str


@dataclass(frozen=True)
class Pack:
    """pixels: uint8 (n, H, W, 3) RGB, a read-only memory map where n > 0. pictures: n of them in the same order."""

    pixels: Pixels
    pictures: tuple[Picture, ...]


def write_pack(stem: Path, shape: tuple[int, int], pictures: Sequence[Picture], rows: Iterable[bytes]) -> None:
    """Writes `<stem>.npy` and `<stem>.jsonl`, making the directory.

    shape: (H, W) in pixels. pictures: sorted by id. rows: each one's H × W × 3 RGB bytes in the same order, taken one
    at a time so that a pack may be larger than memory.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(pictures), *shape, 3)}
    with _beside(stem, ".npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        for row in rows:
            file.write(row)
    lines: Iterable[dict[str, Any]] = (
        {"id": each.id, "sources": [source._asdict() for source in each.sources]} for each in pictures
    )
    _write_lines(_beside(stem, ".jsonl"), lines)


def read_pack(npy: Path) -> Pack:
    """Reads the pack whose pixels are in the file `npy`; both files must be regular ones.

    Raises StageError where the two files do not fit together or are not what `write_pack` writes.
    """
    try:
        # An empty array cannot be mapped.
        pixels = np.load(npy, mmap_mode="r") if npy.stat().st_size > _HEADER_SIZE else np.load(npy)
        pictures = tuple(
            Picture(line["id"], tuple(Source(each["path"], each["sha256"]) for each in line["sources"]))
            for line in _read_lines(npy.with_suffix(".jsonl"))
        )
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise StageError(f"the pack {npy.name} cannot be read ({failure}); run preprocess again") from failure
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3 or len(pixels) != len(pictures):
        found = f"{pixels.dtype} {pixels.shape} for {len(pictures)} pictures"
        raise StageError(f"the pack {npy.name} holds {found}; run preprocess again")
    return Pack(pixels, pictures)


def read_packs(directory: Path) -> Iterator[Pack]:
    """Every pack of a directory, in the order of their names."""
    for npy in sorted(directory.glob("*.npy")):
        yield read_pack(npy)


def write_rejections(path: Path, rejections: Iterable[Rejection]) -> None:
    """Writes the rejections as JSON lines sorted by source, each once, making the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_lines(path, (each._asdict() for each in sorted(set(rejections))))


def read_rejections(path: Path) -> list[Rejection]:
    """Reads what `write_rejections` wrote. Raises StageError where it is anything else."""
    try:
        return [Rejection(line["source"], line["stage"], line["reason"]) for line in _read_lines(path)]
    except (ValueError, KeyError, TypeError) as failure:
        raise StageError(f"{path.name} is not a list of rejections ({failure}); run preprocess again") from failure


_HEADER_SIZE = 128  # of every pack: numpy pads the header to a multiple of 64 with room for the shape to grow


def _beside(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="ascii", newline="\n") as file:
        for line in lines:
            # ASCII, so that names that are no valid UTF-8 (lone surrogates) survive too.
            file.write(json.dumps(line, sort_keys=True, ensure_ascii=True, separators=(",", ":")) + "\n")


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="ascii") as file:
        for line in file:
            yield json.loads(line)
