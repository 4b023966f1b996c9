"""The format of a root: the database that belongs to its chunks, and its version. Starts nothing, deletes nothing.

A start sweeps away what its database does not refer to. So a database must prove itself before: it is whole, of a
version that this server knows, and the one that the marker names. The marker is a file beside it, `format.json`: the
version, the id of the database, and the highest numbers of its rows, which only grow, even where rows are deleted.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localpachd import durable_files
from localpachd.database import FORMAT, Database
from localpachd.errors import FailedPrecondition
from localpachd.ids import new_id
from localpachd.sqlite import is_damage, open_existing

DATABASE = "pachd.sqlite"
CHUNKS = "chunks"
SMALL = f"{CHUNKS}/small.sqlite"
MARKER = "format.json"
RESERVE = "reserve"
RESTORE = "restore a backup (python -m localpachd restore BACKUP NEW_ROOT)"
"""The fix of a root that is damaged."""
DRAFT = ".restoring"
"""A root with this file holds a part of a backup, which the next restore into it replaces."""
_ID = "database id"


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    """Raises FailedPrecondition for damage that SQLite finds in the database of a root."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _damaged(root, error) from error


@dataclass(frozen=True, slots=True)
class RootMarker:
    """The version, the id of the database, and by table the highest number that a row of it has had."""

    version: int
    database: str
    rows: Mapping[str, int]


def prepare(root: Path) -> None:
    """Checks a root before anything in it is opened. Raises FailedPrecondition for a root that a start could
    destroy."""
    with _explained(root):
        _check_files(root)


def check_database(root: Path, db: Database) -> None:
    """Checks that a database is whole, and the one that the marker names. Raises FailedPrecondition."""
    with _explained(root):
        _check_whole(root, db)
        _check_marked(root, db)


def _check_files(root: Path) -> None:
    if (root / DRAFT).exists():
        raise FailedPrecondition(f"{root} holds only a part of a backup: restore it again, or use another --root")
    marker = read_marker(root)
    if marker is not None and marker.version > FORMAT:
        raise _too_new(root, marker.version)
    database = root / DATABASE
    if not database.exists():
        if marker is not None or has_chunks(root):
            raise FailedPrecondition(
                f"{root} has chunks, but its database {DATABASE} is missing: put it back, or {RESTORE}; to begin with "
                "nothing, use another --root"
            )
        return
    with open_existing(database) as conn:
        (version,) = conn.execute("PRAGMA user_version").fetchone()
        tables = {row[0] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if version > FORMAT:
            raise _too_new(root, version)
        if version < FORMAT and tables:
            raise FailedPrecondition(
                f"{database} is not a database of localpachd: move it away, and put the right one back"
            )
        if not tables and (marker is not None or has_chunks(root)):
            raise FailedPrecondition(
                f"{root} has chunks, but its database {DATABASE} is empty: put the right one back, or {RESTORE}"
            )
        if marker is not None and not (root / SMALL).exists():
            raise FailedPrecondition(
                f"{root / SMALL} is missing, which has most of the files' content: put it back, or {RESTORE}"
            )
        if marker is None and has_chunks(root):
            raise FailedPrecondition(
                f"{root / MARKER} is missing, so nothing says that {DATABASE} belongs to the chunks: put it back or, "
                f"if you are sure that it does, run python -m localpachd fsck --adopt {root}"
            )


def _check_whole(root: Path, db: Database) -> None:
    with db.read() as conn:
        found = [row[0] for row in conn.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise _damaged(root, " ".join("; ".join(found).split()))


def _check_marked(root: Path, db: Database) -> None:
    marker = read_marker(root)
    if marker is None:
        return
    now = _state(db)
    if marker.database != now.database:
        raise FailedPrecondition(
            f"{root / DATABASE} is not the database of the chunks beside it: put the right one back, or restore a "
            "backup"
        )
    lost = [f"{name} {now.rows.get(name, 0)} instead of {rows}" for name, rows in sorted(marker.rows.items())
            if now.rows.get(name, 0) < rows]  # fmt: skip
    if lost:
        raise FailedPrecondition(
            f"{root / DATABASE} is older than the chunks beside it (highest numbers: {', '.join(lost)}); is its file "
            f"{DATABASE}-wal missing? Put the newest one back, or restore a backup; to go on with the older state, run "
            f"python -m localpachd fsck --adopt {root}"
        )


def mark_database(root: Path, db: Database) -> None:
    """Writes the marker of a database that has proved itself, durably."""
    write_marker(root, _state(db))


def read_marker(root: Path) -> RootMarker | None:
    """The marker; None if there is none. Raises FailedPrecondition if it cannot be read."""
    try:
        found: dict[str, Any] = json.loads((root / MARKER).read_text())
        return RootMarker(int(found["version"]), str(found["database"]), {k: int(v) for k, v in found["rows"].items()})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FailedPrecondition(
            f"{root / MARKER} is damaged: put it back or, if {DATABASE} belongs to the chunks, delete it and run "
            f"python -m localpachd fsck --adopt {root}"
        ) from error


def write_marker(root: Path, marker: RootMarker) -> None:
    """Writes a marker, durably."""
    found = {"version": marker.version, "database": marker.database, "rows": dict(sorted(marker.rows.items()))}
    durable_files.replace(root / MARKER, (json.dumps(found, indent=1) + "\n").encode())


def has_chunks(root: Path) -> bool:
    """Whether a root has any chunk, be it in the trash."""
    chunks = root / CHUNKS
    if any(chunks.glob("??/*")) or any(chunks.glob("trash/*")):
        return True
    if not (root / SMALL).exists():
        return False
    with open_existing(root / SMALL) as conn:
        if not conn.execute("SELECT 1 FROM sqlite_schema WHERE name = 'small'").fetchone():
            return False
        return conn.execute("SELECT 1 FROM small LIMIT 1").fetchone() is not None


def _state(db: Database) -> RootMarker:
    database = db.fact(_ID, new_id)
    with db.read() as conn:
        rows = {row[0]: row[1] for row in conn.execute("SELECT name, seq FROM sqlite_sequence")}
    db.flush()  # the marker is never ahead of the rows
    return RootMarker(FORMAT, database, rows)


def _damaged(root: Path, said: object) -> FailedPrecondition:
    return FailedPrecondition(f"{root / DATABASE} cannot be read: it is damaged ({said}); {RESTORE}")


def _too_new(root: Path, version: int) -> FailedPrecondition:
    return FailedPrecondition(
        f"{root} has the format {version}, and this localpachd knows those up to {FORMAT}: use the newer version that "
        "wrote it"
    )
