"""The content of commits: the layers they read as, the layers written into them, and how the first are pinned."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localpachd.errors import PachError
from localpachd.pfs import lineage
from localpachd.pfs.entities import Commit, CommitInfo
from localpachd.pfs.transaction import Transaction
from localpachd.storage.faults import survey
from localpachd.storage.filesets import Entry, FileSet, FileSetRef, compact, write_layer

_DIFF = "diff"
TOTAL = "total"
# Layers that an open commit may gather before they are merged: a long job adds one every now and then.
_LAYERS = 24


def layers(conn: sqlite3.Connection, info: CommitInfo) -> FileSetRef:
    """The layers, oldest first, that a commit reads as. An open or an errored commit reads as the content it stands on
    with its own writes on top."""
    if info.finished is not None and not info.error:
        return _total(conn, info.seq)
    return _base(conn, info).layers + diff_layers(conn, info)


def diff_layers(conn: sqlite3.Connection, info: CommitInfo) -> FileSetRef:
    """The layers, oldest first, that were written into this very commit."""
    return stored(conn, info.seq, _DIFF)


def fileset(conn: sqlite3.Connection, info: CommitInfo) -> FileSet:
    """A commit's content, readable on this connection."""
    return FileSet(conn, layers(conn, info))


def add_layer(txn: Transaction, info: CommitInfo, entries: Iterable[Entry]) -> None:
    """Writes entries into an open commit, all of them at once."""
    check_open(info)
    attach(txn, info, (write_layer(txn.conn, entries),))


def attach(txn: Transaction, info: CommitInfo, found: Iterable[int]) -> None:
    """Puts layers that are there already on top of what was written into an open commit."""
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
    """Removes from an open commit every file that these datums have put there or below."""
    content = fileset(txn.conn, info)
    doomed = sorted((file.path, file.tag) for tag in tags for file in content.of_tag(tag))
    if doomed:
        add_layer(txn, info, ((path, tag, None) for path, tag in doomed))


def pin_layers(txn: Transaction, info: CommitInfo) -> tuple[str, int]:
    """Checks an open commit's content and, if it is sound, records the layers that it reads as from now on. Returns the
    fault found or "", and the content's size in bytes."""
    base = _base(txn.conn, info)
    written = diff_layers(txn.conn, info)
    below, above = FileSet(txn.conn, base.layers), FileSet(txn.conn, written)
    whole = FileSet(txn.conn, base.layers + written)
    fault, size = survey(below, above, whole, base.size)
    if not fault:
        store(txn.conn, info.seq, TOTAL, compact(txn.conn, whole.layers) if written else base.layers)
    return fault, size


def forget(txn: Transaction, info: CommitInfo) -> None:
    """Lets go of all that a finished commit holds; whoever reads it from now on is told so."""
    txn.conn.execute("DELETE FROM commit_layers WHERE commit_seq = ?", (info.seq,))
    txn.conn.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (info.seq,))


def hand_down(txn: Transaction, info: CommitInfo) -> None:
    """Gives what a commit adds to the content below it to the commits that read through it, so that they read as before
    when it is gone. Sound finished commits read as layers of their own."""
    if info.error:
        return  # nobody reads through it
    written = stored(txn.conn, info.seq, _DIFF)
    if info.finished is not None and not stored(txn.conn, info.seq, TOTAL):
        # It is empty, whatever is below it.
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


def bound(conn: sqlite3.Connection, info: CommitInfo) -> int:
    """Bytes that a commit holds at most: of one that is open or failed, all that was written counts, removed or not."""
    if info.finished is not None and info.size is not None:
        return info.size
    base = lineage.nearest_whole(conn, info.seq)
    written = conn.execute(
        "SELECT COALESCE(SUM(e.size), 0) FROM commit_layers l JOIN entries e ON e.layer = l.layer "
        "WHERE l.commit_seq = ? AND l.part = ?",
        (info.seq, _DIFF),
    ).fetchone()[0]
    below = conn.execute("SELECT size FROM commits WHERE seq = ?", (base,)).fetchone()[0] if base is not None else 0
    return int(below + written)


def check_open(info: CommitInfo) -> None:
    """Refuses a finished commit."""
    if info.finishing is not None:
        raise already_finished(info)


def already_finished(info: CommitInfo) -> PachError:
    """The refusal of a change to a finished commit."""
    return PachError(f"commit {info.commit} has already finished")


def stored(conn: sqlite3.Connection, seq: int, part: str) -> FileSetRef:
    """The layers, oldest first, that a commit has as one of its parts."""
    rows = conn.execute(
        "SELECT layer FROM commit_layers WHERE commit_seq = ? AND part = ? ORDER BY position", (seq, part)
    )
    return tuple(row[0] for row in rows)


def store(conn: sqlite3.Connection, seq: int, part: str, found: Sequence[int]) -> None:
    """Lets a commit have these layers as one of its parts."""
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
    row = lineage.base(conn, info.seq)
    if row is None:
        return _Base()
    if row["finished"] is None:
        raise PachError(f"base commit {Commit(info.commit.repo, row['id'])} for commit {info.commit} unfinished")
    return _Base(_total(conn, row["seq"]), row["size"])


def _total(conn: sqlite3.Connection, seq: int) -> FileSetRef:
    """The layers of a sound finished commit."""
    found = stored(conn, seq, TOTAL)
    if not found and conn.execute("SELECT 1 FROM forgotten WHERE commit_seq = ?", (seq,)).fetchone():
        raise PachError("the commit is forgotten")
    return found
