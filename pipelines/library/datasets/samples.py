"""The sample pictures: crops of the real photographs that ship inside the scikit-image wheel, labelled by their names.

Library crops come from the left part of a photograph and queries from its right part, so the two never overlap: a query
is answered well by what it shows, not by shared pixels. A crop that holds next to nothing (black, plain sky) is never
cut. Knows no server and nothing of how pictures are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from random import Random

from PIL import Image, ImageEnhance, ImageOps

from pipelines.errors import LookalikeError
from stages.backbone.photographs import PHOTOGRAPHS, holds_enough, open_photograph
from stages.datum.contract import StageError

LIBRARY = "samples"
"""The folder of the sample pictures in the library."""
QUERIES = "sample-queries"
"""The query entry of the sample queries."""

LIBRARY_CROPS = 30
QUERY_CROPS = 3
LIBRARY_SHARE = 0.6
"""Share of a photograph's width, from the left, for library crops; queries have the rest."""

SIDE = (0.25, 0.4)
"""Range of the square root of a crop's area, as a share of the photograph's shorter edge."""

ASPECT = 1.5
"""Largest ratio of a crop's sides."""

_TRIES = 1000

JPEG_QUALITY = 92


class SamplesError(LookalikeError):
    """The sample pictures cannot be made; the text says what to do."""


@dataclass(frozen=True)
class SamplePictures:
    """The directories of the sample pictures."""

    library: Path
    queries: Path


def write_samples(directory: Path, seed: int = 0) -> SamplePictures:
    """Cuts the sample pictures into the directories LIBRARY and QUERIES in `directory`, created if missing.

    The files are a function of the seed and of the versions of scikit-image and Pillow: writing them again changes
    nothing. Library crops are JPEG and PNG by turns, queries PNG; grey photographs give grey files.
    Raises SamplesError if the wheel lacks a photograph.
    """
    library, queries = directory / LIBRARY, directory / QUERIES
    for path in (library, queries):
        path.mkdir(parents=True, exist_ok=True)
    for label in PHOTOGRAPHS:
        try:
            photograph = open_photograph(label)
        except StageError as error:
            raise SamplesError(str(error)) from error
        for number, crop in enumerate(library_crops(photograph, label, seed), start=1):
            crop.save(library / _library_name(label, number), quality=JPEG_QUALITY)
        for number, crop in enumerate(query_crops(photograph, label, seed), start=1):
            crop.save(queries / f"{label}-{number}.png")
    return SamplePictures(library, queries)


def library_names() -> list[str]:
    """The true names of the sample pictures in the library."""
    numbers = range(1, LIBRARY_CROPS + 1)
    return [f"{LIBRARY}/{_library_name(label, number)}" for label in PHOTOGRAPHS for number in numbers]


def _library_name(label: str, number: int) -> str:
    return f"{label}-{number:02d}{'.jpg' if number % 2 == 1 else '.png'}"


def label_of(path: str) -> str:
    """The label of a sample picture from its (source) path: "queries/cat-2.png" gives "cat"."""
    return PurePosixPath(path).stem.rpartition("-")[0]


def library_crops(photograph: Image.Image, label: str, seed: int) -> Iterator[Image.Image]:
    """`LIBRARY_CROPS` crops of the photograph's left part, as they are."""
    edge = _edge(photograph)
    for number in range(LIBRARY_CROPS):
        yield _crop(photograph, label, 0, edge, _lot(seed, label, "library", number))


def query_crops(photograph: Image.Image, label: str, seed: int) -> Iterator[Image.Image]:
    """`QUERY_CROPS` crops of the photograph's right part, altered as if taken with another camera.

    Half of them are mirrored; brightness and contrast are multiplied by 0.6 to 1.4, saturation by 0 to 1.5.
    """
    edge = _edge(photograph)
    for number in range(QUERY_CROPS):
        lot = _lot(seed, label, "query", number)
        crop = _crop(photograph, label, edge, photograph.width, lot)
        if lot.random() < 0.5:
            crop = ImageOps.mirror(crop)
        crop = ImageEnhance.Brightness(crop).enhance(lot.uniform(0.6, 1.4))
        crop = ImageEnhance.Contrast(crop).enhance(lot.uniform(0.6, 1.4))
        yield ImageEnhance.Color(crop).enhance(lot.uniform(0.0, 1.5))


def _crop(photograph: Image.Image, label: str, left: int, right: int, lot: Random) -> Image.Image:
    """The first crop that holds enough, of random ones within these columns."""
    for _ in range(_TRIES):
        crop = photograph.crop(crop_box(photograph.size, left, right, lot))
        if holds_enough(crop):
            return crop
    raise SamplesError(f"the columns {left} to {right} of the photograph {label} hold nothing to make samples of")


def crop_box(size: tuple[int, int], left: int, right: int, lot: Random) -> tuple[int, int, int, int]:
    """A random box (left, upper, right, lower) in pixels within columns `left` to `right` of a photograph of that size.

    Its area and aspect are within `SIDE` and `ASPECT`; a box wider than its columns is cut to them.
    """
    side = lot.uniform(*SIDE) * min(size)
    aspect = math.exp(lot.uniform(-math.log(ASPECT), math.log(ASPECT)))
    width = min(round(side * math.sqrt(aspect)), right - left)
    height = min(round(side / math.sqrt(aspect)), size[1])
    x = lot.randint(left, right - width)
    y = lot.randint(0, size[1] - height)
    return x, y, x + width, y + height


def _edge(photograph: Image.Image) -> int:
    """The first column that belongs to the queries."""
    return math.floor(photograph.width * LIBRARY_SHARE)


def _lot(seed: int, label: str, kind: str, number: int) -> Random:
    """The random numbers of one crop, the same in every run and independent of other crops."""
    return Random(f"{seed}/{label}/{kind}/{number}")
