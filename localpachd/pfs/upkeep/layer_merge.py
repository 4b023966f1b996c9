"""Merging the layers that only one commit reads: with its history squashed, their hidden entries are garbage."""

import sqlite3
from functools import partial

from localpachd.database import Database
from localpachd.pfs.contents import TOTAL, store, stored
from localpachd.storage.filesets import FileSet, FileSetRef, merge

_HIDDEN = 0.01
"""The ratio of hidden or removed bytes to visible ones above which layers are merged."""

# Commits that share no layer: a layer that another commit reads would stay, and merging would free nothing.
_ALONE = f"""SELECT own.commit_seq FROM commit_layers own WHERE own.part = '{TOTAL}' GROUP BY own.commit_seq
    HAVING COUNT(*) > 1 AND NOT MAX(
        EXISTS (SELECT 1 FROM commit_layers c WHERE c.layer = own.layer AND c.commit_seq <> own.commit_seq)
        OR EXISTS (SELECT 1 FROM fileset_layers f WHERE f.layer = own.layer))"""


def merge_hidden(db: Database) -> int:
    """Replaces the layers of each finished commit by one if no other commit reads them and much of them is hidden, as
    after its ancestors were squashed. The next sweep deletes the old layers. Returns the number of commits.

    Call it only while nothing reads commits, as at the start of the server: readers may hold layer ids.
    """
    with db.read() as conn:
        alone = [row[0] for row in conn.execute(_ALONE)]
        worthwhile = [seq for seq in alone if _hides_much(conn, stored(conn, seq, TOTAL))]
    for seq in worthwhile:
        db.write(partial(_merge, seq))
    return len(worthwhile)


def _hides_much(conn: sqlite3.Connection, layers: FileSetRef) -> bool:
    held = sum(
        conn.execute("SELECT COALESCE(SUM(size), 0) FROM entries WHERE layer = ?", (layer,)).fetchone()[0]
        for layer in layers
    )
    seen = sum(size for _, _, size, _ in FileSet(conn, layers).rows())
    return bool(held - seen > _HIDDEN * seen)


def _merge(seq: int, conn: sqlite3.Connection) -> None:
    store(conn, seq, TOTAL, merge(conn, stored(conn, seq, TOTAL)))
