"""Writes parts of a library as features and preprocess do: pictures, which a number stands for, in packs."""

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.files import thumbnail_files
from stages.files.tables.image_table import ImageTable
from stages.files.tables.index_table import PartTable, placed
from stages.files.thumbnail_files import ThumbnailPlace
from stages.record import masks, part_names
from stages.record.origin import Origin
from stages.record.sources import Source, unite
from tests.stages.image_tables import unseen

DIMENSION = 3

Paths = Sequence[str]
"""The paths of a picture's files, of which each has a hash of its own."""

Packs = Mapping[str, Mapping[int, Paths]]
"""The numbered pictures of packs: {pack: {picture: paths}}."""

Library = Mapping[str, Packs]
"""Those of parts: {part: packs}."""


def id_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def source(path: str) -> Source:
    return Source(path, hashlib.sha256(path.encode()).hexdigest(), 40, 30, 1000, "")


def jpeg(path: str) -> bytes:
    """The thumbnail of a file: a function of the file alone, and of another size than most others."""
    return b"jpeg of " + path.encode()


def smallest(paths: Paths) -> str:
    """The file whose thumbnail is shown."""
    return min(paths, key=lambda path: source(path).sha256)


def vector(number: int) -> list[float]:
    return list(np.random.default_rng(number).normal(size=DIMENSION))


def table(pictures: Mapping[int, Paths], model: str = "5eed" * 16, device: str = "cpu") -> ImageTable:
    """The table of these pictures."""
    numbers = sorted(pictures, key=id_of)
    return ImageTable(
        ids=[id_of(number) for number in numbers],
        sources=[unite(map(source, pictures[number])) for number in numbers],
        thumbnail_sizes=[len(jpeg(smallest(pictures[number]))) for number in numbers],
        hashes=numbers,
        **unseen(len(numbers)),
        origin=Origin(model, "pad", 96, DIMENSION, "small at 96 px", (device,)),
    )


def vectors_of(pictures: Mapping[int, Paths]) -> NDArray[np.float32]:
    """Their vectors, in the order of the table."""
    return np.array([vector(number) for number in sorted(pictures, key=id_of)], np.float32).reshape(-1, DIMENSION)


def united(library: Library, names: Sequence[str] = ()) -> dict[int, Paths]:
    """The distinct pictures of these parts, or of all, each with all its paths."""
    found: dict[int, set[str]] = {}
    for part in names or library:
        for pictures in library[part].values():
            for number, paths in pictures.items():
                found.setdefault(number, set()).update(paths)
    return {number: sorted(paths) for number, paths in found.items()}


def write_part(root: Path, part: str, packs: Packs, device: str = "cpu") -> None:
    """A part in the form of features and preprocess, in its bucket."""
    places: dict[int, tuple[str, ThumbnailPlace]] = {}
    for name, pictures in packs.items():
        numbers = sorted(pictures, key=id_of)
        shown = [smallest(pictures[number]) for number in numbers]
        file = root / "thumbnails" / part_names.directory(part) / part / f"{name}.thumbnails"
        thumbnail_files.write(file, map(jpeg, shown))
        for path in {path for of, one in zip(numbers, shown, strict=True) for path in pictures[of] if path != one}:
            thumbnail_files.write(file.with_name(f"{source(path).sha256}.thumbnails"), [jpeg(path)])
        begins = thumbnail_files.places(name, (len(jpeg(path)) for path in shown))
        for number, path, place in zip(numbers, shown, begins, strict=True):
            if number not in places or smallest([path, places[number][0]]) == path:
                places[number] = path, place
    pictures = united({part: packs})
    target = root / "library" / part_names.directory(part)
    target.mkdir(parents=True, exist_ok=True)
    numbers = sorted(pictures, key=id_of)
    PartTable.of(table(pictures, device=device), **placed([places[each][1] for each in numbers])).write(
        target / f"{part}.parquet"
    )
    np.save(target / f"{part}.npy", vectors_of(pictures))


def write(root: Path, library: Library) -> Path:
    """Writes a library into a directory; returns it."""
    for part, packs in library.items():
        write_part(root, part, packs)
    return root


def write_masks(root: Path, hidden: Mapping[str, Collection[str]]) -> None:
    """Masks of the packs with these names, beside a library in a directory."""
    for name, paths in hidden.items():
        file = root / f"masks/{part_names.directory(name)}/{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(masks.content(paths))


def unmasked(library: Library, hidden: Mapping[str, Collection[str]]) -> Library:
    """What the masks leave of a library."""
    left: dict[str, dict[str, dict[int, Paths]]] = {}
    for part, packs in library.items():
        gone = hidden.get(part_names.source_of(part), ())
        for name, pictures in packs.items():
            for number, paths in pictures.items():
                if some := [path for path in paths if path not in gone]:
                    left.setdefault(part, {}).setdefault(name, {})[number] = some
    return left


def of_one_bucket(count: int, directory: str) -> list[str]:
    """The names of parts of one bucket."""
    names = (f"{number:016x}" for number in itertools.count())
    return list(itertools.islice((name for name in names if part_names.directory(name).startswith(directory)), count))
