"""What has been fetched for a library: of each picture its URL, its version and its content, in a database of this
machine, so that an interrupted command goes on and a repeated one fetches what has changed.

Each line is written once the picture is in the library. Lines can be missing, and then the picture is fetched again.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pipelines.client.services.service_discovery import state_directory
from pipelines.errors import LookalikeError


class FetchedPicture(NamedTuple):
    """A picture in the library. etag, modified, size: its version at the server, "" and -1 for what that did not say.
    sha256: of its bytes, in hex digits."""

    name: str
    url: str
    etag: str
    modified: str
    size: int
    sha256: str


class FetchJournal:
    """The journal of one library. Used by one thread."""

    def __init__(self, place: Path) -> None:
        """Raises LookalikeError if it cannot be written."""
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(place, timeout=30)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.executescript(
                "CREATE TABLE IF NOT EXISTS fetched"
                " (name BLOB PRIMARY KEY, url BLOB, etag TEXT, modified TEXT, size INTEGER, sha256 TEXT) WITHOUT ROWID;"
                "CREATE TABLE IF NOT EXISTS placed (place BLOB, name BLOB, PRIMARY KEY (place, name)) WITHOUT ROWID;"
                "CREATE TEMP TABLE held (name BLOB PRIMARY KEY) WITHOUT ROWID;"
                "CREATE TEMP TABLE seen (name BLOB PRIMARY KEY, url BLOB) WITHOUT ROWID;"
            )
        except (OSError, sqlite3.Error) as error:
            raise LookalikeError(f"cannot write the journal {place}: {error}") from error

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def hold(self, names: Iterable[str]) -> None:
        """Notes the names of the pictures that the library has now; those of others count as not fetched."""
        self._database.executemany("INSERT OR IGNORE INTO held VALUES (?)", ((_stored(each),) for each in names))

    def take(self, name: str, url: str) -> str:
        """Notes a picture of this run; gives the URL that has taken its name before, "" for none."""
        added = self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (_stored(name), _stored(url)))
        if added.rowcount:
            return ""
        (other,) = self._database.execute("SELECT url FROM seen WHERE name = ?", (_stored(name),)).fetchone()
        return _true(other)

    def settle(self, place: str, whole: bool) -> None:
        """Notes, for good, that the pictures of this run are those of a place: a bucket, a directory of it or a list;
        with `whole` that no others are."""
        with self._database:
            if whole:
                self._database.execute("DELETE FROM placed WHERE place = ?", (_stored(place),))
            self._database.execute("INSERT OR IGNORE INTO placed SELECT ?, name FROM seen", (_stored(place),))

    def vanished(self, place: str) -> tuple[dict[str, str], int]:
        """The pictures of the library that were of this place alone and are not in this run: their SHA-256 by name.
        And the number of those that were of it and are in this run."""
        at = (_stored(place),)
        of_place = "FROM placed JOIN held USING (name) LEFT JOIN seen USING (name) WHERE place = ?1 AND seen.url IS"
        gone = self._database.execute(
            "SELECT fetched.name, sha256 FROM fetched JOIN (SELECT name "
            f"{of_place} NULL AND name NOT IN (SELECT name FROM placed WHERE place != ?1)) USING (name)",
            at,
        )
        (kept,) = self._database.execute(f"SELECT COUNT(*) {of_place} NOT NULL", at).fetchone()
        return {_true(name): sha256 for name, sha256 in gone}, int(kept)

    def find(self, name: str, url: str) -> FetchedPicture | None:
        """The picture of that name as it was fetched from that URL, if the library still has it."""
        row = self._database.execute(
            "SELECT fetched.* FROM fetched JOIN held USING (name) WHERE name = ? AND url = ?",
            (_stored(name), _stored(url)),
        ).fetchone()
        return None if row is None else FetchedPicture(_true(row[0]), _true(row[1]), *row[2:])

    def put(self, pictures: Iterable[FetchedPicture]) -> None:
        """Notes pictures that are in the library now, for good."""
        rows = ((_stored(each.name), _stored(each.url), *each[2:]) for each in pictures)
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO fetched VALUES (?, ?, ?, ?, ?, ?)", rows)


def place(library: Iterable[str]) -> Path:
    """The file of a library's journal. library: what tells it from others."""
    digits = hashlib.sha256("\0".join(library).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return state_directory() / "fetched" / f"{digits}.sqlite"


def _stored(text: str) -> bytes:
    """A text as the database holds it: in SQLite's own texts no byte may be other than UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _true(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")
