"""Garbage collection: deletes layers of neither a commit nor a file set, and chunks that no layer refers to."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from localpachd.db import Database
from localpachd.storage.chunks import Chunks

_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class Swept:
    """How much a sweep deleted."""

    layers: int
    chunks: int


def sweep(db: Database, chunks: Chunks, keep: Iterable[int] = (), before: float | None = None) -> Swept:
    """Deletes what nothing refers to; may be stopped and run again at any time.

    `keep` are layers that someone still reads or that belong to no commit yet. `before` (seconds since the epoch)
    spares chunks put at that time or later: what was stored but not yet committed; give the start of the oldest write
    in progress. Without it every unreferenced chunk goes, which is right only while nobody writes, as at the start of
    the server.
    """
    kept = frozenset(keep)
    with db.read() as conn:
        unused = [row[0] for row in conn.execute(_UNUSED) if row[0] not in kept]
    layers = sum(db.write(partial(_delete, layer)) for layer in unused)
    with db.read() as conn:
        return Swept(layers, chunks.sweep(_live(conn), before))


_UNUSED = """SELECT id FROM layers
    WHERE id NOT IN (SELECT layer FROM commit_layers) AND id NOT IN (SELECT layer FROM fileset_layers)"""


def _delete(layer: int, conn: sqlite3.Connection) -> int:
    """One transaction for each layer, so that no writer waits long."""
    gone = conn.execute(f"DELETE FROM layers WHERE id = ? AND id IN ({_UNUSED})", (layer,)).rowcount
    if gone:
        conn.execute("DELETE FROM entries WHERE layer = ?", (layer,))
    return gone


def _live(conn: sqlite3.Connection) -> Iterator[bytes]:
    with closing(conn.cursor()) as cursor:
        cursor.row_factory = None
        for (chunks,) in cursor.execute("SELECT chunks FROM entries WHERE chunks IS NOT NULL"):
            yield from (chunks[at : at + _HASH_BYTES] for at in range(0, len(chunks), _HASH_BYTES))
