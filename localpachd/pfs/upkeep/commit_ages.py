"""The ages of commits in days that the server has seen pass, whatever the clocks say. Knows no rule about old commits.

A clock that is set ahead must not make everything old. So the days are counted while the server runs, by the clock that
nobody can set; of the time between two runs at most a day counts. For each day the newest commit is noted.
"""

import json
import sqlite3
import time
from collections.abc import Callable

from localpachd.database import Database

_DAY = 86400.0
_KEY = "days seen"


class CommitAges:
    """Counts days. `clock` is the machine's clock, which may be set, `steady` one that only runs; both in seconds."""

    def __init__(
        self, db: Database, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._clock = clock
        self._steady = steady
        self._last: float | None = None

    def look(self) -> float:
        """Counts the time since the last look, and notes the newest commit of a day that has begun. To be called more
        often than once a day. Returns the days that were seen so far."""
        now = self._steady()
        passed = None if self._last is None else now - self._last
        days = self._db.write(lambda conn: self._note(conn, passed))
        self._last = now
        return days

    def _note(self, conn: sqlite3.Connection, passed: float | None) -> float:
        row = conn.execute("SELECT value FROM facts WHERE key = ?", (_KEY,)).fetchone()
        before = json.loads(row[0]) if row else {"seconds": 0.0, "clock": self._clock()}
        if passed is None:  # the server was not running
            passed = min(max(0.0, self._clock() - before["clock"]), _DAY)
        seconds = before["seconds"] + passed
        text = json.dumps({"seconds": seconds, "clock": self._clock()})
        conn.execute("INSERT OR REPLACE INTO facts (key, value) VALUES (?, ?)", (_KEY, text))
        newest = "SELECT ?, COALESCE(MAX(seq), 0) FROM commits"
        conn.execute(f"INSERT OR IGNORE INTO days (day, newest) {newest}", (int(seconds // _DAY),))
        return seconds / _DAY


def newest_of_age(conn: sqlite3.Connection, days: int) -> int:
    """The sequence number of the newest commit that is at least so many days old; 0 for none."""
    last = conn.execute("SELECT COALESCE(MAX(day), 0) FROM days").fetchone()[0]
    # Whatever a day's note names may have been made at the end of that day.
    found = conn.execute("SELECT MAX(newest) FROM days WHERE day < ?", (last - days,)).fetchone()[0]
    return int(found or 0)
