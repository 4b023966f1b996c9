"""Copies of a commit's files on this machine, for stages that run here.

Knows neither the files' meaning nor the stages.
"""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc

from pipelines.client.moments import inspected
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.server.outages import outlasting
from pipelines.errors import LookalikeError
from stages.datum.filecache import FileCache

_TOGETHER = 8
"""Files of a directory that are fetched together."""

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

    def place(self, cache: FileCache, entry: Entry, at: Path, report: Report = lambda _: None) -> None:
        """Makes a file appear at a path of the cache's scratch directory; it is fetched unless it is kept."""
        if cache.place(entry.hash, entry.size, at, lambda to: self.fetch(entry, to, report)):
            report(entry.size)

    def place_all(
        self, cache: FileCache, entries: Sequence[Entry], below: Path, report: Report = lambda _: None
    ) -> None:
        """Does so for many files, at their paths below one. Of a directory with several that are not kept all files are
        fetched with one call: it takes less time than a call for each."""
        waiting: dict[str, list[Entry]] = {}
        for each in entries:
            if cache.kept(each.hash, each.size):
                self.place(cache, each, below / each.path, report)
            else:
                waiting.setdefault(each.path.rpartition("/")[0], []).append(each)
        for directory, files in waiting.items():
            if len(files) < _TOGETHER or not directory:
                for each in files:
                    self.place(cache, each, below / each.path, report)
                continue
            with cache.scratch() as scratch:
                fetched = scratch / "fetched"
                self.fetch(Entry(directory, 0, "", True), fetched)
                for each in files:
                    found = fetched / each.path.rpartition("/")[2]
                    cache.place(each.hash, each.size, below / each.path, partial(_move, found))
                    report(each.size)


def _move(file: Path, to: Path) -> None:
    shutil.move(file, to)


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
