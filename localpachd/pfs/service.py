"""The door of the pfs room: atomic steps, snapshots, and the bell that rings after each step."""

import time
from collections.abc import Callable
from typing import TypeVar

from localpachd import ids
from localpachd.db import Database
from localpachd.pfs import projects, propagation
from localpachd.pfs.changes import Changes
from localpachd.pfs.transaction import Nobody, Observer, Transaction
from localpachd.pfs.values import DEFAULT_PROJECT
from localpachd.storage.chunks import Chunks

T = TypeVar("T")


class Pfs:
    """The versioned file system of one server. Reads go through `db.read()` and the room's functions."""

    def __init__(self, db: Database, chunks: Chunks) -> None:
        self.db = db
        self.chunks = chunks
        self.changes = Changes()
        self._observer: Observer = Nobody()
        with db.read() as conn:
            empty = not projects.list_all(conn)
        if empty:
            self.transact(lambda txn: projects.create(txn, DEFAULT_PROJECT))

    def observe(self, observer: Observer) -> None:
        """Names who hears of commits within the transactions that change them."""
        self._observer = observer

    def transact(self, step: Callable[[Transaction], T]) -> T:
        """Runs one atomic step under a fresh commit-set id, completes it downstream, and rings the bell. What it raises
        undoes all of it."""

        def run(txn: Transaction) -> T:
            result = step(txn)
            propagation.complete(txn)
            return result

        result = self.db.write(lambda conn: run(Transaction(conn, ids.new_id(), time.time_ns(), self._observer)))
        self.changes.notify()
        return result
