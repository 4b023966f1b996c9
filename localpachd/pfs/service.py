"""The door of the pfs room: atomic steps, snapshots, and the bell that rings after each step."""

import copy
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from localpachd import ids
from localpachd.db import Database
from localpachd.pfs import projects, propagation, triggers
from localpachd.pfs.changes import Changes
from localpachd.pfs.transaction import Nobody, Observer, Transaction
from localpachd.pfs.values import DEFAULT_PROJECT, Branch
from localpachd.storage.chunks import Chunks

T = TypeVar("T")


class Pfs:
    """The versioned file system of one server. Reads go through `db.read()` and the room's functions."""

    def __init__(self, db: Database, chunks: Chunks) -> None:
        self.db = db
        self.chunks = chunks
        self.changes = Changes()
        self.spout: Branch | None = None
        self._observer: Observer = Nobody()
        with db.read() as conn:
            empty = not projects.list_all(conn)
        if empty:
            self.transact(lambda txn: projects.create(txn, DEFAULT_PROJECT))

    def for_spout(self, output: Branch) -> "Pfs":
        """The same file system as a spout sees it, which may commit to its own output branch."""
        door = copy.copy(self)
        door.spout = output
        return door

    def observe(self, observer: Observer) -> None:
        """Names who hears of commits within the transactions that change them."""
        self._observer = observer

    def transact(self, step: Callable[[Transaction], T], commit_set: str = "") -> T:
        """Runs one atomic step under this commit-set id or a fresh one, completes it downstream, and rings the bell.
        What it raises undoes all of it. What it triggers is part of it, under a commit-set id of its own."""
        result = self.db.write(lambda conn: self._run(conn, step, commit_set or ids.new_id()))
        self.changes.notify()
        return result

    def rehearse(self, txn: Transaction, step: Callable[[Transaction], T], commit_set: str) -> T:
        """Runs a step as `transact` does, within another one, and undoes everything that it did. Returns what it would
        return, or raises what it would raise."""
        txn.conn.execute("SAVEPOINT rehearsal")
        try:
            return self._run(txn.conn, step, commit_set)
        finally:
            txn.conn.execute("ROLLBACK TO rehearsal")
            txn.conn.execute("RELEASE rehearsal")

    def _run(self, conn: sqlite3.Connection, step: Callable[[Transaction], T], commit_set: str) -> T:
        txn = self._transaction(conn, commit_set)
        result = step(txn)
        propagation.complete(txn)
        if txn.finished:
            triggered = self._transaction(conn, ids.new_id())
            for commit in txn.finished:
                triggers.fire(triggered, commit)
            propagation.complete(triggered)
        return result

    def _transaction(self, conn: sqlite3.Connection, commit_set: str) -> Transaction:
        return Transaction(conn, commit_set, time.time_ns(), self._observer, spout=self.spout)
