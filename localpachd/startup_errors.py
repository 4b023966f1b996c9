"""Why a server cannot start, in one sentence with the path and the fix. Knows the names of files, not their content.

A server that runs meets these failures too; there, each room says what they mean for its work.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from localpachd.disk import Disk
from localpachd.errors import FailedPrecondition, NoSpace

_DATABASES = ("pachd.sqlite", "chunks/small.sqlite")
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PRIMARY = 0xFF
_LEAST = 1 << 20
"""Bytes that a disk must have free for a start: SQLite's files of shared memory alone take some of them."""
_FIXES = {
    errno.EACCES: "give the user who runs localpachd the right to read and write there",
    errno.EPERM: "see whether it is marked as immutable (lsattr), and who owns it",
    errno.EROFS: "its disk can only be read: use another --root, or mount it for writing",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "the machine has too many open files",
    errno.EEXIST: "something else has this name: move it away",
    errno.ENOTDIR: "a file has the name of a directory: move it away",
    errno.EISDIR: "a directory has the name of a file: move it away",
    errno.EIO: "the disk fails: look at the system's log (dmesg)",
}


@contextmanager
def explain_failures(root: Path) -> Iterator[None]:
    """Turns failures of the system and of SQLite within the block into NoSpace or FailedPrecondition, whose text says
    what stands in the way of a start, and what to do."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if _full(root):
            raise NoSpace(f"{Disk(root).text}; localpachd needs at least {_LEAST >> 20} MiB to start") from error
        text = _of_system(root, error) if isinstance(error, OSError) else _of_database(root, error)
        raise FailedPrecondition(text) from error


def _full(root: Path) -> bool:
    try:
        state = os.statvfs(root)
    except OSError:
        return False
    return state.f_blocks > 0 and state.f_bavail * state.f_frsize < _LEAST


def _of_system(root: Path, error: OSError) -> str:
    place = error.filename if isinstance(error.filename, str | Path) else root
    fix = _FIXES.get(error.errno or 0, "repair that, or use another --root")
    return f"cannot use {place}: {error.strerror or error}; {fix}"


def _of_database(root: Path, error: sqlite3.Error) -> str:
    for name in _DATABASES:
        path = root / name
        problem = _problem(path)
        if problem:
            return (
                f"{path} cannot be read: {problem}; restore a backup (python -m localpachd restore BACKUP NEW_ROOT), "
                f"or move {root} away to begin with nothing"
            )
    return f"cannot use the databases in {root}: {error}; look at its disk, and at the rights on its files"


def _problem(path: Path) -> str:
    """What is wrong with a file of SQLite; "" if nothing is, or if it is not there."""
    if not path.exists():
        return ""
    if not path.is_file():
        return "it is not a file"
    if not os.access(path, os.R_OK | os.W_OK):
        return "permission denied"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=1)) as conn:
            (said,) = conn.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _CORRUPT:
            return f"it is damaged ({error})"
        return str(error)
    return "" if said == "ok" else f"it is damaged ({' '.join(str(said).split())})"
