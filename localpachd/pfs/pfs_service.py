"""Atomic steps, snapshots, and the notification after each step: the service of the pfs room."""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from localpachd import ids
from localpachd.database import Database
from localpachd.pace import AT_ONCE, Pace
from localpachd.pfs import commits, projects, propagation, triggers
from localpachd.pfs.changes import ChangeNotifier, Topic
from localpachd.pfs.contents import UnfinishedCommit
from localpachd.pfs.pfs_entities import Branch, Commit
from localpachd.pfs.transaction import CommitObserver, NullObserver, Transaction
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.url_reach import UrlReach
from speclang.names import DEFAULT_PROJECT

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class PfsService:
    """The versioned file system of one server, for one kind of caller; a new one gets the default project. Reads go
    through `database.read()` and the room's functions. `observer` follows commits within the transactions that change
    them; `spout` is the output branch that the caller may commit to, if it is a spout; `pace` is that of commits, and
    of the jobs above; `reach` holds the places outside that URLs may lead to."""

    db: Database
    chunks: ChunkStore
    observer: CommitObserver = field(default_factory=NullObserver)
    changes: ChangeNotifier = field(default_factory=ChangeNotifier)
    spout: Branch | None = None
    pace: Pace = AT_ONCE
    reach: UrlReach = field(default_factory=UrlReach)

    def __post_init__(self) -> None:
        with self.db.read() as conn:
            empty = not projects.list_all(conn)
        if empty:
            self.transact(lambda txn: projects.create(txn, DEFAULT_PROJECT))

    def for_spout(self, output: Branch) -> "PfsService":
        """The same file system for the spout that may commit to this output branch."""
        return replace(self, spout=output)

    def transact(self, step: Callable[[Transaction], T], commit_set: str = "", frees: bool = False) -> T:
        """Runs one atomic step under this commit-set id or a fresh one, completes it downstream, and notifies all that
        wait for changes. An exception undoes all of it. Triggers fire within it, under a commit-set id of their own.
        One that `frees` room works on a full disk, too, and may be run several times for that."""
        changed: set[Topic] = set()

        def write() -> T:
            return self.db.write(lambda conn: self._run(conn, step, commit_set or ids.new_id(), changed))

        result = self.chunks.disk.freeing(write) if frees else write()
        self.changes.notify(changed)
        return result

    def patiently(self, work: Callable[[], T], active: Callable[[], bool] = lambda: True) -> T:
        """The result of `work`, done again after each wait for a commit that it found still finishing. Once `active` is
        false, UnfinishedCommit is raised instead."""
        while True:
            try:
                return work()
            except UnfinishedCommit as error:
                self.changes.wait_for(partial(self.finished, error.commit), active, {error.commit.repo})
                if not active():
                    raise

    def finished(self, commit: Commit) -> bool | None:
        """True once a commit is finished or deleted, None until then: for waits."""
        with self.db.read() as conn:
            return commits.is_over(conn, commit) or None

    def dry_run(self, txn: Transaction, step: Callable[[Transaction], T], commit_set: str) -> T:
        """Runs a step as `transact` does, within another one, and rolls it back. Returns its result, or raises its
        exception."""
        txn.conn.execute("SAVEPOINT dry_run")
        try:
            return self._run(txn.conn, step, commit_set, set())
        finally:
            txn.conn.execute("ROLLBACK TO dry_run")
            txn.conn.execute("RELEASE dry_run")

    def _run(
        self, conn: sqlite3.Connection, step: Callable[[Transaction], T], commit_set: str, changed: set[Topic]
    ) -> T:
        txn = self._transaction(conn, commit_set, changed)
        result = step(txn)
        propagation.complete(txn)
        if txn.finished:
            triggered = self._transaction(conn, ids.new_id(), changed)
            for commit in txn.finished:
                triggers.fire(triggered, commit)
            propagation.complete(triggered)
        return result

    def _transaction(self, conn: sqlite3.Connection, commit_set: str, changed: set[Topic]) -> Transaction:
        return Transaction(
            conn, commit_set, time.time_ns(), self.observer, late=self.pace.late, spout=self.spout, changed=changed
        )
