"""Files of vectors: NumPy's .npy, float32, a row for each picture, and the way to those of some pictures in several of
them. Knows no pictures and no search."""

import io
import math
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from stages.datum.contract import StageError
from stages.datum.damage import LONGEST_HEADER, damage_as
from stages.knn.backend import Mask, Rows, Vectors

DIRECTORY = "vectors"
"""The directory of these files: of partition above the segments, of the index in each segment."""

SUFFIX = ".npy"

_TOGETHER = 64
"""Most pipes that are open at a time: those of a segment of as many buckets."""


@dataclass(frozen=True)
class VectorPlaces:
    """The places of the vectors of n pictures, by row. files: the names of files without the suffix. numbers: of each
    vector its file in `files`; rows: its row there; integers (n,)."""

    files: Sequence[str]
    numbers: Rows
    rows: Rows

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, rows: Sequence[int]) -> "VectorPlaces":
        """The places of some of the pictures."""
        some = np.asarray(rows, np.int64)
        return VectorPlaces(self.files, self.numbers[some], self.rows[some])

    def copy(self, directory: Path, into: Vectors, writer: str, files: Mask | None = None) -> None:
        """Copies the vectors out of the files of a directory, or out of some `files`, into an array, float32 (n,
        dimension).

        writer: the pipeline that wrote the files, for errors. They may be pipes: each that has some of the vectors is
        opened once, and no other. Raises StageError if one is missing, has too few rows, or holds anything else.
        """
        order = np.argsort(self.numbers, kind="stable")
        needed, firsts = np.unique(self.numbers[order], return_index=True)
        wanted = np.split(order, firsts)[1:]
        if files is not None:
            wanted = [here for number, here in zip(needed, wanted, strict=True) if files[number]]
            needed = needed[files[needed]]
        paths = [directory / f"{self.files[number]}{SUFFIX}" for number in needed]
        for path, vectors, here in zip(paths, _several(paths, into.shape[1]), wanted, strict=True):
            rows = self.rows[here]
            if rows.max() >= len(vectors) or rows.min() < 0:
                raise StageError(
                    f"{path.name} does not have one vector for each picture of its table; reprocess the {writer} "
                    f"pipeline, which writes both: lookalike deploy --reprocess {writer}"
                )
            into[here] = vectors[rows]

    def blank(self, to: Path, dimension: int) -> Vectors:
        """A new .npy file with room for the vectors, float32 (n, dimension), mapped. Raises OSError if the disk has no
        room for it."""
        shape = len(self), dimension
        made: Vectors = np.lib.format.open_memmap(to, mode="w+", dtype=np.dtype("<f4"), shape=shape)  # type: ignore[no-untyped-call]
        with to.open("r+b") as file:  # a page of a mapped file that finds no room ends the process
            os.posix_fallocate(file.fileno(), 0, to.stat().st_size)
        return made

    def written(self, directory: Path, to: Path, dimension: int, writer: str) -> Vectors:
        """Copies the vectors, as `copy` does, to a new .npy file; returns them, float32 (n, dimension), memory-mapped
        and read-only. Raises OSError if the disk has no room for it."""
        together = self.blank(to, dimension)
        self.copy(directory, together, writer)
        together.flags.writeable = False
        return together

    def together(self, directory: Path, dimension: int, writer: str) -> Vectors:
        """The same in a file that is deleted at once: a mapping keeps its file alive."""
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            return self.written(directory, Path(scratch) / f"together{SUFFIX}", dimension, writer)


class LazyVectors:
    """The vectors of n pictures, in a mapped file that is deleted at once, into which files of theirs are copied when
    one of their vectors is needed, each once: they may be pipes."""

    def __init__(self, places: VectorPlaces, dimension: int) -> None:
        self._places = places
        self._missing = np.ones(len(places.files), np.bool_)
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            self._vectors = places.blank(Path(scratch) / f"lazy{SUFFIX}", dimension)

    def fetched(self, directory: Path, writer: str, rows: Rows | None = None) -> Vectors:
        """All vectors, float32 (n, dimension), of which those of these rows have been read; None for all. Errors are
        those of `VectorPlaces.copy`."""
        numbers = self._places.numbers
        wanted = np.zeros_like(self._missing)
        wanted[numbers if rows is None else numbers[rows]] = True
        wanted &= self._missing
        self._places.copy(directory, self._vectors, writer, wanted)
        self._missing &= ~wanted
        return self._vectors


def read_vectors(path: Path, dimension: int) -> Vectors:
    """The vectors in a file, float32 (n, dimension), read-only: memory-mapped, or out of a pipe in memory.

    The file may be deleted once this has returned. Raises StageError if it is missing or holds anything else; pickled
    objects are never loaded.
    """
    (vectors,) = _several([path], dimension)
    return vectors


def header(count: int, dimension: int) -> bytes:
    """How a file of so many vectors begins; the rows follow, in C order."""
    made = io.BytesIO()
    told = {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
    np.lib.format.write_array_header_1_0(made, told)  # type: ignore[no-untyped-call]
    return made.getvalue()


def release(vectors: Vectors, scattered: bool = False) -> None:
    """Takes mapped vectors out of this process's memory; what is read of them later comes back from the file.
    scattered: whether single vectors are read from then on, so that the system reads no others with them."""
    if isinstance(vectors, np.memmap):
        vectors._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        if scattered:
            vectors._mmap.madvise(mmap.MADV_RANDOM)  # type: ignore[attr-defined]


def _several(paths: Sequence[Path], dimension: int) -> Iterator[Vectors]:
    """The vectors in files, one after the other, as `read_vectors` gives them. Pipes are opened some at a time before
    they are read: who fills them then is not waited for at each."""
    for start in range(0, len(paths), _TOGETHER):
        some = paths[start : start + _TOGETHER]
        with ExitStack() as opened:
            pipes = [opened.enter_context(path.open("rb")) if path.is_fifo() else None for path in some]
            for path, pipe in zip(some, pipes, strict=True):
                yield _checked(path, pipe, dimension)


def _checked(path: Path, pipe: BinaryIO | None, dimension: int) -> Vectors:
    try:
        with damage_as(lambda error: StageError(f"{path.name} is not a file of vectors: {error}")):
            vectors = _mapped(path) if pipe is None else _received(pipe)
    except FileNotFoundError as error:
        raise StageError(f"{path.name} is missing next to its table: reprocess the pipeline that wrote it") from error
    if vectors.dtype != np.dtype("<f4") or vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise StageError(
            f"{path.name} holds {vectors.dtype} of shape {vectors.shape}, not float32 vectors of {dimension} dimensions"
        )
    return vectors


def _mapped(path: Path) -> Vectors:
    vectors: Vectors = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=LONGEST_HEADER)  # type: ignore[call-arg]
    return vectors


def _received(pipe: BinaryIO) -> Vectors:
    """The content of a pipe without another copy of it, as numpy.load would make."""
    content = pipe.read()
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):  # type: ignore[no-untyped-call]
        raise ValueError("its version of .npy is not 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, LONGEST_HEADER)  # type: ignore[no-untyped-call, call-arg]
    numbers = np.frombuffer(content, dtype, math.prod(shape), stream.tell())
    vectors: Vectors = numbers.reshape(shape, order="F" if fortran else "C")
    return vectors
