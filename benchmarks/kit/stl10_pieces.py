"""Files in STL-10's format, of pieces of the sample photographs: for tests, and for benchmarks of any size without a
download.

A piece's label is its photograph. Pieces of one photograph overlap and vary in scale, mirroring and brightness, so
near ones mean something; some are exact copies of earlier ones. Knows no server and nothing of how pictures compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.library.datasets.stl10 import CLASS_NAMES, LABELLED, UNLABELLED
from stages.backbone.photographs import PHOTOGRAPHS, open_photograph
from stages.decode.stl10 import SIDE

DUPLICATES = 0.01
"""The share of records that are copies of earlier ones."""

_EDGES = (160, 224, 320)
"""Shorter edges, in pixels, to which the photographs are scaled before pieces of 96 × 96 are cut from them."""

_SHADES = 32
_COPIED_FROM = 1000
"""A copy repeats one of this many records before it, which are all that memory holds."""


def write_stl10(
    directory: Path, unlabelled: int = 100_000, labelled: Sequence[int] = (5_000, 8_000), seed: int = 0
) -> None:
    """Writes the files of STL-10's binary archive into a directory, which is created: the given numbers of unlabelled
    records and of labelled ones for training and testing.

    Equal arguments give equal files. 100,000 records are 2.8 GB, and writing them is all the time it takes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pieces = PhotographPieces(seed)
    with (directory / UNLABELLED).open("wb") as file:
        pieces.write(file, unlabelled)
    for (pictures, labels), count in zip(LABELLED, labelled, strict=True):
        with (directory / pictures).open("wb") as file:
            (directory / labels).write_bytes(bytes(pieces.write(file, count)))
    (directory / CLASS_NAMES).write_text("".join(f"{label}\n" for label in PHOTOGRAPHS))


class PhotographPieces:
    """Random pieces of the photographs, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._lot = Random(seed)
        self._photographs = [
            [_stored(photograph, edge) for edge in _EDGES] for photograph in map(open_photograph, PHOTOGRAPHS)
        ]
        self._shades = [_shade(0.6 + 0.8 * step / (_SHADES - 1)) for step in range(_SHADES)]

    def write(self, file: BinaryIO, count: int) -> list[int]:
        """Writes `number` records and returns their labels, counted from 1 as STL-10's are."""
        labels: list[int] = []
        latest: list[tuple[int, bytes]] = []
        for number in range(count):
            if latest and self._lot.random() < DUPLICATES:
                label, record = self._lot.choice(latest)
            else:
                label = self._lot.randrange(len(self._photographs))
                record = self._piece(label)
            if len(latest) < _COPIED_FROM:
                latest.append((label, record))
            else:
                latest[number % _COPIED_FROM] = (label, record)
            file.write(record)
            labels.append(label + 1)
        return labels

    def _piece(self, label: int) -> bytes:
        photograph = self._lot.choice(self._photographs[label])
        _, width, height = photograph.shape
        left, top = self._lot.randrange(width - SIDE + 1), self._lot.randrange(height - SIDE + 1)
        piece = photograph[:, left : left + SIDE, top : top + SIDE]
        if self._lot.random() < 0.5:
            piece = piece[:, ::-1]
        return piece.tobytes().translate(self._lot.choice(self._shades))


def _stored(photograph: Image.Image, edge: int) -> NDArray[np.uint8]:
    """A photograph scaled to this shorter edge, in STL-10's order: uint8 (3, width, height)."""
    share = edge / min(photograph.size)
    size = (round(photograph.width * share), round(photograph.height * share))
    scaled = photograph.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    return np.ascontiguousarray(np.asarray(scaled).transpose(2, 1, 0))


def _shade(factor: float) -> bytes:
    """The table that maps each of the 256 values to its value at this brightness."""
    return bytes(min(255, round(value * factor)) for value in range(256))
