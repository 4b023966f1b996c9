"""Copies of a commit's files on this machine, for stages that run here. Fetched files are kept by Pachyderm's hash of
their content, so that the next question of the same library fetches nothing.

Knows neither the files' meaning nor the stages.
"""

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client.connection import Connection
from pipelines.client.moments import inspected
from pipelines.client.outages import outlasting
from pipelines.client.repository import Repository
from pipelines.errors import LookalikeError

KEPT_BYTES = 4 << 30
"""Most bytes of files that are kept; those that were not used for the longest time go first."""

_SCRATCH = "ask-"
_LEFT_AFTER = 7 * 86400.0
"""Seconds after which a scratch directory belongs to a process that was killed: no question takes as long."""

Report = Callable[[int], None]
"""Hears of each number of bytes that has come."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory of a commit: its path without slashes at its ends, its size in bytes with all below it, its
    hash in hex digits."""

    path: str
    size: int
    hash: str
    is_directory: bool


class Tree:
    """The files of one finished commit."""

    def __init__(self, connection: Connection, repo: str, commit: str) -> None:
        """commit: an id; that of another repo's commit stands for this repo's in its provenance."""
        self.commit = commit
        self._connection = connection
        self._repository = Repository(connection, repo, commit)
        self._stub = pfs_pb2_grpc.APIStub(connection.client._channel)
        named = pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name=connection.project))
        self._commit = pfs_pb2.Commit(repo=named, branch=pfs_pb2.Branch(repo=named), id=commit)

    @classmethod
    def at(cls, connection: Connection, repo: str, commit_set: str) -> "Tree | None":
        """A repo's files at a commit set, or at the commit in whose provenance they are; None if it had no commit.
        Raises LookalikeError if that commit failed, or is not finished."""
        info = outlasting(connection, partial(inspected, connection, repo, commit_set))
        if info is None:
            return None
        if info.error:
            raise LookalikeError(
                f"commit {info.commit.id} of {repo} failed, so there is no answer of then: {info.error}"
            )
        if not info.HasField("finished"):
            raise LookalikeError(
                f"commit {info.commit.id} of {repo} is not finished yet: wait for it, see `lookalike status`"
            )
        return cls(connection, repo, info.commit.id)

    def entries(self, pattern: str) -> list[Entry]:
        """The files and directories that match a pattern, sorted; none in an empty commit."""

        def read() -> list[Entry]:
            try:
                return [
                    _entry(info)
                    for info in self._stub.GlobFile(pfs_pb2.GlobFileRequest(commit=self._commit, pattern=pattern))
                ]
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.NOT_FOUND:
                    return []
                raise

        return sorted(outlasting(self._connection, read), key=lambda entry: entry.path)

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None if it is missing."""
        found = self.entries(f"/{path}")
        return outlasting(self._connection, lambda: self._repository.read(f"/{path}")) if found else None

    def numbers(self, pattern: str, field: str) -> Iterator[int]:
        """A whole number of each JSON object in files that match a pattern, where it has one."""
        read = outlasting(self._connection, lambda: list(self._repository.read_all(pattern)))
        for _, content in read:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                yield int(json.loads(content)[field])

    def fetch(self, entry: Entry, to: Path, report: Report = lambda _: None) -> None:
        """Writes a file, or a directory with all below it, to a path that does not exist yet."""
        to.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_directory:

            def extract() -> None:
                shutil.rmtree(to, ignore_errors=True)
                to.mkdir()
                self._repository.extract(f"/{entry.path}/", to)

            outlasting(self._connection, extract)
            report(entry.size)
            return

        def copy() -> int:
            with to.open("wb") as file:
                self._repository.fetch(f"/{entry.path}", file)
                return file.tell()

        if outlasting(self._connection, copy) != entry.size:
            raise LookalikeError(f"the server sent /{entry.path} of {self._repository.name} cut off: try again")
        report(entry.size)


class Store:
    """Fetched files below a directory of this machine, by hash, and a scratch directory on the same disk."""

    def __init__(self, directory: Path, most: int = KEPT_BYTES) -> None:
        self._kept = directory / "files"
        self._most = most
        self._directory = directory

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A directory that is deleted in the end; those that killed processes have left are deleted now."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for left in self._directory.glob(f"{_SCRATCH}*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _LEFT_AFTER:
                    shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self._directory) as scratch:
            yield Path(scratch)

    @property
    def free(self) -> int:
        """The free bytes of its disk."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self._directory).free

    @property
    def most(self) -> int:
        """The most bytes that are kept."""
        return self._most

    def place(self, tree: Tree, entry: Entry, at: Path, report: Report = lambda _: None) -> None:
        """Makes a file of a commit appear at a path of the scratch directory; it is fetched unless it is kept."""
        at.parent.mkdir(parents=True, exist_ok=True)
        kept = self._kept / entry.hash[:2] / entry.hash
        try:
            if kept.stat().st_size == entry.size:
                os.utime(kept)
                os.link(kept, at)
                report(entry.size)
                return
        except OSError:  # not kept, or a disk without links
            pass
        tree.fetch(entry, at, report)
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.unlink(missing_ok=True)
            os.link(at, kept)

    def trim(self) -> None:
        """Deletes what was not used for the longest time, until no more than `most` bytes are left."""
        found: list[tuple[float, int, Path]] = []
        for path in self._kept.glob("*/*"):
            with contextlib.suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime, state.st_size, path))
        excess = sum(size for _, size, _ in found) - self._most
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def default_place() -> Path:
    """The directory of files that are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lookalike" / "trees"


def batches(entries: list[Entry], most: int) -> Iterator[list[Entry]]:
    """The entries in order, in groups of at most so many bytes, or of one entry."""
    group: list[Entry] = []
    size = 0
    for entry in entries:
        if group and size + entry.size > most:
            yield group
            group, size = [], 0
        group.append(entry)
        size += entry.size
    if group:
        yield group


def _entry(info: Any) -> Entry:
    return Entry(info.file.path.strip("/"), info.size_bytes, info.hash.hex(), info.file_type == pfs_pb2.DIR)
