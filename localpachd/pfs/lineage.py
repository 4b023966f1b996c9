"""The ancestors of a commit along its parents, by sequence number."""

import sqlite3
from collections.abc import Iterator

# A commit and its ancestors, nearest first. SQLite reads no further than a query needs.
_LINE = """WITH RECURSIVE line(seq, parent, id, finishing, finished, error, size, depth) AS (
        SELECT seq, parent, id, finishing, finished, error, size, 0 FROM commits WHERE seq = ?
        UNION ALL SELECT c.seq, c.parent, c.id, c.finishing, c.finished, c.error, c.size, line.depth + 1
            FROM line JOIN commits c ON c.seq = line.parent
    ) SELECT seq, id, finishing, finished, size FROM line"""


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
    row = conn.execute(f"{_LINE} WHERE finished IS NOT NULL AND error = '' LIMIT 1", (seq,)).fetchone()
    return row["seq"] if row else None


def base(conn: sqlite3.Connection, seq: int) -> sqlite3.Row | None:
    """The row (seq, id, finishing, finished, size) of the commit that this one is based on: its nearest ancestor
    without error, which may still be open; None if there is none."""
    row: sqlite3.Row | None = conn.execute(f"{_LINE} WHERE depth > 0 AND error = '' LIMIT 1", (seq,)).fetchone()
    return row
