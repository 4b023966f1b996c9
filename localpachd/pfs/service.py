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

    def transact(self, step: Callable[[Transaction], T]) -> T:
        """Runs one atomic step under a fresh commit-set id, completes it downstream, and rings the bell. What it raises
        undoes all of it. What it triggers is part of it, under a commit-set id of its own."""

        def run(conn: sqlite3.Connection) -> T:
            txn = self._transaction(conn)
            result = step(txn)
            propagation.complete(txn)
            if txn.finished:
                triggered = self._transaction(conn)
                for commit in txn.finished:
                    triggers.fire(triggered, commit)
                propagation.complete(triggered)
            return result

        result = self.db.write(run)
        self.changes.notify()
        return result

    def _transaction(self, conn: sqlite3.Connection) -> Transaction:
        return Transaction(conn, ids.new_id(), time.time_ns(), self._observer, spout=self.spout)
