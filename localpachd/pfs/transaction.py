"""One atomic step of the server: its connection, its commit-set id, its single timestamp, and its effects.

A transaction records what it did to branches and commits. Before it commits, `propagation` completes it and tells the
observer.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

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


class NullObserver:
    """The observer of a server without pipelines."""

    def commits_opened(self, txn: "Transaction", opened: Sequence[CommitInfo]) -> None:
        """Nothing to do."""

    def commits_removed(self, txn: "Transaction", removed: Sequence[CommitInfo]) -> None:
        """Nothing to do."""

    def commit_finished(self, txn: "Transaction", commit: CommitInfo) -> None:
        """Nothing to do."""


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
    """Whether commits that are finished here stay finishing for a while: see `finisher`."""
    spout: Branch | None = None
    """The one output branch that this step may commit to, if a spout makes it."""
    finished: list[int] = field(default_factory=list)
    """Sequence numbers of the commits finished so far, for the triggers."""
    removed: list[CommitInfo] = field(default_factory=list)
    """The commits deleted so far."""
    changed: set[Topic] = field(default_factory=set)
    """The topics to notify once this is committed; if empty, anything may have changed."""
