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
from pipelines.moving.bundle import Commit
from pipelines.moving.unpacking import Damaged, Reader, Written
from pipelines.moving.writing import Writer
from stages.decode.tarstreams import PIECE


@dataclass(frozen=True, slots=True)
class Earlier:
    """The commits in a tar that are as they were exported: the place of each by its name, and the sha256 of every
    member."""

    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """An open place. `recall` puts a commit there that an earlier export has left and returns the sha256 of its members
    by name, or None if there is none."""

    writer: Writer
    recall: Callable[[Commit], Mapping[str, str] | None]


@contextmanager
def stream(to: IO[bytes], commits: Sequence[Commit]) -> Iterator[Target]:
    """A target that takes each byte once. Raises LookalikeError if nobody reads on."""

    def write(data: bytes) -> None:
        try:
            _write(to, data)
        except BrokenPipeError as error:
            raise LookalikeError("the program that reads the export has ended; it does not have all of it") from error
        except OSError as error:
            raise LookalikeError(f"cannot write the export: {error.strerror}") from error

    writer = Writer(write)
    writer.library(commits)
    yield Target(writer, lambda commit: None)


@contextmanager
def file(path: Path, commits: Sequence[Commit]) -> Iterator[Target]:
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

            def recall(commit: Commit) -> Mapping[str, str] | None:
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

            writer = Writer(write)
            if not kept.places:
                writer.library(commits)
            yield Target(writer, recall)
            os.fsync(new.fileno())
        part.replace(path)
        _sync(path.parent)
    except ConnectionError:  # the server's
        raise
    except OSError as error:
        raise LookalikeError(f"cannot write {error.filename or path}: {error.strerror}") from error


@contextmanager
def _earlier(path: Path, commits: Sequence[Commit]) -> Iterator[tuple[IO[bytes] | None, Earlier]]:
    """The export at a path, open, and its commits; None if there is no file."""
    if not path.exists():
        yield None, Earlier()
        return
    if not path.is_file():
        raise LookalikeError(f"{path} is not a file: name another, or - for the standard output")
    with path.open("rb") as old:
        try:
            there = Reader(old, str(path)).library()
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


def _continued(path: Path, commits: Sequence[Commit]) -> Earlier:
    """The commits in an unfinished file, if it is one of the same export."""
    with path.open("rb") as part:
        try:
            same = Reader(part, "").library() == tuple(commits)
        except LookalikeError:
            return Earlier()
        part.seek(0)
        return _intact(part) if same else Earlier()


def _intact(tar: BufferedIOBase) -> Earlier:
    """The commits at the front of a tar, up to the first that is damaged or cut."""
    reader = Reader(tar, "")
    places: dict[str, tuple[int, int]] = {}
    try:
        for commit in reader.library():
            start = reader.offset
            reader.removed(commit)
            for each in reader.files(commit):
                if isinstance(each, Written):
                    for _ in each.content:
                        pass
            places[commit.name] = start, reader.offset
    except Damaged:
        pass
    return Earlier(places, reader.sums)


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
