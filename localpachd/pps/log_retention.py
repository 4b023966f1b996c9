"""Deletion of old log lines. Does not read them."""

import sqlite3
import time

from localpachd.database import Database

_DAY = 24 * 3600 * 10**9
_AT_ONCE = 10_000


def forget(db: Database, days: int, most: int) -> int:
    """Deletes lines older than `days` days, and the oldest lines beyond `most`; 0 means no limit. Returns the number of
    lines deleted. Deletes in small steps, so that no writer waits long."""
    with db.read() as conn:
        last = _last(conn, days, most)
    forgotten = 0
    while gone := db.write(lambda conn: _delete(conn, last)):
        forgotten += gone
    return forgotten


def _last(conn: sqlite3.Connection, days: int, most: int) -> int:
    """The newest line to delete; 0 for none."""
    last = 0
    if most:
        row = conn.execute("SELECT seq FROM logs ORDER BY seq DESC LIMIT 1 OFFSET ?", (most,)).fetchone()
        last = row[0] if row else 0
    if days:
        # Lines are nearly in the order of their time.
        young = "SELECT seq FROM logs WHERE ts >= ? ORDER BY seq LIMIT 1"
        row = conn.execute(young, (time.time_ns() - days * _DAY,)).fetchone()
        newest = conn.execute("SELECT MAX(seq) FROM logs").fetchone()[0] or 0
        last = max(last, row[0] - 1 if row else newest)
    return last


def _delete(conn: sqlite3.Connection, last: int) -> int:
    oldest = "SELECT seq FROM logs WHERE seq <= ? ORDER BY seq LIMIT ?"
    return conn.execute(f"DELETE FROM logs WHERE seq IN ({oldest})", (last, _AT_ONCE)).rowcount
