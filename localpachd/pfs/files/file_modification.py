"""Writing files: one stream of changes, applied to a commit or kept as a file set, in one atomic step."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from localpachd import ids
from localpachd.errors import NotFound, PachError
from localpachd.pfs import commits, contents
from localpachd.pfs.contents import UnfinishedBase
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.pfs_entities import FILE_SETS, Branch, Commit, CommitInfo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage import paths
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, FileSet, LayerEntry, TaggedFile, write_layer


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


class _StagedChanges:
    """The changes of one stream, applied in order on top of the files `below`, which are read only if needed. Sources
    of copies are read in the step `txn`."""

    def __init__(
        self, txn: Transaction, chunks: ChunkStore, below: "_Nothing | _CommitFiles", changes: Iterable[FileChange]
    ) -> None:
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


def modify(pfs: PfsService, target: Commit, changes: Iterable[FileChange]) -> None:
    """Applies changes in order, as one step: to the open commit that `target` names, or, if it names a branch whose
    head is finished, to a new commit, which is finished in the same step.

    A target that is not writable is refused before the first change is read.
    """
    with pfs.db.read() as conn:
        place = _place(conn, target)
        if isinstance(place, Branch):
            commits.check_start(conn, place, pfs.spout)
    with pfs.chunks.uses.one():
        listed = list(changes)
        pfs.chunks.flush()
        pfs.patiently(lambda: pfs.transact(lambda txn: apply(txn, pfs.chunks, target, listed)))


def create_file_set(pfs: PfsService, changes: Iterable[FileChange]) -> str:
    """Applies the changes to an empty tree, keeps the result as a file set, and returns its id."""

    def step(txn: Transaction) -> str:
        staged = _StagedChanges(txn, pfs.chunks, _Nothing(txn.conn), listed)
        pfs.chunks.flush()
        parts = (write_layer(txn.conn, entries) for entries in (staged.replacing(), staged.appending()))
        return temporary_filesets.keep(txn, temporary_filesets.FileSetLayers(*((layer,) for layer in parts)))

    with pfs.chunks.uses.one():
        listed = list(changes)
        pfs.chunks.flush()
        return pfs.patiently(lambda: pfs.transact(step))


def apply(txn: Transaction, chunks: ChunkStore, target: Commit, changes: Iterable[FileChange]) -> None:
    """Applies changes as `modify` does, within a transaction. The chunks that they name are durable. Raises
    UnfinishedCommit if they read a commit that is closed and not finished."""
    place = _place(txn.conn, target)
    own = isinstance(place, Branch)
    pinned = [_pinned(txn.conn, change) for change in changes]
    commit = commits.start(txn, place) if isinstance(place, Branch) else place
    staged = _StagedChanges(txn, chunks, _CommitFiles(txn.conn, commit, own), pinned)
    # Appending to older content makes new chunks.
    chunks.flush()
    contents.add_layer(txn, commit, staged.entries())
    txn.changed.add(commit.commit)
    if own:
        commits.finish(txn, commit)


def _pinned(conn: sqlite3.Connection, change: FileChange) -> FileChange:
    """The change with the source of a copy by its id: a branch means its head before the changes open another one."""
    if isinstance(change, FileCopy) and change.source.repo.name != FILE_SETS:
        return replace(change, source=commits.resolve(conn, change.source).commit)
    return change


class _Nothing:
    """The files below those of a file set: none."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.to_extend = self.to_remove = FileSet(conn, ())


class _CommitFiles:
    """The files of an open commit before the changes; `own` says whether it was opened for these. They are read once,
    and only if a change needs them: the commit's base may still be finishing."""

    def __init__(self, conn: sqlite3.Connection, commit: CommitInfo, own: bool) -> None:
        self._conn = conn
        self._commit = commit
        self._own = own

    @cached_property
    def to_extend(self) -> FileSet:
        """The files to which content is appended."""
        return contents.to_extend(self._conn, self._commit)

    @cached_property
    def to_remove(self) -> FileSet:
        """The files that a removed directory may hold. As in Pachyderm, a commit opened for the changes removes what
        its base holds so far, even if that is finishing; another one must have a finished base."""
        try:
            return contents.fileset(self._conn, self._commit)
        except UnfinishedBase as error:
            if not self._own:
                raise
            return contents.fileset(self._conn, commits.resolve(self._conn, error.base))


def _place(conn: sqlite3.Connection, target: Commit) -> CommitInfo | Branch:
    """The open commit to write into, or the branch on which to start one."""
    named = ids.is_id(target.id)
    branch = Branch(target.repo, target.branch or ("" if named else target.id))
    try:
        info = commits.resolve(conn, target)
    except NotFound:
        if not branch.name:
            raise
    else:
        if info.finishing is None:
            return info
        if named:
            raise contents.already_finished(info)
    return branch
