"""Facts about the content of files in the library that take long to find out, in a database of this machine.

Each is kept under the hash of the content, so it can be missing, but not wrong.
"""

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path

_KEPT_DAYS = 60
"""For which a fact is kept after it was last used."""


def default_path() -> Path:
    """The file of the database."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lookalike" / "pictures.sqlite"


class ContentCache:
    """The facts, each a dictionary of texts: by the hash of a block or file, those of its pictures by name. place: see
    `default_path`; if it cannot be used, nothing is kept."""

    def __init__(self, place: Path) -> None:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._database = self._open(str(place))
        except (OSError, sqlite3.Error):  # a home that cannot be written to
            self._database = self._open(":memory:")

    def get(self, content: bytes) -> dict[str, str] | None:
        """What was put under a key; None for nothing."""
        with contextlib.suppress(sqlite3.Error):
            for (pictures,) in self._database.execute("SELECT pictures FROM held WHERE content = ?", (content,)):
                self._write("UPDATE held SET used = ? WHERE content = ?", time.time(), content)
                held: dict[str, str] = json.loads(pictures)
                return held
        return None

    def put(self, content: bytes, held: dict[str, str]) -> None:
        """Keeps a fact, for good with the next `save`."""
        self._write("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", content, json.dumps(held), time.time())

    def save(self) -> None:
        """Makes what was put last, and forgets what was not used for long."""
        self._write("DELETE FROM held WHERE used < ?", time.time() - _KEPT_DAYS * 86400)
        with contextlib.suppress(sqlite3.Error):
            self._database.commit()

    def _open(self, place: str) -> sqlite3.Connection:
        database = sqlite3.connect(place, timeout=10)
        database.execute("CREATE TABLE IF NOT EXISTS held (content BLOB PRIMARY KEY, pictures TEXT, used REAL)")
        return database

    def _write(self, query: str, *values: object) -> None:
        with contextlib.suppress(sqlite3.Error):  # a full disk, or a database that another process holds for long
            self._database.execute(query, values)
