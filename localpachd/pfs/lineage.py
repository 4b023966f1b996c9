"""The line of parents of a commit, by sequence number."""

import sqlite3
from collections.abc import Iterator


def parents(conn: sqlite3.Connection, seq: int) -> Iterator[int]:
    """A commit's ancestors, nearest first."""
    while True:
        row = conn.execute("SELECT parent FROM commits WHERE seq = ?", (seq,)).fetchone()
        if row is None or row[0] is None:
            return
        seq = row[0]
        yield seq


def nearest_whole(conn: sqlite3.Connection, seq: int) -> int | None:
    """The commit itself or its nearest ancestor that is finished without error."""
    for each in (seq, *parents(conn, seq)):
        row = conn.execute("SELECT finished, error FROM commits WHERE seq = ?", (each,)).fetchone()
        if row["finished"] is not None and not row["error"]:
            return each
    return None


def base(conn: sqlite3.Connection, seq: int) -> int | None:
    """The commit on whose content this one stands: its nearest ancestor without error, which may still be open; None
    at the root."""
    for each in parents(conn, seq):
        if not conn.execute("SELECT error FROM commits WHERE seq = ?", (each,)).fetchone()["error"]:
            return each
    return None
