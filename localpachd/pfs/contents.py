"""The content of commits: the layers they read as, the layers written into them, and how the first are pinned."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localpachd.errors import PachError
from localpachd.pfs import commit_rows
from localpachd.pfs.pfs_entities import Commit, CommitInfo
from localpachd.pfs.transaction import Transaction
from localpachd.storage.content_faults import survey
from localpachd.storage.filesets import FileSet, FileSetRef, LayerEntry, compact, write_layer

_DIFF = "diff"
TOTAL = "total"
# An open commit with more layers than this is compacted: a long job adds one with every batch of results.
_LAYERS = 24


class UnfinishedBase(PachError):
    """The content of a commit is not known, since the commit `base` that it stands on is not finished; `closed` says
    whether it is finishing."""

    def __init__(self, base: Commit, closed: bool, commit: Commit) -> None:
        super().__init__(f"base commit {base} for commit {commit} unfinished")
        self.base = base
        self.closed = closed


class UnfinishedCommit(PachError):
    """The work needs a commit that is closed and not finished yet: see `pfs_service.PfsService.patiently`."""

    def __init__(self, commit: Commit) -> None:
        super().__init__(f"commit {commit} is still finishing")
        self.commit = commit


def layers(conn: sqlite3.Connection, info: CommitInfo) -> FileSetRef:
    """The layers, oldest first, that a commit reads as. An open or failed commit reads as its base with its own writes
    on top."""
    if info.finished is not None and not info.error:
        return _total(conn, info.seq)
    return _base(conn, info).layers + diff_layers(conn, info)


def diff_layers(conn: sqlite3.Connection, info: CommitInfo) -> FileSetRef:
    """The layers, oldest first, that were written into this commit itself."""
    return stored(conn, info.seq, _DIFF)


def fileset(conn: sqlite3.Connection, info: CommitInfo) -> FileSet:
    """A commit's content, readable on this connection."""
    return FileSet(conn, layers(conn, info))


def settled(conn: sqlite3.Connection, info: CommitInfo) -> FileSet:
    """As `fileset`, of a commit that is open or finished: UnfinishedCommit for one in between."""
    check_settled(info)
    return fileset(conn, info)


def to_extend(conn: sqlite3.Connection, info: CommitInfo) -> FileSet:
    """As `fileset`, of an open commit whose files are extended: UnfinishedCommit while its base is, since a fault found
    in that changes them."""
    try:
        return fileset(conn, info)
    except UnfinishedBase as error:
        if error.closed:
            raise UnfinishedCommit(error.base) from error
        raise


def add_layer(txn: Transaction, info: CommitInfo, entries: Iterable[LayerEntry]) -> None:
    """Writes entries into an open commit as one layer."""
    check_open(info)
    attach(txn, info, (write_layer(txn.conn, entries),))


def attach(txn: Transaction, info: CommitInfo, found: Iterable[int]) -> None:
    """Puts existing layers on top of those written into an open commit."""
    check_open(info)
    for layer in found:
        txn.conn.execute(
            "INSERT INTO commit_layers SELECT ?, ?, COALESCE(MAX(position) + 1, 0), ? FROM commit_layers "
            "WHERE commit_seq = ? AND part = ?",
            (info.seq, _DIFF, layer, info.seq, _DIFF),
        )
    written = diff_layers(txn.conn, info)
    if len(written) > _LAYERS:
        store(txn.conn, info.seq, _DIFF, compact(txn.conn, written, bottom=False))


def delete_tags(txn: Transaction, info: CommitInfo, tags: Iterable[str]) -> None:
    """Removes every file of these datums from what an open commit reads as."""
    content = fileset(txn.conn, info)
    doomed = sorted((file.path, file.tag) for tag in tags for file in content.of_tag(tag))
    if doomed:
        add_layer(txn, info, ((path, tag, None) for path, tag in doomed))


def pin_layers(txn: Transaction, info: CommitInfo) -> tuple[str, int]:
    """Validates an open commit's content and, if it has no fault, records the layers that it reads as from now on.
    Returns the fault or "", and the content's size in bytes."""
    base = _base(txn.conn, info)
    written = diff_layers(txn.conn, info)
    below, above = FileSet(txn.conn, base.layers), FileSet(txn.conn, written)
    whole = FileSet(txn.conn, base.layers + written)
    fault, size = survey(below, above, whole, base.size)
    if not fault:
        store(txn.conn, info.seq, TOTAL, compact(txn.conn, whole.layers) if written else base.layers)
    return fault, size


