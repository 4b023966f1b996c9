"""One atomic step of the server: its connection, its commit-set id, its single timestamp, and its effects.

A transaction records what it did to branches and commits. Before it commits, `propagation` completes it and tells the
observer.

Transactions that clients keep open until they finish or delete them do not expire. Their content is bytes here;
`api.pfs.transaction_servicer` knows its meaning.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from localpachd.errors import NotFound
from localpachd.pfs.changes import Topic
from localpachd.pfs.pfs_entities import Branch, CommitInfo


class CommitObserver(Protocol):
    """Follows commits within the transaction that changes them: called at its end, in the order of these methods."""

    def commits_opened(self, txn: "Transaction", opened: Sequence[CommitInfo]) -> None:
        """Every commit that this transaction made, upstream first, after propagation."""

    def commits_removed(self, txn: "Transaction", removed: Sequence[CommitInfo]) -> None:
        """Commits that this transaction deleted with their content, as they were."""

    def commit_finished(self, txn: "Transaction", commit: CommitInfo) -> None:
        """A commit was finished, with or without an error."""


class NullObserver(CommitObserver):
    """The observer of a server without pipelines: it does nothing."""


@dataclass(slots=True)
class Transaction:
    """`id` is the commit set of every commit made here; `now` (ns) is the time of everything in it."""

    conn: sqlite3.Connection
    id: str
    now: int
    observer: CommitObserver = field(default_factory=NullObserver)
    opened: list[int] = field(default_factory=list)
    """Sequence numbers of the commits opened so far."""
    moved: list[int] = field(default_factory=list)
    """Ids of the branches whose head moved; commits are opened downstream of them at the end."""
    rewired: list[int] = field(default_factory=list)
    """Ids of the branches whose provenance changed; the DAG is checked at the end."""
    late: bool = False
    """Whether commits that are finished here stay finishing for a while: see `upkeep.commit_finisher`."""
    spout: Branch | None = None
    """The one output branch that this step may commit to, if a spout makes it."""
    finished: list[int] = field(default_factory=list)
    """Sequence numbers of the commits finished so far, for the triggers."""
    removed: list[CommitInfo] = field(default_factory=list)
    """The commits deleted so far."""
    changed: set[Topic] = field(default_factory=set)
    """The topics to notify once this is committed; if empty, anything may have changed."""


def add_open(txn: Transaction, id_: str, content: bytes) -> None:
    """Keeps a new open transaction."""
    txn.conn.execute("INSERT INTO transactions (id, content) VALUES (?, ?)", (id_, content))


def read_open(conn: sqlite3.Connection, id_: str) -> bytes:
    """The content of an open transaction; NotFound if it does not exist."""
    row = conn.execute("SELECT content FROM transactions WHERE id = ?", (id_,)).fetchone()
    if row is None:
        raise NotFound(f"transactions {id_} not found")
    content: bytes = row["content"]
    return content


def list_open(conn: sqlite3.Connection) -> list[bytes]:
    """The content of each open transaction, newest first."""
    return [row[0] for row in conn.execute("SELECT content FROM transactions ORDER BY seq DESC")]


def write_open(txn: Transaction, id_: str, content: bytes) -> None:
    """Replaces the content of an open transaction."""
    txn.conn.execute("UPDATE transactions SET content = ? WHERE id = ?", (content, id_))


def remove_open(txn: Transaction, id_: str) -> None:
    """Deletes an open transaction; NotFound if it does not exist."""
    read_open(txn.conn, id_)
    txn.conn.execute("DELETE FROM transactions WHERE id = ?", (id_,))


def remove_all_open(txn: Transaction) -> None:
    """Deletes every open transaction."""
    txn.conn.execute("DELETE FROM transactions")
