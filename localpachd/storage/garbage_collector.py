"""Garbage collection: deletes layers without a commit or file set, and chunks that no layer refers to.

Such chunks lie in the trash for a day before. They come back if they are put again, or if a start finds them in use.
"""

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from localpachd.database import Database
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import chunk_hashes

KEPT = 86400.0
"""Seconds for which chunks stay in the trash, unless the disk is full or the quota reached."""


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """The numbers of layers that a sweep deleted, and of chunks that it moved into the trash."""

    layers: int
    chunks: int


def sweep(db: Database, chunks: ChunkStore) -> SweepCounts:
    """Deletes all layers without references, trashes all such chunks, and shrinks the files. Safe only while no work is
    in progress, as at the start of the server. May be interrupted and run again at any time."""
    swept = chunks.disk.freeing(lambda: SweepCounts(_delete_layers(db, _unused(db)), _sweep_chunks(db, chunks, None)))
    chunks.shrink()
    db.shrink()
    return swept


class GarbageCollector:
    """Sweeps while other work is in progress.

    Deletes a layer if an earlier sweep found it unused and all work in progress began after that: nothing can still be
    reading it. Trashes a chunk if no layer refers to it, and it was put before the sweep before this one and before any
    work in progress began: nothing is about to refer to it.
    """

    def __init__(self, db: Database, chunks: ChunkStore) -> None:
        self._db = db
        self._chunks = chunks
        self._found: dict[int, int] = {}  # unused layers, each with a mark of when it was found
        self._one = threading.Lock()
        self._next = float("-inf")
        self._goes_on = False

    def sweep(self) -> SweepCounts:
        """Deletes the layers and chunks that are safe to delete."""
        with self._one:
            # Without anything to delete, it would open the reserve of a full disk for everyone else.
            swept = self._chunks.disk.freeing(self._sweep) if self._garbage() else self._sweep()
            self._goes_on = swept != SweepCounts(0, 0)
            return swept

    def relieve(self) -> SweepCounts | None:
        """Sweeps if the quota was reached lately, or the disk was full and there is garbage, but for no more than a
        tenth of the time; None otherwise."""
        begun = time.monotonic()
        if begun < self._next:
            return None
        if not self._chunks.quota.reached and not (self._chunks.disk.short and self._garbage()):
            return None
        swept = self.sweep()
        now = time.monotonic()
        self._next = now + 9 * (now - begun)
        return swept

    def _garbage(self) -> bool:
        """Whether a sweep has something to delete, as far as is known: layers, or more of what the last one found."""
        return self._goes_on or bool(_unused(self._db))

    def _sweep(self) -> SweepCounts:
        uses = self._chunks.uses
        before = self._chunks.advance()
        unused = _unused(self._db)
        mark = uses.mark()
        found = {layer: self._found.get(layer, mark) for layer in unused}
        ripe = [layer for layer, when in found.items() if layer in self._found and uses.all_after(when)]
        layers = _delete_layers(self._db, ripe)
        self._found = {layer: when for layer, when in found.items() if layer not in set(ripe)}
        return SweepCounts(layers, _sweep_chunks(self._db, self._chunks, before))


_UNUSED = """SELECT id FROM layers
    WHERE id NOT IN (SELECT layer FROM commit_layers) AND id NOT IN (SELECT layer FROM fileset_layers)"""


def _unused(db: Database) -> list[int]:
    with db.read() as conn:
        return [row[0] for row in conn.execute(_UNUSED)]


def _delete_layers(db: Database, layers: Iterable[int]) -> int:
    """One transaction for each layer, so that no writer waits long."""
    return sum(db.write(partial(_delete, layer)) for layer in layers)


def _delete(layer: int, conn: sqlite3.Connection) -> int:
    gone = conn.execute(f"DELETE FROM layers WHERE id = ? AND id IN ({_UNUSED})", (layer,)).rowcount
    if gone:
        conn.execute("DELETE FROM entries WHERE layer = ?", (layer,))
    return gone


def _sweep_chunks(db: Database, chunks: ChunkStore, before: int | None) -> int:
    db.flush()  # a step that readers see already may not be durable yet
    with db.read() as conn:
        swept = chunks.sweep(live_chunks(conn), before)
    chunks.empty_trash(KEPT)
    return swept


def live_chunks(conn: sqlite3.Connection) -> Iterator[bytes]:
    """The hashes of the chunks that layers refer to, with repetitions."""
    with closing(conn.cursor()) as cursor:
        cursor.row_factory = None
        for (chunks,) in cursor.execute("SELECT chunks FROM entries WHERE chunks IS NOT NULL"):
            yield from chunk_hashes(chunks)
