"""The place that an export is written to: a file, or the standard output. Knows no server.

Until it is whole, a file is named FILE.part; an interrupted export continues from there. Commits that an earlier export
left in FILE are copied from it instead of being fetched again.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from pipelines.errors import LookalikeError
from pipelines.transfer.bundle import BundleCommit
from pipelines.transfer.bundle_reader import BundleFile, BundleReader, DamagedBundleError
from pipelines.transfer.bundle_writer import BundleWriter
from stages.decode.tar_streams import PIECE

PARQUET, NUMPY, FAISS = ".parquet", ".npy", ".faiss"
VECTORS = (PARQUET, NUMPY, FAISS)
"""The endings of files of vectors, which choose their format."""


@dataclass(frozen=True, slots=True)
class EarlierExport:
    """The commits in a tar that are as they were exported: the place of each by its name, and the sha256 of every
    member."""

    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """An open place. `recall` puts a commit there that an earlier export has left and returns the sha256 of its members
    by name, or None if there is none."""

    writer: BundleWriter
    recall: Callable[[BundleCommit], Mapping[str, str] | None]


@contextmanager
def stream(to: IO[bytes], commits: Sequence[BundleCommit]) -> Iterator[ExportTarget]:
    """A target that takes each byte once. Raises LookalikeError if nobody reads on."""

    def write(data: bytes) -> None:
        try:
            _write(to, data)
        except BrokenPipeError as error:
            raise LookalikeError("the program that reads the export has ended; it does not have all of it") from error
        except OSError as error:
            raise LookalikeError(f"cannot write the export: {error.strerror}") from error

    writer = BundleWriter(write)
    writer.library(commits)
    yield ExportTarget(writer, lambda commit: None)


@contextmanager
def file(path: Path, commits: Sequence[BundleCommit]) -> Iterator[ExportTarget]:
    """The file at a path, which replaces an earlier one at the end. Raises LookalikeError if that is not an export of
    the same library, and where nothing can be written."""
    part = path.with_name(path.name + ".part")
    try:
        with _earlier(path, commits) as (old, before), part.open("a+b", buffering=0) as new:
            _lock(new, part)
            kept = _continued(part, commits)
            new.truncate(max((end for _, end in kept.places.values()), default=0))

            def write(data: bytes) -> None:
                try:
                    _write(new, data)
                except OSError as error:
                    raise LookalikeError(
                        f"cannot write {part}: {error.strerror}; the same command continues there when it can"
                    ) from error

            def recall(commit: BundleCommit) -> Mapping[str, str] | None:
                if commit.name in kept.places:
                    return kept.sums
                if old is None or commit.name not in before.places:
                    return None
                start, end = before.places[commit.name]
                old.seek(start)
                while start < end:
                    piece = old.read(min(PIECE, end - start))
                    if not piece:
                        raise LookalikeError(f"{path} was changed by another program: export again")
                    start += len(piece)
                    write(piece)
                return before.sums

            writer = BundleWriter(write)
            if not kept.places:
                writer.library(commits)
            yield ExportTarget(writer, recall)
            os.fsync(new.fileno())
        part.replace(path)
        _sync(path.parent)
    except ConnectionError:  # the server's
        raise
    except OSError as error:
        raise LookalikeError(f"cannot write {error.filename or path}: {error.strerror}") from error


@contextmanager
def _earlier(path: Path, commits: Sequence[BundleCommit]) -> Iterator[tuple[IO[bytes] | None, EarlierExport]]:
    """The export at a path, open, and its commits; None if there is no file."""
    if not path.exists():
        yield None, EarlierExport()
        return
    if not path.is_file():
        raise LookalikeError(f"{path} is not a file: name another, or - for the standard output")
    with path.open("rb") as old:
        try:
            there = BundleReader(old, str(path)).library()
        except LookalikeError as error:
            raise LookalikeError(f"{error}; it stays as it is: export to another file") from error
        here = {each.name for each in commits}
        gone = [each for each in there if each.name not in here]
        if gone:
            raise LookalikeError(
                f"{path} holds a library with commits that this server lacks, such as {gone[0].repo}@{gone[0].id}: "
                "export to another file, or remove that one"
            )
        old.seek(0)
        yield old, _intact(old)


def _lock(part: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LookalikeError(f"another export is writing {path}: wait for its end, or name another file") from error


def _continued(path: Path, commits: Sequence[BundleCommit]) -> EarlierExport:
    """The commits in an unfinished file, if it is one of the same export."""
    with path.open("rb") as part:
        try:
            same = BundleReader(part, "").library() == tuple(commits)
        except LookalikeError:
            return EarlierExport()
        part.seek(0)
        return _intact(part) if same else EarlierExport()


def _intact(tar: BufferedIOBase) -> EarlierExport:
    """The commits at the front of a tar, up to the first that is damaged or cut."""
    reader = BundleReader(tar, "")
    places: dict[str, tuple[int, int]] = {}
    try:
        for commit in reader.library():
            start = reader.offset
            reader.removed(commit)
            for each in reader.files(commit):
                if isinstance(each, BundleFile):
                    for _ in each.content:
                        pass
            places[commit.name] = start, reader.offset
    except DamagedBundleError:
        pass
    return EarlierExport(places, reader.sums)


def _write(to: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[to.write(left) :]


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