def forget(txn: Transaction, info: CommitInfo) -> None:
    """Drops the content of a finished commit; reading it raises PachError from now on."""
    txn.conn.execute("DELETE FROM commit_layers WHERE commit_seq = ?", (info.seq,))
    txn.conn.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (info.seq,))


def copy_to_children(txn: Transaction, info: CommitInfo) -> None:
    """Copies what a commit adds to its base into the commits that read through it, so that they still read the same
    after it is deleted. Commits finished without error have pinned layers and need nothing."""
    if info.error:
        return  # no commit reads through it
    written = stored(txn.conn, info.seq, _DIFF)
    if info.finished is not None and not stored(txn.conn, info.seq, TOTAL):
        # It is empty, even if its base is not.
        below = FileSet(txn.conn, _base(txn.conn, info).layers)
        written = (write_layer(txn.conn, [(file.path, file.tag, None) for file in below.walk()]),)
    pending = [info.seq]
    while pending:
        rows = txn.conn.execute("SELECT seq, finished, error FROM commits WHERE parent = ?", (pending.pop(),))
        for child in rows.fetchall():
            if child["error"]:
                pending.append(child["seq"])
            elif child["finished"] is not None:
                continue
            store(txn.conn, child["seq"], _DIFF, written + stored(txn.conn, child["seq"], _DIFF))


def size_bound(conn: sqlite3.Connection, info: CommitInfo) -> int:
    """At least the size of a commit in bytes: for an open or failed one, all bytes written count, even if removed."""
    if info.finished is not None and info.size is not None:
        return info.size
    base = commit_rows.nearest_whole(conn, info.seq)
    written = conn.execute(
        "SELECT COALESCE(SUM(e.size), 0) FROM commit_layers l JOIN entries e ON e.layer = l.layer "
        "WHERE l.commit_seq = ? AND l.part = ?",
        (info.seq, _DIFF),
    ).fetchone()[0]
    return int(written + (base["size"] if base is not None else 0))


def check_settled(info: CommitInfo) -> None:
    """Raises UnfinishedCommit for a commit that is closed and not finished."""
    if info.closed:
        raise UnfinishedCommit(info.commit)


def check_open(info: CommitInfo) -> None:
    """Refuses a finished commit."""
    if info.finishing is not None:
        raise already_finished(info)


def already_finished(info: CommitInfo) -> PachError:
    """The refusal of a change to a finished commit."""
    return PachError(f"commit {info.commit} has already finished")


def stored(conn: sqlite3.Connection, seq: int, part: str) -> FileSetRef:
    """The layers, oldest first, of one part of a commit: diff or total."""
    rows = conn.execute(
        "SELECT layer FROM commit_layers WHERE commit_seq = ? AND part = ? ORDER BY position", (seq, part)
    )
    return tuple(row[0] for row in rows)


def store(conn: sqlite3.Connection, seq: int, part: str, found: Sequence[int]) -> None:
    """Replaces the layers of one part of a commit."""
    conn.execute("DELETE FROM commit_layers WHERE commit_seq = ? AND part = ?", (seq, part))
    conn.execute(
        "INSERT INTO commit_layers SELECT ?, ?, key, value FROM json_each(?)", (seq, part, json.dumps(list(found)))
    )


@dataclass(frozen=True, slots=True)
class _Base:
    """The content that a commit stands on: its layers, oldest first, and its size in bytes."""

    layers: FileSetRef = ()
    size: int = 0


def _base(conn: sqlite3.Connection, info: CommitInfo) -> _Base:
    row = commit_rows.base(conn, info.seq)
    if row is None:
        return _Base()
    if row["finished"] is None:
        raise UnfinishedBase(Commit(info.commit.repo, row["id"]), row["finishing"] is not None, info.commit)
    return _Base(_total(conn, row["seq"]), row["size"])


def _total(conn: sqlite3.Connection, seq: int) -> FileSetRef:
    """The layers of a commit that finished without error."""
    found = stored(conn, seq, TOTAL)
    if not found and conn.execute("SELECT 1 FROM forgotten WHERE commit_seq = ?", (seq,)).fetchone():
        raise PachError("the commit is forgotten")
    return found
