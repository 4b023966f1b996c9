"""Copies of a commit's files on this machine, for stages that run here.

Knows neither the files' meaning nor the stages.
"""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pipelines.client.commit_sets import inspect_commit
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from stages.datum.file_cache import FileCache

_TOGETHER = 8
"""Files of a directory that are fetched together."""

FetchProgress = Callable[[int], None]
"""Hears of each number of bytes that has come."""


class CommitTree:
    """The files of one finished commit."""

    def __init__(self, connection: Connection, repo: str, commit: str) -> None:
        """commit: an id; that of another repo's commit stands for this repo's in its provenance."""
        self.commit = commit
        self._connection = connection
        self._repository = Repository(connection, repo, commit)

    @classmethod
    def at(cls, connection: Connection, repo: str, commit_set: str) -> "CommitTree | None":
        """A repo's files at a commit set, or at the commit in whose provenance they are; None if it had no commit.
        Raises LookalikeError if that commit failed, or is not finished."""
        info = connection.retry(inspect_commit, connection, repo, commit_set)
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

    def entries(self, pattern: str) -> list[StoredFile]:
        """The files and directories that match a pattern, sorted; none in an empty commit."""
        return sorted(self._connection.retry(lambda: list(self._repository.glob(pattern))), key=lambda each: each.name)

    def files(self, pattern: str = "/**") -> list[StoredFile]:
        """The files among these, by default all of the commit."""
        return [each for each in self.entries(pattern) if not each.is_directory]

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None if it is missing."""
        found = self.entries(f"/{path}")
        return self._connection.retry(lambda: self._repository.read(f"/{path}")) if found else None

    def numbers(self, pattern: str, field: str) -> Iterator[int]:
        """A whole number of each JSON object in files that match a pattern, where it has one."""
        read = self._connection.retry(lambda: list(self._repository.read_all(pattern)))
        for _, content in read:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                yield int(json.loads(content)[field])

    def fetch(self, entry: StoredFile, to: Path, report: FetchProgress = lambda _: None) -> None:
        """Writes a file, or a directory with all below it, to a path that does not exist yet."""
        to.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_directory:

            def extract() -> None:
                shutil.rmtree(to, ignore_errors=True)
                to.mkdir()
                self._repository.extract(f"/{entry.name}/", to)

            self._connection.retry(extract)
            report(entry.size)
            return

        def copy() -> int:
            with to.open("wb") as file:
                self._repository.fetch(f"/{entry.name}", file)
                return file.tell()

        if self._connection.retry(copy) != entry.size:
            raise LookalikeError(f"the server sent /{entry.name} of {self._repository.name} cut off: try again")
        report(entry.size)

    def place(self, cache: FileCache, entry: StoredFile, at: Path, report: FetchProgress = lambda _: None) -> None:
        """Makes a file appear at a path of the cache's scratch directory; it is fetched unless it is kept."""
        if cache.place(entry.hash, entry.size, at, lambda to: self.fetch(entry, to, report)):
            report(entry.size)

    def place_all(
        self, cache: FileCache, entries: Sequence[StoredFile], below: Path, report: FetchProgress = lambda _: None
    ) -> None:
        """Does so for many files, at their paths below one. Of a directory with several that are not kept all files are
        fetched with one call: it takes less time than a call for each."""
        waiting: dict[str, list[StoredFile]] = {}
        for each in entries:
            if cache.kept(each.hash, each.size):
                self.place(cache, each, below / each.name, report)
            else:
                waiting.setdefault(each.name.rpartition("/")[0], []).append(each)
        for directory, files in waiting.items():
            if len(files) < _TOGETHER or not directory:
                for each in files:
                    self.place(cache, each, below / each.name, report)
                continue
            with cache.scratch() as scratch:
                fetched = scratch / "fetched"
                self.fetch(StoredFile(directory, 0, "", True), fetched)
                for each in files:
                    found = fetched / each.name.rpartition("/")[2]
                    cache.place(each.hash, each.size, below / each.name, partial(_move, found))
                    report(each.size)


def _move(file: Path, to: Path) -> None:
    shutil.move(file, to)


def batches(entries: list[StoredFile], most: int) -> Iterator[list[StoredFile]]:
    """The entries in order, in groups of at most so many bytes, or of one entry."""
    group: list[StoredFile] = []
    size = 0
    for entry in entries:
        if group and size + entry.size > most:
            yield group
            group, size = [], 0
        group.append(entry)
        size += entry.size
    if group:
        yield group
