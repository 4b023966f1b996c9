"""Changes to files and the entries that a stream of them results in, in memory. Writes nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from localpachd.errors import PachError
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.pfs_entities import Commit
from localpachd.pfs.transaction import Transaction
from localpachd.storage import paths
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, FileSet, LayerEntry, TaggedFile


@dataclass(frozen=True, slots=True)
class FileAddition:
    """Content to append to the file at a path; the content is in the chunk store."""

    path: str
    tag: str
    content: FileContent


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """A file to remove or, with a trailing slash, everything below a directory."""

    path: str
    tag: str


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file or directory to copy from a readable commit, replacing or appended to the files there. `source_tag` limits
    the source to one datum's files. A source that does not exist copies nothing, as in Pachyderm."""

    source: Commit
    source_path: str
    source_tag: str
    path: str
    tag: str
    append: bool


FileChange = FileAddition | FileRemoval | FileCopy


class BaseFiles(Protocol):
    """The files that changes are put upon."""

    @property
    def to_extend(self) -> FileSet:
        """The files to which content is appended."""

    @property
    def to_remove(self) -> FileSet:
        """The files that a removed directory may hold."""


class StagedChanges:
    """The changes of one stream, applied in order on top of the files `below`, which are read only if needed. Sources
    of copies are read in the step `txn`."""

    def __init__(self, txn: Transaction, chunks: ChunkStore, below: BaseFiles, changes: Iterable[FileChange]) -> None:
        self._txn = txn
        self._chunks = chunks
        self._below = below
        self._staged: dict[tuple[str, str], FileContent | None] = {}
        self._removed: set[tuple[str, str]] = set()
        for change in changes:
            match change:
                case FileAddition(path, tag, content):
                    self._add(path, tag, content)
                case FileRemoval(path, tag):
                    self._remove(path, tag)
                case FileCopy():
                    self._copy(change)

    def entries(self) -> Iterator[LayerEntry]:
        """All entries, as one layer above those below."""
        for path, tag in sorted(self._staged):
            yield path, tag, self._staged[path, tag]

    def replacing(self) -> Iterator[LayerEntry]:
        """The entries that count instead of those below: removed paths, even if they were written again."""
        return (entry for entry in self.entries() if entry[:2] in self._removed)

    def appending(self) -> Iterator[LayerEntry]:
        """The entries to append to those below."""
        return (entry for entry in self.entries() if entry[:2] not in self._removed and entry[2] is not None)

    def _current(self, path: str, tag: str) -> FileContent | None:
        if (path, tag) in self._staged:
            return self._staged[path, tag]
        found = self._below.to_extend.find(path, tag)
        return found.content if found else None

    def _add(self, path: str, tag: str, content: FileContent) -> None:
        if path == "/":
            raise PachError("path (/) invalid: the root directory is not a file")
        current = self._current(path, tag)
        self._staged[path, tag] = content if current is None else self._chunks.concatenate(current, content)

    def _remove(self, path: str, tag: str) -> None:
        if not path.endswith("/"):
            self._staged[path, tag] = None
            self._removed.add((path, tag))
            return
        for key in self._staged:
            if key[0].startswith(path) and key[1] == tag:
                self._staged[key] = None
        for file in self._below.to_remove.tagged(tag).under(path):
            self._staged[file.path, tag] = None
            self._removed.add((file.path, tag))

    def _copy(self, change: FileCopy) -> None:
        origin = paths.clean(change.source_path)
        stem = len(origin.rstrip("/"))
        for file in self._source(change, origin):
            path = paths.clean(change.path + file.path[stem:])
            if not change.append:
                self._remove(path, change.tag)
            self._add(path, change.tag, file.content)

    def _source(self, change: FileCopy, origin: str) -> Iterator[TaggedFile]:
        _, files = temporary_filesets.opened(self._txn.conn, change.source, self._txn.now)
        if change.source_tag:
            files = files.tagged(change.source_tag)
        return chain(files.get(origin), files.under(origin))
