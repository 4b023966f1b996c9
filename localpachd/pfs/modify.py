"""Writing files: one stream of changes, applied to a commit or made a file set of its own as one step."""

import sqlite3
from collections.abc import Iterable

from localpachd import ids
from localpachd.errors import NotFound
from localpachd.pfs import commits, contents, filesets
from localpachd.pfs.entities import Branch, Commit, CommitInfo
from localpachd.pfs.service import Pfs
from localpachd.pfs.staging import Change, Staged
from localpachd.pfs.transaction import Transaction
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import FileSet, write_layer


def modify(pfs: Pfs, target: Commit, changes: Iterable[Change]) -> None:
    """Applies changes in order and all at once: to the open commit that `target` names, or, where it names a branch
    without one, to a commit of their own, which is finished with them.

    A target that cannot be written to is refused before the first change is asked for.
    """
    with pfs.db.read() as conn:
        place = _place(conn, target)
        if isinstance(place, Branch):
            commits.check_start(conn, place, pfs.spout)
    with pfs.chunks.uses.one():
        listed = list(changes)
        pfs.chunks.flush()
        pfs.transact(lambda txn: apply(txn, pfs.chunks, target, listed))


def create_file_set(pfs: Pfs, changes: Iterable[Change]) -> str:
    """Keeps what the changes come to where nothing was before, and returns the file set's id."""

    def step(txn: Transaction) -> str:
        staged = Staged(txn, pfs.chunks, FileSet(txn.conn, ()), listed)
        pfs.chunks.flush()
        parts = (write_layer(txn.conn, entries) for entries in (staged.replacing(), staged.appending()))
        return filesets.keep(txn, filesets.Layers(*((layer,) for layer in parts)))

    with pfs.chunks.uses.one():
        listed = list(changes)
        pfs.chunks.flush()
        return pfs.transact(step)


def apply(txn: Transaction, chunks: Chunks, target: Commit, changes: Iterable[Change]) -> None:
    """Applies changes as `modify` does, within a transaction. The chunks that they name are durable."""
    place = _place(txn.conn, target)
    own = isinstance(place, Branch)
    commit = commits.start(txn, place) if isinstance(place, Branch) else place
    staged = Staged(txn, chunks, contents.fileset(txn.conn, commit), changes)
    # What was appended to older content has made chunks of its own.
    chunks.flush()
    contents.add_layer(txn, commit, staged.entries())
    txn.changed.add(commit.commit)
    if own:
        commits.finish(txn, commit)


def _place(conn: sqlite3.Connection, target: Commit) -> CommitInfo | Branch:
    """The open commit to write into, or the branch that is to get a commit for this."""
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
