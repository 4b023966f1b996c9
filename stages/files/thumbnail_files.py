"""Files of thumbnails: JPEG files one after the other, and the way to a single one.

The table of the pictures has the places, so a reader takes one thumbnail and leaves all others alone, and nothing has
to rewrite a file whose pictures did not change. Knows no table and no Pachyderm.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stages.datum.contract import StageError

DIRECTORY = "thumbnails"
"""The directory of these files: of preprocess above the buckets of parts, of partition above the segments, of the index
in each segment."""

SUFFIX = ".thumbnails"

_WRITER = "index"
"""The pipeline that wrote the thumbnails that most readers want."""


_PART = re.compile(r"\w[\w.-]*", re.ASCII)
"""The name of a file: it becomes a part of a path, so a damaged one must not lead elsewhere."""


class ThumbnailPlace(NamedTuple):
    """The place of a thumbnail: the name of its file without the suffix, and there its first byte and its number of
    bytes."""

    part: str
    begin: int
    size: int


@dataclass(frozen=True)
class ThumbnailPlaces(Sequence[ThumbnailPlace]):
    """The places of the thumbnails of n pictures, by row, as the columns of a table. parts: the names of their files,
    sorted. numbers: of each its file in `parts`; begins, sizes: in bytes; integers (n,)."""

    parts: Sequence[str]
    numbers: Sequence[int] | npt.NDArray[Any]
    begins: Sequence[int] | npt.NDArray[Any]
    sizes: Sequence[int] | npt.NDArray[Any]

    @classmethod
    def of(cls, places: Sequence[ThumbnailPlace]) -> ThumbnailPlaces:
        """The same places."""
        parts = sorted({place.part for place in places})
        numbers = {part: number for number, part in enumerate(parts)}
        return cls(
            parts,
            [numbers[place.part] for place in places],
            [place.begin for place in places],
            [place.size for place in places],
        )

    def check(self) -> None:
        """Raises ValueError for places that lead nowhere, or to a file elsewhere."""
        if not all(map(_PART.fullmatch, self.parts)):
            raise ValueError("its names of parts are not valid")
        numbers, begins = np.asarray(self.numbers), np.asarray(self.begins)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(self.parts) and begins.min() >= 0):
            raise ValueError("its places of thumbnails are not valid")

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        return ThumbnailPlace(self.parts[self.numbers[row]], int(self.begins[row]), int(self.sizes[row]))


class LazyThumbnails(Sequence[bytes]):
    """The thumbnails of n pictures, JPEG files by row, each read when it is asked for."""

    def __init__(self, places: Sequence[ThumbnailPlace], read: Callable[[ThumbnailPlace], bytes]) -> None:
        self._places = places
        self._read = read

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self._read(place) for place in self._places[row]]
        return self._read(self._places[row])


class ThumbnailFiles:
    """The files of one directory. May be used from several threads if they are no pipes.

    No file stays open. A file of a lazy input is a pipe, which can be opened once for each datum: its content is kept
    in one file for all of them, which is deleted from the start, so that even a killed process leaves nothing behind.
    """

    def __init__(self, directory: Path, writer: str = _WRITER) -> None:
        """writer: the pipeline that wrote them, for errors."""
        self._directory = directory
        self._writer = writer
        self._kept: IO[bytes] | None = None
        self._spans: dict[str, tuple[int, int]] = {}  # of kept parts: first byte and number of bytes

    def read(self, place: ThumbnailPlace) -> bytes:
        """The thumbnail at a place. Raises StageError if its file is missing, or ends before it does."""
        path = self._directory / f"{place.part}{SUFFIX}"
        if place.part not in self._spans:
            try:
                with path.open("rb") as file:
                    state = os.fstat(file.fileno())
                    if not stat.S_ISFIFO(state.st_mode):
                        return self._piece(file, place, 0, state.st_size)
                    self._keep(file, place.part)
            except (FileNotFoundError, NotADirectoryError) as failure:
                raise StageError(f"{path.name}, a file of thumbnails, is missing: {_again(self._writer)}") from failure
        assert self._kept is not None
        return self._piece(self._kept, place, *self._spans[place.part])

    def _keep(self, pipe: IO[bytes], part: str) -> None:
        if self._kept is None:
            self._kept = tempfile.TemporaryFile(prefix="lookalike-")  # noqa: SIM115, closed with this object
        begin = self._kept.seek(0, os.SEEK_END)
        shutil.copyfileobj(pipe, self._kept, 1 << 20)
        self._spans[part] = begin, self._kept.tell() - begin
        self._kept.flush()

    def _piece(self, file: IO[bytes], place: ThumbnailPlace, begin: int, size: int) -> bytes:
        within = place.begin + place.size <= size  # else no memory is taken for it
        found = os.pread(file.fileno(), place.size, begin + place.begin) if within else b""
        return check(found, place, f"{place.part}{SUFFIX}", self._writer)


def write(path: Path, thumbnails: Iterable[bytes]) -> None:
    """Writes a file of thumbnails, making its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(thumbnails)


def places(part: str, sizes: Iterable[int]) -> list[ThumbnailPlace]:
    """The places of thumbnails of these sizes, in bytes, as `write` puts them into the file with the name `part`."""
    found, begin = [], 0
    for size in map(int, sizes):
        found.append(ThumbnailPlace(part, begin, size))
        begin += size
    return found


def check(found: bytes, place: ThumbnailPlace, name: str, writer: str = _WRITER) -> bytes:
    """The bytes that were read at a place. name: of their file. writer: the pipeline that wrote it. Raises StageError
    unless they are all of them."""
    if len(found) != place.size:
        raise StageError(f"{name} is not the file of thumbnails that its table describes: {_again(writer)}")
    return found


def _again(writer: str) -> str:
    return f"reprocess the pipeline that wrote it: lookalike deploy --reprocess {writer}"
