"""Writing files: one stream of changes, applied to a commit or kept as a file set, in one atomic step."""

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from localpachd import ids
from localpachd.errors import NotFound
from localpachd.pfs import commits, contents
from localpachd.pfs.contents import UnfinishedBase
from localpachd.pfs.files import temporary_filesets
from localpachd.pfs.files.staged_changes import FileChange, FileCopy, StagedChanges
from localpachd.pfs.pfs_entities import FILE_SETS, Branch, Commit, CommitInfo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileSet, write_layer


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
        staged = StagedChanges(txn, pfs.chunks, _Nothing(txn.conn), listed)
        pfs.chunks.flush()
        parts = (write_layer(txn.conn, entries) for entries in (staged.replacing(), staged.appending()))
        return temporary_filesets.keep(txn, temporary_filesets.FileSetLayers(*((layer,) for layer in parts)))

    with pfs.chunks.uses.one():
        listed = list(changes)
        pfs.chunks.flush()
        return pfs.patiently(lambda: pfs.transact(step))


def apply(txn: Transaction, chunks: ChunkStore, target: Commit, changes: Iterable[FileChange]) -> None:
    """Applies changes as `modify` does, within a transaction. The chunks that they name are durable. StillFinishing if
    they read a commit that is closed and not finished."""
    place = _place(txn.conn, target)
    own = isinstance(place, Branch)
    pinned = [_pinned(txn.conn, change) for change in changes]
    commit = commits.start(txn, place) if isinstance(place, Branch) else place
    staged = StagedChanges(txn, chunks, _Commit(txn.conn, commit, own), pinned)
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


class _Commit:
    """The files of an open commit before the changes; `own` says whether it was opened for these. They are read once,
    and only if a change needs them: the commit's base may still be finishing."""

    def __init__(self, conn: sqlite3.Connection, commit: CommitInfo, own: bool) -> None:
        self._conn = conn
        self._commit = commit
        self._own = own

    @cached_property
    def to_extend(self) -> FileSet:
        return contents.to_extend(self._conn, self._commit)

    @cached_property
    def to_remove(self) -> FileSet:
        """As in Pachyderm, a commit opened for the changes removes what its base holds so far, even if that is
        finishing; another one must have a finished base."""
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
